/* SPDX-License-Identifier: MIT */
/* What is hidden of a peer's text, and that the rest stays as it was. */
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

static const char *redacted(const char *text, const char *password, bool cut)
{
    static struct text t;
    struct secrets secrets = one_password(password);
    text_clear(&t);
    redact_add(&t, slice_of(text), cut, FOREIGN_MAX, &secrets);
    return t.data;
}

struct row {
    const char *password, *text, *shown;
};

#define LEFT_OUT "[text hidden: it contains the password]"

static void assert_rows(const struct row *rows, size_t count, bool cut)
{
    for (size_t i = 0; i < count; i++)
        assert_string_equal(
            redacted(rows[i].text, rows[i].password, cut), rows[i].shown);
}
#define ROWS(rows) rows, sizeof(rows) / sizeof((rows)[0])

static void passwords_are_replaced(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"h0rse.battery", "AUTH h0rse.battery x", "AUTH [hidden] x"},
        {"h0rse.battery", "AUTHh0rse.batteryx", "AUTH[hidden]x"},
        {"h0rse.battery", "h0rse.batteryh0rse.battery", "[hidden]"},
        {"h0rse.battery", "AUTH H0RSE.BATTERY", "AUTH [hidden]"},
        {"h0rse.battery", "nothing of that", "nothing of that"},
        {"h0rse&b t/%", "q=h0rse%26b+t%2f%25&x", "q=[hidden]&x"},
        {"h0rse&b t/%", "q=%68%30rse%26b%20t/%25!", "q=[hidden]!"},
        {"h0rse&b t\\", "{\"h0rse\\u0026b t\\\\\"}", "{\"[hidden]\"}"},
        {"h0rse&b\n\"t", "'h0rse&b\\n\\\"t'", "'[hidden]'"},
        {"h0rse&b\n\"t", "'\\150\\x30rse\\46b\\012\\42t'", "'[hidden]'"},
        {"h0rse&b<t'>\"", "h0rse&amp;b&lt;t&#39;&gt;&quot;.", "[hidden]."},
        {"h0rse&b<t'>\"", "h0rse&#x26;b&#60;t&apos;&gt;&#034;.", "[hidden]."},
        /* As it stands in the URL, which holds %26 for the password's '&'. */
        {"h0rse%26b", "h0rse%26b, h0rse%2526b", "[hidden], [hidden]"},
        {"p\xc3\xa4ssw0rt", "AUTH p\xc3\xa4ssw0rt", "AUTH [hidden]"},
        {"1234567890", "id 12345678901", "id [hidden]1"},
    };
    assert_rows(ROWS(rows), false);
}

static void words_leave_nothing(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"password", "WRONGPASS invalid username-password pair", LEFT_OUT},
        {"correcthorse", "AUTH correcthorse", LEFT_OUT},
        {"correcthorse", "AUTHCORRECTHORSEX", LEFT_OUT},
        {"h2x!", "AUTH h2x!", LEFT_OUT},
        {"pass", "AUTH pass", LEFT_OUT},
        {"pass", "no such thing", "no such thing"},
        {"wrong", "WRONGPASS invalid", "WRONGPASS invalid"},
        {"wrong", "AUTH WRONG", LEFT_OUT},
        {"wrong", "AUTHwrong", LEFT_OUT},
        {"h2x&", "AUTH h2x%26", LEFT_OUT},
    };
    assert_rows(ROWS(rows), false);
}

/* By chance they are in every text. */
static void short_ones_have_to_be_words(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a", "LOADING Redis is loading data", "LOADING Redis is loading data"},
        {"a", "AUTH a", LEFT_OUT},
        {"a", "a", LEFT_OUT},
        {"ab1", "'ab1'", LEFT_OUT},
        {"ab1", "$3\r\nab1\r\n", LEFT_OUT},
        {"ab1", "cab12", "cab12"},
        {"!", "what !", LEFT_OUT},
        {"!", "what!", "what!"},
        {"%", "AUTH %25", LEFT_OUT},
    };
    assert_rows(ROWS(rows), false);
}

static void parts_are_hidden(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* A long part anywhere; any part that a peer has cut off. */
        {"h0rse.battery.staple", "[h0rse.battery...]", "[[hidden]..]"},
        {"h0rse.battery.staple", "(.battery.staple)", "([hidden])"},
        {"h0rse.battery.staple", "AUTH h0rse", "AUTH [hidden]"},
        {"h0rse.battery.staple", ".stap1e AUTH", ".stap1e AUTH"},
        {"h0rse.battery.st4ple", ".st4ple AUTH", "[hidden] AUTH"},
        {"password-of-mine", "ERR invalid password", "ERR invalid password"},
    };
    static const struct row cut[] = {
        {"correcthorse", "AUTH corr", LEFT_OUT},
        {"password-of-mine", "AUTH pass", "AUTH [hidden]"},
        {"password-of-mine", "mine AUTH", "[hidden] AUTH"},
        {"hunter2", "AUTH hunter", LEFT_OUT},
        {"hunter2", "AUTH hun", "AUTH hun"},
    };
    assert_rows(ROWS(rows), false);
    assert_rows(ROWS(cut), true);
}

#define BLANKS "  \t \t\t   \t  \t\t \t "
#define BLANK_TOKEN BLANKS BLANKS BLANKS BLANKS BLANKS BLANKS BLANKS BLANKS

static void tokens_are_hidden(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", "SET k " TOKEN " NX", "SET k [hidden] NX"},
        {"", "SET k " TOKEN "@db7:1:backup", "SET k [hidden]@db7:1:backup"},
        {"", "'6FA459EA-EE8A-4CA4-894E-DB77E160355E'", "'[hidden]'"},
        {"", "6fa459ea-ee8a-4ca4-", "[hidden]"},
        {"", "ee8a-4ca4-894e-db77e160355e", "[hidden]"},
        {"", "6fa459ea-ee8a-4c", "6fa459ea-ee8a-4c"},
        {"", "'1795329420" BLANK_TOKEN "' of k", "'1795329420[hidden]' of k"},
        {"", BLANKS BLANKS, "[hidden]"},
        {"", "7 \\t \\x09" BLANKS BLANKS "x", "7[hidden]x"},
        {"", "at the end" BLANK_TOKEN, "at the end[hidden]"},
        {"", "a line      and   the next", "a line      and   the next"},
        {"", "f_d0b1e2c3f4a5968778695a4b3c2d1e0ff0e1d2c3",
            "f_d0b1e2c3f4a5968778695a4b3c2d1e0ff0e1d2c3"},
        {"", "2026-11-22 06:51:00", "2026-11-22 06:51:00"},
    };
    struct text t;
    assert_rows(ROWS(rows), false);
    text_clear(&t);
    redact_add(&t, slice_of(TOKEN), false, FOREIGN_MAX, NULL);
    assert_string_equal(t.data, "[hidden]");
}

/* What is cut for want of room was hidden before. */
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
            redact_add(&t, slice_of(text), false, most, &secrets);
            assert_null(strstr(t.data, "h0"));
            assert_null(strstr(t.data, "-4ca4-"));
            assert_true(t.len <= most + 3);
        }
    }
}

/* Of what Redis repeats of the arguments nothing is shown, so it is no reason
 * to leave out the rest. */
static void the_arguments_do_not_count(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"pass", "ERR unknown command 'AUTH', with args beginning with: 'pass'",
            "ERR unknown command 'AUTH'"},
        {"h0rse.battery", "ERR no, with args beginning with: 'h0rse.battery'",
            "ERR no"},
    };
    assert_rows(ROWS(rows), false);
}

static void all_passwords_are_hidden(void **state)
{
    (void)state;
    struct secrets secrets = {0};
    struct text t;
    struct slice none = {NULL, 0}, first = slice_of("f1rst.secret");
    struct slice second = slice_of("s3cond.secret");
    secrets_add(&secrets, &none);
    secrets_add(&secrets, &first);
    secrets_add(&secrets, &second);
    secrets_add(&secrets, &first);
    text_clear(&t);
    redact_add(&t, slice_of("f1rst.secret and s3cond.secret"), false,
        FOREIGN_MAX, &secrets);
    assert_string_equal(t.data, "[hidden] and [hidden]");
    while (secrets.count < SECRETS_MAX)
        secrets_add(&secrets, &second);
    secrets_add(&secrets, &first);
    assert_int_equal(secrets.count, SECRETS_MAX);
}

static void passwords_may_be_replaced(void **state)
{
    (void)state;
    struct secrets secrets = {0};
    struct slice password = {NULL, 0};
    struct text t;
    secrets_add(&secrets, &password);
    password = slice_of("n3w.secret");
    text_clear(&t);
    redact_add(
        &t, slice_of("old.s3cret, n3w.secret"), false, FOREIGN_MAX, &secrets);
    assert_string_equal(t.data, "old.s3cret, [hidden]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_replaced),
        cmocka_unit_test(words_leave_nothing),
        cmocka_unit_test(short_ones_have_to_be_words),
        cmocka_unit_test(parts_are_hidden),
        cmocka_unit_test(tokens_are_hidden),
        cmocka_unit_test(nothing_is_cut_open),
        cmocka_unit_test(the_arguments_do_not_count),
        cmocka_unit_test(all_passwords_are_hidden),
        cmocka_unit_test(passwords_may_be_replaced),
    };
    return cmocka_run_group_tests_name("redact", tests, NULL, NULL);
}
