#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mutate.py BEFORE AFTER: does AFTER catch the faults that BEFORE catches?

For a change of the tests: it puts one-line faults (a comparison turned, a
condition negated, a statement dropped ...) into lines of src that both commits
have, one at a time, and runs the tests of each commit until one fails: the
suites unit, fake and sim, and live for faults that survive these. A fault that
survives BEFORE is not tried with AFTER. It prints a table, then the faults that
BEFORE catches and AFTER does not; if there are any, it exits with 1.

    tests/mutate.py 2d0fc607 main                  40 faults
    tests/mutate.py 2d0fc607 main --count 10       fewer
    tests/mutate.py 2d0fc607 main --seed v1.0      other faults

The hash of --seed (by default AFTER) decides which faults. Each commit has a
worktree and a build in --work DIR, beside state.json: the same command goes on
where an earlier one was ended, and takes that file's results. A test that
fails counts if it fails twice, and not without the fault. One that hangs, ten
times as long as before and a minute, fails.
With --work, "git worktree remove" DIR/before and DIR/after when all is done.
"""

import argparse
import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STAGES = ("unit", "fake", "sim", "live")
# How many programs are built and run before the next ones are built.
BATCH = 12
# A test that takes this many seconds is run after the others.
LONG = 10


# ------------------------------------------------------------------ the faults

TURNED = (
    (r" == ", " != "), (r" != ", " == "),
    (r" <= ", " < "), (r" < ", " <= "), (r" >= ", " > "), (r" > ", " >= "),
    (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \+= ", " -= "), (r" -= ", " += "),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"\bif \((.*)\)( \{)?$", r"if (!(\1))\2"),
    (r"\b(\d+)\b", lambda m: str(int(m[1]) + 1)),
    (r"\b([1-9]\d*)\b", lambda m: str(int(m[1]) * 2)),
    (r"\breturn (.* (?:[=!<>]=|[<>]|&&|\|\|) .*);$", r"return !(\1);"),
    # The scripts, in Lua:
    (r" ~= ", " == "), (r" and ", " or "), (r" or ", " and "),
    (r"\bif (.*) then$", r"if not (\1) then"),
)
STATEMENT = re.compile(r"\s+(?!return\b|else\b|goto\b|case\b)[\w*(][^;]*;$")
ENDS = re.compile(r"(^|[;{}:]|\*/)\s*$")


def masked(line):
    """The line with what is in quotes as blanks: no operator is there."""
    return re.sub(r"\"(\\.|[^\"])*\"|'(\\.|[^'])*'|/\*.*?\*/",
                  lambda m: "\1" * len(m[0]), line)


def mutants(line, before=""):
    """All that one line can become; before is the line above it."""
    code = masked(line)
    if (re.match(r"\s*(\*( |$)|//|#|--|$)", code) or "*/" in code or
            "/*" in code):
        return []
    out = []
    for pattern, to in TURNED:
        for found in re.finditer(pattern, code):
            text = re.match(pattern, line[found.start():])
            if text:
                new = to(text) if callable(to) else text.expand(to)
                end = found.start() + len(text[0])
                out.append(line[:found.start()] + new + line[end:])
    if (STATEMENT.match(code) and ENDS.search(masked(before)) and
            code.count("(") == code.count(")")):
        indent = line[:len(line) - len(line.lstrip())]
        out.append(indent + ";")
    return sorted(set(out) - {line})


def unchanged(old, new, diff):
    """[(old line, new line)], from 1, by the hunks of a diff -U0."""
    pairs, at_old, at_new = [], 1, 1
    for hunk in re.finditer(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@",
                            diff, re.M):
        first_old, n_old = int(hunk[1]), int(hunk[2] or 1)
        first_new, n_new = int(hunk[3]), int(hunk[4] or 1)
        end = first_new + (n_new == 0)
        pairs += zip(range(at_old, at_old + end - at_new), range(at_new, end))
        at_old = first_old + (n_old or 1)
        at_new = first_new + (n_new or 1)
    pairs += zip(range(at_old, old + 1), range(at_new, new + 1))
    return pairs


def choose(before, after, seed):
    """All faults that both trees have a place for, in the order of the seed: a
    line's place in it does not depend on the other lines."""
    sites = []
    for old_path, new_path in same_files(before.commit, after.commit):
        old, new = before.text(old_path), after.text(new_path)
        diff = git("diff", "-U0", f"{before.commit}:{old_path}",
                   f"{after.commit}:{new_path}")
        for a, b in unchanged(len(old), len(new), diff):
            turned = mutants(old[a - 1], old[a - 2] if a > 1 else "")
            rank = hashlib.sha256(f"{seed} {old_path}:{a}".encode()).digest()
            if turned:
                sites.append((rank, {
                    "before": [old_path, a], "after": [new_path, b],
                    "line": old[a - 1], "fault": turned[rank[0] % len(turned)]
                }))
    return [fault for _, fault in sorted(sites, key=lambda site: site[0])]


def same_files(before, after):
    """[(path before, path after)] of the C files and scripts of both."""
    old = git("ls-tree", "-r", "--name-only", before, "src").split()
    moved = {}
    for line in git("diff", "-M", "--name-status", before, after,
                    "src").splitlines():
        status, *paths = line.split("\t")
        if status[0] in "RD":
            moved[paths[0]] = paths[1] if len(paths) > 1 else None
    pairs = [(path, moved.get(path, path)) for path in old]
    return [(a, b) for a, b in pairs if a.endswith((".c", ".lua")) and b]


# ------------------------------------------------------------------- the trees

def git(*args):
    return subprocess.run(["git", "-C", str(ROOT), *args], check=True,
                          text=True, stdout=subprocess.PIPE).stdout


class Tree:
    """One commit, in its worktree and build directory."""

    def __init__(self, work, name, commit, jobs):
        self.commit = git("rev-parse", commit + "^{commit}").strip()
        self.source = work / name
        self.dir = work / name / "build"
        self.jobs = jobs
        self.texts = {}
        self.seconds = {} # that a test took at its last run
        self.unsound = set() # tests that fail without a fault

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = git("show", f"{self.commit}:{path}").split("\n")
        return self.texts[path]

    def prepare(self):
        if not self.source.exists():
            git("worktree", "prune")
            git("worktree", "add", "--detach", str(self.source), self.commit)
        at = ["-C", str(self.source)]
        git(*at, "checkout", "--force", "--detach", self.commit)
        if not (self.dir / "build.ninja").exists():
            ccache = ["ccache"] if shutil.which("ccache") else []
            gold = {"CC_LD": "gold"} if shutil.which("ld.gold") else {}
            subprocess.run(
                ["meson", "setup", str(self.dir), str(self.source),
                 "-Dtests=enabled", "-Ddebug=false"],
                env={**os.environ, "CC": " ".join(ccache + ["gcc"]),
                     "CXX": " ".join(ccache + ["g++"]), **gold},
                check=True, stdout=subprocess.DEVNULL)
        else: # what the commit changes is configured before tests are listed
            subprocess.run(["ninja", "-C", str(self.dir), "build.ninja"],
                           check=True, stdout=subprocess.DEVNULL)
        out = subprocess.run(["ninja", "-C", str(self.dir), "-t", "targets",
                              "all"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
        self.outputs = {line.split(":")[0] for line in out.splitlines()}
        self.files = {t["id"]: t["filename"] for t in self.ask("--targets")}
        self.tests = [self.test(t) for t in self.ask("--tests")]
        early = [t for t in self.tests if t["stage"] in STAGES[:-1]]
        if not self.build(sorted({x for t in early for x in t["targets"]})):
            raise SystemExit(f"{self.source} does not build")
        for test in early:
            test["objects"] = self.objects(test)

    def ask(self, what):
        out = subprocess.run(["meson", "introspect", what, str(self.dir)],
                             check=True, stdout=subprocess.PIPE).stdout
        return json.loads(out)

    def test(self, found):
        """What is needed of meson's description of a test."""
        targets = {pathlib.Path(name) for one in found["depends"]
                   for name in self.files.get(one, [])}
        targets |= {pathlib.Path(word) for word in found["cmd"]}
        inside = {str(path.relative_to(self.dir)) for path in targets
                  if path.is_relative_to(self.dir) and path != self.dir}
        suites = [s.split(":")[-1] for s in found["suite"]]
        stage = next((s for s in STAGES if s in suites), None)
        return {"name": found["name"], "stage": stage, "cmd": found["cmd"],
                "targets": sorted(inside & self.outputs), "env": found["env"],
                "place": found["workdir"], "objects": None}

    def objects(self, test):
        """The C files of src that are in its programs: of those that they are
        built from, the ones that the linker took out of an archive."""
        found = set()
        for target in test["targets"]:
            out = subprocess.run(
                ["readelf", "--wide", "--symbols", str(self.dir / target)],
                capture_output=True, text=True, check=False).stdout
            names = set(re.findall(r" FILE .* (\S+\.c)$", out, re.M))
            out = subprocess.run(
                ["ninja", "-C", str(self.dir), "-t", "inputs", target],
                capture_output=True, text=True, check=False).stdout
            found |= {path for path in re.findall(r"/(src/\S+\.c)$", out, re.M)
                      if pathlib.Path(path).name in names}
        return found

    def build(self, targets):
        return subprocess.run(
            ["ninja", "-C", str(self.dir), "-j", str(self.jobs), *targets],
            stdout=subprocess.DEVNULL, check=False).returncode == 0

    def put(self, path, number, line):
        text = list(self.text(path))
        text[number - 1] = line
        (self.source / path).write_text("\n".join(text))

    def compiles(self, path):
        """Whether the object of that file can be built; a script always."""
        if path.endswith(".lua"):
            return True
        place = "src/libnxlock-inner.a.p/"
        if path.startswith("src/cli/"):
            place = "src/cli/nxlock.p/"
        flat = re.sub("^src/(cli/)?", "", path).replace("/", "_") + ".o"
        return place + flat in self.outputs and self.build([place + flat])

    def runs(self, test, limit):
        """Whether the test succeeds; None if it does not end in time."""
        known = self.seconds.get(test["name"], limit)
        limit = min(limit, max(60, 10 * known))
        began = time.monotonic()
        with tempfile.TemporaryFile() as out:
            with subprocess.Popen(
                    test["cmd"], cwd=test["place"] or self.dir, stdout=out,
                    stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    env={**os.environ, "NXLOCK_CONFIG": "none",
                         "NXLOCK_TEST_TIMEOUT": str(int(limit)),
                         **test["env"]}) as process:
                try:
                    code = process.wait(limit)
                except subprocess.TimeoutExpired:
                    code = None
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if code is not None:
                self.seconds[test["name"]] = time.monotonic() - began
            out.seek(0)
            tap = b"\nnot ok" in b"\n" + out.read()
        return None if code is None else code in (0, 77) and not tap

    def order(self, stage, path):
        """The tests that the file can reach, likely and short ones first. Only
        real servers run scripts."""
        if path.endswith(".lua") and stage != STAGES[-1]:
            return []
        name, folder = pathlib.Path(path).stem, pathlib.Path(path).parent.name
        cli = path.startswith("src/cli/")

        def rank(test):
            words = self.words(test)
            own = re.sub(r"^(cli_|sim-)", "", test["name"])
            seconds = self.seconds.get(test["name"], 0)
            return (not (own in (name, folder) or name in own),
                    f'/{name}.h"' not in words,
                    seconds > LONG,
                    f'"{folder}/' not in words,
                    name not in words, seconds)

        tests = [t for t in self.tests if t["stage"] == stage and
                 t["name"] not in self.unsound and
                 (t["objects"] is None or path in t["objects"])]
        if cli:
            tests = [t for t in tests if "src/cli/nxlock" in t["targets"]
                     or stage != "live"]
        return sorted(tests, key=rank)

    def words(self, test):
        """The text of its sources, and of the rigs that they include."""
        if "words" not in test:
            place = re.sub(r"^test_", "", pathlib.Path(test["cmd"][0]).name)
            paths = [pathlib.Path(w) for w in test["cmd"][:2]
                     if w.endswith((".py", ".sh"))]
            for suite in STAGES:
                if place.startswith(suite + "_"):
                    name = place.removeprefix(suite + "_")
                    paths.append(self.source / "tests" / suite /
                                 f"test_{name}.c")
            text = "".join(p.read_text() for p in paths if p.exists())
            rigs = set(re.findall(r'#include "((?:\w+/)?\w+_rig\.h)"', text))
            for path in paths:
                for rig in rigs:
                    for found in (path.parent / rig, path.parent.parent / rig):
                        text += found.read_text() if found.exists() else ""
            test["words"] = text
        return test["words"]


# ------------------------------------------------------------------ the contest

class Contest:
    def __init__(self, trees, state, limit, jobs):
        self.trees = trees
        self.state = state
        self.limit = limit
        self.jobs = jobs
        self.known = {} # what is known of a commit, by fault or test
        if state.exists():
            self.known = json.loads(state.read_text())
        for tree in trees.values():
            known = self.known.setdefault(tree.commit, {})
            tree.seconds = known.setdefault("seconds", {})
            tree.unsound = {key.removeprefix("sound ") for key in known
                            if key.startswith("sound ") and not known[key]}

    def save(self):
        new = self.state.with_suffix(".new")
        new.write_text(json.dumps(self.known, indent=1))
        new.replace(self.state)

    def possible(self, fault):
        """Whether both trees can be built with it."""
        return all(self.once(side, "compiles", fault,
                             lambda side=side: self.compiles(side, fault))
                   for side in ("before", "after"))

    def play(self, fault, stages):
        """Fills in which test catches it: before, in these stages, and where
        there is one, after, in all stages."""
        killed = fault.setdefault("killed", {"before": None, "after": None})
        if not killed["before"]:
            killed["before"] = self.once(
                "before", "killed by " + stages[-1], fault,
                lambda: self.caught("before", fault, stages))
        if killed["before"] and not killed["after"]:
            killed["after"] = self.once(
                "after", "killed", fault,
                lambda: self.caught("after", fault, STAGES, killed["before"]))

    def once(self, side, what, fault, find):
        """What find() returns, or has returned when it was asked before."""
        path, number = fault[side]
        key = f"{what} {path}:{number}: {fault['fault'].strip()}"
        known = self.known[self.trees[side].commit]
        if key not in known:
            known[key] = find()
            self.save()
        return known[key]

    def compiles(self, side, fault):
        tree, (path, number) = self.trees[side], fault[side]
        tree.put(path, number, fault["fault"])
        try:
            return tree.compiles(path)
        finally:
            tree.put(path, number, fault["line"])

    def caught(self, side, fault, stages, first=None):
        """The name of the test that fails, or None; first is tried first."""
        tree, (path, number) = self.trees[side], fault[side]
        tree.put(path, number, fault["fault"])
        try:
            tests = [test for stage in stages
                     for test in tree.order(stage, path)]
            batches = [[test for test in tests if test["name"] == first]]
            batches += [tests[start:start + BATCH]
                        for start in range(0, len(tests), BATCH)]
            for batch in batches:
                red = self.first_red(side, batch, fault)
                if red:
                    return red
        finally:
            tree.put(path, number, fault["line"])
        return None

    def first_red(self, side, batch, fault):
        tree = self.trees[side]
        # Most tests of a real server sleep most of their time.
        live = any(test["stage"] == STAGES[-1] for test in batch)
        jobs = self.jobs * (3 if live else 1)
        tree.build([target for test in batch for target in test["targets"]])
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            runs = {pool.submit(tree.runs, test, self.limit): test
                    for test in batch}
            for run in concurrent.futures.as_completed(runs):
                test = runs[run]
                good = run.result()
                if good or (good is False and tree.runs(test, self.limit)):
                    continue
                if self.is_sound(side, test, fault):
                    for other in runs:
                        other.cancel()
                    return test["name"]
        return None

    def is_sound(self, side, test, fault):
        """Whether the test succeeds without a fault."""
        tree, (path, number) = self.trees[side], fault[side]
        known = self.known[tree.commit]
        key = "sound " + test["name"]
        if key not in known:
            tree.put(path, number, fault["line"])
            known[key] = (tree.build(test["targets"]) and
                          tree.runs(test, self.limit) is True)
            if not known[key]:
                tree.unsound.add(test["name"])
            self.save()
            tree.put(path, number, fault["fault"])
        return known[key]


# ------------------------------------------------------------------ the verdict

def verdict(results):
    """The faults that only BEFORE catches."""
    return [r for r in results
            if r["killed"]["before"] and not r["killed"]["after"]]


def described(result):
    path, number = result["after"]
    return "%s:%d  %s  =>  %s" % (path, number, result["line"].strip(),
                                  result["fault"].strip())


def row(result):
    killed = result["killed"]
    return "%s\n    before: %s, after: %s" % (
        described(result), killed["before"] or "survives",
        killed["after"] or ("survives" if killed["before"] else "not tried"))


def table(results):
    rows = [row(result) for result in results]
    lost = verdict(results)
    survive = sum(1 for r in results if not r["killed"]["before"])
    rows.append("%d faults, %d survive before" % (len(results), survive))
    rows += ["caught before, but not after: " + described(r) for r in lost]
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", help="a commit; AFTER")
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="of these faults, those in files of such a path")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=180,
                        help="seconds that a test may take")
    parser.add_argument("--work", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) /
                        "nxlock-mutate")
    args = parser.parse_args()
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    trees = {side: Tree(work, side, getattr(args, side), args.jobs)
             for side in ("before", "after")}
    if trees["before"].commit == trees["after"].commit:
        trees["before"] = trees["after"] # only to see what survives
    seed = git("rev-parse", args.seed or args.after).strip()
    for tree in set(trees.values()):
        tree.prepare()
    contest = Contest(trees, work / "state.json", args.limit, args.jobs)
    faults = itertools.islice(filter(contest.possible, choose(
        trees["before"], trees["after"], seed)), args.count)
    results = [fault for fault in faults
               if re.search(args.only, fault["after"][0])]
    for stages in (STAGES[:-1], STAGES[-1:]):
        for number, fault in enumerate(results, 1):
            contest.play(fault, stages)
            print(number, row(fault), flush=True)
    print(table(results))
    return 1 if verdict(results) else 0


if __name__ == "__main__":
    sys.exit(main())
