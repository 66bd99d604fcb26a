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
import sys

from rig import nx, play
from table import Table, part

SECRET = "Zqx7Wk9"
OTHER = 65534  # another user
DEFAULT = "redis://127.0.0.1:6379, because none was given"


def subsets(names):
    for count in range(len(names) + 1):
        yield from itertools.combinations(names, count)


def refused(given, code, *said):
    """No command runs."""
    before, _, words = given.rpartition("run ")
    return (f"{before}run x -n {words} -- touch {{started}}", code, *said,
            "!" + SECRET)


def accepted(given):
    before, _, words = given.rpartition("run ")
    return f"{before}run x -n {words} -- true", 0, ""


class Room(Table):
    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        server.cli("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*", "&*",
                   "+@all")
        self.folder, self.conf = server.folder, self.path("conf")
        del os.environ["NXLOCK_URL"]
        os.environ["NXLOCK_CONFIG"] = self.conf
        os.umask(0o077)
        os.chmod(server.folder, 0o755)
        self.write("conf", "")
        self.can_change = os.geteuid() == 0 and \
            self.call("nobody --version")[0] == 0
        if not self.can_change:
            print("# SKIP other users: not root, or they may not run nxlock")

    def put(self, name, text, mode):
        """A file of that mode, or none if text is None."""
        if os.path.lexists(self.path(name)):
            os.remove(self.path(name))
        if text is not None:
            os.chmod(self.write(name, text), mode)

    def nx(self, *words, **environ):
        return nx(self.program, *words, env={**os.environ, **environ})

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
        self.rows(
            ("write conf", "prefix = app:\n"),
            ("run job -c 'echo $NXLOCK_KEY' -u {url}?prefix=x:", 0, "~x:job"),
            ("run job -c 'echo $NXLOCK_KEY' -u {url}", 0, "~app:job"))

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
        for text, words, wanted in (
                ("", "", "30000"), ("ttl = 20s\n", "", "20000"),
                ("ttl = 20s\n", "--ttl 10s", "10000"),
                ("", "--ttl 10s", "10000")):
            self.rows(("write conf", text),
                      (f"run job {words} -u {{url}} -c 'echo $NXLOCK_TTL_MS'",
                       0, "~" + wanted))
        self.rows(
            ("write conf", "ttl = 20s\nwait = 50ms\nlog = none\ngrace = 1s\n"
             "keep-trying = 5s\n"),
            ("doctor -u {url}", 1, *(
                ("ok", name, f"from {{d}}/conf line {number}")
                for number, name in enumerate(
                    ("ttl", "wait", "log", "grace", "keep-trying"), 1))),
            ("db SET job other PX 60000", "OK"),
            ("run job -u {url} -- true", 75),
            ("write conf", "wait = 1d\n"),
            ("run job -u {url} -n -E 3 -- true", 3, ""),
            ("db DEL job", "1"))
        for text, words, option in (("ttl = 20s", "--grace 15s", "--ttl 20s"),
                                    ("grace = 15s", "--ttl 20s",
                                     "--grace 15s")):
            self.rows(("write conf", text + "\n"),
                      (f"run job -u {{url}} {words} -- true", 64,
                       f"{option} is from {{d}}/conf line 1"))

    # ---------------------------------------------------------- each state

    def states(self):
        """(state, make the file "state", what is said) of a file with a URL or
        a password. The file does not exist before."""
        path = self.path("state")
        content = {"url": f"unix://app:{SECRET}@{self.server.socket}\n",
                   "password": SECRET + "\n"}

        def of_other(kind):
            self.put("state", content[kind], 0o600)
            os.chown(path, OTHER, -1)
        rows = [
            ("absent", lambda kind: None, "No such file"),
            ("a folder", lambda kind: os.mkdir(path), "regular file"),
            ("a pipe", lambda kind: os.mkfifo(path), "regular file"),
            *((f"of {text!r}", lambda kind, text=text:
               self.write("state", text),
               {"url": "has no URL", "password": "first line is empty"})
              for text in ("", "\n")),
            ("with a zero byte", lambda kind: self.write(
                "state", content[kind].replace("\n", "\0\n")), "zero byte"),
            ("too long", lambda kind: self.write("state", "#" * 300000),
             {"url": "too long", "password": "longer than"}),
            *((f"of mode {mode:o}", lambda kind, mode=mode:
               self.put("state", content[kind], mode), "chmod 600")
              for mode in (0o640, 0o604, 0o620, 0o602, 0o610)),
        ]
        if self.can_change:
            rows.append(("of another user", of_other,
                         "belongs to another user"))
        return path, rows

    def files(self):
        """Every file, in every state."""
        path, states = self.states()
        app = "unix://app@{socket}"
        for name, kind, given, conf in (
                ("--url-file", "url", "run --url-file {d}/state", ""),
                ("NXLOCK_URL_FILE", "url", "NXLOCK_URL_FILE={d}/state run ",
                 ""),
                ("{d}/conf line 1", "url", "run ", "url-file = {d}/state\n"),
                ("password file", "password",
                 f"run -u {app} --password-file {{d}}/state", ""),
                ("NXLOCK_PASSWORD_FILE", "password",
                 f"NXLOCK_PASSWORD_FILE={{d}}/state run -u {app}", ""),
                ("{d}/conf line 2", "password", "run ",
                 f"url = {app}\npassword-file = {{d}}/state\n")):
            self.row("write conf", conf)
            for state, make, said in states:
                make(kind)
                said = said if isinstance(said, str) else said[kind]
                self.about = f"a file {state}: "
                self.row(*refused(given, 78, "{d}/state", said, name))
                if os.path.isdir(path):
                    os.rmdir(path)
                self.put("state", None, 0)
            self.about = ""
            if kind == "url":
                self.rows(("write state", app + "\n"),
                          refused(given, 78, "user without a password"))
            self.rows(("write state", {
                "url": f"# it\r\n\r\n unix://app:{SECRET}@{{socket}} \r\n",
                "password": SECRET + "\r\nmore\n"}[kind]), accepted(given))
            self.put("state", None, 0)
        self.write("conf", "")
        for text, says in (("redis:/x\n", "write redis://x"),
                           ("redis://h\n" * 16, "more than 15 URLs"),
                           ("redis://a\nredis://b\n\0\nredis://c\n",
                            "zero byte")):
            self.rows(("write state", text),
                      refused("run --url-file {d}/state", 78, says))

    def other_users(self):
        if not self.can_change:
            return
        self.put("conf", "ttl = 3s\n", 0o644)
        os.chown(self.conf, OTHER, -1)
        self.row(*refused("run -u {url}", 78, "{d}/conf", "belongs to another "
                          "user, who could replace the URL"))
        self.put("conf", "url = unix:///nowhere/mine\n", 0o644)
        self.row("nobody status x", 69, "nowhere/mine",
                 "the URL is from {d}/conf line 1")
        self.put("conf", "url = unix:///nowhere/mine\n", 0o600)
        self.row(*refused("nobody run -u {url}", 78, "Permission denied",
                          "let this user read it"))
        self.put("group", f"unix://app:{SECRET}@{self.server.socket}\n", 0o440)
        os.chown(self.path("group"), -1, OTHER)
        self.put("conf", "", 0o644)
        os.chmod(self.server.socket, 0o777)
        self.row("nobody status x --url-file {d}/group", 1, "!nxlock:")
        os.chmod(self.path("group"), 0o444)
        self.row(*refused("nobody run --url-file {d}/group", 78, "chmod 600"))
        self.put("conf", f"url = redis://app:{SECRET}@h\n", 0o644)
        self.row(*refused("run -u {url}", 78, "for root only",
                          "NXLOCK_PASSWORD_FILE"))

    def conf_states(self):
        """The file itself, in every state."""
        for text, mode, said in CONF_STATES:
            self.put("conf", text, mode)
            self.about = f"{text[:12]!r}, mode {mode:o}: "
            self.row(*(refused("run -u {url}", 78, "{d}/conf", said) if said
                       else accepted("run -u {url}")))
        self.about = ""
        self.put("conf", None, 0)
        self.row(*refused("run -u {url}", 78, "{d}/conf", "No such file"))
        for instead in ("none", ""):
            self.row(f"NXLOCK_CONFIG={instead} doctor -u {{url}}", 1,
                     ("ok", "url", "from -u"))
        for make, end in (os.mkdir, os.rmdir), (os.mkfifo, os.remove):
            make(self.conf)
            self.row(*refused("run -u {url}", 78, "regular file"))
            end(self.conf)
        self.write("conf", "")

    def the_path(self):
        """Without NXLOCK_CONFIG it is /etc/nxlock.conf. /etc is a copy in a
        mount namespace; where there can be none, this is skipped."""
        etc = self.path("etc")
        os.mkdir(etc)
        self.put("etc/nxlock.conf", "ttl = 9s\n", 0o644)
        inside = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh",
                  "-c", f"mount --bind {etc} /etc && exec \"$@\"", "sh"]
        if nx(*inside, "true").returncode != 0:
            print("# SKIP the path: no mount namespace")
            return
        got = nx(*inside, self.program, "doctor", "-u", "unix:///nowhere/x",
                 env={name: value for name, value in os.environ.items()
                      if name != "NXLOCK_CONFIG"})
        self.check(b"ttl: from /etc/nxlock.conf line 1.\n" in got.stdout,
                   "the file is /etc/nxlock.conf", got.stdout + got.stderr)


# Options and variables that are empty, malformed or there twice.
PW = "--password-file {d}/pw"
VALUES = (
    ("write pw", SECRET),
    *(refused(f"run -u {url}", 78, "-u: ")
      for url in ("''", "redis:/x", f"redis://a:{SECRET}/x@h", "{url},")),
    *(refused(f"run {words}", 64, said) for words, said in (
        ("--url-file ''", "--url-file has an empty value"),
        ("--url-file /a --url-file /b", "--url-file is given twice"),
        ("-u {url} --url-file /a", "and --url-file exclude"),
        (16 * "-u {url} ", "-u is given more than 15"),
        (f"-u {{url}} {PW} {PW}", "--password-file is given twice"),
        ("-u {url} --password-file ''", "--password-file ''"),
        ("-u {url} --prefix ''", "--prefix ''"),
        ("-u {url} --prefix a --prefix b", "--prefix is given twice"),
        ("-u {url} --cacert ''", "--cacert ''"))),
    *(refused(f"NXLOCK_URL={url} run ", 78, "NXLOCK_URL: ")
      for url in ("redis:/x", "' '", f"a:{SECRET}@h", "{url},")),
    refused("NXLOCK_URL_FILE=' ' run ", 78, "NXLOCK_URL_FILE"),
    # What is wrong does not count behind -u.
    accepted("NXLOCK_URL=redis:/x run -u {url}"),
    accepted("NXLOCK_URL_FILE=/x run -u {url}"),
    ("write conf", "url = redis:/x\n"),
    accepted("run -u {url}"),
)
# Lines of the file, and what is said of them.
LINES = (
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
CONF_LINES = (
    *(row for text, *said in LINES for row in (
        ("write conf", f"# mine\n\n{text}\n"),
        refused("run -u {url}", 78, "{d}/conf:", *said))),
    # Blanks, CR, empty lines, comments and "_" are fine.
    ("write conf", " \t# c\r\n\r\n ttl\t=\t3s \r\nkeep_trying=4s\r\n\n"),
    ("doctor -u {url}", 1, ("ok", "ttl", "from {d}/conf line 3"),
     ("ok", "keep-trying", "from {d}/conf line 4")),
    ("write conf", "ttl = soon\n"),
    ("status --help", 0),
)
PRIVATE = f"url = redis://app:{SECRET}@h\n"
# The text of the file, its mode, and what is said, if it is refused.
CONF_STATES = (
    ("", 0o600, None), ("# later\n\n", 0o644, None),
    ("#" * 65536, 0o600, None), ("#" * 70000, 0o600, "too long"),
    ("ttl = 3s\0\n", 0o600, "not a text"),
    ("ttl = 3s\n", 0o644, None), ("ttl = 3s\n", 0o600, None),
    ("ttl = 3s\n", 0o664, "chmod go-w"), ("ttl = 3s\n", 0o646, "chmod go-w"),
    ("url = redis://app@h?password_file=/x\n", 0o664, "go-w"),
    (PRIVATE, 0o600, None), (PRIVATE, 0o644, "chmod 600"),
    (f"url = redis://app:a/{SECRET}@h\n", 0o644, "chmod 600"),
    (f"url = redis+sentinel://h/m?sentinel_password={SECRET}\n", 0o644,
     "chmod 600"),
    (PRIVATE, 0o640, "chmod 600"),
    (f"url = redis://h?user=app&password={SECRET}\n", 0o604, "chmod 600"),
    (f"url = redis://h,redis://app:{SECRET}@i\n", 0o644, "chmod 600"),
)
# doctor prints no secret of any source.
OUTPUT = (
    ("write conf", f"url = redis://app:{SECRET}@127.0.0.1:1\n"
     f"url = redis://127.0.0.1:2?password={SECRET}\nttl = 20s\n"),
    *((f"{before}doctor{words}", code, "!" + SECRET)
      for code, before, words in (
          (69, "", ""), (69, "", " --json"),
          *((78, f"NXLOCK_URL={url} ", "") for url in (
              f"redis:/a:{SECRET}@j", f"redis://a:{SECRET}/x@j",
              f"redis://a:{SECRET}?x@j", f"redis://:{SECRET}",
              f"redis://a:x/{SECRET}@j")),
          (69, f"NXLOCK_URL=redis://h,a:{SECRET}@j ", ""),
          (69, f"NXLOCK_URL=redis://a@127.0.0.1:1 NXLOCK_PASSWORD={SECRET} ",
           ""),
          (69, "", f" -u redis://:{SECRET}@127.0.0.1:1"))),
    ("config", 64, "no command 'config'"),
)
# log = WHAT is --log WHAT for the commands that have it; --log goes before it.
ENDED = 'once "event":"ended"'
LOG = (
    ("write conf", "log = json\nurl = {url}\n"),
    ("run logged -- true", 0, ENDED),
    ("once logged -q -- true", 0, ENDED),
    ("acquire logged --ttl 9s", 0, ENDED),
    ("unlock logged --force --yes", 0, ENDED),
    ("wait logged", 0, ENDED),
    ("run logged --log none -- true", 0, "!event"),
    ("status logged", 1, "!event"),
    ("list", 0, "!event"),
    ("write conf", "# it\nlog = syslog\nurl = {url}\n"),
    ("NXLOCK_LOG_SOCKET=/nowhere/log run logged -- true", 0,
     "to syslog at /nowhere/log", "--log syslog is from {d}/conf line 2"),
)
# What the file says happens, and inside CMD too, which sees no password.
INSIDE = "-c 'cd / && {nx} status job'"
PRIVATE_URL = f"unix://app:{SECRET}@{{socket}}"
AT_WORK = (
    ("write urls", PRIVATE_URL),
    ("write pw", SECRET),
    *(row for text, before in (
        ("url = {url}\n", ""), ("url = {url}\nprefix = app:\n", ""),
        (f"url = {PRIVATE_URL}\n", ""),
        (f"url = {PRIVATE_URL}\nprefix=p:\n", ""),
        ("url = unix://app@{socket}\npassword-file = {d}/pw\n", ""),
        ("url-file = {d}/urls\nprefix=p:\n", ""),
        ("url = unix:///nowhere\n", "NXLOCK_URL={url} "),
        ("url = unix:///nowhere\n", "NXLOCK_URL_FILE={d}/urls "))
      for row in (("write conf", text),
                  (f"{before}run job {INSIDE}", 0, "job held by"),
                  (f"{before}run job -c env", 0, "!" + SECRET))),
    ("write conf", "url = {url}\n"),
    ("run job -u {url} -c '{nx} status job'", 0, "job held by"),
    ("status x -u unix:///nowhere/at-all", 69, "!the URL is from"),
)


if __name__ == "__main__":
    sys.exit(play(Room, Room.which_url, Room.which_prefix, Room.which_password,
                  Room.which_ca, Room.which_default, Room.files,
                  part("values", VALUES), part("conf_lines", CONF_LINES),
                  Room.conf_states, Room.other_users, Room.the_path,
                  part("output", OUTPUT), part("at_work", AT_WORK),
                  part("log", LOG)))
