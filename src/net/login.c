/* SPDX-License-Identifier: MIT */
/*
 * User and password for the connections to one server.
 *
 * Invariant: a password that was sent, and the one before it, stay known to
 * redact_add() until they are replaced, and are overwritten before they are
 * freed. Nothing here blocks, except for reading a small file.
 */
#include "net/login.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/deadline.h"

/* How long the result of a callback counts that ended while no attempt waited
 * for it, and how long a refusal does. */
#define RESULT_LASTS (10 * NS_PER_S)
/* A client that is in use takes a result sooner than this. */
#define LEFT_LYING (5 * NS_PER_MS)

struct login_job {
    struct job job;
    struct login_source source;
    unsigned server;
    bool ok;
    uint64_t ended_at;
    struct login_answer answer;
};

/* --------------------------------------------------------------- ownership */

/* The password of a URL belongs to its settings. */
static bool is_owned(const struct login *l)
{
    return !l->settings->password;
}

static void free_slice(struct slice *secret)
{
    if (secret->data)
        explicit_bzero((char *)secret->data, secret->len);
    free((char *)secret->data);
    *secret = (struct slice){NULL, 0};
}

static bool same(struct slice a, const char *b)
{
    return a.data && b && slice_equal(a, slice_of(b));
}

/* Takes over both strings; user NULL: none. False: they are those in use. */
static bool replace(struct login *l, char *user, char *password)
{
    bool same_user = user ? same(l->user, user) : !l->user.data;
    bool same_password = same(l->password, password);

    free_slice(&l->user);
    if (user)
        l->user = slice_of(user);
    if (same_password) {
        secret_free(password);
        return !same_user;
    }
    free_slice(&l->former);
    l->former = l->password;
    l->password = slice_of(password);
    return true;
}

void login_init(
    struct login *l, const struct login_settings *settings, unsigned server)
{
    *l = (struct login){.settings = settings, .server = server};
    if (!settings->password)
        return;
    l->password = slice_of(settings->password);
    if (settings->user)
        l->user = slice_of(settings->user);
}

void login_free(struct login *l)
{
    login_cancel(l);
    struct job *job = login_detach(l);
    if (job)
        job_drop(job);
    if (is_owned(l)) {
        free_slice(&l->user);
        free_slice(&l->password);
    }
    free_slice(&l->former);
    l->user = l->password = (struct slice){NULL, 0};
}

void login_close_in_child(struct login *l)
{
    if (l->job)
        close(l->job->job.fd);
}

bool login_is_needed(const struct login *l)
{
    const struct login_settings *set = l->settings;
    return set->password || set->password_file || set->source.ask;
}

/* ---------------------------------------------------------------- results */

static enum login_state fail(struct login *l, enum fault fault)
{
    l->refused_until = 0;
    l->after_refusal = false;
    l->fault = fault;
    return LOGIN_FAILED;
}

static enum login_state fail_without_memory(struct login *l, struct text *error)
{
    text_set(error, "out of memory: cannot store the password");
    return fail(l, FAULT_SYSTEM);
}

/* Takes over the password of a new connection. */
static enum login_state take(struct login *l, const char *user, char *password,
    uint64_t now, struct text *error)
{
    char *copy = user ? strdup(user) : NULL;
    bool was_refused = now < l->refused_until;

    if (user && !copy) {
        secret_free(password);
        return fail_without_memory(l, error);
    }
    bool changed = replace(l, copy, password);
    if (was_refused && !changed)
        return fail(l, FAULT_DENIED);
    l->after_refusal = was_refused;
    l->refused_until = 0;
    return LOGIN_READY;
}

static enum login_state read_file(
    struct login *l, uint64_t now, struct text *error)
{
    const struct login_settings *set = l->settings;
    char *password = NULL;

    if (!secret_file_read(
            set->password_file, "password file", &password, error))
        return fail(l, FAULT_CREDENTIALS);
    return take(l, set->user, password, now, error);
}

/* --------------------------------------------------------------- callback */

static void work(struct job *job)
{
    struct login_job *mine = (struct login_job *)job; /* the first member */

    mine->ok = mine->source.ask(&mine->source, mine->server, &mine->answer);
    mine->ended_at = clock_now();
}

static void dispose(struct job *job)
{
    struct login_job *mine = (struct login_job *)job;

    explicit_bzero(&mine->answer, sizeof(mine->answer));
    free(mine);
}

/* Starts the callback. False: *error says why not. */
static bool call(struct login *l, struct text *error)
{
    struct login_job *fresh = calloc(1, sizeof(*fresh));

    if (!fresh) {
        text_set(error, "out of memory: cannot call the credentials callback");
        return false;
    }
    fresh->job.work = work;
    fresh->job.dispose = dispose;
    fresh->source = l->settings->source;
    fresh->server = l->server;
    int failure = job_start(&fresh->job);
    if (failure == 0) {
        l->job = fresh;
        return true;
    }
    free(fresh);
    text_clear(error);
    text_addf(error, "cannot start a thread for the credentials callback: %s",
        strerrordesc_np(failure));
    return false;
}

static void drop_job(struct login *l)
{
    job_drop(&l->job->job);
    l->job = NULL;
}

/* The words of the program may contain a password, even one that is not in use
 * yet. */
static void explain_failure(const struct login_answer *answer,
    const struct secrets *secrets, struct text *error)
{
    struct slice password = slice_of(answer->password);
    struct secrets all = {0};

    if (secrets)
        all = *secrets;
    secrets_add(&all, &password);
    text_set(error, "the credentials callback failed");
    if (answer->why[0] == '\0')
        return;
    text_add(error, ": ");
    redact_add(error, slice_of(answer->why), FOREIGN_MAX, &all);
}

/* Takes the result of the callback, which has returned. */
static enum login_state take_result(struct login *l,
    const struct secrets *secrets, uint64_t now, struct text *error)
{
    const struct login_answer *answer = &l->job->answer;
    const char *user = answer->user[0] ? answer->user : l->settings->user;
    enum login_state state;

    if (!l->job->ok) {
        explain_failure(answer, secrets, error);
        state = fail(l, FAULT_CREDENTIALS);
    } else {
        char *password = strdup(answer->password);
        state = password ? take(l, user, password, now, error)
                         : fail_without_memory(l, error);
    }
    drop_job(l);
    return state;
}

static enum login_state ask(struct login *l, const struct secrets *secrets,
    uint64_t now, struct text *error)
{
    if (l->job && job_over(&l->job->job) &&
        now > deadline_after(l->job->ended_at, RESULT_LASTS))
        drop_job(l);
    if (!l->job && !call(l, error))
        return fail(l, FAULT_SYSTEM);
    if (job_over(&l->job->job))
        return take_result(l, secrets, now, error);
    if (!poller_add(l->poller, l->job->job.fd, POLLIN, l->source)) {
        poller_explain(error);
        return fail(l, FAULT_SYSTEM);
    }
    l->busy = true;
    return LOGIN_WAIT;
}

/* ------------------------------------------------------------------ public */

enum login_state login_start(struct login *l, const struct secrets *secrets,
    uint64_t now, struct text *error)
{
    const struct login_settings *set = l->settings;

    if (set->password || !login_is_needed(l))
        return LOGIN_READY;
    return set->password_file ? read_file(l, now, error)
                              : ask(l, secrets, now, error);
}

enum login_state login_step(struct login *l, const struct secrets *secrets,
    uint64_t now, struct text *error)
{
    login_cancel(l); /* the descriptor may be closed by what follows */
    return ask(l, secrets, now, error);
}

void login_cancel(struct login *l)
{
    if (l->busy)
        poller_remove(l->poller, l->job->job.fd);
    l->busy = false;
}

bool login_note_refusal(struct login *l, uint64_t now)
{
    bool again = login_is_needed(l) && is_owned(l) && !l->after_refusal;

    l->refused_until = again ? deadline_after(now, RESULT_LASTS) : 0;
    l->after_refusal = false;
    return again;
}

bool login_drop_stale(struct login *l, uint64_t now)
{
    if (now >= l->refused_until || !l->busy || !job_over(&l->job->job) ||
        now < deadline_after(l->job->ended_at, LEFT_LYING))
        return false;
    login_cancel(l);
    drop_job(l);
    l->refused_until = 0;
    return true;
}

void login_note_success(struct login *l)
{
    l->refused_until = 0;
    l->after_refusal = false;
}

struct job *login_detach(struct login *l)
{
    struct login_job *mine = l->job;

    login_cancel(l);
    l->job = NULL;
    return mine ? &mine->job : NULL;
}
