#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_python.py NXLOCK: another library's lock on the same key.

redis.lock.Lock of redis-py excludes nxlock and is excluded by it, neither
removes the other's key, and a number both add to loses nothing.
"""

import os
import subprocess
import sys
import threading
import time

from rig import await_, nx, play, skip_all
from table import Table

DEBIANS_PYTHON = "/usr/bin/python3"

try:
    import redis
    import redis.lock
except ImportError as missing:
    # The package is Debian's; the first python3 in PATH may be another one.
    if os.access(DEBIANS_PYTHON, os.X_OK) and \
            "NXLOCK_TEST_PYTHON" not in os.environ:
        os.environ["NXLOCK_TEST_PYTHON"] = DEBIANS_PYTHON
        os.execv(DEBIANS_PYTHON, [DEBIANS_PYTHON] + sys.argv)
    skip_all(f"{missing}; Debian has it in python3-redis")

WORKERS = 2  # of each kind
EACH = 200 if os.environ.get("NXLOCK_FULL") else 50


def theirs(path, key="job", timeout=30):
    client = redis.Redis(unix_socket_path=path)
    return client, redis.lock.Lock(client, key, timeout=timeout, sleep=0.01)


def add(path):
    with open(path, encoding="ascii") as file:
        number = int(file.read() or "0")
    time.sleep(0.002)  # here the others come in, if they can
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{number + 1}\n")


def work(server, number, locked):
    """A worker: adds EACH times to the file, under the lock or without."""
    _, lock = theirs(server, "count")
    for _ in range(EACH):
        if locked:
            with lock:
                add(number)
        else:
            add(number)


class Room(Table):
    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        self.client, self.lock = theirs(server.socket)

    def nx(self, *words):
        return nx(self.program, *words)

    def start(self, *words):
        return subprocess.Popen(
            [self.program, *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def they_exclude_us(self):
        self.check(self.lock.acquire(blocking=False), "they hold it")
        token = self.client.get("job")
        left = self.client.pttl("job")
        uuid = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
        self.rows(
            ("run job -n -- touch {started}", 75),
            ("run job -w 200ms -- touch {started}", 75),
            ("acquire job -n", 75),
            ("status job --json", 0, f'"value":"{token.decode()}"'),
            (f"renew job {uuid}", 79),
            (f"release job {uuid}", 79))
        self.excludes(self.client.get("job") == token,
                      "their key is untouched")
        self.check(self.client.pttl("job") <= left, "and not prolonged")
        self.check(self.lock.owned(), "and they own it")
        self.lock.release()
        self.equal(self.client.exists("job"), 0, "their release frees it")
        self.row("run job -n -- true", 0)

    def we_exclude_them(self):
        token = self.nx("acquire", "job", "--ttl", "20").stdout.strip()
        self.equal(self.client.get("job"), token, "we hold it")
        self.excludes(not self.lock.acquire(blocking=False),
                      "acquire(blocking=False) is False")
        self.excludes(not self.lock.acquire(blocking_timeout=0.2),
                      "acquire(blocking_timeout=0.2) is False")
        self.check(self.lock.locked() and not self.lock.owned(),
                   "locked, and not theirs")
        self.lock.local.token = b"a token that is theirs"
        try:
            self.lock.release()
            self.check(False, "their release is refused")
        except redis.exceptions.LockNotOwnedError:
            self.check(True, "their release is refused")
        self.excludes(self.client.get("job") == token, "our key is untouched")
        self.check(10000 < self.client.pttl("job") <= 20000, "with its lease")
        self.equal(self.nx("release", "job", token).returncode, 0,
                   "our release frees it")
        self.check(self.lock.acquire(blocking=False), "and then they have it")
        self.lock.release()

    def we_lose_it_to_them(self):
        fifo = self.server.folder + "/end"
        os.mkfifo(fifo)
        run = self.start("run", "job", "--", "cat", fifo)
        self.check(await_(lambda: self.client.exists("job")), "we hold it")
        self.client.delete("job")
        self.check(self.lock.acquire(blocking=False), "they take it")
        with open(fifo, "wb"):
            pass
        self.equal(run.wait(30), 79, "our command ends: 79")
        self.check(self.lock.owned(), "and they own it still")
        self.lock.release()

    def scripts(self):
        """How often one was asked for: so run takes, with a number."""
        stats = self.client.info("commandstats")
        return sum(stats.get("cmdstat_" + name, {"calls": 0})["calls"]
                   for name in ("eval", "evalsha"))

    def waits(self):
        self.lock.acquire()
        before = self.scripts()
        run = self.start("run", "job", "--", "echo", "ran")
        self.check(await_(lambda: self.scripts() > before), "we wait")
        self.equal(run.poll(), None, "and do not run")
        self.lock.release()
        out, said = run.communicate(timeout=30)
        self.equal((run.returncode, out, said), (0, b"ran\n", b""),
                   "until they release")

        fifo = self.server.folder + "/fifo"
        os.mkfifo(fifo)
        run = self.start("run", "job", "--", "cat", fifo)
        self.check(await_(lambda: self.client.exists("job")), "we run")
        got = []
        waiter = threading.Thread(
            target=lambda: got.append(self.lock.acquire(blocking_timeout=30)))
        before = self.client.info("commandstats")["cmdstat_set"]["calls"]
        waiter.start()
        self.check(await_(lambda: self.client.info("commandstats")
                   ["cmdstat_set"]["calls"] > before), "they wait")
        self.equal(got, [], "and have nothing")
        with open(fifo, "wb"):
            pass
        self.equal(run.wait(30), 0, "our command ends")
        waiter.join(30)
        self.equal(got, [True], "and they have it")
        self.client.delete("job")

        short = theirs(self.server.socket, timeout=0.3)[1]
        short.acquire()
        self.equal(self.nx("run", "job", "-w", "10", "--", "true").returncode,
                   0, "a lease of theirs that runs out is ours")

    def count(self, locked):
        """All workers at once; what the number is at the end."""
        number = self.server.folder + "/number"
        script = self.server.folder + "/add"
        with open(script, "w", encoding="ascii") as file:
            file.write("read -r n < \"$1\"\nsleep 0.002\n"
                       "echo $((n + 1)) > \"$1\"\n")
        with open(number, "w", encoding="ascii") as file:
            file.write("0\n")
        under = [self.program, "run", "count", "--"] if locked else []
        loop = "i=0; while [ $i -lt $0 ]; do \"$@\" || exit; i=$((i + 1)); done"
        workers = []
        for _ in range(WORKERS):
            workers.append(subprocess.Popen(
                [sys.executable, __file__, "--worker", self.server.socket,
                 number, "locked" if locked else "free"],
                stderr=None if locked else subprocess.DEVNULL))
            workers.append(subprocess.Popen(
                ["sh", "-c", loop, str(EACH), *under, "sh", script, number],
                stderr=None if locked else subprocess.DEVNULL))
        codes = [worker.wait(300) for worker in workers]
        with open(number, encoding="ascii") as file:
            return int(file.read() or "0"), codes

    def counts(self):
        total = 2 * WORKERS * EACH
        number, _ = self.count(False)
        self.check(number < total,
                   f"without the lock {total - number} of {total} are "
                   "lost")
        began = time.monotonic()
        number, codes = self.count(True)
        print(f"# {total} additions in {time.monotonic() - began:.1f} s")
        self.excludes(number == total,
                      f"{WORKERS} python workers and {WORKERS} nxlock "
                      "shells lose nothing", f"{number} of {total}: {codes}")
        self.equal(codes, [0] * len(codes), "and each of them is content")
        self.equal(self.client.exists("count"), 0, "the lock is free")


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        work(sys.argv[2], sys.argv[3], sys.argv[4] == "locked")
        sys.exit(0)
    print(f"# redis-py {redis.__version__}")
    sys.exit(play(Room, Room.they_exclude_us, Room.we_exclude_them,
                  Room.we_lose_it_to_them, Room.waits, Room.counts))
