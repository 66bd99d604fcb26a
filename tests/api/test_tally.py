#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_tally.py TALLY.py: what is counted, what is run once more, and what the
exit code tells. TAP."""

import json
import pathlib
import subprocess
import sys
import tempfile

CASE = "[       OK ] one\n"
BROKEN = CASE + "[  FAILED  ] two\n 1 FAILED TEST(S)\n"
BOTH = "[  FAILED  ] one\n[  FAILED  ] two\n 2 FAILED TEST(S)\n"
LEAK = "==1==ERROR: LeakSanitizer: detected memory leaks\n"
FOUND = "==1==ERROR: AddressSanitizer: heap-use-after-free on\n"
CAUGHT = (CASE + "[  ERROR   ] --- Test failed with exception: Segmentation "
          "fault(11)\n[  FAILED  ] two\n 1 FAILED TEST(S)\n")
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
    ("harm among others", "live", "FAIL", 1, "HARM: x\n" + BROKEN, (1, 1, 0),
     False),
    ("a late cell", "faults", "FAIL", 1, "    NOT AS EXPECTED: x\n1 cells\n",
     (0, 0, 0), True),
    ("an exception", "faults", "FAIL", 1,
     "Traceback (most recent call last):\nOSError: x\n", (0, 1, 0), False),
    ("a cell with harm", "faults", "FAIL", 1,
     "NOT AS EXPECTED: x\nHARM: two holders\n", (0, 1, 0), False),
    ("two holders", "live+exclusion", "FAIL", 1, BROKEN, (1, 1, 0), False),
    ("late where two holders are looked for", "live+exclusion", "FAIL", 1,
     2 * "it took 900 ms: too late\n" + BOTH, (0, 0, 0), True),
    ("late in one of two groups", "live+exclusion", "FAIL", 1,
     "it took 900 ms: too late\n" + BROKEN + BROKEN, (2, 1, 0), False),
    ("in vain where two holders are looked for", "live+exclusion", "FAIL", 1,
     "never came true: x\n" + BROKEN, (1, 1, 0), False),
    ("late in one of two cases", "live+exclusion", "FAIL", 1,
     "it took 900 ms: too late\n" + BOTH, (0, 2, 0), False),
    ("two holders, TAP", "live+exclusion", "ERROR", 1, TAP, (1, 1, 1), False),
    ("a late guard", "guards", "FAIL", 1, BROKEN, (0, 0, 0), True),
    ("a guard that does not help", "guards", "FAIL", 1, "HARM: x\n" + BROKEN,
     (1, 1, 0), False),
    ("a seed", "sim", "FAIL", 1, "", (0, 1, 0), False),
    ("a leak", "live", "FAIL", 23, CASE + LEAK, (1, 1, 0), False),
    ("an address", "live", "FAIL", 1, BROKEN + FOUND, (1, 1, 0), False),
    ("a race", "thread", "FAIL", 66, BROKEN + RACE, (1, 1, 0), False),
    ("undefined", "unit", "FAIL", 1, BROKEN + UB, (1, 1, 0), False),
    ("a crash", "unit", "FAIL", -11, BROKEN, (1, 1, 0), False),
    ("a crash at first", "unit", "FAIL", -11, "", (0, 1, 0), False),
    ("a crash that is caught", "live", "FAIL", 1, CAUGHT, (1, 1, 0), False),
    ("a hang", "fake", "TIMEOUT", -15, BROKEN, (1, 1, 0), False),
    ("an early end", "live", "ERROR", 1, "", (0, 1, 0), False),
    ("an interrupt", "live", "INTERRUPT", -15, CASE, (1, 1, 0), False),
    ("all skipped", "live", "SKIP", 77, "SKIP: no server\n", (0, 0, 1), False),
)

LINE = json.dumps({"name": "nxlock:live / name", "result": "OK",
                   "returncode": 0, "stdout": CASE, "stderr": ""})
# Logs that cannot be counted.
BAD_LOGS = (
    ("no log", None),
    ("a log that was cut short", LINE + "\n" + LINE[:40]),
    ("a log of something else", LINE + "\n[]\n"),
    ("an empty log", ""),
)


def run(tally, place, *more):
    """Its exit code, what it counted or None, and what it printed."""
    sums = place / "sums"
    sums.unlink(missing_ok=True)
    (place / "sums.seconds").unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, tally, "run", place / "log", sums, *more],
        capture_output=True, text=True, check=False)
    counted = None
    if sums.exists():
        counted = tuple(map(int, sums.read_text().split()))
    return done.returncode, counted, done.stdout + done.stderr


def told(tally, place, row, *more):
    _, suites, result, code, text = row[:5]
    (place / "log").write_text(json.dumps({
        "name": f"nxlock:{suites} / name", "result": result,
        "returncode": code, "stdout": text, "stderr": "",
        "duration": 61.7}) + "\n")
    return run(tally, place, *more)


def judge(tally, place, row):
    again = place / "again"
    again.unlink(missing_ok=True)
    code, sums, printed = told(tally, place, row, again)
    wrong = []
    if code != (3 if row[5][1] or row[6] else 0):
        wrong.append(f"its exit code is {code}")
    if sums != row[5]:
        wrong.append(f"counted as {sums}, not {row[5]}")
    if again.exists() != row[6]:
        wrong.append("run again" if again.exists() else "not run again")
    if again.exists() and again.read_text() != "name\n":
        wrong.append(f"{again.read_text()!r} is run again")
    if row[2] not in ("OK", "SKIP") and row[4] and \
            row[4].splitlines()[-1] not in printed:
        wrong.append("its output is not shown")
    if (place / "sums.seconds").read_text() != "62 run/name\n":
        wrong.append("its seconds are not noted")
    # The second run has the last word.
    if row[6] and told(tally, place, row)[1][1] == 0:
        wrong.append("a second failure does not count")
    return wrong


def refuse(tally, place, text):
    log = place / "log"
    log.unlink(missing_ok=True)
    if text is not None:
        log.write_text(text)
    code, sums, printed = run(tally, place)
    wrong = []
    if code in (0, 3):
        wrong.append(f"its exit code is {code}")
    if sums is not None:
        wrong.append(f"counted as {sums}")
    if not printed.startswith("run: "):
        wrong.append(f"it says {printed!r}")
    return wrong


def main(tally):
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        results = [(row[0], judge(tally, place, row)) for row in ROWS]
        results += [(what, refuse(tally, place, text))
                    for what, text in BAD_LOGS]
    for number, (what, wrong) in enumerate(results, 1):
        failed += bool(wrong)
        print(f"{'not ' if wrong else ''}ok {number} - {what}")
        for line in wrong:
            print(f"# {line}")
    print(f"1..{len(results)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
