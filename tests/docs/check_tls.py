#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_tls.py ROOT: docs/tls.md has every message of TLS in the words of the
sources and no other, and every parameter; and docs/coming-from.md has the names
that other clients have for these. TAP."""

import pathlib
import re
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is

import checks

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


def check_messages(root, page):
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


def check_parameters(root, page):
    params = (root / "src/config/params.h").read_text("utf-8")
    ours = set(re.findall(r"ROW\((\w+),(?:(?!ROW\().)*?TLS_OWN\)", params,
                          re.S))
    section = page.split("\n## Parameters\n")[1].split("\n## ")[0]
    shown = set(re.findall(r"^\| `(\w+)=", section, re.M))
    for name in sorted(ours ^ shown):
        yield f"{name}: a parameter of TLS in one of page and params.h"
    if not ours:
        yield "no parameter of TLS was found in params.h"


def check_foreign(root, _):
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


def main(root):
    root = pathlib.Path(root)
    page = (root / "docs/tls.md").read_text("utf-8")
    return checks.run([
        ("tls.md: messages", check_messages, root, page),
        ("tls.md: parameters", check_parameters, root, page),
        ("tls.md: names of other clients", check_foreign, root, page),
    ])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
