/* SPDX-License-Identifier: MIT */
/*
 * Whoever watches a connection, and knows nothing of strategies: by what was
 * sent and what was answered, may this be sent, and may that be concluded? What
 * the model of meaning.h does not follow, the strategies of times, is held to
 * this; and all the rest as well. Keeps: a key is changed or deleted only by a
 * command that compares, or in a transaction that MULTI opened behind a value
 * that allows it, or without WATCH as docs/wire.md has it; GRANTED is a reply's
 * to say; a transaction is ended.
 */
#ifndef NXLOCK_TESTS_FUZZ_WATCHER_H
#define NXLOCK_TESTS_FUZZ_WATCHER_H

#include <stdlib.h>

#include "fuzz/strategies.h"
#include "wire/classify.h"
#include "wire/strategy.h"

#define BLANKS_LEN 128
#define CLOCK_KEY KEY ":clock:"

struct order {
    unsigned count;
    struct slice arg[COMMAND_ARGS];
};

struct watcher {
    unsigned orders;
    struct order order[EXCHANGE_REPLIES];
    bool open; /* a transaction */
    /* The value that was read last. */
    bool ours, past, no_end;
    int64_t end_s;               /* 0: it is no time */
    char value[512], taken[512]; /* taken: what is to be taken over */
    size_t value_len, taken_len;
    int64_t time_ms;  /* that TIME said last */
    int64_t asked_ms; /* ... in this step; 0: nothing */
    bool with_end;    /* TTL said so in this step */
    int64_t set_s;    /* the time that SETNX was to write */
    bool stepped;     /* TIME says that it is too early */
    bool yes;         /* the token was set, by a reply's word */
    bool queued;      /* what is before EXEC was */
    bool clobbered;   /* a GETSET without WATCH was done */
    bool lost;        /* ... to prolong, and what stood there was not ours */
};

/* ------------------------------------------------------------------- values */

static size_t digits_of(struct slice s)
{
    size_t n = 0;

    while (n < s.len && s.data[n] >= '0' && s.data[n] <= '9')
        n++;
    return n;
}

/* The bits of a UUID, a space for 0 and a tab for 1. */
static bool has_blanks(struct slice value, size_t whole)
{
    size_t n = whole;

    while (n < value.len && (value.data[n] == ' ' || value.data[n] == '\t'))
        n++;
    return n == value.len && n - whole == BLANKS_LEN;
}

/* ... and those of TOKEN's. */
static bool has_our_blanks(struct slice value, size_t whole)
{
    const char *hex = TOKEN;
    size_t at = whole;

    if (!has_blanks(value, whole))
        return false;
    for (; at < value.len; hex++) {
        int digit = *hex <= '9' ? *hex - '0' : *hex - 'a' + 10;
        for (int bit = 8; *hex != '-' && bit > 0; bit /= 2)
            if ((value.data[at++] == '\t') != ((digit & bit) != 0))
                return false;
    }
    return true;
}

/* The second in which it is over; 0: no time. */
static int64_t end_of(struct slice value)
{
    size_t whole = digits_of(value);
    int64_t end_s = 0;
    bool more = false;

    if (value.len > 11 + BLANKS_LEN || whole < 10 || whole > 11 ||
        value.data[0] == '0')
        return 0;
    for (size_t i = 0; i < whole; i++)
        end_s = end_s * 10 + value.data[i] - '0';
    if (whole == value.len || has_blanks(value, whole))
        return end_s;
    struct slice rest = {value.data + whole + 1, value.len - whole - 1};
    if (value.data[whole] != '.' || rest.len == 0 ||
        digits_of(rest) != rest.len)
        return 0;
    for (size_t i = 0; i < rest.len; i++)
        more |= rest.data[i] != '0';
    return end_s + more;
}

static bool is_ours(struct slice value)
{
    return slice_equal(value, slice_of(TOKEN)) ||
           (end_of(value) > 0 && has_our_blanks(value, digits_of(value)));
}

/* The server's clock, by the step that reads a value. */
static int64_t now_of(const struct watcher *w, const struct exchange *x)
{
    if (w->asked_ms > 0 && !x->strategy->without_watch)
        return w->asked_ms;
    return server_clock_low(&x->dialect->stamps.clock, x->dialect->now);
}

static void watch_value(
    struct watcher *w, const struct exchange *x, const struct reply *reply)
{
    struct slice value = {"", 0};

    if (reply->kind == REPLY_STRING)
        value = reply->bytes;
    w->value_len = value.len < 512 ? value.len : 512;
    memcpy(w->value, value.data, w->value_len);
    w->ours = is_ours(value);
    w->end_s = end_of(value);
    w->past = w->end_s > 0 && x->dialect->stamps.clock.known && !w->with_end &&
              w->end_s * 1000 <= now_of(w, x);
}

/* ------------------------------------------------------------- what is sent */

static bool says(struct slice word, const char *text)
{
    return slice_equal(word, slice_of(text));
}

static void read_orders(struct watcher *w, const struct buf *out)
{
    const char *at = buf_head(out), *end = at + buf_len(out);
    char *next;

    for (w->orders = 0; at < end; w->orders++) {
        struct order *o = &w->order[w->orders];
        CHECK(w->orders < EXCHANGE_REPLIES && *at == '*');
        o->count = (unsigned)strtoul(at + 1, &next, 10);
        CHECK(o->count <= COMMAND_ARGS);
        at = next + 2;
        for (unsigned i = 0; i < o->count; i++) {
            o->arg[i].len = strtoul(at + 1, &next, 10);
            o->arg[i].data = next + 2;
            at = next + 2 + o->arg[i].len + 2;
        }
    }
    CHECK(at == end);
}

/* Its time is so far away that a DEL or a GETSET comes before it. */
static bool clearly_ours(const struct watcher *w, const struct exchange *x)
{
    return w->ours && w->end_s > 0 && x->dialect->stamps.clock.known &&
           w->end_s * 1000 >
               server_clock_high(&x->dialect->stamps.clock, x->dialect->now) +
                   1000;
}

static bool may_write_over(const struct watcher *w, const struct exchange *x)
{
    if (x->verb->kind == VERB_ACQUIRE)
        return w->past;
    return x->verb->kind == VERB_EXTEND && w->ours && w->end_s > 0 &&
           (w->open || clearly_ours(w, x));
}

/* After SET NX: the time is past by TIME, and the key has no end. */
static bool may_take(const struct watcher *w, const struct exchange *x)
{
    struct slice value = {w->value, w->value_len};
    bool others = !has_blanks(value, digits_of(value));

    return w->end_s > 0 && w->no_end && w->time_ms > 0 &&
           w->end_s * 1000 <= w->time_ms && (!others || x->dialect->interop);
}

static void check_order(
    struct watcher *w, const struct exchange *x, const struct order *o)
{
    struct slice name = o->arg[0];
    bool bare = !w->open && x->strategy->without_watch;

    if (o->count > 1 && slice_starts(o->arg[1], CLOCK_KEY))
        return; /* nobody's lock */
    if (says(name, "DEL")) {
        CHECK(x->verb->kind == VERB_RELEASE && o->count == 2);
        CHECK(!w->lost);
        CHECK(w->open ? w->ours : bare && clearly_ours(w, x));
    } else if (says(name, "GETSET")) {
        CHECK((w->open || bare) && may_write_over(w, x));
        CHECK(is_ours(o->arg[2]) && end_of(o->arg[2]) >= w->end_s);
    } else if (says(name, "SETNX")) {
        CHECK(x->verb->kind == VERB_ACQUIRE && is_ours(o->arg[2]));
        w->set_s = end_of(o->arg[2]);
        CHECK(w->set_s > 0 && !w->yes);
    } else if (says(name, "PEXPIRE")) {
        CHECK(w->open && w->ours);
    } else if (says(name, "PSETEX")) {
        CHECK(w->open && may_take(w, x) && w->value_len == w->taken_len);
        CHECK(memcmp(w->value, w->taken, w->taken_len) == 0);
    } else if (says(name, "EXEC") || says(name, "DISCARD")) {
        CHECK(w->open);
    } else if (says(name, "WATCH") || says(name, "MULTI")) {
        CHECK(!w->open);
    } else if (says(name, "SET")) {
        CHECK(says(o->arg[3], "NX"));
    } else if (says(name, "EVAL") && o->count == 7) { /* take-over */
        CHECK(may_take(w, x));
        CHECK(slice_equal(o->arg[6], (struct slice){w->value, w->value_len}));
        memcpy(w->taken, w->value, w->taken_len = w->value_len);
    } else {
        CHECK(says(name, "EVAL") || says(name, "EVALSHA") ||
              says(name, "GETRANGE") || says(name, "SUBSTR") ||
              says(name, "PTTL") || says(name, "TTL") || says(name, "EXISTS") ||
              says(name, "TIME") || says(name, "SUBSCRIBE"));
    }
}

/* out lives until the replies have come. */
static void watch_sent(
    struct watcher *w, const struct exchange *x, const struct buf *out)
{
    read_orders(w, out);
    w->queued = false;
    for (unsigned i = 0; i < w->orders; i++)
        check_order(w, x, &w->order[i]);
    w->asked_ms = 0;
    w->with_end = false;
}

/* --------------------------------------------------------- what is answered */

static bool ends(struct slice name, const struct reply *reply)
{
    return reply->kind != REPLY_ERROR ||
           slice_starts(reply->bytes, "EXECABORT") ||
           (says(name, "DISCARD") &&
               slice_starts(reply->bytes, "ERR DISCARD without MULTI"));
}

/* EXEC did what was queued before it. */
static bool was_set(const struct watcher *w, const struct reply *reply)
{
    struct slice name = w->order[0].arg[0];

    if (!w->queued || reply->kind != REPLY_ARRAY || reply->count != 1)
        return false;
    enum reply_kind kind = reply->items[0].kind;
    return says(name, "GETSET") ? kind == REPLY_STRING || kind == REPLY_NIL
                                : says(name, "PSETEX") && kind == REPLY_STATUS;
}

static void watch_getset(
    struct watcher *w, const struct exchange *x, const struct reply *reply)
{
    const struct server_clock *clock = &x->dialect->stamps.clock;

    if (w->open) {
        w->queued = reply->kind == REPLY_STATUS;
        return;
    }
    w->clobbered = reply->kind != REPLY_ERROR ||
                   classify_error(reply->bytes) == FAULT_SERVER;
    if (x->verb->kind == VERB_EXTEND && w->clobbered)
        w->lost = reply->kind != REPLY_NIL &&
                  !(reply->kind == REPLY_STRING && is_ours(reply->bytes));
    int64_t end_s = reply->kind == REPLY_STRING ? end_of(reply->bytes) : 0;
    w->yes |=
        reply->kind == REPLY_NIL ||
        (end_s > 0 && end_s * 1000 <= server_clock_low(clock, x->encoded_at));
}

/* Nothing says where such bytes end but their length. */
static int64_t number_of(struct slice digits)
{
    int64_t number = 0;

    for (size_t i = 0; i < digits.len; i++)
        number = number * 10 + digits.data[i] - '0';
    return number;
}

static int64_t time_of(const struct reply *reply)
{
    const struct reply *item = reply->items;

    if (reply->kind != REPLY_ARRAY || reply->count != 2 ||
        item[0].kind != REPLY_STRING || item[1].kind != REPLY_STRING ||
        item[0].bytes.len == 0 || item[0].bytes.len > 12 ||
        digits_of(item[0].bytes) != item[0].bytes.len ||
        item[1].bytes.len == 0 || item[1].bytes.len > 6 ||
        digits_of(item[1].bytes) != item[1].bytes.len)
        return -1;
    return number_of(item[0].bytes) * 1000 + number_of(item[1].bytes) / 1000;
}

static void watch_time(
    struct watcher *w, const struct exchange *x, int64_t time_ms)
{
    w->time_ms = w->asked_ms = time_ms;
    w->stepped = w->yes && w->set_s * 1000 < time_ms + x->verb->ttl_ms;
}

/* Before the exchange has it. i: of this step's replies. */
static void watch_answer(struct watcher *w, const struct exchange *x,
    unsigned i, const struct reply *reply)
{
    struct slice name = w->order[i].arg[0];
    bool ok = reply->kind == REPLY_STATUS && says(reply->bytes, "OK");

    if (w->order[i].count > 1 && slice_starts(w->order[i].arg[1], CLOCK_KEY))
        return;
    if (says(name, "GETRANGE") || says(name, "SUBSTR"))
        watch_value(w, x, reply);
    else if (says(name, "TIME"))
        watch_time(w, x, time_of(reply));
    else if (says(name, "PTTL"))
        w->no_end = reply->kind == REPLY_INTEGER && reply->integer == -1;
    else if (says(name, "TTL"))
        w->with_end = reply->kind == REPLY_INTEGER && reply->integer >= 0;
    else if (says(name, "MULTI"))
        w->open = ok;
    else if (says(name, "GETSET"))
        watch_getset(w, x, reply);
    else if (says(name, "PSETEX"))
        w->queued = reply->kind == REPLY_STATUS;
    else if (says(name, "SETNX"))
        w->yes |= reply->kind == REPLY_INTEGER && reply->integer == 1;
    else if (says(name, "SET"))
        w->yes |= ok;
    else if (says(name, "EVAL"))
        w->yes |= reply->kind == REPLY_STATUS;
    else if (says(name, "EXEC"))
        w->yes |= was_set(w, reply);
    if ((says(name, "EXEC") || says(name, "DISCARD")) && ends(name, reply))
        w->open = false;
}

static void watch_end(const struct watcher *w, const struct exchange *x)
{
    const struct outcome *o = &x->outcome;

    CHECK(!w->open || x->phase == EXCHANGE_PHASE_STUCK ||
          o->fault == FAULT_NOT_REDIS);
    CHECK(x->written == WRITTEN_OVER || !w->lost);
    if (x->verb->kind != VERB_ACQUIRE)
        return;
    CHECK(o->kind != OUTCOME_GRANTED || (w->yes && !w->stepped));
    CHECK(!w->stepped || o->unsure);
    CHECK(o->kind != OUTCOME_BUSY || !w->yes);
    CHECK(o->kind != OUTCOME_FAULT || !w->yes || o->unsure);
    if (w->clobbered && !w->yes)
        CHECK(o->unsure && x->written == WRITTEN_OVER &&
              o->kind != OUTCOME_GRANTED);
    else
        CHECK(x->written != WRITTEN_OVER);
}

#endif
