# SPDX-License-Identifier: MIT
"""nxlock-once-failover: workers that charge keys once (nxlock-once-worker) over
a proxy that leads to the primary of three real servers. One replica falls
behind, then the other one, and then the primary is killed, or two of the three
are. Of the replicas that are left the one that has most takes over, and the
workers go on there.

gone: keys whose result a worker was told to be recorded, and which the new
primary does not know as done. With enough wait_replicas none may be gone, and
none be charged twice by workers that were told of no doubt. With one less,
three quarters of the runs must lose some: else the cell shows nothing. A begin
may find a result that its worker was not told to be recorded: if the new
primary does not know it as done, it is counted apart, because it is in doubt
there, and not done again.

Everything random is drawn from the seed, the number of servers that die and the
number of the run: the schedule is the same for each wait_replicas."""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

import once
import stage

# How many servers die, and wait_replicas; whether results must be kept.
Cell = collections.namedtuple("Cell", "die wait keeps")
CELLS = [Cell(1, 0, False), Cell(1, 1, True), Cell(2, 1, False),
         Cell(2, 2, True)]
KEYS = 100000  # more than are charged
WORKERS = 8
ONE_IN = 2000  # steps of a worker that kill or stop it
DONE, TOLD = 1, 4  # FLAG_DONE, FLAG_TOLD of once_board.h
JOBS = 2  # cells at a time
GOOD_S, BEHIND_S, REST_S = 0.8, (0.2, 0.4), 1.5
SOME, SOME_S = 20, 20  # results that are told in a part, and in how long


class Run:
    """One failover, and what the workers of once.Crowd need."""

    words, workers, one_in = "halt", WORKERS, ONE_IN

    def __init__(self, trial, cell, seed):
        self.trial, self.cell = trial, cell
        self.dice = random.Random(seed)
        self.worker = trial.programs / "nxlock-once-worker"
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=trial.directory))
        self.board = self.directory / "board"
        self.ledger = self.directory / "ledger"
        self.url = f"{trial.front.url}?wait_replicas={cell.wait}"
        subprocess.run([self.worker, "new", self.board, str(KEYS)], check=True)
        sqlite3.connect(self.ledger).close()
        self.said = None

    def output(self, *arguments):
        return subprocess.run(
            [str(a) for a in (self.worker, *arguments)], check=True, text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE).stdout.splitlines()

    def told(self):
        """How many verdicts were accepted so far."""
        lines = [line.split() for line in self.output("count", self.board)]
        return next(int(n) for name, n in lines if name == "told")

    def records(self, server):
        """{key: (state, flags of the board)}, of the keys that were begun."""
        lines = self.output(f"unix://{server.socket}?timeout_ms=20000",
                            self.board, self.ledger, "look", once.TTL_MS, 1, 0)
        words = [line.split() for line in lines if line.startswith("key ")]
        return {int(w[1]): (w[2], int(w[7])) for w in words}

    def untold(self):
        """Keys that were charged more than once without a doubt."""
        with contextlib.closing(sqlite3.connect(self.ledger)) as ledger:
            return len(ledger.execute(
                "SELECT key FROM charges WHERE doubts = 0 GROUP BY key "
                "HAVING COUNT(*) > 1").fetchall())

    def play(self):
        """What was seen, by name."""
        trial, seen = self.trial, {}
        with open(self.directory / "said", "ab") as self.said:
            crowd = once.Crowd(self)
            crowd.start()
            self.work(crowd, GOOD_S, replicas=2)
            seen["told"] = self.told()
            first, second = self.dice.sample(trial.replicas(), 2)
            trial.hold(first)
            self.work(crowd, self.dice.uniform(*BEHIND_S), replicas=1)
            seen["behind"] = self.told() - seen["told"]
            trial.hold(second)
            self.work(crowd, self.dice.uniform(*BEHIND_S), replicas=0)
            trial.now().kill()
            if self.cell.die > 1:
                trial.servers[second].kill()
            # What a worker was told before, it notes now.
            self.rest(crowd, 0.1)
            trial.take_over()
            found = self.records(trial.now())
            before = self.told()
            trial.follow()
            trial.move()
            self.work(crowd, REST_S, replicas=2)
            seen["after"] = self.told() - before
            crowd.over = True
            crowd.join()
        if crowd.failure:
            raise crowd.failure
        told = [state for state, flags in found.values() if flags & TOLD]
        seen["told"] = len(told)
        seen["gone"] = len(told) - told.count("done")
        seen["read"] = sum(state != "done" and flags & (DONE | TOLD) == DONE
                           for state, flags in found.values())
        seen["untold"] = self.untold()
        shutil.rmtree(self.directory)
        return seen

    def work(self, crowd, seconds, replicas):
        """Lasts for so long, and until some more results were told, if so many
        replicas are enough for that: a busy machine takes longer."""
        wanted = self.told() + SOME if self.cell.wait <= replicas else 0
        end = time.monotonic() + SOME_S
        self.rest(crowd, seconds)
        while self.told() < wanted and time.monotonic() < end:
            self.rest(crowd, 0.05)

    @staticmethod
    def rest(crowd, seconds):
        crowd.join(seconds)
        if not crowd.is_alive():
            raise RuntimeError(f"the workers have ended: {crowd.failure}")


class Trial(stage.Group):
    """The link of a replica leads to the primary."""

    def __init__(self, directory, programs):
        self.directory = pathlib.Path(directory)
        self.programs = pathlib.Path(programs)
        super().__init__(directory, lambda server: stage.Proxy(
            self.programs / "nxlock-fault-proxy", server))

    def hold(self, i):
        """This replica gets nothing any more."""
        self.links[i].order("hold", "down", 1)

    def has_all(self, i):
        return self.servers[i].has_copied() and \
            self.offset(i) == self.offset(self.primary)

    def follow(self):
        """All others follow the primary, and have its data after a while; who
        was killed has nothing, and is started again."""
        for i in self.replicas():
            link = self.links[i]
            self.revive(i)
            link.order("hold", "down", 0)
            link.order("cut")
            link.order("lead", self.now().socket)
            self.servers[i].ask("REPLICAOF", "127.0.0.1", link.port)

    def gather(self):
        """All follow the primary, and there is no data."""
        self.now().ask("FLUSHALL")
        self.follow()
        for i in self.replicas():
            stage.await_true(lambda i=i: self.has_all(i), "a replica has all")
        self.move()

    def take_over(self):
        """By the one that has most, as Sentinel chooses."""
        alive = [i for i in self.replicas()
                 if self.servers[i].process.poll() is None]
        self.primary = max(alive, key=self.offset)
        self.now().ask("REPLICAOF", "NO", "ONE")


class Sum:
    """Of all runs of a cell."""

    def __init__(self, cell):
        self.cell = cell
        self.runs, self.losing = 0, 0
        self.seen = dict.fromkeys(
            ("told", "behind", "gone", "read", "after", "untold"), 0)

    def add(self, seen):
        self.runs += 1
        self.losing += seen["gone"] > 0
        for name in self.seen:
            self.seen[name] += seen[name]

    def complaints(self):
        cell, seen = self.cell, self.seen
        if cell.keeps and seen["gone"]:
            yield f"HARM: {seen['gone']} results are gone"
        if cell.keeps and seen["untold"]:
            yield f"HARM: {seen['untold']} were charged twice, untold"
        if not seen["after"]:
            yield "nobody was told of a result after the failover"
        if not seen["told"] or (cell.wait < 2 and not seen["behind"]):
            yield "too few were told of a result to show anything"
        if not cell.keeps and self.losing < max(1, self.runs * 3 // 4):
            yield f"{self.losing} runs with results gone show nothing"

    def name(self):
        return (f"{self.cell.die} of 3 servers die, "
                f"wait_replicas={self.cell.wait}")

    def row(self):
        seen = self.seen
        return (f"| {self.cell.die} | {self.cell.wait} | {seen['told']} | "
                f"{seen['behind']} | {seen['gone']} | "
                f"{self.losing} of {self.runs} | {seen['read']} | "
                f"{seen['after']} | {seen['untold']} |")


def play(options, cell):
    total = Sum(cell)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(
            prefix="nxlock-once-", dir=memory) as directory:
        trial = Trial(directory, options.programs)
        try:
            for number in range(options.runs):
                trial.gather()
                seed = f"{options.seed}/{cell.die}/{number}"
                seen = Run(trial, cell, seed).play()
                total.add(seen)
                print(f"{total.name()}, run {number}: {seen}", flush=True)
        finally:
            trial.close()
    return total


HEAD = ("| servers that die | wait_replicas | told | of these while a replica "
        "was behind | gone | runs with some gone | found by a begin alone, and "
        "gone | told afterwards | charged twice, untold |\n|" + "---:|" * 9)


def arguments():
    parser = argparse.ArgumentParser(
        prog="nxlock-once-failover", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=20, help="of each cell")
    parser.add_argument("--seed", type=int, default=1,
                        help="draws other schedules (default 1)")
    parser.add_argument("--short", action="store_true",
                        help="one run of each cell")
    options = parser.parse_args()
    if options.short:
        options.runs = 1
    return options


def main():
    options = arguments()
    if stage.unplayed() is not None:
        return stage.unplayed()
    with stage.pool(JOBS) as pool:
        sums = pool.starmap(
            play, [(options, cell) for cell in CELLS], chunksize=1)
    return 0 if stage.tell(HEAD, sums) else 1


if __name__ == "__main__":
    sys.exit(main())
