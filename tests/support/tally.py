#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally.py RUN TESTLOG TALLY [AGAIN]: counts the cases of one meson test run.

Prints one line for the run, the output of what failed and the reasons of
what was skipped; appends "passed failed skipped" to the file TALLY, and how
many seconds each program took to TALLY.seconds. A cmocka or TAP program counts
by its cases, any other program as one.

With AGAIN, a failure that the machine may have caused (a test was late because
others had the processor) is printed, but not counted: the program's name is
written to that file, and the caller runs it once more, alone. Some failures
always count, because a second run that passes would not refute them: those of a
suite of FINAL, if more failed in it than what only came too late, a crash, a
time-out, a leak, and what a sanitizer found.

Exits with 0 when no program failed, with 3 when one did, counted or not; with
any other code nothing was counted.
"""

import json
import re
import sys

TAIL_LINES = 80

# exclusion: two holders that were seen once are two holders. A program that
# looks for other things as well (guards, faults, those of the command) prints
# HARM for that. The other suites do the same in each run.
FINAL = {"exclusion", "sim", "fuzz", "libfuzzer", "header", "api"}
FOUND = re.compile(r"ERROR: (?!Leak)\w+Sanitizer|WARNING: \w+Sanitizer|"
                   r"runtime error:|Test failed with exception|^HARM: ", re.M)
# What a case of cmocka says, once, that failed because something took too long.
LATE = re.compile(r"\d ms: too late$", re.M)
FAILED_CASES = re.compile(r"^ *(\d+) FAILED TEST\(S\)", re.M)
# What a program without cases (faults, once) says of its cells.
UNEXPECTED = re.compile(r"^ *NOT AS EXPECTED: ", re.M)

OK = re.compile(r"^\[ +OK \] ", re.M)
BAD = re.compile(r"^\[ +(?:FAILED|ERROR) +\] (?!\d+ test)(\w[^\n]*)$", re.M)
SKIPPED = re.compile(r"^\[ +SKIPPED \] (?!\d+ test)(\w[^\n]*)$", re.M)
TAP = re.compile(r"^(not )?ok \d+([^#\n]*)(#\s*SKIP[^\n]*)?", re.M | re.I)
REASON = re.compile(r"SKIP(?:PED)?:[^\n]*|# *SKIP[^\n]*", re.I)


def cases(text):
    """(passed, failed, skipped) that a program's output reports."""
    if re.search(r"^1\.\.\d+", text, re.M):
        found = [(bool(m[1]), bool(m[3])) for m in TAP.finditer(text)]
        skipped = sum(1 for bad, skip in found if skip and not bad)
        failed = sum(1 for bad, _ in found if bad)
        return len(found) - failed - skipped, failed, skipped
    # cmocka names a case again in its summary: names count once.
    return (len(OK.findall(text)), len(set(BAD.findall(text))),
            len(set(SKIPPED.findall(text))))


def count(test):
    text = test.get("stdout", "") + "\n" + test.get("stderr", "")
    passed, failed, skipped = cases(text)
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    if passed + failed + skipped == 0:
        if test["result"] == "SKIP":
            return 0, 0, 1
        return (1, 0, 0) if good else (0, 1, 0)
    if not good and test["result"] != "SKIP" and failed == 0:
        failed = 1  # it crashed, hung, or left with an error
    return passed, failed, skipped


def is_final(test, text):
    """Whether a failure counts, whatever a second run would say."""
    suites = test["name"].split(" / ")[0].split(":")[-1].split("+")
    # Both groups of a program may have a case of the same name.
    failed = sum(map(int, FAILED_CASES.findall(text)))
    late = 0 < failed <= len(LATE.findall(text))
    if FINAL.intersection(suites) and not late or FOUND.search(text):
        return True
    # No case failed: a crash, a time-out, a leak or a broken program. (A leak
    # beside a failed case may only be what that case did not tidy up.)
    said = cases(text)[1] > 0 or UNEXPECTED.search(text)
    return (not said or test["result"] == "TIMEOUT" or
            (test.get("returncode") or 0) < 0)


def read(run, log):
    try:
        with open(log, encoding="utf-8") as lines:
            tests = [json.loads(line) for line in lines if line.strip()]
        if not tests or not all("result" in test for test in tests):
            raise ValueError("no program's result is in it")
    except (OSError, ValueError) as error:
        sys.exit(f"{run}: {log} cannot be counted: {error}")
    return tests


def main(run, log, tally, again=None):
    total = [0, 0, 0]
    reasons = {}
    unsteady = []
    tests = read(run, log)
    failed = False
    for test in tests:
        numbers = count(test)
        failed |= numbers[1] > 0
        text = test.get("stdout", "") + "\n" + test.get("stderr", "")
        if numbers[1]:
            print(f"--- {run}: {test['name']}: {test['result']}, "
                  f"exit {test.get('returncode')}")
            print("\n".join(text.rstrip().splitlines()[-TAIL_LINES:]))
            print("---")
        if numbers[1] and again and not is_final(test, text):
            unsteady.append(test["name"].split(" / ")[-1])
            continue
        total = [a + b for a, b in zip(total, numbers)]
        if numbers[2]:
            for reason in set(REASON.findall(text)) or {"no reason given"}:
                reasons.setdefault(reason, []).append(
                    test["name"].split(" / ")[-1])
    for reason, names in sorted(reasons.items()):
        print(f"    skipped in {', '.join(names)}: {reason}")
    print(f"{run}: {len(tests)} programs, {total[0]} passed, "
          f"{total[1]} failed, {total[2]} skipped", flush=True)
    if unsteady:
        print(f"{run}: to be run once more, alone: {', '.join(unsteady)}")
        with open(again, "a", encoding="utf-8") as out:
            print(*unsteady, sep="\n", file=out)
    with open(tally, "a", encoding="utf-8") as out:
        print(*total, file=out)
    with open(tally + ".seconds", "a", encoding="utf-8") as out:
        for test in tests:
            name = test["name"].split(" / ")[-1]
            print(f"{test.get('duration', 0):.0f} {run}/{name}", file=out)
    return 3 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
