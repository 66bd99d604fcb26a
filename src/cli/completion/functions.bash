# SPDX-License-Identifier: MIT
# Completion of nxlock for bash, made from its table of commands and options.
# shellcheck shell=bash disable=SC2034 # the functions share variables

# Completes the command behind the -- at this word.
_nxlock_behind() { # INDEX
    if [[ $(type -t _command_offset) == function ]]; then
        _command_offset $(($1 + 1))
        return
    fi
    compopt -o bashdefault -o default 2> /dev/null
    (($1 + 1 < COMP_CWORD)) || mapfile -t COMPREPLY < <(compgen -c -- "$current")
}

_nxlock() {
    local current=${COMP_WORDS[COMP_CWORD]}
    local previous=${COMP_WORDS[COMP_CWORD - 1]}
    local i words='' kind='' options='' runs='' actions=''
    COMPREPLY=()
    # COMP_WORDBREAKS splits --option=value: the '=' is a word.
    if [[ $current == = ]]; then
        current=''
    elif [[ $previous == = && $COMP_CWORD -gt 2 ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)); then
        _nxlock_first
    else
        _nxlock_command "${COMP_WORDS[1]}"
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [[ -n $runs && ${COMP_WORDS[i]} == -- ]]; then
                _nxlock_behind "$i"
                return
            fi
        done
        if _nxlock_value "$previous"; then
            # Readline's own completion quotes the names of files.
            [[ -z $kind ]] || compopt -o "$kind" 2> /dev/null
        elif [[ $current == -* ]]; then
            words=$options
        elif ((COMP_CWORD == 2)); then
            words=$words$actions
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    [[ ${COMPREPLY[0]-} != *: ]] || compopt -o nospace 2> /dev/null
}
complete -F _nxlock nxlock
