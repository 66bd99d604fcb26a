/* SPDX-License-Identifier: MIT */
/* nxlock-bench-quorum: an acquire on five servers against one on one, with
 * 1 ms of network before each of them, all well, two hung and two killed; and
 * the processor time of a cycle on five servers against a floor. Rounds are
 * interleaved, so that a slow minute hits both sides. */
#include "quorum.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <nxlock.h>

#include "support/proxy.h"

#define NETWORK_MS 1
#define LATENCY_ROUNDS 40
#define LATENCY_CYCLES 25
#define CPU_ROUNDS 15
#define CPU_CYCLES 2000
#define FAULTY 2

static struct server servers[QUORUM_SERVERS];
static struct proxy *proxies[QUORUM_SERVERS];
static struct histogram histogram;
static unsigned failed;

struct subject {
    nxl_client *client;
    nxl_lock *lock;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "nxlock-bench-quorum: %s: %s\n", what, why);
    for (int i = 0; i < QUORUM_SERVERS; i++) {
        if (servers[i].pid > 0)
            kill(servers[i].pid, SIGCONT);
        server_stop(&servers[i]);
    }
    exit(1);
}

/* Of the first count servers, straight or behind the network. */
static struct subject subject_open(int count, bool network)
{
    struct subject s = {0};
    const char *urls[QUORUM_SERVERS];
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    char why[256] = "";

    options.guard_restarts = NXL_GUARD_OFF; /* they have just been started */
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    for (int i = 0; i < count; i++)
        urls[i] = network ? proxy_url(proxies[i]) : servers[i].unix_url;
    if (nxl_client_new_urls(&s.client, urls, (size_t)count, &options) !=
            NXL_OK ||
        nxl_lock_new(&s.lock, s.client, count > 1 ? "q:five" : "q:one", NULL) !=
            NXL_OK)
        die("client", why);
    return s;
}

static void subject_close(struct subject *s)
{
    nxl_lock_free(s->lock);
    nxl_client_free(s->client);
}

/* The time of one acquire; the release is not measured. */
static uint64_t acquire(struct subject *s)
{
    uint64_t before = bench_now_ns();
    int rc = nxl_lock_acquire(s->lock, 0);
    uint64_t took = bench_now_ns() - before;

    if (rc != NXL_OK) {
        failed++;
        fprintf(stderr, "acquire: %s\n", nxl_lock_errmsg(s->lock));
        return took;
    }
    if (nxl_lock_release(s->lock) != NXL_OK)
        failed++;
    return took;
}

/* ----------------------------------------------------------------- latency */

struct latency {
    double p50_us, p99_us, first_us;
};

static struct latency measure(
    struct subject *one, struct subject *five, struct latency *alone)
{
    static struct histogram first;
    struct latency found = {0};

    memset(&histogram, 0, sizeof(histogram));
    memset(&first, 0, sizeof(first));
    found.first_us = (double)acquire(five) / 1000;
    for (int round = 0; round < LATENCY_ROUNDS; round++) {
        for (int i = 0; i < LATENCY_CYCLES; i++)
            histogram_add(&first, acquire(one));
        for (int i = 0; i < LATENCY_CYCLES; i++)
            histogram_add(&histogram, acquire(five));
    }
    alone->p50_us = histogram_us(&first, 0.5);
    alone->p99_us = histogram_us(&first, 0.99);
    found.p50_us = histogram_us(&histogram, 0.5);
    found.p99_us = histogram_us(&histogram, 0.99);
    return found;
}

static void print(const char *name, const struct latency *found)
{
    printf("%-22s p50 %8.1f us   p99 %8.1f us   first %8.1f us\n", name,
        found->p50_us, found->p99_us, found->first_us);
}

static void goal(const char *name, double ratio, double most)
{
    printf("  %-38s %6.3f  (at most %.2f) %s\n", name, ratio, most,
        ratio <= most ? "met" : "NOT MET");
}

/* The last ones, so that the single server is not among them. */
static void harm(int signo)
{
    for (int i = QUORUM_SERVERS - FAULTY; i < QUORUM_SERVERS; i++) {
        kill(servers[i].pid, signo);
        if (signo == SIGKILL) {
            waitpid(servers[i].pid, NULL, 0);
            servers[i].pid = 0;
        }
    }
}

static void compare(const char *name, const struct latency *well,
    struct subject *one, struct subject *five)
{
    struct latency alone, found = measure(one, five, &alone);

    print(name, &found);
    goal("p50 against all well", found.p50_us / well->p50_us, 1.05);
    goal("p99 against all well", found.p99_us / well->p99_us, 1.5);
    goal("the first against p50, all well", found.first_us / well->p50_us, 1.5);
}

static void latency(void)
{
    struct latency alone, well;
    struct subject one = subject_open(1, true);
    struct subject five = subject_open(QUORUM_SERVERS, true);

    for (int i = 0; i < BENCH_WARM; i++) {
        acquire(&one);
        acquire(&five);
    }
    well = measure(&one, &five, &alone);
    alone.first_us = alone.p50_us;
    print("one server", &alone);
    print("five servers", &well);
    goal("p50 against one server", well.p50_us / alone.p50_us, 1.10);
    harm(SIGSTOP);
    compare("two of five hung", &well, &one, &five);
    harm(SIGCONT);
    for (int i = 0; i < BENCH_WARM; i++)
        acquire(&five);
    harm(SIGKILL);
    compare("two of five killed", &well, &one, &five);
    printf("  failed calls: %u %s\n", failed, failed ? "NOT MET" : "met");
    subject_close(&five);
    subject_close(&one);
}

/* --------------------------------------------------------------------- CPU */

static double cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void cpu(void)
{
    struct floor_quorum *floor = floor_quorum_open(servers);
    struct subject s = subject_open(QUORUM_SERVERS, false);
    double ratio[CPU_ROUNDS], floors[CPU_ROUNDS], ours[CPU_ROUNDS];

    if (!floor)
        die("floor", "no connection");
    for (int i = 0; i < BENCH_WARM; i++)
        if (floor_quorum_cycle(floor) < 0 ||
            nxl_lock_acquire(s.lock, 0) != NXL_OK ||
            nxl_lock_release(s.lock) != NXL_OK)
            die("warming up", nxl_lock_errmsg(s.lock));
    for (int round = 0; round < CPU_ROUNDS; round++) {
        double before = cpu_us();
        for (int i = 0; i < CPU_CYCLES; i++)
            if (floor_quorum_cycle(floor) < 0)
                die("floor", "a cycle failed");
        floors[round] = (cpu_us() - before) / CPU_CYCLES;
        before = cpu_us();
        for (int i = 0; i < CPU_CYCLES; i++)
            if (nxl_lock_acquire(s.lock, 0) != NXL_OK ||
                nxl_lock_release(s.lock) != NXL_OK)
                die("a cycle", nxl_lock_errmsg(s.lock));
        ours[round] = (cpu_us() - before) / CPU_CYCLES;
        ratio[round] = ours[round] / floors[round];
    }
    printf("CPU of a cycle on five servers: floor %.2f us, nxlock %.2f us\n",
        median_of(floors, CPU_ROUNDS), median_of(ours, CPU_ROUNDS));
    goal("against the floor", median_of(ratio, CPU_ROUNDS), 1.15);
    subject_close(&s);
    floor_quorum_close(floor);
}

int main(int argc, char **argv)
{
    const char *program = argc > 1 ? argv[1] : "redis-server";

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < QUORUM_SERVERS; i++) {
        if (server_start(&servers[i], program, NULL) < 0)
            die(program, "does not start");
        proxies[i] = proxy_start(servers[i].unix_path, 0);
        proxy_delay(proxies[i], PROXY_DOWN, NETWORK_MS);
    }
    cpu();
    latency();
    for (int i = 0; i < QUORUM_SERVERS; i++) {
        proxy_stop(proxies[i]);
        server_stop(&servers[i]);
    }
    return 0;
}
