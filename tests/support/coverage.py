#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""coverage.py ROOT OBJECTS FOLDER...: sums what gcov reports of these objects.

A line or branch of a header that is compiled into several objects counts once,
and as reached if any of them reached it. Exits 1 if a folder has less than
90 % of its lines.
"""

import collections
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

LEAST = 90.0


def counted(root, objects):
    """{path: ({line: count}, {(line, branch): count})}"""
    files = collections.defaultdict(lambda: ({}, {}))
    data = [str(p.resolve()) for p in sorted(objects.glob("*.gcda"))]
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["gcov", "--json-format", "--branch-probabilities",
                        *data], cwd=place, check=True,
                       stdout=subprocess.DEVNULL)
        for path in pathlib.Path(place).glob("*.json.gz"):
            with gzip.open(path) as stream:
                add(root, objects, json.load(stream), files)
    return files


def add(root, objects, found, files):
    where = pathlib.Path(found["current_working_directory"])
    for file in found["files"]:
        path = (where / file["file"]).resolve()
        if not path.is_relative_to(root):
            path = (objects.parent.parent / file["file"]).resolve()
        if not path.is_relative_to(root):
            continue
        lines, branches = files[str(path.relative_to(root))]
        for line in file["lines"]:
            number = line["line_number"]
            lines[number] = lines.get(number, 0) + line["count"]
            for i, branch in enumerate(line["branches"]):
                key = number, i
                branches[key] = branches.get(key, 0) + branch["count"]


def share(counts):
    reached = sum(1 for count in counts.values() if count)
    return reached, len(counts), 100 * reached / max(1, len(counts))


def spans(lines):
    """Lines that nothing reached: "12-14 20"."""
    missed, out = sorted(n for n, count in lines.items() if not count), []
    code = sorted(lines)
    for number in missed:
        before = code[code.index(number) - 1] if code[0] < number else None
        if out and before == out[-1][1]:
            out[-1][1] = number
        else:
            out.append([number, number])
    return " ".join(f"{a}-{b}" if a != b else str(a) for a, b in out)


def main():
    root, objects = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    files, low = counted(root, objects), False
    for folder in sys.argv[3:]:
        mine = {p: f for p, f in sorted(files.items())
                if pathlib.PurePath(p).is_relative_to(folder)}
        lines = {(p, k): c for p, f in mine.items() for k, c in f[0].items()}
        branches = {(p, k): c for p, f in mine.items()
                    for k, c in f[1].items()}
        low = low or share(lines)[2] < LEAST
        print("%s: %d of %d lines, %.1f %%; %d of %d branches, %.1f %%" % (
            folder, *share(lines), *share(branches)))
        for path, (own, ways) in mine.items():
            print("  %-24s %5.1f %% %5.1f %%  %s" % (
                path[len(folder) + 1:], share(own)[2],
                share(ways)[2] if ways else 100, spans(own)))
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
