#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A lock that is busy: skipped, waited for, and what a waiter says of it.
# Silent where nobody reads, for cron mails whatever a job prints.
# Usage: test_wait.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

uuid=6fa459ea-ee8a-4ca4-894e-db77e160355e
holder=$uuid@db7:41233:backup

lines() { # TEXT: how many lines of standard error have it
    grep -cF -e "$1" "$dir/err"
}
waiting_line() { # SECONDS, a pattern
    grep -q "^nxlock: waiting for 'w': held by db7:41233:backup, $1s left\$" \
        "$dir/err"
}

busy() {
    db SET b stranger PX 100000 > /dev/null
    refused 75 "busy, -n" b -n
    silent "is silent without a terminal"
    gives 75 "busy, -w" run b -w 50ms -- true
    silent "is silent, too"
    gives 75 "busy, -w 0" run b -w 0 -- true
    gives 75 "busy, -w longer than a look" run b -w 1200ms -- true
    silent "is silent, too"
    gives 0 "-E 0" run b -n -E 0 -- true
    gives 3 "--busy-code=3" run b -n --busy-code=3 -- true
    db SET b stranger PX 100000 > /dev/null
    gives 75 "-nv" run b -nv -- true
    said "says who" "'b' is held by stranger, 100s left"
    gives 75 "acquire of a busy lock" acquire b -n
    silent "prints nothing"
    check "the holder is untouched" test "$(db GET b)" = stranger
}

waiting() {
    db SET w stranger PX 100000 > /dev/null
    before=$(attempts)
    launch run w -- touch "$dir/waited"
    check "a waiter tries" await attempted "$before"
    check "and does not start" test ! -e "$dir/waited"
    db DEL w > /dev/null
    ends 0 "and runs when the lock is free"
    check "what it was to run" test -e "$dir/waited"
    silent "without a word"
    db SET w stranger PX 300 > /dev/null
    gives 0 "a lease that runs out is waited for" run w -w 5 -- true
    start=$(ms)
    db SET w stranger PX 100000 > /dev/null
    gives 75 "-w ends a wait" run w -w 600ms -- true
    took=$(($(ms) - start))
    check "not before its time ($took ms)" test $took -ge 550
    check "and not long after" test $took -lt 2500
    before=$(attempts)
    (trap '' HUP; exec "$nxlock" run w -- true) &
    pid=$!
    await attempted "$before"
    kill -HUP $pid
    before=$(attempts)
    check "a HUP that is ignored does not end a wait" await attempted "$before"
    db DEL w > /dev/null
    ends 0 "and the command runs"
}

message() {
    db SET w "$holder" PX 30000 > /dev/null
    start=$(ms)
    launch run w -v -- echo done
    check "-v says whom it waits for" \
        await waiting_line '[23][0-9]'
    check "but not at once" test $(($(ms) - start)) -ge 900
    before=$(attempts)
    await attempted $((before + 8)) # that takes longer than a second
    check "and says it once" test "$(wc -l < "$dir/err")" -eq 1
    unsaid "and never the token" "$uuid"
    db DEL w > /dev/null
    ends 0 "and then runs"
    check "its command" test "$(cat "$dir/out")" = "done"
    said "-v reports the grant and the release" "acquired 'w' after waiting" \
        "released 'w'"
    check "without a further word" test "$(wc -l < "$dir/err")" -eq 3
    db SET w "$holder" PX 30000 > /dev/null
    gives 75 "a wait that ends busy" run w -v -w 1500ms -- true
    check "says whom it waited for" waiting_line '[23][0-9]'
    said "and who has it still" "'w' is held by db7:41233:backup, "
    check "and that is all" test "$(wc -l < "$dir/err")" -eq 2
    gives 75 "a short wait" run w -v -w 300ms -- true
    check "says who has it only" test "$(lines waiting)" -eq 0 -a \
        "$(wc -l < "$dir/err")" -eq 1
    launch acquire w -v
    check "acquire -v says the same" \
        await waiting_line '[23][0-9]'
    db DEL w > /dev/null
    ends 0 "and then prints the token"
    check "alone" test "$(cat "$dir/out")" = "$(db GET w)"
    db DEL w > /dev/null
}

# A key that is used for something else will never be free.
other_use() {
    db RPUSH l element > /dev/null
    start=$(ms)
    refused 69 "a wait for a list" l
    said "is ended with the reason" "cannot acquire 'l'"
    check "soon" test $(($(ms) - start)) -lt 5000
    refused 69 "-n on a list" l -n
    said "has the reason, too" "cannot acquire 'l'"
    refused 69 "-w on a list" l -w 200ms
    gives 69 "acquire of a list" acquire l
    check "prints no token" test ! -s "$dir/out"
    gives 69 "a busy code does not hide it" run l -n -E 0 -- true
    for when in before after; do
        db SET l stranger PX 100000 > /dev/null
        launch run l -v -- touch "$dir/started"
        [ "$when" = before ] || await grep -q "waiting for 'l'" "$dir/err"
        printf 'MULTI\nDEL l\nRPUSH l element\nEXEC\n' | db > /dev/null
        ends 69 "a list that comes $when the look ends the wait"
        check "and nothing is started" fails started
        check "and the list stands" test "$(db LLEN l)" = 1
    done
    db DEL l > /dev/null
}

# Nobody holds it, but no grant counts: the waiter says why.
refused_grants() {
    with_query "wait_replicas=1&wait_ms=50" launch run r -v -- true
    check "a waiter says why its grants do not count" await grep -q \
        "waiting for 'r', which is not held: 0 of 1 replica had" "$dir/err"
    kill -TERM "$pid"
    ends 143 "and can be ended"
    check "and leaves no key" test "$(db EXISTS r)" = 0
}

# So will not data of a program, whose key has no end.
data() {
    db SET d "some program data" > /dev/null
    for wait in -n -w200ms ""; do
        # shellcheck disable=SC2086 # none or one
        refused 69 "run on data, '$wait'" d $wait -E 0
        said "is ended with the reason" "holds 'some program data'" redis-cli
        # shellcheck disable=SC2086 # none or one
        gives 69 "acquire on data, '$wait'" acquire d $wait
        check "prints no token" test ! -s "$dir/out"
    done
    gives 69 "wait for data" wait d
    said "is ended with the reason" "holds 'some program data'"
    check "and it stands" test "$(db GET d)" = "some program data"
    db SET d "$holder" > /dev/null
    gives 75 "a token without an end is a lock" run d -n -- true
    gives 75 "also for wait" wait d -w 100ms
    db SET d 4000000000 > /dev/null
    gives 75 "and so is a time" run d -n -- true
    db DEL d > /dev/null
}

# A server that cannot be asked is waited for like a lock.
unreachable() {
    db SET u "$holder" PX 100000 > /dev/null
    before=$(attempts)
    with_query timeout_ms=300 launch run u -v -- echo used
    await attempted "$before"
    stop_server
    rm -f "$socket"
    check "a server that goes is said" await grep -q "waiting for 'u': " \
        "$dir/err"
    start_server
    ends 0 "and waited for"
    check "and used when it is back" test "$(cat "$dir/out")" = used
    check "and the lock is free" is_free u
    stop_server
    rm -f "$socket"
    launch run u -v -- echo used
    check "a server that is not there is said" await grep -q \
        "waiting for 'u': .*$socket" "$dir/err"
    check "once" test "$(wc -l < "$dir/err")" -eq 1
    check "and nothing is started" test ! -s "$dir/out"
    start_server
    ends 0 "and waited for"
    check "and used when it comes" test "$(cat "$dir/out")" = used
    stop_server
    rm -f "$socket"
    launch run u -- echo used
    await watches "$pid"
    check "a silent wait for a server" fails gone "$pid"
    start_server
    ends 0 "ends with the server"
    check "without a word" test ! -s "$dir/err"
}

start_server
busy
waiting
message
other_use
data
refused_grants
unreachable
done_testing
