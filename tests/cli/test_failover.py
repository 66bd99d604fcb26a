#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_failover.py NXLOCK: what the command says of a failover.

A primary and its replica behind one address, a symbolic link to the socket of
one of them, with guard_failover=on. After a promotion a refusal names a wait,
and that wait succeeds; the metrics count the failover; --every goes on.

Leases of at most 900 ms: the guard lasts for 2 s.
"""

import os
import re
import subprocess
import sys
import time

import metrics_file
from rig import (Cases, Server, await_, clean_environment, free_port, nx,
                 play)
from servers import await_copies

GUARD = "max_ttl_ms=900&guard_failover=on&wait_replicas=0"
LEASE = ("--ttl", "800ms", "--grace", "100ms")
GUARD_S = 2
RUN = "nxlock_last_run_"


class Pair:
    """Two servers, and the address that leads to one of them."""

    def __init__(self, nxlock, servers, ports):
        self.nxlock, self.servers, self.ports = nxlock, servers, ports
        self.primary, self.replica = 0, 1
        self.front = os.path.join(servers[0].folder, "front")
        os.environ["NXLOCK_URL"] = f"unix://{self.front}?{GUARD}"

    def lead_to(self, number):
        os.symlink(self.servers[number].socket, self.front + ".new")
        os.rename(self.front + ".new", self.front)

    def of(self, number, section, name):
        info = self.servers[number].cli("INFO", section).decode()
        found = re.search(rf"^{name}:(.*?)\r?$", info, re.M)
        return found[1] if found else ""

    def settle(self):
        """The primary has been one for long enough, and sends what is written
        to its replica."""
        primary, replica = (self.servers[i]
                            for i in (self.primary, self.replica))
        primary.cli("REPLICAOF", "NO", "ONE")
        replica.cli("REPLICAOF", "127.0.0.1", str(self.ports[self.primary]))
        self.lead_to(self.primary)
        return await_copies(primary, [replica]) and \
            await_(lambda: self.run("run", "settled", "-n", "--",
                                    "true").returncode == 0)

    def promote(self):
        self.primary, self.replica = self.replica, self.primary
        self.servers[self.primary].cli("REPLICAOF", "NO", "ONE")
        self.lead_to(self.primary)

    def run(self, *words):
        return nx(self.nxlock, *words)


def time_left(said):
    """In seconds; 0: it is not said, and below a second it is 1."""
    found = re.search(rb" again in (\d+)(\.\d+)?(m?s)", said)
    if not found:
        return 0
    return 1 if found[3] == b"ms" else int(found[1]) + 1


def refusals(tap, pair):
    """Each that a -w could have avoided says how long it takes."""
    tap.check(pair.settle(), "a primary with a replica")
    pair.promote()
    promoted = time.monotonic()
    for words in (("run", "r", *LEASE, "-n", "--", "true"),
                  ("run", "r", *LEASE, "-w", "300ms", "--", "true"),
                  ("acquire", "r", "--ttl", "800ms", "-n"),
                  ("wait", "r", "-w", "100ms")):
        done = pair.run(*words)
        note = done.stderr.decode()
        tap.check(done.returncode == 69 and
                  0 < time_left(done.stderr) <= GUARD_S + 2,
                  f"{words[0]} is refused, and says for how long", note)
    wait = time_left(done.stderr) + 5
    done = pair.run("run", "r", *LEASE, "-w", f"{wait}s", "--", "true")
    took = time.monotonic() - promoted
    tap.check(done.returncode == 0 and took >= GUARD_S,
              "and that wait is long enough", f"{took}\n{done.stderr}")


def refusals_of_once(tap, pair):
    """A begin waits too. A record is looked at and removed without waiting."""
    pair.settle()
    pair.promote()
    promoted = time.monotonic()
    done = pair.run("once", "o", *LEASE, "-n", "--", "true")
    tap.check(done.returncode == 69 and b"cannot acquire 'o'" in done.stderr and
              0 < time_left(done.stderr) <= GUARD_S + 2,
              "once is refused, and says for how long", done.stderr)
    config = os.path.join(pair.servers[0].folder, "nxlock.conf")
    with open(config, "w", encoding="ascii") as file:
        file.write("wait = 100ms\n")
    for what in (("show",), ("confirm", "-y")):
        asked = nx(pair.nxlock, "once", *what, "other",
                   env={**os.environ, "NXLOCK_CONFIG": config})
        tap.check(asked.returncode == 69 and time_left(asked.stderr) > 0,
                  f"{what[0]} does not wait", asked)
    done = pair.run("once", "o", *LEASE, "-w",
                    f"{time_left(done.stderr) + 5}s", "--", "true")
    took = time.monotonic() - promoted
    tap.check(done.returncode == 0 and took >= GUARD_S,
              "and that wait is long enough", f"{took}\n{done.stderr}")


def no_time_left(tap, pair):
    """Waiting longer would not help, or it is not known for how long."""
    pair.settle()
    pair.lead_to(pair.replica)
    done = pair.run("run", "r", *LEASE, "-n", "--", "true")
    tap.check(done.returncode == 69 and b"a replica" in done.stderr and
              time_left(done.stderr) == 0, "a replica: no time is named",
              done.stderr)
    pair.lead_to(pair.primary)
    pair.servers[pair.primary].cli("SET", "b", "somebody", "PX", "60000")
    done = pair.run("run", "b", *LEASE, "-n", "--", "true")
    tap.check(done.returncode == 75 and time_left(done.stderr) == 0,
              "a busy lock: no time is named", done.stderr)


def metrics(tap, pair):
    """A run that lives through a failover, and one right after it."""
    folder = pair.servers[0].folder
    path = os.path.join(folder, f"{RUN}m.prom")
    pair.settle()
    pair.run("run", "m", *LEASE, "--metrics", folder, "--", "true")
    _, found = metrics_file.read(path)
    tap.equal((found.get(RUN + "failovers"),
              found.get(RUN + "quarantine_seconds")), (0.0, 0.0),
             "without a failover")
    process = subprocess.Popen(
        [pair.nxlock, "run", "-v", "m", *LEASE, "--metrics", folder, "--",
         "sleep", "1"],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    primary = pair.servers[pair.primary]
    tap.check(await_(lambda: primary.cli("EXISTS", "m") == b"1\n"), "it holds")
    primary.cli("WAIT", "1", "1000")
    pair.promote()
    primary.cli("CLIENT", "KILL", "TYPE", "normal")
    said = process.communicate(timeout=60)[1]
    tap.check(said.count(b"a failover was seen: promoted ") == 1,
              "with -v it tells of the failover", said)
    _, found = metrics_file.read(path)
    tap.equal(found.get(RUN + "failovers"), 1.0, "a failover is counted once")
    tap.check(0 < found.get(RUN + "quarantine_seconds", 0) <= GUARD_S,
              "and the quarantine goes on", found)
    pair.run("run", "m", *LEASE, "-n", "--metrics", folder, "--", "true")
    _, found = metrics_file.read(path)
    tap.equal(found.get(RUN + "failovers"), 0.0,
              "a run after the failover has not seen it")
    tap.check(found.get(RUN + "quarantine_seconds", 0) > 0,
              "but knows of the quarantine", found)


def every(tap, pair):
    """The lock waits for the guard. The record, which is kept for almost an
    hour, does not wait for as long."""
    pair.settle()
    words = ("--every", "1h", *LEASE, "-w", "10s", "--", "true")
    pair.promote()
    promoted = time.monotonic()
    done = pair.run("run", "job", *words)
    took = time.monotonic() - promoted
    tap.check(done.returncode == 0 and took >= GUARD_S,
              "--every right after a failover runs", f"{took}\n{done.stderr}")
    pair.servers[pair.primary].cli("DEL", "job:every", "{job}:every")
    done = pair.run("run", "job", *words)
    tap.equal(done.returncode, 0, "a record that was lost means one more run")
    pair.settle()
    pair.promote()
    done = pair.run("run", "-v", "job", *words)
    tap.check(done.returncode == 75 and b"is not due" in done.stderr,
              "a record that was replicated counts", done.stderr)


def several(tap, nxlock):
    """A majority is what has to be waited for: of three servers, one is as old
    as it has to be, one has just started, and one does not answer."""
    with Server() as old, Server() as young, Server() as silent:
        clean_environment(old)
        lease = "--ttl", "2100ms", "--grace", "100ms"
        urls = ",".join(one.url for one in (old, young, silent))
        os.environ["NXLOCK_URL"] = f"{urls}?max_ttl_ms=2100&timeout_ms=500"
        tap.equal(nx(nxlock, "run", "s", *lease, "-w", "20s", "--",
                  "true").returncode, 0, "three servers")
        young.restart()
        young.ready()
        silent.freeze()
        done = nx(nxlock, "run", "s", *lease, "-n", "--", "true")
        wait = time_left(done.stderr) + 5
        tap.check(done.returncode == 69 and 5 < wait <= 10,
                  "a refusal of several says for how long", done.stderr)
        done = nx(nxlock, "run", "s", *lease, "-w", f"{wait}s", "--", "true")
        tap.equal(done.returncode, 0, "and that wait is long enough")
        young.freeze()
        done = nx(nxlock, "run", "s", *lease, "-n", "--", "true")
        tap.equal(done.returncode, 69, "without a majority that answers")


def one_address(room):
    ports = free_port(), free_port()
    more = "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0"
    with Server("--port", ports[0], *more) as one, \
            Server("--port", ports[1], *more) as other:
        clean_environment(one)
        pair = Pair(room.program, (one, other), ports)
        for act in (refusals, refusals_of_once, no_time_left, metrics, every):
            act(room, pair)


def three_addresses(room):
    several(room, room.program)


if __name__ == "__main__":
    sys.exit(play(Cases, one_address, three_addresses))
