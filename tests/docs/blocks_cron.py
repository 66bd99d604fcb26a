# SPDX-License-Identifier: MIT
"""The crontab lines of the documents, for blocks.py.

Invariant: a line passes only if cron would take it, and if with cron's small
environment it runs its job when the lock is free, skips it when it is busy, and
stops it with a message when it hangs. A line of "nxlock once" runs its job,
does not run it again, says nothing about either, and reports one that hung.
"""

import re
import shlex

from blocks_place import Wrong, run

LOCAL = "/usr/local/bin/"

FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31),
          ("month", 1, 12), ("day of week", 0, 7))


def check_field(text, what, low, high):
    """Numbers, ranges and steps; names of months and days are in no page."""
    for part in text.split(","):
        form = re.fullmatch(r"(?:\*|(\d+)(?:-(\d+))?)(?:/[1-9]\d*)?", part)
        first, last = form.groups() if form else ("", "")
        if not form or (first and not low <= int(first) <= int(
                last or first) <= high) or (first and not last and "/" in part):
            raise Wrong(f"{what}: '{text}' is no field of a crontab, or it "
                        "names no time")


def cron_command(line):
    """The command of a crontab's line, as sh gets it."""
    parts = line.split(None, 5)
    if len(parts) != 6:
        raise Wrong("a crontab line has five fields and a command")
    for text, field in zip(parts, FIELDS):
        check_field(text, *field)
    if re.search(r"(?<!\\)%", parts[5]):
        raise Wrong("cron takes % for the end of the line; write \\%")
    return parts[5].replace("\\%", "%")


def lock_of(command):
    """The name that "nxlock run" locks, and its exit code when it is busy."""
    words = shlex.split(command)
    at = words.index("run") if "run" in words else len(words)
    if at == 0 or at + 1 >= len(words) or words[at - 1] != LOCAL + "nxlock":
        raise Wrong(f"cron finds {LOCAL}nxlock by its whole path only")
    options = words[at + 2:]
    for end in ("--", "-c"):
        if end in options:
            options = options[:options.index(end)]
    if "-n" not in options:
        raise Wrong("without -n a job waits for the one before it")
    if "--at-most" not in options:
        raise Wrong("without --at-most a job that hangs makes cron skip every "
                    "later run, and nobody hears of it")
    busy = options[options.index("-E") + 1] if "-E" in options else "75"
    return words[at + 1], int(busy)


def check_once(command):
    """That a line of "nxlock once" is one for cron."""
    words = shlex.split(command)
    options = words[:words.index("--")] if "--" in words else words
    if options[:2] != [LOCAL + "nxlock", "once"]:
        raise Wrong(f"cron finds {LOCAL}nxlock by its whole path only")
    for option, why in (
            ("-q", "cron of every machine mails the same output"),
            ("--at-most", "a job that hangs makes all others wait")):
        if option not in options:
            raise Wrong(f"without {option} {why}")


class Cron:
    """Runs the lines of one block: once with the lock free and once busy."""

    def __init__(self, place, home):
        self.place, self.home = place, home
        self.env = {**place.always, "HOME": str(home), "LOGNAME": "cron",
                    "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
        self.notes, self.printed = [], ""

    def start(self, command):
        return run(["/bin/sh", "-c", command], self.env, self.home, False)

    def stand_ins(self, command):
        """The jobs of a document are not there; ours note that they ran."""
        made = []
        for name in re.findall(re.escape(LOCAL) + r"([\w.-]+)", command):
            job = self.place.bin / name
            if name == "nxlock" or job in made:
                continue
            job.write_text('#!/bin/sh\necho "$NXLOCK_NAME" >> '
                           f'"$HOME/{name}.ran"\n')
            job.chmod(0o755)
            made.append(job)
            self.notes.append(f"a script of the test stands for {LOCAL}{name}")
        return made

    def hang(self, command, name, jobs):
        """A job that hangs is stopped, and cron has something to mail. It has
        a lock of its own: the run before may keep the other (--at-least)."""
        for job in jobs:
            job.write_text(f'#!/bin/sh\ntouch "$HOME/{job.name}.ran"\n'
                           'exec sleep 600\n')
        command = command.replace(f" run {name} ", f" run {name}-hangs ")
        code, text = self.start(
            re.sub(r"(--at-most|--at-least) \S+", r"\1 500ms", command))
        if code != 124 or not text or not all(self.ran(jobs)):
            raise Wrong(f"a job that hangs: code {code}, not 124; it printed "
                        f"'{text}'")

    def ran(self, jobs):
        return [(self.home / f"{job.name}.ran").exists() for job in jobs]

    def nxlock(self, *arguments):
        code, text = run([self.place.bin / "nxlock", *arguments], self.env,
                         self.home, False)
        if code != 0:
            raise Wrong(f"nxlock {arguments[0]}: {code}: {text}")
        return text.strip()

    def once(self, command):
        """What is done is not done again, and a job that hung is in doubt."""
        check_once(command)
        jobs = self.stand_ins(command)
        command = self.place.copy(command).replace(LOCAL, f"{self.place.bin}/")
        for ran in (True, False):
            code, text = self.start(command)
            if code != 0 or text or self.ran(jobs) != [ran] * len(jobs):
                raise Wrong(f"code {code}, it printed '{text}', it ran "
                            f"{self.ran(jobs)} and not {ran}")
            for job in jobs:
                (self.home / f"{job.name}.ran").unlink(missing_ok=True)
        command = command.replace(' once "', ' once "hangs-')
        if "--on-doubt retry" in command:
            self.again(command, jobs)
            return
        for job in jobs:
            job.write_text('#!/bin/sh\nexec sleep 600\n')
        code, text = self.start(
            re.sub(r"--at-most \S+", "--at-most 500ms", command))
        again, doubt = self.start(command)
        if (code, again) != (124, 76) or not text or not doubt:
            raise Wrong(f"a job that hangs: {code} and then {again}, not 124 "
                        f"and 76; it printed '{text}', '{doubt}'")
        for job in jobs:
            job.unlink()

    def again(self, command, jobs):
        """What failed on one machine is done by the next."""
        codes = []
        for end in ("exit 1", "exec sleep 600", "exit 0"):
            for job in jobs:
                job.write_text(f'#!/bin/sh\n{end}\n')
            codes.append(self.start(
                re.sub(r"--at-most \S+", "--at-most 500ms", command))[0])
        if codes != [1, 124, 0]:
            raise Wrong(f"a job that fails, hangs and succeeds: {codes}")
        for job in jobs:
            job.unlink()

    def line(self, line):
        given = re.fullmatch(r"([A-Z_]+)\s*=\s*(\S*)", line)
        if given:
            self.env[given.group(1)] = given.group(2).strip("\"'")
            return
        command = cron_command(line)
        if " once " in command:
            self.once(command)
            return
        name, busy = lock_of(command)
        jobs = self.stand_ins(command)
        command = self.place.copy(command).replace(LOCAL, f"{self.place.bin}/")
        token = self.nxlock("acquire", name)
        code, text = self.start(command)
        self.nxlock("release", name, token)
        if code != busy or text or any(self.ran(jobs)):
            raise Wrong(f"busy: code {code}, not {busy}, or it ran: {text}")
        code, text = self.start(command)
        self.printed += text
        if code != 0 or not all(self.ran(jobs)):
            raise Wrong(f"free: code {code}, or it did not run: {text}")
        if jobs:
            self.hang(command, name, jobs)
        for job in jobs:
            (self.home / f"{job.name}.ran").unlink()
            job.unlink()
