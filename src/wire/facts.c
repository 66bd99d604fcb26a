/* SPDX-License-Identifier: MIT */
/*
 * Reads what a server says about itself.
 *
 * Invariant: what was cut off, or cannot be read, is unknown and never guessed.
 */
#include "wire/facts.h"

#include <stdio.h>

#include "model/verb.h"

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

void facts_copy(char *out, size_t room, struct slice value)
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
    f->uptime_was_negative = false;
    if (f->uptime_s >= 0 || value.len < 2 || value.data[0] != '-')
        return;
    value.data++;
    value.len--;
    f->uptime_was_negative = parse_number(value) > 0;
    f->uptime_s = f->uptime_was_negative ? 0 : -1;
}

static bool is_named(struct slice name, const char *what)
{
    return slice_equal(name, slice_of(what));
}

static void read_fact(struct facts *f, struct slice name, struct slice value)
{
    if (is_named(name, "run_id")) {
        facts_copy(f->run_id, sizeof(f->run_id), value);
    } else if (is_named(name, "uptime_in_seconds")) {
        read_uptime(f, value);
    } else if (is_named(name, "role")) {
        facts_copy(f->role, sizeof(f->role), value);
    } else if (is_named(name, "master_replid")) {
        facts_copy(f->replid, sizeof(f->replid), value);
    } else if (is_named(name, "master_replid2")) {
        facts_copy(f->replid2, sizeof(f->replid2), value);
        if (strspn(f->replid2, "0") == strlen(f->replid2))
            f->replid2[0] = '\0';
    } else if (is_named(name, "connected_slaves")) {
        f->replicas = (int)parse_number(value);
    } else if (is_named(name, "server_time_usec")) {
        int64_t time_us = parse_number(value);
        f->time_us = time_us > 0 ? time_us : 0;
    } else if (is_named(name, "redis_mode") || is_named(name, "server_mode")) {
        facts_copy(f->mode, sizeof(f->mode), value); /* server_mode: Valkey */
        f->cluster = f->cluster || is_named(value, "cluster");
    } else if (is_named(name, "cluster_enabled")) {
        f->cluster = f->cluster || is_named(value, "1");
    } else if (is_named(name, "aof_enabled")) {
        f->aof = is_named(value, "0") ? AOF_OFF : AOF_ON;
    } else if (is_named(name, "maxmemory_policy")) {
        facts_copy(f->eviction, sizeof(f->eviction), value);
    } else if (is_named(name, "loading")) {
        f->loading = !is_named(value, "0");
    } else if (is_named(name, "server_name")) {
        facts_copy(f->software, sizeof(f->software), value);
    } else if (is_named(name, "valkey_version")) {
        facts_copy(f->version, sizeof(f->version), value);
        facts_copy(f->software, sizeof(f->software), slice_of("valkey"));
    } else if (is_named(name, "mvcc_depth") ||
               (is_named(name, "executable") &&
                   memmem(value.data, value.len, "keydb-server", 12))) {
        /* KeyDB has no name or version of its own in INFO: redis_version is
         * its version, and 255.255.255 in development builds. */
        facts_copy(f->software, sizeof(f->software), slice_of("keydb"));
    } else if (is_named(name, "redis_version")) {
        /* Valkey always says 7.2.4 here; its own version wins, whichever
         * comes first. */
        if (f->version[0] == '\0')
            facts_copy(f->version, sizeof(f->version), value);
        if (f->software[0] == '\0')
            facts_copy(f->software, sizeof(f->software), slice_of("redis"));
    }
}

/* INFO without its last line if that was cut, because a cut value is wrong. */
static struct slice whole_lines(const struct reply *reply)
{
    struct slice info = reply->bytes;

    while (reply->truncated && info.len > 0 && info.data[info.len - 1] != '\n')
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

void facts_read_info(struct facts *f, const struct reply *reply)
{
    struct slice info = whole_lines(reply), value;

    while (info.len > 0) {
        struct slice name = take_line(&info, &value);
        if (value.len > 0)
            read_fact(f, name, value);
    }
}

void facts_clock(const struct facts *f, int64_t *low_ns, int64_t *high_ns)
{
    *low_ns = *high_ns = 0;
    if (f->time_us <= 0 || f->time_us > INT64_MAX / 1000)
        return;
    *low_ns = f->time_us * 1000 - (int64_t)f->answered_at;
    *high_ns = (f->time_us + 1) * 1000 - (int64_t)f->asked_at;
}

/* A connection is a line with "age=SECONDS", which are cut off, so that one
 * less has certainly passed. */
void facts_read_replicas(struct facts *f, const struct reply *reply)
{
    struct slice list = whole_lines(reply);

    while (list.len > 0) {
        struct slice line = take_until(&list, '\n');
        while (line.len > 0) {
            struct slice value = take_until(&line, ' ');
            struct slice name = take_until(&value, '=');
            int64_t age = is_named(name, "age") ? parse_number(value) : -1;
            if (age - 1 > f->primary_s)
                f->primary_s = age - 1;
        }
    }
}

/* How many slots "0-5460", "7" or "[93->-ID]" adds to those that a node serves.
 * A slot that is being moved to another node is listed as served, too. */
static int slots_of(struct slice word)
{
    static const char leaving[] = "->-";
    struct slice last = word;
    struct slice first = take_until(&last, '-');

    if (slice_starts(word, "["))
        return memmem(word.data, word.len, leaving, sizeof(leaving) - 1) ? -1
                                                                         : 0;
    int64_t from = parse_number(first);
    int64_t to = last.len > 0 ? parse_number(last) : from;
    bool valid = from >= 0 && to >= from && to < CLUSTER_SLOTS;
    return valid ? (int)(to - from) + 1 : 0;
}

/* There is a line for each node, with the fields ID ADDRESS FLAGS PRIMARY PING
 * PONG EPOCH LINK SLOTS...; the flags of this node contain "myself". */
void facts_read_slots(struct facts *f, const struct reply *reply)
{
    struct slice nodes = whole_lines(reply);

    while (nodes.len > 0) {
        struct slice line = take_until(&nodes, '\n');
        if (line.len > 0 && line.data[line.len - 1] == '\r')
            line.len--;
        (void)take_until(&line, ' '); /* its id */
        (void)take_until(&line, ' '); /* and address */
        if (!slice_starts(take_until(&line, ' '), "myself"))
            continue;
        for (int i = 0; i < 5; i++) /* its primary ... the link */
            (void)take_until(&line, ' ');
        f->slots = 0;
        while (line.len > 0)
            f->slots += slots_of(take_until(&line, ' '));
        return;
    }
}

void facts_list_services(const struct reply *reply, char *out, size_t room)
{
    struct slice info = whole_lines(reply), value;
    size_t used = 0;

    out[0] = '\0';
    while (info.len > 0 && used < room) {
        char name[48] = "", address[64] = "";
        struct slice key = take_line(&info, &value);
        if (!slice_starts(key, "master"))
            continue;
        while (value.len > 0) {
            struct slice part = take_until(&value, ',');
            struct slice what = take_until(&part, '=');
            if (is_named(what, "name"))
                facts_copy(name, sizeof(name), part);
            else if (is_named(what, "address"))
                facts_copy(address, sizeof(address), part);
        }
        if (address[0] != '\0')
            used += (size_t)snprintf(out + used, room - used, "%s%s at %s",
                used > 0 ? ", " : "", name, address);
    }
}

void facts_name_sentinel(const struct reply *reply, char *why, size_t room)
{
    static const char what[] = "this is a Sentinel, which stores no locks";
    static const char join[] = "; it monitors ";
    size_t used = sizeof(what) - 1 + sizeof(join) - 1;

    snprintf(why, room, "%s%s", what, join);
    if (used < room)
        facts_list_services(reply, why + used, room - used);
    if (used >= room || why[used] == '\0')
        snprintf(why, room, "%s", what);
}
