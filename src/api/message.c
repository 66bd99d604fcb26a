/* SPDX-License-Identifier: MIT */
/* Keeps: a message never holds a password, a token or an unprintable byte of
 * a server, and composing one cannot fail. */
#include "api/message.h"

#include <stdarg.h>
#include <stdio.h>

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
        return NXL_E_REFUSED;
    case FAULT_DENIED:
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
static void message_silence(struct nxl_lock *lock)
{
    const struct server *s = &lock->client->servers[0];
    struct text *t = &lock->message;
    text_add(t, s->endpoint.name.data);
    if (s->state == SERVER_UP)
        text_add(t, ": no answer in time");
    else if (s->state == SERVER_SHAKING)
        text_add(t, ": connected, but no answer to the first commands");
    else if (s->state == SERVER_DIALLING)
        text_add(t, ": no connection in time; check address, port and "
                    "firewall");
    else
        text_addf(t, ": %s", s->why.len ? s->why.data : "no connection");
}

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
}

static const char *other_words(const struct operation *op)
{
    if (op->result == NXL_CANCELLED)
        return "nxl_lock_cancel() ended it; nothing is held";
    if (op->kind == NXL_OP_ACQUIRE)
        return "granted, but its time was over before it could be handed "
               "over; it is being released";
    if (op->kind == NXL_OP_ADOPT)
        return "the name is free, or held under another token";
    return "the lease had run out, or the key was removed or taken";
}

void message_result(struct nxl_lock *lock, enum fault fault)
{
    struct operation *op = &lock->operation;
    struct text *t = &lock->message;
    if (op->result == NXL_OK || op->result == NXL_FREE) {
        text_clear(t);
        return;
    }
    if (op->result == NXL_BUSY) {
        message_busy(lock);
        return;
    }
    if (op->result == NXL_UNKNOWN || op->result < 0) {
        if (!t->len)
            message_silence(lock);
        if (*fault_remedy(fault))
            text_addf(t, "; %s", fault_remedy(fault));
        lock->client->message = *t;
        return;
    }
    text_clear(t);
    text_add(t, other_words(op));
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
