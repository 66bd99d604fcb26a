/* SPDX-License-Identifier: MIT */
/* Reads the first line of a record. */
#include "wire/record.h"

#include <limits.h>
#include <string.h>

#include "model/token.h"

bool fingerprint_valid(const char *word)
{
    return word_valid(word, FINGERPRINT_MAX);
}

/* Takes the next word. Empty: there is none, or two blanks follow each other.
 */
static struct slice next_word(struct slice *line)
{
    if (line->len == 0)
        return *line;

    const char *blank = memchr(line->data, ' ', line->len);
    size_t len = blank ? (size_t)(blank - line->data) : line->len;
    struct slice word = {line->data, len};

    line->data += len + (blank ? 1 : 0);
    line->len -= len + (blank ? 1 : 0);
    return word;
}

/* Takes a number of at least least, which is 0 or negative. */
static bool take_number(struct slice *line, int64_t least, int64_t *number)
{
    bool negative = line->len > 1 && line->data[0] == '-';
    size_t at = negative;
    int64_t n = 0;

    for (; at < line->len && line->data[at] != ' '; at++) {
        char c = line->data[at];
        if (c < '0' || c > '9' || n > (INT64_MAX - 9) / 10)
            return false;
        n = 10 * n + (c - '0');
    }
    bool any = at > negative;
    bool blank = at < line->len;
    *line = (struct slice){line->data + at + blank, line->len - at - blank};
    *number = negative ? -n : n;
    return any && *number >= least;
}

static bool is_printable(struct slice word)
{
    for (size_t i = 0; i < word.len; i++)
        if (word.data[i] <= ' ' || word.data[i] > '~')
            return false;
    return word.len > 0;
}

static const char *const state_words[] = {
    [ONCE_BEGUN] = "begun",
    [ONCE_DOUBT] = "doubt",
    [ONCE_DONE] = "done",
    [ONCE_FAILED] = "failed",
};

const char *record_state_word(enum once_state state)
{
    return state_words[state];
}

const char *record_state_shown(enum once_state state)
{
    return state == ONCE_DOUBT ? "in doubt" : record_state_word(state);
}

static bool take_state(struct slice *line, enum once_state *state)
{
    struct slice word = next_word(line);

    for (unsigned i = 0; i < sizeof(state_words) / sizeof(*state_words); i++) {
        if (state_words[i] && slice_equal(word, slice_of(state_words[i]))) {
            *state = (enum once_state)i;
            return true;
        }
    }
    return false;
}

static bool take_fingerprint(struct slice *line, struct slice *fingerprint)
{
    struct slice word = next_word(line);

    *fingerprint = (struct slice){NULL, 0};
    if (slice_equal(word, slice_of("-")))
        return true;
    if (word.len < 2 || word.data[0] != '=' || word.len - 1 > FINGERPRINT_MAX ||
        !is_printable(word))
        return false;
    *fingerprint = (struct slice){word.data + 1, word.len - 1};
    return true;
}

bool record_parse(struct slice line, struct record *record)
{
    struct record r = {0};
    int64_t fence, code;
    const struct {
        int64_t *number, least;
    } numbers[] = {{&fence, 0}, {&r.attempt, 0}, {&r.doubts, 0},
        {&r.first_ms, 0}, {&r.since_ms, 0}, {&r.ended_ms, 0}, {&code, INT_MIN},
        {&r.late, 0}, {&r.keep_ms, 0}};

    if (!slice_equal(next_word(&line), slice_of("once1")) ||
        !take_state(&line, &r.state))
        return false;
    r.token = next_word(&line);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!take_number(&line, numbers[i].least, numbers[i].number))
            return false;
    if (!take_fingerprint(&line, &r.fingerprint))
        return false;
    bool last = line.len > 0 && !memchr(line.data, ' ', line.len);
    if (!last || !take_number(&line, -1, &r.size) || !is_printable(r.token) ||
        r.attempt < 1 || code > INT_MAX)
        return false;
    r.fence = (uint64_t)fence;
    r.code = (int)code;
    *record = r;
    return true;
}
