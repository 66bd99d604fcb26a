#!/bin/sh
# SPDX-License-Identifier: MIT
#
# At a terminal: the child may read it, the shell has it back afterwards, and
# a person is told who has the lock.
# Usage: test_terminal.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

holder=6fa459ea-ee8a-4ca4-894e-db77e160355e@db7:41233:backup

if ! command -v script > /dev/null; then
    echo "1..0 # SKIP no script(1); Debian has it in bsdutils"
    exit 0
fi

# COMMAND: run by a shell at a terminal of its own, whose screen is $dir/out.
at_terminal() {
    SHELL=/bin/sh timeout 60 script -qec "$1" /dev/null > "$dir/screen" 2>&1
    code=$?
    tr -d '\r' < "$dir/screen" > "$dir/out"
}
screen() { # NAME PATTERN
    grep -q -e "$2" "$dir/out" || sed 's/^/# /' "$dir/out"
    check "$1" grep -q -e "$2" "$dir/out"
}

reading() {
    printf 'word\n' | SHELL=/bin/sh timeout 20 script -qec "'$nxlock' run t -- \
        sh -c 'read x; echo got-\$x' && read y < /dev/null; \
        stty -a > /dev/null && echo back" /dev/null > "$dir/out" 2>&1
    check "the child reads the terminal" grep -q got-word "$dir/out"
    check "and gives it back" grep -q back "$dir/out"
}

told() {
    db SET t "$holder" PX 100000 > /dev/null
    at_terminal "'$nxlock' run t -w 1500ms -- touch '$dir/started'" < /dev/null
    check "a wait at a terminal" test $code -eq 75
    screen "says whom it waits for" \
        "^nxlock: waiting for 't': held by db7:41233:backup, [0-9]*s left\$"
    screen "and then who has it still" \
        "^nxlock: 't' is held by db7:41233:backup, [0-9]*s left\$"
    check "and nothing else" test "$(grep -c . "$dir/out")" -eq 2
    at_terminal "'$nxlock' run t -n -- true" < /dev/null
    check "-n at a terminal" test $code -eq 75
    screen "says who has it" \
        "^nxlock: 't' is held by db7:41233:backup, [0-9]*s left\$"
    check "and nothing else" test "$(grep -c . "$dir/out")" -eq 1
    at_terminal "'$nxlock' run t -w 1500ms -- true 2> '$dir/err'" < /dev/null
    check "with standard error elsewhere" test $code -eq 75
    check "nothing is said at the terminal" test ! -s "$dir/out"
    check "nor there" test ! -s "$dir/err"
    at_terminal "'$nxlock' run t -w 1500ms -u unix://$dir/nothing -- true" \
        < /dev/null
    check "a server that is not there" test $code -eq 69
    screen "is said while it is waited for" \
        "^nxlock: waiting for 't': .*$dir/nothing"
    screen "and at the end" "^nxlock: cannot acquire 't': .*$dir/nothing"
    db DEL t > /dev/null
    at_terminal "'$nxlock' run t -- echo done" < /dev/null
    check "a free lock at a terminal" test $code -eq 0
    check "gives the command's words alone" test "$(cat "$dir/out")" = "done"
}

start_server
reading
told
done_testing
