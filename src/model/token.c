/* SPDX-License-Identifier: MIT */
/*
 * Writes and reads tokens.
 *
 * Invariant: a token is 36 bytes of lower-case UUID of version 4 or 8, then
 * nothing, or '@' and a label. token_valid() accepts exactly what is written
 * here.
 */
#include "model/token.h"

#include <uuid/uuid.h>

/* 'x': a hex digit, 'n': the version, 4 or 8, 'v': a hex digit 8, 9, a or b.
 * Else itself. */
static const char shape[] = "xxxxxxxx-xxxx-nxxx-vxxx-xxxxxxxxxxxx";

static bool all_printable(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] < '!' || bytes[i] > '~')
            return false;
    return true;
}

bool word_valid(const char *word, size_t most)
{
    size_t len = strnlen(word, most + 1);
    return len > 0 && len <= most && all_printable(word, len);
}

size_t token_layout(char *out, const char *label)
{
    static const char blank[] = "00000000-0000-0000-0000-000000000000";
    size_t len = UUID_TEXT;

    memcpy(out, blank, UUID_TEXT);
    if (label) {
        size_t more = strnlen(label, LABEL_MAX);
        out[len++] = '@';
        memcpy(out + len, label, more);
        len += more;
    }
    out[len] = '\0';
    return len;
}

void token_write(char *token, const unsigned char random[16], bool draws)
{
    uuid_t uuid;
    char text[UUID_TEXT + 1];

    memcpy(uuid, random, sizeof(uuid));
    uuid[6] = (unsigned char)((uuid[6] & 0x0f) | (draws ? 0x80 : 0x40));
    uuid[8] = (unsigned char)((uuid[8] & 0x3f) | 0x80);
    /* Not directly into token: the terminating zero would overwrite the '@'. */
    uuid_unparse_lower(uuid, text);
    memcpy(token, text, UUID_TEXT);
}

static bool matches_shape(char c, char form)
{
    switch (form) {
    case 'x':
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    case 'n':
        return c == '4' || c == '8';
    case 'v':
        return c == '8' || c == '9' || c == 'a' || c == 'b';
    default:
        return c == form;
    }
}

bool token_valid(struct slice token)
{
    if (token.len < UUID_TEXT || token.len > TOKEN_MAX)
        return false;
    for (size_t i = 0; i < UUID_TEXT; i++)
        if (!matches_shape(token.data[i], shape[i]))
            return false;
    if (token.len == UUID_TEXT)
        return true;
    /* '@' alone is not a label. */
    return token.data[UUID_TEXT] == '@' && token.len > UUID_TEXT + 1 &&
           all_printable(token.data + UUID_TEXT + 1, token.len - UUID_TEXT - 1);
}

const char *token_label(struct slice token)
{
    if (token.len == UUID_TEXT || !token_valid(token))
        return NULL;
    return token.data + UUID_TEXT + 1;
}
