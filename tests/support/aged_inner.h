/* SPDX-License-Identifier: MIT */
/* What the files of the aged server share. aged.c has the thread and what the
 * test may say, aged_link.c a connection, aged_order.c what becomes of a
 * command, aged_reply.c of a reply, aged_script.c the Lua, aged_age.c and
 * aged_words.c the tables. */
#ifndef NXLOCK_TEST_AGED_INNER_H
#define NXLOCK_TEST_AGED_INNER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/aged.h"
#include "support/bytes.h"
#include "support/local.h"
#include "support/resp.h"

/* Ages, as a set: of a table's row, those it is for. */
enum {
    AGE_2_2 = 1 << AGED_2_2,
    AGE_2_4 = 1 << AGED_2_4,
    AGE_2_6 = 1 << AGED_2_6,
    AGE_6_2 = 1 << AGED_6_2,
    AGE_2_X = AGE_2_2 | AGE_2_4 | AGE_2_6
};

struct age {
    unsigned bit;        /* 0: nothing is changed */
    const char *version; /* in INFO and HELLO */
    int column;          /* of aged_commands; -1: it has 7.0's */
    /* With the name, the argument, the name for *. */
    const char *unknown, *argument, *denied;
    const char *client;   /* CLIENT's subcommands; NULL: 7.0's */
    bool queue_runs_on;   /* EXEC runs after an error while queueing */
    bool missing_is_none; /* TTL of a missing key is -1, as of no ttl */
};

extern const struct age aged_ages[]; /* by enum aged_profile */

/* 2.2, 2.4, 2.6: number of words, negative for at least so many, 0 for a
 * command that it does not have. in_lua: w writes, r is not deterministic, x
 * both. */
#define AGED_COLUMNS 3
struct aged_command {
    const char *name;
    signed char words[AGED_COLUMNS];
    char in_lua;
};

extern const struct aged_command aged_commands[]; /* name NULL at the end */

/* Of 7.0's error lines the first that fits is said in other words. A * takes
 * what stands there; $1 to $9 put it in, $s the script's sha1. */
struct aged_words {
    unsigned ages;
    const char *from, *to;
};

extern const struct aged_words aged_words[]; /* from NULL at the end */

/* A line of INFO, "*" anywhere at a field's end; to NULL: it has none. */
struct aged_field {
    unsigned ages;
    const char *field;
    const char *to; /* $ is the value */
};

extern const struct aged_field aged_fields[]; /* field NULL at the end */
/* INFO has these fields alone, and no sections: by ages; NULL: all. */
const char *aged_info_fields(const struct age *age);

enum aged_change {
    AGED_AS_IT_IS, /* an error's words apart, as everywhere */
    AGED_TEXT,     /* the reply is order.text, unless AUTH is wanting */
    AGED_SHA,      /* the name of a script: order.sha */
    AGED_TTL,
    AGED_INFO,
    AGED_EXEC
};

/* What a reply does to the connection's transaction. */
enum aged_effect { AGED_NONE, AGED_BEGINS, AGED_ENDS, AGED_RUNS };

struct aged_order {          /* a command and what is to become of its reply */
    struct aged_order *next; /* in a transaction's queue */
    const struct age *age;
    struct bytes raw;            /* as the client sent it */
    struct resp_command command; /* within raw */
    enum aged_change change;
    enum aged_effect effect;
    struct bytes text;
    char sha[41];     /* the script's, as the client knows it, or "" */
    struct bytes out; /* to the server; else text is the answer at once */
};

struct aged_script { /* one that runs under another name */
    char asked[41], real[41];
    struct aged_script *next;
};

struct aged_refusal {
    char *commands, *reply;
    struct aged_refusal *next;
};

/* What it takes to understand a command. */
struct aged_book {
    const struct age *age;
    struct aged_refusal *refusals; /* newest first */
    struct aged_script *scripts;
};

enum { AGED_LINKS = 256 };
enum aged_side { AGED_CLIENT, AGED_SERVER };

struct aged_link { /* a connection, to both sides */
    bool used, cut;
    bool closed[2]; /* that side has closed, or does not read any more */
    size_t number;
    int fd[2];
    struct bytes in[2], out[2]; /* from and to that side */
    struct aged_order *now;     /* the server is to answer it */
    bool in_transaction;
    struct aged_order *queue, **queue_end;
};

struct aged {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int wake[2], listener;
    bool stopping, cutting;
    char dir[LOCAL_PATH], path[LOCAL_PATH], behind[LOCAL_PATH];
    char url[LOCAL_PATH + 16];
    struct aged_book book;
    struct aged_link links[AGED_LINKS];
    size_t accepted;
    struct bytes log, shown;
    uint64_t turns; /* of the thread, for those who wait for one */
};

/* aged_link.c; the lock is held. */
void aged_link_open(struct aged *a, int client);
void aged_link_close(struct aged_link *l);
void aged_link_take_in(struct aged_link *l, enum aged_side side);
void aged_link_work(struct aged *a, struct aged_link *l);

/* aged_order.c: fills in what follows from command, age and the state of the
 * connection. */
void aged_understand(
    struct aged_book *book, struct aged_order *o, bool in_transaction);
void aged_order_free(struct aged_order *o);
bool aged_listed(const char *words, const char *word, size_t len);
const struct aged_command *aged_find(
    const struct age *age, const char *name, size_t len);
void aged_put(struct bytes *out, size_t count, ...); /* strings: a command */

/* aged_reply.c */
/* Bytes of the first whole reply; 0: more are needed; -1: not a reply. */
long aged_reply_length(const char *data, size_t len);
/* The reply in the words of the order's age; queue: the transaction's. */
void aged_say(struct bytes *out, const struct aged_order *o,
    const struct aged_order *queue, const char *reply, size_t len);
void aged_unknown(struct bytes *out, const struct aged_order *o);

/* aged_script.c */
bool aged_script_order(struct aged_book *book, struct aged_order *o);
void aged_scripts_free(struct aged_book *book);

#endif
