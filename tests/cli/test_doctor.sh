#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A server with nothing wrong, then one thing after the other made wrong with
# it: each is found, said with its remedy, and told by the exit code.
# Usage: test_doctor.sh PATH-OF-NXLOCK PATH-OF-NO_NAMES
. "${0%/*}/rig.sh"
no_names=$(readlink -f "$2")

# A sanitizer's program wants to be first in memory, before libfaketime.
ASAN_OPTIONS=${ASAN_OPTIONS-}${ASAN_OPTIONS:+:}verify_asan_link_order=0
export ASAN_OPTIONS

finds() { # NAME LEVEL WHAT WORDS: a line about it
    grep -q -e "^$2 .*\<$3: .*$4" "$dir/out" || sed 's/^/# /' "$dir/out"
    check "$1" grep -q -e "^$2 .*\<$3: .*$4" "$dir/out"
}
# CODE NAME ARGUMENT...
# shellcheck disable=SC2086 # a list of words
doctor() {
    want=$1
    what=$2
    shift 2
    gives "$want" "$what" doctor "$@"
    [ "$code" -eq "$want" ] || sed 's/^/# /' "$dir/out"
    worst "$want" || sed 's/^/# /' "$dir/out"
    check "and the lines agree" worst "$want"
}
worst() { # CODE: the worst that was printed is what it says
    case $1 in
        0) ! grep -q '^WARN\|^FAIL' "$dir/out" ;;
        1) grep -q '^WARN' "$dir/out" && ! grep -q '^FAIL' "$dir/out" ;;
        *) grep -q '^FAIL' "$dir/out" ;;
    esac
}
older() { # SECONDS
    up=$(db INFO server | tr -d '\r' | sed -n 's/^uptime_in_seconds://p')
    [ "${up:-0}" -ge "$1" ]
}

doctor 69 "no server" -u "unix://$dir/nothing"
finds "is found" FAIL "unix://$dir/nothing reach" \
    "check that the server is running"
check "with its address once" fails grep -q "nothing.*$dir/nothing" "$dir/out"
gives 78 "nor a URL" doctor -u "http://x"
gives 64 "two names" doctor a b
start_server --appendonly yes --appendfsync always
NXLOCK_URL="$NXLOCK_URL?max_ttl_ms=1000" # so that a server is soon older

# Freshly restarted.
doctor 0 "just started, with a file of all it was told"
finds "is noted" note age "restarted [0-9.]*s ago, with an append-only file"
db CONFIG SET appendonly no > /dev/null
gives 1 "just started, without" doctor -u "unix://$socket"
finds "is found" WARN age \
    "restarted [0-9.]*s ago: locks of up to 1m .* Remedy: wait"
db CONFIG SET appendonly yes > /dev/null

await older 4
doctor 0 "a good server"
finds "is older than a lease by default" ok age \
    "up for [0-9.]*s, longer than max_ttl_ms (1s)"
for what in reach version role age eviction persistence database clock \
    "round trip" scripts waiting server; do
    check "is asked for $what" grep -q "^ok .*\<$what: " "$dir/out"
done
finds "with its times" ok "round trip" \
    "acquired in .*ms, extended in .*ms, released in .*ms"
finds "and its lock commands" ok server "lock commands SET NX PX + scripts"
finds "and how locks wait" ok waiting "in line: first come, first served"
with_query poll=1 doctor 0 "a good server without lines"
finds "is noted" note waiting "by polling (poll=1): .*random"
check "and says nothing" test ! -s "$dir/err"
doctor 0 "a good server for a name" invoice:42
doctor 0 "with a prefix" invoice:42 --prefix app:
check "nothing of it is left" test "$(db DBSIZE)" -eq 0
db SET invoice:42 mine > /dev/null
doctor 0 "for a name that is held" invoice:42
check "which is left alone" test "$(db GET invoice:42)" = mine
db DEL invoice:42 > /dev/null
gives 0 "as JSON" doctor --json
role='"what":"role","finding":"[^"]*"'
check "a line is an object" grep -qx \
    "{\"v\":1,\"level\":\"ok\",\"server\":\"unix://[^\"]*\",$role}" "$dir/out"
check "and each is" fails grep -qv '^{"v":1,"level":"[a-z]*",.*"}$' "$dir/out"

# Eviction.
for policy in allkeys-lru allkeys-random volatile-ttl; do
    db CONFIG SET maxmemory-policy $policy > /dev/null
    doctor 1 "$policy"
    finds "is found" WARN eviction "$policy: .*Remedy: .*noeviction"
    finds "and that it rests" WARN eviction "maxmemory is 0"
done
db CONFIG SET maxmemory 1gb > /dev/null
doctor 1 "and with a limit"
finds "is found" WARN eviction "two clients can hold one lock\. Remedy"
db CONFIG SET maxmemory 0 maxmemory-policy noeviction > /dev/null

# Persistence.
db CONFIG SET appendfsync everysec > /dev/null
doctor 0 "fsync now and then"
finds "is noted" note persistence "fsync everysec: .*last second"
db CONFIG SET appendonly no > /dev/null
doctor 1 "no persistence"
finds "is found" WARN persistence \
    "no append-only file: .*Remedy: CONFIG SET appendonly yes"
db CONFIG SET save '3600 1' > /dev/null
doctor 1 "snapshots"
finds "are found" WARN persistence "snapshots only"
db CONFIG SET save '' appendonly yes appendfsync always > /dev/null

# No memory for the name of the test lock: nothing was tried, so the exit code
# cannot be 0.
export LD_PRELOAD="$no_names"
doctor 70 "no memory"
unset LD_PRELOAD
finds "is a failure" FAIL "round trip" "out of memory"

# Records of nxlock once. What they need is not asked of a server for locks.
check "records are not asked for" fails grep -q '\<once: ' "$dir/out"
doctor 0 "a good server for records" --once
finds "is found" ok once "append-only file, fsync always, noeviction: "
doctor 0 "and for those of a name" invoice:42 --once
check "nothing of it is left" test "$(db DBSIZE)" -eq 0
db CONFIG SET appendfsync everysec > /dev/null
doctor 1 "records that may be synced late" --once
finds "are found" WARN once \
    "fsync everysec: .*last second.* Remedy: CONFIG SET appendfsync always"
check "and that is all" fails grep -q '^ok .*\<once: ' "$dir/out"
db CONFIG SET appendfsync always appendonly no > /dev/null
doctor 69 "records that a restart loses" --once
finds "are found" FAIL once \
    "no append-only file: .*every record.* Remedy: CONFIG SET appendonly yes"
gives 69 "and as JSON" doctor --once --json
check "too" grep -q '"level":"FAIL",.*"what":"once","finding":"no append-' \
    "$dir/out"
doctor 1 "which is a warning without records"
db CONFIG SET appendonly yes > /dev/null
for policy in allkeys-lru volatile-ttl; do
    db CONFIG SET maxmemory-policy $policy > /dev/null
    doctor 1 "records that may be evicted by $policy" --once
    finds "are found" WARN once "$policy: when memory is full, .* again\."
done
finds "with what may go" WARN once "records of what was done may be evicted"
db CONFIG SET maxmemory-policy noeviction > /dev/null
db CONFIG SET maxmemory 1mb > /dev/null
doctor 69 "a full server" --once
finds "is found" WARN once "% of maxmemory is used: .* in doubt\. Remedy"
db CONFIG SET maxmemory 1gb > /dev/null
doctor 0 "one with room" --once
db CONFIG SET maxmemory 0 > /dev/null

# Rights.
user() { # NAME RULE...
    one=$1
    shift
    db ACL SETUSER "$one" reset on '>sesame-seed' '~*' +@all "$@" > /dev/null
}
as() { # USER COMMAND...: of doctor
    one=$1
    shift
    with_query "user=$one" with_password sesame-seed "$@"
}
{
    user noeval -eval -evalsha
    as noeval doctor 1 "a user without EVAL"
    finds "is found" WARN rights \
        "scripts cannot be run.*evalsha.*: ACL SETUSER noeval +set .*+eval "
    finds "and what is used instead" ok server "lock commands SET NX PX + WATCH"
    user noline '&*' -zadd
    as noline doctor 0 "a user who may not wait in line"
    finds "is noted" note waiting "by polling (no permission .*random"
    finds "and how to allow it" note waiting \
        "Remedy: ACL SETUSER noline .*+zadd"
    check "nothing is left of the try" test "$(db DBSIZE)" -eq 0
    user nolisten '&*' -subscribe
    as nolisten doctor 0 "a user who may not listen"
    finds "waits all the same" note waiting \
        "in line without messages (NOPERM .*subscribe.*): first come"
    finds "and how to be told" note waiting \
        "Remedy: ACL SETUSER nolisten .*+subscribe"
    user notime -time
    as notime doctor 1 "a user without TIME"
    finds "is found" WARN rights \
        "cannot create a fencing.*Remedy: ACL SETUSER notime .*+time"
    finds "and scripts are used" ok server "lock commands SET NX PX + scripts"
    check "and not called slow or missing" fails grep -q "slower\|no script" \
        "$dir/out"
    user noinfo -info
    as noinfo doctor 1 "a user without INFO"
    finds "is found" WARN rights \
        "INFO is refused.*Remedy: ACL SETUSER noinfo +info"
    db CONFIG SET appendonly no > /dev/null
    user noconfig -config
    as noconfig doctor 1 "a user without CONFIG"
    finds "does not know of snapshots, and says so" WARN persistence \
        "whether there are snapshots is unknown (CONFIG GET): a restart"
    db CONFIG SET appendonly yes > /dev/null
    user noset -set
    as noset doctor 77 "a user without SET"
    finds "is found" FAIL "round trip" \
        "cannot acquire the test.*'set'.* otherwise ACL SETUSER noset +set"
    finds "and how to allow everything" note rights \
        "docs/acl.md has .* all permissions of run, doctor and the other"
    user keys resetkeys '~inv*' '~{inv*'
    as keys doctor 77 "without NAME, a user of certain names"
    finds "is told to write one" FAIL "round trip" \
        "Remedy: .*only for certain names, .*: nxlock doctor NAME; otherwise "
    user keys resetkeys '~inv:1' '~{inv:1}*'
    as keys doctor 77 "a user of one name alone" inv:1
    finds "is told what was tried beside it" FAIL "round trip" \
        "test lock 'inv:1:doctor:[^']*': .*Remedy: .*SETUSER keys .*~inv:1\* "
    user keys resetkeys '~inv*' -acl
    as keys doctor 77 "a user of other keys" job
    finds "is found" FAIL rights "cannot read the lock's key, 'job'"
    finds "and how to allow everything" note rights "docs/acl.md has "
    as keys doctor 1 "a user without the counter's" inv:1
    finds "is found" WARN rights \
        "read .*'{inv:1}:f'.*Remedy: ACL SETUSER keys .*~inv:1\* ~{inv:1\*"
    user keys resetkeys '~inv*'
    as keys doctor 77 "who is known" job
    finds "is named with the keys" FAIL rights \
        "Remedy: ACL SETUSER keys +pttl ~job\* ~{job\*$"
    # As the remedy says, no more and no less.
    db ACL SETUSER keys +pttl '~job*' '~{job*' > /dev/null
    as keys doctor 0 "after which all is well" job
    user keys resetkeys '~inv*' -acl
    as keys doctor 77 "a prefix, too" job --prefix app:
    finds "is named" FAIL rights "~app:job\* ~{app:job\* ~app:{job\*"
    user keys resetkeys '~inv*' '~{inv*'
    as keys doctor 0 "a user of the right keys" inv:1
    as keys doctor 0 "and of the record's" inv:1 --once
    user keys resetkeys '~inv:1' '~{inv:1}:f' '~inv:1:doctor:*' \
        '~{inv:1:doctor:*' -acl
    as keys doctor 1 "a user without the record's" inv:1 --once
    finds "is found" WARN rights "cannot read its record, '{inv:1}:once': "
    finds "and how to allow everything" note rights \
        "docs/acl.md has .* of run, once, doctor and"
    user noconfig -config
    as noconfig doctor 1 "a user without CONFIG, for records" --once
    finds "is found" WARN once "fsync unknown: "
    user noinfo -info
    as noinfo doctor 1 "a user without INFO, for records" --once
    finds "is found" WARN once "append-only file is unknown"
    db ACL SETUSER default '>sesame' > /dev/null 2>&1
    gives 77 "no password" doctor
    finds "is found" FAIL reach "NOAUTH Authentication required; check the user"
    check "and nothing else is said of the server" \
        test "$(grep -vc ': from ' "$dir/out")" -eq 1
    redis-cli -s "$socket" -a sesame ACL SETUSER default nopass \
        > /dev/null 2>&1
    with_query user=keys with_password wrong doctor 77 "a wrong password"
    finds "is found" FAIL reach "WRONGPASS"
    unsaid "and not shown" ">wrong\|:wrong@"
    check "and nothing else is said of the server" \
        test "$(grep -vc ': from ' "$dir/out")" -eq 1
    # PING is denied: to a user who is logged in, with a password or without.
    user noping -ping
    as noping doctor 0 "a user without PING"
    finds "is logged in" ok reach "PING is not permitted"
    db ACL SETUSER default -ping > /dev/null
    doctor 0 "the default user without PING"
    finds "is logged in" ok reach "PING is not permitted"
    db ACL SETUSER default +ping > /dev/null
    user few -@all +ping +set +get +del +pttl +eval +evalsha '+script|load' \
        +getrange +pexpire +exists +incr +time +command
    as few gives 1 "one who may lock and nothing else" doctor
    check "and nothing is left of it" test "$(db DBSIZE)" -eq 0
    rights=$(sed -n -e '/made: lines/,/end -->/{s/backup:/job:/g' \
        -e 's/^    ACL SETUSER jobs \(~.*\)/\1/p' -e '}' \
        "${0%/*}/../../docs/acl.md")
    set -f
    # shellcheck disable=SC2086
    db ACL SETUSER locks reset on $rights '>PASSWORD' > /dev/null
    set +f
    locks="-u unix://locks@$socket"
    export NXLOCK_PASSWORD=PASSWORD
    # shellcheck disable=SC2086
    {
        gives 0 "the user of docs/acl.md" doctor job:9 $locks?max_ttl_ms=1000
        gives 0 "who runs with all that is documented" run job:9 \
            --every 1h $locks -- true
        gives 77 "but not under another name" run other $locks -- true
    }
    unset NXLOCK_PASSWORD
    db DEL '{job:9}:f' '{job:9}:every' > /dev/null
    as few gives 1 "one who may lock and nothing else" doctor
    for what in eviction persistence clock; do
        check "is told what is not known: $what" grep -q \
            "^\(note\|ok\) .*\<$what: " "$dir/out"
    done
}

# Outside doctor, its name is given where a permission is missing; not where the
# login is refused, whatever the server is called.
user noset -set
as noset gives 77 "a user without SET, who acquires" acquire x
said "is sent to doctor" "'nxlock doctor x', with the same server and user"
ln -s "$socket" "$dir/NOPERM"
with_password wrong-one gives 77 "one with a wrong password" \
    status x -u "unix://noset@$dir/NOPERM"
said "is told the server" "/NOPERM"
unsaid "and is not sent there" "nxlock doctor"

# The database.
with_query db=99 doctor 78 "a database that there is not"
finds "is found" FAIL database "DB index.*; choose an existing database"
with_query db=99 gives 69 "outside doctor" status x
said "has a remedy, too" "DB index is out of range" \
    "; choose an existing database: /N at the end of the URL"
db -n 3 SET somebody there > /dev/null
doctor 1 "an empty one beside one that is not"
finds "is found" WARN database "is empty, but db3 has 1 key:"
with_query db=3 doctor 0 "but not the other"
db -n 3 DEL somebody > /dev/null

# The clock, this machine's: it is the difference that counts.
skewed() {
    faketime --exclude-monotonic -f "$1" "$nxlock" doctor \
        > "$dir/out" 2> "$dir/err"
    code=$?
}
why=
command -v faketime > /dev/null || why="no faketime"
[ -n "$why" ] || { skewed +1h; [ $code -le 1 ]; } ||
    why="this build of nxlock does not run under faketime"
if [ -n "$why" ]; then
    skip "a clock that is 5 s off" "$why"
else
    skewed +5s
    check "a clock that is ahead" test $code -eq 1
    finds "is found" WARN clock "\(5\|[45]\.[0-9]*\)s behind this machine's"
    skewed -5s
    check "a clock that is behind" test $code -eq 1
    finds "is found" WARN clock "\(5\|[45]\.[0-9]*\)s ahead of this machine's"
    finds "with what minds it" WARN clock \
        "Leases do not.*Remedy: synchronize .* NTP"
fi

# Replicas, on both sides.
mkdir "$dir/copy"
serve "$dir/copy" --replicaof 127.0.0.1 1 --appendonly yes
copy=unix://$dir/copy/socket
await redis-cli -s "$dir/copy/socket" PING
doctor 69 "a replica" -u "$copy"
finds "is found" FAIL role "a replica.*Remedy: give the URL of the primary"
finds "and takes nothing" FAIL "round trip" "READONLY"
listens() { # at a port that nobody else has taken meanwhile
    port=$(python3 -c 'import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])')
    test "$(db CONFIG SET port "$port")" = OK
}
await listens
redis-cli -s "$dir/copy/socket" REPLICAOF 127.0.0.1 "$port" > /dev/null
has_replica() {
    db INFO replication | grep -q '^connected_slaves:1'
}
if await has_replica; then
    doctor 1 "a primary with a replica"
    finds "is found" WARN role "with 1 replica:.*failover"
    doctor 1 "and for records" --once
    finds "is found" WARN once "with 1 replica: .*last records"
else
    result 1 "the replica finds the primary"
fi
redis-cli -s "$dir/copy/socket" REPLICAOF NO ONE > /dev/null

# Several.
mkdir "$dir/third"
serve "$dir/third"
third="-u unix://$dir/third/socket"
await redis-cli -s "$dir/third/socket" PING
# shellcheck disable=SC2086
{
    # Of the copy, which was promoted, a doctor that is new knows nothing.
    gives 1 "several servers, one young" doctor $third \
        -u "unix://$socket?durable=1&guard_failover=off" -u "$copy?durable=1"
    finds "says which" WARN "unix://$dir/third/socket age" \
        "has no vote until"
    finds "and what it means without a file" note persistence \
        "so it has no vote"
    finds "takes a lock of the others" ok "round trip" acquired
    gives 78 "several servers for records" doctor $third --once \
        -u "unix://$socket?durable=1" -u "$copy?durable=1"
    finds "is found" FAIL once "several servers keep no records"
    gives 1 "several servers without the restart guard" doctor $third \
        -u "unix://$socket?guard_restarts=off" -u "$copy"
    finds "is found" WARN "unix://$dir/third/socket age" \
        "restarted .* with guard_restarts=off: .*two clients can hold one lock"
    finds "and what it means without a file" WARN \
        "unix://$dir/third/socket persistence" "still held\. Remedy"
    check "and no line says that one has no vote" fails grep -q 'no vote' \
        "$dir/out"
    db ACL SETUSER default -info > /dev/null
    gives 77 "several, one without INFO" doctor \
        -u "unix://$socket?max_ttl_ms=1000" -u "$copy" $third
    finds "says what it lacks" FAIL "unix://$socket rights" "it has no vote"
}
"$nxlock" doctor > /dev/full 2> "$dir/err"
check "findings that cannot be printed" test $? -eq 70
said "not with the errno of something else" "standard output was closed"
done_testing
