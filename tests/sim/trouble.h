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

enum trouble {
    TROUBLE_SLOW,   /* a server's messages take longer than any budget */
    TROUBLE_CUT,    /* a connection is lost with what was on its way */
    TROUBLE_LATE,   /* ... and is applied all the same, later */
    TROUBLE_CRASH,  /* a server restarts with its data */
    TROUBLE_WIPE,   /* ... without */
    TROUBLE_REWIND, /* ... with older data */
    TROUBLE_HANG,   /* a server stands still, connections open */
    TROUBLE_REFUSE, /* a server answers with errors */
    TROUBLE_CLOCK,  /* wrong rates within the allowance, steps back */
    TROUBLE_PAUSE,  /* a client stands still */
    TROUBLE_DEATH,  /* a client dies */
    TROUBLE_CANCEL, /* a caller gives up */
    TROUBLE_SKEW,   /* a server's clock is stepped forward */
    TROUBLE_APART,  /* servers' times of day differ by minutes */
    /* With one server, where programs wait in line: */
    TROUBLE_LINE, /* a line is deleted, or its mark */
    TROUBLE_DEAF, /* a connection for messages is lost */
    TROUBLE_HELD, /* messages are held up on their way */
    TROUBLE_DENY, /* a release may not do all that it is to do */
    /* A program that knows nothing of lines sets a key; also in place of one
     * that nobody relies on yet. */
    TROUBLE_STRANGER,
    /* In a world with failovers: */
    TROUBLE_PROMOTE,    /* a replica takes over, without the latest writes */
    TROUBLE_SWITCHOVER, /* ... with all of them */
    TROUBLE_BACKLOG,    /* a primary frees its replication backlog */
    TROUBLE_REPLICA, /* a replica lags or is gone, or scripts are forgotten */
    /* In a world with Sentinels: */
    TROUBLE_PART,     /* servers, Sentinels and clients are parted */
    TROUBLE_STOP,     /* a server is stopped, or gone, for longer */
    TROUBLE_SENTINEL, /* a Sentinel is stopped, or restarts */
    TROUBLE_PLANNED,  /* a Sentinel is told to replace the primary */
    TROUBLES
};

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

const char *trouble_name(enum trouble trouble);
const char *trouble_words(enum trouble trouble);
/* Names with commas between them, "all", "clean" or "none". */
bool troubles_parse(const char *list, unsigned *mask);

#endif
