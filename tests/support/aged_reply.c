/* SPDX-License-Identifier: MIT */
/*
 * Replies of any type, nested to any depth, are found whole before they are
 * said in other words. What no rule is for is passed on byte for byte.
 */
#include "support/aged_inner.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEPTH_MAX = 32, STARS_MAX = 9, SHOWN_MAX = 128 };

/* ------------------------------------------------------- finding replies */

/* Bytes of the line with its end; 0: it is not all there. */
static long line_length(const char *data, size_t len)
{
    const char *end = len > 1 ? memchr(data, '\n', len) : NULL;
    return !end ? 0 : end - data + 1;
}

static long length_within(const char *data, size_t len, int depth)
{
    static const char lines[] = "+-:_#,(", strings[] = "$!=";
    long line = line_length(data, len), used = line;

    if (len == 0 || line == 0)
        return 0;
    if (depth == DEPTH_MAX)
        return -1;
    if (strchr(lines, data[0]))
        return line;
    long count = strtol(data + 1, NULL, 10);
    if (strchr(strings, data[0])) {
        if (count < 0)
            return line;
        return len - (size_t)line < (size_t)count + 2 ? 0 : line + count + 2;
    }
    if (data[0] == '%' || data[0] == '|')
        count *= 2;
    else if (!strchr("*~>", data[0]))
        return -1;
    if (data[0] == '|') /* an attribute goes with what follows it */
        count++;
    for (long i = 0; i < count; i++) {
        long next = length_within(data + used, len - (size_t)used, depth + 1);
        if (next <= 0)
            return next;
        used += next;
    }
    return used;
}

long aged_reply_length(const char *data, size_t len)
{
    return length_within(data, len, 0);
}

/* ---------------------------------------------------------------- errors */

struct taken {
    size_t count;
    struct resp_arg part[STARS_MAX];
};

/* The shortest of every star, so that the text fits as a whole. */
static bool fits(
    const char *form, const char *text, size_t len, struct taken *taken)
{
    for (; *form != '*'; form++, text++, len--) {
        if (*form == '\0' || len == 0)
            return *form == '\0' && len == 0;
        if (*form != *text)
            return false;
    }
    size_t mine = taken->count++;
    if (mine == STARS_MAX)
        abort();
    for (size_t n = 0; n <= len; n++) {
        taken->part[mine] = (struct resp_arg){text, n};
        taken->count = mine + 1;
        if (fits(form + 1, text + n, len - n, taken))
            return true;
    }
    return false;
}

static void fill(struct bytes *out, const char *to, const struct taken *taken,
    const char *sha)
{
    for (; *to != '\0'; to++) {
        if (to[0] == '$' && to[1] == 's') {
            bytes_add(out, sha, strlen(sha));
            to++;
        } else if (to[0] == '$' && to[1] >= '1' && to[1] <= '9') {
            const struct resp_arg *part = &taken->part[*++to - '1'];
            bytes_add(out, part->data, part->len);
        } else {
            bytes_add(out, to, 1);
        }
    }
}

/* As the server would print it: to its first zero byte, on one line. */
static void put_shown(struct bytes *out, const char *form,
    const struct resp_arg *arg, size_t limit)
{
    size_t star = strcspn(form, "*");
    size_t len = strnlen(arg->data, arg->len < limit ? arg->len : limit);

    bytes_add(out, form, star);
    for (size_t i = 0; i < len; i++) {
        char c = arg->data[i];
        bytes_add(out, c == '\r' || c == '\n' ? " " : &c, 1);
    }
    bytes_add(out, form + star + 1, strlen(form + star + 1));
}

void aged_unknown(struct bytes *out, const struct aged_order *o)
{
    const char *form = o->age->argument;

    put_shown(out, o->age->unknown, &o->command.arg[0], SHOWN_MAX);
    size_t begin = out->len;
    for (size_t i = 1; form && i < o->command.count; i++) {
        size_t used = out->len - begin;
        if (used >= SHOWN_MAX)
            break;
        put_shown(out, form, &o->command.arg[i], SHOWN_MAX - used);
    }
    bytes_add(out, "\r\n", 2);
}

static void say_error(
    struct bytes *out, const struct aged_order *o, const char *line, size_t len)
{
    static const char unknown[] = "-ERR unknown command '";
    const struct aged_words *w = aged_words;
    struct taken taken = {0, {{NULL, 0}}};

    if (len > sizeof(unknown) &&
        memcmp(line, unknown, sizeof(unknown) - 1) == 0) {
        aged_unknown(out, o);
        return;
    }
    for (; w->from; w++) {
        taken.count = 0;
        if ((w->ages & o->age->bit) && fits(w->from, line, len - 2, &taken))
            break;
    }
    if (!w->from) {
        bytes_add(out, line, len);
        return;
    }
    fill(out, w->to, &taken, o->sha);
    bytes_add(out, "\r\n", 2);
}

/* ------------------------------------------------------------------ INFO */

static bool in_field(const char *field, const char *name, size_t len)
{
    size_t size = strlen(field);

    if (size > 0 && field[size - 1] == '*')
        return len >= size - 1 && memcmp(field, name, size - 1) == 0;
    return len == size && memcmp(field, name, len) == 0;
}

static bool among(const char *fields, const char *name, size_t len)
{
    char field[64];

    while (*fields != '\0') {
        size_t size = strcspn(fields, " ");
        memcpy(field, fields, size);
        field[size] = '\0';
        if (in_field(field, name, len))
            return true;
        fields += size + (fields[size] == ' ');
    }
    return false;
}

/* One line without its end. */
static void say_field(
    struct bytes *out, const struct aged_order *o, const char *line, size_t len)
{
    const char *only = aged_info_fields(o->age);
    const char *colon = memchr(line, ':', len);
    size_t name = colon ? (size_t)(colon - line) : len;
    const struct aged_field *f = aged_fields;

    if (only && (!colon || !among(only, line, name)))
        return;
    while (f->field && !(colon && (f->ages & o->age->bit) &&
                           in_field(f->field, line, name)))
        f++;
    if (!f->field && name == 13 && memcmp(line, "redis_version", 13) == 0) {
        bytes_addf(out, "redis_version:%s\r\n", o->age->version);
    } else if (!f->field) {
        bytes_add(out, line, len);
        bytes_add(out, "\r\n", 2);
    } else if (f->to) {
        size_t dollar = strcspn(f->to, "$");
        bytes_add(out, f->to, dollar);
        if (f->to[dollar] == '$')
            bytes_add(out, colon + 1, len - name - 1);
        bytes_add(out, "\r\n", 2);
    }
}

/* A bulk string, or one of RESP3 whose text begins with "txt:". */
static void say_info(struct bytes *out, const struct aged_order *o,
    const char *reply, size_t len)
{
    struct bytes text = {NULL, 0, 0};
    size_t at = (size_t)line_length(reply, len);

    if (reply[0] == '=') {
        bytes_add(&text, reply + at, 4);
        at += 4;
    }
    while (at + 2 < len) {
        size_t line = (size_t)line_length(reply + at, len - at);
        say_field(&text, o, reply + at, line - 2);
        at += line;
    }
    bytes_addf(out, "%c%zu\r\n", reply[0], text.len);
    bytes_add(out, text.data, text.len);
    bytes_add(out, "\r\n", 2);
    bytes_free(&text);
}

/* ---------------------------------------------------------- other replies */

static void say_transaction(struct bytes *out, const struct aged_order *o,
    const struct aged_order *queue, const char *reply, size_t len)
{
    size_t at = (size_t)line_length(reply, len);

    bytes_add(out, reply, at);
    while (at < len) {
        size_t size = (size_t)aged_reply_length(reply + at, len - at);
        aged_say(out, queue ? queue : o, NULL, reply + at, size);
        queue = queue ? queue->next : NULL;
        at += size;
    }
}

void aged_say(struct bytes *out, const struct aged_order *o,
    const struct aged_order *queue, const char *reply, size_t len)
{
    bool array = reply[0] == '*' || reply[0] == '%';
    bool text = reply[0] == '$' || reply[0] == '=';

    if (o->change == AGED_TEXT && strncmp(reply, "-NOAUTH", 7) != 0)
        bytes_add(out, o->text.data, o->text.len);
    else if (reply[0] == '-' && o->age->bit != 0)
        say_error(out, o, reply, len);
    else if (o->change == AGED_SHA && reply[0] == '$')
        resp_bulk(out, o->sha, 40);
    else if (o->change == AGED_TTL && len == 5 && memcmp(reply, ":-2", 3) == 0)
        bytes_add(out, ":-1\r\n", 5);
    else if (o->change == AGED_INFO && text && reply[1] != '-')
        say_info(out, o, reply, len);
    else if (o->change == AGED_EXEC && array)
        say_transaction(out, o, queue, reply, len);
    else
        bytes_add(out, reply, len);
}
