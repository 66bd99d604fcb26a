# SPDX-License-Identifier: MIT
"""What the Python tests ask a real server themselves, mostly one command on a
connection of its own, over the server's unix socket. Words and strings may hold
any bytes: in str, those that are not UTF-8 are surrogates."""

import socket


class Refused(Exception):
    """The server's error reply."""


def _decode(data):
    return data.decode("utf-8", "surrogateescape")


def _read(stream):
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("the server closed the connection")
    kind, rest = line[:1], line[1:-2]
    if kind == b"-":
        raise Refused(_decode(rest))
    if kind == b":":
        return int(rest)
    if kind == b"+":
        return _decode(rest)
    if int(rest) < 0:
        return None
    if kind == b"$":
        return _decode(stream.read(int(rest) + 2)[:-2])
    return [_read(stream) for _ in range(int(rest))]


class Link:
    """A connection to a server, over that socket."""

    def __init__(self, link):
        self.link, self.stream = link, link.makefile("rb")

    def ask(self, *words):
        """The reply: str, int, None, or a list of these."""
        parts = [word if isinstance(word, bytes)
                 else str(word).encode("utf-8", "surrogateescape")
                 for word in words]
        self.link.sendall(b"*%d\r\n" % len(parts) + b"".join(
            b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        return _read(self.stream)

    def close(self):
        self.stream.close()
        self.link.close()


def at_socket(path, timeout):
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(timeout)
    try:
        link.connect(path)
    except OSError:
        link.close()
        raise
    return Link(link)


def ask(path, *words, timeout):
    """One command on a connection of its own."""
    link = at_socket(path, timeout)
    try:
        return link.ask(*words)
    finally:
        link.close()
