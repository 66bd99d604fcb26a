# SPDX-License-Identifier: MIT
"""A terminal of its own for the rooms that need one, and what is at it.

Keeps: what is started at it gets its HUP when the room is done with it.
"""

import fcntl
import os
import pty
import subprocess
import termios
import threading

CTRL_C = b"\x03"
CTRL_Z = b"\x1a"
CTRL_BACKSLASH = b"\x1c"


def state(pid):
    """The letter that /proc has for it; None: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except (FileNotFoundError, ProcessLookupError):
        return None


def gone(pid):
    """Nothing of it is left, or only its remains."""
    return state(pid) in (None, "Z")


def is_pending(pid, signo):
    """It was sent, and is not taken yet."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        sets = dict(line.split(":", 1) for line in file)
    return any(int(sets[name], 16) & 1 << (signo - 1)
               for name in ("SigPnd", "ShdPnd"))


def parent(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


class Terminal:
    """A session whose leader is command; the screen is kept as it grows."""

    def __init__(self, command, before=None, **more):
        self.master, slave = pty.openpty()

        def begin():
            # By name: what is at 0 to 2 may be something else.
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            if before is not None:
                before(slave)

        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        streams.update(more)
        # pylint: disable=subprocess-popen-preexec-fn
        self.leader = subprocess.Popen(
            command, start_new_session=True, preexec_fn=begin,
            pass_fds=(), **streams)
        os.close(slave)
        self.screen = bytearray()
        self.drain = threading.Thread(target=self.read, daemon=True)
        self.drain.start()

    def read(self):
        while True:
            try:
                self.screen += os.read(self.master, 65536)
            except OSError:  # nobody has it open any more
                return

    def type(self, keys):
        os.write(self.master, keys)

    def foreground(self):
        """The group that has the terminal."""
        return os.tcgetpgrp(self.master)

    def text(self):
        return self.screen.replace(b"\r\n", b"\n").decode("utf-8", "replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leader.kill()  # and the system sends HUP to the foreground
        self.leader.wait()
        self.drain.join(10)
        os.close(self.master)
