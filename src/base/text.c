/* SPDX-License-Identifier: MIT */
/* Builds messages in a fixed array.
 *
 * Invariant: len < TEXT_MAX and data[len] == 0 after every call. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

static size_t room_left(const struct text *t)
{
    return TEXT_MAX - 1 - t->len;
}

static void add_bytes(struct text *t, const char *bytes, size_t len)
{
    if (len > room_left(t))
        len = room_left(t);
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
    add_bytes(t, words, strlen(words));
}

void text_set(struct text *t, const char *words)
{
    text_clear(t);
    text_add(t, words);
}

static struct slice cut_at(struct slice bytes, const char *from)
{
    const char *at = NULL;

    if (bytes.data)
        at = memmem(bytes.data, bytes.len, from, strlen(from));
    if (at)
        bytes.len = (size_t)(at - bytes.data);
    return bytes;
}

/* Since 4.0 Redis repeats the arguments of an unknown command, and since 7.0 it
 * names the script and line of an error. */
struct slice text_without_echo(struct slice bytes)
{
    return cut_at(cut_at(bytes, ", with args beginning with"), " script: ");
}

void text_add_foreign(struct text *t, struct slice bytes)
{
    text_add_foreign_raw(t, text_without_echo(bytes), FOREIGN_MAX);
}

void text_add_foreign_raw(struct text *t, struct slice bytes, size_t most)
{
    static const char digits[] = "0123456789abcdef";
    size_t shown = bytes.len < most ? bytes.len : most;

    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        char seen[4] = {(char)c, 'x', digits[c >> 4], digits[c & 15]};
        size_t len = 1;
        if (c < ' ' || c > '~') {
            seen[0] = '\\';
            len = 4;
        }
        /* Part of an escape would be read as other bytes. */
        if (len > room_left(t))
            return;
        add_bytes(t, seen, len);
    }
    if (shown < bytes.len)
        text_add(t, "...");
}

void text_addf(struct text *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len = vsnprintf(t->data + t->len, room_left(t) + 1, format, args);
    va_end(args);
    if (len < 0)
        t->data[t->len] = '\0';
    else
        t->len += (size_t)len < room_left(t) ? (size_t)len : room_left(t);
}

void text_add_duration(struct text *t, uint64_t ms, bool up)
{
    static const struct {
        const char *name;
        uint64_t ms;
        uint64_t below_ms; /* from here on the next unit is easier to read */
    } units[] = {{"s", 1000, 120 * 1000}, {"m", 60 * 1000, 120 * 60 * 1000},
        {"h", 3600 * 1000, 48 * 3600 * 1000}, {"d", 24 * 3600 * 1000, 0}};
    size_t i = 0;

    if (ms > 0 && ms < 1000) {
        text_addf(t, "%ums", (unsigned)ms);
        return;
    }
    if (ms < 10 * 1000) {
        unsigned tenths = (unsigned)((ms + (up ? 99 : 0)) / 100);
        text_addf(t, tenths % 10 ? "%u.%us" : "%us", tenths / 10, tenths % 10);
        return;
    }
    while (units[i].below_ms && ms >= units[i].below_ms)
        i++;
    text_addf(t, "%llu%s",
        (unsigned long long)(ms / units[i].ms + (up && ms % units[i].ms != 0)),
        units[i].name);
}

void text_copy(const struct text *t, char *to, size_t size)
{
    size_t len = t->len < size ? t->len : size - 1;

    memcpy(to, t->data, len);
    to[len] = '\0';
}
