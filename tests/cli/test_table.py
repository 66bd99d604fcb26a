#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_table.py NXLOCK [TABLE...]: command lines and what nxlock answers, and
--help of each command. table.py describes the rows.
"""

import re
import sys

from rig import play
from table import Table, part

ONE = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
OTHER = "00000000-0000-4000-8000-000000000000"
FOREIGN_TOKEN = ONE + "@db7:41233:backup"
BLANKS = " " * 125 + "\t\t\t"
TOUCH = "-- touch {started}"

# ------------------------------------------------------ what cannot be read

MISSPELT = (
    ("", 64, "nxlock run"),
    ("rnu x -- true", 64, "'rnu'", "did you mean 'run'?"),
    ("statsu x", 64, "'statsu'", "did you mean 'status'?"),
    ("realease x y", 64, "'realease'", "did you mean 'release'?"),
    ("frobnicate", 64, "'frobnicate'", "run", "acquire", "renew", "release",
     "status"),
    ("help rnu", 64, "did you mean 'run'?"),
    ("version", 64, "'version'", "'nxlock --version'"),
    ("--verson", 64, "'--verson'", "'nxlock --version'"),
    ("--hepl", 64, "'nxlock --help'"),
    ("--version run", 64, "unexpected 'run'"),
    ("-V -v", 64, "unexpected '-v'"),
    ("--help run", 64, "unexpected 'run'"),
    ("help run lock", 64, "unexpected 'lock'"),
    ("help connection tls", 64, "unexpected 'tls'"),
    ("-n run x -- true", 64, "'-n'", "nxlock COMMAND NAME"),
    ("run x --tll 3 -- true", 64, "'--tll'", "did you mean '--ttl'?"),
    ("run x --wiat 5 -- true", 64, "'--wiat'", "did you mean '--wait'?"),
    ("run x --frobnicate -- true", 64, "'--frobnicate'", "nxlock run --help"),
    ("run x -nz -- true", 64, "'-nz'"),
    ("status x -n", 64, "status", "'-n'", "!did you mean"),
    ("run x -pZqx7 -- true", 64, "no option '-p'"),
    ("run -aZqx7 -- true", 64, "no option '-a'"),
    ("run x --json -- true", 64, "run", "'--json'"),
    ("acquire x -c true", 64, "acquire", "'-c'"),
    ("run x --timeout-ms 3 -- true", 64, "run has no option '--timeout-ms'"),
    ("run x --host 3 -- true", 64, "--host'", "-u redis://HOST:PORT"),
    ("run x --port 3 -- true", 64, "--port'", "-u redis://HOST:PORT"),
    *((f"run l {words} -- true", 64)
      for words in ("--at-most 0", "--every 1ms", "--on-lost stop",
                    "--on-lost TERM", "--on-down run",
                    "--fence", "--no-fence", "--retry-failed")),
)

WORDS = (
    ("run x sleep 1", 64, "'sleep'", "nxlock run x -- sleep"),
    ("run x make deploy", 64, "'make'", "nxlock run x -- make ..."),
    ("run x make", 64, "'make'", "nxlock run x -- make", "!..."),
    ("run x ls -l", 64, "'ls'", "nxlock run x -- ls"),
    ("run x git checkout -- file", 64, "'git'", "NAME [OPTION...] -- CMD..."),
    ("run my lock -- true", 64, "unexpected 'lock' after NAME"),
    ("run x", 64, "nxlock run x -- CMD"),
    ("run x --", 64, "no command after '--'"),
    ("run -- true", 64, "NAME"),
    ("run '' -- true", 64, "NAME", "empty", "nxlock run NAME"),
    ("run -backup -- true", 64, "'-backup'", "--name=-backup"),
    ("status --backup", 64, "'--backup'", "--name=--backup"),
    ("run x --name=y -- true", 64, "'x'", "'y'"),
    ("status --name a --name b", 64, "NAME is 'a' already"),
    ("status x y", 64, "'y'", "nxlock status NAME"),
    ("list a* b*", 64, "unexpected 'b*' after GLOB"),
    ("wait", 64, "NAME is missing"),
    ("wait a b", 64, "'b'"),
    ("release x", 64, "TOKEN", "nxlock acquire x"),
    ("release x nonsense", 64, "token", "nxlock acquire x"),
    ("renew x nonsense", 64, "token", "nxlock acquire x"),
    (f"release x {ONE} {ONE}", 64, "one word too many after NAME and TOKEN",
     "nxlock release", "!" + ONE),
    (f"unlock x --token {ONE} --token {ONE}", 64, "--token is given twice",
     "!" + ONE),
    *((f"{command} {ONE}@h:1:c swap", 64, "swapped",
       f"nxlock {command} NAME TOKEN", "!" + ONE, "!" + ONE[:8])
      for command in ("renew", "release")),
    ("acquire x -- make deploy", 64, "nxlock run x -- make ..."),
    ("run x -c true -- true", 64, "-c STRING", "-- CMD", "exclude each other"),
    ("run x --command true -- true", 64, "-c STRING", "exclude each other"),
    ("run x -c ''", 64, "-c", "empty"),
    ("run x -c", 64, "-c needs a value", "-c STRING"),
    ("run x -c true -c false", 64, "-c", "twice"),
    ("run x -c echo hello", 64, "'hello'", "-c"),
    ("status x --url-file a --url-file b", 64, "--url-file is given twice"),
    ("status x --url-file ''", 64, "--url-file has an empty value"),
)

VALUES = (
    ("run x -w -- true", 64, "-w needs a value", "-w DUR"),
    ("acquire x -w", 64, "-w DUR"),
    ("run x --ttl -- true", 64, "--ttl DUR"),
    ("run x --prefix -- true", 64, "--prefix TEXT"),
    ("run x --no-wait=3 -- true", 64, "--no-wait takes no value", "'3'"),
    ("run x -n -w 5 -- true", 64,
     "--no-wait (-n) and --wait (-w) exclude each"),
    ("run x " + " ".join(f"-u redis://h{i}" for i in range(16)) + " -- true",
     64, "-u", "15"),
    ("run x -w 5x -- true", 64, "'5x'", "500ms, 30s, 10m, 2h or 1d",
     "a bare number is seconds"),
    *((f"run x '--wait={duration}' -- true", 64, f"'{duration}'")
      for duration in ("-1", "1e3", "5.s", ".5s", "5,5s", "5 s", "5S", "s",
                       "99999999999d")),
    ("wait a -w soon", 64, "'soon'"),
    ("run x --ttl 0 -- true", 64, "--ttl 0 is too short", "such as 30s"),
    ("acquire x --ttl 90d", 64, "such as 30s, at most 24d"),
    *((f"run x -E{word} -- true", 64, f"'{word}'", "from 0 to 255")
      for word in ("256", "-1", "x", "1x", "0x1")),
    ("run x --on-lost KILL -- true", 64,
     "--on-lost 'KILL' is not valid: use kill or warn"),
    *((f"run x --log {what} {TOUCH}", 64, said) for what, said in (
        ("file:", "file:PATH"), ("file", "file:PATH"), ("files:x", "file:PATH"),
        ("sislog", "syslog"))),
    *((f"run x -n --log file:{where} {TOUCH}", 78, why, f"'{where}'",
       "another --log") for where, why in (
           ("{d}", "Is a directory"), ("{d}/none/log", "No such file"),
           ("{d}/socket", "No such device"),
           ("/dev/null", "not a regular file"))),
    ("db EXISTS {x}:f", "0"),
)

URLS = (
    *(row for url, write in (
        ("localhost:6379", "redis://localhost:6379"),
        ("db7:6380", "redis://db7:6380"), ("db7", "redis://db7"),
        ("/run/r.sock", "unix:///run/r.sock"))
      for row in (
          (f"run x -n -u {url} {TOUCH}", 78, "-u: ", "scheme",
           f"write {write}"),
          (f"NXLOCK_URL={url} status x", 78, "NXLOCK_URL: ", "scheme",
           f"write {write}"))),
    ("run x -u s3cret@db7 -- true", 78, "write redis://", "!s3cret"),
    (f"run x -u http://nowhere {TOUCH}", 78, "-u: ", "'http'",
     "redis://, rediss:// (TLS) or unix://"),
    (f"NXLOCK_URL=http://nowhere run x {TOUCH}", 78, "NXLOCK_URL: "),
    ("status x -u http://nowhere", 78),
    ("wait x -u http://x", 78),
    ("run x -u redis://db7:99999 -- true", 78,
     "the port '99999' must be a number from 1 to 65535", "!byte",
     "!password"),
    ("run x -u redis://db7:0 -- true", 78, "from 1 to 65535"),
    ("run x -u redis://db7/x -- true", 78, "db", "number"),
    ("run x -u redis://::1:6379 -- :", 78, "redis://[::1]:6379"),
    ("run x -u redis://db7?timeout=5 -- true", 78, "'timeout'", "db", "user",
     "password", "timeout_ms", "max_ttl_ms", "drift_ppm", "keepalive_s",
     "prefix"),
    ("run x -u rediss://h?ssl_keyfile=k -- true", 78, "'ssl_keyfile'",
     "belongs to redis-py; write key=FILE"),
    ("run x -u redis://h?db=x -- true", 78, "db", "from 0 to"),
    ("run x -u '' -- true", 78, "empty", "redis://localhost:6379"),
    # Several of them.
    ("run x -u redis://a -u redis://b -u redis://a:6379 -- true", 78,
     "URLs 1 and 3", "redis://a:6379/0"),
    ("run x -u redis://a?max_ttl_ms=1000 -u redis://b?max_ttl_ms=2000 -- true",
     78, "max_ttl_ms", "URLs 1 and 2"),
    ("run x -u redis://a,redis://b:x,redis://c -- true", 78, "URL 2 of 3",
     "port"),
    ("run x -u redis://a:1,,redis://b -- true", 78, "URL 1 of 2", "at byte 12",
     "empty element"),
    ("run x -u redis://a:1,b:2 -- true", 78, "at byte 12", "scheme"),
    # Without a network, so that no server of this machine can answer.
    *((f"offline NXLOCK_URL= {words}", 69, "redis://127.0.0.1:6379 was used",
       "-u URL", "NXLOCK_URL", "/etc/nxlock.conf", "once was used")
      for words in ("status x", "list", "run x -n -- true", "wait x -w 1ms")),
    ("offline NXLOCK_URL= status x -u redis://127.0.0.1:6379", 69,
     "!was used"),
)

# ------------------------------------------------------------------ exit codes

CODES = (
    *((f"run a -- sh -c 'exit {code}'", code)
      for code in (0, 1, 3, 7, 64, 75, 79, 255)),
    *((f"run a -- sh -c 'kill -{signal} $$'", 128 + signal)
      for signal in (1, 2, 3, 6, 9, 10, 12, 13, 14, 15)),
    ("status x", 1),
    ("db SET x stranger PX 100000", "OK"),
    ("status x", 0),
    *((f"run x {wait} {TOUCH}", 75, "")
      for wait in ("-n", "-w 100ms", "-w 0", "-w 1200ms")),
    (f"run x -nv {TOUCH}", 75, "'x' is held by stranger, "),
    *((f"run x -n -E {code} {TOUCH}", code, "") for code in (0, 1, 99, 255)),
    (f"run x -w 100ms --busy-code 3 {TOUCH}", 3, ""),
    ("acquire x -n", 75, ""),
    ("acquire x -n -E 3", 3, ""),
    ("wait x -w 100ms", 75, ""),
    ("db DEL x", "1"),
    (f"run x -n -E 0 -u unix://{{d}}/nothing {TOUCH}", 69),
    (f"run x --frobnicate {TOUCH}", 64),
    *((f"run x {wait} -u unix://{{d}}/nothing {TOUCH}", 69,
       "cannot acquire 'x'", "{d}/nothing") for wait in ("-n", "-w200ms")),
    (f"run x -n -u redis://127.0.0.1:1 {TOUCH}", 69, "127.0.0.1:1"),
    (f"run x -n -u unix://{{d}}/socket {TOUCH}", 69, "{d}/socket"),
    ("acquire x -n -u unix://{d}/nothing", 69),
    ("status x -u unix://{d}/nothing", 69),
    ("wait x -w 300ms -u unix://{d}/nothing", 69, "waiting for 'x'",
     "{d}/nothing"),
    (f"renew x {ONE} -u unix://{{d}}/nothing", 69),
    (f"release x {ONE} -u unix://{{d}}/nothing", 69),
    *((f"{words} > /dev/full", 70, "cannot print")
      for words in ("--version", "--help", "'run' --help", "status x",
                    "status x --json")),
    ("acquire held", 0),
    ("list > /dev/full", 70, "cannot print"),
    ("db DEL held", "1"),
    ("acquire a > /dev/full", 70, "cannot print", "'a'"),
    ("acquire a > closed", 70),
    ("db EXISTS a", "0"),
    ("run a -- {d}", 126),
    ("run a -- {d}/plain", 126, "{d}/plain"),
    ("run a -- {d}/nothing", 127, "{d}/nothing"),
    ("run a -- nxlock-no-such-program", 127, "nxlock-no-such-program"),
    ("run a -- 'echo hi'", 127, "cannot run 'echo hi': there is",
     "nxlock run a -c 'echo hi'"),
    ("run a -n -- 'make|mail boss'", 127, "-c 'make|mail boss'"),
    ("run a -- no-such-program", 127, "cannot run 'no-such-program': ",
     "! -c "),
    ("run a -- 'no such' program", 127, "! -c "),
)

# What is at the key is no lock, or a server refuses in its own words.
REFUSED = (
    ("db RPUSH x element", "1"),
    *((f"run x {wait} {TOUCH}", 69, "cannot acquire 'x'")
      for wait in ("", "-n", "-w200ms", "-n -E 0")),
    ("acquire x", 69, "cannot acquire 'x'"),
    (f"renew x {ONE}", 79),
    (f"release x {ONE}", 79),
    ("db LLEN x", "1"),
    ("db DEL x", "1"),
    ("db SET x 'some program data'", "OK"),
    *((f"run x {wait} -E 0 {TOUCH}", 69, "holds 'some program data'",
       "redis-cli") for wait in ("", "-n", "-w 200ms")),
    *((words, 69, "holds 'some program data'")
      for words in ("acquire x", "acquire x -n", "wait x")),
    (f"db SET x {FOREIGN_TOKEN}", "OK"),
    (f"run x -n {TOUCH}", 75, ""),
    ("wait x -w 100ms", 75, ""),
    ("db SET x 4000000000", "OK"),
    (f"run x -n {TOUCH}", 75, ""),
    ("db DEL x", "1"),
    ("db CONFIG SET maxmemory 1", "OK"),
    *((f"run x {wait} {TOUCH}", 69, "OOM") for wait in ("-n", "-w200ms")),
    ("db CONFIG SET maxmemory 0", "OK"),
    ("db CONFIG SET save '3600 1'", "OK"),
    ("db BGSAVE", "Background saving started"),
    ("db INFO persistence", re.compile("rdb_last_bgsave_status:err")),
    (f"run x -n {TOUCH}", 69, "MISCONF"),
    ("db CONFIG SET save ''", "OK"),
    ("db REPLICAOF 127.0.0.1 1", "OK"),
    *((f"run x {wait} {TOUCH}", 69, "READONLY") for wait in ("-n", "-w60")),
    ("db REPLICAOF NO ONE", "OK"),
    ("db CONFIG SET requirepass pa55", "OK"),
    *((words, 77, "NOAUTH") for words in (
        f"run x -n {TOUCH}", "acquire x -n", "status x", f"renew x {ONE}",
        f"release x {ONE}")),
    ("NXLOCK_PASSWORD=pa55 run a -n -- true", 0),
    ("db CONFIG SET requirepass ''", "OK"),
)

DENIED = (
    ("db ACL SETUSER guest on >s3cret +@connection", "OK"),
    *(row for wait in ("-n", "-w60") for row in (
        (f"?user=guest NXLOCK_PASSWORD=n0 run x {wait} {TOUCH}", 77,
         "cannot acquire 'x'", "WRONGPASS", "!n0"),
        (f"?user=guest NXLOCK_PASSWORD=s3cret run x {wait} {TOUCH}", 77,
         "cannot acquire 'x'", "NOPERM", "'nxlock doctor x'", "!s3cret"))),
    ("?user=guest NXLOCK_PASSWORD=s3cret once x -- true", 77,
     "'nxlock doctor --once x'"),
    ("db ACL SETUSER blind on >Zqx7 ~* +@all -eval -evalsha -getrange", "OK"),
    ("?user=blind NXLOCK_PASSWORD=Zqx7 wait x", 77),
    ("db ACL SETUSER default nocommands +acl|setuser", "OK"),
    (f"run x -n {TOUCH}", 77, "cannot acquire 'x'"),
    ("acquire x -n", 77),
    ("status x", 77),
    (f"renew x {ONE}", 77),
    (f"release x {ONE}", 77),
    ("db ACL SETUSER default allcommands", "OK"),
    ("run a -n -- true", 0),
)

# ----------------------------------------------------------------- its times

TIMES = (
    (f"run a --ttl 3s --grace 2s {TOUCH}", 64,
     "--ttl 3s is too short for --grace 2s: use --ttl ",
     "or --grace 1.1s or less", "!lease of"),
    ("run a --ttl 3s --grace 1.1s -- true", 0),
    (f"run a --ttl 3s --grace 2s {TOUCH}", 64, "or more, or --grace"),
    ("run a --ttl {ttl} --grace 2s -- true", 0),
    ("?max_ttl_ms=60000 run a --ttl 60s --grace 1m -- true", 64,
     "--ttl 60s is too short for --grace 1m: use --grace", "35.3s or less"),
    ("?max_ttl_ms=60000 run a --ttl 60s --grace 35.3s -- true", 0),
    ("?timeout_ms=900 run a --ttl 3s -- true", 64,
     "--ttl 3s is too short for timeout_ms=900"),
    ("run a --grace 1m -- true", 64,
     "--grace 1m is too long for a lease of 30s"),
    ("?max_ttl_ms=60000&timeout_ms=20000 run a --ttl 60s --grace 1s -- true",
     64, "use --ttl ", "with max_ttl_ms="),
    ("run a --ttl 30ms -- true", 64, "--ttl 30ms is too short to be renewed"),
    (f"run a --ttl 5ms {TOUCH}", 64,
     "--ttl 5ms is too short: the least is 13ms", "a bare number is seconds",
     "--ttl 5s", "!ttl_ms"),
    ("acquire x --ttl 5ms", 64, "the least is 13ms", "--ttl 5s"),
    ("run a --at-least 3s --at-most 2s -- true", 64,
     "--at-least 3s is longer than --at-most 2s"),
    ("?max_ttl_ms=10000 run a -- sh -c 'test $NXLOCK_TTL_MS = 10000'", 0),
    ("run a --ttl 5s --ttl 9s -- sh -c 'test $NXLOCK_TTL_MS = 9000'", 0),
    # One server has a limit only with the quarantine on, of 30 s.
    ("?guard_restarts=off run a --ttl 2m -- true", 0),
    ("?guard_restarts=on run a --ttl 2m -- true", 64, "30s", "or a guard",
     "max_ttl_ms=120000"),
    ("run a --ttl 2m -u {url}?guard_restarts=off -u unix://{d}/none -- true",
     64, "1m", "several servers", "max_ttl_ms=120000"),
    # --ttl and --at-least have the same limits, in the same words.
    *(row for command, end in (
        ("run a --ttl", " -- true"), ("run a --at-least", " -- true"),
        ("acquire a --ttl", ""), (f"renew a {ONE} --ttl", ""))
      for option in [command.rpartition(" ")[2]] for row in (
          (f"{command} 30d{end}", 64, f"{option} 30d is too long", "24d",
           "!URL"),
          (f"?max_ttl_ms=90000 {command} 5m{end}", 64,
           f"{option} 5m is longer than max_ttl_ms=90000 allows",
           f"{option} 90s or less"),
          (f"{command} 5m -u redis://h1 -u redis://h2 -u redis://h3{end}", 64,
           f"{option} 5m is longer than", "max_ttl_ms=300000"))),
    ("?max_ttl_ms=5000 acquire x --ttl 10s", 64,
     "--ttl 10s is longer than max_ttl_ms=5000 allows"),
    ("acquire five --ttl 5", 0),
    ("db PTTL five", (4000, 5000)),
    ("acquire day --ttl 1d", 0),
    ("db PTTL day", (86300000, 86400000)),
    ("acquire hour --ttl 30s", 0),
    ("renew hour {token} --ttl 1h", 0),
    ("db PTTL hour", (3500000, 3600000)),
    ("run a --ttl 6 -- sh -c 'test $NXLOCK_TTL_MS = 6000'", 0),
    ("run a --ttl 24d -- true", 0),
    ("?max_ttl_ms=600000 run a --ttl 10m -- true", 0),
    *((f"run a -w {duration} -- true", 0)
      for duration in ("5", "5s", "5000ms", "0.08333334m", "1.5h", "1d")),
    ("run days --at-least 2d -- true", 0),
    ("db PTTL days", (172700000, 172800000)),
    ("run some --at-least 20s -- true", 0),
    ("db PTTL some", (10000, 20000)),
    ("run more --at-least 1h -- true", 0),
    ("db PTTL more", (3000000, 3600000)),
    ("run b --at-least 20s -- false", 1),
    ("db EXISTS b", "1"),
    ("run a --at-least 20s -- {d}/nothing", 127),
)

# ------------------------------------------------------------ what CMD is given

RUN = (
    ("run a -- true", 0, ""),
    ("run a -- sh -c 'echo out; echo err >&2'", 0, "~out", "err", "!nxlock"),
    ("run a -- sh -c 'test \"$(cut -d \" \" -f 5 /proc/$$/stat)\" = $$'", 0),
    ("run a -- sh -c 'for fd in /proc/$$/fd/*; do case $(readlink $fd) in"
     " *socket*|*anon_inode*) exit 1 ;; esac; done'", 0),
    ("run a --ttl 20s -- sh -c 'test $NXLOCK_NAME = a && test $NXLOCK_TTL_MS ="
     " 20000 && test \"$(redis-cli -s {socket} GET a)\" = $NXLOCK_TOKEN'", 0),
    ("run a --prefix 'p%:' -- sh -c 'test $NXLOCK_KEY"
     " = p%:a && redis-cli -s {socket} EXISTS $NXLOCK_KEY'", 0, "~1"),
    ("run a --at-most 60s -- sh -c 'exit 3'", 3, ""),
    ("run a -- sh -c 'case $NXLOCK_TOKEN in *\"@$(hostname | cut -c -64 |"
     " tr \" \" _):$NXLOCK_SUPERVISOR_PID:sh\") ;; *) exit 1 ;; esac'", 0),
    ("run a -- {nx} run b2 -- sh -c 'test $NXLOCK_NAME = b2 &&"
     " test \"$(redis-cli -s {socket} GET b2)\" = $NXLOCK_TOKEN'", 0),
    ("db EXISTS b2", "0"),
    ("run a -- test -n --ttl", 0),
    ("run a -- sh -c 'exit 3' --help", 3),
    ("run --name=-a -- true", 0),
    ("run a --prefix 'p&/:' -- redis-cli -s {socket} EXISTS 'p&/:a'", 0, "~1"),
    ("run a -u {url}?db=3 -- redis-cli -n 3 -s {socket} EXISTS a", 0, "~1"),
    ("run a --prefix q: -u {url}?db=3 -- "
     "redis-cli -n 3 -s {socket} EXISTS q:a", 0, "~1"),
    ("run a -c 'echo $NXLOCK_NAME | tr a b'", 0, "~b", "!nxlock"),
    ("run a -c 'exit 7'", 7),
    ("run a -c 'kill -TERM $$'", 143),
    ("run a -c {d}/nothing", 127),
    ("run a --command 'test a = a'", 0),
    ("run a '--command=test a = a'", 0),
    ("run a '-ctest a = a'", 0),
    ("run a -c 'test $NXLOCK_TTL_MS = 9000' --ttl 9", 0),
    ("run a -c 'test \"$(redis-cli -s {socket} GET a)\" = $NXLOCK_TOKEN'", 0),
    ("run a -c 'test \"$(cut -d \" \" -f 5 /proc/$$/stat)\" = $$'", 0),
    # A lock that is held around the command is never waited for.
    ("run a -- {nx} run a " + TOUCH, 64,
     "'a' is held by the enclosing 'nxlock run'"),
    ("run a -c '{nx} run a -c \"touch {started}\"; exit $?'", 64),
    ("run a -- {nx} acquire a", 64),
    ("run a -- {nx} wait a", 64, "'a' is held by the enclosing 'nxlock run'"),
    ("run a -- {nx} wait a -w 100ms", 75),
    ("run a -- {nx} run b2 -- {nx} wait a", 64),
    ("run a -- {nx} run a -n " + TOUCH, 75),
    ("run a -- {nx} run a -w1200ms " + TOUCH, 75),
    ("run a -- {nx} run b2 -- true", 0),
    ("run a -- {nx} run a --prefix q: -- true", 0),
    ("run a -- {nx} status a", 0),
    ("run a -- sh -c 'export first=$NXLOCK_TOKEN; exec {nx} run b2 -- sh -c \""
     "export second=\\$NXLOCK_TOKEN; exec {nx} run c2 -- sh -c"
     " \\\"test \\\\\\\"\\\\\\$NXLOCK_OUTER\\\\\\\" ="
     " \\\\\\\"\\\\\\$first \\\\\\$second\\\\\\\"\\\"\"'", 0),
    # Left over from an outer lock that has ended.
    ("db SET n stranger PX 700", "OK"),
    (f"NXLOCK_NAME=n NXLOCK_TOKEN={ONE} run n -- true", 0),
)

# ------------------------------------------------------------- what is reported

VERBOSE = (
    ("run a -v --ttl 45s -- true", 0, "acquired 'a' ",
     "for 45s, fencing token ", "released 'a', held for "),
    ("?scheme=timestamp run a -v -- true", 0, "acquired 'a' ", "for 30s",
     "has no fencing token", "!, fencing token"),
    ("run a -v -- sh -c 'exit 3'", 3, "released 'a'"),
    ("run a -v --ttl 1500ms -- sleep 0.8", 0, "renewed 'a', "),
    ("run v -v --at-least 20s -- true", 0, "'v' stays locked for 1",
     "--at-least 20s", "!released"),
    ("db DEL v", "1"),
    ("run a -v --at-least 20s -- {d}/nothing", 127, "released 'a'"),
    ("acquire v -v --ttl 20s", 0, "acquired 'v' ", "for 20s"),
    ("renew v {token} -v --ttl 40s", 0, "renewed 'v', 3"),
    ("release v {token} -v", 0, "released 'v'"),
    ("acquire v --ttl 1500ms", 0),
    ("wait v -v", 0, "'v' is free; waited "),
    ("wait v", 0, ""),
    (f"db SET v {FOREIGN_TOKEN} PX 60000", "OK"),
    ("wait v -w 300ms", 75, ""),
    ("wait v -w 0", 75),
    ("wait v -v -w 300ms", 75, "waiting for 'v': held by db7:41233:backup, ",
     "'v' is held by db7:41233:backup", "!" + ONE[:18]),
    ("db DEL v", "1"),
    ("db LPUSH list x", "1"),
    ("wait list", 69, "'list'", "other data"),
)

BY_HAND = (
    ("acquire h --ttl 20s", 0),
    ("db GET h", "{token}"),
    ("db PTTL h", (19000, 20000)),
    ("status h", 0, "~h held by .*:.*:.*, 20s left"),
    ("renew h {token} --ttl 50s", 0, ""),
    ("db PTTL h", (40000, 50000)),
    ("renew h {token} --ttl 1s", 0),
    ("db PTTL h", (40000, 50000)),
    (f"release h {OTHER}", 79, "not held under this token"),
    (f"renew h {OTHER}", 79, "not held under this token"),
    ("db GET h", "{token}"),
    ("release h {token}", 0, ""),
    ("release h {token}", 79, "cannot release 'h'",
     "the token is of another one", "nxlock status h"),
    ("renew h {token}", 79, "cannot renew 'h'", "nxlock status h"),
    ("db EXISTS h", "0"),
    ("acquire h --ttl 900ms", 0),
    ("wait h", 0),
    ("renew h {token}", 79),
    ("release h {token}", 79),
    ("db SET h stranger PX 100000", "OK"),
    ("renew h {token}", 79),
    ("release h {token}", 79),
    ("db GET h", "stranger"),
)

# ------------------------------------------------------- locks that are times


def stamps(option):
    """With a fencing token, and without the permission for one."""
    return (
        (f"db SET t '1600000000{BLANKS}'", "OK"),
        (f"run -n {option} t -- true", 0),
        ("db EXISTS t", "0"),
        (f"db SET t '1600000000{BLANKS}'", "OK"),
        (f"run -w 5s {option} t -- true", 0),
        (f"db SET t '4000000000{BLANKS}'", "OK"),
        (f"run t -n {option} {TOUCH}", 75),
        (f"run t -w 1s {option} {TOUCH}", 75),
        ("db SET t 1600000000", "OK"),
        (f"run t -n {option} {TOUCH}", 75),
        (f"run -n {option}?interop=1 t -- true", 0),
        # It ends before the command looks again who holds it, after 10 s.
        (f"db SET t '{{soon}}{BLANKS}'", "OK"),
        (f"run {option} t -- true", 0, 9),
        ("db EXISTS t", "0"),
    )


STAMPS = (
    ("?scheme=timestamp run t -- {nx} status t", 0,
     "~t held by 1[0-9]*, 3[0-9]s left"),
    (f"db SET t '1600000000{BLANKS}'", "OK"),
    ("status t", 1,
     "~t free, left by 1600000000, expired 2020-09-13 12:26:.*"),
    ("status --json t", 1,
     '~.*"value":"1600000000","value_ends_s":1600000000,.*'),
    ("db SET t 1600000000.123", "OK"),
    ("?interop=1 status t", 1,
     "~t free, left by 1600000000.123, expired 2020-09-13 12:26:41 UTC"),
    ("db SET t 1600000000", "OK"),
    ("status t", 0, "~t held by 1600000000, never expires.* 2020-09-13 12:26:"
     ".*interop=1.*"),
    ("?interop=1 status t", 1,
     "~t free, left by 1600000000, expired 2020-09-13 12:26:40 UTC"),
    ("status --json t", 0, '~.*"value":"1600000000",'
     '"value_ends_s":1600000000,"left_ms":null,.*'),
    (f"db SET t '4000000000{BLANKS}'", "OK"),
    ("status --json t", 0, "!" + BLANKS),
    ("db DEL t", "1"),
    ("?scheme=timestamp run a -- true", 0, "!weaker promises"),
    ("?scheme=timestamp run -v a -- true", 0, "once weaker promises",
     "docs/guarantees.md", "{socket}"),
    ("run -v a -- true", 0, "!weaker"),
    ("db ACL SETUSER guest reset on >Zqx7 ~t +@all", "OK"),
    *stamps("--url={url}"),
    *stamps("--url=unix://guest:Zqx7@{socket}"),
    # With a fraction of a second, as time.time() of Python has it.
    ("db SET t 4000000000.125", "OK"),
    ("?scheme=timestamp acquire t -n", 75),
    ("db SET t 1600000000.125", "OK"),
    ("?interop=0 acquire t -w 100ms", 75),
    *(row for query in ("interop=1", "scheme=timestamp") for row in (
        ("db SET t 1600000000.125", "OK"), (f"?{query} acquire t -n", 0),
        ("release t {token}", 0))),
    ("?scheme=timestamp run t -- {nx} run t -- true", 64,
     "enclosing 'nxlock run'"),
    ("?scheme=timestamp run t -- {nx} run u -- {nx} run t -- true", 64),
    ("db EXISTS t u", "0"),
    ("?scheme=timestamp acquire t", 0),
    ("renew t {token}", 0),
    ("release t {token}", 0),
    ("db EXISTS t", "0"),
    ("release t {token}", 79),
)

# -------------------------------------------------- locks that several hold


def share(text):
    """A token alone, with that share."""
    return rf"=[0-9a-f-]{{36}}{re.escape(text)}@\S+\n"


NOT_VALID = "is not valid"
EXCLUDE = "exclude each other"
PERMITS = (
    *(row for words, text in (
        ("", ""), ("--permits 1", ""), ("--permits 1 --weight 1", ""),
        ("--permits 2", "+1/2"), ("--permits=4 --weight=3", "+3/4"),
        ("--permits 4 --weight 4", "+4/4"),
        ("--permits 2147483647 --weight 2147483647",
         "+2147483647/2147483647"),
        ("-s", "+1/0"), ("--shared", "+1/0"), ("-sn", "+1/0"))
      for row in ((f"acquire p {words}", 0, share(text)),
                  ("release p {token}", 0, ""), ("db DBSIZE", "0"))),
    *((f"acquire p {words}", 64, "=", f"once nxlock: {said}")
      for words, said in (
          ("--permits 0", f"--permits '0' {NOT_VALID}: use a number from 1 to"),
          *((f"--permits {number}", f"--permits '{number}' {NOT_VALID}")
            for number in ("-1", "4x", "2147483648", 20 * "9")),
          ("--permits", "--permits needs a value: --permits N"),
          ("--weight 1", "--weight has no effect without --permits"),
          ("--permits 4 --weight 5", "--weight 5 is more than --permits 4"),
          ("--permits 1 --weight 2", "--weight 2 is more than --permits 1"),
          ("--permits 4 --weight 0", f"--weight '0' {NOT_VALID}"),
          ("-s --permits 4", f"--shared (-s) and --permits {EXCLUDE}"),
          ("-s --permits 1", f"--shared (-s) and --permits {EXCLUDE}"),
          ("-s --weight 1", f"--shared (-s) and --weight {EXCLUDE}"),
          ("--shared=yes", "--shared takes no value"),
          ("--permits 2 -u {url}?scheme=timestamp",
           "'p': permits is above 1 with scheme=timestamp"),
          ("-s -u {url}?scheme=timestamp", "'p': shared is 1 with scheme="))),
    *((f"{words} --permits 2 -u {{url}} -u {{url}}x{end}", 64,
       "'p': permits is above 1 with several servers: ")
      for words, end in (("acquire p", ""), ("run p", " -- true"),
                         ("wait p", ""))),
    *((f"once p {option} -- true", 64, f"once has no option {said}")
      for option, said in (("--permits 2", "'--permits': "), ("-s", "'-s'"),
                           ("--shared", "'--shared': "),
                           ("--weight 2", "'--weight': "))),
    *((f"status p {option} 2", 64, f"status has no option '{option}'; "
       "'nxlock status --help' lists its options")
      for option in ("--shared", "--permits", "--weight")),
    ("run p --weight 2 -- true", 64, "--weight has no effect without"),
    ("wait p --permits 2 --weight 3", 64, "--weight 3 is more than"),
    (f"release p {ONE}+2/1", 64, "TOKEN is not a token"),
    (f"release p {ONE}+1/4", 79,
     "cannot release 'p': it is not held under this token"),
    (f"release {ONE}+1/4 p", 64, "NAME and TOKEN are swapped"),
    # What CMD gets: only one of several permits has no fencing token.
    *((f"NXLOCK_FENCE=7 run p {words} -c 'echo $NXLOCK_TOKEN $NXLOCK_FENCE'", 0,
       share(text).replace("\\n", fence), "!nxlock")
      for words, text, fence in (
          ("", "", r" (?!7\n)\d+\n"), ("-s", "+1/0", r" (?!7\n)\d+\n"),
          ("--permits 3", "+1/3", r"\n"),
          ("--permits 1", "", r" (?!7\n)\d+\n"))),
    # A command that waits for what its own run holds.
    *((f"run p {outer} -- {{nx}} run p {inner} -- true", code,
       "deadlock" if code else "")
      for outer, inner, code in (
          ("-s", "-s", 0), ("-s", "", 64), ("", "-s", 64),
          ("--permits 2", "--permits 2", 0),
          ("--permits 2", "--permits 2 --weight 2", 64),
          ("--permits 4 --weight 3", "--permits 4 --weight 2", 64),
          ("--permits 2", "-s", 0), ("-s", "--permits 2", 0))),
)

# ---------------------------------------------------------------------- status

NEVER = "not a lock, and it never expires"
ABOUT = r"  server: {url}\S*, connected, \S+ \S+, .*role primary[^\n]*\n"
STATUS = (
    *(row for make, code, out in (
        # What is at the key, the exit code, the output or the message.
        (("db DEL s", "0"), 1, "s free"),
        ((f"db SET s {FOREIGN_TOKEN} PX 100000", "OK"), 0,
         r"s held by db7:41233:backup, (100|9\d)s left"),
        ((f"db SET s {ONE} PX 100000", "OK"), 0,
         r"s held by 6fa459ea\.\.\. \(no label\), (100|9\d)s left"),
        ((f"db SET s {ONE}@z PX 7200000", "OK"), 0,
         r"s held by z, (2h|11\dm) left"),
        ((f"db SET s {ONE}@z", "OK"), 0, "s held by z, never expires"),
        (("db SET s stranger PX 100000", "OK"), 0,
         r"s held by stranger, (100|9\d)s left"),
        (("db SET s 'a b'", "OK"), 0, f"s holds 'a b': {NEVER}"),
        (("db SET s 'a\nb\033[2J\001'", "OK"), 0,
         rf"s holds 'a\?b\?\[2J\?': {NEVER}"))
      for row in (make, ("status s", code, f"={out}\n", "!nxlock:"),
                  ("status s -v", code, f"={out}\n{ABOUT}", "!nxlock:"))),
    ("db DEL s", "1"),
    ("db LPUSH s x", "1"),
    *((f"status s{more}", 69, "=", "nxlock: cannot look at 's'")
      for more in ("", " -v", " --json")),
    ("db DEL s", "1"),
    ("status s -v", 1, "!lock commands", "!waits"),
    ("?poll=1 status s -v", 1, "=.*waits by polling \\(poll=1\\)\n"),
    *((f"status s -u unix://{{d}}/nothing{more}", 69, "=", "{d}/nothing")
      for more in ("", " -v", " --json")),
    ("status s --json -u http://nowhere", 78, "=", "nxlock: "),
    ("db ACL SETUSER seer on >s3cret ~* +@all", "OK"),
    ("NXLOCK_PASSWORD=s3cret ?user=seer status s -v", 1, "!s3cret"),
    ("run r --ttl 20 -- {nx} status r", 0, "~r held by \\S+:\\d+:nxlock\\S*, "
     "\\d+s left"),
    ("status r", 1, "=r free\n"),
)

TABLES = {
    "misspelt": MISSPELT, "words": WORDS, "values": VALUES, "urls": URLS,
    "codes": CODES, "refused": REFUSED, "times": TIMES, "run": RUN,
    "verbose": VERBOSE, "by_hand": BY_HAND, "stamps": STAMPS,
    "permits": PERMITS, "status": STATUS, "denied": DENIED,
}


# ---------------------------------------------------------------------- --help

EVERYWHERE = ("url", "url-file", "name", "help", "password-file", "prefix",
              "cacert", "insecure")
COMMANDS = {
    "run": "no-wait wait ttl busy-code verbose command",
    "once": "keep", "acquire": "no-wait wait ttl busy-code verbose",
    "renew": "ttl", "release": "", "status": "verbose json", "wait": "wait",
    "list": "json", "unlock": "yes", "doctor": "json",
}


def helps(table):
    for spelling in ("--version", "-V"):
        code, out, err, _ = table.call(spelling)
        table.check(code == 0 and re.fullmatch(r"nxlock \d+\.\d+\.\d+\n", out)
                    and not err, spelling, out + err)
    code, overview, err, _ = table.call("--help")
    table.check(code == 0 and not err and re.search("^  nxlock run [a-z]",
                                                  overview, re.M),
              "--help begins with an example", overview)
    missing = [word for word in (
        *COMMANDS, "NXLOCK_URL", "/etc/nxlock.conf", "redis://127.0.0.1:6379",
        "'nxlock status --help'", "64", "65", "69", "70", "75", "76", "77",
        "78", "79", "126", "127", "128") if word not in overview]
    table.equal(missing, [], "--help names commands, codes and variables")
    for spelling in ("-h", "help"):
        table.equal(table.call(spelling)[1], overview, f"{spelling} is --help")
    connection = table.call("help connection")[1]
    missing = [word for word in (
        *(f"\n  {one}=" for one in (
            "db user password_file timeout_ms max_ttl_ms drift_ppm keepalive_s "
            "prefix sentinel_password_file sentinel_tls cacert verify sni"
        ).split()), "NXLOCK_URL", "NXLOCK_URL_FILE", "NXLOCK_PASSWORD",
        "NXLOCK_PASSWORD_FILE", "HARM: ") if word not in connection]
    table.equal(missing, [], "help connection names parameters and variables")
    for command, options in COMMANDS.items():
        code, out, err, _ = table.call(f"{command} --help")
        table.check(code == 0 and not err, f"{command} --help", err)
        parts = re.match(rf"nxlock {command} (NAME|\[)[^\0]*?\n  .*nxlock "
                         rf"{command}[^\0]*?\noptions:\n", out)
        table.check(parts and not re.search("^[A-Z]", parts[0], re.M),
                  f"{command} --help: synopsis, examples, options, prose", out)
        missing = [option for option in (*EVERYWHERE, *options.split())
                   if not re.search(rf"--{option}\b", out)]
        table.equal(missing, [], f"{command} --help: its options")
        table.check("--password " not in out and
                    "'nxlock help connection'" in out and
                    not re.search("://[^:/ ]*@", out),
                  f"{command} --help: no password, and where the rest is", out)
        table.check(max(map(len, out.splitlines())) <= 80,
                    f"{command} --help: fits a terminal", out)
        for spelling in (f"{command} -h", f"help {command}"):
            table.equal(table.call(spelling)[1], out, f"{spelling} is the same")
    table.check("--command" not in table.call("acquire --help")[1],
                "acquire --help has no option of run")
    table.equal(table.call("run x --help")[1], table.call("run --help")[1],
                "run x --help is run --help")


if __name__ == "__main__":
    sys.exit(play(Table, *(part(*table) for table in TABLES.items()), helps))
