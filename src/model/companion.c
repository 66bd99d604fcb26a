/* SPDX-License-Identifier: MIT */
/* Composes and reads the names of the keys that accompany a lock's key. */
#include "model/companion.h"

#include <stdio.h>
#include <stdlib.h>

bool key_has_tag(struct slice key)
{
    const char *open = key.len ? memchr(key.data, '{', key.len) : NULL;
    size_t rest = open ? key.len - (size_t)(open + 1 - key.data) : 0;
    const char *close = rest ? memchr(open + 1, '}', rest) : NULL;

    return close && close > open + 1;
}

bool key_is_apart(struct slice key)
{
    return key.len > 0 && !key_has_tag(key) && memchr(key.data, '}', key.len);
}

/* Behind a key without a hash tag, which has a brace before it too; and behind
 * one that has a tag. */
static const char *const endings[COMPANIONS][2] = {
    [COMPANION_COUNTER] = {"}:f", ":f"},
    [COMPANION_LINE] = {"}:nxl-l", "::nxl-l"},
    [COMPANION_LINE_MARK] = {"}:nxl-w", "::nxl-w"},
    [COMPANION_GAP] = {"}:nxl-g", "::nxl-g"},
    [COMPANION_RECORD] = {"}:once", "::once"},
    [COMPANION_EVERY] = {"}:every", ":every"},
};

bool companion_make(
    struct slice key, enum companion what, struct slice *companion)
{
    bool tagged = key_has_tag(key);
    const struct slice parts[] = {
        slice_of(tagged ? "" : "{"), key, slice_of(endings[what][tagged])};
    size_t len = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        len += parts[i].len;
    char *bytes = malloc(len + 1);
    if (!bytes)
        return false;
    *companion = (struct slice){bytes, len};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].len > 0)
            memcpy(bytes, parts[i].data, parts[i].len);
        bytes += parts[i].len;
    }
    *bytes = '\0';
    return true;
}

/* Takes the brace, if there is one, and the ending from the name. */
static bool take_around(
    struct slice *name, const char *brace, const char *ending)
{
    size_t before = strlen(brace), after = strlen(ending);

    if (name->len <= before + after || memcmp(name->data, brace, before) != 0 ||
        memcmp(name->data + name->len - after, ending, after) != 0)
        return false;
    name->data += before;
    name->len -= before + after;
    return true;
}

bool companion_of(
    struct slice companion, enum companion *what, struct slice *key)
{
    for (unsigned i = 0; i < COMPANIONS; i++) {
        for (unsigned tagged = 0; tagged < 2; tagged++) {
            struct slice rest = companion;
            if (!take_around(&rest, tagged ? "" : "{", endings[i][tagged]) ||
                key_has_tag(rest) != (bool)tagged)
                continue;
            *what = (enum companion)i;
            *key = rest;
            return true;
        }
    }
    return false;
}

size_t channel_name(char *out, const char *client, struct slice key)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t len = strlen(client);
    char *to = out;
    memcpy(to, "nxl:", 4);
    memcpy(to + 4, client, len);
    to += 4 + len;
    *to++ = ':';
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.data[i];
        if (c > ' ' && c != 0x7f && c != '%') {
            *to++ = (char)c;
            continue;
        }
        *to++ = '%';
        *to++ = hex[c >> 4];
        *to++ = hex[c & 15];
    }
    return (size_t)(to - out);
}
