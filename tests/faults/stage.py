# SPDX-License-Identifier: MIT
"""The servers of one cell and what stands in front of them, all in one
directory. Every process here dies with the one that started it. A server
counts as started when it has answered, as stopped or killed when the kernel
has said so: nothing is assumed after a while."""

import argparse
import multiprocessing
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "../support"))

import servers
from pauses import Pauses, now_ns

READY_S = 20
LINE_MS = 15000  # after the last one asked for its place
SERVED_S = 40  # until each contender is granted the lock again
SHORT_TRIES = 3  # with --short: of a cell that has proved nothing yet


def number(low, high, kind=int):
    """What argparse takes for a type: a number within these bounds."""
    def read(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no number from {low} to {high}")
        return value
    return read


def is_harm(complaint):
    """Whether it counts, whatever a second run finds."""
    return complaint.startswith("HARM: ")


def told(complaint):
    """As support/tally.py reads it."""
    return complaint if is_harm(complaint) else f"NOT AS EXPECTED: {complaint}"


def settled(complaints):
    """Whether a cell that shows two holders need not be played again."""
    return not complaints or any(map(is_harm, complaints))


def unplayed():
    """Where there is no server: the exit status, 77 if it may be skipped."""
    if shutil.which(servers.PROGRAM) is not None:
        return None
    print(f"{servers.PROGRAM} is not installed", file=sys.stderr)
    return 77 if os.environ.get("NXLOCK_SKIP_LIVE") == "1" else 1


def pool(jobs):
    """Processes, each with the cells that it is given one after the other: what
    a cell starts dies with its process."""
    return multiprocessing.get_context("spawn").Pool(jobs)


def tell(head, cells):
    """The table of cells that have row(), name() and complaints(), then the
    results as TAP. Do all hold? A complaint that begins with HARM counts,
    whatever a second run finds."""
    print("\n" + head + "\n" + "\n".join(c.row() for c in cells) +
          f"\n\n1..{len(cells)}")
    good = True
    for count, cell in enumerate(cells, 1):
        complaints = list(cell.complaints())
        good = good and not complaints
        print(f"{'not ' if complaints else ''}ok {count} - {cell.name()}",
              *complaints, sep="\n")
    return good


def await_true(condition, what, seconds=READY_S):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"never came true: {what}")
        time.sleep(0.003)


def await_copies(primary, replicas):
    """As servers.await_copies(), or it raises."""
    if not servers.await_copies(primary, replicas, READY_S):
        raise RuntimeError(
            "never came true: the replicas are sent what is written")


def start(arguments, **more):
    """A process that does not outlive this one."""
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *map(str, arguments)], **more)


class Server(servers.Server):
    ANSWERS_S = READY_S

    def __init__(self, directory, name, arguments=(), shim=None):
        self.dir = pathlib.Path(directory, name)
        self.dir.mkdir()
        environment = dict(os.environ)
        self.clock = self.dir / "clock"
        self.set_clock(0)
        if shim:
            environment.update(
                LD_PRELOAD=str(shim), NXLOCK_CLOCK_FILE=str(self.clock))
        super().__init__(self.dir, "--repl-diskless-sync-delay", "0",
                         *arguments, env=environment)
        self.ready()

    def set_clock(self, offset_s):
        """Its time of day is so far from this machine's from now on."""
        self.offset_s = offset_s
        with open(self.clock, "r+b" if self.clock.exists() else "wb") as file:
            file.write(struct.pack("=q", offset_s))

    def config(self, name, value):
        self.ask("CONFIG", "SET", name, value)

    def info(self, section, name):
        for line in self.ask("INFO", section).splitlines():
            if line.startswith(name + ":"):
                return line.split(":", 1)[1]
        return None

    def cut_power(self, word):
        """Killed; and its file ends in front of the first command with this
        word, as if nothing of that and of what follows had reached the
        disk."""
        self.kill()
        path, = self.dir.rglob("*.aof")
        data = path.read_bytes()
        at = data.find(word.encode())
        if at >= 0:
            os.truncate(path, data.rfind(b"*", 0, at))


class Group:
    """Three servers, a link in front of each, and one address that leads new
    connections to the primary."""

    def __init__(self, directory, proxy, arguments=()):
        self.servers = [Server(directory, f"s{i}", arguments)
                        for i in range(3)]
        self.primary = 0
        self.links = [proxy(s) for s in self.servers]
        self.front = proxy(self.now())

    def now(self):
        return self.servers[self.primary]

    def replicas(self):
        return [i for i in range(3) if i != self.primary]

    def move(self):
        """The address leads to the present primary."""
        self.front.order("lead", self.now().socket)

    def revive(self, i):
        """One that was killed is started again."""
        if self.servers[i].process.poll() is not None:
            self.servers[i].start()
            self.servers[i].ready()

    def offset(self, i):
        return int(self.servers[i].info("replication", "master_repl_offset"))

    def close(self):
        for proxy in [*self.links, self.front]:
            proxy.close()
        for server in self.servers:
            server.thaw()
            server.kill()


class Proxy:
    """Between one server and its clients; see proxy.c."""

    def __init__(self, program, server):
        self.process = start([program, server.socket],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True, bufsize=1)
        self.url, self.tcp_url = self.process.stdout.readline().split()
        self.port = int(self.tcp_url.rsplit(":", 1)[1])

    def order(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "ok\n":
            raise RuntimeError(f"the proxy did not {words}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


COLUMNS = {
    "one": "one server",
    "replica": "primary + replica",
    "redlock2": "Redlock, 2 of 5 struck",
    "redlock3": "Redlock, 3 of 5 struck",
}


# The line of the name, the mark that it exists, and its last gap.
GAP_KEY = "{k}:nxl-g"
LINE_KEYS = ("{k}:nxl-l", "{k}:nxl-w", GAP_KEY)


def is_of_line(server, key):
    """A key of the line, which the server will remove in time."""
    if key not in LINE_KEYS:
        return False
    left = server.ask("PTTL", key)
    # The key of a gap keeps nobody from the lock. It stays for as much longer
    # as the clock is set back, or until somebody waits.
    return left == -2 or 0 <= left and (key == GAP_KEY or left <= LINE_MS)


class Stage:
    """The servers of a column; `struck` are those that the fault is for. A
    primary is met at a place of its own that a failover moves."""

    def __init__(self, directory, column, fault, programs):
        self.directory = pathlib.Path(directory)
        self.column = column
        self.programs = pathlib.Path(programs)
        self.proxies, self.servers, self.links = [], [], []
        count = {"one": 1, "replica": 2}.get(column, 5)
        shim = self.programs / "libnxlock-stepped-clock.so"
        for i in range(count):
            self.servers.append(Server(
                directory, f"s{i}", fault.server,
                shim if fault.clock == "server" else None))
        struck = {"redlock2": 2, "redlock3": 3}.get(column, 1)
        self.struck = self.servers[:struck]
        self.fronts = [self.proxy(s) for s in self.struck if fault.proxied]
        urls = [f.tcp_url if fault.tcp else f.url for f in self.fronts]
        urls += [f"unix://{s.socket}" for s in self.servers[len(urls):]]
        if column == "replica":
            self.links = [self.proxy(s) for s in self.servers]
            self.primary, self.copy = 0, 1
            self.follow()
            self.place = self.directory / "primary"
            if fault.proxied:
                urls = urls[:1]
            else:
                self.move_place()
                urls = [f"unix://{self.place}"]
        parameters = "max_ttl_ms=600" + "".join(
            "&" + p for p in fault.url.get(column, []))
        self.url = ",".join(f"{u}?{parameters}" for u in urls)

    def proxy(self, server):
        proxy = Proxy(self.programs / "nxlock-fault-proxy", server)
        self.proxies.append(proxy)
        return proxy

    def follow(self):
        """The replica copies the primary, and has all of it."""
        copy, primary = self.servers[self.copy], self.servers[self.primary]
        copy.ask("REPLICAOF", "127.0.0.1", self.links[self.primary].port)
        await_copies(primary, [copy])

    def move_place(self):
        """Who dials from now on meets the present primary."""
        new = self.directory / "next"
        os.symlink(self.servers[self.primary].socket, new)
        os.replace(new, self.place)

    def offset(self, i):
        return int(self.servers[i].info("replication", "master_repl_offset"))

    def promote(self):
        """The replica is the primary from now on; the old one is told, and
        its clients have to dial again."""
        old = self.servers[self.primary]
        self.servers[self.copy].ask("REPLICAOF", "NO", "ONE")
        self.primary, self.copy = self.copy, self.primary
        self.move_place()
        self.struck = [self.servers[self.primary]]
        old.ask("REPLICAOF", "127.0.0.1", self.links[self.primary].port)
        old.ask("CLIENT", "UNPAUSE")
        old.ask("CLIENT", "KILL", "TYPE", "normal")

    def keys(self):
        """All that stand anywhere, but the counters of the numbers, and the
        line as long as it may last."""
        found = []
        for i, server in enumerate(self.servers):
            if self.column == "replica" and i != self.primary:
                continue
            found += [k for k in server.ask("KEYS", "*")
                      if not (k.endswith(":f") or is_of_line(server, k))]
        return found

    def close(self):
        for proxy in self.proxies:
            proxy.close()
        for server in self.servers:
            server.kill()
