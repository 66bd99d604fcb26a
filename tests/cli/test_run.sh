#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A run that nobody disturbs: what the child is given, what comes back, and
# that the lock is free afterwards.
# Usage: test_run.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

plain() {
    gives 0 "run true" run a -- true
    silent "is silent"
    check "leaves the lock free" is_free a
    gives 7 "the child's code" run a -- sh -c 'exit 7'
    gives 137 "the child's signal" run a -- sh -c 'kill -KILL $$'
    gives 127 "a command that is not there" run a -- "$dir/nothing"
    said "is named" "$dir/nothing"
    check "and the lock is free" is_free a
    : > "$dir/plain"
    gives 126 "a command that is not executable" run a -- "$dir/plain"
    check "and the lock is free" is_free a
    check "input and output pass" test "$(echo in |
        "$nxlock" run a -- cat)" = in
    "$nxlock" run a -- sh -c 'echo out; echo err >&2' > "$dir/out" 2> \
        "$dir/err"
    check "output is the child's alone" test "$(cat "$dir/out")" = out
    check "and so are its errors" test "$(cat "$dir/err")" = err
    gives 0 "its own process group" run a -- sh -c \
        'test "$(cut -d " " -f 5 /proc/$$/stat)" = $$'
    gives 0 "no descriptor of ours" run a -- sh -c '
        for fd in /proc/$$/fd/*; do
            case $(readlink "$fd") in *socket*|*anon_inode*) exit 1 ;; esac
        done'
}

environment() {
    gives 0 "the environment" run a --ttl 20s -- sh -c '
        test "$NXLOCK_NAME" = a && test "$NXLOCK_TTL_MS" = 20000 &&
        test "$(redis-cli -s "$0" GET a)" = "$NXLOCK_TOKEN"' "$socket"
    gives 0 "the label" run a -- sh -c '
        case $NXLOCK_TOKEN in
            *"@$(hostname | cut -c -64 | tr " " _):$NXLOCK_SUPERVISOR_PID:sh")
                ;;
            *) exit 1 ;;
        esac'
    gives 0 "the environment of the inner lock wins" run a -- \
        "$nxlock" run b -- sh -c 'test "$NXLOCK_NAME" = b &&
            test "$(redis-cli -s "$0" GET b)" = "$NXLOCK_TOKEN"' "$socket"
    check "and both are free again" test "$(db EXISTS a b)" = 0
}

options() {
    with_query max_ttl_ms=600000 gives 0 "a long lease, when allowed" \
        run a --ttl 10m -- true
    gives 0 "words after -- are not looked at" run a -- test -n --ttl
    gives 3 "not even --help" run a -- sh -c 'exit 3' --help
    gives 0 "a name like an option" run --name=-a -- true
    gives 0 "a prefix by flag" run a --prefix 'p&/:' -- sh -c '
        test "$(redis-cli -s "$0" EXISTS "p&/:a")" = 1' "$socket"
    gives 0 "-u before the environment" run a -u "unix://$socket?db=3" \
        -- sh -c 'test "$(redis-cli -n 3 -s "$0" EXISTS a)" = 1' "$socket"
    gives 0 "a flag after a URL with parameters" run a --prefix q: \
        -u "unix://$socket?db=3" -- \
        sh -c 'test "$(redis-cli -n 3 -s "$0" EXISTS q:a)" = 1' "$socket"
    for duration in 5 5s 5000ms 0.08333334m 1.5h 1d; do
        gives 0 "-w $duration" run a -w "$duration" -- true
    done
}

# -c STRING: the shell's own words.
shell() {
    gives 0 "-c" run a -c 'echo "$NXLOCK_NAME" | tr a b'
    check "is a shell" test "$(cat "$dir/out")" = b
    check "and nothing else is said" test ! -s "$dir/err"
    check "and the lock is free" is_free a
    gives 7 "its code" run a -c 'exit 7'
    gives 143 "its signal" run a -c 'kill -TERM $$'
    gives 127 "its own 127" run a -c "$dir/nothing"
    gives 0 "--command" run a --command 'test a = a'
    gives 0 "--command=STRING" run a '--command=test a = a'
    gives 0 "-cSTRING" run a '-ctest a = a'
    gives 0 "options after it" run a -c 'test "$NXLOCK_TTL_MS" = 9000' --ttl 9
    gives 0 "the lock is held under it" run a -c \
        "test \"\$(redis-cli -s '$socket' GET a)\" = \"\$NXLOCK_TOKEN\""
    gives 0 "a process group of its own" run a -c \
        'test "$(cut -d " " -f 5 /proc/$$/stat)" = $$'
    check "input passes" test "$(echo in | "$nxlock" run a -c cat)" = in
}

# Who waits for the lock that is held around him would wait for ever.
nested() {
    gives 64 "the same name inside" run a -- \
        "$nxlock" run a -- touch "$dir/started"
    said "is said" "'a' is held by the enclosing 'nxlock run'"
    check "and nothing is started" fails started
    check "and the lock is free again" is_free a
    gives 64 "with -c, too" run a -c "'$nxlock' run a -c 'touch \
        $dir/started'"
    check "and nothing is started" fails started
    gives 64 "acquire of the same name inside" run a -- "$nxlock" acquire a
    gives 64 "wait for it inside" run a -- "$nxlock" wait a
    said "is said" "'a' is held by the enclosing 'nxlock run'"
    gives 75 "with an end to it" run a -- "$nxlock" wait a -w 100ms
    gives 64 "with another one between" run a -- \
        "$nxlock" run b -- "$nxlock" wait a
    cat > "$dir/around" << 'END'
case $NXLOCK_NAME in
    a) export first="$NXLOCK_TOKEN"; exec "$1" run b -- sh "$0" "$1" ;;
    b) export second="$NXLOCK_TOKEN"; exec "$1" run c -- sh "$0" "$1" ;;
    c) test "$NXLOCK_OUTER" = "$first $second" ;;
esac
END
    gives 0 "the tokens around, the outermost first" run a -- \
        sh "$dir/around" "$nxlock"
    for wait in -n -w1200ms; do
        gives 75 "with an end to it, $wait" run a -- "$nxlock" run a $wait -- \
            touch "$dir/started"
        check "nothing is started either" fails started
    done
    check "and the lock is free again" is_free a
    gives 0 "another name inside" run a -- "$nxlock" run b -- true
    gives 0 "the same name with another prefix" run a -- \
        "$nxlock" run a --prefix q: -- true
    gives 0 "status of it inside" run a -- "$nxlock" status a
    # Left over from an outer lock that has ended: somebody else's by now.
    db SET n stranger PX 700 > /dev/null
    NXLOCK_NAME=n NXLOCK_TOKEN=6fa459ea-ee8a-4ca4-894e-db77e160355e \
        "$nxlock" run n -- true 2> "$dir/err"
    check "a stale token in the environment is nobody's" test $? -eq 0
}

start_server
plain
environment
options
shell
nested
done_testing
