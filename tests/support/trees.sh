# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
#
# For fresh.sh and packages.sh: new trees of Debian and Ubuntu releases, made by
# debootstrap from the mirror of this machine's apt, each with a life of its
# own. The script says what that is:
#
#     . .../support/trees.sh
#     prepare() ...              once, before there is a tree; a failure ends it
#     life() ...                 in each tree ($suite, $tree), by check()
#     trees DEFAULT "$@"         TAP, of the suites in "$@", or else in DEFAULT
#
# Needs root, debootstrap, unshare and ip; a tree that cannot be made is
# skipped, with its reason. Invariant: every mount is made in a namespace that
# ends with its last process, so nothing is ever removed through a mount. Trees
# and processes are gone at the end, also after a signal.

unset CDPATH # cd would print where it went
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0") || exit 1
root=$(dirname "$(dirname "$self")")

have() {
    command -v "$1" > /dev/null 2>&1
}

# ------------------------------------------------- inside: the life of one tree

ok() { # NAME: it gets its number when all trees are told together
    echo "ok - $suite: $1"
}
not_ok() { # NAME: and the end of the log
    bad=1
    echo "not ok - $suite: $1"
    tail -n 40 "$log" | sed 's/^/# /'
}
skip() { # NAME REASON
    echo "ok - $suite: $1 # SKIP $2"
}
check() { # NAME COMMAND...: and how long it took
    name=$1
    began=$(date +%s)
    shift
    "$@" > "$log" 2>&1 < /dev/null
    code=$?
    took=$(($(date +%s) - began))
    if [ $code -ne 0 ]; then
        not_ok "$name"
        return 1
    fi
    ok "$name"
    echo "# $took s"
}

mirrors() { # of this machine's apt, as far as debootstrap can use them
    # shellcheck disable=SC2016 # apt's own variable
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' |
        grep -E '^(https?|file):' | awk '!seen[$0]++'
}
proxies() { # the machine's way out, as words for env
    for scheme in http https; do
        value=
        eval "$(apt-config shell value "Acquire::$scheme::Proxy")"
        case $value in
            '' | DIRECT) eval "value=\${${scheme}_proxy-}" ;;
        esac
        [ -z "$value" ] || echo "${scheme}_proxy=$value"
    done
    [ -z "${no_proxy-}" ] || echo "no_proxy=$no_proxy"
}

# In memory where there is plenty: it is three times as fast as a busy disk, and
# gone with the namespace.
in_memory() {
    free=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
    [ "${free:-0}" -lt 8000000 ] ||
        mount -t tmpfs -o mode=755,size=3g tmpfs "$here"
}
# Ubuntu's archive is asked for at the mirrors of this machine's apt first: many
# have it beside Debian's. NXLOCK_UBUNTU_MIRROR names another one.
ubuntu_mirrors() {
    echo "${NXLOCK_UBUNTU_MIRROR-}"
    mirrors | sed 's|/debian/*$|/ubuntu|' | grep '/ubuntu/*$'
    echo http://archive.ubuntu.com/ubuntu
}

# Debian has Ubuntu's keys in a package, but not each release has it.
ubuntu_keys() { # sets keyring, or why there is none
    keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
    [ ! -f $keyring ] || return 0
    keys=$here/keys
    why="no $keyring, and the package ubuntu-keyring cannot be got"
    for mirror in $(mirrors); do
        rm -rf "$keys"
        mkdir -p "$keys/etc" "$keys/lists/partial" "$keys/archives/partial"
        : > "$keys/status"
        echo "deb [signed-by=$debian_keyring] $mirror trixie main" \
            > "$keys/etc/sources.list"
        # shellcheck disable=SC2086 # lists of words
        (cd "$keys" && set -- env $way_out apt-get -q -o Dir::Etc="$keys/etc" \
            -o Dir::State="$keys" -o Dir::State::status="$keys/status" \
            -o Dir::Cache="$keys" -o APT::Sandbox::User=root &&
            "$@" update && "$@" download ubuntu-keyring &&
            dpkg-deb -x ubuntu-keyring_*.deb .) > "$log" 2>&1 < /dev/null
        keyring=$keys/usr/share/keyrings/ubuntu-archive-keyring.gpg
        [ ! -f "$keyring" ] || return 0
    done
    return 1
}
debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The release's distribution: sets what debootstrap is told. Its script for one
# Ubuntu is that for all of them, and knows no release that is younger than it.
find_archive() {
    case $suite in
        focal | jammy | noble | plucky | questing | resolute)
            ubuntu_keys || return 1
            sites=$(ubuntu_mirrors)
            words="--keyring=$keyring --components=main,universe"
            script=gutsy
            ;;
        *)
            sites=$(mirrors)
            words=
            script=
            ;;
    esac
}
make_tree() { # sets tree, or why there is none
    find_archive || return 1
    why="apt names no mirror that debootstrap can use"
    count=0
    for mirror in $sites; do
        count=$((count + 1))
        tree=$here/tree.$count
        # shellcheck disable=SC2086 # lists of words
        env $way_out debootstrap --variant=minbase $words "$suite" "$tree" \
            "$mirror" $script > "$log" 2>&1 < /dev/null && return 0
        [ $count -gt 1 ] || why="debootstrap: $(tail -n 1 "$log")"
    done
    return 1
}

# What a tree takes over from the machine, and a bare clone. apt knows no
# packages yet, as in a container's image. No fsync: this disk is not kept.
furnish() {
    apt-config dump --no-empty --format '%F "%v";%n' Acquire |
        grep -E '^Acquire::(Check-|https?::Proxy )' \
            > "$tree/etc/apt/apt.conf.d/90machine"
    rm -rf "$tree"/var/lib/apt/lists/* &&
        echo force-unsafe-io > "$tree/etc/dpkg/dpkg.cfg.d/90unsafe" &&
        cp /etc/resolv.conf /etc/hosts "$tree/etc/" &&
        cp -R "$work/clone" "$tree/root/nxlock"
}
enter() { # what a system has running; seen only in here
    mount -t proc proc "$tree/proc" && mount -t tmpfs tmpfs "$tree/tmp"
}

in_tree() { # COMMAND...
    # shellcheck disable=SC2086 # a list of words
    env -i $way_out HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        chroot "$tree" "$@"
}

inside() { # SUITE: process 1 of its namespace; all the others end with it
    suite=$1
    here=$work/$suite
    log=$here/log
    bad=0
    way_out=$(proxies)
    start=$(date +%s)
    in_memory || exit 1
    if ! make_tree; then
        skip "a tree" "$why"
        exit 0
    fi
    echo "# $suite: debootstrap took $(($(date +%s) - start)) s"
    check "a tree, and a bare clone in it" furnish || exit 1
    # What has not been entered yet: for a second life.
    cp -a "$tree" "$here/bare" || exit 1
    enter || exit 1
    life
    echo "# $suite: $(($(date +%s) - start)) s in all"
    exit $bad
}
begin_again() { # in a bare tree; with the packages, to save the mirror's time
    tree=$here/bare
    enter || exit 1
    cp "$here"/tree.*/var/cache/apt/archives/*.deb \
        "$tree/var/cache/apt/archives/" 2> /dev/null
    return 0
}

# ------------------------------------------------------ outside: what it is for

clone() { # what is committed; with changes, the files that git would take
    if [ -z "$(git -C "$root" status --porcelain 2>&1)" ] &&
        git clone -q "$root" "$work/clone" 2> /dev/null; then
        echo "# a clone of $(git -C "$root" rev-parse --short HEAD)"
        return
    fi
    mkdir "$work/clone" && cd "$root" || exit 1
    if git ls-files > /dev/null 2>&1; then
        echo "# a copy of the files as they stand, with uncommitted changes"
        git ls-files -co --exclude-standard | while IFS= read -r file; do
            [ ! -f "$file" ] || echo "$file"
        done > "$work/list"
    else
        echo "# a copy of all files: git cannot be asked"
        find . -name .git -prune -o -type f -print > "$work/list"
    fi
    tar -cf - -T "$work/list" | tar -C "$work/clone" -xf -
    cd / || exit 1
}

# ------------------------------------------------ outside: the trees' beginning
# and end

mounted() { # PATH: something is mounted there or below
    awk -v path="$1" 'BEGIN { found = 1 }
        index($2 "/", path "/") == 1 { found = 0 } END { exit found }' \
        /proc/mounts
}
clean() {
    trap - EXIT
    trap '' HUP INT QUIT PIPE TERM
    for one in $running; do
        kill -KILL "$one" 2> /dev/null
        wait "$one" 2> /dev/null
    done
    # The last processes of a tree may need a moment to end.
    tries=0
    while [ -e "$work" ] && [ $tries -lt 100 ]; do
        if mounted "$work"; then
            echo "# not removed, something is mounted in it: $work" >&2
            return
        fi
        rm -rf --one-file-system "$work" 2> /dev/null || sleep 0.1
        tries=$((tries + 1))
    done
    [ ! -e "$work" ] || echo "# not removed: $work" >&2
}

lacking() { # the reason why no tree can be made here
    if [ "$(id -u)" -ne 0 ]; then
        echo "only root can make a tree"
        return
    fi
    for tool in debootstrap unshare ip chroot apt-get; do
        have $tool || { echo "there is no $tool"; return; }
    done
    unshare -m -p -f --mount-proc true 2> /dev/null ||
        echo "unshare cannot make a namespace for mounts here"
}

trees() { # DEFAULT SUITE...
    default=$1
    shift
    if [ "${1-}" = --inside ]; then
        work=$2
        inside "$3"
    fi
    # shellcheck disable=SC2086 # a list of words
    [ $# -gt 0 ] || set -- $default
    running=
    work=$(mktemp -d) || exit 1
    trap clean EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 131' QUIT
    trap 'exit 141' PIPE
    trap 'exit 143' TERM
    why=$(lacking)
    if [ -n "$why" ]; then
        for suite; do
            mkdir "$work/$suite"
            skip "a tree" "$why" > "$work/$suite/tap"
        done
    else
        clone
        if ! prepare > "$work/why"; then
            echo "not ok 1 - $(cat "$work/why")"
            echo "1..1"
            exit 1
        fi
        live "$@"
    fi
    for suite; do
        cat "$work/$suite/tap"
    done > "$work/tap"
    awk '/^(not )?ok - / { sub(/ok -/, "ok " ++n " -") } /^not ok/ { bad = 1 }
        { print } END { print "1.." n; exit bad }' "$work/tap"
}
live() { # SUITE...: all at once
    for suite; do
        mkdir "$work/$suite"
        # As the first process of the namespace it takes all others with it.
        unshare -m -p -f --mount-proc --kill-child sh "$self" --inside \
            "$work" "$suite" > "$work/$suite/tap" 2>&1 < /dev/null &
        running="$running$! "
    done
    for suite; do
        wait "${running%% *}"
        code=$?
        running=${running#* }
        [ $code -eq 0 ] || grep -q '^not ok' "$work/$suite/tap" ||
            echo "not ok - $suite: it ended early, with code $code" \
                >> "$work/$suite/tap"
    done
}
