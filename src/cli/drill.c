/* SPDX-License-Identifier: MIT */
/*
 * The command drill: lets processes of its own contend for a lock of its own at
 * the user's servers, kills, stops and cuts them off, and says whether what the
 * library promises was kept.
 *
 * Invariant: nothing but the drill's own keys is written. They are removed at
 * the end, also after a signal; after SIGKILL they expire.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/private.h"
#include "cli/commands.h"
#include "cli/connect.h"
#include "cli/drill_scene.h"
#include "cli/name.h"
#include "cli/report.h"

#define MOST_NS (55 * NS_PER_S)
#define ADDRESS_ROOM 320
#define NOT_TRIED                                                              \
    "a failover, a restart of the server without its data, a clock that is "   \
    "set, a partition of the network, a power failure; docs/fault-matrix.md "  \
    "and docs/guarantees.md say what happens then, and 'nxlock doctor' "       \
    "whether the server is set up for it"

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

static void play_scenes(struct drill *d)
{
    for (size_t i = 0; i < SCENES && d->code == 0; i++) {
        if (d->session.caught != 0)
            return;
        d->scene = scenes[i].name;
        d->over = d->bad = false;
        scenes[i].play(d);
        drill_end_all(d);
        fflush(stdout);
    }
}

/* ------------------------------------------------------------- cleaning up */

/* A player that is ended in the midst of a call has sent requests that a busy
 * server executes a little later. */
#define LAST_REQUESTS_MS 250

/* Removes the key of that name, whatever it contains. The name is freed. A
 * result of the library. */
static int remove_key(nxl_client *client, char *name)
{
    nxl_lock *lock = NULL;
    nxl_holder seen;
    int rc = name ? nxl_lock_new(&lock, client, name, NULL) : NXL_E_NOMEM;

    if (rc == NXL_OK)
        rc = nxl_lock_inspect(lock, &seen);
    if (rc == NXL_OK)
        rc = nxl_lock_break(lock, &seen);
    nxl_lock_free(lock);
    free(name);
    return rc == NXL_FREE ? NXL_OK : rc;
}

/* The line is usually gone with the last waiter. */
static int remove_line(nxl_client *client, const char *name)
{
    nxl_lock *lock = NULL;
    int rc = nxl_lock_new(&lock, client, name, NULL);

    if (rc == NXL_OK)
        rc = lock_empty_line(lock);
    nxl_lock_free(lock);
    return rc == NXL_FREE ? NXL_OK : rc;
}

/* One server alone, because several may have different numbers, or keys that
 * the others have not. */
static bool clean_server(struct drill *d, const char *url)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client = NULL;
    char address[ADDRESS_ROOM];

    options.prefix = nxl_client_prefix(d->session.client);
    int rc = nxl_client_new(&client, url, &options);
    if (rc == NXL_OK)
        rc = remove_key(client, strdup(d->name));
    if (rc == NXL_OK)
        rc = remove_key(client, name_companion(d->name, COMPANION_COUNTER));
    if (rc == NXL_OK)
        rc = remove_key(client, name_companion(d->name, COMPANION_MARK));
    if (rc == NXL_OK)
        rc = remove_line(client, d->name);
    if (rc != NXL_OK)
        diagnostic(&d->diagnostics, LEVEL_NOTE, d->scene, NULL,
            "its keys could not be removed from %s, and expire there within a "
            "day: %s",
            url_address(address, sizeof(address), url),
            failure_words(client ? nxl_client_errmsg(client) : "", rc));
    nxl_client_free(client);
    return rc == NXL_OK;
}

static void clean_servers(struct drill *d)
{
    struct url_list list;
    bool clean = true;

    d->scene = "keys";
    if (d->session.caught != 0)
        (void)poll(NULL, 0, LAST_REQUESTS_MS);
    if (!connect_urls(d->args, &list)) {
        say("out of memory");
        return;
    }
    for (size_t i = 0; i < list.count; i++)
        clean = clean_server(d, list.urls[i]) && clean;
    url_list_free(&list);
    diagnostic(&d->diagnostics, LEVEL_OK, d->scene, NULL,
        "only '%s%s' and the keys of its counter and its line were written%s",
        nxl_client_prefix(d->session.client), d->name,
        clean ? ", and they have been removed" : "");
}

/* ------------------------------------------------------------------ the end */

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

static void print_verdict(struct drill *d)
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
        play_scenes(d);
        if (d->ledger.count > 0) /* otherwise nothing was written */
            clean_servers(d);
        print_verdict(d);
        code = exit_code(d);
    }
    if (report_output() != EXIT_DONE)
        code = EXIT_INTERNAL;
    session_close(&d->session);
    return code;
}

/* Are such locks possible with this URL? Not with scheme=timestamp. */
static int check_lock(struct drill *d, nxl_client *client)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;

    options.ttl_ms = d->ttl_ms;
    options.fence = 1;
    if (nxl_lock_new(&lock, client, d->name, &options) != NXL_OK) {
        say("a drill is not possible: %s", nxl_client_errmsg(client));
        return EXIT_USAGE;
    }
    nxl_lock_free(lock);
    return 0;
}

int subcommand_drill(const struct args *args)
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
    /* It only judges the URL, and connects to nothing. */
    code = connect_client(&client, args, &options);
    if (code == 0) {
        d->name = name_own(nxl_client_prefix(client), args->name, "drill");
        code = d->name ? check_lock(d, client) : EXIT_INTERNAL;
        nxl_client_free(client);
    }
    if (code == 0)
        code = run_drill(d);
    free(d->name);
    free(d);
    return code;
}
