/* SPDX-License-Identifier: MIT */
/*
 * once ORDER AMOUNT CURRENCY PROVIDER-SOCKET [TTL_MS]: charges one order and
 * prints the provider's reference. Start it as often as you like, on as many
 * machines as you like, and kill it at any moment: an order that was charged
 * is not charged again, and prints the same reference. No table is needed.
 *
 * Invariant: after an attempt that may have charged, the provider is asked
 * again only with the same key, and only while it still knows that key. After
 * that a person has to decide (exit code 76): "nxlock once confirm ORDER
 * --prefix pay:" if it was charged, or forget instead of confirm if it was not.
 */
#include <inttypes.h>
#include <nxlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "provider.h"

enum { TTL_MS = 30000, WAIT_MS = 60000, TRIES = 60 };
enum {
    EXIT_DOUBT = 76,
    EXIT_BUSY = 75,
    EXIT_MISMATCH = 65,
    EXIT_UNRECORDED = 79
};

/* The provider keeps a key for 24 h; records are kept for longer. */
static const int64_t ask_again_ms = INT64_C(20) * 3600 * 1000;
static const int64_t keep_ms = INT64_C(30) * 24 * 3600 * 1000;

static int complain(nxl_lock *lock, int code)
{
    fprintf(stderr, "%s\n", nxl_lock_errmsg(lock));
    return code;
}

/* It is never too late to say it, and it may be said again. */
static int tell(nxl_lock *lock, int verdict, const char *reference, int code)
{
    int rc = NXL_UNKNOWN;

    for (int i = 0; i < TRIES; i++) {
        rc = nxl_once_tell(
            lock, verdict, code, reference, reference ? strlen(reference) : 0);
        if (rc == NXL_OK || rc == NXL_LOST)
            break;
        nanosleep(&(struct timespec){1, 0}, NULL);
    }
    return rc == NXL_OK ? code : complain(lock, EXIT_UNRECORDED);
}

/* Earlier attempts may have charged: for how long now? */
static bool provider_may_have_forgotten(const nxl_record *record)
{
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    int64_t age_ms = now_ms - record->first_ms;

    return record->doubts > 0 && (age_ms < 0 || age_ms > ask_again_ms);
}

static int charge(
    nxl_lock *lock, const struct order *order, const char *provider)
{
    nxl_record record = NXL_RECORD_INIT;
    char key[KEY_SIZE], reference[64] = "";

    if (nxl_once_record(lock, &record) != NXL_OK ||
        provider_may_have_forgotten(&record)) {
        fprintf(stderr,
            "order %s: in doubt for too long to ask again; look it up at the "
            "provider\n",
            order->id);
        return tell(lock, NXL_ONCE_DOUBT, NULL, EXIT_DOUBT);
    }
    /* Of the order and nothing else: no time, no process, no attempt. */
    snprintf(key, sizeof(key), "charge-%s", order->id);
    if (!nxl_lock_held(lock)) /* somebody else may be at work by now */
        return tell(lock, NXL_ONCE_FAILED, NULL, EXIT_BUSY);
    switch (
        provider_charge(provider, key, order, reference, sizeof(reference))) {
    case ANSWER_PAID:
        puts(reference);
        return tell(lock, NXL_ONCE_DONE, reference, 0);
    case ANSWER_DECLINED:
        fprintf(stderr, "order %s: declined\n", order->id);
        return tell(lock, NXL_ONCE_FAILED, NULL, 1);
    default:
        fprintf(stderr, "order %s: the provider did not answer\n", order->id);
        return tell(lock, NXL_ONCE_DOUBT, NULL, EXIT_DOUBT);
    }
}

static int pay(nxl_lock *lock, const struct order *order, const char *provider)
{
    nxl_once_options options = NXL_ONCE_OPTIONS_INIT;
    nxl_record record = NXL_RECORD_INIT;
    char fingerprint[64];

    /* Another amount for the same order is a mistake, not a second try. */
    snprintf(fingerprint, sizeof(fingerprint), "%" PRId64 "%s", order->amount,
        order->currency);
    options.fingerprint = fingerprint;
    options.keep_ms = keep_ms;
    options.mode =
        NXL_ONCE_RETRY; /* because the provider knows the key again */
    switch (nxl_once_begin(lock, &options, WAIT_MS)) {
    case NXL_OK:
        return charge(lock, order, provider);
    case NXL_DONE:
        if (nxl_once_record(lock, &record) == NXL_OK && record.result &&
            record.result_length > 0)
            printf("%.*s\n", (int)record.result_length, record.result);
        else /* a person said so: nxlock once confirm */
            fprintf(stderr, "order %s: paid, without a reference\n", order->id);
        return 0;
    case NXL_BUSY:
        return complain(lock, EXIT_BUSY);
    case NXL_MISMATCH:
        return complain(lock, EXIT_MISMATCH);
    default: /* no answer, or an error: nothing was charged */
        return complain(lock, 69);
    }
}

int main(int argc, char **argv)
{
    const char *url = getenv("NXLOCK_URL");
    nxl_client_options client_options = NXL_CLIENT_OPTIONS_INIT;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_client *client;
    nxl_lock *lock;
    struct order order;
    char why[256] = "", *end = "";

    order.amount = argc < 5 ? 0 : strtoll(argv[2], &end, 10);
    if (argc < 5 || order.amount <= 0 || *end != '\0' ||
        strlen(argv[1]) >= sizeof(order.id) ||
        strlen(argv[3]) >= sizeof(order.currency)) {
        fprintf(stderr, "usage: once ORDER AMOUNT CURRENCY PROVIDER-SOCKET "
                        "[TTL_MS]\n");
        return 64;
    }
    strcpy(order.id, argv[1]);
    strcpy(order.currency, argv[3]);
    client_options.errbuf = why;
    client_options.errbuf_size = sizeof(why);
    client_options.prefix = "pay:";
    if (nxl_client_new(&client, url ? url : "redis://localhost:6379",
            &client_options) != NXL_OK) {
        fprintf(stderr, "once: %s\n", why);
        return 78;
    }
    /* Longer than a request to the provider may take. */
    options.ttl_ms = argc > 5 ? atol(argv[5]) : TTL_MS;
    options.renew = 1;
    int code = 70;
    if (nxl_lock_new(&lock, client, order.id, &options) == NXL_OK) {
        code = pay(lock, &order, argv[4]);
        nxl_lock_free(lock);
    } else { /* ORDER is empty, or TTL_MS is too short, for example */
        fprintf(stderr, "once: %s\n", nxl_client_errmsg(client));
    }
    nxl_client_free(client);
    return code;
}
