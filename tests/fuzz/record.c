/* SPDX-License-Identifier: MIT */
/*
 * Records of work that must be done once. What is one is decided a second time
 * here, word by word; and what was read, written again, is the same line.
 */
#include "wire/record.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define WORDS 14
#define DIGITS "0123456789"

static bool is_number(const char *word, int64_t least)
{
    bool negative = word[0] == '-' && word[1] != '\0';
    const char *digits = word + negative;

    if (*digits == '\0' || strspn(digits, DIGITS) != strlen(digits))
        return false;
    while (*digits == '0' && digits[1] != '\0')
        digits++;
    if (strlen(digits) > 18) /* some of 19 digits are read, others are not */
        return false;
    return strtoll(word, NULL, 10) >= least;
}

static bool is_state(const char *word)
{
    return strcmp(word, "begun") == 0 || strcmp(word, "doubt") == 0 ||
           strcmp(word, "done") == 0 || strcmp(word, "failed") == 0;
}

static bool is_fingerprint(const char *word)
{
    size_t len = strlen(word);

    return strcmp(word, "-") == 0 ||
           (word[0] == '=' && len > 1 && len <= FINGERPRINT_MAX + 1);
}

static bool is_record(char *const word[WORDS])
{
    for (int i = 3; i < 12; i++) {
        int64_t least = i == 9 ? INT_MIN : i == 4;
        if (!is_number(word[i], least))
            return false;
    }
    return strcmp(word[0], "once1") == 0 && is_state(word[1]) &&
           word[2][0] != '\0' && fuzz_printable(word[2]) &&
           strtoll(word[9], NULL, 10) <= INT_MAX && is_fingerprint(word[12]) &&
           fuzz_printable(word[12]) && is_number(word[13], -1);
}

/* Cuts the text at its blanks. Returns how many words there are, at most one
 * more than word has room for. */
static int cut_words(char *text, char *word[WORDS])
{
    int count = 0;

    for (char *rest = text; rest && count <= WORDS; count++) {
        char *next = strsep(&rest, " ");
        if (count < WORDS)
            word[count] = next;
    }
    return count;
}

/* A number of more than 18 digits: see is_number(). */
static bool has_long_number(char *const word[WORDS])
{
    for (int i = 3; i < WORDS; i++)
        if (i != 12 && strlen(word[i]) > 18)
            return true;
    return false;
}

static void check_again(const struct record *r)
{
    static const char *const states[] = {
        "", "begun", "doubt", "done", "failed"};
    struct record again;
    char *line;
    int len = asprintf(&line,
        "once1 %s %.*s %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
        " %" PRId64 " %d %" PRId64 " %" PRId64 " %s%.*s %" PRId64,
        states[r->state], (int)r->token.len, r->token.data, r->fence,
        r->attempt, r->doubts, r->first_ms, r->since_ms, r->ended_ms, r->code,
        r->late, r->keep_ms, r->fingerprint.len ? "=" : "-",
        (int)r->fingerprint.len, r->fingerprint.len ? r->fingerprint.data : "",
        r->size);

    CHECK(len > 0);
    CHECK(record_parse((struct slice){line, (size_t)len}, &again));
    CHECK(again.state == r->state && slice_equal(again.token, r->token));
    CHECK(again.fence == r->fence && again.attempt == r->attempt);
    CHECK(again.doubts == r->doubts && again.late == r->late);
    CHECK(again.first_ms == r->first_ms && again.since_ms == r->since_ms);
    CHECK(again.ended_ms == r->ended_ms && again.keep_ms == r->keep_ms);
    CHECK(again.code == r->code && again.size == r->size);
    CHECK(slice_equal(again.fingerprint, r->fingerprint));
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = fuzz_text_len((const char *)data, size);
    char *text = fuzz_copy(data, len);
    char *word[WORDS];
    struct record r, untouched;

    memset(&r, 'z', sizeof(r));
    untouched = r;
    char *exact = malloc(len ? len : 1); /* nothing is behind it */
    CHECK(exact != NULL);
    memcpy(exact, data, len);
    bool good = record_parse((struct slice){exact, len}, &r);
    bool cut = cut_words(text, word) == WORDS;
    if (!cut || !has_long_number(word))
        CHECK(good == (cut && is_record(word)));
    if (good)
        check_again(&r);
    else
        CHECK(memcmp(&r, &untouched, sizeof(r)) == 0);
    fuzz_count(good);
    free(text);
    free(exact);
    return 0;
}
