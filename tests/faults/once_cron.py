#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""once_cron.py NXLOCK PAGE: three hosts run the line of "nxlock once" that
the page shows, with and without its --on-doubt retry, each night of a week or
more, and hosts die in the night.

Keeps: the job starts at most once a night. Who survives exits with 0 and says
nothing if the job ended, or says 76 if nobody knows; a night without a death is
never in doubt. With --on-doubt retry the job ends each night on which a host
survives, and is repeated only if it was told of the doubt.

NXLOCK_SEED=N draws other deaths. NXLOCK_FULL=1: a year, not a week.
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import stage

HOSTS = ("db1", "db2", "db3")
LOCAL = "/usr/local/bin/"
MARK = "ONCE_CRON_HOST"
RETRY = "--on-doubt retry "  # of the page's line
TTL = "2s"
LATE_S = 30
MOST_WEEKS = 5  # without a host that died at work

JOB = """#!/bin/sh
echo "start $NXLOCK_ONCE_DOUBTS $ONCE_CRON_HOST" >> "$NIGHT"
sleep 0.2
echo "end" >> "$NIGHT"
"""


def cron_line(page):
    """As cron gives it to sh."""
    for line in page.read_text("utf-8").splitlines():
        if re.match(r"[\d*/ ,-]+ " + LOCAL + "nxlock once ", line):
            return line.split(None, 5)[5].replace("\\%", "%")
    raise SystemExit(f"{page} has no line of nxlock once")


class Host:
    """What cron starts on one machine in one night."""

    def __init__(self, name, command, env):
        self.name, self.mark = name, f"{MARK}={name}".encode()
        self.process = stage.start(
            ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**env, MARK: name})

    def processes(self):
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdecimal() and self.mark in (
                        entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
            except OSError:
                pass  # it has ended, or is somebody else's

    def die(self):
        """All of it at a time: none sees another one die first."""
        stopped = set()
        while new := set(self.processes()) - stopped:
            for pid in new:
                self.send(pid, signal.SIGSTOP)
            stopped |= new
        for pid in stopped:
            self.send(pid, signal.SIGKILL)
        self.process.communicate()

    @staticmethod
    def send(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Week:
    def __init__(self, folder, nxlock, line, options, dice):
        self.folder, self.dice = pathlib.Path(folder), dice
        self.server = stage.Server(folder, "server")
        bin_ = self.folder / "bin"
        bin_.mkdir()
        (bin_ / "nxlock").symlink_to(pathlib.Path(nxlock).resolve())
        for name, text in (("pay", JOB),
                           ("date", "#!/bin/sh\necho \"$TODAY\"\n")):
            (bin_ / name).write_text(text)
            (bin_ / name).chmod(0o755)
        self.command = line.replace(LOCAL, f"{bin_}/").replace(
            RETRY, f"--ttl {TTL} {options}")
        self.env = {**os.environ, "PATH": f"{bin_}:/usr/bin:/bin",
                    "NXLOCK_URL": f"unix://{self.server.socket}"}
        self.complaints = []
        self.seen = dict.fromkeys(
            ("nights", "deaths", "doubts", "repeated"), 0)

    def night(self, number, retries):
        today = f"2026-{number // 28 + 1:02}-{number % 28 + 1:02}"
        book = self.folder / today
        env = {**self.env, "TODAY": today, "NIGHT": str(book)}
        hosts = [Host(f"{name}-{today}", self.command, env) for name in HOSTS]
        dying = []
        for _ in range(self.dice.choice([0, 1, 1, 2])):
            victim = self.dice.choice([h for h in hosts if h not in dying])
            pause_s = self.dice.uniform(0, 0.25)
            if self.dice.random() < 0.6:
                victim = self.at_work(hosts, dying, book) or victim
                pause_s /= 2
            time.sleep(pause_s)
            victim.die()
            dying.append(victim)
        left = []
        for host in (h for h in hosts if h not in dying):
            text, _ = host.process.communicate(timeout=LATE_S)
            left.append((host.process.returncode, text))
        lines = book.read_text().splitlines() if book.exists() else []
        starts = [line for line in lines if line.startswith("start")]
        self.seen["nights"] += 1
        self.seen["deaths"] += len(dying)
        self.seen["doubts"] += any(code == 76 for code, _ in left)
        self.seen["repeated"] += len(starts) > 1
        why = self.judge(left, lines, starts, dying, retries)
        if why:
            self.complaints.append(f"{why}, {today}; {lines} {left}")

    @staticmethod
    def at_work(hosts, dying, book):
        """The one whose job has started, if it is still alive."""
        while not book.exists() or not book.read_text().endswith("\n"):
            if all(h.process.poll() is not None for h in hosts):
                return None  # who died before has left a doubt, and no job
            time.sleep(0.005)
        starts = [line.split() for line in book.read_text().splitlines()
                  if line.startswith("start")]
        return next((h for h in hosts if h.name == starts[-1][-1]
                     and h not in dying), None)

    @staticmethod
    def judge(left, lines, starts, dying, retries):
        codes = {code for code, _ in left}
        if codes == {0} and "end" not in lines:
            return "HARM: 0, but the job did not end"
        untold = [line for line in starts if line.split()[1] == "0"]
        if len(untold) > 1 or (not retries and len(starts) > 1):
            return "HARM: it was repeated"
        if not codes <= ({0} if retries or not dying else {0, 76}):
            return "an exit code"
        if len(codes) != 1:
            return "they do not agree"
        # What a busy machine delays is told of, too.
        late = r"nxlock: (cannot renew|renewed|cannot record the outcome) .*\n"
        said = [(code, re.sub(late, "", text)) for code, text in left]
        if any(bool(text) != (code == 76) for code, text in said):
            return "something is said, or is not"
        return None


def play(nxlock, line, options, nights, seed):
    with tempfile.TemporaryDirectory(prefix="cron") as folder:
        week = Week(folder, nxlock, line, options,
                    random.Random(f"{seed} {options}"))
        harm = "repeated" if options else "doubts"
        number = 0
        try:
            # On a busy machine a host that is to die at work has finished, so
            # there are more nights until one of them did.
            while number < nights or (not week.seen[harm] and
                                      number < MOST_WEEKS * nights):
                week.night(number, bool(options))
                number += 1
        finally:
            week.server.kill()
    if not week.seen[harm]:
        week.complaints.append("no host died while it was at work")
    print(options or "halt", week.seen)
    for why in week.complaints:
        print(stage.told(why))
    return not week.complaints


def main(nxlock, page):
    if stage.unplayed() is not None:
        return stage.unplayed()
    nights = 336 if os.environ.get("NXLOCK_FULL") == "1" else 7
    seed = os.environ.get("NXLOCK_SEED", "2")
    line = cron_line(pathlib.Path(page))
    if RETRY not in line:
        raise SystemExit(f"{page}: its line has no {RETRY}")
    fine = [play(nxlock, line, options, nights, seed)
            for options in ("", RETRY)]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
