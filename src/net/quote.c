/* SPDX-License-Identifier: MIT */
/* Quotes a peer in messages, without the client's secrets: see quote.h. */
#include "net/quote.h"

#include "base/redact.h"

/* How many bytes are shown of data that is not a reply. */
#define HEAD_SHOWN 32

static void quote(
    const struct server *s, struct text *t, struct slice bytes, bool cut)
{
    text_clear(t);
    redact_add(t, bytes, cut, FOREIGN_MAX, s->secrets);
    /* The remedy will follow in the same sentence. */
    if (t->len > 1 && t->data[t->len - 1] == '.' && t->data[t->len - 2] != '.')
        t->data[--t->len] = '\0';
}

void quote_reply(struct server *s, struct slice bytes, bool cut)
{
    quote(s, &s->why, bytes, cut);
}

void quote_refusal(struct server *s)
{
    struct slice words = slice_of(s->handshake.why);
    quote(s, &s->why, words, words.len + 1 >= sizeof(s->handshake.why));
}

void quote_garbage(struct server *s)
{
    struct slice head = reader_head(s->conn.reader);
    text_set(&s->why, reader_error(s->conn.reader));
    if (head.len > 0) {
        text_add(&s->why, ", in: ");
        redact_add(&s->why, head, true, HEAD_SHOWN, s->secrets);
    }
}

void quote_outcome(struct server *s, struct outcome *outcome)
{
    if (outcome->kind != OUTCOME_FAULT ||
        outcome->fault == FAULT_NOT_REDIS) /* the words are our own */
        return;
    quote(s, &s->words, outcome->text, outcome->text.len >= EXCHANGE_TEXT);
    outcome->text = (struct slice){s->words.data, s->words.len};
}
