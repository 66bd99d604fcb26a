/* SPDX-License-Identifier: MIT */
/* Looks up features of the table of permissions, and writes their rules. */
#ifndef NXLOCK_CLI_ACL_RULES_H
#define NXLOCK_CLI_ACL_RULES_H

#include <stdio.h>

#include "cli/acl_table.h"

extern const struct acl_feature acl_features[ACL_FEATURE_COUNT];

/* Commands of nxlock, each with its features. The name NULL ends the list. */
struct acl_command {
    const char *name;
    unsigned features;
};
extern const struct acl_command acl_commands[];

/* "acquire fails: ...": what happens without a permission. */
const char *acl_effect_words(enum acl_effect effect);

/* The features, as bits, of a feature or of a command of that name; 0: there is
 * none. Those that they are in addition to are included. */
unsigned acl_find(const char *word);

/* Which locks: a name, or a pattern of names as the server matches it, below a
 * prefix that is taken literally. */
struct acl_names {
    const char *prefix, *pattern;
};

/* Prints the rules of ACL SETUSER, a space before each: first the key patterns,
 * then the commands, or the commands alone if names is NULL. */
void acl_print_rules(
    unsigned features, const struct acl_names *names, FILE *out);

/* The commands alone, "+set +evalsha", cut to size. Returns out. */
#define ACL_WORDS 512
const char *acl_words(char *out, size_t size, unsigned features);

#endif
