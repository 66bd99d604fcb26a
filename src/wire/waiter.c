/* SPDX-License-Identifier: MIT */
/* Writes and reads the members of a line. */
#include "wire/waiter.h"

#include "base/buf.h"
#include "base/decimal.h"
#include "model/token.h"
#include "model/verb.h"

#define SEEN_WRAP (INT64_C(1) << 22)
#define SCORE_MAX (INT64_C(1) << 53) /* a double is exact up to this */
#define MS_PER_S 1000
#define US_PER_TICK 31250

bool waiter_append(struct buf *out, const struct verb *verb)
{
    struct decimal lease, window;
    const struct slice words[] = {verb->token, verb->client,
        decimal_of(&lease, verb->ttl_ms), decimal_of(&window, verb->window)};
    bool ok = true;

    for (size_t i = 0; ok && i < sizeof(words) / sizeof(words[0]); i++)
        ok = (i == 0 || buf_append(out, " ", 1)) &&
             buf_append(out, words[i].data, words[i].len);
    return ok;
}

int64_t waiter_tick(int64_t s, int64_t us)
{
    return s * WINDOW_TICKS + us / US_PER_TICK;
}

/* The number that the digits are, or most if it is larger. */
static int64_t number_of(struct slice digits, int64_t most)
{
    int64_t n = 0;

    for (size_t i = 0; i < digits.len && n < most; i++)
        n = 10 * n + (digits.data[i] - '0');
    return n < most ? n : most;
}

/* Takes a word, and the blank behind it, from the text. False: there is none.
 */
static bool take_word(struct slice *text, struct slice *word)
{
    const char *end = memchr(text->data, ' ', text->len);

    *word = (struct slice){
        text->data, end ? (size_t)(end - text->data) : text->len};
    text->data += word->len + (end != NULL);
    text->len -= word->len + (end != NULL);
    return word->len > 0;
}

/* White space that is no blank: the scripts take it for the end of a word (%S
 * in line.lua), and find no member then. */
static bool has_white_space(struct slice word)
{
    for (size_t i = 0; i < word.len; i++)
        if (word.data[i] >= '\t' && word.data[i] <= '\r')
            return true;
    return false;
}

static size_t digits_at_begin(struct slice text)
{
    size_t n = 0;

    while (n < text.len && text.data[n] >= '0' && text.data[n] <= '9')
        n++;
    return n;
}

/* How many ticks of silence the member allows, which is its fourth word; -1: it
 * is no member. */
static int64_t window_of(struct slice member)
{
    struct slice token, client, lease, window;

    if (!take_word(&member, &token) || !take_word(&member, &client) ||
        has_white_space(token) || has_white_space(client) ||
        memchr(client.data, ':', client.len) || !take_word(&member, &lease) ||
        !take_word(&member, &window) || digits_at_begin(lease) != lease.len ||
        digits_at_begin(window) == 0)
        return -1;
    window.len = digits_at_begin(window);
    return number_of(window, SEEN_WRAP);
}

static bool read_score(struct slice text, int64_t *score)
{
    bool negative = text.len > 0 && text.data[0] == '-';
    struct slice digits = {text.data + negative, text.len - negative};

    if (digits.len == 0 || digits_at_begin(digits) != digits.len)
        return false;
    *score = number_of(digits, SCORE_MAX + 1);
    if (*score > SCORE_MAX)
        return false;
    *score = negative ? -*score : *score;
    return true;
}

static struct slice token_of(struct slice member)
{
    const char *end = memchr(member.data, ' ', member.len);
    struct slice token = {
        member.data, end ? (size_t)(end - member.data) : member.len};

    return token_valid(token) ? token : (struct slice){member.data, 0};
}

void waiter_read(
    struct waiter *waiter, struct slice member, struct slice score, int64_t now)
{
    int64_t seen, silent;

    *waiter = (struct waiter){.token = token_of(member), .dead = true};
    if (!read_score(score, &seen))
        return;
    silent = (now - seen) % SEEN_WRAP;
    if (silent < 0)
        silent += SEEN_WRAP;
    if (silent >= SEEN_WRAP / 2) /* in the future: as of now, as in line.lua */
        silent = 0;
    waiter->silent_ms = silent * MS_PER_S / WINDOW_TICKS;
    waiter->dead = silent > window_of(member);
}
