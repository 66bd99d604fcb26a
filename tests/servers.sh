#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The live tests on real servers of other Debian releases, and failovers of
# three of them (tests/faults/failover.py and sentinel.py). Each server comes
# from the mirror of this machine's apt, with the libraries of its own release,
# into a private directory, and runs there by its own loader: nothing is
# installed, and apt's own state is neither read nor written.
#
#     sh tests/servers.sh BUILD [NAME...]
#
# writes TAP; BUILD is a meson build directory.
#
# Runs the live tests of BUILD that depend on the server's version; among them
# is one of a user without scripts. The failovers take ten minutes for each of
# three servers. NXLOCK_SERVERS=DIR keeps the servers in DIR and takes them from
# there; without it all is removed at the end, also after a signal. What cannot
# be got is skipped, with the reason. Any other DIR/NAME/redis-server is tested
# too: of a version that Debian has no more. With NAMEs only these are tested.
# Needs root, python3 and meson.
set -u

# A name for it; its release and what that is built upon; its program; whether
# failovers are played with it. Experimental has it as a binary for most
# machines, and else it is built here from its source package.
servers() {
    cat << 'END'
redis-next     trixie                       redis   failovers
redis-newest   experimental,sid             redis
valkey-back    bookworm-backports,bookworm  valkey
valkey-next    trixie                       valkey  failovers
valkey-newest  forky                        valkey  failovers
END
}

live='bare cuts denied errors inspect interop line_bounds line_release
    line_scripts lock names once once_records once_waits
    permit_copies permit_crossings permit_failover
    permit_scripts permits server_trouble timestamps
    wait_aof wait_faults wait_replicas warning fence'
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
unset CDPATH # cd would print where it went
support=$(cd "$(dirname "$0")/support" && pwd) || exit 1

have() {
    command -v "$1" > /dev/null 2>&1
}

if [ $# -eq 0 ] || [ ! -f "$1/build.ninja" ]; then
    echo "usage: sh tests/servers.sh BUILD [NAME...]" >&2
    echo "BUILD is a meson build directory" >&2
    exit 2
fi
build=$(cd "$1" && pwd) || exit 1
shift
only=" $* " # of these names; none: all
wanted() { # NAME
    [ "$only" = "  " ] || case $only in *" $1 "*) ;; *) return 1 ;; esac
}

child=
work=$(mktemp -d) || exit 1
clean() {
    trap - EXIT
    trap '' HUP INT QUIT PIPE TERM
    if [ -n "$child" ]; then
        kill -s TERM -- "-$child" 2> /dev/null
        wait "$child" 2> /dev/null
        kill -s KILL -- "-$child" 2> /dev/null
    fi
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 131' QUIT
trap 'exit 141' PIPE
trap 'exit 143' TERM

store=${NXLOCK_SERVERS:-$work/servers}
mkdir -p "$store" && store=$(cd "$store" && pwd) || exit 1
log=$work/log

# In the background a shell hears its signals. The group makes an end of all
# of it possible; and what a shell starts there would ignore SIGINT.
run() { # COMMAND...: into the log
    env --default-signal=INT,QUIT setsid "$@" > "$log" 2>&1 < /dev/null &
    child=$!
    wait "$child"
    code=$?
    child=
    return $code
}

# Every way out sets this; it is what the skip says.
why=
because() { # WORDS...
    why="$*"
    return 1
}
last_words() { # of the log, one line, of apt's errors the first
    grep -m 1 '^E: ' "$log" || grep -v '^ *$' "$log" | tail -n 1
}

# ---------------------------------------------------------------- a private apt

mirrors() { # of this machine's apt, Debian's own first
    # shellcheck disable=SC2016 # apt's own variable
    for origin in 'Origin: Debian' 'Created-By: Packages'; do
        apt-get indextargets --format '$(SITE)' 'Created-By: Packages' \
            "$origin"
    done 2> /dev/null | grep -v '^cdrom:' | awk '!seen[$0]++'
}

# A clock that is ahead or behind makes no difference: the signature does. With
# no essential packages a server's dependencies are all that is got.
configure() { # RELEASES: an apt for them in $apt
    mkdir -p "$apt/etc/apt.conf.d" "$apt/etc/preferences.d" \
        "$apt/etc/trusted.gpg.d" "$apt/etc/sources.list.d" \
        "$apt/state/lists/partial" "$apt/cache/archives/partial" || return 1
    : > "$apt/status"
    {
        apt-config dump --no-empty --format '%F "%v";%n' Acquire |
            grep -E '^Acquire::(Force|https?::)'
        cat << END
Dir::Etc "$apt/etc";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Log "$apt/log";
APT::Sandbox::User "root";
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
pkgCacheGen::Essential "none";
Acquire::Check-Valid-Until "false";
Acquire::Check-Date "false";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
END
    } > "$apt/apt.conf"
    options="[arch=$(dpkg --print-architecture) signed-by=$keyring]"
    for release in $(echo "$1" | tr , ' '); do
        echo "deb $options $site $release main"
    done > "$apt/etc/sources.list"
    echo "deb-src [signed-by=$keyring] $site ${1%%,*} main" \
        >> "$apt/etc/sources.list"
}

apt_get() { # ARGUMENT...
    run env APT_CONFIG="$apt/apt.conf" apt-get -q "$@"
}

# The first mirror that has one release is taken for all others.
found=
sites=
update() { # RELEASES: sets apt; once for each
    apt=$work/apt-${1%%,*}
    if [ -f "$apt/failed" ]; then
        because "$(cat "$apt/failed")"
        return
    fi
    [ ! -f "$apt/updated" ] || return 0
    [ -n "$sites" ] || sites=$(mirrors)
    why=
    for site in ${found:-$sites}; do
        configure "$1" || return 1
        if apt_get --error-on=any update; then
            found=$site
            : > "$apt/updated"
            return 0
        fi
        [ -n "$why" ] || why="apt-get update: $(last_words)"
    done
    mkdir -p "$apt"
    [ -n "$why" ] || why="the machine's apt names no mirror"
    echo "$why" > "$apt/failed"
    return 1
}

# ----------------------------------------------------------- one server, whole

# Where PROGRAM-tools has the server under another name: it goes by the name
# it is called with.
server_in() { # TREE PROGRAM
    for path in "$1/usr/bin/$2-server" "$1/usr/bin/$2-check-rdb"; do
        if [ -f "$path" ] && [ ! -L "$path" ]; then
            echo "$path"
            return
        fi
    done
}
libraries_of() { # TREE: the directories, with colons between
    for dir in "$1"/lib/*-linux-* "$1"/usr/lib/*-linux-*; do
        [ ! -d "$dir" ] || printf '%s:' "$dir"
    done
}
wrap() { # DIR: it can be moved, and stays the process that was started
    cat > "$1/redis-server" << 'END'
#!/bin/sh
lib=${0%/*}/lib
exec "$lib/loader" --library-path "$lib" "$lib/redis-server" "$@"
END
    chmod +x "$1/redis-server"
}

# Of the libraries only what the server asks for; one that came from the
# machine instead would hide that the release's own is missing.
gather() { # TREE BINARY DIR
    loader=$(grep -aoE '/lib[0-9a-z]*/ld[A-Za-z0-9_.-]*\.so\.[0-9]+' "$2" |
        head -n 1)
    for path in "$1"/usr/lib/*/"${loader##*/}" "$1"/lib/*/"${loader##*/}"; do
        [ ! -f "$path" ] || break
    done
    [ -n "$loader" ] && [ -f "$path" ] ||
        because "its loader ($loader) is in none of its packages" || return
    mkdir -p "$3/lib" && cp -L "$path" "$3/lib/loader" &&
        cp "$2" "$3/lib/redis-server" || return
    "$3/lib/loader" --library-path "$(libraries_of "$1")" --list "$2" \
        > "$work/needs" 2>&1 || because "$(tail -n 1 "$work/needs")" || return
    awk '$2 == "=>" && $1 !~ /\/ld/ { print $1, $3 }' "$work/needs" |
        while read -r name path; do
            case $path in
                "$1"/*) cp -L "$path" "$3/lib/$name" || exit 1 ;;
                *) echo "$name is in none of its packages" && exit 1 ;;
            esac
        done > "$work/lacks" || because "$(cat "$work/lacks")" || return
    wrap "$3"
}

unpack() { # RELEASE PROGRAM DIR: its binary package
    apt_get -t "$1" --download-only install "$2-tools" ||
        because "$(last_words)" || return
    tree=$work/tree
    rm -rf "$tree"
    mkdir "$tree" || return
    for deb in "$apt"/cache/archives/*.deb; do
        case ${deb##*/} in
            lib* | zlib1g* | lua-* | "$2"-tools_*)
                dpkg-deb -x "$deb" "$tree" > "$log" 2>&1 ||
                    because "$(last_words)" || return ;;
        esac
    done
    binary=$(server_in "$tree" "$2")
    [ -n "$binary" ] || because "$2-tools has no server" || return
    gather "$tree" "$binary" "$3"
}

# With what it carries, as little as a server needs. It runs with the machine's
# own libraries.
compile() { # RELEASE PROGRAM DIR: its source package
    for tool in cc c++ make tar gzip; do
        have $tool || because "there is no $tool to build it" || return
    done
    tree=$work/source
    rm -rf "$tree"
    mkdir "$tree" || return
    cd "$tree" && apt_get --download-only source "$2/$1" ||
        because "$(last_words)" || return
    for orig in "$tree/$2"_*.orig.tar.*; do
        tar -C "$tree" -xf "$orig" > "$log" 2>&1 ||
            because "$(last_words)" || return
    done
    for source in "$tree"/*/src/Makefile; do
        source=${source%/Makefile}
        run make -C "$source" -j2 MALLOC=libc BUILD_TLS=no USE_SYSTEMD=no \
            OPTIMIZATION=-O1 "$2-server" ||
            because "make: $(last_words)" || return
        mkdir -p "$3" && cp "$source/$2-server" "$3/redis-server"
        return
    done
    because "its source package has no src/Makefile"
}

get() { # NAME RELEASES PROGRAM: in $store/NAME, or why not
    new=$work/new
    rm -rf "$new" "${store:?}/$1"
    update "$2" || return
    if ! unpack "${2%%,*}" "$3" "$new"; then
        [ "${2%%,*}" = experimental ] || return
        rm -rf "$new"
        no_binary=$why
        compile "${2%%,*}" "$3" "$new" ||
            because "$no_binary; by its source: $why" || return
        how="built from its source package"
    fi
    mv "$new" "$store/$1"
}

# ------------------------------------------------------------- what it says

# "Redis 8.0.2" or "Valkey 9.1.2"; or nothing and an error.
ask() { # SERVER
    said=$(timeout 30 "$1" --version 2>&1) ||
        { echo "it does not start: $said" >&2; return 1; }
    echo "$said" | sed -n 's/^\([A-Z][a-z]*\) server v=\([^ ]*\) .*/\1 \2/p' |
        grep . || { echo "its version is: $said" >&2; return 1; }
}

# ---------------------------------------------------------------- what is run

listed() { # SUITE [TEST...]: the names of its tests, or those of them
    of=$1
    shift
    meson test -C "$build" --list --suite "$of" "$@" 2> /dev/null |
        sed -n 's/^.* \/ //p'
}
number=0
bad=0
skip() { # WHAT
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $why"
}
report() { # WHAT CODE
    number=$((number + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $number - $1"
    else
        bad=1
        echo "not ok $number - $1"
    fi
}
test_with() { # NAME WHAT
    results=$build/meson-logs/servers-$1.json
    rm -f "$results"
    # shellcheck disable=SC2086 # a list of names
    run env TMPDIR="$work" NXLOCK_REDIS_SERVER="$store/$1/redis-server" \
        meson test -C "$build" --no-rebuild --num-processes 2 \
        --logbase "servers-$1" --suite live $tests
    code=$?
    if [ -f "$results" ]; then
        python3 "$support/tally.py" "$2" "$results" "$work/tally" \
            > "$work/summary" || code=1
        # Of servers that are all left out nothing has been shown.
        tail -n 1 "$work/summary" | grep -q ' [1-9][0-9]* passed' || code=1
        report "live suite on $2" "$code"
        # What failed, without what did not, and once.
        grep -v -e '^\[ *\(RUN\|OK\|=*\) *\]' -e '^ *$' "$work/summary" |
            awk '!seen[$0]++ { print "# " $0 }'
    else
        report "live suite on $2" 1
        tail -n 20 "$log" | sed 's/^/# /'
    fi
}
failovers_with() { # NAME WHAT
    play "$1" "failovers of $2" nxlock-failover --runs 3
    play "$1" "failovers of $2 with Sentinels" nxlock-sentinel --runs 3 \
        --jobs 4 --guard on --guard off
}
play() { # NAME WHAT PROGRAM [ARGUMENT...]
    server=$store/$1/redis-server
    played=$2
    rig=$build/tests/faults/$3
    shift 3
    if [ ! -x "$rig" ] || [ ! -x "${rig%/*}/nxlock-fault-contender" ]; then
        because "$rig is not built"
        skip "$played"
        return
    fi
    run env TMPDIR="$work" NXLOCK_REDIS_SERVER="$server" "$rig" "$@"
    code=$?
    report "$played" "$code"
    if [ "$code" -eq 0 ]; then
        grep '^|' "$log" | sed 's/^/# /'
    else # all runs, for the one that failed
        sed 's/^/# /' "$log"
    fi
}

lacking() { # the reason why no server can be got here
    if [ "$(id -u)" -ne 0 ]; then
        echo "only root can have an apt of its own here"
        return
    fi
    for tool in apt-get dpkg dpkg-deb setsid; do
        have $tool || { echo "there is no $tool"; return; }
    done
    [ -f "$keyring" ] || echo "there is no debian-archive-keyring"
}

# shellcheck disable=SC2086 # a list of names
tests=$(listed live $live)
if [ -z "$tests" ]; then
    echo "1..0 # SKIP $build has no live tests"
    exit 0
fi
lack=$(lacking)
servers > "$work/table"
while read -r name releases program failovers <&3; do
    wanted "$name" || continue
    began=$(date +%s)
    what="$program of ${releases%%,*}"
    how="kept from before"
    why=$lack
    if ! version=$(ask "$store/$name/redis-server" 2> /dev/null); then
        how="packages of ${releases%%,*}"
        if [ -n "$why" ] || ! get "$name" "$releases" "$program"; then
            skip "live suite on $what"
            continue
        fi
        if ! version=$(ask "$store/$name/redis-server" 2> "$work/why"); then
            because "$(tail -n 1 "$work/why")"
            skip "live suite on $what"
            continue
        fi
    fi
    got=$(date +%s)
    test_with "$name" "$version"
    play "$name" "chaos with $version" nxlock-faults \
        --only chaos --only chaos-guarded --only kinds
    [ -z "$failovers" ] || failovers_with "$name" "$version"
    echo "# $version: $how, $((got - began)) s; tests, $(($(date +%s) - got)) s"
done 3< "$work/table"

for path in "$store"/*/redis-server; do
    name=${path%/*}
    name=${name##*/}
    if [ ! -x "$path" ] || grep -q "^$name " "$work/table" ||
        ! wanted "$name"; then
        continue
    fi
    if version=$(ask "$path" 2> "$work/why"); then
        test_with "$name" "$version"
    else
        because "$(tail -n 1 "$work/why")"
        skip "live suite on $name"
    fi
done
echo "1..$number"
exit $bad
