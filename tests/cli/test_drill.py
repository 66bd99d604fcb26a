#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nxlock drill: passes on real servers of every kind, notices each promise that
a server, another client or a build without a guard breaks, blames neither a
slow server nor a slow machine, and leaves nothing behind.

Usage: test_drill.py NXLOCK NXLOCK-UNGUARDED (tests/cli/unguarded.c)
"""

import itertools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "docs"))

import acl_table
import rig

NXLOCK, UNGUARDED = sys.argv[1:]
TTL = "500ms"
CHECKS = ["contention", "crashed holder", "cut connection", "holder cut off"]

# What another client does to the key, in which check, and what the drill finds:
# it has to happen within the lease of 4 s.
MEDDLING = [
    ("crashed", "crashed holder", "DEL",
     r"two holders at once: .*guarantees.md, G1, G3\)"),
    ("permanent", "crashed holder", "PERSIST",
     r"its lease of 4s was not over \(guarantees.md, G4\)"),
    ("renewed", "cut connection", "DEL",
     r"disappeared from the server|two holders at once"),
    ("cut-off", "holder cut off", "DEL",
     r"two holders at once: .*guarantees.md, G1, G3\)"),
]
# Of a request; a busy machine may need some. In a URL, for all servers.
TIMEOUT = "timeout_ms=10000"
# Longer than a loss may be overdue, and than a lock is waited for.
STOPPED_S = 12


class Drill:
    """One that runs; several run at once, because they mostly sleep."""

    def __init__(self, *options, program=NXLOCK, ttl=TTL, **variables):
        self.files = [tempfile.TemporaryFile() for _ in range(2)]
        self.process = subprocess.Popen(
            [program, "drill", "--ttl", ttl, *options],
            stdin=subprocess.DEVNULL, stdout=self.files[0],
            stderr=self.files[1], env={**os.environ, **variables})

    def read(self, number):
        """What it has written; without a seek, which would move its end."""
        return os.pread(self.files[number].fileno(), 1 << 20, 0).decode()

    @property
    def out(self):
        return self.read(0)

    @property
    def err(self):
        return self.read(1)

    def end(self):
        return self.process.wait(timeout=120)

    @property
    def words(self):
        return f"code {self.process.returncode}\n{self.out}{self.err}"

    def lines(self, level):
        return [line for line in self.out.splitlines()
                if line.startswith(level)]

    def broke(self, check, words):
        return self.end() == 1 and any(
            re.search(words, line)
            for line in self.lines(f"FAIL  {check}: a promise was broken: "))

    def await_check(self, check):
        """The check before this one has printed its line."""
        before = CHECKS[CHECKS.index(check) - 1]
        return rig.await_(lambda: f"  {before}: " in self.out, 60)


def keys_of(server, pattern="*"):
    """All but those that only say when a line last left a gap, which are gone
    some seconds later."""
    keys = server.cli("KEYS", pattern).decode().split()
    return sorted(key for key in keys if not key.endswith(":nxl-g"))


def in_background(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    return thread


# ------------------------------------------------------------ what must pass


def check_kept(tap, what, drill):
    """0; or 75 on a busy machine, for which nothing may be blamed."""
    code = drill.end()
    tap.check(code in (0, 75) and not drill.lines("FAIL"),
              f"{what}: no promise is broken", drill.words)
    shown = [check for check in CHECKS
             if any(line.startswith((f"ok    {check}:", f"WARN  {check}:"))
                    for line in drill.out.splitlines())]
    tap.equal(shown, CHECKS, f"{what}: each check has a line")
    tap.check("note  not tried: a failover" in drill.out,
              f"{what}: it says what it did not try", drill.words)


def start_kept(server, others):
    """{what: a drill}, of every kind of server."""
    three = ",".join(each.url for each in [server, *others])
    rules = acl_table.line(acl_table.read(), "bob", "shop", "p:", ("drill",),
                           (), False).split()
    users = {}
    if server.has_acl():
        server.cli(*rules, "on", ">secret")
        server.cli("ACL", "SETUSER", "tom", "on", ">secret", "~*", "&*",
                   "+@all", "-@scripting")
        users = {
            "without scripts": Drill(
                "-u", server.url + f"?user=tom&{TIMEOUT}",
                NXLOCK_PASSWORD="secret"),
            "a user with no other rights": Drill(
                "shop", "--prefix", "p:", "-u",
                server.url + f"?user=bob&{TIMEOUT}", NXLOCK_PASSWORD="secret"),
        }
    return {
        **users,
        "unix socket": Drill(),
        "three servers": Drill("-u", three + f"?guard_restarts=off&{TIMEOUT}"),
        "two of three servers": Drill(
            "-u", f"{server.url},{others[0].url},unix:///none"
            f"?guard_restarts=off&{TIMEOUT}"),
        "by polling": Drill("-u", server.url + f"?poll=1&{TIMEOUT}"),
        "timestamps": Drill(
            "stamps", "-u", server.url + f"?scheme=timestamp&{TIMEOUT}"),
        "JSON": Drill("--json"),
    }


def check_json(tap, drill):
    code = drill.end()
    lines = [json.loads(line) for line in drill.out.splitlines()]
    tap.check(code in (0, 75) and
              all({"v", "level", "what", "finding"} <= set(line)
                  for line in lines), "JSON: a line for each", drill.words)
    tap.equal([line["what"] for line in lines if line["what"] in CHECKS],
              CHECKS, "JSON: in order")


# ------------------------------------------------------------ what must fail


class Meddler:
    """A drill, and another client that changes its lock's key."""

    def __init__(self, server, name, check, verb):
        self.server, self.name = server, name
        self.drill = Drill(name, ttl="4s")
        self.thread = in_background(self.meddle, check, verb)

    def key(self):
        found = keys_of(self.server, self.name + ":drill:*")
        return found[0] if found else None

    def meddle(self, check, verb):
        if self.drill.await_check(check) and rig.await_(self.key):
            self.server.cli(verb, self.key())

    def end(self):
        self.drill.end()
        self.thread.join()
        for key in keys_of(self.server, self.name + ":drill:*"):
            self.server.cli("DEL", key)  # it was made permanent


class Balancer(rig.Listener):
    """One address of several servers, in turn."""

    def __init__(self, *servers):
        self.next = itertools.cycle(servers)
        super().__init__()

    def serve(self, one):
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(next(self.next).socket)
            back = in_background(self.copy, other, one)
            self.copy(one, other)
            back.join()
        one.close()

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def forget(drill, server):
    """The server restarts, without its data. It dies with the thread that
    started it, so this stays until the drill is over."""
    if drill.await_check("cut connection") and rig.await_(
            lambda: keys_of(server, "*:drill:*")):
        server.restart()
    drill.end()


# ------------------------------------------------------------ who is not blamed


class Slow:
    """Drills at a server that hangs now and then, one of which hangs too."""

    def __init__(self, server):
        self.drills = [Drill("-u", f"{server.url}?{TIMEOUT}", ttl="300ms")
                       for _ in range(2)]
        self.hanging = [server.process, self.drills[0].process]
        self.thread = in_background(self.hang)

    def hang(self):
        while any(drill.process.poll() is None for drill in self.drills):
            time.sleep(0.1)
            for process in self.hanging:
                process.send_signal(signal.SIGSTOP)
            time.sleep(0.25)
            for process in self.hanging:
                process.send_signal(signal.SIGCONT)

    def check(self, tap):
        for drill in self.drills:
            code = drill.end()
            tap.check(code in (0, 75) and
                      "a promise was broken" not in drill.out,
                      "a server that hangs is not blamed", drill.words)
        self.thread.join()


class Stopped:
    """A drill that is stopped in a check, for longer than it waits."""

    def __init__(self, server, check):
        self.server, self.check_name = server, check
        self.name = "stopped-" + check.replace(" ", "-")
        self.drill = Drill(self.name)
        self.thread = in_background(self.stop)

    def stop(self):
        if self.drill.await_check(self.check_name) and rig.await_(
                lambda: keys_of(self.server, self.name + ":drill:*")):
            self.drill.process.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED_S)
            self.drill.process.send_signal(signal.SIGCONT)

    def check(self, tap):
        code = self.drill.end()
        self.thread.join()
        tap.check(code in (0, 75) and
                  "a promise was broken" not in self.drill.out,
                  f"stopped in '{self.check_name}': the server is not blamed",
                  self.drill.words)


# --------------------------------------------------------------- its own end


def check_signals(tap, server):
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        drill = Drill(ttl="2s")
        drill.await_check("crashed holder")
        rig.await_(lambda: keys_of(server, "*:drill:*"))
        drill.process.send_signal(signo)
        code = drill.end()
        name = signo.name
        wanted = -9 if signo == signal.SIGKILL else -signo
        tap.check(code in (wanted, 128 + signo), f"{name}: its exit code",
                  drill.words)
        if signo == signal.SIGKILL:
            ends = [int(server.cli("PTTL", key)) for key in keys_of(server)]
            tap.check(all(end > 0 or end == -2 for end in ends),
                      f"{name}: all that is left expires", str(ends))
            server.cli("FLUSHALL")
        else:
            tap.equal(keys_of(server), [], f"{name}: no key is left")


def check_errors(tap, server):
    drill = Drill("-u", f"unix://{server.folder}/none")
    tap.equal(drill.end(), 69, "no server: 69")
    tap.check("FAIL  contention: cannot acquire: " in drill.out and
              "every promise" not in drill.out, "and the reason", drill.words)
    drill = Drill("-u", f"{server.url},unix:///none,unix:///nothing")
    tap.equal(drill.end(), 69, "one of three servers: 69")
    if tap.may_use_acl(server, "users with fewer rights, and no permission"):
        server.cli("ACL", "SETUSER", "eve", "on", ">secret", "~x", "+@all")
        drill = Drill("-u", server.url + "?user=eve", NXLOCK_PASSWORD="secret")
        tap.equal(drill.end(), 77, "no permission: 77")
        tap.check("NOPERM" in drill.out and "docs/acl.md" in drill.err,
                  "and the remedy", drill.words)
    drill = Drill("n" * 65530)
    tap.equal(drill.end(), 64, "a NAME that is too long for a longer one: 64")
    tap.check("a drill is not possible: " in drill.err and not drill.out,
              "and the reason", drill.words)
    tap.equal(rig.nx(NXLOCK, "drill", "--ttl", "9s").returncode, 64,
              "a lease that is too long: 64")


def start_tls(tap, plain):
    """A server, and a drill there; None: there is no TLS."""
    if not os.environ.get("NXLOCK_TEST_CERTS"):
        return None
    if not plain.has_tls():
        tap.skip("TLS", f"Redis {plain.version()} has no TLS")
        return None
    server = rig.TlsServer().__enter__()
    return server, Drill("-u", f"{server.tls_url}&{TIMEOUT}")


def check_tls(tap, tls):
    server, drill = tls
    try:
        check_kept(tap, "TLS", drill)
        tap.equal(keys_of(server), [], "TLS: no key is left")
    finally:
        server.__exit__()


def main():
    tap = rig.Tap()
    with rig.Server() as server, rig.Server() as second, \
            rig.Server() as third, rig.Server() as slow, \
            rig.Server() as forgetful, Balancer(second, third) as balancer:
        rig.clean_environment(server)
        os.environ["NXLOCK_URL"] = f"{server.url}?{TIMEOUT}"
        server.cli("SET", "nxlock", "another's")
        kept = start_kept(server, [second, third])
        tls = start_tls(tap, server)
        hanging = Slow(slow)
        stopped = [Stopped(server, check) for check in CHECKS[1:]]
        meddlers = [(Meddler(server, name, check, verb), check, words)
                    for name, check, verb, words in MEDDLING]
        balanced = Drill("-u", f"redis://127.0.0.1:{balancer.port}?{TIMEOUT}")
        forgotten = Drill("-u", f"{forgetful.url}?{TIMEOUT}", ttl="4s")
        forgetting = in_background(forget, forgotten, forgetful)
        unguarded = Drill(program=UNGUARDED, NXLOCK_TEST_UNGUARDED="1")

        check_json(tap, kept.pop("JSON"))
        for what, drill in kept.items():
            check_kept(tap, what, drill)
        if tls:
            check_tls(tap, tls)
        for meddler, check, words in meddlers:
            meddler.end()
            tap.check(meddler.drill.broke(check, words),
                      f"{meddler.name}: {check}: {words}", meddler.drill.words)
        tap.check(balanced.broke("contention", "two holders at once"),
                  "two servers behind one address", balanced.words)
        forgetting.join()
        tap.check(forgotten.broke("cut connection",
                                  "disappeared|two holders at once"),
                  "a server that loses its data", forgotten.words)
        tap.check(unguarded.broke("holder cut off", r"not reported .*G8\)"),
                  "a loss that is not reported", unguarded.words)
        for each in stopped:
            each.check(tap)
        hanging.check(tap)
        # On a busy machine its last lease ended before the release.
        for key in keys_of(server, "stamps:drill:*"):
            server.cli("DEL", key)
        for each in (server, second, third):
            wanted = ["nxlock"] if each is server else []
            tap.check(rig.await_(lambda e=each, w=wanted: keys_of(e) == w),
                      "no key is left, and another's is untouched",
                      str(keys_of(each)))
        server.cli("FLUSHALL")
        check_signals(tap, server)
        check_errors(tap, server)
    return tap.done()


sys.exit(main())
