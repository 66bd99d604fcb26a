/* SPDX-License-Identifier: MIT */
/*
 * Asks the Sentinels, and moves the connection to the primary that they name.
 *
 * Invariant: each look asks every Sentinel that is not still to answer an
 * earlier one; its result is taken when a majority agrees, or when nobody who
 * was asked is left.
 */
#include "client/watch.h"

#include <stdlib.h>
#include <strings.h>

#include "base/deadline.h"

/* How often they are asked while the primary is up, and while it is not. */
#define LOOK_EVERY NS_PER_S
#define LOOK_SOON (100 * NS_PER_MS)
/* How long one that does not answer is waited for, at most; half a timeout if
 * that is shorter. */
#define PATIENCE_MS 500

/* The first two are asked in each look. */
enum { ASK_ADDRESS, ASK_DETAILS, ASK_OTHERS, QUESTIONS };

struct sentinel {
    struct watch *watch;
    unsigned index;  /* of its view */
    unsigned listed; /* the number of its host in the URL */
    unsigned place;  /* of the address that it was made for; 0: of any */
    unsigned tried;  /* addresses that led to another one's Sentinel */
    struct server server;
    struct source source;
    struct settings settings; /* owns nothing */
    struct question {
        struct request request;
        struct verb verb;
        struct slice words[3];
        struct reply_values values;
        bool pending;
    } questions[QUESTIONS];
    uint64_t asked_at; /* when it was asked last */
    bool failed;       /* its last answer names nobody, for this reason: */
    enum fault fault;
    struct text why;
};

struct watch {
    struct nodes *nodes;
    struct node *node;
    void (*on_move)(struct nxl_client *client, uint64_t now);
    struct endpoint *endpoint;
    unsigned count;             /* of list */
    uint64_t looked_at;         /* 0: never */
    struct sentinel *informant; /* was asked for the others; or NULL */
    bool undecided;             /* the last look has no result yet */
    bool heard;                 /* an answer that has not been weighed */
    uint64_t since; /* a majority has named the present address since then;
                     * 0: unknown */
    struct confirm confirm; /* views in the order of the list */
    struct sentinel *list[CONFIRM_SENTINELS];
};

/* ----------------------------------------------------------------- the making
 */

static void make_question(
    struct question *q, struct sentinel *of, const char *what)
{
    q->words[0] = slice_of("SENTINEL");
    q->words[1] = slice_of(what);
    q->words[2] = slice_of(of->watch->endpoint->sentinels->service);
    q->verb = (struct verb){.kind = VERB_QUERY,
        .args = q->words,
        .arg_count = 3,
        .values = &q->values};
    q->request.server = &of->server;
    q->request.owner = of;
    list_init(&q->request.node);
}

/* What the Sentinels and the primary have in common, and a login of their own.
 */
static void make_settings(struct sentinel *st, const struct endpoint *e)
{
    st->settings = e->settings;
    st->settings.login = e->settings.sentinel_login;
    st->settings.db = 0;
    st->settings.sni = NULL;
    st->settings.scheme = LOCK_SCHEME_AUTO;
    st->settings.wait_replicas = st->settings.wait_aof = 0;
}

/* Adds the nth address of that host in the URL. False: no memory. */
static bool add(struct watch *w, unsigned listed, unsigned nth)
{
    struct sentinel *st = calloc(1, sizeof(*st));
    const struct endpoint *e = w->endpoint;
    struct nodes *nodes = w->nodes;
    if (!st)
        return false;
    st->watch = w;
    st->listed = listed;
    st->place = nth;
    st->index = w->count;
    make_settings(st, e);
    const struct target to = {&e->sentinels->at[listed], &st->settings,
        e->sentinels->tls ? e->tls : NULL, e->server, nth};
    server_init(&st->server, &to, true, (uint64_t)(uintptr_t)st);
    st->server.who.sentinel = true;
    st->server.secrets = &nodes->secrets;
    st->server.spares = &nodes->spares;
    secrets_add(&nodes->secrets, &st->server.login.password);
    secrets_add(&nodes->secrets, &st->server.login.former);
    st->source.kind = SOURCE_SENTINEL;
    server_set_poller(&st->server, nodes->poller, &st->source);
    make_question(&st->questions[ASK_ADDRESS], st, "get-master-addr-by-name");
    make_question(&st->questions[ASK_DETAILS], st, "master");
    make_question(&st->questions[ASK_OTHERS], st, "sentinels");
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

struct watch *watch_new(struct nodes *nodes, struct endpoint *endpoint,
    void (*on_move)(struct nxl_client *client, uint64_t now))
{
    const struct sentinels *sentinels = endpoint->sentinels;
    struct watch *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->nodes = nodes;
    w->node = nodes_first(nodes);
    w->on_move = on_move;
    w->endpoint = endpoint;
    w->confirm.listed = sentinels->count;
    for (unsigned i = 0; i < sentinels->count; i++) {
        if (!add(w, i, first_nth(&sentinels->at[i]))) {
            watch_free(w);
            return NULL;
        }
    }
    return w;
}

void watch_stop(struct watch *w)
{
    for (unsigned i = 0; i < w->count; i++)
        (void)server_stop(&w->list[i]->server);
}

void watch_free(struct watch *w)
{
    for (unsigned i = 0; w && i < w->count; i++) {
        struct sentinel *st = w->list[i];
        for (unsigned k = 0; k < QUESTIONS; k++) {
            request_free(&st->questions[k].request);
            reply_values_free(&st->questions[k].values);
        }
        server_free(&st->server);
        free(st);
    }
    free(w);
}

void watch_close_in_child(struct watch *w)
{
    for (unsigned i = 0; i < w->count; i++)
        server_close_in_child(&w->list[i]->server);
}

/* -------------------------------------------------------------- when it asks
 */

static bool is_pending(const struct sentinel *st)
{
    return st->questions[ASK_ADDRESS].pending ||
           st->questions[ASK_DETAILS].pending ||
           st->questions[ASK_OTHERS].pending;
}

/* Until when to wait for answers; 0: all have come. */
static uint64_t patience(const struct watch *w)
{
    uint64_t half = w->endpoint->settings.timeout_ms / 2, until = 0;
    for (unsigned i = 0; i < w->count; i++)
        if (is_pending(w->list[i]))
            until = later(until, deadline_after_ms(w->list[i]->asked_at,
                                     earlier(PATIENCE_MS, half)));
    return until;
}

static uint64_t every(const struct watch *w)
{
    const struct node *n = w->node;
    bool settled = n->server.state == SERVER_UP &&
                   n->voter.eligibility.reason != REASON_REPLICA;
    return settled ? LOOK_EVERY : LOOK_SOON;
}

/* Are all still to answer an earlier question? */
static bool all_pending(const struct watch *w)
{
    unsigned i = 0;
    while (i < w->count && is_pending(w->list[i]))
        i++;
    return i == w->count;
}

uint64_t watch_asks_at(const struct watch *w, bool in_use)
{
    struct server *s = &w->node->server;
    if (all_pending(w))
        return NEVER;
    uint64_t at = server_locate_by(s);
    if (s->held_back)
        at = w->looked_at && !w->undecided
                 ? deadline_after(w->looked_at, LOOK_SOON / 10)
                 : 0;
    if (in_use)
        at = earlier(at, deadline_after(w->looked_at, every(w)));
    return w->undecided ? later(at, deadline_after(w->looked_at, LOOK_SOON))
                        : at;
}

bool watch_is_asking(const struct watch *w, uint64_t now)
{
    return w->undecided && now < deadline_after(w->looked_at, LOOK_EVERY);
}

uint64_t watch_deadline(const struct watch *w, bool in_use)
{
    uint64_t at = watch_asks_at(w, in_use);
    if (w->undecided)
        at = earlier(at, patience(w));
    for (unsigned i = 0; i < w->count; i++)
        at = earlier(at, server_deadline(&w->list[i]->server));
    return at;
}

static void submit(struct question *q, uint64_t now)
{
    reply_values_clear(&q->values);
    q->pending = true;
    server_submit(&q->request, &q->verb, NULL, now);
}

static void ask(struct sentinel *st, uint64_t now)
{
    submit(&st->questions[ASK_ADDRESS], now);
    submit(&st->questions[ASK_DETAILS], now);
    st->asked_at = now;
}

/* Another address of its host may lead to a Sentinel that is not asked yet. */
static void try_another(struct watch *w, struct sentinel *st, uint64_t now)
{
    size_t count = st->server.dial.found.count;
    if (!confirm_is_repeated(&w->confirm, st->index) || is_pending(st) ||
        st->server.to.nth == 0 || st->tried >= count)
        return;
    st->tried++;
    server_leave(&st->server, "another address leads to the same one", now);
    st->server.to.nth = st->server.to.nth % (unsigned)count + 1;
    w->confirm.views[st->index] = (struct sentinel_view){.id = ""};
}

static void look(struct watch *w, uint64_t now)
{
    for (unsigned i = 0; i < w->count; i++)
        try_another(w, w->list[i], now);
    w->looked_at = now;
    w->undecided = true;
    for (unsigned i = 0; i < w->count; i++)
        if (!is_pending(w->list[i]))
            ask(w->list[i], now);
}

bool watch_push(struct watch *w, bool in_use, uint64_t now)
{
    bool failed = false;
    if (watch_asks_at(w, in_use) <= now)
        look(w, now);
    for (unsigned i = 0; i < w->count; i++)
        failed |= server_push(&w->list[i]->server, now);
    return failed;
}

void watch_ready(struct source *source, short revents)
{
    list_entry(source, struct sentinel, source)->server.ready |= revents;
}

/* ------------------------------------------------------------ what they say */

/* The value behind that name in a list of names and values; NULL: none. */
static struct slice field(const struct reply_values *values, const char *name)
{
    for (size_t i = 0; i + 1 < values->count; i += 2)
        if (slice_equal(reply_values_at(values, i), slice_of(name)))
            return reply_values_at(values, i + 1);
    return (struct slice){NULL, 0};
}

/* A zero byte follows the text. */
static bool to_number(struct slice text, uint64_t *number)
{
    if (!text.data || text.len == 0 || text.len > 18 ||
        strspn(text.data, "0123456789") != text.len)
        return false;
    *number = strtoull(text.data, NULL, 10);
    return true;
}

static bool read_field(
    const struct reply_values *values, const char *name, uint64_t *number)
{
    return to_number(field(values, name), number);
}

static bool read_address(
    const struct reply_values *values, struct sentinel_view *v)
{
    struct slice host = reply_values_at(values, 0);
    struct slice digits = reply_values_at(values, 1);
    uint64_t port = 0;
    if (values->count != 2 || !host.data || !digits.data || host.len == 0 ||
        host.len >= sizeof(v->host) || memchr(host.data, '\0', host.len) ||
        !to_number(digits, &port) || port == 0 || port > 65535)
        return false;
    memcpy(v->host, host.data, host.len);
    v->host[host.len] = '\0';
    v->port = (uint16_t)port;
    return true;
}

/* Since when it has named that address: since it has reported to be a primary,
 * if that is what the Sentinel has been told about. */
static void read_since(
    const struct reply_values *values, struct sentinel_view *v)
{
    uint64_t port = 0, ms = 0;
    bool same = slice_equal(field(values, "ip"), slice_of(v->host)) &&
                read_field(values, "port", &port) && port == v->port &&
                slice_equal(field(values, "role-reported"), slice_of("master"));
    v->since = v->asked_at;
    if (same && read_field(values, "role-reported-time", &ms))
        v->since = deadline_before(v->asked_at, ms_to_ns(ms));
}

static void refuse(struct sentinel *st, enum fault fault)
{
    st->failed = true;
    st->fault = fault;
    text_clear(&st->why);
}

static void unknown_service(struct sentinel *st)
{
    const char *services = st->server.handshake.why;
    refuse(st, FAULT_SENTINELS);
    text_add(&st->why, "it knows no service '");
    text_add_foreign(
        &st->why, slice_of(st->watch->endpoint->sentinels->service));
    text_add(&st->why, "'; it monitors ");
    text_add_foreign(&st->why, slice_of(services[0] ? services : "none"));
}

/* All its questions are answered. */
static void take_view(struct watch *w, unsigned i)
{
    struct sentinel *st = w->list[i];
    struct sentinel_view *v = &w->confirm.views[i];
    const struct reply_values *address = &st->questions[ASK_ADDRESS].values;
    const struct reply_values *details = &st->questions[ASK_DETAILS].values;
    struct sentinel_view seen = {
        .asked_at = st->questions[ASK_ADDRESS].request.sent_at};
    uint64_t others = 0;
    memcpy(seen.id, st->server.facts.run_id, sizeof(seen.id));
    if (!read_address(address, &seen) ||
        !read_field(details, "num-other-sentinels", &others)) {
        refuse(st, FAULT_NOT_REDIS);
        text_add(&st->why, "its answer to SENTINEL was not understood");
        return;
    }
    seen.others = others < 1000 ? (unsigned)others : 1000;
    read_since(details, &seen);
    st->failed = false;
    *v = seen;
}

static bool is_unknown_service(
    const struct sentinel *st, const struct outcome *outcome)
{
    const struct reply_values *address = &st->questions[ASK_ADDRESS].values;
    return outcome->kind == OUTCOME_FAULT
               ? slice_starts(outcome->text, "ERR No such master")
               : address->count > 0 && !reply_values_at(address, 0).data;
}

static bool is_asked(const struct watch *w, unsigned listed, unsigned nth)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->list[i]->listed == listed && w->list[i]->place == nth)
            return true;
    return false;
}

/* The host may have more addresses than are asked. */
static void add_addresses(
    struct watch *w, const struct sentinel *first, uint64_t now)
{
    size_t count = first->server.dial.found.count;
    for (unsigned nth = 2; nth <= count; nth++) {
        if (is_asked(w, first->listed, nth))
            continue;
        if (w->count == CONFIRM_SENTINELS || !add(w, first->listed, nth))
            return;
        if (w->undecided)
            ask(w->list[w->count - 1], now);
    }
}

static void take_answer(struct watch *w, struct sentinel *st,
    const struct request *r, const struct outcome *outcome)
{
    unsigned i = st->index;
    for (unsigned k = 0; k < QUESTIONS; k++)
        if (&st->questions[k].request == r)
            st->questions[k].pending = false;
    if (r == &st->questions[ASK_OTHERS].request)
        return; /* what it says goes into a message, if there is one */
    if (is_unknown_service(st, outcome)) {
        unknown_service(st);
        w->confirm.views[i].asked_at = 0;
    } else if (outcome->kind == OUTCOME_FAULT) {
        refuse(st, outcome->fault);
        text_add_foreign(&st->why, outcome->text);
        st->tried = 0; /* the host may have other addresses by now */
    } else if (!is_pending(st) && outcome->kind != OUTCOME_FAULT &&
               st->questions[ASK_ADDRESS].values.count > 0) {
        take_view(w, i);
    }
}

/* -------------------------------------------------------- what follows of it
 */

static bool is_present(const struct watch *w, const struct sentinel_view *named)
{
    const struct server_address *at = &w->endpoint->address;
    return at->host && at->port == named->port &&
           strcmp(at->host, named->host) == 0;
}

static void add_address(const struct sentinel_view *named, struct text *text)
{
    bool v6 = strchr(named->host, ':');
    text_add(text, v6 ? "[" : "");
    text_add_foreign(text, slice_of(named->host));
    text_addf(text, v6 ? "]:%u" : ":%u", (unsigned)named->port);
}

/* The primary is where they say. False: no memory. */
static bool move(
    struct watch *w, const struct sentinel_view *named, uint64_t now)
{
    struct server_address *at = &w->endpoint->address;
    char *host = strdup(named->host);
    struct text why;
    if (!host)
        return false;
    text_set(&why, "the Sentinels name another primary, ");
    add_address(named, &why);
    server_leave(&w->node->server, why.data, now);
    subscriber_leave(&w->node->subscriber, why.data, now);
    if (at->host && w->on_move)
        w->on_move(w->nodes->client, now);
    free(at->host);
    at->host = host;
    at->port = named->port;
    text_set(&at->name, w->endpoint->needs_tls ? "rediss://" : "redis://");
    add_address(named, &at->name);
    text_addf(&at->name, "/%u", (unsigned)w->endpoint->settings.db);
    return true;
}

/* A majority names a primary. False: that was asked too early, or there is no
 * memory. */
static bool take_primary(
    struct watch *w, const struct sentinel_view *named, uint64_t now)
{
    struct server *s = &w->node->server;
    struct eligibility *e = &w->node->voter.eligibility;
    bool present = is_present(w, named);
    if ((s->unlocated && named->asked_at < s->lost_at) ||
        !confirm_covers(named->asked_at, now))
        return false;
    if (!present && !move(w, named, now))
        return false;
    if (s->unlocated)
        server_located(s);
    e->confirmed_at =
        present ? later(e->confirmed_at, named->asked_at) : named->asked_at;
    w->since = named->since;
    return true;
}

/* Why the Sentinel names nobody now; NULL: it does. */
static const char *reason_of(const struct sentinel *st)
{
    if (st->failed)
        return st->why.data;
    return is_pending(st) ? "no answer" : NULL;
}

/* "; h1:26379, h2:26379: connection refused; h3:26379: no answer" */
static void add_failures(const struct watch *w, struct text *why)
{
    unsigned said = 0; /* by bits */
    for (unsigned i = 0; i < w->count; i++) {
        const char *reason = reason_of(w->list[i]);
        if (!reason || said & 1U << i)
            continue;
        for (unsigned j = i; j < w->count; j++) {
            const char *other = reason_of(w->list[j]);
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

/* The gravest of what keeps them from naming one. */
static enum fault worst(const struct watch *w)
{
    enum fault fault = FAULT_UNCONFIRMED;
    bool all_unreachable = true;
    for (unsigned i = 0; i < w->count; i++) {
        const struct sentinel *st = w->list[i];
        all_unreachable &= st->failed && st->fault == FAULT_UNREACHABLE;
        if (st->failed && fault_needs_repair(st->fault))
            fault = fault_worse(fault, st->fault);
    }
    return all_unreachable ? FAULT_UNREACHABLE : fault;
}

static unsigned most_named(const struct watch *w)
{
    const struct confirm *c = &w->confirm;
    unsigned most = 0;
    for (unsigned i = 0; i < c->count; i++) {
        const struct sentinel_view *v = &c->views[i];
        bool current = !w->list[i]->failed && !is_pending(w->list[i]);
        unsigned count =
            current && v->asked_at ? confirm_count(c, v->host, v->port, 0) : 0;
        most = count > most ? count : most;
    }
    return most;
}

/* Asks the one that knows the most for the addresses of the others, once. */
static bool ask_others(struct watch *w, uint64_t now)
{
    unsigned most = 0;
    for (unsigned i = 1; i < w->count; i++)
        if (w->confirm.views[i].others > w->confirm.views[most].others)
            most = i;
    if (w->informant)
        return false;
    w->informant = w->list[most];
    w->undecided = true;
    w->informant->asked_at = now;
    submit(&w->informant->questions[ASK_OTHERS], now);
    return true;
}

/* "; 10.0.0.7:26379 knows 10.0.0.8:26379, 10.0.0.9:26379" */
static void add_others(const struct watch *w, struct text *why)
{
    const struct reply_values *v = &w->informant->questions[ASK_OTHERS].values;
    const char *join = " knows ";
    for (size_t i = 0; i + 3 < v->count; i++) {
        if (!slice_equal(reply_values_at(v, i), slice_of("ip")) ||
            !slice_equal(reply_values_at(v, i + 2), slice_of("port")))
            continue;
        if (*join == ' ') {
            text_add(why, "; ");
            text_add(why, w->informant->server.to.address->name.data);
        }
        text_add(why, join);
        text_add_foreign(why, reply_values_at(v, i + 1));
        text_add(why, ":");
        text_add_foreign(why, reply_values_at(v, i + 3));
        join = ", ";
    }
}

/* How many can name a primary, if all of them answer. */
static unsigned most_that_can(const struct watch *w)
{
    unsigned answered = confirm_answered(&w->confirm);
    unsigned listed = w->endpoint->sentinels->count;
    return answered > listed ? answered : listed;
}

/* No majority names one. */
static void take_nobody(struct watch *w, uint64_t now)
{
    struct text why;
    unsigned needed = confirm_needed(&w->confirm);
    enum fault fault = worst(w);
    text_clear(&why);
    if (needed > most_that_can(w)) {
        if (ask_others(w, now))
            return; /* their answer comes first */
        fault = FAULT_SENTINELS;
        text_addf(&why,
            "%u Sentinels have to name the primary, and the URL has %u: list "
            "all of them",
            needed, most_that_can(w));
        add_others(w, &why);
    } else {
        text_addf(&why, "%u of %u Sentinels have to name one primary, and %u ",
            needed, most_that_can(w), most_named(w));
        text_add(&why, most_named(w) == 1 ? "does" : "do");
    }
    add_failures(w, &why);
    server_not_found(&w->node->server, fault, &why, now);
}

static void decide(struct watch *w, uint64_t now)
{
    struct sentinel_view named;
    bool agreed = confirm_primary(&w->confirm, &named);
    bool current = agreed && named.asked_at >= w->looked_at;
    if (agreed && take_primary(w, &named, now) && current)
        w->undecided = false;
    if (!w->undecided || now < patience(w))
        return;
    w->undecided = false;
    if (!current) /* else the connection was lost since they were asked */
        take_nobody(w, now);
}

void watch_turn(struct watch *w, uint64_t now)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct sentinel *st = w->list[i];
        struct completion c;
        while (server_next(&st->server, &c, now)) {
            take_answer(w, st, c.request, &c.outcome);
            if (st->place == 1)
                add_addresses(w, st, now);
            w->heard = true;
        }
    }
    if (w->heard || w->undecided)
        decide(w, now);
    w->heard = false;
}

/* ------------------------------------------------------------------- for
 * others
 */

int64_t watch_named_s(const struct watch *w, uint64_t now)
{
    return w->since ? (int64_t)(elapsed(w->since, now) / NS_PER_S) : 0;
}

void watch_count(const struct watch *w, unsigned *naming, unsigned *listed)
{
    const struct server_address *at = &w->endpoint->address;
    *listed = most_that_can(w);
    *naming =
        at->host ? confirm_count_current(&w->confirm, at->host, at->port) : 0;
}
