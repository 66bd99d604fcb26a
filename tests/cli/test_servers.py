#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_servers.py NXLOCK AGED: addresses that do not lead to the primary a lock
needs: a Sentinel, a Cluster node, a replica, a load balancer, an old server.
Every command says what the server is and what to do. table.py describes the
rows.
"""

import contextlib
import os
import re
import socket
import sys

from rig import Aged, Relay, Server, await_, play
from sentinel_group import Sentinel
from table import Table

TOKEN = "6fa459ea-ee8a-4ca4-894e-db77e160355e@db7:41233:backup"
SLOTS = 16384


def free_port():
    """A port that is free, and so is the one 10000 above, for the bus of a
    Cluster node."""
    while True:
        with socket.socket() as low, socket.socket() as high:
            low.bind(("127.0.0.1", 0))
            port = low.getsockname()[1] - 10000
            with contextlib.suppress(OSError):
                high.bind(("127.0.0.1", port))
                return port


class Tcp(Server):
    """A server at a port too."""

    def __init__(self, *options):
        self.port = free_port()
        super().__init__("--port", str(self.port), "--bind", "127.0.0.1",
                         *options)
        self.url = f"redis://127.0.0.1:{self.port}"

    def says(self, words, *command):
        """Waits until its answer has these."""
        return await_(lambda: words in self.cli(*command))


class KeyDb(Relay):
    """Tells INFO as a KeyDB with active-replica does. A reply comes whole here:
    it is much shorter than what a socket passes on at once."""

    def answers(self, data):
        return re.sub(
            rb"\$(\d+)\r\n(# Server.*?db0:[^\r]*\r\n|# Server.*?# Keyspace\r\n)"
            rb"\r\n", self.edited, data, flags=re.S)

    @staticmethod
    def edited(match):
        text = match.group(2).replace(b"role:master", b"role:active-replica"
                                      b"\r\nmaster_host:10.0.0.9")
        text = re.sub(rb"redis_version:[^\r]*", b"redis_version:255.255.255",
                      text) + b"# KeyDB\r\nmvcc_depth:0\r\n"
        return b"$%d\r\n%s\r\n" % (len(text), text)


class Restarts(Relay):
    """Its server loses its memory before the second connection."""

    def __init__(self, server):
        super().__init__(server)
        self.first = True

    def serve(self, one):
        if not self.first:
            server = next(self.servers)
            server.restart()
            server.ready()
        self.first = False
        super().serve(one)


# What each command says of a Sentinel, under any URL of it.
SENTINEL = ("is a Sentinel", "payments", "{primary}",
            "redis+sentinel://HOST:PORT/SERVICE")
OF_SENTINEL = tuple(row for url in (
    "redis://{sentinel}", "redis://{sentinel}/3", "redis://:s3cret@{sentinel}",
    "redis://joe:s3cret@{sentinel}/3") for row in (
        *((f"{words} -u {url}{end}", 78, *SENTINEL, "!Redis 2.2", "!s3cret")
          for words, end in (("run x -n", " -- true"), ("status x", ""),
                             ("list", ""), ("wait x", ""),
                             ("unlock x --force -y", ""))),
        (f"doctor -u {url}", 78, ("FAIL", "reach", "is a Sentinel"),
         *SENTINEL, "!Redis 2.2", "!s3cret", "!ACL SETUSER", "! lock: ")))
BESIDE_SENTINEL = (
    ("doctor -u redis://{primary} -u {url} -u redis://{sentinel}", 78,
     ("FAIL", "reach", "is a Sentinel")),
    ("run x -n -v -u redis://{primary} -u {url}?guard_restarts=off -u "
     "redis://{sentinel} -- true", 0, "is a Sentinel"))


def refused(at, *said):
    """Nothing is locked there, whatever the name, nor read as a lock."""
    return tuple(
        (f"{words} -u {at}{end}", 69, *said, "!starting or busy")
        for name in ("foo", "bar") for words, end in (
            (f"run {name} -n", " -- true"), (f"once {name} -n", " -- true"),
            (f"acquire {name} -n", ""), (f"status {name}", "")))


LONELY = (
    ("doctor -u {lonely}", 69, ("FAIL", "role", "Redis Cluster.*no slots"),
     "!starting or busy"),
    *refused("{lonely}", "Redis Cluster", "cluster-enabled no"))
OF_CLUSTER = (
    ("doctor -u {one}", 69, ("FAIL", "role", "Redis Cluster"),
     ("FAIL", "lock", "cluster-enabled no")),
    *refused("{one}", "Redis Cluster", "cluster-enabled no"),
    ("status bar -u {one}/1", 69, "Redis Cluster"),
    ("list -u {one}", 69, "Redis Cluster"))
STALE = '~.*"warning":"[^"]*replica[^"]*primary.*'
OF_REPLICA = (
    *(row for code, name, state in ((1, "free", "free"),
                                    (0, "held", "held by db7")) for row in (
        (f"status {name} -u {{copy}}", code, state, "\n  warning: ", "{copy}",
         "replica", "primary"),
        (f"status {name} --json -u {{copy}}", code, STALE))),
    ("list -u {copy}", 0, "~held\t.*", "replica", "primary"),
    ("wait free -u {copy}", 0, "replica", "primary"),
    ("unlock free --force -y -u {copy}", 1, "replica", "primary"),
    ("doctor -u {copy}", 69, ("FAIL", "lock", "replica"),
     ("FAIL", "lock", "primary")),
    ("status free -u {primary}", 1, "=free free\n", "!nxlock:"),
    ("list --json -u {primary}", 0, '"name":"held"', "!warning"))
OF_KEYDB = (
    ("doctor -u {keydb}", 69, ("FAIL", "role", "active replica"),
     ("FAIL", "lock", "active-replica no"),
     ("note", "server", "keydb 255.255.255")),
    *refused("{keydb}", "active replica", "two clients can hold one lock",
             "active-replica no"),
    ("status x -v -u {keydb} -u {url} -u {other}?guard_restarts=off", 1,
     "no vote: an active replica"))
NO_SCAN = ("SCAN", "!Redis 2.2")
# What an old version lacks is no permission.
AGED = (
    ("2.2", ("fencing", "scripts \\(2.6\\)"), True),
    ("2.4", ("fencing", "scripts \\(2.6\\)"), False),
    ("2.6", ("persistence", ""), True))
# Nor is a command that has another name.
RENAMED = (
    (("EVAL", "EVALSHA"), ("doctor -u {renamed}", 1,
                           ("WARN", "fencing", "renamed"), "!ACL SETUSER")),
    (("INFO",), ("doctor -u {renamed}", 1,
                 ("WARN", "persistence", "unknown"), "!ACL SETUSER")),
    (("SCAN",), ("list -u {renamed}", 69, *NO_SCAN, "renamed")))


class Room(Table):
    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        self.old = Server(), Server()  # when their turn has come

    def sentinel(self):
        del os.environ["NXLOCK_URL"]  # every row gives its own
        with Tcp() as primary, Sentinel(
                f"sentinel monitor payments 127.0.0.1 {primary.port} 1"
        ) as sentinel:
            self.values.update(primary=f"127.0.0.1:{primary.port}",
                               sentinel=f"127.0.0.1:{sentinel.port}")
            self.rows(*OF_SENTINEL, *BESIDE_SENTINEL)

    def cluster(self):
        options = ("--cluster-enabled", "yes")
        with Tcp(*options) as a, Tcp(*options) as b, Tcp(*options) as c:
            self.values.update(one=a.url, lonely=c.url)
            a.cli("CLUSTER", "ADDSLOTS", *map(str, range(SLOTS // 2)))
            b.cli("CLUSTER", "ADDSLOTS", *map(str, range(SLOTS // 2, SLOTS)))
            a.cli("CLUSTER", "MEET", "127.0.0.1", str(b.port))
            self.check(all(node.says(words, "CLUSTER", "INFO")
                           for node in (a, b)
                           for words in (b"cluster_size:2",
                                         b"cluster_state:ok")),
                       "two nodes form a Cluster")
            # CRC16: "foo" is in the upper half, "bar" in the lower one.
            a.cli("SET", "bar", TOKEN, "PX", "60000")
            b.cli("SET", "foo", TOKEN, "PX", "60000")
            self.rows(*OF_CLUSTER, *LONELY)
            # A node that has all slots works, until others join it.
            c.cli("CLUSTER", "ADDSLOTS", *map(str, range(SLOTS)))
            self.check(c.says(b"cluster_state:ok", "CLUSTER", "INFO"),
                       "a node gets all slots")
            self.rows(("doctor -u {lonely}", 1,
                       ("ok", "server", "Redis Cluster node")),
                      ("run x -n -u {lonely} -- true", 0))

    def replica(self):
        with Tcp() as primary, \
                Tcp("--replicaof", "127.0.0.1", str(primary.port)) as copy:
            self.values.update(primary=primary.url, copy=copy.url)
            primary.cli("SET", "held", TOKEN, "PX", "60000")
            self.check(copy.says(b"1", "EXISTS", "held"), "a replica follows")
            self.rows(*OF_REPLICA)

    def active_replica(self):
        with Server() as behind, Server() as other, KeyDb(behind) as keydb:
            self.values.update(keydb=keydb.url, other=other.url)
            self.rows(*OF_KEYDB)

    def balancer(self):
        """Two servers at one address are found, and a proxy is none of these,
        nor a server that restarts."""
        with self.old[0] as a, self.old[1] as b:
            self.check(await_(lambda: all(re.search(
                rb"uptime_in_seconds:([5-9]|[0-9][0-9])",
                one.cli("INFO", "server")) for one in (a, b))), "both are old")
            for relay, code, level in ((Relay(a, b), 78, "FAIL"),
                                       (Relay(a), 1, None),
                                       (Restarts(a), 1, None)):
                with relay:
                    self.row(f"doctor -u {relay.url}", code,
                             (level, "address"))

    def without_acl_or_scan(self):
        for profile, (subject, words), lists in AGED:
            with Aged(self.aged, profile, self.server) as old:
                self.row(f"doctor -u {old.url}", 1, ("WARN", subject, words),
                         "!ACL SETUSER")
                if lists:
                    self.row(f"list -u {old.url}", 69, *NO_SCAN, "Redis 2.8")
        for names, row in RENAMED:
            with Server(*(word for name in names for word in
                          ("--rename-command", name, ""))) as renamed:
                self.values["renamed"] = renamed.url
                self.row(*row)


if __name__ == "__main__":
    sys.exit(play(Room, Room.sentinel, Room.cluster, Room.replica,
                  Room.active_replica, Room.balancer, Room.without_acl_or_scan,
                  more=["aged"]))
