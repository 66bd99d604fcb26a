#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_names.py NXLOCK: a name may hold anything, and be long.

What is printed of it, or of what a stranger put at the key, steers no
terminal and stays one line; what is wrong with it is not cut off; and a line
that is proposed means in a shell what it says. Each awkward name is tried with
two of the lines in turn, and with NXLOCK_FULL=1 with all.
"""

import os
import re
import subprocess
import sys
from urllib.parse import quote

from rig import nx, play
from table import Table

TOKEN = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
CONTROLS = {
    "ESC": "\x1b[2J", "a newline": "\nnxlock: all is well", "CR": "\rx",
    "DEL": "\x7f", "BEL": "\x07", "TAB": "\t", "SO": "\x0e",
    "CSI, one character": "\u009b2J", "OSC, one character": "\u009d0;x\u009c",
    "NEL": "\u0085x", "two at once": "\u009b\u009b\x1b\x1b",
}
# C0 but for the newline at the end, DEL, and C1 as UTF-8 has it.
STEERING = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
TOO_LONG = "a" * 70000
AWKWARD = [
    "plain", "a b", " ", "a  b ", "it's", "'", "''", "'a'", '"', 'say "x"',
    "$HOME", "$(touch pasted)", "`touch pasted`", "a;b", "a&b", "a|b", "a>b",
    "a<b", "(a)", "{a,b}", "*", "?", "[a]", "~", "~root", "#", "a#", "!x",
    "a\\b", "\\", "-x", "--", "-", "--name", "--name=x", "-a b", "-it's",
    "=", "a=b", "%s%n", "é ☃", "'$(touch pasted)'", "\\'", "*/5 * * * *",
]


# Of a word that stands where CMD belongs, or a NAME that starts with '-'.
WORDS = ["make it", "it's", "$(touch pasted)", "a;b", "*", "~", "#"]


class Room(Table):
    def nx(self, *words):
        return nx(self.program, *words)

    def one_line(self, text, what):
        """One line, and nothing in it that a terminal obeys."""
        self.check(text.count(b"\n") == 1 and text.endswith(b"\n") and
                   not STEERING.search(text), what, text)

    def steered(self):
        for what, word in CONTROLS.items():
            name = f"a{word}b"
            self.one_line(self.nx("status", name).stdout,
                          f"{what} in a name: status, free")
            self.server.cli("SET", name, TOKEN, "PX", "100000")
            self.one_line(self.nx("status", name).stdout,
                          f"{what} in a name: status, held")
            for line in (["run", name, "-nv", "--", "true"],
                         ["acquire", name, "-nv"], ["run", name],
                         ["run", name, "make"], ["release", name],
                         ["renew", name, "word"], ["renew", name, TOKEN[::-1]],
                         ["release", name, TOKEN.replace("6", "7")],
                         ["run", name, "--name=y"]):
                self.one_line(self.nx(*line).stderr,
                              f"{what}: {' '.join([line[0], *line[2:]])}")
            self.server.cli("DEL", name)
            others = (
                [name], ["help", name], ["run", "k", name],
                ["status", "k", name], ["status", f"-{name}"],
                ["run", "k", "-w", name], ["run", "k", "-E", name],
                ["status", "k", f"--{name}"],
                ["status", "k", f"--json={name}"], ["status", "k", "-u", name],
                ["status", "k", "-u", f"redis://h?{name}=1"],
                ["status", "k", "-u", f"unix:///nothing{name}"],
                ["run", "k", "--", name])
            for number, line in enumerate(others):
                self.one_line(self.nx(*line).stderr,
                              f"{what}: another line, {number}")

    def left_by_others(self):
        for what, word in CONTROLS.items():
            for value in (f"a{word}b", f"{TOKEN}@a{word}b", f"{TOKEN}{word}"):
                self.server.cli("SET", "k", last=value.encode())
                self.one_line(self.nx("status", "k").stdout,
                              f"{what} in a value: status")
                self.one_line(
                    self.nx("run", "k", "-nv", "--", "true").stderr,
                    f"{what} in a value: run -n")
        self.server.cli("DEL", "k")

    def long(self):
        for line in (["run", TOO_LONG, "-n", "--", "true"],
                     ["run", f"--name={TOO_LONG}", "-n", "--", "true"],
                     ["acquire", TOO_LONG, "-n"], ["status", TOO_LONG],
                     ["renew", TOO_LONG, TOKEN],
                     ["release", TOO_LONG, TOKEN]):
            got = self.nx(*line)
            what = f"{line[0]}, a name of 70000 bytes"
            self.equal(got.returncode, 64, what)
            self.one_line(got.stderr, f"{what}: the message")
            self.check(b"(70000 bytes)" in got.stderr and
                       b"at most 65536" in got.stderr,
                       f"{what}: the message has the reason", got.stderr)
            self.equal(got.stdout, b"", f"{what}: no output")
        for line, words in (
                (["run", TOO_LONG, "make"], b"nxlock run NAME -- make"),
                (["run", TOO_LONG], b"nxlock run NAME -- CMD"),
                (["release", TOO_LONG], b"nxlock acquire NAME"),
                (["run", "k", TOO_LONG], b"nxlock run k -- a"),
                ([TOO_LONG], b"commands are run"),
                (["status", "k", "-u", "redis://" + TOO_LONG],
                 b"longer than 8192"),
                (["run", "k", "-w", TOO_LONG], b"not a duration"),
                (["run", "k", "-E", TOO_LONG], b"from 0 to 255"),
                (["run", "k", "--no-wait=" + TOO_LONG], b"takes no value"),
                (["run", "k", "--name", TOO_LONG], b"'k' already")):
            got = self.nx(*line)
            self.check(words in got.stderr and len(got.stderr) < 1000,
                       f"70000 bytes, and {words.decode()!r} is seen",
                       got.stderr[:1000])

    def columns(self):
        """Letters of several bytes take one column of a terminal."""
        names = ["müller", "mueller", "ж" * 20, "日"]
        for name in names:
            self.server.cli("SET", "c:" + name, TOKEN, "PX", "100000")
        lines = self.on_terminal("list", "c:*")[1].splitlines()
        self.check(
            len(lines) == 1 + len(names) and
            lines[0].index("STATE") == 2 + len("c:") + 20 and
            len({line.index("held") for line in lines[1:]} |
                {lines[0].index("STATE")}) == 1,
            "the columns of list are straight", "\n".join(lines))
        for name in names:
            self.server.cli("DEL", "c:" + name)

    def told_apart(self):
        """Names that have something of a secret are shown as they are."""
        os.mkdir(self.path("metrics"))
        for name in ("mail:alice@example.com", "https://example.com/1", TOKEN,
                     f"order:{TOKEN}"):
            self.rows(
                (f"status {name}", 1, f"={name} free\n"),
                (f"run {name} -v --metrics {{d}}/metrics -- sh -c "
                 f"'test $NXLOCK_NAME = {name}'", 0, f"acquired '{name}'"),
                (f"db SET {name} {TOKEN} PX 100000", "OK"),
                (f"status {name} --json", 0, f'"name":"{name}"'),
                (f"list {name} --json", 0, f'"name":"{name}"'),
                (f"list {name}", 0, f"~{name}\theld\t.*"))
            self.check(f'lock="{name}"' in self.text(
                "metrics/nxlock_last_run_" + quote(name, safe="") + ".prom"),
                f"{name}: the metrics have it")
            wide = self.on_terminal("list")[1]
            self.check(re.search(f"^{name} +held ", wide, re.M),
                       f"{name}: list at a terminal shows it", wide)
            self.rows(
                (f"unlock {name} --force --yes", 0, f"'{name}' is held"),
                (f"once {name} -- false", 1, f"nxlock once confirm {name}"))
        for name in ("a\nb", "\x1b[2J", "-\n"):
            got = self.nx("once", f"--name={name}", "--", "false")
            word = b"--name=NAME" if name[0] == "-" else b"NAME"
            self.check(b"nxlock once confirm " + word in got.stderr,
                      f"{name!r}: a name that cannot be shown is not proposed",
                      got.stderr)
        got = self.nx("run", "k", "a\nb")
        self.check(b"nxlock run k -- 'CMD...'" in got.stderr,
                   "a word of CMD that cannot be shown is not proposed",
                   got.stderr)

    def pasted(self, line):
        """The words that a shell makes of it, nxlock being a function."""
        script = "nxlock() { printf '%s\\n' \"$@\"; }\n" + line
        got = subprocess.run(
            ["sh", "-c", script], cwd=self.server.folder, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=60, check=False)
        return got.stdout.decode().split("\n")[:-1]

    def proposed(self):
        for number, name in enumerate(AWKWARD):
            as_word = f"--name={name}" if name.startswith("-") else name
            named = f"--name={name}"
            lines = (
                (["run", named, "make"], r"write: (nxlock run .*)$",
                 ["run", as_word, "--", "make"]),
                (["run", named, "--"], r"write: (nxlock run .*)$",
                 ["run", as_word, "--", "CMD..."]),
                (["run", named, "-c", "x", "--", "y"],
                 r"write: (nxlock run .*)$",
                 ["run", as_word, "-c", "STRING"]),
                (["release", named], r"word that '(nxlock .*)' printed",
                 ["acquire", as_word]),
                (["renew", named, "x"], r"word that '(nxlock .*)' printed",
                 ["acquire", as_word]))
            if not os.environ.get("NXLOCK_FULL"):
                lines = (lines[number % 5], lines[(number + 2) % 5])
            for line, pattern, wanted in lines:
                said = self.nx(*line).stderr.decode()
                found = re.search(pattern, said.rstrip("\n"))
                self.check(
                    found and self.pasted(found[1]) == wanted,
                    f"{name}: what {line[0]} proposes can be pasted",
                    f"{said}{found and self.pasted(found[1])}")

    def proposed_words(self):
        for word in WORDS:
            for line, pattern, wanted in (
                    (["run", "k", word], r"write: (nxlock run .*)$",
                     ["run", "k", "--", word]),
                    (["run", "-z" + word, "--", "x"],
                     r"is written (--name=.*)$", ["--name=-z" + word])):
                said = self.nx(*line).stderr.decode()
                found = re.search(pattern, said.rstrip("\n"))
                line = found and re.sub("^--", "nxlock --", found[1])
                self.check(
                    found and self.pasted(line) == wanted,
                    f"{word}: what is proposed for it can be pasted", said)


if __name__ == "__main__":
    sys.exit(play(Room, Room.steered, Room.left_by_others, Room.long,
                  Room.told_apart, Room.columns, Room.proposed,
                  Room.proposed_words))
