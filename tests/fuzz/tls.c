/* SPDX-License-Identifier: MIT */
/*
 * The transport that encrypts, between a real server of OpenSSL and a man in
 * the middle. The first byte of the input is the version (2: TLS 1.2; 4: 1.3 in
 * small records; other ones: 1.3), the second how the client verifies (c: the
 * CA, n: nothing, other ones: fully), the third the socket (s: it takes
 * little). Then letters, N with a number behind them (a ... p: 1, 2, 4 ...
 * 32768; other bytes themselves):
 *
 *     client   H handshake, sN send, vN receive, ? look for news,
 *              zN connect anew to a server of identity N
 *     server   wN write, k new keys, KN for both N times, t ticket, r ask for
 *              another handshake, q goodbye
 *     wire     dN deliver N bytes of the server's, D all, U pass on the
 *              client's, m all that a handshake needs, e end of the stream,
 *              E closed
 *     changes  fN flip a bit of the server's bytes, F of the client's, xN lose
 *              bytes, c lose a record, p repeat it, o swap it with the next;
 *              insert: gN garbage, lN an alert, hN a header of a huge record,
 *              i a plain reply, j the same as a plain record, y a change of
 *              ciphers
 *
 * Whatever happens: what is delivered is the beginning of what the server sent;
 * what the server gets is the beginning of what the client counted as sent, and
 * all of it if nobody changed anything; after an error nothing is delivered;
 * when nothing is pending and the socket is empty nothing can be received; and
 * what is encrypted and not sent is limited.
 */
#include "net/tls/parts.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "fuzz/tls_peer.h"
#include "config/url.h"

#define HELD_MAX 65536 /* bytes encrypted and not sent */
#define SEND_MAX 32256 /* bytes that one send counts: two records */
#define ROUNDS 2000    /* until everything has arrived */
#define SCRIPT_MAX 1000

struct play {
    struct tls_peer peer;
    struct transport t;
    struct endpoint of;
    struct target to;
    int version, far;
    bool small, small_records, ready;
    bool cut;   /* the stream has an end */
    bool ended; /* a receive has returned an error, or the handshake has */
    bool lost;  /* a send has */
    bool over;  /* the news was that it is */
    enum peer_identity who;
    size_t sent, received;
};

static unsigned long records; /* that have come to clients */

static void show_records(void)
{
    printf("%lu records came to clients\n", records);
}

static struct tls *tls_of(enum tls_verify verify)
{
    static struct tls *all[TLS_VERIFY_NONE + 1];
    char path[64];
    struct text error;

    if (all[verify])
        return all[verify];
    if (verify == TLS_VERIFY_FULL)
        atexit(show_records);
    snprintf(path, sizeof(path), "%s", peer_ca());
    struct settings set = {.verify = verify, .cacert = path};
    all[verify] = tls_new(&set, &error);
    CHECK(all[verify] != NULL);
    return all[verify];
}

/* ------------------------------------------------------------- what must hold
 */

static bool is_open(const struct play *p)
{
    return p->t.fd >= 0;
}

static bool is_readable(const struct play *p)
{
    struct pollfd look = {.fd = p->t.fd, .events = POLLIN};

    return poll(&look, 1, 0) > 0;
}

/* It has been reported that the connection is over. */
static bool is_over(const struct play *p)
{
    return p->over || p->ended || p->lost;
}

/* Receives once. Returns what the transport does. */
static ssize_t receive(struct play *p, size_t room)
{
    uint8_t bytes[1 << 15];
    bool pending = p->t.pending, readable = is_readable(p);

    if (room == 0 || room > sizeof(bytes))
        room = sizeof(bytes);
    errno = -1;
    ssize_t n = transport_receive(&p->t, bytes, room);
    CHECK(errno != -1 || n >= 0);
    CHECK(n <= (ssize_t)room);
    CHECK(n <= 0 || !p->ended);
    CHECK(n != 0 || !pending);
    CHECK(n == 0 || pending || readable || (n < 0 && is_over(p)));
    CHECK(n > 0 || !p->t.pending);
    for (ssize_t i = 0; i < n; i++)
        CHECK(bytes[i] == peer_says(p->received++));
    CHECK(p->received <= p->peer.written);
    p->ended = p->ended || n < 0;
    return n;
}

static void check_held(const struct play *p)
{
    const struct session *s = p->t.own;
    size_t held = buf_len(&s->ciphertext.out);

    CHECK(held <= HELD_MAX);
    CHECK(s->broken || is_over(p) || p->t.wants_write == (held > 0));
}

static void check_ready(const struct play *p)
{
    uint64_t verify = p->of.settings.verify;

    CHECK(p->who == PEER_GOOD || verify == TLS_VERIFY_NONE ||
          (p->who == PEER_OTHER_HOST && verify == TLS_VERIFY_CA));
}

/* ------------------------------------------------------------------ the wire
 */

static void deliver(struct play *p, size_t n)
{
    struct wire *down = &p->peer.down;

    if (n > down->len)
        n = down->len;
    if (n == 0 || p->far < 0 || p->cut)
        return;
    ssize_t done = send(p->far, down->bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done <= 0)
        return;
    records += wire_count(down->bytes, (size_t)done);
    wire_remove(down, 0, (size_t)done);
}

/* What the client has sent goes on the wire. */
static size_t take_up(struct play *p)
{
    static const char secret[] = "AUTH the-p";
    uint8_t bytes[4096];
    struct wire *up = &p->peer.up;
    size_t all = 0;
    ssize_t n;

    while (p->far >= 0 &&
           (n = recv(p->far, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
        wire_add(up, bytes, (size_t)n);
        all += (size_t)n;
    }
    if (up->len > 0)
        CHECK(!memmem(up->bytes, up->len, secret, sizeof(secret) - 1));
    return all;
}

static void pass_up(struct play *p)
{
    (void)take_up(p);
    peer_step(&p->peer);
}

static void shake(struct play *p)
{
    struct text error;

    if (!is_open(p) || p->ready || p->ended)
        return;
    text_clear(&error);
    switch (transport_handshake(&p->t, &error)) {
    case TRANSPORT_READY:
        p->ready = true;
        check_ready(p);
        break;
    case TRANSPORT_WAITS:
        CHECK(p->t.wants_read || p->t.wants_write);
        CHECK(!p->t.pending);
        break;
    case TRANSPORT_FAILED:
        CHECK(error.len > 0 && fuzz_printable(error.data));
        p->ended = true;
        break;
    }
    check_held(p);
}

static void finish_handshake(struct play *p)
{
    for (int i = 0; i < 6 && !p->ready; i++) {
        shake(p);
        pass_up(p);
        deliver(p, SIZE_MAX);
    }
}

static void connect_to(struct play *p, enum peer_identity who)
{
    int ends[2], least = 1;
    struct text error;

    peer_open(&p->peer, p->version, who, p->small_records);
    p->who = who;
    p->ready = p->cut = p->ended = p->lost = p->over = false;
    p->sent = p->received = 0;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    if (p->small)
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
    p->far = ends[1];
    CHECK(transport_open(&p->t, &transport_tls, ends[0], &p->to, &error));
}

static void hang_up_far(struct play *p)
{
    p->cut = true;
    if (p->far >= 0)
        close(p->far);
    p->far = -1;
}

static void hang_up(struct play *p)
{
    transport_close(&p->t);
    hang_up_far(p);
    peer_close(&p->peer);
}

/* ----------------------------------------------------------------- the steps
 */

static void client_sends(struct play *p, size_t n)
{
    uint8_t bytes[1 << 15];

    if (!p->ready || p->ended || p->lost)
        return;
    if (n > sizeof(bytes))
        n = sizeof(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = client_says(p->sent + i);
    ssize_t done = transport_send(&p->t, n ? bytes : NULL, n);
    CHECK(done <= (ssize_t)n && done <= SEND_MAX);
    CHECK(done != 0 || n == 0 || p->t.wants_write || p->t.wants_read);
    if (done > 0)
        p->sent += (size_t)done;
    p->lost = done < 0;
    check_held(p);
}

static void client_receives(struct play *p, size_t n)
{
    if (!p->ready)
        return;
    (void)receive(p, n);
    check_held(p);
}

static void client_looks(struct play *p)
{
    if (!p->ready || p->ended)
        return;
    switch (transport_news(&p->t)) {
    case TRANSPORT_TALKS:
        CHECK(receive(p, 1) != 0);
        break;
    case TRANSPORT_QUIET:
        CHECK(!p->t.pending);
        break;
    case TRANSPORT_OVER:
        p->over = true;
        break;
    }
    check_held(p);
}

static void client_goes_on(struct play *p, char letter, size_t n)
{
    if (letter == 'H') {
        shake(p);
    } else if (letter == 's') {
        client_sends(p, n);
    } else if (letter == 'v') {
        client_receives(p, n);
    } else if (letter == '?') {
        client_looks(p);
    } else {
        hang_up(p);
        connect_to(p, (enum peer_identity)(n % PEERS));
    }
}

static void server_goes_on(struct play *p, char letter, size_t n)
{
    switch (letter) {
    case 'w':
        peer_write(&p->peer, n);
        break;
    case 'k':
        peer_update_keys(&p->peer, 1, false);
        break;
    case 'K':
        peer_update_keys(&p->peer, n, true);
        break;
    case 't':
        peer_send_ticket(&p->peer);
        break;
    case 'r':
        peer_ask_anew(&p->peer);
        break;
    case 'q':
        peer_say_goodbye(&p->peer);
        break;
    }
}

static void wire_goes_on(struct play *p, char letter, size_t n)
{
    switch (letter) {
    case 'd':
        deliver(p, n);
        break;
    case 'D':
        deliver(p, SIZE_MAX);
        break;
    case 'U':
        pass_up(p);
        break;
    case 'm':
        finish_handshake(p);
        break;
    case 'e':
        p->cut = true;
        if (p->far >= 0)
            shutdown(p->far, SHUT_WR);
        break;
    case 'E':
        hang_up_far(p);
        break;
    }
}

static void change(struct play *p, char letter, size_t n)
{
    if (letter != 'F') {
        wire_change(&p->peer.down, letter, n);
        return;
    }
    (void)take_up(p);
    wire_change(&p->peer.up, 'f', n);
}

/* ------------------------------------------------------------------ the end */

/* Lets everything arrive. */
static void settle(struct play *p)
{
    struct wire *up = &p->peer.up, *down = &p->peer.down;
    bool moved = true;

    for (int rounds = 0; moved && p->ready && !p->ended; rounds++) {
        CHECK(rounds < ROUNDS);
        size_t before = down->len;
        deliver(p, SIZE_MAX);
        client_sends(p, 0);
        moved = receive(p, 0) > 0 || down->len != before;
        moved = moved || is_readable(p) || (p->t.wants_write && !p->lost);
        moved = (take_up(p) > 0) || moved;
        peer_step(&p->peer);
    }
    CHECK(p->peer.heard <= p->sent);
    if (!p->ready || p->cut)
        return;
    bool flooded = p->t.why && strstr(p->t.why, "demands");
    if (!down->changed && !up->changed && !flooded)
        CHECK(p->received == p->peer.written);
    if (!up->changed && !p->ended && !p->lost && !p->peer.failed)
        CHECK(p->peer.heard == p->sent);
}

static size_t number_of(uint8_t byte)
{
    return byte >= 'a' && byte <= 'p' ? (size_t)1 << (byte - 'a') : byte;
}

static void play_all(struct play *p, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char letter = (char)data[i];
        bool counts = letter && strchr("svzwKdfFxglh", letter);
        size_t n = counts && i + 1 < size ? number_of(data[++i]) : 0;
        if (letter && strchr("Hsv?z", letter))
            client_goes_on(p, letter, n);
        else if (letter && strchr("wkKtrq", letter))
            server_goes_on(p, letter, n);
        else if (letter && strchr("dDUmeE", letter))
            wire_goes_on(p, letter, n);
        else if (letter && strchr("fFxcpoglhijy", letter))
            change(p, letter, n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum tls_verify verify = TLS_VERIFY_FULL;

    if (size < 3)
        return 0;
    if (data[1] == 'c' || data[1] == 'n')
        verify = data[1] == 'c' ? TLS_VERIFY_CA : TLS_VERIFY_NONE;
    struct play p = {
        .version = data[0] == '2' ? TLS1_2_VERSION : TLS1_3_VERSION,
        .small = data[2] == 's',
        .small_records = data[0] == '4',
        .of = {.address.host = "localhost",
            .settings = {.verify = verify},
            .tls = tls_of(verify)}};
    p.to = target_of(&p.of);
    connect_to(&p, PEER_GOOD);
    size -= 3;
    play_all(&p, data + 3, size < SCRIPT_MAX ? size : SCRIPT_MAX);
    settle(&p);
    fuzz_count(p.ready && !p.ended && !p.lost);
    hang_up(&p);
    return 0;
}
