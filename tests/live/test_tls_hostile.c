/* SPDX-License-Identifier: MIT */
/*
 * A server that does harm, or somebody between it and the client: no password
 * and no command goes to a peer that is not verified, no plain byte is taken
 * for a reply, and a peer that floods, dawdles or is silent costs neither a
 * deadline nor memory nor a renewal elsewhere.
 */
#include "live/renew_rig.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include "support/certs.h"
#include "support/redis_tls.h"

/* ------------------------------------------------------------- the server */

/* In threads of this program: each connection gets the next scene of a list,
 * and all later ones get the last. Scenes use OpenSSL with blocking calls, and
 * pass on to the group's redis-server what they do not want to spoil. Whatever
 * a scene can read is kept in `heard`. */

#define VISITS_MAX 64
#define PASSWORD "correct-horse"

struct hostile;

struct visit {
    struct hostile *h;
    int fd;
    unsigned number;
    bool over;
    pthread_t thread;
};

typedef void scene(struct visit *v);

struct hostile {
    int listener;
    uint16_t port;
    scene *const *scenes; /* up to NULL */
    pthread_t thread;
    pthread_mutex_t mutex; /* for what follows */
    bool stopping;
    unsigned visits, refused;
    struct visit visit[VISITS_MAX];
    char heard[1 << 16]; /* as text */
    size_t heard_len;
};

static struct hostile hostile;

static void hostile_hears(struct visit *v, const void *bytes, size_t len)
{
    struct hostile *h = v->h;
    pthread_mutex_lock(&h->mutex);
    if (len > sizeof(h->heard) - 1 - h->heard_len)
        len = sizeof(h->heard) - 1 - h->heard_len;
    memcpy(h->heard + h->heard_len, bytes, len);
    h->heard_len += len;
    pthread_mutex_unlock(&h->mutex);
}

static bool hostile_heard(struct hostile *h, const char *text)
{
    pthread_mutex_lock(&h->mutex);
    bool found = memmem(h->heard, h->heard_len, text, strlen(text));
    pthread_mutex_unlock(&h->mutex);
    return found;
}

static void hostile_forget(struct hostile *h)
{
    pthread_mutex_lock(&h->mutex);
    h->heard_len = 0;
    pthread_mutex_unlock(&h->mutex);
}

static unsigned hostile_visits(struct hostile *h)
{
    pthread_mutex_lock(&h->mutex);
    unsigned n = h->visits;
    pthread_mutex_unlock(&h->mutex);
    return n;
}

/* ----------------------------------------------------------- what scenes use
 */

/* Is the test still on? For scenes that go on sending. */
static bool visit_goes_on(struct visit *v)
{
    pthread_mutex_lock(&v->h->mutex);
    bool on = !v->h->stopping;
    pthread_mutex_unlock(&v->h->mutex);
    return on;
}

/* Reads and keeps what comes, as it comes, until the client closes. */
static void visit_listen(struct visit *v)
{
    char bytes[4096];
    ssize_t n;
    while ((n = recv(v->fd, bytes, sizeof(bytes), 0)) > 0)
        hostile_hears(v, bytes, (size_t)n);
}

/* Reads once. */
static void visit_hear_hello(struct visit *v)
{
    char bytes[4096];
    ssize_t n = recv(v->fd, bytes, sizeof(bytes), 0);
    if (n > 0)
        hostile_hears(v, bytes, (size_t)n);
}

/* The handshake with a certificate of certs.h. version 0: the newest. NULL: it
 * has failed. */
static SSL *visit_secure(struct visit *v, const char *name, int version)
{
    char path[LOCAL_PATH + 64], key[LOCAL_PATH + 64];
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    snprintf(path, sizeof(path), "%s/%s.pem", server.dir, name);
    snprintf(key, sizeof(key), "%s/%s.key", server.dir, name);
    if (SSL_CTX_use_certificate_chain_file(ctx, path) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        abort();
    SSL_CTX_set_max_proto_version(ctx, version);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL *ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    SSL_set_fd(ssl, v->fd);
    if (SSL_accept(ssl) == 1)
        return ssl;
    SSL_free(ssl);
    return NULL;
}

/* False: one side has closed. */
static bool visit_pass(struct visit *v, SSL *ssl, int redis)
{
    char bytes[4096];
    struct pollfd fds[2] = {
        {.fd = v->fd, .events = POLLIN}, {.fd = redis, .events = POLLIN}};
    if (!SSL_pending(ssl) && poll(fds, 2, -1) < 0)
        return false;
    if (SSL_pending(ssl) || fds[0].revents) {
        int n = SSL_read(ssl, bytes, sizeof(bytes));
        if (n <= 0 || !local_send(redis, bytes, (size_t)n))
            return false;
        hostile_hears(v, bytes, (size_t)n);
    }
    if (fds[1].revents) {
        ssize_t n = recv(redis, bytes, sizeof(bytes), 0);
        if (n <= 0 || SSL_write(ssl, bytes, (int)n) != (int)n)
            return false;
    }
    return true;
}

/* Honest from here on. */
static void visit_bridge(struct visit *v, SSL *ssl)
{
    int redis = local_connect(server.path, 0);
    while (redis >= 0 && visit_pass(v, ssl, redis))
        ;
    if (redis >= 0)
        close(redis);
}

/* ------------------------------------------------------------------- its life
 */

static void *visit_run(void *argument)
{
    struct visit *v = argument;
    scene *const *next = v->h->scenes;
    sigset_t pipe; /* OpenSSL raises it; the library must not */
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    for (unsigned i = 0; i < v->number && next[1]; i++)
        next++;
    (*next)(v);
    pthread_mutex_lock(&v->h->mutex);
    shutdown(v->fd, SHUT_RDWR);
    close(v->fd);
    v->over = true;
    pthread_mutex_unlock(&v->h->mutex);
    return NULL;
}

static void *hostile_run(void *argument)
{
    struct hostile *h = argument;
    int fd;
    while ((fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        pthread_mutex_lock(&h->mutex);
        if (h->stopping || h->visits == VISITS_MAX) {
            h->refused++;
            close(fd);
        } else {
            struct visit *v = &h->visit[h->visits];
            *v = (struct visit){.h = h, .fd = fd, .number = h->visits};
            if (pthread_create(&v->thread, NULL, visit_run, v) != 0)
                abort();
            h->visits++;
        }
        pthread_mutex_unlock(&h->mutex);
    }
    return NULL;
}

static void hostile_start(scene *const *scenes)
{
    struct hostile *h = &hostile;
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    memset(h, 0, sizeof(*h));
    pthread_mutex_init(&h->mutex, NULL);
    h->scenes = scenes;
    h->listener = local_listen_tcp(&h->port);
    assert_true(h->listener >= 0);
    assert_int_equal(pthread_create(&h->thread, NULL, hostile_run, h), 0);
}

/* Closes the connections that there are. */
static void hostile_cut(struct hostile *h)
{
    pthread_mutex_lock(&h->mutex);
    for (unsigned i = 0; i < h->visits; i++)
        if (!h->visit[i].over)
            shutdown(h->visit[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&h->mutex);
}

static void hostile_stop(void)
{
    struct hostile *h = &hostile;
    pthread_mutex_lock(&h->mutex);
    h->stopping = true;
    pthread_mutex_unlock(&h->mutex);
    shutdown(h->listener, SHUT_RDWR);
    pthread_join(h->thread, NULL);
    close(h->listener);
    hostile_cut(h);
    for (unsigned i = 0; i < h->visits; i++)
        pthread_join(h->visit[i].thread, NULL);
}

/* With the password in it. */
static void hostile_url(char *url, size_t room, const char *parameters)
{
    int n = snprintf(url, room,
        "rediss://:" PASSWORD "@127.0.0.1:%u?cacert=%s/ca.pem&%s",
        (unsigned)hostile.port, server.dir, parameters);
    assert_true(n > 0 && (size_t)n < room);
}

static nxl_client *hostile_client(const char *parameters)
{
    char url[512];
    hostile_url(url, sizeof(url), parameters);
    return client_at(url);
}

/* Of this process, with all threads. */
static int64_t cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum { TIMEOUT_MS = 300, WAIT_MS = 1000 };
/* What a call may take, beyond its time, on a machine that is busy with the
 * harm too. A call that hangs takes far longer. */
#define LONGER_MS (LIVE_INSTRUMENTED ? 15000 : 5000)
#define WITHIN "timeout_ms=300"

static int group_start(void **state)
{
    static const char *const more[] = {
        "foreign", "expired", "wrong-host", "self-signed", NULL};
    int rc = redis_start_tls(&server, &(struct redis_tls){.certificate = NULL},
        "--requirepass", PASSWORD, NULL);
    return rc == 0 ? certs_make_all(server.dir, more) : rc;
}

static void assert_refused(nxl_lock *lock, const char *words)
{
    int64_t began = test_now_ms();
    int rc = nxl_lock_acquire(lock, WAIT_MS);
    assert_between(test_now_ms() - began, 0, WAIT_MS + TIMEOUT_MS + LONGER_MS);
    assert_int_not_equal(rc, NXL_OK);
    assert_contains(nxl_lock_errmsg(lock), words);
    assert_null(strstr(nxl_lock_errmsg(lock), PASSWORD));
    assert_false(nxl_lock_held(lock));
}

/* -------------------------------------------------------- before the handshake
 */

#define GRANTS "+OK\r\n:7\r\n$0\r\n\r\n+s\r\n+s\r\n+s\r\n+OK\r\n+OK\r\n+OK\r\n"

static void answers_in_plain(struct visit *v)
{
    local_send(v->fd, GRANTS, strlen(GRANTS));
    visit_listen(v);
}

static void answers_the_hello_in_plain(struct visit *v)
{
    visit_hear_hello(v);
    answers_in_plain(v);
}

static void plain_answers(scene *const *scenes)
{
    hostile_start(scenes);
    nxl_client *client = hostile_client(WITHIN);
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_refused(lock, "redis://");
    end(lock, client);
    assert_false(hostile_heard(&hostile, "AUTH"));
    assert_false(hostile_heard(&hostile, PASSWORD));
    assert_false(redis_exists(&server, "k"));
    hostile_stop();
}

static void plain_replies_are_no_replies(void **state)
{
    static scene *const first[] = {answers_in_plain, NULL};
    static scene *const then[] = {answers_the_hello_in_plain, NULL};
    plain_answers(first);
    plain_answers(then);
}

/* ----------------------------------------------------------------- who is it
 */

static void is_good(struct visit *v)
{
    SSL *ssl = visit_secure(v, "server", 0);
    if (ssl)
        visit_bridge(v, ssl);
    SSL_free(ssl);
}

/* The handshake cannot succeed; what would follow it is kept. */
static void has_certificate(struct visit *v, const char *name, int version)
{
    SSL *ssl = visit_secure(v, name, version);
    if (ssl)
        visit_bridge(v, ssl);
    SSL_free(ssl);
    visit_listen(v);
}

static void is_foreign(struct visit *v)
{
    has_certificate(v, "foreign", 0);
}

static void is_foreign_by_1_2(struct visit *v)
{
    has_certificate(v, "foreign", TLS1_2_VERSION);
}

static void is_expired(struct visit *v)
{
    has_certificate(v, "expired", 0);
}

static void is_elsewhere(struct visit *v)
{
    has_certificate(v, "wrong-host", 0);
}

static void speaks_1_1(struct visit *v)
{
    has_certificate(v, "server", TLS1_1_VERSION);
}

/* The first connection was good, and a lock is held. */
static void second_connection(scene *bad, const char *words)
{
    scene *const scenes[] = {is_good, bad, NULL};
    live_clean(NULL);
    hostile_start(scenes);
    /* On a busy machine the good handshake may take long; the bad ones end by
     * themselves. */
    nxl_client *client = hostile_client("timeout_ms=5000");
    nxl_lock *held = new_lock(client, "held", 20000);
    nxl_lock *lock = new_lock(client, "k", 20000);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    assert_true(hostile_heard(&hostile, PASSWORD));
    hostile_forget(&hostile);
    hostile_cut(&hostile);
    assert_refused(lock, words);
    assert_true(nxl_lock_held(held)); /* until its deadline */
    assert_true(hostile_visits(&hostile) > 1);
    assert_false(hostile_heard(&hostile, "AUTH"));
    assert_false(hostile_heard(&hostile, "SET"));
    nxl_lock_free(held);
    end(lock, client);
    assert_true(redis_exists(&server, "held"));
    hostile_stop();
}

static void a_bad_second_connection(void **state)
{
    second_connection(is_foreign, "cacert=");
    second_connection(is_foreign_by_1_2, "cacert=");
    second_connection(is_expired, "expired on");
    second_connection(is_elsewhere, "not for 127.0.0.1");
    second_connection(speaks_1_1, "TLS version");
    second_connection(answers_in_plain, "redis://");
}

/* ---------------------------------------------------------- slow and silent
 */

static void never_answers(struct visit *v)
{
    visit_listen(v);
}

static void begins_an_answer(struct visit *v)
{
    visit_hear_hello(v);
    local_send(v->fd, "\x16\3\3\0\x7a\2\0", 7);
    visit_listen(v);
}

/* A byte now and then, of a record that never ends. */
static void dribbles(struct visit *v)
{
    struct pollfd hung_up = {.fd = v->fd, .events = POLLRDHUP};
    visit_hear_hello(v);
    local_send(v->fd, "\x16\3\3\x40\0\2\0\x30\0", 9);
    while (poll(&hung_up, 1, 5) == 0 && local_send(v->fd, "", 1))
        ;
}

/* Words of a handshake that mean nothing, as fast as they can be sent. */
static void floods_the_handshake(struct visit *v)
{
    char record[5 + 4096] = "\x16\3\3\x10\0";
    visit_hear_hello(v);
    while (local_send(v->fd, record, sizeof(record)))
        ;
}

static void a_handshake_without_end(scene *bad, bool idles)
{
    scene *const scenes[] = {bad, NULL};
    hostile_start(scenes);
    nxl_client *client = hostile_client(WITHIN);
    nxl_lock *lock = new_lock(client, "k", 5000);
    int fds = count_fds();
    int64_t cpu = cpu_ms();
    assert_refused(lock, "rediss://127.0.0.1");
    if (idles)
        assert_between(cpu_ms() - cpu, 0, WAIT_MS / 4);
    end(lock, client);
    hostile_stop();
    assert_between(count_fds(), 0, fds);
}

static void handshakes_without_end(void **state)
{
    a_handshake_without_end(never_answers, true);
    a_handshake_without_end(begins_an_answer, true);
    a_handshake_without_end(dribbles, true);
    a_handshake_without_end(floods_the_handshake, false);
}

/* Freed in the middle of a handshake: neither a wait nor a descriptor. */
static void freed_in_a_handshake(void **state)
{
    static scene *const scenes[] = {begins_an_answer, NULL};
    hostile_start(scenes);
    int fds = count_fds();
    nxl_client *client = hostile_client("timeout_ms=30000");
    nxl_lock *lock = new_lock(client, "k", 60000);
    assert_result(nxl_lock_acquire_start(lock, 10000), NXL_PENDING, lock);
    do
        assert_int_equal(nxl_client_process(client), NXL_OK);
    while (!hostile_heard(&hostile, "\x16\3\1"));
    int64_t began = test_now_ms();
    end(lock, client);
    assert_between(test_now_ms() - began, 0, LATE_MS);
    hostile_stop();
    assert_int_equal(count_fds(), fds - 1); /* its listener */
}

/* ------------------------------------------------------------------- floods
 */

static void floods_with_tickets(struct visit *v)
{
    SSL *ssl = visit_secure(v, "server", 0);
    while (ssl && visit_goes_on(v) && SSL_new_session_ticket(ssl) == 1 &&
           SSL_do_handshake(ssl) == 1)
        ;
    SSL_free(ssl);
}

/* Each is to be answered, but nothing is read. */
static void floods_with_keys(struct visit *v)
{
    SSL *ssl = visit_secure(v, "server", 0);
    while (ssl && visit_goes_on(v) &&
           SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1 &&
           SSL_do_handshake(ssl) == 1)
        ;
    SSL_free(ssl);
}

static void asks_for_handshakes(struct visit *v)
{
    SSL *ssl = visit_secure(v, "server", TLS1_2_VERSION);
    while (ssl && visit_goes_on(v) && SSL_renegotiate(ssl) == 1 &&
           SSL_do_handshake(ssl) == 1)
        ;
    SSL_free(ssl);
}

static void floods_with_data(struct visit *v)
{
    static const char bytes[16384];
    SSL *ssl = visit_secure(v, "server", 0);
    while (ssl && visit_goes_on(v) && SSL_write(ssl, bytes, sizeof(bytes)) > 0)
        ;
    SSL_free(ssl);
}

/* The call there ends in its time, and another client's lock is renewed. */
static void a_flood(scene *bad)
{
    enum { TTL_MS = 3000, FLOOD_MS = 1500, GROWTH_KB = 8192 };
    scene *const scenes[] = {bad, NULL};
    static struct waiter waiter;
    char url[LOCAL_PATH + 64];
    live_clean(NULL);
    hostile_start(scenes);
    snprintf(url, sizeof(url), "redis://:" PASSWORD "@127.0.0.1:%u",
        (unsigned)server.port);
    nxl_client *client = hostile_client(WITHIN), *good = client_at(url);
    nxl_lock *renewed = lock_with(good, "good", .ttl_ms = TTL_MS, .renew = 1);
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_result(nxl_lock_acquire(renewed, WAIT_MS), NXL_OK, renewed);
    long before = resident_kb();
    waiter_start(&waiter, lock, FLOOD_MS);
    assert_int_not_equal(waiter_join(&waiter), NXL_OK);
    assert_between(waiter.ended_ms - waiter.began_ms, 0,
        FLOOD_MS + TIMEOUT_MS + LONGER_MS);
    if (!LIVE_INSTRUMENTED)
        assert_between(resident_kb(), 0, before + GROWTH_KB);
    assert_eventually(stats_of(good).renewals > 0);
    assert_true(nxl_lock_held(renewed));
    end(renewed, good);
    end(lock, client);
    hostile_stop();
}

static void floods(void **state)
{
    a_flood(floods_with_tickets);
    a_flood(floods_with_keys);
    a_flood(asks_for_handshakes);
    a_flood(floods_with_data);
}

#define hostile_test(function) cmocka_unit_test_setup(function, live_clean)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        hostile_test(plain_replies_are_no_replies),
        hostile_test(a_bad_second_connection),
        hostile_test(handshakes_without_end),
        hostile_test(freed_in_a_handshake),
        hostile_test(floods),
    };
    return cmocka_run_group_tests_name(
        "tls_hostile", tests, group_start, live_stop);
}
