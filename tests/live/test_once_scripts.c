/* SPDX-License-Identifier: MIT */
/* The scripts of work that must be done once, on a real server. */
#include "live/once_cases.h"

static unsigned assert_table(unsigned stride)
{
    struct cell c;
    const char *why;
    unsigned tried = table_differs(stride, &c, &why);

    if (why)
        fail_msg("%s: not %s (%s)", cell_name(&c), why, once_words);
    return tried;
}

static void the_table(void **state)
{
    assert_int_equal(assert_table(1), 2120);
}

static void the_cases(void **state)
{
    for (size_t i = 0; i < ONCE_CASES; i++) {
        const char *why = once_cases[i].run();
        if (why)
            fail_msg("%s: not %s (%s)", once_cases[i].name, why, once_words);
    }
}

/* Whatever a user may not do: a call is refused as a whole, or done. */
static void without_rights(const char *const *rights, size_t count)
{
    struct peer user;
    cell_may_fail = true;
    cell_peer = &user;
    for (size_t i = 0; i < count; i++) {
        peer_as(&user, rights[i]);
        cells_refused = 0;
        assert_table(7);
        if (!strstr(rights[i], "pexpire") && !strstr(rights[i], "psetex"))
            assert_true(cells_refused > 0);
        redisFree(user.c);
    }
    cell_peer = &peer;
    cell_may_fail = false;
}

static void rights_that_are_missing(void **state)
{
    static const char *const rights[] = {
        "+@all ~* &* -set",
        "+@all ~* &* -del",
        "+@all ~* &* -getrange",
        "+@all ~* &* -exists",
        "+@all ~* &* -pttl",
        "+@all ~* &* -time",
        "+@all ~* &* -pexpire",
        "+@all ~* &* -psetex -setex",
        "+@all &* ~k ~{k}:once",
        "+@all &* ~k ~{k}:f",
        "+@all &* ~{k}:once ~{k}:f",
    };
    redis_needs_acl(&server);
    without_rights(rights, sizeof(rights) / sizeof(rights[0]));
}

/* Since Redis 7 there are keys that a user may only read, or only write. */
static void rights_to_half_a_key(void **state)
{
    static const char *const rights[] = {
        "+@all &* %R~k ~{k}:once ~{k}:f",
        "+@all &* ~k %R~{k}:once ~{k}:f",
        "+@all &* ~k ~{k}:once %R~{k}:f",
        "+@all &* %W~k ~{k}:once ~{k}:f",
    };
    redis_needs(&server, 7, "permissions to read a key");
    without_rights(rights, sizeof(rights) / sizeof(rights[0]));
}

static void set_memory(bool full)
{
    redis_run(&server, "CONFIG", "SET", "maxmemory", full ? "1" : "0", NULL);
}

/* Nothing can be begun or told then; it can be released, and looked at. */
static void memory_that_is_full(void **state)
{
    cell_may_fail = true;
    cell_around = set_memory;
    cells_refused = 0;
    assert_table(7);
    assert_true(cells_refused > 20);
    cell_around = NULL;
    cell_may_fail = false;
}

/* The same, by its hash: the server does not know the script at first. */
static void a_script_is_sent_once(void **state)
{
    struct verb verb = case_verb(VERB_FORGET, "A");

    case_clean();
    redis_run(&server, "SCRIPT", "FLUSH", NULL);
    case_terms.line = slice_of("x");
    for (int i = 0; i < 2; i++)
        assert_kind(line_send(&peer, &verb), OUTCOME_NOT_MINE);
    assert_int_equal(redis_calls(&server, "evalsha"), 2);
    assert_int_equal(redis_calls(&server, "eval") > 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(a_script_is_sent_once),
        once_test(the_table),
        once_test(the_cases),
        once_test(rights_that_are_missing),
        once_test(rights_to_half_a_key),
        once_test(memory_that_is_full),
    };
    return cmocka_run_group_tests_name(
        "once_scripts", tests, live_unix, live_stop);
}
