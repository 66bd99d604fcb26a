#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The first minutes with nxlock, from a bare clone: installs what is missing
# (apt-get, as root), builds, and lets workers race for one number in a file,
# with nxlock and without it.
#
#     sh docs/quickstart.sh
#
# All of it happens in one new folder. However this ends, the folder, the
# server and every process are gone then, and the clone is as it was. The build
# is not kept: it takes seconds. Packages stay, and are named at the end.
#
# Exits 0 only if nothing was lost with nxlock and something without it.
set -u

workers=4
times=50
expected=$((workers * times))
policy=/usr/sbin/policy-rc.d
policy_made=
installed=
work=
server=
running=

unset CDPATH # cd would print where it went
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
# The lock, server and password of whoever calls this are not this run's.
unset NXLOCK_URL NXLOCK_URL_FILE NXLOCK_PASSWORD NXLOCK_PASSWORD_FILE \
    NXLOCK_LOG_SOCKET NXLOCK_NAME NXLOCK_KEY NXLOCK_TOKEN \
    NXLOCK_NAME_COUNT NXLOCK_NAME_1 NXLOCK_KEY_1 NXLOCK_FENCE_1 \
    NXLOCK_FENCE NXLOCK_TTL_MS NXLOCK_SUPERVISOR_PID NXLOCK_LOST_FD \
    NXLOCK_ONCE_ATTEMPT NXLOCK_ONCE_DOUBTS NXLOCK_ONCE_SINCE NXLOCK_ONCE_BY \
    NXLOCK_OUTER
export NXLOCK_CONFIG=none
# A compiler cache would leave files in the home directory.
export CCACHE_DISABLE=1

have() {
    command -v "$1" > /dev/null 2>&1
}

fail() {
    echo "quickstart: $*" >&2
    exit 1
}

# ---------------------------------------------------------------- processes

# Whatever runs longer than a moment has a session of its own and is awaited
# in the background: so a signal is heard at once and reaches all of it.
start() { # LOG COMMAND...: its pid is the first in running
    log=$1
    shift
    setsid "$@" > "$log" 2>&1 < /dev/null &
    running="$! $running"
}

alive() { # SESSION
    kill -s 0 -- "-$1" 2> /dev/null || kill -0 "$1" 2> /dev/null
}

stop() { # SESSION: ends it; after 5 s the hard way
    for signal in TERM KILL; do
        # It is no session yet if it was started just now.
        kill -s $signal -- "-$1" 2> /dev/null ||
            kill -s $signal "$1" 2> /dev/null
        tries=0
        while alive "$1" && [ $tries -lt 100 ]; do
            tries=$((tries + 1))
            sleep 0.05
        done
        alive "$1" || return 0
    done
}

clean() { # once; what it says is true on every way out
    trap - EXIT
    trap '' HUP INT QUIT PIPE TERM
    [ -z "$policy_made" ] || rm -f "$policy"
    # The workers before the server: so they end by the signal, not by error.
    for session in $running $server; do
        stop "$session"
    done
    if [ -n "$work" ]; then
        cd / && rm -rf "$work"
        [ ! -e "$work" ] || {
            echo "quickstart: $work could not be removed" >&2
            exit 1
        }
    fi
    if [ -n "$server" ]; then
        echo
        echo "The server is stopped, $work is removed."
    fi
    [ -n "$installed" ] || return 0
    echo
    echo "What stays is what apt-get installed. To remove it:"
    echo
    echo "    apt-get purge --autoremove $installed"
    case $installed in
        *-server)
            [ ! -d /run/systemd/system ] ||
                echo "The next boot starts ${installed##* }, unless you say:" \
                    "systemctl disable ${installed##* }"
            ;;
    esac
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 131' QUIT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# ----------------------------------------------------------- what is needed

find_server() {
    for program in "${NXLOCK_REDIS_SERVER-}" redis-server valkey-server; do
        if [ -n "$program" ] && have "$program"; then
            return 0
        fi
    done
    return 1
}

server_package() { # Valkey's only where apt knows no other
    if ! apt-cache show redis-server > /dev/null 2>&1 &&
        apt-cache show valkey-server > /dev/null 2>&1; then
        echo valkey-server
    else
        echo redis-server
    fi
}

missing() { # the packages that are missing, by Debian's names
    have meson || echo meson
    have ninja || echo ninja-build
    if ! have cc; then
        echo gcc libc6-dev
    elif ! echo '#include <stdio.h>' | cc -E - > /dev/null 2>&1; then
        echo libc6-dev
    fi
    if have pkg-config; then
        pkg-config --exists hiredis || echo libhiredis-dev
        pkg-config --exists uuid || echo uuid-dev
    else
        echo pkg-config libhiredis-dev uuid-dev
    fi
    find_server || server_package
}

ask_for() { # PACKAGE...: what a person has to do first
    if ! have apt-get; then
        echo "quickstart: this is no Debian or Ubuntu, and something is" \
            "missing: $*. Needed are meson (1.0 or newer), ninja, a C" \
            "compiler, pkg-config, hiredis and libuuid with their headers," \
            "and redis-server or valkey-server." >&2
        exit 1
    fi
    if have sudo; then
        apt='sudo apt-get'
    else
        apt='apt-get'
    fi
    {
        echo "quickstart: packages are missing, and only root can install" \
            "them. Do this as root, then run quickstart.sh again:"
        echo
        echo "    $apt update && $apt install -y --no-install-recommends $*"
    } >&2
    exit 1
}

install() { # PACKAGE...
    # A server that is installed must not start serving. A policy that stands
    # there already is the machine's owner's and stays.
    if [ ! -e "$policy" ]; then
        policy_made=1
        printf '#!/bin/sh\nexit 101\n' > "$policy" && chmod +x "$policy" ||
            return 1
    fi
    # In the foreground: a signal waits until the package manager is done.
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 NEEDRESTART_SUSPEND=1 \
        apt-get -o DPkg::Lock::Timeout=300 -qq -y \
        --no-install-recommends install "$@" < /dev/null
    code=$?
    [ -z "$policy_made" ] || rm -f "$policy"
    policy_made=
    return $code
}

prepare() {
    needed=$(missing | tr '\n' ' ')
    needed=${needed% }
    [ -n "$needed" ] || return 0
    if ! have apt-get || [ "$(id -u)" -ne 0 ]; then
        ask_for "$needed"
    fi
    echo "Installing $needed (by apt-get; about a minute)"
    # One source of packages that does not answer is no reason to stop; install
    # says what it lacks. Only after this it is sure which servers there are.
    apt-get -o DPkg::Lock::Timeout=300 -qq update > "$work/log" 2>&1 \
        < /dev/null
    needed=$(missing | tr '\n' ' ')
    needed=${needed% }
    # shellcheck disable=SC2086 # a list of words
    install $needed >> "$work/log" 2>&1 || log_fails "installing $needed"
    installed=$needed
    find_server || fail "there is no redis-server, although it was installed"
}

log_fails() { # WHAT
    echo "--- $1 failed; the end of its log:" >&2
    tail -n 40 "$work/log" >&2
    echo "---" >&2
    exit 1
}

# ---------------------------------------------------------------- the stage

# A unix socket's path is at most 107 bytes, and stands in a URL as it is.
make_folder() {
    for parent in "${TMPDIR:-/tmp}" /tmp; do
        work=$(mktemp -d "$parent/nxlock-quickstart.XXXXXX" 2> /dev/null) ||
            continue
        case $work in
            /*) odd=$(printf %s "$work" | tr -d 'A-Za-z0-9/._-') ;;
            *) odd=relative ;;
        esac
        [ -n "$odd" ] || [ ${#work} -gt 90 ] || return 0
        rm -rf "$work"
        work=
    done
    fail "no folder could be made in /tmp"
}

finish() { # waits for the last one started; its code
    wait "${running%% *}"
    code=$?
    running=${running#* }
    return $code
}

build() {
    echo "Building nxlock in $work (kept out of the clone)"
    start "$work/log" sh -c '
        meson setup "$1/build" "$0" -Dtests=disabled --wrap-mode=nodownload &&
            ninja -C "$1/build"' "$root" "$work"
    finish || log_fails "the build"
    PATH=$work/build/src/cli:$PATH
}

answers() { # the server: nobody holds the name, which is code 1
    nxlock status counter > /dev/null 2>&1
    [ $? -eq 1 ]
}

start_server() {
    echo "Starting a $(basename "$program") of its own, on a private socket"
    start "$work/log" "$program" --port 0 --unixsocket "$work/socket" \
        --dir "$work" --save '' --appendonly no --daemonize no
    server=${running%% *}
    running=
    export NXLOCK_URL="unix://$work/socket"
    echo
    echo "    export NXLOCK_URL=$NXLOCK_URL"
    tries=0
    until answers; do
        tries=$((tries + 1))
        if ! alive "$server" || [ $tries -ge 600 ]; then
            log_fails "starting $program"
        fi
        sleep 0.05
    done
}

# ----------------------------------------------------------------- the race

race() { # COMMAND...: each worker runs it so often; sets found
    echo 0 > number
    count=0
    while [ $count -lt $workers ]; do
        count=$((count + 1))
        # shellcheck disable=SC2016 # the worker's own variables
        start "$work/log.$count" sh -c '
            i=0
            while [ $i -lt "$0" ]; do
                "$@" || exit
                i=$((i + 1))
            done' "$times" "$@"
    done
    while [ $count -gt 0 ]; do
        if ! finish; then
            cat "$work/log.$count" > "$work/log"
            log_fails "worker $count (code $code)"
        fi
        count=$((count - 1))
    done
    read -r found < number
}

job() {
    cat > add.sh << 'END'
read -r n < number
sleep 0.01
echo $((n + 1)) > number
END
    echo
    echo "The job: $workers workers at once, each adds 1 to the number in a" \
        "file $times times."
    echo "Every time they run add.sh, which takes a moment to write:"
    echo
    sed 's/^/    /' add.sh
}

with_lock() {
    echo
    echo "With nxlock, one at a time, in any order:"
    echo
    echo "    nxlock run counter -- sh add.sh"
    echo
    race nxlock run counter -- sh add.sh
    echo "expected $expected, found $found"
    [ "$found" = "$expected" ] || fail "updates were lost under the lock"
    echo "Nothing was lost."
}

without_lock() {
    echo
    echo "The same workers without it, all at once:"
    echo
    echo "    sh add.sh"
    echo
    attempt=1
    while :; do
        race sh add.sh
        echo "expected $expected, found $found"
        [ "$found" -lt "$expected" ] && break
        [ $attempt -lt 5 ] || fail "nothing was lost without a lock, 5 times"
        attempt=$((attempt + 1))
        echo "By chance nothing was lost; once more:"
    done
    echo "$((expected - found)) updates were lost."
}

while_held() {
    echo
    echo "While one command holds the lock, others can look or do without:"
    echo
    echo "    nxlock run counter -- sleep 30 &"
    start "$work/log" nxlock run counter -- sleep 30
    tries=0
    until nxlock status counter > seen 2> /dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || log_fails "nxlock run counter -- sleep 30"
        sleep 0.05
    done
    echo "    nxlock status counter"
    sed 's/^/        /' seen
    nxlock run counter -n -- sh add.sh
    code=$?
    echo "    nxlock run counter -n -- sh add.sh; echo \$?"
    echo "        $code"
    [ $code -eq 75 ] || fail "a busy lock must end with code 75"
    echo
    echo "-n does not wait: code 75 says that it was busy and nothing was run."
    kill -TERM "${running%% *}"
    finish
    answers || fail "the lock is not free after nxlock got TERM"
}

farewell() {
    clean
    echo
    echo "Next, to install the library and the command (as root, in $root):"
    echo
    sed -n '/^## Install/,/^## / s/^ *\(meson .*\)/    \1/p' \
        "$root/README.md"
    echo
    echo "Then read docs/README.md: a C program, a cron line, a worker. It"
    echo "needs a server on localhost:6379; to start one, if none is there:"
    echo
    echo "    systemctl start redis-server    # or: redis-server --daemonize yes"
}

make_folder
find_server
prepare
build
cd "$work" || exit 1
start_server
job
with_lock
without_lock
while_held
farewell
