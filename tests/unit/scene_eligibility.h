/* SPDX-License-Identifier: MIT */
/*
 * The machine "eligibility" of scenes (unit/scene.h): may a server vote, and if
 * not, why and until when. Its clock began long before the servers.
 *
 * Steps: what the server says of itself (run:bbbb role:slave replid:2:1
 * uptime:11 primary:40 named:40 slots:16384, not-said, no-aof, negative: its
 * clock was set back; ahead:6 ms its clock, mended) and what the client is set
 * to (max-ttl:1000:10000 with the drift, longer:600000, durable, failover,
 * sentinels, sole, unguarded) are known at the next judge. duplicate: another
 * one of the list is the same. name:ASKED:SINCE (and :moves from another one)
 * is what a majority of the Sentinels says, in s; way:ASKED:SINCE, whether the
 * server gives way to the one that they name. former: the former primary says
 * what is known. lengthen: for the longer lease.
 *
 * Words: votes, or why not, and until when, in s: restarted=61.
 */
#ifndef NXLOCK_TESTS_SCENE_ELIGIBILITY_H
#define NXLOCK_TESTS_SCENE_ELIGIBILITY_H

#include "client/ineligible.h"
#include "core/confirm.h"
#include "core/weigh.h"
#include "unit/scene.h"

#define LONG_AGO (UINT64_C(1000000) * NS_PER_S)

static struct {
    struct eligibility e;
    struct eligibility_terms terms;
    struct server_info info;
    bool duplicate;
    char run_id[48], role[16], replid[8], replid2[8];
} voter;

static uint64_t voter_now(void)
{
    return LONG_AGO + (scene.now - T0);
}

/* A step's time in s. */
static uint64_t voter_time(const char *text)
{
    return LONG_AGO + (uint64_t)(strtoll(text, NULL, 10) * (int64_t)NS_PER_S);
}

static void add_seconds(const char *name, uint64_t at)
{
    if (at == 0)
        add("%s=none", name);
    else
        add("%s=%lld", name, (long long)(at - LONG_AGO) / (long long)NS_PER_S);
}

static const char *voter_words(uint64_t now)
{
    static struct text text;
    text_clear(&text);
    ineligible_explain(&voter.e, now, &text);
    return text.data;
}

static void add_judgement(void)
{
    uint64_t now = voter_now(), at = voter.e.votes_at;
    enum fault fault = eligibility_fault(&voter.e, now);
    assert_int_equal(eligibility_votes(&voter.e, now), fault == FAULT_NONE);
    if (fault == FAULT_NONE) {
        add("votes");
    } else if (fault == FAULT_RESTARTED || fault == FAULT_PROMOTED) {
        add_seconds(fault_name(fault), at);
        assert_int_equal(eligibility_fault(&voter.e, at - 1), fault);
        assert_int_equal(eligibility_fault(&voter.e, at), FAULT_NONE);
        assert_false(eligibility_votes(&voter.e, at - 1));
        assert_true(eligibility_votes(&voter.e, at));
        assert_string_equal(voter_words(at), "");
    } else {
        add("%s", fault_name(fault));
        assert_false(eligibility_votes(&voter.e, NEVER));
    }
}

static void voter_start(void)
{
    memset(&voter, 0, sizeof(voter));
    strcpy(voter.run_id, "aaaa");
    strcpy(voter.role, "master");
    strcpy(voter.replid, "1");
    voter.terms = (struct eligibility_terms){.max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .several_servers = true,
        .guard = true};
    voter.info = (struct server_info){.run_id = voter.run_id,
        .role = voter.role,
        .replid = voter.replid,
        .replid2 = voter.replid2,
        .uptime_s = 5000,
        .clock_low_ns = (int64_t)LONG_AGO,
        .clock_high_ns = (int64_t)LONG_AGO};
}

/* ------------------------------------------------------------------ inputs */

static bool says_of_itself(const char *word, const char *argument)
{
    struct server_info *info = &voter.info;
    int64_t n = argument ? strtoll(argument, NULL, 10) : 0;
    const char *more = argument ? strchr(argument, ':') : NULL;
    if (!strcmp(word, "run")) {
        snprintf(voter.run_id, sizeof(voter.run_id), "%s", argument);
    } else if (!strcmp(word, "role")) {
        snprintf(voter.role, sizeof(voter.role), "%s", argument);
    } else if (!strcmp(word, "replid")) {
        snprintf(voter.replid, sizeof(voter.replid), "%.*s",
            (int)strcspn(argument, ":"), argument);
        snprintf(
            voter.replid2, sizeof(voter.replid2), "%s", more ? more + 1 : "");
    } else if (!strcmp(word, "no-replid")) {
        info->replid = NULL;
    } else if (!strcmp(word, "uptime")) {
        info->uptime_s = n;
    } else if (!strcmp(word, "primary")) {
        info->primary_s = n;
    } else if (!strcmp(word, "named")) {
        info->named_s = n;
    } else if (!strcmp(word, "slots")) {
        info->cluster = true;
        info->slots = (int)n;
    } else if (!strcmp(word, "not-said")) {
        info->refused = true;
        info->uptime_s = -1;
    } else if (!strcmp(word, "no-aof")) {
        info->no_aof = true;
    } else if (!strcmp(word, "negative")) {
        info->uptime_was_negative = true;
        info->uptime_s = 0;
    } else if (!strcmp(word, "ahead")) {
        info->clock_high_ns += n * (int64_t)NS_PER_MS;
    } else if (!strcmp(word, "mended")) {
        info->refused = info->no_aof = info->cluster = false;
        info->uptime_s = 5000;
        strcpy(voter.role, "master");
        voter.duplicate = voter.terms.durable = false;
    } else {
        return false;
    }
    return true;
}

static bool set_to(const char *word, const char *argument)
{
    struct eligibility_terms *terms = &voter.terms;
    const char *more = argument ? strchr(argument, ':') : NULL;
    uint32_t n = argument ? (uint32_t)strtoul(argument, NULL, 10) : 0;
    if (!strcmp(word, "max-ttl")) {
        terms->max_ttl_ms = n;
        terms->drift_ppm = (uint32_t)strtoul(more + 1, NULL, 10);
    } else if (!strcmp(word, "longer")) {
        terms->longer_ttl_ms = n;
    } else if (!strcmp(word, "durable")) {
        terms->durable = true;
    } else if (!strcmp(word, "failover")) {
        terms->failover = true;
    } else if (!strcmp(word, "sentinels")) {
        terms->failover = terms->sentinels = true;
    } else if (!strcmp(word, "sole")) {
        terms->several_servers = false;
    } else if (!strcmp(word, "unguarded")) {
        terms->guard = false;
    } else if (!strcmp(word, "duplicate")) {
        voter.duplicate = true;
    } else {
        return false;
    }
    return true;
}

static struct sentinel_view voter_view(const char *argument)
{
    return (struct sentinel_view){.asked_at = voter_time(argument),
        .since = voter_time(strchr(argument, ':') + 1)};
}

static bool voter_call(const char *word, const char *argument)
{
    if (says_of_itself(word, argument) || set_to(word, argument))
        return true;
    if (!strcmp(word, "judge")) {
        eligibility_judge(
            &voter.e, &voter.info, &voter.terms, voter.duplicate, voter_now());
        add_judgement();
    } else if (!strcmp(word, "lengthen")) {
        eligibility_lengthen(&voter.e, &voter.terms, voter_now());
        add_judgement();
    } else if (!strcmp(word, "former")) {
        eligibility_hear_former(&voter.e, &voter.info);
    } else if (!strcmp(word, "name")) {
        const struct sentinel_view named = voter_view(argument);
        eligibility_named(&voter.e, &named, strstr(argument, ":moves") != NULL);
    } else if (!strcmp(word, "way")) { /* does it give way to that one? */
        const struct sentinel_view named = voter_view(argument);
        add("way=%d", eligibility_gives_way_to(&voter.e, &named));
    } else {
        return false;
    }
    return true;
}

static bool voter_show(const char *what)
{
    const struct outcome extended = {
        .kind = OUTCOME_MINE, .sent_at = voter_now()};
    const struct eligibility *e = &voter.e;
    struct outcome instead;
    uint64_t now = voter_now();
    if (!strcmp(what, "words"))
        add("\"%s\"", voter_words(now));
    else if (!strcmp(what, "votes-at"))
        add_seconds("votes-at", e->votes_at);
    else if (!strcmp(what, "extend"))
        add("extend=%d",
            weigh_outcome(e, VERB_EXTEND, &extended, now, now, &instead));
    else if (!strcmp(what, "unfit"))
        add("unfit=%d", eligibility_unfit(e));
    else if (!strcmp(what, "failovers"))
        add("failovers=%u", e->failovers);
    else if (!strcmp(what, "quarantine"))
        add("quarantine=%llu",
            (unsigned long long)(eligibility_quarantine(e, now) / NS_PER_S));
    else if (!strcmp(what, "coordinated"))
        add("coordinated=%lld",
            (long long)eligibility_coordinated_s(e, &voter.terms, now));
    else if (!strcmp(what, "named"))
        add("named=%lld", (long long)eligibility_named_s(e, now));
    else if (!strcmp(what, "confirmed"))
        add_seconds("confirmed", e->confirmed_at);
    else if (!strcmp(what, "changed"))
        add_seconds("changed", e->primary_changed_at);
    else if (!strcmp(what, "recheck"))
        add("recheck=%d", eligibility_recheck(&voter.e, now));
    else
        return false;
    return true;
}

static const char *voter_text(void)
{
    return voter_words(voter_now());
}

static const struct scene_machine eligibility_machine = {.name = "eligibility",
    .start = voter_start,
    .call = voter_call,
    .show = voter_show,
    .text = voter_text};

#endif
