/* SPDX-License-Identifier: MIT */
/*
 * A pool of random bytes that also detects fork().
 *
 * Invariant: no byte of the pool is handed out twice, neither by one process
 * nor by a parent and its child: a byte is wiped when it is taken, and only the
 * process that made the pool reads it.
 */
#include "base/entropy.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define POOL 1024

/* All zero in a child, where the kernel wipes the page. */
enum mark {
    MARK_WIPED,
    MARK_KERNEL, /* the kernel wipes the page, and this mark, in a child */
    MARK_PID     /* the kernel cannot wipe it: compare maker with getpid() */
};

struct entropy {
    enum mark mark;
    pid_t maker;
    size_t left; /* pool[0 ... left) is fresh */
    unsigned char pool[POOL];
};

static bool draw(unsigned char *out, size_t len)
{
    while (len > 0) {
        ssize_t got = getrandom(out, len, 0);
        if (got > 0) {
            out += got;
            len -= (size_t)got;
        } else if (got < 0 && errno != EINTR) {
            return false;
        }
    }
    return true;
}

static bool refill(struct entropy *e)
{
    e->left = 0;
    if (!draw(e->pool, POOL))
        return false;
    e->left = POOL;
    return true;
}

/* An emulator may accept every madvise() and ignore it. If it accepts one that
 * does not exist, it cannot be trusted to wipe the page in a child. */
static bool wiped_on_fork(struct entropy *e)
{
#ifdef MADV_WIPEONFORK
    return madvise(e, sizeof(*e), -1) != 0 &&
           madvise(e, sizeof(*e), MADV_WIPEONFORK) == 0;
#else
    (void)e;
    return false;
#endif
}

struct entropy *entropy_new(void)
{
    struct entropy *e = mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (e == MAP_FAILED)
        return NULL;

    e->mark = wiped_on_fork(e) ? MARK_KERNEL : MARK_PID;
    e->maker = getpid();
    if (!refill(e)) {
        entropy_free(e);
        return NULL;
    }
    return e;
}

void entropy_free(struct entropy *e)
{
    if (!e)
        return;
    explicit_bzero(e, sizeof(*e));
    munmap(e, sizeof(*e));
}

bool entropy_take(struct entropy *e, void *out, size_t len)
{
    /* In a child the pool may still be the parent's, and the page is wiped
     * again in each grandchild: draw from the kernel each time. */
    if (entropy_forked(e))
        return draw(out, len);

    if (len > e->left && !refill(e))
        return false;
    unsigned char *taken = e->pool + e->left - len;
    memcpy(out, taken, len);
    explicit_bzero(taken, len);
    e->left -= len;
    return true;
}

bool entropy_forked(const struct entropy *e)
{
    if (e->mark == MARK_KERNEL)
        return false;
    return e->mark == MARK_WIPED || e->maker != getpid();
}
