/* SPDX-License-Identifier: MIT */
/* What errmsg says about an operation that is over. */
#include "lock/errmsg.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/deadline.h"
#include "client/unanswered.h"
#include "lock/remedy.h"

enum nxl_result result_of_fault(enum fault fault)
{
    switch (fault) {
    case FAULT_NONE:
    case FAULT_TLS:
    case FAULT_UNREACHABLE:
    case FAULT_TIMEOUT:
    case FAULT_CREDENTIALS:
    case FAULT_CLASSES:
        return NXL_E_UNREACHABLE;
    case FAULT_RETRY:
    case FAULT_NOT_PRIMARY:
    case FAULT_FULL:
    case FAULT_REFUSING:
    case FAULT_RESTARTED:
    case FAULT_PROMOTED:
    case FAULT_DEMOTED:
    case FAULT_COPIES:
    case FAULT_UNCONFIRMED:
    case FAULT_NAMED_LATE:
    case FAULT_ACTIVE_REPLICA:
    case FAULT_CLUSTER:
    case FAULT_CLUSTER_DOWN:
    case FAULT_SLOTS:
        return NXL_E_REFUSED;
    case FAULT_NOT_DURABLE:
    case FAULT_DUPLICATE:
    case FAULT_IS_SENTINEL:
    case FAULT_WRONG_SENTINELS:
        return NXL_E_URL;
    case FAULT_CERTIFICATE:
    case FAULT_DENIED:
    case FAULT_NO_PERMISSION:
    case FAULT_SCRIPT_DENIED:
    case FAULT_NO_INFO:
    case FAULT_SENTINEL_DENIED:
    case FAULT_SENTINEL_RIGHTS:
        return NXL_E_DENIED;
    case FAULT_WRONG_TYPE:
        return NXL_E_WRONG_TYPE;
    case FAULT_UNSUPPORTED:
        return NXL_E_UNSUPPORTED;
    case FAULT_NOT_REDIS:
        return NXL_E_NOT_REDIS;
    case FAULT_SERVER:
    case FAULT_NO_DATABASE:
        return NXL_E_SERVER;
    case FAULT_SYSTEM:
        return NXL_E_SYSTEM;
    }
    return NXL_E_SERVER;
}

int result_of_life(const struct life *life)
{
    switch (life->result) {
    case LIFE_OK:
        return NXL_OK;
    case LIFE_BUSY:
        return NXL_BUSY;
    case LIFE_FREE:
        return NXL_FREE;
    case LIFE_LOST:
        return NXL_LOST;
    case LIFE_UNKNOWN:
        return NXL_UNKNOWN;
    case LIFE_FAULT:
        return (int)result_of_fault(life->fault);
    case LIFE_CANCELLED:
        return NXL_CANCELLED;
    case LIFE_DONE:
        return NXL_DONE;
    case LIFE_DOUBT:
        return NXL_DOUBT;
    case LIFE_MISMATCH:
        return NXL_MISMATCH;
    }
    return NXL_E_INVALID;
}

/* Which servers a message lists, and what it says about each. */
struct server_faults {
    const struct operation *operation;
    bool silent;          /* also those that did not answer */
    bool only_actionable; /* only servers that need repair or time */
    bool remedies;        /* each is followed by its remedy */
};

/* The fault of a server, and the words for it; FAULT_NONE: it is not listed. */
static enum fault trouble(
    const struct server_faults *about, unsigned i, struct text *words)
{
    const struct note *n = &about->operation->notes[i];
    const struct server *s = about->operation->requests[i].server;
    bool down = s->state == SERVER_DOWN;
    enum fault fault = FAULT_NONE;
    text_clear(words);
    if (n->kind == NOTE_FAULT)
        fault = n->fault;
    else if (n->kind == NOTE_ASKED && (about->silent || down))
        fault = down && s->why_fault ? s->why_fault : FAULT_TIMEOUT;
    if (about->only_actionable && !fault_is_quarantine(fault) &&
        !fault_needs_repair(fault))
        return FAULT_NONE;
    if (n->kind == NOTE_FAULT)
        text_add(words, note_words(n));
    else if (fault != FAULT_NONE)
        unanswered_add_silence(words, s);
    return fault;
}

/* "redis://a:6379/0, redis://b:6379/0: no answer in time; redis://c: ..." */
static void add_troubles(const struct server_faults *about, struct text *t)
{
    const struct operation *op = about->operation;
    unsigned count = op->client->server_count;
    struct text words, others;
    unsigned told = 0;
    for (unsigned i = 0; i < count; i++) {
        enum fault fault = trouble(about, i, &words);
        if (told & 1U << i || fault == FAULT_NONE)
            continue;
        text_add(t, told ? "; " : "");
        for (unsigned j = i; j < count; j++) {
            if (trouble(about, j, &others) != fault ||
                strcmp(others.data, words.data) != 0)
                continue;
            text_add(t, j > i ? ", " : "");
            text_add(t, op->requests[j].server->to.address->name.data);
            told |= 1U << j;
        }
        text_add(t, ": ");
        text_add(t, words.data);
        const char *remedy = remedy_at(fault, op->requests[i].server);
        if (about->remedies && *remedy)
            text_addf(t, " [%s]", remedy); /* may contain (...) */
    }
}

/* Do all faults have the same remedy? *remedy is that of the first fault. */
static bool same_remedy(const struct server_faults *about, const char **remedy)
{
    struct text words;
    const struct operation *op = about->operation;
    bool any = false, same = true;
    *remedy = "";
    for (unsigned i = 0; i < op->client->server_count; i++) {
        enum fault fault = trouble(about, i, &words);
        if (fault == FAULT_NONE)
            continue;
        const char *its = remedy_at(fault, op->requests[i].server);
        same = same && (!any || strcmp(its, *remedy) == 0);
        *remedy = any ? *remedy : its;
        any = true;
    }
    return same;
}

/* Adds the servers and their remedy: at the end if it is the same for all, else
 * after each server. If there is no room for that, none is shown, because a
 * single one would seem to apply to all. */
static void add_mending(struct server_faults *about, struct text *t)
{
    const struct text before = *t;
    const char *remedy;
    about->remedies = !same_remedy(about, &remedy);
    add_troubles(about, t);
    if (!about->remedies && *remedy)
        text_addf(t, "; %s", remedy);
    if (t->len < TEXT_MAX - 1 || !about->remedies)
        return;
    *t = before;
    about->remedies = false;
    add_troubles(about, t);
}

void errmsg_at(
    const struct operation *operation, unsigned server, struct text *text)
{
    struct server_faults about = {.operation = operation, .silent = true};
    struct text words;
    (void)trouble(&about, server, &words);
    text_add(text, words.data);
}

bool errmsg_minority(
    const struct operation *operation, bool *young, struct text *text)
{
    struct server_faults about = {
        .operation = operation, .only_actionable = true};
    unsigned count = operation->client->server_count, told = 0;
    struct text words;
    *young = true;
    for (unsigned i = 0; i < count; i++) {
        enum fault fault = trouble(&about, i, &words);
        told += fault != FAULT_NONE;
        *young = *young && !fault_needs_repair(fault);
    }
    if (!told)
        return false;
    text_addf(
        text, "%u of %u servers did not take part in a grant: ", told, count);
    add_mending(&about, text);
    return true;
}

/* -------------------------------------------------------------- the result */

static void add_held_here(const struct held_here *here, struct text *t)
{
    text_add(t, "held by this client itself for ");
    text_add_duration(t, here->held_ns / NS_PER_MS, false);
    if (here->handles == 1)
        text_add(t, ", by another handle");
    else
        text_addf(t, ", by %zu other handles", here->handles);
    if (!here->alone)
        text_add(t, ", and maybe by other clients");
}

static void add_busy(const struct report *r, struct text *t)
{
    unsigned servers = r->operation->client->server_count;
    if (r->here.handles)
        add_held_here(&r->here, t);
    else
        text_add(t, "another client holds the lock");
    if (r->here.alone) {
        text_add(t, "; release it there, or use that handle");
    } else if (r->left_ms >= 0) {
        text_add(t, ", for at most ");
        text_add_duration(t, (uint64_t)r->left_ms, true);
        text_add(t, " unless it is renewed");
    } else if (r->left_ms == LEFT_FOREVER) {
        text_add(t, ", and its key never expires: it may hold something "
                    "else (see nxl_lock_inspect)");
    }
    if (servers > 1)
        text_addf(t, " (busy at %u of %u servers, granted by %u)",
            operation_count_notes(r->operation, NOTE_NO), servers,
            operation_count_notes(r->operation, NOTE_YES));
}

/* An interrupt ends only what acquires. */
static const char *cancelled_words(enum nxl_operation kind)
{
    switch (kind) {
    case NXL_OP_ACQUIRE:
    case NXL_OP_ONCE_BEGIN:
        return "cancelled by nxl_lock_cancel(), nxl_lock_interrupt() or "
               "nxl_client_interrupt(); nothing is held";
    case NXL_OP_ADOPT:
        return "cancelled by nxl_lock_cancel(); nothing is held";
    case NXL_OP_EXTEND:
        return "cancelled by nxl_lock_cancel(); the lock is held until its "
               "old deadline";
    case NXL_OP_INSPECT:
        return "cancelled by nxl_lock_cancel()";
    default:
        return "cancelled by nxl_lock_cancel(); it may have been carried out";
    }
}

static const char *other_words(const struct report *r)
{
    if (r->result == NXL_CANCELLED)
        return cancelled_words(r->kind);
    if (r->kind == NXL_OP_ACQUIRE || r->kind == NXL_OP_ONCE_BEGIN)
        return "granted, but the lease expired or the key was removed "
               "before the call returned; nothing is held";
    if (r->kind == NXL_OP_ADOPT)
        return "the lock is free, or held under another token";
    return "the lease had expired, or the key was removed or taken";
}

/* One server failed. */
static void add_failure(const struct report *r, struct text *t)
{
    const struct operation *op = r->operation;
    const struct server *s = op->requests[0].server;
    enum fault fault = r->fault;
    text_add(t, s->to.address->name.data);
    text_add(t, ": ");
    if (op->notes[0].kind == NOTE_FAULT) {
        text_add(t, note_words(&op->notes[0]));
    } else {
        unanswered_add_silence(t, s);
        if (s->state == SERVER_DOWN && s->why_fault)
            fault = s->why_fault;
    }
    if (r->result == NXL_UNKNOWN)
        unanswered_explain(op, t);
    if (*remedy_at(fault, s))
        text_addf(t, "; %s", remedy_at(fault, s));
}

/* Several servers failed. */
static void add_failures(const struct report *r, struct text *t)
{
    struct server_faults about = {
        .operation = r->operation, .silent = r->waited};
    unsigned count = r->operation->client->server_count;
    if (r->result == NXL_UNKNOWN)
        unanswered_add(r->operation, t);
    text_addf(t, "%u of %u servers are needed; ", quorum_of(count), count);
    add_mending(&about, t);
}

void errmsg_compose(const struct report *r, struct text *t)
{
    bool several = r->operation->client->server_count > 1;
    struct server_faults about = {.operation = r->operation};
    struct text words;
    text_clear(t);
    if (r->result == NXL_OK || r->result == NXL_FREE) {
        if (several) /* a fault of a minority may spread: show it */
            add_troubles(&about, t);
    } else if (r->result == NXL_BUSY) {
        add_busy(r, t);
    } else if (r->result == NXL_UNKNOWN || r->result < 0) {
        if (several)
            add_failures(r, t);
        else
            add_failure(r, t);
        r->operation->client->errmsg = *t;
    } else {
        text_add(t, other_words(r));
        if (!several || r->kind != NXL_OP_EXTEND)
            return;
        about.silent = true; /* name the servers that did not extend it before
                                it expired */
        text_clear(&words);
        add_troubles(&about, &words);
        if (words.len)
            text_addf(t, "; %s", words.data);
    }
}

int errmsg_invalid(struct text *message, const char *format, ...)
{
    char words[TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    text_set(message, words);
    return NXL_E_INVALID;
}
