/* SPDX-License-Identifier: MIT */
/*
 * The scripts of work that must be done once, on a real server: exchanges of
 * src/wire over a plain hiredis connection, records as a test has written them,
 * and what stands there afterwards. A script may be sent with a text of its own
 * (once_mutant), to see which test notices.
 */
#ifndef NXLOCK_TESTS_LIVE_ONCE_SCRIPT_RIG_H
#define NXLOCK_TESTS_LIVE_ONCE_SCRIPT_RIG_H

#include "live/line_rig.h"
#include "support/resp.h"
#include "wire/record.h"

#define ONCE_TTL_MS 20000
#define ONCE_KEEP_MS 700000
#define ONCE_CODE 9

/* In the script of this name the first `from` becomes `to`. */
struct once_change {
    const char *script, *from, *to;
};
static const struct once_change *once_mutant;

/* The last answer. */
static struct reply_values once_leaves;

static inline struct slice once_leaf(size_t i)
{
    bool there = i < once_leaves.count && !once_leaves.list[i].nil;
    return there ? (struct slice){buf_head(&once_leaves.bytes) +
                                      once_leaves.list[i].at,
                       once_leaves.list[i].len}
                 : (struct slice){NULL, 0};
}

static inline void once_add_leaves(const redisReply *r)
{
    for (size_t i = 0; i < r->elements; i++) {
        const redisReply *e = r->element[i];
        if (e->type == REDIS_REPLY_INTEGER)
            reply_values_add_number(&once_leaves, e->integer);
        else if (e->type == REDIS_REPLY_NIL)
            reply_values_add_nil(&once_leaves);
        else
            reply_values_add(&once_leaves, (struct slice){e->str, e->len});
    }
}

/* The text of the script with the mutant's change. */
static inline struct bytes once_changed(struct slice text)
{
    struct bytes changed = {0};
    const char *at = strstr(text.data, once_mutant->from);

    if (!at)
        fail_msg("no '%s' in %s", once_mutant->from, once_mutant->script);
    bytes_add(&changed, text.data, (size_t)(at - text.data));
    bytes_add(&changed, once_mutant->to, strlen(once_mutant->to));
    at += strlen(once_mutant->from);
    bytes_add(&changed, at, strlen(at));
    return changed;
}

static inline struct slice once_script(const char *name)
{
    for (int i = 0; i < SCRIPTS; i++)
        if (strcmp(scripts[i].name, name) == 0)
            return scripts[i].body;
    fail_msg("no script '%s'", name);
    return (struct slice){NULL, 0};
}

/* Sends an EVAL as it was formatted, or with the mutant's text. */
static inline void once_append(struct peer *p, const struct buf *out)
{
    struct resp_command command;
    const char *argv[RESP_ARGS];
    size_t len[RESP_ARGS];

    assert_int_equal(
        resp_parse(buf_head(out), buf_len(out), &command), (long)buf_len(out));
    for (size_t i = 0; i < command.count; i++) {
        argv[i] = command.arg[i].data;
        len[i] = command.arg[i].len;
    }
    struct bytes changed = {0};
    if (once_mutant) {
        struct slice text = once_script(once_mutant->script);
        if (len[1] == text.len && memcmp(argv[1], text.data, text.len) == 0) {
            changed = once_changed(text);
            argv[1] = changed.data;
            len[1] = changed.len;
        }
    }
    redisAppendCommandArgv(p->c, (int)command.count, argv, len);
    bytes_free(&changed);
}

/* Carries the verb out, by EVAL. A fault's words are in once_words. */
static char once_words[256];

static inline struct outcome once_send(struct peer *p, struct verb *verb)
{
    static struct exchange x;
    struct buf out = {0};
    struct reply items[REPLY_ITEMS];
    redisReply *r = NULL;

    verb->values = verb_traits[verb->kind].has_values ? &once_leaves : NULL;
    if (verb->kind == VERB_QUERY || verb->kind == VERB_UNBEGIN)
        verb->once = NULL;
    exchange_free(&x);
    exchange_begin(&x, verb, NULL);
    x.always_text = true;
    reply_values_clear(&once_leaves);
    assert_int_equal(exchange_encode(&x, &p->dialect, &out), 1);
    once_append(p, &out);
    buf_free(&out);
    assert_int_equal(redisGetReply(p->c, (void **)&r), REDIS_OK);
    size_t elements = r->elements;
    if (r->type == REDIS_REPLY_ARRAY && verb->values) {
        once_add_leaves(r);
        r->elements = 0; /* the reader keeps only the kind */
    }
    struct reply reply = reply_from(r, items);
    assert_int_equal(exchange_reply(&x, &reply), EXCHANGE_DONE);
    struct outcome o = x.outcome;
    snprintf(once_words, sizeof(once_words), "%.*s", (int)o.text.len,
        o.text.data ? o.text.data : "");
    o.text = o.value = (struct slice){NULL, 0};
    r->elements = elements; /* else they would not be freed */
    freeReplyObject(r);
    return o;
}

/* ---------------------------------------------------------- what stands there
 */

/* A record of the test's own, and what was found of one. */
struct stored {
    bool exists;
    struct record record; /* its texts are in line */
    char line[1024];
    char result[64]; /* the beginning of it */
    size_t result_len;
    int64_t pttl;
};

static inline void stored_read(struct stored *s, const char *key)
{
    redisReply *r = redis_command(&server, "GET", key, NULL);

    *s = (struct stored){.exists = r->type == REDIS_REPLY_STRING};
    s->pttl = redis_pttl(&server, key);
    if (s->exists) {
        const char *end = memchr(r->str, '\n', r->len);
        size_t len = end ? (size_t)(end - r->str) : r->len;
        assert_in_range(len, 1, sizeof(s->line) - 1);
        memcpy(s->line, r->str, len);
        s->result_len = end ? r->len - len - 1 : 0;
        if (end)
            memcpy(s->result, end + 1,
                s->result_len < sizeof(s->result) ? s->result_len
                                                  : sizeof(s->result));
        record_parse(slice_of(s->line), &s->record);
    }
    freeReplyObject(r);
}

static inline int once_setup(void **state)
{
    once_mutant = NULL;
    return line_setup(state);
}

static inline int once_teardown(void **state)
{
    reply_values_free(&once_leaves);
    return line_teardown(state);
}

#define once_test(name)                                                        \
    cmocka_unit_test_setup_teardown(name, once_setup, once_teardown)

#endif
