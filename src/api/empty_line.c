/* SPDX-License-Identifier: MIT */
/* Empties the line of a lock: deletes its key, for everybody who waits. And
 * turns off what a release does for a line. */
#include <stdlib.h>

#include "api/private.h"
#include "api/query.h"
#include "lock/handle.h"
#include "model/companion.h"

int lock_empty_line(nxl_lock *lock)
{
    struct slice words[2] = {{"DEL", 3}, {NULL, 0}};
    if (!lock)
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    if (lock->client->server_count > 1)
        return NXL_FREE;
    if (!companion_make(lock->name.key, COMPANION_LINE, &words[1])) {
        client_lock(lock->client);
        text_set(&lock->client->errmsg,
            "out of memory: cannot store the key of the line");
        client_unlock(lock->client);
        return NXL_E_NOMEM;
    }
    int rc = query_change(lock->client, words, 2);
    free((char *)words[1].data);
    return rc;
}

void client_ignore_lines(nxl_client *client)
{
    client_lock(client);
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next)
        n->server.dialect.no_line = true;
    client_unlock(client);
}
