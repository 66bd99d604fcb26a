/* SPDX-License-Identifier: MIT */
/*
 * Keeps: whoever reads what is printed here cannot release the lock with it.
 */
#include "cli/holder.h"

#include <stdio.h>
#include <string.h>

#include "cli/report.h"
#include "cli/secret.h"

#define MS_PER_S 1000

int holder_ask(struct session *session, nxl_holder *holder)
{
    int rc = session_finish(session, nxl_lock_inspect_start(session->lock));

    memset(holder, 0, sizeof(*holder));
    holder->size = sizeof(*holder);
    return rc == NXL_OK ? nxl_lock_holder(session->lock, holder) : rc;
}

bool holder_has_token(const nxl_holder *holder)
{
    return strlen(holder->value) == holder->value_length &&
           is_token(holder->value);
}

const char *holder_words(char *out, const nxl_holder *holder)
{
    char who[160];
    char left[48] = "without an end";

    if (holder->label != NULL)
        printable(who, sizeof(who), holder->label, strlen(holder->label));
    else if (holder_has_token(holder))
        snprintf(who, sizeof(who), "%.*s... (no label)", TOKEN_SHOWN,
            holder->value);
    else
        printable(who, sizeof(who), holder->value, holder->value_length);
    if (holder->left_ms >= 0)
        snprintf(left, sizeof(left), "%lld s left",
            (long long)((holder->left_ms + MS_PER_S - 1) / MS_PER_S));
    snprintf(out, HOLDER_WORDS, "held by %s, %s", who, left);
    return out;
}
