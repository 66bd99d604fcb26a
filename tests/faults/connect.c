/* SPDX-License-Identifier: MIT */
/*
 * In front of each attempt to connect to an IPv4 address: a program that has
 * on_dial() is told of it; and the connection comes from $NXLOCK_SOURCE, if
 * that is set, so that the program has an address of its own on the loopback
 * interface, by which a proxy tells the two sides of a partition apart.
 */
/* With the extensions of GNU, connect() takes a union, which no other file can
 * define. */
#undef _GNU_SOURCE
#define _DEFAULT_SOURCE
#include "connect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In front of the one of the C library, for the library that is tested too. */
__attribute__((visibility("default"))) int connect(
    int fd, const struct sockaddr *to, socklen_t len)
{
    const char *source = getenv("NXLOCK_SOURCE");
    struct sockaddr_in from = {.sin_family = AF_INET};
    bool ip = to->sa_family == AF_INET;

    if (ip && on_dial)
        on_dial(ntohs(((const struct sockaddr_in *)to)->sin_port));
    if (ip && source && inet_pton(AF_INET, source, &from.sin_addr) == 1 &&
        bind(fd, (struct sockaddr *)&from, sizeof(from)) != 0)
        return -1;
    return (int)syscall(SYS_connect, fd, to, len);
}
