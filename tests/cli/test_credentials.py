#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_credentials.py NXLOCK: CMD gets the servers' URLs without passwords.

CMD of run always finds the servers in NXLOCK_URL, so that an nxlock inside it
never falls back to other ones; the password is there with --pass-url only, or
in the file of --url-file. An nxlock inside that has no password fails with 77.
Which source of a password counts, and files that others may read, are the
matter of test_sources.py. table.py describes the rows.
"""

import os
import sys

from rig import Server, play
from table import Table, part

ADMIN = "Adm9kQzt"  # of the default user
SECRET = "Zqx7,W/k9%"  # of the user app
ENCODED = "Zqx7,W%2Fk9%25"
HIDDEN = tuple(f"!{word}" for word in (ADMIN, SECRET, ENCODED))
APP = f"unix://app:{ENCODED}@{{socket}}"
BARE = "unix://app@{socket}"
QUERY = "unix://{socket}?user=app"
THREE = [f"unix://app:{ENCODED}@{{{name}}}"
         for name in ("socket", "second", "third")]
BARE_THREE = ["unix://app@{socket}", "unix://app@{second}",
              "unix://app@{third}"]
YOUNG = "?guard_restarts=off"
MINE = f"NXLOCK_PASSWORD={SECRET}"
# The variables of CMD, and the environment that the system shows of nxlock and
# of its watchdog.
LOOK = ("-c 'echo; env; cat /proc/$PPID/environ "
        "/proc/$NXLOCK_SUPERVISOR_PID/environ'")
# Their command lines.
LINES = ("-c 'for pid in $PPID $NXLOCK_SUPERVISOR_PID; do tr \"\\0\" \" \" < "
         "/proc/$pid/cmdline; echo; done'")
# An nxlock inside, which must not ask the server of the configuration file.
FILE = "NXLOCK_CONFIG={d}/conf"
STARTS = "-c 'exec {nx} run other -n -- touch {started}'"
RUNS = "-c 'cd / && exec {nx} run other -n -- echo inside'"
HOLDS = "-c 'cd / && exec {nx} status job'"


def hidden(wanted, words):
    before, _, options = words.partition("run")
    return (f"{before}run job{options} {LOOK}", 0, f"\nNXLOCK_URL={wanted}\n",
            *HIDDEN)


STRIPPED = (
    hidden(BARE, f"NXLOCK_URL={APP} run"),
    hidden("unix://{socket}", f"NXLOCK_URL=unix://:{ADMIN}@{{socket}} run"),
    hidden(QUERY + "&timeout_ms=1500",
           f"NXLOCK_URL={QUERY}&password={ENCODED}&timeout_ms=1500 run"),
    hidden(BARE + "?timeout_ms=1500",
           f"NXLOCK_URL={BARE}?timeout_ms=1500&password={ENCODED} run"),
    hidden(BARE, f"NXLOCK_URL=unix://:{ADMIN}@{{decoy}} run -u {APP}"),
    hidden(QUERY, f"{MINE} run -u {QUERY}"),
    hidden(",".join([BARE_THREE[0] + YOUNG, *BARE_THREE[1:]]),
           f"NXLOCK_URL={','.join([THREE[0] + YOUNG, *THREE[1:]])} run"),
    hidden(",".join(BARE_THREE) + YOUNG,
           f"NXLOCK_URL= run -u {' -u '.join(THREE)}{YOUNG}"),
    hidden(BARE, f"NXLOCK_PASSWORD_FILE={{d}}/password run -u {BARE}"),
    hidden(BARE, "NXLOCK_URL={decoy_url} run --url-file {d}/urls"),
    hidden(",".join(BARE_THREE) + YOUNG,
           "NXLOCK_URL= run --url-file {d}/three"),
)
PASSWORDS = (
    # NXLOCK_PASSWORD and a password file are for URLs without a password.
    *(row for url in (BARE, QUERY) for row in (
        (f"{MINE} status job -u {url}", 1),
        (f"{MINE}x status job -u {url}", 77, "WRONGPASS", *HIDDEN))),
    (f"NXLOCK_PASSWORD=no status job -u {APP}", 1),
    (f"NXLOCK_PASSWORD_FILE={{d}}/none status job -u {APP}", 1),
    (f"{MINE} REDISCLI_AUTH=no status job -u {BARE}", 1),
    (f"status job -u {QUERY}", 78, "user without a password",
     "NXLOCK_PASSWORD_FILE"),
    *((f"status job -u {BARE} {words}", 64, "--password-file FILE",
       "NXLOCK_PASSWORD", *HIDDEN)
      for words in (f"--password {SECRET}", f"--password={SECRET}",
                    f"--pass {SECRET}", f"--pasword={SECRET}")),
    *((f"{before}status job -u {BARE}{option}", 1) for before, option in (
        ("", " --password-file {d}/password"),
        ("NXLOCK_PASSWORD=no ", " --password-file {d}/password"),
        ("NXLOCK_PASSWORD_FILE={d}/password ", ""))),
    *((f"{before}run job -u {url}{option} {HOLDS}", 0, "job held by")
      for before, url, option in (
          ("", BARE, " --password-file password"),
          ("", QUERY, " --password-file password"),
          ("NXLOCK_PASSWORD_FILE=password ", BARE, ""))),
    ("doctor -u unix://{socket} --password-file {d}/open", 78,
     ("FAIL", "url", ".*chmod 600")),
)
# What others see of it.
COMMAND_LINE = (
    *((f"run job {words} -v {LINES}", 0, r"=(.*\*{14}.*\n){2}",
       "warning: -u has a password", *HIDDEN)
      for words in (f"-u {APP}", f"'-u{QUERY}&password={ENCODED}&db=1'",
                    f"--url={','.join(THREE)}{YOUNG}")),
    (f"{MINE} run job -u {BARE} -v {LINES}", 0, r"=(.*unix://.*\n){2}",
     "!warning"),
)
NESTED = (
    *(row for url in (APP, f"unix://:{ADMIN}@{{socket}}") for row in (
        (f"{FILE} NXLOCK_URL={url} run job {STARTS}", 77, "--pass-url",
         "--url-file", "password"),
        (f"{FILE} NXLOCK_URL={url} run job --pass-url {RUNS}", 0, "~inside"))),
    *((f"{FILE} NXLOCK_URL={APP} run job -c 'exec {{nx}} {command}'", 77)
      for command in ("status other", "list", "doctor", "wait other -w 1")),
    (f"{FILE} {MINE} NXLOCK_URL= run job --pass-url -u {QUERY} {RUNS}", 0,
     "~inside"),
    (f"{FILE} {MINE} NXLOCK_URL= run job -u {QUERY} {STARTS}", 77,
     "removed it from NXLOCK_URL and NXLOCK_PASSWORD"),
    # A wrong one is not called missing.
    (f"{FILE} {MINE} NXLOCK_URL= run job -u {QUERY} -c 'exec {{nx}} status job "
     "--password-file {d}/wrong'", 77, "WRONGPASS", "!removed it"),
    (f"NXLOCK_URL={APP} run job -u {{decoy_url}} {HOLDS}", 0, "job held by"),
)
URL_FILE = (
    *((f"{before} run job{option} {RUNS}", 0, "~inside")
      for before, option in (
          (FILE, " --url-file {d}/urls"),
          (f"{FILE} NXLOCK_URL=", " --url-file urls"),
          ("NXLOCK_URL= NXLOCK_URL_FILE={d}/urls", ""))),
    ("NXLOCK_URL_FILE={d}/urls run job -u {decoy_url} -c 'echo $NXLOCK_URL "
     "${NXLOCK_URL_FILE-none}'", 0, "={decoy_url} none\n"),
    *((f"run job --url-file {{d}}/urls -c 'NXLOCK_URL={url} exec {{nx}} run "
       "other -n -- touch {started}'", 78, *said)
      for url, *said in (
          ("{decoy_url}", "NXLOCK_URL and NXLOCK_URL_FILE (",
           "name different servers; unset"),
          ("unix://{socket}", "name different users of the same servers"))),
)


class Room(Table):
    def begin(self):
        os.chdir(self.server.folder)
        os.umask(0o077)  # a file with a secret is not for others
        for name, text in (
                ("password", SECRET + "\nmore\n"), ("wrong", "not-this\n"),
                ("open", SECRET + "\n"), ("conf", "url = {decoy_url}\n"),
                ("urls", f"# the judge\n\n  {APP}  \n"),
                ("three", "\n".join(THREE) + YOUNG)):
            self.write(name, self.fill(text))
        os.chmod("open", 0o640)
        os.chmod("conf", 0o644)

    def all(self):
        with Server() as second, Server() as third, Server() as decoy:
            self.values.update(second=second.socket, third=third.socket,
                               decoy=decoy.socket, decoy_url=decoy.url)
            for one in (self.server, second, third):
                one.cli("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*",
                        "+@all")
                one.cli("CONFIG", "SET", "requirepass", ADMIN)
            self.begin()
            for name, rows in (
                    ("stripped", STRIPPED), ("passwords", PASSWORDS),
                    ("command_line", COMMAND_LINE), ("nested", NESTED),
                    ("url_file", URL_FILE)):
                part(name, rows)(self)


if __name__ == "__main__":
    sys.exit(play(Room, Room.all))
