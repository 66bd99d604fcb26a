/* SPDX-License-Identifier: MIT */
/*
 * The second connection of a client, which listens to the client's channel.
 *
 * Invariant: the state is UP only if the present connection has confirmed the
 * subscription. Every change of state or number is reported once, in a turn.
 * While no lock waits, nothing is connected or sent.
 */
#include "client/subscriber.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "base/token.h"
#include "net/subscription.h"

#define CHANNEL_PREFIX "nxl:"
#define CHANNEL_LEN (sizeof(CHANNEL_PREFIX) - 1 + UUID_TEXT)

/* After such a silence, SUBSCRIBE is sent again to see whether the connection
 * is alive. Unlike PING it needs no further right and works with all servers.
 */
#define SILENCE_MOST (10 * NS_PER_S)
/* How long to wait after a refusal, and after one that may soon be over. */
#define REFUSED_WAIT (30 * NS_PER_S)
#define BUSY_WAIT (5 * NS_PER_S)
/* A peer that so often in a row ends the connection at SUBSCRIBE, or leaves it
 * unanswered, does not know that command: a proxy. And one that answers
 * commands meanwhile but so often makes no second connection, will not soon. */
#define CUT_FEW 2
/* So many connections in a row that each were lost so soon after they had begun
 * to listen: making them at once again would be a storm. */
#define BRIEF_FEW 8
#define BRIEF_MOST NS_PER_S

/* What a client has from its first wait on. Numbers of connections are those of
 * struct server. */
struct listener {
    struct server server;
    struct request request;
    struct verb verb;
    bool wanted;
    enum subscription state;
    bool deaf;           /* UP, but the test failed: counts as NONE */
    unsigned number;     /* of subscriptions made */
    unsigned connection; /* UP: which one */
    unsigned commands;   /* NONE, deaf: the connection for commands then */
    unsigned tested;     /* UP: the connection for commands that was tested */
    unsigned remade_for; /* that for which a deaf connection was replaced */
    unsigned cut;        /* failures in a row that count for CUT_FEW */
    unsigned brief;      /* connections in a row, see BRIEF_FEW */
    uint64_t up_since;
    uint64_t asked_at; /* when the request was submitted last */
    uint64_t retry_at; /* NONE */
    enum subscription reported;
    unsigned reported_number;
    struct text why;
    char channel[CHANNEL_LEN + 1];
};

static bool listener_asks(const struct listener *l)
{
    return l->request.state != REQUEST_IDLE;
}

/* Is the confirmed connection still the present one? */
static bool listener_connected(const struct listener *l)
{
    return l->server.state == SERVER_UP &&
           l->server.connections == l->connection;
}

/* ---------------------------------------------------------------- the making
 */

static struct listener *listener_new(struct subscriber *s)
{
    unsigned char random[16];
    if (!s->commands || !entropy_take(s->entropy, random, sizeof(random)))
        return NULL;
    struct listener *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    memcpy(l->channel, CHANNEL_PREFIX, sizeof(CHANNEL_PREFIX) - 1);
    token_write(l->channel + sizeof(CHANNEL_PREFIX) - 1, random, false);
    l->verb =
        (struct verb){.kind = VERB_SUBSCRIBE, .key = {l->channel, CHANNEL_LEN}};
    l->state = l->reported = SUBSCRIPTION_COMING;
    list_init(&l->request.node);
    uint64_t seed;
    memcpy(&seed, random, sizeof(seed));
    subscription_init(&l->server, s->commands, l->verb.key, seed);
    server_set_poller(&l->server, s->poller, s->key);
    secrets_add(s->secrets, &l->server.login.password);
    secrets_add(s->secrets, &l->server.login.former);
    return l;
}

/* When the next SUBSCRIBE is to be sent, while locks wait. */
static uint64_t listener_due(const struct subscriber *s)
{
    const struct listener *l = s->listener;
    switch (l->state) {
    case SUBSCRIPTION_NONE:
        return s->commands->connections == l->commands ? l->retry_at : 0;
    case SUBSCRIPTION_UP:
        return deadline_after(l->server.heard_at, SILENCE_MOST);
    case SUBSCRIPTION_COMING:
        break;
    }
    return 0;
}

static void listener_ask(struct subscriber *s, uint64_t now)
{
    struct listener *l = s->listener;
    if (!l->wanted || listener_asks(l) || now < listener_due(s))
        return;
    l->asked_at = now;
    server_submit(&l->server, &l->request, &l->verb, NULL, now);
}

bool subscriber_want(struct subscriber *s, uint64_t now)
{
    if (!s->listener)
        s->listener = listener_new(s);
    if (!s->listener)
        return false;
    s->listener->wanted = true;
    listener_ask(s, now);
    return true;
}

void subscriber_rest(struct subscriber *s, uint64_t now)
{
    struct listener *l = s->listener;
    if (!l)
        return;
    l->wanted = false;
    if (l->request.state == REQUEST_WAITING)
        server_cancel(&l->server, &l->request, false, now);
}

/* --------------------------------------------------------------- its results
 */

static void confirmed(struct listener *l, uint64_t now)
{
    l->cut = 0;
    if (l->state == SUBSCRIPTION_UP && listener_connected(l))
        return; /* sent only to see whether the connection is alive */
    l->state = SUBSCRIPTION_UP;
    l->connection = l->server.connections;
    l->number++;
    l->up_since = now;
    l->tested = 0;
    l->deaf = false;
}

/* Refused, or given up for now. */
static void refused(
    struct subscriber *s, const struct outcome *outcome, uint64_t now)
{
    struct listener *l = s->listener;
    bool soon = outcome->fault == FAULT_CREDENTIALS ||
                (outcome->fault == FAULT_RETRY && l->server.state == SERVER_UP);
    l->state = SUBSCRIPTION_NONE;
    l->commands = s->commands->connections;
    l->retry_at = deadline_after(now, soon ? BUSY_WAIT : REFUSED_WAIT);
    text_clear(&l->why);
    if (l->cut >= CUT_FEW && outcome->unsure)
        text_add(&l->why, "no answer to SUBSCRIBE (a proxy?): ");
    text_add_foreign(&l->why, text_without_echo(outcome->text));
}

static void failed(
    struct subscriber *s, const struct outcome *outcome, uint64_t now)
{
    struct listener *l = s->listener;
    bool was_up = l->state == SUBSCRIPTION_UP;
    if (was_up && listener_connected(l) && outcome->fault == FAULT_RETRY)
        return; /* busy, but alive */
    bool lost =
        outcome->fault == FAULT_UNREACHABLE || outcome->fault == FAULT_TIMEOUT;
    bool answers =
        s->commands->state == SERVER_UP && s->commands->heard_at > l->asked_at;
    if (lost && !was_up && (outcome->unsure || answers))
        l->cut++;
    if (lost && l->cut < CUT_FEW)
        l->state = SUBSCRIPTION_COMING;
    else
        refused(s, outcome, now);
}

static void take(struct subscriber *s, const struct completion *c, uint64_t now)
{
    struct listener *l = s->listener;
    if (c->request && c->outcome.kind == OUTCOME_FAULT)
        failed(s, &c->outcome, now);
    else if (c->request)
        confirmed(l, now);
    else if (s->on_message)
        s->on_message(s->client, c->outcome.value, now);
}

/* What has changed without a completion. */
static void review(struct subscriber *s, uint64_t now)
{
    struct listener *l = s->listener;
    if (l->state == SUBSCRIPTION_UP && !listener_connected(l)) {
        l->state = SUBSCRIPTION_COMING;
        l->brief = elapsed(l->up_since, now) < BRIEF_MOST ? l->brief + 1 : 0;
    }
    if (l->brief >= BRIEF_FEW) {
        l->brief = 0;
        l->state = SUBSCRIPTION_NONE;
        l->commands = s->commands->connections;
        l->retry_at = deadline_after(now, BUSY_WAIT);
        text_set(&l->why, "it is closed as soon as it listens");
    }
    if (l->state != SUBSCRIPTION_UP || l->commands != s->commands->connections)
        l->deaf = false;
}

/* --------------------------------------------------------------- the subject
 */

enum subscription subscriber_state(const struct subscriber *s)
{
    const struct listener *l = s->listener;
    if (!l || l->deaf)
        return SUBSCRIPTION_NONE;
    bool lost = l->state == SUBSCRIPTION_UP && !listener_connected(l);
    return lost ? SUBSCRIPTION_COMING : l->state;
}

unsigned subscriber_number(const struct subscriber *s)
{
    return s->listener ? s->listener->number : 0;
}

struct slice subscriber_channel(const struct subscriber *s)
{
    return s->listener ? s->listener->verb.key : slice_of("-");
}

const char *subscriber_words(const struct subscriber *s)
{
    if (subscriber_state(s) != SUBSCRIPTION_NONE)
        return "";
    if (!s->listener)
        return "there is no second connection";
    return s->listener->deaf
               ? "the server that has the lock does not reach the second "
                 "connection"
               : s->listener->why.data;
}

bool subscriber_untested(const struct subscriber *s, unsigned commands)
{
    const struct listener *l = s->listener;
    return l && l->state == SUBSCRIPTION_UP && listener_connected(l) &&
           l->tested != commands;
}

void subscriber_tested(struct subscriber *s, unsigned number, unsigned commands,
    bool deaf, uint64_t now)
{
    struct listener *l = s->listener;
    if (!l || l->state != SUBSCRIPTION_UP || l->number != number ||
        s->commands->connections != commands)
        return;
    l->tested = commands;
    l->commands = commands;
    l->deaf = deaf && l->remade_for == commands;
    if (!deaf || l->deaf)
        return;
    l->remade_for = commands;
    server_replace(&l->server, FAULT_NOT_PRIMARY,
        "the server does not reach the connection", now);
}

/* ------------------------------------------------------------------ the turn
 */

static bool has_changed(const struct subscriber *s)
{
    const struct listener *l = s->listener;
    return subscriber_state(s) != l->reported ||
           l->number != l->reported_number;
}

static void report(struct subscriber *s, uint64_t now)
{
    struct listener *l = s->listener;
    if (!has_changed(s))
        return;
    l->reported = subscriber_state(s);
    l->reported_number = l->number;
    if (s->on_change)
        s->on_change(s->client, now);
}

uint64_t subscriber_deadline(const struct subscriber *s)
{
    struct listener *l = s->listener;
    if (has_changed(s))
        return 0;
    uint64_t at = server_deadline(&l->server);
    return l->wanted && !listener_asks(l) ? earlier(at, listener_due(s)) : at;
}

void subscriber_ready(struct subscriber *s, short revents, uint64_t now)
{
    server_ready(&s->listener->server, revents, now);
}

void subscriber_turn(struct subscriber *s, uint64_t now)
{
    struct listener *l = s->listener;
    struct completion c;
    server_tick(&l->server, now);
    while (server_next(&l->server, &c, now))
        take(s, &c, now);
    review(s, now);
    report(s, now);
    listener_ask(s, now);
}

void subscriber_push(struct subscriber *s, uint64_t now)
{
    server_push(&s->listener->server, now);
}

bool subscriber_failed(const struct subscriber *s)
{
    return server_failed(&s->listener->server);
}

/* ------------------------------------------------------------------- the end
 */

struct job *subscriber_stop(struct subscriber *s)
{
    struct listener *l = s->listener;
    if (!l)
        return NULL;
    l->wanted = false;
    return server_stop(&l->server);
}

void subscriber_free(struct subscriber *s)
{
    struct listener *l = s->listener;
    if (!l)
        return;
    request_free(&l->server, &l->request);
    subscription_free(&l->server);
    free(l);
    s->listener = NULL;
}

void subscriber_close_in_child(struct subscriber *s)
{
    if (s->listener)
        server_close_in_child(&s->listener->server);
}
