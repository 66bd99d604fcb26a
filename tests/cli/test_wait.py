#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_wait.py NXLOCK: a lock that is busy is skipped or waited for, and -v
says why. Without -v and a terminal nothing is printed, because cron mails
whatever a job prints.
"""

import os
import re
import signal
import sys
import time

from rig import Cases, Server, await_, play

TOKEN = "6fa459ea-ee8a-4ca4-894e-db77e160355e@db7:41233:backup"
WAITING = "nxlock: waiting for 'w': held by db7:41233:backup, "

class Room(Cases):
    def hold(self, value=TOKEN, ms=100000):
        self.server.cli("SET", "w", value, "PX", str(ms))

    def attempted(self, more=1):
        before = self.attempts()
        return await_(lambda: self.attempts() >= before + more)

    def ended(self, given, launched, code, out="", *said):
        """As gives(), with a line for each of said, in this order."""
        _, err = launched.gives(given, code, out, *said)
        lines = err.splitlines()
        self.check(len(lines) == len(said) and
                   all(map(str.__contains__, lines, said)),
                   f"{given}: a line for each", err)

    def not_run(self, given, launched, code, *said):
        launched.gives(given, code, "", *said)
        self.check(not self.has("started"), f"{given}: CMD is not started")

    def waits(self):
        self.hold("stranger")
        run = self.launch("run", "w", "--", "echo", "ran")
        self.check(self.attempted() and run.is_running(),
                   "a waiter tries and goes on")
        self.server.cli("DEL", "w")
        self.ended("a waiter, when the lock is free", run, 0, "ran\n")
        self.hold("stranger", 300)
        self.gives("a lease that ends", "run w -w 5 -- echo ran", 0, "ran\n")
        self.hold("stranger")
        began = time.monotonic()
        self.gives("busy", "run w -w 600ms -- true", 75)
        took = time.monotonic() - began
        self.check(0.55 <= took < 2.5, "run -w 600ms: how long that is", took)
        run = self.launch("run", "w", "--", "echo", "ran", preexec_fn=lambda:
                       signal.signal(signal.SIGHUP, signal.SIG_IGN))
        tries = self.attempted()
        run.send(signal.SIGHUP)
        self.check(tries and self.attempted(),
                   "a HUP that is ignored does not end a wait")
        self.server.cli("DEL", "w")
        self.ended("a waiter after a HUP", run, 0, "ran\n")

    def verbose(self):
        self.hold(ms=30000)
        began = time.monotonic()
        run = self.launch("run", "w", "-v", "--", "echo", "done")
        self.check(run.says(rf"^{WAITING}[23]\ds left\n$") and
                   time.monotonic() - began >= 0.9,
                   "run -v says for whom it waits, after a second")
        self.attempted(8)  # that takes longer than another second
        self.server.cli("DEL", "w")
        self.ended("run -v, which waited", run, 0, "done\n", WAITING,
                   "acquired 'w' after waiting", "released 'w'")
        self.hold(ms=30000)
        held = "'w' is held by db7:41233:backup, "
        self.ended("run -v -w 1500ms, still busy", self.launch(
            "run", "w", "-v", "-w", "1500ms", "--", "true"), 75, "",
            WAITING, held)
        self.ended("run -v -w 300ms, still busy", self.launch(
            "run", "w", "-v", "-w", "300ms", "--", "true"), 75, "", held)
        self.ended("wait -v -w 1s, still held", self.launch(
            "wait", "w", "-v", "-w", "1s"), 75, "", WAITING, held)
        acquire = self.launch("acquire", "w", "-v")
        self.check(acquire.says(WAITING), "acquire -v says for whom it waits")
        self.server.cli("DEL", "w")
        code, out, _ = acquire.ends()
        self.equal((code, out.encode()), (0, self.server.cli("GET", "w")),
                   "acquire -v prints the token alone")
        self.server.cli("DEL", "w")

    def at_terminal(self):
        """A person is told who has the lock, without -v; nobody else is."""
        holder = r"db7:41233:backup, \d+s left\n"
        waiting, held = f"nxlock: waiting for 'w': held by {holder}", \
            f"nxlock: 'w' is held by {holder}"
        url = f"unix://{self.path('nothing')}"
        self.hold()
        for words, code, screen in (
                ("run w -w 1500ms -- true", 75, waiting + held),
                ("run w -n -- true", 75, held),
                (f"run w -w 1500ms -u {url} -- true", 69,
                 f"nxlock: waiting for 'w': .*{url[7:]}.*\n"
                 f"nxlock: cannot acquire 'w': .*{url[7:]}.*\n"),
                ("run free -- echo done", 0, "done\n")):
            got, text = self.on_terminal(*words.split())
            self.check(got == code and re.fullmatch(screen, text),
                       f"at a terminal: {words}: {code}",
                       f"{got}\n{text}\nnot {screen}")
        with open(os.devnull, "wb") as elsewhere:
            self.equal(self.on_terminal(*"run w -w 1500ms -- true".split(),
                                        stderr=elsewhere), (75, ""),
                       "standard error is elsewhere: nothing at the terminal")
        self.server.cli("DEL", "w")

    def looks(self):
        """The end of a lease is not slept through by wait, and before it the
        server is hardly asked."""
        self.hold(ms=1500)
        self.server.cli("CONFIG", "RESETSTAT")
        self.gives("a lease that ends", "wait w", 0)
        count = self.calls("eval", "evalsha")
        self.check(count <= 12, "wait: how often the server is asked", count)

    def frozen(self):
        self.hold()
        self.server.freeze()
        self.not_run("a server that does not answer", self.launch(
            "run", "w", "-n", "-u", self.server.url + "?timeout_ms=100", "--",
            "touch", self.path("started")), 69, "cannot acquire 'w'")
        wait = self.launch("wait", "w", "-v", "-u", self.server.url +
                           "?timeout_ms=100")
        self.check(wait.says("waiting for 'w'"), "wait -v says so")
        self.server.thaw()
        self.check(wait.says("waiting for 'w': held by") and
                   self.attempted(3), "it is asked again, several times")
        self.server.cli("DEL", "w")
        self.ended("wait -v, when the server answers again", wait, 0, "",
                   "waiting for 'w'", "the server answers again",
                   "waiting for 'w': held by", "'w' is free")

    def loading(self):
        """200 keys at 20 ms each, and it looks around after each of them."""
        with Server("--rdbcompression", "no") as slow:
            slow.cli("EVAL", "for i = 1, 200 do redis.call('SET', 'filler' .. "
                     "i, string.rep('x', 1000)) end", "0")
            slow.cli("SAVE")
            slow.kill()
            os.unlink(slow.socket)
            slow.options += (
                "--key-load-delay", "20000",
                "--loading-process-events-interval-bytes", "1024")
            slow.start()
            self.check(await_(lambda: b"LOADING" in slow.cli("GET", "w")),
                       "a server is loading")
            self.not_run("a server is loading", self.launch(
                "run", "w", "-n", "-u", slow.url, "--", "touch",
                self.path("started")), 69, "LOADING")
            self.gives("a server is loading", f"status w -u {slow.url}", 69, "",
                       "LOADING")
            run = self.launch("run", "w", "-w", "60", "-u", slow.url, "--",
                              "true")
            self.check(b"LOADING" in slow.cli("GET", "w"), "it still loads")
            run.gives("a server is loading", 0, "", "LOADING")
            self.check(slow.is_free("w"), "it has loaded: the lock is free")

    def becomes_a_list(self):
        """A key that is used for something else will never be free."""
        for when in "before", "after":
            self.hold("stranger")
            run = self.launch("run", "w", "-v", "--", "touch",
                           self.server.folder + "/started")
            if when == "after":
                run.says("waiting for 'w'")
            self.server.cli("EVAL", "redis.call('DEL', KEYS[1]) return "
                            "redis.call('RPUSH', KEYS[1], 'element')", "1", "w")
            code, _, err = run.ends()
            self.check(code == 69 and not self.has("started") and
                       self.server.cli("LLEN", "w") == b"1\n",
                       f"a list that comes {when} the first message ends the "
                       "wait", err)
        self.server.cli("DEL", "w")

    def refused_grants(self):
        run = self.launch("run", "w", "-v", "-u", self.server.url +
                       "?wait_replicas=1&wait_ms=50", "--", "true")
        self.check(run.says("waiting for 'w', which is not held: 0 of 1 "
                            "replica had"), "run -v says why no grant counts")
        run.send(signal.SIGTERM)
        code, _, err = run.ends()
        self.check(code == 128 + signal.SIGTERM and
                   self.server.cli("EXISTS", "w") == b"0\n",
                   "grants that do not count: TERM ends the wait, no key stays",
                   (code, err))

    def stop(self):
        self.server.kill()
        os.unlink(self.server.socket)

    def unreachable(self):
        """A server that cannot be asked is waited for like a lock."""
        run = ["run", "w", "--", "echo", "used"]
        for given, is_there, words in (
                ("a server that goes", True, [*run[:2], "-v", *run[2:]]),
                ("a server that goes", True, ["wait", "w", "-v"]),
                ("a server that is not there", False,
                 [*run[:2], "-v", *run[2:]]),
                ("a server that is not there, no -v", False, run)):
            if is_there:
                self.hold()
            else:
                self.stop()
            before = self.attempts()
            run = self.launch(*words[:2], "-u", self.server.url +
                              "?timeout_ms=300", *words[2:])
            if is_there:
                await_(lambda before=before: self.attempts() > before)
                self.stop()
            verbose = "-v" in words
            if verbose:
                self.check(run.says("waiting for 'w': .*" + self.server.socket),
                           f"{given}: {words[0]} -v says so")
            else:
                await_(run.handles_signals)
            self.check(run.is_running(), f"{given}: {words[0]} waits")
            self.server.start()
            await_(self.server.answers)
            code, out, err = run.ends()
            self.check((code, out) == (0, "used\n" * (words[0] == "run")) and
                       bool(err) == verbose and
                       err.count("cannot connect") == verbose and
                       self.is_free("w"),
                       f"{given}: {words[0]} ends when that is back",
                       (code, out, err))


if __name__ == "__main__":
    sys.exit(play(Room, Room.waits, Room.verbose, Room.at_terminal, Room.looks,
                  Room.frozen, Room.loading, Room.becomes_a_list,
                  Room.refused_grants, Room.unreachable))
