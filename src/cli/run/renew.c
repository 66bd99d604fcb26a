/* SPDX-License-Identifier: MIT */
/*
 * The commands that take a token: renew and release.
 *
 * Invariant: renew never releases, whatever happens, since the owner is at work
 * under the lock.
 */
#include "cli/commands.h"

#include <string.h>

#include "cli/report/duration.h"
#include "cli/report/event.h"
#include "cli/names.h"
#include "cli/report/report.h"

/* Not all of several names are held under the token. Releases those that are.
 * Returns the exit code. */
static int release_rest(struct session *session)
{
    const struct args *args = session->args;

    for (size_t i = 0; session->caught == 0 && i < names_count(args); i++) {
        int rc = session_enter(session, i);
        if (rc == NXL_OK)
            rc = session_finish(
                session, nxl_lock_adopt_start(session->lock, args->token));
        if (rc == NXL_OK)
            rc = session_finish(session, nxl_lock_release_start(session->lock));
        if (rc == NXL_OK)
            event_report((struct event){.kind = EVENT_RELEASED},
                "released '%s'", session->args->shown);
        else
            (void)session_failed(session, "release", rc);
        session_leave(session);
    }
    return session->caught != 0 ? session_interrupted(session) : EXIT_LOST;
}

/* Takes over the lock that args name. 0, or an exit code. */
static int adopt(struct session *session, const char *what)
{
    const struct args *args = session->args;
    char shown[NAME_SHOWN], pasted[NAME_PASTED];
    int rc = session_finish(
        session, nxl_lock_adopt_start(session->lock, args->token));

    if (rc == NXL_OK)
        return 0;
    if (rc == NXL_LOST && session->caught == 0 && names_several(args) &&
        args->command == CMD_RELEASE)
        return release_rest(session);
    if (rc == NXL_E_INVALID) {
        bool hidden = name_hide_secret(shown, pasted, args->name);
        say("TOKEN is not a token (it has %zu characters); use the word "
            "that 'nxlock acquire %s' printed",
            strlen(args->token), hidden ? pasted : args->pasted);
        return EXIT_USAGE;
    }
    return session_failed(session, what, rc);
}

int subcommand_renew(const struct args *args)
{
    struct session session;
    int code = session_open(&session, args, NULL);

    if (code == 0)
        code = adopt(&session, "renew");
    if (code == 0) {
        int rc = session_finish(
            &session, nxl_lock_extend_start(session.lock, args->ttl_ms));
        int64_t left_ms = nxl_lock_remaining_ms(session.lock);
        char left[DURATION_ROOM];
        if (rc != NXL_OK)
            code = session_failed(&session, "renew", rc);
        else
            event_report(
                (struct event){.kind = EVENT_RENEWED, .left_ms = left_ms},
                "renewed '%s', %s left", args->shown,
                duration_rough(left, left_ms));
        session_leave_held(&session, code);
    }
    session_close(&session);
    return code;
}

int subcommand_release(const struct args *args)
{
    struct session session;
    int code = session_open(&session, args, NULL);

    if (code == 0)
        code = adopt(&session, "release");
    if (code == 0) {
        int rc = session_finish(&session, nxl_lock_release_start(session.lock));
        if (rc != NXL_OK)
            code = session_failed(&session, "release", rc);
        else
            event_report((struct event){.kind = EVENT_RELEASED},
                "released '%s'", args->shown);
    }
    session_close(&session);
    return code;
}
