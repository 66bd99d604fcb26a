# SPDX-License-Identifier: MIT
"""Where blocks.py runs what the documents show.

Invariant: nothing outside is touched and nothing stays. The server, its port,
the installed tree and every process belong to the run and end with it.
"""

import ctypes
import fcntl
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import servers

PORT = 6379
BLOCK_S = 60      # no block may take longer
INSIDE = "NXLOCK_BLOCKS_INSIDE"


class Wrong(Exception):
    """Why a block failed; one or more lines."""


def bring_up_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        name = b"lo".ljust(16, b"\0")
        answer = fcntl.ioctl(sock, 0x8913, name + bytes(24))  # get flags
        flags = struct.unpack("16xh", answer[:18])[0] | 1     # up
        fcntl.ioctl(sock, 0x8914, struct.pack("16sh22x", name, flags))


def enter_own_network():
    """Starts this program again with a loopback of its own. Returns only
    where that is not possible, with the reason."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return "there is no unshare"
    again = [unshare, "-n" if os.geteuid() == 0 else "-rn", sys.executable,
             os.path.abspath(sys.argv[0])]
    probe = subprocess.run(again + ["--probe"], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=30,
                           check=False)
    if probe.returncode != 0:
        return (probe.stderr.strip().splitlines() or ["unshare failed"])[-1]
    os.execve(unshare, again + sys.argv[1:], {**os.environ, INSIDE: "1"})
    return None


class Server(servers.Server):
    """A redis-server at a port too."""

    def __init__(self, directory, private):
        self.port = PORT
        if not private:
            with socket.socket() as sock:
                sock.bind(("127.0.0.1", 0))
                self.port = sock.getsockname()[1]
        super().__init__(directory, "--port", self.port, "--bind", "127.0.0.1")
        try:
            self.ready()
        except RuntimeError as why:
            raise Wrong(str(why)) from why


def prctl(option, value):
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants(spare):
    """The processes that were started from here, but for spare."""
    parent = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text("utf-8", "replace").rpartition(")")[2]
            state, above = fields.split()[:2]
        except (OSError, ValueError):
            continue
        if state != "Z":
            parent[int(entry.parent.name)] = int(above)
    found = {os.getpid()}
    while True:
        more = {pid for pid, above in parent.items()
                if above in found and pid not in found and pid != spare}
        if not more:
            return found - {os.getpid()}
        found |= more


def end_all(spare):
    while True:
        left = descendants(spare)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not left:
            return
        time.sleep(0.02)


class Place:
    """The installed build, the server, and what a shell sees of them."""

    def __init__(self, directory, build, private):
        self.directory, self.private = directory, private
        tree = pathlib.Path(build, "tests/docs/installed").resolve()
        found = sorted(tree.rglob("nxlock.pc"))
        if not found:
            raise Wrong(f"{tree}: nothing is installed there (meson.build)")
        self.bin = found[0].parents[2] / "bin"
        wrappers = directory / "wrap"
        # ccache looks in PATH for the compiler that it stands for.
        path = os.environ.get("PATH", "/usr/bin:/bin")
        wrappers.mkdir()
        for name in ("cc", "c++"):
            compiler = shutil.which(name)
            if compiler is None and name == "cc":
                raise Wrong("there is no cc")
            (wrappers / name).write_text(
                f"#!/bin/sh\nexport PATH={shlex.quote(path)}\n"
                f'exec {compiler} -Wall -Wextra -Werror "$@"\n')
            (wrappers / name).chmod(0o755)
        self.server = Server(directory, private)
        self.always = {"NXLOCK_CONFIG": "none"}
        if not private:  # the server that stands for the default one
            conf = directory / "nxlock.conf"
            conf.write_text(f"url = redis://127.0.0.1:{self.server.port}\n")
            conf.chmod(0o644)
            self.always["NXLOCK_CONFIG"] = str(conf)
        self.env = {
            **self.always,
            # For the programs that are compiled: it stands for the ldconfig of
            # a real install. The command does not need it.
            "LD_LIBRARY_PATH": str(found[0].parents[1]),
            "LC_ALL": "C", "TERM": "dumb",
            "PATH": f"{wrappers}:{self.bin}:{path}",
            "PKG_CONFIG_PATH": str(found[0].parent),
            "PKG_CONFIG_SYSROOT_DIR": str(tree),
        }

    def shown(self, text):
        """What was printed, as the document would show it."""
        if self.private:
            return text
        return re.sub(rf"\b{self.server.port}\b", str(PORT), text)

    def copy(self, text):
        """What the document shows, as it is run."""
        if self.private:
            return text
        return re.sub(rf"\b{PORT}\b", str(self.server.port), text)


def run(argv, env, cwd, terminal):
    """Returns the exit code and what was printed on both outputs."""
    if terminal:
        ours, theirs = pty.openpty()
        mode = termios.tcgetattr(theirs)
        mode[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, mode)
    else:
        ours, theirs = os.pipe()
    try:
        process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=theirs,
            stderr=theirs, start_new_session=True)
        printed = b""
        limit = time.monotonic() + BLOCK_S
        while True:
            ended = process.poll() is not None
            ready = select.select([ours], [], [], 0 if ended else 0.05)[0]
            if ready:
                printed += os.read(ours, 65536)
            elif ended:
                break
            if time.monotonic() > limit:
                process.kill()
                process.wait()
                raise Wrong(f"not over after {BLOCK_S} s; it printed\n"
                            + printed.decode("utf-8", "replace"))
    finally:
        os.close(theirs)
        os.close(ours)
    code = process.returncode
    return 128 - code if code < 0 else code, printed.decode("utf-8", "replace")
