# SPDX-License-Identifier: MIT
"""What the contenders wrote down, read as it comes: when whom relied on the
lock, [told that it is held, the deadline or the release began or it was told
of the loss or died]. A hold that has not ended yet ends at its deadline."""

import collections
import dataclasses
import math

RESULTS = {0: "ok", 1: "busy", 2: "lost", 3: "unknown", 5: "cancelled",
           -5: "unreachable", -6: "denied", -7: "refused",
           -8: "wrong type", -9: "not redis", -10: "unsupported",
           -11: "server"}


@dataclasses.dataclass(frozen=True)
class Kind:
    """Of a lock: how many permits there are (0: it is exclusive), how many of
    them it takes, and whether it is shared; and of its client."""

    permits: int = 0
    weight: int = 0
    shared: bool = False
    poll: bool = False
    old: bool = False     # an older version of the library
    stamps: bool = False  # scheme=timestamp

    def fenced(self):
        return not (self.permits or self.shared or self.stamps)

    def arguments(self):
        """PERMITS, WEIGHT, SHARED and FENCE of contender.c."""
        return self.permits, self.weight, int(self.shared), int(self.fenced())


class Hold:
    def __init__(self, who, attempt, begin, deadline, fence, kind=Kind()):
        self.takes = kind.weight or 1
        self.allows = math.inf if kind.shared else kind.permits or 1
        self.who, self.fence, self.fenced = who, fence, kind.fenced()
        self.attempt, self.begin, self.end = attempt, begin, deadline
        self.open, self.writing = True, 0
        self.hangs, self.loss = 0, ""

    def ends(self, now):
        self.end = min(self.end, now)
        self.open = False


class Record:
    """Of one contender, whichever process it is by now."""

    def __init__(self, who, path, kind=Kind()):
        self.who, self.path, self.kind = who, path, kind
        self.file, self.rest = None, b""
        self.holds, self.late, self.mixed_up = [], [], 0
        self.acquires, self.releases = [], []  # (result, when)
        self.begun = None  # when the process that is there now began to ask
        self.messages = collections.Counter()

    def read(self):
        if self.file is None:
            if not self.path.exists():
                return
            self.file = open(self.path, "rb")
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        for line in lines:
            kind, _, rest = line.decode().partition(" ")
            if kind == "M":
                self.messages[rest] += 1
                continue
            if kind == "T":
                self.holds[-1].loss = rest
                continue
            getattr(self, "on_" + kind)(*map(int, rest.split()))

    def on_S(self, now):
        self.begun = now

    def on_B(self, attempt, now, deadline, fence):
        # A deadline of 0 was over before it could be read.
        self.holds.append(
            Hold(self.who, attempt, now, deadline, fence, self.kind))
        self.acquires.append(("ok", now))

    def on_X(self, deadline):
        self.holds[-1].end = deadline

    def on_W(self, now):
        self.holds[-1].writing = now

    def on_G(self, now):
        self.holds[-1].hangs = now

    def on_L(self, now):
        self.holds[-1].ends(now)

    def on_E(self, now):
        self.holds[-1].ends(now)

    def on_A(self, result, now):
        self.acquires.append((RESULTS.get(result, str(result)), now))

    def on_R(self, result, now):
        self.releases.append((RESULTS.get(result, str(result)), now))

    def on_H(self, began, now, most):
        self.late.append((began, now, most))

    def on_Y(self, _now):
        self.mixed_up += 1

    def died(self, now):
        self.read()
        if self.holds and self.holds[-1].open:
            self.holds[-1].ends(now)

    def close(self):
        if self.file:
            self.file.close()
        self.file = None


def overlaps(holds, now):
    """Every hold that began while others were relied on with which it makes
    more permits than one of them allows, beside the one of these that ended
    last. Of those that have ended by now: who releases writes it down before
    the next one can begin, but is read in any order."""
    return [(max(beside, key=lambda h: h.end), hold)
            for hold, beside in together(holds, now)
            if sum(h.takes for h in beside) + hold.takes
            > min(h.allows for h in [hold, *beside])]


def together(holds, now):
    """Every hold that began while others were relied on, and these."""
    found, held = [], []
    done = [h for h in holds
            if h.begin < h.end and (not h.open or h.end < now)]
    for hold in sorted(done, key=lambda h: h.begin):
        held = [h for h in held if hold.begin < h.end]
        if held:
            found.append((hold, held))
        held = held + [hold]
    return found


def disorder(holds, exclusive):
    """Fencing numbers that are not above one whose holder
    had been told of it before they were asked for, or that came twice. Where no
    two held it at a time, they were granted in the order in which they were
    told."""
    found, greatest, at = 0, 0, 0
    holds = [h for h in holds if h.fenced]
    told = sorted(holds, key=lambda h: h.begin)
    for hold in sorted(holds, key=lambda h: h.attempt):
        while at < len(told) and told[at].begin < hold.attempt:
            greatest = max(greatest, told[at].fence)
            at += 1
        found += hold.fence <= greatest
    if exclusive:
        found += sum(a.fence >= b.fence for a, b in zip(told, told[1:]))
    return found + len(holds) - len({h.fence for h in holds})
