#!/bin/sh
# SPDX-License-Identifier: MIT
#
# For run.sh, which starts it with nice while tests sleep that wait on real
# time: builds all that is left of BUILD, then runs tests that only compute,
# and plays the simulator's seeds above 500. Their output is in RUN.log and
# sim-N.log, their exit codes are in RUN.code and sim-N.code. RUN.built is there
# when all is built. Fails if it cannot build. Where SEEDS is 0 it plays none,
# builds what the tests need, and has clang parse the rest; with NXLOCK_FULL=1
# all is compiled.
#
#     beside.sh WORK BUILD RUN SEEDS TEST-ARGUMENT...
set -u

work=$1
build=$1/$2
run=$3
seeds=$4
shift 4

compile() { # every file; an archive and a program only if a file needs it
    # shellcheck disable=SC2046 # a list of words
    ninja -C "$build" $(ninja -C "$build" -t targets all |
        sed -n 's/\.o: .*/.o/p')
}
rest() {
    if [ -n "${NXLOCK_FULL-}" ]; then
        compile
    else
        python3 "$(dirname "$0")/parse.py" "$build"
    fi
}
if [ "$seeds" -ne 0 ]; then
    ninja -C "$build" >> "$build.log" 2>&1 || exit 1
else
    meson test -C "$build" --wrapper true --logbase built "$@" \
        >> "$build.log" 2>&1
    [ $? -ne 125 ] || exit 1 # meson's code for a build that fails
    rest >> "$build.log" 2>&1 || exit 1
fi
: > "$work/$run.built" || exit 1

# So long may a test in C take here; meson stops it later (run.sh).
export NXLOCK_TEST_TIMEOUT=1400
tests() {
    meson test -C "$build" --no-rebuild --logbase "$run" "$@" \
        > "$work/$run.log" 2>&1
    echo $? > "$work/$run.code"
}
tests "$@" &

[ "$seeds" -gt 500 ] || { wait; exit 0; }
play() { # NAME OPTION...
    name=$1
    shift
    "$build/tests/sim/nxlock-sim" "$@" --from 501 --seeds $((seeds - 500)) \
        > "$work/sim-$name.log" 2>&1
    echo $? > "$work/sim-$name.code"
}
for servers in 1 3 4 5; do
    play "$servers" --servers "$servers"
done
play permits --work permits
wait
exit 0
