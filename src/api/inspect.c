/* SPDX-License-Identifier: MIT */
/*
 * What an inspection found, handed out as a copy that stands by itself.
 * Keeps: left_ms is no longer than a majority keeps the value; where no value
 * has a majority, the one that most servers have is shown.
 */
#include "api/inspect.h"

#include "api/message.h"
#include "wire/timestamp.h"

void inspect_note(
    struct nxl_lock *lock, unsigned server, const struct outcome *outcome)
{
    nxl_holder *seen = lock->notes ? &lock->notes[server].seen : &lock->seen;
    size_t len = outcome->value.len;
    *seen = (struct nxl_holder){.size = sizeof *seen};
    seen->truncated = len >= sizeof seen->value;
    if (seen->truncated)
        len = sizeof seen->value - 1;
    memcpy(seen->value, outcome->value.data, len);
    seen->value_length = len;
    seen->left_ms = outcome->left_ms;
    if (stamp_parse(outcome->value, &seen->value_ends_s) == STAMP_NONE)
        seen->value_ends_s = 0;
    seen->ours =
        lock->holding && value_is_of(outcome->value,
                             (struct slice){lock->token, lock->token_len});
}

static bool same_value(const nxl_holder *a, const nxl_holder *b)
{
    return slice_equal((struct slice){a->value, a->value_length},
        (struct slice){b->value, b->value_length});
}

static bool outlasts(int64_t a, int64_t b)
{
    return b != LEFT_FOREVER && (a == LEFT_FOREVER || a > b);
}

/* Of the servers with that value: how many, and how long the quorum-th of
 * them keeps it (the last one where they are fewer). */
static unsigned keepers(
    const struct nxl_lock *lock, const nxl_holder *of, int64_t *left_ms)
{
    int64_t left[MAX_SERVERS];
    unsigned count = 0, servers = lock->client->server_count;
    for (unsigned i = 0; i < servers; i++) {
        const struct note *n = &lock->notes[i];
        if (n->kind != NOTE_YES || !same_value(&n->seen, of))
            continue;
        unsigned at = count++;
        for (; at > 0 && outlasts(n->seen.left_ms, left[at - 1]); at--)
            left[at] = left[at - 1];
        left[at] = n->seen.left_ms;
    }
    unsigned quorum = quorum_of(servers);
    *left_ms = left[(count < quorum ? count : quorum) - 1];
    return count;
}

void inspect_choose(struct nxl_lock *lock)
{
    unsigned most = 0;
    for (unsigned i = 0; lock->notes && i < lock->client->server_count; i++) {
        const struct note *n = &lock->notes[i];
        int64_t left_ms;
        if (n->kind != NOTE_YES)
            continue;
        unsigned count = keepers(lock, &n->seen, &left_ms);
        if (count <= most)
            continue;
        most = count;
        lock->seen = n->seen;
        lock->seen.left_ms = left_ms;
    }
}

static void copy_out(nxl_holder *to, const nxl_holder *from)
{
    *to = *from;
    to->label = token_label((struct slice){to->value, to->value_length});
}

int nxl_lock_holder(const nxl_lock *lock, nxl_holder *holder)
{
    if (!lock || !holder)
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    if (lock->operation.kind == NXL_OP_INSPECT && !lock->operation.running &&
        lock->operation.result == NXL_FREE)
        return NXL_FREE;
    if (!lock->seen.size)
        return NXL_E_INVALID;
    copy_out(holder, &lock->seen);
    return NXL_OK;
}

int nxl_lock_holder_at(
    const nxl_lock *lock, size_t server, nxl_holder *holder)
{
    if (!lock || !holder)
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    const struct operation *op = &lock->operation;
    if (op->kind != NXL_OP_INSPECT || op->running ||
        server >= lock->client->server_count)
        return NXL_E_INVALID;
    if (!lock->notes)
        return op->result == NXL_OK ? nxl_lock_holder(lock, holder)
                                    : op->result;
    const struct note *n = &lock->notes[server];
    switch (n->kind) {
    case NOTE_YES:
        copy_out(holder, &n->seen);
        return NXL_OK;
    case NOTE_NO:
        return NXL_FREE;
    case NOTE_FAULT:
        return (int)result_of_fault(n->fault);
    case NOTE_NONE:
    case NOTE_ASKED:
        break;
    }
    return NXL_E_UNREACHABLE;
}

bool nxl_holder_is(const nxl_holder *holder, const char *token)
{
    return holder && token &&
           value_is_of((struct slice){holder->value, holder->value_length},
               slice_of(token));
}
