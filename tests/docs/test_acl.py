#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_acl.py PATH-OF-NXLOCK

The lines of docs/acl.md that users copy: each makes a user of a real server who
can do what it is for, and whom nothing is refused; with another name or prefix
in place of those of the page; and a user who lacks the line cannot.
"""

import os
import pathlib
import re
import shlex
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "cli"))

import acl_table
import rig

PASSWORD = "sesame-secret"
NAME = "backup:db"


def lines_of_page():
    """{part of the page: {the title of a line: its rules}}"""
    return {part: {title: line.split() for title, line in re.findall(
        r"^(\S.*):\n\n    ACL SETUSER jobs (.*)$", text, re.M)}
        for _, part, text, _ in acl_table.PART.findall(
            acl_table.PAGE.read_text("utf-8"))}


class Room:
    """A server, and the user jobs of it."""

    def __init__(self, tap, server, program, lines):
        self.tap, self.server, self.program = tap, server, program
        self.lines, self.used = lines, set()
        self.options = ()

    def ask(self, *words):
        return self.server.cli(*words).decode()

    def rules(self, part, *beginnings):
        """Of the lines whose titles begin so."""
        found = []
        for beginning in beginnings:
            title, = (title for title in self.lines[part]
                      if title.startswith(beginning))
            self.used.add((part, title))
            found += self.lines[part][title]
        return found

    def make_user(self, rules, *options):
        """The user of the rules, and nothing of an earlier one; options: of
        each command that it runs."""
        self.ask("FLUSHALL")
        self.ask("SCRIPT", "FLUSH")
        self.ask("ACL", "DELUSER", "jobs")
        done = self.ask("ACL", "SETUSER", "jobs", *rules)
        self.tap.equal(done, "OK\n", "the server takes " + " ".join(rules[:4]))
        self.ask("ACL", "SETUSER", "jobs", "on", ">" + PASSWORD)
        self.ask("ACL", "LOG", "RESET")
        self.options = options

    def nx(self, *words, env=None):
        head, tail = list(words), []
        if "--" in head:
            at = head.index("--")
            head, tail = head[:at], head[at:]
        return rig.nx(self.program, *head, *self.options, *tail, env=env)

    def environment(self):
        return {**os.environ, "NXLOCK_PASSWORD": PASSWORD,
                "NXLOCK_URL": self.server.url.replace("://", "://jobs@")}

    def as_user(self, code, what, *words):
        done = self.nx(*words, env=self.environment())
        self.tap.check(done.returncode == code, what,
                       f"code {done.returncode}: {done.stderr.decode()}")
        return done

    def refused_nothing(self, what):
        self.tap.equal(self.ask("ACL", "LOG"), "\n",
                       f"{what}: ACL LOG is empty")


def check_holders(room, part, *options):
    rules = room.rules(part, "A user who locks")
    room.make_user(rules, *options)
    done = room.as_user(0, "run", "run", NAME, "--at-least", "1s", "--ttl",
                        "5s", "--", "sh", "-c", "echo $NXLOCK_FENCE")
    room.tap.check(done.stdout.strip().isdigit(), "run: with a fencing token",
                   done.stdout)
    room.as_user(75, "run: a busy lock", "run", NAME, "-w", "100ms", "--",
                 "true")
    room.refused_nothing("run")
    room.as_user(77, "run: not under another name", "run", "other", "--",
                 "true")
    room.as_user(77, "run: nor with --every", "run", "backup:2", "--every",
                 "1h", "--", "true")
    room.make_user(rules, *options)
    token = room.as_user(0, "acquire", "acquire", NAME).stdout.decode().strip()
    room.as_user(0, "renew", "renew", NAME, token)
    room.as_user(0, "release", "release", NAME, token)
    room.refused_nothing("acquire, renew, release")
    room.make_user(rules + room.rules(part, "`run --every`"), *options)
    room.as_user(0, "run --every", "run", NAME, "--every", "1h", "--", "true")
    room.as_user(75, "run --every: not due", "run", NAME, "--every", "1h",
                 "--", "true")
    room.refused_nothing("run --every")


def check_failover(room, part, *options):
    """The server looks like one that was promoted."""
    room.make_user(room.rules(part, "A user who locks") +
                   room.rules(part, "`guard_failover=on`"), *options)
    room.ask("REPLICAOF", "127.0.0.1", "1")
    room.ask("REPLICAOF", "NO", "ONE")
    url = room.environment()["NXLOCK_URL"] + \
        "?guard_failover=on&max_ttl_ms=1000"
    words = (NAME, "-u", url, "--ttl", "1s", "--", "true")
    room.as_user(69, "guard_failover: it has to wait", "run", "-n", *words)
    room.as_user(0, "guard_failover: it has waited", "run", "-w", "9s", *words)
    key = (options[-1] if options else "") + "nxl-p"
    room.tap.equal(room.ask("EXISTS", key), "1\n", f"{key} is there")
    room.refused_nothing("guard_failover")


def check_replicas(room, part, *options):
    """No replica is there."""
    room.make_user(room.rules(part, "A user who locks") +
                   room.rules(part, "`wait_replicas=N`"), *options)
    url = room.environment()["NXLOCK_URL"] + "?wait_replicas=1&wait_ms=50"
    room.as_user(69, "wait_replicas: no replica has it", "run", "-n", NAME,
                 "-u", url, "--", "true")
    room.refused_nothing("wait_replicas")


def check_once(room, part, *options):
    room.make_user(room.rules(part, "`once`"), *options)
    room.as_user(0, "once", "once", NAME, "-q", "--", "true")
    room.as_user(0, "once: it was done", "once", NAME, "--", "false")
    room.as_user(0, "once show", "once", "show", NAME)
    room.as_user(0, "once forget", "once", "forget", NAME, "--yes")
    room.refused_nothing("once")


def check_observers(room, part, *options):
    room.make_user(room.rules(part, "A user who only looks"), *options)
    rest = shlex.join(options)
    words = shlex.quote(room.program)
    env = {name: room.environment()[name]
           for name in ("NXLOCK_PASSWORD", "NXLOCK_URL")}
    exports = " ".join(f"{name}={shlex.quote(text)}"
                       for name, text in env.items())
    done = room.nx(
        "run", NAME, "--", "sh", "-c",
        f"export {exports}; {words} status {NAME} {rest} && "
        f"! {words} wait {NAME} -w 50ms {rest} && "
        f"{words} list 'backup:*' {rest}")
    out = done.stdout.decode()
    room.tap.check(done.returncode == 0 and f"{NAME} held by" in out and
                   f"{NAME}\theld" in out,
                   "status, wait and list, while it is held", f"{done}")
    room.as_user(1, "status: free", "status", NAME)
    room.as_user(0, "wait: free", "wait", NAME)
    room.as_user(77, "and such a user cannot acquire", "acquire", NAME)


def check_unlock(room, part, *options):
    room.make_user(room.rules(part, "`unlock`"), *options)
    room.nx("acquire", NAME)
    room.as_user(0, "unlock", "unlock", NAME, "--force", "--yes")
    room.tap.check("held" not in room.nx("status", NAME).stdout.decode(),
                   "unlock: it is gone")
    room.refused_nothing("unlock")


def judged_by_doctor(room, name, what):
    """doctor finds nothing that is missing, and nothing is refused to it."""
    done = room.as_user(0, f"{what}: doctor {name}", "doctor",
                        f"--name={name}")
    said = done.stdout.decode().splitlines()
    room.tap.check(not any(" rights:" in line or "unknown" in line or
                           "not permitted" in line for line in said),
                   f"{what}: no missing permission", said)
    room.refused_nothing(f"{what}: doctor")


def check_doctor(room, part, *options):
    rules = room.rules(part, "`doctor`")
    room.make_user(rules, *options)
    judged_by_doctor(room, NAME, part)
    room.make_user([rule.replace("backup:*", "job") for rule in rules],
                   *options)
    judged_by_doctor(room, "job", f"{part}, one lock")


def check_names(room):
    """What the page says of other names: one pattern for all keys."""
    rules = room.rules("lines", "A user who locks", "`run --every`",
                       "`doctor`", "`once`")
    commands = [rule for rule in rules if rule[0] == "+"]
    channels = "&nxl:" + 36 * "?" + ":"
    for pattern, names in (("~*", ("any:thing", "{a}b")),
                           ("~{a}b*", ("{a}b", "{a}b:c")),
                           ("~two?words", ("two words",)),
                           ("~a\\*b", ("a*b",))):
        for name in names:
            keys = [pattern, channels + pattern[1:]]
            if pattern[-1] != "*":  # as many patterns as the line has
                text = {"~": pattern[1:], "&": pattern[1:].replace("?", "%20")}
                keys = [rule.replace("backup:*", text[rule[0]])
                        for rule in rules if rule[0] in text]
            room.make_user([*keys, *commands])
            judged_by_doctor(room, name, pattern)
            room.as_user(0, f"{pattern}: run {name}", "run", f"--name={name}",
                         "--every", "1h", "--", "true")
            room.as_user(0, f"{pattern}: once {name}", "once",
                         f"--name={name}", "-q", "--", "true")
            room.refused_nothing(f"{pattern}: {name}")
            if pattern != "~*":
                room.as_user(77, f"{pattern}: not x{name}", "run",
                             f"--name=x{name}", "--", "true")


def check_prefixes(room):
    """What the page says of a tag below a prefix, and of characters that mean
    something in a pattern."""
    rules = [rule for line in ("A user who locks", "`run --every`", "`doctor`",
                               "`once`")
             for rule in room.rules("prefixed", line)]
    commands = [rule for rule in rules if rule[0] == "+"]
    of_tag = [begin + text for begin in ("~", "&nxl:" + 36 * "?" + ":")
              for text in ("app:{a}b*", "app:{{a}b:*")]
    escaped = [rule.replace("app:", r"a\*\?\[").replace("backup:*", "job")
               for rule in rules if rule[0] != "+"]
    for keys, prefix, name, other in (
            (of_tag, "app:", "{a}b", "axp:"),
            (escaped, "a*?[", "job", "abc[")):
        what = f"prefix {prefix}"
        room.make_user([*keys, *commands], "--prefix", prefix)
        judged_by_doctor(room, name, what)
        room.as_user(0, f"{what}: run", "run", name, "--every", "1h", "--",
                     "true")
        room.as_user(0, f"{what}: once", "once", name, "-q", "--", "true")
        room.as_user(77, f"{what}: not x{name}", "run", f"x{name}", "--",
                     "true")
        room.options = ("--prefix", other)
        room.as_user(77, f"{what}: not {other}", "run", name, "--", "true")


def check_more(room):
    rules = room.rules("lines", "A user who locks")
    room.make_user(rules + room.rules("more", "A database number"))
    url = room.environment()["NXLOCK_URL"]
    room.as_user(0, "a database number", "run", NAME, "-u", f"{url}?db=3",
                 "--", "true")
    room.refused_nothing("a database number")
    room.make_user(rules)
    room.as_user(77, "which needs its line", "run", NAME, "-u", f"{url}?db=3",
                 "--", "true")
    room.make_user(rules + room.rules("more", "`scheme=timestamp`"))
    room.as_user(0, "scheme=timestamp", "run", NAME, "-u",
                 f"{url}?scheme=timestamp", "--", "true")


def check_disabled(room):
    """A user that an administrator has disabled stays so."""
    room.make_user(room.rules("lines", "A user who locks"))
    room.ask("ACL", "SETUSER", "jobs", "off")
    room.ask("ACL", "SETUSER", "jobs", *room.rules("lines", "`once`"))
    rules = room.ask("ACL", "LIST")
    room.tap.check("user jobs off " in rules and ":once" in rules,
                   "a disabled user gets the permissions and stays disabled",
                   rules)


def main():
    tap = rig.Tap()
    lines = lines_of_page()
    with rig.Server("--appendonly", "yes", "--appendfsync",
                    "always") as server:
        rig.clean_environment(server)
        room = Room(tap, server, os.path.abspath(sys.argv[1]), lines)
        rig.await_(lambda: room.nx("doctor", "-u", server.url +
                                   "?max_ttl_ms=1000").returncode == 0)
        os.environ["NXLOCK_URL"] = server.url
        for part, options in (("lines", ()), ("prefixed",
                                              ("--prefix", "app:"))):
            check_holders(room, part, *options)
            check_failover(room, part, *options)
            check_replicas(room, part, *options)
            check_once(room, part, *options)
            check_observers(room, part, *options)
            check_unlock(room, part, *options)
            check_doctor(room, part, *options)
        check_names(room)
        check_prefixes(room)
        check_more(room)
        check_disabled(room)
        tap.equal(room.used, {(part, title) for part, titles in lines.items()
                              for title in titles},
                  "every line of the page was run")
    return tap.done()


sys.exit(main())
