/* SPDX-License-Identifier: MIT */
/*
 * The command drill: lets processes of its own contend for a lock of its own at
 * the user's servers, kills, stops and cuts them off, and says whether what the
 * library promises was kept.
 *
 * Invariant: nothing but the drill's own keys is written. They are removed at
 * the end, also after a signal; after SIGKILL they expire.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/connect.h"
#include "cli/drill_scene.h"
#include "cli/name.h"
#include "cli/report.h"

#define MOST_NS (55 * NS_PER_S)
#define NOT_TRIED                                                              \
    "a failover, a restart of the server without its data, a clock that is "   \
    "set, a network that loses packets in one direction only, a power "        \
    "failure; "                                                                \
    "docs/fault-matrix.md and docs/guarantees.md say what happens then, and "  \
    "'nxlock doctor' whether the server is set up for it"

static const struct scene {
    const char *name;
    void (*play)(struct drill *d);
} scenes[] = {
    {"taking turns", scene_turns},
    {"killed holder", scene_killed},
    {"stopped holder", scene_stopped},
    {"former holder", scene_adopted},
    {"cut connection", scene_renewed},
    {"holder cut off", scene_cut_off},
    {"lost answer", scene_lost_answer},
};
#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

static void play(struct drill *d)
{
    for (size_t i = 0; i < SCENES && d->code == 0; i++) {
        if (d->session.caught != 0)
            return;
        d->scene = scenes[i].name;
        d->over = d->bad = false;
        scenes[i].play(d);
        drill_dismiss(d);
        fflush(stdout);
    }
}

/* ------------------------------------------------------------- cleaning up */

/* Removes the key of that name, whatever it contains. The result of the
 * library: NXL_OK or NXL_FREE if it is gone. */
static int remove_key(struct drill *d, const char *name)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    struct session *session = &d->session;
    nxl_lock *lock, *own = session->lock;
    nxl_holder seen;

    options.ttl_ms = d->ttl_ms;
    int rc = nxl_lock_new(&lock, session->client, name, &options);
    if (rc != NXL_OK)
        return rc;
    session->lock = lock;
    rc = session_finish(session, nxl_lock_inspect_start(lock));
    if (rc == NXL_OK && (rc = nxl_lock_holder(lock, &seen)) == NXL_OK)
        rc = session_finish(session, nxl_lock_break_start(lock, &seen));
    session->lock = own;
    nxl_lock_free(lock);
    return rc;
}

/* The line's keys, of one server, are gone with the last waiter. After a kill
 * they may not be; they expire within 15 s. */
static void remove_line(struct drill *d)
{
    nxl_client *asker = session_asker(&d->session, 0);
    nxl_lock *lock = NULL;

    if (asker && nxl_client_servers(asker) == 1 &&
        nxl_lock_new(&lock, asker, d->name, NULL) == NXL_OK) {
        int rc = nxl_lock_empty_line(lock);
        (void)rc;
    }
    nxl_lock_free(lock);
}

static bool is_gone(int rc)
{
    return rc == NXL_OK || rc == NXL_FREE;
}

static void clean_up(struct drill *d)
{
    const char *prefix = nxl_client_prefix(d->session.client);
    char *counter = name_counter(d->name);
    int lock_gone = remove_key(d, d->name);
    int counter_gone = counter ? remove_key(d, counter) : NXL_E_NOMEM;

    remove_line(d);
    d->scene = "keys";
    if (is_gone(lock_gone) && is_gone(counter_gone))
        diagnostic(&d->diagnostics, LEVEL_OK, d->scene, NULL,
            "'%s%s', its counter '%s%s' and its line were written, and have "
            "been removed",
            prefix, d->name, prefix, counter);
    else
        diagnostic(&d->diagnostics, LEVEL_NOTE, d->scene, NULL,
            "'%s%s' and its counter '%s%s' could not be removed: %s; they "
            "expire within a day",
            prefix, d->name, prefix, counter ? counter : "",
            nxl_client_errmsg(d->session.client));
    free(counter);
}

/* -------------------------------------------------------------------- the end
 */

static int exit_code(const struct drill *d)
{
    if (d->broken)
        return EXIT_BROKEN;
    if (d->session.caught != 0)
        return session_interrupted(&d->session);
    if (d->code != 0)
        return d->code;
    return d->unshown ? EXIT_UNSHOWN : EXIT_DONE;
}

static void conclude(struct drill *d)
{
    diagnostic(&d->diagnostics, LEVEL_NOTE, "not tried", NULL, NOT_TRIED);
    if (d->broken)
        diagnostic(&d->diagnostics, LEVEL_FAIL, "drill",
            "docs/guarantees.md says what the promises depend on; please "
            "report it as SECURITY.md says if none of that explains it",
            "a promise was broken; the lines above name it");
    else if (d->session.caught == 0 && d->code == 0)
        diagnostic(&d->diagnostics, d->unshown ? LEVEL_WARN : LEVEL_OK, "drill",
            NULL,
            d->unshown ? "no promise was broken, but not everything was shown"
                       : "every promise was kept");
}

static int run_drill(struct drill *d)
{
    struct args own = *d->args;
    char lease[DURATION_ROOM];

    /* The session's lock is the drill's. */
    own.name = d->name;
    int code = session_open(&d->session, &own, NULL);
    if (code == 0) {
        diagnostic(&d->diagnostics, LEVEL_NOTE, "drill", NULL,
            "contends for the lock '%s%s' with a lease of %s",
            nxl_client_prefix(d->session.client), d->name,
            duration_text(lease, d->ttl_ms));
        play(d);
        if (d->code == 0 || d->code == EXIT_DENIED)
            clean_up(d);
        conclude(d);
        code = exit_code(d);
    }
    if (ferror(stdout) || fflush(stdout) != 0) {
        say("cannot print: %s", strerror(errno));
        code = EXIT_INTERNAL;
    }
    session_close(&d->session);
    return code;
}

int command_drill(const struct args *args)
{
    struct drill *d = calloc(1, sizeof(*d));
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    int code;

    if (!d) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    d->args = args;
    d->ttl_ms = args->ttl_ms;
    d->diagnostics.json = args->json;
    d->end = nxl_now_ns() + MOST_NS;
    options.max_ttl_ms = args->max_ttl_ms;
    /* It is only asked for its prefix, and connects to nothing. */
    code = connect_client(&client, args, &options);
    if (code == 0) {
        d->name = name_own(nxl_client_prefix(client), args->name, "drill");
        nxl_client_free(client);
        code = d->name ? run_drill(d) : EXIT_INTERNAL;
    }
    free(d->name);
    free(d);
    return code;
}
