#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_units.py BUILD: the crontab and the systemd units of docs/examples.

cron and systemd would take them, every option in them exists, and the commands
do what their comments say: run when the lock is free, skip when it is busy.
"""

import re
import shlex
import shutil
import subprocess
import sys

from stage import EXAMPLES, Stage, Tap, Wrong, skip

from blocks_cron import LOCAL, Cron

CRON = EXAMPLES / "cron"
# They come together. As long as nxlock has none of them, a skip says so.
COMING = {"--at-least", "--at-most", "--every", "--grace"}


def commands():
    """Every nxlock run in a file of docs/examples: where, and its line."""
    for file in sorted(EXAMPLES.rglob("*")):
        if file.suffix not in (".md", ".cron", ".service", ".sh"):
            continue
        for number, line in enumerate(
                file.read_text("utf-8").splitlines(), 1):
            if not line.startswith("#"):
                for found in re.findall(r"nxlock run (\S+ -.*)", line):
                    yield f"{file.relative_to(EXAMPLES)}:{number}", found


def options(text):
    """Of "NAME [OPTION]... -- COMMAND"; what follows an option is none."""
    words = shlex.split(text)[1:]
    for end in ("--", "-c"):
        if end in words:
            words = words[:words.index(end) + (end == "-c")]
    return [word.split("=")[0] for word in words if word.startswith("-")]


def known(stage):
    text = subprocess.run(
        [stage.place.bin / "nxlock", "run", "--help"], env=stage.env,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
        check=False).stdout
    return set(re.findall(r"(?:^ +|^ +-\w, )(-{1,2}[a-zA-Z][\w-]*)", text,
                          re.M))


def check_options(tap, has):
    lacking = [(where, option) for where, text in commands()
               for option in options(text) if option not in has]
    if not COMING & has and lacking and \
            {option for _, option in lacking} <= COMING:
        skip(tap, "the options exist", "nxlock run does not know yet: " +
             " ".join(sorted({option for _, option in lacking})))
    else:
        tap.check(not lacking and any(commands()), "the options exist",
                  "\n".join(" ".join(entry) for entry in lacking))


def runnable(tap, has, name, text):
    """Or a skip that says what it needs."""
    lacking = sorted(set(options(text)) - has)
    if lacking and not COMING & has:
        skip(tap, name, "nxlock run does not know yet: " + " ".join(lacking))
        return False
    return True


def crontab(tap, stage, has):
    home = stage.folder / "home"
    home.mkdir()
    jobs = 0
    for number, line in enumerate(
            (CRON / "billing.cron").read_text("utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        jobs += 1
        name = f"billing.cron:{number}"
        found = re.search(r"nxlock run (.*)", line)
        if found and not runnable(tap, has, name, found.group(1)):
            continue
        cron = Cron(stage.place, home)
        try:
            cron.line(line)
            tap.check(cron.printed == "", f"{name} runs, and skips silently",
                      cron.printed)
        except Wrong as why:
            tap.check(False, name, why)
    tap.check(jobs > 0, "there are crontab lines")


def verify(tap, stage):
    """As systemd would read them, with the paths of the test."""
    if shutil.which("systemd-analyze") is None:
        skip(tap, "systemd takes the units", "there is no systemd-analyze; "
             "Debian has it in systemd")
        return
    folder = stage.folder / "units"
    folder.mkdir()
    job = stage.place.bin / "billing"
    job.write_text("#!/bin/sh\n")
    job.chmod(0o755)
    units = []
    for file in sorted(CRON.glob("billing.[st]*")):
        units.append(folder / file.name)
        units[-1].write_text(file.read_text("utf-8").replace(
            LOCAL, f"{stage.place.bin}/"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False)
    # It reads the machine's own units, too, which are not ours to judge.
    ours = [line for line in (done.stdout + done.stderr).splitlines()
            if "billing" in line or str(folder) in line]
    tap.check(len(units) == 2 and not ours, "systemd takes the units",
              "\n".join(ours))
    job.unlink()


def service(tap, stage, has):
    text = (CRON / "billing.service").read_text("utf-8")
    line = re.search(r"^ExecStart=(.*)$", text, re.M).group(1)
    good = {0} | {int(code) for code in re.findall(
        r"^SuccessExitStatus=(\d+)$", text, re.M)}
    name = "the service's command"
    if not runnable(tap, has, name, line.partition(" run ")[2]):
        return
    ran = stage.folder / "billing.ran"
    job = stage.place.bin / "billing"
    job.write_text(f"#!/bin/sh\necho >> '{ran}'\n")
    job.chmod(0o755)
    stage.place.server.ask("FLUSHALL") # the crontab's billing was run as well
    words = shlex.split(line.replace(LOCAL, f"{stage.place.bin}/"))
    codes = [stage.start(*words).wait(60) for _ in range(2)]
    runs = len(ran.read_text()) if ran.exists() else 0
    tap.check(codes == [0, 75] and runs == 1 and set(codes) <= good,
              f"{name} runs once a night, and a skip is no failure",
              f"codes {codes}, {runs} runs")


def main(build):
    tap = Tap()
    with Stage(build) as stage:
        has = known(stage)
        check_options(tap, has)
        crontab(tap, stage, has)
        verify(tap, stage)
        service(tap, stage, has)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
