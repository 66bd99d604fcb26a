/* SPDX-License-Identifier: MIT */
/*
 * What the command does to the URLs of Sentinels: which password is taken out,
 * hidden or asked for, what is the same server, and what leads to a replica.
 */
#include "support/test.h"

#include "cli/servers/urls.h"

#define LONG_HOST "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static struct url_list list_of(const char *text)
{
    struct url_list list;
    assert_true(url_list_make(&list, &text, 1));
    return list;
}

static const struct row {
    const char *url, *stripped, *hidden;
} rows[] = {
    {"redis+sentinel://u:pw@h,i/m?sentinel_password=t",
        "redis+sentinel://u@h,i/m",
        "redis+sentinel://u:**@h,i/m?"
        "sentinel_password=*"},
    {"redis+sentinel://h/m?sentinel_user=s&sentinel_password=t%26&db=1",
        "redis+sentinel://h/m?sentinel_user=s&db=1",
        "redis+sentinel://h/m?sentinel_user=s&sentinel_password=****&db=1"},
    {"redis+sentinel://h/m?password=p&sentinel_password=t&"
     "sentinel_password=x",
        "redis+sentinel://h/m",
        "redis+sentinel://h/m?password=*&"
        "sentinel_password=*&sentinel_password=*"},
    {"redis+sentinel://:p,q@h,i/m", "redis+sentinel://h,i/m",
        "redis+sentinel://:***@h,i/m"},
    {"redis+sentinel://h,i/m?sentinel_password_file=/f",
        "redis+sentinel://h,i/m?sentinel_password_file=/f",
        "redis+sentinel://h,i/m?sentinel_password_file=/f"},
};

static void passwords_are_taken_out_and_hidden(void **state)
{
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct url_list list = list_of(rows[i].url);
        assert_int_equal(list.count, 1);
        url_list_strip_passwords(&list);
        assert_string_equal(list.urls[0], rows[i].stripped);
        url_list_free(&list);
        strcpy(text, rows[i].url);
        url_hide_passwords(text);
        assert_string_equal(text, rows[i].hidden);
    }
}

static void each_login_has_a_password(void **state)
{
    static const struct {
        const char *url;
        bool shows, names, has_all, lacks_sentinels;
    } cases[] = {
        {"redis+sentinel://h/m", false, false, false, false},
        {"redis+sentinel://:p@h/m", true, true, false, false},
        {"redis+sentinel://h/m?sentinel_password=t", true, false, false, false},
        {"redis+sentinel://:p@h/m?sentinel_password=t", true, true, true,
            false},
        {"redis+sentinel://h/m?password_file=/f&sentinel_password_file=/g",
            false, true, true, false},
        {"redis+sentinel://h/m?sentinel_user=s", false, false, false, true},
        {"redis://:p@h", true, true, true, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct url_facts facts = url_facts(cases[i].url);
        print_message("%s\n", cases[i].url);
        assert_true(facts.valid);
        assert_int_equal(facts.shows_password, cases[i].shows);
        assert_int_equal(facts.names_password, cases[i].names);
        assert_int_equal(facts.names_all, cases[i].has_all);
        assert_int_equal(
            facts.lacks_sentinel_password, cases[i].lacks_sentinels);
        assert_false(facts.lacks_password);
    }
    assert_true(url_facts("redis://h?user=u").lacks_password);
    assert_false(url_facts("redis://h?user=u&password_file=/f").lacks_password);
    /* A malformed URL may have one. */
    assert_true(url_may_have_password("redis://h?sentinel_password=t"));
    assert_true(url_may_have_password("redis+sentinel://h/m?"
                                      "sentinel_password=t"));
    assert_false(url_may_have_password("redis+sentinel://h"));
    char value[URL_VALUE_ROOM];
    assert_true(url_text("redis+sentinel://h/m?sentinel_password=t",
        "sentinel_password", value, sizeof(value)));
    assert_string_equal(value, "t");
}

/* The name of a long list is shortened, and no password may go to others. */
static void the_same_servers_have_the_same_sentinels(void **state)
{
#define LIST LONG_HOST "," LONG_HOST "2," LONG_HOST "3"
    static const struct {
        const char *one, *other;
        bool same;
    } cases[] = {
        {"redis+sentinel://h,i/m", "redis+sentinel://u:p@h:26379,i/m/0", true},
        {"redis+sentinel://h,i/m", "redis+sentinel://h/m", false},
        {"redis+sentinel://h/m", "redis+sentinel://h/n", false},
        {"redis+sentinel://h/m", "rediss+sentinel://h/m", false},
        {"redis+sentinel://h/m", "redis://h", false},
        {"redis+sentinel://" LIST ",a/m", "redis+sentinel://" LIST ",a/m",
            true},
        {"redis+sentinel://" LIST ",a/m", "redis+sentinel://" LIST ",b/m",
            false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("%s %s\n", cases[i].one, cases[i].other);
        assert_int_equal(
            url_same_server(cases[i].one, cases[i].other), cases[i].same);
    }
}

/* A value reads back as it was, whatever its bytes, behind what is there. */
static void values_are_encoded(void **state)
{
    static const char *const urls[] = {"redis://h", "redis://h?", "unix:///s",
        "redis://h?db=1", "redis://h?db=1&", "redis+sentinel://h,i/m"};
    char value[256 - ' '], read[URL_VALUE_ROOM];
    size_t length = 0;

    (void)state;
    for (unsigned byte = ' '; byte < 256; byte++)
        if (byte != 0x7f)
            value[length++] = (char)byte;
    value[length] = '\0';
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct url_list list = list_of(urls[i]);
        assert_true(url_list_set(&list, 0, "password", value));
        assert_true(url_text(list.urls[0], "password", read, sizeof(read)));
        assert_string_equal(read, value);
        assert_int_equal(
            url_has_parameter(list.urls[0], "db"), strstr(urls[i], "db") != 0);
        url_list_free(&list);
    }
}

static void which_connections_use_tls(void **state)
{
    (void)state;
    assert_true(url_facts("redis+sentinel://h/m?sentinel_tls=1").uses_tls);
    assert_false(url_facts("redis+sentinel://h/m?sentinel_tls=1").encrypts);
    assert_true(url_facts("rediss+sentinel://h/m?sentinel_tls=0").encrypts);
    assert_false(url_facts("redis+sentinel://h/m").uses_tls);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_taken_out_and_hidden),
        cmocka_unit_test(each_login_has_a_password),
        cmocka_unit_test(the_same_servers_have_the_same_sentinels),
        cmocka_unit_test(values_are_encoded),
        cmocka_unit_test(which_connections_use_tls),
    };
    return cmocka_run_group_tests_name("cli_urls", tests, NULL, NULL);
}
