/* SPDX-License-Identifier: MIT */
/*
 * What doctor finds: a line each, and the exit code that all of them make.
 */
#ifndef NXLOCK_CLI_FINDING_H
#define NXLOCK_CLI_FINDING_H

#include <stdbool.h>

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_WARN, LEVEL_FAIL };

struct findings {
    bool json;
    const char *server; /* of which the next ones are; NULL: of all */
    enum level worst;
    int code; /* of the worst failure; 0: there was none */
};

/* remedy: NULL, or a sentence without its full stop, as the finding is. */
void finding(struct findings *f, enum level level, const char *what,
    const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Of an error of the library, whose words name the remedy already. */
void finding_failed(
    struct findings *f, const char *what, int result, const char *words);

/* The exit code of a failure of that kind, when it has no result. */
void finding_code(struct findings *f, int code);

int findings_code(const struct findings *f);

#endif
