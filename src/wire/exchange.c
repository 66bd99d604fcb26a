/* SPDX-License-Identifier: MIT */
/*
 * Carries out a verb by the first strategy that the server accepts. Invariant:
 * only the reply to the verb's own command decides its outcome. A reply that
 * cannot be its answer means that replies and commands are out of step, and
 * then nothing is concluded. The next strategy is tried only after an error
 * that proves that nothing was done.
 */
#include "wire/exchange.h"

#include <stdlib.h>

#include "base/deadline.h"
#include "model/token.h"
#include "wire/classify.h"
#include "wire/strategies.h"

/* How often a waiter checks the value of a key without a TTL. (It tries to
 * acquire the lock far more often.) */
#define CHECK_AGAIN NS_PER_S
/* How much longer than its TTL a lock may last whose end is in its value: whole
 * seconds, rounded up, of a server's clock that is known only roughly. */
#define SLACK_MS 5000

static void restart(struct exchange *x)
{
    x->dialect = NULL;
    x->phase = EXCHANGE_PHASE_VERB;
    x->tried = 0;
    x->step = 0;
    x->write_tries = 0;
    x->first_len = 0;
    x->refused = FAULT_NONE;
    x->outcome = (struct outcome){.left_ms = LEFT_UNKNOWN};
}

void exchange_free(struct exchange *x)
{
    free(x->stored);
    free(x->first);
    x->stored = x->first = NULL;
}

void exchange_forget_form(struct exchange *x)
{
    x->written = WRITTEN_TOKEN;
}

void exchange_restart(
    struct exchange *x, const struct verb *verb, struct command_cache *cache)
{
    x->verb = verb;
    x->cache = cache;
    x->strategy = NULL;
    x->due = 0;
    x->always_text = false;
    if (verb_acquires(verb->kind))
        exchange_forget_form(x);
    restart(x);
}

void exchange_begin(
    struct exchange *x, const struct verb *verb, struct command_cache *cache)
{
    exchange_forget_form(x);
    x->check_at = x->hand_over_again = 0;
    exchange_restart(x, verb, cache);
}

void exchange_inherit(struct exchange *x, const struct exchange *from)
{
    x->written = from->written;
}

void exchange_move(
    struct exchange *from, struct exchange *x, const struct verb *verb)
{
    exchange_begin(x, verb, NULL);
    x->dialect = from->dialect;
    x->connection = from->connection;
    x->strategy = from->strategy;
    x->strategy_index = from->strategy_index;
    x->step = from->step;
    x->due = from->due;
    x->shared = from->shared;
    exchange_inherit(x, from);
}

bool exchange_may_send(const struct exchange *x, const struct dialect *dialect)
{
    return !dialect->in_transaction || dialect->in_transaction == x;
}

/* ---------------------------------------------------- which strategy it is */

/* Must the strategy handle a value that contains its end? Not for an acquire:
 * its strategy decides how the token is written. */
static bool wants_end_in_value(const struct exchange *x)
{
    if (verb_acquires(x->verb->kind))
        return false;
    return x->phase == EXCHANGE_PHASE_CHECK_VALUE ||
           (exchange_end_is_in_value(x) && x->verb->token.len > 0);
}

/* Where the connection remembers which strategy worked for this verb. */
static unsigned char *remembered_strategy(
    const struct exchange *x, bool with_end)
{
    struct dialect *dialect = x->dialect;
    return with_end ? &dialect->preferred_with_value_end[x->verb->kind]
                    : &dialect->preferred[x->verb->kind];
}

static struct strategies_range range_of(const struct exchange *x, bool with_end)
{
    if (x->shared)
        return STRATEGIES_OF_SHARED;
    return strategies_range(x->dialect, x->verb->kind, with_end);
}

static void choose_strategy(struct exchange *x)
{
    bool with_end = wants_end_in_value(x);
    struct strategies_range range = range_of(x, with_end);

    x->strategy_index = *remembered_strategy(x, with_end);
    if (x->strategy_index < range.first || x->strategy_index >= range.end)
        x->strategy_index = (unsigned char)range.first;
}

unsigned exchange_encode(
    struct exchange *x, struct dialect *dialect, struct buf *out)
{
    if (x->dialect && x->connection != dialect->connection)
        restart(x);
    if (!x->dialect) {
        x->dialect = dialect;
        x->connection = dialect->connection;
        x->shared = token_has_share(x->verb->token);
        choose_strategy(x);
    }
    x->strategy = strategies_for(x);
    /* Forget the form that the previous step would have used on another
     * connection: none of its bytes were sent. */
    if (verb_acquires(x->verb->kind))
        x->written = x->strategy->ttl_is_in_value ? WRITTEN_END : WRITTEN_TOKEN;
    x->encoded_at = dialect->now;
    x->due = (unsigned char)x->strategy->encode(x, out);
    if (x->due && x->step >= STEP_WATCH)
        dialect->in_transaction = x;
    return x->due;
}

bool exchange_may_join(const struct exchange *x)
{
    return x->strategy->counts_names && !scripted_as_text(x);
}

bool exchange_follows(const struct exchange *x, const struct exchange *before)
{
    const struct verb *verb = x->verb, *first = before->verb;
    return verb_asks_after(verb) && slice_equal(*verb->after, first->key) &&
           slice_equal(verb->token, first->token) &&
           verb->ttl_ms == first->ttl_ms;
}

bool exchange_encode_joined(
    struct exchange *const *of, unsigned count, struct buf *out)
{
    const struct verb *verbs[COMMAND_NAMES];
    for (unsigned i = 0; i < count; i++) {
        of[i]->name = (unsigned char)(i + 1);
        of[i]->names = (unsigned char)count;
        verbs[i] = of[i]->verb;
    }
    return command_acquire_after(out, verbs, count, scripted_as_text(of[0]));
}

bool exchange_is_joined(const struct exchange *x)
{
    return x->strategy->counts_names && x->names > 1;
}

bool exchange_end_is_in_value(const struct exchange *x)
{
    return exchange_form(x) != WRITTEN_TOKEN;
}

bool exchange_may_undo(const struct exchange *x)
{
    return exchange_form(x) != WRITTEN_OVER;
}

uint64_t exchange_lasts_ms(const struct exchange *x, uint32_t ttl_ms)
{
    return (uint64_t)ttl_ms + (exchange_end_is_in_value(x) ? SLACK_MS : 0);
}

int exchange_deciding_reply(const struct exchange *x, bool answered)
{
    if (x->step == STEP_EXEC)
        return x->due - 1;
    return x->step < STEP_READ_ONLY && !answered ? 0 : -1;
}

bool exchange_opened(const struct exchange *x)
{
    return x->step > STEP_WATCH;
}

bool exchange_compares(const struct exchange *x)
{
    return x->strategy && x->strategy->is_script;
}

bool exchange_always_writes(const struct exchange *x)
{
    return x->strategy && x->strategy->always_writes;
}

bool exchange_cancel(struct exchange *x)
{
    if (!x->dialect || x->dialect->in_transaction != x)
        return false;
    x->dialect->in_transaction = NULL;
    return true;
}

/* Instead of a server's words that there is no memory for. */
static const char words_lost[] = "out of memory: cannot store the error";

/* The reply's bytes are valid only until the next reply, so copy the text. */
static void save_text(struct exchange *x)
{
    struct slice *text = &x->outcome.text;

    if (text->len == 0 || text->data == x->stored)
        return;
    size_t len = strategy_store(&x->stored, *text);
    *text = len > 0 ? (struct slice){x->stored, len} : slice_of(words_lost);
}

/* Is the key denied, not the command? Then other permissions would not help. Of
 * some texts only the beginning is kept, so only that is read. */
static bool refuses_key(struct slice text)
{
    static const char key[] = " key";
    size_t len = text.len < EXCHANGE_TEXT ? text.len : EXCHANGE_TEXT;

    return slice_starts(text, "NOPERM ") &&
           memmem(text.data, len, key, sizeof(key) - 1);
}

/* Does this refusal explain the result better than the one that is remembered?
 * That of the best strategy does; those of the fallbacks would only confuse.
 * But a command that says that the key is no string knows nothing of a lock
 * that several hold: a script may have been denied that would know it. Where
 * there are no scripts, there is no such lock. */
static bool explains_better(const struct exchange *x, enum fault fault)
{
    switch (x->refused) {
    case FAULT_NONE:
        return true;
    case FAULT_UNSUPPORTED:
        return fault == FAULT_WRONG_TYPE;
    case FAULT_WRONG_TYPE:
        return fault != FAULT_UNSUPPORTED;
    default:
        return false;
    }
}

static void exchange_remember_refusal(struct exchange *x)
{
    struct slice text = x->outcome.text;

    if (!explains_better(x, x->outcome.fault) && !refuses_key(text))
        return;
    x->refused = x->outcome.fault;
    x->first_len = strategy_store(&x->first, text);
}

/* Sets x->strategy_index to the next strategy that has not been tried; false:
 * none left. */
static bool next_strategy(struct exchange *x, unsigned first, unsigned end)
{
    unsigned from = x->strategy_index < end ? x->strategy_index : end - 1;

    for (unsigned i = 1; first < end && i <= end - first; i++) {
        unsigned at = first + (from - first + i) % (end - first);
        if (x->tried & 1U << at)
            continue;
        x->strategy_index = (unsigned char)at;
        return true;
    }
    return false;
}

/* Prepares the next strategy; false: all were refused, and the outcome is the
 * refusal that explains it best. INSPECT: once a key is known to be no string,
 * only the script, which is the first strategy, can say what it is. */
static bool fall_back(struct exchange *x)
{
    struct strategies_range range = range_of(x, wants_end_in_value(x));
    bool no_string =
        x->outcome.fault == FAULT_WRONG_TYPE || x->refused == FAULT_WRONG_TYPE;

    exchange_remember_refusal(x);
    exchange_cancel(x);
    x->step = 0;
    x->write_tries = 0;
    x->tried |= (unsigned char)(1U << x->strategy_index);
    if (x->phase != EXCHANGE_PHASE_STUCK && !(no_string && x->tried & 1U) &&
        (next_strategy(x, range.first, range.with_end) ||
            next_strategy(x, range.first, range.end))) {
        x->outcome = (struct outcome){.left_ms = LEFT_UNKNOWN};
        return true;
    }
    x->outcome.fault = x->refused;
    x->outcome.text = x->first_len > 0 ? (struct slice){x->first, x->first_len}
                                       : slice_of(words_lost);
    /* Check before the next acquire, so that it does not get a lock that can
     * be neither extended nor released. */
    if (strategies_are_vital(x->verb->kind) && !x->dialect->ttl_in_values &&
        !x->shared)
        x->dialect->scripts_unverified = true;
    return false;
}

/* --------------------------------------------- keys without a TTL */

/* ACQUIRE: a key without a TTL is busy forever, unless its value contains the
 * time at which the lock ends. Only a waiting acquire has asked for the TTL. */
static bool acquire_checks_value(struct exchange *x)
{
    uint64_t now = x->dialect->now;

    if (x->outcome.kind != OUTCOME_BUSY || x->outcome.left_ms != LEFT_FOREVER ||
        x->phase != EXCHANGE_PHASE_VERB || x->strategy->ttl_is_in_value ||
        x->shared || !strategies_may_replace(x->verb->kind) ||
        now < x->check_at)
        return false;
    x->check_at = deadline_after(now, CHECK_AGAIN);
    x->phase = EXCHANGE_PHASE_CHECK_VALUE;
    x->step = STEP_READ_ONLY;
    x->outcome = (struct outcome){.left_ms = LEFT_UNKNOWN};
    return true;
}

/* INSPECT: strategy_seen() found a value that contains its end. Start again
 * with the strategies for such values. */
static void restart_inspect(struct exchange *x)
{
    x->dialect->preferred[x->verb->kind] = x->strategy_index;
    x->tried = 0;
    x->step = 0;
    choose_strategy(x);
}

/* RELEASE: the key does not hold the token; but where scripts are refused by
 * now, it could not be taken out of its line. */
static bool may_be_in_line(const struct exchange *x)
{
    return verb_traits[x->verb->kind].hands_over && x->verb->client.len > 0 &&
           x->outcome.kind == OUTCOME_NOT_MINE && !x->strategy->is_script;
}

enum exchange_next exchange_reply(struct exchange *x, const struct reply *reply)
{
    enum exchange_phase phase = x->phase;

    x->due--;
    enum exchange_next next = x->strategy->reply(x, reply);
    if (next != EXCHANGE_DONE) {
        if (phase == EXCHANGE_PHASE_VERB &&
            x->phase == EXCHANGE_PHASE_CHECK_VALUE)
            restart_inspect(x);
        save_text(x);
        return next;
    }
    if (acquire_checks_value(x))
        return EXCHANGE_AGAIN;
    const struct outcome *o = &x->outcome;
    bool refused = o->kind == OUTCOME_FAULT && !o->unsure &&
                   (x->strategy->fallback & 1U << o->fault) != 0;
    if (refused && fall_back(x))
        return EXCHANGE_AGAIN;
    if (!refused && !x->shared)
        *remembered_strategy(x, wants_end_in_value(x)) = x->strategy_index;
    if (o->kind != OUTCOME_FAULT)
        x->dialect->worked |= 1U << x->verb->kind;
    x->outcome.unsure |= may_be_in_line(x);
    exchange_cancel(x);
    return EXCHANGE_DONE;
}
