#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The options of run that limit a command, and what it is given: its times, its
# descendants, its descriptors and variables, and what becomes of it without a
# lock.
# Usage: test_limits.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

deaf='trap "" TERM; : > "$0/ready"; while [ -d "$0" ]; do sleep 0.1; done'

# A command that runs until it is ended; OPTION... of nxlock.
hold() {
    rm -f "$dir/ready"
    launch run l "$@" -- sh -c "$deaf" "$dir"
    await test -e "$dir/ready"
}
fits() { # the rule of times
    gives 64 "a grace that does not fit" run l --ttl 3s --grace 2s -- \
        touch "$dir/started"
    said "is said in the user's words, with remedies" \
        "--ttl 3s is too short for --grace 2s: use --ttl " \
        "or --grace 1.1s or less"
    unsaid "and nothing else" "lease of"
    check "and nothing is started" fails started
    longer=$(sed -n 's/.*use --ttl \([0-9.]*s\) or more.*/\1/p' "$dir/err")
    gives 0 "the grace of the remedy" run l --ttl 3s --grace 1.1s -- true
    check "with one decimal" test "${longer#*.?}" = s
    gives 0 "the lease of the remedy, $longer" run l --ttl "$longer" \
        --grace 2s -- true
    with_query max_ttl_ms=60000 \
        gives 64 "a grace that fits no lease that is allowed" run l --ttl 60s \
        --grace 1m -- true
    said "has one remedy" "--ttl 60s is too short for --grace 1m: use --grace" \
        "35.3s or less"
    with_query max_ttl_ms=60000 gives 0 "which does" run l --ttl 60s \
        --grace 35.3s -- true
    with_query timeout_ms=900 gives 64 "a time-out that does not fit" \
        run l --ttl 3s -- true
    said "is said" "--ttl 3s is too short for timeout_ms=900"
    gives 64 "a grace that is too long for the default lease" run l \
        --grace 1m -- true
    said "is said" "--grace 1m is too long for a lease of 30s"
    with_query 'max_ttl_ms=60000&timeout_ms=20000' \
        gives 64 "one for which the lease has to be longer than it may" run l \
        --ttl 60s --grace 1s -- true
    said "has that remedy" "use --ttl " "with max_ttl_ms="
    gives 64 "a lease that cannot be renewed" run l --ttl 30ms -- true
    said "is said" "--ttl 30ms is too short to be renewed"
    gives 64 "at least more than at most" run l --at-least 3s --at-most 2s -- \
        true
    said "is said" "--at-least 3s is longer than --at-most 2s"
    gives 0 "max_ttl_ms without --ttl" run l \
        -u "unix://$socket?max_ttl_ms=10000" -- \
        sh -c 'test "$NXLOCK_TTL_MS" = 10000'
    gives 0 "a duration twice: the last counts" run l --ttl 5s --ttl 9s -- \
        sh -c 'test "$NXLOCK_TTL_MS" = 9000'
    # One server has a limit only with the quarantine on, of 30 s.
    with_query guard_restarts=off gives 0 "2m, guard_restarts off" \
        run l --ttl 2m -- true
    with_query guard_restarts=on gives 64 "2m, guard_restarts on" \
        run l --ttl 2m -- true
    said "is said why" "30s" "or a guard" "max_ttl_ms=120000"
    gives 64 "2m, several servers without it" run l --ttl 2m \
        -u "unix://$socket?guard_restarts=off" -u "unix://$dir/none" -- true
    said "is said why" "1m" "several servers" "max_ttl_ms=120000"
    for words in '--at-most 0' '--every 1ms' '--on-lost stop' \
        '--on-lost TERM' '--on-down no' '--on-down skip' \
        --fence --no-fence --retry-failed; do
        # shellcheck disable=SC2086 # words
        gives 64 "64: $words" run l $words -- true
    done
}

# --ttl and --at-least have the same limits, in the same words.
longest() {
    token=6fa459ea-ee8a-4ca4-894e-db77e160355e
    for line in 'run l --ttl' 'run l --at-least' 'acquire l --ttl' \
        "renew l $token --ttl"; do
        option=--${line##*--}
        end=
        [ "${line%% *}" != run ] || end='-- true'
        # shellcheck disable=SC2086 # words
        gives 64 "$line 30d" $line 30d $end
        said "is too long for any lock" "$option 30d is too long" "24d"
        unsaid "which is not the URL's fault" URL
        # shellcheck disable=SC2086 # words
        with_query max_ttl_ms=90000 \
            gives 64 "$line 5m beyond max_ttl_ms" $line 5m $end
        said "is told both, and the remedy" \
            "$option 5m is longer than max_ttl_ms=90000 allows" \
            "$option 90s or less"
        # shellcheck disable=SC2086 # words
        gives 64 "$line 5m with several servers" $line 5m -u redis://h1 \
            -u redis://h2 -u redis://h3 $end
        said "is told the remedy" "$option 5m is longer than" \
            "max_ttl_ms=300000"
    done
    gives 64 "--ttl 10s with max_ttl_ms in the URL" acquire l --ttl 10s \
        -u "unix://$socket?max_ttl_ms=5000"
    said "is told both" "--ttl 10s is longer than max_ttl_ms=5000 allows"
    gives 0 "--ttl 1d" acquire l --ttl 1d
    check "is a day" test "$(db PTTL l)" -gt 86300000
    db DEL l > /dev/null
    gives 0 "--ttl 24d" run l --ttl 24d -- true
    gives 0 "--at-least 2d" run l --at-least 2d -- true
    check "is two days" test "$(db PTTL l)" -gt 172700000
    db DEL l > /dev/null
    nx acquire l --ttl 30s
    gives 0 "renew --ttl 1h" renew l "$(cat "$dir/out")" --ttl 1h
    check "is an hour" test "$(db PTTL l)" -gt 3500000
    db DEL l > /dev/null
}

at_most() {
    before=$(ms)
    gives 124 "--at-most" run l --at-most 300ms --grace 200ms -- \
        sh -c "$deaf" "$dir"
    said "is said" "stopping sh after --at-most 300ms"
    took=$(($(ms) - before))
    check "after that time and the grace ($took ms)" test $took -ge 490
    check "and the lock is free" is_free l
    gives 124 "a command that ends with 0 on TERM" run l --at-most 300ms -- \
        sh -c 'trap "exit 0" TERM; while [ -d "$0" ]; do sleep 0.1; done' \
        "$dir"
    gives 3 "one that is faster" run l --at-most 60s -- sh -c 'exit 3'
    hold --ttl 60s --grace 20s --at-most 200ms
    await grep -q at-most "$dir/err"
    before=$(ms)
    kill -TERM "$pid"
    ends 124 "a TERM in the grace"
    check "ends it" test $(($(ms) - before)) -lt 15000
}

at_least() {
    gives 0 "--at-least" run l --at-least 20s -- true
    left=$(db PTTL l)
    check "keeps the name ($left ms)" test "$left" -gt 10000
    check "for no longer" test "$left" -le 20000
    db DEL l > /dev/null
    gives 0 "for longer than max_ttl_ms, too" run l --at-least 1h -- true
    check "keeps it" test "$(db PTTL l)" -gt 3000000
    db DEL l > /dev/null
    gives 1 "after a failure" run l --at-least 20s -- false
    check "it does so, too" is_held l
    db DEL l > /dev/null
    gives 127 "but not for what could not be started" run l --at-least 20s -- \
        "$dir/nothing"
    check "and the lock is free" is_free l
}

on_lost() {
    rm -f "$dir/ready" "$dir/go" "$dir/told"
    launch run l --ttl 900ms --on-lost warn -- sh -c ': > "$0/ready"
        eval "cat <&$NXLOCK_LOST_FD"; : > "$0/told"
        while [ -d "$0" ] && [ ! -e "$0/go" ]; do sleep 0.1; done' "$dir"
    await test -e "$dir/ready"
    check "the descriptor is silent while the lock is held" test ! -e \
        "$dir/told"
    db DEL l > /dev/null
    check "a lost lock is told there" await test -e "$dir/told"
    check "and said" await grep -q "lost 'l'" "$dir/err"
    db SET l stranger PX 2000 > /dev/null
    await is_free l
    check "--on-lost warn lets it run on" kill -0 "$pid"
    : > "$dir/go"
    ends 79 "and it ends with 79"
    rm -f "$dir/ready"
    launch run l --ttl 900ms --on-lost kill -- sh -c '
        trap ": > \"$0/got\"; exit 0" TERM; : > "$0/ready"
        while [ -d "$0" ]; do sleep 0.1; done' "$dir"
    await test -e "$dir/ready"
    db DEL l > /dev/null
    ends 79 "--on-lost kill"
    check "sends TERM" test -e "$dir/got"
    hold --ttl 900ms
    kill -STOP "$server"
    ends 79 "and KILL follows"
    kill -CONT "$server"
    await is_free l
}

on_down() {
    nowhere=unix://$dir/nothing
    for how in "" "--on-down fail"; do
        # shellcheck disable=SC2086 # words
        gives 69 "no server $how" run l -n -u "$nowhere" $how -- \
            touch "$dir/started"
        check "starts nothing" fails started
    done
    NXLOCK_TOKEN=outer NXLOCK_FENCE=7 "$nxlock" run l -w 200ms -u "$nowhere" \
        --on-down run -- sh -c 'echo "$NXLOCK_HELD ${NXLOCK_TOKEN-none} \
${NXLOCK_FENCE-none} $NXLOCK_NAME"; exit 4' > "$dir/out" 2> "$dir/err"
    check "--on-down run: the command's code" test $? -eq 4
    check "which knows that nothing is held" test "$(cat "$dir/out")" = \
        "0 none none l"
    said "which is said" "without the lock"
    db SET l stranger PX 100000 > /dev/null
    gives 75 "busy is not down" run l -n --on-down run -- touch "$dir/started"
    check "nothing is started" fails started
    db LPUSH m element > /dev/null
    gives 69 "nor is a key of other use" run m -n --on-down run -- \
        touch "$dir/started"
    check "nothing is started" fails started
    db DEL l m > /dev/null
}

# Writes its pid, twice: in the background, and as a daemon.
daemons='for how in "" setsid; do
    $how sh -c "$1" "$0" > /dev/null 2>&1 &
    echo $! >> "$0/left"
done; while [ ! -e "$0/ready" ]; do sleep 0.1; done'
all_left_gone() {
    while read -r one; do
        gone "$one" || return 1
    done < "$dir/left"
}
descendants() {
    rm -f "$dir/ready" "$dir/left"
    gives 5 "a command that leaves deaf ones behind" run l --ttl 3s \
        --grace 300ms -- sh -c "$daemons; exit 5" "$dir" "$deaf"
    said "which is said, also where nobody looks" \
        "sh has left processes behind; stopping them"
    check "once" test "$(wc -l < "$dir/err")" -eq 1
    check "they are gone" all_left_gone
    check "and the lock is free" is_free l
    rm -f "$dir/ready" "$dir/left"
    launch run l --ttl 6s --grace 1500ms -- sh -c "$daemons" "$dir" "$deaf"
    await grep -q "left processes behind" "$dir/err"
    check "it is said before they have ended" grep -q "stopping them" \
        "$dir/err"
    check "the lock is held while they run" is_held l
    ends 0 "and the code is the command's"
    check "they are gone" all_left_gone
    rm -f "$dir/ready" "$dir/left"
    before=$(ms)
    "$nxlock" run l --leave-descendants -- sh -c "$daemons" "$dir" "$deaf" |
        cat > "$dir/out"
    check "--leave-descendants does not wait for them" \
        test $(($(ms) - before)) -lt 5000
    check "they run on" fails all_left_gone
    check "without the lock" is_free l
    while read -r one; do
        kill -KILL "$one"
    done < "$dir/left"
    gives 0 "what is about to end may do so" run l -- sh -c '
        (sleep 0.05; echo late > "$0/late") > /dev/null 2>&1 &' "$dir"
    check "it did" test -s "$dir/late"
    gives 0 "who ends early is reaped" run l -- sh -c '
        (true & true & true &); sleep 0.3
        ! grep -l "^PPid:.$PPID\$" /proc/[0-9]*/status 2> /dev/null |
            xargs grep -l "^State:.Z" 2> /dev/null | grep .'
}

strangers() { # jobs of the script that becomes nxlock
    sh -c 'sleep 60 > /dev/null & echo $! > "$0/stranger"
        exec "$1" run l -- sh -c "kill -KILL \$PPID; sleep 60"' "$dir" \
        "$nxlock" 2> "$dir/err"
    check "79: the watchdog is killed" test $? -eq 79
    said "which is said" "the watchdog of sh was killed"
    check "a job of the script that became nxlock lives" \
        fails gone "$(cat "$dir/stranger")"
    check "the lock is free" is_free l
    kill -KILL "$(cat "$dir/stranger")"
}

given() {
    list='for fd in /proc/self/fd/*; do echo "${fd##*/}"; done | sort -n'
    sh -c "$list" > "$dir/bare" < /dev/null
    gives 0 "the descriptors" run l -- sh -c "echo \$NXLOCK_LOST_FD; $list"
    { sed 1q "$dir/out"; cat "$dir/bare"; } | sort -n > "$dir/wanted"
    sed 1d "$dir/out" > "$dir/got"
    check "are those of the caller, and the one that tells a loss" \
        cmp "$dir/wanted" "$dir/got"
    # It lets go of it a moment after CMD has begun.
    gives 0 "the watchdog has nothing of the caller's open" run l -- sh -c '
        until ! for fd in /proc/$PPID/fd/*; do
            readlink "$fd"; done | grep -v -e ^/dev/null -e ^socket: \
            -e ^pipe: -e ^anon_inode:; do sleep 0.1; done' 3< "$0"
    gives 0 "which is not called nxlock" run l -- sh -c \
        'test "$(cat /proc/$PPID/comm)" = nxl-watchdog'
    gives 0 "the variables" run l --ttl 9s --prefix 'p%:' -- sh -c '
        test "$NXLOCK_HELD" = 1 && test "$NXLOCK_KEY" = "p%:l" &&
        test "$NXLOCK_TTL_MS" = 9000 &&
        test "$(redis-cli -s "$0" GET "$NXLOCK_KEY")" = "$NXLOCK_TOKEN" &&
        grep -q "^PPid:.$NXLOCK_SUPERVISOR_PID\$" /proc/$PPID/status' "$socket"
}

signals() {
    for signal in CONT WINCH; do
        rm -f "$dir/ready" "$dir/got"
        launch run l -- bash -c 'trap ": > \"$0/got\"; exit 6" '$signal'
            : > "$0/ready"; while [ -d "$0" ]; do sleep 0.1; done' "$dir"
        await test -e "$dir/ready"
        kill -$signal "$pid"
        ends 6 "$signal is passed on"
    done
}

start_server
fits
longest
at_most
at_least
on_lost
on_down
descendants
strangers
given
signals
done_testing
