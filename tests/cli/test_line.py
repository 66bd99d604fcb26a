#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Waiting in line, from outside: who waits is shown without what would let
another take the place, and what the line keeps on the server is no lock.
Usage: test_line.py PATH-OF-NXLOCK
"""

import contextlib
import json
import os
import re
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True

from rig import Server, Tap, await_, clean_environment, nx
from terminal import CTRL_C, Terminal

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


class Slow:
    """A way to the server on which each answer takes half a second."""

    def __init__(self, server):
        self.server = server
        self.path = os.path.join(server.folder, "slow")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            ours, _ = self.listener.accept()
            theirs = socket.socket(socket.AF_UNIX)
            theirs.connect(self.server.socket)
            for one, other, delay in (ours, theirs, 0), (theirs, ours, 0.5):
                threading.Thread(target=self.pass_on, daemon=True,
                                 args=(one, other, delay)).start()

    @staticmethod
    def pass_on(one, other, delay):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                time.sleep(delay)
                other.sendall(data)
        other.close()


class Room(Tap):
    def __init__(self, program, server):
        super().__init__()
        self.program, self.server = program, server

    def waiters(self):
        return self.server.cli("ZCARD", "{x}:nxl-l")

    def begin(self, *waiters, key="x", line="{x}:nxl-l"):
        """Held, and these wait: (member, ticks since it was seen)."""
        self.server.cli("FLUSHALL")
        self.server.cli("SET", key, TOKEN, "PX", "100000")
        words = [str(word) for waiter in waiters for word in waiter]
        if words:
            self.server.cli("EVAL", JOIN, "1", line, *words)

    def there(self, key="x"):
        return self.server.cli("GET", key).decode().rstrip("\n")

    def nx(self, code, name, *words):
        """What it printed and said; no token is in that."""
        done = nx(self.program, *words)
        shown = done.stdout.decode() + done.stderr.decode()
        self.check(done.returncode == code, name,
                   f"{done.returncode}: {shown}")
        self.check("-ee8a-4ca4-" not in shown, "no token is shown", shown)
        return done.stdout.decode(), done.stderr.decode()

    def words(self):
        self.begin((member(1, "+2/4@a:1:b"), 0), (member(2, "+1/0"), 32),
                   (member(3, "@c:3:d", 31), 20 * 32), ("of another kind", 0),
                   (member(4, "@e\t:4:f"), 0), (member(5, "@g\n"), 0))
        out = self.nx(0, "status", "status", "x")[0]
        self.check(re.fullmatch(
            r"x held by db7:41233:backup, \d+s left, 2 waiting\n", out),
            "says how many wait, without the dead", out)
        out = self.nx(0, "status -v", "status", "x", "-v")[0]
        line = re.sub(r"\b\d+ms", "0s", out[out.index("  line:"):])
        line = re.sub(r"(\d)\.\ds", r"\1s", line)
        self.equal(line, "  line: 2 waiting\n"
                   "    1. a:1:b, 2 of 4 permits, seen 0s ago\n"
                   "    2. 00000002... (no label), shared, seen 1s ago\n"
                   "    3. c:3:d, seen 20s ago: dead, will be passed over\n"
                   + "".join(f"    {place}. ?, seen 0s ago: "
                             "dead, will be passed over\n"
                             for place in (4, 5, 6)),
                   "shows each in order")
        self.begin()
        out = self.nx(0, "without a line", "status", "x", "-v")[0]
        self.check("waiting" not in out and "line:" not in out,
                   "none is spoken of", out)
        self.begin((member(1, "@a"), 0))
        self.server.cli("DEL", "x")
        self.equal(self.nx(1, "free, with a line", "status", "x")[0],
                   "x free\n", "costs no more")
        out = self.nx(1, "and -v", "status", "x", "-v")[0]
        self.check(out.startswith("x free, 1 waiting\n") and "1. a" in out,
                   "shows it", out)

    def bounded(self):
        for count, more in ((20, ""), (21, "    and 1 more\n")):
            self.begin(*[(member(i, f"@w{i}"), 0) for i in range(1, count + 1)])
            out = self.nx(0, f"{count} waiters", "status", "x", "-v")[0]
            line = out[out.index("  line:"):].splitlines(True)
            self.equal((line[0], line[20][:11], "".join(line[21:])),
                       (f"  line: {count} waiting\n", "    20. w20", more),
                       "are bounded")
        self.begin(*[(member(i, "@" + "w" * 128, 1), 320) for i in range(1200)])
        out = self.nx(0, "a long line", "status", "x")[0]
        self.check(out.endswith(", 200 waiting\n"),
                   "only a thousand of it are looked at", out)

    def as_json(self):
        self.begin((member(1, "@a:1:b"), 64), (member(2, "", 31), 64))
        out = self.nx(0, "status --json", "status", "x", "--json")[0]
        answer = json.loads(out)
        seen = [waiter.pop("seen_ms") for waiter in answer["line"]]
        self.equal((answer["waiting"], answer["line"]), (1, [
            {"place": 1, "label": "a:1:b", "host": "a", "pid": 1,
             "program": "b", "owner": "00000001"},
            {"place": 2, "owner": "00000002", "dead": True}]),
            "has the same")
        self.check(all(2000 <= ms < 60000 for ms in seen), "and when", seen)
        self.begin()
        answer = json.loads(self.nx(0, "and none", "status", "x", "--json")[0])
        self.equal((answer["waiting"], answer["line"]), (0, []), "says so")

    def keys(self):
        for name, key, line, *words in (
                ("a{b}c", "a{b}c", "a{b}c::nxl-l"),
                ("a{}c", "a{}c", "{a{}c}:nxl-l"),
                ("x", "p:x", "{p:x}:nxl-l", "--prefix", "p:"),
                ("x", "{p}x", "{p}x::nxl-l", "--prefix", "{p}"),
                ("a\tb\nc", "a\tb\nc", "{a\tb\nc}:nxl-l")):
            self.begin((member(1), 0), key=key, line=line)
            out = self.nx(0, f"the line of {key!r}", "status", name, *words)[0]
            self.check(out.count("\n") == 1 and "\t" not in out,
                       "is shown on one line", out)
            self.check(out.endswith(", 1 waiting\n"), f"is {line}", out)

    def denied(self):
        if not self.may_use_acl(self.server, "not allowed to see it"):
            return
        self.begin((member(1), 0))
        self.server.cli("ACL", "SETUSER", "low", "on", ">Zqx7", "~*", "&*",
                        "+@all", "-zcard")
        url = f"unix://low:Zqx7@{self.server.socket}"
        out, said = self.nx(0, "not allowed to see it", "status", "x", "-u",
                            url)
        self.check(out.endswith("s left\n") and not said, "is no error",
                   out + said)
        out = self.nx(0, "and -v", "status", "x", "-v", "-u", url)[0]
        self.check("  line unknown: " in out and "zcard" in out, "says why",
                   out)
        out = self.nx(0, "and --json", "status", "x", "--json", "-u", url)[0]
        answer = json.loads(out)
        self.check(answer["waiting"] is None and
                   "zcard" in answer["waiting_unknown"], "as well", out)
        self.nx(0, "unlock", "unlock", "x", "--force", "--yes", "-u", url)
        self.check(self.there() != TOKEN, "works all the same")

    def several(self):
        with Server() as second, Server() as third:
            words = [word for one in (self.server, second, third)
                     for word in ("-u", one.url)]
            self.begin((member(1), 0))
            second.cli("SET", "x", TOKEN, "PX", "100000")
            out = self.nx(0, "several servers", "status", "x", "-v", *words)[0]
            self.check("waiting" not in out and "  line" not in out,
                       "have no line", out)

    def agrees(self, said, name):
        """What was said of a removal is what has happened."""
        now = self.there()
        if now == token(2, "@next"):
            wanted = "'x' was removed; the next in line, next, has it now"
        else:
            wanted = "'x' was removed; the first in line takes it as soon"
        self.check(now != TOKEN and wanted in said, name, f"{now}: {said}")

    def unlock(self):
        waiters = (member(1, "@dead", 1), 640), (member(2, "@next"), 0)
        self.begin(*waiters)
        said = self.nx(0, "unlock by force", "unlock", "x", "--force", "-y")[1]
        self.check(re.search(r"'x' is held by db7:41233:backup, \d+s left, "
                             "1 waiting\n", said), "says that one waits", said)
        self.agrees(said, "and who is the next")
        self.begin(*waiters)
        said = self.nx(0, "by token", "unlock", "x", "--token", TOKEN)[1]
        self.agrees(said, "says it too")
        self.begin((member(1, "@dead", 1), 640))
        said = self.nx(0, "the dead alone", "unlock", "x", "--token", TOKEN)[1]
        self.equal(said, "", "are not spoken of")
        self.begin(*waiters)
        self.server.cli("SET", "{x}:nxl-w", "1", "PX", "60000")
        said = self.nx(69, "the mark", "unlock", "{x}:nxl-w", "--force",
                       "-y")[1]
        self.check("somebody waits in line, not a lock" in said,
                   "is told as what it is", said)
        self.server.cli("SET", "{x}:nxl-g", "1", "PX", "60000")
        said = self.nx(69, "the gap", "unlock", "{x}:nxl-g", "--force",
                       "-y")[1]
        self.check("the gap of a line, not a lock" in said,
                   "is told as what it is", said)
        self.nx(69, "the line", "unlock", "{x}:nxl-l", "--force", "-y")
        self.equal((self.there("{x}:nxl-w"), self.waiters()),
                   ("1", b"2\n"), "both stay")

    def empty(self):
        for words in (["--force"], ["--token", TOKEN]):
            self.begin((member(1), 0))
            said = self.nx(64, "--line with " + words[0], "unlock", "x",
                           "--line", *words)[1]
            self.check("exclude each other" in said, "is refused", said)
        said = self.nx(64, "--line, nobody to be asked", "unlock", "x",
                       "--line")[1]
        self.check("'x' has 1 in line" in said and
                   "--yes to empty the line anyway" in said,
                   "says what and how", said)
        self.equal(self.waiters(), b"1\n", "removes nothing")
        said = self.nx(0, "and with --yes", "unlock", "x", "--line", "--yes")[1]
        self.check("the line of 'x' was emptied; who still" in said,
                   "says what was done", said)
        self.begin((member(1), 0))
        for keys, code, left in ((b"n\n", 75, b"1\n"), (b"y\n", 0, b"0\n")):
            with Terminal([self.program, "unlock", "x", "--line"]) as terminal:
                await_(lambda: "[y/N] " in terminal.text())
                terminal.type(keys)
                await_(lambda: terminal.leader.poll() is not None)
            self.equal(terminal.leader.poll(), code, f"the answer {keys}")
            self.equal(self.waiters(), left, "decides")
        self.equal(self.there(), TOKEN, "the lock stays")
        said = self.nx(1, "--line without a line", "unlock", "x", "--line",
                       "--yes")[1]
        self.equal(said, "nxlock: the line of 'x' is empty\n", "says so")
        self.begin((member(1), 0), key="p:a{b}c", line="p:a{b}c::nxl-l")
        self.nx(0, "of a name with a tag", "unlock", "a{b}c", "--line", "-y",
                "--prefix", "p:")
        self.equal(self.server.cli("KEYS", "*"), b"p:a{b}c\n", "it is empty")
        self.begin((member(1), 0))
        self.server.cli("ACL", "SETUSER", "low", "on", ">Zqx7", "~*", "&*",
                        "+@all", "-del", "-zcard")
        said = self.nx(77, "without permission", "unlock", "x", "--line", "-y",
                       "-u", f"unix://low:Zqx7@{self.server.socket}")[1]
        self.check("cannot empty the line of 'x': " in said, "says so", said)
        self.equal(self.waiters(), b"1\n", "it stays")

    def not_listed(self):
        self.begin((member(1), 0))
        self.server.cli("SET", "{x}:nxl-w", "1", "PX", "60000")
        self.server.cli("SET", "{x}:nxl-g", "1", "PX", "60000")
        out, said = self.nx(0, "list", "list")
        self.check(out.count("\n") == 1 and out.startswith("x\t") and not said,
                   "shows the lock alone", out + said)
        out, said = self.nx(0, "and its JSON", "list", "--json")
        self.check(out.count("\n") == 1 and not said, "too", out + said)

    def left_at_the_end(self):
        """The time left is that of now, though the line was read after it."""
        slow = Slow(self.server)
        for words in ((), ("--json",)):
            self.begin((member(1), 0))
            out = self.nx(0, "status, slowly", "status", "x", *words, "-u",
                          f"unix://{slow.path}?timeout_ms=10000")[0]
            left = (json.loads(out)["left_ms"] if words else
                    1000 * int(re.search(r" (\d+)s left", out)[1]))
            now = int(self.server.cli("PTTL", "x"))
            self.check("held" in out and "waiting" in out and
                       left < now + 2000, "the time left is that of the end",
                       f"{out}\n{now} ms are left")

    def wait(self):
        self.begin()
        done = nx(self.program, "wait", "x", "-w", "1500ms")
        self.equal(done.returncode, 75, "wait")
        self.equal(self.server.cli("KEYS", "*"), b"x\n", "joins no line")
        self.begin((member(1), 0))
        self.server.cli("PEXPIRE", "x", "300")
        done = nx(self.program, "wait", "x", "-w", "20")
        self.equal(done.returncode, 0, "nor does it wait for one")
        self.equal(self.waiters(), b"1\n", "or change it")

    def asks_for_no_message(self):
        """What run -v says of a wait costs no request: it cannot delay it."""
        counts = []
        for more in ((), ("-v",)):
            self.begin((member(1), 0))
            self.server.cli("CONFIG", "RESETSTAT")
            self.nx(75, "a wait", "run", "x", *more, "-w", "1500ms", "--",
                    "true")
            counts.append(re.search(
                r"total_connections_received:(\d+)",
                self.server.cli("INFO", "stats").decode())[1])
        self.equal(counts[1], counts[0], "-v: no more connections")

    def polls(self):
        """With -v, run says that it does not wait in line, and why."""
        self.begin()
        polls = "waits by polling (poll=1)\n"
        for query, wanted in ("", "\n"), ("?poll=1", "; " + polls):
            said = self.nx(75, "a wait " + query, "run", "x", "-v", "-w",
                           "1500ms", "-u", self.server.url + query, "--",
                           "true")[1]
            self.check("s left" + wanted in said, "says how it waits", said)


def main():
    with Server() as server:
        clean_environment(server)
        room = Room(sys.argv[1], server)
        room.words()
        room.bounded()
        room.as_json()
        room.keys()
        room.denied()
        room.several()
        room.unlock()
        room.empty()
        room.not_listed()
        room.left_at_the_end()
        room.wait()
        room.asks_for_no_message()
        room.polls()
        return room.done()


sys.exit(main())
