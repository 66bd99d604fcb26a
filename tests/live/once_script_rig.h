/* SPDX-License-Identifier: MIT */
/*
 * The scripts of work that must be done once, on a real server: exchanges of
 * src/wire over a plain hiredis connection, records as a test has written them,
 * and what stands there afterwards. A script may be sent with a text of its own
 * (script_mutant), to see which test notices.
 */
#ifndef NXLOCK_TESTS_LIVE_ONCE_SCRIPT_RIG_H
#define NXLOCK_TESTS_LIVE_ONCE_SCRIPT_RIG_H

#include "live/line_rig.h"
#include "wire/record.h"

#define ONCE_TTL_MS 20000
#define ONCE_KEEP_MS 700000
#define ONCE_CODE 9

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

/* Carries the verb out, by EVAL. A fault's words are in once_words. */
static char once_words[256];

static inline struct outcome once_send(struct peer *p, struct verb *verb)
{
    static struct exchange x;
    struct buf out = {0};
    struct reply items[REPLY_ITEMS];
    redisReply *r = NULL;

    verb->values = verb_traits[verb->kind].has_values ? &once_leaves : NULL;
    if (verb->kind == VERB_QUERY || verb->kind == VERB_UNDO_BEGIN)
        verb->once = NULL;
    exchange_free(&x);
    exchange_begin(&x, verb, NULL);
    x.always_text = true;
    reply_values_clear(&once_leaves);
    assert_int_equal(exchange_encode(&x, &p->dialect, &out), 1);
    mutant_append(p->c, &out);
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
    script_mutant = NULL;
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
