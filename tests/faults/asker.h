/* SPDX-License-Identifier: MIT */
/*
 * Two threads that share the contender's client, and so its connections: one
 * keeps a name of its own and asks who holds it, the other asks who holds the
 * common one. Labels tell the answers apart, so a reply that is given to the
 * wrong question is seen, whatever happens to the connection.
 */
#ifndef NXLOCK_TESTS_FAULTS_ASKER_H
#define NXLOCK_TESTS_FAULTS_ASKER_H

#include <nxlock.h>

#define COMMON_NAME "k"

/* Each asks pause_ms after it was answered. mixed_up is told by any of the
 * threads. */
void askers_start(
    nxl_client *client, int ttl_ms, int pause_ms, void (*mixed_up)(void));
/* Returns when both have ended; before the client is freed. */
void askers_stop(void);

#endif
