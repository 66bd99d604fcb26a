/* SPDX-License-Identifier: MIT */
/*
 * What doctor finds: a line each, and the exit code that all of them make.
 */
#ifndef NXLOCK_CLI_DIAGNOSTIC_H
#define NXLOCK_CLI_DIAGNOSTIC_H

#include <stdbool.h>

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_WARN, LEVEL_FAIL };

struct diagnostics {
    bool json;
    const char *server; /* of which the next ones are; NULL: of all */
    enum level worst;
    int code; /* of the worst failure; 0: there was none */
};

/* remedy: NULL, or a sentence without its full stop, as the finding is. */
void diagnostic(struct diagnostics *f, enum level level, const char *what,
    const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Of an error of the library, whose words name the remedy already. */
void diagnostic_failed(
    struct diagnostics *f, const char *what, int result, const char *words);

/* The exit code of a failure of that kind, when it has no result. */
void diagnostic_code(struct diagnostics *f, int code);

int diagnostics_code(const struct diagnostics *f);

#endif
