/* SPDX-License-Identifier: MIT */
/* A TLS server in front of the first server (support/front.h), and what a scene
 * tells it. */
#ifndef NXLOCK_TESTS_LIVE_SCENE_FRONT_H
#define NXLOCK_TESTS_LIVE_SCENE_FRONT_H

#include "live/scene_world.h"
#include "support/front.h"

/* "front", "front with records of 512 bytes" */
static inline void make_front(
    const char *name, struct words *words, struct outcome *o)
{
    unsigned record_most = 16384;
    uint16_t port = 0;
    if (accept(words, "with") && accept(words, "records") &&
        accept(words, "of")) {
        record_most = (unsigned)number_of(take(words));
        if (!accept(words, "bytes"))
            file_error("with records of 512 bytes");
    }
    if (!file.certificates)
        file_error("\"server certificates: all\" is not in the file");
    front_start(servers[0].dir, servers[0].path, record_most, &port);
    keep_value(name, formatted("127.0.0.1:%u", (unsigned)port));
    keep_value("front port", word_number(port).text);
    find_thing("front port", A_VALUE)->used = true;
}

static const struct field front_fields[] = {
    FIELD(struct front, accepted, INT),
    FIELD(struct front, open, INT),
    FIELD(struct front, goodbyes, INT),
    FIELD(struct front, name, TEXT),
    {.name = NULL},
};

static inline void play_front(
    const struct subject *subject, struct words *words, struct outcome *o)
{
    const char *told = "";
    if (!front)
        file_error("there is no front");
    if (has(words) && give_field(o, front_fields, front, words))
        return;
    if (accept(words, "heard")) {
        const struct word *text = take(words);
        size_t length = front->length, room = sizeof(front->heard);
        give_flag(o, memmem(front->heard, length < room ? length : room,
                         text->text, text->length));
    } else if (accept(words, "forgets")) {
        front->length = 0;
    } else if (accept(words, "presents")) {
        snprintf(front->certificate, sizeof(front->certificate), "%s",
            take(words)->text);
        if (accept(words, "over") && accept(words, "TLS"))
            front->version = 0x0301 + (int)number_of(take(words));
    } else {
        while (has(words))
            told = joined(told, " ", take(words)->text);
        if (!front_told(told))
            file_error("a front knows no \"%s\"", told);
    }
}

#endif
