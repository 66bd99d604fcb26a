#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_once_killed.py NXLOCK: once, killed at each step, and what the next run
finds: the table of nxlock(1).

Killed means SIGKILL for nxlock, its watchdog and CMD at once. A proxy between
nxlock and the server holds what belongs to a step.
"""

import os
import signal
import subprocess
import sys

from rig import Cases, Relay, await_, full_pipe, nx, play

TTL = ("--ttl", "6s", "--grace", "200ms")


class Proxy(Relay):
    """Passes everything on, but for one name, if told so: no request, or no
    answer."""

    name = None
    mute = drop_requests = drop_answers = False
    seen = 0  # requests about the name

    def watch(self, name, drop_requests=False, drop_answers=False):
        self.seen, self.name, self.mute = 0, name.encode(), False
        self.drop_requests = drop_requests
        self.drop_answers = drop_answers

    def asks(self, data):
        if self.name and self.name in data:
            self.seen += 1
            self.mute = self.drop_answers
            if self.drop_requests:
                return b""
        return data

    def answers(self, data):
        return b"" if self.mute else data


class Work:
    """One name: a run that is going to be killed, and the next ones."""

    number = 0

    def __init__(self, tap, server, proxy, nxlock):
        Work.number += 1
        self.tap, self.server, self.proxy = tap, server, proxy
        self.nxlock = nxlock
        self.name = f"pay:{Work.number}:"
        self.charged = os.path.join(server.folder, f"charged{Work.number}")
        self.gates = []
        self.process = None

    def gate(self):
        """A word for sh: waits until open() is called."""
        path = os.path.join(self.server.folder,
                            f"gate{Work.number}.{len(self.gates)}")
        os.mkfifo(path)
        self.gates.append(path)
        return f"read -r x < '{path}' || :"

    def open(self):
        with open(self.gates[-1], "wb"):
            pass

    def charge(self):
        return f"echo receipt; echo . >> '{self.charged}'"

    def charges(self):
        if not os.path.exists(self.charged):
            return 0
        with open(self.charged, "rb") as file:
            return len(file.readlines())

    def start(self, script, *words, stderr=subprocess.PIPE):
        env = dict(os.environ, NXLOCK_URL=self.proxy.url)
        self.process = subprocess.Popen(
            [self.nxlock, "once", self.name, *TTL, *words, "-c", script],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=stderr, start_new_session=True)

    def start_charged(self):
        self.start(f"{self.charge()}; {self.gate()}")
        self.tap.check(await_(self.charges), "it is charged")

    def members(self):
        """All processes of its session."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == self.process.pid:
                found.append(int(entry))
        return found

    def kill(self):
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.communicate(timeout=60)
        self.stretch()

    def stretch(self):
        """The lease of the dead, so that a busy machine is in time to find it.
        """
        self.server.cli("PEXPIRE", self.name, "60000")

    def end_lease(self):
        self.server.cli("PEXPIRE", self.name, "1")
        self.tap.check(await_(lambda: self.server.is_free(self.name)),
                       "the lease ends")

    def record(self):
        """Its first word after the version, or None."""
        words = self.server.cli("GET", f"{{{self.name}}}:once").split()
        return words[1].decode() if words else None

    def next(self, wanted, what, *words):
        got = nx(self.nxlock, "once", self.name, *TTL, "-n", *words, "-c",
                 self.charge())
        self.tap.check(got.returncode == wanted, what,
                       f"{got.returncode}, not {wanted}\n"
                       f"{got.stderr.decode(errors='replace')}")
        return got

    def by_hand(self, action):
        got = nx(self.nxlock, "once", action, self.name, "--yes")
        self.tap.equal(got.returncode, 0, f"then {action}")

    def in_doubt(self):
        """The two columns: at once, and after the lease."""
        self.next(75, "the next one finds it busy")
        self.end_lease()
        self.next(76, "and the next one finds a doubt")

    def paid(self, wanted, what="charged once"):
        self.tap.equal(self.charges(), wanted, what)


def rows(tap, server, proxy, nxlock):
    def new(title):
        print(f"# killed: {title}")
        proxy.watch("no name")
        return Work(tap, server, proxy, nxlock)

    work = new("nobody; so the scripts are known to the server")
    work.next(0, "runs")
    work.next(0, "is replayed")
    work.paid(1)

    work = new("before begin is sent")
    proxy.watch(work.name, drop_requests=True)
    work.start(work.charge())
    tap.check(await_(lambda: proxy.seen), "it is about to begin")
    work.kill()
    tap.equal(work.record(), None, "nothing is on record")
    work.next(0, "the next one runs")
    work.paid(1)

    work = new("begin sent, not answered")
    proxy.watch(work.name, drop_answers=True)
    work.start(work.charge())
    tap.check(await_(lambda: work.record() == "begun"), "it has begun")
    work.kill()
    work.in_doubt()
    work.paid(0, "a false doubt")
    work.next(0, "--check says no", "--check", "echo no")
    work.paid(1)

    work = new("begun, before the charge")
    work.start(f"{work.gate()}; {work.charge()}")
    tap.check(await_(lambda: len(work.members()) > 2), "CMD runs")
    work.kill()
    work.in_doubt()
    work.by_hand("forget")
    work.next(0, "then the next one runs")
    work.paid(1)

    work = new("charged, before done")
    work.start_charged()
    work.kill()
    work.in_doubt()
    got = work.next(0, "--check says yes", "--check",
                    "echo yes; echo found the receipt")
    tap.equal(got.stdout, b"found the receipt\n", "with the receipt")
    work.paid(1)

    work = new("the same, and a person looks")
    work.start_charged()
    work.kill()
    work.in_doubt()
    work.by_hand("confirm")
    work.next(0, "then it is done")
    work.paid(1)

    work = new("the same, and the provider knows the name again")
    work.start_charged()
    work.kill()
    work.end_lease()
    work.next(0, "--on-doubt retry runs it again", "--on-doubt", "retry")
    work.paid(2, "so CMD ran twice")

    work = new("done sent, not answered")
    work.start_charged()
    proxy.watch(work.name, drop_answers=True)
    work.open()
    tap.check(await_(lambda: work.record() == "done"), "it is done")
    work.kill()
    got = work.next(0, "the next one finds it done")
    tap.equal(got.stdout, b"receipt\n", "with the receipt")
    work.paid(1)

    work = new("done not sent")
    work.start_charged()
    proxy.watch(work.name, drop_requests=True)
    work.open()
    tap.check(await_(lambda: proxy.seen), "done is about to be sent")
    work.kill()
    work.in_doubt()
    work.paid(1)

    work = new("charged, its output waits for a reader")
    work.start(f"{work.charge()}; head -c 100000 /dev/zero")
    os.read(work.process.stdout.fileno(), 1)
    tap.check(await_(work.charges), "it is charged")
    work.kill()
    work.in_doubt()
    work.paid(1)

    work = new("done answered, before exit")
    reader, writer = full_pipe()  # its last words wait for a reader
    work.start(f"{work.charge()}; head -c 100000 /dev/zero", "-v",
               stderr=writer)
    work.process.stdout.read(100008)
    tap.check(await_(lambda: work.record() == "done"), "it is done")
    work.kill()
    os.close(reader)
    os.close(writer)
    got = work.next(0, "the next one finds it done")
    tap.equal(len(got.stdout), 100008, "with all of the output")
    work.paid(1)

    work = new("CMD ended with 1")
    work.start(f"{work.charge()}; exit 1")
    work.process.communicate(timeout=60)
    tap.equal(work.process.returncode, 1, "its code")
    got = work.next(76, "the next one finds a doubt at once")
    tap.check(b"ended with 1" in got.stderr, "and how it ended", got.stderr)
    work.paid(1)

    work = new("CMD ended with 75, --retry-on 75")
    work.start("exit 75", "--retry-on", "75")
    work.process.communicate(timeout=60)
    tap.equal(work.process.returncode, 75, "its code")
    work.next(0, "the next one runs")
    work.paid(1)

    work = new("one of three hosts")
    work.start_charged()
    others = [subprocess.Popen(
        [nxlock, "once", work.name, *TTL, "-q", "-c", work.charge()],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE) for _ in range(2)]
    work.kill()
    work.end_lease()
    for other in others:
        out, err = other.communicate(timeout=60)
        tap.equal((other.returncode, out), (76, b""), "another one ends")
        tap.check(b"is in doubt" in err, "and says why", err)
    work.paid(1)

    work = new("nxlock alone")
    work.start_charged()
    os.kill(work.process.pid, signal.SIGKILL)
    work.process.communicate(timeout=60)
    work.stretch()
    tap.check(await_(lambda: not work.members()), "the watchdog stops CMD")
    work.in_doubt()
    work.paid(1)


def each(room):
    with Proxy(room.server) as proxy:
        rows(room, room.server, proxy, room.program)


if __name__ == "__main__":
    sys.exit(play(Cases, each,
                  options=("--appendonly", "yes", "--appendfsync", "always")))
