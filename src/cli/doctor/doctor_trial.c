/* SPDX-License-Identifier: MIT */
/*
 * Tries real locks, under a name that nothing else uses: what an acquire, a
 * wait or a record needs is known best by doing it.
 *
 * Invariant: each trial removes its keys before it is reported, because this
 * process ends when nothing reads its output.
 */
#include <stdlib.h>

#include "cli/doctor/doctor_state.h"
#include "cli/name.h"
#include "cli/report/report.h"

#define LEASE_MS 5000
#define LONGER_MS 1   /* or the server has nothing to extend */
#define ACL_VERSION 6 /* of Redis: older ones have no permissions */
#define WAIT_MS 300   /* enough to join a line and to subscribe */

enum { LOCK, FENCING, WAITING, PERMITS, ONCE };

static const struct trial {
    const char *subject;
    enum level level;       /* of a failure */
    int fence, permits;     /* options of the lock */
    bool waits;             /* another handle waits for it, or holds it too */
    const char *ok, *words; /* of a success, NULL: none, and of a failure */
} trials[] = {
    [LOCK] = {"lock", LEVEL_FAIL, 0, 0, false,
        "acquired, extended and released",
        "no lock can be acquired, extended and released"},
    [FENCING] = {"fencing", LEVEL_WARN, 1, 0, false, "fencing tokens work",
        "there are no fencing tokens"},
    [WAITING] = {"waiting", LEVEL_WARN, 0, 0, true, NULL,
        "a lock that another waits for cannot be released"},
    [PERMITS] = {"permits", LEVEL_NOTE, 0, 2, true, NULL,
        "several cannot hold a lock (--permits, --shared)"},
    [ONCE] = {"once", LEVEL_FAIL, 0, 0, false, "work can be recorded",
        "nxlock once does not work here"},
};

/* The longest lease of a trial; a little is left to extend it by. */
static int64_t ttl_ms(const struct doctor *d)
{
    int64_t most = nxl_client_max_ttl_ms(d->own.client);

    return (most < LEASE_MS ? most : LEASE_MS) - LONGER_MS;
}

static int try_lock(const struct doctor *d, const struct trial *trial,
    nxl_lock *lock, nxl_lock *other)
{
    int rc = nxl_lock_acquire(lock, 0);

    if (rc != NXL_OK)
        return rc;
    if (trial->waits) {
        rc = nxl_lock_acquire(other, WAIT_MS);
        if (rc == NXL_OK)
            rc = nxl_lock_release(other);
    } else {
        rc = nxl_lock_extend(lock, ttl_ms(d) + LONGER_MS);
    }
    int released = nxl_lock_release(lock);
    return rc == NXL_OK || rc == NXL_BUSY ? released : rc;
}

static int try_record(nxl_lock *lock)
{
    int rc = nxl_once_begin(lock, NULL, 0);

    if (rc == NXL_OK)
        rc = nxl_once_tell(lock, NXL_ONCE_FAILED, 0, NULL, 0);
    return rc == NXL_OK ? nxl_once_forget(lock) : rc;
}

static int make(const struct doctor *d, const char *name,
    const struct trial *trial, nxl_lock **lock)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;

    *lock = NULL;
    options.ttl_ms = ttl_ms(d);
    options.label = "nxlock-doctor";
    options.fence = trial->fence;
    options.permits = trial->permits;
    return nxl_lock_new(lock, d->own.client, name, &options);
}

/* Removes the fencing counter of the trial's lock, which would stay for a day.
 * Its name is never used again, so no number can be repeated. */
static void remove_counter(struct doctor *d, const char *name)
{
    char *counter = name_companion(name, COMPANION_COUNTER);
    nxl_holder seen = NXL_HOLDER_INIT;
    nxl_lock *lock = NULL;

    if (counter && make(d, counter, &trials[LOCK], &lock) == NXL_OK &&
        nxl_lock_inspect(lock, &seen) == NXL_OK)
        (void)!nxl_lock_break(lock, &seen);
    nxl_lock_free(lock);
    free(counter);
}

static void report_failure(
    struct doctor *d, const struct trial *trial, int rc, const char *why)
{
    diagnostic(&d->diagnostics, trial->level, trial->subject,
        doctor_grant(d, rc), "%s: %s", trial->words, failure_words(why, rc));
    if (trial->level == LEVEL_FAIL)
        diagnostic_code(&d->diagnostics, exit_code_for(rc, EXIT_UNAVAILABLE));
}

static bool run(struct doctor *d, const struct trial *trial, const char *name)
{
    nxl_lock *lock, *other = NULL;
    int rc = make(d, name, trial, &lock);
    const char *why = nxl_client_errmsg(d->own.client);

    if (rc == NXL_E_INVALID || rc == NXL_E_UNSUPPORTED)
        return true; /* the URL rules out locks of this kind */
    if (rc == NXL_OK)
        rc = make(d, name, trial, &other);
    if (rc == NXL_OK) {
        rc = trial == &trials[ONCE] ? try_record(lock)
                                    : try_lock(d, trial, lock, other);
        remove_counter(d, name);
        why = nxl_lock_errmsg(lock);
        if (why[0] == '\0')
            why = nxl_lock_errmsg(other);
    }
    if (rc != NXL_OK)
        report_failure(d, trial, rc, why);
    else if (trial->ok)
        diagnostic(
            &d->diagnostics, LEVEL_OK, trial->subject, NULL, "%s", trial->ok);
    nxl_lock_free(other);
    nxl_lock_free(lock);
    return rc == NXL_OK;
}

/* After a wait for a busy lock, which shows how locks wait there. expected: the
 * server was to have a line. Nothing but a missing permission keeps one that
 * runs scripts and has ACLs from it. */
static void report_waiting(struct doctor *d, bool expected)
{
    nxl_server_facts *facts = &d->own.facts;

    (void)nxl_client_server_facts(d->own.client, 0, facts);
    int version = facts->version[0]; /* 0: unknown */
    bool denied = expected && !facts->in_line && facts->scripts &&
                  (version == 0 || version >= ACL_VERSION);
    diagnostic(&d->diagnostics, facts->in_line ? LEVEL_OK : LEVEL_NOTE,
        "waiting", denied ? doctor_grant(d, NXL_E_DENIED) : NULL, "%s: %s",
        facts->waiting,
        facts->in_line ? "first come, first served" : "the order is random");
}

void doctor_trial(struct doctor *d)
{
    char *name =
        name_own(nxl_client_prefix(d->own.client), d->args->name, "doctor");

    if (!name)
        diagnostic_failed(&d->diagnostics, "lock", NXL_E_NOMEM, "");
    for (int i = LOCK; name && i <= (d->args->records ? ONCE : PERMITS); i++) {
        (void)nxl_client_server_facts(d->own.client, 0, &d->own.facts);
        bool expected = d->own.facts.in_line;
        if (!run(d, &trials[i], name) && i == LOCK)
            break;
        if (i == WAITING)
            report_waiting(d, expected);
    }
    free(name);
}
