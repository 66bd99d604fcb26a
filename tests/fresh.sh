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
# NXLOCK_FULL=1: each build is optimized as a reader's is, and the quickstart
# runs again, and once more with libssl-dev. (The test quickstart, too, runs it
# where nothing is missing.)
#
#     sh tests/fresh.sh [SUITE...]       TAP; default: bookworm trixie
#
# support/trees.sh makes the trees, and says what that needs.
# shellcheck disable=SC2154 # the tree's variables
set -u

# shellcheck source=tests/support/trees.sh
. "$(dirname "$0")/support/trees.sh"

# ------------------------------------------------- inside: the life of one tree

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
quickstart() { # NAME [CFLAGS]
    listing > "$here/before"
    check "$1" in_tree env ${2:+"CFLAGS=$2"} \
        sh -c 'cd /root/nxlock && sh docs/quickstart.sh' || return 1
    grep '^expected' "$log" | sed 's/^/# /'
    cp "$log" "$here/said"
    check "and nothing is left behind" nothing_left
}
# README's lines are built as a reader builds them, once; the rest is not
# optimized, unless NXLOCK_FULL is set: that takes most of the time.
quickly='-O0 -g0'
first=$quickly
[ -z "${NXLOCK_FULL-}" ] || first=
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
no_service() { # an installed redis-server must not start serving
    printf '#!/bin/sh\nexit 101\n' > "$tree/usr/sbin/policy-rc.d" &&
        chmod +x "$tree/usr/sbin/policy-rc.d"
}
with_tls() {
    # The test quickstart is on a machine with OpenSSL too.
    [ -z "${NXLOCK_FULL-}" ] ||
        quickstart "with libssl-dev, sh docs/quickstart.sh" "$quickly"
    no_service
    check "what docs/tls.md needs" \
        in_tree apt-get install -y --no-install-recommends \
        openssl redis-server &&
        check "the first lines of docs/tls.md make a lock over TLS" \
            alone sh /root/readme/with_tls.sh
}

life() {
    quickstart "sh docs/quickstart.sh" "$first"
    if [ -n "${NXLOCK_FULL-}" ]; then
        quickstart "sh docs/quickstart.sh, again" "$quickly"
        check "which installs nothing" installs_nothing
    fi
    if installed "after it, without libssl-dev, " plain; then
        check "README's C program runs" alone sh /root/readme/run.sh
        without_tls
    fi
    begin_again
    if installed "without it, " lines; then
        with_tls
    fi
}

# ----------------------------------------------------- outside: what is tested

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
    [ -n "${NXLOCK_FULL-}" ] ||
        sed -i 's/--buildtype=release/--buildtype=plain/' "$out/plain"
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

prepare() {
    reason=$(readme) && return
    echo "README.md: $reason"
    return 1
}
trees "bookworm trixie" "$@"
