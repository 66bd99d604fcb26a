/* SPDX-License-Identifier: MIT */
/*
 * Several names that are acquired by one command with one reply: whatever the
 * reply, each name is granted, asked for again, or given back, and no reply is
 * taken for another one's.
 */
#include "rig.h"

#define ASK "EXPECT SET a $t NX PX 30000\n" FOLLOWERS
#define FOLLOWERS "EXPECT EVALSHA * 4 a b c d $t 30000\n"
#define SET(name) "EXPECT SET " name " $t NX PX 30000\n"
#define BEHIND(names) "EXPECT EVALSHA * " names " $t 30000\n"
#define AS_TEXT(names) "EXPECT EVAL * 2 " names " $t 30000\n"
#define DROP(name) "EXPECT EVALSHA * 1 " name " $t\n"
#define UNDO(name) "EXPECT EVAL * 1 " name " $t\n"
#define DROP_ALL DROP("a") DROP("b") DROP("c") DROP("d") ONE ONE ONE ONE

struct row {
    const char *name, *script;
    int result;
};

/* Each row ends with a cycle of another lock, for which the replies must still
 * be in step. */
static const struct row rows[] = {
    {"all are granted", ASK OK "SEND :3\\r\\n\n" DROP_ALL, NXL_OK},
    {"the reply comes in pieces",
        ASK OK "SEND-PART :\nDELAY 20\nSEND 3\\r\\n\n" DROP_ALL, NXL_OK},
    {"the second was taken by another meanwhile, and given back",
        ASK OK ZERO SET("b") OK SET("c") BEHIND("2 c d") OK ONE DROP_ALL,
        NXL_OK},
    {"the third is busy", ASK OK ONE SET("c") NIL UNDO("a") UNDO("b") ONE ONE,
        NXL_BUSY},
    {"the first is busy: the others are given up before it is read that they "
     "were not granted",
        ASK "SEND $-1\\r\\n:0\\r\\n\n" UNDO("b") UNDO("c") UNDO("d")
            ZERO ZERO ZERO,
        NXL_BUSY},
    {"the script is not loaded",
        ASK OK "SEND -NOSCRIPT No matching script\\r\\n\n" AS_TEXT("a b")
            AS_TEXT("b c") AS_TEXT("c d") ONE ONE ONE DROP_ALL,
        NXL_OK},
    {"the script is not loaded, and one is busy",
        ASK OK "SEND -NOSCRIPT No matching script\\r\\n\n" AS_TEXT("a b")
            AS_TEXT("b c") AS_TEXT("c d") ONE ZERO ZERO SET("c") NIL UNDO("a")
                UNDO("b") ONE ONE,
        NXL_BUSY},
    {"the script is refused",
        ASK OK "SEND -NOPERM no\\r\\n\n" SET("b") OK SET("c") BEHIND("2 c d") OK
        "SEND -NOPERM no\\r\\n\n" SET("d") OK DROP_ALL,
        NXL_OK},
};

static nxl_lock *four_names(nxl_client *client)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    nxl_lock *lock;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = 30000;
    assert_int_equal(
        nxl_lock_new_many(&lock, client, names, NULL, 4, &options), NXL_OK);
    return lock;
}

/* Ends the test with the row, what is wrong, and all commands. */
static void wrong(struct rig *r, const struct row *row, const char *what)
{
    char *script = strdup(what);
    const char *play = fake_join_within(r->fake, 1000);
    fail_msg("%s: %s; the play: %s\n%s", row->name, script,
        play ? play : "as written", fake_log(r->fake));
}

static void play(const struct row *row)
{
    struct script s = {0};
    add(&s, "%s%s%s", READY WORKS, row->script,
        "EXPECT SET k $y NX PX 30000\n" OK "EXPECT EVALSHA * 1 k $y\n" ONE);
    struct rig r = rig_ready(s.text, 'u', "timeout_ms=5000", false);
    nxl_lock *lock = four_names(r.client);
    assert_works(r.lock);
    if (nxl_lock_acquire(lock, 0) != row->result)
        wrong(&r, row, nxl_lock_errmsg(lock));
    if (row->result == NXL_OK && nxl_lock_release(lock) != NXL_OK)
        wrong(&r, row, nxl_lock_errmsg(lock));
    if (nxl_lock_acquire(r.lock, 0) != NXL_OK ||
        nxl_lock_release(r.lock) != NXL_OK)
        wrong(&r, row, nxl_lock_errmsg(r.lock));
    nxl_lock_free(lock);
    rig_close(&r);
}

static void replies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        play(&rows[i]);
}

/* ------------------------------------------------------- no reply is had */

static const struct row cut_rows[] = {
    {"cut before any reply", ASK "CLOSE\n", NXL_UNKNOWN},
    {"cut behind the first reply", ASK OK "CLOSE\n", NXL_UNKNOWN},
    {"cut inside the reply", ASK OK "SEND-PART :\nCLOSE\n", NXL_UNKNOWN},
    {"a reply that is no number", ASK OK "SEND +OK\\r\\n\nEXPECT-CLOSE\n",
        NXL_UNKNOWN},
    {"nil", ASK OK NIL "EXPECT-CLOSE\n", NXL_UNKNOWN},
    {"more names than were asked for", ASK OK "SEND :4\\r\\n\nEXPECT-CLOSE\n",
        NXL_UNKNOWN},
    {"a negative number", ASK OK "SEND :-1\\r\\n\nEXPECT-CLOSE\n", NXL_UNKNOWN},
};

/* Each name that may have been granted is given back over a new connection. */
static void assert_all_undone(struct rig *r, const struct row *row)
{
    static const char *const names[] = {" 1 a ", " 1 b ", " 1 c ", " 1 d "};
    for (unsigned i = 0; i < 4; i++) {
        int64_t end = test_now_ms() + 10000;
        const char *undo;
        do {
            const char *second = strstr(fake_log(r->fake), "\n1 ");
            undo = second ? strstr(second, names[i]) : NULL;
            usleep(1000);
        } while (!undo && test_now_ms() < end);
        if (!undo)
            wrong(r, row, names[i]);
    }
}

static void no_reply(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cut_rows) / sizeof(cut_rows[0]); i++) {
        const struct row *row = &cut_rows[i];
        struct script s = {0};
        add(&s, "%s%s%s", READY WORKS, row->script, "ACCEPT *\nSERVE\n");
        struct rig r = rig_ready(s.text, 't', "timeout_ms=5000", false);
        nxl_lock *lock = four_names(r.client);
        assert_works(r.lock);
        if (nxl_lock_acquire(lock, 0) != row->result || nxl_lock_held(lock))
            wrong(&r, row, nxl_lock_errmsg(lock));
        nxl_lock_free(lock);
        assert_works(r.lock);
        assert_all_undone(&r, row);
        rig_close(&r);
    }
}

/* --------------------------------------------------------------- cancelled */

static void cycle_by_loop(const struct rig *r)
{
    assert_int_equal(acquire_by_loop(r->client, r->lock, 0), NXL_OK);
    assert_int_equal(nxl_lock_release_start(r->lock), NXL_PENDING);
    assert_int_equal(event_result(r->client, r->lock), NXL_OK);
}

/* While the reply is awaited, the caller gives up. All are undone behind the
 * command, whatever the reply says then. */
static void cancelled(void **state)
{
    (void)state;
    static const char *const answers[] = {
        OK "SEND :3\\r\\n\n", OK ONE, NIL ZERO};
    for (unsigned i = 0; i < 3; i++) {
        struct script s = {0};
        add(&s, "%s%s%s%s%s", SHAKE WORKS ASK "TELL asked\n",
            UNDO("a") UNDO("b") UNDO("c") UNDO("d"), answers[i],
            ONE ZERO ZERO ZERO "EXPECT SET k $y NX PX 30000\n" OK,
            "EXPECT EVALSHA * 1 k $y\n" ONE);
        struct rig r = rig_open(s.text, 'u', "timeout_ms=5000");
        nxl_lock *lock = four_names(r.client);
        cycle_by_loop(&r);
        assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
        turn(r.client, 0);
        assert_true(fake_await(r.fake, "asked"));
        nxl_lock_cancel(lock);
        assert_int_equal(event_result(r.client, lock), NXL_CANCELLED);
        cycle_by_loop(&r);
        nxl_lock_free(lock);
        rig_close(&r);
    }
}

/* And then the connection is lost as well: what is on its way may be carried
 * out later, so it is killed first, and then undone; for each name. */
static void cancelled_and_cut(void **state)
{
    (void)state;
    struct script s = {0};
    add(&s, "%s%s%s", SHAKE WORKS ASK "TELL asked\n",
        UNDO("a") UNDO("b") UNDO("c") UNDO("d"), "CLOSE\nACCEPT *\nSERVE\n");
    struct rig r = rig_open(s.text, 'u', "timeout_ms=5000");
    nxl_lock *lock = four_names(r.client);
    cycle_by_loop(&r);
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    turn(r.client, 0);
    assert_true(fake_await(r.fake, "asked"));
    nxl_lock_cancel(lock);
    assert_int_equal(event_result(r.client, lock), NXL_CANCELLED);
    turn_until(r.client, fake_count(r.fake, 1, "EVAL") >= 4);
    /* CLIENT ID of the handshake, and one CLIENT KILL for each. */
    assert_int_equal(fake_count(r.fake, 1, "CLIENT"), 1 + 4);
    nxl_lock_free(lock);
    rig_close(&r);
}

/* ------------------------------------------------------ the socket is full */

#define BIG 65536
#define MANY 12

/* The socket takes no more: they are formatted in front of what follows. */
static void fill(nxl_client *client, nxl_lock **big)
{
    char name[BIG];
    for (int i = 0; i < MANY; i++) {
        nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
        options.name_length = BIG;
        memset(name, 'a' + i, BIG);
        assert_int_equal(nxl_lock_new(&big[i], client, name, &options), NXL_OK);
        assert_int_equal(nxl_lock_acquire_start(big[i], 0), NXL_PENDING);
    }
}

static void close_full(struct rig *r, nxl_lock **big, nxl_lock *lock)
{
    for (int i = 0; i < MANY; i++)
        nxl_lock_free(big[i]);
    nxl_lock_free(lock);
    rig_close(r);
}

/* Formatted behind a release that does not leave before its lease is over: the
 * release is not sent then, for another process may have adopted the token. */
static void release_in_front(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE WORKS "EXPECT SET s $s NX PX 1000\n" OK
                                        "WAIT-FOR read\nSERVE\n",
        'u', "timeout_ms=60000");
    nxl_lock *big[MANY], *lock = four_names(r.client);
    nxl_lock *small = lock_of_name(r.client, "s", 1000);
    cycle_by_loop(&r);
    assert_int_equal(acquire_by_loop(r.client, small, 0), NXL_OK);
    fill(r.client, big);
    assert_int_equal(nxl_lock_release_start(small), NXL_PENDING);
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    assert_int_equal(event_result(r.client, small), NXL_LOST);
    fake_signal(r.fake, "read");
    for (int i = 0; i < MANY + 1; i++) /* SERVE has no script of two keys */
        (void)event_result(r.client, NULL);
    assert_non_null(strstr(fake_log(r.fake), "4 a b c d"));
    assert_null(strstr(fake_log(r.fake), " 1 s "));
    nxl_lock_free(small);
    close_full(&r, big, lock);
}

/* Cancelled before it leaves: it leaves nonetheless, and is undone. */
static void cancelled_while_full(void **state)
{
    (void)state;
    struct rig r =
        rig_open(SHAKE WORKS "WAIT-FOR read\nSERVE\n", 'u', "timeout_ms=60000");
    nxl_lock *big[MANY], *lock = four_names(r.client);
    cycle_by_loop(&r);
    fill(r.client, big);
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    turn(r.client, 0);
    nxl_lock_cancel(lock);
    assert_int_equal(event_result(r.client, lock), NXL_CANCELLED);
    fake_signal(r.fake, "read");
    for (int i = 0; i < MANY; i++)
        assert_int_equal(event_result(r.client, NULL), NXL_OK);
    cycle_by_loop(&r);
    assert_null(strstr(fake_log(r.fake), "SET a "));
    assert_non_null(strstr(fake_log(r.fake), "4 a b c d"));
    assert_non_null(strstr(fake_log(r.fake), " 1 b "));
    assert_non_null(strstr(fake_log(r.fake), " 1 c "));
    assert_non_null(strstr(fake_log(r.fake), " 1 d "));
    close_full(&r, big, lock);
}

/* The connection is lost before it leaves: it is sent over the next one, and
 * there is nothing to be undone before. */
static void lost_while_full(void **state)
{
    (void)state;
    struct rig r =
        rig_open(SHAKE WORKS "WAIT-FOR close\nCLOSE\n" NEXT "SERVE\n", 'u',
            "timeout_ms=60000");
    nxl_lock *big[MANY], *lock = four_names(r.client);
    const char *log;
    cycle_by_loop(&r);
    fill(r.client, big);
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    turn(r.client, 0);
    fake_signal(r.fake, "close");
    for (int i = 0; i < MANY + 1; i++)
        (void)event_result(r.client, NULL);
    log = fake_log(r.fake);
    const char *set = strstr(log, "\n1 SET a "),
               *joined = strstr(log, "4 a b c");
    assert_true(set && joined && set < joined);
    for (const char *name = "bcd"; *name; name++) {
        const char key[] = {' ', '1', ' ', *name, ' ', '\0'};
        const char *undo = strstr(log, key);
        assert_true(!undo || undo > joined);
    }
    close_full(&r, big, lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies),
        cmocka_unit_test(no_reply),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(cancelled_and_cut),
        cmocka_unit_test(release_in_front),
        cmocka_unit_test(cancelled_while_full),
        cmocka_unit_test(lost_while_full),
    };
    return cmocka_run_group_tests_name("joined", tests, NULL, NULL);
}
