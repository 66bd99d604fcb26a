/* SPDX-License-Identifier: MIT */
/*
 * The one warning of a client. Keeps: the user's function is called at most
 * once, by the thread that gets the grant, with no mutex held.
 */
#include "api/client.h"

void client_note_grant(struct nxl_client *client)
{
    if (!client->warning || client->warned)
        return;
    for (unsigned i = 0; i < client->server_count; i++)
        client->warned |= ladder_weak(&client->servers[i].ladder);
    if (client->warned)
        atomic_store(&client->warning_due, true);
}

static void compose(struct nxl_client *client, struct text *text)
{
    text_clear(text);
    client_lock(client);
    for (unsigned i = 0; i < client->server_count; i++) {
        const struct server *s = &client->servers[i];
        if (!ladder_weak(&s->ladder))
            continue;
        text_addf(text, "%s: it locks by ", s->endpoint.name.data);
        ladder_describe(&s->ladder, text);
        text_add(text, ": see \"Locks by unix times\" in docs/guarantees.md");
        break;
    }
    client_unlock(client);
}

void client_warn(struct nxl_client *client)
{
    if (!atomic_load_explicit(&client->warning_due, memory_order_relaxed) ||
        !atomic_exchange(&client->warning_due, false))
        return;
    struct text text;
    compose(client, &text);
    if (text.len) /* else that server has been replaced meanwhile */
        client->warning(client->warning_arg, text.data);
}
