#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_links.py ROOT: each link of a page leads to a file, and to a heading of
it; and each page of docs/ is in docs/README.md."""

import pathlib
import re
import sys

sys.dont_write_bytecode = True  # the tree stays as it is

import checks

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


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"),
             *(root / "tests").rglob("*.md")]
    return checks.run([("each link", broken, root, pages),
                       ("each page is listed", unlisted, root)])


if __name__ == "__main__":
    sys.exit(main())
