/* SPDX-License-Identifier: MIT */
/*
 * The client's side. A process has one link (connection, cleanups) to each
 * server, shared by its workers; a worker has one lock handle, which drives
 * the real machine of the core (core/life.h), and a program that uses it. A
 * process may be paused at any step, and may die.
 */
#ifndef NXLOCK_SIM_CLIENT_H
#define NXLOCK_SIM_CLIENT_H

#include "base/list.h"
#include "model/verb.h"
#include "core/cleanup.h"
#include "core/eligibility.h"
#include "core/life.h"
#include "core/line.h"
#include "core/weigh.h"
#include "model/token.h"
#include "sim/alarm.h"
#include "sim/network.h"
#include "sim/several.h"

#define PROCESSES_MAX 30
#define WORKERS_MAX 10
/* ... of a world without a crowd. */
#define PROCESSES_FEW 5
#define WORKERS_FEW 3
#define RETRY_MAX (160 * MS) /* between two rounds of an acquire */
#define LINE_RETRY_MAX                                                         \
    (500 * MS) /* after a fault in line, see core/line.c                       \
                */

struct process;
struct worker;

/* Work that must be done once, as far as a program has come with it. */
struct work {
    /* The attempt that it may still act for, or tell of; 0: none. */
    uint64_t attempt;
    bool acted, told; /* told: it has said something of it already */
    bool never;       /* ... that it failed: so it must not act any more */
    unsigned tries;   /* to tell, that are left */
    unsigned fingerprint;
    uint64_t result;
    uint32_t keep_ms;
    enum once_state verdict;   /* that is being told */
    bool resolves;             /* ... of another one's attempt */
    struct work_record seen;   /* the record that was read last */
    struct work_record before; /* ... and before this attempt, if in doubt */
};

/* One verb of one worker at one server. */
struct request {
    struct list node; /* waiting at the link, or failed at the process */
    struct worker *worker;
    unsigned server;
    enum {
        REQUEST_IDLE, /* never used, or answered */
        REQUEST_WAITING,
        REQUEST_SENT,
        REQUEST_AWAITS_REPLICAS, /* answered, but for the WAIT behind it */
        REQUEST_FAILED
    } state;
    struct message message;
    struct message reply; /* HELD */
    struct copies early;  /* what a WAIT has said that was not behind it */
    uint64_t sent_at;     /* 0: not a byte has left */
    uint64_t given_up;    /* the link's, before the first token of its call */
    enum fault fault;
    bool unsure;
    bool granted; /* FAILED, but it was carried out */
    enum life_track track;
};

/* Carries out a cleanup. */
struct cleaner {
    struct list node;       /* in the link's cleaners */
    struct message message; /* MESSAGE_RELEASE of its token */
    struct cleanup cleanup;
};

/* Whose reply comes next on a connection. */
struct slot {
    struct list node;
    enum {
        SLOT_HELLO,
        SLOT_ALIVE,
        SLOT_MARK,
        SLOT_WAIT,
        SLOT_REQUEST,
        SLOT_CANCELLED,
        SLOT_KILL,
        SLOT_DELETE
    } kind;
    struct request *request; /* SLOT_REQUEST */
    struct cleaner
        *cleaner; /* KILL, DELETE; DROPPED: of its acquire, or NULL */
    uint64_t sent_at;
};

struct link {
    struct process *process;
    unsigned server;
    enum { LINK_DOWN, LINK_DIALLING, LINK_SHAKING, LINK_UP } state;
    struct conn *conn;
    bool held_back; /* of what waits, until Sentinels name its server again */
    uint64_t client_id;          /* of the connection, once it has said so */
    char run_id[CLEANUP_RUN_ID]; /* likewise */
    unsigned number;             /* of the connection: how many were made */
    bool kind_by_name;           /* hold_back was sent over it, and known */
    uint64_t since;              /* LINK_DIALLING, LINK_SHAKING */
    uint64_t up_since;           /* LINK_UP */
    struct eligibility eligibility;
    uint64_t heard_at; /* the last reply */
    /* In a world with failovers: the time of the latest sign of life that has
     * come, and of the one that is under way, if there is one
     * (lineage_alive_at()); the history that was seen last, and how many
     * replicas; the server is no primary, or is to be judged again. */
    uint64_t alive_at, sign_at;
    bool asks_alive;
    uint64_t known;
    unsigned replicas;
    bool elsewhere;
    /* As struct replica_wait in net/replica_wait.h. */
    bool wait_due;
    unsigned waits;
    uint32_t shortest_ms;
    uint64_t shortest_until;
    struct list held, ready;
    struct list waiting, cleaners, slots;
    unsigned dropped;  /* slots nobody listens to */
    uint64_t given_up; /* cleanups that proved nothing before they expired */
    struct backoff reconnect;
    uint64_t not_before, dialled_at;
    struct alarm alarm;
};

struct worker {
    struct process *process;
    unsigned index;
    struct life life;                                  /* of its lock */
    struct ballot ballots[LIFE_BALLOTS * MAX_SERVERS]; /* of the life */
    struct renewal renewal;                            /* likewise */
    struct line line;                                  /* likewise */
    uint64_t channel;    /* with which its token joined */
    bool waits_in_line;  /* else it polls */
    bool old;            /* it knows nothing of lines: nor do its releases */
    struct group *group; /* that it is a member of; NULL: it is its own */
    bool token_is_used, token_wanted; /* of a member: see group_has_token() */
    struct share share; /* of its handle, so of the tokens that it makes */
    unsigned name;
    uint64_t token;   /* 0: none yet */
    bool own_token;   /* the present handle has it */
    uint64_t adopts;  /* the token that it adopts */
    uint64_t began;   /* the acquire, or the adoption, was called */
    unsigned cleaned; /* deletions that the last call has begun */
    struct request request[TRACKS][MAX_SERVERS];
    struct alarm timer; /* the life's */
    /* The program. */
    bool holding; /* it was told OK, and has not let go since */
    enum {
        PROGRAM_IDLE,
        PROGRAM_WAITS,  /* for a call */
        PROGRAM_HANDED, /* a result that it has not looked at yet */
        PROGRAM_HOLDS
    } state;
    struct alarm next; /* what it does next */
    unsigned extends_left;
    uint64_t released; /* the last token that was, for certain; 0: none */
    struct work work;
};

/* The connection for messages of a process, which all its workers share. */
struct subscription {
    struct conn *conn;
    enum {
        SUBSCRIPTION_DOWN,
        SUBSCRIPTION_DIALLING,
        SUBSCRIPTION_ASKED, /* SUBSCRIBE is under way */
        SUBSCRIPTION_UP
    } state;
    struct messages messages; /* what the lines of the workers know of it */
    uint64_t at; /* DIALLING: it arrives. DOWN: not before. ASKED: gives up */
    struct backoff reconnect;
    /* The connections that were seen to belong together: what is published
     * over one is heard on the other. */
    unsigned tested_link, tested_number;
    struct alarm alarm;
};

struct process {
    unsigned index;
    bool alive;
    uint64_t life; /* which of its lives this is: tokens tell them apart */
    uint64_t paused_until;
    struct link link[MAX_SERVERS];
    struct peer peer[MAX_SERVERS]; /* the links, as the handles see them */
    struct worker *worker;         /* as many as the setting says */
    struct subscription subscription;
    struct group group[GROUPS_MAX];
    struct list failed; /* requests whose failure is to be told */
    struct alarm reborn;
};

/* ------------------------------------------------------------ link, request */

void link_start(struct world *w, struct process *p, unsigned server);
void link_end(struct world *w, struct link *l);
void request_submit(struct world *w, struct request *r);
/* Nobody waits for r any more; true: not a byte of it had left. */
bool request_abandon(struct world *w, struct request *r, bool undo);
void link_heard(struct world *w, struct link *l, const struct message *m);
/* The connection is over; what was sent may arrive until linger is over. */
void link_lost(struct world *w, struct link *l, uint64_t linger);
/* Connects, sends what is due, sets the alarm. */
void link_step(struct world *w, struct link *l);
/* In a world with Sentinels: when it wants to connect; it leads to another
 * server now; nobody is named, so what waits for that fails. */
uint64_t link_wants_at(struct world *w, struct link *l);
void link_leave(struct world *w, struct link *l);
/* What the former primary has said, which was asked on a connection of its own.
 */
void link_hear_former(struct world *w, struct link *l, const struct message *m);
void link_not_found(struct world *w, struct link *l, enum fault fault);
void link_push_slot(struct link *l, struct slot slot);
/* How long WAIT waits for locks of that ttl; 0: none is sent. */
uint32_t link_wait_ms(const struct world *w, uint32_t ttl_ms);

/* ------------------------------------------- messages: subscription.c */

void subscription_start(struct world *w, struct process *p);
void subscription_end(struct world *w, struct process *p);
/* A worker begins to wait in line. */
void subscription_want(struct world *w, struct process *p);
void subscription_heard(
    struct world *w, struct process *p, const struct message *m);
void subscription_lost(struct world *w, struct process *p, uint64_t linger);
/* The channel of the process, by which it joins now. */
uint64_t subscription_channel(const struct process *p);
/* Should the next JOIN or STAY find out whether the channel has a listener? */
bool subscription_untested(const struct process *p);
void subscription_tested(struct world *w, struct process *p, bool deaf);

/* ----------------------------------------------------------------- cleanups */

/* of: the request that had the token. NULL: there is no cause. */
struct cleaner *cleaner_begin(struct world *w, struct link *l,
    const struct message *of, enum cleanup_cause cause);
void cleaner_send(struct world *w, struct link *l, struct cleaner *k);
/* A reply to one of its slots; it may be gone then. */
void cleaner_heard(struct world *w, struct link *l, const struct slot *slot,
    const struct message *m);
/* May an earlier token of its call be at its name? */
bool cleaners_owe(const struct link *l, const struct request *r);
/* The one whose token is in use, or NULL. */
struct cleaner *cleaner_in_use(struct link *l, uint64_t token);
/* Those that have expired are gone; returns when the first of the others wants
 * to be sent. */
uint64_t cleaners_due(struct world *w, struct link *l);
void cleaner_free(struct cleaner *k);

/* The token of a release is not in use any more. */
void link_end_use(
    struct world *w, struct link *l, const struct message *release);
void cleaner_release_answered(struct world *w, struct link *l,
    const struct message *release, const struct outcome *outcome);
/* Removes its token without a request. */
void link_clean_up(struct world *w, struct link *l, const struct message *of);
/* The token is adopted. First all links are asked; false: its deletion may be
 * on the way. applied: the server has said that it has it. */
bool link_can_adopt(struct link *l, uint64_t token);
void link_adopt(struct link *l, uint64_t token, bool applied);

/* -------------------------------------------- a worker's lock: handle.c */

void handle_start(
    struct world *w, struct worker *k, struct process *p, unsigned index);
void handle_end(struct world *w, struct worker *k);

/* What the next acquire or adoption asks for, of another name than before or
 * not; NEVER: it is held as long as it is wanted. Not while it is held. */
struct wish {
    unsigned name;
    uint32_t ttl_ms, min_hold_ms;
    uint64_t max_hold_ns;
    bool renewed;
    struct share share;
};
void handle_wish(struct world *w, struct worker *k, const struct wish *wish);
void handle_acquire(struct world *w, struct worker *k, uint64_t wait_ns);
/* Of one of several names: the call ends by `end` at the latest; all names are
 * granted; what was granted is given back. */
void handle_acquire_by(
    struct world *w, struct worker *k, uint64_t wait_ns, uint64_t end);
void handle_all_granted(struct world *w, struct worker *k, bool renewed);
void handle_give_back(struct world *w, struct worker *k);
void handle_adopt(struct world *w, struct worker *k, uint64_t token);
/* False: the lease has expired, so nothing is sent and there is no result. */
bool handle_extend(struct world *w, struct worker *k, uint32_t ttl_ms);
bool handle_release(struct world *w, struct worker *k);
void handle_begin(struct world *w, struct worker *k, uint64_t wait_ns);
void handle_look(struct world *w, struct worker *k);
/* What k->work says, of its own attempt or of that of the record seen. False:
 * as above. */
bool handle_tell(struct world *w, struct worker *k);
void handle_forget(struct world *w, struct worker *k);
bool handle_break(struct world *w, struct worker *k); /* of its own value */
void handle_inspect(struct world *w, struct worker *k);
void handle_cancel(struct world *w, struct worker *k);
/* The handle ends, whatever it does just now; then it is another one. */
void handle_free(struct world *w, struct worker *k);
/* It is never used again, nor freed. */
void handle_leak(struct world *w, struct worker *k);
/* Its next renewal is due at once. */
void handle_hurry(struct world *w, struct worker *k);
void handle_renew_no_more(struct world *w, struct worker *k);
/* The caller is told of a result that is over; it may have become stale. */
enum life_result handle_result(struct world *w, struct worker *k);
/* While it waits in line: the name was handed over to its token; whether it can
 * be told has changed. */
void handle_told(struct world *w, struct worker *k);
void handle_hinted(struct world *w, struct worker *k);
void handle_told_to_ask(struct world *w, struct worker *k);
void handle_messages_changed(struct world *w, struct worker *k);
void handle_outcome(
    struct world *w, struct request *r, const struct outcome *o);

/* One of the things that its life wants done: actions.c */
void handle_carry_out(
    struct world *w, struct worker *k, const struct action *action);

static inline bool handle_calls(const struct worker *k, enum life_call call)
{
    return k->life.running && k->life.call == call;
}

/* ------------------------- what a program does with its lock: program.c */

void program_start(struct world *w, struct worker *k);
void program_end(struct world *w, struct worker *k);
void program_completed(struct world *w, struct worker *k);
/* The caller gives up. */
void program_cancel(struct world *w, struct worker *k);
/* Its lock, which is renewed, was lost just now. */
void program_lost(struct world *w, struct worker *k);
/* It believes that it holds the lock. */
bool program_holds(const struct world *w, const struct worker *k);

/* With a ttl that is drawn. */
struct wish program_wish(
    struct world *w, const struct worker *k, unsigned name, uint32_t least_ms);
void program_rests(struct world *w, struct worker *k);
void program_sleeps(struct world *w, struct worker *k, uint64_t at);
void program_frees(struct world *w, struct worker *k);
void program_releases(struct world *w, struct worker *k);

/* --------------------- a program that does its work once: work.c */

void work_begins(struct world *w, struct worker *k);
/* The result of one of its calls. */
void work_told(struct world *w, struct worker *k, enum life_result result);
void work_goes_on(struct world *w, struct worker *k);

/* ---------------------------------------------------------------- processes */

void process_start(struct world *w, struct process *p, unsigned index);
void process_end(struct world *w, struct process *p);
/* After anything has happened to it: tells failures, lets links act. */
void process_turn(struct world *w, struct process *p);
void process_die(struct world *w, struct process *p, uint64_t away);

#endif
