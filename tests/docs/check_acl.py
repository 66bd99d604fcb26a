#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_acl.py NXLOCK_EXE

docs/acl.md is what tests/docs/acl_table.h says.
Prints TAP; exits 1 on any difference. test_acl.py runs the lines.
"""

import difflib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is

import acl_table
import checks


def check_page():
    page = acl_table.PAGE.read_text("utf-8")
    wanted = acl_table.page(page, acl_table.read())
    return [line.rstrip("\n") for line in difflib.unified_diff(
        page.splitlines(), wanted.splitlines(), "the page", "the table")]


def check_table(exe):
    """Each command has its row, and the header was read to its end."""
    table = acl_table.read()
    text = acl_table.TABLE.read_text("ascii")
    rows = sum(len(one.permissions) for one in table.features.values())
    done = subprocess.run([exe, "--help"], capture_output=True, text=True,
                          timeout=20, check=True)
    block = re.search(r"^commands:\n((?:  .*\n)+)", done.stdout, re.M)
    known = set(re.findall(r"^  ([a-z]+)", block[1], re.M))
    if len(table.features) != len(re.findall(r"^FEATURE\(", text, re.M)) or \
            rows != len(re.findall(r"\{(?:\"|ACL_)[^{}]*, ACL_\w+\}", text)):
        yield f"{len(table.features)} features, {rows} rows were read"
    yield from (f"{name} has no row" for name in known - set(table.commands))
    yield from (f"{name} is no command" for name in set(table.commands) - known)


def check_doctor():
    """The commands of doctor's remedy are those of its line in the page."""
    text = (acl_table.ROOT / "src/cli/doctor/doctor_rights.c").read_text()
    words = "".join(re.findall('"([^"]*)"', re.search(
        r"#define COMMANDS((?:.*\\\n)+.*\n)", text)[1])).split()
    wanted = [rule for rule in acl_table.read().rules(("doctor",), (), False)
              if rule[0] == "+"]
    if sorted(words) != sorted(wanted):
        yield f"COMMANDS has {words}, the table {wanted}"


def main(exe):
    return checks.run([
        ("acl.md: made from the table", check_page),
        ("doctor_rights.c: the commands of the table", check_doctor),
        ("acl_table.h: a row for each command", check_table, exe),
    ])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
