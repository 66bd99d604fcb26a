/* SPDX-License-Identifier: MIT */
/*
 * A begin that waits for the lock, in line and by polling: how whoever has it
 * may end, and what the wait comes to. Through both APIs.
 *
 * Invariant: a wait ends as a begin at that moment would have ended, and
 * whoever waits behind it gets the lock, or the same answer.
 */
#include "live/once_rig.h"

#define WAIT_MS 20000

static struct scene {
    nxl_client *before, *after;
    nxl_lock *holder, *lock, *next;
    bool in_line;
} on_stage;
static struct beginner beginner, next_beginner;
static struct waiter next_waiter;

/* ---------------------------------------------------------------- the plays */

enum ends { PLAIN, TELLS, RELEASES, EXPIRES, REMOVED };

struct play {
    const char *name;
    enum ends ends;
    int verdict, mode, result;
    int64_t doubts; /* of the begin that waited */
};
static const struct play plays[] = {
    {"a lock is released", PLAIN, 0, NXL_ONCE_HALT, NXL_OK, 0},
    {"done", TELLS, NXL_ONCE_DONE, NXL_ONCE_HALT, NXL_DONE, 0},
    {"done, retry", TELLS, NXL_ONCE_DONE, NXL_ONCE_RETRY, NXL_DONE, 0},
    {"failed", TELLS, NXL_ONCE_FAILED, NXL_ONCE_HALT, NXL_OK, 0},
    {"unsure", TELLS, NXL_ONCE_DOUBT, NXL_ONCE_HALT, NXL_DOUBT, 0},
    {"unsure, retry", TELLS, NXL_ONCE_DOUBT, NXL_ONCE_RETRY, NXL_OK, 1},
    {"released", RELEASES, 0, NXL_ONCE_HALT, NXL_DOUBT, 0},
    {"released, retry", RELEASES, 0, NXL_ONCE_RETRY, NXL_OK, 1},
    {"its lease is over", EXPIRES, 0, NXL_ONCE_HALT, NXL_DOUBT, 0},
    {"its lease is over, retry", EXPIRES, 0, NXL_ONCE_RETRY, NXL_OK, 1},
    {"its key is removed", REMOVED, 0, NXL_ONCE_HALT, NXL_DOUBT, 0},
};

static const nxl_lock_options all_options[] = {
    {.size = sizeof(nxl_lock_options), .ttl_ms = 30000},
    {.size = sizeof(nxl_lock_options), .ttl_ms = 30000, .renew = 1, .fence = 1},
    {.size = sizeof(nxl_lock_options), .ttl_ms = 2000, .min_hold_ms = 50},
};

static void set_stage(struct scene *s, const struct play *play,
    const nxl_lock_options *options, const char *parameters)
{
    once_clean(NULL);
    *s = (struct scene){.in_line = !strstr(parameters, "poll=1")};
    s->before = client_on(parameters);
    own = client_on(parameters);
    s->after = client_on(parameters);
    s->holder = new_lock(s->before, NAME, 30000);
    s->lock = live_lock(own, NAME, options, __FILE__, __LINE__);
    s->next = new_lock(s->after, NAME, 30000);
}

static void clear_stage(struct scene *s)
{
    end(s->holder, s->before);
    end(s->lock, own);
    end(s->next, s->after);
    assert_eventually(is_free(NAME));
}

static void await_wait(const struct scene *s, size_t count)
{
    if (s->in_line)
        await_with(own, line_listens(NAME, count));
    else
        for (int i = 0; i < 4; i++) /* it has asked, and asks again */
            if (by_loop)
                turn(own, 5);
            else
                test_pause_ms(5);
}

static void take(const struct scene *s, const struct play *play)
{
    if (play->ends == PLAIN)
        assert_result(nxl_lock_acquire(s->holder, 0), NXL_OK, s->holder);
    else
        assert_result(once_begin(NULL, s->holder, NULL, 0), NXL_OK, s->holder);
}

static void end_hold(const struct scene *s, const struct play *play)
{
    switch (play->ends) {
    case TELLS:
        assert_result(once_tell(NULL, s->holder, play->verdict, 1,
                          play->verdict == NXL_ONCE_DONE ? "paid" : NULL),
            NXL_OK, s->holder);
        break;
    case REMOVED:
        redis_run(servers, "DEL", NAME, NULL);
        break;
    case EXPIRES: /* now, and not before others have come to wait */
        redis_run(servers, "PEXPIRE", NAME, "1", NULL);
        break;
    case PLAIN:
    case RELEASES:
        assert_result(nxl_lock_release(s->holder), NXL_OK, s->holder);
        break;
    }
}

static void assert_outcome(const struct scene *s, const struct play *play)
{
    nxl_record r = NXL_RECORD_INIT;
    assert_shown(s->lock);
    assert_int_equal(nxl_once_record(s->lock, &r), NXL_OK);
    assert_int_equal(nxl_lock_held(s->lock), play->result == NXL_OK);
    if (play->result == NXL_OK) {
        assert_true(holds(NAME, s->lock));
        assert_int_equal(r.doubts, play->doubts);
        assert_int_equal(r.attempt, play->ends == PLAIN ? 1 : 2);
    }
    if (play->result == NXL_DONE) {
        assert_int_equal(r.result_length, 4);
        assert_memory_equal(r.result, "paid", 4);
    }
}

/* ------------------------------------------------------------- two in a row */

/* Behind it waits a plain lock, which gets it in any case. */
static void play_before_a_lock(
    const struct play *play, const nxl_lock_options *options)
{
    struct scene *s = &on_stage;
    nxl_once_options work = WORK(.mode = play->mode);
    set_stage(s, play, options, NO_GUARD);
    take(s, play);
    beginner_start(&beginner, own, s->lock, &work, WAIT_MS);
    await_wait(s, 1);
    waiter_start(&next_waiter, s->next, WAIT_MS);
    await_wait(s, 2);
    end_hold(s, play);
    assert_result(beginner_end(&beginner), play->result, s->lock);
    assert_outcome(s, play);
    if (play->result == NXL_OK)
        assert_result(
            once_tell(own, s->lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, s->lock);
    assert_result(waiter_join(&next_waiter), NXL_OK, s->next);
    assert_true(holds(NAME, s->next));
    assert_result(nxl_lock_release(s->next), NXL_OK, s->next);
    clear_stage(s);
}

/* Behind it waits another begin: its answer follows from what was told. */
static void play_before_a_begin(const struct play *play)
{
    struct scene *s = &on_stage;
    nxl_once_options work = WORK(.mode = play->mode);
    set_stage(s, play, &all_options[0], NO_GUARD);
    take(s, play);
    beginner_start(&beginner, own, s->lock, &work, WAIT_MS);
    await_wait(s, 1);
    beginner_start(&next_beginner, s->after, s->next, &work, WAIT_MS);
    await_wait(s, 2);
    end_hold(s, play);
    int first = beginner_end(&beginner);
    assert_result(first, play->result, s->lock);
    if (first == NXL_OK)
        assert_result(
            once_tell(own, s->lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, s->lock);
    assert_result(beginner_end(&next_beginner),
        first == NXL_OK ? NXL_DONE : first, s->next);
    clear_stage(s);
}

static void in_line(void **state)
{
    for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
        print_message("           %s\n", plays[i].name);
        for (size_t j = 0; j < 3; j++)
            play_before_a_lock(&plays[i], &all_options[j]);
        play_before_a_begin(&plays[i]);
    }
}

/* Only one waits, for the order is left to chance. */
static void by_polling(void **state)
{
    const char *parameters = NO_GUARD "&poll=1";
    for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
        const struct play *play = &plays[i];
        struct scene *s = &on_stage;
        nxl_once_options work = WORK(.mode = play->mode);
        print_message("           %s\n", play->name);
        set_stage(s, play, &all_options[0], parameters);
        take(s, play);
        beginner_start(&beginner, own, s->lock, &work, WAIT_MS);
        await_wait(s, 1);
        end_hold(s, play);
        assert_result(beginner_end(&beginner), play->result, s->lock);
        assert_outcome(s, play);
        assert_int_equal(line_length(NAME), 0);
        clear_stage(s);
    }
}

/* ---------------------------------------------------------- waits that fail */

enum stop { TIME, CANCEL, INTERRUPT, INTERRUPT_ALL, FREE, STOPS };

static void stop_waiting(struct scene *s, enum stop stop)
{
    int expected = stop == TIME ? NXL_BUSY : NXL_CANCELLED;
    if (stop == CANCEL)
        assert_int_equal(nxl_lock_cancel(s->lock), NXL_OK);
    if (stop == INTERRUPT)
        assert_int_equal(nxl_lock_interrupt(s->lock), NXL_OK);
    if (stop == INTERRUPT_ALL)
        nxl_client_interrupt(own);
    if (stop == FREE) {
        nxl_lock_free(s->lock);
        turn(own, 0);
        s->lock = new_lock(own, NAME, 30000);
        return;
    }
    assert_result(beginner_end(&beginner), expected, s->lock);
    assert_false(nxl_lock_held(s->lock));
}

/* It has left the line, or leaves it, and the record is as it was. */
static void a_wait_that_is_given_up(void **state)
{
    struct scene *s = &on_stage;
    char line[LINE_ROOM] = "", after[LINE_ROOM] = "";
    for (int stop = 0; stop < STOPS; stop++) {
        if (stop == FREE && !by_loop)
            continue; /* it blocks */
        set_stage(s, &plays[1], &all_options[0], NO_GUARD);
        take(s, &plays[1]);
        beginner_start(&beginner, own, s->lock, &WORK(.mode = NXL_ONCE_HALT),
            stop == TIME ? 300 : WAIT_MS);
        await_with(own, line_listens(NAME, 1));
        assert_true(once_line(line));
        stop_waiting(s, (enum stop)stop);
        await_with(own, line_length(NAME) == 0);
        assert_true(once_line(after));
        assert_string_equal(line, after);
        assert_result(once_tell(NULL, s->holder, NXL_ONCE_FAILED, 0, NULL),
            NXL_OK, s->holder);
        assert_result(once_begin(own, s->lock, NULL, 5000), NXL_OK, s->lock);
        assert_result(
            once_tell(own, s->lock, NXL_ONCE_DONE, 0, NULL), NXL_OK, s->lock);
        clear_stage(s);
    }
}

/* An interrupt that comes first ends the next begin, which sends nothing. */
static void an_interrupt_that_comes_first(void **state)
{
    struct scene *s = &on_stage;
    for (int all = 0; all < 2; all++) {
        set_stage(s, &plays[0], &all_options[0], NO_GUARD);
        if (all)
            nxl_client_interrupt(own);
        else
            assert_int_equal(nxl_lock_interrupt(s->lock), NXL_OK);
        assert_result(
            once_begin(own, s->lock, NULL, 1000), NXL_CANCELLED, s->lock);
        assert_string_equal(once_state(), "none");
        assert_result(once_begin(own, s->lock, NULL, 1000), NXL_OK, s->lock);
        assert_int_equal(nxl_lock_cancel(s->lock), NXL_OK); /* in vain */
        assert_int_equal(nxl_lock_interrupt(s->lock), NXL_OK);
        assert_true(nxl_lock_held(s->lock));
        assert_result(
            once_tell(own, s->lock, NXL_ONCE_DONE, 0, NULL), NXL_OK, s->lock);
        clear_stage(s);
    }
}

/* Many processes wait for the same work: it is done once, and all get the
 * result. */
static void many_wait_for_the_result(void **state)
{
    enum { MANY = 8 };
    static struct beginner all[MANY];
    nxl_client *clients[MANY];
    nxl_lock *locks[MANY];
    int done = 0, begun = 0;
    own = NULL;
    for (int i = 0; i < MANY; i++) {
        clients[i] = client_on(NO_GUARD);
        locks[i] = new_lock(clients[i], NAME, 30000);
        beginner_start(&all[i], clients[i], locks[i],
            &WORK(.fingerprint = FINGERPRINT), WAIT_MS);
    }
    assert_eventually(line_length(NAME) == MANY - 1);
    for (int i = 0; i < MANY; i++) {
        if (!nxl_lock_held(locks[i]))
            continue;
        assert_result(beginner_end(&all[i]), NXL_OK, locks[i]);
        assert_result(once_tell(clients[i], locks[i], NXL_ONCE_DONE, 0, "paid"),
            NXL_OK, locks[i]);
        all[i].lock = NULL;
        begun++;
    }
    assert_int_equal(begun, 1);
    for (int i = 0; i < MANY; i++) {
        if (all[i].lock) {
            done += beginner_end(&all[i]) == NXL_DONE;
            assert_shown(locks[i]);
        }
        end(locks[i], clients[i]);
    }
    assert_int_equal(done, MANY - 1);
    assert_true(is_free(NAME));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(in_line),
        once_test(by_polling),
        once_test(a_wait_that_is_given_up),
        once_test(an_interrupt_that_comes_first),
        once_blocking_test(many_wait_for_the_result),
    };
    return on_run(one_unix, "once: waits", tests);
}
