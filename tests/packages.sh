#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The packages on the releases that they are for, in new trees of Debian 12 and
# 13 and Ubuntu 24.04: "meson dist" makes a tarball, from which
# dpkg-buildpackage makes the packages. Lintian finds nothing in them. In a
# second tree, which has nothing that the build needed, they are installed,
# purged without a trace, put in place of older ones while locks are held, and
# pass their autopkgtest.
#
#     sh tests/packages.sh [SUITE...]    TAP; default: bookworm trixie noble
#
# In a tree of bookworm, "meson dist" also builds and tests the tarball.
# support/trees.sh makes the trees, and says what that needs.
# shellcheck disable=SC2154 # the tree's variables
set -u

# shellcheck source=tests/support/trees.sh
. "$(dirname "$0")/support/trees.sh"

prepare() { # what the trees run
    mkdir "$work/scripts" || return 1
    # What is no clone becomes one: "meson dist" takes what is committed.
    cat > "$work/scripts/dist.sh" << 'END'
set -e
cd /root/nxlock
git config --global --add safe.directory '*'
if [ ! -d .git ]; then
    git init -q && git add -A
    git -c user.name=test -c user.email=test@localhost commit -q -m Test
fi
git update-index -q --refresh # it has been copied
meson setup /root/build
meson dist -C /root/build --formats gztar "$@"
rm -rf /root/nxlock
mkdir /root/source
tar -C /root/source -xf /root/build/meson-dist/nxlock-*.tar.gz
mv /root/source/nxlock-* /root/nxlock
END
    cat > "$work/scripts/build.sh" << 'END'
set -e
cd /root/nxlock
dpkg-buildpackage -us -uc -b
mkdir /root/packages
mv ../*nxlock*_* /root/packages # also the .ddeb of Ubuntu
debian/rules clean
cd /root/packages
for name in libnxlock0 libnxlock-dev nxlock; do
    dpkg-deb -c "$(echo "${name}"_*.deb)"
done
END
    # A program that uses the shared library, built with what the packages have,
    # for the second tree, which has no compiler.
    cat > "$work/scripts/smoke.c" << 'END'
#include <stdio.h>

#include <nxlock.h>

int main(void)
{
    nxl_client *client;
    nxl_lock *lock;
    if (nxl_client_new(&client, "unix:///nonexistent/socket", NULL) ||
        nxl_lock_new(&lock, client, "smoke", NULL))
        return 1;
    int rc = nxl_lock_acquire(lock, 0);
    puts(nxl_version());
    fputs(nxl_client_errmsg(client), stderr);
    nxl_lock_free(lock);
    nxl_client_free(client);
    return rc == NXL_E_UNREACHABLE ? 0 : 2;
}
END
    cat > "$work/scripts/smoke.sh" << 'END'
set -e
cd /root/packages
for name in libnxlock0 libnxlock-dev; do
    dpkg-deb -x "$(echo "${name}"_*.deb)" /root/smoke
done
cc /root/scripts/smoke.c -o smoke -I/root/smoke/usr/include \
    -L"$(echo /root/smoke/usr/lib/*-linux-*)" -lnxlock
readelf -d smoke | grep 'NEEDED.*libnxlock\.so\.0'
END
    # Debian's tags also for Ubuntu: the packages say that they are Debian's.
    cat > "$work/scripts/lint.sh" << 'END'
cd /root/packages &&
    lintian --profile debian --allow-root --fail-on error,warning,info \
        --display-info ./*.changes
END
    cat > "$work/scripts/install.sh" << 'END'
set -e
cd /root/packages
apt-get install -y --no-install-recommends ./libnxlock0_*.deb \
    ./libnxlock-dev_*.deb ./nxlock_*.deb
nxlock --version
version=$(dpkg-query -W -f '${Version}' nxlock)
[ "$(nxlock --version)" = "nxlock ${version%-*}" ]
ldconfig -p | grep 'libnxlock\.so\.0 '
for file in man/man1/nxlock.1.gz man/man1/nxlock-run.1.gz \
    man/man5/nxlock.conf.5.gz man/man7/nxlock-url.7.gz \
    man/man3/nxl_lock_acquire.3.gz \
    doc/nxlock/docs/install.md doc/nxlock/NEWS.md.gz \
    doc/nxlock/docs/cpp.md doc/nxlock/docs/operating.md \
    bash-completion/completions/nxlock zsh/vendor-completions/_nxlock \
    fish/vendor_completions.d/nxlock.fish; do
    [ -s "/usr/share/$file" ]
done
[ -s /usr/include/nxlock.hpp ]
for file in /usr/lib/*/cmake/nxlock/nxlockConfig.cmake; do
    [ -s "$file" ]
done
END
    # Job programs may be in /usr/local/bin; the command is not.
    cat > "$work/scripts/paths.sh" << 'END'
cd /root/packages || exit 1
for name in libnxlock0 libnxlock-dev nxlock; do
    dpkg-deb -x "$(echo "${name}"_*.deb)" /root/unpacked || exit 1
done
find /root/unpacked -type f -name '*.gz' -exec gunzip {} + || exit 1
grep -r /usr/bin/nxlock /root/unpacked || exit 1
! grep -r /usr/local/bin/nxlock /root/unpacked
END
    # What docs/install.md says of a library from source: programs use it, and
    # the command does not. And of packages that were built again: it has the
    # line that installs these.
    cat > "$work/scripts/shadow.sh" << 'END'
set -e
smoke=/root/packages/smoke
uses() { # LIBRARY
    ldd $smoke | grep -F "libnxlock.so.0 => $1"
    [ "$($smoke)" = "$(nxlock --version | sed 's/^nxlock //')" ]
}
uses "$(echo /lib/*/libnxlock.so.0)"
cp /usr/lib/*/libnxlock.so.0 /usr/local/lib/
ldconfig
uses /usr/local/lib/libnxlock.so.0
rm /usr/local/lib/libnxlock.so.0
ldconfig
ldd /usr/bin/nxlock
! ldd /usr/bin/nxlock | grep libnxlock
END
    cat > "$work/scripts/again.sh" << 'END'
set -e
line=$(sed -n 's/^    \(apt-get install .*libnxlock0.*nxlock_.*\)/\1/p' \
    /root/nxlock/docs/install.md)
mkdir -p /root/again/folder
cd /root/again
for deb in /root/packages/libnxlock0_*.deb /root/packages/nxlock_*.deb; do
    rm -rf made
    dpkg-deb -R "$deb" made
    for folder in made/usr/share/doc/*; do
        echo again > "$folder/again"
    done
    dpkg-deb -b made "${deb##*/}"
done
cd folder
eval "$line"
cat /usr/share/doc/libnxlock0/again /usr/share/doc/nxlock/again
END
    # docs/install.md, "Upgrade": the older packages are these, called older.
    cat > "$work/scripts/upgrade.sh" << 'END'
set -e
mkdir /root/older
cd /root/older
for name in libnxlock0 nxlock; do
    dpkg-deb -R /root/packages/"$name"_*.deb "$name"
    sed -i 's/^Version: .*/&~older/' "$name/DEBIAN/control"
    dpkg-deb -b "$name" "$name.deb"
done
apt-get install -y --no-install-recommends ./libnxlock0.deb ./nxlock.deb

export NXLOCK_URL=unix:///tmp/redis.sock
redis-server --port 0 --unixsocket /tmp/redis.sock --save '' --dir /tmp &
server=$!
trap 'kill $server' EXIT
until [ -S /tmp/redis.sock ]; do sleep 0.1; done
token=$(nxlock acquire held --ttl 1h)
nxlock run renewed --ttl 2s -- sh -c '
    date +%s > /tmp/began; until [ -e /tmp/end ]; do sleep 0.1; done' &
run=$!
until [ -s /tmp/began ]; do sleep 0.1; done

cd /root/packages
apt-get install -y --no-install-recommends ./libnxlock0_*.deb ./nxlock_*.deb
dpkg-query -W nxlock | grep -v older
readlink "/proc/$run/exe" | grep deleted # it goes on with the old code
# Longer than the lease: it has been renewed since.
until [ $(($(date +%s) - $(cat /tmp/began))) -ge 5 ]; do sleep 0.1; done
nxlock status renewed
touch /tmp/end
wait $run # not 79: the lock was never lost
nxlock release held "$token"
END
    cat > "$work/scripts/autopkgtest.sh" << 'END'
exec autopkgtest --no-built-binaries /root/packages/libnxlock0_*.deb \
    /root/packages/libnxlock-dev_*.deb /root/packages/nxlock_*.deb \
    /root/nxlock/ -- null
END
}

apt() { # WORD...: apt-get in the tree
    in_tree apt-get -q -y --no-install-recommends "$@"
}

# All that a tree has, but for what apt, dpkg, debconf and ldconfig write down
# for themselves whenever they run.
listing() {
    (cd "$tree" && find . \( -path ./proc -o -path ./tmp -o -path ./root \
        -o -path ./var/log -o -path ./var/cache/apt -o -path ./var/lib/apt \
        -o -path ./var/cache/debconf -o -path ./var/cache/ldconfig \
        -o -path ./var/lib/dpkg/lock\* -o -path ./var/lib/dpkg/\*-old \) \
        -prune -o -printf '%y %m %p %l\n' |
        LC_ALL=C sort
    find etc usr -type f -exec cksum {} + | LC_ALL=C sort -k 3)
}
without_a_trace() { # by the line of docs/install.md
    line=$(sed -n 's/^    apt-get purge \([^#]*\).*/\1/p' \
        "$tree/root/nxlock/docs/install.md")
    [ -n "$line" ] || return 1
    # shellcheck disable=SC2086 # a list of packages
    apt purge --auto-remove $line || return 1
    listing > "$here/after"
    diff "$here/before" "$here/after"
}

built() { # the tarball, and the packages from it
    cp -R "$work/scripts" "$tree/root/scripts"
    dist="meson dist makes a tarball"
    tests=--no-tests
    if [ "$suite" = bookworm ]; then
        dist="$dist, which builds and passes the quick tests"
        tests=
    fi
    check "apt-get update" apt update &&
        check "what the build needs" apt install dpkg-dev git meson &&
        check "what debian/control says it needs" \
            apt build-dep /root/nxlock &&
        check "$dist" in_tree sh /root/scripts/dist.sh $tests &&
        check "dpkg-buildpackage -us -uc -b" \
            in_tree sh /root/scripts/build.sh &&
        check "a program is linked with the shared library" \
            in_tree sh /root/scripts/smoke.sh
}
clean_of_lint() {
    check "lintian is installed" apt install lintian &&
        check "lintian has nothing to say" in_tree sh /root/scripts/lint.sh
}
tried() {
    # A server that is installed must not start here.
    printf '#!/bin/sh\nexit 101\n' > "$tree/usr/sbin/policy-rc.d"
    chmod +x "$tree/usr/sbin/policy-rc.d"
    check "apt-get update, in the second tree" apt update || return
    listing > "$here/before"
    if check "the packages are installed" in_tree sh /root/scripts/install.sh
    then
        check "programs use a library in /usr/local/lib, the command does not" \
            in_tree sh /root/scripts/shadow.sh
        check "packages of the same version that were built again" \
            in_tree sh /root/scripts/again.sh
        check "and purged without a trace" without_a_trace
    fi
    check "a server is installed" apt install redis-server &&
        check "new packages replace older ones, and held locks stay held" \
            in_tree sh /root/scripts/upgrade.sh
    check "autopkgtest is installed" apt install autopkgtest &&
        check "autopkgtest" in_tree sh /root/scripts/autopkgtest.sh
}

life() {
    built || return
    clean_of_lint
    check "the packages name the command by its path in them" \
        in_tree sh /root/scripts/paths.sh
    first=$tree
    rm -rf "$here/bare/root/nxlock"
    begin_again
    for what in nxlock packages scripts; do
        cp -R "$first/root/$what" "$tree/root/" || exit 1
    done
    tried
}
trees "bookworm trixie noble" "$@"
