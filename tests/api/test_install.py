#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_install.py BUILD ROOT: what is installed works where it is installed.

Installs BUILD into a DESTDIR and builds with the lines of nxlock(3); then makes
a small build of its own with other values of default_library and prefix, and
one as a subproject. The command runs with an empty environment, so without
LD_LIBRARY_PATH. TAP.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree stays as it is

from exports import exported

PROGRAM = """#include <nxlock.h>
#include <string.h>
long clock_now(void);
long clock_now(void) { return 1; } /* the library has such a function, too */
int main(void)
{
    return nxl_lock_held(NULL) || strchr(nxl_version(), '.') == NULL;
}
"""
PARENT = """project('parent', 'c', version: '1', meson_version: '>= 1.0.0')
nxlock = dependency('nxlock', default_options: ['cli=false'])
executable('prog', 'prog.c', dependencies: nxlock)
"""
OPTIONS = ["-Dtests=disabled", "-Doptimization=0", "-Ddebug=false",
           "-Dwerror=true", "--wrap-mode=nodownload"]


class Wrong(Exception):
    """Why a case failed."""


def run(*command, **more):
    more.setdefault("cwd", "/")
    done = subprocess.run(
        [str(word) for word in command], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=900, check=False, **more)
    if done.returncode != 0:
        raise Wrong(f"{command}: code {done.returncode}\n{done.stdout}")
    return done.stdout


def expect(condition, *what):
    if not condition:
        raise Wrong(" ".join(str(one) for one in what))


def dynamic(program, tag):
    """The values of one tag of its dynamic section."""
    return re.findall(rf"\({tag}\).*\[(.*)\]", run("readelf", "-d", program))


def files(tree):
    """The library's installed files, by name."""
    return {path.name: path for path in tree.rglob("libnxlock.*")}


def command_runs(tree):
    (program,) = (path for path in tree.rglob("bin/nxlock"))
    expect(run(program, "--version", env={}).startswith("nxlock "), program)
    return program


class Install:
    def __init__(self, directory, build, root):
        self.dir, self.build, self.root = directory, build, root
        self.exports = root / "tests/api/exports.py"
        (directory / "prog.c").write_text(PROGRAM)
        self.own = directory / "own"

    def only_nxl(self, archive):
        run(sys.executable, self.exports, "compare",
            self.root / "include/nxlock.h", archive)

    def install(self, build, tree, *more):
        run("meson", "install", "-C", build, "--quiet", *more, "--destdir",
            tree)
        return tree

    def default(self):
        """BUILD is installed whole, and the command runs from a DESTDIR"""
        tree = self.install(self.build, self.dir / "default", "--no-rebuild")
        program = command_runs(tree)
        expect(any(path.startswith("$ORIGIN/")
                   for path in dynamic(program, "RUNPATH")), "no $ORIGIN")
        found = files(tree)
        expect({"libnxlock.a", "libnxlock.so", "libnxlock.so.0"} <= set(found),
               "installed:", sorted(found))
        self.only_nxl(found["libnxlock.a"])

    def pages(self):
        """each function that the library exports has a page of its own"""
        (library,) = (self.dir / "default").rglob("libnxlock.so")
        found = {path.stem for path in
                 (self.dir / "default").rglob("share/man/man3/nxl_*.3")}
        names = set(exported(str(library)))
        expect(len(names) > 40 and names <= found, sorted(names - found))

    def page(self):
        """the two lines of nxlock(3) build a program and a plugin"""
        tree = self.dir / "default"
        (pc,) = tree.rglob("nxlock.pc")
        lines = [line.replace("\\-", "-")[4:] for line in
                 (self.root / "docs/man/nxlock.3").read_text().splitlines()
                 if line.startswith(".Dl cc") and "libnxlock.a" in line]
        expect(len(lines) == 2, lines)
        (self.dir / "plugin.c").write_text(
            (self.root / "tests/api/plugin.c").read_text())
        for line in lines:
            run("sh", "-ec", line, cwd=self.dir, env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "PKG_CONFIG_PATH": str(pc.parent),
                "PKG_CONFIG_SYSROOT_DIR": str(tree)})
        run(self.dir / "prog", env={})
        plugin = self.dir / "plugin.so"
        expect("NODELETE" in run("readelf", "-d", plugin), "no NODELETE")
        names = run("nm", "-D", "--defined-only", plugin)
        expect("plugin_run" in names and "nxl_" not in names, names)

    def usr(self):
        """prefix=/usr, default_library=shared: no archive and no rpath"""
        run("meson", "setup", self.own, self.root, *OPTIONS, "--prefix=/usr",
            "-Ddefault_library=shared")
        run("nice", "ninja", "-C", self.own)
        tree = self.install(self.own, self.dir / "usr")
        found = files(tree)
        expect("libnxlock.so" in found and "libnxlock.a" not in found, found)
        (program,) = tree.rglob("bin/nxlock")
        for tag in ("RUNPATH", "RPATH"):
            expect(not dynamic(program, tag), tag, dynamic(program, tag))

    def static(self):
        """default_library=static: no shared library; all is linked with it"""
        prefix = self.dir / "prefix"
        run("meson", "configure", self.own, f"-Dprefix={prefix}",
            "-Ddefault_library=static")
        run("nice", "ninja", "-C", self.own)
        run("meson", "install", "-C", self.own, "--quiet")
        found = files(prefix)
        expect(set(found) == {"libnxlock.a"}, found)
        self.only_nxl(found["libnxlock.a"])
        command_runs(prefix)
        (pc,) = prefix.rglob("nxlock.pc")
        run("sh", "-ec", "cc prog.c -o prog $(pkg-config --cflags --libs "
            "nxlock)", cwd=self.dir, env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "PKG_CONFIG_PATH": str(pc.parent)})
        run(self.dir / "prog", env={})

    def subproject(self):
        """a parent's default_library=static and b_lto reach a subproject"""
        parent = self.dir / "parent"
        (parent / "subprojects").mkdir(parents=True)
        (parent / "subprojects/nxlock").symlink_to(self.root)
        (parent / "meson.build").write_text(PARENT)
        (parent / "prog.c").write_text(PROGRAM)
        build = parent / "build"
        run("meson", "setup", build, parent, *OPTIONS[1:], "-Db_lto=true",
            "-Ddefault_library=static", "--force-fallback-for=nxlock")
        run("nice", "ninja", "-C", build)
        run(build / "prog", env={})
        expect(not any("nxlock" in name
                       for name in dynamic(build / "prog", "NEEDED")),
               "the program needs the shared library")
        (archive,) = build.rglob("libnxlock.a")
        self.only_nxl(archive)


def main(build, root):
    bad = 0
    with tempfile.TemporaryDirectory(prefix="nxlock-install-") as directory:
        test = Install(pathlib.Path(directory), pathlib.Path(build),
                       pathlib.Path(root))
        cases = (test.default, test.pages, test.page, test.usr, test.static,
                 test.subproject)
        for number, case in enumerate(cases, 1):
            try:
                case()
                print(f"ok {number} - {case.__doc__}", flush=True)
            except Exception as why:  # what breaks a case fails it
                bad = 1
                print(f"not ok {number} - {case.__doc__}")
                for line in str(why if isinstance(why, Wrong)
                                else repr(why)).splitlines():
                    print(f"# {line}", flush=True)
        print(f"1..{len(cases)}")
    return bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
