/* SPDX-License-Identifier: MIT */
/*
 * Keeps: the order of slots is the order of the commands in the stream; the
 * bytes counted in the slots that have not begun to leave add up to what is
 * in the out buffer behind the command that is partly gone. A command taken
 * back out of the middle is a hole there, and in the slots, until the next
 * time that something is sent: taking back many costs one pass, not many.
 * Holes never stand at either end of the slots, so that none are left when
 * nothing is due.
 */
#include "net/conn.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define READ_ROOM 16384

bool conn_open(struct conn *c, int fd)
{
    bool ok = c->reader ? reader_reset(c->reader)
                        : (c->reader = reader_new()) != NULL;
    if (!ok || !watch_add(c->watch, fd, POLLIN, c->key)) {
        close(fd);
        return false;
    }
    c->watched_for_room = false;
    c->fd = fd;
    c->transport = &transport_plain;
    c->blocked = false;
    c->dropped = 0;
    return true;
}

void conn_close(struct conn *c)
{
    watch_drop(c->watch, c->fd);
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    buf_clear(&c->out);
    slots_clear(&c->slots);
    c->unsent = 0;
    c->part = c->holes = 0;
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

static void lost(struct text *why, int error)
{
    text_clear(why);
    if (error)
        text_addf(why, "connection lost: %s", strerrordesc_np(error));
    else
        text_add(why, "the server closed the connection");
}

/* What the socket did not take goes when it has room again. */
static void set_blocked(struct conn *c, bool blocked)
{
    c->blocked = blocked;
    if (blocked == c->watched_for_room)
        return;
    c->watched_for_room = blocked;
    watch_change(c->watch, c->fd,
        (short)(blocked ? POLLIN | POLLOUT : POLLIN), c->key);
}

static struct slot *numbered(const struct conn *c, uint64_t number)
{
    return slots_at(&c->slots, (size_t)(number - c->slots.popped));
}

static void trim_front(struct conn *c)
{
    struct slots *slots = &c->slots;
    while (slots->count && slots_at(slots, 0)->kind == SLOT_HOLE) {
        size_t bytes = slots_at(slots, 0)->bytes;
        if (bytes && c->part) /* they do not stand first: see fill_holes() */
            return;
        buf_consume(&c->out, bytes);
        c->holes -= bytes;
        slots_pop(slots);
    }
    if (c->unsent < slots->popped)
        c->unsent = slots->popped;
}

static void trim_back(struct conn *c)
{
    struct slots *slots = &c->slots;
    while (slots->count &&
           slots_at(slots, slots->count - 1)->kind == SLOT_HOLE) {
        size_t bytes = slots_at(slots, slots->count - 1)->bytes;
        buf_cut(&c->out, buf_len(&c->out) - bytes, bytes);
        c->holes -= bytes;
        slots->count--;
    }
    if (c->unsent > slots_end(slots))
        c->unsent = slots_end(slots);
}

/* Moves the bytes that stay together; the slots stay, and count for none. */
static void fill_holes(struct conn *c)
{
    if (c->holes == 0)
        return;
    char *head = buf_head(&c->out);
    size_t from = c->part, to = c->part;
    for (uint64_t n = c->unsent; n < slots_end(&c->slots); n++) {
        struct slot *slot = numbered(c, n);
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

/* That many bytes more have left. */
static void gone(struct conn *c, size_t bytes)
{
    buf_consume(&c->out, bytes);
    while (bytes > c->part) {
        bytes -= c->part;
        c->part = numbered(c, c->unsent++)->bytes;
        while (c->unsent < slots_end(&c->slots) &&
               numbered(c, c->unsent)->bytes == 0)
            c->unsent++; /* the rest of the group */
    }
    c->part -= bytes;
}

bool conn_flush(struct conn *c, struct text *why)
{
    fill_holes(c);
    while (buf_len(&c->out)) {
        ssize_t n =
            c->transport->send(c->fd, buf_head(&c->out), buf_len(&c->out));
        if (n < 0) {
            lost(why, errno);
            return false;
        }
        if (n == 0) {
            set_blocked(c, true);
            return true;
        }
        gone(c, (size_t)n);
    }
    set_blocked(c, false);
    return true;
}

bool conn_read(struct conn *c, struct text *why, bool *broken)
{
    char bytes[READ_ROOM];
    ssize_t n = c->transport->receive(c->fd, bytes, sizeof bytes);
    *broken = false;
    if (n < 0) {
        lost(why, errno);
        return false;
    }
    if (n > 0 && !reader_feed(c->reader, bytes, (size_t)n)) {
        text_clear(why);
        text_add(why, reader_error(c->reader));
        *broken = true;
        return false;
    }
    return true;
}

size_t conn_unsent_slots(const struct conn *c)
{
    return (size_t)(slots_end(&c->slots) - c->unsent);
}

void conn_withdraw(struct conn *c, uint64_t number, size_t n)
{
    for (uint64_t i = number; i < number + n; i++) {
        struct slot *slot = numbered(c, i);
        slot->kind = SLOT_HOLE;
        slot->owner = NULL;
        c->holes += slot->bytes;
    }
    trim_back(c);
    trim_front(c);
    if (buf_len(&c->out) == 0) /* nothing that needs room is left */
        set_blocked(c, false);
}

struct slot conn_pop(struct conn *c)
{
    struct slot slot = slots_pop(&c->slots);
    trim_front(c);
    return slot;
}
