# SPDX-License-Identifier: MIT
"""Command lines in tables, and what nxlock answers.

A row is (line, exit code, what is printed...). A line is words as in a shell.
Words before the command change its surroundings: "NAME=VALUE" sets a variable,
"?QUERY" or "&QUERY" is added to NXLOCK_URL, "offline" takes the network away,
"nobody" is another user, if this one is root. Its standard output is "> FILE"
at the end, or "> closed", "> gone", a pipe without a reader, or "> unwritable".
What is printed is part of standard output or standard error; "!TEXT" is in
neither, "~REGEX" matches a line of standard output, "=REGEX" all of it, "once
TEXT" is on standard error once, "" means that nothing is printed, a number is
the most seconds it may take. (LEVEL, SUBJECT, REGEX) is a line of doctor with
these, (None, SUBJECT, REGEX) is none; doctor leaves no key, and its exit code
is that of the worst line.

Other rows are ("db COMMAND...", what the server answers), which may be two
numbers, or a pattern that is waited for; ("write FILE", its text) before a
line, and ("file FILE", its text) after one.

{d} is the folder of files, {url} the server's URL, {socket} its socket, {nx}
the path of nxlock, {token} the last token that was printed, {ttl} the last
lease that was proposed, {soon} the server's time and 3 s, and others are those
of the test's values. In {d} are a file "plain", "socket" of a server that is
gone, and a folder in place of the file that BGSAVE writes.

For every line: what exits with 64 to 78, or was busy, leaves all keys as they
are and starts no CMD, which is "touch {started}" where it matters; no line
leaves a key "a" that was not there.
"""

import os
import re
import shlex
import socket
import subprocess
import time

from rig import Cases, await_, code_name, lines, resp


class Table(Cases):
    """Each table is a part of a test: see part()."""

    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        self.offline = subprocess.run(["unshare", "-rn", "true"], check=False,
                                      capture_output=True).returncode == 0
        self.started = self.path("started")
        self.values = {
            "d": server.folder, "url": server.url, "socket": server.socket,
            "nx": self.program, "started": self.started, "token": "", "ttl": ""}
        self.link = resp.at_socket(server.socket, 60)  # needs no password later
        self.write("plain", "")
        os.mkdir(self.path("dump.rdb"))
        with socket.socket(socket.AF_UNIX) as gone:
            gone.bind(self.path("socket"))

    def db(self, *words):
        """The answer in lines, or the error."""
        try:
            return lines(self.link.ask(*words)).decode(
                "utf-8", "surrogateescape")
        except resp.Refused as why:
            return str(why)

    def fill(self, text):
        for name, value in self.values.items():
            text = text.replace("{" + name + "}", value)
        if "{soon}" in text:
            now = int(self.db("TIME").split()[0])
            text = text.replace("{soon}", str(now + 3))
        return text

    def keys(self):
        """All but counters and records, which are in braces, and the note of a
        promotion."""
        names = sorted(self.db("KEYS", "[^{]*").split("\n"))
        return [(name, self.db("TYPE", name), self.db("DUMP", name))
                for name in names if name and "nxl-p" not in name]

    def ask(self, line, wanted):
        words = shlex.split(self.fill(line))[1:]
        answer = self.db(*words).rstrip("\n")
        if isinstance(wanted, re.Pattern):
            good = await_(lambda: wanted.search(self.db(*words)))
        elif isinstance(wanted, tuple):
            good = wanted[0] < int(answer) <= wanted[1]
        else:
            good = answer == self.fill(wanted)
        self.check(good, f"{shown(line)}: {wanted}", answer)

    def stdout(self, name):
        if name == "gone":
            reader, writer = os.pipe()
            os.close(reader)
            return writer
        if name == "unwritable":
            return os.open("/dev/null", os.O_RDONLY)
        return os.open(name, os.O_WRONLY)

    def call(self, line):
        """Its code, its output, what it said, the seconds it took."""
        words = shlex.split(self.fill(line))
        environment, before, stdout = dict(os.environ), [], subprocess.PIPE
        while words and re.match(
                r"(offline|nobody)$|[?&]|[A-Z_0-9]+=", words[0]):
            word = words.pop(0)
            if word == "offline":
                before = ["unshare", "-rn"]
            elif word == "nobody":
                before = ["setpriv", "--reuid=65534", "--regid=65534",
                          "--clear-groups"]
            elif word[0] in "?&":
                environment["NXLOCK_URL"] += word
            else:
                name, _, environment[name] = word.partition("=")
        if words[-2:-1] == [">"]:
            name = words.pop()
            words.pop()
            if name == "closed":
                before += ["sh", "-c", 'exec "$@" >&-', "sh"]
            else:
                stdout = self.stdout(name)
        began = time.monotonic()
        done = subprocess.run(
            [*before, self.program, *words], stdin=subprocess.DEVNULL,
            stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False,
            env=environment)
        if stdout != subprocess.PIPE:
            os.close(stdout)
        out, err = ((text or b"").decode("utf-8", "surrogateescape")
                    for text in (done.stdout, done.stderr))
        return done.returncode, out, err, time.monotonic() - began

    def faults(self, wanted, answer, outputs):
        got, out, err, took = answer
        if got != wanted:
            yield f"exit code {code_name(got)}, not {code_name(wanted)}"
        for output in outputs:
            if output == "":
                good = out == err == ""
            elif isinstance(output, tuple):
                good = self.finds(out, *output)
            elif isinstance(output, int):
                good = took < output
            elif output[0] == "!":
                good = self.fill(output[1:]) not in out + err
            elif output[0] == "~":
                good = any(re.fullmatch(self.fill(output[1:]), line)
                           for line in out.splitlines())
            elif output[0] == "=":
                good = re.fullmatch(self.fill(output[1:]), out, re.S)
            elif output.startswith("once "):
                good = err.count(output[5:]) == 1
            else:
                good = self.fill(output) in out + err
            if not good:
                yield f"not so: {output!r}"
        if os.path.exists(self.started):
            os.unlink(self.started)
            yield "CMD was started"

    def finds(self, out, level, subject, words=""):
        found = re.search(rf"^{level or '[a-zA-Z]+'} .*"
                          rf"\b{self.fill(subject)}: .*{self.fill(words)}",
                          out, re.M)
        return bool(found) == bool(level)

    @staticmethod
    def contradicts(code, out):
        """Whether doctor printed a worse line, or none as bad as that code."""
        found = set(re.findall("^(WARN|FAIL) ", out, re.M))
        return out and (("FAIL" in found) != (code > 1) or (
            code <= 1 and ("WARN" in found) != (code == 1)))

    def rows(self, *rows):
        for row in rows:
            self.row(*row)

    def row(self, line, wanted, *outputs):
        special, _, name = line.partition(" ")
        if special == "db":
            self.ask(line, wanted)
        elif special == "write":
            self.write(name, self.fill(wanted))
        elif special == "file":
            self.equal(self.text(name), self.fill(wanted), f"the file {name}")
        else:
            self.command(line, wanted, outputs)

    def command(self, line, wanted, outputs):
        name = f"nxlock {shown(line)}: {code_name(wanted)}"
        if line.startswith("offline") and not self.offline:
            self.skip(name, "no unshare -rn")
            return
        doctor = re.match(r"([A-Z_?&]\S* )*doctor\b", line) and wanted != 64
        before, size = self.keys(), self.db("DBSIZE")
        answer = self.call(line)
        faults = list(self.faults(wanted, answer, outputs))
        after = self.keys()
        if (64 <= wanted <= 78 or "-E" in line) and before != after:
            faults.append(f"keys changed: {before} {after}")
        if doctor and size != self.db("DBSIZE"):
            faults.append("doctor has left a key")
        if doctor and "--json" not in line and self.contradicts(
                wanted, answer[1]):
            faults.append("another exit code than its worst line has")
        if [any(key[0] == "a" for key in keys) for keys in (before, after)] == [
                False, True]:
            faults.append("the lock 'a' is left")
        if re.fullmatch("[0-9a-f-]{36}\\S*\n", answer[1]):
            self.values["token"] = answer[1].strip()
        proposed = re.search(r"use --ttl (\S+) or more", answer[2])
        if proposed:
            self.values["ttl"] = proposed[1]
        self.check(not faults, name,
                       "\n".join([*faults, "it printed:", *answer[1:3]]))


def shown(line):
    """A line as a name of TAP."""
    line = re.sub(r"\s+", " ", line.replace("#", "N"))
    return re.sub("[^ -~]", "?", line)[:150]


def part(name, rows):
    """A table as a part of a test, which begins without any key."""
    def play_rows(table):
        table.db("FLUSHALL")
        for row in rows:
            table.row(*row)
    play_rows.__name__ = name
    return play_rows
