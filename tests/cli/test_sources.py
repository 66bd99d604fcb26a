#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_sources.py NXLOCK: where the settings come from.

Which source decides is tried for every combination of sources, and every state
of every source: absent, empty, malformed, unreadable, not private. What is
wrong with a source stops all commands, unless a source before it decides.
"""

import itertools
import json
import os
import subprocess
import sys

from rig import Cases, nx, play

SECRET = "Zqx7Wk9"
OTHER = 65534  # another user
DEFAULT = "redis://127.0.0.1:6379, because none was given"


def subsets(names):
    for count in range(len(names) + 1):
        yield from itertools.combinations(names, count)


class Room(Cases):
    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        self.folder = self.path("sources")
        os.mkdir(self.folder)
        server.cli("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*", "&*",
                   "+@all")
        self.conf = os.path.join(self.folder, "conf")
        self.env = {name: value for name, value in os.environ.items()
                    if name != "NXLOCK_URL"}
        self.env["NXLOCK_CONFIG"] = self.conf
        self.write("conf", "")
        for folder in server.folder, self.folder:
            os.chmod(folder, 0o755)
        self.can_change = os.geteuid() == 0 and \
            self.nx("--version", as_other=True).returncode == 0
        if not self.can_change:
            print("# SKIP other users: not root, or they may not run nxlock")

    def write(self, name, text="", mode=0o600):
        path = os.path.join(self.folder, name)
        if os.path.lexists(path):
            os.remove(path)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, mode)
        return path

    def nx(self, *words, as_other=False, **environ):
        env = {name: value for name, value in
               {**self.env, **environ}.items() if value is not None}
        if as_other:
            return nx("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}",
                      "--clear-groups", self.program, *words, env=env, cwd="/")
        return nx(self.program, *words, env=env)

    def sources(self, *words, **environ):
        """What doctor says: the origin of each setting, and the servers. If
        the URL is wrong, the exit code and what is said."""
        got = self.nx("doctor", "--json", *words, **environ)
        lines = [json.loads(line) for line in got.stdout.splitlines()]
        if got.returncode in (64, 78) or not lines:
            return got.returncode, got.stderr.decode() + "".join(
                one["finding"] for one in lines)
        found = {one["what"]: one["finding"].removeprefix("from ")
                 for one in lines if "server" not in one and
                 one["level"] == "ok"}
        return found, [one["server"] for one in lines
                       if one["what"] == "reach"]

    # ------------------------------------------------------- which one counts

    def matrix(self, what, origin, setup, wanted):
        """For each combination of the sources of origin."""
        wrong = []
        for chosen in subsets(list(origin)):
            words, environ = setup(chosen)
            got, more = self.sources(*words, **environ)
            want = wanted(chosen)
            if isinstance(want, tuple):  # an exit code, and words
                good = got == want[0] and all(w in more for w in want[1:])
            else:
                good = isinstance(got, dict) and got.get(what) == want
            if not good:
                wrong.append(f"{chosen}: {got} {more}, not {want}")
        self.check(not wrong, f"{what}: the first source decides, alone",
                   "\n".join(wrong))

    def which_url(self):
        at = {name: f"unix://{self.folder}/{name}.sock" for name in
              ("-u", "--url-file", "NXLOCK_URL", "NXLOCK_URL_FILE", "conf",
               "conf-file")}
        file = {name: self.write("of" + name, at[name] + "\n") for name in at}
        origin = {"-u": "-u", "--url-file": file["--url-file"] +
                  " (--url-file)", "NXLOCK_URL": "NXLOCK_URL",
                  "NXLOCK_URL_FILE": file["NXLOCK_URL_FILE"] +
                  " (NXLOCK_URL_FILE)", "conf": self.conf + " line 2",
                  "conf-file": f"{file['conf-file']} ({self.conf} line 1)"}

        def setup(chosen):
            self.write("conf", "".join(
                line for name, line in (
                    ("conf-file", f"url-file = {file['conf-file']}\n"),
                    ("conf", f"# it\nurl = {at['conf']}\n"))
                if name in chosen))
            return [word for name, value in (
                ("-u", at["-u"]), ("--url-file", file["--url-file"]))
                if name in chosen for word in (name, value)], {
                    name: value for name, value in (
                        ("NXLOCK_URL", at["NXLOCK_URL"]),
                        ("NXLOCK_URL_FILE", file["NXLOCK_URL_FILE"]))
                    if name in chosen}

        def wanted(chosen):
            first = chosen[0] if chosen else None
            if {"-u", "--url-file"} <= set(chosen):
                return 64, "--url (-u) and --url-file exclude each other"
            if {"conf", "conf-file"} <= set(chosen):
                return 78, f"{self.conf}:3: 'url' excludes the 'url-file' of"
            if first == "NXLOCK_URL" and "NXLOCK_URL_FILE" in chosen:
                return (78, "NXLOCK_URL and NXLOCK_URL_FILE are both set; "
                        "unset one of them")
            return origin[first] if first else DEFAULT
        self.matrix("url", origin, setup, wanted)
        for name in ("NXLOCK_URL", "NXLOCK_URL_FILE"):
            setup(())
            self.equal(self.sources(**{name: ""})[0].get("url"), DEFAULT,
                       f"an empty {name} is the same as none")
            setup(("conf",))
            got = self.sources(**{name: ""})
            self.equal((got[0].get("url"), got[1]),
                       (origin["conf"], [at["conf"]]),
                       f"an empty {name}: the next source decides")
        setup(())
        got = self.sources(REDIS_URL=at["-u"])
        self.equal(got[0].get("url"), DEFAULT, "REDIS_URL is none")

    def which_prefix(self):
        url = f"unix://{self.folder}/none.sock"
        origin = {"--prefix": "--prefix", "url": "NXLOCK_URL",
                  "conf": self.conf + " line 1"}

        def setup(chosen):
            self.write("conf", "prefix = c:\n" if "conf" in chosen else "")
            return ["--prefix", "o:"] if "--prefix" in chosen else [], {
                "NXLOCK_URL": url + ("?prefix=u:" if "url" in chosen else "")}

        def wanted(chosen):
            if chosen[:2] == ("--prefix", "url"):
                return 64, "NXLOCK_URL with --prefix: ", "prefix"
            return origin[chosen[0]] if chosen else None
        self.matrix("prefix", origin, setup, wanted)
        self.write("conf", "prefix = app:\n")
        got = self.nx("run", "job", "-c", "echo $NXLOCK_KEY", "-u",
                      f"{self.server.url}?prefix=x:")
        self.equal(got.stdout, b"x:job\n", "that of the URL is used")
        got = self.nx("run", "job", "-c", "echo $NXLOCK_KEY", "-u",
                      self.server.url)
        self.equal(got.stdout, b"app:job\n", "and the file's, for any URL")

    def which_password(self):
        """The file's is for the file's own servers; with NXLOCK_URL it is not
        used."""
        pw = self.write("pw", SECRET + "\n")
        origin = {"url": None, "--password-file": "--password-file",
                  "NXLOCK_PASSWORD": "NXLOCK_PASSWORD",
                  "NXLOCK_PASSWORD_FILE": "NXLOCK_PASSWORD_FILE",
                  "conf": self.conf + " line 2"}
        sock = f"{self.folder}/none.sock"

        for what in ("password", "password-file"):
            def setup(chosen):
                app = "app:" + SECRET if "url" in chosen else ""
                self.write("conf", f"url = unix://{app}@{sock}\n".replace(
                    "//@", "//") + (f"password-file = {pw}\n"
                                    if "conf" in chosen else ""))
                return (["--password-file", pw]
                        if "--password-file" in chosen else []), {
                            name: value for name, value in (
                                ("NXLOCK_PASSWORD", "x"),
                                ("NXLOCK_PASSWORD_FILE", pw))
                            if name in chosen}

            def wanted(chosen):
                if {"NXLOCK_PASSWORD", "NXLOCK_PASSWORD_FILE"} <= set(chosen):
                    return (78, "NXLOCK_PASSWORD and NXLOCK_PASSWORD_FILE are "
                            "both set; unset one of them")
                if chosen[:2] == ("url", "--password-file"):
                    return 78, "with --password-file", "password"
                first = chosen[0] if chosen else None
                names_file = first not in (None, "url", "NXLOCK_PASSWORD")
                if not first or names_file != (what == "password-file"):
                    return None
                return origin[first] or self.conf + " line 1"
            self.matrix(what, origin, setup, wanted)
        self.write("conf", f"password-file = {pw}\n")
        got = self.sources(NXLOCK_URL=f"unix://{sock}")[0]
        self.check("password-file" not in got, "the password of the file "
                   "is not for the server of NXLOCK_URL", got)
        got = self.sources()[0]
        self.equal(got.get("password-file"), self.conf + " line 1",
                   "but for the default server")
        for name in ("NXLOCK_PASSWORD", "NXLOCK_PASSWORD_FILE"):
            got = self.sources(**{name: ""})[0]
            self.equal(got.get("password-file"), self.conf + " line 1",
                       f"an empty {name} is the same as none")

    def which_ca(self):
        origin = {"--cacert": "--cacert", "url": self.conf + " line 1",
                  "conf": self.conf + " line 2"}
        ca = os.environ.get("NXLOCK_TEST_CA", "/etc/ssl/certs/ca-certificates"
                            ".crt")
        if not os.path.exists(ca):
            print("# SKIP cacert: there is no " + ca)
            return

        def setup(chosen):
            query = f"?cacert={ca}" if "url" in chosen else ""
            self.write("conf", f"url = rediss://127.0.0.1:1{query}\n" +
                       (f"cacert = {ca}\n" if "conf" in chosen else ""))
            return ["--cacert", ca] if "--cacert" in chosen else [], {}

        def wanted(chosen):
            if chosen[:2] == ("--cacert", "url"):
                return 78, "with --cacert", "cacert"
            return origin[chosen[0]] if chosen else None
        self.matrix("cacert", origin, setup, wanted)
        setup(("conf",))
        for words in (("--insecure",), ("-u", "rediss://127.0.0.1:1")):
            got = self.sources(*words)[0]
            self.check(isinstance(got, dict) and "cacert" not in got,
                       f"not with {words}", got)
        self.write("conf", "url = rediss://127.0.0.1:1?cacertdir=/\n"
                           f"cacert = {ca}\n")
        got = self.sources()[0]
        self.check(isinstance(got, dict) and "cacert" not in got,
                   "nor beside a cacertdir in the URL", got)
        self.write("conf", f"url = redis://127.0.0.1:1\ncacert = {ca}\n")
        got, words = self.sources()
        self.check(got == 78 and "rediss://" in words and
                   self.conf + " line 2" in words,
                   "a cacert for a URL of the file without TLS is an "
                   "error, with its line", words)
        self.write("conf", f"cacert = {ca}\n")
        self.check("cacert" not in self.sources()[0],
                   "but not for the default server")

    def which_default(self):
        """The options that the file sets for other commands than doctor."""
        url = self.server.url

        def ttl(*words):
            got = self.nx("run", "job", *words, "-u", url, "-c",
                          "echo $NXLOCK_TTL_MS")
            return got.stdout.decode().strip()
        rows = (("", (), "30000"), ("ttl = 20s\n", (), "20000"),
                ("ttl = 20s\n", ("--ttl", "10s"), "10000"),
                ("", ("--ttl", "10s"), "10000"))
        for text, words, wanted in rows:
            self.write("conf", text)
            self.equal(ttl(*words), wanted, f"ttl: {text!r} {words}")
        self.write("conf", "ttl = 20s\nwait = 50ms\nlog = none\ngrace = 1s\n"
                           "keep-trying = 5s\n")
        got = self.sources("-u", url)[0]
        self.equal([got.get(n) for n in ("ttl", "wait", "log", "grace",
                                             "keep-trying")],
                       [f"{self.conf} line {n}" for n in range(1, 6)],
                       "doctor says where they come from")
        self.server.cli("SET", "job", "other", "PX", "60000")
        got = self.nx("run", "job", "-u", url, "--", "true")
        self.equal(got.returncode, 75, "wait is a limit")
        self.write("conf", "wait = 1d\n")
        got = self.nx("run", "job", "-u", url, "-n", "-E", "3", "--", "true")
        self.equal((got.returncode, got.stderr), (3, b""),
                   "-n goes before it")
        self.server.cli("DEL", "job")
        for text, words, line in (("ttl = 20s\n", ("--grace", "15s"),
                                   "--ttl 20s is from "),
                                  ("grace = 15s\n", ("--ttl", "20s"),
                                   "--grace 15s is from ")):
            self.write("conf", text)
            got = self.nx("run", "job", "-u", url, *words, "--", "true")
            self.check(got.returncode == 64 and
                       f"{line}{self.conf} line 1".encode() in got.stderr,
                       "times that do not fit are named with their line",
                       got.stderr)

    # ---------------------------------------------------------- each state

    def refused(self, what, code, *says, words=(), as_other=False, **environ):
        """No command runs."""
        marker = os.path.join(self.folder, "started")
        got = self.nx("run", "x", "-n", *words, "--", "touch", marker,
                      as_other=as_other, **environ)
        text = got.stderr.decode()
        self.check(
            got.returncode == code and not os.path.exists(marker) and
            SECRET not in text and all(word in text for word in says),
            f"{what}: nothing runs",
            f"exit code {got.returncode}\n{text}is to have: {code}, {says!r}")
        if os.path.exists(marker):
            os.remove(marker)

    def file_states(self):
        """(state, make the file, what is said) of a file with a URL or a
        password. The file does not exist before."""
        path = os.path.join(self.folder, "state")
        content = {"url": f"unix://app:{SECRET}@{self.server.socket}\n",
                   "password": SECRET + "\n"}

        def of_other(kind):
            self.write("state", content[kind])
            os.chown(path, OTHER, -1)
        rows = [
            ("absent", lambda kind: None, "No such file"),
            ("a folder", lambda kind: os.mkdir(path), "regular file"),
            ("a pipe", lambda kind: os.mkfifo(path), "regular file"),
            ("empty", lambda kind: self.write("state", ""),
             {"url": "has no URL", "password": "first line is empty"}),
            ("with an empty line", lambda kind: self.write("state", "\n"),
             {"url": "has no URL", "password": "first line is empty"}),
            ("with a zero byte", lambda kind: self.write(
                "state", content[kind].replace("\n", "\0\n")), "zero byte"),
            ("too long", lambda kind: self.write("state", "#" * 300000),
             {"url": "too long", "password": "longer than"}),
            *((f"of mode {mode:o}", lambda kind, mode=mode: self.write(
                "state", content[kind], mode), "chmod 600")
              for mode in (0o640, 0o604, 0o620, 0o602, 0o610)),
        ]
        if self.can_change:
            rows.append(("of another user", of_other,
                         "belongs to another user"))
        return path, rows

    def files(self):
        """Every file, in every state."""
        path, rows = self.file_states()
        app = f"unix://app@{self.server.socket}"
        for name, kind, words, environ, conf in (
                ("--url-file", "url", ("--url-file", path), {}, ""),
                ("NXLOCK_URL_FILE", "url", (), {"NXLOCK_URL_FILE": path}, ""),
                ("url-file =", "url", (), {}, f"url-file = {path}\n"),
                ("--password-file", "password",
                 ("-u", app, "--password-file", path), {}, ""),
                ("NXLOCK_PASSWORD_FILE", "password", ("-u", app),
                 {"NXLOCK_PASSWORD_FILE": path}, ""),
                ("password-file =", "password", (), {},
                 f"url = {app}\npassword-file = {path}\n")):
            self.write("conf", conf)
            names = {"url-file =": self.conf + " line 1",
                     "password-file =": self.conf + " line 2",
                     "--password-file": "password file"}
            for state, make, says in rows:
                make(kind)
                says = says if isinstance(says, str) else says[kind]
                self.refused(f"{name} {state}", 78, path, says,
                             names.get(name, name), words=words, **environ)
                if os.path.isdir(path):
                    os.rmdir(path)
                self.write("state", None)
            self.write("state", {"url": app + "\n", "password": SECRET}[kind])
            if kind == "url":
                self.refused(f"{name} without its password", 78,
                             "user without a password", words=words, **environ)
            self.write("state", {
                "url": f"# it\r\n\r\n unix://app:{SECRET}@"
                       f"{self.server.socket} \r\n",
                "password": SECRET + "\r\nmore\n"}[kind])
            got = self.nx("run", "x", "-n", *words, "--", "true", **environ)
            self.equal((got.returncode, got.stderr), (0, b""),
                       f"{name} of mode 600 is used")
            self.write("state", None)
        self.write("conf", "")
        for text, says in (("redis:/x\n", "write redis://x"),
                           ("redis://h\n" * 16, "more than 15 URLs"),
                           ("redis://a\nredis://b\n\0\nredis://c\n",
                            "zero byte")):
            self.refused(f"a URL file with {text[:12]!r}", 78, says,
                         words=("--url-file", self.write("state", text)))

    def values(self):
        """Options and variables that are empty, malformed or there twice."""
        url, pw = self.server.url, self.write("pw", SECRET)
        self.write("conf", "")
        for code, says, words, environ in (
                (78, "-u: ", ("-u", ""), {}),
                (78, "-u: ", ("-u", "redis:/x"), {}),
                (78, "-u: ", ("-u", f"redis://a:{SECRET}/x@h"), {}),
                (78, "-u: ", ("-u", f"{url},"), {}),
                (64, "--url-file has an empty value", ("--url-file", ""), {}),
                (64, "--url-file is given twice",
                 ("--url-file", "/a", "--url-file", "/b"), {}),
                (64, "and --url-file exclude", ("-u", url, "--url-file",
                                                   "/a"), {}),
                (64, "-u is given more than 15", ("-u", url) * 16, {}),
                (64, "--password-file is given twice",
                 ("-u", url, "--password-file", pw, "--password-file", pw),
                 {}),
                (64, "--password-file ''", ("-u", url, "--password-file", ""),
                 {}),
                (64, "--prefix ''", ("-u", url, "--prefix", ""), {}),
                (64, "--prefix is given twice",
                 ("-u", url, "--prefix", "a", "--prefix", "b"), {}),
                (64, "--cacert ''", ("-u", url, "--cacert", ""), {}),
                (78, "NXLOCK_URL: ", (), {"NXLOCK_URL": "redis:/x"}),
                (78, "NXLOCK_URL: ", (), {"NXLOCK_URL": " "}),
                (78, "NXLOCK_URL: ", (), {"NXLOCK_URL": f"a:{SECRET}@h"}),
                (78, "NXLOCK_URL: ", (), {"NXLOCK_URL": url + ","}),
                (78, "NXLOCK_URL_FILE", (), {"NXLOCK_URL_FILE": " "})):
            self.refused(f"{[w[:12] for w in words][:4]} {list(environ)}",
                         code, says, words=words, **environ)
        for environ in ({"NXLOCK_URL": "redis:/x"}, {"NXLOCK_URL_FILE": "/x"}):
            got = self.nx("run", "x", "-n", "-u", url, "--", "true", **environ)
            self.equal((got.returncode, got.stderr), (0, b""),
                       f"{environ} does not count behind -u")
        self.write("conf", "url = redis:/x\n")
        got = self.nx("run", "x", "-n", "-u", url, "--", "true")
        self.equal((got.returncode, got.stderr), (0, b""),
                   "nor does a wrong URL of the file")

    def conf_lines(self):
        rows = (
            ("tll = 3", "there is no key 'tll'", "did you mean 'ttl'?"),
            ("frobnicate = 3", "there is no key 'frobnicate'",
             "nxlock.conf(5)"),
            ("--ttl = 3s", "there is no key '--ttl'", "did you mean 'ttl'?"),
            ("ttl 3", "there is no '='", "KEY = VALUE"),
            ("[nxlock]", "there is no '='"),
            ("ttl =", "'ttl' has no value", "'ttl = DUR'"),
            ("url =", "'url' has no value"),
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
            ("password-file = pw", "'password-file' must begin with '/'"),
            ("prefix = " + "x" * 1025, "prefix '", "1 to 1024 bytes"),
            ("prefix = a\nprefix = b", "'prefix' is in line 3 already"),
            ("password = " + SECRET, "password-file = FILE"),
            ("url: redis://a:" + SECRET + "@h?db=3", "there is no key 'url: "),
            ("\n".join(["url = redis://h"] * 16), ":18: url is given more than "
             "15 times"),
            *((f"{key} = 1", f"'{key}' cannot be set in a file",
               f"write --{key} where")
              for key in ("force", "yes", "no-wait", "busy-code", "insecure",
                          "every", "token", "name", "pass-url", "metrics",
                          "on-doubt", "done-on", "help")),
        )
        url = ("-u", self.server.url)
        for text, *says in rows:
            self.write("conf", f"# mine\n\n{text}\n")
            self.refused(f"the file with {text[:30]!r}", 78, self.conf + ":",
                         *says, words=url)
        self.write("conf", " \t# c\r\n\r\n ttl\t=\t3s \r\nkeep_trying=4s\r\n\n")
        self.equal([self.sources(*url)[0].get(name) for name in
                   ("ttl", "keep-trying")],
                  [self.conf + " line 3", self.conf + " line 4"],
                  "blanks, CR, empty lines, comments and '_' are fine")
        self.write("conf", "ttl = soon\n")
        got = self.nx("status", "--help")
        self.equal(got.returncode, 0, "--help is shown all the same")

    def conf_states(self):
        """The file itself, in every state."""
        secret = f"url = redis://app:{SECRET}@h\n"
        parameter = f"url = redis://h?user=app&password={SECRET}\n"
        several = f"url = redis://h,redis://app:{SECRET}@i\n"
        url = ("-u", self.server.url)
        for text, mode, says in (
                ("", 0o600, None), ("# later\n\n", 0o644, None),
                ("#" * 65536, 0o600, None), ("#" * 70000, 0o600, "too long"),
                ("ttl = 3s\0\n", 0o600, "not a text"),
                ("ttl = 3s\n", 0o644, None), ("ttl = 3s\n", 0o600, None),
                ("ttl = 3s\n", 0o664, "chmod go-w"),
                ("ttl = 3s\n", 0o646, "chmod go-w"),
                ("url = redis://app@h?password_file=/x\n", 0o664, "go-w"),
                (secret, 0o600, None), (secret, 0o644, "chmod 600"),
                (f"url = redis://app:a/{SECRET}@h\n", 0o644, "chmod 600"),
                ("url = redis+sentinel://h/m?sentinel_password="
                 f"{SECRET}\n", 0o644, "chmod 600"),
                (secret, 0o640, "chmod 600"), (parameter, 0o604, "chmod 600"),
                (several, 0o644, "chmod 600")):
            self.write("conf", text, mode)
            what = f"the file with {text[:12]!r}, mode {mode:o}"
            if says:
                self.refused(what, 78, self.conf, says, words=url)
            else:
                got = self.nx("run", "x", "-n", *url, "--", "true")
                self.equal((got.returncode, got.stderr), (0, b""),
                           what + " is fine")
        self.write("conf", None)
        self.refused("NXLOCK_CONFIG names a file that is not there", 78,
                     self.conf, "No such file", words=url)
        for instead in ("none", ""):
            got = self.sources(*url, NXLOCK_CONFIG=instead)[0]
            self.equal(got.get("url"), "-u", f"NXLOCK_CONFIG={instead}")
        for what, make, end in (("a folder", os.mkdir, os.rmdir),
                                ("a pipe", os.mkfifo, os.remove)):
            make(self.conf)
            self.refused("the file is " + what, 78, "regular file", words=url)
            end(self.conf)
        self.write("conf", "")
        self.other_users(url)
        self.the_path()

    def other_users(self, url):
        if not self.can_change:
            return
        self.write("conf", "ttl = 3s\n", 0o644)
        os.chown(self.conf, OTHER, -1)
        self.refused("the file is another user's", 78, self.conf,
                     "belongs to another user, who could replace the URL",
                     words=url)
        self.write("conf", "url = unix:///nowhere/mine\n", 0o644)
        got = self.nx("status", "x", as_other=True)
        self.check(got.returncode == 69 and b"nowhere/mine" in got.stderr
                   and f"the URL is from {self.conf} line 1".encode() in
                   got.stderr, "a file of root is used by others",
                   got.stderr)
        self.write("conf", "url = unix:///nowhere/mine\n", 0o600)
        self.refused("one that this user may not read", 78,
                     "Permission denied", "let this user read it",
                     words=url, as_other=True)
        group = self.write("group", f"unix://app:{SECRET}@"
                           f"{self.server.socket}\n", 0o440)
        os.chown(group, -1, OTHER)
        self.write("conf", "", 0o644)
        os.chmod(self.server.socket, 0o777)
        os.chmod(self.server.folder, 0o755)
        got = self.nx("status", "x", "--url-file", group, as_other=True)
        self.equal((got.returncode, got.stderr), (1, b""),
                   "a URL file that root lets a group read is used")
        os.chmod(group, 0o444)
        self.refused("one that all may read", 78, "chmod 600",
                     words=("--url-file", group), as_other=True)
        self.write("conf", f"url = redis://app:{SECRET}@h\n", 0o644)
        self.refused("one with a password that all may read", 78,
                     "for root only", "NXLOCK_PASSWORD_FILE", words=url)

    def the_path(self):
        """Without NXLOCK_CONFIG it is /etc/nxlock.conf. /etc is a copy in a
        mount namespace; where there can be none, this is skipped."""
        etc = os.path.join(self.folder, "etc")
        os.mkdir(etc)
        self.write("etc/nxlock.conf", "ttl = 9s\n", 0o644)
        root = [] if os.geteuid() == 0 else ["-r"]
        script = f"mount --bind {etc} /etc && exec \"$@\""
        env = {**self.env, "NXLOCK_URL": "unix:///nowhere/x"}
        del env["NXLOCK_CONFIG"]
        for probe in (True, False):
            words = ["true"] if probe else [self.program, "doctor"]
            got = subprocess.run(
                ["unshare", *root, "-m", "sh", "-c", script, "sh", *words],
                capture_output=True, check=False, env=env, timeout=60)
            if probe and got.returncode != 0:
                print("# SKIP the path: " + got.stderr.decode().strip())
                return
        self.check(b"ttl: from /etc/nxlock.conf line 1.\n" in got.stdout,
                   "the file is /etc/nxlock.conf", got.stdout + got.stderr)

    # --------------------------------------------------------- what is printed

    def output(self):
        text = (f"url = redis://app:{SECRET}@127.0.0.1:1\n"
                f"url = redis://127.0.0.1:2?password={SECRET}\nttl = 20s\n")
        self.write("conf", text)
        for words, environ in (((), {}), (("--json",), {}),
                               ((), {"NXLOCK_URL": f"redis:/a:{SECRET}@j"}),
                               ((), {"NXLOCK_URL": f"redis://a:{SECRET}/x@j"}),
                               ((), {"NXLOCK_URL": f"redis://a:{SECRET}?x@j"}),
                               ((), {"NXLOCK_URL": f"redis://:{SECRET}"}),
                               ((), {"NXLOCK_URL": f"redis://a:x/{SECRET}@j"}),
                               ((), {"NXLOCK_URL": f"redis://h,a:{SECRET}@j"}),
                               ((), {"NXLOCK_URL": "redis://a@127.0.0.1:1",
                                     "NXLOCK_PASSWORD": SECRET}),
                               (("-u", f"redis://:{SECRET}@127.0.0.1:1"), {})):
            got = self.nx("doctor", *words, **environ)
            self.check(SECRET.encode() not in got.stdout + got.stderr and
                       got.returncode in (69, 78),
                       f"no secret: {words[:1]} {list(environ)}",
                       got.stdout + got.stderr)
        got = self.nx("config")
        self.check(got.returncode == 64 and b"no command 'config'" in
                   got.stderr, "there is no command config", got.stderr)

    # ----------------------------------------------------------- with a server

    def log(self):
        """log = WHAT is --log WHAT for the commands that have it, and --log
        goes before it."""
        def events(*words, **environ):
            got = self.nx(*words, **environ)
            return got.returncode, [json.loads(line)["event"] for line in
                                    got.stderr.splitlines() if line[:1] == b"{"]
        url = self.server.url
        self.write("conf", f"log = json\nurl = {url}\n")
        for words, wanted in (
                (("run", "logged", "--", "true"), "ended"),
                (("once", "logged", "-q", "--", "true"), "ended"),
                (("acquire", "logged", "--ttl", "9s"), "ended"),
                (("unlock", "logged", "--force", "--yes"), "ended"),
                (("wait", "logged"), "ended"),
                (("run", "logged", "--log", "none", "--", "true"), None),
                (("status", "logged"), None),
                (("list",), None)):
            code, found = events(*words)
            self.check(code == (words[0] == "status") and
                       (found[-1:] == [wanted] if wanted else not found),
                       f"log in a file: {' '.join(words)}", (code, found))
        self.write("conf", f"# it\nlog = syslog\nurl = {url}\n")
        got = self.nx("run", "logged", "--", "true",
                      NXLOCK_LOG_SOCKET="/nowhere/log")
        self.check(got.returncode == 0 and b"to syslog at /nowhere/log"
                   in got.stderr and f"--log syslog is from {self.conf} line 2"
                   .encode() in got.stderr, "a log that is not there is named "
                   "with its line", got.stderr)

    def at_work(self):
        """What the file says happens, and inside CMD too."""
        url = self.server.url
        inner = f"'{self.program}' status job"
        secret = f"unix://app:{SECRET}@{self.server.socket}"
        urls = self.write("urls", secret)
        pw = self.write("pw", SECRET)
        for what, text, environ in (
                ("url", f"url = {url}\n", {}),
                ("url and prefix", f"url = {url}\nprefix = app:\n", {}),
                ("a password", f"url = {secret}\n", {}),
                ("a password and a prefix", f"url = {secret}\nprefix=p:\n", {}),
                ("a password file", f"url = unix://app@{self.server.socket}\n"
                 f"password-file = {pw}\n", {}),
                ("url-file", f"url-file = {urls}\nprefix=p:\n", {}),
                ("NXLOCK_URL", "url = unix:///nowhere\n", {"NXLOCK_URL": url}),
                ("NXLOCK_URL_FILE", "url = unix:///nowhere\n",
                 {"NXLOCK_URL_FILE": urls})):
            self.write("conf", text)
            got = self.nx("run", "job", "-c", f"cd / && {inner}", **environ)
            self.check(got.returncode == 0 and b"job held by" in got.stdout,
                       f"{what}: an nxlock inside sees the same lock",
                       got.stdout + got.stderr)
            self.check(SECRET.encode() not in self.nx(
                "run", "job", "-c", "env", **environ).stdout,
                "and CMD sees no password")
        self.write("conf", f"url = {url}\n")
        got = self.nx("run", "job", "-u", url, "-c", inner)
        self.check(b"job held by" in got.stdout, "-u: inside too", got)
        got = self.nx("status", "x", "-u", "unix:///nowhere/at-all")
        self.check(b"the URL is from" not in got.stderr, "-u needs no origin",
                   got.stderr)


if __name__ == "__main__":
    sys.exit(play(Room, Room.which_url, Room.which_prefix, Room.which_password,
                  Room.which_ca, Room.which_default, Room.files, Room.values,
                  Room.conf_lines, Room.conf_states, Room.output, Room.at_work,
                  Room.log))
