#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_permit_rights.py NXLOCK

Locks that several hold, and permissions, on a real server: a user who lacks a
single one of those that docs/acl.md lists for them is told which, and nothing
is left half done; what does not need it works.
"""

import os
import re
import sys

from rig import Cases, nx, play
from test_rights import CHANNELS, acl_table

PASSWORD = "sesame-secret"
# What others hold, then what the user does, and the code if it may.
SCENES = (
    ((), "acquire job -n -s", 0),
    (("-s",), "run job -n -s -- printenv NXLOCK_FENCE", 0),
    (("-s",), "acquire job -n -s", 0),
    (("-s",), "acquire job -n --permits 4", 0),
    (("--permits 4 --weight 4",), "acquire job -n --permits 4", 75),
    (("-s", "--permits 4"), "renew job {}", 0),
    (("-s",), "release job {}", 0),
    (("-s", "-s"), "release job {}", 0),
    (("-s", "--permits 4"), "status job", 0),
    (("-s",), "wait job -s -w 20ms", 0),
    (("-s",), "wait job -w 20ms", 75),
    (("-s", "-s"), "unlock job --all --yes", 0),
    (("-s",), "acquire job -n", 75),
    (("-s",), "list", 0),
)
# Without it, nothing fails: the line, messages, cleanup and the like do not
# matter here, or there is another way.
NOT_VITAL = {"+zrank", "+zcard", "+subscribe", "+ping", "+publish", "+info",
             "+pubsub|numsub", "+client|id", "+client|kill", "+script|load",
             "+psetex", CHANNELS + "NAME"}


class Room(Cases):
    def __init__(self, program, server):
        super().__init__(program, server)
        self.made = {}
        self.user = {**os.environ, "NXLOCK_PASSWORD": PASSWORD,
                     "NXLOCK_URL": server.url.replace("://", "://u@")}

    def held(self, others):
        """The tokens under which others hold the lock; the keys are made once,
        and restored each time."""
        if others not in self.made:
            self.server.cli("FLUSHALL")
            tokens = [nx(self.program, "acquire", "job", "-n", "--ttl", "1h",
                         *share.split()).stdout.decode().strip()
                      for share in others]
            self.made[others] = tokens, [
                (key, self.server.ask("DUMP", key))
                for key in self.server.ask("KEYS", "*")]
        tokens, keys = self.made[others]
        self.server.cli("FLUSHALL")
        for key, dump in keys:
            self.server.cli("RESTORE", key, "3600000", last=dump)
        return tokens

    def state(self):
        return (sorted(self.server.cli("KEYS", "*").split()),
                self.server.cli("ZRANGE", "job", "0", "-1"))

    def play(self, rules, others, words):
        """The code and what was said, and the states before and after."""
        tokens = self.held(others)
        self.server.cli("SCRIPT", "FLUSH")
        self.server.cli("ACL", "SETUSER", "u", "reset", "on", ">" + PASSWORD,
                        *(rule.replace("NAME", "job") for rule in rules))
        before = self.state()
        words = words.format(*tokens[:1]).split()
        done = nx(self.program, *words, env=self.user)
        return (done.returncode, (done.stdout + done.stderr).decode(), before,
                self.state())

    def without(self, rules, rule):
        """Each scene, for a user who lacks the rule (None: none)."""
        left = [one for one in rules if one != rule]
        failed = 0
        for others, words, code in SCENES:
            what = f"without {rule}: {words}, beside {others or 'nobody'}"
            got, said, before, after = self.play(left, others, words)
            failed += got != code
            if rule is None:
                self.check(got == code, what, f"{got}: {said}")
                continue
            if got == code:
                continue
            # A grant without its fencing token is undone: unknown, so 69.
            undone = words.startswith("run") and rule in (
                "~{NAME}:f", "+zrem", "+getrange")
            self.equal(got, 69 if undone else 77,
                       f"{what}: it is a permission")
            named = rule in said or f"'{rule[1:]}'" in said or (
                rule[0] == "~" and
                re.search("access (a key|one of the keys)", said))
            self.check(named, "and is named", said)
            if words.startswith("acquire"):
                self.equal(after, before, "and nothing is left")
        if rule:
            self.equal(failed > 0, rule not in NOT_VITAL,
                       f"{rule}: {failed} fail without it")

    def all(self):
        if not self.may_use_acl(self.server, "permissions"):
            return
        rules = [rule for rule in acl_table.read().rules(
            ("run", "acquire", "renew", "release", "status", "list", "unlock"),
            (), False) if rule != "~{NAME}:once"]
        for rule in (None, *rules):
            self.without(rules, rule)


if __name__ == "__main__":
    sys.exit(play(Room, Room.all))
