/* SPDX-License-Identifier: MIT */
/* Collects the values of a reply.
 *
 * Invariant: positions are stored as offsets, because the bytes move when the
 * buffer grows. */
#include "base/reply_values.h"

#include <stdlib.h>

#include "base/decimal.h"

/* All of a reply is stored or nothing: a part of it would be misleading. */
static void drop_values(struct reply_values *l)
{
    buf_clear(&l->bytes);
    l->count = 0;
}

static bool make_room(struct reply_values *l)
{
    if (l->count < l->room)
        return true;
    size_t room = l->room ? 2 * l->room : 16;
    struct value_range *list = realloc(l->list, room * sizeof(*list));
    if (!list)
        return false;
    l->list = list;
    l->room = room;
    return true;
}

static void add_value(struct reply_values *l, struct slice value, bool nil)
{
    size_t at = buf_len(&l->bytes);
    size_t used = at + l->count * sizeof(*l->list);
    if (l->full || l->starved)
        return;
    if (value.len > REPLY_VALUES_MAX ||
        used + value.len + sizeof(*l->list) >= REPLY_VALUES_MAX) {
        l->full = true;
    } else if (!make_room(l) || !buf_reserve(&l->bytes, value.len + 1)) {
        l->starved = true;
    } else {
        if (value.len > 0)
            buf_append(&l->bytes, value.data, value.len);
        buf_append(&l->bytes, "", 1);
        l->list[l->count++] = (struct value_range){at, value.len, nil};
        return;
    }
    drop_values(l);
}

void reply_values_add(struct reply_values *l, struct slice value)
{
    add_value(l, value, false);
}

void reply_values_add_number(struct reply_values *l, int64_t number)
{
    struct decimal digits;
    add_value(l, decimal_signed(&digits, number), false);
}

void reply_values_add_nil(struct reply_values *l)
{
    add_value(l, (struct slice){NULL, 0}, true);
}

bool reply_values_number(
    const struct reply_values *l, size_t i, int64_t *number)
{
    struct slice text = reply_values_at(l, i);
    char *end;
    if (!text.data || text.len > 18) /* as many digits fit */
        return false;
    *number = strtoll(text.data, &end, 10);
    return end > text.data && end == text.data + text.len;
}

void reply_values_clear(struct reply_values *l)
{
    drop_values(l);
    l->full = l->starved = false;
}

void reply_values_free(struct reply_values *l)
{
    buf_free(&l->bytes);
    free(l->list);
    *l = (struct reply_values){.list = NULL};
}
