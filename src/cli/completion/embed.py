#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed.py OUTPUT functions.SHELL...

Embeds the shells' functions in C, for ../completion_shells.h. As numbers, since
a literal may not be that long.
"""

import pathlib
import sys

text = '#include "cli/completion_shells.h"\n'
for path in map(pathlib.Path, sys.argv[2:]):
    numbers = ", ".join(str(byte) for byte in path.read_bytes())
    text += f"const char functions_{path.suffix[1:]}[] = {{{numbers}, 0}};\n"
pathlib.Path(sys.argv[1]).write_text(text, "ascii")
