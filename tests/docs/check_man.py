#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_man.py NXLOCK_EXE ROWS_EXE HEADER SOURCE BUILD

The manual pages are complete: each option, exit code, URL parameter, variable
and event of the command is on its page, and each function, type, member and
constant of the header; what a page refers to exists; mandoc has no complaint.
SOURCE is docs/man, BUILD the folder with the pages that the build makes;
ROWS_EXE prints the command's table. Prints TAP; exits 1 on any difference.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is

import checks

ROOT = pathlib.Path(__file__).resolve().parents[2]
ESCAPES = {r"\-": "-", r"\e": "\\", r"\&": "", r"\(aq": "'", r"\(dq": '"'}


def plain(text):
    return re.sub(r"\\(?:\(..|.)",
                  lambda m: ESCAPES.get(m.group(), m.group()), text)


def squeeze(text):
    """One spelling for each type and declarator: 'const char *name'."""
    return re.sub(r" *(\*+) *", r" \1", " ".join(text.split())).strip()


def both_ways(problems, what, page, other, source):
    """Two sets or dictionaries that have to be equal."""
    if not other:
        problems.append(f"{source} shows no {what} at all")
    for name in sorted(set(page) - set(other)):
        problems.append(f"{what} {name}: in the page, not in {source}")
    for name in sorted(set(other) - set(page)):
        problems.append(f"{what} {name}: in {source}, not in the page")
    if isinstance(page, dict):
        for name in sorted(set(page) & set(other)):
            if page[name] != other[name]:
                problems.append(f"{what} {name}: the page has {page[name]}, "
                                f"{source} has {other[name]}")


class Item:
    """One entry of a list: where, its head as words, its text."""

    def __init__(self, section, part, head):
        self.section, self.part, self.head = section, part, head
        self.body = ""


class Page:
    """An mdoc page: macro lines as (section, part, words), list items and
    literal blocks."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.lines, self.items, self.blocks = [], [], []
        self.sections = set()
        section = part = ""
        open_items, block = [], None
        for line in self.text.splitlines():
            words = self.words(line)
            if words[:1] == ["Ed"]:
                block = None
            elif block is not None:
                block.append(plain(line))
            elif words[:1] == ["Bd"]:
                block = []
                self.blocks.append(block)
            elif words[:1] == ["Sh"]:
                section, part = " ".join(words[1:]), ""
                self.sections.add(section)
            elif words[:1] == ["Ss"]:
                part = " ".join(words[1:])
                self.sections.add(part)
            elif words[:1] == ["Bl"]:
                open_items.append(None)
            elif words[:1] == ["El"]:
                open_items.pop()
            elif words[:1] == ["It"]:
                open_items[-1] = Item(section, part, words[1:])
                self.items.append(open_items[-1])
            elif open_items and open_items[-1]:
                open_items[-1].body += plain(line) + "\n"
            if words:
                self.lines.append((section, part, words))

    @staticmethod
    def words(line):
        """A macro line's words, quotes taken off; [] for text."""
        if not line.startswith(".") or line.startswith('.\\"'):
            return []
        return [plain(quoted or bare) for quoted, bare in
                re.findall(r'"([^"]*)"|(\S+)', line[1:])]

    def after(self, macro):
        """Every word that stands behind this macro anywhere."""
        found = set()
        for _, _, words in self.lines:
            words = [word for word in words if word not in ("(", "[")]
            for i, word in enumerate(words[:-1]):
                if word == macro:
                    found.add(words[i + 1])
        return found

    def within(self, section=None, part=None):
        return [item for item in self.items
                if section in (None, item.section) and
                part in (None, item.part)]


# ------------------------------------------------------ what the program says

class Table:
    """The command's table: {command: {option: (letter, value, choices)}},
    {command: exit codes}, and {key of the configuration file: value}."""

    def __init__(self, rows_exe):
        self.options, self.codes, self.keys = {}, {}, {}
        for row in output_of([rows_exe]):
            kind, name, *fields = row.split("\t")
            if kind == "command":
                command = name
                self.options[command], self.codes[command] = {}, set()
            elif kind == "option":
                option, value, choices, _, _ = fields
                self.options[command][option[2:]] = (
                    name[1:], value, choices.split())
            elif kind == "exit":
                self.codes[command].add(name.split("+")[0])
            elif kind == "key":
                self.keys[name] = fields[0]

    def words(self, command):
        return {f"--{name}" for name in self.options[command]} | {
            f"-{letter}" for letter, _, _ in self.options[command].values()
            if letter}


def options_of(page):
    """{option: (letter, value, its text)}"""
    found = {}
    for item in page.items:
        match = re.fullmatch(r"(?:Fl (\w) , )?Fl -([\w-]+)(?: Ar (\S+))?",
                             " ".join(item.head))
        if match:
            found[match[2]] = (match[1] or "", match[3] or "", item.body)
    return found


def check_keys(page, exe, table):
    """Those of the configuration file, on its page and in the help."""
    problems, found = [], {}
    for item in page.items:
        match = re.fullmatch(r"Cm ([\w-]+) No = Ar (\S+)", " ".join(item.head))
        if match:
            found[match[1]] = match[2]
    both_ways(problems, "key", found, table.keys, "the table")
    text = " ".join(output_of([exe, "help", "connection"]))
    problems += [f"key {key}: not in the help of connection"
                 for key in table.keys
                 if not re.search(rf"(?<![\w-]){key}(?![\w-])", text)]
    return problems


def check_commands(pages, table):
    """A page each, and a line in nxlock(1)."""
    problems = []
    named = {name[7:-2] for name in pages if re.match(r"nxlock-.*\.1", name)}
    both_ways(problems, "command page", named, set(table.options), "the table")
    listed = {item.head[1][7:] for item in pages["nxlock.1"].within("COMMANDS")}
    both_ways(problems, "command", listed, set(table.options), "the table")
    return problems


def check_options(pages, table):
    problems = []
    everywhere = options_of(pages["nxlock.1"])
    for command, options in table.options.items():
        of_page = {**everywhere, **options_of(pages[f"nxlock-{command}.1"])}
        both_ways(problems, f"{command} option",
                  {name: row[:2] for name, row in of_page.items()},
                  {name: row[:2] for name, row in options.items()},
                  "the table")
        for name in set(options) & set(of_page):
            problems += [
                f"{command} --{name}: {word} is not on the page"
                for word in options[name][2]
                if word.split(":")[0] not in of_page[name][2].split()]
    return problems


def check_texts(path, table):
    """Each text of options.mdoc is used."""
    text = path.read_text("utf-8")
    for name, commands in re.findall(r'^\.\\" @ ([\w-]+)(?:: (.*))?$', text,
                                     re.M):
        if not any(name in options for options in table.options.values()):
            yield f"there is no option --{name}"
        yield from (f"{command} has no --{name}" for command in commands.split()
                    if name not in table.options.get(command, ()))


def check_mentions(pages, table):
    """Options in running text, and commands in examples."""
    problems = []
    known = {word[1:] for command in table.options
             for word in table.words(command)} | {"-", "-version", "V"}
    used = re.compile(r"\bnxlock ([a-z]+)\b(?! --help)([^|&;>)\n]*)")
    for name, page in pages.items():
        if not name.startswith("nxlock") or name == "nxlock.3":
            continue
        problems += [f"{name} speaks of -{word}"
                     for word in sorted(page.after("Fl") - known)]
        for command, words in used.findall(
                "\n".join(line for block in page.blocks for line in block)):
            if command not in table.options:
                problems.append(f"{name}: an example runs 'nxlock {command}'")
                continue
            problems += [f"{name}: an example: {command} has no {word}"
                         for word in words.split(" -- ")[0].split()
                         if word.startswith("-") and
                         word not in table.words(command)]
    return problems


def check_parameters(page, exe):
    """Those that 'nxlock help connection' shows."""
    text = "\n".join(output_of([exe, "help", "connection"]))
    rows = dict(re.findall(r"^  (\w+)=(\S+)", text.partition(
        "\nparameters of the URL:\n")[2], re.M))
    of_page = {}
    for item in page.items:
        found = re.fullmatch(r"Cm (\w+) Ns = Ns Ar (\S+)", " ".join(item.head))
        if found:
            of_page[found[1]] = found[2]
    problems = []
    both_ways(problems, "URL parameter", of_page, rows, "help connection")
    return problems


def check_exit_codes(pages, table):
    problems = []
    of_page = {item.head[0].split("+")[0]
               for item in pages["nxlock.1"].within("EXIT STATUS")}
    both_ways(problems, "exit code", of_page,
              set.union(*table.codes.values()), "the table")
    for command, codes in table.codes.items():
        items = pages[f"nxlock-{command}.1"].within("EXIT STATUS")
        both_ways(problems, f"{command} exit code",
                  {item.head[0].split("+")[0] for item in items}, codes,
                  "the table")
    return problems


def check_environment(pages):
    problems = []
    known = set((ROOT / "tests/cli/variables").read_text("ascii").split())
    listed = {word for name in ("nxlock.1", "nxlock-run.1")
              for item in pages[name].within("ENVIRONMENT")
              for macro, word in zip(item.head, item.head[1:])
              if macro == "Ev"}
    # That one is set where the file of the machine must not count.
    unset = listed - {"NXLOCK_CONFIG"}
    both_ways(problems, "variable", unset, known, "tests/cli/variables")
    script = (ROOT / "docs/quickstart.sh").read_text("ascii")
    found = re.search(r"^unset (NXLOCK_(?:[\w\s]|\\\n)+)$", script, re.M)
    both_ways(problems, "variable to unset", set(re.findall(
        r"\w+_\w+", found[0])), known, "tests/cli/variables")
    for name, page in pages.items():
        problems += [f"{name} speaks of {word}"
                     for word in sorted(page.after("Ev") - listed)]
    return problems


def check_events(pages):
    """Every word that --log json may write, against the sources."""
    sources = {path.name: path.read_text("utf-8")
               for path in (ROOT / "src/cli").rglob("event*.c")}
    words = set(re.findall(
        r'\[(?:EVENT|SKIP|RESULT)_\w+\] = \{?"([a-z-]+)"', sources["event.c"]))
    source = sources["event_log.c"]
    words |= set(re.findall(r'\{\s*"(\w+)", ', source))
    words |= set(re.findall(r'json_(?:text|number)\(\s*json, "(\w+)"', source))
    named = {word for name in ("nxlock.1", "nxlock-json.7")
             for section, _, line in pages[name].lines if section == "EVENTS"
             and line[0] in ("Cm", "It") for word in line}
    if len(words) < 20:
        yield "the sources have no events at all"
    yield from (f"{word}: not in EVENTS" for word in sorted(words - named))


def check_references(pages):
    """To other pages of this library, and to sections."""
    for name, page in pages.items():
        for _, _, words in page.lines:
            for i, word in enumerate(words[:-2]):
                other = ".".join(words[i + 1:i + 3])
                if word == "Xr" and re.match("nxl", other) and \
                        other not in pages:
                    yield f"{name} refers to {other}"
            text = " ".join(words)
            found = re.search(r"\bSx ([^.,;:)]+)", text)
            if found and found[1].strip() not in page.sections:
                yield f"{name} has no section {found[1]}"


# ------------------------------------------------------- what the header says

class Header:
    """Its code in one spelling, and what the test "abi" has found in it:
    functions, numbers, and the members of each structure in their order."""

    def __init__(self, path):
        text = pathlib.Path(path).read_text("utf-8")
        code = re.sub(r"/\*.*?\*/|\\\n", " ", text, flags=re.S)
        self.names = set(re.findall(r"\b(?:nxl|NXL)_\w+", code))
        code = squeeze(code.replace(" NXL_MUST_USE;", ";"))
        self.code = code.replace("( ", "(")
        abi = (ROOT / "tests/api/abi.txt").read_text("utf-8")
        self.functions = set(re.findall(r"^function (\w+)@", abi, re.M))
        self.numbers = dict(re.findall(r"^number (\w+) (\S+)$", abi, re.M))
        self.structs = {}
        for struct, member in re.findall(r"^member (\w+)\.(\w+) ", abi, re.M):
            self.structs.setdefault(struct, []).append(member)


def prototypes(page):
    """{function: its declaration}"""
    found, result, name = {}, None, None
    for _, _, words in page.lines:
        if words[0] == "Ft":
            result = words[1]
        elif words[0] == "Fo":
            name, arguments = words[1], []
        elif words[0] == "Fa" and name:
            arguments += words[1:]
        elif words[0] == "Fc":
            found[name] = squeeze(f"{result} {name}({', '.join(arguments)});")
            result = name = None
    return found


def check_functions(page, header):
    problems, found = [], prototypes(page)
    both_ways(problems, "function", set(found), header.functions, "the header")
    return problems + [f"the header has no {declared}" for declared in
                       found.values() if declared not in header.code]


def check_numbers(page, header):
    """Each constant stands with its value: ".Dv NAME Pq VALUE"."""
    of_page = {words[i + 1]: words[i + 3] for _, _, words in page.lines
               for i, word in enumerate(words)
               if word == "Dv" and words[i + 2:i + 3] == ["Pq"]}
    problems = []
    both_ways(problems, "constant", {
        name: value for name, value in of_page.items()
        if f"#define {name} ({value}) " not in header.code},
        header.numbers, "the header")
    return problems


def check_members(page, header):
    problems = []
    for struct, members in header.structs.items():
        heads = [squeeze(" ".join(word for word in item.head[1:]
                                  if word not in ("Va", "Ns")))
                 for item in page.within(part=struct)]
        names = [re.split(r"[ *]", head.split("[")[0])[-1] for head in heads]
        if names != members:
            problems.append(f"{struct}: the page has the members {names}, "
                            f"the header has {members}")
        problems += [f"{struct}: the header has no {head};" for head in heads
                     if f" {head};" not in header.code]
    if not header.structs:
        problems.append("the header has no structure at all")
    return problems


def check_names(page, header):
    """Whatever is called nxl_ or NXL_ anywhere in the page, and members."""
    problems = []
    both_ways(problems, "name",
              set(re.findall(r"\b(?:nxl|NXL)_\w+", plain(page.text))),
              header.names, "the header")
    known = {member for members in header.structs.values()
             for member in members}
    for name in sorted({re.sub(r"^(nxl_\w+_)?options\.|\[.*|\($", "", word)
                        for word in page.after("Va")} - known - {""}):
        problems.append(f"{name}: no member of a structure")
    return problems


def check_own_pages(folder, man3, header):
    """Each function and structure has a page with its prototype."""
    problems, declared = [], prototypes(man3)
    found = {name[:-2]: Page(os.path.join(folder, name))
             for name in os.listdir(folder)
             if re.fullmatch(r"nxl_\w+\.3", name)}
    both_ways(problems, "page", set(found),
              {*header.functions, *header.structs}, "the header")
    for name, page in sorted(found.items()):
        if prototypes(page).get(name) != declared.get(name):
            problems.append(f"{name}: the page has {prototypes(page)}")
        brief = [words[1:] for _, _, words in page.lines if words[0] == "Nd"]
        if len(" ".join(*brief)) not in range(10, 75):
            problems.append(f"{name}: no short description: {brief}")
    return problems


# --------------------------------------------------------------- and the rest

def tool(name):
    if not shutil.which(name):
        raise checks.Skip(f"{name} IS NOT INSTALLED")


def output_of(words, text=None):
    """What a tool has to say; a failure without words is told too."""
    done = subprocess.run(words, input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    said = done.stdout.splitlines()
    if done.returncode != 0 and not said:
        said = [f"{words[0]} ended with {done.returncode}"]
    return said


def check_lint(*paths):
    tool("mandoc")
    return output_of(["mandoc", "-Tlint", "-Wwarning", *paths])


def check_programs(page, header_path):
    tool("cc")
    programs = ["\n".join(block) + "\n" for block in page.blocks
                if "#include <nxlock.h>" in block]
    problems = [] if programs else ["the page has no program"]
    for program in programs:
        problems += output_of(
            ["cc", "-Wall", "-Wextra", "-Werror", "-I",
             os.path.dirname(header_path) or ".", "-x", "c", "-c", "-",
             "-o", os.devnull], program)
    return problems


def check_scripts(page):
    scripts = ["\n".join(block) + "\n" for block in page.blocks
               if any(re.search(r"\bnxlock [a-z]+ ", s) for s in block)]
    problems = [] if scripts else ["the page has no example"]
    for script in scripts:
        problems += output_of(["sh", "-n"], script)
    return problems


def main(exe, rows_exe, header_path, source, build):
    source, build = pathlib.Path(source), pathlib.Path(build)
    paths = [path for folder in (source, build) for path in folder.iterdir()
             if re.fullmatch(r"nxl[\w.-]+\.[1-8]", path.name)]
    pages = {path.name: Page(path) for path in sorted(paths)}
    table, header = Table(rows_exe), Header(header_path)
    man3 = pages["nxlock.3"]
    return checks.run([
        ("each command has a page", check_commands, pages, table),
        ("each option is on its page", check_options, pages, table),
        ("options.mdoc: no other options", check_texts,
         source / "options.mdoc", table),
        ("options and commands in the text", check_mentions, pages, table),
        ("nxlock-url(7): parameters", check_parameters,
         pages["nxlock-url.7"], exe),
        ("nxlock.conf(5): keys", check_keys, pages["nxlock.conf.5"], exe,
         table),
        ("exit codes", check_exit_codes, pages, table),
        ("environment", check_environment, pages),
        ("events", check_events, pages),
        ("references to pages and sections", check_references, pages),
        *((f"{name}: examples are shell", check_scripts, pages[name])
          for name in ("nxlock.1", "nxlock-run.1", "nxlock-once.1",
                       "nxlock-acquire.1", "nxlock-status.1")),
        ("nxlock.3: functions", check_functions, man3, header),
        ("nxlock.3: numbers", check_numbers, man3, header),
        ("nxlock.3: members", check_members, man3, header),
        ("nxlock.3: names", check_names, man3, header),
        ("nxlock.3: examples compile", check_programs, man3, header_path),
        ("nxl_*.3: the header's functions", check_own_pages, build,
         man3, header),
        ("mandoc is silent", check_lint, *sorted(paths)),
    ])


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
