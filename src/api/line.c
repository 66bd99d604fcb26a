/* SPDX-License-Identifier: MIT */
/* Empties the line of a lock: deletes its key, for everybody who waits. */
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "api/query.h"
#include "base/companion.h"

int nxl_lock_empty_line(nxl_lock *lock)
{
    struct slice words[2] = {{"DEL", 3}, {NULL, 0}};
    nxl_answer *answer;
    if (!lock)
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    if (lock->client->server_count > 1)
        return NXL_FREE;
    if (!companion_make(lock->operation.verb.key, COMPANION_LINE, &words[1])) {
        client_lock(lock->client);
        text_set(&lock->client->message,
            "out of memory: cannot store the key of the line");
        client_unlock(lock->client);
        return NXL_E_NOMEM;
    }
    int rc = query_run(lock->client, 0, words, 2, &answer);
    free((char *)words[1].data);
    if (rc != NXL_OK)
        return rc;
    bool was_empty = strcmp(nxl_answer_item(answer, 0, NULL), "0") == 0;
    nxl_answer_free(answer);
    return was_empty ? NXL_FREE : NXL_OK;
}
