#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""command.py ROWS TEXTS TEMPLATE PAGE: a manual page of the command.

Writes TEMPLATE to PAGE, with these marks replaced:
  .\\" @SYNOPSIS [COMMAND]  how the command, or each of them, is called
  .\\" @COMMANDS            a list of the commands, with their pages
  .\\" @OPTIONS COMMAND     its options, but not those of every command
  .\\" @COMMON              the options of every command
  .\\" @EXIT [COMMAND]      its exit codes, or those of all
  .\\" @KEYS                the keys of the configuration file
They are made from the table of src/cli, which the program ROWS prints; with
"-" there is no table, and a template has no such mark. TEXTS is options.mdoc:
what the pages say about an option. An option without a text there has that of
--help.

The templates are mdoc, but their text is plain: prose.py marks `code`, options,
variables, signals, paths, pages(1) and operands such as NAME.

Invariant: no command, option or exit code is named here.
"""

import pathlib
import re
import subprocess
import sys
import textwrap

sys.dont_write_bytecode = True  # the source tree stays as it is

import prose
from prose import plain


class Command:
    def __init__(self, name, operands, runs, purpose):
        self.name, self.operands, self.purpose = name, operands, purpose
        self.runs, self.options, self.exits, self.synopsis = runs, [], [], []


class Option:
    def __init__(self, letter, name, value, choices, star, text):
        self.letter, self.name, self.value = letter[1:], name[2:], value
        self.choices, self.star, self.help = choices.split(), star, text

    def row(self):
        return (self.letter, self.name, self.value, self.help)


def read(program):
    """The commands, and the keys of the configuration file as (name, value,
    text)."""
    commands, keys = [], []
    if program == "-":
        return commands, keys
    done = subprocess.run([program], check=True, stdout=subprocess.PIPE,
                          encoding="utf-8")
    for row in done.stdout.splitlines():
        kind, *fields = row.split("\t")
        if kind == "command":
            commands.append(Command(*fields))
        elif kind == "option":
            commands[-1].options.append(Option(*fields))
        elif kind == "exit":
            commands[-1].exits.append(fields)
        elif kind == "synopsis":
            commands[-1].synopsis.append(fields[0])
        elif kind == "key":
            keys.append(fields)
    return commands, keys


def read_texts(path):
    """{(option, command): lines}, with "" for all other commands."""
    texts, names = {}, []
    for line in pathlib.Path(path).read_text("utf-8").splitlines():
        found = re.fullmatch(r'\.\\" @ ([\w-]+)(?:: (.*))?', line)
        if found:
            lines = []
            for command in (found[2] or "").split() or [""]:
                if (found[1], command) in texts:
                    sys.exit(f"{path}: {found[1]} of {command} is there twice")
                texts[found[1], command] = lines
            names.append(found[1])
        elif names:
            lines.append(line)
    return texts


def sentence(text):
    """A text of --help as a sentence, wrapped."""
    words = textwrap.wrap(text[:1].upper() + text[1:] + ".", 76)
    return "\n".join(plain(line) for line in words)


def common(commands):
    """The rows that all commands have."""
    return set.intersection(*({option.row() for option in command.options}
                              for command in commands))


def item(option, text):
    head = f".It Fl {option.letter} , Fl -" if option.letter else ".It Fl -"
    value = f" Ar {option.value}" if option.value else ""
    yield f"{head}{option.name}{value}"
    yield from text or [sentence(option.help)]


def option_list(command, options, texts):
    yield ".Bl -tag -width Ds"
    for option in options:
        yield from item(option, texts.get((option.name, command),
                                          texts.get((option.name, ""))))
    yield ".El"


def options_of(commands, name, texts):
    command = one(commands, name)
    everywhere = common(commands)
    own = [option for option in command.options
           if option.row() not in everywhere]
    if own:
        yield from option_list(name, own, texts)
        yield ".Pp"
        yield "The other options are those of every command:"
    else:
        yield "It has the options of every command:"
    shared = [option for option in command.options if option not in own]
    words = [f"Fl {option.letter}" if option.letter else f"Fl -{option.name}"
             for option in shared]
    yield from (f".{word} ," for word in words[:-2])
    yield f".{words[-2]}"
    yield "and"
    yield f".{words[-1]} ;"
    yield "see"
    yield ".Xr nxlock 1 ."


def common_options(commands, texts):
    everywhere = common(commands)
    return option_list("", [option for option in commands[0].options
                            if option.row() in everywhere], texts)


def operand(words):
    """One word of a synopsis, or several in brackets."""
    if words.startswith("["):
        return "Op " + operand(words.strip("[]").replace("...", " ..."))
    if "|" in words:
        return " | ".join(operand(word) for word in words.split("|"))
    if words.startswith("-"):
        return f"Fl {words[1:]}"
    if words.islower():
        return "Cm " + words
    return "Ar " + words.replace("...", " ...")


def synopsis_line(line):
    program, command, *words = line.split()
    yield ".Nm " + program
    yield ".Cm " + command
    yield from ("." + operand(word) if word != "--" else ".Fl -"
                for word in words)


def synopsis(commands, name=None):
    for command in commands if not name else [one(commands, name)]:
        for line in command.synopsis:
            yield from synopsis_line(line)


def command_list(commands):
    yield ".Bl -tag -width nxlock-acquire(1)"
    for command in commands:
        yield f".It Xr nxlock-{command.name} 1"
        yield sentence(command.purpose)
    yield ".El"


def exits(commands, name=None):
    """Of one command, or of all with the names of those that have it."""
    meanings = {}  # {code: {meaning: names}}
    for command in commands if not name else [one(commands, name)]:
        for code, meaning in command.exits:
            row = meanings.setdefault(code, {})
            row.setdefault(" ".join(meaning.split()), []).append(command.name)
    yield ".Bl -tag -width 128+N"
    for code in sorted(meanings, key=lambda code: int(code.split("+")[0])):
        yield f".It {code}"
        for meaning, names in meanings[code].items():
            if name or len(names) > 2:
                yield sentence(meaning)
            else:
                yield f".Cm {' , '.join(names)} :"
                yield plain(meaning) + "."
    yield ".El"


def key_list(keys):
    yield ".Bl -tag -width Ds"
    for name, value, text in keys:
        yield f".It Cm {name} No = Ar {value}"
        yield sentence(text)
    yield ".El"


def one(commands, name):
    return next(command for command in commands if command.name == name)


def operands_of(commands):
    """NAME, CMD, DUR and so on."""
    return {word for command in commands for text in (
        command.operands, *(option.value for option in command.options))
            for word in re.findall(r"[A-Z]+", text)}


def page(template, commands, keys, texts):
    operands = operands_of(commands)

    def mark(word):
        return prose.punctuated(
            word, lambda core: prose.common_macro(core, operands))

    texts = {of: list(prose.page(text, mark)) for of, text in texts.items()}
    make = {
        "SYNOPSIS": lambda name=None: synopsis(commands, name),
        "COMMANDS": lambda: command_list(commands),
        "OPTIONS": lambda name: options_of(commands, name, texts),
        "COMMON": lambda: common_options(commands, texts),
        "EXIT": lambda name=None: exits(commands, name),
        "KEYS": lambda: key_list(keys),
    }
    for line in prose.page(template, mark):
        found = re.fullmatch(r'\.\\" @([A-Z]+) ?([\w ]*)', line)
        if found:
            yield from make[found[1]](*filter(None, [found[2]]))
        else:
            yield line


def main(program, texts, template, path):
    text = pathlib.Path(template).read_text("utf-8").splitlines()
    made = page(text, *read(program), read_texts(texts))
    pathlib.Path(path).write_text("\n".join(made) + "\n", "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
