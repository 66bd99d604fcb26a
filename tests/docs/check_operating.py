#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_operating.py NXLOCK BUILD_DIR ROOT: docs/operating.md, as its reader
would use it. TAP.

The crontab line writes the files that the page says, with the metrics of its
tables; the alert rules are such that Prometheus takes them, and fire when they
should (promtool, where it is installed); the program compiles, and prints what
nxl_client_stats() has, in the same format.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True  # the source tree stays as it is

ROOT = pathlib.Path(sys.argv[3])
sys.path.insert(0, str(ROOT / "tests/cli"))

import metrics_file
from rig import Server, Tap, await_, clean_environment

SENTINELS = ("nxlock_last_run_sentinels_naming", "nxlock_last_run_unconfirmed")
FOLDER = "/var/lib/prometheus/node-exporter"
RULE_TEST = """
rule_files: [rules.yml]
evaluation_interval: 10m
tests:
  - interval: 10m
    input_series:
      # It ran on b at the beginning; a skips it, and has never run it.
      - series: 'SUCCESS{lock="backup",prefix="",instance="b"}'
        values: '0x200'
      - series: 'RUN{lock="backup",prefix="",instance="a"}'
        values: '0+600x200'
      - series: 'SUCCESS{lock="often",prefix="",instance="a"}'
        values: '0+600x200'
      # The same name with a prefix is another job.
      - series: 'SUCCESS{lock="often",prefix="old:",instance="a"}'
        values: '0x200'
      # The only machine with this job dies after an hour.
      - series: 'SUCCESS{lock="alone",prefix="",instance="c"}'
        values: '0x6 stale _x200'
      - series: 'RUN{lock="never",prefix="",instance="a"}'
        values: '0+600x200'
    alert_rule_test:
      - eval_time: 25h
        alertname: CronJobHasNotRun
        exp_alerts: []
      - eval_time: 27h
        alertname: CronJobHasNotRun
        exp_alerts:
          - exp_labels: {severity: page, lock: backup}
            exp_annotations:
              summary: "backup has not succeeded for 1d 3h 0m 0s"
          - exp_labels: {severity: page, lock: often, prefix: "old:"}
            exp_annotations:
              summary: "old:often has not succeeded for 1d 3h 0m 0s"
          - exp_labels: {severity: page, lock: alone}
            exp_annotations:
              summary: "alone has not succeeded for 1d 3h 0m 0s"
      - eval_time: 27h
        alertname: CronJobNeverSucceeded
        exp_alerts:
          - exp_labels: {severity: page, lock: never}
            exp_annotations: {summary: "never runs, but never with success"}
"""
MAIN = """
int main(void)
{
    nxl_client *client;
    nxl_lock *lock;

    if (nxl_client_new(&client, getenv("NXLOCK_URL"), NULL) != NXL_OK ||
        nxl_lock_new(&lock, client, "example", NULL) != NXL_OK ||
        nxl_lock_acquire(lock, 0) != NXL_OK ||
        nxl_lock_release(lock) != NXL_OK)
        return 1;
    print_lock_metrics(stdout, client);
    nxl_lock_free(lock);
    nxl_client_free(client);
    return 0;
}
"""


def block(page, kind):
    """The one block of this kind; those of a list are indented."""
    found = re.findall(rf"^( *)```{kind}\n(.*?)^ *```$", page, re.M | re.S)
    assert len(found) == 1, f"{len(found)} blocks of {kind}"
    return textwrap.dedent(found[0][1])


def cron(tap, nxlock, page, folder):
    """What the crontab line writes, with a renewal in between and the guard
    against failovers: the metrics of the last run, and those of the last
    success."""
    line = block(page, "cron").strip()
    tap.check(f"directory={FOLDER}" in page and f" {FOLDER} " in line,
              "one directory")
    command = line.split(None, 5)[5].replace(FOLDER, folder)
    command = command.replace("/usr/local/bin/nxlock", nxlock) \
        .replace("/usr/local/bin/backup", "sleep 0.8") \
        .replace("-n ", "-n --ttl 1500ms ")
    guarded = {**os.environ, "NXLOCK_URL": os.environ["NXLOCK_URL"] +
               "?guard_failover=on&max_ttl_ms=1500"}
    tap.check(await_(lambda: subprocess.run(
        [nxlock, "run", "old-enough", "-n", "--ttl", "1500ms", "--", "true"],
        env=guarded, capture_output=True, timeout=60,
        check=False).returncode == 0), "the server is old enough")
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True,
                          env=guarded, timeout=60, check=False)
    tap.equal((done.returncode, done.stdout, done.stderr), (0, b"", b""),
              "the crontab line")
    return [metrics_file.read(os.path.join(
        folder, f"nxlock_last_{what}_backup.prom"))[1]
            for what in ("run", "success")]


def tables(tap, page, run, success):
    listed = re.findall(r"^\| `(nxlock_\w+)(?:\{(\w+)=\})?`", page, re.M)
    named = [name for name, _ in listed]
    # Those of Sentinels are checked by ../cli/test_sentinels.py.
    tap.equal(sorted(name for name in named if name not in SENTINELS),
              sorted([*run, *success]), "its metrics")
    tap.check(all(name in named for name in SENTINELS), "those of Sentinels")
    labels = [label for _, label in listed if label]
    tap.equal(labels, ["result"], "one label")
    header = (ROOT / "src/cli/report/event.c").read_text("utf-8")
    words = re.findall(r"^    \[RESULT_\w+\] = \{\"([\w-]+)\"", header, re.M)
    table = page.split("| `result` |")[1].split("\n\n")[0]
    tap.equal(re.findall(r"^\| `([\w-]+)`", table, re.M), words, "its results")
    for name in set(re.findall(r"nxlock_last_\w+_seconds", page)) - \
            {*run, *success}:
        tap.check(False, f"{name} is a metric")


def rule(tap, page, folder):
    if not shutil.which("promtool"):
        print("# SKIP the alert rules: no promtool (Debian package prometheus)")
        return
    for name, text in (("rules.yml", block(page, "yaml")),
                       ("test.yml", RULE_TEST.replace(
                           "SUCCESS", "nxlock_last_success_timestamp_seconds")
                        .replace("RUN", "nxlock_last_run_timestamp_seconds"))):
        pathlib.Path(folder, name).write_text(text, "utf-8")
    for words in (["check", "rules", "rules.yml"],
                  ["test", "rules", "test.yml"]):
        done = subprocess.run(["promtool", *words], cwd=folder, timeout=60,
                              capture_output=True, text=True, check=False)
        tap.check(done.returncode == 0, " ".join(["promtool", *words]),
                  done.stdout + done.stderr)


def program(tap, build, page, folder):
    source = pathlib.Path(folder, "example.c")
    source.write_text(
        "#include <stdlib.h>\n" + block(page, "c") + MAIN, "utf-8")
    made = subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", str(source),
         "-o", f"{folder}/example", f"-L{build}/src", "-lnxlock",
         f"-Wl,-rpath,{build}/src"],
        capture_output=True, text=True, timeout=120, check=False)
    if not tap.check(made.returncode == 0, "the program compiles", made.stderr):
        return
    text = subprocess.run([f"{folder}/example"], capture_output=True, text=True,
                          timeout=60, check=False).stdout
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=text,
                              capture_output=True, text=True, check=False)
        # 3: a style that it would like better, such as HELP lines.
        tap.check(done.returncode in (0, 3), "promtool understands it",
                  done.stderr)
    for kind in ("wait", "hold"):
        buckets = re.findall(
            rf'^myapp_lock_{kind}_seconds_bucket{{le="([^"]+)"}} (\d+)$',
            text, re.M)
        values = [int(value) for _, value in buckets]
        limits = [float(limit) for limit, _ in buckets]
        tap.check(len(values) == 24 and values == sorted(values) and
                  limits == sorted(limits) and values[-1] == 1 and
                  limits[0] == 0.001, f"the buckets of {kind}", text)
    tap.check('acquires_total{result="granted"} 1\n' in text, "the counters")


def main(nxlock, build):
    page = (ROOT / "docs/operating.md").read_text("utf-8")
    tap = Tap()
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        clean_environment(server)
        tables(tap, page, *cron(tap, nxlock, page, folder))
        rule(tap, page, folder)
        program(tap, build, page, folder)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
