/* SPDX-License-Identifier: MIT */
/*
 * The command line. The input is its words, cut at zero bytes if there are
 * any, else at newlines; the first stands for the command. Linked with
 * --wrap=say, so that what is said is counted instead of shown.
 */
#include "cli/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nxlock.h>

#include "cli/parse.h"
#include "cli/report/report.h"
#include "cli/servers/secret.h"
#include "cli/table.h"
#include "api/private.h"
#include "fuzz/fuzz.h"
#include "wire/record.h"

#define WORDS 64
#define LONGEST_MS (INT64_C(3650) * 24 * 3600 * 1000)

void __wrap_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static unsigned said;
static char words_said[4096];

void __wrap_say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int len = vsnprintf(words_said, sizeof(words_said), format, arguments);
    va_end(arguments);
    CHECK(len > 0);
    said++;
}

/* The command line, with room for the NULL behind the last word. */
struct line {
    enum command command;
    size_t count; /* without the command */
    char *words[WORDS + 2];
};

static void cut(struct line *line, char *text, size_t size)
{
    static char names[COMMANDS][8];
    const size_t count = COMMANDS;
    char separator = memchr(text, '\0', size) ? '\0' : '\n';
    char *end = text + size;

    for (size_t i = 0; i < count; i++)
        snprintf(names[i], sizeof(names[i]), "%s", command_table[i].name);
    memset(line, 0, sizeof(*line));
    if (size > 0 && end[-1] == separator)
        *--end = '\0';
    for (size_t i = 0; i <= WORDS && text <= end; i++) {
        char *stop = memchr(text, separator, (size_t)(end - text));
        line->words[i] = text;
        line->count = i;
        text = (stop ? stop : end) + 1;
        text[-1] = '\0';
    }
    line->command = (enum command)((unsigned char)line->words[0][0] % count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(line->words[0], names[i]) == 0)
            line->command = (enum command)i;
    }
    line->words[0] = names[line->command]; /* nothing else gets here */
}

/* 0, or the code; and what was said matches it. */
static int parse(struct args *args, struct line *line)
{
    char *before[WORDS + 2];

    memset(args, 0xa5, sizeof(*args));
    memcpy(before, line->words, sizeof(before));
    said = 0;
    words_said[0] = '\0';
    int code = args_parse(args, line->command, line->words + 1);
    /* EXIT_INTERNAL is for want of memory alone. */
    CHECK(code == 0 || code == EXIT_USAGE);
    CHECK(said == (code == 0 ? 0 : 1));
    CHECK(memcmp(before, line->words, sizeof(before)) == 0);
    return code;
}

/* -------------------------------------------------------- the parameters */

/* Is this the value of a flag, in a word of its own or behind a '='? */
static bool was_given(const struct line *line, const char *value)
{
    for (size_t i = 1; i <= line->count; i++) {
        const char *word = line->words[i];
        const char *equals = strchr(word, '=');
        if (strcmp(word, value) == 0 ||
            (equals && strcmp(equals + 1, value) == 0))
            return true;
    }
    return false;
}

/* A value stands on the line, and the library takes it. */
static void check_parameters(const struct line *line, const struct args *args)
{
    const struct option *option;

    for (size_t i = 0; (option = option_at(args->command, &i));) {
        const char *value = option_parameter(args, option);
        char must[96];
        if (!value)
            continue;
        CHECK(url_param_accepts(option->variable, value, must, sizeof(must)));
        CHECK(option->implied
                  ? value == option->implied && was_given(line, "--insecure")
                  : was_given(line, value));
    }
}

/* -------------------------------------------------------------- the rest */

static void check_child(const struct args *args, struct line *line)
{
    size_t i = 1;

    const struct once_args *work = &args->work;
    bool changes = work->action != ONCE_RUN;

    if (!command_table[args->command].runs || changes) {
        CHECK(!args->child && !args->script);
        return;
    }
    CHECK(args->child && args->child[0]);
    if (args->script) {
        CHECK(args->script[0] != '\0');
        CHECK(strcmp(args->child[0], "/bin/sh") == 0);
        CHECK(strcmp(args->child[1], "-c") == 0);
        CHECK(args->child[2] == args->script && !args->child[3]);
        return;
    }
    while (i <= line->count && strcmp(line->words[i], "--") != 0)
        i++;
    CHECK(args->child == line->words + i + 1);
}

/* The words that a command needs, and those that it alone takes. */
static void check_words(const struct args *args)
{
    enum command command = args->command;
    bool unlocks = command == CMD_UNLOCK;

    CHECK(args->name ? args->name[0] != '\0'
                     : command == CMD_LIST || command == CMD_DOCTOR);
    if (command == CMD_RENEW || command == CMD_RELEASE)
        CHECK(args->token != NULL);
    else
        CHECK(
            (args->token != NULL) == (unlocks && !args->force && !args->line));
    CHECK(unlocks || (!args->force && !args->line));
    CHECK(unlocks || command == CMD_ONCE || !args->yes);
    CHECK(!args->token || !unlocks || is_token(args->token));
    CHECK(!args->json || command == CMD_STATUS || command == CMD_LIST ||
          command == CMD_DOCTOR ||
          (command == CMD_ONCE && args->work.action == ONCE_SHOW));
}

static void check_once(const struct args *args)
{
    const struct once_args *work = &args->work;
    size_t both = 0;

    CHECK(work->action == ONCE_RUN || (!args->child && !args->script));
    CHECK(work->keep_ms >= 0 && work->keep_ms <= LONGEST_MS / 10);
    CHECK((work->keep != NULL) == (work->keep_ms != 0));
    CHECK(work->keep_trying_ms >= 0 && work->keep_trying_ms <= LONGEST_MS);
    CHECK(!work->fingerprint || fingerprint_valid(work->fingerprint));
    CHECK(!work->check || work->on_doubt == -1);
    CHECK(work->on_doubt >= -1 && work->on_doubt <= NXL_ONCE_RETRY);
    for (size_t i = 0; i < sizeof(work->done_on.has); i++)
        both += work->done_on.has[i] && work->retry_on.has[i];
    CHECK(both == 0);
    if (args->command != CMD_ONCE)
        CHECK(work->action == ONCE_RUN && !work->quiet && !work->keep &&
              !work->check && work->on_doubt == -1 &&
              work->keep_trying_ms == KEEP_TRYING_MS);
}

static void check_run(const struct args *args)
{
    const struct run_args *run = &args->run;
    const int64_t times[] = {
        run->at_least_ms, run->at_most_ms, run->every_ms, run->grace_ms};
    size_t given = 0;

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        CHECK(times[i] >= (i == 3 ? -1 : 0) && times[i] <= LONGEST_MS);
        given += times[i] > 0;
    }
    CHECK(run->every_ms == 0 || run->every_ms >= 40);
    CHECK(run->on_lost == LOST_KILLS || run->on_lost == LOST_WARNS);
    if (!command_table[args->command].runs)
        CHECK(given == 0 && run->grace_ms == -1 && !run->leave &&
              run->on_lost == LOST_KILLS);
    if (args->command != CMD_RUN)
        CHECK(run->at_least_ms == 0 && run->every_ms == 0);
}

static void check_good(const struct args *args, struct line *line)
{
    CHECK(args->command == line->command && args->word == line->words[0]);
    check_words(args);
    check_run(args);
    check_once(args);
    CHECK(args->ttl_ms > 0 && args->ttl_ms <= LONGEST_MS);
    CHECK(args->ttl || args->ttl_ms == DEFAULT_TTL_MS);
    CHECK(args->wait_ms >= -1 && args->wait_ms <= LONGEST_MS);
    CHECK(!(args->no_wait && args->wait));
    CHECK(!args->no_wait || args->wait_ms == 0);
    CHECK(args->no_wait ||
          (args->wait != NULL) == (args->wait_ms != NXL_FOREVER));
    CHECK(args->busy_code >= 0 && args->busy_code <= 255);
    check_child(args, line);
}

static void check_same(const struct args *a, const struct args *b)
{
    CHECK(a->name == b->name && a->token == b->token);
    CHECK(a->url_count == b->url_count);
    CHECK(a->script == b->script &&
          memcmp(&a->parameters, &b->parameters, sizeof(a->parameters)) == 0);
    CHECK(a->wait_ms == b->wait_ms && a->ttl_ms == b->ttl_ms);
    CHECK(a->busy_code == b->busy_code && a->no_wait == b->no_wait);
    CHECK(a->wait == b->wait && a->verbose == b->verbose);
    CHECK(a->json == b->json && a->help == b->help);
    CHECK(memcmp(&a->run, &b->run, sizeof(a->run)) == 0);
    CHECK(memcmp(&a->work.done_on, &b->work.done_on, sizeof(a->work.done_on)) ==
          0);
    CHECK(a->work.keep_ms == b->work.keep_ms &&
          a->work.fingerprint == b->work.fingerprint &&
          a->work.check == b->work.check);
}

/* What stands after "--" is the child's alone: anything else there changes
 * nothing else. */
static void check_unseen(const struct args *args, struct line *line)
{
    static char option[] = "--no-such-option";
    struct args other;

    if (!args->child || args->script)
        return;
    size_t first = (size_t)(args->child - line->words);
    line->words[first] = option;
    line->words[first + 1] = NULL;
    CHECK(parse(&other, line) == 0);
    check_same(args, &other);
    args_free(&other);
}

/* Of a word that is no token itself, and may be shown. */
static bool is_part(const struct line *line, const char *token)
{
    for (size_t i = 1; i <= line->count; i++) {
        if (!is_token(line->words[i]) && strstr(line->words[i], token))
            return true;
    }
    return false;
}

/* A word too many or in the wrong place may be a token, which is a key. */
static void check_unsaid(const struct line *line)
{
    for (size_t i = 1; i <= line->count; i++)
        CHECK(!is_token(line->words[i]) || is_part(line, line->words[i]) ||
              !strstr(words_said, line->words[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    struct line line;
    struct args args;

    cut(&line, text, size);
    int code = parse(&args, &line);
    if (code != 0) {
        check_unsaid(&line);
    } else if (!args.help) {
        check_good(&args, &line);
        check_parameters(&line, &args);
        check_unseen(&args, &line);
    }
    args_free(&args);
    fuzz_count(code == 0);
    free(text);
    return 0;
}
