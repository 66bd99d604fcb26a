#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""parse.py BUILD: clang's warnings about what is not compiled in BUILD.

Each file whose object is not there is parsed with the options of its
compilation, which is when clang warns; it takes a third of compiling. Once with
the same macros suffices, of which only those count that the file or what it
includes names. Each has a process of its own: in one for several, a pragma
would hold for the next file too. Shows what clang says, and fails if it fails.
Left out is a source that is made of compiled objects.
"""

import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
ALONE = {"-MD", "-c"}
WITH_NEXT = {"-o", "-MF", "-MQ"}


@functools.cache
def text(path):
    return path.read_text(errors="replace") if path.is_file() else ""


def words(path, folders):
    """What the file names, and all that it includes by name with quotes."""
    todo, seen = [path], set()
    while todo:
        one = pathlib.Path(os.path.normpath(todo.pop()))
        if one in seen or not text(one):
            continue
        seen.add(one)
        for name in INCLUDE.findall(text(one)):
            todo += [folder / name for folder in [one.parent, *folders]]
    return "\n".join(text(one) for one in seen)


def key(build, entry, command):
    folders = [build / one[2:] for one in command if one.startswith("-I")]
    named = words(build / entry["file"], folders)
    macros = [one for one in command if one.startswith("-D")
              and re.search(rf"\b{one[2:].split('=')[0]}\b", named)]
    return (entry["file"], *sorted(macros))


def parsing(command):
    """The compilation's options, without those of its output."""
    kept, skip = [], False
    for one in command:
        if not skip and one not in ALONE | WITH_NEXT:
            kept.append(one)
        skip = not skip and one in WITH_NEXT
    return kept + ["-fsyntax-only"]


def ninja(build, *arguments):
    return subprocess.run(["ninja", "-C", str(build), *arguments], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def generate(build):
    """The sources and headers that are made without compiling."""
    made = [line.rpartition(":")[0]
            for line in ninja(build, "-t", "targets", "all").splitlines()
            if re.search(r"\.[ch]: CUSTOM_COMMAND", line)]
    made = [one for one in made
            if " -c " not in ninja(build, "-t", "commands", one)]
    if made:
        ninja(build, *made)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    entries = json.loads((build / "compile_commands.json").read_text())
    generate(build)
    compiled, todo = set(), {}
    for entry in entries:
        if not (build / entry["file"]).exists():
            print(entry["file"], "is left out")
            continue
        command = shlex.split(entry["command"])
        which = key(build, entry, command)
        if (build / entry["output"]).exists():
            compiled.add(which)
        else:
            todo.setdefault(which, parsing(command))
    todo = [todo[which] for which in todo if which not in compiled]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(
            lambda command: subprocess.run(command, cwd=build, check=False)
            .returncode, todo))
    print(f"{len(todo)} files parsed, {len(compiled)} compiled,"
          f" {sum(code != 0 for code in results)} failed")
    return any(results)


if __name__ == "__main__":
    sys.exit(main())
