/* SPDX-License-Identifier: MIT */
/*
 * Properties of each class of fault: its remedy, whether it is transient, and
 * its rank.
 *
 * Invariant: every class has a remedy and a rank. No switch has a default, so
 * the compiler reports the switch, or the list, in which a new class is
 * missing. A remedy that is "" is a decision: then the words of the server or
 * of the library say what to do.
 */
#include "base/fault.h"

static const char *const remedies[] = {
    [FAULT_UNREACHABLE] =
        "check that the server is running and that the URL's host, "
        "port or socket path is right",
    [FAULT_TIMEOUT] =
        "the server or the network is down or slower than timeout_ms, "
        "or the port belongs to another service",
    [FAULT_RETRY] = "the server is starting or busy; try again later",
    [FAULT_NOT_PRIMARY] =
        "connect to the primary; in a list of several servers, "
        "replace it with its primary or with an independent server",
    [FAULT_FULL] = "the server has reached maxmemory; raise it or free memory",
    [FAULT_REFUSING] = "the server does not accept writes; fix its persistence "
                       "(MISCONF) or its replicas (NOREPLICAS)",
    [FAULT_DENIED] =
        "check the user and password, in the URL or wherever they come "
        "from",
    [FAULT_NO_PERMISSION] =
        "allow the user this command and key: see docs/acl.md",
    [FAULT_SCRIPT_DENIED] =
        "the ACL denies a command or key that the script uses; for "
        "the lock's key, its {NAME}:f and {NAME}:once allow +set "
        "+getrange +exists +pttl +pexpire +del, and +time for fencing",
    [FAULT_WRONG_TYPE] =
        "look at that key; if the name is in use for other data, choose "
        "another name or a prefix",
    [FAULT_UNSUPPORTED] =
        "the server does not know this command or option, or it was "
        "renamed or disabled; locks need WATCH (Redis 2.2) or "
        "scripts (2.6), and fencing tokens need scripts",
    [FAULT_NOT_REDIS] =
        "check that this is the port of a Redis or Valkey server; a "
        "TLS port needs rediss://",
    [FAULT_SYSTEM] = "this machine is out of memory, file descriptors or ports",
    [FAULT_RESTARTED] =
        "wait, or make the server keep its locks across restarts "
        "(AOF with appendfsync always) and add durable=1 to its URL",
    [FAULT_NO_INFO] =
        "allow its user to run INFO (ACL: +info), or turn the check "
        "off with guard_restarts=off (risk: after servers that "
        "granted a lock restart, a second client can get it)",
    [FAULT_NOT_DURABLE] =
        "enable its append-only file (appendonly yes, appendfsync "
        "always), or remove durable=1 from its URL",
    [FAULT_DUPLICATE] = "list each server once",
    [FAULT_SENTINEL] =
        "use the URL of the primary that it monitors; nxlock does "
        "not ask Sentinels for the primary",
    [FAULT_ACTIVE_REPLICA] =
        "set active-replica no, and give every client the same URL",
    [FAULT_CLUSTER] =
        "nxlock does not support Redis Cluster; use a server with "
        "cluster-enabled no",
    [FAULT_CLUSTER_DOWN] =
        "nxlock does not support Redis Cluster; use a server with "
        "cluster-enabled no",
    [FAULT_NO_DATABASE] =
        "choose an existing database: /N at the end of the URL, or "
        "db=N, with N below the server's setting databases",
    [FAULT_NONE] = "",
    [FAULT_SERVER] = "",
    [FAULT_TLS] = "",
    [FAULT_CERTIFICATE] = "",
    [FAULT_CREDENTIALS] = "",
};
_Static_assert(
    sizeof(remedies) / sizeof(remedies[0]) == FAULT_CLASSES, "each class once");

const char *fault_remedy(enum fault fault)
{
    return remedies[fault];
}

bool fault_is_transient(enum fault fault)
{
    switch (fault) {
    case FAULT_UNREACHABLE:
    case FAULT_TIMEOUT:
    case FAULT_RETRY:
    case FAULT_FULL:
    case FAULT_REFUSING:
    case FAULT_RESTARTED:
    case FAULT_CLUSTER_DOWN:
    case FAULT_CREDENTIALS:
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
    case FAULT_SENTINEL:
    case FAULT_ACTIVE_REPLICA:
    case FAULT_CLUSTER:
    case FAULT_TLS:
    case FAULT_CERTIFICATE:
    case FAULT_NO_DATABASE:
    case FAULT_CLASSES:
        break;
    }
    return false;
}

bool fault_is_elsewhere(enum fault fault)
{
    return fault == FAULT_NOT_PRIMARY || fault == FAULT_CLUSTER;
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
    FAULT_RESTARTED,
    FAULT_REFUSING,
    FAULT_FULL,
    FAULT_CREDENTIALS,
    FAULT_SERVER,
    FAULT_NOT_PRIMARY,
    FAULT_ACTIVE_REPLICA,
    FAULT_CLUSTER,
    FAULT_UNSUPPORTED,
    FAULT_DUPLICATE,
    FAULT_NOT_DURABLE,
    FAULT_SENTINEL,
    FAULT_NO_DATABASE,
    FAULT_NOT_REDIS,
    FAULT_WRONG_TYPE,
    FAULT_NO_INFO,
    FAULT_SCRIPT_DENIED,
    FAULT_NO_PERMISSION,
    FAULT_DENIED,
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
