#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_fence.py NXLOCK AGED: the fencing token that CMD gets, or does not get.

A server, or a quorum, that gives a number; and one that cannot, because of its
version, its permissions or the scheme of timestamps: each for run, acquire and
once. Invariant: NXLOCK_FENCE is a number of this lock or is not set, and run
reports that it is not set, once.
"""

import json
import os
import sys

from rig import Aged, Cases, Server, nx, play

PRINTS = ("--", "sh", "-c", 'echo "${NXLOCK_FENCE-none}"')
NEEDS = ("-c", ': "${NXLOCK_FENCE:?}"; echo started')
REPORT = b"has no fencing token, so NXLOCK_FENCE is not set: "


def make_guest(server):
    """Who may lock k, and not draw a number for it."""
    server.cli("ACL", "SETUSER", "guest", "reset", "on", ">Zqx7", "~k",
               "~{k}:every", "~work:*", "+@all")
    return server.url.replace("//", "//guest:Zqx7@")


def quorum(*urls):
    return [word for url in urls
            for word in ("-u", url + "?guard_restarts=off")]


class Room(Cases):
    def nx(self, *words):
        """In the environment of another run, whose number must not leak."""
        return nx(self.program, *words,
                  env={**os.environ, "NXLOCK_FENCE": "outer"})

    def with_number(self, what, *server):
        numbers = []
        for _ in range(2):
            got = self.nx("run", "k", *server, *PRINTS)
            self.equal((got.returncode, got.stderr), (0, b""),
                       f"run, {what}: nothing is said")
            numbers.append(int(got.stdout))
        self.check(0 < numbers[0] < numbers[1], "the numbers grow", numbers)
        got = self.nx("run", "k", *server, *NEEDS)
        self.equal((got.returncode, got.stdout), (0, b"started\n"),
                   "a script that needs the number runs")

    def without_number(self, what, why, *server):
        for more in (), ("-n",), ("-w", "5s"), ("-v",):
            got = self.nx("run", "k", *more, *server, *PRINTS)
            self.equal((got.returncode, got.stdout), (0, b"none\n"),
                       f"run {' '.join(more)}, {what}: CMD gets none")
            self.check(got.stderr.count(REPORT) == 1 and why in got.stderr and
                       (more == ("-v",) or got.stderr.count(b"\n") == 1),
                       "which is reported once, with the reason", got.stderr)
        got = self.nx("run", "k", *server, *NEEDS)
        self.check(got.returncode != 0 and got.stdout == b"",
                   "a script that needs the number does not run", got)
        got = self.nx("run", "k", "--log", "json", *server, *PRINTS)
        events = [json.loads(line) for line in got.stderr.splitlines()
                  if line.startswith(b"{")]
        found = [event for event in events if event["event"] == "unfenced"]
        self.check(len(found) == 1 and found[0]["priority"] == 4 and
                   why.decode() in found[0]["why"] and
                   not any("fence" in event for event in events),
                   "the log has it once, too", got.stderr)

    def acquires(self, what, *server):
        """acquire has no CMD, and draws no number."""
        got = self.nx("acquire", "k", *server)
        self.equal((got.returncode, got.stderr), (0, b""), f"acquire, {what}")
        token = got.stdout.decode().strip()
        self.equal(self.nx("release", "k", token, *server).returncode, 0,
                   "and it can be released")

    def once(self, what, code, *server):
        """once needs the number, so CMD has it or is not run."""
        got = self.nx("once", "work:" + what, "-n", *server, *PRINTS)
        good = got.returncode == code and (
            got.stdout == b"" if code else got.stdout.strip().isdigit())
        self.check(good and (got.stderr != b"") == (code != 0),
                   f"once, {what}: {code or 'a number'}", got)

    def inside(self, server):
        """A lock without a number inside of one that has it."""
        got = self.nx("run", "outer", *server, "--", self.program, "run", "t",
                      "-u", os.environ["NXLOCK_URL"] + "?scheme=timestamp",
                      *PRINTS)
        self.equal((got.returncode, got.stdout), (0, b"none\n"),
                   "the number of another run is not passed on")

    def refused(self, *servers):
        """Users who may lock k, and not draw a number for it."""
        urls = [one.url for one in servers]
        guests = [make_guest(one) for one in servers]
        self.with_number("three servers, one refuses a number",
                         *quorum(*urls[:2], guests[2]))
        self.without_number("no permission for the counter", b"NOPERM",
                            "-u", guests[0])
        self.acquires("no permission for the counter", "-u", guests[0])
        self.once("no permission for the counter", 77, "-u", guests[0])
        mostly = quorum(urls[0], *guests[1:])
        self.without_number("three servers, two refuse a number", b"NOPERM",
                            *mostly)
        self.acquires("three servers, two refuse a number", *mostly)
        self.not_started(servers[0])

    def not_started(self, server):
        """Nothing is reported of a number that nobody could miss."""
        guest = ("-u", server.url.replace("//", "//guest:Zqx7@"))
        held = nx(self.program, "acquire", "k").stdout.decode().strip()
        got = self.nx("run", "k", "-n", *guest, *PRINTS)
        self.equal((got.returncode, REPORT in got.stderr), (75, False),
                   "busy: the number is not mentioned")
        nx(self.program, "release", "k", held)
        for code, reported in (0, True), (75, False):
            got = self.nx("run", "k", "--every", "1h", *guest, *PRINTS)
            self.equal((got.returncode, REPORT in got.stderr),
                       (code, reported),
                       "not due: neither" if code else "--every")

    def all(self):
        with Server() as second, Server() as third:
            self.on_servers(self.server, second, third)

    def on_servers(self, *three):
        urls = [one.url for one in three]
        stamps = ("-u", urls[0] + "?scheme=timestamp")
        for what, server, code in (
                ("a server", (), 0), ("three servers", quorum(*urls), 69)):
            self.with_number(what, *server)
            self.acquires(what, *server)
            self.once(what, code, *server)
        if self.may_use_acl(self.server, "no permission for the counter"):
            self.refused(*three)
        self.without_number("timestamps", b"scheme=timestamp", *stamps)
        self.acquires("timestamps", *stamps)
        for profile in "2.2", "2.4", "2.6":
            with Aged(self.aged, profile, self.server) as old:
                what, server = f"Redis {profile}", ("-u", old.url)
                if profile == "2.6":
                    self.with_number(what, *server)
                else:
                    self.without_number(what, b"need scripts", *server)
                self.acquires(what, *server)
                self.once(what, 69, *server)
        self.inside(())


if __name__ == "__main__":
    sys.exit(play(Room, Room.all, more=["aged"]))
