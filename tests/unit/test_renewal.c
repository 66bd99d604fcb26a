/* SPDX-License-Identifier: MIT */
/*
 * A renewal, driven by hand: what it asks of the servers, what it does to the
 * lease, and why it says that the lease is lost.
 */
#include "support/test.h"

#include "core/renewal.h"
#include "unit/core_rig.h"

#define TTL_MS 3000
#define PPM 10000
#define LEASE lease_deadline(T0, TTL_MS, PPM)

static struct lease lease;
static struct renewal renewal;
static struct ballot ballots[3];
static uint64_t now;

/* A lease that was granted at T0, by this many servers. */
static void begin(unsigned servers, uint64_t max_hold_ns)
{
    struct renewal_terms terms = {.servers = servers,
        .ballots = ballots,
        .ttl_ms = TTL_MS,
        .drift_ppm = PPM,
        .timeout_ns = 500 * MS};
    lease = (struct lease){.ends = NEVER};
    renewal = (struct renewal){0};
    now = T0;
    lease_grant(&lease, LEASE, 0, max_hold_ns, now);
    renewal_start(&renewal, &terms, &lease, 7, now);
}

/* The asks and events that are due now, in words: "R" renewed, "F" failed,
 * "!" lost. */
static const char *due(void)
{
    static char words[WORDS_MAX];
    static const char letter[] = " RF!";
    struct effect effect;
    words[0] = '\0';
    for (;;) {
        while (renewal_next(&renewal, &effect))
            add_ask(words, &effect);
        enum renewal_state before = renewal.state;
        enum renewal_event event = renewal_step(&renewal, &lease, now);
        if (event != RENEWAL_NOTHING)
            snprintf(words + strlen(words), WORDS_MAX - strlen(words), "%s%c",
                words[0] ? " " : "", letter[event]);
        else if (renewal.state == before)
            return words;
    }
}

static const char *at(uint64_t time)
{
    now = time;
    renewal_tick(&renewal, now);
    return due();
}

/* At the time for which it asked to be called. */
static const char *wake(void)
{
    uint64_t time = renewal_wake(&renewal);
    assert_true(time != NEVER);
    return at(later(time, now));
}

static const char *say(unsigned server, struct outcome outcome)
{
    renewal_outcome(&renewal, server, &outcome, now);
    return due();
}

/* Each success moves the deadline, counted from when the extend was sent. */
static void it_keeps_the_lease(void **state)
{
    (void)state;
    begin(1, NEVER);
    for (int i = 0; i < 10; i++) {
        assert_string_equal(wake(), "S0");
        assert_true(now < lease.deadline);
        uint64_t sent_at = now;
        now += 20 * MS;
        assert_string_equal(say(0, mine(sent_at, TTL_MS)), "R");
        assert_true(lease.deadline == lease_deadline(sent_at, TTL_MS, PPM));
    }
    assert_true(now > T0 + 5 * NS_PER_S);
}

static void a_quorum_keeps_it(void **state)
{
    (void)state;
    begin(3, NEVER);
    assert_string_equal(wake(), "S0 S1 S2");
    assert_string_equal(say(0, mine(now, TTL_MS)), "");
    assert_string_equal(say(1, refused(FAULT_REFUSING)), "");
    assert_string_equal(say(2, mine(now, TTL_MS)), "R");
}

/* Nothing answers: it is tried again, and the loss comes before the deadline,
 * once. */
static void unheard(void **state)
{
    (void)state;
    begin(1, NEVER);
    assert_string_equal(wake(), "S0");
    int failed = 0;
    const char *words = "";
    while (!strchr(words, '!')) {
        assert_true(now < LEASE);
        words = wake();
        failed += strchr(words, 'F') != NULL;
    }
    assert_true(failed >= 1);
    assert_true(now < LEASE);
    assert_int_equal(renewal.loss, LOSS_NO_ANSWER);
    assert_true(renewal.unheard_ns > 0);
    assert_int_equal(lease_state(&lease, now), LEASE_LOST);
    assert_true(renewal_wake(&renewal) == NEVER);
    assert_string_equal(at(now + NS_PER_S), "");
}

/* A server says that the token is gone: the lease is lost at once, and then the
 * name's holder is looked for. */
static void refuted(void **state)
{
    (void)state;
    const struct {
        struct outcome seen;
        enum verdict found;
    } rows[] = {{plain(OUTCOME_SEEN), VERDICT_YES},
        {plain(OUTCOME_FREE), VERDICT_NO},
        {refused(FAULT_REFUSING), VERDICT_FAULT}};
    for (size_t i = 0; i < 3; i++) {
        begin(1, NEVER);
        assert_string_equal(wake(), "S0");
        assert_string_equal(say(0, plain(OUTCOME_NOT_MINE)), "S0");
        assert_int_equal(lease_state(&lease, now), LEASE_LOST);
        assert_string_equal(say(0, rows[i].seen), "!");
        assert_int_equal(renewal.loss, LOSS_TOKEN_GONE);
        assert_int_equal(renewal.inspect_verdict, rows[i].found);
        assert_true(renewal_wake(&renewal) == NEVER);
    }
}

/* A call learnt it, while an extend was under way. */
static void refuted_by_a_call(void **state)
{
    (void)state;
    begin(1, NEVER);
    assert_string_equal(wake(), "S0");
    renewal_token_gone(&renewal, &lease, now);
    assert_false(lease_held(&lease, now));
    assert_string_equal(due(), "L0 S0");
    assert_string_equal(say(0, plain(OUTCOME_FREE)), "!");
    assert_int_equal(renewal.inspect_verdict, VERDICT_NO);
}

/* This process did not run until the deadline had passed: an answer that came
 * in the meantime revives nothing. */
static void stopped(void **state)
{
    (void)state;
    begin(1, NEVER);
    assert_string_equal(wake(), "S0");
    uint64_t sent_at = now;
    now = LEASE + MS;
    assert_string_equal(say(0, mine(sent_at, TTL_MS)), "");
    assert_false(lease_held(&lease, now));
    assert_string_equal(at(now), "!");
    assert_int_equal(renewal.loss, LOSS_STOPPED);
}

static void max_hold(void **state)
{
    (void)state;
    begin(1, 2 * NS_PER_S);
    const char *words = "";
    while (!strchr(words, '!')) {
        words = wake();
        if (strcmp(words, "S0") == 0)
            words = say(0, mine(now, TTL_MS));
        assert_true(now <= T0 + 2 * NS_PER_S);
    }
    assert_int_equal(renewal.loss, LOSS_MAX_HOLD);
}

/* A maximum hold is not why a lease is lost that had time left of it. */
static void suspended_long_before_the_max_hold(void **state)
{
    (void)state;
    begin(1, 100 * NS_PER_S);
    assert_string_equal(wake(), "S0");
    uint64_t sent_at = now;
    now = LEASE + MS;
    assert_string_equal(say(0, mine(sent_at, TTL_MS)), "");
    assert_string_equal(at(now), "!");
    assert_int_equal(renewal.loss, LOSS_STOPPED);
}

/* When it wants to be called again, in each state. */
static void its_next_time(void **state)
{
    (void)state;
    struct effect effect;
    begin(1, NEVER);
    assert_string_equal(wake(), "S0");
    assert_true(renewal_wake(&renewal) > now); /* a time-out */
    assert_string_equal(say(0, plain(OUTCOME_NOT_MINE)), "S0");
    uint64_t until = renewal_wake(&renewal); /* of the check */
    assert_true(until > now && until < LEASE);
    renewal_stop(&renewal);
    assert_int_equal(renewal_wake(&renewal), 0); /* an ask is to be taken */
    assert_true(renewal_next(&renewal, &effect));
    assert_string_equal(due(), "");
    assert_true(renewal_wake(&renewal) == NEVER);
}

/* The check of who holds the name is not answered either. */
static void refuted_and_unheard(void **state)
{
    (void)state;
    begin(1, NEVER);
    assert_string_equal(wake(), "S0");
    assert_string_equal(say(0, plain(OUTCOME_NOT_MINE)), "S0");
    assert_string_equal(wake(), "L0 !");
    assert_int_equal(renewal.loss, LOSS_TOKEN_GONE);
    assert_int_equal(renewal.inspect_verdict, VERDICT_FAULT);
}

/* A call's own extend postpones the next renewal. */
static void extended_by_a_call(void **state)
{
    (void)state;
    begin(1, NEVER);
    uint64_t before = renewal_wake(&renewal);
    now = T0 + 500 * MS;
    lease_extend(&lease, lease_deadline(now, 10 * TTL_MS, PPM));
    renewal_extended(&renewal, &lease, now);
    assert_true(renewal_wake(&renewal) > before);
}

/* Nothing is sent afterwards; what is under way is not listened to. */
static void stop(void **state)
{
    (void)state;
    begin(1, NEVER);
    renewal_stop(&renewal);
    assert_true(renewal_wake(&renewal) == NEVER);
    assert_string_equal(at(LEASE + NS_PER_S), "");
    begin(3, NEVER);
    assert_string_equal(wake(), "S0 S1 S2");
    assert_string_equal(say(1, refused(FAULT_REFUSING)), "");
    renewal_stop(&renewal);
    assert_string_equal(due(), "L0 L2");
    assert_string_equal(say(0, mine(now, TTL_MS)), "");
    assert_string_equal(at(LEASE + NS_PER_S), "");
}

/* A lock that is not renewed has none. */
static void none(void **state)
{
    (void)state;
    struct effect effect;
    assert_false(renewal_next(NULL, &effect));
    assert_false(renewal_busy(NULL));
    assert_false(renewal_on(NULL));
    assert_true(renewal_wake(NULL) == NEVER);
    renewal_tick(NULL, T0);
    renewal_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_keeps_the_lease),
        cmocka_unit_test(a_quorum_keeps_it),
        cmocka_unit_test(unheard),
        cmocka_unit_test(refuted),
        cmocka_unit_test(refuted_by_a_call),
        cmocka_unit_test(stopped),
        cmocka_unit_test(max_hold),
        cmocka_unit_test(suspended_long_before_the_max_hold),
        cmocka_unit_test(extended_by_a_call),
        cmocka_unit_test(its_next_time),
        cmocka_unit_test(refuted_and_unheard),
        cmocka_unit_test(stop),
        cmocka_unit_test(none),
    };
    return cmocka_run_group_tests_name("renewal", tests, NULL, NULL);
}
