#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_line.py NXLOCK: waiting in line, from outside. Who waits is shown
without what would let another take the place, and what the line keeps on the
server is no lock.
"""

import json
import os
import re
import sys
import time

from rig import Cases, Relay, Server, play

UUID = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
TOKEN = UUID + "@db7:41233:backup"
MINUTE = 60 * 32  # in ticks of the line's clock

# KEYS: the line; ARGV, for each waiter: member, ticks since it was last seen.
JOIN = """
redis.replicate_commands()
local time = redis.call('TIME')
local now = time[1] * 32 + math.floor(time[2] / 31250)
for i = 1, #ARGV, 2 do
    local seen = (now - ARGV[i + 1]) % 4194304
    local ticket = redis.call('ZCARD', KEYS[1]) + 1
    redis.call('ZADD', KEYS[1],
        string.format('%.0f', ticket * 4194304 + seen), ARGV[i])
end
return redis.call('ZCARD', KEYS[1])
"""


def token(number, label=""):
    return f"{number:08x}-ee8a-4ca4-894e-db77e160355e{label}"


def member(number, label="", window=MINUTE):
    return f"{token(number, label)} - 60000 {window}"


class Slow(Relay):
    """A way to the server on which each answer takes half a second."""

    def answers(self, data):
        time.sleep(0.5)
        return data


HELD = r"x held by db7:41233:backup, \d+s left"
ONE = ((member(1), 0),)
KINDS = ((member(1, "+2/4@a:1:b"), 0), (member(2, "+1/0"), 32),
         (member(3, "@c:3:d", 31), 20 * 32), ("of another kind", 0),
         (member(4, "@e\t:4:f"), 0), (member(5, "@g\n"), 0))
DEAD = ((member(1, "@dead", 1), 640),)
NEXT = (*DEAD, (member(2, "@next"), 0))


def crowd(count):
    return [(member(i, f"@w{i}"), 0) for i in range(1, count + 1)]


# Who waits, and what status and status -v say.
SHOWN = (
    ("nobody", (), HELD, ""),
    ("of all kinds", KINDS, HELD + ", 2 waiting",
     r"  line: 2 waiting\n"
     r"    1\. a:1:b, 2 of 4 permits, seen [\d.]+m?s ago\n"
     r"    2\. 00000002\.\.\. \(no label\), shared, seen [\d.]+s ago\n"
     r"    3\. c:3:d, seen [\d.]+s ago: dead, will be passed over\n" +
     "".join(rf"    {i}\. \?, seen [\d.]+m?s ago: dead, will be passed over\n"
             for i in (4, 5, 6))),
    ("twenty", crowd(20), HELD + ", 20 waiting",
     r"  line: 20 waiting\n(    \d+\. w\d+, [^\n]*\n){20}"),
    ("one more than is shown", crowd(21), HELD + ", 21 waiting",
     r"  line: 21 waiting\n(    \d+\. w\d+, [^\n]*\n){20}    and 1 more\n"),
    ("more than are read, all dead",
     [(member(i, "@" + "w" * 128, 1), 320) for i in range(1200)],
     HELD + ", 200 waiting", "  line: 200 waiting\n.*    and 1180 more\n"),
)
# The name, the lock's key, its line's key, more options.
KEYS = (
    ("a{b}c", "a{b}c", "a{b}c::nxl-l"), ("a{}c", "a{}c", "{a{}c}:nxl-l"),
    ("x", "p:x", "{p:x}:nxl-l", "--prefix", "p:"),
    ("x", "{p}x", "{p}x::nxl-l", "--prefix", "{p}"),
    ("a\tb\nc", "a\tb\nc", "{a\tb\nc}:nxl-l"),
)
# What is kept beside the line.
BESIDE = "{x}:nxl-w", "{x}:nxl-g"


class Room(Cases):
    def waiters(self):
        return self.server.cli("ZCARD", "{x}:nxl-l")

    def begin(self, waiters=(), key="x", line="{x}:nxl-l"):
        """Held, and these wait: (member, ticks since it was seen)."""
        self.server.cli("FLUSHALL")
        self.server.cli("SET", key, TOKEN, "PX", "100000")
        words = [str(word) for waiter in waiters for word in waiter]
        if words:
            self.server.cli("EVAL", JOIN, "1", line, *words)

    def there(self, key="x"):
        return self.server.cli("GET", key).decode().rstrip("\n")

    def states(self):
        for given, waiters, state, line in SHOWN:
            self.begin(waiters)
            self.gives(given, "status x", 0, state + "\n")
            self.gives(given, "status x -v", 0,
                       rf"{state}\n  server: [^\n]*\n{line}")
        self.begin(((member(1, "@a"), 0),))
        self.server.cli("DEL", "x")
        self.gives("free, but one waits", "status x", 1, "x free\n")
        self.gives("free, but one waits", "status x -v", 1,
                   r"x free, 1 waiting\n.*1\. a, .*")
        for name, key, line, *words in KEYS:
            self.begin(ONE, key=key, line=line)
            self.gives(f"the line {line!r}", ["status", name, *words], 0,
                       r"[^\n\t]*, 1 waiting\n")
        with Server() as second, Server() as third:
            self.begin(ONE)
            second.cli("SET", "x", TOKEN, "PX", "100000")
            self.gives("several servers have no line", [
                "status", "x", "-v", "-u", self.server.url, "-u", second.url,
                "-u", third.url], 0,
                lambda out: "waiting" not in out and "  line" not in out)

    def as_json(self):
        self.begin(((member(1, "@a:1:b"), 64), (member(2, "", 31), 64)))
        out, _ = self.gives("two wait", "status x --json", 0, ".*")
        answer = json.loads(out)
        seen = [waiter.pop("seen_ms") for waiter in answer["line"]]
        self.equal((answer["waiting"], answer["line"]), (1, [
            {"place": 1, "label": "a:1:b", "host": "a", "pid": 1,
             "program": "b", "owner": "00000001"},
            {"place": 2, "owner": "00000002", "dead": True}]),
            "two wait: their members in JSON")
        self.check(all(2000 <= ms < 60000 for ms in seen),
                   "two wait: seen_ms in JSON", seen)
        self.begin()
        self.gives("nobody", "status x --json", 0,
                   r'.*"waiting":0,"line":\[\].*')

    def low(self, *without):
        """The URL of a user who may do all but that."""
        self.server.cli("ACL", "SETUSER", "low", "on", ">Zqx7", "~*", "&*",
                        "+@all", *without)
        os.environ["NXLOCK_PASSWORD"] = "Zqx7"
        return f" -u unix://low@{self.server.socket}"

    def denied(self):
        if not self.may_use_acl(self.server, "who may not see the line"):
            return
        self.begin(ONE)
        given, url = "who may not see the line", self.low("-zcard")
        self.gives(given, "status x" + url, 0, HELD + "\n")
        self.gives(given, "status x -v" + url, 0,
                   HELD + r"\n.*  line unknown: .*zcard.*")
        self.gives(given, "status x --json" + url, 0,
                   '.*"waiting":null,"waiting_unknown":"[^"]*zcard.*')
        self.gives(given, "unlock x --force --yes" + url, 0, "", "held by")
        self.check(self.there() != TOKEN, given + ": unlock removes the lock")
        self.begin(ONE)
        self.gives("who may not empty the line", "unlock x --line -y" +
                   self.low("-zcard", "-del"), 77, "",
                   "cannot empty the line of 'x': ")
        self.equal(self.waiters(), b"1\n", "who may not empty it: it stays")
        del os.environ["NXLOCK_PASSWORD"]

    def removed(self):
        """Who waits has the lock then, and what was said of that is true."""
        for options, said in (("--force -y", "s left, 1 waiting\n"),
                              (f"--token {TOKEN}", "'x'")):
            self.begin(NEXT)
            _, err = self.gives("a dead one and a live one wait",
                                f"unlock x {options}", 0, "", said)
            now = self.there()
            wanted = "'x' was removed, and is now " + (
                "held by next, " if now == token(2, "@next") else
                "free; the first in line takes it")
            self.check(now != TOKEN and wanted in err,
                       f"unlock x {options}: who has it now", (now, err))
        self.begin(DEAD)
        self.gives("only a dead one waits", f"unlock x --token {TOKEN}", 0)
        self.begin(NEXT)
        for key in BESIDE:
            self.server.cli("SET", key, "1", "PX", "60000")
            self.gives("beside the line", f"unlock {key} --force -y", 69, "",
                       "not a lock: ")
        self.gives("the line itself", "unlock {x}:nxl-l --force -y", 69, "",
                   "{x}:nxl-l")
        self.equal((self.there("{x}:nxl-w"), self.waiters()), ("1", b"2\n"),
                   "unlock: the line and its mark stay")

    def emptied(self):
        for words in "--force", f"--token {TOKEN}":
            self.begin(ONE)
            self.gives("one waits", f"unlock x --line {words}", 64, "",
                       "exclude each other")
        self.gives("one waits, no terminal", "unlock x --line", 64, "",
                   "'x' has 1 in line", "--yes to empty the line anyway")
        self.equal(self.waiters(), b"1\n", "refused: it still waits")
        self.gives("one waits", "unlock x --line --yes", 0, "",
                   "the line of 'x' was emptied; who still")
        self.begin(ONE)
        for keys, code, left in ((b"n\n", 75, b"1\n"), (b"y\n", 0, b"0\n")):
            got, _ = self.on_terminal("unlock", "x", "--line", keys=keys)
            self.equal((got, self.waiters()), (code, left),
                       f"unlock x --line, the answer {keys}: code and waiters")
        self.equal(self.there(), TOKEN, "unlock x --line: the lock stays")
        self.gives("nobody waits", "unlock x --line --yes", 1, "",
                   "the line of 'x' is empty\n")
        self.begin(ONE, key="p:a{b}c", line="p:a{b}c::nxl-l")
        self.gives("a tag and a prefix", "unlock a{b}c --line -y --prefix p:",
                   0, "", "was emptied")
        self.equal(self.server.cli("KEYS", "*"), b"p:a{b}c\n",
                   "a tag and a prefix: only the line is removed")

    def not_listed(self):
        self.begin(ONE)
        for key in BESIDE:
            self.server.cli("SET", key, "1", "PX", "60000")
        self.gives("one waits", "list", 0, r"x\t[^\n]*\n")
        self.gives("one waits", "list --json", 0, r'[^\n]*"name":"x"[^\n]*\n')

    def left_at_the_end(self):
        """The time left is that of now, though the line was read after it."""
        with Slow(self.server) as slow:
            for words in "", " --json":
                self.begin(ONE)
                out, _ = self.gives(
                    "a slow server", f"status x{words} -u {slow.url}"
                    "?timeout_ms=10000", 0, ".*held.*waiting.*")
                left = (json.loads(out)["left_ms"] if words else
                        1000 * int(re.search(r" (\d+)s left", out)[1]))
                now = int(self.server.cli("PTTL", "x"))
                self.check(left < now + 2000, f"a slow server: status{words}: "
                           "the time left is that of the end",
                           f"{out}\n{now} ms are left")

    def wait(self):
        self.begin()
        self.gives("nobody waits", "wait x -w 1500ms", 75)
        self.equal(self.server.cli("KEYS", "*"), b"x\n", "wait joins no line")
        self.begin(ONE)
        self.server.cli("PEXPIRE", "x", "300")
        self.gives("one waits, a lease ends", "wait x -w 20", 0)
        self.equal(self.waiters(), b"1\n", "wait leaves the line as it was")

    def verbose(self):
        """What run -v says of a wait costs no request: it cannot delay it. And
        it says that it does not wait in line, and why."""
        counts = []
        for more in (), ("-v",):
            self.begin(ONE)
            self.server.cli("CONFIG", "RESETSTAT")
            self.gives("a wait", ["run", "x", *more, "-w", "1500ms", "--",
                                  "true"], 75, "", *(
                                      more and ("waiting", "s left\n")))
            counts.append(re.search(
                r"total_connections_received:(\d+)",
                self.server.cli("INFO", "stats").decode())[1])
        self.equal(counts[1], counts[0], "run -v: no more connections")
        self.begin()
        self.gives("a wait", f"run x -v -w 1500ms -u {self.server.url}?poll=1"
                   " -- true", 75, "", "s left; waits by polling (poll=1)\n")


if __name__ == "__main__":
    sys.exit(play(Room, Room.states, Room.as_json, Room.denied, Room.removed,
                  Room.emptied, Room.not_listed, Room.left_at_the_end,
                  Room.wait, Room.verbose))
