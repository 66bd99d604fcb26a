# SPDX-License-Identifier: MIT
"""Several faults at once, for the rows in faults.py, and what is checked only
there. Locks of all kinds compete for the name in some of these cells."""

import concurrent.futures
import time

import stage
from record import Kind

POOL = Kind(permits=4)
KINDS = (POOL, Kind(shared=1), Kind(permits=4, weight=2), Kind(), POOL,
         Kind(permits=2), Kind(shared=1), Kind(permits=3, weight=3),
         Kind(poll=True), Kind(permits=4, poll=True), Kind(shared=1), Kind())
STAMPS = (Kind(stamps=True),) * 4
# No two of these may be held together.
FULL = (Kind(permits=4, weight=4), Kind(), Kind(permits=3, weight=3)) * 2
READERS = (Kind(shared=1), Kind(), Kind(shared=1)) * 3
# Exclusive locks of an older version beside all kinds of this one.
VERSIONS = KINDS[:8] + (Kind(old=True), Kind(old=True, poll=True))


def together(*strikes):
    """All at once, each in a thread of its own; afterwards every contender
    gets the lock once more, but for those that poll beside a line."""
    def strike(cell):
        # What a thread has started dies with it: they live as long as the cell.
        cell.threads = concurrent.futures.ThreadPoolExecutor(len(strikes))
        for one in [cell.threads.submit(s, cell) for s in strikes]:
            one.result()
        well = stage.now_ns()
        cell.await_that(lambda: all(c.holds_since(well)
                                    for c in cell.contenders
                                    if not c.kind.poll),
                        stage.SERVED_S, "one of the contenders was starved")
    return strike


def turns(*strikes):
    """One after the other for a moment each, in any order, again and again."""
    def strike(cell):
        while cell.goes_on():
            for one in cell.dice.sample(strikes, len(strikes)):
                cell.take_turn(one, cell.dice.uniform(0.1, 0.6))
    return strike


def calm(cell):
    cell.pause(0.3, 0.8)


def direct(cell):
    """A third of the processes does not suffer from the network."""
    cell.other_place = cell.stage.servers[0].socket


def kill_some(cell):
    """A third of the processes, whatever they do."""
    while cell.goes_on():
        some = cell.dice.sample(cell.contenders, len(cell.contenders) // 3)
        for contender in some:
            contender.kill()
        cell.strike()
        for contender in some:
            contender.begin()
        cell.pause(0.2, 0.6)


def late_requests(cell):
    """Requests are held back; their clients' connections are closed, and later
    the server gets them."""
    while cell.goes_on():
        cell.order("hold", "up", 1)
        cell.pause(0.001, 0.06)
        cell.order("strand")
        cell.order("hold", "up", 0)
        cell.strike()
        cell.pause(0.01, cell.dice.choice([0.05, 0.3, 1.2]))
        cell.order("deliver")
        cell.pause(0.02, 0.2)
        cell.order("cut")  # the proxy's side to the server, too


def classic_program(cell):
    """Another program of the scheme of timestamps: SETNX and GETSET of the
    second at which its lock is over. At times it dies while it holds it, and at
    times as if it had died long ago. Its lease is no shorter than ours, so that
    a time of its that it writes over ours shortens nothing."""
    server = cell.stage.struck[0]
    while cell.goes_on():
        ends = int(time.time()) + 2
        if server.ask("SETNX", "k", ends) or (
                int(server.ask("GET", "k") or ends) < time.time() and
                int(server.ask("GETSET", "k", ends) or 0) < ends - 2):
            begin = stage.now_ns()
            cell.pause(0, 0.006)
            if time.time() < ends - 1:
                cell.hold_of_other(begin, stage.now_ns())
                server.ask(*cell.dice.choice(
                    [("DEL", "k")] * 3 + [("SET", "k", 1600000000)]))
            cell.strike()
        cell.pause(0, 0.012)


def dead_time(cell):
    """One that has died long ago stands there, again and again."""
    while cell.goes_on():
        if cell.stage.struck[0].ask("SETNX", "k", 1600000000):
            cell.strike()
        cell.pause(0.1, 0.6)


def without_watch(cell):
    cell.stage.servers[0].ask("ACL", "SETUSER", "default", "-watch", "-multi")


def compare_lease(cell):
    """The key of an exclusive lock is there until its holder's deadline.
    Returns whether a lock was held while the server was asked."""
    hold = cell.aim(left_ms=20, age_ms=0, within_s=0.1)
    if not hold:
        return False
    deadline = hold.end
    left_ms = cell.stage.struck[0].ask("PTTL", "k")
    now = stage.now_ns()
    cell.holds()
    if hold.open and deadline > now + (left_ms + 1) * 1000000:
        cell.complain("HARM: a deadline is after the end of its key")
    return hold.open


def compare_leases(cell):
    while cell.goes_on():
        compare_lease(cell)


def compared_at_last(strike):
    """And once more when all is well, so that it was done at least once."""
    def both(cell):
        strike(cell)
        cell.await_that(lambda: compare_lease(cell), stage.SERVED_S,
                        "no deadline was compared with the server's")
    return both


def held_together(cell, seen):
    if seen["together"] * 20 < seen["grants"]:
        cell.complain("hardly any grant was beside another one")


def expected_errors(cell, seen):
    """A server that has just restarted loads its file, and an older version
    does not know the type of the key."""
    strange = set(seen["acquires"]) - {
        "ok", "busy", "cancelled", "lost", "unknown", "unreachable", "refused"}
    if any(kind.old for kind in cell.kinds):
        strange.discard("wrong type")
    if strange:
        said = [m for c in cell.contenders for m in c.record.messages]
        cell.complain(f"{strange} were seen; {said[-1:]}")
