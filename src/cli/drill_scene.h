/* SPDX-License-Identifier: MIT */
/* The scenes of the drill, and what several of them check. */
#ifndef NXLOCK_CLI_DRILL_SCENE_H
#define NXLOCK_CLI_DRILL_SCENE_H

#include "cli/clock.h"
#include "cli/drill_cast.h"
#include "cli/duration.h"

void scene_turns(struct drill *d);
void scene_killed(struct drill *d);
void scene_stopped(struct drill *d);
void scene_adopted(struct drill *d);
void scene_renewed(struct drill *d);
void scene_cut_off(struct drill *d);
void scene_lost_answer(struct drill *d);

/* Reports what a scene has shown, unless a promise was broken in it. */
void scene_shown(struct drill *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* SECOND begins to wait for the lock, for longer than any lease may last. */
bool scene_wait_for(struct drill *d);

/* SECOND, which waits for the lock, gets it, but not before the deadline of the
 * holder, which is gone. granted is the holder's answer to its acquire, *next
 * becomes that of SECOND. last: nothing that the holder has sent since can
 * still reach a server, so it is known when its lease must have ended there. */
bool scene_takes_over(struct drill *d, const struct drill_answer *granted,
    bool last, struct drill_answer *next);

/* Does a single server decide? With several, an answer may be about one of
 * them that the others outvote. */
bool scene_one_server(const struct drill *d);

/* WITNESS finds that the lock is held by holder, whose token this is, and
 * cannot acquire it; and the holder agrees. removed_by says, for the report,
 * what has removed the lock if it is gone. */
bool scene_is_kept(struct drill *d, unsigned holder, const char *token,
    const char *removed_by);

#endif
