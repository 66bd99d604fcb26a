/* SPDX-License-Identifier: MIT */
/*
 * Who holds a name, as far as the server knows.
 */
#ifndef NXLOCK_CLI_HOLDER_H
#define NXLOCK_CLI_HOLDER_H

#include <nxlock.h>

#include "cli/json.h"
#include "cli/session.h"

#define HOLDER_WORDS 320
#define HOLDER_WHO 160

/* Asks and waits for the answer; a result of nxl_lock_inspect(). */
int holder_ask(struct session *session, nxl_holder *holder);

/* "held by db7:41233:backup, 12s left" into out, of HOLDER_WORDS bytes. Of
 * a token only the beginning is shown: all of it would release the lock. */
const char *holder_words(char *out, const nxl_holder *holder);

/* A unix time in the past: the lock is free, and a waiter gets it. */
bool holder_is_over(const nxl_holder *holder);

/* Does a token, "UUID" or "UUID@label", stand there? */
bool holder_has_token(const nxl_holder *holder);
/* Data of a program rather than a lock? Of a lock by whatever program it is
 * known when it ends. */
bool holder_is_data(const nxl_holder *holder);
/* What it is then, and what to do: "holds 'hello', which is ...", into out,
 * of HOLDER_WORDS bytes. */
const char *holder_data_words(char *out, const nxl_holder *holder);
#define HOLDER_DATA_REMEDY                                                     \
    "it may be a program's data: use another name or, if nothing needs it, "   \
    "remove it with redis-cli"

/* Is it what a command around this one holds (NXLOCK_TOKEN, NXLOCK_OUTER)? */
bool holder_is_around(const nxl_holder *holder);

/* How much of the value may be shown: all of it would release the lock. */
size_t holder_shown(const nxl_holder *holder);

/* Who it is, and left_ms, as members. */
void holder_json(struct json *json, const nxl_holder *holder);

/* Who it is in a word or two, into out, of HOLDER_WHO bytes. */
const char *holder_who(char *out, const nxl_holder *holder);

/* The words of a token that may be shown. */
#define TOKEN_SHOWN 8

#endif
