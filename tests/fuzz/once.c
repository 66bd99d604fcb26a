/* SPDX-License-Identifier: MIT */
/*
 * From a server's bytes to the outcome of work that must be done once. The
 * first byte of the input says what was asked (b begin, l look, t tell, f
 * forget, u unbegin), the second the size of the pieces in which the rest
 * arrives (a digit; else all at once). What may be concluded is decided from
 * the same bytes, read a second time.
 *
 * Invariant: nothing is begun, done or undone by an answer that does not say so
 * in full; and an answer is the same in pieces and at once.
 */
#include "net/reader.h"
#include "wire/exchange.h"
#include "wire/record.h"
#include "wire/script.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/resp.h"

#define TOKEN "6f1c9b0e-8a53-4c1d-9e07-2b7f4d1a6c35@db7:41233:backup"
#define STEPS 4 /* EVALSHA, EVAL, and more would be a loop */
/* Beyond it the reader may give up, which has its own tests. */
#define BYTES_MAX (READER_BACKLOG / 2)

struct asked {
    struct verb verb;
    struct once_terms terms;
    struct reply_values leaves;
    struct dialect dialect;
    struct exchange x;
};

static void ask(struct asked *a, enum verb_kind kind)
{
    memset(a, 0, sizeof(*a));
    a->terms = (struct once_terms){.fingerprint = slice_of("f"),
        .keep_ms = 700000,
        .reported = ONCE_DONE,
        .result = slice_of("it"),
        .line = slice_of("seen")};
    a->verb = (struct verb){.kind = kind,
        .key = slice_of("key"),
        .token = slice_of(TOKEN),
        .ttl_ms = kind == VERB_BEGIN ? 30000 : 0,
        .once = kind == VERB_UNDO_BEGIN ? NULL : &a->terms,
        .values = verb_traits[kind].has_values ? &a->leaves : NULL};
    if (kind == VERB_BEGIN || kind == VERB_READ_RECORD)
        a->verb.counter = slice_of("{key}:f");
    a->dialect.connection = 7;
    a->dialect.max_ttl_ms = 60000;
    exchange_begin(&a->x, &a->verb, NULL);
}

/* ----------------------------------------------------------- read once more */

/* Number i of an array of single values; false: there is none. */
static bool number_at(const struct reply *reply, size_t i, int64_t *number)
{
    char text[32], *end;

    if (reply->kind != REPLY_ARRAY || i >= reply->count)
        return false;
    const struct reply *item = &reply->items[i];
    if (item->kind == REPLY_INTEGER) {
        *number = item->integer;
        return true;
    }
    if (item->bytes.len == 0 || item->bytes.len >= sizeof(text))
        return false;
    memcpy(text, item->bytes.data, item->bytes.len);
    text[item->bytes.len] = '\0';
    *number = strtoll(text, &end, 10);
    return end == text + item->bytes.len;
}

static bool has_record(const struct reply *reply)
{
    struct record record;

    return reply->count > 2 && reply->items[2].kind != REPLY_NIL &&
           record_parse(reply->items[2].bytes, &record);
}

/* The whole result that the record announces. */
static bool has_result(const struct reply *reply)
{
    struct record record;
    const struct reply *item = &reply->items[3];
    bool there = reply->count > 3 && item->kind != REPLY_NIL;

    if (!has_record(reply) || !record_parse(reply->items[2].bytes, &record))
        return false;
    return record.size < 0
               ? !there
               : there && (item->kind == REPLY_INTEGER ||
                              item->bytes.len == (size_t)record.size);
}

static bool says(const struct reply *reply, int64_t code)
{
    int64_t number;

    return number_at(reply, 0, &number) && number == code;
}

/* May this be concluded from the last reply? */
static void check_outcome(const struct asked *a, const struct reply *reply)
{
    const struct outcome *o = &a->x.outcome;
    enum verb_kind kind = a->verb.kind;
    bool number = reply->kind == REPLY_INTEGER;
    int64_t second = 0;

    number_at(reply, 1, &second);
    switch (o->kind) {
    case OUTCOME_GRANTED:
        CHECK(kind == VERB_BEGIN && says(reply, FOUND_BEGUN));
        CHECK(second > 0 && o->fence == (uint64_t)second && has_record(reply));
        break;
    case OUTCOME_BUSY:
        CHECK(kind == VERB_BEGIN && says(reply, FOUND_BUSY) && second >= -2);
        break;
    case OUTCOME_FREE:
        CHECK(kind == VERB_READ_RECORD && says(reply, FOUND_NOTHING));
        break;
    case OUTCOME_RECORDED:
        CHECK(kind == VERB_BEGIN || kind == VERB_READ_RECORD);
        CHECK(o->found != FOUND_DONE ||
              (says(reply, FOUND_DONE) && has_result(reply)));
        CHECK(o->found != FOUND_DOUBT || says(reply, FOUND_DOUBT));
        CHECK(o->found != FOUND_MISMATCH || says(reply, FOUND_MISMATCH));
        CHECK(o->found == FOUND_BUSY ? says(reply, FOUND_BUSY)
                                     : has_record(reply));
        break;
    case OUTCOME_MINE:
    case OUTCOME_NOT_MINE:
        CHECK(kind != VERB_BEGIN && kind != VERB_READ_RECORD);
        if (kind == VERB_TELL)
            CHECK(says(reply, o->kind == OUTCOME_MINE));
        else
            CHECK(number && (reply->integer == 1) == (o->kind == OUTCOME_MINE));
        break;
    default:
        CHECK(o->kind == OUTCOME_FAULT);
        CHECK(o->fault > FAULT_NONE && o->fault < FAULT_CLASSES);
    }
}

/* ------------------------------------------------------------------ replies */

/* The next reply, in pieces of this size; NULL: there is none. */
static const struct reply *next_reply(struct reader *reader,
    struct reply_values *leaves, struct slice *bytes, size_t piece)
{
    const struct reply *reply = NULL;
    int got;

    for (;;) {
        struct expected expected = {leaves != NULL, leaves};
        got = reader_next(reader, expected, &reply);
        if (got != 0 || bytes->len == 0)
            break;
        size_t size = piece < bytes->len ? piece : bytes->len;
        CHECK(reader_feed(reader, bytes->data, size));
        bytes->data += size;
        bytes->len -= size;
    }
    return got > 0 ? reply : NULL;
}

static bool play(enum verb_kind kind, struct slice bytes, size_t piece)
{
    static struct asked a;
    struct reader *reader = reader_new();
    struct slice plain = bytes;
    struct buf out = {0};
    struct resp second;
    enum exchange_next next = EXCHANGE_AGAIN;
    bool known = true; /* the second reading has followed */

    CHECK(reader != NULL);
    ask(&a, kind);
    for (unsigned step = 0; next == EXCHANGE_AGAIN; step++) {
        CHECK(step < STEPS);
        buf_free(&out);
        CHECK(exchange_encode(&a.x, &a.dialect, &out) == 1);
        const struct reply *reply =
            next_reply(reader, a.verb.values, &bytes, piece);
        known = known && resp_read(&second, &plain) == RESP_REPLY;
        if (!reply)
            break;
        next = exchange_reply(&a.x, reply);
    }
    if (next == EXCHANGE_DONE && known)
        check_outcome(&a, &second.reply);
    bool decided = next == EXCHANGE_DONE && a.x.outcome.kind != OUTCOME_FAULT;
    reply_values_free(&a.leaves);
    exchange_free(&a.x);
    buf_free(&out);
    reader_free(reader);
    return decided;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char letters[] = "bltfu";
    static const enum verb_kind kinds[] = {
        VERB_BEGIN, VERB_READ_RECORD, VERB_TELL, VERB_FORGET, VERB_UNDO_BEGIN};
    char *text = fuzz_expand(data, size, BYTES_MAX, &size);
    const char *at = size > 0 && text[0] ? strchr(letters, text[0]) : NULL;
    enum verb_kind kind =
        kinds[at ? (size_t)(at - letters)
                 : (size > 0 ? (unsigned char)text[0] % 5 : 0)];
    size_t head = size < 2 ? size : 2;
    struct slice bytes = {text + head, size - head};
    bool pieces = size > 1 && text[1] > '0' && text[1] <= '9';

    bool good = play(kind, bytes, pieces ? (size_t)(text[1] - '0') : SIZE_MAX);
    CHECK(play(kind, bytes, SIZE_MAX) == good);
    fuzz_count(good);
    free(text);
    return 0;
}
