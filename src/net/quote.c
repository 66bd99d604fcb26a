/* SPDX-License-Identifier: MIT */
/* Quotes a peer in messages, without the client's secrets: see quote.h. */
#include "net/quote.h"

#include "base/redact.h"
#include "wire/classify.h"

/* How many bytes are shown of data that is not a reply. */
#define HEAD_SHOWN 32

static void quote(const struct server *s, struct text *t, struct slice bytes)
{
    struct slice known = {bytes.data, classify_known(bytes)};

    /* Our own table has these words too, so they are no reason to omit the
     * rest, and stay if that is omitted. */
    text_add_foreign_raw(t, known, FOREIGN_MAX);
    bytes.data += known.len;
    bytes.len -= known.len;
    if (known.len > 0 && bytes.len > 0 && bytes.data[0] == ' ') {
        text_add(t, " ");
        bytes.data++;
        bytes.len--;
    }
    redact_add(t, bytes, FOREIGN_MAX - known.len, s->secrets);
    /* The remedy will follow in the same sentence. */
    if (t->len > 1 && t->data[t->len - 1] == '.' && t->data[t->len - 2] != '.')
        t->data[--t->len] = '\0';
}

void quote_reply(struct server *s, struct slice bytes)
{
    text_clear(&s->why);
    quote_add(s, bytes);
}

void quote_add(struct server *s, struct slice bytes)
{
    quote(s, &s->why, bytes);
}

void quote_refusal(struct server *s)
{
    quote_reply(s, slice_of(s->handshake.why));
}

void quote_garbage(struct server *s)
{
    struct slice head = reader_head(s->conn.reader);
    text_set(&s->why, reader_error(s->conn.reader));
    if (head.len > 0) {
        text_add(&s->why, ", in: ");
        redact_add(&s->why, head, HEAD_SHOWN, s->secrets);
    }
}

void quote_outcome(struct server *s, struct outcome *outcome)
{
    if (outcome->kind != OUTCOME_FAULT ||
        outcome->fault == FAULT_NOT_REDIS) /* the words are our own */
        return;
    text_clear(&s->words);
    quote(s, &s->words, outcome->text);
    outcome->text = (struct slice){s->words.data, s->words.len};
}
