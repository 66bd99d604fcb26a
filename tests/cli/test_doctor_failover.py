#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_doctor_failover.py NXLOCK: what doctor says of a failover: a primary
that is cut off, the clocks of the replicas, and which of them is promoted.

The replica announces the port of a proxy, which changes what it tells as its
time.
"""

import re
import sys

from rig import Relay, Server, await_, free_port, nx, play
from table import Table

TIME = re.compile(rb"\*2\r\n\$10\r\n(\d{10})\r\n\$\d\r\n(\d{1,6})\r\n")
MS = 1000  # us
RIGHT = ("--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0",
         "--appendonly", "yes", "--appendfsync", "always")


class Clock(Relay):
    """Sets the server's clock apart."""

    ahead_us = 0

    def answers(self, data):
        def shifted(match):
            us = int(match[1]) * 1000000 + int(match[2]) + self.ahead_us
            low = b"%d" % (us % 1000000)
            return b"*2\r\n$10\r\n%d\r\n$%d\r\n%s\r\n" % (
                us // 1000000, len(low), low)
        return TIME.sub(shifted, data)


GUARD = "guard_failover=on"
AT = "CONFIG", "SET"
# Row after row: what is done before (its name in Room), the parameters of the
# URL, the exit code, and the findings.
ROWS = (
    ("alone", "", 0, (None, "cut off"), (None, "clock"), (None, "role")),
    ("follow", "", 1, ("WARN", "role", "1\\. Remedy: .*guard_failover=on"),
     ("WARN", "cut off", "Remedy: .*min-replicas-to-write")),
    ("nothing", GUARD, 1, (None, "role"), ("WARN", "cut off")),
    ("write_to_one", GUARD, 0, (None, "cut off"), (None, "clock")),
    ("ahead", GUARD, 1, ("WARN", "clock", ": [345][0-9]ms ahead.*NTP")),
    ("slightly_behind", GUARD, 0, (None, "clock")),
    ("far_behind", GUARD, 1,
     ("WARN", "clock", "fencing token.*: [12][.0-9]*s behind")),
    ("together", "wait_replicas=2", 69, ("FAIL", "lock", "replica")),
    ("nothing", GUARD + "&wait_replicas=1", 0, ("ok", "lock"),
     (None, "replica-priority")),
    ("second", GUARD + "&wait_replicas=1", 0, (None, "replica-priority")),
    ("priority_50", GUARD + "&wait_replicas=1", 1,
     ("WARN", "replica-priority", "Remedy: .*replica-priority 100")),
    ("nothing", GUARD, 0, (None, "replica-priority")),
    ("priority_0", GUARD + "&wait_replicas=1", 1,
     ("WARN", "replica-priority")),
    ("nothing", GUARD + "&wait_replicas=2", 0, (None, "replica-priority")),
    ("password", GUARD + "&password=sesame", 1, ("WARN", "clock", "ms ahead")),
    ("other_password", GUARD + "&password=sesame", 0,
     ("note", "clock", "WRONGPASS.*Remedy: .* same users, passwords")),
    ("same_password", GUARD + "&password=sesame", 1,
     ("WARN", "clock", "ms ahead")),
    ("elsewhere", GUARD + "&password=sesame", 0,
     ("note", "192.0.2.1:\\d+ clock", "password")),
    ("closed_port", GUARD + "&password=sesame", 0,
     ("note", "127.0.0.1:1 clock", "refused.*announce-ip")),
)


class Room(Table):
    def play(self):
        with Server("--port", free_port(), *RIGHT) as self.replica, \
                Server("--port", free_port(), *RIGHT) as self.other, \
                Clock(self.replica) as self.clock:
            self.primary, self.port = self.server, self.server.options[1]
            await_(lambda: re.search(rb"uptime_in_seconds:([4-9]|\d\d)",
                                     self.primary.cli("INFO")))
            for name, query, code, *findings in ROWS:
                getattr(self, name)()
                print(f"# {name}, {query}")
                self.row(f"doctor -u {{url}}?max_ttl_ms=1000&{query}", code,
                         *findings)
            self.check(b"READONLY" not in self.admin(self.replica, "INFO",
                                                     "errorstats"),
                       "nothing was written to the replica")

    # ------------------------------------------------- what is done before

    def admin(self, server, *words):
        return nx("redis-cli", "-s", server.socket, "-a", "sesame",
                  *words).stdout

    def replication(self, text, name):
        self.check(await_(lambda: text in self.admin(
            self.primary, "INFO", "replication")), name)

    def alone(self):
        pass

    nothing = alone

    def follow(self):
        self.replica.cli(*AT, "replica-announce-port", str(self.clock.port))
        self.replica.cli("REPLICAOF", "127.0.0.1", str(self.port))
        self.replication(b"state=online", "a replica")

    def write_to_one(self):
        self.primary.cli(*AT, "min-replicas-to-write", "1")
        self.replication(b"min_slaves_good_slaves:1", "it is set")

    def ahead(self):
        self.clock.ahead_us = 50 * MS

    def slightly_behind(self):
        self.clock.ahead_us = -50 * MS

    def far_behind(self):
        self.clock.ahead_us = -2000 * MS

    def together(self):
        self.clock.ahead_us = 0

    def second(self):
        self.other.cli("REPLICAOF", "127.0.0.1", str(self.port))
        self.check(await_(lambda: self.primary.cli(
            "INFO", "replication").count(b",state=online,") == 2),
            "a second replica")
        self.replication(b"min_slaves_good_slaves:2", "and is in sync")

    def priority_50(self):
        self.other.cli(*AT, "replica-priority", "50")

    def priority_0(self):
        self.other.cli(*AT, "replica-priority", "0")

    def password(self):
        self.clock.ahead_us = 50 * MS
        self.other.cli("REPLICAOF", "NO", "ONE")
        for one in (self.replica, self.primary):
            one.cli(*AT, "masterauth", "sesame")
            one.cli(*AT, "requirepass", "sesame")

    def other_password(self):
        self.admin(self.replica, *AT, "requirepass", "other")

    def same_password(self):
        nx("redis-cli", "-s", self.replica.socket, "-a", "other", *AT,
           "requirepass", "sesame")

    def announce(self, name, value, text):
        self.admin(self.replica, *AT, name, value)
        self.admin(self.replica, "CLIENT", "KILL", "TYPE", "master")
        self.replication(text, f"it announces {value}")
        self.replication(b"min_slaves_good_slaves:1", "and is in sync")

    def elsewhere(self):
        self.announce("replica-announce-ip", "192.0.2.1", b"ip=192.0.2.1")

    def closed_port(self):
        self.admin(self.replica, *AT, "replica-announce-ip", "")
        self.announce("replica-announce-port", "1", b"ip=127.0.0.1,port=1,")


if __name__ == "__main__":
    sys.exit(play(Room, Room.play, options=("--port", free_port(), *RIGHT)))
