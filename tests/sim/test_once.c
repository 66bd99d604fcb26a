/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once: histories that are too rare for seeds to find,
 * in worlds that a test plays itself. Each is harmless, and harmful without its
 * safeguard. tests/guards/table.py reads the lines that are printed here.
 */
#include "support/test.h"

#include "sim/world.h"

enum { TTL_MS = 1000 };

static struct world world;

static const struct setting in_line = {
    .processes = 2,
    .workers = 1,
    .names = 1,
    .min_ttl_ms = 60,
    .max_ttl_ms = 1500,
    .drift_ppm = 10000,
    .timeout_ns = 500 * MS,
    .patience_ns = 10000 * MS,
    .travel_ns = MS,
    .slow_ns = 300 * MS,
    .linger_ns = 3000 * MS,
    .think_ns = MS,
    .in_line = 100,
    .once = true,
};

static struct worker *holder, *waiter;
static struct model_server *server;

static void pass_ms(uint64_t ms)
{
    world_pass(&world, ms * MS);
}

/* So long that everything that is not prevented has happened. */
#define SOON(condition)                                                        \
    do {                                                                       \
        for (unsigned n_ = 0; !(condition) && n_ < 100000; n_++)               \
            world_pass(&world, MS / 50);                                       \
        assert_true(condition);                                                \
    } while (0)

static void acquire(struct worker *k, bool begins)
{
    struct wish wish = {.ttl_ms = TTL_MS, .max_hold_ns = NEVER};
    k->state = PROGRAM_WAITS;
    k->work = (struct work){.fingerprint = 1, .keep_ms = 60000};
    handle_wish(&world, k, &wish);
    if (begins)
        handle_begin(&world, k, 3000 * MS);
    else
        handle_acquire(&world, k, NEVER);
    process_turn(&world, k->process);
}

/* The waiter is in line for work that must be done once; the holder has the
 * lock. */
static void begin(void)
{
    struct options options = OPTIONS_INIT;
    options.servers = 1;
    options.troubles = 0;
    options.setting = &in_line;
    world_start(&world, &options);
    holder = &world.process[0].worker[0];
    waiter = &world.process[1].worker[0];
    server = &world.server[0];
    acquire(holder, false);
    SOON(!holder->life.running);
    assert_int_equal(handle_result(&world, holder), LIFE_OK);
    holder->state = PROGRAM_HOLDS;
    acquire(waiter, true);
    SOON(life_in_line(&waiter->life) && waiter->line.has_waited &&
         waiter->process->subscription.state == SUBSCRIPTION_UP);
    pass_ms(20);
}

static void release(void)
{
    holder->state = PROGRAM_WAITS;
    assert_true(handle_release(&world, holder));
    process_turn(&world, holder->process);
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

static bool is_sent(enum message_kind kind)
{
    const struct request *r = &waiter->request[TRACK_CALL][0];
    return r->state == REQUEST_SENT && r->message.kind == kind;
}

/* What is on its way takes longer than all that follows. */
static void come_late(struct conn *c)
{
    uint64_t at = world.now + 400 * MS;
    list_entry(c->up.messages.next, struct message, node)->arrives = at;
    alarm_set(&world, &c->up.alarm, at);
}

/* ---------------------------------------- a lock without the work, given back
 */

/* The waiter learns by a message that it has the lock. Its connection for
 * commands hangs by then, so its BEGIN is not sent, and it gives up. */
static unsigned begin_that_was_not_sent(void)
{
    begin();
    struct link *link = &waiter->process->link[0];
    SOON(is_sent(MESSAGE_STAY));
    come_late(link->conn);
    list_entry(link->slots.next, struct slot, node)->sent_at = 1;
    link->dropped += 8;
    release();
    SOON(server_value(&world, server, 0) == waiter->token);
    SOON(waiter->life.vote.acquire.token_is_held || !waiter->life.vote.line);
    handle_cancel(&world, waiter);
    process_turn(&world, waiter->process);
    waiter->state = PROGRAM_IDLE;
    link->dropped -= 8;
    pass_ms(900);
    return finish();
}

/* ------------------------------------------------ a BEGIN that comes very late
 */

/* The waiter has the lock, and its BEGIN is on its way when the connection is
 * lost. It takes the lock back over the next one, before the BEGIN arrives. */
static unsigned begin_behind_its_cleanup(void)
{
    begin();
    release();
    SOON(is_sent(MESSAGE_BEGIN) && waiter->life.vote.acquire.token_is_held);
    struct link *link = &waiter->process->link[0];
    struct conn *old = link->conn;
    link_lost(&world, link, 3000 * MS);
    come_late(old);
    handle_cancel(&world, waiter);
    process_turn(&world, waiter->process);
    waiter->state = PROGRAM_IDLE;
    pass_ms(2500);
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

static void test_held(void **state)
{
    (void)state;
    assert_harm(begin_that_was_not_sent, "held", I5,
        "without HELD: a lock that a wait in line has brought, and whose work "
        "did not begin, stays until its TTL (I5) (0 ms)");
}

static void test_unbegin_proof(void **state)
{
    (void)state;
    assert_harm(begin_behind_its_cleanup, "unbegin-proof", I8,
        "without UNBEGIN_PROOF: work begins late, after it was taken back: "
        "nobody knows of it (I8) (0 ms)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_unbegin_proof),
    };
    return cmocka_run_group_tests_name("once", tests, NULL, NULL);
}
