/* SPDX-License-Identifier: MIT */
/*
 * What goes wrong, and when. The clean ones must not break an invariant,
 * whatever their number. Two are not clean: no lock on servers' clocks can
 * bear skew, and no fence a server that forgets while they are apart.
 */
#ifndef NXLOCK_SIM_TROUBLE_H
#define NXLOCK_SIM_TROUBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/alarm.h"

/* The name, and what it does. A stranger may also set a key in place of one
 * that nobody relies on yet. */
#define TROUBLE_LIST(X)                                                        \
    X(SLOW, "slow", "a server's messages take longer than any budget")         \
    X(CUT, "cut", "a connection is lost with what was on its way")             \
    X(LATE, "late", "... and what was on its way is applied later")            \
    X(CRASH, "crash", "a server restarts with its data")                       \
    X(WIPE, "wipe", "a server restarts without its data")                      \
    X(REWIND, "rewind", "a server restarts with older data")                   \
    X(HANG, "hang", "a server stands still, its connections open")             \
    X(REFUSE, "refuse", "a server answers with errors")                        \
    X(CLOCK, "clock",                                                          \
        "servers' clocks run wrong within the allowance, or step back")        \
    X(PAUSE, "pause", "a client stands still")                                 \
    X(DEATH, "death", "a client dies, and is begun again")                     \
    X(CANCEL, "cancel", "a caller gives up")                                   \
    X(SKEW, "skew", "a server's clock is stepped forward, by up to a lease")   \
    X(APART, "apart", "servers' times of day differ by up to two minutes")     \
    /* With one server, where programs wait in line: */                        \
    X(LINE, "line", "a line is deleted, or its mark, or both")                 \
    X(DEAF, "deaf", "a connection for messages is lost")                       \
    X(HELD, "held", "messages are held up on their way")                       \
    X(DENY, "deny", "a release may not set keys, publish, or count listeners") \
    X(STRANGER, "stranger",                                                    \
        "a program that knows nothing of lines sets a key")                    \
    /* In a world with failovers: */                                           \
    X(PROMOTE, "promote", "a replica takes over, without the latest writes")   \
    X(SWITCHOVER, "switchover", "... with all of them")                        \
    X(BACKLOG, "backlog", "a primary frees its replication backlog")           \
    X(REPLICA, "replica",                                                      \
        "a replica lags or is gone, or a server forgets its scripts")          \
    /* In a world with Sentinels: */                                           \
    X(PART, "part", "servers, Sentinels and clients are parted")               \
    X(STOP, "stop", "a server is stopped, or gone, for longer")                \
    X(SENTINEL, "sentinel", "a Sentinel is stopped, or restarts")              \
    X(PLANNED, "planned", "a Sentinel is told to replace the primary")

#define TROUBLE_OF_LIST(trouble, name, does) TROUBLE_##trouble,
enum trouble { TROUBLE_LIST(TROUBLE_OF_LIST) TROUBLES };

#define CLEAN_TROUBLES                                                         \
    (((1u << TROUBLES) - 1) & ~(1u << TROUBLE_SKEW) & ~(1u << TROUBLE_APART))

/* After these a server knows less than before. */
#define FORGETFUL_TROUBLES (1u << TROUBLE_WIPE | 1u << TROUBLE_REWIND)

struct troubles {
    unsigned allowed, rings;
    uint64_t happened, each[TROUBLES];
    uint64_t struck_at; /* the last one */
    struct alarm alarm;
};

void troubles_start(struct world *w);
void troubles_end(struct world *w);

/* Prints the name of each with what it does, in lines, to stdout. */
void troubles_print(void);
/* Names with commas between them, "all", "clean" or "none". */
bool troubles_parse(const char *list, unsigned *mask);

#endif
