/* SPDX-License-Identifier: MIT */
/*
 * What doctor finds, a row each, and its exit code.
 */
#ifndef NXLOCK_CLI_REPORT_DIAGNOSTIC_H
#define NXLOCK_CLI_REPORT_DIAGNOSTIC_H

#include <stdbool.h>

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_WARN, LEVEL_FAIL };

struct diagnostics {
    bool json;
    const char *server; /* that the next findings are about; NULL: all */
    enum level worst;
    int code; /* of the worst failure; 0: there was none */
};

/* Prints a finding. remedy may be NULL; it and the finding are sentences
 * without the full stop. */
void diagnostic(struct diagnostics *f, enum level level, const char *what,
    const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Prints a failure for an error of the library, whose message contains the
 * remedy. */
void diagnostic_failed(
    struct diagnostics *f, const char *what, int result, const char *words);

/* Sets the exit code of a failure that diagnostic() printed. */
void diagnostic_code(struct diagnostics *f, int code);

int diagnostics_code(const struct diagnostics *f);

#endif
