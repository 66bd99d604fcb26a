# SPDX-License-Identifier: MIT
"""What the tests of docs/examples share.

Keeps: an example is compiled by the very line that its README shows, with the
installed library and -Wall -Wextra -Werror, in a copy of its folder; and no
process outlives the test.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the source tree stays as it is
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "docs")]

from blocks_place import Place, Wrong, end_all, prctl
from rig import Tap, await_, skip_all

PACKAGES = {"sqlite3": "libsqlite3-dev", "libuv": "libuv1-dev"}
FULL = os.environ.get("NXLOCK_FULL") == "1"


def skip_without_server():
    program = os.environ.get("NXLOCK_REDIS_SERVER") or "redis-server"
    if shutil.which(program) is None and \
            os.environ.get("NXLOCK_SKIP_LIVE") == "1":
        skip_all(f"no {program}, and NXLOCK_SKIP_LIVE=1")


def lacking(*modules):
    """The Debian packages that are not installed, of these of pkg-config."""
    return [PACKAGES[module] for module in modules if subprocess.run(
        ["pkg-config", "--exists", module], check=False).returncode != 0]


class Stage:
    """A server, the installed build, and a copy of docs/examples."""

    def __init__(self, build):
        skip_without_server()
        prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans come here
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nxlock-examples-"))
        try:
            self.place = Place(self.folder, build, False)
        except Wrong as why:
            self.__exit__()
            print(f"Bail out! {why}")
            sys.exit(1)
        self.url = f"redis://127.0.0.1:{self.place.server.port}"
        self.env = {**self.place.env, "NXLOCK_URL": self.url}
        self.examples = self.folder / "examples"
        shutil.copytree(EXAMPLES, self.examples)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_all(None)
        shutil.rmtree(self.folder)

    def lines(self):
        """The compiler's lines of the README."""
        text = (self.examples / "README.md").read_text("utf-8")
        return re.findall(r"^ +(cc .*)$", text.replace("\\\n", " "), re.M)

    def build(self, program, folder=None, compiler="cc"):
        """Compiles it in folder, a copy of docs/examples (None: our own)."""
        for line in self.lines():
            if f"-o {program} " not in line:
                continue
            line = re.sub("^cc", compiler, line)
            done = subprocess.run(
                ["sh", "-ec", line], cwd=folder or self.examples,
                env=self.env, stdin=subprocess.DEVNULL, text=True,
                capture_output=True, timeout=120, check=False)
            if done.returncode != 0 or done.stdout + done.stderr:
                raise Wrong(f"{line}\n{done.stdout}{done.stderr}")
            return (folder or self.examples) / program
        raise Wrong(f"the README has no line that compiles {program}")

    def start(self, *words, **more):
        return subprocess.Popen(
            [str(word) for word in words], env=self.env,
            stdin=subprocess.DEVNULL, **more)
