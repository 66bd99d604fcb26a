/* SPDX-License-Identifier: MIT */
/*
 * Many clients, each with renewed locks, when their primary crashes: none of
 * them dials more often than its backoff says, all locks are renewed at the new
 * primary within a second after it is named, none is lost, and no client wakes
 * up more often than before. NXLOCK_CLIENTS=100 makes it a thousand locks. It
 * prints what it measured.
 */
#include "support/test.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "live/renew_rig.h"
#include "live/sentinel_rig.h"

/* A lock needs 3 s of its lease when the new primary is named, 3 s after the
 * crash. Acquires wait until a new group has been named for 18 s. */
enum { TTL_MS = 15000, PAUSE_MS = 40000, EACH = 10, MOST_CLIENTS = 200 };
enum { FIRST_MS = 10, MOST_MS = 250 }; /* of the backoff with this timeout */
#define TIMEOUT "500"

static int clients = 20;
static nxl_client *client[MOST_CLIENTS];
static nxl_lock *lock[MOST_CLIENTS][EACH];
static uint64_t deadline[MOST_CLIENTS][EACH];

/* ----------------------------------------------------------------- attempts */

/* Of one thread, and so of one client, to connect to the present port. The
 * next one may not come before least_ms: the shortest backoffs up to then,
 * counted from the crash or from the last attempt at another port. So it does
 * not matter how long a busy machine keeps the thread from its attempt. */
static struct dials {
    uint16_t port;
    int step, total;
    int64_t at_ms, least_ms;
} dials[MOST_CLIENTS];
static atomic_int dialling, too_early; /* threads; attempts */
static atomic_bool counting;
static int64_t crashed;
static __thread struct dials *own;

int __real_connect(int fd, const struct sockaddr *to, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len);

static void count_dial(struct dials *d, uint16_t port)
{
    int64_t now = test_now_ms();
    int backoff;
    if (d->port != port) {
        d->least_ms = d->port ? d->at_ms : crashed;
        d->step = 0;
    }
    if (now < d->least_ms)
        atomic_fetch_add(&too_early, 1);
    backoff = FIRST_MS << d->step;
    d->least_ms += (backoff < MOST_MS ? backoff : MOST_MS) / 2;
    d->step += d->step < 5;
    d->port = port;
    d->at_ms = now;
    d->total++;
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len)
{
    struct sockaddr_in in = {.sin_port = 0};
    if (to->sa_family == AF_INET)
        memcpy(&in, to, sizeof(in));
    uint16_t port = ntohs(in.sin_port);
    if (atomic_load(&counting) &&
        (port == server.plain_port || port == replica.plain_port)) {
        if (!own)
            own = &dials[atomic_fetch_add(&dialling, 1) % MOST_CLIENTS];
        count_dial(own, port);
    }
    return __real_connect(fd, to, len);
}

/* ----------------------------------------------------------------- wake-ups */

/* How often threads of this process but the first one have slept. */
static long count_sleeps(void)
{
    long sum = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char path[300], line[128];
        long sleeps;
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
        FILE *file = e->d_name[0] == '.' || atoi(e->d_name) == getpid()
                         ? NULL
                         : fopen(path, "r");
        while (file && fgets(line, sizeof(line), file))
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps) == 1)
                sum += sleeps;
        if (file)
            fclose(file);
    }
    closedir(dir);
    return sum;
}

static long sleeps_within(int ms)
{
    long before = count_sleeps();
    test_pause_ms(ms);
    return count_sleeps() - before;
}

/* -------------------------------------------------------------------- locks */

static void acquire_all(void)
{
    char url[512], name[32];
    sentinels_url(url, sizeof(url), SENTINELS);
    snprintf(url + strlen(url), sizeof(url) - strlen(url),
        "/svc?max_ttl_ms=%d&timeout_ms=" TIMEOUT, TTL_MS);
    for (int c = 0; c < clients; c++) {
        client[c] = client_at(url);
        for (int i = 0; i < EACH; i++) {
            snprintf(name, sizeof(name), "k:%d:%d", c, i);
            lock[c][i] = kept_lock(client[c], name, &OPTIONS(.ttl_ms = TTL_MS));
            assert_result(
                nxl_lock_acquire(lock[c][i], PAUSE_MS), NXL_OK, lock[c][i]);
        }
    }
}

static void note_deadlines(void)
{
    for (int c = 0; c < clients; c++)
        for (int i = 0; i < EACH; i++)
            deadline[c][i] = nxl_lock_deadline(lock[c][i]);
}

static int count_renewed(void)
{
    int count = 0;
    for (int c = 0; c < clients; c++)
        for (int i = 0; i < EACH; i++)
            count += nxl_lock_deadline(lock[c][i]) > deadline[c][i];
    return count;
}

static void release_all(void)
{
    for (int c = 0; c < clients; c++)
        for (int i = 0; i < EACH; i++)
            assert_result(nxl_lock_release(lock[c][i]), NXL_OK, lock[c][i]);
}

static void free_all(void)
{
    for (int c = 0; c < clients; c++) {
        for (int i = 0; i < EACH; i++)
            nxl_lock_free(lock[c][i]);
        nxl_client_free(client[c]);
    }
}

static bool replica_has_all(void)
{
    return redis_lasting_keys(&replica) >= clients * EACH;
}

static void many_follow_a_failover(void **state)
{
    int most = 0, sum = 0;
    acquire_all();
    assert_eventually(replica_has_all());
    long before = sleeps_within(TTL_MS / 3);
    crashed = test_now_ms();
    atomic_store(&counting, true);
    redis_kill(&server);
    test_pause_ms(200); /* its last answers have been read; none follows */
    note_deadlines();
    assert_eventually(is_named(replica.plain_port));
    int64_t named = test_now_ms();
    assert_eventually(count_renewed() == clients * EACH);
    int64_t renewed = test_now_ms();
    atomic_store(&counting, false);
    for (int i = 0; i < MOST_CLIENTS; i++) {
        sum += dials[i].total;
        most = dials[i].total > most ? dials[i].total : most;
    }
    long after = sleeps_within(TTL_MS / 3);
    release_all();
    test_pause_ms(1500); /* the last answers of Sentinels */
    long idle = sleeps_within(2500);
    print_message("%d clients with %d locks each: named after %d ms, all "
                  "renewed %d ms later; %d attempts to connect, at most %d "
                  "each, %d too early; wake-ups in 5 s before and after %ld "
                  "and %ld, idle %ld\n",
        clients, EACH, (int)(named - crashed), (int)(renewed - named), sum,
        most, atomic_load(&too_early), before, after, idle);
    assert_int_equal(atomic_load(&too_early), 0);
    assert_true(atomic_load(&dialling) <= clients);
    assert_true(renewed - named <= 1000 + LATE_MS);
    assert_true(after <= before + before / 4);
    assert_int_equal(idle, 0);
    free_all();
}

static int start(void **state)
{
    return sentinels_start(0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_follow_a_failover),
    };
    const char *said = getenv("NXLOCK_CLIENTS");
    if (said && atoi(said) > 0 && atoi(said) <= MOST_CLIENTS)
        clients = atoi(said);
    return cmocka_run_group_tests_name(
        "Many clients of Sentinels", tests, start, sentinels_stop);
}
