/* SPDX-License-Identifier: MIT */
/* The switches of all guards, by name. */
#include "sim/guards.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>

#include "model/guard.h"

bool guard_off[GUARDS];
bool sim_guard_off[SIM_GUARDS];

#define OF_CORE(name, does) {#name, &guard_off[GUARD_##name], does},
#define OF_MODEL(name, does) {#name, &sim_guard_off[SIM_GUARD_##name], does},
static const struct {
    const char *name; /* in capitals, with _ */
    bool *off;
    const char *does;
} guards[] = {GUARD_LIST(OF_CORE) SIM_GUARD_LIST(OF_MODEL)};

#define COUNT (sizeof(guards) / sizeof(*guards))

static char small(char c)
{
    return c == '_' ? '-' : (char)tolower(c);
}

static bool is_name(const char *text, const char *name)
{
    while (*name && *text == small(*name)) {
        text++;
        name++;
    }
    return !*text && !*name;
}

bool guard_turn_off(const char *name)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (is_name(name, guards[i].name)) {
            *guards[i].off = true;
            return true;
        }
    }
    return false;
}

void guards_turn_on(void)
{
    for (size_t i = 0; i < COUNT; i++)
        *guards[i].off = false;
}

void guards_print(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        char name[32] = "";
        for (size_t j = 0; guards[i].name[j] && j < sizeof(name) - 1; j++)
            name[j] = small(guards[i].name[j]);
        printf("  %-17s %s\n", name, guards[i].does);
    }
}
