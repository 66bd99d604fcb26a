#!/bin/sh
# SPDX-License-Identifier: MIT
#
# For run.sh, which starts it with nice while tests sleep that wait on real
# time: builds all that is left of BUILD, then runs tests that only compute, and
# plays the simulator's seeds unless SEEDS is 0. Their output is in RUN.log and
# sim-N.log, their exit codes are in RUN.code and sim-N.code. RUN.built is there
# when all is built. Fails if it cannot build.
#
#     beside.sh WORK BUILD RUN SEEDS TEST-ARGUMENT...
set -u

work=$1
build=$1/$2
run=$3
seeds=$4
shift 4

ninja -C "$build" >> "$build.log" 2>&1 || exit 1
: > "$work/$run.built" || exit 1

tests() {
    meson test -C "$build" --no-rebuild --logbase "$run" "$@" \
        > "$work/$run.log" 2>&1
    echo $? > "$work/$run.code"
}
tests "$@" &

[ "$seeds" -ne 0 ] || { wait; exit 0; }
# The first 500 seeds of each number of servers are in the suite sim.
for servers in 1 3 4 5; do
    "$build/tests/sim/nxlock-sim" --servers "$servers" --from 501 \
        --seeds $((seeds - 500)) > "$work/sim-$servers.log" 2>&1
    echo $? > "$work/sim-$servers.code"
done
wait
exit 0
