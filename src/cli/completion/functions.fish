# SPDX-License-Identifier: MIT
# Completion of nxlock; made by 'nxlock completion fish'.

function __nxlock_first
    test (count (commandline -opc)) -eq 1
end

# Is the command one of these?
function __nxlock_in
    set -l words (commandline -opc)
    set -q words[2]
    and contains -- $words[2] $argv
    and not __nxlock_runs
end

# Completes the command behind --.
function __nxlock_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -e words[1..$at]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

# A name is what a server says: fish quotes it, and nothing runs it. What the
# shell would expand in the words, such as $x, stays as it is: no server or lock
# has such a name.
function __nxlock_names
    set -l words (commandline -opc | string replace -r '^~/' "$HOME/")
    set -e words[1]
    set -l typed (commandline -ct | string replace -r '^--name=' '')
    set typed (string unescape -- "$typed")
    if test "$words[-1]" = --name
        set -e words[-1]
    end
    command nxlock completion names $words "$typed" 2>/dev/null </dev/null
end
