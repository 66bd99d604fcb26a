/* SPDX-License-Identifier: MIT */
/*
 * A real server of the test's own: private directory, unix socket and port
 * of 127.0.0.1, nothing on disk that outlives it. It dies with the test
 * program. Which program: $NXLOCK_REDIS_SERVER, else redis-server.
 *
 * With NXLOCK_TEST_TLS=DIR in the environment clients meet it over TLS alone:
 * DIR has ca.pem, server.pem and server.key, and OpenSSL's default is to trust
 * that authority. A test that is about TLS itself includes redis_tls.h.
 *
 * Functions without a result fail the test when they cannot do their work;
 * so they belong to the thread that runs the test.
 */
#ifndef NXLOCK_TEST_REDIS_H
#define NXLOCK_TEST_REDIS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/local.h"

#define REDIS_EXTRA 34

struct redis {
    pid_t pid; /* 0: it does not run */
    bool frozen;
    bool tls, tls_only, tls_certified; /* see redis_tls.h */
    bool tls_always;                   /* by NXLOCK_TEST_TLS */
    uint16_t port;                     /* of url */
    uint16_t plain_port, tls_port;
    const char *scheme; /* of url: "redis" or "rediss" */
    char dir[LOCAL_PATH], path[LOCAL_PATH], log[LOCAL_PATH];
    char sentinel[LOCAL_PATH +
                  16]; /* a Sentinel's configuration; "": it is none */
    char tls_dir[4 * LOCAL_PATH];
    char url[LOCAL_PATH + 16];      /* redis://127.0.0.1:port */
    char unix_url[LOCAL_PATH + 16]; /* unix:///..., or url if tls_always */
    char tls_url[13 * LOCAL_PATH];  /* "": it was started without TLS */
    char *extra[REDIS_EXTRA];
    size_t extras;
    redisContext *context; /* the fixture's own connection */
};

/* Starts it with more arguments ("--requirepass", "x", ..., NULL) and waits
 * until it answers. 0; or -1 in a fixture that is to be skipped, which the
 * fixture returns. A missing server is a failure, or a skip when the
 * environment has NXLOCK_SKIP_LIVE=1. */
int redis_start(struct redis *r, ...) __attribute__((sentinel));
/* The same with a Sentinel, which monitors the server at that port of 127.0.0.1
 * under the name svc, with a quorum of 2. It listens on address, at that port
 * (0: any). */
int redis_start_sentinel(
    struct redis *r, uint16_t monitored, const char *address, uint16_t port);
/* Kills it and removes its directory; of all zero too. */
void redis_stop(struct redis *r);

void redis_kill(struct redis *r);    /* crash: SIGKILL, and gone on return */
void redis_restart(struct redis *r); /* same places; data gone without AOF */
void redis_freeze(struct redis *r);  /* SIGSTOP; it is stopped on return */
void redis_thaw(struct redis *r);

/* The server's answer to one command, never NULL, to be freed with
 * freeReplyObject(). The arguments end with NULL. */
redisReply *redis_command(struct redis *r, ...) __attribute__((sentinel));
/* The same with an array of words, which may contain any byte. */
redisReply *redis_command_words(struct redis *r, size_t count,
    const char *const *words, const size_t *lengths);
/* The same in hiredis' format: "SET %s %b". */
redisReply *redis_commandf(struct redis *r, const char *format, ...);
/* Fails on an error reply; returns an integer reply's number, else 0. */
long long redis_run(struct redis *r, ...) __attribute__((sentinel));

/* How many keys there are, but for those that only say when a line last left a
 * gap: they are gone some seconds later. */
static inline long long redis_lasting_keys(struct redis *r)
{
    return redis_run(r, "EVAL",
        "local n = 0 "
        "for _, key in ipairs(redis.call('KEYS', '*')) do "
        "if not string.find(key, ':nxl%-g$') then n = n + 1 end end "
        "return n",
        "0", NULL);
}

/* The value, zero-ended, into buf; false: no such key. */
bool redis_get(struct redis *r, const char *key, char *buf, size_t size);
int64_t redis_pttl(struct redis *r, const char *key); /* -2, -1, or ms */
bool redis_exists(struct redis *r, const char *key);
/* Connections other than the fixture's own. */
long redis_clients(struct redis *r);
/* How often a command ran since the server started ("set", "evalsha"). Of
 * "pubsub|numsub" a server before 7.0 only says how often "pubsub" ran. */
long redis_calls(struct redis *r, const char *command);

/* It becomes a replica of 127.0.0.1:PORT ("1": of nobody, and takes no
 * writes), or a primary; by the name that REPLICAOF had before Redis 5.0. */
void redis_follow(struct redis *r, const char *port);
void redis_promote(struct redis *r);
/* Is it a replica that has a copy of its primary? That may wait for a second
 * before it sends what is written afterwards. */
bool redis_has_copied(struct redis *r);
/* It follows that server; returns when it is sent what is written there. */
void redis_copy(struct redis *r, struct redis *primary);

/* These skip the test, from its body or its fixture, if the server lacks what
 * it needs, and say so: "Redis 3.2.13 has no ACL". A body does not go on then;
 * a fixture is returned -1, which it returns. 0: the server has it. */
int redis_needs_acl(struct redis *r); /* Redis 6.0 */
/* What only a server of this major version or a later one has. Valkey calls
 * itself Redis 7.2. */
int redis_needs(struct redis *r, int major, const char *what);

#endif
