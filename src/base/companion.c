/* SPDX-License-Identifier: MIT */
/* Composes the names of the keys that accompany a lock's key. */
#include "base/companion.h"

#include <stdlib.h>

bool key_has_tag(struct slice key)
{
    const char *open = memchr(key.data, '{', key.len);
    size_t rest = open ? key.len - (size_t)(open + 1 - key.data) : 0;
    const char *close = rest ? memchr(open + 1, '}', rest) : NULL;

    return close && close > open + 1;
}

bool companion_make(
    struct slice key, enum companion what, struct slice *companion)
{
    static const char *const endings[][2] = {
        [COMPANION_COUNTER] = {"}:f", ":f"},
        [COMPANION_LINE] = {"}:nxl-l", "::nxl-l"},
        [COMPANION_MARK] = {"}:nxl-w", "::nxl-w"},
        [COMPANION_RECORD] = {"}:once", "::once"},
    };
    bool tagged = key_has_tag(key);
    const struct slice parts[] = {
        slice_of(tagged ? "" : "{"), key, slice_of(endings[what][tagged])};
    size_t len = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        len += parts[i].len;
    char *bytes = malloc(len);
    if (!bytes)
        return false;
    *companion = (struct slice){bytes, len};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].len > 0)
            memcpy(bytes, parts[i].data, parts[i].len);
        bytes += parts[i].len;
    }
    return true;
}
