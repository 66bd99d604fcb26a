/* SPDX-License-Identifier: MIT */
/* Text that came from a server, as it may be shown. */
#include "cli/look/foreign.h"

#include <string.h>

#include "api/private.h"

/* A command has one list of servers. All its clients have their passwords. */
static const nxl_client *in_use;

void foreign_use(const nxl_client *client)
{
    in_use = client;
}

const char *foreign_bytes(const char *text, size_t *length)
{
    return in_use ? client_shown(in_use, text, length) : text;
}

const char *foreign(const char *text)
{
    size_t length = strlen(text);

    return foreign_bytes(text, &length);
}
