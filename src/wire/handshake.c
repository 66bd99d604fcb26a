/* SPDX-License-Identifier: MIT */
/*
 * Opens a connection: AUTH, SELECT, and what the server tells of itself.
 * Invariant: every reply is matched to its command, and DONE is said only when
 * AUTH and SELECT, where sent, were answered by OK, and INFO did not name a
 * Sentinel.
 */
#include "wire/handshake.h"

#include <stdio.h>

#include "wire/classify.h"
#include "wire/command.h"

/* The commands in the order in which they are sent; a step of handshake. */
enum step {
    STEP_AUTH,
    STEP_SELECT,
    STEP_PING,
    STEP_CLIENT_ID,
    STEP_INFO,
    STEP_LOAD, /* and one step for each further script */
    STEP_END = STEP_LOAD + SCRIPTS_LOADED
};

static bool is_sent(const struct credentials *who, unsigned step)
{
    if (step == STEP_AUTH)
        return who->password.data != NULL;
    if (step == STEP_SELECT)
        return who->db != 0;
    return (step == STEP_PING) == who->brief;
}

static bool send_step(
    const struct credentials *who, unsigned step, struct buf *out)
{
    struct slice argv[3];
    char db[16];
    int argc = 0;

    switch (step) {
    case STEP_AUTH:
        argv[argc++] = slice_of("AUTH");
        if (who->user.len > 0)
            argv[argc++] = who->user;
        argv[argc++] = who->password;
        break;
    case STEP_SELECT:
        snprintf(db, sizeof(db), "%u", who->db);
        argv[argc++] = slice_of("SELECT");
        argv[argc++] = slice_of(db);
        break;
    case STEP_PING:
        argv[argc++] = slice_of("PING");
        break;
    case STEP_CLIENT_ID:
        argv[argc++] = slice_of("CLIENT");
        argv[argc++] = slice_of("ID");
        break;
    case STEP_INFO: /* a section would be an arity error before 2.6 */
        argv[argc++] = slice_of("INFO");
        break;
    default:
        argv[argc++] = slice_of("SCRIPT");
        argv[argc++] = slice_of("LOAD");
        argv[argc++] = scripts[step - STEP_LOAD].body;
    }
    return command_append(out, argc, argv);
}

static void skip_unsent(struct handshake *h)
{
    while (h->step < STEP_END && !is_sent(h->who, h->step))
        h->step++;
}

bool handshake_unanswered(const struct handshake *h)
{
    return h->step <= STEP_CLIENT_ID;
}

unsigned handshake_begin(
    struct handshake *h, const struct credentials *who, struct buf *out)
{
    size_t before = buf_len(out);
    unsigned sent = 0;

    *h = (struct handshake){
        .who = who, .facts = {.uptime_s = -1, .info_refused = who->brief}};
    for (unsigned step = 0; step < STEP_END; step++) {
        if (!is_sent(who, step))
            continue;
        if (!send_step(who, step, out)) {
            buf_cut(out, before, buf_len(out) - before);
            return 0;
        }
        sent++;
    }
    skip_unsent(h);
    return sent;
}

bool handshake_probe(struct handshake *h, struct buf *out)
{
    if (!send_step(h->who, STEP_CLIENT_ID, out))
        return false;
    h->probe = PROBE_SENT;
    return true;
}

bool handshake_is_plain(const struct credentials *who)
{
    return !who->password.data && who->db == 0;
}

/* Cuts the text before the first c off *rest; all of it when there is none. */
static struct slice take_until(struct slice *rest, char c)
{
    struct slice taken = *rest;
    const char *at = rest->len > 0 ? memchr(rest->data, c, rest->len) : NULL;

    if (!at) {
        rest->len = 0;
        return taken;
    }
    taken.len = (size_t)(at - rest->data);
    rest->data = at + 1;
    rest->len -= taken.len + 1;
    return taken;
}

/* People are shown these: no byte may be one that a terminal obeys. */
static void copy(char *out, size_t room, struct slice value)
{
    size_t len = value.len < room ? value.len : room - 1;
    for (size_t i = 0; i < len; i++) {
        char c = value.data[i];
        out[i] = c < '!' || c > '~' ? '?' : c;
    }
    out[len] = '\0';
}

/* A whole decimal number; -1 for anything else. */
static int64_t number(struct slice value)
{
    int64_t n = 0;

    if (value.len == 0 || value.len > 18) /* 10^18 < 2^63 */
        return -1;
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return -1;
        n = n * 10 + (value.data[i] - '0');
    }
    return n;
}

/* A difference of two readings of a clock that a person may set. */
static void read_uptime(struct facts *f, struct slice value)
{
    f->uptime_s = number(value);
    f->set_back = false;
    if (f->uptime_s >= 0 || value.len < 2 || value.data[0] != '-')
        return;
    value.data++;
    value.len--;
    f->set_back = number(value) > 0;
    f->uptime_s = f->set_back ? 0 : -1;
}

static bool named(struct slice name, const char *what)
{
    return slice_equal(name, slice_of(what));
}

static void read_fact(struct facts *f, struct slice name, struct slice value)
{
    if (named(name, "run_id")) {
        copy(f->run_id, sizeof(f->run_id), value);
    } else if (named(name, "uptime_in_seconds")) {
        read_uptime(f, value);
    } else if (named(name, "role")) {
        copy(f->role, sizeof(f->role), value);
    } else if (named(name, "redis_mode") || named(name, "server_mode")) {
        copy(f->mode, sizeof(f->mode), value); /* server_mode: Valkey */
    } else if (named(name, "aof_enabled")) {
        f->no_aof = named(value, "0");
    } else if (named(name, "loading")) {
        f->loading = !named(value, "0");
    } else if (named(name, "server_name")) {
        copy(f->software, sizeof(f->software), value);
    } else if (named(name, "valkey_version")) {
        copy(f->version, sizeof(f->version), value);
        copy(f->software, sizeof(f->software), slice_of("valkey"));
    } else if (named(name, "redis_version")) {
        /* Valkey says 7.2.4 here for ever; its own version wins, wherever
         * it stands. */
        if (f->version[0] == '\0')
            copy(f->version, sizeof(f->version), value);
        if (f->software[0] == '\0')
            copy(f->software, sizeof(f->software), slice_of("redis"));
    }
}

/* Without the end of a line that is not all there, which would be another
 * value. */
static struct slice whole_lines(const struct reply *reply)
{
    struct slice info = reply->bytes;

    while (reply->cut && info.len > 0 && info.data[info.len - 1] != '\n')
        info.len--;
    return info;
}

/* Cuts the next line of INFO off *info: its name; *value follows the colon. */
static struct slice take_line(struct slice *info, struct slice *value)
{
    *value = take_until(info, '\n');
    if (value->len > 0 && value->data[value->len - 1] == '\r')
        value->len--;
    return take_until(value, ':');
}

static void read_info(struct facts *f, const struct reply *reply)
{
    struct slice info = whole_lines(reply), value;

    while (info.len > 0) {
        struct slice name = take_line(&info, &value);
        if (value.len > 0)
            read_fact(f, name, value);
    }
}

/* What a Sentinel watches, "master0:name=orders,status=ok,address=10.0.0.7:1,
 * slaves=1", into h->why: the address is what the user was looking for. */
static void name_sentinel(struct handshake *h, const struct reply *reply)
{
    struct slice info = whole_lines(reply), value;
    size_t used = (size_t)snprintf(
        h->why, sizeof(h->why), "this is a Sentinel, which stores no locks");
    const char *join = "; it watches";

    while (info.len > 0 && used < sizeof(h->why)) {
        char name[48] = "", address[64] = "";
        struct slice key = take_line(&info, &value);
        if (!slice_starts(key, "master"))
            continue;
        while (value.len > 0) {
            struct slice part = take_until(&value, ',');
            struct slice what = take_until(&part, '=');
            if (named(what, "name"))
                copy(name, sizeof(name), part);
            else if (named(what, "address"))
                copy(address, sizeof(address), part);
        }
        if (address[0] == '\0')
            continue;
        used += (size_t)snprintf(h->why + used, sizeof(h->why) - used,
            "%s %s at %s", join, name, address);
        join = ",";
    }
}

bool handshake_is_farewell(const struct reply *reply)
{
    return reply->kind == REPLY_ERROR &&
           (slice_starts(reply->bytes, "ERR max number of clients") ||
               slice_starts(reply->bytes, "DENIED "));
}

/* AUTH and SELECT: OK or the end. */
static bool admitted(
    unsigned step, const struct reply *reply, enum fault *fault)
{
    if (reply->kind == REPLY_STATUS && named(reply->bytes, "OK"))
        return true;
    if (reply->kind != REPLY_ERROR) {
        *fault = FAULT_NOT_REDIS;
        return false;
    }
    *fault = classify_error(reply->bytes);
    /* Whatever words refuse it, these credentials do not do here. */
    if (step == STEP_AUTH && !fault_passes(*fault))
        *fault = FAULT_DENIED;
    return false;
}

/* The others: false when reply cannot be the answer to the command. */
static bool learned(struct facts *f, unsigned step, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR) {
        if (step == STEP_INFO)
            f->info_refused = true;
        if (step >= STEP_LOAD && !fault_passes(classify_error(reply->bytes)))
            f->no_scripts = true;
        if (slice_starts(reply->bytes, "LOADING"))
            f->loading = true;
        return true;
    }
    switch (step) {
    case STEP_CLIENT_ID:
        f->client_id = reply->integer;
        return reply->kind == REPLY_INTEGER;
    case STEP_INFO: /* read by ended_by_info() */
        return reply->kind == REPLY_STRING;
    default:
        return reply->kind == REPLY_STRING || reply->kind == REPLY_STATUS;
    }
}

/* It cannot answer at present, or lets nobody in without a password: not the
 * same as a user who may not ask for it. */
static bool no_info_now(const struct reply *reply)
{
    if (reply->kind != REPLY_ERROR)
        return false;
    enum fault fault = classify_error(reply->bytes);
    return fault_passes(fault) ||
           (fault == FAULT_DENIED && !slice_starts(reply->bytes, "NOPERM"));
}

/* AUTH or SELECT was refused: the connection is over once INFO is heard. */
static void remember_refusal(
    struct handshake *h, const struct reply *reply, enum fault fault)
{
    size_t len = reply->bytes.len < sizeof(h->why) ? reply->bytes.len
                                                   : sizeof(h->why) - 1;

    memcpy(h->why, reply->bytes.data, len);
    h->why[len] = '\0';
    h->refused = fault;
}

/* INFO's answer, which may end the handshake. */
static bool ended_by_info(
    struct handshake *h, const struct reply *reply, enum fault *fault)
{
    if (reply->kind == REPLY_STRING) {
        read_info(&h->facts, reply);
        if (strcmp(h->facts.mode, "sentinel") == 0) {
            name_sentinel(h, reply);
            h->refused = FAULT_NONE; /* the login is not what is wrong */
            *fault = FAULT_SENTINEL;
            return true;
        }
    }
    *fault = h->refused;
    return h->refused != FAULT_NONE;
}

/* A server's answer to CLIENT ID is a number or, where the command is not known
 * or not allowed, an error. */
static enum handshake_next probe_reply(
    struct handshake *h, const struct reply *reply, enum fault *fault)
{
    if (reply->kind == REPLY_INTEGER || reply->kind == REPLY_ERROR) {
        h->probe = PROBE_ANSWERED;
        return HANDSHAKE_FULL;
    }
    *fault = FAULT_NOT_REDIS;
    return HANDSHAKE_FAILED;
}

/* All that was sent in the first flight is answered. */
static enum handshake_next flight_answered(
    const struct handshake *h, enum fault *fault)
{
    /* Without INFO nothing has ended it yet. */
    *fault = h->refused;
    if (h->refused != FAULT_NONE)
        return HANDSHAKE_FAILED;
    return h->who->brief && h->who->probe ? HANDSHAKE_PROBE : HANDSHAKE_DONE;
}

enum handshake_next handshake_reply(
    struct handshake *h, const struct reply *reply, enum fault *fault)
{
    unsigned step = h->step;

    if (handshake_is_farewell(reply)) {
        *fault = classify_error(reply->bytes);
        return HANDSHAKE_FAILED;
    }
    if (h->probe == PROBE_SENT)
        return probe_reply(h, reply, fault);
    if (step == STEP_INFO && ended_by_info(h, reply, fault))
        return HANDSHAKE_FAILED;
    if (step == STEP_INFO && h->who->needs_info && no_info_now(reply)) {
        *fault = classify_error(reply->bytes);
        return HANDSHAKE_FAILED;
    }
    bool only_info = h->refused != FAULT_NONE;
    if (!only_info && step <= STEP_SELECT && !admitted(step, reply, fault)) {
        if (reply->kind != REPLY_ERROR || fault_passes(*fault))
            return HANDSHAKE_FAILED;
        remember_refusal(h, reply, *fault);
        *fault = FAULT_NONE;
    }
    if (!only_info && step > STEP_SELECT && !learned(&h->facts, step, reply)) {
        *fault = FAULT_NOT_REDIS;
        return HANDSHAKE_FAILED;
    }
    h->step++;
    skip_unsent(h);
    return h->step == STEP_END ? flight_answered(h, fault) : HANDSHAKE_WAIT;
}
