#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_doctor.py NXLOCK NO_NAMES: what doctor finds on a real server, as a
table: how the server and the user are set up, the exit code, and the lines that
must be there. What replicas, Sentinels, TLS and other servers add is in
test_doctor_failover.py, test_sentinels.py, test_tls.py and test_servers.py.
"""

import json
import os
import re
import sys

sys.dont_write_bytecode = True  # the tree stays as it is

from rig import Server, Tap, await_, clean_environment, nx

PASSWORD = "sesame-seed"
RIGHT = (("appendonly", "yes"), ("appendfsync", "always"), ("save", ""),
         ("maxmemory-policy", "noeviction"))
QUERY = "max_ttl_ms=1000"
ALL = ("~*", "&*", "+@all")
# NAME: (settings, parameters of the URL, arguments, exit code, findings):
# a finding is (level, subject, key words); level None: there is none.
SERVERS = {
    "a good server": ((), "", (), 0, (
        ("ok", "eviction", ""), ("ok", "persistence", ""),
        ("ok", "lock", "released"), ("ok", "fencing", ""),
        ("ok", "waiting", "in line"), ("ok", "server", "role primary"),
        (None, "once", ""), (None, "clock", ""), (None, "rights", ""))),
    "for a name": ((), "", ("invoice:42",), 0, ((None, "rights", ""),)),
    "with a prefix": ((), "prefix=app:", ("invoice:42",), 0, ()),
    "without lines": ((), "poll=1", (), 0, (("note", "waiting", "poll=1"),)),
    "allkeys-lru": ((("maxmemory-policy", "allkeys-lru"),), "", (), 1, (
        ("WARN", "eviction", "allkeys-lru.*Remedy: .*noeviction"),)),
    "volatile-ttl": ((("maxmemory-policy", "volatile-ttl"),), "", (), 1, (
        ("WARN", "eviction", "volatile-ttl"),)),
    "fsync now and then": ((("appendfsync", "everysec"),), "", (), 0, (
        ("note", "persistence", "everysec"),)),
    "no file": ((("appendonly", "no"),), "", (), 1, (
        ("WARN", "persistence", "Remedy: CONFIG SET appendonly yes"),)),
    "no file behind a guard": (
        (("appendonly", "no"),), "guard_restarts=on", (), 0, (
            ("note", "persistence", "guard_restarts"),)),
    "for records": ((), "", ("--once",), 0, (
        ("ok", "once", ""), ("ok", "persistence", ""))),
    "for those of a name": ((), "", ("invoice:42", "--once"), 0, (
        ("ok", "once", ""),)),
    "records without a file": ((("appendonly", "no"),), "", ("--once",), 69, (
        ("FAIL", "persistence", "Remedy: CONFIG SET appendonly yes"),)),
    "records without a file, behind a guard": (
        (("appendonly", "no"),), "guard_restarts=on", ("--once",), 69, (
            ("FAIL", "persistence", "work that was done may be done again"),
            (None, "persistence", "two clients|guard_restarts"))),
    "records, fsync now and then": (
        (("appendfsync", "everysec"),), "", ("--once",), 1, (
            ("WARN", "persistence", "Remedy: CONFIG SET appendfsync always"),)),
    "records that may be evicted": (
        (("maxmemory-policy", "volatile-ttl"),), "", ("--once",), 1, (
            ("WARN", "eviction", "records"),)),
    "records that once refuses": (
        (), "guard_failover=on", ("--once",), 78, (
            ("FAIL", "once", "wait_replicas"),)),
    "no such database": ((), "db=99", (), 78, (
        ("FAIL", "reach", "DB index"),)),
}
# NAME: (what the user has, arguments, exit code, findings)
USERS = {
    "without EVAL": ((*ALL, "-eval", "-evalsha"), (), 1, (
        ("WARN", "fencing", "Remedy: .*ACL SETUSER u .*\\+eval "),
        ("ok", "lock", ""), ("ok", "server", "WATCH"))),
    "who may not wait in line": ((*ALL, "-zadd"), ("job",), 0, (
        ("note", "waiting", "Remedy: ACL SETUSER u .*\\+zadd"),)),
    "who may not listen": ((*ALL, "-subscribe"), (), 0, (
        ("ok", "waiting", "subscribe"),)),
    "without PUBSUB": ((*ALL, "-pubsub"), (), 0, (
        ("note", "rights", "Sentinels.*\\(PUBSUB NUMSUB.*: .*\\+pubsub"),)),
    "without TIME": ((*ALL, "-time"), (), 1, (
        ("WARN", "fencing", "Remedy: .*\\+time"), ("ok", "lock", ""))),
    "without INFO": ((*ALL, "-info"), (), 1, (
        ("WARN", "rights", "INFO.*Remedy: .*\\+info"),
        ("WARN", "persistence", "unknown"), ("WARN", "eviction", "unknown"))),
    "without CONFIG": ((*ALL, "-config"), ("--once",), 1, (
        ("note", "rights", "CONFIG GET.*Remedy: "),
        ("WARN", "persistence", "unknown"))),
    "without SET": ((*ALL, "-set"), (), 77, (
        ("FAIL", "lock", "'set'.*Remedy: .*nxlock doctor NAME.*\\+set"),)),
    "of certain names": (("+@all", "&*", "~inv*", "~{inv*"), (), 77, (
        ("FAIL", "lock", "Remedy: .*nxlock doctor NAME"),)),
    "of that name": (("+@all", "&*", "~inv*", "~{inv*"), ("inv:1",), 0, (
        (None, "rights", ""),)),
    "of that name and its record": (
        ("+@all", "&*", "~inv*", "~{inv*"), ("inv:1", "--once"), 0, ()),
    "of other names": (("+@all", "&*", "~inv*", "~{inv*"), ("job",), 77, (
        ("FAIL", "rights", "PTTL job.*Remedy: .*~job"),)),
    "without the counter": (
        ("+@all", "&*", "~inv*", "~{inv:1:doctor*"), ("inv:1",), 1, (
            ("WARN", "rights", "PTTL \\{inv:1\\}:f"),
            ("note", "rights", "\\{inv:1\\}:nxl-l"))),
    "without the record": (
        ("+@all", "&*", "~inv*", "~{inv:1}:[fn]*", "~{inv:1:doctor*"),
        ("inv:1", "--once"), 1, (
            ("WARN", "rights", "PTTL \\{inv:1\\}:once"),)),
    "of other names, which need care": (
        ("+@all", "&*", "~inv*", "~{inv*"), ("a\033[1mb",), 77, (
            ("FAIL", "rights", "Remedy: .*~NAME\\*"),)),
    "below a prefix": (("+@all", "&*", "~inv*"), ("job", "--prefix", "app:"),
                       77, (("FAIL", "rights", "app:job.*~app:job"),)),
    "without PING, DBSIZE and ACL": (
        (*ALL, "-ping", "-dbsize", "-acl"), (), 0, ()),
    "who may only lock": (
        ("~*", "+set", "+get", "+del", "+pttl", "+eval", "+evalsha",
         "+getrange", "+pexpire", "+exists", "+time"), (), 1, (
             ("ok", "fencing", ""),
             ("note", "waiting", "Remedy"), ("note", "permits", "Remedy"))),
}


class Room(Tap):
    def __init__(self, nxlock, server):
        super().__init__()
        self.nxlock, self.server = nxlock, server

    def judge(self, name, done, code, findings):
        """The exit code is the wanted one, that of the worst line printed; and
        the findings are there."""
        out = done.stdout.decode()
        worst = max((line.split()[0] for line in out.splitlines()),
                    default="", key=("ok", "note", "WARN", "FAIL").index)
        self.check(done.returncode == code and
                   (worst == "FAIL") == (code > 1) and
                   (worst == "WARN") == (code == 1), f"{name}: {code}",
                   f"{done.returncode}\n{out}{done.stderr.decode()}")
        for level, subject, words in findings:
            found = re.search(rf"^{level or '....'} .*\b{subject}: .*{words}",
                              out, re.M)
            self.check(bool(found) == bool(level),
                       f"{name}: {level} {subject} {words}", out)

    def doctor(self, name, code, findings, query, *words, **environ):
        done = nx(self.nxlock, "doctor", "-u", f"{self.server.url}?{query}",
                  *words, env={**os.environ, **environ})
        self.judge(name, done, code, findings)
        self.equal(self.server.cli("DBSIZE"), b"0\n", f"{name}: no key is left")
        return done

    def servers(self):
        for name, (settings, query, words, code, findings) in SERVERS.items():
            for pair in settings:
                self.server.cli("CONFIG", "SET", *pair)
            self.doctor(name, code, findings, f"{QUERY}&{query}".rstrip("&"),
                        *words)
            for pair in RIGHT:
                self.server.cli("CONFIG", "SET", *pair)

    def users(self):
        if not self.may_use_acl(self.server, "permissions"):
            return
        for name, (rules, words, code, findings) in USERS.items():
            self.server.cli("ACL", "SETUSER", "u", "reset", "on",
                            ">" + PASSWORD, *rules)
            self.server.cli("SCRIPT", "FLUSH")
            self.doctor(f"a user {name}", code, findings, f"{QUERY}&user=u",
                        *words, NXLOCK_PASSWORD=PASSWORD)
        done = self.doctor("a wrong password", 77, (
            ("FAIL", "reach", "WRONGPASS"), (None, "lock", "")),
            f"{QUERY}&user=u", NXLOCK_PASSWORD="wrong-one")
        self.check(b"wrong-one" not in done.stdout, "which is not shown")
        self.elsewhere()

    def elsewhere(self):
        """Other commands name doctor where a permission is missing, not where
        the login is refused, whatever the server is called."""
        named = os.path.join(self.server.folder, "NOPERM")
        os.symlink(self.server.socket, named)
        for password, rules, wanted in ((PASSWORD, "-set", True),
                                        ("wrong-one", "+set", False)):
            self.server.cli("ACL", "SETUSER", "u", "reset", "on",
                            ">" + PASSWORD, *ALL, rules)
            done = nx(self.nxlock, "acquire", "x", "-u",
                      f"unix://{named}?user=u",
                      env={**os.environ, "NXLOCK_PASSWORD": password})
            self.check(done.returncode == 77 and
                       (b"nxlock doctor x" in done.stderr) == wanted,
                       f"acquire, {rules}: doctor named: {wanted}", done)

    def output(self, no_names):
        done = nx(self.nxlock, "doctor", "--json")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.check(all(one["v"] == 1 and one["finding"] and
                       one["level"] in ("ok", "note", "WARN", "FAIL")
                       for one in lines) and done.returncode == 0,
                   "--json: an object for each finding", done)
        with open("/dev/full", "wb") as full:
            code = os.spawnvpe(os.P_WAIT, "sh", [
                "sh", "-c", '"$1" doctor > "$2" 2> /dev/null', "sh",
                self.nxlock, full.name], os.environ)
        self.equal(code, 70, "findings that cannot be printed")
        self.doctor("no memory for the name of the lock", 70, (
            ("FAIL", "lock", "memory"),), QUERY, LD_PRELOAD=no_names,
            ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") +
            ":verify_asan_link_order=0")
        for words, code in ((("-u", "http://x"), 78), (("a", "b"), 64),
                            (("--ttl", "3s"), 64)):
            self.equal(nx(self.nxlock, "doctor", *words).returncode, code,
                       f"doctor {words}: {code}")

    def others(self):
        nothing = f"unix://{self.server.folder}/nothing"
        done = nx(self.nxlock, "doctor", "-u", nothing)
        self.judge("no server", done, 69, (
            ("FAIL", "reach", "is running"), (None, "lock", "")))
        self.equal(done.stdout.count(b"/nothing"), 1, "its address, once")
        with Server() as locked:
            locked.cli("CONFIG", "SET", "requirepass", PASSWORD)
            self.judge("no password", nx(
                self.nxlock, "doctor", "-u", locked.url), 77, (
                    ("FAIL", "reach", "NOAUTH"), (None, "server", "")))
        self.server.cli("SET", "held", "mine")
        nx(self.nxlock, "doctor", "held")
        self.equal(self.server.cli("GET", "held"), b"mine\n",
                   "a lock that is held is left alone")
        self.server.cli("DEL", "held")

    def several(self):
        """Of the two new ones nothing is known."""
        with Server() as young, Server() as other:
            urls = ["-u", f"{self.server.url}?{QUERY}", "-u",
                    f"{other.url}?durable=1", "-u", f"{young.url}"]
            other.cli("CONFIG", "SET", "appendonly", "yes")
            self.judge("one of three is young", nx(
                self.nxlock, "doctor", *urls), 1, (
                    ("WARN", "role", "vote|grants"), ("ok", "lock", ""),
                    ("note", "persistence", "guard_restarts")))
            self.judge("for records", nx(
                self.nxlock, "doctor", *urls, "--once"), 69, (
                    ("FAIL", "once", "server"),))
            if self.may_use_acl(self.server, "one without INFO"):
                self.server.cli("ACL", "SETUSER", "default", "-info")
                self.judge("one without INFO", nx(
                    self.nxlock, "doctor", *urls), 77, (
                        ("FAIL", "rights", "INFO.*Remedy"),))
                self.server.cli("ACL", "SETUSER", "default", "+info")


def main(nxlock, no_names):
    with Server("--appendonly", "yes", "--appendfsync", "always") as server:
        clean_environment(server)
        os.environ["NXLOCK_URL"] += "?" + QUERY
        await_(lambda: re.search(rb"uptime_in_seconds:([4-9]|\d\d)",
                                 server.cli("INFO")))
        room = Room(nxlock, server)
        room.servers()
        room.users()
        room.output(no_names)
        room.others()
        room.several()
    return room.done()


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:])))
