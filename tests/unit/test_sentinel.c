/* SPDX-License-Identifier: MIT */
/* A handshake with a Sentinel says that it is one, and what it monitors. */
#include "handshake_rig.h"

/* A Sentinel is named whatever it says to the login before. */
static void test_sentinel(void **state)
{
    static const struct {
        const char *info, *why;
    } cases[] = {
        {"redis_mode:sentinel\r\n",
            "this is a Sentinel, which stores no locks"},
        {"# Server\r\nserver_name:valkey\r\nserver_mode:sentinel\r\n"
         "sentinel_masters:2\r\n"
         "master0:name=pay,status=ok,address=10.0.0.7:6379,slaves=1\r\n"
         "master1:name=o d,status=odown,address=::1:6380,slaves=0\r\n",
            "this is a Sentinel, which stores no locks; it monitors pay at "
            "10.0.0.7:6379, o?d at ::1:6380"},
        {"redis_mode:sentinel\r\nmaster0:name=\r\nmaster1:address=\r\n"
         "master2:address\r\nmaster3:,=,,\r\nmaster4",
            "this is a Sentinel, which stores no locks"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct handshake h;
        struct reply info = words(REPLY_STRING, cases[i].info);
        begin(&h, &nobody, 2 + SCRIPTS_LOADED);
        assert_waits(&h, integer(1));
        assert_fails(&h, info, FAULT_IS_SENTINEL);
        assert_string_equal(h.why, cases[i].why);
        begin(&h, &full, 4 + SCRIPTS_LOADED);
        assert_waits(&h, words(REPLY_ERROR, "WRONGPASS invalid"));
        assert_waits(&h, words(REPLY_ERROR, "ERR unknown command 'SELECT'"));
        assert_waits(&h, integer(1));
        assert_fails(&h, info, FAULT_IS_SENTINEL);
        assert_string_equal(h.why, cases[i].why);
        assert_int_equal(h.refused, FAULT_NONE);
    }
}

/* However many there are. */
static void test_sentinel_of_many(void **state)
{
    char text[4096];
    size_t used =
        (size_t)snprintf(text, sizeof(text), "redis_mode:sentinel\r\n");
    struct handshake h;

    (void)state;
    for (int i = 0; i < 30; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used,
            "master%d:name=a-name-of-some-length,address=10.0.0.%d:6379\r\n", i,
            i);
    begin(&h, &nobody, 2 + SCRIPTS_LOADED);
    assert_waits(&h, integer(1));
    assert_fails(&h, words(REPLY_STRING, text), FAULT_IS_SENTINEL);
    assert_int_equal(strlen(h.why), sizeof(h.why) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentinel),
        cmocka_unit_test(test_sentinel_of_many),
    };
    return cmocka_run_group_tests_name("sentinel", tests, NULL, NULL);
}
