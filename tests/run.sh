#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds and tests everything, on a fresh machine too: what is missing is
# installed first (apt-get, as root). The last line is the sum.
#
#     sh tests/run.sh            every kind of check, each of them short: gcc
#                                with all suites, clang without a warning, the
#                                address sanitizer over what does not wait on
#                                real time, the thread sanitizer over threads,
#                                valgrind, fuzzers, 2000 seeds of the simulator
#                                for N servers each, and the README on a fresh
#                                Debian tree. Twelve minutes on two processors
#     sh tests/run.sh --full     gcc with longer chaos, the address sanitizer
#                                over everything, 20000 seeds, servers of other
#                                Debian releases, all of the fault matrix, and
#                                two fresh trees. Three quarters of an hour
#     sh tests/run.sh --quick    gcc only, with all suites
#
# Each part is told with the time since the start, in minutes and seconds.
# NXLOCK_BUILD=DIR keeps the build directories in DIR. NXLOCK_SKIP_LIVE=1
# skips what needs a redis-server when there is none.
set -u

quick=
full=
case "${1-}" in
    '') ;;
    --quick) quick=1 ;;
    --full) full=1 ;;
    *)
        echo "usage: sh tests/run.sh [--quick | --full]" >&2
        exit 2
        ;;
esac

unset CDPATH # cd would print where it went
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
support=$root/tests/support
# Most tests are asleep most of their time, so more at once than there are
# processors; not many more, for they hold calls to their deadlines. What waits
# on real time is awake for a seventh of it.
jobs=5
jobs_asleep=8
jobs_instrumented=3
started=$(date +%s)
seeds=2000
releases=bookworm
if [ -n "$full" ]; then
    seeds=20000
    releases="bookworm trixie"
fi
unsteady=
steady= # a command before the tests

if [ -n "${NXLOCK_BUILD-}" ]; then
    mkdir -p "$NXLOCK_BUILD" || exit 1
    work=$(cd "$NXLOCK_BUILD" && pwd) || exit 1
else
    work=$(mktemp -d) || exit 1
fi
tally=$work/tally
: > "$tally" || exit 1
rm -f "$work/again" "$work/late"
. "$support/packages.sh"

# What takes long has a session of its own, by which it can be ended with all
# that it started; and the shell that waits for it hears its signals at once.
# What a shell starts like this would ignore those of the keyboard.
begin() { # COMMAND...: sets begun
    env --default-signal=INT,QUIT setsid "$@" < /dev/null &
    begun=$!
}
run() { # COMMAND...
    begin "$@"
    wait "$begun"
}

# By kill -s, for dash takes no -- after kill -TERM.
end() { # PROCESS...: what has been begun; it has 20 s to tidy up
    for process; do
        kill -s TERM -- "-$process" || kill -s TERM "$process"
    done
    tries=0
    for process; do
        while kill -s 0 -- "-$process" && [ $tries -lt 200 ]; do
            sleep 0.1
            tries=$((tries + 1))
        done
        kill -s KILL -- "-$process"
        wait "$process"
    done
}

clean() {
    trap - EXIT
    trap '' HUP INT QUIT PIPE TERM
    jobs -p > "$work/jobs"
    # shellcheck disable=SC2046 # a list of numbers
    end $(cat "$work/jobs") 2> /dev/null
    rm -f "$work/jobs"
    install_undo
    [ -n "${NXLOCK_BUILD-}" ] || rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' HUP INT QUIT PIPE TERM

say() {
    now=$(($(date +%s) - started))
    printf '== %d:%02d %s\n' $((now / 60)) $((now % 60)) "$*"
}

skipped() { # REASON: what cannot be run counts as one
    echo "SKIPPED: $*"
    echo 0 0 1 >> "$tally"
}

failed() { # LOG WHAT: a step that is no test program counts as one
    echo "--- $2 failed; the end of its log:"
    tail -n 60 "$1"
    echo "---"
    echo 0 1 0 >> "$tally"
}

finish() {
    [ -z "$unsteady" ] || echo "failed beside others, run again alone:$unsteady"
    awk '{ p += $1; f += $2; s += $3 }
        END { printf "%d passed, %d failed, %d skipped\n", p, f, s
              exit !(p > 0 && f == 0) }' "$tally"
    exit $?
}

needed=$(missing | tr '\n' ' ')
if [ -n "$needed" ]; then
    say "installing $needed"
    # shellcheck disable=SC2086 # a list of words
    install $needed > "$work/install.log" 2>&1 ||
        failed "$work/install.log" "installing $needed"
fi

# ------------------------------------------------------------ build and test

configure() { # NAME OPTION...: a build directory; warnings are errors
    name=$1
    shift
    rm -rf "${work:?}/$name"
    run env CC="$cc" CXX="$cxx" meson setup "$work/$name" "$root" \
        --wrap-mode=nodownload -Dwerror=true -Dtests=enabled "$@" \
        > "$work/$name.log" 2>&1 && return 0
    failed "$work/$name.log" "configuring $name"
    return 1
}

build() { # NAME OPTION...: all of it
    say "building $1"
    configure "$@" || return 1
    run ninja -C "$work/$name" >> "$work/$name.log" 2>&1 && return 0
    failed "$work/$name.log" "building $name"
    return 1
}

# One meson test run, which builds first what is needed and is not built. Sets
# how many programs it was to run, and its exit code.
meson_test() { # LOG BUILD ARGUMENT...
    rm -f "$work/$2"/meson-logs/testlog*.json
    log=$1
    dir=$work/$2
    shift 2
    meant=$(meson test -C "$dir" --list "$@" 2> /dev/null | grep -c ' / ')
    # shellcheck disable=SC2086 # a command's words, or none
    run $steady meson test -C "$dir" "$@" > "$work/$log.log" 2>&1
    code=$?
}

# The log of that run. It may have been cut short, by meson's end or by the
# disk's; that is a failure of its own.
count() { # RUN BUILD [AGAIN]
    json=$(echo "$work/$2"/meson-logs/testlog*.json)
    python3 "$support/tally.py" "$1" "$json" "$tally" ${3+"$3"}
    told=$?
    if [ $told -ne 0 ] && [ $told -ne 3 ]; then # 3: programs failed
        failed "$work/$1.log" "counting $1"
        return
    fi
    ran=$(grep -c . "$json")
    if [ "$ran" -ne "$meant" ]; then
        failed "$work/$1.log" "testing $1 ($ran of $meant programs)"
    elif [ $code -ne 0 ] && [ $told -eq 0 ]; then
        failed "$work/$1.log" "meson, with code $code, testing $1,"
    fi
}

# A test run, counted. What failed, and may have failed because others had the
# processor, is not, but is noted: tally.py says which failures are none of
# these.
check() { # RUN BUILD JOBS ARGUMENT...
    run=$1
    build=$2
    say "testing $run"
    shift 2
    meson_test "$run" "$build" --num-processes "$@"
    count "$run" "$build" "$work/late"
    [ -f "$work/late" ] || return 0
    sed "s/^/$build /" "$work/late" >> "$work/again"
    rm "$work/late"
}

# What was noted is run once more when all else has ended, and then counts. It
# is named at the end, whatever comes of it.
check_again() {
    [ -f "$work/again" ] || return 0
    runs address # their way to begin does the others no harm
    while read -r build name; do
        unsteady="$unsteady $build/$name"
        say "testing $name of $build again, alone"
        case $full$build in
            1gcc) export NXLOCK_FULL=1 ;; # as the first time
            *) unset NXLOCK_FULL ;;
        esac
        meson_test "$build-again" "$build" --num-processes 1 "$name"
        count "$build-again" "$build"
    done < "$work/again"
}

# A thread that is cancelled ends on a stack which the sanitizer still takes for
# in use; without a stack for signals it does not look. A crash is for the
# sanitizer to tell, and not for cmocka, which would catch it.
crash=handle_segv=2:handle_sigbus=2:handle_sigfpe=2:handle_sigill=2
export ASAN_OPTIONS=detect_leaks=1:print_legend=0:use_sigaltstack=0:$crash
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:$crash

# A sanitizer's program needs its places in memory, which a system that
# scatters them widely may have taken; setarch -R keeps them together.
runs() { # SANITIZER: a program built with it works; sets steady
    steady=
    echo 'int main(void) { return 0; }' > "$work/probe.c"
    gcc "-fsanitize=$1" "$work/probe.c" -o "$work/probe" \
        > "$work/probe.log" 2>&1 || return 1
    if have setarch && setarch "$(uname -m)" -R true 2> /dev/null; then
        steady="setarch $(uname -m) -R"
    fi
    # shellcheck disable=SC2086 # a command's words, or none
    $steady "$work/probe" >> "$work/probe.log" 2>&1
}

# What is configured is built while the first tests sleep: nice, so that it does
# not keep them from waking up in time.
ahead_begin() { # BUILD...
    # shellcheck disable=SC2016 # the inner shell's own
    begin nice -n 19 sh -c 'cd "$0" && for name; do
        ninja -C "$name" >> "$name.log" 2>&1
    done' "$work" "$@"
    ahead=$begun
}

ahead_end() {
    say "waiting for what is built ahead"
    wait "$ahead" # what did not build is built, and told, where it is used
}

prepare() {
    say "configuring what comes later"
    cc=gcc
    cxx=g++
    set --
    if ! runs address; then
        skipped "address sanitizer: $(tail -n 1 "$work/probe.log")"
    elif configure asan -Db_sanitize=address,undefined; then
        set -- asan
    fi
    if ! runs thread; then
        skipped "thread sanitizer: $(tail -n 1 "$work/probe.log")"
    else
        configure tsan -Db_sanitize=thread
    fi
    cc=clang
    cxx=clang++
    if ! have clang; then
        skipped "clang is not installed"
    elif ! fuzzes; then
        skipped "libFuzzer: libclang-rt-dev is not installed"
        configure clang && set -- "$@" clang
    else
        configure clang -Dfuzz=true && set -- "$@" clang
    fi
    steady=
    ahead_begin "$@"
}

configured() { # BUILD
    [ -f "$work/$1/build.ninja" ]
}

by_gcc() {
    # Short time-outs are kept with others of that kind alone.
    check gcc-fake gcc "$jobs" --suite fake
    check gcc-waits gcc "$jobs_asleep" --suite waits --no-suite fake
    check gcc gcc "$jobs" --no-suite fake --no-suite waits
}

sanitized() {
    set -- --no-suite waits --no-suite long
    [ -z "$full" ] || set --
    if configured asan; then
        runs address
        check asan asan "$jobs_instrumented" --suite unit --suite fake \
            --suite live --suite fuzz --suite header --suite sim "$@"
    fi
    if configured tsan; then
        runs thread
        check tsan tsan "$jobs_instrumented" --suite thread
    fi
    steady=
}

by_clang() {
    configured clang || return 0
    say "building clang"
    if ! run ninja -C "$work/clang" > "$work/clang.log" 2>&1; then
        failed "$work/clang.log" "building clang"
    elif fuzzes; then
        check fuzz clang "$jobs" --suite fuzz --suite libfuzzer
    fi
}

leaks() {
    if ! have valgrind; then
        skipped "valgrind is not installed"
    elif [ ! -f "$root/tests/live/test_leaks.c" ]; then
        skipped "valgrind: there is no tests/live/test_leaks.c"
    else
        say "testing valgrind"
        meson_test valgrind gcc --setup valgrind leaks quorum_leaks
        count valgrind gcc
    fi
}

# What went wrong is shown, all of it is counted. Without its plan, or with an
# exit code that nothing explains, it was cut short.
count_tap() { # LOG CODE WHAT
    grep -A 41 -e '^not ok' -e '# SKIP' "$1"
    awk -v code="$2" '/^not ok/ { f++ }
        /^ok/ { if (/# SKIP/) s++; else p++ }
        /^1\.\.[0-9]+/ { plan = substr($1, 4) + 0 }
        END { print p + 0, f + 0, s + 0
              n = p + f + s
              exit !(n > 0 && n == plan && (code == 0 || f > 0)) }' \
        "$1" >> "$tally" || failed "$1" "$3 (code $2)"
}

simulated() { # the simulator's seeds, for each number of servers
    say "simulating"
    players=
    for servers in 1 3 4 5; do
        begin "$work/gcc/tests/sim/nxlock-sim" --servers "$servers" \
            --seeds "$seeds" > "$work/sim-$servers.log" 2>&1
        players="$players $servers:$begun"
    done
    for player in $players; do
        servers=${player%:*}
        if wait "${player#*:}"; then
            echo 1 0 0 >> "$tally"
        else
            failed "$work/sim-$servers.log" "simulating $servers servers"
        fi
    done
}

# The ways to lock, on the real servers of other Debian suites.
servers() {
    say "testing other servers"
    run sh "$root/tests/servers.sh" "$work/gcc" > "$work/servers.log" 2>&1
    count_tap "$work/servers.log" $? "testing other servers"
}

# What the README says, on Debian trees that have nothing. It tests the last
# commit, or the files as they stand when they are not committed. The older
# release has the older tools. It works while the tests sleep: nice, so that it
# does not keep them from waking up in time.
fresh_begin() {
    say "testing fresh trees beside the rest: $releases"
    # shellcheck disable=SC2086 # a list of words
    begin nice sh "$root/tests/fresh.sh" $releases > "$work/fresh.log" 2>&1
    trees=$begun
}
fresh_end() {
    say "waiting for the fresh trees"
    wait "$trees"
    count_tap "$work/fresh.log" $? "testing fresh trees"
}

# Every fault on every arrangement of servers.
faults() {
    say "striking"
    if run "$work/gcc/tests/faults/nxlock-faults" > "$work/faults.log" 2>&1
    then
        echo 1 0 0 >> "$tally"
    else
        failed "$work/faults.log" "the matrix of faults"
    fi
}

good=1
cc=gcc
cxx=g++
build gcc || good=
if [ -z "$quick" ]; then
    fresh_begin
    prepare
fi
# What is a chaos of seconds elsewhere is one of a minute here.
[ -z "$full" ] || export NXLOCK_FULL=1
[ -z "$good" ] || by_gcc
unset NXLOCK_FULL
if [ -z "$quick" ]; then
    ahead_end
    sanitized
    if [ -n "$good" ]; then
        leaks
        [ -z "$full" ] || servers
        [ -z "$full" ] || faults
        simulated
    fi
    by_clang
    fresh_end
fi
check_again
say "done"
finish
