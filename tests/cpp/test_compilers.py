#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_compilers.py ROOT: no compiler has anything to say about nxlock.hpp.

The header and all C++ examples, with g++ in C++17 and clang++ in C++20 (with
NXLOCK_FULL=1 both in both); and without exceptions and RTTI the header and the
example that needs none, in the other one. The examples are one translation
unit, which is only checked, so that it is quick. TAP.
"""

import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from rig import Tap

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion",
            "-Wsign-conversion", "-Wold-style-cast", "-Wnon-virtual-dtor",
            "-Wdeprecated", "-Werror"]
WITHOUT = ["-fno-exceptions", "-fno-rtti"]
EXAMPLES = ("quick", "payment", "leader")
PLAIN = ("leader",)  # says that it is for -fno-exceptions


def unit(examples):
    """The header twice, and the programs, each with a main() of its own."""
    lines = ["#include <nxlock.hpp>", "#include <nxlock.hpp>"]
    for name in examples:
        lines += [f"#define main {name}_main", f'#include "{name}.cpp"',
                  "#undef main"]
    return "\n".join(lines) + "\n"


def compile_(root, compiler, std, more, text):
    return subprocess.run(
        [compiler, "-x", "c++", "-", "-fsyntax-only", f"-std=c++{std}", *more,
         f"-I{root}/include", f"-I{root}/docs/examples/cpp"],
        input=text, capture_output=True, text=True, timeout=120, check=False)


def main(root):
    tap = Tap()
    found = {path.stem for path in
             (pathlib.Path(root) / "docs/examples/cpp").glob("*.cpp")}
    tap.check(found == set(EXAMPLES), "all examples are known", str(found))
    for compiler, std, other in (("g++", 17, 20), ("clang++", 20, 17)):
        if shutil.which(compiler) is None:
            tap.skip(compiler, "it is not installed")
            continue
        units = [(std, EXAMPLES, []), (other, PLAIN, WITHOUT)]
        if "NXLOCK_FULL" in os.environ:
            units.append((other, EXAMPLES, []))
        for std, examples, more in units:
            done = compile_(root, compiler, std, WARNINGS + more,
                            unit(examples))
            tap.check(done.returncode == 0 and not done.stderr,
                      " ".join([compiler, f"-std=c++{std}", *more]),
                      done.stderr)
        done = compile_(root, compiler, 14, [], "#include <nxlock.hpp>\n")
        tap.check(done.returncode != 0 and "-std=c++17" in done.stderr,
                  f"{compiler} -std=c++14 is told what to do", done.stderr)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
