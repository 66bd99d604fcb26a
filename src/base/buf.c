/* SPDX-License-Identifier: MIT */
/*
 * A byte queue in one block of memory.
 *
 * Invariant: start <= end <= room. Memory is overwritten before it is freed,
 * because the queue may have held a password.
 */
#include "base/buf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 512

static void wipe_and_free(char *data, size_t room)
{
    if (!data)
        return;
    explicit_bzero(data, room);
    free(data);
}

/* Not realloc(): it would leave a copy behind. */
static bool grow(struct buf *b, size_t need)
{
    size_t room = FIRST_ROOM;
    while (room < need || room <= b->room) {
        if (room > SIZE_MAX / 2)
            return false;
        room *= 2;
    }

    char *data = malloc(room);
    if (!data)
        return false;
    size_t len = buf_len(b);
    if (len > 0)
        memcpy(data, buf_head(b), len);
    wipe_and_free(b->data, b->room);
    b->data = data;
    b->room = room;
    b->start = 0;
    b->end = len;
    return true;
}

bool buf_reserve(struct buf *b, size_t len)
{
    if (len <= b->room - b->end)
        return true;

    size_t used = buf_len(b);
    if (len > SIZE_MAX - used)
        return false;
    /* Move only when at least as many bytes were consumed since the last move:
     * otherwise a nearly full queue would be moved at each append. */
    if (used + len <= b->room && b->start >= used) {
        memmove(b->data, buf_head(b), used);
        b->start = 0;
        b->end = used;
        return true;
    }
    return grow(b, used + len);
}

bool buf_append(struct buf *b, const void *bytes, size_t len)
{
    if (len == 0)
        return true;
    if (len > b->room - b->end && !buf_reserve(b, len))
        return false;
    memcpy(b->data + b->end, bytes, len);
    b->end += len;
    return true;
}

void buf_consume(struct buf *b, size_t len)
{
    b->start += len;
    if (b->start == b->end)
        buf_clear(b);
}

void buf_cut(struct buf *b, size_t at, size_t len)
{
    if (len == 0)
        return;
    if (at == 0) {
        buf_consume(b, len);
        return;
    }
    char *hole = buf_head(b) + at;
    memmove(hole, hole + len, buf_len(b) - at - len);
    b->end -= len;
}

void buf_clear(struct buf *b)
{
    b->start = b->end = 0;
}

void buf_free(struct buf *b)
{
    wipe_and_free(b->data, b->room);
    *b = (struct buf){NULL, 0, 0, 0};
}
