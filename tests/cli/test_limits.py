#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_limits.py NXLOCK: --at-most and its grace, the processes that CMD leaves
behind, and the watchdog that ends them.
"""

import ctypes
import os
import signal
import sys
import time

from rig import Cases, await_, play
from terminal import gone

LOOP = "while [ -e rig ]; do sleep 0.05; done"
DEAF = f"trap '' TERM; : > ready; {LOOP}"
# CMD that leaves two behind, one of them in a session of its own.
LEAVES = f"""for how in '' setsid; do
    $how sh -c "{DEAF}" > /dev/null 2>&1 &
    echo $! >> left
done; until [ -e ready ]; do sleep 0.05; done"""
REAPED = """(true & true & true &); sleep 0.3
! grep -l "^PPid:.$PPID$" /proc/[0-9]*/status 2> /dev/null |
    xargs grep -l '^State:.Z' 2> /dev/null | grep ."""
# It lets go of the caller's a moment after CMD has begun.
WATCHDOG = """grep -q nxl-watchdog /proc/$PPID/comm || exit
until ! for fd in /proc/$PPID/fd/*; do readlink $fd; done |
    grep -v -e ^/dev/null -e ^socket: -e ^pipe: -e ^anon_inode:
do sleep 0.05; done"""
PTRACE_SEIZE = 0x4206


def debug(pid):
    """Becomes the debugger of a process, which is a zombie after its end until
    this one waits for it. False: that is not permitted here."""
    ptrace = ctypes.CDLL(None).ptrace
    return ptrace(PTRACE_SEIZE, *map(ctypes.c_long, (pid, 0, 0))) == 0


class Room(Cases):
    def begin(self):
        self.remove("ready", "left", "late")
        self.write("rig")

    def run(self, *words, **more):
        self.begin()
        return self.launch("run", "l", *words, cwd=self.server.folder, **more)

    def left(self):
        return list(map(int, self.text("left").split()))

    def at_most(self):
        began = time.monotonic()
        self.run("--at-most", "300ms", "--grace", "200ms", "-c", DEAF).gives(
            "CMD is deaf to TERM", 124, "",
            "stopping /bin/sh after --at-most 300ms")
        took = time.monotonic() - began
        self.check(took >= 0.49 and self.is_free("l"),
                   "--at-most: KILL after the grace, and the lock is free",
                   took)
        run = self.run("--ttl", "60s", "--grace", "20s", "--at-most", "200ms",
                       "-c", DEAF)
        run.says("--at-most")
        began = time.monotonic()
        run.send(signal.SIGTERM)
        run.gives("TERM in the grace of --at-most", 124, "", "--at-most")
        took = time.monotonic() - began
        self.check(took < 15, "TERM in the grace: ends it", took)

    def left_behind(self):
        run = self.run("--ttl", "6s", "--grace", "1s", "-c",
                       LEAVES + "; exit 5")
        run.says("left processes behind; stopping them")
        self.check(not self.is_free("l"),
                   "processes are left behind: the lock is held while they run")
        _, err = run.gives("processes are left behind", 5, "",
                           "sh has left processes behind; stopping them")
        self.equal(err.count("\n"), 1, "processes are left behind: said once")
        self.check(all(map(gone, self.left())) and self.is_free("l"),
                   "processes are left behind: they end before the lock")
        self.run("--leave-descendants", "-c", LEAVES).gives(
            "processes are left behind", 0)
        self.check(not any(map(gone, self.left())) and self.is_free("l"),
                   "--leave-descendants: they run on, without the lock")
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)
        # It ends as soon as the shell that it outlives is gone.
        self.run("-c", "(while kill -0 $$; do :; done; echo late > late) "
                 "> /dev/null 2>&1 &").gives("what is about to end", 0)
        self.check(self.has("late"), "what is about to end may end by itself")
        self.run("-c", REAPED).gives("descendants that end early: no zombie", 0)

    def watchdog(self):
        """It is called nxl-watchdog and has nothing of the caller's open."""
        with open(__file__, "rb") as file:
            self.run("-c", WATCHDOG, pass_fds=[file.fileno()]).gives(
                "a descriptor of the caller", 0)
        self.begin()
        # A job of the script that becomes nxlock is none of its descendants.
        run = self.launch(
            "run", "l", "-c", "kill -KILL $PPID; sleep 60",
            cwd=self.server.folder, before=[
                "sh", "-c", "sleep 60 > /dev/null 2>&1 & echo $! > left; "
                'exec "$@"', "sh"])
        run.gives("KILL to the watchdog", 79, "", "the watchdog of ",
                  " was killed")
        self.check(not gone(self.left()[0]) and self.is_free("l"),
                   "KILL to the watchdog: a job of the script lives on")
        os.kill(self.left()[0], signal.SIGKILL)

    def stuck(self):
        """One that cannot be ended is reported, and waited for."""
        run = self.run("-c", "sleep 600 & echo $! > new; mv new left; "
                       "until [ -e ready ]; do sleep 0.05; done; "
                       "kill -KILL $PPID; sleep 600")
        await_(lambda: self.has("left"))
        pid, = self.left()
        held = debug(pid)
        self.write("ready")
        said = (f"cannot end process {pid}, which /bin/sh has left behind: a "
                "debugger holds what is left of it; waiting for its end\n",)
        if held:
            self.check(run.says("a debugger holds"),
                       "a process that cannot be ended: reported")
            self.check(run.is_running() and not self.is_free("l"),
                       "a process that cannot be ended: the lock is held")
            os.waitpid(pid, 0)
        else:
            self.skip("a process that cannot be ended", "no ptrace()")
            said = ()
        run.gives("KILL to the watchdog, and a process that is debugged", 79,
                  "", "the watchdog of ", *said)


if __name__ == "__main__":
    sys.exit(play(Room, Room.at_most, Room.left_behind, Room.watchdog,
                  Room.stuck))
