#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_odd_replies.py NXLOCK: a real server, but for the replies to one
command, which have a form that nobody expects: nil, an empty array, a text that
is no number, a number beyond all bounds.

No command crashes, prints what nobody said, or takes such a reply for
"nothing".
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from rig import Between, Cases, nx, play

HUGE = b"9" * 400
BEYOND = (b"uptime_in_seconds:9223372036854775807\r\nmaxmemory:1e999\r\n"
          b"used_memory:-nan\r\nrun_id:a\r\n")
FORMS = {
    "nil": b"$-1\r\n", "a nil array": b"*-1\r\n", "an empty array": b"*0\r\n",
    "a negative number": b":-77777\r\n",
    "the largest number": b":9223372036854775807\r\n",
    "an empty string": b"$0\r\n\r\n", "a word": b"$5\r\nhello\r\n",
    "digits without end": b"$%d\r\n%s\r\n" % (len(HUGE), HUGE),
    "nils": b"*3\r\n$-1\r\n$-1\r\n$-1\r\n",
    "huge numbers": b"*2\r\n$19\r\n9223372036854775807\r\n"
                    b"$19\r\n9223372036854775807\r\n",
    "nested": b"*2\r\n*1\r\n$1\r\n1\r\n*1\r\n*1\r\n:1\r\n",
    "a member and its score": b"*2\r\n$9\r\nx - 1 999\r\n$5\r\n1e300\r\n",
    "infinity": b"*2\r\n$9\r\nx - 1 999\r\n$4\r\n-inf\r\n",
    "facts beyond all bounds": b"$%d\r\n%s\r\n" % (len(BEYOND), BEYOND),
    "a map": b"%1\r\n+a\r\n+b\r\n",
    "an error": b"-ODD words\r\n",
}
# The command, the replies that are odd, and what it must not say then.
ROWS = (
    (["status", "held", "-v"], ("ZCARD", "ZRANGE", "TIME", "GETRANGE", "PTTL")),
    (["status", "held", "--json"], ("ZCARD", "ZRANGE", "TIME")),
    (["list"], ("SCAN", "EVALSHA")),
    (["list", "--json"], ("SCAN", "EVALSHA")),
    (["unlock", "held", "--line", "--yes"], ("ZCARD", "DEL")),
    (["doctor", "free"],
     ("INFO", "CONFIG", "PTTL", "CLIENT", "PUBSUB", "EVAL")),
    (["doctor", "--once", "free"], ("INFO", "CONFIG")),
    (["once", "show", "work"], ("EVALSHA",)),
    (["once", "other", "--", "true"], ("EVALSHA", "CONFIG")),
    (["acquire", "free", "-n"], ("SET", "EVALSHA")),
)
# Where the command has to fail: any other form may be the beginning of a value.
FAILS = {
    ("list", "SCAN"): set(FORMS),
    ("list", "EVALSHA"): set(FORMS) - {"an empty array"},
    ("unlock", "DEL"): set(FORMS),
}
UNKNOWN = {
    ("status", "ZCARD"): set(FORMS) - {"nested"},
    ("status", "TIME"): set(FORMS) - {"nested"},
    ("doctor", "INFO"): {"an empty string", "a word",
                         "facts beyond all bounds"},
}
BAD = (b"Sanitizer", b"runtime error", b"-1 key", b"(null)")


class Room(Cases):
    def wrong(self, command, word, form):
        """What is wrong with what the command does; None."""
        with Between(self.server, word, FORMS[form]) as odd:
            url = f"redis://127.0.0.1:{odd.port}?timeout_ms=500"
            got = nx(self.program, command[0], "-u", url, *command[1:])
            met = odd.met
        said = got.stdout + got.stderr
        bad = [part for part in BAD if part in said]
        if got.returncode < 0 or \
                not said.strip() and got.returncode not in (0, 75):
            bad.append(f"exit code {got.returncode}")
        if met and form in UNKNOWN.get((command[0], word), ()) and \
                b"unknown" not in said:
            bad.append("it does not say that it is unknown")
        if met and got.returncode == 0 and \
                form in FAILS.get((command[0], word), ()):
            bad.append("exit code 0")
        return f"{form}: {bad}\n{said.decode('utf-8', 'replace')}" \
            if bad else None

    def play(self, command, word):
        with ThreadPoolExecutor(4) as pool:
            bad = [one for one in pool.map(
                lambda form: self.wrong(command, word, form), FORMS) if one]
        self.check(not bad, f"{' '.join(command)}: odd replies to {word}",
                   "\n".join(bad))

    def prepare(self):
        """A lock that is held, with somebody in its line, and a free one."""
        self.server.cli("DEL", "free", "{other}:once", "{other}:f", "other")
        token = "6fa459ea-ee8a-8ca4-894e-db77e160355e@host:1:job"
        self.server.cli("SET", "held", token, "PX", "600000")
        self.server.cli("SET", "{held}:f", "1", "PX", "600000")
        self.server.cli("ZADD", "{held}:nxl-l", "4194304",
                        last=token + "x - 1000 99")

    def all(self):
        for command, words in ROWS:
            for word in words:
                self.prepare()
                self.play(command, word)


if __name__ == "__main__":
    sys.exit(play(Room, Room.all))
