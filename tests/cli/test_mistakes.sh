#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A stranger's first mistakes. Every answer says what was understood, in the
# words that were given, and what to write instead.
# Usage: test_mistakes.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

# URL WRITE: a URL without a scheme, by -u and by the variable.
no_scheme() {
    gives 78 "-u $1" run x -n -u "$1" -- touch "$dir/started"
    said "has its own words repeated" "-u: " "scheme" "write $2"
    NXLOCK_URL=$1 "$nxlock" status x > "$dir/out" 2> "$dir/err"
    result $((78 - $?)) "NXLOCK_URL=$1"
    said "has its own words repeated" "NXLOCK_URL: " "scheme" "write $2"
    check "nothing is started" fails started
}

url() {
    no_scheme localhost:6379 redis://localhost:6379
    no_scheme db7:6380 redis://db7:6380
    no_scheme db7 redis://db7
    no_scheme /run/r.sock unix:///run/r.sock
    gives 78 "a secret without a scheme" run x -u s3cret@db7 -- true
    said "is told the scheme" "write redis://"
    unsaid "and is not repeated" s3cret
    gives 78 "an unknown scheme" run x -u http://nowhere -- true
    said "is repeated" "-u: " "'http'" "redis://, rediss:// (TLS) or unix://"
    gives 78 "port 99999" run x -u redis://db7:99999 -- true
    said "is repeated with its bounds" \
        "the port '99999' must be a number from 1 to 65535"
    unsaid "and not with its place" byte
    unsaid "and not with advice about passwords" password
    gives 78 "port 0" run x -u redis://db7:0 -- true
    said "is told its bounds" "from 1 to 65535"
    gives 78 "a db that is no number" run x -u redis://db7/x -- true
    said "is told what it is" "db" "number"
    gives 78 "an IPv6 address without brackets" run x -u redis://::1:6379 -- :
    said "is told how to write it" "redis://[::1]:6379"
    gives 78 "an unknown parameter" run x -u 'redis://db7?timeout=5' -- true
    said "is named, with all that there are" "'timeout'" db user password \
        timeout_ms max_ttl_ms drift_ppm keepalive_s prefix
    gives 78 "another client's parameter" \
        run x -u 'rediss://h?ssl_keyfile=k' -- true
    said "is translated" "'ssl_keyfile'" "belongs to redis-py; write key=FILE"
    gives 78 "a parameter out of bounds" run x -u 'redis://h?db=x' -- true
    said "is named with its bounds" "db" "from 0 to"
    gives 78 "an empty URL" run x -u "" -- true
    said "is told what to write" "empty" "redis://localhost:6379"
}

no_server() {
    # Without a network, so that no server of this machine can answer.
    if ! unshare -rn true 2> /dev/null; then
        skip "the default URL" "no unshare -rn"
        return
    fi
    for words in "status x" "list" "run x -n -- true" "wait x -w 1ms"; do
        # shellcheck disable=SC2086 # words
        unshare -rn "$nxlock" $words > "$dir/out" 2> "$dir/err"
        result $((69 - $?)) "no server was given: $words"
        said "is told which was used" "redis://127.0.0.1:6379 was used" \
            "-u URL" "NXLOCK_URL" "/etc/nxlock.conf"
        check "once" test "$(grep -c "was used" "$dir/err")" -eq 1
    done
    unshare -rn "$nxlock" status x -u redis://127.0.0.1:6379 2> "$dir/err"
    unsaid "not if it was given" "was used"
}

command_line() {
    gives 64 "a misspelt command" statsu x
    said "is repeated with the nearest" "'statsu'" "did you mean 'status'?"
    gives 64 "a misspelt option" run x --wiat 5 -- true
    said "is repeated with the nearest" "'--wiat'" "did you mean '--wait'?"
    gives 64 "version as a command" version
    said "is told the option" "'version'" "'nxlock --version'"
    gives 64 "a misspelt --version" --verson
    said "is told the option" "'--verson'" "'nxlock --version'"
    gives 64 "a misspelt --help" --hepl
    said "is told the option" "'nxlock --help'"
    gives 64 "a missing --" run x make deploy
    said "is told where it belongs" "'make'" "nxlock run x -- make"
    gives 64 "a missing -- before an option of CMD" run x ls -l
    said "is told where it belongs" "'ls'" "nxlock run x -- ls"
    gives 64 "a name with a space, without quotes" run my lock -- true
    said "is told to quote it" "unexpected 'lock'" "quote a NAME" \
        "nxlock run my -- lock ..."
    gives 64 "a missing --, and one in CMD" run x git checkout -- file
    said "is told where it belongs" "'git'" "nxlock run x -- git ..."
    gives 64 "acquire with a command" acquire x -- make deploy
    said "is told which command runs one" "nxlock run x -- make ..."
    gives 64 "list with two patterns" list 'a*' 'b*'
    said "is told what there is one of" "unexpected 'b*' after GLOB"
    one=6fa459ea-ee8a-4ca4-894e-db77e160355e
    gives 64 "two tokens to release" release x $one $one
    said "is told, without them" "one word too many after NAME and TOKEN" \
        "nxlock release"
    unsaid "whichever it is" "$one"
    gives 64 "a name that starts with '-'" run -nightly -- true
    said "is told how to write it" "'-nightly'" "--name=-nightly"
    gives 64 "a second --token" unlock x --token $one --token $one
    said "is refused" "--token is given twice"
    unsaid "and not repeated" "$one"
    gives 64 "a second --url-file" status x --url-file a --url-file b
    said "is refused" "--url-file is given twice"
    gives 64 "a second --name" status --name a --name b
    said "is refused" "NAME is 'a' already"
    gives 64 "an empty --url-file" status x --url-file ''
    said "is refused, not ignored" "--url-file has an empty value"
    gives 64 "a signal is no choice" run x --on-lost KILL -- true
    said "is told what is" "--on-lost 'KILL' is not valid: use kill or warn"
    gives 64 "--on-down in upper case" run x --on-down RUN -- true
    said "is told the right one" "'RUN' is not valid: use fail or run"
    gives 64 "-w without a value" run x -w -- true
    said "is told what belongs there" "-w needs a value" "-w DUR"
    gives 64 "-c and --" run x -c true -- true
    said "is told to choose" "-c STRING" "-- CMD" "exclude each other"
    gives 64 "-- and -c's long name" run x --command true -- true
    said "is told to choose" "-c STRING" "-- CMD" "exclude each other"
    gives 64 "-c with an empty string" run x -c ""
    said "is told that it is empty" "-c" "empty"
    gives 64 "-c without a string" run x -c
    said "is told what belongs there" "-c needs a value" "-c STRING"
    gives 64 "-c twice" run x -c true -c false
    said "is told so" "-c" "twice"
    gives 64 "a word after -c's string" run x -c echo hello
    said "is repeated" "'hello'" "-c"
}

lease() {
    gives 0 "--ttl 5 is five seconds" acquire five --ttl 5
    left=$(db PTTL five)
    check "as the server has it" test "$left" -gt 4000 -a "$left" -le 5000
    gives 0 "and the child is told" run six --ttl 6 -- \
        sh -c 'test "$NXLOCK_TTL_MS" = 6000'
    gives 64 "--ttl 5ms" run x --ttl 5ms -- touch "$dir/started"
    said "is told that it is too short" \
        "--ttl 5ms is too short: the least is 13ms"
    unsaid "and no names from inside" ttl_ms
    check "in one line" test "$(wc -l < "$dir/err")" -eq 1
    said "and how to write seconds" "a bare number is seconds" "--ttl 5s"
    check "and nothing is started" fails started
    check "and nobody is asked" is_free x
    gives 64 "acquire --ttl 5ms" acquire x --ttl 5ms
    said "is told the same" "the least is 13ms" "--ttl 5s"
    for ttl in 0 90d; do
        gives 64 "--ttl $ttl" acquire x --ttl $ttl
        said "is told the limit" "use a duration such as 30s, at most 24d"
    done
    gives 0 "another lock" acquire another
    token=$(cat "$dir/out")
    for verb in renew release; do
        gives 79 "$verb with the token of another lock" \
            $verb x "$token"
        said "is told what may be, and where to look" "cannot $verb 'x'" \
            "the token is of another one" "nxlock status x"
    done
    check "and nobody is asked" is_free x
}

shell_words() {
    gives 127 "a shell's line as one word" run x -- 'echo hi'
    said "is told -c" "cannot run 'echo hi': there is" \
        "nxlock run x -c 'echo hi'"
    gives 127 "one with a pipe" run x -n -- 'make|mail boss'
    said "is told it, too" "-c 'make|mail boss'"
    gives 127 "a word that is no line" run x -- no-such-program
    unsaid "is not" " -c "
    said "is repeated" "cannot run 'no-such-program': "
    gives 127 "nor are two words" run x -- 'no such' program
    unsaid "are not" " -c "
    check "and the lock is free" is_free x
}

swapped() {
    gives 0 "acquire" acquire swap
    token=$(cat "$dir/out")
    for command in renew release; do
        gives 64 "$command TOKEN NAME" "$command" "$token" swap
        said "is told the order" "swapped" "nxlock $command NAME TOKEN"
        unsaid "and the token is not shown" "$token"
        unsaid "nor its beginning" "${token%%-*}"
        check "and the lock stands" test "$(db GET swap)" = "$token"
    done
    gives 0 "the right order" release swap "$token"
}

command_line
url
no_server
start_server
lease
shell_words
swapped
done_testing
