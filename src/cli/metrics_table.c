/* SPDX-License-Identifier: MIT */
/* Metrics in the text format of Prometheus, by one table of their families. */
#include "cli/metrics_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/utf8.h"

#define FIRST_LINE "# Metrics of nxlock, written by its --metrics; do not edit."
#define LAST_LINE "# EOF"

static const char *loss_word(size_t reason)
{
    static const char *const words[LOSS_REASONS] = {
        [LOST_EXPIRED] = "expired",
        [LOST_REMOVED] = "removed",
        [LOST_TAKEN] = "taken",
        [LOST_UNREACHABLE] = "unreachable",
        [LOST_LATE] = "late",
    };

    return words[reason];
}

static const char *result_word(size_t result)
{
    return event_result_word((enum result)result);
}

/* Metrics that share a name, and differ in the value of one label. */
struct family {
    const char *name;
    bool counter;
    bool seconds; /* kept as milliseconds, written with three decimals */
    enum metric first;
    size_t count;
    const char *label;             /* NULL: count is 1 */
    const char *(*word)(size_t i); /* the label's values */
    const char *help;
};

/* clang-format off */
static const struct family families[] = {
{"nxlock_last_success_timestamp_seconds", false, true, METRIC_SUCCESS, 1,
    NULL, NULL, "When CMD last ended with exit code 0; 0: never."},
{"nxlock_last_skip_timestamp_seconds", false, true, METRIC_SKIP, 1,
    NULL, NULL, "When CMD was last skipped; 0: never."},
{"nxlock_last_duration_seconds", false, true, METRIC_DURATION, 1,
    NULL, NULL, "How long CMD ran the last time it was started."},
{"nxlock_last_least_slack_seconds", false, true, METRIC_SLACK, 1,
    NULL, NULL, "The shortest time left of the lease at a renewal, in the last "
    "run that renewed it."},
{"nxlock_runs_total", true, false, METRIC_RUNS, RESULTS,
    "result", result_word, "Runs, by how they ended."},
{"nxlock_losses_total", true, false, METRIC_LOSSES, LOSS_REASONS,
    "reason", loss_word, "Locks that were lost while CMD ran, by reason."},
{"nxlock_attempts_total", true, false, METRIC_ATTEMPTS, 1,
    NULL, NULL, "Attempts to acquire the lock; a wait makes several."},
{"nxlock_waits_total", true, false, METRIC_WAITS, 1,
    NULL, NULL, "Acquires that took more than one attempt."},
{"nxlock_wait_seconds_total", true, true, METRIC_WAIT_TIME, 1,
    NULL, NULL, "Time spent on acquiring the lock, with all waits."},
{"nxlock_hold_seconds_total", true, true, METRIC_HOLD_TIME, 1,
    NULL, NULL, "Time that the lock was held."},
{"nxlock_renewals_total", true, false, METRIC_RENEWALS, 1,
    NULL, NULL, "Renewals of the lease that succeeded."},
{"nxlock_renewal_failures_total", true, false, METRIC_FAILURES, 1,
    NULL, NULL, "Renewals of the lease that failed and were tried again."},
{"nxlock_server_down_total", true, false, METRIC_DOWN, 1,
    NULL, NULL, "How often no server could decide who has the lock."},
};
/* clang-format on */
#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* ------------------------------------------------------------------- rows */

static struct metrics_row *find_row(
    const struct metrics_table *table, const char *written)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, written) == 0)
            return &table->rows[i];
    return NULL;
}

/* Takes written over, or frees it. */
static struct metrics_row *add_row(struct metrics_table *table, char *written)
{
    struct metrics_row *rows = NULL;

    errno = table->count < METRICS_NAMES ? ENOMEM : E2BIG;
    if (written && table->count < METRICS_NAMES)
        rows = realloc(table->rows, (table->count + 1) * sizeof(*rows));
    if (!rows) {
        free(written);
        return NULL;
    }
    table->rows = rows;
    rows += table->count++;
    *rows = (struct metrics_row){.name = written};
    return rows;
}

/* The value of a label: valid UTF-8 in which three characters are escaped. The
 * caller frees it. NULL: no memory. */
static char *write_name(const char *name)
{
    size_t left = strlen(name);
    char *written = malloc(3 * left + 1); /* U+FFFD has three bytes */
    char *at = written;

    for (size_t size; written && left > 0; name += size, left -= size) {
        size = utf8_length(name, left);
        if (size == 0) {
            at = mempcpy(at, "\xef\xbf\xbd", 3);
            size = 1;
        } else if (*name == '\n') {
            at = mempcpy(at, "\\n", 2);
        } else {
            if (*name == '"' || *name == '\\')
                *at++ = '\\';
            at = mempcpy(at, name, size);
        }
    }
    if (written)
        *at = '\0';
    return written;
}

struct metrics_row *metrics_row(struct metrics_table *table, const char *name)
{
    char *written = write_name(name);
    struct metrics_row *row = written ? find_row(table, written) : NULL;

    if (!row)
        return add_row(table, written);
    free(written);
    return row;
}

void metrics_free(struct metrics_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->rows[i].name);
    free(table->rows);
    *table = (struct metrics_table){NULL, 0};
}

/* --------------------------------------------------------------- printing */

static void print_head(const struct family *family, FILE *out)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help,
        family->name, family->counter ? "counter" : "gauge");
}

static void print_row(
    const struct family *family, const struct metrics_row *row, FILE *out)
{
    for (size_t i = 0; i < family->count; i++) {
        int64_t value = row->value[family->first + i];
        fprintf(out, "%s{name=\"%s\"", family->name, row->name);
        if (family->label)
            fprintf(out, ",%s=\"%s\"", family->label, family->word(i));
        if (family->seconds)
            fprintf(
                out, "} %" PRId64 ".%03d\n", value / 1000, (int)(value % 1000));
        else
            fprintf(out, "} %" PRId64 "\n", value);
    }
}

void metrics_print(const struct metrics_table *table, FILE *out)
{
    fputs(FIRST_LINE "\n", out);
    for (size_t i = 0; i < FAMILIES; i++) {
        print_head(&families[i], out);
        for (size_t k = 0; k < table->count; k++)
            print_row(&families[i], &table->rows[k], out);
    }
    fputs(LAST_LINE "\n", out);
}

/* ---------------------------------------------------------------- reading */

/* Goes past word. False: *at does not begin with it. */
static bool take_word(char **at, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Ends a label's value, with its quote, by a zero. NULL: it has no end. */
static char *take_value(char **at)
{
    char *value = *at;

    while (**at != '"' && **at != '\0')
        *at += **at == '\\' && (*at)[1] != '\0' ? 2 : 1;
    if (**at == '\0')
        return NULL;
    *(*at)++ = '\0';
    return value;
}

/* A number as print_row() writes it, to the end of the line. */
static bool read_number(const char *at, bool seconds, int64_t *number)
{
    int64_t value = 0;
    size_t digits = strspn(at, "0123456789");
    size_t most = seconds ? 15 : 18;

    if (digits == 0 || digits > most)
        return false;
    for (size_t i = 0; i < digits; i++)
        value = 10 * value + (at[i] - '0');
    at += digits;
    if (seconds) {
        if (at[0] != '.' || strspn(at + 1, "0123456789") != 3)
            return false;
        for (size_t i = 1; i <= 3; i++)
            value = 10 * value + (at[i] - '0');
        at += 4;
    }
    *number = value;
    return *at == '\0';
}

/* Which of its metrics the rest of the labels names; count: none. */
static size_t read_label(const struct family *family, char **at)
{
    size_t i = 0;

    if (!family->label)
        return 0;
    if (!take_word(at, ",") || !take_word(at, family->label) ||
        !take_word(at, "=\""))
        return family->count;
    const char *word = take_value(at);
    while (i < family->count && word && strcmp(family->word(i), word) != 0)
        i++;
    return word ? i : family->count;
}

/* The row of a name: mostly the one behind the last. NULL: no memory, or too
 * many. */
static struct metrics_row *read_row(
    struct metrics_table *table, const char *written, size_t *next)
{
    struct metrics_row *row = NULL;

    if (*next < table->count && strcmp(table->rows[*next].name, written) == 0)
        row = &table->rows[*next];
    if (!row)
        row = find_row(table, written);
    if (!row)
        row = add_row(table, strdup(written));
    if (row)
        *next = (size_t)(row - table->rows) + 1;
    return row;
}

/* 1, 0: it is not of this format, or -1: no memory. */
static int read_metric(struct metrics_table *table, char *line, size_t *next)
{
    const struct family *family = families;
    size_t length = strcspn(line, "{");
    int64_t value;

    while (family < families + FAMILIES &&
           (strlen(family->name) != length ||
               memcmp(family->name, line, length) != 0))
        family++;
    line += length;
    if (family == families + FAMILIES || !take_word(&line, "{name=\""))
        return 0;
    const char *written = take_value(&line);
    if (!written)
        return 0;
    size_t i = read_label(family, &line);
    if (i == family->count || !take_word(&line, "} ") ||
        !read_number(line, family->seconds, &value))
        return 0;
    /* The same name comes again for the next value of the label. */
    if (i > 0 && *next > 0)
        --*next;
    struct metrics_row *row = read_row(table, written, next);
    if (!row)
        return errno == ENOMEM ? -1 : 0;
    row->value[family->first + i] = value;
    return 1;
}

long metrics_read(struct metrics_table *table, char *text)
{
    long number = 0;
    size_t next = 0;
    bool ended = false;

    *table = (struct metrics_table){NULL, 0};
    for (char *end; *text != '\0'; text = end + 1) {
        int understood = 1;
        number++;
        end = strchr(text, '\n');
        if (!end || ended)
            return number;
        *end = '\0';
        ended = strcmp(text, LAST_LINE) == 0;
        if (number == 1)
            understood = strcmp(text, FIRST_LINE) == 0;
        else if (strncmp(text, "# HELP nxlock_", 14) == 0)
            next = 0;
        else if (!ended && strncmp(text, "# TYPE nxlock_", 14) != 0)
            understood = read_metric(table, text, &next);
        if (understood != 1)
            return understood == 0 ? number : -1;
    }
    return number > 0 && !ended ? number + 1 : 0;
}
