#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_inherit.py NXLOCK NO_CLOSE_RANGE: CMD finds what nxlock was given.

The descriptors, closed ones too, the signal mask, and the signals ignored:
as if nxlock were not there. And a closed descriptor of nxlock's own never
becomes something else. NO_CLOSE_RANGE is preloaded: a system where only
/proc shows which descriptors are open.
"""

import itertools
import os
import signal
import subprocess
import sys
import time

from rig import Cases, PATIENCE_S, await_, play

# Without a descriptor of its own while it looks.
LOOK = """
set --
for f in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ ! -e /proc/$$/fd/$f ] || [ "$f" = "${NXLOCK_LOST_FD-}" ] || set -- "$@" $f
done
echo "$*" > seen
"""
# What stands at nxlock's own.
LOOK_UP = """
for f in 0 1 2; do readlink /proc/$NXLOCK_SUPERVISOR_PID/fd/$f >> links; done
"""
MASKS = ("SigBlk", "SigIgn", "SigCgt")
# Those that nxlock treats in a way of its own, one of each.
SIGNALS = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTIN, signal.SIGTTOU,
           signal.SIGTSTP, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT,
           signal.SIGHUP, signal.SIGALRM, signal.SIGXCPU, signal.SIGUSR1,
           signal.SIGIO, signal.SIGRTMIN, signal.SIGRTMAX, signal.SIGCONT,
           signal.SIGWINCH]


class Room(Cases):
    def shell(self, closed, *words):
        """words, with the descriptors closed; its code."""
        how = " ".join(f"{fd}>&-" for fd in closed)
        return subprocess.run(
            ["sh", "-c", f'exec "$@" {how}', "sh", *words], timeout=60,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd=self.server.folder,
            check=False).returncode

    def closed_descriptors(self):
        for count in range(4):
            for closed in itertools.combinations((0, 1, 2), count):
                what = f"closed: {closed or 'none'}"
                self.shell(closed, "sh", "-c", LOOK)
                wanted = self.text("seen")
                self.shell(closed, self.program, "run", "k", "--", "sh", "-c",
                           LOOK)
                self.equal(self.text("seen"), wanted,
                           f"{what}: so CMD finds them")
                self.write("links")
                self.shell(closed, self.program, "run", "k", "--", "sh", "-c",
                           LOOK_UP)
                links = self.text("links").splitlines()
                self.check(links and all(link.startswith("/")
                                        for link in links),
                          "and no descriptor of nxlock's stands there", links)
                start = time.monotonic()
                code = self.shell(closed, self.program, "acquire", "k")
                took = time.monotonic() - start
                self.check(took < 10, f"{what}: acquire waits for nobody",
                           f"{took:.2f} s")
                self.equal(code, 70 if 1 in closed else 0, f"{what}: acquire")
                self.equal(self.is_free("k"), 1 in closed,
                           "leaves what was printed, and only that")
                self.server.cli("SET", "k", "stranger", "PX", "600000")
                self.equal(self.shell(closed, self.program, "status", "k"),
                           70 if 1 in closed else 0, f"{what}: status")
                # It has something to say, while a connection is open.
                self.equal(self.shell(closed, self.program, "run", "k", "-nv",
                                     "--", "true"), 75, f"{what}: busy")
                self.server.cli("DEL", "k")

    def loses_in_silence(self):
        """Nothing that is said goes to the server, or anywhere else."""
        with subprocess.Popen(
                ["sh", "-c", f"exec '{self.program}' run k --ttl 600ms -c "
                 "'echo > begun; sleep 60' <&- >&- 2>&-"],
                cwd=self.server.folder) as run:
            await_(lambda: self.has("begun"))
            self.server.cli("DEL", "k")
            self.check(await_(lambda: run.poll() is not None),
                       "all closed: CMD ends when the lock is lost")
            self.equal(run.poll(), 79, "with the code for that")
            run.kill()

    def many_descriptors(self):
        """2^30 are allowed: the watchdog looks at the deadline, not at them."""
        environment = dict(os.environ, LD_PRELOAD=self.no_close_range,
                           ASAN_OPTIONS="verify_asan_link_order=0")
        reader, writer = os.pipe()
        with subprocess.Popen(
                [self.program, "run", "m", "--at-most", "500ms", "--grace",
                 "200ms", "--", "sh", "-c",
                 "exec 9>&-; echo $PPID > guard; exec sleep 60"],
                cwd=self.server.folder, env=environment, pass_fds=[writer],
                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            os.close(writer)
            try:
                code = run.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                code = "none: it did not end"
                os.kill(int(self.text("guard")), signal.SIGKILL)
            self.equal(code, 124, "2^30 descriptors allowed, no close_range(): "
                       "run ends by --at-most")
        os.set_blocking(reader, False)
        self.equal(os.read(reader, 1), b"", "and the caller's pipe is closed")
        os.close(reader)

    def masks(self, words, ignored, blocked):
        def begin():
            for signo in ignored:
                signal.signal(signo, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, blocked)

        # pylint: disable=subprocess-popen-preexec-fn
        lines = subprocess.run(
            [*words, "cat", "/proc/self/status"], preexec_fn=begin,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
            check=False).stdout.decode().splitlines()
        return [line for line in lines if line.startswith(MASKS)]

    def signals(self):
        sets = [("none", [])] + [(one.name, [one]) for one in SIGNALS] + \
            [("all", SIGNALS)]
        for name, some in sets:
            for how, ignored, blocked in (
                    ("ignored", some, []), ("blocked", [], some)):
                wanted = self.masks([], ignored, blocked)
                got = self.masks([self.program, "run", "k", "--"], ignored,
                                 blocked)
                self.check(len(got) == 3 and got == wanted,
                           f"{how}: {name}", f"{got}\n{wanted}")


if __name__ == "__main__":
    sys.exit(play(Room, Room.closed_descriptors, Room.loses_in_silence,
                  Room.many_descriptors, Room.signals, more=["no_close_range"]))
