#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Eight shells add to one number in a file, a process per addition: under the
# lock nothing is lost, and a skipped run has added nothing. The same shells
# without it lose additions, so the test can tell. NXLOCK_FULL=1: 2000 runs, not
# 320.
# Usage: test_count.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

shells=8
each=40
[ -z "${NXLOCK_FULL-}" ] || each=250

cat > "$dir/add" << 'ADD'
# FILE: adds one; between reading and writing others may come.
read -r number < "$1"
sleep "${WIDTH:-0}"
echo $((number + 1)) > "$1"
ADD
cat > "$dir/shell" << 'SHELL'
# COUNT CODES COMMAND...: so often; the exit codes go to the file CODES.
count=$1
codes=$2
shift 2
while [ "$count" -gt 0 ]; do
    "$@"
    echo $? >> "$codes"
    count=$((count - 1))
done
SHELL

# COUNT COMMAND...: in $shells shells at once, each so often.
race() {
    often=$1
    shift
    echo 0 > "$dir/number"
    rm -f "$dir"/codes.*
    began=$(ms)
    pids=
    one=0
    while [ $one -lt $shells ]; do
        one=$((one + 1))
        sh "$dir/shell" "$often" "$dir/codes.$one" "$@" 2> "$dir/err.$one" &
        pids="$pids $!"
    done
    for one in $pids; do
        wait "$one"
    done
    took=$(($(ms) - began))
    number_now=$(cat "$dir/number")
}
codes() { # CODE: how often it was
    cat "$dir"/codes.* | grep -cx "$1"
}

waiting() {
    race $each "$nxlock" run count -- sh "$dir/add" "$dir/number"
    total=$((shells * each))
    echo "# $total runs in $took ms"
    check "$shells shells x $each additions: $number_now" \
        test "$number_now" -eq $total
    check "each run ended with 0" test "$(codes 0)" -eq $total
    check "and nobody said a word" test -z "$(cat "$dir"/err.*)"
    check "the lock is free" is_free count
    check "and was taken as often" \
        test $(($(calls set) + $(calls psetex))) -ge $total
}

skipping() {
    race $each "$nxlock" run count -n -- sh "$dir/add" "$dir/number"
    total=$((shells * each))
    done_now=$(codes 0)
    skipped=$(codes 75)
    echo "# $total tries in $took ms: $done_now ran, $skipped were skipped"
    check "-n: each try is a 0 or a 75" \
        test $((done_now + skipped)) -eq $total
    check "each 0 is one addition, each 75 none: $number_now" \
        test "$number_now" -eq "$done_now"
    check "some were skipped" test "$skipped" -gt 0
    check "and some ran" test "$done_now" -gt 0
    check "and nobody said a word" test -z "$(cat "$dir"/err.*)"
    check "the lock is free" is_free count
}

unlocked() {
    # Longer pauses until the race is lost, which is at once on any machine
    # that runs two processes in turn.
    for WIDTH in 0 0.001 0.01 0.1; do
        export WIDTH
        race 20 sh "$dir/add" "$dir/number"
        total=$((shells * 20))
        lost=$((total - number_now))
        echo "# without the lock, $WIDTH s apart: $lost of $total lost"
        [ $lost -le 0 ] || break
    done
    check "without the lock additions are lost" test "$lost" -gt 0
    unset WIDTH
}

start_server
unlocked
waiting
skipping
done_testing
