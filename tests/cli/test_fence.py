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

sys.dont_write_bytecode = True  # the tree stays as it is

from rig import Aged, Server, Tap, clean_environment, nx

PRINTS = ("--", "sh", "-c", 'echo "${NXLOCK_FENCE-none}"')
NEEDS = ("-c", ': "${NXLOCK_FENCE:?}"; echo started')
REPORT = b"has no fencing token, so NXLOCK_FENCE is not set: "


class Room:
    def __init__(self, nxlock, tap):
        self.nxlock, self.tap = nxlock, tap

    def nx(self, *words):
        """In the environment of another run, whose number must not leak."""
        return nx(self.nxlock, *words,
                  env={**os.environ, "NXLOCK_FENCE": "outer"})

    def with_number(self, what, *server):
        tap = self.tap
        numbers = []
        for _ in range(2):
            got = self.nx("run", "k", *server, *PRINTS)
            tap.equal((got.returncode, got.stderr), (0, b""),
                      f"run, {what}: nothing is said")
            numbers.append(int(got.stdout))
        tap.check(0 < numbers[0] < numbers[1], "the numbers grow", numbers)
        got = self.nx("run", "k", *server, *NEEDS)
        tap.equal((got.returncode, got.stdout), (0, b"started\n"),
                  "a script that needs the number runs")

    def without_number(self, what, why, *server):
        tap = self.tap
        for more in (), ("-n",), ("-w", "5s"), ("-v",):
            got = self.nx("run", "k", *more, *server, *PRINTS)
            tap.equal((got.returncode, got.stdout), (0, b"none\n"),
                      f"run {' '.join(more)}, {what}: CMD gets none")
            tap.check(got.stderr.count(REPORT) == 1 and why in got.stderr and
                      (more == ("-v",) or got.stderr.count(b"\n") == 1),
                      "which is reported once, with the reason", got.stderr)
        got = self.nx("run", "k", *server, *NEEDS)
        tap.check(got.returncode != 0 and got.stdout == b"",
                  "a script that needs the number does not run", got)
        got = self.nx("run", "k", "--log", "json", *server, *PRINTS)
        events = [json.loads(line) for line in got.stderr.splitlines()
                  if line.startswith(b"{")]
        found = [event for event in events if event["event"] == "unfenced"]
        tap.check(len(found) == 1 and found[0]["priority"] == 4 and
                  why.decode() in found[0]["why"] and
                  not any("fence" in event for event in events),
                  "the log has it once, too", got.stderr)

    def acquires(self, what, *server):
        """acquire has no CMD, and draws no number."""
        tap = self.tap
        got = self.nx("acquire", "k", *server)
        tap.equal((got.returncode, got.stderr), (0, b""), f"acquire, {what}")
        token = got.stdout.decode().strip()
        tap.equal(self.nx("release", "k", token, *server).returncode, 0,
                  "and it can be released")

    def once(self, what, code, *server):
        """once needs the number, so CMD has it or is not run."""
        got = self.nx("once", "work:" + what, "-n", *server, *PRINTS)
        good = got.returncode == code and (
            got.stdout == b"" if code else got.stdout.strip().isdigit())
        self.tap.check(good and (got.stderr != b"") == (code != 0),
                       f"once, {what}: {code or 'a number'}", got)

    def inside(self, server):
        """A lock without a number inside of one that has it."""
        got = self.nx("run", "outer", *server, "--", self.nxlock, "run", "t",
                      "-u", os.environ["NXLOCK_URL"] + "?scheme=timestamp",
                      *PRINTS)
        self.tap.equal((got.returncode, got.stdout), (0, b"none\n"),
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
        held = nx(self.nxlock, "acquire", "k").stdout.decode().strip()
        got = self.nx("run", "k", "-n", *guest, *PRINTS)
        self.tap.equal((got.returncode, REPORT in got.stderr), (75, False),
                       "busy: the number is not mentioned")
        nx(self.nxlock, "release", "k", held)
        for code, reported in (0, True), (75, False):
            got = self.nx("run", "k", "--every", "1h", *guest, *PRINTS)
            self.tap.equal((got.returncode, REPORT in got.stderr),
                           (code, reported),
                           "not due: neither" if code else "--every")


def make_guest(server):
    """Who may lock k, and not draw a number for it."""
    server.cli("ACL", "SETUSER", "guest", "reset", "on", ">Zqx7", "~k",
               "~{k}:every", "~work:*", "+@all")
    return server.url.replace("//", "//guest:Zqx7@")


def quorum(*urls):
    return [word for url in urls
            for word in ("-u", url + "?guard_restarts=off")]


def main():
    nxlock, aged = sys.argv[1:]
    tap = Tap()
    with Server() as server, Server() as second, Server() as third:
        clean_environment(server)
        room = Room(nxlock, tap)
        three = (server, second, third)
        urls = [one.url for one in three]
        stamps = ("-u", server.url + "?scheme=timestamp")

        room.with_number("a server")
        room.acquires("a server")
        room.once("a server", 0)
        room.with_number("three servers", *quorum(*urls))
        room.acquires("three servers", *quorum(*urls))
        room.once("three servers", 69, *quorum(*urls))
        if tap.may_use_acl(server, "no permission for the counter"):
            room.refused(*three)
        room.without_number("timestamps", b"scheme=timestamp", *stamps)
        room.acquires("timestamps", *stamps)
        for profile in "2.2", "2.4":
            with Aged(aged, profile, server) as old:
                room.without_number(f"Redis {profile}", b"need scripts", "-u",
                                    old.url)
                room.acquires(f"Redis {profile}", "-u", old.url)
                room.once(f"Redis {profile}", 69, "-u", old.url)
        with Aged(aged, "2.6", server) as old:
            room.with_number("Redis 2.6", "-u", old.url)
            room.acquires("Redis 2.6", "-u", old.url)
            room.once("Redis 2.6", 69, "-u", old.url)
        room.inside(())
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
