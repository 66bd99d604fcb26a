#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_pages.py NXLOCK ROOT VERSION: what the pages repeat is true.

Links lead to a file, and to a heading of it. docs/acl.md is what
tests/docs/acl_table.h says (test_acl.py runs its lines). docs/tls.md has every
message of TLS in the words of the sources and no other, and every parameter;
docs/coming-from.md has the names that other clients have for these. The
version is written in meson.build, and only what has to repeat it does. TAP.
"""

import difflib
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is

import acl_table
import checks


# ----------------------------------------------------------------------- links

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchor(heading):
    """As the forges make it of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(page):
    return {anchor(line.lstrip("#").strip())
            for line in page.read_text("utf-8").splitlines()
            if re.match(r"#+ ", line)}


def links(root, page):
    for target in LINK.findall(page.read_text("utf-8")):
        name, _, heading = target.partition("#")
        there = page.parent / name if name else page
        if re.match(r"[a-z]+:", target):
            continue
        if not there.exists():
            yield f"{page.relative_to(root)}: there is no {target}"
        elif heading and heading not in anchors(there):
            yield f"{page.relative_to(root)}: no heading for {target}"


def broken(root, pages):
    for page in pages:
        yield from links(root, page)


def unlisted(root):
    listed = LINK.findall((root / "docs/README.md").read_text("utf-8"))
    for page in (root / "docs").glob("*.md"):
        if page.name not in listed + ["README.md"]:
            yield f"docs/README.md does not name {page.name}"


# ----------------------------------------------------------------- docs/acl.md

def acl_page():
    page = acl_table.PAGE.read_text("utf-8")
    wanted = acl_table.page(page, acl_table.read())
    return [line.rstrip("\n") for line in difflib.unified_diff(
        page.splitlines(), wanted.splitlines(), "the page", "the table")]


def acl_commands(exe):
    """Each command has its row, and the header was read to its end."""
    table = acl_table.read()
    text = acl_table.TABLE.read_text("ascii")
    rows = sum(len(one.permissions) for one in table.features.values())
    done = subprocess.run([exe, "--help"], capture_output=True, text=True,
                          timeout=20, check=True)
    block = re.search(r"^commands:\n((?:  .*\n)+)", done.stdout, re.M)
    known = set(re.findall(r"^  ([a-z]+)", block[1], re.M))
    if len(table.features) != len(re.findall(r"^FEATURE\(", text, re.M)) or \
            rows != len(re.findall(r"\{(?:\"|ACL_)[^{}]*, ACL_\w+\}", text)):
        yield f"{len(table.features)} features, {rows} rows were read"
    yield from (f"{name} has no row" for name in known - set(table.commands))
    yield from (f"{name} is no command" for name in set(table.commands) - known)


def acl_of_doctor():
    """The commands of doctor's remedy are those of its line in the page."""
    text = (acl_table.ROOT / "src/cli/doctor/doctor_rights.c").read_text()
    words = "".join(re.findall('"([^"]*)"', re.search(
        r"#define COMMANDS((?:.*\\\n)+.*\n)", text)[1])).split()
    wanted = [rule for rule in acl_table.read().rules(("doctor",), (), False)
              if rule[0] == "+"]
    if sorted(words) != sorted(wanted):
        yield f"COMMANDS has {words}, the table {wanted}"


# ------------------------------------------------------------------------- TLS

STRING = r'"(?:\\.|[^"\\\n])*"'
# What a message on the page has in place of what is found.
STAND_INS = (r"(?<![A-Za-z])(?:NAMES?|DATE|HOST|ISSUER|WHO|REASON|PARAMETER|"
             r"FILE|DIR|N)(?![A-Za-z])")
# Words of the sources that are found, not said: they need no row of their own.
FOUND = {"(no name)", "unknown error", "the system"}
SOURCES = "context.c", "none.c", "session.c", "words.c"


def said(source):
    """The messages in a C source, or parts of them: each run of string
    literals, with macros of the same file in between."""
    code = re.sub(rf"/\*.*?\*/|({STRING})",
                  lambda found: found[1] or " ", source, flags=re.S)
    code = re.sub(r"^\s*#\s*include.*$", "", code.replace("\\\n", " "),
                  flags=re.M)
    macros = dict(re.findall(
        rf"^\s*#\s*define\s+(\w+)((?:\s+{STRING})+)\s*$", code, re.M))
    code = re.sub(r"^\s*#.*$", "", code, flags=re.M)
    code = re.sub(rf"{STRING}|\w+",
                  lambda found: macros.get(found[0], found[0]), code)
    for run in re.findall(rf"{STRING}(?:\s*{STRING})*", code):
        text = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', run))
        yield text.replace('\\"', '"')


def parts_of(text):
    """Without what printf fills in; only what has words."""
    for part in re.split(r"%(?:ll)?[sdx]", text):
        if re.search(r"[A-Za-z]{2,}\W+[A-Za-z]{2,}", part):
            yield part.strip()


def messages_of(page):
    """The first cells below the heading Messages, without their markup."""
    section = page.split("\n## Messages\n")[1].split("\n## ")[0]
    return [found[2].replace("|", "") for found in re.finditer(
        r"^\| (`+)(.*?)\1(?= \*?)", section, re.M)]


def is_said(piece, texts):
    """Whether a text has these words, or one ends with the first of them and
    the rest is said too: a message may be put together."""
    if any(piece in text for text in texts):
        return True
    return any(is_said(piece[cut:], texts)
               for cut in range(len(piece) - 4, 4, -1)
               if any(text.endswith(piece[:cut]) for text in texts))


def tls_messages(root, page):
    texts = [text for name in SOURCES
             for text in said((root / "src/net/tls" / name).read_text("utf-8"))]
    elsewhere = ["cannot use the "]  # secret_file.c, for each kind of file
    shown = messages_of(page)
    pieces = "\n".join(shown)
    for part in sorted({part for text in texts for part in parts_of(text)}):
        if part not in FOUND and part not in pieces:
            yield f"the page has no message with: {part}"
    for message in shown:
        bare = re.sub(r"^\w+=(?:FILE|DIR): ", "", message)
        for piece in re.split(rf"{STAND_INS}|: ", bare):
            if not is_said(piece.strip(" :'"), texts + elsewhere):
                yield f"no source says: {piece.strip()}"


def tls_parameters(root, page):
    params = (root / "src/config/params.h").read_text("utf-8")
    ours = set(re.findall(r"ROW\((\w+),(?:(?!ROW\().)*?TLS_OWN\)", params,
                          re.S))
    section = page.split("\n## Parameters\n")[1].split("\n## ")[0]
    shown = set(re.findall(r"^\| `(\w+)=", section, re.M))
    for name in sorted(ours ^ shown):
        yield f"{name}: a parameter of TLS in one of page and params.h"
    if not ours:
        yield "no parameter of TLS was found in params.h"


def foreign_names(root):
    params = (root / "src/config/params.c").read_text("utf-8").replace(
        "SENTINEL_URL", '"redis+sentinel://"')
    rows = re.findall(r'\{"(\w+)", "([\w-]+)[^"]*", "[\w -]+"\}', params)
    page = (root / "docs/coming-from.md").read_text("utf-8")
    # The sections TLS and Sentinel.
    lines = page.split("\n### TLS\n")[1].split("\n## ")[0].splitlines()
    for name, ours in rows:
        if not any(re.search(rf"(?<!\w){name}\b.* \|.*\b{ours}\b", line)
                   for line in lines):
            yield f"coming-from.md does not say that {name} is {ours}"
    if not rows:
        yield "no name of another client was found in params.c"


# --------------------------------------------------------------------- version

# Who may write down a version: where it comes from, and who repeats it.
SAY_IT = {"meson.build", "NEWS.md", "debian/changelog",
          "debian/libnxlock0.symbols"}
LOOKED_AT = ("*.md", "*.txt", "docs/**/*", "debian/**/*", "include/*",
             "src/**/*", "cmake/*", "tests/*.sh")


def parts(version):
    return [int(number) for number in version.split(".")]


def version_of_command(program, version):
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


def main(exe, root, version):
    root = pathlib.Path(root).resolve()
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"),
             *(root / "tests").rglob("*.md")]
    tls = (root / "docs/tls.md").read_text("utf-8")
    return checks.run([
        ("each link", broken, root, pages),
        ("docs/README.md has each page", unlisted, root),
        ("acl.md: made from the table", acl_page),
        ("doctor_rights.c: the commands of the table", acl_of_doctor),
        ("acl_table.h: a row for each command", acl_commands, exe),
        ("tls.md: messages", tls_messages, root, tls),
        ("tls.md: parameters", tls_parameters, root, tls),
        ("coming-from.md: names of other clients", foreign_names, root),
        ("version: nxlock --version", version_of_command, exe, version),
        ("version: NEWS.md", news, root, version),
        ("version: debian/changelog", changelog, root, version),
        ("version: debian/libnxlock0.symbols", symbols, root, version),
        ("version: no other file has it", elsewhere, root, version),
    ])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
