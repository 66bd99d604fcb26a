# SPDX-License-Identifier: MIT
"""What the Python rooms of the command's tests share: TAP and a real server.

Keeps: the server ends with the room, however the room ends.
"""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.append(os.path.join(os.path.dirname(__file__), "../support"))

import resp
import servers
from servers import READY_S as PATIENCE_S
from servers import await_

os.environ["NXLOCK_CONFIG"] = "none"  # no file of this machine


class Listener:
    """A port of 127.0.0.1. A thread for each connection runs serve()."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(one,),
                             daemon=True).start()

    def serve(self, one):
        raise NotImplementedError

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class Tap:
    def __init__(self):
        self.number = 0
        self.bad = 0
        self.about = ""  # the call that is examined: in front of all names

    def begin(self, good, name, note=""):
        """A call ended as it should: what is checked next is about it."""
        self.about = ""
        self.check(good, name, note)
        self.about = name + ": "

    def check(self, good, name, note=""):
        self.number += 1
        if not good:
            self.bad = 1
            # meson test --print-errorlogs shows this, and not standard output.
            why = [f"failed: {self.about}{name}", *str(note).splitlines()]
            print(*(f"# {line}" for line in why), sep="\n", file=sys.stderr,
                  flush=True)
        print(f"{'' if good else 'not '}ok {self.number} - "
              f"{self.about}{name}", flush=True)
        return good

    def equal(self, got, wanted, name):
        return self.check(got == wanted, name, f"{got!r}\nis not {wanted!r}")

    def skip(self, name, reason):
        self.number += 1
        print(f"ok {self.number} - {self.about}{name} # SKIP {reason}",
              flush=True)

    def may_use_acl(self, server, name):
        """If not, what has this name is skipped."""
        if server.has_acl():
            return True
        self.skip(name, f"Redis {server.version()} has no ACL")
        return False

    def done(self):
        print(f"1..{self.number}")
        return self.bad


def skip_all(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


class Server(servers.Server):
    """A redis-server whose folder is removed with it."""

    def __init__(self, *options):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        self.program = servers.PROGRAM
        if shutil.which(self.program) is None:
            if os.environ.get("NXLOCK_SKIP_LIVE") == "1":
                skip_all("no redis-server, and NXLOCK_SKIP_LIVE=1")
            print("Bail out! no redis-server (NXLOCK_SKIP_LIVE=1 skips)")
            sys.exit(1)
        super().__init__(tempfile.mkdtemp(), *options)
        self.url = "unix://" + self.socket

    def __enter__(self):
        if not await_(self.answers):
            self.__exit__()
            print("Bail out! redis-server does not start")
            sys.exit(1)
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder)

    def cli(self, *words, last=None):
        """The answer to a command, in lines as redis-cli prints them into a
        pipe; b"" without one. Its last word may hold any bytes."""
        words += (last,) if last is not None else ()
        try:
            return lines(resp.ask(self.socket, *words, timeout=60))
        except resp.Refused as why:
            return lines(str(why))
        except (ConnectionError, FileNotFoundError):  # none, or none yet
            return b""

    def version(self):
        """As INFO has it: "3.2.13". Valkey calls itself Redis 7.2."""
        found = re.search(rb"redis_version:([0-9.]+)",
                          self.cli("INFO", "server"))
        return found[1].decode() if found else "?"

    def has_acl(self):
        """Redis 6.0 has; Tap.may_use_acl() also says what is skipped."""
        return self.cli("ACL", "WHOAMI") == b"default\n"

    def has_tls(self):
        """Redis 6.0 has, unless it was built without."""
        return b"tls-port" in self.cli("CONFIG", "GET", "tls-port")


class Aged:
    """The server behind a socket, as an old version of it answers."""

    def __init__(self, program, profile, server):
        self.process = subprocess.Popen(
            [program, profile, server.socket], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.url = self.process.stdout.readline().decode().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()


def lines(reply):
    """As redis-cli prints it into a pipe."""
    if isinstance(reply, list):
        return b"".join(map(lines, reply)) or b"\n"
    text = "" if reply is None else str(reply)
    return text.encode("utf-8", "surrogateescape") + b"\n"


def free_port():
    """One of 127.0.0.1, none that the system gives to outgoing connections."""
    while True:
        port = random.randint(20001, 32767)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class TlsServer(Server):
    """A server that speaks TLS too, at a port of its own. Its folder has
    NAME.pem and NAME.key of its certificate, of "ca" and of "client";
    ../support/certs.h lists the names."""

    def __init__(self, *options, certificate="server", clients="no"):
        self.certificate, self.clients = certificate, clients
        self.port = free_port()
        super().__init__(*options)
        self.tls_url = (f"rediss://127.0.0.1:{self.port}"
                        f"?cacert={self.file('ca.pem')}")

    def start(self):
        if not os.path.exists(self.file("ca.pem")):
            self.make("ca", "client", self.certificate)
            self.options += (
                "--bind", "127.0.0.1", "--tls-port", str(self.port),
                "--tls-cert-file", self.file(self.certificate + ".pem"),
                "--tls-key-file", self.file(self.certificate + ".key"),
                "--tls-ca-cert-file", self.file("ca.pem"),
                "--tls-auth-clients", self.clients)
        super().start()

    def file(self, name):
        return os.path.join(self.folder, name)

    def make(self, *names):
        """These certificates, anew if they are there."""
        program = os.environ.get("NXLOCK_TEST_CERTS")
        if not program:
            shutil.rmtree(self.folder)
            skip_all("built without OpenSSL 3.0 or later (libssl-dev)")
        subprocess.run([program, self.folder, *names], check=True, timeout=60)

    def present(self, name):
        """Who connects from now on meets this certificate, made anew."""
        self.make(name)
        return self.cli(
            "CONFIG", "SET", "tls-cert-file", self.file(name + ".pem"),
            "tls-key-file", self.file(name + ".key")) == b"OK\n"


def full_pipe():
    """Both ends of a pipe that takes nothing, and would block a writer."""
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    try:
        while True:
            os.write(ends[1], b"\0" * 4096)
    except BlockingIOError:
        os.set_blocking(ends[1], True)
        return ends


def clean_environment(server):
    """What nxlock is to find in its environment."""
    with open(os.path.join(os.path.dirname(__file__), "variables"),
              encoding="ascii") as file:
        for name in file.read().split():
            os.environ.pop(name, None)
    os.environ["NXLOCK_URL"] = server.url


def nx(program, *words, **more):
    """nxlock to its end: code, output, what it said."""
    return subprocess.run(
        [program, *words], stdin=subprocess.DEVNULL, capture_output=True,
        timeout=60, check=False, **more)


class Cases(Tap):
    """Runs of nxlock, each with all that is expected of it in one result,
    whose name says what was run on what."""

    SECRET = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-")

    def __init__(self, program, server):
        super().__init__()
        self.program, self.server = program, server

    def gives(self, given, words, code, out="", *said, tokens=False, **more):
        """The output is out, a pattern, or for a function, what it takes for
        good. Standard error has these words, and none without any. No token is
        shown, unless tokens says that one is a name here."""
        if isinstance(words, str):
            words = words.split()
        done = nx(self.program, *words, **more)
        got, err = (text.decode("utf-8", "surrogateescape")
                    for text in (done.stdout, done.stderr))
        good = (out(got) if callable(out) else
                re.fullmatch(out, got, re.S)) and (
            done.returncode == code and bool(err) == bool(said) and
            all(word in err for word in said) and
            (tokens or not self.SECRET.search(got + err)))
        line = " ".join(os.path.basename(word) if os.path.isabs(word) else
                        word.replace(self.server.folder, "")
                        for word in words)
        name = re.sub(r"[^ -~]", "?", f"{given}: nxlock {line[:100]}: {code}")
        self.check(good, name,
                   f"exit code {done.returncode}\noutput: {got[:3000]!r}\n"
                   f"is to match: {out!r}\nstandard error: {err[:3000]!r}\n"
                   f"is to have: {said!r}")
        return got, err
