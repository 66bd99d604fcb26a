#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_classic.py NXLOCK: programs of the SETNX and GETSET scheme, which read
what is at the key as a number: by int(), by float(), and by the shell's test.

None of them fails on a value that nxlock wrote. Each excludes nxlock and is
excluded by it, and each follows a holder that died.
"""

import os
import shutil
import subprocess
import sys
import time

from rig import Cases, await_, nx, play

UUID = "01234567-89ab-4def-8123-456789abcdef"
SHELLS = [name for name in ("dash", "bash", "/usr/bin/test")
          if shutil.which(name)]


def less(value, now, shell):
    """Is value below now? The shell must not complain either."""
    words = [shell, value, "-lt", str(now)]
    if not shell.endswith("test"):
        words = [shell, "-c", '[ "$1" -lt "$2" ]', "-", value, str(now)]
    done = subprocess.run(words, stderr=subprocess.PIPE, check=False)
    if done.stderr:
        raise ValueError(done.stderr.decode().strip())
    return done.returncode == 0


READERS = {
    "int": lambda value, now: int(value) < now,
    "int of bytes": lambda value, now: int(value.encode()) < now,
    "float": lambda value, now: float(value) < now,
}
READERS.update({shell: lambda value, now, shell=shell: less(value, now, shell)
                for shell in SHELLS})


class Classic:
    """The scheme as it was published."""

    def __init__(self, server, key, is_past):
        self.server, self.key, self.is_past = server, key, is_past
        self.ends = 0

    def ask(self, *words):
        return self.server.cli(*words).decode()[:-1]

    def acquire(self, ttl):
        now = int(time.time())
        ends = now + ttl + 1
        if self.ask("SETNX", self.key, str(ends)) == "1":
            self.ends = ends
            return True
        there = self.ask("GET", self.key)
        if not there or not self.is_past(there, now):
            return False
        old = self.ask("GETSET", self.key, str(ends))
        self.ends = ends
        return old == there

    def release(self):
        if time.time() < self.ends:
            self.ask("DEL", self.key)


def stamps():
    return "-u", os.environ["NXLOCK_URL"] + "?scheme=timestamp"


def holds(tap, classic, program, name):
    """nxlock holds; then the other program does."""
    key = classic.key
    done = nx(program, "acquire", key, *stamps())
    tap.equal(done.returncode, 0, f"nxlock gets '{key}'")
    try:
        got, note = classic.acquire(30), ""
    except ValueError as error:
        got, note = True, error
    tap.check(not got, f"a program that reads with {name} waits for it", note)
    token = done.stdout.decode().strip()
    done = nx(program, "release", key, token)
    tap.equal(done.returncode, 0, "which its token still releases")
    tap.check(classic.acquire(30), f"{name}: gets it then")
    done = nx(program, "acquire", key, "-n", *stamps())
    tap.equal(done.returncode, 75, "and nxlock does not")
    classic.release()


def follows(classic):
    """True when it has got the lock, or its error."""
    try:
        return classic.acquire(1)
    except ValueError as error:
        return error


def died(tap, classics, program):
    """nxlock dies, one of them follows and dies, nxlock follows. All names at
    once, for the time that it takes."""
    for classic in classics.values():
        nx(program, "acquire", classic.key, *stamps(),
           "--ttl", "1s")
    for name, classic in classics.items():
        got = [False]

        def there():
            got[0] = follows(classic)
            return got[0]

        await_(there)
        tap.check(got[0] is True, f"{name}: follows an nxlock that died",
                  got[0])
    for name, classic in classics.items():
        done = nx(program, "acquire", classic.key, "-w", "20s", *stamps())
        tap.equal(done.returncode, 0, f"nxlock follows a dead {name}")


def all_readers(room):
    classics = {name: Classic(room.server, name, reader)
                for name, reader in READERS.items()}
    for name, classic in classics.items():
        holds(room, classic, room.program, name)
    died(room, classics, room.program)


if __name__ == "__main__":
    sys.exit(play(Cases, all_readers))
