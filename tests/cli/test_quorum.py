#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_quorum.py NXLOCK: the command over three servers. What is shown of each
of them, which of them must take part, and that servers that may have forgotten
locks are waited for, with a message.
"""

import json
import os
import re
import sys

from rig import Cases, Server, await_, play, resp

YOUNG = ["--ttl", "4900ms"]
PASSWORD = "sesame"


class Room(Cases):
    def urls(self, query="?max_ttl_ms=5000"):
        return ",".join(one.url for one in self.servers) + query

    def young(self):
        """Servers that have just started may have forgotten locks."""
        self.gives("young servers, no guard", [
            "run", "a", "-u", self.urls("?guard_restarts=off"), "--", "true"],
            0)
        self.gives("young servers", ["run", "a", "-n", "-u", self.urls(""),
                                     "--", "true"], 69, "",
                   "2 of 3 servers are needed",
                   "may have forgotten locks; its vote counts again in")
        self.check(await_(lambda: all(int(re.search(
            rb"uptime_in_seconds:(\d+)", one.cli("INFO", "server"))[1]) >= 7
            for one in self.servers)), "servers older than any lock")
        os.environ["NXLOCK_URL"] = self.urls()
        self.gives("old servers", ["run", "a", *YOUNG, "--", "true"], 0)

    def held(self):
        token = self.gives("free", ["acquire", "b", *YOUNG], 0, ".*",
                           tokens=True)[0].strip()
        self.check(sum(not one.is_free("b") for one in self.servers) >= 2,
                   "acquire: a majority has it")
        self.gives("held", ["run", "b", "-n", *YOUNG, "--", "true"], 75)
        self.gives("held", ["renew", "b", token, *YOUNG], 0)
        out, _ = self.gives("held", "status b -v", 0, "b held by .*")
        found = [len(re.findall(pattern, out, re.M)) for pattern in (
            "^  server: unix://.*, role primary", "^    held by ")]
        self.check(found[0] == 3 and found[1] >= 2,
                   "status -v: each server, and who holds it there", out)
        out, _ = self.gives("held", "status b --json", 0, ".*")
        answer = json.loads(out)
        there = [one for one in answer["servers"] if one["state"] == "held"]
        self.check("server" not in answer and len(answer["servers"]) == 3 and
                   len(there) >= 2 and all(
                       one["left_ms"] <= 5000 and
                       one["owner"] == answer["owner"] for one in there),
                   "status --json: each server", out)
        self.gives("held", ["release", "b", token], 0)
        self.gives("free", "status b", 1, "b free\n.*")
        self.gives("free", ["release", "b", token], 79, "", "not held")

    def password(self):
        links = [resp.at_socket(one.socket, 60) for one in self.servers]
        for link in links:
            link.ask("CONFIG", "SET", "requirepass", PASSWORD)
        run = ["run", "c", "-n", *YOUNG, "--", "true"]
        _, err = self.gives("no password", run, 77, "", "NOAUTH")
        self.check(len(set(re.findall(r"unix://(\S+?)/s\b", err))) >= 2,
                   "no password: two at least are named", err)
        self.gives("one password for all", run, 0, env={
            **os.environ, "NXLOCK_PASSWORD": PASSWORD})
        for link in links:  # they are logged in already
            link.ask("CONFIG", "SET", "requirepass", "")
            link.close()

    def minority(self):
        first = self.servers[0]
        run = ["run", "e", "-n", *YOUNG, "--", "true"]
        first.freeze()
        self.gives("one is frozen", run, 0)
        self.gives("one is frozen", "status e -v", 1,
                   ".*\n    unknown: [^\n]*no answer.*")
        out, _ = self.gives("one is frozen", "status e --json", 1, ".*")
        why = [one["why"] for one in json.loads(out)["servers"]
               if one["state"] == "unknown"]
        self.check(len(why) == 1 and "no answer" in why[0],
                   "one is frozen: status --json says why", out)
        first.thaw()
        first.cli("ACL", "SETUSER", "default", "-@all", "+ping", "+client",
                  "+acl|setuser")
        # On a busy machine two may have granted before the third one's refusal
        # is read; then there is nothing to tell of yet.
        verbose = ["run", "e", "-n", "-v", *YOUNG, "--", "true"]
        await_(lambda: "not take part" in self.launch(*verbose).ends()[2])
        self.launch(*verbose).gives(
            "one refuses", 0, "", "1 of 3 servers did not take part in a grant",
            first.folder, "INFO is refused", "+info")
        self.gives("one refuses", run, 0)
        first.cli("ACL", "SETUSER", "default", "+@all", "-@scripting",
                  "-getrange")
        self.gives("one cannot be looked at", "status e -v", 1,
                   ".*\n    unknown: NOPERM.*")
        first.cli("ACL", "SETUSER", "default", "+@all")

    def young_majority(self):
        for one in self.servers[:2]:
            one.restart()
            one.ready()
        self.launch("run", "f", "--ttl", "2900ms", "-u",
                    self.urls("?max_ttl_ms=3000"), "--", "true").gives(
            "two have restarted", 0, "",
            "waiting for 'f': 2 of 3 servers are needed",
            "its vote counts again in")

    def all(self):
        with Server() as second, Server() as third:
            self.servers = [self.server, second, third]
            for part in (self.young, self.held, self.password, self.minority,
                         self.young_majority):
                part()


if __name__ == "__main__":
    sys.exit(play(Room, Room.all))
