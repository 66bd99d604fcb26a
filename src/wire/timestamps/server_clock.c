/* SPDX-License-Identifier: MIT */
/*
 * What is known about a server's clock. Invariant: its time is between low and
 * high as long as the rates of the two clocks differ by at most 1 % and the
 * server's clock is not set.
 */
#include "wire/timestamps/server_clock.h"

#include "base/deadline.h"

/* Ask again after this time, because the clock may have been set. */
#define LASTS (10 * NS_PER_S)

static int64_t to_ms(uint64_t ns)
{
    return (int64_t)(ns / NS_PER_MS);
}

void server_clock_learn(struct server_clock *c, uint64_t sent, uint64_t now,
    int64_t server_ms, int64_t error_ms)
{
    uint64_t half = elapsed(sent, now) / 2;

    c->known = true;
    c->read_at = now;
    c->offset_ms = server_ms - to_ms(now - half);
    c->margin_ms = error_ms + to_ms(half) + 2; /* 2: rounding */
}

bool server_clock_fresh(const struct server_clock *c, uint64_t now)
{
    return c->known && now < deadline_after(c->read_at, LASTS);
}

static int64_t clock_margin(const struct server_clock *c, uint64_t now)
{
    return c->margin_ms + to_ms(elapsed(c->read_at, now)) / 100;
}

int64_t server_clock_low(const struct server_clock *c, uint64_t now)
{
    return to_ms(now) + c->offset_ms - clock_margin(c, now);
}

int64_t server_clock_high(const struct server_clock *c, uint64_t now)
{
    return to_ms(now) + c->offset_ms + clock_margin(c, now);
}
