/* SPDX-License-Identifier: MIT */
/* The connection is lost before or inside the reply to each operation, and a
 * new one can be had: what is repeated, what is undone, and what is said. */
#include "rig.h"

#define PARAMS "timeout_ms=2000&poll=1"
#define TOKEN "0b6c0c9e-0e0b-4b63-9d4c-1c1b1f8f7a11"
#define KILL_7 "EXPECT CLIENT KILL ID 7\n"
#define LOOK "EXPECT EVALSHA * 1 k *\n"
#define READ "EXPECT EVALSHA * 1 k\n"
#define BREAK "EXPECT EVALSHA * 1 k v\n"

static int try_acquire(nxl_lock *lock)
{
    return nxl_lock_acquire(lock, 0);
}

static int wait_acquire(nxl_lock *lock)
{
    return nxl_lock_acquire(lock, 5000);
}

static int extend(nxl_lock *lock)
{
    return nxl_lock_extend(lock, 0);
}

static int inspect(nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    int rc = nxl_lock_inspect(lock, &holder);
    assert_string_equal(holder.value, "v");
    assert_int_equal(holder.value_length, 1);
    assert_int_equal(holder.left_ms, 700);
    return rc;
}

static int adopt(nxl_lock *lock)
{
    int rc = nxl_lock_adopt(lock, TOKEN);
    assert_true(nxl_lock_held(lock));
    assert_between(nxl_lock_remaining_ms(lock), 4000, 4948);
    return rc;
}

static int breaking(nxl_lock *lock)
{
    nxl_holder holder = {.size = sizeof(holder), .value = "v"};
    holder.value_length = 1;
    return nxl_lock_break(lock, &holder);
}

/* What is sent, to the cut; how much of the reply comes before it; and what
 * follows on the next connection, also of the release of what is held then. */
static const struct row {
    const char *name;
    bool held; /* before */
    const char *sent, *part, *then;
    int (*call)(nxl_lock *lock);
    int result;
} rows[] = {
    {"acquire: unknown, and undone first", false, SET_T, "+O",
        KILL_7 UNDO_T "SEND :1\\r\\n:0\\r\\n\n", try_acquire, NXL_UNKNOWN},
    {"acquire: tried again while it waits, with a fresh token", false, SET_T,
        "+OK\\r",
        KILL_7 UNDO_T "EXPECT SET k $u NX PX 30000\nEXPECT PTTL k\n"
                      "SEND :1\\r\\n:1\\r\\n+OK\\r\\n:30000\\r\\n\n"
                      "EXPECT EVALSHA * 1 k $u\n" ONE,
        wait_acquire, NXL_OK},
    {"acquire: a grant without the second reply is undone", false,
        "EXPECT SET k $x NX PX 30000\n" NIL SET_T "EXPECT PTTL k\n" OK, ":",
        KILL_7 UNDO_T "EXPECT SET k $u NX PX 30000\nEXPECT PTTL k\n"
                      "SEND :1\\r\\n:1\\r\\n+OK\\r\\n:30000\\r\\n\n"
                      "EXPECT EVALSHA * 1 k $u\n" ONE,
        wait_acquire, NXL_OK},
    {"extend: lost, if it is not there then", true, EXTEND_T, ":3000",
        EXTEND_T "SEND :-2\\r\\n\n" DROP_T ZERO, extend, NXL_LOST},
    {"release: repeated", true, DROP_T, ":1", DROP_T ONE, nxl_lock_release,
        NXL_OK},
    {"release: unknown, if it is not there then", true, DROP_T, ":1",
        DROP_T ZERO, nxl_lock_release, NXL_UNKNOWN},
    {"inspect: repeated", false, LOOK, "*2\\r\\n$1\\r\\nw",
        LOOK "SEND *2\\r\\n$1\\r\\nv\\r\\n:700\\r\\n\n", inspect, NXL_OK},
    {"adopt: repeated", false, READ, "*2\\r\\n$36\\r\\n" TOKEN "\\r\\n",
        READ "SEND *2\\r\\n$36\\r\\n" TOKEN "\\r\\n:5000\\r\\n\n"
             "EXPECT EVALSHA * 1 k " TOKEN "\n" ONE,
        adopt, NXL_OK},
    {"break: repeated", false, BREAK, ":1\\r", BREAK ONE, breaking, NXL_OK},
    {"break: unknown, if it is not there then", false, BREAK, ":1\\r",
        BREAK ZERO, breaking, NXL_UNKNOWN},
};

static struct rig open_cut(const struct script *s, const struct cut *cut)
{
    return rig_open(s->text, cut->reset ? 't' : 'u', PARAMS);
}

/* Each attempt has a token of its own. */
static void assert_fresh(const struct rig *r)
{
    const char *first = fake_taken(r->fake, "t");
    const char *second = fake_taken(r->fake, "u");
    if (first && second)
        assert_string_not_equal(first, second);
    if (first)
        assert_string_not_equal(first, fake_taken(r->fake, "z"));
}

static void play(const struct row *row, const struct cut *cut)
{
    struct script s = {0};
    print_message("%s, %s\n", row->name, cut->name);
    add(&s, SHAKE "%s%s", row->held ? GRANT : "", row->sent);
    add_cut(&s, cut, row->part);
    add(&s, NEXT SHAKE "%s" WORKS, row->then);
    struct rig r = open_cut(&s, cut);
    if (row->held)
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 500);
    assert_ends(row->call(r.lock), row->result, 500);
    if (row->call == try_acquire)
        assert_contains(nxl_lock_errmsg(r.lock), "connection");
    if (row->result == NXL_OK && nxl_lock_held(r.lock))
        assert_ends(nxl_lock_release(r.lock), NXL_OK, 500);
    else if (row->result == NXL_LOST)
        assert_ends(nxl_lock_release(r.lock), NXL_LOST, 500);
    assert_not_held(r.lock);
    assert_works(r.lock);
    assert_fresh(&r);
    rig_close(&r);
}

static void each_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t j = 0; j < CUTS; j++)
            play(&rows[i], &cuts[j]);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation),
        cmocka_unit_test(extend_cut_is_repeated),
        cmocka_unit_test(release_cut_is_repeated_whole),
        cmocka_unit_test(release_cut_every_time_is_unknown),
    };
    return cmocka_run_group_tests_name("cut", tests, NULL, NULL);
}
