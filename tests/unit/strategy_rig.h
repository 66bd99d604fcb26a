/* SPDX-License-Identifier: MIT */
/*
 * Dialogs of one exchange, as they would be spoken, a line each:
 *
 *     > PTTL k; EXISTS k     all that it sends; T is the token, SECONDS.T
 *                            the time of its lock, sha:NAME and text:NAME
 *                            are a script's
 *     +OK -ERR x :1 $word    a reply; $T is the token, nil is nil
 *     [] [:1] [$T :5]        an array
 *     @500                   so many milliseconds pass
 *
 * A dialog that ends with what is sent goes on after it; else the exchange is
 * over, and its outcome is compared, in words. Keeps in every dialog: the
 * bytes of a reply are gone when the next one comes, and a step for which there
 * is no memory is not sent in part.
 */
#ifndef NXLOCK_TESTS_STRATEGY_RIG_H
#define NXLOCK_TESTS_STRATEGY_RIG_H

#include "support/test.h"

#include <inttypes.h>

#include "support/alloc.h"
#include "support/blanks.h"
#include "support/resp.h"
#include "unit/fault_names.h"
#include "wire/exchange.h"
#include "wire/strategies.h"
#include "wire/timestamps/server_clock.h"

#define TOKEN "01234567-89ab-4def-8123-456789abcdef"
#define UNKNOWN "-ERR unknown command 'X'\n"
#define NOPERM "-NOPERM this user may not\n"
#define WRONGTYPE "-WRONGTYPE Operation against a key\n"
#define BROKEN "not redis, unsure: expected"

/* The server's clock, when ours is at 100 s. */
#define NOW_MS INT64_C(2000000000000)
#define OUR_NOW UINT64_C(100000000000)

static struct dialect dialect;
static struct exchange x;
static struct verb verb;
static const char *dialog; /* for a failure's sake */

#define check(condition, got, expected)                                        \
    do {                                                                       \
        if (!(condition)) {                                                    \
            print_error(                                                       \
                "%s\n-- got:\n%s\n-- expected:\n%s\n", dialog, got, expected); \
            fail();                                                            \
        }                                                                      \
    } while (0)

/* a, A (asks for the time left), e, r, i, I (compares). */
static inline struct verb verb_of(char letter)
{
    static const char letters[] = "aerik";
    size_t kind = (size_t)(strchr(letters, letter | 0x20) - letters);

    return (struct verb){.kind = (enum verb_kind)kind,
        .key = slice_of("k"),
        .token = slice_of(letter == 'i' ? "" : TOKEN),
        .ttl_ms = 1000,
        .want_left = letter == 'A'};
}

/* On a connection of which only that strategy is known. */
static inline void begin(char letter, unsigned strategy)
{
    verb = verb_of(letter);
    dialect_begin(&dialect);
    dialect.scripts_unverified = false;
    dialect.preferred[verb.kind] = (unsigned char)strategy;
    exchange_begin(&x, &verb, NULL);
    dialog = "";
}

/* ... where locks are times: GETRANGE is there, and the clock is known but for
 * 3 ms. What is prolonged and released is a time, too. */
static inline void begin_stamped(char letter, unsigned strategy)
{
    begin(letter, strategy);
    dialect.ttl_in_values = dialect.stamps.learnt = dialect.stamps.timed = true;
    dialect.max_ttl_ms = 60000;
    dialect.now = OUR_NOW;
    server_clock_learn(&dialect.stamps.clock, OUR_NOW, OUR_NOW, NOW_MS, 1);
    if (verb.kind == VERB_EXTEND || verb.kind == VERB_RELEASE) {
        x.written = WRITTEN_END;
        dialect.preferred[verb.kind] = 0;
        dialect.preferred_with_value_end[verb.kind] = (unsigned char)strategy;
    }
}

/* ------------------------------------------------------------- what is sent */

/* ... but for that end of it, which is replaced. */
static inline bool add_folded(
    struct bytes *b, struct slice word, const char *end, const char *by)
{
    size_t len = strlen(end);

    if (word.len < len || memcmp(word.data + word.len - len, end, len) != 0)
        return false;
    bytes_add_visible(b, word.data, word.len - len, " ;");
    bytes_add(b, by, strlen(by));
    return true;
}

static inline void add_word(struct bytes *b, const char *data, size_t len)
{
    struct slice word = {data, len};

    for (int i = 0; i < SCRIPTS; i++) {
        if (slice_equal(word, slice_of(scripts[i].sha1))) {
            bytes_addf(b, "sha:%s", scripts[i].name);
            return;
        }
        if (slice_equal(word, scripts[i].body)) {
            bytes_addf(b, "text:%s", scripts[i].name);
            return;
        }
    }
    if (!add_folded(b, word, TOKEN, "T") && !add_folded(b, word, BLANKS, "_T"))
        bytes_add_visible(b, word.data, word.len, " ;");
}

/* The commands in these bytes, and how many they are. */
static inline unsigned add_commands(struct bytes *b, const struct buf *out)
{
    size_t at = 0;
    unsigned count = 0;

    while (at < buf_len(out)) {
        struct resp_command c;
        long used = resp_parse(buf_head(out) + at, buf_len(out) - at, &c);
        assert_true(used > 0);
        at += (size_t)used;
        if (count++ > 0)
            bytes_add(b, "; ", 2);
        for (size_t i = 0; i < c.count; i++) {
            if (i > 0)
                bytes_add(b, " ", 1);
            add_word(b, c.arg[i].data, c.arg[i].len);
        }
    }
    return count;
}

/* Encodes a copy of it: the step itself is still to be sent. False: something
 * of a step that failed was left. */
static inline bool rehearse(const struct exchange *of, struct buf *out)
{
    struct exchange copy = *of;
    struct dialect there = dialect;
    size_t before = buf_len(out);

    copy.cache = NULL;
    copy.dialect = of->dialect ? &there : NULL;
    return exchange_encode(&copy, &there, out) > 0 ||
           (buf_len(out) == before &&
               there.in_transaction == dialect.in_transaction);
}

/* If there is no memory for one of its commands, none of them is sent. */
static inline void assert_all_or_nothing(const struct exchange *of)
{
    struct resp_command command;
    struct buf whole = {0};
    size_t fits = 0;

    if (!alloc_counts())
        return; /* a sanitizer has the allocator */
    rehearse(of, &whole);
    while (fits < buf_len(&whole)) {
        struct buf out = {.data = malloc(fits + 1), .end = 1, .room = fits + 1};
        assert_non_null(out.data);
        alloc_fail_from(1);
        bool clean = rehearse(of, &out);
        assert_true(alloc_stop());
        if (!clean || buf_len(&out) != 1)
            fail_msg("%s: a part of a step was sent, for which there was no "
                     "more memory than for %zu bytes",
                dialog, fits);
        buf_free(&out);
        long used = resp_parse(
            buf_head(&whole) + fits, buf_len(&whole) - fits, &command);
        assert_true(used > 0);
        fits += (size_t)used;
    }
    buf_free(&whole);
}

/* Encodes the present step of that exchange, behind other bytes. */
static inline const char *sends_of(struct exchange *of)
{
    static char text[512];
    struct bytes b = {NULL, 0, 0};
    struct buf out = {0};

    assert_all_or_nothing(of);
    assert_true(buf_append(&out, "before", 6));
    unsigned due = exchange_encode(of, &dialect, &out);
    assert_memory_equal(buf_head(&out), "before", 6);
    buf_consume(&out, 6);
    assert_int_equal(add_commands(&b, &out), due);
    assert_int_equal(of->due, due);
    assert_in_range(due, 1, EXCHANGE_REPLIES);
    assert_true(b.len < sizeof(text));
    memcpy(text, b.data, b.len + 1);
    bytes_free(&b);
    buf_free(&out);
    return text;
}

static inline const char *sends(void)
{
    return sends_of(&x);
}

/* ------------------------------------------------------------------ replies */

#define LONGEST_WORD 160
static char spoken[1024]; /* the bytes of the reply there is now */

static inline struct reply reply_of(char *word)
{
    struct reply reply = {.kind = REPLY_NIL};

    if (strcmp(word, "nil") == 0)
        return reply;
    reply.bytes = slice_of(word + 1);
    if (word[0] == ':') {
        reply = (struct reply){
            .kind = REPLY_INTEGER, .integer = strtoll(word + 1, NULL, 10)};
    } else if (word[0] == '$') {
        size_t len = strlen(word);
        char *end = spoken + sizeof(spoken) - LONGEST_WORD;
        reply.kind = REPLY_STRING;
        if (strcmp(word, "$T") == 0) {
            memcpy(end, TOKEN, sizeof(TOKEN));
            reply.bytes = slice_of(end);
        } else if (len > 2 && strcmp(word + len - 2, "_T") == 0) {
            assert_true(len + strlen(BLANKS) < LONGEST_WORD);
            memcpy(end, word + 1, len - 3);
            strcpy(end + len - 3, BLANKS);
            reply.bytes = slice_of(end);
        }
    } else {
        assert_true(word[0] == '+' || word[0] == '-');
        reply.kind = word[0] == '+' ? REPLY_STATUS : REPLY_ERROR;
    }
    return reply;
}

static inline enum exchange_next answer_to(
    struct exchange *of, const char *line)
{
    static struct reply items[REPLY_ITEMS];
    struct reply reply = {.kind = REPLY_ARRAY, .items = items};
    char *rest;

    memset(spoken, 'z', sizeof(spoken));
    memset(items, 'z', sizeof(items));
    assert_true(strlen(line) < sizeof(spoken) - LONGEST_WORD);
    strcpy(spoken, line);
    if (line[0] != '[') {
        reply = reply_of(spoken);
    } else { /* an error is the last item, for it has spaces */
        char *word = strtok_r(spoken + 1, "]", &rest);
        while (word && reply.count < REPLY_ITEMS) {
            char *next = word[0] == '-' ? NULL : strchr(word, ' ');
            if (next)
                *next++ = '\0';
            items[reply.count++] = reply_of(word);
            word = next;
        }
    }
    return exchange_reply(of, &reply);
}

static inline enum exchange_next answer(const char *line)
{
    return answer_to(&x, line);
}

/* ----------------------------------------------------------------- outcomes */

static inline const char *outcome_of(const struct exchange *of)
{
    static const char *const kinds[] = {"none", "granted", "busy", "mine",
        "not mine", "seen", "free", "recorded", NULL};
    static char text[1024];
    const struct outcome *o = &of->outcome;
    bool fault = o->kind == OUTCOME_FAULT;
    int len = snprintf(text, 256, "%s%s%s",
        fault ? fault_name(o->fault) : kinds[o->kind],
        o->unsure ? ", unsure" : "",
        of->written == WRITTEN_OVER ? ", never undone" : "");

    assert_int_equal(fault, o->fault != FAULT_NONE);
    if (o->kind == OUTCOME_SEEN)
        len += snprintf(text + len, 600, " '%.*s'", (int)o->value.len,
            o->value.data ? o->value.data : "");
    else
        assert_int_equal(o->value.len, 0);
    if (o->left_ms == LEFT_FOREVER)
        len += snprintf(text + len, 32, " for ever");
    else if (o->left_ms != LEFT_UNKNOWN)
        len += snprintf(text + len, 32, " %" PRId64, o->left_ms);
    if (o->text.len > 0 && slice_starts(o->text, "expected "))
        strcpy(text + len, ": expected");
    else if (o->text.len > 0)
        snprintf(text + len, sizeof(text) - (size_t)len, ": %.*s",
            (int)o->text.len, o->text.data);
    assert_int_equal(o->sent_at, 0);
    return text;
}

static inline const char *outcome(void)
{
    return outcome_of(&x);
}

/* ------------------------------------------------------------------ dialogs */

/* From where the exchange is. expected: NULL, it goes on. */
static inline void play(const char *lines, const char *expected)
{
    enum exchange_next next = EXCHANGE_AGAIN;

    dialog = lines;
    while (*lines != '\0') {
        char line[256];
        size_t len = strcspn(lines, "\n");
        assert_true(len < sizeof(line));
        memcpy(line, lines, len);
        line[len] = '\0';
        lines += len + (lines[len] == '\n');
        if (line[0] == '>') {
            check(next == EXCHANGE_AGAIN, "not done with what was sent", line);
            const char *sent = sends();
            check(strcmp(sent, line + 2) == 0, sent, line + 2);
            next = EXCHANGE_WAIT;
        } else if (line[0] == '@') {
            dialect.now += strtoull(line + 1, NULL, 10) * 1000000;
        } else {
            check(next == EXCHANGE_WAIT,
                next == EXCHANGE_DONE ? outcome() : "it has more to send",
                line);
            next = answer(line);
        }
    }
    if (!expected) {
        check(next == EXCHANGE_WAIT, "nothing was sent", "it goes on");
        return;
    }
    check(next == EXCHANGE_DONE, "more to send, or to come", expected);
    check(strcmp(outcome(), expected) == 0, outcome(), expected);
    check(x.due == 0 && !dialect.in_transaction, "left open", "closed");
}

struct row {
    char verb;
    unsigned char strategy;
    const char *dialog;
    const char *outcome; /* NULL: it goes on */
};

static inline void play_rows(const struct row *row, size_t count)
{
    for (; count > 0; count--, row++) {
        begin(row->verb, row->strategy);
        play(row->dialog, row->outcome);
    }
}

static inline void play_stamped_rows(const struct row *row, size_t count)
{
    for (; count > 0; count--, row++) {
        begin_stamped(row->verb, row->strategy);
        play(row->dialog, row->outcome);
    }
}

#define PLAY_STAMPED(rows)                                                     \
    play_stamped_rows(rows, sizeof(rows) / sizeof((rows)[0]))
#define PLAY(rows) play_rows(rows, sizeof(rows) / sizeof((rows)[0]))

#endif
