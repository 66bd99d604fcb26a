#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Waiting until nobody holds a name, without taking it: when it ends, what it
# says, and that the server hardly notices.
# Usage: test_free.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

token=6fa459ea-ee8a-4ca4-894e-db77e160355e@db7:41233:backup

asked() { # COUNT: more often than that somebody looked
    looks=$(($(calls evalsha) + $(calls eval)))
    [ "$looks" -gt "$1" ]
}

gives 64 "wait without a name" wait
said "says what is missing" "NAME is missing"
gives 64 "wait for two" wait a b
gives 64 "wait -w of nonsense" wait a -w soon
gives 69 "a server that is not there" wait x -w 300ms -u "unix://$dir/nothing"
said "is said" "waiting for 'x'" "$dir/nothing"
gives 78 "nor a URL" wait x -u "http://x"
start_server

gives 0 "wait for a free name" wait x
silent "says nothing"
check "and takes nothing" is_free x

db SET x "$token" PX 60000 > /dev/null
gives 75 "wait -w for a held one" wait x -w 300ms
silent "says nothing where nobody looks"
gives 75 "wait -w 0" wait x -w 0
gives 75 "wait -v" wait x -v -w 300ms
said "says by whom" "waiting for 'x': held by db7:41233:backup, " \
    "'x' is held by db7:41233:backup"
unsaid "and not the token" 6fa459ea-ee8a-4ca4
check "which it leaves alone" is_held x

before=$(($(calls evalsha) + $(calls eval)))
launch wait x -v
await asked $((before + 2))
check "it waits on" fails gone "$pid"
db DEL x > /dev/null
ends 0 "until it is free"
said "and is reported" "'x' is free; waited"
check "and has said it once" test "$(wc -l < "$dir/err")" -eq 2

# The end of the lease is not slept through, and before it hardly asked for.
db SET x "$token" PX 1500 > /dev/null
db CONFIG RESETSTAT > /dev/null
gives 0 "a lease that ends" wait x
looks=$(($(calls evalsha) + $(calls eval)))
[ "$looks" -le 12 ] || echo "# $looks looks"
check "is asked for now and then only" test "$looks" -le 12

db LPUSH list x > /dev/null
gives 69 "a key of other use" wait list
said "is named" "'list'" "other data"
db ACL SETUSER blind on '>Zqx7' '~*' +@all -eval -evalsha -getrange > /dev/null
with_query user=blind with_password Zqx7 \
    gives 77 "a user who may not look" wait x
db DEL x > /dev/null

db SET x "$token" PX 60000 > /dev/null
launch wait x
await asked 0
kill -TERM "$pid"
ends 143 "TERM ends it"
launch wait x -v
await test -s "$dir/err"
stop_server
await grep -q "connect\|closed" "$dir/err"
result $? "a server that went away is said"
check "and waited for" fails gone "$pid"
serve "$dir"
ends 0 "until it is there again, and free"
done_testing
