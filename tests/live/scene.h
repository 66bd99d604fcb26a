/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * Live scenes: tests of the public interface against real servers, written as
 * text in live/scenes/NAME.scenes and played by live/test_scenes.c. This is the
 * language.
 *
 *   # comment
 *   scene: a held lock is busy   begins with no keys at the servers
 *     a = lock job ttl_ms=5000   NAME = WHAT: a handle, of the client "client"
 *     two = client poll=1        a client, with parameters of its URL
 *     b = lock job client=two
 *     a: acquire -> OK           SUBJECT: WHAT -> EXPECTATION
 *     b: acquire -> BUSY saying "another client holds the lock"
 *     server: GET job -> <a's token>
 *     a, b: release -> OK or LOST
 *
 * A line that is indented more than a step goes on with it, or is a step of its
 * block. A scene with a table is played for each row, with <right> replaced; a
 * step that is an empty cell does nothing. With "and each of" between two
 * tables each row of one is played with each row of the other.
 *
 *   scene: a user without a command
 *     | right | words  |
 *     | -set  | 'set'  |
 *     | -eval | 'eval' |
 *
 * Before the first scene, of all scenes of the file:
 *   servers: 1 and 3             with one server, and again with three; at
 *                                most 7. Default: 1
 *   servers: one for each strategy, or servers: one that changes its version
 *                                the servers of strategies_rig.h
 *   server arguments: --databases 2
 *   server clock: can be stepped
 *   server certificates: all     they speak TLS too, see support/certs.h
 *   client parameters: poll=1    of the URLs of all clients
 *   transports: tcp              over TCP only, unless NXLOCK_FULL is set.
 *                                Default: over TCP, then the unix socket
 *   calls: blocking, event loop and descriptor
 *                                through each of these interfaces, the last by
 *                                nxl_client_fd(). The loop turns while a call,
 *                                "until" or "pass" lasts. Also within a scene
 *   scene: before each           how the scenes that follow begin; if it has a
 *                                table, each is played for each of its rows
 *   scene: after each            likewise how they end
 *
 * Conditions: "needs Redis 7: WHY", "needs command WAITAOF", "needs ACL",
 * "needs IPv6" and "not as root: WHY" skip the scene. "not over TLS: WHY", "not
 * with several servers: WHY", "not with one server: WHY", "not instrumented:
 * WHY" (by a sanitizer or valgrind) and, for each strategy, "only: tokens" or
 * another of is_for() leave it out.
 *
 * NAME = ..., with "-> RESULT saying ..." where that is refused:
 *   lock NAME... OPTION=VALUE...
 *                                options of nxl_lock_options, and client=NAME;
 *                                several names: one handle of all
 *   client PARAMETER... [with callback] [through proxy] [to servers 1..2]
 *     [at URL]                   of all servers; "through proxy": each behind
 *                                its own; "with callback": for credentials
 *   peer says "SSH-2" [at once] [over and over] [then closes, or resets]
 *                                listens at <NAME>, and says so to each that
 *                                connects and sends
 *   front [with records of 512 bytes]
 *                                a TLS server in front of the first server, at
 *                                <NAME>, which is 127.0.0.1 and <front port>
 *   a: deadline                  keeps a value, which is <NAME> from then on;
 *   <unix time>, now             so do these; "now" is for "within ... of"
 * "h1..h40 = lock k<each>" makes forty handles, of k1 to k40.
 *
 * SUBJECT: a name, or several with commas, "h1..h40", or one of these. WHAT:
 * calls, several with commas, or a value.
 *   A handle: acquire [wait 5000, or forever], extend [9000], release, adopt
 *     TOKEN, inspect, break (what inspect saw) or break 2 (the second holder);
 *     once [halt, retry or look] [fingerprint F] [keep MS] [wait MS], which is
 *     nxl_once_begin(); tell done, failed, doubt or clear [code 3] [result
 *     "paid"]; forget; cancel, interrupt, free.
 *     "begin CALL" does it in a thread, or during turns of the event loop, and
 *     "ends" waits for it. "begin CALL stopped before each step" stops it
 *     there, or "after", before the replies to the step's commands come; the
 *     scene is played again for each step, and for the last time up to a call
 *     that ends. Its client is through proxy, which then has to "pass requests,
 *     pass replies".
 *     Values: token, held, remaining (ms), deadline (ns), fence, fence 2,
 *     message, message of server 2, loss, running, names, name 2; holder FIELD,
 *     holder 2 FIELD (of the last inspect; FIELD of nxl_holder), holder at
 *     server 2 [FIELD] (the result, or a field, of nxl_lock_holder_at()),
 *     record FIELD (of nxl_record).
 *   A client: connect (to all its servers), ask COMMAND, interrupt, free, begin
 *     free, ends; leave events: the loop turns, but takes no event before one
 *     is waited for. Values: event (the next one: "hold of a: LOST"), lost (is
 *     the descriptor of losses ready?), turns (so often it asked the event loop
 *     to call it), holds NAME, description [of server 2], message, hides TEXT
 *     (does it?), prefix, servers, connected (to how many), warnings (calls of
 *     options.warning), running (is it being freed?), stats FIELD, facts FIELD
 *     [of server 2]: of nxl_stats, nxl_server_facts.
 *   server, server 2, servers, servers 1..2, and 2..3 servers (at so many of
 *     all it is as expected): a command of Redis, in capitals; run tell 2 KEYS
 *     ARGUMENTS, the script src/wire/scripts/tell.lua; freeze, thaw, kill,
 *     restart, follow server 2, follow nobody; becomes "2.4" [by failover], if
 *     it changes its version; present expired (that certificate); step clock
 *     3600, by so many seconds from this machine's. What CONFIG SET, ACL
 *     SETUSER, REPLICAOF and "follow" changed is undone after the scene.
 *     Values: calls COMMAND (how often it ran), sent as CALL (how often its
 *     strategy was used), lease of NAME (in ms, at least so long a key of ours
 *     lasts, by its ttl or by its time), transactions (that are open), clients,
 *     lasting keys, info SECTION FIELD, waiting NAME (in line, with a
 *     subscription), holder NAME, waiter NAME (the handle that holds it, or is
 *     first in line).
 *   proxy, proxy 2, proxies: hold, pass, drop or keep, and then requests or
 *     replies; delay replies 200; cut after 2 bytes of replies; cut, reset,
 *     refuse, welcome; strand, and later deliver, what it holds (proxy.h).
 *     Values: connections, accepted, bytes of requests, bytes of replies.
 *   process: memory (in KB; not where a sanitizer takes its own), allocations
 *     (of the test's own thread), descriptors, processor (time it used, in ms).
 *   front: honest, plain, plain after the hello, silent, stopping in an answer,
 *     dribbling, flooding the handshake, or flooding with tickets, new keys,
 *     handshakes or data, to all that connect from now on; presents expired
 *     [over TLS 1], a certificate and, as 1.N, the newest version it speaks;
 *     at connections that are open: new keys, tickets, garbage, unasked reply,
 *     goodbye, close, reset. Values: accepted, open, goodbyes, name (that was
 *     asked for), heard TEXT, since "forgets".
 *   callback: gives "PASSWORD" [as USER] [then "PASSWORD", from its second call
 *     on]; fails "WHY" 3 times; fills everything, without an end; forks, hangs,
 *     returns. Values: calls, running, sentinels (calls for them), servers (it
 *     was called for). Passwords begin with "s3cret.", which no message and no
 *     trace may show.
 *   file own.pem, in <directory>: replaced by client.pem (in one step),
 *     overwritten by it, holds "text" [readable by all, or by nobody], fifo,
 *     removed.
 *
 * Other steps:
 *   pass 50 ms                   where time itself is the matter; or, of event
 *                                loops, "pass 50 ms without a turn"
 *   until STEP                   again and again until it is as expected; 30 s.
 *                                OK instead of an error ends it
 *   until STEP, or STEP          until one of the two is
 *   until CALLS then STEP        both, again and again; at most 4 calls
 *   in 600 ms STEP               as "until", but for so long; longer if the
 *                                machine is busy
 *   in a child STEP              by a child of fork(), which then ends
 *   if OK: STEP                  by the result of the last call; if not OK:
 *                                STEP
 *   repeat 5 times               the steps of its block
 *   memory fails once at each place
 *     Plays its block again and again: at first the first allocation fails of
 *     the step "where it fails: STEP" in it, then the second, up to the first
 *     time that none does. "for good": with all after that one; "at each 61st
 *     place": not at all of them, unless NXLOCK_FULL is set. What was made in
 *     the block is freed at its end. All of it is done twice: memory that the
 *     second time takes is a leak.
 *   cut at each 5th byte of requests
 *     Likewise: at first to count how many bytes its steps "where it is cut:
 *     STEP" send by the proxy, where each call is to return OK; then the
 *     connection is cut behind byte 0 of them, then behind byte 5, and so on;
 *     "of replies", "of the last 80 of replies".
 *
 * EXPECTATION: a result without NXL_; yes, no; a number, 5..9, 5.., ..9, above
 * 5; "text"; containing "part"; none; error; not X; X or Y; out of memory:
 * E_NOMEM, E_SYSTEM or E_UNREACHABLE, or of several servers UNKNOWN, with a
 * message of memory, and an allocation has failed. After it, or alone:
 *   saying "words", "more"       in the value or, of a call, in the handle's
 *                                message; "not saying": in none
 *   with held yes, token ""      more values; after inspect, once, tell, stats
 *                                and facts first of all their fields
 *   with only busy 1, waits 1    the same, and all other counters are 0
 *   within 100..400              how long a call took, in ms, or with "of
 *                                <called>" how long after that it ended; later
 *                                if the machine is busy
 *   sent as extend               by the strategy that this server has for it,
 *                                once, and by no other
 *   leasing 5000                 the deadline is that of a lease of 5000 ms
 *                                which was requested in this call
 *
 * <...> stands for a value: <a's token>, <server's calls set>, <before>,
 * <before + 1>, <server> and <server 2> (its URL), <scheme>, <port>, <tls
 * port>, <directory> (of the server), <unix time> (of the server), <majority>,
 * <servers>, <strategies> (as a client describes them), <65536 of n>, <blanks>
 * (a token in a lock by time: blanks.h). In quotes, \xNN is a byte.
 */
/* clang-format on */
#ifndef NXLOCK_TESTS_LIVE_SCENE_H
#define NXLOCK_TESTS_LIVE_SCENE_H

#include "live/strategies_rig.h"

#include <stdatomic.h>

enum {
    SCENE_NAMES = 64, /* handles, clients and kept values of a scene */
    SCENE_EVENTS = 16,
    SCENE_STOPS = 16, /* steps of a call at which it is stopped */
    SCENE_ROOM = 512,
    SCENE_UNTIL_MS = 30000
};

struct scene_step {
    unsigned line, indent;
    char *text;
};

/* Of the library: that of threads, an event loop by nxl_client_pollfds(), and
 * one by nxl_client_fd() alone. */
enum interface { BLOCKING, EVENT_LOOP, DESCRIPTOR, INTERFACES };

struct scene {
    char *name;
    unsigned line;
    bool loop; /* calls go through the event loop */
    bool by_descriptor;
    struct scene_step *steps;
    size_t count;
    size_t before; /* so many of them are of "before each" */
};

/* A word of a step, or a value. "none" has no text. */
struct word {
    char *text; /* zero-ended too */
    size_t length;
    bool quoted;
    bool comma; /* behind it */
};

/* The words that are still to be read. */
struct words {
    struct word *at, *end;
};

/* What a step has led to. */
struct outcome {
    struct word value;
    bool none, error;
    bool call;           /* the value is a result's name */
    const char *message; /* where "saying" looks */
    const char *fields;  /* how "with" names a field of it: "holder %s" */
    int64_t took_ms, ended_ms;
    uint64_t before_ns, after_ns;
    struct ways ways; /* gone before a call, where each strategy is played */
    struct thing *subject;
};

struct noun;

/* One server, proxy, handle or other thing that a step is about. */
struct subject {
    const struct noun *noun; /* NULL: a handle or a client */
    const char *name;        /* of that, or of a file */
    size_t index;            /* of a server or proxy */
};

enum thing_kind { NO_THING, A_LOCK, A_CLIENT, A_VALUE };

struct call {
    int operation;  /* NXL_OP_ACQUIRE; 0: none */
    int64_t number; /* how long it waits, the TTL, or the code that is told */
    int mode;       /* of "once", or the verdict of "tell" */
    int64_t keep_ms;
    char token[SCENE_ROOM]; /* or a fingerprint */
    struct word result;     /* that is told */
};

/* What has a name in a scene. */
struct thing {
    enum thing_kind kind;
    bool used;  /* by a step after the one that made it */
    bool inner; /* it was made in a block that is played again and again */
    char name[32];
    char value[SCENE_ROOM]; /* A_VALUE */

    nxl_client *client; /* A_CLIENT, and that of A_LOCK */
    atomic_int warnings;
    char warning[1024];
    nxl_event event[SCENE_EVENTS]; /* taken while another call was awaited */
    size_t events;
    int descriptor; /* of nxl_client_fd(), asked for once; 0: not yet */
    bool leaves_events;
    unsigned turns; /* so often nxl_client_process() was due */

    nxl_lock *lock;
    nxl_holder seen;
    char loss[256];

    struct call call; /* the last one */
    bool begun;       /* it has not been seen to end */
    pthread_t thread;
    bool threaded;
    atomic_bool running;
    int result;
    int64_t began_ms, ended_ms;
    uint64_t before_ns, after_ns;
};

/* The scene that is played. */
static struct {
    const struct scene *scene;
    const struct scene_step *step;
    const char *path;
    struct thing things[SCENE_NAMES];
    size_t count;
    bool inner;      /* as of a thing that is made now */
    char each[32];   /* the number of the name that is being made */
    char result[32]; /* of the last call */
    bool is_child;   /* this process: of one that plays a scene */
    char why[4096];  /* the last step was not as expected */
    struct {         /* "stopped before each step": the scene is played again */
        bool used, ended;     /* the call ended before it came to that step */
        unsigned step, least; /* so many steps a call has here */
    } stop;
} stage;

#define mismatch(...)                                                          \
    (snprintf(stage.why, sizeof(stage.why), __VA_ARGS__), false)

/* The step cannot be played: the file is wrong. */
#define file_error(...)                                                        \
    do {                                                                       \
        print_error(                                                           \
            "%s:%u: %s\n  ", stage.path, stage.step->line, stage.step->text);  \
        print_error(__VA_ARGS__);                                              \
        print_error("\n");                                                     \
        fail();                                                                \
    } while (0)

/* Texts of the file and, behind these, of the present step: its words and what
 * is expected of it. */
static char text_pool[64 << 20] __attribute__((aligned(16)));
static size_t text_used, texts_of_file;

static inline char *pool_take(size_t size)
{
    if (size > sizeof(text_pool) - text_used)
        fail_msg("%s: too much text", stage.path);
    char *taken = text_pool + text_used;
    text_used += (size + 15) & ~(size_t)15;
    return taken;
}

__attribute__((format(printf, 1, 2))) static inline char *formatted(
    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t size = (size_t)vsnprintf(NULL, 0, format, arguments) + 1;
    va_end(arguments);
    char *text = pool_take(size);
    va_start(arguments, format);
    vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return text;
}

/* The rest of a text that begins like that, or NULL. */
static inline const char *after(const char *text, const char *beginning)
{
    size_t length = strlen(beginning);
    return strncmp(text, beginning, length) == 0 ? text + length : NULL;
}

#endif
