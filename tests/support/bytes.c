/* SPDX-License-Identifier: MIT */
/* Keeps data zero-ended at len, so that it can be read as text. */
#include "support/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bytes_add(struct bytes *b, const void *data, size_t len)
{
    if (b->room - b->len <= len) {
        size_t room = (b->len + len + 1) * 2;
        b->data = realloc(b->data, room);
        if (!b->data)
            abort();
        b->room = room;
    }
    if (len > 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void bytes_addf(struct bytes *b, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(text))
        abort();
    bytes_add(b, text, (size_t)len);
}

void bytes_add_visible(
    struct bytes *b, const char *data, size_t len, const char *also)
{
    for (size_t i = 0; i < len; i++) {
        char c = data[i];
        if (c > ' ' && c <= '~' && !strchr(also, c))
            bytes_add(b, &c, 1);
        else
            bytes_addf(b, "\\x%02x", (unsigned)(unsigned char)c);
    }
}

void bytes_drop(struct bytes *b, size_t len)
{
    if (len == 0)
        return;
    memmove(b->data, b->data + len, b->len - len + 1);
    b->len -= len;
}

void bytes_free(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){NULL, 0, 0};
}
