#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_once.py NXLOCK [PART...]: the command once, every option and code. CMD
notes each run in the file "ran", so a second one cannot hide behind a code.
table.py describes the rows.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

from rig import await_, code_name, nx, play
from table import Table, part
from terminal import CTRL_C, Terminal

MIB = 1 << 20

# ------------------------------------------------------------------------ rows


def work(end="true"):
    return f"-- sh -c 'printf . >> {{d}}/ran; {end}'"


def ran(times):
    return "file ran", "." * times


def is_in(state, *more):
    return "once show a --json", 0, f'"state":"{state}"', *more


NEW = (("db FLUSHALL", "OK"), ("write ran", ""))
DONE = (f"once a {work()}", 0)
DOUBT = (f"once a {work('exit 1')}", 1, "is in doubt")

OUTCOMES = (
    *NEW,
    (f"once a {work('echo hello')}", 0, "~hello", "!nxlock:"),
    (f"once a {work('echo hello')}", 0, "~hello", "!nxlock:"),
    (f"once a -q {work()}", 0, ""),
    (f"once a -v {work()}", 0, "is done: attempt 1 by "),
    ran(1),
    *NEW,
    (f"once a {work('exit 1')}", 1, "is in doubt", "once confirm "),
    (f"once a {work()}", 76, "ended with 1", "attempt 1 by "),
    ran(1),
    *(row for end, code, option in (
        ("kill -9 $$", 137, ""), ("sleep 60", 124, "--at-most 100ms"))
      for row in (*NEW, (f"once a {option} {work(end)}", code),
                  (f"once a {work()}", 76))),
    *(row for program, code in (("{d}/nothing", 127), ("{d}", 126))
      for row in (*NEW, (f"once a -- {program}", code), is_in("failed"), DONE)),
    ("once b -- 'a | b'", 127, "nxlock once b -c 'a | b'"),
    ("once b -c 'true | true'", 0, ""),
)

CODES = (
    *NEW,
    (f"once a --done-on 0,3 {work('echo three; exit 3')}", 3, "~three"),
    (f"once a {work()}", 3, "~three"),
    ran(1),
    *NEW,
    (f"once a --done-on 3 {work()}", 76),
    is_in("doubt"),
    *NEW,
    (f"once a --retry-on 75,76 {work('exit 75')}", 75),
    is_in("failed"),
    DONE,
    ran(2),
    is_in("done", '"attempt":2'),
    *NEW,
    (f"once a --done-on 0,143 {work('kill $$')}", 143),
    is_in("doubt"),
)

FINGERPRINTS = (
    *NEW,
    (f"once a --fingerprint 100EUR {work()}", 0, ""),
    is_in("done", '"fingerprint":"100EUR"'),
    ("once show a", 0, "~.*; fingerprint 100EUR.*"),
    (f"once a --fingerprint 100EUR {work()}", 0),
    (f"once a --fingerprint 200EUR {work()}", 65, "another --fingerprint",
     "is done: ", "; fingerprint 100EUR"),
    (f"once a {work()}", 65, "none is given here"),
    ran(1),
    *NEW,
    DONE,
    ("once show a", 0, "!fingerprint"),
    *((f"once a --fingerprint {word} {work()}", 65) for word in ("x", "-")),
    *NEW,
    (f"once a --fingerprint a {work('exit 1')}", 1),
    (f"once a --fingerprint b {work()}", 65, "is in doubt"),
    ("once confirm a --fingerprint b --yes", 65),
    ("once confirm a --yes", 0),
    is_in("done"),
    *NEW,
    (f"once a --fingerprint a --retry-on 75 {work('exit 75')}", 75),
    (f"once a --fingerprint b {work()}", 0),
    *(row for word in ("=", "!~", "f" * 128) for row in (
        *NEW, (f"once a --fingerprint {word} {work()}", 0),
        is_in("done", f'"fingerprint":"{word}"'),
        (f"once show a --fingerprint {word}", 0))),
    *NEW,
    *((f"once a --fingerprint '{word}' {work()}", 64, "one word of printable "
       "ASCII, at most 128 bytes", "!\x1b", "!\u20ac")
      for word in ("f" * 129, "two words", "a\nb", "a\tb", "\x1b[2J", "\x7f",
                   "100\u20ac", "\udcff")),
    ran(0),
)

TIMES = (
    *NEW,
    (f"once a --keep 1h {work()}", 0),
    ("db PTTL {a}:once", (0, 3600000)),
    *NEW,
    (f"once a --keep 2s --ttl 1s {work()}", 0),
    ("db EXISTS {a}:once", re.compile("^0")),
    DONE,
    ran(2),
    ("db PTTL {a}:once", (29.9 * 86400000, 30 * 86400000)),
    *NEW,
    DOUBT,
    ("db PTTL {a}:once", "-1"),
)

SHOW = ("echo $NXLOCK_ONCE_ATTEMPT $NXLOCK_ONCE_DOUBTS "
        "${NXLOCK_ONCE_SINCE-none} ${NXLOCK_ONCE_BY-none} "
        "${NXLOCK_OUTER-none}")
DOUBTS = (
    *NEW,
    (f"once a {work(SHOW + '; exit 1')}", 1, "~1 0 none none none"),
    (f"once a --on-doubt halt {work()}", 76),
    (f"once a --on-doubt retry {work(SHOW)}", 0,
     r"~2 1 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ \S+:\d+:sh none"),
    ran(2),
    is_in("done", '"doubts":1'),
    ("once b -- {nx} run a -- sh -c 'echo ${NXLOCK_ONCE_ATTEMPT-none}'", 0,
     "~none"),
    ("once b2 --done-on 64 -- {nx} once b2 -- true", 64, "would deadlock"),
)

# The check, the exit code, the state, how often CMD ran.
CHECKS = (
    *(row for check, code, state, times in (
        ("echo no", 0, "done", 2),
        ("echo yes; echo receipt", 0, "done", 1),
        ("printf yes", 0, "done", 1),
        ("echo yes; exit 1", 76, "doubt", 1),
        ("echo no; exit 1", 76, "doubt", 1),
        ("echo no; kill -9 $$", 76, "doubt", 1),
        ("exit 0", 76, "doubt", 1),
        ("echo NO", 76, "doubt", 1),
        ("echo noway", 76, "doubt", 1),
        ("echo; echo no", 76, "doubt", 1),
        ("echo no; head -c 1100000 /dev/zero", 76, "doubt", 1),
        ("/nothing", 76, "doubt", 1))
      for row in (*NEW, DOUBT, (f"once a --check '{check}' {work(SHOW)}", code),
                  is_in(state), ran(times))),
    *NEW,
    DOUBT,
    (f"once a --check 'echo yes; echo receipt' {work()}", 0, "~receipt"),
    (f"once a {work()}", 0, "~receipt"),
    *NEW,
    DOUBT,
    (f"once a --check 'echo no' {work(SHOW)}", 0, "~2 0 none none none"),
    *NEW,
    DOUBT,
    ("once a --check 'echo $NXLOCK_ONCE_DOUBTS > {d}/told; cat; "
     f"false' {work()}", 76),
    ("file told", "1\n"),  # under the lock, and without input
    *NEW,
    (f"once a --check 'echo yes' {work()}", 0),
    ran(1),
    *NEW,
    DOUBT,
    (f"once a --at-most 100ms --check 'sleep 60; echo no' {work()}", 76),
    (f"once a --check 'echo no; sleep 600 &' {work()}", 76,
     "left processes behind"),
    ran(1),
)

BY_HAND = (
    *NEW,
    ("once show a", 1),
    ("once forget a --yes", 1),
    ("once confirm a --yes", 1),
    (f"once a {work('exit 4')}", 4),
    ("once show a", 0, r"~a in doubt: attempt 1 by \S+:\d+:sh began 20.* UTC, "
     "ended with 4 at 20.* UTC"),
    is_in("doubt", '"v":1,"name":"a"', '"attempt":1',
          '"doubts":0', '"late":0', '"code":4}',
          '"program":"sh"'),
    ("once forget a", 64),
    ("once confirm a", 64),
    is_in("doubt"),
    ("once confirm a --yes", 0, "is in doubt: ", "recorded 'a' as done"),
    DONE,
    ran(1),
    ("once confirm a --yes", 1),
    ("once forget a --yes", 0, "is done: ", "removed the record of 'a'"),
    DONE,
    ran(2),
    # While another process holds the lock.
    *NEW,
    (f"once b {work('exit 1')}", 1),
    ("db SET b x PX 60000", "OK"),
    ("once show b", 0, "in doubt"),
    ("once confirm b --yes", 75),
    (f"once b -n {work()}", 75),
    ("once forget b --yes", 0),
)

# show, confirm and forget are words, and may be names as well.
ACTIONS = (
    *((f"once {words}", 64, said) for words, said in (
        ("show -- true", "once --name=show -- CMD..."),
        ("--name=show", "once --name=show -- CMD..."),
        ("--name=show true", "once --name=show -- true"),
        ("show x -- true", "runs no command: leave out"),
        ("forget x -c true", "runs no command"),
        ("confirm", "NAME is missing; write: nxlock once confirm NAME"),
        ("show x y", "unexpected 'y' after NAME"),
        ("forget x --json", "without 'nxlock once show'"),
        ("show x -n", "--no-wait has no effect without a command"),
        ("confirm x --keep 3d", "--keep has no effect without"),
        ("forget x -q", "--quiet has no effect without"),
        ("--at-most 1s show x", "--at-most has no effect"),
        ("show x --metrics f", "--metrics has no effect"))),
    *NEW,
    (f"once --name=show {work('exit 1')}", 1),
    ran(1),
    ("once show show --json", 0, '"name":"show"'),
    ("once show --name=show --json", 0, '"name":"show"'),
    ("once confirm show --yes", 0),
    ("once --yes forget show", 0),
    ("once show show", 1),
)

MISTAKES = (
    *((f"once x {words}", 64, said) for words, said in (
        ("--every 1d -- true", "see --keep"),
        ("--at-least 1d -- true", "see --keep"),
        ("", "'--' and the command"),
        ("--show", "write: nxlock once show NAME"),
        ("--confirm --yes", "write: nxlock once confirm NAME"),
        ("--forget", "write: nxlock once forget NAME"),
        ("--json -- true", "without 'nxlock once show'"),
        ("--fingerprint a --fingerprint b -- true",
         "--fingerprint is given twice"),
        ("--fingerprint '' -- true", "empty value"),
        ("--check a --on-doubt retry -- true", "exclude each other"),
        ("--on-doubt maybe -- true", "halt or retry"),
        ("--done-on 0,256 -- true", "from 0 to 255"),
        ("--done-on '' -- true", "from 0 to 255"),
        ("--done-on 0, -- true", "from 0 to 255"),
        ("--retry-on 0 -- true", "a code in common"),
        ("--keep 10s -- true", "use --keep 30s or more"),
        ("--keep 366d -- true", "too long"),
        ("--keep 9999999d -- true", "at most 3650d"),
        ("--ttl 1s --grace 1s -- true", "too short for"),
        ("true", "nxlock once x -- true"))),
    *NEW,
    ("db RPUSH {x}:once x", "1"),
    ("db SET y hello", "OK"),
    ("once x -- touch {started}", 69),
    ("once y -- touch {started}", 69),
    ("once a -u unix://nobody:wrong@{socket} -- true", 77),
    ("once a -n -u unix:///nowhere -- true", 69),
    ("once a -u {url} -u unix:///nowhere -- true", 69),
)

MUCH = "head -c 200000 /dev/zero"  # more than a pipe without a reader takes
# What standard output is, and why it cannot be written.
UNWRITABLE = tuple(row for to, why in (
    ("/dev/full", "No space left"), ("closed", "Bad file descriptor"),
    ("unwritable", "Bad file descriptor"),
    ("gone", "its reader ended before it had read everything; use one that "
     "reads to the end"))
    for row in (
        *NEW,
        (f"once a {work(MUCH)} > {to}", 70,
         f"cannot pass on what sh printed: {why}", "is in doubt: "),
        is_in("doubt", '"code":70}'),
        *NEW,
        (f"once a {work('exit 1')} > {to}", 1),
        is_in("doubt"),
        *NEW,
        (f"once a --retry-on 75 {work(MUCH + '; exit 75')} > {to}", 75),
        is_in("failed"),
        *NEW,
        (f"once a {work()} > {to}", 0),
        is_in("done"),
        *NEW,
        (f"once a {work(MUCH)} > /dev/null", 0),
        (f"once a {work()} > {to}", 70, "cannot print the output of"),
        is_in("done"),
        (f"once a -q {work()} > {to}", 0, "")))

# Work that nxlock itself stopped is not done: what CMD leaves behind ends only
# when it is stopped.
LEFT_OVER = (
    *(row for script in (
        "sleep 600 & exit 0",
        r'sh -c "trap \"exit 0\" TERM; sleep 600 & wait" & exit 0',
        r'sh -c "trap \"\" TERM; sleep 600" & exit 0',  # deaf to TERM
        "setsid sleep 600 > /dev/null 2>&1 & exit 0",  # a daemon
        'bash -c "echo x > >(sleep 600)"')  # the reader of what it printed
      for row in (
          *NEW,
          (f"once a --grace 500ms --log json {work(script)}", 76,
           "left processes behind; stopping them", "is in doubt: ",
           "or forget if it was not", 'once "result":"doubt"',
           'once "code":76,'),
          is_in("doubt", '"code":76}'),
          (f"once a {work()}", 76),
          ran(1))),
    *(row for code, words, wanted in ((3, "--done-on 0,3", 76),
                                      (75, "--retry-on 75", 76),
                                      (1, "--done-on 0", 1))
      for row in (*NEW, (f"once a {words} {work(f'sleep 600 & exit {code}')}",
                         wanted), is_in("doubt"))),
    # What CMD waits for is not left behind.
    *NEW,
    (f"once a {work('sleep 0.5 & wait')}", 0),
)
# What a server that keeps nothing on disk is told.
DURABLE = (
    *NEW,
    ("db CONFIG SET appendonly no", "OK"),
    (f"?durable=1 once a {work()}", 78, "appendonly"),
    ran(0),
    ("once a -- true", 0, ""),
    ("once b -v -- true", 0, "appendonly"),
    ("db CONFIG SET appendonly yes", "OK"),
    ("?durable=1 once c -- true", 0),
)

TABLES = {
    "outcomes": OUTCOMES, "codes": CODES, "fingerprints": FINGERPRINTS,
    "times": TIMES, "doubts": DOUBTS, "checks": CHECKS, "by_hand": BY_HAND,
    "actions": ACTIONS, "mistakes": MISTAKES, "unwritable": UNWRITABLE,
    "left_over": LEFT_OVER, "durable": DURABLE,
}

# --------------------------------------------------------------------- stories


class Room(Table):
    """Each story has names of its own."""

    count = 0

    def name(self):
        self.count += 1
        return f"w:{self.count}"

    def noting(self, name, end="true"):
        """A CMD that notes in a file that it ran, then does that."""
        path = self.path(name.replace(":", "-"))
        return ["--", "sh", "-c", f"echo . >> '{path}'; {end}"]

    def runs(self, name):
        name = name.replace(":", "-")
        return self.text(name).count(".") if self.has(name) else 0

    def once(self, given, code, name, *words, out=".*", said=(), state=None,
             runs=None, **more):
        """once ends so, and leaves this record, after so many runs of CMD."""
        got = nx(self.program, "once", name, *words, **more)
        return self.ended(given, code, name, (got.returncode, got.stdout,
                                              got.stderr), out, said, state,
                          runs)

    def ended(self, given, code, name, got, out=".*", said=(), state=None,
              runs=None):
        ended, printed, err = (part.decode("utf-8", "replace") if isinstance(
            part, bytes) else part for part in got)
        self.check(ended == code and re.fullmatch(out, printed, re.S) and
                   all(word in err for word in said),
                   f"{given}: {code_name(code)}",
                   f"{code_name(ended)}\n{printed[:500]}\n{err}\n{said}")
        if state is not None:
            self.equal(self.state(name), state, f"{given}: the record")
        if runs is not None:
            self.equal(self.runs(name), runs, f"{given}: how often CMD ran")
        return err

    def record(self, name):
        return json.loads(nx(self.program, "once", "show", name,
                             "--json").stdout)

    def state(self, name):
        return self.record(name)["state"]

    def waiting(self, name):
        """How many wait in line for its lock."""
        return json.loads(nx(self.program, "status", name,
                             "--json").stdout)["waiting"]

    def begin(self, name, *words, **more):
        """In the background; CMD runs."""
        run = self.launch("once", name, *words, **more)
        self.check(await_(lambda: self.runs(name) == 1), "CMD runs")
        return run

    def gate(self, name, first=""):
        """A CMD that ends when open_gate() is called."""
        gate = self.path("gate-" + name)
        os.mkfifo(gate)
        return self.noting(name, f"{first}read -r x < '{gate}'; true")

    def open_gate(self, name):
        with open(self.path("gate-" + name), "wb"):
            pass

    # -------------------------------------------------------- what is left over

    def left_running(self):
        name = self.name()
        got = nx(self.program, "once", name, "--leave-descendants",
                 *self.noting(name, "sleep 600 > /dev/null 2>&1 & echo $!"))
        os.kill(int(got.stdout), signal.SIGKILL)
        self.equal((got.returncode, got.stderr, self.state(name)),
                   (0, b"", "done"), "--leave-descendants: done")
        name = self.name()
        got = nx(self.program, "once", name,
                 *self.noting(name, "sh -c 'exit 0' & exit 0"))
        self.check((got.returncode, b"left processes" in got.stderr) in
                   ((0, False), (76, True)),  # this machine may be slow
                   "what ends by itself at once is no doubt", got)

    def unanswered(self):
        """A check that cannot find out, and a retry that fails."""
        name = self.name()
        self.once("CMD fails", 1, name, *self.noting(name, "exit 1"))
        before = self.record(name)
        time.sleep(1.1)  # times are in seconds
        for _ in range(2):
            self.once("a check without an answer", 76, name, "--check",
                      f"echo $NXLOCK_ONCE_SINCE > {self.path('told')}; false",
                      *self.noting(name),
                      said=("attempt 1 by", "ended with 1 at"))
        with open(self.write("input", "no\n"), "rb") as file:
            self.ended("a check reads no input", 76, name, self.launch(
                "once", name, "--check", "cat", *self.noting(name),
                stdin=file).ends())
        self.equal((self.text("told"), self.record(name)),
                   (before["first"] + "\n", before), "a check without an "
                   "answer: told when the first attempt began; no change")
        err = self.once("a retry that fails", 2, name, "--on-doubt", "retry",
                        *self.noting(name, "exit 2"),
                        said=("--on-doubt retry the next run does it again",))
        self.check("forget" not in err, "a retry that fails: the next step is "
                   "left to the next run", err)
        first = before["first"].replace("T", " ").replace("Z", " UTC")
        self.gives("after the retry", ["once", "show", name], 0,
                   ".*attempt 2 by.*; 1 earlier attempt ended in doubt, the "
                   f"first attempt began {first}.*")
        before = self.record(name)
        self.once("a retry that says that nothing happened", 75, name,
                  "--on-doubt", "retry", "--retry-on", "75",
                  *self.noting(name, "exit 75"),
                  said=("attempt 2 by", "ended with 2"))
        self.equal(self.record(name), before,
                   "a retry that says that nothing happened: no change")

    def in_progress(self):
        name = self.name()
        run = self.begin(name, *self.noting(name, "sleep 60"))
        for action in "forget", "confirm":
            self.once(f"in progress: {action}", 75, action, name, "--yes",
                      said=("in progress: attempt 1 by",
                            "its record was not changed: try again"))
        for words, code in ((("-n",), 75), (("-w", "100ms"), 75),
                            (("-n", "-E", "0"), 0)):
            self.once(f"in progress: {words}", code, name, *words,
                      *self.noting(name), state="begun", runs=1)
        err = self.once("in progress: another fingerprint", 65, name,
                        "--fingerprint", "x", *self.noting(name),
                        said=("it is in doubt or in progress: ",))
        self.check("did not say" not in err, "in progress: another fingerprint:"
                   " claims no doubt", err)
        self.gives("in progress", ["once", "show", name, "--json",
                                   "--fingerprint", "x"], 0,
                   '.*"state":"begun".*')
        run.send(signal.SIGTERM)
        self.ended("in progress: TERM", 143, name, run.ends(), runs=1)

    # ------------------------------------------------------------- the output

    def outputs(self):
        for size in 0, 1, 4096, 65537, MIB, MIB + 1, 5 * MIB:
            name, data = self.name(), os.urandom(size)
            with open(self.path("data"), "wb") as file:
                file.write(data)
            kept = size <= MIB
            for first in True, False:
                got = nx(self.program, "once", name, *self.noting(
                    name, f"cat {self.path('data')}"))
                note = (b"longer than 1 MiB" if first else
                        b"too long to be kept")
                self.check(got.returncode == 0 and (note in got.stderr) != kept
                           and got.stdout == (data if first or kept else b""),
                           f"{size} bytes of output, "
                           f"{'the first run' if first else 'replayed'}",
                           got.stderr)
            self.equal(self.runs(name), 1, f"{size} bytes of output: one run")
        name = self.name()
        run = self.launch("once", name, *self.gate(name, "echo early; "))
        self.check(await_(lambda: run.output() == "early\n"),
                   "output comes through while CMD runs")
        self.open_gate(name)
        run.ends()
        self.write("appended", "before\n")
        with open(self.path("appended"), "ab") as file:
            self.launch("once", self.name(), "--", "echo", "behind",
                        stdout=file).ends()
        self.equal(self.text("appended"), "before\nbehind\n",
                   "output is appended to a file")
        ours, theirs = socket.socketpair()
        run = self.launch("once", self.name(), "--", "head", "-c", "1000000",
                          "/dev/zero", stdout=theirs)
        theirs.close()
        got = 0
        while more := len(ours.recv(65536)):
            got += more
        self.equal((run.ends()[0], got), (0, 1000000), "a socket gets it all")

    def at_terminal(self):
        name = self.name()
        self.once("CMD fails", 1, name, *self.noting(name, "exit 1"))
        for action, key, code, state in (
                ("confirm", b"n\n", 75, "doubt"),
                ("forget", b"\n", 75, "doubt"),
                ("confirm", b"y\n", 0, "done"),
                ("forget", b"yes\n", 0, "none")):
            got, _ = self.on_terminal("once", action, name, keys=key)
            self.equal((got, self.state(name)), (code, state),
                       f"{action} at a terminal, {key}: code and record")
        name = self.name()
        self.write("text", "to the screen\n")
        # Not a shell: dash, while it starts a process, only notes a Ctrl-C, and
        # acts on it when that process has ended.
        with Terminal([self.program, "once", name, "--", "tail", "-n", "+1",
                       "-f", self.path("text")]) as terminal:
            await_(lambda: "to the screen" in terminal.text())
            terminal.type(CTRL_C)
            got = terminal.leader.wait(60)
        self.equal((got, self.state(name)), (-signal.SIGINT, "doubt"),
                   "Ctrl-C ends both: code and record")

    def start_unread(self, name, *words):
        """With a pipe as standard output, which is not read yet."""
        return self.launch("once", name, *words, stdout=subprocess.PIPE)

    def stuck_reader(self):
        """Nobody reads: CMD waits, but its lease is renewed."""
        name = self.name()
        run = self.start_unread(name, "--ttl", "4s", "-v", *self.noting(
            name, "head -c 300000 /dev/zero"))
        self.check(await_(lambda: run.messages().count("nxlock: renewed") >= 4)
                   and self.state(name) == "begun",
                   "a reader that waits for longer than the lease")
        got = run.process.stdout.read()
        self.equal((run.ends()[0], len(got)), (0, 300000), "and gets it all")
        name = self.name()
        run = self.start_unread(name, *self.noting(
            name, f"sleep 0.2; echo x; echo y; echo . >> {self.path('end')}"))
        run.process.stdout.close()
        self.ended("a reader that is gone does not end CMD", 70, name,
                   run.ends(), state="doubt")
        self.equal(self.runs("end"), 1, "a reader that is gone: CMD ends")
        for words, signo, code, state in (
                ((), None, 0, "done"), ((), signal.SIGTERM, 143, "doubt"),
                (("--at-most", "1s"), None, 70, "doubt")):
            self.late_reader(words, signo, code, state)

    def late_reader(self, words, signo, code, state):
        """CMD has ended, and its output waits for a reader."""
        name, what = self.name(), f"output that waits, {words} {signo}"
        self.remove("end")
        run = self.start_unread(name, "--ttl", "2s", *words, *self.noting(
            name, f"head -c 100000 /dev/zero; echo . >> {self.path('end')}"))
        self.check(await_(lambda: self.has("end")), f"{what}: CMD ends")
        time.sleep(0 if words or signo else 3)  # longer than the lease
        self.equal((self.state(name), self.is_free(name)), ("begun", False),
                   f"{what}: nothing is recorded before the reader has it all")
        if signo is not None:
            run.send(signo)
        if code == 0:
            got = run.process.stdout.read()
            self.equal(len(got), 100000, f"{what}: the reader gets the rest")
        self.ended(what, code, name, run.ends(), state=state, said=(
            () if code == 0 else ("cannot pass on what sh printed",
                                  "in doubt")))
        run.process.stdout.close()

    # --------------------------------------------------------------- the server

    def lost(self):
        for what, end, keys in (
                ("the lock is removed", "sleep 60", ["{}"]),
                ("the lock is removed, and CMD ends with 0",
                 "trap 'exit 0' TERM; sleep 60 & wait", ["{}"]),
                ("lock and record are removed", "sleep 60",
                 ["{}", "{{{}}}:once"])):
            name = self.name()
            run = self.begin(name, "--ttl", "2s", "--grace", "200ms",
                             *self.noting(name, end))
            self.server.cli("DEL", *(key.format(name) for key in keys))
            self.ended(what, 79, name, run.ends(), said=("lost",),
                       state="doubt" if len(keys) == 1 else None)

    def silence(self):
        """The server does not answer when CMD ends."""
        for what, words, code in (("until --keep-trying is over",
                                   ("--keep-trying", "300ms"), 79),
                                  ("for a while", (), 0),
                                  ("until a signal comes", ("-v",), 79)):
            what, name = f"no answer {what}", self.name() + " x"
            run = self.begin(name, *words, "-u", self.server.url +
                             "?timeout_ms=1000", *self.gate(name))
            self.server.freeze()
            self.open_gate(name)
            if code == 79 and "-v" not in words:
                self.ended(what, code, name, run.ends(), said=(
                    "not on record", f"nxlock once show '{name}'"))
                self.server.thaw()
                continue
            self.check(run.says("trying again for 1m"), f"{what}: says so")
            if code == 79:
                run.send(signal.SIGTERM)
                self.ended(what, code, name, run.ends())
            self.server.thaw()
            if code == 0:
                self.ended(what, code, name, run.ends(), state="done")

    def answered_after_a_signal(self):
        """A signal ends no request: its answer may be the good one."""
        name, what = self.name(), "a signal while the outcome is recorded"
        run = self.begin(name, "--ttl", "50s", "-u", self.server.url +
                         "?timeout_ms=9000", *self.gate(name))
        can = self.server.cli("CLIENT", "PAUSE", "60000", "WRITE") == b"OK\n"
        self.open_gate(name)
        asked = not can or await_(
            lambda: b"flags=b" in self.server.cli("CLIENT", "LIST"))
        run.send(signal.SIGTERM)
        time.sleep(0.2)  # it is read, or waits to be
        self.server.cli("CLIENT", "UNPAUSE")
        self.check(asked, f"{what}: the request is at the server")
        self.ended(what, 0, name, run.ends(), state="done")

    def denied(self):
        """A permission that is missing at the end: trying again is no use."""
        if not self.may_use_acl(self.server, "a missing permission"):
            return
        self.server.cli("ACL", "SETUSER", "worker", "on", "nopass", "+@all",
                        "~*", "&*")
        name = self.name()
        run = self.begin(name, "-u", f"{self.server.url}?user=worker", "--log",
                         "json", *self.gate(name),
                         env={**os.environ, "NXLOCK_PASSWORD": "any"})
        self.server.cli("ACL", "SETUSER", "worker", "-set")
        self.open_gate(name)
        code, _, err = run.ends()
        self.server.cli("ACL", "DELUSER", "worker")
        events = [json.loads(line) for line in err.splitlines()]
        self.equal([event["event"] for event in events],
                   ["acquired", "started", "command-ended", "doubt", "ended"],
                   "a missing permission is no server that is down")
        self.check("not on record" in events[3]["message"] and
                   "allow +set" in events[3]["why"],
                   "a missing permission: the reason", events[3])
        self.equal((code, events[4]["result"]), (79, "doubt"),
                   "a missing permission: in doubt, and not tried again")

    def interrupted(self):
        name = self.name()
        holder = self.launch("run", name, "--", "sleep", "60")
        await_(lambda: not self.is_free(name))
        self.once("a lock that run holds", 75, name, "-n", *self.noting(name))
        run = self.launch("once", name, *self.noting(name))
        self.check(await_(lambda: self.waiting(name)), "another one waits")
        run.send(signal.SIGTERM)
        self.ended("TERM during a wait", 143, name, run.ends(), state="none")
        await_(lambda: not self.waiting(name))
        run = self.launch("once", name, *self.noting(name, "echo later"))
        self.check(await_(lambda: self.waiting(name)), "and another one")
        holder.send(signal.SIGTERM)
        holder.ends()
        self.ended("after a wait", 0, name, run.ends(), "later\n", runs=1)

    def few_descriptors(self):
        """What could not be started is known not to have happened."""
        failed = 0
        for limit in range(6, 22):
            name = self.name()
            got = self.launch("once", name, *self.noting(name, "exec true"),
                              before=["prlimit", f"--nofile={limit}:{limit}"]
                              ).ends()
            state, runs = self.state(name), self.runs(name)
            failed += state == "failed"
            self.check((state, runs) in (("none", 0), ("failed", 0),
                                         ("done", 1)),
                       f"{limit} descriptors", (got, state, runs))
        self.check(failed > 0, "with some of them it has begun")

    def hosts(self):
        """The line of cron, on three hosts at once."""
        for _ in range(5):
            name = self.name()
            runs = [self.launch(
                "once", name, "--keep", "3d", "-q", *self.noting(
                    name, "sleep 0.2; echo report")) for _ in range(3)]
            self.equal((sorted(run.ends() for run in runs), self.runs(name)),
                       ([(0, "", ""), (0, "", ""), (0, "report\n", "")], 1),
                       "three hosts: one of them runs it and mails")


if __name__ == "__main__":
    sys.exit(play(
        Room, *(part(*table) for table in TABLES.items()), Room.left_running,
        Room.unanswered, Room.in_progress, Room.outputs, Room.at_terminal,
        Room.stuck_reader, Room.lost, Room.silence,
        Room.answered_after_a_signal, Room.denied,
        Room.interrupted, Room.few_descriptors, Room.hosts,
        options=("--appendonly", "yes", "--appendfsync", "always")))
