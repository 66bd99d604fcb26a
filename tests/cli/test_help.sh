#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Help and version, in every spelling; help begins with what can be copied.
# Usage: test_help.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

# The first line of the output that matches $1 comes before the first that
# matches $2.
before() {
    one=$(grep -n -m 1 -e "$1" "$dir/out" | cut -d : -f 1)
    two=$(grep -n -m 1 -e "$2" "$dir/out" | cut -d : -f 1)
    [ "$one" -lt "$two" ]
}
has() { # NAME PATTERN
    check "$1" grep -q -e "$2" "$dir/out"
}

for line in "--version run" "-V -v" "--help run" "help run lock" \
    "help connection tls"; do
    # shellcheck disable=SC2086 # words
    gives 64 "$line: a word too many" $line
    said "is named" "unexpected '${line##* }'"
done
for spelling in --version -V; do
    gives 0 "$spelling" $spelling
    has "tells one" '^nxlock [0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*$'
    check "and nothing else" test "$(wc -l < "$dir/out")" -eq 1
    check "and says nothing" test ! -s "$dir/err"
done

gives 0 "--help" --help
cp "$dir/out" "$dir/overview"
check "says nothing" test ! -s "$dir/err"
has "has an example" '^  nxlock run [a-z]'
check "which stands before the list" before '^  nxlock run' '^commands:'
for code in 64 65 69 70 75 76 77 78 79 126 127 128; do
    has "knows the code $code" "\<$code\>"
done
for command in run once acquire renew release status wait unlock; do
    has "names $command" "^  $command NAME"
done
for command in list doctor; do
    has "names $command" "^  $command \["
done
for variable in NXLOCK_URL /etc/nxlock.conf redis://127.0.0.1:6379; do
    has "names $variable" "$variable"
done
has "says where to look at night" "job did not run: 'nxlock status --help'"
for spelling in -h help; do
    gives 0 "$spelling" $spelling
    check "is the same" cmp "$dir/out" "$dir/overview"
done

for command in run once acquire renew; do
    gives 0 "$command --help" "$command" --help
    has "says that --ttl raises the limit" \
        '^With one server and no guard, a longer --ttl .*raises the default'
done
gives 0 "status --help" status --help
has "says how to tell a dead holder" 'Is the holder alive?'
check "has no --ttl, so it does not" sh -c "! grep -q raises '$dir/out'"

gives 0 "help connection" help connection
has "has an example" '^  nxlock .*rediss://'
for parameter in db user password_file timeout_ms max_ttl_ms drift_ppm \
    keepalive_s prefix sentinel_password_file sentinel_tls cacert verify sni; do
    has "explains $parameter" "^  $parameter="
done
for variable in URL URL_FILE PASSWORD PASSWORD_FILE; do
    has "names NXLOCK_$variable" "NXLOCK_$variable\>"
done
has "says what is dangerous" '^HARM: .*verify=ca'
sed '/^parameters of/,$d' "$dir/out" > "$dir/own"
check "its own words fit a terminal" fails grep -q '.\{81\}' "$dir/own"
for command in run once acquire renew release status wait list unlock doctor; do
    gives 0 "$command --help" "$command" --help
    cp "$dir/out" "$dir/text"
    check "says nothing" test ! -s "$dir/err"
    has "begins with how to write it" "^nxlock $command \(NAME\|\[\)"
    has "has an example" "^  .*nxlock $command"
    check "and no example has a user without a password" fails grep -q \
        '://[^:/ ]*@' "$dir/out"
    check "which stands before all else" before "^  .*nxlock $command" \
        '^[A-Z]'
    check "and before the options" before "^  .*nxlock $command" \
        '^options:'
    check "which stand before the text" before '^options:' '^[A-Z]'
    for flag in url url-file name help password-file prefix cacert insecure; do
        has "has --$flag" "--$flag\>"
    done
    check "but no --password" fails grep -q -e '--password\>[^-]' "$dir/out"
    has "says where the rest is explained" "'nxlock help connection'"
    check "it fits a terminal" fails grep -q '.\{81\}' "$dir/out"
    gives 0 "$command -h" "$command" -h
    check "is the same" cmp "$dir/out" "$dir/text"
    gives 0 "help $command" help "$command"
    check "is the same" cmp "$dir/out" "$dir/text"
done

gives 0 "run --help" run --help
check "and what DUR is" grep -q "^DUR is .*a bare number is seconds" "$dir/out"
for flag in no-wait wait ttl busy-code verbose command; do
    has "has --$flag" "--$flag\>"
done
gives 0 "acquire --help" acquire --help
for flag in no-wait wait ttl busy-code verbose; do
    has "has --$flag" "--$flag\>"
done
check "and not what is run's" fails grep -q -e --command "$dir/out"
gives 0 "renew --help" renew --help
has "has --ttl" "--ttl\>"
gives 0 "status --help" status --help
for flag in verbose json; do
    has "has --$flag" "--$flag\>"
done

gives 0 "help after a name" run x --help
has "is the command's" '^nxlock run NAME'
done_testing
