/* SPDX-License-Identifier: MIT */
/*
 * Keeps: nothing is guessed. A line that can be read in two ways is refused
 * with what was understood and what to write instead; what stands after "--"
 * is never looked at.
 */
#include "cli/args.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <nxlock.h>

#include "cli/option.h"
#include "cli/report.h"
#include "cli/secret.h"

/* Where the walk over the words stands. */
struct walk {
    struct args *args;
    char **at;
    bool options_over; /* after "--", where no CMD follows */
};

static const char *usage_of(enum command command)
{
    switch (command) {
    case CMD_RUN:
        return "nxlock run NAME [OPTION...] -- CMD...";
    case CMD_ACQUIRE:
        return "nxlock acquire NAME [OPTION...]";
    case CMD_RENEW:
        return "nxlock renew NAME TOKEN [OPTION...]";
    case CMD_RELEASE:
        return "nxlock release NAME TOKEN [OPTION...]";
    case CMD_WAIT:
        return "nxlock wait NAME [OPTION...]";
    case CMD_LIST:
        return "nxlock list [GLOB] [OPTION...]";
    case CMD_UNLOCK:
        return "nxlock unlock NAME --token TOKEN, or nxlock unlock NAME "
               "--force";
    case CMD_DOCTOR:
        return "nxlock doctor [NAME] [OPTION...]";
    case CMD_STATUS:
    default:
        return "nxlock status NAME [OPTION...]";
    }
}

void args_name(struct args *args, const char *name)
{
    args->name = name;
    name_shown(args->shown, name);
    name_pasted(args->pasted, name);
}

static int unknown_option(const struct args *args, const char *word)
{
    struct nearest nearest;
    const char *bare = word + strspn(word, "-");
    char start[64];
    char shown[DISCREET_ROOM];
    char pasted[NAME_PASTED];
    int length = (int)strcspn(discreet(shown, word), "=");
    bool secret = is_password_letter(word);

    if (secret)
        length = 2;

    snprintf(start, sizeof(start), "%.*s", (int)strcspn(bare, "="), bare);
    nearest_start(&nearest, start);
    option_consider(args->command, &nearest);
    if (nearest.best != NULL) {
        char flag[64];
        size_t i;
        for (i = 0; nearest.best[i] != '\0' && i + 1 < sizeof(flag); i++)
            flag[i] = nearest.best[i] == '_' ? '-' : nearest.best[i];
        flag[i] = '\0';
        say("%s has no option '%.*s'; did you mean '--%s'?", args->word,
            length, shown, flag);
    } else if (args->name == NULL) {
        shown[length] = '\0';
        say("%s has no option '%s'; a NAME that starts with '-' is written "
            "%s", args->word, shown,
            secret ? "--name=NAME" : name_pasted(pasted, shown));
    } else {
        say("%s has no option '%.*s'; 'nxlock %s --help' lists them",
            args->word, length, shown, args->word);
    }
    return EXIT_USAGE;
}

/* The value of the option shown that stands at *at: the rest of its own word,
 * else the next word. NULL after saying that there is none. */
static const char *value_of(struct walk *walk, const char *shown,
    const char *wants, const char *rest)
{
    if (rest != NULL)
        return rest;
    const char *next = walk->at[1];
    if (next == NULL || strcmp(next, "--") == 0) {
        say("%s needs a value: %s %s", shown, shown, wants);
        return NULL;
    }
    walk->at++;
    return next;
}

static int long_option(struct walk *walk)
{
    const char *name = *walk->at + 2;
    size_t length = strcspn(name, "=");
    const char *rest = name[length] == '=' ? name + length + 1 : NULL;
    const struct option *option =
        option_by_name(walk->args->command, name, length);
    char shown[64];

    snprintf(shown, sizeof(shown), "--%.*s", (int)length, name);
    if (option == NULL) {
        const char *param = option_url_parameter(name, length);
        if (param == NULL)
            return unknown_option(walk->args, *walk->at);
        const char *value = value_of(walk, shown, "VALUE", rest);
        if (value == NULL)
            return EXIT_USAGE;
        return option_add_to_query(walk->args, shown, param, value);
    }
    if (option->value == NULL) {
        if (rest != NULL) {
            char word[DISCREET_ROOM];
            say("%s takes no value, but '%s' was given", shown,
                discreet(word, rest));
            return EXIT_USAGE;
        }
        return option->set(walk->args, shown, NULL);
    }
    const char *value = value_of(walk, shown, option->value, rest);
    return value == NULL ? EXIT_USAGE
                         : option->set(walk->args, shown, value);
}

/* "-n", "-w5", "-nv": letters, of which the first that takes a value has the
 * rest of the word. All must be known before any is obeyed. */
static int short_options(struct walk *walk)
{
    const char *word = *walk->at;
    enum command command = walk->args->command;

    for (const char *at = word + 1; *at != '\0'; at++) {
        const struct option *option = option_by_letter(command, *at);
        if (option == NULL)
            return unknown_option(walk->args, word);
        if (option->value != NULL)
            break;
    }
    for (const char *at = word + 1; *at != '\0'; at++) {
        const struct option *option = option_by_letter(command, *at);
        char shown[3] = {'-', *at, '\0'};
        if (option->value == NULL) {
            int code = option->set(walk->args, shown, NULL);
            if (code != 0)
                return code;
            continue;
        }
        const char *value = value_of(
            walk, shown, option->value, at[1] != '\0' ? at + 1 : NULL);
        return value == NULL ? EXIT_USAGE
                             : option->set(walk->args, shown, value);
    }
    return 0;
}

static int plain_word(struct walk *walk)
{
    struct args *args = walk->args;
    const char *word = *walk->at;
    char shown[DISCREET_ROOM];
    char pasted[NAME_PASTED];
    bool wants_token =
        args->command == CMD_RENEW || args->command == CMD_RELEASE;

    discreet(shown, word);

    if (args->name == NULL) {
        args_name(args, word);
    } else if (wants_token && args->token == NULL) {
        args->token = word;
    } else if (args->command == CMD_RUN) {
        if (args->script != NULL)
            say("'%s' is one word too many; STRING is one word, in quotes: "
                "nxlock run %s -c 'CMD...'", shown, args->pasted);
        else
            say("'%s' stands where '--' belongs; write: nxlock run %s -- "
                "%s%s", shown, args->pasted,
                word_pasted(pasted, shown),
                walk->at[1] != NULL ? " ..." : "");
        return EXIT_USAGE;
    } else {
        say("'%s' is one word too many after %s; write: %s",
            shown,
            args->token != NULL ? "NAME and TOKEN" : "NAME",
            usage_of(args->command));
        return EXIT_USAGE;
    }
    return 0;
}

static int one_word(struct walk *walk)
{
    const char *word = *walk->at;

    if (walk->options_over || word[0] != '-' || word[1] == '\0')
        return plain_word(walk);
    if (word[1] == '-')
        return long_option(walk);
    return short_options(walk);
}

static int complete_child(struct args *args)
{
    if (args->script != NULL && args->child != NULL) {
        say("-c STRING and -- CMD... exclude each other; write: nxlock run "
            "%s -c STRING", args->pasted);
        return EXIT_USAGE;
    }
    if (args->script != NULL) {
        static char path[] = "/bin/sh";
        static char flag[] = "-c";
        args->shell[0] = path;
        args->shell[1] = flag;
        args->shell[2] = (char *)args->script; /* exec does not write */
        args->shell[3] = NULL;
        args->child = args->shell;
    }
    if (args->child == NULL) {
        say("'--' and the command to run are missing; write: nxlock run %s "
            "-- CMD...", args->pasted);
        return EXIT_USAGE;
    }
    if (args->child[0] == NULL) {
        say("no command stands after '--'; write: nxlock run %s -- CMD...",
            args->pasted);
        return EXIT_USAGE;
    }
    return 0;
}

/* The name and, where one is wanted, the token. */
static int complete_words(const struct args *args)
{
    const char *usage = usage_of(args->command);
    bool wants_token =
        args->command == CMD_RENEW || args->command == CMD_RELEASE;

    if (args->name == NULL) {
        say("NAME, the lock, is missing; write: %s (--name=NAME if it starts "
            "with '-')", usage);
        return EXIT_USAGE;
    }
    if (args->name[0] == '\0') {
        say("NAME, the lock, is empty; write: %s", usage);
        return EXIT_USAGE;
    }
    if (!wants_token)
        return 0;
    /* A token is not repeated: it is a key to the lock. */
    if (is_token(args->name) &&
        (args->token == NULL || !is_token(args->token))) {
        say("%s; write: %s", args->token != NULL
                ? "NAME and TOKEN are swapped"
                : "a token stands where NAME belongs", usage);
        return EXIT_USAGE;
    }
    if (args->token == NULL) {
        say("TOKEN, the word that 'nxlock acquire %s' printed, is missing; "
            "write: %s", args->pasted, usage);
        return EXIT_USAGE;
    }
    return 0;
}

/* unlock: one of --token and --force. */
static int complete_unlock(const struct args *args)
{
    if ((args->token != NULL) != args->force)
        return 0;
    say("%s; write: nxlock unlock %s %s", args->force
            ? "--token and --force exclude each other"
            : "unlock removes what it is told to, by --token, or whatever "
              "stands there, by --force",
        args->pasted, args->force ? "--force" : "--token TOKEN");
    return EXIT_USAGE;
}

static int complete(struct args *args)
{
    bool may_do_without =
        args->command == CMD_LIST || args->command == CMD_DOCTOR;
    int code = may_do_without && args->name == NULL ? 0 : complete_words(args);

    if (code == 0 && args->command == CMD_UNLOCK)
        code = complete_unlock(args);
    if (code == 0 && args->command == CMD_RUN)
        code = complete_child(args);
    if (code == 0 && args->once && args->waits) {
        say("-n (do not wait) and -w (wait) exclude each other");
        code = EXIT_USAGE;
    }
    if (code == 0 && args->run.retry_failed && args->run.every_ms == 0 &&
        args->run.at_least_ms == 0) {
        say("--retry-failed is for --every and --at-least, and neither is "
            "given");
        code = EXIT_USAGE;
    }
    return code;
}

int args_parse(struct args *args, enum command command, char **words)
{
    struct walk walk = {args, words, false};

    memset(args, 0, sizeof(*args));
    args->command = command;
    args->word = words[-1];
    args->wait_ms = NXL_FOREVER;
    args->ttl_ms = DEFAULT_TTL_MS;
    args->busy_code = EXIT_BUSY;
    args->run.grace_ms = -1;
    args->run.on_lost = SIGTERM;
    for (; *walk.at != NULL; walk.at++) {
        if (!walk.options_over && strcmp(*walk.at, "--") == 0) {
            if (command == CMD_RUN) {
                args->child = walk.at + 1;
                break;
            }
            walk.options_over = true;
            continue;
        }
        int code = one_word(&walk);
        if (code != 0)
            return code;
        if (args->help)
            return 0;
    }
    return complete(args);
}

void args_free(struct args *args)
{
    free(args->query);
    args->query = NULL;
}
