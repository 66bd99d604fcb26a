# SPDX-License-Identifier: MIT
"""test_rights.py PATH-OF-NXLOCK

doctor and permissions, on a real server: for a user who lacks a single one of
those that docs/acl.md lists for doctor, doctor names it or says that it cannot
tell; and what the server refused while doctor tried its own lock is never ok.
"""

import os
import pathlib
import re
import sys

import rig

PAGE = pathlib.Path(__file__).parents[2] / "docs/acl.md"
PASSWORD = "sesame-secret"
NAME = "job"
CHANNELS = "&nxl:" + 36 * "?" + ":"
# What doctor says if that pattern is missing.
OF_PATTERN = {
    "~NAME": r"cannot read the lock's key, 'job': NOPERM",
    "~{NAME}:f": r"cannot read its fencing counter, '\{job\}:f': NOPERM",
    "~{NAME}:nxl-l": r"cannot read the line .*'\{job\}:nxl-l': NOPERM",
    "~{NAME}:nxl-w": r"cannot read the mark .*'\{job\}:nxl-w': NOPERM",
    "~{NAME}:nxl-g": r"cannot read the gap .*'\{job\}:nxl-g': NOPERM",
    "~NAME:doctor:*": r"FAIL .*the test lock 'job:doctor:",
    "~{NAME:doctor:*}:*": r"'\{job:doctor:[^']*\}:f': .*NOPERM",
    CHANNELS + "NAME:doctor:*": r"NOPERM .*channels",
}
CANNOT_TELL = "not tried, so it is not known whether these are permitted: "
# Without it, nothing that doctor tries is refused or replaced by something
# else, or it is as good for doctor's own lock.
HARMLESS = {"+pubsub|numsub", "+psetex", "+script|load"}


def rows(head):
    """The rows of the page's table whose head begins with that word."""
    found = []
    inside = False
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip().replace(r"\|", "|")
                 for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if line.startswith(f"| {head} "):
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|-"):
            found.append(cells)
    return found


def rules_of(command):
    """What the page says that the user of a command needs, in its order."""
    features, bases, feature = {}, {}, None
    for name, rules, _ in rows("feature"):
        if name:
            feature = re.match(r"`(\S+)`", name)[1]
            addition = re.search(r"in addition to ([^)]*)\)", name)
            bases[feature] = addition[1].split(", ") if addition else []
        features.setdefault(feature, []).extend(re.findall("`([^`]+)`", rules))
    wanted = [re.findall("`([^`]+)`", row[1]) for row in rows("command")
              if row[0] == f"`{command}`"][0]
    for name in wanted:  # grows
        wanted += [base for base in bases[name]
                   if base != "any" and base not in wanted]
    return list(dict.fromkeys(rule for name in features if name in wanted
                              for rule in features[name]))


class Rights:
    def __init__(self, tap, server, program):
        self.tap, self.server, self.program = tap, server, program

    def doctor(self, rules, preloaded, *words):
        """What ask() returns for a user with exactly these rules."""
        self.server.cli("FLUSHALL")
        self.server.cli("SCRIPT", "FLUSH")
        if preloaded:  # somebody else uses the same scripts
            rig.nx(self.program, "doctor", *words)
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
        """A user without that rule."""
        what = f"without {without}{', scripts known' if preloaded else ''}"
        code, lines, refused = self.doctor(
            [rule for rule in rules if rule != without], preloaded, NAME)
        pattern = OF_PATTERN.get(without) or (
            rf"{re.escape(without)}(?![\w|-])|"
            rf"'{re.escape(without[1:])}'|"
            rf"\b{re.escape(without[1:].upper())} is not permitted")
        named = [line for line in lines
                 if re.search(pattern, line) and CANNOT_TELL not in line]
        told = [line for line in lines
                if CANNOT_TELL in line and without in line]
        self.tap.check(named or told,
                       f"{what}: doctor names it, or says it cannot tell",
                       "\n".join(lines))
        if without[1:] in refused and without not in HARMLESS:
            self.tap.check(named, f"{what}: it was refused, so it is named",
                           "\n".join(lines))
        self.follow(what, lines)
        return code, lines, refused

    def follow(self, what, lines):
        """Each remedy is typed as it is, until there is none: then nothing
        that doctor tries is refused."""
        code = None
        for _ in range(4):
            remedies = [line.split(" Remedy: ")[1] for line in lines
                        if re.match(r"(note|WARN|FAIL) .* Remedy: ", line)]
            if not remedies:
                break
            for remedy in remedies:
                words = remedy.split()
                if words[:3] != ["ACL", "SETUSER", "u"]:
                    self.tap.check(False, f"{what}: a command to type", remedy)
                    return
                self.server.cli(*words)
            code, lines, _ = self.ask(NAME)
        self.tap.check(code in (None, 0) and not remedies,
                       f"{what}: following the remedies ends with code 0",
                       f"{code}\n" + "\n".join(lines))

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
            self.tap.equal([line for line in lines if " rights: " in line and
                            CANNOT_TELL not in line], [],
                           "no permission is called missing")
            self.tap.check(any(CANNOT_TELL in line and "GETUSER u'" in line
                               for line in lines),
                           "it says what it cannot know", lines)


def check_default(rights):
    """A user who is allowed everything is not told of doubts."""
    done = rig.nx(rights.program, "doctor", NAME)
    rights.tap.check(b" rights: " not in done.stdout and done.returncode == 0,
                     "the default user has all permissions, and is known to",
                     done.stdout)
    rights.server.cli("ACL", "SETUSER", "default", "-psetex")
    done = rig.nx(rights.program, "doctor", NAME)
    rights.server.cli("ACL", "SETUSER", "default", "+@all")
    rights.tap.check(CANNOT_TELL.encode() in done.stdout,
                     "without PSETEX it cannot tell", done.stdout)


# What the trial fails without, even if other clients have loaded the scripts.
NEEDED = {"+set", "+evalsha", "+getrange", "+del", "+pttl", "+pexpire",
          "~NAME", "~NAME:doctor:*"}
WARNED = {"+eval", "+exists", "+time", "~{NAME}:f", "~{NAME:doctor:*}:*",
          "+info"}


def main():
    tap = rig.Tap()
    with rig.Server("--appendonly", "yes", "--appendfsync",
                    "always") as server:
        rig.clean_environment(server)
        rights = Rights(tap, server, os.path.abspath(sys.argv[1]))
        rig.await_(lambda: b"uptime_in_seconds:0" not in server.cli("INFO"))
        rig.await_(lambda: rig.nx(
            rights.program, "doctor", "-u",
            server.url + "?max_ttl_ms=4000").returncode == 0)
        rules = rules_of("doctor")
        tap.check(len(rules) > 30, "the page's rules for doctor", rules)
        rights.all_there(rules)
        for preloaded in (False, True):
            for rule in rules:
                code, lines, _ = rights.lacks(rules, rule, preloaded)
                least = 77 if rule in NEEDED else 1 if rule in WARNED else 0
                tap.check(code == least, f"without {rule}: exit code {least}",
                          f"{code}\n" + "\n".join(lines))
        check_default(rights)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
