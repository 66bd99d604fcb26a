/* SPDX-License-Identifier: MIT */
/*
 * Does a server's host name still lead to the server that a connection was made
 * to? Behind a name that is moved at a failover, the former primary may go on
 * serving the connections that it has. So the name is looked up again while one
 * is used, without blocking.
 *
 * A look-up that fails, or is not answered, says nothing.
 */
#ifndef NXLOCK_NET_NAME_CHECK_H
#define NXLOCK_NET_NAME_CHECK_H

#include "config/url.h"
#include "net/resolve.h"

struct name_check {
    uint64_t every;      /* ns between two look-ups; 0: none is made */
    uint64_t begun;      /* the connection, or the last look-up */
    struct resolve *job; /* the look-up under way, or NULL */
    /* When name_check_moved() must be called even if the connection is not
     * used; NEVER: no look-up is under way. */
    uint64_t due;
};

/* every as in the struct. */
void name_check_init(struct name_check *c, uint64_t every);

/* A connection has been made, by a look-up of its own. */
void name_check_restart(struct name_check *c, uint64_t now);

/* Takes the result of a look-up that is over; begins one, if it is time for it
 * and the connection is used. True: none of the addresses found now is the peer
 * of the connection with the descriptor fd. */
bool name_check_moved(struct name_check *c, const struct target *to, int fd,
    bool used, uint64_t now);

/* Gives up the look-up under way; in a fork()ed child, too. */
void name_check_stop(struct name_check *c);

#endif
