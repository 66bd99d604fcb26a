#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_echo.py NXLOCK: a peer that repeats all that it was sent.

Neither the password nor a token may be in what any command prints.
"""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from rig import Cases, Listener, nx, play

PASSWORDS = ("Zqx7&Wv k9/mm", "correcthorse")
TOKEN = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-")
COMMANDS = (
    ["run", "k", "-nv", "--", "true"], ["acquire", "k", "-nv"],
    ["renew", "k", "6fa459ea-ee8a-4ca4-894e-db77e160355e"],
    ["release", "k", "6fa459ea-ee8a-4ca4-894e-db77e160355e"],
    ["status", "k", "-v"], ["status", "k", "--json"], ["wait", "k", "-w", "1s"],
    ["list"], ["list", "--json"], ["unlock", "k", "--force", "--yes"],
    ["doctor", "k"], ["doctor", "k", "--json"],
)


def line(heard):
    """As a line, which is what an error or a status is."""
    return heard.replace(b"\r\n", b" ")


FORMS = {
    "an error": lambda heard: b"-ERR you said " + line(heard) + b"\r\n",
    "a status": lambda heard: b"+" + line(heard) + b"\r\n",
    "a string": lambda heard: b"$%d\r\n%s\r\n" % (len(heard), heard),
    "garbage": lambda heard: heard,
    "the words alone": lambda heard: b" ".join(
        word for word in heard.split(b"\r\n") if word[:1] not in b"*$"),
    "HTTP": lambda heard: b"HTTP/1.1 400 " + line(heard) + b"\r\n\r\n",
    "an HTTP page": lambda heard: b"HTTP/1.1 400\r\n\r\n" +
                    quote(line(heard)).encode(),
}
INFO = b"redis_version:7.0.15\r\nrun_id:a\r\nrole:master\r\n"
HANDSHAKE = {
    b"AUTH": b"+OK\r\n", b"CLIENT": b":1\r\n", b"SCRIPT": b"+x\r\n",
    b"INFO": b"$%d\r\n%s\r\n" % (len(INFO), INFO),
}


def words_of(data):
    """The first words of complete commands; data is of RESP arrays."""
    return re.findall(rb"\*\d+\r\n\$\d+\r\n([A-Z]+)\r\n", data)


class Peer(Listener):
    """Repeats what it was sent, at once or once it has let the client in."""

    def __init__(self, form, polite):
        self.form, self.polite = form, polite
        super().__init__()

    def serve(self, one):
        heard = b""
        try:
            while True:
                got = one.recv(65536)
                if not got:
                    return
                heard += got
                short = re.sub(rb"\$\d{3,}\r\n.*?\r\n(?=\*|$)", b"", heard,
                               flags=re.S)[-900:]
                for word in words_of(got):
                    one.sendall(HANDSHAKE[word]
                                if self.polite and word in HANDSHAKE
                                else self.form(short))
        except OSError:
            return
        finally:
            one.close()


class Room(Cases):
    def leak(self, command, url, password):
        """What a command shows and must not; None."""
        got = nx(self.program, command[0], "-u", url, *command[1:])
        said = got.stdout + got.stderr
        parts = [password.encode(), quote(password).encode(),
                 password[:8].encode()]
        bad = [part for part in parts if part.lower() in said.lower()]
        bad += TOKEN.findall(said)
        return f"{command}: {bad}\n{said.decode('utf-8', 'replace')}" \
            if bad or not said.strip() else None

    def meet(self, name, polite, password):
        with Peer(FORMS[name], polite) as peer:
            url = (f"redis://:{quote(password, safe='')}@127.0.0.1:"
                   f"{peer.port}?timeout_ms=500")
            with ThreadPoolExecutor(4) as pool:
                leaks = [leak for leak in pool.map(
                    lambda command: self.leak(command, url, password),
                    COMMANDS) if leak]
        when = "after the login" if polite else "at once"
        self.check(not leaks, f"{name}, {when}, {password!r}",
                   "\n".join(leaks))

    def all(self):
        for name in FORMS:
            for polite in (False, True):
                for password in PASSWORDS:
                    self.meet(name, polite, password)


if __name__ == "__main__":
    sys.exit(play(Room, Room.all))
