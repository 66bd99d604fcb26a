/* SPDX-License-Identifier: MIT */
/*
 * What the tests with a scripted server share: scripts put together from
 * parts, a client and a lock on them, and calls that have to end in time.
 */
#ifndef NXLOCK_TEST_FAKE_RIG_H
#define NXLOCK_TEST_FAKE_RIG_H

#include "support/test.h"

#include <nxlock.h>
#include <poll.h>

#include "support/fake.h"

#define RUN_ID "0123456789abcdef0123456789abcdef01234567"
#define INFO_TEXT "# Server\\r\\nredis_version:7.0.15\\r\\nrun_id:" RUN_ID

/* Parts of scripts. $t is the token of the attempt under test, $z that of
 * the one by which the handle shows that it works. */
#define SHAKE "EXPECT-HANDSHAKE\n"
#define FLIGHT                                                                 \
    "EXPECT CLIENT ID\nEXPECT INFO\nEXPECT SCRIPT LOAD *\n"                    \
    "EXPECT SCRIPT LOAD *\nEXPECT SCRIPT LOAD *\n"
#define SET_T "EXPECT SET k $t NX PX 30000\n"
#define UNDO_T "EXPECT EVAL * 1 k $t\n"
#define DROP_T "EXPECT EVALSHA * 1 k $t\n"
#define OK "SEND +OK\\r\\n\n"
#define ONE "SEND :1\\r\\n\n"
#define ZERO "SEND :0\\r\\n\n"
#define GRANT SET_T OK
#define WORKS "EXPECT SET k $z NX PX 30000\n" OK "EXPECT EVALSHA * 1 k $z\n" ONE
#define NEXT "ACCEPT\n"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RIG_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define RIG_SLOW 1
#endif
#endif

/* How much later than its deadline a call may return, on a machine that is
 * busy with other tests. */
static inline int64_t slack_ms(void)
{
#ifdef RIG_SLOW
    return 500;
#else
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "vgpreload") ? 500 : 250;
#endif
}

/* ---------------------------------------------------------------- scripts */

struct script {
    size_t len;
    char text[16384];
};

static inline void add(struct script *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void add(struct script *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(s->text + s->len, sizeof(s->text) - s->len, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof(s->text) - s->len);
    s->len += (size_t)n;
}

/* The ways in which a reply is not had. TCP for a true reset. */
struct cut {
    const char *name;
    bool part, reset;
};

static const struct cut cuts[] = {
    {"closed before the reply", false, false},
    {"closed inside the reply", true, false},
    {"reset before the reply", false, true},
    {"reset inside the reply", true, true},
};
#define CUTS (sizeof(cuts) / sizeof(cuts[0]))

static inline void add_cut(
    struct script *s, const struct cut *cut, const char *part)
{
    if (cut->part)
        add(s, "SEND-PART %s\n", part);
    add(s, cut->reset ? "RESET\n" : "CLOSE\n");
}

/* -------------------------------------------------------------------- rig */

struct rig {
    struct fake *fake;
    nxl_client *client;
    nxl_lock *lock; /* of k */
    char url[256];
};

static inline nxl_client *client_of(const char *url)
{
    nxl_client *client;
    char error[256] = "";
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.errbuf = error;
    options.errbuf_size = sizeof(error);
    if (nxl_client_new(&client, url, &options) != NXL_OK)
        fail_msg("%s: %s", url, error);
    return client;
}

static inline nxl_lock *lock_of_name(
    nxl_client *client, const char *name, int64_t ttl_ms)
{
    nxl_lock *lock;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = ttl_ms;
    assert_int_equal(nxl_lock_new(&lock, client, name, &options), NXL_OK);
    return lock;
}

/* A script and a client of it. way: 'u'nix or 't'cp; params: of the URL. */
static inline struct rig rig_open(
    const char *script, char way, const char *params)
{
    struct rig r = {.fake = fake_start(script)};
    snprintf(r.url, sizeof(r.url), "%s?%s",
        way == 'u' ? fake_url(r.fake) : fake_tcp_url(r.fake), params);
    r.client = client_of(r.url);
    r.lock = lock_of_name(r.client, "k", 30000);
    return r;
}

/* Ends the client, then the play, which has to have gone by its script. */
static inline void rig_close(struct rig *r)
{
    nxl_lock_free(r->lock);
    nxl_client_free(r->client);
    assert_no_text(fake_join(r->fake));
    fake_free(r->fake);
}

/* Ends both, wherever the play is. */
static inline void rig_drop(struct rig *r)
{
    nxl_lock_free(r->lock);
    nxl_client_free(r->client);
    fake_free(r->fake);
}

/* The script of what rig_ready() does. */
#define READY SHAKE "EXPECT EVALSHA * 1 ready *\nSEND *0\\r\\n\n"

/* As rig_open(), for a script that begins with READY, and with GRANT behind it
 * if the lock is to be held: connected, and held. With a short timeout_ms a
 * busy machine may not come so far in time; then it is begun anew. */
static inline struct rig rig_ready(
    const char *script, char way, const char *params, bool held)
{
    for (int tries = 1;; tries++) {
        struct rig r = rig_open(script, way, params);
        nxl_lock *other = lock_of_name(r.client, "ready", 30000);
        int rc = nxl_lock_inspect(other, NULL);
        nxl_lock_free(other);
        bool ready = rc == NXL_FREE;
        if (ready && held)
            ready = (rc = nxl_lock_acquire(r.lock, 0)) == NXL_OK;
        if (ready)
            return r;
        rig_drop(&r);
        if (tries == 100)
            fail_msg("%s: not ready: %s", params, nxl_strerror(rc));
    }
}

/* Lets the play go on after WAIT-FOR name, to a CLOSE or RESET, and waits
 * until that has been done: the fake's descriptor is one of this process. */
static inline void rig_hang_up(struct rig *r, const char *name)
{
    int before = count_fds();
    fake_signal(r->fake, name);
    assert_eventually(count_fds() < before);
}

/* The connection has been idle for a while. */
static inline void rig_idle(void)
{
    int64_t end = test_now_ms() + 3;
    assert_eventually(test_now_ms() >= end);
}

/* ---------------------------------------------------------- calls in time */

static inline void check_call(const char *call, int rc, int wanted,
    int64_t took, int64_t low, int64_t high, const char *file, int line)
{
    if (rc != wanted) {
        print_error("%s: %s\n  wanted %s\n", call, nxl_strerror(rc),
            nxl_strerror(wanted));
        _fail(file, line);
    }
    if (took < low || took > high + slack_ms()) {
        print_error("%s took %lld ms, not %lld to %lld\n", call,
            (long long)took, (long long)low, (long long)high);
        _fail(file, line);
    }
}

/* The call gives that result, after low ms at least and high ms (and the
 * machine's slack) at most. */
#define assert_takes(call, result, low, high)                                  \
    do {                                                                       \
        int64_t rig_start = test_now_ms();                                     \
        int rig_rc = (call);                                                   \
        check_call(#call, rig_rc, result, test_now_ms() - rig_start, low,      \
            high, __FILE__, __LINE__);                                         \
    } while (0)
#define assert_ends(call, result, high) assert_takes(call, result, 0, high)

/* One cycle, for which WORKS is the script. */
static inline void assert_works(nxl_lock *lock)
{
    assert_ends(nxl_lock_acquire(lock, 0), NXL_OK, 2000);
    assert_true(nxl_lock_held(lock));
    assert_string_equal(nxl_lock_errmsg(lock), "");
    assert_ends(nxl_lock_release(lock), NXL_OK, 2000);
    assert_false(nxl_lock_held(lock));
}

/* Nothing of an acquire that did not end well is left in the handle. */
static inline void assert_not_held(const nxl_lock *lock)
{
    assert_false(nxl_lock_held(lock));
    assert_int_equal(nxl_lock_remaining_ms(lock), 0);
    assert_true(nxl_lock_deadline(lock) == 0);
}

/* ------------------------------------------------------ non-blocking door */

/* One turn, of at most so many ms. Returns what pollfds asked for: -1 says
 * that nothing at all is due by itself. */
static inline int turn(nxl_client *client, int at_most_ms)
{
    struct pollfd fds[8];
    int asked;
    size_t count = nxl_client_pollfds(client, fds, 8, &asked);
    assert_between(count, 1, 8);
    int wait = asked < 0 || asked > at_most_ms ? at_most_ms : asked;
    poll(fds, (nfds_t)count, wait);
    assert_int_equal(nxl_client_process(client), NXL_OK);
    return asked;
}

/* Turns until the condition holds, for 30 s at most. */
#define turn_until(client, condition)                                          \
    do {                                                                       \
        int64_t rig_end = test_now_ms() + 30000;                               \
        while (!(condition)) {                                                 \
            if (test_now_ms() > rig_end) {                                     \
                print_error("never came true: %s\n", #condition);              \
                _fail(__FILE__, __LINE__);                                     \
            }                                                                  \
            turn(client, 1);                                                   \
        }                                                                      \
    } while (0)

/* Turns until nothing is under way and nothing due by itself any more. */
static inline void assert_idle(nxl_client *client)
{
    turn_until(client, turn(client, 1) < 0);
}

/* Turns until the next event, and gives its result. */
static inline int event_result(nxl_client *client, const nxl_lock *lock)
{
    nxl_event event;
    turn_until(client, nxl_client_next_event(client, &event));
    if (lock)
        assert_ptr_equal(event.lock, lock);
    return event.result;
}

/* Starts and drives it to its event. */
static inline int acquire_by_loop(
    nxl_client *client, nxl_lock *lock, int64_t wait_ms)
{
    assert_int_equal(nxl_lock_acquire_start(lock, wait_ms), NXL_PENDING);
    return event_result(client, lock);
}

#endif
