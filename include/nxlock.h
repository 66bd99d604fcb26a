/* SPDX-License-Identifier: MIT */
/*
 * nxlock: distributed locks for Linux (glibc), backed by Redis or Valkey.
 * One subject: a program needs no other header.
 *
 *     nxl_client *client;
 *     nxl_lock *lock;
 *     if (nxl_client_new(&client, "redis://localhost:6379", NULL) == NXL_OK &&
 *         nxl_lock_new(&lock, client, "invoice:42", NULL) == NXL_OK &&
 *         nxl_lock_acquire(lock, 5000) == NXL_OK) {
 *         ... only one process at a time is here, for 30 s at most ...
 *         if (nxl_lock_release(lock) == NXL_LOST)
 *             ... the lock was lost before the work was done ...
 *     }
 *
 * A lock is a lease: it expires ttl_ms after the server applied the acquire.
 * Work that may take longer calls nxl_lock_held() before each critical step and
 * nxl_lock_extend() in time, or sets options.renew. docs/guarantees.md states
 * what is promised. Each function has a manual page of its own (man
 * nxl_lock_acquire); nxlock(3) is the whole manual, also on threads, fork() and
 * static linking.
 *
 * Names ending in _ms are milliseconds, in _ns nanoseconds. String arguments
 * are copied. The library keeps no pointer of the caller except the callbacks
 * (warning, tracer, credentials), their arguments and user. Any thread may call
 * any function on a client, but only one thread at a time may use a lock,
 * unless the function says otherwise. A thread with a very low priority, which
 * may hardly run, should have its own client.
 *
 * The library never prints, exits, aborts, raises a signal or changes a signal
 * handler. It starts threads for three things only: to look up a host name, to
 * call options.credentials, and to renew leases in the blocking API. The first
 * may outlive its client, so the shared library stays mapped after dlclose(),
 * and a plugin that contains libnxlock.a must be linked with -Wl,-z,nodelete.
 */
#ifndef NXLOCK_H
#define NXLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

struct pollfd; /* from <poll.h>; needed only for nxl_client_pollfds() */

#if defined(__GNUC__)
#define NXL_MUST_USE __attribute__((warn_unused_result))
#else
#define NXL_MUST_USE
#endif

/* ---------------------------------------------------------------- results
 *
 * 0 is success, above 0 an outcome that the caller must handle, below 0 an
 * error. The numbers never change. */
enum nxl_result {
    NXL_OK = 0,
    /* Another client holds the lock: a server has answered so, the holder's
     * lease may still be running, and no later request is unanswered. (If one
     * is: NXL_UNKNOWN.) */
    NXL_BUSY = 1,
    /* This handle no longer holds the lock: the lease expired, or the key was
     * removed or overwritten. */
    NXL_LOST = 2,
    /* A command was sent and not answered, so it may or may not have been
     * applied. (If it certainly was not: NXL_E_UNREACHABLE.) After an acquire:
     * not held; the library undoes the request as soon as it can, otherwise the
     * lock is free after ttl_ms, or after a wait in line up to one and a half
     * times that. After an extend: the old deadline remains valid. After a
     * release: not held; the lock is free now or after ttl_ms. */
    NXL_UNKNOWN = 3,
    /* Event-loop API: started; an event will follow. */
    NXL_PENDING = 4,
    /* nxl_lock_cancel(), nxl_lock_interrupt() or nxl_client_interrupt() ended
     * the call; not held. */
    NXL_CANCELLED = 5,
    /* nxl_lock_inspect(): the lock is free. nxl_lock_break(): the key no longer
     * has the value that was seen; nothing was removed. nxl_once_begin() with
     * NXL_ONCE_LOOK: the work may be begun. nxl_once_forget(): the record has
     * changed or is gone. nxl_lock_holder(), nxl_lock_holder_at(),
     * nxl_once_record(): there is none. */
    NXL_FREE = 6,
    /* nxl_once_begin(): the work was done before. Do not do it again;
     * nxl_once_record() has the result. */
    NXL_DONE = 7,
    /* nxl_once_begin(): somebody began the work, and it is not known whether it
     * was done. Do not do it: find out, or tell a person. */
    NXL_DOUBT = 8,
    /* nxl_once_begin(): the record is of work with another fingerprint (or one
     * side has none). Nothing was begun: do not do the work. */
    NXL_MISMATCH = 9,

    /* Wrong argument or wrong order of calls; the message names it. */
    NXL_E_INVALID = -1,
    /* Out of memory. */
    NXL_E_NOMEM = -2,
    /* The operating system refused (file descriptors, random bytes, ...). */
    NXL_E_SYSTEM = -3,
    /* The URL is unusable; the message names the part. Or it points to a
     * Sentinel as if that were a server; the message names the primaries that
     * it monitors. Or its Sentinels do not know the service, or are too few of
     * all that there are. Or durable=1 is in the URL, and the only server
     * writes no AOF. nxl_once_begin(): a failover could lose the record,
     * because wait_replicas was left undecided behind a guard. */
    NXL_E_URL = -4,
    /* No connection in time, or none that is secure (TLS), or the server did
     * not answer a request that changes nothing. No server has applied
     * anything; if one may have, because a command was sent and not answered,
     * it is NXL_UNKNOWN. */
    NXL_E_UNREACHABLE = -5,
    /* Wrong password, user or permissions: NOAUTH, WRONGPASS, NOPERM. Or the
     * server does not accept the client's certificate (TLS). (No password,
     * because its file cannot be read or the callback failed, is
     * NXL_E_UNREACHABLE.) */
    NXL_E_DENIED = -6,
    /* The server answers but does not accept the write now: LOADING, BUSY
     * script, OOM, MISCONF, NOREPLICAS, READONLY replica. Or no lock is granted
     * there, whatever its name: a Redis Cluster node that does not serve all
     * slots, as far as is known, or an active replica of KeyDB. */
    NXL_E_REFUSED = -7,
    /* The key holds something that is no lock: neither a string nor the holders
     * of a lock that several hold. */
    NXL_E_WRONG_TYPE = -8,
    /* The peer does not speak the Redis protocol. */
    NXL_E_NOT_REDIS = -9,
    /* The server lacks a required command; the message names it. */
    NXL_E_UNSUPPORTED = -10,
    /* Any other server error; the message quotes it. (If something may have
     * been applied, the result is NXL_UNKNOWN: an error that no Redis server
     * has may be a proxy's own.) */
    NXL_E_SERVER = -11,
    /* The handle was created before fork() and this is the child. */
    NXL_E_FORKED = -12
};

/* Returns the name and meaning of a result, for messages; never NULL, static
 * storage. If nxl_lock_errmsg() or nxl_client_errmsg() has a message, print
 * that instead: it says the same in more detail. */
const char *nxl_strerror(int result);

/* Returns the library version, "major.minor.patch"; static storage. */
const char *nxl_version(void);

/* ----------------------------------------------------------------- client
 *
 * A client connects to one server, or to N independent servers that decide by
 * majority (Redlock; docs/redlock.md says when to use it). Many locks and many
 * threads share one client, and their commands share one pipelined connection
 * to each server. */
typedef struct nxl_client nxl_client;
typedef struct nxl_lock nxl_lock; /* see below */

/* Which commands a client locks with. */
enum nxl_scheme {
    /* The best that the server supports, found by trying: SET NX PX and
     * scripts, or NXL_SCHEME_TIMESTAMP on servers before 2.6. */
    NXL_SCHEME_AUTO = 0,
    /* SETNX with a Unix time as the value, on any server: for keys shared with
     * programs that lock this way. One server only. Those programs must write
     * seconds and ignore blanks after the number (docs/wire.md). HARM: weaker
     * promises, see "Locks by unix times" in docs/guarantees.md. Above all, a
     * program that takes over with a plain GETSET may shorten or end the lock
     * of a live holder, and its clock must agree with the server's. */
    NXL_SCHEME_TIMESTAMP = 1
};

/* Whether a server that restarted (nxl_client_options.guard_restarts) or was
 * promoted (guard_failover) may vote, that is, whether its grant counts; a
 * single server that has no vote grants no locks. */
enum nxl_guard {
    /* As ON for two servers or more, and where the URL names Sentinels; as OFF
     * for any other single server. */
    NXL_GUARD_AUTO = 0,
    NXL_GUARD_ON = 1, /* not before the locks that it may have lost expired */
    NXL_GUARD_OFF = 2
};

/* A callback of the program; see nxl_client_options.warning. */
typedef void (*nxl_warning)(void *arg, const char *text);

/* One step of the library, for a log; see nxl_client_options.tracer. */
enum nxl_trace_kind {
    /* An attempt to acquire. A wait makes several, but in line only one or two.
     * text says how the one before it failed at a server, if it did. */
    NXL_TRACE_ATTEMPT = 1,
    NXL_TRACE_END = 2,     /* an operation ended with result */
    NXL_TRACE_RENEWAL = 3, /* options.renew: a renewal ended with result */
    NXL_TRACE_LOSS = 4,    /* options.renew: lost; result is an enum nxl_loss */
    /* guard_failover: a failover was seen, once for each one and client. No
     * lock is concerned; text names the server. More kinds may be added. */
    NXL_TRACE_FAILOVER = 5
};

/* What a tracer is told of a step. */
typedef struct nxl_trace {
    int kind;       /* enum nxl_trace_kind */
    int operation;  /* END: enum nxl_operation, otherwise 0 */
    int result;     /* END, RENEWAL: enum nxl_result. LOSS: enum nxl_loss */
    nxl_lock *lock; /* the lock concerned; FAILOVER: NULL */
    void *user;     /* options.user of that lock; FAILOVER: NULL */
    uint64_t at_ns; /* when, as nxl_now_ns() */
    /* Until the lock's deadline; 0: not held. FAILOVER: until the server grants
     * locks again. */
    int64_t left_ms;
    const char *text; /* details for a person, or ""; valid until the callback
                       * returns */
} nxl_trace;
typedef void (*nxl_tracer)(void *arg, const nxl_trace *trace);

/* What a credentials callback fills in. All texts are zero-terminated, and
 * empty at first. The library owns it and overwrites it afterwards. Members may
 * be added at the end. */
typedef struct nxl_credentials {
    size_t size;   /* sizeof(nxl_credentials) of the library */
    size_t server; /* for which server, from 0 in the order of the URLs */
    /* Empty: the user of the URL, or without one the default user. */
    char user[8193];
    char password[8193]; /* must not be empty */
    char why[256];       /* after a failure: the reason, for people */
    bool sentinel;       /* for the Sentinels of that URL (sentinel_user), not
                          * for the server that they lead to */
} nxl_credentials;

/* Supplies user and password for a connection; see
 * nxl_client_options.credentials. Returns whether it could. */
typedef bool (*nxl_credentials_callback)(
    void *arg, nxl_credentials *credentials);

/* The options of a client. Start from NXL_CLIENT_OPTIONS_INIT, or in C++
 * nxl_client_options_init(). Zero in any member but size means its default;
 * size 0 (options = {0}) is NXL_E_INVALID, and then errbuf is not written
 * either. New members are only added at the end. */
typedef struct nxl_client_options {
    size_t size; /* sizeof(nxl_client_options) of the caller; _INIT sets it */
    /* Limits the I/O of one call: name lookup, connect, AUTH, replies, cleanup.
     * Default 2000; 10 ... 600000. */
    int64_t timeout_ms;
    /* The longest ttl_ms a lock of this client may request. Default 60000, and
     * 30000 where guard_restarts or guard_failover is on (they are with several
     * servers and with Sentinels), because a quarantine lasts as long; at most
     * 2147483647. HARM: raising it extends how long a crashed holder blocks the
     * others. All clients of several servers must use the same value. So must
     * all that lock with NXL_SCHEME_TIMESTAMP where WATCH is refused: there a
     * request that arrives late could shorten the lease of another client. */
    int64_t max_ttl_ms;
    /* How much the clock rates of this machine and the server may differ, in
     * parts per million of the TTL. Default 10000 (1 %); 1 ... 500000. HARM:
     * below the real difference two clients can hold the lock. Source: the
     * clock drift of the Redlock algorithm. */
    int64_t drift_ppm;
    /* Prepended to every name; at most 1024 bytes. Default none. */
    const char *prefix;
    /* TCP keepalive: idle seconds before the first probe. Default 15;
     * 1 ... 32767. */
    int64_t keepalive_s;
    /* Where nxl_client_new() writes the reason when it fails, zero-terminated;
     * untouched on success. May be NULL. */
    char *errbuf;
    size_t errbuf_size;
    /* An enum nxl_scheme; default NXL_SCHEME_AUTO. */
    int scheme;
    /* 1: with SET NX PX, take over a key that never expires if its value is a
     * Unix time in the past by the server's clock, as a crashed program of the
     * SETNX scheme leaves it. Default 0: such a key is busy forever. (A key
     * that NXL_SCHEME_TIMESTAMP of this library left is always taken over.)
     * HARM: a key that uses such a value for something else is overwritten.
     * And a live program of that scheme reads our value as a time long past
     * and steals the lock: while one runs, all need NXL_SCHEME_TIMESTAMP. */
    int interop;
    /* Called at most once per client for each of: a lock was granted with
     * weaker promises than those of docs/guarantees.md; a lock was granted
     * without a minority of the servers, for a reason that somebody must fix
     * (wrong password, replica, INFO refused; not: down or slow); the same
     * because they restarted and do not vote yet; work was begun
     * (nxl_once_begin()) at a server that may lose its record (no append-only
     * file, an appendfsync other than always, a maxmemory-policy other than
     * noeviction); a second lock was granted by the only server, which has
     * replicas, or was promoted, and guard_failover is off; a guard is on, and
     * a lock that was waited for is held for longer than max_ttl_ms by another
     * client, so that servers without a vote are waited for that long. With
     * guard_failover also called for each failover that was seen: text says
     * since when and until when the server grants no locks; of several at one
     * server between two calls, only about the latest. text names the
     * servers and reasons and is valid until the callback returns. Called at
     * the end of a blocking call or of nxl_client_next_event(), on the calling
     * thread. It may use the library, but not free the client. NULL: no
     * callback; nxl_client_describe() also reports these. */
    nxl_warning warning;
    void *warning_arg;
    /* Restart quarantine: a server that restarted may have forgotten locks, so
     * it does not vote until all of them have expired: max_ttl_ms plus drift,
     * in whole seconds plus one, after its start. An enum nxl_guard. HARM when
     * off: if the servers that granted a lock restart without persistence, a
     * second client can get it while the first still holds it. */
    int64_t guard_restarts;
    /* Called for each step as it happens, on any thread, with the client
     * locked: it must be quick and must not call this library. NULL (the
     * default) costs nothing. */
    nxl_tracer tracer;
    void *tracer_arg;
    /* Called for each new connection to a server whose URL has no password and
     * no password_file, and once more when that server has refused the result:
     * for passwords that change, such as tokens that expire. To Sentinels
     * likewise if the URL has a sentinel_user without a password.
     *
     * It runs in a thread of its own with all signals blocked, never with the
     * client locked, so it may take time: locks are renewed and other calls go
     * on meanwhile. Connecting waits for it as part of timeout_ms. If it takes
     * longer, that attempt fails, and the next one waits for the same call; its
     * result counts for 10 s after it has returned. There is at most one call
     * for each connection at a time, but those for several may overlap: each
     * server has one connection, and a client of one server makes a second one
     * when a lock first waits.
     *
     * A failure, or no result in time, is transient: NXL_E_UNREACHABLE, whose
     * message shows `why` ("the credentials callback failed: ..."), and a wait
     * for a lock tries again. If the server refuses the same user and password
     * twice, the result is NXL_E_DENIED.
     *
     * It must return (no exception, longjmp() or pthread_exit()) and must not
     * call this library for this client. nxl_client_free() waits until it has
     * returned; then credentials_arg may be freed. It is not called in a
     * fork()ed child. A process that it starts inherits the blocked signals.
     * NULL: no callback. */
    nxl_credentials_callback credentials;
    void *credentials_arg;
    /* How locks of one server wait. Default 0: in line, first come, first
     * served; a release hands the lock over to the first in line, one round
     * trip away. Needs scripts and Redis 5 (on 3.2 and 4.0 the order is kept,
     * but a waiter finds out by asking), or Valkey; where they or the
     * permissions are missing, the lock waits as with 1. A client opens a
     * second connection when it first waits. 1: each waiter polls, with the
     * delays of nxl_lock_options.retry_min_ms. HARM of 1: the order is up to
     * chance, so a waiter may starve, and the server's load grows with the
     * number of waiters. In line each waiter sends a request every tenth of its
     * TTL (100 ms to 3 s), those far behind every 5 s, and the first one sends
     * 10 to 20 requests a second; a first one that is stopped delays the others
     * by a lease. While the key has no TTL (somebody set it by hand), the first
     * one looks at it once a second and then joins the line again, at its end:
     * so the order is not kept. Several servers have no line, and a key (prefix
     * and name) of more than 512 bytes is polled for. nxl_client_describe()
     * says which is in use, and why. */
    int64_t poll;
    /* Failover quarantine, for an address behind which another server may
     * become the primary (a managed service, a virtual address, a DNS name),
     * and for servers of a list that have replicas. An enum nxl_guard; AUTO: on
     * for several servers, as guard_restarts, and where the URL names
     * Sentinels. ON includes guard_restarts. A primary that was promoted may
     * lack the last locks, so it grants none until all of them have expired:
     * max_ttl_ms plus drift plus 1 s, in whole seconds plus one, after its
     * promotion. After a promotion by the command FAILOVER, which loses
     * nothing, it is 1 s if a running client saw it, or longer if the clocks of
     * the two servers differ. With Sentinels it is 2 s instead of 1 s, from
     * when a majority of them first named the server; and a grant, an
     * extension, an adoption or a report of work counts only if a majority had
     * named the server at most 2 s before the request was sent. Where no
     * replica's connection shows when that was, the clients remember it in the
     * key PREFIXnxl-p. Lock commands follow a sign of life that is at most a
     * second old: INFO is sent with them twice a second, and after a silence
     * they wait for its answer. A grant that takes longer to be answered does
     * not count. A wait for a lock goes on while the address leads to a
     * replica. HARM when off: after a failover that loses writes, and with
     * Sentinels also in a partition, two clients can hold one lock. HARM in any
     * case but with Sentinels: a primary that is cut off from its replicas, but
     * not from some of the clients, goes on granting locks to them;
     * min-replicas-to-write 1 at the servers ends that. Needs INFO. */
    int64_t guard_failover;
    /* How many replicas must have a lock, an extension or a record
     * (nxl_once_begin(), nxl_once_tell()) before it counts, 1 ... 100: so that
     * it survives a failover to one of them. One WAIT follows all commands that
     * are sent together, and while it is not answered nothing else is sent over
     * the connection. If too few have it in time, an acquire undoes its grant
     * and tries again as long as it may wait, then ends with NXL_E_REFUSED; an
     * extension and what is told end with NXL_UNKNOWN, and the lease keeps its
     * old deadline. With as many as there are replicas no lock is granted while
     * one is away. A lock whose key somebody made permanent cannot be extended,
     * and is lost at its deadline: extending it writes nothing that WAIT could
     * confirm. Default 0: a failover may lose what was granted last. Needs
     * Redis 3.0 and WAIT; with several servers each asks for its own. */
    int64_t wait_replicas;
    /* How long WAIT waits for them, 1 ... 60000, at most timeout_ms, and at
     * most 500 with guard_failover. Default 0: a 20th of the shortest ttl in
     * use on the connection, between 50 and 500, half of that with several
     * servers, and at most a third of timeout_ms. A renewal, and with several
     * servers an acquire, waits for its answer for twice as long, since another
     * WAIT may be before its own. HARM: while it waits no other lock of this
     * client is renewed, so keep it below a quarter of the shortest ttl. */
    int64_t wait_ms;
    /* 1: it counts only when it is in the server's append-only file and in
     * those of wait_replicas replicas, by fsync(): WAITAOF instead of WAIT.
     * Default 0. Needs Redis 7.2, and appendonly yes on all of them. It takes
     * up to a second, because replicas say once a second what they have
     * written, and appendfsync everysec writes as often: so the default of
     * wait_ms is 1500 then, or three quarters of timeout_ms if that is less.
     * HARM: as there; use ttls of six seconds or more. guard_failover allows it
     * only without wait_replicas, and only appendfsync always is fast enough
     * then. */
    int64_t wait_aof;
} nxl_client_options;

/* clang-format off */
#define NXL_CLIENT_OPTIONS_INIT { sizeof(nxl_client_options), \
                                  0, 0, 0, NULL, 0, NULL, 0, 0, 0, NULL, \
                                  NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, \
                                  0 }
/* clang-format on */
/* Same as NXL_CLIENT_OPTIONS_INIT, for C++. */
void nxl_client_options_init(nxl_client_options *options);

/* Creates a client for the server at url; options may be NULL. Only parses, and
 * reads a password_file once to check it: nothing is sent before the first
 * operation. Does not block.
 *
 *     redis://[user][:password]@host[:port][/db][?parameter=value&...]
 *     rediss://...                           the same by TLS
 *     unix:///path/to/socket[?db=N&...]
 *     redis+sentinel://[user][:password]@host[:port],.../SERVICE[/db][?...]
 *     rediss+sentinel://...                  the same, by TLS
 *
 * valkey:// means redis://, and valkeys:// rediss://; the defaults are port
 * 6379 and db 0. With +sentinel the hosts are the Sentinels (up to 15, port
 * 26379) that know where the primary of SERVICE is; user, password and db are
 * the primary's, and sentinel_user and its like the Sentinels'. Such a URL is
 * one server, and stands alone. Any part may be %-encoded. A parameter
 * overrides the option of that name; nxlock-url(7) lists them. Several URLs
 * separated by commas: as nxl_client_new_urls(). By TLS the server's
 * certificate is verified, and its names too; files that a parameter names are
 * read here, and again before a connection if they have changed (docs/tls.md).
 *
 * NXL_OK: the caller owns *client and frees it with nxl_client_free(). On
 * error *client is NULL: NXL_E_INVALID, NXL_E_URL, NXL_E_NOMEM, NXL_E_SYSTEM.
 */
int nxl_client_new(nxl_client **client, const char *url,
    const nxl_client_options *options) NXL_MUST_USE;

/* The most servers a client can have. */
#define NXL_SERVERS_MAX 15

/* Creates a client for count servers, 1 ... NXL_SERVERS_MAX, one URL each. More
 * than one must be independent of each other: no replicas, no common cause of
 * failure. A lock is held while more than half of all count servers hold it;
 * calls, results and promises are the same as with one. Every client of the
 * same locks must list all of the servers and use the same max_ttl_ms.
 *
 * db, user, password, password_file, keepalive_s, durable and all parameters of
 * Sentinels and TLS apply to one server. All other parameters apply to the
 * client: one URL is enough to set them, and different values are an error. So
 * is a duplicate address; one server at two addresses is detected when
 * connected and votes once. Results as nxl_client_new(). */
int nxl_client_new_urls(nxl_client **client, const char *const *urls,
    size_t count, const nxl_client_options *options) NXL_MUST_USE;

/* Closes the connections and frees the client; NULL is allowed. Free its locks
 * first: a lock that still exists is released if it is held, and then can only
 * be freed (other calls: NXL_E_INVALID). Blocks until releases and cleanups are
 * answered, for min(timeout_ms, 500 ms) at most; the rest expires by its TTL.
 * Then it waits for a credentials callback that is still running, however long
 * that takes. In a fork()ed child it closes the descriptors, sends nothing and
 * does not touch the memory, which another thread may have been changing. */
void nxl_client_free(nxl_client *client);

/* Returns the last error of this client, for a person: server, reason, remedy;
 * "" if there was none. Never NULL. Each thread has its own copy, valid until
 * that thread calls this function again for any client.
 *
 * A message omits a server's text as a whole, and says so, if four bytes in a
 * row of a password occur in it (of a shorter password: all of it), in either
 * case, or escaped as in a URL or a quoted string; or a lock's token. Passwords
 * are those in use and the ones before them. The library's own words stay, and
 * so do the names of errors that it knows, such as WRONGPASS. */
const char *nxl_client_errmsg(const nxl_client *client);

/* Writes one row per server into text, for a person: address, state of the
 * connection, software and version, role, Redis Cluster node or not, the
 * commands it is locked with and how locks wait there, once that was tried, and
 * whether it has a vote; if not, why, since when and until when.
 * Zero-terminated and cut to size. Known after the first operation. Returns the
 * full length. No I/O. */
size_t nxl_client_describe(nxl_client *client, char *text, size_t size);

/* Returns the number of servers. */
size_t nxl_client_servers(const nxl_client *client);

/* As nxl_client_describe() for one server, numbered from 0 in the order of the
 * URLs; "" if there is no such server. */
size_t nxl_client_describe_server(
    nxl_client *client, size_t server, char *text, size_t size);

enum nxl_server_state {
    NXL_SERVER_DOWN, /* not connected; a client connects when it needs to */
    NXL_SERVER_CONNECTING,
    NXL_SERVER_UP
};

enum nxl_server_software {
    NXL_SOFTWARE_UNKNOWN,
    NXL_SOFTWARE_REDIS,
    NXL_SOFTWARE_VALKEY,
    NXL_SOFTWARE_KEYDB
};

enum nxl_server_role {
    NXL_ROLE_UNKNOWN,
    NXL_ROLE_PRIMARY,
    NXL_ROLE_REPLICA,
    NXL_ROLE_ACTIVE_REPLICA /* of KeyDB: it takes writes */
};

/* What is checked of a server's certificate: the URL's verify. */
enum nxl_tls_verify {
    NXL_TLS_VERIFY_FULL = 0, /* that a trusted CA signed it, and its names */
    NXL_TLS_VERIFY_CA = 1,   /* HARM: any certificate of that CA will do */
    NXL_TLS_VERIFY_NONE = 2  /* HARM: anybody can be in between */
};

/* What nxl_client_describe_server() prints, for programs. What a server says
 * about itself is known after the first operation, and kept when the connection
 * is lost. Members may be added at the end. */
typedef struct nxl_server_facts {
    size_t size;    /* sizeof(nxl_server_facts) of the caller, set by _INIT */
    int state;      /* enum nxl_server_state */
    char url[512];  /* scheme, address and database; no user or password */
    int software;   /* enum nxl_server_software */
    int version[3]; /* 7, 0, 15; zeros: unknown */
    int role;       /* enum nxl_server_role */
    bool cluster;   /* a node of a Redis Cluster */
    /* UP: the lock commands, "SET NX PX + scripts", once one has worked on the
     * connection; and whether the server runs scripts, as far as is known. */
    char strategy[128];
    bool scripts;
    /* Whether it votes (a single server: grants locks), and if not, why, for
     * people. */
    bool votes;
    char no_vote[512];
    bool guarded; /* guard_restarts is on for it */
    /* DOWN: why the last connection failed, for people; and whether because the
     * server is a Sentinel, or lacks the database of the URL. */
    char error[512];
    bool sentinel;
    bool no_database;
    int64_t timeout_ms; /* the client's limit for the I/O of one call */
    int64_t min_ttl_ms; /* the shortest and longest lease of the client */
    int64_t max_ttl_ms;
    /* The connection, while UP: by TLS, and which version ("TLSv1.3"); what is
     * checked (enum nxl_tls_verify); when the first certificate of the server's
     * chain, and the client's own, expires, as Unix times (0: none, unknown);
     * and whether the server is on this machine (unix socket, loopback). */
    bool tls;
    char tls_version[16];
    int tls_verify;
    int64_t certificate_ends_s;
    int64_t own_certificate_ends_s;
    bool local;
    /* On the connection that is up, or else on the last one: the server let us
     * in, because it accepted the password or demands none. */
    bool logged_in;
    bool sends_password; /* one is sent to it, whatever its source */
    /* UP: whether locks wait there in line, first come, first served, as far as
     * is known (for sure after the first wait); and how they wait, for people:
     * "in line", "by polling (poll=1)". */
    bool in_line;
    char waiting[512];
    /* No lock is granted there, whatever its name, even by a single server: an
     * active replica, or a Redis Cluster node that does not serve all slots.
     * no_vote says which. */
    bool unfit;
    /* Once work was begun there (nxl_once_begin()): how the server may lose the
     * records of it, for people; "": it keeps them, or that is not known. */
    char records[512];
    /* guard_failover is on for it; how many replicas are connected to it. */
    bool failover_guarded;
    int replicas;
    /* How long it grants no lock yet, because it restarted or was promoted
     * (guard_restarts, guard_failover); no_vote says why and since when. 0: it
     * votes, or has no vote for another reason. */
    int64_t quarantine_ms;
    /* How many Sentinels can be asked: those that the URL lists, and behind a
     * host name each of its addresses (0: the URL names no Sentinels); how
     * many of them name this server as the primary, as far as they answer; and
     * how many milliseconds ago a majority of all Sentinels of the service did
     * (-1: none has). */
    int sentinels;
    int sentinels_naming;
    int64_t confirmed_ms;
} nxl_server_facts;

/* clang-format off */
#define NXL_SERVER_FACTS_INIT { sizeof(nxl_server_facts), 0, "", 0, \
                                { 0, 0, 0 }, 0, 0, "", 0, 0, "", 0, "", 0, 0, \
                                0, 0, 0, 0, "", 0, 0, 0, 0, 0, 0, 0, "", 0, \
                                "", 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Fills in *facts for one server, numbered from 0 in the order of the URLs. No
 * I/O; any thread may call it. NXL_OK, NXL_E_INVALID (no such server, or
 * facts->size is not set), NXL_E_FORKED. */
int nxl_client_server_facts(
    nxl_client *client, size_t server, nxl_server_facts *facts);

/* Returns the prefix from the options or URL, or ""; valid as long as the
 * client. NULL: "". No I/O. */
const char *nxl_client_prefix(const nxl_client *client);

/* Returns the client's max_ttl_ms. NULL: 0. No I/O. */
int64_t nxl_client_max_ttl_ms(const nxl_client *client);

/* Returns how many lock handles of this client hold that name. The name has
 * length bytes and comes without the prefix; a handle counts if nxl_lock_held()
 * is true for it. Locks are not reentrant: a second handle waits for the first
 * one. So code that may be called with the lock held can find that out before
 * it waits. It says nothing about other clients. Looks at each handle of the
 * client; any thread may call it. NULL, or in a fork()ed child: 0. No I/O. */
size_t nxl_client_holds(nxl_client *client, const char *name, size_t length);

/* The number of buckets of an nxl_histogram. */
#define NXL_HISTOGRAM_BUCKETS 24

/* Durations, counted by their length. The buckets are not cumulative: bucket i
 * has those that took longer than nxl_histogram_limit_ms(i - 1) and at most
 * nxl_histogram_limit_ms(i), the last one all that took longer still. The
 * limits never change: 1, 2, 5, 10, 20, 50 ms and so on, up to 10000 and 20000
 * seconds. */
typedef struct nxl_histogram {
    uint64_t count;                          /* the number of durations */
    uint64_t sum_ns;                         /* their total, in nanoseconds */
    uint64_t buckets[NXL_HISTOGRAM_BUCKETS]; /* how many are in each */
} nxl_histogram;

/* Returns the longest duration that a bucket counts, numbered from 0. 0: the
 * last bucket, which has no limit, or there is no such bucket. */
uint64_t nxl_histogram_limit_ms(size_t bucket);

/* Counters of a client since it was created. All but least_slack_ms,
 * quarantine_ms and sentinels_naming only grow. nxl_once_begin() counts as an
 * acquire, except with NXL_ONCE_LOOK. Calls that are refused for a wrong
 * argument or a wrong order are not counted. docs/operating.md shows how to
 * export the counters. */
typedef struct nxl_stats {
    /* Acquires that are over, by their result. Their sum is wait.count. A grant
     * that expired before its event was taken (NXL_LOST) counts as a grant. */
    uint64_t grants;      /* NXL_OK */
    uint64_t busy;        /* NXL_BUSY */
    uint64_t unknown;     /* NXL_UNKNOWN */
    uint64_t unreachable; /* NXL_E_UNREACHABLE: no connection or a timeout */
    uint64_t refused;     /* NXL_E_DENIED, NXL_E_REFUSED, any other error; and
                           * NXL_LOST: the grant came too late */
    uint64_t cancelled;   /* NXL_CANCELLED */
    uint64_t recorded;    /* NXL_DONE, NXL_DOUBT, NXL_MISMATCH: ended by what
                           * the record of the work said */

    uint64_t attempts;  /* to acquire; a wait makes several, in line one or
                         * two */
    uint64_t waits;     /* acquires that waited in line or took more than one
                         * attempt */
    nxl_histogram wait; /* how long acquires took, whatever their result */
    nxl_histogram hold; /* how long locks were held; added when a hold ends */

    uint64_t releases;   /* releases that ended with NXL_OK */
    uint64_t unanswered; /* extends, releases and nxl_once_tell() that ended
                          * with NXL_UNKNOWN */

    /* Locks with options.renew. */
    uint64_t renewals;         /* that succeeded */
    uint64_t renewal_failures; /* that failed and were tried again */
    uint64_t least_slack_ms;   /* the shortest time left of a lease when it was
                                * renewed; 0 before the first renewal */
    uint64_t losses;           /* locks lost, for any reason; by reason: */
    uint64_t losses_expired;   /* NXL_LOSS_EXPIRED */
    uint64_t losses_removed;   /* NXL_LOSS_REMOVED */
    uint64_t losses_taken;     /* NXL_LOSS_TAKEN */
    uint64_t losses_unreachable; /* NXL_LOSS_UNREACHABLE */

    /* Connections for commands; the one on which a client waits in line does
     * not count. */
    uint64_t connections; /* that were made */
    uint64_t reconnects;  /* of these, all but the first one to each server */
    uint64_t cleanups;    /* tokens of cancelled requests that were found on a
                           * server and removed */

    /* Failovers that this client has seen: a server at an address was promoted
     * after the client had been connected there. Without guard_failover, and
     * with one server, none may be seen. */
    uint64_t failovers;
    uint64_t quarantine_ms; /* how long a server grants no lock yet, because it
                             * restarted or was promoted; of several servers
                             * the longest. 0: all do */

    /* With a URL that names Sentinels. */
    uint64_t unconfirmed;      /* grants, extensions, adoptions, reports of work
                                * (nxl_once_tell()) and messages to waiters that
                                * did not count, or were not sent: no majority
                                * of the Sentinels had named the server in the
                                * 2 s before */
    uint64_t sentinels_naming; /* how many name the server now */
} nxl_stats;

/* Copies the counters into *stats; size is sizeof(nxl_stats) as the caller was
 * compiled, because members may be added at the end (those that this library
 * does not know are set to 0). No I/O; any thread may call it. NXL_OK,
 * NXL_E_INVALID, NXL_E_FORKED. */
int nxl_client_stats(nxl_client *client, nxl_stats *stats, size_t size);

/* Ends every waiting acquire, in any thread, with NXL_CANCELLED; if none is
 * waiting, the next one that starts. May be called from a signal handler, so
 * that a signal can end nxl_lock_acquire(). Does not block. Does nothing in a
 * fork()ed child or for NULL. */
void nxl_client_interrupt(nxl_client *client);

/* ------------------------------------------------------------------- lock
 *
 * A lock handle is one contender for one name. It serves any number of acquire
 * and release cycles. Memory is allocated for the first cycle, when more locks
 * are held at once than before, and after errors; other cycles allocate none.
 * Without memory an acquire fails before anything is sent. A release, and the
 * cleanup of a lock, need none. */

/* The options of a lock. Zero in any member but size means its default; see
 * nxl_client_options. */
typedef struct nxl_lock_options {
    size_t size;
    /* The lease: the lock expires this long after the server applied the
     * acquire, unless it is extended. Default 30000, or max_ttl_ms if that is
     * less. At most max_ttl_ms, and long enough that 10 ms remain after the
     * drift margin. */
    int64_t ttl_ms;
    /* Tells people who holds the lock: printable ASCII without spaces, at most
     * 128 bytes, for example "db7:41233:backup". Default none. */
    const char *label;
    /* Length of a binary name. Default: up to its zero byte. */
    size_t name_length;
    /* Returned in events; the library never uses it. */
    void *user;
    /* Delays between attempts where waiters poll (several servers;
     * nxl_client_options.poll; servers without scripts). They have no effect
     * in line. The backoff doubles from retry_min_ms (default 10) to
     * retry_max_ms (default 250, or retry_min_ms if that is more). Each delay
     * is drawn at random from its upper half and never goes beyond the end of
     * the holder's lease. Over several servers, rounds that are lost to other
     * clients do not double it: after the n-th of them it is retry_min_ms for
     * n = 1 and then n + 5 steps, up to retry_max_ms. A step is
     * retry_min_ms / 4, or five times as long as the round took if that is
     * more. Both 1 ... 3600000. HARM: with a small retry_max_ms every waiter
     * loads the server. */
    int64_t retry_min_ms;
    int64_t retry_max_ms;
    /* 1: each acquire gets a fencing token, see nxl_lock_fence(). Default 0.
     * All programs that lock this name must do so, otherwise these numbers do
     * not tell who came last; nxlock run does, nxlock acquire does not. Needs
     * scripts (otherwise NXL_E_UNSUPPORTED or NXL_E_DENIED);
     * NXL_E_INVALID with NXL_SCHEME_TIMESTAMP. Over several servers, a grant
     * whose number does not reach a majority is undone and the wait continues;
     * when it ends, or when too many servers refuse the number for good, the
     * result is NXL_UNKNOWN (NXL_LOST if the lock was gone by then). */
    int fence;
    /* 1: renew the lease until the lock is released: every third of ttl_ms,
     * and soon again if a renewal fails. The event-loop API renews in pollfds
     * and process; the blocking API in one thread per client, which blocks all
     * signals, starts with the first such lock and ends within 250 ms of the
     * last one's release. If renewal fails, the lock is lost before its
     * deadline: see nxl_lock_loss(). HARM: a process that hangs keeps its
     * locks; see max_hold_ms. Default 0: held for ttl_ms, or as extended. */
    int renew;
    /* The lock stays taken for at least this long after the grant. An earlier
     * release keeps the key for the rest of it; if the handle is freed or the
     * holder dies, the key stays to the end of the lease, which is at least
     * this long at first. For jobs started on several machines
     * whose clocks differ by less than this. At most max_ttl_ms; default 0. A
     * release after nxl_lock_adopt() ignores it. With NXL_SCHEME_TIMESTAMP and
     * on servers before 2.6 a release leaves the key to the end of the lease.
     */
    int64_t min_hold_ms;
    /* With renew: the lock is lost this long after it was granted or adopted,
     * even if nxl_lock_extend() or the adopted lease would allow more; or up to
     * ttl_ms / 12 plus 0.5 s earlier, because no lease is extended beyond it.
     * At least ttl_ms and min_hold_ms. Default 0: no limit. No extend requests
     * a longer TTL, but the key of an adopted lock keeps the TTL it had; and
     * with NXL_SCHEME_TIMESTAMP where WATCH is refused, each extend makes the
     * lease at least max_ttl_ms long. If such a lock is not released, it stays
     * taken for so long after the last extend, which may be longer than
     * max_hold_ms.
     */
    int64_t max_hold_ms;
    /* Permits: above 1, the lock may be held by several at once, for example by
     * 4 of these jobs. Each holder takes weight permits, and while it holds
     * them, no more than permits are held in all: of holders that give
     * different numbers the smallest counts. Default 0, which is the same as 1:
     * an exclusive lock. At most 2147483647. All kinds of locks of a name
     * exclude each other, and wait in one line, first come, first served: who
     * does not fit is not passed by those behind. Each holder has its own
     * lease, which ends, or is renewed and released, without the others.
     * min_hold_ms limits how often it is held: permits times in min_hold_ms.
     * Needs scripts, and Redis 3.2 or later, or Valkey: otherwise an acquire
     * ends with NXL_E_UNSUPPORTED or NXL_E_DENIED. nxl_lock_new() returns
     * NXL_E_UNSUPPORTED with several servers, whose majorities would grant more
     * permits than there are, and NXL_E_INVALID with fence or
     * NXL_SCHEME_TIMESTAMP. With nxl_client_options.poll there is no line: who
     * needs many permits, or the lock alone, may starve. HARM: after a failover
     * or a restart that loses holders, more permits may be held, until the
     * leases of those that were lost are over; see guard_failover and
     * guard_restarts. */
    int64_t permits;
    /* With permits: how many of them each holder takes. Default 1; at most
     * permits. */
    int64_t weight;
    /* 1: a shared lock, as of readers: it is held together with any number of
     * others that share it, but not together with an exclusive lock, as of a
     * writer. The same as permits without a limit; so it also counts as a
     * holder of one permit where others have a limit. Default 0.
     * NXL_E_INVALID together with permits, and otherwise as with permits; but
     * several servers can be used, where a writer is held by a majority of them
     * and so is each reader; and on one server fence: all who hold the lock
     * together have one fencing token (NXL_E_UNSUPPORTED with several). Where
     * there is no line, readers are held back for a moment once a writer has
     * lost some attempts to them, so that neither starves. */
    int shared;
} nxl_lock_options;

/* clang-format off */
#define NXL_LOCK_OPTIONS_INIT { sizeof(nxl_lock_options), \
                                0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, \
                                0, 0, 0 }
/* clang-format on */
/* Same as NXL_LOCK_OPTIONS_INIT, for C++. */
void nxl_lock_options_init(nxl_lock_options *options);

/* As wait_ms: no limit. */
#define NXL_FOREVER (-1)

/* The longest name in bytes, including the prefix. */
#define NXL_NAME_MAX 65536

/* Creates a lock handle for name, 1 ... NXL_NAME_MAX bytes: of any value with
 * options.name_length, otherwise up to the zero byte. options may be NULL. The
 * key on the server is exactly the prefix and the name. Neither blocks nor
 * sends. NXL_OK: the caller owns *lock and frees it with nxl_lock_free().
 * Otherwise *lock is NULL, and nxl_client_errmsg() says why: NXL_E_INVALID,
 * NXL_E_UNSUPPORTED (see options.permits), NXL_E_NOMEM, NXL_E_FORKED. */
int nxl_lock_new(nxl_lock **lock, nxl_client *client, const char *name,
    const nxl_lock_options *options) NXL_MUST_USE;

/* The most names of one handle. */
#define NXL_NAMES_MAX 64

/* Creates one handle for count names, 2 ... NXL_NAMES_MAX, no two equal, that
 * are locked together: for work that needs all of them, such as a transfer
 * between two accounts. Name i has lengths[i] bytes; if lengths is NULL, each
 * ends with its zero byte. options (may be NULL) apply to all names alike, so
 * all are exclusive, or shared, or permits; name_length must be 0.
 *
 * The calls are those of any other handle, each about all names:
 *
 * nxl_lock_acquire(): takes the names one after the other in the order of the
 * bytes of their keys, whatever the order in which they are given here.
 * Therefore programs that lock overlapping sets of names, and several at once
 * only in this way, never wait for each other in a circle; a program that takes
 * a second lock by another handle has to see to that by itself. Each name is
 * waited for in its own line, first come, first served, and wait_ms counts for
 * all together. Meanwhile the names that come before are held and renewed:
 * whoever holds A and waits for B keeps A from all others. That is the price of
 * not starving, so use few names and hold them briefly. wait_ms = 0 takes all
 * or none. If a name that was granted is lost while others are waited for, or
 * one has to be asked for anew (a request was not answered, or answered too
 * late; several servers: a round was lost), all are given back and taken again
 * with a fresh token, within the same wait. With any result but NXL_OK nothing
 * is held. NXL_BUSY: another holder has one of the names.
 *
 * nxl_lock_held(): all names are held. nxl_lock_deadline() is the earliest of
 * them; without options.renew it may be up to half of ttl_ms earlier than after
 * the acquire of one name, if some had to be waited for. options.renew: all are
 * renewed together. If one is lost, the handle is lost: its event and
 * nxl_lock_loss() come once and say which name. The other names are renewed
 * until nxl_lock_release() or nxl_lock_free(), because the program is still
 * stopping its work. nxl_lock_extend(), nxl_lock_release(): send to all names
 * in one write. NXL_LOST: one of the names is lost (then the others are not
 * extended, but released). NXL_UNKNOWN: there was no answer for one of them.
 * min_hold_ms counts for each name from when it was granted, max_hold_ms from
 * when the last one was. nxl_lock_token(): all names have this token.
 * nxl_lock_adopt() adopts all under it; NXL_LOST: one of them is free or has
 * another token, and none is adopted. nxl_lock_errmsg() says which name it is
 * about. nxl_lock_fence() is 0: each name has a fencing token of its own, see
 * nxl_lock_fence_of().
 *
 * NXL_E_INVALID: nxl_lock_inspect(), nxl_lock_break(), nxl_once_begin() and the
 * other functions of once: use a handle of one name. nxl_client_stats() counts
 * the call as one, but the attempts and renewals of each name.
 *
 * Neither blocks nor sends. NXL_OK: the caller owns *lock and frees it with
 * nxl_lock_free(). Otherwise *lock is NULL, and nxl_client_errmsg() says why:
 * NXL_E_INVALID (also if two names are equal), NXL_E_UNSUPPORTED (see
 * options.permits), NXL_E_NOMEM, NXL_E_FORKED. */
int nxl_lock_new_many(nxl_lock **lock, nxl_client *client,
    const char *const *names, const size_t *lengths, size_t count,
    const nxl_lock_options *options) NXL_MUST_USE;

/* Returns how many names the handle has; 1 for one of nxl_lock_new(). NULL: 0.
 * No I/O. */
size_t nxl_lock_names(const nxl_lock *lock);

/* Returns name i of the handle, from 0, in the order in which the names were
 * given, without the prefix; *length, if not NULL, is its length.
 * Zero-terminated, and valid as long as the handle. NULL: there is no name i.
 * No I/O. */
const char *nxl_lock_name(const nxl_lock *lock, size_t i, size_t *length);

/* Frees the lock handle; NULL is allowed. A held lock is released without
 * waiting for the answer; the key of an expired lease is left to its TTL; an
 * operation in progress is cancelled and undone. Does not block. Does nothing
 * in a fork()ed child. */
void nxl_lock_free(nxl_lock *lock);

/* Acquires the lock. Sends SET key token NX PX ttl at once (options.permits and
 * shared: a script). If the lock is busy, waits for wait_ms: 0 tries once,
 * NXL_FOREVER never gives up. It waits in line, first come, first served, with
 * one server that allows it (nxl_client_options.poll; a script of
 * docs/wire.md); elsewhere it retries (SET and PTTL) with growing delays, and
 * the order is up to chance. nxl_lock_acquire(3) says which errors are retried.
 * The lease of a lock that was handed over is longer by up to a tenth of
 * ttl_ms, or 100 ms if that is more.
 *
 * Blocks until start + max(wait_ms, timeout_ms) at most, with wait_replicas or
 * wait_aof for up to timeout_ms longer; see the same page.
 *
 * NXL_OK: held until nxl_lock_deadline(). NXL_BUSY: another holder has it, or
 * the key holds something else (nxl_lock_inspect() tells). NXL_UNKNOWN: not
 * held; see NXL_UNKNOWN. Also if the lock was busy, and the last request was
 * not answered: the holder may have released it since. NXL_LOST: granted, but
 * the lease expired before this call could return; not held. NXL_CANCELLED: not
 * held. NXL_E_UNREACHABLE, _DENIED, _REFUSED, _NOT_REDIS, _UNSUPPORTED: not
 * held, and the server applied nothing (options.shared with fence: if only the
 * number was refused, the grant is taken back, as by nxl_lock_free()).
 * NXL_E_INVALID: already held, or an operation is in progress. */
int nxl_lock_acquire(nxl_lock *lock, int64_t wait_ms) NXL_MUST_USE;

/* Extends the lease of a held lock to at least ttl_ms from now; 0 means the
 * lock's own ttl_ms. Never shortens it; a key that somebody made permanent
 * stays permanent (with wait_replicas the lock is lost then: see there). Sends
 * one script (compare, PTTL, PEXPIRE).
 *
 * Blocks for timeout_ms at most, and not beyond the lock's deadline.
 * NXL_OK: the deadline moved. NXL_LOST: no longer held. NXL_UNKNOWN,
 * NXL_CANCELLED or an error: the old deadline remains valid, and it is safe to
 * try again. */
int nxl_lock_extend(nxl_lock *lock, int64_t ttl_ms) NXL_MUST_USE;

/* Releases a held lock: sends one script that deletes the key if it still
 * contains this lock's token, or removes the token where others hold it too.
 * nxl_lock_held() is false from this call on, whatever the result. After the
 * deadline nothing is sent, because another process may have adopted the lock:
 * the key is left to its TTL.
 *
 * Blocks for timeout_ms at most. NXL_OK: held until now. NXL_LOST: before this
 * call its deadline had passed, or it had been lost or removed, whatever the
 * servers still say. NXL_UNKNOWN: no answer; free now or after its TTL. Other
 * errors: the server refused; it expires by its TTL. NXL_E_INVALID: this handle
 * holds nothing. */
int nxl_lock_release(nxl_lock *lock) NXL_MUST_USE;

/* Takes over a lock that is held under token (nxl_lock_token()), usually by
 * another process. This handle then holds it until the current lease ends
 * (max_ttl_ms if the key never expires) and may extend and release it.
 * HARM: neither owner learns what the other does, so they must communicate. A
 * release by the former owner before its own deadline, or freeing its handle or
 * client, takes the lock away from the new one; after that deadline it sends
 * nothing for this token. An adopted lock has no fencing token and no
 * min_hold_ms. With wait_replicas it does not wait for replicas, because it
 * writes nothing; the next extension does.
 *
 * Blocks for timeout_ms at most; sends one script (GETRANGE, PTTL, EXISTS).
 * The token says whether the lock is held by several (options.permits, shared),
 * whatever this handle's options. NXL_OK: held. NXL_LOST: the lock is free or
 * has another token. NXL_E_INVALID: not a token, or this handle already holds a
 * lock. NXL_E_NOMEM: nothing was sent. Other errors as nxl_lock_acquire(). */
int nxl_lock_adopt(nxl_lock *lock, const char *token) NXL_MUST_USE;

/* Cancels the operation in progress on this lock, from any thread: a blocked
 * call returns NXL_CANCELLED, a started one gets that event, and an acquire is
 * undone. A release, or nxl_once_tell(), is not cancelled. A cancelled
 * nxl_once_forget() may have been carried out. If nothing is in progress,
 * nothing happens, so a cancel just before another thread calls
 * nxl_lock_acquire() has no effect; to stop such a thread reliably, use
 * nxl_lock_interrupt(). Does not block. NXL_OK, NXL_E_FORKED, NXL_E_INVALID
 * (NULL, or its client has been freed). */
int nxl_lock_cancel(nxl_lock *lock);

/* Cancels the acquire in progress on this lock, from any thread; if there is
 * none, the next acquire on this handle returns NXL_CANCELLED at once and sends
 * nothing. So it cannot come too early. Exactly one acquire is cancelled,
 * however often this is called before it. An acquire that was already granted
 * is not cancelled, nor any other operation; the next acquire is then cancelled
 * instead. To reuse the handle for other work, expect one NXL_CANCELLED, or
 * create a new one. Does not block. Not for signal handlers (use
 * nxl_client_interrupt() there). NXL_OK, NXL_E_FORKED, NXL_E_INVALID (NULL, or
 * its client has been freed). */
int nxl_lock_interrupt(nxl_lock *lock);

/* Returns true while this process may rely on the lock: it is held and the
 * local deadline has not been reached. Reads a clock, no I/O; any thread may
 * call it. False in a fork()ed child. */
bool nxl_lock_held(const nxl_lock *lock);

/* Returns the milliseconds until the deadline, rounded down; 0 if not held. */
int64_t nxl_lock_remaining_ms(const nxl_lock *lock);

/* How a lock with options.renew was lost. */
enum nxl_loss {
    NXL_LOSS_NONE = 0, /* not lost, or options.renew is not set */
    /* The lease expired here before it was renewed: the process was stopped or
     * its loop was late, or max_hold_ms is over. */
    NXL_LOSS_EXPIRED = 1,
    /* The key disappeared early: nxlock unlock --force, DEL, FLUSHALL,
     * eviction, a failover, a restart without data. */
    NXL_LOSS_REMOVED = 2,
    /* The key has another value: it was removed, and another holder took it. */
    NXL_LOSS_TAKEN = 3,
    /* It could not be renewed: servers did not answer, or refused. */
    NXL_LOSS_UNREACHABLE = 4
};

/* Returns how the current or last hold of a lock with options.renew was lost,
 * an enum nxl_loss, and writes the reason, for a person, into text (may be
 * NULL), zero-terminated and cut to size. Reset by the next grant.
 * nxl_lock_held() is false before this reports a loss; the event NXL_OP_HOLD
 * reports it too. No I/O; any thread may call it. */
int nxl_lock_loss(const nxl_lock *lock, char *text, size_t size);

/* Returns the deadline as nxl_now_ns(); 0 if not held. It is counted from
 * before the request was sent, minus the drift margin (drift_ppm of the TTL
 * plus 2 ms), so it comes before the server's. */
uint64_t nxl_lock_deadline(const nxl_lock *lock);

/* Returns the library's clock: CLOCK_BOOTTIME, which counts time spent
 * suspended, or CLOCK_MONOTONIC where it is refused. */
uint64_t nxl_now_ns(void);

/* Returns the token under which the lock is held or was last requested: UUID or
 * UUID@label, with options.permits UUID+weight/permits or
 * UUID+weight/permits@label (shared: UUID+1/0), printable without spaces; ""
 * before the first acquire. Valid until the next acquire or adopt on this
 * handle. Keep it secret: whoever knows it can release the lock. */
const char *nxl_lock_token(const nxl_lock *lock);

/* Returns the fencing token of the last granted acquire (options.fence): a
 * number above 0, greater than that of every earlier grant of this name. Pass
 * it to the resource that the lock protects, which must refuse a number below
 * the greatest it has seen: then a holder that was paused beyond its lease does
 * no harm. 0: none requested, nothing granted yet, or adopted (its first holder
 * has the number). No I/O; any thread may call it.
 *
 * Holders of a shared lock (options.shared) that hold it at the same time, or
 * one after the other without a moment when nobody does, have the same number:
 * greater than that of the writer before them, less than that of the next one.
 * So a reader that was paused is refused only after a writer has come. A handle
 * of several names has no single number: 0, see nxl_lock_fence_of().
 *
 * The number comes from a counter key on the server, {name}:f (name:f if name
 * has a hash tag), which must not be deleted: max(last + 1, the server's clock
 * in microseconds). What it depends on if the counter is lost, and how several
 * servers agree: nxl_lock_fence(3) and docs/wire.md. */
uint64_t nxl_lock_fence(const nxl_lock *lock);

/* Returns the fencing token of name i, counted as by nxl_lock_name(): each name
 * of a handle of several has its own, to be passed to what that name protects.
 * Of one name it is nxl_lock_fence(). 0: as there, or there is no name i. */
uint64_t nxl_lock_fence_of(const nxl_lock *lock, size_t i);

/* Returns what the last operation on this lock ran into, for a person, or if
 * nothing was wrong then, why a lock with renew was lost since; else "". As
 * nxl_client_errmsg(), but valid until the next call on this lock. Never empty
 * after an operation on this lock that did not return NXL_OK, so it can be
 * printed alone. (Functions without I/O, such as nxl_lock_holder(), write no
 * message.) */
const char *nxl_lock_errmsg(const nxl_lock *lock);

/* As nxl_lock_errmsg() for one server, numbered from 0 in the order of the
 * URLs: its error, or that it did not answer; "" if it answered or was not
 * asked. Each thread has its own copy, valid until that thread calls this
 * function again. No I/O. */
const char *nxl_lock_errmsg_at(const nxl_lock *lock, size_t server);

/* Who holds a lock, and for how long. Start from NXL_HOLDER_INIT; the library
 * fills in as many bytes as size says, and no more than it knows. Later
 * versions add members at the end. A size that does not reach up to label is
 * NXL_E_INVALID. */
typedef struct nxl_holder {
    size_t size; /* sizeof(nxl_holder) of the caller, set by _INIT */
    /* The key's value, zero-terminated; a token if the holder uses this
     * library's format. */
    char value[512];
    size_t value_length; /* it may contain zero bytes */
    bool truncated;      /* the value is longer than 511 bytes */
    bool ours;           /* it is the token under which this handle holds the
                          * lock, and the deadline has not passed */
    /* The label in value, or NULL; points into value. */
    const char *label;
    /* Milliseconds until the lock expires by the server's clock; -1: never.
     * For a Unix time (see below) 0 means that it has passed, and the next
     * waiter takes the lock over. */
    int64_t left_ms;
    /* If the value is a Unix time, as written by programs that lock with SETNX
     * and GETSET (NXL_SCHEME_TIMESTAMP): the second when it ends. Otherwise 0.
     */
    int64_t value_ends_s;
    /* If several may hold the lock: how many permits this holder takes, and how
     * many may be held in all while it does; 0: no limit (a shared lock). Both
     * 0: it is held alone. */
    int64_t weight;
    int64_t permits;
} nxl_holder;

/* clang-format off */
#define NXL_HOLDER_INIT { sizeof(nxl_holder), "", 0, false, false, NULL, 0, 0, \
                          0, 0 }
/* clang-format on */

/* Returns true if the lock is held under that token. Compares the whole value,
 * or the part after the Unix time in this library's timestamp format. NULL, or
 * a size that is too small, matches nothing. No I/O. */
bool nxl_holder_is(const nxl_holder *holder, const char *token);

/* Asks the servers who holds this lock, which need not be this handle. Of
 * several holders (options.permits, shared) *holder is the one whose lease ends
 * last, and nxl_lock_holder_at() has the others. holder may be NULL. Blocks for
 * timeout_ms at most; sends one script (GETRANGE, PTTL, EXISTS). NXL_OK:
 * *holder is filled in. NXL_FREE: the lock is free. NXL_E_INVALID: holder->size
 * is too small; nothing was sent. NXL_E_WRONG_TYPE: the key holds something
 * that is no lock. NXL_E_DENIED also if the key is no string, and a script that
 * would say what it is is denied. Other errors as nxl_lock_acquire(). Over
 * several servers,
 * NXL_FREE needs a majority; NXL_OK needs one holder, and so many servers that
 * say "held" or do not answer that no majority can say "free".
 * nxl_lock_holder_at() shows each server. */
int nxl_lock_inspect(nxl_lock *lock, nxl_holder *holder) NXL_MUST_USE;

/* Removes the lock that nxl_lock_inspect() showed, if it is still there: a
 * compare-and-delete of seen->value. If this handle itself holds it, the lease
 * ends with this call, as by a release; after its deadline nothing is sent and
 * the result is NXL_LOST. HARM: the holder may be working, and believes it
 * holds the lock until its own deadline. Blocks for timeout_ms at most.
 * NXL_OK: removed. NXL_FREE: the key no longer has that value. NXL_UNKNOWN: no
 * answer. NXL_E_INVALID: the value is truncated or empty, or seen->size is too
 * small. */
int nxl_lock_break(nxl_lock *lock, const nxl_holder *seen) NXL_MUST_USE;

/* Copies what the last nxl_lock_inspect() found on one server, numbered from 0
 * in the order of the URLs. index counts the holders there, from 0, those whose
 * leases end last first; of more than 1000 holders the others are not shown.
 * NXL_OK:
 * *holder is filled in. NXL_FREE: no holder of that index there; at index 0:
 * the key does not exist. NXL_E_UNREACHABLE, _DENIED, ...: that server's error,
 * whatever the index; nxl_lock_errmsg_at() has the details. NXL_E_INVALID: the
 * last operation on this lock was not a completed inspection, no such server,
 * or holder->size is too small. NXL_E_FORKED. No I/O. */
int nxl_lock_holder_at(const nxl_lock *lock, size_t server, size_t index,
    nxl_holder *holder) NXL_MUST_USE;

/* ------------------------------------------------------------------- once
 *
 * A lock says that nobody else is at work; a record beside it says whether the
 * work was done. For work that must not be done twice, such as a payment:
 *
 *     switch (nxl_once_begin(lock, &options, 5000)) {
 *     case NXL_OK:
 *         paid = nxl_lock_held(lock) && charge(...);
 *         if (nxl_once_tell(lock, paid ? NXL_ONCE_DONE : NXL_ONCE_DOUBT, 0,
 *                 receipt, strlen(receipt)) != NXL_OK)
 *             ... say it again, or report a doubt ...
 *         break;
 *     case NXL_DONE:
 *         ... nxl_once_record() has the receipt ...
 *         break;
 *     case NXL_DOUBT:
 *         ... a person, or the payment provider, has to say ...
 *         break;
 *     }
 *
 * The record is a key of its own on the server, {name}:once (name::once if the
 * name has a hash tag). It says who began, when, and how it ended. As long
 * as the lock has the token of the one who began, the work is in progress;
 * after that it is in doubt, until somebody who knows says what happened. No
 * clock ends a doubt. The promise is as long as the server's memory:
 * docs/guarantees.md says what to configure, and what is never promised.
 *
 * One server only, Redis 3.2 or later, or Valkey, with scripts; otherwise
 * NXL_E_UNSUPPORTED. */

/* What to do about work that is in doubt. */
enum nxl_once_mode {
    NXL_ONCE_HALT = 0, /* do not begin: NXL_DOUBT */
    /* Begin. nxl_once_record() then has doubts > 0. HARM: the work may be done
     * twice; only for work that may be repeated, for example because the
     * payment provider recognizes the name. */
    NXL_ONCE_RETRY = 1,
    NXL_ONCE_LOOK = 2 /* begin nothing: only read the record */
};

/* The state of work, as its record has it and as nxl_once_tell() sets it: DOUBT
 * to CLEAR can be told, NONE to FAILED are found in a record. */
enum nxl_once_state {
    NXL_ONCE_NONE = 0, /* there is no record */
    /* In progress while the lock has its token; after that in doubt. */
    NXL_ONCE_BEGUN = 1,
    NXL_ONCE_DOUBT = 2, /* it may have happened or not */
    NXL_ONCE_DONE = 3,  /* it was done */
    /* Nothing happened, so that it may be begun again. HARM: if something did
     * happen, it will happen twice. If unsure, tell DOUBT. Earlier attempts
     * that are in doubt remain so; if this handle began the work, the record is
     * about the last doubtful attempt again. */
    NXL_ONCE_FAILED = 4,
    /* Clears the doubt about the earlier attempts: they did not happen. The
     * work goes on, so the record is BEGUN; the lock must still be held. */
    NXL_ONCE_CLEAR = 5
};

/* The longest result that is kept, in bytes, and the length to give for one
 * that is not. */
#define NXL_ONCE_RESULT_MAX 1048576
#define NXL_ONCE_NOT_KEPT ((size_t)-1)

/* The options of nxl_once_begin(). Zero in any member but size means its
 * default. */
typedef struct nxl_once_options {
    size_t size;
    int mode; /* an enum nxl_once_mode */
    /* What the work is about, for example the amount: one word of printable
     * ASCII, at most 128 bytes. A record with another one, or none, does not
     * match (NXL_MISMATCH), unless that attempt failed. Default none. */
    const char *fingerprint;
    /* How long a record is kept after NXL_ONCE_DONE or _FAILED. Default
     * 2592000000 (30 days); at least the lock's ttl_ms, at most a year. After
     * that the work may be begun again: choose it longer than the work may be
     * queued again. A record that was only begun, or is in
     * doubt, is kept until somebody removes it. */
    int64_t keep_ms;
} nxl_once_options;

/* clang-format off */
#define NXL_ONCE_OPTIONS_INIT { sizeof(nxl_once_options), 0, NULL, 0 }
/* clang-format on */

/* A record, as an operation has found or written it. The texts belong to the
 * lock and are valid until its next operation. Times are Unix times in
 * milliseconds, by the server's clock; 0: not yet. */
typedef struct nxl_record {
    size_t size;       /* sizeof(nxl_record) of the caller, set by _INIT */
    int state;         /* an enum nxl_once_state */
    const char *token; /* of the attempt that the record is about; "": none */
    const char *label; /* the label in it, or "" */
    uint64_t fence;    /* its fencing token */
    int64_t attempt;   /* its number, from 1 */
    int64_t doubts;    /* earlier attempts that are in doubt */
    int64_t late;      /* how often one said DONE after another had begun */
    int64_t first_ms;  /* when the first attempt began */
    int64_t since_ms;  /* when this attempt began */
    int64_t ended_ms;  /* when its verdict came */
    int code;          /* as given with the verdict */
    const char *fingerprint; /* or "" */
    const char *result;      /* after NXL_DONE, otherwise NULL. NULL, too: there
                              * is none, or it was not kept */
    size_t result_length;    /* NXL_ONCE_NOT_KEPT: it was not kept */
} nxl_record;

/* clang-format off */
#define NXL_RECORD_INIT { sizeof(nxl_record), 0, "", "", 0, 0, 0, 0, \
                               0, 0, 0, 0, "", NULL, 0 }
/* clang-format on */

/* Acquires the lock and records that the work has begun, in one step. A busy
 * lock is waited for as by nxl_lock_acquire(); the wait ends, too, when the
 * record says that there is nothing to begin. options may be NULL. Draws a
 * fencing token, nxl_lock_fence(), whatever options.fence of the lock.
 *
 * Sends one script; blocks for wait_ms and up to timeout_ms more. NXL_OK: the
 * lock is held; do the work, then call nxl_once_tell(). If the handle is freed,
 * or the lock released, without that, the work is in doubt. NXL_DONE,
 * NXL_DOUBT, NXL_MISMATCH: nothing is held; nxl_once_record() has the record.
 * With NXL_ONCE_LOOK wait_ms must be 0, nothing is ever held, and the results
 * are these, NXL_FREE (the work may be begun) and NXL_BUSY. NXL_UNKNOWN: not
 * held; the library takes it back as soon as it can; if it cannot, the work is
 * in doubt though nobody did it. Other results as nxl_lock_acquire(); also
 * NXL_E_UNSUPPORTED: several servers, NXL_SCHEME_TIMESTAMP, a server without
 * scripts or before 3.2; NXL_E_INVALID: the lock has permits or is shared;
 * NXL_E_WRONG_TYPE: the record's key holds something else; NXL_E_URL:
 * guard_failover is on (the default over Sentinels) and wait_replicas was not
 * given, not even as 0. */
int nxl_once_begin(nxl_lock *lock, const nxl_once_options *options,
    int64_t wait_ms) NXL_MUST_USE;

/* Records the outcome of the work, an enum nxl_once_state, and releases the
 * lock as nxl_lock_release() does; but NXL_ONCE_CLEAR releases nothing. The
 * work is what this handle began, or whose lock it adopted, or what its last
 * nxl_once_begin() found in doubt (NXL_DOUBT): then it is an earlier
 * attempt, only DONE and FAILED can be said of it, and nothing is released.
 * code (for example an exit code) is kept; so is the result of NXL_ONCE_DONE,
 * length bytes, or NULL. One of more than NXL_ONCE_RESULT_MAX bytes cannot be
 * kept: pass NULL and NXL_ONCE_NOT_KEPT.
 *
 * Sends one script; blocks for timeout_ms at most. It is never too late to say
 * it, and the same may be said again. NXL_OK: recorded; also after the lease is
 * over, as long as nobody else has begun. After DONE, FAILED and DOUBT about
 * the same attempt are NXL_OK and change nothing. NXL_LOST: the record did not
 * take the verdict, because somebody else has begun (or NXL_ONCE_CLEAR: the
 * lease is over). If the verdict was DONE, the work may have been done twice:
 * then the record of the other attempt counts it in `late`, and nothing else
 * changes. NXL_UNKNOWN or an error: it may not be recorded; say it again, or
 * the work is in doubt. nxl_lock_held() is false from this call on (not with
 * NXL_ONCE_CLEAR). NXL_E_INVALID: there is no such work. */
int nxl_once_tell(nxl_lock *lock, int verdict, int code, const void *result,
    size_t length) NXL_MUST_USE;

/* Copies the record: what the last nxl_once_begin() or nxl_once_tell() on this
 * lock has found or written. NXL_OK. NXL_FREE: there was no record.
 * NXL_E_INVALID: neither has been answered since the lock was last acquired or
 * adopted. NXL_E_FORKED. No I/O. */
int nxl_once_record(const nxl_lock *lock, nxl_record *record) NXL_MUST_USE;

/* Removes exactly the record that nxl_once_record() shows, so that the work
 * may be begun again. HARM: if it was done, it will be done twice. Blocks for
 * timeout_ms at most; sends one script. NXL_OK: removed. NXL_BUSY: the lock
 * still has the record's token: the work is in progress, or min_hold_ms is not
 * over. NXL_FREE: the record has changed or is gone. NXL_UNKNOWN: no answer.
 * NXL_E_INVALID: there is nothing to remove. */
int nxl_once_forget(nxl_lock *lock) NXL_MUST_USE;

/* --------------------------------------------------------- event-loop API
 *
 * For programs with an event loop. One thread drives the client:
 *
 *     nxl_lock_acquire_start(lock, 5000);
 *     for (;;) {
 *         n = nxl_client_pollfds(client, fds, 8, &timeout_ms);
 *         poll(fds, n, timeout_ms);
 *         nxl_client_process(client);
 *         while (nxl_client_next_event(client, &event))
 *             ... event.lock, event.operation, event.result ...
 *     }
 *
 * A client is used either through the blocking API or through the event-loop
 * API, never both. The first _start, pollfds, fd or process selects the
 * event-loop API, the first blocking operation the blocking one; from then on
 * calls of the other API return NXL_E_INVALID; nxl_client_pollfds() returns 0
 * then, and nxl_client_fd() -1.
 *
 * A _start function neither blocks nor sends: the commands leave, many in one
 * write, with the next pollfds or process. NXL_PENDING: one event will follow,
 * with a result of the blocking function. Any other value is the final result,
 * and no event follows. */
int nxl_lock_acquire_start(nxl_lock *lock, int64_t wait_ms) NXL_MUST_USE;
int nxl_lock_extend_start(nxl_lock *lock, int64_t ttl_ms) NXL_MUST_USE;
int nxl_lock_release_start(nxl_lock *lock) NXL_MUST_USE;
int nxl_lock_adopt_start(nxl_lock *lock, const char *token) NXL_MUST_USE;
int nxl_lock_inspect_start(nxl_lock *lock) NXL_MUST_USE;
int nxl_lock_break_start(nxl_lock *lock, const nxl_holder *seen) NXL_MUST_USE;
/* The lock is not held, and nxl_lock_token() is "", until the event was taken:
 * until then the library can take the beginning back. */
int nxl_once_begin_start(nxl_lock *lock, const nxl_once_options *options,
    int64_t wait_ms) NXL_MUST_USE;
/* If the handle is freed before the event, the work may be in doubt. */
int nxl_once_tell_start(nxl_lock *lock, int verdict, int code,
    const void *result, size_t length) NXL_MUST_USE;
int nxl_once_forget_start(nxl_lock *lock) NXL_MUST_USE;

/* Copies what an inspection found, after its event came with NXL_OK. NXL_OK,
 * NXL_FREE, NXL_E_INVALID (nothing has been inspected, or holder->size is too
 * small), NXL_E_FORKED. No I/O. */
int nxl_lock_holder(const nxl_lock *lock, nxl_holder *holder) NXL_MUST_USE;

/* Sends what is waiting to be sent, writes at most capacity descriptors to poll
 * into fds, and sets *timeout_ms to how long poll() may wait (-1: no limit).
 * Returns the number of descriptors; if that exceeds capacity, call again with
 * more room. (At present it is always one; do not rely on that.) Call it again
 * after each nxl_client_process(). Does not block. A cancel in another thread
 * makes a descriptor readable. */
size_t nxl_client_pollfds(
    nxl_client *client, struct pollfd *fds, size_t capacity, int *timeout_ms);

/* Returns one descriptor for the whole client: it is readable whenever
 * nxl_client_process() has something to do, including timeouts. It belongs to
 * the client and never changes. -1: the system provided none, or NXL_E_INVALID
 * applies; nxl_client_errmsg() says why. */
int nxl_client_fd(nxl_client *client);

/* Reads, decides and sends; does not block. Extra calls are harmless. NXL_OK,
 * NXL_E_INVALID, NXL_E_FORKED. */
int nxl_client_process(nxl_client *client);

enum nxl_operation {
    NXL_OP_ACQUIRE = 1,
    NXL_OP_EXTEND = 2,
    NXL_OP_RELEASE = 3,
    NXL_OP_ADOPT = 4,
    NXL_OP_INSPECT = 5,
    NXL_OP_BREAK = 6,
    /* Not an operation: a lock with options.renew was lost (nxl_lock_loss()
     * says how). The result is NXL_LOST. Reported once, before the lock's
     * deadline unless this process was itself stopped or late; not reported
     * after the lock was released or acquired again. */
    NXL_OP_HOLD = 7,
    NXL_OP_ONCE_BEGIN = 8,
    NXL_OP_ONCE_TELL = 9,
    NXL_OP_ONCE_FORGET = 10
};

/* The end of an operation that was started, or the loss of a lock. */
typedef struct nxl_event {
    nxl_lock *lock;
    void *user;    /* options.user of that lock */
    int operation; /* enum nxl_operation */
    int result;    /* enum nxl_result */
} nxl_event;

/* Takes the next event; false if there is none. A grant whose lease expired
 * while its event was waiting here is reported as NXL_LOST, and its key is left
 * to its TTL. With the blocking API it returns the losses (NXL_OP_HOLD), in any
 * thread. */
bool nxl_client_next_event(nxl_client *client, nxl_event *event);

/* Returns a descriptor that is readable while the loss of a lock (NXL_OP_HOLD)
 * is waiting in nxl_client_next_event(): for programs that wait elsewhere, with
 * either API. Only poll it, never read it. It belongs to the client and never
 * changes. -1: the system provided none, or client is NULL or from before
 * fork(). */
int nxl_client_loss_fd(nxl_client *client);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
