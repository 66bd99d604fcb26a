/* SPDX-License-Identifier: MIT */
/* Members of a line: written, read again, and what is no waiter. */
#include "support/test.h"

#include "base/buf.h"
#include "model/verb.h"
#include "wire/waiter.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define WRAP 4194304

static struct waiter read_at(const char *member, const char *score, int64_t now)
{
    struct waiter waiter;
    waiter_read(&waiter, slice_of(member), slice_of(score), now);
    return waiter;
}

static void what_is_written_is_read(void **state)
{
    static const char *const tokens[] = {UUID, UUID "@a", UUID "@@", UUID "@-",
        UUID "@7", UUID "@db7:41233:backup", UUID "@{x}:nxl-l", UUID "@\\\"'",
        UUID "@" UUID};
    static const char *const clients[] = {"-", "c", "{x}", "96"};
    static const uint32_t windows[] = {0, 1, 96, WRAP / 2 - 1};

    (void)state;
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        for (size_t j = 0; j < sizeof(clients) / sizeof(clients[0]); j++) {
            for (size_t k = 0; k < sizeof(windows) / sizeof(windows[0]); k++) {
                struct verb verb = {.token = slice_of(tokens[i]),
                    .client = slice_of(clients[j]),
                    .ttl_ms = 30000,
                    .window = windows[k]};
                struct buf out = {0};
                struct waiter waiter;
                assert_true(waiter_append(&out, &verb));
                struct slice member = {buf_head(&out), buf_len(&out)};
                waiter_read(&waiter, member, slice_of("4194304"), windows[k]);
                assert_true(slice_equal(waiter.token, slice_of(tokens[i])));
                assert_int_equal(
                    waiter.silent_ms, (int64_t)windows[k] * 1000 / 32);
                assert_false(waiter.dead);
                waiter_read(
                    &waiter, member, slice_of("4194304"), windows[k] + 1);
                /* What seems to be in the future counts as now. */
                assert_int_equal(waiter.dead, windows[k] != WRAP / 2 - 1);
                buf_free(&out);
            }
        }
    }
}

static void the_time_is_that_of_the_scripts(void **state)
{
    static const struct {
        const char *score;
        int64_t now, silent;
    } rows[] = {
        {"4194304", 0, 0},
        {"4194304", 32, 32},
        {"4194304", WRAP, 0},
        {"8388607", 0, 1},
        {"8388607", 100 * (int64_t)WRAP, 1},
        {"0", WRAP / 2 - 1, WRAP / 2 - 1},
        {"0", WRAP / 2, 0},
        {"0", WRAP - 1, 0},
        {"-1", 0, 1},
        {"-4194304", 5, 5},
        {"9007199254740992", 3, 3},
        {"4194314", 7, 0},
    };

    (void)state;
    assert_int_equal(waiter_tick(0, 0), 0);
    assert_int_equal(waiter_tick(1, 31249), 32);
    assert_int_equal(waiter_tick(1, 31250), 33);
    assert_int_equal(waiter_tick(1790000000, 999999), 57280000031);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct waiter waiter =
            read_at(UUID " - 1000 4194303", rows[i].score, rows[i].now);
        assert_int_equal(waiter.silent_ms, rows[i].silent * 1000 / 32);
        assert_false(waiter.dead);
    }
}

/* A member without a window is no waiter. */
static void windows_that_are_none(void **state)
{
    static const char *const none[] = {"", " ", "x", UUID, UUID " ",
        UUID " - 1000 ", UUID " - 1000 x", UUID " - 1000 -96", UUID " - 1000",
        UUID " - x 96", UUID "  1000 96", " - 1000 96", UUID "96", "96", " 96",
        UUID " a:b 1000 96", "x\ty - 1000 96", "x\ny - 1000 96",
        UUID "@\v - 1000 96", UUID "\f - 1000 96", UUID "\r - 1000 96",
        UUID " a\tb 1000 96", UUID " a\nb 1000 96", UUID "\t- 1000 96",
        UUID " -\t1000 96", UUID " - 1000\t96", UUID " - 1000\n 96",
        UUID " - 1000 \t96"};

    (void)state;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_true(read_at(none[i], "0", 0).dead);
        assert_true(read_at(none[i], "0", 1).dead);
    }
    /* The other words count for nothing here, nor does what a later version has
     * behind them. */
    static const char *const more[] = {"x y 0 96", UUID "+toy - 1000 96",
        UUID " - 1000 96 ", UUID " - 1000 96 5 x", UUID " - 1000 96.5",
        UUID " - 1000 96\t", UUID " - 1000 96\n5 x", UUID " - 1000 96 a\tb",
        UUID "@\1 \x7f 1000 96", "\xff\x85 \xa0 1000 96"};
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        assert_false(read_at(more[i], "0", 96).dead);
        assert_true(read_at(more[i], "0", 97).dead);
    }
    /* The scripts compare it as a number of any size. */
    assert_false(
        read_at("x y 0 99999999999999999999999", "0", WRAP / 2 - 1).dead);
}

static void scores_and_tokens_that_are_none(void **state)
{
    static const char *const scores[] = {"", "-", "x", "1.5", "1e3", "inf",
        "-inf", "nan", " 1", "1 ", "+1", "0x1", "--1", "9007199254740993",
        "-9007199254740993", "99999999999999999999999"};
    static const char *const members[] = {"", " ", "x - 1000 96",
        "01234567 - 1000 96", UUID "x - 1000 96", UUID "@ - 1000 96",
        " " UUID " - 1000 96", "\n" UUID " - 1000 96"};

    (void)state;
    for (size_t i = 0; i < sizeof(scores) / sizeof(scores[0]); i++) {
        struct waiter waiter = read_at(UUID " - 1000 96", scores[i], 0);
        assert_true(waiter.dead);
        assert_int_equal(waiter.silent_ms, 0);
        assert_true(slice_equal(waiter.token, slice_of(UUID)));
    }
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        assert_int_equal(read_at(members[i], "0", 0).token.len, 0);
}

/* Nothing behind the member and the score is read. */
static void nothing_behind_the_end_is_read(void **state)
{
    static const char text[] = UUID "@label nxl:c 1000 96";

    (void)state;
    for (size_t len = 0; len < sizeof(text); len++) {
        char *member = malloc(len ? len : 1), *score = malloc(1);
        struct waiter waiter;
        assert_non_null(member);
        assert_non_null(score);
        memcpy(member, text, len);
        *score = '5';
        waiter_read(
            &waiter, (struct slice){member, len}, (struct slice){score, 1}, 5);
        assert_int_equal(waiter.silent_ms, 0);
        free(member);
        free(score);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(the_time_is_that_of_the_scripts),
        cmocka_unit_test(windows_that_are_none),
        cmocka_unit_test(scores_and_tokens_that_are_none),
        cmocka_unit_test(nothing_behind_the_end_is_read),
    };
    return cmocka_run_group_tests_name("waiter", tests, NULL, NULL);
}
