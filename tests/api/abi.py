#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The binary interface: what a program relies on that was built before.

abi.py source HEADER OUTPUT           writes a C program that prints the sizes,
                                      offsets and numbers of nxlock.h
abi.py compare LIST PROGRAM LIBRARY   fails unless these, and the names and
                                      versions that LIBRARY exports, are LIST
abi.py print LIST PROGRAM LIBRARY     prints what LIST has to be

Lines may be added to LIST, and structs that are passed with their size may
grow. Any other line that changes or vanishes breaks programs that are already
built: that needs another soversion.
"""

import pathlib
import re
import subprocess
import sys

SKIP = 77
STRUCT = re.compile(r"typedef struct \w+\s*\{(.*?)\}\s*(nxl_\w+)\s*;", re.S)
MEMBER = re.compile(r"(\w+)(?:\[\w+\])?\s*;")
ENUM = re.compile(r"enum \w+\s*\{(.*?)\}", re.S)
ENUMERATOR = re.compile(r"\b(NXL_\w+)\b(?=\s*(?:=|,|$))", re.M)
NUMBER = re.compile(r"^#define (NXL_\w+) \d+\s*$", re.M)

HEAD = """#include <nxlock.h>
#include <stdio.h>

#define SIZE(type) printf("size %s %zu\\n", #type, sizeof(type))
#define MEMBER(type, member) printf("member %s.%s at %zu, %zu bytes\\n", \\
    #type, #member, offsetof(type, member), sizeof(((type *)0)->member))
#define NUMBER(name) printf("number %s %d\\n", #name, (int)(name))

int main(void)
{
    if (sizeof(void *) != 8 || sizeof(long) != 8)
        return 77;
"""


def source(header, output):
    text = pathlib.Path(header).read_text("utf-8")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    lines = []
    for body, name in STRUCT.findall(text):
        lines.append(f"SIZE({name});")
        lines += [f"MEMBER({name}, {member});"
                  for member in MEMBER.findall(body)]
    names = [one for body in ENUM.findall(text)
             for one in ENUMERATOR.findall(body)]
    lines += [f"NUMBER({name});" for name in names + NUMBER.findall(text)]
    pathlib.Path(output).write_text(
        HEAD + "".join(f"    {line}\n" for line in lines) +
        "    return 0;\n}\n", "utf-8")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def real(program, library):
    done = subprocess.run([program], capture_output=True, text=True)
    if done.returncode == SKIP:
        print("SKIP: the list is for 64-bit systems")
        sys.exit(SKIP)
    done.check_returncode()
    symbols = output_of("nm", "-D", "--defined-only", "--with-symbol-versions",
                        library)
    functions = re.findall(r" T (nxl_\w+@@\w+)$", symbols, re.M)
    (name,) = re.findall(r"\(SONAME\).*\[(.*)\]",
                         output_of("readelf", "-d", library))
    return ([f"library {name}"] + [f"function {one}" for one in
                                   sorted(functions)] +
            done.stdout.splitlines())


def main(what, one, other, library=None):
    if what == "source":
        source(one, other)
        return 0
    found = real(other, library)
    text = pathlib.Path(one).read_text("utf-8")
    if what == "print":
        print("\n".join([line for line in text.splitlines()
                         if line.startswith("#")] + found))
        return 0
    listed = [line for line in text.splitlines()
              if line and not line.startswith("#")]
    gone = [line for line in listed if line not in found]
    new = [line for line in found if line not in listed]
    for line in gone:
        print(f"the library has it no longer: {line}")
    for line in new:
        print(f"not listed in {pathlib.Path(one).name}: {line}")
    print(f"{len(found)} lines, {len(gone)} gone, {len(new)} new")
    return 1 if gone or new else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
