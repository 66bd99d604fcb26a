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

#include "cli/doctor/acl_rules.h"
#include "cli/doctor/doctor_state.h"
#include "cli/name.h"
#include "cli/report/report.h"

#define GRANT_ROOM 2048
/* A channel is nxl:UUID:KEY. A `*` for the UUID would also match the channels
 * of other names that end like this one, such as nxl:UUID:x:NAME. */
#define ANY_UUID "????????????????????????????????????"

/* The features that docs/acl.md lists for each command. */
enum {
#define COMMAND(name, features) FEATURES_OF_##name = (int)(features),
    ACL_COMMANDS
#undef COMMAND
};

const char *doctor_grant(struct doctor *d, int result)
{
    static char words[GRANT_ROOM];
    char commands[ACL_WORDS];
    const char *prefix = nxl_client_prefix(d->client);
    const char *name = prefix[0] != '\0' ? "PREFIXNAME" : "NAME";

    if (result != NXL_E_DENIED)
        return NULL;
    snprintf(words, sizeof(words),
        "%sACL SETUSER USER %s ~%s* ~{%s*%s &nxl:" ANY_UUID ":%s*",
        d->args->name ? ""
                      : "if the user has permissions for certain names only, "
                        "write one of them: nxlock doctor NAME; otherwise ",
        acl_words(commands, sizeof(commands), FEATURES_OF_doctor), name, name,
        prefix[0] != '\0' ? " ~PREFIX{NAME*" : "", name);
    return words;
}

/* Sends words and last, a request that only reads. */
static void try_request(struct doctor *d, enum level level, const char *what,
    const char *words, const char *last)
{
    struct answer *answer;
    int rc = doctor_ask(d, words, last, &answer);

    answer_free(answer);
    if (rc != NXL_E_DENIED)
        return;
    diagnostic(&d->diagnostics, level, "rights", doctor_grant(d, rc),
        "%s is not permitted (%s %s): %s", what, words, last, doctor_why(d));
    if (level == LEVEL_FAIL)
        diagnostic_code(&d->diagnostics, EXIT_DENIED);
}

static void try_keys(struct doctor *d)
{
    static const struct {
        enum companion key;
        enum level level;
        const char *words, *what;
    } companions[] = {
        {COMPANION_COUNTER, LEVEL_WARN, "PTTL", "its fencing counter"},
        {COMPANION_LINE, LEVEL_NOTE, "ZCARD", "the line of its waiters"},
        {COMPANION_LINE_MARK, LEVEL_NOTE, "PTTL", "the mark of its line"},
        {COMPANION_GAP, LEVEL_NOTE, "PTTL", "the gap of its line"},
        {COMPANION_RECORD, LEVEL_WARN, "PTTL", "its record"},
    };
    size_t count = sizeof(companions) / sizeof(companions[0]);
    char *key, *counter;

    if (!name_keys(nxl_client_prefix(d->client), d->args->name, &key, &counter))
        return;
    try_request(d, LEVEL_FAIL, "the lock's key", "PTTL", key);
    for (size_t i = 0; i < count - !d->args->records; i++) {
        char *companion = name_companion(key, companions[i].key);
        if (companion)
            try_request(d, companions[i].level, companions[i].what,
                companions[i].words, companion);
        free(companion);
    }
    free(counter);
    free(key);
}

void doctor_rights(struct doctor *d)
{
    /* A trial notices this only while the server does not know the scripts. */
    try_request(d, LEVEL_WARN, "a script that the server does not know yet",
        "EVAL return(1)", "0");
    try_request(d, d->urls.count > 1 ? LEVEL_FAIL : LEVEL_WARN,
        "what the server says of itself", "INFO", "server");
    try_request(d, LEVEL_NOTE, "reading the configuration", "CONFIG GET",
        "appendfsync");
    try_request(
        d, LEVEL_NOTE, "quick cleanup after a lost connection", "CLIENT", "ID");
    try_request(d, LEVEL_NOTE, "finding waiters that have died",
        "PUBSUB NUMSUB", "nxl");
    if (d->args->name)
        try_keys(d);
}
