/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a server: its time of day is this machine's and so many
 * seconds as the file $NXLOCK_CLOCK_FILE says, at each look. No other clock is
 * touched. (libfaketime ends in a recursion in a program that brings its own
 * malloc, as redis-server does.)
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_s;

__attribute__((constructor)) static void open_file(void)
{
    const char *path = getenv("NXLOCK_CLOCK_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof(*offset_s), PROT_READ, MAP_SHARED, fd, 0);
    offset_s = map == MAP_FAILED ? NULL : map;
    close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, t);
    if (rc == 0 && offset_s &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        t->tv_sec += *offset_s;
    return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &t) != 0)
        return -1;
    tv->tv_sec = t.tv_sec;
    tv->tv_usec = t.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *to)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (to)
        *to = t.tv_sec;
    return t.tv_sec;
}
