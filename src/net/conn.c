/* SPDX-License-Identifier: MIT */
/*
 * Keeps: the order of slots is the order of the commands in the stream; the
 * bytes counted in the slots that have not left add up to what is in the
 * out buffer behind the command that is partly gone.
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
    c->slots.first = c->slots.count = 0;
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

bool conn_flush(struct conn *c, struct text *why)
{
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
        buf_consume(&c->out, (size_t)n);
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
    size_t left = buf_len(&c->out), n = 0;
    while (n < c->slots.count) {
        const struct slot *slot = slots_at(&c->slots, c->slots.count - 1 - n);
        if (slot->bytes > left || (slot->bytes == 0 && left == 0))
            break;
        left -= slot->bytes;
        n++;
    }
    /* A group's first slot carries its bytes: do not count the rest of a
     * group whose first has left in part. */
    while (n && slots_at(&c->slots, c->slots.count - n)->bytes == 0)
        n--;
    return n;
}

void conn_withdraw(struct conn *c, size_t index, size_t n)
{
    size_t behind = 0, mine = 0;
    for (size_t i = index; i < c->slots.count; i++) {
        if (i < index + n)
            mine += slots_at(&c->slots, i)->bytes;
        else
            behind += slots_at(&c->slots, i)->bytes;
    }
    buf_cut(&c->out, buf_len(&c->out) - behind - mine, mine);
    slots_cut(&c->slots, index, n);
}
