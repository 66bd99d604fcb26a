#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Taking a lock from somebody: only the one that was named or shown, never
without a word, and never what is no lock.
Usage: test_unlock.py PATH-OF-NXLOCK
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True

from rig import Server, Tap, await_, clean_environment, nx
from terminal import CTRL_C, Terminal, gone

UUID = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
OTHER = "7fa459ea-ee8a-4ca4-894e-db77e160355e"
TOKEN = UUID + "@db7:41233:backup"


class Room(Tap):
    def __init__(self, program, server):
        super().__init__()
        self.program, self.server = program, server

    def hold(self, value=TOKEN, *more):
        self.server.cli("SET", "x", value, *(more or ("PX", "60000")))

    def there(self):
        return self.server.cli("GET", "x").decode().rstrip("\n")

    def gives(self, code, name, *words):
        done = nx(self.program, "unlock", *words)
        said = done.stderr.decode()
        self.check(done.returncode == code, name,
                   f"{done.returncode}: {said}")
        self.check(not done.stdout and UUID not in said,
                   "no token is shown", said)
        return said

    def usage(self):
        said = self.gives(64, "neither --token nor --force", "x")
        self.check("--token TOKEN" in said, "and says what to write", said)
        said = self.gives(64, "both", "x", "--force", "--token", TOKEN)
        self.check("exclude each other" in said, "and says so", said)
        self.gives(64, "no name", "--force", "--yes")
        said = self.gives(64, "half a token", "x", "--token", TOKEN[:20])
        self.check("all of it" in said, "and says so", said)

    def by_token(self):
        self.gives(1, "by token, a free name", "x", "--token", TOKEN)
        self.hold(OTHER + "@b")
        said = self.gives(75, "another holds it", "x", "--token", TOKEN)
        self.check("but held by b" in said, "and is named", said)
        self.equal(self.there(), OTHER + "@b", "and keeps it")
        self.hold()
        said = self.gives(0, "the right token", "x", "--token", TOKEN)
        self.equal(said, "", "is silent")
        self.equal(self.there(), "", "and removes it")

    def by_force(self):
        said = self.gives(1, "by force, a free name", "x", "--force", "--yes")
        self.check("already free" in said, "is said", said)
        self.hold()
        said = self.gives(64, "nobody to be asked", "x", "--force")
        self.check("--yes" in said and "held by db7:41233:backup" in said,
                   "and says what and how", said)
        self.equal(self.there(), TOKEN, "removes nothing")
        said = self.gives(0, "--force --yes", "x", "--force", "-y")
        self.check("held by db7:41233:backup" in said, "says who it was", said)
        self.equal(self.there(), "", "and removes it")
        self.hold("my-own-format", "PX", "60000")
        self.gives(0, "a lock of another format", "x", "--force", "--yes")
        self.equal(self.there(), "", "is removed too")
        self.hold("1000000000.5", "NX")
        self.gives(0, "and one that is a time", "x", "--force", "--yes")
        self.equal(self.there(), "", "is removed too")

    def data(self):
        self.hold("the only copy", "NX")
        said = self.gives(69, "a value without an end", "x", "--force",
                          "--yes")
        self.check("may be a program's data" in said, "is taken for data", said)
        self.equal(self.there(), "the only copy", "and left alone")
        self.server.cli("DEL", "x")
        self.server.cli("LPUSH", "x", "1")
        self.gives(69, "a list", "x", "--force", "--yes")
        self.equal(self.server.cli("LLEN", "x"), b"1\n", "is left alone")
        self.server.cli("DEL", "x")
        self.hold("v" * 600, "PX", "60000")
        self.server.cli("SET", "{job}:f", "1795296609859843", "PX", "60000")
        said = self.gives(69, "a counter", "{job}:f", "--force", "--yes")
        self.check("fencing counter" in said, "is told as what it is", said)
        self.server.cli("SET", "tenant:{job}:f", "17", "PX", "60000")
        said = self.gives(69, "below a prefix", "{job}:f", "--force", "--yes",
                          "--prefix", "tenant:")
        self.check("fencing counter" in said, "likewise", said)
        self.server.cli("SET", "job:f", "17", "PX", "60000")
        self.gives(0, "a name that only ends like it", "job:f", "--force",
                   "--yes")
        self.gives(69, "a value that is not seen whole", "x", "--force",
                   "--yes")
        self.equal(len(self.there()), 600, "is left alone")
        self.server.cli("DEL", "x")

    def asked(self, keys, change=None):
        """At a terminal: the code, and what it showed."""
        with Terminal([self.program, "unlock", "x", "--force"]) as terminal:
            await_(lambda: "[y/N] " in terminal.text())
            if change:
                change()
            terminal.type(keys)
            await_(lambda: terminal.leader.poll() is not None)
            code = terminal.leader.poll()
        return code, terminal.text()  # all of it has been read by now

    def at_terminal(self):
        self.hold()
        code, text = self.asked(b"n\n")
        self.equal(code, 75, "no, at a terminal")
        self.check("held by db7:41233:backup" in text, "was asked", text)
        self.equal(self.there(), TOKEN, "keeps it")
        self.equal(self.asked(b"\n")[0], 75, "nor does no word")
        self.equal(self.asked(b"\x04")[0], 75, "nor does the end")
        self.equal(self.asked(CTRL_C)[0], -2, "nor does Ctrl-C")
        self.equal(self.there(), TOKEN, "remove it")
        code, text = self.asked(
            b"y\n", lambda: self.hold(OTHER + "@next"))
        self.equal(code, 1, "yes, of what is not there any more")
        self.check("changed hands" in text, "is said", text)
        self.equal(self.there(), OTHER + "@next", "and the next one stays")
        self.equal(self.asked(b"yes\n")[0], 0, "yes")
        self.equal(self.there(), "", "removes it")

    def the_evicted(self):
        """run notices at its next renewal, and the command is stopped."""
        child = subprocess.Popen(
            [self.program, "run", "x", "--ttl", "3s", "--", "sleep", "60"],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        await_(lambda: self.there() != "")
        said = self.gives(0, "evicting a run", "x", "--force", "--yes")
        self.check(":sleep, " in said, "which is named", said)
        self.check(await_(lambda: gone(child.pid)), "ends it in time")
        self.equal(child.wait(), 79, "as a lock that was lost")
        child.stderr.close()


def main():
    with Server() as server:
        clean_environment(server)
        room = Room(sys.argv[1], server)
        room.usage()
        room.by_token()
        room.by_force()
        room.data()
        room.at_terminal()
        room.the_evicted()
        said = room.gives(69, "no server", "x", "--force", "--yes", "-u",
                          "unix://" + os.path.join(server.folder, "none"))
        room.check("none" in said, "is named", said)
        return room.done()


sys.exit(main())
