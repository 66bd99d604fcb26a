#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_since.py NXLOCK: status says since when a lock is held, or that it
does not know.

It knows where the grant drew its fencing number from the server's clock. It
never takes another grant's number, or one that was not the time, for it.
"""

import datetime
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is

from rig import Server, Tap, await_, clean_environment, nx

UTC = datetime.timezone.utc


class Room:
    def __init__(self, nxlock, server):
        self.nxlock = nxlock
        self.server = server
        self.tap = Tap()

    def held(self, *words):
        """A lock that is held; the process, and when it was started. Of several
        servers this one may get the key with the first renewal only."""
        begin = time.time()
        process = subprocess.Popen(
            [self.nxlock, "run", *words, "--", "sleep", "60"],
            stdin=subprocess.DEVNULL)
        await_(lambda: self.server.cli("EXISTS", words[0]) == b"1\n")
        return process, begin

    def known(self, what, begin, name="k", *words):
        got = nx(self.nxlock, "status", name, "--json", *words)
        since = json.loads(got.stdout).get("held_since")
        at = since and datetime.datetime.strptime(
            since, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
        self.tap.check(at is not None and -1 <= at - begin < 10, what,
                       got.stdout + got.stderr)
        got = nx(self.nxlock, "status", name, *words)
        self.tap.check(at is not None and datetime.datetime.fromtimestamp(
            at, UTC).strftime("held since %Y-%m-%d %H:%M:%S UTC").encode()
                       in got.stdout, "for people, too", got.stdout)

    def unknown(self, what, why, name="k", *words):
        got = nx(self.nxlock, "status", name, "--json", *words)
        seen = json.loads(got.stdout)
        self.tap.check(
            seen["state"] == "held" and seen.get("held_since", 1) is None and
            why in seen.get("held_since_unknown", ""), f"unknown: {what}",
            got.stdout + got.stderr)
        got = nx(self.nxlock, "status", name, "-v", *words)
        self.tap.check(b"start time unknown: " in got.stdout and
                       b"since" not in got.stdout.splitlines()[0] and
                       why.encode() in got.stdout, "for people, too",
                       got.stdout)
        got = nx(self.nxlock, "status", name, *words)
        self.tap.check(b"unknown" not in got.stdout and
                       b"since" not in got.stdout,
                       "and not a word without -v", got.stdout)

    def end(self, process, name="k"):
        process.terminate()
        process.wait()
        await_(lambda: self.server.cli("EXISTS", name) == b"0\n")

    def one_server(self):
        cli = self.server.cli
        process, begin = self.held("k")
        self.known("a run that has just begun", begin)
        number = cli("GET", "{k}:f").strip().decode()
        cli("DEL", "{k}:f")
        self.unknown("its counter is gone", "counter")
        # As if the clock had been behind: not the time of the grant.
        later = str(int(number) + 3600 * 10**6)
        cli("SET", "{k}:f", later, "PX", "86400000")
        self.unknown("a number ahead of the clock", "clock")
        cli("SET", "{k}:f", str(int(number) - 3600 * 10**6), "PX", "86400000")
        self.unknown("a counter that is kept for 25 hours", "longer lease")
        cli("SET", "{k}:f", number)
        self.unknown("one without an end", "clock")
        cli("SET", "{k}:f", "nonsense", "PX", "86400000")
        self.unknown("none at all", "counter")
        cli("DEL", "{k}:f")
        self.end(process)
        process, begin = self.held("k", "--ttl", "600ms")
        time.sleep(1.5)
        self.known("one that was renewed", begin)
        self.end(process)
        process, begin = self.held("w2", "--ttl", "13h")
        self.unknown("a lease of 13 h keeps the counter longer",
                     "longer lease", "w2")
        self.known("known where max_ttl_ms says so", begin, "w2",
                   "--max-ttl-ms", str(13 * 3600 * 1000))
        self.end(process, "w2")
        process, begin = self.held("w2")
        self.unknown("a short lease after it", "longer lease", "w2")
        self.end(process, "w2")
        # The counter is fresh, but it is not this grant's.
        nx(self.nxlock, "acquire", "k")
        self.unknown("a grant without a number after one with it",
                     "without a fencing token")
        cli("DEL", "k")
        process, _ = self.held("k", "--no-fence")
        self.unknown("--no-fence", "without a fencing token")
        self.end(process)
        cli("SET", "k", "stranger", "PX", "60000")
        self.unknown("another program's", "another program")
        cli("DEL", "k")
        got = json.loads(nx(self.nxlock, "status", "k", "--json").stdout)
        self.tap.check("held_since" not in got, "a free lock has none", got)
        process, begin = self.held("{k}x")
        self.known("a name with a tag", begin, "{k}x")
        self.end(process, "{k}x")
        cli("ACL", "SETUSER", "u", "on", ">p", "~k", "+@all")
        process, _ = self.held("k")
        os.environ["NXLOCK_PASSWORD"] = "p"
        self.unknown("the user may not read the counter", "NOPERM", "k",
                     "--user", "u")
        del os.environ["NXLOCK_PASSWORD"]
        self.end(process)


class Slow:
    """A way to the server on which each answer takes half a second."""

    def __init__(self, server):
        self.server = server
        self.path = os.path.join(server.folder, "slow")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            ours, _ = self.listener.accept()
            theirs = socket.socket(socket.AF_UNIX)
            theirs.connect(self.server.socket)
            for one, other, delay in (ours, theirs, 0), (theirs, ours, 0.5):
                threading.Thread(target=self.pass_on, daemon=True,
                                 args=(one, other, delay)).start()

    @staticmethod
    def pass_on(one, other, delay):
        while data := one.recv(65536):
            time.sleep(delay)
            other.sendall(data)
        other.close()


def left_at_the_end(room):
    """What is left is told as of now, though other requests came after it."""
    process, _ = room.held("k")
    slow = Slow(room.server)
    for words in ((), ("--json",)):
        got = nx(room.nxlock, "status", "k", *words, "-u",
                 "unix://" + slow.path, "--timeout-ms", "10000").stdout
        left = (json.loads(got)["left_ms"] if words else
                1000 * int(re.search(rb" (\d+)s left", got)[1]))
        now = int(room.server.cli("PTTL", "k"))
        room.tap.check(left < now + 2000, "the time left, told at the end",
                       f"{got}\n{now} ms are left")
        room.tap.check(b"held" in got and b"since" in got, "with the start",
                       got)
    room.end(process)


def several(tap, nxlock, servers):
    urls = ",".join(one.url + "?guard_restarts=0" for one in servers)
    os.environ["NXLOCK_URL"] = urls
    # One counter is ahead, which its server was raised to once.
    servers[1].cli("SET", "{k}:f", "1000", "PX", "86400000")
    room = Room(nxlock, servers[0])
    room.tap = tap
    process, begin = room.held("k")
    await_(lambda: nx(nxlock, "status", "k").returncode == 0)
    room.known("three servers", begin)
    servers[2].process.kill()
    servers[2].process.wait()
    room.known("one of them down", begin)
    room.end(process)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    nxlock = os.path.abspath(sys.argv[1])
    with Server() as a, Server() as b, Server() as c:
        clean_environment(a)
        room = Room(nxlock, a)
        room.one_server()
        left_at_the_end(room)
        several(room.tap, nxlock, [a, b, c])
        return room.tap.done()


if __name__ == "__main__":
    sys.exit(main())
