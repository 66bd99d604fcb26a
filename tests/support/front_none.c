/* SPDX-License-Identifier: MIT */
/* In place of front.c where there is no OpenSSL: scenes with certificates are
 * skipped before they use it. */
#include "support/front.h"

struct front *front;

void front_start(
    const char *dir, const char *redis, unsigned record_most, uint16_t *port)
{
    (void)dir, (void)redis, (void)record_most, (void)port;
}

void front_stop(void)
{
}

bool front_told(const char *words)
{
    return !words;
}
