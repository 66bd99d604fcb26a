/* SPDX-License-Identifier: MIT */
/*
 * One worker of nxlock-once-faults: takes keys from the board, and for each
 * begins, charges and tells. It dies or stops at the steps that its seed says,
 * and never charges without a begin that was granted.
 *
 * It says on standard error, and counts, what must never be: a record that
 * is undone, a fence that does not grow, an attempt after a doubt that was not
 * told of it, another result than that of the charge.
 *
 * With the mode "look" it only prints the record of each key that was begun:
 * key, state, result, doubts, late, the result's sum and what the board says of
 * it; and what the board has counted. "count" prints only that.
 */
#include <errno.h>
#include <inttypes.h>
#include <nxlock.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "once_board.h"
#include "once_ledger.h"
#include "once_steps.h"

enum {
    WINDOW = 48, /* keys at a time, over which they fight */
    ENDS = 2,    /* each is found finished so often */
    TRIES = 25,  /* of a verdict without an answer */
    PAUSE_MS = 20,
    TIMEOUT_MS = 300,
    KEEP_MS = 3600000,
    LARGE = 65536,
};

enum mode { HALT, RETRY, CHECK, LOOK };

static struct {
    enum mode mode;
    int ttl_ms;
    struct board *board;
    struct ledger *ledger;
    nxl_client *client;
    char receipt[LARGE], other[LARGE];
} me;

/* A key at hand. */
struct job {
    uint64_t key;
    struct board_key *board;
    nxl_lock *lock;
    uint64_t fence_before;
    uint32_t flags_before; /* of what was told before the call began */
    nxl_record record;
    char token[128]; /* of the attempt */
    size_t length;   /* of the receipt */
};

static void count(enum board_count which)
{
    me.board->count[which]++;
}

__attribute__((format(printf, 2, 3))) static void wrong(
    const struct job *job, const char *format, ...)
{
    char line[400];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    fprintf(stderr, "WRONG: key %" PRIu64 ": %s\n", job->key, line);
    count(COUNT_WRONG);
}

static void pause_ms(int ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void raise_fence(struct job *job, uint64_t fence)
{
    uint64_t now = job->board->fence;
    while (now < fence &&
           !atomic_compare_exchange_weak(&job->board->fence, &now, fence))
        ;
}

/* --------------------------------------------------------------- the verdict
 */

/* Says it until it is answered, or gives up: sometimes at once. */
static int tell(struct job *job, int verdict, const char *result, size_t length)
{
    int tries = below(20) == 0 ? 1 : TRIES, rc;
    step_into();
    do {
        rc = nxl_once_tell(job->lock, verdict, 7, result, length);
        if (rc != NXL_UNKNOWN && rc >= 0)
            break;
        pause_ms(PAUSE_MS);
    } while (--tries > 0);
    step_out();
    if (rc == NXL_OK)
        count(COUNT_TOLD);
    else if (rc == NXL_LOST)
        count(COUNT_TELL_LOST);
    return rc;
}

/* It was charged, and the first to say so is heard. */
static void tell_done(struct job *job, const char *receipt)
{
    int rc = tell(job, NXL_ONCE_DONE, receipt, job->length);
    if (rc == NXL_LOST && me.mode == HALT) {
        nxl_record r = NXL_RECORD_INIT;
        int known = nxl_once_record(job->lock, &r);
        wrong(job,
            "DONE of %s, attempt %" PRId64 ", was lost: %s; record %d: state "
            "%d, %s, attempt %" PRId64 ", late %" PRId64,
            job->token, job->record.attempt, nxl_lock_errmsg(job->lock), known,
            r.state, r.token, r.attempt, r.late);
    }
    if (rc != NXL_OK)
        return;
    job->board->flags |= FLAG_DONE | FLAG_TOLD;
    step();
    if (below(30) > 0)
        return;
    /* By mistake once more; the first verdict has to stay. */
    int verdict = below(2) ? NXL_ONCE_DONE : NXL_ONCE_FAILED;
    rc = tell(job, verdict, verdict == NXL_ONCE_DONE ? "again" : NULL,
        verdict == NXL_ONCE_DONE ? 5 : 0);
    if (rc == NXL_LOST)
        wrong(job, "a second verdict: %s", nxl_lock_errmsg(job->lock));
}

/* --------------------------------------------------------------- the attempt
 */

static bool still_held(void *lock)
{
    return nxl_lock_held(lock);
}

/* Other bytes each time, of any value, rarely none or many. */
static void write_receipt(struct job *job)
{
    int kind = below(200);
    job->length = kind == 0 ? LARGE : kind == 1 ? 0 : (size_t)(8 + below(32));
    for (size_t i = 0; i < job->length; i++)
        me.receipt[i] = (char)below(256);
}

/* The checker: asks the ledger about those in doubt. False: nothing is left
 * to do. */
static bool settle_doubts(struct job *job)
{
    step();
    if (ledger_find(
            me.ledger, job->key, me.other, sizeof(me.other), &job->length)) {
        tell_done(job, me.other);
        return false;
    }
    step();
    /* Else it is in doubt again, when the handle is freed. */
    return tell(job, NXL_ONCE_CLEAR, NULL, 0) == NXL_OK;
}

/* Ends before the charge, now and then; whoever does has not charged. */
static bool gives_up(struct job *job)
{
    switch (below(90)) {
    case 0:
        return true;
    case 1:
        (void)tell(job, NXL_ONCE_DOUBT, NULL, 0);
        return true;
    case 2:
    case 3:
    case 4:
        (void)tell(job, NXL_ONCE_FAILED, NULL, 0);
        return true;
    default:
        return false;
    }
}

static void attempt(struct job *job)
{
    uint64_t fence = nxl_lock_fence(job->lock);
    int64_t doubts = job->record.doubts;
    snprintf(job->token, sizeof(job->token), "%s", nxl_lock_token(job->lock));
    step();
    if (fence <= job->fence_before)
        wrong(
            job, "fence %" PRIu64 " after %" PRIu64, fence, job->fence_before);
    raise_fence(job, fence);
    if (doubts && me.mode == HALT)
        wrong(job, "begun over %" PRId64 " doubts", doubts);
    if (me.mode == CHECK && doubts && !settle_doubts(job))
        return;
    if (gives_up(job))
        return;
    write_receipt(job);
    if (me.mode != CHECK)
        step(); /* for longer than the lease, perhaps */
    struct charge charge = {.key = job->key,
        .fence = fence,
        .doubts = doubts,
        .receipt = me.receipt,
        .length = job->length};
    if (!ledger_charge(me.ledger, &charge, me.mode == CHECK ? still_held : NULL,
            job->lock)) {
        (void)tell(job, NXL_ONCE_FAILED, NULL, 0);
        return;
    }
    step();
    if (below(80) == 0)
        (void)tell(job, NXL_ONCE_DOUBT, NULL, 0);
    else if (below(80) > 0) /* else it says nothing */
        tell_done(job, me.receipt);
}

/* ----------------------------------------------------------------- the begin
 */

static void found_done(struct job *job)
{
    const nxl_record *r = &job->record;
    int64_t sum = receipt_sum(r->result, r->result_length);
    job->board->flags |= FLAG_DONE;
    job->board->ends++;
    if (!ledger_has(me.ledger, job->key, sum))
        wrong(job, "done without a charge, or with another result");
}

static void found_doubt(struct job *job)
{
    count(COUNT_DOUBT);
    if (job->flags_before & FLAG_DONE)
        wrong(job, "was done, and is in doubt");
    job->board->flags |= FLAG_DOUBT;
    job->board->ends++;
}

/* A record of other work: it is never begun over this one, nor shown. */
static void look_with_another(struct job *job)
{
    nxl_once_options options = NXL_ONCE_OPTIONS_INIT;
    options.mode = NXL_ONCE_LOOK;
    options.keep_ms = KEEP_MS;
    options.fingerprint = "another";
    int rc = nxl_once_begin(job->lock, &options, 0);
    if (rc == NXL_DONE || rc == NXL_DOUBT)
        wrong(job, "another fingerprint found %d", rc);
}

static int begin(struct job *job)
{
    static const int waits[] = {0, 0, 30, 400};
    char fingerprint[32];
    nxl_once_options options = NXL_ONCE_OPTIONS_INIT;
    snprintf(fingerprint, sizeof(fingerprint), "amount:%" PRIu64, job->key);
    options.mode = me.mode == HALT ? NXL_ONCE_HALT : NXL_ONCE_RETRY;
    options.keep_ms = KEEP_MS;
    options.fingerprint = fingerprint;
    job->flags_before = job->board->flags;
    job->fence_before = job->board->fence;
    step_into();
    int rc = nxl_once_begin(job->lock, &options, waits[below(4)]);
    step_out();
    job->record = (nxl_record)NXL_RECORD_INIT;
    if (rc == NXL_OK || rc == NXL_DONE || rc == NXL_DOUBT) {
        int known = nxl_once_record(job->lock, &job->record);
        if (known != NXL_OK)
            wrong(job, "result %d without a record: %d", rc, known);
    }
    return rc;
}

static void work(struct job *job)
{
    step();
    int rc = begin(job);
    switch (rc) {
    case NXL_OK:
        if (job->flags_before & FLAG_DONE)
            wrong(job, "was done, and is begun again");
        attempt(job);
        break;
    case NXL_DONE:
        found_done(job);
        break;
    case NXL_DOUBT:
        found_doubt(job);
        break;
    case NXL_BUSY:
        pause_ms(2);
        break;
    case NXL_LOST:
    case NXL_UNKNOWN:
        break;
    case NXL_MISMATCH:
        wrong(job, "mismatch: %s", nxl_lock_errmsg(job->lock));
        break;
    default:
        pause_ms(PAUSE_MS);
    }
    if (below(40) == 0)
        look_with_another(job);
}

/* ------------------------------------------------------------------ the keys
 */

static void open_lock(struct job *job, uint64_t key)
{
    char name[32];
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = me.ttl_ms;
    options.renew = below(2);
    options.label = "worker";
    options.retry_min_ms = 5;
    options.retry_max_ms = 25;
    *job = (struct job){.key = key, .board = &me.board->key[key]};
    snprintf(name, sizeof(name), "pay:%" PRIu64, key);
    if (nxl_lock_new(&job->lock, me.client, name, &options) != NXL_OK) {
        fprintf(stderr, "%s\n", nxl_client_errmsg(me.client));
        exit(6);
    }
}

/* One that is not finished; false: all are. */
static bool choose(uint64_t *key)
{
    struct board *board = me.board;
    uint64_t first = board->first;
    while (first < board->keys && board->key[first].ends >= ENDS)
        if (atomic_compare_exchange_weak(&board->first, &first, first + 1))
            first++;
    if (first >= board->keys)
        return false;
    uint64_t room = board->keys - first;
    *key = first + (uint64_t)below(room < WINDOW ? (int)room : WINDOW);
    while (board->key[*key].ends >= ENDS && *key > first)
        --*key;
    return true;
}

static bool work_all(void)
{
    uint64_t key;
    struct job job;
    while (choose(&key)) {
        open_lock(&job, key);
        work(&job);
        nxl_lock_free(job.lock);
        step();
    }
    return true;
}

/* Nothing fails any more. False: the server does not answer. */
static bool look_all(void)
{
    static const char *const states[] = {
        "none", "begun", "doubt", "done", "failed"};
    nxl_once_options options = NXL_ONCE_OPTIONS_INIT;
    struct job job;
    options.mode = NXL_ONCE_LOOK;
    options.keep_ms = KEEP_MS;
    uint64_t keys = me.board->first + WINDOW;
    keys = keys < me.board->keys ? keys : me.board->keys;
    for (uint64_t key = 0; key < keys; key++) {
        char fingerprint[32];
        snprintf(fingerprint, sizeof(fingerprint), "amount:%" PRIu64, key);
        options.fingerprint = fingerprint;
        open_lock(&job, key);
        nxl_record r = NXL_RECORD_INIT;
        int rc = nxl_once_begin(job.lock, &options, 0);
        if (rc < 0 || rc == NXL_UNKNOWN) {
            fprintf(stderr, "%s\n", nxl_lock_errmsg(job.lock));
            return false;
        }
        if (nxl_once_record(job.lock, &r) < 0)
            wrong(&job, "no record after %d", rc);
        printf("key %" PRIu64 " %s %d %" PRId64 " %" PRId64 " %" PRId64 " %u\n",
            key, states[r.state], rc, r.doubts, r.late,
            receipt_sum(r.result, r.result ? r.result_length : 0),
            (unsigned)job.board->flags);
        nxl_lock_free(job.lock);
    }
    board_print(me.board);
    return true;
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"halt", "retry", "check", "look"};
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    char why[512] = "";
    if (argc == 4 && strcmp(argv[1], "new") == 0)
        return board_create(argv[2], strtoull(argv[3], NULL, 10)) ? 0 : 1;
    if (argc == 3 && strcmp(argv[1], "count") == 0) {
        me.board = board_open(argv[2]);
        if (me.board)
            board_print(me.board);
        return me.board ? 0 : 1;
    }
    if (argc != 8) {
        fprintf(stderr, "usage: once-worker new BOARD KEYS\n"
                        "       once-worker count BOARD\n"
                        "       once-worker URL BOARD LEDGER MODE TTL_MS "
                        "SEED ONE_IN\n");
        return 2;
    }
    while (me.mode < LOOK && strcmp(argv[4], modes[me.mode]) != 0)
        me.mode++;
    me.ttl_ms = (int)strtol(argv[5], NULL, 10);
    me.board = board_open(argv[2]);
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    options.timeout_ms = TIMEOUT_MS;
    if (!me.board || nxl_client_new(&me.client, argv[1], &options) != NXL_OK) {
        fprintf(stderr, "%s: %s %s\n", argv[1], argv[2], why);
        return 1;
    }
    me.ledger = ledger_open(argv[3]);
    steps_start(strtoull(argv[6], NULL, 10), (int)strtol(argv[7], NULL, 10),
        &me.board->count[COUNT_STOPPED]);
    bool fine = me.mode == LOOK ? look_all() : work_all();
    nxl_client_free(me.client);
    ledger_close(me.ledger);
    return fine ? 0 : 1;
}
