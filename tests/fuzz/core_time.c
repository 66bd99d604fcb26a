/* SPDX-License-Identifier: MIT */
/*
 * A lease that is kept alive, and the standing of a server. Keeps: a deadline
 * only moves on; the loss comes before it and not long before; renewals are
 * not asked for faster than they should be; no vote comes before its time,
 * whatever a server tells of itself.
 */
#include <string.h>

#include "client/ineligible.h"
#include "core/schedule.h"
#include "fuzz/fuzz.h"
#include "fuzz/steps.h"

/* ----------------------------------------------------------------- holding */

struct hold {
    struct schedule h;
    uint64_t lease;
    uint64_t not_before; /* no renewal is due until then */
    bool asked;
};

static void check_due(const struct hold *k, uint64_t now, uint64_t timeout_ns)
{
    const struct schedule *h = &k->h;
    enum schedule_due due = schedule_due(h, now);
    uint64_t most = 500 * NS_PER_MS;
    CHECK(now < h->deadline || due == SCHEDULE_LOST);
    CHECK(due != SCHEDULE_LOST || now >= h->deadline ||
          h->deadline - now <= most);
    CHECK(due != SCHEDULE_RENEW || (!k->asked && now >= k->not_before));
    /* It is looked at again in time. */
    CHECK(schedule_wake(h) <= h->deadline);
    CHECK(due != SCHEDULE_WAIT || schedule_wake(h) > now);
    CHECK(schedule_answer_by(h, timeout_ns, now) <= later(h->deadline, now));
    uint64_t ttl = ms_to_ns(schedule_ttl_ms(h, now));
    CHECK(ttl <= k->lease);
    CHECK(h->terms.ends == NEVER || ttl == 0 ||
          deadline_after(now, ttl) <= h->terms.ends);
}

bool play_holding(struct steps *s)
{
    struct hold k = {.asked = false};
    struct schedule_terms terms = {.ttl_ms = step_ttl_ms(s)};
    bool renewed = false;

    k.lease = ms_to_ns(terms.ttl_ms);
    if (s->now > NEVER / 2) /* no clock comes near, and no sum runs over */
        s->now = NEVER / 2;
    terms.deadline = deadline_after(s->now, step_span(s) % (k.lease + 1));
    terms.ends = later(step_time(s), s->now);
    terms.seed = step_byte(s);
    schedule_start(&k.h, &terms, s->now);
    /* Renewals may come together, by up to a thousandth earlier. */
    uint64_t left = deadline_left(terms.deadline, s->now);
    k.not_before = deadline_after(s->now, earlier(k.lease / 3, left / 2) / 5);
    k.not_before = deadline_left(k.not_before, k.lease / 1000 + 100);
    while (s->left > 0) {
        uint64_t before = k.h.deadline, timeout_ns = step_span(s);
        check_due(&k, s->now, timeout_ns);
        switch (step_byte(s) % 6) {
        case 0:
        case 1:
            if (schedule_due(&k.h, s->now) == SCHEDULE_RENEW) {
                schedule_renewal_begun(&k.h, s->now);
                k.asked = true;
            }
            break;
        case 2:
            if (schedule_wake(&k.h) > s->now)
                s->now = schedule_wake(&k.h);
            break;
        case 3:
            step_pass(s, step_span(s) % k.lease);
            break;
        case 4: /* by a renewal, or by its owner */
            if (!k.asked || step_byte(s) & 1) {
                schedule_extended(&k.h, step_time(s) % (NEVER / 4 * 3), s->now);
                k.not_before = k.asked ? k.not_before : 0;
                break;
            }
            schedule_renewed(&k.h, step_time(s) % (NEVER / 4 * 3), s->now);
            renewed = true;
            k.asked = false;
            k.not_before = 0; /* counted from when it was asked */
            break;
        default:
            if (!k.asked)
                break;
            schedule_failed(&k.h, s->now);
            k.asked = false;
            k.not_before = deadline_after(
                s->now, earlier(k.lease / 10, NS_PER_S) / 100 * 50);
            k.not_before = deadline_left(k.not_before, k.lease / 1000);
            break;
        }
        CHECK(k.h.deadline >= before);
    }
    check_due(&k, s->now, NEVER);
    return renewed;
}

/* ---------------------------------------------------------------- standing */

struct server {
    struct eligibility eligibility;
    char run_id[LINEAGE_ID]; /* the latest that was told */
    bool was_replica;
    uint64_t votes_at; /* not before, by the letter */
};

static uint64_t needed_s(const struct eligibility_terms *terms)
{
    uint64_t ns =
        terms->max_ttl_ms * (NS_PER_MS + terms->drift_ppm) + 2 * NS_PER_MS;
    return (ns + NS_PER_S - 1) / NS_PER_S;
}

/* What is told now bars it until then. */
static uint64_t barred_until(const struct server *k,
    const struct server_info *info, const struct eligibility_terms *terms,
    bool changed, uint64_t now)
{
    uint64_t needed = needed_s(terms);
    uint64_t age = info->uptime_s > 1 ? (uint64_t)info->uptime_s - 1 : 0;
    if (!terms->guard)
        return 0;
    if (k->was_replica && k->eligibility.reason != REASON_REPLICA)
        return deadline_after(now, needed * NS_PER_S);
    if (terms->durable)
        return 0;
    if (changed)
        return deadline_after(now, needed * NS_PER_S);
    if (info->uptime_s < 0 || age >= needed)
        return 0;
    return deadline_after(now, (needed - age) * NS_PER_S);
}

static void judge(
    struct server *k, struct steps *s, const struct eligibility_terms *terms)
{
    static const char *const roles[] = {
        "master", "slave", "replica", "", "sentinel", "x", "master", "master"};
    char id[64] = "";
    unsigned what = step_byte(s);
    size_t len = what & 1 ? 40 : step_byte(s) % sizeof(id);
    memset(id, 'a' + step_byte(s) % 3, len);
    id[len] = '\0';
    struct server_info info = {.run_id = id,
        .role = roles[step_byte(s) % 8],
        .uptime_s = (int64_t)step_span(s) - 1,
        .refused = (what & 0x70) == 0x10,
        .no_aof = what & 2};
    bool duplicate = (what & 0x8c) == 0x84;
    bool changed =
        id[0] != '\0' && k->run_id[0] != '\0' && strcmp(id, k->run_id) != 0;
    eligibility_judge(&k->eligibility, &info, terms, duplicate, s->now);
    k->votes_at =
        later(k->votes_at, barred_until(k, &info, terms, changed, s->now));
    k->was_replica = k->eligibility.reason == REASON_REPLICA;
    if (id[0] != '\0') {
        id[LINEAGE_ID - 1] = '\0';
        memcpy(k->run_id, id, sizeof(k->run_id));
    }
    CHECK(memchr(k->eligibility.lineage.run_id, '\0', LINEAGE_ID) != NULL);
    CHECK(k->eligibility.reason == REASON_NONE ||
          !eligibility_votes(&k->eligibility, NEVER));
    CHECK(!duplicate || k->eligibility.reason == REASON_DUPLICATE);
}

static bool check_vote(const struct server *k, uint64_t now)
{
    struct text words;
    bool votes = eligibility_votes(&k->eligibility, now);
    text_clear(&words);
    ineligible_explain(&k->eligibility, now, &words);
    CHECK(!votes || now >= k->votes_at);
    CHECK(votes == (eligibility_fault(&k->eligibility, now) == FAULT_NONE));
    CHECK(votes == (words.len == 0));
    CHECK(!votes || k->eligibility.reason == REASON_NONE);
    return votes;
}

bool play_eligibility(struct steps *s)
{
    struct server k = {.was_replica = false};
    unsigned byte = step_byte(s);
    struct eligibility_terms terms = {.max_ttl_ms = step_ttl_ms(s),
        .drift_ppm = step_byte(s) * 1960U + 1,
        .guard = !(byte & 1),
        .durable = (byte & 6) == 6};
    bool voted = false;

    while (s->left > 0) {
        uint64_t before = k.eligibility.votes_at;
        if (step_byte(s) & 1)
            judge(&k, s, &terms);
        else
            step_pass(s, step_span(s));
        CHECK(k.eligibility.votes_at >= before);
        voted = check_vote(&k, s->now) || voted;
    }
    return voted;
}
