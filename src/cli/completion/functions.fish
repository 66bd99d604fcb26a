# SPDX-License-Identifier: MIT
# Completion of nxlock for fish, made from its table of commands and options.

function __nxlock_first
    test (count (commandline -opc)) -eq 1
end

# Is this the command, and the cursor in front of any -- of it?
function __nxlock_in
    set -l words (commandline -opc)
    set -q words[2]
    and test $words[2] = $argv[1]
    and not __nxlock_behind
end

# Is this the command, and is its first word completed?
function __nxlock_second
    test (count (commandline -opc)) -eq 2
    and __nxlock_in $argv[1]
end

# Is the cursor behind the -- of a command that runs another one?
function __nxlock_behind
    set -l words (commandline -opc)
    __nxlock_runs $words[2]
    and contains -- -- $words
end

# Completes the command behind --.
function __nxlock_other
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -e words[1..$at]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

complete -c nxlock -f
complete -c nxlock -n __nxlock_behind -a '(__nxlock_other)'
