# SPDX-License-Identifier: MIT
"""What was seen, for a person: a line a cell, and a page of numbers.
Its table of verdicts is also in docs/proof.md."""

import cell
import faults
import stage


def line(seen):
    head = f"{seen['fault']:17} {seen['column']:9} {seen['expected']:4}"
    if "grants" in seen:
        head += (f" {seen['strikes']:4} faults {seen['grants']:5} grants "
                 f"{seen['overlaps']:3} overlaps {seen['lost']} lost "
                 f"({seen['lost_plain']} without the check)")
    return "\n".join([head] + [
        c if c.startswith("HARM: ") else f"    NOT AS EXPECTED: {c}"
        for c in seen["complaints"]])


HEAD = """\
# What faults do to the lock

<!-- written by nxlock-faults; do not edit -->

{contenders} processes compete for one name on real servers, half of them with
`options.renew`, all with `options.fence`, while a fault is injected again and
again. Each process records when it relied on the lock: from the grant to its
deadline, its release or the report of the loss. If two of these periods
overlap, there were two holders. While it holds the lock, a process increments
two counters in an SQLite file: it reads, works and writes. One of the two
counters rejects a write with a lower fencing token than it has seen.

Each lock has a TTL of {ttl} ms; `max_ttl_ms` is {max_ttl}, and the timeout of
a call is {timeout} ms.

The table is made by one command, in a build with `-Dtests=enabled`:

    BUILD/tests/faults/nxlock-faults{options} --write FILE

It exits with 1 if a cell is not as expected. `--only FAULT` and `--topology T`
select cells (`--help` lists them); `--seed N` chooses other faults. The seed
determines which faults are injected and how long they last, but not how the
machine schedules the processes: numbers differ from run to run, verdicts do
not.

In **every** cell these were expected and checked: with the check of the
fencing token, no update is lost; fencing tokens grow in the order of the
grants; the name is granted again as soon as the fault is over (while only two
of five servers are affected, all the time); {left} ms after the last process
has ended or was killed, no key is left except the fencing counters and the
line of those who were killed in it, which ends within {line} ms; and no call
outlasts its deadline. For network faults, three threads share a process's
connections, and none gets the answer to another thread's request.

- **one**: there were never two holders at a time.
- **two**: by design there may be two holders (docs/guarantees.md). The fault
  is aimed at a holder, and repeated until these have been seen: two holders at
  a time, an update that they lost without the check, and one that the check
  rejected.
- a cell in capitals is not as expected; the last section says why.
- empty: the fault does not apply to this topology, or the guarantees leave the
  result open.

## Expected and seen

"""

SPARED = """
\\* Only while all five servers have the token. If only three servers granted
the lock and two of them are affected, another client may get the name.
"""

NOTES = """
The remedies for **two**:

- `restart-empty`, `power-cut`: the restart quarantine (`restart-guarded`,
  `power-cut-guarded`) or `appendfsync always` (`restart-aof`)
- `evict`: the policy `noeviction` (`oom`)
- `clock-ahead`: slew the servers' clocks, do not step them
- failovers: wait after a failover for as long as a lease may last. A running
  client with `guard_restarts=on` does so (`failover-guarded`); one that is
  started after the failover does not know of it
- `classic`: `scheme=timestamp` in every program
- `flushall`: do not send it
- all of them, and a holder that is stopped just before it writes
  (`client-stop`): a resource that checks the fencing token

`clock-back` strikes locks that renew themselves. The key of one that is not
released before its lease ends stays for as long as the clock was set back: one
holder, but nobody after it (docs/guarantees.md, G4).

A holder that hangs (`hung`) does not cause two holders, but no other process
gets the name while its lease is renewed. The remedy is `max_hold_ms`: the loss
is reported and another process gets the name, which was checked.

Everything runs on one machine. So the servers' clocks agree, except where they
are stepped; after a loss of data or a failover, fencing tokens depend on that
(docs/guarantees.md, G7). And the power never fails: SIGKILL loses nothing that
the server has written, whatever `appendfsync` says. So `power-cut` truncates
the append-only file to what it had before the grant, which `everysec` may not
have written to the disk yet; that sets the fencing counter back too.

Records of work that is done once (docs/guarantees.md) suffer the same faults,
and processes that die at every step, from a tool of their own,
`nxlock-once-faults`; docs/proof.md has its numbers.

Restarts that lose the lock without the quarantine are not shown for two of
five servers: a lock that was granted by three has no server to lose there
either.

## Numbers

For each cell: how often the fault was injected; grants; pairs of holders that
overlapped, and for how long at most; late writes that the check rejected;
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
        left=cell.MAX_TTL_MS + 1000, line=stage.LINE_MS)
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
