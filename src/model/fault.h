/* SPDX-License-Identifier: MIT */
/*
 * Classes of failures: why a server did not decide a request. The class says
 * what can be done about it; the server's own words are kept next to it as
 * text.
 */
#ifndef NXLOCK_MODEL_FAULT_H
#define NXLOCK_MODEL_FAULT_H

#include <stdbool.h>

enum fault {
    FAULT_NONE,
    FAULT_UNREACHABLE,   /* no connection, or it was lost */
    FAULT_TIMEOUT,       /* connected, but no answer in time */
    FAULT_RETRY,         /* LOADING, BUSY script, TRYAGAIN, too many clients */
    FAULT_NOT_PRIMARY,   /* READONLY, MASTERDOWN: not the primary */
    FAULT_FULL,          /* OOM */
    FAULT_REFUSING,      /* MISCONF, NOREPLICAS: does not accept writes */
    FAULT_DENIED,        /* NOAUTH, WRONGPASS: not logged in */
    FAULT_NO_PERMISSION, /* NOPERM: the ACL denies the command or a key */
    FAULT_SCRIPT_DENIED, /* the script may run, a command in it may not */
    FAULT_WRONG_TYPE,    /* the key holds something that is no lock */
    FAULT_UNSUPPORTED,   /* unknown command or option: nothing was done */
    FAULT_NOT_REDIS,     /* the peer broke the protocol */
    FAULT_SERVER,        /* any other error reply */
    FAULT_SYSTEM,        /* this machine: no memory, no descriptor */
    FAULT_RESTARTED,     /* it may have forgotten locks: no vote until later */
    FAULT_PROMOTED,      /* likewise, after a promotion */
    FAULT_DEMOTED,       /* not the primary any more; a new one is expected */
    FAULT_NO_INFO,       /* INFO is denied or incomplete: no vote */
    FAULT_NOT_DURABLE,   /* durable=1 in its URL, but its AOF is off: no vote */
    FAULT_DUPLICATE,     /* listed twice, under two addresses: no vote */
    FAULT_IS_SENTINEL,   /* a Sentinel: it stores no keys */
    FAULT_TLS,           /* no secure connection: certificate, name, version */
    FAULT_CERTIFICATE,   /* the server refuses the client's certificate */
    FAULT_ACTIVE_REPLICA, /* KeyDB's: another server grants the same locks */
    FAULT_CLUSTER,      /* MOVED, ASK: a Redis Cluster node without all slots */
    FAULT_CLUSTER_DOWN, /* CLUSTERDOWN: no node serves this slot now */
    FAULT_CREDENTIALS,  /* this client's own password or certificate cannot be
                         * read now, or its callback failed */
    FAULT_NO_DATABASE,  /* SELECT is refused: no such database */
    FAULT_SLOTS,        /* in a Redis Cluster the keys of this lock would be in
                         * several slots */
    FAULT_COPIES,       /* applied, but on too few replicas in time */
    FAULT_UNCONFIRMED,  /* no majority of the Sentinels names this primary */
    FAULT_NAMED_LATE, /* they named it when too little of the lease was left */
    FAULT_WRONG_SENTINELS, /* those of the URL are not the ones that it needs */
    FAULT_SENTINEL_DENIED, /* as FAULT_DENIED, but of Sentinels */
    FAULT_SENTINEL_RIGHTS, /* as FAULT_NO_PERMISSION, but of Sentinels */
    FAULT_CLASSES
};

/* It is transient: the same server may well succeed later. */
bool fault_is_transient(enum fault fault);

/* Another server may answer at the same address by now (after a failover), so
 * connect again before the next request. */
bool fault_wants_reconnect(enum fault fault);

/* The server has carried it out; for what the Sentinels say, it does not count.
 */
bool fault_is_unconfirmed(enum fault fault);

/* Only time is needed: the server's quarantine has to end. */
bool fault_is_quarantine(enum fault fault);

/* A person has to fix something before it goes away. A server that is merely
 * down or slow does not count. */
bool fault_needs_repair(enum fault fault);

/* The more important of two faults, to explain a result of several servers:
 * what a person has to fix comes before what is transient. */
enum fault fault_worse(enum fault a, enum fault b);

#endif
