/* SPDX-License-Identifier: MIT */
/*
 * The state of one server: how it begins and ends, and requests that have
 * failed.
 */
#include "net/state.h"

#include "base/deadline.h"
#include "model/guard.h"
#include "net/tls/tls.h"

#define RECONNECT_FIRST (10 * NS_PER_MS)
#define RECONNECT_MAX (500 * NS_PER_MS)
/* So often is a host name looked up in the time for which a server that was
 * promoted grants no lock: who renews in time comes to that server, and learns
 * there that a lock is gone, before another can get it. */
#define CHECKS_IN_NEEDED 3

void server_init(
    struct server *s, const struct target *to, bool sole, uint64_t seed)
{
    *s = (struct server){.to = *to};
    const struct settings *set = to->settings;
    s->handshake_terms.db = (unsigned)set->db;
    login_init(&s->login, &set->login, to->server);
    s->dialect.ttl_in_values = set->scheme == LOCK_SCHEME_TIMESTAMP;
    s->dialect.interop = set->interop != 0;
    s->dialect.max_ttl_ms = (uint32_t)set->max_ttl_ms;
    s->may_send_early = sole && handshake_is_minimal(&s->handshake_terms) &&
                        !login_is_needed(&s->login);
    s->handshake_terms.needs_info = !sole;
    s->conn.transport = TRANSPORT_CLOSED;
    s->dial.kind = to->tls ? &transport_tls : &transport_plain;
    s->dial.fd = -1;
    s->connect_by = NEVER;
    name_check_init(&s->name_check, 0);
    replica_wait_init(&s->replica_wait);
    s->replica_wait.wanted = (unsigned)set->wait_replicas;
    s->replica_wait.aof = set->wait_aof != 0;
    s->replica_wait.in_use = s->replica_wait.wanted > 0 || s->replica_wait.aof;
    s->replica_wait.ms = (uint32_t)set->wait_ms;
    /* Behind a script that the server does not know yet there are two WAITs.
     * Servers that know WAITAOF answer the first of them at once. */
    s->replica_wait.most_ms =
        (uint32_t)(s->replica_wait.aof ? set->timeout_ms * 3 / 4
                                       : set->timeout_ms / 3);
    list_init(&s->queued);
    list_init(&s->failed);
    list_init(&s->cleaners);
    list_init(&s->idle_cleaners);
    /* At most half a timeout, so that each call tries to connect, however long
     * the server was down. */
    backoff_init(&s->reconnect, RECONNECT_FIRST,
        earlier(RECONNECT_MAX, ms_to_ns(set->timeout_ms) / 2), seed);
}

void server_share_secrets(struct server *s, struct secrets *secrets)
{
    secrets_add(secrets, &s->login.password);
    secrets_add(secrets, &s->login.former);
    s->secrets = secrets;
}

void server_guard_failover(
    struct server *s, struct slice marker, uint64_t needed_s)
{
    s->age = (struct age_terms){marker, (int64_t)needed_s, &s->facts,
        !s->uses_sentinels || !guarded(GUARD_NAMED)};
    s->handshake_terms.age = &s->age;
    s->replica_wait.most_ms =
        (uint32_t)earlier(s->replica_wait.most_ms, GUARDED_WAIT_MS);
    if (!s->to.address->path && !s->uses_sentinels)
        name_check_init(&s->name_check, needed_s * NS_PER_S / CHECKS_IN_NEEDED);
}

void server_use_sentinels(struct server *s, const uint64_t *confirmed_at)
{
    s->uses_sentinels = s->unlocated = true;
    s->confirmed_at = confirmed_at;
}

struct server_info server_info_of(const struct server *s)
{
    struct server_info info = {
        .run_id = s->facts.run_id,
        .role = s->facts.role,
        .replid = s->facts.replid,
        .replid2 = s->facts.replid2,
        .primary_s = s->facts.primary_s,
        .cluster = s->facts.cluster,
        .slots = s->facts.slots,
        .uptime_s = s->facts.uptime_s,
        .refused = s->facts.info_refused,
        .no_aof = s->facts.aof == AOF_OFF,
        .uptime_was_negative = s->facts.uptime_was_negative,
    };
    facts_clock(&s->facts, &info.clock_low_ns, &info.clock_high_ns);
    return info;
}

void server_set_poller(
    struct server *s, const struct poller *poller, struct source *source)
{
    s->conn.poller = s->dial.poller = s->login.poller = poller;
    s->conn.source = s->dial.source = s->login.source = source;
}

void server_close_in_child(struct server *s)
{
    name_check_stop(&s->name_check);
    transport_close_in_child(&s->conn.transport);
    dial_close_in_child(&s->dial);
    login_close_in_child(&s->login);
}

struct job *server_stop(struct server *s)
{
    struct job *callback = login_detach(&s->login);
    name_check_stop(&s->name_check);
    dial_free(&s->dial);
    conn_close(&s->conn);
    s->state = SERVER_DOWN;
    return callback;
}

void server_free(struct server *s)
{
    name_check_stop(&s->name_check);
    dial_free(&s->dial);
    conn_free(&s->conn);
    login_free(&s->login);
    cleaners_free(&s->cleaners);
}

void request_fail(
    struct server *s, struct request *r, enum fault fault, bool unsure)
{
    r->state = REQUEST_FAILED;
    r->fault = fault;
    r->unsure = r->answer_lost = unsure;
    r->too_late = r->applied = false;
    list_append(&s->failed, &r->node);
}

void request_fail_late(struct server *s, struct request *r)
{
    request_fail(s, r, FAULT_TIMEOUT, false);
    r->too_late = true;
}
