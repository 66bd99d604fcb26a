#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_cycles.py ROOT BUILD

Fails when files of the source tree depend on each other in a circle. A .c file
and its header count as one file. A file depends on another one when it
includes it, or when its object refers to a function or variable of the other
one.

A table of functions depends on the files of these functions. Only the tables
that docs/design.md lists under "Tables of functions" do not count: a caller
that goes through one of these does not know what is in it.
"""

import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
# The definition of a function that other files of an example can call.
DEFINED = re.compile(
    r"^(?!static\b)[A-Za-z_][\w *]*?(\w+)\([^;{}]*\)\n\{", re.M)
CALLED = re.compile(r"(?<![\w.>])([a-z_]\w*)\s*\(")
TABLE = re.compile(r"^\| `(\w+)` in `([\w/]+\.c)`", re.M)

SECTION = re.compile(r"^\s*\[\s*(\d+)\]\s+(\S+)", re.M)
RELOCATIONS = re.compile(r"^Relocation section '\.rela?(\S*)'")
# Offset Info Type Value Name [+ - Addend]
RELOCATION = re.compile(r"^([0-9a-f]+)\s+[0-9a-f]+\s+R_\S+\s+[0-9a-f]+\s+(\S+)")
# Num: Value Size Type Bind Vis Ndx Name
SYMBOL = re.compile(r"^\s*\d+:\s+([0-9a-f]+)\s+(\w+)\s+(\w+)\s+(\w+)\s+\w+"
                    r"(?:\s+\[[^\]]*\])?\s+(\w+)\s+(\S+)$", re.M)


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


class Graph:
    """Who depends on whom: edges[from][to] is the set of reasons."""

    def __init__(self):
        self.edges = {}

    def file(self, name):
        self.edges.setdefault(name, {})

    def add(self, one, other, why):
        self.file(one)
        self.file(other)
        if one != other:
            self.edges[one].setdefault(other, set()).add(why)

    def cycles(self):
        """The strongly connected components of two files or more (Tarjan)."""
        order, low, stack, found = {}, {}, [], []

        def visit(file):
            order[file] = low[file] = len(order)
            stack.append(file)
            for other in self.edges[file]:
                if other not in order:
                    visit(other)
                    low[file] = min(low[file], low[other])
                elif other in stack:
                    low[file] = min(low[file], order[other])
            if low[file] == order[file]:
                at = stack.index(file)
                if len(stack) - at > 1:
                    found.append(sorted(stack[at:]))
                del stack[at:]

        for file in sorted(self.edges):
            if file not in order:
                visit(file)
        return sorted(found)

    def show(self, files):
        lines = []
        for one in sorted(files):
            for other in sorted(self.edges[one]):
                if other in files:
                    why = ", ".join(sorted(self.edges[one][other]))
                    lines.append(f"    {one} -> {other}: {why}")
        return lines


class Object:
    """What one object file defines, and to what it refers."""

    def __init__(self, path):
        done = subprocess.run(
            ["readelf", "-SsrW", path], check=True, capture_output=True,
            text=True)
        sections = dict(SECTION.findall(done.stdout))
        self.defined, self.variables = set(), []
        for value, size, kind, bind, index, name in SYMBOL.findall(done.stdout):
            if not index.isdigit():
                continue
            if bind in ("GLOBAL", "WEAK"):
                self.defined.add(name)
            if kind == "OBJECT":
                start = int(value, 16)
                self.variables.append((sections.get(index), start,
                                       start + int(size, 0), name))
        self.referred = set()  # (name, the variable that refers to it or None)
        section = ""
        for line in done.stdout.splitlines():
            heading = RELOCATIONS.match(line)
            if heading:
                section = heading[1]
            found = RELOCATION.match(line)
            if found and not re.match(r"\.(debug|eh_frame)", section):
                self.referred.add(
                    (found[2], self.variable(section, int(found[1], 16))))

    def variable(self, section, offset):
        for where, start, end, name in self.variables:
            if where == section and start <= offset < end:
                return re.sub(r"\.\d+$", "", name)  # static in a function
        return None


def include_edges(graph, root):
    for top in ("src", "docs/examples"):
        for path in sorted((root / top).rglob("*.[ch]")):
            one = name_of(root, path)
            graph.file(one)
            text = without_comments(path.read_text("utf-8"))
            for name in INCLUDE.findall(text):
                for base in (root / "src", path.parent, root / "include"):
                    if (base / name).is_file():
                        graph.add(one, name_of(root, base / name), "includes")
                        break


def name_of(root, path):
    """"api/lock" for src/api/lock.c and for src/api/lock.h."""
    name = path.relative_to(root).with_suffix("").as_posix()
    return name.removeprefix("src/")


def objects(root, build):
    """name -> Object, for the library, the command and its table's printer."""
    found = {}
    for folder, base in (("src/libnxlock-inner.a.p", root / "src"),
                         ("src/cli/nxlock.p", root / "src/cli"),
                         ("src/cli/completion/rows.p",
                          root / "src/cli/completion")):
        names = {}
        for path in base.rglob("*.c"):
            mangled = path.relative_to(base).as_posix().replace("/", "_")
            names[mangled + ".o"] = name_of(root, path)
        for path in sorted((build / folder).glob("*.o")):
            made = re.fullmatch(r"meson-generated_.*?_?(\w+)\.c\.o", path.name)
            name = f"made/{made[1]}" if made else names.get(path.name)
            if name:  # or what is left of a file that has been removed
                found[name] = Object(path)
    return found


def call_edges(graph, found, exempt):
    owner = {name: file
             for file, one in found.items() for name in one.defined}
    for file, one in found.items():
        for name, variable in one.referred:
            other = owner.get(name)
            if other and (variable, file) not in exempt:
                graph.add(file, other, name)


def example_edges(graph, root):
    texts = {}
    for path in sorted((root / "docs/examples").rglob("*.c")):
        texts[path] = without_comments(path.read_text("utf-8"))
    for path, text in texts.items():
        called = set(CALLED.findall(text)) - set(DEFINED.findall(text))
        for other, its in texts.items():
            if other.parent == path.parent:
                for name in called & set(DEFINED.findall(its)) - {"main"}:
                    graph.add(name_of(root, path), name_of(root, other), name)


def exempt_tables(root):
    page = root / "docs/design.md"
    text = page.read_text("utf-8") if page.is_file() else ""
    part = text.partition("\n## Tables of functions\n")[2].partition("\n## ")[0]
    return {(table, file.removesuffix(".c"))
            for table, file in TABLE.findall(part)}


def main(root, build):
    root, build = pathlib.Path(root), pathlib.Path(build)
    graph = Graph()
    found = objects(root, build)
    include_edges(graph, root)
    example_edges(graph, root)
    exempt = exempt_tables(root)
    call_edges(graph, found, exempt)
    wrong = [f"docs/design.md exempts {table} in {file}.c: it has none"
             for table, file in sorted(exempt)
             if file not in found or table not in
             {name for *_, name in found[file].variables}]
    missing = {name_of(root, path) for path in (root / "src").rglob("*.c")}
    # A build has TLS or not.
    tls = {name for name in missing if name.startswith("net/tls/")}
    missing -= tls if "net/tls/none" in found else {"net/tls/none"}
    wrong += [f"{name}: no object in {build}"
              for name in sorted(missing - set(found))]
    cycles = graph.cycles()
    wrong += ["\n".join([f"a cycle: {' '.join(cycle)}", *graph.show(cycle)])
              for cycle in cycles]
    for line in wrong:
        print(line)
    count = sum(len(others) for others in graph.edges.values())
    print(f"{len(graph.edges)} files, {count} dependencies, {len(cycles)} "
          f"cycles, {len(wrong)} problems")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
