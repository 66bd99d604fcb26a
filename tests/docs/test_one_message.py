#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_one_message.py ROOT BUILD: the README's program says each thing once.

It is compiled as it stands, but for the server's address and the wait, and is
run with a lock that is busy, a server that is away, and a URL that is wrong.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from rig import Server, Tap, clean_environment

PAGES = ("README.md", "docs/redlock.md", "docs/tutorial-c.md",
         "docs/tutorial-shared.md", "docs/man/nxlock.3.in")
WORDS = 4  # so many in a row, twice, are a thing said twice


def program_of(readme, url):
    found = re.search(r"^```c\n(.*?)^```$", readme, re.M | re.S)
    text = found.group(1)
    assert "redis://localhost:6379" in text and "5000" in text
    return text.replace("redis://localhost:6379", url).replace("5000", "50")


def said_twice(line):
    words = re.findall(r"[a-z]+", line.lower())
    runs = [" ".join(words[i:i + WORDS]) for i in range(len(words) - WORDS + 1)]
    return sorted({run for run in runs if runs.count(run) > 1})


def run(folder, root, build, url):
    source, made = folder / "invoice.c", folder / "invoice"
    source.write_text(program_of((root / "README.md").read_text("utf-8"), url))
    library = build / "src"
    subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", source, "-o", made, "-I",
         root / "include", "-L", library, "-lnxlock",
         f"-Wl,-rpath,{library}"], check=True)
    return subprocess.run([made], capture_output=True, text=True, timeout=60,
                          check=False)


def check(tap, got, wanted, what):
    lines = got.stderr.splitlines()
    good = got.returncode == 1 and len(lines) == 1 and wanted in got.stderr
    tap.check(good, f"{what}: {wanted}", f"{got.returncode}\n{got.stderr}")
    tap.equal(said_twice(got.stderr), [], f"{what}: nothing is said twice")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, build = (pathlib.Path(path).resolve() for path in sys.argv[1:])
    tap = Tap()
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        clean_environment(server)
        folder = pathlib.Path(folder)
        server.cli("SET", "invoice:42", "another one's", "PX", "60000")
        check(tap, run(folder, root, build, server.url),
              "another client holds the lock", "busy")
        server.cli("DEL", "invoice:42")
        server.cli("RPUSH", "invoice:42", "1")
        check(tap, run(folder, root, build, server.url),
              "another client holds the lock", "a key of another type")
        check(tap, run(folder, root, build, f"unix://{folder}/none"),
              "No such file or directory", "no server")
        check(tap, run(folder, root, build, "redis://h:x"), "URL",
              "a wrong URL")
    for page in PAGES:
        text = (root / page).read_text("utf-8")
        both = re.findall(r"nxl_strerror\(rc\),\s*[^;]*errmsg", text)
        tap.equal(both, [], f"{page} prints one of the two")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
