#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The options of run that limit a command, and what it is given: its
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
at_most
on_lost
on_down
descendants
strangers
given
signals
done_testing
