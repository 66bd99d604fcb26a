/* SPDX-License-Identifier: MIT */
/*
 * The clients of a drill, which contend for its lock: one process drives all of
 * them in one loop, cuts their connections, and compares what they hold.
 */
#ifndef NXLOCK_CLI_DRILL_DRILL_LOOP_H
#define NXLOCK_CLI_DRILL_DRILL_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include <nxlock.h>

#include "cli/clock.h"
#include "cli/report/diagnostic.h"
#include "cli/run/session.h"

/* What a check has found. */
enum finding {
    SHOWN,
    UNSHOWN, /* the server or this machine was too slow */
    BROKEN,  /* a promise of guarantees.md was broken */
    FAILED   /* an error; no other check is made */
};

/* A client with its handle of the drill's lock. */
struct contender {
    nxl_client *client;
    nxl_lock *lock;
    int fd;         /* of the client, to be polled */
    bool crashed;   /* it does nothing any more */
    bool cut_off;   /* it can make no connection */
    bool busy;      /* an operation is in progress */
    int result;     /* of the last operation */
    uint64_t ended; /* when that was known, of nxl_now_ns() */
    int loss;       /* an enum nxl_loss, once the loss was reported */
};

#define CONTENDERS 3

struct drill {
    const struct args *args;
    struct session session; /* its signals and its prefix */
    struct diagnostics diagnostics;
    char *name; /* of the drill's lock */
    struct contender contenders[CONTENDERS];
    unsigned grants;        /* of the lock, in all checks */
    const char *check;      /* its name */
    bool over;              /* it has its finding, or a signal came */
    bool found[FAILED + 1]; /* by any check */
    int code;               /* FAILED: the exit code; otherwise 0 */
};

/* Reports what the check has found, and ends it: each check has one finding.
 * The words continue "not shown: ", "a promise was broken: " or "cannot ". */
void drill_found(struct drill *d, enum finding finding, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports that the contender cannot do what, because of its last result: as
 * UNSHOWN if the server or this machine may have been too slow, otherwise as
 * FAILED. */
void drill_failed(struct drill *d, const char *what, const struct contender *c);

/* Creates the contenders. 0, or an exit code after reporting why not. */
int drill_open(struct drill *d);

/* Frees them; what they hold is released. */
void drill_close(struct drill *d);

/* The functions below that return bool return false if the check is over. */

/* Drives all contenders until something has happened, or that time has come. A
 * signal ends the check. */
bool drill_turn(struct drill *d, uint64_t until);

/* Begins an operation of the contender; started is what the library's
 * ..._start() returned. drill_finish() waits for its result. */
void drill_begin(struct contender *c, int started);
bool drill_finish(struct drill *d, const struct contender *c);

/* Begins to wait for the lock, for longer than any lease lasts. */
void drill_wait(struct drill *d, struct contender *c);

/* Waits for the result of an acquire; anything but a grant ends the check. */
bool drill_granted(struct drill *d, const struct contender *c);

/* Cuts all connections of this process. Clients that are driven make new ones,
 * unless they are cut off. */
bool drill_cut(struct drill *d);

#endif
