#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_wait.py NXLOCK: a lock that is busy is skipped or waited for, and -v
says why. Without -v and a terminal nothing is printed, because cron mails
whatever a job prints.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from rig import Cases, Server, await_, clean_environment

TOKEN = "6fa459ea-ee8a-4ca4-894e-db77e160355e@db7:41233:backup"
WAITING = "nxlock: waiting for 'w': held by db7:41233:backup, "

BUSY = ("SET", "stranger", "PX", "100000")
LIST = ("RPUSH", "element")
DATA = ("SET", "some program data")
HOLDS = ["holds 'some program data'"]

# What the key is, and how that is made; the command, with the name w; the exit
# code and the messages. CMD must not run, and the key must not change.
CASES = (
    ("busy", BUSY, "run w -n", 75, []),
    ("busy", BUSY, "run w -w 50ms", 75, []),
    ("busy", BUSY, "run w -w 0", 75, []),
    ("busy", BUSY, "run w -w 1200ms", 75, []),
    ("busy", BUSY, "run w -n -E 0", 0, []),
    ("busy", BUSY, "run w -n --busy-code=3", 3, []),
    ("busy", BUSY, "run w -nv", 75, ["'w' is held by stranger, "]),
    ("busy", BUSY, "acquire w -n", 75, []),
    ("busy", BUSY, "wait w -w 100ms", 75, []),
    ("a list", LIST, "run w", 69, ["cannot acquire 'w'"]),
    ("a list", LIST, "run w -n", 69, ["cannot acquire 'w'"]),
    ("a list", LIST, "run w -w 200ms", 69, ["cannot acquire 'w'"]),
    ("a list", LIST, "run w -n -E 0", 69, ["cannot acquire 'w'"]),
    ("a list", LIST, "acquire w", 69, ["cannot acquire 'w'"]),
    ("data", DATA, "run w -E 0", 69, [*HOLDS, "redis-cli"]),
    ("data", DATA, "run w -n -E 0", 69, [*HOLDS, "redis-cli"]),
    ("data", DATA, "run w -w 200ms -E 0", 69, [*HOLDS, "redis-cli"]),
    ("data", DATA, "acquire w", 69, HOLDS),
    ("data", DATA, "acquire w -n", 69, HOLDS),
    ("data", DATA, "wait w", 69, HOLDS),
    ("a token that never expires", ("SET", TOKEN), "run w -n", 75, []),
    ("a token that never expires", ("SET", TOKEN), "wait w -w 100ms", 75, []),
    ("a time", ("SET", "4000000000"), "run w -n", 75, []),
)


class Launched:
    """nxlock, in the background; ended with the test."""

    def __init__(self, room, *words, **more):
        self.out = tempfile.TemporaryFile(dir=room.server.folder)
        self.err = tempfile.TemporaryFile(dir=room.server.folder)
        self.process = subprocess.Popen(
            [room.program, *words], stdin=subprocess.DEVNULL, stdout=self.out,
            stderr=self.err, **more)

    @staticmethod
    def read(file):
        return os.pread(file.fileno(), 65536, 0).decode()

    def says(self, pattern):
        """Waits until it has."""
        return await_(lambda: re.search(pattern, self.read(self.err)))

    def handles_signals(self):
        """So it has begun."""
        folder = f"/proc/{self.process.pid}/fd/"
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # closed since
                if "signalfd" in os.readlink(folder + fd):
                    return True
        return False

    def ends(self):
        """Its exit code, output and messages."""
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        return code, self.read(self.out), self.read(self.err)


class Room(Cases):
    def hold(self, value=TOKEN, ms=100000):
        self.server.cli("SET", "w", value, "PX", str(ms))

    def attempts(self):
        """How often anybody tried to acquire anything, or gave up."""
        return sum(int(count) for count in re.findall(
            rb"cmdstat_(?:set|eval|evalsha):calls=(\d+)",
            self.server.cli("INFO", "commandstats")))

    def attempted(self, more=1):
        before = self.attempts()
        return await_(lambda: self.attempts() >= before + more)

    def started(self):
        return os.path.exists(self.server.folder + "/started")

    def ended(self, given, launched, code, out="", *said):
        """The whole of what was launched, in one result."""
        got = launched.ends()
        self.check(got[:2] == (code, out) and
                   got[2].count("\n") == len(said) and
                   all(word in line for word, line in
                       zip(said, got[2].splitlines())),
                   f"{given}: code, output and messages", (got, said))

    def table(self):
        touch = ["--", "touch", self.server.folder + "/started"]
        for given, make, words, code, said in CASES:
            self.server.cli("DEL", "w")
            self.server.cli(make[0], "w", *make[1:])
            before = self.server.cli("DUMP", "w")
            self.gives(given, words.split() + touch * words.startswith("run"),
                       code, "", *said)
            self.check(not self.started() and
                       self.server.cli("DUMP", "w") == before,
                       f"{given}: {words}: nothing runs, the key is the same")
        self.server.cli("DEL", "w")

    def waits(self):
        self.hold("stranger")
        run = Launched(self, "run", "w", "--", "echo", "ran")
        self.check(self.attempted() and run.process.poll() is None,
                   "a waiter tries and goes on")
        self.server.cli("DEL", "w")
        self.ended("a waiter, when the lock is free", run, 0, "ran\n")
        self.hold("stranger", 300)
        self.gives("a lease that ends", "run w -w 5 -- echo ran", 0, "ran\n")
        self.hold("stranger")
        began = time.monotonic()
        self.gives("busy", "run w -w 600ms -- true", 75)
        took = time.monotonic() - began
        self.check(0.55 <= took < 2.5, "run -w 600ms: how long that is", took)
        run = Launched(self, "run", "w", "--", "echo", "ran", preexec_fn=lambda:
                       signal.signal(signal.SIGHUP, signal.SIG_IGN))
        tries = self.attempted()
        run.process.send_signal(signal.SIGHUP)
        self.check(tries and self.attempted(),
                   "a HUP that is ignored does not end a wait")
        self.server.cli("DEL", "w")
        self.ended("a waiter after a HUP", run, 0, "ran\n")

    def verbose(self):
        self.hold(ms=30000)
        began = time.monotonic()
        run = Launched(self, "run", "w", "-v", "--", "echo", "done")
        self.check(run.says(rf"^{WAITING}[23]\ds left\n$") and
                   time.monotonic() - began >= 0.9,
                   "run -v says for whom it waits, after a second")
        self.attempted(8)  # that takes longer than another second
        self.server.cli("DEL", "w")
        self.ended("run -v, which waited", run, 0, "done\n", WAITING,
                   "acquired 'w' after waiting", "released 'w'")
        self.hold(ms=30000)
        held = "'w' is held by db7:41233:backup, "
        self.ended("run -v -w 1500ms, still busy", Launched(
            self, "run", "w", "-v", "-w", "1500ms", "--", "true"), 75, "",
            WAITING, held)
        self.ended("run -v -w 300ms, still busy", Launched(
            self, "run", "w", "-v", "-w", "300ms", "--", "true"), 75, "", held)
        acquire = Launched(self, "acquire", "w", "-v")
        self.check(acquire.says(WAITING), "acquire -v says for whom it waits")
        self.server.cli("DEL", "w")
        code, out, _ = acquire.ends()
        self.equal((code, out.encode()), (0, self.server.cli("GET", "w")),
                   "acquire -v prints the token alone")
        self.server.cli("DEL", "w")

    def becomes_a_list(self):
        """A key that is used for something else will never be free."""
        for when in "before", "after":
            self.hold("stranger")
            run = Launched(self, "run", "w", "-v", "--", "touch",
                           self.server.folder + "/started")
            if when == "after":
                run.says("waiting for 'w'")
            self.server.cli("EVAL", "redis.call('DEL', KEYS[1]) return "
                            "redis.call('RPUSH', KEYS[1], 'element')", "1", "w")
            code, _, err = run.ends()
            self.check(code == 69 and not self.started() and
                       self.server.cli("LLEN", "w") == b"1\n",
                       f"a list that comes {when} the first message ends the "
                       "wait", err)
        self.server.cli("DEL", "w")

    def refused_grants(self):
        run = Launched(self, "run", "w", "-v", "-u", self.server.url +
                       "?wait_replicas=1&wait_ms=50", "--", "true")
        self.check(run.says("waiting for 'w', which is not held: 0 of 1 "
                            "replica had"), "run -v says why no grant counts")
        run.process.terminate()
        code, _, err = run.ends()
        self.check(code == 128 + signal.SIGTERM and
                   self.server.cli("EXISTS", "w") == b"0\n",
                   "grants that do not count: TERM ends the wait, no key stays",
                   (code, err))

    def stop(self):
        self.server.process.kill()
        self.server.process.wait()
        os.unlink(self.server.socket)

    def unreachable(self):
        """A server that cannot be asked is waited for like a lock."""
        for given, is_there, options in (
                ("a server that goes", True, ["-v"]),
                ("a server that is not there", False, ["-v"]),
                ("a server that is not there, no -v", False, [])):
            if is_there:
                self.hold()
            else:
                self.stop()
            run = Launched(self, "run", "w", *options, "-u", self.server.url +
                           "?timeout_ms=300", "--", "echo", "used")
            if is_there:
                self.attempted()
                self.stop()
            if options:
                self.check(run.says("waiting for 'w': .*" + self.server.socket),
                           f"{given}: run -v says so")
            else:
                await_(run.handles_signals)
            self.check(run.process.poll() is None, f"{given}: it waits")
            self.server.start()
            await_(self.server.answers)
            code, out, err = run.ends()
            self.check((code, out) == (0, "used\n") and
                       bool(err) == bool(options) and
                       err.count("cannot connect") == len(options) and
                       self.server.cli("EXISTS", "w") == b"0\n",
                       f"{given}: it runs when that is back", (code, out, err))


def main(program):
    with Server() as server:
        clean_environment(server)
        room = Room(program, server)
        for part in (room.table, room.waits, room.verbose, room.becomes_a_list,
                     room.refused_grants, room.unreachable):
            part()
        return room.done()


sys.exit(main(os.path.abspath(sys.argv[1])))
