# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# For the tests of the packages: a redis-server of their own, at $port of this
# machine, which ends with the test. Port 6379 may have one already; the test
# needs another one because it must not touch that one's keys.
set -eu

work=${AUTOPKGTEST_TMP:-$(mktemp -d)}
server=
end_server() {
    [ -z "$server" ] || kill "$server" || :
}
trap end_server EXIT

# A port may be taken: the next one is tried.
start_server() { # sets port and NXLOCK_URL
    port=$((20000 + $$ % 10000))
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        port=$((port + 1))
        redis-server --bind 127.0.0.1 --port "$port" --save '' --dir "$work" \
            > "$work/redis.log" 2>&1 &
        server=$!
        for _ in $(seq 100); do
            if redis-cli -p "$port" info server 2> /dev/null |
                tr -d '\r' | grep -qx "process_id:$server"; then
                export NXLOCK_URL="redis://127.0.0.1:$port"
                return 0
            fi
            kill -s 0 "$server" 2> /dev/null || break
            sleep 0.1
        done
        kill "$server" 2> /dev/null || :
        server=
    done
    cat "$work/redis.log"
    return 1
}
