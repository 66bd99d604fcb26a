/* SPDX-License-Identifier: MIT */
/*
 * The nodes of a client: each is a server, what is known about the vote of the
 * process there, and the second connection, which listens to its channels.
 *
 * Invariant: a node stays where it is in memory from nodes_make() to
 * nodes_free(), so requests, channels and the poller point to it. Which server
 * has which number in a vote is decided by nodes_at() alone; a request knows
 * its server.
 *
 * How it fits together: an endpoint is a URL (config/url.h), and a target what
 * a connection needs of it. A server (net/state.h) is one connection to a
 * target, and a node a server with its vote and its second connection. What the
 * core sees of a node is a peer (core/state.h).
 */
#ifndef NXLOCK_CLIENT_NODES_H
#define NXLOCK_CLIENT_NODES_H

#include "client/subscriber.h"
#include "core/eligibility.h"
#include "net/server.h"

struct node;

/* What is known about a server's vote; see voters.h. */
struct voter {
    struct eligibility eligibility;
    unsigned judged;              /* number of the connection that was judged */
    const struct node *duplicate; /* REASON_DUPLICATE: the same server's */
    uint64_t failover_at; /* one was seen then that the program has not been
                           * warned of; 0: none */
    uint64_t unconfirmed; /* requests and messages that did not count, or were
                           * not sent, because no majority of the Sentinels had
                           * named it */
};

/* What the client's poller reports. */
struct source {
    enum {
        SOURCE_WAKE,          /* nxl_client.wake */
        SOURCE_TIMER,         /* nxl_client.timer */
        SOURCE_SERVER,        /* node.connection */
        SOURCE_SUBSCRIPTION,  /* node.subscription */
        SOURCE_SENTINEL,      /* of a Sentinel: see sentinel_watch.h */
        SOURCE_FORMER_PRIMARY /* of a former primary, which it also asks */
    } kind;
};

struct node {
    struct node *next; /* NULL: the last one */
    struct nxl_client *client;
    struct server server;
    struct voter voter;
    struct subscriber subscriber;
    struct source connection;   /* of the server */
    struct source subscription; /* of the subscriber */
};

struct nodes {
    struct node *first;         /* in the order of their numbers */
    struct endpoint *endpoints; /* owned, one a URL; nodes refer to them */
    unsigned endpoint_count;
    struct nxl_client *client;
    const struct poller *poller; /* the client's, as is the next one */
    struct entropy *entropy;
    struct secrets secrets; /* of all nodes */
    struct list spares;     /* for the cleanups at all of them */
};

/* Without any node yet. nodes is a part of client, whose entropy is set before
 * the first node is added. */
void nodes_init(struct nodes *nodes, struct nxl_client *client,
    const struct poller *poller);
/* Makes a node for each endpoint, in that order. Takes the endpoints over in
 * any case. sole, seed: as server_init(). False: no memory. */
bool nodes_make(struct nodes *nodes, struct endpoint *list, unsigned count,
    bool sole, uint64_t seed);
void nodes_free(struct nodes *nodes);

/* The node that is number index in a vote; there must be one. */
struct node *nodes_at(const struct nodes *nodes, unsigned index);

/* for (n = nodes_first(nodes); n; n = n->next). A client that has one server
 * has one node, which is this one. */
static inline struct node *nodes_first(const struct nodes *nodes)
{
    return nodes->first;
}

/* The node of a server that a request, or the client's loop, knows. */
static inline struct node *node_of(const struct server *s)
{
    return list_entry(s, struct node, server);
}

#endif
