# SPDX-License-Identifier: MIT
"""Plain text as mdoc: what the generators of the manual pages share."""

import re
import textwrap


def plain(line):
    """A line of text as it is."""
    line = re.sub(r"(?<!\S)-+", lambda m: "\\-" * len(m[0]),
                  line.replace("\\", "\\e"))
    return "\\&" + line if line.startswith((".", "'")) else line


def lines(text, mark):
    """Each sentence begins a line, and so does a word that mark() makes a macro
    of; it returns None for other words. What stands in `...` is one word."""
    line = []

    def flush():
        wrapped = textwrap.wrap(" ".join(line), 78, break_long_words=False,
                                break_on_hyphens=False)
        line.clear()
        return [plain(one) for one in wrapped]

    words = re.findall(r"[^\s`]*`[^`]*`\S*|\S+", text)
    for at, word in enumerate(words):
        macro = mark(word)
        if macro:
            yield from flush()
            yield macro
        else:
            line.append(word.replace("`", ""))
        follows = words[at + 1] if at + 1 < len(words) else ""
        if line and re.search(r"[.?!]\)?$", word) and word != "..." and \
                re.match(r"[(\"]?[A-Z0]", follows):
            yield from flush()
    yield from flush()


def punctuated(word, choose):
    """A word as a macro line: choose() makes a macro of it without the
    punctuation around it, or returns None."""
    found = re.fullmatch(r"([(\[]?)(`[^`]*`|.*?)([.,;:)\]]*)", word)
    if not found:
        return None
    before, core, after = found.groups()
    if core.endswith("(") and after.startswith(")"):
        core, after = core + ")", after[1:]  # a function
    elif re.search(r"\(\d$", core) and after.startswith(")"):
        core, after = core + ")", after[1:]  # a manual page
    macro = choose(core)
    if not macro:
        return None
    name, *rest = macro.split(" ", 1)
    return f".{name} " + " ".join([*before, *rest, *after])


def common_macro(core, operands=()):
    """What is marked on all pages: `code`, options, variables, signals,
    references, functions, paths, and the operands of a command."""
    for pattern, macro in ((r"`([\w.=:-]+)`", r"Cm \1"), (r"`(.*)`", r"Li \1"),
                           (r"-(-[a-z][a-z-]+|[A-Za-z])", r"Fl \1"),
                           (r"(NXLOCK_\w+)", r"Ev \1"),
                           (r"(SIG[A-Z]+\d?)", r"Dv \1"),
                           (r"([\w.-]+)\((\d)\)", r"Xr \1 \2"),
                           (r"(\w+)\(\)", r"Fn \1"),
                           (r"((?:docs|share)?/[\w./-]*\w)", r"Pa \1")):
        found = re.fullmatch(pattern, core)
        if found:
            macro = found.expand(macro)
            return plain(macro) if macro.startswith("Li ") else macro
    return f"Ar {core}" if core in operands else None


def page(template, mark):
    """A template with its text as mdoc: macro lines and literal blocks stay as
    they are."""
    text, literal = [], False
    for line in [*template, None]:
        if line is not None and not literal and not line.startswith("."):
            text.append(line)
            continue
        yield from lines(" ".join(text), mark)
        text = []
        if line is not None:
            literal = line.startswith(".Bd") or (
                literal and not line.startswith(".Ed"))
            yield line
