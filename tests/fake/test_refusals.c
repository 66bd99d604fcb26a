/* SPDX-License-Identifier: MIT */
/* What a server that answers with an error is taken to mean: the result, its
 * words in the message, and whether waiting is tried. */
#include "rig.h"

#define PARAMS "timeout_ms=2000"

#define WATCH_K                                                                \
    "EXPECT WATCH k\nEXPECT GETRANGE k 0 511\nEXPECT PTTL k\n"                 \
    "EXPECT EXISTS k\nEXPECT MULTI\n"

struct refusal {
    const char *error;
    int result;
    bool passes; /* a call that waits tries again */
};

static const struct refusal refusals[] = {
    {"LOADING Redis is loading the dataset in memory", NXL_E_REFUSED, true},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL",
        NXL_E_REFUSED, true},
    {"TRYAGAIN Multiple keys request during rehashing of slot", NXL_E_REFUSED,
        true},
    {"CLUSTERDOWN The cluster is down", NXL_E_REFUSED, true},
    {"MISCONF Redis is configured to save RDB snapshots", NXL_E_REFUSED, true},
    {"NOREPLICAS Not enough good replicas to write.", NXL_E_REFUSED, true},
    {"OOM command not allowed when used memory > 'maxmemory'.", NXL_E_REFUSED,
        true},
    {"ERR command not allowed when used memory > 'maxmemory'", NXL_E_REFUSED,
        true},
    {"READONLY You can't write against a read only replica.", NXL_E_REFUSED,
        false},
    {"MASTERDOWN Link with MASTER is down", NXL_E_REFUSED, false},
    {"MOVED 12182 10.0.0.7:6379", NXL_E_REFUSED, false},
    {"ASK 12182 10.0.0.7:6379", NXL_E_REFUSED, false},
    {"NOAUTH Authentication required.", NXL_E_DENIED, false},
    {"NOPERM this user has no permissions to access one of the keys",
        NXL_E_DENIED, false},
    {"ERR operation not permitted", NXL_E_DENIED, false},
    {"WRONGTYPE Operation against a key", NXL_E_WRONG_TYPE, false},
    {"ERR unknown command 'SET', with args beginning with: 'k'",
        NXL_E_UNSUPPORTED, false},
    {"ERR syntax error", NXL_E_UNSUPPORTED, false},
    {"ERR wrong number of arguments for 'set' command", NXL_E_UNSUPPORTED,
        false},
    {"ERR the server has a headache", NXL_E_SERVER, false},
    {"LOADINGBAY is not a code we know", NXL_E_SERVER, false},
    {"", NXL_E_SERVER, false},
};
#define REFUSALS (sizeof(refusals) / sizeof(refusals[0]))

/* READONLY and the like are said by a server that is not the right one: the
 * name is looked up again for the next command. */
static bool goes_elsewhere(const struct refusal *refusal)
{
    const char *e = refusal->error;
    return strncmp(e, "READONLY", 8) == 0 ||
           strncmp(e, "MASTERDOWN", 10) == 0 || strncmp(e, "MOVED", 5) == 0 ||
           strncmp(e, "ASK", 3) == 0;
}

/* Another command may be allowed where this one is not: the next strategy is
 * tried. A user who may not SET cannot lock by another command either. */
static bool falls_back(const struct refusal *refusal)
{
    return refusal->result == NXL_E_UNSUPPORTED ||
           strncmp(refusal->error, "NOPERM", 6) == 0;
}

/* What the further ways are refused with: another class, other words. */
static const char *stand_in(const struct refusal *refusal)
{
    return refusal->result == NXL_E_UNSUPPORTED
               ? "SEND -NOPERM not by a stand-in either\\r\\n\n"
               : "SEND -ERR unknown command 'stand-in'\\r\\n\n";
}

/* What may not be read is no time either. */
#define NOT_READ "SEND -NOPERM not by a stand-in either\\r\\n\n"

/* All of WATCH, GETRANGE, PTTL, EXISTS and MULTI. */
static void add_refused_watch(struct script *s, const char *refused)
{
    add(s, WATCH_K "%s%s%s%s%s", refused, refused, refused, refused, refused);
}

/* The further ways of SET, extend, release and inspect, all refused. */
static void add_ways(struct script *s, char verb, const struct refusal *refusal)
{
    const char *refused = stand_in(refusal);

    if (!falls_back(refusal) ||
        (verb == 'a' && refusal->result == NXL_E_DENIED))
        return;
    switch (verb) {
    case 'a':
        add(s,
            "EXPECT EVAL * 1 k $t 30000\n%s"
            "EXPECT TIME\nEXPECT GETRANGE k 0 511\n%s%s",
            refused, refused, refused);
        break;
    case 'e':
        add_refused_watch(s, refused);
        break;
    case 'r':
        add_refused_watch(s, refused);
        add(s, "EXPECT TIME\nEXPECT GETRANGE k 0 511\n%s%s", NOT_READ,
            NOT_READ);
        break;
    default:
        add(s,
            "EXPECT PTTL k\nEXPECT GETRANGE k 0 511\nEXPECT EXISTS k\n"
            "%s%s%s"
            "EXPECT TIME\nEXPECT GETRANGE k 0 511\n%s%s",
            refused, refused, refused, NOT_READ, NOT_READ);
    }
}

/* The server's words, but for a command's arguments: they may be secret. */
static void assert_words(const struct rig *r, const struct refusal *refusal)
{
    char words[256];
    snprintf(words, sizeof(words), "%s", refusal->error);
    char *echo = strstr(words, ", with args");
    if (echo)
        *echo = '\0';
    size_t len = strlen(words);
    if (len > 0 && words[len - 1] == '.') /* more follows in the message */
        words[len - 1] = '\0';
    assert_contains(nxl_lock_errmsg(r->lock), words);
    assert_null(strstr(nxl_lock_errmsg(r->lock), "with args"));
    assert_null(strstr(nxl_lock_errmsg(r->lock), "stand-in"));
}

/* Words that no Redis server has may be a proxy's, after it had passed the
 * command on. */
static int result_of_change(const struct refusal *refusal)
{
    return refusal->result == NXL_E_SERVER ? NXL_UNKNOWN : refusal->result;
}

static void check_refused(
    const struct rig *r, const struct refusal *refusal, int wanted, int rc)
{
    if (rc != wanted)
        fail_msg("%s: %s", refusal->error, nxl_strerror(rc));
    assert_words(r, refusal);
    assert_not_held(r->lock);
}

/* Nothing was applied, so nothing is undone either. */
static void a_refused_try(void **state)
{
    (void)state;
    for (size_t i = 0; i < REFUSALS; i++) {
        const struct refusal *refusal = &refusals[i];
        if (refusal->result == NXL_E_SERVER)
            continue; /* see strange_words_are_undone */
        struct script s = {0};
        add(&s, SHAKE SET_T "SEND -%s\\r\\n\n", refusal->error);
        add_ways(&s, 'a', refusal);
        add(&s, "%s" WORKS,
            goes_elsewhere(refusal) ? "EXPECT-CLOSE\n" NEXT SHAKE : "");
        struct rig r = rig_open(s.text, i % 2 ? 't' : 'u', PARAMS);
        int64_t start = test_now_ms();
        check_refused(
            &r, refusal, refusal->result, nxl_lock_acquire(r.lock, 0));
        assert_between(test_now_ms() - start, 0, slack_ms());
        assert_works(r.lock);
        /* The other way to acquire is one, too. */
        assert_int_equal(fake_count(r.fake, -1, "EVAL"),
            refusal->result == NXL_E_UNSUPPORTED);
        rig_close(&r);
    }
}

/* Only what passes by itself is tried again; the rest is said at once. */
static void a_refused_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < REFUSALS; i++) {
        const struct refusal *refusal = &refusals[i];
        if (refusal->result == NXL_E_SERVER)
            continue; /* see strange_words_are_undone */
        struct script s = {0};
        add(&s, SHAKE SET_T "SEND -%s\\r\\n\n", refusal->error);
        add_ways(&s, 'a', refusal);
        if (refusal->passes)
            add(&s,
                "EXPECT SET k $u NX PX 30000\nEXPECT PTTL k\n"
                "SEND -%s\\r\\n-%s\\r\\n\n"
                "EXPECT SET k $v NX PX 30000\nEXPECT PTTL k\n"
                "SEND +OK\\r\\n:30000\\r\\n\n"
                "EXPECT EVALSHA * 1 k $v\n" ONE,
                refusal->error, refusal->error);
        struct rig r = rig_open(s.text, i % 2 ? 't' : 'u', PARAMS);
        int64_t start = test_now_ms();
        int rc = nxl_lock_acquire(r.lock, 5000);
        assert_between(test_now_ms() - start, 0, 400 + slack_ms());
        if (refusal->passes) {
            assert_int_equal(rc, NXL_OK);
            assert_ends(nxl_lock_release(r.lock), NXL_OK, 200);
        } else {
            check_refused(&r, refusal, refusal->result, rc);
        }
        rig_close(&r);
    }
}

/* What passes did not pass: the words of the last answer, at the end. The wait
 * is long enough for several answers on a machine that is slow. */
static void refused_until_the_end(void **state)
{
    (void)state;
    struct script s = {0};
    add(&s, SHAKE SET_T "SEND -LOADING Redis is loading\\r\\n\n");
    for (int i = 0; i < 40; i++)
        add(&s, "EXPECT SET k * NX PX 30000\nEXPECT PTTL k\n"
                "SEND -MISCONF no disk\\r\\n-MISCONF no disk\\r\\n\n");
    struct rig r = rig_open(s.text, 'u', "timeout_ms=1000");
    assert_takes(nxl_lock_acquire(r.lock, 1500), NXL_E_REFUSED, 1000, 1500);
    assert_contains(nxl_lock_errmsg(r.lock), "MISCONF no disk");
    assert_between(fake_count(r.fake, 0, "SET"), 3, 40);
    nxl_lock_free(r.lock);
    nxl_client_free(r.client);
    fake_free(r.fake);
}

static void strange_words_are_undone(void **state)
{
    (void)state;
    for (size_t i = 0; i < REFUSALS; i++) {
        const struct refusal *refusal = &refusals[i];
        if (refusal->result != NXL_E_SERVER)
            continue;
        struct script s = {0};
        add(&s, SHAKE SET_T "SEND -%s\\r\\n\n" UNDO_T ONE WORKS,
            refusal->error);
        struct rig r = rig_open(s.text, i % 2 ? 't' : 'u', PARAMS);
        check_refused(&r, refusal, NXL_UNKNOWN, nxl_lock_acquire(r.lock, 0));
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* ------------------------------------------------------ extend, inspect */

static void a_refused_extension_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < REFUSALS; i++) {
        const struct refusal *refusal = &refusals[i];
        if (refusal->result == NXL_E_WRONG_TYPE)
            continue; /* says that the token does not stand there */
        struct script s = {0};
        add(&s, SHAKE GRANT EXTEND_T "SEND -%s\\r\\n\n", refusal->error);
        add_ways(&s, 'e', refusal);
        add(&s, "%s" EXTEND_T "SEND :30000\\r\\n\n" DROP_T ONE,
            goes_elsewhere(refusal) ? "EXPECT-CLOSE\n" NEXT SHAKE : "");
        struct rig r = rig_open(s.text, 'u', PARAMS);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
        uint64_t deadline = nxl_lock_deadline(r.lock);
        int rc = nxl_lock_extend(r.lock, 0);
        if (rc != result_of_change(refusal))
            fail_msg("%s: %s", refusal->error, nxl_strerror(rc));
        assert_words(&r, refusal);
        assert_true(nxl_lock_held(r.lock));
        assert_true(nxl_lock_deadline(r.lock) == deadline);
        assert_ends(nxl_lock_extend(r.lock, 0), NXL_OK, 200);
        assert_true(nxl_lock_deadline(r.lock) > deadline);
        assert_ends(nxl_lock_release(r.lock), NXL_OK, 200);
        rig_close(&r);
    }
}

static void another_type_is_not_ours(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE GRANT EXTEND_T
        "SEND -WRONGTYPE Operation against a key\\r\\n\n" DROP_T
        "SEND -WRONGTYPE Operation against a key\\r\\n\n" WORKS,
        'u', PARAMS);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
    assert_ends(nxl_lock_extend(r.lock, 0), NXL_LOST, 200);
    assert_not_held(r.lock);
    assert_ends(nxl_lock_release(r.lock), NXL_LOST, 200);
    assert_works(r.lock);
    rig_close(&r);
}

static void a_refused_inspection(void **state)
{
    (void)state;
    for (size_t i = 0; i < REFUSALS; i++) {
        const struct refusal *refusal = &refusals[i];
        struct script s = {0};
        add(&s, SHAKE "EXPECT EVALSHA * 1 k *\nSEND -%s\\r\\n\n",
            refusal->error);
        add_ways(&s, 'i', refusal);
        add(&s, "%s" WORKS,
            goes_elsewhere(refusal) ? "EXPECT-CLOSE\n" NEXT SHAKE : "");
        struct rig r = rig_open(s.text, 'u', PARAMS);
        nxl_holder holder = NXL_HOLDER_INIT;
        check_refused(
            &r, refusal, refusal->result, nxl_lock_inspect(r.lock, &holder));
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* The caller hears of it; the deletion is owed, and paid when it can be. */
static void a_refused_release_is_owed(void **state)
{
    (void)state;
    for (size_t i = 0; i < REFUSALS; i++) {
        const struct refusal *refusal = &refusals[i];
        if (refusal->result == NXL_E_WRONG_TYPE)
            continue;
        struct script s = {0};
        add(&s, SHAKE GRANT DROP_T "SEND -%s\\r\\n\n", refusal->error);
        add_ways(&s, 'r', refusal);
        add(&s, "%s" UNDO_T ONE "%s" WORKS,
            goes_elsewhere(refusal) ? "EXPECT-CLOSE\n" NEXT SHAKE : "",
            falls_back(refusal) ? RIGHTS("$z") : "");
        struct rig r = rig_open(s.text, 'u', PARAMS);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
        check_refused(
            &r, refusal, result_of_change(refusal), nxl_lock_release(r.lock));
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* ------------------------------------------------- a transaction left open */

#define TAKES_NONE "SEND -NOPERM first\\r\\n\n"
#define OPENS(value)                                                           \
    WATCH_K "SEND +OK\\r\\n\nBULK " value "\n"                                 \
            "SEND :20000\\r\\n:1\\r\\n+OK\\r\\n\n"
#define KEEPS                                                                  \
    "EXPECT DISCARD\nSEND -NOPERM not to discard\\r\\n\nEXPECT-CLOSE\n" NEXT

/* DISCARD is not allowed: all that follows would be queued, so nothing follows
 * on this connection. */
static void what_cannot_be_discarded_ends_the_connection(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE GRANT EXTEND_T TAKES_NONE OPENS("other")
                                KEEPS SHAKE DROP_T ZERO WORKS,
        'u', PARAMS);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
    assert_ends(nxl_lock_extend(r.lock, 0), NXL_LOST, 200);
    assert_not_held(r.lock);
    assert_ends(nxl_lock_release(r.lock), NXL_LOST, 200);
    assert_works(r.lock);
    rig_close(&r);

    r = rig_open(SHAKE GRANT DROP_T TAKES_NONE OPENS("other") KEEPS SHAKE WORKS,
        'u', PARAMS);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
    assert_ends(nxl_lock_release(r.lock), NXL_LOST, 200);
    assert_not_held(r.lock);
    assert_works(r.lock);
    rig_close(&r);
}

/* ... also when it is what is owed for an acquire that came late. */
static void nor_does_a_debt_leave_one_open(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE SET_T UNDO_T OK TAKES_NONE OPENS("other")
                                KEEPS SHAKE WORKS,
        'u', "timeout_ms=60");
    assert_int_equal(acquire_by_loop(r.client, r.lock, 0), NXL_UNKNOWN);
    assert_not_held(r.lock);
    assert_idle(r.client);
    assert_int_equal(acquire_by_loop(r.client, r.lock, 0), NXL_OK);
    assert_int_equal(nxl_lock_release_start(r.lock), NXL_PENDING);
    assert_int_equal(event_result(r.client, r.lock), NXL_OK);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_try),
        cmocka_unit_test(a_refused_wait),
        cmocka_unit_test(refused_until_the_end),
        cmocka_unit_test(strange_words_are_undone),
        cmocka_unit_test(a_refused_extension_changes_nothing),
        cmocka_unit_test(another_type_is_not_ours),
        cmocka_unit_test(a_refused_inspection),
        cmocka_unit_test(a_refused_release_is_owed),
        cmocka_unit_test(what_cannot_be_discarded_ends_the_connection),
        cmocka_unit_test(nor_does_a_debt_leave_one_open),
    };
    return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
