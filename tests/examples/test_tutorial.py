#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_tutorial.py BUILD: the payment scripts of
docs/tutorial-payments.md.

A worker is killed after the charge and before the note, and the provider may
have forgotten the key by the time the next worker looks. Invariant: an order is
charged at most once, and an order that cannot be settled is left to a person.
The test takes the scripts and the table from the page, so it runs what a reader
would paste.
"""

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from stage import ROOT, Stage, Tap, Wrong, await_, skip_all

import blocks

PAGE = ROOT / "docs" / "tutorial-payments.md"
SCRIPTS = ("provider.sh", "pay.sh", "worker.sh")
KEPT_H = 24  # how long the provider keeps a key


class Shop:
    """The scripts in a folder of their own, with one open order."""

    def __init__(self, stage, order):
        text = PAGE.read_text("utf-8")
        self.stage, self.order = stage, str(order)
        self.folder = stage.folder / f"order-{order}"
        self.folder.mkdir()
        for block in blocks.parse(text):
            name = re.match(r"#!/bin/sh\n# ([\w.-]+): ", block.text)
            if name and name.group(1) in SCRIPTS:
                (self.folder / name.group(1)).write_text(block.text)
        table = re.search(r"CREATE TABLE orders \(.*?\);", text, re.S)
        if table is None:
            raise Wrong("the page has no CREATE TABLE orders")
        self.sql(table.group())
        self.sql(f"INSERT INTO orders (id, amount) VALUES ({order}, 100)")

    def sql(self, statement):
        path = self.folder / "shop.db"
        with contextlib.closing(sqlite3.connect(path)) as shop, shop:
            return shop.execute(statement).fetchall()

    def sh(self, *words, **env):
        """Runs a script to its end; returns its exit code and its output."""
        done = subprocess.run(
            ["sh", *words], cwd=self.folder, env={**self.stage.env, **env},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    def charges(self):
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "charges.txt").read_text().splitlines()
        return []

    def state(self):
        return self.sql("SELECT state FROM orders")[0][0]

    def die_after_the_charge(self):
        """A worker is killed while the provider's answer is on its way."""
        name = f"order:{self.order}"
        worker = subprocess.Popen(
            ["nxlock", "run", name, "--ttl", "30s", "--", "sh", "./pay.sh",
             self.order],
            cwd=self.folder, env={**self.stage.env, "SLOW": "60"},
            stdin=subprocess.DEVNULL)
        if not await_(self.charges):
            raise Wrong("the first worker does not charge")
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        subprocess.run(
            ["nxlock", "unlock", name, "--force", "--yes"],
            env=self.stage.env, stdout=subprocess.DEVNULL, check=True)

    def let_hours_pass(self, hours):
        """Makes all that is recorded that much older, here and there."""
        columns = [row[1] for row in self.sql("PRAGMA table_info(orders)")]
        if "first_at" in columns:
            self.sql(f"UPDATE orders SET first_at = first_at - {hours} * 3600")
        for key in (self.folder / "seen").iterdir():
            if hours >= KEPT_H:
                shutil.rmtree(key)
            else:
                then = time.time() - hours * 3600
                os.utime(key, (then, then))


def forgotten(stage, tap):
    shop = Shop(stage, 41)
    shop.die_after_the_charge()
    shop.let_hours_pass(KEPT_H + 1)
    code, said = shop.sh("worker.sh")
    tap.equal(shop.charges(), ["charged 100, key order-41"],
              "the provider has forgotten the key: the order is charged once")
    tap.equal(shop.state(), "review", "... and waits for a person")
    tap.check(code == 0 and "order 41" in said and "review" in said,
              "... and the worker says so, and goes on", f"{code}: {said}")
    code, said = shop.sh("pay.sh", "41")
    tap.check(code not in (0, 75, 79) and len(shop.charges()) == 1,
              "... and later attempts do not ask the provider either",
              f"{code}: {said}")


def remembered(stage, tap):
    shop = Shop(stage, 42)
    shop.die_after_the_charge()
    shop.let_hours_pass(19)
    code, said = shop.sh("worker.sh")
    tap.check(code == 0, "the provider still knows the key: the worker asks",
              said)
    tap.equal(shop.charges(), ["charged 100, key order-42"],
              "... and the order is charged once")
    tap.equal(shop.state(), "paid", "... and paid")


def provider_forgets(stage, tap):
    """The provider of the page keeps keys no longer than real ones do."""
    shop = Shop(stage, 43)
    shop.sh("provider.sh", "100", "order-43")
    then = time.time() - (KEPT_H + 1) * 3600
    os.utime(shop.folder / "seen" / "order-43", (then, then))
    shop.sh("provider.sh", "100", "order-43")
    tap.equal(len(shop.charges()), 2, "the provider forgets a key after a day")


def main(build):
    if shutil.which("sqlite3") is None:
        skip_all("the tutorial about payments needs sqlite3")
    tap = Tap()
    with Stage(build) as stage:
        os.environ["PATH"] = stage.env["PATH"]  # finds nxlock for Popen
        for scene in (forgotten, remembered, provider_forgets):
            try:
                scene(stage, tap)
            except Wrong as why:
                tap.check(False, scene.__name__, why)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
