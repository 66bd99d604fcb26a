#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_structure.py finds each thing that it says it finds: every case puts
one fault into a small tree that is otherwise without fault."""

import contextlib
import importlib.util
import io
import pathlib
import sys
import tempfile

SPDX = "/* SPDX-License-Identifier: MIT */\n"
HEAD = SPDX + "/* What it keeps. */\n"
STAMPS = '#include "wire/timestamps/timestamps.h"\n'
PART = '#include "wire/timestamps/parts.h"\n'
TLS = '#include "net/tls/tls.h"\n'
TLS_PART = '#include "net/tls/parts.h"\n'
LONG = "int f(void)\n{\n" + "    f();\n" * 70 + "}\n"

GOOD = {
    "src/api/a.c": HEAD + '#include "net/n.h"\n#include <nxlock.h>\n',
    "src/net/n.h": HEAD + '#include "wire/w.h"\n',
    "src/net/n.c": HEAD + "#include <hiredis/hiredis.h>\n",
    "src/net/state.c": HEAD + TLS,
    "src/api/long.c": SPDX + "/* One subject: x. */\n" + "int x;\n" * 700,
    "src/net/tls/t.c": HEAD + TLS + TLS_PART + "#include <openssl/ssl.h>\n",
    "src/wire/w.h": HEAD + "/* time() and exit() in words are fine */\n",
    "src/wire/value.c": HEAD + STAMPS + "int v = stamp_parse(x);\n",
    "src/wire/timestamps/t.c": HEAD + STAMPS + PART + "int stamp;\n",
    "src/wire/v.c": HEAD + "int v = k == VERB_TELL;\n"
    "int b = 1U << VERB_TELL | 1U << VERB_READ_RECORD;\n"
    "int l = i < VERB_KINDS;\n",
    "src/core/v.c": HEAD + "int v[] = {[VERB_TELL] = CALL_TELL == x};\n",
    "src/net/s.c": HEAD + "int s = NXL_SCHEME_TIMESTAMP; /* a stamp */\n",
    "src/client/nodes.c": HEAD + "struct node *n = c->nodes.first;\n",
    "src/cli/o.c": HEAD + "int o = servers[0].x;\n",
    "src/core/c.c": HEAD + 'const char *c(void)\n{\n    return "exit(";\n}\n',
    "src/cli/l.c": HEAD + '#include "api/private.h"\n#include <nxlock.h>\n',
    "src/cli/m.c": HEAD + 'int m(void)\n{\n    return printf("x");\n}\n',
    "src/cli/n.c": HEAD + "int n(void)\n{\n    if ((x != NULL) == sizeof(y))\n"
    "        f(x != NULL, z);\n    y = x == NULL;\n    return x != NULL;\n}\n",
    "tests/meson.build": "# SPDX-License-Identifier: MIT\n'known'",
    "tests/unit/test_known.c": HEAD + "int f(void)\n{\n    abort();\n}\n",
}

BAD = [
    ("src/net/n.c", HEAD + "int x = k >= VERB_BEGIN;\n", "order of kinds"),
    ("src/wire/w.c", HEAD + "int x = VERB_CAP_TTL < k;\n", "order of kinds"),
    ("src/core/c.c", HEAD + "int x = c <= CALL_TELL;\n", "order of kinds"),
    ("src/wire/w.c", HEAD + "case VERB_READ_RECORD:\n", "a switch over kinds"),
    ("src/core/c.c", HEAD + "case ROUND_TELL:\n", "a switch over kinds"),
    ("src/net/n.c", HEAD + "int x = k == VERB_TELL;\n", "with a verb"),
    ("src/api/a.c", HEAD + "int x = VERB_TELL != k;\n", "with a verb"),
    ("src/core/c.c", HEAD + '#include "net/n.h"\n', "core may not include net"),
    ("src/core/c.c", HEAD + '#include "wire/w.h"\n', "may not include wire"),
    ("src/net/n.c", HEAD + '#include "client/c.h"\n', "may not include client"),
    ("src/base/b.c", HEAD + '#include "api/a.h"\n', "may not include api"),
    ("src/config/u.c", HEAD + '#include "net/n.h"\n', "may not include net"),
    ("src/lock/d.c", HEAD + '#include "api/a.h"\n', "may not include api"),
    ("src/model/v.c", HEAD + '#include "core/c.h"\n', "may not include core"),
    ("src/cli/m.c", HEAD + '#include "api/a.h"\n', "may not include api"),
    ("src/cli/m.c", HEAD + '#include "net/conn.h"\n', "may not include net"),
    ("src/net/n.c", HEAD + '#include "api/private.h"\n', "may not include api"),
    ("src/net/n.c", HEAD + '#include "n.h"\n', "write it from src"),
    ("src/net/n.h", HEAD + "#include <hiredis/hiredis.h>\n", "hiredis is not"),
    ("src/api/a.c", HEAD + "#include <hiredis/hiredis.h>\n", "hiredis is not"),
    ("src/api/a.c", HEAD + "#include <uuid/uuid.h>\n", "libuuid is for"),
    ("src/net/n.c", HEAD + "#include <openssl/ssl.h>\n", "OpenSSL is for"),
    ("src/net/n.c", HEAD + TLS, "tls.h is not for this file"),
    ("src/api/a.c", HEAD + TLS, "tls.h is not for this file"),
    ("src/net/state.c", HEAD + TLS_PART, "parts.h is not for this file"),
    ("src/core/c.c", HEAD + "#include <nxlock.h>\n", "nxlock.h is not for"),
    ("src/net/b.c", HEAD + "#include <nxlock.h>\n", "nxlock.h is not for"),
    ("src/top/t.c", HEAD, "no layer of that name"),
    ("src/api/a.c", HEAD + "int x; \n", "3: blanks at the end"),
    ("src/api/a.c", HEAD + "\tint x;\n", "a tab"),
    ("src/api/a.c", HEAD + "/* " + "x" * 78 + "\n", "81 columns"),
    ("src/api/a.c", "/* MIT */\n", "the first line is not"),
    ("src/api/a.c", SPDX + "#include <stdio.h>\n", "2: no opening comment"),
    ("src/api/a.c", HEAD + "int x;\n" * 700, "a file of 702 lines"),
    ("tests/unit/test_known.c", HEAD + LONG, "4: a function of 72 lines"),
    ("src/api/a.c", HEAD + "int f(void) {\n}\n", "brace has its own line"),
    ("src/api/a.c", HEAD + "int f(void)\n{\ngoto a;\ngoto b;\n}\n", "label"),
    ("src/api/a.c", HEAD + "int x = printf(y);\n", "printf() has no place"),
    ("src/net/n.c", HEAD + "int x = abort ();\n", "abort() has no place"),
    ("src/net/n.c", HEAD + "int x = time(0);\n", "time() has no place"),
    ("src/cli/m.c", HEAD + "int x = atoi(y);\n", "atoi() has no place"),
    ("src/net/n.c", HEAD + "int x = clock_gettime(y);\n", "clock_gettime()"),
    ("src/core/c.c", HEAD + "int x = malloc(y);\n", "malloc() has no place"),
    ("src/api/a.c", HEAD + "int x = client->servers[i].y;\n", "knows its"),
    ("src/net/n.c", HEAD + "int x = nodes [0];\n", "knows its server"),
    ("src/client/c.c", HEAD + "x = c->nodes.first;\n", "knows its server"),
    ("src/lock/d.c", HEAD + "life_outcome(&l, t, 0, &o, now);\n", "one place"),
    ("src/lock/d.c", HEAD + "line_on_granted(&l, 1, now);\n", "one place"),
    ("src/lock/d.c", HEAD + "x = weigh_message(e, at, now);\n", "one place"),
    ("src/net/n.h", HEAD + STAMPS, "timestamps.h is not for this file"),
    ("src/wire/value.c", HEAD + PART, "parts.h is not for this file"),
    ("src/net/n.c", HEAD + "int x = stamp_parse(y);\n", "stamp_parse: the"),
    ("src/wire/strategies.c", HEAD + STAMPS + "int x = stamp_parse(y);\n",
     "stamp_parse: the"),
    ("src/wire/strategy.h", HEAD + STAMPS + "bool timestamped;\n",
     "timestamped: the"),
    ("tests/bench/b.c", HEAD + '#include "net/n.h"\n', "only nxlock.h"),
    ("tests/unit/test_new.c", HEAD, "no meson.build names it"),
    ("tests/cli/test_new.py", "# SPDX-License-Identifier: MIT\n",
     "no meson.build names it"),
    ("src/api/a.c", HEAD + "int x = sizeof y;\n", "3: sizeof without"),
    ("src/api/a.c", HEAD + "if (x == NULL)\n", "3: a condition"),
    ("src/api/a.c", HEAD + "if (f(x, 1) != NULL)\n", "3: a condition"),
    ("src/api/a.c", HEAD + "while (\n    NULL == x)\n", "4: a condition"),
    ("src/api/a.c", HEAD + "for (; x != NULL; x++)\n", "3: a condition"),
    ("src/api/a.c", HEAD + "y = z && x != NULL;\n", "3: a condition"),
    ("src/api/a.c", HEAD + "y = x != NULL || z;\n", "3: a condition"),
    ("src/api/a.c", HEAD + "y = x == NULL ? 1 : 2;\n", "3: a condition"),
    ("docs/examples/e.c", HEAD + "int x = sizeof y;\n", "3: sizeof without"),
    ("docs/examples/e.c", HEAD + '#include "net/n.h"\n', "only nxlock.h"),
    ("docs/page.md", "See `net/n.c`, `src/net/NAME.c`, `wire/gone.c`.\n",
     "1: wire/gone.c is not there"),
    ("docs/page.md", "It says:\n\n```c\nint x = sizeof y;\n```\n",
     "4: sizeof without"),
    ("tests/run.sh", "#!/bin/sh\necho\n", "no SPDX"),
    ("src/meson.build", "a = 1\n", "no SPDX"),
]


def result(checker, files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = checker.main(root)
        return code, said.getvalue()


def main(script):
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("checker", script)
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    bad = 0
    code, text = result(checker, GOOD)
    if code != 0:
        print(f"a tree without fault: {text}")
        bad += 1
    for name, content, words in BAD:
        code, text = result(checker, {**GOOD, name: content})
        if code != 1 or name not in text or words not in text or \
                "1 problems" not in text:
            print(f"{name}, {words!r}: exit {code}\n{text}")
            bad += 1
    print(f"{len(BAD) + 1} trees, {bad} wrong answers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
