/* SPDX-License-Identifier: MIT */
/*
 * A struct server with the test at the other end of its connection, and the
 * clock in the test's hand. rig_up() brings it through a handshake.
 */
#ifndef NXLOCK_TESTS_SERVER_RIG_H
#define NXLOCK_TESTS_SERVER_RIG_H

#include "support/test.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/deadline.h"
#include "net/server.h"
#include "net/spare.h"
#include "support/local.h"

#define RIG_START UINT64_C(7000000000000)
#define RIG_TOKEN "6f1d7c1e-0000-4000-8000-0123456789ab"
#define RIG_RUN_ID "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RIG_OTHER_RUN_ID "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define RIG_REQUESTS 12
#define RIG_TTL_MS 5000

struct rig {
    struct server s;
    struct list spares;
    struct endpoint endpoint;
    uint64_t now;
    char dir[LOCAL_PATH], path[LOCAL_PATH];
    int listener, peer;
    char said[1 << 17]; /* by the last rig_said() */
    struct verb verb[RIG_REQUESTS];
    struct request request[RIG_REQUESTS];
    struct completion last;
    char last_text[256]; /* of a fault, which does not live long */
};

static struct rig rig;

static inline void rig_listen(void)
{
    rig.listener = local_listen_unix(rig.path);
    assert_true(rig.listener >= 0);
}

static inline void rig_unlisten(void)
{
    close(rig.listener);
    unlink(rig.path);
    rig.listener = -1;
}

/* With URL parameters, or ""; %s is the folder of the socket. */
static inline void rig_init(const char *parameters, bool sole)
{
    struct text error;
    char url[512], format[256];
    memset(&rig, 0, sizeof(rig));
    rig.endpoint = (struct endpoint){
        .settings = {
            .timeout_ms = 500, .max_ttl_ms = 60000, .keepalive_s = 15}};
    rig.now = RIG_START;
    rig.peer = -1;
    local_dir_make(rig.dir);
    local_path(rig.path, rig.dir, "s");
    rig_listen();
    snprintf(format, sizeof(format), "unix://%%s%s", parameters);
    snprintf(url, sizeof(url), format, rig.path, rig.dir);
    assert_int_equal(url_parse(&rig.endpoint, url, &error), URL_OK);
    struct target to = target_of(&rig.endpoint);
    server_init(&rig.s, &to, sole, 42);
    list_init(&rig.spares);
    rig.s.spares = &rig.spares;
    for (unsigned i = 0; i < RIG_REQUESTS; i++) {
        rig.verb[i] = (struct verb){.kind = VERB_ACQUIRE,
            .key = slice_of("key"),
            .token = slice_of(RIG_TOKEN),
            .ttl_ms = RIG_TTL_MS};
        list_init(&rig.request[i].node);
        rig.request[i].server = &rig.s;
        rig.request[i].index = (uint8_t)i;
        rig.request[i].owner = &rig;
        assert_true(spare_reserve(&rig.request[i], rig.verb[i].key));
    }
}

static inline void rig_hang_up(void)
{
    if (rig.peer >= 0)
        close(rig.peer);
    rig.peer = -1;
}

static inline int rig_set_up(void **state)
{
    (void)state;
    rig_init("", true);
    return 0;
}

static inline int rig_tear_down(void **state)
{
    (void)state;
    server_free(&rig.s);
    for (unsigned i = 0; i < RIG_REQUESTS; i++)
        request_free(&rig.request[i]);
    cleaners_free(&rig.spares);
    endpoint_free(&rig.endpoint);
    rig_hang_up();
    if (rig.listener >= 0)
        close(rig.listener);
    local_dir_remove(rig.dir);
    return 0;
}

#define rig_test(name)                                                         \
    cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

/* ------------------------------------------------------------ the other end */

/* Takes the connection that has been begun. */
static inline void rig_accept(void)
{
    rig_hang_up();
    rig.peer = accept4(rig.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(rig.peer >= 0);
}

/* What came since the last call. */
static inline const char *rig_said(void)
{
    ssize_t n = recv(rig.peer, rig.said, sizeof(rig.said) - 1, 0);
    rig.said[n > 0 ? n : 0] = '\0';
    return rig.said;
}

#define assert_said(part) assert_contains(rig_said(), part)
#define assert_silent() assert_string_equal(rig_said(), "")

static inline size_t rig_count(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static inline void rig_push(void)
{
    server_push(&rig.s, rig.now);
}

/* What the server has in a watch. */
static inline bool rig_poll(struct pollfd *fd)
{
    const struct conn *c = &rig.s.conn;
    bool dialling = rig.s.state == SERVER_CONNECTING;
    fd->revents = 0;
    fd->fd = dialling ? rig.s.dial.fd : c->transport.fd;
    fd->events = (short)(c->polled_for_room ? POLLIN | POLLOUT : POLLIN);
    if (dialling)
        fd->events = dial_events(&rig.s.dial);
    return rig.s.state != SERVER_DOWN;
}

/* Looks at the descriptor and takes completions until the first; NULL: there
 * is none. */
static inline struct request *rig_turn(void)
{
    struct pollfd fd;
    if (rig_poll(&fd) && poll(&fd, 1, 0) == 1)
        rig.s.ready = fd.revents;
    if (!server_next(&rig.s, &rig.last, rig.now))
        return NULL;
    struct slice text = rig.last.outcome.text;
    if (text.len >= sizeof(rig.last_text))
        text.len = sizeof(rig.last_text) - 1;
    if (text.len)
        memcpy(rig.last_text, text.data, text.len);
    rig.last_text[text.len] = '\0';
    return rig.last.request;
}

/* The server says that. */
static inline void rig_send(const char *bytes)
{
    if (!local_send(rig.peer, bytes, strlen(bytes)))
        fail_msg(
            "the other end has closed the connection: %s is not read", bytes);
}

static inline struct request *rig_reply(const char *bytes)
{
    rig_send(bytes);
    return rig_turn();
}

/* Answers to the handshake, as client "id" of the process run_id. */
static inline void rig_send_handshake(int id, const char *run_id)
{
    char info[128], all[512];
    snprintf(
        info, sizeof(info), "redis_version:7.0.0\r\nrun_id:%s\r\n", run_id);
    snprintf(all, sizeof(all), ":%d\r\n$%zu\r\n%s\r\n+s\r\n+s\r\n+s\r\n", id,
        strlen(info), info);
    rig_send(all);
}

/* The connection that has been begun becomes good. */
static inline void rig_shake(int id, const char *run_id)
{
    rig_accept();
    assert_said("CLIENT\r\n");
    rig_send_handshake(id, run_id);
    assert_null(rig_turn());
    assert_int_equal(rig.s.state, SERVER_UP);
}

/* From here on the socket is full; and it has room again. */
static inline ssize_t rig_send_nothing(
    struct transport *t, const void *bytes, size_t len)
{
    (void)t, (void)bytes, (void)len;
    return 0;
}

static inline void rig_block(void)
{
    static struct transport_kind full;
    full = transport_plain;
    full.send = rig_send_nothing;
    rig.s.conn.transport.kind = &full;
}

static inline void rig_unblock(void)
{
    rig.s.conn.transport.kind = &transport_plain;
}

/* -------------------------------------------------------------- requests */

static inline struct request *rig_submit(unsigned i)
{
    server_submit(&rig.request[i], &rig.verb[i], NULL, rig.now);
    return &rig.request[i];
}

static inline bool rig_abandon(unsigned i, bool undo)
{
    return server_cancel(&rig.request[i], undo, rig.now);
}

/* Up and idle, as client 7 of RIG_RUN_ID. Request 11 was granted for it. */
static inline void rig_up(void)
{
    struct request *r = rig_submit(RIG_REQUESTS - 1);
    rig_push();
    rig_shake(7, RIG_RUN_ID);
    rig_push();
    assert_said("SET\r\n");
    assert_ptr_equal(rig_reply("+OK\r\n"), r);
}

/* The last completion. */
static inline void rig_assert_fault(
    enum fault fault, bool unsure, const char *words)
{
    assert_int_equal(rig.last.outcome.kind, OUTCOME_FAULT);
    assert_int_equal(rig.last.outcome.fault, fault);
    assert_int_equal(rig.last.outcome.unsure, unsure);
    assert_contains(rig.last_text, words);
}

static inline size_t rig_cleanups(void)
{
    size_t n = 0;
    for (struct list *i = rig.s.cleaners.next; i != &rig.s.cleaners;
         i = i->next)
        n++;
    return n;
}

#endif
