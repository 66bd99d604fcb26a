/* SPDX-License-Identifier: MIT */
/*
 * A real server, an aged one before it, and clients that compare replies byte
 * for byte. Commands are words divided by blanks; {} holds one with blanks,
 * and <sha1> is the name of the last script. In a reply "|" is a line's end;
 * "~" at its end: only what is before it is compared.
 */
#ifndef NXLOCK_TESTS_AGED_RIG_H
#define NXLOCK_TESTS_AGED_RIG_H

#include "support/test.h"

#include <sys/socket.h>

#include "support/aged_inner.h"
#include "support/redis.h"

#define RIG_CLIENTS 48

struct rig_client {
    int fd; /* 0: not in use */
    struct bytes in, shown;
};

static struct redis r;
static struct aged *a;
static struct rig_client rig_clients[RIG_CLIENTS];
static char rig_sha[41];

static inline void rig_hang_up(struct rig_client *c)
{
    if (c->fd > 0)
        close(c->fd);
    bytes_free(&c->in);
    bytes_free(&c->shown);
    c->fd = 0;
}

/* Another server answers on new connections, and only there. */
static inline void rig_age(enum aged_profile profile)
{
    for (size_t i = 0; i < RIG_CLIENTS; i++)
        rig_hang_up(&rig_clients[i]);
    aged_stop(a);
    a = aged_start(profile, &r);
}

static inline int rig_stop(void **state)
{
    (void)state;
    for (size_t i = 0; i < RIG_CLIENTS; i++)
        rig_hang_up(&rig_clients[i]);
    aged_stop(a);
    a = NULL;
    redis_stop(&r);
    return 0;
}

static inline struct rig_client *rig_dial(void)
{
    struct rig_client *c = rig_clients;

    while (c->fd != 0)
        if (++c == rig_clients + RIG_CLIENTS)
            fail_msg("too many clients");
    c->fd = local_connect(aged_path(a), 0);
    assert_true(c->fd > 0);
    return c;
}

static inline void rig_put(struct bytes *out, const char *words)
{
    struct bytes body = {NULL, 0, 0};
    size_t count = 0;
    bool script =
        strncmp(words, "EVAL ", 5) == 0 || strncmp(words, "SCRIPT ", 7) == 0;

    while (*words != '\0') {
        bool whole = *words == '{';
        words += whole;
        size_t len = strcspn(words, whole ? "}" : " ");
        if (len == 6 && memcmp(words, "<sha1>", 6) == 0)
            resp_bulk(&body, rig_sha, 40);
        else
            resp_bulk(&body, words, len);
        if (script && whole)
            sha1_hex(words, len, rig_sha);
        words += len + whole;
        words += *words == ' ';
        count++;
    }
    bytes_addf(out, "*%zu\r\n", count);
    bytes_add(out, body.data, body.len);
    bytes_free(&body);
}

static inline void rig_say(struct rig_client *c, const char *words)
{
    struct bytes out = {NULL, 0, 0};

    rig_put(&out, words);
    bool sent = local_send(c->fd, out.data, out.len);
    bytes_free(&out);
    assert_true(sent);
}

/* The next whole reply into c->shown. */
static inline const char *rig_hear(struct rig_client *c)
{
    char data[4096];
    long len;

    while ((len = aged_reply_length(c->in.data, c->in.len)) == 0) {
        ssize_t n = recv(c->fd, data, sizeof(data), 0);
        if (n <= 0)
            fail_msg("no reply: the connection is closed");
        bytes_add(&c->in, data, (size_t)n);
    }
    assert_true(len > 0);
    c->shown.len = 0;
    bytes_add(&c->shown, "", 0);
    for (size_t i = 0; i < (size_t)len; i++) {
        const char *at = &c->in.data[i];
        if (*at != '\r' && (*at != '\n' || i + 1 < (size_t)len))
            bytes_add(&c->shown, *at == '\n' ? "|" : at, 1);
    }
    bytes_drop(&c->in, (size_t)len);
    return c->shown.data;
}

static inline void rig_heard(struct rig_client *c, const char *words,
    const char *expected, const char *file, int line)
{
    char text[512];
    const char *at = strstr(expected, "<sha1>"), *got = rig_hear(c);
    size_t len = strlen(expected);
    bool begins = len > 0 && expected[len - 1] == '~';

    if (!at)
        snprintf(text, sizeof(text), "%.*s", (int)(len - begins), expected);
    else
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - expected), expected,
            rig_sha, at + 6);
    if (begins ? strncmp(got, text, len - 1) == 0 : strcmp(got, text) == 0)
        return;
    print_error("%s\n  expected \"%s\"\n  got      \"%s\"\n", words, text, got);
    _fail(file, line);
}

static inline void rig_ask(struct rig_client *c, const char *words,
    const char *expected, const char *file, int line)
{
    rig_say(c, words);
    rig_heard(c, words, expected, file, line);
}

#define ask(client, words, expected)                                           \
    rig_ask(client, words, expected, __FILE__, __LINE__)
#define heard(client, expected)                                                \
    rig_heard(client, "in its turn", expected, __FILE__, __LINE__)

static inline bool rig_is_closed(struct rig_client *c)
{
    char byte;
    return recv(c->fd, &byte, 1, MSG_PEEK) <= 0;
}

#endif
