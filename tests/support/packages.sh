# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
#
# For run.sh, which has set checks and work: what the tests need, by the names
# that Debian gives it, and its installation, which starts no service.

policy=/usr/sbin/policy-rc.d
policy_made=

install_undo() {
    [ -z "$policy_made" ] || rm -f "$policy"
    policy_made=
}

have() {
    command -v "$1" > /dev/null 2>&1
}

# clang alone does not bring the runtime of its fuzzer.
fuzzes() {
    have clang || return 1
    echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -fsanitize=fuzzer -x c - -o "$work/probe" > /dev/null 2>&1
}

missing() { # the packages that are missing, by Debian's names
    have meson || echo meson
    have ninja || echo ninja-build
    have gcc || echo gcc libc6-dev
    have g++ || echo g++
    have cmake || echo cmake
    have make || echo make
    have nm || echo binutils
    have python3 || echo python3
    if have pkg-config; then
        pkg-config --exists hiredis || echo libhiredis-dev
        pkg-config --exists uuid || echo uuid-dev
        pkg-config --exists openssl || echo libssl-dev
        pkg-config --exists cmocka || echo libcmocka-dev
        pkg-config --exists sqlite3 || echo libsqlite3-dev
        pkg-config --exists libuv || echo libuv1-dev
    else
        echo pkg-config libhiredis-dev uuid-dev libssl-dev libcmocka-dev \
            libsqlite3-dev libuv1-dev
    fi
    have redis-server || [ -n "${NXLOCK_REDIS_SERVER-}" ] ||
        [ "${NXLOCK_SKIP_LIVE-}" = 1 ] || echo redis-server
    have openssl || echo openssl
    have mandoc || echo mandoc
    python3 -c 'import redis' 2> /dev/null ||
        /usr/bin/python3 -c 'import redis' 2> /dev/null || echo python3-redis
    have sqlite3 || echo sqlite3
    have zsh || echo zsh
    have fish || echo fish
    have faketime || echo faketime
    have clang-format-14 || have clang-format || echo clang-format
    if [ -n "$checks" ]; then
        have clang || echo clang
        fuzzes || echo libclang-rt-dev
        have valgrind || echo valgrind
        have debootstrap || echo debootstrap
        have unshare || echo util-linux
        have ip || echo iproute2
    fi
}

install() { # PACKAGE...
    if ! have apt-get || [ "$(id -u)" -ne 0 ]; then
        echo "missing; please install:" "$@" >&2
        return 1
    fi
    # A redis-server that is installed must not start serving.
    if [ ! -e "$policy" ]; then
        policy_made=1
        printf '#!/bin/sh\nexit 101\n' > "$policy" && chmod +x "$policy"
    fi
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    apt-get -o DPkg::Lock::Timeout=300 -qq update < /dev/null &&
        apt-get -o DPkg::Lock::Timeout=300 -qq -y \
            --no-install-recommends install "$@" < /dev/null
    code=$?
    install_undo
    unset RUNLEVEL
    return $code
}
