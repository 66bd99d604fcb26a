/* SPDX-License-Identifier: MIT */
/* Keeps: a message never holds a password, a token or an unprintable byte of
 * a server, and composing one cannot fail. */
#include "api/message.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/machine.h"

enum nxl_result result_of_fault(enum fault fault)
{
    switch (fault) {
    case FAULT_NONE:
    case FAULT_UNREACHABLE:
    case FAULT_SILENT:
    case FAULT_CLASSES:
        return NXL_E_UNREACHABLE;
    case FAULT_RETRY:
    case FAULT_ELSEWHERE:
    case FAULT_FULL:
    case FAULT_REFUSING:
    case FAULT_RESTARTED:
        return NXL_E_REFUSED;
    case FAULT_FORGETS:
    case FAULT_SETUP:
        return NXL_E_URL;
    case FAULT_DENIED:
    case FAULT_UNTOLD:
        return NXL_E_DENIED;
    case FAULT_WRONG_TYPE:
        return NXL_E_WRONG_TYPE;
    case FAULT_UNSUPPORTED:
        return NXL_E_UNSUPPORTED;
    case FAULT_NOT_REDIS:
        return NXL_E_NOT_REDIS;
    case FAULT_SERVER:
        return NXL_E_SERVER;
    case FAULT_SYSTEM:
        return NXL_E_SYSTEM;
    }
    return NXL_E_SERVER;
}

static int result_no(enum nxl_operation kind)
{
    switch (kind) {
    case NXL_OP_ACQUIRE:
        return NXL_BUSY;
    case NXL_OP_EXTEND:
    case NXL_OP_RELEASE:
    case NXL_OP_ADOPT:
        return NXL_LOST;
    case NXL_OP_INSPECT:
    case NXL_OP_BREAK:
        return NXL_FREE;
    case NXL_OP_HOLD:
        break;
    }
    return NXL_E_INVALID;
}

/* Busy, so far as is known: but of those that were not waited for some are
 * known to be away, and with them no majority was there to be held. */
static bool broken_rather(const struct operation *op)
{
    const struct nxl_lock *lock = lock_of(op);
    unsigned able = 0, count = lock->client->server_count;
    if (!is_acquire(op) || !lock->notes)
        return false;
    for (unsigned i = 0; i < count; i++) {
        const struct note *n = &lock->notes[i];
        bool away = lock->client->servers[i].state == SERVER_DOWN;
        able += n->kind == NOTE_YES || n->kind == NOTE_NO ||
                (n->kind == NOTE_ASKED && !away);
    }
    return able < quorum_of(count);
}

int result_of(const struct operation *op, enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_OPEN:
    case VERDICT_YES:
        return NXL_OK;
    case VERDICT_NO:
        return broken_rather(op) ? NXL_E_UNREACHABLE : result_no(op->kind);
    case VERDICT_LATE:
        return NXL_LOST;
    case VERDICT_UNKNOWN:
        return NXL_UNKNOWN;
    case VERDICT_FAULT:
        return result_of_fault(machine_fault(op));
    case VERDICT_CANCELLED:
        return NXL_CANCELLED;
    }
    return NXL_E_INVALID;
}

/* ------------------------------------------------------------- one server */

void message_fault(struct nxl_lock *lock, const struct server *server,
    const struct outcome *outcome)
{
    struct text *t = &lock->message;
    text_clear(t);
    text_add(t, server->endpoint.name.data);
    text_add(t, ": ");
    text_add_foreign(t, outcome->text);
}

/* Nothing was heard at all: say how far it got. */
void message_add_silence(struct text *t, const struct server *s)
{
    if (s->state == SERVER_UP)
        text_add(t, "no answer in time");
    else if (s->state == SERVER_SHAKING)
        text_add(t, "connected, but no answer to the first commands");
    else if (s->state == SERVER_DIALLING)
        text_add(t, "no connection in time; check address, port and "
                    "firewall");
    else
        text_add(t, s->why.len ? s->why.data : "no connection");
}

static void message_silence(struct nxl_lock *lock)
{
    const struct server *s = &lock->client->servers[0];
    text_add(&lock->message, s->endpoint.name.data);
    text_add(&lock->message, ": ");
    message_add_silence(&lock->message, s);
}

void message_note(
    struct nxl_lock *lock, unsigned server, const struct outcome *outcome)
{
    static const char kinds[] = {
        [OUTCOME_GRANTED] = NOTE_YES,
        [OUTCOME_BUSY] = NOTE_NO,
        [OUTCOME_MINE] = NOTE_YES,
        [OUTCOME_NOT_MINE] = NOTE_NO,
        [OUTCOME_SEEN] = NOTE_YES,
        [OUTCOME_FREE] = NOTE_NO,
        [OUTCOME_FAULT] = NOTE_FAULT,
    };
    if (!lock->notes) {
        if (outcome->kind == OUTCOME_FAULT)
            message_fault(lock, &lock->client->servers[server], outcome);
        return;
    }
    struct note *n = &lock->notes[server];
    n->kind = (__typeof__(n->kind))kinds[outcome->kind];
    n->fault = outcome->fault;
    if (outcome->kind != OUTCOME_FAULT)
        return;
    struct text words;
    text_clear(&words);
    text_add_foreign(&words, outcome->text);
    text_copy(&words, n->words, sizeof n->words);
}

/* --------------------------------------------------------- several servers */

static unsigned notes_of(const struct nxl_lock *lock, int kind)
{
    unsigned count = 0;
    for (unsigned i = 0; i < lock->client->server_count; i++)
        count += (int)lock->notes[i].kind == kind;
    return count;
}

/* Were those without an answer waited for until the time was over? */
static bool waited(const struct operation *op)
{
    return !is_acquire(op) || op->fencing || op->machine.acquire.silent > 0;
}

/* Which servers are told of, and what is said behind each. */
struct troubles {
    const struct nxl_lock *lock;
    bool silent;   /* those without an answer, too */
    bool mending;  /* only those that somebody has to mend, or wait for */
    bool remedies; /* each has its own */
};

/* The fault of a server, and the words for it; FAULT_NONE: nothing is told. */
static enum fault trouble(
    const struct troubles *about, unsigned i, struct text *words)
{
    const struct note *n = &about->lock->notes[i];
    const struct server *s = &about->lock->client->servers[i];
    bool down = s->state == SERVER_DOWN;
    enum fault fault = FAULT_NONE;
    text_clear(words);
    if (n->kind == NOTE_FAULT)
        fault = n->fault;
    else if (n->kind == NOTE_ASKED && (about->silent || down))
        fault = down && s->why_fault ? s->why_fault : FAULT_SILENT;
    if (about->mending && fault != FAULT_RESTARTED &&
        !fault_wants_mending(fault))
        return FAULT_NONE;
    if (n->kind == NOTE_FAULT)
        text_add(words, n->words);
    else if (fault != FAULT_NONE)
        message_add_silence(words, s);
    return fault;
}

/* "redis://a:6379/0, redis://b:6379/0: no answer in time; redis://c: ..." */
static void add_troubles(const struct troubles *about, struct text *t)
{
    const struct nxl_client *client = about->lock->client;
    struct text words, others;
    unsigned told = 0;
    for (unsigned i = 0; i < client->server_count; i++) {
        enum fault fault = trouble(about, i, &words);
        if (told & 1U << i || fault == FAULT_NONE)
            continue;
        text_add(t, told ? "; " : "");
        for (unsigned j = i; j < client->server_count; j++) {
            if (trouble(about, j, &others) != fault ||
                strcmp(others.data, words.data) != 0)
                continue;
            text_add(t, j > i ? ", " : "");
            text_add(t, client->servers[j].endpoint.name.data);
            told |= 1U << j;
        }
        text_add(t, ": ");
        text_add(t, words.data);
        if (about->remedies && *fault_remedy(fault))
            text_addf(t, " (%s)", fault_remedy(fault));
    }
}

/* Is there one remedy for them all? *remedy is the first one that has any. */
static bool same_remedy(const struct troubles *about, const char **remedy)
{
    struct text words;
    bool any = false, same = true;
    *remedy = "";
    for (unsigned i = 0; i < about->lock->client->server_count; i++) {
        enum fault fault = trouble(about, i, &words);
        if (fault == FAULT_NONE)
            continue;
        same = same && (!any || strcmp(fault_remedy(fault), *remedy) == 0);
        *remedy = any ? *remedy : fault_remedy(fault);
        any = true;
    }
    return same;
}

/* With the remedy behind the words; where each has its own, behind each, or, if
 * there is no room for that, none: one alone would pass for that of all. */
static void add_mending(struct troubles *about, struct text *t)
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

void message_at(
    const struct nxl_lock *lock, unsigned server, struct text *text)
{
    struct troubles about = {.lock = lock, .silent = true};
    struct text words;
    (void)trouble(&about, server, &words);
    text_add(text, words.data);
}

static void message_several(struct nxl_lock *lock)
{
    struct troubles about = {.lock = lock, .silent = waited(&lock->operation)};
    unsigned count = lock->client->server_count;
    struct text *t = &lock->message;
    text_clear(t);
    text_addf(t, "%u of %u servers are needed; ", quorum_of(count), count);
    add_mending(&about, t);
}

bool message_minority(
    const struct nxl_lock *lock, bool *young, struct text *text)
{
    struct troubles about = {.lock = lock, .mending = true};
    unsigned count = lock->client->server_count, told = 0;
    struct text words;
    *young = true;
    for (unsigned i = 0; lock->notes && i < count; i++) {
        enum fault fault = trouble(&about, i, &words);
        told += fault != FAULT_NONE;
        *young = *young && !fault_wants_mending(fault);
    }
    if (!told)
        return false;
    text_addf(text, "%u of %u servers had no part in a grant: ", told, count);
    add_mending(&about, text);
    return true;
}

/* -------------------------------------------------------------- the result */

static void message_busy(struct nxl_lock *lock)
{
    int64_t left = lock->operation.machine.acquire.left_ms;
    struct text *t = &lock->message;
    text_clear(t);
    text_add(t, "somebody else holds the name");
    if (left >= 0)
        text_addf(t, ", for %lld ms at most unless prolonged",
            (long long)left);
    else if (left == LEFT_FOREVER)
        text_add(t, ", and the key has no end: it may be used for "
                    "something else (see nxl_lock_inspect)");
    if (lock->notes)
        text_addf(t, " (busy at %u of %u servers, granted by %u)",
            notes_of(lock, NOTE_NO), lock->client->server_count,
            notes_of(lock, NOTE_YES));
}

static const char *other_words(const struct operation *op)
{
    if (op->result == NXL_CANCELLED)
        return "nxl_lock_cancel() or nxl_client_interrupt() ended it; nothing "
               "is held";
    if (op->kind == NXL_OP_ACQUIRE)
        return "granted, but its time was over, or its key was removed, "
               "before it could be handed over; it is being released";
    if (op->kind == NXL_OP_ADOPT)
        return "the name is free, or held under another token";
    return "the lease had run out, or the key was removed or taken";
}

/* Who did not prolong it until it had run out. */
static void add_lapsed(struct nxl_lock *lock)
{
    struct troubles about = {.lock = lock, .silent = true};
    struct text words;
    text_clear(&words);
    add_troubles(&about, &words);
    if (words.len)
        text_addf(&lock->message, "; %s", words.data);
}

void message_result(struct nxl_lock *lock, enum fault fault)
{
    struct operation *op = &lock->operation;
    struct text *t = &lock->message;
    if (op->result == NXL_OK || op->result == NXL_FREE) {
        text_clear(t);
        if (lock->notes) /* a minority's matters may grow */
            add_troubles(&(struct troubles){.lock = lock}, t);
        return;
    }
    if (op->result == NXL_BUSY) {
        message_busy(lock);
        return;
    }
    if (op->result == NXL_UNKNOWN || op->result < 0) {
        if (lock->notes) {
            message_several(lock);
        } else {
            if (!t->len)
                message_silence(lock);
            if (*fault_remedy(fault))
                text_addf(t, "; %s", fault_remedy(fault));
        }
        lock->client->message = *t;
        return;
    }
    text_clear(t);
    text_add(t, other_words(op));
    if (lock->notes && op->kind == NXL_OP_EXTEND)
        add_lapsed(lock);
}

int message_invalid(struct text *message, const char *format, ...)
{
    char words[TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    text_clear(message);
    text_add(message, words);
    return NXL_E_INVALID;
}
