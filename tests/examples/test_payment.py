#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_payment.py BUILD: the payment worker, killed and stopped at random.

As it stands no order is charged twice and none is lost. With belts taken off
in a copy of it there are doubles, so the faults do hit. NXLOCK_SEED=N chooses
the same faults again. NXLOCK_FULL=1: 3000 orders, not 300, and more copies.
"""

import contextlib
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from stage import (EXAMPLES, FULL, ROOT, Stage, Tap, Wrong, await_, lacking,
                   skip_all)

import shop

ORDERS = 3000 if FULL else 300

# A belt, and how to take it off: what stands in charge.c, and what instead.
NO_FENCE = [("    AND c.fence < excluded.fence\"", "\""),
            ("   AND fence = ?2\"", "   AND ?2 > 0\"")]
NEW_KEYS = [("snprintf(key, KEY_SIZE, \"charge-%s\", order->id)",
             "snprintf(key, KEY_SIZE, \"%s-%lld\", order->id, "
             "(long long)fence)"),
            ("SET fence = excluded.fence,",
             "SET fence = excluded.fence,"
             " provider_key = excluded.provider_key,")]


def without(stage, name, belts):
    """A worker that lacks these belts."""
    copy = stage.folder / name
    shutil.copytree(EXAMPLES, copy)
    file = copy / "payment/charge.c"
    text = file.read_text("utf-8")
    for old, new in belts:
        if text.count(old) != 1:
            raise Wrong(f"charge.c has {text.count(old)} times: {old}")
        text = text.replace(old, new)
    file.write_text(text, "utf-8")
    return stage.build("payment/worker", copy)


def orderings(stage, tap):
    """The statements by themselves."""
    test = stage.folder / "orderings"
    done = subprocess.run(
        ["sh", "-ec",
         f"cc -I '{EXAMPLES}/payment' '{ROOT}/tests/examples/orderings.c' "
         f"'{EXAMPLES}/payment/charge.c' -o '{test}' "
         "$(pkg-config --cflags --libs sqlite3) && "
         f"sqlite3 '{test}.db' < '{EXAMPLES}/payment/schema.sql' && "
         f"'{test}' '{test}.db'"],
        env=stage.env, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=120, check=False)
    tap.check(done.returncode == 0, "the statements refuse who comes late",
              done.stdout + done.stderr)


def rows(folder, book, question):
    with contextlib.closing(sqlite3.connect(folder / book)) as books:
        return books.execute(question).fetchone()[0]


def one_worker(stage, tap, worker):
    """Told to end, and without a server."""
    folder = stage.folder / "one"
    folder.mkdir()
    provider = shop.open_shop(stage, folder, 40)
    charged = "SELECT count(*) FROM charges"
    words = [worker, folder / "shop.db", folder / "socket"]
    with open(folder / "said.txt", "wb") as said:
        alone = subprocess.Popen(
            words, env={**stage.env, "NXLOCK_URL": "redis://127.0.0.1:1"},
            stdin=subprocess.DEVNULL, stderr=said)
        await_(lambda: (folder / "said.txt").stat().st_size > 0)
        alone.kill()
        alone.wait()
        tap.check("cannot connect" in (folder / "said.txt").read_text() and
                  rows(folder, "provider.db", charged) == 0,
                  "without a lock nobody pays")
        ending = stage.start(*words, stderr=said)
        await_(lambda: rows(folder, "provider.db", charged) > 2)
        ending.terminate()
        code = ending.wait(30)
    begun = rows(folder, "shop.db",
                 "SELECT count(*) FROM charge WHERE state = 'charging'")
    settled = rows(folder, "shop.db", "SELECT count(*) FROM charge")
    tap.check(code == 0 and begun == 0 and 2 < settled < 40,
              "on SIGTERM the order at hand is finished, and no more",
              f"code {code}, {begun} begun, {settled} settled")
    provider.kill()
    provider.wait()


def play(stage, tap, name, worker, seed, orders=ORDERS):
    # In memory: on a slow disk most of the time goes by in commits, and who is
    # stopped in one stops all.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        folder = pathlib.Path(folder)
        outcome = shop.play(stage, worker, folder, orders, seed)
        said = (folder / "said.txt").read_text("utf-8")
    print(f"# {name}: {orders} orders: {outcome}", flush=True)
    tap.check(outcome.finished, f"{name}: the workers come to an end",
              said[-2000:])
    tap.check(outcome.lost == 0, f"{name}: no order is lost", outcome)
    tap.check(outcome.again > 0, f"{name}: some were begun more than once",
              outcome)
    return outcome


def work(stage, tap, seed):
    orderings(stage, tap)
    worker = stage.build("payment/worker")
    one_worker(stage, tap, worker)
    outcome = play(stage, tap, "three belts", worker, seed)
    tap.check(outcome.double == 0, "none is charged twice", outcome)
    tap.check(outcome.wrong == 0, "each has its amount and its reference",
              outcome)
    tap.check(outcome.backwards == 0, "no claim is moved back", outcome)
    if FULL: # of few orders it may be that nobody comes late
        tap.check(outcome.stale > 0, "who came late was refused", outcome)

    name = "no fence, new keys"
    outcome = play(stage, tap, name,
                   without(stage, "bare", NO_FENCE + NEW_KEYS), seed,
                   ORDERS if FULL else ORDERS // 2)
    tap.check(outcome.double > 0, f"{name}: some are charged twice", outcome)
    if not FULL:
        return
    name = "a fence, new keys"
    outcome = play(stage, tap, name, without(stage, "keys", NEW_KEYS), seed,
                   ORDERS // 3)
    tap.check(outcome.double > 0, f"{name}: a fence does not help the provider",
              outcome)
    name = "no fence, one key"
    outcome = play(stage, tap, name, without(stage, "fence", NO_FENCE), seed,
                   ORDERS // 3)
    tap.check(outcome.double == 0, f"{name}: the provider sees to that",
              outcome)


def main(build):
    packages = lacking("sqlite3")
    if packages:
        skip_all("the payment worker needs " + " ".join(packages))
    tap = Tap()
    seed = int(os.environ.get("NXLOCK_SEED") or random.randrange(1 << 32))
    print(f"# NXLOCK_SEED={seed}")
    with Stage(build) as stage:
        try:
            work(stage, tap, seed)
        except Wrong as why:
            tap.check(False, "the examples compile", why)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
