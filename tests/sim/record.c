/* SPDX-License-Identifier: MIT */
/* The scripts of a record, as a model server carries them out. */
#include "sim/record.h"

#include "sim/network.h"
#include "sim/server.h"
#include "sim/world.h"

bool record_is_open(const struct work_record *r)
{
    return r->state == ONCE_BEGUN || r->state == ONCE_DOUBT;
}

struct work_record *record_of(
    struct world *w, struct model_server *s, unsigned name)
{
    struct work_record *r = &s->data.record[name];
    if (r->until_ms != 0 && server_clock_ms(w, s) >= r->until_ms) {
        if (!record_is_open(r))
            ledger_over(w, name);
        *r = (struct work_record){0};
    }
    return r;
}

static bool holds(
    struct world *w, struct model_server *s, unsigned name, uint64_t token)
{
    return server_key(w, s, name)->token == token;
}

/* Releases the lock, which holds the token of m. */
static void give_back(
    struct world *w, struct model_server *s, const struct message *m)
{
    struct key *key = server_key(w, s, m->name);
    checker_deleted(w, s, m, key->token);
    key->token = 0;
    if (!m->plain)
        queue_hand_over(w, s, m, &(struct state){.is = KEY_FREE});
}

/* -------------------------------------------------------------------- begin
 */

/* Why the work cannot begin. */
static enum once_found obstacle(struct world *w, struct model_server *s,
    const struct work_record *r, const struct message *m)
{
    const struct once_part *once = &m->once;
    bool looks = m->kind == MESSAGE_LOOK_ONCE;
    uint64_t key = server_key(w, s, m->name)->token;
    bool taken = key != 0 && (looks || key != m->token);
    if (r->state != ONCE_NONE && r->state != ONCE_FAILED &&
        r->fingerprint != once->fingerprint &&
        guarded_here(SIM_GUARD_FINGERPRINT))
        return FOUND_MISMATCH;
    if (r->state == ONCE_DONE)
        return FOUND_DONE;
    if ((taken && guarded_here(SIM_GUARD_BEGIN_FREE)) ||
        (r->state != ONCE_NONE && r->token == m->token && !looks &&
            guarded_here(SIM_GUARD_BEGIN_ONCE)))
        return FOUND_BUSY;
    if (record_is_open(r) && (looks || !once->retries) &&
        guarded_here(SIM_GUARD_HALT))
        return FOUND_DOUBT;
    return FOUND_NOTHING;
}

static void write_begun(struct world *w, struct model_server *s,
    struct work_record *r, struct message *m)
{
    int64_t now = server_clock_ms(w, s);
    struct key *key = server_key(w, s, m->name);
    struct work_record old = *r;
    bool counts = record_is_open(r) && guarded_here(SIM_GUARD_DOUBTS);
    *r = (struct work_record){.state = ONCE_BEGUN,
        .token = m->token,
        .fingerprint = m->once.fingerprint,
        .keep_ms = m->once.keep_ms,
        .fence = server_next_fence(w, s, m->name, old.fence + 1),
        .attempt = old.attempt + 1,
        .doubts = old.doubts + counts,
        .late = old.late,
        .first_ms = old.state == ONCE_NONE ? now : old.first_ms,
        .since_ms = now};
    if (!guarded_here(SIM_GUARD_NO_END))
        r->until_ms = now + r->keep_ms;
    m->once.before = record_is_open(&old) ? old : (struct work_record){0};
    key->token = m->token;
    key->until_ms = now + m->ttl_ms;
    m->number = r->fence;
    m->outcome.kind = OUTCOME_GRANTED;
    checker_set(w, s, m);
    checker_outside(w, m->name);
    ledger_began(w, m, r);
}

void record_begin(struct world *w, struct model_server *s, struct message *m)
{
    struct work_record *r = record_of(w, s, m->name);
    struct key *key = server_key(w, s, m->name);
    bool held = key->token == m->token;
    enum once_found found = obstacle(w, s, r, m);
    if (found == FOUND_NOTHING) {
        write_begun(w, s, r, m);
    } else if (found == FOUND_BUSY) {
        m->outcome.kind = OUTCOME_BUSY;
        if (key->token)
            m->outcome.left_ms = key->until_ms - server_clock_ms(w, s);
    } else {
        m->outcome.kind = OUTCOME_RECORDED;
        m->outcome.found = found;
        if (held)
            give_back(w, s, m);
    }
    if (found != FOUND_NOTHING)
        ledger_found(w, m, found, r);
    m->once.record = *r;
}

void record_look(struct world *w, struct model_server *s, struct message *m)
{
    struct work_record *r = record_of(w, s, m->name);
    enum once_found found = obstacle(w, s, r, m);
    m->outcome.kind = found == FOUND_NOTHING ? OUTCOME_FREE : OUTCOME_RECORDED;
    m->outcome.found = found;
    ledger_found(w, m, found, r);
    m->once.record = *r;
}

/* --------------------------------------------------------------------- tell
 */

/* What a verdict makes of the record. */
enum told {
    TOLD_LOST, /* it cannot be told */
    TOLD_SAME, /* no change */
    TOLD_DONE,
    TOLD_FAILED,
    TOLD_DOUBT,
    TOLD_CLEAR
};

static enum told told_failed(const struct work_record *r)
{
    bool doubts = (r->doubts > 0 && guarded_here(SIM_GUARD_FAILED_DOUBTS)) ||
                  (r->late > 0 && guarded_here(SIM_GUARD_LATE));
    return doubts ? TOLD_DOUBT : TOLD_FAILED;
}

static enum told told_own(
    const struct work_record *r, enum once_state verdict, bool held)
{
    bool late = r->late > 0 && guarded_here(SIM_GUARD_LATE);
    if (verdict == ONCE_CLEAR)
        return r->state == ONCE_BEGUN && held && !late ? TOLD_CLEAR : TOLD_LOST;
    if (r->state == ONCE_DONE && guarded_here(SIM_GUARD_DONE_STAYS))
        return TOLD_SAME;
    if (verdict == ONCE_DONE)
        return TOLD_DONE;
    if (r->state == ONCE_FAILED)
        return TOLD_SAME;
    return verdict == ONCE_FAILED ? told_failed(r) : TOLD_DOUBT;
}

/* The record is another attempt's, or there is none. */
static enum told told_other(
    const struct work_record *r, enum once_state verdict)
{
    if (r->state != ONCE_NONE && r->state != ONCE_FAILED)
        return TOLD_LOST;
    switch (verdict) {
    case ONCE_DONE:
        return r->state == ONCE_NONE || guarded_here(SIM_GUARD_DONE_LATE)
                   ? TOLD_DONE
                   : TOLD_LOST;
    case ONCE_DOUBT:
        return guarded_here(SIM_GUARD_UNSURE_LATE) ? TOLD_DOUBT : TOLD_SAME;
    case ONCE_FAILED:
        return r->state == ONCE_NONE ? TOLD_SAME : TOLD_LOST;
    case ONCE_CLEAR:
    case ONCE_NONE:
    case ONCE_BEGUN: /* never told */
        break;
    }
    return TOLD_LOST;
}

static void write_told(struct world *w, struct model_server *s,
    struct work_record *r, const struct message *m, enum told told)
{
    static const enum once_state states[] = {[TOLD_DONE] = ONCE_DONE,
        [TOLD_FAILED] = ONCE_FAILED,
        [TOLD_DOUBT] = ONCE_DOUBT,
        [TOLD_CLEAR] = ONCE_BEGUN};
    int64_t now = server_clock_ms(w, s);
    if (r->state == ONCE_NONE)
        *r = (struct work_record){.attempt = 1,
            .first_ms = now,
            .since_ms = now,
            .keep_ms = m->once.keep_ms};
    if (r->token != m->token) {
        r->token = m->token;
        r->fingerprint = m->once.fingerprint;
    }
    r->state = states[told];
    if (told == TOLD_CLEAR) {
        r->doubts = 0;
        return;
    }
    bool ends = told == TOLD_DONE || told == TOLD_FAILED;
    r->ended_ms = now;
    r->until_ms = ends ? now + r->keep_ms : 0;
    r->result = told == TOLD_DONE ? m->once.result : 0;
}

static void put_back(
    struct world *w, struct work_record *r, const struct message *m)
{
    *r = m->once.before;
    ledger_put_back(w, r->token);
}

static void release_told(
    struct world *w, struct model_server *s, const struct message *m)
{
    struct key *key = server_key(w, s, m->name);
    if (m->once.keeps_key) {
        checker_left(w, m->token);
    } else if (m->ttl_ms > 0) {
        key->until_ms = server_clock_ms(w, s) + m->ttl_ms;
        checker_capped(w, s, m);
        checker_left(w, m->token);
    } else {
        give_back(w, s, m);
    }
}

bool record_is_same(
    const struct work_record *one, const struct work_record *other)
{
    return one->state == other->state && one->token == other->token &&
           one->attempt == other->attempt && one->doubts == other->doubts &&
           one->late == other->late && one->since_ms == other->since_ms &&
           one->ended_ms == other->ended_ms;
}

/* Is the record, before this failure, as it was before the attempt began?
 * Then the failure has been told already. */
static bool is_back(const struct work_record *r, const struct once_part *once)
{
    return once->before.state != ONCE_NONE && record_is_same(r, &once->before);
}

/* A failed attempt has changed nothing about the doubt. */
static bool goes_back(const struct work_record *r, const struct once_part *once)
{
    return record_is_open(&once->before) && once->before.late == r->late;
}

void record_tell(struct world *w, struct model_server *s, struct message *m)
{
    struct work_record *r = record_of(w, s, m->name);
    enum once_state verdict = m->once.verdict;
    bool held = holds(w, s, m->name, m->token);
    bool own = r->state != ONCE_NONE &&
               (r->token == m->token || !guarded_here(SIM_GUARD_TELL_OWN));
    enum told told = own ? told_own(r, verdict, held) : told_other(r, verdict);
    bool fails = verdict == ONCE_FAILED;
    if (fails && is_back(r, &m->once))
        told = TOLD_SAME;
    m->outcome.kind = told == TOLD_LOST ? OUTCOME_NOT_MINE : OUTCOME_MINE;
    if (told == TOLD_LOST)
        r->late += verdict == ONCE_DONE;
    else if (fails && told == TOLD_DOUBT && goes_back(r, &m->once))
        put_back(w, r, m);
    else if (told != TOLD_SAME)
        write_told(w, s, r, m, told);
    ledger_told(w, m, told != TOLD_LOST, r);
    if (held && verdict != ONCE_CLEAR)
        release_told(w, s, m);
    m->once.record = *r;
}

/* ---------------------------------------------------------- forget, unbegin
 */

void record_forget(struct world *w, struct model_server *s, struct message *m)
{
    struct work_record *r = record_of(w, s, m->name);
    bool same = r->state != ONCE_NONE && record_is_same(r, &m->once.record);
    bool busy = r->state != ONCE_NONE && holds(w, s, m->name, r->token);
    m->outcome.kind = OUTCOME_NOT_MINE;
    if (!same && (r->state == ONCE_NONE || guarded_here(SIM_GUARD_FORGET)))
        return;
    m->outcome.found = FOUND_BUSY;
    if (busy && guarded_here(SIM_GUARD_FORGET))
        return;
    m->outcome.found = FOUND_NOTHING;
    m->outcome.kind = OUTCOME_MINE;
    if (same && !busy)
        ledger_over(w, m->name);
    *r = (struct work_record){0};
}

void record_unbegin(struct world *w, struct model_server *s, struct message *m)
{
    struct work_record *r = record_of(w, s, m->name);
    bool held = holds(w, s, m->name, m->token);
    bool own = r->state != ONCE_NONE && r->token == m->token;
    bool open = r->state == ONCE_BEGUN;
    m->outcome.kind = own || (held && !guarded_here(SIM_GUARD_UNBEGIN_PROOF))
                          ? OUTCOME_MINE
                          : OUTCOME_NOT_MINE;
    if (open && (own || !guarded_here(SIM_GUARD_UNBEGIN_OWN))) {
        enum told told = told_failed(r);
        r->state = told == TOLD_DOUBT ? ONCE_DOUBT : ONCE_FAILED;
        r->ended_ms = server_clock_ms(w, s);
        r->until_ms = told == TOLD_DOUBT ? 0 : r->ended_ms + r->keep_ms;
    }
    if (own || s->former)
        ledger_unbegun(w, m);
    if (held)
        give_back(w, s, m);
}
