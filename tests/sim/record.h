/* SPDX-License-Identifier: MIT */
/*
 * The record of work that must be done once, at a model server, and the scripts
 * that use it: in the order of steps of src/wire/scripts (begin.lua, tell.lua,
 * forget.lua).
 *
 * Invariant: each of them is one comparison and then one change, and what is
 * begun or in doubt never ends by itself.
 */
#ifndef NXLOCK_SIM_RECORD_H
#define NXLOCK_SIM_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "model/verb.h"

struct message;
struct model_server;
struct world;

/* Times are by the server's clock. */
struct work_record {
    enum once_state state;
    unsigned attempt, doubts, late, fingerprint;
    uint64_t token, fence;
    uint64_t result; /* DONE: a number in place of its bytes */
    uint32_t keep_ms;
    int64_t first_ms, since_ms, ended_ms;
    int64_t until_ms; /* DONE, FAILED: it expires; else 0 */
};

/* What a message says of a record, and the record as it is after it. */
struct once_part {
    bool retries;         /* BEGIN */
    bool keeps_key;       /* TELL: another process may own the token by now */
    unsigned fingerprint; /* BEGIN, LOOK, TELL */
    enum once_state verdict;
    uint64_t result;           /* TELL */
    uint32_t keep_ms;          /* BEGIN, TELL */
    struct work_record record; /* FORGET: as it was seen. The replies: as it is
                                */
    /* TELL of a failure, and the reply to BEGIN: as it was before the attempt,
     * if that was in doubt. */
    struct work_record before;
};

void record_begin(struct world *w, struct model_server *s, struct message *m);
void record_look(struct world *w, struct model_server *s, struct message *m);
void record_tell(struct world *w, struct model_server *s, struct message *m);
void record_forget(struct world *w, struct model_server *s, struct message *m);
void record_unbegin(struct world *w, struct model_server *s, struct message *m);

/* Do both say the same, so that their lines are the same? */
bool record_is_same(
    const struct work_record *one, const struct work_record *other);
/* In progress, or in doubt. */
bool record_is_open(const struct work_record *r);
/* The record as it is now. */
struct work_record *record_of(
    struct world *w, struct model_server *s, unsigned name);

#endif
