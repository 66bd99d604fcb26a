#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_arguments.py NXLOCK-SIM: what it says to whom.

Wrong arguments are refused with the option, the value and what is allowed;
help lists what there is; and a story is told last, with a command that tells
it again.
"""

import re
import subprocess
import sys

PROGRAM = sys.argv[1]

WRONG = [  # arguments, and what the message names
    ("--seeds 0", "--seeds", '"0"', "1 to"),
    ("--seeds 1e3", "--seeds", '"1e3"', "1 to"),
    ("--seeds", "--seeds"),
    ("--seed -1", "--seed", '"-1"', "2^64"),
    ("--seed 18446744073709551616", "--seed", "2^64"),
    ("--from 18446744073709551615", "--from", "2^64"),
    ("--servers 0", "--servers", '"0"', "1 to 15"),
    ("--servers 99", "--servers", '"99"', "1 to 15"),
    ("--without umbrella", "--without", '"umbrella"', "guard"),
    ("--faults rain", "--faults", '"rain"'),
    ("--faults cut,", "--faults", '"cut,"'),
    ("--work twice", "--work", '"twice"', "kind"),
    ("--only I0", "--only", '"I0"', "invariant"),
    ("--only I7", "--only", '"I7"'),
    ("--events T1,,T2", "--events", '"T1,,T2"', "c1.0#3"),
    ("--events c99.0#1", "--events", '"c99.0#1"', "T7"),
    ("--lasts 0", "--lasts", '"0"', "1 to"),
    ("--rain", "--rain", "--help"),
    ("7", '"7"', "--help"),
]

STORY = "--servers 3 --from 5 --seeds 20 --without restarts --only I1".split()


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True)


def check(good, *what):
    if not good:
        sys.exit("\n".join(str(w) for w in what))


def test_wrong():
    for arguments, *named in WRONG:
        done = run(*arguments.split())
        check(done.returncode == 2 and not done.stdout, arguments, done)
        for word in named:
            check(word in done.stderr, f"{arguments}: no {word} in",
                  done.stderr)


def test_help():
    done = run("--help")
    check(done.returncode == 0 and not done.stderr, done)
    check(run("-h").stdout == done.stdout, "-h is not --help")
    check(max(map(len, done.stdout.splitlines())) <= 80, "long lines")
    listed = re.findall(r"^  (-?[\w-]+),? ", done.stdout, re.M)
    for name in ("--seed", "--work", "late", "write-back", "gap-ends",
                 "I21", "O5", "permits-failover"):
        check(name in listed, f"{name} is not in", done.stdout)


def told(lines):
    """The story's steps, its verdict and its command."""
    where = len(lines) - 1
    while not lines[where].startswith("replay: "):
        where -= 1
    return ([line for line in lines if line.startswith(" ")],
            lines[where - 1], lines[where])


def test_story():
    done = run(*STORY)
    check(done.returncode == 1 and not done.stderr, done)
    lines = done.stdout.splitlines()
    steps, verdict, replay = told(lines)
    check(lines[-2:] == [replay, "tests/sim/README.md explains the words."],
          "not last:", *lines[-5:])
    check("I1 is broken: " in verdict and 5 < len(steps) < 500, verdict)
    check(not re.search(r"\d ns\b", done.stdout), "not in ms")
    begin = [i for i, line in enumerate(lines) if line.startswith("---")]
    check(len(begin) == 1 and lines[begin[0] + 1:-3] == steps,
          "more than the story, or less")
    command = replay.split()[2:]
    again = run(*command).stdout.splitlines()
    check(told(again) == (steps, verdict, replay), "another story:", *again)
    command.remove("-v")
    check(told(run(*command).stdout.splitlines())[1:] == (verdict, replay),
          "another end")
    # What is asked for once more is there: without the guard's harm it ends
    # well, whatever was in it.
    command[command.index("--without"):command.index("--only")] = []
    check(run(*command).returncode == 0, "broken with the guard", command)


test_wrong()
test_help()
test_story()
