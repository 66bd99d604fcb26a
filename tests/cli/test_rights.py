# SPDX-License-Identifier: MIT
"""test_rights.py NXLOCK

doctor and permissions, on a real server: a user who lacks a single one of those
that docs/acl.md lists for doctor gets the exit code that this permission is
worth; what was refused is named with a remedy, and the remedy is enough.
"""

import concurrent.futures
import contextlib
import os
import re
import sys

import rig

sys.path.append(os.path.join(os.path.dirname(__file__), "../docs"))

import acl_table

PASSWORD = "sesame-secret"
WORKERS = 4  # doctor waits for the server most of its time
NAME = "job"
CHANNELS = "&nxl:" + 36 * "?" + ":"
# What the trial fails without, even if other clients have loaded the scripts.
NEEDED = {"+set", "+evalsha", "+getrange", "+del", "+pttl", "+pexpire",
          "~NAME", "~NAME:doctor:*"}
WARNED = {"+eval", "+exists", "+time", "~{NAME}:f", "~{NAME:doctor:*}:*",
          "+info"}
# Without these the client does the same in another way, which is not worth a
# remedy; nxlock-doctor(1) says that doctor does not try them.
NOT_SHOWN = {"+psetex", "+publish", "+subscribe", "+ping", "+client|kill",
             "+script|load", CHANNELS + "NAME", CHANNELS + "NAME:doctor:*"}


class Rights:
    def __init__(self, tap, server, program):
        self.tap, self.server, self.program = tap, server, program

    def doctor(self, rules, preloaded, *words):
        """What ask() returns for a user with exactly these rules."""
        self.server.cli("FLUSHALL")
        if not preloaded:  # else other clients have used the same scripts
            self.server.cli("SCRIPT", "FLUSH")
        self.server.cli("ACL", "DELUSER", "u")
        self.server.cli("ACL", "SETUSER", "u", "reset", "on", ">" + PASSWORD,
                        *(rule.replace("NAME", NAME) for rule in rules))
        return self.ask(*words)

    def ask(self, *words):
        """The code and the lines of doctor, and what was refused to it."""
        self.server.cli("ACL", "LOG", "RESET")
        done = rig.nx(self.program, "doctor", *words, "-u",
                      self.server.url + "?user=u&max_ttl_ms=4000",
                      env={**os.environ, "NXLOCK_PASSWORD": PASSWORD})
        log = self.server.cli("ACL", "LOG").decode()
        return (done.returncode, done.stdout.decode().splitlines(),
                set(re.findall(r"^object\n(.*)", log, re.M)))

    def lacks(self, rules, without, preloaded):
        """A user without that rule, who then gets what the remedy says."""
        what = f"without {without}{', scripts known' if preloaded else ''}"
        code, lines, _ = self.doctor(
            [rule for rule in rules if rule != without], preloaded, NAME)
        least = 77 if without in NEEDED else 1 if without in WARNED else 0
        self.tap.check(code == least, f"{what}: exit code {least}",
                       f"{code}\n" + "\n".join(lines))
        remedies = self.remedies(lines)
        self.tap.check(bool(remedies) == (without not in NOT_SHOWN),
                       f"{what}: a remedy: {without not in NOT_SHOWN}",
                       "\n".join(lines))
        for remedy in remedies[:1]:
            self.tap.check(f" {CHANNELS}{NAME}*" in remedy,
                           f"{what}: no channel of another name", remedy)
            self.server.cli(*remedy.split())
            code, lines, refused = self.ask(NAME)
            self.tap.check(code == 0 and not self.remedies(lines)
                           and not refused,
                           f"{what}: the first remedy is enough",
                           f"{code} {refused}\n" + "\n".join(lines))

    @staticmethod
    def remedies(lines):
        """Those that can be typed as they are."""
        return [line.split(" Remedy: ")[1] for line in lines
                if " Remedy: ACL SETUSER " in line]

    def all_there(self, rules):
        for words in ((NAME,), ()):
            extra = () if words else ("~nxlock:doctor:*",
                                      "~{nxlock:doctor:*}:*",
                                      CHANNELS + "nxlock:doctor:*")
            code, lines, refused = self.doctor(
                (*rules, *extra), False, *words)
            self.tap.equal(code, 0, f"doctor {words}: all permissions of the "
                           "page")
            self.tap.equal(refused, set(), "nothing is refused")
            self.tap.equal(self.remedies(lines), [],
                           "no permission is called missing")


class Server(rig.Server):
    def __init__(self):
        super().__init__("--appendonly", "yes", "--appendfsync", "always")


class Results(rig.Tap):
    """Those of a worker, for the whole test to repeat."""

    def __init__(self):
        super().__init__()
        self.all = []

    def check(self, good, name, note=""):
        self.all.append((good, name, note))
        return good


def work(program, server, rules, mine):
    """The part of the rules that a worker takes, on a server of its own."""
    results = Results()
    rights = Rights(results, server, program)
    results.check(rig.await_(lambda: rig.nx(
        program, "doctor", "-u", server.url + "?max_ttl_ms=4000"
    ).returncode == 0), "doctor finds nothing on a server that is old enough")
    if rules[0] in mine:
        rights.all_there(rules)
    for rule in mine:
        for preloaded in (False, True):
            rights.lacks(rules, rule, preloaded)
    return results.all


def main():
    tap = rig.Tap()
    program = os.path.abspath(sys.argv[1])
    rules = acl_table.read().rules(("doctor",), (), False)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server()) for _ in range(WORKERS)]
        rig.clean_environment(servers[0])
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for results in pool.map(
                    work, [program] * WORKERS, servers, [rules] * WORKERS,
                    [rules[i::WORKERS] for i in range(WORKERS)]):
                for result in results:
                    tap.check(*result)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
