/* SPDX-License-Identifier: MIT */
/* One verb at all servers, with notes on the results. */
#include "client/operation.h"

#include <stdlib.h>

#include "net/spare.h"

#define NOTE_WORDS 384

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
        op->requests[i].server = &nodes_at(&client->nodes, i)->server;
        op->requests[i].owner = op;
        op->requests[i].index = (uint8_t)i;
        list_init(&op->requests[i].node);
    }
    return true;
}

void operation_free(struct operation *op)
{
    unsigned servers = op->requests ? op->client->server_count : 0;
    for (unsigned i = 0; i < servers; i++) {
        request_free(&op->requests[i]);
        free(op->notes ? op->notes[i].words : NULL);
    }
    free(op->requests);
    free(op->notes);
    free(op->unanswered);
    free(op->errmsg);
    op->requests = NULL;
    op->notes = NULL;
}

static void operation_clear(struct operation *op)
{
    op->errmsg_lost = false;
    if (op->errmsg)
        text_clear(op->errmsg);
}

void operation_begin(struct operation *op, const char *name)
{
    op->name = name;
    op->round = 0;
    if (op->unanswered)
        op->unanswered->now.servers = op->unanswered->last.servers = 0;
    operation_clear(op);
    for (unsigned i = 0; i < op->client->server_count; i++)
        op->notes[i].kind = NOTE_NONE;
}

bool operation_send(
    struct operation *op, unsigned server, enum spare_need need, uint64_t now)
{
    struct request *r = &op->requests[server];
    bool ready = need == SPARE_UNNEEDED || spare_reserve(r, op->verb.key);
    if (!ready && need == SPARE_NEEDED)
        return false;
    op->notes[server].kind = NOTE_ASKED;
    server_submit(r, &op->verb, op->cache, now);
    return true;
}

void operation_note(
    struct operation *op, unsigned server, const struct outcome *outcome)
{
    static const char kinds[] = {
        [OUTCOME_NONE] = NOTE_FAULT,
        [OUTCOME_GRANTED] = NOTE_YES,
        [OUTCOME_BUSY] = NOTE_NO,
        [OUTCOME_MINE] = NOTE_YES,
        [OUTCOME_NOT_MINE] = NOTE_NO,
        [OUTCOME_SEEN] = NOTE_YES,
        [OUTCOME_FREE] = NOTE_NO,
        [OUTCOME_RECORDED] = NOTE_NO,
        [OUTCOME_FAULT] = NOTE_FAULT,
    };
    struct note *n = &op->notes[server];
    n->kind = (__typeof__(n->kind))kinds[outcome->kind];
    n->fault = outcome->fault;
    if (outcome->kind != OUTCOME_FAULT)
        return;
    if (!n->words)
        n->words = malloc(NOTE_WORDS);
    if (n->words) {
        struct text words;
        text_clear(&words);
        text_add_foreign_raw(
            &words, text_without_echo(outcome->text), NOTE_WORDS - 1);
        text_copy(&words, n->words, NOTE_WORDS);
    }
}

const char *note_words(const struct note *note)
{
    return note->words ? note->words : "out of memory: cannot store the error";
}

struct text *operation_errmsg(struct operation *op)
{
    if (!op->errmsg)
        op->errmsg = calloc(1, sizeof(*op->errmsg));
    op->errmsg_lost = !op->errmsg;
    return op->errmsg ? op->errmsg : &op->client->lost_errmsg;
}

void operation_set_errmsg(struct operation *op, const struct text *message)
{
    if (message->len > 0)
        *operation_errmsg(op) = *message;
    else
        operation_clear(op);
}

const char *operation_words(const struct operation *op)
{
    if (op->errmsg_lost)
        return "out of memory: cannot store the message";
    return op->errmsg ? op->errmsg->data : "";
}

bool operation_abandon(
    struct operation *op, unsigned server, bool undo, uint64_t now)
{
    return server_cancel(&op->requests[server], undo, now);
}

unsigned operation_count_notes(const struct operation *op, int kind)
{
    unsigned count = 0;
    for (unsigned i = 0; i < op->client->server_count; i++)
        count += (int)op->notes[i].kind == kind;
    return count;
}
