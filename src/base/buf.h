/* SPDX-License-Identifier: MIT */
/*
 * A byte queue: appended at the end, consumed at the front. Only growing can
 * fail, and then the content is unchanged.
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

/* Makes room for len more bytes. False: out of memory, and nothing has
 * changed. */
bool buf_reserve(struct buf *b, size_t len);
bool buf_append(struct buf *b, const void *bytes, size_t len);
/* Drops len bytes from the front. */
void buf_consume(struct buf *b, size_t len);
/* Removes len bytes at offset `at`, counted from the head. */
void buf_cut(struct buf *b, size_t at, size_t len);
void buf_clear(struct buf *b);
/* Overwrites the content, which may hold a password, and frees it. */
void buf_free(struct buf *b);

#endif
