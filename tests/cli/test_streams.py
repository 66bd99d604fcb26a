#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_streams.py NXLOCK: what the programs around nxlock do to its
outputs, crossed with what it has to say.

ROWS has a line for each verdict of a command, with the exit code and the words
for each state of standard output and standard error. No word of a verdict is
lost where somebody reads it in the end; where nobody can, the exit code and the
log tell it. All cells run at the same time against one real server.
"""

import collections
import concurrent.futures
import json
import os
import re
import select
import socket
import subprocess
import sys
import time

from rig import Cases, Server, await_, full_pipe, nx, play
from terminal import gone

CELL_S = 60     # for a cell, on a busy machine
READS_AT_S = 1  # a slow reader, where no event says that it is time
NOTHING = "unix:///nowhere"

# Ended by TERM while nothing of the output was read.
TERM, KILLED = 143, -15

# The words stand on standard error and in the log. lost: the words if standard
# output cannot be written. CMD prints "out" in the rows of once.
Row = collections.namedtuple(
    "Row", "what code full disk closed gone words lost")
ROWS = [Row(*row) for row in (
    # what               code full  disk cl. gone  words; the words if lost
    ("run, done",           0, 0,    0,   0,   0, "released '", ""),
    ("run, CMD failed",     3, 3,    3,   3,   3, "exit code 3", ""),
    ("run, left over",      0, 0,    0,   0,   0, "left processes beh", ""),
    ("run, lost",          79, 79,  79,  79,  79, "lost '.*stopping sh", ""),
    ("run, lost, json",    79, 79,  79,  79,  79, "\"lost\".*\"ended\"", ""),
    ("run, busy",          75, 75,  75,  75,  75, "is held by ", ""),
    ("run, no server",     69, 69,  69,  69,  69, "cannot acquire", ""),
    ("once, done",          0, TERM, 70, 70,  70, "exit code 0",
     "cannot pass on.*is in doubt.*or forget if it was not"),
    ("once, CMD failed",    1, TERM, 1,   1,   1,
     "is in doubt.*or forget if it was not", "cannot pass on.*is in doubt"),
    ("once, left over",    76, TERM, 76, 76,  76,
     "left processes beh.*is in doubt", "cannot pass on.*is in doubt"),
    ("once, lost",         79, TERM, 79, 79,  79, "lost '.*is in doubt",
     "lost '.*cannot pass on.*is in doubt"),
    ("once, in doubt",     76, 76,  76,  76,  76,
     "is in doubt.*or forget if it was not", ""),
    ("once, done before",   0, TERM, 70, 70,  70, "is done: ",
     "cannot print the output of"),
    ("once, not begun",    69, 69,  69,  69,  69, "cannot (acquire|begin)",
     ""),
    ("acquire, done",       0, TERM, 70, 70,  70, "acquired '",
     "cannot print the token.*released"),
    ("acquire, lost",       0, 70,   70, 70,  70, "acquired '",
     "cannot print the token.*released|was not read before its lease"),
    ("acquire, busy",      75, 75,   75, 75,  75, "is held by ", ""),
    ("acquire, no server", 69, 69,   69, 69,  69, "cannot acquire", ""),
    ("status, held",        0, KILLED, 70, 70, 70, "", "cannot print"),
    ("status, free",        1, KILLED, 70, 70, 70, "", "cannot print"),
    ("status, no server",  69, 69,   69, 69,  69, "cannot look at", ""),
)]

# What is run, and what standard output then has.
RUN = ["-v", "--ttl", "2s", "--grace", "300ms"]
TOKEN = r"[0-9a-f-]{36}(@\S*)?\n"
COMMANDS = {
    "run, done": (["run", "NAME", *RUN, "--", "true"], ""),
    "run, CMD failed": (["run", "NAME", *RUN, "-c", "exit 3"], ""),
    "run, left over": (["run", "NAME", *RUN, "-c", "sleep 600 & exit 0"], ""),
    "run, lost": (["run", "NAME", *RUN, "--", "sh", "-c",
                   "touch STARTED; sleep 600"], ""),
    "run, lost, json": (["run", "NAME", *RUN, "--log", "json", "-c",
                         "touch STARTED; sleep 600"], ""),
    "run, busy": (["run", "NAME", "-v", "-n", "--", "true"], ""),
    "run, no server": (["run", "NAME", "-n", "-u", NOTHING, "--", "true"], ""),
    "once, done": (["once", "NAME", *RUN, "-c", "echo out"], "out\n"),
    "once, CMD failed": (["once", "NAME", *RUN, "-c", "echo out; exit 1"],
                         "out\n"),
    "once, left over": (["once", "NAME", *RUN, "-c", "echo out; sleep 600 &"],
                        "out\n"),
    "once, lost": (["once", "NAME", *RUN, "-c",
                    "echo out; touch STARTED; sleep 600"], "out\n"),
    "once, in doubt": (["once", "NAME", *RUN, "-c", "echo out"], ""),
    "once, done before": (["once", "NAME", *RUN, "-c", "echo again"],
                          "out\n"),
    "once, not begun": (["once", "NAME", "-n", "-u", NOTHING, "--", "true"],
                        ""),
    "acquire, done": (["acquire", "NAME", "-v", "--ttl", "1m"], TOKEN),
    "acquire, lost": (["acquire", "NAME", "-v", "--ttl", "2s"], TOKEN),
    "acquire, busy": (["acquire", "NAME", "-v", "-n"], ""),
    "acquire, no server": (["acquire", "NAME", "-n", "-u", NOTHING], ""),
    "status, held": (["status", "NAME"], "NAME held by .*\n"),
    "status, free": (["status", "NAME"], "NAME free\n"),
    "status, no server": (["status", "NAME", "-u", NOTHING], ""),
}
# How the sentences of some events begin.
EVENTS = {
    "acquired": "acquired '",
    "skipped": "'.*' is (held by|done:)",
    "ended": "nxlock (run|once|acquire) '.*' ended with exit code ",
    "command-ended": r"\S+ (ended with exit code|was (ended|stopped|killed)) ",
}
# The states of an output. One that is full is never read; a slow reader begins
# when nxlock has nothing left to do.
BROKEN = ("disk", "closed", "gone")
STATES = ("full", "slow", *BROKEN)


class Pipe:
    """An output that is read, at once or later, or never."""

    def __init__(self, state):
        self.state = state
        full = state in ("full", "slow")
        self.reader, self.writer = full_pipe() if full else os.pipe()
        self.reading = state == "read"
        self.over = False
        self.got = b""

    def read(self):
        data = os.read(self.reader, 65536)
        self.got += data
        self.over = not data

    def text(self):
        return self.got.replace(b"\0", b"").decode()

    def close(self):
        os.close(self.reader)


def fill(path):
    """A socket of datagrams, until it takes none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        try:
            while True:
                sender.sendto(b"full", path)
        except BlockingIOError:
            pass


class Cell:
    """One run of nxlock, and what came of it."""

    def __init__(self, room, row, out="read", err="read", log="read"):
        self.room, self.row = room, row
        self.states = {"stdout": out, "stderr": err, "log": log}
        self.title = ", ".join([row.what] + [
            f"{stream} {state}" for stream, state in self.states.items()
            if state != "read"])
        self.name = re.sub(r"\W+", "-", self.title)
        self.pipes, self.log, self.bad = {}, [], []
        self.code = self.process = None
        self.started = os.path.join(room.server.folder, self.name)
        self.has_log = not row.what.startswith("status") and not (
            row.what.endswith("json"))

    # ----------------------------------------------------------- the run

    def prepare(self):
        what = self.row.what
        if what == "once, in doubt":
            nx(self.room.program, "once", self.name, "--", "false")
        elif what == "once, done before":
            nx(self.room.program, "once", self.name, "--", "echo", "out")
        elif what.endswith((", busy", ", held")):
            self.room.server.cli("SET", self.name, "stranger", "PX", "600000")

    def output(self, stream):
        """What Popen gets, and what a shell does to it."""
        state = self.states[stream]
        number = 1 if stream == "stdout" else 2
        if state == "disk":
            return os.open("/dev/full", os.O_WRONLY), ""
        if state == "closed":
            return os.open("/dev/null", os.O_WRONLY), f" {number}>&-"
        if state == "both":
            return os.dup(self.pipes["stdout"].writer), ""
        pipe = Pipe(state)
        if state == "gone":
            pipe.close()
        else:
            self.pipes[stream] = pipe
        return pipe.writer, ""

    def start(self, syslog):
        (out, close_out), (err, close_err) = map(
            self.output, ("stdout", "stderr"))
        words = [word.replace("NAME", self.name).replace(
            "STARTED", self.started) for word in COMMANDS[self.row.what][0]]
        if self.has_log:
            words[2:2] = ["--log", "syslog"]
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@"{close_out}{close_err}', "sh",
             self.room.program, *words], stdin=subprocess.DEVNULL, stdout=out,
            stderr=err, env={**os.environ, "NXLOCK_LOG_SOCKET": syslog})
        os.close(out)
        os.close(err)

    def on_event(self, event):
        prints = event in (["acquired"] if self.row.what.startswith("acquire")
                           else ["command-ended", "skipped"])
        if prints and self.expected() == TERM:
            self.process.terminate()
        # Words on standard error come at the very end.
        if event == "ended" or (
                prints and self.states["stderr"] in ("read", "both")):
            self.read_now()

    def is_writing(self):
        """The program waits in a write to a pipe. Before, it answers to SIGTERM
        with an exit code of its own."""
        try:
            with open(f"/proc/{self.process.pid}/wchan",
                      encoding="ascii") as where:
                return "pipe_write" in where.read()
        except FileNotFoundError:  # it has ended
            return False

    def read_now(self):
        for pipe in self.pipes.values():
            pipe.reading = pipe.reading or pipe.state == "slow"

    def take_datagram(self, data):
        if data != b"full":
            sentence = data.decode().split("]: ", 1)[1]
            self.log.append(sentence)
            self.on_event(next((event for event, pattern in EVENTS.items()
                                if re.match(pattern, sentence)), ""))

    def turn(self, syslog, began):
        pipes = [pipe for pipe in self.pipes.values()
                 if pipe.reading and not pipe.over]
        age = time.monotonic() - began
        read_log = self.states["log"] == "read" or age > READS_AT_S
        ready, _, _ = select.select(
            ([syslog] if read_log else []) + [pipe.reader for pipe in pipes],
            [], [], 0.05)
        if syslog in ready:
            self.take_datagram(syslog.recv(65536))
        for pipe in pipes:
            if pipe.reader in ready:
                pipe.read()
        if os.path.exists(self.started):
            os.unlink(self.started)
            self.room.server.cli("DEL", self.name)
        if age > READS_AT_S:
            self.read_now()
        if self.expected() == KILLED and self.is_writing():
            self.process.terminate()
        return bool(ready), age

    def run(self):
        self.prepare()
        path = os.path.join(self.room.server.folder, f"j{id(self)}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
            syslog.bind(path)
            if self.states["log"] == "slow":
                fill(path)
            self.start(path)
            began = time.monotonic()
            while self.code is None:
                self.code = self.process.poll()
                if self.turn(syslog, began)[1] > CELL_S:
                    self.process.kill()
                    self.bad.append(f"still runs after {CELL_S} s")
            while self.turn(syslog, began)[0]:  # what is left in them
                pass
        for pipe in self.pipes.values():
            pipe.close()
        self.judge()
        return self

    # --------------------------------------------------------- the verdict

    def expected(self):
        out = self.states["stdout"]
        return self.row.code if out in ("read", "slow") else getattr(
            self.row, out)

    def wants(self, good, what):
        if not good:
            self.bad.append(what)

    def judge(self):
        row, out = self.row, self.states["stdout"]
        printed = COMMANDS[row.what][1].replace("NAME", self.name)
        lost = out in BROKEN or (out == "full" and row.full != row.code)
        words = row.lost if lost and row.lost else row.words
        # Who ends a program needs no words, unless there is a doubt.
        if self.expected() == KILLED or (
                self.expected() == TERM and "doubt" not in words):
            words = ""
        self.wants(self.code == self.expected(),
                   f"exit code {self.code}, not {self.expected()}")
        err = "stdout" if self.states["stderr"] == "both" else "stderr"
        if self.states[err] in ("read", "slow"):
            said = self.pipes[err].text()
            in_log_only = words in ("exit code 0", "exit code 3")
            self.wants(in_log_only or re.search(words, said, re.S),
                       f"not said: {words}")
        if out in ("read", "slow") and err == "stderr":
            self.wants(re.fullmatch(printed, self.pipes["stdout"].text()),
                       f"not printed: {printed!r}")
        if self.has_log:
            self.judge_log(words)
        if row.what in ("acquire, done", "acquire, lost") and self.code != 0:
            self.wants(self.room.server.cli("EXISTS", self.name) == b"0\n",
                       "the lock is held without a token")

    def judge_log(self, words):
        """It has the words too, and its end does not contradict the code."""
        text = "\n".join(self.log)
        self.wants(re.search(words, text, re.S), f"not in the log: {words}")
        end = self.log[-1] if self.log else ""
        self.wants(re.match(EVENTS["ended"] + f"{self.code}: ", end),
                   f"the log ends with {end}")

    def tell(self, tap):
        notes = [*self.bad, *(f"{stream}: {pipe.text()}" for stream, pipe in
                              self.pipes.items()),
                 *(f"log: {sentence}" for sentence in self.log)]
        tap.check(not self.bad, self.title, "\n".join(notes))


def watchdog_logs(room):
    """The watchdog is the first to know of a loss, and the log is full. It must
    not wait, so nxlock logs it, once."""
    with Server() as server:
        started = os.path.join(server.folder, "started")
        reader, writer = full_pipe()
        # pylint: disable=consider-using-with
        run = subprocess.Popen(
            [room.program, "run", "late", "-u", server.url, "--ttl", "1500ms",
             "--grace", "100ms", "--log", "json", "-c",
             f"echo $$ > {started}; exec sleep 600"],
            stdin=subprocess.DEVNULL, stderr=writer)
        os.close(writer)
        await_(lambda: os.path.exists(started) and os.path.getsize(started))
        with open(started, encoding="ascii") as file:
            pid = int(file.read())
        server.freeze()
        room.check(await_(lambda: gone(pid)), "CMD is stopped in time")
        time.sleep(READS_AT_S)  # a slow reader
        got = b""
        while more := os.read(reader, 65536):
            got += more
        os.close(reader)
        room.equal(run.wait(), 79, "a loss that the watchdog finds first")
        events = [json.loads(line)["event"]
                  for line in got.replace(b"\0", b"").splitlines()
                  if line.startswith(b"{")]
        room.equal((events.count("lost"), events[-1:]), (1, ["ended"]),
                   "is logged once by a log that is read late")


class Room(Cases):
    def cells(self):
        for row in ROWS:
            for state in STATES:
                yield Cell(self, row, out=state)
                yield Cell(self, row, err=state)
            yield Cell(self, row, out="slow", err="both")
            # A short lease is not spent on waiting for a log.
            if not row.what.startswith("status") and (
                    row.what != "acquire, lost"):
                yield Cell(self, row, log="slow")

    def all(self):
        # Those that wait longest begin first; most of the time they wait.
        cells = sorted(self.cells(), key=lambda cell: (
            cell.states["stderr"] != "full" and cell.states["log"] == "read"))
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            for cell in pool.map(Cell.run, cells):
                cell.tell(self)


if __name__ == "__main__":
    sys.exit(play(Room, Room.all, watchdog_logs))
