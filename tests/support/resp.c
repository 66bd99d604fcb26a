/* SPDX-License-Identifier: MIT */
/*
 * A command is an array of bulk strings and nothing else: a client of ours
 * that sends anything else is broken, and the parser says so.
 */
#include "support/resp.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* "*3\r\n": its number into *value. Bytes used, 0: incomplete, -1: wrong. */
static long parse_header(const char *data, size_t len, char mark, size_t *value)
{
    size_t i = 1;

    if (len == 0)
        return 0;
    if (data[0] != mark)
        return -1;
    *value = 0;
    for (; i < len && data[i] >= '0' && data[i] <= '9'; i++) {
        if (i > 9)
            return -1;
        *value = *value * 10 + (size_t)(data[i] - '0');
    }
    if (i == len)
        return 0;
    if (i == 1 || data[i] != '\r')
        return -1;
    if (i + 1 == len)
        return 0;
    return data[i + 1] == '\n' ? (long)i + 2 : -1;
}

long resp_parse(const char *data, size_t len, struct resp_command *command)
{
    size_t count, at;
    long used = parse_header(data, len, '*', &count);

    if (used <= 0)
        return used;
    if (count == 0 || count > RESP_ARGS)
        return -1;
    at = (size_t)used;
    for (size_t i = 0; i < count; i++) {
        size_t size;
        used = parse_header(data + at, len - at, '$', &size);
        if (used <= 0)
            return used;
        at += (size_t)used;
        if (len - at < size + 2)
            return 0;
        if (memcmp(data + at + size, "\r\n", 2) != 0)
            return -1;
        command->arg[i] = (struct resp_arg){data + at, size};
        at += size + 2;
    }
    command->count = count;
    return (long)at;
}

bool resp_is(const struct resp_command *command, size_t i, const char *word)
{
    return i < command->count && command->arg[i].len == strlen(word) &&
           strncasecmp(command->arg[i].data, word, strlen(word)) == 0;
}

void resp_bulk(struct bytes *out, const char *data, size_t len)
{
    bytes_addf(out, "$%zu\r\n", len);
    bytes_add(out, data, len);
    bytes_add(out, "\r\n", 2);
}

static uint32_t turn(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

/* FIPS 180-4, 6.1.2: one block of 64 bytes. */
static void sha1_block(uint32_t state[5], const unsigned char *block)
{
    uint32_t w[80];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3],
             e = state[4];

    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
    for (size_t i = 16; i < 80; i++)
        w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (size_t i = 0; i < 80; i++) {
        uint32_t mix, constant;
        if (i < 20) {
            mix = (b & c) | (~b & d);
            constant = 0x5a827999;
        } else if (i < 40) {
            mix = b ^ c ^ d;
            constant = 0x6ed9eba1;
        } else if (i < 60) {
            mix = (b & c) | (b & d) | (c & d);
            constant = 0x8f1bbcdc;
        } else {
            mix = b ^ c ^ d;
            constant = 0xca62c1d6;
        }
        uint32_t next = turn(a, 5) + mix + e + constant + w[i];
        e = d;
        d = c;
        c = turn(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void sha1_hex(const char *data, size_t len, char out[41])
{
    static const char digits[] = "0123456789abcdef";
    uint32_t state[5] = {
        0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    struct bytes padded = {NULL, 0, 0};
    unsigned char tail[8];

    bytes_add(&padded, data, len);
    bytes_add(&padded, "\x80", 1);
    while (padded.len % 64 != 56)
        bytes_add(&padded, "", 1);
    for (size_t i = 0; i < 8; i++)
        tail[i] = (unsigned char)((uint64_t)len * 8 >> (56 - 8 * i));
    bytes_add(&padded, tail, 8);
    for (size_t at = 0; at < padded.len; at += 64)
        sha1_block(state, (const unsigned char *)padded.data + at);
    for (size_t i = 0; i < 40; i++)
        out[i] = digits[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[40] = '\0';
    bytes_free(&padded);
}
