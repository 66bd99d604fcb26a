/* SPDX-License-Identifier: MIT */
/* One verb at all servers, with notes on the results. */
#include "client/operation.h"

#include <stdlib.h>

bool operation_init(struct operation *op, const struct operation_type *type,
    struct nxl_client *client, struct slice key)
{
    unsigned servers = client->server_count;
    op->type = type;
    op->client = client;
    op->verb.key = key;
    op->notes = calloc(servers, sizeof(*op->notes));
    op->requests = calloc(servers, sizeof(*op->requests));
    if (!op->notes || !op->requests)
        return false;
    for (unsigned i = 0; i < servers; i++) {
        op->requests[i].owner = op;
        op->requests[i].index = i;
        list_init(&op->requests[i].node);
    }
    return true;
}

void operation_free(struct operation *op)
{
    unsigned servers = op->requests ? op->client->server_count : 0;
    for (unsigned i = 0; i < servers; i++)
        request_free(&op->requests[i]);
    free(op->requests);
    free(op->notes);
    op->requests = NULL;
    op->notes = NULL;
}

void operation_begin(struct operation *op, const char *name)
{
    op->name = name;
    op->round = 0;
    op->unanswered.servers = op->unanswered_now.servers = 0;
    text_clear(&op->message);
    for (unsigned i = 0; i < op->client->server_count; i++)
        op->notes[i].kind = NOTE_NONE;
}

void operation_send(struct operation *op, unsigned server, uint64_t now)
{
    op->notes[server].kind = NOTE_ASKED;
    server_submit(&op->client->servers[server], &op->requests[server],
        &op->verb, op->kept, now);
}

void operation_note(
    struct operation *op, unsigned server, const struct outcome *outcome)
{
    static const char kinds[] = {
        [OUTCOME_GRANTED] = NOTE_YES,
        [OUTCOME_BUSY] = NOTE_NO,
        [OUTCOME_MINE] = NOTE_YES,
        [OUTCOME_NOT_MINE] = NOTE_NO,
        [OUTCOME_SEEN] = NOTE_YES,
        [OUTCOME_FREE] = NOTE_NO,
        [OUTCOME_FAULT] = NOTE_FAULT,
    };
    struct note *n = &op->notes[server];
    n->kind = (__typeof__(n->kind))kinds[outcome->kind];
    n->fault = outcome->fault;
    if (outcome->kind == OUTCOME_FAULT) {
        struct text words;
        text_clear(&words);
        text_add_foreign(&words, outcome->text);
        text_copy(&words, n->words, sizeof(n->words));
    }
}

bool operation_abandon(
    struct operation *op, unsigned server, bool undo, uint64_t now)
{
    return server_abandon(
        &op->client->servers[server], &op->requests[server], undo, now);
}

unsigned operation_notes(const struct operation *op, int kind)
{
    unsigned count = 0;
    for (unsigned i = 0; i < op->client->server_count; i++)
        count += (int)op->notes[i].kind == kind;
    return count;
}
