/* SPDX-License-Identifier: MIT */
/*
 * What EXPECT-HANDSHAKE and SERVE answer. A server behind SERVE grants every
 * lock, and has done what each script was to do; a command that clients can do
 * without is unknown to it.
 */
#include "support/fake_inner.h"

#define RUN_ID "0123456789abcdef0123456789abcdef01234567"

enum { FIRST_CLIENT_ID = 7 };

static const char default_info[] =
    "# Server\r\nredis_version:7.0.15\r\nrun_id:" RUN_ID "\r\n"
    "uptime_in_seconds:864000\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n"
    "# Persistence\r\nloading:0\r\n# Replication\r\nrole:master\r\n";

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
        sha1_hex(c->arg[2].data, c->arg[2].len, name);
        resp_bulk(out, name, 40);
        *was_script = true;
    } else {
        known = false;
    }
    pthread_mutex_unlock(&f->lock);
    return known;
}

void serve_command(struct link *link, struct bytes *out)
{
    const struct resp_command *c = &link->command;

    if (resp_is(c, 0, "SET"))
        bytes_addf(out, "+OK\r\n");
    else if (resp_is(c, 0, "PTTL"))
        bytes_addf(out, ":30000\r\n");
    else if (resp_is(c, 0, "EVAL") || resp_is(c, 0, "EVALSHA") ||
             resp_is(c, 0, "CLIENT"))
        bytes_addf(out, ":1\r\n");
    else
        bytes_addf(out, "-ERR unknown command\r\n");
}
