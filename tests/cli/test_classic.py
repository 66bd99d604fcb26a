#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_classic.py NXLOCK: programs of the SETNX and GETSET scheme read what is
at the key as a number: by int(), by float(), and by the shell's test.

None of them fails on a value that nxlock wrote. Each finds that it is a time to
come while nxlock holds the lock, and one that is past after nxlock has died.
What nxlock makes of the values of such programs: timestamps_published.scenes.
"""

import os
import shutil
import subprocess
import sys
import time

from rig import Cases, await_, play


def is_past(words, value):
    """Is value below now? The shell must not complain either."""
    done = subprocess.run([*words, value, "-lt", str(int(time.time()))],
                          stderr=subprocess.PIPE, check=False)
    if done.stderr:
        raise ValueError(done.stderr.decode().strip())
    return done.returncode == 0


READERS = {
    "int": lambda value: int(value) < time.time(),
    "int of bytes": lambda value: int(value.encode()) < time.time(),
    "float": lambda value: float(value) < time.time(),
}
for shell in filter(shutil.which, ("dash", "bash")):
    READERS[shell] = lambda value, shell=shell: is_past(
        [shell, "-c", '[ "$@" ]', "-"], value)
if shutil.which("/usr/bin/test"):
    READERS["/usr/bin/test"] = lambda value: is_past(["/usr/bin/test"], value)


def all_readers(room):
    url = os.environ["NXLOCK_URL"] + "?scheme=timestamp"
    for given, ttl, wanted in (("holds", "1h", False),
                               ("has died", "1s", True)):
        room.gives(f"nxlock {given}", f"acquire {ttl} --ttl {ttl} -u {url}", 0,
                   ".*", tokens=True)
        value = room.server.cli("GET", ttl).decode().rstrip("\n")
        for name, reads in READERS.items():
            try:
                good, note = await_(lambda reads=reads: reads(value) == wanted
                                    ), value
            except ValueError as error:
                good, note = False, error
            room.check(good, f"nxlock {given}: {name} reads a time that is "
                       f"{'past' if wanted else 'to come'}", note)


if __name__ == "__main__":
    sys.exit(play(Cases, all_readers))
