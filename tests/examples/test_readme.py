#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_readme.py BUILD: docs/examples/README.md, block by block.

Its blocks are run in a copy of the folder, its table names every file that is
there, and gcc and clang have nothing to say about any of the programs.
"""

import re
import shutil
import sys

from stage import EXAMPLES, ROOT, Stage, Tap, Wrong, lacking, skip_all

import blocks

README = EXAMPLES / "README.md"


class Readme(blocks.Document):
    """A document whose reader stands in docs/examples."""

    def __init__(self, stage):
        super().__init__(stage.place, ROOT, README)
        shutil.copytree(EXAMPLES, self.home, dirs_exist_ok=True)
        self.env.update(stage.env, HOME=str(self.home))

    def nothing_left(self):
        # A fencing number outlives its lock: that key stays, by design.
        for key in ("1001", "1002", "1003"):
            self.place.server.ask("DEL", f"{{order:{key}}}:f")
        return super().nothing_left()


def named(tap):
    links = set(re.findall(r"\]\(([^)]+)\)", README.read_text("utf-8")))
    folders = {link.rpartition("/")[0] for link in links} - {"", ".."}
    for file in sorted(EXAMPLES.rglob("*")):
        name = str(file.relative_to(EXAMPLES))
        beside = file.parent != EXAMPLES and file.suffix == ".h" and \
            str(file.parent.relative_to(EXAMPLES)) in folders
        if file.is_file() and file != README and not beside:
            tap.check(any(link == name or name == f"cron/{link}" or
                          name == f"payment/{link}" for link in links),
                      f"the README names {name}")


def main(build):
    packages = lacking("sqlite3", "libuv")
    if packages:
        skip_all("the examples need " + " ".join(packages))
    with Stage(build) as stage:
        readme = Readme(stage)
        readme.run()
        tap = Tap()
        for good, what, why in readme.tap.results:
            tap.check(good, what, why)
        named(tap)
        programs = re.findall(r"-o (\S+)", " ".join(stage.lines()))
        tap.check(len(programs) == 5, "five programs", programs)
        for compiler in ("gcc", "clang"):
            if shutil.which(compiler) is None:
                tap.skip(compiler, f"there is no {compiler}")
                continue
            for program in programs:
                try:
                    stage.build(program, None, f"{compiler} -Wall -Wextra "
                                "-Wpedantic -Wshadow -Werror -O2")
                    tap.check(True, f"{compiler} takes {program}")
                except Wrong as why:
                    tap.check(False, f"{compiler} takes {program}", why)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
