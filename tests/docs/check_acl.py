#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_acl.py NXLOCK_EXE PAGE

Holds the tables and examples of docs/acl.md to 'nxlock acl', which prints the
table that a live test tries row by row. Prints TAP; exits 1 on any difference.
"""

import os
import re
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is

import checks


def run(exe, *words):
    bare = {name: value for name, value in os.environ.items()
            if name not in ("NXLOCK_URL", "NXLOCK_URL_FILE")}
    done = subprocess.run([exe, *words], capture_output=True, text=True,
                          timeout=20, env=bare, check=False)
    if done.returncode != 0 or done.stderr:
        return f"exit code {done.returncode}: {done.stderr}"
    return done.stdout


def of_program(exe):
    """{command: features}, [(feature, permission, what happens)]"""
    commands, rows, feature = {}, [], None
    into_commands = True
    for line in run(exe, "acl", "-v").splitlines():
        permission = re.match(r" {6}(\S+) +without it: (.*)$", line)
        entry = re.match(r"  (\S+) +(.*)$", line)
        if line == "features:":
            into_commands = False
        elif permission:
            rows.append((feature, *permission.groups()))
        elif entry and into_commands:
            commands[entry[1]] = entry[2].split(", ")
        elif entry:
            feature = f"{entry[1]}: {entry[2]}"
    return commands, rows


def cells(line):
    return [cell.strip().replace(r"\|", "|")
            for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def tables(page):
    """The rows of each table, by the first word of its head."""
    found, rows = {}, None
    for line in page.splitlines():
        if not line.startswith("|"):
            rows = None
        elif rows is None:
            rows = found.setdefault(cells(line)[0], [])
        elif not line.startswith("|-"):
            rows.append(cells(line))
    return found


def differences(page, program):
    return [f"only in the page: {row}" for row in page if row not in program] \
        + [f"not in the page: {row}" for row in program if row not in page] \
        + (["the order differs"] if sorted(page) == sorted(program) and
           page != program else [])


def check_commands(page, exe):
    of_page = [(name.strip("`"), re.findall(r"`([^`]+)`", features))
               for name, features in tables(page).get("command", [])]
    listed = of_program(exe)[0]
    block = re.search(r"^commands:\n((?:  .*\n)+)", run(exe, "--help"), re.M)
    known = set(re.findall(r"^  ([a-z]+)", block[1], re.M)) - \
        {"acl", "config"}  # they ask no server
    return differences(of_page, list(listed.items())) + \
        [f"'nxlock acl' lacks a row: {name}" for name in known - set(listed)]


def check_permissions(page, exe):
    of_page, feature = [], None
    for name, permissions, effect in tables(page).get("feature", []):
        feature = name.replace("`", "") or feature
        of_page += [(feature, permission, effect) for permission in
                    re.findall(r"`([^`]+)`", permissions)]
    rows = of_program(exe)[1]
    return differences(of_page, rows) or \
        ([] if len(rows) > 50 else ["there are too few rows"])


def check_examples(page, exe):
    problems = []
    found = re.findall(r"^    \$ nxlock (acl .*)\n    (ACL .*)$", page, re.M)
    if len(found) < 3:
        problems.append("there are too few examples")
    for words, line in found:
        printed = run(exe, *shlex.split(words)).rstrip("\n")
        if printed != line:
            problems += [f"nxlock {words}", f"  the page: {line}",
                         f"  printed: {printed}"]
    return problems


def main(exe, path):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    return checks.run([
        ("acl.md: the features of each command", check_commands, page, exe),
        ("acl.md: the permissions of each feature", check_permissions, page,
         exe),
        ("acl.md: the lines in the examples", check_examples, page, exe),
    ])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
