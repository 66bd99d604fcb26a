# SPDX-License-Identifier: MIT
"""nxlock-once-faults: many keys, each to be charged once, and workers that are
killed and stopped at every step while they begin, charge and tell; the server
is stopped, killed and restarted, and replies are delayed and lost.

halt: none is charged twice, each one is done or in doubt, or not charged; what
is done was charged, and has the result of the charge. retry: again only where
the worker was told of a doubt. check: a worker in doubt asks the provider, and
none is charged twice. forgets: as halt, but the server keeps nothing over a
restart; expected are keys that are charged twice.

Ends with 1 when a mode is not as expected. The seed says which faults come, but
not how the machine schedules the processes: numbers differ, verdicts do not."""

import argparse
import contextlib
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import stage

TTL_MS = 500
AOF = ("--appendonly", "yes", "--appendfsync", "always")
# Of the keys that --keys asks for.
MODES = {"halt": 1.0, "retry": 0.5, "check": 0.5, "forgets": 0.2}
SHORT_KEYS = 300
WORKERS = 16  # at a time
STOP_S = (0.05, 1.2)  # shorter than a lease, and longer


class Wrong(Exception):
    """The run cannot go on."""


class Crowd(threading.Thread):
    """The workers. Who is killed is replaced, who is stopped goes on after a
    while; it ends when all have found all keys finished."""

    KILL_S = 0.4  # from outside, on average

    def __init__(self, run):
        super().__init__(daemon=True)
        self.run_, self.dice = run, random.Random(run.dice.random())
        self.asleep, self.failure = {}, None
        self.killed = self.outside = 0
        self.over = False

    def begin(self):
        run = self.run_
        return stage.start(
            [run.worker, run.url, run.board, run.ledger, run.words,
             TTL_MS, self.dice.getrandbits(63), run.one_in],
            stdin=subprocess.DEVNULL, stderr=run.said)

    def run(self):
        some = [self.begin() for _ in range(self.run_.workers)]
        strike = time.monotonic()
        try:
            while some and not self.over:
                some = [w for w in map(self.tend, some) if w]
                if some and time.monotonic() > strike:
                    self.strike(self.dice.choice(some))
                    strike += self.dice.expovariate(1 / self.KILL_S)
                time.sleep(0.004)
        except Wrong as why:
            self.failure = why
        for worker in some:
            worker.kill()
            worker.wait()

    def strike(self, worker):
        self.outside += 1
        worker.send_signal(self.dice.choice(
            [signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP]))

    @staticmethod
    def has_stopped(worker):
        try:
            return os.waitid(os.P_PID, worker.pid,
                             os.WSTOPPED | os.WNOHANG) is not None
        except ChildProcessError:
            return False  # it was killed since it was asked

    def tend(self, worker):
        """The same, the one that replaces it, or None if it has finished."""
        code = worker.poll()
        if code == 0:
            return None
        if code == -signal.SIGKILL:
            self.killed += 1
            self.asleep.pop(worker, None)
            return self.begin()
        if code is not None:
            raise Wrong(f"a worker ended with {code}")
        if worker not in self.asleep:
            if self.has_stopped(worker):
                self.asleep[worker] = time.monotonic() + \
                    self.dice.uniform(*STOP_S)
        elif time.monotonic() > self.asleep[worker]:
            del self.asleep[worker]
            worker.send_signal(signal.SIGCONT)
        return worker


class Run:
    """One mode: its server, its proxy, its workers, its provider."""

    PAUSE_S = (0.3, 2.5)  # between two faults of the server
    FORGETS = 12  # times, of a server that forgets, spread over the keys

    def __init__(self, mode, args, directory):
        self.mode, self.directory = mode, pathlib.Path(directory)
        self.keys = max(1, round(args.keys * MODES[mode]))
        self.workers, self.one_in = WORKERS, args.one_in
        self.dice = random.Random(f"{args.seed} {mode}")
        self.words = "halt" if mode == "forgets" else mode
        programs = pathlib.Path(args.programs)
        self.worker = programs / "nxlock-once-worker"
        self.board = self.directory / "board"
        self.ledger = self.directory / "ledger"
        self.errors = self.directory / "said"
        self.server = stage.Server(
            directory, "server", () if mode == "forgets" else AOF)
        self.proxy = stage.Proxy(programs / "nxlock-fault-proxy", self.server)
        self.url = self.proxy.url
        subprocess.run([self.worker, "new", self.board, str(self.keys)],
                       check=True)
        sqlite3.connect(self.ledger).close()
        self.faults = 0
        self.complaints = []

    # ------------------------------------------------------------ the faults

    def freeze(self):
        self.server.freeze()
        time.sleep(self.dice.uniform(*STOP_S))
        self.server.thaw()

    def restart(self):
        self.server.kill()
        time.sleep(self.dice.uniform(0, 0.3))
        self.server.start()
        self.server.ready()

    def lose_replies(self):
        """No reply is lost without those after it: TCP does not do that."""
        self.proxy.order("drop", "down", 1)
        time.sleep(self.dice.uniform(0.01, 0.4))
        self.proxy.order("refuse", "both", 1)
        self.proxy.order("cut")
        self.proxy.order("drop", "down", 0)
        self.proxy.order("refuse", "both", 0)

    def delay(self):
        for way in ("up", "down"):
            self.proxy.order("delay", way, self.dice.choice([0, 20, 120, 350]))
        time.sleep(self.dice.uniform(0.1, 0.6))
        for way in ("up", "down"):
            self.proxy.order("delay", way, 0)

    def cut(self):
        self.proxy.order("cut-after", self.dice.choice(["up", "down"]),
                         self.dice.randint(1, 4000))

    def strike(self):
        faults = [self.freeze, self.restart, self.lose_replies, self.delay,
                  self.cut]
        if self.mode == "forgets":
            faults = [self.restart]
        self.dice.choice(faults)()
        self.faults += 1

    def pause(self, crowd):
        """Until the next fault is due, or the workers have ended. A server
        forgets after a number of charges, however long they take: so it does
        while work is under way."""
        if self.mode != "forgets":
            crowd.join(self.dice.uniform(*self.PAUSE_S))
            return
        due = self.keys * (self.faults + 1) / (self.FORGETS + 1)
        while crowd.is_alive() and len(self.charges()) < due:
            crowd.join(0.005)

    # --------------------------------------------------------------- the run

    def play(self):
        limit = time.monotonic() + 60 + self.keys * 0.1
        with open(self.errors, "ab") as self.said:
            crowd = Crowd(self)
            crowd.start()
            while crowd.is_alive() and time.monotonic() < limit:
                self.pause(crowd)
                if crowd.is_alive():
                    self.strike()
            if crowd.is_alive():
                crowd.over = True
                crowd.join()
                self.complaints.append("the workers did not come to an end")
            if crowd.failure:
                self.complaints.append(f"HARM: {crowd.failure}")
            time.sleep(3 * TTL_MS / 1000)  # until the last lease is over
            seen = self.look()
        seen["killed"] = crowd.killed
        seen["faults"] = self.faults
        return seen

    def look(self):
        done = subprocess.run(
            [self.worker, f"unix://{self.server.socket}?timeout_ms=20000",
             self.board, self.ledger, "look", str(TTL_MS), "1", "0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self.said, text=True, check=False)
        records, seen = {}, {}
        if done.returncode != 0:
            self.complaints.append("the records could not be read")
            records = None
        for line in [] if records is None else done.stdout.splitlines():
            words = line.split()
            if words[0] == "key":
                records[int(words[1])] = (words[2], *map(int, words[3:]))
            else:
                seen[words[0]] = int(words[1])
        self.judge(records, seen)
        return seen

    def charges(self):
        """(fence, doubts, sum) of each charge, by key."""
        found = {}
        with contextlib.closing(sqlite3.connect(self.ledger)) as ledger:
            if not ledger.execute("SELECT 1 FROM sqlite_master").fetchone():
                return found  # no worker has opened it yet
            for key, *row in ledger.execute(
                    "SELECT key, doubts, sum FROM charges ORDER BY id"):
                found.setdefault(key, []).append(row)
        return found

    def judge(self, records, seen):
        charges = self.charges()
        left = {"charged": len(charges), "twice": 0, "untold": 0,
                "in_doubt": 0, "happened": 0, "noted": 0}
        for key in range(self.keys):
            state, _, _, late, told, _ = (records or {}).get(
                key, ("none", 0, 0, 0, 0, 0))
            made = charges.get(key, [])
            left["twice"] += len(made) > 1
            left["untold"] += sum(doubts == 0 for doubts, _ in made) > 1
            left["noted"] += late > 0
            if state in ("doubt", "begun"):
                left["in_doubt"] += 1
                left["happened"] += bool(made)
            if self.mode != "forgets" and records is not None:
                self.judge_key(key, state, told, made)
        seen.update(left)
        if self.mode in ("halt", "check") and left["twice"]:
            self.complaints.append(f"HARM: {left['twice']} were charged twice")
        if left["untold"] and self.mode == "retry":
            self.complaints.append(
                f"HARM: {left['untold']} were charged again without a doubt")
        if self.mode == "forgets" and not left["twice"]:
            self.complaints.append("no harm without a memory")
        elif self.mode != "forgets" and records is not None and \
                seen.get("wrong", 1):
            said = self.errors.read_text(errors="replace").splitlines()
            self.complaints += [
                f"HARM: {line}" for line in said[:20] or ["said nothing"]]

    def judge_key(self, key, state, told, made):
        """What is in doubt stays so, until a late FAILED says that nothing
        happened; by then each may have been found in doubt often enough."""
        fine = state == "done" or self.mode == "halt" and (
            state in ("doubt", "begun") or state == "failed" and not made)
        if not fine:
            self.complaints.append(
                f"HARM: key {key} is {state}, charged {len(made)} times")
        elif state == "done" and told not in (result for _, result in made):
            self.complaints.append(f"HARM: key {key} has another result")

    def close(self):
        self.proxy.close()
        self.server.kill()


# ----------------------------------------------------------------- the output

COLUMNS = {
    "killed": "workers killed", "stopped": "stopped",
    "faults": "faults of the server", "charged": "keys charged",
    "twice": "more than once", "untold": "of these untold",
    "in_doubt": "left in doubt", "happened": "of these charged",
    "doubt": "begins that were told", "tell_lost": "late verdicts refused",
}


def row(mode, run, seen):
    return f"| {mode} | {run.keys} | " + " | ".join(
        str(seen.get(name, "")) for name in COLUMNS) + " |"


def play(mode, args):
    """Prints what was seen; true: as expected."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="once", dir=memory) as directory:
        run = Run(mode, args, directory)
        try:
            seen = run.play()
        finally:
            run.close()
    print(row(mode, run, seen), flush=True)
    for what in run.complaints[:30]:
        print(f"{stage.told(what)} ({mode})", flush=True)
    return not run.complaints


def arguments():
    parser = argparse.ArgumentParser(
        prog="nxlock-once-faults", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", help=argparse.SUPPRESS)
    parser.add_argument("--keys", type=stage.number(1, 1000000), default=20000,
                        help="of halt; the others have fewer (default 20000)")
    parser.add_argument("--one-in", type=stage.number(1, 100000), default=50,
                        metavar="N", help="one of N steps of a worker kills or "
                        "stops it (default 50)")
    parser.add_argument("--seed", type=int, default=1,
                        help="draws other faults (default 1)")
    parser.add_argument("--short", action="store_true",
                        help=f"{SHORT_KEYS} keys, for a quick test")
    args = parser.parse_args()
    if args.short:
        args.keys = SHORT_KEYS
    return args


def main():
    args = arguments()
    if stage.unplayed() is not None:
        return stage.unplayed()
    print("| mode | keys | " + " | ".join(COLUMNS.values()) + " |")
    print("|---|---:" + "|---:" * len(COLUMNS) + "|", flush=True)
    fine = [play(mode, args) for mode in MODES]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
