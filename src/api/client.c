/* SPDX-License-Identifier: MIT */
/*
 * The client as a handle. Keeps: nothing of it is touched in a fork()ed child
 * but memory and descriptors; it lives as long as its last lock.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/engine.h"
#include "api/lock.h"
#include "api/message.h"
#include "api/operation.h"
#include "api/options.h"
#include "base/clock.h"
#include "base/deadline.h"

/* How long the end of a client may take to pay what it owes. */
#define FREE_BUDGET_MS 500

bool client_enter(struct nxl_client *client, enum door door)
{
    if (client->door == DOOR_NONE)
        client->door = door;
    return client->door == door;
}

/* All there is to do in a fork()ed child: a thread that is not here may have
 * been changing the memory, so that is left alone. */
static void close_descriptors(struct nxl_client *client)
{
    for (unsigned i = 0; i < client->server_count; i++) {
        struct server *s = &client->servers[i];
        if (s->conn.fd >= 0)
            close(s->conn.fd);
        if (s->dial.fd >= 0)
            close(s->dial.fd);
        s->conn.fd = s->dial.fd = -1;
    }
    if (client->wake_fd >= 0)
        close(client->wake_fd);
    if (client->watch.fd >= 0)
        close(client->watch.fd);
    if (client->timer_fd >= 0)
        close(client->timer_fd);
    client->wake_fd = client->watch.fd = client->timer_fd = -1;
}

/* Of what has been built so far. */
static void destroy(struct nxl_client *client)
{
    for (unsigned i = 0; i < client->server_count; i++)
        server_free(&client->servers[i]);
    free(client->servers);
    client->server_count = 0;
    timers_free(&client->timers);
    free((char *)client->prefix.data);
    close_descriptors(client);
    entropy_free(client->entropy);
    free(client);
}

/* The structure of a program built for an older library may end before it,
 * and one that was never initialised has nothing in it to believe. */
#define GIVEN(o, member) \
    ((o) && (o)->size <= OPTIONS_SIZE_MAX && \
        (o)->size >= \
            offsetof(nxl_client_options, member) + sizeof (o)->member)

static void say(const nxl_client_options *o, const struct text *error)
{
    if (!GIVEN(o, errbuf_size) || !o->errbuf || !o->errbuf_size)
        return;
    size_t len = error->len < o->errbuf_size ? error->len : o->errbuf_size - 1;
    memcpy(o->errbuf, error->data, len);
    o->errbuf[len] = '\0';
}

/* Makes what can fail, in the order in which destroy() can undo it. */
static int build(struct nxl_client *client, struct endpoint *endpoint,
    const char *prefix, struct text *error)
{
    text_clear(error);
    client->server_count = 1;
    client->servers = calloc(1, sizeof *client->servers);
    if (!client->servers) {
        client->server_count = 0;
        endpoint_free(endpoint);
        text_add(error, "no memory for a client");
        return NXL_E_NOMEM;
    }
    const struct settings *set = &endpoint->settings;
    client->timeout_ns = ms_to_ns(set->timeout_ms);
    client->max_ttl_ms = (uint32_t)set->max_ttl_ms;
    client->drift_ppm = (uint32_t)set->drift_ppm;
    if (set->prefix)
        prefix = set->prefix;
    server_init(client->servers, endpoint, true, clock_now());
    char *copy = strdup(prefix ? prefix : "");
    if (!copy) {
        text_add(error, "no memory for a client");
        return NXL_E_NOMEM;
    }
    client->prefix = (struct slice){copy, strlen(copy)};
    client->entropy = entropy_new();
    if (!client->entropy ||
        !entropy_take(client->entropy, &client->salt, sizeof client->salt)) {
        text_add(error, "the system gave no random bytes or no page for them");
        return NXL_E_SYSTEM;
    }
    client->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    client->watch.fd = epoll_create1(EPOLL_CLOEXEC);
    if (client->wake_fd < 0 || client->watch.fd < 0 ||
        !watch_add(&client->watch, client->wake_fd, POLLIN, KEY_WAKE)) {
        text_add(error, "the system gave no descriptor (eventfd, epoll)");
        return NXL_E_SYSTEM;
    }
    server_watch(client->servers, &client->watch, 0);
    return NXL_OK;
}

static int make(nxl_client **out, const char *url,
    const nxl_client_options *options, struct text *error)
{
    struct endpoint endpoint = {0};
    if (!url)
        return message_invalid(error, "the URL is NULL");
    if (!options_client(options, &endpoint.settings, error))
        return NXL_E_INVALID;
    int rc = url_parse(&endpoint, url, error);
    if (rc != NXL_OK)
        return rc;
    struct nxl_client *client = calloc(1, sizeof *client);
    if (!client) {
        endpoint_free(&endpoint);
        text_clear(error);
        text_add(error, "no memory for a client");
        return NXL_E_NOMEM;
    }
    pthread_mutex_init(&client->mutex, NULL);
    client->refs = 1;
    client->wake_fd = client->watch.fd = client->timer_fd = -1;
    list_init(&client->locks);
    list_init(&client->events);
    list_init(&client->followers);
    if (GIVEN(options, warning_arg)) {
        client->warning = options->warning;
        client->warning_arg = options->warning_arg;
    }
    rc = build(client, &endpoint,
        GIVEN(options, prefix) ? options->prefix : NULL, error);
    if (rc == NXL_OK)
        *out = client;
    else
        destroy(client);
    return rc;
}

int nxl_client_new(
    nxl_client **client, const char *url, const nxl_client_options *options)
{
    if (!client)
        return NXL_E_INVALID;
    *client = NULL;
    struct text error;
    text_clear(&error);
    int rc = make(client, url, options, &error);
    if (rc != NXL_OK)
        say(options, &error);
    return rc;
}

static bool owes(const struct nxl_client *client)
{
    for (unsigned i = 0; i < client->server_count; i++)
        if (server_owes(&client->servers[i]))
            return true;
    return false;
}

/* Lets replies and clean-ups come in before the connection is closed: a close
 * with unread replies resets it, and what was sent last could be lost. */
static void settle(struct nxl_client *client)
{
    uint64_t now = clock_now();
    uint64_t end = deadline_after(
        now, earlier(client->timeout_ns, ms_to_ns(FREE_BUDGET_MS)));
    engine_push(client, now);
    while (owes(client) && now < end) {
        struct engine_events events;
        engine_wait(
            client, &events, earlier(end, engine_deadline(client)), now);
        now = clock_now();
        engine_process(client, &events, now);
    }
}

void client_unref(struct nxl_client *client)
{
    size_t left = --client->refs;
    int cancel_state = client->cancel_state;
    pthread_mutex_unlock(&client->mutex);
    if (!left) {
        pthread_mutex_destroy(&client->mutex);
        destroy(client);
    }
    pthread_setcancelstate(cancel_state, NULL);
}

void nxl_client_free(nxl_client *client)
{
    if (!client)
        return;
    if (client_forked(client)) {
        close_descriptors(client);
        return;
    }
    client_lock(client);
    uint64_t now = clock_now();
    for (struct list *node = client->locks.next; node != &client->locks;
         node = node->next) {
        struct nxl_lock *lock = list_entry(node, struct nxl_lock, node);
        operation_discard(&lock->operation, now);
        if (lock->holding)
            lock_let_go(lock, now);
    }
    settle(client);
    for (unsigned i = 0; i < client->server_count; i++) {
        dial_free(&client->servers[i].dial);
        conn_close(&client->servers[i].conn);
        client->servers[i].state = SERVER_DOWN;
    }
    client->closed = true;
    engine_wake(client); /* a thread that is still in a call comes out */
    client_unref(client);
}

const char *nxl_client_errmsg(const nxl_client *client)
{
    /* A copy of this thread's own: others may write the next message. */
    static _Thread_local struct text copy;
    if (!client)
        return "the client is NULL";
    if (client_forked(client))
        return MESSAGE_FORKED;
    pthread_mutex_t *mutex = (pthread_mutex_t *)&client->mutex;
    pthread_mutex_lock(mutex);
    copy = client->message;
    pthread_mutex_unlock(mutex);
    return copy.data;
}

size_t nxl_client_describe(nxl_client *client, char *text, size_t size)
{
    struct text t;
    text_clear(&t);
    if (client && !client_forked(client)) {
        pthread_mutex_lock(&client->mutex);
        const struct server *s = &client->servers[0];
        static const char *const states[] = {
            "not connected", "connecting", "connecting", "connected"};
        text_add(&t, s->endpoint.name.data);
        text_addf(&t, ", %s", states[s->state]);
        if (s->facts.software[0])
            text_addf(&t, ", %s %s", s->facts.software, s->facts.version);
        if (s->facts.role[0])
            text_addf(&t, ", role %s", s->facts.role);
        if (s->state == SERVER_UP) {
            text_add(&t, ", rung ");
            ladder_describe(&s->ladder, &t);
        }
        if (s->state == SERVER_DOWN && s->why.len)
            text_addf(&t, ": %s", s->why.data);
        pthread_mutex_unlock(&client->mutex);
    }
    if (size) {
        size_t len = t.len < size ? t.len : size - 1;
        memcpy(text, t.data, len);
        text[len] = '\0';
    }
    return t.len;
}

const nxl_url_param *nxl_url_params(size_t *count)
{
    if (count)
        *count = url_param_count;
    return (const nxl_url_param *)url_params;
}
