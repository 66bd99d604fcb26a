#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_format.py ROOT: all C and C++ is as clang-format would write it.

Releases of clang-format differ in what they write, so only the one that the
tree is formatted with is asked; without it the test is skipped.
"""

import pathlib
import re
import shutil
import subprocess
import sys

RELEASE = 14
SKIP = 77


def formatter():
    """clang-format of that release, or why there is none."""
    why = "clang-format is not installed"
    for name in (f"clang-format-{RELEASE}", "clang-format"):
        if shutil.which(name):
            text = subprocess.run([name, "--version"], capture_output=True,
                                  text=True, check=True).stdout
            release = re.search(r"version (\d+)", text)
            if release and int(release[1]) == RELEASE:
                return name, None
            why = (f"clang-format {RELEASE} is not installed; this one is: "
                   f"{text.strip()}")
    return None, why


def main(root):
    name, why = formatter()
    if not name:
        print(f"SKIP: {why}")
        return SKIP
    root = pathlib.Path(root)
    paths = sorted(path.relative_to(root) for top in
                   ("include", "src", "tests", "docs")
                   for path in (root / top).rglob("*")
                   if path.suffix in (".c", ".cpp", ".h", ".hpp"))
    done = subprocess.run([name, "--dry-run", "-Werror", *paths], cwd=root,
                          capture_output=True, text=True)
    wrong = {}
    for line in done.stderr.splitlines():
        found = re.match(r"(\S+):(\d+):\d+: error:", line)
        if found:
            wrong.setdefault(found[1], found[2])
    for path, line in wrong.items():
        print(f"{path}:{line}: run clang-format -i {path}")
    if done.returncode != 0 and not wrong:
        print(done.stderr)
    print(f"{len(paths)} files, {len(wrong)} not formatted")
    return 1 if done.returncode != 0 or not paths else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
