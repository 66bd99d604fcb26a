/* SPDX-License-Identifier: MIT */
/*
 * Looks up host names, in a thread where that may block.
 *
 * Invariant: only names that need getaddrinfo()'s modules get a thread; numbers
 * and "localhost" are answered without one.
 */
#include "net/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "net/job.h"

struct resolve {
    struct job job;
    uint16_t port;
    int failure; /* getaddrinfo's */
    int cause;   /* errno, when failure is EAI_SYSTEM */
    struct addresses found;
    char host[];
};

static bool is_known(const struct addresses *found, const struct addrinfo *info)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->list[i].len == info->ai_addrlen &&
            memcmp(&found->list[i].bytes, info->ai_addr, info->ai_addrlen) == 0)
            return true;
    return false;
}

/* Returns getaddrinfo's result; if that is EAI_SYSTEM, errno says why. */
static int get_addresses(
    const char *host, uint16_t port, int flags, struct addresses *found)
{
    struct addrinfo hints = {0}, *list = NULL;
    char service[8];

    /* Not AI_ADDRCONFIG: it hides the loopback of a machine that has no
     * other address. */
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    snprintf(service, sizeof(service), "%u", (unsigned)port);
    found->count = 0;
    int failure = getaddrinfo(host, service, &hints, &list);
    if (failure != 0)
        return failure;
    for (struct addrinfo *i = list; i; i = i->ai_next) {
        if (found->count == RESOLVE_MAX)
            break;
        if ((i->ai_family != AF_INET && i->ai_family != AF_INET6) ||
            i->ai_addrlen > sizeof(struct sockaddr_storage) ||
            is_known(found, i))
            continue;
        struct address *next = &found->list[found->count++];
        memset(next, 0, sizeof(*next));
        memcpy(&next->bytes, i->ai_addr, i->ai_addrlen);
        next->len = i->ai_addrlen;
    }
    freeaddrinfo(list);
    return found->count > 0 ? 0 : EAI_NONAME;
}

static void explain(
    struct text *error, const char *host, int failure, int cause)
{
    text_set(error, "cannot resolve '");
    text_add_foreign(error, slice_of(host));
    text_add(error, "': ");
    text_add(
        error, failure == EAI_SYSTEM ? strerror(cause) : gai_strerror(failure));
}

static void work(struct job *job)
{
    struct resolve *resolve = (struct resolve *)job;

    resolve->failure =
        get_addresses(resolve->host, resolve->port, 0, &resolve->found);
    resolve->cause = errno;
}

static void dispose(struct job *job)
{
    free(job); /* the first member */
}

/* NULL: errno says why. */
static struct resolve *start_job(const char *host, uint16_t port)
{
    size_t len = strlen(host);
    struct resolve *fresh = calloc(1, sizeof(*fresh) + len + 1);

    if (!fresh)
        return NULL;
    fresh->job.work = work;
    fresh->job.dispose = dispose;
    fresh->port = port;
    memcpy(fresh->host, host, len);
    int failure = job_start(&fresh->job);
    if (failure == 0)
        return fresh;
    free(fresh);
    errno = failure;
    return NULL;
}

static void find_localhost(uint16_t port, struct addresses *found)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6,
        .sin6_port = htons(port),
        .sin6_addr = IN6ADDR_LOOPBACK_INIT,
    };

    memset(found, 0, sizeof(*found));
    memcpy(&found->list[0].bytes, &v4, sizeof(v4));
    found->list[0].len = sizeof(v4);
    memcpy(&found->list[1].bytes, &v6, sizeof(v6));
    found->list[1].len = sizeof(v6);
    found->count = 2;
}

enum resolve_state resolve_start(const char *host, uint16_t port,
    struct addresses *found, struct resolve **job, int *fd, struct text *error)
{
    if (strcasecmp(host, "localhost") == 0 ||
        strcasecmp(host, "localhost.") == 0) {
        find_localhost(port, found);
        return RESOLVE_DONE;
    }
    int failure = get_addresses(host, port, AI_NUMERICHOST, found);
    if (failure == 0)
        return RESOLVE_DONE;
    /* No host name contains a colon, so this is an IPv6 address whose zone this
     * machine does not have. Failures other than "not numeric" are this
     * machine's. */
    if (failure != EAI_NONAME || strchr(host, ':')) {
        explain(error, host, failure, errno);
        if (strchr(host, '%'))
            text_add(error, " (does this machine have that zone?)");
        return RESOLVE_FAILED;
    }

    struct resolve *fresh = start_job(host, port);
    if (!fresh) {
        explain(error, host, EAI_SYSTEM, errno);
        text_add(error, " (cannot start a thread for the look-up)");
        return RESOLVE_FAILED;
    }
    *job = fresh;
    *fd = fresh->job.fd;
    return RESOLVE_WAIT;
}

enum resolve_state resolve_poll(
    struct resolve *job, struct addresses *found, struct text *error)
{
    enum resolve_state state = RESOLVE_DONE;

    if (!job_over(&job->job))
        return RESOLVE_WAIT;
    if (job->failure == 0) {
        *found = job->found;
    } else {
        explain(error, job->host, job->failure, job->cause);
        state = RESOLVE_FAILED;
    }
    job_drop(&job->job);
    return state;
}

bool resolve_is_of(const struct resolve *job, const char *host, uint16_t port)
{
    return strcmp(job->host, host) == 0 && job->port == port;
}

void resolve_abandon(struct resolve *job)
{
    if (job)
        job_drop(&job->job);
}

void address_show(const struct address *address, struct text *text)
{
    const void *bytes = &address->bytes;
    char words[INET6_ADDRSTRLEN];

    if (address->bytes.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = bytes;
        inet_ntop(AF_INET, &v4->sin_addr, words, sizeof(words));
        text_addf(text, "%s:%u", words, (unsigned)ntohs(v4->sin_port));
    } else if (address->bytes.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = bytes;
        inet_ntop(AF_INET6, &v6->sin6_addr, words, sizeof(words));
        text_addf(text, "[%s]:%u", words, (unsigned)ntohs(v6->sin6_port));
    }
}
