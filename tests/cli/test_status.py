#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_status.py NXLOCK: what status says of each value that a key may have,
and with -v of the server. Its JSON is the matter of test_json.py, several
holders of test_holders.py, those who wait of test_line.py.
"""

import os
import sys

from rig import Cases, play

UUID = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
NEVER = "not a lock, and it never expires"

# What the key is, how that is made, the exit code, the output and the messages.
VALUES = (
    ("no key", (), 1, "h free"),
    ("a token with a label", ("SET", UUID + "@db7:41233:backup", "PX", 100000),
     0, r"h held by db7:41233:backup, (100|9\d)s left"),
    ("a token without one", ("SET", UUID, "PX", 100000),
     0, r"h held by 6fa459ea\.\.\. \(no label\), (100|9\d)s left"),
    ("a lease of hours", ("SET", UUID + "@z", "PX", 7200000),
     0, r"h held by z, (2h|11\dm) left"),
    ("a token that never expires", ("SET", UUID + "@z"),
     0, "h held by z, never expires"),
    ("another program's lock", ("SET", "stranger", "PX", 100000),
     0, r"h held by stranger, (100|9\d)s left"),
    ("data", ("SET", "a b"), 0, f"h holds 'a b': {NEVER}"),
    ("control bytes", ("SET", "a\nb\033[2J\001"),
     0, rf"h holds 'a\?b\?\[2J\?': {NEVER}"),
    ("a list", ("LPUSH", "x"), 69, None, "cannot look at 'h'"),
)


def values(cases):
    server = cases.server
    about = rf"  server: {server.url}.*, connected, \S+ {server.version()}, .*"
    for given, make, code, out, *said in VALUES:
        server.cli("DEL", "h")
        if make:
            server.cli(make[0], "h", *map(str, make[1:]))
        plain = f"{out}\n" if out else ""
        cases.gives(given, "status h", code, plain, *said)
        cases.gives(given, "status h -v", code,
                    f"{plain}{about}role primary[^\n]*\n" if out else "", *said)


def servers(cases):
    server = cases.server
    server.cli("DEL", "h")
    cases.gives("a server that was not asked for a lock", "status h -v", 1,
                lambda out: "lock commands" not in out and "waits" not in out)
    cases.gives("no line", f"status h -v -u {server.url}?poll=1", 1,
                r".*role primary, waits by polling \(poll=1\)\n")
    nothing = os.path.join(server.folder, "nothing")
    for more in "", " -v":
        cases.gives("no server", f"status h -u unix://{nothing}{more}", 69, "",
                    nothing)
    if cases.may_use_acl(server, "a password is not shown"):
        server.cli("ACL", "SETUSER", "seer", "on", ">s3cret", "~*", "+@all")
        cases.gives("a password", f"status h -v -u {server.url}?user=seer", 1,
                    lambda out: "s3cret" not in out,
                    env={**os.environ, "NXLOCK_PASSWORD": "s3cret"})
    cases.gives("under run", ["run", "r", "--ttl", "20", "--", cases.program,
                              "status", "r"], 0,
                rf"r held by \S+:\d+:{os.path.basename(cases.program)}, "
                r"\d+s left\n")
    cases.gives("after run", "status r", 1, "r free\n")


if __name__ == "__main__":
    sys.exit(play(Cases, values, servers))
