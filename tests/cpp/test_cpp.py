#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_cpp.py PROGRAM: a program of this folder beside a server of its own.

Passes on its TAP. The program may stop the server for a while.
"""

import os
import pathlib
import signal
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from rig import Server


def main(program):
    with Server() as server:
        try:
            return subprocess.run(
                [program, server.url, str(server.process.pid)], check=False,
                stdin=subprocess.DEVNULL, timeout=240).returncode
        except subprocess.TimeoutExpired:
            print(f"Bail out! {program} does not end")
            return 1
        finally:
            os.kill(server.process.pid, signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
