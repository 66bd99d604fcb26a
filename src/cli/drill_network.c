/* SPDX-License-Identifier: MIT */
/* What becomes of the drill's lock when connections are cut. */
#include "cli/drill_scene.h"

#include <string.h>

/* The library reports why it was lost; some reasons are the server's. */
static void report_loss(struct drill *d, const struct drill_answer *looked)
{
    if (looked->loss == NXL_LOSS_REMOVED || looked->loss == NXL_LOSS_TAKEN)
        drill_broken(d, "What can still go wrong",
            "the key of a lock that was held and renewed disappeared from the "
            "server: eviction, FLUSHALL, a restart or failover without data, "
            "or several servers behind one address");
    else
        drill_unshown(d,
            "the lock could not be renewed in time, and was lost: the server "
            "or this machine is too slow; a longer --ttl may help");
}

/* FIRST holds the lock until that time, and no other process gets it. */
static bool holds_on(
    struct drill *d, const struct drill_answer *granted, uint64_t until)
{
    struct drill_answer looked;
    uint64_t step = (uint64_t)d->ttl_ms * NS_PER_MS / 8;

    while (nxl_now_ns() < until) {
        if (!drill_sleep(d, nxl_now_ns() + step) ||
            !drill_ask(d, FIRST, ACT_LOOK, 0, &looked))
            return false;
        if (!looked.held_before) {
            report_loss(d, &looked);
            return false;
        }
    }
    return scene_is_kept(d, FIRST, granted->token, "something else");
}

void scene_renewed(struct drill *d)
{
    struct drill_answer granted, answer;
    uint64_t ttl = (uint64_t)d->ttl_ms * NS_PER_MS;
    char took[DURATION_ROOM], lease[DURATION_ROOM];

    if (!drill_start_all(d, ONE(FIRST)) || !drill_acquire(d, FIRST, &granted) ||
        !holds_on(d, &granted, granted.after + ttl / 2) ||
        !drill_ask(d, FIRST, ACT_CUT, 0, &answer) ||
        !holds_on(d, &granted, granted.after + ttl + ttl / 2) ||
        !drill_ask(d, FIRST, ACT_RELEASE, 0, &answer))
        return;
    if (answer.result != NXL_OK)
        drill_failed(d, "release the lock", &answer);
    scene_shown(d,
        "renewed and held for %s with a lease of %s, although its connections "
        "were cut meanwhile",
        drill_time(took, granted.after, answer.before),
        duration_text(lease, d->ttl_ms));
}

/* How long the loss may be overdue before it counts as not reported, if the
 * process answers all the time. */
#define OVERDUE (10 * NS_PER_S)

/* FIRST can no longer reach a server, and has to report the loss of its lock.
 * *deadline becomes the last one that it had. */
static bool gives_up(
    struct drill *d, struct drill_answer *looked, uint64_t *deadline)
{
    /* Twice, because it may have been stopped while it took an order. */
    unsigned overdue = 0;

    do {
        if (!drill_sleep(d, nxl_now_ns() + 10 * NS_PER_MS) ||
            !drill_ask(d, FIRST, ACT_LOOK, 0, looked))
            return false;
        /* It is 0 if the lock was lost only now; nothing is certain then. */
        if (looked->deadline == 0)
            continue;
        *deadline = looked->deadline;
        if (looked->held_before && looked->before > *deadline)
            drill_broken(d, "G3", "a lock counts as held after its deadline");
    } while (looked->loss == NXL_LOSS_NONE &&
             (looked->before < *deadline + OVERDUE || overdue++ == 0));
    if (looked->loss == NXL_LOSS_NONE)
        drill_broken(d, "G8",
            "the loss of a lock that could not be renewed was not reported");
    return true;
}

void scene_cut_off(struct drill *d)
{
    struct drill_answer granted, answer, looked, next;
    char early[DURATION_ROOM], took[DURATION_ROOM];

    if (!drill_start_all(d, ONE(FIRST)) || !drill_acquire(d, FIRST, &granted) ||
        !drill_ask(d, FIRST, ACT_CUT_OFF, 0, &answer))
        return;
    uint64_t began = nxl_now_ns(), deadline = granted.deadline;
    if (deadline == 0) /* it is over already */
        deadline = granted.after;
    if (!scene_wait_for(d) || !gives_up(d, &looked, &deadline))
        return;
    granted.deadline = deadline;
    if (!scene_takes_over(d, &granted, false, &next) ||
        !scene_is_kept(d, SECOND, next.token, "the holder that was cut off"))
        return;
    bool late = looked.lost_at > deadline;
    scene_shown(d,
        "no connection could be made: the holder reported the loss of the lock "
        "%s %s its deadline; the next process got it %s after the cut",
        late ? drill_time(early, deadline, looked.lost_at)
             : drill_time(early, looked.lost_at, deadline),
        late ? "after" : "before", drill_time(took, began, next.after));
}

void scene_lost_answer(struct drill *d)
{
    struct drill_answer granted, answer, freed, next;
    char took[DURATION_ROOM];

    /* The first lock makes the connections. */
    if (!drill_start_all(d, 0) || !drill_acquire(d, FIRST, &granted) ||
        !drill_ask(d, FIRST, ACT_RELEASE, 0, &answer) ||
        !drill_ask(d, FIRST, ACT_ACQUIRE_CUT, 0, &granted))
        return;
    if (granted.result == NXL_OK) {
        /* It can be true: over several servers, or if the answer was late. */
        if (scene_is_kept(d, FIRST, granted.token, "something else"))
            scene_shown(d,
                "the connection was cut after an acquire was sent, and the "
                "lock was granted all the same");
        return;
    }
    if (granted.held_after)
        drill_broken(d, "G5", "an acquire that failed counts as held");
    uint64_t began = nxl_now_ns();
    if (!drill_ask(d, FIRST, ACT_FREE, 0, &freed) || !scene_wait_for(d))
        return;
    granted.deadline = 0;
    /* A server that has not answered yet may apply it later. */
    bool applied = granted.lost >= nxl_client_servers(d->session.client);
    if (!scene_takes_over(d, &granted, applied, &next) ||
        !scene_is_kept(d, SECOND, next.token,
            "the cleanup of the acquire whose answer was lost"))
        return;
    /* Its lease would have lasted longer. */
    bool undone = next.after < granted.before + (uint64_t)d->ttl_ms * NS_PER_MS;
    scene_shown(d,
        "the connection was cut after an acquire was sent, and its answer was "
        "lost: "
        "the result was \"%s\"; another process got the lock %s later: %s",
        nxl_strerror(granted.result), drill_time(took, began, next.after),
        undone
            ? "the lost acquire was cleaned up"
            : "the lost acquire was not cleaned up, and its key stayed until "
              "its TTL (is there permission for CLIENT KILL?)");
}
