/* SPDX-License-Identifier: MIT */
/*
 * A command that the age does not have, or has in another form, is refused here
 * by the age's own words and does not reach the server. A reply is said in the
 * words of the age; what no rule is for is passed on byte for byte.
 */
#include "support/aged_inner.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NO_SUCH_CLIENT "-ERR Syntax error, try CLIENT (LIST | KILL ip:port)\r\n"

void aged_order_free(struct aged_order *o)
{
    if (!o)
        return;
    bytes_free(&o->raw);
    bytes_free(&o->text);
    bytes_free(&o->out);
    free(o);
}

/* words: names in any case, divided by blanks. */
static bool listed(const char *words, const char *word, size_t len)
{
    while (words && *words != '\0') {
        size_t size = strcspn(words, " ");
        if (size == len && strncasecmp(words, word, len) == 0)
            return true;
        words += size + (words[size] == ' ');
    }
    return false;
}

/* ----------------------------------------------------------------- commands */

/* The answer with the command's name in it. */
static void refuse(struct aged_order *o, const char *answer)
{
    const struct resp_arg *name = &o->command.arg[0];
    bytes_addf(&o->text, answer, (int)name->len, name->data);
}

static bool fits(const struct aged_order *o, int words)
{
    int count = (int)o->command.count;
    return words < 0 ? count >= -words : count == words;
}

/* The age has no such command, or not with so many arguments, or not such a
 * subcommand of CLIENT. */
static bool lacking(struct aged_order *o)
{
    const struct resp_arg *arg = o->command.arg;
    const struct aged_command *c = aged_commands;

    while (c->name && !resp_is(&o->command, 0, c->name))
        c++;
    if (!c->name || c->words[o->age->column] == 0)
        refuse(o, AGED_UNKNOWN);
    else if (!fits(o, c->words[o->age->column]))
        refuse(o, "-ERR wrong number of arguments for '%.*s' command\r\n");
    else if (resp_is(&o->command, 0, "CLIENT") &&
             !listed(o->age->client, arg[1].data, arg[1].len))
        bytes_add(&o->text, NO_SUCH_CLIENT, strlen(NO_SUCH_CLIENT));
    return o->text.len > 0;
}

void aged_understand(struct aged_book *book, struct aged_order *o)
{
    const struct resp_arg *name = &o->command.arg[0];

    o->age = book->age;
    if (listed(book->refused, name->data, name->len))
        refuse(o, book->refusal);
    else if (!o->age->version)
        bytes_add(&o->out, o->raw.data, o->raw.len);
    else if (!lacking(o))
        aged_script_order(book, o);
}

/* ------------------------------------------------------------------ replies */

/* 7.0 says behind an error where in a script; 2.6 wraps what was said to the
 * script with no place, and the line's end becomes a blank. */
static void say_error(
    struct bytes *out, const struct aged_order *o, const char *line, size_t len)
{
    static const char typed[] = "-WRONGTYPE ", place[] = " script: ";
    const char *in_script = memmem(line, len, place, strlen(place));

    bytes_addf(out, "-");
    if (in_script)
        bytes_addf(out, "ERR Error running script (call to f_%s): ", o->sha);
    if (len > strlen(typed) && memcmp(line, typed, strlen(typed)) == 0) {
        bytes_addf(out, "ERR ");
        line += strlen(typed);
        len -= strlen(typed);
    } else {
        line++;
        len--;
    }
    if (in_script)
        bytes_addf(out, "%.*s \r\n", (int)(in_script - line), line);
    else
        bytes_add(out, line, len);
}

/* A bulk string, of which the age has only some lines. */
static void say_info(struct bytes *out, const struct aged_order *o,
    const char *reply, size_t len)
{
    struct bytes text = {NULL, 0, 0};
    const char *line = memchr(reply, '\n', len), *end = reply + len - 2;

    for (line++; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((next ? next + 1 : end) - line);
        size_t name = strcspn(line, ":\r");
        if (listed("redis_version", line, name))
            bytes_addf(&text, "redis_version:%s\r\n", o->age->version);
        else if (listed(o->age->info, line, name))
            bytes_add(&text, line, size);
        line += size;
    }
    resp_bulk(out, text.data, text.len);
    bytes_free(&text);
}

void aged_say(struct bytes *out, const struct aged_order *o, const char *reply,
    size_t len)
{
    const struct resp_command *c = &o->command;
    bool ttl = resp_is(c, 0, "TTL") || resp_is(c, 0, "PTTL");

    if (!o->age->version)
        bytes_add(out, reply, len);
    else if (reply[0] == '-')
        say_error(out, o, reply, len);
    else if (ttl && memcmp(reply, ":-2", 3) == 0)
        bytes_add(out, ":-1\r\n", 5);
    else if (resp_is(c, 0, "INFO") && reply[0] == '$')
        say_info(out, o, reply, len);
    else if (resp_is(c, 1, "LOAD") && reply[0] == '$')
        resp_bulk(out, o->sha, 40);
    else
        bytes_add(out, reply, len);
}
