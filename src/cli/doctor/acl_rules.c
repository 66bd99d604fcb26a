/* SPDX-License-Identifier: MIT */
/* Writes the commands that features of the table of permissions need. */
#include "cli/doctor/acl_rules.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct acl_feature acl_features[ACL_FEATURE_COUNT] = {
#define FEATURE(number, name, base, purpose, ...)                              \
    [ACL_##number] = {name, base, purpose, {__VA_ARGS__}},
    ACL_FEATURES
#undef FEATURE
};

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

const char *acl_words(char *out, size_t size, unsigned features)
{
    unsigned all = with_bases(features);
    size_t used = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < ACL_FEATURE_COUNT; i++) {
        const struct acl_permission *p = acl_features[i].permissions;
        for (; all & 1U << i && p->rule && used < size; p++) {
            if (p->rule[0] == '+' && !is_repeated(all, p))
                used += (size_t)snprintf(
                    out + used, size - used, "%s%s", used ? " " : "", p->rule);
        }
    }
    return out;
}
