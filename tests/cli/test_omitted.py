#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_omitted.py NXLOCK: a server that has the password where a command reads,
or that repeats what it was sent.

A real server, in whose locks, lines and records the password stands, and which
puts it into the reply to one command after another. No four bytes of it may be
in what a command prints or logs, in its metrics, or in the environment of CMD.
Nor may a token be in what is printed, or logged.

A subcommand is tried with a false reply only to what it sends: up to the first
such reply it talks to the real server, so any other try would show nothing.
Each of those tries must have met its false reply. A command gets every other
form of a false reply to a word, and the next one the others; with
NXLOCK_FULL=1 each gets all.
"""

import itertools
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from rig import Between, Cases, nx, play

PASSWORD = "Zqx7Wv.k9mm"
PARTS = [PASSWORD[i:i + 4].lower().encode() for i in range(len(PASSWORD) - 3)]
TOKEN = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
# But for the line that acquire prints, and the variable of CMD.
ANY_TOKEN = re.compile(rb"(?m)^(?!(?:NXLOCK_TOKEN=)?[0-9a-f-]{36}\S*$)"
                       rb".*([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-)")
OMITTED = b"(text omitted: it may contain part of a password)"
ENOUGH = "600000"
FULL = "NXLOCK_FULL" in os.environ


def text(data):
    return b"$%d\r\n%s\r\n" % (len(data), data)


def array(*items):
    return b"*%d\r\n" % len(items) + b"".join(items)


SECRET = PASSWORD.encode()
INFO = (b"redis_version", b"run_id", b"role", b"redis_mode", b"server_name",
        b"maxmemory_policy", b"maxmemory", b"used_memory", b"aof_enabled",
        b"master_host", b"master_port", b"uptime_in_seconds",
        b"connected_slaves", b"loading")


def info(**given):
    """INFO with the password in all fields but the given ones."""
    return text(b"".join(
        b"%s:%s\r\n" % (name, given.get(name.decode(), "").encode() or SECRET)
        for name in INFO))


FORMS = {
    "an error": b"-ERR no " + SECRET + b"\r\n",
    "a known error": b"-NOPERM no " + SECRET[:4] + b"\r\n",
    "a status": b"+" + SECRET + b"\r\n",
    "a string": text(SECRET),
    "an escaped string": text(b"Z%71x%37"),
    "an array": array(text(SECRET), text(SECRET), text(b"9" + SECRET)),
    "garbage": SECRET + b"\r\n",
    "the command": lambda command: command,
    "the command as an error": lambda command:
        b"-ERR you said " + command.replace(b"\r\n", b" ")[-900:] + b"\r\n",
    "the command as a string": lambda command: text(command[-900:]),
}
ROWS = {
    "INFO": {
        "INFO": info(), "INFO of a replica": info(role="slave"),
        "INFO of a primary": info(
            role="master", redis_version="7.0." + PASSWORD, aof_enabled="1",
            maxmemory_policy="allkeys-" + PASSWORD,
            uptime_in_seconds="9", redis_mode="standalone", loading="0"),
        "an old version": info(redis_version="2.4." + PASSWORD),
        "one process after another": [
            info(role="master", run_id=PASSWORD[n:], uptime_in_seconds="999")
            for n in range(3)],
    },
    "CONFIG": {
        name: array(text(name.encode()), text(SECRET))
        for name in ("appendfsync", "maxmemory-policy")},
    "SCAN": {"a cursor": array(text(SECRET), array(text(SECRET)))},
    "ZRANGE": {"a waiter": array(
        text((TOKEN + "@" + PASSWORD + " x 1000 99").encode()), text(b"1"))},
    "EVALSHA": {
        "a holder": array(text((TOKEN + "@" + PASSWORD).encode()),
                          b":9000\r\n"),
    },
}
WORDS = ("AUTH", "CLIENT", "INFO", "SCRIPT", "SET", "EVALSHA",
         "PTTL", "SCAN", "ZCARD", "ZRANGE", "TIME", "CONFIG", "PING",
         "SUBSCRIBE")
KEPT = ["--log", "file:{folder}/log", "--metrics", "{folder}", "-v"]
CMD = ["--", "sh", "-c", "env | grep ^NXLOCK_ >> {folder}/environment"]
# With locks of their own: see Room.set_up(). What waits comes first.
COMMANDS = (
    ["run", "label", "-w", "1s", *KEPT, *CMD],
    ["doctor", "k"], ["doctor", "k", "--json", "--once"],
    ["wait", "label", "-w", "100ms"],
    ["run", "free", "-n", *KEPT, *CMD],
    ["run", "ran", "-n", "--every", "1d", *KEPT, *CMD],
    ["once", "free", "-n", *KEPT, *CMD],
    ["acquire", "free", "-nv", "--log", "json"],
    ["renew", "label", TOKEN], ["release", "label", TOKEN],
    ["status", "label", "-v"], ["status", "label", "--json"],
    ["list"], ["list", "--json"], ["unlock", "free", "--force", "--yes"],
)
# Most of them wait for the server, or for their time to be over.
AT_ONCE = 6
# Of a request: many false replies are none to the client, which waits so long.
# On a busy machine it may be too short to get to the false reply.
TIMEOUTS_MS = (200, 3000)
# What the real server's keys say, by commands that show them.
SHOWN = (
    ["status", "label", "-v"], ["status", "label", "--json"],
    ["status", "part"], ["status", "part", "--json"],
    ["status", "data"], ["status", "data", "--json"],
    ["status", "timed", "-v"], ["status", "timed", "--json"],
    ["run", "label", "-n", *KEPT, *CMD], ["run", "data", "-n", *KEPT, *CMD],
    ["run", "ran", "-n", "--every", "1d", *KEPT, *CMD],
    ["run", "label", "-w", "1500ms", *KEPT, *CMD],
    ["list"], ["list", "--json"],
    ["unlock", "data", "--force", "--yes"],
    ["unlock", "label", "--token", "0" + TOKEN[1:]],
    ["once", "show", "work", "--json"], ["once", "show", "doubt"],
    ["once", "show", "doubt", "--json"], ["once", "doubt", "-n", *KEPT, *CMD],
    ["once", "confirm", "doubt"], ["once", "forget", "doubt"],
    ["once", "work", "-n", "--fingerprint", "x", *KEPT, *CMD],
    ["once", "doubt", "-n", *KEPT, "--check", CMD[-1], *CMD],
    ["unlock", "timed", "--force", "--yes"],
    ["unlock", "label", "--force", "--yes"],
)


class Room(Cases):
    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        server.cli("ACL", "SETUSER", "app", "on", ">" + PASSWORD, "~*", "&*",
                   "+@all")
        self.omitted = 0
        self.numbers = itertools.count()

    def printed(self, command, url):
        """All that a command shows anywhere."""
        folder = tempfile.mkdtemp()
        try:
            words = [word.replace("{folder}", folder) for word in command]
            got = nx(self.program, words[0], "-u", url, *words[1:])
            said = got.stdout + got.stderr
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), "rb") as file:
                    said += file.read()
            return said.replace(folder.encode(), b"")
        finally:
            shutil.rmtree(folder)

    def wrong(self, command, url):
        said = self.printed(command, url)
        self.omitted += said.count(OMITTED)
        bad = [part for part in PARTS if part in said.lower()]
        bad += ANY_TOKEN.findall(said)
        return f"{' '.join(command)}: {bad}\n" + \
            said.decode("utf-8", "replace") if bad else None

    def set_up(self, number):
        """The locks of one try: label<number> and ran<number>, which are held
        and have a waiter, and free<number>. A function that removes them."""
        cli = self.server.cli
        names = [f"{name}{number}" for name in ("label", "ran", "free")]
        label, ran, _ = names
        self.hold(label)
        self.hold_every(ran)

        def remove():
            found = [key for name in names
                     for key in cli("KEYS", f"*{name}").split() +
                     cli("KEYS", f"{{{name}}}*").split()]
            cli("DEL", *(key.decode() for key in found), label)
        return remove

    def through(self, command, between, timeout_ms=TIMEOUTS_MS[-1]):
        """What is wrong with a command at a server with locks of its own."""
        number = f"-{next(self.numbers)}-"
        words = [word + number if word in ("label", "ran", "free") else word
                 for word in command]
        remove = self.set_up(number)
        try:
            return self.wrong(
                words, f"redis://app:{PASSWORD}@127.0.0.1:{between.port}"
                f"?timeout_ms={timeout_ms}")
        finally:
            remove()

    def sent_by(self, command):
        with Between(self.server) as between:
            bad = self.through(command, between)
            return bad, between.sent

    def reply(self, command, word, reply):
        replies = reply if isinstance(reply, list) else [reply]
        with Between(self.server, word, *replies) as between:
            for timeout_ms in TIMEOUTS_MS:
                bad = self.through(command, between, timeout_ms)
                if bad or between.met:
                    return bad
        return f"{' '.join(command)} sent no {word}"

    def replies(self):
        """A false reply to each word, in all forms, for each command that
        sends it."""
        self.server.cli("FLUSHALL")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            sent = list(pool.map(self.sent_by, COMMANDS))
            for command, (bad, words) in zip(COMMANDS, sent):
                self.check(not bad, f"{' '.join(command)}: true replies",
                           bad or "")
            every = set().union(*(words for _, words in sent))
            self.equal(sorted(set(WORDS) - every), [], "all are sent")
            # By command, so that what takes long begins first.
            tries = {(word, form): [] for word in WORDS
                     for form in {**FORMS, **ROWS.get(word, {})}}
            for (i, (command, (_, words))), (j, (word, form)) in \
                    itertools.product(enumerate(zip(COMMANDS, sent)),
                                      enumerate(tries)):
                if word in words and (FULL or (i + j) % 2 == 0):
                    reply = {**FORMS, **ROWS.get(word, {})}[form]
                    tries[word, form].append(
                        pool.submit(self.reply, command, word, reply))
            for (word, form), results in tries.items():
                bad = [one.result() for one in results if one.result()]
                self.check(not bad, f"{word}: {form}, {len(results)} "
                           "commands", "\n".join(bad))

    def hold(self, name):
        """By somebody in whose label the password is; another one waits."""
        self.server.cli("SET", name, f"{TOKEN}@db7:1:{PASSWORD}", "PX", ENOUGH)
        self.server.cli("ZADD", f"{{{name}}}:nxl-l", "4194304",
                        last=f"{TOKEN[:-1]}0@{PASSWORD} - 1000 99")

    def hold_every(self, name):
        self.server.cli("SET", f"{{{name}}}:every",
                        f"{TOKEN}@db7:1:{PASSWORD}", "PX", ENOUGH)

    def prepare(self):
        """Keys that hold the password wherever a command looks."""
        cli = self.server.cli
        cli("FLUSHALL")
        self.hold("label")
        self.hold_every("ran")
        cli("SET", "part", f"{TOKEN}@db7:1:{PASSWORD[-4:]}", "PX", ENOUGH)
        cli("SET", "data", PASSWORD)
        cli("SET", "timed", PASSWORD, "PX", ENOUGH)
        folder = tempfile.mkdtemp()
        program = os.path.join(folder, PASSWORD)  # the label has its name
        with open(program, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit $1\n")
        os.chmod(program, 0o700)
        nx(self.program, "once", "work", "-n", "--fingerprint", PASSWORD, "--",
           program, "0")
        nx(self.program, "once", "doubt", "-n", "--", program, "1")
        shutil.rmtree(folder)

    def see(self, command):
        before = self.omitted
        self.prepare()
        bad = self.wrong(command, f"unix://app:{PASSWORD}@{self.server.socket}")
        self.check(not bad, " ".join(command), bad or "")
        self.check(self.omitted > before, f"{' '.join(command[:3])}: says "
                   "that something is omitted")

    def names(self):
        """Those of locks are what somebody called them."""
        self.server.cli("SET", PASSWORD, TOKEN, "PX", ENOUGH)
        said = self.printed(
            ["list"], f"unix://app:{PASSWORD}@{self.server.socket}")
        self.check(SECRET in said, "the name of a lock is shown")

    def commands(self):
        for command in SHOWN:
            self.see(command)


if __name__ == "__main__":
    sys.exit(play(Room, Room.commands, Room.names, Room.replies,
                  options=("--appendonly", "yes")))
