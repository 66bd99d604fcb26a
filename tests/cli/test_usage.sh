#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A line that can be read in two ways is refused (64), with what was
# understood and what to write. No server is needed: none is asked.
# Usage: test_usage.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

NXLOCK_URL=unix://$dir/nothing
export NXLOCK_URL

words() {
    gives 64 "no command"
    said "and help is shown" "nxlock run"
    gives 64 "a misspelt command" rnu x -- true
    said "and the nearest is named" "'rnu'" "did you mean 'run'?"
    gives 64 "another misspelt command" realease x y
    said "and the nearest is named" "'realease'" "did you mean 'release'?"
    gives 64 "an unknown command" frobnicate
    said "and the commands are named" "'frobnicate'" run acquire renew \
        release status
    gives 64 "help for an unknown command" help rnu
    said "and the nearest is named" "did you mean 'run'?"
    gives 64 "an option before the command" -n run x -- true
    said "and the order is told" "'-n'" "nxlock COMMAND NAME"
    gives 64 "a command without --" run x sleep 1
    said "and the line is written out" "'sleep'" "nxlock run x -- sleep"
    gives 64 "no command at all" run x
    said "and what is missing is told" "nxlock run x -- CMD"
    gives 64 "nothing after --" run x --
    said "and what is missing is told" "no command after '--'"
    gives 64 "no name" run -- true
    said "and what is missing is told" "NAME"
    gives 64 "an empty name" run "" -- true
    said "and that is said" "NAME" "empty" "nxlock run NAME"
    gives 64 "a name like an option" run -backup -- true
    said "and how to write it" "'-backup'" "--name=-backup"
    gives 64 "a name like a long option" status --backup
    said "and how to write it" "'--backup'" "--name=--backup"
    gives 64 "two names" run x --name=y -- true
    said "and both are named" "'x'" "'y'"
    gives 64 "a word too many" status x y
    said "and the line is written out" "'y'" "nxlock status NAME"
    gives 64 "no token" release x
    said "and which word that is" "TOKEN" "nxlock acquire x"
}

options() {
    gives 64 "a misspelt option" run x --tll 3 -- true
    said "and the nearest is named" "'--tll'" "did you mean '--ttl'?"
    for flag in timeout-ms max-ttl-ms user db scheme poll; do
        gives 64 "a parameter of the URL, --$flag" run x --$flag 3 -- true
        said "is no option" "run has no option '--$flag'" \
            "as in -u 'redis://HOST?$(echo $flag | tr - _)="
    done
    for flag in verify sni cert; do
        gives 64 "one for TLS, --$flag" status x --$flag=3
        said "is no option" "status has no option '--$flag'" \
            "as in -u 'rediss://HOST?$flag="
    done
    gives 64 "one without its unit" run x --timeout 3 -- true
    said "is recognized" "redis://HOST?timeout_ms=MS"
    for flag in host port; do
        gives 64 "an option of redis-cli, --$flag" run x --$flag 3 -- true
        said "is what the URL says" "--$flag'" "-u redis://HOST:PORT"
    done
    gives 64 "an unknown option" run x --frobnicate -- true
    said "and where they are listed" "'--frobnicate'" "nxlock run --help"
    gives 64 "an unknown letter among known ones" run x -nz -- true
    said "and the word is repeated" "'-nz'"
    gives 64 "an option of another command" status x -n
    said "and the command is named" "status" "'-n'"
    unsaid "and one letter is not taken for a misspelt word" "did you mean"
    gives 64 "--json of another command" run x --json -- true
    said "and the command is named" "run" "'--json'"
    gives 64 "-c of another command" acquire x -c true
    said "and the command is named" "acquire" "'-c'"
    gives 64 "a missing value" run x -w -- true
    said "and what belongs there" "-w DUR"
    gives 64 "a missing value at the end" acquire x -w
    said "and what belongs there" "-w DUR"
    gives 64 "a missing value of a long option" run x --ttl -- true
    said "and what belongs there" "--ttl DUR"
    gives 64 "a missing value of a URL flag" run x --prefix -- true
    said "and what belongs there" "--prefix TEXT"
    gives 64 "a value where none belongs" run x --no-wait=3 -- true
    said "and both are repeated" "--no-wait takes no value" "'3'"
    gives 64 "-n and -w together" run x -n -w 5 -- true
    said "and both are named" "-n" "-w" "exclude each other"
    set --
    while [ $# -lt 32 ]; do
        set -- "$@" -u "redis://h$#"
    done
    gives 64 "sixteen servers" run x "$@" -- true
    said "and the option is named" "-u" "15"
}

values() {
    gives 64 "a bad duration" run x -w 5x -- true
    said "and the units" "'5x'" "500ms, 30s, 10m, 2h or 1d" \
        "a bare number is seconds"
    for duration in -1 1e3 5.s .5s 5,5s '5 s' 5S s 99999999999d; do
        gives 64 "'$duration' is no duration" run x "--wait=$duration" -- true
        said "and it is repeated" "'$duration'"
    done
    gives 64 "a lease of nothing" run x --ttl 0 -- true
    said "and an example" "--ttl 0 is too short" "such as 30s"
    for word in 256 -1 x 1x 0x1; do
        gives 64 "'$word' is no exit code" run x "-E$word" -- true
        said "and the bounds" "'$word'" "from 0 to 255"
    done
    gives 64 "a lease above the limit" run x --ttl 30d -- true
    said "and the limit" "--ttl 30d is too long" "24d"
    gives 64 "not a token" release x nonsense
    said "and which word that is" "token" "nxlock acquire x"
    gives 64 "not a token either" renew x nonsense
    said "and which word that is" "token" "nxlock acquire x"
}

words
options
values
done_testing
