/* SPDX-License-Identifier: MIT */
/* Makes what a lock handle knows of its name, and frees it. */
#include "lock/name.h"

#include <stdlib.h>

#include "model/companion.h"

static bool make_key(
    struct lock_name *n, struct slice prefix, struct slice name)
{
    char *bytes = malloc(prefix.len + name.len + 1);
    if (!bytes)
        return false;
    if (prefix.len)
        memcpy(bytes, prefix.data, prefix.len);
    memcpy(bytes + prefix.len, name.data, name.len);
    bytes[prefix.len + name.len] = '\0'; /* for nxl_lock_name() */
    n->key = (struct slice){bytes, prefix.len + name.len};
    return true;
}

bool name_make(
    struct lock_name *n, struct slice prefix, struct slice name, bool fenced)
{
    return make_key(n, prefix, name) &&
           (!fenced || companion_make(n->key, COMPANION_COUNTER, &n->counter));
}

void name_free(struct lock_name *n)
{
    command_cache_free(&n->cache);
    free((char *)n->counter.data);
    free((char *)n->key.data);
}

void name_begin_text(
    const struct lock_name *n, struct slice prefix, struct text *text)
{
    struct slice name = {n->key.data + prefix.len, n->key.len - prefix.len};
    text_set(text, "'");
    text_add_foreign_raw(text, name, FOREIGN_MAX);
    text_add(text, "': ");
}
