#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_signals.py NXLOCK: a signal that ends a wait, at any moment up to the
grant and with it, keeps CMD from being started; later it is CMD's, with all of
its process group. Whatever ends nxlock, no lock stays.
"""

import random
import signal
import sys
import time
from signal import SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2

from rig import Cases, await_, play
from terminal import gone, state

# All others that would end nxlock are treated as these are.
SIGNALS = (SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, signal.SIGALRM,
           signal.SIGXCPU, signal.SIGVTALRM, signal.SIGIO, signal.SIGRTMIN,
           signal.SIGRTMAX)
LOOP = "while [ -e wait ]; do sleep 0.05; done"
# CMD that notes the signal $0, once for each time, and ends.
HANDLES = f"""exec 2> /dev/null; trap 'echo $0 >> got; exit 5' $0
: > ready; {LOOP}"""
# CMD with a child, whose numbers it notes.
FAMILY = f"""env --default-signal=INT,HUP,QUIT sh -c '{LOOP}' &
echo $$ $! > new; mv new family; wait"""
DEAF = f"trap '' TERM; : > ready; {LOOP}; exit 6"
ROUNDS = 120


class Room(Cases):
    def launch_here(self, *words):
        self.remove("started", "ready", "got", "family", "began", "done")
        self.write("wait")
        return self.launch(*words, cwd=self.server.folder)

    def not_started(self, given):
        self.check(not self.has("started") and self.is_free("w"),
                   f"{given}: CMD is not started, and the lock is free")

    def while_waiting(self):
        run = ("run", "w", "--", "touch", "started")
        for signo, words in (*((signo, run) for signo in (*SIGNALS, SIGKILL)),
                             (SIGTERM, ("acquire", "w")),
                             (SIGTERM, ("wait", "w"))):
            self.server.cli("SET", "w", "stranger", "PX", "100000")
            before = self.attempts()
            waiter = self.launch_here(*words)
            await_(lambda: self.attempts() > before)
            waiter.send(signo)
            given = f"{signo.name} while {words[0]} waits"
            # KILL, and for wait any signal, ends nxlock without a word of it.
            waiter.gives(given, -signo if signo == SIGKILL or
                         words[0] == "wait" else 128 + signo)
            self.equal(self.server.cli("GET", "w"), b"stranger\n",
                       f"{given}: the holder's key stays")
            self.server.cli("DEL", "w")
            self.not_started(given)
        waiter = self.launch_here("run", "w", "-u", f"unix://{self.path('no')}",
                                  "--", "touch", "started")
        await_(waiter.handles_signals)
        waiter.send(SIGTERM)
        waiter.gives("TERM during a wait for a server", 128 + SIGTERM)
        self.not_started("TERM during a wait for a server")

    # ------------------------------------------------------- with the grant

    def asked_in_a_pause(self, *words):
        """Launched; its request is at the server, which does not answer."""
        self.server.cli("CLIENT", "PAUSE", "60000", "WRITE")
        run = self.launch_here(*words)
        self.check(await_(lambda: b"flags=b" in self.server.cli(
            "CLIENT", "LIST")), "a request is at the server, unanswered")
        return run

    def before_the_grant(self):
        for signo in SIGTERM, SIGINT, SIGHUP:
            run = self.asked_in_a_pause("run", "w", "-w", "10s", "--", "touch",
                                        "started")
            given = f"{signo.name} while the request is unanswered"
            run.send(signo)
            began = time.monotonic()
            run.gives(given, 128 + signo)
            took = time.monotonic() - began
            self.check(took < 5, f"{given}: long before the end of -w", took)
            self.server.cli("CLIENT", "UNPAUSE")
            self.check(await_(lambda: self.is_free("w")),
                       f"{given}: nothing is granted afterwards")
            self.not_started(given)

    def with_the_grant(self):
        """Stopped, nxlock has the grant and the signal to read when it goes
        on."""
        run = ("run", "w", "--", "touch", "started")
        for signo, words in (*((signo, run) for signo in (
                SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2)),
                             (SIGTERM, ("acquire", "w"))):
            one = self.asked_in_a_pause(*words)
            one.send(signal.SIGSTOP)
            await_(lambda: state(one.pid) == "T")
            self.server.cli("CLIENT", "UNPAUSE")
            given = f"{signo.name} with the grant of {words[0]}"
            self.check(await_(lambda: not self.is_free("w")),
                       f"{given}: the lock is granted")
            one.send(signo)
            one.send(signal.SIGCONT)
            one.gives(given, 128 + signo)
            self.not_started(given)

    def at_any_moment(self):
        """Between the start of nxlock and the end of CMD, which notes how far
        it got: each third in CMD, when nxlock handles signals, or at random."""
        wrong, early = [], 0
        for number in range(ROUNDS):
            run = self.launch_here("run", "w", "--", "sh", "-c",
                                   ": > began; : > done")
            if number % 3 == 0:
                while not self.has("began") and run.is_running():
                    pass
            elif number % 3 == 1:
                while run.is_running() and not self.watched(run):
                    pass
            else:
                time.sleep(random.random() * 0.02)
            run.send(SIGTERM)
            code, _, err = run.ends()
            done = self.has("done")
            early += not done
            # Before nxlock has its handlers, TERM ends it at once.
            good = (0, 143) if done else (143, -15)
            if code not in good or err or not self.is_free("w"):
                wrong.append(f"round {number}: {code}, CMD ended: {done}; "
                             f"{err}")
        self.check(not wrong, f"TERM at any moment, {ROUNDS} times",
                   "\n".join(wrong))
        self.check(early > 0, "some came before the end of CMD")

    @staticmethod
    def watched(run):
        try:
            return run.handles_signals()
        except FileNotFoundError:  # it has ended
            return False

    # --------------------------------------------------------- while CMD runs

    def passed_on(self):
        for signo in (*SIGNALS, signal.SIGCONT, signal.SIGWINCH):
            run = self.launch_here("run", "w", "--", "sh", "-c", HANDLES,
                                   str(int(signo)))
            await_(lambda: self.has("ready"))
            run.send(signo)
            given = f"{signo.name} while CMD runs"
            run.gives(given, 5)
            self.equal(self.text("got"), f"{int(signo)}\n",
                       f"{given}: CMD gets it, once")
            self.not_started(given)

    def family(self, *options):
        """A run whose CMD has a child, and the numbers of these two."""
        run = self.launch_here("run", "w", *options, "--", "sh", "-c", FAMILY)
        self.check(await_(lambda: self.has("family")) and
                   not self.is_free("w"), "CMD with a child, under a lock")
        return run, list(map(int, self.text("family").split()))

    def are_gone(self, given, pids):
        self.check(await_(lambda: all(map(gone, pids))),
                   f"{given}: CMD and its child are gone")

    def ended(self):
        for signo in (SIGTERM, SIGINT, SIGHUP, SIGQUIT, *SIGNALS[6:11]):
            run, pids = self.family()
            run.send(signo)
            given = f"{signo.name}, which CMD does not handle"
            # Its child may be a moment behind, which is reported then.
            self.equal(run.ends()[0], 128 + signo, f"{given}: the exit code")
            self.not_started(given)
            self.are_gone(given, pids)

    def killed(self):
        run, pids = self.family("--ttl", "2s")
        # A key that ends a little before the lease does.
        left = int(self.server.cli("PTTL", "w"))
        self.server.cli("SET", "before", "x", "PX", str(left - 500))
        began = time.monotonic()
        run.send(SIGKILL)
        code, _, _ = run.ends()
        self.equal(code, -SIGKILL, "KILL to nxlock")
        self.gives("KILL to nxlock, the next one", "run w -w 10s -- true", 0)
        took = time.monotonic() - began
        self.check(self.is_free("before") and took < 10,
                   "KILL to nxlock: the next one runs after the lease", took)
        self.are_gone("KILL to nxlock", pids)

    def deaf(self):
        """A CMD that goes on after TERM goes on under the lock."""
        run = self.launch_here("run", "w", "--ttl", "3s", "--", "sh", "-c",
                               DEAF)
        await_(lambda: self.has("ready"))
        run.send(SIGTERM)
        before = self.calls("pexpire")
        self.check(await_(lambda: self.calls("pexpire") >= before + 2) and
                   not self.is_free("w"),
                   "TERM, and CMD is deaf: its lease is renewed")
        self.remove("wait")
        self.equal(run.ends()[0], 6, "TERM, and CMD is deaf: its code")
        self.not_started("TERM, and CMD is deaf, when it has ended")


def first(room):
    """The server has to know the script: then one request is all it takes."""
    room.gives("a run that nobody disturbs", "run w -- true", 0)


if __name__ == "__main__":
    sys.exit(play(Room, Room.while_waiting, first, Room.before_the_grant,
                  Room.with_the_grant, Room.at_any_moment, Room.passed_on,
                  Room.ended, Room.killed, Room.deaf))
