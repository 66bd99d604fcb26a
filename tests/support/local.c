/* SPDX-License-Identifier: MIT */
/*
 * Every socket is on the loopback or in a directory made for the purpose, so
 * that tests can run side by side and beside anything else.
 */
#include "support/local.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PORT_FIRST = 20001, PORT_LAST = 32767, PORT_TRIES = 200 };

static void die(const char *what)
{
    fprintf(stderr, "test support: %s: %s\n", what, strerror(errno));
    abort();
}

void local_dir_make(char dir[LOCAL_PATH])
{
    const char *under = getenv("TMPDIR");

    /* A long one would leave no room for the name of a socket. */
    if (!under || *under == '\0' || strlen(under) > 60)
        under = "/tmp";
    snprintf(dir, LOCAL_PATH, "%s/nxlock-XXXXXX", under);
    if (!mkdtemp(dir))
        die(dir);
}

static int remove_one(
    const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void local_dir_remove(const char *dir)
{
    if (*dir != '\0')
        nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void local_path(char path[LOCAL_PATH], const char *dir, const char *name)
{
    if (snprintf(path, LOCAL_PATH, "%s/%s", dir, name) >= LOCAL_PATH) {
        errno = ENAMETOOLONG;
        die(dir);
    }
}

static struct sockaddr_un unix_address(const char *path)
{
    struct sockaddr_un a;
    memset(&a, 0, sizeof(a));
    a.sun_family = AF_UNIX;
    memcpy(a.sun_path, path, strlen(path) + 1);
    return a;
}

static struct sockaddr_in tcp_address(uint16_t port)
{
    struct sockaddr_in a;
    memset(&a, 0, sizeof(a));
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

int local_listen_unix(const char *path)
{
    struct sockaddr_un a = unix_address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die("socket");
    unlink(path);
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(fd, 64)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int listen_at(uint16_t port)
{
    struct sockaddr_in a = tcp_address(port);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(fd, 64)) {
        close(fd);
        return -1;
    }
    return fd;
}

int local_listen_tcp(uint16_t *port)
{
    if (*port != 0)
        return listen_at(*port);
    for (int i = 0; i < PORT_TRIES; i++) {
        uint16_t r;
        if (getrandom(&r, sizeof(r), 0) != sizeof(r))
            die("getrandom");
        r = (uint16_t)(PORT_FIRST + r % (PORT_LAST - PORT_FIRST + 1));
        int fd = listen_at(r);
        if (fd >= 0) {
            *port = r;
            return fd;
        }
    }
    return -1;
}

bool local_refuse_tcp(int listener, bool refused)
{
    /* Others ask for SO_REUSEADDR, too: with it both would be let. */
    int reuse = !refused;

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    return refused ? shutdown(listener, SHUT_RDWR) == 0
                   : listen(listener, 64) == 0;
}

int local_connect(const char *path, uint16_t port)
{
    int rc;
    int fd = socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die("socket");
    if (path) {
        struct sockaddr_un a = unix_address(path);
        rc = connect(fd, (struct sockaddr *)&a, sizeof(a));
    } else {
        struct sockaddr_in a = tcp_address(port);
        local_no_delay(fd);
        rc = connect(fd, (struct sockaddr *)&a, sizeof(a));
    }
    if (rc != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

bool local_send(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

void local_no_delay(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void local_make_reset(int fd)
{
    struct linger now = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}
