/* SPDX-License-Identifier: MIT */
/*
 * The table of least permissions, and a user who has exactly those of one
 * feature, or all but one of them.
 */
#ifndef NXLOCK_TESTS_ACL_RIG_H
#define NXLOCK_TESTS_ACL_RIG_H

#include "api/private.h"
#include "docs/acl_table.h"
#include "live/live_rig.h"

#define NAME "job"
#define TTL_MS 5000
#define RULE_ROOM 64
#define ODD ACL_EFFECT_COUNT /* something that the table has no words for */

static const struct acl_feature features[ACL_FEATURE_COUNT] = {
#define FEATURE(number, name, base, purpose, ...)                              \
    [ACL_##number] = {name, base, purpose, {__VA_ARGS__}},
    ACL_FEATURES
#undef FEATURE
};

static const char *const effects[ACL_EFFECT_COUNT] = {"works",
#define EFFECT(name, words) words,
    ACL_EFFECTS
#undef EFFECT
};

/* ----------------------------------------------------------------- the user */

/* A rule of the table for this test's lock: "~{NAME}:f" is "~{job}:f". */
static inline const char *rule_here(const char *rule, char room[RULE_ROOM])
{
    const char *at = strstr(rule, "NAME");

    if (!at)
        return rule;
    snprintf(room, RULE_ROOM, "%.*s" NAME "%s", (int)(at - rule), rule,
        at + strlen("NAME"));
    return room;
}

static inline void grant(const char *rule)
{
    char room[RULE_ROOM];

    redis_run(&server, "ACL", "SETUSER", "alice", rule_here(rule, room), NULL);
}

/* Gives alice what the feature needs, without that rule (NULL: all of it). */
static inline void grant_feature(unsigned feature, const char *without)
{
    const struct acl_permission *p = features[feature].permissions;

    for (unsigned i = 0; i < ACL_FEATURE_COUNT; i++) {
        if (features[feature].base & 1U << i)
            grant_feature(i, without);
    }
    if (features[feature].base & ACL_ANY)
        grant_feature(ACL_LOCK, without);
    for (; p->rule; p++) {
        if (!without || strcmp(p->rule, without) != 0)
            grant(p->rule);
    }
}

/* Nothing is left of the cell before: no key, no script, no permission. */
static inline void set_up(unsigned feature, const char *without)
{
    redis_run(&server, "FLUSHALL", NULL);
    redis_run(&server, "SCRIPT", "FLUSH", NULL);
    redis_run(&server, "ACL", "SETUSER", "alice", "reset", "on", ">Zqx7", NULL);
    grant_feature(feature, without);
    redis_run(&server, "ACL", "LOG", "RESET", NULL);
    redis_run(&server, "CONFIG", "RESETSTAT", NULL);
}

static inline nxl_client *alice(const char *parameters)
{
    char url[512];

    snprintf(url, sizeof(url), "%s://alice:Zqx7@127.0.0.1:%u/?%s",
        server.scheme, (unsigned)server.port, parameters);
    return client_at(url);
}

/* Did the server refuse alice this command or key? */
static inline bool logged(const char *object)
{
    redisReply *log = redis_command(&server, "ACL", "LOG", "100", NULL);
    bool found = false;

    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *entry = log->element[i];
        for (size_t k = 0; k + 1 < entry->elements; k += 2)
            if (strcmp(entry->element[k]->str, "object") == 0)
                found |= strcmp(entry->element[k + 1]->str, object) == 0;
    }
    freeReplyObject(log);
    return found;
}

/* The i-th word of each command is up to the first NULL. */
static inline int ask(nxl_client *client, const char *const *words)
{
    struct answer *answer;
    size_t count = 0;

    while (words[count])
        count++;
    int rc = client_ask(client, 0, count, words, NULL, &answer);
    answer_free(answer);
    return rc;
}

/* Asks all of them; the effect is that of a refusal. */
static inline enum acl_effect asks(nxl_client *client,
    const char *const (*questions)[8], enum acl_effect refused)
{
    for (; (*questions)[0]; questions++) {
        int rc = ask(client, *questions);
        if (rc != NXL_OK)
            return rc == NXL_E_DENIED ? refused : ODD;
    }
    return ACL_WORKS;
}

#endif
