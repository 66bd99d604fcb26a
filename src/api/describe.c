/* SPDX-License-Identifier: MIT */
/* Describes servers for people, a line each, and how an operation failed at one
 * of them.
 *
 * Invariant: no secret is shown. */
#include "api/handle.h"
#include "api/message.h"
#include "api/private.h"
#include "api/waiting.h"
#include "api/warning.h"
#include "base/clock.h"
#include "client/voters.h"
#include "wire/strategies.h"

/* Collects the lines, as far as there is room, and counts what was wanted. */
struct sink {
    char *text;
    size_t size, wanted;
};

static void put(struct sink *sink, const char *words, size_t len)
{
    if (sink->wanted < sink->size) {
        size_t room = sink->size - sink->wanted - 1;
        size_t part = len < room ? len : room;
        memcpy(sink->text + sink->wanted, words, part);
        sink->text[sink->wanted + part] = '\0';
    }
    sink->wanted += len;
}

/* Adds a word that the server says about itself. Its usual words are shown even
 * if one of them is the password: hiding it would reveal it. */
static void add_fact(
    struct text *t, const struct nxl_client *client, const char *fact)
{
    static const char *const usual[] = {
        "redis", "valkey", "keydb", "master", "slave"};
    bool plain = fact[strspn(fact, "0123456789.")] == '\0';
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        plain = plain || strcmp(fact, usual[i]) == 0;
    if (plain)
        text_add(t, fact);
    else
        redact_add(t, slice_of(fact), FOREIGN_MAX, &client->secrets);
}

static bool has_worked(const struct server *s, unsigned verbs)
{
    return (s->dialect.worked & verbs) != 0;
}

/* How the server is used for locks: only what it has shown on this connection,
 * and not what would be tried first. */
static void add_use(
    struct text *t, const struct nxl_client *client, const struct server *s)
{
    struct text words;
    if (has_worked(s, 1U << VERB_ACQUIRE | 1U << VERB_BEGIN)) {
        text_add(t, ", lock commands ");
        strategies_describe(&s->dialect, t);
    }
    text_clear(&words);
    if (!waiting_describe(client, &words) || has_worked(s, 1U << VERB_JOIN))
        text_addf(t, ", waits %s", words.data);
}

static void line_of(
    const struct nxl_client *client, unsigned server, struct text *t)
{
    static const char *const states[] = {
        "not connected", "connecting", "connecting", "connected"};
    const struct server *s = &client->servers[server];
    struct text words;
    text_set(t, s->endpoint.name.data);
    text_addf(t, ", %s", states[s->state]);
    if (s->state == SERVER_UP && s->endpoint.tls)
        text_addf(t, " by %s", transport_facts(&s->conn.transport).version);
    if (s->facts.software[0]) {
        text_add(t, ", ");
        add_fact(t, client, s->facts.software);
        text_add(t, " ");
        add_fact(t, client, s->facts.version);
    }
    if (s->facts.role[0]) {
        text_add(t, ", role ");
        add_fact(t, client, s->facts.role);
    }
    if (s->facts.cluster)
        text_add(t, ", Redis Cluster node");
    if (s->state == SERVER_UP)
        add_use(t, client, s);
    text_clear(&words);
    voters_words(client, server, clock_now(), &words);
    if (words.len)
        text_addf(t, "; no vote: %s", words.data);
    text_clear(&words);
    warning_of_records(s, &words);
    if (words.len)
        text_addf(t, "; records: %s", words.data);
    if (s->state == SERVER_DOWN && s->why.len)
        text_addf(t, "; last: %s", s->why.data);
}

/* The lines of servers from ... end - 1. */
static size_t describe(
    nxl_client *client, size_t from, size_t end, char *text, size_t size)
{
    struct sink sink = {text, size, 0};
    struct text line;
    put(&sink, "", 0);
    if (!client || client_forked(client))
        return 0;
    pthread_mutex_lock(&client->mutex);
    for (size_t i = from; i < end && i < client->server_count; i++) {
        if (i > from)
            put(&sink, "\n", 1);
        line_of(client, (unsigned)i, &line);
        put(&sink, line.data, line.len);
    }
    pthread_mutex_unlock(&client->mutex);
    return sink.wanted;
}

size_t nxl_client_describe(nxl_client *client, char *text, size_t size)
{
    return describe(client, 0, MAX_SERVERS, text, size);
}

size_t nxl_client_describe_server(
    nxl_client *client, size_t server, char *text, size_t size)
{
    return describe(client, server, server + 1, text, size);
}

const char *nxl_lock_errmsg_at(const nxl_lock *lock, size_t server)
{
    static _Thread_local struct text copy;
    text_clear(&copy);
    if (!lock)
        return "the lock is NULL";
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return MESSAGE_FORKED;
    pthread_mutex_lock(&client->mutex);
    if (server < client->server_count) {
        if (client->server_count > 1)
            message_at(&lock->operation, (unsigned)server, &copy);
        else
            text_add(&copy, operation_words(&lock->operation));
    }
    pthread_mutex_unlock(&client->mutex);
    return copy.data;
}

const char *client_redact(const nxl_client *client, const char *text,
    size_t length, char *out, size_t size)
{
    struct text t;
    if (!out || size == 0)
        return "";
    text_clear(&t);
    if (client && client_forked(client)) {
        text_add(&t, MESSAGE_FORKED);
    } else if (client && text) {
        /* Another connection may just replace a password. */
        pthread_mutex_t *mutex = (pthread_mutex_t *)&client->mutex;
        pthread_mutex_lock(mutex);
        redact_add(
            &t, (struct slice){text, length}, FOREIGN_MAX, &client->secrets);
        pthread_mutex_unlock(mutex);
    }
    text_copy(&t, out, size);
    return out;
}

size_t nxl_client_servers(const nxl_client *client)
{
    return client ? client->server_count : 0;
}
