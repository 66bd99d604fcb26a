#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Embeds Lua scripts in C: embed.py OUTPUT INPUT...

Writes the definition of scripts[] (wire/script.h). Each input goes into the
entry that its file name gives: extend.lua is SCRIPT_EXTEND. Comment lines,
blank lines and indentation are left out before the SHA1 is computed, because
the server computes its name for the script from exactly the bytes that are
sent. So a script must not contain a string of several lines. The comment line
"-- include NAME" is replaced by the file NAME of the same folder, which has no
entry of its own.
"""

import hashlib
import pathlib
import sys


INCLUDE = "-- include "


def lines_of(path):
    for line in path.read_text("ascii").splitlines():
        line = line.strip()
        if line.startswith(INCLUDE):
            yield from lines_of(path.parent / line[len(INCLUDE):])
        else:
            yield line


def body_of(path):
    lines = lines_of(path)
    kept = [line for line in lines if line and not line.startswith("--")]
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


def main(output, *inputs):
    paths = [pathlib.Path(name) for name in inputs]
    text = "\n".join([
        "/* SPDX-License-Identifier: MIT */",
        "/* Made from " + ", ".join(path.name for path in paths) + ". */",
        '#include "wire/script.h"',
        "",
        "/* C99 promises 4095 characters, but compilers take more. */",
        '#pragma GCC diagnostic ignored "-Woverlength-strings"',
        "",
        f'_Static_assert(SCRIPTS == {len(paths)}, "a script is missing");',
        "",
        "const struct script scripts[SCRIPTS] = {",
        *(entry(path) for path in paths),
        "};",
        "",
    ])
    pathlib.Path(output).write_text(text, "ascii")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
