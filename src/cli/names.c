/* SPDX-License-Identifier: MIT */
/*
 * Several names in one command line, in messages and in their order.
 *
 * Invariant: a message shows each name as it shows a single one, in quotes.
 */
#include "cli/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"
#include "cli/servers/secret.h"
#include "cli/table.h"

#define SHOWN_ALL 3

const char *names_at(const struct args *args, size_t i)
{
    return i == 0 ? args->name : args->also[i - 1];
}

static void show_one(char *shown, char *pasted, const char *name, bool hides)
{
    if (hides && name_hide_secret(shown, pasted, name))
        return;
    name_shown(shown, name);
    name_pasted(pasted, name);
}

/* What stands before name i of count in a message, between the quotes; NULL:
 * the name is left out. */
static const char *before_name(size_t i, size_t count)
{
    bool few = count <= SHOWN_ALL;

    if (i == 0)
        return "";
    if (i + 1 == count)
        return few ? "' and '" : "', ... and '";
    return few || i + 1 < SHOWN_ALL ? "', '" : NULL;
}

static void add_text(char *out, size_t size, const char *text)
{
    size_t used = strlen(out);

    snprintf(out + used, size - used, "%s", text);
}

/* Adds " --also NAME" for name i, if there is room for all of it. */
static void add_pasted(char *out, const char *before, const char *pasted)
{
    if (strlen(out) + strlen(before) + strlen(pasted) >= NAME_PASTED)
        return;
    add_text(out, NAME_PASTED, before);
    add_text(out, NAME_PASTED, pasted);
}

static void show(struct args *args, bool hides)
{
    char shown[NAME_SHOWN], pasted[NAME_PASTED];
    size_t count = names_count(args);

    args->shown[0] = args->pasted[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *before = before_name(i, count), *name = names_at(args, i);
        if (!name) /* --also is before NAME */
            continue;
        show_one(shown, pasted, name, hides);
        /* "nxlock once show" is another command. */
        if (args->command == CMD_ONCE && once_action(name) != ONCE_RUN)
            snprintf(pasted, sizeof(pasted), "--name=%s", name);
        if (before)
            add_text(args->shown, sizeof(args->shown), before);
        if (before)
            add_text(args->shown, sizeof(args->shown), shown);
        /* As an option's value, a name may start with '-'. */
        if (i > 0 && strncmp(pasted, "--name=", 7) == 0)
            memmove(pasted, pasted + 7, strlen(pasted + 7) + 1);
        add_pasted(args->pasted, i == 0 ? "" : " --also ", pasted);
    }
}

void names_show(struct args *args)
{
    show(args, false);
}

void names_show_discreetly(struct args *args)
{
    show(args, true);
}

bool names_repeated(const struct args *args)
{
    char word[DISCREET_ROOM];

    for (size_t i = 1; i < names_count(args); i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(names_at(args, i), names_at(args, j)) != 0)
                continue;
            say("--also '%s' is given twice, or is NAME already; write each "
                "name once",
                discreet(word, names_at(args, i)));
            return true;
        }
    }
    return false;
}

void names_order(const struct args *args, size_t *order)
{
    for (size_t i = 0; i < names_count(args); i++) {
        size_t at = i;
        for (; at > 0 &&
               strcmp(names_at(args, order[at - 1]), names_at(args, i)) > 0;
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

void names_only(struct args *one, const struct args *args, size_t i)
{
    *one = *args;
    one->name = names_at(args, i);
    one->also_count = 0;
    names_show(one);
}
