#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_credentials.py NXLOCK: CMD gets the servers' URLs without passwords.

CMD of run always finds the servers in NXLOCK_URL, so that an nxlock inside it
never falls back to other ones; the password is there with --pass-url only, or
in the file of --url-file. An nxlock inside that has no password fails with 77.
"""

import os
import sys

from rig import Cases, Server, nx, play

ADMIN = "Adm9kQzt"  # of the default user
SECRET = "Zqx7,W/k9%"  # of the user app
ENCODED = "Zqx7,W%2Fk9%25"
LOOK = ("env -0; cat /proc/$PPID/environ /proc/$NXLOCK_SUPERVISOR_PID/environ"
        " > /dev/fd/3")


class Room(Cases):
    def all(self):
        with Server() as second, Server() as third, Server() as decoy:
            self.servers = (self.server, second, third)
            for one in self.servers:
                one.cli("ACL", "SETUSER", "app", "on", ">" + SECRET, "~*",
                        "+@all")
                one.cli("CONFIG", "SET", "requirepass", ADMIN)
            self.decoy, self.sock = decoy, self.server.socket
            self.folder, self.marker = self.server.folder, self.path("started")
            self.conf = self.write("conf", f"url = {decoy.url}\n")
            for part in (self.stripped, self.variables, self.password_file,
                         self.command_line, self.nested, self.file):
                part()

    def run(self, *words, inside=None, **environ):
        """nxlock run; CMD's variables, and the environment that the system
        shows of nxlock and of its watchdog."""
        shown = os.path.join(self.folder, "shown")
        env = {**os.environ, **environ}
        got = nx(self.program, "run", "job", *words, "--", "sh", "-c",
                 inside or f"{LOOK.replace('/dev/fd/3', shown)}", env=env)
        if got.returncode != 0 and inside is None:
            print(f"# {got.returncode}: {got.stderr}")
        got.shown = b""
        if inside is None and os.path.exists(shown):
            with open(shown, "rb") as file:
                got.shown = file.read()
            os.remove(shown)
        got.env = dict(one.split(b"=", 1) for one in got.stdout.split(b"\0")
                       if b"=" in one)
        return got

    def hidden(self, what, wanted, *words, but=(), **environ):
        got = self.run(*words, **environ)
        seen = got.env.get(b"NXLOCK_URL", b"(none)").decode()
        self.equal(seen, wanted, f"{what}: CMD's NXLOCK_URL")
        rest = b"\n".join(value for name, value in got.env.items()
                          if name.decode() not in but)
        shown = b"\n".join(
            one for one in got.shown.split(b"\0")
            if one.split(b"=")[0].decode() not in but)
        secrets = [ADMIN.encode(), SECRET.encode(), ENCODED.encode()]
        self.check(got.env and not any(s in rest for s in secrets),
                   f"{what}: CMD's environment has no password", rest)
        self.check(got.shown and not any(s in shown for s in secrets),
                   f"{what}: nor has nxlock's or its watchdog's", shown)
        return got

    def stripped(self):
        s = self.sock
        app = f"unix://app:{ENCODED}@{s}"
        self.hidden("user and password", f"unix://app@{s}", NXLOCK_URL=app)
        self.hidden("a password alone", f"unix://{s}",
                    NXLOCK_URL=f"unix://:{ADMIN}@{s}")
        self.hidden("parameters", f"unix://{s}?user=app&timeout_ms=1500",
                    NXLOCK_URL=f"unix://{s}?user=app&password={ENCODED}"
                               "&timeout_ms=1500")
        self.hidden("the last parameter", f"unix://app@{s}?timeout_ms=1500",
                    NXLOCK_URL=f"unix://app@{s}?timeout_ms=1500"
                               f"&password={ENCODED}")
        self.hidden("-u, over NXLOCK_URL", f"unix://app@{s}", "-u", app,
                    NXLOCK_URL=f"unix://:{ADMIN}@{self.decoy.socket}")
        self.hidden("a user and NXLOCK_PASSWORD", f"unix://{s}?user=app",
                    "-u", f"unix://{s}?user=app", NXLOCK_PASSWORD=SECRET)
        three = [f"unix://app:{ENCODED}@{one.socket}" for one in self.servers]
        bare = ",".join(f"unix://app@{one.socket}" for one in self.servers)
        young = "?guard_restarts=off"
        self.hidden("three servers", bare.replace(",", young + ",", 1),
                    NXLOCK_URL=",".join(
                        [three[0] + young] + three[1:]))
        self.hidden("three times -u", bare + young,
                    *(word for one in three for word in ("-u", one + (
                        young if one == three[2] else ""))),
                    NXLOCK_URL="")

    def variables(self):
        """NXLOCK_PASSWORD is for URLs without a password; and both."""
        s = self.sock
        app = f"unix://app@{s}"

        def status(*words, **environ):
            return nx(self.program, "status", "job", *words,
                      env={**os.environ, **environ})
        for url in (app, f"unix://{s}?user=app"):
            got = status("-u", url, NXLOCK_PASSWORD=SECRET)
            self.equal(got.returncode, 1, f"NXLOCK_PASSWORD and {url}")
            got = status("-u", url, NXLOCK_PASSWORD=SECRET + "x")
            self.check(got.returncode == 77 and b"WRONGPASS" in got.stderr and
                       SECRET.encode() not in got.stderr, "a wrong one",
                       got.stderr)
        got = status("-u", f"unix://app:{ENCODED}@{s}", NXLOCK_PASSWORD="no")
        self.equal(got.returncode, 1, "the URL's own password comes first")
        got = status("-u", app, NXLOCK_PASSWORD=SECRET, REDISCLI_AUTH="no")
        self.equal(got.returncode, 1, "REDISCLI_AUTH is not ours")
        got = status("-u", app, NXLOCK_PASSWORD=SECRET,
                     NXLOCK_PASSWORD_FILE="x")
        self.check(got.returncode == 78 and b"both set; unset" in got.stderr,
                   "NXLOCK_PASSWORD and NXLOCK_PASSWORD_FILE", got.stderr)
        for words in (("--password", SECRET), (f"--password={SECRET}",),
                      ("--pass", SECRET), (f"--pasword={SECRET}",)):
            got = status("-u", app, *words)
            self.check(got.returncode == 64 and SECRET.encode() not in
                       got.stderr and b"--password-file FILE" in got.stderr
                       and b"NXLOCK_PASSWORD" in got.stderr,
                       f"{words[0][:10]} is refused, with the remedy",
                       got.stderr)
        got = status("-u", f"unix://{s}?user=app")
        self.check(got.returncode == 78 and b"user without a password" in
                   got.stderr and b"NXLOCK_PASSWORD_FILE" in got.stderr,
                   "a user without a password", got.stderr)

    def password_file(self):
        s = self.sock
        app = f"unix://app@{s}"
        path = self.write("password", SECRET + "\nmore\n")
        os.chmod(path, 0o600)
        inner = f"cd / && exec '{self.program}' status job"

        def status(command, *words, **environ):
            return nx(self.program, *command, *words, cwd=self.folder,
                      env={**os.environ, **environ})
        for words, environ in (
                (("--password-file", path), {}),
                (("--password-file", path), {"NXLOCK_PASSWORD": "no"}),
                ((), {"NXLOCK_PASSWORD_FILE": path})):
            got = status(("status", "job"), "-u", app, *words, **environ)
            self.equal(got.returncode, 1, f"{words[:1]}, {list(environ)}")
        for words, environ in (
                (("-u", app, "--password-file", "password"), {}),
                (("-u", f"unix://{s}?user=app", "--password-file",
                  "password"), {}),
                (("-u", app), {"NXLOCK_PASSWORD_FILE": "password"})):
            got = status(("run", "job"), *words, "-c", inner, **environ)
            self.check(got.returncode == 0 and b"job held by" in got.stdout,
                       "an nxlock inside uses it, from any folder", got)
        self.hidden("a password file", app, "-u", app,
                    NXLOCK_PASSWORD_FILE=path)
        got = status(("status", "job"), "-u", f"unix://app:{ENCODED}@{s}",
                     NXLOCK_PASSWORD_FILE=path + "x")
        self.equal(got.returncode, 1, "the URL's own password comes first")
        os.chmod(path, 0o640)
        got = status(("status", "job"), "-u", app, "--password-file", path)
        self.check(got.returncode == 78 and b"chmod 600" in got.stderr,
                   "a file that others may read", got.stderr)
        got = status(("status", "job"), "-u", app, NXLOCK_PASSWORD_FILE=path)
        self.check(got.returncode == 78 and
                   b"-u with NXLOCK_PASSWORD_FILE: " in got.stderr,
                   "of the variable, too", got.stderr)
        got = status(("doctor",), "-u", f"unix://{s}", "--password-file",
                     path)
        self.check(got.returncode == 78 and
                   got.stdout.startswith(b"FAIL  url: ") and
                   b"chmod 600" in got.stdout, "doctor finds it", got.stdout)

    def command_line(self):
        """What others see of it, while CMD runs and after."""
        s = self.sock
        look = "cat /proc/$NXLOCK_SUPERVISOR_PID/cmdline /proc/$PPID/cmdline"
        for words in (("-u", f"unix://app:{ENCODED}@{s}"),
                      (f"-uunix://{s}?user=app&password={ENCODED}&db=1",),
                      (f"--url=unix://app:{ENCODED}@{s},unix://app:{ENCODED}@"
                       f"{self.servers[1].socket},unix://app:{ENCODED}@"
                       f"{self.servers[2].socket}?guard_restarts=off",)):
            got = self.run(*words, "-v", inside=look)
            self.check(got.returncode == 0 and
                       got.stdout.count(b"unix://") in (2, 6) and
                       got.stdout.count(b"*" * len(ENCODED)) in (2, 6) and
                       ENCODED.encode() not in got.stdout,
                       "the command line of nxlock and its watchdog has no "
                       "password", got.stdout + got.stderr)
            self.check(b"warning: -u has a password" in got.stderr,
                       "and -v warns", got.stderr)
        got = self.run("-u", f"unix://app@{s}", "-v", inside=look,
                       NXLOCK_PASSWORD=SECRET)
        self.check(got.returncode == 0 and b"warning" not in got.stderr,
                   "not if there is none", got.stderr)

    def started(self):
        there = os.path.exists(self.marker)
        if there:
            os.remove(self.marker)
        return there

    def connections(self):
        for line in self.decoy.cli("INFO", "stats").splitlines():
            if line.startswith(b"total_connections_received:"):
                return int(line.split(b":")[1])
        return -1

    def nested(self):
        s = self.sock
        inner = f"exec '{self.program}' run other -n -- touch '{self.marker}'"
        other = {"NXLOCK_CONFIG": self.conf}
        for what, url in (("with a user", f"unix://app:{ENCODED}@{s}"),
                          ("without a user", f"unix://:{ADMIN}@{s}")):
            before = self.connections()
            got = self.run(inside=inner, NXLOCK_URL=url, **other)
            self.equal(got.returncode, 77, f"an nxlock inside, {what}: 77")
            self.check(b"--pass-url" in got.stderr and
                       b"--url-file" in got.stderr and
                       b"password" in got.stderr,
                       "says why, and the remedy", got.stderr)
            self.check(not self.started(), "and starts nothing")
            self.equal(self.connections() - before, 1,
                       "and asks no other server")  # the one is ours
            got = self.run("--pass-url", inside=inner, NXLOCK_URL=url,
                           **other)
            self.equal((got.returncode, self.started()), (0, True),
                       f"--pass-url, {what}: it runs")
        for command in ("status other", "list", "doctor", "wait other -w 1"):
            got = self.run(inside=f"exec '{self.program}' {command}",
                           NXLOCK_URL=f"unix://app:{ENCODED}@{s}", **other)
            self.equal(got.returncode, 77, f"{command} inside: 77")
        got = self.run("--pass-url", "-u", f"unix://{s}?user=app",
                       inside=inner, NXLOCK_URL="", NXLOCK_PASSWORD=SECRET,
                       **other)
        self.equal((got.returncode, self.started()), (0, True),
                   "--pass-url passes on the user and NXLOCK_PASSWORD")
        got = self.run("-u", f"unix://{s}?user=app", inside=inner,
                       NXLOCK_URL="", NXLOCK_PASSWORD=SECRET, **other)
        self.check(got.returncode == 77 and not self.started() and
                   b"removed it from NXLOCK_URL and NXLOCK_PASSWORD" in
                   got.stderr, "without it, it is denied", got.stderr)
        wrong = self.write("wrong", "not-this\n")
        os.chmod(wrong, 0o600)
        got = self.run("-u", f"unix://{s}?user=app", NXLOCK_URL="",
                       inside=f"exec '{self.program}' status job "
                       f"--password-file '{wrong}'",
                       NXLOCK_PASSWORD=SECRET, **other)
        self.check(got.returncode == 77 and b"WRONGPASS" in got.stderr and
                   b"removed it" not in got.stderr,
                   "a wrong one is not called missing", got.stderr)
        holder = f"'{self.program}' status job"
        got = self.run("-u", self.decoy.url, inside=holder,
                       NXLOCK_URL=f"unix://app:{ENCODED}@{s}")
        self.check(b"job held by" in got.stdout,
                   "with -u, an nxlock inside asks the same server",
                   got.stdout)

    def url_file(self, text):
        path = self.write("urls", text)
        os.chmod(path, 0o600)
        return path

    def file(self):
        s = self.sock
        app = f"unix://app:{ENCODED}@{s}"
        path = self.url_file(f"# the judge\n\n  {app}  \n")
        self.hidden("--url-file", f"unix://app@{s}", "--url-file", path,
                    NXLOCK_URL=self.decoy.url)
        inner = f"'{self.program}' run other -n -- touch '{self.marker}'"
        got = self.run("--url-file", path, inside=inner,
                       NXLOCK_CONFIG=self.conf)
        self.equal((got.returncode, self.started()), (0, True),
                   "an nxlock inside finds it")
        env = {**os.environ, "NXLOCK_URL": "", "NXLOCK_CONFIG": self.conf}
        got = nx(self.program, "run", "job", "--url-file", "urls", "-c",
                 f"cd / && {inner}", cwd=self.folder, env=env)
        self.equal((got.returncode, self.started()), (0, True),
                   "by a relative path, too, from another directory")
        got = self.run(inside=inner, NXLOCK_URL="", NXLOCK_URL_FILE=path)
        self.equal((got.returncode, self.started()), (0, True),
                   "NXLOCK_URL_FILE names it, too")
        got = self.run("-u", self.decoy.url, inside="echo \"$NXLOCK_URL "
                       "${NXLOCK_URL_FILE-none}\"", NXLOCK_URL_FILE=path)
        self.equal(got.stdout.decode(), f"{self.decoy.url} none\n",
                   "-u replaces it for CMD, too")
        got = self.run("--url-file", path,
                       inside=f"NXLOCK_URL={self.decoy.url} {inner}")
        self.check(got.returncode == 78 and not self.started() and
                   b"NXLOCK_URL and NXLOCK_URL_FILE (" in got.stderr and
                   b"name different servers; unset" in got.stderr,
                   "another NXLOCK_URL for the one inside is an error",
                   got.stderr)
        got = self.run("--url-file", path,
                       inside=f"NXLOCK_URL=unix://{s} {inner}")
        self.check(got.returncode == 78 and not self.started() and
                   b"name different users of the same servers" in got.stderr,
                   "and so is another user", got.stderr)
        got = self.run("-u", app, "--url-file", path)
        self.check(got.returncode == 64 and b"--url-file" in got.stderr,
                   "--url (-u) and --url-file exclude each other", got.stderr)
        young = "?guard_restarts=off"
        bare = ",".join(f"unix://app@{one.socket}" for one in self.servers)
        path = self.url_file("\n".join(
            f"unix://app:{ENCODED}@{one.socket}" for one in self.servers) +
            young)
        self.hidden("several lines", bare + young, "--url-file", path,
                    NXLOCK_URL="")


if __name__ == "__main__":
    sys.exit(play(Room, Room.all))
