/* SPDX-License-Identifier: MIT */
/* Which of a peer's texts are omitted, and that the others stay as they were.
 */
#include "support/test.h"

#include "base/redact.h"

#define TOKEN "6fa459ea-ee8a-4ca4-894e-db77e160355e"

static struct secrets one_password(const char *password)
{
    static struct slice own;
    struct secrets secrets = {0};
    own = slice_of(password);
    secrets_add(&secrets, &own);
    return secrets;
}

static const char *redacted(const char *text, const char *password)
{
    static struct text t;
    struct secrets secrets = one_password(password);
    text_clear(&t);
    redact_add(&t, slice_of(text), FOREIGN_MAX, &secrets);
    return t.data;
}

static bool occurs(const char *text, const char *password)
{
    struct secrets secrets = one_password(password);
    return secrets_occur(&secrets, slice_of(text));
}

struct row {
    const char *password, *text;
};

#define SECRET REDACTED_SECRET
#define TOKEN_OMITTED REDACTED_TOKEN

static void assert_rows(const struct row *rows, size_t count, bool omitted)
{
    for (size_t i = 0; i < count; i++)
        assert_string_equal(redacted(rows[i].text, rows[i].password),
            omitted ? SECRET : rows[i].text);
}
#define ROWS(rows) rows, sizeof(rows) / sizeof((rows)[0])

static void four_bytes_in_a_row_are_enough(void **state)
{
    (void)state;
    static const struct row omitted[] = {
        {"h0rse.battery", "AUTH h0rse.battery x"},
        {"h0rse.battery", "AUTHh0rse.batteryx"},
        {"h0rse.battery", "the beginning: h0rs"},
        {"h0rse.battery", "tery: the end"},
        {"h0rse.battery", "inside: .bat"},
        {"h0rse.battery", "AUTH H0RSE.BATTERY"},
        {"redis123", "LOADING Redis is loading"},
        {"pass", "no such password"},
        {"p\xc3\xa4ssw0rt", "AUTH p\xc3\xa4s"},
    };
    static const struct row shown[] = {
        {"h0rse.battery", "nothing of that"},
        {"h0rse.battery", "h0r se. bat ter y"},
        {"redis123", "red is 123"},
        {"pass", "pas s"},
    };
    assert_rows(ROWS(omitted), true);
    assert_rows(ROWS(shown), false);
}

static void a_shorter_password_counts_as_a_whole(void **state)
{
    (void)state;
    static const struct row omitted[] = {
        {"a", "LOADING"},
        {"ab1", "cAB12"},
        {"%", "AUTH %25"},
    };
    static const struct row shown[] = {
        {"a", "ERR no"},
        {"ab1", "ab2, b1"},
        {"", "whatever"},
    };
    assert_rows(ROWS(omitted), true);
    assert_rows(ROWS(shown), false);
}

/* Each text has four bytes of the password, and fewer of them as they are. */
static void escaped_bytes_count(void **state)
{
    (void)state;
    static const struct row omitted[] = {
        {"a&b=c", "q=a%26b%3dc"},
        {"a&b=c", "q=a%26b%3Dx"},
        {"a&b=c", "q=%61%26%62%3d!"},
        {"a b c", "q=a+b+"},
        {"a+b+c", "q=a+b%2b"},
        {"a b c", "q=a%20b%20"},
        {"a&b=c", "{\"a\\u0026b\\u003D\"}"},
        {"a&b=c", "'a\\x26b\\x3d'"},
        {"a&b=c", "'a\\46b\\075'"},
        {"a\"b\\c", "'a\\\"b\\\\'"},
        {"a\nb\tc", "'a\\nb\\t'"},
        /* As it stands in the URL, which has %26 for the password's '&'. */
        {"a%26b", "a%26"},
        {"a%26b", "a%2526"},
    };
    static const struct row shown[] = {
        {"a&b=c", "a%2x6b=%3"},
        {"a&b=c", "a\\x 26b\\"},
        {"a&b=c", "a\\777b%"},
        {"a&b=c", "a%26b"},
    };
    assert_rows(ROWS(omitted), true);
    assert_rows(ROWS(shown), false);
}

/* The same, in the plainest way. */
static bool occurs_in(const char *text, const char *password)
{
    size_t run = strlen(password) < 4 ? strlen(password) : 4;
    for (size_t i = 0; run > 0 && i + run <= strlen(password); i++) {
        char part[5] = "";
        memcpy(part, password + i, run);
        if (strstr(text, part))
            return true;
    }
    return false;
}

static void random_texts_are_judged_as_by_a_plain_search(void **state)
{
    (void)state;
    unsigned seed = 7, found = 0;
    for (int turn = 0; turn < 20000; turn++) {
        char text[201] = "", password[81] = "";
        size_t most = 1 + (size_t)rand_r(&seed) % 80;
        for (size_t i = 0; i < most; i++)
            password[i] = "abcdef"[rand_r(&seed) % 6];
        most = (size_t)rand_r(&seed) % 40;
        for (size_t i = 0; i < most; i++)
            text[i] = "abcdef"[rand_r(&seed) % 6];
        found += occurs_in(text, password);
        assert_int_equal(occurs(text, password), occurs_in(text, password));
    }
    assert_in_range(found, 5000, 15000); /* both happen */
}

/* Whatever the set of its runs looks like: all places may collide. */
static void a_long_text_is_searched_to_its_end(void **state)
{
    (void)state;
    char text[1025];
    for (size_t i = 0; i < 1024; i++)
        text[i] = (char)('!' + i * 7919 % 64);
    memcpy(text + 1020, "z0x1", 5);
    assert_true(occurs(text, "yz0x1y"));
    assert_false(occurs(text, "yz0x2y"));
    /* What is not examined must not be shown. */
    struct secrets secrets = one_password("yz0x2y");
    assert_true(secrets_occur(&secrets, (struct slice){text, 1025}));
}

/* A longest password in a text of its own bytes took 600 ms once. */
static void the_time_does_not_grow_with_the_product(void **state)
{
    (void)state;
    static char password[8193], text[65536];
    memset(password, 'a', 8192);
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        text[i] = i % 4 == 3 ? '%' : 'a';
    int64_t before = test_now_ms();
    for (int i = 0; i < 20; i++)
        assert_non_null(strstr(redacted(text, password), "aaa%aaa%"));
    assert_in_range(test_now_ms() - before, 0, 2000);
}

#define BLANKS "  \t \t\t   \t  \t\t \t "
#define BLANK_TOKEN BLANKS BLANKS BLANKS BLANKS BLANKS BLANKS BLANKS BLANKS

static void a_token_is_reason_enough(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "SET k " TOKEN " NX"},
        {"", "SET k " TOKEN "@db7:1:backup"},
        {"", "'6FA459EA-EE8A-4CA4-894E-DB77E160355E'"},
        {"", "6fa459ea-ee8a-4ca4-"},
        {"", "ee8a-4ca4-894e-db77e160355e"},
        {"", "'1795329420" BLANK_TOKEN "' of k"},
        {"", BLANKS BLANKS},
        {"", "7 \\t \\x09" BLANKS BLANKS "x"},
        {"", "at the end" BLANK_TOKEN},
    };
    static const struct row shown[] = {
        {"", "6fa459ea-ee8a-4c"},
        {"", "a line      and   the next"},
        {"", "f_d0b1e2c3f4a5968778695a4b3c2d1e0ff0e1d2c3"},
        {"", "2026-11-22 06:51:00"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(redacted(rows[i].text, ""), TOKEN_OMITTED);
    assert_rows(ROWS(shown), false);
}

/* Wherever a text is cut, in front or for want of room. */
static void nothing_is_cut_open(void **state)
{
    (void)state;
    static const char password[] = "h0rse.battery.staple";
    struct secrets secrets = one_password(password);
    for (size_t before = 0; before < 1100; before++) {
        struct text t;
        char text[1200];
        memset(text, 'z', before);
        snprintf(
            text + before, sizeof(text) - before, " %s %s", password, TOKEN);
        for (size_t most = 16; most <= FOREIGN_MAX; most += 61) {
            text_clear(&t);
            redact_add(&t, slice_of(text), most, &secrets);
            assert_null(strstr(t.data, "h0"));
            assert_null(strstr(t.data, "-4ca4-"));
            assert_true(t.len <= most + 3 || t.len == strlen(SECRET));
        }
    }
}

/* Of what Redis repeats of the arguments nothing is shown, so it is no reason
 * to omit the rest. */
static void the_arguments_do_not_count(void **state)
{
    (void)state;
    assert_string_equal(
        redacted("ERR unknown command 'AUTH', with args beginning with: 'pass'",
            "pass"),
        "ERR unknown command 'AUTH'");
    assert_string_equal(
        redacted(
            "ERR no, with args beginning with: 'h0rse.bat'", "h0rse.battery"),
        "ERR no");
}

static void all_passwords_count(void **state)
{
    (void)state;
    struct secrets secrets = {0};
    struct slice none = {NULL, 0}, first = slice_of("f1rst.key");
    struct slice second = slice_of("s3cond.key"), last = slice_of("th1rd");
    secrets_add(&secrets, &none);
    secrets_add(&secrets, &first);
    secrets_add(&secrets, &second);
    secrets_add(&secrets, &first);
    assert_true(secrets_occur(&secrets, slice_of("a f1rst one")));
    assert_true(secrets_occur(&secrets, slice_of("s3cond")));
    assert_false(secrets_occur(&secrets, slice_of("th1rd")));
    while (secrets.count < SECRETS_MAX)
        secrets_add(&secrets, &second);
    secrets_add(&secrets, &last);
    assert_int_equal(secrets.count, SECRETS_MAX);
}

static void passwords_may_be_replaced(void **state)
{
    (void)state;
    struct secrets secrets = {0};
    struct slice password = {NULL, 0};
    secrets_add(&secrets, &password);
    assert_false(secrets_occur(&secrets, slice_of("n3w.secret")));
    password = slice_of("n3w.secret");
    assert_true(secrets_occur(&secrets, slice_of("n3w.secret")));
    assert_false(secrets_occur(&secrets, slice_of("old.s3cr")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_bytes_in_a_row_are_enough),
        cmocka_unit_test(a_shorter_password_counts_as_a_whole),
        cmocka_unit_test(escaped_bytes_count),
        cmocka_unit_test(random_texts_are_judged_as_by_a_plain_search),
        cmocka_unit_test(a_long_text_is_searched_to_its_end),
        cmocka_unit_test(the_time_does_not_grow_with_the_product),
        cmocka_unit_test(a_token_is_reason_enough),
        cmocka_unit_test(nothing_is_cut_open),
        cmocka_unit_test(the_arguments_do_not_count),
        cmocka_unit_test(all_passwords_count),
        cmocka_unit_test(passwords_may_be_replaced),
    };
    return cmocka_run_group_tests_name("redact", tests, NULL, NULL);
}
