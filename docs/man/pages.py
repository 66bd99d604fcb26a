#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pages.py NXLOCK3 DIRECTORY: a manual page for each function and structure.

Cuts nxlock(3) into nxl_lock_acquire(3) and so on, so that "man
nxl_lock_acquire" shows what nxlock(3) says of it and nothing is written twice.

Invariant: every .Fo entry and every .Ss nxl_ part of nxlock(3) is one page.
"""

import pathlib
import re
import sys

PAGE = r""".\" SPDX-License-Identifier: MIT
.\" Made from nxlock.3 by pages.py.
{date}
.Dt {title} 3
.Os
.Sh NAME
.Nm {name}
.Nd {brief}
.Sh LIBRARY
nxlock library (libnxlock, \-lnxlock)
.Sh SYNOPSIS
.In nxlock.h
{synopsis}
.Sh DESCRIPTION
{text}
.Sh SEE ALSO
{others}
"""


class Entry:
    """A function or structure: its declaration and text, as mdoc lines."""

    def __init__(self, name, synopsis):
        self.name, self.synopsis = name, synopsis
        self.text, self.shared = [], []


def words_of(line):
    """What a line shows, without its macros."""
    if line.startswith("."):
        line = re.sub(r"(?<!\S)\.?[A-Z][a-z](?!\S)", "", line)
    return line.replace('"', "").strip()


def brief(entry):
    """Its first sentence, as the line that apropos(1) shows."""
    text = " ".join(words_of(line) for line in entry.text or entry.shared)
    text = re.sub(r" ([.,;:])", r"\1", " ".join(text.split()))
    text = re.split(r"[.;:](?: |$)", text)[0]
    return text[:1].lower() + text[1:]


def sections(lines):
    """The lines of each .Sh and .Ss, its head first."""
    found = [[]]
    for line in lines:
        if line.startswith((".Sh", ".Ss")):
            found.append([])
        found[-1].append(line)
    return found


def functions(section):
    """The entries of its lists. Those of a -compact list have no text of their
    own but what they start, and share what is written before the list."""
    entry, depth, before, shared = None, 0, [], []
    lines = iter(section[1:])
    for line in lines:
        if line.startswith(".El"):
            depth -= 1
        if line.startswith(".It") and depth == 1:
            if entry:
                yield entry
            head = []
            if line.startswith(".It Xo"):
                head = list(iter(lambda: next(lines), ".Xc"))
            named = [word[4:] for word in head if word.startswith(".Fo ")]
            entry = Entry(named[0], head) if named else None
            if entry:
                entry.shared = shared
        elif depth == 0 and line.startswith(".El"):
            if entry:
                yield entry
            entry, before = None, []
        elif depth > 0 and entry:
            entry.text.append(line)
        elif depth == 0 and line.startswith(".Bl"):
            shared = before if "-compact" in line else []
        elif depth == 0:
            before.append(line)
        if line.startswith(".Bl"):
            depth += 1


def entries_of(lines):
    for section in sections(lines):
        if section and section[0].startswith(".Ss nxl_"):
            name = section[0].split()[1]
            entry = Entry(name, [f".Vt {name}"])
            entry.text = section[1:]
            yield entry
        elif section:
            yield from functions(section)


def page(entry, date, pages):
    text = entry.text + entry.shared
    while text[-1] == ".Pp":
        text.pop()
    # A section that is referred to is one of the whole manual.
    text = [re.sub(r"\bSx ([^.,]+?)( [.,].*)?$", r"Dq \1\2", line)
            for line in text]
    named = {name for line in text for name in re.findall(r"nxl_\w+", line)}
    others = sorted((named & pages) - {entry.name}) + ["nxlock"]
    return PAGE.format(
        date=date, title=entry.name.upper(), name=entry.name,
        brief=brief(entry), synopsis="\n".join(entry.synopsis),
        text="\n".join(text), others=" ,\n".join(
            f".Xr {other} 3" for other in others))


def main(manual, directory):
    lines = pathlib.Path(manual).read_text(encoding="utf-8").splitlines()
    date = next(line for line in lines if line.startswith(".Dd"))
    entries = list(entries_of(lines))
    names = {entry.name for entry in entries}
    for entry in entries:
        path = pathlib.Path(directory) / f"{entry.name}.3"
        path.write_text(page(entry, date, names), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
