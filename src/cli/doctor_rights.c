/* SPDX-License-Identifier: MIT */
/*
 * Checks what the user may do on the server.
 *
 * Invariant: no key is changed. Permissions for keys are tested by reading, or
 * with ACL DRYRUN.
 */
#include "cli/doctor_rights.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/private.h"
#include "cli/report.h"

#define REMEDY_ROOM 512
#define WORDS_ROOM 1024
#define PATTERN_MOST 80 /* bytes of a key that is written out */

/* Does text mean itself in a rule of an ACL, in redis-cli and in a shell? */
static bool is_plain(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789:_.{}@/+=-";

    return text[0] != '\0' && text[strspn(text, plain)] == '\0';
}

void doctor_acl(struct doctor *d, size_t server)
{
    struct answer *who;
    int rc = doctor_ask(d, server, &who, "ACL", "WHOAMI", NULL);
    const char *user = answer_item(who, 0, NULL);
    char shown[DOCTOR_FIELD];

    d->no_acl[server] = rc == NXL_E_UNSUPPORTED;
    /* Use the name in a remedy only if no part of it is redacted. */
    if (user && is_plain(user) && strlen(user) < DOCTOR_FIELD &&
        strcmp(
            client_redact(d->client, user, strlen(user), shown, sizeof(shown)),
            user) == 0)
        snprintf(d->user[server], sizeof(d->user[server]), "%s", user);
    answer_free(who);
}

/* Patterns for the keys of the lock, its fencing counter, its record, that of
 * --every, and what doctor itself tries beside them. */
static const char *patterns(const struct doctor *d)
{
    static char words[REMEDY_ROOM];
    const char *prefix = nxl_client_prefix(d->client);
    bool known = d->name && strlen(d->key) < PATTERN_MOST && is_plain(d->key);
    const char *name = known ? d->name : "NAME";
    char key[PATTERN_MOST + sizeof("PREFIX")];

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
        keys ? patterns(d) : "");
    return words;
}

void doctor_denied(struct doctor *d)
{
    d->lacks_rights = d->lacks_rights || has_acl(d, 0, d->servers);
}

void doctor_all_rights(struct doctor *d)
{
    const char *name = d->name ? d->args->pasted : "NAME";

    if (d->lacks_rights)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "rights", NULL,
            "'nxlock acl run %sdoctor %s%s', with the same server and user, "
            "prints one line with all permissions that these commands need",
            d->args->records ? "once " : "", name[0] == '-' ? "" : "--name ",
            name);
}

/* Reads a key that the lock needs, to test whether the user's key patterns
 * allow it. */
static void check_key(
    struct doctor *d, size_t server, const char *key, const char *what)
{
    struct answer *answer;
    int rc = doctor_ask(d, server, &answer, "PTTL", key, NULL);
    const char *why = doctor_why(d);
    bool is_lock = key == d->key;

    answer_free(answer);
    if (rc != NXL_E_DENIED)
        return;
    diagnostic(&d->diagnostics, is_lock ? LEVEL_FAIL : LEVEL_WARN, "rights",
        doctor_remedy(d, server, rc, "+pttl", true, NULL),
        "cannot read %s, '%s': %s", what, key, why);
    if (is_lock)
        diagnostic_code(&d->diagnostics, EXIT_DENIED);
}

/* Asks with ACL DRYRUN, from Redis 7.0 on, whether the writes are allowed. */
static void check_dry(struct doctor *d, size_t server, const char *user)
{
    static const char sha[] = "0000000000000000000000000000000000000000";
    struct answer *answers[2] = {NULL, NULL};
    const char *names[] = {"SET", "EVALSHA"};

    (void)doctor_ask(d, server, &answers[0], "ACL", "DRYRUN", user, "SET",
        d->key, "token", "NX", "PX", "1000", NULL);
    (void)doctor_ask(d, server, &answers[1], "ACL", "DRYRUN", user, "EVALSHA",
        sha, "2", d->key, d->counter, "token", NULL);
    for (size_t i = 0; i < 2; i++) {
        const char *said = answer_item(answers[i], 0, NULL);
        if (said && strcmp(said, "OK") != 0) {
            char shown[2][WORDS_ROOM];
            client_redact(d->client, user, strlen(user), shown[0], WORDS_ROOM);
            client_redact(d->client, said, strlen(said), shown[1], WORDS_ROOM);
            diagnostic(&d->diagnostics, i == 0 ? LEVEL_FAIL : LEVEL_WARN,
                "rights",
                doctor_remedy(d, server, NXL_E_DENIED,
                    "+set +eval +evalsha +script|load", true, NULL),
                "%s would be refused for the user %s: %s", names[i], shown[0],
                shown[1]);
            if (i == 0)
                diagnostic_code(&d->diagnostics, EXIT_DENIED);
        }
        answer_free(answers[i]);
    }
}

void doctor_rights(struct doctor *d, size_t server)
{
    struct answer *who;

    if (d->key) {
        check_key(d, server, d->key, "the lock's key");
        check_key(d, server, d->counter, "its fencing counter");
    }
    if (d->record)
        check_key(d, server, d->record, "its record");
    if (doctor_ask(d, server, &who, "ACL", "WHOAMI", NULL) == NXL_OK) {
        const char *user = answer_item(who, 0, NULL);
        if (user && d->key)
            check_dry(d, server, user);
    }
    answer_free(who);
}
