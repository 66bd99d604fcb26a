#compdef nxlock
# SPDX-License-Identifier: MIT
# Completion of nxlock for zsh, made from its table of commands and options.

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
    _nxlock_command $words[1]
}
