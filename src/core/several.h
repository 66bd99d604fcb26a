/* SPDX-License-Identifier: MIT */
/*
 * Several names that are locked by one handle: in which order its members, one
 * lock for each name, make their calls, and what the results of these calls
 * mean for the whole. A machine like the others (machine.h). Its driver
 *
 *   begins a call, then
 *   - takes actions (several_next until false) and carries them out,
 *   - hands in how the calls of the members end, and which of them are lost,
 *   - takes actions again after each of these, and at several_wake().
 *
 * An acquire takes the names one after the other, in the order of the members,
 * which the driver has sorted by the bytes of the keys. A member that has to
 * wait does so in the line of its own name, while those before it are held and
 * renewed. All other calls are made by all members at once.
 *
 * Where the driver can make a server grant a name only to the token that holds
 * the name before it, those behind the member whose turn it is are asked for
 * too, early, so that all that are free take one round trip. An early acquire
 * does not wait: one that is not granted is made again when it is its turn.
 *
 * Why no set of clients can wait for each other in a circle: all take the names
 * in the same order, so who holds a name waits only for a greater one; and in
 * the line of one name each waits only for those before it. Along every
 * "waits for" either the name grows, or the place in the line of that name
 * becomes smaller, so no such path comes back to where it began.
 *
 * All members have the same token. It may be used once for each name: a member
 * that needs another one, or a lease that is lost before the last name is
 * granted, makes the whole acquire begin again with a fresh token, once all
 * that was granted has been given back.
 *
 * Invariant: an acquire ends with LIFE_OK only if every member was granted its
 * name with the present token, and the driver has said that all are held. With
 * any other end each member that was granted its name gets an action that ends
 * its lease.
 */
#ifndef NXLOCK_CORE_SEVERAL_H
#define NXLOCK_CORE_SEVERAL_H

#include "base/backoff.h"
#include "core/state.h"

#define SEVERAL_MAX 64 /* members: sets of them are bits of a uint64_t */

enum several_action_kind {
    SEVERAL_TOKEN,  /* draw a fresh token for all members; if that fails, call
                     * several_no_token() */
    SEVERAL_BEGIN,  /* the member begins its call: several_over() follows. An
                     * acquire waits until wait_until and ends by end */
    SEVERAL_CANCEL, /* cancel the call of the member */
    SEVERAL_REMOVE, /* end the member's lease, and remove its key */
    SEVERAL_LEAVE,  /* end the member's lease: the key is not ours */
    SEVERAL_SETTLE  /* all were granted: call several_settled() */
};

struct several_action {
    enum several_action_kind kind;
    unsigned member;
    bool early; /* BEGIN: of an acquire that does not wait, and is granted only
                 * if the member before holds its name with the same token */
};

/* How the call of a member has ended. */
struct several_end {
    enum life_result result;
    enum fault fault;   /* LIFE_FAULT, LIFE_UNKNOWN */
    bool token_is_used; /* an acquire that needs another token: the result does
                         * not count */
};

struct several {
    unsigned count; /* of members, 2 ... SEVERAL_MAX */
    /* The present call, or the last one. */
    enum life_call call : 8;
    enum life_result result : 8; /* once it is over */
    enum fault fault : 8;        /* LIFE_FAULT, LIFE_UNKNOWN */
    bool running;
    unsigned member;     /* whose result it is; count: of none */
    uint64_t wait_until; /* an acquire: until when names are waited for */
    uint64_t end;        /* and when it ends at the latest */
    unsigned attempts;   /* begun so far, each with a token of its own */

    /* private */
    bool asks_early;
    bool cancelled;
    bool token_due, settle_due; /* actions to be taken */
    bool again;                 /* begin again once no member makes a call */
    uint64_t retry_at;          /* 0: no attempt is planned */
    struct backoff backoff;
    uint64_t to_begin, to_cancel, to_end; /* members whose action is due */
    uint64_t calls;                       /* members that make a call */
    uint64_t early;   /* ... or are going to, before it is their turn */
    uint64_t granted; /* members that this call has granted their name */
};

/* In which order the names are taken: that of the bytes of their keys. Writes
 * the numbers of the keys into order. Returns count if no two keys are equal,
 * else the place of the first one of two such neighbours. */
unsigned several_order(
    const struct slice *keys, unsigned count, unsigned char *order);

/* Nothing is held, nothing runs. */
void several_init(struct several *s, unsigned count);

/* wait_ns: how long to wait for all names together; NEVER: without a limit.
 * timeout_ns: of one call. asks_early: see above. */
void several_acquire(struct several *s, uint64_t wait_ns, uint64_t timeout_ns,
    bool asks_early, const struct backoff *backoff, uint64_t now);
/* Any other call, by all members at once. */
void several_call(struct several *s, enum life_call call);
/* Cancels the call that is running, if any. */
void several_cancel(struct several *s);

/* The member's call is over. */
void several_over(struct several *s, unsigned member,
    const struct several_end *end, uint64_t now);
/* A member that was granted its name has lost it, while others are waited for.
 * If no acquire is running, this changes nothing. */
void several_lost(struct several *s, unsigned member, uint64_t now);
/* After SEVERAL_TOKEN: there were no random bytes. */
void several_no_token(struct several *s);
/* After SEVERAL_SETTLE: are all held now? */
void several_settled(struct several *s, bool held, uint64_t now);

/* The next action; false: there is none now. If then no call is running, the
 * last one is over. */
bool several_next(
    struct several *s, struct several_action *action, uint64_t now);
/* When there will be actions without anything that is handed in; NEVER. */
uint64_t several_wake(const struct several *s);

#endif
