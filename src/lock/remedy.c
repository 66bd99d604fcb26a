/* SPDX-License-Identifier: MIT */
/*
 * The remedy of each class of fault.
 *
 * Invariant: every class has one. A remedy that is "" is a decision: then the
 * words of the server or of the library say what to do.
 */
#include "lock/remedy.h"

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
        "the ACL denies a command or key of the script; allow +set +getrange "
        "+exists +pttl +pexpire +del +time and, if several hold it, +zrange "
        "+zscore +zadd +zrem +zcount +zremrangebyscore; see docs/acl.md",
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
    [FAULT_PROMOTED] =
        "wait until then; for a shorter pause after the next failover, set a "
        "smaller max_ttl_ms in all programs",
    [FAULT_DEMOTED] =
        "wait until another server has been promoted and this address leads "
        "to it; if this one is to stay a replica, write its primary or an "
        "independent server instead",
    [FAULT_COPIES] =
        "check that so many replicas are connected and keep up (INFO "
        "replication), or change wait_replicas and wait_ms",
    [FAULT_UNCONFIRMED] =
        "wait until a majority of the Sentinels answers and names one "
        "primary; check that they and the network between them are up",
    [FAULT_NAMED_LATE] =
        "use a longer ttl: 3s of the lease must be left when the Sentinels "
        "name the new primary (docs/failover.md)",
    [FAULT_WRONG_SENTINELS] =
        "list all Sentinels of the service in the URL, by host and port, and "
        "the name that they have for it (sentinel monitor NAME)",
    [FAULT_SENTINEL_DENIED] =
        "the Sentinels have a user and a password of their own: set "
        "sentinel_user and sentinel_password_file in the URL",
    [FAULT_SENTINEL_RIGHTS] =
        "at each Sentinel, allow sentinel_user: +info "
        "+sentinel|get-master-addr-by-name +sentinel|master "
        "+sentinel|sentinels",
    [FAULT_NO_INFO] =
        "allow its user to run INFO (ACL: +info), or turn the check "
        "off with guard_restarts=off (risk: after servers that "
        "granted a lock restart, a second client can get it)",
    [FAULT_NOT_DURABLE] =
        "enable its append-only file (appendonly yes, appendfsync "
        "always), or remove durable=1 from its URL",
    [FAULT_DUPLICATE] = "list each server once",
    [FAULT_IS_SENTINEL] =
        "write redis+sentinel://HOST:PORT/SERVICE, with all Sentinels and "
        "the name of the service that they monitor",
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
    [FAULT_SLOTS] =
        "choose a name without '}', or one with a hash tag, as {a}b",
    [FAULT_NONE] = "",
    [FAULT_SERVER] = "",
    [FAULT_TLS] = "",
    [FAULT_CERTIFICATE] = "",
    [FAULT_CREDENTIALS] = "",
};
_Static_assert(
    sizeof(remedies) / sizeof(remedies[0]) == FAULT_CLASSES, "each class once");

const char *remedy_of(enum fault fault)
{
    return remedies[fault];
}

/* Of a Sentinel that is asked by itself. */
static const char *remedy_at_sentinel(enum fault fault)
{
    if (fault == FAULT_DENIED)
        return remedy_of(FAULT_SENTINEL_DENIED);
    if (fault == FAULT_NO_PERMISSION)
        return remedy_of(FAULT_SENTINEL_RIGHTS);
    if (fault == FAULT_UNREACHABLE)
        return "check that this Sentinel is running and that its host and port "
               "in the URL are right";
    return remedy_of(fault);
}

const char *remedy_at(enum fault fault, const struct server *s)
{
    if (s->to.settings->to_sentinels)
        return remedy_at_sentinel(fault);
    if (s->uses_sentinels &&
        (fault == FAULT_UNREACHABLE || fault == FAULT_TIMEOUT))
        return "check that the Sentinels and the server that they name are up; "
               "if they name an address that cannot be reached from here, set "
               "replica-announce-ip at the servers, and sentinel announce-ip "
               "at the Sentinels";
    if (s->uses_sentinels && fault == FAULT_DEMOTED)
        return "wait until the Sentinels name the new primary (about a second "
               "after SENTINEL FAILOVER, half a minute after FAILOVER; do not "
               "send FAILOVER to a server that Sentinels watch)";
    if (s->handshake_terms.age &&
        fault == FAULT_NO_INFO) /* guard_restarts must be on */
        return "allow its user to run INFO (ACL: +info)";
    return remedy_of(fault);
}
