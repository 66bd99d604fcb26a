/* SPDX-License-Identifier: MIT */
/*
 * Properties of each class of fault: whether it is transient, and its rank.
 *
 * Invariant: every class has a rank. No switch has a default, so the compiler
 * reports the switch, or the list, in which a new class is missing.
 */
#include "model/fault.h"

bool fault_is_transient(enum fault fault)
{
    switch (fault) {
    case FAULT_UNREACHABLE:
    case FAULT_TIMEOUT:
    case FAULT_RETRY:
    case FAULT_FULL:
    case FAULT_REFUSING:
    case FAULT_RESTARTED:
    case FAULT_PROMOTED:
    case FAULT_DEMOTED:
    case FAULT_CLUSTER_DOWN:
    case FAULT_CREDENTIALS:
    case FAULT_COPIES:
    case FAULT_UNCONFIRMED:
    case FAULT_NAMED_LATE:
        return true;
    case FAULT_NONE:
    case FAULT_NOT_PRIMARY:
    case FAULT_DENIED:
    case FAULT_NO_PERMISSION:
    case FAULT_SCRIPT_DENIED:
    case FAULT_WRONG_TYPE:
    case FAULT_UNSUPPORTED:
    case FAULT_NOT_REDIS:
    case FAULT_SERVER:
    case FAULT_SYSTEM:
    case FAULT_NO_INFO:
    case FAULT_NOT_DURABLE:
    case FAULT_DUPLICATE:
    case FAULT_IS_SENTINEL:
    case FAULT_WRONG_SENTINELS:
    case FAULT_SENTINEL_DENIED:
    case FAULT_SENTINEL_RIGHTS:
    case FAULT_ACTIVE_REPLICA:
    case FAULT_CLUSTER:
    case FAULT_TLS:
    case FAULT_CERTIFICATE:
    case FAULT_NO_DATABASE:
    case FAULT_SLOTS:
    case FAULT_CLASSES:
        break;
    }
    return false;
}

bool fault_wants_reconnect(enum fault fault)
{
    return fault == FAULT_NOT_PRIMARY || fault == FAULT_DEMOTED ||
           fault == FAULT_CLUSTER;
}

bool fault_is_unconfirmed(enum fault fault)
{
    return fault == FAULT_UNCONFIRMED || fault == FAULT_NAMED_LATE;
}

bool fault_is_quarantine(enum fault fault)
{
    return fault == FAULT_RESTARTED || fault == FAULT_PROMOTED;
}

bool fault_needs_repair(enum fault fault)
{
    return fault == FAULT_FULL || fault == FAULT_REFUSING ||
           fault == FAULT_CREDENTIALS ||
           (fault != FAULT_NONE && !fault_is_transient(fault));
}

/* From what explains a result least to what explains it best: what passes, then
 * what a person has to fix, then a fault of this machine, which affects all
 * servers. */
static const enum fault order[] = {
    FAULT_NONE,
    FAULT_RETRY,
    FAULT_TIMEOUT,
    FAULT_UNREACHABLE,
    FAULT_CLUSTER_DOWN,
    FAULT_UNCONFIRMED,
    FAULT_NAMED_LATE,
    FAULT_DEMOTED,
    FAULT_RESTARTED,
    FAULT_PROMOTED,
    FAULT_COPIES,
    FAULT_REFUSING,
    FAULT_FULL,
    FAULT_CREDENTIALS,
    FAULT_SERVER,
    FAULT_NOT_PRIMARY,
    FAULT_ACTIVE_REPLICA,
    FAULT_CLUSTER,
    FAULT_SLOTS,
    FAULT_UNSUPPORTED,
    FAULT_DUPLICATE,
    FAULT_NOT_DURABLE,
    FAULT_IS_SENTINEL,
    FAULT_WRONG_SENTINELS,
    FAULT_NO_DATABASE,
    FAULT_NOT_REDIS,
    FAULT_WRONG_TYPE,
    FAULT_NO_INFO,
    FAULT_SCRIPT_DENIED,
    FAULT_NO_PERMISSION,
    FAULT_SENTINEL_RIGHTS,
    FAULT_DENIED,
    FAULT_SENTINEL_DENIED,
    FAULT_CERTIFICATE,
    FAULT_TLS,
    FAULT_SYSTEM,
};
_Static_assert(
    sizeof(order) / sizeof(order[0]) == FAULT_CLASSES, "each class once");

static int rank(enum fault fault)
{
    int i = FAULT_CLASSES - 1;

    while (i >= 0 && order[i] != fault)
        i--;
    return i;
}

enum fault fault_worse(enum fault a, enum fault b)
{
    return rank(b) > rank(a) ? b : a;
}
