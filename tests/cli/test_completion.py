# SPDX-License-Identifier: MIT
"""test_completion.py NXLOCK SCRIPTS: what bash, zsh and fish offer at TAB.

Each shell is a real one at a terminal, with its own completion system, and the
script of the folder SCRIPTS where it looks for it. What it offers is compared
with --help, so an option that a script lacks, or has too many, is found.
"""

import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from rig import Tap, await_, nx
from shells import SHELLS

NXLOCK, SCRIPTS = sys.argv[1:]
PAGE = pathlib.Path(__file__).parents[2] / "docs/install.md"


def help_of(command):
    return nx(NXLOCK, command, "--help").stdout.decode()


def commands():
    text = nx(NXLOCK, "--help").stdout.decode()
    part = text[text.index("\ncommands:"):]
    return re.findall(r"^  ([a-z]+) ", part[:part.index("\n\n")], re.M)


def options_of(command):
    _, own = help_of(command).split("\noptions:")
    own, _ = own.split("\n\n", 1)
    found = set(re.findall(r"^ *(?:-[a-zA-Z], *)?(--[a-z][a-z-]*)", own, re.M))
    return found | set(re.findall(r"^ *(-[a-zA-Z]),", own, re.M))


def check_words(tap, shell):
    names = set(commands())
    words = shell.offers("nxlock ")
    words |= shell.offers("nxlock --")
    tap.equal(words, names | {"help", "--help", "--version"},
              f"{shell.name}: the first word is a command")
    for command in sorted(names):
        wanted = options_of(command)
        found = {word for word in shell.offers(f"nxlock {command} x -")
                 if word.startswith("-") and word != "--"}
        tap.equal(found, wanted, f"{shell.name}: {command}: all its options")
    for line, wanted in (
            ("re", {"release", "renew"}),
            ("help un", {"unlock"}),
            ("help conn", {"connection"}),
            ("run x --on-lost w", {"warn"}),
            ("once x --on-doubt ", {"halt", "retry"}),
            ("release x t --log ",
             {"syslog", "stderr", "json", "file:", "none"}),
            ("run x --wait ", set()),
            ("run x -w ", set()),
            ("run ", set()),
            ("once ", {"show", "confirm", "forget"}),
            ("once co", {"confirm"}),
            ("once x co", set()),
            ("acquire ", set()),
            ("status ", set()),
            ("run x mak", set())):
        # An empty word is no option, and some shells list those then.
        found = {word for word in shell.offers("nxlock " + line)
                 if not word.startswith("-")}
        tap.equal(found, wanted, f"{shell.name}: {line!r}")


def check_lines(tap, shell):
    work = shell.folder / "work"
    (work / "folder").mkdir()
    (work / "file of url").touch()
    for line, wanted in (
            ("sta", "status "),
            ("run x --no-w", "run x --no-wait "),
            ("run x --on-lost wa", "run x --on-lost warn "),
            ("run x --on-lost=wa", "run x --on-lost=warn "),
            ("run x --log fi", "run x --log file:"),
            ("run x --metrics f", "run x --metrics folder/"),
            ("run x -- cat fol", "run x -- cat folder/"),
            ("run x -- only-h", "run x -- only-here "),
            ("run x -- cat --no-w", "run x -- cat --no-w"),
            ("run a:b=c --no-w", "run a:b=c --no-wait ")):
        found = shell.completed("nxlock " + line)
        tap.equal(found, "nxlock " + wanted, f"{shell.name}: {line!r}")
    for line, wanted in (
            ("status x --url-file file", "file of url"),
            ("status x --cacert file", "file of url"),
            ("status x --url-file=file", "--url-file=file of url")):
        found = shell.given("nxlock " + line)
        tap.equal(found[-1], wanted, f"{shell.name}: a file, {line!r}")


def check_descriptions(tap, shell):
    """zsh and fish show them."""
    for keys, words in ((b"nxlock re\t", "extend the lease of a lock"),
                        (b"nxlock run x --at-\t", "stop CMD after this")):
        before = len(shell.terminal.screen)
        shell.terminal.type(keys)
        tap.check(await_(lambda before=before, words=words: words.encode()
                         in shell.terminal.screen[before:]),
                  f"{shell.name}: shows {words!r}",
                  shell.terminal.text()[before:])
        shell.completed("")


def check_read(tap, kind):
    """The line that docs/install.md has for a build that is not installed."""
    line = re.search(rf"^    (source build/src/cli/completion/\S+) *"
                     rf"# {kind.name}:", PAGE.read_text(), re.M).group(1)
    begin, defined = {
        "bash": ("", "complete -p nxlock"),
        "zsh": ("autoload -U compinit && compinit -D",
                "[[ $_comps[nxlock] == _nxlock ]]"),
        "fish": ("", 'test (complete -C "nxlock stat" | count) -eq 1'),
    }[kind.name]
    line = line.replace("build/src/cli/completion", shlex.quote(SCRIPTS))
    done = subprocess.run(
        [kind.program, "-c", f"{begin}\n{line}\n{defined}"],
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    tap.check(done.returncode == 0 and not done.stderr,
              f"{kind.name}: docs/install.md: the script is read by source",
              done.stderr.decode())


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        for kind in SHELLS:
            if not shutil.which(kind.program):
                tap.check(True, f"{kind.name} completes # SKIP "
                          f"{kind.name.upper()} IS NOT INSTALLED")
                continue
            check_read(tap, kind)
            with kind(NXLOCK, SCRIPTS, folder) as shell:
                check_words(tap, shell)
                check_lines(tap, shell)
                if kind.name != "bash":
                    check_descriptions(tap, shell)
    return tap.done()


sys.exit(main())
