/* SPDX-License-Identifier: MIT */
/*
 * Waiting in line: histories that are too rare for seeds to find, in worlds
 * that a test plays itself. Each is harmless, and harmful without its
 * safeguard. tests/guards/table.py reads the lines that are printed here.
 */
#include "support/test.h"

#include "sim/world.h"

enum { TTL_MS = 1000, LONGER_MS = 4000 };

static struct world world;

static const struct setting in_line = {
    .processes = 3,
    .workers = 1,
    .names = 1,
    .min_ttl_ms = 60,
    .max_ttl_ms = 1500,
    .drift_ppm = 10000,
    .timeout_ns = 500 * MS,
    .patience_ns = 10000 * MS,
    .travel_ns = MS,
    .slow_ns = 300 * MS,
    .linger_ns = 1000 * MS,
    .think_ns = MS,
    .kill_allowed = true,
    .in_line = 100,
};

static struct worker *holder, *waiter, *other;

static void pass_ms(uint64_t ms)
{
    world_pass(&world, ms * MS);
}

/* So long that everything that is not prevented has happened. */
#define SOON(condition)                                                        \
    do {                                                                       \
        for (unsigned ms_ = 0; !(condition) && ms_ < 5000; ms_++)              \
            pass_ms(1);                                                        \
        assert_true(condition);                                                \
    } while (0)

static void begin(const struct setting *setting)
{
    struct options options = OPTIONS_INIT;
    options.servers = 1;
    options.troubles = 0;
    options.setting = setting;
    world_start(&world, &options);
    holder = &world.process[0].worker[0];
    waiter = &world.process[1].worker[0];
    other = &world.process[2].worker[0];
}

static void acquire(struct worker *k, uint32_t ttl_ms)
{
    struct wish wish = {.ttl_ms = ttl_ms, .max_hold_ns = NEVER};
    k->state = PROGRAM_WAITS;
    handle_wish(&world, k, &wish);
    handle_acquire(&world, k, NEVER);
    process_turn(&world, k->process);
}

/* One of two permits. */
static void take(struct worker *k, uint32_t ttl_ms)
{
    struct wish wish = {
        .ttl_ms = ttl_ms, .max_hold_ns = NEVER, .share = {1, 2}};
    k->state = PROGRAM_WAITS;
    handle_wish(&world, k, &wish);
    handle_acquire(&world, k, NEVER);
    process_turn(&world, k->process);
}

/* Its program looks whether it has the lock, and believes what it is told. */
static bool has_it(struct worker *k)
{
    if (k->life.running || k->life.call != CALL_ACQUIRE ||
        handle_result(&world, k) != LIFE_OK)
        return false;
    if (!k->holding) {
        k->holding = true;
        k->state = PROGRAM_HOLDS;
        checker_granted(&world, k);
    }
    return true;
}

static void release(struct worker *k)
{
    k->holding = false;
    k->state = PROGRAM_WAITS;
    assert_true(handle_release(&world, k));
    process_turn(&world, k->process);
    SOON(!k->life.running);
    k->state = PROGRAM_IDLE;
}

static void wait_in_line(struct worker *k)
{
    acquire(k, TTL_MS);
    SOON(life_in_line(&k->life) && k->line.has_waited &&
         k->process->subscription.state == SUBSCRIPTION_UP);
    pass_ms(20);
}

/* What is broken in the end; 0: nothing. */
static unsigned finish(void)
{
    unsigned broken = world.checker.broken;
    if (broken)
        print_message("%s\n", world.checker.why);
    world_finish(&world);
    return broken;
}

/* ------------------------------------------------- a server that goes back */

/* The waiter's token is handed the lock, and its message is held up. The server
 * restarts from an older file, where the token is in line. Another client gets
 * the lock, then the waiter is answered that it waits, then comes the message:
 * it speaks of a grant that is no more. Nobody may count listeners, or the
 * waiter would know by then that its connection for messages is over. */
static unsigned message_of_a_grant_that_was_undone(void)
{
    begin(&in_line);
    struct model_server *s = &world.server[0];
    s->denied = DENIED_COUNT;
    s->denied_until = NEVER;
    handle_inspect(&world, other); /* it connects */
    process_turn(&world, other->process);
    acquire(holder, TTL_MS);
    SOON(has_it(holder));
    wait_in_line(waiter);
    server_save(s);

    struct conn *messages = waiter->process->subscription.conn;
    messages->held_up_until = world.now + 60000 * MS;
    release(holder);
    assert_int_equal(server_value(&world, s, 0), waiter->token);
    conn_drop(&world, messages, true);
    server_crash(&world, s, RESTART_REWOUND, 2 * MS);
    pass_ms(5);
    handle_inspect(&world, other); /* it judges the server first */
    process_turn(&world, other->process);
    pass_ms(100);
    const struct eligibility *e = &other->process->link[0].eligibility;
    assert_false(eligibility_votes(e, world.now));
    SOON(eligibility_votes(e, world.now));
    acquire(other, TTL_MS);
    SOON(has_it(other));
    const struct line *line = &waiter->line;
    SOON(line->sent_at > other->life.lease.granted_at);
    messages->held_up_until = 0;
    alarm_set(&world, &messages->down.alarm, world.now);
    for (unsigned ms = 0; ms < 200; ms++) {
        has_it(waiter);
        pass_ms(1);
    }
    return finish();
}

/* --------------------------------------------------------- a STAY that is late
 */

/* The waiter's STAY is on its way when the connection is lost. It gets the lock
 * by the next one, and makes the lease longer. Then the first one arrives. */
static unsigned late_stay(void)
{
    struct setting setting = in_line;
    struct request *r;
    setting.max_ttl_ms = LONGER_MS;
    begin(&setting);
    struct model_server *s = &world.server[0];
    acquire(holder, TTL_MS);
    SOON(has_it(holder));
    wait_in_line(waiter);
    r = &waiter->request[TRACK_CALL][0];
    s->slow_until = world.now + 1000 * MS;
    SOON(r->state == REQUEST_SENT && r->message.kind == MESSAGE_STAY);
    s->slow_until = world.now;
    struct conn *old = waiter->process->link[0].conn;
    link_lost(&world, &waiter->process->link[0], 1000 * MS);
    /* What is on its way there takes longer than all that follows. */
    list_entry(old->up.messages.next, struct message, node)->arrives =
        world.now + 400 * MS;
    alarm_set(&world, &old->up.alarm, world.now + 400 * MS);
    process_turn(&world, waiter->process);
    release(holder);
    SOON(has_it(waiter));
    waiter->state = PROGRAM_WAITS;
    assert_true(handle_extend(&world, waiter, LONGER_MS));
    process_turn(&world, waiter->process);
    SOON(!waiter->life.running);
    assert_int_equal(handle_result(&world, waiter), LIFE_OK);
    waiter->state = PROGRAM_HOLDS;
    checker_granted(&world, waiter);
    acquire(other, TTL_MS);
    for (unsigned ms = 0; ms < LONGER_MS; ms++) {
        has_it(other);
        pass_ms(1);
    }
    return finish();
}

/* ---------------------------------------- two connections that are lost */

/* The connection is lost over which a permit is asked for, and so is the next
 * one, over which that is to be undone. Then the request arrives, which is
 * later than all of it. */
static unsigned late_take(void)
{
    struct setting setting = in_line;
    setting.permits = true;
    setting.pause_every_ms = HOLDERS_PAUSE_EVERY_MS;
    begin(&setting);
    struct link *link = &holder->process->link[0];
    handle_inspect(&world, holder); /* it connects */
    process_turn(&world, holder->process);
    SOON(!holder->life.running);
    take(holder, LONGER_MS);
    assert_int_equal(holder->request[TRACK_CALL][0].state, REQUEST_SENT);
    struct conn *first = link->conn;
    link_lost(&world, link, 1000 * MS);
    list_entry(first->up.messages.next, struct message, node)->arrives =
        world.now + 400 * MS;
    alarm_set(&world, &first->up.alarm, world.now + 400 * MS);
    handle_cancel(&world, holder);
    process_turn(&world, holder->process);
    SOON(link->state == LINK_UP && !list_empty(&link->slots));
    link_lost(&world, link, 0);
    process_turn(&world, holder->process);
    holder->state = PROGRAM_IDLE;
    pass_ms(1000);
    assert_true(list_empty(&link->cleaners));
    return finish();
}

/* ------------------------------------------- a lease that is over comes again
 */

/* A grant is cancelled, and its lease is over when the server reads that,
 * because it stood still. Then its clock is set back. */
static unsigned clock_set_back(void)
{
    struct setting setting = in_line;
    setting.permits = true;
    setting.pause_every_ms = HOLDERS_PAUSE_EVERY_MS;
    begin(&setting);
    struct model_server *s = &world.server[0];
    take(other, LONGER_MS);
    SOON(has_it(other));
    take(holder, TTL_MS);
    while (!server_has(&world, s, 0, holder->token))
        world_pass(&world, MS / 100);
    assert_true(holder->life.running); /* its answer is on the way */
    s->stopped_until = world.now + (TTL_MS + 20) * MS;
    handle_cancel(&world, holder);
    holder->state = PROGRAM_IDLE;
    process_turn(&world, holder->process);
    SOON(list_empty(&holder->process->link[0].cleaners));
    server_step_clock(&world, s, -(int64_t)(500 * MS));
    pass_ms(1);
    return finish();
}

/* ---------------------------------------------------------------- the table */

static void assert_harm(unsigned (*history)(void), const char *guard,
    enum invariant which, const char *words)
{
    guards_turn_on();
    assert_int_equal(history(), 0);
    assert_true(guard_turn_off(guard));
    unsigned broken = history();
    guards_turn_on();
    assert_int_equal(broken, which);
    print_message("%s\n", words);
}

static void test_same_connection(void **state)
{
    (void)state;
    assert_harm(message_of_a_grant_that_was_undone, "same-connection", I1,
        "without SAME_CONNECTION: a server goes back in time, and a message of "
        "a grant that it has forgotten comes late: two clients hold a lock at "
        "once (I1) (0 ms)");
}

static void test_never_shorten(void **state)
{
    (void)state;
    assert_harm(late_stay, "never-shorten", I1,
        "without NEVER_SHORTEN: a late request to stay in line shortens a "
        "lease that was extended: two clients hold a lock at once (I1) (0 ms)");
}

static void test_first_connection(void **state)
{
    (void)state;
    assert_harm(late_take, "first-connection", I8,
        "without FIRST_CONNECTION: two connections are lost, and what was sent "
        "over the first takes a permit after its cleanup: a reported result is "
        "false (I8) (0 ms)");
}

static void test_over_is_gone(void **state)
{
    (void)state;
    assert_harm(clock_set_back, "over-is-gone", I5,
        "without OVER_IS_GONE: a server's clock is set back after a late "
        "release: a key is left that no holder, request or cleanup accounts "
        "for (I5) (0 ms)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_over_is_gone),
        cmocka_unit_test(test_first_connection),
        cmocka_unit_test(test_same_connection),
        cmocka_unit_test(test_never_shorten),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
