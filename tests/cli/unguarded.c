/* SPDX-License-Identifier: MIT */
/*
 * Makes the command of a library with guards break its promises, so that
 * 'nxlock drill' can be seen to notice:
 *
 *     NXLOCK_TEST_UNGUARDED=expired,lapsed     guards that are off
 *     NXLOCK_TEST_SCRIPT='release|from|to'     a change to a server's script
 *
 * Linked in place of support/guards.c and of the table of scripts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/guard.h"

/* The table that the build has made, under another name; and one of the same
 * form in its place, which can be written to. */
#define scripts made_scripts
#include "made_scripts.h"
#undef scripts
struct script scripts[SCRIPTS];

bool guard_off[GUARDS];

static const struct {
    const char *name;
    enum guard guard;
} guards[] = {
    {"expired", GUARD_EXPIRED},
    {"lapsed", GUARD_LAPSED},
    {"loss", GUARD_LOSS},
};

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "unguarded: no such %s\n", what);
    abort();
}

static void turn_off(char *names)
{
    for (char *name; (name = strsep(&names, ","));) {
        size_t i = 0;
        while (i < sizeof(guards) / sizeof(guards[0]) &&
               strcmp(name, guards[i].name) != 0)
            i++;
        must(i < sizeof(guards) / sizeof(guards[0]), name);
        guard_off[guards[i].guard] = true;
    }
}

/* The server does not know it by its new hash, and gets the text. */
static void change(char *rule)
{
    char *name = strsep(&rule, "|"), *from = strsep(&rule, "|");
    size_t i = 0;

    must(from && rule, "form of NXLOCK_TEST_SCRIPT");
    while (i < SCRIPTS && strcmp(scripts[i].name, name) != 0)
        i++;
    must(i < SCRIPTS, name);
    const char *body = scripts[i].body.data, *at = strstr(body, from);
    must(at != NULL, from);
    char *text = NULL;
    int length = asprintf(
        &text, "%.*s%s%s", (int)(at - body), body, rule, at + strlen(from));
    must(length > 0, "memory");
    scripts[i].body = (struct slice){text, (size_t)length};
    scripts[i].sha1 = "0123456789012345678901234567890123456789";
}

__attribute__((constructor)) static void unguard(void)
{
    /* Until the end of the process. */
    static char *names, *rule;

    memcpy(scripts, made_scripts, sizeof(scripts));
    if (getenv("NXLOCK_TEST_UNGUARDED"))
        turn_off(names = strdup(getenv("NXLOCK_TEST_UNGUARDED")));
    if (getenv("NXLOCK_TEST_SCRIPT"))
        change(rule = strdup(getenv("NXLOCK_TEST_SCRIPT")));
}
