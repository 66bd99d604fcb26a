#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A child never outlives its lease: renewed while it runs, and if that fails
# it is told and then killed before the server may give the name away.
# Usage: test_lease.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

# Runs a child under a lease of $1 that waits for the file go; $2 is what it
# does on TERM. Further words are options of nxlock.
hold() {
    ttl=$1
    handler=$2
    shift 2
    rm -f "$dir/ready" "$dir/ended"
    launch run l --ttl "$ttl" "$@" -- sh -c 'trap "$1" TERM; cd "$0"
        echo $$ > new; mv new ready
        while [ -e "$0" ] && [ ! -e go ]; do sleep 0.1; done' \
        "$dir" "$handler"
    await test -e "$dir/ready"
}
rises() { # the lease has become longer since the last look
    left=$(db PTTL l)
    [ "$left" -gt "$last" ] && return 0
    last=$left
    return 1
}

renewed() {
    hold 900ms ': > ended'
    token=$(db GET l)
    for round in 1 2 3 4; do
        last=$(db PTTL l)
        check "renewal $round" await rises
    done
    check "under the same token" test "$(db GET l)" = "$token"
    : > "$dir/go"
    ends 0 "and the child ends as it likes"
    check "without a word" test ! -s "$dir/err"
    rm -f "$dir/go"
}

taken_away() {
    hold 900ms ': > ended; exit 0'
    db SET l stranger PX 100000 > /dev/null
    ends 79 "a lock taken away gives 79"
    said "and is said" "lost 'l'"
    check "the child got TERM" test -e "$dir/ended"
    check "the new holder is untouched" test "$(db GET l)" = stranger
    db DEL l > /dev/null

    hold 900ms ''
    db DEL l > /dev/null
    ends 79 "a child deaf to TERM is killed"
    check "and gone" gone "$(cat "$dir/ready")"
}

silence() {
    hold 1500ms ': > ended; exit 0'
    kill -STOP "$server"
    ends 79 "a server that is silent for too long gives 79"
    check "the child got TERM" test -e "$dir/ended"
    kill -CONT "$server"

    with_query drift_ppm=300000 hold 1500ms ''
    db CLIENT PAUSE 100000 WRITE > /dev/null
    await gone "$(cat "$dir/ready")"
    check "the child is dead before the server ends the lease" \
        test "$(db PTTL l)" -gt 0
    db CLIENT UNPAUSE > /dev/null
    ends 79 "and that gives 79, too"
    await is_free l

    with_query timeout_ms=200 hold 3s ': > ended'
    kill -STOP "$server"
    await grep -q "cannot renew '.*; trying again for [0-9.]*s\$" "$dir/err"
    kill -CONT "$server"
    check "a short silence is survived" \
        await grep -q 'after all, [0-9.]*m\?s to spare$' "$dir/err"
    : > "$dir/go"
    ends 0 "and the child's code is kept"
    check "which was not disturbed" test ! -e "$dir/ended"
    rm -f "$dir/go"

    with_query timeout_ms=200 hold 3s ''
    kill -STOP "$server"
    : > "$dir/go"
    ends 0 "a release that is not answered keeps the child's code"
    said "and its end is announced" "cannot release 'l': " \
        "; it expires within 3s"
    kill -CONT "$server"
    await is_free l
    rm -f "$dir/go"
}

frozen() {
    hold 900ms ': > ended'
    kill -STOP "$pid"
    await is_free l
    kill -CONT "$pid"
    ends 79 "a frozen nxlock finds its lease over"
}

orphan() {
    "$nxlock" run s -- sh -c 'echo $$ > "$0/orphan"
        kill -KILL $NXLOCK_SUPERVISOR_PID
        while [ -e "$0" ]; do sleep 0.1; done' "$dir" 2> /dev/null
    await test -s "$dir/orphan"
    check "a killed nxlock takes its child along" await gone \
        "$(cat "$dir/orphan")"
    db DEL s > /dev/null
}

start_server
renewed
taken_away
silence
frozen
orphan
done_testing
