/* SPDX-License-Identifier: MIT */
/*
 * Shows the names of locks in messages.
 *
 * Invariant: a name that is cut says so, and one that is quoted for a shell is
 * one word.
 */
#include "cli/name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nxlock.h>

#include "cli/report/report.h"
#include "cli/servers/secret.h"

#define SHOWN_WHOLE 80
#define CUT_TO 64

const char *name_shown(char *out, const char *name)
{
    size_t length = strlen(name);

    if (length <= SHOWN_WHOLE) {
        memcpy(out, name, length + 1);
    } else {
        size_t cut = CUT_TO;
        while (cut > 0 && ((unsigned char)name[cut] & 0xc0) == 0x80)
            cut--; /* not within a UTF-8 character */
        snprintf(
            out, NAME_SHOWN, "%.*s... (%zu bytes)", (int)cut, name, length);
    }
    clean_text(out, strlen(out));
    return out;
}

bool name_hide_secret(char *shown, char *pasted, const char *name)
{
    if (begins_like_token(name + strspn(name, " \t\n")))
        snprintf(shown, NAME_SHOWN, "%.8s...", name);
    else if (holds_password(name))
        snprintf(
            shown, NAME_SHOWN, "%.*s...", (int)strcspn(name, ":") + 1, name);
    else
        return false;
    clean_text(shown, strlen(shown));
    memcpy(pasted, "NAME", sizeof("NAME"));
    return true;
}

static size_t quote_word(char *out, const char *name)
{
    size_t length = 0;

    out[length++] = '\'';
    for (; *name != '\0'; name++) {
        if (*name == '\'') {
            memcpy(out + length, "'\\''", 4);
            length += 4;
        } else {
            out[length++] = *name;
        }
    }
    out[length++] = '\'';
    return length;
}

/* say() replaces control characters: what was pasted would be another word. */
static bool has_control(const char *word)
{
    char clean[NAME_PASTED];

    snprintf(clean, sizeof(clean), "%s", word);
    clean_text(clean, strlen(clean));
    return strncmp(clean, word, strlen(clean)) != 0;
}

const char *word_pasted(char *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ_./:@%+,-=";
    size_t length = strlen(word);

    if (has_control(word))
        length = quote_word(out, "CMD...");
    else if (length > 0 && strspn(word, plain) == length)
        memcpy(out, word, length);
    else
        length = quote_word(out, word);
    out[length] = '\0';
    return out;
}

const char *name_pasted(char *out, const char *name)
{
    static const char option[] = "--name=";
    size_t at = name[0] == '-' ? strlen(option) : 0;

    memcpy(out, option, at);
    if (4 * strlen(name) + sizeof("--name=''") > NAME_PASTED ||
        has_control(name))
        memcpy(out + at, "NAME", sizeof("NAME"));
    else
        word_pasted(out + at, name);
    return out;
}

char *name_companion(const char *key, enum companion what)
{
    struct slice name;

    return companion_make(slice_of(key), what, &name) ? (char *)name.data
                                                      : NULL;
}

char *name_own(const char *prefix, const char *beside, const char *what)
{
    char *name = NULL;
    bool tagged = prefix[0] != '\0';

    return asprintf(&name, tagged ? "{%s:%s:%d:%llx}" : "%s:%s:%d:%llx",
               beside ? beside : "nxlock", what, (int)getpid(),
               (unsigned long long)nxl_now_ns()) < 0
               ? NULL
               : name;
}
