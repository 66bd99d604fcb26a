# SPDX-License-Identifier: MIT
"""nxlock-failover [--event NAME] [--runs N] [--guard on|off|both] [--short]

One primary and two replicas, real servers, behind one address: a symbolic link
to the socket of the primary, which is moved after a failover. Four kinds of
programs contend, each for a name of its own: they live on and poll, or wait in
line, or renew their locks, or are new processes again and again. An event
befalls the primary; then it is judged whether two relied on one lock at a
time, and when the first was granted again.

With the guard no run may have two holders. Without it most runs of an event
that loses locks must have them: else the event proves nothing. --short plays
one run of the crash with the guard and without; it is a test. The server is
$NXLOCK_REDIS_SERVER, or redis-server."""

import argparse
import os
import pathlib
import random
import sqlite3
import statistics
import sys
import tempfile
import time

import stage
from cell import TABLES
from record import Record, overlaps

TTL_MS = 1000
NEEDED_S = 3  # 1000 ms and its drift, and 1 s, in whole seconds
HOLD_MS = 500
KINDS = {"poll": ("&poll=1", 0), "line": ("", 0), "renew": ("", 1),
         "fresh": ("&poll=1", 0)}
PROCESSES = 4  # of each kind
LIFE_S = 0.25  # of a fresh one, at least


class Contender:
    """A process of a kind; a fresh one is replaced when it has lived."""

    def __init__(self, trial, kind, number):
        self.trial, self.kind = trial, kind
        self.record = Record(f"{kind}{number}",
                             trial.directory / f"{kind}{number}")
        self.process = None
        self.begin()

    def begin(self):
        parameters, renew = KINDS[self.kind]
        url = (f"unix://{self.trial.place}?max_ttl_ms={TTL_MS}"
               f"{parameters}{self.trial.guard}")
        self.process = stage.start(
            [self.trial.programs / "nxlock-fault-contender", url,
             self.record.path, self.trial.directory / f"{self.kind}.db",
             TTL_MS, 300, HOLD_MS, renew, 0, 0,
             random.randrange(1 << 30), self.kind])
        self.begun = time.monotonic()

    def turn(self):
        self.record.read()
        if (self.kind == "fresh" and
                time.monotonic() - self.begun > LIFE_S and
                not (self.record.holds and self.record.holds[-1].open)):
            self.end()
            self.begin()

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.record.read()


class Trial:
    """Three servers, the address, and runs of an event."""

    def __init__(self, directory, programs, guard):
        self.directory = pathlib.Path(directory)
        self.programs = pathlib.Path(programs)
        self.guard = "&guard_failover=on" if guard else ""
        self.place = self.directory / "primary"
        self.servers = [stage.Server(directory, f"s{i}") for i in range(3)]
        self.links = [stage.Proxy(self.programs / "nxlock-fault-proxy", s)
                      for s in self.servers]
        self.primary = 0
        self.contenders = []
        for kind in KINDS:
            with sqlite3.connect(self.directory / f"{kind}.db") as db:
                db.executescript(TABLES)
            db.close()
        self.gather()

    def replicas(self):
        return [i for i in range(3) if i != self.primary]

    def now(self):
        return self.servers[self.primary]

    def move_place(self):
        following = self.directory / "next"
        os.symlink(self.now().socket, following)
        os.replace(following, self.place)

    def follow(self, i):
        self.servers[i].ask("REPLICAOF", "127.0.0.1",
                            self.links[self.primary].port)

    def gather(self):
        """All follow the primary and have its data; all are old."""
        for i, server in enumerate(self.servers):
            if server.process.poll() is not None:
                server.launch()
                server.ready()
            self.links[i].order("hold", "down", 0)
            server.config("replica-announce-ip", "127.0.0.1")
            server.config("replica-announce-port", self.links[i].port)
        self.now().ask("REPLICAOF", "NO", "ONE")
        for i in self.replicas():
            self.follow(i)
            stage.await_true(
                lambda i=i: self.servers[i].info(
                    "replication", "master_link_status") == "up",
                "a replica is connected")
        for server in self.servers:
            stage.await_true(
                lambda s=server: int(s.info("server", "uptime_in_seconds"))
                > NEEDED_S + 1, "a server is old enough")
        self.now().ask("FLUSHALL")
        self.move_place()

    def contend(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for contender in self.contenders:
                contender.turn()
            time.sleep(0.005)

    def lose_replication(self):
        """What is granted now reaches no replica; and what it has is over."""
        self.links[self.primary].order("hold", "down", 1)
        self.contend(TTL_MS / 1000 + 0.3)

    def promote(self, i):
        """The address leads to that one from now on."""
        former = self.primary
        self.servers[i].ask("REPLICAOF", "NO", "ONE")
        self.primary = i
        self.move_place()
        for k in self.replicas():
            if k != former:
                self.follow(k)

    def run(self, event):
        """{kind: doubles}, {kind: seconds until the first grant after it}"""
        self.gather()
        # So that a guard that the last run has left is over.
        time.sleep(NEEDED_S + 1 if self.guard else 0)
        self.contenders = [Contender(self, kind, i) for kind in KINDS
                           for i in range(PROCESSES)]
        self.contend(1.5)
        began = event(self)
        self.contend(NEEDED_S + 3)
        for contender in self.contenders:
            contender.end()
        return self.judge(began)

    def judge(self, began):
        doubles, first = {}, {}
        now = stage.now_ns()
        for kind in KINDS:
            records = [c.record for c in self.contenders if c.kind == kind]
            holds = [h for r in records for h in r.holds]
            doubles[kind] = len(overlaps(holds, now))
            after = [h.begin for h in holds if h.begin > began]
            first[kind] = (min(after) - began) / 1e9 if after else None
            for record in records:
                record.close()
                record.path.unlink(missing_ok=True)
        self.contenders = []
        return doubles, first

    def close(self):
        for contender in self.contenders:
            contender.end()
        for link in self.links:
            link.close()
        for server in self.servers:
            server.thaw()
            server.kill()


# ------------------------------------------------------------------- events

def crash(trial):
    """Killed, without what it granted last; a replica takes over."""
    trial.lose_replication()
    trial.now().kill()
    began = stage.now_ns()
    trial.promote(trial.replicas()[0])
    return began


def stopped(trial):
    """Stopped, replaced, woken later with its connections still open, and then
    told."""
    former = trial.now()
    trial.lose_replication()
    former.freeze()
    began = stage.now_ns()
    old, new = trial.primary, trial.replicas()[0]
    trial.promote(new)
    trial.contend(random.uniform(1.1, 3))
    former.thaw()
    trial.follow(old)
    former.ask("CLIENT", "KILL", "TYPE", "normal")
    former.ask("CLIENT", "KILL", "TYPE", "pubsub")
    return began


def empty(trial):
    """Killed and started again at its place, without data."""
    trial.now().kill()
    began = stage.now_ns()
    trial.now().launch()
    trial.now().ready()
    return began


def planned(trial):
    """FAILOVER; the address follows half a second later."""
    former = trial.now()
    began = stage.now_ns()
    former.ask("FAILOVER")
    stage.await_true(lambda: any(
        trial.servers[i].info("replication", "role") == "master"
        for i in trial.replicas()), "FAILOVER is over")
    trial.primary = next(i for i in trial.replicas() if trial.servers[i].info(
        "replication", "role") == "master")
    trial.contend(0.5)
    trial.move_place()
    former.ask("CLIENT", "KILL", "TYPE", "normal")
    former.ask("CLIENT", "KILL", "TYPE", "pubsub")
    return began


def backlog(trial):
    """Its replicas are gone, and it frees its backlog."""
    for i in trial.replicas():
        trial.servers[i].ask("REPLICAOF", "NO", "ONE")
    server = trial.now()
    server.config("repl-backlog-ttl", 1)
    before = server.info("replication", "master_replid")
    stage.await_true(
        lambda: server.info("replication", "repl_backlog_active") == "0",
        "the backlog is freed")
    assert server.info("replication", "master_replid") != before
    server.config("repl-backlog-ttl", 3600)
    server.ask("CLIENT", "KILL", "TYPE", "normal")
    return stage.now_ns()


# What it does, whether it loses locks, and the longest wait for the first grant
# with the guard.
EVENTS = {
    "crash": (crash, True, NEEDED_S + 1.5),
    "stopped": (stopped, True, NEEDED_S + 1.5),
    "empty": (empty, True, NEEDED_S + 1.5),
    "planned": (planned, False, 3),
    "backlog": (backlog, False, 1.5),
}


def play(options, name, guard):
    """(complaint or "", a row of the table)"""
    event, loses, limit = EVENTS[name]
    doubled, waits, fresh = 0, [], []
    with tempfile.TemporaryDirectory(prefix="nxlock-failover-") as directory:
        trial = Trial(directory, options.programs, guard)
        try:
            for run in range(options.runs):
                doubles, first = trial.run(event)
                doubled += any(doubles.values())
                first = {k: 99 if v is None else v for k, v in first.items()}
                waits.append(max(v for k, v in first.items() if k != "fresh"))
                fresh.append(first["fresh"])
                print(f"{name}, guard {'on' if guard else 'off'}, run {run}: "
                      f"two holders {doubles}, first grant "
                      f"{ {k: round(v, 2) for k, v in first.items()} }",
                      flush=True)
        finally:
            trial.close()
    middle = statistics.median(waits), statistics.median(fresh)
    row = (f"| {name} | {'on' if guard else 'off'} | {doubled} of "
           f"{options.runs} | {middle[0]:.2f} s | {middle[1]:.2f} s |")
    most = 0 if guard or not loses else options.runs
    least = -(-options.runs * 3 // 4) if loses and not guard else 0
    if not least <= doubled <= most:
        return f"{name}: {doubled} runs with two holders", row
    if guard and max(middle) > limit:
        return f"{name}: the first grant came after {max(middle):.2f} s", row
    return "", row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--event", choices=EVENTS)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--guard", choices=("on", "off", "both"),
                        default="both")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    if options.short:
        options.event, options.runs, options.guard = "crash", 1, "both"
    complaints, rows = [], []
    for name in [options.event] if options.event else EVENTS:
        for guard in (True, False):
            if options.guard in ("both", "on" if guard else "off"):
                complaint, row = play(options, name, guard)
                complaints += [complaint] if complaint else []
                rows.append(row)
    print("\n| event | guard | runs with two holders | first grant, living |"
          " fresh |\n|---|---|---|---|---|\n" + "\n".join(rows))
    print("\n".join(complaints))
    return 1 if complaints else 0


sys.exit(main())
