/* SPDX-License-Identifier: MIT */
/* A server that answers too late: every call ends by its deadline with what
 * may be said then, and the handle works on the same connection again. */
#include "rig.h"

/* One operation on a held lock (k, $t), or on a free one. */
struct step {
    const char *name;
    int (*call)(nxl_lock *lock);
    const char *command, *reply;
    bool held; /* before, and after a late reply */
    bool still_held;
    int late;   /* the result without an answer */
    int result; /* the result with that reply */
};

static int try_acquire(nxl_lock *lock)
{
    return nxl_lock_acquire(lock, 0);
}

static int extend(nxl_lock *lock)
{
    return nxl_lock_extend(lock, 0);
}

static int adopt(nxl_lock *lock)
{
    return nxl_lock_adopt(lock, "0b6c0c9e-0e0b-4b63-9d4c-1c1b1f8f7a11");
}

static int inspect(nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    return nxl_lock_inspect(lock, &holder);
}

static int breaking(nxl_lock *lock)
{
    nxl_holder holder = {.size = sizeof(holder), .value = "v"};
    holder.value_length = 1;
    return nxl_lock_break(lock, &holder);
}

#define ADOPTED                                                                \
    "SEND *2\\r\\n$36\\r\\n0b6c0c9e-0e0b-4b63-9d4c-1c1b1f8f7a11\\r\\n"         \
    ":30000\\r\\n\n"
#define SEEN "SEND *2\\r\\n$1\\r\\nv\\r\\n:30000\\r\\n\n"

static const struct step steps[] = {
    {"acquire", try_acquire, SET_T, OK, false, false, NXL_UNKNOWN, NXL_OK},
    {"extend", extend, EXTEND_T, "SEND :30000\\r\\n\n", true, true, NXL_UNKNOWN,
        NXL_OK},
    {"release", nxl_lock_release, DROP_T, ONE, true, false, NXL_UNKNOWN,
        NXL_OK},
    {"adopt", adopt, "EXPECT EVALSHA * 1 k\n", ADOPTED, false, false,
        NXL_E_UNREACHABLE, NXL_OK},
    {"inspect", inspect, "EXPECT EVALSHA * 1 k *\n", SEEN, true, true,
        NXL_E_UNREACHABLE, NXL_OK},
    {"break", breaking, "EXPECT EVALSHA * 1 k v\n", ONE, false, false,
        NXL_UNKNOWN, NXL_OK},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void begin(struct script *s, const struct step *step)
{
    add(s, READY "%s%s", step->held ? GRANT : "", step->command);
}

/* What follows on the wire when nobody waits for the step any more. */
static const char *undo_of(const struct step *step)
{
    return step->call == try_acquire ? UNDO_T : "";
}

static void check_late(struct rig *r, const struct step *step, int64_t ms)
{
    uint64_t deadline = nxl_lock_deadline(r->lock);
    assert_takes(step->call(r->lock), step->late, ms - 5, ms);
    assert_contains(nxl_lock_errmsg(r->lock), "no answer");
    if (step->still_held) {
        assert_true(nxl_lock_held(r->lock));
        assert_true(nxl_lock_deadline(r->lock) == deadline);
    } else {
        assert_not_held(r->lock);
    }
}

/* The reply comes between two calls, and then nothing is wrong. */
static void late_reply_of_every_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * STEPS; i++) {
        const struct step *step = &steps[i / 2];
        struct script s = {0};
        begin(&s, step);
        add(&s, "%sWAIT-FOR late\n%s%sTELL sent\n", undo_of(step), step->reply,
            *undo_of(step) ? ONE : "");
        if (step->still_held)
            add(&s, EXTEND_T "SEND :30000\\r\\n\n" DROP_T ONE);
        add(&s, WORKS);
        struct rig r =
            rig_ready(s.text, i % 2 ? 't' : 'u', "timeout_ms=80", step->held);
        check_late(&r, step, 80);
        fake_signal(r.fake, "late");
        assert_true(fake_await(r.fake, "sent"));
        if (step->still_held) {
            assert_ends(extend(r.lock), NXL_OK, 80);
            assert_ends(nxl_lock_release(r.lock), NXL_OK, 80);
        }
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* The reply comes while the same call is repeated, in front of its own. */
static void late_reply_during_the_next_call(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * STEPS; i++) {
        const struct step *step = &steps[i / 2];
        struct script s = {0};
        if (step->call == nxl_lock_release)
            continue; /* is not to be called again */
        begin(&s, step);
        if (step->call == try_acquire) /* the second one is busy */
            add(&s, UNDO_T "EXPECT SET k $y NX PX 30000\n" OK "DELAY 20\n" ONE
                           "DELAY 20\n" NIL);
        else
            add(&s, "%s%sDELAY 20\n%s", step->command, step->reply,
                step->reply);
        add(&s, "SERVE\n");
        struct rig r =
            rig_ready(s.text, i % 2 ? 't' : 'u', "timeout_ms=250", step->held);
        check_late(&r, step, 250);
        bool busy = step->call == try_acquire;
        assert_takes(
            step->call(r.lock), busy ? NXL_BUSY : step->result, 18, 250);
        rig_close(&r);
    }
}

static void slow_reply_is_waited_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < STEPS; i++) {
        const struct step *step = &steps[i];
        struct script s = {0};
        begin(&s, step);
        add(&s, "DELAY 60\n%sSERVE\n", step->reply);
        struct rig r = rig_ready(s.text, 'u', "timeout_ms=500", step->held);
        assert_takes(step->call(r.lock), step->result, 55, 500);
        rig_close(&r);
    }
}

/* ------------------------------------------------ which deadline it is */

#define SILENT SHAKE "SILENCE\n"

static void acquire_ends_by_the_longer_of_both(void **state)
{
    (void)state;
    static const struct {
        const char *params;
        int64_t wait, low, high;
    } cases[] = {
        {"timeout_ms=150", 50, 140, 150},
        {"timeout_ms=50", 150, 100, 150},
        {"timeout_ms=30", 300, 200, 300},
        {"timeout_ms=10", 0, 8, 10},
    };
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig r = rig_open(SILENT, i % 2 ? 't' : 'u', cases[i / 2].params);
        assert_first_takes(nxl_lock_acquire(r.lock, cases[i / 2].wait),
            NXL_UNKNOWN, cases[i / 2].low, cases[i / 2].high);
        assert_not_held(r.lock);
        rig_close(&r);
    }
}

/* A lease that would be over before the answer is no use: it is given up
 * then, though the call may last longer. */
static void acquire_does_not_wait_beyond_its_lease(void **state)
{
    (void)state;
    struct rig r = rig_ready(READY "EXPECT SET k $t NX PX 60\n" UNDO_T
                                   "SEND +OK\\r\\n:0\\r\\n\n",
        'u', "timeout_ms=1000", false);
    nxl_lock *lock = lock_of_name(r.client, "k", 60);
    assert_takes(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, 50, 60);
    assert_not_held(lock);
    nxl_lock_free(lock);
    rig_close(&r);
}

static void extend_does_not_wait_beyond_its_lease(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE "EXPECT SET k $t NX PX 600\n" OK
                                  "EXPECT EVALSHA * 1 k $t 600\n"
                                  "WAIT-FOR late\nSEND :600\\r\\n\n" WORKS,
        'u', "timeout_ms=2000");
    nxl_lock *lock = lock_of_name(r.client, "k", 600);
    assert_ends(nxl_lock_acquire(lock, 0), NXL_OK, 500);
    int64_t left = nxl_lock_remaining_ms(lock);
    assert_takes(nxl_lock_extend(lock, 0), NXL_LOST, left - 5, left + 1);
    assert_not_held(lock);
    fake_signal(r.fake, "late");
    assert_ends(nxl_lock_release(lock), NXL_LOST, 2000);
    nxl_lock_free(lock);
    assert_works(r.lock);
    rig_close(&r);
}

/* ------------------------------------------------------------------- busy */

/* The last answer was "busy"; the round that the end cuts off may have been
 * granted, and is undone. The time-out is long, for after a slow first round
 * there would be none. */
static void busy_is_unknown_when_the_end_cuts_it_off(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE "EXPECT SET k $x NX PX 30000\n" NIL SET_T
                                  "EXPECT PTTL k\n" UNDO_T
                                  "SEND +OK\\r\\n:29000\\r\\n:1\\r\\n\n" WORKS,
        'u', "timeout_ms=700&poll=1");
    assert_takes(nxl_lock_acquire(r.lock, 150), NXL_UNKNOWN, 690, 700);
    assert_contains(nxl_lock_errmsg(r.lock), "may have been applied");
    assert_not_held(r.lock);
    assert_works(r.lock);
    rig_close(&r);
}

static void busy_without_a_wait_is_said_at_once(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE SET_T NIL WORKS, 'u', "timeout_ms=1000");
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_BUSY, 100);
    assert_not_held(r.lock);
    assert_works(r.lock);
    rig_close(&r);
}

static void busy_is_waited_out(void **state)
{
    (void)state;
    struct rig r = rig_open("SERVE\n", 'u', "timeout_ms=100&poll=1");
    nxl_lock *holder = lock_of_name(r.client, "k", 150);
    assert_ends(nxl_lock_acquire(holder, 0), NXL_OK, 100);
    assert_takes(nxl_lock_acquire(r.lock, 60), NXL_BUSY, 50, 100);
    assert_takes(nxl_lock_acquire(r.lock, NXL_FOREVER), NXL_OK, 0, 150);
    assert_ends(nxl_lock_release(r.lock), NXL_OK, 100);
    nxl_lock_free(holder);
    rig_close(&r);
}

/* Silence is waited out as well, and nothing of it is left behind. */
static void silence_is_waited_out(void **state)
{
    (void)state;
    struct rig r = rig_ready(READY SET_T UNDO_T
        "DELAY 20\nSEND +OK\\r\\n:1\\r\\n\nSERVE\n",
        'u', "timeout_ms=50", false);
    assert_takes(nxl_lock_acquire(r.lock, NXL_FOREVER), NXL_OK, 45, 400);
    assert_string_not_equal(fake_taken(r.fake, "t"), nxl_lock_token(r.lock));
    assert_string_equal(fake_value(r.fake, "k"), nxl_lock_token(r.lock));
    int rc = nxl_lock_release(r.lock); /* may take longer than timeout_ms */
    assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_reply_of_every_step),
        cmocka_unit_test(late_reply_during_the_next_call),
        cmocka_unit_test(slow_reply_is_waited_for),
        cmocka_unit_test(acquire_ends_by_the_longer_of_both),
        cmocka_unit_test(acquire_does_not_wait_beyond_its_lease),
        cmocka_unit_test(extend_does_not_wait_beyond_its_lease),
        cmocka_unit_test(busy_is_unknown_when_the_end_cuts_it_off),
        cmocka_unit_test(busy_without_a_wait_is_said_at_once),
        cmocka_unit_test(busy_is_waited_out),
        cmocka_unit_test(silence_is_waited_out),
    };
    return cmocka_run_group_tests_name("deadlines", tests, NULL, NULL);
}
