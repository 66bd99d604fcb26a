/* SPDX-License-Identifier: MIT */
/*
 * Commands as RESP bytes. A command that a lock sends repeatedly is formatted
 * once and cached; later only its token is overwritten (all tokens of a lock
 * have the same length).
 */
#ifndef NXLOCK_WIRE_COMMAND_H
#define NXLOCK_WIRE_COMMAND_H

#include "base/buf.h"
#include "model/verb.h"
#include "wire/script.h"

#define COMMAND_ARGS 16
#define COMMAND_NAMES 64 /* that one command acquires, at most */

/* A cached command. */
struct cached_command {
    uint32_t len;
    uint32_t token_at; /* offset of the token's bytes; 0: no token */
    uint32_t token_len;
    uint32_t ttl_ms; /* the ttl it was formatted with */
    char bytes[];
};

/* One lock's cached commands, by verb_traits.cached; all zero at first. */
struct command_cache {
    struct cached_command *of[CACHED_VERBS - 1]; /* NULL: not formatted yet */
};

/* Where the command of such a verb is cached; NULL: nowhere. */
static inline struct cached_command **command_cached(
    struct command_cache *cache, enum verb_kind kind)
{
    enum verb_cached cached = verb_traits[kind].cached;
    return cache && cached ? &cache->of[cached - 1] : NULL;
}

/* How a verb is sent as one command: by SET key token NX PX ttl, or by a script
 * whose key is the lock's, and whose arguments are the token and the TTL if the
 * form has them. */
struct command_form {
    bool is_set;
    enum script_id script;
    unsigned char token; /* index of the argument that is the token; 0: none */
    bool ttl;
};

void command_cache_free(struct command_cache *k);

/* Appends a command; false: no memory, out as before. argc <= COMMAND_ARGS */
bool command_append(struct buf *out, int argc, const struct slice *argv);

/* Appends a verb as one command of that form (SET NX PX, EVALSHA ...): from the
 * cache *cache if that fits, otherwise formatted into it. cache may be NULL.
 * False: no memory. RELEASE: see command_release(). */
bool command_verb(struct buf *out, const struct command_form *form,
    const struct verb *verb, struct cached_command **cache);

/* Appends it as EVAL with the script's text. */
bool command_verb_eval(
    struct buf *out, const struct command_form *form, const struct verb *verb);

/* RELEASE of a token that may be in line (verb.client), or of a key with a
 * hash tag, or by another hand-over than usual (hand_over, see release.lua);
 * JOIN and STAY. with_text: EVAL with the script's text, otherwise EVALSHA. */
bool command_release(struct buf *out, const struct command_form *form,
    const struct verb *verb, const char *hand_over, bool with_text);
bool command_line_wait(
    struct buf *out, const struct verb *verb, bool with_text);

/* ACQUIRE of a token that shares its lock; and what one of an exclusive lock
 * asks with verb.asks_kind. */
bool command_take(struct buf *out, const struct verb *verb, bool with_text);
bool command_hold_back(
    struct buf *out, const struct verb *verb, bool with_text);

/* INSPECT of a key whose holders are to be listed. */
bool command_list(struct buf *out, const struct verb *verb, bool with_text);

/* ACQUIREs with verb.after, each after the one before it in verbs; with the
 * same token and ttl. */
bool command_acquire_after(struct buf *out, const struct verb *const *verbs,
    unsigned count, bool with_text);

/* ACQUIRE with verb.counter, or RAISE; with_text: EVAL with the script's text,
 * otherwise EVALSHA. The counter may expire keep_ms after it was last written.
 * old: the expired timestamp that ACQUIRE replaces; empty: the key must be
 * free. */
bool command_fence(struct buf *out, const struct verb *verb, bool with_text,
    uint64_t keep_ms, struct slice old);
/* RAISE of a token that shares its lock: the fencing token of all holders. */
bool command_shared_fence(
    struct buf *out, const struct verb *verb, bool with_text, uint64_t keep_ms);

/* command_once.c: BEGIN and LOOK; TELL and UNDO_BEGIN; FORGET. hand_over: as in
 * command_release(). keeps_key: by now the key may be another process's. */
bool command_begin(struct buf *out, const struct verb *verb,
    const char *hand_over, bool with_text, uint64_t counter_keep_ms);
bool command_tell(struct buf *out, const struct verb *verb,
    const char *hand_over, bool with_text, bool keeps_key);
bool command_forget(struct buf *out, const struct verb *verb, bool with_text);

/* ACQUIRE by a script that replaces the value old of a key without a TTL. */
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

/* Finds out the server's clock without TIME: the TTL of a key that expires at
 * COMMAND_FAR_S tells the time. The key is named after the token, or after the
 * nonce if there is no token, and is deleted again. */
#define COMMAND_FAR_S INT64_C(3800000000)
#define COMMAND_PROBE_REPLIES 4
bool command_probe_clock(
    struct buf *out, const struct verb *verb, uint64_t nonce);

bool command_client_kill(struct buf *out, int64_t client_id);

#endif
