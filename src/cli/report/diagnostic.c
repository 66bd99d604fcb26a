/* SPDX-License-Identifier: MIT */
/*
 * Prints the rows of doctor, as text or JSON.
 *
 * Invariant: the exit code is that of the worst finding printed.
 */
#include "cli/report/diagnostic.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <nxlock.h>

#include "cli/report/json.h"
#include "cli/report/report.h"

#define WORDS_ROOM 1024

static void print(const struct diagnostics *f, enum level level,
    const char *what, const char *words, const char *remedy)
{
    static const char *const names[] = {
        [LEVEL_OK] = "ok",
        [LEVEL_NOTE] = "note",
        [LEVEL_WARN] = "WARN",
        [LEVEL_FAIL] = "FAIL",
    };
    size_t length = strlen(words);
    struct json json;

    if (!f->json) {
        /* No full stop ends a remedy: it may be a command to copy. */
        printf("%-4s  %s%s%s: %s%s%s%s\n", names[level],
            f->server ? f->server : "", f->server ? " " : "", what, words,
            length > 0 && words[length - 1] == '.' ? "" : ".",
            remedy ? " Remedy: " : "", remedy ? remedy : "");
        return;
    }
    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_string(&json, "level", names[level]);
    if (f->server)
        json_string(&json, "server", f->server);
    json_string(&json, "what", what);
    json_string(&json, "finding", words);
    if (remedy)
        json_string(&json, "remedy", remedy);
    json_end(&json);
}

void diagnostic(struct diagnostics *f, enum level level, const char *what,
    const char *remedy, const char *format, ...)
{
    char words[WORDS_ROOM];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    clean_text(words, strlen(words));
    print(f, level, what, words, remedy);
    if (level > f->worst)
        f->worst = level;
}

/* The order in which a user has to fix failures: the URL, then permissions,
 * then the server. */
static int failure_rank(int code)
{
    return code == EXIT_CONFIG        ? 4
           : code == EXIT_DENIED      ? 3
           : code == EXIT_UNAVAILABLE ? 2
           : code == EXIT_INTERNAL    ? 1
                                      : 0;
}

void diagnostic_code(struct diagnostics *f, int code)
{
    if (failure_rank(code) == 0) /* e.g. the lease expired before the answer */
        code = EXIT_UNAVAILABLE;
    if (failure_rank(code) > failure_rank(f->code))
        f->code = code;
}

void diagnostic_failed(
    struct diagnostics *f, const char *what, int result, const char *words)
{
    diagnostic(f, LEVEL_FAIL, what, NULL, "%s", failure_words(words, result));
    diagnostic_code(f, exit_code_for(result, EXIT_UNAVAILABLE));
}

int diagnostics_code(const struct diagnostics *f)
{
    if (f->worst == LEVEL_FAIL)
        return f->code != 0 ? f->code : EXIT_UNAVAILABLE;
    return f->worst == LEVEL_WARN ? EXIT_WARNED : EXIT_DONE;
}
