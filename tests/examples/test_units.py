#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_units.py BUILD: the crontab and the systemd units of docs/examples.

cron and systemd would take them, and the commands do what their comments say:
run when the lock is free, skip when it is busy.
"""

import re
import shlex
import shutil
import subprocess
import sys

from stage import EXAMPLES, Stage, Tap, Wrong

from blocks_cron import LOCAL, Cron

CRON = EXAMPLES / "cron"


def crontab(tap, stage):
    home = stage.folder / "home"
    home.mkdir()
    jobs = 0
    for number, line in enumerate(
            (CRON / "billing.cron").read_text("utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        jobs += 1
        name = f"billing.cron:{number}"
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
        tap.skip("systemd takes the units", "there is no systemd-analyze; "
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


def service(tap, stage):
    text = (CRON / "billing.service").read_text("utf-8")
    line = re.search(r"^ExecStart=(.*)$", text, re.M).group(1)
    good = {0} | {int(code) for code in re.findall(
        r"^SuccessExitStatus=(\d+)$", text, re.M)}
    ran = stage.folder / "billing.ran"
    job = stage.place.bin / "billing"
    job.write_text(f"#!/bin/sh\necho >> '{ran}'\n")
    job.chmod(0o755)
    stage.place.server.ask("FLUSHALL") # the crontab's billing was run as well
    words = shlex.split(line.replace(LOCAL, f"{stage.place.bin}/"))
    codes = [stage.start(*words).wait(60) for _ in range(2)]
    runs = len(ran.read_text()) if ran.exists() else 0
    tap.check(codes == [0, 75] and runs == 1 and set(codes) <= good,
              "the service runs once a night, and a skip is no failure",
              f"codes {codes}, {runs} runs")


def main(build):
    tap = Tap()
    with Stage(build) as stage:
        crontab(tap, stage)
        verify(tap, stage)
        service(tap, stage)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
