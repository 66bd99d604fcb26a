/* SPDX-License-Identifier: MIT */
/*
 * 32 processes want one name at five servers that are stopped, continued,
 * killed and restarted without persistence at random, now and then a majority
 * of them; the processes are stopped and killed, too. No two ever hold it, it
 * is granted again soon whenever a majority has a vote, and nothing is left
 * behind. The same without the restart guard: there the checker has to find
 * two holders, or it is worth nothing.
 *
 * NXLOCK_SEED=N repeats the order of faults; NXLOCK_FULL=1 takes a minute.
 */
#define TEST_TIMEOUT_S 240
#include "support/test.h"

#include <sys/wait.h>

#include "live/quorum_rig.h"

#include "live/holds_rig.h"

enum { COUNT = 5, QUORUM = 3, STEP_MS = 10, MAX_MS = 3000 };
#define MAX "max_ttl_ms=3000&timeout_ms=600" /* MAX_MS */
/* ceil(3032 ms) and one second: so old is a server that votes. Who knew the
 * process before counts from when it sees the next one, so a little more. */
enum { AGE_S = 5, VOTES_MS = 6000 };
/* Longest without a grant while a majority votes: the lease of one that died,
 * the attempts of 32 at once, two busy processors. */
enum { GAP_MS = 10000 };

struct chaos {
    int seconds;
    const char *parameters;
    bool guard;
    int freeze_ms, kill_ms, freeze_most_ms, bounce_most_ms; /* about so often */
    int stop_ms, crash_ms; /* the same of contenders */
};

/* By the plan, which knows no clock: ms since the start. */
static struct target {
    enum { RUNS, FROZEN, DEAD } state;
    int until, votes_at;
} target[COUNT];

static struct process {
    pid_t pid;
    bool stopped;
    int until;
} of[HOLDERS];

static struct totals {
    int freezes, kills, most_frozen, most_bounced, stops, crashes;
    int below_ms; /* without a majority */
    uint64_t gap; /* the longest without a grant, with one */
} totals;

static int votes_from; /* a majority, again, after it was killed */
static uint64_t dice;

/* -------------------------------------------------------------- contenders */

/* Most are short; some are prolonged, some stay until the lease is over, and
 * release what is somebody else's by then. */
static void one_hold(int who, uint64_t *mine, nxl_lock *lock, int ttl_ms)
{
    struct holder_of *own = &holds.board->of[who];
    int rc = nxl_lock_acquire(lock, dice_below(mine, 2500));
    count_result(who, rc);
    if (rc != NXL_OK)
        return;
    struct hold *hold = hold_begins(who, nxl_lock_deadline(lock));
    int kind = dice_below(mine, 40);
    if (kind < 2) {
        pause_us((int)nxl_lock_remaining_ms(lock) * 1000 + 20000);
    } else if (kind == 2) {
        pause_us(dice_below(mine, ttl_ms * 500));
        rc = nxl_lock_extend(lock, 0);
        if (rc == NXL_OK)
            hold_goes_on(hold, nxl_lock_deadline(lock));
        else if (rc == NXL_LOST)
            hold_ends(hold);
        own->lost += rc == NXL_LOST;
        pause_us(dice_below(mine, ttl_ms * 700));
    } else if (kind < 6) {
        pause_us(dice_below(mine, ttl_ms * 500));
    } else {
        pause_us(dice_below(mine, 5000));
    }
    hold_ends(hold);
    rc = nxl_lock_release(lock);
    own->lost += rc == NXL_LOST;
    pause_us(dice_below(mine, 3000));
}

/* When over is 1 those with an even number end. */
static bool goes_on(int who)
{
    return holds.board->over <= who % 2;
}

/* A new client now and then: one that knows no server from before. */
static void contend(int who, uint64_t mine, const char *parameters)
{
    while (goes_on(who)) {
        int ttl_ms = 600 + dice_below(&mine, MAX_MS - 600 + 1);
        char list[URLS_ROOM] = "";
        nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
        nxl_client *client;
        nxl_lock *lock;
        for (size_t i = 0; i < COUNT; i++)
            add_url(list, servers[i].unix_url, parameters);
        options.ttl_ms = dice_below(&mine, 3) ? ttl_ms : MAX_MS;
        if (nxl_client_new(&client, list, NULL) != NXL_OK ||
            nxl_lock_new(&lock, client, "k", &options) != NXL_OK)
            _exit(5);
        for (int i = 0; i < 50 && holds.board->over <= who % 2; i++)
            one_hold(who, &mine, lock, (int)options.ttl_ms);
        end(lock, client);
    }
    _exit(0);
}

static void start_contender(int who, const struct chaos *c)
{
    uint64_t mine = dice_roll(&dice);
    of[who] = (struct process){.pid = test_fork()};
    assert_true(of[who].pid >= 0);
    if (of[who].pid == 0)
        contend(who, mine, c->parameters);
}

static void continue_it(struct process *p)
{
    if (p->pid && p->stopped)
        kill(p->pid, SIGCONT);
    p->stopped = false;
}

static void crash(struct process *p)
{
    int status = -1;
    kill(p->pid, SIGKILL);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    p->pid = 0;
    assert_true(WIFSIGNALED(status)); /* it had not given up by itself */
}

static void await_end(struct process *p)
{
    int status = -1;
    continue_it(p);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    p->pid = 0;
    assert_int_equal(status, 0);
}

/* ---------------------------------------------------------------- the plan */

static bool about_every(int ms)
{
    return ms > 0 && dice_below(&dice, ms / STEP_MS) == 0;
}

static int voting(int now)
{
    int count = 0;
    for (int i = 0; i < COUNT; i++)
        count += target[i].state == RUNS && target[i].votes_at <= now;
    return count;
}

/* A majority votes without that one. */
static bool to_spare(int i, int now)
{
    bool votes = target[i].state == RUNS && target[i].votes_at <= now;
    return voting(now) - votes >= QUORUM;
}

static void freeze_server(int i, int until)
{
    if (target[i].state != RUNS)
        return;
    redis_freeze(&servers[i]);
    target[i].state = FROZEN;
    target[i].until = until;
    totals.freezes++;
}

static void kill_server(int i, int until)
{
    if (target[i].state == DEAD)
        return;
    redis_kill(&servers[i]);
    target[i].state = DEAD;
    target[i].until = until;
    totals.kills++;
}

static void bring_back(int i, int now, bool guard)
{
    if (target[i].state == FROZEN)
        redis_thaw(&servers[i]);
    if (target[i].state == DEAD) {
        redis_restart(&servers[i]);
        target[i].votes_at = guard ? now + VOTES_MS : 0;
    }
    target[i].state = RUNS;
}

/* What happens to the servers at that step. Every draw depends on the seed
 * and on earlier steps alone. */
static void harm_servers(const struct chaos *c, int now)
{
    for (int i = 0; i < COUNT; i++)
        if (target[i].state != RUNS && now >= target[i].until)
            bring_back(i, now, c->guard);
    if (about_every(c->freeze_ms)) {
        int i = dice_below(&dice, COUNT);
        int until = now + dice_stall_ms(&dice, 4000);
        if (to_spare(i, now))
            freeze_server(i, until);
    }
    if (about_every(c->kill_ms)) {
        int i = dice_below(&dice, COUNT);
        int until = now + dice_below(&dice, 600);
        if (to_spare(i, now))
            kill_server(i, until);
    }
    if (about_every(c->freeze_most_ms)) {
        int first = dice_below(&dice, COUNT);
        int until = now + 50 + dice_below(&dice, 1200);
        for (int k = 0; k < QUORUM; k++)
            freeze_server((first + k) % COUNT, until);
        totals.most_frozen++;
    }
    if (about_every(c->bounce_most_ms) || now == c->seconds * 250) {
        int first = dice_below(&dice, COUNT);
        int until = now + dice_below(&dice, 100);
        if (c->guard && totals.most_bounced > 0 && now < votes_from + 6000)
            return; /* first there has to be something to see again */
        for (int k = 0; k < QUORUM; k++)
            kill_server((first + k) % COUNT, until);
        votes_from = until + VOTES_MS;
        totals.most_bounced++;
    }
}

static void harm_contenders(const struct chaos *c, int now)
{
    for (int i = 0; i < HOLDERS; i++)
        if (of[i].stopped && now >= of[i].until)
            continue_it(&of[i]);
    if (about_every(c->stop_ms)) {
        struct process *p = &of[dice_below(&dice, HOLDERS)];
        int until = now + dice_stall_ms(&dice, 2 * MAX_MS);
        if (!p->stopped) {
            kill(p->pid, SIGSTOP);
            *p = (struct process){p->pid, true, until};
            totals.stops++;
        }
    }
    if (about_every(c->crash_ms)) {
        int who = dice_below(&dice, HOLDERS);
        crash(&of[who]);
        start_contender(who, c);
        totals.crashes++;
    }
}

/* ---------------------------------------------------------------- the play */

static void pause_until(uint64_t time)
{
    uint64_t now = test_now_ns();
    if (now < time)
        pause_us((int)((time - now) / 1000));
}

/* How long nobody has been granted it though a majority votes. */
static void measure(int now, uint64_t *calm_since)
{
    uint64_t time = test_now_ns();
    if (voting(now) < QUORUM) {
        totals.below_ms += STEP_MS;
        *calm_since = UINT64_MAX;
        return;
    }
    if (*calm_since == UINT64_MAX)
        *calm_since = time;
    uint64_t since =
        holds.last_grant > *calm_since ? holds.last_grant : *calm_since;
    if (time > since && time - since > totals.gap)
        totals.gap = time - since;
}

/* Returns how many overlaps were seen; it ends with the first. */
static int play(const struct chaos *c)
{
    const char *seed = getenv("NXLOCK_SEED");
    uint64_t number = seed ? strtoull(seed, NULL, 10) : test_now_ns();
    uint64_t calm_since = UINT64_MAX;
    dice = number;
    print_message("# NXLOCK_SEED=%llu\n", (unsigned long long)number);
    memset(target, 0, sizeof(target));
    votes_from = 0;
    totals = (struct totals){0};
    for (size_t i = 0; i < COUNT && c->guard; i++)
        while (
            server_number(&servers[i], "server", "uptime_in_seconds") < AGE_S)
            test_pause_ms(20);
    holds_open();
    for (int i = 0; i < HOLDERS; i++)
        start_contender(i, c);
    uint64_t start = test_now_ns();
    int found = 0;
    for (int now = 0; now < c->seconds * 1000 && !found; now += STEP_MS) {
        harm_servers(c, now);
        harm_contenders(c, now);
        found = holds_look();
        measure(now, &calm_since);
        pause_until(start + (uint64_t)(now + STEP_MS) * UINT64_C(1000000));
        if (found)
            print_message("# %d ms after the start\n", now);
    }
    for (int i = 0; i < COUNT; i++)
        bring_back(i, 0, false);
    return found;
}

/* One half ends its clients in order; then the other half dies at whatever it
 * does. */
static void finish(void)
{
    holds.board->over = 1;
    for (int i = 0; i < HOLDERS; i += 2)
        await_end(&of[i]);
    for (int i = 1; i < HOLDERS; i += 2)
        crash(&of[i]);
}

static void tell(void)
{
    holds_look(); /* at the last ones, too */
    holds_tell();
    print_message("# %d stops and %d kills of servers, a majority stopped %d "
                  "and killed %d times; %d stops and %d kills of processes\n",
        totals.freezes, totals.kills, totals.most_frozen, totals.most_bounced,
        totals.stops, totals.crashes);
    print_message("# %d ms without a majority; with one, the longest without "
                  "a grant: %.3f s\n",
        totals.below_ms, (double)totals.gap / 1e9);
}

/* Every key, of whatever attempt. */
static long long keys_left(void)
{
    long long count = 0;
    for (size_t i = 0; i < COUNT; i++)
        count += redis_run(&servers[i], "DBSIZE", NULL);
    return count;
}

static bool in_full(void)
{
    const char *full = getenv("NXLOCK_FULL");
    return full && strcmp(full, "1") == 0;
}

static void never_two(void **state)
{
    struct chaos chaos = {.seconds = in_full() ? 60 : 12,
        .parameters = MAX,
        .guard = true,
        .freeze_ms = 250,
        .kill_ms = 3000,
        .freeze_most_ms = 4000,
        .bounce_most_ms = 25000,
        .stop_ms = 700,
        .crash_ms = 1500};
    int found = play(&chaos);
    finish();
    int64_t over = test_now_ms();
    while (keys_left() > 0 && test_now_ms() < over + MAX_MS + 1000)
        test_pause_ms(5);
    print_message(
        "# keys were left for %lld ms\n", (long long)(test_now_ms() - over));
    tell();
    assert_int_equal(found + holds_verdict(), 0);
    assert_int_equal(keys_left(), 0);
    assert_between(totals.gap / 1000000, 0, GAP_MS);
    int voting_ms = chaos.seconds * 1000 - totals.below_ms;
    assert_between(holds_result(NXL_OK), voting_ms / 1000, INT32_MAX);
    assert_true(voting_ms > 0 && totals.most_bounced > 0);
}

/* What the guard is for, and whether two holders would be seen. */
static void two_without_guard(void **state)
{
    struct chaos chaos = {
        .seconds = 20, .parameters = MAX "&" NO_GUARD, .bounce_most_ms = 1000};
    int found = play(&chaos);
    finish();
    tell();
    assert_true(found > 0);
    assert_true(holds_verdict() > 0);
}

static int clean_up(void **state)
{
    for (int i = 0; i < HOLDERS; i++) {
        if (of[i].pid > 0) {
            kill(of[i].pid, SIGKILL);
            waitpid(of[i].pid, NULL, 0);
        }
        of[i].pid = 0;
    }
    holds_close();
    return quorum_mend(state);
}

#define chaos_test(function)                                                   \
    cmocka_unit_test_setup_teardown(function, quorum_clean, clean_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        chaos_test(never_two),
        chaos_test(two_without_guard),
    };
    return quorum_run("quorum in chaos");
}
