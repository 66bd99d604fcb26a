#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_events.py NXLOCK: --log writes one line for each event of a run.

Each case runs with --log syslog, json and file:PATH at the same time, against
a real server. It finds the same events, in the same order, in each. A log that
is not read or is full neither delays nor fails a run, and no log has a secret.
"""

import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

from rig import Cases, Server, await_, full_pipe, nx, play

SECRET = "opensesame"
LOGS = ("syslog", "file", "json")


class Daemon:
    """A socket of syslog, which keeps what it gets."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.settimeout(0.05)
        self.got = []
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            try:
                data = self.socket.recv(65536)
                self.got.append(data)
            except socket.timeout:
                pass

    def take(self):
        """All up to the end of a run."""
        await_(lambda: self.got and b"ended with exit code" in self.got[-1] and
               b"nxlock " in self.got[-1])
        got, self.got = self.got, []
        return got


def syslog_event(data):
    line = data.decode()
    match = re.fullmatch(r"<(\d+)>[A-Z][a-z]{2} [ \d]\d [\d:]{8} "
                         r"nxlock\[\d+\]: (.*)", line)
    return {"priority": int(match[1]) & 7, "facility": int(match[1]) >> 3,
            "message": match[2], "bytes": data}


class File:
    """The file of --log file:PATH, as a Daemon."""

    def __init__(self, path):
        self.path = path

    @property
    def got(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, "rb") as file:
            return file.read().splitlines()

    def take(self):
        """All up to the end of a run."""
        await_(lambda: self.got and b"ended with exit code" in self.got[-1] and
               b"nxlock " in self.got[-1])
        got = self.got
        os.unlink(self.path)
        return got


def file_event(data):
    match = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
                         r"nxlock\[\d+\]: (.*)", data.decode())
    return {"message": match[1], "bytes": data}


def json_event(data):
    event = json.loads(data)
    assert event["v"] == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
                        event["time"]), event
    return {**event, "bytes": data}


# kind, what the sentence has, facts of the event
STARTED = ("started", r"^started \S+, process \d+$", {})
RELEASED = ("released", "^released 'NAME', held for ", {})


def acquired(more=""):
    return ("acquired", "^acquired 'NAME' .*for " + more,
            {"priority": 6, "waited_ms": int, "left_ms": int})


def ended(result, code, **facts):
    return ("ended", f"ended with exit code {code}: ",
            {"result": result, "code": code, **facts})


def command_ended(code, how=None):
    return ("command-ended", how or f"ended with exit code {code} after ",
            {"code": code, "ran_ms": int, "priority": 4 if code else 6})


def skipped(reason, sentence):
    return ("skipped", sentence, {"reason": reason, "priority": 5})


LOST_PRIORITY = {"priority": 3}
DOWN = ("server-down", "cannot connect", {"priority": 3, "why": str})


class Room(Cases):
    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        os.environ.pop("NXLOCK_LOG_SOCKET", None)
        self.daemons = {"syslog": Daemon(self.path("syslog")),
                        "file": File(self.path("log"))}
        self.old = Server()  # when its turn has come
        self.everything = []  # that any log got
        self.secrets = []

    def environment(self, log):
        environment = dict(os.environ)
        if log == "syslog":
            environment["NXLOCK_LOG_SOCKET"] = self.daemons[log].path
        return environment

    def start(self, log, words, stdout=subprocess.DEVNULL):
        words = [f"k-{log}" if word == "NAME" else word for word in words]
        at = words.index("--") if "--" in words else len(words)
        words[at:at] = ["--log", log if log != "file" else
                        "file:" + self.daemons[log].path]
        return subprocess.Popen(
            [self.program, *words], stdin=subprocess.DEVNULL,
            stdout=stdout, stderr=open(self.stderr(log), "wb"),
            env=self.environment(log))

    def stderr(self, log):
        return os.path.join(self.server.folder, "stderr-" + log)

    def all_say(self, text):
        """Waits until this is in each log."""
        return await_(lambda: text in open(self.stderr("json"), "rb").read()
                      and all(any(text in data for data in daemon.got)
                              for daemon in self.daemons.values()))

    def events(self, log, stderr):
        if log == "json":
            # connect_advise() and the like are messages, not events.
            lines = [line for line in stderr.splitlines()
                     if not line.startswith(b"nxlock: ")]
            events = [json_event(line) for line in lines]
        else:
            read = syslog_event if log == "syslog" else file_event
            events = [read(data) for data in self.daemons[log].take()]
        self.everything += [event["bytes"] for event in events]
        return events

    def agree(self, event, log, wanted):
        kind, sentence, facts = wanted
        if not re.search(sentence.replace("NAME", f"k-{log}"),
                         event["message"]):
            return False
        if log == "syslog":
            return event["priority"] == facts.get(
                "priority", event["priority"]) and event["facility"] == 1
        if log == "file":
            return True
        if event["event"] != kind or event["name"] != f"k-{log}":
            return False
        return all(isinstance(event.get(fact), value)
                   if isinstance(value, type) else event.get(fact) == value
                   for fact, value in facts.items())

    def case(self, what, words, wanted, code=0, meanwhile=None, **more):
        """All of wanted, in this order, is in each log; 'renewed' may come in
        between, any number of times."""
        running = {log: self.start(log, words, **more) for log in LOGS}
        if meanwhile:
            meanwhile(running)
        for log, process in running.items():
            process.wait(timeout=60)
            # If nxlock was killed, its watchdog may still be at work.
            if log == "json":
                await_(lambda: b'"event":"ended"' in
                       open(self.stderr(log), "rb").read())
            with open(self.stderr(log), "rb") as file:
                stderr = file.read()
            if code is not None and process.returncode != code:
                self.check(False, f"{what}: {log}: exit code",
                           f"{process.returncode}\n{stderr.decode()}")
            kinds = [kind for kind, *_ in wanted]
            got = self.events(log, stderr)
            left = [event for event in got if "renewed" in kinds or
                    not event["message"].startswith("renewed '")
                    or "after all" in event["message"]]
            if "renewed" in kinds:
                first = True
                for event in list(left):
                    if event["message"].startswith("renewed '"):
                        if not first:
                            left.remove(event)
                        first = False
            good = len(left) == len(wanted) and all(
                self.agree(event, log, one)
                for event, one in zip(left, wanted))
            self.check(good, f"{what}: {log}", "\n".join(
                str(event) for event in left) + f"\nwanted {wanted}")

    def for_each(self, *words):
        """The commands, for the lock of each log."""
        outputs = []
        for log in LOGS:
            got = nx(self.program, *[word.replace("NAME", f"k-{log}")
                                    for word in words])
            outputs.append(got.stdout.decode().strip())
        return outputs

    def clear(self):
        self.server.cli("FLUSHALL")


def of_a_run(room):
    room.case("a run", ["run", "NAME", "--ttl", "1500ms", "--", "sleep", "0.7"],
              [acquired("1.5s, fencing token"), STARTED,
               ("renewed", "^renewed 'NAME', ", {"priority": 7}),
               command_ended(0), RELEASED,
               ended("done", 0, ran_ms=int, held_ms=int, fence=int)])
    room.case("a run without a fencing token", [
        "run", "NAME", "-u", room.server.url + "?scheme=timestamp", "--",
        "true"],
        [acquired("30s$"), ("unfenced", "^'NAME' has no fencing token, ",
                            {"priority": 4, "why": str}),
         STARTED, command_ended(0), RELEASED, ended("done", 0)])
    room.case("a command that fails", [
        "run", "NAME", "--at-least", "1m", "--", "sh", "-c",
        f"true {SECRET}; exit 3"],
        [acquired(), STARTED, command_ended(3),
         ("left-held", "stays locked for ", {"left_ms": int}),
         ended("failed", 3)], code=3)
    room.clear()
    room.case("a command that does not exist",
              ["run", "NAME", "--", "/no/such"],
              [acquired(), STARTED,
               command_ended(127, "could not be executed"), RELEASED,
               ended("failed", 127)], code=127)
    room.case("--at-most", ["run", "NAME", "--at-most", "100ms", "--", "sleep",
                            "60"],
              [acquired(), STARTED,
               command_ended(124, "was stopped by --at-most"), RELEASED,
               ended("failed", 124)], code=124)


def waiting_and_skipped(room):
    tokens = room.for_each("acquire", "NAME")
    room.secrets += tokens
    room.case("busy", ["run", "NAME", "-n", "--", "true"],
              [skipped("busy", "^'NAME' is held by "), ended("busy", 75)],
              code=75)
    room.case("busy for -w", ["run", "NAME", "-w", "2500ms", "--", "true"],
              [("waiting", "^waiting for 'NAME': held by ",
                {"holder": str, "left_ms": int}),
               skipped("busy", "^'NAME' is held by "),
               ended("busy", 75, waited_ms=int)], code=75)

    def interrupt(running):
        room.all_say(b"waiting for 'k-")
        for process in running.values():
            process.terminate()
    room.case("a signal", ["run", "NAME", "--", "true"],
              [("waiting", "^waiting for 'NAME': held by ", {}),
               ended("interrupted", 143)], code=143, meanwhile=interrupt)

    def release(_):
        room.all_say(b"waiting for 'k-")
        for log, token in zip(LOGS, tokens):
            nx(room.program, "release", f"k-{log}", token)
    room.case("a wait", ["run", "NAME", "--", "true"],
              [("waiting", "^waiting for 'NAME': held by ", {}),
               acquired(), STARTED, command_ended(0), RELEASED,
               ended("done", 0)], meanwhile=release)
    room.for_each("run", "NAME", "--every", "1d", "--", "true")
    room.case("--every", ["run", "NAME", "--every", "1d", "--", "true"],
              [acquired(), skipped("not-due", "^'NAME' is not due"), RELEASED,
               ended("not-due", 75)], code=75)
    room.clear()


# Two of them look alike if a part is left out or replaced.
NAMES = ("mail:alice@example.com", "mail:bob@example.com",
         "https://example.com/feed/1", "6fa459ea-ee8a-4ca4-894e-db77e160355e",
         "order:6fa459ea-ee8a-4ca4-894e-db77e160355e", "a\nb", "a\tb", "a?b",
         "m\u00fcll", "\u009b", "x" * 81, "x" * 3000)


def over_a_failover(room):
    """A server becomes a replica, and is promoted again."""
    with room.old as server:
        fails_over(room, server)


def fails_over(room, server):
    def fail_over(_):
        room.check(room.all_say(b"started"), "all run")
        server.cli("REPLICAOF", "127.0.0.1", "1")
        server.cli("REPLICAOF", "NO", "ONE")
        server.cli("CLIENT", "KILL", "TYPE", "normal")

    room.check(await_(lambda: re.search(
        rb"uptime_in_seconds:([6-9]|\d\d)", server.cli("INFO", "server"))),
        "a server that is old enough")
    room.case("a failover", [
        "run", "NAME", "-u", server.url + "?guard_failover=on&max_ttl_ms=3000",
        "--ttl", "3s", "--", "sleep", "3"],
        [acquired("3s"), STARTED,
         ("failover", "^unix:.*: a failover was seen: promoted .*; it grants "
          "locks again in ", {"priority": 4, "pause_ms": int}),
         command_ended(0), RELEASED, ended("done", 0)], meanwhile=fail_over)


def names(room):
    """The name itself is logged, whatever it looks like."""
    before = len(room.everything)

    def run(name):
        process = room.start("json", ["run", name, "--", "true"])
        process.wait(timeout=60)
        with open(room.stderr("json"), "rb") as file:
            return room.events("json", file.read())

    for name in NAMES:
        got = run(name)
        room.check(
            got and all(event["name"] == name for event in got),
            f"{name[:50]!r} is the name",
            "\n".join(str(event)[:1000] for event in got))
        room.equal(got[-1]["event"], "ended", "to the end")
    got = run("y" * 60000)
    room.check(
        len(got) > 3 and all("(60000 bytes)" in event["name"]
                             for event in got),
        "a name too long for a line is cut, with its length",
        "\n".join(str(event)[:1000] for event in got))
    del room.everything[before:]  # a name may be a token
    room.clear()


def of_once(room):
    room.case("once", ["once", "NAME", "--", "true"],
              [acquired(), STARTED, command_ended(0), ended("done", 0)])
    room.case("once, done before", ["once", "NAME", "--", "true"],
              [skipped("done-before", "^'NAME' is done"),
               ended("done-before", 0)])
    room.clear()
    room.case("once, with output", ["once", "NAME", "--", "echo", "out"],
              [acquired(), STARTED, command_ended(0), ended("done", 0)])
    with open("/dev/full", "wb") as full:
        room.case("which cannot be printed again",
                  ["once", "NAME", "--", "echo", "out"],
                  [skipped("done-before", "^'NAME' is done"),
                   ("failed", "^cannot print the output of 'NAME' again",
                    {"priority": 3}),
                   ended("error", 70)], code=70, stdout=full)
    room.clear()
    room.case("once, in doubt", ["once", "NAME", "--", "false"],
              [acquired(), STARTED, command_ended(1),
               ("doubt", "^'NAME' is in doubt", {"priority": 3}),
               ended("doubt", 1)], code=1)
    room.case("in doubt before", ["once", "NAME", "--", "false"],
              [("doubt", "^'NAME' is in doubt", {"priority": 3}),
               ended("doubt", 76)], code=76)
    room.clear()


def lost(room):
    begin = [acquired(), STARTED]
    drop = (f"redis-cli -s {room.server.socket} DEL $NXLOCK_NAME > /dev/null;"
            "sleep 60")
    room.case("lost", ["run", "NAME", "--ttl", "4s", "--", "sh", "-c", drop],
              begin + [("lost", "^lost 'NAME': .*; stopping sh$",
                        {**LOST_PRIORITY, "why": str}),
                       command_ended(143, "was ended by signal 15"),
                       ended("lost", 79)], code=79)

    def go_on(running):
        """Continues each nxlock when its watchdog has ended the command."""
        for process in running.values():
            state = f"/proc/{process.pid}/stat"
            await_(lambda: open(state).read().rsplit(")")[1].split()[0] == "T")
        room.check(
            room.all_say(b"lost 'k-"),
            "the watchdog logs the loss while nxlock is stopped")
        await_(lambda: not any(
            room.server.cli("EXISTS", f"k-{log}") == b"1\n" for log in LOGS))
        for process in running.values():
            process.send_signal(signal.SIGCONT)
    room.case("lost while nxlock is stopped",
              ["run", "NAME", "--ttl", "1s", "--", "sh", "-c",
               "sleep 0.2; kill -STOP $NXLOCK_SUPERVISOR_PID; sleep 60"],
              begin + [("lost", "^lost 'NAME': it could not be renewed in "
                        "time; stopping sh$", LOST_PRIORITY),
                       command_ended(143, "was ended by signal 15"),
                       ended("lost", 79)], code=79, meanwhile=go_on)
    room.case("nxlock is killed", ["run", "NAME", "--ttl", "1s", "--",
                                   "sh", "-c",
                                   "sleep 0.2; "
                                   "kill -KILL $NXLOCK_SUPERVISOR_PID; "
                                   "sleep 60"],
              begin + [("lost", "^lost 'NAME': nxlock was killed; stopping sh$",
                        LOST_PRIORITY), ended("lost", 79)], code=-9)
    room.clear()


def without_a_server(room):
    with Server() as other:
        without_server(room, other)


def without_server(room, other):
    url = ["-u", f"redis://:{SECRET}@127.0.0.1:1?timeout_ms=200"]
    room.case("no server", ["run", "NAME", *url, "-n", "--", "true"],
              [DOWN, ended("down", 69)], code=69)

    def restart(_):
        room.all_say(b"waiting for 'k-")
        other.start()
    other.kill()
    room.case("a server that comes back",
              ["run", "NAME", "-u", other.url, "--", "true"],
              [DOWN, ("server-up", "the server answers again",
                      {"priority": 5}),
               acquired(), STARTED, command_ended(0), RELEASED,
               ended("done", 0)], meanwhile=restart)

    def stall(running):
        await_(lambda: all(other.cli("EXISTS", f"k-{log}") == b"1\n"
                           for log in running))
        other.freeze()
        room.all_say(b"cannot renew")
        other.thaw()
    room.case("a renewal that fails",
              ["run", "NAME", "-u", other.url, "--ttl", "3s", "--", "sleep",
               "2.5"],
              [acquired(), STARTED,
               ("not-renewed", "^cannot renew 'NAME': ",
                {"priority": 4, "why": str}),
               ("renewed-again", "^renewed 'NAME' after all",
                {"priority": 5}), command_ended(0), RELEASED,
               ended("done", 0)], meanwhile=stall)


def over_servers(room):
    with Server() as second, Server() as third:
        over_three(room, second, third)


def over_three(room, *more):
    urls = [word for server in (room.server, *more)
            for word in ("-u", server.url + "?guard_restarts=off")]
    room.case("three servers", ["run", "NAME", *urls, "--", "true"],
              [acquired("30s, fencing token"), STARTED, command_ended(0),
               RELEASED, ended("done", 0, fence=int)])
    for server in more[1:]:
        server.kill()
    room.case("three servers, one down", ["run", "NAME", *urls, "--", "true"],
              [acquired("30s"), STARTED, command_ended(0), RELEASED,
               ended("done", 0)])
    more[0].kill()
    room.case("three servers, two down",
              ["run", "NAME", *urls, "-n", "--", "true"],
              [DOWN, ended("down", 69)], code=69)


def of_other_commands(room):
    room.case("acquire", ["acquire", "NAME", "--ttl", "60s"],
              [acquired("60s|1m"), ("left-held", "^left 'NAME' held",
                                    {"left_ms": int}), ended("done", 0)])
    room.case("unlock", ["unlock", "NAME", "--force", "--yes"],
              [("removed", "^removed 'NAME', which was held by ",
                {"holder": str, "priority": 5}), ended("done", 0)])
    room.case("wait", ["wait", "NAME"],
              [("free", "^'NAME' is free; waited ", {"waited_ms": int}),
               ended("done", 0)])
    token = "01234567-89ab-8cde-8f01-23456789abcd"
    room.secrets.append(token)
    room.case("release without a lock", ["release", "NAME", token],
              [("lost", "not held under this token", LOST_PRIORITY),
               ended("lost", 79)], code=79)


def not_read(room):
    """Logs that are full or missing change nothing but a message."""
    path = os.path.join(room.server.folder, "full")
    full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    full.bind(path)
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.setblocking(False)
    try:
        while True:
            sender.sendto(b"x", path)
    except BlockingIOError:
        pass
    cases = (("syslog", path, b"it does not read"),
             ("syslog", path + "-", b"No such file"))
    drop = f"redis-cli -s {room.server.socket} DEL full > /dev/null; sleep 60"
    end, pipe = full_pipe()

    def into_socket(case):
        log, where, _ = case
        return nx(room.program, "run", f"full {case}", "--log", log, "--",
                  "true", env={**os.environ, "NXLOCK_LOG_SOCKET": where})

    def into_pipe(log):
        return subprocess.run(
            [room.program, "run", f"full {log}", "--log", log, "--", "true"],
            stdin=subprocess.DEVNULL, stderr=pipe, timeout=60,
            check=False).returncode

    # Each waits 5 s for its reader, at the end.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        sockets = pool.map(into_socket, cases)
        loss = pool.submit(
            nx, room.program, "run", "full", "--log", "syslog", "--ttl",
            "900ms", "--", "sh", "-c", drop,
            env={**os.environ, "NXLOCK_LOG_SOCKET": path})
        pipes = pool.map(into_pipe, ("stderr", "json"))
    for (log, where, why), got in zip(cases, sockets):
        lines = got.stderr.splitlines()
        room.check(got.returncode == 0 and len(lines) == 1 and
                   why in lines[0] and where.encode() in lines[0],
                   f"--log {log}: {why.decode()}: reported once, and the "
                   "run goes on", got)
    got = loss.result()
    room.check(got.returncode == 79 and b"lost 'full'" in got.stderr,
               "a loss is acted on, and still said", got)
    for log, code in zip(("stderr", "json"), pipes):
        room.equal(code, 0, f"--log {log} to a pipe that nobody reads")
    os.close(end)
    os.close(pipe)


def into_files(room):
    """A file is shared, and may be full. One that cannot be opened is refused:
    see test_table.py."""
    folder = room.server.folder
    path = os.path.join(folder, "shared.log")

    def run(name, where, *words, before="umask 022"):
        return nx("sh", "-c", before + '; exec "$@"', "sh", room.program, "run",
                  name, "--log", "file:" + where, *words, "--", "true")

    for name in ("one", "two"):
        run(name, path)
    with open(path, "rb") as file:
        lines = file.read().splitlines()
    for line in lines:
        file_event(line)
    room.check(len(lines) == 10 and b"'one'" in lines[0] and
              b"'two'" in lines[5] and len(
                  {line.split(b"[")[1].split(b"]")[0] for line in lines}) == 2,
              "a file is added to, and each line has the process", lines)
    room.equal(os.stat(path).st_mode & 0o777, 0o640, "its mode is 0640")
    got = nx(room.program, "run", "one", "--log", "file:" + path, "--", "sh",
             "-c", "ls -l /proc/self/fd")
    room.check(got.returncode == 0 and b"shared.log" not in got.stdout,
               "CMD does not get it", got.stdout)
    os.rename(path, path + ".1")
    run("three", path)
    with open(path, "rb") as file:
        room.equal(len(file.read().splitlines()), 5,
                   "after a rotation the next run creates it again")

    with open(path, "wb") as file:
        file.write(bytes(4096))
    got = run("full", path, before="ulimit -f 4")
    room.check(got.returncode == 0 and got.stderr.count(b"\n") == 1 and
               b"cannot log to '" + path.encode() + b"': " in got.stderr,
               "a file that takes no more: reported once, and the run goes on",
               got)


def where_people_look(room):
    """/dev/log, in a mount namespace."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True,
                      check=False).returncode != 0:
        room.check(True, "the socket of the system # SKIP no namespaces")
        return
    dev = os.path.join(room.server.folder, "dev")
    os.makedirs(dev)
    with open(dev + "/null", "w", encoding="ascii"):
        pass
    daemon = Daemon(dev + "/log")
    got = subprocess.run(
        ["unshare", "-rm", "sh", "-ec",
         f"mount --bind /dev/null {dev}/null; mount --rbind {dev} /dev; "
         "shift; exec \"$0\" \"$@\"",
         room.program, "", "run", "there", "--log", "syslog", "--", "true"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    data = daemon.take()
    room.check(got.returncode == 0 and len(data) == 5 and
               b"acquired 'there'" in data[0],
               "--log syslog without NXLOCK_LOG_SOCKET", (got, data))


def in_words(room):
    got = nx(room.program, "run", "words", "-v", "--log", "stderr", "--",
             "true")
    lines = got.stderr.decode().splitlines()
    room.check(len(lines) == 5 and all(
        re.match(r"nxlock: \d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z \S", line)
        for line in lines), "--log stderr: each event once, even with -v",
        got.stderr)
    got = nx(room.program, "run", "words", "-v", "--log", "syslog", "--",
             "true", env=room.environment("syslog"))
    room.check(len(got.stderr.splitlines()) == 2 and
               len(room.daemons["syslog"].take()) == 5,
               "-v with --log syslog: both", got.stderr)
    got = nx(room.program, "run", b"odd\xff\n\x1b" + b"\xfe" * 60, "--log",
             "json", "--", "true")
    room.check(got.returncode == 0 and len(
        [json_event(line) for line in got.stderr.splitlines()]) == 5,
        "a name of any bytes is valid JSON", got.stderr)


def no_secrets(room):
    logged = b"\n".join(room.everything).decode(errors="replace")
    room.check(
        SECRET not in logged and
        not any(token.partition("@")[0] in logged
                for token in room.secrets) and
        not re.search("[0-9a-f]{8}-[0-9a-f]{4}-", logged),
        "no log has a token, a password or the arguments of CMD")


if __name__ == "__main__":
    sys.exit(play(
        Room, of_a_run, waiting_and_skipped, names, of_once, lost,
        over_a_failover, without_a_server, over_servers, of_other_commands,
        not_read, into_files, in_words, where_people_look, no_secrets))
