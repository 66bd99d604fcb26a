/* SPDX-License-Identifier: MIT */
/* What is embedded is what the server will know it by. What the scripts do
 * is tested on a real server, in tests/live. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/script.h"

static void test_names_and_length(void **state)
{
    (void)state;
    assert_string_equal(scripts[SCRIPT_EXTEND].name, "extend");
    assert_string_equal(scripts[SCRIPT_INSPECT].name, "inspect");
    assert_string_equal(scripts[SCRIPT_RELEASE].name, "release");
    for (int i = 0; i < SCRIPTS; i++) {
        assert_int_equal(scripts[i].body.len, strlen(scripts[i].body.data));
        assert_in_range(scripts[i].body.len, 50, 20000);
    }
}

/* sha1sum's word for it, as another judge than the embedder's library. */
static void sha1_of(struct slice body, char out[41])
{
    char path[] = "/tmp/nxlock-script-XXXXXX";
    char command[64];
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, body.data, body.len), body.len);
    close(fd);
    snprintf(command, sizeof(command), "sha1sum %s", path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t got = fread(out, 1, 40, pipe);
    int status = pclose(pipe);
    unlink(path);
    if (status != 0 || got != 40)
        skip();
    out[40] = '\0';
}

static void test_sha1(void **state)
{
    (void)state;
    for (int i = 0; i < SCRIPTS; i++) {
        char sha1[41];
        sha1_of(scripts[i].body, sha1);
        assert_string_equal(scripts[i].sha1, sha1);
    }
}

static void test_rules_of_the_house(void **state)
{
    static const char *const forbidden[] = {
        "#!",              /* a header makes a full server refuse the whole */
        "--",              /* comments need not travel */
        "'GET'",           /* a stranger's value may be huge */
        ".call('PUBLISH'", /* may be denied after the write */
        "\t",
    };

    (void)state;
    for (int i = 0; i < SCRIPTS; i++) {
        const char *body = scripts[i].body.data;
        bool counts =
            i == SCRIPT_FENCE || i == SCRIPT_RAISE || i == SCRIPT_SHARED_FENCE;
        bool of_record =
            i == SCRIPT_BEGIN || i == SCRIPT_TELL || i == SCRIPT_FORGET;
        /* What reads the leases of several holders. */
        bool reads_clock = counts || i == SCRIPT_HOLD_BACK ||
                           strstr(body, "local function several_holders(");
        /* No write after it before Redis 3.2, and not without asking then. */
        assert_int_equal(strstr(body, "'TIME'") != NULL, reads_clock);
        assert_true(!reads_clock || strstr(body, "redis.replicate_commands()"));
        /* Up to 4.0, not even then if something was written before. */
        if (i == SCRIPT_RELEASE)
            assert_true(strstr(body, "redis.replicate_commands()") <
                        strstr(body, "'DEL', key, mark)"));
        assert_int_equal(strstr(body, "KEYS[2]") != NULL,
            counts || i == SCRIPT_LINE_WAIT || i == SCRIPT_TAKE ||
                i == SCRIPT_HOLD_BACK || of_record);
        if (i != SCRIPT_ACQUIRE && i != SCRIPT_HOLD_BACK) /* nothing */
            assert_true(strstr(body, "'GETRANGE', KEYS[1], '0', '511')") ||
                        strstr(body, "'GETRANGE', key, '0', '511')"));
        for (size_t k = 0; k < sizeof(forbidden) / sizeof(forbidden[0]); k++)
            if (strstr(body, forbidden[k]))
                fail_msg("%s has %s", scripts[i].name, forbidden[k]);
    }
}

/* How often the text has the word. */
static unsigned count_word(const char *text, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    size_t len = strlen(word);
    unsigned count = 0;

    for (const char *at = text; (at = strstr(at, word)); at += len)
        count += (at == text || !strchr(letters, at[-1])) &&
                 (!at[len] || !strchr(letters, at[len]));
    return count;
}

/* A function takes time at each call of the script even if it is not called: it
 * is there once, and something uses it. */
static void test_every_function_is_used(void **state)
{
    static const char begin[] = "\nlocal function ";
    unsigned functions = 0;

    (void)state;
    for (int i = 0; i < SCRIPTS; i++) {
        const char *at = scripts[i].body.data;
        while ((at = strstr(at, begin))) {
            char name[32], again[64];
            at += strlen(begin);
            assert_int_equal(sscanf(at, "%31[a-z_]", name), 1);
            snprintf(again, sizeof(again), "%s%s(", begin, name);
            if (strstr(at, again))
                fail_msg("%s has %s twice", scripts[i].name, name);
            if (count_word(at, name) < 2)
                fail_msg("%s does not use %s", scripts[i].name, name);
            functions++;
        }
    }
    assert_in_range(functions, 40, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_length),
        cmocka_unit_test(test_sha1),
        cmocka_unit_test(test_rules_of_the_house),
        cmocka_unit_test(test_every_function_is_used),
    };
    return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
