/* SPDX-License-Identifier: MIT */
/*
 * Sends a script with a text of its own (script_mutant), to see which test
 * notices.
 */
#ifndef NXLOCK_TESTS_LIVE_MUTANT_RIG_H
#define NXLOCK_TESTS_LIVE_MUTANT_RIG_H

#include "support/test.h"

#include <hiredis/hiredis.h>

#include "base/buf.h"
#include "support/bytes.h"
#include "support/resp.h"
#include "wire/script.h"

/* In the script of this name the first `from` becomes `to`; NULL: in all that
 * have it. */
struct script_change {
    const char *script, *from, *to;
};
static const struct script_change *script_mutant;
static unsigned mutants_sent;

/* The script that has this text; NULL: none. */
static inline const struct script *mutant_script(const char *text, size_t len)
{
    for (int i = 0; i < SCRIPTS; i++)
        if (scripts[i].body.len == len &&
            memcmp(text, scripts[i].body.data, len) == 0)
            return &scripts[i];
    return NULL;
}

/* The text of the script with the mutant's change; empty: it has none. */
static inline struct bytes mutant_text(const struct script *script)
{
    struct bytes changed = {0};
    const char *name = script_mutant->script, *from = script_mutant->from;
    if (name && strcmp(script->name, name) != 0)
        return changed;
    const char *text = script->body.data, *at = strstr(text, from);
    if (!at && name)
        fail_msg("no '%s' in %s", from, name);
    if (!at)
        return changed;
    bytes_add(&changed, text, (size_t)(at - text));
    bytes_add(&changed, script_mutant->to, strlen(script_mutant->to));
    at += strlen(from);
    bytes_add(&changed, at, strlen(at));
    return changed;
}

/* Sends the first command as it was formatted or, if it is an EVAL, with the
 * mutant's text. Returns its length. */
static inline size_t mutant_append_one(
    redisContext *c, const char *from, size_t size)
{
    struct resp_command command;
    const char *argv[RESP_ARGS];
    size_t len[RESP_ARGS];

    long used = resp_parse(from, size, &command);
    assert_true(used > 0);
    for (size_t i = 0; i < command.count; i++) {
        argv[i] = command.arg[i].data;
        len[i] = command.arg[i].len;
    }
    const struct script *script = script_mutant && command.count > 1
                                      ? mutant_script(argv[1], len[1])
                                      : NULL;
    struct bytes changed = {0};
    if (script)
        changed = mutant_text(script);
    if (changed.len > 0) {
        mutants_sent++;
        argv[1] = changed.data;
        len[1] = changed.len;
    }
    redisAppendCommandArgv(c, (int)command.count, argv, len);
    bytes_free(&changed);
    return (size_t)used;
}

static inline void mutant_append(redisContext *c, const struct buf *out)
{
    for (size_t at = 0; at < buf_len(out);)
        at += mutant_append_one(c, buf_head(out) + at, buf_len(out) - at);
}

#endif
