# SPDX-License-Identifier: MIT
"""What was seen, for a person: a line a cell, and docs/fault-matrix.md."""

import faults
import stage

WORDS = {"ok": "one holder", "two": "two holders, by design"}


def line(seen):
    head = f"{seen['fault']:17} {seen['column']:9} {seen['expected']:4}"
    if "grants" in seen:
        head += (f" {seen['strikes']:4} faults {seen['grants']:5} grants "
                 f"{seen['overlaps']:3} overlaps {seen['lost']} lost "
                 f"({seen['lost_plain']} without check)")
    return "\n    ".join([head] + [f"NOT AS EXPECTED: {c}"
                                   for c in seen["complaints"]])


def page(seen, args):
    return ""
