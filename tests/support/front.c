/* SPDX-License-Identifier: MIT */
/* A process for each connection, so that each may block or flood. What the test
 * says and asks is in memory that all of them share. */
#include "support/front.h"

#include "support/test.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "support/local.h"

#define TURN_MS 2
#define GRANTS "+OK\r\n:7\r\n$0\r\n\r\n+s\r\n+s\r\n+s\r\n+OK\r\n+OK\r\n+OK\r\n"

struct front *front;

static struct {
    pid_t pid;
    const char *dir, *redis;
    unsigned record_most;
} own;

/* In a process for one connection. */
static struct {
    SSL *ssl; /* NULL: no handshake, or none yet */
    int fd, redis;
    int orders; /* that it knows of */
} visit;

/* -------------------------------------------------------------- what it hears
 */

static void hear(const void *bytes, size_t len)
{
    size_t at = atomic_fetch_add(&front->length, len);
    if (at + len <= sizeof(front->heard))
        memcpy(front->heard + at, bytes, len);
}

/* Reads once. */
static void hear_hello(void)
{
    char bytes[4096];
    ssize_t n = recv(visit.fd, bytes, sizeof(bytes), 0);
    if (n > 0)
        hear(bytes, (size_t)n);
}

/* Keeps what comes, as it comes, until the client closes. */
static void listen_on(void)
{
    char bytes[4096];
    ssize_t n;
    while ((n = recv(visit.fd, bytes, sizeof(bytes), 0)) > 0)
        hear(bytes, (size_t)n);
}

static int note_name(SSL *ssl, int *alert, void *arg)
{
    (void)alert, (void)arg;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    snprintf(front->name, sizeof(front->name), "%s", name ? name : "");
    return SSL_TLSEXT_ERR_OK;
}

/* The handshake. False: it has failed. */
static bool secure(void)
{
    char path[LOCAL_PATH + 80], key[LOCAL_PATH + 80];
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    snprintf(path, sizeof(path), "%s/%s.pem", own.dir, front->certificate);
    snprintf(key, sizeof(key), "%s/%s.key", own.dir, front->certificate);
    if (SSL_CTX_use_certificate_chain_file(ctx, path) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        abort();
    SSL_CTX_set_max_proto_version(ctx, front->version);
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_max_send_fragment(ctx, own.record_most);
    SSL_CTX_set_tlsext_servername_callback(ctx, note_name);
    visit.ssl = SSL_new(ctx);
    SSL_set_fd(visit.ssl, visit.fd);
    if (SSL_accept(visit.ssl) == 1)
        return true;
    SSL_free(visit.ssl);
    visit.ssl = NULL;
    return false;
}

/* --------------------------------------------------------------------- orders
 */

static void ask_for_new_keys(void)
{
    SSL_key_update(visit.ssl, SSL_KEY_UPDATE_REQUESTED);
    SSL_do_handshake(visit.ssl);
}

static void send_tickets(void)
{
    SSL_new_session_ticket(visit.ssl);
    SSL_do_handshake(visit.ssl);
}

/* Bytes that are no record. */
static void send_garbage(void)
{
    (void)local_send(visit.fd, "-ERR no record\r\n", 16);
}

static void send_unasked_reply(void)
{
    SSL_write(visit.ssl, "+OK\r\n", 5);
}

/* close_notify; the connection stays open. */
static void say_goodbye(void)
{
    SSL_shutdown(visit.ssl);
}

/* Without a close_notify. */
static void close_it(void)
{
    close(visit.fd);
    visit.fd = -1;
}

static void reset_it(void)
{
    local_make_reset(visit.fd);
    close_it();
}

static const struct {
    const char *name;
    void (*obey)(void);
} orders[] = {
    {"new keys", ask_for_new_keys},
    {"tickets", send_tickets},
    {"garbage", send_garbage},
    {"unasked reply", send_unasked_reply},
    {"goodbye", say_goodbye},
    {"close", close_it},
    {"reset", reset_it},
};

/* ----------------------------------------------------------------------- ways
 */

/* From one side to the other. False: one has closed. */
static bool pass_up(void)
{
    char bytes[65536];
    int n = SSL_read(visit.ssl, bytes, sizeof(bytes));
    if (n <= 0)
        return SSL_get_error(visit.ssl, n) == SSL_ERROR_WANT_READ;
    hear(bytes, (size_t)n);
    return local_send(visit.redis, bytes, (size_t)n);
}

static bool pass_down(void)
{
    char bytes[65536];
    ssize_t n = recv(visit.redis, bytes, sizeof(bytes), 0);
    return n > 0 && SSL_write(visit.ssl, bytes, (int)n) == n;
}

static void obey_if_told(void)
{
    if (visit.orders == front->orders)
        return;
    visit.orders = front->orders;
    orders[front->order].obey();
    front->obeyed++;
}

static void be_honest(void)
{
    bool goes_on = secure();
    visit.redis = local_connect(own.redis, 0);
    visit.orders = front->orders;
    front->open++;
    while (goes_on) {
        struct pollfd fds[2] = {{.fd = visit.fd, .events = POLLIN},
            {.fd = visit.redis, .events = POLLIN}};
        bool pending = SSL_pending(visit.ssl) > 0;
        if (poll(fds, 2, pending ? 0 : TURN_MS) < 0)
            break;
        if (pending || fds[0].revents)
            goes_on = pass_up();
        if (goes_on && fds[1].revents)
            goes_on = pass_down();
        if (goes_on)
            obey_if_told();
        goes_on &= visit.fd >= 0;
    }
    if (visit.ssl && SSL_get_shutdown(visit.ssl) & SSL_RECEIVED_SHUTDOWN)
        front->goodbyes++;
    front->open--;
    if (!visit.ssl)
        listen_on(); /* what would follow the handshake */
}

static void answer_plainly(void)
{
    local_send(visit.fd, GRANTS, strlen(GRANTS));
    listen_on();
}

static void answer_the_hello_plainly(void)
{
    hear_hello();
    answer_plainly();
}

static void begin_an_answer(void)
{
    hear_hello();
    local_send(visit.fd, "\x16\3\3\0\x7a\2\0", 7);
    listen_on();
}

/* A byte now and then, of a record that never ends. */
static void dribble(void)
{
    struct pollfd hung_up = {.fd = visit.fd, .events = POLLRDHUP};
    hear_hello();
    local_send(visit.fd, "\x16\3\3\x40\0\2\0\x30\0", 9);
    while (poll(&hung_up, 1, 5) == 0 && local_send(visit.fd, "", 1))
        ;
}

/* Words of a handshake that mean nothing, as fast as they can be sent. */
static void flood_the_handshake(void)
{
    char record[5 + 4096] = "\x16\3\3\x10\0";
    hear_hello();
    while (local_send(visit.fd, record, sizeof(record)))
        ;
}

static void flood_with_tickets(void)
{
    bool on = secure();
    while (on && SSL_new_session_ticket(visit.ssl) == 1)
        on = SSL_do_handshake(visit.ssl) == 1;
}

/* Each is to be answered, but nothing is read. */
static void flood_with_keys(void)
{
    bool on = secure();
    while (on && SSL_key_update(visit.ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
        on = SSL_do_handshake(visit.ssl) == 1;
}

static void ask_for_handshakes(void)
{
    bool on = secure();
    while (on && SSL_renegotiate(visit.ssl) == 1)
        on = SSL_do_handshake(visit.ssl) == 1;
}

static void flood_with_data(void)
{
    static const char bytes[16384];
    bool on = secure();
    while (on)
        on = SSL_write(visit.ssl, bytes, sizeof(bytes)) > 0;
}

static const struct {
    const char *name;
    void (*meet)(void);
} ways[] = {
    {"honest", be_honest},
    {"plain", answer_plainly},
    {"plain after the hello", answer_the_hello_plainly},
    {"silent", listen_on},
    {"stopping in an answer", begin_an_answer},
    {"dribbling", dribble},
    {"flooding the handshake", flood_the_handshake},
    {"flooding with tickets", flood_with_tickets},
    {"flooding with new keys", flood_with_keys},
    {"flooding with handshakes", ask_for_handshakes},
    {"flooding with data", flood_with_data},
};

static void run(int listener)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        visit.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (visit.fd < 0)
            _exit(1);
        local_no_delay(visit.fd);
        front->accepted++;
        if (fork() == 0) {
            ways[front->way].meet();
            _exit(0);
        }
        close(visit.fd);
    }
}

/* ---------------------------------------------------------------- in the test
 */

void front_start(
    const char *dir, const char *redis, unsigned record_most, uint16_t *port)
{
    if (!front)
        front = mmap(NULL, sizeof(*front), PROT_READ | PROT_WRITE,
            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(front != MAP_FAILED && own.pid == 0);
    memset(front, 0, sizeof(*front));
    strcpy(front->certificate, "server");
    int listener = local_listen_tcp(port);
    assert_true(listener >= 0);
    own.dir = dir;
    own.redis = redis;
    own.record_most = record_most;
    own.pid = test_fork();
    if (own.pid == 0) {
        setpgid(0, 0);
        run(listener);
    }
    setpgid(own.pid, own.pid);
    close(listener);
}

void front_stop(void)
{
    if (own.pid == 0)
        return;
    kill(-own.pid, SIGKILL);
    waitpid(own.pid, NULL, 0);
    own.pid = 0;
}

static void order(int number)
{
    int open = front->open;
    front->obeyed = 0;
    front->order = number;
    front->orders++;
    assert_eventually(front->obeyed >= open);
}

bool front_told(const char *words)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].name, words) == 0) {
            front->way = (int)i;
            return true;
        }
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        if (strcmp(orders[i].name, words) == 0) {
            order((int)i);
            return true;
        }
    return false;
}
