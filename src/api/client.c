/* SPDX-License-Identifier: MIT */
/*
 * The client handle: creates and frees it, and returns its messages.
 *
 * Invariant: in a fork()ed child only its descriptors are closed. A client
 * lives as long as its last lock.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/endpoints.h"
#include "api/options.h"
#include "api/private.h"
#include "api/query.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "client/poller_thread.h"
#include "client/renewal_thread.h"
#include "client/loop.h"
#include "client/voters.h"
#include "client/sentinel_watch.h"
#include "lock/drive.h"
#include "lock/held_here.h"
#include "lock/line_messages.h"
#include "lock/errmsg.h"
#include "wire/marker.h"

/* How long freeing a client may wait for its cleanups. */
#define FREE_BUDGET_MS 500

/* Is the member in the caller's structure? That of a program built for an older
 * library may end before it, and one that was never initialised holds
 * garbage. */
#define GIVEN(o, member)                                                       \
    ((o) && (o)->size <= OPTIONS_SIZE_MAX &&                                   \
        (o)->size >= offsetof(nxl_client_options, member) + sizeof(o->member))

static void fill_errbuf(const nxl_client_options *o, const struct text *error)
{
    if (!GIVEN(o, errbuf_size) || !o->errbuf || !o->errbuf_size)
        return;
    text_copy(error, o->errbuf, o->errbuf_size);
}

_Static_assert(SECRETS_MAX > 2 * MAX_SERVERS &&
                   SECRETS_MAX > 2 * (2 + SENTINEL_WATCH_SERVERS),
    "of each server, or of the two connections to the only one and of each of "
    "its Sentinels, the password and the one before it, and one that a "
    "callback has just written");

/* Takes the endpoints over. */
static bool make_nodes(struct nxl_client *client, struct endpoints *e)
{
    const struct settings *set = &e->at[0].settings;
    client->guards_restarts = e->guards_restarts;
    client->guards_failover = e->guards_failover;
    client->copies_decided = e->copies_decided;
    /* durable=1: whether it may grant is found out before it does. */
    bool sole = e->count == 1 && !client->guards_restarts && !set->durable;
    client->server_count = e->count;
    if (!nodes_make(&client->nodes, e->at, e->count, sole, clock_now()))
        return false;
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next)
        n->server.dialect.several_servers = e->count > 1;
    return true;
}

/* The only server is where the Sentinels of its URL say. False: no memory. */
static bool watch_sentinels(struct nxl_client *client)
{
    struct endpoint *e = client->nodes.endpoints;
    struct node *n = nodes_first(&client->nodes);
    if (!e->sentinels)
        return true;
    server_use_sentinels(&n->server,
        client->guards_failover ? &n->voter.eligibility.confirmed_at : NULL);
    client->sentinel_watch =
        sentinel_watch_new(&client->nodes, e, lock_renew_all);
    return client->sentinel_watch;
}

/* Has each server's age as a primary found out. False: no memory. */
static bool guard_nodes(struct nxl_client *client)
{
    size_t len = client->prefix.len + sizeof(MARKER_NAME) - 1;
    char *marker = malloc(len + 1);
    if (!marker)
        return false;
    memcpy(marker, client->prefix.data, client->prefix.len);
    memcpy(marker + client->prefix.len, MARKER_NAME, sizeof(MARKER_NAME));
    client->marker = (struct slice){marker, len};
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        struct eligibility_terms terms = voters_terms(n);
        server_guard_failover(
            &n->server, client->marker, eligibility_needed_s(&terms));
    }
    return true;
}

/* Makes everything that can fail, in an order that client_destroy() can
 * undo. */
static int build_parts(struct nxl_client *client, struct endpoints *endpoints,
    const char *prefix, struct text *error)
{
    text_clear(error);
    client->nodes.entropy = client->entropy = entropy_new();
    if (!make_nodes(client, endpoints) || !watch_sentinels(client)) {
        text_add(error, "out of memory: cannot create the client");
        return NXL_E_NOMEM;
    }
    const struct settings *set =
        nodes_first(&client->nodes)->server.to.settings;
    client->timeout_ns = ms_to_ns(set->timeout_ms);
    client->max_ttl_ms = (uint32_t)set->max_ttl_ms;
    client->drift_ppm = (uint32_t)set->drift_ppm;
    if (set->prefix)
        prefix = set->prefix;
    char *copy = strdup(prefix ? prefix : "");
    if (!copy) {
        text_add(error, "out of memory: cannot create the client");
        return NXL_E_NOMEM;
    }
    client->prefix = (struct slice){copy, strlen(copy)};
    if (client->guards_failover && !guard_nodes(client)) {
        text_add(error, "out of memory: cannot create the client");
        return NXL_E_NOMEM;
    }
    if (!client->entropy ||
        !entropy_take(client->entropy, &client->salt, sizeof(client->salt))) {
        text_add(error, "cannot get random bytes, or memory for them, from "
                        "the system");
        return NXL_E_SYSTEM;
    }
    client->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    client->poller.fd = epoll_create1(EPOLL_CLOEXEC);
    if (client->wake_fd < 0 || client->poller.fd < 0 ||
        !poller_add(&client->poller, client->wake_fd, POLLIN, &client->wake)) {
        text_add(error, "cannot create an eventfd or epoll descriptor: out "
                        "of file descriptors?");
        return NXL_E_SYSTEM;
    }
    line_messages_init(client);
    return NXL_OK;
}

/* Takes the endpoints over. */
static int make_client(nxl_client **out, struct endpoints *endpoints,
    const nxl_client_options *options, struct text *error)
{
    struct nxl_client *client = calloc(1, sizeof(*client));
    if (!client) {
        endpoints_free(endpoints);
        text_set(error, "out of memory: cannot create the client");
        return NXL_E_NOMEM;
    }
    pthread_mutex_init(&client->mutex, NULL);
    client->refs = 1;
    client->wake_fd = client->poller.fd = client->timer_fd = -1;
    client->loss_fd = client->ready_fd = -1;
    client->poller.members = &client->members;
    client->wake.kind = SOURCE_WAKE;
    client->timer.kind = SOURCE_TIMER;
    alarm_init(&client->alarm);
    client->interrupt = lock_interrupt_all;
    nodes_init(&client->nodes, client, &client->poller);
    list_init(&client->losses);
    list_init(&client->locks);
    list_init(&client->queries);
    list_init(&client->events);
    list_init(&client->sleepers);
    index_init(&client->joined);
    if (GIVEN(options, warning_arg)) {
        client->warning = options->warning;
        client->warning_arg = options->warning_arg;
    }
    if (GIVEN(options, tracer_arg)) {
        client->tracer = options->tracer;
        client->tracer_arg = options->tracer_arg;
    }
    int rc = build_parts(client, endpoints,
        GIVEN(options, prefix) ? options->prefix : NULL, error);
    if (rc == NXL_OK)
        *out = client;
    else
        client_destroy(client);
    return rc;
}

/* From the array urls, or if that is NULL from one string with a list. */
static int open_client(nxl_client **client, const char *list,
    const char *const *urls, size_t count, const nxl_client_options *options)
{
    struct endpoints endpoints;
    struct settings settings;
    struct text error;
    int rc = NXL_E_INVALID;
    text_clear(&error);
    if (!client)
        return rc;
    *client = NULL;
    if (options_client(options, &settings, &error))
        rc = urls ? endpoints_parse(&endpoints, urls, count, &settings, &error)
                  : endpoints_split(&endpoints, list, &settings, &error);
    if (rc == NXL_OK)
        rc = make_client(client, &endpoints, options, &error);
    if (rc != NXL_OK)
        fill_errbuf(options, &error);
    return rc;
}

int nxl_client_new(
    nxl_client **client, const char *url, const nxl_client_options *options)
{
    return open_client(client, url, NULL, 0, options);
}

int nxl_client_new_urls(nxl_client **client, const char *const *urls,
    size_t count, const nxl_client_options *options)
{
    /* Without an array there is no URL either. */
    return open_client(client, NULL, urls, count, options);
}

int client_new_replica(nxl_client **client, const char *url, const char *host,
    uint16_t port, const nxl_client_options *options)
{
    struct endpoints endpoints;
    struct settings settings;
    struct text error;
    int rc = NXL_E_INVALID;
    text_clear(&error);
    *client = NULL;
    if (options_client(options, &settings, &error))
        rc = endpoints_parse(&endpoints, &url, 1, &settings, &error);
    if (rc == NXL_OK)
        rc = endpoints_lead_to(&endpoints, host, port, &error);
    if (rc == NXL_OK)
        rc = make_client(client, &endpoints, options, &error);
    if (rc != NXL_OK)
        fill_errbuf(options, &error);
    return rc;
}

static bool has_unfinished(const struct nxl_client *client, uint64_t end)
{
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next)
        if (server_unfinished(&n->server, end))
            return true;
    return false;
}

/* Waits for replies and cleanups before the connections are closed: closing one
 * with unread replies resets it, and what was sent last could be lost. */
static void finish_cleanups(struct nxl_client *client)
{
    uint64_t now = clock_now();
    uint64_t end = deadline_after(
        now, earlier(client->timeout_ns, ms_to_ns(FREE_BUDGET_MS)));
    loop_push(client, now);
    while (has_unfinished(client, end) && now < end) {
        struct loop_events events;
        loop_epoll(client->poller.fd, &events,
            earlier(end, loop_deadline(client)), now);
        now = clock_now();
        loop_process(client, &events, now);
    }
}

/* The program may free the argument of its callback when the client is
 * free. */
static void await_callbacks(struct job *const *jobs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!jobs[i])
            continue;
        job_wait(jobs[i]);
        job_drop(jobs[i]);
    }
}

void nxl_client_free(nxl_client *client)
{
    if (!client)
        return;
    if (client_forked(client)) {
        client_close_descriptors(client);
        return;
    }
    struct job *callbacks[2 * MAX_SERVERS + SENTINEL_WATCH_SERVERS] = {NULL};
    unsigned count = 0;
    client_lock(client);
    /* renewal_thread_stop() releases the mutex, and another thread may
     * overwrite cancel_state. */
    int cancel_state = client->cancel_state;
    renewal_thread_stop(client);
    client->cancel_state = cancel_state;
    if (client->has_poller_thread)
        (void)poller_thread_take_over(
            client, NULL); /* only this thread reads from now */
    uint64_t now = clock_now();
    for (struct list *node = client->locks.next; node != &client->locks;
         node = node->next) {
        struct nxl_lock *lock = list_entry(node, struct nxl_lock, node);
        lock_end(lock, now);
    }
    query_cancel_all(client, now);
    finish_cleanups(client);
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        callbacks[count++] = server_stop(&n->server);
        callbacks[count++] = subscriber_stop(&n->subscriber);
    }
    if (client->sentinel_watch)
        count += sentinel_watch_stop(client->sentinel_watch, &callbacks[count]);
    client->closed = true;
    loop_wake(client); /* a thread that is still in a call returns */
    client_unref(client);
    int unused;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    await_callbacks(callbacks, count);
    pthread_setcancelstate(cancel_state, &unused);
}

const char *nxl_client_errmsg(const nxl_client *client)
{
    /* One copy for each thread: another thread may write the next message. */
    static _Thread_local struct text copy;
    if (!client)
        return "the client is NULL";
    if (client_forked(client))
        return ERRMSG_FORKED;
    pthread_mutex_t *mutex = (pthread_mutex_t *)&client->mutex;
    pthread_mutex_lock(mutex);
    copy = client->errmsg;
    pthread_mutex_unlock(mutex);
    return copy.data;
}

const char *nxl_client_prefix(const nxl_client *client)
{
    return client ? client->prefix.data : "";
}

int64_t nxl_client_max_ttl_ms(const nxl_client *client)
{
    return client ? client->max_ttl_ms : 0;
}

size_t nxl_client_holds(nxl_client *client, const char *name, size_t length)
{
    if (!client || !name || client_forked(client))
        return 0;
    client_lock(client);
    uint64_t now = clock_now();
    struct slice its = {name, length};
    size_t handles = held_here(client, its, now).handles;
    client_unlock(client);
    return handles;
}

size_t nxl_client_servers(const nxl_client *client)
{
    return client ? client->server_count : 0;
}

const char *client_shown(
    const nxl_client *client, const char *text, size_t *length)
{
    bool omitted = true;
    if (!client_forked(client)) {
        /* Another connection may just replace a password. */
        pthread_mutex_t *mutex = (pthread_mutex_t *)&client->mutex;
        pthread_mutex_lock(mutex);
        omitted = secrets_occur(
            &client->nodes.secrets, (struct slice){text, *length});
        pthread_mutex_unlock(mutex);
    }
    if (!omitted)
        return text;
    *length = strlen(REDACTED_SECRET);
    return REDACTED_SECRET;
}
