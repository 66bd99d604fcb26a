/* SPDX-License-Identifier: MIT */
/*
 * Asks the Sentinels, and moves the connection to the primary that they name.
 *
 * Invariant: each poll asks every Sentinel that is not still to answer an
 * earlier one; its result is taken when a majority agrees, or when nobody who
 * was asked is left.
 */
#include "client/sentinel_watch.h"

#include <stdlib.h>
#include <strings.h>

#include "base/deadline.h"
#include "client/sentinel.h"

/* How often they are asked while the primary is not up. */
#define POLL_SOON (100 * NS_PER_MS)
/* How long one that does not answer is waited for, at most; half a timeout if
 * that is shorter. */
#define PATIENCE_MS 500

/* ----------------------------------------------------------------- the making
 */

/* False: no memory. */
static bool add(struct sentinel_watch *w, unsigned listed, unsigned nth)
{
    struct sentinel *st = sentinel_new(w->nodes, w->endpoint, listed, nth);
    if (!st)
        return false;
    w->list[w->count++] = st;
    w->confirm.count = w->count;
    return true;
}

/* A name may have an address for each of several Sentinels. "localhost" has two
 * for one of them. */
static unsigned first_nth(const struct server_address *at)
{
    return strcasecmp(at->host, "localhost") == 0 ? 0 : 1;
}

struct sentinel_watch *sentinel_watch_new(struct nodes *nodes,
    struct endpoint *endpoint,
    void (*on_move)(struct nxl_client *client, uint64_t now))
{
    const struct sentinels *sentinels = endpoint->sentinels;
    struct sentinel_watch *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->nodes = nodes;
    w->node = nodes_first(nodes);
    w->on_move = on_move;
    w->endpoint = endpoint;
    former_primary_init(&w->former_primary, nodes, endpoint);
    w->confirm.listed = sentinels->count;
    for (unsigned i = 0; i < sentinels->count; i++) {
        if (!add(w, i, first_nth(&sentinels->at[i]))) {
            sentinel_watch_free(w);
            return NULL;
        }
    }
    return w;
}

unsigned sentinel_watch_stop(struct sentinel_watch *w, struct job **callbacks)
{
    for (unsigned i = 0; i < w->count; i++)
        callbacks[i] = server_stop(&w->list[i]->server);
    callbacks[w->count] = former_primary_stop(&w->former_primary);
    return w->count + 1;
}

void sentinel_watch_free(struct sentinel_watch *w)
{
    for (unsigned i = 0; w && i < w->count; i++)
        sentinel_free(w->list[i]);
    if (w)
        former_primary_free(&w->former_primary);
    free(w);
}

void sentinel_watch_close_in_child(struct sentinel_watch *w)
{
    for (unsigned i = 0; i < w->count; i++)
        server_close_in_child(&w->list[i]->server);
    server_close_in_child(&w->former_primary.server);
}

/* -------------------------------------------------------------- when it asks
 */

/* Until when to wait for answers; 0: all have come. */
static uint64_t patience(const struct sentinel_watch *w)
{
    uint64_t half = w->endpoint->settings.timeout_ms / 2, until = 0;
    for (unsigned i = 0; i < w->count; i++)
        if (sentinel_is_pending(w->list[i]))
            until = later(until, deadline_after_ms(w->list[i]->asked_at,
                                     earlier(PATIENCE_MS, half)));
    return until;
}

static uint64_t every(const struct sentinel_watch *w)
{
    return sentinel_watch_is_settled(w) ? SENTINEL_WATCH_EVERY : POLL_SOON;
}

/* Are all still to answer an earlier question? */
static bool all_pending(const struct sentinel_watch *w)
{
    unsigned i = 0;
    while (i < w->count && sentinel_is_pending(w->list[i]))
        i++;
    return i == w->count;
}

uint64_t sentinel_watch_asks_at(const struct sentinel_watch *w, bool in_use)
{
    struct server *s = &w->node->server;
    if (all_pending(w))
        return NEVER;
    uint64_t at = former_primary_is_asked(&w->former_primary)
                      ? NEVER
                      : server_locate_by(s);
    if (s->awaits_sentinels)
        at = w->polled_at && !w->undecided
                 ? deadline_after(w->polled_at, POLL_SOON / 10)
                 : 0;
    if (in_use)
        at = earlier(at, deadline_after(w->polled_at, every(w)));
    return w->undecided ? later(at, deadline_after(w->polled_at, POLL_SOON))
                        : at;
}

bool sentinel_watch_is_asking(const struct sentinel_watch *w, uint64_t now)
{
    return w->undecided &&
           now < deadline_after(w->polled_at, SENTINEL_WATCH_EVERY);
}

uint64_t sentinel_watch_deadline(struct sentinel_watch *w, bool in_use)
{
    uint64_t at = sentinel_watch_asks_at(w, in_use);
    if (w->undecided)
        at = earlier(at, patience(w));
    at = earlier(at, former_primary_deadline(&w->former_primary));
    for (unsigned i = 0; i < w->count; i++)
        at = earlier(at, server_deadline(&w->list[i]->server));
    return at;
}

/* Another address of its host may lead to a Sentinel that is not asked yet. */
static void try_another(struct sentinel_watch *w, unsigned i, uint64_t now)
{
    struct sentinel *st = w->list[i];
    size_t count = st->server.dial.found.count;
    if (!confirm_is_repeated(&w->confirm, i) || sentinel_is_pending(st) ||
        st->server.to.nth == 0 || st->tried_addresses >= count)
        return;
    st->tried_addresses++;
    server_leave(&st->server, "another address leads to the same one", now);
    st->server.to.nth = st->server.to.nth % (unsigned)count + 1;
    w->confirm.views[i] = (struct sentinel_view){.id = ""};
}

static void poll_all(struct sentinel_watch *w, uint64_t now)
{
    for (unsigned i = 0; i < w->count; i++)
        try_another(w, i, now);
    w->polled_at = now;
    w->undecided = true;
    w->due = 0;
    for (unsigned i = 0; i < w->count; i++)
        if (!sentinel_is_pending(w->list[i]))
            sentinel_ask(w->list[i], now);
}

bool sentinel_watch_push(struct sentinel_watch *w, bool in_use, uint64_t now)
{
    bool failed = false;
    if (sentinel_watch_asks_at(w, in_use) <= now)
        poll_all(w, now);
    for (unsigned i = 0; w->due <= now && i < w->count; i++)
        failed |= server_push(&w->list[i]->server, now);
    if (former_primary_is_asked(&w->former_primary))
        failed |= server_push(&w->former_primary.server, now);
    return failed;
}

void sentinel_watch_ready(
    struct sentinel_watch *w, struct source *source, short revents)
{
    if (source->kind == SOURCE_FORMER_PRIMARY)
        w->former_primary.server.ready |= revents;
    else
        list_entry(source, struct sentinel, source)->server.ready |= revents;
    w->due = 0;
}

static bool is_asked(
    const struct sentinel_watch *w, unsigned listed, unsigned nth)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->list[i]->host_index == listed &&
            w->list[i]->address_index == nth)
            return true;
    return false;
}

/* The host may have more addresses than are asked. */
static void add_addresses(
    struct sentinel_watch *w, const struct sentinel *first, uint64_t now)
{
    size_t count = first->server.dial.found.count;
    for (unsigned nth = 2; nth <= count; nth++) {
        if (is_asked(w, first->host_index, nth))
            continue;
        if (w->count == CONFIRM_SENTINELS || !add(w, first->host_index, nth))
            return;
        if (w->undecided)
            sentinel_ask(w->list[w->count - 1], now);
    }
}

/* -------------------------------------------------------- what follows of it
 */

static bool is_present(
    const struct sentinel_watch *w, const struct sentinel_view *named)
{
    const struct server_address *at = &w->endpoint->address;
    return at->host && at->port == named->port &&
           strcmp(at->host, named->host) == 0;
}

static void add_address(const struct sentinel_watch *w,
    const struct sentinel_view *named, struct text *text)
{
    const struct secrets *secrets = &w->nodes->secrets;
    bool v6 = strchr(named->host, ':');
    text_add(text, v6 ? "[" : "");
    redact_add(text, slice_of(named->host), FOREIGN_MAX, secrets);
    text_addf(text, v6 ? "]:%u" : ":%u", (unsigned)named->port);
}

/* Can the former primary say that it has handed over? Only if it has been named
 * until now does that say anything about what others were granted. */
static bool former_can_report(
    const struct sentinel_watch *w, const struct sentinel_view *named)
{
    const struct eligibility *e = &w->node->voter.eligibility;
    return e->failover && w->endpoint->address.host &&
           eligibility_gives_way_to(e, named);
}

/* The primary is where they say. False: no memory. */
static bool move(
    struct sentinel_watch *w, const struct sentinel_view *named, uint64_t now)
{
    struct server_address *at = &w->endpoint->address;
    bool ask = former_can_report(w, named);
    char *host = strdup(named->host);
    struct text why;
    if (!host)
        return false;
    text_set(&why, "the Sentinels name another primary, ");
    add_address(w, named, &why);
    server_leave(&w->node->server, why.data, now);
    subscriber_leave(&w->node->subscriber, why.data, now);
    if (at->host && w->on_move)
        w->on_move(w->nodes->client, now);
    if (ask)
        former_primary_ask(
            &w->former_primary, at->host, at->port, &at->name, now);
    else
        free(at->host);
    at->host = host;
    at->port = named->port;
    text_set(&at->name, w->endpoint->needs_tls ? "rediss://" : "redis://");
    add_address(w, named, &at->name);
    text_addf(&at->name, "/%u", (unsigned)w->endpoint->settings.db);
    server_moved(&w->node->server, now);
    return true;
}

/* A majority names a primary. False: that was asked too early, the former one
 * is still to answer, or there is no memory. */
static bool take_primary(
    struct sentinel_watch *w, const struct sentinel_view *named, uint64_t now)
{
    struct server *s = &w->node->server;
    struct eligibility *e = &w->node->voter.eligibility;
    bool known = w->endpoint->address.host, present = is_present(w, named);
    if ((s->unlocated && named->asked_at < s->lost_at) ||
        !confirm_covers(named->asked_at, now))
        return false;
    if (!present && !move(w, named, now))
        return false;
    eligibility_named(e, named, known && !present);
    if (s->unlocated && former_primary_is_asked(&w->former_primary))
        return false;
    if (s->unlocated)
        server_located(s);
    return true;
}

/* "; h1:26379, h2:26379: connection refused; h3:26379: no answer" */
static void add_failures(const struct sentinel_watch *w, struct text *why)
{
    unsigned said = 0; /* by bits */
    for (unsigned i = 0; i < w->count; i++) {
        const char *reason = sentinel_reason(w->list[i]);
        if (!reason || said & 1U << i)
            continue;
        for (unsigned j = i; j < w->count; j++) {
            const char *other = sentinel_reason(w->list[j]);
            if (!other || strcmp(reason, other) != 0)
                continue;
            text_add(why, j == i ? "; " : ", ");
            text_add(why, w->list[j]->server.to.address->name.data);
            said |= 1U << j;
        }
        text_add(why, ": ");
        text_add(why, reason);
    }
}

/* As a fault of Sentinels, whose user and rights are not the servers'. */
static enum fault of_sentinels(enum fault fault)
{
    return fault == FAULT_DENIED          ? FAULT_SENTINEL_DENIED
           : fault == FAULT_NO_PERMISSION ? FAULT_SENTINEL_RIGHTS
                                          : fault;
}

/* The gravest of what keeps them from naming one. */
static enum fault worst(const struct sentinel_watch *w)
{
    enum fault fault = FAULT_UNCONFIRMED;
    bool all_unreachable = true;
    for (unsigned i = 0; i < w->count; i++) {
        const struct sentinel *st = w->list[i];
        all_unreachable &= st->failed && st->fault == FAULT_UNREACHABLE;
        if (st->failed && fault_needs_repair(st->fault))
            fault = fault_worse(fault, of_sentinels(st->fault));
    }
    return all_unreachable ? FAULT_UNREACHABLE : fault;
}

static unsigned most_named(const struct sentinel_watch *w)
{
    const struct sentinel_views *c = &w->confirm;
    unsigned most = 0;
    for (unsigned i = 0; i < c->count; i++) {
        const struct sentinel_view *v = &c->views[i];
        bool current = !w->list[i]->failed && !sentinel_is_pending(w->list[i]);
        unsigned count = current && v->asked_at
                             ? confirm_count(c, v->host, v->port, w->polled_at)
                             : 0;
        most = count > most ? count : most;
    }
    return most;
}

/* Asks the one that knows the most for the addresses of the others, once. */
static bool ask_others(struct sentinel_watch *w, uint64_t now)
{
    unsigned most = 0;
    for (unsigned i = 1; i < w->count; i++)
        if (w->confirm.views[i].others > w->confirm.views[most].others)
            most = i;
    if (w->informant)
        return false;
    w->informant = w->list[most];
    w->undecided = true;
    sentinel_ask_others(w->informant, now);
    return true;
}

/* How many can name a primary, if all of them answer. */
static unsigned most_that_can(const struct sentinel_watch *w)
{
    unsigned answered = confirm_answered(&w->confirm);
    unsigned listed = w->endpoint->sentinels->count;
    return answered > listed ? answered : listed;
}

/* No majority names one. */
static void take_nobody(struct sentinel_watch *w, uint64_t now)
{
    struct text why;
    unsigned needed = confirm_needed(&w->confirm);
    enum fault fault = worst(w);
    text_clear(&why);
    if (needed > most_that_can(w)) {
        if (ask_others(w, now))
            return; /* their answer comes first */
        fault = FAULT_WRONG_SENTINELS;
        text_addf(&why,
            "%u Sentinels must name the primary, and the URL has only %u",
            needed, most_that_can(w));
        sentinel_add_others(w->informant, &why);
    } else {
        text_addf(&why, "%u of %u Sentinels must name the same primary, and ",
            needed, most_that_can(w));
        if (most_named(w) > 0)
            text_addf(&why, "only %u ", most_named(w));
        text_add(&why, most_named(w) == 0   ? "none does"
                       : most_named(w) == 1 ? "does"
                                            : "do");
    }
    add_failures(w, &why);
    server_not_found(&w->node->server, fault, &why, now);
}

static void decide(struct sentinel_watch *w, uint64_t now)
{
    struct sentinel_view named;
    bool agreed = confirm_primary(&w->confirm, &named);
    bool current = agreed && named.asked_at >= w->polled_at;
    if (agreed && take_primary(w, &named, now) && current)
        w->undecided = false;
    if (!w->undecided || now < patience(w))
        return;
    w->undecided = false;
    if (!current) /* else the connection was lost since they were asked */
        take_nobody(w, now);
}

static void take_former(struct sentinel_watch *w, uint64_t now)
{
    bool answered;
    if (!former_primary_process(&w->former_primary, &answered, now))
        return;
    if (answered) {
        const struct server_info info =
            server_info_of(&w->former_primary.server);
        eligibility_hear_former(&w->node->voter.eligibility, &info);
    }
    w->heard = true;
}

/* When there is something to do for any of them, besides the next poll. */
static uint64_t next_due(const struct sentinel_watch *w)
{
    uint64_t at = NEVER;
    if (w->undecided || former_primary_is_asked(&w->former_primary))
        return 0;
    for (unsigned i = 0; i < w->count; i++)
        at = earlier(at, server_deadline(&w->list[i]->server));
    return at;
}

void sentinel_watch_process(struct sentinel_watch *w, uint64_t now)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct sentinel *st = w->list[i];
        struct completion c;
        while (server_next(&st->server, &c, now)) {
            sentinel_take(st, c.request, &c.outcome, &w->confirm.views[i], now);
            if (st->address_index == 1)
                add_addresses(w, st, now);
            w->heard = true;
        }
    }
    take_former(w, now);
    if (w->heard || w->undecided)
        decide(w, now);
    w->heard = false;
    w->due = next_due(w);
}

/* -------------------------------------------------------------- for others */

void sentinel_watch_explain(const struct sentinel_watch *w, unsigned i,
    struct text *named, struct text *why)
{
    const struct sentinel *st = w->list[i];
    const char *reason = sentinel_reason(st);
    text_clear(named);
    text_set(why, reason ? reason : "it was not asked");
    const struct sentinel_view *v = &w->confirm.views[i];
    if (confirm_is_current(v, confirm_current_from(&w->confirm)))
        add_address(w, v, named);
}

bool sentinel_watch_agrees(const struct sentinel_watch *w, unsigned i)
{
    return !w->endpoint->address.host || is_present(w, &w->confirm.views[i]);
}

bool sentinel_watch_is_spare(const struct sentinel_watch *w, unsigned i)
{
    const struct sentinel_views *c = &w->confirm;
    const unsigned answered = confirm_answered(c);
    const uint64_t from = confirm_current_from(c);
    bool other = false;
    for (unsigned j = 0; j < w->count; j++) {
        if (c->views[j].others + 1 > answered)
            return false;
        other |= j != i && w->list[j]->host_index == w->list[i]->host_index &&
                 confirm_is_current(&c->views[j], from);
    }
    return other && (!confirm_is_current(&c->views[i], from) ||
                        confirm_is_repeated(c, i));
}

void sentinel_watch_count(
    const struct sentinel_watch *w, unsigned *naming, unsigned *listed)
{
    const struct server_address *at = &w->endpoint->address;
    *listed = most_that_can(w);
    *naming =
        at->host ? confirm_count_current(&w->confirm, at->host, at->port) : 0;
}
