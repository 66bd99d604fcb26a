/* SPDX-License-Identifier: MIT */
/*
 * Keeps: every ask of a machine is carried out before its verdict is read; an
 * operation ends exactly once.
 */
#include "api/operation.h"

#include "api/ask.h"
#include "api/engine.h"
#include "api/fencing.h"
#include "api/hold.h"
#include "api/inspect.h"
#include "api/lease.h"
#include "api/linger.h"
#include "api/machine.h"
#include "api/message.h"
#include "api/trace.h"
#include "api/voters.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/guard.h"
#include "core/lease.h"
#include "wire/timestamp.h"

#define BUDGET_LEAST (50 * NS_PER_MS)
#define BUDGET_MOST (500 * NS_PER_MS)
#define AGAIN_FIRST (5 * NS_PER_MS)
#define AGAIN_MOST (100 * NS_PER_MS)

/* ------------------------------------------------------------- completing */

static void complete(struct operation *op, int result, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    op->result = result;
    lease_settle(op, now);
    if (op->kind == NXL_OP_INSPECT && result == NXL_OK)
        inspect_choose(lock);
    if (op->result != NXL_OK || lock->notes)
        message_result(lock, machine_fault(op));
    if (!lock->serves)
        trace_end(op, now);
    engine_completed(lock->client, op, now);
}

/* ------------------------------------------------------------------ asking */

static bool fresh_token(struct nxl_lock *lock)
{
    unsigned char random[16];
    if (!entropy_take(lock->client->entropy, random, sizeof random))
        return false;
    if (lock->token_foreign) {
        lock->token_len = token_layout(lock->token, lock->label);
        lock->token_foreign = false;
    }
    token_stamp(lock->token, random);
    lock->verb.token = lock_token(lock);
    lock->reached = 0; /* what the last one may have left is owed by now */
    memset(lock->operation.drawn, 0, sizeof lock->operation.drawn);
    return true;
}

/* What came of a server's part, from itself or from us. */
static void answered(struct operation *op, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    bool fault = outcome->kind == OUTCOME_FAULT;
    if (outcome->kind == OUTCOME_GRANTED)
        op->drawn[server] = outcome->fence;
    if (is_acquire(op) && !op->fencing &&
        (outcome->kind == OUTCOME_BUSY || (fault && !outcome->unsure)))
        lock->reached &= ~(1U << server);
    if (!op->fencing || fault ||
        (lock->notes && lock->notes[server].kind == NOTE_ASKED))
        message_note(lock, server, outcome);
    if (outcome->kind == OUTCOME_SEEN)
        inspect_note(lock, server, outcome);
    machine_outcome(op, server, outcome, now);
}

/* The outcome that is known without asking. */
static bool known(struct operation *op, unsigned server, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    unsigned bit = 1U << server;
    struct outcome outcome = {
        .kind = OUTCOME_NOT_MINE, .left_ms = LEFT_UNKNOWN};
    struct text words;
    if (is_acquire(op) && !op->fencing) {
        if (voters_ask(lock->client, server, now, &outcome, &words)) {
            lock->reached |= bit;
            return false;
        }
    } else if ((op->kind != NXL_OP_EXTEND && op->kind != NXL_OP_RELEASE &&
                   !op->fencing) ||
               (lock->reached & bit)) {
        if (lock->verb.kind != VERB_KEEP ||
            !lock->requests[server].exchange.stamped)
            return false;
        outcome.kind = OUTCOME_MINE; /* the time in it cannot be changed */
    }
    answered(op, server, &outcome, now);
    return true;
}

static void send_verb(struct operation *op, unsigned server, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    struct request *r = &lock->requests[server];
    text_clear(&lock->message); /* an earlier attempt's is out of date */
    if (known(op, server, now))
        return;
    if (is_acquire(op) && !op->fencing) {
        lock->verb.want_left = acquire_wants_left(&op->machine.acquire);
        if (!request_prepare(r, lock->verb.key)) {
            struct outcome none = {.kind = OUTCOME_FAULT,
                .fault = FAULT_SYSTEM, .text = slice_of("no memory")};
            answered(op, server, &none, now);
            return;
        }
    }
    if (lock->notes)
        lock->notes[server].kind = NOTE_ASKED;
    server_submit(&lock->client->servers[server], r, &lock->verb,
        op->kind == NXL_OP_BREAK ? NULL : &lock->kept, now);
}

/* Carries out what the machine asks for until it asks no more; then waits
 * for its timer, or completes. */
static void run(struct operation *op, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    struct ask ask;
    int failed = NXL_OK;
    while (machine_next(op, &ask)) {
        struct server *server = &lock->client->servers[ask.server];
        struct request *r = &lock->requests[ask.server];
        switch (ask.kind) {
        case ASK_TOKEN:
            if (!fresh_token(lock)) {
                failed = NXL_E_SYSTEM;
                machine_cancel(op);
            }
            break;
        case ASK_SEND:
            if (is_acquire(op) && !op->fencing &&
                op->attempts < op->machine.acquire.rounds)
                trace_attempt(lock, now);
            send_verb(op, ask.server, now);
            break;
        case ASK_UNDO:
            if (server_abandon(server, r, op->kind != NXL_OP_BREAK, now))
                machine_withdrawn(op, ask.server);
            break;
        case ASK_LEAVE:
            if (op->fencing) /* its acquire may stand there all the same */
                (void)server_abandon(server, r, false, now);
            else if (linger_on(op, ask.server))
                op->late |= 1U << ask.server;
            else
                linger_leave(op, ask.server, now);
            break;
        }
    }
    enum verdict verdict = machine_verdict(op);
    if (op->fencing && verdict != VERDICT_OPEN &&
        fencing_undo(op, verdict, now))
        verdict = machine_verdict(op);
    if (verdict == VERDICT_OPEN)
        timer_set(&lock->client->timers, &op->timer, machine_wake(op));
    else if (op->late)
        timer_set(&lock->client->timers, &op->timer, linger_until(op, now));
    else if (verdict == VERDICT_YES && fencing_begin(op, now))
        run(op, now);
    else
        complete(op, failed ? failed : result_of(op, verdict), now);
}

void operation_outcome(
    struct operation *op, const struct completion *c, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    unsigned server = c->request->index;
    struct outcome other;
    struct text words;
    if (!op->running)
        return;
    if (op->kind == OP_ASK) {
        ask_outcome(op, c, now);
        return;
    }
    enum nxl_operation kind = op->fencing ? NXL_OP_EXTEND : op->kind;
    const struct outcome *outcome = voters_weigh(
        lock->client, server, kind, &c->outcome, now, &other, &words);
    bool was_late = op->late & (1U << server);
    op->late &= ~(1U << server);
    answered(op, server, outcome, now);
    if (!was_late || !op->late)
        run(op, now);
}

void operation_tick(struct operation *op, uint64_t now)
{
    if (op->kind == OP_ASK) {
        ask_late(op, now);
        return;
    }
    linger_end(op, now);
    machine_tick(op, now);
    run(op, now);
}

void operation_cancel(struct operation *op, uint64_t now)
{
    if (op->kind == OP_ASK) {
        ask_cancel(op, now);
        return;
    }
    linger_end(op, now);
    machine_cancel(op);
    run(op, now);
}

void operation_discard(struct operation *op, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    if (!op->running)
        return;
    if (op->kind != NXL_OP_RELEASE) {
        operation_cancel(op, now);
        return;
    }
    for (unsigned i = 0; i < lock->client->server_count; i++)
        if (lock->reached & (1U << i))
            server_abandon(&lock->client->servers[i], &lock->requests[i],
                lock->verb.kind == VERB_RELEASE, now);
    complete(op, NXL_UNKNOWN, now);
}

/* ---------------------------------------------------------------- starting */

static uint64_t seed_of(const struct nxl_lock *lock, uint64_t now)
{
    /* Jitter needs no secret, only to differ between contenders. */
    return now ^ (uint64_t)(uintptr_t)lock ^
           (uint64_t)(uintptr_t)lock->client->entropy << 16 ^
           lock->client->salt;
}

static void begin(
    struct nxl_lock *lock, enum nxl_operation kind, uint64_t now)
{
    struct operation *op = &lock->operation;
    op->kind = kind;
    op->running = true;
    op->started_at = now;
    op->attempts = 0;
    op->late = 0;
    op->fencing = false;
    text_clear(&lock->message);
    for (unsigned i = 0; lock->notes && i < lock->client->server_count; i++)
        lock->notes[i].kind = NOTE_NONE;
}

/* How long one server may take in one round. */
static uint64_t budget_of(const struct nxl_lock *lock)
{
    const struct nxl_client *client = lock->client;
    uint64_t usable = ms_to_ns(lock->ttl_ms) -
                      lease_drift_ns(lock->ttl_ms, client->drift_ppm);
    if (client->server_count == 1)
        return earlier(client->timeout_ns, usable);
    uint64_t share = ms_to_ns(lock->ttl_ms) / 20;
    share = earlier(later(share, BUDGET_LEAST), BUDGET_MOST);
    unsigned up = 0;
    for (unsigned i = 0; i < client->server_count; i++)
        up += client->servers[i].state == SERVER_UP;
    if (up < quorum_of(client->server_count)) /* connecting takes its time */
        share = client->timeout_ns;
    return earlier(earlier(share, usable / 2), client->timeout_ns);
}

void operation_acquire(struct nxl_lock *lock, uint64_t wait_ns, uint64_t now)
{
    struct acquire *a = &lock->operation.machine.acquire;
    uint64_t wait = wait_ns == NEVER ? NEVER
                                     : later(wait_ns, lock->client->timeout_ns);
    uint32_t ttl_ms = lock->ttl_ms > lock->min_hold_ms ? lock->ttl_ms
                                                       : lock->min_hold_ms;
    struct acquire_terms terms = {
        .servers = lock->client->server_count,
        .ttl_ms = ttl_ms,
        .drift_ppm = lock->client->drift_ppm,
        .budget_ns = budget_of(lock),
        .wait_until = deadline_after(now, wait_ns),
        .end = deadline_after(now, wait),
    };
    begin(lock, NXL_OP_ACQUIRE, now);
    lock->verb.kind = VERB_ACQUIRE;
    lock->verb.ttl_ms = ttl_ms;
    backoff_init(&a->backoff, lock->retry_first_ns, lock->retry_most_ns,
        seed_of(lock, now));
    acquire_start(a, &terms, now);
    run(&lock->operation, now);
}

static void start_round(struct nxl_lock *lock, enum round_kind kind,
    enum verb_kind verb, uint64_t end, uint64_t now)
{
    struct round *r = &lock->operation.machine.round;
    struct round_terms terms = {
        .kind = kind,
        .servers = lock->client->server_count,
        .ttl_ms = lock->verb.ttl_ms,
        .drift_ppm = lock->client->drift_ppm,
        .end = end,
    };
    lock->verb.kind = verb;
    lock->verb.want_left = false;
    backoff_init(&r->backoff, AGAIN_FIRST, AGAIN_MOST, seed_of(lock, now));
    round_start(r, &terms, now);
    run(&lock->operation, now);
}

void operation_extend(
    struct nxl_lock *lock, uint32_t ttl_ms, uint64_t end, uint64_t now)
{
    begin(lock, NXL_OP_EXTEND, now);
    lock->verb.ttl_ms = ttl_ms;
    lock->verb.token = lock_token(lock);
    if (guarded(GUARD_LAPSED))
        end = earlier(end, atomic_load(&lock->deadline));
    start_round(lock, ROUND_EXTEND, VERB_EXTEND, end, now);
}

/* Done before the minimum is over: the key stays for the rest of it. Nothing
 * is undone then, whatever comes of it. */
static void keep_rest(struct nxl_lock *lock, uint32_t rest_ms, uint64_t now)
{
    lock->verb.ttl_ms = rest_ms;
    start_round(lock, ROUND_EXTEND, VERB_KEEP,
        deadline_after(now, lock->client->timeout_ns), now);
}

void operation_release(struct nxl_lock *lock, uint64_t now)
{
    uint32_t rest_ms = lease_rest_ms(lock, now);
    if (guarded(GUARD_RELEASED))
        hold_end(lock, now);
    begin(lock, NXL_OP_RELEASE, now);
    lock->operation.lapsed = now >= atomic_load(&lock->deadline);
    lease_end(lock, now);
    lock->verb.token = lock_token(lock);
    if (rest_ms) {
        keep_rest(lock, rest_ms, now);
        return;
    }
    /* Without memory for a debt the release is still tried. */
    for (unsigned i = 0; i < lock->client->server_count; i++)
        if (lock->reached & (1U << i))
            (void)request_prepare(&lock->requests[i], lock->verb.key);
    lock->verb.ttl_ms = lock->client->max_ttl_ms;
    start_round(lock, ROUND_RELEASE, VERB_RELEASE,
        deadline_after(now, lock->client->timeout_ns), now);
}

void operation_round(
    struct nxl_lock *lock, enum nxl_operation kind, uint64_t now)
{
    uint64_t end = deadline_after(now, lock->client->timeout_ns);
    begin(lock, kind, now);
    lock->verb.ttl_ms = lock->client->max_ttl_ms;
    if (kind == NXL_OP_BREAK) {
        lock->verb.token = (struct slice){lock->target, lock->target_len};
        start_round(lock, ROUND_RELEASE, VERB_RELEASE, end, now);
    } else if (kind == NXL_OP_ADOPT) {
        lock->verb.token = lock_token(lock);
        start_round(lock, ROUND_ADOPT, VERB_INSPECT, end, now);
    } else {
        lock->seen.size = 0;
        lock->verb.token = (struct slice){NULL, 0};
        start_round(lock, ROUND_INSPECT, VERB_INSPECT, end, now);
    }
}
