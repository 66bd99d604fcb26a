#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_man.py NXLOCK_EXE HEADER MAN1 MAN3 PAGES

Holds the man pages to what the program's --help and the header say, in both
directions: nothing is missing in a page and nothing is in it that is not
there. PAGES is the folder with a page for each function and structure. Prints
TAP; exits 1 on any difference. What is compared stands in the
checks at the end.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is

import checks

COMMON = "Options of every command"
ESCAPES = {r"\-": "-", r"\e": "\\", r"\&": "", r"\(aq": "'", r"\(dq": '"'}


def plain(text):
    return re.sub(r"\\(?:\(..|.)",
                  lambda m: ESCAPES.get(m.group(), m.group()), text)


def squeeze(text):
    """One spelling for each type and declarator: 'const char *name'."""
    return re.sub(r" *(\*+) *", r" \1", " ".join(text.split())).strip()


def numbers(text):
    text = re.sub(r"\b\w+\(\d\)", "", text)  # a page: nxlock(1)
    return set(re.findall(r"(?<![\w:.])\d+(?!\d)(?![:.]\w)", text))


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

    def value(self, macro):
        """The word behind a macro in the head, or None."""
        if macro in self.head:
            return self.head[self.head.index(macro) + 1]
        return None


class Page:
    """An mdoc page: macro lines as (section, part, words), list items and
    literal blocks."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.lines, self.items, self.blocks = [], [], []
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
            elif words[:1] == ["Ss"]:
                part = " ".join(words[1:])
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
            for i, word in enumerate(words[:-1]):
                if word == macro:
                    found.add(words[i + 1])
        return found

    def within(self, section=None, part=None):
        return [item for item in self.items
                if section in (None, item.section) and
                part in (None, item.part)]


# ------------------------------------------------------ what the program says

OPTION_ROW = re.compile(
    r" +(?:-(\w), )? *--([a-z][\w-]*)(?: ([A-Z]\S*))?(?:  +(\S.*))?$")


class Row:
    """One line of the options in a help text."""

    def __init__(self, letter, name, value, help_text):
        self.letter, self.name, self.value = letter, name, value
        self.help = help_text or ""

    def __repr__(self):
        return (f"-{self.letter}, " if self.letter else "") + \
            f"--{self.name}" + (f" {self.value}" if self.value else "")


class Help:
    def __init__(self, exe):
        self.exe = exe
        self.problems = []
        self.overview = self.run("--help")
        block = re.search(r"^commands:\n((?:  .*\n)+)", self.overview, re.M)
        self.commands = {}  # name: its operands
        for line in (block.group(1) if block else "").splitlines():
            usage = re.split(r"\s{2,}", line.strip())[0].split()
            if not line.startswith("   "):
                self.commands.setdefault(usage[0], set()).update(
                    re.findall(r"[A-Z]+", " ".join(usage[1:])))
        self.text = {c: self.run(c, "--help") for c in self.commands}
        self.connection = self.run("help", "connection")
        self.options = {
            command: self.read_rows(f"{command} --help", self.text[command])
            for command in self.commands}
        self.parameters = self.read_parameters()

    def run(self, *words):
        done = subprocess.run([self.exe, *words], capture_output=True,
                              text=True, timeout=20)
        if done.returncode != 0 or done.stderr:
            self.problems.append(f"nxlock {' '.join(words)} ended with "
                                 f"{done.returncode}: {done.stderr}")
        return done.stdout

    def read_rows(self, what, text):
        """The rows below "options:"."""
        rows, row, inside = {}, None, False
        for line in text.splitlines():
            if line == "options:":
                inside = True
            elif line.startswith(("exit codes:", "DUR is ")):
                inside = False
            elif not inside or not line.strip():
                continue
            elif OPTION_ROW.match(line):
                row = Row(*OPTION_ROW.match(line).groups())
                rows[row.name] = row
            elif row and line.startswith(" " * 20):
                row.help += " " + line.strip()
            else:
                self.problems.append(f"{what}: what is this line? {line}")
        return rows

    def read_parameters(self):
        """Those of the URL, which 'help connection' explains."""
        _, _, text = self.connection.partition("\nparameters of the URL:\n")
        text = re.sub(r"\n {20,}", " ", text)  # a long name has its own line
        found = re.findall(r"^  (\w+)=(\S+)\s+(\S.*)$", text, re.M)
        if len(found) != len(text.splitlines()):
            self.problems.append("help connection: what are these lines?")
        return {name: Row(None, name, value, words)
                for name, value, words in found}

    def about(self, command):
        """The text of a command's help above its options."""
        return self.text[command].split("\noptions:\n")[0]

    def everything(self):
        return self.overview + self.connection + "".join(self.text.values())


def page_options(problems, items):
    rows = {}
    for item in items:
        words = " ".join(item.head)
        found = re.fullmatch(
            r"(?:Fl (\w) , )?Fl -([\w-]+)(?: Ar (\S+))?", words)
        if not found:
            problems.append(f"the page: what is this option? {words}")
            continue
        row = Row(*found.groups(), item.body)
        if row.name in rows:
            problems.append(f"the page has --{row.name} twice")
        rows[row.name] = row
    return rows


def compare_numbers(problems, what, help_text, body):
    for number in sorted(numbers(help_text) - numbers(body)):
        problems.append(f"{what}: the page does not say {number}")


def check_commands(page, program):
    problems = list(program.problems)
    synopsis, command = {}, None
    for section, _, words in page.lines:
        if section != "SYNOPSIS":
            continue
        if words[0] == "Nm":
            command = None
        if words[0] == "Cm":
            command = words[1]
            synopsis.setdefault(command, set())
        elif command and "Ar" in words:
            synopsis[command] |= set(
                re.findall(r"\b[A-Z]{2,}\b", " ".join(words)))
    parts = {part for section, part, _ in page.lines
             if section == "COMMANDS" and part} - {COMMON}
    plain = {"help"}  # it takes no option and no lock
    for found in (synopsis, parts):
        both_ways(problems, "command", set(found) - plain,
                  set(program.commands), "--help")
    for name, operands in program.commands.items():
        seen = synopsis.get(name, set())
        allowed = operands | {"OPTION", "CMD"} | {
            row.value for row in program.options[name].values()}
        for word in sorted(operands - seen):
            problems.append(f"SYNOPSIS: {name} lacks {word}")
        for word in sorted(seen - allowed):
            problems.append(f"SYNOPSIS: {name} has no {word} in --help")
    if program.run("help") != program.overview or program.problems:
        problems.append("'nxlock help' is not 'nxlock --help'")
    if program.run("-V") != program.run("--version"):
        problems.append("-V is not --version")
    return problems


def check_options(page, program):
    problems = []
    everywhere = page_options(problems, page.within("COMMANDS", COMMON))
    for command, rows in program.options.items():
        own = page_options(problems, page.within("COMMANDS", command))
        for name in set(own) & set(everywhere):
            problems.append(f"the page has --{name} of {command} twice")
        of_page = {**everywhere, **own}
        both_ways(problems, f"{command} option",
                  {n: repr(r) for n, r in of_page.items()},
                  {n: repr(r) for n, r in rows.items()},
                  f"{command} --help")
        for name in set(rows) & set(of_page):
            compare_numbers(problems, f"{command} --{name}",
                            rows[name].help, of_page[name].help)
    return problems


def check_mentions(page, program):
    """Options in running text and in examples."""
    problems, known = [], {"-", "-version", "V"}
    of_command = {}
    for command, rows in program.options.items():
        words = {f"--{row.name}" for row in rows.values()} | {
            f"-{row.letter}" for row in rows.values() if row.letter}
        of_command[command] = words
        known |= {word[1:] for word in words}
    for word in sorted(page.after("Fl") - known):
        problems.append(f"the page speaks of -{word}, --help does not")
    used = re.compile(r"\bnxlock ([a-z]+)\b(?! --help)([^|&;>)\n]*)")
    for block in page.blocks:
        for command, words in used.findall("\n".join(block)):
            if command not in of_command:
                problems.append(f"an example runs 'nxlock {command}'")
                continue
            for word in words.split(" -- ")[0].split():
                if word.startswith("-") and word not in of_command[command]:
                    problems.append(f"an example: {command} has no {word}")
    return problems


def check_parameters(page, program):
    problems, of_page = [], {}
    for item in page.within("URL"):
        found = re.fullmatch(r"Cm (\w+) Ns = Ns Ar (\S+)",
                             " ".join(item.head))
        if found:
            of_page[found.group(1)] = Row(
                None, found.group(1), found.group(2), item.body)
        else:
            problems.append(f"URL: what is this entry? {item.head}")
    rows = program.parameters
    both_ways(problems, "URL parameter",
              {n: r.value for n, r in of_page.items()},
              {n: r.value for n, r in rows.items()}, "help connection")
    for name in set(rows) & set(of_page):
        compare_numbers(problems, f"URL {name}", rows[name].help,
                        of_page[name].help)
    return problems


def exit_codes(text):
    """Of the rows below "exit codes:"."""
    block = re.search(r"\nexit codes:\n((?: .*\n)+)", text)
    return set(re.findall(r"^ +(\d+)(?:\+N)?  \S", block.group(1), re.M)) \
        if block else set()


def check_exit_codes(page, program):
    problems = []
    of_page = {item.head[0].split("+")[0]
               for item in page.within("EXIT STATUS")}
    of_help = exit_codes(program.overview)
    both_ways(problems, "exit code", of_page, of_help, "--help")
    for command in program.commands:
        codes = exit_codes(program.text[command])
        said = set(re.findall(r"exit(?:s with| code is) (\d+)\b",
                              program.about(command)))
        for code in sorted((codes | said) - of_help):
            problems.append(f"{command} --help: {code} is not in --help")
        if not {"0", "64"} <= codes:
            problems.append(f"{command} --help shows no exit codes")
    return problems


def check_environment(page, program):
    problems = []
    of_help = set(re.findall(
        r"\bNXLOCK_[A-Z0-9_]+\b",
        program.everything()))
    listed = {word for item in page.within("ENVIRONMENT")
              for macro, word in zip(item.head, item.head[1:])
              if macro == "Ev"}
    both_ways(problems, "variable", listed, of_help, "--help")
    both_ways(problems, "variable", page.after("Ev"), of_help, "--help")
    # That one is set where the file of the machine must not count.
    unset = listed - {"NXLOCK_CONFIG"}
    for source, pattern in (("tests/cli/variables", r"[\w\s]+"),
                            ("docs/quickstart.sh",
                             r"^unset (NXLOCK_(?:[\w\s]|\\\n)+)$")):
        with open(os.path.join(os.path.dirname(__file__), "../..", source),
                  encoding="ascii") as file:
            found = re.search(pattern, file.read(), re.M)
        both_ways(problems, "variable to unset", unset,
                  set(re.findall(r"\w+_\w+", found[0])), source)
    return problems


def check_events(page, header_path):
    """Every word that --log json may write, against the sources."""
    folder = os.path.join(os.path.dirname(header_path), "../src/cli")
    with open(os.path.join(folder, "event.c"), encoding="utf-8") as file:
        words = set(re.findall(
            r'\[(?:EVENT|SKIP|RESULT)_\w+\] = \{?"([a-z-]+)"', file.read()))
    with open(os.path.join(folder, "event_log.c"), encoding="utf-8") as file:
        source = file.read()
    facts = set(re.findall(r'\{\s*"(\w+)", ', source))
    members = set(re.findall(r'json_(?:text|number)\(\s*json, "(\w+)"', source))
    problems = []
    named = {word for section, _, words_ in page.lines if section == "EVENTS"
             and words_[0] in ("Cm", "It") for word in words_}
    if not words or not facts or not members:
        problems.append("the sources have no events at all")
    return problems + [f"{word}: not in EVENTS" for word in
                       sorted((words | facts | members) - named)]


# ------------------------------------------------------- what the header says

class Header:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        code = code.replace("\\\n", " ")
        self.macros = dict(re.findall(
            r"^#define (NXL_\w+)[ \t]*(.*?)[ \t]*$", code, re.M))
        code = re.sub(r"^[ \t]*#.*$", "", code, flags=re.M)
        code = code.replace('extern "C" {', "")
        self.constants = {}
        self.types = set(re.findall(
            r"(?:typedef struct|enum|typedef \w+ \(\*) ?(\w+)", code))
        for body in re.findall(r"enum \w+ \{(.*?)\};", code, re.S):
            value = -1
            for entry in filter(None, map(str.strip, body.split(","))):
                name, _, given = map(str.strip, entry.partition("="))
                value = int(given, 0) if given else value + 1
                self.constants[name] = str(value)
        self.structs, self.comments = {}, {}
        for name, body in re.findall(
                r"^typedef struct (\w+) \{\n(.*?)^\}", text, re.S | re.M):
            self.read_members(name, body)
        code = re.sub(r"\{.*?\}[^;]*;", ";", code, flags=re.S)
        self.functions = {}
        for result, name, arguments in re.findall(
                r"([\w\s*]+?)\b(nxl_\w+)\s*\(([^()]*)\)", code):
            self.functions[name] = (squeeze(result), [
                squeeze(one) for one in arguments.split(",")])

    def read_members(self, struct, body):
        """A comment belongs to the member before it on its line, else to
        those below it up to the next comment."""
        members, above = [], ""
        for note, member, behind in re.findall(
                r"/\*(.*?)\*/|([^;/]+);[ \t]*(?:/\*(.*?)\*/)?", body, re.S):
            if not member:
                above = note
                continue
            members.append(squeeze(member))
            self.comments[struct, members[-1]] = behind or above
        self.structs[struct] = members


def prototypes(page):
    found, result, name = {}, None, None
    for _, _, words in page.lines:
        if words[0] == "Ft":
            result = words[1]
        elif words[0] == "Fo":
            name, arguments = words[1], []
        elif words[0] == "Fa" and name:
            arguments += [squeeze(word) for word in words[1:]]
        elif words[0] == "Fc":
            found[name] = (squeeze(result or ""), arguments)
            result = name = None
    return found


def check_functions(page, header):
    problems = []
    both_ways(problems, "function", prototypes(page), header.functions,
              "the header")
    return problems


def check_constants(page, header):
    """Each constant stands with its value: ".Dv NAME Pq VALUE"."""
    problems, of_page = [], {}
    for _, _, words in page.lines:
        for i, word in enumerate(words):
            if word != "Dv" or words[i + 2:i + 3] != ["Pq"]:
                continue
            if words[i + 1] not in header.macros:
                of_page[words[i + 1]] = words[i + 3]
    both_ways(problems, "constant", of_page, header.constants, "the header")
    return problems


def check_macros(page, header):
    problems, listed = [], set()
    for item in page.within(part="Macros"):
        names = re.findall(r"NXL_\w+", " ".join(item.head))
        listed |= set(names)
        value = item.value("Pq")
        if value and header.macros.get(names[0], "").strip("()") != value:
            problems.append(f"macro {names[0]} is not {value}")
    both_ways(problems, "macro", listed, set(header.macros), "the header")
    return problems


def check_members(page, header):
    problems = []
    for struct, members in header.structs.items():
        bodies = {}
        for item in page.within(part=struct):
            words = [word for word in item.head[1:] if word not in
                     ("Va", "Ns")]
            bodies[squeeze(" ".join(words))] = item.body
        both_ways(problems, f"{struct} member", set(bodies), set(members),
                  "the header")
        if not problems and list(bodies) != members:
            problems.append(f"{struct}: the members have another order")
        for member in set(members) & set(bodies):
            note = header.comments[struct, member]
            shared = "".join(bodies.get(other, "") for other in members
                             if header.comments[struct, other] == note)
            compare_numbers(problems, f"{struct}: {member}", note, shared)
    if not header.structs:
        problems.append("the header has no structure at all")
    return problems


def check_names(page, header):
    """Whatever is called nxl_ or NXL_ anywhere in the page, and members."""
    problems = []
    known = {*header.functions, *header.types, *header.constants,
             *header.macros}
    both_ways(problems, "name",
              set(re.findall(r"\b(?:nxl|NXL)_\w+", plain(page.text))),
              known, "the header")
    known = {re.split(r"[ *]", member.split("[")[0])[-1]
             for members in header.structs.values() for member in members}
    for name in sorted({word.split("[")[0] for word in page.after("Va")}
                       - known):
        problems.append(f"{name}: no member of a structure")
    return problems


def check_own_pages(folder, header):
    """Each function and structure has a page with the header's prototype."""
    problems = []
    found = {name[:-2]: Page(os.path.join(folder, name))
             for name in os.listdir(folder)
             if re.fullmatch(r"nxl_\w+\.3", name)}
    both_ways(problems, "page", set(found),
              {*header.functions, *header.structs}, "the header")
    for name, page in sorted(found.items()):
        declared = {name: header.functions[name]} \
            if name in header.functions else {}
        if prototypes(page) != declared:
            problems.append(f"{name}: the page has {prototypes(page)}, "
                            f"the header has {declared}")
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


def main(exe, header_path, man1_path, man3_path, folder):
    man1, man3 = Page(man1_path), Page(man3_path)
    program, header = Help(exe), Header(header_path)
    return checks.run([
        ("nxlock.1: commands", check_commands, man1, program),
        ("nxlock.1: options", check_options, man1, program),
        ("nxlock.1: options in the text", check_mentions, man1, program),
        ("nxlock.1: URL parameters", check_parameters, man1, program),
        ("nxlock.1: exit codes", check_exit_codes, man1, program),
        ("nxlock.1: environment", check_environment, man1, program),
        ("nxlock.1: events", check_events, man1, header_path),
        ("nxlock.1: examples are shell", check_scripts, man1),
        ("nxlock.1: mandoc is silent", check_lint, man1_path),
        ("nxlock.3: functions", check_functions, man3, header),
        ("nxlock.3: constants", check_constants, man3, header),
        ("nxlock.3: macros", check_macros, man3, header),
        ("nxlock.3: members", check_members, man3, header),
        ("nxlock.3: names", check_names, man3, header),
        ("nxlock.3: examples compile", check_programs, man3, header_path),
        ("nxlock.3: mandoc is silent", check_lint, man3_path),
        ("nxl_*.3: the header's functions", check_own_pages, folder, header),
        ("nxl_*.3: mandoc is silent", check_lint,
         *sorted(glob.glob(os.path.join(folder, "nxl_*.3")))),
    ])


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
