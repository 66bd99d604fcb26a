# SPDX-License-Identifier: MIT
"""Whether this machine let nobody run for a while: what a test says of time
does not hold for what fell into that."""

import threading
import time


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Pauses(threading.Thread):
    """When this machine let nobody run: a thread that sleeps was woken late."""

    STEP_S, LATE_NS = 0.05, 200_000_000

    def __init__(self):
        super().__init__(daemon=True)
        self.seen = []
        self.start()

    def run(self):
        before = now_ns()
        while True:
            time.sleep(self.STEP_S)
            now = now_ns()
            if now - before > self.LATE_NS:
                self.seen.append((before, now))
            before = now

    def within(self, begin, end):
        """How many ns of that time were paused."""
        return sum(max(min(end, to) - max(begin, since), 0)
                   for since, to in list(self.seen))
