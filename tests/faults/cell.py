# SPDX-License-Identifier: MIT
"""One cell: processes contend for one name at the servers of a column while
one fault happens to them again and again; then what was seen is held against
what is expected. Everything random is drawn from the seed, the fault and the
column."""

import collections
import math
import os
import pathlib
import random
import signal
import sqlite3
import tempfile
import threading
import time

import record
import stage

CONTENDERS, TTL_MS, MAX_TTL_MS, TIMEOUT_MS = 6, 500, 600, 300
# A fault that has to be seen breaking exclusion is tried for so long.
FORCE_S = 25
FIRST_S = 25  # until the first grant: young servers have no vote
AGAIN_S = 15  # until a grant when all is well again
GAP_S = 4     # longest without a grant when a majority is well all the time
ASK_MS = 2         # between two questions of those that only ask
SHORT_ASK_MS = 10  # with --short: they are most of what a cell costs

TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE checked (value INTEGER, writes INTEGER, fence INTEGER);
CREATE TABLE plain (value INTEGER, writes INTEGER);
CREATE TABLE refused (count INTEGER);
INSERT INTO checked VALUES (0, 0, 0);
INSERT INTO plain VALUES (0, 0);
INSERT INTO refused VALUES (0);
"""


class Contender:
    def __init__(self, cell, who):
        self.cell, self.who = cell, who
        self.kind = cell.kinds[who]
        self.record = record.Record(
            who, cell.directory / f"record{who}", self.kind)
        self.stops = []
        self.stopped = False
        self.begin()

    def begin(self):
        cell = self.cell
        environment = dict(os.environ)
        if cell.fault.clock == "client":
            environment.update(
                LD_PRELOAD=str(
                    cell.programs / "libnxlock-stepped-clock.so"),
                NXLOCK_CLOCK_FILE=str(cell.clock),
                ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "")
                + ":verify_asan_link_order=0")
        if self.kind.old:
            environment["LD_PRELOAD"] = os.environ["NXLOCK_OLD_LIBRARY"]
        self.process = stage.start(
            [cell.programs / "nxlock-fault-contender",
             cell.url_of(self.who), self.record.path, cell.resource, TTL_MS,
             TIMEOUT_MS, cell.fault.write_ms, self.who % 2,
             cell.ask_ms if cell.fault.proxied else 0,
             cell.fault.max_hold_ms if self.who % 2 else 0,
             cell.dice.getrandbits(60), "k", 0, *self.kind.arguments()],
            env=environment)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)
        self.stops.append([stage.now_ns(), 0])
        self.stopped = True

    def go_on(self):
        if self.stopped:
            self.stops[-1][1] = stage.now_ns()
            self.process.send_signal(signal.SIGCONT)
        self.stopped = False

    def hang(self):
        """The next hold that it gets, when it hangs in it."""
        asked = stage.now_ns()
        self.process.send_signal(signal.SIGUSR1)
        return self.cell.await_that(
            lambda: next((h for h in self.record.holds if h.hangs > asked),
                         None), AGAIN_S, "who was to hang never held it")

    def hang_no_more(self):
        self.process.send_signal(signal.SIGUSR2)

    def kill(self):
        self.process.kill()
        self.process.wait()
        with self.cell.reading:
            self.record.died(stage.now_ns())

    def holds_since(self, since):
        holds = self.record.holds
        return bool(holds) and holds[-1].begin > since

    def hung(self):
        """Calls that outlasted their deadline while the process ran."""
        within = self.cell.pauses.within
        return sum(now - began - within(began, now) > most and
                   not any(began <= stop[1] and stop[0] <= now
                           for stop in self.stops)
                   for began, now, most in self.record.late)


class Turn(threading.local):
    """Of a fault that takes turns with others: when its turn ends."""

    end = math.inf


class Cell:
    def __init__(self, fault, column, seed, seconds, programs, short):
        self.fault, self.column = fault, column
        self.ask_ms = SHORT_ASK_MS if short else ASK_MS
        self.expected = fault.expected[column]
        self.dice = random.Random(f"{seed}/{fault.name}/{column}")
        self.seconds = seconds
        self.programs = pathlib.Path(programs)
        self.strikes, self.complaints = 0, []
        self.extra, self.contenders = [], []
        self.kinds = fault.kinds.get(column, (record.Kind(),) * CONTENDERS)
        self.turn = Turn()
        self.reading = threading.RLock()  # the records
        self.ordering = threading.Lock()  # the proxies
        self.threads = None               # of a fault that needs several
        self.pauses = stage.Pauses()
        self.other_place = None

    # ------------------------------------------------- for the faults' use

    def goes_on(self):
        """Time is left; and where two holders have to be seen, they have
        not been, or did no harm yet."""
        if time.monotonic() > self.turn.end:
            return False
        if self.expected == "ok":
            return time.monotonic() < self.end
        return time.monotonic() < self.force_end and not (
            self.overlaps() and (self.harm() or not self.fault.harms))

    def take_turn(self, strike, seconds):
        self.turn.end = time.monotonic() + seconds
        try:
            strike(self)
        finally:
            self.turn.end = math.inf

    def harm(self):
        _lost, lost_plain, _writes, refused = self.resource_row()
        return lost_plain > 0 and refused > 0

    def pause(self, low, high=None):
        """Seconds, drawn from low to high."""
        time.sleep(low if high is None else self.dice.uniform(low, high))

    def strike(self):
        self.strikes += 1

    def each(self, action):
        for server in self.stage.struck:
            action(server)

    def order(self, *words):
        with self.ordering:
            for front in self.stage.fronts:
                front.order(*words)

    def complain(self, text):
        if text not in self.complaints:
            self.complaints.append(text)

    def aim_if_possible(self):
        """The fault is worth most while somebody holds it for long."""
        self.aim(left_ms=300, age_ms=40, within_s=0.7)

    def aim(self, left_ms=200, age_ms=60, since=0, within_s=AGAIN_S,
            renewed=None):
        """Waits for a hold that is old enough to be a long one, and has so
        much time left; None: there was none for long. To do harm it has to
        be one that does not renew itself and so be warned."""
        if renewed is None and self.expected == "two":
            renewed = False
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            now = stage.now_ns()
            for hold in self.latest_holds():
                if renewed is not None and renewed != bool(hold.who % 2):
                    continue
                if hold.open and hold.begin > since and not hold.writing \
                        and now - hold.begin > age_ms * 1000000 \
                        and hold.end - now > left_ms * 1000000:
                    return hold
            time.sleep(0.003)
        if within_s == AGAIN_S:
            self.complain("nobody held it for long")
        return None

    def aim_at_write(self):
        """Waits for one that has just asked whether it holds the lock, and
        is about to write."""
        end = time.monotonic() + AGAIN_S
        while time.monotonic() < end:
            now = stage.now_ns()
            for hold in self.latest_holds():
                if hold.open and hold.writing and \
                        now - hold.writing < self.fault.write_ms * 300000:
                    return self.contenders[hold.who]
            time.sleep(0.002)
        self.complain("nobody was about to write")
        return None

    def full(self):
        """The token that stands at every server; None: there is none."""
        tokens = {s.ask("GET", "k") for s in self.stage.servers}
        return tokens.pop() if len(tokens) == 1 else None

    def hold_of_other(self, begin, end):
        """Another program believed that it holds the name."""
        hold = record.Hold(-1, begin, begin, end, 0)
        hold.open = False
        self.extra.append(hold)

    def results(self, kind):
        """Of the "acquires" or "releases" since the faults began."""
        return dict(collections.Counter(
            result for c in self.contenders
            for result, when in getattr(c.record, kind)
            if when >= self.began))

    # -------------------------------------------------------------- reading

    def holds(self):
        found = []
        with self.reading:
            for contender in self.contenders:
                contender.record.read()
                found += contender.record.holds
        return found

    def latest_holds(self):
        """Of each that had one: no other can be open."""
        with self.reading:
            for contender in self.contenders:
                contender.record.read()
            return [c.record.holds[-1] for c in self.contenders
                    if c.record.holds]

    def overlaps(self):
        return record.overlaps(
            self.holds() + self.extra, stage.now_ns())

    def url_of(self, who):
        if self.other_place and who % 3 == 0:
            url = f"unix://{self.other_place}?max_ttl_ms={MAX_TTL_MS}"
        else:
            url = self.stage.url
        return url.replace("?", "?poll=1&") if self.kinds[who].poll else url

    def all_answered(self):
        """Each has been told yes or no by servers that vote."""
        self.holds()
        return all({"ok", "busy"} & {result for result, _ in c.record.acquires}
                   for c in self.contenders)

    def await_that(self, look, seconds, complaint):
        """What is found in the records at last."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.holds()
            found = look()
            if found:
                return found
            time.sleep(0.01)
        self.complain(complaint)
        return None

    def await_grant(self, since, seconds, complaint):
        self.await_that(lambda: any(h.begin > since for h in self.holds()),
                        seconds, complaint)

    # ------------------------------------------------------------- the play

    def run(self):
        with tempfile.TemporaryDirectory(prefix="nxf") as directory:
            self.directory = pathlib.Path(directory)
            self.resource = self.directory / "resource"
            self.clock = self.directory / "clock"
            self.clock.write_bytes(bytes(8))
            with sqlite3.connect(self.resource) as db:
                db.executescript(TABLES)
            db.close()
            self.stage = stage.Stage(
                directory, self.column, self.fault, self.programs)
            try:
                self.play()
                return self.verdict()
            finally:
                for contender in self.contenders:
                    contender.process.kill()
                    contender.process.wait()
                    contender.record.close()
                self.stage.close()
                if self.threads:
                    self.threads.shutdown()

    def play(self):
        if self.fault.prepare:
            self.fault.prepare(self)
        began = stage.now_ns()
        self.contenders += [
            Contender(self, i) for i in range(len(self.kinds))]
        self.await_grant(began, FIRST_S, "nobody got it at first")
        stage.await_true(self.all_answered, "all processes met the servers",
                         FIRST_S)
        self.began = stage.now_ns()
        self.end = time.monotonic() + self.seconds
        self.force_end = time.monotonic() + FORCE_S
        self.fault.strike(self)
        self.over = stage.now_ns()
        self.await_grant(self.over, AGAIN_S, "nobody got it afterwards")
        self.finish()

    def finish(self):
        """Half of them end in order, half die at whatever they do."""
        for contender in self.contenders:
            contender.go_on()
            if contender.who % 2:
                contender.kill()
            else:
                contender.process.terminate()
        for contender in self.contenders[::2]:
            try:
                code = contender.process.wait(timeout=15)
            except Exception:
                self.complain("HARM: a process did not end")
                continue
            contender.record.died(stage.now_ns())
            if code not in (0, -signal.SIGTERM):  # it may have begun just now
                self.complain(f"HARM: a process ended with {code}")
        ended = time.monotonic()
        limit = ended + (MAX_TTL_MS + 1000) / 1000
        self.left = self.stage.keys()
        while self.left and time.monotonic() < limit:
            time.sleep(0.02)
            self.left = self.stage.keys()

    def longest_gap_s(self):
        times = sorted(h.begin for h in self.holds()
                       if h.begin >= self.began) + [self.over]
        return max([b - a - self.pauses.within(a, b)
                    for a, b in zip([self.began] + times, times)]) / 1e9

    def resource_row(self):
        db = sqlite3.connect(self.resource)
        row = db.execute(
            "SELECT checked.writes - checked.value, "
            "plain.writes - plain.value, plain.writes, count "
            "FROM checked, plain, refused").fetchone()
        db.close()
        return row

    def verdict(self):
        holds, both = self.holds(), self.overlaps()
        lost, lost_plain, writes, refused = self.resource_row()
        seen = {
            "fault": self.fault.name, "column": self.column,
            "expected": self.expected, "strikes": self.strikes,
            "grants": len(holds), "overlaps": len(both), "writes": writes,
            "together": len(record.together(holds, stage.now_ns())),
            "refused": refused, "lost": lost, "lost_plain": lost_plain,
            "disorder": record.disorder(holds, not both),
            "left": len(self.left),
            "hung": sum(c.hung() for c in self.contenders),
            "mixed_up": sum(c.record.mixed_up for c in self.contenders),
            "gap_ms": round(self.longest_gap_s() * 1000),
            "longest_ms": round(max(
                [min(a.end, b.end) - b.begin for a, b in both] or [0]) / 1e6),
        }
        for kind in ("acquires", "releases"):
            seen[kind] = self.results(kind)
        self.judge(seen)
        seen["complaints"] = self.complaints
        return seen

    def judge(self, seen):
        # A line that begins with HARM counts, whatever a second run finds.
        for member, text in (
                ("lost", "HARM: updates lost in spite of the check"),
                ("disorder", "HARM: fencing numbers out of order"),
                ("mixed_up", "HARM: replies to another question"),
                ("hung", "calls beyond their deadline")):
            if seen[member]:
                self.complain(f"{text}: {seen[member]}")
        if self.expected == "ok" and seen["overlaps"]:
            self.complain(f"HARM: two holders: {seen['overlaps']}")
        if self.expected != "ok" and not seen["overlaps"]:
            self.complain("two holders were not shown")
        if self.expected != "ok" and self.fault.harms and not self.harm():
            self.complain("two holders did no harm even without the check")
        if seen["left"] and not self.fault.leaves:
            self.complain(f"keys left behind: {seen['left']}")
        if not seen["strikes"]:
            self.complain("the fault did not happen")
        # With kinds, the files of all five servers are written each time too.
        if self.column == "redlock2" and not self.fault.kinds and \
                seen["gap_ms"] > GAP_S * 1000:
            self.complain(f"no grant for {seen['gap_ms']} ms")
        for check in self.fault.checks:
            check(self, seen)
