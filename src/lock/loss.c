/* SPDX-License-Identifier: MIT */
/* Counts and traces renewals, and reports a loss. */
#include "lock/loss.h"

#include <unistd.h>

#include "base/deadline.h"
#include "lock/errmsg.h"
#include "lock/stats.h"
#include "lock/trace.h"

/* The descriptor is readable exactly while losses wait to be taken. */
static void update_descriptor(struct nxl_client *client)
{
    uint64_t times;
    if (client->loss_fd >= 0 && list_empty(&client->losses))
        (void)!read(client->loss_fd, &times, sizeof(times));
}

/* Removes the event of a loss that need not be reported. */
static void unreport(struct renewing *renewing)
{
    if (list_empty(&renewing->lost))
        return;
    list_remove(&renewing->lost);
    update_descriptor(renewing->lock->client);
}

void loss_forget(struct nxl_lock *lock)
{
    struct renewing *renewing = lock->renewing;
    if (!renewing)
        return;
    unreport(renewing);
    renewing->loss = NXL_LOSS_NONE;
    renewing->inspected->chosen = NULL;
}

const char *loss_words(const struct nxl_lock *lock)
{
    const struct renewing *renewing = lock->renewing;
    return !renewing || lock->life.renewal->state != RENEWAL_OFF ||
                   renewing->loss == NXL_LOSS_NONE
               ? ""
               : operation_words(&renewing->operation);
}

void loss_announce(struct nxl_lock *lock, uint64_t now)
{
    struct nxl_client *client = lock->client;
    list_append(&client->losses, &lock->renewing->lost);
    stats_lost(client, lock->renewing->loss);
    trace_loss(lock, lock->renewing->loss,
        operation_words(&lock->renewing->operation), now);
    if (client->loss_fd >= 0) {
        uint64_t one = 1;
        (void)!write(client->loss_fd, &one, sizeof(one));
    }
}

/* -------------------------------------------------------------- why it is lost
 */

static void explain_unheard(struct renewing *renewing, struct text *why)
{
    const struct renewal *r = &renewing->renewal;
    const char *words = operation_words(&renewing->operation);
    renewing->loss = NXL_LOSS_UNREACHABLE;
    text_add(why, "the lease could not be renewed for ");
    text_add_duration(why, r->unheard_ns / NS_PER_MS, false);
    text_add(why, ": ");
    text_add(why, *words ? words : "no answer");
}

static void explain_refuted(struct renewing *renewing, struct text *why)
{
    const struct renewal *r = &renewing->renewal;
    struct nxl_client *client = renewing->lock->client;
    renewing->loss = NXL_LOSS_REMOVED;
    if (r->inspect_verdict == VERDICT_YES)
        inspection_choose(renewing->inspected, renewing->operation.notes,
            client->server_count);
    const nxl_holder *found = renewing->inspected->chosen;
    /* Other holders beside a shared one have not taken its place. */
    bool beside =
        found && token_has_share(lock_token(renewing->lock)) &&
        token_share((struct slice){found->value, found->value_length}).weight >
            0;
    /* Our own value may still be at a minority. */
    if (found && !beside && !nxl_holder_is(found, renewing->lock->token)) {
        const char *label =
            token_label((struct slice){found->value, found->value_length});
        renewing->loss = NXL_LOSS_TAKEN;
        text_add(why, "the server has another value, written by ");
        if (label)
            redact_add(
                why, slice_of(label), FOREIGN_MAX, &client->nodes.secrets);
        else
            text_add(why, "another client");
    } else if (r->inspect_verdict == VERDICT_NO || beside) {
        text_add(why, "the key was removed at the server: by nxlock "
                      "unlock, a flush or an eviction, or because the "
                      "server lost its data");
    } else {
        text_add(why, "the server no longer has the token");
    }
}

static void explain_loss(struct renewing *renewing)
{
    struct text why;
    text_clear(&why);
    switch (renewing->renewal.loss) {
    case LOSS_NO_ANSWER:
        explain_unheard(renewing, &why);
        break;
    case LOSS_MAX_HOLD:
        renewing->loss = NXL_LOSS_EXPIRED;
        text_add(&why, "max_hold_ms has passed");
        break;
    case LOSS_STOPPED:
        renewing->loss = NXL_LOSS_EXPIRED;
        text_add(&why,
            "the lease expired before it was renewed: this program was "
            "suspended, or its event loop did not run");
        break;
    case LOSS_TOKEN_GONE:
        explain_refuted(renewing, &why);
        break;
    }
    operation_set_errmsg(&renewing->operation, &why);
}

/* ------------------------------------------------------------------- events */

static void count_renewal(struct nxl_lock *lock, uint64_t now)
{
    stats_renewed(lock->client, lock->life.left_ms);
    trace_renewal(lock, NXL_OK, "", now);
}

static int result_of_round(const struct round *round)
{
    switch (round_verdict(round)) {
    case VERDICT_UNKNOWN:
        return NXL_UNKNOWN;
    case VERDICT_FAULT:
        return (int)result_of_fault(round->fault);
    case VERDICT_CANCELLED:
        return NXL_CANCELLED;
    case VERDICT_OPEN:
    case VERDICT_YES:
    case VERDICT_NO:
    case VERDICT_RECORDED:
    case VERDICT_EXPIRED:
        break;
    }
    return NXL_LOST;
}

static void report_failure(struct nxl_lock *lock, uint64_t now)
{
    struct operation *op = &lock->renewing->operation;
    const struct round *round = &lock->renewing->renewal.round;
    struct report report = {
        .operation = op,
        .kind = NXL_OP_EXTEND,
        .result = result_of_round(round),
        .fault = round->fault,
        .waited = true,
    };
    struct text words;
    errmsg_compose(&report, operation_errmsg(op));
    lock->client->stats.renewal_failures++;
    text_clear(&words);
    if (lock_is_member(lock)) /* the tracer is given the handle of all names */
        name_begin_text(&lock->name, lock->client->prefix, &words);
    text_add(&words, operation_words(op));
    trace_renewal(lock, report.result, words.data, now);
}

void loss_event(struct nxl_lock *lock, enum life_event event, uint64_t now)
{
    switch (event) {
    case LIFE_RENEWED:
        count_renewal(lock, now);
        break;
    case LIFE_RENEWAL_FAILED:
        report_failure(lock, now);
        break;
    case LIFE_LEASE_LOST:
        explain_loss(lock->renewing);
        if (lock_is_member(lock))
            lock->group->type->member_lost(lock, now);
        else
            loss_announce(lock, now);
        break;
    case LIFE_NOTHING:
    case LIFE_CALL_OVER:
        break;
    }
}

static void update_counts(struct nxl_lock *lock, uint64_t now)
{
    const struct renewal *r = &lock->renewing->renewal;
    struct nxl_client *client = lock->client;
    struct renewing *renewing = lock->renewing;
    bool on = r->state != RENEWAL_OFF, busy = renewal_busy(r);
    client->renewed_locks += (size_t)on - (size_t)renewing->on;
    client->running_renewals += (size_t)busy - (size_t)renewing->busy;
    if (renewing->on && !on && !client->renewed_locks)
        alarm_unneeded(&client->alarm, now);
    renewing->on = on;
    renewing->busy = busy;
}

void loss_ended(struct nxl_lock *lock)
{
    if (lock->life.lease.stored == LEASE_NONE)
        unreport(lock->renewing);
}

void loss_update(struct nxl_lock *lock, uint64_t now)
{
    struct nxl_client *client = lock->client;
    struct renewing *renewing = lock->renewing;
    uint64_t wake = renewal_wake(lock->life.renewal);
    update_counts(lock, now);
    timer_set(&client->renewals, &renewing->operation.timer, wake);
    alarm_by(&client->alarm, wake);
}

/* ------------------------------------------------------------------ telling */

struct nxl_lock *loss_take(struct nxl_client *client)
{
    struct list *node = list_pop(&client->losses);
    update_descriptor(client);
    return node ? list_entry(node, struct renewing, lost)->lock : NULL;
}
