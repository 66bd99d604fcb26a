#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Locks by unix times where the clocks of the machines differ by hours: the
# command asks the server's clock, and nobody gets in beside another one. The
# published scheme with the machines' own clocks lets two in, in the same loop.
# NXLOCK_FULL=1: twice as many additions.
# Usage: test_stamps.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

each=15 # additions of every shell
[ -z "${NXLOCK_FULL-}" ] || each=30
skews="+1h -1h +0"

# Only the time of day is another one: what measures a lease is the clock that
# nobody sets, and nobody sets that of one machine by hours.
skewed() { # SKEW COMMAND...
    skew=$1
    shift
    faketime --exclude-monotonic -f "$skew" "$@"
}
# A sanitizer's program wants to be first in memory, before this one.
ASAN_OPTIONS=${ASAN_OPTIONS-}${ASAN_OPTIONS:+:}verify_asan_link_order=0
export ASAN_OPTIONS

why_not() { # why there can be no other time of day; nothing: there can
    command -v faketime > /dev/null || { echo "no faketime"; return; }
    ahead=$(($(skewed +1h date +%s) - $(date +%s)))
    [ $ahead -ge 3590 ] && [ $ahead -le 3610 ] ||
        { echo "faketime does not work here"; return; }
    skewed +1h timeout 10 "$nxlock" --version > /dev/null 2>&1 ||
        echo "this build of nxlock does not run under faketime"
}

cat > "$dir/add" << 'ADD'
# FOLDER: adds one to FOLDER/number. Whoever else is at it is noted down.
mkdir "$1/inside" 2> /dev/null || echo two >> "$1/both"
read -r number < "$1/number"
sleep 0.01
echo $((number + 1)) > "$1/number"
rmdir "$1/inside" 2> /dev/null
ADD
cat > "$dir/ours" << 'OURS'
# FOLDER COUNT NXLOCK
count=$2
while [ "$count" -gt 0 ]; do
    "$3" run count -- sh "$1/add" "$1"
    echo $? >> "$1/codes"
    count=$((count - 1))
done
OURS
cat > "$dir/scheme" << 'SCHEME'
# The published scheme, by this machine's clock. Set folder.
ask() { # libfaketime hangs in a program that brings its own malloc
    env -u LD_PRELOAD redis-cli -s "$folder/socket" "$@"
}
now() {
    date +%s
}
try() { # sets ends
    ends=$(($(now) + 11))
    [ "$(ask SETNX classic $ends)" = 0 ] || return 0
    there=$(ask GET classic)
    [ -n "$there" ] && [ "$there" -lt "$(now)" ] || return 1
    ends=$(($(now) + 11))
    old=$(ask GETSET classic $ends)
    [ -z "$old" ] || [ "$old" -lt "$(now)" ]
}
SCHEME
cat > "$dir/try" << 'TRY'
# FOLDER: ends with 0 if it has the lock, which it does not release.
folder=$1
. "$folder/scheme"
try
TRY
cat > "$dir/classic" << 'CLASSIC'
# FOLDER COUNT
folder=$1
count=$2
. "$folder/scheme"
while [ "$count" -gt 0 ]; do
    if try; then
        sh "$folder/add" "$folder"
        [ $(($(now) + 1)) -ge $ends ] || ask DEL classic > /dev/null
        count=$((count - 1))
    fi
    sleep 0.01
done
CLASSIC

# SKEWS COMMAND...: a shell for each of them, all at once.
race() {
    clocks=$1
    shift
    echo 0 > "$dir/number"
    : > "$dir/both"
    : > "$dir/codes"
    pids=
    shells=0
    for one in $clocks; do
        shells=$((shells + 1))
        skewed "$one" timeout 120 "$@" > "$dir/out.$shells" 2>&1 &
        pids="$pids $!"
    done
    for one in $pids; do
        wait "$one"
    done
    number_now=$(cat "$dir/number")
    both=$(grep -c two "$dir/both")
}

# Everybody agrees on when a lock is over: it is said in the server's time.
one_by_one() {
    for one in $skews; do
        skewed "$one" "$nxlock" run x --ttl 10s -- sh -c '
            date +%s
            env -u LD_PRELOAD redis-cli -s "$1" GET x
            ' - "$socket" > "$dir/out" 2> "$dir/err"
        result $? "with the clock $one it gets a lock"
        server=$(db TIME | head -n 1)
        apart=$(($(sed -n 1p "$dir/out") - server))
        ends=$(sed -n '2s/[^0-9].*//p' "$dir/out")
        echo "# clock $one: $apart s apart; ends in: $((ends - server)) s"
        hours=${one%h}
        wrong=$((apart - hours * 3600))
        check "whose clock is another one" test $wrong -ge -5 -a $wrong -le 5
        check "which ends in 10 to 15 s by the server's" \
            test $((ends - server)) -ge 10 -a $((ends - server)) -le 15
    done
}

# Whoever holds, by whatever clock, holds against all the others.
held_against_the_others() {
    for holder in $skews; do
        token=$(skewed "$holder" "$nxlock" acquire y --ttl 30s)
        result $? "the clock $holder holds"
        for other in $skews; do
            check "and keeps out $other" fails \
                skewed "$other" "$nxlock" acquire y -n
            began=$(ms)
            skewed "$other" "$nxlock" acquire y --wait 300ms \
                > /dev/null 2>&1
            code=$?
            took=$(($(ms) - began))
            echo "# it ended with $code after $took ms"
            check "which waits as long as it was told to" \
                test $code -eq 75 -a $took -ge 250 -a $took -le 3000
        done
        skewed "$other" "$nxlock" release y "$token"
        result $? "which another clock may end with its token"
        check "and it is free" is_free y
    done
}

# A dead one's time is over for all at the same moment.
after_a_death() {
    dead=+0
    skewed "$dead" "$nxlock" acquire z --ttl 1s > /dev/null
    for one in $skews; do
        began=$(ms)
        skewed "$one" "$nxlock" acquire z --ttl 1s --wait 20s > /dev/null
        code=$?
        took=$(($(ms) - began))
        echo "# $one follows $dead after $took ms"
        check "$one waits for the end of $dead, and no longer" \
            test $code -eq 0 -a $took -ge 900 -a $took -le 7000
        dead=$one
    done
}

ours() {
    race "$skews $skews" sh "$dir/ours" "$dir" $each "$nxlock"
    total=$((6 * each))
    cat "$dir"/out.*
    check "6 shells with 3 clocks add $total: $number_now" \
        test "$number_now" -eq $total
    check "and each run ended with 0" \
        test "$(grep -cx 0 "$dir/codes")" -eq $total
    check "and never two at once: $both" test "$both" -eq 0
    check "by GETSET or SETNX, and no SET" test "$(calls set)" -eq 0
    check "the lock is free" is_free count
}

classic() {
    race "+0 +0 +0" sh "$dir/classic" "$dir" 15
    check "the published scheme with one clock: never two at once: $both" \
        test "$both" -eq 0 -a "$number_now" -eq 45
    db DEL classic > /dev/null
    check "a machine has it" skewed +0 sh "$dir/try" "$dir"
    check "and keeps out one with its clock" fails \
        skewed +0 sh "$dir/try" "$dir"
    check "but one whose clock is an hour ahead takes it beside it" \
        skewed +1h sh "$dir/try" "$dir"
}

start_server
reason=$(why_not)
if [ -n "$reason" ]; then
    skip "clocks that differ" "$reason"
    done_testing
fi
NXLOCK_URL="unix://$socket?scheme=timestamp"
one_by_one
held_against_the_others
after_a_death
ours
classic
done_testing
