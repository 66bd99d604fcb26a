#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_every.py NXLOCK: --every, from the crons of three machines.

Their clocks are apart, and each cron is late now and then by less than a tenth
of a period. In each period one of the three runs the job, and the other two
are told that it is not due.
"""

import heapq
import os
import random
import re
import subprocess
import sys
import time

from rig import Cases, nx, play

FULL = os.environ.get("NXLOCK_FULL") == "1"
# Seconds, jobs side by side, and how many periods of each. A row is for the
# machine that is too busy for the one before: more time, and less to do.
ROWS = ((6.0, 40, 25 if FULL else 4), (12.0, 20, 4), (24.0, 10, 4))
OFFSETS = (0.0, 0.75, 1.5)  # of the machines' clocks
JITTER = 0.2
TOLERANCE = 1 / 10  # of a period: what --every allows for


class Started:
    def __init__(self, process, period, due):
        self.process = process
        self.period = period
        self.due = due
        self.code = None


def start(nxlock, name, length):
    return subprocess.Popen(
        [nxlock, "run", f"job{name}-of-{length}", "--every",
         f"{length * 1000:.0f}ms", "--", "true"], stdin=subprocess.DEVNULL)


def crons(nxlock, length, names, count):
    """All starts; each with its code, and how late it began and ended."""
    seed = random.randrange(1 << 32)
    print(f"# seed {seed}")
    rng = random.Random(seed)
    queue = []
    begin = time.monotonic() + 0.2
    for name in range(names):
        phase = begin + length * name / names
        for period in range(count):
            for host, offset in enumerate(OFFSETS):
                due = phase + period * length + offset
                heapq.heappush(queue, (due + rng.random() * JITTER, due, host,
                                       name, period))
    done, at_work = [], []
    while queue or at_work:
        for one in list(at_work):
            if one.process.poll() is not None:
                one.code = one.process.returncode
                one.took = time.monotonic() - one.due
                at_work.remove(one)
                done.append(one)
        now = time.monotonic()
        if queue and queue[0][0] <= now:
            _, due, _, name, period = heapq.heappop(queue)
            at_work.append(Started(
                start(nxlock, name, length), (name, period), due))
        else:
            time.sleep(0.002)
    return done


def enough(tap, done, length):
    """A period counts if all of its three ended in time, in the sense of the
    promise: each starts as often, give or take a tenth. False: too few did."""
    runs, late, odd = {}, set(), []
    for one in done:
        runs.setdefault(one.period, 0)
        if one.code == 0:
            runs[one.period] += 1
        elif one.code != 75:
            odd.append(one.code)
        # Late in one is early for the next.
        if one.took > length * TOLERANCE - JITTER:
            name, period = one.period
            late.update({one.period, (name, period + 1)})
    tap.equal(odd, [], "each is a run or not due")
    wrong = {period: n for period, n in runs.items()
             if n != 1 and period not in late}
    tap.equal(wrong, {}, f"one run in each of {len(runs)} periods")
    print(f"# {len(late)} periods were disturbed by the machine")
    return len(late) < len(runs) * 9 / 10


def periods(room):
    room.check(any(enough(room, crons(room.program, *row), row[0])
                   for row in ROWS), "enough of them count")


def by_hand(room):
    def code(*words, command=("true",)):
        return nx(room.program, "run", "h", "--every", "1h", *words, "--",
                  *command)

    got = code()
    room.equal((got.returncode, got.stderr), (0, b""), "the first one runs")
    left = int(room.server.cli("PTTL", "{h}:every"))
    room.check(3200000 < left <= 3240000, "and is recorded for 54 minutes",
              left)
    room.equal(room.server.cli("EXISTS", "h"), b"0\n", "while the lock is free")
    got = code()
    room.equal((got.returncode, got.stderr, got.stdout), (75, b"", b""),
              "the second one is not due, in silence")
    room.equal(code("-E", "0").returncode, 0, "-E replaces the code")
    got = code("-v")
    room.check(b"'h' is not due; CMD is not started: " in got.stderr and
              b"ran it last, and --every 1h skips runs for 54m" in got.stderr
              and b"the next run may start in 5" in got.stderr,
              "-v says it, and when it is due", got.stderr)
    room.equal(room.server.cli("EXISTS", "h"), b"0\n", "and the lock is free")
    room.equal(nx(room.program, "run", "h", "--", "true").returncode, 0,
              "without --every it runs")
    got = nx(room.program, "list")
    room.check(got.stdout.startswith(b"{h}:every\tevery\t"),
              "list shows the record", got.stdout)
    got = nx(room.program, "unlock", "{h}:every", "--force", "--yes")
    room.equal((got.returncode, code().returncode), (0, 0),
              "unlock of it allows the next run")
    room.server.cli("DEL", "{h}:every")
    room.equal(code(command=("false",)).returncode, 1, "one that fails")
    room.equal(code().returncode, 75, "counts")
    room.server.cli("DEL", "{h}:every")
    room.equal(code(command=("/nowhere",)).returncode, 127,
              "what could not be started")
    room.equal(room.server.cli("EXISTS", "{h}:every"), b"0\n", "does not count")
    room.equal(nx(room.program, "run", "{h}x", "--every", "1h", "-u",
                 room.server.url + "?max_ttl_ms=40000", "--prefix", "p:", "--",
                 "true").returncode, 0,
              "a name with a tag, a prefix and a short max_ttl_ms")
    room.equal(room.server.cli("EXISTS", "p:{h}x:every"), b"1\n",
              "has its key in the same way")
    for period, skipped in (("1d", b"21.6h"), ("24d", b"21.6d")):
        line = ("run", "r" + period, "--every", period, "-v", "--", "true")
        nx(room.program, *line)
        got = nx(room.program, *line)
        room.check(got.returncode == 75 and
                  b"skips runs for " + skipped + b";" in got.stderr,
                  f"--every {period} says how long it skips runs", got.stderr)
    room.equal(nx(room.program, "run", "longest", "--every", "26.6d", "--",
                 "true").returncode, 0, "the longest period")
    for period in ("26.7d", "49d"):
        got = nx(room.program, "run", "month", "--every", period, "--", "true")
        room.check(got.returncode == 64 and b"26.6d" in got.stderr and
                  f"--every {period} is too long".encode() in got.stderr,
                  f"--every {period} is refused with the limit", got.stderr)
    nx(room.program, "run", "shorter", "--every", "2h", "--", "true")
    got = nx(room.program, "run", "shorter", "--every", "5s", "-v", "--",
             "true")
    room.check(got.returncode == 75 and b"ago" not in got.stderr and
              b"used a longer period than --every 5s; the next run may start "
              b"in 107m" in got.stderr,
              "a shorter period than that of the last run", got.stderr)
    got = nx(room.program, "run", "--help").stdout
    room.check(re.search(rb"--every DUR .*0\.9 DUR", got),
              "--help says for how long a run counts", got)


def rights(room):
    room.server.cli("ACL", "SETUSER", "u", "on", ">Zqx7", "~job:*", "+@all")
    os.environ["NXLOCK_PASSWORD"] = "Zqx7"
    line = ("run", "job:9", "--every", "1h", "-u", room.server.url + "?user=u",
            "--", "true")
    got = nx(room.program, *line)
    room.equal(got.returncode, 77, "a user without rights for the record")
    room.check(b"key '{job:9}:every'" in got.stderr and
              b"'nxlock doctor job:9'" in got.stderr,
              "is told the key, and what finds the remedy", got.stderr)
    room.server.cli("ACL", "SETUSER", "u", "~{job:*")
    room.equal(nx(room.program, *line).returncode, 0, "which does")
    room.server.cli("ACL", "SETUSER", "u", "~{job}x")
    got = nx(room.program, line[0], "{job}x", *line[2:])
    room.check(b"key '{job}x:every'" in got.stderr and
              b"nxlock doctor" in got.stderr,
              "and of a name with a tag", got.stderr)
    del os.environ["NXLOCK_PASSWORD"]


def as_documented(room):
    """The user of docs/acl.md is refused nothing, whatever becomes of a run."""
    with open(os.path.join(os.path.dirname(__file__), "../../docs/acl.md"),
              encoding="utf-8") as page:
        lines = re.findall("^    ACL SETUSER jobs (~.*)$", page.read(), re.M)
    # of run, and of run --every in addition
    rules = lines[0].split() + lines[1].split()
    room.server.cli("ACL", "SETUSER", "locks", "reset", "on", ">Zqx7",
               *rules)
    url = room.server.url.replace("//", "//locks:Zqx7@")
    for name in "backup:7", "backup:{a}b":
        key = name + ":every" if "{" in name else "{" + name + "}:every"
        for code, command, recorded in (
                (127, "/nowhere", 0), (126, room.server.folder, 0),
                (1, "false", 1), (75, "true", 1)):
            room.server.cli("ACL", "LOG", "RESET")
            got = nx(room.program, "run", name, "--every", "1h", "-u", url,
                     "--", command)
            room.equal((got.returncode, room.server.cli("ACL", "LOG"),
                       room.server.cli("EXISTS", key)),
                      (code, b"\n", b"%d\n" % recorded),
                      f"{name}, {code}: ACL LOG is empty, the record is "
                      f"{'there' if recorded else 'gone'}")


if __name__ == "__main__":
    sys.exit(play(Cases, by_hand, rights, as_documented, periods))
