/* SPDX-License-Identifier: MIT */
/*
 * The judge. It is told what the servers do and what the clients believe, and
 * knows what no client can know; it looks at each step as it happens:
 *
 *   I1  two tokens of one name are never believed in at once: from when the
 *       caller is told, until the deadline or until a release is begun. Of a
 *       lock that several hold: they never have more permits than the smallest
 *       limit among them, of which an exclusive one is 1 of 1; nor has a server
 *       granted more. A
 *       token that was handed over has several handles, and each believes in
 *       it until its own deadline. One exception, which nxl_lock_adopt()
 *       documents: if one of these handles begins a release, or is freed,
 *       before the deadline that it was promised, the belief of the others
 *       ends then; so does that of whoever adopts the token before a release
 *       is known to have succeeded, for a deletion may still be on its way. A
 *       release or the end of a handle after its deadline ends nobody's
 *       belief
 *   I2  fencing numbers grow from grant to grant; where clocks break I1, from
 *       each grant to all that were called for after it was told
 *   I3  a deadline is not later than sent + ttl - drift at a quorum
 *   I4  nobody removes another one's key, nor sends anything that removes its
 *       own, or cuts it short to a minimum hold, after the deadline that it
 *       was promised, for the token may have been adopted; nor does what an
 *       acquire leaves behind remove a token that was granted
 *   I5  when all have stopped every key is gone within max_ttl + 1 s; and at
 *       any time somebody works with each token that stands, or owes its
 *       deletion, unless its owner died or left it to its ttl; of a token that
 *       was handed over, unless one of those who had it did
 *   I6  while a quorum is free and open to a waiter, somebody is granted the
 *       name within the bound of progress.h
 *   I8  what is reported is true: a fault has not been applied by a quorum, a
 *       release that succeeded has deleted at a quorum (or cut short to the
 *       minimum hold) and one that found the lock lost has not (unless it was
 *       handed over), and what a client knows to be undone is never set again
 *   I9  the loss of a lock that is kept alive is told before its deadline,
 *       unless its process stood still then
 *   I10 a verb is not sent while the one before it is under way
 *   I11 a call that ends with "busy" has a witness: a server has answered that
 *       another one's token is in the key, and as long as that could stand then
 *       is not over, or it was the last answer; and no quorum has granted the
 *       lock to a request of the call, with an answer that did not arrive. A
 *       server refuses permits, or a shared lock, only to whom does not fit
 *   I12 a token joins the line of a lock once
 *   I14 nobody turns round and round while time stands still
 *   I15 a waiter that runs and reaches the server keeps its place in line until
 *       it is granted the lock: it is not taken for dead, and nobody behind it
 *       is granted the lock before it, unless it cannot be told just then; nor
 *       is a token granted permits, or a shared lock, which is not in line,
 *       unless the mark of the line was lost; nor one while a client that waits
 *       without a line holds others back, for as long as it has asked for
 *   I16 a waiter that was silent for longer than its window, with 1/64 of it
 *       more for each place ahead, up to 15 s, is not granted the lock
 *   I17 a waiter asks no more often than nxlock.h says (poll): every tenth of
 *       its TTL, in the same way less often far behind, and 10 to 20 times a
 *       second if it is the first or cannot be told; but for what it hears
 *       meanwhile, a fault, and the end of its wait
 *   I18 hand-overs leave a gap every 7.5 s; nobody in line is granted the lock
 *       in one; of the programs outside the line one that asks often enough to
 *       find it gets the lock; and no gap lasts for more than a second, even if
 *       the server's clock is set back, which puts off no other gap either. In
 *       the last 0.1 s of each 30.1 s nobody who may wait joins the holders of
 *       one lock
 *   I19 with wait_replicas a caller is told that it holds a lock, or that a
 *       record says what it wanted, only when so many replicas have that write
 *       (at a quorum); but for a lease that was adopted, until it is extended
 *   I20 a failover, to the replica that has most, in which no more servers fail
 *       than wait_replicas, loses nothing of that
 *   I21 a client that waits for an exclusive lock without a line, while others
 *       share it one after the other, is granted it within 6 s from when the
 *       last trouble is over, or another such client is
 */
#ifndef NXLOCK_SIM_CHECKER_H
#define NXLOCK_SIM_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/machine.h"
#include "sim/client.h"
#include "sim/ledger.h"
#include "sim/server.h"

struct replica;
struct stranger;
struct world;
struct logged_write;

/* In short; those of work that must be done once are in ledger.h. */
#define INVARIANT_LIST(X)                                                      \
    X(I1, "two never hold a name at once")                                     \
    X(I2, "fencing numbers grow")                                              \
    X(I3, "no lease is counted on for longer than the servers allow")          \
    X(I4, "nobody deletes another one's key")                                  \
    X(I5, "no key stands that nobody works with or owes")                      \
    X(I6, "a free name is granted within its bound")                           \
    X(I8, "a result that is told is true")                                     \
    X(I9, "a loss is told before the deadline")                                \
    X(I10, "a server is not asked twice at once")                              \
    X(I11, "who says that a lock is busy has a witness")                       \
    X(I12, "a token joins a line once")                                        \
    X(I14, "nobody turns round and round while time stands still")             \
    X(I15, "a living waiter keeps its place in line")                          \
    X(I16, "a dead waiter is not granted the lock")                            \
    X(I17, "waiters ask no more often than is documented")                     \
    X(I18, "programs outside the line get their turn")                         \
    X(I19, "what is told as held or recorded is on enough replicas")           \
    X(I20, "a failover of so many servers loses none of that")                 \
    X(I21, "who waits without a line beside holders is granted the lock")      \
    X(O1, "work is not begun again before it is known what came of it")        \
    X(O2, "work that was begun is found as busy or in doubt")                  \
    X(O3, "who repeats work that is in doubt is told so")                      \
    X(O4, "what was done stays done")                                          \
    X(O5, "the first result is replayed")

#define INVARIANT_OF_LIST(name, says) name,
enum invariant { NO_INVARIANT, INVARIANT_LIST(INVARIANT_OF_LIST) INVARIANTS };

extern const char *const invariant_names[INVARIANTS];
#define INVARIANT(i) (1u << (i))
#define ALL_INVARIANTS (~0u)

/* What is known of a token. One bit of a mask for each server. */
struct token {
    struct share share; /* what its text says; weight 0: it is exclusive */
    unsigned name;
    unsigned process, worker;
    uint64_t life;
    uint64_t call;  /* when the acquire that made it was called */
    bool joined;    /* it was sent in a JOIN */
    bool granted;   /* some handle has had a deadline for it */
    bool left;      /* its owner leaves it to its ttl */
    bool shared;    /* it was handed over */
    bool giving_up; /* before a deadline: a deletion may be on its way */
    bool outside;   /* of a program that knows nothing of lines */
    /* Its last sign of life in line, by the server's clock; for how long it may
     * be silent after that; and how many were ahead of it. */
    int64_t seen_ms;
    uint32_t silent_ms;
    unsigned ahead;
    unsigned set, deleted, capped, settled, strayed;
    unsigned answered; /* a request was answered that the key holds it */
    uint64_t bound[MAX_SERVERS]; /* the latest deadline it allows */
    /* ... and that enough replicas have; and the last write that they do. */
    uint64_t copied[MAX_SERVERS], copied_offset;
    bool is_void; /* a grant of it did not count */
    struct attempt attempt;
};

/* The latest grants of a name, for I2. */
#define FENCES_KEPT 64
struct fences {
    size_t count;
    struct {
        uint64_t number, told_at;
    } of[FENCES_KEPT];
};

/* What a worker was told in its present acquire: I11. */
struct busy {
    uint64_t asked_at; /* the last request left */
    /* Of each server: when it said that another one has the lock; 0: it did
     * not. And until when that could stand then. */
    uint64_t heard_at[MAX_SERVERS], until[MAX_SERVERS];
};

/* Until when a waiter in line has no reason to ask again: I17. 0: it may. */
struct load {
    uint64_t least_at;
    bool told; /* something has reached it since it asked */
};

/* The turns of programs outside the line of a name: I18. */
struct gap {
    uint64_t from, until; /* the last gap, until it has been looked at; or 0 */
    bool taken;           /* one of them got the name in it */
    uint64_t turn_at;     /* when their last turn was over */
    uint64_t heard; /* since when waiters are answered that there is one */
    /* The clock was set back, and no release has looked when the next gap is
     * due: then that is up to 7.5 s after the first one that looks. */
    bool unnoticed;
};

/* How long nobody joins the holders at a server, at the least and at the most:
 * I15. The most is NEVER if that is not known. */
struct held_back {
    uint64_t least, most;
};

struct checker {
    unsigned checked; /* invariants, as a mask */
    struct token *token;
    size_t tokens, room; /* [0] is no token */
    unsigned broken;     /* the invariant; 0: none so far */
    char why[200];
    struct fences fences[NAMES_MAX];
    struct ledger ledger[NAMES_MAX];
    struct busy busy[PROCESSES_MAX][WORKERS_MAX];
    struct load load[PROCESSES_MAX][WORKERS_MAX];
    struct gap gap[NAMES_MAX];
    bool of_former; /* a former primary does what is told now */
    /* Since when several have the lock, by the server's clock (0: not known);
     * and whether the mark of its line was lost, so that others may pass. */
    int64_t set_since_ms[MAX_SERVERS][NAMES_MAX];
    bool unmarked[NAMES_MAX];
    struct held_back held_back[MAX_SERVERS][NAMES_MAX];
    /* Of each worker, until it begins anew. Overtaken: another handle has given
     * the token up, as I1 allows, and what this one believes does not count. */
    struct {
        uint64_t promised; /* the last deadline of its handle; 0: none */
        bool overtaken;
        uint64_t adopted, copied; /* its deadline by that; and by copies */
        bool relied;              /* it held the lock when its release began */
    } of[PROCESSES_MAX][WORKERS_MAX];
};

void checker_start(struct world *w);
/* Another handle has given its token up, as I1 allows. */
bool checker_overtaken(struct world *w, const struct worker *k);
/* Only the first one counts. */
__attribute__((format(printf, 3, 4))) void checker_broken(
    struct world *w, enum invariant which, const char *format, ...);
static inline struct token *checker_facts(
    const struct checker *c, uint64_t token)
{
    return &c->token[token];
}
void checker_end(struct world *w);

/* ------------------------------------------------ what the servers have done
 */

void checker_set(
    struct world *w, struct model_server *s, const struct message *m);
/* It said that the token stands, for ttl_ms still. */
void checker_vouched(struct world *w, struct model_server *s,
    const struct message *m, uint32_t ttl_ms);
void checker_deleted(struct world *w, const struct model_server *s,
    const struct message *m, uint64_t stood);
/* It was told to let the token stand for the rest of the minimum hold. */
void checker_capped(
    struct world *w, const struct model_server *s, const struct message *m);
/* A request that may set the key was answered "granted". */
void checker_answered(
    struct world *w, const struct model_server *s, const struct message *m);
/* A BEGIN was answered "busy": what a wait in line had brought is over, and
 * nothing of the call is left there. */
void checker_lost_hand_over(
    struct world *w, const struct model_server *s, const struct message *m);
void checker_rewound(struct world *w, struct model_server *s);

/* ---------------------------------------------- what the clients take for so
 */

uint64_t checker_token(struct world *w, const struct worker *k);
void checker_ended(struct world *w, const struct worker *k);
void checker_granted(struct world *w, struct worker *k);
/* The caller of BEGIN is told that it has the lock. */
void checker_handed_begin(struct world *w, struct worker *k);
/* Its lease was extended by a renewal; it looks whether it is lost. */
void checker_renewed(struct world *w, const struct worker *k);
void checker_lost(struct world *w, const struct worker *k);
/* ACQUIRE, BEGIN, JOIN or STAY leaves; it was answered "busy"; the call has
 * ended with that. */
void checker_asks(struct world *w, const struct worker *k);
void checker_busy_heard(struct world *w, const struct worker *k,
    unsigned server, const struct message *m);
void checker_busy_ends(struct world *w, const struct worker *k);
/* Its token is sent in a JOIN. */
void checker_joins(struct world *w, const struct worker *k);
/* A cleanup is done: nothing of the token can stand there. */
void checker_settled(struct world *w, unsigned server, uint64_t token);
/* ... or has expired. stray: its acquire was lost with its connection, and may
 * be applied behind the release; then it stands until its ttl. */
void checker_lapsed(
    struct world *w, unsigned server, uint64_t token, bool stray);
/* Its owner leaves the token to its ttl. */
void checker_left(struct world *w, uint64_t token);
void checker_handed(struct world *w, uint64_t token, const struct worker *heir);
/* An acquire or an adoption begins. */
void checker_begins(struct world *w, const struct worker *k);
/* The last deadline of its handle; 0: none. A release carries it. */
uint64_t checker_promised(const struct world *w, const struct worker *k);
/* A release begins, or the handle ends: its key is to be removed. */
void checker_gives_up(struct world *w, const struct worker *k);
/* A release is going to begin: may the lock be relied on until then? */
void checker_releases(struct world *w, const struct worker *k, bool held);
/* All its workers and cleanups are gone. */
void checker_died(struct world *w, const struct process *p);

/* -------------------------------------------------- a line: checker_line.c */

/* A JOIN or STAY of a token that has so many ahead of it has arrived. */
void checker_line_seen(struct world *w, struct model_server *s,
    const struct message *m, unsigned ahead);
/* Somebody takes it for dead. */
void checker_line_dropped(struct world *w, uint64_t token);
/* The one at this place is granted the name now, by a release; NULL: because
 * somebody in line found it free. may_set: ... and is allowed to. */
void checker_line_granted(struct world *w, struct model_server *s,
    unsigned name, unsigned place, const struct message *release, bool may_set);
/* A JOIN or STAY leaves; it is answered; something else has reached it. */
void checker_line_asks(struct world *w, const struct worker *k);
void checker_line_heard(
    struct world *w, const struct worker *k, const struct outcome *o);
void checker_line_told(struct world *w, const struct worker *k);
/* A release leaves the name to others for so long. */
void checker_gap_begins(struct world *w, unsigned name, unsigned ms);
/* A waiter is answered that it is left to others. */
void checker_gap_heard(struct world *w, unsigned name);
/* Who does not stand in line sets a key that was free. */
void checker_outside(struct world *w, unsigned name);
/* The server has lost its data, or its clock was stepped; forward, or back. */
void checker_line_forgets(struct world *w);
void checker_clock_set_back(struct world *w);
void checker_stranger_holds(struct world *w, const struct stranger *g);

/* Its mark was lost; it is set anew. A token is granted the lock that does not
 * wait in it. */
void checker_line_unmarked(struct world *w, unsigned name);
void checker_line_marked(struct world *w, unsigned name);
void checker_passes_line(
    struct world *w, struct model_server *s, unsigned name);

/* --------------------------- locks that several hold: checker_holders.c */

/* What holders take, and the least that one of them allows. */
struct held {
    unsigned count;
    uint64_t used, most;
};

/* May the lock be held besides? */
bool held_fits(const struct held *held, struct share share);
/* Of all who believe that they hold the name of k, and k. */
struct held checker_believed(struct world *w, const struct worker *k);
/* Of those whose token lasts at the server. */
struct held checker_lasting(const struct world *w, const struct model_server *s,
    unsigned name, bool (*lasts)(const struct world *, unsigned, uint64_t));
/* One more has the lock at a server; it is the first one. */
void checker_joins_holders(
    struct world *w, struct model_server *s, unsigned name);
void checker_set_begins(struct world *w, struct model_server *s, unsigned name);
/* One that may wait is going to be granted the lock. */
void checker_joins_in_pause(
    struct world *w, const struct model_server *s, unsigned name);
/* A TAKE is refused, and nobody in line is the reason. */
void checker_refused(
    struct world *w, const struct model_server *s, const struct message *m);
/* From now on nobody joins the holders for so long; a TAKE is refused for that
 * reason; one is going to be granted the lock; an exclusive one was granted. */
void checker_holds_back(
    struct world *w, const struct model_server *s, unsigned name, uint32_t ms);
void checker_refused_back(
    struct world *w, const struct model_server *s, const struct message *m);
void checker_joins_held_back(
    struct world *w, const struct model_server *s, unsigned name);
void checker_holds_back_no_more(
    struct world *w, const struct model_server *s, unsigned name);
/* A holder that is not of the call which asks; or else one that is; 0: none. */
uint64_t checker_other_holder(const struct world *w,
    const struct model_server *s, const struct message *m);
void checker_set_ends(
    struct world *w, const struct model_server *s, unsigned name);

/* ---------------------------------- copies at replicas: checker_copies.c */

/* As many replicas have this as are wanted. */
void checker_copied(struct world *w, const struct model_server *s,
    const struct logged_write *written);
/* What was carried out for the token does not count. */
void checker_void(struct world *w, uint64_t token);
/* The caller is told that it holds the lock, or of its record. */
void checker_holds_copies(struct world *w, const struct worker *k);
void checker_recorded(struct world *w, const struct worker *k);
/* This replica takes over, and so few servers have failed that nothing may be
 * lost; what is lost of it does not count any more. */
void checker_failover(
    struct world *w, struct model_server *s, const struct replica *r);
void checker_forgets_copies(struct world *w); /* a server lost its data */
void checker_lost_writes(
    struct world *w, struct model_server *s, const struct replica *r);

/* ------------------------------------------------------------ now and then */

void checker_orphans(struct world *w);
/* The record of name says that the token has begun, and its caller does not
 * know: somebody has to take that back. */
void checker_begun(struct world *w, unsigned name, uint64_t token);
void checker_leaks(struct world *w); /* max_ttl + 1 s after the end */

/* A quorum was open to k since then, and nobody was granted its name. */
void checker_waits_long(
    struct world *w, const struct worker *k, uint64_t since);
/* So is k, but others share the lock one after the other. */
void checker_starves(struct world *w, const struct worker *k, uint64_t since);
void checker_stands_still(struct world *w);
void checker_twice(struct world *w, const struct worker *k);

#endif
