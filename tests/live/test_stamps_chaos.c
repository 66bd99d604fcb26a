/* SPDX-License-Identifier: MIT */
/*
 * Four of ours and four other programs of the published scheme want one name.
 * Ours are stopped, killed and started again at any moment, and a gate holds
 * their commands and replies back between any two. Whatever happens: the times
 * in which they rely on the lock do not overlap, no time that is past stands
 * in the way for long, and everybody gets the lock again and again.
 *
 * It goes on for some seconds, and on a slow machine until enough has happened.
 * NXLOCK_SEED=N repeats a choice of stalls; NXLOCK_FULL=1 takes a minute.
 */
#define TEST_TIMEOUT_S 200
#include "support/test.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "live/chaos_rig.h"

/* ENOUGH holds, or a verdict would say little; SLOW_S more for them to come. */
enum { TICK_MS = 2, CALM_MS = 30000, ENOUGH = 20, SLOW_S = 60, PAIRS = 9 };

struct chaos {
    int classics; /* how many of the other programs */
    int seconds;  /* at least */
    /* The pairs of words between which somebody must have been stalled. */
    const char *stalled[PAIRS][2];
    const char *parameters;
    int stall_ms, stop_ms; /* at most, of gates and of SIGSTOP */
    int plant_ms;          /* about so often a dead one's time stands there */
    int kill_ms;           /* about so often one dies */
};

static uint64_t dice;

/* --------------------------------------------------------------- the chaos */

static struct process {
    pid_t pid;
    bool stopped;
    uint64_t until; /* stopped or, with pid 0, dead */
} of_ours[OURS];

static struct totals {
    int kills, stops;
    int64_t past_ms; /* the longest that a time stood that was past */
    int64_t ahead_s; /* the furthest */
} totals;

static uint64_t in_ms(int ms)
{
    return test_now_ns() + (uint64_t)ms * UINT64_C(1000000);
}

static bool about_every(int ms)
{
    return dice_below(&dice, ms / TICK_MS) == 0;
}

static void start_ours(int who, const struct chaos *c)
{
    uint64_t mine = dice_roll(&dice);
    of_ours[who].pid = test_fork();
    of_ours[who].stopped = false;
    board->kill_it[who] = false;
    if (of_ours[who].pid == 0)
        run_ours(who, mine, c->parameters);
}

static void continue_it(struct process *p)
{
    if (p->stopped)
        kill(p->pid, SIGCONT);
    p->stopped = false;
}

static void crash(int who)
{
    struct process *p = &of_ours[who];
    int status = -1;
    upset(ALL);
    kill(p->pid, SIGKILL);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    assert_true(WIFSIGNALED(status)); /* it had not given up by itself */
    p->pid = 0;
    p->until = in_ms(dice_below(&dice, 300));
    totals.kills++;
}

static void disturb(const struct chaos *c)
{
    for (int i = 0; i < OURS; i++) {
        struct process *p = &of_ours[i];
        if (p->pid == 0 && test_now_ns() >= p->until)
            start_ours(i, c);
        else if (p->pid && board->kill_it[i])
            crash(i);
        else if (p->stopped && test_now_ns() >= p->until)
            continue_it(p);
    }
    struct process *p = &of_ours[dice_below(&dice, OURS)];
    if (about_every(250) && p->pid && !p->stopped) {
        kill(p->pid, SIGSTOP);
        p->stopped = true;
        p->until = in_ms(dice_stall_ms(&dice, c->stop_ms));
        totals.stops++;
    }
    int who = dice_below(&dice, OURS);
    if (about_every(c->kill_ms) && of_ours[who].pid)
        crash(who);
}

static bool somebody_waits(const struct chaos *c)
{
    for (int i = 0; i < OURS; i++)
        if (of_ours[i].pid && !of_ours[i].stopped)
            return true;
    return c->classics > 0;
}

/* Looks at what stands there: whose time is past has to give way soon. */
static void look(const struct chaos *c)
{
    static char last[STAMP_VALUE];
    static int64_t nobody_ms;
    char value[STAMP_VALUE];
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t now_ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    if (!redis_get(&server, "k", value, sizeof(value))) {
        *last = '\0';
        return;
    }
    int64_t end_s = strtoll(value, NULL, 10);
    int64_t since_ms = end_s * 1000 > nobody_ms ? end_s * 1000 : nobody_ms;
    if (!somebody_waits(c))
        nobody_ms = now_ms;
    else if (strcmp(value, last) == 0 && end_s > 1600000000 &&
             now_ms - since_ms > totals.past_ms)
        totals.past_ms = now_ms - since_ms;
    if (strcmp(value, last) != 0 && end_s - now_ms / 1000 > totals.ahead_s)
        totals.ahead_s = end_s - now_ms / 1000;
    snprintf(last, sizeof(last), "%s", value);
}

static void wait_for(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static pid_t start_gate(int who, const struct chaos *c)
{
    char name[16];
    snprintf(name, sizeof(name), "gate.%d", who);
    local_path(gate_path[who], server.dir, name);
    unlink(gate_path[who]);
    struct gate_orders orders = {.path = gate_path[who],
        .dice = dice_roll(&dice),
        .most_ms = c->stall_ms,
        .tally = &board->tally,
        .kill_it = &board->kill_it[who]};
    pid_t pid = test_fork();
    if (pid == 0)
        gate_run(&orders);
    assert_eventually(access(gate_path[who], F_OK) == 0);
    return pid;
}

static bool all_had_it(const int *before, int contenders)
{
    for (int i = 0; i < contenders; i++)
        if (board->of[i].holds <= before[i])
            return false;
    return true;
}

/* Nobody dies any more: everybody gets it once more, as all go on. */
static void calm_down(const struct chaos *c)
{
    int before[ALL];
    for (int i = 0; i < ALL; i++)
        before[i] = board->of[i].holds;
    for (int i = 0; i < OURS; i++) {
        continue_it(&of_ours[i]);
        if (!of_ours[i].pid)
            start_ours(i, c);
    }
    uint64_t limit = in_ms(CALM_MS);
    while (!all_had_it(before, OURS + c->classics) && test_now_ns() < limit)
        test_pause_ms(TICK_MS);
    if (!all_had_it(before, OURS + c->classics))
        fail_msg("somebody is starved");
}

static int word_of(const char *name)
{
    int word = 0;
    while (word < GATE_WORDS && strcmp(gate_word[word], name) != 0)
        word++;
    assert_true(word < GATE_WORDS);
    return word;
}

/* Enough holds, and somebody stalled at each of the places. */
static bool has_happened(const struct chaos *c)
{
    int holds = 0;
    for (int i = 0; i < ALL; i++)
        holds += board->of[i].holds;
    for (int i = 0; i < PAIRS && c->stalled[i][0]; i++)
        if (board->tally.stalled[word_of(c->stalled[i][0])]
                                [word_of(c->stalled[i][1])] == 0)
            return false;
    return holds > ENOUGH;
}

static void let_loose(const struct chaos *c)
{
    pid_t gate[OURS], classic[CLASSICS];
    bool planting = false;
    for (int i = 0; i < OURS; i++) {
        gate[i] = start_gate(i, c);
        start_ours(i, c);
    }
    for (int i = 0; i < c->classics; i++) {
        uint64_t mine = dice_roll(&dice);
        classic[i] = test_fork();
        if (classic[i] == 0)
            run_classic(OURS + i, mine);
    }
    uint64_t least = in_ms(c->seconds * 1000);
    uint64_t most = in_ms((c->seconds + SLOW_S) * 1000);
    while (test_now_ns() < (has_happened(c) ? least : most)) {
        disturb(c);
        look(c);
        planting |= about_every(c->plant_ms);
        planting =
            planting && !redis_run(&server, "SETNX", "k", "1600000000", NULL);
        test_pause_ms(TICK_MS);
    }
    calm_down(c);
    board->over = true;
    for (int i = 0; i < OURS; i++)
        wait_for(of_ours[i].pid);
    for (int i = 0; i < c->classics; i++)
        wait_for(classic[i]);
    for (int i = 0; i < OURS; i++) {
        kill(gate[i], SIGKILL);
        waitpid(gate[i], NULL, 0);
    }
}

/* ------------------------------------------------------------ the verdict */

static struct hold *all[ALL * HOLDS];

static int by_begin(const void *a, const void *b)
{
    const struct hold *x = *(struct hold *const *)a;
    const struct hold *y = *(struct hold *const *)b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static size_t collect(void)
{
    size_t count = 0;
    for (int i = 0; i < ALL; i++)
        for (int k = 0; k < board->of[i].holds; k++)
            if (board->of[i].hold[k].begin < board->of[i].hold[k].end)
                all[count++] = &board->of[i].hold[k];
    qsort(all, count, sizeof(*all), by_begin);
    return count;
}

/* Locks that somebody may have left behind in that time. */
static int upsets_in(uint64_t begin, uint64_t end)
{
    int count = 0;
    for (int i = 0; i <= ALL; i++)
        for (int k = 0; k < board->of[i].upsets; k++)
            count +=
                board->of[i].upset[k] >= begin && board->of[i].upset[k] <= end;
    return count;
}

static double seconds(uint64_t from, uint64_t to)
{
    return ((double)to - (double)from) / 1e9;
}

/* How many overlap the one that ends last of those before them, and how many
 * came later than all that was left behind explains. */
static int faults(size_t count)
{
    const uint64_t block = BLOCK_MS * UINT64_C(1000000);
    uint64_t longest = 0;
    struct hold *last = all[0];
    int overlaps = 0, late = 0;
    for (size_t i = 1; i < count; i++) {
        struct hold *next = all[i];
        if (next->begin < last->end && ++overlaps <= 5)
            print_error("overlap: %d until %.6f s, %d from %.6f s on\n",
                last->who, seconds(all[0]->begin, last->end), next->who,
                seconds(all[0]->begin, next->begin));
        uint64_t gap = next->begin > last->end ? next->begin - last->end : 0;
        int left = upsets_in(last->begin - block, next->begin);
        if (gap > block * (uint64_t)(1 + left) && ++late)
            print_error("nobody for %.3f s\n", seconds(0, gap));
        longest = gap > longest ? gap : longest;
        if (next->end > last->end)
            last = next;
    }
    print_message("# longest without a holder: %.3f s\n", seconds(0, longest));
    print_message("# %d overlaps in %zu holds\n", overlaps, count);
    return overlaps + late;
}

static void tell(int contenders)
{
    static const char *const result[] = {"ok", "busy", "lost", "unknown",
        "pending", "cancelled", "free", "error"};
    const struct gate_tally *tally = &board->tally;
    print_message("# %d kills, %d stops, %ld take-overs; a time stood %lld ms "
                  "beyond itself, %lld s ahead\n",
        totals.kills, totals.stops, redis_calls(&server, "getset"),
        (long long)totals.past_ms, (long long)totals.ahead_s);
    for (int i = 0; i < contenders; i++) {
        struct contender *c = &board->of[i];
        print_message(
            "# %s %d: %d holds", i < OURS ? "ours" : "classic", i, c->holds);
        for (int k = 0; k < 8; k++)
            if (c->results[k] > 0)
                print_message(", %s %d", result[k], c->results[k]);
        print_message(", too late %d\n", c->lost);
    }
    for (int a = 0; a < GATE_WORDS; a++) {
        if (tally->unheard[a] > 0)
            print_message("# killed before the reply to %s: %d\n", gate_word[a],
                tally->unheard[a]);
        for (int b = 0; b < GATE_WORDS; b++)
            if (tally->stalled[a][b] > 0)
                print_message("# held back between %s and %s: %d, killed: %d\n",
                    gate_word[a], gate_word[b], tally->stalled[a][b],
                    tally->orphaned[a][b]);
    }
}

static void play(const struct chaos *c)
{
    const char *seed = getenv("NXLOCK_SEED");
    uint64_t number = seed ? strtoull(seed, NULL, 10) : test_now_ns();
    int contenders = OURS + c->classics;
    dice = number;
    print_message("# NXLOCK_SEED=%llu\n", (unsigned long long)number);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    totals = (struct totals){0};
    let_loose(c);
    tell(contenders);
    size_t count = collect();
    assert_true(has_happened(c));
    assert_int_equal(faults(count), 0);
    assert_true(totals.past_ms <= NOTICED_MS);
    assert_true(totals.ahead_s * 1000 <= BLOCK_MS);
}

static bool in_full(void)
{
    const char *full = getenv("NXLOCK_FULL");
    return full && strcmp(full, "1") == 0;
}

static void beside_classic_ones(void **state)
{
    struct chaos chaos = {.classics = CLASSICS,
        .seconds = in_full() ? 60 : 12,
        .stalled = {{"SETNX", "TIME"}, {"TIME", "TTL"}, {"TTL", "GETRANGE"},
            {"GETRANGE", "WATCH"}, {"GETRANGE", "MULTI"}, {"MULTI", "GETSET"},
            {"GETSET", "EXEC"}, {"MULTI", "DEL"}, {"DEL", "EXEC"}},
        .parameters = STAMPS "&timeout_ms=600",
        .stall_ms = 2500,
        .stop_ms = 4000,
        .plant_ms = 20,
        .kill_ms = 4000};
    play(&chaos);
}

/* Here a DEL or a GETSET that is on its way may be held up for a second and no
 * longer; the lease that is asked for is the longest there is; and no other
 * program shares the name. */
static void alone_without_watch(void **state)
{
    struct chaos chaos = {.seconds = in_full() ? 20 : 10,
        .stalled = {{"SETNX", "TIME"}, {"TTL", "GETRANGE"},
            {"GETRANGE", "GETSET"}, {"GETRANGE", "DEL"}},
        .parameters = STAMPS "&timeout_ms=600&max_ttl_ms=500",
        .stall_ms = 200,
        .stop_ms = 4000,
        .plant_ms = 500,
        .kill_ms = 1500};
    redis_run(&server, "ACL", "SETUSER", "default", "-watch", "-multi", NULL);
    play(&chaos);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(beside_classic_ones),
        live_test(alone_without_watch),
    };
    return cmocka_run_group_tests_name(
        "timestamps in chaos", tests, live_unix, live_stop);
}
