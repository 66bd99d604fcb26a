# SPDX-License-Identifier: MIT
# Completion of nxlock; made by 'nxlock completion bash'.
# shellcheck shell=bash disable=SC2034,SC2154 # the functions share variables

# Sets words to those in front of the cursor's, and full to that one as far as
# the cursor, all as they were typed. Unlike COMP_WORDS, they are split at
# blanks only: a name may contain what COMP_WORDBREAKS lists.
_nxlock_line() {
    local line=${COMP_LINE:0:COMP_POINT} rest i
    for ((i = 0; i < COMP_CWORD; i++)); do
        rest=${line#"${line%%[![:space:]]*}"}
        if [[ $i -eq 0 || $rest != "$line" ]]; then
            words+=("${COMP_WORDS[i]}")
        else
            words[${#words[@]} - 1]+=${COMP_WORDS[i]}
        fi
        line=${rest#"${COMP_WORDS[i]}"}
    done
    full=${line#"${line%%[![:space:]]*}"}
    if [[ ${#words[@]} -gt 1 && $full == "$line" ]]; then
        full=${words[${#words[@]} - 1]}$full
        unset "words[${#words[@]} - 1]"
    fi
}

# Sets plain to the text that WORD means, quote to the quote that is open at its
# end, and before to the part of plain that readline leaves alone. Nothing is
# run or expanded: $x stays $x, and no server or lock has such a name.
_nxlock_plain() { # WORD
    local word=$1 c i outside=''
    plain='' before='' quote=''
    [[ $word != \~/* ]] || { plain=$HOME; word=${word:1}; }
    for ((i = 0; i < ${#word}; i++)); do
        c=${word:i:1}
        if [[ $c == "$quote" ]]; then
            quote='' before=$outside
        elif [[ $c == \\ && $quote != \' ]]; then
            ((++i))
            c=${word:i:1}
            [[ -z $quote || $c == [\"\\\$\`] ]] || plain+=\\
            plain+=$c
        elif [[ $c == [\'\"] && -z $quote ]]; then
            quote=$c outside=$before before=$plain
        else
            plain+=$c
            [[ -n $quote || $COMP_WORDBREAKS != *"$c"* ]] ||
                before=${plain%[@$]} # these two are a part of the word
        fi
    done
}

# Offers each TEXT that begins with plain, quoted as the word is.
_nxlock_offer() { # TEXT...
    local text
    for text; do
        [[ $text == "$plain"* && $text != "$before" ]] || continue
        text=${text:${#before}}
        case $quote in
        \') text=${text//\'/\'\\\'\'} ;;
        \")
            [[ $text != *[!$'\n']* || $text != *['!']* ]] || continue
            text=${text//\\/\\\\} text=${text//\"/\\\"}
            text=${text//\$/\\\$} text=${text//\`/\\\`}
            ;;
        *) printf -v text %q "$text" ;;
        esac
        COMPREPLY+=("$text")
    done
}

_nxlock_files() { # OPTION-OF-COMPGEN
    local file
    compopt -o filenames 2> /dev/null
    while IFS= read -r file; do
        file=$base$file
        COMPREPLY+=("${file:${#before}}")
    done < <(compgen "$1" -- "${plain#"$base"}")
}

# Sets args to the texts of words.
_nxlock_args() {
    local word plain before quote
    for word in "${words[@]:1}"; do
        _nxlock_plain "$word"
        args+=("$plain")
    done
}

# A name is what a server says: it is compared, quoted and shown, never run.
_nxlock_names() {
    local name args=()
    _nxlock_args
    [[ -n $base || ${args[${#args[@]} - 1]} != --name ]] ||
        unset "args[${#args[@]} - 1]"
    while IFS= read -r -d '' name; do
        _nxlock_offer "$base$name"
    done < <(command nxlock completion names "${args[@]}" \
        "${plain#"$base"}" 2> /dev/null < /dev/null)
}

# Offers what KIND says: @file, @folder, @name, or the words themselves.
_nxlock_kind() { # KIND
    local word
    case $1 in
    @file) _nxlock_files -f ;;
    @folder) _nxlock_files -d ;;
    @name) _nxlock_names ;;
    *) for word in $1; do _nxlock_offer "$base$word"; done ;;
    esac
}

_nxlock() {
    local IFS=$' \t\n' words=() full plain before quote base=''
    local command option i first options operand runs value
    COMPREPLY=()
    _nxlock_line
    _nxlock_plain "$full"
    command=${words[1]-}
    _nxlock_table "$command"
    if [[ ${#words[@]} -le 1 ]]; then
        _nxlock_kind "$first"
        return
    fi
    # Behind -- comes another command.
    for ((i = 2; runs && i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] || continue
        if [[ $(type -t _command_offset) == function ]]; then
            _command_offset $((i + 1))
        else
            compopt -o bashdefault -o default 2> /dev/null
            ((i + 1 < COMP_CWORD)) ||
                mapfile -t COMPREPLY < <(compgen -c -- "$plain")
        fi
        return
    done
    option=${words[${#words[@]} - 1]}
    if [[ $plain == --*=* ]]; then
        option=${plain%%=*} base=${plain%%=*}=
    fi
    if _nxlock_value "$option"; then
        # NAME is not always that of a lock that is held.
        [[ $value == @name && $operand != @name ]] || _nxlock_kind "$value"
    elif [[ $plain == -* ]]; then
        _nxlock_kind "$options"
    else
        _nxlock_kind "$operand"
    fi
}
complete -F _nxlock nxlock
