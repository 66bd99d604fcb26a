/* SPDX-License-Identifier: MIT */
/*
 * Processes of all kinds (line_contender.h) compete for a few names, most of
 * them in line, while they, their connections, the server and the line itself
 * suffer one fault after the other. No two ever hold a name, no deadline is
 * later than the server's, everybody who waits gets the lock, and 15 s after
 * the last one has ended or died no key is left.
 *
 * NXLOCK_SEED=N repeats the order of faults; NXLOCK_LINE_SECONDS=N: how long.
 */
#define TEST_TIMEOUT_S 240
#include "support/test.h"

#include <sys/wait.h>

#include "live/line_verdict.h"

#include "support/proxy.h"

enum { STEP_MS = 5, PROXIES = 4, FAULTS = 10 };
/* The line ends 15 s after the last one has asked; then there is a cleanup. */
enum { LITTER_MS = 15000 + LEASE_MS + 1000 };
/* The longest that a name may be idle, or blocked by somebody who has died,
 * while others wait: a lease of the longest kind and faults that follow each
 * other. See the table of bounds in docs/wire.md. */
enum { IDLE_MS = 9000 };

static struct process {
    pid_t pid;
    bool stopped;
    uint64_t until;
} process[PROCESSES];

/* What is wrong with a network: strands hold back requests, close the clients'
 * side, and deliver the requests later. */
static struct network {
    struct proxy *proxy;
    enum {
        NET_WELL,
        NET_DELAYED,
        NET_DROPPING,
        NET_HOLDING,
        NET_STRANDED
    } state;
    uint64_t until;
} network[PROXIES];

static uint64_t dice, thaw_at;
static uint64_t stalled; /* the longest that this machine kept a step waiting */

/* --------------------------------------------------------------- processes */

static enum kind kind_of(int i)
{
    static const enum kind kinds[] = {KIND_LINE, KIND_TWINS, KIND_LINE,
        KIND_BARE, KIND_TWINS, KIND_NO_LINE, KIND_OLD, KIND_POLLER};
    return kinds[(i + i / NAMES) % 8]; /* of each kind at each name */
}

static void start_process(int i)
{
    struct proxy *proxy = network[i % (PROXIES + 1) % PROXIES].proxy;
    bool direct = i % (PROXIES + 1) == PROXIES;
    uint64_t own = dice_roll(&dice);
    process[i] = (struct process){.pid = test_fork()};
    assert_true(process[i].pid >= 0);
    if (process[i].pid == 0)
        run_process(
            i, kind_of(i), direct ? server.unix_url : proxy_url(proxy), own);
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

static void fault_kill(void)
{
    int i = dice_below(&dice, PROCESSES);
    kill_process(i);
    start_process(i);
}

/* Half of them for longer than the window, and than a lease. */
static void fault_stop(void)
{
    static const int most_ms[] = {20, 400, 800, 800, 1600, 4000};
    int i = dice_below(&dice, PROCESSES);
    if (process[i].stopped)
        return;
    board->stops[i]++;
    kill(process[i].pid, SIGSTOP);
    process[i].stopped = true;
    process[i].until =
        ms_from_now(dice_below(&dice, most_ms[dice_below(&dice, 6)]));
}

/* Some connection of somebody, of either kind. */
static void fault_client_kill(void)
{
    redisReply *list = redis_command(&server, "CLIENT", "LIST", NULL);
    char *line = list->str, id[32];
    int skip = dice_below(&dice, 2 * PROCESSES);
    for (; skip > 0; skip--) {
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
    const char *name = name_of[dice_below(&dice, NAMES)];
    char key[32];
    snprintf(key, sizeof(key), strchr(name, '{') ? "%s::nxl-%c" : "{%s}:nxl-%c",
        name, "lw"[dice_below(&dice, 2)]);
    redis_run(&server, "DEL", key, NULL);
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

static struct network *well(void)
{
    struct network *n = &network[dice_below(&dice, PROXIES)];
    return n->state == NET_WELL ? n : NULL;
}

static void fault_cut(void)
{
    struct network *n = well();
    if (n)
        proxy_cut(n->proxy, dice_below(&dice, 2) == 0);
}

static void fault_strand(void)
{
    struct network *n = well();
    if (!n)
        return;
    board->server_faults++;
    proxy_hold(n->proxy, PROXY_UP, true);
    n->state = NET_HOLDING;
    n->until = ms_from_now(1 + dice_below(&dice, 60));
}

static void fault_network(void)
{
    struct network *n = well();
    if (!n)
        return;
    board->server_faults++;
    if (dice_below(&dice, 2) == 0) {
        proxy_drop(n->proxy, PROXY_DOWN, true);
        n->state = NET_DROPPING;
        n->until = ms_from_now(5 + dice_below(&dice, 600));
    } else {
        proxy_delay(n->proxy, dice_below(&dice, 2) ? PROXY_UP : PROXY_DOWN,
            dice_below(&dice, 250));
        n->state = NET_DELAYED;
        n->until = ms_from_now(50 + dice_below(&dice, 600));
    }
}

static void network_next(struct network *n)
{
    switch (n->state) {
    case NET_HOLDING:
        proxy_strand(n->proxy);
        proxy_hold(n->proxy, PROXY_UP, false);
        n->state = NET_STRANDED;
        n->until = ms_from_now(dice_stall_ms(&dice, 1500));
        return;
    case NET_STRANDED:
        proxy_deliver(n->proxy);
        break;
    case NET_DROPPING: /* TCP delivers nothing behind what it has dropped */
        proxy_cut(n->proxy, false);
        proxy_drop(n->proxy, PROXY_DOWN, false);
        break;
    default:
        proxy_delay(n->proxy, PROXY_UP, 0);
        proxy_delay(n->proxy, PROXY_DOWN, 0);
        break;
    }
    n->state = NET_WELL;
}

static struct fault {
    const char *name;
    void (*strike)(void);
    int every_ms; /* on average */
    int count;
} fault[FAULTS] = {
    {"process killed", fault_kill, 500, 0},
    {"process stopped", fault_stop, 120, 0},
    {"CLIENT KILL", fault_client_kill, 250, 0},
    {"SCRIPT FLUSH", fault_script_flush, 1500, 0},
    {"line or mark deleted", fault_delete_line, 700, 0},
    {"server stopped", fault_freeze, 3000, 0},
    {"connections cut", fault_cut, 1000, 0},
    {"delivered late", fault_strand, 450, 0},
    {"delayed or lost", fault_network, 1200, 0},
    {"restart", fault_restart, 4000, 0}, /* the last: not without AOF */
};

static void step(int faults)
{
    uint64_t now = test_now_ns();
    for (int i = 0; i < PROCESSES; i++)
        if (process[i].stopped && now >= process[i].until)
            continue_process(i);
    for (int i = 0; i < PROXIES; i++)
        if (network[i].state != NET_WELL && now >= network[i].until)
            network_next(&network[i]);
    if (server.frozen && now >= thaw_at) {
        redis_thaw(&server);
        board->server_faults++;
    }
    for (int i = 0; i < faults && !server.frozen; i++) {
        if (dice_below(&dice, fault[i].every_ms / STEP_MS) > 0)
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
    bool any = server.frozen;
    for (int i = 0; i < PROCESSES; i++)
        any |= process[i].stopped;
    for (int i = 0; i < PROXIES; i++)
        any |= network[i].state != NET_WELL;
    return any;
}

/* ----------------------------------------------------------------- telling */

static void tell(const struct verdict *v)
{
    static const char *const result[] = {"granted", "busy", "lost", "unknown",
        "pending", "cancelled", "free", "error"};
    uint64_t longest = 0;
    int sum, faults = 0;
    for (int i = 0; i < SLOTS; i++)
        if (board->slot[i].longest_wait > longest)
            longest = board->slot[i].longest_wait;
    print_message("# %zu holds;", v->holds);
    for (int rc = 0; rc < 8; rc++) {
        sum = 0;
        for (int i = 0; i < SLOTS; i++)
            sum += board->slot[i].results[rc];
        if (sum > 0)
            print_message(" %s %d", result[rc], sum);
    }
    print_message("; released or extended too late: %d\n# held:",
        board->count[COUNT_LOST]);
    for (int kind = 0; kind < KINDS; kind++) {
        sum = 0;
        for (int i = 0; i < SLOTS; i++)
            sum += kind_of(i / THREADS) == (enum kind)kind
                       ? board->slot[i].holds
                       : 0;
        print_message(" %s %d,", name_of_kind[kind], sum);
    }
    print_message("\n# faults:");
    for (int i = 0; i < FAULTS; i++) {
        print_message(" %s %d,", fault[i].name, fault[i].count);
        faults += fault[i].count;
    }
    print_message(" together %d\n# %d leases compared with the server's; "
                  "longest wait %.1f s; idle with somebody waiting: "
                  "p50 %.3f ms, p99 %.1f ms, most %llu ms\n",
        faults, board->count[COUNT_CHECKED], (double)longest / 1e3,
        v->waited ? (double)idle[v->waited / 2] / 1e6 : 0,
        v->waited ? (double)idle[v->waited * 99 / 100] / 1e6 : 0,
        (unsigned long long)v->idle_most);
}

/* -------------------------------------------------------------- the play */

static int seconds_of(int usual)
{
    const char *asked = getenv("NXLOCK_LINE_SECONDS");
    return asked ? atoi(asked) : usual;
}

static void begin(void)
{
    const char *seed = getenv("NXLOCK_SEED");
    dice = seed ? strtoull(seed, NULL, 10) : test_now_ns();
    print_message("# NXLOCK_SEED=%llu\n", (unsigned long long)dice);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    stalled = 0;
    for (int i = 0; i < FAULTS; i++)
        fault[i].count = 0;
    for (int i = 0; i < PROXIES; i++)
        network[i] = (struct network){.proxy = proxy_to(&server, false)};
    for (int i = 0; i < PROCESSES; i++)
        start_process(i);
}

/* Half of them end in order, then the others die at whatever they do. */
static void finish(void)
{
    board->over = 1;
    for (int i = 0; i < PROCESSES; i += 2) {
        int status = -1;
        assert_int_equal(waitpid(process[i].pid, &status, 0), process[i].pid);
        process[i].pid = 0;
        assert_int_equal(status, 0);
    }
    for (int i = 1; i < PROCESSES; i += 2)
        kill_process(i);
}

/* Without the fencing counters, of which there is one for each fenced name. */
static long long keys_left(void)
{
    return redis_run(&server, "EVAL",
        "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do "
        "if not string.find(k, ':f$') then n = n + 1 end end return n",
        "0", NULL);
}

static void play(int seconds, int faults)
{
    begin();
    uint64_t end = ms_from_now(seconds * 1000);
    while (test_now_ns() < end && !board->full)
        step(faults);
    while (has_trouble())
        step(0);
    finish();
    int64_t over = test_now_ms();
    while (keys_left() > 0 && test_now_ms() < over + LITTER_MS)
        test_pause_ms(20);
    struct verdict v = judge();
    tell(&v);
    print_message("# keys were left for %lld ms; the machine stood still for "
                  "%llu ms; %s\n",
        (long long)(test_now_ms() - over),
        (unsigned long long)(stalled / 1000000), board->said);
    assert_int_equal(v.overlaps, 0);
    assert_int_equal(v.disorder, 0);
    assert_int_equal(board->count[COUNT_PAST], 0);
    assert_int_equal(board->count[COUNT_GONE], 0);
    assert_int_equal(board->count[COUNT_ERRORS], 0);
    assert_int_equal(board->count[COUNT_STARVED], 0);
    if (stalled < LATE_CALL_MS * UINT64_C(1000000))
        assert_int_equal(board->count[COUNT_HUNG], 0);
    assert_int_equal(keys_left(), 0);
    assert_between(v.idle_most, 0, IDLE_MS + 2 * stalled / 1000000);
    assert_between(v.holds, seconds * 5, INT32_MAX);
    assert_true(board->count[COUNT_CHECKED] > 0);
}

static void nobody_is_lost(void **state)
{
    play(seconds_of(12), FAULTS - 1);
}

static void with_restarts(void **state)
{
    play(seconds_of(7), FAULTS);
}

static int start_server(void **state)
{
    return redis_start(&server, NULL);
}

static int start_durable(void **state)
{
    return redis_start(
        &server, "--appendonly", "yes", "--appendfsync", "always", NULL);
}

static int clean_up(void **state)
{
    for (int i = 0; i < PROCESSES; i++) {
        if (process[i].pid > 0) {
            kill(process[i].pid, SIGKILL);
            waitpid(process[i].pid, NULL, 0);
        }
        process[i].pid = 0;
    }
    for (int i = 0; i < PROXIES; i++) {
        proxy_stop(network[i].proxy);
        network[i].proxy = NULL;
    }
    if (board)
        munmap(board, sizeof(*board));
    board = NULL;
    redis_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nobody_is_lost, start_server, clean_up),
        cmocka_unit_test_setup_teardown(with_restarts, start_durable, clean_up),
    };
    return cmocka_run_group_tests_name("line in chaos", tests, NULL, NULL);
}
