#!/bin/sh
# SPDX-License-Identifier: MIT
#
# -v reports what happens to the lock: waited, acquired, renewed, released.
# Without it, and without a terminal, nothing is said.
# Usage: test_verbose.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

start_server
gives 0 "run" run v -- true
silent "says nothing"
gives 0 "run -v" run v -v --ttl 45s -- true
said "reports the grant" "acquired 'v' " "for 45s, fencing token "
check "and the release" \
    grep -q "^nxlock: released 'v', held for [0-9]*ms\$" "$dir/err"
check "and nothing else" test "$(wc -l < "$dir/err")" -eq 2
with_query scheme=timestamp \
    gives 0 "run -v without a number" run v -v -- true
said "reports the grant" "acquired 'v' " "for 30s" "has no fencing token"
unsaid "and no number" ", fencing token"
gives 3 "a command that fails" run v -v -- sh -c 'exit 3'
said "has its lock released as well" "released 'v'"

launch run v -v --ttl 300ms -- \
    sh -c 'until grep -q renewed "$0/err"; do sleep 0.1; done' "$dir"
ends 0 "a run that takes longer than a third of its lease"
check "reports the renewal" \
    grep -q "^nxlock: renewed 'v', [0-9]*ms left\$" "$dir/err"

nx acquire v --ttl 1500ms
gives 0 "run -v of a busy lock" run v -v -- true
said "reports the wait" "acquired 'v' after waiting "
gives 0 "--at-least" run v -v --at-least 20s -- true
said "is reported" "'v' stays locked for 1" "--at-least 20s"
unsaid "which is no release" "released"
db DEL v > /dev/null
gives 127 "--at-least, but CMD does not exist" run v -v --at-least 20s -- \
    "$dir/nothing"
said "is a release" "released 'v'"

gives 0 "acquire -v" acquire v -v --ttl 20s
said "reports the grant" "acquired 'v' " "for 20s"
token=$(cat "$dir/out")
gives 0 "renew -v" renew v "$token" -v --ttl 40s
said "reports the renewal" "renewed 'v', 3"
gives 0 "release -v" release v "$token" -v
said "reports the release" "released 'v'"
nx acquire v --ttl 1500ms
gives 0 "wait -v" wait v -v
said "reports the end of the wait" "'v' is free; waited "
done_testing
