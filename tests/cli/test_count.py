#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_count.py NXLOCK: eight loops add to one number in a file, a process for
each addition. Under the lock nothing is lost, and a run that was skipped has
added nothing. The same loops without it lose additions, so the test can tell.
NXLOCK_FULL=1: 2000 runs, not 200.
"""

import os
import subprocess
import sys
import tempfile

from rig import Cases, play

LOOPS = 8
EACH = 250 if os.environ.get("NXLOCK_FULL") else 25
# Between reading and writing the number, others may come.
ADD = """read -r number < number
[ $0 = 0 ] || sleep $0
echo $((number + 1)) > number"""
LOOP = """i=0; while [ $i -lt $0 ]; do "$@"; echo $?; i=$((i + 1)); done"""


class Room(Cases):
    def race(self, each, *words):
        """The number afterwards, the exit codes, and what was said."""
        self.write("number", "0\n")
        with tempfile.TemporaryFile() as said:
            loops = [subprocess.Popen(
                ["sh", "-c", LOOP, str(each), *words], cwd=self.server.folder,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
                     for _ in range(LOOPS)]
            codes = [int(word) for loop in loops
                     for word in loop.communicate()[0].split()]
            said.seek(0)
            return int(self.text("number")), codes, said.read().decode()

    def unlocked(self):
        """Longer pauses until the race is lost, which is at once on any machine
        that runs two processes in turn."""
        for pause in "0", "0.001", "0.01", "0.1":
            number, codes, _ = self.race(20, "sh", "-c", ADD, pause)
            if number < len(codes):
                break
        self.check(number < len(codes), "without the lock additions are lost",
                   f"{number} of {len(codes)}")

    def waiting(self):
        number, codes, said = self.race(
            EACH, self.program, "run", "count", "--", "sh", "-c", ADD, "0")
        self.excludes(number == codes.count(0), "run: nothing is lost",
                      f"{number} of {codes}\n{said}")
        self.equal((codes, said), ([0] * LOOPS * EACH, ""),
                   "run: each is granted it, and nothing is said")
        self.check(self.is_free("count") and
                   self.calls("set", "psetex") >= LOOPS * EACH,
                   "run: the lock was taken as often, and is free")

    def skipping(self):
        number, codes, said = self.race(
            EACH, self.program, "run", "count", "-n", "--", "sh", "-c", ADD,
            "0")
        self.excludes(number == codes.count(0),
                      "run -n: each 0 is one addition, each 75 none",
                      f"{number} of {codes}\n{said}")
        self.check(said == "" and set(codes) == {0, 75} and
                   self.is_free("count"), "run -n: there are both",
                   f"{codes}\n{said}")


if __name__ == "__main__":
    sys.exit(play(Room, Room.unlocked, Room.waiting, Room.skipping))
