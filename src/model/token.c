/* SPDX-License-Identifier: MIT */
/*
 * Writes and reads tokens.
 *
 * Invariant: a token is 36 bytes of lower-case UUID of version 4 or 8; then
 * nothing, or '+' and a share; then nothing, or '@' and a label. token_parse()
 * accepts exactly what is written here, and kind() in wire/scripts/grant.lua
 * the same shares.
 */
#include "model/token.h"

#include <inttypes.h>
#include <stdio.h>
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

size_t token_layout(char *out, struct share share, const char *label)
{
    static const char blank[] = "00000000-0000-0000-0000-000000000000";
    size_t len = UUID_TEXT;

    memcpy(out, blank, UUID_TEXT);
    if (share.weight > 0)
        len += (size_t)snprintf(out + len, SHARE_MAX + 1,
            "+%" PRIu32 "/%" PRIu32, share.weight, share.permits);
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

/* Reads a number of at most PERMITS_MAX, without leading zeros, from the
 * beginning of *rest, and removes it there. */
static bool take_number(struct slice *rest, uint32_t *number)
{
    uint64_t sum = 0;
    size_t len = 0;
    while (len < rest->len && rest->data[len] >= '0' &&
           rest->data[len] <= '9' && sum <= PERMITS_MAX)
        sum = sum * 10 + (uint64_t)(rest->data[len++] - '0');
    if (len == 0 || sum > PERMITS_MAX || (rest->data[0] == '0' && len > 1))
        return false;
    rest->data += len;
    rest->len -= len;
    *number = (uint32_t)sum;
    return true;
}

/* Reads what follows '+'. With a limit of 1 the lock would be exclusive. */
static bool take_share(struct slice *rest, struct share *share)
{
    if (!take_number(rest, &share->weight) || rest->len == 0 ||
        rest->data[0] != '/')
        return false;
    rest->data++;
    rest->len--;
    if (!take_number(rest, &share->permits))
        return false;
    return share->permits == 0 ? share->weight == 1
                               : share->permits > 1 && share->weight > 0 &&
                                     share->weight <= share->permits;
}

/* False: it is no token. label->data is NULL if it has none. */
static bool token_parse(
    struct slice token, struct share *share, struct slice *label)
{
    *share = (struct share){0, 0};
    *label = (struct slice){NULL, 0};
    if (token.len < UUID_TEXT || token.len > TOKEN_MAX)
        return false;
    for (size_t i = 0; i < UUID_TEXT; i++)
        if (!matches_shape(token.data[i], shape[i]))
            return false;
    struct slice rest = {token.data + UUID_TEXT, token.len - UUID_TEXT};
    if (rest.len > 0 && rest.data[0] == '+') {
        rest.data++;
        rest.len--;
        if (!take_share(&rest, share))
            return false;
    }
    if (rest.len == 0)
        return true;
    /* '@' alone is not a label. */
    *label = (struct slice){rest.data + 1, rest.len - 1};
    return rest.data[0] == '@' && label->len > 0 && label->len <= LABEL_MAX &&
           all_printable(label->data, label->len);
}

bool token_valid(struct slice token)
{
    struct share share;
    struct slice label;
    return token_parse(token, &share, &label);
}

struct share token_share(struct slice token)
{
    struct share share;
    struct slice label;
    return token_parse(token, &share, &label) ? share : (struct share){0, 0};
}

const char *token_label(struct slice token)
{
    struct share share;
    struct slice label;
    return token_parse(token, &share, &label) ? label.data : NULL;
}
