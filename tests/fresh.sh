#!/bin/sh
# SPDX-License-Identifier: MIT
#
# README.md on machines that have nothing: in new trees of Debian 12 and 13,
# made by debootstrap from the mirror of this machine's apt, runs the
# quickstart and README's install lines in a bare clone, then compiles and runs
# README's C program elsewhere. One tree of each release has no libssl-dev, so
# nxlock is built without TLS there and says so; in the other one the first
# lines of docs/tls.md make a lock over TLS.
#
#     sh tests/fresh.sh [SUITE...]       TAP; default: bookworm trixie
#
# Needs root, debootstrap, unshare and ip; a tree that cannot be made is
# skipped, with its reason. Keeps: every mount is made in a namespace that ends
# with its last process, so nothing is ever removed through a mount. Trees and
# processes are gone at the end, also after a signal.
set -u

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
make_tree() { # sets tree, or why there is none
    why="apt names no mirror that debootstrap can use"
    count=0
    for mirror in $(mirrors); do
        count=$((count + 1))
        tree=$here/tree.$count
        # shellcheck disable=SC2086 # a list of words
        env $way_out debootstrap --variant=minbase "$suite" "$tree" \
            "$mirror" > "$log" 2>&1 < /dev/null && return 0
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

listing() { # what must be the same before and after
    (cd "$tree" && find root tmp usr/sbin/policy-rc.d | LC_ALL=C sort &&
        find root -type f -exec cksum {} + | LC_ALL=C sort) 2> /dev/null
}
nothing_left() {
    listing | diff "$here/before" - || return 1
    for proc in /proc/[0-9]*; do
        if [ "$(readlink "$proc/root")" = "$tree" ]; then
            echo "alive: $(tr '\0' ' ' < "$proc/cmdline")"
            return 1
        fi
    done
}
quickstart() { # NAME
    listing > "$here/before"
    check "$1" in_tree sh -c 'cd /root/nxlock && sh docs/quickstart.sh' ||
        return 1
    lasted=$took
    grep '^expected' "$log" | sed 's/^/# /'
    cp "$log" "$here/said"
    check "and nothing is left behind" nothing_left
}
installs_nothing() { # how long it takes depends on what else is running
    ! grep -i 'apt-get' "$here/said"
}

installed() { # WHEN LINES: README's install lines, and what they give
    cp -R "$work/readme" "$tree/root/readme"
    check "$1README's install lines" in_tree sh /root/readme/install.sh "$2" &&
        check "$1the command is installed" in_tree nxlock --version &&
        check "$1README's C program compiles outside the clone" \
            in_tree sh /root/readme/compile.sh
}
# The program's server has port 6379 of a network that nobody else is in.
alone() { # COMMAND...
    # shellcheck disable=SC2016 # the inner shell's own
    env -i PATH="$PATH" unshare -n sh -c '
        ip link set lo up && exec chroot "$@"' sh "$tree" "$@"
}

# Some releases bring OpenSSL's headers along with other packages.
without_tls() {
    if in_tree pkg-config --exists openssl; then
        skip "without libssl-dev" "another package has installed it"
        return
    fi
    check "without libssl-dev, rediss:// says how to get TLS" \
        in_tree sh /root/readme/without_tls.sh
}
with_tls() {
    quickstart "with libssl-dev, sh docs/quickstart.sh"
    check "what docs/tls.md needs" in_tree apt-get install -y openssl &&
        check "the first lines of docs/tls.md make a lock over TLS" \
            alone sh /root/readme/with_tls.sh
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
    cp -a "$tree" "$here/bare" || exit 1
    enter || exit 1
    quickstart "sh docs/quickstart.sh"
    quickstart "sh docs/quickstart.sh, again"
    check "which installs nothing" installs_nothing
    if installed "after it, without libssl-dev, " plain; then
        check "README's C program runs" alone sh /root/readme/run.sh
        without_tls
    fi
    tree=$here/bare
    enter || exit 1
    # Only to save the mirror's time: the packages are the same.
    cp "$here"/tree.*/var/cache/apt/archives/*.deb \
        "$tree/var/cache/apt/archives/" 2> /dev/null
    if installed "without it, " lines; then
        with_tls
    fi
    echo "# $suite: $(($(date +%s) - start)) s in all"
    exit $bad
}

# ----------------------------------------------------- outside: what is tested

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

# From the heading "## Install" up to the next: blocks, fenced or indented, up
# to the one with "meson install" or "ninja install".
install_lines() {
    awk '
        /^```/ { fenced = !fenced; if (!fenced && done) exit; next }
        !fenced && /^## / { inside = /^## +Install/; next }
        !inside { next }
        !fenced && !/^    / { if (done && NF) exit; next }
        {
            sub(/^    /, ""); sub(/^\$ /, "")
            if (/^git clone/ || /^cd nxlock/) next
            print
            if (/install -C|(meson|ninja) install/) done = 1
        }
        END { exit !done }' "$work/clone/README.md"
}
fenced() { # KIND FILE: the first block of that kind
    awk -v kind="$1" '/^```/ { if (on) exit; on = $0 == "```" kind; next } on' \
        "$work/clone/$2"
}
tls_scripts() { # what a tree runs about TLS
    fenced sh docs/tls.md > "$out/tls.sh"
    fenced text docs/tls.md > "$out/tls.text"
    cat > "$out/with_tls.sh" << 'END'
set -e
export PATH=/usr/local/bin:/usr/bin:/bin
mkdir /root/tls
cd /root/tls
trap 'kill $!; cat log said' EXIT
. /root/readme/tls.sh > said
cmp said /root/readme/tls.text
END
    cat > "$out/without_tls.sh" << 'END'
said=$(nxlock status x -u rediss://localhost 2>&1)
code=$?
echo "$code: $said"
[ $code -eq 78 ] && case $said in *"no TLS"*libssl-dev*) ;; *) false ;; esac
END
}
readme() { # its blocks, as what each tree runs; or the reason why not
    out=$work/readme
    mkdir "$out"
    install_lines > "$out/lines" ||
        { echo "no 'meson install' in a block under '## Install'"; return 1; }
    sed 's/ libssl-dev//' "$out/lines" > "$out/plain"
    ! cmp -s "$out/lines" "$out/plain" ||
        { echo "no libssl-dev in a block under '## Install'"; return 1; }
    tls_scripts
    if ! grep -q rediss:// "$out/tls.sh" || ! [ -s "$out/tls.text" ]; then
        echo "docs/tls.md does not begin with a block that locks"
        return 1
    fi
    fenced c README.md > "$out/program.c"
    grep -q 'main(' "$out/program.c" ||
        { echo "no C program in a block that starts with \`\`\`c"; return 1; }
    compile=$(grep -m 1 'pkg-config --cflags --libs nxlock' \
        "$work/clone/README.md" | sed 's/^[ $]*//')
    source=$(echo "$compile" | sed -n 's/.* \([^ ]*\.c\)\( .*\)*$/\1/p')
    binary=$(echo "$compile" | sed -n 's/.* -o *\([^ ]*\).*/\1/p')
    if [ -z "$source" ] || [ -z "$binary" ]; then
        echo "no line 'cc X.c -o X ... pkg-config --cflags --libs nxlock'"
        return 1
    fi
    # Line by line, as they are typed: && in a line must not hide a failure.
    cat > "$out/install.sh" << 'END'
cd /root/nxlock || exit 1
while read -r line <&3; do
    echo "\$ $line"
    eval "$line" || exit 1
done 3< "/root/readme/$1"
END
    cat > "$out/compile.sh" << END
set -e
mkdir /root/outside
cd /root/outside
cp /root/readme/program.c "$source"
$compile
END
    cat > "$out/run.sh" << END
export PATH=/usr/local/bin:/usr/bin:/bin
cd /root/outside || exit 1
redis-server --save '' --dir /tmp > /tmp/redis.log 2>&1 &
server=\$!
tries=0
until nxlock status ready > /dev/null 2>&1; [ \$? -eq 1 ]; do
    tries=\$((tries + 1))
    [ \$tries -lt 100 ] || { cat /tmp/redis.log; exit 1; }
    sleep 0.1
done
./$binary > /tmp/said
code=\$?
cat /tmp/said
kill \$server
wait \$server
[ \$code -eq 0 ] && [ -s /tmp/said ]
END
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

if [ "${1-}" = --inside ]; then
    work=$2
    inside "$3"
fi

running=
work=$(mktemp -d) || exit 1
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 131' QUIT
trap 'exit 141' PIPE
trap 'exit 143' TERM
[ $# -gt 0 ] || set -- bookworm trixie
why=$(lacking)
if [ -n "$why" ]; then
    for suite; do
        mkdir "$work/$suite"
        skip "a tree" "$why" > "$work/$suite/tap"
    done
else
    clone
    if ! readme > "$work/why"; then
        echo "not ok 1 - README.md: $(cat "$work/why")"
        echo "1..1"
        exit 1
    fi
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
fi
for suite; do
    cat "$work/$suite/tap"
done > "$work/tap"
awk '/^(not )?ok - / { sub(/ok -/, "ok " ++n " -") } /^not ok/ { bad = 1 }
    { print } END { print "1.." n; exit bad }' "$work/tap"
