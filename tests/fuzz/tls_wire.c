/* SPDX-License-Identifier: MIT */
/* Bytes on their way, and what may happen to them; see tls_wire.h. */
#include "fuzz/tls_wire.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define HEADER 5     /* bytes of a record's header */
#define FULL 1000000 /* or repeating would double it without end */

static void wire_insert(
    struct wire *w, size_t at, const void *bytes, size_t len)
{
    if (w->len + len > w->room) {
        w->room = 2 * (w->len + len);
        w->bytes = realloc(w->bytes, w->room);
        CHECK(w->bytes != NULL);
    }
    if (len == 0)
        return;
    memmove(w->bytes + at + len, w->bytes + at, w->len - at);
    memcpy(w->bytes + at, bytes, len);
    w->len += len;
}

void wire_add(struct wire *w, const void *bytes, size_t len)
{
    wire_insert(w, w->len, bytes, len);
}

void wire_remove(struct wire *w, size_t at, size_t len)
{
    if (len == 0)
        return;
    memmove(w->bytes + at, w->bytes + at + len, w->len - at - len);
    w->len -= len;
}

/* With its header, as far as it is there. */
static size_t record_len(const uint8_t *bytes, size_t len)
{
    size_t whole =
        len < HEADER ? len : HEADER + (size_t)(bytes[3] << 8 | bytes[4]);

    return whole < len ? whole : len;
}

size_t wire_record(const struct wire *w)
{
    return record_len(w->bytes, w->len);
}

size_t wire_count(const uint8_t *bytes, size_t len)
{
    size_t count = 0, record;

    for (; len > 0; count++, bytes += record, len -= record)
        record = record_len(bytes, len);
    return count;
}

/* ------------------------------------------------------ a man in the middle
 */

static void insert_garbage(struct wire *w, size_t n)
{
    uint8_t bytes[512];

    if (n > sizeof(bytes))
        n = sizeof(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)((i + n) * 2654435761u >> 11);
    wire_insert(w, 0, bytes, n);
}

static void insert(struct wire *w, char letter, size_t n)
{
    uint8_t alert[] = {21, 3, 3, 0, 2, (uint8_t)(1 + n % 2), (uint8_t)(n / 2)};
    uint8_t huge[] = {(uint8_t)(20 + n % 5), 3, 3, (uint8_t)(64 + n), 255};
    static const uint8_t record[] = "\x17\x03\x03\0\5+OK\r\n";
    static const uint8_t ciphers[] = {20, 3, 3, 0, 1, 1};

    switch (letter) {
    case 'g':
        insert_garbage(w, n);
        break;
    case 'l':
        wire_insert(w, 0, alert, sizeof(alert));
        break;
    case 'h':
        wire_insert(w, 0, huge, sizeof(huge));
        break;
    case 'i':
        wire_insert(w, 0, "+OK\r\n", 5);
        break;
    case 'j':
        wire_insert(w, 0, record, sizeof(record) - 1);
        break;
    case 'y':
        wire_insert(w, 0, ciphers, sizeof(ciphers));
        break;
    }
}

static void change_record(struct wire *w, char letter)
{
    size_t len = wire_record(w);
    uint8_t *copy = malloc(len + 1);

    CHECK(copy != NULL);
    if (len > 0)
        memcpy(copy, w->bytes, len);
    if (letter != 'p')
        wire_remove(w, 0, len);
    if (letter != 'c')
        wire_insert(w, wire_record(w), copy, len);
    free(copy);
}

void wire_change(struct wire *w, char letter, size_t n)
{
    if (w->len > FULL || (w->len == 0 && strchr("fxcpo", letter)))
        return;
    w->changed = true;
    if (letter == 'f')
        w->bytes[n * 7919 % w->len] ^= (uint8_t)(1 << n % 8);
    else if (letter == 'x')
        wire_remove(w, 0, n < w->len ? n : w->len);
    else if (strchr("cpo", letter))
        change_record(w, letter);
    else
        insert(w, letter, n);
}
