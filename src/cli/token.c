/* SPDX-License-Identifier: MIT */
/* Keeps: what the library takes for a token is one here. */
#include "cli/token.h"

#include <ctype.h>
#include <stddef.h>

bool is_token(const char *word)
{
    static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t i;

    for (i = 0; shape[i] != '\0'; i++) {
        if (shape[i] == '-' ? word[i] != '-'
                            : !isxdigit((unsigned char)word[i]))
            return false;
    }
    return word[i] == '\0' || word[i] == '@';
}
