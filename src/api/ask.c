/* SPDX-License-Identifier: MIT */
/*
 * Questions that no other call asks. Keeps: an answer is all of one server's
 * reply to these very words, or there is none; and when the call is over
 * nobody waits for it any more.
 */
#include "api/ask.h"

#include <stdlib.h>

#include "api/engine.h"
#include "api/lock.h"
#include "api/message.h"
#include "base/deadline.h"

#define WORDS_MOST 64
#define BYTES_MOST 262144 /* of a question */

struct nxl_answer {
    struct leaves leaves;
};

/* ---------------------------------------------------- as an operation */

static void complete(
    struct operation *op, int result, enum fault fault, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    op->result = result;
    if (result != NXL_OK) {
        if (*fault_remedy(fault))
            text_addf(&lock->message, "; %s", fault_remedy(fault));
        lock->client->message = lock->message;
    }
    engine_completed(lock->client, op, now);
}

/* The words of a failure that is not the server's own. */
static struct text *begin_message(struct nxl_lock *lock)
{
    const struct question *ask = lock->operation.machine.ask;
    const struct server *s = &lock->client->servers[ask->server];
    text_clear(&lock->message);
    text_add(&lock->message, s->endpoint.name.data);
    text_add(&lock->message, ": ");
    return &lock->message;
}

static void submit(struct nxl_lock *lock, uint64_t now)
{
    unsigned server = lock->operation.machine.ask->server;
    server_submit(&lock->client->servers[server], &lock->requests[server],
        &lock->verb, NULL, now);
}

int ask_begin(struct nxl_lock *lock, struct question *ask, uint64_t now)
{
    struct operation *op = &lock->operation;
    op->kind = OP_ASK;
    op->machine.ask = ask;
    op->running = true;
    lock->verb.kind = VERB_ASK;
    lock->verb.words = ask->words;
    lock->verb.word_count = ask->count;
    lock->verb.leaves = &ask->leaves;
    timer_set(&lock->client->timers, &op->timer,
        deadline_after(now, lock->client->timeout_ns));
    submit(lock, now);
    return NXL_PENDING;
}

void ask_outcome(
    struct operation *op, const struct completion *c, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    struct question *ask = op->machine.ask;
    const struct outcome *outcome = &c->outcome;
    bool fault = outcome->kind == OUTCOME_FAULT;
    if (fault && outcome->fault == FAULT_UNREACHABLE && c->request->cut &&
        !ask->again) {
        ask->again = true; /* reading twice does no harm */
        submit(lock, now);
    } else if (fault) {
        text_clear(&lock->message);
        message_fault(
            lock, &lock->client->servers[c->request->index], outcome);
        complete(op, (int)result_of_fault(outcome->fault), outcome->fault, now);
    } else if (ask->leaves.starved) {
        text_add(begin_message(lock), "no memory for its answer");
        complete(op, NXL_E_NOMEM, FAULT_NONE, now);
    } else if (ask->leaves.full) {
        text_addf(begin_message(lock),
            "an answer to %.*s of more than %d bytes is not kept",
            (int)ask->words[0].len, ask->words[0].data, LEAVES_MOST);
        complete(op, NXL_E_UNSUPPORTED, FAULT_NONE, now);
    } else {
        complete(op, NXL_OK, FAULT_NONE, now);
    }
}

static void leave(struct nxl_lock *lock, uint64_t now)
{
    unsigned server = lock->operation.machine.ask->server;
    (void)server_abandon(&lock->client->servers[server],
        &lock->requests[server], false, now);
}

void ask_late(struct operation *op, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    message_add_silence(begin_message(lock),
        &lock->client->servers[op->machine.ask->server]);
    leave(lock, now);
    complete(op, NXL_E_UNREACHABLE, FAULT_SILENT, now);
}

void ask_cancel(struct operation *op, uint64_t now)
{
    struct nxl_lock *lock = lock_of(op);
    text_add(begin_message(lock), "the client was freed");
    leave(lock, now);
    complete(op, NXL_CANCELLED, FAULT_NONE, now);
}

/* ----------------------------------------------------------- the call */

/* What is wrong with the arguments, for people; false: nothing is. */
static bool refused(const struct nxl_client *client, size_t server,
    const struct slice *words, size_t count, struct text *why)
{
    size_t bytes = 0;
    text_clear(why);
    for (size_t i = 0; i < count; i++)
        bytes += words[i].len;
    if (server >= client->server_count)
        text_addf(why, "there is no server %zu; they are counted from 0, and "
                       "there are %u", server, client->server_count);
    else if (bytes > BYTES_MOST)
        text_addf(why, "a question of more than %d bytes", BYTES_MOST);
    else if (ask_refusal(words, count)) {
        text_add_foreign(why, words[0]);
        text_addf(why, " %s", ask_refusal(words, count));
    }
    return why->len > 0;
}

/* Makes the message that of the client, whose mutex is not held. */
static void tell(struct nxl_client *client, const struct text *message)
{
    client_lock(client);
    client->message = *message;
    client_unlock(client);
}

static int ask(struct nxl_client *client, struct question *ask)
{
    struct call call = {
        .kind = OP_ASK, .door = DOOR_BLOCKING, .ask = ask};
    nxl_lock *lock;
    int rc = nxl_lock_new(&lock, client, "a question", NULL);
    if (rc != NXL_OK)
        return rc;
    rc = lock_block(lock, &call);
    if (rc == NXL_E_INVALID) /* it did not come so far as to be told */
        tell(client, &lock->message);
    nxl_lock_free(lock);
    return rc;
}

int nxl_client_ask(nxl_client *client, size_t server, size_t argc,
    const char *const *argv, const size_t *lengths, nxl_answer **answer)
{
    struct slice words[WORDS_MOST];
    struct text why;
    if (!answer)
        return NXL_E_INVALID;
    *answer = NULL;
    if (!client)
        return NXL_E_INVALID;
    if (client_forked(client))
        return NXL_E_FORKED;
    if (!argv || argc == 0 || argc > WORDS_MOST) {
        text_clear(&why);
        text_addf(&why, "a question has 1 to %d words", WORDS_MOST);
        tell(client, &why);
        return NXL_E_INVALID;
    }
    for (size_t i = 0; i < argc; i++)
        words[i] = lengths ? (struct slice){argv[i], lengths[i]}
                           : slice_of(argv[i]);
    if (refused(client, server, words, argc, &why)) {
        tell(client, &why);
        return NXL_E_INVALID;
    }
    nxl_answer *made = calloc(1, sizeof *made);
    if (!made) {
        text_add(&why, "no memory for an answer");
        tell(client, &why);
        return NXL_E_NOMEM;
    }
    struct question one = {
        .server = (unsigned)server, .words = words, .count = argc};
    int rc = ask(client, &one);
    made->leaves = one.leaves;
    if (rc == NXL_OK)
        *answer = made;
    else
        nxl_answer_free(made);
    return rc;
}

size_t nxl_answer_count(const nxl_answer *answer)
{
    return answer ? answer->leaves.count : 0;
}

const char *nxl_answer_item(
    const nxl_answer *answer, size_t i, size_t *length)
{
    if (length)
        *length = 0;
    if (i >= nxl_answer_count(answer) || answer->leaves.list[i].nil)
        return NULL;
    if (length)
        *length = answer->leaves.list[i].len;
    return buf_head(&answer->leaves.bytes) + answer->leaves.list[i].at;
}

void nxl_answer_free(nxl_answer *answer)
{
    if (!answer)
        return;
    leaves_free(&answer->leaves);
    free(answer);
}

/* -------------------------------------------------- what a client was made
 * with, for those who look at the keys of its locks */

const char *nxl_client_prefix(const nxl_client *client)
{
    return client ? client->prefix.data : "";
}

int64_t nxl_client_max_ttl_ms(const nxl_client *client)
{
    return client ? client->max_ttl_ms : 0;
}
