#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command, from outside, against a real server of its own: exit codes,
# what is said, and that a child never outlives its lease.
# Usage: test_cli.sh PATH-OF-NXLOCK
set -u

# Under nohup HUP would be ignored by all that is started here.
if [ -z "${NXLOCK_CLI_TEST-}" ]; then
    NXLOCK_CLI_TEST=1 exec env --default-signal=HUP sh "$0" "$@"
fi

nxlock=$1
number=0
bad=0
unset NXLOCK_URL REDIS_URL

dir=$(mktemp -d) || exit 1
server=
clean() {
    if [ -n "$server" ]; then
        kill -CONT "$server" 2> /dev/null
        kill -KILL "$server" 2> /dev/null
    fi
    rm -rf "$dir"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

result() { # CODE NAME: one line of TAP
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        bad=1
    fi
}
check() { # NAME COMMAND...
    name=$1
    shift
    "$@" > /dev/null 2>&1
    result $? "$name"
}
await() { # COMMAND...: until it succeeds, 10 s at most
    tries=0
    until "$@" > /dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 500 ] || return 1
        sleep 0.02
    done
}
finish() { # waits for $pid, but not for ever; its code
    await gone "$pid" || kill -KILL "$pid"
    wait "$pid"
}
nx() { # ARGUMENT...: leaves code, and the texts in $dir/out and $dir/err
    "$nxlock" "$@" > "$dir/out" 2> "$dir/err" < /dev/null
    code=$?
}
gives() { # CODE NAME ARGUMENT...
    want=$1
    name=$2
    shift 2
    nx "$@"
    [ "$code" -eq "$want" ] || echo "# code $code: $(cat "$dir/err")"
    [ "$code" -eq "$want" ]
    result $? "$name"
}
said() { # NAME TEXT: on one line of standard error
    grep -qF -e "$2" "$dir/err" || echo "# said: $(cat "$dir/err")"
    check "$1" grep -qF -e "$2" "$dir/err"
}
silent() { # NAME: nothing on either output
    check "$1" test ! -s "$dir/err" -a ! -s "$dir/out"
}
db() {
    redis-cli -s "$dir/socket" "$@" 2> /dev/null
}
is_free() {
    [ "$(db EXISTS "$1")" = 0 ]
}
gone() { # PID: there is no such process, or only its remains
    ! kill -0 "$1" 2> /dev/null ||
        grep -q '^[0-9]* (.*) Z' "/proc/$1/stat" 2> /dev/null
}
sets() { # how often anybody tried to take anything
    now=$(db INFO commandstats |
        sed -n 's/^cmdstat_set:calls=\([0-9]*\).*/\1/p')
    echo "${now:-0}"
}
attempted() { # COUNT: more often than that
    [ "$(sets)" -gt "$1" ]
}

# ------------------------------------------------------- without a server

usage() {
    gives 64 "no command"
    said "and help is shown" "nxlock run"
    gives 64 "a misspelt command" rnu x -- true
    said "and the nearest is named" "did you mean 'run'?"
    gives 64 "an unknown command" frobnicate
    said "and the commands are named" "acquire"
    gives 64 "a misspelt option" run x --tll 3 -- true
    said "and the nearest is named" "did you mean '--ttl'?"
    gives 64 "a misspelt URL flag" run x --timeout-mss 3 -- true
    said "and the nearest is named" "did you mean '--timeout-ms'?"
    gives 64 "an option before the command" -n run x -- true
    said "and the order is told" "nxlock run NAME"
    gives 64 "a command without --" run x sleep 1
    said "and the line is written out" "nxlock run x -- sleep"
    gives 64 "no command at all" run x
    said "and what is missing is told" "nxlock run x -- CMD"
    gives 64 "nothing after --" run x --
    said "and what is missing is told" "no command stands after '--'"
    gives 64 "no name" run -- true
    said "and what is missing is told" "NAME"
    gives 64 "an empty name" run "" -- true
    gives 64 "a name like an option" run -backup -- true
    said "and how to write it" "--name=-backup"
    gives 64 "a bad duration" run x -w 5x -- true
    said "and the units" "500ms, 30s, 10m, 2h or 1d"
    gives 64 "a lease of nothing" run x --ttl 0 -- true
    gives 64 "a bad exit code" run x -E 256 -- true
    gives 64 "a missing value" run x -w -- true
    said "and what belongs there" "-w DUR"
    gives 64 "a value where none belongs" run x --no-wait=3 -- true
    gives 64 "-n and -w together" run x -n -w 5 -- true
    gives 64 "an option of another command" status x -n
    gives 64 "a word too many" status x y
    gives 64 "no token" release x
    gives 64 "not a token" release x nonsense
    gives 64 "two servers" run x -u redis://a -u redis://b -- true
    gives 64 "a bad value for a URL flag" run x --timeout-ms soon -- true
    gives 64 "a lease above the limit" run x --ttl 10m -- true
    said "and the flag that lifts it" "--max-ttl-ms 600000"
    gives 78 "a bad URL" run x -u http://nowhere -- true
    NXLOCK_URL=http://nowhere
    export NXLOCK_URL
    gives 78 "a bad URL in the environment" run x -- true
    said "and the variable is named" "NXLOCK_URL: "
    unset NXLOCK_URL
}

help() {
    gives 0 "--version" --version
    check "tells one" grep -q '^nxlock [0-9]' "$dir/out"
    gives 0 "--help" --help
    for command in run acquire renew release status; do
        gives 0 "$command --help" "$command" --help
        check "$command --help has an example" grep -q "^  .*nxlock $command" \
            "$dir/out"
        check "$command --help has the URL flags" grep -q -e --timeout-ms \
            "$dir/out"
    done
}

unreachable() {
    gives 69 "no server" run x -n -u "unix://$dir/nothing" -- \
        touch "$dir/started"
    check "starts nothing" test ! -e "$dir/started"
    said "and says so" "cannot acquire 'x'"
    gives 69 "no server for status" status x -u "unix://$dir/nothing"
}

# ---------------------------------------------------------- with a server

start_server() {
    redis-server --port 0 --unixsocket "$dir/socket" --dir "$dir" --save '' \
        --appendonly no --daemonize no > "$dir/log" 2>&1 &
    server=$!
    await test "$(db PING)" = PONG || await db PING ||
        { echo "Bail out! no redis-server"; exit 1; }
    NXLOCK_URL=unix://$dir/socket
    export NXLOCK_URL
}

run_plain() {
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
    gives 0 "the environment" run a --ttl 20s -- sh -c '
        test "$NXLOCK_NAME" = a && test "$NXLOCK_TTL_MS" = 20000 &&
        test "$(redis-cli -s "$0" GET a)" = "$NXLOCK_TOKEN"' "$dir/socket"
    gives 0 "the label" run a -- sh -c '
        case $NXLOCK_TOKEN in *@*:$PPID:sh) ;; *) exit 1 ;; esac'
    check "input and output pass" test "$(echo in |
        "$nxlock" run a -- cat)" = in
    gives 0 "its own process group" run a -- sh -c \
        'test "$(cut -d " " -f 5 /proc/$$/stat)" = $$'
    gives 0 "a long lease, when allowed" run a --ttl 10m \
        --max-ttl-ms 600000 -- true
    gives 0 "words after -- are not looked at" run a -- test -n --ttl
    gives 0 "a name like an option" run --name=-a -- true
    gives 0 "a prefix by flag" run a --prefix 'p&/:' -- sh -c '
        test "$(redis-cli -s "$0" EXISTS "p&/:a")" = 1' "$dir/socket"
    gives 0 "-u before the environment" run a -u "unix://$dir/socket?db=3" \
        -- sh -c 'test "$(redis-cli -n 3 -s "$0" EXISTS a)" = 1' "$dir/socket"
    gives 0 "a flag after a URL with parameters" run a --prefix q: \
        -u "unix://$dir/socket?db=3" -- \
        sh -c 'test "$(redis-cli -n 3 -s "$0" EXISTS q:a)" = 1' "$dir/socket"
}

busy() {
    db SET b stranger PX 100000 > /dev/null
    gives 75 "busy, -n" run b -n -- touch "$dir/started"
    silent "is silent without a terminal"
    check "and starts nothing" test ! -e "$dir/started"
    gives 75 "busy, -w" run b -w 50ms -- true
    gives 75 "busy, -w 0" run b -w 0 -- true
    gives 0 "-E 0" run b -n -E 0 -- true
    gives 3 "--busy-code=3" run b -n --busy-code=3 -- true
    gives 75 "-nv" run b -nv -- true
    said "says who" "'b' is held by stranger, 100 s left"
    gives 75 "acquire of a busy lock" acquire b -n
    check "prints no token" test ! -s "$dir/out"
    check "the holder is untouched" test "$(db GET b)" = stranger
}

waiting() {
    db SET w stranger PX 100000 > /dev/null
    before=$(sets)
    "$nxlock" run w -- touch "$dir/waited" &
    pid=$!
    check "a waiter tries" await attempted "$before"
    check "and does not start" test ! -e "$dir/waited"
    db DEL w > /dev/null
    finish
    check "and runs when the lock is free" test $? -eq 0 -a -e "$dir/waited"
    for signal in 15 1 10; do # TERM HUP USR1
        db SET w stranger PX 100000 > /dev/null
        before=$(sets)
        "$nxlock" run w -- touch "$dir/never" &
        pid=$!
        await attempted "$before"
        kill -$signal $pid
        finish
        check "signal $signal ends a wait" test $? -eq $((128 + signal))
        db DEL w > /dev/null
        check "and nothing was started" test ! -e "$dir/never"
        check "and the name stays free" is_free w
    done
    db SET w stranger PX 100000 > /dev/null
    before=$(sets)
    (trap '' HUP; exec "$nxlock" run w -- true) &
    pid=$!
    await attempted "$before"
    kill -HUP $pid
    before=$(sets)
    check "a HUP that is ignored does not end a wait" await attempted "$before"
    db DEL w > /dev/null
    finish
    check "and the command runs" test $? -eq 0
}

denied() {
    db ACL SETUSER guest on '>pw' '+@connection' > /dev/null
    gives 77 "a wrong password" run d -n --user guest --password no -- true
    gives 77 "no rights" run d -n --user guest --password pw -- true
    said "is said in the server's words" "cannot acquire 'd'"
    check "the password is not shown" test "$(grep -c pw "$dir/err")" = 0
}

by_hand() {
    gives 0 "acquire" acquire h --ttl 20s
    token=$(cat "$dir/out")
    check "prints the token" test "$(db GET h)" = "$token"
    check "which is one word" test "$(wc -w < "$dir/out")" -eq 1
    check "and nothing else" test ! -s "$dir/err"
    gives 0 "status, held" status h
    check "tells by whom" grep -q "^h held by .*:$$:.*, 20 s left\$" "$dir/out"
    before=$(db PTTL h)
    gives 0 "renew" renew h "$token" --ttl 50s
    silent "is silent"
    check "prolongs" test "$(db PTTL h)" -gt 40000
    gives 0 "renew never shortens" renew h "$token" --ttl 1s
    check "and the long lease stands" test "$(db PTTL h)" -gt 40000
    gives 79 "release under another token" release h \
        00000000-0000-4000-8000-000000000000
    said "says that it is lost" "not held under this token"
    check "and the lock stands" test "$(db GET h)" = "$token"
    gives 0 "release" release h "$token"
    silent "is silent"
    check "frees" is_free h
    gives 79 "release twice" release h "$token"
    gives 79 "renew after release" renew h "$token"
    check "does not bring it back" is_free h
    gives 1 "status, free" status h
    check "says so" grep -qx "h free" "$dir/out"
    db SET h 'a b' > /dev/null
    gives 0 "status of a stranger's key" status h
    check "without an end" grep -qx "h held by a b, without an end" "$dir/out"
    db DEL h > /dev/null
    db LPUSH h x > /dev/null
    gives 69 "status of a list" status h
    db DEL h > /dev/null
    "$nxlock" acquire h > /dev/full 2> /dev/null
    check "acquire that cannot print fails" test $? -eq 70
    check "and releases" await is_free h
}

signals() {
    for signal in TERM HUP USR2; do
        rm -f "$dir/ready" "$dir/got"
        "$nxlock" run s -- sh -c '
            trap "echo $0 > \"$1/got\"; exit 5" $0
            : > "$1/ready"
            while [ -e "$1" ]; do sleep 0.02; done' $signal "$dir" &
        pid=$!
        await test -e "$dir/ready"
        kill -$signal $pid
        finish
        check "$signal is passed on" test $? -eq 5 -a -s "$dir/got"
    done
    rm -f "$dir/pid"
    "$nxlock" run s -- sh -c 'sleep 1000 & echo $! > "$0/pid.new"
        mv "$0/pid.new" "$0/pid"; wait' "$dir" &
    pid=$!
    await test -e "$dir/pid"
    kill -TERM $pid
    finish
    check "TERM that ends the child gives 143" test $? -eq 143
    check "and reaches its whole group" await gone "$(cat "$dir/pid")"
    check "and the lock is free" is_free s
    "$nxlock" run s -- sh -c 'echo $$ > "$0/orphan"; kill -KILL $PPID
        while [ -e "$0" ]; do sleep 0.02; done' "$dir" 2> /dev/null
    await test -s "$dir/orphan"
    check "a killed nxlock takes its child along" await gone \
        "$(cat "$dir/orphan")"
    db DEL s > /dev/null
}

# Runs a child under a lease of $1 that waits for the file go; $2 is what it
# does on TERM. Further words are options of nxlock.
hold() {
    ttl=$1
    handler=$2
    shift 2
    rm -f "$dir/ready" "$dir/ended"
    "$nxlock" run l --ttl "$ttl" "$@" -- sh -c 'trap "$1" TERM; cd "$0"
        echo $$ > new; mv new ready
        while [ -e "$0" ] && [ ! -e go ]; do sleep 0.02; done' \
        "$dir" "$handler" 2> "$dir/err" &
    pid=$!
    await test -e "$dir/ready"
}
rises() { # the lease has become longer since the last look
    left=$(db PTTL l)
    [ "$left" -gt "$last" ] && return 0
    last=$left
    return 1
}

leases() {
    rm -f "$dir/go"
    hold 900ms ': > ended'
    token=$(db GET l)
    for round in 1 2 3 4; do
        last=$(db PTTL l)
        check "renewal $round" await rises
    done
    check "under the same token" test "$(db GET l)" = "$token"
    : > "$dir/go"
    finish
    check "and the child ends as it likes" test $? -eq 0
    check "without a word" test ! -s "$dir/err"
    rm -f "$dir/go"

    hold 900ms ': > ended; exit 0'
    db SET l stranger PX 100000 > /dev/null
    finish
    check "a lock taken away gives 79" test $? -eq 79
    said "and is said" "lost 'l'"
    check "the child got TERM" test -e "$dir/ended"
    check "the new holder is untouched" test "$(db GET l)" = stranger
    db DEL l > /dev/null

    hold 900ms ''
    db DEL l > /dev/null
    finish
    check "a child deaf to TERM is killed" test $? -eq 79

    hold 1500ms ': > ended; exit 0'
    kill -STOP "$server"
    finish
    check "a server that is silent for too long gives 79" test $? -eq 79
    check "the child got TERM" test -e "$dir/ended"
    kill -CONT "$server"

    hold 1500ms '' --drift-ppm 300000
    db CLIENT PAUSE 100000 WRITE > /dev/null
    await gone "$(cat "$dir/ready")"
    check "the child is dead before the server ends the lease" \
        test "$(db PTTL l)" -gt 0
    db CLIENT UNPAUSE > /dev/null
    finish
    check "and that gives 79, too" test $? -eq 79
    await is_free l

    hold 3s ': > ended' --timeout-ms 200
    kill -STOP "$server"
    await grep -q 'cannot renew' "$dir/err"
    kill -CONT "$server"
    check "a short silence is survived" await grep -q 'after all' "$dir/err"
    : > "$dir/go"
    finish
    check "and the child's code is kept" test $? -eq 0 -a ! -e "$dir/ended"
    rm -f "$dir/go"

    hold 900ms ': > ended'
    kill -STOP $pid
    await is_free l
    kill -CONT $pid
    finish
    check "a frozen nxlock finds its lease over" test $? -eq 79
}

terminal() {
    if ! command -v script > /dev/null; then
        number=$((number + 1))
        echo "ok $number - the terminal # SKIP no script(1)"
        return
    fi
    printf 'word\n' | SHELL=/bin/sh script -qec "'$nxlock' run t -- \
        sh -c 'read x; echo got-\$x' && read y < /dev/null; \
        stty -a > /dev/null && echo back" /dev/null > "$dir/out" 2>&1
    check "the child reads the terminal" grep -q got-word "$dir/out"
    check "and gives it back" grep -q back "$dir/out"
}

usage
help
unreachable
start_server
run_plain
busy
waiting
denied
by_hand
signals
leases
terminal
echo "1..$number"
exit $bad
