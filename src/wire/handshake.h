/* SPDX-License-Identifier: MIT */
/*
 * What a new connection says first, in one flight: AUTH, SELECT, CLIENT ID,
 * INFO, SCRIPT LOAD. A refused AUTH or SELECT ends the connection: a lock
 * command after it would run as somebody else or in db 0. The other three may
 * be refused; then less is known and scripts travel whole.
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
};

/* What the server told of itself; zero or "" when it did not. Of its words
 * only '!' to '~' are kept, anything else is a '?'. */
struct facts {
    int64_t client_id;      /* CLIENT ID, 5.0+ */
    int64_t uptime_s;       /* -1: unknown; 0 where it is negative */
    char run_id[41];        /* 2.4+ */
    char version[24];       /* redis_version, or valkey_version */
    char software[12];      /* "redis", "valkey" */
    char role[12];          /* "master", "slave" */
    char eviction[24];      /* maxmemory_policy */
    bool info_refused;
    bool no_scripts; /* SCRIPT LOAD is refused, not only at present */
    bool no_aof; /* aof_enabled:0 */
    bool set_back; /* its uptime is negative: its clock was, since it started */
    bool loading;
};

struct handshake {
    const struct credentials *who;
    unsigned char step;
    struct facts facts;
};

enum handshake_next { HANDSHAKE_WAIT, HANDSHAKE_DONE, HANDSHAKE_FAILED };

/* Appends the whole flight. Returns its number of replies, 0: no memory. */
unsigned handshake_begin(
    struct handshake *h, const struct credentials *who, struct buf *out);

/* FAILED: *fault is set; the reply's bytes are the server's words. */
enum handshake_next handshake_reply(
    struct handshake *h, const struct reply *reply, enum fault *fault);

/* What a server says before it hangs up, whatever was asked, and be it nothing
 * yet: handshake_reply() fails with it. */
bool handshake_is_farewell(const struct reply *reply);

/* True when lock commands may follow in the same flight: no credentials and
 * db 0, so that there is nothing whose refusal would change what they mean. */
bool handshake_is_plain(const struct credentials *who);

#endif
