/* SPDX-License-Identifier: MIT */
/*
 * Recognizes tokens and passwords among the words of a command line.
 *
 * Invariant: every token of the library is recognized, and a word that could be
 * a secret is treated as one.
 */
#include "cli/servers/secret.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define HEX "0123456789abcdefABCDEF"

bool is_token(const char *word)
{
    static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t i;

    for (i = 0; shape[i] != '\0'; i++) {
        if (shape[i] == '-' ? word[i] != '-'
                            : !isxdigit((unsigned char)word[i]))
            return false;
    }
    if (word[i] == '+') {
        size_t weight = strspn(word + i + 1, "0123456789");
        i += 1 + weight;
        size_t permits =
            word[i] == '/' ? strspn(word + i + 1, "0123456789") : 0;
        if (weight == 0 || permits == 0)
            return false;
        i += 1 + permits;
    }
    return word[i] == '\0' || word[i] == '@';
}

bool is_token_id(const char *word)
{
    return strlen(word) == 8 && strspn(word, HEX) == 8;
}

bool begins_like_token(const char *text)
{
    size_t at = 0;

    while (at <= 8 && isxdigit((unsigned char)text[at])) /* not all of a name */
        at++;
    if (at != 7 && at != 8)
        return false;
    for (int group = 0; group < 2; group++) {
        if (text[at] != '-' || strspn(text + at + 1, HEX) != 4)
            return false;
        at += 5;
    }
    return text[at] == '-';
}

bool holds_password(const char *word)
{
    const char *colon = strchr(word, ':');
    const char *at = strrchr(word, '@');

    return strstr(word, "://") || (colon && at && colon < at);
}

/* How much of word may be shown. */
static size_t open_part(const char *word)
{
    const char *scheme = strstr(word, "://");

    for (const char *from = word; *from != '\0'; from++) {
        if (begins_like_token(from))
            return (size_t)(from - word);
    }
    if (scheme)
        return (size_t)(scheme - word) + 3;
    return holds_password(word) ? strcspn(word, ":") + 1 : strlen(word);
}

const char *discreet(char *out, const char *word)
{
    size_t part = open_part(word);
    bool all = word[part] == '\0' && part < DISCREET_ROOM - 4;

    if (part > DISCREET_ROOM - 4)
        part = DISCREET_ROOM - 4;
    snprintf(out, DISCREET_ROOM, "%.*s%s", (int)part, word, all ? "" : "...");
    return out;
}

bool is_password_letter(const char *word)
{
    return word[0] == '-' && (word[1] == 'p' || word[1] == 'a');
}
