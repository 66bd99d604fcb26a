/* SPDX-License-Identifier: MIT */
/*
 * A network that cuts the connections of the first proxy behind one byte after
 * the other of what a scene sends or receives in its steps "where it is cut:
 * STEP".
 */
#ifndef NXLOCK_TESTS_LIVE_SCENE_CUT_H
#define NXLOCK_TESTS_LIVE_SCENE_CUT_H

#include "live/scene.h"

static struct {
    bool measures; /* nothing is cut yet, and each call succeeds */
    bool cuts;     /* behind so many bytes */
    bool begun;    /* its first step has come */
    size_t behind; /* byte */
    size_t size;   /* of all that is sent that way up to the last step */
    uint64_t from; /* the proxy's count before the first step */
    enum proxy_way way;
} cutting;

static inline void cut_begins(void)
{
    if (!cutting.measures && !cutting.cuts)
        file_error("it is not under \"cut at each 5th byte of requests\"");
    if (!proxies[0])
        file_error("there is no proxy");
    if (cutting.begun)
        return;
    cutting.begun = true;
    cutting.from = proxy_bytes(proxies[0], cutting.way);
    if (cutting.cuts)
        proxy_cut_after(proxies[0], cutting.way, cutting.behind);
}

static inline void cut_ends(void)
{
    if (cutting.measures)
        cutting.size =
            (size_t)(proxy_bytes(proxies[0], cutting.way) - cutting.from);
}

/* What is to be cut there, "cut at each 5th byte of the last 80 of replies":
 * how far apart, and how many bytes of the end; 0: all of them. Over TLS there
 * are more bytes, and connecting takes longer. */
static inline size_t read_cut(const char *text, size_t *last)
{
    size_t distance = 0;
    int words = 0;
    *last = 0;
    if (sscanf(text, "cut at each %zu%*2s byte of %n", &distance, &words) !=
            1 ||
        words == 0)
        file_error(
            "cut at each 5th byte of requests, or of the last 80 of them");
    (void)sscanf(text + words, "the last %zu of ", last);
    cutting.way = strstr(text, "requests") ? PROXY_UP : PROXY_DOWN;
    if (getenv("NXLOCK_FULL"))
        return 1;
    return live_tls() ? 4 * distance + 1 : distance;
}

#endif
