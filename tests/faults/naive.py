# SPDX-License-Identifier: MIT
"""A program that locks as most do, to show the harm that this library is to
prevent: a thread that asks the first Sentinel that answers which server is the
primary, connects to it, and stays there until the connection fails. It takes
the lock with SET NX PX, extends it every third of the lease if it renews, and
deletes its key if it is still its own."""

import socket
import threading
import time

import stage
from record import Hold
from resp import Link, Refused
from trial import KINDS, TIMEOUT_MS

EXTEND = ("if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
          "return redis.call('PEXPIRE', KEYS[1], ARGV[2])")
RELEASE = ("if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
           "return redis.call('DEL', KEYS[1])")
POLL_S = 0.03


class Naive(threading.Thread):
    """In place of trial.Contender."""

    def __init__(self, trial, kind, number, dice):
        super().__init__(daemon=True)
        self.trial, self.kind, self.dice = trial, kind, dice
        self.source = trial.source(number)
        self.name = f"{kind} {number}"
        self.found, self.link, self.over = [], None, False
        self.start()

    def holds(self):
        return self.found

    def hold(self):
        return self.found[-1] if self.found and self.found[-1].open else None

    def turn(self):
        pass

    def end(self):
        self.over = True

    def close(self):
        self.join()
        self.leave()

    def dial(self, port):
        return Link(socket.create_connection(
            ("127.0.0.1", port), TIMEOUT_MS / 1000, (self.source, 0)))

    def leave(self):
        if self.link:
            self.link.close()
        self.link = None

    def connect(self):
        for port in self.trial.sentinel_ports():
            try:
                sentinel = self.dial(port)
                try:
                    named = sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                                         self.trial.SERVICE)
                finally:
                    sentinel.close()
                self.link = self.dial(int(named[1]))
                return
            except (OSError, Refused):
                pass

    def ask(self, *words):
        """The reply, or None if there is none."""
        try:
            if not self.link:
                self.connect()
            return self.link.ask(*words) if self.link else None
        except (OSError, Refused):
            self.leave()
            return None

    def run(self):
        since = time.monotonic()
        while not self.over:
            if (KINDS[self.kind].replaced and
                    time.monotonic() - since > self.trial.life_s):
                self.leave()
                since = time.monotonic()
            token = f"{self.name}/{self.dice.randrange(1 << 60)}"
            asked = stage.now_ns()
            if self.ask("SET", self.kind, token, "NX", "PX",
                        self.trial.event.ttl_ms) == "OK":
                self.keep(token, asked)
            time.sleep(POLL_S)

    def keep(self, token, asked):
        ttl_ms = self.trial.event.ttl_ms
        hold = Hold(self.name, asked, stage.now_ns(),
                    asked + ttl_ms * 10**6, 0)
        self.found.append(hold)
        end = hold.begin + self.trial.hold_of(KINDS[self.kind]) * 10**6
        extend = asked + ttl_ms * 10**6 // 3
        while not self.over and stage.now_ns() < min(end, hold.end):
            time.sleep(0.005)
            asked = stage.now_ns()
            if KINDS[self.kind].renews and asked > extend:
                said = self.ask("EVAL", EXTEND, 1, self.kind, token, ttl_ms)
                if said == 0:
                    break
                extend = asked + ttl_ms * 10**6 // 3
                hold.end = asked + ttl_ms * 10**6 if said else hold.end
        hold.ends(stage.now_ns())
        self.ask("EVAL", RELEASE, 1, self.kind, token)
