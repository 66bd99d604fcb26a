#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_lease.py NXLOCK: CMD never outlives its lease. It is renewed while CMD
runs; if that fails or the lock is lost, CMD gets TERM and then KILL before the
server may grant the lock to another, and run exits with 79.
"""

import signal
import sys
import time

from rig import Cases, await_, play
from terminal import gone

# CMD: does $0 on TERM, and else waits for the file go.
CMD = """trap "$0" TERM; echo $$ > new; mv new ready
while [ -e rig ] && [ ! -e go ]; do sleep 0.05; done"""
OBEYS, NOTES, DEAF = ": > got; exit 0", ": > got", ""
LIST = "redis.call('DEL', KEYS[1]) return redis.call('RPUSH', KEYS[1], 'x')"
TAKEN = ("SET", "l", "stranger", "PX", "100000")

# What the server is sent meanwhile; what CMD does on TERM, and options; how
# the type of the key is afterwards.
LOSSES = (
    ("taken by another", TAKEN, OBEYS, (), b"string"),
    ("removed", ("DEL", "l"), DEAF, (), b"none"),
    ("removed", ("DEL", "l"), OBEYS, ("--on-lost", "kill"), b"none"),
    ("replaced by a list", ("EVAL", LIST, "1", "l"), OBEYS, (), b"list"),
)
# Under a CMD that ends at once. {} is the server, asked by redis-cli.
AT_ONCE = (
    ("removed", "{} DEL l", b"none"),
    ("removed, and CMD fails", "{} DEL l; exit 7", b"none"),
    ("taken by another", "{} SET l stranger", b"string"),
)


class Room(Cases):
    def hold(self, on_term, ttl="900ms", *options, query=""):
        self.remove("ready", "go", "got")
        self.write("rig")
        run = self.launch(
            "run", "l", "--ttl", ttl, *options, "-u", self.server.url + query,
            "--", "sh", "-c", CMD, on_term, cwd=self.server.folder)
        self.check(await_(lambda: self.has("ready")), "CMD runs")
        return run

    def stops(self, given, run, on_term, type_=b"none"):
        """The run ends with 79, and CMD before it."""
        code, _, err = run.ends()
        self.check(code == 79 and "lost 'l'" in err,
                   f"{given}: exit code 79, and a message", (code, err))
        self.check(gone(int(self.text("ready"))), f"{given}: CMD is gone")
        self.equal(self.has("got"), on_term != DEAF, f"{given}: CMD had TERM")
        if type_ is not None:
            self.equal(self.server.cli("TYPE", "l").strip(), type_,
                       f"{given}: the key stays as it was left")
            self.server.cli("DEL", "l")

    def renewed(self):
        run = self.hold(NOTES)
        token = self.server.cli("GET", "l")
        for number in range(4):
            last = [int(self.server.cli("PTTL", "l"))]

            def rises():
                before, last[0] = last[0], int(self.server.cli("PTTL", "l"))
                return last[0] > before
            self.check(await_(rises), f"renewal {number + 1}")
        self.equal(self.server.cli("GET", "l"), token,
                   "renewed: the token is the same")
        self.write("go")
        run.gives("renewed until CMD ends", 0)

    def lost(self):
        for what, words, on_term, options, type_ in LOSSES:
            run = self.hold(on_term, "900ms", *options)
            self.server.cli(*words)
            given = " ".join((what, *options))
            self.stops(given, run, on_term, type_)
        for what, script, type_ in AT_ONCE:
            script = script.format(f"redis-cli -s '{self.server.socket}'")
            given = f"{what}, and CMD ends at once"
            self.gives(given, ["run", "l", "-c", f"exec >&2; {script}"], 79, "",
                       "lost 'l'")
            self.equal(self.server.cli("TYPE", "l").strip(), type_,
                       f"{given}: the key stays as it was left")
            self.server.cli("DEL", "l")

    def silence(self):
        """A server that does not answer."""
        for on_term in OBEYS, DEAF:
            run = self.hold(on_term, "1500ms")
            self.server.freeze()
            self.stops("a server that is silent", run, on_term, None)
            self.server.thaw()
            await_(lambda: self.is_free("l"))

        run = self.hold(DEAF, "1500ms", query="?drift_ppm=300000")
        self.server.cli("CLIENT", "PAUSE", "100000", "WRITE")
        await_(lambda: gone(int(self.text("ready"))))
        self.check(int(self.server.cli("PTTL", "l")) > 0,
                   "drift_ppm: CMD is dead before the server ends the lease")
        self.server.cli("CLIENT", "UNPAUSE")
        self.stops("drift_ppm", run, DEAF, None)
        await_(lambda: self.is_free("l"))

        run = self.hold(NOTES, "3s", query="?timeout_ms=200")
        self.server.freeze()
        run.says(r"cannot renew '.*; trying again for [\d.]*s\n")
        self.server.thaw()
        run.says(r"after all, [\d.]*m?s to spare\n")
        self.write("go")
        run.gives("a short silence", 0, "", "cannot renew 'l'", "after all")
        self.check(not self.has("got"), "a short silence: CMD had no TERM")

        run = self.hold(NOTES, "3s", query="?timeout_ms=200")
        self.server.freeze()
        self.write("go")
        run.gives("a release that is not answered", 0, "",
                  "cannot release 'l': ", "; it expires within 3s")
        self.server.thaw()
        await_(lambda: self.is_free("l"))

    def frozen(self):
        """nxlock is stopped for longer than its lease, in which its watchdog
        stops CMD."""
        run = self.hold(NOTES)
        run.send(signal.SIGSTOP)
        await_(lambda: self.is_free("l"))
        run.send(signal.SIGCONT)
        self.stops("nxlock was frozen", run, NOTES)
        run = self.hold(NOTES)
        run.send(signal.SIGSTOP)
        self.write("go")
        await_(lambda: self.is_free("l"))
        run.send(signal.SIGCONT)
        run.gives("nxlock was frozen, and CMD ended meanwhile", 79, "",
                  "lost 'l'")

    def handed_over(self):
        """Renewed by its token, a lock outlives the run that acquired it, if
        that was stopped beyond its own lease."""
        for options in (), ("--at-least", "500ms"):
            run = self.hold(NOTES, "1s", "--grace", "100ms", *options)
            token = self.server.cli("GET", "l").decode().strip()
            self.gives("a run", ["renew", "l", token, "--ttl", "60s"], 0,
                       tokens=True)
            run.send(signal.SIGSTOP)
            await_(lambda: gone(int(self.text("ready"))))
            time.sleep(0.1)  # to the end of a lease that nothing shows
            run.send(signal.SIGCONT)
            given = f"renewed by another, {options}"
            run.gives(given, 79, "", "lost 'l'")
            self.check(self.server.cli("GET", "l").decode().strip() == token
                       and int(self.server.cli("PTTL", "l")) > 30000,
                       f"{given}: the lock stays")
            self.server.cli("DEL", "l")

    def on_lost_warn(self):
        """CMD runs on, and can read of the loss at NXLOCK_LOST_FD."""
        self.remove("ready", "go", "told")
        run = self.launch(
            "run", "l", "--ttl", "900ms", "--on-lost", "warn", "--", "sh", "-c",
            ': > ready; eval "cat <&$NXLOCK_LOST_FD"; : > told\n'
            "while [ -e rig ] && [ ! -e go ]; do sleep 0.05; done",
            cwd=self.server.folder)
        await_(lambda: self.has("ready"))
        self.check(not self.has("told"), "NXLOCK_LOST_FD: silent at first")
        self.server.cli("DEL", "l")
        self.check(await_(lambda: self.has("told")) and run.says("lost 'l'"),
                   "NXLOCK_LOST_FD: its end is the loss")
        self.server.cli("SET", "l", "stranger", "PX", "1500")
        await_(lambda: self.is_free("l"))
        self.check(run.is_running(), "--on-lost warn: CMD runs on")
        self.write("go")
        run.gives("--on-lost warn", 79, "", "lost 'l'")

    def orphan(self):
        self.remove("ready")
        self.launch("run", "l", "--ttl", "1h", "--", "sh", "-c",
                    "echo $$ > new; mv new ready; "
                    "kill -KILL $NXLOCK_SUPERVISOR_PID; exec sleep 600",
                    cwd=self.server.folder).ends()
        self.check(await_(lambda: self.has("ready") and
                          gone(int(self.text("ready")))),
                   "KILL to nxlock: CMD is ended long before its lease")
        self.server.cli("DEL", "l")

    def server_gone(self):
        run = self.hold(OBEYS)
        self.server.kill()
        self.stops("a server that is gone", run, OBEYS, None)


if __name__ == "__main__":
    sys.exit(play(Room, Room.renewed, Room.lost, Room.silence, Room.frozen,
                  Room.handed_over, Room.on_lost_warn, Room.orphan,
                  Room.server_gone))
