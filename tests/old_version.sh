#!/bin/sh
# SPDX-License-Identifier: MIT
#
# An older version of the library and this one at the same name: the cell
# "versions" of nxlock-faults, exclusive locks of the older one beside shared
# locks and permits of this one.
#
#     sh tests/old_version.sh BUILD [COMMIT]
#
# writes TAP. BUILD is a meson build directory of this version. COMMIT is built
# from the repository; the default is the last one before permits. Without the
# repository, as in a tarball, it is skipped.
set -u

if [ $# -eq 0 ] || [ ! -f "$1/build.ninja" ]; then
    echo "usage: sh tests/old_version.sh BUILD [COMMIT]" >&2
    exit 2
fi
build=$(cd "$1" && pwd) || exit 1
commit=${2-23d6d684}
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
library=src/libnxlock.so.0.1.0
case="beside exclusive locks of $commit"

echo "1..1"
if ! git -C "$root" cat-file -e "$commit^{commit}" 2> /dev/null; then
    echo "ok 1 - $case # SKIP there is no commit $commit here"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$work/old"
git -C "$root" archive "$commit" | tar -x -C "$work/old" || exit 1
ok="not ok"
if meson setup "$work/build" "$work/old" > "$work/log" 2>&1 &&
    ninja -C "$work/build" "$library" >> "$work/log" 2>&1 &&
    ninja -C "$build" tests/faults/nxlock-fault-contender \
        tests/faults/nxlock-fault-proxy >> "$work/log" 2>&1; then
    NXLOCK_OLD_LIBRARY="$work/build/$library" \
        "$build/tests/faults/nxlock-faults" --only versions --seconds 60 \
        > "$work/log" 2>&1 && ok="ok"
fi
sed 's/^/# /' "$work/log"
echo "$ok 1 - $case"
[ "$ok" = ok ]
