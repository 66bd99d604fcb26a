#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""acl_table.py [--write]: the parts of docs/acl.md that are made from
tests/docs/acl_table.h: the lines to copy, and the tables.

Prints the page as it should be, or writes it. In the page each part is between
<!-- made: PART --> and <!-- end -->.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/docs/acl_table.h"
PAGE = ROOT / "docs/acl.md"
PART = re.compile(r"(<!-- made: (\w+) -->\n)(.*?)(<!-- end -->)", re.S)

# Title, commands of nxlock, features of the table, and whether these are in
# addition to another line.
LINES = (
    ("A user who locks: `run`, `acquire`, `renew`, `release`",
     ("run", "acquire", "renew", "release"), (), False),
    ("`run --every`, in addition", (), ("every",), True),
    ("`guard_failover=on`, in addition", (), ("failover",), True),
    ("`wait_replicas=N`, in addition", (), ("replicas",), True),
    ("`once`", ("once",), (), False),
    ("A user who only looks: `status`, `list`, `wait`",
     ("status", "list", "wait"), (), False),
    ("`unlock`", ("unlock",), (), False),
    ("`doctor`", ("doctor",), (), False),
)
MORE = (
    ("A database number other than 0, in addition", (), ("db",), True),
    ("`scheme=timestamp`, in addition", (), ("timestamp",), True),
)


class Feature:
    def __init__(self, name, base, purpose, permissions):
        self.name, self.purpose = name, purpose
        self.base = base  # numbers; "ANY": of any other
        self.permissions = permissions  # (rule, what happens without it)


class Table:
    """What the header says."""

    def __init__(self, text):
        text = text.replace("\\\n", " ")
        effects = {name: "".join(re.findall('"([^"]*)"', words))
                   for name, words in re.findall(
                       r'EFFECT\((\w+), ((?:"[^"]*" *)+)\)', text)}
        keys = dict(re.findall(r'#define (ACL_\w+)\s+"([~&][^"]+)"', text))
        self.features = {}
        for number, name, base, purpose, permissions in re.findall(
                r'FEATURE\((\w+), "([^"]+)",\s+(.*?),\s+"([^"]+)",'
                r"\s+((?:\{[^}]*\},?\s*)+)\)", text):
            rules = [(keys.get(rule, rule.strip('"')), effects[effect])
                     for rule, effect in re.findall(
                         r'\{("[^"]+"|\w+), ACL_(\w+)\}', permissions)]
            self.features[number] = Feature(name, self.numbers(base), purpose,
                                            rules)
        connection = re.search(r"#define ACL_CONNECTION \((.*?)\)\n", text)[1]
        several = re.search(r"#define ACL_SEVERAL \((.*?)\)\n", text)[1]
        part = re.search(r"#define ACL_COMMANDS (.*)", text)[1]
        self.commands = {}
        for row in part.split("COMMAND(")[1:]:
            name, features = row.split(",", 1)
            self.commands[name] = self.ordered(self.numbers(
                features.replace("ACL_CONNECTION", connection).replace(
                    "ACL_SEVERAL", several)))

    @staticmethod
    def numbers(text):
        return re.findall(r"ACL_BIT\((\w+)\)", text) + \
            re.findall(r"ACL_(ANY)", text)

    def ordered(self, numbers):
        return [number for number in self.features if number in numbers]

    def names(self, numbers):
        return [self.features[number].name for number in numbers
                if number != "ANY"] + ["any"] * ("ANY" in numbers)

    def with_bases(self, numbers):
        found = list(numbers)
        for number in found:  # grows
            found += [base for base in self.features[number].base
                      if base != "ANY" and base not in found]
        return self.ordered(found)

    def rules(self, commands, names, alone):
        """Those of commands and features, each once: keys first."""
        numbers = [number for command in commands
                   for number in self.commands[command]]
        numbers += [number for number, feature in self.features.items()
                    if feature.name in names]
        if not alone:
            numbers = self.with_bases(numbers)
        found = dict.fromkeys(
            rule for number in self.ordered(numbers)
            for rule, _ in self.features[number].permissions)
        return sorted(found, key=lambda rule: rule[0] != "~")


def rule_of(rule, name, prefix):
    """The rule for a lock of that name, or pattern of names, below a prefix;
    None: another rule matches these keys too."""
    own = re.fullmatch(r"(~\{?|&.*:)NAME:(doctor):\*(\}:\*)?", rule)
    if own and prefix:  # the command writes its own lock's name in braces then
        return None if own[1] == "~{" else \
            f"{own[1]}{prefix}{{{name}:{own[2]}:*"
    if rule == "~{NAME}:every":
        return f"~{prefix}{{{name}}}:every"
    if rule == "~nxl-p":
        return f"~{prefix}nxl-p"
    return rule.replace("NAME", prefix + name)


def line(table, user, name, prefix, commands, features, alone):
    rules = [rule_of(rule, name, prefix)
             for rule in table.rules(commands, features, alone)]
    if alone:  # the other line has the lock's own key
        rules = [rule for rule in rules if rule != "~" + prefix + name]
    rules = [rule for rule in rules if rule]
    return " ".join(["ACL SETUSER", user, *rules])


def made_lines(table, prefix, rows):
    text = ""
    for title, *about in rows:
        made = line(table, "jobs", "backup:*", prefix, *about)
        text += f"{title}:\n\n    {made}\n\n"
    return text


def made_commands(table):
    text = "| command   | features |\n|-----------|----------|\n"
    for command, numbers in table.commands.items():
        names = ", ".join(f"`{name}`" for name in table.names(numbers))
        text += f"| {f'`{command}`':9} | {names} |\n"
    return text


def made_features(table):
    text = ("| feature | permission | without it |\n"
            "|---------|------------|------------|\n")
    for feature in table.features.values():
        names = ", ".join(table.names(
            table.ordered(feature.base) or feature.base))
        head = f"`{feature.name}`: {feature.purpose}" + (
            f" (in addition to {names})" if names else "")
        before = None
        for rule, effect in feature.permissions:
            shown = "`" + rule.replace("|", r"\|") + "`"
            if effect != before:
                text += f"{'' if before is None else chr(10)}" \
                    f"| {head} | {shown} | {effect} |"
            else:
                text = text[:text.rindex(f" | {effect} |")] + \
                    f" {shown} | {effect} |"
            head, before = "", effect
        text += "\n"
    return text.replace("\n|  |", "\n| |")


def made(table):
    return {"lines": made_lines(table, "", LINES),
            "prefixed": made_lines(table, "app:", LINES),
            "more": made_lines(table, "", MORE),
            "commands": made_commands(table),
            "features": made_features(table)}


def page(text, table):
    """The page, with the parts that the table says."""
    parts = made(table)
    found = [part for _, part, _, _ in PART.findall(text)]
    if sorted(found) != sorted(parts):
        raise ValueError(f"the page has the parts {found}")
    return PART.sub(lambda match: match[1] + "\n" +
                    parts[match[2]].rstrip("\n") + "\n\n" + match[4], text)


def read():
    return Table(TABLE.read_text("ascii"))


def main():
    text = page(PAGE.read_text("utf-8"), read())
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(text, "utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
