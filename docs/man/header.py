#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""header.py HEADER TEMPLATE DIRECTORY: the manual pages of section 3.

Writes nxlock(3), which is TEMPLATE with nxlock.h in place of the line
'.\\" @HEADER', and a page for each function and structure, so that "man
nxl_lock_acquire" shows what nxlock(3) says of it. Declarations and text are
those of HEADER. Where the manual says more of a function than the header, that
stands in TEMPLATE, after a line '.\\" @MORE FUNCTION'.

Invariant: no declaration and no sentence about one is written here.
"""

import pathlib
import re
import sys
import textwrap

sys.dont_write_bytecode = True  # the source tree stays as it is

import prose
from prose import plain

PAGE = r""".\" SPDX-License-Identifier: MIT
.\" Made from nxlock.h by header.py.
{date}
.Dt {title} 3
.Os
.Sh NAME
.Nm {name}
.Nd {brief}
.Sh LIBRARY
nxlock library (libnxlock, \-lnxlock)
.Sh SYNOPSIS
.In nxlock.h
{synopsis}
.Sh DESCRIPTION
{text}
.Sh SEE ALSO
{others}
"""
SYSTEM = {"fork": 2, "fsync": 2, "poll": 2, "dlclose": 3, "longjmp": 3,
          "pthread_exit": 3}

# ------------------------------------------------------------ reading nxlock.h


class Part:
    """A declaration and the comment in front of it."""

    def __init__(self, kind, name, code, text):
        self.kind, self.name, self.code, self.text = kind, name, code, text
        self.shared = ""  # the text of the first of several declarations
        self.values = []  # of an enum or a structure: Value


class Value:
    """A constant or member, with what is said of it. above: the comment in
    front of it, if it also has one behind it, which is about several."""

    def __init__(self, head, text):
        self.head, self.text, self.above = head, text, ""
        self.behind = False  # the text is behind it


def comment_text(comment):
    """A comment without its stars; code in it stays indented."""
    lines = [re.sub(r"^ *\* ?", "", line.rstrip())
             for line in comment[2:-2].split("\n")]
    return "\n".join(line.rstrip() for line in lines).strip("\n ")


TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/) |
    (?P<macro>^\#define\ NXL_(?:\\\n|[^\n])*) |
    (?P<other>^\#[^\n]*|^extern\ "C"\ \{|^\}$) |
    (?P<code>(?:typedef|enum|struct|const|[a-z]\w*_t|int|bool|void)\b[^;{]*
        (?:\{[^}]*\}[^;]*)?;) |
    (?P<blank>\n\n)
    """, re.X | re.M | re.S)


def kind_of(code):
    """What a declaration declares, and its name."""
    for kind, pattern in (
            ("enum", r"enum (\w+) \{"), ("struct", r"typedef struct (\w+) \{"),
            ("opaque", r"typedef struct \w+ (\w+);"),
            ("callback", r"typedef [^(]*\(\*(\w+)\)"),
            ("function", r"[^(;{]*?\b(nxl_\w+)\(")):
        found = re.match(pattern, code)
        if found:
            return kind, found[1]
    return None, None


def values_of(body, is_enum):
    """The constants or members between the braces."""
    end = "," if is_enum else ";"
    number, above, last = -1, "", None
    pieces = re.findall(r"/\*.*?\*/|\n|[^\n,;/]+[,;]?", body, re.S)
    for at, piece in enumerate(pieces):
        if piece.startswith("/*"):
            text = comment_text(piece)
            # Behind a constant or member on its line, it is about that one.
            if at and last and pieces[at - 1].strip() and "\n" not in \
                    pieces[at - 1]:
                last.above, last.text, last.behind = last.text, text, True
            elif at > 1 and last and not pieces[at - 1].strip(" ") and \
                    pieces[at - 2] != "\n":
                last.above, last.text, last.behind = last.text, text, True
            else:
                above = text
            continue
        code = " ".join(piece.strip().rstrip(end).split())
        if not code:
            continue
        if is_enum:
            name, _, given = map(str.strip, code.partition("="))
            number = int(given, 0) if given else number + 1
            code = f".It Dv {name} Pq {plain(str(number))}"
        last = Value(code, above)
        above = ""
        yield last


def read(header):
    """[(section, its text, its parts)]"""
    text = header[header.index("/* ---"):]
    sections, above, previous = [], "", None
    for token in TOKEN.finditer(text):
        kind, code = token.lastgroup, token[token.lastgroup]
        if kind == "comment":
            banner = re.match(r"/\* -{9,} (.*?)(?:\n \*\n|\n \*/)(.*)", code,
                              re.S)
            above = comment_text(code) if not banner else ""
            if banner:
                sections.append((banner[1].upper(),
                                 comment_text("/*" + "\n" + banner[2]), []))
            if above.startswith("clang-format"):
                above = ""
            previous = None
        elif kind == "blank":
            previous, above = None, ""
        elif kind in ("macro", "code"):
            parts = sections[-1][2]
            if kind == "macro":
                name = code.split()[1].split("(")[0]
                part = Part("macro", name, " ".join(
                    code.replace("\\\n", " ").split()[2:]), above)
            else:
                part = Part(*kind_of(code), code, above)
                if not part.kind:
                    continue
            if part.kind in ("enum", "struct"):
                part.values = list(values_of(
                    code[code.index("{") + 1:code.rindex("}")],
                    part.kind == "enum"))
            if previous and not above and previous.kind == part.kind:
                part.shared = previous.shared or previous.text
            if part.name.endswith("_start"):
                part.shared = sections[-1][1].split("\n\n")[-1]
            parts.append(part)
            previous, above = part, ""
    return sections


# ------------------------------------------------------------------ as mdoc

def capital(text):
    """With a capital letter, unless a name begins it."""
    name = re.match(r"enum |\w*[_(]|\w+\.\w", text)
    return text if name else text[:1].upper() + text[1:]


def macro_of(core, variables):
    """The macro of a word, or None."""
    name = core.removesuffix("()")
    if re.fullmatch(r"nxl_\w+\(\)", core):
        return f"Fn {name}"
    if name in SYSTEM and name != core:
        return f"Xr {name} {SYSTEM[name]}"
    if core == "fork()ed":
        return "Xr fork 2 Ns ed"
    if re.fullmatch(r"NXL_[A-Z_]*[A-Z]", core):
        return f"Dv {core}"
    if re.fullmatch(r"nxl_\w+", core):
        return f"Vt {core}"
    if core in variables or core.startswith(
            ("options.", "nxl_client_options.", "nxl_lock_options.")):
        return f"Va {core}"
    return prose.common_macro(core)


def marked(word, variables):
    return prose.punctuated(word, lambda core: macro_of(core, variables))


def mdoc(text, variables):
    """A comment as lines of mdoc."""
    lines = []
    for block in re.split(r"\n{2,}(?! )|(?<=\S)\n\n(?= )", text):
        if not block.strip():
            continue
        if block.startswith("    "):
            lines += [".Bd -literal -offset indent",
                      *(plain(line) for line in
                        textwrap.dedent(block).rstrip().split("\n")), ".Ed"]
        else:
            if lines:
                lines.append(".Pp")
            lines += prose.lines(block, lambda word: marked(word, variables))
    return lines


def squeezed(text):
    return re.sub(r" *(\*+) *", r" \1", " ".join(text.split())).strip()


def prototype(part):
    code = re.sub(r"\bNXL_MUST_USE\b|;", "", part.code)
    found = re.match(r"(.*?)\bnxl_\w+\s*\((.*)\)\s*$", code, re.S)
    result = squeezed(found[1])
    lines = [f'.Ft "{result}"' if " " in result else f".Ft {result}",
             f".Fo {part.name}"]
    for argument in found[2].split(","):
        argument = squeezed(argument)
        lines.append(f'.Fa "{argument}"' if " " in argument
                     else f".Fa {argument}")
    return lines + [".Fc"]


def member(code):
    """'.It Vt "const char *" Ns Va name'"""
    found = re.fullmatch(r"(.*?)(\*?)(\w+(?:\[\w+\])?)", code)
    kind = squeezed(found[1])
    if found[2]:
        return f'.It Vt "{kind} *" Ns Va {found[3]}'
    return f'.It Vt "{kind}" Va {found[3]}' if " " in kind else \
        f".It Vt {kind} Va {found[3]}"


def value_list(part, variables):
    lines, is_open = [], False
    for at, value in enumerate(part.values):
        if value.above:
            lines += [".El"] if is_open else []
            lines += [".Pp", *mdoc(value.above, variables)]
            is_open = False
        if not is_open:
            lines.append(".Bl -tag -width Ds")
            is_open = True
        lines.append(value.head if part.kind == "enum" else
                     member(value.head))
        text = value.text
        if part.kind == "struct":  # a comment is about those below, too
            after = part.values[at + 1:at + 2]
            if text and not value.behind and after and not after[0].text:
                after[0].text, text = text, ""
        if text:
            end = "" if re.search(r"[.!?]\)?$", text) else "."
            lines += mdoc(capital(text) + end, variables)
    return lines + ([".El"] if is_open else [])


def initializer(part, macros):
    name = part.name.upper() + "_INIT"
    return [".Pp", f".Dv {name}", "initializes it."] if name in macros else []


def entry(part, more, variables, macros):
    """What is said about a part, without its declaration."""
    text = "\n\n".join(filter(None, (part.text, part.shared)))
    lines = mdoc(text, variables)
    lines += [".Pp", *more] if more else []
    if part.kind in ("enum", "struct"):
        lines += value_list(part, variables)
    if part.kind == "struct":
        lines += initializer(part, macros)
    return lines


def section(title, text, parts, tell, variables):
    lines = [f".Sh {title}", *mdoc(text, variables)]
    functions = [part for part in parts if part.kind == "function"]
    lines.append(".Bl -tag -width Ds")
    for part in functions:
        lines += [".It Xo", *prototype(part), ".Xc"]
        if part.shared in text:  # what is said of the section
            lines += mdoc(part.text, variables) if part.shared else tell(part)
        else:
            lines += tell(part)
    lines.append(".El")
    for part in parts:
        if part.kind in ("enum", "struct"):
            lines += [f".Ss {'enum ' * (part.kind == 'enum')}{part.name}",
                      *tell(part)]
        elif part.kind == "callback":
            code = " ".join(part.code.split()).replace("( ", "(")
            lines += [f".Ss {part.name}", *tell(part), ".Dl " + plain(code)]
    macros = [part for part in parts
              if part.kind == "macro" and (part.text or part.shared)]
    if macros:
        lines += [".Ss Macros", ".Bl -tag -width Ds"]
    for part, after in zip(macros, macros[1:] + [None]):
        value = part.code.strip("()")
        lines.append(f".It Dv {part.name}" + (
            f" Pq {plain(value)}" if re.fullmatch(r"-?\d+", value) else ""))
        if not after or not after.shared:
            lines += tell(part)
    return lines + ([".El"] if macros else [])


# ------------------------------------------------------------------- the pages

def words_of(line):
    """What a line shows, without its macros."""
    if line.startswith("."):
        line = re.sub(r"(?<!\S)\.?[A-Z][a-z](?!\S)", "", line)
    line = line.replace("\\&", "").replace("\\-", "-")
    return line.replace('""', "an empty text").replace('"', "").strip()


def brief(name, lines):
    """The first sentence, or its beginning, for the line of apropos(1)."""
    if name.endswith("_start"):
        return f"starts {name.removesuffix('_start')} for an event loop"
    text = " ".join(words_of(line) for line in lines)
    text = re.sub(r" ([.,;:)])(?!\.)", r"\1", " ".join(text.split()))
    text = text.replace("( ", "(")
    for end in (r"(?<!\.)[.](?: |$)", r"(?<!\.)[.;:](?: |$)",
                r"(?<!\.)[.;:](?: |$)| \(", r"(?<!\.)[.;:,](?: |$)| \("):
        short = re.split(end, text)[0].strip()
        if len(short) <= 74:
            break
    return short if re.match(r"\w*_", short) else short[:1].lower() + short[1:]


def others_of(name, text, pages):
    named = {word for line in text for word in re.findall(r"nxl_\w+", line)}
    if name.endswith("_start"):
        named.add(name.removesuffix("_start"))
    return sorted((named & pages) - {name}) + ["nxlock"]


def read_template(path):
    """Its lines, and {function: what the manual says besides the header}."""
    lines, more, at = [], {}, None
    for line in pathlib.Path(path).read_text("utf-8").splitlines():
        found = re.fullmatch(r'\.\\" @MORE (\w+)', line)
        if found:
            at = more.setdefault(found[1], [])
        elif line == r'.\" @END':
            at = None
        else:
            (lines if at is None else at).append(line)
    return lines, more


def main(header, template, directory):
    sections = read(pathlib.Path(header).read_text("utf-8"))
    lines, more = read_template(template)
    parts = [part for _, _, some in sections for part in some]
    macros = {part.name for part in parts if part.kind == "macro"}
    variables = {word for part in parts if part.kind in ("function", "struct")
                 for word in re.findall(r"\b[a-z]+_[a-z_]+\b", re.sub(
                     r"/\*.*?\*/", "", part.code, flags=re.S))
                 if not re.match(r"nxl_|u?int\d+_t|size_t", word)}

    def tell(part):
        return entry(part, more.get(part.name), variables, macros)

    def mark(word):
        return marked(word, variables)

    more = {name: list(prose.page(text, mark)) for name, text in more.items()}
    whole = []
    for line in prose.page(lines, mark):
        if line == r'.\" @HEADER':
            for title, text, some in sections:
                whole += section(title, text, some, tell, variables)
        else:
            whole.append(line)
    folder = pathlib.Path(directory)
    (folder / "nxlock.3").write_text("\n".join(whole) + "\n", "utf-8")

    own = [part for part in parts if part.kind in ("function", "struct")]
    names = {part.name for part in own}
    unknown = set(more) - names
    if unknown:
        sys.exit(f"{template}: {', '.join(unknown)}: not in the header")
    for part in own:
        text = [re.sub(rf"^\.Xr {part.name} 3$", "this page", line)
                for line in tell(part)]
        (folder / f"{part.name}.3").write_text(PAGE.format(
            date=next(line for line in lines if line.startswith(".Dd")),
            title=part.name.upper(), name=part.name, brief=brief(part.name, text),
            synopsis="\n".join(prototype(part) if part.kind == "function"
                               else [f".Vt {part.name}"]),
            text="\n".join(text), others=" ,\n".join(
                f".Xr {other} 3" for other in others_of(part.name, text,
                                                        names))), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
