# SPDX-License-Identifier: MIT
"""Reads a file of nxlock's --metrics as strictly as Prometheus would."""

import re

LABEL = r'\w+="(?:[^"\\\n]|\\["\\n])*"'
LINE = re.compile(rf'(\w+)\{{({LABEL}(?:,{LABEL})*)\}} (\d+(?:\.\d{{3}})?)')
WORD = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Broken(Exception):
    """It is not a whole file of ours."""


def unescaped(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), text)


def read(path, helps=None):
    """(lock, prefix), {metric: value}, and of a metric with a label of its own
    {metric: (label, value)}; raises Broken. helps: the HELP of each metric,
    which must be the same in all files."""
    with open(path, encoding="utf-8", newline="\n") as file:
        text = file.read()
    lines = text.split("\n")
    if lines.pop() or len(lines) % 3 or not lines:
        raise Broken(f"no end: {text[-80:]!r}")
    helps = {} if helps is None else helps
    lock, found = None, {}
    for help_, type_, line in zip(lines[::3], lines[1::3], lines[2::3]):
        match = LINE.fullmatch(line)
        if not match or match[1] in found:
            raise Broken(line)
        name = match[1]
        words = help_.split(" ", 3)
        if words[:3] != ["#", "HELP", name] or not help_.endswith(".") or \
                helps.setdefault(name, words[3]) != words[3]:
            raise Broken(help_)
        if type_ != f"# TYPE {name} gauge":
            raise Broken(type_)
        labels = [(key, unescaped(value))
                  for key, value in WORD.findall(match[2])]
        if [key for key, _ in labels[:2]] != ["lock", "prefix"] or \
                len(labels) > 3 or lock not in (None, labels[:2]):
            raise Broken(line)
        if ("." in match[3]) != ("_seconds" in name):
            raise Broken(line)
        lock = labels[:2]
        found[name] = labels[2] if len(labels) > 2 else float(match[3])
    return tuple(value for _, value in lock), found
