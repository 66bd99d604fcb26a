/* SPDX-License-Identifier: MIT */
/* Messages are zero-ended and cut in time, whatever is added. */
#include "support/test.h"

#include "base/text.h"

static void assert_sound(const struct text *t)
{
    assert_true(t->len < TEXT_MAX);
    assert_int_equal(strlen(t->data), t->len);
}

static void test_adding(void **state)
{
    struct text t;

    (void)state;
    text_clear(&t);
    assert_string_equal(t.data, "");
    text_add(&t, "server ");
    text_addf(&t, "%s:%d", "host", 6379);
    text_add(&t, ": ");
    text_add_foreign(&t, slice_of("-ERR no"));
    assert_string_equal(t.data, "server host:6379: -ERR no");
    assert_sound(&t);
    text_clear(&t);
    assert_string_equal(t.data, "");
    assert_sound(&t);
}

static void test_foreign_bytes_are_made_visible(void **state)
{
    struct text t;

    (void)state;
    text_clear(&t);
    text_add_foreign(&t, (struct slice){"a\0\r\n\x1b\x7f\xff ~!", 10});
    assert_string_equal(t.data, "a\\x00\\x0d\\x0a\\x1b\\x7f\\xff ~!");
    assert_sound(&t);
    text_clear(&t);
    text_add_foreign(&t, (struct slice){NULL, 0});
    assert_string_equal(t.data, "");
}

static void test_foreign_is_limited(void **state)
{
    struct text t;
    char many[300];

    (void)state;
    memset(many, 'z', sizeof(many));
    text_clear(&t);
    text_add_foreign(&t, (struct slice){many, 200});
    assert_int_equal(t.len, 200);
    text_clear(&t);
    text_add_foreign(&t, (struct slice){many, 201});
    assert_int_equal(t.len, 203);
    assert_string_equal(t.data + 199, "z...");

    /* Escapes are four times as long; none is cut in two. */
    memset(many, '\n', sizeof(many));
    text_clear(&t);
    text_add_foreign(&t, (struct slice){many, sizeof(many)});
    assert_sound(&t);
    assert_true(t.len > TEXT_MAX - 5);
    assert_int_equal(t.len % 4, 0);
}

static void test_arguments_are_not_repeated(void **state)
{
    static const char *const said[][2] = {
        {"ERR unknown command 'AUTH', with args beginning with: 'alice' "
         "'S3cret' ",
            "ERR unknown command 'AUTH'"},
        {"ERR unknown command `AUTH`, with args beginning with: `alice`, "
         "`S3cret`, ",
            "ERR unknown command `AUTH`"},
        {", with args beginning with", ""},
        {"ERR unknown command 'X', with args beginning wit",
            "ERR unknown command 'X', with args beginning wit"},
    };
    struct text t;
    char late[300];

    (void)state;
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        text_clear(&t);
        text_add_foreign(&t, slice_of(said[i][0]));
        assert_string_equal(t.data, said[i][1]);
        assert_sound(&t);
    }
    /* Behind what is shown there is nothing to hide. */
    snprintf(late, sizeof(late), "%0200d, with args beginning with: S3cret", 0);
    text_clear(&t);
    text_add_foreign(&t, slice_of(late));
    assert_int_equal(t.len, 200);
    /* A byte of zero hides nothing either. */
    text_clear(&t);
    text_add_foreign(
        &t, (struct slice){"a\0, with args beginning with: S3cret", 36});
    assert_string_equal(t.data, "a\\x00");
}

static void test_durations(void **state)
{
    static const struct {
        uint64_t ms;
        const char *down, *up;
    } rows[] = {
        {0, "0s", "0s"},
        {1, "1ms", "1ms"},
        {999, "999ms", "999ms"},
        {1000, "1s", "1s"},
        {1001, "1s", "1.1s"},
        {9999, "9.9s", "10s"},
        {10001, "10s", "11s"},
        {119999, "119s", "120s"},
        {120000, "2m", "2m"},
        {7199999, "119m", "120m"},
        {7200001, "2h", "3h"},
        {UINT64_C(172800000), "2d", "2d"},
        {UINT64_MAX, "213503982334d", "213503982335d"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct text t;
        text_clear(&t);
        text_add_duration(&t, rows[i].ms, false);
        assert_string_equal(t.data, rows[i].down);
        text_clear(&t);
        text_add_duration(&t, rows[i].ms, true);
        assert_string_equal(t.data, rows[i].up);
    }
}

static void test_cut_at_every_length(void **state)
{
    (void)state;
    for (size_t before = TEXT_MAX - 12; before < TEXT_MAX; before++) {
        for (int how = 0; how < 3; how++) {
            struct text t;
            text_clear(&t);
            for (size_t i = 0; i < before; i++)
                text_add(&t, "-");
            if (how == 0)
                text_add(&t, "0123456789");
            else if (how == 1)
                text_addf(&t, "%s", "0123456789");
            else
                text_add_foreign(&t, slice_of("0123456789"));
            assert_sound(&t);
            size_t most = before + 10 < TEXT_MAX ? before + 10 : TEXT_MAX - 1;
            assert_int_equal(t.len, most);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adding),
        cmocka_unit_test(test_foreign_bytes_are_made_visible),
        cmocka_unit_test(test_foreign_is_limited),
        cmocka_unit_test(test_arguments_are_not_repeated),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_cut_at_every_length),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
