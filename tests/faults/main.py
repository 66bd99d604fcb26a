# SPDX-License-Identifier: MIT
"""nxlock-faults: every fault at every topology, expected and seen. Ends with
1 when a cell is not as expected."""

import argparse
import multiprocessing
import os
import pathlib
import shutil
import sys
import traceback

import cell
import document
import faults
import stage

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
    parser.add_argument("--seed", type=seed, default=1,
                        help="draws other faults (default 1)")
    parser.add_argument("--seconds", type=seconds, default=4,
                        help="of faults in each cell (default 4)")
    parser.add_argument("--jobs", type=jobs, default=3,
                        help="cells at a time (default 3)")
    parser.add_argument("--short", action="store_true",
                        help="some cells of each topology, for a quick test")
    parser.add_argument("--write", metavar="FILE", type=writable,
                        help="write the document")
    parser.add_argument("--check", metavar="FILE", type=readable,
                        help="play nothing; compare the document's faults, "
                        "topologies and what is expected with those here")
    args = parser.parse_args()
    if not list(chosen(args)):
        parser.error("there is no such cell: " + "; ".join(exists(args)))
    return args


def seed(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return int(text)


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number above 0 and up to 3600")
    return value


def jobs(text):
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number from 1 to 100")
    return int(text)


def writable(name):
    place = pathlib.Path(name)
    if place.is_dir() or not os.access(
            place if place.exists() else place.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{name} cannot be written")
    return name


def readable(name):
    try:
        return name, pathlib.Path(name).read_text()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error.strerror}")


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
    name, column, *rest = work
    fault = next(f for f in faults.FAULTS if f.name == name)
    this = cell.Cell(fault, column, *rest)
    try:
        return this.run()
    except Exception:
        return {"fault": name, "column": column,
                "expected": fault.expected[column],
                "complaints": ["broken: " + traceback.format_exc()]}


def main():
    args = arguments()
    if args.check:
        name, text = args.check
        wrong = document.stale(text)
        for what in wrong:
            print(f"{name}: {what}", file=sys.stderr)
        return 1 if wrong else 0
    if shutil.which(stage.servers.PROGRAM) is None:
        skip = os.environ.get("NXLOCK_SKIP_LIVE") == "1"
        print(f"{stage.servers.PROGRAM} is not installed", file=sys.stderr)
        return 77 if skip else 1
    work, seen = list(chosen(args)), []
    # Processes, each with the cells it is given one after the other: what a
    # cell starts dies with its process.
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for result in pool.imap_unordered(play, work):
            seen.append(result)
            print(document.line(result), flush=True)
    places = [(f.name, c) for f in faults.FAULTS for c in stage.COLUMNS]
    seen.sort(key=lambda r: places.index((r["fault"], r["column"])))
    bad = [r for r in seen if r["complaints"]]
    print(f"\n{len(seen)} cells, {len(bad)} not as expected, seed {args.seed}")
    if args.write:
        pathlib.Path(args.write).write_text(document.page(seen, args))
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
