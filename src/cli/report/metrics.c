/* SPDX-License-Identifier: MIT */
/*
 * Two files for each lock and prefix, in the text format of Prometheus:
 * nxlock_last_run_NAME.prom, and nxlock_last_success_NAME.prom, which stays as
 * it is when a run does not succeed.
 *
 * Invariant: no file is ever seen half written, none is read, no two locks
 * share one, and no metric is in two files with the same labels: node_exporter
 * would report none at all.
 */
#include "cli/report/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/report/event.h"
#include "cli/report/report.h"
#include "cli/report/utf8.h"
#include "cli/servers/urls.h"

#define FRESH "/.nxlock-XXXXXX"
/* Of the prefix and the name in "nxlock_last_success_%s.prom". */
#define ENCODED_MAX (NAME_MAX - 25)
#define PART_ROOM (ENCODED_MAX + 2) /* with a '+', and the zero byte */
#define WHY_ROOM 160

static struct {
    const struct args *args;
    nxl_client *client;
    const char *prefix;
    bool ran; /* CMD has ended */
} run;

/* ------------------------------------------------------------- the metrics */

/* A label's value is valid UTF-8 in which three characters are escaped. */
static void put_label(FILE *out, const char *label, const char *value)
{
    fprintf(out, "%s=\"", label);
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\' || *value == '\n')
            fputc('\\', out);
        fputc(*value == '\n' ? 'n' : *value, out);
    }
    fputc('"', out);
}

/* Writes all of a metric but its value; more: further labels. */
static void put_metric(
    FILE *out, const char *name, const char *help, const char *more)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n%s{", name, help, name, name);
    put_label(out, "lock", run.args->name);
    put_label(out, ",prefix", run.prefix);
    fprintf(out, "%s} ", more);
}

static void put_seconds(
    FILE *out, const char *name, const char *help, int64_t ms)
{
    put_metric(out, name, help, "");
    fprintf(out, "%" PRId64 ".%03d\n", ms / 1000, (int)(ms % 1000));
}

static void put_number(
    FILE *out, const char *name, const char *help, uint64_t number)
{
    put_metric(out, name, help, "");
    fprintf(out, "%" PRIu64 "\n", number);
}

static int64_t unix_ms(const struct event *event)
{
    return (int64_t)event->time.tv_sec * 1000 + event->time.tv_nsec / 1000000;
}

/* The watchdog has no client. */
static void print_stats(FILE *out)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    nxl_stats stats;

    if (nxl_client_stats(run.client, &stats, sizeof(stats)) != NXL_OK)
        return;
    (void)nxl_client_server_facts(run.client, 0, &facts);
    if (stats.renewals > 0)
        put_seconds(out, "nxlock_last_run_least_slack_seconds",
            "The shortest time left of the lease at a renewal in the last run.",
            (int64_t)stats.least_slack_ms);
    if (facts.failover_guarded) {
        put_number(out, "nxlock_last_run_failovers",
            "How many failovers the last run saw.", stats.failovers);
        put_seconds(out, "nxlock_last_run_quarantine_seconds",
            "How long the server granted no lock yet, when the last run ended, "
            "because it had restarted or been promoted.",
            (int64_t)stats.quarantine_ms);
    }
    if (facts.sentinels > 0) {
        put_number(out, "nxlock_last_run_sentinels_naming",
            "How many Sentinels named the server when the last run ended.",
            stats.sentinels_naming);
        put_number(out, "nxlock_last_run_unconfirmed",
            "How many grants, extensions and messages did not count, or were "
            "not sent, in the last run, because no majority of the Sentinels "
            "named the server.",
            stats.unconfirmed);
    }
}

static void print_run(FILE *out, const struct event *end)
{
    char result[64];

    put_seconds(out, "nxlock_last_run_timestamp_seconds",
        "When the last run ended, or was skipped.", unix_ms(end));
    put_number(out, "nxlock_last_run_exit_code",
        "The exit code of nxlock in the last run.", (uint64_t)end->code);
    snprintf(result, sizeof(result), ",result=\"%s\"",
        event_result_word(end->result));
    put_metric(out, "nxlock_last_run_result",
        "How the last run ended, as a label; the value is 1.", result);
    fputs("1\n", out);
    put_seconds(out, "nxlock_last_run_wait_seconds",
        "How long the last run took to acquire the lock.", end->waited_ms);
    put_seconds(out, "nxlock_last_run_hold_seconds",
        "How long the last run held the lock.", end->held_ms);
    if (run.ran)
        put_seconds(out, "nxlock_last_run_duration_seconds",
            "How long the command of the last run took.", end->ran_ms);
    print_stats(out);
}

static void print_success(FILE *out, const struct event *end)
{
    put_seconds(out, "nxlock_last_success_timestamp_seconds",
        "When the command last ended with exit code 0.", unix_ms(end));
    put_seconds(out, "nxlock_last_success_duration_seconds",
        "How long the command took when it last succeeded.", end->ran_ms);
}

/* --------------------------------------------------------------- the files */

static void warn(const char *why)
{
    say("warning: cannot write metrics to the directory '%s': %s",
        run.args->metrics, why);
}

static void warn_of(int error)
{
    char why[WHY_ROOM];

    snprintf(why, sizeof(why), "%s%s",
        error == EPERM ? "the file of another user cannot be replaced in a "
                         "directory with the sticky bit"
                       : strerror(error),
        error == EPERM    ? "; use another directory"
        : error == EACCES ? "; allow this user to create files in it"
        : error == ENOENT ? "; create it"
                          : "");
    warn(why);
}

/* Writes "NAME" or "PREFIX+NAME", in which no encoded text has a '+', into out.
 * False: the lock cannot have a file, and the reason was reported. */
static bool file_part(char out[PART_ROOM])
{
    const char *name = run.args->name;

    if (!utf8_is_valid(name, strlen(name)) ||
        !utf8_is_valid(run.prefix, strlen(run.prefix))) {
        warn("a name or prefix that is not UTF-8 cannot be a label");
        return false;
    }
    bool fits = url_encode(out, ENCODED_MAX + 1, run.prefix);
    if (out[0] != '\0')
        memcpy(out + strlen(out), "+", sizeof("+"));
    size_t used = strlen(out);
    if (fits && used <= ENCODED_MAX &&
        url_encode(out + used, ENCODED_MAX + 1 - used, name))
        return true;
    warn("the prefix and the name of the lock are too long for the name of a "
         "file");
    return false;
}

static bool print_to(int fd, const struct event *end,
    void (*print)(FILE *out, const struct event *end))
{
    FILE *out = fdopen(fd, "w");

    if (!out) {
        close(fd);
        return false;
    }
    print(out, end);
    /* Whatever umask says: node_exporter runs as another user. Without fsync()
     * the file could be empty after a power failure. */
    bool written = fflush(out) == 0 && !ferror(out) && fchmod(fd, 0644) == 0 &&
                   fsync(fd) == 0;
    int error = errno;
    if (fclose(out) == 0)
        errno = error;
    return written;
}

/* Writes a new file, which then replaces the one before. */
static bool write_file(const char *what, const char *part,
    const struct event *end, void (*print)(FILE *out, const struct event *end))
{
    char path[PATH_MAX], fresh[PATH_MAX];
    const char *directory = run.args->metrics;

    snprintf(fresh, sizeof(fresh), "%s" FRESH, directory);
    if (snprintf(path, sizeof(path), "%s/nxlock_last_%s_%s.prom", directory,
            what, part) >= (int)sizeof(path)) {
        warn(strerror(ENAMETOOLONG));
        return false;
    }
    int fd = mkostemp(fresh, O_CLOEXEC);
    if (fd >= 0 && print_to(fd, end, print) && rename(fresh, path) == 0)
        return true;
    int error = errno;
    if (fd >= 0)
        (void)unlink(fresh);
    warn_of(error);
    return false;
}

static void take_event(const struct event *event)
{
    char part[PART_ROOM];

    run.ran |= event->kind == EVENT_COMMAND_ENDED;
    if (event->kind != EVENT_ENDED || !file_part(part))
        return;
    if (write_file("run", part, event, print_run) && run.ran &&
        event->result == RESULT_DONE)
        (void)write_file("success", part, event, print_success);
}

void metrics_begin(const struct args *args, nxl_client *client)
{
    if (!args->metrics)
        return;
    run.args = args;
    run.client = client;
    run.prefix = nxl_client_prefix(client);
    event_add_sink(take_event);
}
