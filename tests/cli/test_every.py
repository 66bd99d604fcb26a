#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_every.py NXLOCK: --every, from the crons of three machines.

Their clocks are apart by less than half a period, and cron is late by a little
now and then. In each of 1000 periods one of the three runs the job, and the
other two are told that it is not due.
"""

import heapq
import os
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is

from rig import Server, Tap, clean_environment, nx

FULL = os.environ.get("NXLOCK_FULL") == "1"
PERIOD = 1.2
OFFSETS = (0.0, 0.15, 0.3)  # of the machines' clocks
JITTER = 0.05
NAMES = 120 if FULL else 40  # jobs, side by side
PERIODS = 100 if FULL else 25  # of each


class Launched:
    def __init__(self, process, period, due):
        self.process = process
        self.period = period
        self.due = due
        self.code = None


def start(nxlock, job):
    return subprocess.Popen(
        [nxlock, "run", job, "--every", f"{PERIOD * 1000:.0f}ms", "--",
         "true"], stdin=subprocess.DEVNULL)


def crons(nxlock):
    """All starts; each with its code, and how late it began and ended."""
    seed = random.randrange(1 << 32)
    print(f"# seed {seed}")
    rng = random.Random(seed)
    queue = []
    begin = time.monotonic() + 0.2
    for name in range(NAMES):
        phase = begin + PERIOD * name / NAMES
        for period in range(PERIODS):
            for host, offset in enumerate(OFFSETS):
                due = phase + period * PERIOD + offset
                heapq.heappush(queue, (due + rng.random() * JITTER, due, host,
                                       name, period))
    done, at_work = [], []
    while queue or at_work:
        for one in list(at_work):
            if one.process.poll() is not None:
                one.code = one.process.returncode
                one.took = time.monotonic() - one.due
                at_work.remove(one)
                done.append(one)
        now = time.monotonic()
        if queue and queue[0][0] <= now:
            _, due, _, name, period = heapq.heappop(queue)
            at_work.append(Launched(
                start(nxlock, f"job{name}"), (name, period), due))
        else:
            time.sleep(0.002)
    return done


def count(tap, done):
    """A period counts if all of its three ended in time, in the sense of the
    promise: their clocks and delays are apart by less than half of it."""
    runs, late, odd = {}, set(), []
    for one in done:
        runs.setdefault(one.period, 0)
        if one.code == 0:
            runs[one.period] += 1
        elif one.code != 75:
            odd.append(one.code)
        # Late in one is early for the next.
        if one.took > PERIOD / 2 - max(OFFSETS):
            name, period = one.period
            late.update({one.period, (name, period + 1)})
    tap.equal(odd, [], "each is a run or not due")
    wrong = {period: n for period, n in runs.items()
             if n != 1 and period not in late}
    tap.equal(wrong, {}, f"one run in each of {len(runs)} periods")
    print(f"# {len(late)} periods were disturbed by the machine")
    tap.check(len(late) < len(runs) * 9 / 10, "enough of them count")


def by_hand(nxlock, tap, server):
    def code(*words, command=("true",)):
        return nx(nxlock, "run", "h", "--every", "1h", *words, "--",
                  *command)

    got = code()
    tap.equal((got.returncode, got.stderr), (0, b""), "the first one runs")
    left = int(server.cli("PTTL", "{h}:every"))
    tap.check(1700000 < left <= 1800000, "and is recorded for half an hour",
              left)
    tap.equal(server.cli("EXISTS", "h"), b"0\n", "while the lock is free")
    got = code()
    tap.equal((got.returncode, got.stderr, got.stdout), (75, b"", b""),
              "the second one is not due, in silence")
    tap.equal(code("-E", "0").returncode, 0, "-E replaces the code")
    got = code("-v")
    tap.check(b"'h' is not due" in got.stderr, "-v says it", got.stderr)
    tap.equal(server.cli("EXISTS", "h"), b"0\n", "and the lock is free")
    tap.equal(nx(nxlock, "run", "h", "--", "true").returncode, 0,
              "without --every it runs")
    got = nx(nxlock, "list")
    tap.check(got.stdout.startswith(b"{h}:every\tevery\t"),
              "list shows the record", got.stdout)
    got = nx(nxlock, "unlock", "{h}:every", "--force", "--yes")
    tap.equal((got.returncode, code().returncode), (0, 0),
              "unlock of it allows the next run")
    server.cli("DEL", "{h}:every")
    tap.equal(code(command=("false",)).returncode, 1, "one that fails")
    tap.equal(code().returncode, 75, "counts")
    server.cli("DEL", "{h}:every")
    tap.equal(code("--retry-failed", command=("false",)).returncode, 1,
              "but not with --retry-failed")
    tap.equal(code("--retry-failed").returncode, 0, "so the next one runs")
    tap.equal(code("--retry-failed").returncode, 75, "which counts")
    server.cli("DEL", "{h}:every")
    tap.equal(code(command=("/nowhere",)).returncode, 127,
              "what could not be started")
    tap.equal(server.cli("EXISTS", "{h}:every"), b"0\n", "does not count")
    tap.equal(nx(nxlock, "run", "{h}x", "--every", "1h", "--max-ttl-ms",
                 "40000", "--prefix", "p:", "--", "true").returncode, 0,
              "a name with a tag, a prefix and a short max_ttl_ms")
    tap.equal(server.cli("EXISTS", "p:{h}x:every"), b"1\n",
              "has its key in the same way")


def rights(nxlock, tap, server):
    server.cli("ACL", "SETUSER", "u", "on", ">p", "~job:*", "+@all")
    line = ("run", "job:9", "--every", "1h", "--user", "u", "--password", "p",
            "--", "true")
    got = nx(nxlock, *line)
    tap.equal(got.returncode, 77, "a user without rights for the record")
    tap.check(b"key '{job:9}:every'" in got.stderr and
              b"ACL SETUSER USER '~{job:*'" in got.stderr,
              "is told the key and the remedy", got.stderr)
    server.cli("ACL", "SETUSER", "u", "~{job:*")
    tap.equal(nx(nxlock, *line).returncode, 0, "which does")
    server.cli("ACL", "SETUSER", "u", "~{job}x")
    got = nx(nxlock, line[0], "{job}x", *line[2:])
    tap.check(b"key '{job}x:every'" in got.stderr and
              b"ACL SETUSER USER '~{job}x:*'" in got.stderr,
              "and of a name with a tag", got.stderr)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    nxlock, tap = os.path.abspath(sys.argv[1]), Tap()
    with Server() as server:
        clean_environment(server)
        by_hand(nxlock, tap, server)
        rights(nxlock, tap, server)
        count(tap, crons(nxlock))
        return tap.done()


if __name__ == "__main__":
    sys.exit(main())
