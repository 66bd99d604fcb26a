#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds nxlock and tests it, also on a machine that has nothing: missing
# packages are installed first (apt-get, as root). The last line is the sum, and
# how many programs that failed beside others were run a second time.
#
#     sh tests/run.sh            gcc with all suites, in five minutes on two
#                                processors
#     sh tests/run.sh --checks   what else must hold before a change lands: the
#                                address sanitizer over what does not wait on
#                                real time, the thread sanitizer over threads,
#                                valgrind, clang without a warning, fuzzers, a
#                                build without TLS, and the README on a fresh
#                                Debian tree, in seven minutes
#     sh tests/run.sh --full     both, with longer chaos, more fuzzing, the
#                                address sanitizer over everything, 20000
#                                seeds, servers of other Debian releases, all of
#                                the fault matrix, failovers, two fresh trees,
#                                and the packages in three, in 90 minutes
#
# Each part is named with the time since the start, in minutes and seconds, and
# with the seconds that the machine's processors have worked since then.
# NXLOCK_BUILD=DIR keeps the build directories in DIR. NXLOCK_SKIP_LIVE=1
# skips what needs a redis-server when there is none.
set -u

suites=1 # gcc and the simulator
checks=
full=
case "${1-}" in
    '') ;;
    --checks) suites='' checks=1 ;;
    --full) checks=1 full=1 ;;
    *)
        echo "usage: sh tests/run.sh [--checks | --full]" >&2
        exit 2
        ;;
esac

unset CDPATH # cd would print where it went
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
support=$root/tests/support
started=$(date +%s)
seeds=500 # the suite sim has these
releases=bookworm
if [ -n "$full" ]; then
    seeds=20000
    releases="bookworm trixie"
fi
unsteady=
steady= # a command before the tests
linker= # words for env

# A python3 that is a script which looks for the real one would do so hundreds
# of times, and takes longer than most programs that it starts.
python=$(python3 -c 'import sys; print(sys.executable)' 2> /dev/null)
case $python in
    "$(command -v python3)" | '') ;;
    *) PATH=${python%/*}:$PATH ;;
esac

if [ -n "${NXLOCK_BUILD-}" ]; then
    mkdir -p "$NXLOCK_BUILD" || exit 1
    work=$(cd "$NXLOCK_BUILD" && pwd) || exit 1
else
    work=$(mktemp -d) || exit 1
fi
tally=$work/tally
: > "$tally" || exit 1
: > "$tally.seconds" || exit 1
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

worked() { # in seconds, all processors together
    awk '/^cpu / { print int(($2 + $3 + $4 + $7 + $8) / 100) }' /proc/stat
}
worked_before=$(worked)
say() {
    now=$(($(date +%s) - started))
    printf '== %d:%02d (%d s) %s\n' $((now / 60)) $((now % 60)) \
        $(($(worked) - worked_before)) "$*"
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
    echo "took longest, in seconds: $(sort -rn "$tally.seconds" | head -n 10 |
        tr '\n' ',' | sed 's/,$//; s/,/, /g')"
    # shellcheck disable=SC2086 # a list of names
    set -- $unsteady
    awk -v again=$# '{ p += $1; f += $2; s += $3 }
        END { printf "%d passed, %d failed, %d skipped, %d run again\n", p, f,
                  s, again
              exit !(p > 0 && f == 0) }' "$tally"
    exit $?
}

# Most tests are asleep most of their time, so more at once than there are
# processors; not many more, for they hold calls to their deadlines. A third of
# that where it takes 3.5 ms to start a program: that machine is slow, or busy.
choose_jobs() {
    jobs=13 jobs_fake=6 jobs_instrumented=5
    begun_ms=$(date +%s%3N)
    tries=100
    while [ $tries -gt 0 ]; do
        env true
        tries=$((tries - 1))
    done
    start_us=$((($(date +%s%3N) - begun_ms) * 10))
    [ $start_us -lt 3500 ] || jobs=4 jobs_fake=2 jobs_instrumented=2
    say "a program starts in $start_us us: $jobs tests at once"
}
choose_jobs

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
    # shellcheck disable=SC2086 # words for env
    run env CC="$cc" CXX="$cxx" $linker meson setup "$work/$name" "$root" \
        --wrap-mode=nodownload -Dwerror=true -Dtests=enabled "$@" \
        > "$work/$name.log" 2>&1 && return 0
    failed "$work/$name.log" "configuring $name"
    return 1
}

# Builds what a test run needs, and nothing else: meson does that before it runs
# the tests, and here "true" is run in place of each.
build() { # NAME ARGUMENT...: of meson test
    name=$1
    say "building $name"
    shift
    run meson test -C "$work/$name" --wrapper true --logbase built "$@" \
        >> "$work/$name.log" 2>&1
    [ $? -eq 125 ] || return 0 # meson's code for a build that fails
    failed "$work/$name.log" "building $name"
    return 1
}

# How many programs a test run is to run; before it, so that what is left of an
# earlier one is not counted.
expect() { # RUN BUILD ARGUMENT...: sets meant
    rm -f "$work/$2/meson-logs/$1.json" "$work/$2/meson-logs/$1-valgrind.json"
    dir=$work/$2
    shift 2
    meant=$(meson test -C "$dir" --list "$@" 2> /dev/null | grep -c ' / ')
}

# One meson test run, which builds first what is needed and is not built. Sets
# how many programs it was to run, and its exit code.
meson_test() { # RUN BUILD ARGUMENT...
    expect "$@"
    log=$1
    shift 2
    # shellcheck disable=SC2086 # a command's words, or none
    run $steady meson test -C "$dir" --logbase "$log" "$@" \
        > "$work/$log.log" 2>&1
    code=$?
}

# The log of that run. It may have been cut short, by meson's end or by the
# disk's; that is a failure of its own.
count() { # RUN BUILD [AGAIN]
    json=$work/$2/meson-logs/$1.json
    [ -f "$json" ] || json=$work/$2/meson-logs/$1-valgrind.json # of --setup
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

# What needs the processor works while the tests of the foreground sleep: nice,
# so that it does not keep them from waking up in time.
beside_begin() { # BUILD RUN SEEDS TEST-ARGUMENT...
    beside_build=$1
    beside_run=$2
    beside_seeds=$3
    shift 3
    say "beside it: building $beside_build, testing $beside_run"
    expect "$beside_run" "$beside_build" "$@"
    beside_meant=$meant
    rm -f "$work/$beside_run.code" "$work/$beside_run.built" \
        "$work"/sim-*.code
    begin nice -n 19 sh "$support/beside.sh" "$work" "$beside_build" \
        "$beside_run" "$beside_seeds" "$@" --timeout-multiplier 5
    beside=$begun
}
beside_built() { # all of it is built, or that has failed
    say "waiting until all of $beside_build is built"
    while [ ! -e "$work/$beside_run.built" ] && kill -s 0 "$beside"; do
        sleep 0.1
    done 2> /dev/null
    [ -e "$work/$beside_run.built" ]
}
beside_end() {
    say "waiting for $beside_run"
    if ! wait "$beside"; then
        failed "$work/$beside_build.log" "building $beside_build"
        return 1
    fi
    meant=$beside_meant
    code=$(cat "$work/$beside_run.code")
    count "$beside_run" "$beside_build"
    [ "$beside_seeds" -gt 500 ] || return 0
    for world in 1 3 4 5 permits; do
        if [ "$(cat "$work/sim-$world.code")" = 0 ]; then
            echo 1 0 0 >> "$tally"
        else
            failed "$work/sim-$world.log" "playing seeds: sim-$world"
        fi
    done
}

# With -O1 it builds in half the time of -O2; -g1 suffices for a stack's lines.
instrument() { # NAME SANITIZER [FLAGS]
    configure "$1" -Db_sanitize="$2" -Doptimization=1 -Ddebug=false \
        -Dc_args="-g1${3+ $3}" -Dcpp_args="${3-}"
}
# The library of the undefined sanitizer words what it finds, but with it each
# program starts and ends with twice the page faults. So what is found is by
# default an illegal instruction, and the address sanitizer shows the stack.
undefined='-fsanitize=undefined -fsanitize-undefined-trap-on-error'

prepare() {
    say "configuring"
    cc=gcc
    cxx=g++
    if ! runs address; then
        skipped "address sanitizer: $(tail -n 1 "$work/probe.log")"
    else
        if [ -n "$full" ]; then
            instrument asan address,undefined
        else
            instrument asan address "$undefined"
        fi
    fi
    if ! runs thread; then
        skipped "thread sanitizer: $(tail -n 1 "$work/probe.log")"
    else
        instrument tsan thread
    fi
    # Lines are for valgrind; nothing is optimized, so it is built sooner. It
    # is one for /usr, because what gcc builds is for /usr/local, and reports
    # its calls to the test "trip", which reads no newer format of lines.
    configure plain -Dtls=disabled -Doptimization=0 -Ddebug=false \
        -Dc_args='-g1 -gdwarf-4 -finstrument-functions' --prefix=/usr \
        -Ddefault_library=shared
    cc=clang
    cxx=clang++
    linker= # gold warns of names in clang's sanitizers
    if ! have clang; then
        skipped "clang is not installed"
    elif ! fuzzes; then
        skipped "libFuzzer: libclang-rt-dev is not installed"
        configure clang -Doptimization=1 -Ddebug=false
    else
        configure clang -Doptimization=1 -Ddebug=false -Dfuzz=true
    fi
    steady=
}

configured() { # BUILD
    [ -f "$work/$1/build.ninja" ]
}

# Short time-outs are kept with others of that kind alone (the suite first), and
# all else is built beside them. What only computes or builds is run beside the
# rest. Of the rest, what waits on real time begins first (its priority in
# tests/meson.build): it sleeps while others work. The programs of the suite
# tabled are run by the test "table".
by_gcc() {
    build gcc --suite first || return 0
    beside_begin gcc gcc-beside "$seeds" --suite api --suite builds \
        --suite sim --suite fuzz --no-suite tabled
    check gcc-fake gcc "$jobs_fake" --no-rebuild --suite first
    if beside_built; then
        check gcc gcc "$jobs" --no-rebuild --no-suite first --no-suite api \
            --no-suite builds --no-suite sim --no-suite fuzz \
            --no-suite tabled --no-suite tls-long
        [ -z "$full" ] || check gcc-tls gcc "$jobs" --no-rebuild \
            --suite tls-long
    fi
    beside_end
}

sanitized_by_address() {
    configured asan || return 0
    set -- --suite unit --suite fake --suite live --suite tls --suite header
    if [ -n "$full" ]; then
        set -- "$@" --suite fuzz --suite sim
    else # the programs of libFuzzer have these sanitizers and drive the core
        set -- "$@" --no-suite waits --no-suite long
        fuzzes || set -- "$@" --suite fuzz --suite sim
    fi
    build asan "$@" || return 0
    # What comes later is built in the meantime.
    # shellcheck disable=SC2016 # the inner shell's own
    begin nice -n 19 sh -c 'cd "$0" || exit
        set -- --wrapper true --logbase built
        meson test -C tsan "$@" --suite thread >> tsan.log 2>&1
        meson test -C plain "$@" leaks >> plain.log 2>&1' "$work"
    ahead=$begun
    runs address
    check asan asan "$jobs_instrumented" "$@"
    steady=
    wait "$ahead" # what did not build is built, and told, where it is used
}

sanitized_by_thread() {
    configured tsan || return 0
    build tsan --suite thread || return 0
    runs thread
    check tsan tsan "$jobs_instrumented" --suite thread
    steady=
}

# It has to compile without a warning, all of it; then its fuzzers run. Inputs
# that are not libFuzzer's are what gcc's programs get in the suite fuzz.
clang_begin() {
    configured clang || return 0
    if fuzzes; then
        beside_begin clang fuzz 0 --suite libfuzzer
    else
        beside_begin clang fuzz 0 --suite fuzz
    fi
}
clang_end() {
    configured clang || return 0
    beside_end
}

# Without OpenSSL it has to build without a warning too. What such a build does
# is seen in the fresh trees.
without_tls() {
    configured plain || return 0
    set -- url url_parts params combination endpoints trip
    build plain "$@" || return 0
    check plain plain "$jobs" --no-rebuild "$@"
    [ -n "$full" ] || leaks plain
    say "testing what it installs"
    run python3 "$root/tests/api/test_install.py" "$work/plain" "$root" usr \
        > "$work/installs.log" 2>&1
    count_tap "$work/installs.log" $? "testing what plain installs"
}

leaks() { # BUILD
    if ! have valgrind; then
        skipped "valgrind is not installed"
    else
        say "testing valgrind"
        # Over TLS it takes four times as long. The address sanitizer looks for
        # leaks there too.
        meson_test valgrind "$1" --setup valgrind --num-processes 2 \
            leaks ${full:+leaks_tls}
        count valgrind "$1"
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

# The ways to lock, and failovers, on the real servers of other Debian suites.
servers() {
    say "testing other servers"
    run sh "$root/tests/servers.sh" "$work/gcc" > "$work/servers.log" 2>&1
    count_tap "$work/servers.log" $? "testing other servers"
}

# The library before permits, and this one, at the same names.
old_version() {
    say "testing beside an older version"
    run sh "$root/tests/old_version.sh" "$work/gcc" > "$work/old.log" 2>&1
    count_tap "$work/old.log" $? "testing beside an older version"
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

# The packages, in trees of the releases that they are for.
packages() {
    say "testing packages"
    run sh "$root/tests/packages.sh" > "$work/packages.log" 2>&1
    count_tap "$work/packages.log" $? "testing packages"
}

# Every fault on every arrangement of servers, the records of once, and
# failovers; the tests "failovers", "sentinel-failovers" and "once-failover"
# have played some of them.
faults() {
    say "striking"
    chaos="--only chaos --only chaos-guarded --only kinds"
    for tool in nxlock-faults "nxlock-faults --seconds 60 $chaos" \
        "nxlock-once-faults --keys 5000" \
        "nxlock-failover --runs 3" \
        "nxlock-failover --event planned --guard on --runs 10 --busy 2" \
        nxlock-once-failover "nxlock-sentinel --runs 3" \
        "nxlock-crowd --busy 3" "nxlock-crowd --busy 3 --door loop"; do
        # shellcheck disable=SC2086 # a command and its arguments
        if run "$work/gcc/tests/faults/"$tool > "$work/faults.log" 2>&1; then
            echo 1 0 0 >> "$tally"
        else
            failed "$work/faults.log" "$tool"
        fi
    done
}

# Hundreds of programs are linked, and gold does that in less than half of the
# time. The fresh trees and the quickstart link as a reader does.
find_linker() {
    echo 'int main(void) { return 0; }' > "$work/probe.c"
    for one in $cc $cxx; do
        "$one" -fuse-ld=gold "$work/probe.c" -o "$work/probe" \
            > "$work/probe.log" 2>&1 || return 0
    done
    linker="CC_LD=gold CXX_LD=gold"
}

good=1
cc=gcc
cxx=g++
[ -n "$full" ] || find_linker
# Debug information is for valgrind; without it this is built sooner. The checks
# alone do without this build.
if [ -n "$full" ]; then
    configure gcc || good=
elif [ -n "$suites" ]; then
    configure gcc -Ddebug=false || good=
fi
# What is a chaos of seconds elsewhere is one of a minute here.
[ -z "$full" ] || export NXLOCK_FULL=1
if [ -n "$good" ] && [ -n "$suites" ]; then
    by_gcc
fi
if [ -n "$checks" ]; then
    fresh_begin
    prepare
    clang_begin
    unset NXLOCK_FULL
    sanitized_by_address
    sanitized_by_thread
    without_tls
    if [ -n "$good" ] && [ -n "$full" ]; then
        leaks gcc
        servers
        old_version
        faults
    fi
    clang_end
    fresh_end
    [ -z "$full" ] || packages
fi
check_again
say "done"
finish
