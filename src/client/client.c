/* SPDX-License-Identifier: MIT */
/* What all parts of the library need of a client: its mode, the state of its
 * connections, and how it ends. */
#include "client/client.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/deadline.h"
#include "client/sentinel_watch.h"

bool client_enter(struct nxl_client *client, enum mode mode)
{
    if (client->mode == MODE_NONE)
        client->mode = mode;
    return client->mode == mode;
}

void client_read_peers(struct nxl_client *client)
{
    struct peer *peer = client->peers;
    for (const struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        const struct server *s = &n->server;
        uint64_t timeout = ms_to_ns(s->to.settings->timeout_ms);
        peer->link = s->state == SERVER_UP     ? PEER_UP
                     : s->state == SERVER_DOWN ? PEER_DOWN
                                               : PEER_CONNECTING;
        peer->since = deadline_before(s->connect_end, timeout);
        peer++;
    }
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void client_close_descriptors(struct nxl_client *client)
{
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        server_close_in_child(&n->server);
        subscriber_close_in_child(&n->subscriber);
    }
    if (client->sentinel_watch)
        sentinel_watch_close_in_child(client->sentinel_watch);
    close_one(&client->wake_fd);
    close_one(&client->ready_fd);
    close_one(&client->poller.fd);
    close_one(&client->timer_fd);
    close_one(&client->alarm.fd);
    close_one(&client->loss_fd);
}

void client_destroy(struct nxl_client *client)
{
    sentinel_watch_free(client->sentinel_watch);
    client->sentinel_watch = NULL;
    nodes_free(&client->nodes);
    timers_free(&client->timers);
    timers_free(&client->renewals);
    index_free(&client->joined);
    free((char *)client->prefix.data);
    free((char *)client->marker.data);
    client_close_descriptors(client);
    entropy_free(client->entropy);
    free(client);
}

void client_unref(struct nxl_client *client)
{
    size_t left = --client->refs;
    int cancel_state = client->cancel_state;
    pthread_mutex_unlock(&client->mutex);
    if (!left) {
        pthread_mutex_destroy(&client->mutex);
        client_destroy(client);
    }
    pthread_setcancelstate(cancel_state, NULL);
}
