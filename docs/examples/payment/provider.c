/* SPDX-License-Identifier: MIT */
/*
 * A request to the provider over a unix socket.
 *
 * Invariant: the result is PAID or DECLINED only if the provider has said so in
 * a complete line; everything else is UNKNOWN.
 */
#include "provider.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 10};

    if (strlen(path) >= sizeof(address.sun_path))
        return -1;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* A line, without its end; false: none that is whole. */
static bool read_line(int fd, char *line, size_t size)
{
    size_t length = 0;

    while (length < size) {
        ssize_t count = read(fd, line + length, size - length);
        if (count < 0 && errno == EINTR) /* a stop does that, too */
            continue;
        if (count <= 0)
            return false;
        length += (size_t)count;
        char *end = memchr(line, '\n', length);
        if (end) {
            *end = '\0';
            return true;
        }
    }
    return false;
}

enum answer provider_charge(const char *path, const char *key,
    const struct order *order, char *reference, size_t size)
{
    char line[256];
    enum answer answer = ANSWER_UNKNOWN;

    int fd = dial(path);
    if (fd < 0)
        return ANSWER_UNKNOWN;
    int length = snprintf(line, sizeof(line), "%s %s %" PRId64 " %s\n", key,
        order->id, order->amount, order->currency);
    if (length < (int)sizeof(line) &&
        send(fd, line, (size_t)length, MSG_NOSIGNAL) == length &&
        read_line(fd, line, sizeof(line))) {
        if (strncmp(line, "paid ", 5) == 0 && strlen(line + 5) < size) {
            strcpy(reference, line + 5);
            answer = ANSWER_PAID;
        } else if (strcmp(line, "declined") == 0) {
            answer = ANSWER_DECLINED;
        }
    }
    close(fd);
    return answer;
}
