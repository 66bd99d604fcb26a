#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_pipes.py NXLOCK STOLEN_ROOM: outputs that take nothing any more.

Nobody reads what is said, or nobody can: the command under the lock is
stopped in time all the same, and a token that nobody got is released.
"""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import time

from rig import Cases, await_, full_pipe, play
from terminal import gone

TTL_S = 1.5
# CMD and a child of its own; both end, at the latest, with the folder.
FAMILY = """
sh -c 'while [ -e rig ]; do sleep 0.05; done' &
echo $$ $! > new; mv new pids; wait
"""
# Goes on after TERM.
DEAF = """
trap '' TERM; echo $$ $$ > new; mv new pids
while [ -e rig ]; do sleep 0.05; done
"""


def orphan_pipe():
    """The end of a pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def drain(end):
    """Reads what is there: who waits to write can go on."""
    os.set_blocking(end, False)
    with contextlib.suppress(BlockingIOError):
        while os.read(end, 65536):
            pass


class Room(Cases):
    pids = ()

    def start(self, *words, **streams):
        """Python gives PIPE and XFSZ their defaults back."""
        self.write("rig")
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
                "stderr": subprocess.DEVNULL}
        more.update(streams)
        return subprocess.Popen(
            [self.program, *words], cwd=self.server.folder, **more)

    def family(self, stderr, script=FAMILY, ttl=TTL_S, words=(), **more):
        """A run of it; None if it does not start."""
        self.remove("pids")
        run = self.start("run", "k", "--ttl", f"{ttl}", *words, "-c", script,
                          stderr=stderr, **more)
        if not await_(lambda: self.has("pids")):
            run.kill()
            run.wait()
            self.check(False, "CMD does not start")
            return None
        self.pids = list(map(int, self.text("pids").split()))
        return run

    def ends(self, run, code, name, limit=10):
        try:
            got = run.wait(limit)
        except subprocess.TimeoutExpired:
            got = "nothing"
            run.kill()
            run.wait()
        for pid in self.pids:  # of a test that fails
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)
        return self.equal(got, code, name)

    def loses(self, stderr, script, name, reader=None, **more):
        """The lock is taken away. A second holder, which waits for it, has it
        for no longer than the lease before CMD is gone. Only then what was said
        is read at reader, if at all."""
        run = self.family(stderr, script, **more)
        if run is None:
            return
        self.server.cli("SET", "k", "stranger", "PX", "600000")
        start = time.monotonic()
        self.check(await_(lambda: all(gone(pid) for pid in self.pids), 6),
                   f"{name}: CMD is stopped when the lock is lost")
        took = time.monotonic() - start
        self.check(took < TTL_S + 1, "in the time of the lease",
                   f"{took:.2f} s")
        if reader is not None:
            drain(reader)
        self.ends(run, 79, "and the loss is told")
        self.equal(self.server.cli("GET", "k"), b"stranger\n",
                   "the other one's key stands")
        self.server.cli("DEL", "k")

    def nobody_reads(self):
        reader, writer = full_pipe()
        self.loses(writer, FAMILY, "stderr is full")
        run = self.family(writer, ttl=30)
        if run is not None:
            run.terminate()
            self.ends(run, 143, "stderr is full: TERM is passed on")
            self.check(self.is_free("k"), "and the lock is free")
        self.server.cli("SET", "k", "stranger", "PX", "600000")
        start = time.monotonic()
        run = self.start("run", "k", "-v", "-w", "2", "--", "true",
                          stderr=writer)
        self.pids = ()
        self.ends(run, 75, "stderr is full: a wait ends", 20)
        took = time.monotonic() - start
        # The last word waits 5 s for a reader.
        self.check(6.9 < took < 12, "in time", f"{took:.2f} s")
        self.server.cli("DEL", "k")
        self.loses(writer, DEAF, "stderr is full and CMD deaf to TERM", reader)
        os.close(reader)
        os.close(writer)

    def room_stolen(self):
        """CMD fills the pipe after nxlock has seen that there is room."""
        preloaded = dict(os.environ, LD_PRELOAD=self.stolen_room,
                         ASAN_OPTIONS="verify_asan_link_order=0")
        for words in ((), ("--log", "json")):
            reader, writer = os.pipe()
            self.loses(writer, FAMILY, f"another process fills it, {words}",
                       reader, words=words, env=preloaded)
            os.close(reader)
            os.close(writer)
        # A stream socket, as the journal gives a unit, takes no more either.
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                writer.send(b"\0" * 4096)
        writer.setblocking(True)
        self.loses(writer, FAMILY, "stderr is a socket that is full",
                   reader.fileno())
        reader.close()
        writer.close()

    def reader_gone(self):
        writer = orphan_pipe()
        self.loses(writer, FAMILY, "stderr has no reader")
        self.loses(writer, DEAF, "stderr has no reader and CMD is deaf")
        self.no_reader_without_cmd(writer)
        os.close(writer)

    def no_reader_without_cmd(self, writer):
        """While no CMD runs, a message ends nobody either."""
        self.pids = ()
        for log in ("stderr", "json"):
            for words, code in (
                    (("acquire", "k", "--ttl", "100ms"), 0),
                    (("wait", "k"), 0),
                    (("unlock", "k", "--force", "--yes"), 1),
                    (("run", "k", "--", "./none"), 127)):
                self.server.cli("DEL", "k")
                run = self.start(*words, "--log", log, stderr=writer)
                self.ends(run, code, f"--log {log} has no reader: {words[0]}")

    def token_lost(self):
        """A file that takes no token; test_streams.py has other outputs."""
        self.pids = ()

        def no_file_grows():
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

        with open(self.path("token"), "wb") as token:
            # pylint: disable=subprocess-popen-preexec-fn
            run = self.start("acquire", "k", stdout=token,
                              preexec_fn=no_file_grows)
        self.ends(run, 70, "acquire into a file that may not grow")
        self.check(self.is_free("k"), "releases")

    def few_descriptors(self):
        """Not enough of them for a connection, or for CMD."""
        good = []
        for limit in range(4, 16):
            code, out, err = self.launch(
                "run", "k", "--", "echo", "ran",
                before=["prlimit", f"--nofile={limit}:{limit}"]).ends()
            good.append(code == 0)
            self.check((code, out) in ((0, "ran\n"), (70, "")) and
                       self.is_free("k"),
                       f"{limit} descriptors: CMD runs, or a fault and no CMD; "
                       "nothing stays locked", (code, out, err))
        self.check(not good[2] and good[-1], "6 are too few, 15 are not", good)

    def in_the_end(self):
        self.gives("in the end", "status k", 1, "k free\n")


if __name__ == "__main__":
    sys.exit(play(Room, Room.nobody_reads, Room.room_stolen, Room.reader_gone,
                  Room.token_lost, Room.few_descriptors,
                  Room.in_the_end, more=["stolen_room"]))
