/* SPDX-License-Identifier: MIT */
/* The nodes of a client: how they are made, found and freed. */
#include "client/nodes.h"

#include <stdlib.h>

#include "client/client.h"

/* A server may repeat what another one was sent, if one proxy leads to both. */
static void share_secrets(struct nxl_client *client, struct server *s)
{
    secrets_add(&client->secrets, &s->login.password);
    secrets_add(&client->secrets, &s->login.former);
    s->secrets = &client->secrets;
}

bool nodes_add(struct nxl_client *client, const struct endpoint *endpoint,
    bool sole, uint64_t seed)
{
    struct node **end = &client->nodes.first;
    struct node *n = calloc(1, sizeof(*n));
    if (!n)
        return false;
    while (*end)
        end = &(*end)->next;
    *end = n;
    n->client = client;
    server_init(&n->server, endpoint, sole, seed);
    share_secrets(client, &n->server);
    n->server.spares = &client->spares;
    n->connection.kind = SOURCE_SERVER;
    server_set_poller(&n->server, &client->poller, &n->connection);
    n->messages.kind = SOURCE_MESSAGES;
    n->subscriber = (struct subscriber){.client = client,
        .commands = &n->server,
        .poller = &client->poller,
        .secrets = &client->secrets,
        .entropy = client->entropy,
        .source = &n->messages};
    return true;
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
}

struct node *nodes_at(const struct nodes *nodes, unsigned index)
{
    struct node *n = nodes->first;
    while (index-- > 0)
        n = n->next;
    return n;
}
