/* SPDX-License-Identifier: MIT */
/* Keeps: what is cut is said to be cut, and what is quoted is one word. */
#include "cli/name.h"

#include <stdio.h>
#include <string.h>

#include "cli/report.h"

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
        snprintf(out, NAME_SHOWN, "%.*s... (%zu bytes)", (int)cut, name,
            length);
    }
    clean_text(out, strlen(out));
    return out;
}

static size_t quote(char *out, const char *name)
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

const char *name_pasted(char *out, const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ_./:@%+,-=";
    size_t length = strlen(name);
    size_t at = 0;

    if (4 * length + sizeof("--name=''") > NAME_PASTED) {
        memcpy(out, "NAME", sizeof("NAME"));
        return out;
    }
    if (name[0] == '-') {
        memcpy(out, "--name=", strlen("--name="));
        at = strlen("--name=");
    }
    if (length > 0 && strspn(name, plain) == length) {
        memcpy(out + at, name, length);
        at += length;
    } else {
        at += quote(out + at, name);
    }
    out[at] = '\0';
    return out;
}
