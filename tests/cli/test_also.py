#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_also.py NXLOCK

Several names in one command (--also), on a real server: which command lines are
refused, what is held while CMD runs, what is left when names are busy, lost or
their holder is killed, and that runs with crossing names end.
"""

import json
import os
import re
import shlex
import signal
import sys
import threading

from rig import await_, nx, play
from table import Table, part

TOKEN = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
MANY = " ".join(f"--also n{i}" for i in range(64))

# What is in place before, and a row. {token} is that of "a --also b".
FREE, BOTH, ONE, OTHER = "", "a --also b", "a", "b"
CASES = (
    # Command lines that are refused.
    (FREE, "run a --also a -- true", 64, "--also 'a'", "NAME already"),
    (FREE, "run --also a --name a -- true", 64, "--also 'a'", "NAME already"),
    (FREE, "run a --also b --also c --also b -- true", 64,
     "--also 'b' is given twice"),
    (FREE, "acquire a --also a", 64, "NAME already"),
    (FREE, "wait a --also a", 64, "NAME already"),
    (FREE, f"release a --also a {TOKEN}", 64, "NAME already"),
    (FREE, f"renew a --also b --also b {TOKEN}", 64, "given twice"),
    (FREE, "run a --also= -- true", 64, "--also has an empty value"),
    (FREE, "run a --also", 64, "--also needs a value: --also NAME"),
    (FREE, "run --also a -- true", 64, "NAME is missing"),
    (FREE, f"run a {MANY} -- true", 64,
     "--also is given more than 63 times", "at most 64 names"),
    (FREE, f"release a --also {TOKEN}@x {TOKEN}", 64,
     "a token was given instead of the name of --also"),
    (FREE, "once a --also b -- true", 64, "once has no option '--also'",
     "one piece of work"),
    (FREE, "run a --also b --every 1h -- true", 64, "--also and --every"),
    (FREE, "status a --also b", 64, "status has no option '--also'"),
    (FREE, "unlock a --also b --force", 64, "unlock has no option '--also'"),
    (FREE, "run a b -- true", 64, "unexpected 'b' after NAME"),
    (FREE, "run a --also b true", 64, "nxlock run a --also b -- true"),
    (FREE, "run a --also b -s --permits 2 -- true", 64,
     "--shared (-s) and --permits exclude"),
    (FREE, "run a --also b --permits 2 -u {url} -u {url}x -- true", 64,
     "permits is above 1 with several servers: "),
    # A lease of which half may be gone when the last name is granted.
    (FREE, "run a --also b --ttl 30s --grace 12s -- true", 64,
     "too short for --grace 12s", "--grace 10.6s or less"),
    (FREE, "run a --ttl 30s --grace 12s -- true", 0),
    # Free names.
    (FREE, "run a --also b -v -- true", 0, "acquired 'a' and 'b' at once",
     "released 'a' and 'b', held for"),
    (FREE, "run b --also c --also a -v -- true", 0,
     "acquired 'b', 'c' and 'a' at once"),
    (FREE, "run e --also d --also c --also b --also a -v -- true", 0,
     "acquired 'e', 'd', ... and 'a' at once"),
    (FREE, "run a --also=--odd -v -- true", 0, "acquired 'a' and '--odd'"),
    (FREE, "run a --also b -n -- false", 1),
    (FREE, "run a --also b --ttl 2500ms -v -- sleep 1", 0,
     "renewed 'a' and 'b', ", "released 'a' and 'b'"),
    (FREE, "wait b --also a -v", 0, "'b' and 'a' are free; waited"),
    (FREE, "run a --also b --permits 3 --weight 2 -v -- true", 0,
     "acquired 'a' and 'b'"),
    (FREE, "run a --also b -s -v -- true", 0, "acquired 'a' and 'b'"),
    # The first, or the last, is busy.
    (ONE, "run a --also b -n -v -- true", 75, "'a' is held by"),
    (ONE, "run b --also a -n -v -- true", 75, "'a' is held by"),
    (OTHER, "run a --also b -n -v -- true", 75, "'b' is held by"),
    (OTHER, "run a --also b -n -E 3 -v -- true", 3, "'b' is held by"),
    (OTHER, "run a --also b -w 50ms -v -- true", 75, "'b' is held by"),
    (OTHER, "run c --also b --also a -w 50ms -v -- true", 75,
     "'b' is held by"),
    (OTHER, "acquire a --also b -n -v", 75, "'b' is held by"),
    (OTHER, "wait a --also b -w 50ms -v", 75, "waiting for 'b': held by",
     "'b' is held by"),
    (OTHER, "wait b --also a -w 50ms -v", 75, "'b' is held by"),
    (BOTH, "run c --also b -n -v -- true", 75, "'b' is held by"),
    (BOTH, "run b -n -v -- true", 75, "'b' is held by"),
    (BOTH, "run c --also d -n -- true", 0),
    (OTHER + " -s", "run a --also b -s -n -- true", 0),
    (OTHER + " -s", "wait a --also b -s -v", 0, "are free, or have room"),
    (OTHER + " -s", "run a --also b -n -v -- true", 75,
     "'b' is held by", "shared"),
    # A key that is no lock.
    ("SET b data", "run a --also b -- true", 69, "cannot acquire 'b'",
     "not a lock"),
    ("SET b data", "run a --also b -n -- true", 69, "cannot acquire 'b'"),
    ("SET b data", "wait a --also b", 69, "cannot wait for 'b'"),
    ("LPUSH b data", "run a --also b -n -- true", 69, "cannot acquire 'b'"),
    ("LPUSH b data", "wait a --also b", 69, "cannot look at 'b'"),
    # By the token.
    (BOTH, "renew b --also a {token} --ttl 40s -v", 0,
     "renewed 'b' and 'a', 3"),
    (BOTH, "release b --also a {token} -v", 0, "released 'b' and 'a'"),
    (BOTH, "renew a --also c {token}", 79, "cannot renew 'a' and 'c'",
     "'c': the lock is free"),
    (BOTH, "release a --also c {token} -v", 79, "released 'a'",
     "cannot release 'c'", "nxlock status c"),
    (OTHER, f"release a --also b {TOKEN}", 79, "cannot release 'a'",
     "cannot release 'b'"),
    # An enclosing run that waits for the inner one.
    (FREE, "run a --also b -- {nx} run b -- true", 64, "'b' is held by the "
     "enclosing", "deadlock"),
    (FREE, "run b -- {nx} run a --also b -- true", 64, "'b' is held by the "
     "enclosing"),
    (ONE, "run b -- {nx} run a --also b -- true", 64, "'b' is held by the "
     "enclosing"),
    (FREE, "run b -- {nx} wait a --also b", 64, "'b' is held by the enclosing"),
    (FREE, "run a --also b -- {nx} run c --also b -w 50ms -- true", 75),
    (FREE, "run a --also b -- {nx} run c --also d -- true", 0),
    (FREE, "run a --also b -s -- {nx} run b --also a -s -- true", 0),
)

# What CMD has, in the environment of another run, and that both are held for
# it: the option, the end of the token, and whether there are fencing tokens.
OUTER = "NXLOCK_FENCE=7 NXLOCK_NAME_3=x NXLOCK_FENCE_2=8 NXLOCK_FENCE_64=9"
HELD = tuple(row for option, share, fenced in (
    ("", "", True), ("-s", r"\+1/0", True),
    ("--permits 4 --weight 3", r"\+3/4", False)) for row in (
        ("db FLUSHALL", "OK"),
        (f"{OUTER} run b --also a {option} --prefix p: -- env", 0,
         "NXLOCK_NAME=b\n", "NXLOCK_KEY=p:b\n", "NXLOCK_NAME_COUNT=2\n",
         "NXLOCK_NAME_1=b\n", "NXLOCK_KEY_1=p:b\n", "NXLOCK_NAME_2=a\n",
         "NXLOCK_KEY_2=p:a\n", "!NXLOCK_NAME_3", "!NXLOCK_FENCE=",
         "!NXLOCK_FENCE_64", f"~NXLOCK_TOKEN=\\S*{share}@.*",
         *((r"~NXLOCK_FENCE_1=\d\d+", r"~NXLOCK_FENCE_2=\d\d+") if fenced else
           ("!NXLOCK_FENCE",))),
        (f"run b --also a {option} -c 'for name in a b c; do {{nx}} run $name "
         "-n -E 9 -- true; echo $?; done'", 0, "=9\n9\n0\n"),
        ("db EXISTS a b c", "0")))
AT_LEAST = (
    ("run c --also d --at-least 1h -v -- true", 0,
     "'c' and 'd' stay locked for"),
    ("db EXISTS c d", "2"),
    ("run e --also f --at-least 1h -- /no/command", 127),
    ("db EXISTS e f", "0"))


class Room(Table):
    def nx(self, words, **more):
        done = nx(self.program, *shlex.split(words), **more)
        return (done.returncode, done.stdout.decode(), done.stderr.decode())

    def locks(self):
        """The keys that are held, without counters, lines and marks."""
        keys = self.server.cli("KEYS", "*").decode().split()
        return sorted(key for key in keys if not re.search(":(f|nxl-.)$", key))

    def prepare(self, state):
        """The token, if a lock is held."""
        self.server.cli("FLUSHALL")
        if state.split(" ")[0].isupper():
            self.server.cli(*state.split())
            return ""
        if not state:
            return ""
        code, out, err = self.nx(f"acquire {state}")
        if code != 0:
            self.check(False, f"acquire {state}", err)
        self.values["token"] = out.strip()
        return out.strip()

    def cases(self):
        for state, words, *row in CASES:
            self.prepare(state)
            before = self.locks()
            self.about = f"[{state}] " if state else ""
            self.row(words, *row)
            if not words.startswith(("release", "acquire")):
                self.equal(self.locks(), before, f"{words[:70]}: the locks are "
                           "as they were")

    def start(self, words, **more):
        return self.launch(*shlex.split(words), **more)

    def hold(self, words):
        """A run whose CMD has begun."""
        self.remove("began")
        run = self.start(f"run {words} -- sh -c ': > began; exec sleep 600'",
                         cwd=self.server.folder)
        await_(lambda: self.has("began"))
        return run

    def become(self, locks, name):
        """Waits until these are held."""
        self.check(await_(lambda: self.locks() == locks), name, self.locks())

    def killed(self):
        """After kill -9 both are free when the lease is over, and CMD ends."""
        self.server.cli("FLUSHALL")
        reader, writer = os.pipe()
        run = self.start("run a --also b --ttl 2s -- sh -c 'echo; exec sleep "
                         "600'", stdout=writer)
        os.close(writer)
        with open(reader, "rb", buffering=0) as output:
            output.read(1)
            self.become(["a", "b"], "kill -9: both were held")
            run.send(signal.SIGKILL)
            self.equal(output.read(), b"", "kill -9: CMD is ended")
        run.ends()
        self.become([], "kill -9: both become free")
        # While it waits for b, it holds a.
        self.prepare(OTHER)
        run = self.start("run a --also b --ttl 2s -- true")
        self.become(["a", "b"], "a waiter for b holds a")
        run.send(signal.SIGKILL)
        run.ends()
        self.become(["b"], "kill -9 of the waiter: a becomes free")

    def signalled(self):
        """A signal ends the wait, and gives back what was granted."""
        self.prepare(OTHER)
        run = self.start("run a --also b -v -- true")
        self.become(["a", "b"], "a waiter for b holds a")
        self.check(run.says("waiting for 'b': held by"),
                   "and says for which it waits")
        run.send(signal.SIGTERM)
        run.gives("TERM during a wait for b", 143, "", "waiting for 'b'")
        self.equal(self.locks(), ["b"], "TERM during a wait: a is given back")

    def lost(self):
        for name in ("a", "b"):
            self.server.cli("FLUSHALL")
            run = self.hold("a --also b --ttl 3s")
            self.server.cli("DEL", name)
            run.gives(f"{name} is removed", 79, "", "lost 'a' and 'b'",
                      f"'{name}': the key was removed")
            self.become([], f"{name} is removed: the other is released")

    def one_refused(self):
        """The renewal of one name is refused, and that of the other is not."""
        for bad, good in (("a", "b"), ("b", "a")):
            name = f"a renewal that is refused for {bad} alone"
            if self.may_use_acl(self.server, name):
                self.refuse(bad, good, name)

    def refuse(self, bad, good, name):
        self.server.cli("FLUSHALL")
        user = ("ACL", "SETUSER", "u", "reset", "on", ">p", "+@all")
        self.server.cli(*user, "~*")
        run = self.start("run a --also b --ttl 5s -v -u "
                         f"{self.server.url.replace('://', '://u:p@')} "
                         "-- sleep 600")
        run.says("acquired")
        self.server.cli(*user, "~" + good, "~{%s}:f" % good)
        refused = run.says("cannot renew 'a' and 'b': ")
        self.server.cli(*user, "~*")
        again = run.says("renewed 'a' and 'b' after all")
        run.send(signal.SIGTERM)
        code, _, err = run.ends()
        between = re.search(
            "cannot renew 'a' and 'b': '%s': .*\n(.*)\n" % bad, err)
        self.check(refused and again and code == 143 and between and
                   "after all" in between[1],
                   f"{name}: reported, until both are renewed", err)

    def waits_again(self):
        """wait looks again at a name that was free before."""
        first = self.prepare(OTHER)
        wait = self.start("wait a --also b -v")
        self.check(wait.says("waiting for 'b'"),
                   "wait: b is held, and a is free")
        second = self.nx("acquire a")[1].strip()
        self.check(wait.says("waiting for 'a'"),
                   "then a is held: it waits for that, too")
        self.nx(f"release b {first}")
        self.nx(f"release a {second}")
        wait.gives("then both are free", 0, "", "'a' and 'b' are free")

    def events(self):
        """--log json: all have the names, some the busy one."""
        for words, state, busy in (
                ("run b --also a", FREE, None),
                ("run b --also a -n", ONE, "a"), ("wait b --also a -w 1ms",
                                                  ONE, "a")):
            self.prepare(state)
            command = " -- true" if words.startswith("run") else ""
            _, _, err = self.nx(f"{words} --log json{command}")
            lines = [json.loads(line) for line in err.splitlines()]
            names = [[one["name"] for one in line["names"]] for line in lines]
            self.check(names and all(one == ["b", "a"] for one in names),
                       f"{words}: each event has the names", err)
            self.equal({line.get("busy") for line in lines} - {None},
                       {busy} - {None}, f"{words}: the busy name")
            for line in lines:
                if line["event"] == "acquired":
                    self.check(all(one["fence"] > 0 for one in line["names"]),
                               "acquired: the fencing tokens", line)
        self.server.cli("FLUSHALL")
        long = "".join(f" --also {i}{'x' * 200}" for i in range(40))
        _, _, err = self.nx(f"run a {long} --log json -- true")
        lines = [json.loads(line) for line in err.splitlines()]
        self.check(lines and all("names" not in line and line["message"]
                                 for line in lines),
                   "names that do not fit into one write are left out", err)

    def crossing(self, times=200 if os.environ.get("NXLOCK_FULL") else 50):
        """Two loops that name the same locks in opposite orders."""
        self.server.cli("FLUSHALL")
        file = self.write("held")
        # Fails if another one is inside.
        command = (f"mkdir {file}.d || exit 9; echo >> {file}; "
                   f"rmdir {file}.d")
        codes = []

        def loop(words):
            for _ in range(times):
                done = nx(self.program, *words, "-w", "30s", "-c", command)
                codes.append(done.returncode)

        threads = [threading.Thread(target=loop, args=(words,)) for words in (
            ("run", "a", "--also", "b"), ("run", "b", "--also", "a"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.excludes(9 not in codes, f"a and b, b and a, {times} times: "
                      "nobody else is inside")
        self.equal(sorted(set(codes)), [0], "no deadlock")
        self.equal(len(self.text("held")), 2 * times, "each ran once")
        self.equal(self.locks(), [], "nothing is left")


if __name__ == "__main__":
    sys.exit(play(Room, Room.cases, part("held", HELD),
                  part("at_least", AT_LEAST), Room.killed,
                  Room.signalled, Room.lost, Room.one_refused,
                  Room.waits_again, Room.events, Room.crossing))
