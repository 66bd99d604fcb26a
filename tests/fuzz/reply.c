/* SPDX-License-Identifier: MIT */
/*
 * From a server's bytes to an outcome. The first line of the input says what
 * was asked and how the bytes behind it arrive:
 *
 *     letter  a, A    acquire; A asks for the time left too
 *             e, r    extend, release
 *             i, I    inspect; I compares with the token
 *             h ...   handshake: h plain, p password, u user, d database,
 *                     x user and database
 *     rest    sizes of the pieces, in turn: a digit is itself, 0 is ten, any
 *             other byte up to 64; none: all at once
 *
 * Each reply is held against a second reader, and the outcome against the
 * table of docs/wire.md, written down once more below.
 */
#include "net/reader.h"

#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "fuzz/resp.h"
#include "wire/classify.h"
#include "wire/exchange.h"
#include "wire/handshake.h"

#define TOKEN "6f1c9b0e-8a53-4c1d-9e07-2b7f4d1a6c35@db7:41233:backup"
#define REPLIES 64
#define PIECES 400 /* the rest comes at once */
/* Beyond it the reader may give up, which has its own tests. */
#define BYTES_MAX (READER_BACKLOG / 2)

/* ------------------------------------------------------ bytes, in pieces */

struct feed {
    struct reader *reader;
    struct slice bytes;  /* not fed yet */
    struct slice sizes;  /* of the pieces */
    size_t turn;
    struct slice plain;  /* what the second reader has not read yet */
    bool over;           /* no reply is left */
    struct resp second;
};

static size_t next_size(struct feed *f)
{
    /* hiredis looks through a line from its start at each piece. */
    if (f->sizes.len == 0 || f->turn == PIECES)
        return f->bytes.len;
    unsigned char c = (unsigned char)f->sizes.data[f->turn++ % f->sizes.len];
    size_t size = c == '0' ? 10 : c >= '1' && c <= '9' ? c - '0' : 1 + c % 64;
    return size < f->bytes.len ? size : f->bytes.len;
}

static void check_reply(const struct reply *a, const struct reply *b)
{
    CHECK(a->kind == b->kind && a->integer == b->integer);
    CHECK(slice_equal(a->bytes, b->bytes) && a->cut == b->cut);
    CHECK(a->count == b->count && a->count <= REPLY_ITEMS);
    for (size_t i = 0; i < a->count; i++) {
        CHECK(a->items[i].kind != REPLY_ARRAY);
        check_reply(&a->items[i], &b->items[i]);
    }
}

/* The next reply, or NULL: there is none, or the bytes are none. */
static const struct reply *next_reply(struct feed *f)
{
    const struct reply *reply = NULL;
    int got;

    if (f->over)
        return NULL;
    while ((got = reader_next(f->reader, &reply)) == 0 && f->bytes.len > 0) {
        size_t size = next_size(f);
        CHECK(reader_feed(f->reader, f->bytes.data, size));
        f->bytes.data += size;
        f->bytes.len -= size;
    }
    enum resp_result second = resp_read(&f->second, &f->plain);
    CHECK(got == (second == RESP_REPLY ? 1 : second == RESP_MORE ? 0 : -1));
    CHECK((reader_error(f->reader)[0] != '\0') == (got < 0));
    CHECK(!reader_starved(f->reader));
    if (got < 0) {
        CHECK(fuzz_printable(reader_error(f->reader)));
        CHECK(reader_next(f->reader, &reply) == -1);
    }
    f->over = got <= 0;
    if (f->over)
        return NULL;
    check_reply(reply, &f->second.reply);
    return reply;
}

static void check_fault(enum fault fault)
{
    CHECK(fault > FAULT_NONE && fault < FAULT_CLASSES);
}

/* What an error means does not change by further words. */
static enum fault class_of(struct slice error)
{
    enum fault fault = classify_error(error);
    char *longer = malloc(error.len + 2);

    check_fault(fault);
    CHECK(longer != NULL);
    memcpy(longer, error.data, error.len);
    memcpy(longer + error.len, " x", 2);
    CHECK(classify_error((struct slice){longer, error.len + 2}) == fault);
    free(longer);
    return fault;
}

/* --------------------------------------------------------------- exchanges */

static struct verb verb_of(char letter)
{
    struct verb verb = {.kind = VERB_ACQUIRE,
        .key = slice_of("key"),
        .token = slice_of(TOKEN),
        .ttl_ms = 30000,
        .want_left = letter == 'A'};

    if (letter == 'e')
        verb.kind = VERB_EXTEND;
    else if (letter == 'r')
        verb.kind = VERB_RELEASE;
    else if (letter == 'i' || letter == 'I')
        verb.kind = VERB_INSPECT;
    if (letter == 'i')
        verb.token.len = 0;
    return verb;
}

static bool is_number(const struct reply *reply, int64_t least)
{
    return reply->kind == REPLY_INTEGER && reply->integer >= least;
}

static struct outcome decided(enum outcome_kind kind, int64_t left_ms)
{
    return (struct outcome){.kind = kind, .left_ms = left_ms};
}

static struct outcome broken(void)
{
    return (struct outcome){.kind = OUTCOME_FAULT,
        .fault = FAULT_NOT_REDIS,
        .unsure = true,
        .left_ms = LEFT_UNKNOWN};
}

/* An error never means yes; it means no where the key cannot hold the token. */
static struct outcome refused(const struct verb *verb, struct slice error)
{
    enum fault fault = class_of(error);

    if (fault == FAULT_WRONG_TYPE && verb->kind != VERB_ACQUIRE &&
        verb->token.len > 0)
        return decided(OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    return (struct outcome){.kind = OUTCOME_FAULT,
        .fault = fault,
        .unsure = fault == FAULT_SERVER,
        .left_ms = LEFT_UNKNOWN};
}

static struct outcome inspected(
    const struct verb *verb, const struct reply *reply)
{
    bool compare = verb->token.len > 0;
    const struct reply *item = reply->items;

    if (reply->kind != REPLY_ARRAY || (reply->count != 0 && reply->count != 2))
        return broken();
    if (reply->count == 0)
        return decided(compare ? OUTCOME_NOT_MINE : OUTCOME_FREE, LEFT_UNKNOWN);
    if (item[0].kind != REPLY_STRING || !is_number(&item[1], -2))
        return broken();
    int64_t left = item[1].integer == -2 ? 0 : item[1].integer;
    if (compare && !slice_equal(item[0].bytes, verb->token))
        return decided(OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    struct outcome o = decided(compare ? OUTCOME_MINE : OUTCOME_SEEN, left);
    if (!compare)
        o.value = item[0].bytes;
    return o;
}

/* What the reply to the verb's own command means. */
static struct outcome meaning(
    const struct verb *verb, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR)
        return refused(verb, reply->bytes);
    switch (verb->kind) {
    case VERB_ACQUIRE:
        if (reply->kind == REPLY_STATUS && reply->bytes.len == 2 &&
            memcmp(reply->bytes.data, "OK", 2) == 0)
            return decided(OUTCOME_GRANTED, LEFT_UNKNOWN);
        return reply->kind == REPLY_NIL ? decided(OUTCOME_BUSY, LEFT_UNKNOWN)
                                        : broken();
    case VERB_EXTEND:
        if (!is_number(reply, -2))
            return broken();
        return reply->integer == -2
                   ? decided(OUTCOME_NOT_MINE, LEFT_UNKNOWN)
                   : decided(OUTCOME_MINE, reply->integer);
    case VERB_RELEASE:
        if (!is_number(reply, 0) || reply->integer > 1)
            return broken();
        return decided(
            reply->integer == 1 ? OUTCOME_MINE : OUTCOME_NOT_MINE,
            LEFT_UNKNOWN);
    default:
        return inspected(verb, reply);
    }
}

/* The reply to PTTL: it may add the time left, or show that replies and
 * commands do not match. */
static void add_time(struct outcome *o, const struct reply *reply)
{
    if (is_number(reply, -2)) {
        if (o->kind == OUTCOME_BUSY)
            o->left_ms = reply->integer == -2 ? 0 : reply->integer;
    } else if (reply->kind != REPLY_ERROR) {
        *o = broken();
    }
}

static void check_outcome(const struct outcome *a, const struct outcome *b)
{
    CHECK(a->kind == b->kind && a->fault == b->fault);
    CHECK(a->unsure == b->unsure);
    if (a->kind == OUTCOME_FAULT) {
        check_fault(a->fault);
        CHECK(a->text.len <= READER_TEXT);
        return;
    }
    CHECK(a->left_ms == b->left_ms && a->left_ms >= LEFT_UNKNOWN);
    CHECK(slice_equal(a->value, b->value));
}

/* True when the server decided something, told in *kind. */
static bool exchange(struct feed *f, char letter, struct buf *out)
{
    struct verb verb = verb_of(letter);
    struct exchange x;
    enum exchange_next next;
    unsigned steps = 0;

    exchange_begin(&x, &verb, NULL);
    do {
        const struct reply *reply;
        struct outcome expected;
        CHECK(exchange_encode(&x, out) == (verb.want_left ? 2 : 1));
        CHECK(++steps <= 2);
        reply = next_reply(f);
        if (reply == NULL)
            return false;
        bool again = reply->kind == REPLY_ERROR && steps == 1 &&
                     verb.kind != VERB_ACQUIRE &&
                     error_is_noscript(reply->bytes);
        expected = meaning(&verb, &f->second.reply);
        next = exchange_reply(&x, reply);
        CHECK((next == EXCHANGE_AGAIN) == again);
        if (next == EXCHANGE_WAIT) {
            CHECK(verb.want_left);
            reply = next_reply(f);
            if (reply == NULL)
                return false;
            add_time(&expected, &f->second.reply);
            next = exchange_reply(&x, reply);
            CHECK(next == EXCHANGE_DONE);
        }
        if (next == EXCHANGE_DONE)
            check_outcome(&x.outcome, &expected);
    } while (next != EXCHANGE_DONE);
    return x.outcome.kind != OUTCOME_FAULT;
}

/* -------------------------------------------------------------- handshakes */

static bool is_word(const char *fact, size_t size)
{
    size_t len = strnlen(fact, size);

    for (size_t i = 0; i < len; i++) {
        if (fact[i] < '!' || fact[i] > '~')
            return false;
    }
    return len < size;
}

static void check_facts(const struct facts *f, struct slice said)
{
    CHECK(is_word(f->run_id, sizeof(f->run_id)));
    CHECK(is_word(f->version, sizeof(f->version)));
    CHECK(is_word(f->software, sizeof(f->software)));
    CHECK(is_word(f->role, sizeof(f->role)));
    CHECK(is_word(f->eviction, sizeof(f->eviction)));
    CHECK(f->uptime_s >= -1);
    CHECK(f->role[0] == '\0' || memmem(said.data, said.len, "role:", 5));
    CHECK(f->run_id[0] == '\0' || memmem(said.data, said.len, "run_id:", 7));
}

static bool is_ok(const struct reply *reply)
{
    return reply->kind == REPLY_STATUS &&
           slice_equal(reply->bytes, slice_of("OK"));
}

static bool shake_hands(struct feed *f, char letter, struct buf *out)
{
    struct credentials who = {.db = letter == 'd' || letter == 'x' ? 3 : 0};
    struct handshake h;
    struct slice said = f->bytes;
    enum fault fault = FAULT_NONE;
    enum handshake_next next = HANDSHAKE_WAIT;
    unsigned must_be_ok = who.db != 0 ? 1 : 0;

    if (letter == 'p' || letter == 'u' || letter == 'x') {
        who.password = slice_of("secret");
        must_be_ok++;
    }
    if (letter == 'u' || letter == 'x')
        who.user = slice_of("somebody");
    unsigned due = handshake_begin(&h, &who, out);
    CHECK(due == must_be_ok + 2 + SCRIPTS);
    CHECK(handshake_is_plain(&who) == (must_be_ok == 0));
    for (unsigned i = 0; next == HANDSHAKE_WAIT; i++) {
        const struct reply *reply = next_reply(f);
        if (reply == NULL)
            return false;
        CHECK(i < due);
        next = handshake_reply(&h, reply, &fault);
        check_facts(&h.facts, said);
        CHECK(next != HANDSHAKE_DONE || i == due - 1);
        CHECK(next == HANDSHAKE_FAILED || i >= must_be_ok || is_ok(reply));
    }
    if (next == HANDSHAKE_FAILED)
        check_fault(fault);
    return next == HANDSHAKE_DONE;
}

/* ------------------------------------------------------------------ inputs */

/* Every further reply is read too, whatever it would answer. */
static bool play(char letter, struct slice bytes, struct slice sizes)
{
    struct feed f = {.reader = reader_new(),
        .bytes = bytes,
        .sizes = sizes,
        .plain = bytes};
    struct buf out = {0};

    CHECK(f.reader != NULL);
    bool good = strchr("aAeriI", letter) != NULL
                    ? exchange(&f, letter, &out)
                    : shake_hands(&f, letter, &out);
    for (unsigned i = 0; i < REPLIES && next_reply(&f) != NULL; i++)
        continue;
    buf_free(&out);
    reader_free(f.reader);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char letters[] = "aAeriIhpudx";
    char *text = fuzz_expand(data, size, BYTES_MAX, &size);
    const char *end = memchr(text, '\n', size);
    struct slice sizes = {text, 0}, bytes = {text + size, 0};

    if (size > 1 && end != NULL && end > text) {
        sizes = (struct slice){text + 1, (size_t)(end - text) - 1};
        bytes.data = end + 1;
        bytes.len = size - (size_t)(end + 1 - text);
    }
    char letter = size > 0 ? text[0] : 'a';
    if (letter == '\0' || strchr(letters, letter) == NULL)
        letter = letters[(unsigned char)letter % (sizeof(letters) - 1)];
    bool good = play(letter, bytes, sizes);
    CHECK(play(letter, bytes, (struct slice){NULL, 0}) == good);
    fuzz_count(good);
    free(text);
    return 0;
}
