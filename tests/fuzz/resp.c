/* SPDX-License-Identifier: MIT */
/*
 * Where hiredis is lax, and no harm can come of it, so is this: the two bytes
 * behind a string are not looked at.
 */
#include "fuzz/resp.h"

#include "net/reader.h"

static void skip(struct slice *bytes, size_t len)
{
    bytes->data += len;
    bytes->len -= len;
}

/* The rest of the line, without its end. */
static bool take_line(struct slice *bytes, struct slice *line)
{
    const char *end =
        bytes->len > 0 ? memmem(bytes->data, bytes->len, "\r\n", 2) : NULL;

    if (!end)
        return false;
    *line = (struct slice){bytes->data, (size_t)(end - bytes->data)};
    skip(bytes, line->len + 2);
    return true;
}

/* "0", or digits that begin with another, perhaps after a '-'. */
static bool read_integer(struct slice line, int64_t *value)
{
    size_t sign = line.len > 0 && line.data[0] == '-' ? 1 : 0;
    int64_t sum = 0; /* below zero there is one more */

    if (line.len == sign || (line.data[sign] == '0' && line.len > 1))
        return false;
    for (size_t i = sign; i < line.len; i++) {
        if (line.data[i] < '0' || line.data[i] > '9' ||
            __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_sub_overflow(sum, line.data[i] - '0', &sum))
            return false;
    }
    *value = sum;
    return sign == 1 || !__builtin_sub_overflow(0, sum, value);
}

/* Only a string by itself may be cut. */
static bool fits(struct resp *r, struct reply *reply, bool alone)
{
    if (reply->bytes.len > READER_TEXT - r->text) {
        if (!alone || reply->kind != REPLY_STRING)
            return false;
        reply->truncated = true;
        reply->bytes.len = READER_TEXT;
    }
    r->text += reply->bytes.len;
    return true;
}

static enum resp_result read_string(
    struct resp *r, struct slice *bytes, struct reply *reply, int64_t len)
{
    if (len < -1)
        return RESP_BROKEN;
    if (len == -1) {
        reply->kind = REPLY_NIL;
        return RESP_REPLY;
    }
    if (bytes->len < 2 || (uint64_t)len > bytes->len - 2)
        return RESP_MORE;
    reply->kind = REPLY_STRING;
    reply->bytes = (struct slice){bytes->data, (size_t)len};
    skip(bytes, (size_t)len + 2);
    return fits(r, reply, reply == &r->reply) ? RESP_REPLY : RESP_BROKEN;
}

static enum resp_result read_one(
    struct resp *r, struct slice *bytes, struct reply *reply);

static enum resp_result read_array(
    struct resp *r, struct slice *bytes, struct reply *reply, int64_t count)
{
    if (count == -1) {
        reply->kind = REPLY_NIL;
        return RESP_REPLY;
    }
    if (reply != &r->reply || count < 0 || count > REPLY_ITEMS)
        return RESP_BROKEN;
    reply->kind = REPLY_ARRAY;
    reply->count = (size_t)count;
    reply->items = r->items;
    for (size_t i = 0; i < reply->count; i++) {
        enum resp_result result = read_one(r, bytes, &r->items[i]);
        if (result != RESP_REPLY)
            return result;
    }
    return RESP_REPLY;
}

static enum resp_result read_one(
    struct resp *r, struct slice *bytes, struct reply *reply)
{
    struct slice line;

    if (bytes->len == 0)
        return RESP_MORE;
    char type = bytes->data[0];
    if (type == '\0' || !strchr("+-:$*", type))
        return RESP_BROKEN;
    skip(bytes, 1);
    if (!take_line(bytes, &line))
        return RESP_MORE;
    memset(reply, 0, sizeof(*reply));
    reply->kind = type == '+'   ? REPLY_STATUS
                  : type == '-' ? REPLY_ERROR
                                : REPLY_INTEGER;
    if (type == '+' || type == '-') {
        reply->bytes = line;
        return fits(r, reply, reply == &r->reply) ? RESP_REPLY : RESP_BROKEN;
    }
    int64_t number;
    if (!read_integer(line, &number))
        return RESP_BROKEN;
    if (type == '$')
        return read_string(r, bytes, reply, number);
    if (type == '*')
        return read_array(r, bytes, reply, number);
    reply->integer = number;
    return RESP_REPLY;
}

enum resp_result resp_read(struct resp *r, struct slice *bytes)
{
    r->text = 0;
    return read_one(r, bytes, &r->reply);
}
