# SPDX-License-Identifier: MIT
"""nxlock-faults: every fault at every topology, expected and seen. Ends with
1 when a cell is not as expected."""

import argparse
import sys
import traceback

import cell
import document
import faults
import stage

JOBS = 3  # cells at a time
# One cell of each topology, those that show that two holders are seen, and
# those that no test of tests/live tries.
SHORT = [("lost-replies", "one"), ("failover-lagging", "replica"),
         ("flushall", "redlock3"), ("restart-empty", "redlock3"),
         ("restart-guarded", "redlock3"),
         ("restart-empty", "one"), ("stop-short", "one"), ("stop-long", "one"),
         ("delay", "redlock3"), ("pollers", "one"),
         ("chaos", "one"), ("chaos-guarded", "redlock3"), ("kinds", "one"),
         ("kinds", "redlock3"), ("kinds-restarted", "one"),
         ("kinds-guarded", "one"), ("timestamps", "one"),
         ("timestamps-bare", "one")]


def arguments():
    parser = argparse.ArgumentParser(
        prog="nxlock-faults", description=__doc__,
        epilog="Faults: " + ", ".join(f.name for f in faults.FAULTS))
    parser.add_argument("--programs", help=argparse.SUPPRESS)
    parser.add_argument("--only", metavar="FAULT", action="append",
                        choices=[f.name for f in faults.FAULTS])
    parser.add_argument("--topology", metavar="T", action="append",
                        choices=[*stage.COLUMNS, "redlock"],
                        help="one, replica, redlock, or one column of it: "
                        "redlock2, redlock3")
    parser.add_argument("--seed", type=int, default=1,
                        help="draws other faults (default 1)")
    parser.add_argument("--seconds", type=stage.number(0.1, 3600, float),
                        default=4, help="of faults in each cell (default 4)")
    parser.add_argument("--short", action="store_true",
                        help="some cells of each topology, for a quick test")
    parser.add_argument("--check", metavar="FILE", type=argparse.FileType(),
                        help="play nothing; compare the page's faults, "
                        "topologies and what is expected with those here")
    args = parser.parse_args()
    if not list(chosen(args)):
        parser.error("there is no such cell: " + "; ".join(exists(args)))
    return args


def exists(args):
    """What there is of what was asked for."""
    if args.short:
        yield "--short has " + ", ".join(f"{f} at {c}" for f, c in SHORT)
    for fault in faults.FAULTS:
        if fault.name in (args.only or ()):
            yield f"{fault.name} is played at " + ", ".join(fault.expected)


def chosen(args):
    for fault in faults.FAULTS:
        for column in fault.expected:
            if args.short and (fault.name, column) not in SHORT:
                continue
            if args.only and fault.name not in args.only:
                continue
            if args.topology and not {
                    column, column[:7]} & set(args.topology):
                continue
            yield (fault.name, column, args.seed, args.seconds,
                   args.programs, args.short)


def play(work):
    """With --short, a cell that is to show two holders and does not is played
    again: on a busy machine too little happens in so short a time."""
    name, column, *_, short = work
    fault = next(f for f in faults.FAULTS if f.name == name)
    shows = fault.expected[column] != "ok"
    for _ in range(stage.SHORT_TRIES if short and shows else 1):
        seen = play_once(fault, *work[1:])
        if stage.settled(seen["complaints"]):
            break
    return seen


def play_once(fault, column, *rest):
    this = cell.Cell(fault, column, *rest)
    try:
        return this.run()
    except Exception:
        return {"fault": fault.name, "column": column,
                "expected": fault.expected[column],
                "complaints": ["broken: " + traceback.format_exc()]}


def main():
    args = arguments()
    if args.check:
        wrong = document.stale(args.check.read())
        for what in wrong:
            print(f"{args.check.name}: {what}", file=sys.stderr)
        return 1 if wrong else 0
    if stage.unplayed() is not None:
        return stage.unplayed()
    work, seen = list(chosen(args)), []
    with stage.pool(JOBS) as pool:
        for result in pool.imap_unordered(play, work):
            seen.append(result)
            print(document.line(result), flush=True)
    places = [(f.name, c) for f in faults.FAULTS for c in stage.COLUMNS]
    seen.sort(key=lambda r: places.index((r["fault"], r["column"])))
    bad = [r for r in seen if r["complaints"]]
    print("\n" + document.tables(seen))
    print(f"\n{len(seen)} cells, {len(bad)} not as expected, seed {args.seed}")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
