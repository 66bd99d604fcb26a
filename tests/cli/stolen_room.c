/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: another process fills the pipe of a message at the worst time:
 * after poll() has reported that it takes a line, and before that is written.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void fill(int pipe)
{
    static const char page[4096];
    char path[32];
    struct stat info;

    if (fstat(pipe, &info) != 0 || !S_ISFIFO(info.st_mode))
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", pipe);
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    while (fd >= 0 && write(fd, page, sizeof(page)) > 0)
        ;
    if (fd >= 0)
        close(fd);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    int (*next)(struct pollfd *, nfds_t, int);

    *(void **)&next = dlsym(RTLD_NEXT, "poll");
    int ready = next(fds, count, timeout_ms);
    if (ready == 1 && count == 1 && fds[0].revents == POLLOUT)
        fill(fds[0].fd);
    return ready;
}
