/* SPDX-License-Identifier: MIT */
/*
 * What is true of the rounds of acquire and of the other verbs for every number
 * of servers, and of the delays between them; single cases are in
 * unit/scenes/acquire.scenes and round.scenes.
 */
#include "unit/scene_parts.h"

#define LEASE (988 * MS) /* of TTL_MS with 1 % */
#define FIRST (10 * MS)  /* of the delays; the first is 5 ... 10 ms */
#define MOST (80 * MS)

static const char *const acquired[] = {"T", "=yes", "=no", "U"};
static const char *const extended[] = {"", "=yes", "=no", "L"};

/* Sends to all, these answers of the first servers, what follows at the others,
 * and the verdict. */
static void assert_decides(const struct scene_machine *machine,
    unsigned servers, char letter, unsigned enough, const char *first,
    const char *effect, const char *verdict)
{
    char with[32], wanted[512];
    snprintf(with, sizeof(with), "servers=%u", servers);
    scene_begin(machine, with);
    int len = snprintf(wanted, sizeof(wanted), "%s", first);
    for (unsigned i = 0; i < servers; i++)
        len += snprintf(wanted + len, sizeof(wanted) - (size_t)len,
            servers > 1 ? "%sS%u" : "%sS", len ? " " : "", i);
    for (unsigned i = 0; i < enough; i++) {
        char word[32];
        assert_string_equal(scene.trace, wanted);
        snprintf(word, sizeof(word), "%c%u^%g", letter, i, 9 - i / 10.0);
        scene_play(word);
    }
    for (unsigned i = enough; i < servers; i++)
        len += snprintf(
            wanted + len, sizeof(wanted) - (size_t)len, " %s%u", effect, i);
    snprintf(wanted + len, sizeof(wanted) - (size_t)len, " %s", verdict);
    assert_string_equal(scene.trace, wanted);
}

/* The earliest send counts, whoever answers first. */
static void a_quorum_decides(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MAX_SERVERS; n++) {
        unsigned quorum = quorum_of(n), most = n - quorum + 1;
        uint64_t sent_at = T0 + 9 * MS - (quorum - 1) * MS / 10;
        assert_decides(
            &acquire_machine, n, 'g', quorum, acquired[0], "L", acquired[1]);
        assert_int_equal(acq.deadline, sent_at + LEASE);
        assert_decides(
            &round_machine, n, 'm', quorum, extended[0], "L", extended[1]);
        assert_int_equal(rnd.deadline, sent_at + LEASE);
        assert_decides(
            &acquire_machine, n, 'b', most, acquired[0], "U", acquired[2]);
        assert_decides(
            &round_machine, n, 'n', most, extended[0], "L", extended[2]);
    }
}

/* ------------------------------------------------------------------- delays */

static uint64_t next_round(void)
{
    uint64_t delay = acquire_wake(&acq) - scene.now;
    scene_play("wake");
    return delay;
}

static void delays_grow(void **state)
{
    static const char *const lost[] = {"i*", "g0 g1 again:gone"};
    static const char *const with[] = {"", "servers=3"};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t delay = 0;
        scene_begin(&acquire_machine, with[i]);
        acq.terms.wait_until = acq.terms.end = NEVER;
        for (int n = 0; n < 100; n++) {
            scene_play(lost[i]);
            delay = next_round();
            assert_in_range(delay, FIRST / 2, MOST);
            scene.trace[0] = '\0';
        }
        assert_in_range(delay, MOST / 2, MOST);
    }
}

/* Only a round that was lost to several holders counts, and then it is asked
 * that nobody joins them, for longer than until the next round. */
static void several_holders_are_held_back(void **state)
{
    static const char *const with[] = {
        "wait=never end=never", "servers=3 wait=never end=never"};
    (void)state;
    for (unsigned n = 0; n < 2; n++) {
        scene_begin(&acquire_machine, with[n]);
        assert_false(acq.asks_kind);
        for (int i = 0; i < 10; i++) {
            scene_play("b* wake");
            assert_int_equal(acq.asks_kind, i > 0);
            assert_int_equal(acq.hold_back_ms, 0);
            scene.trace[0] = '\0';
        }
        scene_play("h*");
        for (int i = 0; i < 100; i++) {
            scene_play("wake");
            uint32_t hold_back_ms = acq.hold_back_ms;
            assert_between(hold_back_ms, 60, 1000);
            scene_play("h*");
            uint64_t next = acquire_wake(&acq);
            assert_true(2 * (next - scene.now) <= hold_back_ms * MS);
            scene.trace[0] = '\0';
        }
    }
}

/* The wait fills the call, so the last round starts early enough to end. */
static void the_last_round_can_end_in_time(void **state)
{
    static const struct {
        const char *slowest;
        uint64_t last_ms;
    } rows[] = {{"b", 380}, {"@0.25 b", 380}, {"@20 b", 360},
        {"@99 b", 300}}; /* the time for an answer */
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        scene_begin(&acquire_machine, "wait=400 end=400");
        scene_play(rows[i].slowest);
        while (acquire_verdict(&acq) == VERDICT_OPEN)
            scene_play("wake b");
        assert_int_equal(acquire_verdict(&acq), VERDICT_NO);
        assert_int_equal(scene.now - T0, rows[i].last_ms * MS);
    }
}

static void near_the_end_of_time(void **state)
{
    struct outcome granted = {.kind = OUTCOME_GRANTED, .sent_at = NEVER - 50};
    struct outcome lost = {.kind = OUTCOME_FAULT,
        .fault = FAULT_UNREACHABLE,
        .unsure = true,
        .sent_at = NEVER - 50};
    struct outcome mine = {.kind = OUTCOME_MINE, .sent_at = NEVER - 50};
    (void)state;
    for (unsigned silent = 0; silent < 2; silent++) {
        scene_begin(&acquire_machine, "end=never");
        struct acquire_terms terms = acq.terms;
        terms.wait_until = NEVER - 50;
        acquire_start(&acq, &terms, NEVER - 50);
        drain();
        assert_true(acquire_wake(&acq) == NEVER);
        if (silent)
            acquire_tick(&acq, NEVER);
        else
            acquire_outcome(&acq, 0, &granted, NEVER - 40);
        drain();
        assert_string_equal(
            scene.trace, silent ? "T S T S U =unknown" : "T S T S =yes");
        assert_true(silent || acq.deadline == NEVER);
    }
    for (unsigned cut = 0; cut < 2; cut++) {
        scene_begin(&round_machine, "end=never");
        struct round_terms terms = rnd.terms;
        round_start(&rnd, &terms, NEVER - 50);
        drain();
        assert_true(round_wake(&rnd) == NEVER);
        round_outcome(&rnd, 0, cut ? &lost : &mine, NEVER - 1);
        drain(); /* there is no time to ask again */
        assert_string_equal(scene.trace, cut ? "S S =unknown" : "S S =yes");
        assert_true(cut || rnd.deadline == NEVER);
    }
}

/* ----------------------------------------------------------- fencing tokens */

/* One way to answer: digits of 4, for each server but the first. */
static void assert_fence(unsigned servers, unsigned way)
{
    struct fence_terms terms = {
        .servers = servers, .ballots = ballots, .end = T0 + 100 * MS};
    struct effect effect;
    struct fence f;
    unsigned have = 1, gone = 0, quorum = quorum_of(servers);
    memset(ballots, 0, sizeof(ballots));
    ballots[0].fence = 5;       /* it has granted, with that number */
    ballots[servers].fence = 9; /* of none of them */
    fence_start(&f, &terms);
    while (fence_next(&f, &effect))
        ;
    for (unsigned i = 1; i < servers; i++, way /= 4) {
        const struct outcome answers[] = {{.kind = OUTCOME_MINE, .fence = 5},
            {.kind = OUTCOME_NOT_MINE},
            {.kind = OUTCOME_MINE, .fence = 6}, /* a higher one of its own */
            {.kind = OUTCOME_FAULT,
                .fault = FAULT_UNREACHABLE,
                .unsure = true}};
        have += way % 4 == 0;
        gone += way % 4 == 1;
        fence_outcome(&f, i, &answers[way % 4]);
    }
    while (fence_next(&f, &effect))
        ;
    assert_int_equal(fence_verdict(&f) == VERDICT_YES, have >= quorum);
    assert_true(fence_verdict(&f) != VERDICT_OPEN);
    if (fence_verdict(&f) == VERDICT_NO)
        assert_true(gone > servers - quorum);
}

static void a_fence_without_an_answer(void **state)
{
    struct fence_terms terms = {
        .servers = 3, .ballots = ballots, .end = T0 + 100 * MS};
    const struct outcome raised = {.kind = OUTCOME_MINE, .fence = 5};
    struct effect effect;
    struct fence f;
    (void)state;
    memset(ballots, 0, sizeof(ballots));
    ballots[0].fence = 5;
    fence_start(&f, &terms);
    while (fence_next(&f, &effect))
        ;
    fence_outcome(&f, 3, &raised); /* there is no such server */
    fence_tick(&f, T0 + 100 * MS - 1);
    assert_false(fence_next(&f, &effect));
    fence_tick(&f, T0 + 100 * MS);
    assert_int_equal(f.fault, FAULT_TIMEOUT);
    assert_int_equal(f.unanswered, 2);
    while (fence_next(&f, &effect))
        ;
    fence_cancel(&f); /* it is over: neither changes it */
    fence_tick(&f, T0 + 200 * MS);
    assert_int_equal(fence_verdict(&f), VERDICT_UNKNOWN);
}

/* Raising a counter needs no undoing, and a server that there is not does not
 * count. */
static void a_vote_that_raises(void **state)
{
    struct acquire_terms terms = {.servers = 3,
        .ballots = ballots,
        .ttl_ms = TTL_MS,
        .drift_ppm = 10000,
        .answer_timeout_ns = 50 * MS,
        .wait_until = T0 + NS_PER_S,
        .end = T0 + NS_PER_S};
    const struct outcome first = {
        .kind = OUTCOME_GRANTED, .sent_at = T0, .fence = 8};
    const struct outcome second = {
        .kind = OUTCOME_GRANTED, .sent_at = T0, .fence = 5};
    const struct outcome raised = {.kind = OUTCOME_MINE, .fence = 8};
    static struct vote vote;
    struct effect effect;
    (void)state;
    memset(ballots, 0, sizeof(ballots));
    vote = (struct vote){.ballots = ballots};
    vote_acquire(&vote, &terms, 1U << CONDITION_FENCE, FIRST, MOST, 5, T0);
    while (vote_next(&vote, &effect))
        ;
    vote_outcome(&vote, 3, &first, T0);
    vote_outcome(&vote, 0, &first, T0);
    vote_outcome(&vote, 2, &second, T0);
    while (vote_next(&vote, &effect))
        ;
    vote_step(&vote, effect.verdict, T0 + MS);
    while (vote_next(&vote, &effect))
        ;
    vote_outcome(&vote, 3, &raised, T0 + MS);
    vote_withdrawn(&vote, 2);
    assert_false(vote_next(&vote, &effect));
    assert_int_equal(effect.verdict, VERDICT_OPEN);
    vote_outcome(&vote, 2, &raised, T0 + MS);
    while (vote_next(&vote, &effect))
        ;
    assert_int_equal(effect.verdict, VERDICT_YES);
    assert_true(vote.fence.value == 8);
}

/* Every split of every vote over up to five servers: a yes means a quorum. */
static void every_vote_on_a_fence(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 5; servers++)
        for (unsigned way = 0; way < 1U << 2 * (servers - 1); way++)
            assert_fence(servers, way);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quorum_decides),
        cmocka_unit_test(delays_grow),
        cmocka_unit_test(several_holders_are_held_back),
        cmocka_unit_test(the_last_round_can_end_in_time),
        cmocka_unit_test(near_the_end_of_time),
        cmocka_unit_test(a_fence_without_an_answer),
        cmocka_unit_test(a_vote_that_raises),
        cmocka_unit_test(every_vote_on_a_fence),
    };
    return cmocka_run_group_tests_name("rounds", tests, NULL, NULL);
}
