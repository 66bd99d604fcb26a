/* SPDX-License-Identifier: MIT */
/*
 * The places behind one proxy, between which a test goes: the server that
 * answers becomes an older one, or a newer one.
 */
#ifndef NXLOCK_TESTS_LIVE_STRATEGIES_STOPS_H
#define NXLOCK_TESTS_LIVE_STRATEGIES_STOPS_H

#include "live/strategies_rig.h"

static const struct place plain = {"7.0 behind a proxy", AGED, AGED_PLAIN, NULL,
    NULL, BY_SET, BY_SCRIPT, BY_SCRIPT, BY_SCRIPT};

/* The places behind the proxy. (That one has no GETRANGE is learnt once a
 * connection, and so it is no place to come to.) */
static const struct place *stops[PLACES + 1];
static unsigned stop_count;

static inline void find_stops(void)
{
    stops[stop_count++] = &plain;
    for (unsigned i = 0; i < PLACES; i++)
        if (places[i].kind == AGED &&
            (!places[i].without || strcmp(places[i].without, "GETRANGE") != 0))
            stops[stop_count++] = &places[i];
}

/* From now on this one answers. */
static inline void go_to(const struct place *place, bool cut)
{
    here = place;
    aged_allow(aged);
    if (place->without)
        aged_refuse(aged, place->without, place->words);
    aged_profile_now(aged, place->age, cut);
}

static inline bool is_old(const struct place *place)
{
    return place->acquire == BY_STAMP;
}

#endif
