#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_fence.py NXLOCK AGED: the fencing token that CMD gets, or does not get.

A server, or a quorum, that gives a number; and one that cannot, because of its
version, its permissions or the scheme of timestamps: each for run, acquire and
once. Invariant: NXLOCK_FENCE is a number of this lock or is not set, and run
reports that it is not set, once. table.py describes the rows.
"""

import itertools
import sys

from rig import Aged, Server, play
from table import Table

PRINTS = "-- sh -c 'echo ${NXLOCK_FENCE-none}'"
NEEDS = "-c '(: ${NXLOCK_FENCE:?}) 2> /dev/null || exit 3; echo started'"
REPORT = "has no fencing token, so NXLOCK_FENCE is not set: "
# In the environment of another run, whose number must not leak.
RUN = "NXLOCK_FENCE=outer run k"
works = map("work:{}".format, itertools.count())


def with_number(at):
    return (*2 * ((f"{RUN} {at} {PRINTS}", 0, r"=\d+\n", "!nxlock:"),),
            (f"{RUN} {at} {NEEDS}", 0, "=started\n", "!nxlock:"))


def without_number(at, why):
    return (*((f"{RUN} {more} {at} {PRINTS}", 0, "=none\n", f"once {REPORT}",
               why) for more in ("", "-n", "-w 5s", "-v")),
            (f"{RUN} {at} {NEEDS}", 3, "!started"),
            (f"{RUN} --log json {at} {PRINTS}", 0, 'once "event":"unfenced"',
             '"priority":4', why, '!"fence":'))


def acquires(at):
    """acquire has no CMD, and draws no number."""
    return ((f"acquire k {at}", 0, "!nxlock:"),
            (f"release k {{token}} {at}", 0, ""))


def once(at, code):
    """once needs the number, so CMD has it or is not run."""
    return (f"once {next(works)} -n {at} {PRINTS}", code,
            *(("=", "nxlock: ") if code else (r"=\d+\n", "!nxlock:"))),


def quorum(*urls):
    return " ".join(f"-u {url}?guard_restarts=off" for url in urls)


STAMPS = "-u {url}?scheme=timestamp"
GIVEN = (
    *with_number(""), *acquires(""), *once("", 0),
    *(row for three in [quorum("{url}", "{second}", "{third}")]
      for row in (*with_number(three), *acquires(three), *once(three, 69))),
    *without_number(STAMPS, "scheme=timestamp"), *acquires(STAMPS),
    # A lock without a number inside of one that has it.
    (f"run outer -- {{nx}} run t {STAMPS} {PRINTS}", 0, "=none\n"),
)
# The guest may lock k, and not draw a number for it.
GUEST = "-u {guest}"
MOSTLY = quorum("{url}", "{guest2}", "{guest3}")
REFUSED = (
    *with_number(quorum("{url}", "{second}", "{guest3}")),
    *without_number(GUEST, "NOPERM"), *acquires(GUEST), *once(GUEST, 77),
    *without_number(MOSTLY, "NOPERM"), *acquires(MOSTLY),
    # Nothing is reported of a number that nobody could miss.
    ("acquire k", 0),
    (f"{RUN} -n {GUEST} {PRINTS}", 75, "!" + REPORT),
    ("release k {token}", 0),
    (f"{RUN} --every 1h {GUEST} {PRINTS}", 0, REPORT),
    (f"{RUN} --every 1h {GUEST} {PRINTS}", 75, "!" + REPORT),
)
OLD = "-u {old}"
AGED = (
    ("2.2", without_number(OLD, "need scripts")),
    ("2.4", without_number(OLD, "need scripts")),
    ("2.6", with_number(OLD)),
)


def all_of_it(room):
    with Server() as second, Server() as third:
        servers = room.server, second, third
        room.values.update(second=second.url, third=third.url)
        room.rows(*GIVEN)
        if room.may_use_acl(room.server, "no permission for the counter"):
            for one, name in zip(servers, ("guest", "guest2", "guest3")):
                one.cli("ACL", "SETUSER", "guest", "reset", "on", ">Zqx7", "~k",
                        "~{k}:every", "~work:*", "+@all")
                room.values[name] = one.url.replace("//", "//guest:Zqx7@")
            room.rows(*REFUSED)
        for profile, rows in AGED:
            with Aged(room.aged, profile, room.server) as old:
                room.values["old"] = old.url
                room.rows(*rows, *acquires(OLD), *once(OLD, 69))


if __name__ == "__main__":
    sys.exit(play(Table, all_of_it, more=["aged"]))
