/* SPDX-License-Identifier: MIT */
/* Keeps: out.size <= INPUT_MAX after every step. */
#include "fuzz/mutate.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ reading */

static bool pool_add(struct pool *pool, const void *data, size_t size)
{
    struct bytes *item = realloc(pool->item, (pool->count + 1) * sizeof(*item));

    if (!item)
        return false;
    pool->item = item;
    item += pool->count;
    item->data = malloc(size + 1);
    if (!item->data)
        return false;
    memcpy(item->data, data, size);
    item->size = size;
    pool->count++;
    return true;
}

static void pool_free(struct pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        free(pool->item[i].data);
    free(pool->item);
}

static int filter(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* alphasort() asks the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool add_file(struct mutator *m, const char *folder, const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *in = fopen(path, "rb");
    if (!in)
        return false;
    size_t size = fread(m->scratch.data, 1, INPUT_MAX, in);
    bool good = ferror(in) == 0;
    fclose(in);
    return good && pool_add(&m->corpus, m->scratch.data, size);
}

static bool read_corpus(struct mutator *m, const char *folder)
{
    struct dirent **list = NULL;
    int count = scandir(folder, &list, filter, by_name);
    bool good = count > 0;

    for (int i = 0; i < count; i++) {
        good = good && add_file(m, folder, list[i]->d_name);
        free(list[i]);
    }
    free(list);
    return good;
}

/* name="word" or "word", where \xNN, \\ and \" stand for a byte. */
static bool add_word(struct mutator *m, const char *line)
{
    const char *at = strchr(line, '"');
    const char *end = strrchr(line, '"');
    char word[256];
    size_t size = 0;

    if (line[0] == '#' || line[strspn(line, " \r\n")] == '\0')
        return true;
    if (!at || at == end)
        return false;
    for (at++; at < end && size < sizeof(word); at++) {
        unsigned byte = (unsigned char)*at;
        if (at[0] == '\\' && at[1] == 'x') {
            if (sscanf(at + 2, "%2x", &byte) != 1)
                return false;
            at += 3;
        } else if (at[0] == '\\') {
            byte = (unsigned char)*++at;
        }
        word[size++] = (char)byte;
    }
    return pool_add(&m->words, word, size);
}

static bool read_words(struct mutator *m, const char *path)
{
    char line[1024];
    FILE *in = fopen(path, "r");
    bool good = in != NULL;

    while (good && fgets(line, sizeof(line), in)) {
        good = add_word(m, line);
        if (!good)
            fprintf(stderr, "%s: no word: %s", path, line);
    }
    if (in)
        fclose(in);
    return good && m->words.count > 0;
}

bool mutator_open(
    struct mutator *m, const char *folder, const char *words, uint64_t seed)
{
    memset(m, 0, sizeof(*m));
    m->state = seed;
    m->out.data = malloc(INPUT_MAX);
    m->scratch.data = malloc(INPUT_MAX);
    if (m->out.data && m->scratch.data && read_corpus(m, folder) &&
        read_words(m, words))
        return true;
    fprintf(stderr, "cannot use %s or %s\n", folder, words);
    mutator_close(m);
    return false;
}

void mutator_close(struct mutator *m)
{
    pool_free(&m->corpus);
    pool_free(&m->words);
    free(m->out.data);
    free(m->scratch.data);
}

/* ----------------------------------------------------------------- changing */

/* splitmix64: every seed will do, zero too. */
static uint64_t draw(struct mutator *m)
{
    uint64_t z = m->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t below(struct mutator *m, size_t bound)
{
    return bound == 0 ? 0 : (size_t)(draw(m) % bound);
}

/* Puts bytes in at a place, as many as there is room for. */
static void insert(
    struct mutator *m, size_t at, const uint8_t *data, size_t size)
{
    struct bytes *out = &m->out;

    if (size > INPUT_MAX - out->size)
        size = INPUT_MAX - out->size;
    memmove(out->data + at + size, out->data + at, out->size - at);
    memcpy(out->data + at, data, size);
    out->size += size;
}

static void erase(struct mutator *m, size_t at, size_t size)
{
    struct bytes *out = &m->out;

    memmove(out->data + at, out->data + at + size, out->size - at - size);
    out->size -= size;
}

static void insert_run(struct mutator *m, size_t at)
{
    static const size_t lengths[] = {2, 8, 32, 110, 260, 600, 1100, 4000, 9000};
    size_t size = lengths[below(m, sizeof(lengths) / sizeof(lengths[0]))];
    size_t same = m->out.size > 0 ? m->out.data[below(m, m->out.size)] : 'x';

    size += below(m, 4);
    memset(m->scratch.data, (int)same, size);
    insert(m, at, m->scratch.data, size);
}

/* A part of the input once more, or of another file. */
static void insert_part(
    struct mutator *m, size_t at, const struct bytes *source)
{
    size_t from = below(m, source->size);
    size_t size = below(m, source->size - from + 1);

    memcpy(m->scratch.data, source->data + from, size);
    insert(m, at, m->scratch.data, size);
}

static void insert_word(struct mutator *m, size_t at)
{
    const struct bytes *word = &m->words.item[below(m, m->words.count)];

    if (draw(m) & 1)
        erase(m, at, below(m, m->out.size - at + 1) % (word->size + 1));
    insert(m, at, word->data, word->size);
}

/* The digit at or behind at becomes another, or many. */
static void change_number(struct mutator *m, size_t at)
{
    static const char *const numbers[] = {"0", "-1", "255", "256", "32767",
        "65535", "65536", "2147483647", "2147483648", "4294967296",
        "9223372036854775807", "9223372036854775808", "315360000000"};
    struct bytes *out = &m->out;
    const char *number =
        numbers[below(m, sizeof(numbers) / sizeof(numbers[0]))];

    while (at < out->size && (out->data[at] < '0' || out->data[at] > '9'))
        at++;
    if (at == out->size)
        return;
    if (draw(m) & 1) {
        out->data[at] = (uint8_t)('0' + below(m, 10));
        return;
    }
    while (at < out->size && out->data[at] >= '0' && out->data[at] <= '9')
        erase(m, at, 1);
    insert(m, at, (const uint8_t *)number, strlen(number));
}

static void change(struct mutator *m)
{
    struct bytes *out = &m->out;
    size_t at = below(m, out->size + 1);
    bool inside = at < out->size;

    switch (below(m, 9)) {
    case 0:
        if (inside)
            out->data[at] ^= (uint8_t)(1U << below(m, 8));
        break;
    case 1:
        if (inside)
            out->data[at] = (uint8_t)draw(m);
        break;
    case 2:
        erase(m, at, below(m, out->size - at + 1));
        break;
    case 3:
        if (inside)
            erase(m, at, 1);
        break;
    case 4:
        insert_part(m, at, out);
        break;
    case 5:
        insert_part(m, at, &m->corpus.item[below(m, m->corpus.count)]);
        break;
    case 6:
        change_number(m, at);
        break;
    case 7:
        if (below(m, 8) == 0)
            insert_run(m, at);
        break;
    default:
        insert_word(m, at);
    }
}

const struct bytes *mutator_next(struct mutator *m)
{
    const struct bytes *base = &m->corpus.item[below(m, m->corpus.count)];
    size_t kind = below(m, 2000);

    m->out.size = 0;
    if (kind == 0)
        return &m->out;
    insert(m, 0, base->data, base->size);
    while (kind == 1 && m->out.size > 0 && m->out.size < INPUT_MAX)
        insert_part(m, m->out.size, base);
    for (size_t steps = 1 + below(m, 4); steps > 0; steps--)
        change(m);
    return &m->out;
}
