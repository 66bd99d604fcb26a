/* SPDX-License-Identifier: MIT */
/* Messages that a lock was handed over, and the state of the subscription that
 * they come by: passes both on to the locks that wait in line. */
#ifndef NXLOCK_LOCK_LINE_MESSAGES_H
#define NXLOCK_LOCK_LINE_MESSAGES_H

#include "client/client.h"

/* Makes the client's subscription report to its locks. */
void line_messages_init(struct nxl_client *client);

#endif
