/* SPDX-License-Identifier: MIT */
/*
 * A proxy (proxy.c) that reads what it passes on. Of each connection one
 * command at a time is with the server, so a reply is that command's. What is
 * here belongs to the proxy's lock.
 */
#include "support/aged_inner.h"

#include "support/proxy_inner.h"
#include "support/test.h"

enum { SHOWN_ARG = 80 };

struct aged_link { /* a connection */
    size_t number;
    struct bytes in[2];     /* from that side, and not read yet */
    struct aged_order *now; /* the server is to answer it */
};

struct aged {
    struct proxy *proxy;
    struct aged_book book;
    size_t links;
    struct bytes log, shown;
};

/* ------------------------------------------------------------ the thread */

static void log_command(
    struct aged *a, const struct aged_link *l, const struct resp_command *c)
{
    bytes_addf(&a->log, "%zu", l->number);
    for (size_t i = 0; i < c->count; i++) {
        size_t len = c->arg[i].len;
        bytes_add(&a->log, len > 0 ? " " : " \"\"", len > 0 ? 1 : 3);
        bytes_add_visible(
            &a->log, c->arg[i].data, len > SHOWN_ARG ? SHOWN_ARG : len, "");
        if (len > SHOWN_ARG)
            bytes_add(&a->log, "...", 3);
    }
    bytes_add(&a->log, "\n", 1);
}

/* Takes up what is a command: it goes to the server, or is answered here. */
static void take_up(struct proxy *p, struct joint *j, size_t len)
{
    struct aged *a = p->reader_data;
    struct aged_link *l = j->reading;
    struct aged_order *o = calloc(1, sizeof(*o));

    if (!o)
        abort();
    bytes_add(&o->raw, l->in[PROXY_UP].data, len);
    bytes_drop(&l->in[PROXY_UP], len);
    resp_parse(o->raw.data, o->raw.len, &o->command);
    log_command(a, l, &o->command);
    aged_understand(&a->book, o);
    if (o->out.len == 0) {
        proxy_pass(p, j, PROXY_DOWN, o->text.data, o->text.len);
        aged_order_free(o);
        return;
    }
    proxy_pass(p, j, PROXY_UP, o->out.data, o->out.len);
    bytes_free(&o->out);
    l->now = o;
}

/* The commands up to one that the server is to answer. False: there came what
 * no client of ours sends. */
static bool hear_client(struct proxy *p, struct joint *j)
{
    struct aged_link *l = j->reading;
    const struct bytes *in = &l->in[PROXY_UP];

    while (!l->now && in->len > 0) {
        struct resp_command command;
        long len = resp_parse(in->data, in->len, &command);
        if (len <= 0)
            return len == 0;
        take_up(p, j, (size_t)len);
    }
    return true;
}

/* Bytes of the first whole reply; 0: more are needed; -1: not a reply. */
static long reply_length(const char *data, size_t len)
{
    const char *end = len > 0 ? memchr(data, '\n', len) : NULL;
    if (!end)
        return 0;
    long used = end - data + 1, count = strtol(data + 1, NULL, 10);
    if (strchr("+-:", data[0]) || count < 0)
        return used;
    if (data[0] == '$')
        return len - (size_t)used < (size_t)count + 2 ? 0 : used + count + 2;
    if (data[0] != '*')
        return -1;
    for (; count > 0; count--) {
        long next = reply_length(data + used, len - (size_t)used);
        if (next <= 0)
            return next;
        used += next;
    }
    return used;
}

/* Whole replies go to the client; one that nobody asked for (a message of a
 * channel) goes there as it is. False: there came no reply. */
static bool hear_server(struct proxy *p, struct joint *j)
{
    struct aged_link *l = j->reading;
    struct bytes *in = &l->in[PROXY_DOWN];
    long len;

    while ((len = reply_length(in->data, in->len)) > 0) {
        struct bytes said = {NULL, 0, 0};
        if (l->now)
            aged_say(&said, l->now, in->data, (size_t)len);
        else
            bytes_add(&said, in->data, (size_t)len);
        aged_order_free(l->now);
        l->now = NULL;
        proxy_pass(p, j, PROXY_DOWN, said.data, said.len);
        bytes_free(&said);
        bytes_drop(in, (size_t)len);
    }
    return len == 0;
}

static bool read_bytes(struct proxy *p, struct joint *j, enum proxy_way way,
    const char *data, size_t len)
{
    struct aged *a = p->reader_data;

    if (!j->reading) {
        struct aged_link *l = j->reading = calloc(1, sizeof(*l));
        if (!l)
            abort();
        l->number = a->links++;
    }
    bytes_add(&((struct aged_link *)j->reading)->in[way], data, len);
    return (way == PROXY_UP || hear_server(p, j)) && hear_client(p, j);
}

static bool is_busy(const struct joint *j)
{
    const struct aged_link *l = j->reading;
    return l && l->now;
}

static void end(struct joint *j)
{
    struct aged_link *l = j->reading;

    if (!l)
        return;
    aged_order_free(l->now);
    bytes_free(&l->in[PROXY_UP]);
    bytes_free(&l->in[PROXY_DOWN]);
    free(l);
    j->reading = NULL;
}

/* ---------------------------------------------------------- for the test */

struct aged *aged_start(enum aged_profile profile, const struct redis *behind)
{
    static const struct proxy_reader reader = {read_bytes, is_busy, end};
    struct aged *a = calloc(1, sizeof(*a));

    if (!a)
        abort();
    a->book.age = &aged_ages[profile];
    a->proxy = proxy_start(behind->path, 0);
    pthread_mutex_lock(&a->proxy->lock);
    a->proxy->reader_data = a;
    a->proxy->reader = &reader;
    pthread_mutex_unlock(&a->proxy->lock);
    return a;
}

void aged_stop(struct aged *a)
{
    if (!a)
        return;
    proxy_stop(a->proxy);
    aged_scripts_free(&a->book);
    bytes_free(&a->log);
    bytes_free(&a->shown);
    free(a);
}

const char *aged_url(const struct aged *a)
{
    return a->proxy->url;
}

const char *aged_path(const struct aged *a)
{
    return a->proxy->path;
}

void aged_profile_now(struct aged *a, enum aged_profile profile, bool cut)
{
    pthread_mutex_lock(&a->proxy->lock);
    a->book.age = &aged_ages[profile];
    aged_scripts_free(&a->book);
    pthread_mutex_unlock(&a->proxy->lock);
    if (cut)
        proxy_cut(a->proxy, false);
}

void aged_refuse(struct aged *a, const char *commands, const char *reply)
{
    pthread_mutex_lock(&a->proxy->lock);
    a->book.refused = commands;
    a->book.refusal = reply;
    pthread_mutex_unlock(&a->proxy->lock);
}

/* The word that begins at *at, without its blank, and *at after it. */
static struct resp_arg next_word(const char **at)
{
    struct resp_arg word = {*at, strcspn(*at, " \n")};

    *at += word.len + ((*at)[word.len] == ' ');
    return word;
}

/* line: "0 SET k v\n". */
static bool begins_so(const char *line, const char *words)
{
    next_word(&line);
    for (bool first = true; *words != '\0'; first = false) {
        struct resp_arg asked = next_word(&words), is = next_word(&line);
        if (is.len == 0)
            return false;
        if (asked.len == 1 && *asked.data == '*')
            continue;
        if (asked.len != is.len ||
            (first ? strncasecmp(asked.data, is.data, is.len)
                   : strncmp(asked.data, is.data, is.len)) != 0)
            return false;
    }
    return true;
}

size_t aged_count(struct aged *a, const char *words)
{
    size_t found = 0;

    pthread_mutex_lock(&a->proxy->lock);
    for (const char *at = a->log.len > 0 ? a->log.data : ""; *at != '\0';
         at = strchr(at, '\n') + 1)
        found += begins_so(at, words);
    pthread_mutex_unlock(&a->proxy->lock);
    return found;
}

const char *aged_log(struct aged *a)
{
    pthread_mutex_lock(&a->proxy->lock);
    a->shown.len = 0;
    bytes_add(&a->shown, a->log.data, a->log.len);
    pthread_mutex_unlock(&a->proxy->lock);
    return a->shown.data;
}

void aged_forget(struct aged *a)
{
    pthread_mutex_lock(&a->proxy->lock);
    bytes_free(&a->log);
    pthread_mutex_unlock(&a->proxy->lock);
}

bool aged_idle(struct aged *a)
{
    bool idle = true;

    pthread_mutex_lock(&a->proxy->lock);
    for (size_t i = 0; i < PAIRS; i++) {
        const struct joint *j = &a->proxy->joints[i];
        const struct aged_link *l = j->used ? j->reading : NULL;
        idle = idle && (!l || (!l->now && l->in[PROXY_UP].len == 0 &&
                                  !j->flow[PROXY_DOWN].first));
    }
    pthread_mutex_unlock(&a->proxy->lock);
    return idle;
}
