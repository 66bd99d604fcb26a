/* SPDX-License-Identifier: MIT */
/*
 * What is known of the clock of a server. Invariant: the true time lies between
 * low and high while the rates of the two clocks differ by 1 % at most and the
 * server does not have its clock set.
 */
#include "wire/timestamps/server_clock.h"

#include "base/deadline.h"

/* Then it is asked again: it may have been set. */
#define LASTS (10 * NS_PER_S)

static int64_t to_ms(uint64_t ns)
{
    return (int64_t)(ns / NS_PER_MS);
}

void server_clock_learn(struct server_clock *c, uint64_t sent, uint64_t now,
    int64_t server_ms, int64_t error_ms)
{
    uint64_t half = deadline_left(now, sent) / 2;

    c->known = true;
    c->read_at = now;
    c->offset_ms = server_ms - to_ms(now - half);
    c->margin_ms = error_ms + to_ms(half) + 2; /* what was rounded off */
}

bool server_clock_fresh(const struct server_clock *c, uint64_t now)
{
    return c->known && now < deadline_after(c->read_at, LASTS);
}

static int64_t margin(const struct server_clock *c, uint64_t now)
{
    return c->margin_ms + to_ms(deadline_left(now, c->read_at)) / 100;
}

int64_t server_clock_low(const struct server_clock *c, uint64_t now)
{
    return to_ms(now) + c->offset_ms - margin(c, now);
}

int64_t server_clock_high(const struct server_clock *c, uint64_t now)
{
    return to_ms(now) + c->offset_ms + margin(c, now);
}
