#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""table.py BUILD [--write FILE | --check FILE]: what each guard prevents.

Runs the programs of BUILD that turn guards off one by one, and makes of what
they tell a table in Markdown: on stdout, or in FILE. --check compares instead:
every guard that has a switch was found, and FILE tells the very same (how fast
may differ). Keeps: a guard that nobody misses, or that a program tells of and
the headers do not have, is an error; and no command is given as an example
that did not just break what it is to break.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ("src/model/guard.h", "tests/sim/guards.h")
SIMULATOR = "tests/sim/nxlock-sim"
EXAMPLES = ("shorten", "adopt")
SECONDS = 240  # of one program; most of them sleep

SWITCH = re.compile(r"^\s+(?:SIM_)?GUARD_(\w+),\s*/\*\s*(.*?)\s*\*/", re.M)
PLAYED = re.compile(
    r"^(\d+) servers?, (?:work (\w+), )?faults (\S+), without (\S+): "
    r"seed (\d+) breaks ([IO]\d+) "
    r"\((\d+) ms\)", re.M)
LIVE = re.compile(r"^without (\w+): (.*) \((\d+) ms\)", re.M)

INVARIANTS = {
    "I1": "two clients hold a lock at once",
    "I2": "fencing tokens do not grow",
    "I3": "a client relies on a lease for longer than the servers grant it",
    "I4": "the key of another holder is deleted",
    "I5": "a key is left that no holder, request or cleanup accounts for",
    "I6": "a free lock is never granted",
    "I8": "a reported result is false",
    "I9": "a loss is reported after the deadline",
    "I11": "a call says that a lock is busy which nobody else holds",
    "I12": "a token joins a line twice",
    "I15": "a waiter that is alive loses its place in line",
    "I16": "a waiter that is dead is granted the lock",
    "I17": "a waiter asks more often than is documented",
    "I18": "programs outside the line get no turn, or one that is too long",
    "I19": "a client is told what too few replicas have",
    "O1": "work is done twice, or begun again while nobody knows of it",
    "O2": "work that was begun is found as if it had not been",
    "O3": "work is repeated, and the program is not told so",
    "O4": "work that was done does not count as done",
    "O5": "a result is replayed that is not the first, or another's",
}

HEAD = """# What each guard prevents

Every safeguard against two holders, or against keys that are left behind, has
a switch in the tests' build. With the safeguard off, the simulator
(`tests/sim`, where a seed always plays the same history) or a test with a real
redis-server shows the harm; with it on, the same seed or test shows none. This
page is made by

    python3 tests/guards/table.py BUILD --write docs/guards.md

where BUILD is a meson build directory with `-Dtests=enabled`; every run of the
tests compares it with what they find. I1 and so on are the invariants of
`tests/sim/checker.h`, O1 and so on those of `tests/sim/ledger.h`; the time is
that of the search, or of the scenario.

`tests/sim/test_harm*.c` list which invariants are checked without a guard,
with how many servers and under which faults. Each search begins with seed 1,
and the table shows the first seed that breaks the invariant. Numbers of
servers that are missing were not tried.

To see it happen step by step, take a seed from the table:

"""


def name_of(word):
    return word.lower().replace("_", "-")


def switches():
    """{name: what it does}, in the order of the headers."""
    found = {}
    for header in HEADERS:
        text = (ROOT / header).read_text()
        for word, comment in SWITCH.findall(text):
            found[name_of(word)] = comment
    return found


def programs(build):
    sources = sorted((ROOT / "tests/guards").glob("test_*.c"))
    found = [build / "tests/guards" / source.stem.replace(
        "test_", "test_guards_") for source in sources]
    found += [build / "tests/sim" / ("test_sim_" + name)
              for name in ("harm", "harm_permits", "harm_sentinels", "line",
                           "once")]
    found += [build / SIMULATOR]
    missing = [str(p.relative_to(build)) for p in found if not p.is_file()]
    if missing:
        sys.exit(f"{build} has no {', '.join(missing)}: BUILD is a directory "
                 f"that is made by 'meson setup {build} -Dtests=enabled' and "
                 f"built by 'ninja -C {build}'")
    return found[:-1]


def run(program):
    """(name, code, what it told)"""
    done = subprocess.run([program], capture_output=True, text=True,
                          timeout=SECONDS)
    return program.name, done.returncode, done.stdout + done.stderr


def played(text):
    """[guard, harm, by, ms] of the simulator: a row an invariant."""
    rows = {}
    for row_of in PLAYED.findall(text):
        servers, work, faults, guard, seed, invariant, ms = row_of
        row = rows.setdefault((guard, invariant), [[], 0])
        some = "1 server" if servers == "1" else f"{servers} servers"
        with_faults = "" if faults == "clean" else f", `--faults {faults}`"
        with_work = f", `--work {work}`" if work else ""
        row[0].append(f"seed {seed} of {some}{with_work}{with_faults}")
        row[1] += int(ms)
    return [[guard, f"{INVARIANTS[which]} ({which})",
             "nxlock-sim: " + ", ".join(seeds), ms]
            for (guard, which), (seeds, ms) in rows.items()]


def examples(text):
    """{guard: arguments of nxlock-sim}, of the first search for each."""
    found = {}
    for row in PLAYED.findall(text):
        servers, work, faults, guard, seed, invariant, _ms = row
        if guard in EXAMPLES and not work:
            found.setdefault(
                guard, ["--servers", servers, "--seed", seed]
                + (["--faults", faults] if faults != "clean" else [])
                + ["--without", guard, "--only", invariant])
    return found


def shows(build, arguments):
    """Does the command break the invariant that it ends with?"""
    done = subprocess.run([build / SIMULATOR, *arguments],
                          capture_output=True, text=True, timeout=SECONDS)
    return done.returncode == 1 and f"{arguments[-1]} is broken" in done.stdout


def lived(name, text):
    """Likewise of a test with servers, which may tell it once a transport."""
    rows = {}
    for word, harm, ms in LIVE.findall(text):
        key = name_of(word), harm
        rows[key] = max(rows.get(key, 0), int(ms))
    return [[guard, harm, name, ms] for (guard, harm), ms in rows.items()]


def table(guards, rows):
    lines = ["| guard | what it does | without it | found by | after |",
             "|-------|--------------|------------|----------|-------|"]
    for guard, does in guards.items():
        first = f"| {guard} | {does} "
        for row in rows:
            if row[0] == guard:
                after = f"{row[3]} ms" if row[3] else "< 1 ms"
                lines.append(f"{first}| {row[1]} | {row[2]} | {after} |")
                first = "| | "
    return "\n".join(lines) + "\n"


def timeless(text):
    """All but the table's cells which change from run to run."""
    return [line.split("|")[1:5] if line.startswith("|") else line
            for line in text.splitlines()]


def arguments():
    if len(sys.argv) not in (2, 4) or sys.argv[2:3] not in (
            [], ["--write"], ["--check"]):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1])
    option, file = sys.argv[2:] or ("", None)
    if option == "--write":
        place = pathlib.Path(file)
        if place.is_dir() or not os.access(
                place if place.exists() else place.parent, os.W_OK):
            sys.exit(f"{file} cannot be written")
    return build, option, file


def main():
    build, option, file = arguments()
    guards, rows, wrong, commands = switches(), [], [], {}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for name, code, text in pool.map(run, programs(build)):
            if code == 0 and "[  SKIPPED ]" in text:
                print(f"{name} was skipped:\n{text}")
                sys.exit(77)
            if code != 0:
                wrong.append(f"{name} failed:\n{text}")
            rows += played(text) + lived(name, text)
            commands.update(examples(text))
    found = {row[0] for row in rows}
    wrong += [f"nobody misses the guard {g}" for g in guards if g not in found]
    wrong += [f"there is no guard {g}" for g in found if g not in guards]
    wrong += [f"the example breaks nothing: {' '.join(commands.get(g, [g]))}"
              for g in EXAMPLES
              if g not in commands or not shows(build, commands[g])]
    made = HEAD + "".join(f"    BUILD/{SIMULATOR} {' '.join(commands[g])}\n"
                          for g in EXAMPLES if g in commands)
    made += "\n" + table(guards, rows)
    if option == "--write" and not wrong:
        pathlib.Path(file).write_text(made)
    else:
        print(made, end="")
    if option == "--check":
        there = pathlib.Path(file).read_text()
        if timeless(there) != timeless(made):
            wrong.append(f"{file} tells something else; make it anew with "
                         "--write")
    for what in wrong:
        print(what, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
