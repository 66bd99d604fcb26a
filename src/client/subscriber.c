/* SPDX-License-Identifier: MIT */
/*
 * The second connection of a client, which listens to the client's channels.
 *
 * Invariant: a channel's messages are UP only if the present connection has
 * confirmed its subscription. Every change of their state or number is reported
 * once, in an iteration of the loop. While no lock waits, nothing is connected
 * or sent.
 */
#include "client/subscriber.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "model/companion.h"
#include "model/token.h"
#include "net/subscription.h"

/* After such a silence, SUBSCRIBE is sent again to see whether the connection
 * is alive. Unlike PING it needs no further right and works with all servers.
 */
#define SILENCE_MAX (10 * NS_PER_S)
/* How long to wait after a refusal, and after one that may soon be over. */
#define REFUSED_WAIT (30 * NS_PER_S)
#define BUSY_WAIT (5 * NS_PER_S)
/* A peer that so often in a row ends the connection at SUBSCRIBE, or leaves it
 * unanswered, does not know that command: a proxy. Nor is a second connection
 * likely soon after so many failed while the first one was answered. */
#define LOSSES_FEW 2
/* So many connections in a row that each were lost so soon after they had begun
 * to listen: making them at once again would be a storm. */
#define BRIEF_FEW 8
#define BRIEF_MAX NS_PER_S
/* How many channels that no lock uses any more are kept. */
#define UNUSED_MAX 64

/* What a client has from its first wait on. Numbers of connections are those of
 * struct server. */
struct listener {
    struct server server;
    struct index channels;   /* by name */
    struct list all, active; /* of them; active: those that locks wait for */
    unsigned unused;         /* channels that no lock uses */
    bool stopped;
    bool review; /* a state may have changed that was not looked at */
    /* What the states were derived from last. */
    unsigned connection; /* that is up; 0: none */
    bool test_failed; /* the server counted no listener: no channel has messages
                       */
    uint64_t up_since;  /* of the first confirmation on it; 0: none yet */
    uint64_t review_at; /* when a channel that was refused is tried again */
    unsigned
        commands_connection; /* test_failed: the connection for commands then */
    unsigned tested;         /* the connection for commands that was tested */
    unsigned remade_for;     /* that for which a connection without
                              * listeners was replaced */
    unsigned losses;         /* failures in a row that count for LOSSES_FEW */
    uint64_t lost_at;        /* when the last one was counted */
    unsigned brief;          /* connections in a row, see BRIEF_FEW */
    struct text why;         /* of the last refusal */
    char id[UUID_TEXT + 1];
};

/* SUBSCRIBE of a channel. A request is larger than all the rest of a waiting
 * lock, so it exists only while it is under way. */
struct asking {
    struct request request; /* its owner is the channel */
    struct verb verb;
};

/* The number of the connection that is up; 0: none is. */
static unsigned up_now(const struct listener *l)
{
    return l->server.state == SERVER_UP ? l->server.connections : 0;
}

static bool channel_asks(const struct channel *c)
{
    return c->asking;
}

static bool channel_confirmed(const struct channel *c)
{
    return c->connection != 0 &&
           c->connection == up_now(c->subscriber->listener);
}

static bool still_refused(const struct channel *c)
{
    return c->refused &&
           c->subscriber->commands->connections == c->commands_connection;
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
    token_write(l->id, random, false);
    index_init(&l->channels);
    list_init(&l->all);
    list_init(&l->active);
    l->review_at = NEVER;
    uint64_t seed;
    memcpy(&seed, random, sizeof(seed));
    subscription_init(&l->server, s->commands, seed);
    server_set_poller(&l->server, s->poller, s->source);
    server_share_secrets(&l->server, s->secrets);
    return l;
}

/* ------------------------------------------------------------- the channels
 */

static struct channel *channel_find(struct listener *l, struct slice name)
{
    struct list *bucket = index_bucket(&l->channels, name);
    for (struct list *node = bucket->next; node != bucket; node = node->next) {
        struct channel *c = list_entry(node, struct channel, entry.node);
        if (slice_equal(c->name, name))
            return c;
    }
    return NULL;
}

static struct channel *channel_new(struct subscriber *s, struct slice name)
{
    struct channel *c = calloc(1, sizeof(*c));
    char *bytes = c ? malloc(name.len) : NULL;
    if (!bytes) {
        free(c);
        return NULL;
    }
    memcpy(bytes, name.data, name.len);
    c->name = (struct slice){bytes, name.len};
    c->messages.state = MESSAGES_COMING;
    c->subscriber = s;
    list_init(&c->waiters);
    list_init(&c->active);
    list_append(&s->listener->all, &c->node);
    index_entry_init(&c->entry);
    index_put(&s->listener->channels, &c->entry, c->name);
    return c;
}

static void asking_free(struct asking *asking)
{
    if (!asking)
        return;
    request_free(&asking->request);
    free(asking);
}

static void channel_free(struct channel *c)
{
    struct listener *l = c->subscriber->listener;
    asking_free(c->asking);
    index_remove(&l->channels, &c->entry);
    list_remove(&c->node);
    list_remove(&c->active);
    free((char *)c->name.data);
    free(c);
}

struct channel *subscriber_open(struct subscriber *s, struct slice key)
{
    char name[CHANNEL_MAX];
    if (key.len > CHANNEL_KEY_MAX)
        return NULL;
    if (!s->listener)
        s->listener = listener_new(s);
    if (!s->listener)
        return NULL;
    struct slice text = {name, channel_name(name, s->listener->id, key)};
    struct channel *c = channel_find(s->listener, text);
    s->listener->unused -= c && c->users == 0;
    if (!c)
        c = channel_new(s, text);
    if (c)
        c->users++;
    return c;
}

static void give_up(struct channel *c, uint64_t wait, uint64_t now)
{
    c->refused = true;
    c->commands_connection = c->subscriber->commands->connections;
    c->retry_at = deadline_after(now, wait);
}

static void channel_ask(struct channel *c, uint64_t now)
{
    struct listener *l = c->subscriber->listener;
    struct asking *asking = calloc(1, sizeof(*asking));
    if (!asking) {
        give_up(c, BUSY_WAIT, now);
        text_set(&l->why, "out of memory");
        l->review = true;
        return;
    }
    asking->verb = (struct verb){.kind = VERB_SUBSCRIBE, .key = c->name};
    asking->request.server = &l->server;
    asking->request.owner = c;
    list_init(&asking->request.node);
    c->asking = asking;
    c->sent_at = now;
    server_submit(&asking->request, &asking->verb, NULL, now);
}

/* Subscribes if locks wait, and it is time for it. */
static void channel_act(struct channel *c, uint64_t now)
{
    struct listener *l = c->subscriber->listener;
    if (c->waits == 0 || channel_asks(c) || channel_confirmed(c))
        return;
    if (still_refused(c) && now < c->retry_at)
        l->review_at = earlier(l->review_at, c->retry_at);
    else
        channel_ask(c, now);
}

/* What can be said of its messages now. */
static int channel_state(const struct channel *c)
{
    if (c->subscriber->listener->test_failed || c->refused)
        return MESSAGES_NONE;
    return channel_confirmed(c) ? MESSAGES_UP : MESSAGES_COMING;
}

static void channel_report(struct channel *c, bool again, uint64_t now)
{
    int state = channel_state(c);
    bool changed = again || (int)c->messages.state != state;
    c->messages.state = (__typeof__(c->messages.state))state;
    if (changed && c->subscriber->on_change)
        c->subscriber->on_change(c, now);
}

void channel_want(struct channel *c, uint64_t now)
{
    c->messages.state = (__typeof__(c->messages.state))channel_state(c);
    if (c->waits++ == 0)
        list_append(&c->subscriber->listener->active, &c->active);
    channel_act(c, now);
}

void channel_unwant(struct channel *c, uint64_t now)
{
    if (--c->waits > 0)
        return;
    list_remove(&c->active);
    if (!c->asking || c->asking->request.state != REQUEST_QUEUED)
        return;
    server_cancel(&c->asking->request, false, now);
    asking_free(c->asking);
    c->asking = NULL;
}

/* Frees the channels that no lock uses, but those that the connection listens
 * to, or is asked for. */
static void free_unused(struct listener *l)
{
    struct list *next;
    for (struct list *node = l->all.next; node != &l->all; node = next) {
        struct channel *c = list_entry(node, struct channel, node);
        next = node->next;
        if (c->users == 0 && !channel_asks(c) && !channel_confirmed(c)) {
            channel_free(c);
            l->unused--;
        }
    }
}

/* UNSUBSCRIBE would be one more permission. So the channel is kept for the next
 * lock of that name, and a connection that listens to many unused ones is
 * replaced. */
void channel_close(struct channel *c, uint64_t now)
{
    struct listener *l = c->subscriber->listener;
    if (--c->users > 0)
        return;
    if (++l->unused <= UNUSED_MAX)
        return;
    if (up_now(l) && !l->stopped)
        server_drop_connection(&l->server, FAULT_NOT_PRIMARY,
            "it listens to channels that are no longer in use", now);
    free_unused(l);
}

/* --------------------------------------------------------------- its results
 */

static void on_confirmed(struct channel *c, uint64_t now)
{
    struct listener *l = c->subscriber->listener;
    l->losses = 0;
    if (channel_confirmed(c))
        return; /* sent only to see whether the connection is alive */
    if (l->up_since == 0)
        l->up_since = now;
    c->refused = false;
    text_clear(&l->why);
    c->connection = l->server.connections;
    c->messages.number++;
    channel_report(c, true, now);
}

/* Refused, or given up for now. */
static void on_refused(
    struct channel *c, const struct outcome *outcome, uint64_t now)
{
    struct listener *l = c->subscriber->listener;
    bool soon = outcome->fault == FAULT_CREDENTIALS ||
                (outcome->fault == FAULT_RETRY && l->server.state == SERVER_UP);
    give_up(c, soon ? BUSY_WAIT : REFUSED_WAIT, now);
    text_clear(&l->why);
    if (l->losses >= LOSSES_FEW && outcome->unsure)
        text_add(&l->why, "no answer to SUBSCRIBE (a proxy?): ");
    text_add_foreign(&l->why, text_without_echo(outcome->text));
    channel_report(c, false, now);
}

static void on_failed(
    struct channel *c, const struct outcome *outcome, uint64_t now)
{
    struct listener *l = c->subscriber->listener;
    const struct server *commands = c->subscriber->commands;
    bool was_up = c->connection != 0 && c->connection == l->connection;
    if (channel_confirmed(c) && outcome->fault == FAULT_RETRY)
        return; /* busy, but alive */
    bool lost =
        outcome->fault == FAULT_UNREACHABLE || outcome->fault == FAULT_TIMEOUT;
    bool answers =
        commands->state == SERVER_UP && commands->heard_at > c->sent_at;
    /* All that were under way fail together, and count once. */
    if (lost && !was_up && (outcome->unsure || answers) &&
        c->sent_at >= l->lost_at) {
        l->losses++;
        l->lost_at = now;
    }
    if (!lost || l->losses >= LOSSES_FEW)
        on_refused(c, outcome, now);
}

static void take_message(
    struct subscriber *s, const struct outcome *message, uint64_t now)
{
    struct channel *c = channel_find(s->listener, message->text);
    if (!c || !channel_confirmed(c))
        server_drop_connection(&s->listener->server, FAULT_NOT_REDIS,
            "a message on a channel that was not asked for", now);
    else if (s->on_message)
        s->on_message(c, message->value, now);
}

static void take_answer(
    struct channel *c, const struct outcome *outcome, uint64_t now)
{
    struct asking *asked = c->asking;
    c->asking = NULL;
    if (outcome->kind == OUTCOME_FAULT)
        on_failed(c, outcome, now);
    else
        on_confirmed(c, now);
    asking_free(asked);
    channel_act(c, now);
}

/* ------------------------------------------------------------- looking after
 */

/* The connection that was up is lost. */
static void lost(struct listener *l, uint64_t now)
{
    bool soon = l->up_since != 0 && elapsed(l->up_since, now) < BRIEF_MAX;
    l->brief = soon ? l->brief + 1 : 0;
    l->test_failed = false;
    l->tested = 0;
    if (l->brief < BRIEF_FEW)
        return;
    l->brief = 0;
    text_set(&l->why, "it is closed as soon as it listens");
    for (struct list *node = l->active.next; node != &l->active;
         node = node->next)
        give_up(list_entry(node, struct channel, active), BUSY_WAIT, now);
}

/* What the states are derived from may have changed. */
static bool must_review(const struct subscriber *s, uint64_t now)
{
    const struct listener *l = s->listener;
    return l->review || up_now(l) != l->connection || now >= l->review_at ||
           (l->test_failed &&
               l->commands_connection != s->commands->connections);
}

static void review(struct subscriber *s, uint64_t now)
{
    struct listener *l = s->listener;
    struct list *node, *next;
    if (!must_review(s, now))
        return;
    if (l->connection != 0 && up_now(l) != l->connection)
        lost(l, now);
    if (up_now(l) != l->connection)
        l->up_since = 0;
    l->connection = up_now(l);
    l->test_failed =
        l->test_failed && l->commands_connection == s->commands->connections;
    l->review = false;
    l->review_at = NEVER;
    for (node = l->active.next; node != &l->active; node = next) {
        struct channel *c = list_entry(node, struct channel, active);
        next = node->next;
        c->refused = still_refused(c) && now < c->retry_at;
        channel_report(c, false, now);
        channel_act(c, now);
    }
}

/* By which channel to see whether a silent connection is alive; NULL: no lock
 * waits for a message of it, or it is being asked. */
static struct channel *channel_to_check(const struct listener *l)
{
    for (struct list *node = l->active.next; node != &l->active;
         node = node->next) {
        struct channel *c = list_entry(node, struct channel, active);
        if (channel_asks(c))
            return NULL;
        if (channel_confirmed(c))
            return c;
    }
    return NULL;
}

/* --------------------------------------------------------------- the subject
 */

struct slice subscriber_id(const struct subscriber *s)
{
    return slice_of(s->listener ? s->listener->id : "-");
}

const char *subscriber_words(const struct subscriber *s)
{
    if (!s->listener)
        return "there is no second connection";
    return s->listener->test_failed
               ? "the server that has the lock does not reach the second "
                 "connection"
               : s->listener->why.data;
}

unsigned subscriber_connection(const struct subscriber *s)
{
    return s->listener ? up_now(s->listener) : 0;
}

bool channel_untested(const struct channel *c, unsigned commands)
{
    const struct listener *l = c->subscriber->listener;
    return channel_confirmed(c) && !l->test_failed && l->tested != commands;
}

void subscriber_tested(struct subscriber *s, unsigned connection,
    unsigned commands, bool no_subscriber, uint64_t now)
{
    struct listener *l = s->listener;
    if (!l || connection == 0 || up_now(l) != connection ||
        s->commands->connections != commands)
        return;
    l->tested = commands;
    l->commands_connection = commands;
    l->test_failed = no_subscriber && l->remade_for == commands;
    l->review = true;
    if (!no_subscriber || l->test_failed)
        return;
    l->remade_for = commands;
    server_drop_connection(&l->server, FAULT_NOT_PRIMARY,
        "the server does not reach the connection", now);
}

/* ------------------------------------------------------------------ the loop
 */

uint64_t subscriber_deadline(const struct subscriber *s)
{
    struct listener *l = s->listener;
    uint64_t at = server_deadline(&l->server);
    if (list_empty(&l->active))
        return at;
    if (must_review(s, 0))
        return 0;
    if (channel_to_check(l))
        at = earlier(at, deadline_after(l->server.heard_at, SILENCE_MAX));
    return earlier(at, l->review_at);
}

void subscriber_ready(struct subscriber *s, short revents)
{
    s->listener->server.ready |= revents;
}

void subscriber_process(struct subscriber *s, uint64_t now)
{
    struct listener *l = s->listener;
    struct completion done;
    while (server_next(&l->server, &done, now)) {
        if (done.request)
            take_answer(done.request->owner, &done.outcome, now);
        else
            take_message(s, &done.outcome, now);
    }
    review(s, now);
    struct channel *check = channel_to_check(l);
    if (check && now >= deadline_after(l->server.heard_at, SILENCE_MAX))
        channel_ask(check, now);
}

bool subscriber_push(struct subscriber *s, uint64_t now)
{
    struct server *l = &s->listener->server;
    if (l->unlocated && s->commands->state == SERVER_UP)
        server_located(l); /* it has the same address */
    return server_push(l, now);
}

void subscriber_leave(struct subscriber *s, const char *why, uint64_t now)
{
    if (s->listener)
        server_leave(&s->listener->server, why, now);
}

/* ------------------------------------------------------------------- the end
 */

struct job *subscriber_stop(struct subscriber *s)
{
    struct listener *l = s->listener;
    if (!l)
        return NULL;
    l->stopped = true;
    return server_stop(&l->server);
}

void subscriber_free(struct subscriber *s)
{
    struct listener *l = s->listener;
    if (!l)
        return;
    while (!list_empty(&l->all))
        channel_free(list_entry(l->all.next, struct channel, node));
    index_free(&l->channels);
    server_free(&l->server);
    free(l);
    s->listener = NULL;
}

void subscriber_close_in_child(struct subscriber *s)
{
    if (s->listener)
        server_close_in_child(&s->listener->server);
}
