#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The completion scripts, run by the shells that they are for: what they offer
# is what the command takes. Contacts no server.
# Usage: test_completion.sh PATH-OF-NXLOCK
. "${0%/*}/rig.sh"

# Prints what bash offers for the last of WORD..., one a line, sorted.
offers() { # WORD...
    bash --norc --noprofile -c '
        eval "$("$0" completion bash)"
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _nxlock
        printf "%s\n" "${COMPREPLY[@]}"' "$nxlock" "$@" | sort > "$dir/offer"
}
offered() { # NAME WORD...: exactly these
    name=$1
    shift
    printf '%s\n' "$@" | sort > "$dir/wanted"
    cmp -s "$dir/wanted" "$dir/offer" ||
        echo "# offered: $(tr '\n' ' ' < "$dir/offer")"
    check "$name" cmp "$dir/wanted" "$dir/offer"
}
# All options that the help of a command shows, with and without a letter.
options_of() { # COMMAND
    "$nxlock" "$1" --help | sed '1,/^options:/d; /^more options/,$d' |
        sed -nE 's/^ *(-[a-zA-Z], *)?(--[a-z][a-z-]*).*/\1\2/p' | tr -d ,
    "$nxlock" "$1" --help | sed '1,/^more options/d'
}

commands=$("$nxlock" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')

words() {
    offers nxlock ''
    # shellcheck disable=SC2086 # words
    offered "the first word is a command" $commands help completion --help \
        --version
    offers nxlock re
    offered "or the rest of one" release renew
    offers nxlock help un
    offered "help takes a command" unlock
    offers nxlock completion ''
    offered "completion takes a shell" bash zsh
    for command in $commands; do
        offers nxlock "$command" x -
        case $command in
        run | once) more=-- ;;
        *) more= ;;
        esac
        # shellcheck disable=SC2046 # words
        offered "$command: all options of its help" $(options_of "$command") \
            $more
    done
    offers nxlock acl run st
    offered "acl takes commands" status
    offers nxlock acl fe
    offered "and features" fence
    offers nxlock run x --at-
    offered "the rest of an option" --at-least --at-most
    offers nxlock run x mak
    offered "a name is not completed" ''
}

values() {
    offers nxlock run x --on-down ''
    offered "a choice" fail skip run
    offers nxlock run x --on-lost k
    offered "or the rest of one" kill
    offers nxlock run x --wait -
    offered "a duration is not completed" ''
    offers nxlock run x -w -
    offered "nor behind its letter" ''
    offers nxlock status x --timeout-ms -
    offered "nor a number of the URL's" ''
    : > "$dir/url-file"
    offers nxlock status x --url-file "$dir/url-"
    offered "a file" "$dir/url-file"
    offers nxlock status x --cacert "$dir/url-"
    offered "a file of TLS" "$dir/url-file"
    mkdir "$dir/certificates"
    offers nxlock status x --cacertdir "$dir/"
    offered "a folder" "$dir/certificates"
    offers nxlock help conn
    offered "help's other subject" connection
    for word in make --dir; do
        offers nxlock run x -- cmd $word
        offered "the words of CMD are its own: $word" ''
    done
}

# Every value that is offered for a choice is taken.
taken() {
    for option in --on-down --on-lost; do
        offers nxlock run x $option ''
        while read -r word; do
            gives 78 "$option $word" run x -n -u "" $option "$word" -- true
        done < "$dir/offer"
    done
}

others() {
    gives 0 "completion zsh" completion zsh
    check "begins as zsh wants it" grep -q '^#compdef nxlock$' "$dir/out"
    for shell in '' fish; do
        gives 64 "completion ${shell:-without a shell}" completion $shell
        said "is told which there are" "nxlock completion bash" zsh
    done
    if command -v zsh > /dev/null; then
        "$nxlock" completion zsh > "$dir/_nxlock"
        check "zsh can load it" zsh -f -c "autoload -U compinit &&
            compinit -D && source $dir/_nxlock"
    else
        skip "zsh can load it" "zsh IS NOT INSTALLED"
    fi
}

if command -v bash > /dev/null; then
    words
    values
    taken
else
    skip "bash completes" "bash IS NOT INSTALLED"
fi
others
done_testing
