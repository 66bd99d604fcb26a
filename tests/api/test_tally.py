#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_tally.py TALLY.py: what is counted, and what is run once more. TAP."""

import json
import pathlib
import subprocess
import sys
import tempfile

CASE = "[       OK ] one\n"
BROKEN = CASE + "[  FAILED  ] two\n 1 FAILED TEST(S)\n"
LEAK = "==1==ERROR: LeakSanitizer: detected memory leaks\n"
FOUND = "==1==ERROR: AddressSanitizer: heap-use-after-free on\n"
RACE = "WARNING: ThreadSanitizer: data race (pid=1)\n"
UB = "x.c:1:2: runtime error: shift exponent 64 is too large\n"
TAP = "ok 1 - one\nnot ok 2 - two\nok 3 - three # SKIP no server\n1..3\n"

# What it is, suites, result, code, output; passed, failed, skipped; again?
ROWS = (
    ("all is well", "live", "OK", 0, CASE, (1, 0, 0), False),
    ("no cases", "api", "OK", 0, "", (1, 0, 0), False),
    ("a late case", "live", "FAIL", 1, BROKEN, (0, 0, 0), True),
    ("what it leaves", "live", "FAIL", 1, BROKEN + LEAK, (0, 0, 0), True),
    ("a late line of TAP", "live", "ERROR", 1, TAP, (0, 0, 0), True),
    ("two holders", "live+exclusion", "FAIL", 1, BROKEN, (1, 1, 0), False),
    ("two holders, TAP", "live+exclusion", "ERROR", 1, TAP, (1, 1, 1), False),
    ("a guard", "guards", "FAIL", 1, BROKEN, (1, 1, 0), False),
    ("a seed", "sim", "FAIL", 1, "", (0, 1, 0), False),
    ("a leak", "live", "FAIL", 23, CASE + LEAK, (1, 1, 0), False),
    ("an address", "live", "FAIL", 1, BROKEN + FOUND, (1, 1, 0), False),
    ("a race", "thread", "FAIL", 66, BROKEN + RACE, (1, 1, 0), False),
    ("undefined", "unit", "FAIL", 1, BROKEN + UB, (1, 1, 0), False),
    ("a crash", "unit", "FAIL", -11, BROKEN, (1, 1, 0), False),
    ("a crash at first", "unit", "FAIL", -11, "", (0, 1, 0), False),
    ("a hang", "fake", "TIMEOUT", -15, BROKEN, (1, 1, 0), False),
    ("an early end", "live", "ERROR", 1, "", (0, 1, 0), False),
    ("all skipped", "live", "SKIP", 77, "SKIP: no server\n", (0, 0, 1), False),
)


def told(tally, place, row, *more):
    _, suites, result, code, text = row[:5]
    log, sums = place / "log", place / "sums"
    log.write_text(json.dumps({
        "name": f"nxlock:{suites} / name", "result": result,
        "returncode": code, "stdout": text, "stderr": ""}) + "\n")
    sums.unlink(missing_ok=True)
    printed = subprocess.run(
        [sys.executable, tally, "run", log, sums, *more],
        capture_output=True, text=True, check=False).stdout
    return tuple(map(int, sums.read_text().split())), printed


def judge(tally, place, row):
    again = place / "again"
    again.unlink(missing_ok=True)
    sums, printed = told(tally, place, row, again)
    wrong = []
    if sums != row[5]:
        wrong.append(f"counted as {sums}, not {row[5]}")
    if again.exists() != row[6]:
        wrong.append("run again" if again.exists() else "not run again")
    if again.exists() and again.read_text() != "name\n":
        wrong.append(f"{again.read_text()!r} is run again")
    if row[2] not in ("OK", "SKIP") and row[4] and \
            row[4].splitlines()[-1] not in printed:
        wrong.append("its output is not shown")
    # The second run has the last word.
    if row[6] and told(tally, place, row)[0][1] == 0:
        wrong.append("a second failure does not count")
    return wrong


def main(tally):
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        for number, row in enumerate(ROWS, 1):
            wrong = judge(tally, pathlib.Path(place), row)
            failed += bool(wrong)
            print(f"{'not ' if wrong else ''}ok {number} - {row[0]}")
            for line in wrong:
                print(f"# {line}")
    print(f"1..{len(ROWS)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
