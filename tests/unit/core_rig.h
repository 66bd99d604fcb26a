/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the machines share: asks written as words ("T" token,
 * "S0" send to server 0, "U" undo, "L" leave), so that a test states a whole
 * step in one line, and outcomes by name.
 */
#ifndef NXLOCK_TESTS_CORE_RIG_H
#define NXLOCK_TESTS_CORE_RIG_H

#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "core/machine.h"

#define MS NS_PER_MS
#define T0 (UINT64_C(5000) * MS)
#define WORDS_MAX 256

static inline void add_ask(char *words, const struct effect *effect)
{
    static const char letter[] = {
        [EFFECT_TOKEN] = 'T',
        [EFFECT_SEND] = 'S',
        [EFFECT_UNDO] = 'U',
        [EFFECT_ABANDON] = 'L',
    };
    size_t len = strlen(words);
    const char *gap = len > 0 ? " " : "";
    if (effect->kind == EFFECT_TOKEN)
        snprintf(words + len, WORDS_MAX - len, "%sT", gap);
    else
        snprintf(words + len, WORDS_MAX - len, "%s%c%u", gap,
            letter[effect->kind], effect->server);
}

static inline struct outcome granted(uint64_t sent_at)
{
    return (struct outcome){.kind = OUTCOME_GRANTED, .sent_at = sent_at};
}

static inline struct outcome busy(int64_t left_ms)
{
    return (struct outcome){
        .kind = OUTCOME_BUSY, .left_ms = left_ms, .sent_at = T0};
}

static inline struct outcome mine(uint64_t sent_at, int64_t left_ms)
{
    return (struct outcome){
        .kind = OUTCOME_MINE, .left_ms = left_ms, .sent_at = sent_at};
}

static inline struct outcome plain(enum outcome_kind kind)
{
    return (struct outcome){.kind = kind, .sent_at = T0};
}

/* A fault that proves that nothing was applied. */
static inline struct outcome refused(enum fault fault)
{
    return (struct outcome){.kind = OUTCOME_FAULT, .fault = fault};
}

/* The connection was lost after the verb had left. */
static inline struct outcome cut(uint64_t sent_at)
{
    return (struct outcome){.kind = OUTCOME_FAULT,
        .fault = FAULT_UNREACHABLE,
        .unsure = true,
        .sent_at = sent_at};
}

#endif
