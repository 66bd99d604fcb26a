#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_path.py ROOT PROGRAM

Follows one blocking acquire through the sources, and compares that with the
picture in docs/design.md, section "From a call to a result".

PROGRAM (path.c) prints the stack at three points: the request is queued, its
bytes are sent, the call is over. What is printed here are the functions by
which the path enters a file, from the public function on. What two stacks have
in common at their outer end is entered once. src/base does not count, and a .c
file and its header are one file.

In the picture a line is "FILE FUNCTION words". A line at the first level is an
entry of the path; a line that is indented deeper is a call that has returned
before the next point, and only has to exist.
"""

import pathlib
import re
import subprocess
import sys

POINTS = ("queued", "sent", "over")
SECTION = re.compile(r"^## From a call to a result\n.*?^```\n(.*?)^```$",
                     re.M | re.S)
LINE = re.compile(r"^( *)([\w/]+\.c) +(\w+)")
BLOCK = r"(?:^(?:queued|sent|over) 0x\w+\n)+"
MOST_LINES = 30
MOST_ENTRIES = 2


def stacks_of(output):
    """The addresses at each point, outermost first; of the first time only."""
    stacks = {}
    for block in re.findall(BLOCK, output, re.M):
        lines = [line.split() for line in block.splitlines()]
        stacks.setdefault(lines[0][0], [address for _, address in lines][::-1])
    return stacks


def frames_of(addresses, program, source):
    """(file, function) of each frame in source, but for source/base."""
    shown = subprocess.run(
        ["addr2line", "-a", "-i", "-f", "-e", program] + addresses,
        check=True, capture_output=True, text=True).stdout
    frames = []
    for frame in re.split(r"^0x.*\n", shown, flags=re.M)[1:]:
        lines = frame.splitlines()
        # What was inlined comes before the function that it was inlined into.
        for function, place in list(zip(lines[::2], lines[1::2]))[::-1]:
            path = pathlib.Path(place.split(":")[0]).resolve()
            if path.is_relative_to(source):
                name = path.relative_to(source).with_suffix(".c").as_posix()
                frames.append((name, function))
    return [frame for frame in frames if not frame[0].startswith("base/")]


def path_of(chains):
    """The entries of all chains, one after the other, and where each begins."""
    path = []
    before = []
    for point, chain in zip(POINTS, chains):
        shared = 0
        while (shared < min(len(before), len(chain)) and
               before[shared] == chain[shared]):
            shared += 1
        for i in range(shared, len(chain)):
            if i == 0 or chain[i][0] != chain[i - 1][0]:
                path.append((point,) + chain[i])
        before = chain
    return path


def picture_of(design):
    found = SECTION.search(design)
    if not found:
        sys.exit('docs/design.md has no picture "From a call to a result"')
    lines = found.group(1).splitlines()
    if len(lines) > MOST_LINES:
        sys.exit(f"the picture has {len(lines)} lines, not {MOST_LINES}")
    rows = [LINE.match(line) for line in lines]
    rows = [(len(m[1]), m[2], m[3]) for m in rows if m]
    first = min((row[0] for row in rows), default=0)
    return [(row[0] == first,) + row[1:] for row in rows]


def is_defined(source, file, function):
    """Is the function in the file, or in its header?"""
    pattern = rf"^(?:[A-Za-z_][\w *]*[ *])?{function}\("
    both = (source / file, (source / file).with_suffix(".h"))
    return any(re.search(pattern, path.read_text(), re.M)
               for path in both if path.exists())


def main(root, program):
    source = pathlib.Path(root).resolve() / "src"
    run = subprocess.run([program], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stdout + run.stderr)
    stacks = stacks_of(run.stdout)
    if not stacks and "SKIP" in run.stdout + run.stderr:
        sys.exit(77)
    missing = [point for point in POINTS if point not in stacks]
    if missing:
        sys.exit("the acquire was never at: " + ", ".join(missing))

    path = path_of([frames_of(stacks[point], program, source)
                    for point in POINTS])
    print("point   file                 entered by")
    for point, file, function in path:
        print(f"{point:7} {file:20} {function}")

    errors = []
    picture = picture_of((source.parent / "docs/design.md").read_text())
    for _, file, function in picture:
        if not (source / file).exists():
            errors.append(f"the picture has src/{file}, which does not exist")
        elif not is_defined(source, file, function):
            errors.append(f"the picture has {function}, "
                          f"which is not in src/{file}")
    entries = [entry[1:] for entry in path]
    drawn = [row[1:] for row in picture if row[0]]
    for i in range(max(len(entries), len(drawn))):
        real = " ".join(entries[i]) if i < len(entries) else "nothing"
        said = " ".join(drawn[i]) if i < len(drawn) else "nothing"
        if real != said:
            errors.append(f"entry {i + 1} of the path is {real}; "
                          f"the picture has {said}")
            break
    files = [file for file, _ in entries]
    for file in sorted(set(files)):
        if files.count(file) > MOST_ENTRIES:
            errors.append(f"the path enters src/{file} "
                          f"{files.count(file)} times")
    for error in errors:
        print("docs/design.md, src: " + error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
