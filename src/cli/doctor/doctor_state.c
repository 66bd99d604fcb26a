/* SPDX-License-Identifier: MIT */
/* Asks the servers, looks up what they have said, and judges it by a table. */
#include "cli/doctor/doctor_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/answer.h"

#define WORDS_MAX 8
#define SECONDS_MOST (INT64_C(1) << 40)

/* -------------------------------------------------------------- the table */

static void print(struct doctor *d, const struct check *check)
{
    const char *words = check->words ? check->words : "";
    bool both = words[0] != '\0' && d->detail[0] != '\0';

    if (words[0] == '\0' && d->detail[0] == '\0')
        return;
    diagnostic(&d->diagnostics, check->level, check->subject, check->remedy,
        "%s%s%s", words, both ? ": " : "", d->detail);
    if (check->level == LEVEL_FAIL)
        diagnostic_code(&d->diagnostics, check->code);
}

void doctor_judge(struct doctor *d, const struct check *checks, size_t count)
{
    const char *decided = "";

    for (size_t i = 0; i < count; i++) {
        if (strcmp(checks[i].subject, decided) == 0)
            continue;
        d->detail[0] = '\0';
        if (checks[i].holds && !checks[i].holds(d))
            continue;
        decided = checks[i].subject;
        print(d, &checks[i]);
    }
}

bool doctor_detail(struct doctor *d, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(d->detail, sizeof(d->detail), format, arguments);
    va_end(arguments);
    return true;
}

/* ------------------------------------------------------------ the questions */

int doctor_ask(struct doctor *d, const char *text, const char *last,
    struct answer **answer)
{
    const char *words[WORDS_MAX];
    size_t lengths[WORDS_MAX];
    size_t count = 0;

    for (; *text != '\0' && count < WORDS_MAX - 1; count++) {
        words[count] = text;
        lengths[count] = strcspn(text, " ");
        text += lengths[count];
        text += strspn(text, " ");
    }
    if (last) {
        words[count] = last;
        lengths[count++] = strlen(last);
    }
    return client_ask(d->client, d->server, count, words, lengths, answer);
}

const char *doctor_field(
    const struct answer *info, const char *name, char out[FIELD_ROOM])
{
    const char *at = answer_item(info, 0, NULL);
    size_t length = strlen(name);

    out[0] = '\0';
    for (; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, length) == 0 && at[length] == ':') {
            at += length + 1;
            snprintf(out, FIELD_ROOM, "%.*s", (int)strcspn(at, "\r\n"), at);
            return out;
        }
    }
    return out;
}

int64_t doctor_number(const struct answer *info, const char *name)
{
    char text[FIELD_ROOM];
    int64_t number;

    return number_read(doctor_field(info, name, text), EXACT_MAX, &number)
               ? number
               : -1;
}

int64_t doctor_time_us(struct doctor *d)
{
    struct answer *answer;
    int64_t s, us;
    bool told = doctor_ask(d, "TIME", NULL, &answer) == NXL_OK &&
                answer_number(answer, 0, SECONDS_MOST, &s) &&
                answer_number(answer, 1, US_PER_S, &us);

    answer_free(answer);
    return told ? s * US_PER_S + us : -1;
}

const char *doctor_why(const struct doctor *d)
{
    const char *why = nxl_client_errmsg(d->client);
    size_t length = strlen(d->facts.url);

    if (strncmp(why, d->facts.url, length) == 0 &&
        strncmp(why + length, ": ", 2) == 0)
        return why + length + 2;
    return why;
}

bool doctor_in_clear(const nxl_server_facts *facts)
{
    return facts->state == NXL_SERVER_UP && facts->sends_password &&
           !facts->tls && !facts->local;
}

bool doctor_read(struct doctor *d, size_t server)
{
    d->server = server;
    d->read_at = nxl_now_ns();
    answer_free(d->info);
    d->result = doctor_ask(d, "INFO", NULL, &d->info);
    /* Only now is it known which server Sentinels name. */
    (void)nxl_client_server_facts(d->client, server, &d->facts);
    return d->result == NXL_OK || d->facts.logged_in;
}
