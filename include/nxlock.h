/* SPDX-License-Identifier: MIT */
/*
 * nxlock - hold a name exclusively, across processes and machines, with a
 * Redis or Valkey server as the judge.
 *
 *     nxl_client *client;
 *     nxl_lock *lock;
 *     if (nxl_client_new(&client, "redis://localhost:6379", NULL) == NXL_OK &&
 *         nxl_lock_new(&lock, client, "invoice:42", NULL) == NXL_OK &&
 *         nxl_lock_acquire(lock, 5000) == NXL_OK) {
 *         ... only one process at a time is here, for 30 s at most ...
 *         if (nxl_lock_release(lock) != NXL_OK)
 *             ... it had run out before the work was done ...
 *     }
 *
 * For Linux with glibc. A lock is a lease: it ends by itself after ttl_ms. Work
 * that may take longer asks nxl_lock_held() before each step that matters, and
 * prolongs the lease with nxl_lock_extend(). docs/guarantees.md says what is
 * promised.
 *
 * Units are in the names: _ms is milliseconds, _ns nanoseconds. Every string
 * argument is copied; the library keeps no pointer of the caller's but
 * options.user. Unless a function says otherwise it may be called from any
 * thread, while one lock handle belongs to one thread at a time.
 *
 * The library never prints, exits, aborts, raises a signal or changes a
 * signal's disposition, and starts no thread but a short one that looks up a
 * host name (never for an address, a unix socket or "localhost"), and one that
 * renews (options.renew, blocking door).
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

struct pollfd; /* <poll.h>; needed only with nxl_client_pollfds() */

#if defined(__GNUC__)
#define NXL_MUST_USE __attribute__((warn_unused_result))
#else
#define NXL_MUST_USE
#endif

/* ---------------------------------------------------------------- results
 *
 * 0 is done, above 0 an outcome the caller must handle, below 0 an error.
 * The numbers never change their meaning. */
enum nxl_result {
    NXL_OK = 0,
    /* Somebody else holds the name, and still did when the wait ended. */
    NXL_BUSY = 1,
    /* The lock is not ours any more: it ran out, was taken or was removed. */
    NXL_LOST = 2,
    /* The answer did not come, so neither yes nor no may be assumed. After
     * an acquire: not held; the library undoes the request at the next
     * occasion, else the name frees itself after ttl_ms. After an extend:
     * the old deadline stands. After a release: not held; the name is free
     * now or after ttl_ms. */
    NXL_UNKNOWN = 3,
    /* Non-blocking door: started, its event will come. */
    NXL_PENDING = 4,
    /* nxl_lock_cancel() or nxl_client_interrupt() ended the call; not held. */
    NXL_CANCELLED = 5,
    /* nxl_lock_inspect(): nobody holds the name. nxl_lock_break(): what was
     * seen does not stand any more; nothing was removed. */
    NXL_FREE = 6,

    /* An argument or the order of calls is wrong; the message names it. */
    NXL_E_INVALID = -1,
    NXL_E_NOMEM = -2,
    /* The operating system refused (descriptors, random bytes, ...). */
    NXL_E_SYSTEM = -3,
    /* The URL cannot be used; the message names the part. */
    NXL_E_URL = -4,
    /* No connection, or the server did not speak in time; nothing of ours
     * was applied. */
    NXL_E_UNREACHABLE = -5,
    /* Password, user or rights: NOAUTH, WRONGPASS, NOPERM. */
    NXL_E_DENIED = -6,
    /* The server answers but does not take the write now: LOADING, BUSY
     * script, OOM, MISCONF, NOREPLICAS, READONLY replica. */
    NXL_E_REFUSED = -7,
    /* The key holds something that is not a string. */
    NXL_E_WRONG_TYPE = -8,
    /* The peer does not speak the Redis protocol. */
    NXL_E_NOT_REDIS = -9,
    /* The server lacks what this needs; the message names the command. */
    NXL_E_UNSUPPORTED = -10,
    /* Any other error of the server; the message carries its words. (Where
     * something may have been applied the result is NXL_UNKNOWN: words that no
     * Redis server has may be a proxy's own.) */
    NXL_E_SERVER = -11,
    /* The handle was made before fork() and this is the child. */
    NXL_E_FORKED = -12
};

/* The result's name and meaning in one line, never NULL; static storage. */
const char *nxl_strerror(int result);

/* The library's version, "major.minor.patch"; static storage. */
const char *nxl_version(void);

/* ----------------------------------------------------------------- client
 *
 * A client is the connection to the server, or the connections to N
 * independent servers that decide by majority (Redlock; docs/redlock.md says
 * when). Many locks and many threads share one client; their commands share
 * one pipelined connection to each server. */
typedef struct nxl_client nxl_client;
typedef struct nxl_lock nxl_lock; /* see below */

/* By which commands a name is locked. */
enum nxl_scheme {
    /* The best that the server knows, found by trying: SET NX PX and scripts,
     * down to the one below on servers before 2.6. */
    NXL_SCHEME_AUTO = 0,
    /* SETNX and a unix time as the value, on any server: for names that are
     * shared with programs of that scheme. HARM: weaker promises, see
     * docs/guarantees.md; above all, a program that takes over by a bare
     * GETSET may shorten or end the lock of a live holder, and their clocks
     * have to agree with the server's. For one server only. */
    NXL_SCHEME_TIMESTAMP = 1
};

/* A function of the program's own: see the member warning below. */
typedef void (*nxl_warning)(void *arg, const char *text);

/* One step of what the library decided, for a log: see the member tracer. */
enum nxl_trace_kind {
    NXL_TRACE_ATTEMPT = 1, /* an acquire is tried; a wait tries again */
    NXL_TRACE_END = 2,     /* an operation is over; result tells */
    NXL_TRACE_RENEWAL = 3, /* options.renew: tried; result tells */
    NXL_TRACE_LOSS = 4     /* options.renew: lost; result is an enum nxl_loss */
};

typedef struct nxl_trace {
    int kind;         /* enum nxl_trace_kind */
    int operation;    /* END: enum nxl_operation, else 0 */
    int result;       /* END, RENEWAL: enum nxl_result */
    nxl_lock *lock;   /* whose it is */
    void *user;       /* options.user of that lock */
    uint64_t at_ns;   /* of nxl_now_ns() */
    int64_t left_ms;  /* until the lock's deadline; 0: not held */
    const char *text; /* for a person; "" when there is nothing to add. Valid
                       * until the function returns. */
} nxl_trace;
typedef void (*nxl_tracer)(void *arg, const nxl_trace *trace);

/* Zero in any member but size means its default. Start from
 * NXL_CLIENT_OPTIONS_INIT, or nxl_client_options_init() in C++; size 0 (an
 * options = {0}) is NXL_E_INVALID, and then nothing is written to errbuf
 * either. Members are only ever added at the end. */
typedef struct nxl_client_options {
    size_t size; /* sizeof of the structure the caller was compiled with */
    /* Bounds input and output of one call: name resolution, connect, AUTH,
     * replies, clean-up. Default 2000; 10 ... 600000. */
    int64_t timeout_ms;
    /* The longest ttl any lock of this client may ask for. Default 60000; at
     * most 2147483647. Raising it lengthens how long a crashed holder blocks
     * the others. */
    int64_t max_ttl_ms;
    /* How far the rates of this machine's and the server's clock may differ,
     * in parts per million of the ttl. Default 10000 (1 %); 1 ... 500000.
     * A smaller number ends exclusion by a clock that runs that much
     * faster at the server. Source: the Redlock description's allowance. */
    int64_t drift_ppm;
    /* Put in front of every name; at most 1024 bytes. Default none. */
    const char *prefix;
    /* TCP keepalive: idle seconds before the first probe. Default 15;
     * 1 ... 32767. */
    int64_t keepalive_s;
    /* Where nxl_client_new() writes what is wrong, zero-ended, when it
     * fails (there is no handle to ask then); untouched when it succeeds.
     * May be NULL. */
    char *errbuf;
    size_t errbuf_size;
    /* An enum nxl_scheme; default NXL_SCHEME_AUTO. */
    int scheme;
    /* 1: with SET NX PX a key that has no end and holds a unix time which is
     * past by the server's clock is taken over: a program of the SETNX scheme
     * died with it. Default 0: it is busy for ever. (What this library's own
     * NXL_SCHEME_TIMESTAMP left is taken over in any case.) HARM: a name that
     * such a program uses for something else is overwritten; and a program of
     * that scheme takes our value for a time long past, and steals the lock:
     * as long as one is at work, every program needs NXL_SCHEME_TIMESTAMP. */
    int interop;
    /* Told, once a client each: when it is first granted a lock whose promises
     * are weaker than those of docs/guarantees.md; when one is granted that a
     * minority of the servers had no part in, and somebody has to mend that (a
     * wrong password, a replica, INFO refused; not: away or slow), or when
     * these restarted and have no vote yet. text says at which servers and
     * why, for a log, and is valid until it returns. Called at the end of a
     * blocking call or of nxl_client_next_event(), by its thread; it may use
     * the library but not free the client. NULL: nobody is told;
     * nxl_client_describe() says it, too. */
    nxl_warning warning;
    void *warning_arg;
    /* A server that restarted may have forgotten locks that still stand
     * elsewhere, so it does not vote until all of them are over: until it has
     * been up for max_ttl_ms and the drift of that, in whole seconds and one
     * more. Default (0): on for two servers or more, off for one; 1: on; -1:
     * off. HARM when off: kill and restart, without persistence, the servers
     * that granted a lock, and a second client gets it while the first one
     * believes itself alone. */
    int64_t guard_restarts;
    /* Told of each decision as it is made, on whatever thread makes it, with
     * the client locked: it has to be quick and must not call this library.
     * NULL (the default): costs nothing. */
    nxl_tracer tracer;
    void *tracer_arg;
} nxl_client_options;

/* clang-format off */
#define NXL_CLIENT_OPTIONS_INIT { sizeof(nxl_client_options), \
                                  0, 0, 0, NULL, 0, NULL, 0, 0, 0, NULL, \
                                  NULL, 0, NULL, NULL }
/* clang-format on */
void nxl_client_options_init(nxl_client_options *options);

/* Makes a client for the server at url. Parses only: no connection is made
 * before the first operation, so this neither blocks nor sends.
 *
 *     redis://[user][:password]@host[:port][/db][?parameter=value&...]
 *     unix:///path/to/socket[?db=N&...]
 *
 * valkey:// is the same as redis://. Port 6379 and db 0 are the defaults; an
 * IPv6 address stands in brackets; any part may be %-encoded. Parameters:
 * see nxl_url_params(). A value in the URL wins over the same option.
 *
 * Several URLs with commas between them, "redis://a,redis://b,redis://c":
 * Redlock over these servers, as nxl_client_new_urls(). Only a comma in front
 * of a "scheme://" divides; at the end of a URL it is written %2C.
 *
 * NXL_OK: *client is the caller's, to end with nxl_client_free(). Else
 * *client is NULL: NXL_E_INVALID, NXL_E_URL, NXL_E_NOMEM, NXL_E_SYSTEM. */
int nxl_client_new(nxl_client **client, const char *url,
    const nxl_client_options *options) NXL_MUST_USE;

/* Most servers of one client. */
#define NXL_SERVERS_MAX 15

/* Makes a client for count servers, 1 ... NXL_SERVERS_MAX, each at one URL as
 * of nxl_client_new() (no commas here: an element is one URL). Above one the
 * servers have to be independent of each other: no replica of one another, no
 * common fate. A lock is held while more than half of all count servers hold
 * it; all calls, results and promises are the same. Every client of these
 * names must be given all of the servers, and the same max_ttl_ms.
 *
 * db, user, password, keepalive_s and durable are each server's own. All
 * other parameters concern the client: it is enough that one URL gives them,
 * and an error when two give them differently. The same address twice is an
 * error too; one server behind two addresses is found when it is connected,
 * and then votes once. Results as nxl_client_new(). */
int nxl_client_new_urls(nxl_client **client, const char *const *urls,
    size_t count, const nxl_client_options *options) NXL_MUST_USE;

/* Ends the client and its connection; NULL is fine. Free its locks first. One
 * that is still there is released if it is held; its handle has to be freed all
 * the same, and every other call on it returns NXL_E_INVALID. Blocks while
 * releases and clean-ups are unanswered, for min(timeout_ms, 500 ms) at most;
 * what is unanswered then ends by its ttl. In a fork()ed child it closes the
 * descriptors, sends nothing, and leaves the memory alone: a thread that is not
 * there may have been changing it. */
void nxl_client_free(nxl_client *client);

/* What went wrong last on this client, for a person: the server, its words,
 * the remedy. "" when nothing did. A copy of this thread's own, valid until it
 * calls this function again, for any client. Never NULL. */
const char *nxl_client_errmsg(const nxl_client *client);

/* One line about each server for a person (address, state of the connection,
 * software and version, role, the rung: by which commands it is locked; and
 * why it has no vote, since when, and when it votes again) into text, with
 * line ends between them, zero-ended and cut to size. Known after the first
 * operation. Returns the length it wanted. No I/O. */
size_t nxl_client_describe(nxl_client *client, char *text, size_t size);

/* How many servers there are. */
size_t nxl_client_servers(const nxl_client *client);

/* The line about one of them, counted from 0 in the order of the URLs; ""
 * when there is none with that number. Else as nxl_client_describe(). */
size_t nxl_client_describe_server(
    nxl_client *client, size_t server, char *text, size_t size);

/* The prefix of its options or URL, "" when there is none; valid as long as
 * the client. And its max_ttl_ms. No I/O; NULL: "" and 0. */
const char *nxl_client_prefix(const nxl_client *client);
int64_t nxl_client_max_ttl_ms(const nxl_client *client);

/* What a server said to nxl_client_ask(). */
typedef struct nxl_answer nxl_answer;

/* Asks one server, counted as in nxl_client_describe_server(), what no other
 * call asks: for tools that look at keys or at how a server is set up. Over
 * the connection of the client's locks, whose commands wait behind the answer.
 * argv: a command and its arguments, 1 to 64; lengths are theirs, for binary
 * ones, or NULL: up to the zero byte. The command has to be one of these,
 * which neither change anything nor hold up the connection: ACL DRYRUN, ACL
 * GETUSER, ACL WHOAMI, CLIENT ID, CLUSTER INFO, CLUSTER KEYSLOT, COMMAND
 * COUNT, CONFIG GET, DBSIZE, EXISTS, GETRANGE (524288 bytes at most, from 0
 * on), INFO, LASTSAVE, MEMORY USAGE, OBJECT ENCODING, PING, PTTL, ROLE, SCAN
 * (COUNT 1000 at most), STRLEN, TIME, TTL, TYPE.
 *
 * Blocking door only; blocks for timeout_ms at most. NXL_OK: *answer is the
 * caller's, to end with nxl_answer_free(). Else *answer is NULL and
 * nxl_client_errmsg() says why: NXL_E_INVALID: another command, or no such
 * server. NXL_E_UNSUPPORTED: the server does not know the command, or its
 * answer is longer than 1 MB. NXL_E_DENIED, _REFUSED, _WRONG_TYPE, _SERVER: it
 * answers with an error. NXL_CANCELLED: another thread freed the client.
 * NXL_E_UNREACHABLE, _URL, _NOT_REDIS, _NOMEM, _SYSTEM, _FORKED. */
int nxl_client_ask(nxl_client *client, size_t server, size_t argc,
    const char *const *argv, const size_t *lengths,
    nxl_answer **answer) NXL_MUST_USE;

/* How many values there are: 1, or those of an array, and of the arrays in
 * it, one after the other. NULL has none. */
size_t nxl_answer_count(const nxl_answer *answer);

/* The i-th of them, counted from 0; a number is in decimal digits. Zero-ended,
 * and *length, which may be NULL, is its length. NULL: it is nil, or there is
 * none with that number. Valid until nxl_answer_free(). */
const char *nxl_answer_item(
    const nxl_answer *answer, size_t i, size_t *length);

/* Ends the answer; NULL is fine. */
void nxl_answer_free(nxl_answer *answer);

/* What a client has done so far. */
typedef struct nxl_stats {
    uint64_t attempts;  /* to acquire; a wait makes several */
    uint64_t grants;    /* acquires that ended with NXL_OK */
    uint64_t busy;      /* ... with NXL_BUSY */
    uint64_t unknowns;  /* acquires, extends, releases: NXL_UNKNOWN */
    uint64_t waits;     /* acquires that took more than one attempt */
    uint64_t wait_ns;   /* all acquires took, together */
    uint64_t releases;  /* that ended with NXL_OK */
    uint64_t hold_ns;   /* locks were held, together; counted at the end */
    uint64_t renewals;  /* options.renew: that succeeded */
    uint64_t renewal_failures; /* ... that did not, and were tried again */
    uint64_t least_slack_ms; /* the least that was left of a lease when it was
                              * renewed; 0 before the first renewal */
    uint64_t losses;    /* options.renew: locks lost */
    uint64_t cleaned;   /* tokens that nobody wanted, and that were removed */
    uint64_t connections; /* made; above the servers' number: reconnects */
} nxl_stats;

/* Copies them; size is sizeof(nxl_stats) as the caller was compiled (more
 * members may come at the end). No I/O; any thread may ask. NXL_OK,
 * NXL_E_INVALID, NXL_E_FORKED. */
int nxl_client_stats(nxl_client *client, nxl_stats *stats, size_t size);

/* Ends every acquire that waits, in any thread, with NXL_CANCELLED; when none
 * does, the next one that is begun. May be called in a signal handler: so a
 * program that is told to stop gets out of nxl_lock_acquire(). Does not
 * block. Nothing in a fork()ed child, or when client is NULL. */
void nxl_client_interrupt(nxl_client *client);

/* A parameter a URL may carry after '?'. */
typedef struct nxl_url_param {
    const char *name;  /* "timeout_ms" */
    const char *value; /* what it takes: "MS", "TEXT", ... */
    const char *help;  /* one line */
} nxl_url_param;

/* All URL parameters; *count receives how many. Static storage. */
const nxl_url_param *nxl_url_params(size_t *count);

/* ------------------------------------------------------------------- lock
 *
 * A lock is one contender for one name. It serves any number of acquire and
 * release cycles, and allocates nothing in them unless an answer is lost. */

/* Zero in any member but size means its default (see client options). */
typedef struct nxl_lock_options {
    size_t size;
    /* The lease: the server frees the name that long after it applied the
     * acquire, if nobody prolongs it. Default 30000, or max_ttl_ms if that is
     * less. At most max_ttl_ms; at
     * least so much that 10 ms remain after the drift allowance. */
    int64_t ttl_ms;
    /* Says who holds, to people: one printable ASCII word without spaces,
     * at most 128 bytes, for example "db7:41233:backup". Default none. */
    const char *label;
    /* Length of name, for binary names. Default: up to its zero byte. */
    size_t name_length;
    /* Handed back in events; the library never looks at it. */
    void *user;
    /* Delay between two attempts while the name is busy: doubles from
     * retry_min_ms (default 10) to retry_max_ms (default 250, or retry_min_ms
     * if that is more), each drawn at random from its upper half, and never
     * beyond the end of the holder's lease. Each 1 ... 3600000. A small
     * retry_max_ms loads the server with every waiter. */
    int64_t retry_min_ms;
    int64_t retry_max_ms;
    /* 1: each acquire draws a fencing number, see nxl_lock_fence(); one script
     * instead of SET, so a server without scripts refuses it
     * (NXL_E_UNSUPPORTED, NXL_E_DENIED); with NXL_SCHEME_TIMESTAMP it is
     * NXL_E_INVALID, and what such a lock left when its holder died stays in
     * the way. Over several servers a grant whose number does not reach a
     * majority is undone, and the wait goes on; at its end, or when so many
     * refuse the number for good, that is NXL_UNKNOWN (NXL_LOST where the lock
     * had gone meanwhile). Default 0. Every program that locks this name has
     * to draw one, or else the numbers do not tell who came last; nxlock run
     * does, nxlock acquire does not. */
    int fence;
    /* 1: the lease is kept alive until the lock is released: prolonged by
     * ttl_ms each third of it, and again soon when that fails. Loop door: by
     * pollfds and process. Blocking door: by one thread for the client, which
     * blocks all signals; it is started with the first such lock and ends
     * within 250 ms of the last one's release. If it cannot be kept, the lock
     * is lost before its deadline: see nxl_lock_loss(). A process that hangs
     * holds on as well: see max_hold_ms. Default 0: as long as ttl_ms, or
     * nxl_lock_extend(), says. */
    int renew;
    /* The name stays taken that long from the grant on, even if the lock is
     * released before (then its key stays for the rest of it), or its handle
     * is freed or its holder dies (then to the end of the lease, which is that
     * long at first and may be longer). For jobs that are started on
     * several machines by clocks that differ by less. At most max_ttl_ms;
     * default 0. A release by who has adopted the lock does not keep to it.
     * Where keys hold times (NXL_SCHEME_TIMESTAMP, servers before
     * 2.6) a release leaves them to the end of the lease. */
    int64_t min_hold_ms;
    /* Of a lock with renew: it is not held beyond that time from the grant or
     * adoption on, but lost then, also when nxl_lock_extend() or the lease that
     * was adopted would allow more (then the key stands at the server until it
     * is released, or to that end). At least ttl_ms. Default 0: no limit. */
    int64_t max_hold_ms;
} nxl_lock_options;

/* clang-format off */
#define NXL_LOCK_OPTIONS_INIT { sizeof(nxl_lock_options), \
                                0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0 }
/* clang-format on */
void nxl_lock_options_init(nxl_lock_options *options);

/* wait_ms: for ever. */
#define NXL_FOREVER (-1)

/* Longest name, prefix included, in bytes. */
#define NXL_NAME_MAX 65536

/* Makes a lock for name: 1 ... NXL_NAME_MAX bytes of any value with
 * options.name_length, else up to the zero byte. The key at the server is
 * the prefix and the name, exactly. Neither blocks nor sends. NXL_OK: *lock
 * is the caller's, to end with nxl_lock_free(). Else *lock is NULL and
 * nxl_client_errmsg() says why: NXL_E_INVALID, NXL_E_NOMEM, NXL_E_FORKED. */
int nxl_lock_new(nxl_lock **lock, nxl_client *client, const char *name,
    const nxl_lock_options *options) NXL_MUST_USE;

/* Ends the lock; NULL is fine. A held lock is released without waiting for
 * the answer (one whose lease has run out is left to its end); an operation in
 * progress is cancelled and undone. Does not block. In a fork()ed child it does
 * nothing. */
void nxl_lock_free(nxl_lock *lock);

/* Acquires the name. Sends SET key token NX PX ttl, at once and then, while
 * wait_ms is not over, again with growing delays (SET and PTTL). wait_ms: 0
 * tries once, NXL_FOREVER never gives up. What is tried again: a busy lock, a
 * server that is down, silent, loading or out of memory. What ends the wait
 * at once: a peer that is not the primary (READONLY, MOVED) or not Redis,
 * denied access, a missing command. A handle whose lease has run out may
 * acquire anew without a release. What still stands at the server under its old
 * token ends by itself, after the drift allowance, and is busy until then; or
 * it stands for longer, for somebody has adopted it.
 *
 * Blocks. The call ends by start + max(wait_ms, timeout_ms), and somewhat
 * before that when another attempt could not end in time.
 *
 * NXL_OK: held, until nxl_lock_deadline(). NXL_BUSY: somebody else holds it,
 * or the key is used for something else (nxl_lock_inspect() tells).
 * NXL_UNKNOWN: not held, see there. NXL_LOST: it was granted, but its time
 * was over before this call could hand it over; it has been released.
 * NXL_CANCELLED. NXL_E_UNREACHABLE, _DENIED, _REFUSED, _NOT_REDIS,
 * _UNSUPPORTED: not held, and the server applied nothing.
 * NXL_E_INVALID: held already, or an operation is in progress. */
int nxl_lock_acquire(nxl_lock *lock, int64_t wait_ms) NXL_MUST_USE;

/* Prolongs a held lock to at least ttl_ms from now; 0 is the lock's own ttl.
 * Never shortens; a key that somebody made permanent stays permanent. Sends
 * one script (compare, PTTL, PEXPIRE).
 *
 * Blocks for timeout_ms at most, and not beyond the lock's deadline.
 * NXL_OK: the deadline moved. NXL_LOST: not held any more. NXL_UNKNOWN or an
 * error: the old deadline stands; trying again is sound. */
int nxl_lock_extend(nxl_lock *lock, int64_t ttl_ms) NXL_MUST_USE;

/* Releases a held lock: one script that deletes the key if it still has this
 * lock's token. Once this is called nxl_lock_held() is false, whatever the
 * result.
 *
 * Blocks for timeout_ms at most. NXL_OK: it was held until now. NXL_LOST: its
 * deadline had passed, or it had been lost or removed, before this call,
 * whatever the servers still say. NXL_UNKNOWN: no answer; it is free
 * now or after its ttl. An error: the server refused; it ends by its ttl.
 * NXL_E_INVALID: this lock holds nothing. */
int nxl_lock_release(nxl_lock *lock) NXL_MUST_USE;

/* Takes over a lock held under token (of nxl_lock_token(), perhaps in another
 * process): afterwards this handle holds it until the end of the lease that
 * stands (max_ttl_ms if the key has no end), and may extend and release it. The
 * former owner learns nothing of that, nor does this handle of a release there:
 * keep the two in touch. A release by the former owner, or the end of its
 * handle or client, before its own lease is over takes the lock from who
 * adopted it; after that it leaves it alone. An adopted lock has no fencing
 * number and no min_hold_ms.
 *
 * Blocks for timeout_ms at most; sends one script (GETRANGE, PTTL, EXISTS).
 * NXL_OK: held. NXL_LOST: the name is free or another token stands there.
 * NXL_E_INVALID: not a token, or this handle holds one already. Errors as
 * nxl_lock_acquire(). */
int nxl_lock_adopt(nxl_lock *lock, const char *token) NXL_MUST_USE;

/* Ends the operation in progress on this lock, from any thread: a blocked
 * call returns NXL_CANCELLED, a started one gets that event, and an acquire
 * is undone. Nothing in progress: nothing happens. A release is not
 * cancelled. Does not block. NXL_OK, NXL_E_FORKED, NXL_E_INVALID (NULL, or its
 * client has been freed). */
int nxl_lock_cancel(nxl_lock *lock);

/* True while this process may rely on the lock: held, and the local deadline
 * is not reached. A clock read and no I/O; any thread may ask. False in a
 * fork()ed child. */
bool nxl_lock_held(const nxl_lock *lock);

/* Milliseconds until the deadline, rounded down; 0 when not held. */
int64_t nxl_lock_remaining_ms(const nxl_lock *lock);

/* How a lock with options.renew was lost. */
enum nxl_loss {
    NXL_LOSS_NONE = 0, /* it was not, or does not renew */
    /* Its time was over here before it was prolonged: the process was stopped
     * or its loop did not come in time, or max_hold_ms is over. */
    NXL_LOSS_EXPIRED = 1,
    /* The key is gone before its time: nxlock unlock --force, DEL, FLUSHALL,
     * an eviction, a failover, a restart without data. */
    NXL_LOSS_REMOVED = 2,
    /* Another value stands there: after a removal somebody else has it. */
    NXL_LOSS_TAKEN = 3,
    /* It could not be prolonged: servers did not answer, or refused. */
    NXL_LOSS_UNREACHABLE = 4
};

/* Was the present or last hold of a lock with options.renew lost, and how? An
 * enum nxl_loss; and into text (NULL: not wanted), zero-ended and cut to size,
 * why, for a person. Forgotten with the next grant. nxl_lock_held() is false
 * before this tells of it; an event NXL_OP_HOLD does, too. No I/O; any thread
 * may ask. */
int nxl_lock_loss(const nxl_lock *lock, char *text, size_t size);

/* The deadline in ns of nxl_now_ns(); 0 when not held. It was computed from
 * before the request was sent, with the drift allowance taken off. */
uint64_t nxl_lock_deadline(const nxl_lock *lock);

/* The library's clock: CLOCK_BOOTTIME where there is one (it counts
 * suspend), else CLOCK_MONOTONIC. */
uint64_t nxl_now_ns(void);

/* The token under which the lock is held, or was last asked for: one
 * printable word, UUID or UUID@label; "" before the first acquire. It is
 * valid until the next acquire or adopt on this handle. Who has it can
 * release the lock. */
const char *nxl_lock_token(const nxl_lock *lock);

/* The fencing number of the last acquire that was granted (options.fence):
 * above 0, and greater than that of every grant of this name before it. Hand
 * it to what the lock protects, which has to refuse a number below the
 * greatest that it has seen: so a holder that was stopped, and goes on after
 * its lease, does no harm. 0: none was asked for, nothing was granted yet, or
 * the lock was adopted; its first holder knows the number. No I/O; any thread
 * may ask.
 *
 * It comes of a counter at the server, the key {name}:f (name:f when name has
 * a tag in braces) beside the lock's own, which must not be deleted: max(the
 * last one + 1, the server's clock in microseconds), so that it grows over a
 * loss of data too, as long as that clock is not set back. It ends by itself
 * 24 hours, or 2 * max_ttl_ms if that is more, after its last use, when that
 * clock is above it; it has no end while it is too far ahead of that clock, nor
 * before Redis 3.2, where it is the last one + 1. Over several servers it is
 * the highest that those give which grant, and a majority is raised to it
 * before the call returns (one more round trip); then a server that forgets its
 * counter needs a clock that is behind the others' by less than max_ttl_ms. */
uint64_t nxl_lock_fence(const nxl_lock *lock);

/* What the last operation on this lock met, for a person. As
 * nxl_client_errmsg(), valid until the next call on this lock. */
const char *nxl_lock_errmsg(const nxl_lock *lock);

/* The same of one server, 0 ... nxl_client_servers() - 1: its words, or that it
 * did not answer; "" when it answered, or was not asked. A copy of this
 * thread's own, valid until it calls this function again. No I/O. */
const char *nxl_lock_errmsg_at(const nxl_lock *lock, size_t server);

/* Who holds a name, and how long still. The library fills all of it in; its
 * layout is fixed. */
typedef struct nxl_holder {
    size_t size; /* sizeof(nxl_holder) once it is filled in */
    /* The value that stands there, zero-ended; a token if the holder follows
     * this library's format. */
    char value[512];
    size_t value_length; /* it may contain zero bytes */
    bool truncated;      /* the value is longer than 511 bytes */
    bool ours;           /* it is the token this handle holds */
    /* The label in value, or NULL; points into value. */
    const char *label;
    /* Milliseconds until it is free by the server's clock; -1: it has no
     * end. 0 of a unix time (see below): it is over, and who waits for it next
     * takes it over. */
    int64_t left_ms;
    /* The value is a unix time, as programs write it that lock by SETNX and
     * GETSET (see NXL_SCHEME_TIMESTAMP): the second at which it is over. 0: it
     * is none. */
    int64_t value_ends_s;
} nxl_holder;

/* Is it by that token that the name is held? Compares with the whole value,
 * and with the digits of a unix time in this library's format. Sends nothing.
 * NULL is nobody's. */
bool nxl_holder_is(const nxl_holder *holder, const char *token);

/* Asks who holds the name of this lock, which need not be held by it. Blocks
 * for timeout_ms at most; sends one script (GETRANGE, PTTL, EXISTS). holder may
 * be NULL. NXL_OK: *holder is filled. NXL_FREE: nobody. NXL_E_WRONG_TYPE: the
 * key is used for something else. Other errors as nxl_lock_acquire(). Over
 * several servers NXL_FREE is the word of a majority; NXL_OK is that of one at
 * least where no majority can call the name free, because they say that it is
 * held or do not answer. nxl_lock_holder_at() tells each. */
int nxl_lock_inspect(nxl_lock *lock, nxl_holder *holder) NXL_MUST_USE;

/* Removes exactly what nxl_lock_inspect() showed, if it still stands: a
 * compare-and-delete of seen->value. HARM: its holder may be at work and
 * believes itself alone until its own deadline. Blocks for timeout_ms at
 * most. NXL_OK: removed. NXL_FREE: it does not stand there any more.
 * NXL_UNKNOWN: no answer. NXL_E_INVALID: truncated or empty value. */
int nxl_lock_break(nxl_lock *lock, const nxl_holder *seen) NXL_MUST_USE;

/* What the last nxl_lock_inspect() found at one server, 0 ...
 * nxl_client_servers() - 1 in the order of the URLs. NXL_OK: *holder is filled.
 * NXL_FREE: nothing stands there. NXL_E_UNREACHABLE, _DENIED, ...: it did not
 * tell; nxl_lock_errmsg_at() says why. NXL_E_INVALID: the last
 * operation on this lock is no inspection that is over, or there is no such
 * server. NXL_E_FORKED. No I/O. */
int nxl_lock_holder_at(const nxl_lock *lock, size_t server,
    nxl_holder *holder) NXL_MUST_USE;

/* ------------------------------------------------------ non-blocking door
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
 * A client serves one door: the first _start, pollfds, fd or process makes it
 * a loop client, the first blocking operation a blocking one; afterwards calls
 * of the other door return NXL_E_INVALID (0).
 *
 * Every _start sends nothing by itself and does not block: the commands
 * leave, many in one write, in the next pollfds or process. NXL_PENDING: one
 * event with the blocking twin's result will follow. Anything else is the
 * final result and no event follows. */
int nxl_lock_acquire_start(nxl_lock *lock, int64_t wait_ms) NXL_MUST_USE;
int nxl_lock_extend_start(nxl_lock *lock, int64_t ttl_ms) NXL_MUST_USE;
int nxl_lock_release_start(nxl_lock *lock) NXL_MUST_USE;
int nxl_lock_adopt_start(nxl_lock *lock, const char *token) NXL_MUST_USE;
int nxl_lock_inspect_start(nxl_lock *lock) NXL_MUST_USE;
int nxl_lock_break_start(nxl_lock *lock, const nxl_holder *seen) NXL_MUST_USE;

/* After the event of an inspect that ended with NXL_OK: copies what it found.
 * NXL_OK, NXL_FREE, NXL_E_INVALID (no inspection has been made),
 * NXL_E_FORKED. No I/O. */
int nxl_lock_holder(const nxl_lock *lock, nxl_holder *holder) NXL_MUST_USE;

/* Writes the descriptors to wait for, at most capacity, into fds, and into
 * *timeout_ms how long poll() may wait (-1: for ever). Returns how many there
 * are, which may be more than capacity: then call again with more room. (At
 * present it is one, which stands for all; do not rely on that.) Read them
 * anew after each process. Sends what is waiting to be sent; does not block.
 * A cancel in another thread makes one of them readable. */
size_t nxl_client_pollfds(nxl_client *client, struct pollfd *fds,
    size_t capacity, int *timeout_ms);

/* One descriptor that is readable whenever nxl_client_process() has something
 * to do, the time-out included: for loops that want a single one. It stays
 * the same for the client's life and is the client's. -1: the system gave
 * none, or NXL_E_INVALID applies; nxl_client_errmsg() tells. */
int nxl_client_fd(nxl_client *client);

/* Reads, decides, sends; does not block. Spurious calls are harmless.
 * NXL_OK, NXL_E_INVALID, NXL_E_FORKED. */
int nxl_client_process(nxl_client *client);

enum nxl_operation {
    NXL_OP_ACQUIRE = 1,
    NXL_OP_EXTEND = 2,
    NXL_OP_RELEASE = 3,
    NXL_OP_ADOPT = 4,
    NXL_OP_INSPECT = 5,
    NXL_OP_BREAK = 6,
    /* No operation: a lock with options.renew was lost; nxl_lock_loss() says
     * how. Its result is NXL_LOST. It comes once, before the deadline that the
     * lock had, unless this process itself was stopped or late. None comes
     * after the lock was released or acquired anew. */
    NXL_OP_HOLD = 7
};

typedef struct nxl_event {
    nxl_lock *lock;
    void *user;    /* options.user of that lock */
    int operation; /* enum nxl_operation */
    int result;    /* enum nxl_result */
} nxl_event;

/* Takes the next event; false when there is none. A grant that went stale
 * while it waited here arrives as NXL_LOST and is released. Of a client of the
 * blocking door it gives the losses (NXL_OP_HOLD), in any thread. */
bool nxl_client_next_event(nxl_client *client, nxl_event *event);

/* A descriptor that is readable while the loss of a lock (NXL_OP_HOLD) waits
 * in nxl_client_next_event(): for programs that block elsewhere, with either
 * door; only wait for it, do not read it. It stays the same and is the
 * client's. -1: the system gave none, or client is NULL or forked. */
int nxl_client_loss_fd(nxl_client *client);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
