#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_doctor.py NXLOCK NO_NAMES: what doctor finds on a real server: how the
server and the user are set up, the exit code, and the lines that must be there.
What replicas, Sentinels, TLS and other servers add is in
test_doctor_failover.py, test_sentinels.py, test_tls.py and test_servers.py.
table.py describes the rows.
"""

import json
import os
import re
import sys

from rig import Server, await_, nx, play
from table import Table, part

RIGHT = {"appendonly": "yes", "appendfsync": "always",
         "maxmemory-policy": "noeviction"}
EVERYSEC = "appendfsync everysec"
VOLATILE = "maxmemory-policy volatile-ttl"
NO_FILE = "appendonly no"
ADD_FILE = ("persistence", "Remedy: CONFIG SET appendonly yes")
# How the server is set up, if not as it should be; then a row.
SERVERS = (
    ("", "doctor", 0, ("ok", "eviction"), ("ok", "persistence"),
     ("ok", "lock", "released"), ("ok", "fencing"),
     ("ok", "waiting", "in line"), ("ok", "server", "role primary"),
     (None, "once"), (None, "clock"), (None, "rights")),
    ("", "doctor invoice:42", 0, (None, "rights")),
    ("", "&prefix=app: doctor invoice:42", 0),
    ("", "&poll=1 doctor", 0, ("note", "waiting", "poll=1")),
    ("maxmemory-policy allkeys-lru", "doctor", 1,
     ("WARN", "eviction", "allkeys-lru.*Remedy: .*noeviction")),
    (VOLATILE, "doctor", 1, ("WARN", "eviction", "volatile-ttl")),
    (EVERYSEC, "doctor", 0, ("note", "persistence", "everysec")),
    (NO_FILE, "doctor", 1, ("WARN", *ADD_FILE)),
    (NO_FILE, "&guard_restarts=on doctor", 0,
     ("note", "persistence", "guard_restarts")),
    ("", "doctor --once", 0, ("ok", "once"), ("ok", "persistence")),
    ("", "doctor invoice:42 --once", 0, ("ok", "once")),
    (NO_FILE, "doctor --once", 69, ("FAIL", *ADD_FILE)),
    (NO_FILE, "&guard_restarts=on doctor --once", 69,
     ("FAIL", "persistence", "work that was done may be done again"),
     (None, "persistence", "(two clients|guard_restarts)")),
    (EVERYSEC, "doctor --once", 1,
     ("WARN", "persistence", "Remedy: CONFIG SET appendfsync always")),
    (VOLATILE, "doctor --once", 1, ("WARN", "eviction", "records")),
    ("", "&guard_failover=on doctor --once", 78,
     ("FAIL", "once", "wait_replicas")),
    ("", "&db=99 doctor", 78, ("FAIL", "reach", "DB index")),
)

ALL = "~* &* +@all"
INV = "+@all &* ~inv* ~{inv*"
# What the user has; then doctor's arguments and the rest of a row.
USERS = (
    (f"{ALL} -eval -evalsha", "", 1,
     ("WARN", "fencing", "Remedy: .*ACL SETUSER u .*\\+eval "),
     ("ok", "lock"), ("ok", "server", "WATCH")),
    (f"{ALL} -zadd", "job", 0,
     ("note", "waiting", "Remedy: ACL SETUSER u .*\\+zadd")),
    (f"{ALL} -subscribe", "", 0, ("ok", "waiting", "subscribe")),
    (f"{ALL} -pubsub", "", 0, ("note", "rights", "Sentinels.*\\(PUBSUB NUMSUB."
                               "*Remedy: .*\\+pubsub")),
    (f"{ALL} -time", "", 1, ("WARN", "fencing", "Remedy: .*\\+time"),
     ("ok", "lock")),
    (f"{ALL} -info", "", 1, ("WARN", "rights", "INFO.*Remedy: .*\\+info"),
     ("WARN", "persistence", "unknown"), ("WARN", "eviction", "unknown")),
    (f"{ALL} -config", "--once", 1, ("note", "rights", "CONFIG GET.*Remedy: "),
     ("WARN", "persistence", "unknown")),
    (f"{ALL} -set", "", 77,
     ("FAIL", "lock", "'set'.*Remedy: .*nxlock doctor NAME.*\\+set")),
    (INV, "", 77, ("FAIL", "lock", "Remedy: .*nxlock doctor NAME")),
    (INV, "inv:1", 0, (None, "rights")),
    (INV, "inv:1 --once", 0),
    (INV, "job", 77, ("FAIL", "rights", "PTTL job.*Remedy: .*~job")),
    # Without the counter, and without the record.
    ("+@all &* ~inv* ~{inv:1:doctor*", "inv:1", 1,
     ("WARN", "rights", "PTTL \\{inv:1\\}:f"),
     ("note", "rights", "\\{inv:1\\}:nxl-l")),
    ("+@all &* ~inv* ~{inv:1}:[fn]* ~{inv:1:doctor*", "inv:1 --once", 1,
     ("WARN", "rights", "PTTL \\{inv:1\\}:once")),
    (INV, "a\033[1mb", 77, ("FAIL", "rights", "Remedy: .*~NAME\\*")),
    ("+@all &* ~inv*", "job --prefix app:", 77,
     ("FAIL", "rights", "app:job.*~app:job")),
    (f"{ALL} -ping -dbsize -acl", "", 0),
    ("~* +set +get +del +pttl +eval +evalsha +getrange +pexpire +exists +time",
     "", 1, ("ok", "fencing"), ("note", "waiting", "Remedy"),
     ("note", "permits", "Remedy")),
)


def as_user(rules, words, code, *findings):
    """A user who has just these permissions calls doctor."""
    return (f"db ACL SETUSER u reset on >sesame-seed {rules}", "OK"), (
        "db SCRIPT FLUSH", "OK"), (
        f"NXLOCK_PASSWORD=sesame-seed &user=u doctor {words}", code, *findings)


def at_server(setting, line, code, *findings):
    name = setting.partition(" ")[0]
    row = (line, code, *findings)
    return ((f"db CONFIG SET {setting}", "OK"), row,
            (f"db CONFIG SET {name} {RIGHT[name]}", "OK")) if name else (row,)


OTHERS = (
    ("doctor > /dev/full", 70),
    ("LD_PRELOAD={no_names} ASAN_OPTIONS=verify_asan_link_order=0 doctor", 70,
     ("FAIL", "lock", "memory")),
    ("doctor -u http://x", 78),
    ("doctor a b", 64),
    ("doctor --ttl 3s", 64),
    # Its address is there once.
    ("doctor -u unix://{d}/nothing", 69, ("FAIL", "reach", "is running"),
     (None, "lock"), "=(?!.*/nothing.*/nothing).*"),
    ("db CONFIG SET requirepass sesame-seed", "OK"),
    ("doctor", 77, ("FAIL", "reach", "NOAUTH"), (None, "server")),
    ("db CONFIG SET requirepass ''", "OK"),
    ("db SET held mine", "OK"),
    ("doctor held", 0),
    ("db GET held", "mine"),
)
DENIED = (
    ("NXLOCK_PASSWORD=wrong-one &user=u doctor", 77,
     ("FAIL", "reach", "WRONGPASS"), (None, "lock"), "!wrong-one"),
    # Other commands name doctor where a permission is missing, not where the
    # login is refused, whatever the server is called.
    (f"db ACL SETUSER u reset on >sesame-seed {ALL} -set", "OK"),
    *((f"NXLOCK_PASSWORD={password} acquire x -u unix://{{d}}/NOPERM?user=u",
       77, named) for password, named in (("sesame-seed", "nxlock doctor x"),
                                          ("wrong-one", "!nxlock doctor x"))),
)
# None is called silent because the machine is busy.
PATIENT = "?max_ttl_ms=1000&timeout_ms=60000"
THREE = f"doctor -u {{url}}{PATIENT} -u {{other}}?durable=1 -u {{young}}"


def begin(room):
    """The server is older than any lock that it could have forgotten."""
    os.environ["NXLOCK_URL"] += PATIENT
    os.symlink(room.server.socket, room.path("NOPERM"))
    room.values["no_names"] = room.no_names
    await_(lambda: re.search(rb"uptime_in_seconds:([4-9]|\d\d)",
                             room.server.cli("INFO")))


def users(room):
    if room.may_use_acl(room.server, "permissions"):
        room.rows(*(row for one in USERS for row in as_user(*one)), *DENIED)


def as_json(room):
    done = nx(room.program, "doctor", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    room.check(all(one["v"] == 1 and one["finding"] and
                   one["level"] in ("ok", "note", "WARN", "FAIL")
                   for one in lines) and done.returncode == 0,
               "--json: an object for each finding", done)


def several(room):
    """Of the two new ones nothing is known."""
    with Server() as young, Server("--appendonly", "yes") as other:
        room.values.update(young=young.url, other=other.url)
        room.rows((THREE, 1, ("WARN", "role", "(vote|grants)"), ("ok", "lock"),
                   ("note", "persistence", "guard_restarts")),
                  (f"{THREE} --once", 69, ("FAIL", "once", "server")))
        if room.may_use_acl(room.server, "one without INFO"):
            room.rows(("db ACL SETUSER default -info", "OK"),
                      (THREE, 77, ("FAIL", "rights", "INFO.*Remedy")))


if __name__ == "__main__":
    sys.exit(play(
        Table, begin,
        part("servers", [row for one in SERVERS for row in at_server(*one)]),
        users, as_json, part("others", OTHERS), several,
        options=("--appendonly", "yes", "--appendfsync", "always"),
        more=["no_names"]))
