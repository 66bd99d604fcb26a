/* SPDX-License-Identifier: MIT */
/*
 * Checks the permissions that a trial of a lock does not show, by reading: for
 * the keys of NAME, and for commands that locks can do without. And says how
 * to give all permissions.
 *
 * Invariant: no key is changed here. That a permission is missing is known
 * only from the result of a request, never from the server's words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor_state.h"
#include "cli/name.h"
#include "cli/report/report.h"

#define GRANT_ROOM 4096
/* A channel is nxl:UUID:KEY. A `*` for the UUID would also match the channels
 * of other names that end like this one, such as nxl:UUID:x:NAME. */
#define ANY_UUID "????????????????????????????????????"

/* The commands of the line for doctor in docs/acl.md; tests/docs/check_pages.py
 * compares. */
#define COMMANDS                                                               \
    "+set +evalsha +eval +getrange +del +pttl +time +zrange +zrem +exists "    \
    "+pubsub|numsub +publish +pexpire +zscore +zrank +zcard +zadd +subscribe " \
    "+ping +psetex +zcount +zremrangebyscore +client|id +client|kill +info "   \
    "+script|load +config|get"

/* What a rule can contain as it is; otherwise the placeholder instead. */
static const char *rule_word(const char *text, const char *placeholder)
{
    bool plain = text && text[0] != '\0' && strlen(text) < NAME_PASTED &&
                 !strpbrk(text, " \"'*?[]\\%");

    for (size_t i = 0; plain && text[i] != '\0'; i++)
        plain = (unsigned char)text[i] > ' ' && text[i] != 0x7f;
    return plain ? text : placeholder;
}

const char *doctor_grant(struct doctor *d, int result)
{
    static char words[GRANT_ROOM];
    char user[URL_VALUE_ROOM], name[2 * NAME_PASTED];
    const char *prefix = nxl_client_prefix(d->own.client);
    const char *below = prefix[0] != '\0' ? rule_word(prefix, "PREFIX") : "";
    const char *bare = rule_word(d->args->name, "NAME");

    if (result != NXL_E_DENIED)
        return NULL;
    if (!url_text(d->url, "user", user, sizeof(user)))
        snprintf(user, sizeof(user), "default");
    snprintf(name, sizeof(name), "%s%s", below, bare);
    snprintf(words, sizeof(words),
        "%sACL SETUSER %s " COMMANDS " ~%s* ~{%s*%s%s%s%s &nxl:" ANY_UUID
        ":%s*",
        d->args->name ? ""
                      : "if the user has permissions for certain names only, "
                        "write one of them: nxlock doctor NAME; otherwise ",
        rule_word(user, "USER"), name, name, below[0] != '\0' ? " ~" : "",
        below, below[0] != '\0' ? "{" : "", below[0] != '\0' ? bare : "", name);
    return words;
}

int doctor_ask(struct doctor *d, enum level level, const char *what,
    const char *text, const char *last, struct answer **answer)
{
    int rc = peer_ask(&d->own, text, last, answer);

    if (rc != NXL_E_DENIED)
        return rc;
    diagnostic(&d->diagnostics, level, "rights", doctor_grant(d, rc),
        "%s is not permitted (%s %s): %s", what, text, last, peer_why(&d->own));
    if (level == LEVEL_FAIL)
        diagnostic_code(&d->diagnostics, EXIT_DENIED);
    return rc;
}

/* For a request that needs no answer. */
static void try_request(struct doctor *d, enum level level, const char *what,
    const char *text, const char *last)
{
    struct answer *answer;

    (void)!doctor_ask(d, level, what, text, last, &answer);
    answer_free(answer);
}

static void try_keys(struct doctor *d)
{
    static const struct {
        enum level level;
        const char *what;
    } companions[COMPANIONS] = {
        [COMPANION_COUNTER] = {LEVEL_WARN, "its fencing counter"},
        [COMPANION_LINE] = {LEVEL_NOTE, "the line of its waiters"},
        [COMPANION_LINE_MARK] = {LEVEL_NOTE, "the mark of its line"},
        [COMPANION_GAP] = {LEVEL_NOTE, "the gap of its line"},
        [COMPANION_RECORD] = {LEVEL_WARN, "its record"},
    };
    char *key = NULL;

    if (asprintf(
            &key, "%s%s", nxl_client_prefix(d->own.client), d->args->name) < 0)
        return;
    try_request(d, LEVEL_FAIL, "the lock's key", "PTTL", key);
    for (int i = 0; i < COMPANIONS; i++) {
        char *companion = name_companion(key, (enum companion)i);
        if (companion && companions[i].what &&
            (i != COMPANION_RECORD || d->args->records))
            try_request(d, companions[i].level, companions[i].what,
                i == COMPANION_LINE ? "ZCARD" : "PTTL", companion);
        free(companion);
    }
    free(key);
}

void doctor_rights(struct doctor *d)
{
    if (d->own.result == NXL_E_DENIED)
        try_request(d, d->urls.count > 1 ? LEVEL_FAIL : LEVEL_WARN,
            "what the server says of itself", "INFO", "server");
    /* A trial notices this only while the server does not know the scripts. */
    try_request(d, LEVEL_WARN, "a script that the server does not know yet",
        "EVAL return(1)", "0");
    try_request(
        d, LEVEL_NOTE, "quick cleanup after a lost connection", "CLIENT", "ID");
    if (d->args->name)
        try_keys(d);
}
