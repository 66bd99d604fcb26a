#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs a libFuzzer target on a copy of its corpus, so that what it finds does
# not get into the source tree. The same seed each time, unless told; with
# NXLOCK_FULL=1 more inputs.
#
#     libfuzzer.sh PROGRAM CORPUS DICTIONARY [OPTION...]
set -u

if [ $# -lt 3 ]; then
    echo "usage: libfuzzer.sh PROGRAM CORPUS DICTIONARY [OPTION...]" >&2
    exit 2
fi
program=$1
corpus=$2
words=$3
shift 3
runs=30000
[ -z "${NXLOCK_FULL-}" ] || runs=100000
[ $# -gt 0 ] || set -- -runs=$runs -seed=1

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

mkdir "$work/corpus" "$work/found" && cp "$corpus"/* "$work/corpus" || exit 1
"$program" "-dict=$words" "-artifact_prefix=$work/found/" -timeout=20 \
    -max_len=49152 -print_final_stats=1 "$@" "$work/corpus"
code=$?
for input in "$work/found"/*; do
    [ -f "$input" ] || continue
    echo "to run it again: fuzz_TARGET -x" \
        "$(od -An -v -tx1 "$input" | tr -d ' \n')"
done
# Some of its codes mean "skipped" to meson.
[ $code -eq 0 ] || exit 1
