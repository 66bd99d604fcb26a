#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A signal ends a wait, so that nothing is started after it; later it is the
# child's, with its whole group. Whatever ends nxlock, the lock does not stay.
# Usage: test_signals.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

number_of() { # SIGNAL
    case $1 in
        HUP) echo 1 ;;
        INT) echo 2 ;;
        QUIT) echo 3 ;;
        KILL) echo 9 ;;
        USR1) echo 10 ;;
        USR2) echo 12 ;;
        ALRM) echo 14 ;;
        TERM) echo 15 ;;
        XCPU) echo 24 ;;
        VTALRM) echo 26 ;;
        IO) echo 29 ;;
        RTMIN) echo 34 ;;
        RTMAX) echo 64 ;;
    esac
}

# All others that would end nxlock are treated as these are. By number, for
# not every shell has names for the last.
all='TERM INT HUP QUIT USR1 USR2 ALRM XCPU VTALRM IO RTMIN RTMAX'

while_waiting() {
    for signal in $all; do
        db SET w stranger PX 100000 > /dev/null
        before=$(attempts)
        launch run w -- touch "$dir/started"
        await attempted "$before"
        kill -"$(number_of "$signal")" "$pid"
        ends $((128 + $(number_of "$signal"))) "$signal ends a wait"
        silent "without a word"
        check "and leaves the key alone" test "$(db GET w)" = stranger
        db DEL w > /dev/null
        check "and nothing was started" fails started
        check "and the name stays free" is_free w
    done
    db SET w stranger PX 100000 > /dev/null
    before=$(attempts)
    launch run w -- touch "$dir/started"
    await attempted "$before"
    kill -KILL "$pid"
    ends 137 "KILL ends a wait"
    db DEL w > /dev/null
    check "and nothing was started" fails started
    check "and the name stays free" is_free w
    before=$(attempts)
    db SET w stranger PX 100000 > /dev/null
    launch acquire w
    await attempted "$before"
    kill -TERM "$pid"
    ends 143 "TERM ends the wait of acquire"
    check "which prints nothing" test ! -s "$dir/out"
    db DEL w > /dev/null
    launch run w -u "unix://$dir/nothing" -- touch "$dir/started"
    await watches "$pid"
    kill -TERM "$pid"
    ends 143 "TERM ends the wait for a server"
    check "and nothing was started" fails started
}

passed_on() {
    for signal in $all; do
        rm -f "$dir/ready" "$dir/got"
        launch run s -- sh -c '
            trap "echo $0 > \"$1/got\"; exit 5" $2
            : > "$1/ready"
            while [ -e "$1" ]; do sleep 0.1; done' \
            "$signal" "$dir" "$(number_of "$signal")"
        await test -e "$dir/ready"
        kill -"$(number_of "$signal")" "$pid"
        ends 5 "$signal is passed on"
        check "once to the child" test "$(cat "$dir/got")" = "$signal"
        check "whose end frees the lock" is_free s
    done
}

# A child with a child of its own; both pids stand in $dir/both.
family() { # OPTION...
    rm -f "$dir/both"
    launch run s "$@" -- sh -c '
        env --default-signal=INT,HUP,QUIT sh -c "$1" "$0" &
        echo $$ $! > "$0/new"; mv "$0/new" "$0/both"; wait' \
        "$dir" 'while [ -e "$0" ]; do sleep 0.1; done'
    await test -e "$dir/both"
    read -r child grandchild < "$dir/both"
}
all_gone() { # they are children of others, so their numbers stay gone
    check "$1" await gone "$child"
    check "and what it had started" await gone "$grandchild"
}

killed() {
    for signal in TERM INT HUP QUIT ALRM XCPU VTALRM IO RTMIN; do
        family
        check "a child under a lock" is_held s
        kill -"$(number_of "$signal")" "$pid"
        ends $((128 + $(number_of "$signal"))) "$signal that ends it is told"
        check "and the lock is free" is_free s
        all_gone "the child is gone"
    done
    family --ttl 2s
    start=$(ms)
    kill -KILL "$pid"
    ends 137 "KILL leaves no time for anything"
    check "the child is gone" await gone "$child"
    check "and the lock" await is_free s
    took=$(($(ms) - start))
    check "within its ttl ($took ms)" test $took -lt 3000
    family --ttl 2s
    # Ends a little before the lease does.
    db SET guard x PX $(($(db PTTL s) - 100)) > /dev/null
    kill -KILL "$pid"
    finish
    gives 0 "and the next one gets it" run s -w 10s -- true
    check "not before the lease of the killed one" is_free guard
}

# Who goes on after TERM goes on under the lock.
deaf() {
    rm -f "$dir/ready" "$dir/go"
    launch run s --ttl 900ms -- sh -c 'trap "" TERM; : > "$0/ready"
        while [ -e "$0" ] && [ ! -e "$0/go" ]; do sleep 0.1; done; exit 6' \
        "$dir"
    await test -e "$dir/ready"
    kill -TERM "$pid"
    before=$(calls pexpire)
    more() { [ "$(calls pexpire)" -ge $((before + 4)) ]; }
    check "a child deaf to TERM has its lease renewed" await more
    check "and the lock is held" is_held s
    : > "$dir/go"
    ends 6 "until it ends by itself"
    check "and then it is free" is_free s
}

start_server
while_waiting
passed_on
killed
deaf
done_testing
