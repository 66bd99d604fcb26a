/* SPDX-License-Identifier: MIT */
/*
 * A command that the age does not have, or has in another form, is refused
 * here by the age's own words and does not reach the server as it is. Where
 * the server must know of the refusal (an error while queueing), or may have
 * the first word (before AUTH), it is asked something harmless instead.
 */
#include "support/aged_inner.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NO_COMMAND "NXLOCK-NO-COMMAND" /* unknown to any server */
#define NO_SUCH_CLIENT "-ERR Syntax error, try CLIENT (LIST | KILL ip:port)"

void aged_put(struct bytes *out, size_t count, ...)
{
    va_list words;

    bytes_addf(out, "*%zu\r\n", count);
    va_start(words, count);
    for (size_t i = 0; i < count; i++) {
        const char *word = va_arg(words, const char *);
        resp_bulk(out, word, strlen(word));
    }
    va_end(words);
}

void aged_order_free(struct aged_order *o)
{
    if (!o)
        return;
    bytes_free(&o->raw);
    bytes_free(&o->text);
    bytes_free(&o->out);
    free(o);
}

/* words: names in any case, divided by blanks. "SCRIPT|LOAD" is one. */
bool aged_listed(const char *words, const char *word, size_t len)
{
    while (words && *words != '\0') {
        size_t size = strcspn(words, " ");
        if (size == len && strncasecmp(words, word, len) == 0)
            return true;
        words += size + (words[size] == ' ');
    }
    return false;
}

const struct aged_command *aged_find(
    const struct age *age, const char *name, size_t len)
{
    for (const struct aged_command *c = aged_commands; c->name; c++)
        if (strlen(c->name) == len && strncasecmp(c->name, name, len) == 0)
            return c->words[age->column] != 0 ? c : NULL;
    return NULL;
}

static bool is(const struct aged_order *o, const char *name)
{
    return resp_is(&o->command, 0, name);
}

static void say(struct aged_order *o, const char *text)
{
    o->text.len = 0;
    bytes_add(&o->text, text, strlen(text));
    bytes_add(&o->text, "\r\n", 2);
}

/* o->text is the answer. */
static void answer(struct aged_order *o, bool in_transaction, bool auth_first)
{
    bool unknown = strncmp(o->text.data, "-ERR unknown", 12) == 0;

    o->change = AGED_TEXT;
    if (in_transaction && is(o, "EXEC") && !unknown) {
        o->effect = AGED_ENDS; /* who may not run it has lost it */
        aged_put(&o->out, 1, "DISCARD");
    } else if (in_transaction && !o->age->queue_runs_on &&
               o->text.data[0] == '-') {
        aged_put(&o->out, 1, NO_COMMAND);
    } else if (!in_transaction && auth_first) {
        aged_put(&o->out, 1, "PING");
    }
}

/* "script|load" for a command that has subcommands, else "eval". */
static void full_name(struct bytes *out, const struct aged_order *o)
{
    static const char divided[] = "ACL CLIENT CLUSTER CONFIG PUBSUB SCRIPT";
    const struct resp_arg *arg = o->command.arg;

    bytes_add(out, arg[0].data, arg[0].len);
    if (o->command.count > 1 && aged_listed(divided, arg[0].data, arg[0].len)) {
        bytes_add(out, "|", 1);
        bytes_add(out, arg[1].data, arg[1].len);
    }
    for (size_t i = 0; i < out->len; i++)
        out->data[i] = (char)tolower((unsigned char)out->data[i]);
}

static void deny(struct aged_order *o, const char *name)
{
    const char *form = o->age->denied;
    size_t before = strcspn(form, "*");

    bytes_add(&o->text, form, before);
    bytes_add(&o->text, name, strlen(name));
    bytes_add(&o->text, form + before + 1, strlen(form + before + 1));
    bytes_add(&o->text, "\r\n", 2);
}

static bool refused(const struct aged_book *book, struct aged_order *o)
{
    struct bytes name = {NULL, 0, 0};
    const struct aged_refusal *r = book->refusals;

    full_name(&name, o);
    while (r &&
           !aged_listed(
               r->commands, o->command.arg[0].data, o->command.arg[0].len) &&
           !aged_listed(r->commands, name.data, name.len))
        r = r->next;
    if (r && strcmp(r->reply, AGED_UNKNOWN) == 0)
        aged_unknown(&o->text, o);
    else if (r && strcmp(r->reply, AGED_NOPERM) == 0)
        deny(o, name.data);
    else if (r)
        say(o, r->reply);
    bytes_free(&name);
    return r != NULL;
}

static bool fits(const struct aged_order *o, int words)
{
    int count = (int)o->command.count;
    return words < 0 ? count >= -words : count == words;
}

static bool wrong_count(struct aged_order *o, const char *name)
{
    bytes_addf(
        &o->text, "-ERR wrong number of arguments for '%s' command\r\n", name);
    return true;
}

/* The age has no such command, or not with so many arguments. */
static bool lacking(struct aged_order *o)
{
    const struct resp_arg *name = &o->command.arg[0];

    if (o->age->column < 0)
        return false;
    const struct aged_command *c = aged_find(o->age, name->data, name->len);
    if (c && fits(o, c->words[o->age->column]))
        return false;
    if (c)
        return wrong_count(o, c->name);
    aged_unknown(&o->text, o);
    return true;
}

/* A subcommand of CLIENT that came later. */
static bool client_lacking(struct aged_order *o)
{
    const struct resp_arg *sub = &o->command.arg[1];

    if (!o->age->client || !is(o, "CLIENT") || o->command.count < 2 ||
        aged_listed(o->age->client, sub->data, sub->len))
        return false;
    say(o, NO_SUCH_CLIENT);
    return true;
}

static void note_change(struct aged_order *o)
{
    if (o->age->missing_is_none && (is(o, "TTL") || is(o, "PTTL")))
        o->change = AGED_TTL;
    else if (is(o, "INFO"))
        o->change = AGED_INFO;
    else if (is(o, "EXEC"))
        o->change = AGED_EXEC;
    if (is(o, "MULTI"))
        o->effect = AGED_BEGINS;
    else if (is(o, "EXEC"))
        o->effect = AGED_RUNS;
    else if (is(o, "DISCARD") || is(o, "RESET"))
        o->effect = AGED_ENDS;
}

void aged_understand(
    struct aged_book *book, struct aged_order *o, bool in_transaction)
{
    o->age = book->age;
    if (refused(book, o)) {
        bool unknown = strncmp(o->text.data, "-ERR unknown", 12) == 0;
        answer(o, in_transaction, !unknown);
        return;
    }
    if ((o->age->bit != 0 && lacking(o)) || client_lacking(o)) {
        answer(o, in_transaction, false);
        return;
    }
    if (o->age->bit != 0) {
        note_change(o);
        if (aged_script_order(book, o))
            return;
    } else if (is(o, "MULTI") || is(o, "EXEC") || is(o, "DISCARD") ||
               is(o, "RESET")) {
        note_change(o);
    }
    bytes_add(&o->out, o->raw.data, o->raw.len);
}
