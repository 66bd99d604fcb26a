/* SPDX-License-Identifier: MIT */
/* nxlock-bench-outside: what programs that know nothing of the line get beside
 * it. A line of the library, or shells that call nxlock run again and again,
 * have a name that is always wanted; beside them run the loops of other
 * clients, which only send SET NX. A watcher looks at random times who has the
 * name. Exit status: 0 everything was measured; 1 otherwise; 2 usage.
 *
 * Invariant: nobody here knows the others, but for the name. */
#include "wait.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include <nxlock.h>

#define NAME "shared"
#define LINE_LEN_MAX 1000
#define LIST 8
#define LOOK_MS 4 /* at most, between two looks */
#define WARM_NS 1500000000u

static const char help[] =
    "usage: nxlock-bench-outside [options]\n"
    "Measures what programs outside the line get beside it. It starts a "
    "private\n"
    "server and stops it at the end. A LIST is numbers with commas, or "
    "'none'.\n"
    "\n"
    "  --line LIST      waiters of the library (2,20,200)\n"
    "  --shells LIST    shells that call nxlock run without pauses (4)\n"
    "  --nxlock PROGRAM the command that they call (nxlock)\n"
    "  --hold MS        how long a lock is held, but by nxlock run (5)\n"
    "  --seconds S      of one measurement (25)\n"
    "  --server PROGRAM the server to start (redis-server)\n"
    "  --help           this text\n";

/* ----------------------------------------------------- programs outside */

struct outsider {
    const char *name;
    unsigned pause_least_ms, pause_most_ms; /* after SET NX has failed */
    unsigned rest_ms;                       /* after a release */
};

static const struct outsider outsiders[] = {
    {"redis-py", 100, 100, 100},
    {"node-redlock", 100, 300, 200},
    {"greedy", 0, 0, 0},
};
enum { REDIS_PY, NODE_REDLOCK, GREEDY, OUTSIDERS };

/* Which of them run beside the line, one after the other. */
static const struct company {
    const char *name;
    unsigned those; /* 1 << REDIS_PY ... */
} companies[] = {
    {"nobody", 0},
    {"two that poll", 1 << REDIS_PY | 1 << NODE_REDLOCK},
    {"one greedy", 1 << GREEDY},
};
#define COMPANIES (sizeof(companies) / sizeof(*companies))

struct tally {
    _Atomic uint64_t by_shells, by_outsider[OUTSIDERS];
    atomic_bool stop;
};

/* Who has the name, by the watcher's looks. */
struct looks {
    unsigned long all, free, gap, outside;
};

static struct outside_run {
    struct server server;
    unsigned line[LIST], shells[LIST]; /* 0 ends them */
    const char *nxlock, *program;
    double hold_ms, seconds;
    bool help;
    struct tally *tally;
    pid_t pids[WAIT_MAX_PROCESSES];
    unsigned processes;
} run = {
    .nxlock = "nxlock", .program = "redis-server", .hold_ms = 5, .seconds = 25};

static void pause_ms(double ms)
{
    int64_t ns = (int64_t)(ms * 1e6);
    struct timespec time = {ns / 1000000000, ns % 1000000000};

    nanosleep(&time, NULL);
}

static redisContext *connect_here(void)
{
    redisContext *redis = redisConnect("127.0.0.1", run.server.port);

    if (!redis || redis->err)
        _exit(1);
    return redis;
}

static void play_outsider(unsigned which)
{
    static const char release[] =
        "return redis.call('get', KEYS[1]) == ARGV[1] and "
        "redis.call('del', KEYS[1])";
    const struct outsider *o = &outsiders[which];
    redisContext *redis = connect_here();

    while (!run.tally->stop) {
        redisReply *reply =
            redisCommand(redis, "SET " NAME " outside NX PX 10000");

        if (!reply)
            _exit(1);
        if (reply->type == REDIS_REPLY_STATUS) {
            run.tally->by_outsider[which]++;
            pause_ms(run.hold_ms);
            freeReplyObject(
                redisCommand(redis, "EVAL %s 1 " NAME " outside", release));
            pause_ms(o->rest_ms);
        } else {
            unsigned more = o->pause_most_ms - o->pause_least_ms;

            pause_ms(o->pause_least_ms + (double)(more ? random() % more : 0));
        }
        freeReplyObject(reply);
    }
    redisFree(redis);
}

/* -------------------------------------------------------------- the line */

static void play_shell(void)
{
    char url[64];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", run.server.port);
    while (!run.tally->stop) {
        int status = -1;
        pid_t pid = fork();

        if (pid == 0) {
            execlp(run.nxlock, run.nxlock, "run", "--url", url, "-w", "60s",
                NAME, "--", "true", (char *)NULL);
            _exit(127);
        }
        waitpid(pid, &status, 0);
        if (status != 0)
            _exit(1);
        run.tally->by_shells++;
    }
}

static void play_line(
    struct wait_shared *shared, unsigned first, unsigned count)
{
    char url[64];
    struct contest contest = {.shared = shared,
        .seats = shared->seats + first,
        .count = count,
        .name = NAME,
        .url = url,
        .ttl_ms = 10000,
        .hold_ns = (uint64_t)(run.hold_ms * 1e6)};

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", run.server.port);
    int rc = contest_open(&contest);
    if (rc == 0)
        rc = wait_library(&contest);
    contest_close(&contest);
    _exit(rc == 0 ? 0 : 1);
}

/* ------------------------------------------------------------ one sample */

/* True in a new process. */
static bool begin_process(void)
{
    pid_t parent = getpid(), pid;

    fflush(NULL);
    pid = fork();
    run.pids[run.processes++] = pid;
    if (pid != 0)
        return false;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1ul);
    srandom((unsigned)getpid());
    if (getppid() != parent)
        _exit(1);
    return true;
}

static int end_all(struct wait_shared *shared)
{
    int rc = shared->failed ? -1 : 0;

    if (rc)
        fprintf(stderr, "nxlock-bench-outside: %s\n", shared->error);
    shared->stop = true;
    run.tally->stop = true;
    for (unsigned i = 0; i < run.processes; i++) {
        int status = -1;

        waitpid(run.pids[i], &status, 0);
        if (status != 0)
            rc = -1;
    }
    run.processes = 0;
    return rc;
}

static bool is_there(redisContext *redis, const char *command)
{
    redisReply *reply = redisCommand(redis, command);
    bool there = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer;

    freeReplyObject(reply);
    return there;
}

static void look(redisContext *redis, struct looks *looks)
{
    redisReply *reply = redisCommand(redis, "GET " NAME);

    looks->all++;
    if (reply && reply->type == REDIS_REPLY_NIL) {
        looks->free++;
        looks->gap += is_there(redis, "EXISTS {" NAME "}:nxl-g");
    } else if (reply && reply->type == REDIS_REPLY_STRING) {
        looks->outside += strcmp(reply->str, "outside") == 0;
    }
    freeReplyObject(reply);
}

/* Looks until the time is over. */
static struct looks watch(void)
{
    redisContext *redis = connect_here();
    uint64_t end = bench_now_ns() + (uint64_t)(run.seconds * 1e9);
    struct looks looks = {0, 0, 0, 0};

    while (bench_now_ns() < end) {
        pause_ms(LOOK_MS * (double)random() / (double)RAND_MAX);
        look(redis, &looks);
    }
    redisFree(redis);
    return looks;
}

static void begin_line(struct wait_shared *shared, unsigned waiters)
{
    unsigned half = (waiters + 1) / 2;

    for (unsigned i = 0; i < 2 && waiters > 0; i++) {
        if (begin_process())
            play_line(shared, i * half, i == 0 ? half : waiters - half);
    }
}

static void begin_others(unsigned shells, unsigned those)
{
    for (unsigned i = 0; i < shells; i++) {
        if (begin_process()) {
            play_shell();
            _exit(0);
        }
    }
    for (unsigned i = 0; i < OUTSIDERS; i++) {
        if (those & 1u << i && begin_process()) {
            play_outsider(i);
            _exit(0);
        }
    }
}

static int measure(
    unsigned waiters, unsigned shells, const struct company *beside)
{
    size_t size =
        sizeof(struct wait_shared) + LINE_LEN_MAX * sizeof(struct seat);
    struct wait_shared *shared = mmap(
        NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct tally *t = run.tally;

    if (shared == MAP_FAILED)
        return -1;
    memset(t, 0, sizeof(*t));
    begin_line(shared, waiters);
    begin_others(shells, beside->those);
    pause_ms(WARM_NS / 1e6);
    uint64_t line = shared->total + t->by_shells, outside[OUTSIDERS];
    for (unsigned i = 0; i < OUTSIDERS; i++)
        outside[i] = t->by_outsider[i];
    struct looks looks = watch();
    line = shared->total + t->by_shells - line;
    printf("%6u %6u  %-14s %8llu", waiters, shells, beside->name,
        (unsigned long long)line);
    for (unsigned i = 0; i < OUTSIDERS; i++) {
        if (beside->those & 1u << i)
            printf(" %12llu",
                (unsigned long long)(t->by_outsider[i] - outside[i]));
        else
            printf(" %12s", "-");
    }
    double percent = 100 / (double)looks.all;
    printf(" %7.2f %7.2f %7.2f\n", (double)looks.free * percent,
        (double)looks.gap * percent, (double)looks.outside * percent);
    fflush(stdout);
    int rc = end_all(shared);
    wait_remove_keys(run.server.port, NAME);
    munmap(shared, size);
    return rc;
}

/* --------------------------------------------------------------- options */

static int number(const char *text, double low, double high, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end == text || *end || !(*out >= low && *out <= high) ? -1 : 0;
}

static int list(const char *text, unsigned out[LIST], unsigned most)
{
    memset(out, 0, LIST * sizeof(*out));
    if (strcmp(text, "none") == 0)
        return 0;
    for (int i = 0; i < LIST - 1; i++) {
        char *end;
        unsigned long n = strtoul(text, &end, 10);

        if (end == text || n < 1 || n > most)
            return -1;
        out[i] = (unsigned)n;
        if (*end == '\0')
            return 0;
        if (*end != ',')
            return -1;
        text = end + 1;
    }
    return -1;
}

static int set(int option, const char *value)
{
    switch (option) {
    case 'l':
        return list(value, run.line, LINE_LEN_MAX);
    case 's':
        return list(value, run.shells, WAIT_MAX_PROCESSES - OUTSIDERS - 2);
    case 'n':
        run.nxlock = value;
        return 0;
    case 'H':
        return number(value, 0, 10000, &run.hold_ms);
    case 't':
        return number(value, 0.1, 3600, &run.seconds);
    case 'S':
        run.program = value;
        return 0;
    default:
        run.help = option == 'h';
        return run.help ? 0 : -1;
    }
}

static int parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"line", required_argument, NULL, 'l'},
        {"shells", required_argument, NULL, 's'},
        {"nxlock", required_argument, NULL, 'n'},
        {"hold", required_argument, NULL, 'H'},
        {"seconds", required_argument, NULL, 't'},
        {"server", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, which = 0;

    while ((option = getopt_long(argc, argv, "", options, &which)) != -1) {
        if (option == '?')
            return -1;
        if (set(option, optarg)) {
            fprintf(stderr, "nxlock-bench-outside: --%s does not take '%s'\n",
                options[which].name, optarg);
            return -1;
        }
    }
    return optind < argc ? -1 : 0;
}

static int measure_all(void)
{
    int rc = 0;

    printf("server %s; hold %g ms; %g s each\n\n", run.server.version,
        run.hold_ms, run.seconds);
    printf("  line shells  beside            grants %12s %12s %12s  free %%   "
           "gap %% outside %%\n",
        outsiders[0].name, outsiders[1].name, outsiders[2].name);
    for (unsigned *n = run.line; *n; n++) {
        for (size_t i = 0; i < COMPANIES; i++)
            rc |= measure(*n, 0, &companies[i]);
    }
    for (unsigned *n = run.shells; *n; n++) {
        for (size_t i = 0; i < COMPANIES; i++)
            rc |= measure(0, *n, &companies[i]);
    }
    return rc;
}

int main(int argc, char **argv)
{
    list("2,20,200", run.line, LINE_LEN_MAX);
    list("4", run.shells, LINE_LEN_MAX);
    if (parse(argc, argv)) {
        fputs("Try 'nxlock-bench-outside --help'.\n", stderr);
        return 2;
    }
    if (run.help) {
        fputs(help, stdout);
        return 0;
    }
    run.tally = mmap(NULL, sizeof(*run.tally), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run.tally == MAP_FAILED || server_start(&run.server, run.program, NULL))
        return 1;
    int rc = measure_all();
    server_stop(&run.server);
    return rc == 0 ? 0 : 1;
}
