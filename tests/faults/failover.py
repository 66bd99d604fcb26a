# SPDX-License-Identifier: MIT
"""One primary and two replicas, real servers, behind one address: a TCP proxy
that leads new connections to the primary, and leaves the others as they are.
Six kinds of programs contend, each for a name of its own: they poll, or wait in
line, or renew their locks, and they live on, or are new processes again and
again. An event befalls the primary; then it is judged, for each kind, whether
two relied on one lock at a time, and when the first was granted again.

With the guard no run may have two holders. Without it three quarters of the
runs of an event that loses locks must have them, for each kind: else the event
proves nothing. The other events keep their locks, so nothing can double there:
they are played for the length of the pause. Everything random is drawn from the
seed, the event and the number of the run, so with the guard and without it the
schedule is the same.

The first grant is due, with the guard, when the longest lease is over, and
MARGIN_S later at most; without it SLACK_S after a program could have had it
(class Times): that is the promotion, unless the lock is still held, or the
program has not yet given up a connection that does not answer."""

import argparse
import collections
import functools
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import statistics
import sys
import tempfile
import time

import stage
from cell import TABLES
from record import Record, overlaps

# Of the address, whether it renews, and whether its processes are replaced.
Kind = collections.namedtuple("Kind", "parameters renews replaced")
WAYS = {"poll": ("&poll=1", 0), "line": ("", 0), "renew": ("", 1)}
KINDS = {**{way: Kind(*of, False) for way, of in WAYS.items()},
         **{f"new-{way}": Kind(*of, True) for way, of in WAYS.items()}}
PROCESSES = 3     # of each kind
LIFE_S = 0.2      # of one that is replaced, at least
AIM_S = 5         # until all kinds have been seen to hold it at a time
MARGIN_S = 1.5    # until the first grant, after the pause of the guard
SLACK_S = 0.3     # the same without the guard, after the promotion
NOTED_S = 0.1     # after a grant
STALE_S = 2       # SERVER_STALE_MS of src/net/state.h
TIMEOUT_MS = 300  # of a request
CLOSE_S = 60      # until a process that was told to end has ended
BUSY_S = 10       # later than that, in the test, which runs beside others
# play: what happens. loses: locks. lost: what is granted reaches no replica.
# ttl_ms: of the leases, just short enough for a pause that is counted in whole
# seconds; left_s: of their holds, when it happens. rest_s: it is watched for so
# long without the guard. silent: the former primary leaves connections open,
# and does not answer. arguments: of the servers. limit_s: until the first grant
# with the guard; None: the pause and MARGIN_S.
Event = collections.namedtuple(
    "Event",
    "play loses lost ttl_ms left_s rest_s silent arguments limit_s",
    defaults=(True, True, 1900, 0.4, 1.5, False, (), None))


def needed_s(ttl_ms):
    """The longest lease and its drift, and a second; in whole seconds."""
    return -(-ttl_ms * 101 // 100000) + 1


class Process:
    """One process, and what it has written down."""

    def __init__(self, trial, kind, name, seed):
        of = KINDS[kind]
        url = (f"{trial.front.tcp_url}/?max_ttl_ms={trial.event.ttl_ms}"
               f"{of.parameters}{trial.guard}")
        self.record = Record(name, trial.directory / f"{name}.record")
        self.child = stage.start(
            [trial.programs / "nxlock-fault-contender", url,
             self.record.path, trial.directory / f"{kind}.db",
             trial.event.ttl_ms, TIMEOUT_MS, trial.hold_ms, of.renews, 0, 0,
             seed, kind])
        self.begun = time.monotonic()

    def close(self):
        """When it has ended: all that it has written down is read."""
        code = self.child.wait(CLOSE_S)
        if code not in (0, -signal.SIGTERM):
            raise RuntimeError(f"{self.record.who} ended with {code}")
        self.record.read()
        self.record.close()
        self.record.path.unlink(missing_ok=True)

    def close_ended(self):
        """Has it ended?"""
        if self.child.poll() is None:
            return False
        self.close()
        return True


class Contender:
    """A program of a kind. Where processes are replaced, the next one does not
    wait until this one has ended."""

    def __init__(self, trial, kind, number, dice):
        self.trial, self.kind = trial, kind
        self.name, self.dice = f"{kind} {number}", dice
        self.processes, self.ending = [], []
        self.begin()

    def begin(self):
        self.processes.append(Process(
            self.trial, self.kind, f"{self.name}.{len(self.processes)}",
            self.dice.randrange(1 << 30)))

    def hold(self):
        """The one that it has now, or None."""
        holds = self.processes[-1].record.holds
        return holds[-1] if holds and holds[-1].open else None

    def turn(self):
        process = self.processes[-1]
        process.record.read()
        self.ending = [p for p in self.ending if not p.close_ended()]
        if (KINDS[self.kind].replaced and not self.hold() and
                time.monotonic() - process.begun > LIFE_S):
            self.end()
            self.begin()

    def end(self):
        self.processes[-1].child.terminate()
        self.ending.append(self.processes[-1])


class Times:
    """When the event began, and when the lock could be granted again."""

    def __init__(self, began, silent):
        self.began = began
        self.primary = began  # the address leads to one
        # The connections to the former primary have ended. A client gives up
        # one that does not answer for STALE_S.
        self.cut = began + STALE_S * 10**9 if silent else began

    def at(self, kind, holds, keeps):
        """If the event keeps the lock, it has to be released first."""
        times = [self.primary]
        if not KINDS[kind].replaced:
            times.append(self.cut)
        if keeps:
            times += [h.end for h in holds if h.begin <= self.began]
        return max(times)


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
        self.contenders, self.times = [], None
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

    def follow(self, i):
        self.servers[i].ask("REPLICAOF", "127.0.0.1",
                            self.links[self.primary].port)

    def gather(self):
        """All follow the primary and have its data; if there is a guard, all
        are so old that it refuses nothing before the event."""
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
        self.now().ask("FLUSHALL")
        self.move()
        if not self.guard:
            return
        # The replicas' connections have to be old, too.
        time.sleep(self.needed_s + 1)
        for server in self.servers:
            stage.await_true(
                lambda s=server: int(s.info("server", "uptime_in_seconds"))
                > self.needed_s + 1, "a server is old enough")

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
        self.text += ", not all held it"

    def begin(self):
        """The event begins."""
        self.times = Times(stage.now_ns(), self.event.silent)

    def promote(self, i):
        """The address leads to that one from now on."""
        former = self.primary
        self.servers[i].ask("REPLICAOF", "NO", "ONE")
        self.primary = i
        self.move()
        self.times.primary = stage.now_ns()
        for k in self.replicas():
            if k != former:
                self.follow(k)

    def run(self, seed):
        """{kind: doubles}, {kind: (seconds until the first grant after the
        event began, the same after it was possible)}, text"""
        self.dice = random.Random(seed)
        self.gather()
        if self.event.lost:
            self.links[self.primary].order("hold", "down", 1)
        self.text = ""
        self.contenders = [
            Contender(self, kind, i, random.Random(f"{seed}/{kind}/{i}"))
            for kind in KINDS for i in range(PROCESSES)]
        self.event.play(self)
        rest_s = self.needed_s + 2.5 if self.guard else self.event.rest_s
        self.contend(rest_s - (stage.now_ns() - self.times.began) / 1e9)
        self.end()
        doubles, first = {}, {}
        for kind in KINDS:
            holds = [h for c in self.contenders if c.kind == kind
                     for process in c.processes for h in process.record.holds]
            doubles[kind] = self.count_doubles(kind, holds)
            first[kind] = self.first_grant(kind, holds)
        self.contenders = []
        return doubles, first, self.text

    def end(self):
        for contender in self.contenders:
            contender.end()
        for contender in self.contenders:
            for process in contender.ending:
                process.close()

    def count_doubles(self, kind, holds):
        began = self.times.began
        found = overlaps(holds, stage.now_ns())
        for a, b in found[:3] if self.guard else []:
            self.text += "".join(
                f"\n    {kind}: {h.who} from {(h.begin - began) / 1e9:.3f}"
                f" to {(h.end - began) / 1e9:.3f} s, asked at "
                f"{(h.attempt - began) / 1e9:.3f}, number {h.fence}"
                for h in (a, b))
        return len(found)

    def first_grant(self, kind, holds):
        """A grant from before the event may be noted after it, where the
        processor has much to do. With the guard the next one comes much
        later."""
        began = self.times.began
        since = began + (NOTED_S * 10**9 if self.guard else 0)
        first = min((h.begin for h in holds if h.begin > since),
                    default=began + 99 * 10**9)
        at = self.times.at(kind, holds, keeps=not self.event.loses)
        return (first - began) / 1e9, (first - at) / 1e9

    def close(self):
        self.end()
        for link in [*self.links, self.front]:
            link.close()
        for server in self.servers:
            server.thaw()
            server.kill()


# ------------------------------------------------------------------- events

def cut_off(trial, server):
    """From all its clients."""
    server.ask("CLIENT", "KILL", "TYPE", "normal")
    server.ask("CLIENT", "KILL", "TYPE", "pubsub")
    trial.times.cut = min(trial.times.cut, stage.now_ns())


def crash(trial):
    """Killed, without what it granted last; a replica takes over."""
    trial.contend(1)
    trial.aim()
    trial.now().kill()
    trial.begin()
    trial.promote(trial.replicas()[0])


def stopped(trial, wake_s, told_s):
    """Stopped, replaced, woken later with its connections still open, told of
    that at once or later, and cut off at last."""
    trial.aim()
    former, old = trial.now(), trial.primary
    former.freeze()
    trial.begin()
    began = trial.times.began
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
    cut_off(trial, former)
    trial.text += (f", woken after {(woken - began) / 1e9:.2f} s, told after "
                   f"{(told - began) / 1e9:.3f} s")


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
    trial.begin()
    if lose:
        (server.dir / "dump.rdb").unlink(missing_ok=True)
    server.launch()
    server.ready()
    trial.times.primary = stage.now_ns()


def planned(trial):
    """FAILOVER, which itself takes about a second. The event begins when it is
    over; the address follows half a second later."""
    trial.contend(1)
    trial.aim()
    former = trial.now()
    former.ask("FAILOVER")
    stage.await_true(trial.promoted, "FAILOVER is over")
    trial.begin()
    trial.primary = trial.promoted()[0]
    trial.contend(0.5)
    trial.move()
    trial.times.primary = stage.now_ns()
    cut_off(trial, former)


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
    trial.aim()
    trial.begin()
    cut_off(trial, server)


# Programs that live on give up the connection after STALE_S, so their leases
# have to last for longer.
SILENT = {"silent": True, "ttl_ms": 3900, "left_s": 2.6, "rest_s": 3.5}
# The holders release their locks soon, so that the pause is what is seen.
KEPT = {"loses": False, "lost": False, "ttl_ms": 1000, "rest_s": 3.5}
EVENTS = {
    "crash": Event(crash),
    "stopped": Event(functools.partial(
        stopped, wake_s=(1.1, 2.9), told_s=0), **SILENT),
    "late": Event(functools.partial(
        stopped, wake_s=(2.3, 2.9), told_s=0), **SILENT),
    "untold": Event(functools.partial(
        stopped, wake_s=(1.1, 2.9), told_s=0.5), **SILENT),
    "empty": Event(functools.partial(restart, lose=True), lost=False),
    "rdb": Event(functools.partial(restart, save=True), lost=False),
    "aof": Event(restart, **KEPT, arguments=("--appendonly", "yes")),
    "planned": Event(planned, **KEPT, limit_s=3),
    "backlog": Event(backlog, **KEPT, limit_s=MARGIN_S),
}


def nine_tenths(waits):
    """So many were not longer. After FAILOVER the pause is 2 or 3 s instead of
    1 s where INFO took more than 5 or 10 ms, which happens if the machine has
    much to do."""
    return sorted(waits)[max(0, len(waits) * 9 // 10 - 1)]


class Sum:
    """What all runs of an event have shown, with the guard or without."""

    def __init__(self, name, guard, options):
        self.name, self.event = name, EVENTS[name]
        self.guard, self.options = guard, options
        self.doubled = dict.fromkeys(KINDS, 0)
        self.any = 0
        self.first = {kind: [] for kind in KINDS}
        self.after = {kind: [] for kind in KINDS}  # it was possible

    def add(self, doubles, first):
        self.any += any(doubles.values())
        for kind in KINDS:
            self.doubled[kind] += doubles[kind] > 0
            self.first[kind].append(first[kind][0])
            self.after[kind].append(first[kind][1])

    def complaints(self):
        """Why the cell does not hold, or proves nothing. A line that begins
        with HARM counts, whatever a second run finds."""
        yield from self.of_guard() if self.guard else self.without()

    def of_guard(self):
        slack = BUSY_S if self.options.short else 0
        limit = slack + (self.event.limit_s or
                         needed_s(self.event.ttl_ms) + MARGIN_S)
        typical = nine_tenths if self.event.limit_s else statistics.median
        for kind, waits in self.first.items():
            if self.doubled[kind]:
                yield f"HARM: {kind}: two holders in {self.doubled[kind]} runs"
            if self.event.loses and min(waits) < self.event.ttl_ms / 1000:
                yield (f"HARM: {kind}: granted after {min(waits):.2f} s, "
                       "before the last lease was over")
            wait = typical([min(first, limit) if self.was_kept(kind, run)
                            else first for run, first in enumerate(waits)])
            if wait > limit:
                yield f"{kind}: the first grant came after {wait:.2f} s"
        for way in WAYS:
            kinds = way, f"new-{way}"
            apart = statistics.median([0] + [
                abs(self.first[kinds[0]][run] - self.first[kinds[1]][run])
                for run in range(self.options.runs)
                if not any(self.was_kept(kind, run) for kind in kinds)])
            if apart > slack + MARGIN_S:
                yield f"new-{way}: {apart:.2f} s from {way}"

    def was_kept(self, kind, run):
        """The lock was held for longer than the pause, and granted then."""
        return not self.event.loses and self.after[kind][run] <= SLACK_S

    def without(self):
        least = max(1, self.options.runs * 3 // 4)
        if self.options.short:
            if self.event.loses and not self.any:
                yield "no two holders"
            return
        for kind, waits in self.after.items():
            doubled, wait = self.doubled[kind], statistics.median(waits)
            if self.event.loses and doubled < least:
                yield f"{kind}: two holders in {doubled} runs prove nothing"
            if wait > SLACK_S:
                yield f"{kind}: the first grant came {wait:.2f} s late"

    def row(self):
        """With the guard, from the event; without it, how late it was."""
        waits = self.first if self.guard else self.after
        cells = [f"{self.doubled[kind]}; "
                 f"{statistics.median(waits[kind]):.2f} s "
                 f"({max(waits[kind]):.2f})" for kind in KINDS]
        any_of = f"{self.any} of {self.options.runs}"
        if not self.event.loses:
            any_of += ", loses none"
        return " | ".join([f"| {self.name}", "on" if self.guard else "off",
                           any_of, *cells]) + " |"

    def name_of_cell(self):
        return f"{self.name}, guard {'on' if self.guard else 'off'}"


def play(options, name, guard):
    stage.REDIS = options.server
    event, found = EVENTS[name], Sum(name, guard, options)
    with tempfile.TemporaryDirectory(prefix="nxlock-failover-") as directory:
        trial = Trial(directory, options.programs, event, guard)
        try:
            for run in range(options.runs):
                doubles, first, text = trial.run(
                    f"{options.seed}/{name}/{run}")
                found.add(doubles, first)
                print(f"{found.name_of_cell()}, run {run}: two holders, "
                      "first grant, after it was possible: " +
                      "; ".join(f"{kind} {doubles[kind]}, {at:.2f}, {late:.2f}"
                                for kind, (at, late) in first.items()) +
                      text, flush=True)
        finally:
            trial.close()
    return found


def tell(options, sums):
    """The table, then the results as TAP. Do all cells hold?"""
    print(f"\nseed {options.seed}; runs with two holders, and the first grant, "
          "median and longest: with the guard after the event, without it "
          "after it was possible\n\n"
          f"| event | guard | two holders | {' | '.join(KINDS)} |\n"
          f"|{'---|' * (3 + len(KINDS))}\n" +
          "\n".join(s.row() for s in sums) + f"\n\n1..{len(sums)}")
    good = True
    for number, cell in enumerate(sums, 1):
        complaints = list(cell.complaints())
        good = good and not complaints
        print(f"{'not ' if complaints else ''}ok {number} - "
              f"{cell.name_of_cell()}", *complaints, sep="\n")
    return good


def arguments():
    parser = argparse.ArgumentParser(
        prog="nxlock-failover", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", help=argparse.SUPPRESS)
    parser.add_argument("--event", choices=EVENTS, action="append",
                        help="this one (default: all; may be given again)")
    parser.add_argument("--runs", type=int, default=20, help="of each event")
    parser.add_argument("--guard", choices=("on", "off", "both"),
                        default="both")
    parser.add_argument("--seed", type=int, default=1,
                        help="draws other schedules (default 1)")
    parser.add_argument("--jobs", type=int, default=2,
                        help="events at a time; they sleep most of the time "
                        "(default 2)")
    parser.add_argument("--server", default=stage.REDIS,
                        help="default: $NXLOCK_REDIS_SERVER, or redis-server")
    parser.add_argument("--short", action="store_true",
                        help="the crash, once with the guard and once without; "
                        "the first grant may be late")
    options = parser.parse_args()
    if options.short:
        options.event, options.runs, options.guard = ["crash"], 1, "both"
    return options


def main():
    options = arguments()
    if shutil.which(options.server) is None:
        skip = os.environ.get("NXLOCK_SKIP_LIVE") == "1"
        print(f"{options.server} is not installed", file=sys.stderr)
        return 77 if skip else 1
    cells = [(options, name, guard) for name in options.event or EVENTS
             for guard in (True, False)
             if options.guard in ("both", "on" if guard else "off")]
    # Processes: what a cell starts dies with its process.
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        sums = pool.starmap(play, cells, chunksize=1)
    return 0 if tell(options, sums) else 1


if __name__ == "__main__":
    sys.exit(main())
