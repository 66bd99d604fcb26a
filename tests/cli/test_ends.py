#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_ends.py NXLOCK NO_FORK: each end of CMD, under each way to run it.

For run, run --at-least, run --every and once: the exit code, what is on record
then, and what the next run does. The rule: a run that started nothing, or that
did not get the lock, does not count; any other one does.
"""

import concurrent.futures
import json
import os
import sys

from rig import Cases, await_, nx, play

# The exit codes that CMD may have of its own, among them all of nxlock's.
CODES = (0, 1, 3, 64, 65, *range(69, 71), *range(74, 80), 124, 125, 126, 127,
         128, 143, 255)


MODES = "run", "at-least", "every", "once"


class End:
    """How it ends: words for nxlock, CMD, and what becomes of it."""

    def __init__(self, what, code, *command, words=(), counts=True,
                 record="doubt", environment=None):
        self.what, self.code, self.command = what, code, command
        self.words, self.counts, self.record = words, counts, record
        self.environment = environment or {}
        self.drops = any("DEL $NXLOCK_NAME" in word for word in command)
        # --at-least longer than --at-most is refused: see test_table.py.
        self.modes = [mode for mode in MODES if mode != "at-least" or
                      "--at-most" not in words]


def shell(script):
    return "--", "sh", "-c", script


def ends(server, no_fork):
    """All of them. record: what once has after it."""
    drop = f"redis-cli -s {server.socket} DEL $NXLOCK_NAME > /dev/null; "
    plain = os.path.join(server.folder, "plain")
    with open(plain, "w", encoding="ascii") as file:
        file.write("not executable\n")
    short = "--ttl", "2s"
    for code in CODES:
        yield End(f"exit {code}", code, *shell(f"exit {code}"),
                  record="doubt" if code else "done")
    for number in (1, 2, 3, 9, 10, 15):
        yield End(f"signal {number}", 128 + number,
                  *shell(f"kill -{number} $$"))
    yield End("-c, not found", 127, "-c", "exec /nowhere/at/all")
    yield End("--at-most", 124, "--", "sleep", "60",
              words=("--at-most", "100ms"))
    yield End("--at-most, exit 0", 124,
              *shell("trap 'exit 0' TERM; sleep 60 & wait"),
              words=("--at-most", "300ms"))
    yield End("lost", 79, *shell(drop + "sleep 60"), words=short)
    yield End("lost, exit 0", 79,
              *shell("trap 'exit 0' TERM; " + drop + "sleep 60 & wait"),
              words=short)
    yield End("lost, --on-lost warn", 79, *shell(drop + "sleep 1"),
              words=(*short, "--on-lost", "warn"))
    yield End("nxlock is killed", -9,
              *shell("kill -9 $NXLOCK_SUPERVISOR_PID; sleep 60"), words=short)
    yield End("not found", 127, "--", "/nowhere/at/all", counts=False,
              record="failed")
    yield End("a folder", 126, "--", server.folder, counts=False,
              record="failed")
    yield End("not executable", 126, "--", plain, counts=False,
              record="failed")
    for which, first in (("watchdog", "1"), ("CMD", "2")):
        yield End(f"no process for {which}", 125, *shell("exit 0"),
                  counts=False, record="failed",
                  environment={"LD_PRELOAD": no_fork, "NO_FORK": first,
                               "ASAN_OPTIONS": "verify_asan_link_order=0"})
    yield End("busy", 75, *shell("exit 0"), words=("-n",), counts=False,
              record="none")
    yield End("busy for -w", 75, *shell("exit 0"), words=("-w", "200ms"),
              counts=False, record="none")
    yield End("no server", 69, *shell("exit 0"),
              words=("-n", "-u", "unix:///nowhere/socket"), counts=False,
              record="none")
    yield End("no permission", 77, *shell("exit 0"), words=(
        "-n", "-u", server.url.replace("//", "//guest:Zqx7@")), counts=False,
              record="none")


class Case:
    """One end, under one way to run it, with a name of its own."""

    def __init__(self, room, number, mode, end):
        self.room, self.mode, self.end = room, mode, end
        self.name = f"n{number}"
        self.wrong = []

    def equal(self, got, wanted, what):
        if got != wanted:
            self.wrong.append(f"{what}: {got!r}, not {wanted!r}")

    def words(self, *more):
        extra = {"at-least": ("--at-least", "1h"), "every": ("--every", "1h")}
        return ("once" if self.mode == "once" else "run", self.name,
                *extra.get(self.mode, ()), *more)

    def nx(self, *words, **environment):
        return nx(self.room.program, *words, env={**os.environ, **environment})

    def exists(self, key):
        return self.room.server.cli("EXISTS", key) == b"1\n"

    def state(self):
        shown = self.nx("once", "show", self.name, "--json").stdout
        return json.loads(shown)["state"]

    def check(self):
        end = self.end
        busy = end.what.startswith("busy")
        token = self.nx("acquire", self.name).stdout if busy else b""
        got = self.nx(*self.words(*end.words, *end.command), **end.environment)
        self.equal(got.returncode, end.code, f"exit code ({got.stderr})")
        if busy:
            self.nx("release", self.name, token.decode().strip())
        kept = self.mode == "at-least" and end.counts and not end.drops
        if end.code < 0 and not kept:
            await_(lambda: not self.exists(self.name))  # its lease ends
        self.equal(self.exists(self.name), kept, "is locked afterwards")
        if self.mode == "once":
            self.check_once()
        elif self.mode == "every":
            self.check_every()
        else:
            self.equal(self.again(), (75, b"") if kept else (0, b"again\n"),
                       "the next run")

    def again(self):
        got = self.nx(*self.words("-n", "--", "echo", "again"))
        return got.returncode, got.stdout

    def check_every(self):
        counts = self.end.counts
        self.equal(self.exists("{" + self.name + "}:every"), counts,
                   "is recorded")
        self.equal(self.again(), (75, b"") if counts else (0, b"again\n"),
                   "the next run")

    def check_once(self):
        record = self.end.record
        self.equal(self.state(), record, "the record")
        after = {"done": (0, b""), "doubt": (76, b"")}
        self.equal(self.again(), after.get(record, (0, b"again\n")),
                   "the next run")


def each(room):
    room.server.cli("ACL", "SETUSER", "guest", "reset", "on", ">Zqx7", "~other",
                    "+@all")
    cases = [Case(room, 1000 * i + j, mode, end)
             for i, end in enumerate(ends(room.server, room.no_fork))
             for j, mode in enumerate(end.modes)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(Case.check, cases))
    for case in cases:
        room.check(not case.wrong, f"{case.mode}: {case.end.what}",
                   "\n".join(case.wrong))


if __name__ == "__main__":
    sys.exit(play(Cases, each, more=["no_fork"]))
