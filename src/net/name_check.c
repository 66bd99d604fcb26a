/* SPDX-License-Identifier: MIT */
/*
 * Looks up a host name again while a connection to it is used.
 *
 * Invariant: there is at most one look-up under way, and only an answer that
 * names addresses, none of which is the peer's, says that the name has moved.
 */
#include "net/name_check.h"

#include <netinet/in.h>
#include <string.h>

#include "base/deadline.h"

/* A look-up under way is asked after this time whether it is over, then each
 * time that it has taken twice as long: its descriptor is not polled. */
#define FIRST_LOOK (5 * NS_PER_MS)

void name_check_init(struct name_check *c, uint64_t every)
{
    *c = (struct name_check){.every = every, .due = NEVER};
}

void name_check_restart(struct name_check *c, uint64_t now)
{
    name_check_stop(c);
    c->begun = now;
}

/* Addresses may differ in more than that: in the zone of an IPv6 address. */
static bool is_same(const struct sockaddr_storage *a, const struct address *b)
{
    const struct sockaddr_in *a4 = (const void *)a;
    const struct sockaddr_in *b4 = (const void *)&b->bytes;
    const struct sockaddr_in6 *a6 = (const void *)a;
    const struct sockaddr_in6 *b6 = (const void *)&b->bytes;

    if (a->ss_family != b->bytes.ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return a4->sin_port == b4->sin_port &&
               a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return a6->sin6_port == b6->sin6_port &&
           memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

static bool leads_to_peer(const struct addresses *found, int fd)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(peer);

    if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0)
        return true; /* it is being lost, which is found out elsewhere */
    for (size_t i = 0; i < found->count; i++)
        if (is_same(&peer, &found->list[i]))
            return true;
    return false;
}

static bool is_due(const struct name_check *c, bool used, uint64_t now)
{
    if (c->job)
        return now >= c->due;
    return used && c->every && now >= deadline_after(c->begun, c->every);
}

/* Starts the look-up, or asks whether it is over. */
static bool check_addresses(
    struct name_check *c, const struct target *to, int fd, uint64_t now)
{
    struct addresses found = {.count = 0};
    struct text why;
    enum resolve_state state;
    int unpolled;

    if (c->job) {
        state = resolve_poll(c->job, &found, &why);
    } else {
        c->begun = now;
        state = resolve_start(to->address->host, to->address->port, &found,
            &c->job, &unpolled, &why);
    }
    if (state == RESOLVE_WAIT) {
        c->due = deadline_after(now, later(FIRST_LOOK, elapsed(c->begun, now)));
        return false;
    }
    c->job = NULL;
    c->due = NEVER;
    return state == RESOLVE_DONE && !leads_to_peer(&found, fd);
}

bool name_check_moved(struct name_check *c, const struct target *to, int fd,
    bool used, uint64_t now)
{
    return is_due(c, used, now) && check_addresses(c, to, fd, now);
}

void name_check_stop(struct name_check *c)
{
    resolve_abandon(c->job);
    c->job = NULL;
    c->due = NEVER;
}
