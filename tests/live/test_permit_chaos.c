/* SPDX-License-Identifier: MIT */
/*
 * Processes with locks of all kinds at one name (permit_crowd.h), which die,
 * are stopped and lose their connections. No more permits are ever held than
 * any of the holders allows, no deadline is later than the server's, everybody
 * who waits gets the lock, and 15 s after the last one has ended or died no key
 * is left.
 *
 * NXLOCK_SEED=N repeats the order of faults; NXLOCK_PERMIT_SECONDS=N: how long
 * each scene takes. NXLOCK_OLD_LIBRARY=PATH plays the scene of two versions.
 */
#define TEST_TIMEOUT_S 900
#include "support/test.h"

#include <sys/wait.h>

#include "live/permit_crowd.h"
#include "support/proxy.h"

enum { STEP_MS = 5, FAULTS = 10 };
/* The line ends 15 s after the last one has asked; then there is a cleanup. */
enum { LITTER_MS = 15000 + LEASE_MS + 1000 };

static const struct role *roles;
static int members;
static struct process {
    pid_t pid;
    bool stopped;
    uint64_t until;
} process[MEMBERS_MAX];

static struct proxy *proxy;
static uint64_t strand_at, deliver_at; /* 0: it is not held, or stranded */
static uint64_t thaw_at;
static uint64_t dice, stalled; /* the longest time a step was kept waiting */

/* --------------------------------------------------------------- processes */

static void start_process(int i)
{
    uint64_t own = dice_roll(&dice);
    process[i] = (struct process){.pid = test_fork()};
    assert_true(process[i].pid >= 0);
    if (process[i].pid == 0)
        run_member(
            i, &roles[i], i % 3 == 2 ? server.unix_url : proxy_url(proxy), own);
}

static void continue_process(int i)
{
    if (process[i].stopped)
        kill(process[i].pid, SIGCONT);
    process[i].stopped = false;
}

static void kill_process(int i)
{
    int status = -1;
    kill(process[i].pid, SIGKILL);
    assert_int_equal(waitpid(process[i].pid, &status, 0), process[i].pid);
    assert_int_equal(status, SIGKILL); /* it had not given up */
    process[i].pid = 0;
}

/* ------------------------------------------------------------------ faults */

static void fault_kill_a_third(void)
{
    int first = dice_below(&dice, 3);
    for (int i = first; i < members; i += 3)
        kill_process(i);
    for (int i = first; i < members; i += 3)
        start_process(i);
}

static void fault_kill(void)
{
    int i = dice_below(&dice, members);
    kill_process(i);
    start_process(i);
}

/* Half of them for longer than a lease. */
static void fault_stop(void)
{
    static const int most_ms[] = {20, 400, 800, 800, 1600, 4000};
    int i = dice_below(&dice, members);
    if (process[i].stopped)
        return;
    board->stops[i]++;
    kill(process[i].pid, SIGSTOP);
    process[i].stopped = true;
    process[i].until =
        ms_from_now(dice_below(&dice, most_ms[dice_below(&dice, 6)]));
}

/* Some connection, of either kind. */
static void fault_client_kill(void)
{
    redisReply *list = redis_command(&server, "CLIENT", "LIST", NULL);
    char *line = list->str, id[32];
    for (int skip = dice_below(&dice, 2 * members); skip > 0; skip--) {
        char *next = strchr(line, '\n');
        line = next && next[1] ? next + 1 : list->str;
    }
    snprintf(id, sizeof(id), "%lld", strtoll(line + strlen("id="), NULL, 10));
    freeReplyObject(list);
    /* It may have gone by now; and this connection is left alone. */
    freeReplyObject(redis_command(
        &server, "CLIENT", "KILL", "ID", id, "SKIPME", "yes", NULL));
}

static void fault_script_flush(void)
{
    redis_run(&server, "SCRIPT", "FLUSH", NULL);
}

/* The line, or the mark that somebody waits. */
static void fault_delete_line(void)
{
    char key[64];
    snprintf(key, sizeof(key),
        strchr(crowd_name, '{') ? "%s::nxl-%c" : "{%s}:nxl-%c", crowd_name,
        "lw"[dice_below(&dice, 2)]);
    redis_run(&server, "DEL", key, NULL);
}

static void fault_cut(void)
{
    board->server_faults++;
    if (!strand_at && !deliver_at)
        proxy_cut(proxy, dice_below(&dice, 2) == 0);
}

/* Requests are held back; then their clients' connections end, and later on
 * they are delivered. */
static void fault_strand(void)
{
    if (strand_at || deliver_at)
        return;
    board->server_faults++;
    proxy_hold(proxy, PROXY_UP, true);
    strand_at = ms_from_now(1 + dice_below(&dice, 60));
}

static void fault_freeze(void)
{
    board->server_faults++;
    redis_freeze(&server);
    thaw_at = ms_from_now(20 + dice_below(&dice, 900));
}

static void fault_restart(void)
{
    board->server_faults++;
    redis_kill(&server);
    redis_restart(&server);
}

enum { ONLY_A_THIRD = 1, NO_THIRD = 0x1fe, AND_RESTARTS = 0x3fe };

static struct fault {
    const char *name;
    void (*strike)(void);
    int every_ms; /* on average */
    int count;
} fault[FAULTS] = {
    {"a third killed", fault_kill_a_third, 250, 0},
    {"killed", fault_kill, 160, 0}, {"stopped", fault_stop, 200, 0},
    {"CLIENT KILL", fault_client_kill, 250, 0},
    {"SCRIPT FLUSH", fault_script_flush, 1500, 0},
    {"line or mark deleted", fault_delete_line, 700, 0},
    {"connections cut", fault_cut, 1000, 0},
    {"delivered late", fault_strand, 600, 0},
    {"server stopped", fault_freeze, 3000, 0},
    {"restart", fault_restart, 1000, 0}, /* not without AOF */
};

static void network_next(uint64_t now)
{
    if (strand_at && now >= strand_at) {
        proxy_strand(proxy);
        proxy_hold(proxy, PROXY_UP, false);
        strand_at = 0;
        deliver_at = ms_from_now(dice_stall_ms(&dice, 1500));
    } else if (deliver_at && now >= deliver_at) {
        proxy_deliver(proxy);
        deliver_at = 0;
        board->server_faults++;
    }
}

/* Faults: a set of them, by bits. */
static void step(unsigned faults)
{
    uint64_t now = test_now_ns();
    for (int i = 0; i < members; i++)
        if (process[i].stopped && now >= process[i].until)
            continue_process(i);
    network_next(now);
    if (server.frozen && now >= thaw_at) {
        redis_thaw(&server);
        board->server_faults++;
    }
    for (int i = 0; i < FAULTS && !server.frozen; i++) {
        if (!(faults >> i & 1) ||
            dice_below(&dice, fault[i].every_ms / STEP_MS) > 0)
            continue;
        fault[i].strike();
        fault[i].count++;
    }
    test_pause_ms(STEP_MS);
    uint64_t took = test_now_ns() - now;
    stalled = took > stalled ? took : stalled;
}

static bool has_trouble(void)
{
    bool any = strand_at || deliver_at || server.frozen;
    for (int i = 0; i < members; i++)
        any |= process[i].stopped;
    return any;
}

/* ----------------------------------------------------------------- telling */

static void tell(const struct verdict *v)
{
    static const char *const result[] = {"granted", "busy", "lost", "unknown",
        "pending", "cancelled", "free", "error"};
    uint64_t longest = 0;
    int wrong_type = 0;
    print_message("# %zu holds, %zu beside others, at most %lld permits;",
        v->holds, v->together, (long long)v->most_used);
    for (int rc = 0; rc < 8; rc++) {
        int sum = 0;
        for (int i = 0; i < members; i++)
            sum += board->member[i].results[rc];
        if (sum > 0)
            print_message(" %s %d", result[rc], sum);
    }
    print_message("; released or extended too late: %d\n# held:",
        board->count[COUNT_LOST]);
    for (int i = 0; i < members; i++) {
        const struct member *m = &board->member[i];
        longest = m->longest_wait > longest ? m->longest_wait : longest;
        wrong_type += m->wrong_type;
        print_message(" %d", m->holds);
    }
    print_message("\n# faults:");
    for (int i = 0; i < FAULTS; i++)
        print_message(" %s %d,", fault[i].name, fault[i].count);
    print_message(" of another type for the old library: %d\n# %d leases "
                  "compared with the server's; longest wait %.1f s; the "
                  "machine stood still for %llu ms; %s\n",
        wrong_type, board->count[COUNT_CHECKED], (double)longest / 1e3,
        (unsigned long long)(stalled / 1000000), board->said);
}

/* -------------------------------------------------------------- the play */

static int seconds_of(int usual, int full)
{
    const char *asked = getenv("NXLOCK_PERMIT_SECONDS");
    return asked ? atoi(asked) : getenv("NXLOCK_FULL") ? full : usual;
}

static void begin(const char *name)
{
    const char *seed = getenv("NXLOCK_SEED");
    dice = seed ? strtoull(seed, NULL, 10) : test_now_ns();
    print_message("# NXLOCK_SEED=%llu\n", (unsigned long long)dice);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    crowd_name = name;
    stalled = strand_at = deliver_at = 0;
    for (int i = 0; i < FAULTS; i++)
        fault[i].count = 0;
    proxy = proxy_to(&server, false);
    for (int i = 0; i < members; i++)
        start_process(i);
}

/* Half of them end in order, then the others die at whatever they do. */
static void finish(void)
{
    board->over = 1;
    for (int i = 0; i < members; i += 2) {
        int status = -1;
        assert_int_equal(waitpid(process[i].pid, &status, 0), process[i].pid);
        process[i].pid = 0;
        assert_int_equal(status, 0);
    }
    for (int i = 1; i < members; i += 2)
        kill_process(i);
}

static int grants(void)
{
    int sum = 0;
    for (int i = 0; i < members; i++)
        sum += board->member[i].holds;
    return sum;
}

/* For so long, and until there were so many grants. */
static struct verdict play(int seconds, unsigned faults, int at_least)
{
    uint64_t end = ms_from_now(seconds * 1000);
    while ((test_now_ns() < end || grants() < at_least) && !board->full)
        step(faults);
    while (has_trouble())
        step(0);
    finish();
    struct verdict v = judge();
    tell(&v);
    assert_int_equal(v.violations, 0);
    assert_int_equal(board->count[COUNT_PAST], 0);
    assert_int_equal(board->count[COUNT_GONE], 0);
    assert_int_equal(board->count[COUNT_ERRORS], 0);
    assert_int_equal(board->count[COUNT_STARVED], 0);
    if (stalled < LATE_CALL_MS * UINT64_C(1000000))
        assert_int_equal(board->count[COUNT_HUNG], 0);
    assert_true(v.holds > (size_t)seconds * 5);
    assert_true(v.together > v.holds / 20);
    assert_true(board->count[COUNT_CHECKED] > 0);
    return v;
}

static void assert_nothing_left(void)
{
    int64_t over = test_now_ms();
    while (redis_run(&server, "DBSIZE", NULL) > 0 &&
           test_now_ms() < over + LITTER_MS)
        test_pause_ms(20);
    print_message(
        "# keys were left for %lld ms\n", (long long)(test_now_ms() - over));
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

#define POOL .permits = 4

static void a_third_of_a_pool_is_killed(void **state)
{
    static const struct role pool[12] = {{POOL}, {POOL}, {POOL}, {POOL}, {POOL},
        {POOL}, {POOL}, {POOL}, {POOL}, {POOL}, {POOL}, {POOL}};
    roles = pool;
    members = 12;
    begin("pool");
    struct verdict v = play(seconds_of(4, 30), ONLY_A_THIRD, 0);
    assert_int_equal(v.most_used, 4); /* all of them, and no more */
}

static const struct role all[15] = {{POOL}, {.shared = 1},
    {.permits = 4, .weight = 2}, {.permits = 0}, {.shared = 1}, {.permits = 2},
    {POOL}, {.poll = true}, {.shared = 1}, {.permits = 3, .weight = 3}, {POOL},
    {.permits = 0}, {.permits = 2}, {POOL, .poll = true}, {.shared = 1}};

static void all_kinds_and_faults(void **state)
{
    roles = all;
    members = 15;
    begin("{tag}job");
    play(seconds_of(6, 60), NO_THIRD, 0);
    assert_nothing_left();
}

/* Two more mixes, if there is time for them. */
static void many_faults(const struct role *mix)
{
    int seconds = seconds_of(0, 60);
    if (seconds == 0)
        skip();
    roles = mix;
    members = 14;
    begin("job");
    play(seconds, NO_THIRD, 0);
    assert_nothing_left();
}

static void readers_and_writers(void **state)
{
    static const struct role mix[14] = {{.shared = 1}, {.permits = 0},
        {.shared = 1}, {.shared = 1}, {.shared = 1, .poll = true},
        {.shared = 1}, {.permits = 0}, {.shared = 1}, {.shared = 1},
        {.poll = true}, {.shared = 1}, {.shared = 1}, {.permits = 0},
        {.shared = 1}};
    many_faults(mix);
}

static void weights_and_limits(void **state)
{
    static const struct role mix[14] = {{POOL}, {.permits = 8, .weight = 5},
        {.permits = 2}, {POOL, .weight = 3}, {.permits = 8}, {POOL},
        {.permits = 8, .weight = 2}, {.permits = 3, .weight = 2},
        {POOL, .weight = 4}, {POOL, .poll = true}, {.permits = 8, .weight = 8},
        {.permits = 3}, {.permits = 8}, {.permits = 8, .poll = true}};
    many_faults(mix);
}

static void with_restarts(void **state)
{
    roles = all;
    members = 15;
    begin("job");
    play(seconds_of(5, 60), AND_RESTARTS, 0);
}

static void two_versions(void **state)
{
    static const struct role both[15] = {{.old = true}, {.shared = 1},
        {.permits = 0}, {.old = true}, {.shared = 1}, {.permits = 4},
        {.permits = 0}, {.old = true}, {.shared = 1},
        {.permits = 4, .weight = 2}, {.permits = 0, .poll = true},
        {.old = true}, {.old = true, .poll = true}, {.permits = 4},
        {.permits = 0}};
    if (!getenv("NXLOCK_OLD_LIBRARY"))
        skip();
    roles = both;
    members = 15;
    begin("both");
    play(seconds_of(10, 60), NO_THIRD, 10000);
    assert_nothing_left();
}

static int start_server(void **state)
{
    return redis_start(&server, NULL);
}

/* What a client was told is in its file. */
static int start_durable(void **state)
{
    redis_stop(&server);
    return redis_start(
        &server, "--appendonly", "yes", "--appendfsync", "always", NULL);
}

static int clean_up(void **state)
{
    for (int i = 0; i < members; i++) {
        if (process[i].pid > 0) {
            kill(process[i].pid, SIGKILL);
            waitpid(process[i].pid, NULL, 0);
        }
        process[i].pid = 0;
    }
    proxy_stop(proxy);
    proxy = NULL;
    if (board)
        munmap(board, sizeof(*board));
    board = NULL;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_third_of_a_pool_is_killed, clean_up),
        cmocka_unit_test_teardown(all_kinds_and_faults, clean_up),
        cmocka_unit_test_teardown(readers_and_writers, clean_up),
        cmocka_unit_test_teardown(weights_and_limits, clean_up),
        cmocka_unit_test_teardown(two_versions, clean_up),
        cmocka_unit_test_setup_teardown(with_restarts, start_durable, clean_up),
    };
    return cmocka_run_group_tests_name(
        "permits in chaos", tests, start_server, live_stop);
}
