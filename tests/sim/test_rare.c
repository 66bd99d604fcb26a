/* SPDX-License-Identifier: MIT */
/*
 * Histories that are too rare for seeds to find, in worlds that a test plays
 * itself: of locks whose users wait in line, and of work that must be done
 * once. Each is harmless, and harmful without its safeguard.
 * tests/guards/table.py reads the lines that are printed here.
 */
#include "support/test.h"

#include "sim/world.h"

enum { TTL_MS = 1000, LONGER_MS = 4000 };

static struct world world;
static struct setting setting;
static struct worker *holder, *waiter, *other;
static struct model_server *server;

static void pass_ms(uint64_t ms)
{
    world_pass(&world, ms * MS);
}

/* So long that everything that is not prevented has happened. Where a message
 * is to be caught on its way, the steps are short. */
#define SOON_BY(step, condition)                                               \
    do {                                                                       \
        for (unsigned n_ = 0; !(condition) && n_ < 5000; n_++)                 \
            world_pass(&world, step);                                          \
        assert_true(condition);                                                \
    } while (0)
#define SOON(condition) SOON_BY(MS, condition)
#define AT_ONCE(condition) SOON_BY(MS / 50, condition)

/* One server, nothing but what the test does, and all wait in line. */
static void choose(void)
{
    setting = (struct setting){
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
}

static void begin(void)
{
    struct options options = OPTIONS_INIT;
    options.troubles = 0;
    options.setting = &setting;
    world_start(&world, &options);
    holder = &world.process[0].worker[0];
    waiter = &world.process[1].worker[0];
    other = &world.process[2].worker[0];
    server = &world.server[0];
}

static void choose_permits(void)
{
    choose();
    setting.permits = true;
    setting.pause_every_ms = HOLDERS_PAUSE_EVERY_MS;
}

static void wish(struct worker *k, uint32_t ttl_ms, struct share share)
{
    struct wish wish = {.ttl_ms = ttl_ms, .max_hold_ns = NEVER, .share = share};
    k->state = PROGRAM_WAITS;
    handle_wish(&world, k, &wish);
}

static void acquire(struct worker *k, uint32_t ttl_ms)
{
    wish(k, ttl_ms, (struct share){0, 0});
    handle_acquire(&world, k, NEVER);
    process_turn(&world, k->process);
}

/* One of two permits. */
static void take(struct worker *k, uint32_t ttl_ms)
{
    wish(k, ttl_ms, (struct share){1, 2});
    handle_acquire(&world, k, NEVER);
    process_turn(&world, k->process);
}

static void begin_work(struct worker *k)
{
    k->work = (struct work){.fingerprint = 1, .keep_ms = 60000};
    wish(k, TTL_MS, (struct share){0, 0});
    handle_begin(&world, k, 3000 * MS);
    process_turn(&world, k->process);
}

static void connect_it(struct worker *k)
{
    handle_inspect(&world, k);
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
}

static void release_at_last(struct worker *k)
{
    release(k);
    SOON(!k->life.running);
    k->state = PROGRAM_IDLE;
}

/* The caller gives up. */
static void cancel(struct worker *k)
{
    handle_cancel(&world, k);
    process_turn(&world, k->process);
    k->state = PROGRAM_IDLE;
}

/* It waits in line, and is told by messages. */
static void await_line(struct worker *k)
{
    SOON(life_in_line(&k->life) && k->line.has_waited &&
         k->process->subscription.state == SUBSCRIPTION_UP);
    pass_ms(20);
}

static bool is_sent(const struct worker *k, enum message_kind kind)
{
    const struct request *r = &k->request[TRACK_CALL][0];
    return r->state == REQUEST_SENT && r->message.kind == kind;
}

/* What is on its way takes longer than all that follows. */
static void come_late(struct conn *c)
{
    uint64_t at = world.now + 400 * MS;
    list_entry(c->up.messages.next, struct message, node)->arrives = at;
    alarm_set(&world, &c->up.alarm, at);
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

/* -------------------------------------------------------------- histories */

/* The waiter's token is handed the lock, and its message is held up. The server
 * restarts from an older file, where the token is in line. Another client gets
 * the lock, then the waiter is answered that it waits, then comes the message:
 * it speaks of a grant that is no more. Nobody may count listeners, or the
 * waiter would know by then that its connection for messages is over. */
static unsigned message_of_a_grant_that_was_undone(void)
{
    choose();
    begin();
    server->denied = DENIED_COUNT;
    server->denied_until = NEVER;
    connect_it(other);
    acquire(holder, TTL_MS);
    SOON(has_it(holder));
    acquire(waiter, TTL_MS);
    await_line(waiter);
    server_save(server);

    struct conn *messages = waiter->process->subscription.conn;
    messages->held_up_until = world.now + 60000 * MS;
    release_at_last(holder);
    assert_int_equal(server_value(&world, server, 0), waiter->token);
    conn_drop(&world, messages, true);
    server_crash(&world, server, RESTART_REWOUND, 2 * MS);
    pass_ms(5);
    connect_it(other); /* it judges the server first */
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

/* The waiter's STAY is on its way when the connection is lost. It gets the lock
 * by the next one, and makes the lease longer. Then the first one arrives. */
static unsigned late_stay(void)
{
    choose();
    setting.max_ttl_ms = LONGER_MS;
    begin();
    acquire(holder, TTL_MS);
    SOON(has_it(holder));
    acquire(waiter, TTL_MS);
    await_line(waiter);
    server->slow_until = world.now + 1000 * MS;
    SOON(is_sent(waiter, MESSAGE_STAY));
    server->slow_until = world.now;
    struct conn *old = waiter->process->link[0].conn;
    link_lost(&world, &waiter->process->link[0], 1000 * MS);
    come_late(old);
    process_turn(&world, waiter->process);
    release_at_last(holder);
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

/* The connection is lost over which a permit is asked for, and so is the next
 * one, over which that is to be undone. Then the request arrives, which is
 * later than all of it. */
static unsigned late_take(void)
{
    choose_permits();
    begin();
    struct link *link = &holder->process->link[0];
    connect_it(holder);
    SOON(!holder->life.running);
    take(holder, LONGER_MS);
    assert_int_equal(holder->request[TRACK_CALL][0].state, REQUEST_SENT);
    struct conn *first = link->conn;
    link_lost(&world, link, 1000 * MS);
    come_late(first);
    cancel(holder);
    SOON(link->state == LINK_UP && !list_empty(&link->slots));
    link_lost(&world, link, 0);
    process_turn(&world, holder->process);
    pass_ms(1000);
    assert_true(list_empty(&link->cleaners));
    return finish();
}

/* A grant is cancelled, and its lease is over when the server reads that,
 * because it stood still. Then its clock is set back. */
static unsigned clock_set_back(void)
{
    choose_permits();
    begin();
    take(other, LONGER_MS);
    SOON(has_it(other));
    take(holder, TTL_MS);
    while (!server_has(&world, server, 0, holder->token))
        world_pass(&world, MS / 100);
    assert_true(holder->life.running); /* its answer is on the way */
    server->stopped_until = world.now + (TTL_MS + 20) * MS;
    cancel(holder);
    SOON(list_empty(&holder->process->link[0].cleaners));
    server_step_clock(&world, server, -(int64_t)(500 * MS));
    pass_ms(1);
    return finish();
}

/* ------------------------------------------- work that must be done once */

/* The waiter is in line for work that must be done once; the holder has the
 * lock. */
static void begin_once(void)
{
    choose();
    setting.once = true;
    setting.processes = 2;
    setting.linger_ns = 3000 * MS;
    setting.kill_allowed = false;
    begin();
    acquire(holder, TTL_MS);
    AT_ONCE(!holder->life.running);
    assert_int_equal(handle_result(&world, holder), LIFE_OK);
    holder->state = PROGRAM_HOLDS;
    begin_work(waiter);
    await_line(waiter);
}

/* The waiter learns by a message that it has the lock. Its connection for
 * commands hangs by then, so its BEGIN is not sent, and it gives up. */
static unsigned begin_that_was_not_sent(void)
{
    begin_once();
    struct link *link = &waiter->process->link[0];
    AT_ONCE(is_sent(waiter, MESSAGE_STAY));
    come_late(link->conn);
    list_entry(link->slots.next, struct slot, node)->sent_at = 1;
    link->dropped += 8;
    release(holder);
    AT_ONCE(server_value(&world, server, 0) == waiter->token);
    AT_ONCE(waiter->life.vote.acquire.token_is_held || !waiter->life.vote.line);
    cancel(waiter);
    link->dropped -= 8;
    pass_ms(900);
    return finish();
}

/* The waiter has the lock, and its BEGIN is on its way when the connection is
 * lost. It takes the lock back over the next one, before the BEGIN arrives. */
static unsigned begin_behind_its_cleanup(void)
{
    begin_once();
    release(holder);
    AT_ONCE(is_sent(waiter, MESSAGE_BEGIN) &&
            waiter->life.vote.acquire.token_is_held);
    struct link *link = &waiter->process->link[0];
    struct conn *old = link->conn;
    link_lost(&world, link, 3000 * MS);
    come_late(old);
    cancel(waiter);
    pass_ms(2500);
    return finish();
}

/* ---------------------------------------------------------------- the table */

static const struct rare {
    const char *guard;
    unsigned (*history)(void);
    enum invariant breaks;
    const char *harm;
} table[] = {
    {"over-is-gone", clock_set_back, I5,
        "without OVER_IS_GONE: a server's clock is set back after a late "
        "release: a key is left that no holder, request or cleanup accounts "
        "for (I5) (0 ms)"},
    {"first-connection", late_take, I8,
        "without FIRST_CONNECTION: two connections are lost, and what was sent "
        "over the first takes a permit after its cleanup: a reported result is "
        "false (I8) (0 ms)"},
    {"same-connection", message_of_a_grant_that_was_undone, I1,
        "without SAME_CONNECTION: a server goes back in time, and a message of "
        "a grant that it has forgotten comes late: two clients hold a lock at "
        "once (I1) (0 ms)"},
    {"never-shorten", late_stay, I1,
        "without NEVER_SHORTEN: a late request to stay in line shortens a "
        "lease that was extended: two clients hold a lock at once (I1) (0 ms)"},
    {"held", begin_that_was_not_sent, I5,
        "without HELD: a lock that a wait in line has brought, and whose work "
        "did not begin, stays until its TTL (I5) (0 ms)"},
    {"unbegin-proof", begin_behind_its_cleanup, I8,
        "without UNBEGIN_PROOF: work begins late, after it was taken back: "
        "nobody knows of it (I8) (0 ms)"},
};
#define RARE (sizeof(table) / sizeof(*table))

static void test_history(void **state)
{
    const struct rare *r = *state;
    guards_turn_on();
    assert_int_equal(r->history(), 0);
    assert_true(guard_turn_off(r->guard));
    unsigned broken = r->history();
    guards_turn_on();
    assert_int_equal(broken, r->breaks);
    print_message("%s\n", r->harm);
}

int main(void)
{
    struct CMUnitTest tests[RARE];
    for (size_t i = 0; i < RARE; i++)
        tests[i] = (struct CMUnitTest){.name = table[i].guard,
            .test_func = test_history,
            .initial_state = (void *)&table[i]};
    return cmocka_run_group_tests_name("rare", tests, NULL, NULL);
}
