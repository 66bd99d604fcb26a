/* SPDX-License-Identifier: MIT */
/*
 * Parses the command line, by the table of commands and options.
 *
 * Invariant: nothing is guessed. A command line that can be read in two ways is
 * refused, with what was understood and what to write instead; the words after
 * "--" are never interpreted.
 */
#include "cli/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nxlock.h>

#include "cli/names.h"
#include "cli/report/report.h"
#include "cli/servers/secret.h"
#include "cli/table.h"
#include "cli/value.h"

/* The position in the words. */
struct walk {
    struct args *args;
    char **at;
    bool options_over; /* after "--" of a command that runs nothing */
    bool has_word;     /* one that is no option was read */
};

static const struct command_info *info_of(const struct args *args)
{
    return &command_table[args->command];
}

/* The form of the synopsis that applies: the first one, or the last one if
 * once runs nothing. */
static const char *synopsis(const struct args *args)
{
    const char *form = info_of(args)->synopsis, *next;

    while (args->work.action != ONCE_RUN && (next = strchr(form, '\n')) &&
           next[1] != '\0')
        form = next + 1;
    return form;
}

/* The same for "%.*s". */
#define SYNOPSIS(args) (int)strcspn(synopsis(args), "\n"), synopsis(args)

#define NO_PASSWORD                                                            \
    "other users of this machine can read a command line; write it to a file " \
    "that only you can read (chmod 600) and give --password-file FILE, or "    \
    "set NXLOCK_PASSWORD"
#define EXCLUSIVE "work that must be done once needs an exclusive lock"

/* Options of redis-cli, and those that once does not have: why, or what to
 * write instead. */
static const struct {
    const char *name, *why;
    bool of_once; /* other commands may have it */
} refused[] = {
    {"password", NO_PASSWORD, false}, /* the first: slips are recognized too */
    {"pass", NO_PASSWORD, false},
    {"tls", "the URL says it: write rediss:// instead of redis://", false},
    {"host", "the URL says it: -u redis://HOST:PORT", false},
    {"port", "the URL says it: -u redis://HOST:PORT", false},
    {"every", "its record decides when CMD may run again: see --keep", true},
    {"at-least", "its record keeps others from running CMD: see --keep", true},
    {"permits", EXCLUSIVE, true},
    {"shared", EXCLUSIVE, true},
    {"weight", EXCLUSIVE, true},
    {"also", "its record is about one piece of work, which has one name", true},
    {"show", "write: nxlock once show NAME", true},
    {"confirm", "write: nxlock once confirm NAME", true},
    {"forget", "write: nxlock once forget NAME", true},
};
#define REFUSED (sizeof(refused) / sizeof(refused[0]))

/* Reports why there is no such option, or what to write instead. False: that is
 * not known. */
static bool say_instead(const struct args *args, const char *name)
{
    size_t i = 0;

    while (
        i < REFUSED && (strcmp(name, refused[i].name) != 0 ||
                           (refused[i].of_once && args->command != CMD_ONCE)))
        i++;
    if (i == REFUSED)
        return false;
    say("%s has no option '--%s': %s", args->word, name, refused[i].why);
    return true;
}

static int unknown_option(const struct args *args, const char *word)
{
    const struct option *option;
    struct nearest nearest;
    char bare[64], shown[DISCREET_ROOM], pasted[NAME_PASTED];
    bool secret = is_password_letter(word);

    snprintf(bare, sizeof(bare), "%s", word + strspn(word, "-"));
    bare[strcspn(bare, "=")] = '\0';
    nearest_start(&nearest, bare);
    for (size_t i = 0; (option = option_at(args->command, &i));)
        nearest_consider(&nearest, option->name);
    nearest_consider(&nearest, refused[0].name);
    if (word[1] == '-' &&
        say_instead(
            args, nearest.best == refused[0].name ? nearest.best : bare))
        return EXIT_USAGE;
    discreet(shown, word);
    shown[secret ? 2 : strcspn(shown, "=")] = '\0';
    if (nearest.best)
        say("%s has no option '%s'; did you mean '--%s'?", args->word, shown,
            nearest.best);
    else if (!args->name)
        say("%s has no option '%s'; a NAME that starts with '-' is written %s",
            args->word, shown,
            secret ? "--name=NAME" : name_pasted(pasted, shown));
    else
        say("%s has no option '%s'; 'nxlock %s --help' lists its options",
            args->word, shown, args->word);
    return EXIT_USAGE;
}

/* rest: the value, if it is in the same word as the option; otherwise NULL, and
 * the value is the next word. */
static int take_option(struct walk *walk, const struct option *option,
    const char *shown, const char *rest)
{
    const char *next = walk->at[1];
    char word[DISCREET_ROOM];

    if (!option->value && rest) {
        say("%s takes no value, but '%s' was given", shown,
            discreet(word, rest));
        return EXIT_USAGE;
    }
    if (option->value && !rest) {
        if (!next || strcmp(next, "--") == 0) {
            say("%s needs a value: %s %s", shown, shown, option->value);
            return EXIT_USAGE;
        }
        rest = *++walk->at;
    }
    walk->args->given |= option_bit(option);
    return value_set(walk->args, option, shown, rest);
}

static int long_option(struct walk *walk)
{
    const char *name = *walk->at + 2;
    size_t length = strcspn(name, "=");
    const char *rest = name[length] == '=' ? name + length + 1 : NULL;
    const struct option *option =
        option_find(walk->args->command, '\0', name, length);
    char shown[64];

    if (!option)
        return unknown_option(walk->args, *walk->at);
    snprintf(shown, sizeof(shown), "--%.*s", (int)length, name);
    return take_option(walk, option, shown, rest);
}

/* "-n", "-w5", "-nv": the first letter that takes a value gets the rest of the
 * word. */
static int short_options(struct walk *walk)
{
    const char *word = *walk->at;

    for (const char *at = word + 1; *at != '\0'; at++) {
        char shown[3] = {'-', *at, '\0'};
        const struct option *option =
            option_find(walk->args->command, *at, NULL, 0);
        if (!option)
            return unknown_option(walk->args, word);
        bool last = option->value != NULL;
        const char *rest = last && at[1] != '\0' ? at + 1 : NULL;
        int code = take_option(walk, option, shown, rest);
        if (code != 0 || last)
            return code;
    }
    return 0;
}

static bool dashes_follow(const struct walk *walk)
{
    for (char **at = walk->at; *at; at++)
        if (strcmp(*at, "--") == 0)
            return true;
    return false;
}

static int word_too_many(const struct walk *walk, const char *word)
{
    const struct args *args = walk->args;
    char shown[DISCREET_ROOM], pasted[NAME_PASTED];

    discreet(shown, word);
    if (args->command == CMD_ACQUIRE && walk->options_over)
        say("acquire runs no command; write: nxlock run %s -- %s%s",
            args->pasted, word_pasted(pasted, shown),
            walk->at[1] ? " ..." : "");
    else if (!info_of(args)->runs && args->token)
        say("one word too many after NAME and TOKEN (not shown, because it may "
            "be a token); write: %.*s",
            SYNOPSIS(args));
    else if (!info_of(args)->runs || args->work.action != ONCE_RUN ||
             dashes_follow(walk))
        say("unexpected '%s' after %s; write: %.*s", shown,
            args->command == CMD_LIST ? "GLOB" : "NAME", SYNOPSIS(args));
    else if (args->script)
        say("unexpected '%s': STRING is one word, in quotes: nxlock %s %s -c "
            "'CMD...'",
            shown, args->word, args->pasted);
    else
        say("'--' is missing before '%s'; write: nxlock %s %s -- %s%s", shown,
            args->word, args->pasted, word_pasted(pasted, shown),
            walk->at[1] ? " ..." : "");
    return EXIT_USAGE;
}

/* The first word of once may say what to do with the record. A lock of that
 * name is written --name=show. */
static bool take_action(struct walk *walk, const char *word)
{
    if (walk->args->command != CMD_ONCE || walk->has_word)
        return false;
    walk->args->work.action = once_action(word);
    return walk->args->work.action != ONCE_RUN;
}

static int take_word(struct walk *walk)
{
    struct args *args = walk->args;
    const char *word = *walk->at;

    if (!walk->options_over && word[0] == '-' && word[1] != '\0')
        return word[1] == '-' ? long_option(walk) : short_options(walk);
    bool action = take_action(walk, word);
    walk->has_word = true;
    if (action)
        return 0;
    if (!args->name)
        value_set_name(args, word);
    else if (info_of(args)->takes_token && !args->token)
        args->token = word;
    else
        return word_too_many(walk, word);
    return 0;
}

/* Reports what is wrong with the words of 'nxlock once show' and the like. */
static bool say_action_fault(const struct args *args)
{
    const struct choice *action = once_actions;

    if (args->work.action == ONCE_RUN)
        return false;
    while (action->number != (int)args->work.action)
        action++;
    const char *word = action->name;
    if (args->child || args->script)
        say("'once %s NAME' runs no command: leave out -- CMD... or -c STRING; "
            "if '%s' is the NAME, write: nxlock once --name=%s -- CMD...",
            word, word, word);
    else if (!args->name)
        say("NAME is missing; write: nxlock once %s NAME", word);
    return args->child || args->script || !args->name;
}

/* What is wrong with the words after "--" or -c, or NULL. */
static const char *child_fault(const struct args *args)
{
    const struct once_args *work = &args->work;

    if (work->action != ONCE_RUN)
        return NULL;
    if (args->script && args->child)
        return "-c STRING and -- CMD... exclude each other";
    if (!args->script && !args->child)
        return "'--' and the command to run are missing";
    if (!args->script && !args->child[0])
        return "there is no command after '--'";
    return NULL;
}

/* What is wrong with NAME and TOKEN, or NULL. A token is not repeated in a
 * message: whoever has it can release the lock. */
static const char *word_fault(const struct args *args, char *room, size_t size)
{
    const struct command_info *info = info_of(args);

    if (!args->name)
        return info->name_optional
                   ? NULL
                   : "NAME is missing (--name=NAME if it starts with '-')";
    if (args->name[0] == '\0')
        return "NAME is empty";
    if (args->command == CMD_UNLOCK && !args->token && !args->force &&
        !args->holder && !args->every_holder && !args->line)
        return "--token TOKEN, --force, --holder ID, --all or --line is "
               "missing";
    if (!info->takes_token || (args->token && !is_token(args->name)))
        return NULL;
    if (args->token)
        return is_token(args->token) ? NULL : "NAME and TOKEN are swapped";
    if (is_token(args->name))
        return "a token was given instead of NAME";
    snprintf(room, size,
        "TOKEN is missing: the word that 'nxlock acquire %s' printed",
        args->pasted);
    return room;
}

/* The same for the options of once. */
static const char *once_fault(const struct args *args)
{
    static char room[64];
    const struct once_args *work = &args->work;
    const struct option *option;

    for (size_t i = 0; (option = option_at(args->command, &i));) {
        if (work->action == ONCE_RUN || !option_of_cmd(option) ||
            !(args->given & option_bit(option)))
            continue;
        snprintf(room, sizeof(room), "--%s has no effect without a command",
            option->name);
        return room;
    }
    if (args->json && args->command == CMD_ONCE && work->action != ONCE_SHOW)
        return "--json has no effect without 'nxlock once show'";
    for (size_t i = 0; i < sizeof(work->done_on.has); i++) {
        if (work->done_on.has[i] && work->retry_on.has[i])
            return "--done-on (0 if not given) and --retry-on have a code in "
                   "common: leave it out of one of them";
    }
    return NULL;
}

/* The same for the options of locks that several hold. */
static const char *share_fault(const struct args *args)
{
    static char room[64];

    if (args->weight > 0 && args->permits == 0)
        return "--weight has no effect without --permits";
    if (args->weight <= args->permits)
        return NULL;
    snprintf(room, sizeof(room), "--weight %d is more than --permits %d",
        args->weight, args->permits);
    return room;
}

/* Reports two options that exclude each other. */
static bool say_exclusive(const struct args *args)
{
    const struct option *options[2];
    char names[2][32];

    if (!options_exclude(args, &options[0], &options[1]))
        return false;
    for (size_t i = 0; i < 2; i++) {
        char letter[] = {' ', '(', '-', options[i]->letter, ')', '\0'};
        snprintf(names[i], sizeof(names[i]), "--%s%s", options[i]->name,
            options[i]->letter ? letter : "");
    }
    say("%s and %s exclude each other", names[0], names[1]);
    return true;
}

static int check_complete(struct args *args)
{
    static char path[] = "/bin/sh", flag[] = "-c";
    char room[NAME_PASTED + 64];
    const char *fault;

    if (say_action_fault(args))
        return EXIT_USAGE;
    if ((fault = word_fault(args, room, sizeof(room)))) {
        say("%s; write: %.*s", fault, SYNOPSIS(args));
        return EXIT_USAGE;
    }
    if (info_of(args)->runs && (fault = child_fault(args))) {
        say("%s; write: nxlock %s %s %s", fault, args->word, args->pasted,
            args->script ? "-c STRING" : "-- CMD...");
        return EXIT_USAGE;
    }
    if (say_exclusive(args))
        return EXIT_USAGE;
    if ((fault = once_fault(args)) || (fault = share_fault(args))) {
        say("%s", fault);
        return EXIT_USAGE;
    }
    if (names_repeated(args))
        return EXIT_USAGE;
    if (args->script) {
        args->shell[0] = path;
        args->shell[1] = flag;
        args->shell[2] = (char *)args->script; /* exec does not write */
        args->child = args->shell;
    }
    if (args->no_wait)
        args->wait_ms = 0;
    if (args->name)
        names_show(args);
    return 0;
}

static int args_read(struct args *args, enum command command, char **words)
{
    struct walk walk = {.args = args, .at = words};

    *args = (struct args){.command = command,
        .word = words[-1],
        .wait_ms = NXL_FOREVER,
        .ttl_ms = DEFAULT_TTL_MS,
        .busy_code = EXIT_BUSY,
        .run = {.grace_ms = -1},
        .work = {.on_doubt = -1,
            .done_on.has[0] = true,
            .keep_trying_ms = KEEP_TRYING_MS}};
    for (; *walk.at; walk.at++) {
        int code = 0;
        if (walk.options_over || strcmp(*walk.at, "--") != 0)
            code = take_word(&walk);
        else if (command_table[command].runs)
            break;
        else
            walk.options_over = true;
        if (code != 0 || args->help)
            return code;
    }
    if (*walk.at)
        args->child = walk.at + 1;
    return 0;
}

int args_parse(struct args *args, enum command command, char **words)
{
    int code = args_read(args, command, words);

    return code != 0 || args->help ? code : check_complete(args);
}

void args_free(struct args *args)
{
    free(args->url_text);
    args->url_text = NULL;
    if (args->password)
        explicit_bzero(args->password, strlen(args->password));
    free(args->password);
    args->password = NULL;
    free(args->url_path);
    args->url_path = NULL;
}
