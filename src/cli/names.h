/* SPDX-License-Identifier: MIT */
/*
 * The names of a command line: NAME, and those of --also, which are locked
 * together with it.
 */
#ifndef NXLOCK_CLI_NAMES_H
#define NXLOCK_CLI_NAMES_H

#include "cli/args.h"

/* How many there are: 1 without --also. */
static inline size_t names_count(const struct args *args)
{
    return 1 + args->also_count;
}

static inline bool names_several(const struct args *args)
{
    return args->also_count > 0;
}

/* The word for one name, or that for several: "is", "are". */
static inline const char *names_word(
    const struct args *args, const char *one, const char *several)
{
    return names_several(args) ? several : one;
}

/* Name i: 0 is NAME, the others are in the order in which they were written. */
const char *names_at(const struct args *args, size_t i);

/* Writes how messages and proposed commands call all of them into args->shown
 * and args->pasted. Where a message says '%s', shown becomes
 * 'a', 'b' and 'c'; of more than three the middle is left out. */
void names_show(struct args *args);

/* The same while the command line may be wrong, so that a name may be a
 * token or hold a password: those are not shown. */
void names_show_discreetly(struct args *args);

/* Reports a name that is written twice, in any order. True: there is one. */
bool names_repeated(const struct args *args);

/* Writes the numbers of the names into order, of NXL_NAMES_MAX, sorted by the
 * bytes of the names: the order in which they are locked. */
void names_order(const struct args *args, size_t *order);

/* Makes *one a copy of args about name i alone. It shares all else with args,
 * and must not be freed by args_free(). */
void names_only(struct args *one, const struct args *args, size_t i);

#endif
