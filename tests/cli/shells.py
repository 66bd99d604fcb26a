# SPDX-License-Identifier: MIT
"""Real shells at a terminal, with the completion script of nxlock where they
look for it.

Keeps: what a shell offers and does is asked of the shell itself, as a user's
keys would. A shell that does not answer makes the room fail, not hang.
"""

import os
import pathlib
import shlex

from rig import await_
from terminal import Terminal

# Each has a key that writes the line to a file, and empties it. nxlock, run as
# a command, writes its words. What is written ends with \1.
BASH = r"""
PS1='> ' HISTFILE=
source "$FOLDER/script"
_offers() {
    _nxlock "$@"
    printf '%s\0' "${COMPREPLY[@]}" > "$FOLDER/offers"
}
complete -F _offers nxlock
_line() {
    printf '%s\1' "$READLINE_LINE" > "$FOLDER/line"
    READLINE_LINE=
}
bind -x '"\C-x\C-l": _line'
bind 'set bell-style none'
bind 'set completion-query-items 0'
bind 'set page-completions off'
bind 'set enable-bracketed-paste off'
nxlock() { printf '%s\0' "$@" $'\1' > "$FOLDER/words"; }
printf '\1' > "$FOLDER/ready"
"""

ZSH = r"""
PS1='> ' HISTFILE=
unsetopt beep prompt_sp
fpath=($FOLDER $fpath)
autoload -U compinit && compinit -D
# Each word that is offered, as the shell's own system adds it.
compadd() {
    if [[ ${(j: :)@[1,(i)(-|--)]} != *-[OAD]\ * ]]; then
        local -a __hits
        builtin compadd -A __hits "$@"
        (( ! $#__hits )) || printf '%s\0' "${(@)__hits}" >> $FOLDER/offers
    fi
    builtin compadd "$@"
}
LISTMAX=10000
_line() {
    printf '%s\1' "$BUFFER" > $FOLDER/line
    BUFFER=
}
zle -N _line
bindkey '^X^L' _line
nxlock() { printf '%s\0' "$@" $'\1' > $FOLDER/words }
printf '\1' > $FOLDER/ready
"""

FISH = r"""
function fish_prompt; echo '> '; end
function fish_greeting; end
function _line
    printf '%s\1' (commandline | string collect) > $FOLDER/line
    commandline -r ''
end
function _offers
    complete -C (commandline -c | string collect) > $FOLDER/offers
    _line
end
bind \cx\cl _line
bind \cx\co _offers
function nxlock
    printf '%s\0' $argv \1 > $FOLDER/words
end
printf '\1' > $FOLDER/ready
"""


class Shell:
    """One shell, at a terminal of its own until it is left."""

    name, program = None, None
    script_name = None  # where the scripts are made
    script, start = None, None  # names of files, below the folder
    begin = ""
    offer_keys = b"\t\x18\x0c"  # lists what is offered, and ends the line

    def __init__(self, nxlock, scripts, folder):
        self.folder = pathlib.Path(folder, self.name)
        for name, text in (
                (self.script,
                 pathlib.Path(scripts, self.script_name).read_bytes()),
                (self.start, self.begin.encode())):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/nxlock").symlink_to(os.path.abspath(nxlock))
        (self.folder / "bin/only-here").symlink_to("/bin/true")
        (self.folder / "work").mkdir()
        self.environment = {
            **os.environ, "FOLDER": str(self.folder), "TERM": "xterm",
            "LC_ALL": "C.UTF-8", "HOME": str(self.folder),
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    def command(self):
        raise NotImplementedError

    def __enter__(self):
        words = " ".join(map(shlex.quote, self.command()))
        work = shlex.quote(str(self.folder / "work"))
        for name in set(os.environ) - set(self.environment):
            os.environ.pop(name)
        kept = dict(os.environ)
        os.environ.update(self.environment)
        try:
            self.terminal = Terminal(
                ["sh", "-c",
                 f"stty rows 200 cols 200; cd {work}; exec {words}"])
        finally:
            os.environ.clear()
            os.environ.update(kept)
        self.answer("ready")
        return self

    def __exit__(self, *_):
        self.terminal.__exit__()

    def answer(self, name):
        """What the shell writes into a file of that name, once it did."""
        path = self.folder / name
        if not await_(lambda: path.exists() and b"\1" in path.read_bytes()):
            raise RuntimeError(f"{self.name} is silent: "
                               f"{self.terminal.text()[-2000:]!r}")
        found = path.read_bytes()
        path.unlink()
        return found[:found.index(b"\1")]

    def offers(self, line):
        """The set of words that TAB at the end of the line offers."""
        path = self.folder / "offers"
        path.write_bytes(b"")
        self.terminal.type(line.encode() + self.offer_keys)
        self.answer("line")
        return self.words(path.read_bytes())

    def words(self, offers):
        return {word.decode() for word in offers.split(b"\0") if word}

    def completed(self, line):
        """The line after TAB at its end."""
        self.terminal.type(line.encode() + b"\t\x18\x0c")
        return self.answer("line").decode().rstrip("\n")

    def given(self, line):
        """The words that nxlock gets from the line after TAB and Enter."""
        self.terminal.type(line.encode() + b"\t\r")
        return [word.decode() for word in
                self.answer("words").split(b"\0")[:-1]]


class Bash(Shell):
    name = program = "bash"
    script_name = "nxlock"
    script, start, begin = "script", "bashrc", BASH

    def command(self):
        return ["bash", "--noprofile", "--rcfile",
                str(self.folder / self.start), "-i"]


class Zsh(Shell):
    name = program = "zsh"
    script = script_name = "_nxlock"
    start, begin = ".zshrc", ZSH

    def command(self):
        self.environment["ZDOTDIR"] = str(self.folder)
        return ["zsh", "-d", "-i"]


class Fish(Shell):
    name = program = "fish"
    script_name = "nxlock.fish"
    script = "data/fish/vendor_completions.d/nxlock.fish"
    start, begin = "config/fish/config.fish", FISH
    offer_keys = b"\x18\x0f"

    def command(self):
        self.environment["XDG_CONFIG_HOME"] = str(self.folder / "config")
        self.environment["XDG_DATA_HOME"] = str(self.folder / "own")
        self.environment["XDG_DATA_DIRS"] = (
            f"{self.folder}/data:/usr/local/share:/usr/share")
        # Without this folder fish makes completions from all manual pages, in
        # a process that outlives it.
        (self.folder / "own/fish/generated_completions").mkdir(parents=True)
        return ["fish", "-i"]

    def words(self, offers):
        """It writes one a line, with a description behind a tab."""
        return {line.split("\t")[0] for line in
                offers.decode().split("\n") if line}


SHELLS = (Bash, Zsh, Fish)
