#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_acl.py PATH-OF-NXLOCK

nxlock acl: the line it prints makes a user of a real server who can do what was
named, with any form of NAME and prefix, and whom nothing is refused; it asks no
server and shows no password; and a wrong line says what to write.
"""

import os
import shlex
import subprocess
import sys
from urllib.parse import quote

import rig


def login():
    """The server, as the user jobs."""
    return "-u", os.environ["NXLOCK_URL"] + "?user=jobs"


def acl(program, *words):
    return rig.nx(program, "acl", *words)


class Rooms:
    def __init__(self, tap, server, program):
        self.tap, self.server, self.program = tap, server, program

    def ask(self, *words):
        return self.server.cli(*words).decode()

    def make_user(self, *words):
        """The user of the line, and nothing of an earlier one."""
        self.ask("FLUSHALL")
        self.ask("SCRIPT", "FLUSH")
        self.ask("ACL", "DELUSER", "jobs")
        done = acl(self.program, *words, *login())
        applied = subprocess.run(
            ["redis-cli", "-s", self.server.socket], input=done.stdout,
            capture_output=True, timeout=60, check=False).stdout
        self.tap.check(applied == b"OK\n" and not done.stderr,
                       f"acl {shlex.join(words)}: redis-cli takes the line",
                       f"{done}\n{applied}")
        self.ask("ACL", "SETUSER", "jobs", "on", ">Zqx7")
        self.ask("ACL", "LOG", "RESET")

    def nx(self, *words):
        return rig.nx(self.program, words[0], *words[1:])

    def as_user(self, code, what, *words, options=()):
        """nxlock with that user: its code, and nothing was refused to it."""
        head, tail = list(words), []
        if "--" in head:
            at = head.index("--")
            head, tail = head[:at], head[at:]
        os.environ["NXLOCK_PASSWORD"] = "Zqx7"
        done = self.nx(*head, *login(), *options, *tail)
        del os.environ["NXLOCK_PASSWORD"]
        self.tap.check(done.returncode == code, what,
                       f"code {done.returncode}: {done.stderr.decode()}")
        return done

    def refused_nothing(self, what):
        self.tap.equal(self.ask("ACL", "LOG"), "\n",
                       f"{what}: ACL LOG is empty")


def check_commands(rooms):
    """Each command of nxlock, by the line for it alone."""
    tap = rooms.tap
    rooms.make_user("run", "--name", "job:*")
    done = rooms.as_user(0, "run", "run", "job:1", "--at-least", "1s", "--ttl",
                         "5s", "--", "sh", "-c", "echo $NXLOCK_FENCE")
    tap.check(done.stdout.strip().isdigit(), "run: with a fencing token",
              done.stdout)
    rooms.as_user(75, "run: a busy lock", "run", "job:1", "-w", "100ms", "--",
                  "true")
    rooms.refused_nothing("run")
    rooms.as_user(77, "run: not under another name", "run", "other", "--",
                  "true")
    rooms.as_user(77, "run: nor with --every", "run", "job:2", "--every", "1h",
                  "--", "true")

    rooms.make_user("run", "every", "--name", "job:*")
    rooms.as_user(0, "run --every", "run", "job:1", "--every", "1h", "--",
                  "true")
    rooms.as_user(75, "run --every: not due", "run", "job:1", "--every", "1h",
                  "--", "true")
    rooms.as_user(0, "run --every: of a name with a tag", "run", "job:{a}b",
                  "--every", "1h", "--", "true")
    rooms.refused_nothing("run --every")

    rooms.make_user("acquire", "renew", "release", "--name", "job:*")
    token = rooms.as_user(0, "acquire", "acquire", "job:1").stdout.decode()
    rooms.as_user(0, "renew", "renew", "job:1", token.strip())
    rooms.as_user(0, "release", "release", "job:1", token.strip())
    rooms.refused_nothing("acquire, renew, release")
    rooms.make_user("release", "--name", "job:*")
    token = rooms.nx("acquire", "job:1").stdout.decode().strip()
    rooms.as_user(0, "release alone", "release", "job:1", token)
    rooms.refused_nothing("release alone")
    rooms.make_user("unlock", "--name", "job:*")
    rooms.nx("acquire", "job:1")
    rooms.as_user(0, "unlock", "unlock", "job:1", "--force", "--yes")
    tap.equal(rooms.ask("EXISTS", "job:1"), "0\n", "unlock: it is gone")
    rooms.refused_nothing("unlock")


def check_observers(rooms):
    """Users who only look."""
    tap = rooms.tap
    rooms.make_user("status", "list", "wait", "--name", "job:*")
    script = login()
    words = [rooms.program, "status", "job:1", *script]
    done = rooms.nx("run", "job:1", "--", "sh", "-c",
                    "export NXLOCK_PASSWORD=Zqx7; "
                    f"{shlex.join(words)} && ! {shlex.join([rooms.program])} "
                    f"wait job:1 -w 50ms {shlex.join(script)} && "
                    f"{rooms.program} list 'job:*' {shlex.join(script)}")
    out = done.stdout.decode()
    tap.check(done.returncode == 0 and "job:1 held by" in out and
              "job:1\theld" in out, "status, wait and list, while it is held",
              f"{done}")
    rooms.as_user(1, "status: free", "status", "job:1")
    rooms.as_user(0, "wait: free", "wait", "job:1")
    log = rooms.ask("ACL", "LOG")
    tap.check("script|load" in log and "'set'" not in log and
              "getrange" not in log,
              "nothing is refused but what a connection can do without", log)
    rooms.as_user(77, "and such a user cannot acquire", "acquire", "job:1")


def check_names(rooms):
    """Any form of NAME, with and without a prefix; doctor is the judge."""
    cases = [
        (("--name", "job"), "job"),
        (("--name", "{a}b"), "{a}b"),
        (("--name", "{a}b:*"), "{a}b:c"),
        (("--name", "*:job"), "{a}:job"),
        (("--name", "*:job"), "a:job"),
        (("--name", "*"), "anything"),
        (("--name", "two words 'quoted'"), "two words 'quoted'"),
        (("--name", "job", "--prefix", "app:"), "job"),
        (("--name", "job*", "--prefix", "a*?["), "job9"),
        (("--name", "{a}b", "--prefix", "app:"), "{a}b"),
        (("--name", "*", "--prefix", "app:"), "anything"),
    ]
    for options, name in cases:
        rooms.make_user("run", "every", "doctor", *options)
        rooms.ask("CONFIG", "SET", "appendonly", "no")
        done = rooms.as_user(1, f"doctor {name}", "doctor", name,
                             options=options[2:])
        said = "\n".join(line for line in done.stdout.decode().splitlines()
                         if "rights: not tried, so" not in line)
        rooms.tap.check(" rights:" not in said and "unknown" not in said and
                        "not permitted" not in said,
                        f"doctor {name}: finds no missing permission", said)
        rooms.as_user(0, f"run {name}", "run", f"--name={name}", "--every",
                      "1h", "--", "sh", "-c", ': "${NXLOCK_FENCE:?}"',
                      options=options[2:])
        rooms.refused_nothing(shlex.join(options))
        if not options[1].startswith("*"):
            rooms.as_user(77, f"not {name}x...", "run", f"--name=x{name}",
                          "--", "true", options=options[2:])


def check_disabled(rooms):
    """A user that an administrator has disabled stays so."""
    rooms.make_user("run", "--name", "job:*")
    rooms.ask("ACL", "SETUSER", "jobs", "off")
    line = acl(rooms.program, "once", "--name", "job:*", *login())
    subprocess.run(["redis-cli", "-s", rooms.server.socket], input=line.stdout,
                   capture_output=True, timeout=60, check=True)
    rules = rooms.ask("ACL", "LIST")
    rooms.tap.check("user jobs off " in rules and ":once" in rules,
                    "a disabled user gets the permissions and stays disabled",
                    rules)


def check_urls(rooms):
    """What the line takes from the URL."""
    tap, program = rooms.tap, rooms.program

    def prints(what, parts, *words, code=0):
        done = acl(program, *words)
        out = (done.stdout + done.stderr).decode()
        tap.check(done.returncode == code and
                  all(part in out for part in parts) and "secret" not in out,
                  what, f"{done}")
        return out

    url = "redis://al%69ce:secret@192.0.2.1/3?prefix=app%3A"
    prints("user, prefix and database of a URL",
           ["ACL SETUSER alice ~app:job ", "+select"],
           "lock", "--name", "job", "-u", url)
    prints("a user as a parameter", ["ACL SETUSER bob ~job "], "lock", "--name",
           "job", "-u", "redis://192.0.2.1?password=secret&user=bob")
    prints("no user", ["ACL SETUSER USER ~job +set"], "lock", "--name",
           "job", "-u", "redis://192.0.2.1")
    out = prints("database 0", ["~job +set"], "lock", "--name", "job", "-u",
                 "redis://192.0.2.1/0")
    tap.check("+select" not in out, "needs no SELECT", out)
    for one, other, what in (
            ("redis://alice@192.0.2.1", "redis://bob@192.0.2.2", "users"),
            ("redis://alice@192.0.2.1", "redis://192.0.2.2", "users"),
            ("redis://192.0.2.1?prefix=a:", "redis://192.0.2.2", "prefixes")):
        prints(f"different {what}", [f"different {what}", "one -u"], "lock",
               "--name", "job", "-u", one, "-u", other, code=64)
    prints("several servers", ["+info"], "lock", "--name", "job", "-u",
           "redis://192.0.2.1", "-u", "redis://192.0.2.2")
    prints("scheme=timestamp", ["+setnx"], "lock", "--name", "job",
           "-u", "redis://192.0.2.1?scheme=timestamp")
    for user in ("two words", "a'b"):
        prints(f"the user {user}", ["cannot be called"], "lock", "--name",
               "job", "-u", "redis://192.0.2.1?user=" + quote(user), code=64)
    prints("no --name", ["--name 'job:*'"], "lock", code=64)
    prints("an empty --name", ["NAME is empty"], "lock", "--name", "", code=64)
    prints("a misspelt feature", ["'stauts'", "did you mean 'status'?"],
           "stauts", "--name", "job", code=64)
    prints("a name in place of a feature", ["--name 'backup:*'"], "backup:*",
           code=64)
    prints("an unknown option", ["acl has no option '--force'"], "lock",
           "--force", code=64)
    prints("too many words", ["at most"], *(["lock"] * 65), code=64)
    out = prints("the list", ["commands:", "  run  ", "features:", "  fence "])
    tap.check("without it" not in out, "is short", out)
    out = prints("with -v", ["+psetex", "without it"], "-v", "fence")
    tap.check("commands:" not in out and "  scan " not in out,
              "is of the feature that was named", out)


def main():
    program = os.path.abspath(sys.argv[1])
    tap = rig.Tap()
    with rig.Server() as server:
        rig.clean_environment(server)
        rooms = Rooms(tap, server, program)
        check_commands(rooms)
        check_observers(rooms)
        check_names(rooms)
        check_disabled(rooms)
    # The server is gone: none is needed.
    rooms.tap = tap
    os.environ["NXLOCK_URL"] = "redis://192.0.2.1"
    check_urls(rooms)
    return tap.done()


sys.exit(main())
