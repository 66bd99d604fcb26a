#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_acl.py NXLOCK: the lines of docs/acl.md that users copy. Each makes a
user of a real server who can do what it is for, and whom nothing is refused;
with another name or prefix in place of those of the page; and a user who lacks
the line cannot. ../cli/table.py describes the rows.
"""

import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "cli"))

import acl_table
from rig import await_, play
from table import Table

NAME = "backup:db"
LOCKS, EVERY, DOCTOR, ONCE = ("A user who locks", "`run --every`", "`doctor`",
                              "`once`")
CHANNELS = "&nxl:" + 36 * "?" + ":"
# What another client does.
ADMIN = "NXLOCK_PASSWORD= NXLOCK_URL={url} "
# doctor finds no permission missing.
NONE_MISSING = ("!rights:", "!unknown", "!not permitted")
NOTHING_REFUSED = ("db ACL LOG", "")
# In each part of the page: the lines that the user gets, by how their titles
# begin, and what it does then. OPTIONS stands for those of the part.
USES = (
    ((LOCKS,),
     (f"run {NAME} OPTIONS --at-least 1s --ttl 5s -c 'echo $NXLOCK_FENCE'", 0,
      r"~\d+"),
     (f"run {NAME} OPTIONS -w 100ms -- true", 75), NOTHING_REFUSED,
     ("run other OPTIONS -- true", 77),
     ("run backup:2 OPTIONS --every 1h -- true", 77)),
    ((LOCKS,),
     (f"acquire {NAME} OPTIONS", 0), (f"renew {NAME} {{token}} OPTIONS", 0),
     (f"release {NAME} {{token}} OPTIONS", 0), NOTHING_REFUSED),
    ((LOCKS, EVERY),
     *((f"run {NAME} OPTIONS --every 1h -- {command}", code)
       for command, code in (("/nowhere", 127), ("/", 126), ("false", 1),
                             ("true", 75))),
     NOTHING_REFUSED),
    # The server looks like one that was promoted.
    ((LOCKS, "`guard_failover=on`"),
     ("db REPLICAOF 127.0.0.1 1", "OK"), ("db REPLICAOF NO ONE", "OK"),
     *((f"?guard_failover=on&max_ttl_ms=1000 run {NAME} OPTIONS {wait} "
        "--ttl 1s -- true", code) for wait, code in (("-n", 69),
                                                     ("-w 9s", 0))),
     ("db EXISTS PREFIXnxl-p", "1"), NOTHING_REFUSED),
    # No replica is there.
    ((LOCKS, "`wait_replicas=N`"),
     (f"?wait_replicas=1&wait_ms=50 run {NAME} OPTIONS -n -- true", 69),
     NOTHING_REFUSED),
    ((ONCE,),
     (f"once {NAME} OPTIONS -q -- true", 0),
     (f"once {NAME} OPTIONS -- false", 0), (f"once show {NAME} OPTIONS", 0),
     (f"once forget {NAME} OPTIONS --yes", 0), NOTHING_REFUSED),
    (("A user who only looks",),
     (f"{ADMIN}acquire {NAME} OPTIONS", 0),
     (f"status {NAME} OPTIONS", 0, f"{NAME} held by"),
     (f"wait {NAME} OPTIONS -w 50ms", 75),
     ("list 'backup:*' OPTIONS", 0, f"{NAME}\theld"),
     (f"{ADMIN}release {NAME} {{token}} OPTIONS", 0),
     (f"status {NAME} OPTIONS", 1), (f"wait {NAME} OPTIONS", 0),
     (f"acquire {NAME} OPTIONS", 77)),
    (("`unlock`",),
     (f"{ADMIN}acquire {NAME} OPTIONS", 0),
     (f"unlock {NAME} OPTIONS --force --yes", 0), NOTHING_REFUSED,
     (f"{ADMIN}status {NAME} OPTIONS", 1)),
    ((DOCTOR,),
     (f"doctor {NAME} OPTIONS", 0, *NONE_MISSING), NOTHING_REFUSED),
)
# In the part of what else may be needed.
MORE = (
    (("A database number",), (f"?db=3 run {NAME} -- true", 0), NOTHING_REFUSED),
    ((), (f"?db=3 run {NAME} -- true", 77)),
    (("`scheme=timestamp`",), (f"?scheme=timestamp run {NAME} -- true", 0)),
)
# A user that an administrator has disabled stays so.
DISABLED = (
    ("db ACL SETUSER jobs off", "OK"), ("db ACL SETUSER jobs ONCE", "OK"),
    ("db ACL LIST", re.compile("user jobs off .*:once")))


def used_by(name):
    """By a user of that name, all but locking another one."""
    return ((f"doctor --name={name} OPTIONS", 0, *NONE_MISSING),
            NOTHING_REFUSED,
            (f"run --name={name} OPTIONS --every 1h -- true", 0),
            (f"once --name={name} OPTIONS -q -- true", 0), NOTHING_REFUSED)


class Room(Table):
    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        self.used = set()
        self.lines = {part: {title: line.split() for title, line in re.findall(
            r"^(\S.*):\n\n    ACL SETUSER jobs (.*)$", text, re.M)}
            for _, part, text, _ in acl_table.PART.findall(
                acl_table.PAGE.read_text("utf-8"))}
        await_(lambda: self.call("?max_ttl_ms=1000 doctor")[0] == 0)
        os.environ.update(NXLOCK_PASSWORD="sesame-secret",
                          NXLOCK_URL=server.url.replace("://", "://jobs@"))

    def rules(self, part, *beginnings):
        """Of the lines whose titles begin so."""
        found = []
        for beginning in beginnings:
            title, = (title for title in self.lines[part]
                      if title.startswith(beginning))
            self.used.add((part, title))
            found += self.lines[part][title]
        return found

    def play(self, rules, rows, prefix=""):
        """Rows for a user of these rules, and nothing of an earlier one."""
        for words in (("FLUSHALL",), ("SCRIPT", "FLUSH"),
                      ("ACL", "DELUSER", "jobs")):
            self.db(*words)
        self.equal(self.db("ACL", "SETUSER", "jobs", *rules), "OK\n",
                   "the server takes " + " ".join(rules[:4]))
        self.db("ACL", "SETUSER", "jobs", "on", ">sesame-secret")
        self.db("ACL", "LOG", "RESET")
        for line, *rest in rows:
            self.row(line.replace("PREFIX", prefix).replace(
                "OPTIONS", f"--prefix '{prefix}'" if prefix else ""), *rest)

    def uses(self):
        for part, prefix in ("lines", ""), ("prefixed", "app:"):
            for lines, *rows in USES:
                self.play(self.rules(part, *lines), rows, prefix)
            rules = [rule.replace("backup:*", "job")
                     for rule in self.rules(part, DOCTOR)]
            self.play(rules, (("doctor job OPTIONS", 0, *NONE_MISSING),
                              NOTHING_REFUSED), prefix)

    def names(self):
        """What the page says of other names: one pattern for all keys."""
        rules = self.rules("lines", LOCKS, EVERY, DOCTOR, ONCE)
        commands = [rule for rule in rules if rule[0] == "+"]
        for pattern, names in (("~*", ("any:thing", "{a}b")),
                               ("~{a}b*", ("{a}b", "{a}b:c")),
                               ("~two?words", ("'two words'",)),
                               ("~a\\*b", ("'a*b'",))):
            keys = [pattern, CHANNELS + pattern[1:]]
            if pattern[-1] != "*":  # as many patterns as the line has
                text = {"~": pattern[1:], "&": pattern[1:].replace("?", "%20")}
                keys = [rule.replace("backup:*", text[rule[0]])
                        for rule in rules if rule[0] in text]
            for name in names:
                self.play([*keys, *commands], used_by(name))
                if pattern != "~*":
                    self.row(f"run --name=x{name} -- true", 77)

    def prefixes(self):
        """What the page says of a tag below a prefix, and of characters that
        mean something in a pattern."""
        rules = self.rules("prefixed", LOCKS, EVERY, DOCTOR, ONCE)
        commands = [rule for rule in rules if rule[0] == "+"]
        of_tag = [begin + text for begin in ("~", CHANNELS)
                  for text in ("app:{a}b*", "app:{{a}b:*")]
        escaped = [rule.replace("app:", r"a\*\?\[").replace("backup:*", "job")
                   for rule in rules if rule[0] != "+"]
        for keys, prefix, name, other in (
                (of_tag, "app:", "{a}b", "axp:"),
                (escaped, "a*?[", "job", "abc[")):
            self.play([*keys, *commands], (
                *used_by(name), (f"run x{name} OPTIONS -- true", 77),
                (f"run {name} --prefix '{other}' -- true", 77)), prefix)

    def more(self):
        for lines, *rows in MORE:
            self.play(self.rules("lines", LOCKS) + self.rules("more", *lines),
                      rows)
        once = " ".join(self.rules("lines", ONCE))
        self.play(self.rules("lines", LOCKS),
                  [(line.replace("ONCE", once), wanted)
                   for line, wanted in DISABLED])
        self.equal(self.used, {(part, title)
                               for part, titles in self.lines.items()
                               for title in titles},
                   "every line of the page was run")


if __name__ == "__main__":
    sys.exit(play(Room, Room.uses, Room.names, Room.prefixes, Room.more,
                  options=("--appendonly", "yes", "--appendfsync", "always")))
