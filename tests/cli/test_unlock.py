#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_unlock.py NXLOCK: unlock removes only the lock that was named or shown,
never without a word, and nothing that is no lock. Several holders are the
matter of test_holders.py, the line that of test_line.py.
"""

import sys

from rig import Cases, await_, play
from terminal import CTRL_C

UUID = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
TOKEN = UUID + "@db7:41233:backup"
OTHER = "7fa459ea-ee8a-4ca4-894e-db77e160355e@b"
NUMBER = "1795296609859843"

# The value at x, and whether it has a TTL; the options; the exit code; what
# the messages have; whether the key is there afterwards.
CASES = (
    ("held", TOKEN, True, "", 64, ["--token TOKEN"], True),
    ("held", TOKEN, True, f"--force --token {TOKEN}", 64,
     ["exclude each other"], True),
    ("held", TOKEN, True, f"--token {TOKEN[:20]}", 64, ["all of it"], True),
    ("free", None, True, f"--token {TOKEN}", 1, ["already free"], False),
    ("held", TOKEN, True, f"--token {TOKEN}", 0, [], False),
    ("another's", OTHER, True, f"--token {TOKEN}", 75,
     ["but held by b", "nothing was removed"], True),
    ("free", None, True, "--force --yes", 1, ["already free"], False),
    ("held, no terminal", TOKEN, True, "--force", 64,
     ["--yes", "held by db7:41233:backup"], True),
    ("held", TOKEN, True, "--force -y", 0, ["held by db7:41233:backup"], False),
    ("another format", "my-own-format", True, "--force --yes", 0,
     ["held by my-own-format"], False),
    ("a time", "1000000000.5", False, "--force --yes", 0, ["held by"], False),
    ("data", "the only copy", False, "--force --yes", 69,
     ["may be a program's data"], True),
    ("a long value", "v" * 600, True, "--force --yes", 69, ["too long"], True),
)
# Keys beside a lock's, by name; options; exit code; messages.
NUMBERS = (
    ("a counter", "{job}:f", "{job}:f", "", 69, "not a lock: "),
    ("a counter below a prefix", "tenant:{job}:f", "{job}:f",
     "--prefix tenant:", 69, "not a lock: "),
    ("a name that only ends like it", "job:f", "job:f", "", 0, "held by"),
    ("a record's name, which never has a number", "{job}:once", "{job}:once",
     "", 0, "held by"),
)


class Room(Cases):
    def there(self):
        return self.server.cli("GET", "x").decode().rstrip("\n")

    def hold(self, value=TOKEN, ttl=True):
        self.server.cli("SET", "x", value, *(("PX", "60000") if ttl else ()))

    def table(self):
        for given, value, ttl, options, code, said, stays in CASES:
            self.server.cli("DEL", "x")
            if value:
                self.hold(value, ttl)
            self.gives(given, f"unlock x {options}", code, "", *said)
            self.equal(self.there(), value if stays else "",
                       f"{given}: the key after unlock x {options}")
        for given, key, name, options, code, said in NUMBERS:
            self.server.cli("SET", key, NUMBER, "PX", "60000")
            self.gives(given, f"unlock {name} --force --yes {options}", code,
                       "", said)
            self.equal(self.server.cli("GET", key).decode().strip(),
                       NUMBER if code else "", f"{given}: the key afterwards")
        self.server.cli("DEL", "x")
        self.server.cli("LPUSH", "x", "1")
        self.gives("a list", "unlock x --force --yes", 69, "", "'x'")
        self.equal(self.server.cli("LLEN", "x"), b"1\n", "a list: it stays")
        self.server.cli("DEL", "x")
        self.gives("no name", "unlock --force --yes", 64, "", "NAME")
        self.gives("no server", f"unlock x --force --yes -u "
                   f"unix://{self.server.folder}/none", 69, "", "none")

    def at_terminal(self):
        """What is typed, what happens before, the exit code, what is there."""
        for given, keys, next_one, code, left in (
                ("no", b"n\n", None, 75, TOKEN),
                ("no word", b"\n", None, 75, TOKEN),
                ("the end", b"\x04", None, 75, TOKEN),
                ("Ctrl-C", CTRL_C, None, -2, TOKEN),
                ("yes, too late", b"y\n", OTHER, 1, OTHER),
                ("yes", b"yes\n", None, 0, "")):
            self.hold()
            got, text = self.on_terminal(
                "unlock", "x", "--force", keys=keys,
                meanwhile=next_one and (lambda: self.hold(OTHER)))
            self.check(got == code and "held by db7:41233:backup" in text and
                       ("changed hands" in text) == bool(next_one) and
                       ("removed 'x', which was held by" in text) == (not left),
                       f"asked at a terminal: {given}: {code}", (got, text))
            self.equal(self.there(), left,
                       f"asked at a terminal: {given}: the key afterwards")

    def the_evicted(self):
        run = self.launch("run", "x", "--ttl", "3s", "--", "sleep", "60")
        await_(lambda: self.there() != "")
        self.gives("held by run", "unlock x --force --yes", 0, "", ":sleep, ")
        run.gives("removed: its next renewal", 79, "", "lost 'x'")


if __name__ == "__main__":
    sys.exit(play(Room, Room.table, Room.at_terminal, Room.the_evicted))
