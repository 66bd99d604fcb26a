#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_cycles.py finds each cycle that it says it finds: every case compiles a
small tree, and says how many problems there are and what one of them is."""

import pathlib
import subprocess
import sys
import tempfile

PAGE = "\n## Tables of functions\n\n| `rows` in `wire/w.c` | why |\n\n## More\n"
EMPTY = {"include/nxlock.h": "void nxl_a(void);\n", "docs/design.md": ""}
CALL = {"src/wire/w.c":
        "void n(void);\nvoid w(int i);\nvoid w(int i) { i ? n() : w(1); }\n"}
TABLE = {"src/wire/w.c":
         "void n(void);\nvoid w(int i);\nextern void (*const rows[])(void);\n"
         "void (*const rows[])(void) = {n, 0};\n"
         "void w(int i) { rows[i](); }\n"}
BACK = {"src/net/n.c": "void w(int);\nvoid n(void);\nvoid n(void) { w(0); }\n"}
BESIDE = {"src/wire/w.c": TABLE["src/wire/w.c"] +
          "extern void (*other)(void);\nvoid (*other)(void) = n;\n"}
ONCE = "#pragma once\n"
UPWARDS = {"src/wire/w.h": ONCE + '#include "wire/x.h"\n',
           "src/wire/x.h": ONCE + '#include "wire/w.h"\n'}
HEADERS = {"src/wire/w.h": ONCE, "src/wire/x.h": '#include "wire/w.h"\n',
           "src/wire/w.c": '#include "wire/w.h"\n#include "wire/x.h"\n'}
COMMAND = {"src/api/a.c": '#include <nxlock.h>\nvoid say(void);\n'
           "void nxl_a(void) { say(); }\n",
           "src/cli/m.c": "#include <nxlock.h>\nvoid say(void);\n"
           "void say(void) { nxl_a(); }\n"}
EXAMPLES = {"docs/examples/one.c": "void two(void);\nvoid one(void)\n{\n"
            "    two();\n}\n",
            "docs/examples/two.c": "void one(void);\nvoid two(void)\n{\n"
            "    one();\n}\n"}
DOWN = {"src/net/n.c": "void n(void);\nvoid n(void) {}\n"}

CASES = [
    ("a call", CALL | DOWN, 0, ""),
    ("two calls", CALL | BACK, 1, "a cycle: net/n wire/w"),
    ("a table", TABLE | BACK, 1, "a cycle: net/n wire/w"),
    ("an exempt table", TABLE | BACK | {"docs/design.md": PAGE}, 0, ""),
    ("a variable beside an exempt table",
     BESIDE | BACK | {"docs/design.md": PAGE}, 1, "a cycle: net/n wire/w"),
    ("an exempt table that does not exist",
     CALL | DOWN | {"docs/design.md": PAGE}, 1, "exempts rows in wire/w.c"),
    ("two headers", UPWARDS | {"src/wire/w.c": '#include "wire/w.h"\n'},
     1, "a cycle: wire/w wire/x"),
    ("a file and its header are one", HEADERS, 1, "a cycle: wire/w wire/x"),
    ("library and command", COMMAND, 1, "a cycle: api/a cli/m"),
    ("examples", EXAMPLES | CALL | DOWN,
     1, "a cycle: docs/examples/one docs/examples/two"),
]


def compile_tree(root, compiler):
    """The objects are where meson would put them."""
    for path in (root / "src").rglob("*.c"):
        inside = path.relative_to(root / "src").as_posix()
        folder = "src/libnxlock-inner.a.p"
        if inside.startswith("cli/"):
            folder, inside = "src/cli/nxlock.p", inside.removeprefix("cli/")
        output = root / "build" / folder / (inside.replace("/", "_") + ".o")
        output.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [*compiler, "-I", root / "src", "-I", root / "include", "-c", path,
             "-o", output], check=True)


def result(script, compiler, files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in (EMPTY | files).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        compile_tree(root, compiler)
        done = subprocess.run(
            [sys.executable, script, root, root / "build"],
            capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def main(script, *compiler):
    bad = 0
    for name, files, problems, words in CASES:
        code, text = result(script, compiler, files)
        if code != (problems > 0) or words not in text or \
                f" {problems} problems" not in text:
            print(f"{name}: exit {code}\n{text}")
            bad += 1
    print(f"{len(CASES)} trees, {bad} wrong answers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
