#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_version.py NXLOCK_EXE ROOT VERSION

The version is written in meson.build. What has to repeat it is compared with
that: NEWS.md and debian/changelog, which have an entry for it, and the symbols
file, which has all that the library exports and the version of each. No other
file may write it down. Prints TAP; exits 1 on any difference.
"""

import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is

import checks

# Who may write down a version: where it comes from, and who repeats it.
SAY_IT = {"meson.build", "NEWS.md", "debian/changelog",
          "debian/libnxlock0.symbols"}
LOOKED_AT = ("*.md", "*.txt", "docs/**/*", "debian/**/*", "include/*",
             "src/**/*", "cmake/*", "tests/*.sh")


def parts(version):
    return [int(number) for number in version.split(".")]


def command(program, version):
    """What the command says."""
    said = subprocess.run([program, "--version"], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    if said.split()[:2] != ["nxlock", version]:
        yield f"nxlock --version prints {said.strip()!r}, not {version}"


def news(root, version):
    """Its newest entry."""
    heads = re.findall(r"^## (\S+)", (root / "NEWS.md").read_text("utf-8"),
                       re.M)
    if heads[:1] != [version]:
        yield f"NEWS.md begins with {heads[:1]}; meson.build has {version}"


def changelog(root, version):
    """debian/changelog: 0.1.0-1 is the first package of 0.1.0."""
    text = (root / "debian/changelog").read_text("utf-8")
    found = re.match(r"nxlock \((\d[\w.]*)-\w[\w.+~]*\) ", text)
    if not found or found.group(1) != version:
        yield (f"debian/changelog begins with {text.splitlines()[0]!r}; "
               f"write 'nxlock ({version}-1) ...'")


def symbols(root, version):
    """debian/libnxlock0.symbols: all functions, and no later version."""
    exported = set(re.findall(
        r"^function (\S+)@@(\S+)$",
        (root / "tests/api/abi.txt").read_text("utf-8"), re.M))
    nodes = {(node, node) for _, node in exported}
    text = (root / "debian/libnxlock0.symbols").read_text("utf-8")
    listed = {}
    for name, node, since in re.findall(r"^ (\S+)@(\S+) (\S+)$", text, re.M):
        listed[name, node] = since
        if parts(since) > parts(version):
            yield f"symbol {name} is of {since}, which is not out yet"
    if not exported:
        yield "tests/api/abi.txt lists no function"
    for name, node in sorted((exported | nodes) - set(listed)):
        yield f"debian/libnxlock0.symbols lacks ' {name}@{node} {version}'"
    for name, node in sorted(set(listed) - exported - nodes):
        yield f"debian/libnxlock0.symbols has {name}@{node}; abi.txt does not"


def elsewhere(root, version):
    """Nowhere else, or it would be forgotten at the next release."""
    literal = re.compile(rf"(?<![\w.]){re.escape(version)}(?![\w.])")
    found = {path for glob in LOOKED_AT for path in root.glob(glob)}
    for path in sorted(path for path in found if path.is_file()):
        name = str(path.relative_to(root))
        if name in SAY_IT:
            continue
        text = path.read_text("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if literal.search(line):
                yield f"{name}:{number}: the version; take it from the build"


def main(program, root, version):
    root = pathlib.Path(root)
    return checks.run([
        ("nxlock --version", command, program, version),
        ("NEWS.md", news, root, version),
        ("debian/changelog", changelog, root, version),
        ("debian/libnxlock0.symbols", symbols, root, version),
        ("no other file has it", elsewhere, root, version),
    ])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
