# SPDX-License-Identifier: MIT
"""How the Python tests start redis-server and Sentinels: each on a unix socket
in a folder of its own. It dies with the process that started it. It counts as
started when it has answered, as stopped or killed when the kernel has said so:
nothing is assumed after a while."""

import os
import pathlib
import signal
import subprocess
import time

from resp import Refused, ask

PROGRAM = os.environ.get("NXLOCK_REDIS_SERVER") or "redis-server"
READY_S = 30  # for what comes at once, unless the machine is busy


def await_(condition, limit=READY_S):
    """True once the condition is; False if it was not within the limit."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Server:
    """options: more arguments of redis-server. env: its environment; None:
    ours."""

    ANSWERS_S = 60  # a command at most

    def __init__(self, folder, *options, env=None):
        self.folder, self.options, self.env = folder, options, env
        self.socket = os.path.join(folder, "s")
        self.start()

    def command(self):
        return [PROGRAM, "--port", "0", "--unixsocket", self.socket, "--dir",
                self.folder, "--save", "", "--appendonly", "no",
                "--daemonize", "no", *self.options]

    def start(self):
        """Does not wait; ready() does."""
        with open(os.path.join(self.folder, "server.log"), "ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *map(str, self.command())],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.env)

    def answers(self):
        try:
            return self.ask("PING") == "PONG"
        except (OSError, Refused):
            return False

    def ready(self):
        if not await_(self.answers):
            raise RuntimeError(f"{PROGRAM} does not answer:\n{self.log()}")

    def log(self):
        return pathlib.Path(self.folder, "server.log").read_text(
            "utf-8", "replace")

    def ask(self, *words):
        """One command on a connection of its own."""
        return ask(self.socket, *words, timeout=self.ANSWERS_S)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self):
        """Without its memory."""
        self.kill()
        self.start()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)


    def has_copied(self):
        """Is it a replica that has a copy of its primary? That may wait for a
        second before it sends what is written afterwards."""
        return "master_link_status:up" in self.ask("INFO", "replication")


def await_copies(primary, replicas, limit=READY_S):
    """True once these, which follow it, are sent what is written there; False
    if one of the two waits for that took longer than the limit."""
    if not await_(lambda: all(one.has_copied() for one in replicas), limit):
        return False
    primary.ask("SET", "copied", "")
    sent = await_(
        lambda: all(one.ask("EXISTS", "copied") for one in replicas), limit)
    primary.ask("DEL", "copied")
    return sent


class SentinelMixin:
    """A Sentinel instead, whose configuration begins with self.lines."""

    def command(self):
        file = pathlib.Path(self.folder, "sentinel.conf")
        if not file.exists():
            file.write_text("\n".join([
                f"unixsocket {self.socket}", f"dir {self.folder}",
                *self.lines, ""]))
        return [PROGRAM, file, "--sentinel"]
