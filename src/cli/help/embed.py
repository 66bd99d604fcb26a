#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed.py OUTPUT NAME.txt...

Embeds the help texts in C: writes the definition of help_texts[] (help.h), in
which run.txt is the entry CMD_RUN and overview.txt the last one.
"""

import pathlib
import sys

entries = []
for path in map(pathlib.Path, sys.argv[2:]):
    lines = path.read_text("ascii").splitlines()
    name = "COMMANDS" if path.stem == "overview" else f"CMD_{path.stem.upper()}"
    entries.append(f"[{name}] =")
    for line in lines:
        quoted = line.replace("\\", "\\\\").replace('"', '\\"')
        entries.append(f'    "{quoted}\\n"')
    entries.append(",")
pathlib.Path(sys.argv[1]).write_text(
    '#include "cli/help.h"\nconst char *const help_texts[COMMANDS + 1] = {\n'
    + "\n".join(entries) + "\n};\n", "ascii")
