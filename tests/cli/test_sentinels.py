#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_sentinels.py NXLOCK: what the command says of a primary that Sentinels
name: status, the metrics and doctor."""

import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # the tree stays as it is

import metrics_file
from rig import Tap, await_, clean_environment, nx
from sentinel_group import Group

RUN = "nxlock_last_run_"
TTL = ("--ttl", "3s")


class Room(Tap):
    def __init__(self, nxlock, group):
        super().__init__()
        self.nxlock, self.group = nxlock, group

    def nx(self, *words, url=None):
        return nx(self.nxlock, words[0], "-u", url or self.group.url(),
                  *words[1:])

    def grants(self):
        return await_(lambda: self.nx(
            "run", "first", "-n", *TTL, "--", "true").returncode == 0)

    # -------------------------------------------------------------- status

    def status(self):
        done = self.nx("status", "name", "-v")
        self.check(re.search(
            rb"server: redis://127\.0\.0\.1:%d/0, connected, .*, role primary, "
            rb"named by 3 of 3 Sentinels [0-9.]+m?s ago"
            % self.group.primary.port, done.stdout),
                   "status -v says who names the server", done)
        done = self.nx("status", "name", "--json")
        self.check(", named by 3 of 3 Sentinels" in
                   json.loads(done.stdout)["server"], "so does --json", done)
        self.group.sentinels[2].freeze()
        done = self.nx("status", "name", "-v")
        self.check(b", named by 2 of 3 Sentinels" in done.stdout,
                   "one does not answer", done)
        self.group.sentinels[2].thaw()
        done = self.nx("status", "name", "-v", url=self.group.primary.url)
        self.check(b"entinel" not in done.stdout,
                   "nothing is said of Sentinels without them", done)

    # ------------------------------------------------------------- metrics

    def metrics(self):
        folder = self.group.primary.folder
        path = os.path.join(folder, f"{RUN}m.prom")
        self.nx("run", "m", *TTL, "--metrics", folder, "--", "true")
        _, found = metrics_file.read(path)
        self.equal([found.get(RUN + name) for name in
                    ("sentinels_naming", "unconfirmed", "failovers")],
                   [3.0, 0.0, 0.0], "the metrics of a run")
        nx(self.nxlock, "run", "m", *TTL, "--metrics", folder, "-u",
           self.group.primary.url, "--", "true")
        _, found = metrics_file.read(path)
        self.check(not [name for name in found
                        if "sentinels" in name or "unconfirmed" in name],
                   "and of one without Sentinels", found)
        # One that has just started, and tells two histories, may have read
        # them from a file.
        self.check(self.group.are_older(8), "all are old enough")
        process = subprocess.Popen(
            [self.nxlock, "run", "-v", "m", *TTL, "--metrics", folder, "-u",
             self.group.url(), "--", "sleep", "6"],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.check(await_(lambda: self.group.primary.cli("EXISTS", "m") ==
                          b"1\n"), "it holds")
        self.check(self.group.fail_over(), "another primary is named")
        said = process.communicate(timeout=60)[1]
        self.equal(process.returncode, 0, "the lock outlives the failover")
        _, found = metrics_file.read(path)
        self.check(found.get(RUN + "failovers") == 1.0 and
                   found.get(RUN + "sentinels_naming", 0) >= 2 and
                   RUN + "unconfirmed" in found,
                   "which is counted", f"{found}\n{said.decode()}")


def main(nxlock):
    with Group() as group:
        clean_environment(group.primary)
        room = Room(nxlock, group)
        room.check(group.know_each_other(), "they know each other")
        room.check(room.grants(), "the primary is old enough")
        for act in (room.status, room.metrics):
            act()
    return room.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
