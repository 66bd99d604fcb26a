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
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is

from rig import Server, Tap, clean_environment, nx

FULL = os.environ.get("NXLOCK_FULL") == "1"
# Seconds, jobs side by side, and how many periods of each. A row is for the
# machine that is too busy for the one before: more time, and less to do.
ROWS = ((6.0, 40, 25 if FULL else 4), (12.0, 20, 4), (24.0, 10, 4))
OFFSETS = (0.0, 0.75, 1.5)  # of the machines' clocks
JITTER = 0.2
TOLERANCE = 1 / 10  # of a period: what --every allows for


class Launched:
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
            at_work.append(Launched(
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


def periods(nxlock, tap):
    tap.check(any(enough(tap, crons(nxlock, *row), row[0]) for row in ROWS),
              "enough of them count")


def by_hand(nxlock, tap, server):
    def code(*words, command=("true",)):
        return nx(nxlock, "run", "h", "--every", "1h", *words, "--",
                  *command)

    got = code()
    tap.equal((got.returncode, got.stderr), (0, b""), "the first one runs")
    left = int(server.cli("PTTL", "{h}:every"))
    tap.check(3200000 < left <= 3240000, "and is recorded for 54 minutes",
              left)
    tap.equal(server.cli("EXISTS", "h"), b"0\n", "while the lock is free")
    got = code()
    tap.equal((got.returncode, got.stderr, got.stdout), (75, b"", b""),
              "the second one is not due, in silence")
    tap.equal(code("-E", "0").returncode, 0, "-E replaces the code")
    got = code("-v")
    tap.check(b"'h' is not due; CMD is not started: " in got.stderr and
              b"ran it last, and --every 1h skips runs for 54m" in got.stderr
              and b"the next run may start in 5" in got.stderr,
              "-v says it, and when it is due", got.stderr)
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
    tap.equal(code(command=("/nowhere",)).returncode, 127,
              "what could not be started")
    tap.equal(server.cli("EXISTS", "{h}:every"), b"0\n", "does not count")
    tap.equal(nx(nxlock, "run", "{h}x", "--every", "1h", "-u",
                 server.url + "?max_ttl_ms=40000", "--prefix", "p:", "--",
                 "true").returncode, 0,
              "a name with a tag, a prefix and a short max_ttl_ms")
    tap.equal(server.cli("EXISTS", "p:{h}x:every"), b"1\n",
              "has its key in the same way")
    for period, skipped in (("1d", b"21.6h"), ("24d", b"21.6d")):
        line = ("run", "r" + period, "--every", period, "-v", "--", "true")
        nx(nxlock, *line)
        got = nx(nxlock, *line)
        tap.check(got.returncode == 75 and
                  b"skips runs for " + skipped + b";" in got.stderr,
                  f"--every {period} says how long it skips runs", got.stderr)
    tap.equal(nx(nxlock, "run", "longest", "--every", "26.6d", "--",
                 "true").returncode, 0, "the longest period")
    for period in ("26.7d", "49d"):
        got = nx(nxlock, "run", "month", "--every", period, "--", "true")
        tap.check(got.returncode == 64 and b"26.6d" in got.stderr and
                  f"--every {period} is too long".encode() in got.stderr,
                  f"--every {period} is refused with the limit", got.stderr)
    nx(nxlock, "run", "shorter", "--every", "2h", "--", "true")
    got = nx(nxlock, "run", "shorter", "--every", "5s", "-v", "--", "true")
    tap.check(got.returncode == 75 and b"ago" not in got.stderr and
              b"used a longer period than --every 5s; the next run may start "
              b"in 107m" in got.stderr,
              "a shorter period than that of the last run", got.stderr)
    got = nx(nxlock, "run", "--help").stdout
    tap.check(re.search(rb"--every DUR .*0\.9 DUR", got),
              "--help says for how long a run counts", got)


def rights(nxlock, tap, server):
    server.cli("ACL", "SETUSER", "u", "on", ">Zqx7", "~job:*", "+@all")
    os.environ["NXLOCK_PASSWORD"] = "Zqx7"
    line = ("run", "job:9", "--every", "1h", "-u", server.url + "?user=u",
            "--", "true")
    got = nx(nxlock, *line)
    tap.equal(got.returncode, 77, "a user without rights for the record")
    tap.check(b"key '{job:9}:every'" in got.stderr and
              b"'nxlock doctor job:9'" in got.stderr,
              "is told the key, and what finds the remedy", got.stderr)
    server.cli("ACL", "SETUSER", "u", "~{job:*")
    tap.equal(nx(nxlock, *line).returncode, 0, "which does")
    server.cli("ACL", "SETUSER", "u", "~{job}x")
    got = nx(nxlock, line[0], "{job}x", *line[2:])
    tap.check(b"key '{job}x:every'" in got.stderr and
              b"nxlock doctor" in got.stderr,
              "and of a name with a tag", got.stderr)
    del os.environ["NXLOCK_PASSWORD"]


def as_documented(nxlock, tap, server):
    """The user of docs/acl.md is refused nothing, whatever becomes of a run."""
    with open(os.path.join(os.path.dirname(__file__), "../../docs/acl.md"),
              encoding="utf-8") as page:
        lines = re.findall("^    ACL SETUSER jobs (~.*)$", page.read(), re.M)
    # of run, and of run --every in addition
    rules = lines[0].split() + lines[1].split()
    server.cli("ACL", "SETUSER", "locks", "reset", "on", ">Zqx7",
               *rules)
    url = server.url.replace("//", "//locks:Zqx7@")
    for name in "backup:7", "backup:{a}b":
        key = name + ":every" if "{" in name else "{" + name + "}:every"
        for code, command, recorded in (
                (127, "/nowhere", 0), (126, server.folder, 0), (1, "false", 1),
                (75, "true", 1)):
            server.cli("ACL", "LOG", "RESET")
            got = nx(nxlock, "run", name, "--every", "1h", "-u", url, "--",
                     command)
            tap.equal((got.returncode, server.cli("ACL", "LOG"),
                       server.cli("EXISTS", key)),
                      (code, b"\n", b"%d\n" % recorded),
                      f"{name}, {code}: ACL LOG is empty, the record is "
                      f"{'there' if recorded else 'gone'}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    nxlock, tap = os.path.abspath(sys.argv[1]), Tap()
    with Server() as server:
        clean_environment(server)
        by_hand(nxlock, tap, server)
        rights(nxlock, tap, server)
        as_documented(nxlock, tap, server)
        periods(nxlock, tap)
        return tap.done()


if __name__ == "__main__":
    sys.exit(main())
