/* SPDX-License-Identifier: MIT */
/*
 * Compares the clock of a server with others.
 *
 * Invariant: a difference is reported as a fault only if it is larger than what
 * the time for the answer leaves open.
 */
#include "cli/doctor/doctor_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/answer.h"
#include "cli/report/duration.h"

#define NS_PER_US 1000
#define LOOKS 3
/* A larger difference may affect fencing tokens and timestamps. */
#define APART_US US_PER_S
#define APART_NOTE_US (100 * US_PER_MS)
#define NEVER_US (INT64_MAX / 4)
/* No product of what a server says overflows. */
#define TIME_MOST_S INT64_C(1000000000000)

static int64_t local_us(void)
{
    struct timespec now;

    timespec_get(&now, TIME_UTC);
    return now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

static int64_t steady_us(void)
{
    return (int64_t)(nxl_now_ns() / NS_PER_US);
}

/* Improves *lead over the clock now_us() by one look. */
static bool look(struct doctor *d, size_t server, int64_t (*now_us)(void),
    struct clock_lead *lead)
{
    struct answer *answer;
    int64_t before = now_us();
    int rc = doctor_ask(d, server, &answer, "TIME", NULL);
    int64_t after = now_us();
    int64_t s, us;
    bool told = rc == NXL_OK && answer_number(answer, 0, TIME_MOST_S, &s) &&
                answer_number(answer, 1, US_PER_S, &us);

    if (told && after >= before) {
        int64_t there = s * US_PER_S + us;
        if (after - before < 2 * lead->unsure_us) {
            lead->ahead_us = there - before - (after - before) / 2;
            lead->unsure_us = (after - before) / 2;
        }
    }
    answer_free(answer);
    return told;
}

static bool look_often(struct doctor *d, size_t server, int64_t (*now_us)(void),
    struct clock_lead *lead)
{
    *lead = (struct clock_lead){0, NEVER_US};
    for (int i = 0; i < LOOKS; i++) {
        if (!look(d, server, now_us, lead))
            return false;
    }
    return true;
}

bool doctor_clock_lead(struct doctor *d, size_t server, struct clock_lead *lead)
{
    return look_often(d, server, steady_us, lead);
}

void doctor_clock(struct doctor *d, size_t server)
{
    struct clock_lead lead;

    if (!look_often(d, server, local_us, &lead)) {
        diagnostic(&d->diagnostics, LEVEL_NOTE, "clock", NULL, "time unknown");
        return;
    }
    if (lead.unsure_us >= NEVER_US) {
        diagnostic(&d->diagnostics, LEVEL_NOTE, "clock", NULL,
            "not compared: the clock of this machine was changed during "
            "the check");
        return;
    }
    int64_t far = llabs(lead.ahead_us) - lead.unsure_us;
    const char *way = lead.ahead_us < 0 ? "behind" : "ahead of";
    char by[DURATION_ROOM], within[DURATION_ROOM];
    duration_text(by, llabs(lead.ahead_us) / US_PER_MS);
    duration_text(within, lead.unsure_us / US_PER_MS + 1);
    if (far >= APART_US)
        diagnostic(&d->diagnostics, LEVEL_WARN, "clock",
            "synchronize both clocks with NTP",
            "%s %s this machine's. Leases do not depend on it, "
            "since only the server counts them; fencing tokens do after "
            "a failover, and so do locks of scheme=timestamp shared "
            "with programs that use their own clock",
            by, way);
    else
        diagnostic(&d->diagnostics,
            far >= APART_NOTE_US || lead.unsure_us >= APART_US ? LEVEL_NOTE
                                                               : LEVEL_OK,
            "clock", NULL, "%s %s this machine's, to within %s", by, way,
            within);
}
