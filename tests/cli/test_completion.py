# SPDX-License-Identifier: MIT
"""test_completion.py NXLOCK SLOW-NAMES: what bash, zsh and fish offer at TAB.

Each shell is a real one at a terminal, with its own completion system and the
script where it looks for it. What it offers is compared with --help, and what
nxlock gets after TAB and Enter with what is held. SLOW-NAMES is a library with
a name server that never answers.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from rig import Server, Tap, await_, clean_environment, nx
from shells import SHELLS

NXLOCK, SLOW_NAMES = sys.argv[1:]
LIMIT_S = 3  # for 200 ms, on a machine that is busy
UUID = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
HOSTILE = (  # what is typed, and the lock's name
    ("two\\ ", "two words"),
    ("sub", "sub$(touch harm)"),
    ("tick", "tick`touch harm`"),
    ("var", "var$HOME"),
    ("it", "it's"),
    ("quo", 'quo"te'),
    ("sem", "sem;touch harm"),
    ("amp", "amp&touch harm"),
    ("pipe", "pipe|touch harm"),
    ("out", "out>harm"),
    ("back", "back\\slash"),
    ("new", "new\nline"),
    ("grü", "grün:é"),
    ("col:o", "col:on:s"),
    ("at@", "at@host=x"),
    ("\\~t", "~tilde"),
    ("\\#h", "#hash"),
    ("glob", "glob*[a]?"),
    ("bra", "bra{a,b}"),
    ("'sub", "sub$(touch harm)"),
    ("'it", "it's"),
    ('"sub', "sub$(touch harm)"),
    ('"tick', "tick`touch harm`"),
    ('"quo', 'quo"te'),
    ('"back', "back\\slash"),
    ('"col:o', "col:on:s"),
    ("--name two\\ ", "two words"),
    ("--name=col:o", "col:on:s"),
    ("--name=-d", "-dash"),
    ("-v hist", "hist!!"),
)
NEVER = (  # names that no shell gets to see
    b"never\x1b]0;harm\x07", b"never\xc2\x9b31m", b"never\ttab",
    b"never\x9bbyte", b"never" + 300 * b"long", b"never\rreturn")


def help_of(command):
    return nx(NXLOCK, command, "--help").stdout.decode()


def commands():
    text = nx(NXLOCK, "--help").stdout.decode()
    part = text[text.index("\ncommands:"):]
    return re.findall(r"^  ([a-z]+) ", part[:part.index("\n\n")], re.M)


def options_of(command):
    own, more = help_of(command).split("\noptions:")[1].split("\nmore options")
    found = set(re.findall(r"^ *(?:-[a-zA-Z], *)?(--[a-z][a-z-]*)", own, re.M))
    found |= set(re.findall(r"^ *(-[a-zA-Z]),", own, re.M))
    return found | set(re.findall(r"--[a-z][a-z-]*", more.split(":\n", 1)[1]))


def check_words(tap, shell):
    names = set(commands())
    words = shell.offers("nxlock ")
    words |= shell.offers("nxlock --")
    missing = names | {"help", "completion", "--help", "--version"}
    tap.equal(words, missing, f"{shell.name}: the first word is a command")
    for command in sorted(names):
        wanted = options_of(command)
        name = "" if command == "config" else "x "  # it takes none
        found = {word for word in shell.offers(f"nxlock {command} {name}-")
                 if word.startswith("-") and word != "--"}
        tap.equal(found, wanted, f"{shell.name}: {command}: all its options")
    for line, wanted in (
            ("re", {"release", "renew"}),
            ("help un", {"unlock"}),
            ("help conn", {"connection"}),
            ("completion ", {"bash", "zsh", "fish"}),
            ("acl run st", {"status"}),
            ("acl fe", {"fence"}),
            ("run x --on-down ", {"fail", "run"}),
            ("run x --on-lost w", {"warn"}),
            ("run x --wait ", set()),
            ("run x -w ", set()),
            ("status x --timeout-ms ", set()),
            ("run ", set()),
            ("acquire ", set()),
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
            ("run x --on-down ru", "run x --on-down run "),
            ("run x --on-down=ru", "run x --on-down=run "),
            ("status x --cacertdir f", "status x --cacertdir folder/"),
            ("run x -- cat fol", "run x -- cat folder/"),
            ("run x -- only-h", "run x -- only-here "),
            ("run x -- cat --no-w", "run x -- cat --no-w"),
            ("run x -- nxlock sta", None)):
        found = shell.completed("nxlock " + line)
        if wanted is not None:
            tap.equal(found, "nxlock " + wanted, f"{shell.name}: {line!r}")
    for line, wanted in (
            ("status x --url-file file", "file of url"),
            ("status x --cacert file", "file of url"),
            ("status x --url-file=file", "--url-file=file of url")):
        found = shell.given("nxlock " + line)
        tap.equal(found[-1], wanted, f"{shell.name}: a file, {line!r}")


def until(shell, line, wanted):
    """What is offered, once it is that: a busy machine may need a second TAB.
    """
    found = []

    def is_right():
        found[:] = [shell.offers("nxlock " + line)]
        return found[0] == wanted
    await_(is_right, 10)
    return found[0]


def check_names(tap, shell, server, other):
    jobs = {"job-1", "job-2"}
    (shell.folder / "url").write_text(other.url)
    (shell.folder / "url").chmod(0o600)
    for line, wanted in (
            *((f"{command} job-", jobs)
              for command in ("status", "wait", "unlock")),
            ("unlock --force job-", jobs),
            ("unlock --token " + UUID + " job-", jobs),
            ("status --json --name job-", jobs),
            ("status -- job-", jobs),
            (f"status -u {server.url} job-", jobs),
            (f"status --url={other.url} o", {"other"}),
            ("status --url-file ~/url o", {"other"}),
            ("status --prefix app: in", {"inner"})):
        tap.equal(until(shell, line, wanted), wanted,
                  f"{shell.name}: names of held locks, {line!r}")
    for line in ("status job-1 job-", "status --name=job-1 job-",
                 "release job-", "renew job-", "run job-",
                 "acl --name job-", "unlock --token job-",
                 "status -w 5 job-", "status --db job-",
                 f"status --url-file {shell.folder}/none job-",
                 "status -u $URL job-", "status never"):
        tap.equal(shell.offers("nxlock " + line), set(),
                  f"{shell.name}: no name, {line!r}")


def check_hostile(tap, shell):
    for typed, name in HOSTILE:
        line = "nxlock status " + typed
        found = []

        def is_right(line=line, found=found, name=name):
            found[:] = shell.given(line)
            return found[-1] in (name, "--name=" + name)
        await_(is_right, 10)
        tap.check(found and found[-1] in (name, "--name=" + name),
                  f"{shell.name}: {typed} becomes {name!r}", f"{found}")
    shell.offers("nxlock status ")
    shell.completed("nxlock status ")
    tap.check(not (shell.folder / "work/harm").exists(),
              f"{shell.name}: no name was run")
    tap.check(b"harm\x07" not in shell.terminal.screen
              and "\x9b".encode() not in shell.terminal.screen,
              f"{shell.name}: no name reaches the terminal as it is")


def check_down(tap, shell, server):
    """A server that hangs: nothing is offered or said, and soon."""
    server.process.send_signal(signal.SIGSTOP)
    before = len(shell.terminal.screen)
    begin = time.monotonic()
    # Longer than the command itself would wait.
    found = shell.offers("nxlock status --timeout-ms 20000 job-")
    took = time.monotonic() - begin
    server.process.send_signal(signal.SIGCONT)
    shell.offers("nxlock status -u redis://127.0.0.1:1 job-")
    shell.offers("nxlock status -u nonsense job-")
    shell.offers("nxlock status --nonsense job-")
    tap.equal(found, set(), f"{shell.name}: a frozen server: nothing")
    tap.check(took < LIMIT_S, f"{shell.name}: and soon", f"{took} s")
    tap.check(b"nxlock:" not in shell.terminal.screen[before:],
              f"{shell.name}: and nothing is said",
              shell.terminal.text()[-2000:])


def check_descriptions(tap, shell):
    """zsh and fish show them."""
    for keys, words in ((b"nxlock re\t", "extend the lease of a lock"),
                        (b"nxlock run x --on-\t", "no server at the start")):
        before = len(shell.terminal.screen)
        shell.terminal.type(keys)
        tap.check(await_(lambda before=before, words=words: words.encode()
                         in shell.terminal.screen[before:]),
                  f"{shell.name}: shows {words!r}",
                  shell.terminal.text()[before:])
        shell.completed("")


def check_shell(tap, kind, server, other, folder):
    if not shutil.which(kind.program):
        tap.check(True, f"{kind.name} completes # SKIP {kind.name.upper()} "
                  "IS NOT INSTALLED")
        return
    with kind(NXLOCK, folder) as shell:
        check_words(tap, shell)
        check_lines(tap, shell)
        check_names(tap, shell, server, other)
        check_hostile(tap, shell)
        check_down(tap, shell, server)
        if kind.name != "bash":
            check_descriptions(tap, shell)


# --------------------------------------------------- nxlock completion names

def names(*words, **more):
    begin = time.monotonic()
    done = nx(NXLOCK, "completion", "names", *words, **more)
    return done, time.monotonic() - begin


def check_evaluated(tap):
    """The line that the man page shows, for each shell."""
    for shell, load, defined in (
            ("bash", 'eval "$(nxlock completion bash)"', "complete -p nxlock"),
            ("zsh", 'autoload -U compinit && compinit -D && '
             'eval "$(nxlock completion zsh)"',
             '[[ $_comps[nxlock] == _nxlock ]]'),
            ("fish", "nxlock completion fish | source",
             'test (complete -C "nxlock stat" | count) -eq 1')):
        if not shutil.which(shell):
            continue
        path = os.path.dirname(os.path.abspath(NXLOCK))
        done = subprocess.run(
            [shell, "-c", f"{load}\n{defined}"], capture_output=True,
            stdin=subprocess.DEVNULL, timeout=60, check=False,
            env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"})
        tap.check(done.returncode == 0 and not done.stderr,
                  f"{shell}: the script can be evaluated",
                  done.stderr.decode())


def check_usage(tap):
    for words in ((), ("tcsh",), ("names",), ("names", "status"),
                  ("names", "run", "x"), ("names", "nonsense", "x")):
        done = nx(NXLOCK, "completion", *words)
        tap.check(done.returncode == 64 and not done.stdout
                  and b"write: nxlock completion" in done.stderr,
                  f"completion {' '.join(words)}: 64", done.stderr.decode())


def check_bound(tap, server):
    server.cli("EVAL", "for i = 1, 501 do redis.call('SET', 'many' .. i, "
               "ARGV[1], 'PX', 600000) end", "0", UUID)
    tap.check(await_(lambda: b"more than 500" in names(
        "status", "many")[0].stderr), "of more than 500 names, none")
    tap.check(await_(lambda: names("status", "many49")[0].stdout.split(b"\0")
                     == [b"many49", *(b"many49%d" % i for i in range(10)),
                         b""]), "and those that begin as more was typed")


def check_slow(tap, server, folder):
    """Whatever does not answer: a code, no name, and soon."""
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    with socket.socket() as full, socket.socket() as first, \
            socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for one in (first, second):  # SYNs are dropped from here on
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        dropping = "redis://127.0.0.1:%d" % full.getsockname()[1]
        slow = {**os.environ, "LD_PRELOAD": SLOW_NAMES,
                "ASAN_OPTIONS": "verify_asan_link_order=0"}
        for what, url, environment in (
                ("drops packets", ("-u", dropping), None),
                ("has a name that is not resolved",
                 ("-u", "redis://server.example"), slow),
                ("has its CA in a pipe",
                 ("-u", "rediss://127.0.0.1:1", "--cacert", fifo), None),
                ("has its URL in a pipe", ("--url-file", fifo), None)):
            done, took = names("status", *url, "--timeout-ms", "20000", "",
                               env=environment)
            tap.check(done.returncode in (69, 78) and not done.stdout
                      and took < LIMIT_S,
                      f"a server that {what}: no name, and soon",
                      f"{done} {took} s")
    with Server() as one, Server() as two:
        for each in (one, two):
            await_(each.answers)
        frozen = one.process
        words = ["-u", f"{one.url},{two.url},{server.url}"]
        for each in (one, two, server):
            each.cli("SET", "three", UUID)
        frozen.send_signal(signal.SIGSTOP)
        tap.check(await_(lambda: names("wait", *words, "thr")[0].stdout
                         == b"three\0"),
                  "one of three servers is frozen: the names of the others")
        frozen.send_signal(signal.SIGCONT)


def main():
    tap = Tap()
    with Server() as server, Server() as other, \
            tempfile.TemporaryDirectory() as folder:
        await_(other.answers)
        clean_environment(server)
        for name in {"job-1", "job-2", "app:inner",
                     *(name for _, name in HOSTILE)}:
            nx(NXLOCK, "acquire", "--ttl", "1h", f"--name={name}")
        nx(NXLOCK, "acquire", "--ttl", "1h", "other", "-u", other.url)
        for name in NEVER:
            server.cli("EVAL", "return redis.call('SET', ARGV[1], "
                       f"'{UUID}@x')", "0", last=name)
        check_usage(tap)
        check_evaluated(tap)
        for kind in SHELLS:
            check_shell(tap, kind, server, other, folder)
        check_bound(tap, server)
        check_slow(tap, server, folder)
    return tap.done()


sys.exit(main())
