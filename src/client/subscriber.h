/* SPDX-License-Identifier: MIT */
/*
 * The second connection to a node of a client of one server: it listens to a
 * channel for each name that its locks have waited for, on which a release
 * tells a waiting token that it now has the lock. Made when a lock first waits;
 * a client that never waits pays nothing for it. All calls need the client's
 * mutex.
 *
 * A channel is "nxl:", the client's UUID, ":" and the lock's key, so that a
 * server can allow a user to publish for some names and not for others.
 *
 * Messages only save time. Without them (no permission, a proxy, no memory)
 * locks wait by asking again and again.
 */
#ifndef NXLOCK_CLIENT_SUBSCRIBER_H
#define NXLOCK_CLIENT_SUBSCRIBER_H

#include "base/entropy.h"
#include "base/index.h"
#include "core/line.h"
#include "net/server.h"

struct nxl_client;

/* One channel: from the first wait for its name at least until the last lock of
 * that name is freed. */
struct channel {
    struct slice name;
    /* What the locks that wait know of it. Each number is a subscription:
     * messages may have been lost before it. */
    struct messages messages;
    struct list waiters; /* the driver's: the locks that wait now */

    /* private */
    struct subscriber *subscriber;
    struct index_entry entry; /* in listener.channels */
    struct list node;         /* in listener.all */
    struct list active;       /* in listener.active, while locks wait */
    unsigned users, waits;
    unsigned connection; /* that has confirmed the subscription; 0: none */
    bool refused;        /* until retry_at, or a new connection for commands */
    unsigned commands_connection; /* refused: that connection then */
    uint64_t retry_at;
    uint64_t sent_at;      /* when SUBSCRIBE was submitted last */
    struct asking *asking; /* NULL: it is not under way */
};

struct subscriber {
    struct nxl_client *client;
    /* Its node's, with the connection for commands. NULL: one of several
     * servers, whose locks do not wait in line. */
    const struct server *commands;
    /* Of the client. */
    const struct poller *poller;
    struct secrets *secrets;
    struct entropy *entropy;
    struct source *source; /* in the poller */
    /* Called in an iteration of the loop; NULL: nobody is told. They may call
     * anything here but subscriber_process(). payload is valid until they
     * return. */
    void (*on_message)(
        struct channel *channel, struct slice payload, uint64_t now);
    /* channel.messages have changed. */
    void (*on_change)(struct channel *channel, uint64_t now);
    struct listener *listener; /* NULL: no lock has waited, or no memory */
};

/* --------------------------------------------------- for locks that wait */

/* The channel for a key, for one more lock. NULL: out of memory, the key is too
 * long, or the client has several servers. */
struct channel *subscriber_open(struct subscriber *s, struct slice key);
/* One lock less. Without any, the channel is kept for a while. */
void channel_close(struct channel *c, uint64_t now);

/* A lock begins to wait: subscribes if necessary. */
void channel_want(struct channel *c, uint64_t now);
/* It waits no longer. While none does, the connection is kept as long as it
 * lasts, and not made again. */
void channel_unwant(struct channel *c, uint64_t now);

/* The client's name in its channels, and in the line: its UUID. The same from
 * the first subscriber_open() to the client's end; "-" before. */
struct slice subscriber_id(const struct subscriber *s);
/* Why there are no messages, for people; else "". */
const char *subscriber_words(const struct subscriber *s);

/* The number of the second connection; 0: there is none. */
unsigned subscriber_connection(const struct subscriber *s);
/* Does the server deliver what is published over the connection for commands
 * of that number? False: that is known, or there is nothing to test now. True:
 * the next command over it should count the listeners of the channel. */
bool channel_untested(const struct channel *c, unsigned commands);
/* The result, if connection was subscriber_connection() when it was sent.
 * no_subscriber: nobody subscribes to the channel. Then the client subscribes
 * anew, once for each connection for commands (a failover may have moved that
 * one only). If that does not help, there are no messages until either
 * connection is made anew. */
void subscriber_tested(struct subscriber *s, unsigned connection,
    unsigned commands, bool no_subscriber, uint64_t now);

/* ------------------------ for the loop, from when subscriber_used() is true */

/* Has a lock waited? Until then there is nothing to do. */
static inline bool subscriber_used(const struct subscriber *s)
{
    return s->listener;
}

uint64_t subscriber_deadline(const struct subscriber *s);
/* Notes what the poller has reported, for subscriber_process(). */
void subscriber_ready(struct subscriber *s, short revents);
/* Takes completions, decides, reports. */
void subscriber_process(struct subscriber *s, uint64_t now);
/* True: something has failed, so subscriber_process() must be called again. */
bool subscriber_push(struct subscriber *s, uint64_t now);

/* The node's server is about to be at another address: see server_leave(). */
void subscriber_leave(struct subscriber *s, const char *why, uint64_t now);

/* ------------------------------------------------------------ for its end */

/* As server_stop(). */
struct job *subscriber_stop(struct subscriber *s);
/* Before the server is freed. */
void subscriber_free(struct subscriber *s);
/* As server_close_in_child(). */
void subscriber_close_in_child(struct subscriber *s);

#endif
