/* SPDX-License-Identifier: MIT */
/*
 * The words of a step and what is expected of it. Their memory is used again by
 * the next step.
 */
#ifndef NXLOCK_TESTS_LIVE_SCENE_TEXT_H
#define NXLOCK_TESTS_LIVE_SCENE_TEXT_H

#include "live/scene_memory.h"

/* The value that <...> stands for; fails the scene if there is none. */
static struct word value_of(const char *inside);
/* The value of the outcome's subject that a "with" names: a field of what the
 * call was about, or any other value. */
static struct word field_of(const struct outcome *outcome, const char *name);

/* Whether the client's counters are 0 but for those that "with only" names. */
static bool others_are_zero(const struct outcome *outcome, struct words named);

static inline struct word word_of(const char *text, size_t length)
{
    struct word word = {.text = pool_take(length + 1), .length = length};
    memcpy(word.text, text, length);
    word.text[length] = '\0';
    return word;
}

static inline struct word word_text(const char *text)
{
    return word_of(text, strlen(text));
}

static inline struct word word_number(int64_t number)
{
    return word_text(formatted("%lld", (long long)number));
}

static inline void append(struct word *word, const char *bytes, size_t length)
{
    char *text = pool_take(word->length + length + 1);
    memcpy(text, word->text, word->length);
    memcpy(text + word->length, bytes, length);
    word->text = text;
    word->length += length;
    text[word->length] = '\0';
}

static inline bool word_is(const struct word *word, const char *text)
{
    return !word->quoted && strcmp(word->text, text) == 0;
}

static inline bool is_number(const char *text)
{
    return *text != '\0' && text[strspn(text, "-0123456789")] == '\0';
}

static inline int64_t number_of(const struct word *word)
{
    if (!is_number(word->text))
        file_error("\"%s\" is no number", word->text);
    return strtoll(word->text, NULL, 10);
}

/* For people: bytes that cannot be printed as \xNN. */
static inline const char *shown(const struct word *word)
{
    size_t most = word->length < 1500 ? word->length : 1500, n = 0;
    char *text = pool_take(4 * most + 1);
    for (size_t i = 0; i < most; i++) {
        unsigned char c = (unsigned char)word->text[i];
        n +=
            (size_t)sprintf(text + n, c < ' ' || c > '~' ? "\\x%02x" : "%c", c);
    }
    text[n] = '\0';
    return text;
}

/* ------------------------------------------------------------------- words */

static inline const char *past_value(const char *at)
{
    const char *end = strchr(at, '>');
    if (!end)
        file_error("a < without its >");
    return end + 1;
}

/* Adds one byte, an escaped one, or the value of <...>; returns what is behind
 * it. */
static inline const char *add_part(struct word *word, const char *at)
{
    if (*at == '<' && at[1] != '\0' && at[1] != ' ') {
        const char *end = past_value(at);
        struct word inside = word_of(at + 1, (size_t)(end - at) - 2);
        struct word value = value_of(inside.text);
        append(word, value.text, value.length);
        return end;
    }
    unsigned byte = (unsigned char)*at;
    int length = 1;
    if (*at == '\\' && sscanf(at, "\\x%2x%n", &byte, &length) != 1)
        byte = (unsigned char)at[1], length = 2;
    append(word, &(char){(char)byte}, 1);
    return at + length;
}

static inline const char *next_word(const char *at, struct word *word)
{
    *word = word_text("");
    word->quoted = *at == '"';
    if (word->quoted) {
        for (at++; *at != '"'; at = add_part(word, at))
            if (*at == '\0')
                file_error("a quotation mark is missing");
        at++;
    } else {
        while (*at != '\0' && *at != ' ' && (*at != ',' || at[1] != ' '))
            at = add_part(word, at);
    }
    word->comma = *at == ',';
    at += word->comma;
    return at + strspn(at, " ");
}

static inline struct words split(const char *text)
{
    enum { MOST = 96 };
    struct word *room = (struct word *)pool_take(MOST * sizeof(*room));
    struct words words = {room, room};
    for (text += strspn(text, " "); *text != '\0';) {
        if (words.end == room + MOST)
            file_error("too many words");
        text = next_word(text, words.end++);
    }
    return words;
}

static inline bool has(const struct words *words)
{
    return words->at < words->end;
}

static inline bool next_is(const struct words *words, const char *text)
{
    return has(words) && word_is(words->at, text);
}

static inline bool accept(struct words *words, const char *text)
{
    bool accepted = next_is(words, text);
    words->at += accepted;
    return accepted;
}

static inline struct word *take(struct words *words)
{
    if (!has(words))
        file_error("a word is missing at the end");
    return words->at++;
}

static inline void expect_end(const struct words *words)
{
    if (has(words))
        file_error("\"%s\" is not understood", words->at->text);
}

/* ------------------------------------------------------------ expectations */

static inline bool in_range(
    const struct word *range, int64_t slack, const struct word *value)
{
    const char *dots = strstr(range->text, "..");
    struct word low = word_of(range->text, (size_t)(dots - range->text));
    struct word high = word_text(dots + 2);
    if (!is_number(value->text))
        return false;
    int64_t number = number_of(value);
    return (low.length == 0 || number >= number_of(&low)) &&
           (high.length == 0 || number <= number_of(&high) + slack);
}

static inline bool is_range(const struct word *word)
{
    return !word->quoted && strstr(word->text, "..");
}

/* One value as it is expected; the value may be "none" or an error. */
static inline bool meets_one(struct words *words, const struct outcome *o)
{
    if (accept(words, "not"))
        return !meets_one(words, o);
    if (accept(words, "error"))
        return o->error;
    if (accept(words, "none"))
        return o->none;
    if (accept(words, "out") && accept(words, "of") && accept(words, "memory"))
        return o->call && is_out_of_memory(o->value.text, o->message);
    if (accept(words, "containing"))
        return strstr(o->value.text, take(words)->text);
    bool above = accept(words, "above");
    const struct word *word = take(words);
    if (o->none || o->error)
        return false;
    if (above)
        return is_number(o->value.text) &&
               number_of(&o->value) > number_of(word);
    if (is_range(word))
        return in_range(word, 0, &o->value);
    return word->length == o->value.length &&
           memcmp(word->text, o->value.text, word->length) == 0;
}

static inline bool meets(struct words *words, const struct outcome *o)
{
    bool met = meets_one(words, o);
    while (accept(words, "or"))
        met |= meets_one(words, o);
    return met;
}

static inline const char *describe_outcome(const struct outcome *o)
{
    const char *value = o->none ? "none" : shown(&o->value);
    return formatted(o->call    ? "%s after %lld ms"
                     : o->error ? "error %s"
                                : "%s",
        value, (long long)o->took_ms);
}

static inline bool meets_words(
    struct words *words, const struct outcome *o, bool wanted)
{
    const struct word *word;
    do {
        word = take(words);
        if (!word->quoted)
            file_error("after saying come words in quotes");
        if (!strstr(o->message, word->text) == wanted)
            return mismatch("it says \"%s\"\n            and %s \"%s\"",
                o->message, wanted ? "lacks" : "has", word->text);
    } while (word->comma);
    return true;
}

static inline bool says(struct words *words, const struct outcome *o)
{
    return meets_words(words, o, true);
}

static inline bool says_not(struct words *words, const struct outcome *o)
{
    return accept(words, "saying") && meets_words(words, o, false);
}

static inline bool meets_fields(struct words *words, const struct outcome *o)
{
    const struct word *last;
    if (accept(words, "only") && !others_are_zero(o, *words))
        return false;
    do {
        const char *name = take(words)->text;
        struct outcome of = {.value = field_of(o, name)};
        of.none = of.value.text == NULL;
        if (!meets(words, &of))
            return mismatch("%s is %s", name, describe_outcome(&of));
        last = words->at - 1;
    } while (last->comma);
    return true;
}

static inline bool meets_time(struct words *words, const struct outcome *o)
{
    const struct word *range = take(words);
    int64_t took = o->took_ms;
    if (!is_range(range))
        file_error("within is followed by a range");
    if (accept(words, "of"))
        took = o->ended_ms - number_of(take(words));
    struct word took_word = word_number(took);
    return in_range(range, LATE_MS, &took_word) ||
           mismatch("it took %lld ms%s", (long long)took,
               in_range(range, INT64_MAX / 2, &took_word) ? ": too late" : "");
}

static inline bool meets_lease(struct words *words, const struct outcome *o)
{
    int64_t ttl_ms = number_of(take(words));
    uint64_t lease = LEASE_NS(ttl_ms);
    uint64_t deadline = nxl_lock_deadline(o->subject->lock);
    if (deadline >= o->before_ns + lease && deadline <= o->after_ns + lease)
        return true;
    return mismatch("the lease should end %lld ms after the request, and ends "
                    "%lld ms after the call began, %lld after it ended",
        (long long)lease / 1000000,
        (long long)(deadline - o->before_ns) / 1000000,
        (long long)(deadline - o->after_ns) / 1000000);
}

/* Of "sent as extend": by the strategy that this server has for it. */
static inline bool meets_way(struct words *words, const struct outcome *o)
{
    if (!accept(words, "as") || !here)
        file_error("sent as what? Or \"servers: one for each strategy\" is not "
                   "in the file");
    const char *otherwise =
        went_otherwise(&o->ways, way_here(take(words)->text));
    return !otherwise || mismatch("it was %s", otherwise);
}

/* What can come after the value that is expected, or alone. */
static const struct clause {
    const char *word;
    bool (*is_met)(struct words *words, const struct outcome *o);
} clauses[] = {
    {"saying", says},
    {"not", says_not},
    {"with", meets_fields},
    {"within", meets_time},
    {"leasing", meets_lease},
    {"sent", meets_way},
};

/* The one that the next word begins, or NULL. */
static inline const struct clause *next_clause(const struct words *words)
{
    bool is_value = next_is(words, "not") && words->at + 1 < words->end &&
                    !word_is(words->at + 1, "saying");
    for (size_t i = 0; i < sizeof(clauses) / sizeof(clauses[0]); i++)
        if (!is_value && next_is(words, clauses[i].word))
            return &clauses[i];
    return NULL;
}

/* False: it is not as expected; stage.why says what it is. */
static inline bool is_as_expected(struct words words, const struct outcome *o)
{
    const struct clause *first = next_clause(&words);
    if (!o->value.text && (!first || first->is_met != meets_time))
        file_error("it has no value, only a duration");
    if (!first && !meets(&words, o))
        return mismatch("%s", describe_outcome(o));
    while (has(&words)) {
        const struct clause *clause = next_clause(&words);
        if (!clause)
            file_error("\"%s\" is not understood", words.at->text);
        words.at++;
        if (!clause->is_met(&words, o))
            return false;
    }
    return true;
}

#endif
