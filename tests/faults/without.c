/* SPDX-License-Identifier: MIT */
/* Turns off the guard that $NXLOCK_WITHOUT names, before main(). */
#include "model/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum guard guard;
} known[] = {
    {"confirm-grants", GUARD_CONFIRM_GRANTS},
    {"confirm-extends", GUARD_CONFIRM_EXTENDS},
    {"named", GUARD_NAMED},
};

__attribute__((constructor)) static void do_without(void)
{
    const char *name = getenv("NXLOCK_WITHOUT");
    for (size_t i = 0; name && i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].name, name) == 0) {
            guard_off[known[i].guard] = true;
            return;
        }
    fprintf(stderr, "NXLOCK_WITHOUT names no guard\n");
    _Exit(2);
}
