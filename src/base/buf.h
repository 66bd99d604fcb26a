/* SPDX-License-Identifier: MIT */
/*
 * A byte queue: appended at the end, consumed at the front. Growing is the
 * only step that can fail, and leaves the content as it was.
 */
#ifndef NXLOCK_BASE_BUF_H
#define NXLOCK_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t start; /* first byte not consumed */
    size_t end;   /* one past the last byte */
    size_t room;
};

static inline size_t buf_len(const struct buf *b)
{
    return b->end - b->start;
}

static inline char *buf_head(const struct buf *b)
{
    return b->data + b->start;
}

/* Makes place for len more bytes; false: no memory, nothing changed. */
bool buf_reserve(struct buf *b, size_t len);
bool buf_append(struct buf *b, const void *bytes, size_t len);
/* Drops len bytes from the front. */
void buf_consume(struct buf *b, size_t len);
/* Cuts len bytes out at offset at (from the head). */
void buf_cut(struct buf *b, size_t at, size_t len);
void buf_clear(struct buf *b);
/* Frees, and overwrites the content first: it may hold a password. */
void buf_free(struct buf *b);

#endif
