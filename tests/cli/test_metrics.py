#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_metrics.py NXLOCK: the file of --metrics.

What each kind of run adds to it, and that whatever it does not add stays as it
was; that a file is whole however its writers end, and loses nothing; and that a
file which cannot be written changes nothing else.
"""

import concurrent.futures
import contextlib
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is

import metrics_file
from rig import Server, Tap, await_, clean_environment, nx

FULL = os.environ.get("NXLOCK_FULL") == "1"
KILLED = 1000 if FULL else 100
NOW = "now"
SOME = (0, 60)  # a duration of a run
LEASE = ("--ttl", "2s", "--grace", "100ms")


class Scenes:
    def __init__(self, tap, nxlock, server, *others):
        self.tap, self.nxlock, self.server = tap, nxlock, server
        self.others = others
        self.file = os.path.join(server.folder, "nxlock.prom")

    def command(self, *words, url=None):
        return [self.nxlock, *words[:2], "--metrics", self.file,
                *(("-u", url) if url else ()), *words[2:]]

    def run(self, *words, url=None):
        return nx(*self.command(*words, url=url)).returncode

    def start(self, *words):
        return subprocess.Popen(
            self.command(*words), stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def read(self, name):
        """What the file says of a lock, without what is 0."""
        found = {}
        for metric, rows in metrics_file.read(self.file).items():
            for (lock, label), value in rows.items():
                if lock == name and value:
                    found[metric.removeprefix("nxlock_"), label] = value
        return found

    def total(self, name):
        return sum(value for (metric, _), value in self.read(name).items()
                   if metric == "runs_total")

    # -------------------------------------------------------------- scenes

    def hold(self, name, more_ms=60000):
        self.server.cli("SET", name, "somebody", "PX", str(more_ms))

    def busy(self, name):
        self.hold(name)
        return self.run("run", name, "-n", "--", "true")

    def waited(self, name):
        self.hold(name, 400)
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

    def taken(self, name):
        return self.with_redis(name, "SET", name, "other")

    def freeze(self, name, own, *words):
        return self.run("run", name, *LEASE, *words, "-c",
                        f"kill -STOP {own.process.pid}; exec sleep 3",
                        url=own.url)

    def frozen(self, name):
        return self.freeze(name, self.others[2])

    def frozen_warn(self, name):
        return self.freeze(name, self.others[3], "--on-lost", "warn")

    def stopped(self, name):
        """nxlock is stopped until its watchdog has ended CMD."""
        note = os.path.join(self.server.folder, "pid")
        process = self.start("run", name, *LEASE, "-c", f"echo $$ > {note}; "
                             "kill -STOP $NXLOCK_SUPERVISOR_PID; exec sleep 20")
        await_(lambda: os.path.exists(note) and os.path.getsize(note) > 1)
        with open(note, encoding="ascii") as file:
            await_(lambda pid=int(file.read()):
                   not os.path.exists(f"/proc/{pid}"))
        os.kill(process.pid, signal.SIGCONT)
        return process.wait(60)

    def killed(self, name):
        """Its watchdog writes."""
        process = self.start("run", name, *LEASE, "-c",
                             "kill -KILL $NXLOCK_SUPERVISOR_PID; exec sleep 20")
        code = process.wait(60)
        await_(lambda: os.path.exists(self.file) and self.read(name))
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
        urls = [f"{server.url}?guard_restarts=0"
                for server in (self.server, *self.others[:2])]
        return self.run("run", name, "--", "true", url=",".join(urls))


HELD = {"attempts_total": (1, 9), "hold_seconds_total": SOME,
        "wait_seconds_total": SOME, "last_duration_seconds": SOME}
DONE = {"runs_total done": 1, "last_success_timestamp_seconds": NOW, **HELD}
LOST = {"runs_total lost": 1, **HELD, "renewals_total": (0, 99),
        "renewal_failures_total": (0, 99), "last_least_slack_seconds": SOME}
SKIPPED = {"last_skip_timestamp_seconds": NOW}
NOWHERE = "unix:///nonexistent/socket"


def plain(*words, **more):
    return lambda scenes, name: scenes.run(words[0], name, *words[1:], **more)


# A scene, how it runs, its exit code, and what it adds; the rest stays 0.
TABLE = (
    ("done", plain("run", "--", "sleep", "0.01"), 0, DONE),
    ("failed", plain("run", "-c", "sleep 0.01; exit 3"), 3,
     {"runs_total failed": 1, **HELD}),
    ("busy", Scenes.busy, 75,
     {"runs_total busy": 1, **SKIPPED, "attempts_total": (1, 9),
      "wait_seconds_total": SOME}),
    ("waited", Scenes.waited, 0,
     {**DONE, "waits_total": 1, "wait_seconds_total": (0.1, 20)}),
    ("not due", Scenes.not_due, 75,
     {**DONE, "runs_total not-due": 1, **SKIPPED}),
    ("renewed", plain("run", *LEASE, "--", "sleep", "1.2"), 0,
     {**DONE, "renewals_total": (1, 9), "last_least_slack_seconds": (0.1, 2)}),
    ("removed", Scenes.removed, 79, {**LOST, "losses_total removed": 1}),
    ("taken", Scenes.taken, 79, {**LOST, "losses_total taken": 1}),
    # Either the library or the watchdog is the first to know.
    ("frozen", Scenes.frozen, 79,
     {**LOST, "losses_total unreachable": (0, 1), "losses_total late": (0, 1)}),
    ("frozen, warn", Scenes.frozen_warn, 79,
     {**LOST, "losses_total unreachable": 1}),
    ("stopped", Scenes.stopped, 79, {**LOST, "losses_total expired": (0, 1),
                                     "losses_total late": (0, 1)}),
    ("killed", Scenes.killed, -signal.SIGKILL,
     {**LOST, "losses_total late": 1, "attempts_total": (0, 9)}),
    ("interrupted", Scenes.interrupted, 128 + signal.SIGTERM,
     {"runs_total interrupted": 1, "attempts_total": (1, 9),
      "waits_total": (0, 1), "wait_seconds_total": SOME}),
    ("down", plain("run", "-n", "--", "true", url=NOWHERE), 69,
     {"runs_total down": 1, "server_down_total": 1, "attempts_total": (0, 9),
      "waits_total": (0, 1), "wait_seconds_total": SOME}),
    ("on-down skip", plain("run", "-n", "--on-down", "skip", "--", "true",
                           url=NOWHERE), 0,
     {"runs_total down": 1, "server_down_total": 1, **SKIPPED,
      "attempts_total": (0, 9), "waits_total": (0, 1),
      "wait_seconds_total": SOME}),
    ("on-down run", plain("run", "-n", "--on-down", "run", "--", "sleep",
                          "0.01", url=NOWHERE), 0,
     {**DONE, "server_down_total": 1, "attempts_total": (0, 9),
      "hold_seconds_total": SOME}),
    ("not found", plain("run", "--", "/nonexistent/program"), 127,
     {"runs_total failed": 1, **HELD}),
    ("wrong url", plain("run", "--", "true", url="redis://host:port"), 78,
     {"runs_total error": 1}),
    ("once done", plain("once", "--", "sleep", "0.01"), 0, DONE),
    ("once done before", Scenes.done_before, 0,
     {**DONE, "runs_total done-before": 1, **SKIPPED}),
    ("once in doubt", plain("once", "-c", "sleep 0.01; exit 3"), 3,
     {"runs_total doubt": 1, **HELD}),
    ("several servers", Scenes.several, 0, DONE),
)


def differs(found, expected):
    """What the file says that was not expected, or the other way round."""
    losses = sum(value for (metric, _), value in found.items()
                 if metric == "losses_total")
    if losses != expected.get("runs_total lost", 0):
        yield f"{losses} losses"
    wanted = {tuple((key + " ").split(" ")[:2]): value
              for key, value in expected.items()}
    for key in sorted({*found, *wanted}):
        low = high = wanted.get(key, 0)
        if low == NOW:
            low, high = time.time() - 60, time.time() + 1
        elif isinstance(low, tuple):
            low, high = low
        if not low <= found.get(key, 0) <= high:
            yield f"{key}: {found.get(key, 0)}, not {low} ... {high}"


def kind(scenes, row):
    """Runs a scene: what is wrong with it."""
    scene, act, wanted, expected = row
    name = "scene-" + re.sub(r"\W+", "-", scene)
    try:
        code = act(scenes, name)
        wrong = list(differs(scenes.read(name), expected))
    except (OSError, metrics_file.Broken) as error:
        return repr(error)
    if code != wanted:
        wrong.append(f"exit code {code}, not {wanted}")
    return "\n".join(wrong)


def each_kind(scenes):
    """Most of each is sleep, so they run at once, and share the file."""
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        results = pool.map(lambda row: kind(scenes, row), TABLE)
        for row, wrong in zip(TABLE, results):
            scenes.tap.check(not wrong, row[0], wrong)
    if shutil.which("promtool"):
        with open(scenes.file, "rb") as file:
            done = subprocess.run(["promtool", "check", "metrics"], stdin=file,
                                  capture_output=True, check=False)
        scenes.tap.check(done.returncode == 0, "promtool understands it",
                         done.stdout + done.stderr)


def names(scenes):
    """Any bytes; and a row of its own for each name."""
    tap = scenes.tap
    for name, read in (('a"b\\c\nd', 'a"b\\c\nd'),
                       ("\u00fc{}= #", "\u00fc{}= #"),
                       (os.fsdecode(b"x\xffy"), "x\ufffdy"), ("\t\r", "\t\r"),
                       ("n" * 30000, "n" * 30000)):
        before = scenes.read("scene-done")
        code = scenes.run("run", name, "--", "true")
        tap.equal((code, scenes.total(read), scenes.read("scene-done")),
                  (0, 1, before), f"the name {name[:9]!r}")


def refused(scenes):
    """Files that are left as they are; the run is as without --metrics."""
    folder = os.path.join(scenes.server.folder, "refused")
    os.mkdir(folder)
    with open(scenes.file, "rb") as file:
        whole = file.read()
    link = os.path.join(folder, "link")
    os.symlink(scenes.file, link)
    os.mkfifo(os.path.join(folder, "fifo"))
    contents = {
        "foreign": b"up 1\n",
        "half": whole[:len(whole) // 2],
        "no end": whole[:-len(b"# EOF\n")],
        "cut end": whole[:-1],
        "more": whole + b"more\n",
        "twice": whole + whole,
        "zero byte": whole + b"\0",
        "other metric": whole.replace(b"runs_total{", b"walks_total{", 1),
        "other label": whole.replace(b'"done"', b'"won"', 1),
        "negative": whole.replace(b"} 0\n", b"} -1\n", 1),
        "no number": whole.replace(b"} 0\n", b"} x\n", 1),
        "open quote": whole.replace(b'"} 0\n', b"} 0\n", 1),
        "too large": whole.replace(b"} 0\n", b"} " + b"9" * 40 + b"\n", 1)}
    for what, content in contents.items():
        with open(os.path.join(folder, what), "wb") as file:
            file.write(content)
    for what in (*contents, "fifo", "link", "", "none/x.prom"):
        scenes.file = os.path.join(folder, what)
        done = nx(*scenes.command("run", "refused", "-c", "exit 3"))
        lines = done.stderr.decode().splitlines()
        good = done.returncode == 3 and len(lines) == 1 and \
            f"cannot write metrics to '{scenes.file}': " in lines[0]
        if what in contents:
            with open(scenes.file, "rb") as file:
                good = good and file.read() == contents[what]
        scenes.tap.check(good, f"refused: {what or 'a directory'}", lines)
    scenes.tap.equal(sorted(os.listdir(folder)),
                     sorted([*contents, "fifo", "link"]), "nothing is left")
    scenes.file = os.path.join(folder, "empty")
    with open(scenes.file, "wb"):
        pass
    scenes.run("run", "empty", "--", "true")
    scenes.tap.equal(scenes.total("empty"), 1, "an empty file is a new one")


def sticky(scenes):
    """A file of another user in a directory such as /tmp cannot be replaced:
    that is said, with what to do."""
    # root may replace any file only by CAP_FOWNER.
    plain = ("setpriv", "--bounding-set=-fowner")
    if os.getuid() != 0 or nx(*plain, "true").returncode != 0:
        print("# not root: no file of another user")
        return
    own, folder = scenes.file, os.path.join(scenes.server.folder, "sticky")
    os.mkdir(folder)
    scenes.file = os.path.join(folder, "x.prom")
    scenes.run("run", "sticky", "--", "true")
    os.chown(scenes.file, 65534, 65534)
    os.chown(folder, 65534, 65534)
    os.chmod(folder, 0o1777)
    done = nx(*plain, *scenes.command("run", "sticky", "-c", "exit 3"))
    scenes.tap.check(
        done.returncode == 3 and b"sticky" in done.stderr and
        b"a file of its own" in done.stderr, "a sticky directory",
        done.stderr)
    scenes.tap.equal(sorted(os.listdir(folder)), ["x.prom"],
                     "nothing is left there")
    scenes.file = own


def beside(scenes):
    """What is beside the file stays, whatever its name is."""
    own = scenes.file
    for what in ("beside.new", "beside"):
        scenes.file = os.path.join(scenes.server.folder, what)
        scenes.run("run", what, "--", "true")
    scenes.file += ".new"
    scenes.tap.check(os.path.exists(scenes.file) and
                     scenes.total("beside.new") == 1,
                     "a file whose name ends in .new stays")
    scenes.file = own


def full(scenes):
    """A file of 1000 names takes no other, and still counts its own."""
    with open(scenes.file, encoding="utf-8") as file:
        text = file.read()
    with open(scenes.file, "w", encoding="utf-8") as file:
        for line in text.splitlines(True):
            file.writelines(
                [line.replace('"empty"', f'"empty{i}"') for i in range(1000)]
                if "{" in line else [line])
    scenes.run("run", "empty7", "--", "true")
    done = nx(*scenes.command("run", "other", "--", "true"))
    scenes.tap.equal((scenes.total("empty7"), scenes.total("other"),
                      done.returncode, b"1000 names" in done.stderr),
                     (2, 0, 0, True), "1000 names")


def at_once(scenes):
    """Runs at once, two for each name: none is lost, by any umask."""
    scenes.file = os.path.join(scenes.server.folder, "at-once.prom")
    each, names_ = 5, [f"at-once-{i}" for i in range(4)]
    loop = f"umask 077; for i in $(seq {each}); do \"$@\"; done"
    processes = [subprocess.Popen(
        ["sh", "-c", loop, "sh", *scenes.command("run", name, "--", "true")],
        stdin=subprocess.DEVNULL) for name in names_ * 2]
    for process in processes:
        process.wait(120)
    scenes.tap.equal([scenes.total(name) for name in names_],
                     [2 * each] * len(names_), "runs at once")
    scenes.tap.equal(stat.S_IMODE(os.stat(scenes.file).st_mode), 0o644,
                     "node_exporter may read it")


def locked(scenes):
    """Another process has the directory for long: a warning, no harm."""
    folder = os.path.dirname(scenes.file)
    with subprocess.Popen(["flock", folder, "sh", "-c", "echo; exec cat"],
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        done = nx(*scenes.command("run", "locked", "-c", "exit 3"))
        other.stdin.close()
    scenes.tap.check(done.returncode == 3 and b"locked for 5 s" in done.stderr,
                     "a directory that is locked", done.stderr)


def killed(scenes):
    """Runs that are killed at any moment. They skip, so most of what each does
    is to write; and the file is long, for other names are in it."""
    rng = random.Random()
    scenes.file = os.path.join(scenes.server.folder, "killed.prom")
    scenes.hold("killed", 600000)
    for name in range(20):
        scenes.run("run", f"other-{name}", "--", "true")
    command = scenes.command("run", "killed", "-n", "-E", "0", "--", "true")
    nx(*command)
    begin = time.monotonic()
    for _ in range(5):
        nx(*command)
    most = 1.2 * (time.monotonic() - begin) / 5
    count, dead, wrong = scenes.total("killed"), 0, []
    tries = 0
    while dead < KILLED and tries < 4 * KILLED:
        tries += 1
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        time.sleep(rng.random() * most)
        process.kill()
        ended = process.wait(60) == 0
        dead += not ended
        try:
            now = scenes.total("killed")
        except (OSError, metrics_file.Broken) as error:
            wrong.append(repr(error))
            break
        if not count + ended <= now <= count + 1:
            wrong.append(f"{count}, then {now}; ended: {ended}")
        count = now
    scenes.tap.check(not wrong and dead == KILLED,
                     f"killed {KILLED} times", f"{dead}\n" + "\n".join(wrong))
    nx(*command)
    scenes.tap.equal(scenes.total("killed"), count + 1, "then one that is not")
    scenes.tap.equal(
        [name for name in os.listdir(scenes.server.folder)
         if ".nxlock-new" in name], [], "nothing is left beside the file")


def main(nxlock):
    tap = Tap()
    # Not by a thread, for they would end with it.
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server()) for _ in range(5)]
        clean_environment(servers[0])
        scenes = Scenes(tap, nxlock, *servers)
        for act in (each_kind, names, beside, refused, full, at_once, sticky,
                    locked, killed):
            act(scenes)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
