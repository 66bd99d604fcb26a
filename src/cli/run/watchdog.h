/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: a process between nxlock and the command. Only it signals and
 * reaps the command and its descendants, and it stops all of them before the
 * last deadline that it received, whatever happens to nxlock.
 */
#ifndef NXLOCK_CLI_RUN_WATCHDOG_H
#define NXLOCK_CLI_RUN_WATCHDOG_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/run/session.h"

/* One datagram between the two, either way. */
struct note {
    int kind;
    int number;
    uint64_t time; /* of nxl_now_ns(), or what the kind says */
};

/* To the watchdog. */
enum order {
    ORDER_DEADLINE = 1, /* time: the lease is valid until then */
    ORDER_SIGNAL,       /* number: a signal for the group; time 1: CONT too */
    ORDER_RESUME,       /* CONT to the group */
    ORDER_STOP,         /* number: an enum reason; TERM, grace, KILL */
    ORDER_KILL          /* KILL at once */
};

/* Does the order continue a stopped group? Both sides count these orders. */
static inline bool order_continues(const struct note *order)
{
    return order->kind == ORDER_RESUME ||
           (order->kind == ORDER_SIGNAL && order->time != 0);
}

/* From the watchdog. Notes that were sent are read even after its end. */
enum news {
    NEWS_STARTED = 1, /* number: the command's pid */
    NEWS_NO_PROCESS,  /* number: errno of fork; nothing else will follow */
    NEWS_NOT_RUN,     /* number: errno of exec */
    NEWS_HALTED,      /* number: the signal that stopped the command for now;
                         time: how many orders had continued it before */
    NEWS_STOPPING,    /* number: an enum reason, with UNLOGGED or without */
    NEWS_ENDED,       /* number: the command's status as of waitpid(); time 1:
                         if by a signal, its whole group has got that */
    NEWS_GONE         /* all processes of the command have ended, except those
                         that --leave-descendants keeps; number: 1 if they
                         were left behind and had to be stopped, else 0 */
};

/* Added to a reason: the log did not take the watchdog's line about it. */
#define UNLOGGED 0x100

/* Why all of it is being stopped. */
enum reason {
    REASON_LEASE = 1, /* the lease is ending, or was lost */
    REASON_AT_MOST,
    REASON_LEFT_OVER, /* the command ended, but not what it had started */
    REASON_ALONE      /* nxlock has died */
};

struct watchdog_plan {
    char **words;                  /* the command, ends with NULL */
    const struct session *session; /* the signal state that nxlock inherited */
    uint64_t deadline;             /* of the lease; NEVER: no lease */
    uint64_t margin;               /* ns from KILL to the deadline */
    uint64_t grace;                /* ns from TERM to KILL */
    uint64_t at_most;              /* ns that the command may take, or NEVER */
    bool only_warns;               /* a lost lease stops nothing */
    bool leave;                    /* --leave-descendants */
    int tty;                       /* descriptor of the terminal, or -1 */
    bool terminal;                 /* the command should have the terminal */
    int channel;                   /* the watchdog's end of the socket */
    int output;    /* standard output of the command; -1: inherited */
    bool no_input; /* its standard input is /dev/null; else inherited */
    int lost[2];   /* a pipe: the command gets the first end, and reads
                      the end of file there once the lease is lost */
};

/* Runs the watchdog in a process that the caller has just forked, and ends that
 * process when all processes of the command have ended. */
_Noreturn void watchdog_work(const struct watchdog_plan *plan);

#endif
