#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_mutate.py DIR: what mutate.py, in DIR, makes of a line, which lines it
takes for the same in two commits, and its verdict on made-up results. TAP."""

import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import mutate # pylint: disable=wrong-import-position

# A line, and some of what it becomes; no more than that if the last is None.
LINES = (
    ("    if (a->left < 3 && b) {", "    if (!(a->left < 3 && b)) {"),
    ("    if (a->left < 3 && b) {", "    if (a->left <= 3 && b) {"),
    ("    if (a->left < 3 && b) {", "    if (a->left < 3 || b) {"),
    ("    if (a->left < 3 && b) {", "    if (a->left < 6 && b) {"),
    ("    return a == b;", "    return !(a == b);"),
    ("    *found = false;", "    *found = true;"),
    ("    drop(lock);", "    ;"),
    ('    say("1 == %d", n);', "    ;", None),
    ("    /* once == twice */", None),
    (" * a comment of several lines; n == 1", None),
    ("    return lock;", None),
    ("if r and r.open ~= late then", "if not (r and r.open ~= late) then"),
    ("if r and r.open ~= late then", "if r or r.open ~= late then"),
    ("-- a comment; n == 1", None),
)

# Lines before and after, the hunks of the difference, the lines that are alike.
DIFFS = (
    (3, 3, "", [(1, 1), (2, 2), (3, 3)]),
    (3, 3, "@@ -2 +2 @@\n-b\n+B\n", [(1, 1), (3, 3)]),
    (3, 4, "@@ -1,0 +2 @@\n+x\n", [(1, 1), (2, 3), (3, 4)]),
    (4, 2, "@@ -2,2 +1,0 @@\n-b\n-c\n", [(1, 1), (4, 2)]),
    (2, 3, "@@ -0,0 +1 @@\n+x\n", [(1, 2), (2, 3)]),
)

# What kills the fault before and after; whether that is a loss.
RESULTS = (
    ("life", "life", False),
    ("life", "lease", False),
    ("life", None, True),
    (None, None, False),
)


def becomes(line, *expected):
    found = mutate.mutants(line, "    {")
    if expected[-1] is None:
        return found == list(expected[:-1])
    return set(expected) <= set(found)


def main():
    results = [(f"{row[0].strip()} becomes {row[1]}", becomes(*row))
               for row in LINES]
    results += [(f"lines alike after {diff.splitlines()[:1]}",
                 mutate.unchanged(old, new, diff) == pairs)
                for old, new, diff, pairs in DIFFS]
    made_up = [{"after": ["src/x.c", 7], "line": "a", "fault": "b",
                "killed": {"before": before, "after": after}}
               for before, after, _ in RESULTS]
    for row, result in zip(RESULTS, made_up):
        results.append((f"caught by {row[0]}, then by {row[1]}",
                        bool(mutate.verdict([result])) == row[2]))
    results.append(("the table ends with what is lost",
                    mutate.table(made_up).splitlines()[-1] ==
                    "caught before, but not after: src/x.c:7  a  =>  b"))
    for number, (what, good) in enumerate(results, 1):
        print(f"{'' if good else 'not '}ok {number} - {what}")
    print(f"1..{len(results)}")
    return 0 if all(good for _, good in results) else 1


if __name__ == "__main__":
    sys.exit(main())
