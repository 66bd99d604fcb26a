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

start_server

db SET x "$token" PX 60000 > /dev/null
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
