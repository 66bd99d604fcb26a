/* SPDX-License-Identifier: MIT */
/*
 * The input of the target "core", read as steps: a machine's terms, then what
 * its driver does and is told, in any order and at any time. Keeps: an input
 * that is over reads as zeros, so every input means something.
 */
#ifndef NXLOCK_TESTS_FUZZ_STEPS_H
#define NXLOCK_TESTS_FUZZ_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/deadline.h"
#include "model/verb.h"
#include "core/machine.h"

struct steps {
    const uint8_t *at;
    size_t left;
    uint64_t now;
};

uint8_t step_byte(struct steps *s);
/* 0 ... 15 << 45: one byte is enough for a nanosecond and for days. */
uint64_t step_span(struct steps *s);
/* That much time passes; NEVER is not reached. */
void step_pass(struct steps *s, uint64_t span);
/* About now, mostly; before it, long after it, NEVER. */
uint64_t step_time(struct steps *s);
uint32_t step_ttl_ms(struct steps *s); /* 20 ms ... the longest */
/* 1 ... MAX_SERVERS, few mostly. */
unsigned step_servers(struct steps *s);
/* Whatever a server may say, of any verb; its server, which may be none. */
struct outcome step_outcome(struct steps *s, unsigned *server);

/* sent_at + ttl - drift by the letter of the contract. */
uint64_t latest_deadline(uint64_t sent_at, uint64_t ttl_ms, uint32_t drift_ppm);

/* The machines. True: a verdict YES was seen. */
bool play_acquire(struct steps *s);
bool play_round(struct steps *s);
bool play_fence(struct steps *s);
bool play_line(struct steps *s);

#endif
