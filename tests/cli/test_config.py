#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_config.py NXLOCK: the configuration files, and 'nxlock config'.

Which source decides is tried for every combination of sources. /etc is a copy
of this machine's in a mount namespace of this test; without one the cases with
/etc/nxlock.conf are skipped.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree stays as it is

from rig import Server, Tap, clean_environment, nx

SYSTEM = "/etc/nxlock.conf"
SECRET = "Zqx7Wk9"
OTHER = 65534  # another user


def own_etc(folder):
    """This test again, in a namespace where /etc is folder; or a folder that
    is no /etc, where there can be no namespace."""
    os.chmod(folder, 0o755)
    for name in ("passwd", "group", "nsswitch.conf", "ld.so.cache", "hosts"):
        if os.path.exists("/etc/" + name):
            shutil.copy("/etc/" + name, folder)
    root = [] if os.geteuid() == 0 else ["-r"]
    probe = subprocess.run(
        ["unshare", *root, "-m", "mount", "--bind", folder, "/etc"],
        capture_output=True, check=False)
    env = {**os.environ, "NXLOCK_TEST_ETC": folder}
    if probe.returncode != 0:
        print("# no mount namespace: " + probe.stderr.decode().strip())
        return subprocess.call([sys.executable, *sys.argv], env={
            **env, "NXLOCK_TEST_ETC": "none"})
    return subprocess.call(
        ["unshare", *root, "-m", "sh", "-c",
         'mount --bind "$NXLOCK_TEST_ETC" /etc && exec "$@"', "sh",
         sys.executable, *sys.argv], env=env)


class Room:
    def __init__(self, nxlock, server, folder):
        self.nxlock, self.server, self.folder = nxlock, server, folder
        self.tap = Tap()
        self.home = os.path.join(folder, "home")
        self.user = os.path.join(self.home, ".config/nxlock/config")
        os.makedirs(os.path.dirname(self.user))
        self.has_system = False
        self.env = {name: value for name, value in os.environ.items()
                    if name not in ("NXLOCK_CONFIG", "NXLOCK_URL",
                                    "XDG_CONFIG_HOME")}
        self.env["HOME"] = self.home
        if os.environ["NXLOCK_TEST_ETC"] != "none":
            self.has_system = any(one.get("file") == SYSTEM
                                  for one in self.config()[1])

    def write(self, path, text, mode=0o644):
        if os.path.lexists(path):
            os.remove(path)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, mode)
        return path

    def files(self, user=None, system=None, mode=0o644):
        self.write(self.user, user, mode)
        if self.has_system:
            self.write(SYSTEM, system, mode)

    def nx(self, *words, as_other=False, **environ):
        env = {name: value for name, value in
               {**self.env, **environ}.items() if value is not None}
        if as_other:
            return nx("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}",
                      "--clear-groups", self.nxlock, *words, env=env, cwd="/")
        return nx(self.nxlock, *words, env=env)

    def config(self, *words, **environ):
        got = self.nx("config", "--json", *words, **environ)
        return got, [json.loads(line) for line in got.stdout.splitlines()]

    def setting(self, name, *words, **environ):
        """(value, from) of each line in force; or the exit code."""
        got, lines = self.config(*words, **environ)
        if got.returncode != 0:
            return got.returncode
        return [(one["value"], one["from"]) for one in lines
                if one.get("setting") == name and "not_in_force" not in one]

    # ------------------------------------------------------- which one counts

    def subsets(self, sources):
        usable = [s for s in sources if s != "system" or self.has_system]
        for count in range(len(usable) + 1):
            yield from itertools.combinations(usable, count)

    def url_matrix(self):
        values = {name: f"redis://{name}" for name in
                  ("option", "env", "user", "system", "redis")}
        origin = {"option": "-u", "env": "NXLOCK_URL",
                  "user": self.user + ":2", "system": SYSTEM + ":2",
                  "redis": "REDIS_URL"}
        wrong = []
        for sources in self.subsets(origin):
            self.files(*(f"# it\nurl = {values[s]}\n" if s in sources else None
                         for s in ("user", "system")))
            got = self.setting(
                "url", *(("-u", values["option"]) if "option" in sources
                         else ()),
                NXLOCK_URL=values["env"] if "env" in sources else None,
                REDIS_URL=values["redis"] if "redis" in sources else "")
            wanted = [(values[sources[0]], origin[sources[0]])] if sources \
                else [("redis://127.0.0.1:6379", "built in")]
            if got != wanted:
                wrong.append(f"{sources}: {got}, not {wanted}")
        self.tap.check(not wrong, "url: the first source decides, alone",
                       "\n".join(wrong))

    def prefix_matrix(self):
        origin = {"option": "--prefix", "env": "NXLOCK_URL",
                  "user": self.user + ":1", "system": SYSTEM + ":1"}
        wrong = []
        for sources in self.subsets(origin):
            self.files(*(f"prefix={s}:\n" if s in sources else None
                         for s in ("user", "system")))
            got = self.setting(
                "prefix", *(("--prefix", "option:") if "option" in sources
                            else ()),
                NXLOCK_URL="redis://h" + ("?prefix=env:" if "env" in sources
                                          else ""))
            wanted = [(sources[0] + ":", origin[sources[0]])] if sources \
                else [(None, "built in")]
            if sources[:2] == ("option", "env"):
                wanted = 64  # in both, as always
            if got != wanted:
                wrong.append(f"{sources}: {got}, not {wanted}")
        self.tap.check(not wrong, "prefix: the first source decides",
                       "\n".join(wrong))

    def defaults_matrix(self):
        built_in = {"ttl": "30s", "wait": "no limit", "keep-trying": "60s",
                    "grace": "a sixth of --ttl, at most 5s", "log": "none"}
        wrong = []
        for name, default in built_in.items():
            values = {"option": "json", "user": "syslog", "system": "none"} \
                if name == "log" else \
                {"option": "11s", "user": "12s", "system": "13s"}
            origin = {"option": "--" + name, "user": self.user + ":1",
                      "system": SYSTEM + ":1"}
            for sources in self.subsets(origin):
                self.files(*(f"{name} = {values[s]}" if s in sources else None
                             for s in ("user", "system")))
                got = self.setting(name, *(("--" + name, values["option"])
                                           if "option" in sources else ()))
                wanted = [(values[sources[0]], origin[sources[0]])] \
                    if sources else [(default, "built in")]
                if got != wanted:
                    wrong.append(f"{name} {sources}: {got}, not {wanted}")
        self.tap.check(not wrong, "options: the first source decides",
                       "\n".join(wrong))

    def which_file(self):
        tap = self.tap
        xdg = os.path.join(self.folder, "xdg")
        os.makedirs(os.path.join(xdg, "nxlock"))
        other = self.write(os.path.join(xdg, "nxlock/config"),
                           "url = redis://xdg\n")
        self.files(user="url = redis://user\n")
        for what, environ, wanted in (
                ("HOME", {}, ("redis://user", self.user + ":1")),
                ("XDG_CONFIG_HOME", {"XDG_CONFIG_HOME": xdg},
                 ("redis://xdg", other + ":1")),
                ("a relative XDG_CONFIG_HOME", {"XDG_CONFIG_HOME": "xdg"},
                 ("redis://user", self.user + ":1")),
                ("NXLOCK_CONFIG", {"NXLOCK_CONFIG": other},
                 ("redis://xdg", other + ":1")),
                ("an empty one", {"NXLOCK_CONFIG": ""},
                 ("redis://user", self.user + ":1")),
                ("none", {"NXLOCK_CONFIG": "none"},
                 ("redis://127.0.0.1:6379", "built in"))):
            tap.equal(self.setting("url", **environ), [wanted], what)
        got = self.nx("config", NXLOCK_CONFIG=other + "x")
        tap.check(got.returncode == 78 and b"NXLOCK_CONFIG names it" in
                  got.stderr, "NXLOCK_CONFIG must exist", got.stderr)
        if self.has_system:
            self.files(user="ttl = 9s\n", system="url = redis://system\n")
            tap.equal(self.setting("url", NXLOCK_CONFIG=self.user),
                      [("redis://127.0.0.1:6379", "built in")],
                      "NXLOCK_CONFIG replaces the system's file too")
        os.remove(other)

    def without_home(self):
        """As in a service of systemd: the same user, the same file."""
        tap = self.tap
        if not self.has_system:
            print("# SKIP without HOME: /etc/passwd is this machine's")
            return
        for uid in (os.geteuid(), OTHER):
            self.write("/etc/passwd", f"me:x:{uid}:{uid}::{self.home}:/bin/sh")
            self.files(user="url = redis://user\n")
            if uid == os.geteuid():
                tap.equal(self.setting("url", HOME=None),
                          [("redis://user", self.user + ":1")],
                          "HOME unset: the home directory of this user")
            elif self.can_change():
                closed = os.path.join(self.folder, "closed")
                os.makedirs(os.path.join(closed, ".config/nxlock"))
                self.write(os.path.join(closed, ".config/nxlock/config"),
                           "url = redis://closed\n")
                os.chmod(closed, 0o700)
                got = self.nx("config", as_other=True, HOME=closed)
                tap.check(got.returncode == 0 and b"redis://user " in
                          got.stdout, "HOME of another user, who lets nobody "
                          "in: this user's own", got.stdout + got.stderr)
        self.write("/etc/passwd", "root:x:0:0::/nonexistent:/bin/sh")
        tap.equal(self.setting("url", HOME=None),
                  [("redis://127.0.0.1:6379", "built in")],
                  "no home directory: no file")

    def can_change(self):
        """Can this test act as another user?"""
        return os.geteuid() == 0 and \
            self.nx("--version", as_other=True).returncode == 0

    # ---------------------------------------------------------- what is refused

    def refused(self, what, *words, path=None, as_other=False, code=78,
                **environ):
        """No command runs."""
        marker = os.path.join(self.folder, "started")
        got = self.nx("run", "x", "-n", "-u", self.server.url, "--", "touch",
                      marker, as_other=as_other, **environ)
        text = got.stderr.decode()
        self.tap.check(
            got.returncode == code and not os.path.exists(marker) and
            (path or self.user) in text and SECRET not in text and
            all(word in text for word in words),
            f"{what}: nothing runs", f"{got.returncode}: {text}")

    def bad_lines(self):
        rows = (
            ("tll = 3", "there is no key 'tll'", "did you mean 'ttl'?"),
            ("frobnicate = 3", "there is no key 'frobnicate'",
             "nxlock help config"),
            ("--ttl = 3s", "there is no key '--ttl'", "did you mean 'ttl'?"),
            ("ttl 3", "there is no '='", "KEY = VALUE"),
            ("[nxlock]", "there is no '='"),
            ("ttl =", "'ttl' has no value", "'ttl = DUR'"),
            ("ttl = soon", "ttl 'soon' is not a duration", "30s"),
            ("ttl = 25d", "ttl 25d is too long", "at most 24d"),
            ("ttl = 0", "ttl 0 is too short"),
            ("log = sislog", "log 'sislog' is not valid", "file:PATH or none"),
            ("ttl = 3s # short", "comment", "line of its own"),
            ("ttl = 3s\nttl = 4s", ":4: 'ttl' is in line 3 already"),
            ('url = "redis://h"', "without quotes"),
            ("url = redis://h\nurl-file = /x", "'url-file' excludes the 'url'"),
            ("url-file = /x\nurl = redis://h", "'url' excludes the 'url-file'"),
            ("url-file = x", "must begin with '/'"),
            ("cacert = ca.pem", "'cacert' must begin with '/'"),
            ("timeout-ms = 5s", "timeout-ms 5s must be a number",
             "in milliseconds"),
            ("verify = maybe", "verify 'maybe' must be"),
            ("verify = full\nverify = ca", "'verify' is in line 3 already"),
            ("password = " + SECRET, "password-file = FILE"),
            ("url: redis://a:" + SECRET + "@h?db=3", "there is no key 'url: "),
            ("\n".join(["url = redis://h"] * 16), ":18: url is given more than "
             "15 times"),
            *((f"{key} = 1", f"'{key}' cannot be set in a file",
               f"write --{key} where")
              for key in ("force", "yes", "no-wait", "busy-code", "on-down",
                          "on-lost", "insecure", "every", "token", "name",
                          "pass-url", "metrics", "on-doubt", "done-on",
                          "help")),
        )
        for text, *words in rows:
            self.files(user=f"# mine\n\n{text}\n", mode=0o600)
            self.refused(repr(text[:30]), *words)
        self.files(user="ttl = 3s\0\n")
        self.refused("a zero byte", "not a text")
        self.files(user="#" * 70000)
        self.refused("a long one", "too long")
        self.files(user="#" * 65536)
        self.tap.equal(self.nx("config").returncode, 0, "64 KiB are fine")
        self.url_file_cut()
        self.files(user=" \t# c\r\n\r\n ttl\t=\t3s \r\nmax_ttl_ms=40000\r\n\n")
        self.tap.equal((self.setting("ttl"), self.setting("max-ttl-ms")),
                       ([("3s", self.user + ":3")],
                        [("40000", self.user + ":4")]),
                       "blanks, CR, empty lines, comments and '_' are fine")
        if self.has_system:
            self.files(user="ttl = 3s\n", system="ttl = soon\n")
            self.refused("a bad line in the system's file, which would not "
                         "count", "ttl 'soon'", path=SYSTEM + ":1: ")
        self.files(user="ttl = soon\n")
        got = self.nx("status", "--help")
        self.tap.equal(got.returncode, 0, "--help is shown all the same")

    def url_file_cut(self):
        """Two of three servers would be another lock."""
        self.files()
        path = self.write(os.path.join(self.folder, "cut"),
                          "redis://a\nredis://b\n\0\nredis://c\n", 0o600)
        got = self.nx("config", "--url-file", path)
        self.tap.check(
            got.returncode == 78 and b"zero byte" in got.stderr and
            not got.stdout, "a URL file with a zero byte is not used", got)

    def permissions(self):
        secret = f"url = redis://app:{SECRET}@h\n"
        parameter = f"url = redis://h?user=app&password={SECRET}\n"
        several = f"url = redis://h,redis://app:{SECRET}@i\n"
        for text, mode, words in (
                ("ttl = 3s\n", 0o644, None), ("ttl = 3s\n", 0o600, None),
                ("ttl = 3s\n", 0o664, "chmod go-w"),
                ("ttl = 3s\n", 0o646, "chmod go-w"),
                ("url = redis://app@h?password_file=/x\n", 0o664, "go-w"),
                (secret, 0o600, None), (secret, 0o644, "chmod 600"),
                (f"url = redis://app:a/{SECRET}@h\n", 0o644, "chmod 600"),
                (secret, 0o640, "chmod 600"), (parameter, 0o604, "chmod 600"),
                (several, 0o644, "chmod 600")):
            self.files(user=text, mode=mode)
            if words:
                self.refused(f"mode {mode:o}", words, "other users")
            else:
                got = self.nx("config")
                self.tap.check(
                    got.returncode == 0 and SECRET.encode() not in
                    got.stdout + got.stderr, f"mode {mode:o} is fine",
                    got.stderr)
        os.remove(self.user)
        os.mkdir(self.user)
        self.refused("a folder", "regular file")
        os.rmdir(self.user)
        os.mkfifo(self.user)
        self.refused("a pipe", "regular file")
        self.other_users()

    def other_users(self):
        if not self.can_change():
            print("# SKIP other users: not root, or they may not run nxlock")
            return
        self.files(user="url = redis://theirs\n")
        os.chown(self.user, OTHER, -1)
        self.refused("root with HOME of another user", "belongs to another "
                     "user, who could replace the URL",
                     "set HOME to your own home directory")
        self.files(user="url = redis://mine\n")
        got = self.nx("config", as_other=True)
        self.tap.check(got.returncode == 0 and b"redis://mine" in got.stdout,
                       "a file of root is used", got.stderr)
        self.files(user="url = redis://mine\n", mode=0o600)
        self.refused("one that this user may not read", "Permission denied",
                     "let this user read it", as_other=True)
        if self.has_system:
            self.files(system=f"url = redis://app:{SECRET}@h\n")
            self.refused("the system's with a password", "for root only",
                         "password-file", path=SYSTEM)
            self.files(system="url = redis://system\n", mode=0o600)
            self.refused("the system's that this user may not read",
                         "Permission denied", "NXLOCK_CONFIG=none",
                         path=SYSTEM, as_other=True)
            self.files(system="url = redis://system\n")
            os.chown(SYSTEM, OTHER, -1)
            self.refused("the system's of another user",
                         "belongs to another user", path=SYSTEM)

    # ------------------------------------------------------------ what is safe

    def apart(self):
        """No source adds to the servers of another one, and nothing by which
        one logs in to a server goes to another server."""
        tap = self.tap
        password = self.write(os.path.join(self.folder, "pw"), SECRET, 0o600)
        login = f"user = app\npassword-file = {password}\ndb = 3\n"
        two = "url = redis://a\nurl = redis://b\n"

        def values(name, **more):
            got = self.setting(name, **more)
            return got if isinstance(got, int) else [one[0] for one in got]
        self.files(user=two + login)
        tap.equal(values("url"), ["redis://a", "redis://b"],
                  "several url lines")
        tap.equal([values(n) for n in ("user", "password-file", "db")],
                  [["app"] * 2, [password] * 2, ["3"] * 2],
                  "each of these servers gets what the file says")
        tap.equal([values(n, NXLOCK_URL="redis://c") for n in
                   ("url", "user", "password-file", "db")],
                  [["redis://c"], [], [], []], "the one of NXLOCK_URL does not")
        tap.equal([values(n, NXLOCK_URL="", REDIS_URL="redis://c") for n in
                   ("url", "user")], [["redis://a", "redis://b"], ["app"] * 2],
                  "REDIS_URL comes after the file")
        self.files(user=f"url = redis://bob@h\n{login}")
        tap.equal(values("password-file"), 78,
                  "a password of the file is for its user")
        self.files(user=f"url = rediss://h?verify=none\ncacert = {password}\n")
        tap.equal(values("cacert"), [], "verify=none in the URL needs no CA")
        self.files(user="url = redis://h\ntls-min = 1.3\n")
        got = self.nx("config")
        tap.check(got.returncode == 78 and b"rediss://" in got.stderr and
                  f"{self.user}:2".encode() in got.stderr,
                  "TLS for a URL of the same file without it is an error, with "
                  "its line", got.stderr)
        self.files(user="tls-min = 1.3\n")
        tap.equal(values("tls-min", REDIS_URL="rediss://h"), ["1.3"],
                  "a file without url: for the sources after it")
        tap.equal(values("tls-min", REDIS_URL="redis://h"), [],
                  "if they use TLS")
        if self.has_system:
            self.files(user=login, system=two)
            tap.equal(values("user"), ["app"] * 2,
                      "the user's own login, on the servers of the system")
            self.files(user=two, system="url = redis://c\n" + login)
            tap.equal([values("url"), values("user")],
                      [["redis://a", "redis://b"], []],
                      "but not the system's on the user's servers")
            self.files(user="url-file = " + self.write(
                os.path.join(self.folder, "urls"), "redis://f\n", 0o600),
                system=two)
            tap.equal(values("url"), ["redis://f"], "url-file counts as url")
        self.files(user="prefix = app:\n")
        tap.equal(values("prefix", NXLOCK_URL="redis://a?prefix=x:,redis://b"),
                  ["x:"], "one URL sets the prefix of all")

    def variables(self):
        """The other variables go before the files."""
        login = "url = rediss://h\nuser = app\npassword-file = /nowhere\n"
        self.files(user=login + "cacert = /file/ca\ncert = /c\nkey = /k\n")
        for environ, wanted in (
                ({}, {"cacert": 4, "cert": 5, "key": 6, "password-file": 3}),
                ({"NXLOCK_CACERT": "/a"}, {"cacert": "NXLOCK_CACERT"}),
                ({"NXLOCK_CACERTDIR": "/a"},
                 {"cacertdir": "NXLOCK_CACERTDIR", "cacert": None}),
                ({"NXLOCK_CERT": "/a"}, {"cert": "NXLOCK_CERT", "key": None}),
                ({"NXLOCK_CERT_KEY": "/a"},
                 {"cert": None, "key": "NXLOCK_CERT_KEY"}),
                ({"NXLOCK_PASSWORD": "x"},
                 {"password": "NXLOCK_PASSWORD", "password-file": None,
                  "user": 2}),
                ({"NXLOCK_PASSWORD_FILE": "/a"},
                 {"password-file": "NXLOCK_PASSWORD_FILE", "user": 2})):
            _, lines = self.config(**environ)  # the files do not exist
            found = {one["setting"]: one["from"] for one in lines
                     if "setting" in one and "not_in_force" not in one}
            for name, origin in wanted.items():
                if isinstance(origin, int):
                    origin = f"{self.user}:{origin}"
                self.tap.equal(found.get(name), origin,
                               f"{list(environ)}: {name}")

        self.files(user="url = rediss://127.0.0.1:1\ncacert = /nowhere\n")
        got = self.nx("run", "job", "-n", "--on-down", "run", "-c",
                      "echo $NXLOCK_URL", NXLOCK_CACERTDIR=self.folder)
        self.tap.equal(got.stdout, b"rediss://127.0.0.1:1\n",
                       "in CMD's NXLOCK_URL, too")
        self.files(user="url=redis://a@127.0.0.1:1\npassword-file = /nowhere\n")
        got = self.nx("run", "job", "-n", "--on-down", "run", "-c",
                      "echo $NXLOCK_URL", NXLOCK_PASSWORD="x")
        self.tap.equal(got.stdout, b"redis://a@127.0.0.1:1\n",
                       "with NXLOCK_PASSWORD no password-file")

    def output(self):
        tap = self.tap
        text = (f"url = redis://app:{SECRET}@h\n"
                f"url = redis://i?password={SECRET}\nttl = 20s\n")
        self.files(user=text, mode=0o600)
        for words, environ in (((), {}), (("--json",), {}),
                               ((), {"NXLOCK_URL": f"redis://a:{SECRET}@j"}),
                               ((), {"NXLOCK_URL": f"redis:/a:{SECRET}@j"}),
                               ((), {"NXLOCK_URL": f"redis://a:{SECRET}/x@j"}),
                               ((), {"NXLOCK_URL": f"redis://a:{SECRET}?x@j"}),
                               ((), {"NXLOCK_URL": f"redis://:{SECRET}"}),
                               ((), {"NXLOCK_URL": f"redis://a:x/{SECRET}@j"}),
                               ((), {"NXLOCK_URL": f"redis://h,a:{SECRET}@j"}),
                               ((), {"NXLOCK_URL": "redis://a@j",
                                     "NXLOCK_PASSWORD": SECRET}),
                               (("-u", f"redis://:{SECRET}@k"), {}),
                               ((), {"REDIS_URL": f"redis://a:{SECRET}@j"})):
            got = self.nx("config", *words, **environ)
            tap.check(SECRET.encode() not in got.stdout + got.stderr and
                      (b"password" in got.stdout or got.returncode == 78),
                      f"no secret: {words} {list(environ)}",
                      got.stdout + got.stderr)
        got = self.nx("config", "NAME")
        tap.check(got.returncode == 64 and b"takes options only" in got.stderr,
                  "config takes no NAME", got.stderr)
        got = self.nx("config", NXLOCK_URL="redis://a")
        tap.check(b"not in force" in got.stdout, "what is not in force",
                  got.stdout)
        self.files(user="grace = 15s\n")
        got = self.nx("config", "--ttl", "20s")
        tap.check(got.returncode == 64 and f"--grace 15s is from {self.user}:1"
                  .encode() in got.stderr, "times that run would refuse",
                  got.stderr)
        self.files(user="ttl = 20s\n")
        tap.equal(self.setting("ttl", "--max-ttl-ms", "9000"), 64,
                  "times that do not fit are found")
        got = self.nx("config", "--max-ttl-ms", "9000")
        tap.check(f"--ttl 20s is from {self.user}:1".encode() in got.stderr,
                  "with the line", got.stderr)
        self.files(user="url = unix:///nowhere/at-all\n")
        got = self.nx("status", "x")
        tap.check(got.returncode == 69 and f"the URL is from {self.user}:1"
                  .encode() in got.stderr, "an error names the line of the URL",
                  got.stderr)
        got = self.nx("doctor")
        tap.check(f"url: it is from {self.user}:1".encode() in got.stdout,
                  "doctor too", got.stdout)

    # ----------------------------------------------------------- with a server

    def log(self):
        """log = WHAT is --log WHAT for the commands that have it, and --log
        goes before it."""
        def events(*words, **environ):
            got = self.nx(*words, **environ)
            return got.returncode, [json.loads(line)["event"] for line in
                                    got.stderr.splitlines() if line[:1] == b"{"]
        tap, url = self.tap, self.server.url
        self.files(user=f"log = json\nurl = {url}\n")
        for words, wanted in (
                (("run", "logged", "--", "true"), "ended"),
                (("once", "logged", "-q", "--", "true"), "ended"),
                (("acquire", "logged", "--ttl", "9s"), "ended"),
                (("unlock", "logged", "--force", "--yes"), "ended"),
                (("wait", "logged"), "ended"),
                (("run", "logged", "--log", "none", "--", "true"), None),
                (("status", "logged"), None),
                (("list",), None), (("config",), None),
                (("config", "--log", "json"), None)):
            code, found = events(*words)
            tap.check(code == (words[0] == "status") and
                      (found[-1:] == [wanted] if wanted else not found),
                      f"log in a file: {' '.join(words)}", (code, found))
        self.files(user=f"# it\nlog = syslog\nurl = {url}\n")
        got = self.nx("run", "logged", "--", "true",
                      NXLOCK_LOG_SOCKET="/nowhere/log")
        tap.check(got.returncode == 0 and b"to syslog at /nowhere/log"
                  in got.stderr and f"--log syslog is from {self.user}:2"
                  .encode() in got.stderr, "a log that is not there is named "
                  "with its line", got.stderr)

    def at_work(self):
        """What the files say happens, and inside CMD too."""
        tap, url = self.tap, self.server.url
        inner = f"'{self.nxlock}' status job"
        secret = f"unix://app:{SECRET}@{self.server.socket}"
        self.server.cli("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*",
                        "&*", "+@all")
        urls = self.write(os.path.join(self.folder, "urls"), secret, 0o600)
        for what, text, environ in (
                ("url", f"url = {url}\n", {}),
                ("url and db", f"url = {url}\ndb = 3\n", {}),
                ("prefix", f"url = {url}\nprefix = app:\n", {}),
                ("a password", f"url = {secret}\n", {}),
                ("a password and db", f"url = {secret}\ndb = 2\n", {}),
                ("url-file", f"url-file = {urls}\ndb = 2\nprefix=p:\n", {}),
                ("NXLOCK_URL", "url = unix:///nowhere\ndb = 3\n",
                 {"NXLOCK_URL": url}),
                ("REDIS_URL outside", f"url = {url}\n",
                 {"REDIS_URL": "unix:///nowhere"})):
            self.files(user=text, mode=0o600)
            got = self.nx("run", "job", "-c", f"cd / && {inner}", **environ)
            tap.check(got.returncode == 0 and b"job held by" in got.stdout,
                      f"{what}: an nxlock inside sees the same lock",
                      got.stdout + got.stderr)
            tap.check(SECRET.encode() not in self.nx(
                "run", "job", "-c", "env", **environ).stdout,
                "and CMD sees no password")
        self.files(user=f"url = {url}\n")
        got = self.nx("run", "job", "-u", url, "-c", inner)
        tap.check(b"job held by" in got.stdout, "-u: inside too", got)
        got = nx(self.nxlock, "run", "job", "-c", f"cd / && {inner}",
                 cwd=os.path.dirname(self.user),
                 env={**self.env, "NXLOCK_CONFIG": "config"})
        tap.check(b"job held by" in got.stdout, "a relative NXLOCK_CONFIG",
                  got.stdout + got.stderr)
        self.files(user=f"url = {url}\nprefix = app:\nttl = 20s\nwait = 50ms\n")
        got = self.nx("run", "job", "-c", "echo $NXLOCK_KEY $NXLOCK_TTL_MS")
        tap.equal(got.stdout, b"app:job 20000\n", "prefix and ttl")
        self.server.cli("SET", "app:job", "other", "PX", "60000")
        got = self.nx("run", "job", "--", "true")
        tap.equal(got.returncode, 75, "wait is a limit")
        self.files(user=f"url = {url}\nprefix = app:\nttl = 20s\nwait = 1d\n")
        got = self.nx("run", "job", "-n", "-E", "3", "--", "true")
        tap.equal((got.returncode, got.stderr), (3, b""), "-n goes before it")
        got = self.nx("run", "job", "--grace", "15s", "--", "true")
        tap.check(got.returncode == 64 and f"--ttl 20s is from {self.user}:3"
                  .encode() in got.stderr, "times of a file that do not fit "
                  "are named with their line", got.stderr)


def main():
    if "NXLOCK_TEST_ETC" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            return own_etc(folder)
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        clean_environment(server)
        room = Room(os.path.abspath(sys.argv[1]), server, folder)
        if not room.has_system:
            print("# SKIP all cases with " + SYSTEM)
        room.url_matrix()
        room.prefix_matrix()
        room.defaults_matrix()
        room.which_file()
        room.bad_lines()
        room.permissions()
        room.apart()
        room.variables()
        room.output()
        room.at_work()
        room.log()
        room.without_home()
        return room.tap.done()


if __name__ == "__main__":
    sys.exit(main())
