/* SPDX-License-Identifier: MIT */
/*
 * Commands as RESP bytes. hiredis does the formatting; a command that a lock
 * sends again and again is formatted once and kept, and later only its token
 * is written over (all tokens of a lock have the same length).
 */
#ifndef NXLOCK_WIRE_COMMAND_H
#define NXLOCK_WIRE_COMMAND_H

#include "base/buf.h"
#include "base/verb.h"
#include "wire/script.h"

#define COMMAND_ARGS 9

/* A kept command. */
struct kept {
    uint32_t len;
    uint32_t token_at; /* where the token's bytes are; 0: there are none */
    uint32_t token_len;
    uint32_t ttl_ms; /* the ttl it was formatted with */
    char bytes[];
};

/* One lock's kept commands; all zero to begin with. */
struct kept_commands {
    struct kept *verb[VERB_KINDS]; /* NULL: not formatted yet */
};

void kept_commands_free(struct kept_commands *k);

/* Appends a command; false: no memory, out as before. argc <= COMMAND_ARGS */
bool command_append(struct buf *out, int argc, const struct slice *argv);

/* The verb's one-command form (SET NX PX, EVALSHA ...), from *kept when that
 * fits, else formatted into it. kept may be NULL. false: no memory. */
bool command_verb(struct buf *out, const struct verb *verb, struct kept **kept);

/* The verb as EVAL with the script's text. */
bool command_verb_eval(struct buf *out, const struct verb *verb);

/* Conditions that are part of the command, for servers that have them. px:
 * below 0 the key keeps the end it has. */
bool command_set_ifeq(struct buf *out, const struct verb *verb, int64_t px);
bool command_delex(struct buf *out, const struct verb *verb);
bool command_delifeq(struct buf *out, const struct verb *verb);

/* ACQUIRE with verb.counter and RAISE, by the script's hash or whole. The
 * counter may end keep_ms after it was last written. old: the expired
 * timestamp that ACQUIRE replaces; empty: it takes only a free key. */
bool command_fence(struct buf *out, const struct verb *verb, bool whole,
    uint64_t keep_ms, struct slice old);

/* ACQUIRE, if the key has no end and that old value: by a script. */
bool command_takeover(
    struct buf *out, const struct verb *verb, struct slice old);

/* WORD; WORD key; WORD key value; GETRANGE key 0 511, SUBSTR before 2.4. */
bool command_word(struct buf *out, const char *word);
bool command_discard(struct buf *out);
bool command_on_key(struct buf *out, const char *word, struct slice key);
bool command_set(
    struct buf *out, const char *word, struct slice key, struct slice value);
bool command_getrange(struct buf *out, struct slice key);
bool command_substr(struct buf *out, struct slice key);
/* PEXPIRE key ttl; PSETEX key ttl token. */
bool command_pexpire(struct buf *out, const struct verb *verb);
bool command_psetex(struct buf *out, const struct verb *verb);

/* The server's clock without TIME: what ttl does a key get that ends at
 * COMMAND_FAR_S? The key is named after the token, or else the nonce, and is
 * removed again. */
#define COMMAND_FAR_S INT64_C(3800000000)
#define COMMAND_PROBE_REPLIES 4
bool command_probe_clock(
    struct buf *out, const struct verb *verb, uint64_t nonce);

bool command_client_kill(struct buf *out, int64_t client_id);

#endif
