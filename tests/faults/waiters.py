# SPDX-License-Identifier: MIT
"""The faults that befall those who wait in line, and the line itself; for the
rows in faults.py, and by the same rules."""

import time

import stage

# A lease of one that was granted the lock and cannot know, of one that was
# next, and what a busy machine adds.
DEAD_S = 3
# Until a program that polls gets it: about every 5 s, but by chance.
POLL_S = 40


def waiting(cell):
    """Processes that do not hold the lock; most of them wait for it."""
    cell.holds()
    return [c for c in cell.contenders
            if not (c.record.holds and c.record.holds[-1].open)]


def kill_waiter(cell):
    while cell.goes_on():
        some = waiting(cell)
        if some:
            contender = cell.dice.choice(some)
            contender.kill()
            killed = stage.now_ns()
            cell.strike()
            cell.await_grant(killed, DEAD_S, "a dead waiter blocked for long")
            contender.begin()
        cell.pause(0.05, 0.3)


def stop_waiters(cell):
    """As when their host dies: nothing closes their sockets."""
    while cell.goes_on():
        some = waiting(cell)[:4]
        for contender in some:
            contender.stop()
        stopped = stage.now_ns()
        cell.strike()
        cell.await_grant(stopped, DEAD_S, "dead waiters blocked for long")
        cell.pause(0.6, 1.2)
        for contender in some:
            contender.go_on()
        cell.pause(0.1, 0.4)


def lose_messages(cell):
    """Who releases hands the lock over, and nobody is told."""
    while cell.goes_on():
        cell.each(lambda s: s.ask("ACL", "SETUSER", "default", "-publish"))
        cell.strike()
        cell.pause(0.1, 0.8)
        cell.each(lambda s: s.ask("ACL", "SETUSER", "default", "+publish"))
        cell.pause(0.1, 0.5)


def cut_subscribers(cell):
    while cell.goes_on():
        cell.each(lambda s: s.ask("CLIENT", "KILL", "TYPE", "pubsub"))
        cell.strike()
        cell.pause(0.005, 0.1)


def delete_line(cell):
    while cell.goes_on():
        key = cell.dice.choice(stage.LINE_KEYS)
        if any([s.ask("DEL", key) for s in cell.stage.struck]):
            cell.strike()  # it was there
        cell.pause(0.01, 0.2)


RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
"""


def poll(cell):
    """Another program that does not know the line: it asks again and again,
    and hands nothing over. How often it gets the lock is left to chance."""
    end = time.monotonic() + POLL_S
    while cell.goes_on() or not cell.extra and time.monotonic() < end:
        server = cell.stage.struck[0]
        if server.ask("SET", "k", "another", "NX", "PX", 1000):
            begin = stage.now_ns()
            time.sleep(0.005)
            cell.hold_of_other(begin, stage.now_ns())
            server.ask("EVAL", RELEASE, 1, "k", "another")
            cell.strike()
        cell.pause(0.002, 0.01)
    if not cell.extra:
        cell.complain("a program that polls was starved")
