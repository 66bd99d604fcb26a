/* SPDX-License-Identifier: MIT */
/*
 * Closes the file descriptors that a new process inherits.
 *
 * Invariant: the time it takes depends on how many descriptors are open, not on
 * how many may be: RLIMIT_NOFILE is 2^30 in some containers, and a watchdog
 * that tried them all would see no deadline for minutes.
 */
#include "cli/run/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* Without /proc, only the numbers below this one are closed. */
#define BLIND_MAX 65536

static void close_other(int fd, const int *kept, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fd == kept[i])
            return;
    }
    if (fd > STDERR_FILENO)
        close(fd);
}

/* close_range() would need no /proc, but kernels before 5.9 lack it, and some
 * containers refuse it. */
void descriptors_close_others(const int *kept, size_t count)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        (void)(null >= 0 ? dup2(null, fd) : close(fd));
    /* Now, because opendir() may need the last free descriptor. */
    close_other(null, kept, count);
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        int fd = (int)strtol(entry->d_name, NULL, 10);
        if (fd != dirfd(dir))
            close_other(fd, kept, count);
    }
    for (int fd = 0; !dir && fd < BLIND_MAX; fd++)
        close_other(fd, kept, count);
    if (dir)
        closedir(dir);
}
