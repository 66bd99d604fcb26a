# SPDX-License-Identifier: MIT
# Completion of nxlock; made by 'nxlock completion zsh'.

# A name is what a server says: compadd quotes it, and nothing runs it. What the
# shell would expand in the words, such as $x, stays as it is: no server or lock
# has such a name.
_nxlock_names() {
    local -a typed names
    typed=("${(@Q)words[1,CURRENT-1]}")
    typed=("${(@)typed/#\~\//$HOME/}")
    [[ $typed[-1] != --name ]] || typed[-1]=()
    names=("${(@0)$(command nxlock completion names "${(@)typed}" \
        "${(Q)PREFIX}" 2> /dev/null < /dev/null)}")
    names=("${(@)names:#}")
    (( $#names )) || return
    local expl
    _wanted names expl 'held lock' compadd "$@" -a names
}

_nxlock() {
    local -i at=${words[(i)--]}
    if (( CURRENT == 2 )); then
        _nxlock_first
        return
    fi
    # Behind -- comes another command.
    if (( at < CURRENT )) && _nxlock_runs $words[2]; then
        shift at words
        (( CURRENT -= at ))
        _normal
        return
    fi
    shift words
    (( CURRENT-- ))
    _nxlock_words $words[1]
}
