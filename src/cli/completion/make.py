#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make.py ROWS FUNCTIONS: prints a completion script.

ROWS is the program rows.c, which prints the table of commands and options.
FUNCTIONS is functions.SHELL: the part of the script that does not depend on the
table. The rest is made here.

Invariant: no command, option or value is named here, only what the command
itself takes in place of a command.
"""

import pathlib
import subprocess
import sys

FIRST = (("help", "explain a command"),
         ("--help", "show the commands and the exit codes"),
         ("--version", "show the version"))


class Option:
    def __init__(self, letter, name, value, choices, star, text):
        self.names = [letter, name] if letter else [name]
        self.value, self.star, self.help = value, star, text
        # The user continues file:PATH behind the colon.
        self.choices = [word.replace(":PATH", ":") for word in choices.split()]


class Command:
    def __init__(self, name, operands, runs, purpose):
        self.name, self.operands, self.purpose = name, operands, purpose
        self.runs, self.options, self.actions = runs, [], []


def read(program):
    """The commands, and the other words of help as pairs with a summary."""
    commands, topics = [], []
    done = subprocess.run([program], check=True, stdout=subprocess.PIPE,
                          encoding="utf-8")
    for row in done.stdout.splitlines():
        kind, *fields = row.split("\t")
        if kind == "command":
            commands.append(Command(*fields))
        elif kind == "option":
            commands[-1].options.append(Option(*fields))
        elif kind == "action":
            next(command for command in commands
                 if command.name == fields[0]).actions.append(fields[1])
        elif kind == "topic":
            topics.append(tuple(fields))
    return commands, topics


def escaped(text, special="\\"):
    """With a backslash in front of each character of special."""
    return "".join("\\" + c if c in special else c for c in text)


def quoted(text):
    """In single quotes. fish alone knows \\ in these: its callers escape it."""
    return "'" + text.replace("'", "'\\''") + "'"


# ----------------------------------------------------------------------- bash

def bash_value(option):
    if option.choices:
        return f"words='{' '.join(option.choices)}'"
    kinds = {"FILE": "kind=default", "DIR": "kind=dirnames"}
    return kinds.get(option.value, "")


def bash(commands, topics):
    # An option that several commands have takes the same values in all of them.
    values = {}  # the names of the options that take a kind of value
    for option in (o for command in commands for o in command.options):
        if option.value:
            same = values.setdefault(bash_value(option), [])
            same += [name for name in option.names if name not in same]
    names = " ".join(command.name for command in commands)
    yield "\n_nxlock_first() {"
    yield f"    words='{names} {' '.join(word for word, _ in FIRST)}'\n}}"
    yield "\n_nxlock_value() { # OPTION: fails if it takes no value"
    yield "    case $1 in"
    for value, same in values.items():
        yield f"    {' | '.join(same)}) {value} ;;"
    yield "    *) return 1 ;;\n    esac\n}"
    yield "\n_nxlock_command() { # COMMAND"
    yield "    case $1 in"
    for command in commands:
        words = [name for option in command.options for name in option.names]
        runs = " runs=1" if command.runs else ""
        if command.actions:
            runs += f" actions='{' '.join(command.actions)}'"
        yield f"    {command.name}) options='{' '.join(words)}'{runs} ;;"
    topic = " ".join(word for word, _ in topics)
    yield f"    help) words='{names} {topic}' ;;"
    yield "    esac\n}"


# ------------------------------------------------------------------------ zsh

ZSH_SPECIAL = "\\[]:"  # ends a description, and what follows it, in _arguments

def zsh_entries(pairs):
    for word, text in pairs:
        yield "        " + quoted(f"{word}:{escaped(text)}")


def zsh_value(option):
    """":DUR: ", what _arguments wants to know of a value."""
    action = {"FILE": "_files", "DIR": "_files -/"}.get(option.value, " ")
    if option.choices:
        open_words = [word for word in option.choices if word.endswith(":")]
        words = [word for word in option.choices if word not in open_words]
        action = f'compadd "$expl[@]" - {" ".join(words)}'
        for word in open_words:
            action += f'; compadd "$expl[@]" -S "" - {word}'
        action = "{" + action.replace(":", "\\:") + "}"
    return f":{option.value}:{action}"


def zsh_option(option):
    """'(-w --wait)'{-w+,--wait=}'[help]:DUR: '"""
    end = f"[{escaped(option.help, ZSH_SPECIAL)}]"
    names = list(option.names)
    if option.value:
        end += zsh_value(option)
        names = [name + ("=" if name.startswith("--") else "+")
                 for name in names]
    if len(names) == 1:
        return quoted(option.star + names[0] + end)
    before = option.star or f"({' '.join(option.names)})"
    return f"{quoted(before)}{{{','.join(names)}}}{quoted(end)}"


def zsh(commands, topics):
    pairs = [(command.name, command.purpose) for command in commands]
    yield "\n_nxlock_first() {\n    local -a commands=("
    yield from zsh_entries(pairs + [one for one in FIRST if one[0][0] != "-"])
    yield "    ) options=("
    yield from zsh_entries(one for one in FIRST if one[0][0] == "-")
    yield "    )\n    _describe -t commands command commands"
    yield "    _describe -o -t options option options\n}"
    yield "\n_nxlock_runs() { # COMMAND: does it run another one?"
    yield "    case $1 in"
    yield from (f"    {command.name}) return 0 ;;"
                for command in commands if command.runs)
    yield "    esac\n    return 1\n}"
    yield "\n_nxlock_command() { # COMMAND"
    yield "    local -a expl commands=("
    yield from zsh_entries(pairs + topics)
    yield "    )\n    case $1 in"
    for command in commands:
        yield f"    {command.name})\n        _arguments -s -S \\"
        for option in command.options:
            yield f"            {zsh_option(option)} \\"
        if command.actions:
            yield f"            '1: :({' '.join(command.actions)})' \\"
        # Nothing is known of the operands: the action does nothing.
        yield (f"            '*:{command.operands}: :'" if command.operands
               else "            --") + "\n        ;;"
    yield ("    help) _arguments "
           "'1: :{_describe -t commands command commands}' ;;")
    yield "    esac\n}"
    yield "\n# Found in fpath, or read by source."
    yield 'if [[ $funcstack[1] == _nxlock ]]; then\n    _nxlock "$@"'
    yield "else\n    compdef _nxlock nxlock\nfi"


# ----------------------------------------------------------------------- fish

def fish_word(condition, word, text):
    return (f"complete -c nxlock -n {quoted(condition)} -a {word} "
            f"-d {quoted(escaped(text))}")


def fish_value(option):
    if option.choices:
        return f" -x -a '{' '.join(option.choices)}'"
    kinds = {"": "", "FILE": " -r -F", "DIR":
             " -x -a '(__fish_complete_directories (commandline -ct))'"}
    return kinds.get(option.value, " -x")


def fish_option(condition, option):
    *letter, name = option.names
    words = "".join(f" -s {one[1:]}" for one in letter)
    return (f"complete -c nxlock -n {quoted(condition)} -l {name[2:]}{words}"
            f"{fish_value(option)} -d {quoted(escaped(option.help))}")


def fish(commands, topics):
    runs = " ".join(command.name for command in commands if command.runs)
    pairs = [(command.name, command.purpose) for command in commands]
    yield "\nfunction __nxlock_runs # COMMAND: does it run another one?"
    yield f"    contains -- \"$argv[1]\" {runs}\nend\n"
    for word, text in pairs + list(FIRST):
        if word.startswith("--"):
            option = Option("", word, "", "", "", text)
            yield fish_option("__nxlock_first", option)
        else:
            yield fish_word("__nxlock_first", word, text)
    for command in commands:
        for option in command.options:
            yield fish_option(f"__nxlock_in {command.name}", option)
        for word in command.actions:
            yield ("complete -c nxlock -n '__nxlock_second "
                   f"{command.name}' -a {word}")
    for word, text in pairs + topics:
        yield fish_word("__nxlock_in help", word, text)


def main():
    program, functions = sys.argv[1:]
    path = pathlib.Path(functions)
    make = {".bash": bash, ".zsh": zsh, ".fish": fish}[path.suffix]
    sys.stdout.reconfigure(encoding="utf-8")
    print(path.read_text("ascii"), end="")
    print("\n".join(make(*read(program))))


main()
