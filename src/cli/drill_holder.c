/* SPDX-License-Identifier: MIT */
/* What becomes of the drill's lock when its holder is killed or stopped, or has
 * left it to another process. */
#include "cli/drill_scene.h"

#include <string.h>

/* An operation of a holder whose lease is over must be refused. */
static bool is_refused(struct drill *d, enum act act, const char *what)
{
    struct drill_answer answer;

    if (!drill_ask(d, FIRST, act, 0, &answer))
        return false;
    if (answer.result == NXL_OK || answer.held_after)
        drill_broken(
            d, "G3", "a holder whose lease was over could %s it", what);
    return true;
}

void scene_killed(struct drill *d)
{
    struct drill_answer granted, seen, next, late;
    char left[DURATION_ROOM], took[DURATION_ROOM], ttl[DURATION_ROOM];
    char late_by[DURATION_ROOM];

    if (!drill_start_all(d, 0) || !drill_acquire(d, FIRST, &granted) ||
        !drill_ask(d, WITNESS, ACT_INSPECT, 0, &seen))
        return;
    if (seen.result != NXL_OK || strcmp(seen.token, granted.token) != 0) {
        drill_unshown(d, "the lease was over before it could be looked at");
        return;
    }
    uint64_t killed = nxl_now_ns();
    drill_kill(d, FIRST);
    if (!scene_wait_for(d) || !scene_takes_over(d, &granted, true, &next) ||
        !drill_ask_token(d, WITNESS, ACT_BREAK, granted.token, &late))
        return;
    if (late.result == NXL_OK && scene_one_server(d))
        drill_broken(d, "G2",
            "a late command of the killed holder was not refused: the server "
            "did not compare the token before it deleted the key");
    else if (late.result != NXL_OK && late.result != NXL_FREE)
        drill_failed(d, "send a late command of the killed holder", &late);
    if (scene_is_kept(
            d, SECOND, next.token, "a late command of the killed holder"))
        scene_shown(d,
            "SIGKILL with %s of its lease of %s left; the next process got the "
            "lock %s later, %s after the holder's deadline; a late command of "
            "the killed one was refused",
            drill_time(left, killed, granted.deadline),
            duration_text(ttl, d->ttl_ms), drill_time(took, killed, next.after),
            drill_time(late_by, granted.deadline, next.after));
}

/* How often a process is asked whether it has noticed its loss, and the pause
 * in between: 10 s in all, so that a slow machine is not blamed. */
#define LOOKS 1000
#define LOOK_PAUSE (10 * NS_PER_MS)

/* FIRST goes on, and has to notice that its lock is lost. */
static bool notices(struct drill *d, struct drill_answer *looked)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        if (!drill_ask(d, FIRST, ACT_LOOK, 0, looked))
            return false;
        if (looked->loss != NXL_LOSS_NONE)
            return true;
        if (!drill_sleep(d, nxl_now_ns() + LOOK_PAUSE))
            return false;
    }
    drill_broken(d, "G8", "the loss of the lock was never reported");
    return true;
}

void scene_stopped(struct drill *d)
{
    struct drill_answer granted, next, looked, extended;
    char took[DURATION_ROOM], late[DURATION_ROOM];

    if (!drill_start_all(d, ONE(FIRST)) || !drill_acquire(d, FIRST, &granted))
        return;
    drill_stop(d, FIRST);
    uint64_t stopped = nxl_now_ns();
    if (!scene_wait_for(d) || !scene_takes_over(d, &granted, false, &next))
        return;
    drill_continue(d, FIRST);
    uint64_t continued = nxl_now_ns();
    if (!drill_ask(d, FIRST, ACT_LOOK, 0, &looked) ||
        !drill_ask(d, SECOND, ACT_LOOK, 0, &extended) || !notices(d, &looked) ||
        !is_refused(d, ACT_EXTEND, "extend") ||
        !is_refused(d, ACT_RELEASE, "release") ||
        !drill_ask(d, SECOND, ACT_EXTEND, 0, &extended))
        return;
    if (extended.result != NXL_OK && extended.held_before)
        drill_failed(d, "extend the lock of the next holder", &extended);
    if (scene_is_kept(
            d, SECOND, next.token, "the old holder, whose lease was over,"))
        scene_shown(d,
            "SIGSTOP; the next process got the lock %s later; after SIGCONT "
            "the old holder no longer counted it as held, and reported the "
            "loss %s later; it could neither extend nor release it",
            drill_time(took, stopped, next.after),
            drill_time(late, continued, looked.lost_at));
}

void scene_adopted(struct drill *d)
{
    struct drill_answer granted, adopted, looked, freed;
    char ttl[DURATION_ROOM];

    if (!drill_start_all(d, ONE(SECOND)) ||
        !drill_acquire(d, FIRST, &granted) ||
        !drill_ask_token(d, SECOND, ACT_ADOPT, granted.token, &adopted))
        return;
    if (adopted.result != NXL_OK) {
        drill_failed(d, "adopt the lock", &adopted);
        return;
    }
    /* SECOND renews it. */
    if (!drill_sleep(d, granted.deadline + NS_PER_MS) ||
        !drill_ask(d, FIRST, ACT_LOOK, 0, &looked))
        return;
    if (looked.held_before)
        drill_broken(d, "G3", "a lock counts as held after its deadline");
    if (!is_refused(d, ACT_EXTEND, "extend") ||
        !is_refused(d, ACT_RELEASE, "release") ||
        !drill_ask(d, FIRST, ACT_FREE, 0, &freed) ||
        !scene_is_kept(d, SECOND, granted.token,
            "the former holder, whose lease was over,"))
        return;
    scene_shown(d,
        "another process adopted the lock and renewed it; when the lease of %s "
        "of the former holder was over, that process could neither extend nor "
        "release it, and its end did not remove it",
        duration_text(ttl, d->ttl_ms));
}
