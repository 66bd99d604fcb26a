/* SPDX-License-Identifier: MIT */
/*
 * The command doctor: examines each server, then tries a real lock.
 *
 * Invariant: a server is reported as suitable only after a lock was really
 * acquired, extended and released there, under a name that nothing else uses;
 * and no key is left behind.
 */
#include "cli/doctor/doctor_once.h"
#include "cli/doctor/doctor_rights.h"
#include "cli/doctor/doctor_sentinels.h"
#include "cli/doctor/doctor_server.h"
#include "cli/doctor/doctor_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/acl_rules.h"
#include "cli/commands.h"
#include "cli/name.h"
#include "cli/report/report.h"

#define LEASE_MS 5000
#define LONGER_MS 1 /* or the server has nothing to extend */
#define WAIT_MS 300 /* enough to join a line and to subscribe */
#define LINE_ROOM 512
#define REMEDY_ROOM 1024

/* The TTL of doctor's own locks. */
static int64_t lease_ms(const struct doctor *d)
{
    int64_t most = nxl_client_max_ttl_ms(d->client);

    return (most < LEASE_MS ? most : LEASE_MS) - LONGER_MS;
}

/* Creates a lock handle for name; NULL after reporting why not. */
static nxl_lock *lock_of(struct doctor *d, const char *name, int fence)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;

    options.ttl_ms = lease_ms(d);
    options.label = "nxlock-doctor";
    options.fence = fence;
    int rc = nxl_lock_new(&lock, d->client, name, &options);
    if (rc != NXL_OK)
        diagnostic_failed(
            &d->diagnostics, "round trip", rc, nxl_client_errmsg(d->client));
    return lock;
}

static double ms_since(uint64_t *then)
{
    uint64_t now = nxl_now_ns();
    double ms = (double)(now - *then) / 1e6;

    *then = now;
    return ms;
}

/* What the test lock needs. Without NAME, the user may be limited to names that
 * the test lock's is not among. */
static const char *trial_remedy(struct doctor *d, char out[REMEDY_ROOM])
{
    char words[ACL_WORDS];
    const char *rules = doctor_remedy(d, DOCTOR_ALL, NXL_E_DENIED,
        acl_words(words, sizeof(words), ACL_BIT(LOCK) | ACL_BIT(EXTEND)),
        d->name != NULL, NULL);

    if (d->name)
        return rules;
    snprintf(out, REMEDY_ROOM,
        "if the user has permissions only for certain names, write one of "
        "them: nxlock doctor NAME; otherwise %s",
        rules);
    return out;
}

static void report_failed_step(struct doctor *d, const char *step, int rc,
    const nxl_lock *lock, const char *scratch)
{
    char remedy[REMEDY_ROOM];

    diagnostic(&d->diagnostics, LEVEL_FAIL, "round trip",
        rc == NXL_E_DENIED ? trial_remedy(d, remedy) : NULL,
        "cannot %s the test lock '%s%s': %s", step,
        nxl_client_prefix(d->client), scratch,
        failure_words(nxl_lock_errmsg(lock), rc));
    diagnostic_code(&d->diagnostics, exit_code_for(rc, EXIT_UNAVAILABLE));
}

static bool round_trip(struct doctor *d, const char *scratch)
{
    nxl_lock *lock = lock_of(d, scratch, 0);
    const char *step = "acquire";
    double took[3] = {0, 0, 0};

    if (!lock)
        return false;
    uint64_t then = nxl_now_ns();
    int rc = nxl_lock_acquire(lock, 0);
    took[0] = ms_since(&then);
    if (rc == NXL_OK) {
        step = "extend";
        rc = nxl_lock_extend(lock, lease_ms(d) + LONGER_MS);
        took[1] = ms_since(&then);
    }
    if (rc == NXL_OK) {
        step = "release";
        rc = nxl_lock_release(lock);
        took[2] = ms_since(&then);
    }
    if (rc == NXL_OK) {
        diagnostic(&d->diagnostics, LEVEL_OK, "round trip", NULL,
            "acquired in %.2fms, extended in %.2fms, released in %.2fms",
            took[0], took[1], took[2]);
    } else {
        report_failed_step(d, step, rc, lock, scratch);
    }
    nxl_lock_free(lock);
    return rc == NXL_OK;
}

/* Removes the fencing counter of the test lock, which would stay for a day. Its
 * name is never used again, so no number can be repeated. */
static void remove_counter(struct doctor *d, const char *counter)
{
    nxl_lock *lock = lock_of(d, counter, 0);
    nxl_holder seen = NXL_HOLDER_INIT;

    if (!lock)
        return;
    int rc = nxl_lock_inspect(lock, &seen);
    if (rc == NXL_OK)
        rc = nxl_lock_break(lock, &seen);
    if (rc != NXL_OK && rc != NXL_FREE)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "scripts", NULL,
            "cannot remove the fencing counter of the test lock, "
            "'%s%s': %s",
            nxl_client_prefix(d->client), counter, nxl_lock_errmsg(lock));
    nxl_lock_free(lock);
}

/* Do all servers that we could log in to run scripts, as far as is known? */
static bool scripts_run(struct doctor *d)
{
    for (size_t i = 0; i < d->servers; i++) {
        if (d->let_in[i] && !doctor_facts(d, i).scripts)
            return false;
    }
    return true;
}

static void report_no_fence(struct doctor *d, int rc, const char *why)
{
    char words[ACL_WORDS];

    if (scripts_run(d))
        diagnostic(&d->diagnostics, LEVEL_WARN, "rights",
            doctor_remedy(d, DOCTOR_ALL, rc,
                acl_words(words, sizeof(words), ACL_BIT(FENCE)), true,
                "remove rename-command for TIME, GETRANGE, EXISTS and PTTL "
                "from the server's configuration"),
            "scripts run, but cannot create a fencing token: %s", why);
    else
        diagnostic(&d->diagnostics, LEVEL_WARN, "rights",
            doctor_remedy(d, DOCTOR_ALL, rc,
                acl_words(words, sizeof(words),
                    ACL_BIT(FENCE) | ACL_BIT(EXTEND) | ACL_BIT(LOAD)),
                true,
                "use Redis 2.6 or later, and remove rename-command for EVAL "
                "and EVALSHA from the server's configuration"),
            "scripts cannot be run, so there are no fencing tokens, and "
            "locks are renewed and released by other commands: %s",
            why);
}

/* Tries to get a fencing token, which needs scripts. */
static void check_fence(
    struct doctor *d, const char *scratch, const char *counter)
{
    nxl_lock *lock = lock_of(d, scratch, 1);

    if (!lock)
        return;
    int rc = nxl_lock_acquire(lock, 0);
    /* Clean up before printing: if nothing reads our output, writing it ends
     * this process. */
    int released = rc == NXL_OK ? nxl_lock_release(lock) : NXL_OK;
    remove_counter(d, counter); /* it may exist even if the acquire failed */
    if (rc == NXL_OK && released == NXL_OK) {
        diagnostic(&d->diagnostics, LEVEL_OK, "scripts", NULL,
            "allowed; fencing tokens work");
    } else if (rc == NXL_E_DENIED || rc == NXL_E_UNSUPPORTED) {
        report_no_fence(d, rc, nxl_lock_errmsg(lock));
    } else {
        diagnostic_failed(&d->diagnostics, "scripts",
            rc == NXL_OK ? released : rc, nxl_lock_errmsg(lock));
    }
    nxl_lock_free(lock);
}

static void report_not_left(struct doctor *d)
{
    char words[ACL_WORDS];

    diagnostic(&d->diagnostics, LEVEL_WARN, "rights",
        doctor_remedy(d, DOCTOR_ALL, NXL_E_DENIED,
            acl_words(words, sizeof(words), ACL_BIT(LINE)), true, NULL),
        "a waiter that gave up could not leave the line, so the test lock was "
        "handed over to it and ends by its TTL");
}

/* Waits for the test lock while we hold it: only then is it known whether the
 * server and the user allow waiting in line. */
static void try_waiting(struct doctor *d, const char *scratch)
{
    nxl_lock *held = lock_of(d, scratch, 0);
    nxl_lock *waiter = held ? lock_of(d, scratch, 0) : NULL;
    nxl_holder seen = NXL_HOLDER_INIT;

    if (waiter && nxl_lock_acquire(held, 0) == NXL_OK) {
        int rc = nxl_lock_acquire(waiter, WAIT_MS);
        (void)rc;              /* it makes the client find out */
        nxl_lock_free(waiter); /* it leaves the line */
        waiter = NULL;
        rc = nxl_lock_release(held);
        if (rc != NXL_OK)
            report_failed_step(d, "release", rc, held, scratch);
        else if (nxl_lock_inspect(held, &seen) == NXL_OK)
            report_not_left(d);
    }
    nxl_lock_free(waiter);
    nxl_lock_free(held);
}

/* Reports how locks wait for a busy one. */
static void check_waiting(struct doctor *d, const char *scratch)
{
    bool may = doctor_facts(d, 0).in_line;

    if (may)
        try_waiting(d, scratch);
    nxl_server_facts facts = doctor_facts(d, 0);
    if (facts.waiting[0] == '\0')
        return; /* the connection was just lost */
    /* In line, but without the permission for messages. */
    bool unheard = facts.in_line && strstr(facts.waiting, "NOPERM");
    bool denied = unheard || (may && !facts.in_line && scripts_run(d));
    char words[ACL_WORDS];
    diagnostic(&d->diagnostics,
        facts.in_line && !unheard ? LEVEL_OK : LEVEL_NOTE, "waiting",
        denied ? doctor_remedy(d, DOCTOR_ALL, NXL_E_DENIED,
                     acl_words(words, sizeof(words), ACL_BIT(LINE)), true, NULL)
               : NULL,
        "%s: %s", facts.waiting,
        facts.in_line ? "first come, first served"
                      : "who waits tries again and again, so the order is "
                        "random");
}

/* Shares the test lock, and takes a permit beside that: what this needs more
 * than an exclusive lock. */
static int share_lock(nxl_lock *reader, nxl_lock *worker)
{
    int rc = nxl_lock_acquire(reader, 0);

    if (rc != NXL_OK)
        return rc;
    rc = nxl_lock_acquire(worker, 0);
    int released = rc == NXL_OK ? nxl_lock_release(worker) : NXL_OK;
    int last = nxl_lock_release(reader);
    return rc != NXL_OK ? rc : released != NXL_OK ? released : last;
}

/* Reports whether the user may use locks that several hold, which the other
 * trials have not shown. */
static void check_several(struct doctor *d, const char *scratch)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *reader = NULL, *worker = NULL;
    char words[ACL_WORDS];

    options.ttl_ms = lease_ms(d);
    options.shared = 1;
    if (!scripts_run(d) ||
        nxl_lock_new(&reader, d->client, scratch, &options) != NXL_OK)
        return;
    options.shared = 0;
    options.permits = 2;
    if (nxl_lock_new(&worker, d->client, scratch, &options) == NXL_OK &&
        share_lock(reader, worker) == NXL_E_DENIED) {
        const char *why = nxl_lock_errmsg(worker);
        diagnostic(&d->diagnostics, LEVEL_NOTE, "rights",
            doctor_remedy(d, DOCTOR_ALL, NXL_E_DENIED,
                acl_words(words, sizeof(words), ACL_BIT(PERMITS)), true, NULL),
            "locks that several hold (--permits, -s) are not permitted: %s",
            why[0] != '\0' ? why : nxl_lock_errmsg(reader));
    }
    nxl_lock_free(worker);
    nxl_lock_free(reader);
}

/* Tries a lock beside NAME, which needs the same permissions. */
static void try_lock(struct doctor *d)
{
    char *scratch = name_own(nxl_client_prefix(d->client), d->name, "doctor");
    char *counter = scratch ? name_companion(scratch, COMPANION_COUNTER) : NULL;

    if (!counter) {
        diagnostic_failed(&d->diagnostics, "round trip", NXL_E_NOMEM, "");
    } else if (round_trip(d, scratch)) {
        check_fence(d, scratch, counter);
        check_waiting(d, scratch);
        check_several(d, scratch);
    }
    free(scratch);
    free(counter);
}

static void examine(struct doctor *d)
{
    char line[LINE_ROOM];

    doctor_sentinels(d);
    for (size_t i = 0; i < d->servers; i++) {
        doctor_turn_to(d, i);
        doctor_server(d, i);
        fflush(stdout);
    }
    d->diagnostics.server = NULL;
    if (d->args->records)
        doctor_once_servers(d);
    if (d->reached > 0)
        try_lock(d);
    if (d->reached > 0)
        doctor_untried(d);
    doctor_all_rights(d);
    for (size_t i = 0; i < d->servers; i++) {
        nxl_server_facts facts = doctor_facts(d, i);
        if (!d->let_in[i] || facts.state != NXL_SERVER_UP)
            continue;
        nxl_client_describe_server(d->client, i, line, sizeof(line));
        diagnostic(&d->diagnostics, facts.votes ? LEVEL_OK : LEVEL_NOTE,
            "server", NULL, "%s", line);
    }
}

/* The keys that belong to NAME. False: no memory. */
static bool name_them(struct doctor *d)
{
    if (!d->name)
        return true;
    if (!name_keys(nxl_client_prefix(d->client), d->name, &d->key, &d->counter))
        return false;
    if (d->args->records)
        d->record = name_companion(d->key, COMPANION_RECORD);
    return d->record || !d->args->records;
}

int subcommand_doctor(const struct args *args)
{
    struct session session;
    int code = session_open_plain(&session, args);

    if (code == 0) {
        struct doctor doctor = {.args = args,
            .client = session.client,
            .diagnostics = {.json = args->json},
            .servers = nxl_client_servers(session.client),
            .name = args->name};
        if (name_them(&doctor) && doctor_sources(&doctor)) {
            examine(&doctor);
            code = diagnostics_code(&doctor.diagnostics);
        } else {
            say("out of memory");
            code = EXIT_INTERNAL;
        }
        free(doctor.key);
        free(doctor.counter);
        free(doctor.record);
        if (report_output() != EXIT_DONE)
            code = EXIT_INTERNAL;
    }
    session_close(&session);
    return code;
}
