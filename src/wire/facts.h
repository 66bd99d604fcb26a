/* SPDX-License-Identifier: MIT */
/* What a server says about itself: the answers to INFO, to CLUSTER NODES, and
 * what else a handshake learns. */
#ifndef NXLOCK_WIRE_FACTS_H
#define NXLOCK_WIRE_FACTS_H

#include "base/slice.h"
#include "wire/reply.h"

/* What the server said about itself; zero or "" if it did not. Bytes other than
 * '!' to '~' are stored as '?'. */
struct facts {
    int64_t client_id; /* CLIENT ID, 5.0+ */
    int64_t uptime_s;  /* -1: unknown; 0 where it is negative */
    char run_id[41];   /* 2.4+ */
    char version[24];  /* redis_version, or valkey_version */
    char software[12]; /* "redis", "valkey", "keydb" */
    char role[16];     /* "master", "slave", "active-replica" (KeyDB) */
    char replid[41];   /* master_replid, 4.0+ */
    char replid2[41];  /* master_replid2; "" if there is none */
    int replicas;      /* that are connected */
    int64_t time_us;   /* its time of day, 6.2+; 0: unknown */
    /* By this client's clock: before INFO was sent, and after its answer. */
    uint64_t asked_at, answered_at;
    /* It has been a primary for so long at least; -1: unknown. Asked only where
     * that matters, see struct age_terms. */
    int64_t primary_s;
    bool marker_refused; /* the marker key may not be used */
    char mode[12];       /* "standalone", "cluster", "sentinel"; 2.6+ */
    bool cluster;        /* a node of a Redis Cluster */
    int slots;           /* how many the node serves; -1: unknown, no node */
    bool info_refused;
    bool no_login;   /* it demands a password that it has not been sent */
    bool no_scripts; /* SCRIPT LOAD is refused, and not just for now */
    bool asked_fsync;
    char appendfsync[12]; /* asked, and it said so: "always", "everysec" */
    char eviction[24];    /* maxmemory_policy: "noeviction", "volatile-lru" */
    enum { AOF_UNKNOWN, AOF_OFF, AOF_ON } aof; /* wrong while it is loading */
    bool uptime_was_negative; /* uptime is negative: the clock was set back
                                 since start */
    bool loading;
};

/* How far the server's time of day is ahead of this client's clock, in ns:
 * between these. Both 0: unknown. */
void facts_clock(const struct facts *f, int64_t *low_ns, int64_t *high_ns);

/* Takes the age of the oldest connection of a replica from CLIENT LIST TYPE
 * slave. A promotion ends all of them, so it happened before. */
void facts_read_replicas(struct facts *f, const struct reply *reply);

void facts_read_info(struct facts *f, const struct reply *reply);

/* Counts the slots of the node that answered CLUSTER NODES. */
void facts_read_slots(struct facts *f, const struct reply *reply);

/* Writes which primaries a Sentinel monitors, from its INFO, whose lines are
 * "master0:name=orders,status=ok,address=10.0.0.7:1,slaves=1":
 * "orders at 10.0.0.7:1, ..."; "": none. */
void facts_list_services(const struct reply *reply, char *out, size_t room);
/* Writes into why that it is a Sentinel, and which primaries it monitors,
 * because their address is what the user needs. */
void facts_name_sentinel(const struct reply *reply, char *why, size_t room);

/* These are shown to people, so control bytes and spaces become '?'. */
void facts_copy(char *out, size_t room, struct slice value);

#endif
