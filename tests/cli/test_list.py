#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_list.py NXLOCK: which keys list shows, and how: locks, the records of
--every and of once, over one server and over several; and that a large
database is scanned in small steps. Locks that several hold are the matter of
test_holders.py.
"""

import json
import os
import re
import subprocess
import sys

from rig import Cases, Server, play

UUID = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
SOON = r"(100|[5-9]\d)s"  # of 100 s: a busy machine takes some of it
HOURS = 7200000

# The keys, their values and TTLs; the row that is shown of each, if one is.
LOCKS = (
    ("app:a", UUID, 100000,
     rf"app:a\theld\t6fa459ea\.\.\. \(no label\)\t{SOON}"),
    ("app:b", UUID + "@db7:41233:backup", 100000,
     rf"app:b\theld\tdb7:41233:backup\t{SOON}"),
    ("app:ever", UUID + "@x", None, r"app:ever\theld\tx\t-"),
    ("bad\tname\n\033[2J", UUID + "@y", None,
     r"bad\?name\?\?\[2J\theld\ty\t-"),
    ("long:d", UUID + "@z", 2073600000, r"long:d\theld\tz\t(24|23\.9)d"),
    ("long:h", UUID + "@z", HOURS, r"long:h\theld\tz\t(2h|11\dm)"),
    ("other", UUID + "@y", 100000, rf"other\theld\ty\t{SOON}"),
    # Locks of others and data, also what is nearly a token.
    ("almost", UUID + "-and-more", 100000, None),
    ("counter", "17", None, None),
    ("text", "hello", None, None),
)
EVERY = {"{r}:every": "every", "{r}s:every": "every", "{}}:every": "every",
         "r:every": "held", "{}r:every": "held"}

# The keys of records, what they say, and the TTL. A lock that has the same
# token as a record that has begun: the work is in progress.
RECORDS = (
    ("{o:begun}:once", "begun", "b", 0, None),
    ("{o:works}:once", "begun", "w", 0, None),
    ("{o:other}:once", "begun", "b", 0, None),
    ("{o:doubt}:once", "doubt", "d", 1790000090000, None),
    ("{o:done}:once", "done", "e", 1790000090000, 100000),
    ("{o:failed}:once", "failed", "f", 1790000090000, HOURS),
    ("o:{tag}::once", "doubt", "t", 1790000090000, None),
)
DOUBTS = [r"o:begun\tdoubt\tdb7:1:b\t-", r"o:doubt\tdoubt\tdb7:1:d\t-",
          r"o:other\tdoubt\tdb7:1:b\t-",
          rf"o:other\theld\tdb7:1:other\t{SOON}",
          rf"o:works\theld\tdb7:1:w\t{SOON}",
          r"o:\{tag\}\tdoubt\tdb7:1:t\t-"]
RESTED = [r"o:done\tdone\tdb7:1:e\t-", r"o:failed\tfailed\tdb7:1:f\t-",
          r"o:works\tbegun\tdb7:1:w\t-"]
LEFT_OUT = "records of 'nxlock once' are left out"

NAMES = ["g", "g*", "ga", "gab", "gb", "g-c", "g]d", "g^e", "g\\f", "{g}h",
         "gg"]
GLOBS = ["g", "g*", "g?", "*g", r"g\*", "g[ab]", "g[a-b]b", "g[^a]*",
         "g[b-a]*", "g[]]d", r"g[\]]d", "g[a", "g[", "g\\", r"g\\*", r"g[\^]e",
         "g[^^]*", "g[a-", "g[-]c", "{g}*", "g**b", "*a*b*", "g[a-]d]", "?*b"]


def rows(*patterns):
    """One of each pattern, in any order, and no others."""
    def good(out):
        left = out.splitlines()
        for pattern in patterns:
            row = next((one for one in left if re.fullmatch(pattern, one)),
                       None)
            if row is None:
                return False
            left.remove(row)
        return not left
    return good


class Room(Cases):
    def lists(self, given, options, wanted, *said):
        self.gives(given, ["list", *options], 0, rows(*wanted), *said)

    def set(self, key, value, ttl=None):
        self.server.cli("SET", key, value,
                        *(("PX", str(ttl)) if ttl else ()))

    def locks(self):
        server = self.server
        self.lists("nothing", [], [])
        for key, value, ttl, _ in LOCKS:
            self.set(key, value, ttl)
        server.cli("LPUSH", "queue", UUID)
        server.cli("HSET", "hash", "f", UUID)
        wanted = [row for *_, row in LOCKS if row]
        self.lists("locks and other keys", [], wanted)
        self.gives("sorted by name", "list", 0,
                   lambda out: out.splitlines() == sorted(out.splitlines()))
        self.lists("a pattern", ["app:?"], wanted[:2])
        self.lists("a pattern of nothing", ["none*"], [])
        self.lists("a prefix", ["--prefix", "app:"],
                   [row[4:] for row in wanted[:3]])
        for prefix, key in (("a*b:", "a*b:x"), (r"a[b]\:", r"a[b]\:x")):
            self.set(key, UUID + "@z", 100000)
            self.set("aab:y", UUID + "@z", 100000)
            self.lists(f"the prefix {prefix}, which looks like a pattern",
                       ["--prefix", prefix], [rf"x\theld\tz\t{SOON}"])
            server.cli("DEL", key, "aab:y")
        self.gives("JSON", "list app:b --json", 0,
                   r'\{"v":1,"name":"app:b","state":"held",'
                   r'"label":"db7:41233:backup","host":"db7","pid":41233,'
                   r'"program":"backup","owner":"6fa459ea","left_ms":\d+\}\n')
        self.gives("JSON of one that never expires", "list app:ever --json", 0,
                   r'.*"left_ms":null\}\n')
        self.set("zero\0byte", UUID)
        self.lists("a name with a zero byte", ["zero*"], [])
        text = self.on_terminal("list", "app:*")[1]
        self.check(re.match(r"NAME +STATE +OWNER +LEFT\s+app:a +held +", text),
                   "a table at a terminal: nxlock list", text)
        server.cli("FLUSHALL")

    def every(self):
        for name in EVERY:
            self.set(name, UUID + "@db7:1:r", 100000)
        self.lists("records of --every, known by the tag in braces", [],
                   [rf"{re.escape(name)}\t{state}\tdb7:1:r\t{SOON}"
                    for name, state in EVERY.items()])
        self.gives("JSON of a record of --every", "list {r}:every --json", 0,
                   r'.*"name":"\{r\}:every","state":"every".*')
        self.server.cli("FLUSHALL")

    def records(self):
        for key, state, label, ended, ttl in RECORDS:
            self.set(key, f"once1 {state} {UUID}@db7:1:{label} 7 2 1 "
                     f"1790000000000 1790000060000 {ended} 3 0 100000 - 6\n"
                     "result", ttl)
        self.set("o:works", UUID + "@db7:1:w", 100000)
        self.set("o:other", UUID + "@db7:1:other", 100000)
        # What is no record.
        self.set("{o:text}:once", "once1 is text")
        self.set("{o:lines}:once", "once1 is\ntwo lines")
        self.server.cli("RPUSH", "{o:queue}:once", UUID)
        self.set("{o:name}:once", UUID + "@lock", 100000)
        self.lists("doubts", ["o:*"], DOUBTS)
        self.lists("doubts below a prefix", ["--prefix", "o:"],
                   [row[2:] for row in DOUBTS])
        self.lists("a pattern with a class", ["o:[b{]*"],
                   [DOUBTS[0], DOUBTS[-1]])
        self.lists("the whole name of a doubt", ["o:doubt"], [DOUBTS[1]])
        self.lists("the whole name with a tag", ["o:{tag}"], [DOUBTS[-1]])
        for glob in "*:once", "{o:name}:*":
            self.lists("a lock that is named like a record", [glob],
                       [rf"\{{o:name\}}:once\theld\tlock\t{SOON}"])
        self.lists("all records", ["--once", "o:*"], DOUBTS + RESTED)
        self.gives("JSON of records", "list --once --json o:d*", 0,
                   lambda out: [self.times(row) for row in out.splitlines()] ==
                   [("done", 2, 1, "2026-09-21T14:14:20Z",
                     "2026-09-21T14:14:50Z", 3),
                    ("doubt", 2, 1, "2026-09-21T14:14:20Z",
                     "2026-09-21T14:14:50Z", 3)])
        self.gives("JSON of work in progress", "list --once --json o:w*", 0,
                   lambda out: self.times(out.splitlines()[0])[:5] ==
                   ("begun", 2, 1, "2026-09-21T14:14:20Z", None))
        if self.may_use_acl(self.server, "a user who may not read records"):
            self.user("keys", "~o:*", "+@all")
            self.lists("a user who may not read records",
                       ["o:*", "-u", self.as_user("keys")],
                       [DOUBTS[3], DOUBTS[4], DOUBTS[5]], LEFT_OUT)
        self.server.cli("FLUSHALL")

    @staticmethod
    def times(row):
        there = json.loads(row)
        return tuple(there.get(member) for member in (
            "state", "attempt", "doubts", "began", "ended", "code"))

    def user(self, name, *rules):
        self.server.cli("ACL", "SETUSER", name, "on", ">Zqx7", *rules)

    def as_user(self, name):
        return f"unix://{name}:Zqx7@{self.server.socket}"

    def globs(self):
        """The server matches the names, so GLOB has to reach it as it is."""
        for name in NAMES:
            self.set(name, UUID)
        for glob in GLOBS:
            scan = subprocess.run(
                ["redis-cli", "-s", self.server.socket, "--scan", "--pattern",
                 glob], capture_output=True, text=True, check=False)
            self.gives("as the server matches it", ["list", "--name", glob], 0,
                       lambda out, scan=scan:
                       sorted(row.split("\t")[0] for row in out.splitlines()) ==
                       sorted(scan.stdout.splitlines()))
        self.server.cli("FLUSHALL")

    def failures(self):
        nothing = os.path.join(self.server.folder, "nothing")
        self.gives("no server", f"list -u unix://{nothing}", 69, "",
                   "cannot list", nothing)
        self.gives("two patterns", "list a b", 64, "", "'b'")
        self.gives("an empty pattern", ["list", "--name", ""], 64, "", "NAME")
        self.set("held", UUID)
        if self.may_use_acl(self.server, "a user who may not scan"):
            self.user("blind", "~*", "+@all", "-scan")
            self.gives("a user who may not scan",
                       f"list -u {self.as_user('blind')}", 77, "", "scan")
            self.server.cli("ZADD", "held:shared", "1", "member")
            self.user("plain", "~*", "+@all", "-eval", "-evalsha")
            self.gives("a user who may not read who shares a lock",
                       f"list held* -u {self.as_user('plain')}", 0,
                       lambda out: out.startswith("held\t"),
                       "several may hold are left out")
            self.user("one", "~held", "~{held}:*", "+@all")
            self.set("other", UUID)
            self.gives("a user of one name lists all",
                       f"list -u {self.as_user('one')}", 77,
                       lambda out: "other" not in out, "cannot list",
                       "list these: nxlock list 'GLOB'")
            self.gives("a user of one name lists it",
                       f"list held -u {self.as_user('one')}", 0,
                       lambda out: out.startswith("held\t"))
        self.server.cli("FLUSHALL")

    def large(self):
        """20000 keys that are none, and a name of 60000 bytes."""
        server = self.server
        server.cli("EVAL", "for i = 1, 20000 do redis.call('SET', 'key:' .. i, "
                   "'value') end", "0")
        self.set("n" * 60000, UUID + "@long", 100000)
        for i in range(8):
            self.set(f"lock:{i}", UUID + "@l", 100000)
        server.cli("CONFIG", "RESETSTAT")
        self.lists("among 20000 other keys",
                   ["-u", server.url + "?timeout_ms=20000"],
                   [rf"n{{60000}}\theld\tlong\t{SOON}",
                    *(rf"lock:{i}\theld\tl\t{SOON}" for i in range(8))])
        calls = {name: int(count) for name, count in re.findall(
            r"cmdstat_(\w+):calls=(\d+)",
            server.cli("INFO", "commandstats").decode())}
        self.check(calls.get("keys", 0) == 0 and calls.get("scan", 0) >= 70,
                   "among 20000 other keys: small steps, and no KEYS", calls)
        server.cli("FLUSHALL")

    def several(self):
        with Server() as second, Server() as third:
            self.over_three(second, third)

    def over_three(self, second, third):
        """Which server has what, for how many seconds."""
        servers = [self.server, second, third]
        options = [word for server in servers for word in ("-u", server.url)]
        for name, label, *left in (
                ("most", "m", 90, 50, 0), ("one", "o", 0, 50, 0),
                ("all", "a", 100, 80, 60), ("split", "s", 50, 0, 0)):
            for server, seconds in zip(servers, left):
                if seconds:
                    server.cli("SET", name, f"{UUID}@{label}", "PX",
                               str(1000 * seconds))
        second.cli("SET", "split", f"7{UUID[1:]}@s", "PX", "50000")
        most = r"most\theld\tm\t(50|4\d)s\t2/3"
        one = r"one\tpartial\to\t(50|4\d)s\t1/3"
        split = r"split\tpartial\ts\t(50|4\d)s\t1/3"
        self.lists("three servers", options,
                   [most, one, split, split,
                    r"all\theld\ta\t(80|7\d)s\t3/3"])
        self.gives("three servers, JSON", ["list", "most", "--json", *options],
                   0, r'.*"at":2,"of":3\}\n')
        now = int(second.cli("TIME").split()[0]) * 1000
        for server, first, ms in ((self.server, "5", 80000),
                                  (second, "1", 90000)):
            server.cli("ZADD", "joined", str(now + ms),
                       f"{first}{UUID[1:]}+1/0",
                       str(17592186044416 + now), "nxl=1/0")
            server.cli("PEXPIRE", "joined", str(ms))
        third.cli("SET", "joined", f"3{UUID[1:]}@x", "PX", "50000")
        self.lists("a shared lock that several joined, and another's token",
                   ["joined", *options],
                   [r"joined\theld\t1fa459ea.*, shared\t(80|7\d)s\t2/3",
                    r"joined\tpartial\tx\t(50|4\d)s\t1/3"])
        for server in servers:
            server.cli("DEL", "joined")
        third.kill()
        self.lists("one of three is away", options,
                   [most, one, split, split,
                    r"all\theld\ta\t[678]\ds\t2/3"],
                   f"left out: {third.url}")
        second.kill()
        self.gives("two of three are away", ["list", *options], 69, ".*",
                   "1 of 3 servers")


if __name__ == "__main__":
    sys.exit(play(Room, Room.failures, Room.locks, Room.every, Room.records,
                  Room.globs, Room.large, Room.several))
