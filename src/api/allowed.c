/* SPDX-License-Identifier: MIT */
/* The table of the commands that client_ask() may send. */
#include "api/allowed.h"

#include <string.h>
#include <strings.h>

#define COUNT_MOST 1000   /* of SCAN: the server does nothing else meanwhile */
#define RANGE_MOST 524288 /* of GETRANGE, in bytes */
#define MEMBERS_MOST 1000 /* of ZRANGE */
#define ANY 64

static const struct {
    const char *name;
    const char *part;   /* the subcommand; NULL: it has none */
    size_t least, most; /* number of words, including these */
    const char *since;  /* the first Redis that has it; NULL: all have it */
} table[] = {
    {"ACL", "GETUSER", 3, 3, "6.0"},
    {"ACL", "WHOAMI", 2, 2, "6.0"},
    {"CLIENT", "ID", 2, 2, "5.0"},
    {"CLUSTER", "INFO", 2, 2, "3.0"},
    {"CLUSTER", "KEYSLOT", 3, 3, "3.0"},
    {"COMMAND", "COUNT", 2, 2, "2.8.13"},
    {"CONFIG", "GET", 3, 3, NULL},
    {"DBSIZE", NULL, 1, 1, NULL},
    {"EXISTS", NULL, 2, ANY, NULL},
    {"GETRANGE", NULL, 4, 4, NULL},
    {"INFO", NULL, 1, 2, NULL},
    {"LASTSAVE", NULL, 1, 1, NULL},
    {"MEMORY", "USAGE", 3, 3, "4.0"},
    {"OBJECT", "ENCODING", 3, 3, "2.2.3"},
    {"PING", NULL, 1, 2, NULL},
    {"PTTL", NULL, 2, 2, "2.6"},
    {"ROLE", NULL, 1, 1, "2.8.12"},
    {"SCAN", NULL, 2, 8, "2.8"},
    {"STRLEN", NULL, 2, 2, NULL},
    {"TIME", NULL, 1, 1, "2.6"},
    {"TTL", NULL, 2, 2, NULL},
    {"TYPE", NULL, 2, 2, NULL},
    {"ZCARD", NULL, 2, 2, NULL},
    {"ZRANGE", NULL, 4, 5, NULL},
};

static bool word_is(struct slice word, const char *name)
{
    return word.len == strlen(name) &&
           strncasecmp(word.data, name, word.len) == 0;
}

/* Reads a decimal number from 0 to most; -1 for anything else. */
static long read_count(struct slice word, long most)
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

/* Are these the two ends of a range of at most so many items? */
static bool is_range(struct slice first, struct slice last, long most)
{
    long from = read_count(first, 536870912);
    long to = read_count(last, 536870912);

    return from >= 0 && to >= from && to - from < most;
}

static const char *refuse_bounds(const struct slice *words, size_t count)
{
    if (word_is(words[0], "GETRANGE") &&
        !is_range(words[2], words[3], RANGE_MOST))
        return "needs two numbers, 0 or more, and reads at most 524288 bytes";
    if (word_is(words[0], "ZRANGE")) {
        if (!is_range(words[2], words[3], MEMBERS_MOST))
            return "needs two numbers, 0 or more, and reads at most 1000 "
                   "members";
        if (count == 5 && !word_is(words[4], "WITHSCORES"))
            return "is allowed no option but WITHSCORES";
    }
    if (word_is(words[0], "SCAN")) {
        for (size_t i = 2; i + 1 < count; i += 2) {
            if (word_is(words[i], "COUNT") &&
                read_count(words[i + 1], COUNT_MOST) < 0)
                return "is allowed a COUNT of at most 1000: a larger one "
                       "blocks the server for its other clients";
        }
    }
    return NULL;
}

static bool is_row(size_t i, const struct slice *words, size_t count)
{
    return word_is(words[0], table[i].name) &&
           (!table[i].part || (count > 1 && word_is(words[1], table[i].part)));
}

void allowed_add_unsupported(
    struct text *text, const struct slice *words, size_t count)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (!is_row(i, words, count))
            continue;
        text_addf(text, "; %s%s%s", table[i].name, table[i].part ? " " : "",
            table[i].part ? table[i].part : "");
        if (table[i].since)
            text_addf(text, " needs Redis %s or later and", table[i].since);
        text_add(text, " may be renamed or disabled on this server");
        return;
    }
}

const char *allowed_refusal(const struct slice *words, size_t count)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (!is_row(i, words, count))
            continue;
        if (count < table[i].least || count > table[i].most)
            return "has the wrong number of arguments";
        return refuse_bounds(words, count);
    }
    return "is not allowed: only commands that change nothing and leave "
           "the connection usable are";
}
