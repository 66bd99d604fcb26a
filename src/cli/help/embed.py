#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed.py COMMAND OUTPUT NAME.txt...

Embeds the help texts in C: writes the definition of help_texts[] (help.h), in
which run.txt is the entry CMD_RUN; those of no command (OTHERS) are behind
these. The texts name the command by its default path, which becomes COMMAND,
the path where it is installed: a crontab line needs it.
"""

import pathlib
import sys

OTHERS = {"overview": "HELP_OVERVIEW", "connection": "HELP_CONNECTION"}
command, output = sys.argv[1:3]
entries = []
for path in map(pathlib.Path, sys.argv[3:]):
    text = path.read_text("ascii").replace("/usr/local/bin/nxlock", command)
    lines = text.splitlines()
    name = OTHERS.get(path.stem, f"CMD_{path.stem.upper()}")
    entries.append(f"[{name}] =")
    for line in lines:
        quoted = line.replace("\\", "\\\\").replace('"', '\\"')
        entries.append(f'    "{quoted}\\n"')
    entries.append(",")
pathlib.Path(output).write_text(
    '#include "cli/help.h"\nconst char *const help_texts[HELP_TEXTS] = {\n'
    + "\n".join(entries) + "\n};\n", "utf-8")
