#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_also.py PATH-OF-NXLOCK

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

from rig import Cases, await_, nx, play

TOKEN = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
MANY = " ".join(f"--also n{i}" for i in range(64))

# What is in place before, the command line, its exit code, words that it says
# in this order. {n} is nxlock, {t} the token under which "a --also b" is held.
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
    (FREE, "run a --also b --ttl 1s -v -- sleep 2", 0,
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
    (OTHER, "run c --also b --also a -w 1500ms -v -- true", 75,
     "waiting for 'b': held by", "'b' is held by"),
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
    (BOTH, "renew b --also a {t} --ttl 40s -v", 0, "renewed 'b' and 'a', 39."),
    (BOTH, "release b --also a {t} -v", 0, "released 'b' and 'a'"),
    (BOTH, "renew a --also c {t}", 79, "cannot renew 'a' and 'c'",
     "'c': the lock is free"),
    (BOTH, "release a --also c {t} -v", 79, "released 'a'",
     "cannot release 'c'", "nxlock status c"),
    (OTHER, f"release a --also b {TOKEN}", 79, "cannot release 'a'",
     "cannot release 'b'"),
    # An enclosing run that waits for the inner one.
    (FREE, "run a --also b -- {n} run b -- true", 64, "'b' is held by the "
     "enclosing", "deadlock"),
    (FREE, "run b -- {n} run a --also b -- true", 64, "'b' is held by the "
     "enclosing"),
    (ONE, "run b -- {n} run a --also b -- true", 64, "'b' is held by the "
     "enclosing"),
    (FREE, "run b -- {n} wait a --also b", 64, "'b' is held by the enclosing"),
    (FREE, "run a --also b -- {n} run c --also b -w 50ms -- true", 75),
    (FREE, "run a --also b -- {n} run c --also d -- true", 0),
    (FREE, "run a --also b -s -- {n} run b --also a -s -- true", 0),
)

# The option, the end of the token, and whether there are fencing tokens.
KINDS = (("", "", True), ("-s", "+1/0", True),
         ("--permits 4 --weight 3", "+3/4", False))


class Room(Cases):
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
        return out.strip()

    def cases(self):
        for state, words, wanted, *said in CASES:
            token = self.prepare(state)
            before = self.locks()
            code, _, err = self.nx(words.format(
                n=self.program, t=token, url=self.server.url))
            spoken = re.search(".*".join(map(re.escape, said)), err, re.S)
            name = f"{f'[{state}] ' if state else ''}{words[:70]}: {wanted}"
            self.check(code == wanted and spoken, name, (code, err, said))
            if not words.startswith(("release", "acquire")):
                self.equal(self.locks(), before, name + ", the locks are as "
                           "they were")

    def held(self):
        """What CMD has, and what others meet while it runs."""
        for option, share, fenced in KINDS:
            self.server.cli("FLUSHALL")
            outer = {**os.environ, "NXLOCK_FENCE": "7", "NXLOCK_NAME_3": "x",
                     "NXLOCK_FENCE_2": "8", "NXLOCK_FENCE_64": "9"}
            code, out, err = self.nx(
                f"run b --also a {option} --prefix p: -- env", env=outer)
            got = dict(re.findall(r"^(NXLOCK_\w+)=(.*)$", out, re.M))
            wanted = {"NXLOCK_NAME": "b", "NXLOCK_KEY": "p:b",
                      "NXLOCK_NAME_COUNT": "2",
                      "NXLOCK_NAME_1": "b", "NXLOCK_KEY_1": "p:b",
                      "NXLOCK_NAME_2": "a", "NXLOCK_KEY_2": "p:a"}
            name = f"run b --also a {option}:"
            self.equal({key: got.get(key) for key in wanted}, wanted,
                       f"{name} the names and keys")
            numbers = [key for key in got if key.startswith("NXLOCK_FENCE")]
            self.equal(sorted(numbers), ["NXLOCK_FENCE_1", "NXLOCK_FENCE_2"]
                       if fenced else [], f"{name} the fencing tokens")
            self.check(not fenced or min(int(got[key]) for key in numbers) > 9,
                       f"{name} they are the server's", got)
            self.check(share in got.get("NXLOCK_TOKEN", "?") and code == 0,
                       f"{name} the token", (code, got, err))
            self.check("NXLOCK_NAME_3" not in got,
                       f"{name} nothing of an enclosing run is left", got)

    def excludes(self):
        for option, *_ in KINDS:
            self.server.cli("FLUSHALL")
            inner = " ; ".join(
                f"{self.program} run {name} -n -E 9 -- true ; echo $?"
                for name in ("a", "b", "c"))
            _, out, err = self.nx(f"run b --also a {option} -c '{inner}'")
            self.equal(out.split(), ["9", "9", "0"],
                       f"run b --also a {option}: both are held while CMD runs")
            self.equal(self.locks(), [], "and free afterwards" + err)

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
        run = self.start("run a --also b -- true")
        self.become(["a", "b"], "a waiter for b holds a")
        run.send(signal.SIGTERM)
        run.gives("TERM during a wait for b", 143)
        self.equal(self.locks(), ["b"], "TERM during a wait: a is given back")

    def lost(self):
        for name in ("a", "b"):
            self.server.cli("FLUSHALL")
            run = self.hold("a --also b --ttl 1s")
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

    def at_least(self):
        self.server.cli("FLUSHALL")
        code, _, err = self.nx("run a --also b --at-least 1h -v -- true")
        self.check(code == 0 and "'a' and 'b' stay locked for" in err,
                   "--at-least keeps both", (code, err))
        self.equal(self.locks(), ["a", "b"], "both are held")
        self.server.cli("FLUSHALL")
        code, _, err = self.nx("run a --also b --at-least 1h -- /no/command")
        self.equal((code, self.locks()), (127, []),
                   "but not if nothing ran: " + err)

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
        self.equal(sorted(set(codes)), [0],
                   f"a and b, b and a, {times} times: no deadlock, no overlap")
        self.equal(len(self.text("held")), 2 * times, "each ran once")
        self.equal(self.locks(), [], "nothing is left")


if __name__ == "__main__":
    sys.exit(play(Room, Room.cases, Room.held, Room.excludes, Room.killed,
                  Room.signalled, Room.lost, Room.one_refused, Room.waits_again,
                  Room.at_least, Room.events, Room.crossing))
