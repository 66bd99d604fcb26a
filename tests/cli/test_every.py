#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_every.py NXLOCK: --every, from the crons of three machines.

Their clocks are apart, and each cron is late now and then by less than a tenth
of a period. In each period one of the three runs the job, and the other two
are told that it is not due.
"""

import heapq
import os
import random
import subprocess
import sys
import time

from rig import play
from table import Table, part

FULL = os.environ.get("NXLOCK_FULL") == "1"
# Seconds, jobs side by side, and how many periods of each. A row is for the
# machine that is too busy for the one before: more time, and less to do.
ROWS = (((6.0, 40, 25) if FULL else (6.0, 24, 4)), (12.0, 20, 4), (24.0, 10, 4))
OFFSETS = (0.0, 0.75, 1.5)  # of the machines' clocks
JITTER = 0.2
TOLERANCE = 1 / 10  # of a period: what --every allows for


class Started:
    def __init__(self, process, period, due):
        self.process = process
        self.period = period
        self.due = due
        self.code = None


def start(nxlock, name, length):
    return subprocess.Popen(
        [nxlock, "run", f"job{name}-of-{length}", "--every",
         f"{length * 1000:.0f}ms", "--", "true"], stdin=subprocess.DEVNULL)


def crons(nxlock, length, names, count):
    """All starts; each with its code, and how late it began and ended."""
    seed = random.randrange(1 << 32)
    print(f"# seed {seed}")
    rng = random.Random(seed)
    queue = []
    begin = time.monotonic() + 0.2
    for name in range(names):
        phase = begin + length * name / names
        for period in range(count):
            for host, offset in enumerate(OFFSETS):
                due = phase + period * length + offset
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
            at_work.append(Started(
                start(nxlock, name, length), (name, period), due))
        else:
            time.sleep(0.002)
    return done


def enough(tap, done, length):
    """A period counts if all of its three ended in time, in the sense of the
    promise: each starts as often, give or take a tenth. False: too few did."""
    runs, late, odd = {}, set(), []
    for one in done:
        runs.setdefault(one.period, 0)
        if one.code == 0:
            runs[one.period] += 1
        elif one.code != 75:
            odd.append(one.code)
        # Late in one is early for the next.
        if one.took > length * TOLERANCE - JITTER:
            name, period = one.period
            late.update({one.period, (name, period + 1)})
    tap.equal(odd, [], "each is a run or not due")
    wrong = {period: n for period, n in runs.items()
             if n != 1 and period not in late}
    tap.equal(wrong, {}, f"one run in each of {len(runs)} periods")
    print(f"# {len(late)} periods were disturbed by the machine")
    return len(late) < len(runs) * 9 / 10


def periods(room):
    room.check(any(enough(room, crons(room.program, *row), row[0])
               for row in ROWS), "enough of them count")


RUN = "run h --every 1h"
BY_HAND = (
    (f"{RUN} -- true", 0, ""),
    ("db PTTL {h}:every", (3200000, 3240000)),  # 54 minutes
    ("db EXISTS h", "0"),
    (f"{RUN} -- true", 75, ""),
    (f"{RUN} -E 0 -- true", 0),
    (f"{RUN} -v -- true", 75, "'h' is not due; CMD is not started: ",
     "ran it last, and --every 1h skips runs for 54m",
     "the next run may start in 5"),
    ("db EXISTS h", "0"),
    ("run h -- true", 0),
    ("list", 0, "~{h}:every\tevery\t.*"),
    ("unlock {h}:every --force --yes", 0),
    (f"{RUN} -- true", 0),
    # One that fails counts, and what could not be started does not.
    ("db DEL {h}:every", "1"),
    (f"{RUN} -- false", 1),
    (f"{RUN} -- true", 75),
    ("db DEL {h}:every", "1"),
    (f"{RUN} -- /nowhere", 127),
    ("db EXISTS {h}:every", "0"),
    # A name with a tag, a prefix and a short max_ttl_ms.
    ("run {h}x --every 1h -u {url}?max_ttl_ms=40000 --prefix p: -- true", 0),
    ("db EXISTS p:{h}x:every", "1"),
    *(row for period, skipped in (("1d", "21.6h"), ("24d", "21.6d"))
      for row in (
          (f"run r{period} --every {period} -v -- true", 0),
          (f"run r{period} --every {period} -v -- true", 75,
           f"skips runs for {skipped};"))),
    ("run longest --every 26.6d -- true", 0),
    *((f"run month --every {period} -- true", 64, "26.6d",
       f"--every {period} is too long") for period in ("26.7d", "49d")),
    ("run shorter --every 2h -- true", 0),
    ("run shorter --every 5s -v -- true", 75, "!ago", "used a longer period "
     "than --every 5s; the next run may start in 107m"),
    ("run --help", 0, r"~.*--every DUR .*0\.9 DUR.*"),
)
AS_U = "NXLOCK_PASSWORD=Zqx7 ?user=u"
RIGHTS = (
    ("db ACL SETUSER u on >Zqx7 ~job:* +@all", "OK"),
    (f"{AS_U} run job:9 --every 1h -- true", 77, "key '{job:9}:every'",
     "'nxlock doctor job:9'", "not that of --every"),
    ("db ACL SETUSER u ~{job:*", "OK"),
    (f"{AS_U} run job:9 --every 1h -- true", 0),
    ("db ACL SETUSER u ~{job}x", "OK"),
    (f"{AS_U} run {{job}}x --every 1h -- true", 77, "key '{job}x:every'",
     "nxlock doctor"),
)


if __name__ == "__main__":
    sys.exit(play(Table, part("by_hand", BY_HAND), part("rights", RIGHTS),
                  periods))
