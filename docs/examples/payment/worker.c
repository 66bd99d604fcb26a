/* SPDX-License-Identifier: MIT */
/*
 * worker SHOP.db PROVIDER-SOCKET [TTL_MS]: charges open orders, beside any
 * number of other workers, and ends when no order is open, or on SIGTERM. Each
 * worker may be killed, or stopped for any time, at any moment.
 *
 * Invariant: no order is charged twice and none is forgotten. Three parts
 * ensure that, and each does what the others cannot:
 *
 *   the lock  keeps a second worker from starting while the first is active. It
 *             is a lease: a worker that is stopped for longer loses it.
 *   the row   is changed only with the highest fencing token (charge.c), so a
 *             worker that lost the lock without knowing it records nothing.
 *   the key   is the same for every attempt, so the provider, which does not
 *             check fencing tokens, charges once.
 */
#include <nxlock.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "charge.h"
#include "provider.h"

enum { TTL_MS = 10000, BATCH = 8, IDLE_MS = 100 };

struct worker {
    sqlite3 *shop;
    nxl_client *client;
    const char *provider;
    int64_t ttl_ms;
};

static volatile sig_atomic_t told_to_end;

static void on_term(int signo)
{
    (void)signo;
    told_to_end = 1; /* the order at hand is finished first */
}

static void say(const struct order *order, const char *what)
{
    fprintf(stderr, "order %s: %s\n", order->id, what);
}

/* Steps A and C are transactions of their own, and B is between them: no
 * transaction may be open while another server works. */
static bool charge_under_lock(
    struct worker *worker, const struct order *order, nxl_lock *lock)
{
    int64_t fence = (int64_t)nxl_lock_fence(lock);
    char key[KEY_SIZE], reference[64] = "";

    /* A: the row records that a charge is about to be made. */
    switch (charge_claim(worker->shop, order, fence, key)) {
    case CLAIM_MINE:
        break;
    case CLAIM_SETTLED: /* it was open when we looked */
        return true;
    case CLAIM_REVIEW:
        say(order, "for review: too old, or not as it was begun");
        return true;
    case CLAIM_STALE:
        say(order, "stale: refused at the claim");
        return false;
    default:
        return false;
    }

    /* B: the charge. Not after the lock was lost: its new holder asks as well.
     * This check saves a request; it does not make this safe, because the lease
     * may end right after it. */
    if (!nxl_lock_held(lock)) {
        say(order, "the lock was lost before the charge");
        return false;
    }
    enum answer answer = provider_charge(
        worker->provider, key, order, reference, sizeof(reference));
    if (answer == ANSWER_UNKNOWN) {
        say(order, "no answer; to be asked again, with the same key");
        return false; /* the row still says 'charging' */
    }

    /* C: the result. */
    const char *state = answer == ANSWER_PAID ? "paid" : "declined";
    switch (charge_record(worker->shop, order, fence, state,
        answer == ANSWER_PAID ? reference : NULL)) {
    case RECORD_DONE:
        return true;
    case RECORD_STALE: /* the new holder gets the same answer by the same key */
        say(order, "stale: refused at the record");
        return true;
    default:
        return false;
    }
}

/* False: it is still open. */
static bool pay(struct worker *worker, const struct order *order)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    bool settled = false;

    options.ttl_ms = worker->ttl_ms; /* how long a dead worker blocks others */
    options.renew = 1;
    options.fence = 1;
    if (nxl_lock_new(&lock, worker->client, order->id, &options) != NXL_OK) {
        say(order, nxl_client_errmsg(worker->client));
        return false;
    }
    int rc = nxl_lock_acquire(lock, 0);
    if (rc == NXL_OK) {
        settled = charge_under_lock(worker, order, lock);
        /* NXL_LOST: another worker may have been active at the same time. The
         * row and the key have made that harmless; nothing has to be undone. */
        rc = nxl_lock_release(lock);
        if (rc != NXL_OK)
            say(order, nxl_lock_errmsg(lock));
    } else if (rc != NXL_BUSY) {
        say(order, nxl_lock_errmsg(lock)); /* no lock, no charge */
    }
    nxl_lock_free(lock);
    return settled;
}

/* Until no order is open. False: the database does not answer. */
static bool pay_all(struct worker *worker)
{
    struct order orders[BATCH];
    int count;

    while ((count = shop_open_orders(worker->shop, orders, BATCH)) > 0) {
        bool progress = false;
        for (int i = 0; i < count && !told_to_end; i++)
            progress |= pay(worker, &orders[i]);
        if (told_to_end)
            return true;
        if (!progress) /* the rest is locked, or a server is unreachable */
            usleep(IDLE_MS * 1000);
    }
    return count == 0;
}

int main(int argc, char **argv)
{
    const char *url = getenv("NXLOCK_URL");
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    struct sigaction action = {.sa_handler = on_term};
    struct worker worker = {.ttl_ms = argc > 3 ? atol(argv[3]) : TTL_MS};
    char why[256] = "";

    if (argc < 3) {
        fprintf(stderr, "usage: worker SHOP.db PROVIDER-SOCKET [TTL_MS]\n");
        return 64;
    }
    sigaction(SIGTERM, &action, NULL);
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    options.prefix = "order:"; /* the lock of 1001 is order:1001 */
    if (nxl_client_new(&worker.client, url ? url : "redis://localhost:6379",
            &options) != NXL_OK) {
        fprintf(stderr, "worker: %s\n", why);
        return 78;
    }
    worker.provider = argv[2];
    worker.shop = shop_open(argv[1]);
    bool done = worker.shop && pay_all(&worker);
    sqlite3_close(worker.shop);
    nxl_client_free(worker.client);
    return done ? 0 : 1;
}
