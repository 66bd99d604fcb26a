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


def read(path):
    """{metric: {(name, other label or ""): value}}; raises Broken."""
    with open(path, encoding="utf-8", newline="\n") as file:
        text = file.read()
    if not text.endswith("\n# EOF\n"):
        raise Broken(f"no end: {text[-80:]!r}")
    found, helped, typed = {}, set(), {}
    for line in text.split("\n")[1:-2]:
        words = line.split(" ", 3)
        if line.startswith("# HELP "):
            if words[2] in helped or not words[3].endswith("."):
                raise Broken(line)
            helped.add(words[2])
        elif line.startswith("# TYPE "):
            wanted = "counter" if words[2].endswith("_total") else "gauge"
            if words[3] != wanted or words[2] in typed:
                raise Broken(line)
            typed[words[2]] = found[words[2]] = {}
        else:
            match = LINE.fullmatch(line)
            if not match or not found or match[1] != list(found)[-1]:
                raise Broken(line)
            labels = WORD.findall(match[2])
            if labels[0][0] != "name" or len(labels) > 2:
                raise Broken(line)
            key = unescaped(labels[0][1]), \
                labels[1][1] if len(labels) > 1 else ""
            if key in found[match[1]] or \
                    ("." in match[3]) != ("_seconds" in match[1]):
                raise Broken(line)
            found[match[1]][key] = float(match[3])
    if helped != set(typed) or not helped:
        raise Broken("HELP and TYPE differ")
    return found
