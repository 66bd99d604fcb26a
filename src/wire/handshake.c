/* SPDX-License-Identifier: MIT */
/*
 * The first commands on a connection: AUTH, SELECT, and what the server says
 * about itself. Invariant: every reply is matched to its command, and the
 * handshake is DONE only if AUTH and SELECT, where sent, were answered with OK
 * and INFO did not reveal a Sentinel.
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
    STEP_FSYNC,
    STEP_LOAD, /* and one step for each further script */
    STEP_END = STEP_LOAD + SCRIPTS_LOADED
};

static bool is_sent(const struct handshake *h, unsigned step)
{
    const struct credentials *who = h->who;

    if (step == STEP_AUTH)
        return who->password.data != NULL;
    if (step == STEP_SELECT)
        return who->db != 0;
    if (step == STEP_FSYNC && !h->asks_fsync)
        return false;
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
    case STEP_FSYNC:
        argv[argc++] = slice_of("CONFIG");
        argv[argc++] = slice_of("GET");
        argv[argc++] = slice_of("appendfsync");
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
    while (h->step < STEP_END && !is_sent(h, h->step))
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

    *h = (struct handshake){.who = who,
        .asks_fsync = who->asks_fsync,
        .facts = {.uptime_s = -1, .info_refused = who->brief}};
    for (unsigned step = 0; step < STEP_END; step++) {
        if (!is_sent(h, step))
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

bool handshake_ask_fsync(struct handshake *h, struct buf *out)
{
    h->asks_fsync = send_step(h->who, STEP_FSYNC, out);
    return h->asks_fsync;
}

bool handshake_is_plain(const struct credentials *who)
{
    return !who->password.data && who->db == 0;
}

/* Removes the text before the first c from *rest, and the c; all of it if there
 * is no c. Returns the text. */
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

/* These are shown to people, so control bytes and spaces become '?'. */
static void copy_printable(char *out, size_t room, struct slice value)
{
    size_t len = value.len < room ? value.len : room - 1;
    for (size_t i = 0; i < len; i++) {
        char c = value.data[i];
        out[i] = c < '!' || c > '~' ? '?' : c;
    }
    out[len] = '\0';
}

/* A whole decimal number; -1 for anything else. */
static int64_t parse_number(struct slice value)
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

/* The server computes its uptime from its wall clock: it is negative if the
 * clock was set back after the start. */
static void read_uptime(struct facts *f, struct slice value)
{
    f->uptime_s = parse_number(value);
    f->set_back = false;
    if (f->uptime_s >= 0 || value.len < 2 || value.data[0] != '-')
        return;
    value.data++;
    value.len--;
    f->set_back = parse_number(value) > 0;
    f->uptime_s = f->set_back ? 0 : -1;
}

static bool is_named(struct slice name, const char *what)
{
    return slice_equal(name, slice_of(what));
}

static void read_fact(struct facts *f, struct slice name, struct slice value)
{
    if (is_named(name, "run_id")) {
        copy_printable(f->run_id, sizeof(f->run_id), value);
    } else if (is_named(name, "uptime_in_seconds")) {
        read_uptime(f, value);
    } else if (is_named(name, "role")) {
        copy_printable(f->role, sizeof(f->role), value);
    } else if (is_named(name, "redis_mode") || is_named(name, "server_mode")) {
        copy_printable(
            f->mode, sizeof(f->mode), value); /* server_mode: Valkey */
    } else if (is_named(name, "aof_enabled")) {
        f->aof = is_named(value, "0") ? AOF_OFF : AOF_ON;
    } else if (is_named(name, "maxmemory_policy")) {
        copy_printable(f->eviction, sizeof(f->eviction), value);
    } else if (is_named(name, "loading")) {
        f->loading = !is_named(value, "0");
    } else if (is_named(name, "server_name")) {
        copy_printable(f->software, sizeof(f->software), value);
    } else if (is_named(name, "valkey_version")) {
        copy_printable(f->version, sizeof(f->version), value);
        copy_printable(f->software, sizeof(f->software), slice_of("valkey"));
    } else if (is_named(name, "redis_version")) {
        /* Valkey always says 7.2.4 here; its own version wins, whichever
         * comes first. */
        if (f->version[0] == '\0')
            copy_printable(f->version, sizeof(f->version), value);
        if (f->software[0] == '\0')
            copy_printable(f->software, sizeof(f->software), slice_of("redis"));
    }
}

/* INFO without its last line if that was cut, because a cut value is wrong. */
static struct slice whole_lines(const struct reply *reply)
{
    struct slice info = reply->bytes;

    while (reply->cut && info.len > 0 && info.data[info.len - 1] != '\n')
        info.len--;
    return info;
}

/* Removes the next line from *info. Returns what is before its colon; *value is
 * what follows. */
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

/* Writes into h->why which primaries a Sentinel monitors, because their address
 * is what the user needs. The line is
 * "master0:name=orders,status=ok,address=10.0.0.7:1,slaves=1". */
static void name_sentinel(struct handshake *h, const struct reply *reply)
{
    struct slice info = whole_lines(reply), value;
    size_t used = (size_t)snprintf(
        h->why, sizeof(h->why), "this is a Sentinel, which stores no locks");
    const char *join = "; it monitors";

    while (info.len > 0 && used < sizeof(h->why)) {
        char name[48] = "", address[64] = "";
        struct slice key = take_line(&info, &value);
        if (!slice_starts(key, "master"))
            continue;
        while (value.len > 0) {
            struct slice part = take_until(&value, ',');
            struct slice what = take_until(&part, '=');
            if (is_named(what, "name"))
                copy_printable(name, sizeof(name), part);
            else if (is_named(what, "address"))
                copy_printable(address, sizeof(address), part);
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

/* Was AUTH or SELECT answered with OK? If not, *fault says why. */
static bool login_accepted(
    unsigned step, const struct reply *reply, enum fault *fault)
{
    if (reply->kind == REPLY_STATUS && is_named(reply->bytes, "OK"))
        return true;
    if (reply->kind != REPLY_ERROR) {
        *fault = FAULT_NOT_REDIS;
        return false;
    }
    *fault = classify_error(reply->bytes);
    /* Whatever the error says, these credentials are wrong here. */
    if (step == STEP_AUTH && !fault_is_transient(*fault))
        *fault = FAULT_DENIED;
    return false;
}

/* Takes the replies to the other commands. False: the reply cannot be the
 * answer to the command. */
static bool take_fact(struct facts *f, unsigned step, const struct reply *reply)
{
    f->asked_fsync = f->asked_fsync || step == STEP_FSYNC;
    if (reply->kind == REPLY_ERROR) {
        if (step == STEP_INFO)
            f->info_refused = true;
        if (step >= STEP_LOAD &&
            !fault_is_transient(classify_error(reply->bytes)))
            f->no_scripts = true;
        if (slice_starts(reply->bytes, "LOADING"))
            f->loading = true;
        if (classify_error(reply->bytes) == FAULT_DENIED)
            f->no_login = true;
        return true;
    }
    switch (step) {
    case STEP_CLIENT_ID:
        f->client_id = reply->integer;
        return reply->kind == REPLY_INTEGER;
    case STEP_FSYNC: /* its name, then its value */
        if (reply->kind == REPLY_ARRAY && reply->count == 2)
            copy_printable(
                f->appendfsync, sizeof(f->appendfsync), reply->items[1].bytes);
        return reply->kind == REPLY_ARRAY;
    case STEP_INFO: /* read by ended_by_info() */
        return reply->kind == REPLY_STRING;
    default:
        return reply->kind == REPLY_STRING || reply->kind == REPLY_STATUS;
    }
}

bool handshake_take_fsync(struct facts *facts, const struct reply *reply)
{
    return take_fact(facts, STEP_FSYNC, reply);
}

/* The server cannot answer INFO now, or requires a password first. That is not
 * the same as a user without permission for INFO. */
static bool info_unavailable(const struct reply *reply)
{
    if (reply->kind != REPLY_ERROR)
        return false;
    enum fault fault = classify_error(reply->bytes);
    return fault_is_transient(fault) || fault == FAULT_DENIED;
}

/* AUTH or SELECT was refused: the handshake fails after the reply to INFO. */
static void handshake_remember_refusal(
    struct handshake *h, const struct reply *reply, enum fault fault)
{
    size_t len = reply->bytes.len < sizeof(h->why) ? reply->bytes.len
                                                   : sizeof(h->why) - 1;

    memcpy(h->why, reply->bytes.data, len);
    h->why[len] = '\0';
    h->refused = fault;
    h->login_refused = h->step == STEP_AUTH;
}

/* Takes the reply to INFO. True: it ends the handshake, for *fault. */
static bool ended_by_info(
    struct handshake *h, const struct reply *reply, enum fault *fault)
{
    if (reply->kind == REPLY_STRING) {
        read_info(&h->facts, reply);
        if (strcmp(h->facts.mode, "sentinel") == 0) {
            name_sentinel(h, reply);
            h->refused = FAULT_NONE; /* a Sentinel is the better message */
            *fault = FAULT_SENTINEL;
            return true;
        }
    }
    *fault = h->refused;
    return h->refused != FAULT_NONE;
}

/* A server answers CLIENT ID with a number or, if the command is unknown or not
 * allowed, with an error. A proxy closes the connection instead. */
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

/* Everything that was sent at first has been answered. */
static enum handshake_next flight_answered(
    const struct handshake *h, enum fault *fault)
{
    /* A refusal is still pending if no INFO was sent (a brief handshake). */
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
    if (step == STEP_INFO && h->who->needs_info && info_unavailable(reply)) {
        *fault = classify_error(reply->bytes);
        return HANDSHAKE_FAILED;
    }
    bool only_info = h->refused != FAULT_NONE;
    if (!only_info && step <= STEP_SELECT &&
        !login_accepted(step, reply, fault)) {
        if (reply->kind != REPLY_ERROR || fault_is_transient(*fault))
            return HANDSHAKE_FAILED;
        handshake_remember_refusal(h, reply, *fault);
        *fault = FAULT_NONE;
    }
    if (!only_info && step > STEP_SELECT &&
        !take_fact(&h->facts, step, reply)) {
        *fault = FAULT_NOT_REDIS;
        return HANDSHAKE_FAILED;
    }
    h->step++;
    skip_unsent(h);
    return h->step == STEP_END ? flight_answered(h, fault) : HANDSHAKE_WAIT;
}
