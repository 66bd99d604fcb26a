/* SPDX-License-Identifier: MIT */
/* The names of the keys that accompany a lock's key: written, and read again.
 */
#include "support/test.h"

#include "model/companion.h"

/* Names that could be mistaken for others, or read beyond their end. */
static const struct {
    const char *data;
    size_t len;
} keys[] = {
#define KEY(text)                                                              \
    {                                                                          \
        text, sizeof(text) - 1                                                 \
    }
    KEY("a"),
    KEY("job:daily"),
    KEY("{"),
    KEY("}"),
    KEY("{}"),
    KEY("}{"),
    KEY("{a"),
    KEY("a}"),
    KEY("{a}"),
    KEY("{{a}"),
    KEY("{{a}}"),
    KEY("{}{a}"),
    KEY("{}}"),
    KEY("a}b{"),
    KEY("x{y}z"),
    KEY("x{}z"),
    KEY(":"),
    KEY("::"),
    KEY("{a}:"),
    KEY("{a}::"),
    KEY(":f"),
    KEY("}:f"),
    KEY("{a}:f"),
    KEY("a:once"),
    KEY("{a}:once"),
    KEY("{a}::once"),
    KEY("{a}::nxl-l"),
    KEY("{a}:nxl-w"),
    KEY("{a}:every"),
    KEY("{a}:every:f"),
    KEY("once"),
    KEY(" "),
    KEY("\n"),
    KEY("*?[]\\"),
    KEY("\0"),
    KEY("a\0b"),
    KEY("{\0}"),
    KEY("{a\0}:f\0"),
    KEY("\xff\xfe"),
#undef KEY
};

static struct slice key_at(size_t i)
{
    return (struct slice){keys[i].data, keys[i].len};
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        for (unsigned what = 0; what < COMPANIONS; what++) {
            struct slice made, again, key;
            enum companion read = COMPANIONS;
            assert_true(companion_make(key_at(i), what, &made));
            assert_int_equal(made.data[made.len], '\0');
            assert_true(companion_of(made, &read, &key));
            assert_int_equal(read, what);
            if (what != COMPANION_COUNTER && what != COMPANION_EVERY)
                assert_true(slice_equal(key, key_at(i)));
            /* Two locks may share these, so the reader may find the other. */
            assert_true(companion_make(key, read, &again));
            assert_true(slice_equal(made, again));
            free((char *)made.data);
            free((char *)again.data);
        }
    }
}

/* Whatever is read as a companion is one that would be written. */
static void nothing_else_is_read(void **state)
{
    static const char *const endings[] = {"", ":f", "}:f", "::f", ":nxl-l",
        "}:nxl-l", "::nxl-l", ":nxl-w", "}:nxl-w", "::nxl-w", ":once", "}:once",
        "::once", ":every", "}:every", "::every", ":once ", ":ONCE", ":nxl-x"};
    size_t found = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        for (size_t j = 0; j < sizeof(endings) / sizeof(endings[0]); j++) {
            size_t len = keys[i].len + strlen(endings[j]);
            char *name = malloc(len); /* no zero byte behind it */
            assert_non_null(name);
            memcpy(name, keys[i].data, keys[i].len);
            memcpy(name + keys[i].len, endings[j], strlen(endings[j]));
            struct slice made, key;
            enum companion what;
            if (companion_of((struct slice){name, len}, &what, &key)) {
                found++;
                assert_true(key.len > 0);
                assert_true(companion_make(key, what, &made));
                assert_true(slice_equal(made, (struct slice){name, len}));
                free((char *)made.data);
            }
            free(name);
        }
    }
    assert_true(found > 0);
}

static void names_of_plain_locks(void **state)
{
    static const char *const names[] = {"", "a", ":f", "a:f", "{a:f", "a}:f",
        "{}:f", "a:once", "a::once", "{a}:onc", "{a}:once:", "{a}:ONCE",
        "x{y}z:once", "{a}", "{}::once", "a:every", "{}:every", "every"};
    struct slice key;
    enum companion what;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_false(companion_of(slice_of(names[i]), &what, &key));
}

static void the_names_that_the_pages_have(void **state)
{
    static const struct {
        const char *name;
        enum companion what;
        const char *key;
    } rows[] = {
        {"{a}:f", COMPANION_COUNTER, "a"},
        {"x{y}z:f", COMPANION_COUNTER, "x{y}z"},
        {"{a}:nxl-l", COMPANION_LINE, "a"},
        {"{a}::nxl-l", COMPANION_LINE, "{a}"},
        {"{a}:nxl-w", COMPANION_LINE_MARK, "a"},
        {"{a}::nxl-w", COMPANION_LINE_MARK, "{a}"},
        {"{a}:once", COMPANION_RECORD, "a"},
        {"{a}::once", COMPANION_RECORD, "{a}"},
        {"{a}:every", COMPANION_EVERY, "a"},
        {"x{y}:every", COMPANION_EVERY, "x{y}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice key;
        enum companion what;
        assert_true(companion_of(slice_of(rows[i].name), &what, &key));
        assert_int_equal(what, rows[i].what);
        assert_true(slice_equal(key, slice_of(rows[i].key)));
    }
}

/* SCAN names no key: memchr() must not be given its null pointer, which the
 * undefined behaviour sanitizer of an instrumented build reports. */
static void a_request_without_a_key(void **state)
{
    struct slice none = {NULL, 0};

    (void)state;
    assert_false(key_has_tag(none));
    assert_false(key_is_apart(none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(nothing_else_is_read),
        cmocka_unit_test(names_of_plain_locks),
        cmocka_unit_test(the_names_that_the_pages_have),
        cmocka_unit_test(a_request_without_a_key),
    };
    return cmocka_run_group_tests_name("companion", tests, NULL, NULL);
}
