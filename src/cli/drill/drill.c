/* SPDX-License-Identifier: MIT */
/*
 * The command drill: lets clients of its own contend for a lock of its own at
 * the user's servers, crashes and cuts off its holder, and says whether what
 * the library promises was kept. That never two clients hold the lock is
 * checked at each grant (drill_loop.c).
 *
 * Invariant: how fast something was is reported, never judged. Only keys of the
 * drill's own lock are written; its clients remove them, also after a signal.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/drill/drill_loop.h"
#include "cli/report/duration.h"
#include "cli/name.h"
#include "cli/report/report.h"

#define NOT_TRIED                                                              \
    "a failover, a restart of the server without its data, a clock that is "   \
    "set, a partition of the network, a power failure; docs/proof.md and "     \
    "docs/guarantees.md say what happens then, and 'nxlock doctor' whether "   \
    "the server is set up for it"

/* How long it took, as people write it. out has DURATION_ROOM bytes. */
static const char *took(char *out, uint64_t from, uint64_t until)
{
    return duration_text(out, ms_between(from, until));
}

/* ------------------------------------------------------------------- checks */

/* A check begins when the first client has just been granted the lock, and
 * reports one finding. */

#define GRANTS 60
#define CONTENTION (4 * NS_PER_S)
#define HOLD (10 * NS_PER_MS)

/* Begins what an idle contender does next, until there have been enough grants.
 * False: nothing. */
static bool contend(struct drill *d, struct contender *c, uint64_t end)
{
    uint64_t now = nxl_now_ns();

    if (c->busy)
        return true;
    if (nxl_lock_held(c->lock)) {
        if (now >= c->ended + HOLD)
            drill_begin(c, nxl_lock_release_start(c->lock));
        return true;
    }
    if (c->result != NXL_OK && c->result != NXL_LOST) /* lost: it was slow */
        drill_failed(d, "acquire or release", c);
    if (d->over || d->grants >= GRANTS || now >= end)
        return false;
    drill_wait(d, c);
    return true;
}

/* All clients acquire and release the lock. */
static void check_contention(struct drill *d, struct contender *first)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    uint64_t began = nxl_now_ns();
    char text[DURATION_ROOM];
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < CONTENDERS; i++)
            more |= contend(d, &d->contenders[i], began + CONTENTION);
        if (more && !drill_turn(d, nxl_now_ns() + HOLD))
            return;
    }
    (void)nxl_client_server_facts(first->client, 0, &facts);
    drill_found(d, SHOWN,
        "%d clients held the lock %u times in %s, never two at once; they "
        "waited %s",
        CONTENDERS, d->grants, took(text, began, nxl_now_ns()), facts.waiting);
}

/* The holder crashes: the lock is free when its lease is over. */
static void check_crash(struct drill *d, struct contender *first)
{
    struct contender *second = &d->contenders[1];
    char ttl[DURATION_ROOM], text[DURATION_ROOM];

    first->crashed = true;
    uint64_t crashed = nxl_now_ns();
    if (!drill_cut(d))
        return;
    drill_wait(d, second);
    if (!drill_finish(d, second))
        return;
    duration_text(ttl, d->args->ttl_ms);
    took(text, crashed, second->ended);
    /* A server has answered that the lease may still be running (G6). */
    if (second->result == NXL_BUSY)
        drill_found(d, BROKEN,
            "%s after the holder had crashed, its lease of %s was not over "
            "(guarantees.md, G4)",
            text, ttl);
    if (drill_granted(d, second))
        drill_found(d, SHOWN,
            "the holder, with a lease of %s, closed its connections and did "
            "nothing more, as after SIGKILL; the next client got the lock %s "
            "later",
            ttl, text);
}

/* The holder keeps the lock until that time. */
static bool keeps_lock(struct drill *d, const struct contender *c, uint64_t end)
{
    while (c->loss == NXL_LOSS_NONE && nxl_now_ns() < end)
        if (!drill_turn(d, end))
            return false;
    if (c->loss == NXL_LOSS_REMOVED || c->loss == NXL_LOSS_TAKEN)
        drill_found(d, BROKEN,
            "the key of a lock that was held and renewed disappeared from the "
            "server: eviction, FLUSHALL, a restart or failover without data, "
            "or several servers behind one address (guarantees.md, What can "
            "still go wrong)");
    else if (c->loss != NXL_LOSS_NONE)
        drill_found(d, UNSHOWN,
            "the lock could not be renewed in time, and was lost: the server "
            "or this machine is too slow; a longer --ttl may help");
    return !d->over;
}

/* All connections are cut: the holder renews its lock on a new one. */
static void check_cut(struct drill *d, struct contender *first)
{
    struct contender *second = &d->contenders[1];
    uint64_t granted = first->ended;
    uint64_t half = (uint64_t)d->args->ttl_ms * NS_PER_MS / 2;
    char ttl[DURATION_ROOM], held[DURATION_ROOM];

    drill_wait(d, second);
    if (!keeps_lock(d, first, granted + half) || !drill_cut(d) ||
        !keeps_lock(d, first, granted + 3 * half))
        return;
    took(held, granted, nxl_now_ns());
    drill_begin(first, nxl_lock_release_start(first->lock));
    if (drill_finish(d, first) && first->result != NXL_OK)
        drill_failed(d, "release", first);
    if (drill_granted(d, second))
        drill_found(d, SHOWN,
            "the lock was renewed and held for %s with a lease of %s, although "
            "all connections were cut meanwhile; when it was released, the "
            "client that waited got it",
            held, duration_text(ttl, d->args->ttl_ms));
}

/* How long a loss may be overdue before it counts as not reported. */
#define OVERDUE (10 * NS_PER_S)

/* The holder can make no connection: it reports that the lock is lost. */
static void check_cut_off(struct drill *d, struct contender *first)
{
    struct contender *second = &d->contenders[1];
    char ttl[DURATION_ROOM], lost[DURATION_ROOM], got[DURATION_ROOM];

    first->cut_off = true;
    if (!drill_cut(d))
        return;
    uint64_t cut = nxl_now_ns();
    uint64_t limit = cut + (uint64_t)d->args->ttl_ms * NS_PER_MS + OVERDUE;
    drill_wait(d, second);
    /* The last turn begins when the loss is overdue: if this process was
     * stopped, the client still gets its chance to report it. */
    for (bool last = false; !last && first->loss == NXL_LOSS_NONE;) {
        last = nxl_now_ns() >= limit;
        if (!drill_turn(d, limit))
            return;
    }
    took(lost, cut, nxl_now_ns());
    if (first->loss == NXL_LOSS_NONE)
        drill_found(d, BROKEN,
            "the loss of a lock that could not be renewed was not reported "
            "(guarantees.md, G8)");
    if (drill_granted(d, second))
        drill_found(d, SHOWN,
            "the holder, with a lease of %s, could make no connection: it "
            "reported the loss of the lock %s after the cut, and the next "
            "client got it %s after the cut",
            duration_text(ttl, d->args->ttl_ms), lost,
            took(got, cut, second->ended));
}

static const struct check {
    const char *name;
    void (*run)(struct drill *d, struct contender *first);
} checks[] = {
    {"contention", check_contention},
    {"crashed holder", check_crash},
    {"cut connection", check_cut},
    {"holder cut off", check_cut_off},
};

/* A server that does not answer at once gets a few seconds. */
#define FIRST_MS 3000

/* Each check has new clients. An error or a signal ends the drill. */
static void run_checks(struct drill *d)
{
    struct contender *first = &d->contenders[0];

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        d->check = checks[i].name;
        d->over = false;
        d->code = drill_open(d);
        if (d->code == 0) {
            drill_begin(first, nxl_lock_acquire_start(first->lock, FIRST_MS));
            if (drill_granted(d, first))
                checks[i].run(d, first);
        }
        drill_close(d);
        fflush(stdout);
        if (d->code != 0 || d->session.caught != 0)
            return;
    }
}

/* ------------------------------------------------------------------ the end */

static int exit_code(const struct drill *d)
{
    if (d->found[BROKEN])
        return EXIT_BROKEN;
    if (d->session.caught != 0)
        return session_interrupted(&d->session);
    if (d->code != 0)
        return d->code;
    return d->found[UNSHOWN] ? EXIT_UNSHOWN : EXIT_DONE;
}

static void print_verdict(struct drill *d)
{
    diagnostic(&d->diagnostics, LEVEL_NOTE, "not tried", NULL, NOT_TRIED);
    if (d->found[BROKEN])
        diagnostic(&d->diagnostics, LEVEL_FAIL, "drill",
            "docs/guarantees.md says what the promises depend on; please "
            "report it as SECURITY.md says if none of that explains it",
            "a promise was broken; the lines above name it");
    else if (d->session.caught == 0 && d->code == 0)
        diagnostic(&d->diagnostics, d->found[UNSHOWN] ? LEVEL_WARN : LEVEL_OK,
            "drill", NULL,
            d->found[UNSHOWN]
                ? "no promise was broken, but not everything was shown"
                : "every promise was kept");
}

int subcommand_drill(const struct args *args)
{
    struct drill d = {.args = args, .diagnostics.json = args->json};
    struct args own = *args;

    /* The session is only for signals; its lock is never acquired. */
    if (!own.name)
        own.name = "drill";
    int code = session_open(&d.session, &own, NULL);
    if (code == 0) {
        d.name =
            name_own(nxl_client_prefix(d.session.client), args->name, "drill");
        if (d.name)
            run_checks(&d);
        else
            d.code = EXIT_INTERNAL;
        if (d.grants > 0)
            print_verdict(&d);
        code = exit_code(&d);
    }
    if (report_output() != EXIT_DONE)
        code = EXIT_INTERNAL;
    session_close(&d.session);
    free(d.name);
    return code;
}
