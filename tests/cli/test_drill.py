#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nxlock drill: passes on real servers of every kind, notices each promise that
a build without guards breaks, blames no slow server, and leaves nothing behind.

Usage: test_drill.py NXLOCK NXLOCK-UNGUARDED
(tests/cli/unguarded.c, tests/cli/late_deadline.c)
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "docs"))

import acl_table
import rig

NXLOCK, UNGUARDED = sys.argv[1:]
TTL = "500ms"
SCENES = ["taking turns", "killed holder", "stopped holder", "former holder",
          "cut connection", "holder cut off", "lost answer"]

# What is switched off, in which scene that shows, and the words.
BROKEN = [
    ("UNGUARDED", "expired", "former holder",
     r"former holder, whose lease was over, removed the lock .*G2\)"),
    ("UNGUARDED", "expired", "former holder",
     r"two holders at once: .*guarantees.md, G1, G3\)"),
    ("UNGUARDED", "lapsed", "former holder",
     r"a holder whose lease was over could extend it .*G3\)"),
    ("SCRIPT", "release|~= ARGV[1]|== ''", "killed holder",
     r"did not compare the token before it deleted the key .*G2\)"),
    ("SCRIPT", "release|~= ARGV[1]|== ''", "killed holder",
     r"two holders at once: .*guarantees.md, G1, G3\)"),
    ("SCRIPT", "fence|last + 1, now|7, 7", "killed holder",
     r"fencing tokens do not grow: 7 came after 7 .*G7\)"),
]
# These wait ten seconds for a report that does not come.
BROKEN_LONG = [
    ("UNGUARDED", "loss", "holder cut off",
     r"could not be renewed was not reported .*G8\)"),
]


class Drill:
    """One that runs; several run at once, because they mostly sleep."""

    def __init__(self, *options, program=NXLOCK, ttl=TTL, **variables):
        self.process = subprocess.Popen(
            [program, "drill", "--ttl", ttl, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, **variables})
        self.out = self.err = ""
        self.ended = False

    def end(self):
        if not self.ended:
            self.out, self.err = self.process.communicate(timeout=90)
            self.ended = True
        return self.process.returncode

    @property
    def words(self):
        return f"code {self.process.returncode}\n{self.out}{self.err}"

    def lines(self, level):
        return [line for line in self.out.splitlines()
                if line.startswith(level)]


def keys_of(server):
    return sorted(server.cli("KEYS", "*").decode().split())


def actors(pid):
    """The processes of the drill with this pid, if it is alive."""
    path = f"/proc/{pid}/task/{pid}/children"
    try:
        with open(path, encoding="ascii") as children:
            return [int(child) for child in children.read().split()]
    except FileNotFoundError:
        return []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# ------------------------------------------------------------ what must pass


def check_kept(tap, what, drill):
    """0; or 75 on a busy machine, for which nothing may be blamed."""
    code = drill.end()
    tap.check(code in (0, 75) and not drill.lines("FAIL"),
              f"{what}: no promise is broken", drill.words)
    shown = [scene for scene in SCENES
             if any(line.startswith((f"ok    {scene}:", f"WARN  {scene}:"))
                    for line in drill.out.splitlines())]
    tap.equal(shown, SCENES, f"{what}: each scene has a line")
    tap.check("note  not tried: a failover" in drill.out,
              f"{what}: it says what it did not try", drill.words)
    return code


def start_kept(server, others):
    """{what: a drill}, of every kind of server."""
    three = ",".join(each.url for each in [server, *others])
    rules = acl_table.line(acl_table.read(), "bob", "shop", "p:", ("drill",),
                           (), False).split()
    server.cli(*rules, "on", ">secret")
    return {
        "unix socket": Drill(),
        "three servers": Drill("-u", three + "?guard_restarts=off"),
        "a user with no other rights": Drill(
            "shop", "--prefix", "p:", "-u", server.url + "?user=bob",
            NXLOCK_PASSWORD="secret"),
        "a process that is not scheduled": Drill(
            program=UNGUARDED, NXLOCK_TEST_LATE="near"),
        # The witness finds its lock before it has said that it has it.
        "a late answer": Drill(
            program=UNGUARDED, ttl="1s", NXLOCK_TEST_LATE="800"),
        "JSON": Drill("--json"),
    }


def check_json(tap, drill):
    code = drill.end()
    lines = [json.loads(line) for line in drill.out.splitlines()]
    tap.check(code in (0, 75) and
              all({"v", "level", "what", "finding"} <= set(line)
                  for line in lines), "JSON: a line for each", drill.words)
    tap.equal([line["what"] for line in lines if line["what"] in SCENES],
              SCENES, "JSON: in order")


# ------------------------------------------------------------ what must fail


def unguarded(how, value, ttl=TTL):
    return Drill(program=UNGUARDED, ttl=ttl, **{"NXLOCK_TEST_" + how: value})


def start_broken(cases):
    """{what is switched off: a drill}"""
    return {off: unguarded(*off) for off in {case[:2] for case in cases}}


def notices(drill, scene, words):
    return drill.end() == 1 and any(
        re.search(words, line)
        for line in drill.lines(f"FAIL  {scene}: a promise was"))


def check_broken(tap, cases, drills):
    for how, value, scene, words in cases:
        drill = drills[how, value]
        found = notices(drill, scene, words)
        if not found:  # a busy machine: once more, and slowly
            drill = unguarded(how, value, "2s")
            found = notices(drill, scene, words)
        tap.check(found, f"without '{value}': {scene}: {words}", drill.words)


# --------------------------------------------------------------- its own end


def check_signals(tap, server):
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        drill = Drill(ttl="2s")
        pid = drill.process.pid
        rig.await_(lambda: any(":drill:" in key for key in keys_of(server)))
        # While one of them is stopped.
        rig.await_(lambda: len(actors(pid)) == 3)
        own = actors(pid)
        os.kill(own[-1], signal.SIGSTOP)
        drill.process.send_signal(signo)
        code = drill.end()
        name = signo.name
        wanted = -9 if signo == signal.SIGKILL else -signo
        tap.check(code in (wanted, 128 + signo), f"{name}: its exit code",
                  drill.words)
        tap.check(rig.await_(lambda own=own: not any(map(alive, own)), 10),
                  f"{name}: all its processes are gone", str(own))
        if signo == signal.SIGKILL:
            ends = [int(server.cli("PTTL", key)) for key in keys_of(server)]
            tap.check(all(end > 0 or end == -2 for end in ends),
                      f"{name}: all that is left expires", str(ends))
            server.cli("FLUSHALL")
        else:
            tap.equal(keys_of(server), [], f"{name}: no key is left")


class Slow:
    """Drills at a server that hangs now and then, which must not be blamed."""

    def __init__(self, server):
        self.server = server
        self.drills = [Drill("-u", server.url, ttl="300ms") for _ in range(2)]
        self.thread = threading.Thread(target=self.hang)
        self.thread.start()

    def hang(self):
        while any(drill.process.poll() is None for drill in self.drills):
            time.sleep(0.1)
            self.server.process.send_signal(signal.SIGSTOP)
            time.sleep(0.25)
            self.server.process.send_signal(signal.SIGCONT)

    def check(self, tap):
        for drill in self.drills:
            code = drill.end()
            tap.check(
                code in (0, 75) and "promise was broken:" not in drill.out,
                "a server that hangs is not blamed", drill.words)
        self.thread.join()


def check_errors(tap, server):
    drill = Drill("-u", f"unix://{server.folder}/none")
    tap.equal(drill.end(), 69, "no server: 69")
    tap.check("FAIL  taking turns: cannot acquire: " in drill.out,
              "and the reason", drill.words)
    server.cli("ACL", "SETUSER", "eve", "on", ">secret", "~x", "+@all")
    drill = Drill("-u", server.url + "?user=eve", NXLOCK_PASSWORD="secret")
    tap.equal(drill.end(), 77, "no permission: 77")
    tap.check("NOPERM" in drill.out and "docs/acl.md" in drill.err,
              "and the remedy", drill.words)
    drill = Drill("-u", server.url + "?scheme=timestamp")
    tap.equal(drill.end(), 64, "scheme=timestamp: 64")
    tap.check("a drill is not possible: " in drill.err and not drill.out,
              "and the reason", drill.words)
    tap.equal(rig.nx(NXLOCK, "drill", "--ttl", "9s").returncode, 64,
              "a lease that is too long: 64")


def start_tls():
    """A server, and a drill there; None: this build has no TLS."""
    if not os.environ.get("NXLOCK_TEST_CERTS"):
        return None
    server = rig.TlsServer().__enter__()
    return server, Drill("-u", server.tls_url)


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
            rig.Server() as third, rig.Server() as slow:
        rig.clean_environment(server)
        server.cli("SET", "nxlock", "another's")
        cases = BROKEN
        if os.environ.get("NXLOCK_FULL") == "1":
            cases += BROKEN_LONG
        drills = start_kept(server, [second, third])
        broken = start_broken(cases)
        tls = start_tls()
        hanging = Slow(slow)
        check_json(tap, drills.pop("JSON"))
        for what, drill in drills.items():
            check_kept(tap, what, drill)
        check_broken(tap, cases, broken)
        if tls:
            check_tls(tap, tls)
        for each in (server, second, third):
            tap.equal(keys_of(each), ["nxlock"] if each is server else [],
                      "no key is left, and another's is untouched")
        server.cli("FLUSHALL")
        check_signals(tap, server)
        check_errors(tap, server)
        hanging.check(tap)
    return tap.done()


sys.exit(main())
