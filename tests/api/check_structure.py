#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_structure.py ROOT: the shape of the source tree.

Which layer may include which, who sees hiredis and OpenSSL, sizes, form, calls
that have no place in a library, the dialect of C, and tests that no list names.
Prints file:line: what is wrong; exits 1 if any.
"""

import pathlib
import re
import sys

FILE_LINES, FUNCTION_LINES, COLUMNS = 700, 70, 80

# What a layer may include beside itself.
LAYERS = {
    "api": {"lock", "client", "net", "config", "core", "wire", "model", "base"},
    "lock": {"client", "net", "config", "core", "wire", "model", "base"},
    "client": {"net", "config", "core", "wire", "model", "base"},
    "net": {"config", "core", "wire", "model", "base"},
    "config": {"wire", "model", "base"},
    "core": {"model", "base"},
    "wire": {"model", "base"},
    "model": {"base"},
    "base": set(),
    "cli": set(),
}
PUBLIC_HEADER = {"api", "lock", "client", "cli"}  # may include <nxlock.h>

# The command is linked with the library's objects. Besides <nxlock.h> it may
# include these: what the library does for the command alone, the table of the
# parameters of a URL, and what reads the wire format.
CLI_HEADERS = {
    "api/private.h", "config/params.h", "config/secret_file.h", "config/url.h",
    "model/companion.h", "model/token.h", "base/slice.h", "wire/record.h",
    "wire/value.h", "wire/waiter.h",
}

# The timestamp scheme, of which the rest knows as little as it can: outside its
# folder only that header is included, and only by these files, for these names:
# the rows of the table of strategies, what such a row stores with a connection
# and an exchange, and nxl_holder.value_ends_s (wire/value.h). Every other file
# of src may name the value of the URL parameter, and nothing else with "stamp".
STAMPS_FOLDER = "src/wire/timestamps/"
STAMPS_HEADER = "wire/timestamps/timestamps.h"
STAMPS_USERS = {
    "src/wire/strategies.c": {
        "timestamps_acquire", "timestamps_acquire_unwatched",
        "timestamps_change", "timestamps_change_unwatched",
        "timestamps_inspect", "timestamps_takeover",
    },
    "src/wire/strategy.h": {
        "timestamps_server", "timestamps_exchange", "stamps",
    },
    "src/wire/value.c": {
        "stamp_parse", "stamp_is_of", "stamp_kind", "STAMP_NONE",
        "STAMP_FOREIGN", "STAMP_OURS",
    },
}
STAMPS_NAME = re.compile(r"\b\w*stamp\w*", re.I)
STAMPS_PUBLIC = {"NXL_SCHEME_TIMESTAMP", "LOCK_SCHEME_TIMESTAMP"}

# OpenSSL stays in one folder, of which these files see one header, and in the
# one file that makes a hash.
HASH_FILE = "src/cli/fingerprint.c"
TLS_FOLDER = "src/net/tls/"
TLS_HEADER = "net/tls/tls.h"
TLS_USERS = {
    "src/api/endpoints.c", "src/client/nodes.c", "src/net/state.c",
}

# A request knows its server. Where the nodes of a client are, and which one has
# which number in a vote, is the business of these files.
NODES_FILES = {
    "src/client/nodes.c", "src/client/nodes.h", "src/api/endpoints.c",
}
NODES_NAME = re.compile(r"\b(?:servers|nodes)\s*(?:\[|\.\s*first\b)")

# What a server says reaches the state machine of a lock at one place each, once
# core/weigh.h was asked whether it counts, which only client/voters.c does.
WEIGHED = {
    "life_outcome": "src/lock/actions.c",
    "line_on_granted": "src/lock/line_messages.c",
    "weigh_verb": "src/client/voters.c",
    "weigh_outcome": "src/client/voters.c",
    "weigh_message": "src/client/voters.c",
}

# A rule that holds for some kinds of verbs, calls or rounds is a column of
# their table, so the order of the kinds means nothing, and there is no switch
# over them. Only what writes the commands of a verb and reads the replies
# compares it with another one.
KIND = r"(?:VERB|CALL|ROUND)_(?!KINDS\b)[A-Z_]+\b"
KIND_ORDER = re.compile(
    rf"(?<![<>-])[<>]=?\s*{KIND}|\b{KIND}\s*[<>]=?(?![<>])")
KIND_CASE = re.compile(rf"\bcase\s+{KIND}")
VERB_EQUAL = re.compile(r"[!=]=\s*VERB_[A-Z_]+|\bVERB_[A-Z_]+\s*[!=]=")
VERB_FOLDER = "src/wire/"

CLOCK = {"clock_gettime"}
UNSAFE = {
    "strcpy", "stpcpy", "strcat", "strncat", "sprintf", "vsprintf", "gets",
    "atoi", "atol", "atoll", "atof", "strtok", "alloca", "tmpnam", "mktemp",
    "gettimeofday", "time", "ftime", "rand", "srand", "random", "srandom",
    "uuid_generate", "uuid_generate_random", "uuid_generate_time",
}
NOT_IN_LIBRARY = {
    "printf", "vprintf", "fprintf", "vfprintf", "dprintf", "puts", "fputs",
    "putchar", "fputc", "putc", "perror", "fwrite", "exit", "_exit", "_Exit",
    "quick_exit", "abort", "assert", "atexit", "signal", "sigaction",
    "sigprocmask", "raise", "kill", "alarm", "system", "fork", "setenv",
    "putenv", "setlocale", "sleep", "usleep", "err", "errx", "warn", "warnx",
    "syslog", "select", "redisCommand", "redisConnect",
}
NOT_IN_CORE = {
    "malloc", "calloc", "realloc", "free", "strdup", "socket", "connect",
    "send", "recv", "read", "write", "poll", "clock_now", "getrandom",
}

CALL = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*\(")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
SIZEOF = re.compile(r"\bsizeof\b(?!\s*\()")
NULL = re.compile(r"[!=]=\s*NULL\b|\bNULL\s*[!=]=")
SPDX = "SPDX-License-Identifier: MIT"


def without_text(source):
    """The source with comments, strings and characters blanked out, line by
    line the same."""
    pattern = re.compile(
        r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
        re.S)
    return pattern.sub(
        lambda m: re.sub(r"[^\n]", " ", m.group()), source)


def is_condition(code, start, end):
    """Whether the comparison around code[start:end] is tested where it stands:
    it is all of what an if, while or for tests, or an operand of && or || or
    what stands before a ?. Elsewhere it is a value, which may be compared."""
    depth, at = 0, start
    while at > 0:
        at -= 1
        one = code[at]
        if one in ")]":
            depth += 1
        elif one in "([" and depth > 0:
            depth -= 1
        elif depth == 0:
            if code[at - 1:at + 1] in ("&&", "||") or (
                    one == "(" and re.search(r"\b(if|while)\s*$", code[:at])):
                return True
            if one == ";" and re.search(r"\bfor\s*\([^;{}]*$", code[:at]):
                return True
            if one in "([{};,?:" or (one == "=" and
                                     code[at - 1] not in "=!<>"):
                break
    depth, at = 0, end
    while at < len(code) and (depth or code[at] not in ")];,:{}"):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(code[at], 0)
        if depth == 0 and (code[at:at + 2] in ("&&", "||") or code[at] == "?"):
            return True
        at += 1
    return False


def opening(lines):
    """The first comment that is not the license."""
    found = re.search(r"/\*.*?\*/", "\n".join(lines[1:]), re.S)
    return found[0] if found else ""


class Check:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.problems = []

    def say(self, path, line, text):
        self.problems.append(f"{path.relative_to(self.root)}:{line}: {text}")

    def form(self, path, lines):
        for number, line in enumerate(lines, 1):
            if "\t" in line:
                self.say(path, number, "a tab")
            if line != line.rstrip():
                self.say(path, number, "blanks at the end")
            if len(line) > COLUMNS:
                self.say(path, number, f"{len(line)} columns")

    def opening(self, path, lines):
        if lines[:1] != [f"/* {SPDX} */"]:
            self.say(path, 1, f"the first line is not /* {SPDX} */")
        elif len(lines) < 2 or not lines[1].startswith("/*"):
            self.say(path, 2, "no opening comment")

    def licensed(self, path, lines):
        if SPDX not in "\n".join(lines[:2]):
            self.say(path, 1, f"no {SPDX} in the first two lines")

    def dialect(self, path, code, first=1):
        for found in SIZEOF.finditer(code):
            self.say(path, first + code.count("\n", 0, found.start()),
                     "sizeof without parentheses")
        for found in NULL.finditer(code):
            if is_condition(code, *found.span()):
                self.say(path, first + code.count("\n", 0, found.start()),
                         "a condition: write p or !p, not a comparison to NULL")

    def page(self, path):
        """The C programs of a page."""
        text = path.read_text("utf-8")
        for found in re.finditer(r"^```c\b[^\n]*\n(.*?)^```$", text,
                                 re.M | re.S):
            first = 1 + text.count("\n", 0, found.start(1))
            self.dialect(path, without_text(found[1]), first)
        self.named_files(path, text)

    def named_files(self, path, text):
        """A file that a page names is there; NAME stands for any."""
        for found in re.finditer(
                r"`((?:[a-z_]+/)+[\w.-]+\.(?:[ch]|py|sh|lua))`", text):
            name = found[1]
            known = name.split("/")[0] in {"src", "tests", "include", *LAYERS}
            if known and "NAME" not in name and not any(
                    (self.root / top / name).exists() for top in ("", "src")):
                self.say(path, 1 + text.count("\n", 0, found.start()),
                         f"{name} is not there")

    def functions(self, path, lines):
        start = None
        targets = set()
        for number, line in enumerate(lines, 1):
            if line == "{":
                start, targets = number, set()
            elif re.match(r"[A-Za-z_].*\)\s*\{$", line):
                self.say(path, number, "a function's brace has its own line")
            targets.update(re.findall(r"\bgoto\s+(\w+)", line))
            if line == "}" and start is not None:
                length = number - start + 1
                if length > FUNCTION_LINES:
                    self.say(path, start, f"a function of {length} lines")
                if len(targets) > 1:
                    self.say(path, start, "more than one label to go to")
                start = None

    def includes(self, path, layer, lines):
        inside = path.relative_to(self.root).as_posix()
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            quote, name = found.groups()
            if name.startswith("hiredis"):
                if not (re.fullmatch(r"src/net/\w+\.c", inside) or
                        inside == "src/wire/command.c"):
                    self.say(path, number, "hiredis is not for this file")
            elif name.startswith("openssl"):
                if (not inside.startswith(TLS_FOLDER) and
                        inside != HASH_FILE):
                    self.say(path, number, "OpenSSL is for " + TLS_FOLDER)
            elif name.startswith("uuid"):
                if inside != "src/model/token.c":
                    self.say(path, number, "libuuid is for model/token.c")
            elif name == "nxlock.h":
                if quote != "<" or layer not in PUBLIC_HEADER:
                    self.say(path, number, "nxlock.h is not for this layer")
            elif quote == '"':
                self.inner_include(path, number, layer, name)
                self.tls_include(path, number, name)

    def inner_include(self, path, number, layer, name):
        other = name.split("/")[0] if "/" in name else None
        if other not in LAYERS:
            self.say(path, number, f'"{name}": write it from src')
        elif layer == "cli" and name in CLI_HEADERS:
            return
        elif other != layer and other not in LAYERS[layer]:
            self.say(path, number, f"{layer} may not include {other}")

    def tls_include(self, path, number, name):
        inside = path.relative_to(self.root).as_posix()
        if ("src/" + name).startswith(TLS_FOLDER) and not (
                inside.startswith(TLS_FOLDER) or
                (name == TLS_HEADER and inside in TLS_USERS)):
            self.say(path, number, f"{name} is not for this file")

    def calls(self, path, layer, lines):
        inside = path.relative_to(self.root / "src").as_posix()
        banned = set(UNSAFE)
        if inside != "base/clock.c":
            banned |= CLOCK
        if layer != "cli":
            banned |= NOT_IN_LIBRARY
        if layer == "core":
            banned |= NOT_IN_CORE
        for number, line in enumerate(lines, 1):
            for name in CALL.findall(line):
                if name in banned:
                    self.say(path, number, f"{name}() has no place here")

    def user(self, path, lines):
        """Benchmarks and examples see the public header only."""
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line)
            if found and found.group(2).split("/")[0] in LAYERS:
                self.say(path, number, "only nxlock.h may be used here")

    def stamps(self, path, lines, code):
        """The timestamp scheme stays behind its header."""
        inside = path.relative_to(self.root).as_posix()
        if inside.startswith(STAMPS_FOLDER):
            return
        for number, (line, bare) in enumerate(zip(lines, code), 1):
            found = INCLUDE.match(line)
            name = found.group(2) if found else ""
            if ("src/" + name).startswith(STAMPS_FOLDER) and not (
                    name == STAMPS_HEADER and inside in STAMPS_USERS):
                self.say(path, number, f"{name} is not for this file")
            names = STAMPS_USERS.get(inside, set()) | STAMPS_PUBLIC
            for word in STAMPS_NAME.findall(bare):
                if word not in names:
                    self.say(path, number,
                             f"{word}: the timestamp scheme has no place here")

    def nodes(self, path, code):
        """Servers are found by nodes.h or by the request, not by an index."""
        inside = path.relative_to(self.root).as_posix()
        if inside in NODES_FILES or inside.startswith("src/cli/"):
            return
        for number, line in enumerate(code, 1):
            for name in NODES_NAME.findall(line):
                self.say(path, number,
                         f"{name}: a request knows its server; client/nodes.h "
                         "finds any other")

    def weighed(self, path, code):
        """Nothing gets past the one place that decides what counts."""
        inside = path.relative_to(self.root).as_posix()
        if inside.startswith("src/core/"):
            return
        for number, line in enumerate(code, 1):
            for name in CALL.findall(line):
                if WEIGHED.get(name, inside) != inside:
                    self.say(path, number,
                             f"{name}() is called by {WEIGHED[name]} alone: "
                             "what counts is decided in one place")

    def kinds(self, path, code):
        """What is decided by the kind of a verb, a call or a round."""
        inside = path.relative_to(self.root).as_posix()
        if inside.startswith("src/cli/"):
            return
        for number, line in enumerate(code, 1):
            if KIND_ORDER.search(line):
                self.say(path, number, "the order of kinds means nothing: "
                         "make it a column of their table")
            if KIND_CASE.search(line):
                self.say(path, number, "a switch over kinds: make it a column "
                         "of their table")
            if VERB_EQUAL.search(line) and not inside.startswith(VERB_FOLDER):
                self.say(path, number, "a comparison with a verb: make it a "
                         "column of verb_traits")

    def c_file(self, path, text):
        lines = text.splitlines()
        blank = without_text(text)
        code = blank.splitlines()
        parts = path.relative_to(self.root).parts
        self.opening(path, lines)
        self.dialect(path, blank)
        self.functions(path, code)
        if len(lines) > FILE_LINES and "One subject: " not in opening(lines):
            self.say(path, len(lines), f"a file of {len(lines)} lines: say in "
                     "its opening comment why it is \"One subject: ...\"")
        if parts[0] == "src":
            if parts[1] not in LAYERS:
                self.say(path, 1, "no layer of that name")
                return
            self.includes(path, parts[1], lines)
            self.calls(path, parts[1], code)
            self.stamps(path, lines, code)
            self.nodes(path, code)
            self.weighed(path, code)
            self.kinds(path, code)
        elif parts[:2] in (("docs", "examples"), ("tests", "bench")):
            self.user(path, lines)

    def test_listed(self, path, meson):
        """A test that no list names would never run."""
        parts = path.relative_to(self.root).parts
        found = re.fullmatch(r"test_(\w+)\.(c|sh|py)", parts[-1])
        if parts[:3] == ("tests", "live", "scenes"):
            found = re.fullmatch(r"(\w+)\.(scenes)", parts[-1])
        elif parts[0] != "tests" or len(parts) != 3:
            return
        if not found:
            return
        own = path.parent / "meson.build"
        name, lists = found.group(1), [meson]
        if own.exists():
            lists.append(own.read_text("utf-8"))
        if not any(f"'{name}'" in text or f"'{parts[-1]}'" in text
                   for text in lists):
            self.say(path, 1, f"{own.parent.name}: no meson.build names it")

    def run(self):
        meson = self.root / "tests" / "meson.build"
        meson = meson.read_text("utf-8") if meson.exists() else ""
        count = 0
        for path in self.root.glob("tests/live/scenes/*.scenes"):
            self.test_listed(path, meson)
        for page in (*self.root.glob("*.md"), *self.root.glob("docs/*.md")):
            self.page(page)
        for page in self.root.glob("tests/*/README.md"):
            self.named_files(page, page.read_text("utf-8"))
        for path in (*self.root.glob("meson*"),
                     *(path for top in ("src", "docs", "tests")
                       for path in (self.root / top).rglob("meson.build"))):
            self.licensed(path, path.read_text("utf-8").splitlines())
        for top in ("include", "src", "tests", "docs/examples"):
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix not in (".c", ".h", ".lua", ".py", ".sh",
                                       ".cpp", ".hpp"):
                    continue
                count += 1
                text = path.read_text("utf-8")
                lines = text.splitlines()
                self.form(path, lines)
                self.test_listed(path, meson)
                if path.suffix in (".c", ".h"):
                    self.c_file(path, text)
                else:
                    self.licensed(path, lines)
        return count


def main(root):
    check = Check(root)
    count = check.run()
    for problem in check.problems:
        print(problem)
    if count == 0:
        print(f"{root}: no source files")
    print(f"{count} files, {len(check.problems)} problems")
    return 1 if check.problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
