/* SPDX-License-Identifier: MIT */
/*
 * The commands without a child. Keeps: a lock is left held only after its
 * token was printed; every other way out of acquire releases it.
 */
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/report.h"

#define MS_PER_S 1000

const char *make_label(char *out, long pid, const char *program)
{
    char host[65] = "";
    const char *slash = strrchr(program, '/');

    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0')
        snprintf(host, sizeof host, "localhost");
    if (slash != NULL && slash[1] != '\0')
        program = slash + 1;
    snprintf(out, LABEL_ROOM, "%s:%ld:%s", host, pid, program);
    for (char *at = out; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~')
            *at = '_';
    }
    return out;
}

/* The one who asked for the lock is the caller, a script perhaps; this
 * process is gone in a moment. */
static const char *label_of_caller(char *out)
{
    char path[64];
    char name[64] = "";
    long pid = (long)getppid();

    snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(name, sizeof(name), file) != NULL)
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    return make_label(out, pid, name[0] != '\0' ? name : "nxlock");
}

/* Ends the process without ending the lock: freeing it would release it. */
_Noreturn static void leave_held(void)
{
    _exit(EXIT_DONE);
}

static void print_left(char *out, size_t size, int64_t left_ms)
{
    if (left_ms < 0)
        snprintf(out, size, "without an end");
    else
        snprintf(out, size, "%lld s left",
            (long long)((left_ms + MS_PER_S - 1) / MS_PER_S));
}

static void print_holder(char *out, size_t size, const nxl_holder *holder)
{
    char who[128];
    char left[48];

    if (holder->label != NULL)
        printable(who, sizeof(who), holder->label, strlen(holder->label));
    else
        printable(who, sizeof(who), holder->value, holder->value_length);
    print_left(left, sizeof(left), holder->left_ms);
    snprintf(out, size, "held by %s, %s", who, left);
}

static int inspect(struct session *session, nxl_holder *holder)
{
    int rc = session_finish(session, nxl_lock_inspect_start(session->lock));

    memset(holder, 0, sizeof(*holder));
    holder->size = sizeof(*holder);
    return rc == NXL_OK ? nxl_lock_holder(session->lock, holder) : rc;
}

/* For people only: cron mails whatever a job prints. */
static void say_busy(struct session *session)
{
    char words[256];
    nxl_holder holder;

    if (!session->args->verbose && !isatty(STDERR_FILENO))
        return;
    if (inspect(session, &holder) == NXL_OK) {
        print_holder(words, sizeof(words), &holder);
        say("'%s' is %s", session->args->name, words);
    } else {
        say("'%s' is held by somebody else", session->args->name);
    }
}

bool acquire_for(struct session *session, int *code)
{
    int64_t wait_ms = session->args->wait_ms;
    int rc = session_finish(
        session, nxl_lock_acquire_start(session->lock, wait_ms));

    if (session->caught != 0) {
        *code = session_interrupted(session);
    } else if (rc == NXL_OK && nxl_lock_held(session->lock)) {
        return true;
    } else if (rc == NXL_BUSY) {
        say_busy(session);
        *code = session->args->busy_code;
    } else if (rc == NXL_OK || rc == NXL_LOST) {
        say("cannot acquire '%s': it was granted too late, its lease was "
            "over on arrival", session->args->name);
        *code = EXIT_UNAVAILABLE;
    } else {
        session_complain(session, "acquire", rc);
        *code = exit_code_for(rc, session->args->busy_code);
    }
    return false;
}

int command_acquire(const struct args *args)
{
    struct session session;
    char label[LABEL_ROOM];
    int code = session_open(&session, args, label_of_caller(label));

    if (code == 0 && acquire_for(&session, &code)) {
        if (puts(nxl_lock_token(session.lock)) >= 0 && fflush(stdout) == 0)
            leave_held();
        say("cannot print the token of '%s': %s; released", args->name,
            strerror(errno));
        code = EXIT_INTERNAL;
    }
    session_close(&session);
    return code;
}

/* What adopt, extend and release have in common when they fail. */
static int failed(struct session *session, const char *what, int rc)
{
    if (session->caught != 0)
        return session_interrupted(session);
    if (rc == NXL_LOST) {
        say("cannot %s '%s': it is not held under this token any more", what,
            session->args->name);
        return EXIT_LOST;
    }
    session_complain(session, what, rc);
    return exit_code_for(rc, EXIT_BUSY);
}

/* Takes over the lock that args name. 0, or an exit code. */
static int take_over(struct session *session, const char *what)
{
    const struct args *args = session->args;
    int rc = session_finish(
        session, nxl_lock_adopt_start(session->lock, args->token));

    if (rc == NXL_OK)
        return 0;
    if (rc == NXL_E_INVALID) {
        say("'%s' is not a token; write the word that 'nxlock acquire %s' "
            "printed", args->token, args->name);
        return EXIT_USAGE;
    }
    return failed(session, what, rc);
}

int command_renew(const struct args *args)
{
    struct session session;
    int code = session_open(&session, args, NULL);

    if (code == 0)
        code = take_over(&session, "renew");
    if (code == 0) {
        int rc = session_finish(
            &session, nxl_lock_extend_start(session.lock, args->ttl_ms));
        if (rc == NXL_OK)
            leave_held();
        code = failed(&session, "renew", rc);
        /* Its owner is at work under it: whatever happened, not released. */
        _exit(code);
    }
    session_close(&session);
    return code;
}

int command_release(const struct args *args)
{
    struct session session;
    int code = session_open(&session, args, NULL);

    if (code == 0)
        code = take_over(&session, "release");
    if (code == 0) {
        int rc = session_finish(
            &session, nxl_lock_release_start(session.lock));
        if (rc != NXL_OK)
            code = failed(&session, "release", rc);
    }
    session_close(&session);
    return code;
}

int command_status(const struct args *args)
{
    struct session session;
    nxl_holder holder;
    char words[256];
    int code = session_open(&session, args, NULL);

    if (code == 0) {
        int rc = inspect(&session, &holder);
        if (rc == NXL_OK) {
            print_holder(words, sizeof(words), &holder);
            printf("%s %s\n", args->name, words);
        } else if (rc == NXL_FREE) {
            printf("%s free\n", args->name);
            code = EXIT_FREE;
        } else {
            code = failed(&session, "look at", rc);
        }
        if (fflush(stdout) != 0) {
            say("cannot print: %s", strerror(errno));
            code = EXIT_INTERNAL;
        }
    }
    session_close(&session);
    return code;
}
