#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""blocks.py BUILD_DIR SOURCE_ROOT FILE.md...: runs what the documents show.

Invariant: no block of a document goes unaccounted. Each is run as a reader
would run it, against the installed build and a real server, or is known to be
run by another test, or is a failure. TAP.

    ```c             written to the file that a later "cc FILE.c -o ..." names
    ```c FILE.c      a fragment of FILE.c (relative to the document), which is
                     copied to HOME, and which a block compiles; also cpp
    ```c++           a sketch; tests/cpp makes the calls that are in it
    ```cmake, meson  lines of a file of docs/examples/consumers
    ```sh, indented  run by sh -e at a terminal; all of a document's blocks
                     share one directory, which is HOME
    ```sh with #!    a file; its second line is "# FILE: what it is for"
    ```cron          crontab lines: checked, then run as cron would
    ```text          what the block before it prints, both outputs together

In a text block the words HOST, PID, N and HEX stand for this host's name, a
number, a number and eight hexadecimal digits.
A block that prints something must be followed by a text block.

The documents hold to leases of seconds, which a busy machine may outlast: a
document that fails is run once more, from its beginning, and what it does then
is what counts.

The documents say redis://localhost:6379. The runner moves into a network of
its own, where that is a server of its own; where the system does not permit
that, it replaces the port in its copies and says so.
"""

import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the source tree stays as it is

from blocks_cron import Cron
from blocks_place import (INSIDE, PORT, Place, Wrong,
                          bring_up_loopback, descendants, end_all,
                          enter_own_network, prctl, run)

SETTLE_S = 10  # for what a document's last block left to end

# Lines that need a machine of their own: a pattern, the test that runs them,
# and a word that test must contain.
ELSEWHERE = (
    (r"sh docs/quickstart\.sh( +#.*)?", "tests/docs/test_quickstart.sh",
     "quickstart.sh"),
    (r"sh tests/run\.sh( +#.*)?", "tests/run.sh", "sh tests/run.sh "),
    (r"apt-get update && apt-get install -y [a-z0-9. +-]+", "tests/fresh.sh",
     "README.md"),
    (r"meson setup build( --buildtype=release)?( -Dtests=disabled)? && "
     r"meson install -C build && ldconfig",
     "tests/fresh.sh", "README.md"),
)

VARIES = {
    "HOST": re.escape(socket.gethostname()),
    "PID": r"\d+",
    "N": r"\d+",
    "HEX": r"[0-9a-f]{8}",
}


FRAGMENTS = ("c ", "cpp ")


def bare(text):
    """Its lines, without indentation and empty ones."""
    return [line.strip() for line in text.splitlines() if line.strip()]


class Block:
    def __init__(self, line, kind, lines):
        self.line, self.kind = line, kind
        self.text = "".join(entry + "\n" for entry in lines)

    def commands(self):
        return [line.strip() for line in self.text.splitlines()
                if line.strip() and not line.lstrip().startswith("#")]


def parse(text):
    """All blocks, in order. One that cannot be told raises Wrong."""
    blocks, lines, at = [], text.splitlines(), 0
    while at < len(lines):
        line = lines[at]
        if re.match(r"(\s+```|\s*~~~|\t)", line):
            raise Wrong(f"line {at + 1}: write blocks with ``` at the margin "
                        "or with four blanks")
        if line.startswith("```"):
            end = at + 1
            while end < len(lines) and lines[end] != "```":
                end += 1
            if end == len(lines):
                raise Wrong(f"line {at + 1}: this block has no end")
            blocks.append(Block(at + 1, line[3:].strip(), lines[at + 1:end]))
            at = end + 1
        elif line.startswith("    ") and (at == 0 or not lines[at - 1]):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or
                                        not lines[end]):
                end += 1
            while not lines[end - 1]:
                end -= 1
            blocks.append(Block(at + 1, "sh",
                                [entry[4:] for entry in lines[at:end]]))
            at = end
        else:
            at += 1
    return blocks


def compare(expected, printed):
    want, got = expected.rstrip().splitlines(), printed.rstrip().splitlines()
    for number in range(max(len(want), len(got))):
        shown = want[number].rstrip() if number < len(want) else None
        real = got[number].rstrip() if number < len(got) else None
        pattern = re.sub(r"\b(HOST|PID|N|HEX)(?=s?\b)",
                         lambda found: VARIES[found.group()],
                         re.escape(shown or ""))
        if shown is None or real is None or not re.fullmatch(pattern, real):
            raise Wrong(f"line {number + 1} of the output\n"
                        f"shown:   {shown}\nprinted: {real}\n"
                        "all that was printed:\n" + printed)


# The counters of fencing numbers are to stay, and so are the runs that --every
# has recorded and the records of once.
LOCKS_LEFT = ("local n = 0; "
              "for _, key in ipairs(redis.call('KEYS', '*')) do "
              "if not string.match(key, ':f$') and "
              "not string.match(key, ':every$') and "
              "not string.match(key, ':once$') then n = n + 1 end end; "
              "return n")


class Document:
    def __init__(self, place, root, path):
        self.tap, self.place, self.root, self.path = Tap(), place, root, path
        self.name = path.resolve().relative_to(root)
        self.home = pathlib.Path(tempfile.mkdtemp(dir=place.directory))
        self.env = {**place.env, "HOME": str(self.home)}
        self.blocks, self.at = [], 0
        self.printed = None  # by the block before; None: nothing was run

    def later(self):
        return [block.text for block in self.blocks[self.at + 1:]
                if block.kind == "sh"]

    def shell(self, script):
        code, text = run(["/bin/sh", "-e", "-c", self.place.copy(script)],
                         self.env, self.home, True)
        text = self.place.shown(text)
        if code != 0:
            raise Wrong(f"exit code {code}; it printed\n{text}")
        return text

    def elsewhere(self, block):
        """The tests that run it, if all of it needs a machine of its own."""
        tests, here = [], []
        for line in block.commands():
            for pattern, test, word in ELSEWHERE:
                if re.fullmatch(pattern, line):
                    tests.append((test, word))
                    break
            else:
                here.append(line)
        if tests and here:
            raise Wrong(f"not known how to run beside the rest: {here[0]}")
        for test, word in tests:
            file = self.root / test
            if not file.is_file() or word not in file.read_text("utf-8"):
                raise Wrong(f"left to {test}, which is not there or does not "
                            f"name {word}")
        return sorted({test for test, _ in tests})

    def c(self, block):
        found = re.search(r"^ *(cc +(\S+\.c) +-o .*)$",
                          "\n".join(self.later()), re.M)
        if not found:
            raise Wrong("no later block compiles it")
        (self.home / found.group(2)).write_text(self.place.copy(block.text))
        text = self.shell(found.group(1))
        if text:
            raise Wrong("the compiler says\n" + text)
        return f"{found.group(2)}, compiled with -Wall -Wextra -Werror"

    def copy_programs(self):
        """The files that fragments come from, to where a reader has them."""
        for block in self.blocks:
            if block.kind.startswith(FRAGMENTS):
                file = self.path.parent / block.kind.split()[1]
                if file.is_file():
                    (self.home / file.name).write_text(
                        self.place.copy(file.read_text("utf-8")))

    def fragment(self, block):
        name = block.kind.split()[1]
        file = self.path.parent / name
        if not file.is_file():
            raise Wrong(f"there is no {name}")
        if not any(re.search(rf"^ *(cc|c\+\+ .*) +{re.escape(file.name)} +-o ",
                             other.text, re.M)
                   for other in self.blocks if other.kind == "sh"):
            raise Wrong(f"no block compiles {file.name}")

        part, whole = bare(block.text), bare(file.read_text("utf-8"))
        if not any(whole[at:at + len(part)] == part
                   for at in range(len(whole))):
            raise Wrong(f"these lines are not in {name}:\n" + block.text)
        return f"a fragment of {name}"

    def project(self, block):
        """Lines of a project that tests/api/test_install.py builds."""
        lines = set()
        for file in (self.root / "docs/examples/consumers").glob("*/*"):
            lines |= set(bare(file.read_text("utf-8")))
        for line in bare(block.text):
            if line not in lines:
                raise Wrong(f"no project of docs/examples/consumers has {line}")
        return "lines of docs/examples/consumers"

    def calls(self, block):
        """Each nxl_ call and class in it is used by a test of tests/cpp."""
        tests = "".join(file.read_text("utf-8") for file in
                        (self.root / "tests/cpp").glob("*.cpp"))
        for word in re.findall(r"\b(?:nxl::|std::|nxl_|NXL_)\w+", block.text):
            if not re.search(rf"\b{word}\b", tests):
                raise Wrong(f"no test of tests/cpp uses {word}")
        return "calls that tests/cpp makes"

    def file(self, block):
        found = re.match(r"#!/bin/sh\n# ([\w.-]+): ", block.text)
        if not found:
            raise Wrong("a script's second line is # FILE: what it is for")
        name = found.group(1)
        if not re.search(rf"\b{re.escape(name)}\b", "\n".join(self.later())):
            raise Wrong(f"no later block runs {name}")
        (self.home / name).write_text(self.place.copy(block.text))
        (self.home / name).chmod(0o755)
        self.shell(f"sh -n {shlex.quote(name)}")
        return f"the file {name}"

    def sh(self, block):
        if block.text.startswith("#!"):
            return self.file(block)
        tests = self.elsewhere(block)
        if tests:
            return "run by " + ", ".join(tests)
        if not block.commands():
            raise Wrong("an empty block")
        self.printed = self.shell(block.text)
        follows = self.blocks[self.at + 1:self.at + 2]
        if self.printed and not (follows and follows[0].kind == "text"):
            raise Wrong("what it prints is not shown:\n" + self.printed)
        return "run"

    def cron(self, block):
        cron = Cron(self.place, self.home)
        if not block.commands():
            raise Wrong("an empty block")
        for line in block.commands():
            cron.line(line)
        self.printed = self.place.shown(cron.printed)
        follows = self.blocks[self.at + 1:self.at + 2]
        if self.printed and not (follows and follows[0].kind == "text"):
            raise Wrong("cron would mail\n" + self.printed)
        return "; ".join(["run as by cron, free and busy"] + cron.notes)

    def text(self, block):
        if self.printed is None:
            raise Wrong("the block before it was not run")
        compare(block.text, self.printed)
        return "printed so"

    def run_block(self, block):
        kinds = {"c": self.c, "sh": self.sh, "cron": self.cron,
                 "text": self.text, "c++": self.calls, "cmake": self.project,
                 "meson": self.project}
        if block.kind.startswith(FRAGMENTS):
            kinds[block.kind] = self.fragment
        if block.kind not in kinds:
            raise Wrong(f"a block of kind '{block.kind}': not known how to "
                        "run it; known: " + ", ".join(kinds))
        before, self.printed = self.printed, None
        if block.kind == "text":
            self.printed = before
        try:
            return kinds[block.kind](block)
        finally:
            if block.kind == "text":
                self.printed = None

    def references(self, text):
        """What is said beside the blocks; check_pages.py follows its links."""
        header = (self.root / "include/nxlock.h").read_text("utf-8")
        for word in set(re.findall(r"\b(?:nxl_\w+|NXL_\w+)", text)):
            if not re.search(rf"\b{word}\b", header):
                raise Wrong(f"include/nxlock.h has no {word}")
        return "names of the header"

    def nothing_left(self):
        limit = time.monotonic() + SETTLE_S
        spare = self.place.server.process.pid
        while True:
            left = descendants(spare)
            keys = self.place.server.ask("EVAL", LOCKS_LEFT, 0)
            if not left and keys == 0:
                return "no process and no lock is left"
            if time.monotonic() > limit:
                raise Wrong(f"left: processes {sorted(left)}, keys {keys}")
            time.sleep(0.05)

    def run(self):
        text = self.path.read_text("utf-8")
        self.tap.check(str(self.name), self.references, text)
        try:
            self.blocks = parse(text)
        except Wrong as why:
            self.tap.result(False, str(self.name), str(why))
            return
        if not self.blocks:
            self.tap.result(False, str(self.name), "it has no blocks")
        self.copy_programs()
        for self.at, block in enumerate(self.blocks):
            self.tap.check(f"{self.name}:{block.line} {block.kind}",
                           self.run_block, block)
        self.tap.check(f"{self.name} end", self.nothing_left)
        end_all(self.place.server.process.pid)
        self.place.server.ask("FLUSHALL")


class Tap:
    def __init__(self):
        self.count = self.bad = 0
        self.results = []

    def result(self, good, what, why=""):
        self.count += 1
        self.bad += not good
        self.results.append((good, what, why))

    def add(self, other):
        for result in other.results:
            self.result(*result)

    def show(self):
        for number, (good, what, why) in enumerate(self.results, 1):
            print(f"{'ok' if good else 'not ok'} {number} - {what}")
            for line in why.splitlines():
                print(f"# {line}")
        print(f"1..{self.count}")

    def check(self, what, function, *arguments):
        try:
            self.result(True, f"{what}: {function(*arguments)}")
        except Wrong as why:
            self.result(False, what, str(why))
        except Exception as why:  # what breaks a check fails it
            self.result(False, what, repr(why))


def try_out(place, root, path):
    """The results of the document's first run, or else of its second."""
    for last in (False, True):
        document = Document(place, root, path)
        document.run()
        if last or not document.tap.bad:
            return document.tap
        for good, what, why in document.tap.results:
            if not good:
                print(f"# failed at first: {what}")
                for line in why.splitlines():
                    print(f"#   {line}")
        sys.stdout.flush()


def work(arguments, private):
    tap = Tap()
    build, root = arguments[0], pathlib.Path(arguments[1]).resolve()
    prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans come here
    with tempfile.TemporaryDirectory(prefix="nxlock-docs-") as directory:
        spare = None
        try:
            place = Place(pathlib.Path(directory), build, private)
            spare = place.server.process.pid
            for path in arguments[2:]:
                tap.add(try_out(place, root, pathlib.Path(path)))
        except Wrong as why:
            tap.result(False, "a place to run the blocks in", str(why))
        finally:
            end_all(spare)
            if spare is not None:
                place.server.kill()
    tap.show()
    return 1 if tap.bad else 0


def main(arguments):
    if arguments == ["--probe"]:
        bring_up_loopback()
        return 0
    if len(arguments) < 3:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    program = os.environ.get("NXLOCK_REDIS_SERVER") or "redis-server"
    if shutil.which(program) is None and \
            os.environ.get("NXLOCK_SKIP_LIVE") == "1":
        print(f"1..0 # SKIP no {program}, and NXLOCK_SKIP_LIVE=1")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if os.environ.get(INSIDE) == "1":
        bring_up_loopback()
        return work(arguments, True)
    why = enter_own_network()
    print(f"# no network of its own ({why}): port {PORT} is replaced in the "
          "copies")
    return work(arguments, False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
