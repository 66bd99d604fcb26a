/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: a process between nxlock and the command. It alone signals and
 * reaps the command and what that starts, and stops all of it by the deadline
 * that it received last, whatever happens to nxlock.
 */
#ifndef NXLOCK_CLI_WATCHDOG_H
#define NXLOCK_CLI_WATCHDOG_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/session.h"

/* One datagram between the two, either way. */
struct note {
    int kind;
    int number;
    uint64_t time; /* of nxl_now_ns(), or what the kind says */
};

/* To the watchdog. */
enum order {
    ORDER_DEADLINE = 1, /* time: the lease is valid until then */
    ORDER_SIGNAL,       /* number: to the group; time 1: and CONT */
    ORDER_RESUME,       /* CONT to the group */
    ORDER_STOP,         /* number: an enum reason; TERM, grace, KILL */
    ORDER_KILL          /* KILL at once */
};

/* The group runs on after it. Both sides count these orders. */
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
    NEWS_STOPPING,    /* number: an enum reason */
    NEWS_ENDED,       /* number: the command's status as of waitpid() */
    NEWS_GONE         /* nothing of the command is running, or what is
                         must be left alone */
};

/* Why all of it is being stopped. */
enum reason {
    REASON_LEASE = 1, /* it ends, or has ended */
    REASON_AT_MOST,
    REASON_LEFT_OVER, /* the command ended, but not what it had started */
    REASON_ALONE      /* nxlock is gone */
};

struct watchdog_plan {
    char **words;                  /* the command, ends with NULL */
    const struct session *session; /* what it was started with */
    const struct sigaction *chld;  /* likewise, for SIGCHLD */
    uint64_t deadline;             /* of the lease; NEVER: there is none */
    uint64_t margin;               /* ns: KILL comes so long before it, */
    uint64_t grace;                /* and TERM so long before KILL */
    uint64_t at_most;              /* ns that the command may take, or NEVER */
    int lost_signal; /* instead of TERM; 0: a lost lease stops nothing */
    bool leave;      /* what the command leaves behind is to run on */
    int tty;         /* descriptor of the terminal, or -1 */
    bool terminal;   /* the command is to have it */
    int line;        /* the watchdog's end of the socket */
    int lost[2];     /* a pipe: the command gets the first end, and reads
                        the end of file there once the lease is lost */
};

/* Ends the process, which the caller has made by fork(), when nothing of the
 * command is running. */
_Noreturn void watchdog_work(const struct watchdog_plan *plan);

/* Gives the terminal tty to a process group. */
void give_terminal(int tty, pid_t group);

#endif
