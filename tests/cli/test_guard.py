#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_guard.py NXLOCK: nothing of a command runs when the next holder begins.

The command is deaf to TERM; so are what it starts in the background and what
it starts in a session of its own (setsid). Whatever is done to nxlock, to its
guard and to the server, the last line of all of them is earlier than the
first one of a second nxlock, which waits for the same name.
"""

import functools
import os
import shutil
import signal
import subprocess
import sys
import time

from rig import Cases, Server, await_, clean_environment, play
from pauses import Pauses, now_ns
from terminal import gone, parent, state

TTL, GRACE = 3.0, 0.5
SLACK = 1.5  # of a machine that is busy with other things
TRIES = 3
OPTIONS = ["--ttl", "3s", "--grace", "500ms"]

# FOLDER: appends the time to the file log there; ends with the folder.
WRITER = """trap '' TERM HUP INT
echo $$ >> "$1/pids"
while [ -d "$1" ]; do date +%s%N >> "$1/log"; sleep .1; done
"""
FIRST = """trap '' TERM HUP INT
echo "$NXLOCK_FENCE" > "$1/fence"
sh "$1/writer" "$1" &
setsid sh "$1/writer" "$1" &
(setsid sh "$1/writer" "$1" &) &
echo $$ > "$1/new"; mv "$1/new" "$1/first"
sh "$1/writer" "$1"
"""
SECOND = """date +%s%N > "$1/began"
echo "$NXLOCK_FENCE" > "$1/next"
"""
WRITERS = 4


# FOLDER COUNT: so many, each the child of the one before and in a session of
# its own; the last one of them does what the command is.
CHAIN = """import os, signal, sys
for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(signo, signal.SIG_IGN)
for _ in range(int(sys.argv[2])):
    if os.fork() != 0:
        while True:
            signal.pause()
    os.setsid()
os.execvp("sh", ["sh", sys.argv[1] + "/one", sys.argv[1]])
"""
DEEP = 300 if os.environ.get("NXLOCK_FULL") else 60
# FOLDER: one that leaves the group, and writes for some seconds; and the guard
# is killed.
STRAY = """setsid sh -c '
    trap "" TERM
    for i in $(seq 40); do date +%s%N >> "$0/log"; sleep .1; done' "$1" \\
    2> /dev/null &
until [ -e "$1/log" ]; do sleep .05; done
kill -KILL "$PPID"
sleep 30
"""


class Trial:
    """A first and a second nxlock on a server of their own."""

    def __init__(self, tap, query="", depth=None):
        self.depth, self.query = depth, query
        self.nxlock, self.tap = tap.program, tap
        self.options = OPTIONS

    def __enter__(self):
        self.server = Server().__enter__()
        clean_environment(self.server)
        os.environ["NXLOCK_URL"] += self.query
        for name, text in (("writer", WRITER), ("one", FIRST),
                           ("two", SECOND), ("chain", CHAIN)):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write(text)
        self.first = self.run("one", self.depth)
        self.good = self.tap.check(
            await_(lambda: self.has("first") and self.has("log") and
                   len(self.lines("pids")) == WRITERS, 30),
            "a command and its descendants write")
        if self.good:
            self.command = int(self.lines("first")[0])
            self.guard = parent(self.command)
            while parent(self.guard) != self.first.pid:
                self.guard = parent(self.guard)
        self.second = self.run("two")
        return self

    def __exit__(self, *_):
        for process in (self.first, self.second):
            process.kill()
            process.wait()
        for pid in self.lines("pids") if self.has("pids") else []:
            if not gone(int(pid)):
                os.kill(int(pid), signal.SIGKILL)
        self.server.__exit__()

    def path(self, name):
        return os.path.join(self.server.folder, name)

    def has(self, name):
        return os.path.exists(self.path(name))

    def lines(self, name):
        if not self.has(name):
            return []
        with open(self.path(name), encoding="ascii") as file:
            return file.read().split()

    def run(self, script, depth=None):
        words = ["sh", self.path(script), self.server.folder]
        if depth is not None:
            words = [sys.executable, self.path("chain"), self.server.folder,
                     str(depth)]
        with open(self.path(script + ".said"), "wb") as said:
            return subprocess.Popen(
                [self.nxlock, "run", "k", *self.options, "--", *words],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=said)

    def said(self, script="one"):
        with open(self.path(script + ".said"), encoding="utf-8") as file:
            return file.read()

    def all_gone(self):
        return all(gone(int(pid)) for pid in self.lines("pids"))

    def ends(self):
        self.tap.check(await_(self.all_gone, TTL + SLACK * 4),
                       "all of them are stopped", self.said())

    @functools.cached_property
    def left_s(self):
        """How long before the second one's begin the last line was."""
        await_(lambda: len(self.lines("next")) == 1, 60)
        time.sleep(0.3)  # in which a survivor would write
        began = int((self.lines("began") or [0])[0])
        return (began - max(map(int, self.lines("log")))) / 1e9

    def is_in_order(self, what):
        """The second one begins, and the first one's are silent then."""
        left_s = self.left_s
        if self.tap.check(len(self.lines("next")) == 1,
                          f"{what}: the next holder begins", self.said("two")):
            self.tap.excludes(left_s > 0, f"{what}: the last line is "
                              f"{left_s:.3f} s before the next holder's first",
                              self.said() + self.said("two"))
        old, new = self.lines("fence"), self.lines("next")
        self.tap.excludes(old and new and int(new[0]) > int(old[0]),
                          "whose number is higher", f"{old} {new}")

    def code_is(self, wanted, name):
        await_(lambda: self.first.poll() is not None)
        self.tap.equal(self.first.poll(), wanted, name)


def wrapper_killed(tap):
    with Trial(tap) as trial:
        trial.first.kill()
        trial.ends()
        trial.is_in_order("KILL to nxlock")


def in_order(tap, what, strike, after=lambda trial: None):
    """The guard has a third of a second. If the machine pauses for about as
    long, it is tried again."""
    pauses = Pauses()
    for more in reversed(range(TRIES)):
        began = now_ns()
        with Trial(tap) as trial:
            strike(trial)
            trial.ends()
            if more and -SLACK < trial.left_s < 0 and \
                    pauses.within(began, now_ns()) > 0:
                print(f"# {what}: {trial.left_s:.3f} s; the machine paused")
                continue
            trial.is_in_order(what)
            after(trial)
            break


def wrapper_stopped(tap):
    def goes_on(trial):
        trial.first.send_signal(signal.SIGCONT)
        trial.code_is(79, "which says so when it goes on")

    in_order(tap, "STOP to nxlock",
             lambda trial: trial.first.send_signal(signal.SIGSTOP), goes_on)


def guard_killed(tap):
    with Trial(tap) as trial:
        os.kill(trial.guard, signal.SIGKILL)
        trial.ends()
        trial.is_in_order("KILL to the guard")
        trial.code_is(79, "is told by the code")
        tap.check("the watchdog of sh was killed" in trial.said(), "and said",
                  trial.said())


def guard_stopped(tap):
    with Trial(tap) as trial:
        os.kill(trial.guard, signal.SIGSTOP)
        trial.server.freeze()
        trial.ends()
        trial.server.thaw()
        trial.is_in_order("STOP to the guard, and to the server")
        trial.code_is(79, "is told by the code")


def guard_late(tap):
    """Both are frozen, and the guard is back with less than a grace left."""
    def strike(trial):
        trial.first.send_signal(signal.SIGSTOP)
        os.kill(trial.guard, signal.SIGSTOP)
        await_(lambda: int(trial.server.cli("PTTL", "k")) < GRACE * 800)
        os.kill(trial.guard, signal.SIGCONT)

    in_order(tap, "a guard that is late", strike)


def both_killed(tap):
    """Then nobody is there who looks for the rest; only the fence helps."""
    with Trial(tap) as trial:
        trial.first.send_signal(signal.SIGSTOP)
        os.kill(trial.guard, signal.SIGKILL)
        trial.first.kill()
        tap.check(await_(lambda: gone(trial.command), TTL),
                  "KILL to nxlock and its guard: CMD itself is killed")


def server_stopped(tap):
    with Trial(tap) as trial:
        trial.server.freeze()
        trial.ends()
        trial.server.thaw()
        trial.is_in_order("STOP to the server")
        trial.code_is(79, "is told by the code")


def server_killed(tap):
    """It is back at once and has forgotten all; so it has no vote yet."""
    with Trial(tap,
               query="?guard_restarts=on&max_ttl_ms=3000") as trial:
        trial.server.restart()
        trial.ends()
        trial.is_in_order("KILL to the server")
        trial.code_is(79, "is told by the code")


def taken_away(tap, what, take):
    """A machine that pauses may stop it late, but not each time."""
    limit = TTL / 3 + GRACE + 0.25 + SLACK
    for _ in range(TRIES):
        took = taken_away_once(tap, what, take)
        print(f"# {what}: the last line comes {took:.2f} s later")
        if took < limit:
            break
    tap.check(took < limit, f"{what}: the last line comes within {limit} s")


def taken_away_once(tap, what, take):
    with Trial(tap) as trial:
        trial.second.kill()  # it would not wait for anybody
        trial.second.wait()
        take(trial)
        start = time.time_ns()
        trial.ends()
        took = (int(trial.lines("log")[-1]) - start) / 1e9
        trial.code_is(79, "is told by the code")
        trial.second = trial.run("two")
        trial.is_in_order("and a next holder")
        return took


def key_deleted(tap):
    taken_away(tap, "the key deleted",
               lambda trial: trial.server.cli("DEL", "k"))


def forced(tap):
    taken_away(tap, "unlock --force", lambda trial: subprocess.run(
        [tap.program, "unlock", "k", "--force", "--yes"], check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60))


def deep(tap):
    """To kill one generation after the other would take too long."""
    with Trial(tap, depth=DEEP) as trial:
        trial.server.freeze()
        trial.ends()
        trial.server.thaw()
        trial.is_in_order(f"{DEEP} generations")
        trial.code_is(79, "is told by the code")


def deep_without_guard(tap):
    with Trial(tap, depth=DEEP) as trial:
        os.kill(trial.guard, signal.SIGKILL)
        trial.ends()
        trial.is_in_order(f"KILL to the guard of {DEEP} generations")
        trial.code_is(79, "is told by the code")


def stops_unread(tap):
    """Of a frozen nxlock, more often than a socket can hold."""
    with Server() as server:
        clean_environment(server)
        pid = os.path.join(server.folder, "pid")
        end = os.path.join(server.folder, "end")
        with subprocess.Popen(
                [tap.program, "run", "k", "--ttl", "10m", "--", "sh", "-c",
                 'echo $$ > "$0.new"; mv "$0.new" "$0"; '
                 'until [ -e "$1" ]; do sleep .05; done; exit 7', pid, end],
                stdin=subprocess.DEVNULL) as first:
            await_(lambda: os.path.exists(pid), 30)
            with open(pid, encoding="ascii") as file:
                command = int(file.read())
            first.send_signal(signal.SIGSTOP)
            for _ in range(500):
                os.kill(command, signal.SIGSTOP)
                await_(lambda: state(command) == "T")
                os.kill(command, signal.SIGCONT)
                await_(lambda: state(command) != "T")
            with open(end, "wb"):
                await_(lambda: gone(command))
            tap.check(gone(command),
                      "a command ends while nxlock is frozen")
            first.send_signal(signal.SIGCONT)
            tap.check(await_(lambda: first.poll() is not None, 30),
                      "which ends when it goes on")
            tap.equal(first.poll(), 7, "with the code of the command")
            first.kill()


def may_run(words):
    """Also a sanitizer may want /proc."""
    return shutil.which("unshare") is not None and subprocess.run(
        words, check=False, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        timeout=60).returncode == 0


def without_proc(tap, what, words):
    """A stray one cannot be found, so the lock is kept until it ends."""
    # The loader cannot know where the program is ($ORIGIN).
    library = os.path.dirname(os.path.dirname(tap.program))
    words = ["env", f"LD_LIBRARY_PATH={library}", *words]
    if not may_run([*words, tap.program, "--version"]):
        print(f"# {what}: NOT TESTED, unshare is not permitted here")
        tap.check(True, f"{what} # SKIP unshare is not permitted")
        return
    with Server() as server:
        clean_environment(server)
        stray = os.path.join(server.folder, "stray")
        with open(stray, "w", encoding="ascii") as file:
            file.write(STRAY)
        done = subprocess.run(
            [*words, tap.program, "run", "k", *OPTIONS, "--", "sh", stray,
             server.folder], check=False, timeout=60,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = done.stderr.decode()
        log = os.path.join(server.folder, "log")
        lines = 0
        if tap.check(os.path.exists(log), f"{what}: a stray one runs", said):
            with open(log, encoding="ascii") as file:
                lines = len(file.read().split())
        tap.equal(lines, 40, "nxlock waits for its end")
        tap.equal(done.returncode, 79, "KILL to the guard is told by the code")
        tap.equal(said.count("warning: /proc does not show"), 1,
                  "that it would not be stopped is said")
        tap.equal(said.count("cannot find what sh has left"), 1,
                  "and that it is waited for, once")


def proc_empty(tap):
    without_proc(tap, "no /proc", [
        "unshare", "-r", "-m", "sh", "-c",
        'mount -t tmpfs none /proc && exec "$@"', "sh"])


def proc_of_others(tap):
    without_proc(tap, "the /proc of another pid namespace", [
        "unshare", "-r", "-p", "-f"])


if __name__ == "__main__":
    sys.exit(play(Cases, wrapper_killed, wrapper_stopped, guard_killed,
                  guard_stopped, guard_late, both_killed, server_stopped,
                  server_killed, key_deleted, forced, deep,
                  deep_without_guard, stops_unread, proc_empty, proc_of_others))
