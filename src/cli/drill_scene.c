/* SPDX-License-Identifier: MIT */
/*
 * What several scenes of the drill check.
 *
 * Invariant: a time is compared only with a deadline that was promised, and
 * only where the order of two events is certain. How fast something was is
 * reported, never judged.
 */
#include "cli/drill_scene.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WORDS_ROOM 768
/* How much longer the lock is waited for than leases last. */
#define MORE_MS 10000
/* Between two looks at a lock whose lease should be over. */
#define LOOK_AGAIN (50 * NS_PER_MS)

void scene_shown(struct drill *d, const char *format, ...)
{
    char words[WORDS_ROOM];
    va_list arguments;

    if (d->over || d->bad)
        return;
    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    diagnostic(&d->diagnostics, LEVEL_OK, d->scene, NULL, "%s", words);
}

/* When a server must have ended the lease: counted from when its answer was
 * here, with more than its clock may differ, and with what a lock that was
 * handed over has in addition (G4). */
static uint64_t ended_by(
    const struct drill *d, const struct drill_answer *granted)
{
    uint64_t ttl = (uint64_t)d->ttl_ms * NS_PER_MS;

    return granted->after + ttl + ttl / 5 + 500 * NS_PER_MS;
}

/* By now the lease has ended: do the servers know it? */
static bool look_for(struct drill *d, const struct drill_answer *granted)
{
    struct drill_answer seen;
    char text[DURATION_ROOM], ttl[DURATION_ROOM];

    if (!drill_ask(d, WITNESS, ACT_INSPECT, 0, &seen))
        return false;
    if (seen.result == NXL_OK && strcmp(seen.token, granted->token) == 0) {
        drill_broken(d, "G4", "the lease of %s is not over after %s",
            duration_text(ttl, d->ttl_ms),
            drill_time(text, granted->after, seen.before));
        d->over = true;
    }
    return !d->over;
}

bool scene_wait_for(struct drill *d)
{
    return drill_send(d, SECOND, ACT_ACQUIRE, 3 * d->ttl_ms + MORE_MS);
}

bool scene_one_server(const struct drill *d)
{
    return nxl_client_servers(d->session.client) == 1;
}

bool scene_takes_over(struct drill *d, const struct drill_answer *granted,
    bool last, struct drill_answer *next)
{
    uint64_t look_at = last ? ended_by(d, granted) : NEVER;
    char text[DURATION_ROOM];
    unsigned who;

    for (;;) {
        if (!drill_receive(d, ONE(SECOND), look_at, &who, next))
            return false;
        if (who == SECOND)
            break;
        if (!look_for(d, granted))
            return false;
        look_at = nxl_now_ns() + LOOK_AGAIN;
    }
    if (next->result != NXL_OK) {
        drill_failed(d, "acquire after the holder", next);
        return false;
    }
    if (next->after >= granted->deadline)
        return true;
    drill_broken(d, "G3",
        "the next process got the lock %s before the deadline of the holder",
        drill_time(text, next->after, granted->deadline));
    d->over = true;
    return false;
}

bool scene_is_kept(
    struct drill *d, unsigned holder, const char *token, const char *removed_by)
{
    struct drill_answer seen, tried, looked, again;

    if (!drill_ask(d, WITNESS, ACT_INSPECT, 0, &seen) ||
        !drill_ask(d, holder, ACT_LOOK, 0, &looked))
        return false;
    bool gone = seen.result == NXL_FREE ||
                (seen.result == NXL_OK && scene_one_server(d) &&
                    strcmp(seen.token, token) != 0);
    if (gone && looked.held_before)
        drill_broken(
            d, "G2", "%s removed the lock of a live holder", removed_by);
    /* The ledger compares what they answer. */
    if (!drill_ask(d, WITNESS, ACT_ACQUIRE, 0, &tried) ||
        !drill_ask(d, holder, ACT_LOOK, 0, &looked) ||
        !drill_ask(d, WITNESS, ACT_LOOK, 0, &again) ||
        !drill_ask(d, holder, ACT_LOOK, 0, &again))
        return false;
    if (!looked.held_before)
        drill_unshown(d,
            "the lease was over before it could be looked at: the server or "
            "this machine is too slow; a longer --ttl may help");
    else if (tried.result != NXL_BUSY && tried.result != NXL_OK)
        drill_failed(d, "try the lock", &tried);
    return !d->over;
}
