# SPDX-License-Identifier: MIT
"""What clients do when Sentinels fail, and when they name another primary, on
real servers: a primary, two replicas and three Sentinels.

failover (the default): many clients in one process hold many locks each, with
renewal, and the primary is killed. No lock may be lost. Each must be renewed
within SOON_S after a majority of the Sentinels named the new primary. From the
crash on a client may connect to the former primary once in each step of its
backoff, to the new one once, and to no Sentinel again. Once all locks are
released nothing may wake the clients.

sentinel: a client locks and releases as fast as it can, while one Sentinel is
stopped in every second block of BLOCK_S. The number of grants with it and
without must differ by NEAR at most; and each Sentinel is asked once a second at
most, and not at all when nothing is held."""

import argparse
import collections
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import types

sys.path.append(os.path.join(os.path.dirname(__file__), "../cli"))

import stage
from rig import Tap
from sentinel import Naming, needed_s
from sentinel_group import SERVICE, Group

SOON_S = 1
NAMED_S = 60          # until another primary is named; they may pause for 30
FIRST_S, MOST_S = 0.01, 0.5  # the delays of a connection's backoff
AT_ONCE_S = 0.05      # after the former primary was asked, in half of them
SWITCHES = 2          # of the process, while idle: the main thread's own
BLOCK_S, BLOCKS, NEAR = 5, 8, 0.02


def options():
    parser = argparse.ArgumentParser(
        prog="nxlock-crowd", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", help=argparse.SUPPRESS)
    parser.add_argument("--what", choices=("failover", "sentinel"),
                        default="failover")
    parser.add_argument("--door", choices=("block", "loop"), default="block",
                        help="the blocking interface, or an event loop")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--locks", type=int, default=10, help="of each client")
    parser.add_argument("--ttl", type=int, default=15000, help="in ms")
    parser.add_argument("--busy", type=float, default=0,
                        help="seconds more that a renewal may take, on a "
                        "machine that has other work (default 0)")
    return parser.parse_args()


class Worker:
    """A crowd.c, and the lines that it has written."""

    def __init__(self, opts, group, mode, file):
        self.file = file
        self.process = stage.start(
            [os.path.join(opts.programs, "nxlock-crowd-worker"),
             group.url(f"max_ttl_ms={opts.ttl}"), mode,
             opts.clients, opts.locks, opts.ttl],
            stdin=subprocess.PIPE, stdout=file)

    def lines(self):
        with open(self.file.name, encoding="ascii") as file:
            return [line.split() for line in file.read().splitlines()]

    def of(self, word):
        """The numbers of all lines that begin with it."""
        return [list(map(int, line[1:])) for line in self.lines()
                if line[0] == word]

    def await_line(self, word, count=1):
        stage.await_true(
            lambda: self.process.poll() or len(self.of(word)) >= count,
            f"{word!r} is written", 60)
        return self.of(word)[count - 1]

    def order(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        if self.process.wait(60) != 0:
            raise RuntimeError(f"it ended with {self.process.returncode}")


# ------------------------------------------------------------------ a failover

def least_delays():
    """Between the attempts of a backoff: at least half of each step."""
    step = FIRST_S
    while True:
        yield step / 2
        step = min(2 * step, MOST_S)


def too_early(times):
    """How many of these attempts came before their step of the backoff."""
    return sum(later - earlier < least * 1e9 for earlier, later, least in
               zip(times, times[1:], least_delays()))


def attempts(dials, port):
    """{client: when it tried to connect there}"""
    found = collections.defaultdict(list)
    for client, at, to in dials:
        if to == port:
            found[client].append(at)
    return found


def failover(opts, group, tap, file):
    sentinels = [types.SimpleNamespace(server=one) for one in group.sentinels]
    naming = Naming(sentinels, SERVICE)
    former = group.primary.port
    worker = Worker(opts, group, opts.door, file)
    count = opts.clients * opts.locks
    tap.equal(worker.await_line("held"), [count], "all locks are granted")
    time.sleep(1.5)  # each client knows the primary, and that it is named
    before = naming.majority
    crash = stage.now_ns()
    group.primary.process.kill()
    stage.await_true(lambda: naming.majority not in (None, before),
                     "another primary is named", NAMED_S)
    new, named = naming.majority, naming.since
    time.sleep(SOON_S + opts.busy + 0.5)
    worker.order()
    released = worker.await_line("released")
    wakes, switches = worker.await_line("idle")
    worker.close()
    naming.close()
    print(f"# {opts.door}, {count} locks of {opts.ttl / 1000:g} s in "
          f"{opts.clients} clients; named after {(named - crash) / 1e9:.2f} s")
    tap.equal(len(worker.of("L")), 0, "no lock is lost")
    tap.equal(released, [count], "all are released")
    renewed = judge_renewals(opts, tap, worker, count, named)
    dials = [dial for dial in worker.of("D") if crash < dial[1] <= renewed]
    judge_attempts(tap, dials, named, former, new, group)
    print(f"# idle for 3 s: {wakes} turns of the event loop, "
          f"{switches} waits of a thread")
    tap.check(wakes == 0 and switches <= SWITCHES,
              "nothing wakes the clients when all are released")


def judge_renewals(opts, tap, worker, count, named):
    """Returns when the last one was renewed."""
    first = {}
    for lock, at, result in worker.of("R"):
        if result == 0 and at > named:
            first.setdefault(lock, (at - named) / 1e9)
    waits = sorted(first.values())
    print(f"# renewed after it was named: {len(waits)} locks, "
          f"median {statistics.median(waits or [0]):.3f} s, "
          f"last {max(waits or [0]):.3f} s")
    tap.check(len(waits) == count and waits[-1] <= SOON_S + opts.busy,
              "all are renewed soon after a majority named the new primary")
    return named + int(max(waits or [0]) * 1e9)


def without_question(times, named):
    """Whether it has handed over is asked once after it has been
    replaced."""
    return times[:-1] if times[-1] > named else times


def judge_attempts(tap, dials, named, former, new, group):
    to_new = attempts(dials, new)
    to_former = {client: without_question(times, named) for client, times
                 in attempts(dials, former).items()}
    tries = [len(times) for times in to_former.values()]
    print(f"# attempts of a client at the former primary: at most "
          f"{max(tries, default=0)}, median {statistics.median(tries or [0])}; "
          f"at the new one: at most "
          f"{max(map(len, to_new.values()), default=0)}, the first "
          f"{(min(map(min, to_new.values()), default=named) - named) / 1e9:.3f}"
          f", the last "
          f"{(max(map(max, to_new.values()), default=named) - named) / 1e9:.3f}"
          " s after it was named")
    tap.equal(sum(map(too_early, to_former.values())), 0,
              "at most one attempt in each step of the backoff")
    tap.equal(max(map(len, to_new.values()), default=0), 1,
              "one attempt to reach the new primary")
    after = [to_new[client][0] - times[-1] for client, times in
             attempts(dials, former).items()
             if times[-1] > named and to_new[client]]
    print(f"# at the new one after the last at the former: median "
          f"{statistics.median(after or [0]) / 1e9:.3f} s")
    tap.check(after and statistics.median(after) < AT_ONCE_S * 1e9,
              "the backoff of the former primary does not delay the new one")
    tap.equal(sum(len(times) for one in group.sentinels for times in
                  attempts(dials, one.port).values()), 0,
              "no Sentinel is connected to again")


# ----------------------------------------------------------- a Sentinel is down

def commands(sentinel):
    """How many it has carried out, of others that ask it too."""
    text = sentinel.cli("INFO", "stats").decode()
    return int(re.search(r"total_commands_processed:(\d+)", text)[1])


def rates(sentinels, during):
    """Of the commands of each a second, while that goes on."""
    began, before = time.monotonic(), list(map(commands, sentinels))
    during()
    seconds = time.monotonic() - began
    return [(commands(one) - count) / seconds
            for one, count in zip(sentinels, before)]


def sentinel(opts, group, tap, file):
    down, *up = group.sentinels
    alone = rates(up, lambda: time.sleep(2 * BLOCK_S))
    worker = Worker(opts, group, "cycle", file)
    together = rates(up, lambda: time.sleep(2 * BLOCK_S))
    # A flight asks two commands.
    asked = [(rate - other) / 2 for rate, other in zip(together, alone)]
    grants = {False: [], True: []}
    before = None
    for block in range(BLOCKS + 1):
        worker.order()
        now, = worker.await_line("cycles", block + 1)
        if block:
            grants[frozen].append(now - before)
        before = now
        # What grows slowly strikes both the same.
        frozen = block % 4 in (1, 2)
        (down.freeze if frozen else down.thaw)()
        if block < BLOCKS:
            time.sleep(BLOCK_S)
    down.thaw()
    worker.close()
    ratio = sum(grants[True]) / sum(grants[False])
    print(f"# grants in blocks of {BLOCK_S} s: {grants[False]} with three "
          f"Sentinels, {grants[True]} with two ({100 * ratio - 100:+.2f} %); "
          f"each of the two was asked "
          f"{', '.join(f'{rate:.3f}' for rate in asked)} times a second")
    tap.check(abs(ratio - 1) <= NEAR, "a Sentinel that is down costs no grants")
    tap.check(max(asked) <= 1.1, "each Sentinel is asked once a second")


def main():
    opts, tap = options(), Tap()
    with Group(replicas=2) as group, tempfile.NamedTemporaryFile() as file:
        tap.check(group.know_each_other(), "the Sentinels know each other")
        tap.check(group.are_older(needed_s(opts.ttl) + 1),
                  "the primary is old enough to grant locks")
        {"failover": failover, "sentinel": sentinel}[opts.what](
            opts, group, tap, file)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
