/* SPDX-License-Identifier: MIT */
/*
 * What an answer, or a message, counts for: each kind of them from each kind of
 * server.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "core/weigh.h"

#define S NS_PER_S
#define T0 (UINT64_C(1000000) * S)
#define NEEDED 61 /* seconds: the longest lease and its drift, rounded up */

/* What is known of a server. */
enum standing {
    VOTES,
    QUARANTINE,
    REPLICA,
    DUPLICATE,
    UNFIT,
    NO_INFO,
    NOT_DURABLE,
    STANDINGS
};

static const struct {
    struct server_info info;
    bool duplicate;
    enum fault fault; /* that counts instead of its answers */
} servers[STANDINGS] = {
    [VOTES] = {.info = {.run_id = "a", .role = "master", .uptime_s = 5000}},
    [QUARANTINE] = {{.run_id = "a", .role = "master", .uptime_s = 1},
        .fault = FAULT_RESTARTED},
    [REPLICA] = {{.run_id = "a", .role = "slave", .uptime_s = 5000},
        .fault = FAULT_NOT_PRIMARY},
    [DUPLICATE] = {{.run_id = "a", .role = "master", .uptime_s = 5000}, true,
        FAULT_DUPLICATE},
    [UNFIT] = {{.run_id = "a", .role = "active-replica", .uptime_s = 5000},
        .fault = FAULT_ACTIVE_REPLICA},
    [NO_INFO] = {{.run_id = "", .role = "", .uptime_s = -1, .refused = true},
        .fault = FAULT_NO_INFO},
    [NOT_DURABLE] =
        {{.run_id = "a", .role = "master", .uptime_s = 5000, .no_aof = true},
            .fault = FAULT_NOT_DURABLE},
};

/* What the client is. */
enum client { SEVERAL, GUARDED, SINGLE, CLIENTS };

static struct eligibility server_of(enum client client, enum standing standing)
{
    const struct eligibility_terms terms = {.max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .several_servers = client == SEVERAL,
        .guard = client != SINGLE,
        .durable = standing == NOT_DURABLE};
    struct eligibility e = {.reason = REASON_NONE};
    eligibility_judge(
        &e, &servers[standing].info, &terms, servers[standing].duplicate, T0);
    return e;
}

static void assert_instead(const struct outcome *instead,
    enum standing standing, bool unsure, uint64_t sent_at)
{
    assert_int_equal(instead->kind, OUTCOME_FAULT);
    assert_int_equal(instead->fault, servers[standing].fault);
    assert_int_equal(instead->unsure, unsure);
    assert_int_equal(instead->left_ms, LEFT_UNKNOWN);
    assert_true(instead->sent_at == sent_at);
}

/* A letter for each standing: y, it counts. */
static const struct {
    const char *what;
    enum verb_kind verb;
    enum outcome_kind kind;
    const char *counts; /* where the server must have a vote */
    const char *single; /* where it need not */
} answers[] = {
    {"grant", VERB_ACQUIRE, OUTCOME_GRANTED, "ynnnnnn", "yyyynyn"},
    {"grant of work", VERB_BEGIN, OUTCOME_GRANTED, "ynnnnnn", "yyyynyn"},
    {"grant in line", VERB_STAY, OUTCOME_GRANTED, "ynnnnnn", "yyyynyn"},
    {"busy", VERB_ACQUIRE, OUTCOME_BUSY, "yyyyyyy", "yyyyyyy"},
    {"fault", VERB_ACQUIRE, OUTCOME_FAULT, "yyyyyyy", "yyyyyyy"},
    {"recorded", VERB_BEGIN, OUTCOME_RECORDED, "yyyyyyy", "yyyyyyy"},
    {"adopt", VERB_INSPECT, OUTCOME_MINE, "ynnnnnn", "yyyynyn"},
    {"adopt: not held", VERB_INSPECT, OUTCOME_NOT_MINE, "yyyyyyy", "yyyyyyy"},
    {"extend", VERB_EXTEND, OUTCOME_MINE, "yynnnnn", "yyyynyn"},
    {"extend: not held", VERB_EXTEND, OUTCOME_NOT_MINE, "yyyyyyy", "yyyyyyy"},
    {"fencing token", VERB_RAISE, OUTCOME_MINE, "yynnnnn", "yyyynyn"},
    {"tell", VERB_TELL, OUTCOME_MINE, "yyyyyyy", "yyyyyyy"},
    {"release", VERB_RELEASE, OUTCOME_MINE, "yyyyyyy", "yyyyyyy"},
    {"minimum hold", VERB_CAP_TTL, OUTCOME_MINE, "yyyyyyy", "yyyyyyy"},
    {"inspect", VERB_INSPECT, OUTCOME_SEEN, "yynnnnn", "yyyynyn"},
    {"inspect: free", VERB_INSPECT, OUTCOME_FREE, "ynnnnnn", "yyyynyn"},
    {"look: free", VERB_READ_RECORD, OUTCOME_FREE, "ynnnnnn", "yyyynyn"},
};

static const char *marks(size_t row, enum client client)
{
    return client == SINGLE ? answers[row].single : answers[row].counts;
}

static void each_answer_of_each_server(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        for (unsigned n = 0; n < CLIENTS * STANDINGS; n++) {
            enum standing standing = n % STANDINGS;
            enum client client = n / STANDINGS;
            const struct eligibility e = server_of(client, standing);
            const struct outcome outcome = {
                .kind = answers[i].kind, .sent_at = T0 + 1};
            struct outcome instead = {.kind = OUTCOME_BUSY};
            bool counts = weigh_outcome(
                &e, answers[i].verb, &outcome, T0, T0 + 2, &instead);
            if (counts != (marks(i, client)[standing] == 'y'))
                fail_msg("%s: standing %u, client %u: %s", answers[i].what,
                    standing, client, counts ? "counts" : "does not count");
            if (!counts)
                assert_instead(&instead, standing,
                    answers[i].kind == OUTCOME_GRANTED, T0 + 1);
        }
    }
}

static void each_message_of_each_server(void **state)
{
    (void)state;
    for (unsigned n = 0; n < CLIENTS * STANDINGS; n++) {
        enum standing standing = n % STANDINGS;
        enum client client = n / STANDINGS;
        const struct eligibility e = server_of(client, standing);
        bool counts = client == SINGLE
                          ? standing != UNFIT && standing != NOT_DURABLE
                          : standing == VOTES;
        if (weigh_message(&e, T0 + 1, T0, T0 + 2) != counts)
            fail_msg("message: standing %u, client %u", standing, client);
    }
}

/* Only what may grant the lock needs a vote before it is sent. */
static void each_request_to_each_server(void **state)
{
    (void)state;
    for (unsigned n = 0; n < VERB_KINDS * CLIENTS * STANDINGS; n++) {
        enum verb_kind verb = n % VERB_KINDS;
        enum standing standing = n / VERB_KINDS % STANDINGS;
        enum client client = n / VERB_KINDS / STANDINGS;
        const struct eligibility e = server_of(client, standing);
        struct outcome instead;
        bool barred = client != SINGLE
                          ? standing != VOTES
                          : standing == UNFIT || standing == NOT_DURABLE;
        bool grants = verb == VERB_ACQUIRE || verb == VERB_JOIN ||
                      verb == VERB_STAY || verb == VERB_BEGIN;
        bool sent = weigh_may_send(&e, verb, T0 + 1, &instead);
        if (sent != !(grants && barred))
            fail_msg("verb %u: standing %u, client %u", verb, standing, client);
        if (!sent)
            assert_instead(&instead, standing, false, 0);
    }
}

/* A grant and a message count by when they were asked for, and what takes the
 * place of a grant says why: when the answer comes, the quarantine may be
 * over. */
static void by_the_time_of_the_request(void **state)
{
    (void)state;
    const struct eligibility e = server_of(SEVERAL, QUARANTINE);
    uint64_t end = T0 + NEEDED * S;
    struct outcome granted = {.kind = OUTCOME_GRANTED, .sent_at = end - 1};
    struct outcome instead;
    assert_false(
        weigh_outcome(&e, VERB_ACQUIRE, &granted, end - 1, end - 1, &instead));
    assert_instead(&instead, QUARANTINE, true, end - 1);
    assert_false(
        weigh_outcome(&e, VERB_ACQUIRE, &granted, end - 1, end, &instead));
    assert_instead(&instead, QUARANTINE, true, end - 1);
    assert_false(weigh_message(&e, end - 1, end - 1, end));
    granted.sent_at = end;
    assert_true(
        weigh_outcome(&e, VERB_ACQUIRE, &granted, end - 1, end, &instead));
    assert_true(weigh_message(&e, end, end - 1, end));
    /* What is there now, or is not, counts from now on. */
    const struct outcome none = {.kind = OUTCOME_FREE, .sent_at = end - 1};
    assert_false(
        weigh_outcome(&e, VERB_INSPECT, &none, end - 1, end - 1, &instead));
    assert_true(weigh_outcome(&e, VERB_INSPECT, &none, end - 1, end, &instead));
}

/* With the guard against failovers a grant has to be answered within a second
 * of the sign of life before it; nothing else has. */
static void a_late_grant_is_none(void **state)
{
    (void)state;
    struct eligibility e = server_of(GUARDED, VOTES);
    struct outcome instead;
    const struct outcome extended = {.kind = OUTCOME_MINE, .sent_at = T0 + 1};
    const struct outcome granted = {.kind = OUTCOME_GRANTED, .sent_at = T0 + 1};
    for (int failover = 0; failover <= 1; failover++) {
        e.failover = failover;
        assert_true(
            weigh_outcome(&e, VERB_STAY, &granted, T0, T0 + S - 1, &instead));
        assert_true(weigh_message(&e, T0 + 1, T0, T0 + S - 1));
        assert_int_equal(
            weigh_outcome(&e, VERB_STAY, &granted, T0, T0 + S, &instead),
            !failover);
        assert_int_equal(weigh_message(&e, T0 + 1, T0, T0 + S), !failover);
        assert_true(
            weigh_outcome(&e, VERB_EXTEND, &extended, T0, T0 + S, &instead));
    }
    assert_false(weigh_outcome(&e, VERB_STAY, &granted, T0, T0 + S, &instead));
    assert_int_equal(instead.fault, FAULT_TIMEOUT);
    assert_true(instead.unsure);
}

/* With Sentinels what is done to a lock counts only if a majority has named the
 * server at most two seconds before it was sent, or since. */
static void a_majority_confirms(void **state)
{
    static const struct {
        enum verb_kind verb;
        enum outcome_kind kind;
        bool needs; /* a majority */
    } rows[] = {
        {VERB_ACQUIRE, OUTCOME_GRANTED, true},
        {VERB_BEGIN, OUTCOME_GRANTED, true},
        {VERB_JOIN, OUTCOME_GRANTED, true},
        {VERB_STAY, OUTCOME_GRANTED, true},
        {VERB_EXTEND, OUTCOME_MINE, true},
        {VERB_INSPECT, OUTCOME_MINE, true},
        {VERB_TELL, OUTCOME_MINE, true},
        {VERB_RELEASE, OUTCOME_MINE, false},
        {VERB_UNDO_BEGIN, OUTCOME_MINE, false},
        {VERB_ACQUIRE, OUTCOME_BUSY, false},
        {VERB_EXTEND, OUTCOME_NOT_MINE, false},
    };
    (void)state;
    struct eligibility e = server_of(GUARDED, VOTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int on = 0; on < 4; on++) { /* failover, sentinels */
            const struct outcome o = {.kind = rows[i].kind, .sent_at = T0 + 5};
            struct outcome instead;
            bool needed = rows[i].needs && on == 3;
            e.failover = on & 1;
            e.sentinels = on & 2;
            e.confirmed_at = T0 + 5 - 2 * S;
            assert_true(
                weigh_outcome(&e, rows[i].verb, &o, T0, T0 + 6, &instead));
            e.confirmed_at--;
            bool counts =
                weigh_outcome(&e, rows[i].verb, &o, T0, T0 + 6, &instead);
            if (counts == needed)
                fail_msg("row %zu, %d", i, on);
            if (counts)
                continue;
            assert_int_equal(instead.fault, FAULT_UNCONFIRMED);
            assert_true(instead.unsure && instead.applied);
            assert_true(instead.sent_at == o.sent_at);
        }
    }
}

static void a_majority_confirms_a_message(void **state)
{
    (void)state;
    struct eligibility e = server_of(GUARDED, VOTES);
    e.failover = e.sentinels = true;
    assert_false(weigh_message(&e, T0 + 5, T0, T0 + 6));
    e.confirmed_at = T0 + 5 - 2 * S;
    assert_true(weigh_message(&e, T0 + 5, T0, T0 + 6));
    assert_false(weigh_message(&e, T0 + 6, T0, T0 + 6));
}

/* The former primary may grant the lock for three seconds, if it has not been
 * told until later that somebody holds it. */
static void at_another_primary(void **state)
{
    (void)state;
    static const struct {
        enum verb_kind verb;
        enum outcome_kind kind;
        uint64_t primary_changed_at, deadline;
        bool failover, counts;
    } rows[] = {
        {VERB_EXTEND, OUTCOME_MINE, T0, T0 + 3 * S - 1, true, false},
        {VERB_EXTEND, OUTCOME_MINE, T0, T0 + 3 * S, true, true},
        {VERB_EXTEND, OUTCOME_MINE, 0, T0 + 3 * S - 1, true, true},
        {VERB_EXTEND, OUTCOME_MINE, T0, T0 + 3 * S - 1, false, true},
        {VERB_EXTEND, OUTCOME_NOT_MINE, T0, T0 + S, true, true},
        {VERB_RELEASE, OUTCOME_MINE, T0, T0 + S, true, true},
        {VERB_ACQUIRE, OUTCOME_GRANTED, T0, 0, true, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct outcome o = {.kind = rows[i].kind, .sent_at = T0 + 5};
        struct eligibility e = server_of(GUARDED, VOTES);
        struct outcome instead = {.kind = OUTCOME_NONE};
        e.sentinels = true;
        e.failover = rows[i].failover;
        e.primary_changed_at = rows[i].primary_changed_at;
        bool counts =
            weigh_extension(&e, rows[i].verb, &o, rows[i].deadline, &instead);
        if (counts != rows[i].counts)
            fail_msg("row %zu", i);
        if (counts)
            continue;
        assert_int_equal(instead.fault, FAULT_NAMED_LATE);
        assert_true(instead.unsure && instead.text.len > 0);
        assert_true(instead.sent_at == o.sent_at);
    }
}

/* Nothing is known before the first connection is judged. */
static void before_it_was_judged(void **state)
{
    (void)state;
    const struct eligibility e = {.reason = REASON_NONE};
    struct outcome instead;
    for (unsigned verb = 0; verb < VERB_KINDS; verb++)
        assert_true(weigh_may_send(&e, verb, T0, &instead));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_of_each_server),
        cmocka_unit_test(each_message_of_each_server),
        cmocka_unit_test(each_request_to_each_server),
        cmocka_unit_test(a_late_grant_is_none),
        cmocka_unit_test(by_the_time_of_the_request),
        cmocka_unit_test(a_majority_confirms),
        cmocka_unit_test(a_majority_confirms_a_message),
        cmocka_unit_test(at_another_primary),
        cmocka_unit_test(before_it_was_judged),
    };
    return cmocka_run_group_tests_name("weigh", tests, NULL, NULL);
}
