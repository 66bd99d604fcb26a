/* SPDX-License-Identifier: MIT */
/*
 * The commands that are given a token: renew and release. Keeps: renew never
 * releases, whatever happened, for the owner is at work under the lock.
 */
#include "cli/commands.h"

#include <string.h>

#include "cli/report.h"

/* Takes over the lock that args name. 0, or an exit code. */
static int take_over(struct session *session, const char *what)
{
    const struct args *args = session->args;
    int rc = session_finish(
        session, nxl_lock_adopt_start(session->lock, args->token));

    if (rc == NXL_OK)
        return 0;
    if (rc == NXL_E_INVALID) {
        say("TOKEN is not a token (it has %zu characters); write the word that "
            "'nxlock acquire %s' printed", strlen(args->token), args->pasted);
        return EXIT_USAGE;
    }
    return session_failed(session, what, rc);
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
        if (rc != NXL_OK)
            code = session_failed(&session, "renew", rc);
        session_leave_held(code);
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
            code = session_failed(&session, "release", rc);
    }
    session_close(&session);
    return code;
}
