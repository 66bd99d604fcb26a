#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""provider.py SOCKET LEDGER [--delay-ms N] [--ignore-keys]: plays a provider.

Keeps: a key is charged once; who sends it again gets the first answer again.
As in life the charge is made at once and the answer comes later, after N/2 to
N ms, when the worker may be dead. A request is a line "KEY ORDER AMOUNT
CURRENCY", its answer "paid REFERENCE", "declined" (an amount that ends with
13) or "refused REASON". LEDGER is a SQLite file with every charge. With
--ignore-keys each request is a charge, as at a provider that has no
idempotency keys.
"""

import argparse
import random
import socketserver
import sqlite3
import threading
import time


class Ledger:
    def __init__(self, path, ignore_keys):
        self.lock = threading.Lock()
        self.ignore_keys = ignore_keys
        self.rows = sqlite3.connect(path, check_same_thread=False)
        self.rows.execute(
            "CREATE TABLE IF NOT EXISTS charges (reference INTEGER PRIMARY KEY,"
            " key TEXT, order_id TEXT, amount INTEGER, currency TEXT)")
        self.rows.execute("CREATE INDEX IF NOT EXISTS k ON charges (key)")

    def charge(self, key, order, amount, currency):
        if amount.endswith("13"):
            return "declined"
        with self.lock, self.rows:
            seen = self.rows.execute(
                "SELECT reference, order_id, amount, currency FROM charges"
                " WHERE key = ?", (key,)).fetchone()
            if seen and not self.ignore_keys:
                same = seen[1:] == (order, int(amount), currency)
                return f"paid ch_{seen[0]}" if same else \
                    "refused the key was used for another request"
            made = self.rows.execute(
                "INSERT INTO charges (key, order_id, amount, currency)"
                " VALUES (?, ?, ?, ?)", (key, order, int(amount), currency))
            return f"paid ch_{made.lastrowid}"


class Request(socketserver.StreamRequestHandler):
    def handle(self):
        words = self.rfile.readline().decode().split()
        if len(words) != 4:
            return
        answer = self.server.ledger.charge(*words)
        time.sleep(random.uniform(0.5, 1) * self.server.delay_ms / 1000)
        try:
            self.wfile.write(answer.encode() + b"\n")
        except OSError:
            pass  # the client has gone


class Provider(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("socket")
    parser.add_argument("ledger")
    parser.add_argument("--delay-ms", type=int, default=200)
    parser.add_argument("--ignore-keys", action="store_true")
    options = parser.parse_args()
    ledger = Ledger(options.ledger, options.ignore_keys)
    with Provider(options.socket, Request) as provider:
        provider.ledger = ledger
        provider.delay_ms = options.delay_ms
        provider.serve_forever()


if __name__ == "__main__":
    main()
