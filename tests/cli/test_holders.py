#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_holders.py PATH-OF-NXLOCK

Every command on a lock of every kind, free, held or held by more, on a real
server: what it shows, which other locks fit beside the holders, and that
unlock removes the holders that were named or shown and no others.
"""

import json
import re
import sys

from rig import Cases, Server, await_, nx, play

ASKS = ("", "-s", "--permits 4", "--permits 4 --weight 2", "--permits 6")

# How each state is made: the words of each acquire, or a command of the
# server. What status and list say. Which locks of ASKS are granted beside it.
STATES = {
    "free": ([], "job free", None, ASKS),
    "exclusive": (
        [""], r"job held by \S+:\S+, \d+s left", r"\S+:\d+:\S+", ()),
    "shared by one": (
        ["-s"], r"job: held by \S+:\d+:\S+, shared, \d+s left",
        r"\S+:\d+:\S+, shared", ASKS[1:]),
    "shared by three": (
        3 * ["-s"], "job: held by 3 holders, shared", "3 holders, shared",
        ("-s", "--permits 4", "--permits 6")),
    "one permit": (
        ["--permits 4"], r"job: held by \S+:\d+:\S+, 1 of 4 permits, \d+s left",
        r"\S+:\d+:\S+, 1 of 4 permits", ASKS[1:]),
    "three permits": (
        ["--permits 4"] * 3, "job: held by 3 holders, 3 of 4 permits",
        "3 holders, 3 of 4 permits", ("-s", "--permits 4", "--permits 6")),
    "all permits": (
        ["--permits 4 --weight 2"] * 2,
        "job: held by 2 holders, 4 of 4 permits",
        "2 holders, 4 of 4 permits", ()),
    "of several kinds": (
        ["--permits 8 --weight 2", "--permits 5", "-s"],
        "job: held by 3 holders, 4 of 5 permits", "3 holders, 4 of 5 permits",
        ("-s", "--permits 6")),
    "a ranking": (
        ("ZADD", "job", "1", "nxl=1/4", "2", "bob"), None, None, None),
    "a list": (("RPUSH", "job", "x"), None, None, None),
}
LINES = {  # of the holders, the last one that was acquired first
    "shared by one": [""],
    "shared by three": ["", "", ""],
    "one permit": [", 1 permit"],
    "three permits": [", 1 permit"] * 3,
    "all permits": [", 2 permits"] * 2,
    "of several kinds": [", shared", ", 1 permit", ", 2 of 8 permits"],
}
MANY = """
redis.replicate_commands()
local time = redis.call('TIME')
local ends = time[1] * 1000 + 60000
for i = 1, ARGV[1] do
    redis.call('ZADD', KEYS[1], ends + i,
        string.format('%08x-ee8a-4ca4-894e-db77e160355e+1/0', i))
end
redis.call('ZADD', KEYS[1], 17592186044416 + ends, 'nxl=1/0')
return redis.call('PEXPIRE', KEYS[1], 60000 + ARGV[1])
"""


class Room(Cases):
    tokens = []

    def nx(self, words, **more):
        done = nx(self.program, *words.split(), **more)
        out, err = done.stdout.decode(), done.stderr.decode()
        if not words.startswith("acquire"):
            self.check(not any(token[:30] in out + err
                               for token in self.tokens),
                       f"{words.split()[0]}: no token is shown", out + err)
        return done.returncode, out, err

    def acquire(self, words):
        code, out, err = self.nx(f"acquire job -n --ttl 100s {words}")
        if code != 0:
            self.check(False, f"acquire {words}", err)
        return out.strip()

    def make(self, state):
        """The state, and its holders in self.tokens."""
        self.server.cli("FLUSHALL")
        how = STATES[state][0]
        if isinstance(how, tuple):
            self.tokens = []
            self.server.cli(*how)
        else:
            self.tokens = [self.acquire(words) for words in how]

    def holders(self):
        """Their tokens, as the server has them."""
        if self.server.cli("TYPE", "job") == b"string\n":
            return {self.server.cli("GET", "job").decode().strip()}
        return {member.decode() for member in
                self.server.cli("ZRANGE", "job", "0", "-1").split()
                if not member.startswith(b"nxl=")}

    def foreign(self, state):
        """What is no lock: nobody touches it."""
        before = self.server.cli("DUMP", "job")
        token = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
        for words, code in (
                ("status job", 69), ("wait job -w 5s", 69),
                ("wait job -s -w 5s", 69), ("acquire job -n", 69),
                ("acquire job -s -n", 69), ("acquire job --permits 4 -n", 69),
                ("run job --permits 4 -n -- true", 69),
                ("acquire job -s -w 5s", 69),
                (f"release job {token}+1/4", 79), (f"renew job {token}", 79),
                ("unlock job --force --yes", 69),
                ("unlock job --all --yes", 69),
                ("unlock job --holder 6fa459ea --yes", 69)):
            got, out, err = self.nx(words)
            self.check(got == code and not out and err.count("\n") == 1,
                       f"{state}: {words}: {code}", (got, out, err))
        self.equal(self.nx("list"), (0, "", ""), f"{state}: not listed")
        self.equal(self.server.cli("DUMP", "job"), before,
                   f"{state}: it is unchanged")

    def is_shown(self, state):
        _, words, owner, _ = STATES[state]
        code, out, err = self.nx("status job")
        first, *lines = out.splitlines()
        self.check(code == (1 if state == "free" else 0) and not err and
                   re.fullmatch(words, first), f"{state}: status", out + err)
        wanted = [f"  {token[:8]} {token.split('@')[1]}{share}"
                  for token, share in
                  zip(reversed(self.tokens), LINES.get(state, []))]
        self.equal([re.sub(r", [0-9.ms]+ left$", "", line) for line in lines],
                   wanted, f"{state}: a line for each of several")
        code, out, err = self.nx("list")
        self.check(code == 0 and not err and
                   re.fullmatch(rf"job\theld\t{owner}\t[0-9.ms]+\n"
                                if owner else "", out),
                   f"{state}: list", out + err)
        self.json(state)

    def json(self, state):
        several = state in LINES
        there = json.loads(self.nx("status job --json")[1])
        self.equal(("holders" in there, "kind" in there), (several, several),
                   f"{state}: status --json")
        if not several:
            return
        shares = [re.search(r"\+(\d+)/(\d+)", token) for token in self.tokens]
        held = sum(int(share[1]) for share in shares)
        limits = [int(share[2]) for share in shares if share[2] != "0"]
        listed = json.loads(self.nx("list --json")[1])
        for one in there, listed:
            self.equal((one["kind"], one["permits_held"], one.get("permits")),
                       ("permits" if limits else "shared", held,
                        min(limits, default=None)),
                       f"{state}: kind and permits in JSON")
        self.equal(listed["holder_count"], len(self.tokens),
                   f"{state}: holder_count of list --json")
        self.equal([(one["owner"], one["weight"], one.get("permits", 0))
                   for one in reversed(there["holders"])],
                  [(token[:8], int(share[1]), int(share[2]))
                   for token, share in zip(self.tokens, shares)],
                  f"{state}: holders of status --json")
        self.check(all(90000 < one["left_ms"] <= 100000
                   for one in there["holders"]),
               f"{state}: left_ms of each in JSON", there)

    def fitting(self, state):
        """wait and acquire agree on what fits beside them."""
        for words in ASKS:
            fits = words in STATES[state][3]
            code, out, err = self.nx(f"wait job -w 1ms {words}")
            self.check(code == (0 if fits else 75) and not out,
                       f"{state}: wait {words}: {code}", err)
            code, out, err = self.nx(f"run job -n -v {words} -- true")
            said = STATES[state][1].split("held by")[-1]
            self.check(code == (0 if fits else 75),
                       f"{state}: run {words}: {code}", err)
            if not fits:
                who = ("" if len(self.tokens) < 2 else
                       f"{len(self.tokens)} holders, ")
                self.check(f"nxlock: 'job' is held by {who}" in err,
                           f"{state}: run {words} says who holds it",
                           (err, said))
        self.equal(self.holders(), set(self.tokens),
                   f"{state}: none of the holders was touched")

    def left_ms(self):
        """Of each holder, in the order of their tokens."""
        there = json.loads(self.nx("status job --json")[1])
        return [one["left_ms"] for one in sorted(
            there.get("holders", [there]), key=lambda one: one["owner"])]

    def by_token(self, state):
        """renew, release and unlock --token change one holder."""
        for command, kept in (("renew job {} --ttl 200s", 1),
                              ("release job {}", 0),
                              ("unlock job --token {}", 0)):
            self.make(state)
            token = self.tokens[0]
            code, out, err = self.nx(command.format(token))
            self.equal((code, out, err), (0, "", ""), f"{state}: {command}")
            self.equal(self.holders(), set(self.tokens[1 - kept:]),
                       f"{state}: {command}: the others stay")
            if kept:
                self.equal([left > 150000 for left in self.left_ms()],
                           [token == self.tokens[0] for token in sorted(
                               self.tokens, key=lambda token: token[:8])],
                           f"{state}: {command}: its lease alone is longer")
            else:
                code, _, err = self.nx(command.format(token))
                self.check(code == (79 if "release" in command else
                                    75 if self.tokens[1:] else 1),
                           f"{state}: {command}: not twice", (code, err))

    def unlocked(self, state):
        """By --force, --holder and --all."""
        count = len(self.tokens)
        force = 1 if count == 0 else 0 if count == 1 else 64
        for words, code in (("--force", force), ("--all", min(1, 1 - count)
                                                 if count == 0 else 0)):
            self.make(state)
            got, out, err = self.nx(f"unlock job {words} --yes")
            self.equal((got, out), (code, ""), f"{state}: unlock {words}")
            self.equal(self.holders(),
                       set(self.tokens if code == 64 else ()),
                       f"{state}: unlock {words}: all or none are left")
            if code == 64:
                self.check("--holder ID, or --all" in err and
                           all(token[:8] in err for token in self.tokens),
                           f"{state}: unlock {words} shows each", err)
        for i in range(count):
            self.make(state)
            token = self.tokens[i]
            got, out, err = self.nx(f"unlock job --holder {token[:8]} --yes")
            self.check(got == 0 and out == "" and "is held by" in err,
                       f"{state}: unlock --holder {i}", err)
            self.equal(self.holders(), set(self.tokens) - {token},
                       f"{state}: unlock --holder {i}: the others stay")
            got, _, err = self.nx(f"unlock job --holder {token[:8]} --yes")
            self.check(got == (75 if count > 1 else 1),
                       f"{state}: unlock --holder {i}: not twice", err)

    def matrix(self):
        for state, (_, words, _, _) in STATES.items():
            self.make(state)
            if words is None:
                self.foreign(state)
                continue
            self.is_shown(state)
            self.fitting(state)
            if self.tokens:
                self.by_token(state)
            self.unlocked(state)

    def unlock_options(self):
        for words, said in (
                *((words, "exclude each other") for words in (
                    "--holder 6fa459ea --all", "--holder 6fa459ea --force",
                    "--all --force", "--all --line")),
                *((f"--holder {word}", "needs the 8 characters")
                  for word in ("6fa459", "6fa459ea-", "6fa459zz")), ("", "")):
            self.gives("options", f"unlock job {words}", 64, "", said)
        self.make("shared by three")
        self.gives("no terminal", "unlock job --all", 64, "", "--yes")
        first = self.tokens[0]
        twin = first[:8] + "-ee8a-4ca4-894e-db77e160355e+1/0"
        self.server.cli("ZADD", "job", "1" + "0" * 13, twin)
        self.server.cli("PERSIST", "job")
        code, _, err = self.nx(f"unlock job --holder {first[:8]} --yes")
        self.check(code == 64 and "--token TOKEN" in err,
                   "two that begin alike", err)
        self.equal(self.holders(), {*self.tokens, twin},
                   "two that begin alike: nothing is removed")

    def newcomer(self):
        """Who joins while unlock asks was not shown, so it stays."""
        self.make("three permits")
        newcomer = []

        def meanwhile():
            newcomer.append(self.acquire("--permits 4"))
            self.nx(f"release job {self.tokens[0]}")
        code, text = self.on_terminal("unlock", "job", "--all", keys=b"y\n",
                                      meanwhile=meanwhile)
        self.check(code == 0 and
                   all(token[:8] in text for token in self.tokens),
                   "unlock --all at a terminal", (code, text))
        self.equal(self.holders(), set(newcomer),
                   "unlock --all at a terminal: the newcomer stays")

    def many(self):
        self.tokens = []
        for count, least in ((999, ""), (1005, "at least ")):
            self.server.cli("FLUSHALL")
            self.server.cli("EVAL", MANY, "1", "job", str(count))
            shown = min(count, 1000)
            code, out, _ = self.nx("status job")
            self.check(code == 0 and out.startswith(
                f"job: held by {least}{shown} holders, shared\n") and
                len(out.splitlines()) == 1 + shown, f"{count} holders", out)
            self.check(f"{least}{shown} holders, shared" in
                       self.nx("list")[1], f"{count} holders: list")
        code, _, err = self.nx("unlock job --all --yes")
        self.check(code == 0 and "repeat the command" in err,
                   "unlock --all: those that were seen", (code, err[-200:]))
        self.equal(len(self.holders()), 5,
                   "unlock --all: those that were not seen stay")
        code, _, err = self.nx("unlock job --all --yes")
        self.equal((code, self.holders()), (0, set()), "unlock --all, repeated")

    def over(self):
        """A member whose lease is over is no holder."""
        self.make("three permits")
        self.server.cli("ZADD", "job", "1000", self.tokens[0])
        code, out, _ = self.nx("status job")
        self.check(code == 0 and out.startswith(
            "job: held by 2 holders, 2 of 4 permits\n"),
                   "status: a lease that is over does not count", out)
        self.check("2 holders, 2 of 4 permits" in self.nx("list")[1],
                   "list: a lease that is over does not count")

    def over_several_servers(self):
        """Each of them shows one of its holders."""
        with Server() as second, Server() as third:
            self.over_servers(second, third)

    def over_servers(self, *others):
        urls = " ".join(f"-u {server.url}?guard_restarts=off&"
                        "guard_failover=off&max_ttl_ms=100000"
                        for server in (self.server, *others))

        def hold_alike():
            """False: a server got one of the two later than the others, or
            not at all, for a majority suffices."""
            for server in (self.server, *others):
                server.cli("FLUSHALL")
            self.tokens = [self.acquire(f"-s {urls}") for _ in range(2)]
            return 1 == len({server.cli("ZRANGE", "job", "0", "-1")
                             for server in (self.server, *others)})

        self.check(await_(hold_alike), "two holders, at all servers alike")
        code, out, _ = self.nx(f"status job {urls}")
        self.check(code == 0 and
                   out.startswith("job: held by at least 1 holder, shared\n"),
                   "several servers: status", out)
        for _ in range(2):
            code, _, err = self.nx(f"unlock job --all --yes {urls}")
            self.check(code == 0 and "repeat the command" in err,
                       "unlock --all, which says that there may be more", err)
        code, out, _ = self.nx(f"status job {urls}")
        self.equal((code, out), (1, "job free\n"), "until it is free")

    def in_line(self):
        """A reader inside a reader, with a writer in line between them."""
        self.server.cli("FLUSHALL")
        self.tokens = []
        script = (f"{self.program} run job -w 60s -- true & "
                  f"until {self.program} status job | grep -q '1 waiting'; do "
                  "sleep 0.05; done; "
                  f"{self.program} run job -s -- true; code=$?; kill $!; wait; "
                  "exit $code")
        done = nx(self.program, "run", "job", "-s", "--", "sh", "-c", script)
        err = done.stderr.decode()
        self.check(done.returncode == 64 and "deadlock" in err,
                   "behind one who waits for the enclosing run: refused",
                   (done.returncode, err))


if __name__ == "__main__":
    sys.exit(play(Room, Room.matrix, Room.unlock_options, Room.newcomer,
                  Room.many, Room.over, Room.in_line, Room.over_several_servers,
                  least=(3, 2)))
