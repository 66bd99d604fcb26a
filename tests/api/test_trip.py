#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_trip.py ROOT PROGRAM

Follows one acquire and one release through the sources: every call of the
library's functions, as PROGRAM (trip.c) prints them. An entry is a call from
one file of src into another one, or of the public function. A .c file and its
header are one file, and src/base does not count.

Fails if one of the two trips enters a file by more than MOST functions, but for
the exceptions in MORE. And fails if the picture in docs/design.md,
section "From a call to a result", is not the trip of the acquire: each function
by which a file is entered, in the order of the first calls, indented below the
function from which it is reached. In the picture a line is "FUNCTION FILE
words". Prints the picture as it should be, without the words.
"""

import pathlib
import re
import subprocess
import sys

MOST = 3
MORE = {
    # A turn asks a server four things: to queue a request, to send what waits,
    # for the next completion, and how long it can sleep. The last one cannot
    # be an answer to the second, because completions may queue requests.
    "net/server.c": 4,
    # A container: room is reserved before a command is formatted, so that what
    # follows cannot fail; then add, look at, take out.
    "net/slots.c": 4,
}
SECTION = re.compile(r"^## From a call to a result\n.*?^```\n(.*?)^```$",
                     re.M | re.S)
LINE = re.compile(r"^( *)(\w+) +([\w/]+\.c)(?: |$)")
CALL = re.compile(r"^(acquire|release) (\d+) (0x\w+) (0x\w+)$", re.M)


def places_of(addresses, program, source):
    """(file, function) of each address; (None, ...) outside of source."""
    shown = subprocess.run(
        ["addr2line", "-f", "-e", program] + addresses,
        check=True, capture_output=True, text=True).stdout.splitlines()
    places = {}
    for address, function, place in zip(addresses, shown[::2], shown[1::2]):
        path = pathlib.Path(place.split(":")[0]).resolve()
        name = None
        if path.is_relative_to(source):
            name = path.relative_to(source).with_suffix(".c").as_posix()
        places[address] = name, function
    return places


def entries_of(calls, places):
    """(depth, file, function) of each entry, in the order of the calls. depth
    counts the entries that have not returned."""
    entries, open_calls = [], []
    for depth, called, site in calls:
        del open_calls[depth:]
        file, function = places[called]
        # What hiredis calls back is no entry.
        enters = (file and not file.startswith("base/") and
                  file != places[site][0] and (places[site][0] or depth == 0))
        if enters:
            entries.append((sum(open_calls), file, function))
        open_calls.append(bool(enters))
    return entries


def tree_of(entries):
    """The same without what was entered before, unless it leads to what was
    not."""
    new = []
    seen = set()
    for entry in entries:
        new.append(entry[1:] not in seen)
        seen.add(entry[1:])
    tree = []
    for i, entry in enumerate(entries):
        end = i + 1
        while end < len(entries) and entries[end][0] > entry[0]:
            end += 1
        if any(new[i:end]):
            tree.append(entry)
    return tree


def picture_of(design):
    found = SECTION.search(design)
    if not found:
        sys.exit('docs/design.md has no picture "From a call to a result"')
    rows = []
    for text in found.group(1).splitlines():
        line = LINE.match(text)
        if not line:
            sys.exit(f"docs/design.md: {text!r} is no line of the picture")
        rows.append((len(line[1]) // 2, line[3], line[2]))
    return rows


def functions_of(entries):
    """By file: the functions by which it is entered."""
    functions = {}
    for _, file, function in entries:
        if function not in functions.setdefault(file, []):
            functions[file].append(function)
    return functions


def check_counts(trips):
    errors = []
    for call, entries in trips.items():
        for file, functions in sorted(functions_of(entries).items()):
            most = MORE.get(file, MOST)
            if len(functions) > most:
                errors.append(
                    f"src/{file}: the {call} enters it by {len(functions)} "
                    f"functions, not {most}: {', '.join(functions)}")
    for file, most in MORE.items():
        used = max(len(functions_of(entries).get(file, []))
                   for entries in trips.values())
        if used < most:
            errors.append(f"tests/api/test_trip.py: MORE allows src/{file} "
                          f"{most} functions, and it needs {used}")
    return errors


def check_picture(tree, picture):
    for i in range(max(len(tree), len(picture))):
        real = tree[i] if i < len(tree) else None
        drawn = picture[i] if i < len(picture) else None
        if real != drawn:
            words = ["{1} {2}, indented by {0}".format(*row) if row else
                     "nothing" for row in (real, drawn)]
            return [f"docs/design.md: line {i + 1} of the trip is {words[0]}; "
                    f"the picture has {words[1]}"]
    return []


def main(root, program):
    source = pathlib.Path(root).resolve() / "src"
    run = subprocess.run([program], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stdout + run.stderr)
    rows = CALL.findall(run.stdout)
    if not rows and "SKIP" in run.stdout + run.stderr:
        sys.exit(77)
    places = places_of(sorted({address for row in rows for address in row[2:]}),
                       program, source)
    trips = {}
    for call in ("acquire", "release"):
        trips[call] = entries_of(
            [(int(row[1]), row[2], row[3]) for row in rows if row[0] == call],
            places)
    tree = tree_of(trips["acquire"])
    for depth, file, function in tree:
        print(f"{'  ' * depth + function:40} {file}")
    for call, entries in trips.items():
        functions = functions_of(entries)
        print(f"{call}: {len(entries)} entries, "
              f"{sum(map(len, functions.values()))} functions, "
              f"{len(functions)} files")
    picture = picture_of((source.parent / "docs/design.md").read_text())
    errors = check_counts(trips) + check_picture(tree, picture)
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
