#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed.py OUTPUT NAME.txt...

Embeds the help texts in C: writes the definition of help_texts[] (help.h), in
which run.txt is the entry CMD_RUN; those of no command (OTHERS) are behind
these.
"""

import pathlib
import sys

OTHERS = {"overview": "HELP_OVERVIEW", "connection": "HELP_CONNECTION",
          "completion": "HELP_COMPLETION"}
entries = []
for path in map(pathlib.Path, sys.argv[2:]):
    lines = path.read_text("ascii").splitlines()
    name = OTHERS.get(path.stem, f"CMD_{path.stem.upper()}")
    entries.append(f"[{name}] =")
    for line in lines:
        quoted = line.replace("\\", "\\\\").replace('"', '\\"')
        entries.append(f'    "{quoted}\\n"')
    entries.append(",")
pathlib.Path(sys.argv[1]).write_text(
    '#include "cli/help.h"\nconst char *const help_texts[HELP_TEXTS] = {\n'
    + "\n".join(entries) + "\n};\n", "ascii")
