/* SPDX-License-Identifier: MIT */
/*
 * The options: one table for the parser, the help and the suggestions. The
 * library's URL parameters are flags too, without a row here.
 */
#ifndef NXLOCK_CLI_OPTION_H
#define NXLOCK_CLI_OPTION_H

#include <stdio.h>

#include "cli/args.h"
#include "cli/report.h"

struct option {
    char letter;       /* 0: none */
    const char *name;  /* without "--" */
    const char *value; /* what it takes, for people; NULL: nothing */
    const char *help;
    unsigned commands; /* bits 1 << enum command */
    /* 0 or an exit code, after saying why. shown is the option as it was
     * written; value is NULL if it takes none. */
    int (*set)(struct args *args, const char *shown, const char *value);
};

/* The option of this command with that letter or name, or NULL. */
const struct option *option_by_letter(enum command command, char letter);
const struct option *option_by_name(
    enum command command, const char *name, size_t length);

/* Is this the name of a URL parameter ('-' for '_')? Then its own spelling. */
const char *option_url_parameter(const char *name, size_t length);
/* Adds name=value, an option shown so, to args->query, with what is special
 * in a URL encoded. 0, or an exit code after saying what is wrong with it. */
int option_add_to_query(struct args *args, const char *shown,
    const char *name, const char *value);

/* Options of unlock alone; in option_unlock.c. */
int option_set_token(
    struct args *args, const char *shown, const char *value);
int option_set_force(
    struct args *args, const char *shown, const char *value);
int option_set_yes(struct args *args, const char *shown, const char *value);

/* Shows every option of the command to *nearest, without dashes. */
void option_consider(enum command command, struct nearest *nearest);
void option_print(enum command command, FILE *out);

/* "500ms", "30s", "10m", "2h", "1d", "1.5h"; a bare number is seconds. */
bool duration_parse(const char *text, int64_t *ms);
/* The same of an option shown so. 0, or EXIT_USAGE after saying what is wrong
 * with it. */
int option_duration(int64_t *ms, const char *shown, const char *value);

#endif
