/* SPDX-License-Identifier: MIT */
/* What the fake's files share. fake.c has the threads, fake_script.c the
 * text, fake_play.c a connection, fake_serve.c the small server. */
#ifndef NXLOCK_TEST_FAKE_INNER_H
#define NXLOCK_TEST_FAKE_INNER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/bytes.h"
#include "support/fake.h"
#include "support/local.h"
#include "support/resp.h"

enum step_kind {
    STEP_EXPECT,
    STEP_EXPECT_HANDSHAKE,
    STEP_EXPECT_CLOSE,
    STEP_SEND,
    STEP_BULK,
    STEP_INFO,
    STEP_DELAY,
    STEP_WAIT_FOR,
    STEP_TELL,
    STEP_SILENCE,
    STEP_SERVE,
    STEP_CLOSE,
    STEP_RESET,
    STEP_REFUSE
};

enum word_kind { WORD_EXACT, WORD_ANY, WORD_TAKE };

struct word {
    enum word_kind kind;
    struct bytes text; /* EXACT: the bytes; TAKE: the name */
};

struct step {
    enum step_kind kind;
    int line;
    char shown[100];              /* the beginning of that line */
    struct word words[RESP_ARGS]; /* EXPECT */
    size_t count;                 /* EXPECT: words; DELAY: number */
    struct bytes text;            /* SEND, BULK, INFO, WAIT_FOR, TELL */
    struct step *next;
};

struct section {
    bool many; /* ACCEPT * */
    struct step *steps;
    struct section *next;
};

struct pair { /* a taken name, a signal (no value) */
    char *name;
    struct bytes value;
    struct pair *next;
};

/* One connection and its thread. Under fake->lock but for the thread's own. */
struct link {
    struct fake *fake;
    struct link *next;
    const struct section *section;
    size_t number;
    int fd;
    pthread_t thread;
    bool settled; /* nothing is left that must happen */
    /* The thread's own. */
    const struct step *step;
    struct bytes in;
    size_t used; /* bytes of the present command */
    bool kept;   /* the present command is still to be taken */
    struct resp_command command;
};

struct fake {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread; /* accepts */
    int listeners[2]; /* unix, TCP; -1 when refused */
    int refused;      /* then the one of TCP, whose port stays ours */
    int stop[2];      /* a pipe: readable when the play ends */
    uint16_t port;
    char dir[LOCAL_PATH], path[LOCAL_PATH];
    char url[LOCAL_PATH + 16], tcp_url[LOCAL_PATH];
    struct section *sections;
    struct link *links; /* newest first */
    size_t accepted;
    bool stopping, joined;
    struct pair *signals, *taken;
    struct bytes problem, log, info, shown;
};

/* fake_script.c: the sections, or NULL with what is wrong in problem. */
struct section *script_read(const char *text, struct bytes *problem);
void script_free(struct section *sections);

/* fake_play.c: a connection's whole life; fd is closed by the caller. */
void play(struct link *link);
/* The first problem is kept, the others are its consequences. Takes lock. */
void play_problem(struct link *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void command_show(struct bytes *out, const struct resp_command *command);

/* fake_serve.c. Both append the reply to out; the first takes the lock. */
bool serve_handshake(struct link *link, struct bytes *out, bool *was_script);
void serve_command(struct link *link, struct bytes *out);

/* fake.c */
struct pair *pair_find(struct pair *list, const char *name, size_t len);
struct pair *pair_add(struct pair **list, const char *name, size_t len);
void pairs_free(struct pair *list);
void fake_refuse(struct fake *f); /* takes lock */

#endif
