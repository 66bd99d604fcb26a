/* SPDX-License-Identifier: MIT */
/* Carries out verbs of src/wire over a connection of hiredis: no other part of
 * the library is between the test and the server. */
#ifndef NXLOCK_TEST_VERB_H
#define NXLOCK_TEST_VERB_H

#include "support/test.h"

#include <hiredis/hiredis.h>

#include "wire/exchange.h"
#include "wire/strategies.h"

/* items: room for REPLY_ITEMS. */
static inline struct reply verb_reply(const redisReply *r, struct reply *items)
{
    struct reply reply = {.kind = REPLY_NIL};

    if (r->type == REDIS_REPLY_INTEGER)
        reply = (struct reply){.kind = REPLY_INTEGER, .integer = r->integer};
    else if (r->type == REDIS_REPLY_ARRAY)
        reply = (struct reply){
            .kind = REPLY_ARRAY, .count = r->elements, .items = items};
    else if (r->type != REDIS_REPLY_NIL)
        reply = (struct reply){
            .kind = r->type == REDIS_REPLY_ERROR    ? REPLY_ERROR
                    : r->type == REDIS_REPLY_STATUS ? REPLY_STATUS
                                                    : REPLY_STRING,
            .bytes = {r->str, r->len}};
    assert_true(r->type != REDIS_REPLY_ARRAY || r->elements <= REPLY_ITEMS);
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++)
        items[i] = verb_reply(r->element[i], NULL);
    return reply;
}

/* As src/net does with a reply that is to be kept. */
static inline void verb_keep(const struct reply *r, struct reply_values *values)
{
    for (size_t i = 0; r->kind == REPLY_ARRAY && i < r->count; i++) {
        if (r->items[i].kind == REPLY_INTEGER)
            reply_values_add_number(values, r->items[i].integer);
        else
            reply_values_add(values, r->items[i].bytes);
    }
}

/* x: all zero, or used before. The outcome may point into it. */
static inline struct outcome verb_send(redisContext *c, struct dialect *dialect,
    const struct verb *verb, struct exchange *x)
{
    enum exchange_next next = EXCHANGE_AGAIN;

    exchange_free(x);
    exchange_begin(x, verb, NULL);
    while (next == EXCHANGE_AGAIN) {
        struct buf out = {0};
        assert_true(exchange_encode(x, dialect, &out) > 0);
        redisAppendFormattedCommand(c, buf_head(&out), buf_len(&out));
        buf_free(&out);
        do {
            redisReply *r = NULL;
            struct reply items[REPLY_ITEMS];
            assert_int_equal(redisGetReply(c, (void **)&r), REDIS_OK);
            struct reply reply = verb_reply(r, items);
            if (verb->values)
                verb_keep(&reply, verb->values);
            next = exchange_reply(x, &reply);
            freeReplyObject(r);
        } while (next == EXCHANGE_WAIT);
    }
    return x->outcome;
}

#endif
