#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_doctor_failover.py NXLOCK: what doctor says of a failover: a primary
that is cut off, the clocks of the replicas, and which of them is promoted.

The replica announces the port of a proxy, which changes what it tells as its
time.
"""

import re
import shlex
import sys

from rig import Relay, Server, await_, free_port, play, resp
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
LOGIN = GUARD + "&password=sesame"
# Replicas, the server and the lease have the time that a busy machine takes.
PATIENT = "?max_ttl_ms=5000&timeout_ms=20000"
ONE = "wait_replicas=1&wait_ms=500"
TWO = "wait_replicas=2&wait_ms=500"
NEAR = "await min_slaves_good_slaves:1"
AGAIN = "replica CLIENT KILL TYPE master"
# Steps, which Room.step() describes; then what doctor finds: the parameters of
# its URL, the exit code, and the findings.
ROWS = (
    ((), "", 0, (None, "cut off"), (None, "clock"), (None, "role")),
    (("replica CONFIG SET replica-announce-port {clock}",
      "replica REPLICAOF 127.0.0.1 {port}", "await state=online"),
     "", 1, ("WARN", "role", "1\\. Remedy: .*guard_failover=on"),
     ("WARN", "cut off", "Remedy: .*min-replicas-to-write")),
    ((), GUARD, 1, (None, "role"), ("WARN", "cut off")),
    (("primary CONFIG SET min-replicas-to-write 1", NEAR),
     GUARD, 0, (None, "cut off"), (None, "clock")),
    (("clock 50",), GUARD, 1, ("WARN", "clock", ": [345][0-9]ms ahead.*NTP")),
    (("clock -50",), GUARD, 0, (None, "clock")),
    (("clock -2000",), GUARD, 1,
     ("WARN", "clock", "fencing token.*: [12][.0-9]*s behind")),
    (("clock 0",), TWO, 69, ("FAIL", "lock", "replica")),
    ((), f"{GUARD}&{ONE}", 0, ("ok", "lock"),
     (None, "replica-priority")),
    (("other REPLICAOF 127.0.0.1 {port}", "await min_slaves_good_slaves:2"),
     f"{GUARD}&{ONE}", 0, (None, "replica-priority")),
    (("other CONFIG SET replica-priority 50",), f"{GUARD}&{ONE}", 1,
     ("WARN", "replica-priority", "Remedy: .*replica-priority 100")),
    ((), GUARD, 0, (None, "replica-priority")),
    (("other CONFIG SET replica-priority 0",), f"{GUARD}&{ONE}", 1,
     ("WARN", "replica-priority")),
    ((), f"{GUARD}&{TWO}", 0, (None, "replica-priority")),
    (("clock 50", "other REPLICAOF NO ONE",
      *(f"{one} CONFIG SET {name} sesame" for one in ("replica", "primary")
        for name in ("masterauth", "requirepass"))),
     LOGIN, 1, ("WARN", "clock", "ms ahead")),
    (("replica CONFIG SET requirepass other",), LOGIN, 0,
     ("note", "clock", "WRONGPASS.*Remedy: .* same users, passwords")),
    (("replica CONFIG SET requirepass sesame",), LOGIN, 1,
     ("WARN", "clock", "ms ahead")),
    (("replica CONFIG SET replica-announce-ip 192.0.2.1", AGAIN,
      "await ip=192.0.2.1", NEAR),
     LOGIN, 0, ("note", "192.0.2.1:\\d+ clock", "password")),
    (("replica CONFIG SET replica-announce-ip ''",
      "replica CONFIG SET replica-announce-port 1", AGAIN,
      "await ip=127.0.0.1,port=1,", NEAR),
     LOGIN, 0, ("note", "127.0.0.1:1 clock", "refused.*announce-ip")),
)


class Room(Table):
    def play(self):
        options = self.server.options
        with Server("--port", free_port(), *RIGHT) as replica, \
                Server("--port", free_port(), *RIGHT) as other, \
                Clock(replica) as self.clock:
            self.values.update(port=str(options[1]), clock=str(self.clock.port))
            self.links = {  # which need no password later
                "primary": self.link, "replica": resp.at_socket(
                    replica.socket, 60), "other": resp.at_socket(
                        other.socket, 60)}
            self.check(await_(lambda: re.search(
                r"uptime_in_seconds:(1[2-9]|[2-9]\d)", self.db("INFO"))),
                       "a server older than any lock")
            for steps, query, code, *findings in ROWS:
                for step in steps:
                    print(f"# {step}")
                    self.step(step)
                self.row(f"doctor -u {{url}}{PATIENT}&{query}", code,
                         *findings)
            self.check("READONLY" not in self.links["replica"].ask(
                "INFO", "errorstats"), "nothing was written to the replica")

    def step(self, line):
        """A server and its command; "clock MS": how far that of the replica is
        ahead; "await WORDS" in what the primary says of its replicas."""
        what, *words = shlex.split(self.fill(line))
        if what == "clock":
            self.clock.ahead_us = int(words[0]) * MS
        elif what == "await":
            self.check(await_(lambda: words[0] in self.db(
                "INFO", "replication")), line)
        else:
            self.links[what].ask(*words)


if __name__ == "__main__":
    sys.exit(play(Room, Room.play, options=("--port", free_port(), *RIGHT)))
