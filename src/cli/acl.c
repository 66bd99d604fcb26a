/* SPDX-License-Identifier: MIT */
/*
 * The command acl: prints the ACL SETUSER line with the permissions that some
 * features need, or lists features and permissions.
 *
 * Invariant: no server is contacted, and no password is printed. Which locks
 * the line is for is never guessed.
 */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/acl_rules.h"
#include "cli/connect.h"
#include "cli/report.h"
#include "cli/secret.h"
#include "cli/urls.h"

#define USER_ROOM 256
#define PREFIX_ROOM 1025

/* What the URL says about the user and the keys. */
struct target {
    char user[USER_ROOM];
    char prefix[PREFIX_ROOM];
    unsigned features; /* that the URL needs */
};

/* ----------------------------------------------------------------- the lists
 */

/* Prints " a, b": the names of features. */
static void print_names(unsigned features, const char *before)
{
    for (unsigned i = 0; i < ACL_FEATURE_COUNT; i++) {
        if (!(features & 1U << i))
            continue;
        printf("%s%s", before, acl_features[i].name);
        before = ", ";
    }
}

static void print_feature(const struct acl_feature *feature, bool permissions)
{
    printf("  %-10s  %s", feature->name, feature->purpose);
    if (feature->base) {
        fputs(" (in addition to ", stdout);
        print_names(feature->base, "");
        fputs(feature->base & ACL_ANY ? "any)" : ")", stdout);
    }
    putchar('\n');
    const struct acl_permission *p = feature->permissions;
    for (; permissions && p->rule; p++)
        printf("      %-15s  without it: %s\n", p->rule,
            acl_effect_words(p->missing));
}

/* Prints one line for each of the features and, without features, for each
 * command too; permissions: also what each of them is for. */
static void print_list(unsigned features, bool permissions)
{
    unsigned shown = features ? features : ~0U;

    if (!features) {
        puts("commands:");
        for (const struct acl_command *c = acl_commands; c->name; c++) {
            printf("  %-10s  ", c->name);
            print_names(c->features, "");
            putchar('\n');
        }
        puts("features:");
    }
    for (unsigned i = 0; i < ACL_FEATURE_COUNT; i++) {
        if (shown & 1U << i)
            print_feature(&acl_features[i], permissions);
    }
}

/* ------------------------------------------------------------------ the line
 */

/* A feature or command that is written like word, or NULL. */
static const char *nearest_feature(const char *word)
{
    struct nearest nearest;

    nearest_start(&nearest, word);
    for (const struct acl_command *c = acl_commands; c->name; c++)
        nearest_consider(&nearest, c->name);
    for (unsigned i = 0; i < ACL_FEATURE_COUNT; i++)
        nearest_consider(&nearest, acl_features[i].name);
    return nearest.best;
}

static int find_features(const struct args *args, unsigned *features)
{
    char shown[DISCREET_ROOM];

    for (size_t i = 0; i < args->feature_count; i++) {
        const char *word = args->features[i];
        unsigned found = acl_find(word);
        const char *near = found ? NULL : nearest_feature(word);
        *features |= found;
        if (found)
            continue;
        discreet(shown, word);
        if (near)
            say("there is no feature '%s'; did you mean '%s'?", shown, near);
        else
            say("there is no feature '%s'; 'nxlock acl' lists them, and names "
                "of locks are written --name '%s'",
                shown, shown);
        return EXIT_USAGE;
    }
    return 0;
}

static void read_url(const char *url, struct target *target)
{
    char address[DISCREET_ROOM * 4];
    const char *db = strrchr(url_address(address, sizeof(address), url), '/');

    if (!url_text(url, "user", target->user, sizeof(target->user)))
        snprintf(target->user, sizeof(target->user), "USER");
    if (!url_text(url, "prefix", target->prefix, sizeof(target->prefix)))
        target->prefix[0] = '\0';
    if (strstr(url, "scheme=timestamp"))
        target->features |= acl_find("timestamp");
    if (strncmp(url, "unix:", 5) == 0 ? strstr(address, "?db=") != NULL
                                      : db && strcmp(db, "/0") != 0)
        target->features |= ACL_BIT(DB);
}

/* Takes from the URLs what decides about the line: the user, the prefix, and
 * what the connection needs. One line cannot be for two users or prefixes. */
static int read_urls(const struct args *args, struct target *target)
{
    struct url_list list;
    const char *different = NULL;

    if (!connect_urls(args, &list)) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    for (size_t i = 0; i < list.count; i++) {
        struct target first = *target;
        read_url(list.urls[i], target);
        if (i > 0 && strcmp(first.user, target->user) != 0)
            different = "users";
        else if (i > 0 && strcmp(first.prefix, target->prefix) != 0)
            different = "prefixes";
    }
    if (list.count > 1)
        target->features |= ACL_BIT(INFO);
    url_list_free(&list);
    if (!different)
        return 0;
    say("the URLs have different %s, and the line is for one: run nxlock acl "
        "for each of them, with one -u",
        different);
    return EXIT_USAGE;
}

/* A name that redis-cli would take for several words, or for none. */
static bool is_odd_user(const char *user)
{
    return user[0] == '\0' || user[strcspn(user, " \t\r\n'\"\\")] != '\0';
}

static int print_line(const struct args *args, unsigned features)
{
    struct target target = {.features = 0};
    int code = read_urls(args, &target);

    if (code != 0)
        return code;
    if (is_odd_user(target.user)) {
        say("a user of the server cannot be called '%s'", target.user);
        return EXIT_USAGE;
    }
    struct acl_names names = {target.prefix, args->name};
    printf("ACL SETUSER %s", target.user);
    acl_print_rules(features | target.features, &names, stdout);
    putchar('\n');
    if (isatty(STDOUT_FILENO))
        say("the line does not enable the user; a new one also needs: ACL "
            "SETUSER %s on >PASSWORD",
            target.user);
    return 0;
}

int subcommand_acl(const struct args *args)
{
    unsigned features = 0;
    int code = find_features(args, &features);

    if (code != 0)
        return code;
    if (features == 0 || args->verbose) {
        print_list(features, args->verbose);
    } else if (!args->name) {
        say("--name is missing: which locks? write a name, a pattern such as "
            "--name 'job:*', or --name '*' for all keys");
        return EXIT_USAGE;
    } else {
        code = print_line(args, features);
    }
    if (report_output() != EXIT_DONE)
        return EXIT_INTERNAL;
    return code;
}
