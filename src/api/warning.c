/* SPDX-License-Identifier: MIT */
/*
 * The one warning of a client. Keeps: the user's function is called at most
 * once, with no mutex held; its text is not written after that.
 */
#include "api/client.h"

void client_note_grant(struct nxl_client *client)
{
    struct text *text = &client->warning_text;
    if (!client->warning || client->warned)
        return;
    for (unsigned i = 0; i < client->server_count && !client->warned; i++) {
        const struct server *s = &client->servers[i];
        if (!ladder_weak(&s->ladder))
            continue;
        client->warned = true;
        text_clear(text);
        text_addf(text, "%s: it locks by ", s->endpoint.name.data);
        ladder_describe(&s->ladder, text);
        text_add(text, ": see \"Locks by unix times\" in docs/guarantees.md");
    }
    if (client->warned)
        atomic_store(&client->warning_due, true);
}

void client_warn(struct nxl_client *client)
{
    if (!atomic_load_explicit(&client->warning_due, memory_order_relaxed) ||
        !atomic_exchange(&client->warning_due, false))
        return;
    client->warning(client->warning_arg, client->warning_text.data);
}
