#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_doctor_failover.py NXLOCK: what doctor says of a failover: a primary
that is cut off, how long locks pause, the clocks of the replicas, and whether
they are those that wait_replicas needs.

The replica announces the port of a proxy, which changes what it tells as its
time.
"""

import os
import re
import signal
import socket
import sys
import threading

sys.dont_write_bytecode = True  # the tree stays as it is

from rig import Server, Tap, await_, clean_environment, free_port, nx

TIME = re.compile(rb"\*2\r\n\$10\r\n(\d{10})\r\n\$\d\r\n(\d{1,6})\r\n")
MS = 1000  # us


class Clock:
    """A port that leads to a server and sets its clock apart."""

    def __init__(self, port):
        self.to, self.ahead_us = port, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.to))
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

    def edit(self, data):
        def shifted(match):
            us = int(match[1]) * 1000000 + int(match[2]) + self.ahead_us
            low = b"%d" % (us % 1000000)
            return b"*2\r\n$10\r\n%d\r\n$%d\r\n%s\r\n" % (
                us // 1000000, len(low), low)
        return TIME.sub(shifted, data)


class Room:
    def __init__(self, nxlock, primary, replica, clock):
        self.tap, self.nxlock = Tap(), nxlock
        self.primary, self.replica, self.clock = primary, replica, clock

    def doctor(self, query, *words):
        url = f"{self.primary.url}?max_ttl_ms=1000&{query}".rstrip("&")
        done = nx(self.nxlock, "doctor", "-u", url, *words)
        return done.returncode, done.stdout.decode()

    def finds(self, name, out, level, what, words):
        self.tap.check(re.search(rf"^{level} .*\b{what}: .*{words}", out, re.M),
                       name, out)

    def lacks(self, name, out, what):
        self.tap.check(not re.search(rf"\b{what}: ", out), name, out)

    def alone(self):
        code, out = self.doctor("")
        self.lacks("without a replica nothing is said of one", out, "replicas")
        self.lacks("and without a guard nothing of a pause", out, "pause")
        code, out = self.doctor("guard_restarts=on")
        self.finds("with one it is", out, "ok", "pause",
                   r"after a restart it grants no lock for a little longer "
                   r"than max_ttl_ms \(1s\)")

    def follow(self):
        self.replica.cli("CONFIG", "SET", "replica-announce-port",
                         str(self.clock.port))
        self.replica.cli("REPLICAOF", "127.0.0.1", str(self.primary.port))
        self.tap.check(await_(lambda: b"state=online" in self.primary.cli(
            "INFO", "replication")), "a replica")

    def cut_off(self):
        code, out = self.doctor("")
        self.finds("no guard", out, "WARN", "role", "guard_failover=on in the")
        self.finds("min-replicas-to-write", out, "WARN", "replicas",
                   r"min-replicas-to-write is 0: .*cut off from its replica "
                   r"goes on granting .*beside its successor\. Remedy: CONFIG "
                   r"SET min-replicas-to-write 1, and min-replicas-max-lag 2")
        code, out = self.doctor("guard_failover=on")
        self.finds("the guard does not cover it", out, "WARN", "replicas",
                   "successor, which guard_failover does not cover")
        self.tap.equal(code, 1, "a warning")
        self.primary.cli("CONFIG", "SET", "min-replicas-to-write", "1")
        self.tap.check(await_(lambda: b"min_slaves_good_slaves:1" in
                              self.primary.cli("INFO", "replication")),
                       "it is set")
        code, out = self.doctor("guard_failover=on")
        self.finds("a long lag", out, "note", "replicas",
                   r"stops granting locks after 10s \(min-replicas-max-lag\)")
        self.primary.cli("CONFIG", "SET", "min-replicas-max-lag", "2")
        code, out = self.doctor("guard_failover=on")
        self.finds("a short one", out, "ok", "replicas", "after 2s")
        self.tap.equal(code, 0, "nothing is wrong")

    def pause(self):
        guard = "guard_failover=on"
        _, out = self.doctor(guard)
        self.finds("the pause", out, "ok", "pause",
                   r"after a failover it grants no lock .*max_ttl_ms \(1s\)")
        long = guard + "&timeout_ms=1000"
        done = nx(self.nxlock, "doctor", "-u",
                  f"{self.primary.url}?max_ttl_ms=600000&{long}")
        self.finds("far too long", done.stdout.decode(), "note", "pause",
                   r"max_ttl_ms, which is 10m; with leases of 30s \(the default"
                   r" of --ttl\).*Remedy: set max_ttl_ms to the longest lease")
        done = nx(self.nxlock, "doctor", "--ttl", "2m", "-u",
                  f"{self.primary.url}?max_ttl_ms=600000&{long}")
        self.finds("not for leases of 2m", done.stdout.decode(), "ok", "pause",
                   r"max_ttl_ms \(10m\)")
        urls = [f"unix://{name}" for name in ("/a", "/b")]
        done = nx(self.nxlock, "doctor", "-u", ",".join(
            [f"{self.primary.url}?max_ttl_ms=1000", *urls]))
        self.finds("of several", done.stdout.decode(), "ok", "pause",
                   "after a failover it has no vote for a little longer")

    def clocks(self):
        at = f"replica 127.0.0.1:{self.clock.port}"
        self.clock.ahead_us = 0
        _, out = self.doctor("guard_failover=on")
        self.finds("one clock", out, "(ok|note)", "clock",
                   rf"{at} is [0-9]*m?s (ahead of|behind) the primary, to with")
        self.clock.ahead_us = 50 * MS
        code, out = self.doctor("guard_failover=on")
        self.finds("a clock ahead", out, "WARN", "clock",
                   rf"{at} is [345][0-9]ms ahead of the primary: .*even after "
                   r"FAILOVER they pause for longer than 1s\. Remedy: sync")
        self.tap.equal(code, 1, "is a warning")
        _, out = self.doctor("")
        self.finds("without the guard", out, "WARN", "clock",
                   "ahead .*too early, while their holders count on them")
        self.clock.ahead_us = -50 * MS
        _, out = self.doctor("guard_failover=on")
        self.finds("a clock behind is worth a note", out, "note", "clock",
                   rf"{at} is [456][0-9]ms behind the primary")
        self.clock.ahead_us = -2000 * MS
        _, out = self.doctor("guard_failover=on")
        self.finds("for the fencing tokens far behind", out, "WARN", "clock",
                   "behind the primary: .*a fencing token may be smaller")
        self.clock.ahead_us = 0
        self.tap.check(b"READONLY" not in self.replica.cli(
            "INFO", "errorstats"), "nothing was written to the replica")

    def connected(self, count):
        """So many replicas are in sync?"""
        return self.primary.cli("INFO", "replication").count(
            b",state=online,") == count

    def waits(self, other):
        """wait_replicas beside the replicas there are; other is a second."""
        self.clock.ahead_us = 0
        code, out = self.doctor("")
        self.finds("one server", out, "note", "durability",
                   "as durable as one server's memory, and a failover may lose "
                   ".*Remedy: wait_replicas=1")
        code, out = self.doctor("wait_replicas=2")
        self.finds("too few", out, "FAIL", "replicas", "wait_replicas is 2, but"
                   r" 1 replica is connected: no lock is granted\. Remedy: ")
        self.tap.equal(code, 69, "no lock")
        self.lacks("and no durability", out, "durability")
        _, out = self.doctor("wait_replicas=1")
        self.finds("just enough", out, "note", "replicas", "wait_replicas is "
                   "1, and 1 is in sync: while one is away, no lock is granted")
        self.finds("two servers", out, "ok", "durability",
                   r"as durable as 2 servers \(wait_replicas=1\): ")
        other.cli("REPLICAOF", "127.0.0.1", str(self.primary.port))
        self.tap.check(await_(lambda: self.connected(2)), "a second replica")
        code, out = self.doctor("guard_failover=on&wait_replicas=1")
        self.finds("more than enough", out, "ok", "replicas",
                   "wait_replicas is 1, and 2 are in sync")
        self.tap.check("priority" not in out, "of equal priority", out)
        self.tap.equal(code, 0, "all is well")
        _, out = self.doctor("wait_replicas=2&wait_aof=1")
        self.finds("their files", out, "ok", "durability",
                   "as durable as the append-only files of 3 servers")
        self.priorities(other)
        self.records()
        other.process.send_signal(signal.SIGSTOP)
        self.tap.check(await_(lambda: re.search(
            rb",lag=([3-9]|\d\d)", self.primary.cli("INFO", "replication"))),
                       "it stops")
        code, out = self.doctor("wait_replicas=2")
        self.finds("too few in sync", out, "FAIL", "replicas", "of 2 replicas 1"
                   r" is in sync: no lock is granted\. Remedy: wait until INFO")
        self.tap.equal(code, 69, "no lock either")
        other.process.send_signal(signal.SIGCONT)
        other.cli("REPLICAOF", "NO", "ONE")
        self.tap.check(await_(lambda: self.connected(1)), "one replica again")

    def priorities(self, other):
        other.cli("CONFIG", "SET", "replica-priority", "50")
        code, out = self.doctor("guard_failover=on&wait_replicas=1")
        self.finds("unequal priorities", out, "WARN", "replicas",
                   "replica-priority is between 50 and 100: a Sentinel prom.* "
                   "the one with the smallest, .*Remedy: CONFIG SET replica-pr")
        self.tap.equal(code, 1, "are a warning")
        _, out = self.doctor("guard_failover=on")
        self.tap.check("priority" not in out, "if something waits for them",
                       out)
        other.cli("CONFIG", "SET", "replica-priority", "0")
        _, out = self.doctor("wait_replicas=1")
        self.finds("never promoted", out, "WARN", "replicas",
                   r"1 of them is never promoted \(replica-priority 0\), but "
                   "wait_replicas=1 counts them")
        _, out = self.doctor("wait_replicas=2")
        self.tap.check("priority" not in out, "another must have it too", out)
        other.cli("CONFIG", "SET", "replica-priority", "100")

    def records(self):
        self.primary.cli("CONFIG", "SET", "appendonly", "yes")
        _, out = self.doctor("wait_replicas=1", "--once")
        self.finds("a record", out, "WARN", "once", "fsync everysec: ")
        _, out = self.doctor("wait_replicas=1&wait_aof=1", "--once")
        self.finds("waits for an fsync", out, "ok", "once",
                   r"fsync before a record counts \(wait_aof\), noeviction, "
                   "wait_replicas=1: .*unless 2 servers fail at once")
        _, out = self.doctor("wait_replicas=2", "--once")
        self.finds("with as many as there are", out, "WARN", "once",
                   "wait_replicas is 2, of 2 replicas: while one is away")
        _, out = self.doctor("wait_replicas=3", "--once")
        self.finds("with more", out, "FAIL", "once", "nothing is recorded")
        self.primary.cli("CONFIG", "SET", "appendonly", "no")

    def passwords(self):
        for one in (self.replica, self.primary):
            one.cli("CONFIG", "SET", "masterauth", "sesame")
            one.cli("CONFIG", "SET", "requirepass", "sesame")
        with_password = "guard_failover=on&password=sesame"
        self.clock.ahead_us = 50 * MS
        _, out = self.doctor(with_password)
        self.finds("with the same password", out, "WARN", "clock", "ahead of")
        done = nx(self.nxlock, "doctor", "-u", "redis://default:sesame@127.0.0."
                  f"1:{self.primary.port}/0?max_ttl_ms=1000")
        self.finds("wherever the URL has it", done.stdout.decode(), "WARN",
                   "clock", "replica .* ahead of the primary")
        self.admin("CONFIG", "SET", "replica-announce-ip", "192.0.2.1")
        self.admin("CLIENT", "KILL", "TYPE", "master")
        self.tap.check(await_(lambda: b"ip=192.0.2.1" in self.primary_says(
            "INFO", "replication")), "it announces another machine")
        _, out = self.doctor(with_password)
        self.finds("which does not get the password", out, "note", "clock",
                   "192.0.2.1:.*not checked: the password would be sent there "
                   "without TLS")

    def admin(self, *words):
        nx("redis-cli", "-s", self.replica.socket, "-a", "sesame", *words)

    def primary_says(self, *words):
        return nx("redis-cli", "-s", self.primary.socket, "-a", "sesame",
                  *words).stdout

    def unreached(self):
        self.admin("CONFIG", "SET", "replica-announce-ip", "")
        self.admin("CONFIG", "SET", "replica-announce-port", "1")
        self.admin("CLIENT", "KILL", "TYPE", "master")
        self.tap.check(await_(lambda: b"port=1," in self.primary_says(
            "INFO", "replication")), "it announces a closed port")
        _, out = self.doctor("guard_failover=on&password=sesame")
        self.finds("is not checked", out, "note", "clock",
                   "of the replica 127.0.0.1:1: not checked: .*refused")


def main(nxlock):
    ports = free_port(), free_port(), free_port()
    with Server("--port", str(ports[0]), "--bind", "127.0.0.1") as primary, \
            Server("--port", str(ports[1]), "--bind", "127.0.0.1") as replica, \
            Server("--port", str(ports[2]), "--bind", "127.0.0.1") as other:
        clean_environment(primary)
        primary.port = ports[0]
        for one in (primary, replica, other):
            one.cli("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        room = Room(nxlock, primary, replica, Clock(ports[1]))
        await_(lambda: re.search(rb"uptime_in_seconds:([4-9]|\d\d)",
                                 primary.cli("INFO")))
        room.alone()
        room.follow()
        for act in (room.cut_off, room.pause, room.clocks,
                    lambda: room.waits(other), room.passwords,
                    room.unreached):
            act()
    return room.tap.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
