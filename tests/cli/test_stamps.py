#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_stamps.py NXLOCK: locks by unix times where the clocks of the machines
differ by hours. The command asks the server's clock, and never are two in. The
published scheme with the machines' own clocks lets two in, in the same loop.
NXLOCK_FULL=1: three times as many additions.
"""

import os
import re
import shutil
import subprocess
import sys
import time

from rig import Cases, nx, play

EACH = 30 if os.environ.get("NXLOCK_FULL") else 10  # additions of each loop
SKEWS = {"+1h": 3600, "-1h": -3600, "+0": 0}

# Adds one to the number; notes it if another is in at the same time.
ADD = """mkdir inside 2> /dev/null || echo two >> both
read -r number < number
sleep 0.01
echo $((number + 1)) > number
rmdir inside 2> /dev/null"""
OURS = 'for i in $(seq $0); do "$1" run count -- sh add; echo $?; done'
# The published scheme, by this machine's clock. libfaketime hangs in a program
# that brings its own malloc, such as redis-cli.
SCHEME = """
ask() { env -u LD_PRELOAD redis-cli -s s "$@"; }
now() { date +%s; }
try() { # sets ends
    ends=$(($(now) + 11))
    [ "$(ask SETNX classic $ends)" = 0 ] || return 0
    there=$(ask GET classic)
    [ -n "$there" ] && [ "$there" -lt "$(now)" ] || return 1
    ends=$(($(now) + 11))
    old=$(ask GETSET classic $ends)
    [ -z "$old" ] || [ "$old" -lt "$(now)" ]
}
"""
CLASSIC = SCHEME + """
for i in $(seq $0); do
    until try; do sleep 0.01; done
    sh add
    [ $(($(now) + 1)) -ge $ends ] || ask DEL classic > /dev/null
done"""


def skewed(skew, *words):
    """Only the time of day is another one: what measures a lease is the clock
    that nobody sets, and nobody sets that of one machine by hours."""
    return ["faketime", "--exclude-monotonic", "-f", skew, *words]


class Room(Cases):
    def why_not(self):
        """Why there can be no other time of day; None: there can."""
        # A sanitizer's program wants to be first in memory, before this one.
        os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + \
            ":verify_asan_link_order=0"
        if not shutil.which("faketime"):
            return "no faketime"
        ahead = int(nx(*skewed("+1h", "date", "+%s")).stdout) - time.time()
        if not 3590 < ahead < 3610:
            return "faketime does not work here"
        if nx(*skewed("+1h", self.program, "--version")).returncode != 0:
            return "this build of nxlock does not run under faketime"
        return None

    def skewed(self, given, skew, words, code, out="", *said):
        """nxlock under another clock; its output, and how long it took."""
        began = time.monotonic()
        done = nx(*skewed(skew, self.program, *words))
        took = time.monotonic() - began
        text = done.stdout.decode()
        self.judge(f"{given}, its clock {skew}", self.shown(words), (
            done.returncode, text, done.stderr.decode()), code, out, said,
            tokens=True)
        return text.strip(), took

    def one_by_one(self):
        """All agree on when a lock is over: it is said in the server's time."""
        for skew, seconds in SKEWS.items():
            out, _ = self.skewed("a lock", skew, [
                "run", "x", "--ttl", "10s", "--", "sh", "-c", "date +%s; "
                f"env -u LD_PRELOAD redis-cli -s {self.server.socket} GET x"],
                0, r"\d+\n\d+\s*\n", "'x' has no fencing token")
            now = int(self.server.cli("TIME").split()[0])
            clock, ends = map(int, re.findall(r"\d+", out))
            self.check(abs(clock - now - seconds) <= 5 and
                       8 <= ends - now <= 15, f"a lock, its clock {skew}: "
                       "it ends in 8 to 15 s by the server's clock",
                       (clock, ends, now))

    def held_against_the_others(self):
        for holder in SKEWS:
            token, _ = self.skewed("free", holder, [
                "acquire", "y", "--ttl", "30s"], 0, ".*")
            for other in SKEWS:
                given = f"held by one with {holder}"
                self.skewed(given, other, ["acquire", "y", "-n"], 75)
                _, took = self.skewed(given, other, [
                    "acquire", "y", "--wait", "300ms"], 75)
                self.check(0.25 <= took <= 3, f"{given}, its clock {other}: "
                           "it waits as long as it was to", took)
            self.skewed("held", "+0", ["release", "y", token], 0)
            self.check(self.is_free("y"), f"held by one with {holder}: "
                       "another clock releases it with its token")

    def after_a_death(self):
        """A dead holder's time is over for all at the same moment, which is
        read from what the next one writes: the end of its lease of 1 s, rounded
        up, and one second more."""
        dead = "+0"
        self.skewed("free", dead, ["acquire", "z", "--ttl", "1s"], 0, ".*")
        ends = int(self.server.cli("GET", "z"))
        for skew in SKEWS:
            self.skewed(f"a dead holder with {dead}", skew, [
                "acquire", "z", "--ttl", "1s", "--wait", "20s"], 0, ".*")
            before, ends = ends, int(self.server.cli("GET", "z"))
            self.check(3 <= ends - before <= 10, f"a dead holder with {dead}: "
                       f"{skew} waits for its end, and no longer",
                       (before, ends))
            dead = skew

    def race(self, skews, *words):
        """A loop for each clock, all at once: the number, whether two were in,
        and the exit codes."""
        self.remove("both")
        self.write("add", ADD)
        self.write("number", "0\n")
        loops = [subprocess.Popen(
            skewed(skew, "timeout", "120", *words), cwd=self.server.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL) for skew in skews]
        printed = b"".join(loop.communicate()[0] for loop in loops)
        return int(self.text("number")), self.has("both"), printed.split()

    def ours(self):
        got = self.race((*SKEWS, *SKEWS), "sh", "-c", OURS, str(EACH),
                        self.program)
        self.equal(got, (6 * EACH, False, [b"0"] * 6 * EACH),
                   "6 loops with 3 clocks: nothing is lost, never two at once")
        self.check(self.calls("set") == 0 and self.is_free("count"),
                   "6 loops with 3 clocks: by GETSET or SETNX, and no SET")

    def classic(self):
        number, both, printed = self.race(["+0"] * 3, "sh", "-c", CLASSIC,
                                          str(EACH))
        self.equal((number, both), (3 * EACH, False), "the published scheme, "
                   f"one clock: never two at once {printed}")
        self.server.cli("DEL", "classic")
        for skew, got in ("+0", True), ("+0", False), ("+1h", True):
            done = nx(*skewed(skew, "sh", "-c", SCHEME + "try"),
                      cwd=self.server.folder)
            self.equal(done.returncode == 0, got, "the published scheme, its "
                       f"clock {skew}: {'gets it' if got else 'does not'}")

    def all(self):
        reason = self.why_not()
        if reason:
            self.skip("clocks that differ", reason)
            return
        os.environ["NXLOCK_URL"] += "?scheme=timestamp"
        for part in (self.one_by_one, self.held_against_the_others,
                     self.after_a_death, self.ours, self.classic):
            part()


if __name__ == "__main__":
    sys.exit(play(Room, Room.all))
