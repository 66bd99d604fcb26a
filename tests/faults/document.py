# SPDX-License-Identifier: MIT
"""What was seen, for a person: a line a cell, and docs/fault-matrix.md."""

import cell
import faults
import stage


def line(seen):
    head = f"{seen['fault']:17} {seen['column']:9} {seen['expected']:4}"
    if "grants" in seen:
        head += (f" {seen['strikes']:4} faults {seen['grants']:5} grants "
                 f"{seen['overlaps']:3} overlaps {seen['lost']} lost "
                 f"({seen['lost_plain']} without the check)")
    return "\n    ".join([head] + [f"NOT AS EXPECTED: {c}"
                                   for c in seen["complaints"]])


HEAD = """\
# What faults do to the lock

<!-- written by nxlock-faults; do not edit -->

{contenders} processes want one name at real servers, half of them with
`options.renew`, all with `options.fence`, while a fault happens again and
again. Each writes down when it relied on the lock: from when it was told so to
its deadline, its release or the notice of the loss. Two such times that overlap
are two holders. While it holds the lock each adds one to two counters of an
SQLite file, by reading, working and writing; one of the two refuses what comes
under a smaller fencing number than it has seen.

Each asks for a ttl of {ttl} ms; `max_ttl_ms` is {max_ttl}, and the timeout of a
call {timeout} ms.

The table is made by one command, in a build with `-Dtests=enabled`:

    BUILD/tests/faults/nxlock-faults{options} --write docs/fault-matrix.md

It ends with 1 when a cell is not as expected. `--only FAULT` and
`--topology T` choose (`--help` names them), `--seed N` draws other faults. The
seed says which faults come and how long they last, not how the machine runs
what it runs meanwhile: numbers differ from run to run, verdicts do not.

In **every** cell it is expected, and was looked at, that with the check no
update is lost; that fencing numbers grow in the order of the grants; that the
name is granted again as soon as all is well (while two of five servers suffer,
all the time); that {left} ms after the last process ended or was killed no key
is left but the counters of the numbers; and that no call outlasts its deadline.
Where the network suffers, three threads share a process's connections, and none
is given the answer to another one's question.

- **one**: no two ever held the lock at a time.
- **two**: by design two may hold it (docs/guarantees.md). The fault is aimed at
  a holder, and repeated until two holders at a time have been seen, an update
  that was lost by them without the check, and one that the check refused.
- a cell in capitals is not as expected; the last section says why.
- empty: the fault is none of that topology, or the guarantees leave it open.

## Expected and seen

"""

SPARED = """
\\* Only while the token stands at all five. A holder that three servers granted
has none to spare: with two of them struck another one may get the name.
"""

NOTES = """
Where it says **two**, the remedy is: for `restart-empty` and `power-cut` the
restart guard (`restart-guarded`, `power-cut-guarded`) or `appendfsync always`
(`restart-aof`); for `evict` the policy `noeviction` (`oom`); for `clock-ahead`
to slew the servers' clocks and not to step them; for failovers to wait, after
one, as long as a lease may last, as `guard_restarts=1` does in a client that
lives on (`failover-guarded`; one that is begun after the failover knows of
none); for `classic` the scheme `timestamp` in every program; for `flushall`,
whoever gives it. And for all of them, as for a holder that is stopped just
before it writes (`client-stop`): a resource that looks at the fencing number.

A holder that hangs (`hung`) makes no two, but nobody else gets the name while
it is renewed. The remedy is `max_hold_ms`: it is told of the loss and another
one gets the name, as was looked at.

All of it runs on one machine. So the servers' clocks agree but where they are
stepped: after a loss of data or a failover the fencing numbers lean on that
(docs/guarantees.md, G7). And no power fails: SIGKILL loses nothing that the
server had written, whatever `appendfsync` says. So `power-cut` shortens the
append-only file itself, to what stood there before the grant, which `everysec`
may not have brought to the disk; the counter of the numbers goes back as well.

The restarts that lose the lock, without a guard, are not shown for two of five:
a holder that three servers granted has none to spare there either.

## Numbers

Of each cell: how often the fault happened; grants; pairs of holders that
overlapped, and for how long at most; late writes that the check refused;
updates lost without the check, and with it; acquires and releases without an
answer (`NXL_UNKNOWN`); the longest time without a grant.

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


def options(args):
    text = f" --seed {args.seed}"
    if args.seconds != 4:
        text += f" --seconds {args.seconds:g}"
    for name in args.only or ():
        text += f" --only {name}"
    for name in args.topology or ():
        text += f" --topology {name}"
    return text + (" --short" if args.short else "")


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


def page(results, args):
    text = HEAD.format(
        contenders=cell.CONTENDERS, options=options(args), ttl=cell.TTL_MS,
        max_ttl=cell.MAX_TTL_MS, timeout=cell.TIMEOUT_MS,
        left=cell.MAX_TTL_MS + 1000)
    text += matrix(results) + NOTES
    text += "| " + " | ".join(NUMBERS) + " |\n"
    text += "|---|---" + "|---:" * (len(NUMBERS) - 2) + "|\n"
    text += "".join(numbers(r) for r in results if "grants" in r)
    grants = sum(r.get("grants", 0) for r in results)
    writes = sum(r.get("writes", 0) for r in results)
    refused = sum(r.get("refused", 0) for r in results)
    plain = sum(r.get("lost_plain", 0) for r in results)
    lost = sum(r.get("lost", 0) for r in results)
    text += (f"\nTogether {grants} grants and {writes} writes. The check "
             f"refused {refused} of them. Without it {plain} updates were "
             f"lost, with it {lost}.\n")
    bad = [r for r in results if r["complaints"]]
    text += "\n## Not as expected\n\n"
    for r in bad:
        text += f"- `{r['fault']}`, {stage.COLUMNS[r['column']]}: " + \
            "; ".join(r["complaints"]).replace("\n", " ") + "\n"
    return text + ("" if bad else "Nothing.\n")
