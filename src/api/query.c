/* SPDX-License-Identifier: MIT */
/*
 * A query to one server, see client_ask(): an operation without a lock.
 *
 * Invariant: an answer is the complete reply of one server to this query, or
 * there is none. What changes something is sent once. When the call is over, no
 * request of it is under way.
 */
#include "api/query.h"

#include <stdlib.h>

#include "api/private.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "client/call.h"
#include "client/poller_thread.h"
#include "client/operation.h"
#include "client/loop.h"
#include "client/unanswered.h"
#include "lock/errmsg.h"
#include "lock/remedy.h"

#define WORDS_MAX 64
#define BYTES_MAX 262144 /* of a query */

struct answer {
    struct reply_values values;
};

struct query {
    struct operation operation;
    struct call call;
    struct list node; /* in client->queries */
    unsigned server;
    const struct slice *words;
    size_t count;
    struct reply_values values;
    bool changes; /* something, so it must not be carried out twice */
    bool again;   /* it was sent again, after its connection was lost */
    /* Why it failed. Not the operation's message, which may need memory. */
    struct text errmsg;
};

/* ---------------------------------------------------------- as an operation */

static void complete_query(struct query *q, int result, enum fault fault)
{
    struct nxl_client *client = q->operation.client;
    if (result != NXL_OK && result != NXL_FREE) {
        struct text *message = &q->errmsg;
        const char *remedy =
            remedy_at(fault, q->operation.requests[q->server].server);
        if (fault == FAULT_UNSUPPORTED) /* its remedy is about locks */
            text_addf(message,
                "; %.*s may be renamed or disabled on this server, or the "
                "server is too old for it",
                (int)q->words[0].len, q->words[0].data);
        else if (*remedy)
            text_addf(message, "; %s", remedy);
        client->errmsg = *message;
    }
    timer_stop(&client->timers, &q->operation.timer);
    list_remove(&q->node); /* query_cancel_all() must not find it any longer */
    call_over(client, &q->call, result);
}

/* Begins a message with the server's name. */
static struct text *begin_message(struct query *q)
{
    struct text *message = &q->errmsg;
    const struct server *s = q->operation.requests[q->server].server;
    text_set(message, s->to.address->name.data);
    text_add(message, ": ");
    return message;
}

/* It failed, for this reason, and may have been carried out or not. */
static void end_unknown(struct query *q, enum fault fault)
{
    text_add(&q->errmsg, "; it may have been carried out nevertheless");
    complete_query(q, NXL_UNKNOWN, fault);
}

static void query_outcome(struct operation *op, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    struct query *q = list_entry(op, struct query, operation);
    bool fault = outcome->kind == OUTCOME_FAULT;
    if (!q->call.running)
        return;
    if (fault && outcome->fault == FAULT_UNREACHABLE &&
        op->requests[server].answer_lost && !q->again && !q->changes) {
        q->again = true; /* reading twice does no harm */
        (void)operation_send(op, server, SPARE_UNNEEDED, now);
    } else if (fault) {
        text_add_foreign(begin_message(q), outcome->text);
        if (q->changes && outcome->unsure)
            end_unknown(q, outcome->fault);
        else
            complete_query(
                q, (int)result_of_fault(outcome->fault), outcome->fault);
    } else if (q->values.starved) {
        text_add(begin_message(q), "out of memory: cannot store its answer");
        complete_query(q, NXL_E_NOMEM, FAULT_NONE);
    } else if (q->values.full) {
        text_addf(begin_message(q),
            "the answer to %.*s is longer than %d bytes", (int)q->words[0].len,
            q->words[0].data, REPLY_VALUES_MAX);
        complete_query(q, NXL_E_UNSUPPORTED, FAULT_NONE);
    } else {
        complete_query(q, outcome->kind == OUTCOME_NOT_MINE ? NXL_FREE : NXL_OK,
            FAULT_NONE);
    }
}

static void query_late(struct operation *op, uint64_t now)
{
    struct query *q = list_entry(op, struct query, operation);
    if (!q->call.running)
        return;
    unanswered_add_silence(begin_message(q), op->requests[q->server].server);
    bool changed_nothing = operation_abandon(op, q->server, false, now);
    if (q->changes && !changed_nothing)
        end_unknown(q, FAULT_TIMEOUT);
    else
        complete_query(q, NXL_E_UNREACHABLE, FAULT_TIMEOUT);
}

void query_cancel_all(struct nxl_client *client, uint64_t now)
{
    struct list *node;
    while ((node = list_pop(&client->queries))) {
        struct query *q = list_entry(node, struct query, node);
        text_add(begin_message(q), "the client was freed");
        (void)operation_abandon(&q->operation, q->server, false, now);
        complete_query(q, NXL_CANCELLED, FAULT_NONE);
    }
}

static const struct operation_type query_type = {query_outcome, query_late};

/* ----------------------------------------------------------------- the call */

/* Are the arguments refused? Then *why says what is wrong. */
static bool refuse_arguments(const struct nxl_client *client, size_t server,
    const struct slice *words, size_t count, struct text *why)
{
    size_t bytes = 0;
    text_clear(why);
    for (size_t i = 0; i < count; i++)
        bytes += words[i].len;
    if (server >= client->server_count)
        text_addf(why,
            "there is no server %zu: this client has %u, counted from 0",
            server, client->server_count);
    else if (bytes > BYTES_MAX)
        text_addf(why, "the query is longer than %d bytes", BYTES_MAX);
    return why->len > 0;
}

/* Sets the client's message. Takes the mutex. */
static void set_message(struct nxl_client *client, const struct text *message)
{
    client_lock(client);
    client->errmsg = *message;
    client_unlock(client);
}

/* Needs the mutex, and releases it. */
static int send_query(struct query *q)
{
    struct operation *op = &q->operation;
    struct nxl_client *client = op->client;
    uint64_t now = clock_now();
    q->call.running = true;
    list_append(&client->queries, &q->node);
    op->verb = (struct verb){.kind = VERB_QUERY,
        .args = q->words,
        .arg_count = q->count,
        .changes = q->changes,
        .values = &q->values};
    timer_set(
        &client->timers, &op->timer, deadline_after(now, client->timeout_ns));
    operation_begin(op, "request");
    (void)operation_send(op, q->server, SPARE_UNNEEDED, now);
    loop_push(client, now);
    poller_thread_wait(client, &q->call, &op->timer, now);
    return q->call.result;
}

/* Needs the mutex, and releases it. */
static int start_query(struct query *q)
{
    struct nxl_client *client = q->operation.client;
    int rc = NXL_E_INVALID;
    if (client->closed)
        errmsg_invalid(&client->errmsg, "the client has been freed");
    else if (!client_enter(client, MODE_BLOCKING))
        errmsg_invalid(&client->errmsg,
            "this client is in use through the event-loop API; use another "
            "client for this call");
    else
        return send_query(q);
    pthread_mutex_unlock(&client->mutex);
    return rc;
}

static int ask_server(struct nxl_client *client, struct query *q)
{
    static const struct slice no_key = {"", 0};
    int cancel_state, rc = NXL_E_NOMEM;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&client->mutex);
    client->refs++;
    call_init(&q->call);
    list_init(&q->node);
    bool reserved = timers_reserve(&client->timers);
    if (operation_init(&q->operation, &query_type, client, no_key) &&
        reserved) {
        rc = start_query(q);
        pthread_mutex_lock(&client->mutex);
    } else {
        text_set(&client->errmsg, "out of memory: cannot create the query");
    }
    if (reserved)
        timers_unreserve(&client->timers, &q->operation.timer);
    list_remove(&q->node);
    operation_free(&q->operation);
    call_free(&q->call);
    client->cancel_state = cancel_state;
    client_unref(client); /* unlocks */
    return rc;
}

/* False: *why says what is wrong with the words. */
static bool take_words(struct slice words[WORDS_MAX], size_t argc,
    const char *const *argv, const size_t *lengths, struct text *why)
{
    text_clear(why);
    if (!argv || argc == 0 || argc > WORDS_MAX) {
        text_addf(why, "a query has 1 to %d words", WORDS_MAX);
        return false;
    }
    for (size_t i = 0; i < argc; i++) {
        if (!argv[i]) {
            text_addf(why, "word %zu of the query is NULL", i + 1);
            return false;
        }
        words[i] =
            lengths ? (struct slice){argv[i], lengths[i]} : slice_of(argv[i]);
    }
    return true;
}

int query_change(
    struct nxl_client *client, const struct slice *words, size_t count)
{
    struct query one = {.words = words, .count = count, .changes = true};
    int rc = ask_server(client, &one);
    reply_values_free(&one.values);
    return rc;
}

static int query_run(struct nxl_client *client, unsigned server,
    const struct slice *words, size_t count, struct answer **answer)
{
    struct answer *made = calloc(1, sizeof(*made));
    if (!made) {
        struct text why;
        text_set(&why, "out of memory: cannot store the answer");
        set_message(client, &why);
        return NXL_E_NOMEM;
    }
    struct query one = {.server = server, .words = words, .count = count};
    int rc = ask_server(client, &one);
    made->values = one.values;
    if (rc == NXL_OK)
        *answer = made;
    else
        answer_free(made);
    return rc;
}

int client_ask(nxl_client *client, size_t server, size_t argc,
    const char *const *argv, const size_t *lengths, struct answer **answer)
{
    struct slice words[WORDS_MAX];
    struct text why;
    if (!answer)
        return NXL_E_INVALID;
    *answer = NULL;
    if (!client)
        return NXL_E_INVALID;
    if (client_forked(client))
        return NXL_E_FORKED;
    if (!take_words(words, argc, argv, lengths, &why) ||
        refuse_arguments(client, server, words, argc, &why)) {
        set_message(client, &why);
        return NXL_E_INVALID;
    }
    return query_run(client, (unsigned)server, words, argc, answer);
}

size_t answer_count(const struct answer *answer)
{
    return answer ? answer->values.count : 0;
}

const char *answer_item(const struct answer *answer, size_t i, size_t *length)
{
    struct slice item =
        answer ? reply_values_at(&answer->values, i) : (struct slice){NULL, 0};
    if (length)
        *length = item.len;
    return item.data;
}

void answer_free(struct answer *answer)
{
    if (!answer)
        return;
    reply_values_free(&answer->values);
    free(answer);
}
