/* SPDX-License-Identifier: MIT */
/*
 * Keeps: no value is guessed, and one that would do nothing is refused. What
 * harm an option does stands in the help's text.
 */
#include "cli/option_run.h"

#include <signal.h>
#include <string.h>

#include "cli/secret.h"

/* Twice a lease, of which the longest is 2147483647 ms. */
#define EVERY_MIN_MS 40
#define EVERY_MAX_MS (2 * (int64_t)INT32_MAX)

static int set_time(int64_t *ms, const char *shown, const char *value)
{
    int code = option_duration(ms, shown, value);

    if (code == 0 && *ms == 0) {
        say("%s '%s' is no time at all; leave it out", shown, value);
        return EXIT_USAGE;
    }
    return code;
}

static int set_at_least(
    struct args *args, const char *shown, const char *value)
{
    return set_time(&args->run.at_least_ms, shown, value);
}

static int set_at_most(struct args *args, const char *shown, const char *value)
{
    return set_time(&args->run.at_most_ms, shown, value);
}

static int set_grace(struct args *args, const char *shown, const char *value)
{
    return option_duration(&args->run.grace_ms, shown, value);
}

static int set_every(struct args *args, const char *shown, const char *value)
{
    int code = set_time(&args->run.every_ms, shown, value);
    int64_t ms = args->run.every_ms;

    if (code == 0 && (ms < EVERY_MIN_MS || ms > EVERY_MAX_MS)) {
        say("%s '%s' is no period that can be kept: it is between 40ms and "
            "49d", shown, value);
        return EXIT_USAGE;
    }
    return code;
}

static int set_on_lost(struct args *args, const char *shown, const char *value)
{
    static const struct {
        const char *name;
        int signo;
    } words[] = {{"kill", SIGTERM}, {"warn", ON_LOST_WARN}, {"HUP", SIGHUP},
        {"INT", SIGINT}, {"QUIT", SIGQUIT}, {"ABRT", SIGABRT},
        {"KILL", SIGKILL}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
        {"TERM", SIGTERM}};
    const char *name = strncmp(value, "SIG", 3) == 0 ? value + 3 : value;
    char shown_value[DISCREET_ROOM];

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i].name, name) == 0) {
            args->run.on_lost = words[i].signo;
            return 0;
        }
    }
    say("%s '%s' is neither kill nor warn nor one of the signals HUP, INT, "
        "QUIT, ABRT, KILL, USR1, USR2 and TERM", shown,
        discreet(shown_value, value));
    return EXIT_USAGE;
}

static int set_on_down(struct args *args, const char *shown, const char *value)
{
    static const char *const words[] = {
        [DOWN_FAILS] = "fail", [DOWN_SKIPS] = "skip", [DOWN_RUNS] = "run"};
    char shown_value[DISCREET_ROOM];

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], value) == 0) {
            args->run.on_down = (enum on_down)i;
            return 0;
        }
    }
    say("%s '%s' is none of fail, skip and run", shown,
        discreet(shown_value, value));
    return EXIT_USAGE;
}

static int set_retry_failed(
    struct args *args, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    args->run.retry_failed = true;
    return 0;
}

static int set_leave(struct args *args, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    args->run.leave = true;
    return 0;
}

static int wish_fence(
    struct args *args, enum fence_wish wish, enum fence_wish other)
{
    if (args->run.fence == other) {
        say("--fence and --no-fence exclude each other");
        return EXIT_USAGE;
    }
    args->run.fence = wish;
    return 0;
}

static int set_fence(struct args *args, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    return wish_fence(args, FENCE_MUST, FENCE_NONE);
}

static int set_no_fence(
    struct args *args, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    return wish_fence(args, FENCE_NONE, FENCE_MUST);
}

#define RUN (1U << CMD_RUN)

static const struct option rows[] = {
    {0, "at-least", "DUR", "NAME stays locked that long from the start", RUN,
        set_at_least},
    {0, "at-most", "DUR", "stop CMD after that time; exit code 124", RUN,
        set_at_most},
    {0, "grace", "DUR", "from TERM to KILL (a sixth of --ttl, or 5s)", RUN,
        set_grace},
    {0, "every", "DUR", "not again within half of DUR: one run each DUR", RUN,
        set_every},
    {0, "retry-failed", NULL, "no --every nor --at-least after a failure",
        RUN, set_retry_failed},
    {0, "on-lost", "WHAT", "kill, a signal instead of TERM, or warn", RUN,
        set_on_lost},
    {0, "on-down", "WHAT", "no server at the start: fail, skip or run", RUN,
        set_on_down},
    {0, "leave-descendants", NULL, "let what CMD leaves behind run on", RUN,
        set_leave},
    {0, "fence", NULL, "do not run without a fencing number", RUN, set_fence},
    {0, "no-fence", NULL, "draw no fencing number", RUN, set_no_fence},
};

const struct option *option_run_row(size_t i)
{
    return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}
