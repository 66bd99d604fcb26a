/* SPDX-License-Identifier: MIT */
/* The connection is lost before or inside the reply to each operation, and a
 * new one can be had: what is repeated, what is undone, and what is said. */
#include "rig.h"

#define PARAMS "timeout_ms=2000&poll=1"

static struct rig open_cut(const struct script *s, const struct cut *cut)
{
    return rig_open(s->text, cut->reset ? 't' : 'u', PARAMS);
}

/* ---------------------------------------------------------------- acquire */

static void acquire_cut_is_unknown_and_undone_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE SET_T);
        add_cut(&s, &cuts[i], "+O");
        add(&s, NEXT SHAKE "EXPECT CLIENT KILL ID 7\n" UNDO_T
                           "SEND :1\\r\\n:0\\r\\n\n" WORKS);
        struct rig r = open_cut(&s, &cuts[i]);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 100);
        assert_contains(nxl_lock_errmsg(r.lock), "connection");
        assert_not_held(r.lock);
        assert_works(r.lock);
        assert_string_not_equal(
            fake_taken(r.fake, "t"), fake_taken(r.fake, "z"));
        rig_close(&r);
    }
}

/* While the wait lasts it is tried again, with a fresh token. */
static void acquire_cut_is_tried_again_while_it_waits(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE SET_T);
        add_cut(&s, &cuts[i], "+OK\\r");
        add(&s, NEXT SHAKE "EXPECT CLIENT KILL ID 7\n" UNDO_T
                           "EXPECT SET k $u NX PX 30000\nEXPECT PTTL k\n"
                           "SEND :1\\r\\n:1\\r\\n+OK\\r\\n:30000\\r\\n\n"
                           "EXPECT EVALSHA * 1 k $u\n" ONE);
        struct rig r = open_cut(&s, &cuts[i]);
        assert_ends(nxl_lock_acquire(r.lock, 5000), NXL_OK, 500);
        assert_string_equal(nxl_lock_token(r.lock), fake_taken(r.fake, "u"));
        assert_string_not_equal(
            fake_taken(r.fake, "t"), fake_taken(r.fake, "u"));
        assert_ends(nxl_lock_release(r.lock), NXL_OK, 500);
        rig_close(&r);
    }
}

/* The first reply said OK; the time that was asked for as well did not come.
 * Nothing was handed over, so it must not stay. */
static void a_grant_without_the_second_reply_is_undone(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE "EXPECT SET k $x NX PX 30000\n" NIL SET_T
                      "EXPECT PTTL k\n" OK);
        add_cut(&s, &cuts[i], ":");
        add(&s, NEXT SHAKE "EXPECT CLIENT KILL ID 7\n" UNDO_T
                           "SEND :1\\r\\n:1\\r\\n\nSERVE\n");
        struct rig r = open_cut(&s, &cuts[i]);
        assert_ends(nxl_lock_acquire(r.lock, 5000), NXL_OK, 500);
        assert_string_not_equal(
            fake_taken(r.fake, "t"), nxl_lock_token(r.lock));
        rig_close(&r);
    }
}

/* ----------------------------------------------------------------- extend */

/* Repeated with the same token; the time of the first send counts, which was
 * 100 ms before the second. */
static void extend_cut_is_repeated(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE GRANT EXTEND_T "TELL came\nDELAY 100\n");
        add_cut(&s, &cuts[i], ":3");
        add(&s, NEXT SHAKE EXTEND_T "SEND :30000\\r\\n\n" DROP_T ONE WORKS);
        struct rig r = open_cut(&s, &cuts[i]);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 500);
        uint64_t old = nxl_lock_deadline(r.lock), before = nxl_now_ns();
        assert_takes(nxl_lock_extend(r.lock, 0), NXL_OK, 95, 500);
        uint64_t deadline = nxl_lock_deadline(r.lock);
        const int64_t lease = 30000 - 302; /* less 1 % and 2 ms */
        assert_true(deadline > old);
        assert_between((deadline - before) / 1000000, lease, lease + 50);
        assert_ends(nxl_lock_release(r.lock), NXL_OK, 500);
        assert_works(r.lock);
        rig_close(&r);
    }
}

static void extend_cut_and_then_not_there_is_lost(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE GRANT EXTEND_T);
        add_cut(&s, &cuts[i], ":3000");
        add(&s, NEXT SHAKE EXTEND_T "SEND :-2\\r\\n\n" DROP_T ZERO WORKS);
        struct rig r = open_cut(&s, &cuts[i]);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 500);
        assert_ends(nxl_lock_extend(r.lock, 0), NXL_LOST, 500);
        assert_not_held(r.lock);
        assert_ends(nxl_lock_release(r.lock), NXL_LOST, 500);
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* ---------------------------------------------------------------- release */

static void release_cut_is_repeated(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * CUTS; i++) {
        const struct cut *cut = &cuts[i / 2];
        bool deleted = i % 2; /* by the second try */
        struct script s = {0};
        add(&s, SHAKE GRANT DROP_T);
        add_cut(&s, cut, ":1");
        add(&s, NEXT SHAKE DROP_T "%s" WORKS, deleted ? ONE : ZERO);
        struct rig r = open_cut(&s, cut);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 500);
        assert_ends(
            nxl_lock_release(r.lock), deleted ? NXL_OK : NXL_UNKNOWN, 500);
        assert_not_held(r.lock);
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* The new server process does not know the script. */
static void release_cut_is_repeated_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE GRANT DROP_T);
        add_cut(&s, &cuts[i], ":");
        add(&s, NEXT SHAKE DROP_T
            "SEND -NOSCRIPT No matching script.\\r\\n\n" UNDO_T);
        add_cut(&s, &cuts[i], ":");
        add(&s, NEXT SHAKE DROP_T ONE WORKS);
        struct rig r = open_cut(&s, &cuts[i]);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 500);
        assert_ends(nxl_lock_release(r.lock), NXL_OK, 500);
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* Cut as often as it is tried: unknown well before the deadline, and what is
 * owed is paid on the next connection. */
static void release_cut_every_time_is_unknown(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE GRANT);
        for (int j = 0; j < 3; j++) {
            add(&s, DROP_T);
            add_cut(&s, &cuts[i], ":");
            add(&s, NEXT SHAKE);
        }
        add(&s, UNDO_T ONE WORKS);
        struct rig r = open_cut(&s, &cuts[i]);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 500);
        assert_ends(nxl_lock_release(r.lock), NXL_UNKNOWN, 1000);
        assert_not_held(r.lock);
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* --------------------------------------------------------- looking, taking */

static void inspect_cut_is_repeated(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE "EXPECT EVALSHA * 1 k *\n");
        add_cut(&s, &cuts[i], "*2\\r\\n$1\\r\\nw");
        add(&s, NEXT SHAKE "EXPECT EVALSHA * 1 k *\n"
                           "SEND *2\\r\\n$1\\r\\nv\\r\\n:700\\r\\n\n" WORKS);
        struct rig r = open_cut(&s, &cuts[i]);
        nxl_holder holder = NXL_HOLDER_INIT;
        assert_ends(nxl_lock_inspect(r.lock, &holder), NXL_OK, 500);
        assert_string_equal(holder.value, "v");
        assert_int_equal(holder.value_length, 1);
        assert_int_equal(holder.left_ms, 700);
        assert_works(r.lock);
        rig_close(&r);
    }
}

#define TOKEN "0b6c0c9e-0e0b-4b63-9d4c-1c1b1f8f7a11"

static void adopt_cut_is_repeated(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE "EXPECT EVALSHA * 1 k\n");
        add_cut(&s, &cuts[i], "*2\\r\\n$36\\r\\n" TOKEN "\\r\\n");
        add(&s, NEXT SHAKE "EXPECT EVALSHA * 1 k\n"
                           "SEND *2\\r\\n$36\\r\\n" TOKEN "\\r\\n:5000\\r\\n\n"
                           "EXPECT EVALSHA * 1 k " TOKEN "\n" ONE WORKS);
        struct rig r = open_cut(&s, &cuts[i]);
        assert_ends(nxl_lock_adopt(r.lock, TOKEN), NXL_OK, 500);
        assert_true(nxl_lock_held(r.lock));
        assert_between(nxl_lock_remaining_ms(r.lock), 4000, 4948);
        assert_ends(nxl_lock_release(r.lock), NXL_OK, 500);
        assert_works(r.lock);
        rig_close(&r);
    }
}

static void break_cut_is_repeated(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * CUTS; i++) {
        bool removed = i % 2;
        struct script s = {0};
        add(&s, SHAKE "EXPECT EVALSHA * 1 k v\n");
        add_cut(&s, &cuts[i / 2], ":1\\r");
        add(&s, NEXT SHAKE "EXPECT EVALSHA * 1 k v\n%s" WORKS,
            removed ? ONE : ZERO);
        struct rig r = open_cut(&s, &cuts[i / 2]);
        nxl_holder holder = {.size = sizeof(holder), .value = "v"};
        holder.value_length = 1;
        assert_ends(nxl_lock_break(r.lock, &holder),
            removed ? NXL_OK : NXL_UNKNOWN, 500);
        assert_works(r.lock);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acquire_cut_is_unknown_and_undone_first),
        cmocka_unit_test(acquire_cut_is_tried_again_while_it_waits),
        cmocka_unit_test(a_grant_without_the_second_reply_is_undone),
        cmocka_unit_test(extend_cut_is_repeated),
        cmocka_unit_test(extend_cut_and_then_not_there_is_lost),
        cmocka_unit_test(release_cut_is_repeated),
        cmocka_unit_test(release_cut_is_repeated_whole),
        cmocka_unit_test(release_cut_every_time_is_unknown),
        cmocka_unit_test(inspect_cut_is_repeated),
        cmocka_unit_test(adopt_cut_is_repeated),
        cmocka_unit_test(break_cut_is_repeated),
    };
    return cmocka_run_group_tests_name("cut", tests, NULL, NULL);
}
