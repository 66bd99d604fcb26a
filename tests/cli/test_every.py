#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_every.py NXLOCK: --every, from the crons of several machines: in each
period one of them runs the job, and the others are told that it is not due.
table.py describes the rows.
"""

import re
import sys

from rig import play
from table import Table, part

RUN = "run h --every 1h"
BY_HAND = (
    (f"{RUN} -- true", 0, ""),
    ("db PTTL {h}:every", (3200000, 3240000)),  # 54 minutes
    ("db EXISTS h", "0"),
    (f"{RUN} -- true", 75, ""),
    (f"{RUN} -E 0 -- true", 0),
    (f"{RUN} -v -- true", 75, "'h' is not due; CMD is not started: ",
     "ran it last, and --every 1h skips runs for 54m",
     "the next run may start in 5"),
    ("db EXISTS h", "0"),
    # One that is skipped leaves the record as it is.
    ("db PEXPIRE {h}:every 60000", "1"),
    (f"{RUN} -- true", 75, ""),
    ("db PTTL {h}:every", (0, 60000)),
    ("run h -- true", 0),
    ("list", 0, "~{h}:every\tevery\t.*"),
    ("unlock {h}:every --force --yes", 0),
    (f"{RUN} -- true", 0),
    # One that fails counts, and what could not be started does not.
    ("db DEL {h}:every", "1"),
    (f"{RUN} -- false", 1),
    (f"{RUN} -- true", 75),
    ("db DEL {h}:every", "1"),
    (f"{RUN} -- /nowhere", 127),
    ("db EXISTS {h}:every", "0"),
    # The record ends before the period does.
    ("run second --every 1s -- true", 0),
    ("db EXISTS {second}:every", re.compile("^0")),
    ("run second --every 1s -- true", 0),
    # A name with a tag, a prefix and a short max_ttl_ms.
    ("run {h}x --every 1h -u {url}?max_ttl_ms=40000 --prefix p: -- true", 0),
    ("db EXISTS p:{h}x:every", "1"),
    *(row for period, skipped in (("1d", "21.6h"), ("24d", "21.6d"))
      for row in (
          (f"run r{period} --every {period} -v -- true", 0),
          (f"run r{period} --every {period} -v -- true", 75,
           f"skips runs for {skipped};"))),
    ("run longest --every 26.6d -- true", 0),
    *((f"run month --every {period} -- true", 64, "26.6d",
       f"--every {period} is too long") for period in ("26.7d", "49d")),
    ("run shorter --every 2h -- true", 0),
    ("run shorter --every 5s -v -- true", 75, "!ago", "used a longer period "
     "than --every 5s; the next run may start in 107m"),
    ("run --help", 0, r"~.*--every DUR .*0\.9 DUR.*"),
)
AS_U = "NXLOCK_PASSWORD=Zqx7 ?user=u"
RIGHTS = (
    ("db ACL SETUSER u on >Zqx7 ~job:* +@all", "OK"),
    (f"{AS_U} run job:9 --every 1h -- true", 77, "key '{job:9}:every'",
     "'nxlock doctor job:9'", "not that of --every"),
    ("db ACL SETUSER u ~{job:*", "OK"),
    (f"{AS_U} run job:9 --every 1h -- true", 0),
    ("db ACL SETUSER u ~{job}x", "OK"),
    (f"{AS_U} run {{job}}x --every 1h -- true", 77, "key '{job}x:every'",
     "nxlock doctor"),
)



def at_once(room):
    """Whose lock it is first runs the job, and the others look after that."""
    for number in range(5):
        runs = [room.launch("run", f"once{number}", "--every", "1h", "--",
                            "true") for _ in range(3)]
        room.equal(sorted(run.ends() for run in runs),
                   [(0, "", ""), (75, "", ""), (75, "", "")],
                   "three machines at once: one of them runs the job")


if __name__ == "__main__":
    sys.exit(play(Table, part("by_hand", BY_HAND), part("rights", RIGHTS),
                  at_once))
