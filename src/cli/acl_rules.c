/* SPDX-License-Identifier: MIT */
/*
 * Looks up features of the table of permissions, and writes their rules.
 *
 * Invariant: each rule is one word, in redis-cli and in an ACL file: it has no
 * blank, quote or control character.
 */
#include "cli/acl_rules.h"

#include <stdbool.h>
#include <string.h>

#include "cli/name.h"

const struct acl_feature acl_features[ACL_FEATURE_COUNT] = {
#define FEATURE(number, name, base, purpose, ...)                              \
    [ACL_##number] = {name, base, purpose, {__VA_ARGS__}},
    ACL_FEATURES
#undef FEATURE
};

const struct acl_command acl_commands[] = {
#define COMMAND(name, features) {#name, features},
    ACL_COMMANDS
#undef COMMAND
    {NULL, 0}};

const char *acl_effect_words(enum acl_effect effect)
{
    static const char *const words[ACL_EFFECT_COUNT] = {"works",
#define EFFECT(name, ...) [ACL_##name] = __VA_ARGS__,
        ACL_EFFECTS
#undef EFFECT
    };

    return words[effect];
}

/* Adds what the features are in addition to. */
static unsigned with_bases(unsigned features)
{
    unsigned all = features, before;

    do {
        before = all;
        for (unsigned i = 0; i < ACL_FEATURE_COUNT; i++) {
            if (all & 1U << i)
                all |= acl_features[i].base & ~ACL_ANY;
        }
    } while (all != before);
    return all;
}

unsigned acl_find(const char *word)
{
    for (const struct acl_command *c = acl_commands; c->name; c++) {
        if (strcmp(word, c->name) == 0)
            return with_bases(c->features);
    }
    for (unsigned i = 0; i < ACL_FEATURE_COUNT; i++) {
        if (strcmp(word, acl_features[i].name) == 0)
            return with_bases(1U << i);
    }
    return 0;
}

/* ---------------------------------------------------------------- key patterns
 */

/* A rule cannot contain blanks; '?' matches them. Quotes would have another
 * meaning in redis-cli. */
static void print_safe(const char *text, bool literal, FILE *out)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (literal && strchr("*?[]\\", c))
            putc('\\', out);
        putc(c <= ' ' || c == 0x7f || strchr("'\"", c) ? '?' : c, out);
    }
}

static bool ends_with_star(const char *pattern)
{
    size_t length = strlen(pattern);

    return length > 0 && pattern[length - 1] == '*' &&
           (length < 2 || pattern[length - 2] != '\\');
}

static bool is_literal(const char *pattern)
{
    return pattern[strcspn(pattern, "*?[\\")] == '\0';
}

/* Prints " ~" and a pattern: the prefix and the name, between these words. */
static void print_pattern(const struct acl_names *names, const char *before,
    const char *between, const char *after, FILE *out)
{
    fprintf(out, " ~%s", before);
    print_safe(names->prefix, true, out);
    fputs(between, out);
    print_safe(names->pattern, false, out);
    fputs(after, out);
}

/* Prints the pattern of a key that belongs to NAME: {NAME}suffix, or NAME and
 * the other suffix if NAME has a tag, as a pattern may have. */
static void print_companion(const struct acl_names *names, const char *before,
    const char *between, const char *suffix, const char *if_tagged, FILE *out)
{
    const char *pattern = names->pattern;
    bool tagged = key_has_tag(slice_of(pattern));
    char after[16];

    if (!tagged || !is_literal(pattern)) {
        snprintf(after, sizeof(after), "}%s", suffix);
        print_pattern(names, before, between, after, out);
    }
    /* Otherwise the lock's own pattern matches it. */
    if ((tagged || !is_literal(pattern)) && !ends_with_star(pattern))
        print_pattern(names, "", "", if_tagged, out);
}

/* Prints the pattern of the locks that a command makes beside NAME: see
 * name_own(). */
static void print_own(
    const struct acl_names *names, const char *after, FILE *out)
{
    bool prefixed = names->prefix[0] != '\0';

    if (prefixed || !ends_with_star(names->pattern))
        print_pattern(names, "", prefixed ? "{" : "", after, out);
}

/* With a prefix the pattern of the locks matches these too. */
static void print_own_companions(
    const struct acl_names *names, const char *after, FILE *out)
{
    if (names->prefix[0] == '\0' && !ends_with_star(names->pattern))
        print_pattern(names, "{", "", after, out);
}

static void print_key_rule(
    const char *rule, const struct acl_names *names, FILE *out)
{
    bool prefixed = names->prefix[0] != '\0';

    if (!prefixed && strcmp(names->pattern, "*") == 0)
        fputs(strcmp(rule, ACL_KEY) == 0 ? " ~*" : "", out);
    else if (strcmp(rule, ACL_KEY) == 0)
        print_pattern(names, "", "", "", out);
    else if (strcmp(rule, ACL_COUNTER) == 0)
        print_companion(names, "{", "", ":f", ":f", out);
    else if (strcmp(rule, ACL_RECORD) == 0)
        print_companion(names, "", "{", ":every", ":every", out);
    else if (strcmp(rule, ACL_WORK) == 0)
        print_companion(names, "{", "", ":once", "::once", out);
    else if (strcmp(rule, ACL_LINE_KEY) == 0)
        print_companion(names, "{", "", ":nxl-l", "::nxl-l", out);
    else if (strcmp(rule, ACL_LINE_MARK) == 0)
        print_companion(names, "{", "", ":nxl-w", "::nxl-w", out);
    else if (strcmp(rule, ACL_TRIAL) == 0)
        print_own(names, ":doctor:*", out);
    else if (strcmp(rule, ACL_TRIAL_COMPANIONS) == 0)
        print_own_companions(names, ":doctor:*}:*", out);
    else if (strcmp(rule, ACL_DRILL) == 0)
        print_own(names, ":drill:*", out);
    else if (strcmp(rule, ACL_DRILL_COMPANIONS) == 0)
        print_own_companions(names, ":drill:*}:*", out);
}

/* ------------------------------------------------------------------- the rules
 */

/* Is the rule that of an earlier permission too? */
static bool is_repeated(unsigned features, const struct acl_permission *mine)
{
    for (unsigned i = 0; i < ACL_FEATURE_COUNT; i++) {
        const struct acl_permission *p = acl_features[i].permissions;
        for (; features & 1U << i && p->rule; p++) {
            if (p == mine)
                return false;
            if (strcmp(p->rule, mine->rule) == 0)
                return true;
        }
    }
    return false;
}

void acl_print_rules(
    unsigned features, const struct acl_names *names, FILE *out)
{
    unsigned all = with_bases(features);

    for (int keys = names != NULL; keys >= 0; keys--) {
        for (unsigned i = 0; i < ACL_FEATURE_COUNT; i++) {
            const struct acl_permission *p = acl_features[i].permissions;
            for (; all & 1U << i && p->rule; p++) {
                if ((p->rule[0] == '~') != (keys == 1) || is_repeated(all, p))
                    continue;
                if (keys)
                    print_key_rule(p->rule, names, out);
                else
                    fprintf(out, " %s", p->rule);
            }
        }
    }
}

const char *acl_words(char *out, size_t size, unsigned features)
{
    FILE *stream = fmemopen(out, size, "w");

    out[0] = '\0';
    if (!stream)
        return out;
    acl_print_rules(features, NULL, stream);
    fclose(stream);
    out[size - 1] = '\0';
    return out + (out[0] == ' ');
}
