/* SPDX-License-Identifier: MIT */
/*
 * A wait for a lock, as acquire and wait report it: who holds the lock, that
 * no server answers, and why the wait ends.
 */
#ifndef NXLOCK_CLI_RUN_WAITING_H
#define NXLOCK_CLI_RUN_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/look/holders.h"
#include "cli/run/session.h"

struct waiting {
    struct session *session;
    uint64_t since; /* when it began, of nxl_now_ns() */
    /* What was reported: a holder of each name, by its number; an outage, and
     * its end. */
    bool holder[NXL_NAMES_MAX], outage, outage_end;
};

int64_t waiting_ms(const struct waiting *w);

/* Of several names: is it the last one, with place counted from 0? */
bool waiting_is_last(const struct waiting *w, size_t place);

/* Does the key hold data that nobody will release? Then waiting is useless, and
 * to call it busy would hide the mistake: reports that one cannot do what, and
 * returns the exit code. Otherwise 0. */
int waiting_for_data(
    const struct waiting *w, const char *what, const nxl_holder *holder);
/* Reports that an enclosing run holds the lock. Returns the exit code. */
int waiting_for_enclosing(const struct waiting *w, const char *remedy);

/* Reports once who holds name i, with more behind it. */
void waiting_for_holder(struct waiting *w, size_t i,
    const struct holders *holders, const char *more);
/* Reports that it stayed busy. NULL: who holds it is unknown. Returns the exit
 * code. */
int waiting_was_busy(const struct waiting *w, const struct holders *holders);

/* An inspection has ended with that result. Reports once that no server
 * decides, and once when the server answers again. */
void waiting_noted(struct waiting *w, int result, const nxl_lock *asker);

#endif
