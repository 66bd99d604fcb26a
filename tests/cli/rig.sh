# SPDX-License-Identifier: MIT
#
# What every room of the command's tests stands on: TAP, a real server of its
# own, and waiting for conditions instead of for time. Keeps: whatever way a
# room ends, its servers end with it and its folder is removed.
#
#     . "${0%/*}/rig.sh"         nxlock is the room's first argument
#     start_server               if it needs one
#     gives 75 "busy, -n" run x -n -- true
#     done_testing
# shellcheck shell=sh
set -u

# Under nohup HUP would be ignored by all that is started here.
if [ -z "${NXLOCK_CLI_TEST-}" ]; then
    NXLOCK_CLI_TEST=1 exec env --default-signal=HUP,INT,QUIT sh "$0" "$@"
fi

[ $# -ge 1 ] || { echo "usage: $0 PATH-OF-NXLOCK" >&2; exit 2; }
nxlock=$1
number=0
bad=0
# The variables of nxlock: none of whoever calls this.
# shellcheck disable=SC2046 # one word each
unset $(cat "${0%/*}/variables")
export LC_ALL=C
export NXLOCK_CONFIG=none # no file of this machine
ulimit -c 0 # some children end by signals that leave a core

dir=$(mktemp -d) || exit 1
socket=$dir/socket
servers=
pid=
clean() {
    [ -z "$pid" ] || kill -KILL "$pid" 2> /dev/null
    for one in $servers; do
        kill -KILL "$one" 2> /dev/null
        wait "$one" 2> /dev/null
    done
    rm -rf "$dir"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

# ------------------------------------------------------------------- results

# The call that is examined: what is checked about it has its name in front.
case_name=
begin_case() { # CODE NAME: so ended a call
    case_name=
    result "$1" "$2"
    case_name="$2: "
}
result() { # CODE NAME: one line of TAP
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $case_name$2"
    else
        echo "not ok $number - $case_name$2"
        # meson test --print-errorlogs shows this, and not standard output.
        echo "# failed: $case_name$2" >&2
        bad=1
    fi
}
skip() { # NAME REASON
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}
check() { # NAME COMMAND...
    name=$1
    shift
    "$@" > /dev/null 2>&1
    result $? "$name"
}
fails() { # COMMAND...
    ! "$@"
}
done_testing() {
    echo "1..$number"
    exit $bad
}

# ------------------------------------------------------------------- waiting

# A look starts programs, a sleep is one, and each takes milliseconds of a
# processor that others need. So looks are not close together.
patience=600 # looks, 50 ms apart: long for what comes at once, and free
await() { # COMMAND...: until it succeeds, 30 s at least
    tries=0
    until "$@" > /dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt "$patience" ] || return 1
        sleep 0.05
    done
}
is_in_state() { # PID STATE, as in /proc
    read -r stat 2> /dev/null < "/proc/$1/stat" || return 1
    case $stat in
    *") $2 "*) ;;
    *) return 1 ;;
    esac
}
gone() { # PID: there is no such process, or only its remains
    ! kill -0 "$1" 2> /dev/null || is_in_state "$1" Z
}
watches() { # PID: an nxlock that no signal would end unawares any more
    find "/proc/$1/fd" -lname '*signalfd*' 2> /dev/null | grep -q .
}
stopped() { # PID: all of it, by SIGSTOP
    is_in_state "$1" T
}
finish() { # waits for $pid, but not for ever; its code
    await gone "$pid" || kill -KILL "$pid"
    # What the shell itself says of an end by a signal is of no interest.
    wait "$pid" 2> /dev/null
    code=$?
    pid=
    return $code
}
ends() { # CODE NAME: the one that was launched
    finish
    code=$?
    [ "$code" -eq "$1" ] || echo "# code $code, not $1: $(cat "$dir/err")" >&2
    [ "$code" -eq "$1" ]
    begin_case $? "$2"
}
ms() { # of a clock that nobody sets
    read -r uptime rest < /proc/uptime
    echo "${uptime%.*}${uptime#*.}0"
}

# --------------------------------------------------------------- the command

nx() { # ARGUMENT...: leaves code, and the texts in $dir/out and $dir/err
    # 124: it was to end by itself and did not.
    timeout --foreground 60 "$nxlock" "$@" \
        > "$dir/out" 2> "$dir/err" < /dev/null
    code=$?
}
launch() { # ARGUMENT...: in the background; its pid in $pid
    case_name="$1 ${2-}: "
    : > "$dir/out"
    : > "$dir/err" # now, not when the job gets to it
    # A shell's background jobs would ignore INT and QUIT.
    env --default-signal=INT,QUIT "$nxlock" "$@" \
        > "$dir/out" 2> "$dir/err" < /dev/null &
    pid=$!
}
with_query() { # PARAMETERS COMMAND...: added to NXLOCK_URL
    url_before=$NXLOCK_URL
    case $NXLOCK_URL in
    *\?*) NXLOCK_URL="$NXLOCK_URL&$1" ;;
    *) NXLOCK_URL="$NXLOCK_URL?$1" ;;
    esac
    shift
    "$@"
    NXLOCK_URL=$url_before
}
with_password() { # PASSWORD COMMAND...: in NXLOCK_PASSWORD
    export NXLOCK_PASSWORD="$1"
    shift
    "$@"
    unset NXLOCK_PASSWORD
}
gives() { # CODE NAME ARGUMENT...
    want=$1
    name=$2
    shift 2
    nx "$@"
    [ "$code" -eq "$want" ] ||
        echo "# code $code, not $want: $(cat "$dir/err")" >&2
    [ "$code" -eq "$want" ]
    begin_case $? "$name"
}
read_err() { # sets err_text to what standard error has, without a program
    err_text=
    while IFS= read -r err_line || [ -n "$err_line" ]; do
        err_text="$err_text$err_line
"
    done < "$dir/err"
}
said() { # NAME TEXT...: each stands on standard error
    name=$1
    shift
    read_err
    for words in "$@"; do
        case $err_text in
        *"$words"*) continue ;;
        esac
        echo "# said: $err_text" >&2
        echo "# lacks: $words" >&2
        result 1 "$name"
        return
    done
    result 0 "$name"
}
unsaid() { # NAME TEXT: on neither output
    check "$1" fails grep -qF -e "$2" "$dir/err" "$dir/out"
}
silent() { # NAME: nothing on either output
    check "$1" test ! -s "$dir/err" -a ! -s "$dir/out"
}
# What a command that is not to be started would do.
started() {
    test -e "$dir/started"
}
# CODE NAME LOCK OPTION...: run ends so, its command was not started, and the
# key is as it was.
refused() {
    want=$1
    what=$2
    shift 2
    rm -f "$dir/started"
    stood=$(content "$1")
    gives "$want" "$what" run "$@" -- touch "$dir/started"
    check "and nothing is started" fails started
    check "and the key is untouched" test "$(content "$1")" = "$stood"
}

# ---------------------------------------------------------------- the server

db() {
    redis-cli -s "$socket" "$@" 2> /dev/null
}
is_free() {
    [ "$(db EXISTS "$1")" = 0 ]
}
is_held() {
    [ "$(db EXISTS "$1")" = 1 ]
}
content() { # KEY: what stands there, of whatever type
    db TYPE "$1"
    db DUMP "$1"
}
calls() { # COMMAND: how often anybody gave it
    count=$(db INFO commandstats |
        sed -n "s/^cmdstat_$1:calls=\([0-9]*\).*/\1/p")
    echo "${count:-0}"
}
attempts() { # how often anybody tried to take anything, or ended that
    echo $(($(calls set) + $(calls eval) + $(calls evalsha)))
}
attempted() { # COUNT: more often than that
    [ "$(attempts)" -gt "$1" ]
}
has_program() {
    command -v "${NXLOCK_REDIS_SERVER:-redis-server}" > /dev/null
}
# FOLDER OPTION...: a server whose socket is FOLDER/socket; its pid in
# $server. It ends with this process, however that ends.
serve() {
    folder=$1
    shift
    setpriv --pdeathsig KILL "${NXLOCK_REDIS_SERVER:-redis-server}" --port 0 \
        --unixsocket "$folder/socket" --dir "$folder" --save '' \
        --appendonly no --daemonize no "$@" > "$folder/log" 2>&1 &
    server=$!
    servers="$servers $server"
}
answers() { # in whatever words: LOADING and NOAUTH are answers
    [ -n "$(db PING)" ]
}
start_server() { # OPTION...: at $socket, which is the one that is used
    if ! has_program; then
        if [ "${NXLOCK_SKIP_LIVE-}" = 1 ]; then
            skip "with a server" "no redis-server, and NXLOCK_SKIP_LIVE=1"
            done_testing
        fi
        echo "Bail out! no redis-server (NXLOCK_SKIP_LIVE=1 skips)"
        exit 1
    fi
    serve "$dir" "$@"
    await answers || { echo "Bail out! redis-server does not start"; exit 1; }
    NXLOCK_URL=unix://$socket
    export NXLOCK_URL
}
stop_server() { # $server, at once
    kill -KILL "$server"
    wait "$server" 2> /dev/null
}
