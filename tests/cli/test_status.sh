#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Who holds a lock, for people and for `if`. What --json prints is the matter
# of test_json.py.
# Usage: test_status.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

uuid=6fa459ea-ee8a-4ca4-894e-db77e160355e

prints() { # NAME LINE: that alone
    grep -qxF -e "$2" "$dir/out" && [ "$(wc -l < "$dir/out")" -eq 1 ] ||
        echo "# printed: $(cat "$dir/out")"
    check "$1" test "$(cat "$dir/out")" = "$2"
}

plain() {
    gives 1 "status, free" status h
    prints "says so" "h free"
    check "and nothing else" test ! -s "$dir/err"
    db SET h "$uuid@db7:41233:backup" PX 100000 > /dev/null
    gives 0 "status, held" status h
    check "says by whom" grep -qx \
        "h held by db7:41233:backup, \(100\|9[0-9]\)s left" \
        "$dir/out"
    unsaid "and not the token" "$uuid"
    db SET h "$uuid" PX 100000 > /dev/null
    gives 0 "status of a token without a label" status h
    check "says so" grep -q '^h held by 6fa459ea.*, [0-9]*s left$' "$dir/out"
    unsaid "and not the token" "$uuid"
    db SET h 'a b' > /dev/null
    gives 0 "status of a stranger's key" status h
    prints "without an end" \
        "h holds 'a b': not a lock, and it never expires"
    printf 'a\nb\033[2J\001' | db -x SET h > /dev/null
    gives 0 "status of a stranger's control bytes" status h
    prints "is harmless" \
        "h holds 'a?b?[2J?': not a lock, and it never expires"
    db DEL h > /dev/null
    db LPUSH h x > /dev/null
    gives 69 "status of a list" status h
    check "prints nothing" test ! -s "$dir/out"
    said "but why" "'h'"
    db DEL h > /dev/null
    "$nxlock" status h > /dev/full 2> "$dir/err"
    check "status that cannot print" test $? -eq 70
    said "says so" "cannot print"
}

# -v: what the server is.
verbose() {
    version=$(db INFO server | tr -d '\r' | sed -n 's/^redis_version://p')
    gives 1 "status -v, free" status h -v
    check "has the state first" test "$(sed -n 1p "$dir/out")" = "h free"
    check "and then the server" grep -q "^  server: unix://$socket.*connected" \
        "$dir/out"
    check "its version" grep -q "^  server: .* $version, " "$dir/out"
    check "its role" grep -q "^  server: .*role primary" "$dir/out"
    check "and nothing that was not tried" \
        fails grep -q "lock commands\|waits" "$dir/out"
    with_query poll=1 gives 1 "status -v, without a line" status h -v
    check "and why locks do not wait in line" \
        grep -q "^  server: .*role primary, waits by polling (poll=1)" \
        "$dir/out"
    gives 1 "status -v, free, again" status h -v
    check "in two lines" test "$(wc -l < "$dir/out")" -eq 2
    db SET h stranger PX 100000 > /dev/null
    gives 0 "status --verbose, held" status h --verbose
    check "has the state first" grep -q '^h held by stranger, ' "$dir/out"
    check "and then the server" grep -q "^  server: unix://$socket" "$dir/out"
    check "in two lines" test "$(wc -l < "$dir/out")" -eq 2
    check "and says nothing" test ! -s "$dir/err"
    db ACL SETUSER seer on '>s3cret' '~*' +@all > /dev/null
    with_query user=seer with_password s3cret \
        gives 0 "status -v with a password" status h -v
    unsaid "does not show it" s3cret
    db DEL h > /dev/null
}

run_by_us() {
    gives 0 "status while a command runs" run r --ttl 20 -- \
        "$nxlock" status r
    check "names it" grep -q \
        "^r held by .*:[0-9]*:$(basename "$nxlock"), 20s left$" \
        "$dir/out"
    gives 1 "and afterwards" status r
}

gives 69 "no server for status" status x -u "unix://$dir/nothing"
check "prints nothing" test ! -s "$dir/out"
gives 69 "nor for status -v" status x -v -u "unix://$dir/nothing"
start_server
plain
verbose
run_by_us
done_testing
