/* SPDX-License-Identifier: MIT */
/*
 * One open connection: sends commands, takes back those with no byte sent, and
 * feeds the reader.
 *
 * Invariant: slots are in the order of the commands in the stream. The bytes of
 * the unsent slots add up to the contents of `out` behind the command that is
 * partly sent. A command taken back out of the middle leaves a hole in `out`
 * and in the slots until something is sent, so that taking back many costs a
 * single pass. Neither the first nor the last slot is ever a hole, so no hole
 * is left when no reply is due.
 */
#include "net/conn.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define READ_ROOM 16384

bool conn_open(struct conn *c, struct transport *transport, struct text *why)
{
    bool ok = c->reader ? reader_reset(c->reader)
                        : (c->reader = reader_new()) != NULL;
    bool polled = ok && poller_add(c->poller, transport->fd, POLLIN, c->source);
    if (ok && !polled)
        poller_explain(why);
    else if (!ok)
        text_set(why, "out of memory: cannot create a connection");
    if (!polled) {
        transport_close(transport);
        return false;
    }
    c->transport = *transport;
    *transport = TRANSPORT_CLOSED;
    c->polled_for_room = false;
    c->blocked = false;
    c->dropped = 0;
    return true;
}

void conn_close(struct conn *c)
{
    poller_remove(c->poller, c->transport.fd);
    transport_close(&c->transport);
    buf_clear(&c->out);
    slots_clear(&c->slots);
    c->first_unsent = 0;
    c->rest = c->holes = 0;
    c->dropped = 0;
    c->blocked = false;
}

void conn_free(struct conn *c)
{
    conn_close(c);
    buf_free(&c->out);
    slots_free(&c->slots);
    reader_free(c->reader);
    c->reader = NULL;
}

static void explain_lost_connection(
    const struct conn *c, struct text *why, int error)
{
    text_clear(why);
    if (c->transport.why)
        text_add(why, c->transport.why);
    else if (error)
        text_addf(why, "connection lost: %s", strerrordesc_np(error));
    else
        text_add(why, "the server closed the connection");
}

/* What the socket did not take is sent when there is room again. But if the
 * transport waits for bytes from the peer, room must not be polled for: it
 * would be there all the time. False: the system refused, and nothing would
 * say when there is room; errno says why. */
static bool set_blocked(struct conn *c, bool blocked)
{
    const struct transport *t = &c->transport;
    bool for_room = blocked && (t->wants_write || !t->wants_read);
    c->blocked = blocked;
    if (for_room == c->polled_for_room)
        return true;
    bool changed = poller_change(c->poller, t->fd,
        (short)(for_room ? POLLIN | POLLOUT : POLLIN), c->source);
    if (changed)
        c->polled_for_room = for_room;
    return changed || !for_room;
}

static bool has_to_send(const struct conn *c)
{
    return buf_len(&c->out) || c->transport.wants_write;
}

static struct slot *slot_numbered(const struct conn *c, uint64_t number)
{
    return slots_at(&c->slots, (size_t)(number - c->slots.popped));
}

static bool has_unsent(const struct conn *c)
{
    return c->first_unsent - c->slots.popped < c->slots.count;
}

static bool hole_in_front(const struct slots *slots)
{
    return slots->count && slots_at(slots, 0)->kind == SLOT_HOLE;
}

static void trim_front(struct conn *c)
{
    struct slots *slots = &c->slots;
    while (hole_in_front(slots)) {
        size_t bytes = slots_at(slots, 0)->bytes;
        /* Behind part of a command: fill_holes() removes them. */
        if (bytes && c->rest)
            return;
        buf_consume(&c->out, bytes);
        c->holes -= bytes;
        slots_pop(slots);
    }
    if (c->first_unsent < slots->popped)
        c->first_unsent = slots->popped;
}

static void trim_back(struct conn *c)
{
    struct slots *slots = &c->slots;
    while (
        slots->count && slots_at(slots, slots->count - 1)->kind == SLOT_HOLE) {
        size_t bytes = slots_at(slots, slots->count - 1)->bytes;
        buf_cut(&c->out, buf_len(&c->out) - bytes, bytes);
        c->holes -= bytes;
        slots->count--;
    }
    if (c->first_unsent > slots_end(slots))
        c->first_unsent = slots_end(slots);
}

/* Closes the holes in `out`. Their slots remain, with no bytes. */
static void fill_holes(struct conn *c)
{
    if (c->holes == 0)
        return;
    char *head = buf_head(&c->out);
    size_t from = c->rest, to = c->rest;
    for (uint64_t n = c->first_unsent; n < slots_end(&c->slots); n++) {
        struct slot *slot = slot_numbered(c, n);
        size_t bytes = slot->bytes;
        if (slot->kind == SLOT_HOLE) {
            slot->bytes = 0;
        } else {
            memmove(head + to, head + from, bytes);
            to += bytes;
        }
        from += bytes;
    }
    buf_cut(&c->out, to, buf_len(&c->out) - to);
    c->holes = 0;
    trim_front(c);
}

/* `bytes` more bytes have been sent. */
static void count_sent(struct conn *c, size_t bytes)
{
    buf_consume(&c->out, bytes);
    while (bytes > c->rest) {
        bytes -= c->rest;
        c->rest = slot_numbered(c, c->first_unsent++)->bytes;
        while (has_unsent(c) && slot_numbered(c, c->first_unsent)->bytes == 0)
            c->first_unsent++; /* the rest of the group */
    }
    c->rest -= bytes;
}

bool conn_flush(struct conn *c, struct text *why)
{
    if (c->blocked || !has_to_send(c))
        return true;
    fill_holes(c);
    while (has_to_send(c)) {
        size_t len = buf_len(&c->out);
        ssize_t n =
            transport_send(&c->transport, len ? buf_head(&c->out) : NULL, len);
        if (n < 0) {
            explain_lost_connection(c, why, errno);
            return false;
        }
        count_sent(c, (size_t)n);
        if (n == 0 && has_to_send(c)) {
            bool polled = set_blocked(c, true);
            if (!polled)
                poller_explain(why);
            return polled;
        }
    }
    return set_blocked(c, false);
}

/* A read may change whether something can be sent. */
static bool after_read(struct conn *c)
{
    bool for_read = c->blocked && !c->polled_for_room;
    if (c->transport.wants_write && !c->polled_for_room)
        return set_blocked(c, true);
    if (for_read && !c->transport.wants_read)
        c->blocked = false; /* what a send waited for has come */
    return true;
}

bool conn_read(struct conn *c, struct text *why, bool *broken)
{
    char bytes[READ_ROOM];
    ssize_t n = transport_receive(&c->transport, bytes, sizeof(bytes));
    *broken = false;
    if (n < 0) {
        explain_lost_connection(c, why, errno);
        return false;
    }
    if (n > 0 && !reader_feed(c->reader, bytes, (size_t)n)) {
        text_set(why, reader_error(c->reader));
        *broken = true;
        return false;
    }
    bool polled = after_read(c);
    if (!polled)
        poller_explain(why);
    return polled;
}

bool conn_ready(struct conn *c, short revents, struct text *why, bool *broken)
{
    *broken = false;
    if (revents & POLLOUT) {
        c->blocked = false;
        if (!has_to_send(c)) /* a read has sent what was waiting */
            set_blocked(c, false);
    }
    return !(revents & (POLLIN | POLLHUP | POLLERR)) ||
           conn_read(c, why, broken);
}

size_t conn_unsent_slots(const struct conn *c)
{
    return (size_t)(slots_end(&c->slots) - c->first_unsent);
}

void conn_withdraw(struct conn *c, uint64_t number, size_t n)
{
    for (uint64_t i = number; i < number + n; i++) {
        struct slot *slot = slot_numbered(c, i);
        slot->kind = SLOT_HOLE;
        slot->owner = NULL;
        c->holes += slot->bytes;
    }
    trim_back(c);
    trim_front(c);
    if (!has_to_send(c)) /* nothing that needs room is left */
        (void)set_blocked(c, false);
}

bool conn_pop(struct conn *c, struct slot *slot)
{
    if (c->first_unsent == c->slots.popped)
        return false;
    *slot = slots_pop(&c->slots);
    if (slot->sharing)
        reader_repeat(c->reader, slot->sharing);
    if (hole_in_front(&c->slots))
        trim_front(c);
    return true;
}
