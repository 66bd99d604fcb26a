#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_keyboard.py NXLOCK: a job at a terminal with a person before it.

Whoever has the terminal, and whatever its keys do: nxlock is not stopped
while CMD goes on, and CMD does not outlive the lease.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys

from rig import Cases, await_, nx, play
from terminal import (CTRL_BACKSLASH, CTRL_C, CTRL_Z, Terminal, gone,
                      is_pending, parent, state)

SHELL = ["bash", "--norc", "--noprofile", "--noediting", "-i"]

# Each ends, at the latest, with the room's folder, which is its directory.
LOOP = """echo $$ > new; mv new pid
while [ -e pid ]; do echo tick; sleep 0.05; done
"""
DEAF = "trap '' TERM HUP; " + LOOP
# A pager: it reads keys from the terminal, once there is something to show.
PAGER = """until [ -e pid ]; do sleep 0.02; done
read -r x < /dev/tty && echo "$x" > got
read -r x < /dev/tty
"""
# As ssh asks for a password: no echo, and the terminal by its own name.
ASKS = """echo $$ > new; mv new pid
stty -echo < /dev/tty; read -r x < /dev/tty; stty echo < /dev/tty
echo "$x" > got
"""
# The same, but not before it is let.
LATER = """echo $$ > new; mv new pid
until [ -e ask ]; do sleep 0.02; done
""" + ASKS
# Goes on after TERM, and asks again: with cat, which TERM does end.
INSISTS = """trap ': > term' TERM
echo $$ > new; mv new pid
while [ -e pid ]; do cat /dev/tty > got; done
"""
# Is inside write() nearly all the time.
# yes(1) leaves no room to others, on some kernels for ever.
FLOODS = """echo $$ > new; mv new pid
while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done
"""
ITSELF = """echo $$ > new; mv new pid
until [ -e ask ]; do sleep 0.02; done
kill -INT $$
"""
HANDLES = "trap 'exit 3' INT; " + LOOP


class Room(Cases):
    cmd = own = None  # the present CMD's number, and its nxlock's

    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # QUIT leaves one
        os.environ.update(HISTFILE="/dev/null", TERM="dumb")
        for name, text in (("loop", LOOP), ("deaf", DEAF), ("pager", PAGER),
                           ("asks", ASKS), ("later", LATER),
                           ("insists", INSISTS), ("handles", HANDLES),
                           ("floods", FLOODS), ("itself", ITSELF)):
            self.write(name, text)

    def clear(self):
        """A clean folder and a free lock."""
        self.remove("pid", "got", "code", "after", "back", "ask", "term",
                    "shown")
        self.server.cli("DEL", "k")

    def at(self, command, **more):
        self.clear()
        return Terminal(command, cwd=self.server.folder, **more)

    def run(self, *options, cmd="loop", shell="sh"):
        return " ".join([f"'{self.program}' run k", *options, "--", shell, cmd])

    def started(self, name):
        """Awaits CMD and learns who it is."""
        if not self.check(await_(lambda: self.has("pid")), name):
            return False
        self.cmd = int(self.text("pid").strip())
        self.own = parent(parent(self.cmd))  # the guard is between them
        return True

    def renewals(self):
        return self.calls("pexpire")

    def is_renewed(self, name):
        """For longer than the lease, which is three renewals."""
        before = self.renewals()
        self.check(await_(lambda: self.renewals() >= before + 4), name,
                   f"nxlock: {state(self.own)}, CMD: {state(self.cmd)}")

    def ends_in_time(self, name):
        """Within 1.5 s, the lease, after the key was deleted; and some."""
        self.check(await_(lambda: gone(self.cmd), 3), name,
                   f"nxlock: {state(self.own)}, CMD: {state(self.cmd)}")

    def code_is(self, wanted, name, terminal):
        await_(lambda: self.has("code"))
        got = self.text("code").strip() if self.has("code") else terminal.text()
        self.equal(got, str(wanted), name)

    def ends_the_script(self, terminal, keys, signo=signal.SIGINT):
        """These keys do, by that signal."""
        terminal.type(keys)
        self.check(await_(lambda: terminal.leader.poll() is not None),
                   "ends the script")
        self.equal(terminal.leader.poll(), -signo, "by that signal")
        self.check(not self.has("after"), "it does not go on")

    def all_is_over(self):
        self.check(await_(lambda: gone(self.cmd)), "CMD is gone")
        self.check(self.is_free("k"), "and the lock is free")

    def script_goes_on(self, script, code):
        """After CMD, which ends so."""
        self.check(await_(lambda: script.poll() is not None), "ends it")
        self.check(self.has("after") and self.text("after") == f"{code}\n",
                   "and the script goes on", self.has("after") and
                   self.text("after"))
        self.check(self.is_free("k"), "and the lock is free")

    def pager(self):
        with self.at(SHELL) as terminal:
            terminal.type(b"set -o pipefail\n" + self.run(
                "--ttl 1500ms").encode() +
                b" | sh pager > shown; echo $? > new; mv new code\n")
            if not self.started("a job of two, the second one a pager"):
                return
            key = self.server.cli("GET", "k")
            terminal.type(b"word\n")
            self.check(await_(lambda: self.has("got")),
                       "the pager reads its keys", terminal.text())
            self.check(state(self.own) != "T", "nxlock is not stopped")
            self.is_renewed("and renews the lease")
            self.equal(nx(self.program, "run", "k", "-n", "--", "true")
                       .returncode, 75, "a second one is told busy")
            self.equal(self.server.cli("GET", "k"), key,
                       "for the key is the first one's still")
            self.server.cli("DEL", "k")
            self.ends_in_time("CMD ends when the lock is lost")
            terminal.type(b"q\n")
            self.code_is(79, "and the job says so", terminal)

    def tostop(self):
        for cmd in ("loop", "deaf"):
            with self.at(SHELL) as terminal:
                terminal.type(b"stty tostop\n" + self.run(
                    "--ttl 1500ms", cmd=cmd).encode() +
                    b"; echo $? > new; mv new code\n")
                if not self.started(f"stty tostop, {cmd}"):
                    return
                self.check(
                    await_(lambda: terminal.foreground() == self.cmd),
                    "CMD has the terminal")
                self.server.cli("DEL", "k")
                self.ends_in_time("CMD ends when the lock is lost")
                self.code_is(79, "nxlock was not stopped by its own message",
                             terminal)
                self.check(await_(lambda: b"nxlock: lost 'k'" in
                                      terminal.screen),
                               "which was shown", terminal.text())

    def flooded(self):
        """A terminal that CMD is writing to takes lines nevertheless."""
        with self.at(["sh", "-c", self.run("-v --ttl 1500ms", cmd="floods")]
                     ) as terminal:
            if not self.started("CMD that writes all the time"):
                return
            end = self.renewals() + 60
            await_(lambda: b"nxlock: renewed" in terminal.screen or
                   self.renewals() >= end)
            self.check(b"nxlock: renewed" in terminal.screen,
                       "does not keep nxlock from reporting")
            os.kill(self.cmd, signal.SIGKILL)
            await_(lambda: terminal.leader.poll() is not None)

    def asked(self):
        with self.at(SHELL) as terminal:
            terminal.type(b": | " + self.run(cmd="asks").encode() +
                          b"; echo $? > new; mv new code\n")
            if not self.started("CMD asks at /dev/tty, with a pipe as input"):
                return
            self.check(await_(lambda: terminal.foreground() == self.cmd),
                       "it is given the terminal", terminal.text())
            terminal.type(b"secret\n")
            self.check(await_(lambda: self.has("got")),
                       "and reads the answer", terminal.text())
            self.code_is(0, "and ends", terminal)
            terminal.type(b"read x; echo $x > new; mv new back\nagain\n")
            self.check(await_(lambda: self.has("back")),
                       "the shell has the terminal back", terminal.text())

    def at_anothers(self, cmd):
        """CMD is stopped by a terminal that belongs to a third group, and
        nxlock, in the leader's group, cannot be."""

        def give_away(tty):
            other = os.fork()
            if other == 0:
                os.setpgid(0, 0)
                os.execvp("sleep", ["sleep", "60"])
            with contextlib.suppress(PermissionError):  # it runs sleep already
                os.setpgid(other, other)
            os.tcsetpgrp(tty, other)

        return self.at([self.program, "run", "k", "--", "sh", cmd],
                       before=give_away, stdin=subprocess.DEVNULL)

    def stopped(self):
        with self.at_anothers("asks") as terminal:
            if not self.started("CMD that wants the terminal of others"):
                return
            self.check(await_(lambda: state(self.cmd) == "T"),
                       "is stopped by it")
            terminal.leader.terminate()
            self.check(await_(lambda: terminal.leader.poll() is not None),
                       "TERM to nxlock ends it", state(self.cmd))
            self.equal(terminal.leader.poll(), 143, "with its code")
            self.check(gone(self.cmd), "CMD is gone")
            self.check(self.is_free("k"), "and the lock is free")

    def stopped_again(self):
        """What CMD does after TERM is its own matter; a stop is one."""
        with self.at_anothers("insists") as terminal:
            if not self.started("CMD that asks again after TERM"):
                return
            for which in ("first", "second"):
                self.check(await_(lambda: state(self.cmd) == "T"),
                           "is stopped by the terminal")
                terminal.leader.terminate()
                self.check(await_(lambda: self.has("term")),
                           f"the {which} TERM reaches it", state(self.cmd))
                os.unlink(self.path("term"))
            self.check(await_(lambda: state(self.cmd) == "T"),
                       "and is no more than passed on")
            self.check(terminal.leader.poll() is None and not self.is_free("k"),
                       "so nxlock and the lock stay")
            os.unlink(self.path("pid"))
            terminal.leader.terminate()
            self.check(await_(lambda: terminal.leader.poll() is not None),
                       "until it has ended", state(self.cmd))

    def ends_while_stopped(self, own):
        """TERM to nxlock, before that hears that CMD is stopped."""
        guard = parent(self.cmd)
        os.kill(guard, signal.SIGSTOP)
        self.write("ask")
        self.check(await_(lambda: state(self.cmd) == "T"),
                   "CMD is stopped, and the guard has not told it")
        os.kill(own, signal.SIGTERM)
        self.check(await_(lambda: not is_pending(own, signal.SIGTERM)),
                   "TERM has reached nxlock", state(own))
        os.kill(guard, signal.SIGCONT)
        self.check(await_(lambda: gone(self.cmd)), "and ends CMD",
                   state(self.cmd))
        self.check(await_(lambda: gone(own)), "and nxlock", state(own))
        self.check(self.is_free("k"), "and the lock is free")

    def stopped_and_ended(self):
        """Without job control, and with it."""
        with self.at_anothers("later") as terminal:
            if not self.started("TERM overtakes the news of a stop"):
                return
            self.ends_while_stopped(self.own)
            self.check(await_(lambda: terminal.leader.poll() == 143),
                       "with its code")
        with self.at(SHELL) as terminal:
            terminal.type(self.run(cmd="later").encode() + b" &\n")
            if not self.started("the same to a job in the background"):
                return
            self.ends_while_stopped(self.own)

    def interrupted(self):
        for shell, keys, signo in (  # no bash is ended by QUIT
                ("bash", CTRL_C, signal.SIGINT),
                ("sh", CTRL_C, signal.SIGINT),
                ("sh", CTRL_BACKSLASH, signal.SIGQUIT)):
            script = self.run() + "; echo > after"
            with self.at([shell, "-c", script]) as terminal:
                if not self.started(f"a script of {shell}, {signo.name}"):
                    return
                await_(lambda: terminal.foreground() == self.cmd)
                self.ends_the_script(terminal, keys, signo)
                self.all_is_over()
        script = self.run(cmd="handles") + "; echo $? > after"
        with self.at(["bash", "-c", script]) as terminal:
            if not self.started("CMD that takes Ctrl-C for an order"):
                return
            await_(lambda: terminal.foreground() == self.cmd)
            terminal.type(CTRL_C)
            self.script_goes_on(terminal.leader, 3)

    def interrupted_elsewhere(self):
        """The terminal is with the script: CMD's output or input is not
        it, or nothing runs yet."""
        for what, more in (("output in a file", " > shown"),
                           ("a pipe", " | cat > shown"),
                           ("no input", " < /dev/null")):
            script = self.run() + more + "; echo > after"
            with self.at(["bash", "-c", script]) as terminal:
                if not self.started(f"a script, {what}, and Ctrl-C"):
                    return
                # The second one of the pipe is more than a fork of bash by now.
                await_(lambda: "shown" not in more or self.text("shown"))
                self.ends_the_script(terminal, CTRL_C)
                self.all_is_over()
        for command in (f"'{self.program}' run k -- true",
                        f"'{self.program}' acquire k"):
            with self.at(["bash", "-c", f"sleep 0.2; {command}; echo > after"]
                         ) as terminal:
                self.server.cli("SET", "k", "stranger", "PX", "600000")
                self.check(await_(lambda: b"waiting for" in terminal.screen),
                           "a script that waits, and Ctrl-C")
                self.ends_the_script(terminal, CTRL_C)

    def not_the_keyboard(self):
        self.clear()
        with subprocess.Popen(
                ["bash", "-c", self.run() + "; echo $? > after"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                start_new_session=True, cwd=self.server.folder) as script:
            if not self.started("a script without a terminal, INT to CMD"):
                script.kill()
                return
            os.kill(self.cmd, signal.SIGINT)
            self.script_goes_on(script, 130)
        for what, cmd, signo in (
                ("by its own hand", "itself", None),
                ("by somebody", "loop", lambda: self.cmd),
                ("by somebody to nxlock", "loop", lambda: self.own)):
            script = self.run(cmd=cmd) + "; echo $? > after"
            with self.at(["bash", "-c", script]) as terminal:
                if not self.started(f"CMD with the terminal, INT {what}"):
                    return
                await_(lambda: terminal.foreground() == self.cmd)
                if signo:
                    os.kill(signo(), signal.SIGINT)
                else:
                    self.write("ask")
                self.script_goes_on(terminal.leader, 130)

    def interrupted_within(self):
        """nxlock within nxlock: Ctrl-C ends the script around both."""
        script = (f"'{self.program}' run outer -- " + self.run() +
                  "; echo > after")
        with self.at(["bash", "-c", script]) as terminal:
            if not self.started("a run within a run, and Ctrl-C"):
                return
            await_(lambda: terminal.foreground() == self.cmd)
            self.ends_the_script(terminal, CTRL_C)

    def suspended(self):
        # Not dash: it uses vfork(), and whose child is stopped before it has
        # become the other program is itself not stopped by the keyboard.
        with self.at(SHELL) as terminal:
            terminal.type(self.run("--ttl 1500ms", shell="bash").encode() +
                          b"; echo $? > new; mv new code\n")
            if not self.started("Ctrl-Z"):
                return
            await_(lambda: terminal.foreground() == self.cmd)
            terminal.type(CTRL_Z)
            self.check(await_(lambda: state(self.cmd) == "T" and
                       state(self.own) == "T"),
                "stops CMD, and nxlock with it")
            terminal.type(b"fg\n")
            self.check(await_(lambda: terminal.foreground() == self.cmd and
                       state(self.cmd) != "T"),
                "fg continues both", terminal.text())
            self.is_renewed("and the lease is renewed")
            if self.has("code"):  # of the list that Ctrl-Z cut short
                os.unlink(self.path("code"))
            terminal.type(CTRL_Z)
            self.check(await_(lambda: self.is_free("k")),
                       "a stop longer than the lease")
            terminal.type(b"fg; echo $? > new; mv new code\n")
            self.ends_in_time("fg after that ends CMD")
            self.code_is(79, "and the loss is told", terminal)
            told = await_(lambda: "could not be renewed in time; stopping" in
                          terminal.text())
            said = terminal.text()
            self.check(told and "watchdog does not respond" not in said,
                       "without blame for the guard, which did it", said)


if __name__ == "__main__":
    sys.exit(play(Room, Room.pager, Room.tostop, Room.flooded, Room.asked,
                  Room.stopped, Room.stopped_again, Room.stopped_and_ended,
                  Room.interrupted, Room.interrupted_elsewhere,
                  Room.not_the_keyboard, Room.interrupted_within,
                  Room.suspended))
