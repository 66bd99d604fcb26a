/* SPDX-License-Identifier: MIT */
/*
 * The second connection of a client of one server: it listens to a channel of
 * the client's own, on which a release tells a waiting token that it now has
 * the lock. Made when a lock first waits; a client that never waits pays
 * nothing for it. All calls need the client's mutex.
 *
 * Messages only save time. Without them (no permission, a proxy, no memory)
 * locks wait by asking again and again.
 */
#ifndef NXLOCK_CLIENT_SUBSCRIBER_H
#define NXLOCK_CLIENT_SUBSCRIBER_H

#include "base/entropy.h"
#include "net/server.h"

struct nxl_client;

enum subscription {
    SUBSCRIPTION_NONE,   /* no messages for now; subscriber_words() says why */
    SUBSCRIPTION_COMING, /* it is being made, or made anew */
    SUBSCRIPTION_UP
};

struct subscriber {
    struct nxl_client *client;
    /* Of the client. */
    const struct server *commands; /* the server; its connection for commands */
    const struct poller *poller;
    struct secrets *secrets;
    struct entropy *entropy;
    unsigned key; /* in the poller */
    /* Called in a turn; NULL: nobody is told. They may call anything here but
     * subscriber_turn(). payload is valid until they return. */
    void (*on_message)(
        struct nxl_client *client, struct slice payload, uint64_t now);
    /* State or number has changed. */
    void (*on_change)(struct nxl_client *client, uint64_t now);
    struct listener *listener; /* NULL: no lock has waited, or no memory */
};

/* --------------------------------------------------- for locks that wait */

/* A lock waits: subscribes if necessary. False: out of memory, or the client
 * has several servers; the state is NONE. */
bool subscriber_want(struct subscriber *s, uint64_t now);
/* No lock waits any longer: keeps the connection as long as it lasts, without
 * checking it. */
void subscriber_rest(struct subscriber *s, uint64_t now);

enum subscription subscriber_state(const struct subscriber *s);
/* How many subscriptions have been made: with each, messages may have been lost
 * before it. */
unsigned subscriber_number(const struct subscriber *s);
/* The same from the first subscriber_want() to the client's end; "-" before. */
struct slice subscriber_channel(const struct subscriber *s);
/* NONE: the reason, for people; else "". */
const char *subscriber_words(const struct subscriber *s);

/* Does the server deliver what is published over the connection for commands
 * of that number? False: that is known, or there is nothing to test now. True:
 * the next command over it should count the listeners of the channel. */
bool subscriber_untested(const struct subscriber *s, unsigned commands);
/* The result, if number was subscriber_number() when it was sent. deaf: the
 * channel has no listener. Then it subscribes anew, once for each connection
 * for commands (a failover may have moved that one only). If that does not
 * help, the state is NONE until either connection is made anew. */
void subscriber_tested(struct subscriber *s, unsigned number, unsigned commands,
    bool deaf, uint64_t now);

/* ------------------------ for the turn, from when subscriber_used() is true */

/* Has a lock waited? Until then there is nothing to do. */
static inline bool subscriber_used(const struct subscriber *s)
{
    return s->listener;
}

uint64_t subscriber_deadline(const struct subscriber *s);
void subscriber_ready(struct subscriber *s, short revents, uint64_t now);
/* Takes completions, decides, reports. */
void subscriber_turn(struct subscriber *s, uint64_t now);
void subscriber_push(struct subscriber *s, uint64_t now);
/* Must subscriber_turn() be called after a push? */
bool subscriber_failed(const struct subscriber *s);

/* ------------------------------------------------------------ for its end */

/* As server_stop(). */
struct job *subscriber_stop(struct subscriber *s);
/* Before the server is freed. */
void subscriber_free(struct subscriber *s);
/* As server_close_in_child(). */
void subscriber_close_in_child(struct subscriber *s);

#endif
