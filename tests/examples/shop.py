# SPDX-License-Identifier: MIT
"""A shop, a provider, and workers that are killed and stopped at random.

Keeps: what is told of a run is read from the shop's and the provider's own
books after all processes of the run have ended.
"""

import random
import signal
import sqlite3
import time

from stage import await_

WORKERS = 8
TTL_MS = 600
DELAY_MS = 150     # of the provider, at most
FAULT_S = 0.12     # between two faults, on average
STOP_S = (0.3, 1.8)  # a stop may be shorter than the lease, too
PATIENCE_S = 400   # for all orders

# What the row does not tell: a later claim that was moved back.
WATCH = """
    CREATE TABLE backwards (order_id text);
    CREATE TRIGGER watch AFTER UPDATE ON charge WHEN new.fence < old.fence
    BEGIN INSERT INTO backwards VALUES (new.order_id); END;
"""


def amount(number):
    """Some are declined: see provider.py."""
    return 1013 if number % 50 == 7 else 1000 + number % 10


class Outcome:
    """What the books say."""

    def __init__(self, folder, orders):
        shop = sqlite3.connect(folder / "shop.db")
        provider = sqlite3.connect(folder / "provider.db")
        rows = dict(
            (row[0], row[1:]) for row in shop.execute(
                "SELECT order_id, state, amount_minor, provider_ref, attempts"
                " FROM charge"))
        charges = {}
        for order, reference, paid in provider.execute(
                "SELECT order_id, reference, amount FROM charges"):
            charges.setdefault(order, []).append((f"ch_{reference}", paid))
        self.double = sum(len(made) > 1 for made in charges.values())
        self.lost = self.wrong = 0
        for number in range(orders):
            name = f"{number:06d}"
            state, asked, reference, _ = rows.get(name, (None,) * 4)
            made = charges.get(name, [])
            declined = amount(number) == 1013
            self.lost += state != ("declined" if declined else "paid") or \
                bool(made) == declined
            self.wrong += asked != amount(number) or \
                (not declined and (reference, asked) not in made)
        self.again = sum(row[3] > 1 for row in rows.values())
        self.backwards = shop.execute(
            "SELECT count(*) FROM backwards").fetchone()[0]
        said = (folder / "said.txt").read_text("utf-8")
        self.stale = said.count("stale: refused")
        self.late = said.count("the lock was lost before the charge")
        shop.close()
        provider.close()
        self.killed = self.stopped = 0
        self.seconds = 0.0
        self.finished = False

    def __str__(self):
        return (f"{self.double} charged twice or more, {self.lost} lost, "
                f"{self.wrong} with another amount or reference; "
                f"{self.killed} killed, {self.stopped} stopped, "
                f"{self.again} orders begun again, {self.stale} stale "
                f"statements refused, {self.late} lost before the charge, "
                f"{self.backwards} moved backwards; {self.seconds:.1f} s")


class Crowd:
    """The workers; who was killed is replaced."""

    def __init__(self, stage, worker, folder, chance):
        self.stage, self.chance = stage, chance
        self.words = [worker, folder / "shop.db", folder / "socket", TTL_MS]
        self.said = open(folder / "said.txt", "ab")
        self.codes, self.asleep = [], {}
        self.killed = self.stopped = 0
        self.workers = [self.start() for _ in range(WORKERS)]

    def start(self):
        return self.stage.start(*self.words, stderr=self.said)

    def fault(self):
        awake = [worker for worker in self.workers
                 if worker.poll() is None and worker not in self.asleep]
        if not awake:
            return
        victim = self.chance.choice(awake)
        if self.chance.random() < 0.5:
            victim.kill()
            victim.wait()
            self.workers.remove(victim)
            self.workers.append(self.start())
            self.killed += 1
        else:
            victim.send_signal(signal.SIGSTOP)
            self.asleep[victim] = time.monotonic() + \
                self.chance.uniform(*STOP_S)
            self.stopped += 1

    def wake(self):
        now = time.monotonic()
        for victim in [who for who, at in self.asleep.items() if at <= now]:
            victim.send_signal(signal.SIGCONT)
            del self.asleep[victim]

    def run(self, limit):
        """True: all have ended of themselves, with 0."""
        next_fault = time.monotonic()
        while any(worker.poll() is None for worker in self.workers):
            if time.monotonic() > limit:
                break
            self.wake()
            if time.monotonic() >= next_fault:
                self.fault()
                next_fault += self.chance.expovariate(1 / FAULT_S)
            time.sleep(0.005)
        finished = all(worker.poll() == 0 for worker in self.workers)
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.said.close()
        return finished


def open_shop(stage, folder, orders):
    """With so many new orders; and the provider, which has to be killed."""
    shop = sqlite3.connect(folder / "shop.db")
    shop.executescript(
        (stage.examples / "payment/schema.sql").read_text("utf-8") + WATCH)
    with shop:
        shop.executemany("INSERT INTO orders VALUES (?, ?, 'EUR')", [
            (f"{number:06d}", amount(number)) for number in range(orders)])
    shop.close()
    provider = stage.start(
        stage.examples / "payment/provider.py", folder / "socket",
        folder / "provider.db", "--delay-ms", DELAY_MS)
    await_((folder / "socket").exists)
    return provider


def play(stage, worker, folder, orders, seed):
    """All orders, from new to settled."""
    began = time.monotonic()
    provider = open_shop(stage, folder, orders)
    try:
        crowd = Crowd(stage, worker, folder, random.Random(seed))
        finished = crowd.run(began + PATIENCE_S)
    finally:
        provider.kill()
        provider.wait()
    outcome = Outcome(folder, orders)
    outcome.killed, outcome.stopped = crowd.killed, crowd.stopped
    outcome.seconds = time.monotonic() - began
    outcome.finished = finished
    return outcome
