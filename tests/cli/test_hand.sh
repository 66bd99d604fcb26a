#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A lock by hand: acquire leaves it held, whoever has the token renews and
# releases it, and nobody else does.
# Usage: test_hand.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

other=00000000-0000-4000-8000-000000000000

by_hand() {
    # Directly, for it is the caller's lock, which stands in the label.
    "$nxlock" acquire h --ttl 20s > "$dir/out" 2> "$dir/err"
    check "acquire" test $? -eq 0
    token=$(cat "$dir/out")
    check "prints the token" test "$(db GET h)" = "$token"
    check "which is one word" test "$(wc -w < "$dir/out")" -eq 1
    check "and nothing else" test ! -s "$dir/err"
    check "for the lease that was asked for" test "$(db PTTL h)" -gt 19000 \
        -a "$(db PTTL h)" -le 20000
    gives 0 "status, held" status h
    check "tells by whom" grep -q "^h held by .*:$$:.*, 20s left$" "$dir/out"
    gives 0 "renew" renew h "$token" --ttl 50s
    silent "is silent"
    check "prolongs" test "$(db PTTL h)" -gt 40000
    gives 0 "renew never shortens" renew h "$token" --ttl 1s
    check "and the long lease stands" test "$(db PTTL h)" -gt 40000
    gives 79 "release under another token" release h $other
    said "says that it is lost" "not held under this token"
    check "and the lock stands" test "$(db GET h)" = "$token"
    gives 79 "renew under another token" renew h $other
    said "says that it is lost" "not held under this token"
    check "and the lock stands" test "$(db GET h)" = "$token"
    gives 0 "release" release h "$token"
    silent "is silent"
    check "frees" is_free h
    gives 79 "release twice" release h "$token"
    gives 79 "renew after release" renew h "$token"
    check "does not bring it back" is_free h
}

expired() {
    gives 0 "acquire with a short lease" acquire h --ttl 300ms
    token=$(cat "$dir/out")
    check "which runs out" await is_free h
    gives 79 "renew afterwards" renew h "$token"
    gives 79 "release afterwards" release h "$token"
    db SET h stranger PX 100000 > /dev/null
    gives 79 "renew when somebody else has it" renew h "$token"
    gives 79 "release when somebody else has it" release h "$token"
    check "leaves it to him" test "$(db GET h)" = stranger
    db DEL h > /dev/null
}

cannot_print() {
    "$nxlock" acquire h > /dev/full 2> "$dir/err"
    check "acquire that cannot print fails" test $? -eq 70
    said "and says so" "cannot print" "'h'"
    check "and releases" await is_free h
    "$nxlock" acquire h >&- 2> /dev/null
    check "acquire with its output closed fails" test $? -eq 70
    check "and releases" await is_free h
}

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
by_hand
expired
cannot_print
handed_over
handed_over --at-least 500ms
done_testing
