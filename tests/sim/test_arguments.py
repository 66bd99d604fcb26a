#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_arguments.py NXLOCK-SIM: what it says to whom.

Wrong arguments are refused with the option, the value and what is allowed;
help is whole; and a story is told last, with a command that tells it again.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv[1]

WRONG = [  # arguments, what the message names, and what it allows
    ("--seeds 0", "--seeds", '"0"', "1 to"),
    ("--seeds 1e3", "--seeds", '"1e3"', "1 to"),
    ("--seeds", "--seeds", "1 to"),
    ("--seed -1", "--seed", '"-1"', "2^64"),
    ("--seed 18446744073709551616", "--seed", "2^64"),
    ("--from 99999999999999999999", "--from", "2^64"),
    ("--from 18446744073709551615 --seeds 2", "--from", "--seeds", "2^64"),
    ("--seed 1 --seeds 2", "--seed", "--seeds"),
    ("--from 1 --seed 1", "--seed", "--from"),
    ("--seed 1 --seed 2", "--seed", "twice"),
    ("--servers 0", "--servers", '"0"', "1 to 15"),
    ("--servers 99", "--servers", '"99"', "1 to 15"),
    ("--without umbrella", "--without", '"umbrella"', "fence-floor"),
    ("--faults rain", "--faults", '"rain"', "clean", "skew"),
    ("--work twice", "--work", '"twice"', "once"),
    ("--faults cut,", "--faults", '"cut,"', "clean"),
    ("--only I0", "--only", '"I0"', "I1, I2"),
    ("--only I7", "--only", '"I7"', "I14"),
    ("--only I99", "--only", '"I99"', "I14"),
    ("--events T1,,T2", "--events", '"T1,,T2"', "c1.0#3"),
    ("--events c99.0#1", "--events", '"c99.0#1"', "T7"),
    ("--lasts 0", "--lasts", '"0"', "1 to"),
    ("--rain", '"--rain"', "--help"),
    ("7", '"7"', "--help"),
]

STORY = "--servers 3 --from 5 --seeds 20 --without restarts --only I1".split()


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True, timeout=120)


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
    source = (ROOT / "tests/sim/arguments.c").read_text()
    for option in re.findall(r'^ +\{"(-[\w-]+)"', source, re.M):
        check(re.search(rf"^  {option} .* \w+", done.stdout, re.M), option)
    text = (ROOT / "tests/sim/guards.h").read_text() + \
        (ROOT / "src/model/guard.h").read_text()
    guards = {word.lower().replace("_", "-"): words for word, words in
              re.findall(r"^ +(?:SIM_)?GUARD_(\w+), +/\* (.*?) \*/", text,
                         re.M)}
    told = re.search(r"^Guards.*?\n((?:  .*\n)+)", done.stdout, re.M)[1]
    for line in told.splitlines():
        name, words = line.split(None, 1)
        check(guards.get(name) == words, f"guard.h has not: {line}")
    text = (ROOT / "tests/sim/trouble.h").read_text()
    for name in re.findall(r"TROUBLE_(\w+), ", text):
        check(f"\n  {name.lower()} " in done.stdout, name)
    text = (ROOT / "tests/sim/checker.h").read_text()
    for name in re.findall(r"^ +(I\d+) = ", text, re.M):
        check(f"\n  {name} " in done.stdout, name)


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
