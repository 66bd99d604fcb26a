/* SPDX-License-Identifier: MIT */
/*
 * Tells the program of each attempt to connect to an IPv4 address.
 */
/* With the extensions of GNU, connect() takes a union, which no other file can
 * define. */
#undef _GNU_SOURCE
#define _DEFAULT_SOURCE
#include "dials.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In front of the one of the C library, for the library that is tested too. */
__attribute__((visibility("default"))) int connect(
    int fd, const struct sockaddr *to, socklen_t len)
{
    if (to->sa_family == AF_INET)
        on_dial(ntohs(((const struct sockaddr_in *)to)->sin_port));
    return (int)syscall(SYS_connect, fd, to, len);
}
