/* SPDX-License-Identifier: MIT */
/*
 * Tells what has become of the data behind an address since a client last
 * looked: the same primary, another process, or a replica that was promoted,
 * which may lack the last writes of the primary before it.
 *
 * The history of a data set has a name, master_replid of INFO. A replica has
 * the name of its primary's. When it is promoted, it begins a new history and
 * tells the old name as master_replid2. A primary that starts from an RDB file
 * does the same. A primary that frees its replication backlog an hour after its
 * last replica has gone takes a new name, too, but without a second one. Redis
 * before 4.0 tells no name.
 *
 * Invariant: it answers LINEAGE_SAME only if the same process has been a
 * primary ever since, and LINEAGE_COORDINATED only if the primary that this
 * client knew has itself said that it became a replica of the new one without
 * losing a write.
 */
#ifndef NXLOCK_CORE_LINEAGE_H
#define NXLOCK_CORE_LINEAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/deadline.h"
#include "model/guard.h"

#define LINEAGE_ID 41

/* A former primary may go on granting locks for so long after its successor was
 * promoted; see lineage_is_current(). */
#define LINEAGE_SLACK_MS 1000

/* What a server says about itself in a handshake. */
struct server_info {
    const char *run_id; /* "": unknown */
    const char *role;   /* likewise */
    int64_t uptime_s;   /* -1: unknown */
    bool refused;       /* INFO is not allowed */
    bool no_aof;
    bool uptime_was_negative; /* the uptime was negative, and counts as 0 */
    bool cluster;             /* a node of a Redis Cluster */
    int slots;                /* that it serves; -1: unknown */
    const char *replid;       /* master_replid; NULL or "": unknown */
    const char *replid2;      /* master_replid2; NULL or "": none */
    int replicas;             /* that are connected */
    /* It has been a primary for so long at least, by the age of its replicas'
     * connections or by the marker key (wire/marker.h); 0 or less: it is not
     * known. */
    int64_t primary_s;
    /* A majority of the Sentinels has named it for so long at least; 0: nobody
     * knows. */
    int64_t named_s;
    /* How far its time of day is ahead of this client's clock: between these.
     * Both 0: unknown. */
    int64_t clock_low_ns, clock_high_ns;
};

enum lineage_news {
    LINEAGE_REPLICA,    /* a replica: it grants no locks */
    LINEAGE_SAME,       /* the process that was known, still with its data */
    LINEAGE_FIRST,      /* none was known; this one was not promoted */
    LINEAGE_FIRST_OLD,  /* none was known; it was promoted, or has started from
                         * an RDB file, nobody knows when */
    LINEAGE_REPLACED,   /* another process */
    LINEAGE_PROMOTED,   /* the address led to a replica before */
    LINEAGE_UNSEEN,     /* the process that was known has been a replica in
                         * between, though no look has shown it */
    LINEAGE_COORDINATED /* another process, which has all data of the former */
};

struct lineage {
    char run_id[LINEAGE_ID];  /* the latest one that is known */
    bool replica;             /* it was one, when it was looked at last */
    char primary[LINEAGE_ID]; /* the latest that was a primary */
    char replid[LINEAGE_ID];  /* its history; "": it told none */
    /* The former primary is a replica now, and has gone on to this history with
     * all of its own data; "": it has not said so. */
    char ceded_to[LINEAGE_ID];
    int64_t clock_low_ns; /* of the former primary's info, when it said so */
};

/* May a lock command leave now, where the server was last known at alive_at to
 * be the same primary? If not, ask for a sign of life first, an INFO: a primary
 * that was stopped while another one was promoted carries out what waits in its
 * socket when it is woken. */
static inline bool lineage_is_current(uint64_t alive_at, uint64_t now)
{
    return now < deadline_after_ms(alive_at, LINEAGE_SLACK_MS) ||
           !guarded(GUARD_ALIVE);
}

/* When it is known to have been the same primary by a sign of life that was
 * asked for at asked_at, where the last answer before that came at heard_at. It
 * may have been stopped since then, and just be woken: then it may not know yet
 * that its replicas have left, but does when it answers the next question.
 * (Only a server that was stopped in the middle of its work does not know, so
 * no test with a real one shows the harm each time; the simulator does.) */
static inline uint64_t lineage_alive_at(uint64_t heard_at, uint64_t asked_at)
{
    return guarded(GUARD_HEARD) ? earlier(heard_at, asked_at) : asked_at;
}

/* Is it time to ask for the next one, so that nothing has to wait for it? */
static inline bool lineage_wants_sign(uint64_t alive_at, uint64_t now)
{
    return now >= deadline_after_ms(alive_at, LINEAGE_SLACK_MS / 2);
}

bool server_is_replica(const struct server_info *info);
/* It was promoted, or has started from an RDB file. */
bool server_has_second_history(const struct server_info *info);

/* Is it still the primary of that history, on a connection that was made when
 * it was, and had so many replicas? A primary may become a replica, and be
 * promoted again, and keep its connections. If it has fewer replicas, one of
 * them may have been promoted while it was stopped. */
bool lineage_goes_on(
    const char *replid, int replicas, const struct server_info *info);

/* Compares what a server says with what is known, which *l is from then on. *l
 * is zero at first. */
enum lineage_news lineage_update(
    struct lineage *l, const struct server_info *info);

/* The former primary is asked once more, on a connection of its own. */
void lineage_hear_former(struct lineage *l, const struct server_info *info);
/* Another server may have been the primary since it said that nothing was lost.
 */
void lineage_forget_former(struct lineage *l);

/* After LINEAGE_COORDINATED: how far the new primary's clock may be ahead of
 * the former one's, in ns. INT64_MAX: unknown. */
int64_t lineage_clock_lead(
    const struct lineage *l, const struct server_info *info);

#endif
