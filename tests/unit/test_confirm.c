/* SPDX-License-Identifier: MIT */
/*
 * Which primary a majority of the Sentinels names: each row is what they have
 * said, and what is concluded.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "core/confirm.h"

#define LISTED 5
#define S NS_PER_S

struct said {
    char id;      /* 0: it has not answered */
    char primary; /* its host; 0: it knows no such service */
    uint64_t asked_s, since_s;
    unsigned others;
};

static const struct {
    const char *story;
    unsigned listed;
    struct said said[LISTED];
    unsigned needed, answered;
    char primary; /* 0: there is none */
    uint64_t asked_s, since_s;
} rows[] = {
    {"the only one", 1, {{'1', 'A', 9, 4, 0}}, 1, 1, 'A', 9, 4},
    {"all agree: the second latest counts", 3,
        {{'1', 'A', 9, 4, 2}, {'2', 'A', 7, 5, 2}, {'3', 'A', 8, 6, 2}}, 2, 3,
        'A', 8, 6},
    {"one does not answer", 3, {{'1', 'A', 9, 4, 2}, {'2', 'A', 7, 5, 2}}, 2, 2,
        'A', 7, 5},
    {"two do not answer", 3, {{'1', 'A', 9, 4, 2}}, 2, 1, 0, 0, 0},
    {"one of the minority names another", 3,
        {{'1', 'B', 9, 9, 2}, {'2', 'A', 9, 4, 2}, {'3', 'A', 9, 4, 2}}, 2, 3,
        'A', 9, 4},
    {"no two agree", 3,
        {{'1', 'A', 9, 4, 2}, {'2', 'B', 9, 9, 2}, {'3', 'C', 9, 9, 2}}, 2, 3,
        0, 0, 0},
    {"too few are listed", 1, {{'1', 'A', 9, 4, 2}}, 2, 1, 0, 0, 0},
    {"two of three are listed", 2, {{'1', 'A', 9, 4, 2}, {'2', 'A', 9, 4, 2}},
        2, 2, 'A', 9, 4},
    {"one of them knows more than the others", 3,
        {{'1', 'A', 9, 4, 2}, {'2', 'A', 9, 4, 4}}, 3, 2, 0, 0, 0},
    {"the same one under two addresses", 3,
        {{'1', 'A', 9, 4, 2}, {'1', 'A', 8, 4, 2}}, 2, 1, 0, 0, 0},
    {"the same one asked at the same time", 3,
        {{'1', 'A', 9, 4, 2}, {'1', 'A', 9, 4, 2}, {'2', 'A', 9, 5, 2}}, 2, 2,
        'A', 9, 5},
    {"of the same one the later answer counts", 3,
        {{'1', 'A', 8, 4, 2}, {'1', 'B', 9, 9, 2}, {'2', 'A', 9, 4, 2}}, 2, 2,
        0, 0, 0},
    {"one knows no such service", 3,
        {{'1', 'A', 9, 4, 2}, {'2', 'A', 9, 4, 2}, {'3', 0, 0, 0, 0}}, 2, 3,
        'A', 9, 4},
    {"three of five", 5,
        {{'1', 'A', 9, 1, 4}, {'2', 'A', 8, 2, 4}, {'3', 'A', 7, 3, 4},
            {'4', 'B', 9, 9, 4}, {'5', 'B', 9, 9, 4}},
        3, 5, 'A', 7, 3},
    {"not all at the same time: the first one may name B by now", 3,
        {{'1', 'A', 7, 4, 2}, {'2', 'A', 9, 8, 2}, {'3', 'B', 9, 6, 2}}, 2, 3,
        0, 0, 0},
    {"one that was asked long ago does not know since when", 3,
        {{'1', 'A', 4, 1, 2}, {'2', 'A', 9, 7, 2}, {'3', 'A', 9, 8, 2}}, 2, 3,
        'A', 9, 8},
    {"of four, three are needed", 4,
        {{'1', 'A', 9, 1, 3}, {'2', 'A', 8, 2, 3}, {'3', 'B', 7, 3, 3},
            {'4', 'B', 9, 9, 3}},
        3, 4, 0, 0, 0},
};

static struct sentinel_views confirm_of(size_t row)
{
    struct sentinel_views c = {
        .listed = rows[row].listed, .count = rows[row].listed};
    for (unsigned i = 0; i < c.count; i++) {
        const struct said *said = &rows[row].said[i];
        c.views[i] = (struct sentinel_view){.id = {said->id},
            .host = {said->primary},
            .port = 6379,
            .asked_at = said->asked_s * S,
            .since = said->since_s * S,
            .others = said->others};
    }
    return c;
}

static void test_majority(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct sentinel_views c = confirm_of(row);
        struct sentinel_view named;
        bool any = confirm_primary(&c, &named);
        if (confirm_needed(&c) != rows[row].needed ||
            confirm_answered(&c) != rows[row].answered ||
            any != (rows[row].primary != 0))
            fail_msg("%s: %u needed, %u answered, %d", rows[row].story,
                confirm_needed(&c), confirm_answered(&c), any);
        if (any && (named.host[0] != rows[row].primary || named.port != 6379 ||
                       named.asked_at != rows[row].asked_s * S ||
                       named.since != rows[row].since_s * S))
            fail_msg("%s: %s at %llu since %llu", rows[row].story, named.host,
                (unsigned long long)(named.asked_at / S),
                (unsigned long long)(named.since / S));
    }
}

/* A port is a part of the address. */
static void test_ports(void **state)
{
    struct sentinel_views c = confirm_of(1);
    struct sentinel_view named;
    (void)state;
    c.views[0].port = c.views[1].port = 6380;
    assert_true(confirm_primary(&c, &named));
    assert_int_equal(named.port, 6380);
    assert_int_equal(confirm_count(&c, "A", 6379, 0), 1);
    assert_int_equal(confirm_count(&c, "A", 6380, 0), 2);
    assert_int_equal(confirm_count(&c, "B", 6380, 0), 0);
}

static bool is_current(const struct sentinel_views *c, unsigned i)
{
    return confirm_is_current(&c->views[i], confirm_current_from(c));
}

/* One that has not answered for 2 s does not count. */
static void test_who_still_answers(void **state)
{
    struct sentinel_views c = confirm_of(1);
    (void)state;
    for (unsigned i = 0; i < c.count; i++) {
        memcpy(c.views[i].host, "A", sizeof("A"));
        c.views[i].asked_at = 10 * S;
    }
    assert_int_equal(confirm_count_current(&c, "A", 6379), c.count);
    c.views[0].asked_at = 8 * S;
    assert_int_equal(confirm_count_current(&c, "A", 6379), c.count);
    assert_true(is_current(&c, 0));
    c.views[0].asked_at--;
    assert_int_equal(confirm_count_current(&c, "A", 6379), c.count - 1);
    assert_false(is_current(&c, 0));
    assert_true(is_current(&c, 1));

    assert_int_equal(confirm_count(&c, "A", 6379, 0), c.count);
    assert_int_equal(confirm_count_current(&c, "B", 6379), 0);
    c.views[1].asked_at = 0;
    assert_false(is_current(&c, 1));
}

/* What it has said of itself before counts, if it was asked shortly before. */
static void test_what_it_says_now(void **state)
{
    (void)state;
    static const struct {
        char id, primary;
        uint64_t asked_s, since_s, then_s;
    } looks[] = {
        {'1', 'A', 12, 12, 4}, {'1', 'A', 12, 3, 3},
        {'1', 'A', 13, 13, 13}, /* three seconds later */
        {'1', 'B', 12, 12, 12},
        {'2', 'A', 12, 12, 12}, /* another one is at the address */
    };
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
        struct sentinel_view v = {.id = {'1'},
            .host = {'A'},
            .port = 6379,
            .asked_at = 10 * S,
            .since = 4 * S};
        const struct sentinel_view seen = {.id = {looks[i].id},
            .host = {looks[i].primary},
            .port = 6379,
            .asked_at = looks[i].asked_s * S,
            .since = looks[i].since_s * S};
        confirm_take(&v, &seen);
        assert_true(v.since == looks[i].then_s * S);
        assert_true(v.asked_at == seen.asked_at && v.host[0] == seen.host[0]);
    }
}

/* From when the answer came: the question may have waited for long. */
static void test_since_when(void **state)
{
    (void)state;
    assert_true(confirm_since(10 * S, 4 * S) == 6 * S);
    assert_true(confirm_since(10 * S, 0) == 10 * S);
    assert_true(confirm_since(10 * S, 11 * S) > 0); /* 0 is unknown */
}

static void test_how_long_it_counts(void **state)
{
    (void)state;
    assert_false(confirm_covers(0, 1));
    assert_true(confirm_covers(10 * S, 5 * S));
    assert_true(confirm_covers(10 * S, 12 * S));
    assert_false(confirm_covers(10 * S, 12 * S + 1));
    assert_true(confirm_is_old(0, 5 * S));
    assert_false(confirm_is_old(10 * S, 11 * S));
    assert_true(confirm_is_old(10 * S, 11 * S + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_majority),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_who_still_answers),
        cmocka_unit_test(test_what_it_says_now),
        cmocka_unit_test(test_since_when),
        cmocka_unit_test(test_how_long_it_counts),
    };
    return cmocka_run_group_tests_name("confirm", tests, NULL, NULL);
}
