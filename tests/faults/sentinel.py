# SPDX-License-Identifier: MIT
"""A primary, two replicas and three Sentinels, real servers, and six kinds of
programs that contend, each kind for a lock of its own (trial.py). Every program
and server has an address of its own on the loopback interface, and reaches the
others through proxies, whose addresses the servers announce. So a partition
holds back what passes between its sides, and replication is held back alone.
Two in three programs of each kind are on the old side, with the former primary.

With the guard no run may have two holders. The same schedule is played without
the guard; without one part of it that the event needs (src/model/guard.h); and
with programs that follow the Sentinels as most do (naive.py). Three quarters of
the runs must have two holders then, or the event proves nothing.

A thread asks each Sentinel every 10 ms which primary it names. The first grant
is due when two of three have named the new one, and SLACK_S later in half of
the runs (LATEST_S in all); with the guard needed_s() after that, and MARGIN_S
later. LEAST grants must follow the event."""

import collections
import functools
import statistics
import sys
import threading
import time

import stage
from naive import Naive
from resp import at_socket
from trial import KINDS, NEVER_S, Rig, Sum, Trial, late_s, main

DOWN_AFTER_MS = 1000
FAILOVER_TIMEOUT_MS = 4000
LOOK_S = 0.01       # the Sentinels are asked so often
SHORT_LOOK_S = 0.03  # with --short
NAMED_S = 30        # until they name another primary, at most
CONFIRM_S = 2       # CONFIRM_VALID_MS of src/core/confirm.h
MARGIN_S = 1.5
SLACK_S, LATEST_S = 0.3, 1.2
LEAST = 5
OLD, NEW = 31, 32   # addresses of the programs, 127.0.0.OLD on the old side
# play: what happens. loses: locks. old_grants: the former primary may go on
# granting when it is not named any more, so that the first grant without the
# guard may be its. parts: of the guard that it needs. parted: the new primary
# is out of the old side's reach. restarts: no other primary is named. ttl_ms:
# of the leases; left_s: of their holds, when it happens: until the new primary
# is named, and longer.
Event = collections.namedtuple(
    "Event", "play loses old_grants parts parted restarts ttl_ms left_s",
    defaults=(True, False, (), False, False, 5900, 3.7))


def needed_s(ttl_ms):
    """The longest lease and its drift, and two seconds; in whole seconds."""
    return -(-ttl_ms * 101 // 100000) + 2


class Sentinel(stage.servers.SentinelMixin, stage.Server):
    def __init__(self, directory, name, lines):
        self.lines = ("port 0", *lines)
        super().__init__(directory, name)


class Node:
    """A server or a Sentinel, its address, and the proxy in front of it."""

    def __init__(self, trial, directory, kind, number):
        self.name, self.source = f"{kind}{number}", number + (
            11 if kind == "s" else 21)
        # A proxy needs the place only.
        place = collections.namedtuple("Place", "socket")
        self.proxy = trial.proxy(place(str(directory / self.name / "s")))
        self.port, self.server = self.proxy.port, None

    def close(self):
        self.proxy.close()
        if self.server:
            self.server.thaw()
            self.server.kill()

    def ask(self, *words):
        return self.server.ask(*words)


class Naming(threading.Thread):
    """Which primary each Sentinel names, and since when a majority does: when
    it did not yet, for a program may see it sooner than this thread."""

    def __init__(self, sentinels, service, look_s=LOOK_S):
        super().__init__(daemon=True)
        self.look_s = look_s
        self.links = [at_socket(s.server.socket, stage.READY_S)
                      for s in sentinels]
        self.service, self.over = service, False
        self.now = [None] * len(sentinels)
        self.changes = []  # (when, which Sentinel, what it names from then on)
        self.majority, self.since = None, 0
        self.start()

    def run(self):
        before = stage.now_ns()
        while not self.over:
            began = stage.now_ns()
            for i, link in enumerate(self.links):
                said = link.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                                self.service)
                port = said and int(said[1])
                if port != self.now[i]:
                    self.changes.append((stage.now_ns(), i, port))
                self.now[i] = port
            port, count = collections.Counter(self.now).most_common(1)[0]
            if port and 2 * count > len(self.now) and port != self.majority:
                self.majority, self.since = port, before
            before = began
            time.sleep(self.look_s)

    def close(self):
        self.over = True
        self.join()
        for link in self.links:
            link.close()


class Sentinels(Trial):
    SERVICE = "svc"

    def __init__(self, directory, options, event, guard):
        super().__init__(directory, options, event, guard)
        self.needed_s = needed_s(event.ttl_ms)
        self.look_s = SHORT_LOOK_S if options.short else LOOK_S
        self.servers, self.sentinels, self.naming = [], [], None
        self.runs = 0

    def url(self):
        ports = ",".join(f"127.0.0.1:{p}" for p in self.sentinel_ports())
        guard = "&guard_failover=off" if self.guard == "off" else ""
        return (f"redis+sentinel://{ports}/{self.SERVICE}?"
                f"max_ttl_ms={self.event.ttl_ms}{guard}")

    def sentinel_ports(self):
        return [s.port for s in self.sentinels]

    def hold_of(self, kind):
        """In ms. One that renews holds it for longer than a lease."""
        return self.hold_ms * (3 if kind.renews else 1)

    def hold_arguments(self, kind):
        return 0, kind.renews, 0, 0

    def more_arguments(self, kind):
        return [self.hold_of(kind)]

    def source(self, number):
        """The address of the contender of that number."""
        return f"127.0.0.{NEW if number == 2 else OLD}"

    def program(self):
        return super().program() + ("-without" if self.part_off() else "")

    def part_off(self):
        return self.guard.startswith("no ") and self.guard[3:]

    def environment(self, number):
        return {"NXLOCK_SOURCE": self.source(number),
                "NXLOCK_WITHOUT": self.part_off() or ""}

    def prepare(self):
        """New servers that know each other; if there is a guard, they are so
        old that it refuses nothing before the event."""
        self.stop()
        directory = self.directory / str(self.runs)
        directory.mkdir()
        self.runs += 1
        self.servers = [Node(self, directory, "s", i) for i in range(3)]
        self.sentinels = [Node(self, directory, "q", i) for i in range(3)]
        self.old, self.new, self.other = self.servers
        for node in self.servers:
            node.server = stage.Server(
                directory, node.name, self.arguments_of(node))
        for node in self.servers[1:]:
            node.ask("REPLICAOF", "127.0.0.1", self.old.port)
        stage.await_copies(self.old.server,
                           [node.server for node in self.servers[1:]])
        for node in self.sentinels:
            node.server = Sentinel(
                directory, node.name, list(self.lines_of(node)))
        for node in self.sentinels:
            stage.await_true(lambda n=node: self.knows_all(n),
                             "a Sentinel knows all others")
        self.naming = Naming(self.sentinels, self.SERVICE, self.look_s)
        stage.await_true(lambda: self.naming.majority == self.old.port,
                         "the Sentinels name the primary")
        if self.guarded():
            stage.await_true(
                lambda: int(self.old.server.info(
                    "server", "uptime_in_seconds")) > self.needed_s + 1,
                "the primary is old enough", self.needed_s + 20)
        for node in self.servers[1:]:
            self.old.proxy.order("hold", "down", 1, node.source)

    def arguments_of(self, node):
        # The second server is the one that is promoted.
        priority = 10 if node is self.new else 100
        return ("--bind-source-addr", f"127.0.0.{node.source}",
                "--replica-announce-ip", "127.0.0.1",
                "--replica-announce-port", str(node.port),
                "--replica-priority", str(priority))

    def lines_of(self, node):
        svc, here = self.SERVICE, "127.0.0.1"
        yield f"bind-source-addr 127.0.0.{node.source}"
        yield f"sentinel myid {node.source:040x}"
        yield f"sentinel monitor {svc} {here} {self.old.port} 2"
        yield f"sentinel down-after-milliseconds {svc} {DOWN_AFTER_MS}"
        yield f"sentinel failover-timeout {svc} {FAILOVER_TIMEOUT_MS}"
        yield f"sentinel announce-ip {here}"
        yield f"sentinel announce-port {node.port}"
        for other in self.servers[1:]:
            yield f"sentinel known-replica {svc} {here} {other.port}"
        for other in self.sentinels:
            if other is not node:
                yield (f"sentinel known-sentinel {svc} {here} {other.port} "
                       f"{other.source:040x}")

    def knows_all(self, sentinel):
        """It has heard from all of them, and knows whom to promote."""
        def each(what, **expected):
            found = [dict(zip(one[::2], one[1::2])) for one in
                     sentinel.ask("SENTINEL", what, self.SERVICE)]
            return len(found) == 2 and all(
                one.get(key.replace("_", "-")) == value
                for one in found for key, value in expected.items())
        return (each("REPLICAS", flags="slave", master_link_status="ok") and
                each("SENTINELS", flags="sentinel") and
                sorted(dict(zip(one[::2], one[1::2]))["slave-priority"]
                       for one in sentinel.ask(
                           "SENTINEL", "REPLICAS", self.SERVICE)) ==
                ["10", "100"])

    def part(self, *side, held=True):
        """Nothing passes between these nodes and addresses and all others, or
        all that was held back passes now."""
        sources = {n.source if isinstance(n, Node) else n for n in side}
        nodes = self.servers + self.sentinels
        everybody = {n.source for n in nodes} | {OLD, NEW}
        for node in nodes:
            across = (everybody - sources if node.source in sources
                      else sources)
            for source in across:
                for way in ("up", "down"):
                    node.proxy.order("hold", way, int(held), source)

    def await_named(self):
        """Until a majority names another primary."""
        end = time.monotonic() + NAMED_S
        while self.naming.majority == self.old.port:
            if time.monotonic() > end:
                raise RuntimeError("the Sentinels name no other primary")
            self.contend(0.01)
        self.possible = self.naming.since
        self.text += f", named after {(self.possible - self.began) / 1e9:.2f} s"

    def guarded(self):
        return self.guard == "on" or bool(self.part_off())

    def last_named(self):
        """Two Sentinels may each promote a replica, one after the other."""
        return max(self.possible, self.naming.since)

    def guard_is_over_at(self):
        return self.last_named() + self.needed_s * 10**9

    def rest_s(self):
        end = (self.guard_is_over_at() if self.guarded() else
               self.possible) + 3 * 10**9
        return (end - stage.now_ns()) / 1e9

    def first_grant(self, kind, holds):
        """With the guard the former primary's last grant that counts is one
        that was asked for CONFIRM_S after it was named at last."""
        possible = self.last_named() if self.guarded() else self.possible
        since = possible
        if self.guard == "on" and not self.event.restarts:
            since += CONFIRM_S * 10**9
        if self.event.parted:
            holds = [h for h in holds if f"{kind} 2" in h.who or
                     h.begin > self.healed]
        first = min((h.begin for h in holds if h.begin > since),
                    default=self.began + NEVER_S * 10**9)
        return (first - self.began) / 1e9, (first - possible) / 1e9

    def note_late(self, kind, wait_s):
        if self.guard == "on" and wait_s > self.needed_s + MARGIN_S:
            self.text += f"\n    {kind}: late; the Sentinels: " + ", ".join(
                f"q{i} {port} at {(at - self.began) / 1e9:.2f}"
                for at, i, port in self.naming.changes if at > self.began)

    def stop(self):
        if self.naming:
            self.naming.close()
        self.naming = None
        for node in self.sentinels + self.servers:
            node.close()
        self.servers, self.sentinels = [], []

    def close(self):
        self.end()
        self.stop()


class NaiveTrial(Sentinels):
    kinds = {name: kind for name, kind in KINDS.items()
             if not name.endswith("line")}

    def contender(self, kind, number, dice):
        return Naive(self, kind, number, dice)


def trial_of(guard):
    return NaiveTrial if guard == "naive" else Sentinels


# ------------------------------------------------------------------- events

def crash(trial):
    """Killed, without what it granted last."""
    trial.aim()
    trial.old.server.kill()
    trial.begin()
    trial.await_named()


def partition(trial, sentinels):
    """The primary and so many Sentinels are cut off from all others, until the
    guard would have ended."""
    trial.aim()
    side = [trial.old, OLD, *trial.sentinels[:sentinels]]
    trial.part(*side)
    trial.begin()
    trial.await_named()
    trial.contend_until(trial.guard_is_over_at() + 10**9)
    trial.part(*side, held=False)
    trial.healed = stage.now_ns()


def is_primary(node):
    try:
        return node.server.info("replication", "role") == "master"
    except OSError:  # a Sentinel ends all connections when it promotes
        return False


def promoter(trial):
    """A Sentinel and the replica that it promotes are cut off, with the other
    replica, from all others, which name the former primary for longer than the
    guard lasts. The event begins when they are connected again."""
    side = [trial.new, trial.other, NEW, trial.sentinels[0]]
    trial.part(*side)
    trial.sentinels[0].ask("SENTINEL", "FAILOVER", trial.SERVICE)
    stage.await_true(lambda: is_primary(trial.new),
                     "the replica is promoted")
    trial.contend(trial.needed_s + 2)
    trial.begin()
    trial.part(*side, held=False)
    trial.await_named()


def planned(trial):
    """SENTINEL FAILOVER while the replicas lack the last locks. The former
    primary goes on until it is told, about ten seconds later."""
    trial.aim()
    trial.begin()
    trial.sentinels[0].ask("SENTINEL", "FAILOVER", trial.SERVICE)
    trial.await_named()


def stopped(trial):
    """Stopped, replaced, and woken with its connections still open."""
    trial.aim()
    trial.old.server.freeze()
    trial.begin()
    trial.await_named()
    wake = trial.dice.uniform(0, 3)
    trial.contend(wake)
    trial.old.server.thaw()
    trial.text += f", woken {wake:.2f} s later"


def empty(trial):
    """Killed, and started again without its data before anybody is promoted."""
    trial.aim()
    trial.old.server.kill()
    trial.begin()
    trial.old.server.start()
    trial.old.server.ready()
    trial.possible = stage.now_ns()


EVENTS = {
    "crash": Event(crash),
    "partition": Event(
        functools.partial(partition, sentinels=0), parted=True,
        parts=("confirm-grants", "confirm-extends")),
    "partition-one": Event(
        functools.partial(partition, sentinels=1), parted=True),
    "promoter": Event(promoter, old_grants=True, parts=("named",)),
    "planned": Event(planned, old_grants=True),
    "stopped": Event(stopped),
    "empty": Event(empty, restarts=True),
}


class Cell(Sum):
    def complaints(self):
        """Why the cell does not hold, or proves nothing."""
        least = min(self.grants)
        if least < LEAST and self.guard in ("on", "off"):
            yield f"only {least} grants followed"
        if self.guard == "on":
            yield from self.of_guard()
            return
        if self.any < max(1, self.options.runs * 3 // 4):
            yield f"two holders in {self.any} runs prove nothing"
        if self.guard == "off" and not self.event.old_grants:
            yield from self.of_first(0, SLACK_S, LATEST_S)

    def of_guard(self):
        for kind in self.kinds:
            if self.doubled[kind]:
                yield f"HARM: {kind}: two holders in {self.doubled[kind]} runs"
        yield from self.of_first(needed_s(self.event.ttl_ms), MARGIN_S)

    def of_first(self, due, slack, latest=None):
        """Of all kinds together, in half of the runs, and in all."""
        busy = late_s(self.options)
        waits = [min(run) for run in zip(*self.after.values())]
        if statistics.median(waits) > due + slack + busy:
            yield f"the first grant came after {statistics.median(waits):.2f} s"
        if latest and max(waits) > due + latest + busy:
            yield f"a first grant came after {max(waits):.2f} s"

    def shown(self):
        """A naive program may be granted it before a majority has named it."""
        return None if self.guard == "naive" else self.after


def guards_of(event):
    return ["on", "off", *(f"no {part}" for part in event.parts), "naive"]


RIG = Rig("nxlock-sentinel", __doc__, EVENTS, trial_of, Cell,
          guards_of, ("crash", "partition"),
          "runs with two holders, and the first grant after a majority of the "
          "Sentinels named the new primary, median and longest",
          oldest=7)  # bind-source-addr

if __name__ == "__main__":
    sys.exit(main(RIG))
