/* SPDX-License-Identifier: MIT */
/*
 * Describes who holds a lock, as far as the server knows.
 */
#ifndef NXLOCK_CLI_LOOK_HOLDER_H
#define NXLOCK_CLI_LOOK_HOLDER_H

#include <nxlock.h>

#include "base/slice.h"
#include "cli/report/json.h"
#include "cli/run/session.h"

#define HOLDER_WORDS 320
#define HOLDER_WHO 160

/* Inspects the session's lock and waits for the answer. Returns a result of
 * nxl_lock_inspect(). */
int holder_ask(struct session *session, nxl_holder *holder);

/* Writes "held by db7:41233:backup, 12s left" into out, of HOLDER_WORDS bytes.
 * Only the beginning of a token is shown, because the whole one would release
 * the lock. */
const char *holder_words(char *out, const nxl_holder *holder);

/* Fills in *holder for a token. */
void holder_make(nxl_holder *holder, struct slice token, int64_t left_ms);

/* So much time has passed since the inspection. What is left never becomes 0,
 * which would say that the lock was over. */
void holder_subtract(nxl_holder *holder, int64_t ms);

/* Is the value a unix time that has passed? Then the lock is free. */
bool holder_is_over(const nxl_holder *holder);

/* Is the value a token, "UUID" or "UUID@label"? */
bool holder_has_token(const nxl_holder *holder);
/* Is it a program's data rather than a lock? Every lock, whoever wrote it, has
 * a known end. */
bool holder_is_data(const nxl_holder *holder);
/* Writes what the key holds then, "holds 'hello': not a lock ...", into out, of
 * HOLDER_WORDS bytes. */
const char *holder_data_words(char *out, const nxl_holder *holder);

/* Is it held by an enclosing 'nxlock run' (NXLOCK_TOKEN, NXLOCK_OUTER)? */
bool holder_is_around(const nxl_holder *holder);

/* Writes who holds it, and left_ms, as members. */
void holder_json(struct json *json, const nxl_holder *holder);
/* Writes who holds it alone. */
void holder_json_who(struct json *json, const nxl_holder *holder);

/* Writes who holds it, in a word or two, into out, of HOLDER_WHO bytes. */
const char *holder_who(char *out, const nxl_holder *holder);

/* How many characters of a token may be shown. */
#define TOKEN_SHOWN 8

#endif
