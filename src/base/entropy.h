/* SPDX-License-Identifier: MIT */
/*
 * Random bytes from getrandom(), drawn in blocks, each byte handed out only
 * once: it is wiped as it is taken, and the kernel wipes the whole page in a
 * fork()ed child, so that parent and child never use the same byte. The page
 * also detects fork() without a system call: the child finds zeros where its
 * parent left a mark.
 */
#ifndef NXLOCK_BASE_ENTROPY_H
#define NXLOCK_BASE_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entropy; /* one page of its own (MADV_WIPEONFORK) */

/* NULL: out of memory, or getrandom() failed. */
struct entropy *entropy_new(void);
void entropy_free(struct entropy *e);

/* Takes len <= 64 fresh bytes. False only if getrandom() fails, which it
 * does not once it has succeeded; out is then untouched. Not thread-safe. */
bool entropy_take(struct entropy *e, void *out, size_t len);

/* True in a child of the process that made it. Any thread may call it; it costs
 * a memory access, or getpid() where the kernel cannot wipe the page. */
bool entropy_forked(const struct entropy *e);

#endif
