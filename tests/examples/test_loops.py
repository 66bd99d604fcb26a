#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_loops.py BUILD: the event loops of docs/examples.

Each works past many leases; it notices every way to lose the name, works no
more until it holds it again, and on SIGTERM gives it back at once.
"""

import signal
import subprocess
import sys
import time

from stage import Stage, Tap, Wrong, await_, lacking

NAME = "leader"
TTL_MS = 1200
LONG_MS = 60000  # a lease that must not be waited for


class Loop:
    """One of the programs, and what it has said so far."""

    def __init__(self, stage, program, ttl_ms=TTL_MS, **env):
        self.path = stage.folder / f"said-{time.monotonic_ns()}.txt"
        with open(self.path, "wb") as said:
            self.process = subprocess.Popen(
                [program, NAME, str(ttl_ms)], env={**stage.env, **env},
                stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def said(self):
        return self.path.read_text("utf-8").splitlines()

    def count(self, word):
        return sum(line.startswith(word) for line in self.said())

    def says(self, word, more=1):
        wanted = self.count(word) + more
        return await_(lambda: self.count(word) >= wanted)

    def works(self):
        return self.says("working", 2)

    def ends(self):
        """Its exit code; None: it does not end."""
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def only_while_held(self):
        held = False
        for line in self.said():
            if line == "working" and not held:
                return False
            held = line == "held" or held and not line.startswith("lost")
        return True


class Play:
    """The scenes, for one program."""

    def __init__(self, tap, stage, name):
        self.tap, self.stage, self.name = tap, stage, name
        self.program = stage.build(name)
        self.server = stage.place.server

    def check(self, good, what, loop):
        self.tap.check(good, f"{self.name} {what}", "\n".join(loop.said()))

    def loses(self, loop, how, why, back=None):
        held, lost = loop.count("held"), loop.count("lost")
        how()
        await_(lambda: loop.count("lost") > lost)
        told = [line for line in loop.said() if line.startswith("lost")][lost:]
        self.check(len(told) == 1 and why in told[0],
                   f"notices that {why}", loop)
        if back:
            back()
        await_(lambda: loop.count("held") > held)
        self.check(loop.works(), "then gets in line and works again", loop)

    def stop(self, loop):
        loop.process.send_signal(signal.SIGSTOP)
        await_(lambda: self.server.ask("EXISTS", NAME) == 0)
        loop.process.send_signal(signal.SIGCONT)

    def one(self):
        loop = Loop(self.stage, self.program)
        self.check(loop.works(), "works", loop)
        token = self.server.ask("GETRANGE", NAME, 0, -1)
        end = time.monotonic() + 3 * TTL_MS / 1000
        await_(lambda: time.monotonic() > end)
        self.check(self.server.ask("GETRANGE", NAME, 0, -1) == token and
                   loop.works() and loop.count("lost") == 0, "renews", loop)
        self.loses(loop, lambda: self.server.ask("DEL", NAME),
                   "the key was removed")
        self.loses(loop, lambda: self.server.ask("SET", NAME, "x", "PX", 2000),
                   "the server has another value")
        self.loses(loop, lambda: self.stop(loop), "this program was suspended")
        process = self.server.process
        self.loses(loop, lambda: process.send_signal(signal.SIGSTOP),
                   "the lease could not be renewed",
                   lambda: process.send_signal(signal.SIGCONT))
        loop.process.terminate()
        self.check(loop.ends() == 0, "ends with 0", loop)
        self.check(self.server.ask("EXISTS", NAME) == 0,
                   "gives the name back", loop)
        self.check(loop.only_while_held(), "works only while it holds", loop)

    def two(self):
        first = Loop(self.stage, self.program, LONG_MS)
        self.check(first.works(), "holds the name", first)
        second = Loop(self.stage, self.program, LONG_MS)
        third = Loop(self.stage, self.program, LONG_MS)
        self.check(first.works() and second.said() + third.said() == [],
                   "stands by while another one works", second)
        third.process.terminate()
        self.check(third.ends() == 0 and first.works(),
                   "leaves the line on SIGTERM", third)
        first.process.terminate()
        self.check(first.ends() == 0 and second.works(),
                   "hands over on SIGTERM", second)
        second.process.terminate()
        self.check(second.ends() == 0 and
                   self.server.ask("EXISTS", NAME) == 0,
                   "leaves no lock behind", second)

    def wrong(self):
        loop = Loop(self.stage, self.program, NXLOCK_URL="nonsense://x")
        self.check(loop.ends() == 1 and loop.said(), "names a bad URL", loop)
        loop = Loop(self.stage, self.program, ttl_ms=1)
        self.check(loop.ends() == 1 and loop.said(), "names a bad ttl", loop)


def main(build):
    tap = Tap()
    with Stage(build) as stage:
        for name, modules in (("loop_poll", []), ("loop_uv", ["libuv"])):
            packages = lacking(*modules)
            if packages:
                tap.skip(name, "it needs " + " ".join(packages))
                continue
            try:
                play = Play(tap, stage, name)
            except Wrong as why:
                tap.check(False, f"{name} compiles", why)
                continue
            play.one()
            play.two()
            play.wrong()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
