#!/bin/sh
# SPDX-License-Identifier: MIT
#
# docs/quickstart.sh in a copy of the tree: it shows what it promises, says no
# when that does not happen, and leaves nothing behind, however it ends. What
# it does on a machine where everything is missing is tests/fresh.sh's.
# Usage: test_quickstart.sh PATH-OF-SOURCE-ROOT PATH-OF-BUILD-ROOT
#
# Building takes long, and fresh.sh sees the whole of it, so the runs that are
# about what happens afterwards take the library and the command from BUILD-ROOT
# instead, into the same places. NXLOCK_FULL=1: the first run builds.
set -u

# Signals that are ignored here could not be trapped by what is started.
if [ -z "${NXLOCK_QUICKSTART_TEST-}" ]; then
    NXLOCK_QUICKSTART_TEST=1 exec env --default-signal=HUP,INT,TERM,PIPE \
        sh "$0" "$@"
fi

# What it is built with is not under test.
export CFLAGS='-O0 -g0'

root=$(cd "$1" && pwd) || exit 1
built=$(cd "$2" && pwd)/src || exit 1
number=0
bad=0
pid=

dir=$(mktemp -d) || exit 1
clean() {
    [ -z "$pid" ] || kill -TERM "$pid" 2> /dev/null
    for left in $(processes); do
        kill -KILL "$left" 2> /dev/null
    done
    rm -rf "$dir"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

result() { # CODE NAME: one line of TAP
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        bad=1
    fi
}
check() { # NAME COMMAND...
    name=$1
    shift
    "$@" > /dev/null 2>&1
    result $? "$name"
}
skip() { # NAME REASON
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}
await() { # COMMAND...: until it succeeds, 4 minutes at least
    tries=0
    until "$@" > /dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || return 1
        sleep 0.02
    done
}

# ------------------------------------------------------------- what is left

# A server rewrites its environment and its title; what it stands in and one
# of the three always tells whose it is.
processes() { # those that a quickstart of this test has started
    {
        printf %s "$dir" | # not as an argument: it would find itself
            grep -l -a -F -f - /proc/[0-9]*/cmdline /proc/[0-9]*/environ
        find /proc/[0-9]*/cwd -maxdepth 0 -lname "*$dir*"
    } 2> /dev/null | sed 's|^/proc/\([0-9]*\)/.*|\1|' | sort -u
}
no_process() {
    [ -z "$(processes)" ]
}
empty() {
    [ -z "$(ls -A "$1")" ]
}
listing() { # every file of the copy, and what is in it
    (cd "$clone" && find . | LC_ALL=C sort &&
        find . -type f -exec cksum {} + | LC_ALL=C sort)
}
nothing_left() { # WHEN
    check "$1: no process is left" no_process
    check "$1: nothing is left in TMPDIR" empty "$dir/tmp"
    check "$1: nothing is left in HOME" empty "$dir/home"
    listing > "$dir/after"
    check "$1: the clone is as it was" cmp "$dir/before" "$dir/after"
}

# ------------------------------------------------------------------ running

copy() { # sets clone, whose path has a blank
    clone="$dir/a clone"
    mkdir "$clone" && cd "$root" || exit 1
    if git ls-files > /dev/null 2>&1; then
        git ls-files -co --exclude-standard | while read -r file; do
            [ ! -f "$file" ] || echo "$file"
        done > "$dir/list"
    else
        find . -name .git -prune -o -type f -print > "$dir/list"
    fi
    tar -cf - -T "$dir/list" | tar -C "$clone" -xf -
    cd / || exit 1
    listing > "$dir/before"
}
quickstart() { # COMMAND...: what to start it by; does not return
    # The shell makes what runs in the background deaf to INT. Other tests run
    # at the same time, and hold calls to their deadlines: they go first.
    exec nice env --default-signal=INT HOME="$dir/home" TMPDIR="$dir/tmp" "$@" \
        sh "$clone/docs/quickstart.sh" > "$dir/out" 2> "$dir/err" < /dev/null
}
run() { # COMMAND...: sets code
    quickstart "$@" &
    pid=$!
    wait "$pid"
    code=$?
    pid=
}
show() { # what was said, when it was not as promised
    [ "$1" -eq 0 ] || sed 's/^/# /' "$dir/out" "$dir/err"
    return "$1"
}
says() { # NAME PATTERN: a line of its output
    grep -q -e "$2" "$dir/out"
    show $?
    result $? "$1"
}
complains() { # NAME PATTERN
    grep -q -e "$2" "$dir/err"
    show $?
    result $? "$1"
}

# -------------------------------------------------------------- the promise

promise() { # whatever nxlock's variables are
    run NXLOCK_URL_FILE=/no/such/file NXLOCK_PASSWORD=secret
    [ "$code" -eq 0 ]
    show $?
    result $? "it succeeds"
    check "without a complaint" empty_file "$dir/err"
    check "where nothing is missing, nothing is installed" \
        sh -c '! grep -i apt-get "$1"' sh "$dir/out"
    found='s/^expected \([0-9]*\), found \([0-9]*\)$/\1 \2/p'
    with=$(sed -n "$found" "$dir/out" | sed -n 1p)
    without=$(sed -n "$found" "$dir/out" | sed -n 2p)
    with=${with:-0 none} # makes what follows fail, not stop
    without=${without:-0 0}
    expected=${with% *}
    echo "# with: $with; without: $without"
    check "enough work is done" test "$expected" -ge 100
    check "with nxlock nothing is lost" test "${with#* }" -eq "$expected"
    says "and it says so" "^Nothing was lost"
    check "without it updates are lost" test "${without#* }" -lt "${without% *}"
    check "of the same number" test "${without% *}" -eq "$expected"
    says "and it says how many" \
        "^$((expected - ${without#* })) updates were lost"
    says "the commands are shown" "^    nxlock run counter -- sh add.sh\$"
    says "status shows the holder" "^ *counter held by .*:sleep"
    says "-n shows its 75" "^ *75\$"
    says "the next step is to install" "^    meson setup .*meson install"
    nothing_left "at the end"
}
empty_file() {
    [ ! -s "$1" ]
}

# -------------------------------------------------------------- interrupted

far() { # NUMBER: the workers have come as far as this
    for file in "$dir"/tmp/nxlock-quickstart.*/number; do
        read -r at < "$file" && [ "${at:-0}" -ge "$1" ] && return 0
    done
    return 1
}
configured() {
    [ -e "$(echo "$dir"/tmp/nxlock-quickstart.*/build/build.ninja)" ]
}
interrupted() { # SIGNAL CODE WHEN CONDITION...
    signal=$1
    want=$2
    when=$3
    shift 3
    quickstart &
    pid=$!
    check "$signal $when: it comes that far" await "$@"
    kill -s "$signal" "$pid"
    wait "$pid"
    code=$?
    pid=
    check "$signal $when: the code is $want, not $code" test $code -eq "$want"
    nothing_left "$signal $when"
}
no_reader() { # its output is closed after the first line
    (quickstart_to_pipe | head -n 1) > "$dir/first"
    check "a closed output: there was some" test -s "$dir/first"
    check "a closed output: it ends by that" test "$(cat "$dir/code")" -ne 0
    nothing_left "a closed output"
}
quickstart_to_pipe() {
    env HOME="$dir/home" TMPDIR="$dir/tmp" \
        sh "$clone/docs/quickstart.sh" 2> /dev/null
    echo $? > "$dir/code"
}

# ------------------------------------------------------------ something else

# Two lines of quickstart.sh build; these copy.
ready='s|meson setup "$1/build".*|mkdir -p "$1/build/src/cli" \&\& |'
ready="$ready; s|ninja -C \"\$1/build\"|"
ready="${ready}cp $built/libnxlock.so.0 \"\$1/build/src\""
ready="$ready \\&\\& cp $built/cli/nxlock \"\$1/build/src/cli\"|"

already_built() { # SED-SCRIPT COMMAND...
    more=$1
    shift
    sed "$ready" "$clone/docs/quickstart.sh" > "$dir/kept"
    check "the build can be taken out" \
        sh -c '! grep -E "meson setup .*build|ninja -C" "$1"' sh "$dir/kept"
    changed docs/quickstart.sh "$ready; $more" "$@"
}
changed() { # FILE SED-SCRIPT COMMAND...: with the clone's FILE changed
    cp "$clone/$1" "$dir/kept"
    sed "$2" "$dir/kept" > "$clone/$1"
    altered=$1
    shift 2
    listing > "$dir/before"
    "$@"
    cp "$dir/kept" "$clone/$altered"
    listing > "$dir/before"
}
broken() {
    run
    check "a build that fails: the code is 1" test "$code" -eq 1
    complains "a build that fails: the log is shown" "not today"
    nothing_left "a build that fails"
}
unlocked() {
    run
    check "losses under the lock: the code is 1" test "$code" -eq 1
    complains "losses under the lock: it says so" "lost under the lock"
}
lossless() {
    run
    check "no losses without: the code is 1" test "$code" -eq 1
    complains "no losses without: it says so" "nothing was lost without"
    check "no losses without: it tried again" \
        test "$(grep -c '^expected' "$dir/out")" -eq 6
}

tools() { # a PATH without meson, and an apt-get that only tells of its call
    mkdir "$dir/tools"
    for place in /usr/local/bin /usr/bin /bin /usr/sbin /sbin; do
        ln -s "$place"/* "$dir/tools" 2> /dev/null
    done
    rm -f "$dir/tools/meson" "$dir/tools/apt-get"
    # shellcheck disable=SC2016 # the new script's own variable
    printf '#!/bin/sh\necho "$*" >> "%s/tmp/called"\nexit 1\n' "$dir" \
        > "$dir/tools/apt-get"
    chmod +x "$dir/tools/apt-get"
}
as_nobody() {
    env PATH="$dir/tools" setpriv --reuid=65534 --regid=65534 --clear-groups \
        "$@"
}
stranger() { # without root, and meson is missing
    tools
    if [ "$(id -u)" -ne 0 ]; then
        as=
    elif chmod 755 "$dir" && chmod 1777 "$dir/tmp" && as_nobody test -r \
        "$clone/docs/quickstart.sh"; then
        as='setpriv --reuid=65534 --regid=65534 --clear-groups'
    else
        skip "without root" "setpriv cannot become nobody here"
        return
    fi
    # shellcheck disable=SC2086 # a command's words, or none
    run PATH="$dir/tools" $as
    check "without root: the code is 1" test "$code" -eq 1
    line='^    \(sudo \)\{0,1\}apt-get update && \(sudo \)\{0,1\}'
    line=$line'apt-get install -y --no-install-recommends meson$'
    complains "without root: the line to copy, with what is missing" "$line"
    check "without root: it is one line" \
        test "$(grep -c 'apt-get' "$dir/err")" -eq 1
    check "without root: apt-get is not called" test ! -e "$dir/tmp/called"
    nothing_left "without root"
    rm "$dir/tools/apt-get"
    # shellcheck disable=SC2086 # a command's words, or none
    run PATH="$dir/tools" $as
    check "without apt-get: the code is 1" test "$code" -eq 1
    complains "without apt-get: what is missing" "missing: meson\."
    complains "without apt-get: what is needed" "redis-server or valkey-server"
    nothing_left "without apt-get"
}

mkdir "$dir/home" "$dir/tmp"
copy
check "the copy has a quickstart" test -f "$clone/docs/quickstart.sh"
if [ -n "${NXLOCK_FULL-}" ]; then
    promise
else
    already_built '' promise
fi
interrupted HUP 129 "in the build" configured
already_built '' interrupted TERM 143 "in the race" far 5
already_built '' interrupted INT 130 "in the race" far 5
already_built '' no_reader
# Every file includes it, so the first one fails.
changed src/base/slice.h '1s/^/#error not today\n/' broken
few='s/^times=.*/times=5/'
already_built "$few; s/^\( *\)race nxlock run counter --/\1race/" unlocked
already_built "$few; s/^\( *\)race sh/\1race nxlock run counter -- sh/" lossless
stranger
echo "1..$number"
exit $bad
