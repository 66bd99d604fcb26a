/* SPDX-License-Identifier: MIT */
/* The nodes of a client: how they are made, found and freed. */
#include "client/nodes.h"

#include <stdlib.h>

#include "net/tls/tls.h"

void nodes_init(
    struct nodes *nodes, struct nxl_client *client, const struct poller *poller)
{
    *nodes = (struct nodes){.client = client, .poller = poller};
    list_init(&nodes->spares);
}

/* Adds a node, with the next number. False: no memory. */
static bool add(
    struct nodes *nodes, const struct target *to, bool sole, uint64_t seed)
{
    struct node **end = &nodes->first;
    struct node *n = calloc(1, sizeof(*n));
    if (!n)
        return false;
    while (*end)
        end = &(*end)->next;
    *end = n;
    n->client = nodes->client;
    server_init(&n->server, to, sole, seed);
    n->server.replica_wait.several_servers = nodes->endpoint_count > 1;
    server_share_secrets(&n->server, &nodes->secrets);
    n->server.spares = &nodes->spares;
    n->connection.kind = SOURCE_SERVER;
    server_set_poller(&n->server, nodes->poller, &n->connection);
    n->subscription.kind = SOURCE_SUBSCRIPTION;
    n->subscriber = (struct subscriber){.client = nodes->client,
        .commands = nodes->endpoint_count == 1 ? &n->server : NULL,
        .poller = nodes->poller,
        .secrets = &nodes->secrets,
        .entropy = nodes->entropy,
        .source = &n->subscription};
    return true;
}

static void free_endpoint(struct endpoint *e)
{
    tls_free(e->tls);
    endpoint_free(e);
}

bool nodes_make(struct nodes *nodes, struct endpoint *list, unsigned count,
    bool sole, uint64_t seed)
{
    nodes->endpoints = calloc(count, sizeof(*list));
    for (unsigned i = 0; i < count; i++) {
        if (nodes->endpoints)
            nodes->endpoints[i] = list[i];
        else
            free_endpoint(&list[i]);
    }
    nodes->endpoint_count = nodes->endpoints ? count : 0;
    bool made = nodes->endpoints;
    for (unsigned i = 0; made && i < count; i++) {
        struct target to = target_of(&nodes->endpoints[i]);
        made = add(nodes, &to, sole, seed + i);
    }
    return made;
}

void nodes_free(struct nodes *nodes)
{
    while (nodes->first) {
        struct node *n = nodes->first;
        nodes->first = n->next;
        subscriber_free(&n->subscriber);
        server_free(&n->server);
        free(n);
    }
    cleaners_free(&nodes->spares);
    while (nodes->endpoint_count > 0)
        free_endpoint(&nodes->endpoints[--nodes->endpoint_count]);
    free(nodes->endpoints);
    nodes->endpoints = NULL;
}

struct node *nodes_at(const struct nodes *nodes, unsigned index)
{
    struct node *n = nodes->first;
    while (index-- > 0)
        n = n->next;
    return n;
}
