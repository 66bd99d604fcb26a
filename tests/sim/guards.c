/* SPDX-License-Identifier: MIT */
/* Every guard has one name and one switch. */
#include "sim/guards.h"

#include <stddef.h>
#include <string.h>

#include "base/guard.h"

bool guard_off[GUARDS];
bool sim_guard_off[SIM_GUARDS];

static const struct {
    const char *name;
    bool *off;
} guards[] = {
    {"drift", &guard_off[GUARD_DRIFT]},
    {"send-time", &guard_off[GUARD_SEND_TIME]},
    {"hand-over", &guard_off[GUARD_HAND_OVER]},
    {"lapsed", &guard_off[GUARD_LAPSED]},
    {"fresh-token", &guard_off[GUARD_FRESH_TOKEN]},
    {"late-undo", &guard_off[GUARD_LATE_UNDO]},
    {"debts", &guard_off[GUARD_DEBTS]},
    {"kill", &guard_off[GUARD_KILL]},
    {"loss", &guard_off[GUARD_LOSS]},
    {"restarts", &sim_guard_off[SIM_GUARD_RESTARTS]},
    {"adopt", &sim_guard_off[SIM_GUARD_ADOPT]},
    {"compare", &sim_guard_off[SIM_GUARD_COMPARE]},
    {"write-back", &sim_guard_off[SIM_GUARD_WRITE_BACK]},
    {"fence-floor", &sim_guard_off[SIM_GUARD_FENCE_FLOOR]},
};

bool guard_turn_off(const char *name)
{
    for (size_t i = 0; i < sizeof guards / sizeof *guards; i++) {
        if (strcmp(guards[i].name, name) == 0) {
            *guards[i].off = true;
            return true;
        }
    }
    return false;
}

void guards_turn_on(void)
{
    for (size_t i = 0; i < sizeof guards / sizeof *guards; i++)
        *guards[i].off = false;
}

const char *guard_name(unsigned index)
{
    return index < sizeof guards / sizeof *guards ? guards[index].name : NULL;
}
