/* SPDX-License-Identifier: MIT */
/* How the kinds of calls on a lock differ. */
#include "core/state.h"

const struct call_kind call_kinds[CALL_KINDS] = {
    [CALL_NONE] = {.verb = VERB_INSPECT, .no = LIFE_LOST},
    [CALL_ACQUIRE] = {.verb = VERB_ACQUIRE, .no = LIFE_BUSY, .relies = true},
    [CALL_EXTEND] = {.verb = VERB_EXTEND,
        .round = ROUND_EXTEND,
        .no = LIFE_LOST,
        .known_token = true,
        .relies = true},
    [CALL_RELEASE] = {.verb = VERB_RELEASE,
        .round = ROUND_RELEASE,
        .no = LIFE_LOST,
        .known_token = true},
    [CALL_ADOPT] = {.verb = VERB_INSPECT,
        .round = ROUND_ADOPT,
        .no = LIFE_LOST,
        .relies = true},
    [CALL_INSPECT] = {.verb = VERB_INSPECT,
        .round = ROUND_INSPECT,
        .no = LIFE_FREE},
    [CALL_BREAK] = {.verb = VERB_RELEASE,
        .round = ROUND_RELEASE,
        .no = LIFE_FREE},
};
