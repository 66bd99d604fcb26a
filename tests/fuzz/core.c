/* SPDX-License-Identifier: MIT */
/*
 * The machines of src/core, driven by the input: the first byte says which.
 * What must hold of each is in core_acquire.c, core_line.c and core_round.c.
 */
#include "fuzz/fuzz.h"
#include "fuzz/steps.h"

uint8_t step_byte(struct steps *s)
{
    if (s->left == 0)
        return 0;
    s->left--;
    return *s->at++;
}

uint64_t step_span(struct steps *s)
{
    unsigned byte = step_byte(s);
    return (uint64_t)(byte & 15) << (byte >> 4) * 3;
}

void step_pass(struct steps *s, uint64_t span)
{
    s->now = earlier(deadline_after(s->now, span), NEVER - 1);
}

uint64_t step_time(struct steps *s)
{
    unsigned byte = step_byte(s);
    if (byte == 255)
        return NEVER;
    if (byte == 254)
        return 0;
    uint64_t span = step_span(s);
    return byte < 64 ? deadline_left(s->now, span)
                     : deadline_after(s->now, span);
}

uint32_t step_ttl_ms(struct steps *s)
{
    uint64_t ttl = 20 + step_span(s) % UINT64_C(0x7fffffec);
    return (uint32_t)ttl;
}

unsigned step_servers(struct steps *s)
{
    unsigned byte = step_byte(s);
    return 1 + (byte < 192 ? byte % 5 : byte % MAX_SERVERS);
}

struct outcome step_outcome(struct steps *s, unsigned *server)
{
    struct outcome outcome = {.left_ms = LEFT_UNKNOWN};
    unsigned byte = step_byte(s);
    *server = step_byte(s) % (MAX_SERVERS + 1);
    outcome.kind = (enum outcome_kind)(byte % (OUTCOME_FAULT + 1));
    outcome.unsure = byte & 0x80;
    if (outcome.kind == OUTCOME_FAULT)
        outcome.fault = (enum fault)(1 + step_byte(s) % (FAULT_CLASSES - 1));
    else if (byte & 0x40)
        outcome.left_ms = (int64_t)step_span(s) + LEFT_UNKNOWN;
    outcome.sent_at = byte & 0x20 ? step_time(s) : s->now;
    if (outcome.sent_at == NEVER) /* no clock says that */
        outcome.sent_at = 0;
    return outcome;
}

uint64_t latest_deadline(uint64_t sent_at, uint64_t ttl_ms, uint32_t drift_ppm)
{
    ttl_ms = earlier(ttl_ms, INT32_MAX);
    /* A millionth of a millisecond is a nanosecond; 2 ms for the rounding. */
    uint64_t drift = ttl_ms * drift_ppm + 2 * NS_PER_MS;
    uint64_t ttl = ttl_ms * NS_PER_MS;
    if (drift >= ttl)
        return 0;
    return ttl - drift > NEVER - sent_at ? NEVER : sent_at + (ttl - drift);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool (*const plays[])(struct steps *) = {
        play_acquire, play_round, play_fence, play_line};
    struct steps s = {data, size, NS_PER_S};
    size_t which = step_byte(&s) % (sizeof(plays) / sizeof(plays[0]));

    if (step_byte(&s) & 1)
        s.now = NEVER - 1 - step_span(&s); /* where sums run over */
    fuzz_count(plays[which](&s));
    return 0;
}
