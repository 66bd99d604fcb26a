/* SPDX-License-Identifier: MIT */
/*
 * A transport that behaves as an encrypting one may, without any encryption.
 * It takes all that the socket has, gives it in small portions, and has a
 * handshake and bytes of its own. Some bytes of the peer are for it alone:
 *
 *   SILENT   means nothing, as a session ticket does
 *   DEMAND   is to be answered by ANSWER before anything more can be read
 *   PERMIT   ends a state in which nothing can be sent
 *
 * If a test sets `record`, bytes count as sent once they are in a record of at
 * most that many, although the socket has not taken them: as when they are
 * encrypted. There is one record at a time, and nothing overtakes it.
 */
#ifndef NXLOCK_TESTS_TRANSPORT_RIG_H
#define NXLOCK_TESTS_TRANSPORT_RIG_H

#include "support/test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/transport.h"

#define SILENT '\1'
#define DEMAND '\2'
#define PERMIT '\3'
#define ANSWER '\4'
#define HELLO '\5'
#define GOODBYE '\6'

#define PORTION 5 /* bytes that one receive gives */

struct scripted {
    size_t room;       /* bytes that the socket takes */
    bool needs_permit; /* nothing can be sent before PERMIT */
    int hellos;      /* to be had from the peer before the handshake is over */
    bool refuses;    /* ... which then fails */
    char held[4096]; /* taken from the socket, and not given yet */
    size_t held_len;
    size_t answers;    /* own bytes that wait for room */
    size_t record;     /* how long records may be; 0: there are none */
    char sealed[4096]; /* of the present record, what has not left */
    size_t sealed_len;
    unsigned opened, closed;
};

/* Of the only transport that a test has. */
static struct scripted scripted;

static inline struct scripted *scripted_of(struct transport *t)
{
    return t->own;
}

static inline bool scripted_open(
    struct transport *t, const struct target *to, struct text *error)
{
    (void)to, (void)error;
    t->own = &scripted;
    scripted.opened++;
    return true;
}

/* Takes what the socket has. -1: the connection is lost. */
static inline ssize_t scripted_take(struct transport *t)
{
    struct scripted *s = scripted_of(t);
    ssize_t n = transport_plain.receive(
        t, s->held + s->held_len, sizeof(s->held) - s->held_len);
    if (n > 0)
        s->held_len += (size_t)n;
    return n;
}

static inline void scripted_drop(struct scripted *s, size_t n)
{
    s->held_len -= n;
    memmove(s->held, s->held + n, s->held_len);
}

/* What comes first and is for the transport alone. */
static inline void scripted_swallow(struct transport *t)
{
    struct scripted *s = scripted_of(t);
    for (; s->held_len && s->held[0] <= PERMIT && !s->answers;
         scripted_drop(s, 1)) {
        s->answers += s->held[0] == DEMAND;
        if (s->held[0] == PERMIT)
            s->needs_permit = t->wants_read = false;
    }
    t->wants_write = s->answers > 0 || s->sealed_len > 0;
    t->pending = s->held_len > 0 && !s->answers;
}

/* Sends of the record what the socket takes. False: the connection is lost. */
static inline bool scripted_unseal(struct transport *t)
{
    struct scripted *s = scripted_of(t);
    size_t len = s->sealed_len < s->room ? s->sealed_len : s->room;
    ssize_t n = len ? transport_plain.send(t, s->sealed, len) : 0;
    if (n < 0)
        return false;
    s->room -= (size_t)n;
    s->sealed_len -= (size_t)n;
    memmove(s->sealed, s->sealed + n, s->sealed_len);
    t->wants_write = s->answers > 0 || s->sealed_len > 0;
    return true;
}

/* Makes a record, which cannot be taken back. */
static inline ssize_t scripted_seal(
    struct transport *t, const void *bytes, size_t len)
{
    struct scripted *s = scripted_of(t);
    if (len > s->record)
        len = s->record;
    if (len > sizeof(s->sealed))
        len = sizeof(s->sealed);
    if (len)
        memcpy(s->sealed, bytes, len);
    s->sealed_len = len;
    return scripted_unseal(t) ? (ssize_t)len : -1;
}

static inline ssize_t scripted_send(
    struct transport *t, const void *bytes, size_t len)
{
    static const char answer = ANSWER;
    struct scripted *s = scripted_of(t);
    for (; s->answers && s->room; s->answers--, s->room--)
        if (transport_plain.send(t, &answer, 1) != 1)
            return -1;
    if (!scripted_unseal(t))
        return -1;
    scripted_swallow(t);
    t->wants_read = s->needs_permit && len > 0;
    if (s->needs_permit || s->answers || s->sealed_len)
        return 0;
    if (s->record)
        return scripted_seal(t, bytes, len);
    if (len > s->room)
        len = s->room;
    s->room -= len;
    return len ? transport_plain.send(t, bytes, len) : 0;
}

static inline ssize_t scripted_receive(
    struct transport *t, void *bytes, size_t room)
{
    struct scripted *s = scripted_of(t);
    size_t n = 0;
    ssize_t got = scripted_take(t);
    scripted_swallow(t);
    if (room > PORTION)
        room = PORTION;
    while (t->pending && n < s->held_len && n < room && s->held[n] > PERMIT)
        n++;
    memcpy(bytes, s->held, n);
    scripted_drop(s, n);
    scripted_swallow(t);
    return n || got >= 0 ? (ssize_t)n : got;
}

static inline enum transport_news scripted_news(struct transport *t)
{
    enum transport_news news = transport_plain.news(t);
    if (news == TRANSPORT_TALKS && scripted_take(t) < 0)
        return TRANSPORT_OVER;
    scripted_swallow(t);
    if (news == TRANSPORT_TALKS && !t->pending)
        return TRANSPORT_QUIET;
    return news;
}

static inline enum transport_step scripted_handshake(
    struct transport *t, struct text *error)
{
    struct scripted *s = scripted_of(t);
    while (s->hellos && scripted_take(t) > 0)
        for (; s->held_len && s->held[0] == HELLO && s->hellos; s->hellos--)
            scripted_drop(s, 1);
    t->wants_read = s->hellos > 0;
    if (s->hellos)
        return TRANSPORT_WAITS;
    t->pending = s->held_len > 0;
    if (!s->refuses)
        return TRANSPORT_READY;
    text_clear(error);
    text_add(error, "the peer has the wrong password");
    return TRANSPORT_FAILED;
}

static inline void scripted_close(struct transport *t)
{
    static const char goodbye = GOODBYE;
    (void)transport_plain.send(t, &goodbye, 1);
    scripted_of(t)->closed++;
}

static const struct transport_kind scripted_kind = {
    .open = scripted_open,
    .handshake = scripted_handshake,
    .send = scripted_send,
    .receive = scripted_receive,
    .news = scripted_news,
    .close = scripted_close,
};

static inline void scripted_reset(void)
{
    scripted = (struct scripted){.room = SIZE_MAX};
}

#endif
