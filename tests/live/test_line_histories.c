/* SPDX-License-Identifier: MIT */
/*
 * Histories that a wait in line must survive without two holders, and without a
 * lock that stays taken although nobody holds it: late grants, lost answers,
 * calls that end while the lock is handed over, keys that never expire, and
 * tokens that are adopted.
 */
#include "live/in_line_rig.h"

#include <sys/wait.h>

#define NAME "job"
/* Of leases whose end a test awaits; and of all others, which must not end
 * before the test has looked, however slow the machine is. */
#define TTL_MS 2000
#define LONG_MS 20000
#define LEASE_MS (TTL_MS + TTL_MS / 10)
#define WINDOW_MS (3 * TTL_MS / 10 + 2 * 32)
#define LOOK_MS 100

static nxl_client *before, *own, *after;
static nxl_lock *holder, *lock, *next;
static struct waiter own_waiter, after_waiter;

/* The lock is held; two more can wait for it. */
static void set_stage(const char *parameters, int64_t ttl_ms)
{
    before = client_on(parameters);
    own = client_on(parameters);
    after = client_on(parameters);
    holder = new_lock(before, NAME, ttl_ms);
    lock = new_lock(own, NAME, ttl_ms);
    next = new_lock(after, NAME, ttl_ms);
}

static void clear_stage(void)
{
    end(holder, before);
    end(lock, own);
    end(next, after);
    assert_eventually(is_free(NAME));
}

static void release_and_await(nxl_lock *held, struct waiter *w)
{
    assert_result(nxl_lock_release(held), NXL_OK, held);
    assert_result(waiter_join(w), NXL_OK, w->lock);
    assert_true(holds(NAME, w->lock));
}

/* ------------------------------------------------- processes that are stopped
 */

/* Only as long as it matters, and unnoticed by who awaits the output's end. */
static void outlive_parent(void)
{
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    alarm(4);
    for (;;)
        pause();
}

/* Waits in line with TTL_MS; its exit status is the result of the acquire, or
 * 50 if it believes in a lock that it does not have. */
static pid_t waiting_process(size_t count, bool forks)
{
    pid_t pid = test_fork();
    if (pid == 0) {
        servers[0].context = NULL; /* its parent's */
        nxl_client *client = client_on(NO_GUARD);
        nxl_lock *mine = new_lock(client, NAME, TTL_MS);
        if (forks) { /* a thread waits, and the child inherits its sockets */
            waiter_start(&own_waiter, mine, 60000);
            while (!line_listens(NAME, count))
                test_pause_ms(5);
            if (fork() == 0)
                outlive_parent();
            waiter_join(&own_waiter);
            _exit(own_waiter.result);
        }
        int rc = nxl_lock_acquire(mine, 60000);
        if (rc == NXL_OK && !(nxl_lock_held(mine) && holds(NAME, mine)))
            rc = 50;
        if (rc == NXL_OK)
            rc = nxl_lock_release(mine);
        _exit(rc);
    }
    assert_eventually(line_listens(NAME, count));
    return pid;
}

/* It is stopped when the lock is handed over to it: the next one gets it when
 * that lease has ended, and it does not believe in it afterwards. */
static void grant_to_a_stopped_process_comes_too_late(void **state)
{
    int status;
    set_stage(NO_GUARD, TTL_MS);
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    assert_result(nxl_lock_extend(holder, LONG_MS), NXL_OK, holder);
    pid_t pid = waiting_process(1, false);
    waiter_start(&after_waiter, next, 60000);
    assert_eventually(line_listens(NAME, 2));
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    int64_t since = test_now_ms();
    release_and_await(holder, &after_waiter);
    /* It may have counted as dead by then; usually it is alive. */
    assert_between(
        test_now_ms() - since, 0, WINDOW_MS + LEASE_MS + LOOK_MS + LATE_MS);
    assert_result(nxl_lock_extend(next, LONG_MS), NXL_OK, next);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_eventually(line_length(NAME) == 1); /* it has joined anew */
    assert_true(nxl_lock_held(next) && holds(NAME, next));
    assert_result(nxl_lock_release(next), NXL_OK, next);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), NXL_OK);
    clear_stage();
}

/* It is killed, but a child has inherited its connections: it can be told, as
 * far as the server knows, until the window is over. */
static void killed_process_whose_child_lives(void **state)
{
    int status;
    set_stage(NO_GUARD, TTL_MS);
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    assert_result(nxl_lock_extend(holder, LONG_MS), NXL_OK, holder);
    pid_t pid = waiting_process(1, true);
    waiter_start(&after_waiter, next, 60000);
    assert_eventually(line_listens(NAME, 2));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    int64_t since = test_now_ms();
    release_and_await(holder, &after_waiter);
    assert_between(
        test_now_ms() - since, 0, WINDOW_MS + LEASE_MS + LOOK_MS + LATE_MS);
    assert_result(nxl_lock_release(next), NXL_OK, next);
    clear_stage();
}

/* ----------------------------------------------------------- answers are lost
 */

/* The answers to everything that is sent in line are lost for a while, and the
 * lock is released meanwhile. What was granted to a token whose client does not
 * know of it is undone. */
static void lost_answers(int drop_ms, bool after_joining)
{
    quorum_clean(NULL);
    before = client_on(NO_GUARD);
    own = proxied_client(1, NO_GUARD "&timeout_ms=200");
    after = client_on(NO_GUARD);
    holder = new_lock(before, NAME, LONG_MS);
    lock = new_lock(own, NAME, LONG_MS);
    next = new_lock(after, NAME, LONG_MS);
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    connect_all(own);
    if (!after_joining)
        proxy_drop(proxies[0], PROXY_DOWN, true);
    waiter_start(&own_waiter, lock, 30000);
    if (after_joining) {
        assert_eventually(line_listens(NAME, 1));
        proxy_drop(proxies[0], PROXY_DOWN, true);
    }
    int64_t since = test_now_ms();
    assert_eventually(test_now_ms() >= since + drop_ms);
    assert_result(nxl_lock_release(holder), NXL_OK, holder);
    proxy_cut(proxies[0], false); /* what was lost will not come */
    proxy_drop(proxies[0], PROXY_DOWN, false);
    int64_t back = test_now_ms();
    assert_result(waiter_join(&own_waiter), NXL_OK, lock);
    assert_between(test_now_ms() - back, 0, 2000 + LATE_MS);
    assert_true(holds(NAME, lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_lock_acquire(next, 2000), NXL_OK, next);
    assert_result(nxl_lock_release(next), NXL_OK, next);
    clear_stage();
    quorum_mend(NULL);
}

static void answers_are_lost(void **state)
{
    lost_answers(100, false);
    lost_answers(100, true);
    lost_answers(700, false);
    lost_answers(700, true);
}

/* -------------------------------------- the call ends while it is granted */

/* Whatever the result, the lock is soon with the next one: long before a lease
 * ends that was granted to nobody's use. */
static void cancel_races_with_the_hand_over(void **state)
{
    int granted = 0;
    set_stage(NO_GUARD, LONG_MS);
    for (int i = 0; i < 120; i++) {
        assert_result(nxl_lock_acquire(holder, 60000), NXL_OK, holder);
        waiter_start(&own_waiter, lock, 60000);
        assert_eventually(line_listens(NAME, 1));
        waiter_start(&after_waiter, next, 60000);
        assert_eventually(line_length(NAME) == 2);
        if (i % 2)
            assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
        int64_t since = test_now_ms();
        assert_result(nxl_lock_release(holder), NXL_OK, holder);
        if (i % 2 == 0)
            assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
        int rc = waiter_join(&own_waiter);
        granted += rc == NXL_OK;
        assert_true(rc == NXL_OK || rc == NXL_CANCELLED);
        assert_true(nxl_lock_held(lock) == (rc == NXL_OK));
        if (rc == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_result(waiter_join(&after_waiter), NXL_OK, next);
        assert_between(test_now_ms() - since, 0, LONG_MS / 4);
        assert_result(nxl_lock_release(next), NXL_OK, next);
    }
    print_message("           %d of 120 were granted\n", granted);
    clear_stage();
}

/* --------------------------------------------------- keys that never expire */

/* What a dead program of the SETNX scheme left is taken over by one that waits;
 * its release does not hand the lock back to a token of its own, but to the
 * other one. Who is first in line looks into such a key once a second, and then
 * joins anew behind the other: so either of them may be the first to get it. */
static void take_over(const char *parameters, int fence)
{
    quorum_clean(NULL);
    own = client_on(parameters);
    after = client_on(parameters);
    lock = lock_with(own, NAME, .ttl_ms = LONG_MS, .fence = fence);
    next = lock_with(after, NAME, .ttl_ms = LONG_MS, .fence = fence);
    redis_run(servers, "SET", NAME, "somebody", NULL);
    waiter_start(&own_waiter, lock, 60000);
    assert_eventually(line_listens(NAME, 1));
    waiter_start(&after_waiter, next, 60000);
    assert_eventually(line_listens(NAME, 2));
    redis_run(servers, "SET", NAME, "1000000000", NULL);
    assert_eventually(nxl_lock_held(lock) || nxl_lock_held(next));
    bool in_order = nxl_lock_held(lock);
    struct waiter *first = in_order ? &own_waiter : &after_waiter;
    struct waiter *second = in_order ? &after_waiter : &own_waiter;
    assert_result(waiter_join(first), NXL_OK, first->lock);
    assert_true(nxl_lock_held(first->lock) && holds(NAME, first->lock));
    assert_true(redis_pttl(servers, NAME) > 0);
    assert_false(nxl_lock_held(second->lock));
    assert_eventually(line_listens(NAME, 1));
    assert_result(nxl_lock_release(first->lock), NXL_OK, first->lock);
    assert_false(holds(NAME, first->lock));
    assert_result(waiter_join(second), NXL_OK, second->lock);
    assert_true(nxl_lock_held(second->lock) && holds(NAME, second->lock));
    assert_true(
        !fence || nxl_lock_fence(second->lock) > nxl_lock_fence(first->lock));
    assert_result(nxl_lock_release(second->lock), NXL_OK, second->lock);
    assert_eventually(is_free(NAME));
    end(lock, own);
    end(next, after);
}

static void key_without_an_end_is_taken_over(void **state)
{
    take_over(NO_GUARD "&interop=1", 0);
    take_over(NO_GUARD "&interop=1", 1);
}

/* One that is no lock blocks until it is deleted. */
static void key_without_an_end_blocks(void **state)
{
    set_stage(NO_GUARD "&interop=1", LONG_MS);
    redis_run(servers, "SET", NAME, "somebody", NULL);
    assert_result(nxl_lock_acquire(lock, 1300), NXL_BUSY, lock);
    assert_contains(nxl_lock_errmsg(lock), "never expires");
    assert_eventually(line_length(NAME) == 0);
    waiter_start(&own_waiter, lock, 60000);
    assert_eventually(line_listens(NAME, 1));
    redis_run(servers, "DEL", NAME, NULL);
    assert_result(waiter_join(&own_waiter), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    clear_stage();
}

/* ------------------------------------------------------------------- votes */

/* A server that restarted without its data has forgotten who holds the lock.
 * Until that lock has expired, nobody gets it, nor joins the line. */
static void server_without_a_vote_has_no_line(void **state)
{
    set_stage("guard_restarts=on&max_ttl_ms=4000&timeout_ms=500", 3000);
    assert_result(nxl_lock_acquire(holder, 10000), NXL_OK, holder);
    assert_result(nxl_lock_extend(holder, 4000), NXL_OK, holder);
    waiter_start(&own_waiter, lock, 60000);
    assert_eventually(line_listens(NAME, 1));
    redis_kill(servers);
    redis_restart(servers);
    while (nxl_lock_held(holder)) {
        bool granted = nxl_lock_held(lock);
        long joins = redis_calls(servers, "zadd");
        long sets = redis_calls(servers, "set");
        if (!nxl_lock_held(holder)) /* by now this may have been right */
            break;
        assert_false(granted);
        assert_int_equal(joins, 0);
        assert_int_equal(sets, 0);
        test_pause_ms(5);
    }
    assert_result(waiter_join(&own_waiter), NXL_OK, lock);
    assert_true(holds(NAME, lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    clear_stage();
}

/* ------------------------------------------------------- tokens are adopted */

/* A token that waits holds nothing that could be adopted. */
static void waiting_token_is_not_adopted(void **state)
{
    char member[KEY_ROOM];
    set_stage(NO_GUARD, LONG_MS);
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    waiter_start(&own_waiter, lock, 60000);
    assert_eventually(line_listens(NAME, 1));
    assert_true(line_member(NAME, 0, member, sizeof(member)));
    member[strcspn(member, " ")] = '\0';
    assert_result(nxl_lock_adopt(next, member), NXL_LOST, next);
    assert_true(line_listens(NAME, 1));
    release_and_await(holder, &own_waiter);
    assert_string_equal(nxl_lock_token(lock), member);
    assert_result(nxl_lock_adopt(next, member), NXL_OK, next);
    assert_result(nxl_lock_release(next), NXL_OK, next);
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    clear_stage();
}

/* The message comes once more, after the token was handed out and adopted: it
 * does not end the adopter's lock. */
static void message_for_an_adopted_token_is_ignored(void **state)
{
    char member[KEY_ROOM], id[KEY_ROOM], channel[2 * KEY_ROOM];
    set_stage(NO_GUARD, LONG_MS);
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    waiter_start(&own_waiter, lock, 60000);
    assert_eventually(line_listens(NAME, 1));
    assert_true(line_member(NAME, 0, member, sizeof(member)));
    assert_int_equal(sscanf(member, "%*s %699s", id), 1);
    snprintf(channel, sizeof(channel), "nxl:%s:%s", id, NAME);
    release_and_await(holder, &own_waiter);
    assert_result(nxl_lock_adopt(next, nxl_lock_token(lock)), NXL_OK, next);
    redis_run(servers, "PUBLISH", channel, nxl_lock_token(lock), NULL);
    redis_run(servers, "PUBLISH", channel, "", NULL);
    redis_run(servers, "PUBLISH", channel, "no token at all", NULL);
    assert_result(nxl_lock_acquire(holder, 50), NXL_BUSY, holder);
    nxl_lock *another = new_lock(own, NAME, LONG_MS); /* so that it reads */
    assert_result(nxl_lock_acquire(another, 50), NXL_BUSY, another);
    nxl_lock_free(another);
    assert_true(nxl_lock_held(next) && holds(NAME, next));
    assert_result(nxl_lock_release(next), NXL_OK, next);
    clear_stage();
}

/* A lock may wait again, under a new token, while the old one is adopted. */
static void old_token_is_adopted_while_the_next_waits(void **state)
{
    set_stage(NO_GUARD, TTL_MS);
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    assert_result(nxl_lock_extend(holder, LONG_MS), NXL_OK, holder);
    waiter_start(&own_waiter, lock, 60000);
    assert_eventually(line_listens(NAME, 1));
    release_and_await(holder, &own_waiter);
    assert_result(nxl_lock_adopt(next, nxl_lock_token(lock)), NXL_OK, next);
    assert_result(nxl_lock_extend(next, LONG_MS), NXL_OK, next);
    assert_eventually(!nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    waiter_start(&own_waiter, lock, 60000);
    assert_eventually(line_listens(NAME, 1));
    assert_true(holds(NAME, next));
    release_and_await(next, &own_waiter);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    clear_stage();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_blocking_test(grant_to_a_stopped_process_comes_too_late),
        api_blocking_test(killed_process_whose_child_lives),
        api_blocking_test(answers_are_lost),
        api_blocking_test(cancel_races_with_the_hand_over),
        api_blocking_test(key_without_an_end_is_taken_over),
        api_blocking_test(key_without_an_end_blocks),
        api_blocking_test(server_without_a_vote_has_no_line),
        api_blocking_test(waiting_token_is_not_adopted),
        api_blocking_test(message_for_an_adopted_token_is_ignored),
        api_blocking_test(old_token_is_adopted_while_the_next_waits),
    };
    return on_run(one_unix, "line histories", tests);
}
