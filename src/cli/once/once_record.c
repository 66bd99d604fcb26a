/* SPDX-License-Identifier: MIT */
/*
 * Shows a record of once, removes it, or confirms that the work was done.
 *
 * Invariant: exactly the record that was shown is changed, or nothing; and
 * without --yes a person has agreed.
 */
#include "cli/once/once_record.h"

#include <stdio.h>
#include <string.h>

#include "cli/look/ask.h"
#include "cli/look/foreign.h"
#include "cli/look/holder.h"
#include "cli/report/json.h"
#include "cli/once/once_words.h"
#include "cli/report/report.h"
#include "wire/record.h"

static int look(struct once_view *view, const char *fingerprint)
{
    nxl_once_options options = NXL_ONCE_OPTIONS_INIT;

    options.mode = NXL_ONCE_LOOK;
    options.fingerprint = fingerprint;
    options.keep_ms = view->session.args->work.keep_ms;
    int rc = nxl_once_begin(view->session.lock, &options, 0);
    view->record = (nxl_record)NXL_RECORD_INIT;
    if (rc >= 0 && nxl_once_record(view->session.lock, &view->record) != NXL_OK)
        view->record = (nxl_record)NXL_RECORD_INIT;
    return rc;
}

/* Any lock makes the record's name busy. Is it that of the record? */
static bool holds_lock(const struct once_view *view)
{
    const struct session *session = &view->session;
    nxl_holder holder = NXL_HOLDER_INIT;
    nxl_lock *lock;

    if (nxl_lock_new(&lock, session->client, session->args->name, NULL) !=
        NXL_OK)
        return true;
    bool is = nxl_lock_inspect(lock, &holder) == NXL_OK &&
              nxl_holder_is(&holder, view->record.token);
    nxl_lock_free(lock);
    return is;
}

/* Reads the record with the fingerprint that it has. Returns a result of
 * nxl_once_begin(). */
static int find(struct once_view *view)
{
    const char *fingerprint = view->session.args->work.fingerprint;
    char its_own[FINGERPRINT_MAX + 1];
    int rc = look(view, fingerprint);

    if (rc == NXL_MISMATCH && !fingerprint) {
        snprintf(its_own, sizeof(its_own), "%s", view->record.fingerprint);
        rc = look(view, its_own);
    }
    view->in_progress = (rc == NXL_BUSY || rc == NXL_MISMATCH) &&
                        view->record.state == NXL_ONCE_BEGUN &&
                        holds_lock(view);
    return rc;
}

int once_find(struct once_view *view)
{
    int rc = find(view);

    /* The attempt may have ended after the record was read and before the lock
     * was inspected: only a record that remains as it was is in doubt. */
    while (
        rc >= 0 && view->record.state == NXL_ONCE_BEGUN && !view->in_progress) {
        int64_t attempt = view->record.attempt;
        rc = find(view);
        if (view->record.attempt == attempt)
            break;
    }
    return rc;
}

static void json_result(struct json *json, const nxl_record *record)
{
    if (record->result_length == NXL_ONCE_NOT_KEPT) {
        json_null(json, "output");
        return;
    }
    json_number(json, "output_bytes", (int64_t)record->result_length);
    json_text(json, "output", record->result ? record->result : "",
        record->result_length);
}

static void print_json(const struct once_view *view)
{
    const char *name = view->session.args->name;
    const nxl_record *record = &view->record;
    const char *state = record_word(record, view->in_progress);
    nxl_holder holder = NXL_HOLDER_INIT;
    struct json json;

    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_string(&json, "name", name);
    json_string(&json, "state", state);
    if (record->state != NXL_ONCE_NONE) {
        holder_make(&holder, slice_of(record->token), 0);
        holder_json_who(&json, &holder);
        record_json(&json, record);
        const char *fingerprint = foreign(record->fingerprint);
        if (fingerprint[0] != '\0')
            json_string(&json, "fingerprint", fingerprint);
        if (record->state == NXL_ONCE_DONE)
            json_result(&json, record);
    }
    json_end(&json);
}

static int show(const struct once_view *view)
{
    const struct args *args = view->session.args;
    char words[RECORD_WORDS];

    if (args->json)
        print_json(view);
    else
        printf("%s %s\n", args->shown,
            record_words(words, &view->record, view->in_progress));
    if (report_output() != EXIT_DONE)
        return EXIT_INTERNAL;
    return view->record.state == NXL_ONCE_NONE ? EXIT_FREE : EXIT_DONE;
}

/* Shows the record and asks. 0: yes; or an exit code. */
static int ask_about(
    const struct once_view *view, const char *question, const char *what)
{
    const struct args *args = view->session.args;
    char words[RECORD_WORDS];

    say("'%s' is %s", args->shown,
        record_words(words, &view->record, view->in_progress));
    return ask_user(args, question, what);
}

static int say_changed(const struct once_view *view)
{
    const struct args *args = view->session.args;

    say("the record of '%s' has changed meanwhile, and was left as it is; see: "
        "nxlock once show %s",
        args->shown, args->pasted);
    return EXIT_FREE;
}

static int say_in_progress(const struct once_view *view)
{
    const struct args *args = view->session.args;
    char words[RECORD_WORDS];

    if (view->in_progress)
        say("'%s' is %s; its record was not changed: try again when the run "
            "has ended",
            args->shown, record_words(words, &view->record, true));
    else
        say("'%s' is locked by another process; its record was not changed: "
            "see nxlock status %s, and try again when it is free",
            args->shown, args->pasted);
    return args->busy_code;
}

static int forget(struct once_view *view)
{
    struct session *session = &view->session;

    if (view->record.state == NXL_ONCE_NONE) {
        say("'%s' has no record", session->args->shown);
        return EXIT_FREE;
    }
    if (view->in_progress)
        return say_in_progress(view);
    int code = ask_about(view,
        "Without the record the next run starts its command, even if that was "
        "done. Remove it? [y/N] ",
        "remove it");
    if (code != 0)
        return code;
    int rc = nxl_once_forget(session->lock);
    if (rc == NXL_OK) {
        say("removed the record of '%s'", session->args->shown);
        return EXIT_DONE;
    }
    if (rc == NXL_FREE)
        return say_changed(view);
    return rc == NXL_BUSY ? say_in_progress(view)
                          : session_failed(session, "forget", rc);
}

static int confirm(struct once_view *view, int found)
{
    struct session *session = &view->session;

    if (view->in_progress || found == NXL_BUSY)
        return say_in_progress(view);
    if (found != NXL_DOUBT) {
        char words[RECORD_WORDS];
        say("'%s' is %s; there is nothing to confirm", session->args->shown,
            record_words(words, &view->record, false));
        return EXIT_FREE;
    }
    int code = ask_about(view,
        "Was it done? Then it is recorded, and not run again. [y/N] ",
        "record that it was done");
    if (code != 0)
        return code;
    int rc = nxl_once_tell(session->lock, NXL_ONCE_DONE, 0, NULL, 0);
    if (rc == NXL_OK) {
        say("recorded '%s' as done", session->args->shown);
        return EXIT_DONE;
    }
    return rc == NXL_LOST ? say_changed(view)
                          : session_failed(session, "confirm", rc);
}

int once_record(const struct args *args)
{
    struct once_view view;
    int code = session_open_plain(&view.session, args);

    if (code == 0) {
        int found = once_find(&view);
        if (found < 0 || found == NXL_UNKNOWN)
            code = session_failed(&view.session, "look at", found);
        else if (args->work.action == ONCE_SHOW)
            code = show(&view);
        else if (found == NXL_MISMATCH)
            code = EXIT_OTHER_WORK;
        else if (args->work.action == ONCE_FORGET)
            code = forget(&view);
        else
            code = confirm(&view, found);
        if (code == EXIT_OTHER_WORK)
            say_mismatch(&view.session, &view.record);
    }
    session_close(&view.session);
    return code;
}
