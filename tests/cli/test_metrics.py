#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_metrics.py NXLOCK: the files of --metrics.

What each kind of run writes, and that a run that does not succeed leaves the
file of the last success as it is; that each lock and prefix has files and
labels of its own; that a file is whole however its writers end; and that one
that cannot be written changes nothing else.
"""

import concurrent.futures
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

import metrics_file
from rig import Cases, Server, await_, nx, play

FULL = os.environ.get("NXLOCK_FULL") == "1"
KILLED = 1000 if FULL else 100
NOW = "now"
SOME = (0, 60)  # a duration of a run
LEASE = ("--ttl", "2s", "--grace", "100ms")
RUN, SUCCESS = "nxlock_last_run_", "nxlock_last_success_"


class Scenes(Cases):
    def __init__(self, nxlock, server):
        super().__init__(nxlock, server)
        self.folder = self.path("metrics")
        self.helps = {}
        os.mkdir(self.folder)

    def command(self, *words, url=None):
        return [self.program, *words[:2], "--metrics", self.folder,
                *(("-u", url) if url else ()), *words[2:]]

    def run(self, *words, url=None):
        return nx(*self.command(*words, url=url)).returncode

    def start(self, *words):
        return subprocess.Popen(
            self.command(*words), stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def file_of(self, kind, name):
        return os.path.join(self.folder, f"{kind}{name}.prom")

    def read(self, name, kind=RUN, lock=None):
        """One file; without it, nothing."""
        path = self.file_of(kind, name)
        if not os.path.exists(path):
            return {}
        labels, found = metrics_file.read(path, self.helps)
        if labels != (lock or (name, "")):
            raise metrics_file.Broken(f"{path}: {labels}")
        return found

    # -------------------------------------------------------------- scenes

    def hold(self, name, more_ms=60000):
        self.server.cli("SET", name, "somebody", "PX", str(more_ms))

    def busy(self, name):
        self.hold(name)
        return self.run("run", name, "-n", "--", "true")

    def waited(self, name):
        self.hold(name, 2000)
        return self.run("run", name, "-w", "20s", "--", "true")

    def not_due(self, name):
        self.run("run", name, "--every", "1h", "--", "true")
        return self.run("run", name, "--every", "1h", "--", "true")

    def with_redis(self, name, *words):
        """A CMD that does this to the server and goes on."""
        command = f"redis-cli -s {self.server.socket} {' '.join(words)}"
        return self.run("run", name, *LEASE, "-c",
                        f"{command} >&2; exec sleep 20")

    def removed(self, name):
        return self.with_redis(name, "DEL", name)

    def frozen(self, name):
        own = self.others[2]
        return self.run("run", name, *LEASE, "-c",
                        f"kill -STOP {own.process.pid}; exec sleep 3",
                        url=own.url)

    def killed(self, name):
        """Its watchdog writes."""
        process = self.start("run", name, *LEASE, "-c",
                             "kill -KILL $NXLOCK_SUPERVISOR_PID; exec sleep 20")
        code = process.wait(60)
        await_(lambda: self.read(name))
        return code

    def interrupted(self, name):
        self.hold(name)
        process = self.start("run", name, "--", "true")
        await_(lambda: self.server.cli("KEYS", f"*{name}*nxl-l") != b"\n" or
               process.poll() is not None)
        process.terminate()
        return process.wait(60)

    def done_before(self, name):
        self.run("once", name, "--", "true")
        return self.run("once", name, "--", "true")

    def several(self, name):
        urls = [f"{server.url}?guard_restarts=off"
                for server in (self.server, *self.others[:2])]
        return self.run("run", name, "--", "true", url=",".join(urls))

    def failed_later(self, name):
        """The last success stays as it was."""
        self.run("run", name, "--", "true")
        before = os.stat(self.file_of(SUCCESS, name))
        code = self.run("run", name, "-c", "exit 3")
        after = os.stat(self.file_of(SUCCESS, name))
        return code if before == after else "written anew"


RAN = {"duration_seconds": SOME}
SUCCEEDED = {"timestamp_seconds": NOW, **RAN}
NOWHERE = "unix:///nonexistent/socket"


def plain(*words, **more):
    return lambda scenes, name: scenes.run(words[0], name, *words[1:], **more)


# A scene, how it runs, its exit code, its result, what else the file of the
# last run has beside what each has, and whether there is one of a success.
TABLE = (
    ("done", plain("run", "--", "sleep", "0.01"), 0, "done", RAN, True),
    ("failed", plain("run", "-c", "sleep 0.01; exit 3"), 3, "failed", RAN,
     False),
    ("failed later", Scenes.failed_later, 3, "failed", RAN, True),
    ("busy", Scenes.busy, 75, "busy", {}, False),
    ("waited", Scenes.waited, 0, "done", {**RAN, "wait_seconds": (0.1, 20)},
     True),
    ("not due", Scenes.not_due, 75, "not-due", {}, True),
    ("renewed", plain("run", *LEASE, "--", "sleep", "1.2"), 0, "done",
     {**RAN, "hold_seconds": (1, 60), "least_slack_seconds": (0.1, 2)}, True),
    ("removed", Scenes.removed, 79, "lost",
     {**RAN, "least_slack_seconds": (-1, 2)}, False),
    ("frozen", Scenes.frozen, 79, "lost",
     {**RAN, "least_slack_seconds": (-1, 2)}, False),
    ("killed", Scenes.killed, -signal.SIGKILL, "lost", {}, False),
    ("interrupted", Scenes.interrupted, 128 + signal.SIGTERM, "interrupted",
     {}, False),
    ("down", plain("run", "-n", "--", "true", url=NOWHERE), 69, "down", {},
     False),
    ("not found", plain("run", "--", "/nonexistent/program"), 127, "failed",
     RAN, False),
    ("once done", plain("once", "--", "sleep", "0.01"), 0, "done", RAN, True),
    ("once done before", Scenes.done_before, 0, "done-before", {}, True),
    ("once in doubt", plain("once", "-c", "sleep 0.01; exit 3"), 3, "doubt",
     RAN, False),
    ("several servers", Scenes.several, 0, "done", RAN, True),
)


def differs(found, expected):
    """What a file has that was not expected, or the other way round. From -1
    on: it may also be missing."""
    for key in sorted({*found, *expected}):
        low = expected.get(key, (1, 0))
        if low == NOW:
            low = time.time() - 60, time.time() + 1
        elif not isinstance(low, tuple) or isinstance(low[0], str):
            low = low, low
        if key not in found and low[0] == -1:
            continue
        if key not in found or not low[0] <= found[key] <= low[1]:
            yield f"{key}: {found.get(key)}, not {low}"


def short(found):
    return {key.removeprefix(RUN).removeprefix(SUCCESS): value
            for key, value in found.items()}


def kind(scenes, row):
    """Runs a scene: what is wrong with it."""
    scene, act, wanted, result, more, succeeds = row
    name = "scene-" + re.sub(r"\W+", "-", scene)
    exit_code = 79 if wanted == -signal.SIGKILL else wanted
    try:
        code = act(scenes, name)
        wrong = list(differs(short(scenes.read(name)), {
            "timestamp_seconds": NOW, "exit_code": exit_code,
            "result": ("result", result), "wait_seconds": SOME,
            "hold_seconds": SOME, **more}))
        wrong += differs(short(scenes.read(name, SUCCESS)),
                         SUCCEEDED if succeeds else {})
    except (OSError, metrics_file.Broken) as error:
        return repr(error)
    if code != wanted:
        wrong.append(f"exit code {code}, not {wanted}")
    return "\n".join(wrong)


def each_kind(scenes):
    """Most of each is sleep, so they run at once."""
    # The servers are started by this thread, for they end with it.
    with Server() as second, Server() as third, Server() as frozen, \
            concurrent.futures.ThreadPoolExecutor(6) as pool:
        scenes.others = second, third, frozen
        results = pool.map(lambda row: kind(scenes, row), TABLE)
        for row, wrong in zip(TABLE, results):
            scenes.check(not wrong, row[0], wrong)
    scenes.check(not set(os.listdir(scenes.folder)) - {
        f"{kind_}scene-{re.sub(chr(92) + 'W+', '-', row[0])}.prom"
        for row in TABLE for kind_ in (RUN, SUCCESS)}, "no other file is left",
        os.listdir(scenes.folder))
    if shutil.which("promtool"):
        for name in os.listdir(scenes.folder):
            with open(os.path.join(scenes.folder, name), "rb") as file:
                done = subprocess.run(
                    ["promtool", "check", "metrics"], stdin=file,
                    capture_output=True, check=False)
            scenes.check(done.returncode == 0,
                         f"promtool understands {name}",
                         done.stdout + done.stderr)
    else:
        print("# SKIP promtool: not installed (Debian package prometheus)")


def wrong_url(scenes):
    """The prefix is not known then, so neither is the file."""
    code = scenes.run("run", "wrong-url", "--", "true", url="redis://host:port")
    scenes.equal((code, scenes.read("wrong-url")), (78, {}), "a wrong URL")


# A prefix, a name, and how they are written in the names of the files.
NAMES = (
    ("", 'a"b\\c\nd', "a%22b%5Cc%0Ad"), ("", "../x/y", "..%2Fx%2Fy"),
    ("", "\u00fc{}= #", "%C3%BC%7B%7D%3D%20%23"), ("", "\t\r", "%09%0D"),
    ("", "a%2Fb", "a%252Fb"), ("", "a/b", "a%2Fb"),
    ("a", "bc", "a+bc"), ("ab", "c", "ab+c"), ("", "a+bc", "a%2Bbc"),
    ("", "abc", "abc"), ("p:", "k", "p%3A+k"), ("", "n" * 225, "n" * 225))


def names(scenes):
    """Any text; each prefix and name has files, and labels, of its own."""
    before = len(os.listdir(scenes.folder))
    for prefix, name, written in NAMES:
        code = scenes.run("run", name, *(
            ("--prefix", prefix) if prefix else ()), "--", "true")
        good = all(scenes.read(written, kind_, (name, prefix))
                   for kind_ in (RUN, SUCCESS))
        scenes.check(code == 0 and good,
                     f"the prefix {prefix!r} and the name {name[:9]!r}",
                     f"{code}\n{os.listdir(scenes.folder)}")
    scenes.equal(len(os.listdir(scenes.folder)) - before, 2 * len(NAMES),
                 "no two share a file")
    before = sorted(os.listdir(scenes.folder))
    for name, why in ((os.fsdecode(b"x\xffy"), b"not UTF-8"),
                      ("n" * 240, b"too long"), (80 * "/", b"too long")):
        done = nx(*scenes.command("run", name, "-c", "exit 3"))
        scenes.check(
            done.returncode == 3 and why in done.stderr and
            done.stderr.count(b"\n") == 1 and
            sorted(os.listdir(scenes.folder)) == before,
            f"a name that has no file: {why.decode()}", done.stderr)


def refused(scenes):
    """Directories that cannot be written: a warning, and the run is as
    without --metrics."""
    own = scenes.folder
    file = os.path.join(scenes.server.folder, "file")
    with open(file, "wb"):
        pass
    for folder, remedy in ((file, ""), (own + "/none", "; create it"),
                           ("/proc", "")):
        scenes.folder = folder
        for code in (0, 3):
            done = nx(*scenes.command("run", "refused", "-c", f"exit {code}"))
            lines = done.stderr.decode().splitlines()
            scenes.check(
                done.returncode == code and len(lines) == 1 and
                f"cannot write metrics to the directory '{folder}': "
                in lines[0] and lines[0].endswith(remedy),
                f"{folder}: exit code {code}", lines)
    scenes.folder = own


def sticky(scenes):
    """A file of another user in a directory such as /tmp cannot be replaced:
    the warning has the reason, and what to do."""
    # root may replace any file only by CAP_FOWNER.
    limited = ("setpriv", "--bounding-set=-fowner")
    if os.getuid() != 0 or nx(*limited, "true").returncode != 0:
        print("# not root: no file of another user")
        return
    own = scenes.folder
    scenes.folder = os.path.join(scenes.server.folder, "sticky")
    os.mkdir(scenes.folder)
    scenes.run("run", "sticky", "-c", "exit 3")
    os.chown(scenes.file_of(RUN, "sticky"), 65534, 65534)
    os.chown(scenes.folder, 65534, 65534)
    os.chmod(scenes.folder, 0o1777)
    done = nx(*limited, *scenes.command("run", "sticky", "-c", "exit 3"))
    scenes.check(
        done.returncode == 3 and b"sticky" in done.stderr and
        b"use another directory" in done.stderr, "a sticky directory",
        done.stderr)
    scenes.equal(os.listdir(scenes.folder), [f"{RUN}sticky.prom"],
                 "nothing is left there")
    scenes.folder = own


def at_once(scenes):
    """Runs of one name at once, with any umask: the file is that of one."""
    loop = "umask 077; for i in $(seq 5); do \"$@\"; done"
    processes = [subprocess.Popen(
        ["sh", "-c", loop, "sh",
         *scenes.command("run", "at-once", "--", "true")],
        stdin=subprocess.DEVNULL) for _ in range(6)]
    for process in processes:
        process.wait(120)
    for kind_ in (RUN, SUCCESS):
        scenes.check(scenes.read("at-once", kind_), "runs at once")
        mode = os.stat(scenes.file_of(kind_, "at-once")).st_mode
        scenes.equal(stat.S_IMODE(mode), 0o644,
                     "node_exporter may read the file")


def killed(scenes):
    """Runs that are killed at any moment. They skip, so most of what each does
    is to write."""
    rng = random.Random()
    scenes.hold("killed", 600000)
    command = scenes.command("run", "killed", "-n", "-E", "0", "--", "true")
    nx(*command)
    begin = time.monotonic()
    for _ in range(5):
        nx(*command)
    most = 1.2 * (time.monotonic() - begin) / 5
    wrong, dead, tries = [], 0, 0
    while dead < KILLED and tries < 4 * KILLED and not wrong:
        tries += 1
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        time.sleep(rng.random() * most)
        process.kill()
        dead += process.wait(60) != 0
        try:
            wrong += differs(short(scenes.read("killed")), {
                "timestamp_seconds": NOW, "exit_code": 0,
                "result": ("result", "busy"), "wait_seconds": SOME,
                "hold_seconds": 0})
        except (OSError, metrics_file.Broken) as error:
            wrong.append(repr(error))
    scenes.check(not wrong and dead == KILLED,
                 f"killed {KILLED} times", f"{dead}\n" + "\n".join(wrong))
    left = [name for name in os.listdir(scenes.folder)
            if not name.endswith(".prom")]
    scenes.check(all(name.startswith(".nxlock-") for name in left),
                 "node_exporter ignores what they left", left)


if __name__ == "__main__":
    sys.exit(play(Scenes, each_kind, wrong_url, names, refused, at_once, sticky,
                  killed))
