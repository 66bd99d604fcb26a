#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A signal that comes after the request and before the child runs: on the way,
# with the grant, or a moment after it. The child is not started or told, and
# no lock stays behind.
# Usage: test_race.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

rounds=120

# What is asked for now is answered when the pause ends.
pause() {
    db CLIENT PAUSE 60000 WRITE > /dev/null
}
unpause() {
    db CLIENT UNPAUSE > /dev/null
}
asked() { # a request stands at the server and is not answered
    db CLIENT LIST | grep -q 'flags=b'
}

on_the_way() {
    for signal in TERM:143 INT:130 HUP:129; do
        pause
        launch run k -w 10s -- touch "$dir/started"
        check "a request is on its way" await asked
        kill -"${signal%:*}" "$pid"
        before=$(ms)
        finish
        code=$?
        check "${signal%:*} ends it" test $code -eq "${signal#*:}"
        check "soon" test $(($(ms) - before)) -lt 3000
        unpause
        check "nothing was started" fails started
        check "and what was granted is given back" await is_free k
    done
}

# Stopped, nxlock has both to read when it goes on: the grant and the signal.
with_the_grant() {
    for signal in TERM:143 INT:130 HUP:129 QUIT:131 USR1:138 USR2:140; do
        pause
        launch run k -- touch "$dir/started"
        await asked
        kill -STOP "$pid"
        await stopped "$pid"
        unpause
        check "the lock is granted" await is_held k
        kill -"${signal%:*}" "$pid"
        kill -CONT "$pid"
        ends "${signal#*:}" "${signal%:*} with the grant"
        check "keeps the child from being started" fails started
        check "and the lock is free" is_free k
    done
    pause
    launch acquire k
    await asked
    kill -STOP "$pid"
    await stopped "$pid"
    unpause
    await is_held k
    kill -TERM "$pid"
    kill -CONT "$pid"
    ends 143 "TERM with the grant of acquire"
    check "prints no token" test ! -s "$dir/out"
    check "and leaves nothing held" is_free k
}

spin() { # COUNT: a short while, a longer one in each round
    turn=0
    while [ $turn -lt "$1" ]; do
        turn=$((turn + 1))
    done
}

# Anywhere between the start of nxlock and the end of its child: the child
# writes what it got to, so that a code that does not fit it shows.
anywhere() {
    wrong=0
    early=0
    late=0
    round=0
    while [ $round -lt $rounds ]; do
        round=$((round + 1))
        rm -f "$dir/began" "$dir/done"
        launch run k -- sh -c ': > "$0/began"; : > "$0/done"' "$dir"
        case $((round % 3)) in
            0) until [ -e "$dir/began" ] || gone "$pid"; do :; done ;;
            1) until watches "$pid" || gone "$pid"; do :; done ;;
            2) spin $((round * 100)) ;;
        esac
        kill -TERM "$pid" 2> /dev/null
        finish
        code=$?
        if [ -e "$dir/done" ]; then
            late=$((late + 1))
            [ $code -eq 0 ] || [ $code -eq 143 ] || wrong=$((wrong + 1))
        else
            early=$((early + 1))
            [ $code -eq 143 ] || wrong=$((wrong + 1))
        fi
        if ! is_free k || [ -s "$dir/err" ]; then
            echo "# round $round: code $code: $(cat "$dir/err")"
            wrong=$((wrong + 1))
        fi
    done
    echo "# $rounds rounds: $early before the child's end, $late after it"
    check "TERM at any moment" test $wrong -eq 0
    check "and some came before the child's end" test $early -gt 0
}

start_server
# The server has to know the script, so that one request is all it takes.
gives 0 "a run that nobody disturbs" run k -- true
on_the_way
with_the_grant
anywhere
done_testing
