/* SPDX-License-Identifier: MIT */
/*
 * From a server's bytes to an outcome. The first line of the input says what
 * was asked and how the bytes behind it arrive:
 *
 *     letter  a, A    acquire; A asks for the time left too
 *             e, r    extend, release; E, R on another connection from the
 *                     third step on
 *             i, I    inspect; I compares with the token
 *             o       acquire that takes over what others' times left
 *             s, b    acquire by times, under WATCH and without; n on a new
 *                     connection, of which nothing is known
 *             t, q    extend a time, in the same two ways
 *             Q       as q, and then release it
 *             f, g    release it, in the same two ways
 *             k, K    inspect by times; K compares with the token
 *             j, y    join the line, stay in it; J, Y test the channel too
 *             l, P    release a token that may be in line; hand over to nobody
 *             w, W    draw a fencing token after a hand-over; raise it
 *             c       subscribe to the channel
 *             h ...   handshake: h plain, p password, u user, d database,
 *                     x user and database
 *     rest    sizes of the pieces, in turn: a digit is itself, 0 is ten, any
 *             other byte up to 64; none: all at once
 *
 * Each reply is held against a second reader, and what is sent and decided
 * against the model of meaning.h and the watcher of watcher.h: by one exchange
 * after the other on the same connection, for as long as there are replies.
 */
#include "net/reader.h"

#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "fuzz/meaning.h"
#include "fuzz/resp.h"
#include "fuzz/watcher.h"
#include "wire/handshake.h"

#define REPLIES 64
#define STEPS 40   /* of an exchange, at most */
#define PIECES 400 /* the rest comes at once */
/* Beyond it the reader may give up, which has its own tests. */
#define BYTES_MAX (READER_BACKLOG / 2)

/* ------------------------------------------------------ bytes, in pieces */

struct feed {
    struct reader *reader;
    struct slice bytes; /* not fed yet */
    struct slice sizes; /* of the pieces */
    size_t turn;
    struct slice plain; /* what the second reader has not read yet */
    bool over;          /* no reply is left */
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
    CHECK(slice_equal(a->bytes, b->bytes) && a->truncated == b->truncated);
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
    while ((got = reader_next(f->reader, (struct expected){0}, &reply)) == 0 &&
           f->bytes.len > 0) {
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
        CHECK(reader_next(f->reader, (struct expected){0}, &reply) == -1);
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

/* What an error means does not change by further words, but by the first one
 * of what EXEC was refused for. */
static void check_class(const struct reply *reply)
{
    struct slice error = reply->bytes;
    struct slice open = slice_of("EXECABORT Transaction discarded because of:");

    if (reply->kind != REPLY_ERROR || slice_equal(error, open))
        return;
    enum fault fault = classify_error(error);
    char *longer = malloc(error.len + 2);
    check_fault(fault);
    CHECK(longer != NULL);
    memcpy(longer, error.data, error.len);
    memcpy(longer + error.len, " x", 2);
    CHECK(classify_error((struct slice){longer, error.len + 2}) == fault);
    free(longer);
}

/* --------------------------------------------------------------- exchanges */

/* The words are those which decided; of what a stand-in said they may be
 * left out. */
static void check_text(const struct model *m, struct slice got)
{
    struct slice text = m->outcome.text;

    if (got.len == 0 && m->tried > 0)
        return;
    if (text.len > 0 && (slice_starts(text, "EXECABORT ") ||
                            m->outcome.fault == FAULT_NOT_REDIS)) {
        CHECK(got.len >= 9 && memcmp(got.data, text.data, 9) == 0);
        return;
    }
    CHECK(got.len == text.len || (got.len < text.len && got.len >= 512));
    CHECK(got.len == 0 || memcmp(got.data, text.data, got.len) == 0);
}

static void check_outcome(const struct model *m, const struct outcome *a)
{
    const struct outcome *b = &m->outcome;

    CHECK(a->kind == b->kind && a->fault == b->fault);
    CHECK(a->unsure == b->unsure);
    if (a->kind == OUTCOME_FAULT) {
        check_fault(a->fault);
        check_text(m, a->text);
        return;
    }
    CHECK(a->left_ms == b->left_ms && a->left_ms >= LEFT_UNKNOWN);
    CHECK(a->ahead == b->ahead && a->no_listener == b->no_listener &&
          a->fence == b->fence);
    CHECK(slice_equal(a->value, b->value));
}

/* One step to a server and its replies. */
struct step {
    struct buf out;
    struct told told[EXCHANGE_REPLIES];
    unsigned count;
};

static bool is_modelled(const struct exchange *x)
{
    return x->phase != EXCHANGE_PHASE_CHECK_VALUE &&
           x->strategy_index < ways[x->verb->kind].count;
}

static void check_said(struct model *m, struct exchange *x,
    struct dialect *dialect, struct step *step, struct watcher *w)
{
    struct buf expected = {0};
    buf_free(&step->out);
    m->plain = m->plain && dialect->now < x->hand_over_again; /* for a while */
    unsigned due = exchange_encode(x, dialect, &step->out);
    CHECK(due > 0 && x->due == due && due <= EXCHANGE_REPLIES);
    watch_sent(w, x, &step->out);
    CHECK(w->orders == due);
    if (!is_modelled(x)) {
        m->left = true;
        return;
    }
    if (m->left)
        return; /* it came back: what it has tried there is not known */
    CHECK(due == model_says(m, &expected));
    CHECK(buf_len(&step->out) == buf_len(&expected));
    CHECK(memcmp(buf_head(&step->out), buf_head(&expected),
              buf_len(&expected)) == 0);
    CHECK((dialect->in_transaction == x) == (model_way(m) == WATCH));
    buf_free(&expected);
}

/* All replies to what was said. False: there are no more. */
static bool take_replies(struct feed *f, struct exchange *x, struct step *step,
    struct watcher *w, enum exchange_next *next)
{
    unsigned due = x->due;

    x->dialect->now += UINT64_C(5000000);
    for (step->count = 0; step->count < due; step->count++) {
        struct told *told = &step->told[step->count];
        const struct reply *reply = next_reply(f);
        if (!reply)
            return false;
        check_class(reply);
        told->reply = f->second.reply;
        memcpy(told->items, f->second.items, sizeof(told->items));
        if (told->reply.kind == REPLY_ARRAY)
            told->reply.items = told->items;
        watch_answer(w, x, step->count, reply);
        *next = exchange_reply(x, reply);
        CHECK((*next == EXCHANGE_WAIT) == (step->count < due - 1));
    }
    return true;
}

/* The model says that it is over; it is not: to look whether what stands
 * there is a time, or because the strategies of times are left. */
static bool goes_further(const struct model *m, const struct exchange *x)
{
    const struct outcome *o = &m->outcome;

    if (x->phase != EXCHANGE_PHASE_CHECK_VALUE)
        return !m->settled && !is_modelled(x);
    if (m->verb.kind == VERB_ACQUIRE)
        return o->kind == OUTCOME_BUSY && o->left_ms == LEFT_FOREVER;
    return o->kind == OUTCOME_NOT_MINE ||
           (o->kind == OUTCOME_SEEN && o->left_ms == LEFT_FOREVER &&
               end_of(o->value) > 0);
}

static bool judge(struct model *m, const struct exchange *x,
    const struct step *step, enum exchange_next next)
{
    bool more = next == EXCHANGE_AGAIN;

    if (m->left)
        return !more;
    bool over = model_judge(m, step->told, &x->outcome, more);
    if (over && more) {
        CHECK(goes_further(m, x));
        m->left = true;
        return false;
    }
    CHECK(over == !more);
    if (!over && (m->tried & 1U << m->at)) { /* the next one, in any order */
        CHECK(x->strategy_index >= ways[m->verb.kind].count ||
              !(m->tried & 1U << x->strategy_index));
        m->at = x->strategy_index;
        m->left = !is_modelled(x);
    }
    return over;
}

/* False: no reply was left for it. */
static bool run(struct feed *f, char letter, struct dialect *dialect,
    struct model *m, struct exchange *x, struct watcher *w)
{
    struct step step = {.count = 0};
    bool over = false;
    for (unsigned steps = 1; !over; steps++) {
        enum exchange_next next = EXCHANGE_WAIT;
        CHECK(steps <= STEPS);
        if (steps == 3 && (letter == 'E' || letter == 'R')) {
            dialect_begin(dialect);
            model_begin(m, 0);
            m->plain = dialect->now < x->hand_over_again;
            *w = (struct watcher){.orders = 0};
        }
        check_said(m, x, dialect, &step, w);
        if (!take_replies(f, x, &step, w, &next)) {
            buf_free(&step.out);
            return false;
        }
        over = judge(m, x, &step, next);
    }
    watch_end(w, x);
    buf_free(&step.out);
    return true;
}

/* An exchange on a connection of which something is known. False: no reply
 * was left for it. */
static bool exchange(
    struct feed *f, char letter, struct dialect *dialect, bool *good)
{
    struct model m = {.verb = verb_of(letter)};
    struct watcher w = {.orders = 0};
    static struct exchange x; /* what it has stored is used again */
    unsigned char *at = &dialect->preferred[m.verb.kind];
    uint64_t again = dialect->now ? x.hand_over_again : 0; /* as it was left */
    exchange_begin(&x, &m.verb, NULL);
    x.hand_over_again = again;
    x.written = strchr("tqQfg", letter) ? WRITTEN_END : WRITTEN_TOKEN;
    model_begin(&m, *at);
    m.plain = dialect->now < again;
    m.left = dialect->ttl_in_values || *at >= ways[m.verb.kind].count;
    if (!run(f, letter, dialect, &m, &x, &w))
        return false;
    if (letter == 'Q') { /* what that did is not forgotten */
        if (x.phase ==
            EXCHANGE_PHASE_STUCK) { /* but its connection was ended */
            dialect_begin(dialect);
            w = (struct watcher){.orders = 0};
        }
        dialect->preferred_with_value_end[VERB_RELEASE] = 3;
        m.verb = verb_of('g');
        exchange_restart(&x, &m.verb, NULL);
        if (!run(f, letter, dialect, &m, &x, &w))
            return false;
    }
    CHECK(!dialect->in_transaction);
    *good = x.outcome.kind != OUTCOME_FAULT;
    if (m.left)
        return true;
    check_outcome(&m, &x.outcome);
    CHECK((x.phase == EXCHANGE_PHASE_STUCK) == m.stuck);
    CHECK(!m.settled || *at == m.at);
    return true;
}

/* As many as there are replies for. True when the first one's server decided
 * something. */
static bool exchanges(struct feed *f, char letter)
{
    struct dialect dialect;
    bool good = false, later;

    dialect_of(&dialect, letter, verb_of(letter).kind);
    if (!exchange(f, letter, &dialect, &good))
        return false;
    for (unsigned i = 0; i < REPLIES; i++) {
        if (!exchange(f, letter, &dialect, &later))
            break;
    }
    return good;
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
    CHECK(is_word(f->mode, sizeof(f->mode)));
    CHECK(f->uptime_s >= -1);
    CHECK(f->role[0] == '\0' || memmem(said.data, said.len, "role:", 5));
    CHECK(f->run_id[0] == '\0' || memmem(said.data, said.len, "run_id:", 7));
}

static bool shake_hands(struct feed *f, char letter, struct buf *out)
{
    struct handshake_terms who = {.db = letter == 'd' || letter == 'x' ? 3 : 0};
    struct handshake h;
    struct slice said = f->bytes;
    enum fault fault = FAULT_NONE;
    enum handshake_next next = HANDSHAKE_WAIT;
    unsigned must_be_ok = who.db != 0 ? 1 : 0;
    bool refused = false;

    if (letter == 'p' || letter == 'u' || letter == 'x') {
        who.password = slice_of("secret");
        must_be_ok++;
    }
    if (letter == 'u' || letter == 'x')
        who.user = slice_of("somebody");
    unsigned due = handshake_begin(&h, &who, out);
    CHECK(due == must_be_ok + 2 + SCRIPTS_LOADED);
    CHECK(handshake_is_minimal(&who) == (must_be_ok == 0));
    for (unsigned i = 0; next == HANDSHAKE_WAIT; i++) {
        const struct reply *reply = next_reply(f);
        if (!reply)
            return false;
        CHECK(i < due);
        next = handshake_reply(&h, reply, &fault);
        check_facts(&h.facts, said);
        refused = refused || (i < must_be_ok && !is_status(reply, "OK"));
        CHECK(next != HANDSHAKE_DONE || (i == due - 1 && !refused));
        /* Behind a refused login nothing but INFO's answer is waited for. */
        CHECK(next != HANDSHAKE_WAIT || !refused || i <= must_be_ok);
        CHECK(memchr(h.why, '\0', sizeof(h.why)) != NULL);
    }
    if (next == HANDSHAKE_FAILED)
        check_fault(fault);
    return next == HANDSHAKE_DONE;
}

/* ------------------------------------------------------------------ inputs */

/* Every further reply is read too, whatever it would answer. */
static bool play(char letter, struct slice bytes, struct slice sizes)
{
    struct feed f = {
        .reader = reader_new(), .bytes = bytes, .sizes = sizes, .plain = bytes};
    struct buf out = {0};

    CHECK(f.reader != NULL);
    bool good = strchr("aAeErRiIosbntqQfgkKjJyYlPwWc", letter)
                    ? exchanges(&f, letter)
                    : shake_hands(&f, letter, &out);
    for (unsigned i = 0; i < REPLIES && next_reply(&f); i++)
        continue;
    buf_free(&out);
    reader_free(f.reader);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char letters[] = "aAeErRiIosbntqQfgkKjJyYlPwWchpudx";
    char *text = fuzz_expand(data, size, BYTES_MAX, &size);
    const char *end = memchr(text, '\n', size);
    struct slice sizes = {text, 0}, bytes = {text + size, 0};

    if (size > 1 && end && end > text) {
        sizes = (struct slice){text + 1, (size_t)(end - text) - 1};
        bytes = (struct slice){end + 1, size - (size_t)(end + 1 - text)};
    }
    char letter = size > 0 ? text[0] : 'a';
    if (letter == '\0' || !strchr(letters, letter))
        letter = letters[(unsigned char)letter % (sizeof(letters) - 1)];
    bool good = play(letter, bytes, sizes);
    CHECK(play(letter, bytes, (struct slice){NULL, 0}) == good);
    fuzz_count(good);
    free(text);
    return 0;
}
