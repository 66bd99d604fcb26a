#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The functions that nxlock.h declares, and what the library exports: any other
function of its own cannot be called in place of the program's of that name, nor
the program's in place of it.

exports.py compare HEADER LIBRARY  fails unless both are the same set; for a
                                   shared library or an archive
exports.py globals HEADER ARCHIVE  fails if an object has a mutable global
"""

import re
import subprocess
import sys


def declared(header):
    text = open(header, encoding="utf-8").read()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.M)
    return sorted(set(re.findall(r"\b(nxl_\w+)\s*\(", text)))


def exported(library):
    archive = library.endswith(".a")
    out = subprocess.run(
        ["nm", "-g" if archive else "-D", "--defined-only", library],
        check=True, capture_output=True, text=True).stdout
    names = set()
    for line in out.splitlines():
        fields = line.split()
        # The version's own symbol is absolute: "A NXLOCK_0".
        if len(fields) < 2 or fields[-2] == "A":
            continue
        name = fields[-1].split("@")[0]
        # In an archive, sanitizers and coverage have names of their own. These
        # are reserved: no program may define them.
        if not (archive and name.startswith("__")):
            names.add(name)
    return sorted(names)


def mutable(archive):
    """Symbols in sections that all threads can write to."""
    out = subprocess.run(
        ["objdump", "-t", archive],
        check=True, capture_output=True, text=True).stdout
    found = re.findall(
        r"^[0-9a-f]+ .{7} (\.(?:data|bss)\S*)\t\S+ (\S+.*)$",
        out, flags=re.M)
    return sorted(
        name for section, name in found
        if not section.startswith(".data.rel.ro") and
        not name.startswith("."))


def main(what, header, other):
    names = declared(header)
    if not names:
        sys.exit(f"{header}: no function found")
    if what == "globals":
        found = mutable(other)
        for name in found:
            print(f"{name}: a global that can change")
        sys.exit(1 if found else 0)
    found = exported(other)
    missing = [n for n in names if n not in found]
    surplus = [n for n in found if n not in names]
    for name in missing:
        print(f"{name}: declared in nxlock.h, not exported")
    for name in surplus:
        print(f"{name}: exported, not declared in nxlock.h")
    if missing or surplus:
        sys.exit(1)
    print(f"{len(names)} functions, declared and exported")


if __name__ == "__main__":
    main(*sys.argv[1:])
