/* SPDX-License-Identifier: MIT */
/*
 * The label that shows people who holds a lock: "host:pid:program".
 */
#ifndef NXLOCK_CLI_RUN_LABEL_H
#define NXLOCK_CLI_RUN_LABEL_H

#include <stdbool.h>
#include <stddef.h>

/* With the zero byte; the library's limit is 128. */
#define LABEL_ROOM 129

/* The label of program, made one printable word; out has LABEL_ROOM bytes. */
const char *label_make(char *out, long pid, const char *program);

/* The label of the process that started this one. */
const char *label_of_caller(char *out);

struct label_parts {
    size_t host; /* its length; it begins the label */
    long pid;
    const char *program;
};

/* Reads a label of that form. False: it has another one. */
bool label_read(const char *label, struct label_parts *parts);

#endif
