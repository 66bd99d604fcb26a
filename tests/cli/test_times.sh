#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Locks that are unix times: what the command says of them, takes over, and
# leaves alone.
# Usage: test_times.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

blanks=$(printf '%125s\t\t\t' '')

stamps() { # COMMAND...: locks are unix times
    with_query scheme=timestamp "$@"
}
shows() { # NAME REGEX: the one line of standard output
    grep -qx -e "$2" "$dir/out" || echo "# printed: $(cat "$dir/out")"
    check "$1" grep -qx -e "$2" "$dir/out"
}

words() {
    stamps gives 0 "a command under a unix time" run t -- "$nxlock" status t
    shows "status shows its end" \
        't held by 1[0-9]*, 3[0-9]s left'
    db SET t "1600000000$blanks" > /dev/null
    gives 1 "status of a dead program of ours" status t
    shows "says since when" \
        't free, left by 1600000000, expired 2020-09-13 12:26:.*'
    gives 1 "status --json of it" status --json t
    shows "does not show the blanks, which are its token" \
        '.*"value":"1600000000","value_ends_s":1600000000,.*'
    db SET t 1600000000.123 > /dev/null
    with_query interop=1 \
        gives 1 "status of another program's, with a fraction of a second" \
        status t
    shows "says since when" \
        't free, left by 1600000000.123, expired 2020-09-13 12:26:41 UTC'
    db SET t 1600000000 > /dev/null
    gives 0 "status of another program's" status t
    shows "says that it is in the way, and what helps" \
        't held by 1600000000, never expires.* 2020-09-13 12:26:.*interop=1.*'
    with_query interop=1 gives 1 "and with interop=1" status t
    shows "that it is over" \
        't free, left by 1600000000, expired 2020-09-13 12:26:40 UTC'
    gives 0 "status --json of it" status --json t
    shows "has it as a number" \
        '.*"value":"1600000000","value_ends_s":1600000000,"left_ms":null,.*'
    db SET t "4000000000$blanks" > /dev/null
    gives 0 "status --json of one of ours" status --json t
    check "does not tell what releases it" fails grep -q "$blanks" "$dir/out"
    db DEL t > /dev/null
}

warning() {
    stamps gives 0 "without a terminal" run t -- true
    unsaid "nothing is said" "weaker promises"
    stamps gives 0 "with -v" run -v t -- true
    said "that less is promised" "weaker promises" "docs/guarantees.md" \
        "$socket"
    check "once" test "$(grep -c 'weaker promises' "$dir/err")" -eq 1
    gives 0 "without timestamps" run -v t -- true
    unsaid "nothing" "weaker"
}

# With a fencing token, and without the permission for one.
taking_over() { # OPTION
    db SET t "1600000000$blanks" > /dev/null
    gives 0 "a dead program's name, by one try, $1" run -n "$1" t -- true
    check "is free then" is_free t
    db SET t "1600000000$blanks" > /dev/null
    gives 0 "and with a wait" run -w 5s "$1" t -- true
    db SET t "4000000000$blanks" > /dev/null
    refused 75 "a living one's is not, by one try" t -n "$1"
    refused 75 "nor with a wait" t -w 1s "$1"
    db SET t 1600000000 > /dev/null
    refused 75 "nor another program's" t -n "$1"
    gives 0 "but with interop=1" run -n "$1?interop=1" t -- true
}

# The time is not past when the command first looks at who holds the lock (it
# looks again 10 s later); the library finds it in time.
soon_after() { # OPTION
    ends=$(($(db TIME | head -n 1) + 3))
    db SET t "$ends$blanks" > /dev/null
    began=$(ms)
    gives 0 "a lock whose time passes during the wait, $1" run "$1" t -- true
    took=$(($(ms) - began))
    echo "# after $took ms"
    check "is taken over soon after" test $took -lt 9000
}

within() { # a name that a command around it holds
    stamps gives 64 "a name inside itself" run t -- "$nxlock" run t -- true
    said "is recognised as a unix time, too" "enclosing 'nxlock run'"
    stamps gives 64 "and two deep" run t -- "$nxlock" run u -- \
        "$nxlock" run t -- true
    check "and nothing is left" test "$(db EXISTS t u)" = 0
}

tokens() {
    stamps nx acquire t
    token=$(cat "$dir/out")
    check "acquire prints a token" test ${#token} -ge 36
    gives 0 "renew takes it" renew t "$token"
    gives 0 "release takes it, without scheme=timestamp" release t "$token"
    check "and it is free" is_free t
    gives 79 "a second release does not" release t "$token"
}

start_server
words
warning
db ACL SETUSER guest reset on '>Zqx7' '~t' +@all > /dev/null
for option in "--url=unix://$socket" "--url=unix://guest:Zqx7@$socket"; do
    taking_over "$option"
    soon_after "$option"
done
db DEL t > /dev/null
within
tokens
done_testing
