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
    const char *words;
} guards[] = {
    {"drift", &guard_off[GUARD_DRIFT],
        "the deadline is before the server's by the drift"},
    {"send-time", &guard_off[GUARD_SEND_TIME],
        "a lease counts from before its request was sent"},
    {"hand-over", &guard_off[GUARD_HAND_OVER],
        "a fresh reading before a grant is handed over"},
    {"lapsed", &guard_off[GUARD_LAPSED],
        "a lease that has expired here is not extended"},
    {"expired", &guard_off[GUARD_EXPIRED],
        "the token of an expired lease is left alone"},
    {"fresh-token", &guard_off[GUARD_FRESH_TOKEN],
        "a token that may have been applied is not reused"},
    {"late-undo", &guard_off[GUARD_LATE_UNDO],
        "an abandoned acquire is followed by its undoing"},
    {"debts", &guard_off[GUARD_DEBTS], "so is one whose connection was lost"},
    {"kill", &guard_off[GUARD_KILL],
        "a lost connection is killed before that counts"},
    {"loss", &guard_off[GUARD_LOSS],
        "a lease that cannot be renewed is lost by its deadline"},
    {"shorten", &guard_off[GUARD_SHORTEN],
        "an extend leaves a longer lease as it is"},
    {"continuity", &guard_off[GUARD_CONTINUITY],
        "an extend counts those that kept the token"},
    {"write-back", &guard_off[GUARD_WRITE_BACK],
        "a quorum has the fence before it is handed out"},
    {"restarts", &guard_off[GUARD_RESTARTS],
        "a server that may have forgotten does not vote"},
    {"adopt", &guard_off[GUARD_ADOPT],
        "a restarted server vouches for no adoption"},
    {"compare", &sim_guard_off[SIM_GUARD_COMPARE],
        "only the owner's token deletes"},
    {"fence-floor", &sim_guard_off[SIM_GUARD_FENCE_FLOOR],
        "fences are not behind the server's clock"},
};

#define COUNT (sizeof(guards) / sizeof(*guards))

bool guard_turn_off(const char *name)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(guards[i].name, name) == 0) {
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

const char *guard_name(unsigned index)
{
    return index < COUNT ? guards[index].name : NULL;
}

const char *guard_words(unsigned index)
{
    return index < COUNT ? guards[index].words : NULL;
}
