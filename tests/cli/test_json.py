#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_json.py NXLOCK: what `nxlock status --json` prints is JSON.

Whatever the name is and whatever a stranger left at the key: one line of
valid UTF-8 that every parser takes, with the fields that are promised. In
`--log json` each event of a process has the same label, up to the last one.
"""

import json
import os
import random
import re
import socket
import sys

from rig import Cases, nx, play

UUID = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
FREE = {"v", "name", "state", "server", "waiting", "line"}
HELD = FREE | {"owner", "left_ms"}
LABELLED = HELD | {"label"}
NAMED = LABELLED | {"host", "pid", "program"}
FOREIGN = FREE | {"value", "left_ms"}

AWKWARD = [
    b'"', b'\\', b'a"b\\c', b"\\u0000", b'","v":2,"x":"', b"}\n{", b"'",
    b"/", b"</script>", b"\n", b"\r\n", b"\t", b"\x01\x02\x1f", b"\x7f",
    b"\x1b[2J", bytes(range(1, 32)), b" ", b"a b",
    "Grüße ☃ 😀".encode(), "\u2028\u2029\ufeff\ufffd".encode(),
    b"\xff", b"\xc3", b"\xc3(", b"a\x80b", b"\xe2\x82", b"\xe2\x82\"",
    b"\xf0\x9f\x98", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\xaf",
    b"\xed\xa0\x80", b"\xed\xa0\xbd\xed\xb8\x80", b"\xf4\x90\x80\x80",
    b"\xf8\x88\x80\x80\x80", b"\xfe\xff", bytes(range(128, 256)),
]


def shown(raw):
    """Bytes as text; how many U+FFFD stand for a sequence is left open."""
    return squeezed(raw.decode("utf-8", "replace"))


def squeezed(text):
    return re.sub("\ufffd+", "\ufffd", text)


class Room(Cases):
    def status(self, name, *options):
        """The answer and its bytes; None if it is no line of JSON."""
        got = nx(self.program, "status", b"--name=" + os.fsencode(name),
                 "--json", *options)
        self.code = got.returncode
        self.said = got.stderr
        self.raw = got.stdout
        try:
            answer = json.loads(got.stdout.decode("utf-8"), strict=True)
        except ValueError:
            return None
        if got.stdout.count(b"\n") != 1 or got.stdout[-1:] != b"\n":
            return None
        return answer

    def put(self, name, value, *words):
        self.server.cli("DEL", name)
        if words:
            self.server.cli("SET", name, value, *words)
        else:
            self.server.cli("SET", name, last=value)

    def fields(self, answer, wanted, name):
        got = set(answer) if isinstance(answer, dict) else self.raw
        return self.equal(got, wanted, name)

    def free(self):
        answer = self.status("x")
        if not self.fields(answer, FREE, "free: the fields of the contract"):
            return
        self.equal(self.code, 1, "free: exit code 1")
        self.equal((answer["v"], answer["name"], answer["state"]),
                   (1, "x", "free"), "free: version, name and state")
        self.equal(self.said, b"", "free: no message")
        version = re.search(rb"redis_version:(\S+)",
                            self.server.cli("INFO", "server")).group(1)
        for words in (self.server.url, "connected", version.decode(),
                      "role primary"):
            self.check(words in answer["server"], f"free: server has '{words}'"
                       .replace(self.server.url, "URL"), answer["server"])

    def held(self):
        self.put("x", UUID + "@db7:41233:backup", "PX", "20000")
        answer = self.status("x")
        if not self.fields(answer, NAMED, "held: the fields of the contract"):
            return
        self.equal(self.code, 0, "held: exit code 0")
        self.check(19000 <= answer["left_ms"] <= 20000, "held: left_ms",
                   answer["left_ms"])
        del answer["left_ms"], answer["server"]
        del answer["waiting"], answer["line"]  # test_line.py has these
        self.equal(answer, {
            "v": 1, "name": "x", "state": "held",
            "label": "db7:41233:backup", "host": "db7", "pid": 41233,
            "program": "backup", "owner": UUID[:8]},
                  "held: all other members")
        self.check(UUID[9:].encode() not in self.raw,
                   "held: not the whole token")
        verbose = self.status("x", "-v")
        self.fields(verbose, NAMED, "held: -v changes nothing")
        self.put("x", UUID + "@db7:41233:backup", "NX")
        answer = self.status("x")
        self.check(answer and "left_ms" in answer and
                   answer["left_ms"] is None, "held for ever: left_ms is null",
                   self.raw)

    def ours(self):
        got = nx(self.program, "run", "o", "--ttl", "20", "--",
                 self.program, "status", "o", "--json")
        answer = json.loads(got.stdout)
        program = os.path.basename(self.program)
        host = re.sub(r"[^!-~]", "_", socket.gethostname()[:64])
        self.equal((answer["host"], answer["program"]), (host, program),
                   "host and program of a run")
        self.equal(answer["label"],
                   f"{host}:{answer['pid']}:{program}",
                   "label of a run")
        got = nx(self.program, "acquire", "o")
        token = got.stdout.decode().strip()
        answer = self.status("o")
        self.equal((answer["pid"], answer["owner"]),
                   (os.getpid(), token[:8]), "pid of an acquire, owner")
        nx(self.program, "release", "o", token)

    def labels(self):
        """Labels that other programs of this library may choose."""
        for label, wanted in (
                ("", None), ("@nightly", LABELLED), ("@db7:x:backup", LABELLED),
                ("@::", LABELLED), ("@db7:41233:a:b", NAMED),
                ('@"\\:1:"\\', NAMED), ("@" + "a" * 128, LABELLED),
                ("@h:99999999999999999999:p", LABELLED)):
            self.put("x", UUID + label, "PX", "20000")
            answer = self.status("x")
            name = f"label '{label[1:20]}'"
            if not self.check(answer is not None and
                              answer["owner"] == UUID[:8] and
                              answer.get("label", "") == label[1:],
                              name, self.raw):
                continue
            self.fields(answer, wanted or HELD, f"{name}: what it tells")
            self.check(UUID[9:].encode() not in self.raw,
                       f"{name}: not the token")

    def foreign(self):
        wrong = []
        values = AWKWARD + [b"nul\0nul", UUID.encode() + b"\0", b"", b"0",
                            UUID.replace("-", "").encode()]
        for value in values:
            self.put("x", value)
            answer = self.status("x")
            if answer is None or self.code != 0 or set(answer) != FOREIGN or \
                    squeezed(answer["value"]) != shown(value):
                wrong.append((value, self.raw))
        self.equal(wrong, [], f"{len(values)} foreign values")
        snow = "☃".encode()  # three bytes, so that a cut is within one
        for start in range(3):
            value = b"a" * start + snow * 2000
            self.put("x", value)
            answer = self.status("x")
            whole = shown(value)
            self.check(answer is not None and 100 < len(answer["value"]) and
                       whole.startswith(answer["value"].rstrip("\ufffd")),
                       f"a long value, cut at {start}", self.raw)
            self.equal(answer and answer.get("truncated"), True,
                       f"a long value, cut at {start}: truncated")
        for length, wanted in ((511, None), (512, True)):
            self.put("x", b"a" * length)
            answer = self.status("x")
            self.equal(answer and (len(answer["value"]),
                                  answer.get("truncated")), (511, wanted),
                      f"{length} bytes: 511 are shown, and whether that is all")

    def names(self):
        wrong = []
        self.server.cli("FLUSHALL")
        for name in AWKWARD:
            answer = self.status(name)
            if answer is None or self.code != 1 or set(answer) != FREE or \
                    squeezed(answer["name"]) != shown(name):
                wrong.append((name, self.raw))
        self.equal(wrong, [], f"{len(AWKWARD)} names")

    def at_random(self):
        wrong = []
        dice = random.Random(3)
        for _ in range(200):
            name = bytes(dice.choices(range(1, 256), k=dice.randint(1, 40)))
            value = dice.randbytes(dice.randint(0, 60))
            self.put(name, value)
            answer = self.status(name)
            if answer is None or self.code != 0 or \
                    squeezed(answer["name"]) != shown(name) or \
                    squeezed(answer["value"]) != shown(value):
                wrong.append((name, value, self.raw))
        self.equal(wrong, [], "200 random names and values")

    def log_labels(self):
        """An address sanitizer also looks for a frame that is gone."""
        sanitizer = os.environ.get("ASAN_OPTIONS", "") + \
            ":detect_stack_use_after_return=1"
        nx(self.program, "acquire", "held")
        for words, code in (
                (["acquire", "free"], 0), (["acquire", "held", "-n"], 75),
                (["acquire", "x", "-u", "unix:///nowhere/socket", "-n"], 69),
                (["run", "held", "-n", "--", "true"], 75),
                (["run", "other", "--", "true"], 0),
                (["once", "held", "-n", "--", "true"], 75),
                (["once", "work", "--", "true"], 0)):
            at = words.index("--") if "--" in words else len(words)
            got = nx(self.program, *words[:at], "--log", "json", *words[at:],
                     env={**os.environ, "ASAN_OPTIONS": sanitizer})
            events = [json.loads(line) for line in got.stderr.splitlines()
                      if line.startswith(b"{")]
            labels = {event.get("label") for event in events}
            self.check(
                got.returncode == code and len(events) > 1 and
                events[-1]["event"] == "ended" and len(labels) == 1 and
                re.fullmatch(r"[!-~]+:\d+:[!-~]+", labels.pop() or ""),
                f"the label of each event: {' '.join(words)}", got)


if __name__ == "__main__":
    sys.exit(play(Room, Room.free, Room.held, Room.ours, Room.labels,
                  Room.foreign, Room.names, Room.at_random, Room.log_labels))
