#!/bin/sh
# SPDX-License-Identifier: MIT
#
# An older version of the library and this one at the same names: the tests
# permit_chaos (exclusive locks of the older one beside shared locks and permits
# of this one, until there were 10000 grants) and line_chaos.
#
#     sh tests/old_version.sh BUILD [COMMIT]
#
# writes TAP. BUILD is a meson build directory of this version. COMMIT is built
# from the repository; the default is the last one before permits. Without the
# repository, as in a tarball, all is skipped.
set -u

if [ $# -eq 0 ] || [ ! -f "$1/build.ninja" ]; then
    echo "usage: sh tests/old_version.sh BUILD [COMMIT]" >&2
    exit 2
fi
build=$(cd "$1" && pwd) || exit 1
commit=${2-23d6d684}
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
library=src/libnxlock.so.0.1.0

echo "1..2"
if ! git -C "$root" cat-file -e "$commit^{commit}" 2> /dev/null; then
    echo "ok 1 - permit_chaos # SKIP there is no commit $commit here"
    echo "ok 2 - line_chaos # SKIP there is no commit $commit here"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$work/old"
git -C "$root" archive "$commit" | tar -x -C "$work/old" || exit 1
if ! { meson setup "$work/build" "$work/old" &&
    ninja -C "$work/build" "$library" &&
    ninja -C "$build" tests/test_live_permit_chaos \
        tests/test_live_line_chaos; } > "$work/log" 2>&1; then
    sed 's/^/# /' "$work/log"
    echo "not ok 1 - permit_chaos"
    echo "not ok 2 - line_chaos"
    exit 1
fi

number=0
failures=0
for test in permit_chaos line_chaos; do
    number=$((number + 1))
    ok="ok"
    NXLOCK_OLD_LIBRARY="$work/build/$library" \
        "$build/tests/test_live_$test" > "$work/log" 2>&1 || ok="not ok"
    sed 's/^/# /' "$work/log"
    [ "$ok" = ok ] || failures=$((failures + 1))
    echo "$ok $number - $test"
done
[ "$failures" -eq 0 ]
