/* SPDX-License-Identifier: MIT */
/*
 * Of each connection one command at a time is with the server, so a reply is
 * that command's.
 */
#include "support/aged_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK = 16384, SHOWN_ARG = 80 };

void aged_link_close(struct aged_link *l)
{
    aged_order_free(l->now);
    for (int side = 0; side < 2; side++) {
        close(l->fd[side]);
        bytes_free(&l->in[side]);
        bytes_free(&l->out[side]);
    }
    memset(l, 0, sizeof(*l));
}

void aged_link_open(struct aged *a, int client)
{
    int server = local_connect(a->behind, 0);
    struct aged_link *l = a->links;

    while (l < a->links + AGED_LINKS && l->used)
        l++;
    if (server < 0 || l == a->links + AGED_LINKS) {
        close(client);
        if (server >= 0)
            close(server);
        return;
    }
    local_no_delay(client);
    *l = (struct aged_link){.used = true,
        .number = a->accepted++,
        .fd = {[AGED_CLIENT] = client, [AGED_SERVER] = server}};
    for (int side = 0; side < 2; side++)
        fcntl(l->fd[side], F_SETFL, O_NONBLOCK);
}

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

/* Takes up the next command. False: there is none that is whole. */
static bool take_up(struct aged *a, struct aged_link *l)
{
    struct bytes *in = &l->in[AGED_CLIENT];
    struct aged_order *o = calloc(1, sizeof(*o));

    if (!o)
        abort();
    long used = resp_parse(in->data, in->len, &o->command);
    if (used <= 0) {
        aged_order_free(o);
        l->cut = l->cut || used < 0; /* not what a client of ours sends */
        return false;
    }
    bytes_add(&o->raw, in->data, (size_t)used);
    bytes_drop(in, (size_t)used);
    resp_parse(o->raw.data, o->raw.len, &o->command);
    log_command(a, l, &o->command);
    aged_understand(&a->book, o);
    if (o->out.len == 0) {
        bytes_add(&l->out[AGED_CLIENT], o->text.data, o->text.len);
        aged_order_free(o);
        return true;
    }
    bytes_add(&l->out[AGED_SERVER], o->out.data, o->out.len);
    bytes_free(&o->out);
    l->now = o;
    return true;
}

/* The reply to l->now. */
static void answered(struct aged_link *l, const char *reply, size_t len)
{
    struct aged_order *o = l->now;

    l->now = NULL;
    aged_say(&l->out[AGED_CLIENT], o, reply, len);
    aged_order_free(o);
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
 * channel) goes there as it is. */
static void hear(struct aged_link *l)
{
    struct bytes *in = &l->in[AGED_SERVER];
    size_t at = 0;
    long len;

    while ((len = reply_length(in->data + at, in->len - at)) > 0) {
        if (l->now)
            answered(l, in->data + at, (size_t)len);
        else
            bytes_add(&l->out[AGED_CLIENT], in->data + at, (size_t)len);
        at += (size_t)len;
    }
    bytes_drop(in, at);
    l->cut = l->cut || len < 0;
}

static void send_out(struct aged_link *l, enum aged_side side)
{
    struct bytes *out = &l->out[side];

    if (l->closed[side])
        out->len = 0;
    while (out->len > 0) {
        ssize_t n = send(l->fd[side], out->data, out->len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            l->closed[side] = true;
            out->len = 0;
            return;
        }
        bytes_drop(out, (size_t)n);
    }
}

/* What a client sent before it closed is still carried out, as a server
 * does that has it in its buffers. */
void aged_link_work(struct aged *a, struct aged_link *l)
{
    if (l->in[AGED_SERVER].len > 0)
        hear(l);
    while (!l->now && !l->cut && l->in[AGED_CLIENT].len > 0 && take_up(a, l))
        ;
    send_out(l, AGED_SERVER);
    send_out(l, AGED_CLIENT);
    if (l->closed[AGED_SERVER] && l->out[AGED_CLIENT].len == 0)
        l->cut = true;
    if (l->closed[AGED_CLIENT] && !l->now)
        l->cut = true;
}

void aged_link_take_in(struct aged_link *l, enum aged_side side)
{
    char data[CHUNK];
    ssize_t n = recv(l->fd[side], data, sizeof(data), 0);

    if (n > 0)
        bytes_add(&l->in[side], data, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        l->closed[side] = true;
}
