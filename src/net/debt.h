/* SPDX-License-Identifier: MIT */
/*
 * A debt is a token that may stand at a server though nobody wants it: an
 * acquire whose caller gave up, or a release without an answer. It is paid by
 * a compare-and-delete that is known to have come after everything that could
 * still set the key:
 *
 *   - on the same connection, behind the acquire: exact, by order;
 *   - else when it deleted something (1), or after CLIENT KILL of the old
 *     connection was acknowledged: nothing in its pipe can be applied then;
 *   - else it is repeated at growing intervals until the old connection's
 *     end + ttl, when nothing of it can stand any more.
 *
 * A debt's record is made before the acquire is sent, so that running into
 * debt cannot fail.
 */
#ifndef NXLOCK_NET_DEBT_H
#define NXLOCK_NET_DEBT_H

#include "base/list.h"
#include "base/verb.h"
#include "net/conn.h"
#include "wire/exchange.h"
#include "wire/handshake.h"

struct debt {
    struct list node; /* in the server's debts */
    struct list owed; /* ... and in those of them that are DEBT_OWED */
    enum { DEBT_OWED, DEBT_SENT } state;
    bool may_come; /* an acquire of it may still be applied */
    bool exact;    /* the compare-and-delete on its way comes after it */
    bool cut;      /* a connection was lost with it */
    bool killed;   /* CLIENT KILL of the old connection was acknowledged */
    int64_t old_client; /* CLIENT ID of that connection; 0: unknown */
    char old_run_id[41];
    uint64_t next_try, interval;
    uint64_t until; /* nothing of it can stand after; NEVER while open */
    uint64_t ttl_ns;
    struct exchange exchange; /* of the compare-and-delete on its way */
    struct verb verb; /* RELEASE of key and token, which follow here */
    char bytes[];
};

enum debt_answer {
    DEBT_WAITS, /* more answers are to come */
    DEBT_PAID,  /* nothing of it can stand: free it */
    DEBT_STANDS /* put it back among the owed */
};

/* Room for this key and a token of up to token_room bytes. NULL: no memory */
struct debt *debt_new(struct slice key, size_t token_room);
void debt_free(struct debt *d);

/* Fills in what is owed, after exchange.stamped; the caller then puts it into
 * the server's lists. */
void debt_incur(struct debt *d, struct slice token, uint32_t ttl_ms,
    bool may_come, uint64_t now);

/* Appends what is due to the connection and its slots, and takes it out of
 * the owed; with an answer or a cut the caller puts it back. NULL facts: none.
 * Returns false when memory ran out (the debt is tried again later). */
bool debt_send(struct debt *d, struct conn *c, struct ladder *ladder,
    const struct facts *facts, uint64_t now);

/* Replies. debt_answered appends what has to follow, if something has to. */
void debt_kill_answered(struct debt *d, const struct reply *reply);
enum debt_answer debt_answered(struct debt *d, const struct reply *reply,
    struct conn *c, struct ladder *ladder, uint64_t now);

/* The acquire itself was answered, though nobody listened: nothing of it can
 * come later than that. */
void debt_acquire_answered(struct debt *d, uint64_t now);
/* ... by nil or an error: nothing of it stands, so nothing is owed. */
void debt_acquire_refused(struct debt *d, uint64_t now);

/* The connection on which its acquire or its compare-and-delete went is
 * gone: what the server told of it, run_id being 41 bytes. After the first
 * one it is tried again at once; then the delays grow, for it may be the
 * compare-and-delete that the server ends connections at. */
void debt_cut_off(
    struct debt *d, int64_t client_id, const char *run_id, uint64_t now);

/* True when time has paid it. */
bool debt_over(const struct debt *d, uint64_t now);

#endif
