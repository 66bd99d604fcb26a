# SPDX-License-Identifier: MIT
"""The checks of one page as a test in TAP."""


class Skip(Exception):
    """Raised by a check that cannot be made here; its text says why."""


def run(checks):
    """Makes each of the checks, (name, function, arguments...). A function
    returns, or yields, what is wrong, a line each. Returns the exit code."""
    bad = 0
    print(f"1..{len(checks)}")
    for number, (name, check, *about) in enumerate(checks, 1):
        try:
            problems = dict.fromkeys(check(*about))
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}")
            continue
        bad += bool(problems)
        print(f"{'not ok' if problems else 'ok'} {number} - {name}")
        for problem in problems:
            print(f"# {problem}")
    return 1 if bad else 0
