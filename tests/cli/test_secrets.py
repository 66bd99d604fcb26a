#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_secrets.py NXLOCK: a message is no place for a token or a password.

NXLOCK_FULL=1: every slip with every command; else each form of a secret with
one command in turn, and the first form with all.

A slip of the hand puts either where it does not belong, and what nxlock says
of that ends in a log that others read. The first digits of a token may be
shown: they release nothing.
"""

import os
import sys

from rig import Cases, nx, play

TOKEN = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
# As it may come out of a copy, or of a variable that holds more than it.
TOKENS = {
    "a token": TOKEN,
    "a token less its last digit": TOKEN[:-1],
    "a token less its first digit": TOKEN[1:],
    "a token less its end": TOKEN[:23],
    "a token and a blank": TOKEN + " ",
    "a blank and a token": " " + TOKEN,
    "a token and a newline": TOKEN + "\n",
    "a token and a digit": TOKEN + "0",
    "a token and a label": TOKEN + "@db7:41233:backup",
    "a token in capitals": TOKEN.upper(),
    "a name, '=' and a token": "token=" + TOKEN,
}
COMMANDS = ("run", "acquire", "renew", "release", "status")
PASSWORD = "Zqx7Wvk9"  # in no other word
URLS = {
    "a URL": f"redis://u:{PASSWORD}@127.0.0.1:1",
    "a URL without a user": f"redis://:{PASSWORD}@127.0.0.1:1/0",
    "a URL of a kind we do not have": f"rediss://u:{PASSWORD}@127.0.0.1:1",
    "a URL with a parameter": f"redis://127.0.0.1:1?password={PASSWORD}",
    "a URL without a scheme": f"u:{PASSWORD}@127.0.0.1:1",
    "a URL with a long password": f"redis://u:{PASSWORD * 20}@127.0.0.1:1",
}
WRONG_URLS = (
    f"u:{PASSWORD}@127.0.0.1", f"redis://u:{PASSWORD}@h:port",
    f"redis://u:{PASSWORD}@h:99999", f"redis://u:{PASSWORD}@h/db",
    f"redis://u:{PASSWORD}@h?x=1", f"redis://u:{PASSWORD}/@h",
    f"redis://u:{PASSWORD}#@h", f"redis:/u:{PASSWORD}@h",
    f"redi://u:{PASSWORD}@h", f"redis://h?password={PASSWORD}%zz",
    f"redis://h?passwrod={PASSWORD}", f"redis://h?{PASSWORD}",
    f"redis://h?db={PASSWORD}", f"=redis://u:{PASSWORD}@h",
    f"redis://h?sentinel_password={PASSWORD}",
    f"redis+sentinel://h,,i/m?sentinel_password={PASSWORD}",
    f"redis+sentinel://h?sentinel_password={PASSWORD}",
    f"redis+sentinel://u:{PASSWORD}@h,i", f"redis+sentinel://u:{PASSWORD},h/m",
    f"redis-sentinel://u:{PASSWORD}@h/0#m",
)


def secrets_and_commands(secrets):
    """Each form of a secret, and the commands that it is tried with."""
    for number, (what, word) in enumerate(secrets.items()):
        every = number == 0 or os.environ.get("NXLOCK_FULL") == "1"
        one = COMMANDS[number % len(COMMANDS)]
        yield what, word, COMMANDS if every else (one,)


def slips(command, word):
    """Lines of a command with word where it does not belong."""
    # A name may hold a UUID: "order:UUID" is shown where it is the NAME.
    if not word.startswith("token="):
        yield [word]
        yield [word, "k"]
        yield [word, "k", "k2"]
        yield [word, "--name", "k"]
    yield ["k", word]
    yield ["k", word, "k2"]
    yield ["k", "k2", word]
    yield ["k", f"-{word}"]
    yield ["k", f"--{word}"]
    yield [f"-{word}"]
    yield [f"--{word}"]
    yield ["k", f"-v{word}"]
    yield ["k", f"-h{word}"]
    yield ["k", f"--help={word}"]
    yield ["k", "--name", word]
    yield ["k", f"--name={word}"]
    for flag in ("db", "timeout-ms", "max-ttl-ms", "drift-ppm",
                 "keepalive-s"):
        yield ["k", f"--{flag}", word]
        yield ["k", f"--{flag}={word}"]
    if command in ("run", "acquire"):
        for flag in ("-w", "--wait", "-E", "--busy-code", "--ttl"):
            yield ["k", flag, word]
        yield ["k", "-n", "-u", word]
        yield ["k", f"-w{word}"]
        yield ["k", f"-E{word}"]
        yield ["k", f"-n{word}"]
        yield ["k", f"--no-wait={word}"]
        yield ["k", f"--verbose={word}"]
    if command == "run":
        yield ["k", "--", word]
    if command not in ("run", "acquire"):
        yield ["k", "-u", word]
    if command == "renew":
        yield ["k", TOKEN, "--ttl", word]
    if command == "status":
        yield ["k", f"--json={word}"]


class Room(Cases):
    def hidden(self, words, secrets, what, code=None):
        """The line is refused, and no message has any of the secrets."""
        if words[0] == "run" and "--" not in words:
            words = words + ["--", "true"]
        got = nx(self.program, *words)
        said = got.stderr.decode("utf-8", "replace").lower()
        bad = [one for one in secrets if one.lower() in said]
        good = not bad and (code is None or got.returncode == code)
        if not good:
            self.check(False, what, f"{words}\n{got.returncode}: {said}")
        return good

    def all_hidden(self, lines, secrets, what, code=None):
        lines = list(lines)
        good = [self.hidden(line, secrets, what, code) for line in lines]
        self.check(lines and all(good), f"{what}: {len(lines)} lines")

    def tokens(self):
        # A beginning that is no secret, and any part after that.
        secrets = [TOKEN[:13], TOKEN[9:23], TOKEN[24:34]]
        for what, word, commands in secrets_and_commands(TOKENS):
            self.all_hidden(
                [[word], [word, "k"], ["help", word], [f"-{word}"],
                 [f"--{word}", "k"]], secrets,
                f"{what} where the command belongs", 64)
            for command in commands:
                self.all_hidden(
                    ([command, *line] for line in slips(command, word)),
                    secrets, f"{command}, {what}")

    def held(self):
        """Messages about the lock that has this token."""
        self.server.cli("SET", "k", TOKEN + "@db7:41233:backup")
        for line in (["run", "k", "-nv"], ["run", "k", "-v", "-w", "1500ms"],
                     ["acquire", "k", "-nv"]):
            self.hidden(line, [TOKEN[:13], TOKEN[9:23]], "held", 75)
        for line in (["status", "k"], ["status", "k", "-v"],
                     ["status", "k", "--json"]):
            got = nx(self.program, *line)
            self.check(got.returncode == 0 and
                       TOKEN[9:23].encode() not in got.stdout,
                       f"{line} does not give the token away", got.stdout)
        self.server.cli("DEL", "k")

    def urls(self):
        for what, url, commands in secrets_and_commands(URLS):
            self.all_hidden(
                [[url], [url, "k"], ["help", url], [f"-u{url}", "k"],
                 [f"--url={url}", "run"]], [PASSWORD],
                f"{what} where the command belongs", 64)
            for command in commands:
                self.all_hidden(
                    ([command, *line] for line in slips(command, url)),
                    [PASSWORD], f"{command}, {what}")
                self.all_hidden(
                    [[command, "k", f"--urll={url}"],
                     [command, "k", f"--url{url}"],
                     [command, "k", f"-U{url}"]], [PASSWORD],
                    f"{command}, {what} to an option misspelt", 64)
        self.all_hidden(
            [["status", "k", how + url] for how in ("-u", "--url=")
             for url in WRONG_URLS], [PASSWORD], "a wrong URL")
        for url in URLS.values():
            self.all_hidden(
                [["run", "k", "-nv", "-u", url], ["status", "k", "-u", url]],
                [PASSWORD], "a server that is not there")

    def flags(self):
        word = PASSWORD
        lines = [[f"-p{word}"], ["-p", word], [f"-a{word}"], ["-a", word],
                 [f"--passwrod={word}"], ["--passwrod", word],
                 [f"--pass={word}"], ["--pass", word], [f"--auth={word}"],
                 [f"--pasword={word}"], [f"--user-pass={word}"],
                 [f"--password={word}", f"--password={word}2"]]
        for command in COMMANDS:
            self.all_hidden(([command, "k", *line] for line in lines),
                            [word], f"{command}, a password", 64)
            self.all_hidden(([command, *line, "k"] for line in lines),
                            [word], f"{command}, a password first", 64)
        self.all_hidden(
            [[f"--password={word}", "run", "k"], ["--password", word],
             ["-p", word, "run"], [f"--passwrod={word}", "run"],
             [f"-p{word}", "run", "k"], [f"-a{word}", "run", "k"]],
            [word], "a password before the command", 64)


if __name__ == "__main__":
    sys.exit(play(Room, Room.tokens, Room.held, Room.urls, Room.flags))
