#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The exit codes that need more than a command line (test_table.py has the
# others): servers that refuse, load, hang or go, and locks that are lost.
# Usage: test_codes.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

uuid=6fa459ea-ee8a-4ca4-894e-db77e160355e
other=00000000-0000-4000-8000-000000000000

silent_server() {
    mkdir "$dir/dead"
    serve "$dir/dead"
    await test -S "$dir/dead/socket"
    stop_server
    server=$main
    refused 69 "69: a socket without a server" x -n \
        -u "unix://$dir/dead/socket"
    kill -STOP "$server"
    rm -f "$dir/started"
    with_query timeout_ms=100 \
        gives 69 "69: a server that does not answer" run x -n -- \
        touch "$dir/started"
    kill -CONT "$server"
    check "nothing is started" fails started
    # What was asked for while it slept is undone or runs out.
    db PING > /dev/null
    db DEL x > /dev/null
}

refusals() {
    db CONFIG SET maxmemory 1 maxmemory-policy noeviction > /dev/null
    for wait in -n -w200ms; do
        refused 69 "69: out of memory, $wait" x $wait
        said "in the server's words" "OOM"
    done
    db CONFIG SET maxmemory 0 > /dev/null

    mkdir "$dir/dump.rdb" # where the file of that name belongs
    db CONFIG SET save "3600 1" > /dev/null
    db BGSAVE > /dev/null
    failed_to_save() {
        db INFO persistence | grep -q rdb_last_bgsave_status:err
    }
    check "the server cannot save" await failed_to_save
    refused 69 "69: a server that cannot save" x -n
    said "in its words" "MISCONF"
    db CONFIG SET save "" > /dev/null

    db REPLICAOF 127.0.0.1 1 > /dev/null
    for wait in -n -w60; do
        refused 69 "69: a replica, $wait" x $wait
        said "in its words" "READONLY"
    done
    db REPLICAOF NO ONE > /dev/null

    db LPUSH x element > /dev/null
    for wait in -n -w200ms; do
        refused 69 "69: a key of another type, $wait" x $wait
        said "says so" "cannot acquire 'x'"
    done
    gives 69 "69: status of it" status x
    for command in renew release; do
        gives 79 "79: $command of it" $command x $uuid
    done
    check "leaves it alone" test "$(db LLEN x)" = 1
    db DEL x > /dev/null
}

# 200 keys at 20 ms each, and it looks around after each of them.
loading() {
    mkdir "$dir/slow"
    serve "$dir/slow" --rdbcompression no
    socket=$dir/slow/socket
    await answers
    db EVAL "for i = 1, 200 do
        redis.call('SET', 'filler' .. i, string.rep('x', 1000)) end" 0 \
        > /dev/null
    db SAVE > /dev/null
    stop_server
    rm -f "$socket"
    serve "$dir/slow" --key-load-delay 20000 \
        --loading-process-events-interval-bytes 1024
    is_loading() {
        db GET x | grep -q LOADING
    }
    check "a server is loading" await is_loading
    gives 69 "69: a server that is loading" run x -n -u "unix://$socket" -- \
        touch "$dir/started"
    said "in its words" "LOADING"
    check "and nothing is started" fails started
    gives 69 "69: status there" status x -u "unix://$socket"
    check "it is still loading" is_loading
    gives 0 "a wait lasts until it has loaded" run x -w 60 \
        -u "unix://$socket" -- true
    check "and the lock is free" is_free x
    stop_server
    socket=$dir/socket
    server=$main
}

# Where descriptors run out differs; that the child was not started and that
# nothing stays behind does not.
descriptors() {
    rm -f "$dir/started"
    wrong=0
    seen=
    limit=4
    while ! started && [ $limit -lt 64 ]; do
        (ulimit -n $limit && exec "$nxlock" run x -n -- touch "$dir/started") \
            > "$dir/out" 2> "$dir/err" < /dev/null
        code=$?
        seen="$seen $limit:$code"
        started || [ $code -ge 69 ] || wrong=1
        started || [ $code -ne 70 ] || short=$(cat "$dir/err")
        is_free x || wrong=1
        limit=$((limit + 1))
    done
    echo "# exit codes by descriptors:$seen"
    check "70: too few descriptors" test -n "${short-}"
    check "70: nothing is started or left" test $wrong -eq 0
    check "70: until there are enough" started
}

no_password() {
    db CONFIG SET requirepass pa55 > /dev/null
    export REDISCLI_AUTH=pa55
    refused 77 "77: NOAUTH" x -n
    for words in 'acquire x -n' 'status x' "renew x $uuid" "release x $uuid"; do
        # shellcheck disable=SC2086 # words
        gives 77 "77: NOAUTH: $words" $words
    done
    with_password pa55 gives 0 "0: with the password" run x -n -- true
    db CONFIG SET requirepass "" > /dev/null
    unset REDISCLI_AUTH
}

# The child waits for an end that only the loss brings.
until_lost() {
    rm -f "$dir/ready"
    launch run x --ttl 900ms -- sh -c 'trap "exit 0" TERM
        : > "$0/ready"; while [ -e "$0" ]; do sleep 0.1; done' "$dir"
    await test -e "$dir/ready"
}

lost() {
    until_lost
    db SET x stranger PX 100000 > /dev/null
    ends 79 "79: taken by another"
    said "says so" "lost 'x'"
    check "whose key is untouched" test "$(db GET x)" = stranger
    db DEL x > /dev/null
    until_lost
    db DEL x > /dev/null
    ends 79 "79: removed"
    said "says so" "lost 'x'"
    until_lost
    db DEL x > /dev/null
    db LPUSH x element > /dev/null
    ends 79 "79: replaced by a list"
    check "which is untouched" test "$(db LLEN x)" = 1
    db DEL x > /dev/null
    until_lost
    kill -STOP "$server"
    ends 79 "79: a server that is silent for too long"
    said "says so" "lost 'x'"
    kill -CONT "$server"
    await is_free x
    until_lost
    kill -STOP "$pid"
    await is_free x
    kill -CONT "$pid"
    ends 79 "79: nxlock was stopped for too long"
    gives 79 "79: removed under a child that ends at once" run x -- \
        redis-cli -s "$socket" DEL x
    said "says so" "lost 'x'"
    gives 79 "79: though the child failed" run x -- \
        sh -c 'redis-cli -s "$0" DEL x; exit 7' "$socket"
    gives 79 "79: taken under a child that ends at once" run x -- \
        redis-cli -s "$socket" SET x stranger
    check "and that stands" test "$(db GET x)" = stranger
    db DEL x > /dev/null
    rm -f "$dir/ready" "$dir/go"
    launch run x --ttl 900ms -- sh -c ': > "$0/ready"
        while [ -e "$0" ] && [ ! -e "$0/go" ]; do sleep 0.1; done' "$dir"
    await test -e "$dir/ready"
    kill -STOP "$pid"
    : > "$dir/go"
    await is_free x
    kill -CONT "$pid"
    ends 79 "79: the child ended after the lease"
    said "says so" "lost 'x'"
    for command in renew release; do
        gives 79 "79: $command of a free lock" $command x $uuid
        db SET x $other PX 100000 > /dev/null
        gives 79 "79: $command under another token" $command x $uuid
        check "which stands" test "$(db GET x)" = $other
        db DEL x > /dev/null
    done
}

# After the others, for it stops the server.
lost_server() {
    until_lost
    stop_server
    ends 79 "79: a server that went for good"
    said "says so" "lost 'x'"
}

start_server
main=$server
silent_server
refusals
loading
descriptors
no_password
lost
lost_server
done_testing
