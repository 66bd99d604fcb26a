#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Addresses that do not lead to the primary a lock needs: a Sentinel, a
Cluster node, a replica, a load balancer, an old server. Every command says
what the server is and what to do.
Usage: test_servers.py PATH-OF-NXLOCK PATH-OF-AGED
"""

import contextlib
import json
import os
import re
import socket
import sys
import threading

from rig import Aged, Cases, Server, await_, nx, play
from sentinel_group import Sentinel

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

    def restart(self):
        super().restart()
        self.ready()

    def says(self, words, *command):
        """Waits until its answer has these."""
        return await_(lambda: words in self.cli(*command))


class Between:
    """A port that passes each new connection on to the next of some servers,
    as a TCP load balancer does; edit may change what they answer."""

    def __init__(self, servers, edit=None, before_second=None):
        self.servers, self.edit, self.count = servers, edit, 0
        self.before_second = before_second
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            behind = self.servers[self.count % len(self.servers)]
            self.count += 1
            if self.count == 2 and self.before_second:
                self.before_second()
            server = socket.create_connection(("127.0.0.1", behind.port))
            for pair in ((client, server, None), (server, client, self.edit)):
                threading.Thread(target=self.pump, args=pair,
                                 daemon=True).start()

    @staticmethod
    def pump(source, sink, edit):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(edit(data) if edit else data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def as_keydb(data):
    """INFO as a KeyDB with active-replica tells it. A reply comes whole here:
    it is much shorter than what loopback passes on at once."""
    def bulk(match):
        text = match.group(2).replace(b"role:master", b"role:active-replica"
                                      b"\r\nmaster_host:10.0.0.9")
        text = re.sub(rb"redis_version:[^\r]*", b"redis_version:255.255.255",
                      text) + b"# KeyDB\r\nmvcc_depth:0\r\n"
        return b"$%d\r\n%s\r\n" % (len(text), text)
    return re.sub(rb"\$(\d+)\r\n(# Server.*?db0:[^\r]*\r\n|# Server.*?"
                  rb"# Keyspace\r\n)\r\n", bulk, data, flags=re.S)


class Room(Cases):
    def gives(self, code, name, *words):
        """What it printed, and what it said."""
        done = nx(self.program, *words)
        out, said = done.stdout.decode(), done.stderr.decode()
        self.begin(done.returncode == code, name,
                   f"{done.returncode}, not {code}\n{out}{said}")
        return out, said

    def shows(self, text, name, *parts, lacks=()):
        self.check(all(part in text for part in parts)
                   and not any(part in text for part in lacks), name,
                   f"{text}\nwants {parts}, not {lacks}")

    # ------------------------------------------------------------ Sentinel

    def sentinel(self):
        with Tcp() as primary, Sentinel(
                f"sentinel monitor payments 127.0.0.1 {primary.port} 1"
        ) as sentinel:
            at = f"127.0.0.1:{sentinel.port}"
            sentinel.url = f"redis://{at}"
            where = f"127.0.0.1:{primary.port}"
            for kind, url in (("", sentinel.url),
                              (", a database", sentinel.url + "/3"),
                              (", a password", f"redis://:s3cret@{at}"),
                              (", a user", f"redis://joe:s3cret@{at}/3")):
                for words in (("run", "x", "-n", "-u", url, "--", "true"),
                              ("status", "x", "-u", url),
                              ("list", "-u", url),
                              ("wait", "x", "-u", url),
                              ("unlock", "x", "--force", "-y", "-u", url)):
                    _, said = self.gives(
                        78, f"{words[0]} of a Sentinel{kind}", *words)
                    self.shows(said, "says what it is and what to do",
                             "is a Sentinel", "payments", where,
                             "redis+sentinel://HOST:PORT/SERVICE",
                             lacks=("Redis 2.2", "s3cret"))
                out, _ = self.gives(
                    78, f"doctor of a Sentinel{kind}", "doctor", "-u", url)
                self.finds(out, "FAIL", "reach", "is a Sentinel", where,
                           "redis+sentinel://HOST:PORT/SERVICE")
                self.shows(out, "and nothing else is wrong",
                         lacks=("Redis 2.2", "s3cret", "ACL SETUSER",
                                " lock: "))
            out, _ = self.gives(78, "doctor of servers and a Sentinel",
                                "doctor", "-u", primary.url, "-u",
                                self.server.url, "-u", sentinel.url)
            self.finds(out, "FAIL", "reach", "is a Sentinel")
            _, said = self.gives(0, "run with a Sentinel among three", "run",
                                 "x", "-n", "-v", "-u", primary.url, "-u",
                                 self.server.url + "?guard_restarts=off", "-u",
                                 sentinel.url, "--", "true")
            self.shows(said, "works, and says which is none", "is a Sentinel")

    # ------------------------------------------------------------- Cluster

    def refuses(self, url, what, *parts):
        """Nothing is locked there, whatever the name, nor read as a lock."""
        for name in ("foo", "bar"):
            for words in (("run", name, "-n", "--", "true"),
                          ("once", name, "-n", "--", "true"),
                          ("acquire", name, "-n"), ("status", name)):
                end = words.index("--") if "--" in words else len(words)
                out, said = self.gives(69, f"{words[0]} {name} of {what}",
                                       *words[:end], "-u", url, *words[end:])
                self.shows(out + said, "says what it is and what to do", *parts,
                         lacks=("starting or busy",))

    def lonely_node(self, node):
        out, _ = self.gives(69, "doctor of a Cluster node without slots",
                            "doctor", "-u", node.url)
        self.finds(out, "FAIL", "role", "Redis Cluster", "no slots")
        self.shows(out, "and it is not excused", lacks=("starting or busy",))
        self.refuses(node.url, "a Cluster node without slots",
                     "Redis Cluster", "cluster-enabled no")
        # A node that has all slots works, until others join it.
        node.cli("CLUSTER", "ADDSLOTS", *map(str, range(SLOTS)))
        self.check(node.says(b"cluster_state:ok", "CLUSTER", "INFO"),
                   "it gets all slots")
        out, _ = self.gives(1, "doctor of a Cluster of one node", "doctor",
                            "-u", node.url)
        self.finds(out, "ok", "server", "Redis Cluster node")
        self.gives(0, "run there", "run", "x", "-n", "-u", node.url, "--",
                   "true")

    def two_nodes(self, a, b):
        a.cli("CLUSTER", "ADDSLOTS", *map(str, range(SLOTS // 2)))
        b.cli("CLUSTER", "ADDSLOTS", *map(str, range(SLOTS // 2, SLOTS)))
        a.cli("CLUSTER", "MEET", "127.0.0.1", str(b.port))
        self.check(all(node.says(words, "CLUSTER", "INFO") for node in (a, b)
                   for words in (b"cluster_size:2", b"cluster_state:ok")),
               "two nodes form a Cluster")
        # CRC16: "foo" is in the upper half, "bar" in the lower one.
        a.cli("SET", "bar", TOKEN, "PX", "60000")
        b.cli("SET", "foo", TOKEN, "PX", "60000")
        out, _ = self.gives(69, "doctor of a Cluster node", "doctor", "-u",
                            a.url)
        self.finds(out, "FAIL", "role", "Redis Cluster")
        self.finds(out, "FAIL", "lock", "cluster-enabled no")
        self.refuses(a.url, "one of two nodes", "Redis Cluster",
                     "cluster-enabled no")
        _, said = self.gives(69, "a database of a Cluster", "status", "bar",
                             "-u", a.url + "/1")
        self.shows(said, "names the Cluster", "Redis Cluster")
        _, said = self.gives(69, "list of one node", "list", "-u", a.url)
        self.shows(said, "names the Cluster", "Redis Cluster")

    def cluster(self):
        options = ("--cluster-enabled", "yes")
        with Tcp(*options) as a, \
                Tcp(*options) as b, \
                Tcp(*options) as c:
            self.two_nodes(a, b)
            self.lonely_node(c)

    # ------------------------------------------------------------- replica

    def replica(self):
        with Tcp() as primary, \
                Tcp("--replicaof", "127.0.0.1", str(primary.port)) as copy:
            where = f"127.0.0.1:{primary.port}"
            primary.cli("SET", "held", TOKEN, "PX", "60000")
            self.check(copy.says(b"1", "EXISTS", "held"),
                       "a replica follows")
            for code, name, state in ((1, "free", "free"),
                                      (0, "held", "held by db7")):
                out, _ = self.gives(code, f"status of {state} at a replica",
                                    "status", name, "-u", copy.url)
                self.shows(out, "says that it may be out of date", state,
                         "\n  warning: ", copy.url, "replica", "primary")
                out, _ = self.gives(code, "and as JSON", "status", name,
                                    "--json", "-u", copy.url)
                self.shows(json.loads(out).get("warning", ""), "says so, too",
                         "replica", "primary")
            out, said = self.gives(0, "list of a replica", "list", "-u",
                                   copy.url)
            self.shows(out, "has what it knows", "held")
            self.shows(said, "and says that it may be out of date", "replica",
                     "primary")
            _, said = self.gives(0, "wait at a replica", "wait", "free", "-u",
                                 copy.url)
            self.shows(said, "says so", "replica", "primary")
            _, said = self.gives(1, "unlock at a replica", "unlock", "free",
                                 "--force", "-y", "-u", copy.url)
            self.shows(said, "says so", "replica", "primary")
            out, _ = self.gives(69, "doctor of a replica", "doctor", "-u",
                                copy.url)
            self.finds(out, "FAIL", "lock", "replica", "primary")
            out, said = self.gives(1, "status at the primary", "status",
                                   "free", "-u", primary.url)
            self.equal(out + said, "free free\n", "has no warning")
            out, said = self.gives(0, "nor has list", "list", "--json", "-u",
                                   primary.url)
            self.shows(out + said, "a line more", '"name":"held"',
                     lacks=("warning",))

    def active_replica(self):
        with Tcp() as behind, \
                Tcp() as server:
            keydb = Between([behind], as_keydb)
            out, _ = self.gives(69, "doctor of an active replica", "doctor",
                                "-u", keydb.url)
            self.finds(out, "FAIL", "role", "active replica")
            self.finds(out, "FAIL", "lock", "active-replica no")
            self.finds(out, "note", "server", "keydb 255.255.255")
            self.refuses(keydb.url, "an active replica", "active replica",
                         "two clients can hold one lock", "active-replica no")
            out, _ = self.gives(1, "status of several, one such", "status",
                                "x", "-v", "-u", keydb.url, "-u",
                                self.server.url, "--url",
                                server.url + "?guard_restarts=off")
            self.shows(out, "says that it has no vote",
                     "no vote: an active replica")

    # ------------------------------------------------------- load balancer

    def balancer(self):
        with Tcp() as a, Tcp() as b:
            self.check(await_(lambda: all(re.search(
                rb"uptime_in_seconds:([5-9]|[0-9][0-9])",
                one.cli("INFO", "server")) for one in (a, b))), "both are old")
            for what, servers, code, restart in (
                    ("two servers at one address", [a, b], 78, None),
                    ("one behind a proxy", [a], 1, None),
                    ("one that restarts meanwhile", [a], 1, a.restart)):
                one = Between(servers, before_second=restart)
                out, _ = self.gives(code, f"doctor of {what}", "doctor", "-u",
                                    one.url)
                self.check((" address: " in out) == (code == 78),
                           f"{what}: an address of several servers", out)

    # ------------------------------------------------- without ACL or SCAN

    def not_its_rights(self, name, url, subject, *parts):
        """What is missing is no permission."""
        out, _ = self.gives(1, f"doctor of {name}", "doctor", "-u", url)
        self.finds(out, "WARN", subject, *parts)
        self.shows(out, "recommends no ACL SETUSER", lacks=("ACL SETUSER",))

    def without_acl(self):
        for profile, subject, part in (
                ("2.2", "fencing", "scripts (2.6)"),
                ("2.4", "fencing", "scripts (2.6)"),
                ("2.6", "persistence", "")):
            with Aged(self.aged, profile, self.server) as old:
                self.not_its_rights(f"a Redis {profile}", old.url, subject,
                                    part)
        for options, subject, part in (
                (("EVAL", "EVALSHA"), "fencing", "renamed"),
                (("INFO",), "persistence", "unknown")):
            words = [word for name in options
                     for word in ("--rename-command", name, "")]
            with Tcp(*words) as renamed:
                self.not_its_rights(f"a server without {options}",
                                    renamed.url, subject, part)

    def without_scan(self):
        for profile in ("2.2", "2.6"):
            with Aged(self.aged, profile, self.server) as old:
                _, said = self.gives(69, f"list of a Redis {profile}", "list",
                                     "-u", old.url)
                self.shows(said, "says what it lacks", "SCAN", "Redis 2.8",
                         lacks=("Redis 2.2",))
        with Tcp("--rename-command", "SCAN", "") as renamed:
            _, said = self.gives(69, "list without SCAN", "list", "-u",
                                 renamed.url)
            self.shows(said, "says that it may be renamed", "SCAN", "renamed",
                     lacks=("Redis 2.2",))

    def no_url(self):
        del os.environ["NXLOCK_URL"]  # every case gives its own


if __name__ == "__main__":
    sys.exit(play(Room, Room.no_url, Room.sentinel, Room.cluster, Room.replica,
                  Room.active_replica, Room.balancer, Room.without_acl,
                  Room.without_scan, more=["aged"]))
