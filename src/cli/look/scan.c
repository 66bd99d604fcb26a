/* SPDX-License-Identifier: MIT */
/*
 * Scans the keys of every server for locks, and for records of nxlock once.
 * What such a key holds is found out as status and once show do it.
 *
 * Invariant: the server is never blocked: its keys are scanned in small steps.
 * A list that lacks a server, or records, says so. Memory grows with the number
 * of locks, not of keys.
 */
#include "cli/look/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/look/partial.h"
#include "cli/once/once_record.h"
#include "cli/once/once_words.h"
#include "cli/report/report.h"
#include "cli/servers/connect.h"
#include "model/companion.h"

#define COUNT_FIRST 250 /* keys that one step looks at */
#define CURSOR_ROOM 24

/* Notes why the scan of a server ends early. */
static void note(struct scan *scan, const char *why, int rc)
{
    snprintf(scan->why, sizeof(scan->why), "%s%s", failure_words(why, rc),
        rc == NXL_E_UNSUPPORTED ? "; list needs Redis 2.8 or later" : "");
}

/* ------------------------------------------------------- locks and records */

void found_free(struct found *found)
{
    free(found->name);
    free(found->token);
}

/* Adds what was found under the session's name. */
static int add(struct scan *scan, const char *token, struct found found)
{
    struct found *list = realloc(scan->list, (scan->count + 1) * sizeof(*list));

    if (!list)
        return NXL_E_NOMEM;
    scan->list = list;
    found.name = strdup(scan->solo.args->name);
    found.token = strdup(token);
    found.servers = 1U << scan->server;
    scan->list[scan->count++] = found;
    return found.name && found.token ? NXL_OK : NXL_E_NOMEM;
}

/* Adds the lock if somebody holds it. */
static int take_lock(struct scan *scan)
{
    struct holders holders;
    struct found found = {.state = NULL};
    int rc = holders_look(&scan->solo, &holders);

    if (rc != NXL_OK || !holder_has_token(&holders.first))
        return rc;
    found.left_ms = holders.first.left_ms;
    if (holders.shared)
        found.held = holders.held;
    rc = add(scan, holders.first.value, found);
    holders_free(&holders);
    return rc;
}

/* Adds the record if it is to be shown. */
static int take_record(struct scan *scan)
{
    struct once_view view = {.session = scan->solo};
    struct found found = {.left_ms = -1};
    int rc = once_find(&view);

    if (rc == NXL_UNKNOWN)
        return NXL_E_UNREACHABLE;
    if (rc < 0 || view.record.state == NXL_ONCE_NONE)
        return rc;
    found.state = record_word(&view.record, view.in_progress);
    found.record = view.record;
    return scan->session.args->records || strcmp(found.state, "doubt") == 0
               ? add(scan, view.record.token, found)
               : NXL_OK;
}

/* -------------------------------------------------------------------- scan */

/* What the keys are that a scan of a server looks for. The server matches their
 * names and types. */
static const struct form {
    const char *before, *after; /* around the name in the key */
    const char *type;           /* for TYPE, which 6.0 and later know */
    bool shared, record;
} forms[] = {
    {"", "", "string", false, false},
    {"", "", "zset", true, false},
    {"{", "}:once", "string", false, true},
    {"", "::once", "string", false, true},
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* Looks at the lock or the record of that name. */
static int look(struct scan *scan, const struct form *form, const char *name)
{
    struct session *session = &scan->solo;
    struct args args = *scan->session.args;

    args.name = name;
    session->args = &args;
    int rc = nxl_lock_new(&session->lock, session->client, name, NULL);
    if (rc == NXL_OK)
        rc = form->record ? take_record(scan) : take_lock(scan);
    if (rc < 0)
        note(scan, nxl_lock_errmsg(session->lock), rc);
    nxl_lock_free(session->lock);
    return rc;
}

/* Notes that a key may not be read. Without the plain locks there is no list.
 */
static int leave_out(struct scan *scan, const struct form *form)
{
    if (form->record)
        scan->records_kept = true;
    else if (form->shared)
        scan->members_kept = true;
    else
        scan->key_denied = true;
    return scan->key_denied ? NXL_E_DENIED : NXL_OK;
}

/* Looks at a key of that form. What is neither a lock nor a record, or may not
 * be read, is left out. */
static int take_key(
    struct scan *scan, const struct form *form, struct slice key)
{
    const char *prefix = nxl_client_prefix(scan->session.client);
    enum companion what = COMPANIONS;
    struct slice name;
    bool is_companion = companion_of(key, &what, &name);

    if (form->record ? what != COMPANION_RECORD
                     : form->shared && is_companion) /* a line of waiters */
        return NXL_OK;
    if (!form->record)
        name = key;
    /* No command takes a name with zero bytes. */
    if (!slice_starts(name, prefix) || memchr(name.data, '\0', name.len))
        return NXL_OK;
    char *text = strndup(name.data + strlen(prefix), name.len - strlen(prefix));
    int rc = text ? look(scan, form, text) : NXL_E_NOMEM;
    free(text);
    bool is_other = rc == NXL_E_WRONG_TYPE || rc == NXL_E_INVALID ||
                    (form->record && rc == NXL_E_UNSUPPORTED);
    if (rc == NXL_E_DENIED)
        return leave_out(scan, form);
    return rc >= 0 || is_other ? NXL_OK : rc;
}

/* The pattern of the keys of that form. NULL: no memory; else the caller frees
 * it. */
static char *make_pattern(const struct scan *scan, const struct form *form)
{
    const char *name = scan->session.args->name;
    char *pattern = NULL;
    size_t length;
    FILE *out = open_memstream(&pattern, &length);

    if (!out)
        return NULL;
    fputs(form->before, out);
    for (const char *at = nxl_client_prefix(scan->session.client); *at != '\0';
         at++)
        fprintf(out, strchr("*?[]\\", *at) ? "\\%c" : "%c", *at);
    fprintf(out, "%s%s", name ? name : "*", form->after);
    return fclose(out) == 0 ? pattern : NULL;
}

/* The next step of the scan. */
struct step {
    const char *pattern, *type;
    char cursor[CURSOR_ROOM];
    unsigned count;
};

/* Asks for the keys of one step. Answer 0 is the next cursor. */
static int take_step(struct scan *scan, struct step *step, struct answer **keys)
{
    char count[12];
    const char *words[] = {"SCAN", step->cursor, "MATCH", step->pattern,
        "COUNT", count, "TYPE", step->type};

    for (;;) {
        snprintf(count, sizeof(count), "%u", step->count);
        int rc = client_ask(
            scan->solo.client, 0, scan->untyped ? 6 : 8, words, NULL, keys);
        if (rc != NXL_E_UNSUPPORTED)
            return rc;
        if (!scan->untyped)
            scan->untyped = true;
        else if (step->count > 1) /* long names can make an answer too big */
            step->count = (step->count + 9) / 10;
        else
            return rc;
    }
}

/* Goes on to the next cursor. False: there is none. No server gives the same
 * one twice in a row, which would have no end. */
static bool next_cursor(struct step *step, const struct answer *keys)
{
    const char *cursor = answer_item(keys, 0, NULL);
    size_t length = cursor ? strlen(cursor) : 0;

    if (length == 0 || length >= CURSOR_ROOM ||
        cursor[strspn(cursor, "0123456789")] != '\0' ||
        (strcmp(cursor, step->cursor) == 0 && strcmp(cursor, "0") != 0))
        return false;
    memcpy(step->cursor, cursor, length + 1);
    return true;
}

static int scan_form(struct scan *scan, const struct form *form)
{
    char *pattern = make_pattern(scan, form);
    struct step step = {pattern, form->type, "0", COUNT_FIRST};
    int rc = pattern ? NXL_OK : NXL_E_NOMEM;

    while (rc == NXL_OK) {
        struct answer *keys;
        rc = take_step(scan, &step, &keys);
        if (rc != NXL_OK)
            note(scan, nxl_client_errmsg(scan->solo.client), rc);
        else if (!next_cursor(&step, keys)) {
            rc = NXL_E_NOT_REDIS;
            note(scan, "the answer to SCAN is not that of a Redis server", rc);
        }
        for (size_t i = 1; rc == NXL_OK && i < answer_count(keys); i++) {
            struct slice key = answer_slice(keys, i);
            if (key.data)
                rc = take_key(scan, form, key);
        }
        answer_free(keys);
        if (strcmp(step.cursor, "0") == 0)
            break;
    }
    free(pattern);
    return rc;
}

/* ----------------------------------------------------------------- servers */

static void report_left_out(struct scan *scan, int rc)
{
    say("%s: %s", scan->servers > 1 ? "left out" : "cannot list", scan->why);
    if (scan->key_denied)
        say("if the user has permissions for certain names only, list these: "
            "nxlock list 'GLOB'");
    if (rc == NXL_E_UNREACHABLE)
        connect_advise(scan->session.args, scan->session.client, rc);
    if (scan->code == 0)
        scan->code = exit_code_for(rc, EXIT_BUSY);
}

static void scan_server(struct scan *scan, const char *url)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;

    options.prefix = nxl_client_prefix(scan->session.client);
    options.timeout_ms = scan->session.args->timeout_ms;
    int rc = nxl_client_new(&scan->solo.client, url, &options);
    scan->key_denied = scan->untyped = false;
    if (rc != NXL_OK)
        note(scan, "", rc);
    /* Over several servers nothing is recorded. */
    for (size_t i = 0; rc == NXL_OK && i < FORMS; i++) {
        if (!forms[i].record || scan->servers == 1)
            rc = scan_form(scan, &forms[i]);
    }
    scan->scanned += rc == NXL_OK;
    if (rc == NXL_OK)
        partial_say(scan->solo.client);
    else
        report_left_out(scan, rc);
    nxl_client_free(scan->solo.client);
}

void scan_servers(struct scan *scan)
{
    struct url_list list;

    if (!connect_urls(scan->session.args, &list)) {
        say("out of memory");
        scan->code = EXIT_INTERNAL;
        return;
    }
    scan->servers = list.count;
    for (scan->server = 0; scan->server < scan->servers; scan->server++)
        scan_server(scan, list.urls[scan->server]);
    url_list_free(&list);
    if (scan->members_kept)
        say("locks that several may hold are left out: the user may not read "
            "their members (+zrange); see docs/acl.md");
    if (scan->records_kept)
        say("records of 'nxlock once' are left out: the user may not read "
            "them; see docs/acl.md");
    if (scan->servers > 1 && scan->scanned <= scan->servers / 2)
        say("the list is incomplete: %zu of %zu servers answered",
            scan->scanned, scan->servers);
}

void scan_free(struct scan *scan)
{
    for (size_t i = 0; i < scan->count; i++)
        found_free(&scan->list[i]);
    free(scan->list);
}
