#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_permits.py PATH-OF-NXLOCK

Locks that several hold, by the command, on a real server: which options fit
together, and what each command does with a lock of each kind that is free, held
or held by more.
"""

import os
import re
import sys

from rig import Cases, nx, play

TOKEN = re.compile(r"[0-9a-f-]{36}(\+[0-9]+/[0-9]+)?@\S+\n")

# The words of acquire: the share in its token, or the beginning of why not.
OPTIONS = (
    ("", ""),
    ("--permits 1", ""),
    ("--permits 1 --weight 1", ""),
    ("--permits 2", "+1/2"),
    ("--permits=4 --weight=3", "+3/4"),
    ("--permits 4 --weight 4", "+4/4"),
    ("--permits 2147483647 --weight 2147483647", "+2147483647/2147483647"),
    ("-s", "+1/0"),
    ("--shared", "+1/0"),
    ("-sn", "+1/0"),
    ("--permits 0", "--permits '0' is not valid: use a number from 1 to"),
    ("--permits -1", "--permits '-1' is not valid"),
    ("--permits 4x", "--permits '4x' is not valid"),
    ("--permits 2147483648", "--permits '2147483648' is not valid"),
    ("--permits 99999999999999999999", "--permits '9999999999"),
    ("--permits", "--permits needs a value: --permits N"),
    ("--weight 1", "--weight has no effect without --permits"),
    ("--permits 4 --weight 5", "--weight 5 is more than --permits 4"),
    ("--permits 1 --weight 2", "--weight 2 is more than --permits 1"),
    ("--permits 4 --weight 0", "--weight '0' is not valid"),
    ("--shared --permits 4", "--shared (-s) and --permits exclude each other"),
    ("-s --permits 1", "--shared (-s) and --permits exclude each other"),
    ("-s --weight 1", "--shared (-s) and --weight exclude each other"),
    ("--shared=yes", "--shared takes no value"),
    ("--permits 2 -u {url} -u {url}x", "--permits 2 needs one server"),
    ("--permits 2 -u {url}?scheme=timestamp",
     "'job': permits is above 1 with scheme=timestamp"),
    ("-s -u {url}?scheme=timestamp", "'job': shared is 1 with scheme="),
)

# The same for other commands: code, what they say.
OTHERS = (
    ("once job --permits 2 -- true", 64, "once has no option '--permits': "),
    ("once job --shared -- true", 64, "once has no option '--shared': "),
    ("once job --weight 2 -- true", 64, "once has no option '--weight': "),
    ("once job -s -- true", 64, "once has no option '-s'"),
    ("run job --weight 2 -- true", 64, "--weight has no effect without"),
    ("run job --permits 2 -u {url} -u {url}x -- true", 64,
     "--permits 2 needs one server"),
    ("wait job --permits 2 -u {url} -u {url}x", 64,
     "--permits 2 needs one server"),
    ("wait job --permits 2 --weight 3", 64, "--weight 3 is more than"),
    *((f"status job {option} 2", 64, f"status has no option '{option}'; "
       "'nxlock status --help' lists its options")
      for option in ("--shared", "--permits", "--weight")),
    ("release job 6fa459ea-ee8a-4ca4-894e-db77e160355e+2/1", 64,
     "TOKEN is not a token"),
    ("release job 6fa459ea-ee8a-4ca4-894e-db77e160355e+1/4", 79,
     "cannot release 'job': it is not held under this token"),
    ("release 6fa459ea-ee8a-4ca4-894e-db77e160355e+1/4 job", 64,
     "NAME and TOKEN are swapped"),
)


class Room(Cases):
    def nx(self, words, **more):
        done = nx(self.program, *words.split(), **more)
        return (done.returncode, done.stdout.decode(), done.stderr.decode())

    def keys(self):
        return self.server.cli("KEYS", "*").split()

    def options(self):
        for words, wanted in OPTIONS:
            self.server.cli("FLUSHALL")
            words = words.format(url=self.server.url)
            code, out, err = self.nx(f"acquire job {words}")
            if wanted[:1] in ("", "+"):
                share = TOKEN.fullmatch(out)
                self.check(code == 0 and share and
                           (share[1] or "") == wanted,
                           f"acquire {words}: its token", (code, out, err))
                code, _, err = self.nx(f"release job {out}")
                self.check(code == 0 and self.keys() == [],
                           "release: nothing is left", (err, self.keys()))
            else:
                self.check(code == 64 and not out and
                           err.startswith("nxlock: " + wanted) and
                           err.count("\n") == 1 and self.keys() == [],
                           f"acquire {words}: refused", (code, out, err))
        for words, wanted, said in OTHERS:
            words = words.format(url=self.server.url)
            code, _, err = self.nx(words)
            self.check(code == wanted and said in err, words, (code, err))

    def environment(self):
        """What CMD gets."""
        for words, share, fenced in (("", None, True), ("-s", "+1/0", True),
                                     ("--permits 3", "+1/3", False),
                                     ("--permits 1", None, True)):
            self.server.cli("FLUSHALL")
            code, out, err = self.nx(
                f"run job {words} -- printenv NXLOCK_TOKEN")
            token = TOKEN.match(out)
            self.check(code == 0 and token and token[1] == share,
                       f"run {words}: NXLOCK_TOKEN",
                       (code, out, err))
            outer = {**os.environ, "NXLOCK_FENCE": "7"}
            code, out, err = self.nx(
                f"run job {words} -- printenv NXLOCK_FENCE", env=outer)
            self.check((code == 0 and out != "7\n") if fenced else
                       (code == 1 and out == ""),
                       f"run {words}: NXLOCK_FENCE is"
                       f"{'' if fenced else ' not'} set", (code, out))
            self.equal(err, "", "and nothing is said")

    def enclosing(self):
        """A command that waits for what its own run holds."""
        for outer, inner, code in (
                ("-s", "-s", 0), ("-s", "", 64), ("", "-s", 64),
                ("--permits 2", "--permits 2", 0),
                ("--permits 2", "--permits 2 --weight 2", 64),
                ("--permits 4 --weight 3", "--permits 4 --weight 2", 64),
                ("--permits 2", "-s", 0), ("-s", "--permits 2", 0)):
            self.server.cli("FLUSHALL")
            got, _, err = self.nx(f"run job {outer} -- {self.program} "
                                  f"run job {inner} -- true")
            self.check(got == code and ("deadlock" in err) == (code == 64),
                       f"run {outer or '(alone)'}, inside it {inner or 'alone'}"
                       f": {code}", (got, err))


if __name__ == "__main__":
    sys.exit(play(Room, Room.options, Room.environment, Room.enclosing,
                  least=(3, 2)))
