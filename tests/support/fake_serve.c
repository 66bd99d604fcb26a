/* SPDX-License-Identifier: MIT */
/*
 * The small server behind SERVE and EXPECT-HANDSHAKE: keys with a time to
 * live, and three kinds of script known by what they call: pexpire (extend),
 * del (release), neither (inspect). A script is found by its SHA1 only after
 * SCRIPT LOAD or EVAL, as on a real server. Anything else is an unknown
 * command, so that a client cannot lean on what real servers lack.
 */
#include "support/fake_inner.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#define RUN_ID "0123456789abcdef0123456789abcdef01234567"

enum { FIRST_CLIENT_ID = 7, VALUE_SHOWN = 512 };

static const char default_info[] =
    "# Server\r\nredis_version:7.0.15\r\nrun_id:" RUN_ID "\r\n"
    "uptime_in_seconds:864000\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n"
    "# Persistence\r\nloading:0\r\n# Replication\r\nrole:master\r\n";

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void load_script(struct fake *f, struct resp_arg body, char name[41])
{
    sha1_hex(body.data, body.len, name);
    if (!pair_find(f->scripts, name, 40)) {
        struct pair *script = pair_add(&f->scripts, name, 40);
        bytes_add(&script->value, body.data, body.len);
    }
}

bool serve_handshake(struct link *link, struct bytes *out, bool *was_script)
{
    const struct resp_command *c = &link->command;
    struct fake *f = link->fake;
    bool known = true;

    *was_script = false;
    pthread_mutex_lock(&f->lock);
    if (resp_is(c, 0, "AUTH") || resp_is(c, 0, "SELECT")) {
        bytes_addf(out, "+OK\r\n");
    } else if (resp_is(c, 0, "CLIENT") && resp_is(c, 1, "ID")) {
        bytes_addf(out, ":%zu\r\n", FIRST_CLIENT_ID + link->number);
    } else if (resp_is(c, 0, "INFO")) {
        if (f->info.len > 0)
            resp_bulk(out, f->info.data, f->info.len);
        else
            resp_bulk(out, default_info, sizeof(default_info) - 1);
    } else if (resp_is(c, 0, "CONFIG") && resp_is(c, 1, "GET")) {
        bytes_addf(out, "-ERR unknown command 'CONFIG'\r\n");
    } else if (resp_is(c, 0, "SCRIPT") && resp_is(c, 1, "LOAD") &&
               c->count == 3) {
        char name[41];
        load_script(f, c->arg[2], name);
        resp_bulk(out, name, 40);
        *was_script = true;
    } else {
        known = false;
    }
    pthread_mutex_unlock(&f->lock);
    return known;
}

/* The live key of that name, or NULL. */
static struct pair *key_find(struct fake *f, struct resp_arg name)
{
    struct pair *key = pair_find(f->keys, name.data, name.len);

    if (!key || !key->value.data)
        return NULL;
    if (key->ends_ms != 0 && now_ms() >= key->ends_ms) {
        bytes_free(&key->value);
        return NULL;
    }
    return key;
}

static int64_t key_left(const struct pair *key)
{
    return key->ends_ms == 0 ? -1 : key->ends_ms - now_ms();
}

static bool key_is(const struct pair *key, struct resp_arg value)
{
    return key && key->value.len == value.len &&
           memcmp(key->value.data, value.data, value.len) == 0;
}

static void serve_set(
    struct fake *f, const struct resp_command *c, struct bytes *out)
{
    struct pair *key = key_find(f, c->arg[1]);
    long long ttl = 0;
    bool only_new = false;

    for (size_t i = 3; i < c->count; i++) {
        if (resp_is(c, i, "NX")) {
            only_new = true;
        } else if (resp_is(c, i, "PX") && resp_number(c, i + 1) > 0) {
            ttl = resp_number(c, ++i);
        } else {
            bytes_addf(out, "-ERR syntax error\r\n");
            return;
        }
    }
    if (only_new && key) {
        bytes_addf(out, "$-1\r\n");
        return;
    }
    key = pair_find(f->keys, c->arg[1].data, c->arg[1].len);
    if (!key)
        key = pair_add(&f->keys, c->arg[1].data, c->arg[1].len);
    bytes_free(&key->value);
    bytes_add(&key->value, c->arg[2].data, c->arg[2].len);
    key->ends_ms = ttl > 0 ? now_ms() + ttl : 0;
    bytes_addf(out, "+OK\r\n");
}

static bool mentions(struct bytes body, const char *word)
{
    for (size_t i = 0; i + strlen(word) <= body.len; i++)
        if (strncasecmp(body.data + i, word, strlen(word)) == 0)
            return true;
    return false;
}

static void run_extend(
    struct pair *key, struct resp_arg token, long long ttl, struct bytes *out)
{
    if (!key_is(key, token)) {
        bytes_addf(out, ":-2\r\n");
        return;
    }
    if (key->ends_ms == 0 || key_left(key) < ttl)
        key->ends_ms = now_ms() + ttl;
    bytes_addf(out, ":%lld\r\n", (long long)key_left(key));
}

static void run_inspect(const struct pair *key, struct bytes *out)
{
    if (!key) {
        bytes_addf(out, "*0\r\n");
        return;
    }
    bytes_addf(out, "*2\r\n");
    resp_bulk(out, key->value.data,
        key->value.len > VALUE_SHOWN ? VALUE_SHOWN : key->value.len);
    bytes_addf(out, ":%lld\r\n", (long long)key_left(key));
}

/* EVAL body 1 key arg ... and EVALSHA sha 1 key arg ... */
static void serve_script(
    struct fake *f, const struct resp_command *c, struct bytes *out)
{
    char name[41] = "";
    size_t len = c->arg[1].len < 40 ? c->arg[1].len : 40;

    if (resp_is(c, 0, "EVAL"))
        load_script(f, c->arg[1], name);
    else
        memcpy(name, c->arg[1].data, len);
    struct pair *script = pair_find(f->scripts, name, strlen(name));
    if (!script) {
        bytes_addf(out, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        return;
    }
    if (resp_number(c, 2) != 1 || c->count < 4) {
        bytes_addf(out, "-ERR this server runs scripts on one key\r\n");
        return;
    }
    struct pair *key = key_find(f, c->arg[3]);
    /* The release script has PEXPIRE too. */
    if (mentions(script->value, "'del'") ||
        mentions(script->value, "\"del\"")) {
        bool mine = c->count >= 5 && key_is(key, c->arg[4]);
        if (mine)
            bytes_free(&key->value);
        bytes_addf(out, ":%d\r\n", mine);
    } else if (mentions(script->value, "pexpire")) {
        if (c->count == 6)
            run_extend(key, c->arg[4], resp_number(c, 5), out);
        else
            bytes_addf(out, "-ERR extend takes a token and a ttl\r\n");
    } else {
        run_inspect(key, out);
    }
}

static void serve_kill(
    struct fake *f, const struct resp_command *c, struct bytes *out)
{
    long long id = resp_number(c, 3);
    int killed = 0;

    for (struct link *l = f->links; l; l = l->next)
        if (l->fd >= 0 && id == (long long)l->number + FIRST_CLIENT_ID) {
            shutdown(l->fd, SHUT_RDWR);
            killed++;
        }
    bytes_addf(out, ":%d\r\n", killed);
}

void serve_command(struct link *link, struct bytes *out)
{
    const struct resp_command *c = &link->command;
    struct fake *f = link->fake;

    pthread_mutex_lock(&f->lock);
    if (resp_is(c, 0, "PING")) {
        bytes_addf(out, "+PONG\r\n");
    } else if (resp_is(c, 0, "SET") && c->count >= 3) {
        serve_set(f, c, out);
    } else if (resp_is(c, 0, "PTTL") && c->count == 2) {
        struct pair *key = key_find(f, c->arg[1]);
        bytes_addf(out, ":%lld\r\n", key ? (long long)key_left(key) : -2LL);
    } else if (resp_is(c, 0, "EXISTS") && c->count == 2) {
        bytes_addf(out, ":%d\r\n", key_find(f, c->arg[1]) != NULL);
    } else if ((resp_is(c, 0, "EVAL") || resp_is(c, 0, "EVALSHA")) &&
               c->count >= 3) {
        serve_script(f, c, out);
    } else if (resp_is(c, 0, "CLIENT") && resp_is(c, 1, "KILL") &&
               resp_is(c, 2, "ID") && c->count >= 4) {
        serve_kill(f, c, out);
    } else {
        bytes_addf(out, "-ERR unknown command\r\n");
    }
    pthread_mutex_unlock(&f->lock);
}
