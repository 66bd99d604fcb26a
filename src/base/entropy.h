/* SPDX-License-Identifier: MIT */
/*
 * Random bytes from getrandom(), drawn in blocks and handed out once: each is
 * wiped as it is taken, and the whole block is wiped in a fork()ed child, so
 * that parent and child never share a byte. The same page is the client's
 * fork detector: a child sees zeros where its parent sees a mark, without a
 * system call.
 */
#ifndef NXLOCK_BASE_ENTROPY_H
#define NXLOCK_BASE_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entropy; /* one page of its own (MADV_WIPEONFORK) */

/* NULL: no memory, no random bytes or no way to detect a fork. */
struct entropy *entropy_new(void);
void entropy_free(struct entropy *e);

/* Takes len <= 64 fresh bytes. False only if getrandom() fails, which it
 * does not once it has succeeded; out is then untouched. Not thread-safe. */
bool entropy_take(struct entropy *e, void *out, size_t len);

/* True in a child of the process that made it. Any thread; reads memory. */
bool entropy_forked(const struct entropy *e);

#endif
