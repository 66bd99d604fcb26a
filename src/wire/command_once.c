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
struct beside {
    struct slice record, counter, mark;
};

static void beside_free(struct beside *beside)
{
    free((char *)beside->record.data);
    free((char *)beside->counter.data);
    free((char *)beside->mark.data);
}

static bool beside_make(const struct verb *verb, struct beside *beside)
{
    bool begins = verb->kind == VERB_BEGIN || verb->kind == VERB_LOOK;
    *beside = (struct beside){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    if (companion_make(verb->key, COMPANION_RECORD, &beside->record) &&
        (!begins ||
            companion_make(verb->key, COMPANION_COUNTER, &beside->counter)) &&
        (verb->kind == VERB_FORGET ||
            companion_make(verb->key, COMPANION_MARK, &beside->mark)))
        return true;
    beside_free(beside);
    return false;
}

/* "-" for none, so that a fingerprint "-" differs from none. */
static struct slice once_print(
    char (*room)[1 + FINGERPRINT_MOST], struct slice word)
{
    size_t len = word.len < FINGERPRINT_MOST ? word.len : FINGERPRINT_MOST;
    if (len == 0)
        return slice_of("-");
    (*room)[0] = '=';
    memcpy(*room + 1, word.data, len);
    return (struct slice){*room, 1 + len};
}

bool command_begin(struct buf *out, const struct verb *verb, const char *how,
    bool whole, uint64_t counter_keep_ms)
{
    const struct script *script = &scripts[SCRIPT_BEGIN];
    const struct once_terms *terms = verb->once;
    const char *mode = verb->kind == VERB_LOOK ? "look"
                       : terms->retries        ? "retry"
                                               : "halt";
    struct decimal ttl, keep, least;
    char print[1 + FINGERPRINT_MOST];
    struct beside beside;

    if (!beside_make(verb, &beside))
        return false;
    struct slice argv[] = {slice_of(whole ? "EVAL" : "EVALSHA"),
        whole ? script->body : slice_of(script->sha1), slice_of("3"), verb->key,
        beside.record, beside.counter, verb->token,
        decimal_of(&ttl, verb->ttl_ms), slice_of(mode),
        decimal_of(&keep, terms->keep_ms),
        once_print(&print, terms->fingerprint),
        decimal_of(&least, counter_keep_ms), slice_of(how), beside.mark};
    bool ok = command_append(out, sizeof(argv) / sizeof(argv[0]), argv);
    beside_free(&beside);
    return ok;
}

static const char *once_verdict_word(const struct verb *verb)
{
    static const char *const words[] = {
        [ONCE_DONE] = "done",
        [ONCE_FAILED] = "failed",
        [ONCE_DOUBT] = "unsure",
        [ONCE_CLEAR] = "clear",
    };
    return verb->kind == VERB_UNBEGIN ? "unbegun" : words[verb->once->verdict];
}

bool command_tell(struct buf *out, const struct verb *verb, const char *how,
    bool whole, bool keeps_key)
{
    static const struct once_terms none = {.verdict = ONCE_FAILED};
    const struct script *script = &scripts[SCRIPT_TELL];
    bool unbegins = verb->kind == VERB_UNBEGIN;
    const struct once_terms *terms = unbegins ? &none : verb->once;
    struct decimal keep, code, stays;
    char print[1 + FINGERPRINT_MOST];
    struct beside beside;

    if (!beside_make(verb, &beside))
        return false;
    struct slice argv[] = {slice_of(whole ? "EVAL" : "EVALSHA"),
        whole ? script->body : slice_of(script->sha1), slice_of("2"), verb->key,
        beside.record, verb->token, slice_of(once_verdict_word(verb)),
        decimal_signed(&code, terms->code), decimal_of(&keep, terms->keep_ms),
        once_print(&print, terms->fingerprint),
        keeps_key ? slice_of("-1")
                  : decimal_of(&stays, unbegins ? 0 : verb->ttl_ms),
        slice_of(how), beside.mark, terms->result};
    int argc = sizeof(argv) / sizeof(argv[0]);
    bool ok = command_append(out, argc - terms->result_omitted, argv);
    beside_free(&beside);
    return ok;
}

bool command_forget(struct buf *out, const struct verb *verb, bool whole)
{
    const struct script *script = &scripts[SCRIPT_FORGET];
    struct beside beside;

    if (!beside_make(verb, &beside))
        return false;
    struct slice argv[] = {slice_of(whole ? "EVAL" : "EVALSHA"),
        whole ? script->body : slice_of(script->sha1), slice_of("2"), verb->key,
        beside.record, verb->once->line};
    bool ok = command_append(out, sizeof(argv) / sizeof(argv[0]), argv);
    beside_free(&beside);
    return ok;
}
