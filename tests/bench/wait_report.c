/* SPDX-License-Identifier: MIT */
/* The tables of nxlock-bench-wait and its goals: medians over the rounds,
 * ratios within each round. */
#include "wait.h"

#include <stdio.h>

/* The slowest PINGs of a machine that does nothing else are faster than so
 * many median ones and so many microseconds. */
#define BUSY 2
#define BUSY_US 200

typedef double wait_value(const struct wait_sample *sample);

static double rate_of(const struct wait_sample *s)
{
    return s->rate;
}

static double p50_of(const struct wait_sample *s)
{
    return s->p50_us;
}

static double p99_of(const struct wait_sample *s)
{
    return s->p99_us;
}

static double rtt_of(const struct wait_sample *s)
{
    return s->rtt_us;
}

static double rtt_p99_of(const struct wait_sample *s)
{
    return s->rtt_p99_us;
}

static double trips_of(const struct wait_sample *s)
{
    return s->p50_us / s->rtt_us;
}

/* INFINITY if a contender was not granted the lock. */
static double max_min_of(const struct wait_sample *s)
{
    return s->max_min;
}

static double longest_of(const struct wait_sample *s)
{
    return s->longest_ms;
}

static double starved_of(const struct wait_sample *s)
{
    return s->starved;
}

static double server_of(const struct wait_sample *s)
{
    return s->server_us;
}

static double stay_of(const struct wait_sample *s)
{
    return s->stay_us;
}

static double per_acquisition(const struct wait_sample *s, uint64_t requests)
{
    uint64_t acquisitions = s->requests.acquisitions;

    return acquisitions ? (double)requests / (double)acquisitions : 0;
}

static double requests_of(const struct wait_sample *s)
{
    const struct wait_requests *r = &s->requests;

    return per_acquisition(
        s, r->set + r->pttl + r->join + r->script + r->other);
}

static double stays_of(const struct wait_sample *s)
{
    return s->requests.seconds > 0
               ? (double)s->requests.stay / s->requests.seconds
               : 0;
}

/* The server's processor time per acquisition, without that for STAY. */
static double beside_of(const struct wait_sample *s)
{
    return s->server_us - s->stay_us * stays_of(s) / s->rate;
}

/* The median over the rounds in which it was measured. */
static double median(const struct wait_plan *plan,
    const struct wait_case *where, int subject, wait_value *value)
{
    double values[BENCH_MAX_ROUNDS];
    int count = 0;

    for (int i = 0; i < plan->done; i++) {
        const struct wait_sample *sample = &where->samples[subject][i];
        if (sample->ok)
            values[count++] = value(sample);
    }
    return median_of(values, count);
}

static double greatest(const struct wait_plan *plan,
    const struct wait_case *where, int subject, wait_value *value)
{
    double most = 0;

    for (int i = 0; i < plan->done; i++) {
        const struct wait_sample *sample = &where->samples[subject][i];
        if (sample->ok && value(sample) > most)
            most = value(sample);
    }
    return most;
}

/* Of acquisitions per second to the floor's, within each round. */
static double ratio(
    const struct wait_plan *plan, const struct wait_case *where, int subject)
{
    double values[BENCH_MAX_ROUNDS];
    int count = 0;

    for (int i = 0; i < plan->done; i++) {
        const struct wait_sample *ours = &where->samples[subject][i];
        const struct wait_sample *floor = &where->samples[SUBJECT_FLOOR][i];
        if (ours->ok && floor->ok && floor->rate > 0)
            values[count++] = ours->rate / floor->rate;
    }
    return median_of(values, count);
}

static bool measured(
    const struct wait_plan *plan, const struct wait_case *where, int subject)
{
    for (int i = 0; i < plan->done; i++) {
        if (where->samples[subject][i].ok)
            return true;
    }
    return false;
}

static void goal(const char *what, double value, const char *sign, double bound)
{
    bool met = *sign == '<' ? value <= bound : value >= bound;

    printf("    %-44s %9.3f  (%s= %g) %s\n", what, value, sign, bound,
        met ? "met" : "NOT MET");
}

/* ------------------------------------------------------------ contenders */

static void row(
    const struct wait_plan *plan, const struct wait_case *where, int subject)
{
    printf("%6u %3u  %-12s %7.0f %6.3f  %8.0f %8.0f %6.2f  ", where->contenders,
        where->processes, plan->subjects[subject].name,
        median(plan, where, subject, rate_of), ratio(plan, where, subject),
        median(plan, where, subject, p50_of),
        median(plan, where, subject, p99_of),
        median(plan, where, subject, trips_of));
    printf("%7.2f  %8.1f %8.1f  %7.0f  %7.1f\n",
        median(plan, where, subject, max_min_of),
        median(plan, where, subject, longest_of),
        greatest(plan, where, subject, longest_of),
        greatest(plan, where, subject, starved_of),
        median(plan, where, subject, server_of));
}

static void requests_row(
    const struct wait_plan *plan, const struct wait_case *where, int subject)
{
    struct wait_sample sum = {0};
    struct wait_requests *r = &sum.requests;

    for (int i = 0; i < plan->done; i++) {
        const struct wait_requests *one = &where->samples[subject][i].requests;
        r->set += one->set;
        r->pttl += one->pttl;
        r->join += one->join;
        r->stay += one->stay;
        r->script += one->script;
        r->other += one->other;
        r->acquisitions += one->acquisitions;
        r->seconds += one->seconds;
    }
    printf(
        "%6u %3u  %-12s %6.3f   %6.3f %6.3f %6.3f %6.3f %6.3f   %9.1f %6.3f\n",
        where->contenders, where->processes, plan->subjects[subject].name,
        requests_of(&sum), per_acquisition(&sum, r->set),
        per_acquisition(&sum, r->pttl), per_acquisition(&sum, r->join),
        per_acquisition(&sum, r->script), per_acquisition(&sum, r->other),
        stays_of(&sum),
        stays_of(&sum) * wait_beat_seconds(plan->ttl_ms) / where->contenders);
}

static void goals(const struct wait_plan *plan, const struct wait_case *where)
{
    int me = SUBJECT_LIBRARY;
    unsigned n = where->contenders;
    double p50_ms = median(plan, where, me, p50_of) / 1000;

    printf("  nxlock, %u contenders, %s\n", n, where->place);
    goal("acquisitions/s against the floor", ratio(plan, where, me), ">", 0.95);
    if (median(plan, where, me, rtt_of) > 500)
        goal("hand-off p50, in round trips", median(plan, where, me, trips_of),
            "<", 1.25);
    goal("requests per acquisition, besides STAY",
        median(plan, where, me, requests_of), "<", 2.3);
    goal("most to least grants", median(plan, where, me, max_min_of), "<",
        n <= 32 ? 1.1 : 1.3);
    goal("starved", greatest(plan, where, me, starved_of), "<", 0);
    goal("longest wait in P x (hold + hand-off)",
        median(plan, where, me, longest_of) / (n * (plan->hold_ms + p50_ms)),
        "<", 1.3);
}

/* ---------------------------------------------------------------- crowds */

/* The smallest crowd is what the others are compared with. */
static const struct wait_case *smallest(const struct wait_plan *plan)
{
    const struct wait_case *least = NULL;

    for (int i = 0; i < plan->count; i++) {
        const struct wait_case *where = &plan->cases[i];
        if (where->crowd && (!least || where->contenders < least->contenders))
            least = where;
    }
    return least;
}

static void crowd_row(
    const struct wait_plan *plan, const struct wait_case *where, int subject)
{
    const struct wait_case *base = smallest(plan);
    double cpu = median(plan, where, subject, server_of);
    double beside = median(plan, where, subject, beside_of);

    printf("%6u %3u  %-12s %7.0f  %8.1f %6.2f  %8.1f %6.2f  %7.1f  %8.0f "
           "%8.0f\n",
        where->contenders, where->processes, plan->subjects[subject].name,
        median(plan, where, subject, rate_of), cpu,
        cpu / median(plan, base, subject, server_of), beside,
        beside / median(plan, base, subject, beside_of),
        median(plan, where, subject, stay_of),
        median(plan, where, subject, p50_of),
        median(plan, where, subject, p99_of));
}

static void crowd_goals(
    const struct wait_plan *plan, const struct wait_case *where)
{
    const struct wait_case *base = smallest(plan);
    int me = SUBJECT_LIBRARY;

    if (where == base)
        return;
    printf(
        "  nxlock, %u waiting, to %u\n", where->contenders, base->contenders);
    goal("server's processor time per acquisition, besides STAY",
        median(plan, where, me, beside_of) / median(plan, base, me, beside_of),
        "<", 1.3);
    goal("server's time per STAY",
        median(plan, where, me, stay_of) / median(plan, base, me, stay_of), "<",
        1.3);
}

/* ------------------------------------------------------------ everything */

typedef void wait_row(
    const struct wait_plan *plan, const struct wait_case *where, int subject);

/* Every subject of the cases at one place, or of the crowds. */
static void rows(const struct wait_plan *plan, const char *place, bool crowd,
    wait_row *print)
{
    for (int i = 0; i < plan->count; i++) {
        const struct wait_case *where = &plan->cases[i];
        if (where->crowd != crowd || (!crowd && where->place != place))
            continue;
        for (int s = 0; s < WAIT_SUBJECTS; s++) {
            if (plan->subjects[s].name && measured(plan, where, s))
                print(plan, where, s);
        }
    }
}

static const char requests_head[] =
    "     P  in  who          requests:  SET   PTTL   JOIN scripts  other      "
    "STAY/s a beat\n";

static void table(const struct wait_plan *plan, const struct wait_case *where)
{
    printf("\n%s; a PING on an idle server takes %.0f us, p99 %.0f us\n",
        where->place, median(plan, where, SUBJECT_FLOOR, rtt_of),
        median(plan, where, SUBJECT_FLOOR, rtt_p99_of));
    if (median(plan, where, SUBJECT_FLOOR, rtt_p99_of) >
        BUSY * median(plan, where, SUBJECT_FLOOR, rtt_of) + BUSY_US)
        printf("the machine was busy: measure again\n");
    printf("     P  in  who            acq/s  ratio    p50 us   p99 us   /RTT  "
           "max/min   longest    worst  starved  CPU us\n");
    rows(plan, where->place, false, row);
    fputs(requests_head, stdout);
    rows(plan, where->place, false, requests_row);
}

static void crowds(const struct wait_plan *plan)
{
    if (!smallest(plan))
        return;
    printf("\nmany waiting, %s: processor time of the server per acquisition\n",
        smallest(plan)->place);
    printf("     P  in  who            acq/s    CPU us  ratio    beside  ratio "
           "  STAY us    p50 us   p99 us\n");
    rows(plan, NULL, true, crowd_row);
    fputs(requests_head, stdout);
    rows(plan, NULL, true, requests_row);
}

static int failures(const struct wait_plan *plan)
{
    int bad = 0;

    for (int i = 0; i < plan->count * WAIT_SUBJECTS * plan->done; i++) {
        const struct wait_case *where =
            &plan->cases[i / (WAIT_SUBJECTS * plan->done)];
        int subject = i / plan->done % WAIT_SUBJECTS;
        const struct wait_sample *sample =
            &where->samples[subject][i % plan->done];

        if (!plan->subjects[subject].name)
            continue;
        if (!sample->ok)
            printf("%u contenders, %s, %s: not measured: %s\n",
                where->contenders, where->place, plan->subjects[subject].name,
                sample->error);
        if (sample->overlaps || sample->failures)
            printf("%u contenders, %s, %s: %llu times two holders, %llu calls "
                   "failed%s%s\n",
                where->contenders, where->place, plan->subjects[subject].name,
                (unsigned long long)sample->overlaps,
                (unsigned long long)sample->failures,
                sample->failures ? ", first: " : "", sample->failure);
        bad += !sample->ok || sample->overlaps > 0;
    }
    return bad;
}

int wait_report(const struct wait_plan *plan)
{
    const char *place = NULL;

    printf("server %s; hold %g ms, ttl %lld ms; %d rounds of %g s, medians\n",
        plan->server.version, plan->hold_ms, (long long)plan->ttl_ms,
        plan->done, plan->seconds);
    for (int i = 0; i < plan->count; i++) {
        if (!plan->cases[i].crowd && plan->cases[i].place != place)
            table(plan, &plan->cases[i]);
        place = plan->cases[i].crowd ? place : plan->cases[i].place;
    }
    crowds(plan);
    printf("\ngoals\n");
    for (int i = 0; i < plan->count; i++) {
        const struct wait_case *where = &plan->cases[i];
        if (!measured(plan, where, SUBJECT_LIBRARY))
            continue;
        if (where->crowd)
            crowd_goals(plan, where);
        else
            goals(plan, where);
    }
    return failures(plan);
}
