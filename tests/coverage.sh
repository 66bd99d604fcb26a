#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Which lines and branches of the library the tests reach, by gcov: of each
# folder, and of each file the lines that nothing reached. Builds in DIR, which
# is made if there is none, and runs the suites unit, fake, live and fuzz of the
# library (not those of the command).
#
#     sh tests/coverage.sh DIR [FOLDER...]     all of src but the command
#
# Fails when a folder is reached by less than 90 % of its lines.
set -u

if [ $# -lt 1 ]; then
    echo "usage: sh tests/coverage.sh DIR [FOLDER...]" >&2
    exit 2
fi
unset CDPATH # cd would print where it went
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
dir=$1
shift
if [ $# -eq 0 ]; then
    for folder in "$root"/src/*/; do
        [ -n "$(find "$folder" -name '*.c')" ] || continue
        folder=src/$(basename "$folder")
        [ "$folder" = src/cli ] || set -- "$@" "$folder"
    done
fi

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM

if [ ! -f "$dir/build.ninja" ]; then
    env CC="${CC-gcc}" meson setup "$dir" "$root" --buildtype=debug \
        -Db_coverage=true -Dtests=enabled > "$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
fi
find "$dir/src" -name '*.gcda' -exec rm -f {} +
# By name, for the suite "live" has the command's tests too.
tests=$(meson test -C "$dir" --no-rebuild --list --suite unit --suite fake \
    --suite live --suite fuzz 2> /dev/null | sed 's/.* //' | grep -v '^cli_')
# shellcheck disable=SC2086 # a list of words
meson test -C "$dir" --num-processes 4 --timeout-multiplier 3 \
    $tests > "$log" 2>&1 || {
    if ! grep -q '^Fail: ' "$log"; then # nothing ran, for it does not build
        tail -n 40 "$log" >&2
        exit 1
    fi
    echo "some tests failed; the figures are those of the others" >&2
    grep -E ' (FAIL|TIMEOUT) ' "$log" >&2
}
exec python3 "$root/tests/support/coverage.py" "$root" \
    "$dir/src/libnxlock-inner.a.p" "$@"
