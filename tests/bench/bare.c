/* SPDX-License-Identifier: MIT */
/* The floor of TLS: the four messages of a cycle by OpenSSL and two system
 * calls, without a lock library around them; over TCP the same without OpenSSL.
 * The difference is what TLS costs whoever uses OpenSSL. The bytes go through
 * a BIO that only copies, which took less than memory BIOs and than
 * SSL_set_fd(). */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <openssl/ssl.h>

#define TOKEN "f1005f10-0000-4000-8000-000000000000"
#define SHA_LENGTH 40

struct bare {
    int fd;
    SSL *ssl; /* NULL: over TCP */
    SSL_CTX *context;
    BIO_METHOD *method;
    char in[16384 + 1024], out[16384 + 1024]; /* records */
    size_t in_used, in_length, out_length;
    char reply[1024];
    ssize_t reply_length;
};

/* ------------------------------------------------ between OpenSSL and socket
 */

static int bio_write(BIO *bio, const char *bytes, size_t len, size_t *written)
{
    struct bare *b = BIO_get_data(bio);

    if (len > sizeof(b->out) - b->out_length)
        return 0;
    memcpy(b->out + b->out_length, bytes, len);
    b->out_length += len;
    *written = len;
    return 1;
}

static int bio_read(BIO *bio, char *to, size_t room, size_t *count)
{
    struct bare *b = BIO_get_data(bio);
    size_t left = b->in_length - b->in_used;

    BIO_clear_retry_flags(bio);
    if (left == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    *count = room < left ? room : left;
    memcpy(to, b->in + b->in_used, *count);
    b->in_used += *count;
    return 1;
}

static long bio_control(BIO *bio, int command, long number, void *argument)
{
    (void)bio;
    (void)number;
    (void)argument;
    return command == BIO_CTRL_FLUSH;
}

static int flush(struct bare *b)
{
    size_t len = b->out_length;

    b->out_length = 0;
    return len == 0 || send(b->fd, b->out, len, MSG_NOSIGNAL) == (ssize_t)len
               ? 0
               : -1;
}

static int fill(struct bare *b)
{
    ssize_t got = recv(b->fd, b->in, sizeof(b->in), 0);

    b->in_used = 0;
    b->in_length = got > 0 ? (size_t)got : 0;
    return got > 0 ? 0 : -1;
}

/* ----------------------------------------------------------------- the line */

static int shake(struct bare *b)
{
    BIO *bio;
    int rc;

    b->context = SSL_CTX_new(TLS_client_method());
    b->ssl = b->context ? SSL_new(b->context) : NULL;
    b->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "b");
    if (!b->ssl || !b->method)
        return -1;
    BIO_meth_set_write_ex(b->method, bio_write);
    BIO_meth_set_read_ex(b->method, bio_read);
    BIO_meth_set_ctrl(b->method, bio_control);
    bio = BIO_new(b->method);
    if (!bio)
        return -1;
    BIO_set_data(bio, b);
    BIO_set_init(bio, 1);
    SSL_set_bio(b->ssl, bio, bio);
    SSL_set_connect_state(b->ssl);
    while ((rc = SSL_do_handshake(b->ssl)) != 1) {
        if (SSL_get_error(b->ssl, rc) != SSL_ERROR_WANT_READ || flush(b) ||
            fill(b))
            return -1;
    }
    return flush(b);
}

static int bare_open(struct bare *b, const struct task *task)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)task->port)};
    int on = 1;

    b->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (b->fd < 0 || inet_pton(AF_INET, task->host, &to.sin_addr) != 1 ||
        connect(b->fd, (struct sockaddr *)&to, sizeof(to)) ||
        setsockopt(b->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
        return -1;
    return task->tls ? shake(b) : 0;
}

static void bare_close(struct bare *b)
{
    SSL_free(b->ssl);
    SSL_CTX_free(b->context);
    BIO_meth_free(b->method);
    if (b->fd >= 0)
        close(b->fd);
}

static int ask_plain(struct bare *b, const char *bytes, size_t len)
{
    if (send(b->fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
        return -1;
    b->reply_length = recv(b->fd, b->reply, sizeof(b->reply), 0);
    return b->reply_length > 0 ? 0 : -1;
}

/* One command and its reply, which is short enough to come in one piece; but
 * session tickets may come before it. */
static int ask(struct bare *b, const char *bytes, size_t len)
{
    size_t count;

    if (!b->ssl)
        return ask_plain(b, bytes, len);
    if (SSL_write_ex(b->ssl, bytes, len, &count) != 1 || flush(b))
        return -1;
    do {
        if (fill(b))
            return -1;
        if (SSL_read_ex(b->ssl, b->reply, sizeof(b->reply), &count) == 1) {
            b->reply_length = (ssize_t)count;
            return 0;
        }
    } while (SSL_get_error(b->ssl, 0) == SSL_ERROR_WANT_READ);
    return -1;
}

static bool is_reply(const struct bare *b, const char *start)
{
    return b->reply_length >= (ssize_t)strlen(start) &&
           memcmp(b->reply, start, strlen(start)) == 0;
}

/* --------------------------------------------------------------- the cycles */

struct messages {
    char *set, *drop; /* owned, by hiredis */
    int set_length, drop_length;
};

static int format(struct bare *b, struct messages *m)
{
    char name[BENCH_NAME_SIZE];
    char *load = NULL;
    int length = redisFormatCommand(&load, "SCRIPT LOAD %s", bench_release);
    int rc = length > 0 ? ask(b, load, (size_t)length) : -1;

    redisFreeCommand(load);
    if (rc || !is_reply(b, "$40\r\n") || b->reply_length < 5 + SHA_LENGTH)
        return -1;
    bench_name(name, 0);
    m->set_length = redisFormatCommand(
        &m->set, "SET %s %s NX PX %s", name, TOKEN, BENCH_TTL);
    m->drop_length = redisFormatCommand(&m->drop, "EVALSHA %b 1 %s %s",
        b->reply + 5, (size_t)SHA_LENGTH, name, TOKEN);
    return m->set_length > 0 && m->drop_length > 0 ? 0 : -1;
}

static int one_cycle(
    struct bare *b, const struct messages *m, struct sample *sample)
{
    if (ask(b, m->set, (size_t)m->set_length) || !is_reply(b, "+OK\r\n") ||
        ask(b, m->drop, (size_t)m->drop_length) || !is_reply(b, ":1\r\n"))
        return sample_fail(sample, "bare: unexpected reply, or none");
    return 0;
}

static int bare_measure(
    const struct task *task, struct bare *b, struct sample *sample)
{
    struct histogram histogram = {0};
    struct messages m = {NULL, NULL, 0, 0};
    struct meter meter;
    uint64_t cycles = 0;
    uint64_t now;
    int rc = format(b, &m);

    if (rc)
        sample_fail(sample, "bare: SCRIPT LOAD failed");
    for (int i = 0; rc == 0 && i < BENCH_WARM; i++)
        rc = one_cycle(b, &m, sample);
    meter_begin(&meter, task);
    for (now = meter.begin_ns; rc == 0 && now < meter.deadline_ns; cycles++) {
        uint64_t before = now;

        rc = one_cycle(b, &m, sample);
        now = bench_now_ns();
        histogram_add(&histogram, now - before);
    }
    meter_end(&meter, now);
    if (rc == 0)
        meter_report(&meter, cycles, &histogram, sample);
    redisFreeCommand(m.set);
    redisFreeCommand(m.drop);
    return rc;
}

int floor_bare(const struct task *task, struct sample *sample)
{
    struct bare *b = calloc(1, sizeof(*b));
    int rc = -1;

    if (!b)
        return sample_fail(sample, "out of memory");
    if (bare_open(b, task))
        sample_fail(sample, "bare: cannot connect");
    else
        rc = bare_measure(task, b, sample);
    bare_close(b);
    free(b);
    return rc;
}
