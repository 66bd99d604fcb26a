/* SPDX-License-Identifier: MIT */
/*
 * The command unlock: removes a lock that another process holds.
 *
 * Invariant: exactly the lock, or the holders, that were shown are removed, or
 * nothing; and without --yes a person has confirmed it. A lock with --line is
 * left alone.
 */
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/private.h"
#include "cli/look/ask.h"
#include "cli/report/event.h"
#include "cli/run/every.h"
#include "cli/look/holders.h"
#include "cli/look/line.h"
#include "cli/look/partial.h"
#include "cli/report/report.h"
#include "model/companion.h"

/* Is it a number that the locks themselves keep there: a fencing counter, the
 * mark of a line, or its gap? */
static bool is_own_number(
    const struct session *session, const nxl_holder *holder)
{
    enum companion what = COMPANIONS;
    struct slice lock;
    char *key;

    if (strspn(holder->value, "0123456789") != holder->value_length ||
        asprintf(&key, "%s%s", nxl_client_prefix(session->client),
            session->args->name) < 0)
        return false;
    bool is = companion_of(slice_of(key), &what, &lock);
    free(key);
    return is && (what == COMPANION_COUNTER || what == COMPANION_LINE_MARK ||
                     what == COMPANION_GAP);
}

/* Is it no lock? Then an exit code, after reporting why not; otherwise 0. */
static int check_is_lock(
    const struct session *session, const nxl_holder *holder)
{
    const struct args *args = session->args;
    char words[HOLDER_WORDS];

    if (holder->truncated)
        say("'%s' is not a lock: its value is too long", args->shown);
    else if (is_own_number(session, holder))
        say("'%s' is not a lock: nxlock keeps a number there for another name",
            args->shown);
    else if (holder_is_data(holder))
        say("'%s' %s; it may be a program's data: if nothing needs it, "
            "remove it with redis-cli",
            args->shown, holder_data_words(words, holder));
    else
        return 0;
    return EXIT_UNAVAILABLE;
}

/* Shows each of several holders. */
static void say_each(const struct holders *holders)
{
    char words[HOLDER_WORDS];

    for (size_t i = 0; i < holders->held.count; i++)
        say("  %s", holders_row(words, holders, holders_at(holders, i)));
}

/* Shows the holders, and asks the user unless --yes is given. 0: remove them;
 * or an exit code, after reporting why not. */
static int confirm_removal(const struct session *session,
    const struct holders *holders, const struct line *line)
{
    const struct args *args = session->args;
    char words[HOLDER_WORDS], waiting[LINE_WORDS];
    int code = check_is_lock(session, &holders->first);

    if (code != 0)
        return code;
    say("'%s' is %s%s", args->shown, holders_words(words, holders),
        line_words(waiting, line));
    if (holders->held.count > 1) {
        say_each(holders);
        return ask_user(args,
            "The holders continue until their next renewals. Remove all of "
            "them? [y/N] ",
            "remove them");
    }
    return ask_user(args,
        every_is_mark(args->name, strlen(args->name))
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
    char words[HOLDER_WORDS];
    struct holders next;

    if (line_waiting(line) == 0)
        return;
    int rc = holders_look(session, &next);
    if (rc == NXL_OK || rc == NXL_FREE)
        say("'%s' was removed, and is now %s", session->args->shown,
            rc == NXL_OK ? holders_words(words, &next)
                         : "free; the first in line takes it as soon as it "
                           "finds that out");
    holders_free(&next);
}

/* Removes each holder, by its token. NXL_FREE: all of them have gone meanwhile;
 * otherwise the result of the one that failed. */
static int remove_each(struct session *session, const struct holders *holders)
{
    char words[HOLDER_WORDS], row[HOLDER_WORDS], who[HOLDER_WHO];
    int result = NXL_FREE;

    for (size_t i = 0; i < holders->held.count; i++) {
        const nxl_holder *holder = holders_at(holders, i);
        int rc = nxl_lock_break(session->lock, holder);
        if (rc == NXL_FREE)
            continue;
        if (rc != NXL_OK)
            return rc;
        result = NXL_OK;
        bool one = holders->held.count == 1;
        event_report((struct event){.kind = EVENT_REMOVED,
                         .holder = holder_who(who, holder)},
            "removed '%s', which was %s%s", session->args->shown,
            one ? holders_words(words, holders) : "held by ",
            one ? "" : holders_row(row, holders, holder));
    }
    return result;
}

static int remove_shown(struct session *session, const struct holders *holders,
    const struct line *line)
{
    const char *name = session->args->shown;
    int rc = remove_each(session, holders);

    if (rc == NXL_OK) {
        report_next(session, line);
        if (holders->held.partial)
            say("'%s' may have more holders than the %zu that were removed: "
                "repeat the command",
                name, holders->held.count);
        return EXIT_DONE;
    }
    if (rc != NXL_FREE)
        return session_failed(session, "remove", rc);
    say("'%s' has changed hands or become free meanwhile; nothing "
        "was removed",
        name);
    return EXIT_FREE;
}

static bool is_wanted(const struct args *args, const nxl_holder *holder)
{
    if (args->token)
        return nxl_holder_is(holder, args->token);
    return holder_has_token(holder) &&
           strncasecmp(holder->value, args->holder, TOKEN_SHOWN) == 0;
}

/* Keeps the holder that is given by --token or --holder. 0, or an exit code,
 * after reporting why not. */
static int keep_wanted(const struct args *args, struct holders *holders)
{
    char words[HOLDER_WORDS];
    size_t found = 0, index = 0;

    for (size_t i = 0; i < holders->held.count; i++) {
        if (is_wanted(args, holders_at(holders, i))) {
            found++;
            index = i;
        }
    }
    if (found == 1) {
        holders_keep(holders, index);
        return 0;
    }
    if (found > 1) {
        say("'%s' has %zu holders that begin with %s: use --token TOKEN",
            args->shown, found, args->holder);
        return EXIT_USAGE;
    }
    say("'%s' is not held under this %s, but %s; nothing was removed",
        args->shown, args->token ? "token" : "ID",
        holders_words(words, holders));
    return EXIT_BUSY;
}

/* Keeps those holders that the options ask for. 0, or an exit code, after
 * reporting why not. */
static int choose(const struct args *args, struct holders *holders)
{
    if (args->token || args->holder)
        return keep_wanted(args, holders);
    if (args->every_holder ||
        (holders->held.count == 1 && !holders->held.partial))
        return 0;
    char words[HOLDER_WORDS];
    say("'%s' is %s: say which with --holder ID, or --all; nothing was removed",
        args->shown, holders_words(words, holders));
    say_each(holders);
    return EXIT_USAGE;
}

static int unlock(struct session *session)
{
    const struct args *args = session->args;
    struct holders holders;
    struct line line;
    int rc = holders_look(session, &holders);

    if (rc == NXL_FREE)
        return already_free(session);
    if (rc != NXL_OK)
        return session_failed(session, "look at", rc);
    int code = choose(args, &holders);
    if (code == 0)
        line_read(session, &line);
    if (code == 0 && !args->token)
        code = confirm_removal(session, &holders, &line);
    if (code == 0)
        code = remove_shown(session, &holders, &line);
    holders_free(&holders);
    return code;
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
