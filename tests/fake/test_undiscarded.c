/* SPDX-License-Identifier: MIT */
/*
 * A transaction that the server does not let us discard: all that follows would
 * be queued, so nothing follows on that connection. What other refusals mean is
 * in unit/test_classify.c, unit/test_message.c and unit/scenes/request.scenes.
 */
#include "rig.h"

#define PARAMS "timeout_ms=2000"

#define WATCH_K                                                                \
    "EXPECT WATCH k\nEXPECT GETRANGE k 0 511\nEXPECT PTTL k\n"                 \
    "EXPECT EXISTS k\nEXPECT MULTI\n"

#define TAKES_NONE "SEND -NOPERM first\\r\\n\n"
#define OPENS(value)                                                           \
    WATCH_K "SEND +OK\\r\\n\nBULK " value "\n"                                 \
            "SEND :20000\\r\\n:1\\r\\n+OK\\r\\n\n"
#define KEEPS                                                                  \
    "EXPECT DISCARD\nSEND -NOPERM not to discard\\r\\n\nEXPECT-CLOSE\n" NEXT

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
        cmocka_unit_test(what_cannot_be_discarded_ends_the_connection),
        cmocka_unit_test(nor_does_a_debt_leave_one_open),
    };
    return cmocka_run_group_tests_name("undiscarded", tests, NULL, NULL);
}
