# SPDX-License-Identifier: MIT
"""The faults that befall the programs that contend, and one that does not
know this library; for the rows in faults.py, and by the same rules."""

import struct
import time

import stage


def kill_holder(cell):
    while cell.goes_on():
        contender = cell.aim_at_write()
        if contender:
            contender.kill()
            killed = stage.now_ns()
            cell.strike()
            cell.await_grant(killed, 3, "a dead holder blocked for long")
            contender.begin()
        cell.pause(0.1, 0.4)


def stop_holder(cell):
    while cell.goes_on():
        contender = cell.aim_at_write()
        if contender:
            contender.stop()
            stopped = stage.now_ns()
            cell.await_grant(stopped, 5, "a stopped holder blocked for long")
            # Until somebody else has written, and longer than any lease.
            cell.pause(0.9, 1.2)
            contender.go_on()
            cell.strike()
        cell.pause(0.2, 0.4)


def stop_anybody(cell):
    """Wherever they are, between a request and its reply too."""
    while cell.goes_on():
        some = cell.dice.sample(cell.contenders, 3)
        for contender in some:
            contender.stop()
            cell.pause(0, 0.02)
        cell.strike()
        cell.pause(0.05, 0.9)
        for contender in some:
            contender.go_on()
        cell.pause(0.05, 0.3)


def stop_asking(cell):
    """Their requests are executed, and their replies reach them when they are
    stopped: they are read when what they grant is over."""
    while cell.goes_on():
        cell.order("hold", "down", 1)
        cell.pause(0.01, 0.05)
        for contender in cell.contenders:
            contender.stop()
        cell.order("hold", "down", 0)
        cell.strike()
        cell.pause(0.1, 0.8)
        for contender in cell.contenders:
            contender.go_on()
        cell.pause(0.1, 0.4)


def hang(cell):
    """One that renews, in its next hold; it takes part again when others have
    had the name and it has been told of the loss."""
    while cell.goes_on():
        contender = cell.contenders[cell.dice.choice([1, 3, 5])]
        hold = contender.hang()
        if hold:
            cell.strike()
            cell.await_grant(hold.hangs, 3 + cell.fault.max_hold_ms / 1000,
                             "a hung holder blocked for long")
            cell.await_that(lambda h=hold: h.loss, 5,
                            "a hung holder was not told of the loss")
        contender.hang_no_more()
        cell.pause(0.1, 0.3)


def held_while_hung(cell, _seen):
    """By renewal until max_hold_ms was over, and none for longer."""
    limit_ns = cell.fault.max_hold_ms * 1000000
    hung = [h for h in cell.holds() if h.hangs]
    if any(h.open or h.end - h.begin > limit_ns for h in hung):
        cell.complain("a hung holder kept it beyond max_hold_ms")
    if not any(h.loss == "max_hold_ms has passed" for h in hung):
        cell.complain("no hung holder kept it until max_hold_ms")


def step_client(cell):
    while cell.goes_on():
        hours = cell.dice.choice([1, -1, 0])
        with open(cell.clock, "r+b") as file:
            file.write(struct.pack("=q", hours * 3600))
        cell.strike()
        cell.pause(0.05, 0.4)


def classic(cell):
    """It takes our token for a time long past, as its scheme says, holds for
    200 ms and deletes the key."""
    server = cell.stage.struck[0]
    while cell.goes_on():
        if cell.aim():
            mine = int(time.time()) + 2
            old = server.ask("GETSET", "k", mine)
            begin = stage.now_ns()
            time.sleep(0.2)
            still = server.ask("GET", "k")
            if old and still != str(mine):
                cell.complain("another program's value was removed")
            cell.hold_of_other(begin, stage.now_ns())
            server.ask("DEL", "k")
            cell.strike()
        cell.pause(0.3)
