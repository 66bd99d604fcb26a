/* SPDX-License-Identifier: MIT */
/*
 * Virtual time and chance. Every alarm of a world is in one heap (the
 * library's own), the earliest rings next, and the clock stands still between
 * two of them; all chance comes from one seeded generator (the library's own,
 * too). So a seed has one history.
 */
#ifndef NXLOCK_SIM_ALARM_H
#define NXLOCK_SIM_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/backoff.h"
#include "base/deadline.h"
#include "base/timer.h"

#define MS NS_PER_MS

struct world;

struct alarm {
    struct timer timer;
    void (*ring)(struct world *w, struct alarm *alarm);
};

void alarm_init(struct world *w, struct alarm *alarm,
    void (*ring)(struct world *w, struct alarm *alarm));
void alarm_set(struct world *w, struct alarm *alarm, uint64_t at);
void alarm_end(struct world *w, struct alarm *alarm);

/* In [0, limit); limit > 0. */
uint64_t roll(struct world *w, uint64_t limit);
/* In [least, most]. */
uint64_t roll_from(struct world *w, uint64_t least, uint64_t most);
/* True percent times in a hundred. */
bool chance(struct world *w, unsigned percent);

#endif
