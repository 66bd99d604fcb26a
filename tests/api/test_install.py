#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_install.py BUILD ROOT [usr]: what is installed works where it is
installed.

Installs BUILD into a DESTDIR and builds with the lines of nxlock(3) and the
projects of docs/examples/consumers; then makes a build as a subproject, which
is configured, and built with NXLOCK_FULL=1. The command runs with an empty
environment, so without LD_LIBRARY_PATH. TAP.

With "usr", BUILD is one for /usr with shared libraries alone. What that
installs is tested instead, and then the same with other values of
default_library and prefix, which BUILD has from then on. With NXLOCK_FULL=1
such a build is made and tested with the rest.
"""

import json
import os
import pathlib
import re
import shutil
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
# Behind docs/examples/consumers/meson.
MORE = """
add_languages('c', native: false)
executable('prog', 'prog.c', dependencies: nxlock)
"""
OPTIONS = ["-Dtests=disabled", "-Doptimization=0", "-Ddebug=false",
           "-Dwerror=true", "--wrap-mode=nodownload"]


class Wrong(Exception):
    """Why a case failed."""


class Skip(Exception):
    """Why a case cannot be run."""


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


def quick_runs(program, linked):
    """The C++ example, which finds no server, says so by an exception."""
    needs = any("nxlock" in name for name in dynamic(program, "NEEDED"))
    expect(needs == (linked == "shared"), program, "is not linked", linked)
    done = subprocess.run(
        [program], env={"NXLOCK_URL": "unix:///nonexistent/socket"},
        capture_output=True, text=True, timeout=60, check=False)
    expect(done.returncode == 1 and "/nonexistent/socket" in done.stderr,
           program, done.returncode, done.stderr)


class Install:
    def __init__(self, directory, build, root):
        self.dir, self.build, self.root = directory, build, root
        self.exports = root / "tests/api/exports.py"
        (directory / "prog.c").write_text(PROGRAM)
        for name in ("consumers", "cpp"):
            shutil.copytree(root / "docs/examples" / name, directory / name)
        self.usr_build = None
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "CXXFLAGS": "-Wall -Wextra -Wpedantic -Werror"}

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
        self.command_alone(program)
        found = files(tree)
        expect({"libnxlock.a", "libnxlock.so", "libnxlock.so.0"} <= set(found),
               "installed:", sorted(found))
        self.only_nxl(found["libnxlock.a"])
        headers = {path.name for path in tree.rglob("include/*")}
        expect(headers == {"nxlock.h", "nxlock.hpp"}, headers)
        self.environment |= {
            "PKG_CONFIG_PATH": str(found["libnxlock.so"].parent / "pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(tree),
            "LD_LIBRARY_PATH": str(found["libnxlock.so"].parent)}

    def command_alone(self, program):
        """It needs no library of nxlock, and looks nowhere for one."""
        needs = dynamic(program, "NEEDED")
        expect(needs and not any("nxlock" in name for name in needs), needs)
        for tag in ("RUNPATH", "RPATH"):
            expect(not dynamic(program, tag), tag, dynamic(program, tag))

    def other_library(self):
        """a library of another version does not change the command"""
        (program,) = (self.dir / "default").rglob("bin/nxlock")
        source = self.dir / "other.c"
        source.write_text('const char *nxl_version(void);\n'
                          'const char *nxl_version(void) '
                          '{ return "9.9.9"; }\n')
        other = self.dir / "other.so"
        run("cc", "-shared", "-fPIC", source, "-o", other)
        own = run(program, "--version", env={})
        expect(own.startswith("nxlock ") and own.count("\n") == 1, own)
        said = run(program, "--version", env={"LD_PRELOAD": str(other)})
        expect(said == own, said)

    def pkg_config(self):
        """the Makefile of docs/examples/consumers, by pkg-config"""
        folder = self.dir / "consumers/pkg-config"
        run("make", "-C", folder, env=self.environment)
        expect("libnxlock.so.0" in dynamic(folder / "quick", "NEEDED"),
               "not linked")

    def cmake_builds(self, linked, *options):
        """The example of docs/examples/consumers, linked that way."""
        folder = self.dir / "consumers/cmake"
        run("cmake", "-S", folder, "-B", folder / "build", *options,
            env=self.environment)
        run("cmake", "--build", folder / "build", env=self.environment)
        quick_runs(folder / "build/quick", linked)

    def cmake(self):
        """find_package(nxlock), shared and static, in a tree that was moved"""
        if shutil.which("cmake") is None:
            raise Skip("cmake is not installed")
        moved = self.dir / "moved here"
        moved.symlink_to(self.dir / "default")
        (config,) = moved.resolve().rglob("nxlockConfig.cmake")
        expect("/usr/local" not in config.read_text(), "an absolute path")
        prefix = moved / "usr/local"
        self.cmake_builds("shared", f"-DCMAKE_PREFIX_PATH={prefix}")
        self.cmake_builds("static", "-Dnxlock_USE_STATIC_LIBS=ON")
        project = self.dir / "consumers/cmake/CMakeLists.txt"
        text = project.read_text()
        project.write_text(text.replace("nxlock 0.1 ", "nxlock 1 "))
        try:
            self.cmake_builds("not at all")
        except Wrong as why:
            expect('requested version "1"' in str(why), why)
        else:
            raise Wrong("version 1 was found")
        finally:
            project.write_text(text)

    def meson(self):
        """the project of docs/examples/consumers, by the installed library"""
        folder = self.dir / "consumers/meson"
        run("meson", "setup", folder / "build", folder,
            "--wrap-mode=nofallback", env=self.environment)
        run("nice", "ninja", "-C", folder / "build", env=self.environment)
        expect("libnxlock.so.0" in dynamic(folder / "build/quick", "NEEDED"),
               "not linked")

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
                 (self.root / "docs/man/nxlock.3.in").read_text().splitlines()
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

    def make_installed(self):
        """Makes what a build for /usr installs, and so none of its tests."""
        # After "meson configure" the lists of targets are made anew first.
        run("ninja", "-C", self.usr_build, "build.ninja")
        plan = json.loads(
            run("meson", "introspect", self.usr_build, "--install-plan"))
        made = {line.split(":")[0] for line in run(
            "ninja", "-C", self.usr_build, "-t", "targets", "all").splitlines()}
        installed = {os.path.relpath(path, self.usr_build)
                     for kind in plan.values() for path in kind}
        run("nice", "ninja", "-C", self.usr_build, *sorted(made & installed))

    def usr(self):
        """prefix=/usr, default_library=shared: no archive"""
        if self.usr_build is None:
            self.usr_build = self.dir / "for usr"
            run("meson", "setup", self.usr_build, self.root, *OPTIONS,
                "--prefix=/usr", "-Ddefault_library=shared")
        self.make_installed()
        tree = self.install(self.usr_build, self.dir / "usr", "--no-rebuild")
        found = files(tree)
        expect("libnxlock.so" in found and "libnxlock.a" not in found, found)
        (program,) = tree.rglob("bin/nxlock")
        self.command_alone(program)
        text = program.read_bytes()
        expect(b" /usr/bin/nxlock run " in text and
               b"/usr/local/bin/nxlock" not in text, "another path in --help")

    def no_command(self):
        """the tests can be configured without the command"""
        run("meson", "setup", self.dir / "no command", self.root,
            "-Dcli=false", "-Dtests=enabled")

    def static(self):
        """default_library=static: no shared library; all is linked with it"""
        prefix = self.dir / "prefix"
        run("meson", "configure", self.usr_build, f"-Dprefix={prefix}",
            "-Ddefault_library=static")
        self.make_installed()
        run("meson", "install", "-C", self.usr_build, "--quiet",
            "--no-rebuild")
        found = files(prefix)
        expect(set(found) == {"libnxlock.a"}, found)
        self.only_nxl(found["libnxlock.a"])
        program = command_runs(prefix)
        self.command_alone(program)
        text = program.read_bytes()
        own = f"{prefix}/etc/nxlock.conf".encode()
        expect(text.count(own) >= 3 and
               text.count(b"/etc/nxlock.conf") == text.count(own),
               "the configuration file of another prefix")
        (pc,) = prefix.rglob("nxlock.pc")
        run("sh", "-ec", "cc prog.c -o prog $(pkg-config --cflags --libs "
            "nxlock)", cwd=self.dir, env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "PKG_CONFIG_PATH": str(pc.parent)})
        run(self.dir / "prog", env={})
        if shutil.which("cmake"):
            self.cmake_builds("static", "-Dnxlock_USE_STATIC_LIBS=OFF",
                              f"-Dnxlock_DIR={pc.parent.parent}/cmake/nxlock")

    def plan(self, build):
        """What would be linked, and how the library would be compiled."""
        lines = run("ninja", "-C", build, "-t", "commands", "prog",
                    "quick").splitlines()
        for name in ("prog", "quick"):
            (link,) = (line for line in lines if f" -o {name} " in line)
            expect("libnxlock.a" in link and "libnxlock.so" not in link, link)
        inner = [line for line in lines
                 if "libnxlock-inner.a.p" in line and " -c " in line]
        expect(len(inner) > 100, "compiles", len(inner), "files")
        for line in inner:
            at = [line.rfind(flag) for flag in ("-flto", "-fno-lto")]
            expect(at[0] < at[1], "intermediate code:", line)

    def subproject(self):
        """a parent's default_library=static and b_lto reach a subproject"""
        parent = self.dir / "consumers/meson"
        (parent / "subprojects").mkdir()
        (parent / "subprojects/nxlock").symlink_to(self.root)
        with open(parent / "meson.build", "a", encoding="utf-8") as file:
            file.write(MORE)
        (parent / "prog.c").write_text(PROGRAM)
        build = parent / "static"
        run("meson", "setup", build, parent, *OPTIONS[1:], "-Db_lto=true",
            "-Ddefault_library=static", "--force-fallback-for=nxlock")
        if os.environ.get("NXLOCK_FULL") != "1":
            self.plan(build)
            return
        run("nice", "ninja", "-C", build)
        run(build / "prog", env={})
        expect(not any("nxlock" in name
                       for name in dynamic(build / "prog", "NEEDED")),
               "the program needs the shared library")
        quick_runs(build / "quick", "static")
        (archive,) = build.rglob("libnxlock.a")
        self.only_nxl(archive)


def main(build, root, usr=None):
    bad = 0
    with tempfile.TemporaryDirectory(prefix="nxlock-install-") as directory:
        test = Install(pathlib.Path(directory), pathlib.Path(build),
                       pathlib.Path(root))
        elsewhere = (test.usr, test.static, test.no_command)
        cases = (test.default, test.other_library, test.pages, test.page,
                 test.pkg_config, test.cmake, test.meson, test.subproject)
        if usr:
            test.usr_build = test.build
            cases = elsewhere
        elif os.environ.get("NXLOCK_FULL") == "1":
            cases += elsewhere
        for number, case in enumerate(cases, 1):
            try:
                case()
                print(f"ok {number} - {case.__doc__}", flush=True)
            except Skip as why:
                print(f"ok {number} - {case.__doc__} # SKIP {why}", flush=True)
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
