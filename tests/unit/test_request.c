/* SPDX-License-Identifier: MIT */
/*
 * Requests of one server: very many that are unanswered, and which cleanups are
 * in which list.
 * Single cases are in unit/scenes/request.scenes and server.scenes.
 */
#include "server_rig.h"

#include "support/alloc.h"

/* Everything is answered and cleaned up. */
static void assert_settled(void)
{
    assert_int_equal(rig_cleanups(), 0);
    assert_int_equal(rig.s.conn.dropped, 0);
    assert_false(server_unfinished(&rig.s, NEVER));
}

/* ------------------------------------------------------------------- limits */

#define FEW SERVER_DROPPED_FEW
/* The rig's time-out, too. */
#define PATIENCE (SERVER_PATIENCE_MS * NS_PER_MS)

static void give_up(unsigned i, bool undo)
{
    rig_submit(i);
    rig_push();
    rig_abandon(i, undo);
}

static void assert_refused(const char *words)
{
    struct request *r = rig_submit(FEW);
    rig_push();
    assert_silent();
    assert_ptr_equal(rig_turn(), r);
    rig_assert_fault(FAULT_TIMEOUT, false, words);
    rig_abandon(FEW, true);
}

/* A server that is not the first to answer: they are many, but young. Those
 * that were given up later have their time from the oldest on. */
static void many_at_once_are_no_matter(void **state)
{
    (void)state;
    rig_up();
    for (unsigned i = 0; i < 100; i++)
        give_up(i % FEW, false);
    rig.now += PATIENCE - 1;
    for (unsigned i = 0; i < 100; i++)
        give_up(i % FEW, false);
    assert_int_equal(rig.s.conn.dropped, 200);
    assert_int_equal(rig_count(rig_said(), "SET\r\n"), 200);
    rig.now += 1;
    assert_refused("200 earlier commands are unanswered");
    for (unsigned i = 0; i < 100; i++) /* then the oldest are young ones */
        assert_null(rig_reply("+OK\r\n"));
    give_up(0, false);
    assert_int_equal(rig_count(rig_said(), "SET\r\n"), 1);
    for (unsigned i = 0; i < 101; i++)
        assert_null(rig_reply("+OK\r\n"));
    assert_settled();
}

/* What a server that hangs costs has an end. */
static void the_most(void **state)
{
    (void)state;
    size_t said = 0;
    rig_up();
    for (unsigned i = 0; i < SERVER_DROPPED_MAX; i++) {
        give_up(i % FEW, false);
        said += rig_count(rig_said(), "SET\r\n");
    }
    assert_int_equal(said, SERVER_DROPPED_MAX);
    assert_refused("8192 earlier commands are unanswered");
    assert_int_equal(rig.s.conn.slots.count, SERVER_DROPPED_MAX);
    assert_null(rig_reply("+OK\r\n"));
    give_up(0, false);
    assert_said("SET\r\n");
}

/* ------------------------------------------------------------------ cleanups
 */

/* What is under way is not walked over: only what is due is in that list. */
static void what_is_under_way_is_not_due(void **state)
{
    (void)state;
    rig_up();
    for (unsigned i = 0; i < 4; i++) {
        rig_submit(i);
        rig_push();
        rig_abandon(i, true);
    }
    assert_int_equal(rig_cleanups(), 4);
    assert_true(list_empty(&rig.s.idle_cleaners));
    assert_true(server_unfinished(&rig.s, NEVER));
    assert_null(rig_reply("-ERR no\r\n-ERR no\r\n+OK\r\n-ERR no\r\n"));
    /* Nothing stands of the first; the second's acquire was done. */
    struct cleaner *d =
        list_entry(rig.s.idle_cleaners.prev, struct cleaner, idle_node);
    assert_ptr_equal(d->idle_node.next, &rig.s.idle_cleaners);
    assert_int_equal(d->cleanup.state, CLEANUP_IDLE);
    rig_hang_up();
    rig_turn();
    size_t due = 0;
    for (struct list *i = rig.s.idle_cleaners.next; i != &rig.s.idle_cleaners;
         i = i->next)
        due++;
    assert_int_equal(due, rig_cleanups());
    assert_true(due >= 2);
}

static void a_record_is_lent(void **state)
{
    (void)state;
    struct request *r = &rig.request[0], *other = &rig.request[1];
    struct cleaner *k = r->spare;
    spare_give_back(other);
    request_free(other); /* and with it one of those for others */
    assert_true(list_empty(&rig.spares));
    spare_give_back(r);
    assert_null(r->spare);
    assert_true(spare_reserve(other, slice_of("k2")));
    assert_ptr_equal(other->spare, k);
    assert_true(slice_equal(k->verb.key, slice_of("k2")));
    assert_true(list_empty(&rig.spares));

    /* A longer key gets another record in its place. */
    static const char key[] = "a key that has no room in a record for another";
    spare_give_back(other);
    assert_true(spare_reserve(r, slice_of(key)));
    assert_true(slice_equal(r->spare->verb.key, slice_of(key)));
    assert_true(list_empty(&rig.spares));
    request_free(other); /* it has none, and there is none */
    assert_non_null(r->spare);
}

/* What a request has cleaned up with is not there for others. */
static void a_record_in_use_is_not_lent(void **state)
{
    (void)state;
    struct request *r = &rig.request[0];
    rig_up();
    rig_submit(0);
    rig_push();
    assert_false(rig_abandon(0, true));
    assert_int_equal(rig_cleanups(), 1);
    spare_give_back(r);
    assert_true(list_empty(&rig.spares));
    request_free(r);
    assert_int_equal(rig_cleanups(), 1);
}

/* What a bare GETSET wrote may hold another one's lock: never deleted. */
static void what_must_not_be_deleted_stays_in_use(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_push();
    assert_false(rig_abandon(0, false));
    rig.request[0].acquire_cleaner->exchange.written = WRITTEN_OVER;
    server_clean_up(&rig.request[0], rig.verb[0].token, RIG_TTL_MS, 0, rig.now);
    assert_true(rig.request[0].acquire_cleaner->cleanup.in_use);
}

/* Without memory the record for the release is not given away; but it is when
 * the connection is lost, for then there may be no release. */
static void without_memory_the_release_comes_first(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_submit(1);
    rig_push();
    alloc_fail_from(1);
    assert_false(rig_abandon(0, false));
    rig_hang_up();
    assert_ptr_equal(rig_turn(), &rig.request[1]);
    assert_true(alloc_stop());
    assert_null(rig.request[0].acquire_cleaner);
    assert_non_null(rig.request[0].spare);
    assert_non_null(rig.request[1].acquire_cleaner);
    assert_null(rig.request[1].spare);
}

/* A cleanup that is not tried again before the end keeps nobody. */
static void a_cleanup_of_later_is_not_awaited(void **state)
{
    (void)state;
    rig_unlisten();
    server_clean_up(&rig.request[0], rig.verb[0].token, RIG_TTL_MS, 0, rig.now);
    rig_push();
    assert_int_equal(rig.s.state, SERVER_DOWN);
    assert_true(rig.s.not_before > rig.now);
    assert_true(server_unfinished(&rig.s, rig.s.not_before + 1));
    assert_false(server_unfinished(&rig.s, rig.s.not_before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(many_at_once_are_no_matter),
        rig_test(the_most),
        rig_test(what_is_under_way_is_not_due),
        rig_test(a_record_is_lent),
        rig_test(a_record_in_use_is_not_lent),
        rig_test(what_must_not_be_deleted_stays_in_use),
        rig_test(without_memory_the_release_comes_first),
        rig_test(a_cleanup_of_later_is_not_awaited),
    };
    return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
