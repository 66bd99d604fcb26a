# SPDX-License-Identifier: MIT
"""What was seen, for a person: a line a cell, and two tables."""

import faults
import stage


def line(seen):
    head = f"{seen['fault']:17} {seen['column']:9} {seen['expected']:4}"
    if "grants" in seen:
        head += (f" {seen['strikes']:4} faults {seen['grants']:5} grants "
                 f"{seen['overlaps']:3} overlaps {seen['lost']} lost "
                 f"({seen['lost_plain']} without the check)")
    return "\n".join([head] + [
        ("" if stage.is_harm(c) else "    ") + stage.told(c)
        for c in seen["complaints"]])


SPARED = """
\\* Only while all five servers have the token. If only three servers granted
the lock and two of them are affected, another client may get the name.
"""

NUMBERS = ("fault", "topology", "faults", "grants", "two at a time",
           "longest, ms", "refused", "lost without", "lost with", "unknown",
           "gap, ms")


def spared(fault, column):
    """Two of five are struck while none of the five is missing, no sooner."""
    return column == "redlock2" and fault.expected is faults.MAJORITY


def word(fault, column):
    if fault.expected[column] != "ok":
        return "**two**"
    return "one *" if spared(fault, column) else "one"


def entry(fault, seen):
    if seen is None:
        return ""
    if seen["complaints"]:
        return "NOT AS EXPECTED"
    return word(fault, seen["column"])


def matrix(results):
    at = {(r["fault"], r["column"]): r for r in results}
    text = "| fault | what happens | " + " | ".join(
        stage.COLUMNS.values()) + " |\n"
    text += "|---|---|" + "---|" * len(stage.COLUMNS) + "\n"
    starred = False
    for fault in faults.FAULTS:
        if any(f == fault.name for f, _ in at):
            text += f"| `{fault.name}` | {fault.text} | " + " | ".join(
                entry(fault, at.get((fault.name, c)))
                for c in stage.COLUMNS) + " |\n"
            starred |= any(spared(fault, c) and (fault.name, c) in at
                           for c in stage.COLUMNS)
    return text + (SPARED if starred else "")


def stale(text):
    """What a page tells of other cells than those that are played, and of
    what is expected in them."""
    head = "| fault | what happens | " + " | ".join(stage.COLUMNS.values())
    if head + " |" not in text.splitlines():
        return ["its topologies are not: "
                + ", ".join(stage.COLUMNS.values())]
    rows, wrong = {}, []
    for line in text.split(head, 1)[1].split("\n\n", 1)[0].splitlines():
        if line.startswith("| `"):
            name, *cells = [c.strip() for c in line.split("|")[1:-1]]
            rows[name.strip("`")] = cells
    for fault in faults.FAULTS:
        cells = [fault.text] + [word(fault, c) if c in fault.expected else ""
                                for c in stage.COLUMNS]
        there = rows.pop(fault.name, None)
        if there is None:
            wrong.append(f"there is no row for {fault.name}")
        elif len(there) != len(cells) or any(
                t not in (c, "NOT AS EXPECTED" if c else c)
                for t, c in zip(there, cells)):
            wrong.append(f"{fault.name} is " + " | ".join(there) + ", not "
                         + " | ".join(cells))
    return wrong + [f"there is no fault {name}" for name in rows]


def numbers(seen):
    unknown = seen["acquires"].get("unknown", 0) + \
        seen["releases"].get("unknown", 0)
    return "| " + " | ".join(str(value) for value in (
        f"`{seen['fault']}`", stage.COLUMNS[seen["column"]], seen["strikes"],
        seen["grants"], seen["overlaps"], seen["longest_ms"], seen["refused"],
        seen["lost_plain"], seen["lost"], unknown, seen["gap_ms"])) + " |\n"


def tables(results):
    """The verdicts, as docs/proof.md has them; and for each cell: how often the
    fault was injected; grants; pairs of holders that overlapped, and for how
    long at most; late writes that the check rejected; updates lost without the
    check, and with it; acquires and releases without an answer (NXL_UNKNOWN);
    the longest time without a grant."""
    text = matrix(results) + "\n| " + " | ".join(NUMBERS) + " |\n"
    text += "|---|---" + "|---:" * (len(NUMBERS) - 2) + "|\n"
    text += "".join(numbers(r) for r in results if "grants" in r)

    def total(name):
        return sum(r.get(name, 0) for r in results)
    return text + (
        f"\nTogether {total('grants')} grants and {total('writes')} writes. "
        f"The check refused {total('refused')} of them. Without it "
        f"{total('lost_plain')} updates were lost, with it {total('lost')}.")
