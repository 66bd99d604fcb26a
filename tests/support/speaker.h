/* SPDX-License-Identifier: MIT */
/* A peer that is no server: a process that listens on 127.0.0.1 and says the
 * same to each that connects. */
#ifndef NXLOCK_TEST_SPEAKER_H
#define NXLOCK_TEST_SPEAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct speech {
    const char *bytes;
    size_t length;
    bool at_once; /* it does not wait for the client's first bytes */
    bool again;   /* over and over */
    bool closes;  /* behind it */
    bool resets;  /* behind it */
};

/* Never fails. Ends with speaker_stop(), or with the test. */
pid_t speaker_start(const struct speech *speech, uint16_t *port);
void speaker_stop(pid_t pid);

#endif
