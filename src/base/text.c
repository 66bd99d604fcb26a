/* SPDX-License-Identifier: MIT */
/* len < TEXT_MAX and data[len] == 0 after every call. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

#define FOREIGN_MAX 200

static size_t room(const struct text *t)
{
    return TEXT_MAX - 1 - t->len;
}

static void add(struct text *t, const char *bytes, size_t len)
{
    if (len > room(t))
        len = room(t);
    if (len > 0)
        memcpy(t->data + t->len, bytes, len);
    t->len += len;
    t->data[t->len] = '\0';
}

void text_clear(struct text *t)
{
    t->len = 0;
    t->data[0] = '\0';
}

void text_add(struct text *t, const char *words)
{
    add(t, words, strlen(words));
}

static struct slice without(struct slice bytes, const char *from)
{
    const char *at = NULL;

    if (bytes.data != NULL)
        at = memmem(bytes.data, bytes.len, from, strlen(from));
    if (at)
        bytes.len = (size_t)(at - bytes.data);
    return bytes;
}

/* Redis says it since 4.0 of a command that it does not know, and since 7.0
 * where in which script an error was met. */
static struct slice without_echo(struct slice bytes)
{
    return without(without(bytes, ", with args beginning with"), " script: ");
}

void text_add_foreign(struct text *t, struct slice bytes)
{
    bytes = without_echo(bytes);
    static const char digits[] = "0123456789abcdef";
    size_t shown = bytes.len < FOREIGN_MAX ? bytes.len : FOREIGN_MAX;

    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        char seen[4] = {(char)c, 'x', digits[c >> 4], digits[c & 15]};
        size_t len = 1;
        if (c < ' ' || c > '~') {
            seen[0] = '\\';
            len = 4;
        }
        /* Half an escape would be another byte. */
        if (len > room(t))
            return;
        add(t, seen, len);
    }
    if (shown < bytes.len)
        text_add(t, "...");
}

void text_addf(struct text *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len = vsnprintf(t->data + t->len, room(t) + 1, format, args);
    va_end(args);
    if (len < 0)
        t->data[t->len] = '\0';
    else
        t->len += (size_t)len < room(t) ? (size_t)len : room(t);
}

void text_copy(const struct text *t, char *to, size_t size)
{
    size_t len = t->len < size ? t->len : size - 1;

    memcpy(to, t->data, len);
    to[len] = '\0';
}
