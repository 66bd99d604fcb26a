# SPDX-License-Identifier: MIT
"""What failover.py and sentinel.py have in common: programs of several kinds
contend, each kind for a lock of its own, while an event befalls the primary.
Then it is judged, for each kind, whether two relied on one lock at a time, and
when the first was granted again. A cell is an event with the guard or without
it. The seed, the event and the number of the run decide everything random, so
the schedule is the same in both."""

import argparse
import collections
import os
import pathlib
import random
import re
import signal
import sqlite3
import statistics
import subprocess
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
LIFE_S = 0.2      # of one that is replaced, at least, once it asks
SHORT_LIFE_S = 0.6  # with --short: starting them is most of what it costs
TURN_S = 0.02     # between two looks at all contenders
AIM_S = 5         # until all kinds have been seen to hold it at a time
TIMEOUT_MS = 300  # of a request
NEVER_S = 99      # stands for a first grant that did not come
CLOSE_S = 60      # until a process that was told to end has ended


def late_s(options):
    """How much later a first grant may come: --short runs beside others."""
    return 10 if options.short else 0


class Process:
    """One process, and what it has written down."""

    def __init__(self, contender, name, seed):
        trial, kind = contender.trial, contender.kind
        of = KINDS[kind]
        self.record = Record(name, trial.directory / f"{name}.record")
        self.child = stage.start(
            [trial.programs / trial.program(),
             trial.url() + of.parameters, self.record.path,
             trial.directory / f"{kind}.db", trial.event.ttl_ms, TIMEOUT_MS,
             *trial.hold_arguments(of), seed, kind, *trial.more_arguments(of)],
            env={**os.environ, **trial.environment(contender.number)})

    def has_lived(self, seconds):
        """Has it asked for the lock for so long?"""
        begun = self.record.begun
        return begun and stage.now_ns() > begun + seconds * 1e9

    def close(self):
        """When it has ended: all that it has written down is read."""
        code = self.child.wait(CLOSE_S)
        if code not in (0, -signal.SIGTERM):
            raise RuntimeError(f"HARM: {self.record.who} ended with {code}")
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
        self.trial, self.kind, self.number = trial, kind, number
        self.name, self.dice = f"{kind} {number}", dice
        self.processes, self.ending = [], []
        self.begin()

    def begin(self):
        self.processes.append(Process(
            self, f"{self.name}.{len(self.processes)}",
            self.dice.randrange(1 << 30)))

    def holds(self):
        return [h for p in self.processes for h in p.record.holds]

    def hold(self):
        """The one that it has now, or None."""
        holds = self.processes[-1].record.holds
        return holds[-1] if holds and holds[-1].open else None

    def turn(self):
        process = self.processes[-1]
        process.record.read()
        self.ending = [p for p in self.ending if not p.close_ended()]
        if (KINDS[self.kind].replaced and not self.hold() and
                process.has_lived(self.trial.life_s)):
            self.end()
            self.begin()

    def end(self):
        self.processes[-1].child.terminate()
        self.ending.append(self.processes[-1])

    def close(self):
        for process in self.ending:
            process.close()


class Trial:
    """The servers and the contenders of a cell, and its runs. A subclass has
    prepare(), url(), first_grant() and rest_s()."""

    kinds = KINDS

    def __init__(self, directory, options, event, guard):
        self.directory = pathlib.Path(directory)
        self.programs = pathlib.Path(options.programs)
        self.event, self.guard = event, guard
        self.life_s = SHORT_LIFE_S if options.short else LIFE_S
        self.late_s = late_s(options)
        self.hold_ms = event.ttl_ms * 9 // 10
        self.contenders, self.began = [], 0
        for kind in self.kinds:
            with sqlite3.connect(self.directory / f"{kind}.db") as db:
                db.executescript(TABLES)
            db.close()

    def proxy(self, server):
        return stage.Proxy(self.programs / "nxlock-fault-proxy", server)

    def contender(self, kind, number, dice):
        return Contender(self, kind, number, dice)

    def program(self):
        return "nxlock-fault-contender"

    def hold_arguments(self, kind):
        """WRITE_MS, RENEW, ASK_MS and MAX_HOLD_MS of contender.c."""
        return self.hold_ms, kind.renews, 0, 0

    def more_arguments(self, _kind):
        return ()

    def environment(self, _number):
        """Of the contender of that number, beside what there is."""
        return {}

    def contend(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for contender in self.contenders:
                contender.turn()
            time.sleep(TURN_S)

    def contend_until(self, ns):
        self.contend((ns - stage.now_ns()) / 1e9)

    def aim(self):
        """Until each kind has a holder that stays for long enough."""
        end = time.monotonic() + AIM_S
        since = self.hold_ms / 1000 - self.event.left_s
        while time.monotonic() < end:
            self.contend(0.005)
            now = stage.now_ns()
            holds = [(c.kind, c.hold()) for c in self.contenders]
            if {kind for kind, h in holds
                    if h and now - h.begin < since * 1e9} == set(self.kinds):
                return
        self.text += ", not all held it"

    def begin(self):
        """The event begins."""
        self.began = stage.now_ns()

    def run(self, seed):
        """{kind: doubles}, {kind: (seconds until the first grant after the
        event began, the same after it was possible)}, how many grants there
        were from then on, text"""
        self.dice = random.Random(seed)
        self.text = ""
        self.prepare()
        self.contenders = [
            self.contender(kind, i, random.Random(f"{seed}/{kind}/{i}"))
            for i in range(PROCESSES) for kind in self.kinds]
        self.event.play(self)
        self.contend(self.rest_s())
        self.await_grants()
        self.end()
        doubles, first, grants = {}, {}, 0
        for kind in self.kinds:
            holds = self.holds_of(kind)
            doubles[kind] = self.count_doubles(kind, holds)
            first[kind] = self.first_grant(kind, holds)
            self.note_late(kind, first[kind][1])
            grants += sum(h.begin >= self.began + first[kind][0] * 1e9
                          for h in holds)
        self.contenders = []
        return doubles, first, grants, self.text

    def holds_of(self, kind):
        return [h for c in self.contenders if c.kind == kind
                for h in c.holds()]

    def await_grants(self):
        """With --short each kind may be granted it as late as that."""
        end = time.monotonic() + self.late_s
        while time.monotonic() < end and any(
                self.first_grant(kind, self.holds_of(kind))[0] >= NEVER_S
                for kind in self.kinds):
            self.contend(0.1)

    def note_late(self, kind, wait_s):
        """What explains a first grant that late, in self.text."""

    def end(self):
        for contender in self.contenders:
            contender.end()
        for contender in self.contenders:
            contender.close()

    def count_doubles(self, kind, holds):
        began = self.began
        found = overlaps(holds, stage.now_ns())
        for a, b in found[:3] if self.guard not in ("off", "naive") else []:
            self.text += "".join(
                f"\n    {kind}: {h.who} from {(h.begin - began) / 1e9:.3f}"
                f" to {(h.end - began) / 1e9:.3f} s, asked at "
                f"{(h.attempt - began) / 1e9:.3f}, number {h.fence}"
                for h in (a, b))
        return len(found)


class Sum:
    """What all runs of a cell have shown. A subclass has complaints()."""

    def __init__(self, rig, name, guard, options):
        self.event_name, self.event = name, rig.events[name]
        self.guard, self.options = guard, options
        self.kinds = rig.trial(guard).kinds
        self.doubled = dict.fromkeys(self.kinds, 0)
        self.any = 0
        self.first = {kind: [] for kind in self.kinds}
        self.after = {kind: [] for kind in self.kinds}  # it was possible
        self.grants = []

    def add(self, doubles, first, grants):
        self.grants.append(grants)
        self.any += any(doubles.values())
        for kind in self.kinds:
            self.doubled[kind] += doubles[kind] > 0
            self.first[kind].append(first[kind][0])
            self.after[kind].append(first[kind][1])

    def shown(self):
        """The times in the table, if any: with the guard from the event;
        without it, how late it was."""
        return self.first if self.guard == "on" else self.after

    def row(self):
        waits = self.shown()
        def seconds(wait):
            return "none" if wait > NEVER_S / 2 else f"{wait:.2f} s"
        cells = ["-" if kind not in self.kinds else
                 f"{self.doubled[kind]}" if not waits else
                 f"{self.doubled[kind]}; "
                 f"{seconds(statistics.median(waits[kind]))} "
                 f"({seconds(max(waits[kind]))})"
                 for kind in KINDS]
        any_of = f"{self.any} of {self.options.runs}"
        if not self.event.loses:
            any_of += ", loses none"
        return " | ".join(
            [f"| {self.event_name}", self.guard, any_of, *cells]) + " |"

    def name(self):
        return f"{self.event_name}, guard {self.guard}"


class Unplayed(Sum):
    """A cell that did not come to its end: no verdict on the lock."""

    def __init__(self, rig, name, guard, options, why):
        super().__init__(rig, name, guard, options)
        self.why = why

    def row(self):
        return f"| {self.event_name} | {self.guard} | {self.why} |"

    def complaints(self):
        yield self.why


# Of a rig: its name; what it is; its events; the trial of a guard; its sum;
# what the guard is in the cells of an event; the events of --short; what the
# table shows; and the oldest servers that it can be played with.
Rig = collections.namedtuple(
    "Rig", "name text events trial sum guards short shows oldest",
    defaults=(0,))


def play(rig, options, name, guard):
    """With --short, one that proves nothing is played again: on a busy machine
    servers may not get ready, and a failover may take longer than a lease. What
    was seen with the guard counts."""
    for _ in range(stage.SHORT_TRIES if options.short else 1):
        try:
            found = play_once(rig, options, name, guard)
        except RuntimeError as error:
            found = Unplayed(rig, name, guard, options, str(error))
        else:
            if guard == "on":
                break
        if stage.settled(list(found.complaints())):
            break
    return found


def play_once(rig, options, name, guard):
    found = rig.sum(rig, name, guard, options)
    with tempfile.TemporaryDirectory(prefix=f"{rig.name}-") as directory:
        trial = rig.trial(guard)(
            directory, options, rig.events[name], guard)
        try:
            for run in range(options.runs):
                doubles, first, grants, text = trial.run(
                    f"{options.seed}/{name}/{run}")
                found.add(doubles, first, grants)
                print(f"{found.name()}, run {run}: two holders, "
                      "first grant, after it was possible: " +
                      "; ".join(f"{kind} {doubles[kind]}, {at:.2f}, {late:.2f}"
                                for kind, (at, late) in first.items()) +
                      f", {grants} grants{text}", flush=True)
        finally:
            trial.close()
    return found


def head(rig, options):
    return (f"seed {options.seed}; {rig.shows}\n\n"
            f"| event | guard | two holders | {' | '.join(KINDS)} |\n"
            f"|{'---|' * (3 + len(KINDS))}")


def arguments(rig):
    parser = argparse.ArgumentParser(
        prog=rig.name, description=rig.text,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", help=argparse.SUPPRESS)
    parser.add_argument("--event", choices=rig.events, action="append",
                        help="this one (default: all; may be given again)")
    parser.add_argument("--runs", type=int, default=20, help="of each event")
    guards = {g: 0 for e in rig.events.values() for g in rig.guards(e)}
    parser.add_argument("--guard", choices=guards, action="append",
                        help="this one (default: all; may be given again)")
    parser.add_argument("--seed", type=int, default=1,
                        help="draws other schedules (default 1)")
    parser.add_argument("--jobs", type=int, default=2,
                        help="cells at a time; they sleep most of the time "
                        "(default 2)")
    parser.add_argument("--busy", type=int, default=0,
                        help="so many processes take all the time they get "
                        "(default 0)")
    parser.add_argument("--short", action="store_true",
                        help=f"{' and '.join(rig.short)} only, once with the "
                        "guard and once without; the first grant may be late")
    options = parser.parse_args()
    if options.short:
        options.event, options.guard = rig.short, ("on", "off")
        options.runs, options.jobs = 1, 2 * len(rig.short)
    return options


def version():
    """The first number of the server's."""
    text = subprocess.run([stage.servers.PROGRAM, "--version"],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    return int(re.search(r" v=(\d+)", text).group(1))


def keep_busy(processes):
    return [stage.start([sys.executable, "-c", "while True: pass"])
            for _ in range(processes)]


def main(rig):
    options = arguments(rig)
    if stage.unplayed() is not None:
        return stage.unplayed()
    if rig.oldest > version():
        print(f"the server is too old: {rig.name} needs {rig.oldest}.0",
              file=sys.stderr)
        return 77
    cells = [(rig, options, name, guard)
             for name in options.event or rig.events
             for guard in rig.guards(rig.events[name])
             if guard in (options.guard or [guard])]
    keep_busy(options.busy)  # until this process ends
    with stage.pool(options.jobs) as pool:
        sums = pool.starmap(play, cells, chunksize=1)
    return 0 if stage.tell(head(rig, options), sums) else 1
