#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""table.py BUILD [--write FILE | --check FILE]: what each guard prevents.

Runs the programs of BUILD that turn guards off one by one, and makes of what
they print a table in Markdown: on stdout, or in FILE. --check compares instead:
every guard that has a switch was found, and FILE says the same (how fast may
differ).

The searches of tests/sim/test_harm.c take a minute and a half. --check runs
them only with NXLOCK_FULL=1. Otherwise it plays each seed that FILE shows, once
without the guard and once with it. The last line of FILE is a checksum of the
searches, so that no search can be changed or added without --write.

Invariant: a guard that no program found, or that a program names and the
headers do not have, is an error; and no command is given as an example that
did not just break what it is to break.
"""

import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ("src/model/guard.h", "tests/sim/guards.h")
SIMULATOR = "tests/sim/nxlock-sim"
EXAMPLES = ("shorten", "adopt")
SEARCHES = ("locks", "permits", "sentinels")  # parts of test_sim_harm
SECONDS = 240  # of one program
THREADS = 8    # programs at once; most of them sleep
# With all guards the first seeds of each world break nothing. The suite "sim"
# plays those of the other kinds of work, more of them.
CLEAN_SEEDS = 200
CLEAN_WORK = ("once", "replicas")
# No guard helps against these, and docs/guarantees.md says so.
BEYOND = [
    ["--servers", servers, "--seeds", "100", "--faults", "skew",
     "--only", "I1"]
    for servers in ("1", "2", "3", "5")
] + [["--servers", "1", "--work", "once", "--faults", "wipe,cut",
      "--only", "O1"]]

SWITCH = re.compile(r'^\s+X\((\w+), "(.*?)"\)', re.M)
PLAYED = re.compile(
    r"^(\d+) servers?, (?:work ([\w-]+), )?faults (\S+), without (\S+): "
    r"seed (\d+) breaks ([IO]\d+) "
    r"\((\d+) ms\)", re.M)
# The same in a page: the cells of a row, and each seed in the last of them.
ROW = re.compile(r"^\|(?: ([\w-]+))? \|[^|]*\| [^|]* \((\w+)\) \| "
                 r"nxlock-sim: ([^|]*) \|")
GUARD = re.compile(r"^\| ([\w-]+) \|")
SEED = re.compile(r"seed (\d+) of (\d+) servers?"
                  r"(?:, `--work ([\w-]+)`)?(?:, `--faults (\S+)`)?")
LIVE = re.compile(r"^without (\w+): (.*) \((\d+) ms\)", re.M)

# One seed that breaks an invariant; the work is "" where programs lock.
Play = collections.namedtuple(
    "Play", "servers work faults guard seed invariant ms")

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
    "I21": "a client that wants a lock alone is never granted it beside others",
    "O1": "work is done twice, or begun again while nobody knows of it",
    "O2": "work that was begun is found as if it had not been",
    "O3": "work is repeated, and the program is not told so",
    "O4": "work that was done does not count as done",
    "O5": "a result is replayed that is not the first, or another's",
}

HEAD = """# What each guard prevents

Every safeguard against two holders, or against keys that are left behind, has
a switch in the tests' build. With the safeguard off, the simulator
(`tests/sim`, where a seed always plays the same history), a scene of a state
machine or a test with a real redis-server shows the harm; with it on, the same
seed, scene or test shows none. This file is made by

    python3 tests/guards/table.py BUILD --write tests/guards/README.md

where BUILD is a meson build directory with `-Dtests=enabled`. Every run of the
tests plays the seeds below, without the guard and with it; a full run searches
for them again, and compares what it finds. I1 and so on are the invariants of
`tests/sim/checker.h`, O1 and so on those of `tests/sim/ledger.h`; the time is
that of the search, or of the scenario.

`tests/sim/test_harm.c` lists which invariants are checked without a guard,
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


def searches():
    """The last line of the page: a checksum of the searches."""
    text = re.sub(r"/\*.*?\*/", "",
                  (ROOT / "tests/sim/test_harm.c").read_text(), flags=re.S)
    words = " ".join(text.split())
    checksum = hashlib.sha256(words.encode()).hexdigest()[:16]
    return f"<!-- searches {checksum} -->"


def programs(build):
    """Commands: those with servers; those that search; others of the
    simulator."""
    lists = ([[build / "tests/guards" / source.stem.replace(
                  "test_", "test_guards_")]
              for source in sorted((ROOT / "tests/guards").glob("test_*.c"))],
             [[build / "tests/sim/test_sim_harm", part] for part in SEARCHES],
             [[build / "tests/sim/test_sim_rare"]])
    missing = [str(p.relative_to(build))
               for p, *_ in [*lists[0], *lists[1], *lists[2],
                             [build / SIMULATOR]]
               if not p.is_file()]
    if missing:
        sys.exit(f"{build} has no {', '.join(missing)}: BUILD is a directory "
                 f"that is made by 'meson setup {build} -Dtests=enabled' and "
                 f"built by 'ninja -C {build}'")
    return lists


def run(command):
    """(name, code, what it told)"""
    done = subprocess.run(command, capture_output=True, text=True,
                          timeout=SECONDS)
    return command[0].name, done.returncode, done.stdout + done.stderr


def told(text):
    """What programs that search have told."""
    return [Play(*found) for found in PLAYED.findall(text)]


def shown(page):
    """The same as a page has it."""
    plays, guard = [], ""
    for line in page.splitlines():
        row = ROW.match(line)
        if GUARD.match(line):
            guard = GUARD.match(line)[1]
        for seed, servers, work, faults in SEED.findall(row[3]) if row else ():
            plays.append(Play(servers, work, faults or "clean", guard, seed,
                              row[2], "0"))
    return plays


def played(plays):
    """[guard, harm, by, ms] of the simulator: a row for each invariant."""
    rows = {}
    for play in plays:
        row = rows.setdefault((play.guard, play.invariant), [[], 0])
        some = ("1 server" if play.servers == "1"
                else f"{play.servers} servers")
        with_faults = ("" if play.faults == "clean"
                       else f", `--faults {play.faults}`")
        with_work = f", `--work {play.work}`" if play.work else ""
        row[0].append(f"seed {play.seed} of {some}{with_work}{with_faults}")
        row[1] += int(play.ms)
    return [[guard, f"{INVARIANTS[which]} ({which})",
             "nxlock-sim: " + ", ".join(seeds), ms]
            for (guard, which), (seeds, ms) in rows.items()]


def world(play):
    """Arguments of nxlock-sim for all seeds of the same kind."""
    return (["--servers", play.servers]
            + (["--work", play.work] if play.work else [])
            + (["--faults", play.faults] if play.faults != "clean" else []))


def command(play):
    first, servers, *others = world(play)
    return [first, servers, "--seed", play.seed, *others,
            "--without", play.guard, "--only", play.invariant]


def examples(plays):
    """{guard: the first that shows its harm}"""
    found = {}
    for play in plays:
        if play.guard in EXAMPLES and not play.work:
            found.setdefault(play.guard, command(play))
    return found


def shows(build, words):
    """Does the command break the invariant that it ends with? It prints that at
    once, and then looks for the fewest events that do, which takes long."""
    with subprocess.Popen([build / SIMULATOR, *words], text=True,
                          stdout=subprocess.PIPE) as player:
        broken = any(f": {words[-1]} is broken" in line
                     for line in player.stdout)
        player.kill()
    return broken


def clean(build, words):
    """Does it break nothing?"""
    return subprocess.run([build / SIMULATOR, *words], capture_output=True,
                          timeout=SECONDS).returncode == 0


def checks(plays):
    """[(function, command, what is wrong if it is false)]"""
    found, most = [], {}
    for play in plays:
        breaks, where = command(play), tuple(world(play))
        guarded = breaks[:breaks.index("--without")]
        found += [(shows, breaks, "breaks nothing"),
                  (clean, guarded, "breaks something with all guards")]
        if play.work in CLEAN_WORK or play.faults != "clean":
            most[where] = max(most.get(where, 0), int(play.seed))
    for where, seed in most.items():
        count = str(min(seed, CLEAN_SEEDS))
        found.append((clean, [*where, "--seeds", count],
                      "breaks something with all guards"))
    found += [(shows, words, "breaks nothing") for words in BEYOND]
    return found


def wrong_plays(pool, build, plays):
    """What does not play as the page says."""
    found = checks(plays)
    good = pool.map(lambda one: one[0](build, one[1]), found)
    return [f"{SIMULATOR} {' '.join(words)} {harm}"
            for (_, words, harm), well in zip(found, good) if not well]


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


def run_all(pool, commands, wrong):
    """[(name, what it told)]"""
    texts = []
    for name, code, text in pool.map(run, commands):
        if code == 0 and "[  SKIPPED ]" in text:
            print(f"{name} was skipped:\n{text}")
            sys.exit(77)
        if code != 0:
            wrong.append(f"{name} failed:\n{text}")
        texts.append((name, text))
    return texts


def main():
    build, option, file = arguments()
    guards, wrong = switches(), []
    with_servers, searching, simulating = programs(build)
    there = pathlib.Path(file).read_text() if option == "--check" else ""
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        harms = [row for name, text in run_all(pool, with_servers, wrong)
                 for row in lived(name, text)]
        if option == "--check" and "NXLOCK_FULL" not in os.environ:
            plays = shown(there)
            wrong += wrong_plays(pool, build, plays)
        else:
            plays = [play for _, text in run_all(pool, searching, wrong)
                     for play in told(text)]
        others = [row for name, text in run_all(pool, simulating, wrong)
                  for row in lived(name, text)]
    rows = harms + played(plays) + others
    commands = examples(plays)
    found = {row[0] for row in rows}
    wrong += [f"nobody misses the guard {g}" for g in guards if g not in found]
    wrong += [f"there is no guard {g}" for g in found if g not in guards]
    wrong += [f"the example breaks nothing: {' '.join(commands.get(g, [g]))}"
              for g in EXAMPLES
              if g not in commands or not shows(build, commands[g])]
    made = HEAD + "".join(f"    BUILD/{SIMULATOR} {' '.join(commands[g])}\n"
                          for g in EXAMPLES if g in commands)
    made += "\n" + table(guards, rows) + "\n" + searches() + "\n"
    if option == "--write" and not wrong:
        pathlib.Path(file).write_text(made)
    else:
        print(made, end="")
    if option == "--check":
        if timeless(there) != timeless(made):
            wrong.append(f"{file} tells something else; make it anew with "
                         "--write")
    for what in wrong:
        print(what, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
