/* SPDX-License-Identifier: MIT */
/* What people are told about a record of once. */
#include "cli/once/once_words.h"

#include <stdio.h>
#include <string.h>

#include "cli/clock.h"
#include "cli/report/date.h"
#include "cli/report/event.h"
#include "cli/look/foreign.h"
#include "cli/run/label.h"
#include "cli/report/report.h"
#include "wire/record.h"

static const char *time_words(char *out, int64_t ms)
{
    return date_words(out, ms / MS_PER_S);
}

/* Whether the lock is held decides whether a record that only began is in
 * doubt.
 */
static enum once_state state_of(const nxl_record *record, bool in_progress)
{
    enum once_state state = (enum once_state)record->state;

    return state == ONCE_BEGUN && !in_progress ? ONCE_DOUBT : state;
}

const char *record_word(const nxl_record *record, bool in_progress)
{
    return record->state == NXL_ONCE_NONE
               ? "none"
               : record_state_word(state_of(record, in_progress));
}

static const char *state_words(const nxl_record *record, bool in_progress)
{
    enum once_state state = state_of(record, in_progress);

    return state == ONCE_BEGUN ? "in progress" : record_state_shown(state);
}

/* What is known of the end. */
static void add_end(
    char *out, size_t size, const nxl_record *record, bool in_progress)
{
    char when[DATE_ROOM];

    time_words(when, record->ended_ms);
    if (record->state == NXL_ONCE_BEGUN && !in_progress)
        snprintf(out, size, ", and did not report its outcome");
    else if (record->state == NXL_ONCE_DOUBT)
        snprintf(out, size, ", ended with %d at %s", record->code, when);
    else if (record->state == NXL_ONCE_DONE)
        snprintf(out, size, ", exit code %d at %s", record->code, when);
    else if (record->state == NXL_ONCE_FAILED)
        snprintf(out, size, ", ended with %d at %s: nothing happened",
            record->code, when);
}

/* What else there is to know. */
static void add_rest(char *out, size_t size, const nxl_record *record)
{
    char when[DATE_ROOM];
    size_t used;

    if (record->fingerprint[0] != '\0')
        snprintf(out, size, "; fingerprint %s", foreign(record->fingerprint));
    used = strlen(out);
    if (record->doubts > 0)
        snprintf(out + used, size - used,
            "; %lld earlier attempt%s ended in doubt, the first attempt began "
            "%s",
            (long long)record->doubts, record->doubts == 1 ? "" : "s",
            time_words(when, record->first_ms));
    used = strlen(out);
    if (record->late > 0)
        snprintf(out + used, size - used,
            "; an earlier one said afterwards that it was done");
    used = strlen(out);
    if (record->state == NXL_ONCE_DONE &&
        record->result_length == NXL_ONCE_NOT_KEPT)
        snprintf(out + used, size - used, "; its output was too long to keep");
    else if (record->state == NXL_ONCE_DONE)
        snprintf(out + used, size - used, "; %zu bytes of output",
            record->result_length);
}

const char *record_words(char *out, const nxl_record *record, bool in_progress)
{
    char who[LABEL_ROOM + 4] = "", when[DATE_ROOM], end[96] = "";
    char rest[240 + FINGERPRINT_MAX] = "";

    if (record->state == NXL_ONCE_NONE) {
        snprintf(out, RECORD_WORDS, "not on record");
        return out;
    }
    if (record->label[0] != '\0') {
        snprintf(who, sizeof(who), " by ");
        const char *label = foreign(record->label);
        printable(who + strlen(who), LABEL_ROOM, label, strlen(label));
    }
    add_end(end, sizeof(end), record, in_progress);
    add_rest(rest, sizeof(rest), record);
    snprintf(out, RECORD_WORDS, "%s: attempt %lld%s began %s%s%s",
        state_words(record, in_progress), (long long)record->attempt, who,
        time_words(when, record->since_ms), end, rest);
    return out;
}

static void json_time(struct json *json, const char *name, int64_t ms)
{
    char text[DATE_ROOM];

    if (ms == 0) {
        json_null(json, name);
        return;
    }
    date_rfc3339(text, ms / MS_PER_S);
    json_string(json, name, text);
}

void record_json(struct json *json, const nxl_record *record)
{
    json_number(json, "fence", (int64_t)record->fence);
    json_number(json, "attempt", record->attempt);
    json_number(json, "doubts", record->doubts);
    json_number(json, "late", record->late);
    json_time(json, "first", record->first_ms);
    json_time(json, "began", record->since_ms);
    json_time(json, "ended", record->ended_ms);
    if (record->ended_ms != 0)
        json_number(json, "code", record->code);
}

void say_doubt(const struct session *session, const nxl_record *record)
{
    const struct args *args = session->args;
    char words[RECORD_WORDS];

    event_report((struct event){.kind = EVENT_DOUBT},
        args->work.on_doubt == NXL_ONCE_RETRY
            ? "'%s' is %s; with --on-doubt retry the next run does it again; "
              "if it was done: nxlock once confirm %s"
            : "'%s' is %s; find out whether it was done, then: nxlock once "
              "confirm %s if it was, or forget if it was not",
        args->shown, record_words(words, record, false), args->pasted);
}

void say_mismatch(const struct session *session, const nxl_record *record)
{
    bool given = session->args->work.fingerprint != NULL;
    bool had = record->fingerprint[0] != '\0';
    /* The answer does not say whether its lock is held. */
    bool begun = record->state == NXL_ONCE_BEGUN;
    char words[RECORD_WORDS];

    event_report((struct event){.kind = EVENT_FAILED},
        "the record of '%s' is about other work (%s); it is %s%s; use the "
        "same --fingerprint for the same work, and another NAME for other work",
        session->args->shown,
        had && given ? "another --fingerprint"
        : had        ? "it has a fingerprint, and none is given here"
                     : "it has no fingerprint",
        begun ? "in doubt or " : "", record_words(words, record, begun));
}
