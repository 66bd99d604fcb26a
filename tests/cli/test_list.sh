#!/bin/sh
# SPDX-License-Identifier: MIT
#
# All locks that stand: which keys are, how each is shown, over one server and
# several, and that a large database is walked in small steps.
# Usage: test_list.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

uuid=6fa459ea-ee8a-4ca4-894e-db77e160355e
tab=$(printf '\t')

line() { # NAME PATTERN: a line of the output is that, whole
    grep -qx -e "$2" "$dir/out" || sed 's/^/# /' "$dir/out"
    check "$1" grep -qx -e "$2" "$dir/out"
}
lines() { # NAME COUNT
    [ "$(wc -l < "$dir/out")" -eq "$2" ] || sed 's/^/# /' "$dir/out"
    check "$1" test "$(wc -l < "$dir/out")" -eq "$2"
}

gives 69 "no server" list -u "unix://$dir/nothing"
said "is said" "cannot list" "$dir/nothing"
gives 64 "two patterns" list a b
start_server
gives 0 "list of nothing" list
silent "is empty"

db SET app:b "$uuid@db7:41233:backup" PX 100000 > /dev/null
db SET app:a "$uuid" PX 100000 > /dev/null
db SET app:ever "$uuid@x" > /dev/null
db SET other:c "$uuid@y" PX 500000 > /dev/null
db SET text hello > /dev/null
db SET almost "$uuid-and-more" > /dev/null
db SET counter 17 > /dev/null
db LPUSH queue "$uuid" > /dev/null
db HSET hash f "$uuid" > /dev/null
gives 0 "list" list
lines "has the locks and nothing else" 4
line "with a label" \
    "app:b${tab}held${tab}db7:41233:backup${tab}\(100\|9[0-9]\)s"
line "without one" "app:a${tab}held${tab}6fa459ea... (no label)${tab}[0-9]*s"
line "without an end" "app:ever${tab}held${tab}x${tab}-"
check "in the order of their names" sh -c \
    "cut -f 1 '$dir/out' | LC_ALL=C sort -c"
unsaid "and no token" "$uuid"
check "and says nothing" test ! -s "$dir/err"
gives 0 "list GLOB" list 'app:?'
lines "has those" 2
gives 0 "list of what is not there" list 'none*'
lines "is empty" 0
gives 0 "list with a prefix" list --prefix app:
lines "has those of the prefix" 3
line "without it" "b${tab}held${tab}db7:41233:backup${tab}[0-9]*s"
db SET 'a*b:x' "$uuid@z" PX 100000 > /dev/null
db SET 'aab:y' "$uuid@z" PX 100000 > /dev/null
gives 0 "a prefix that looks like a pattern" list --prefix 'a*b:'
lines "is none" 1
line "but itself" "x${tab}held${tab}z${tab}[0-9]*s"
db SET 'a[b]\:x' "$uuid@z" PX 100000 > /dev/null
gives 0 "another one" list --prefix 'a[b]\:'
lines "is itself too" 1
db DEL 'a[b]\:x' > /dev/null

db SET long:h "$uuid@z" PX 7200000 > /dev/null
db SET long:d "$uuid@z" PX 2073600000 > /dev/null
gives 0 "list of long ones" list 'long:*'
line "in hours" "long:h${tab}held${tab}z${tab}\(2h\|11[0-9]m\)"
line "and days" "long:d${tab}held${tab}z${tab}\(24d\|23.9d\)"
gives 0 "status of one" status long:h
check "in hours, too" \
    grep -qx "long:h held by z, \(2h\|11[0-9]m\) left" "$dir/out"
db DEL long:h long:d > /dev/null

gives 0 "list --json" list 'app:b' --json
line "is an object" '{"v":1,"name":"app:b","state":"held",'\
'"label":"db7:41233:backup","host":"db7","pid":41233,"program":"backup",'\
'"owner":"6fa459ea","left_ms":[0-9]*}'
gives 0 "list --json without an end" list app:ever --json
check "says null" grep -q '"left_ms":null}$' "$dir/out"

for name in '{r}:every' '{r}s:every' '{}}:every' r:every '{}r:every'; do
    db SET "$name" "$uuid@db7:1:r" PX 100000 > /dev/null
done
gives 0 "the records of --every" list '*every'
for name in '{r}:every' '{r}s:every' '{}}:every'; do
    line "are told from locks, $name" "$name${tab}every${tab}db7:1:r${tab}.*s"
done
for name in r:every '{}r:every'; do
    line "but $name is none" "$name${tab}held${tab}db7:1:r${tab}.*s"
done
gives 0 "and as JSON" list '{r}:every' --json
check "too" grep -q '"name":"{r}:every","state":"every"' "$dir/out"
db DEL '{r}:every' '{r}s:every' '{}}:every' r:every '{}r:every' > /dev/null

# Records of nxlock once, which are keys beside the lock's.
record() { # KEY STATE LABEL ENDED TTL
    times="1790000000000 1790000060000 $4"
    printf 'once1 %s %s@%s 7 2 1 %s 3 0 100000 - 6\nresult' \
        "$2" "$uuid" "$3" "$times" | db -x SET "$1" > /dev/null
    [ -z "$5" ] || db PEXPIRE "$1" "$5" > /dev/null
}
record '{o:begun}:once' begun db7:1:b 0 ''
record '{o:works}:once' begun db7:1:w 0 ''
db SET o:works "$uuid@db7:1:w" PX 100000 > /dev/null
record '{o:other}:once' begun db7:1:b 0 ''
db SET o:other "$uuid@db7:1:other" PX 100000 > /dev/null
record '{o:doubt}:once' doubt db7:1:d 1790000090000 ''
record '{o:done}:once' done db7:1:e 1790000090000 100000
record '{o:failed}:once' failed db7:1:f 1790000090000 7200000
record 'o:{tag}::once' doubt db7:1:t 1790000090000 ''
db SET '{o:text}:once' "once1 is text" > /dev/null
printf 'once1 is\ntwo lines' | db -x SET '{o:lines}:once' > /dev/null
db RPUSH '{o:queue}:once' "$uuid" > /dev/null
db SET '{o:name}:once' "$uuid@lock" PX 100000 > /dev/null
gives 0 "list with records" list 'o:*'
lines "shows locks and doubts" 6
line "in doubt without a word" "o:begun${tab}doubt${tab}db7:1:b${tab}-"
line "nor while another one has the lock" \
    "o:other${tab}doubt${tab}db7:1:b${tab}-"
line "whose lock is shown too" "o:other${tab}held${tab}db7:1:other${tab}.*s"
line "in doubt by its word" "o:doubt${tab}doubt${tab}db7:1:d${tab}-"
line "of a name with a tag" "o:{tag}${tab}doubt${tab}db7:1:t${tab}-"
line "work in progress is a lock" "o:works${tab}held${tab}db7:1:w${tab}.*s"
unsaid "and no token" "$uuid"
gives 0 "a pattern with a class" list 'o:[b{]*'
lines "matches the names of records" 2
for name in 'o:{tag}' o:doubt; do
    gives 0 "the whole name $name" list "$name"
    lines "matches its record" 1
done
gives 0 "a pattern of records' keys" list '*:once'
lines "matches names, not keys" 1
line "so only the lock is there" "{o:name}:once${tab}held${tab}lock${tab}.*s"
gives 0 "a lock that is named like a record" list '{o:name}:*'
line "is a lock" "{o:name}:once${tab}held${tab}lock${tab}.*s"
gives 0 "list --once" list --once 'o:*'
lines "shows all records" 9
line "in progress" "o:works${tab}begun${tab}db7:1:w${tab}\(100\|9[0-9]\)s"
line "in doubt" "o:begun${tab}doubt${tab}db7:1:b${tab}-"
line "done, and until when" "o:done${tab}done${tab}db7:1:e${tab}\(100\|9.\)s"
line "failed" "o:failed${tab}failed${tab}db7:1:f${tab}\(2h\|11[0-9]m\)"
gives 0 "list --once --json" list --once --json 'o:d*'
line "says what is known of a doubt" '{"v":1,"name":"o:doubt","state":"doubt",'\
'"label":"db7:1:d","host":"db7","pid":1,"program":"d","owner":"6fa459ea",'\
'"left_ms":null,"attempt":2,"doubts":1,"began":"2026-09-21T14:14:20Z",'\
'"ended":"2026-09-21T14:14:50Z","code":3}'
check "and of what is done" grep -q '"o:done","state":"done",.*"code":3}$' \
    "$dir/out"
gives 0 "in progress" list --once --json 'o:w*'
check "nothing has ended" grep -q '"state":"begun",.*:20Z"}$' "$dir/out"
gives 0 "list with records and a prefix" list --prefix o:
line "without it" "begun${tab}doubt${tab}db7:1:b${tab}-"
lines "has those of the prefix" 6
db ACL SETUSER keys on '>Zqx7' '~o:*' +@all > /dev/null
with_query user=keys with_password Zqx7 \
    gives 0 "a user who may not read records" list 'o:*'
lines "sees the locks" 3
said "and is told" "records of 'nxlock once' are left out"
db --raw KEYS '*o:*' | while read -r key; do db DEL "$key" > /dev/null; done
db ACL DELUSER keys > /dev/null

# The server matches the names, so the pattern has to reach it as it is.
names='g g* ga gab gb g-c g]d g^e g\f {g}h gg'
for name in $names; do
    printf 'SET "%s" %s\n' "$(printf %s "$name" | sed 's/\\/&&/g')" "$uuid"
done | redis-cli -s "$socket" > /dev/null
for glob in 'g' 'g*' 'g?' '*g' 'g\*' 'g[ab]' 'g[a-b]b' 'g[^a]*' 'g[b-a]*' \
    'g[]]d' 'g[\]]d' 'g[a' 'g[' 'g\' 'g\\*' 'g[\^]e' 'g[^^]*' 'g[a-' \
    'g[-]c' '{g}*' 'g**b' '*a*b*' '' 'g[a-]d]' '?*b'; do
    "$nxlock" list --name "$glob" 2> /dev/null | cut -f 1 |
        grep -v : | LC_ALL=C sort > "$dir/here"
    redis-cli -s "$socket" --scan --pattern "$glob" | grep -v : |
        LC_ALL=C sort > "$dir/there"
    check "as the server matches '$glob'" cmp "$dir/here" "$dir/there"
done
for name in $names; do db DEL "$name" > /dev/null; done

printf '%s' "$uuid@db7" | db -x SET "$(printf 'bad\tname\n\033[2J')" > /dev/null
gives 0 "a name of control bytes" list 'bad*'
line "is harmless" "bad?name??\[2J${tab}held${tab}db7${tab}-"
printf 'SET "zero\\x00byte\\xff" %s\n' "$uuid@db7" |
    redis-cli -s "$socket" > /dev/null
gives 0 "a name with a zero byte" list 'zero*'
lines "is one line" 1
check "with all of the name" grep -q '^zero?byte' "$dir/out"
gives 0 "and as JSON" list 'zero*' --json
check "too" grep -q '"name":"zero\\u0000byte\\ufffd"' "$dir/out"

if command -v script > /dev/null; then
    SHELL=/bin/sh timeout 60 script -qec "'$nxlock' list 'app:*'" /dev/null |
        tr -d '\r' > "$dir/out"
    line "at a terminal it has a head" "NAME *STATE *OWNER *LEFT"
    line "and columns" "app:b     held     db7:41233:backup  *[0-9]*s"
fi
"$nxlock" list > /dev/full 2> "$dir/err"
check "a list that cannot be printed" test $? -eq 70

db ACL SETUSER blind on '>Zqx7' '~*' +@all -scan > /dev/null
with_query user=blind with_password Zqx7 gives 77 "a user who may not" list
said "is told what" "scan"

# 20000 keys that are none, and a name of 60000 bytes.
seq 20000 | sed 's/.*/SET key:& value/' | redis-cli -s "$socket" > /dev/null
long=$(head -c 60000 /dev/zero | tr '\0' n)
printf 'SET %s %s PX 100000\n' "$long" "$uuid@long" |
    redis-cli -s "$socket" --pipe > /dev/null
db CONFIG RESETSTAT > /dev/null
with_query timeout_ms=20000 gives 0 "among 20000 other keys" list
lines "it finds the same" 9
check "never by KEYS" test "$(calls keys)" -eq 0
check "in many steps" test "$(calls scan)" -ge 70
check "and most values are not asked how long" test "$(calls pttl)" -le 20

# Three servers: one has no part in it, one is away.
urls=
for i in 1 2 3; do
    mkdir "$dir/$i"
    serve "$dir/$i"
    eval "pid$i=$server"
    urls="$urls -u unix://$dir/$i/socket"
done
at() { # SERVER COMMAND...
    folder=$1
    shift
    redis-cli -s "$dir/$folder/socket" "$@" 2> /dev/null
}
for i in 1 2 3; do
    await at $i PING || echo "Bail out! server $i does not start"
done
at 1 SET most "$uuid@m" PX 90000 > /dev/null
at 2 SET most "$uuid@m" PX 50000 > /dev/null
at 2 SET one "$uuid@o" PX 50000 > /dev/null
at 1 SET split "$uuid@s" PX 50000 > /dev/null
at 2 SET split "7$uuid@s" PX 50000 > /dev/null
at 3 SET all "$uuid@a" PX 60000 > /dev/null
at 2 SET all "$uuid@a" PX 80000 > /dev/null
at 1 SET all "$uuid@a" PX 100000 > /dev/null
# They are lists of words.
# shellcheck disable=SC2086
{
    gives 0 "list over three" list $urls
    lines "has each once" 4
    line "of two" "most${tab}held${tab}m${tab}\(50\|4[0-9]\)s${tab}2/3"
    line "of one" "one${tab}partial${tab}o${tab}[0-9]*s${tab}1/3"
    line "of all" "all${tab}held${tab}a${tab}\(80\|7[0-9]\)s${tab}3/3"
    gives 0 "and as JSON" list most --json $urls
    check "with how many" grep -q '"at":2,"of":3}$' "$dir/out"
    server=$pid3
    stop_server
    gives 0 "while one is away" list $urls
    said "which is said" "left out: unix://$dir/3/socket"
    unsaid "and no failure" "cannot list"
    line "of all that are left" "all${tab}held${tab}a${tab}[0-9]*s${tab}2/3"
    server=$pid2
    stop_server
    gives 69 "while two are away" list $urls
    said "is said" "1 of 3 servers"
}
done_testing
