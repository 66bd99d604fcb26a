/* SPDX-License-Identifier: MIT */
/*
 * Why a server gave no decision. The class says what to do about it; the
 * server's own words travel beside it as text.
 */
#ifndef NXLOCK_BASE_FAULT_H
#define NXLOCK_BASE_FAULT_H

#include <stdbool.h>

enum fault {
    FAULT_NONE,
    FAULT_UNREACHABLE, /* no connection, or it was lost */
    FAULT_SILENT,      /* connected, but no answer in time */
    FAULT_RETRY,       /* LOADING, BUSY script, TRYAGAIN, too many clients */
    FAULT_ELSEWHERE,   /* READONLY, MASTERDOWN, MOVED, ASK: not the primary */
    FAULT_FULL,        /* OOM */
    FAULT_REFUSING,    /* MISCONF, NOREPLICAS: takes no writes now */
    FAULT_DENIED,      /* NOAUTH, WRONGPASS, NOPERM */
    FAULT_WRONG_TYPE,  /* the key holds something that is not a string */
    FAULT_UNSUPPORTED, /* unknown command or option: nothing was done */
    FAULT_NOT_REDIS,   /* the peer broke the protocol */
    FAULT_SERVER,      /* any other error reply */
    FAULT_SYSTEM,      /* this machine: no memory, no descriptor */
    FAULT_RESTARTED,   /* it may have forgotten locks: no vote until later */
    FAULT_UNTOLD,      /* it does not tell what a vote needs */
    FAULT_FORGETS,     /* its URL says that it forgets nothing: no vote */
    FAULT_SETUP,       /* it is in the list twice: no vote */
    FAULT_CLASSES
};

/* A word for logs, "denied". */
const char *fault_name(enum fault fault);

/* What a person can do about it, one clause without a full stop; "" when the
 * server's words say enough. */
const char *fault_remedy(enum fault fault);

/* Asking the same server again later may well succeed. */
bool fault_passes(enum fault fault);

/* It stays until a person mends something: more than being away or slow. */
bool fault_wants_mending(enum fault fault);

/* The more telling of two faults, for a result over several servers: what a
 * person must mend comes before what passes. */
enum fault fault_worse(enum fault a, enum fault b);

#endif
