/* SPDX-License-Identifier: MIT */
/*
 * The client's side. A process has one link (connection, debts) to each
 * server, shared by its workers; a worker has one lock handle and drives the
 * real machines of the core with it, as src/api does. A process may be paused
 * at any step, and may die.
 */
#ifndef NXLOCK_SIM_CLIENT_H
#define NXLOCK_SIM_CLIENT_H

#include "base/list.h"
#include "base/verb.h"
#include "core/acquire.h"
#include "core/fence.h"
#include "core/holding.h"
#include "core/round.h"
#include "sim/alarm.h"
#include "sim/network.h"
#include "sim/quarantine.h"

#define PROCESSES_MAX 5
#define WORKERS_MAX 3
#define RETRY_MOST (160 * MS) /* between two rounds of an acquire */

struct process;
struct worker;

/* One verb of one worker at one server. */
struct request {
    struct list node; /* waiting at the link, or failed at the process */
    struct worker *worker;
    unsigned server;
    enum {
        REQUEST_IDLE, /* never used, or answered */
        REQUEST_WAITING,
        REQUEST_SENT,
        REQUEST_FAILED
    } state;
    struct message message;
    uint64_t sent_at; /* 0: not a byte has left */
    enum fault fault;
    bool unsure;
    bool cut; /* its connection was lost with it: it may still be applied */
    uint64_t cut_client, cut_run_id;
    bool renewal; /* of the worker's keep */
};

/* A token that may stand at a server though nobody wants it. */
struct debt {
    struct list node;       /* in the link's debts */
    struct message message; /* MESSAGE_RELEASE of it */
    bool sent;              /* its compare-and-delete is on the way */
    bool may_come;          /* its acquire may still be applied */
    bool exact; /* the compare-and-delete on the way comes after that */
    bool cut, killed;
    uint64_t old_client, old_run_id;
    uint64_t next_try, interval, until;
};

/* Whose reply comes next on a connection. */
struct slot {
    struct list node;
    enum { SLOT_HELLO, SLOT_REQUEST, SLOT_DROPPED, SLOT_KILL, SLOT_DEBT } kind;
    struct request *request; /* SLOT_REQUEST */
    struct debt *debt;       /* KILL, DEBT; DROPPED: its acquire, or NULL */
    uint64_t token;          /* DROPPED: an acquire that is left to itself */
    uint64_t sent_at;
};

struct link {
    struct process *process;
    unsigned server;
    enum { LINK_DOWN, LINK_DIALLING, LINK_SHAKING, LINK_UP } state;
    struct conn *conn;
    uint64_t client_id, run_id; /* of the connection, once it has said so */
    uint64_t up_since;          /* LINK_UP */
    struct quarantine quarantine;
    struct list waiting, debts, slots;
    unsigned dropped; /* slots nobody listens to */
    struct backoff reconnect;
    uint64_t not_before, dialled_at;
    struct alarm alarm;
};

enum operation {
    DOING_NOTHING,
    ACQUIRING,
    FENCING, /* the acquire's second half */
    EXTENDING,
    RELEASING,
    ADOPTING
};

/* The results of the library's calls. */
enum result {
    RESULT_OK,
    RESULT_NO,
    RESULT_LOST,
    RESULT_UNKNOWN,
    RESULT_FAULT,
    RESULT_CANCELLED
};

/* Its lock is kept alive, beside all else. */
struct keep {
    bool on, asking;
    struct holding holding;
    struct round round;
    struct request request[MAX_SERVERS];
    struct alarm alarm;
};

struct worker {
    struct process *process;
    unsigned index;
    enum operation operation;
    union {
        struct acquire acquire;
        struct round round;
    } machine;
    struct fence raise; /* FENCING: the acquire's machine waits meanwhile */
    enum result result;
    unsigned name;
    uint64_t token;
    uint32_t ttl_ms;
    uint64_t deadline;            /* the lease's; 0: none */
    uint64_t began;               /* the acquire was called */
    uint64_t number[MAX_SERVERS]; /* given with the present round's votes */
    uint64_t fence;               /* of the grant; 0: none was asked for */
    bool holding;                 /* it was told OK, and has not let go since */
    struct request request[MAX_SERVERS];
    struct alarm timer; /* the machine's */
    struct alarm life;  /* what it does next, of itself */
    enum { LIFE_IDLE, LIFE_BUSY, LIFE_HANDED, LIFE_HOLDS } life_state;
    unsigned extends_left;
    struct keep keep;
    uint64_t released; /* the last token that was, for certain; 0: none */
};

struct process {
    unsigned index;
    bool alive;
    uint64_t life; /* which of its lives this is: tokens tell them apart */
    uint64_t paused_until;
    struct link link[MAX_SERVERS];
    struct worker worker[WORKERS_MAX];
    struct list failed; /* requests whose failure is to be told */
    struct alarm reborn;
};

/* ------------------------------------------------------------ link, request */

void link_start(struct world *w, struct process *p, unsigned server);
void link_end(struct world *w, struct link *l);
void request_submit(struct world *w, struct request *r);
/* Nobody waits for r any more; true: not a byte of it had left. */
bool request_abandon(struct world *w, struct request *r, bool undo);
void request_fail(struct request *r, enum fault fault, bool unsure);
void link_heard(struct world *w, struct link *l, const struct message *m);
/* The connection is over; what was sent may arrive until linger is over. */
void link_lost(struct world *w, struct link *l, uint64_t linger);
/* The token is wanted again; false: its deletion may be on the way. */
bool link_forgive(struct link *l, uint64_t token);
/* Connects, sends what is due, sets the alarm. */
void link_step(struct world *w, struct link *l);
void link_push_slot(struct link *l, struct slot slot);

/* -------------------------------------------------------------------- debts */

struct debt *debt_incur(
    struct world *w, struct link *l, const struct message *of, bool may_come);
void debt_send(struct world *w, struct link *l, struct debt *d);
void debt_acquire_answered(
    struct world *w, struct debt *d, const struct message *reply);
/* True: it is paid, and gone. */
bool debt_answered(
    struct world *w, struct link *l, struct debt *d, const struct message *m);
void debt_cut_off(struct world *w, struct link *l, struct debt *d);
/* Those that time has paid are gone; returns when the first of the others
 * wants to be sent. */
uint64_t debts_due(struct world *w, struct link *l);
void debt_free(struct debt *d);

/* ------------------------------------------------------------------ workers */

void worker_start(
    struct world *w, struct worker *k, struct process *p, unsigned index);
void worker_end(struct world *w, struct worker *k);
void worker_acquire(
    struct world *w, struct worker *k, unsigned name, uint64_t wait_ns);
void worker_extend(struct world *w, struct worker *k);
void worker_release(struct world *w, struct worker *k);
void worker_adopt(
    struct world *w, struct worker *k, unsigned name, uint64_t token);
void worker_cancel(struct world *w, struct worker *k);
/* One server's time to answer in one round of an acquire. */
uint64_t worker_budget(const struct world *w, uint32_t ttl_ms);
void worker_outcome(
    struct world *w, struct request *r, const struct outcome *o);
/* Makes sure that its token will be gone, without an operation. */
void worker_let_go(struct world *w, struct worker *k);

/* The renewals of a lock that it holds: keep.c. */
void keep_start(struct world *w, struct worker *k);
void keep_begin(struct world *w, struct worker *k);
void keep_end(struct world *w, struct worker *k);
void keep_outcome(
    struct world *w, struct request *r, const struct outcome *o);

/* What a worker does of itself: life.c. */
void life_start(struct world *w, struct worker *k);
void life_completed(struct world *w, struct worker *k);
bool worker_held(const struct world *w, const struct worker *k);

/* ---------------------------------------------------------------- processes */

void process_start(struct world *w, struct process *p, unsigned index);
void process_end(struct world *w, struct process *p);
/* After anything has happened to it: tells failures, lets links act. */
void process_turn(struct world *w, struct process *p);
void process_die(struct world *w, struct process *p, uint64_t away);

#endif
