/* SPDX-License-Identifier: MIT */
/*
 * The command unlock: removes a lock that another process holds.
 *
 * Invariant: exactly the lock that was shown is removed, or nothing; and
 * without --yes a person has confirmed it. A lock with --line is left alone.
 */
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/private.h"
#include "cli/ask.h"
#include "cli/event.h"
#include "cli/every.h"
#include "cli/holder.h"
#include "cli/line.h"
#include "cli/partial.h"
#include "cli/report.h"
#include "model/companion.h"

/* Is it a number that the locks themselves keep there? Then what that is, or
 * NULL. */
static const char *own_number(
    const struct session *session, const nxl_holder *holder)
{
    enum companion what = COMPANIONS;
    struct slice lock;
    char *key;

    if (strspn(holder->value, "0123456789") != holder->value_length ||
        asprintf(&key, "%s%s", nxl_client_prefix(session->client),
            session->args->name) < 0)
        return NULL;
    bool is = companion_of(slice_of(key), &what, &lock);
    free(key);
    return is && what == COMPANION_COUNTER ? "a fencing counter"
           : is && what == COMPANION_MARK
               ? "the mark that somebody waits in line"
           : is && what == COMPANION_GAP ? "the gap of a line"
                                         : NULL;
}

/* Shows the holder, and asks the user unless --yes is given. 0: remove it; or
 * an exit code, after reporting why not. */
static int confirm_removal(const struct session *session,
    const nxl_holder *holder, const struct line *line)
{
    const struct args *args = session->args;
    const char *number = own_number(session, holder);
    char words[HOLDER_WORDS], waiting[LINE_WORDS];

    if (holder->truncated) {
        say("'%s' is not a lock: its value is too long", args->shown);
        return EXIT_UNAVAILABLE;
    }
    if (number) {
        say("'%s' is %s, not a lock", args->shown, number);
        return EXIT_UNAVAILABLE;
    }
    if (holder_is_data(holder)) {
        say("'%s' %s; it may be a program's data: if nothing needs it, "
            "remove it with redis-cli",
            args->shown, holder_data_words(words, holder));
        return EXIT_UNAVAILABLE;
    }
    say("'%s' is %s%s", args->shown, holder_words(words, holder),
        line_words(waiting, line));
    return ask_user(args,
        every_is_record(args->name, strlen(args->name))
            ? "It is a run of --every. Allow the next one now? [y/N] "
            : "The holder continues until its next renewal. Remove its "
              "lock? [y/N] ",
        "remove it");
}

static int already_free(const struct session *session)
{
    say("'%s' is already free", session->args->shown);
    partial_say(session->client);
    return EXIT_FREE;
}

/* Says who has the lock now, because a removal hands it over like a release. */
static void report_next(struct session *session, const struct line *line)
{
    const char *name = session->args->shown;
    char who[HOLDER_WHO];
    nxl_holder next = NXL_HOLDER_INIT;

    if (line_waiting(line) == 0)
        return;
    bool held = nxl_lock_inspect(session->lock, &next) == NXL_OK;
    bool is_next = held && line_has(line, &next);
    if (held)
        say("'%s' was removed; %s%s%s has it now", name,
            is_next ? "the next in line, " : "", holder_who(who, &next),
            is_next ? "," : "");
    else
        say("'%s' was removed; the first in line takes it as soon as it finds "
            "that out",
            name);
}

static int remove_shown(
    struct session *session, const nxl_holder *holder, const struct line *line)
{
    char words[HOLDER_WORDS], who[HOLDER_WHO];
    int rc = nxl_lock_break(session->lock, holder);

    if (rc == NXL_OK) {
        event_report((struct event){.kind = EVENT_REMOVED,
                         .holder = holder_who(who, holder)},
            "removed '%s', which was %s", session->args->shown,
            holder_words(words, holder));
        report_next(session, line);
        return EXIT_DONE;
    }
    if (rc != NXL_FREE)
        return session_failed(session, "remove", rc);
    say("'%s' has changed hands or become free meanwhile; nothing "
        "was removed",
        session->args->shown);
    return EXIT_FREE;
}

static int unlock(struct session *session)
{
    const struct args *args = session->args;
    char words[HOLDER_WORDS];
    nxl_holder holder = NXL_HOLDER_INIT;
    struct line line;
    int rc = nxl_lock_inspect(session->lock, &holder);

    if (rc == NXL_FREE)
        return already_free(session);
    if (rc != NXL_OK)
        return session_failed(session, "look at", rc);
    if (args->token && !nxl_holder_is(&holder, args->token)) {
        say("'%s' is not held under this token, but %s; nothing was removed",
            args->shown, holder_words(words, &holder));
        return EXIT_BUSY;
    }
    line_read(session, &line);
    int code = args->force ? confirm_removal(session, &holder, &line) : 0;
    return code != 0 ? code : remove_shown(session, &holder, &line);
}

static int empty_line(struct session *session)
{
    const char *name = session->args->shown;
    struct line line;

    line_read(session, &line);
    if (line.unknown[0] == '\0') {
        if (line.count == 0) {
            say("the line of '%s' is empty", name);
            return EXIT_FREE;
        }
        say("'%s' has %zu in line", name, line.count);
    }
    int code = ask_user(session->args,
        "Those who wait join again within seconds, in another order. Empty "
        "the line? [y/N] ",
        "empty the line");
    if (code != 0)
        return code;
    int rc = lock_empty_line(session->lock);
    if (rc == NXL_OK) {
        event_report((struct event){.kind = EVENT_REMOVED, .always = true},
            "the line of '%s' was emptied; who still waits joins again", name);
        return EXIT_DONE;
    }
    if (rc == NXL_FREE) {
        say("the line of '%s' became empty meanwhile", name);
        return EXIT_FREE;
    }
    const char *why = nxl_client_errmsg(session->client);
    event_report((struct event){.kind = event_of_failure(rc), .why = why},
        "cannot empty the line of '%s': %s", name, why);
    return exit_code_for(rc, EXIT_BUSY);
}

int subcommand_unlock(const struct args *args)
{
    struct session session;
    int code = session_open_plain(&session, args);

    if (code == 0)
        code = args->line ? empty_line(&session) : unlock(&session);
    session_close(&session);
    return code;
}
