/* SPDX-License-Identifier: MIT */
/*
 * What a new connection says first, in one flight: AUTH, SELECT, CLIENT ID,
 * INFO, SCRIPT LOAD. A refused AUTH or SELECT ends the connection: a lock
 * command after it would run as somebody else or in db 0. INFO's answer, which
 * is on its way already, is still read then: a Sentinel refuses both, and the
 * caller needs to hear that it is one. The other three may be refused; then
 * less is known and scripts travel whole.
 *
 * A proxy that knows only commands on keys (twemproxy) closes the connection
 * instead. For it there is a brief handshake with PING in place of these three.
 * While it is not known that the peer is such a proxy, CLIENT ID follows PING's
 * answer as a probe: only a proxy closes the connection then. It cannot be in
 * the same flight, because such a proxy drops the replies before it closes.
 */
#ifndef NXLOCK_WIRE_HANDSHAKE_H
#define NXLOCK_WIRE_HANDSHAKE_H

#include "base/buf.h"
#include "base/fault.h"
#include "base/slice.h"
#include "wire/reply.h"

struct credentials {
    struct slice user;     /* empty: none */
    struct slice password; /* data NULL: no AUTH is sent */
    unsigned db;           /* 0: no SELECT is sent */
    bool needs_info; /* a server that cannot answer INFO now is asked later */
    bool brief;      /* PING in place of CLIENT ID, INFO and SCRIPT LOAD */
    bool probe;      /* brief: CLIENT ID follows PING's answer */
};

/* What the server told of itself; zero or "" when it did not. Of its words
 * only '!' to '~' are kept, anything else is a '?'. */
struct facts {
    int64_t client_id; /* CLIENT ID, 5.0+ */
    int64_t uptime_s;  /* -1: unknown; 0 where it is negative */
    char run_id[41];   /* 2.4+ */
    char version[24];  /* redis_version, or valkey_version */
    char software[12]; /* "redis", "valkey" */
    char role[16];     /* "master", "slave", "active-replica" (KeyDB) */
    char mode[12];     /* "standalone", "cluster", "sentinel"; 2.6+ */
    bool info_refused;
    bool no_scripts; /* SCRIPT LOAD is refused, not only at present */
    bool no_aof;     /* aof_enabled:0 */
    bool set_back; /* its uptime is negative: its clock was, since it started */
    bool loading;
};

struct handshake {
    const struct credentials *who;
    unsigned char step;
    struct facts facts;
    enum { PROBE_UNSENT, PROBE_SENT, PROBE_ANSWERED } probe;
    enum fault refused; /* AUTH or SELECT was, and INFO is still to come */
    /* Once one is refused, or the handshake has failed: the server's words or
     * ours; "" when they are those of the last reply. */
    char why[160];
};

enum handshake_next {
    HANDSHAKE_WAIT,
    HANDSHAKE_PROBE, /* call handshake_probe() next */
    HANDSHAKE_DONE,
    HANDSHAKE_FULL, /* the probe was answered: no proxy, make a full one */
    HANDSHAKE_FAILED
};

/* Appends the whole flight. Returns its number of replies, 0: no memory. */
unsigned handshake_begin(
    struct handshake *h, const struct credentials *who, struct buf *out);

/* FAILED: *fault is set; h->why has the words, or if it is empty the reply. */
enum handshake_next handshake_reply(
    struct handshake *h, const struct reply *reply, enum fault *fault);

/* Appends the probe, which has one reply. false: no memory. */
bool handshake_probe(struct handshake *h, struct buf *out);

/* What a server says before it hangs up, whatever was asked, and be it nothing
 * yet: handshake_reply() fails with it. */
bool handshake_is_farewell(const struct reply *reply);

/* The connection has ended and nothing was answered but AUTH and SELECT: it may
 * be a proxy that takes a brief handshake. */
bool handshake_unanswered(const struct handshake *h);

/* True when lock commands may follow in the same flight: no credentials and
 * db 0, so that there is nothing whose refusal would change what they mean. */
bool handshake_is_plain(const struct credentials *who);

#endif
