/* SPDX-License-Identifier: MIT */
/*
 * Checks what the user may do on the server, by doing it: doctor's own lock
 * shows what writes are allowed, and other permissions are tested by reading.
 *
 * Invariant: no key is changed here, and what is not tried is never reported as
 * allowed.
 */
#include "cli/doctor/doctor_rights.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/private.h"
#include "cli/doctor/acl_table.h"
#include "cli/servers/connect.h"
#include "cli/look/foreign.h"
#include "cli/name.h"
#include "cli/report/report.h"

#define REMEDY_ROOM 512
#define WORDS_ROOM 1024
#define PATTERN_MAX 80 /* bytes of a key that is written out */

/* What a trial of a lock succeeds without, or may not send at all: +eval is
 * needed only while the server does not have the scripts. */
#define NOT_TRIED                                                              \
    "+eval +psetex +pubsub|numsub +publish +client|kill +script|load"

/* Does text mean itself in a rule of an ACL, in redis-cli and in a shell? */
static bool is_plain(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789:_.{}@/+=-";

    return text[0] != '\0' && text[strspn(text, plain)] == '\0';
}

/* Is it written behind what, in the answer to ACL GETUSER? */
static bool is_said(
    const struct answer *rules, const char *what, const char *text)
{
    for (size_t i = 0; i + 1 < answer_count(rules); i++) {
        const char *name = answer_item(rules, i, NULL);
        const char *value = answer_item(rules, i + 1, NULL);
        if (name && value && strcmp(name, what) == 0 &&
            strcmp(value, text) == 0)
            return true;
    }
    return false;
}

/* Is the user known to be allowed everything? Only the default user is
 * examined: most others may not use ACL GETUSER, and each refusal is an entry
 * of ACL LOG.
 */
static bool may_all(struct doctor *d, size_t server)
{
    struct answer *rules;
    int rc;

    if (strcmp(d->user[server], "default") != 0)
        return false;
    rc = doctor_ask(d, server, &rules, "ACL", "GETUSER", "default", NULL);
    bool all = rc == NXL_OK && is_said(rules, "commands", "+@all") &&
               (is_said(rules, "keys", "~*") || is_said(rules, "keys", "*"));
    answer_free(rules);
    return all;
}

/* The user that the URL names, if the server does not say who we are; "" if it
 * is unknown. */
static const char *url_user(
    const struct doctor *d, size_t server, char out[DOCTOR_FIELD])
{
    struct url_list used;

    out[0] = '\0';
    if (!connect_urls(d->args, &used))
        return out;
    if (server < used.count && !url_has_parameter(used.urls[server], "user"))
        snprintf(out, DOCTOR_FIELD, "default");
    else if (server < used.count)
        (void)url_text(used.urls[server], "user", out, DOCTOR_FIELD);
    url_list_free(&used);
    return out;
}

void doctor_acl(struct doctor *d, size_t server)
{
    struct answer *who;
    char named[DOCTOR_FIELD];
    int rc = doctor_ask(d, server, &who, "ACL", "WHOAMI", NULL);
    const char *user = rc == NXL_E_DENIED ? url_user(d, server, named)
                                          : answer_item(who, 0, NULL);

    d->no_acl[server] = rc == NXL_E_UNSUPPORTED;
    /* A remedy has the name only if it may be shown. */
    if (user && is_plain(user) && strlen(user) < DOCTOR_FIELD &&
        foreign(user) == user)
        snprintf(d->user[server], sizeof(d->user[server]), "%s", user);
    answer_free(who);
    d->may_all[server] = rc == NXL_OK && may_all(d, server);
}

/* Patterns for the keys of the lock, its fencing counter, its record, that of
 * --every, and what doctor itself tries beside them; with channels, for those
 * too. */
static const char *patterns(const struct doctor *d, bool channels)
{
    static char words[REMEDY_ROOM];
    static const char channel[] = ACL_CHANNELS;
    int before_name = (int)(sizeof(channel) - sizeof("NAME"));
    const char *prefix = nxl_client_prefix(d->client);
    bool known = d->name && strlen(d->key) < PATTERN_MAX && is_plain(d->key);
    const char *name = known ? d->name : "NAME";
    char key[PATTERN_MAX + sizeof("PREFIX")];

    if (known)
        snprintf(key, sizeof(key), "%s", d->key);
    else if (prefix[0] != '\0')
        snprintf(key, sizeof(key), "PREFIXNAME");
    else
        snprintf(key, sizeof(key), "NAME");
    if (prefix[0] != '\0')
        snprintf(words, sizeof(words), "~%s* ~{%s* ~%s{%s*", key, key,
            known ? prefix : "PREFIX", name);
    else
        snprintf(words, sizeof(words), "~%s* ~{%s*", key, key);
    size_t used = strlen(words);
    if (channels)
        snprintf(words + used, sizeof(words) - used, " %.*s%s*", before_name,
            channel, key);
    return words;
}

/* The user that needs permissions on these servers; USER if it is unknown or
 * not the same everywhere. */
static const char *user_at(const struct doctor *d, size_t first, size_t end)
{
    const char *user = NULL;

    for (size_t i = first; i < end; i++) {
        if (!d->let_in[i])
            continue;
        if (user && strcmp(user, d->user[i]) != 0)
            return "USER";
        user = d->user[i];
    }
    return user && user[0] != '\0' ? user : "USER";
}

static bool has_acl(const struct doctor *d, size_t first, size_t end)
{
    bool acl = true;

    for (size_t i = first; i < end; i++)
        acl = acl && !d->no_acl[i];
    return acl;
}

const char *doctor_remedy(struct doctor *d, size_t server, int result,
    const char *commands, bool keys, const char *renamed)
{
    static char words[WORDS_ROOM];
    size_t first = server == DOCTOR_ALL ? 0 : server;
    size_t end = server == DOCTOR_ALL ? d->servers : server + 1;
    bool acl = has_acl(d, first, end);

    if (result == NXL_E_UNSUPPORTED)
        return renamed;
    d->lacks_rights = d->lacks_rights || acl;
    snprintf(words, sizeof(words),
        acl ? "ACL SETUSER %s %s%s%s"
            : "in the server's configuration give the user %s %s%s%s (it has "
              "no ACL command)",
        user_at(d, first, end), commands, keys ? " " : "",
        keys ? patterns(d, strstr(commands, "+publish")) : "");
    return words;
}

void doctor_all_rights(struct doctor *d)
{
    if (d->lacks_rights)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "rights", NULL,
            "docs/acl.md has the ACL SETUSER lines with all permissions of "
            "run, %sdoctor and the other commands",
            d->args->records ? "once, " : "");
}

/* Reads a key that the lock needs by the command of that rule, to test whether
 * the user's key patterns allow it. */
static void check_key(struct doctor *d, size_t server, enum level level,
    const char *rule, const char *key, const char *what)
{
    struct answer *answer;
    int rc = doctor_ask(d, server, &answer, rule + 1, key, NULL);

    answer_free(answer);
    if (rc != NXL_E_DENIED)
        return;
    const char *why = doctor_why(d);
    diagnostic(&d->diagnostics, level, "rights",
        doctor_remedy(d, server, rc, rule, true, NULL),
        "cannot read %s, '%s': %s", what, key, why);
    if (level == LEVEL_FAIL)
        diagnostic_code(&d->diagnostics, EXIT_DENIED);
}

/* Without these, waiters poll. */
static void check_line_keys(struct doctor *d, size_t server)
{
    static const struct {
        enum companion key;
        const char *rule, *words;
    } keys[] = {
        {COMPANION_LINE, "+zcard", "the line of those who wait"},
        {COMPANION_LINE_MARK, "+pttl", "the mark of that line"},
        {COMPANION_GAP, "+pttl", "the gap of that line"},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char *key = name_companion(d->key, keys[i].key);
        if (key)
            check_key(d, server, LEVEL_NOTE, keys[i].rule, key, keys[i].words);
        free(key);
    }
}

/* Sends what a lock or doctor can do without, and reports what is refused. */
static void check_commands(struct doctor *d, size_t server)
{
    static const struct {
        const char *rule;
        const char *words[3];
    } commands[] = {
        {"+client|id", {"CLIENT", "ID", NULL}},
        {"+config|get", {"CONFIG", "GET", "maxmemory"}},
        {"+acl|whoami", {"ACL", "WHOAMI", NULL}},
        {"+dbsize", {"DBSIZE", NULL}},
        {"+ping", {"PING", NULL}},
    };
    char denied[REMEDY_ROOM] = "";

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const char *const *words = commands[i].words;
        struct answer *answer;
        int rc =
            doctor_ask(d, server, &answer, words[0], words[1], words[2], NULL);
        size_t used = strlen(denied);
        answer_free(answer);
        if (rc == NXL_E_DENIED)
            snprintf(denied + used, sizeof(denied) - used, "%s%s",
                used ? " " : "", commands[i].rule);
    }
    if (denied[0] != '\0')
        diagnostic(&d->diagnostics, LEVEL_NOTE, "rights",
            doctor_remedy(d, server, NXL_E_DENIED, denied, false, NULL),
            "not permitted: %s; locks work without", denied);
}

void doctor_rights(struct doctor *d, size_t server)
{
    if (d->key) {
        check_key(d, server, LEVEL_FAIL, "+pttl", d->key, "the lock's key");
        check_key(
            d, server, LEVEL_WARN, "+pttl", d->counter, "its fencing counter");
        check_line_keys(d, server);
    }
    if (d->record)
        check_key(d, server, LEVEL_WARN, "+pttl", d->record, "its record");
    check_commands(d, server);
}

void doctor_untried(struct doctor *d)
{
    bool known = true;

    for (size_t i = 0; i < d->servers; i++)
        known = known && (!d->let_in[i] || d->no_acl[i] || d->may_all[i]);
    if (!known)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "rights", NULL,
            "not tried, so it is not known whether these are permitted: %s, "
            "%s; 'ACL GETUSER %s' on the server shows what the user may do, "
            "docs/acl.md what it needs",
            NOT_TRIED,
            d->name ? "writing the keys of NAME, " ACL_CHANNELS
                    : "+zcard and the keys of your own locks",
            user_at(d, 0, d->servers));
}
