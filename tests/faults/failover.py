# SPDX-License-Identifier: MIT
"""One primary and two replicas, real servers, behind one address: a TCP proxy
that leads new connections to the primary, and leaves the others as they are.
Four kinds of programs contend, each for a name of its own: they live on and
poll, or wait in line, or renew their locks, or are new processes again and
again. An event befalls the primary; then it is judged, for each kind, whether
two relied on one lock at a time, and when the first was granted again.

With the guard no run may have two holders. Without it most runs of an event
that loses locks must have them: else the event proves nothing. Everything
random is drawn from the seed, the event and the number of the run, so with the
guard and without it the schedule is the same."""

import argparse
import collections
import functools
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

KINDS = {"poll": ("&poll=1", 0), "line": ("", 0), "renew": ("", 1),
         "fresh": ("&poll=1", 0)}
PROCESSES = 4  # of each kind
LIFE_S = 0.25  # of a fresh one, at least
AIM_S = 5      # until all kinds have been seen to hold it at a time
MARGIN_S = 1.5
BUSY_S = 10    # more than that, in the test, which runs beside others
# play: what happens. loses: locks. lost: what is granted reaches no replica.
# ttl_ms: of the leases. left_s: of their holds, when it happens. judged: the
# guard covers it. silent: the former primary leaves connections open, and does
# not answer. arguments: of the servers. limit_s: until the first grant with the
# guard; None: that of the page and MARGIN_S.
Event = collections.namedtuple(
    "Event", "play loses lost ttl_ms left_s judged silent arguments limit_s",
    defaults=(True, True, 1000, 0.4, True, False, (), None))


def needed_s(ttl_ms):
    """The longest lease and its drift, and a second; in whole seconds."""
    return -(-ttl_ms * 101 // 100000) + 1


class Contender:
    """A process of a kind; a fresh one is replaced when it has lived."""

    def __init__(self, trial, kind, number):
        self.trial, self.kind = trial, kind
        self.record = Record(f"{kind}{number}",
                             trial.directory / f"{kind}{number}")
        self.process = None
        self.begin()

    def begin(self):
        trial = self.trial
        parameters, renew = KINDS[self.kind]
        url = (f"{trial.front.tcp_url}/?max_ttl_ms={trial.event.ttl_ms}"
               f"{parameters}{trial.guard}")
        self.process = stage.start(
            [trial.programs / "nxlock-fault-contender", url,
             self.record.path, trial.directory / f"{self.kind}.db",
             trial.event.ttl_ms, 300, trial.hold_ms, renew, 0, 0,
             trial.dice.randrange(1 << 30), self.kind])
        self.begun = time.monotonic()

    def hold(self):
        """The one that it has now, or None."""
        holds = self.record.holds
        return holds[-1] if holds and holds[-1].open else None

    def turn(self):
        self.record.read()
        if (self.kind == "fresh" and not self.hold() and
                time.monotonic() - self.begun > LIFE_S):
            self.end()
            self.begin()

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.record.read()


class Trial:
    """Three servers, the address, and runs of an event."""

    def __init__(self, directory, programs, event, guard):
        self.directory = pathlib.Path(directory)
        self.programs = pathlib.Path(programs)
        self.event = event
        self.hold_ms = event.ttl_ms * 9 // 10
        self.needed_s = needed_s(event.ttl_ms)
        self.guard = "&guard_failover=on" if guard else ""
        self.servers = [stage.Server(directory, f"s{i}", event.arguments)
                        for i in range(3)]
        self.links = [self.proxy(s) for s in self.servers]
        self.primary = 0
        self.front = self.proxy(self.now())
        self.contenders = []
        for kind in KINDS:
            with sqlite3.connect(self.directory / f"{kind}.db") as db:
                db.executescript(TABLES)
            db.close()

    def proxy(self, server):
        return stage.Proxy(self.programs / "nxlock-fault-proxy", server)

    def replicas(self):
        return [i for i in range(3) if i != self.primary]

    def promoted(self):
        return [i for i in self.replicas()
                if self.servers[i].info("replication", "role") == "master"]

    def now(self):
        return self.servers[self.primary]

    def move(self):
        """The address leads to the present primary."""
        self.front.order("lead", self.now().socket)
        self.moved = stage.now_ns()

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
                > self.needed_s + 1, "a server is old enough")
        self.now().ask("FLUSHALL")
        self.move()

    def contend(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for contender in self.contenders:
                contender.turn()
            time.sleep(0.005)

    def aim(self):
        """Until each kind has a holder that stays for long enough."""
        end = time.monotonic() + AIM_S
        since = self.hold_ms / 1000 - self.event.left_s
        while time.monotonic() < end:
            self.contend(0.005)
            now = stage.now_ns()
            holds = [(c.kind, c.hold()) for c in self.contenders]
            if {kind for kind, h in holds
                    if h and now - h.begin < since * 1e9} == set(KINDS):
                return
        print("not all kinds of programs held it at a time", flush=True)

    def promote(self, i):
        """The address leads to that one from now on."""
        former = self.primary
        self.servers[i].ask("REPLICAOF", "NO", "ONE")
        self.primary = i
        self.move()
        for k in self.replicas():
            if k != former:
                self.follow(k)

    def run(self, dice):
        """{kind: doubles}, {kind: seconds until the first grant after it},
        seconds until there was a primary, text"""
        self.dice = dice
        self.gather()
        # So that a guard that the last run has left is over.
        time.sleep(self.needed_s + 1 if self.guard else 0)
        if self.event.lost:
            self.links[self.primary].order("hold", "down", 1)
        self.blind, self.text = None, ""
        self.contenders = [Contender(self, kind, i) for kind in KINDS
                           for i in range(PROCESSES)]
        began = self.event.play(self)
        self.contend(max(0, self.needed_s + 2.5 -
                         (stage.now_ns() - began) / 1e9))
        for contender in self.contenders:
            contender.end()
        return self.judge(began)

    def judge(self, began):
        doubles, first = {}, {}
        now = stage.now_ns()
        for kind in KINDS:
            records = [c.record for c in self.contenders if c.kind == kind]
            holds = [h for r in records for h in r.holds]
            found = overlaps(holds, now)
            doubles[kind] = len(found)
            for a, b in found[:3] if self.guard else []:
                self.text += "".join(
                    f"\n    {kind}: {h.who} from {(h.begin - began) / 1e9:.3f}"
                    f" to {(h.end - began) / 1e9:.3f} s, asked at "
                    f"{(h.attempt - began) / 1e9:.3f}, number {h.fence}"
                    for h in (a, b))
            after = [h.begin for h in holds if h.begin > began]
            if self.blind:
                woken = [b for b in after
                         if self.blind[0] <= b <= self.blind[1]]
                self.text += f", {kind} {len(woken)} when woken"
                after = [b for b in after if b not in woken or not self.guard]
            first[kind] = (min(after) - began) / 1e9 if after else 99
            for record in records:
                record.close()
                record.path.unlink(missing_ok=True)
        self.contenders = []
        return doubles, first, (self.moved - began) / 1e9, self.text

    def close(self):
        for contender in self.contenders:
            contender.end()
        for link in [*self.links, self.front]:
            link.close()
        for server in self.servers:
            server.thaw()
            server.kill()


# ------------------------------------------------------------------- events

def cut_off(server):
    """From all its clients."""
    server.ask("CLIENT", "KILL", "TYPE", "normal")
    server.ask("CLIENT", "KILL", "TYPE", "pubsub")


def crash(trial):
    """Killed, without what it granted last; a replica takes over."""
    trial.contend(1)
    trial.aim()
    trial.now().kill()
    began = stage.now_ns()
    trial.promote(trial.replicas()[0])
    return began


def stopped(trial, wake_s, told_s):
    """Stopped, replaced, woken later with its connections still open, told of
    that at once or later, and cut off at last."""
    trial.aim()
    former, old = trial.now(), trial.primary
    former.freeze()
    began = stage.now_ns()
    trial.promote(trial.replicas()[0])
    wake = trial.dice.uniform(*wake_s)
    cut = trial.dice.uniform(0.1, 0.5)
    trial.contend(wake - (stage.now_ns() - began) / 1e9)
    former.thaw()
    woken = stage.now_ns()
    trial.contend(told_s)
    trial.follow(old)
    told = stage.now_ns()
    trial.contend(cut)
    cut_off(former)
    # What it grants is told while the process still waits for the processor.
    trial.blind = woken, told + 50_000_000
    trial.text = (f"; woken after {(woken - began) / 1e9:.2f} s, told after "
                  f"{(told - began) / 1e9:.3f} s")
    return began


def restart(trial, save=False, lose=False):
    """Killed and started again at its place: empty, from what it has saved
    before, or from its log."""
    server = trial.now()
    trial.contend(0.5)
    if save:
        server.ask("SAVE")
        trial.contend(trial.event.ttl_ms / 1000 + 0.3)
    trial.aim()
    server.kill()
    began = stage.now_ns()
    if lose:
        (server.dir / "dump.rdb").unlink(missing_ok=True)
    server.launch()
    server.ready()
    trial.moved = stage.now_ns()
    return began


def planned(trial):
    """FAILOVER; the address follows half a second later."""
    trial.contend(1)
    former = trial.now()
    began = stage.now_ns()
    former.ask("FAILOVER")
    stage.await_true(trial.promoted, "FAILOVER is over")
    trial.primary = trial.promoted()[0]
    trial.contend(0.5)
    trial.move()
    cut_off(former)
    return began


def backlog(trial):
    """Its replicas are gone, and it frees its backlog."""
    trial.contend(0.5)
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
    trial.moved = stage.now_ns()
    return trial.moved


# A client leaves a connection that is silent after two seconds. So leases of
# three are granted again, without the guard, while they last.
SILENT = {"silent": True, "ttl_ms": 3000, "left_s": 2.3}
EVENTS = {
    "crash": Event(crash),
    "stopped": Event(functools.partial(
        stopped, wake_s=(1.1, 2.9), told_s=0), **SILENT),
    "late": Event(functools.partial(
        stopped, wake_s=(2.3, 2.9), told_s=0), **SILENT),
    "untold": Event(functools.partial(
        stopped, wake_s=(2.3, 2.9), told_s=0.3), judged=False, **SILENT),
    "empty": Event(functools.partial(restart, lose=True), lost=False),
    "rdb": Event(functools.partial(restart, save=True), lost=False),
    "aof": Event(restart, loses=False, lost=False,
                 arguments=("--appendonly", "yes")),
    "planned": Event(planned, loses=False, lost=False, limit_s=3),
    "backlog": Event(backlog, loses=False, lost=False, limit_s=1.5),
}


class Sum:
    """What all runs of an event have shown, with the guard or without."""

    def __init__(self, name, guard, options):
        self.name, self.event = name, EVENTS[name]
        self.guard, self.options = guard, options
        self.doubled = dict.fromkeys(KINDS, 0)
        self.any = 0
        self.first = {kind: [] for kind in KINDS}
        self.after_move = {kind: [] for kind in KINDS}

    def add(self, doubles, first, moved_s):
        self.any += any(doubles.values())
        for kind in KINDS:
            self.doubled[kind] += doubles[kind] > 0
            self.first[kind].append(first[kind])
            self.after_move[kind].append(first[kind] - moved_s)

    def complaints(self):
        """Why the cell does not hold, or proves nothing."""
        if not self.event.judged:
            return
        yield from self.of_guard() if self.guard else self.without()

    def of_guard(self):
        planned = self.name == "planned"
        slack = BUSY_S if self.options.short else 0
        limit = slack + (self.event.limit_s or
                         needed_s(self.event.ttl_ms) + MARGIN_S)
        for kind, waits in self.first.items():
            if self.doubled[kind]:
                yield f"{kind}: {self.doubled[kind]} runs with two holders"
            wait = max(waits) if planned else statistics.median(waits)
            if wait > limit:
                yield f"{kind}: the first grant came after {wait:.2f} s"
            apart = (statistics.median(self.first["fresh"]) -
                     statistics.median(waits))
            if abs(apart) > slack + MARGIN_S:
                yield f"fresh: {apart:.2f} s after {kind}"

    def without(self):
        least = -(-self.options.runs * 3 // 4)
        if self.options.short:
            if self.event.loses and not self.any:
                yield "no two holders"
            return
        for kind, waits in self.after_move.items():
            doubled = self.doubled[kind]
            if self.event.loses and doubled < least:
                yield f"{kind}: {doubled} runs with two holders prove nothing"
            # Locks that are not lost are waited for; and so is the end of a
            # silent connection.
            limit = 0.3 if self.event.loses else 0.3 + self.event.ttl_ms / 1000
            if self.event.silent and kind != "fresh":
                limit += 2
            if statistics.median(waits) > limit:
                yield (f"{kind}: the first grant came "
                       f"{statistics.median(waits):.2f} s after the promotion")

    def row(self):
        cells = [f"{self.doubled[kind]}; "
                 f"{statistics.median(self.first[kind]):.2f} s "
                 f"({max(self.first[kind]):.2f})" for kind in KINDS]
        return " | ".join([f"| {self.name}", "on" if self.guard else "off",
                           f"{self.any} of {self.options.runs}", *cells]) + " |"


def play(options, name, guard):
    event, found = EVENTS[name], Sum(name, guard, options)
    with tempfile.TemporaryDirectory(prefix="nxlock-failover-") as directory:
        trial = Trial(directory, options.programs, event, guard)
        try:
            for run in range(options.runs):
                dice = random.Random(f"{options.seed}/{name}/{run}")
                doubles, first, moved_s, text = trial.run(dice)
                found.add(doubles, first, moved_s)
                print(f"{name}, guard {'on' if guard else 'off'}, run {run}: "
                      f"two holders {doubles}, first grant "
                      f"{ {k: round(v, 2) for k, v in first.items()} }, "
                      f"a primary after {moved_s:.2f} s{text}", flush=True)
        finally:
            trial.close()
    return found


def main():
    parser = argparse.ArgumentParser(
        prog="nxlock-failover", description=__doc__)
    parser.add_argument("--programs", help=argparse.SUPPRESS)
    parser.add_argument("--event", choices=EVENTS, action="append",
                        help="not all of them, but this one")
    parser.add_argument("--runs", type=int, default=20, help="of each event")
    parser.add_argument("--guard", choices=("on", "off", "both"),
                        default="both")
    parser.add_argument("--seed", type=int, default=1,
                        help="draws other schedules (default 1)")
    parser.add_argument("--server", default=stage.REDIS,
                        help="default: $NXLOCK_REDIS_SERVER, or redis-server")
    parser.add_argument("--short", action="store_true",
                        help="the crash, once with the guard and once without")
    options = parser.parse_args()
    stage.REDIS = options.server
    if options.short:
        options.event, options.runs, options.guard = ["crash"], 1, "both"
    sums = [play(options, name, guard) for name in options.event or EVENTS
            for guard in (True, False)
            if options.guard in ("both", "on" if guard else "off")]
    print(f"\nseed {options.seed}; runs with two holders, and the first grant: "
          "median (longest)\n\n"
          f"| event | guard | two holders | {' | '.join(KINDS)} |\n"
          "|---|---|---|---|---|---|---|\n" +
          "\n".join(s.row() for s in sums))
    complaints = [f"{s.name}, guard {'on' if s.guard else 'off'}, {text}"
                  for s in sums for text in s.complaints()]
    print("\n".join(complaints))
    return 1 if complaints else 0


sys.exit(main())
