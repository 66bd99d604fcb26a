/* SPDX-License-Identifier: MIT */
/* Records as they stand on a server, and what looks like one. */
#include "support/test.h"

#include <limits.h>

#include "wire/record.h"

#define LINE "once1 done A@db7 17 3 1 111 222 333 -7 2 600000 =abc 12"

static bool parses(const char *line, struct record *r)
{
    /* Behind the line there is nothing. */
    size_t len = strlen(line);
    char *exact = malloc(len ? len : 1);

    assert_non_null(exact);
    memcpy(exact, line, len);
    bool ok = record_parse((struct slice){exact, len}, r);
    if (ok) { /* what it points to is in the line, which is kept for the test */
        r->token.data = line + (r->token.data - exact);
        if (r->fingerprint.len > 0)
            r->fingerprint.data = line + (r->fingerprint.data - exact);
    }
    free(exact);
    return ok;
}

static void every_field(void **state)
{
    struct record r;

    (void)state;
    assert_true(parses(LINE, &r));
    assert_int_equal(r.state, ONCE_DONE);
    assert_true(slice_equal(r.token, slice_of("A@db7")));
    assert_int_equal(r.fence, 17);
    assert_int_equal(r.attempt, 3);
    assert_int_equal(r.doubts, 1);
    assert_int_equal(r.first_ms, 111);
    assert_int_equal(r.since_ms, 222);
    assert_int_equal(r.ended_ms, 333);
    assert_int_equal(r.code, -7);
    assert_int_equal(r.late, 2);
    assert_int_equal(r.keep_ms, 600000);
    assert_true(slice_equal(r.fingerprint, slice_of("abc")));
    assert_int_equal(r.size, 12);
}

static void every_state(void **state)
{
    static const char *const states[] = {
        [ONCE_BEGUN] = "begun",
        [ONCE_DOUBT] = "doubt",
        [ONCE_DONE] = "done",
        [ONCE_FAILED] = "failed",
    };

    (void)state;
    for (int i = ONCE_BEGUN; i <= ONCE_FAILED; i++) {
        char line[128];
        struct record r;
        snprintf(
            line, sizeof(line), "once1 %s T 0 1 0 0 0 0 0 0 0 - 0", states[i]);
        assert_true(parses(line, &r));
        assert_int_equal(r.state, i);
        assert_string_equal(record_state_word((enum once_state)i), states[i]);
        assert_int_equal(r.fingerprint.len, 0);
    }
}

/* The words of LINE, of which one is replaced. NULL: it is left out. */
static void with_word(char *out, size_t size, int place, const char *word)
{
    char line[] = LINE, *save;
    int i = 0;

    *out = '\0';
    for (char *w = strtok_r(line, " ", &save); w;
         w = strtok_r(NULL, " ", &save), i++) {
        const char *put = i == place ? word : w;
        size_t len = strlen(out);
        if (put)
            snprintf(out + len, size - len, "%s%s", len ? " " : "", put);
    }
}

#define WORDS 14

static void numbers_at_their_limits(void **state)
{
    static const struct {
        int place;
        const char *word;
        bool ok;
    } rows[] = {
        {3, "0", true},
        {3, "9007199254740991", true},
        {3, "-1", false},
        {4, "1", true},
        {4, "0", false},
        {4, "-1", false},
        {5, "0", true},
        {5, "-1", false},
        {6, "-1", false},
        {7, "-1", false},
        {8, "-1", false},
        {9, "2147483647", true},
        {9, "2147483648", false},
        {9, "-2147483648", true},
        {9, "-2147483649", false},
        {10, "-1", false},
        {11, "-1", false},
        {13, "-1", true},
        {13, "-2", false},
        {13, "1048576", true},
        {3, "922337203685477580", true},
        {3, "9223372036854775808", false},
        {3, "99999999999999999999999", false},
        {6, "007", true},
        {12, "-", true},
        {12, "=-", true},
        {12, "=", false},
        {12, "abc", false},
        {12, "--", false},
        {12, "=a\tb", false},
        {12, "=\x7f", false},
        {2, "\x01", false},
        {2, "a\xff", false},
        {2, "A", true},
        {1, "Done", false},
        {1, "doneX", false},
        {1, "don", false},
        {0, "once2", false},
        {0, "once", false},
        {0, "once11", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[512];
        struct record r;
        with_word(line, sizeof(line), rows[i].place, rows[i].word);
        if (parses(line, &r) != rows[i].ok)
            fail_msg("%s: %d", line, rows[i].ok);
    }
}

/* Each word is needed, and each number is one. */
static void malformed(void **state)
{
    static const char *const bad[] = {
        "", "x", "1x", "-", "+1", "0x1", "1.5", "1e3", " ", "1 ", " 1", "--1"};
    char line[512];
    struct record r = {.attempt = 42};

    (void)state;
    for (int place = 0; place < WORDS; place++) {
        with_word(line, sizeof(line), place, NULL);
        if (parses(line, &r))
            fail_msg("%s", line);
        bool number = place > 2 && place != 12;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            bool text_ok = !number && !strchr(bad[i], ' ') && bad[i][0];
            with_word(line, sizeof(line), place, bad[i]);
            bool fits =
                text_ok &&
                (place == 2 || (place == 12 && strcmp(bad[i], "-") == 0));
            if (parses(line, &r) != fits)
                fail_msg("'%s': %d", line, fits);
        }
    }
    assert_false(parses(LINE " ", &r));
    assert_false(parses(LINE " 1", &r));
    assert_false(parses(" " LINE, &r));
    assert_false(parses(LINE "\n", &r));
    assert_false(parses("", &r));
    assert_false(record_parse((struct slice){NULL, 0}, &r));
    for (size_t len = 0; len < strlen(LINE) - 2; len++) {
        char part[sizeof(LINE)];
        snprintf(part, sizeof(part), "%.*s", (int)len, LINE);
        if (parses(part, &r))
            fail_msg("'%s'", part);
    }
}

static void a_fingerprint_has_a_limit(void **state)
{
    char word[FINGERPRINT_MAX + 3] = "=", line[512];
    struct record r;

    (void)state;
    memset(word + 1, 'f', FINGERPRINT_MAX);
    with_word(line, sizeof(line), 12, word);
    assert_true(parses(line, &r));
    assert_int_equal(r.fingerprint.len, FINGERPRINT_MAX);
    word[FINGERPRINT_MAX + 1] = 'f';
    with_word(line, sizeof(line), 12, word);
    assert_false(parses(line, &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field),
        cmocka_unit_test(every_state),
        cmocka_unit_test(numbers_at_their_limits),
        cmocka_unit_test(malformed),
        cmocka_unit_test(a_fingerprint_has_a_limit),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
