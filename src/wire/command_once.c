/* SPDX-License-Identifier: MIT */
/*
 * Formats the commands of work that must be done once. Invariant: the key of a
 * record, its counter and the mark of its line are derived from the lock's key
 * alone, whatever else is asked for.
 */
#include <stdlib.h>

#include "base/decimal.h"
#include "model/companion.h"
#include "wire/command.h"
#include "wire/record.h"

/* The names of the keys beside the lock's; those that the command needs. */
struct once_keys {
    struct slice record, counter, mark;
};

static void once_keys_free(struct once_keys *keys)
{
    free((char *)keys->record.data);
    free((char *)keys->counter.data);
    free((char *)keys->mark.data);
}

static bool once_keys_make(const struct verb *verb, struct once_keys *keys)
{
    bool begins = verb->kind == VERB_BEGIN || verb->kind == VERB_READ_RECORD;
    *keys = (struct once_keys){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    if (companion_make(verb->key, COMPANION_RECORD, &keys->record) &&
        (!begins ||
            companion_make(verb->key, COMPANION_COUNTER, &keys->counter)) &&
        (verb->kind == VERB_FORGET ||
            companion_make(verb->key, COMPANION_LINE_MARK, &keys->mark)))
        return true;
    once_keys_free(keys);
    return false;
}

/* "-" for none, so that a fingerprint "-" differs from none. */
static struct slice fingerprint_arg(
    char (*room)[1 + FINGERPRINT_MAX], struct slice word)
{
    size_t len = word.len < FINGERPRINT_MAX ? word.len : FINGERPRINT_MAX;
    if (len == 0)
        return slice_of("-");
    (*room)[0] = '=';
    memcpy(*room + 1, word.data, len);
    return (struct slice){*room, 1 + len};
}

bool command_begin(struct buf *out, const struct verb *verb,
    const char *hand_over, bool with_text, uint64_t counter_keep_ms)
{
    const struct script *script = &scripts[SCRIPT_BEGIN];
    const struct once_terms *terms = verb->once;
    const char *mode = verb->kind == VERB_READ_RECORD ? "look"
                       : terms->retries               ? "retry"
                                                      : "halt";
    struct decimal ttl, keep, least;
    char fingerprint[1 + FINGERPRINT_MAX];
    struct once_keys keys;

    if (!once_keys_make(verb, &keys))
        return false;
    struct slice argv[] = {slice_of(with_text ? "EVAL" : "EVALSHA"),
        with_text ? script->body : slice_of(script->sha1), slice_of("3"),
        verb->key, keys.record, keys.counter, verb->token,
        decimal_of(&ttl, verb->ttl_ms), slice_of(mode),
        decimal_of(&keep, terms->keep_ms),
        fingerprint_arg(&fingerprint, terms->fingerprint),
        decimal_of(&least, counter_keep_ms), slice_of(hand_over), keys.mark};
    bool ok = command_append(out, sizeof(argv) / sizeof(argv[0]), argv);
    once_keys_free(&keys);
    return ok;
}

static const char *reported_word(const struct verb *verb)
{
    static const char *const words[] = {
        [ONCE_DONE] = "done",
        [ONCE_FAILED] = "failed",
        [ONCE_DOUBT] = "unsure",
        [ONCE_CLEAR] = "clear",
    };
    return verb->kind == VERB_UNDO_BEGIN ? "unbegun"
                                         : words[verb->once->reported];
}

bool command_tell(struct buf *out, const struct verb *verb,
    const char *hand_over, bool with_text, bool keeps_key)
{
    static const struct once_terms none = {.reported = ONCE_FAILED};
    const struct script *script = &scripts[SCRIPT_TELL];
    bool unbegins = verb->kind == VERB_UNDO_BEGIN;
    const struct once_terms *terms = unbegins ? &none : verb->once;
    struct decimal keep, code, stays;
    char fingerprint[1 + FINGERPRINT_MAX];
    struct once_keys keys;

    if (!once_keys_make(verb, &keys))
        return false;
    struct slice argv[] = {slice_of(with_text ? "EVAL" : "EVALSHA"),
        with_text ? script->body : slice_of(script->sha1), slice_of("2"),
        verb->key, keys.record, verb->token, slice_of(reported_word(verb)),
        decimal_signed(&code, terms->code), decimal_of(&keep, terms->keep_ms),
        fingerprint_arg(&fingerprint, terms->fingerprint),
        keeps_key ? slice_of("-1")
                  : decimal_of(&stays, unbegins ? 0 : verb->ttl_ms),
        slice_of(hand_over), keys.mark, terms->result};
    int argc = sizeof(argv) / sizeof(argv[0]);
    bool ok = command_append(out, argc - terms->result_omitted, argv);
    once_keys_free(&keys);
    return ok;
}

bool command_forget(struct buf *out, const struct verb *verb, bool with_text)
{
    const struct script *script = &scripts[SCRIPT_FORGET];
    struct once_keys keys;

    if (!once_keys_make(verb, &keys))
        return false;
    struct slice argv[] = {slice_of(with_text ? "EVAL" : "EVALSHA"),
        with_text ? script->body : slice_of(script->sha1), slice_of("2"),
        verb->key, keys.record, verb->once->line};
    bool ok = command_append(out, sizeof(argv) / sizeof(argv[0]), argv);
    once_keys_free(&keys);
    return ok;
}
