#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed.py COMMAND CONFIG OUTPUT NAME.txt...

Embeds the help texts in C: writes the definition of help_texts[] (help.h), in
which run.txt is the entry CMD_RUN; those of no command (OTHERS) are behind
these. The texts name the command and its configuration file by their default
paths, which become COMMAND and CONFIG, those of this installation: a crontab
line needs the one, and a file in another place than the other is not read.
Messages need CONFIG too: it is system_config (help.h).
"""

import pathlib
import sys

OTHERS = {"overview": "HELP_OVERVIEW", "connection": "HELP_CONNECTION"}
command, config, output = sys.argv[1:4]
entries = []
for path in map(pathlib.Path, sys.argv[4:]):
    text = path.read_text("ascii").replace("/usr/local/bin/nxlock", command)
    text = text.replace("/etc/nxlock.conf", config)
    name = OTHERS.get(path.stem, f"CMD_{path.stem.upper()}")
    # Not as a string: C promises no more than 4095 bytes for those.
    entries.append(f"[{name}] = (const char[]){{")
    for line in text.splitlines():
        codes = ", ".join(str(byte) for byte in (line + "\n").encode())
        entries.append(f"    {codes},")
    entries.append("    0},")
pathlib.Path(output).write_text(
    '#include "cli/help.h"\n'
    f'const char system_config[] = "{config}";\n'
    'const char *const help_texts[HELP_TEXTS] = {\n'
    + "\n".join(entries) + "\n};\n", "utf-8")
