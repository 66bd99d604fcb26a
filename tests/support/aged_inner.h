/* SPDX-License-Identifier: MIT */
/*
 * What the files of the aged server share. aged.c has the connections and what
 * the test may say, aged_order.c what becomes of a command and of its reply,
 * aged_script.c the Lua, aged_age.c the tables.
 */
#ifndef NXLOCK_TEST_AGED_INNER_H
#define NXLOCK_TEST_AGED_INNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/aged.h"
#include "support/bytes.h"
#include "support/resp.h"

struct age {
    const char *version; /* in INFO; NULL: nothing is changed */
    int column;          /* of aged_commands */
    const char *client;  /* CLIENT's subcommands; NULL: it has no CLIENT */
    const char *info;    /* what INFO says, of what nxlock reads */
};

extern const struct age aged_ages[]; /* by enum aged_profile */

/* 2.2, 2.4, 2.6: number of words, negative for at least so many, 0 for a
 * command that it does not have. in_lua: w writes, r is not deterministic, x
 * both. */
#define AGED_COLUMNS 3
struct aged_command {
    const char *name;
    signed char words[AGED_COLUMNS];
    char in_lua;
};

extern const struct aged_command aged_commands[]; /* name NULL at the end */

struct aged_order { /* a command and what is to become of its reply */
    const struct age *age;
    struct bytes raw;            /* as the client sent it */
    struct resp_command command; /* within raw */
    char sha[41];                /* the script's, as the client knows it */
    struct bytes out;            /* to the server, */
    struct bytes text;           /* or else the answer */
};

struct aged_script { /* one that runs under another name */
    char asked[41], real[41];
    struct aged_script *next;
};

/* What it takes to understand a command. */
struct aged_book {
    const struct age *age;
    const char *refused, *refusal; /* commands, and the answer; or NULL */
    struct aged_script *scripts;
};

/* aged_order.c. Fills in what follows from the command and the age. */
void aged_understand(struct aged_book *book, struct aged_order *o);
/* The reply in the words of the order's age. */
void aged_say(struct bytes *out, const struct aged_order *o, const char *reply,
    size_t len);
void aged_order_free(struct aged_order *o);

/* aged_script.c */
void aged_script_order(struct aged_book *book, struct aged_order *o);
void aged_scripts_free(struct aged_book *book);

#endif
