#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A lock whose token is passed on: whoever renews it keeps it, also against the
# run that acquired it.
# Usage: test_hand.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

# A run that was stopped beyond its lease leaves the lock to whoever took it
# over.
handed_over() { # OPTION...
    rm -f "$dir/token"
    launch run h --ttl 1s --grace 100ms "$@" -- \
        sh -c "echo \$NXLOCK_TOKEN > $dir/token.new
            mv $dir/token.new $dir/token
            sleep 60"
    check "a run begins $*" await test -s "$dir/token"
    token=$(cat "$dir/token")
    nx renew h "$token" --ttl 60s
    check "its lock is taken over" test $code -eq 0
    kill -STOP "$pid"
    sleep 1.1 # beyond its lease, which nothing shows
    kill -CONT "$pid"
    ends 79 "and it is lost to the run"
    check "which leaves it alone" test "$(db GET h)" = "$token" \
        -a "$(db PTTL h)" -gt 30000
    db DEL h > /dev/null
}

start_server
handed_over
handed_over --at-least 500ms
done_testing
