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
they are played for the length of the pause.

The first grant is due, with the guard, when the longest lease is over, and
MARGIN_S later at most; without it SLACK_S after a program could have had it
(class Times): that is the promotion, unless the lock is still held, or the
program has not yet given up a connection that does not answer."""

import collections
import functools
import statistics
import sys
import time

import stage
from trial import KINDS, NEVER_S, WAYS, Rig, Sum, Trial, late_s, main

MARGIN_S = 1.5    # until the first grant, after the pause of the guard
SLACK_S = 0.3     # the same without the guard, after the promotion
NOTED_S = 0.1     # after a grant
STALE_S = 2       # SERVER_STALE_MS of src/net/state.h
# play: what happens. loses: locks. lost: what is granted reaches no replica.
# ttl_ms: of the leases, just short enough for a pause that is counted in whole
# seconds; left_s: of their holds, when it happens. rest_s: it is watched for so
# long without the guard. silent: the former primary leaves connections open,
# and does not answer. arguments: of the servers. limit_s: until the first grant
# with the guard; None: the pause and MARGIN_S. each: every run has to keep it.
Event = collections.namedtuple(
    "Event",
    "play loses lost ttl_ms left_s rest_s silent arguments limit_s each",
    defaults=(True, True, 1900, 0.4, 1.5, False, (), None, False))


def needed_s(ttl_ms):
    """The longest lease and its drift, and a second; in whole seconds."""
    return -(-ttl_ms * 101 // 100000) + 1


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


class Failover(Trial):
    """Three servers, and the address."""

    def __init__(self, directory, options, event, guard):
        super().__init__(directory, options, event, guard)
        self.needed_s = needed_s(event.ttl_ms)
        self.group = stage.Group(directory, self.proxy, event.arguments)
        self.servers, self.links = self.group.servers, self.group.links
        self.now, self.replicas = self.group.now, self.group.replicas
        self.times = None

    def url(self):
        guard = "&guard_failover=on" if self.guard == "on" else ""
        return (f"{self.group.front.tcp_url}/?max_ttl_ms={self.event.ttl_ms}"
                f"{guard}")

    def promoted(self):
        return [i for i in self.replicas()
                if self.servers[i].info("replication", "role") == "master"]

    def follow(self, i):
        self.servers[i].ask("REPLICAOF", "127.0.0.1",
                            self.links[self.group.primary].port)

    def prepare(self):
        """All follow the primary and have its data; if there is a guard, all
        are so old that it refuses nothing before the event."""
        for i, server in enumerate(self.servers):
            self.group.revive(i)
            self.links[i].order("hold", "down", 0)
            server.config("replica-announce-ip", "127.0.0.1")
            server.config("replica-announce-port", self.links[i].port)
        self.now().ask("REPLICAOF", "NO", "ONE")
        for i in self.replicas():
            self.follow(i)
        stage.await_copies(self.now(),
                           [self.servers[i] for i in self.replicas()])
        self.now().ask("FLUSHALL")
        self.group.move()
        if self.guard == "on":
            # The replicas' connections have to be old, too.
            time.sleep(self.needed_s + 1)
            for server in self.servers:
                stage.await_true(
                    lambda s=server: int(s.info("server", "uptime_in_seconds"))
                    > self.needed_s + 1, "a server is old enough")
        if self.event.lost:
            self.links[self.group.primary].order("hold", "down", 1)

    def begin(self):
        super().begin()
        self.times = Times(self.began, self.event.silent)

    def promote(self, i):
        """The address leads to that one from now on."""
        former = self.group.primary
        self.servers[i].ask("REPLICAOF", "NO", "ONE")
        self.group.primary = i
        self.group.move()
        self.times.primary = stage.now_ns()
        for k in self.replicas():
            if k != former:
                self.follow(k)

    def rest_s(self):
        rest_s = (self.needed_s + 2.5 if self.guard == "on"
                  else self.event.rest_s)
        return rest_s - (stage.now_ns() - self.began) / 1e9

    def first_grant(self, kind, holds):
        """A grant from before the event may be noted after it, where the
        processor has much to do. With the guard the next one comes much
        later."""
        began = self.began
        since = began + (NOTED_S * 10**9 if self.guard == "on" else 0)
        first = min((h.begin for h in holds if h.begin > since),
                    default=began + NEVER_S * 10**9)
        at = self.times.at(kind, holds, keeps=not self.event.loses)
        return (first - began) / 1e9, (first - at) / 1e9

    def close(self):
        self.end()
        self.group.close()


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
    former, old = trial.now(), trial.group.primary
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
    server.start()
    server.ready()
    trial.times.primary = stage.now_ns()


def planned(trial):
    """FAILOVER, which itself takes about a second. The event begins when it is
    over, that is, when the new primary accepts writes; the address follows half
    a second later."""
    trial.contend(1)
    trial.aim()
    former = trial.now()
    former.ask("FAILOVER")
    stage.await_true(trial.promoted, "FAILOVER is over")
    trial.begin()
    trial.group.primary = trial.promoted()[0]
    trial.contend(0.5)
    trial.group.move()
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
    "planned": Event(planned, **KEPT, limit_s=3, each=True),
    "backlog": Event(backlog, **KEPT, limit_s=MARGIN_S),
}


def trial_of(_guard):
    return Failover


def nine_tenths(waits):
    """So many were not longer."""
    return sorted(waits)[max(0, len(waits) * 9 // 10 - 1)]


class Cell(Sum):
    def complaints(self):
        """Why the cell does not hold, or proves nothing."""
        yield from self.of_guard() if self.guard == "on" else self.without()

    def of_guard(self):
        slack = late_s(self.options)
        limit = slack + (self.event.limit_s or
                         needed_s(self.event.ttl_ms) + MARGIN_S)
        typical = (max if self.event.each else nine_tenths
                   if self.event.limit_s else statistics.median)
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

def guards_of(_event):
    return ["on", "off"]


RIG = Rig("nxlock-failover", __doc__, EVENTS, trial_of, Cell, guards_of,
          ("crash",),
          "runs with two holders, and the first grant, median and longest: "
          "with the guard after the event, without it after it was possible")

if __name__ == "__main__":
    sys.exit(main(RIG))
