#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command over several servers: who they are, what is told of each, and
# that a server that forgets is waited for with a word about it.
. "${0%/*}/rig.sh"

start_server # which does not count here
unset NXLOCK_URL
young="--ttl 4900ms"
urls=
list=
for i in 1 2 3; do
    mkdir "$dir/$i"
    serve "$dir/$i"
    eval "pid$i=$server"
    urls="$urls -u unix://$dir/$i/socket"
    list="$list,unix://$dir/$i/socket"
done
list=${list#,}
limit=max_ttl_ms=5000 # one URL sets it for all of them
at() { # SERVER COMMAND...
    folder=$1
    shift
    redis-cli -s "$dir/$folder/socket" "$@" 2> /dev/null
}
for i in 1 2 3; do
    await at $i PING || echo "Bail out! server $i does not start"
done
old() { # all are older than any lock of $young
    for each in 1 2 3; do
        up=$(at $each INFO server | tr -d '\r' |
            sed -n 's/^uptime_in_seconds://p')
        [ "${up:-0}" -ge 7 ] || return 1
    done
}
held_at() { # KEY: at so many servers
    count=0
    for each in 1 2 3; do
        [ "$(at $each EXISTS "$1")" != 1 ] || count=$((count + 1))
    done
    echo $count
}
two_are_named() {
    test "$(grep -o "$dir/[123]/socket" "$dir/err" | sort -u | wc -l)" -ge 2
}
# They are lists of words.
# shellcheck disable=SC2086
{
    gives 0 "without the guard, at once" run a $urls?guard_restarts=off -- true
    gives 69 "with it, not of young servers" run a -n $urls -- true
    said "and is told why" "2 of 3 servers are needed" \
        "may have forgotten locks; its vote counts again in"
    await old
    gives 0 "of old ones" run a $urls?$limit $young -- true
    NXLOCK_URL=$list?$limit
    export NXLOCK_URL
    gives 0 "by a list in NXLOCK_URL" run a $young -- true
    gives 0 "which acquires too" acquire b $young
    token=$(cat "$dir/out")
    check "a majority has it" test "$(held_at b)" -ge 2
    gives 75 "and somebody else does not get it" run b -n $young -- true
    gives 0 "renews" renew b "$token" $young
    gives 0 "status: held" status b -v
    check "a line for the lock" grep -q '^b held by' "$dir/out"
    check "a line for each server" \
        test "$(grep -c '^  server: unix://.*, role primary' "$dir/out")" = 3
    check "who holds it there" \
        test "$(grep -c '^    held by ' "$dir/out")" -ge 2
    gives 0 "status as JSON" status b --json
    check "with a list of servers" python3 -c '
import json, sys
told = json.load(sys.stdin)
assert told["state"] == "held" and "server" not in told
assert len(told["servers"]) == 3
held = [s for s in told["servers"] if s["state"] == "held"]
assert len(held) >= 2 and all(s["left_ms"] <= 5000 for s in held)
assert all(s["owner"] == told["owner"] for s in held)
' < "$dir/out"
    gives 0 "releases" release b "$token"
    gives 1 "status: free" status b
    gives 79 "and releases once" release b "$token"

    # ------------------------------------------------------------ the flags
    for i in 1 2 3; do
        at $i CONFIG SET requirepass sesame > /dev/null
    done
    gives 77 "no password" run c -n $young -- true
    said "is denied" "NOAUTH"
    check "by two at least; the third is not waited for" two_are_named
    with_password sesame gives 0 "one password is for all of them" \
        run c -n $young -- true
    for i in 1 2 3; do
        redis-cli -s "$dir/$i/socket" -a sesame CONFIG SET requirepass "" \
            > /dev/null 2>&1
    done

    # ------------------------------------------------------------- the list
    gives 78 "the same server twice" \
        run d -u redis://a -u redis://b -u redis://a:6379 -- true
    said "is refused by name" "URLs 1 and 3" "redis://a:6379/0"
    gives 78 "two opinions" run d \
        -u 'redis://a?max_ttl_ms=1000' -u 'redis://b?max_ttl_ms=2000' -- true
    said "are refused by name" "max_ttl_ms" "URLs 1 and 2"
    gives 78 "one bad URL of three" run d -u redis://a,redis://b:x,redis://c \
        -- true
    said "has its number" "URL 2 of 3" "port"
    gives 78 "an empty one" run d -u redis://a:1,,redis://b -- true
    said "is named as such" "URL 1 of 2" "at byte 12" "empty element"
    gives 78 "one without a scheme" run d -u redis://a:1,b:2 -- true
    said "is named as such" "at byte 12" "scheme"

    # ----------------------------------------------------------- a minority
    kill -STOP $pid1
    gives 0 "one stopped" run e -n $young -- true
    silent "is nobody's matter"
    gives 1 "nor for status" status e -v
    check "which does not know of it, and why" \
        grep -q '^    unknown: .*no answer' "$dir/out"
    gives 1 "nor as JSON" status e --json
    check "which says why" python3 -c '
import json, sys
told = [s for s in json.load(sys.stdin)["servers"] if s["state"] == "unknown"]
assert len(told) == 1 and "no answer" in told[0]["why"], told
' < "$dir/out"
    kill -CONT $pid1
    at 1 ACL SETUSER default -@all +ping +client > /dev/null
    gives 0 "one refuses" run e -n -v $young -- true
    # On a busy machine two may have granted before the third one's refusal is
    # read; then there is nothing to tell of yet.
    again=0
    until grep -q "not take part" "$dir/err" || [ $((again += 1)) -gt 20 ]; do
        nx run e -n -v $young -- true
    done
    said "and is named with -v" "1 of 3 servers did not take part in a grant" \
        "$dir/1" "INFO is refused" "+info"
    gives 0 "or without" run e -n $young -- true
    silent "not, for cron"
    at 1 ACL SETUSER default +@all > /dev/null
    at 1 ACL SETUSER default -@scripting -getrange > /dev/null
    gives 1 "one cannot be looked at" status e -v
    check "and says why" grep -q '^    unknown: NOPERM' "$dir/out"
    at 1 ACL SETUSER default +@all > /dev/null

    # ----------------------------------------------------- a young majority
    kill -KILL $pid1 $pid2
    wait $pid1 $pid2 2> /dev/null
    for i in 1 2; do
        serve "$dir/$i"
        await at $i PING
    done
    NXLOCK_URL=$list?max_ttl_ms=3000
    launch run f --ttl 2900ms -- true
    ends 0 "who waits gets it"
    said "and was told what for" "waiting for 'f': 2 of 3 servers are needed" \
        "its vote counts again in"
}
done_testing
