/* SPDX-License-Identifier: MIT */
/*
 * What whoever logs in may do. Keeps: it is tried on keys by reading, or asked
 * of a server that answers without doing it.
 */
#include "cli/doctor.h"

#include <stdarg.h>
#include <string.h>

#include "cli/report.h"

#define WORDS_MOST 12

int doctor_ask(struct doctor *doctor, size_t server, nxl_answer **answer, ...)
{
    const char *words[WORDS_MOST];
    size_t count = 0;
    va_list arguments;

    va_start(arguments, answer);
    while (count < WORDS_MOST &&
           (words[count] = va_arg(arguments, const char *)) != NULL)
        count++;
    va_end(arguments);
    return nxl_client_ask(
        doctor->client, server, count, words, NULL, answer);
}

/* A read of a key that a lock needs; by that its pattern is tried. */
static void check_key(
    struct doctor *d, size_t server, const char *key, const char *what)
{
    nxl_answer *answer;
    int rc = doctor_ask(d, server, &answer, "PTTL", key, NULL);
    const char *why = nxl_client_errmsg(d->client);
    bool is_lock = key == d->key;

    nxl_answer_free(answer);
    if (rc != NXL_E_DENIED)
        return;
    finding(&d->findings, is_lock ? LEVEL_FAIL : LEVEL_WARN, "rights",
        "ACL SETUSER USER +pttl ~NAME ~{NAME}:f and for --every "
        "~{NAME}:every, or patterns of a prefix, ~PREFIX* ~{PREFIX*",
        "%s, '%s', cannot be looked at: %s", what, key, why);
    if (is_lock)
        finding_code(&d->findings, EXIT_DENIED);
}

/* Where the server tells what it would say, without doing it. */
static void check_dry(struct doctor *d, size_t server, const char *user)
{
    static const char sha[] = "0000000000000000000000000000000000000000";
    nxl_answer *answers[2] = {NULL, NULL};
    const char *names[] = {"SET", "EVALSHA"};

    (void)doctor_ask(d, server, &answers[0], "ACL", "DRYRUN", user, "SET",
        d->key, "token", "NX", "PX", "1000", NULL);
    (void)doctor_ask(d, server, &answers[1], "ACL", "DRYRUN", user, "EVALSHA",
        sha, "2", d->key, d->counter, "token", NULL);
    for (size_t i = 0; i < 2; i++) {
        const char *said = nxl_answer_item(answers[i], 0, NULL);
        if (said != NULL && strcmp(said, "OK") != 0) {
            finding(&d->findings, i == 0 ? LEVEL_FAIL : LEVEL_WARN, "rights",
                "ACL SETUSER USER +set +eval +evalsha +script|load ~NAME "
                "~{NAME}:f",
                "%s would be refused for the user %s: %s", names[i], user,
                said);
            if (i == 0)
                finding_code(&d->findings, EXIT_DENIED);
        }
        nxl_answer_free(answers[i]);
    }
}

void doctor_rights(struct doctor *d, size_t server)
{
    nxl_answer *who;

    if (d->key != NULL) {
        check_key(d, server, d->key, "the key of the lock");
        check_key(d, server, d->counter, "the counter of its fencing numbers");
    }
    if (doctor_ask(d, server, &who, "ACL", "WHOAMI", NULL) == NXL_OK) {
        const char *user = nxl_answer_item(who, 0, NULL);
        if (user != NULL && d->key != NULL)
            check_dry(d, server, user);
    }
    nxl_answer_free(who);
}
