# SPDX-License-Identifier: MIT
"""What the tests of the command share: TAP, a real server, and runs of nxlock,
to their end or in the background.

Invariant: servers and what was launched end with the test, however it ends.
"""

import contextlib
import itertools
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
import traceback

sys.dont_write_bytecode = True  # the tree stays as it is
sys.path.append(os.path.join(os.path.dirname(__file__), "../support"))

import resp
import servers
from servers import READY_S as PATIENCE_S
from servers import await_
from terminal import Terminal

os.environ["NXLOCK_CONFIG"] = "none"  # no file of this machine

EXIT_CODES = {
    64: "USAGE", 65: "FINGERPRINT", 69: "UNAVAILABLE", 70: "INTERNAL",
    75: "BUSY", 76: "DOUBT", 77: "DENIED", 78: "CONFIG", 79: "LOST",
    124: "AT MOST", 125: "NO PROCESS", 126: "NOT EXECUTABLE", 127: "NOT FOUND",
}
SIGNALS = {int(signo): signo.name for signo in signal.Signals}


def code_name(code):
    """An exit code with what it means: "75 BUSY"."""
    name = (EXIT_CODES.get(code) or SIGNALS.get(code - 128) or
            SIGNALS.get(-code))
    return f"{code} {name}" if name else str(code)


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


def read_reply(stream):
    """The bytes of one reply, or of a command."""
    line = stream.readline()
    if not line:
        raise ConnectionError
    kind, rest = line[:1], line[1:-2]
    if kind == b"$" and int(rest) >= 0:
        return line + stream.read(int(rest) + 2)
    if kind == b"*":
        return line + b"".join(read_reply(stream)
                               for _ in range(max(int(rest), 0)))
    return line


class Between(Listener):
    """Between clients and the server, whose replies to one command it makes, or
    a function of the command. It notes what it was sent."""

    def __init__(self, server, word="", *replies):
        self.server, self.word, self.replies = server, word, replies
        self.met, self.sent = 0, set()
        super().__init__()

    def serve(self, one):
        with one, socket.socket(socket.AF_UNIX) as other, \
                contextlib.suppress(OSError, ValueError, IndexError):
            other.connect(self.server.socket)
            commands, replies = one.makefile("rb"), other.makefile("rb")
            while True:
                command = read_reply(commands)
                word = command.split(b"\r\n")[2].upper().decode()
                self.sent.add(word)
                if word == self.word:
                    self.met += 1
                    reply = self.replies[self.met % len(self.replies)]
                    one.sendall(reply(command) if callable(reply) else reply)
                else:
                    other.sendall(command)
                    one.sendall(read_reply(replies))


class Relay(Listener):
    """A port that leads each new connection to the next of some servers. What
    is passed on is what asks() and answers() make of the bytes as they come."""

    def __init__(self, *servers):
        self.servers = itertools.cycle(servers)
        super().__init__()
        self.url = f"redis://127.0.0.1:{self.port}"

    def asks(self, data):
        return data

    def answers(self, data):
        return data

    def serve(self, one):
        with one, socket.socket(socket.AF_UNIX) as other:
            other.connect(next(self.servers).socket)
            back = threading.Thread(target=self.pump, daemon=True,
                                    args=(other, one, self.answers))
            back.start()
            self.pump(one, other, self.asks)
            back.join()

    @staticmethod
    def pump(source, sink, edit):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(edit(data))
            sink.shutdown(socket.SHUT_WR)


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
            stack = ((os.path.basename(at.filename), at)
                     for at in traceback.extract_stack())
            calls = [f"at {file}:{at.lineno}: {at.line}" for file, at in stack
                     if file.startswith("test_")]
            why = [f"failed: {self.about}{name}",
                   *str(note)[:6000].splitlines(), *calls[:0:-1]]
            print(*(f"# {line}" for line in why), sep="\n", file=sys.stderr,
                  flush=True)
        print(f"{'' if good else 'not '}ok {self.number} - "
              f"{self.about}{name}", flush=True)
        return good

    def excludes(self, good, name, note=""):
        """A check that there were no two holders. If there were, that counts,
        whatever a second run would see (../support/tally.py)."""
        if not self.check(good, name, note):
            print(f"HARM: {self.about}{name}", flush=True)
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

    def is_free(self, key):
        return self.cli("EXISTS", key) == b"0\n"

    def version(self):
        """As INFO has it: "3.2.13". Valkey calls itself Redis 7.2."""
        found = re.search(rb"redis_version:([0-9.]+)",
                          self.cli("INFO", "server"))
        return found[1].decode() if found else "?"

    def has_acl(self):
        """Redis 6.0 has; Tap.may_use_acl() also says what is skipped."""
        return self.cli("ACL", "WHOAMI") == b"default\n"


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


class Launched:
    """nxlock in the background. What it prints goes to files, so that it never
    waits for a reader."""

    def __init__(self, cases, *words, before=(), **more):
        """before: a program that becomes nxlock, with its arguments."""
        self.cases, self.line = cases, cases.shown(words)
        self.out, self.err = (tempfile.TemporaryFile() for _ in range(2))
        self.process = subprocess.Popen(
            [*before, cases.program, *words], **{
                "stdin": subprocess.DEVNULL, "stdout": self.out,
                "stderr": self.err, **more})
        self.pid, self.send = self.process.pid, self.process.send_signal

    @staticmethod
    def read(file):
        return os.pread(file.fileno(), 1 << 20, 0).decode(
            "utf-8", "surrogateescape")

    def output(self):
        return self.read(self.out)

    def messages(self):
        return self.read(self.err)

    def says(self, pattern):
        """Waits until it has."""
        return await_(lambda: re.search(pattern, self.messages()))

    def is_running(self):
        return self.process.poll() is None

    def handles_signals(self):
        """So it has begun."""
        folder = f"/proc/{self.pid}/fd/"
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # closed since
                if "signalfd" in os.readlink(folder + fd):
                    return True
        return False

    def ends(self):
        """Its exit code, output and messages."""
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "none: it did not end in 60 s"
        return code, self.output(), self.messages()

    def gives(self, given, code, out="", *said):
        """Ends as Cases.gives() describes."""
        return self.cases.judge(given, self.line, self.ends(), code, out, said)


class Cases(Tap):
    """Runs of nxlock, each with all that is expected of it in one result,
    whose name says what was run on what."""

    SECRET = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-")

    def __init__(self, program, server):
        super().__init__()
        self.program, self.server = program, server

    def shown(self, words):
        """A command line as part of a name of TAP."""
        line = " ".join(
            os.path.basename(word) if os.path.isabs(word) else
            word.replace(self.server.folder, "")
            for word in map(os.fsdecode, words))
        return re.sub(r"[^ -~]", "?", line.replace("#", "N"))[:100]

    def judge(self, given, line, got, code, out, said, tokens=False):
        """One result of a run that ended: its code, output and messages."""
        ended, output, err = got
        good = (out(output) if callable(out) else
                re.fullmatch(out, output, re.S)) and (
            ended == code and bool(err) == bool(said) and
            all(word in err for word in said) and
            (tokens or not self.SECRET.search(output + err)))
        ended = ended if isinstance(ended, str) else code_name(ended)
        self.check(good, f"{given}: nxlock {line}: {code_name(code)}",
                   f"exit code {ended}\noutput: {output[:3000]!r}\n"
                   f"is to match: {out!r}\nstandard error: {err[:3000]!r}\n"
                   f"is to have: {said!r}")
        return output, err

    def gives(self, given, words, code, out="", *said, tokens=False, **more):
        """The output is out, a pattern, or for a function, what it takes for
        good. Standard error has these words, and none without any. No token is
        shown, unless tokens says that one is a name here."""
        if isinstance(words, str):
            words = words.split()
        done = nx(self.program, *words, **more)
        got = [text.decode("utf-8", "surrogateescape")
               for text in (done.stdout, done.stderr)]
        return self.judge(given, self.shown(words), (done.returncode, *got),
                          code, out, said, tokens)

    def launch(self, *words, **more):
        return Launched(self, *words, **more)

    def on_terminal(self, *words, keys=None, meanwhile=None, **more):
        """nxlock at a terminal, where these keys answer its question after
        that was done meanwhile: its exit code, and the screen."""
        with Terminal([self.program, *words], **more) as terminal:
            if keys is not None:
                await_(lambda: "[y/N] " in terminal.text())
                if meanwhile:
                    meanwhile()
                terminal.type(keys)
            code = terminal.leader.wait(60)
            terminal.drain.join(60)
        return code, terminal.text()

    def path(self, name):
        return os.path.join(self.server.folder, name)

    def has(self, name):
        return os.path.exists(self.path(name))

    def remove(self, *names):
        for name in filter(self.has, names):
            os.unlink(self.path(name))

    def write(self, name, text=""):
        """A file, which is there with all of its text at once."""
        with open(self.path(name + ".new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(self.path(name + ".new"), self.path(name))
        return self.path(name)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def is_free(self, key):
        return self.server.is_free(key)

    def calls(self, *commands):
        """How often the server was given them."""
        found = re.findall(rb"cmdstat_(\w+):calls=(\d+)",
                           self.server.cli("INFO", "commandstats"))
        return sum(int(count) for name, count in found
                   if name.decode() in commands)

    def attempts(self):
        """How often anybody tried to acquire anything, or gave up."""
        return self.calls("set", "eval", "evalsha")


def play(room, *parts, server=Server, options=(), more=(), least=None):
    """The main program of a test, and its exit code: these methods of a room
    with a server of its own, or those named after PATH-OF-NXLOCK and the
    arguments of more. Servers older than least are not tried."""
    for signo in signal.SIGHUP, signal.SIGQUIT:  # nohup and "&" ignore them
        signal.signal(signo, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nxlock, *arguments = map(os.path.abspath, sys.argv[1:2 + len(more)])
    wanted = sys.argv[2 + len(more):]
    with server(*options) as server:
        clean_environment(server)
        if least and tuple(map(int, server.version().split(".")[:2])) < least:
            skip_all(f"needs Redis {'.'.join(map(str, least))}")
        one = room(nxlock, server)
        vars(one).update(zip(more, arguments))
        for part in parts:
            if not wanted or part.__name__ in wanted:
                print(f"# {part.__name__}", flush=True)
                part(one)
                one.about = ""
        return one.done()
