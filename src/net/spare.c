/* SPDX-License-Identifier: MIT */
/* Reserves cleaners. */
#include "net/spare.h"

#include "model/token.h"

static struct cleaner *pop_spare(struct server *s)
{
    struct list *node = list_pop(s->spares);
    return node ? list_entry(node, struct cleaner, node) : NULL;
}

bool spare_reserve(struct request *r, struct slice key)
{
    if (!r->spare)
        r->spare = cleaner_reuse(pop_spare(r->server), key, TOKEN_MAX);
    r->counts_a_spare = r->counts_a_spare || r->spare;
    return r->spare;
}

void spare_give_back(struct request *r)
{
    if (r->spare)
        list_append(r->server->spares, &r->spare->node);
    r->spare = NULL;
}

void spare_free(struct request *r)
{
    spare_give_back(r);
    if (r->counts_a_spare)
        cleaner_free(pop_spare(r->server));
    r->counts_a_spare = false;
}
