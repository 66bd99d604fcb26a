/* SPDX-License-Identifier: MIT */
/*
 * What may be asked. Keeps: nothing in the table changes a key or what the
 * connection is, waits, holds the server up for long, or has an answer that
 * grows without a bound that its arguments give.
 */
#include <strings.h>

#include "api/ask.h"

#define COUNT_MOST 1000   /* of SCAN: it is work that nothing interrupts */
#define RANGE_MOST 524288 /* of GETRANGE, in bytes */
#define ANY 64

static const struct {
    const char *name;
    const char *part; /* the word behind it; NULL: none belongs to it */
    size_t least, most; /* words, with these */
} table[] = {
    {"ACL", "DRYRUN", 4, ANY},
    {"ACL", "GETUSER", 3, 3},
    {"ACL", "WHOAMI", 2, 2},
    {"CLIENT", "ID", 2, 2},
    {"CLUSTER", "INFO", 2, 2},
    {"CLUSTER", "KEYSLOT", 3, 3},
    {"COMMAND", "COUNT", 2, 2},
    {"CONFIG", "GET", 3, 3},
    {"DBSIZE", NULL, 1, 1},
    {"EXISTS", NULL, 2, ANY},
    {"GETRANGE", NULL, 4, 4},
    {"INFO", NULL, 1, 2},
    {"LASTSAVE", NULL, 1, 1},
    {"MEMORY", "USAGE", 3, 3},
    {"OBJECT", "ENCODING", 3, 3},
    {"PING", NULL, 1, 2},
    {"PTTL", NULL, 2, 2},
    {"ROLE", NULL, 1, 1},
    {"SCAN", NULL, 2, 8},
    {"STRLEN", NULL, 2, 2},
    {"TIME", NULL, 1, 1},
    {"TTL", NULL, 2, 2},
    {"TYPE", NULL, 2, 2},
};

static bool is(struct slice word, const char *name)
{
    return word.len == strlen(name) &&
           strncasecmp(word.data, name, word.len) == 0;
}

/* 0 to most, in digits and nothing else; -1: it is not. */
static long number(struct slice word, long most)
{
    long n = 0;

    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] < '0' || word.data[i] > '9')
            return -1;
        n = 10 * n + (word.data[i] - '0');
        if (n > most)
            return -1;
    }
    return word.len > 0 ? n : -1;
}

static const char *bounds(const struct slice *words, size_t count)
{
    if (is(words[0], "GETRANGE")) {
        long from = number(words[2], 536870912);
        long to = number(words[3], 536870912);
        if (from < 0 || to < from || to - from >= RANGE_MOST)
            return "wants two numbers from 0 on, 524288 bytes at most";
    }
    if (is(words[0], "SCAN")) {
        for (size_t i = 2; i + 1 < count; i += 2) {
            if (is(words[i], "COUNT") && number(words[i + 1], COUNT_MOST) < 0)
                return "is asked with a COUNT of 1000 at most: a greater one "
                       "keeps the server from all others";
        }
    }
    return NULL;
}

const char *ask_refusal(const struct slice *words, size_t count)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (!is(words[0], table[i].name))
            continue;
        if (table[i].part && (count < 2 || !is(words[1], table[i].part)))
            continue;
        if (count < table[i].least || count > table[i].most)
            return "has another number of arguments";
        return bounds(words, count);
    }
    return "is not among the commands that may be asked: those that change "
           "nothing and disturb nobody on the connection";
}
