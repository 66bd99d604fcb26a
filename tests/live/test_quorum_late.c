/* SPDX-License-Identifier: MIT */
/*
 * Servers that answer late, in each direction up to twice the time that a
 * round gives them: what a lost round leaves on its way is undone in order, so
 * that at no server the next one of the same contender ever meets it; nothing
 * waits for its ttl to end; and nobody dials a server because it is slow.
 * One round, exactly: live/scenes/quorum_stranded.scenes.
 *
 * NXLOCK_SEED=N repeats the choice of delays; NXLOCK_FULL=1 takes a minute.
 */
#define TEST_TIMEOUT_S 150
#include "support/test.h"

#include <stdatomic.h>

#include "live/monitor_rig.h"

enum { COUNT = MONITORED, CLIENTS = 8, TTL_MS = 2000, BUDGET_MS = 100 };
enum { STEP_MS = 5 };
#define TERMS NO_GUARD "&timeout_ms=600"

static struct contender {
    pthread_t thread;
    nxl_client *client;
    nxl_lock *lock;
    uint64_t dice;
} contender[CLIENTS];

static uint64_t dice;
static int cuts[COUNT];
static int64_t stall_ms; /* for so long, at most, this thread did not run */
static bool running;     /* the contenders */
static atomic_bool closing;
static atomic_int inside, together; /* holders; how often there were two */
static atomic_int granted;
static atomic_int lapsed; /* leases, on a busy machine, before they were left */

/* Numbers that a seed repeats (splitmix64). */
static uint64_t dice_roll(uint64_t *of)
{
    uint64_t z = *of += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int dice_below(uint64_t *of, int sides)
{
    return (int)(dice_roll(of) % (uint64_t)sides);
}

static void pause_us(int us)
{
    struct timespec t = {0, us * 1000L};
    nanosleep(&t, NULL);
}

static nxl_lock *labelled_lock(nxl_client *client, int who)
{
    char label[16];
    snprintf(label, sizeof(label), "c%d", who);
    return lock_with(client, "k", .ttl_ms = TTL_MS, .label = label);
}

static long long expired(size_t i)
{
    return server_number(&servers[i], "stats", "expired_keys");
}

/* ------------------------------------------------------------ all at random */

static void hold(struct contender *c)
{
    together += atomic_fetch_add(&inside, 1) > 0;
    granted++;
    pause_us(dice_below(&c->dice, 5000));
    lapsed += !nxl_lock_held(c->lock);
    inside--;
}

static void *contend(void *argument)
{
    struct contender *c = argument;
    while (!closing) {
        if (nxl_lock_acquire(c->lock, dice_below(&c->dice, 1500)) != NXL_OK)
            continue;
        hold(c);
        (void)!nxl_lock_release(c->lock);
        pause_us(dice_below(&c->dice, 3000));
    }
    end(c->lock, c->client); /* at once: it has debts to pay */
    return NULL;
}

static void start_contenders(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        nxl_client *client = proxied_client(COUNT, TERMS);
        connect_all(client);
        contender[i] = (struct contender){.client = client,
            .lock = labelled_lock(client, i),
            .dice = dice_roll(&dice)};
    }
    for (size_t i = 0; i < COUNT; i++)
        assert_eventually(proxy_accepted(proxies[i]) == CLIENTS);
    monitors_open();
    running = true;
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(
            pthread_create(&contender[i].thread, NULL, contend, &contender[i]),
            0);
}

static void end_contenders(void)
{
    closing = true;
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(contender[i].thread, NULL);
    running = false;
}

/* Mostly both ways together up to twice the budget; at times each of them, or
 * none. */
static void delay_one(void)
{
    struct proxy *p = proxies[dice_below(&dice, COUNT)];
    int kind = dice_below(&dice, 8);
    int up = dice_below(&dice, 2 * BUDGET_MS + 1);
    int down = dice_below(&dice, 2 * BUDGET_MS + 1);
    if (kind == 0) {
        up = down = 0;
    } else if (kind > 1) {
        int both = up;
        up = down % (both + 1);
        down = both - up;
    }
    proxy_delay(p, PROXY_UP, up);
    proxy_delay(p, PROXY_DOWN, down);
}

static void hurry_all(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        proxy_delay(proxies[i], PROXY_UP, 0);
        proxy_delay(proxies[i], PROXY_DOWN, 0);
    }
}

/* cut_ms: about so often all connections to one server break; 0: never. */
static void play(int seconds, int cut_ms)
{
    const char *seed = getenv("NXLOCK_SEED");
    uint64_t number = seed ? strtoull(seed, NULL, 10) : test_now_ns();
    int calm_until = 0;
    dice = number;
    print_message("# NXLOCK_SEED=%llu\n", (unsigned long long)number);
    memset(cuts, 0, sizeof(cuts));
    for (size_t i = 0; i < COUNT; i++)
        redis_run(&servers[i], "CONFIG", "RESETSTAT", NULL);
    closing = false;
    inside = together = granted = lapsed = 0;
    start_contenders();
    int64_t step_ms = test_now_ms();
    stall_ms = 0;
    for (int now = 0; now < seconds * 1000 && together <= lapsed;
         now += STEP_MS) {
        /* In a calm moment a round is granted while an earlier one is late. */
        if (dice_below(&dice, 1000 / STEP_MS) == 0) {
            hurry_all();
            calm_until = now + 300;
        }
        if (now >= calm_until)
            delay_one();
        if (cut_ms > 0 && dice_below(&dice, cut_ms / STEP_MS) == 0) {
            int i = dice_below(&dice, COUNT);
            proxy_cut(proxies[i], dice_below(&dice, 2) == 0);
            cuts[i]++;
        }
        monitors_read();
        test_pause_ms(STEP_MS);
        int64_t before = step_ms;
        step_ms = test_now_ms();
        if (step_ms - before > stall_ms)
            stall_ms = step_ms - before;
    }
    end_contenders();
    hurry_all();
    int64_t over = test_now_ms();
    while (keys_at(COUNT, "k") > 0 && test_now_ms() < over + 2 * TTL_MS)
        test_pause_ms(1);
    print_message(
        "# keys were left for %lld ms\n", (long long)(test_now_ms() - over));
    monitors_catch_up();
}

static int rounds_seen(void)
{
    int most = 0;
    for (size_t i = 0; i < COUNT; i++) {
        struct monitor *m = &monitor[i];
        print_message("# server %zu: %d rounds, %d met another's value, %d "
                      "their own; a value stood for %.0f ms at most, %lld "
                      "expired; %d cuts, %zu connections\n",
            i, m->tokens, m->refused, m->own_in_way, m->longest * 1e3,
            expired(i), cuts[i], proxy_accepted(proxies[i]));
        most = m->tokens > most ? m->tokens : most;
    }
    print_message("# %d grants, %d rounds lost\n", granted, most - granted);
    return most;
}

static int seconds(void)
{
    const char *full = getenv("NXLOCK_FULL");
    return full && strcmp(full, "1") == 0 ? 30 : 8;
}

/* On a machine that stands still for long, answers come later than the delays
 * say, and connections are given up. */
static bool kept_pace(void)
{
    print_message("# this machine stalled for %lld ms\n", (long long)stall_ms);
    return stall_ms < 2 * BUDGET_MS;
}

static void late_at_random(void **state)
{
    play(seconds(), 0);
    int lost = rounds_seen() - granted;
    bool timely = kept_pace();
    assert_true(together <= lapsed);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(monitor[i].twice, 0);
        assert_false(redis_exists(&servers[i], "k"));
        if (!timely)
            continue;
        assert_int_equal(monitor[i].own_in_way, 0);
        assert_int_equal(expired(i), 0);
        /* Sent, up to twice late, with what undoes it twice late again. */
        assert_true(monitor[i].longest * 1e3 < 6 * BUDGET_MS + LATE_MS);
        assert_int_equal(proxy_accepted(proxies[i]), CLIENTS);
    }
    assert_true(granted >= seconds());
    assert_true(lost >= 2 * seconds());
}

/* A cut loses what is on its way; what may have been applied is removed on the
 * next connection. One for each client and cut, and no more. */
static void late_and_cut(void **state)
{
    play(seconds(), 400);
    int lost = rounds_seen() - granted;
    bool timely = kept_pace();
    assert_true(together <= lapsed);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(monitor[i].twice, 0);
        assert_false(redis_exists(&servers[i], "k"));
        if (!timely)
            continue;
        /* What a cut has left waits a moment, for each client. */
        assert_between(monitor[i].own_in_way, 0, CLIENTS * cuts[i]);
        /* The end of a client waits for 500 ms and no longer. */
        assert_between(expired(i), 0, 1);
        assert_between(
            proxy_accepted(proxies[i]), CLIENTS, CLIENTS * (1 + cuts[i]));
    }
    assert_true(granted >= seconds());
    assert_true(lost >= seconds());
}

static int clean_up(void **state)
{
    if (running)
        end_contenders();
    monitors_close();
    return quorum_mend(state);
}

#define late_test(function)                                                    \
    cmocka_unit_test_setup_teardown(function, quorum_clean, clean_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        late_test(late_at_random),
        late_test(late_and_cut),
    };
    return quorum_run("quorum and late answers");
}
