#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_once.py NXLOCK [PART...]: the command once, every option and code.

What CMD does is counted in a file, so a second run cannot hide behind a code.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is

from rig import Server, Tap, await_, clean_environment, nx
from terminal import CTRL_C, Terminal

MIB = 1 << 20


class Bench:
    """One server, one nxlock, and names that are new each time."""

    def __init__(self, tap, server, nxlock):
        self.tap, self.server, self.nxlock = tap, server, nxlock
        self.count = 0

    def name(self):
        self.count += 1
        return f"w:{self.count}"

    def file(self, name):
        return os.path.join(self.server.folder, name)

    def work(self, name, end="true"):
        """A CMD: notes in a file that it ran, then does that."""
        path = self.file(name.replace(":", "-"))
        return ["--", "sh", "-c", f"echo . >> '{path}'; {end}"]

    def runs(self, name):
        try:
            with open(self.file(name.replace(":", "-")), "rb") as file:
                return len(file.readlines())
        except FileNotFoundError:
            return 0

    def once(self, name, *words, **more):
        return nx(self.nxlock, "once", name, *words, **more)

    def code(self, wanted, what, name, *words, **more):
        """once ends so; what it was."""
        got = self.once(name, *words, **more)
        self.tap.begin(got.returncode == wanted, what,
                       f"{got.returncode}, not {wanted}\n"
                       f"{got.stderr.decode(errors='replace')}")
        return got

    def ran(self, wanted, what, name):
        self.tap.equal(self.runs(name), wanted, what)

    def record(self, name):
        return json.loads(self.once("show", name, "--json").stdout)

    def state(self, name):
        return self.record(name)["state"]

    def waiting(self, name):
        """How many wait in line for its lock."""
        shown = nx(self.nxlock, "status", name, "--json").stdout
        return json.loads(shown)["waiting"]

    def start(self, name, *words, **more):
        return subprocess.Popen(
            [self.nxlock, "once", name, *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def finish(self, process):
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess([], process.returncode, out, err)


# ------------------------------------------------------------------ what ends

def outcomes(b):
    name = b.name()
    work = b.work(name, "echo hello")
    first = b.code(0, "done", name, *work)
    again = b.code(0, "done before", name, *work)
    b.tap.equal((first.stdout, again.stdout), (b"hello\n", b"hello\n"),
                "both print the same")
    b.tap.equal((first.stderr, again.stderr), (b"", b""),
                "neither says anything")
    b.ran(1, "it ran once", name)
    quiet = b.code(0, "-q", name, "-q", *work)
    b.tap.equal(quiet.stdout, b"", "prints nothing again")
    loud = b.code(0, "-v", name, "-v", *work)
    b.tap.check(b"is done: attempt 1 by " in loud.stderr,
                "-v says who did it", loud.stderr)

    name = b.name()
    failed = b.code(1, "exit 1 is passed on", name, *b.work(name, "exit 1"))
    b.tap.check(b"is in doubt" in failed.stderr and
                b"once confirm " in failed.stderr,
                "and says that it is in doubt, and what to do", failed.stderr)
    doubt = b.code(76, "then it is in doubt", name, *b.work(name))
    b.tap.check(b"ended with 1" in doubt.stderr and b"attempt 1 by " in
                doubt.stderr, "which tells how it ended", doubt.stderr)
    b.ran(1, "and does not run again", name)

    name = b.name()
    b.code(128 + 9, "a signal", name, *b.work(name, "kill -9 $$"))
    b.code(76, "is in doubt", name, *b.work(name))
    name = b.name()
    b.code(124, "--at-most", name, "--at-most", "100ms",
           *b.work(name, "sleep 60"))
    b.code(76, "is in doubt", name, *b.work(name))

    name = b.name()
    b.code(127, "no such command", name, "--", b.file("nothing"))
    b.tap.equal(b.state(name), "failed", "is known to have done nothing")
    b.code(0, "and the next run starts it", name, *b.work(name))
    name = b.name()
    b.code(126, "no program", name, "--", b.server.folder)
    b.code(0, "the same", name, *b.work(name))


def codes(b):
    name = b.name()
    b.code(3, "--done-on", name, "--done-on", "0,3",
           *b.work(name, "echo three; exit 3"))
    again = b.code(3, "replays the code", name, *b.work(name))
    b.tap.equal(again.stdout, b"three\n", "and the output")
    b.ran(1, "it ran once", name)
    name = b.name()
    b.code(76, "--done-on without 0: no success", name, "--done-on", "3",
           *b.work(name))
    b.tap.equal(b.state(name), "doubt", "is in doubt")
    name = b.name()
    b.code(75, "--retry-on", name, "--retry-on", "75,76",
           *b.work(name, "exit 75"))
    b.tap.equal(b.state(name), "failed", "means that nothing happened")
    b.code(0, "the next run starts it", name, *b.work(name))
    b.ran(2, "twice in all", name)
    b.tap.equal(b.record(name)["attempt"], 2, "as attempt 2")
    name = b.name()
    b.code(128 + 15, "a signal whose code is in --done-on", name,
           "--done-on", "0,143", *b.work(name, "kill $$"))
    b.tap.equal(b.state(name), "doubt", "is in doubt nevertheless")


def fingerprints(b):
    name = b.name()
    other = b.name()
    b.code(0, "--fingerprint", name, "--fingerprint", "100EUR", *b.work(name))
    b.tap.equal(b.record(name).get("fingerprint"), "100EUR",
                "is kept as it is")
    shown = b.once("show", name).stdout
    b.tap.check(b"; fingerprint 100EUR" in shown, "show has it", shown)
    b.code(0, "the same", name, "--fingerprint", "100EUR", *b.work(name))
    wrong = b.code(65, "another", name, "--fingerprint", "200EUR",
                   *b.work(name))
    b.tap.check(b"another --fingerprint" in wrong.stderr and
                b"is done: " in wrong.stderr and
                b"; fingerprint 100EUR" in wrong.stderr,
                "says the state, and the other one", wrong.stderr)
    none = b.code(65, "none", name, *b.work(name))
    b.tap.check(b"none is given here" in none.stderr, "says so", none.stderr)
    b.ran(1, "it ran once", name)
    b.code(0, "without one", other, *b.work(other))
    shown = b.once("show", other).stdout
    b.tap.check(b"fingerprint" not in shown, "show has none", shown)
    b.code(65, "one where there was none", other, "--fingerprint", "x",
           *b.work(other))
    b.code(65, "a dash is one, too", other, "--fingerprint", "-",
           *b.work(other))
    name = b.name()
    b.code(1, "in doubt", name, "--fingerprint", "a", *b.work(name, "exit 1"))
    wrong = b.code(65, "another", name, "--fingerprint", "b", *b.work(name))
    b.tap.check(b"is in doubt" in wrong.stderr, "names the doubt",
                wrong.stderr)
    b.code(65, "confirm looks at it", "confirm", name,
           "--fingerprint", "b", "--yes")
    b.code(0, "and takes any if none is given", "confirm", name, "--yes")
    b.tap.equal(b.state(name), "done", "so it is done")
    name = b.name()
    b.code(75, "a failed attempt", name, "--fingerprint", "a",
           "--retry-on", "75", *b.work(name, "exit 75"))
    b.code(0, "matches any", name, "--fingerprint", "b", *b.work(name))
    for good in "=", "!~", "f" * 128:
        name = b.name()
        b.code(0, f"{good[:9]} is one", name, "--fingerprint", good,
               *b.work(name))
        b.tap.equal(b.record(name)["fingerprint"], good, "whole")
        b.code(0, "show takes it, too", "show", name, "--fingerprint",
               good)
    for bad in ("f" * 129, "two words", "a\nb", "a\tb", "\x1b[2J", "\x7f",
                "100\u20ac", b"\xff"):
        name = b.name()
        got = b.code(64, f"{bad[:9]!r} is none", name, "--fingerprint", bad,
                     *b.work(name))
        b.tap.check(b"one word of printable ASCII, at most 128 bytes" in
                    got.stderr and got.stderr.isascii() and
                    b"\x1b" not in got.stderr, "says why", got.stderr)
        b.ran(0, "nothing ran", name)


def times(b):
    name = b.name()
    b.code(0, "--keep", name, "--keep", "1h", *b.work(name))
    left = int(b.server.cli("PTTL", f"{{{name}}}:once"))
    b.tap.check(0 < left <= 3600000, "the record is kept for so long", left)
    name = b.name()
    b.code(0, "--keep 2s", name, "--keep", "2s", "--ttl", "1s", *b.work(name))
    await_(lambda: b.state(name) == "none")
    b.code(0, "after that it runs again", name, *b.work(name))
    b.ran(2, "twice in all", name)
    name = b.name()
    b.code(0, "without it", name, *b.work(name))
    left = int(b.server.cli("PTTL", f"{{{name}}}:once"))
    day = 86400000
    b.tap.check(29.9 * day < left <= 30 * day, "it is for 30 days", left)
    name = b.name()
    b.code(1, "in doubt", name, *b.work(name, "exit 1"))
    b.tap.equal(b.server.cli("PTTL", f"{{{name}}}:once"), b"-1\n",
                "has no end")


# What CMD leaves behind: it ends only when it is stopped.
LEFT_BEHIND = {
    "a step in the background": "sleep 600 &",
    "a step that ends well at TERM":
        "sh -c 'trap \"exit 0\" TERM; sleep 600 & wait' &",
    "one that is deaf to TERM": "sh -c 'trap \"\" TERM; sleep 600' &",
    "a daemon": "setsid sleep 600 > /dev/null 2>&1 &",
    "the reader of what it printed": "bash -c 'echo x > >(sleep 600)'",
}


def left_over(b):
    """Work that nxlock itself stopped is not done."""
    for what, step in LEFT_BEHIND.items():
        name = b.name()
        got = b.code(76, what, name, "--grace", "500ms", "--log", "json",
                     *b.work(name, step + " exit 0" if step[-1] == "&" else
                             step))
        b.tap.check(b"left processes behind; stopping them" in got.stderr and
                    b"is in doubt: " in got.stderr and
                    b"or forget if it was not" in got.stderr,
                    "is stopped, which is a doubt", got.stderr)
        ended = json.loads(got.stderr.splitlines()[-1])
        b.tap.equal((ended["event"], ended["result"], ended["code"]),
                    ("ended", "doubt", 76), "also in the log")
        b.tap.equal((b.state(name), b.record(name)["code"]), ("doubt", 76),
                    "and on record")
        b.code(76, "so the next run starts nothing", name, *b.work(name))
        b.ran(1, "it ran once", name)
    for code, option, wanted in ((3, "--done-on", 76), (75, "--retry-on", 76),
                                 (1, "--done-on", 1)):
        name = b.name()
        b.code(wanted, f"exit {code}, {option}, and a step is stopped", name,
               option, "0,3" if option == "--done-on" else "75",
               *b.work(name, f"sleep 600 & exit {code}"))
        b.tap.equal(b.state(name), "doubt", "is a doubt")
    name = b.name()
    got = b.code(0, "--leave-descendants", name, "--leave-descendants",
                 *b.work(name, "sleep 600 > /dev/null 2>&1 & echo $!"))
    os.kill(int(got.stdout), signal.SIGKILL)
    b.tap.equal((got.stderr, b.state(name)), (b"", "done"), "keeps it: done")
    name = b.name()
    got = b.once(name, *b.work(name, "sh -c 'exit 0' & exit 0"))
    b.tap.check((got.returncode, b"left processes" in got.stderr) in
                ((0, False), (76, True)),  # this machine may be slow
                "what ends by itself at once is no doubt", got)
    name = b.name()
    b.code(0, "nor is what CMD waits for", name,
           *b.work(name, "sleep 0.5 & wait"))
    name = b.name()
    b.once(name, *b.work(name, "exit 1"))
    got = b.code(76, "a check that leaves a process behind", name, "--check",
                 "echo no; sleep 600 &", *b.work(name))
    b.tap.check(b"left processes behind" in got.stderr, "is no answer",
                got.stderr)
    b.ran(1, "so nothing is started", name)


# ------------------------------------------------------------------ in doubt

def doubts(b):
    name = b.name()
    show = ("echo $NXLOCK_ONCE_ATTEMPT $NXLOCK_ONCE_DOUBTS"
            " ${NXLOCK_ONCE_SINCE-none} ${NXLOCK_ONCE_BY-none}")
    first = b.code(1, "CMD", name, *b.work(name, show + "; exit 1"))
    b.tap.equal(first.stdout, b"1 0 none none\n", "knows its attempt")
    b.code(76, "--on-doubt halt", name, "--on-doubt", "halt", *b.work(name))
    again = b.code(0, "--on-doubt retry", name, "--on-doubt", "retry",
                   *b.work(name, show))
    b.tap.check(re.fullmatch(
        rb"2 1 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ \S+:\d+:sh\n", again.stdout),
                "is told who is in doubt, and since when", again.stdout)
    b.ran(2, "ran twice", name)
    b.tap.equal(b.record(name)["doubts"], 1, "and the doubt is counted")

    inner = b.name()
    name = b.name()
    nested = b.code(0, "run inside once", name, "--", b.nxlock, "run", inner,
                    "--", "sh", "-c", "echo ${NXLOCK_ONCE_ATTEMPT-none}")
    b.tap.equal(nested.stdout, b"none\n", "has no attempt of its own")


def checks(b):
    for words, code, state, ran, what in (
            ("echo no", 0, "done", 2, "no"),
            ("echo yes; echo receipt", 0, "done", 1, "yes"),
            ("printf yes", 0, "done", 1, "yes without a newline"),
            ("echo yes; exit 1", 76, "doubt", 1, "yes, but exit 1"),
            ("echo no; exit 1", 76, "doubt", 1, "no, but exit 1"),
            ("echo no; kill -9 $$", 76, "doubt", 1, "no, but a signal"),
            ("exit 0", 76, "doubt", 1, "nothing"),
            ("echo NO", 76, "doubt", 1, "NO"),
            ("echo noway", 76, "doubt", 1, "noway"),
            ("echo; echo no", 76, "doubt", 1, "no on the second line"),
            ("echo no; head -c 1100000 /dev/zero", 76, "doubt", 1,
             "too much"),
            ("/nothing", 76, "doubt", 1, "no such command")):
        name = b.name()
        b.once(name, *b.work(name, "exit 1"))
        b.code(code, f"--check: {what}", name, "--check", words,
               *b.work(name, "echo $NXLOCK_ONCE_DOUBTS"))
        b.tap.equal((b.state(name), b.runs(name)), (state, ran),
                    f"is {state}, ran {ran}")
    name = b.name()
    b.once(name, *b.work(name, "exit 1"))
    got = b.once(name, "--check", "echo yes; echo receipt", *b.work(name))
    b.tap.equal(got.stdout, b"receipt\n", "the rest after yes is the result")
    b.tap.equal(b.once(name, *b.work(name)).stdout, b"receipt\n",
                "which is replayed")
    name = b.name()
    b.once(name, *b.work(name, "exit 1"))
    got = b.once(name, "--check", "echo no",
                 *b.work(name, "echo $NXLOCK_ONCE_ATTEMPT $NXLOCK_ONCE_DOUBTS"
                         " ${NXLOCK_ONCE_BY-none} ${NXLOCK_OUTER-none}"))
    b.tap.equal(got.stdout, b"2 0 none none\n", "after no there is no doubt")
    name = b.name()
    b.once(name, *b.work(name, "exit 1"))
    told = b.file("told")
    b.code(76, "the check", name, "--check",
           f"echo $NXLOCK_ONCE_DOUBTS $NXLOCK_HELD > {told}; cat; false",
           *b.work(name))
    with open(told, "rb") as file:
        b.tap.equal(file.read(), b"1 1\n", "runs under the lock, without input")
    name = b.name()
    b.once(name, *b.work(name, "exit 1"))
    before = b.record(name)
    time.sleep(1.1)  # times are in seconds
    for _ in range(2):
        got = b.code(76, "a check that cannot find out", name, "--check",
                     f"echo $NXLOCK_ONCE_SINCE > {told}; false",
                     *b.work(name))
        b.tap.check(b"attempt 1 by" in got.stderr and b"ended with 1 at" in
                    got.stderr, "says what is in doubt", got.stderr)
    r = b.record(name)
    with open(told, encoding="ascii") as file:
        b.tap.equal(file.read().strip(), r["first"],
                    "a check is told when the first attempt began")
    b.tap.equal(r, before, "and leaves the record as it was")
    got = b.once(name, "--on-doubt", "retry", *b.work(name, "exit 2"))
    b.tap.check(b"--on-doubt retry the next run does it again" in got.stderr
                and b"forget" not in got.stderr,
                "a retry that fails leaves the next step to the next run",
                got.stderr)
    shown = b.once("show", name).stdout.decode()
    b.tap.check("attempt 2 by" in shown and "; 1 earlier attempt ended in "
                "doubt, the first attempt began " + r["first"].replace("T", " ")
                .replace("Z", " UTC") in shown, "a person is told so too",
                shown)
    r = b.record(name)
    got = b.code(75, "a retry that says that nothing happened", name,
                 "--on-doubt", "retry", "--retry-on", "75",
                 *b.work(name, "exit 75"))
    b.tap.equal(b.record(name), r, "leaves the doubt as it was, too")
    b.tap.check(b"attempt 2 by" in got.stderr and b"ended with 2" in
                got.stderr, "which is said", got.stderr)
    name = b.name()
    b.code(0, "without a doubt", name, "--check", "echo yes", *b.work(name))
    b.ran(1, "nothing is asked", name)
    name = b.name()
    b.once(name, *b.work(name, "exit 1"))
    b.code(76, "--at-most holds for a check", name, "--at-most", "100ms",
           "--check", "sleep 60; echo no", *b.work(name))


def by_hand(b):
    name = b.name()
    b.code(1, "show without a record", "show", name)
    b.code(1, "forget without one", "forget", name, "--yes")
    b.code(1, "confirm without one", "confirm", name, "--yes")
    b.once(name, *b.work(name, "exit 4"))
    shown = b.code(0, "show", "show", name)
    b.tap.check(re.match(rb"w:\d+ in doubt: attempt 1 by \S+:\d+:sh began "
                         rb"20.* UTC, ended with 4 at 20.* UTC\n",
                         shown.stdout), "describes it", shown.stdout)
    r = b.record(name)
    b.tap.equal({k: r[k] for k in ("v", "name", "state", "attempt", "doubts",
                                   "late", "code", "program")},
                {"v": 1, "name": name, "state": "doubt", "attempt": 1,
                 "doubts": 0, "late": 0, "code": 4, "program": "sh"},
                "show --json")
    b.code(64, "forget asks", "forget", name)
    b.code(64, "confirm asks", "confirm", name)
    b.tap.equal(b.state(name), "doubt", "and nothing has changed")
    got = b.code(0, "confirm --yes", "confirm", name, "--yes")
    b.tap.check(b"is in doubt: " in got.stderr and got.stderr.endswith(
        f"recorded '{name}' as done\n".encode()),
        "says what it did", got.stderr)
    b.code(0, "then it is done", name, *b.work(name))
    b.ran(1, "and does not run again", name)
    b.code(1, "confirm of what is done", "confirm", name, "--yes")
    got = b.code(0, "forget --yes", "forget", name, "--yes")
    b.tap.check(b"is done: " in got.stderr and got.stderr.endswith(
        f"removed the record of '{name}'\n".encode()),
        "says what it did", got.stderr)
    b.code(0, "then it runs", name, *b.work(name))
    b.ran(2, "again", name)

    name = b.name()
    process = b.start(name, *b.work(name, "sleep 60"))
    await_(lambda: b.runs(name) == 1)
    b.tap.equal(b.state(name), "begun", "in progress")
    for action in ("forget", "confirm"):
        got = b.code(75, action, action, name, "--yes")
        b.tap.check(b"in progress: attempt 1 by" in got.stderr and
                    b"its record was not changed: try again" in got.stderr,
                    "says whose work is in progress", got.stderr)
    b.code(75, "-n", name, "-n", *b.work(name))
    b.code(75, "-w", name, "-w", "100ms", *b.work(name))
    b.code(0, "-n -E 0", name, "-n", "-E", "0", *b.work(name))
    wrong = b.code(65, "another fingerprint", name, "--fingerprint", "x",
                   *b.work(name))
    b.tap.check(b"it is in doubt or in progress: " in wrong.stderr and
                b"did not say" not in wrong.stderr,
                "claims no doubt about what may be in progress", wrong.stderr)
    shown = b.once("show", name, "--json", "--fingerprint", "x")
    b.tap.equal(json.loads(shown.stdout)["state"], "begun",
                "show looks whether it is, whatever the fingerprint")
    process.terminate()
    b.tap.equal(b.finish(process).returncode, 143, "TERM is passed on")
    b.ran(1, "it ran once", name)
    b.server.cli("SET", name, "x", "PX", "60000")
    shown = b.code(0, "show while another process holds the lock", "show",
                   name).stdout
    b.tap.check(b"in doubt" in shown, "shows the doubt", shown)
    b.code(75, "confirm", "confirm", name, "--yes")
    b.code(0, "forget", "forget", name, "--yes")


# ---------------------------------------------------------------- the output

def outputs(b):
    for size, kept in ((0, True), (1, True), (4096, True), (65537, True),
                       (MIB, True), (MIB + 1, False), (5 * MIB, False)):
        name = b.name()
        data = os.urandom(size)
        path = b.file("data")
        with open(path, "wb") as file:
            file.write(data)
        work = b.work(name, f"cat {path}")
        got = b.code(0, f"{size} bytes", name, *work)
        b.tap.check(got.stdout == data, "come through")
        b.tap.check((b"longer than 1 MiB" in got.stderr) != kept,
                    "and it is said if they are not kept", got.stderr)
        again = b.code(0, "again", name, *work)
        b.tap.check(again.stdout == (data if kept else b""), "and are replayed"
                    if kept else "nothing is replayed")
        b.tap.check((b"too long to be kept" in again.stderr) != kept,
                    "which is said if they cannot be", again.stderr)
        b.ran(1, "it ran once", name)

    name = b.name()
    process = b.start(name, *b.work(name, "echo early; read -r x < " +
                                    fifo(b.file("gate"))))
    b.tap.equal(process.stdout.readline(), b"early\n",
                "output comes through while CMD runs")
    with open(b.file("gate"), "wb"):
        pass
    b.finish(process)

    name = b.name()
    path = b.file("appended")
    with open(path, "wb") as file:
        file.write(b"before\n")
    with open(path, "ab") as file:
        subprocess.run([b.nxlock, "once", name, *b.work(name, "echo behind")],
                       stdout=file, check=True, timeout=60)
    with open(path, "rb") as file:
        b.tap.equal(file.read(), b"before\nbehind\n", "into a file, behind")


def ends_of_output(b):
    """What standard output can be."""
    name = b.name()
    ours, theirs = socket.socketpair()
    done = subprocess.Popen(
        [b.nxlock, "once", name, *b.work(name, "head -c 1000000 /dev/zero")],
        stdin=subprocess.DEVNULL, stdout=theirs)
    theirs.close()
    got = 0
    while more := len(ours.recv(65536)):
        got += more
    b.tap.equal((done.wait(), got), (0, 1000000), "a socket gets it all")
    name = b.name()
    for what, to, why in (
            ("a full device", "> /dev/full", b"No space left"),
            ("no standard output", ">&-", b"Bad file descriptor"),
            ("one that can only be read", "1< /dev/null",
             b"Bad file descriptor"),
            ("a reader that is gone", "| (exec <&-; cat /proc/self/stat)",
             b"its reader ended before it had read everything; use one that "
             b"reads to the end")):
        into_nothing(b, what, to, why)


def into_nothing(b, what, to, why):
    """What cannot be passed on is not done, nor shown again."""
    def run(name, *words):
        """The code of nxlock, also if it is in front of a pipe."""
        script = 'code=$1; shift; { "$@"; echo $? >&3; } 3> "$code" ' + to
        if "|" not in to:
            script = f'code=$1; shift; "$@" {to}; echo $? > "$code"'
        got = subprocess.run(
            ["sh", "-c", script, "sh", b.file("code"), b.nxlock, "once", name,
             *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, timeout=60, check=False)
        with open(b.file("code"), encoding="ascii") as file:
            return int(file.read()), got.stderr

    name = b.name()
    # More than a pipe without a reader takes.
    code, said = run(name, *b.work(name, "head -c 200000 /dev/zero"))
    b.tap.equal((code, b.state(name), b.record(name)["code"]),
                (70, "doubt", 70), f"{what}: 70, in doubt")
    b.tap.check(b"cannot pass on what sh printed: " + why in said and
                b"is in doubt: " in said, "which is said, and why", said)
    name = b.name()
    b.tap.equal((run(name, *b.work(name, "exit 1"))[0], b.state(name)),
                (1, "doubt"), "CMD's own failure is not hidden")
    name = b.name()
    b.tap.equal((run(name, "--retry-on", "75", *b.work(
        name, "head -c 200000 /dev/zero; exit 75"))[0],
                 b.state(name)), (75, "failed"),
                "nor that nothing happened")
    name = b.name()
    b.tap.equal((run(name, *b.work(name))[0], b.state(name)), (0, "done"),
                "where nothing is printed, it does not matter")
    name = b.name()
    b.once(name, *b.work(name, "head -c 200000 /dev/zero"))
    code, said = run(name, *b.work(name))
    b.tap.equal((code, b.state(name)), (70, "done"),
                "what was done cannot be printed again: 70")
    b.tap.check(b"cannot print the output of" in said, "which is said", said)
    b.tap.equal(run(name, "-q", *b.work(name)), (0, b""), "but not with -q")


def at_terminal(b):
    name = b.name()
    b.once(name, *b.work(name, "exit 1"))
    for action, key, code, state in (
            ("confirm", b"n\n", 75, "doubt"),
            ("forget", b"\n", 75, "doubt"),
            ("confirm", b"y\n", 0, "done"),
            ("forget", b"yes\n", 0, "none")):
        with Terminal([b.nxlock, "once", action, name]) as terminal:
            await_(lambda: "[y/N]" in terminal.text())
            terminal.type(key)
            b.tap.check(terminal.leader.wait(60) == code, f"{action}: {key}",
                        terminal.text())
        b.tap.equal(b.state(name), state, f"then it is {state}")
    name = b.name()
    text = b.file("text")
    with open(text, "w", encoding="utf-8") as file:
        file.write("to the screen\n")
    # Not a shell: dash, while it starts a process, only notes a Ctrl-C, and
    # acts on it when that process has ended.
    with Terminal([b.nxlock, "once", name, "--",
                   "tail", "-n", "+1", "-f", text]) as terminal:
        await_(lambda: "to the screen" in terminal.text())
        terminal.type(CTRL_C)
        b.tap.equal(terminal.leader.wait(60), -signal.SIGINT,
                    "Ctrl-C ends both")
    b.tap.equal(b.state(name), "doubt", "which is recorded")


def fifo(path):
    os.mkfifo(path)
    return path


def stuck_reader(b):
    """Nobody reads: CMD waits, but its lease is renewed."""
    name = b.name()
    process = b.start(name, "--ttl", "4s", "-v",
                      *b.work(name, "head -c 300000 /dev/zero"))
    renewals = 0
    while renewals < 4:  # longer than the lease
        line = process.stderr.readline()
        if not line:
            b.tap.check(False, "its lease is renewed", f"{renewals} times")
            break
        renewals += line.startswith(b"nxlock: renewed")
    b.tap.equal(b.state(name), "begun", "a reader that waits loses no lock")
    got = b.finish(process)
    b.tap.check(got.returncode == 0 and len(got.stdout) == 300000,
                "and gets it all", got.stderr)
    name = b.name()
    process = b.start(name, *b.work(
        name, f"sleep 0.2; echo x; echo y; echo . >> {b.file('ended')}"))
    process.stdout.close()
    process.stdout = None
    got = b.finish(process)
    b.tap.equal((got.returncode, b.state(name), b.runs("ended")),
                (70, "doubt", 1), "a reader that is gone does not end CMD")
    os.unlink(b.file("ended"))
    for words, end, code, state in (
            ((), None, 0, "done"), ((), signal.SIGTERM, 143, "doubt"),
            (("--at-most", "1s"), 0, 70, "doubt")):
        late_reader(b, words, end, (code, state))


def late_reader(b, words, end, wanted):
    """CMD has ended, and its output waits for a reader."""
    name = b.name()
    process = b.start(name, "--ttl", "2s", *words, *b.work(
        name, f"head -c 100000 /dev/zero; echo . >> {b.file('ended')}"))
    b.tap.check(await_(lambda: b.runs("ended") == 1), "CMD ends")
    os.unlink(b.file("ended"))
    time.sleep(0 if words else 3)  # longer than the lease
    b.tap.equal((b.state(name), b.server.cli("EXISTS", name)),
                ("begun", b"1\n"),
                "nothing is recorded before the reader has it all")
    if end is None:
        got = b.finish(process)
        b.tap.equal(len(got.stdout), 100000, "who gets the rest later")
    else:
        if end:
            process.send_signal(end)
        got = process
        got.stderr = got.stderr.read()
        process.wait()
        process.stdout.close()
        b.tap.check(b"cannot pass on what sh printed" in got.stderr and
                    b"in doubt" in got.stderr, "what is lost is said",
                    got.stderr)
    b.tap.equal((got.returncode, b.state(name)), wanted, "then it is recorded")


# ----------------------------------------------------------------- the server

def lost(b):
    name = b.name()
    process = b.start(name, "--ttl", "2s", "--grace", "200ms",
                      *b.work(name, "sleep 60"))
    await_(lambda: b.runs(name) == 1)
    b.server.cli("DEL", name)
    got = b.finish(process)
    b.tap.equal(got.returncode, 79, "the lock is removed: 79")
    b.tap.equal(b.state(name), "doubt", "and it is in doubt")
    b.tap.check(b"lost" in got.stderr, "which is said", got.stderr)

    name = b.name()
    process = b.start(name, "--ttl", "2s", *b.work(
        name, "trap 'exit 0' TERM; sleep 60 & wait"))
    await_(lambda: b.runs(name) == 1)
    b.server.cli("DEL", name)
    b.tap.equal((b.finish(process).returncode, b.state(name)), (79, "doubt"),
                "even if CMD then ends with 0")

    name = b.name()
    process = b.start(name, "--ttl", "2s", *b.work(name, "sleep 60"))
    await_(lambda: b.runs(name) == 1)
    b.server.cli("DEL", name, f"{{{name}}}:once")
    b.tap.equal(b.finish(process).returncode, 79, "so is the record: 79")

    name = b.name() + " x"
    process = b.start(name, "--keep-trying", "300ms", *b.work(
        name, f"read -r x < {fifo(b.file('gate2'))}"))
    await_(lambda: b.runs(name) == 1)
    b.server.process.send_signal(signal.SIGSTOP)
    with open(b.file("gate2"), "wb"):
        pass
    got = b.finish(process)
    b.server.process.send_signal(signal.SIGCONT)
    b.tap.equal(got.returncode, 79, "no answer until --keep-trying is over")
    b.tap.check(b"not on record" in got.stderr and f"nxlock once show '{name}'"
                .encode() in got.stderr,
                "which is said, with a command to paste", got.stderr)

    name = b.name()
    process = b.start(name, *b.work(
        name, f"read -r x < {fifo(b.file('gate3'))}; true"))
    await_(lambda: b.runs(name) == 1)
    b.server.process.send_signal(signal.SIGSTOP)
    with open(b.file("gate3"), "wb"):
        pass
    line = process.stderr.readline()
    b.tap.check(b"trying again for 1m" in line, "or it is tried again", line)
    b.server.process.send_signal(signal.SIGCONT)
    got = b.finish(process)
    b.tap.equal((got.returncode, b.state(name)), (0, "done"),
                "until it is done")

    name = b.name()
    process = b.start(name, "-v", *b.work(
        name, f"read -r x < {fifo(b.file('gate4'))}; true"))
    await_(lambda: b.runs(name) == 1)
    b.server.process.send_signal(signal.SIGSTOP)
    with open(b.file("gate4"), "wb"):
        pass
    while b"trying again" not in process.stderr.readline():
        pass
    process.terminate()
    got = b.finish(process)
    b.server.process.send_signal(signal.SIGCONT)
    b.tap.equal(got.returncode, 79, "a signal ends that")

    name = b.name()
    b.server.cli("RPUSH", f"{{{name}}}:once", "x")
    b.code(69, "the record's key holds a list", name, *b.work(name))
    b.ran(0, "and nothing is started", name)
    name = b.name()
    b.server.cli("SET", name, "hello")
    b.code(69, "the lock's key holds data", name, *b.work(name))
    b.code(77, "a wrong password", b.name(), "-u",
           "unix://:wrong@" + b.server.socket + "?user=nobody", "--", "true")
    b.code(69, "no server", b.name(), "-n", "-u", "unix:///nowhere",
           "--", "true")
    name = b.name()
    got = b.code(64, "once inside once", name, "--done-on", "64", "--",
                 b.nxlock, "once", name, "--", "true")
    b.tap.check(b"would deadlock" in got.stderr, "of one name", got.stderr)
    got = b.code(127, "a shell command without -c", b.name(), "--", "a | b")
    b.tap.check(b"nxlock once w:" in got.stderr and b" -c 'a | b'" in
                got.stderr, "says what to write", got.stderr)
    b.code(0, "with -c", b.name(), "-c", "true | true")
    b.code(69, "several servers", b.name(), "-u", b.server.url, "-u",
           "unix:///nowhere", "--", "true")


def denied(b):
    """A permission that is missing at the end: trying again is no use."""
    if not b.tap.may_use_acl(b.server, "a missing permission"):
        return
    b.server.cli("ACL", "SETUSER", "worker", "on", "nopass", "+@all", "~*",
                 "&*")
    name = b.name()
    process = b.start(name, "-u", f"{b.server.url}?user=worker", "--log",
                      "json", *b.work(name, "read -r x < " + fifo(
                          b.file("gate5"))), env={
                              **os.environ, "NXLOCK_PASSWORD": "any"})
    b.tap.check(await_(lambda: b.runs(name) == 1), "CMD runs")
    b.server.cli("ACL", "SETUSER", "worker", "-set")
    with open(b.file("gate5"), "wb"):
        pass
    got = b.finish(process)
    b.server.cli("ACL", "DELUSER", "worker")
    events = [json.loads(line) for line in got.stderr.splitlines()]
    b.tap.equal([event["event"] for event in events],
                ["acquired", "started", "command-ended", "doubt", "ended"],
                "a missing permission is no server that is down")
    b.tap.check("not on record" in events[3]["message"] and
                "allow +set" in events[3]["why"], "the reason is told",
                events[3])
    b.tap.equal((got.returncode, events[4]["result"]), (79, "doubt"),
                "and it is in doubt, not tried again for a minute")


def interrupted(b):
    name = b.name()
    holder = subprocess.Popen(
        [b.nxlock, "run", name, "--", "sleep", "60"],
        stdin=subprocess.DEVNULL)
    await_(lambda: b.server.cli("EXISTS", name) == b"1\n")
    b.code(75, "a lock that run holds is busy", name, "-n", *b.work(name))
    process = b.start(name, *b.work(name))
    b.tap.check(await_(lambda: b.waiting(name)), "another one waits")
    process.terminate()
    b.tap.equal(b.finish(process).returncode, 143, "TERM ends the wait")
    b.tap.equal(b.state(name), "none", "and nothing was begun")
    await_(lambda: not b.waiting(name))
    process = b.start(name, *b.work(name, "echo later"))
    b.tap.check(await_(lambda: b.waiting(name)), "and another one")
    holder.terminate()
    holder.wait()
    got = b.finish(process)
    b.tap.equal((got.returncode, got.stdout), (0, b"later\n"),
                "after a wait it runs")
    b.ran(1, "once", name)


def few_descriptors(b):
    """What could not be started is known not to have happened."""
    failed = 0
    for limit in range(6, 22):
        name = b.name()
        got = subprocess.run(
            ["prlimit", f"--nofile={limit}:{limit}", b.nxlock, "once", name,
             *b.work(name, "exec true")], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60,
            check=False)
        state, runs = b.state(name), b.runs(name)
        failed += state == "failed"
        b.tap.check((state, runs) in (("none", 0), ("failed", 0), ("done", 1)),
                    f"{limit} descriptors", (got.returncode, state, runs))
    b.tap.check(failed > 0, "it has begun with some of them")


def hosts(b):
    """The line of cron, on three hosts at once."""
    for _ in range(5):
        name = b.name()
        words = ["--keep", "3d", "-q", *b.work(name, "sleep 0.2; echo report")]
        all_ = [b.start(name, *words) for _ in range(3)]
        ends = [b.finish(process) for process in all_]
        b.tap.equal([end.returncode for end in ends], [0, 0, 0],
                    "three hosts end with 0")
        b.tap.equal(sorted(end.stdout for end in ends),
                    [b"", b"", b"report\n"], "one of them mails")
        b.tap.equal([end.stderr for end in ends], [b"", b"", b""],
                    "and none says more")
        b.ran(1, "it ran once", name)


def actions(b):
    """show, confirm and forget are words, and may be names as well."""
    for words, wanted in (
            (("show", "--", "true"), b"once --name=show -- CMD..."),
            (("--name=show",), b"once --name=show -- CMD..."),
            (("--name=show", "true"), b"once --name=show -- true"),
            (("show", "x", "--", "true"), b"runs no command: leave out"),
            (("forget", "x", "-c", "true"), b"runs no command"),
            (("confirm",), b"NAME is missing; write: nxlock once confirm NAME"),
            (("show", "x", "y"), b"unexpected 'y' after NAME"),
            (("forget", "x", "--json"), b"without 'nxlock once show'"),
            (("show", "x", "-n"), b"--no-wait has no effect without a command"),
            (("confirm", "x", "--keep", "3d"), b"--keep has no effect without"),
            (("forget", "x", "-q"), b"--quiet has no effect without"),
            (("--at-most", "1s", "show", "x"), b"--at-most has no effect"),
            (("show", "x", "--metrics", "f"), b"--metrics has no effect")):
        got = nx(b.nxlock, "once", *words)
        b.tap.check(got.returncode == 64 and wanted in got.stderr,
                    f"once {' '.join(words)}", got.stderr)
    b.code(1, "--name=show is a NAME", "--name=show",
           *b.work("shown", "exit 1"))
    b.ran(1, "and runs a command", "shown")
    for words in (("show",), ("--name=show",)):
        shown = b.code(0, f"show {words[0]}", "show", *words, "--json").stdout
        b.tap.equal(json.loads(shown)["name"], "show", "is the record of show")
    b.code(0, "confirm show", "confirm", "show", "--yes")
    b.code(0, "forget after an option", "--yes", "forget", "show")
    b.code(1, "has removed it", "show", "show")


def mistakes(b):
    for words, wanted in (
            (("--every", "1d", "--", "true"), b"see --keep"),
            (("--at-least", "1d", "--", "true"), b"see --keep"),
            (("--on-down", "run", "--", "true"), b"nothing is known"),
            ((), b"'--' and the command"),
            (("--show",), b"write: nxlock once show NAME"),
            (("--confirm", "--yes"), b"write: nxlock once confirm NAME"),
            (("--forget",), b"write: nxlock once forget NAME"),
            (("--json", "--", "true"), b"without 'nxlock once show'"),
            (("--fingerprint", "a", "--fingerprint", "b", "--", "true"),
             b"--fingerprint is given twice"),
            (("--fingerprint", "", "--", "true"), b"empty value"),
            (("--check", "a", "--on-doubt", "retry", "--", "true"),
             b"exclude each other"),
            (("--on-doubt", "maybe", "--", "true"), b"halt or retry"),
            (("--done-on", "0,256", "--", "true"), b"from 0 to 255"),
            (("--done-on", "", "--", "true"), b"from 0 to 255"),
            (("--done-on", "0,", "--", "true"), b"from 0 to 255"),
            (("--retry-on", "0", "--", "true"), b"a code in common"),
            (("--keep", "10s", "--", "true"), b"use --keep 30s or more"),
            (("--keep", "366d", "--", "true"), b"too long"),
            (("--keep", "9999999d", "--", "true"), b"at most 3650d"),
            (("--ttl", "1s", "--grace", "1s", "--", "true"), b"too short for"),
            (("true",), b"nxlock once x -- true")):
        got = b.code(64, " ".join(words) or "nothing", "x", *words)
        b.tap.check(wanted in got.stderr, "says why", got.stderr)


def durable(b):
    """What a server that keeps nothing on disk is told."""
    with Server() as forgetful:
        plain, strict = forgetful.url, forgetful.url + "?durable=1"
        name = b.name()
        got = b.code(78, "durable=1 needs a file", name, "-u", strict,
                     *b.work(name))
        b.tap.check(b"appendonly" in got.stderr, "says which", got.stderr)
        b.ran(0, "nothing ran", name)
        got = b.code(0, "without it, it runs", name, "-u", plain,
                     *b.work(name))
        b.tap.equal(got.stderr, b"", "cron mails nothing")
        name = b.name()
        got = b.code(0, "-v", name, "-v", "-u", plain, *b.work(name))
        b.tap.check(b"appendonly" in got.stderr, "-v warns", got.stderr)
        forgetful.cli("CONFIG", "SET", "appendonly", "yes")
        forgetful.cli("CONFIG", "SET", "appendfsync", "always")
        name = b.name()
        b.code(0, "with a file, it runs", name, "-u", strict, *b.work(name))
        b.ran(1, "once", name)


def main():
    nxlock = sys.argv[1]
    tap = Tap()
    with Server("--appendonly", "yes", "--appendfsync", "always") as server:
        clean_environment(server)
        bench = Bench(tap, server, nxlock)
        for part in (outcomes, codes, left_over, fingerprints, times, doubts,
                     checks, by_hand, outputs, ends_of_output, at_terminal,
                     stuck_reader, lost, denied, interrupted, few_descriptors,
                     hosts, durable, actions, mistakes):
            if sys.argv[2:] and part.__name__ not in sys.argv[2:]:
                continue
            print(f"# {part.__name__}")
            tap.about = part.__name__ + ": "
            part(bench)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
