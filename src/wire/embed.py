#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Embeds Lua scripts in C: embed.py FOLDER SOURCE HEADER DEPFILE

Writes the definition of scripts[] (wire/script.h) to SOURCE, and enum script_id
to HEADER. Each FOLDER/NAME.lua that no other one includes is a script, and has
the entry SCRIPT_NAME. DEPFILE names the folder too, so that a new script is
embedded by the next build. Comment lines, blank lines and indentation are left
out before the SHA1 is computed, because the server computes its name for the
script from exactly the bytes that are sent. So a script must not contain a
string of several lines.

The comment line "-- include NAME" is replaced by the file NAME of the same
folder, unless it has been included before. Of the functions that begin with
"local function" at the start of a line, those that nothing below them uses are
left out: the server would make them anew at each call, which takes about as
long as a simple command.
"""

import hashlib
import pathlib
import re
import sys


INCLUDE = "-- include "
FUNCTION = re.compile(r"local function (\w+)\(")


def lines_of(path, included):
    for line in path.read_text("ascii").splitlines():
        if line.startswith(INCLUDE):
            name = line[len(INCLUDE):]
            if name not in included:
                included.add(name)
                yield from lines_of(path.parent / name, included)
        elif INCLUDE in line:
            raise SystemExit(f"{path}: an include inside of something")
        elif line.strip() and not line.strip().startswith("--"):
            yield line


def blocks_of(lines):
    """A function at the start of a line, up to its end, or one line."""
    block = []
    for line in lines:
        block.append(line)
        if line == "end" or not FUNCTION.match(block[0]):
            yield block
            block = []
    if block:
        raise SystemExit(f"no end of: {block[0]}")


def used(blocks):
    """The lines of the blocks, without the functions that nothing uses."""
    kept = []
    for block in reversed(blocks):
        function = FUNCTION.match(block[0])
        name = re.compile(rf"\b{function[1]}\b") if function else None
        if not name or any(name.search(line) for line in kept):
            kept = block + kept
    return kept


def body_of(path):
    blocks = list(blocks_of(lines_of(path, set())))
    kept = [line.strip() for line in used(blocks)]
    if not kept:
        raise SystemExit(f"{path}: no script in it")
    if any("--" in line or "[[" in line for line in kept):
        raise SystemExit(f"{path}: a comment or a long string inside a line")
    return "\n".join(kept)


def literal(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"')


def entry(path):
    name = path.stem
    body = body_of(path)
    sha1 = hashlib.sha1(body.encode()).hexdigest()
    lines = body.split("\n")
    text = [f'            {literal(line)}\\n"' for line in lines[:-1]]
    text.append(f'            {literal(lines[-1])}",')
    return "\n".join([
        f"    [SCRIPT_{name.upper()}] = {{",
        f'        .name = "{name}",',
        "        .body = {",
        *text,
        f"            {len(body)},",
        "        },",
        f'        .sha1 = "{sha1}",',
        "    },",
    ])


def source(paths):
    return "\n".join([
        "/* SPDX-License-Identifier: MIT */",
        "/* Made from " + ", ".join(path.name for path in paths) + ". */",
        '#include "wire/script.h"',
        "",
        "/* C99 promises 4095 characters, but compilers take more. */",
        '#pragma GCC diagnostic ignored "-Woverlength-strings"',
        "",
        "const struct script scripts[SCRIPTS] = {",
        *(entry(path) for path in paths),
        "};",
        "",
    ])


def header(paths):
    return "\n".join([
        "/* SPDX-License-Identifier: MIT */",
        "/* The names of the scripts, made from their files. */",
        "#ifndef NXLOCK_WIRE_SCRIPT_ID_H",
        "#define NXLOCK_WIRE_SCRIPT_ID_H",
        "",
        "enum script_id {",
        *(f"    SCRIPT_{path.stem.upper()}," for path in paths),
        "    SCRIPTS",
        "};",
        "",
        "#endif",
        "",
    ])


def write_if_changed(output, text):
    """So that an edit of a script compiles nothing that knows only its name."""
    path = pathlib.Path(output)
    if not path.exists() or path.read_text("ascii") != text:
        path.write_text(text, "ascii")


def escaped(path):
    return str(path).replace(" ", "\\ ")


def main(folder, source_output, header_output, depfile):
    files = sorted(pathlib.Path(folder).glob("*.lua"))
    included = {line[len(INCLUDE):] for path in files
                for line in path.read_text("ascii").splitlines()
                if line.startswith(INCLUDE)}
    paths = [path for path in files if path.name not in included]
    write_if_changed(source_output, source(paths))
    write_if_changed(header_output, header(paths))
    needed = " ".join(escaped(path) for path in [folder, *files])
    pathlib.Path(depfile).write_text(
        f"{escaped(source_output)}: {needed}\n", "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
