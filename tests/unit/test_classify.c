/* SPDX-License-Identifier: MIT */
/*
 * Error replies of real servers, from unit/scenes/errors.txt, and what each
 * means for a lock.
 */
#include "support/test.h"

#include "unit/fault_names.h"
#include "wire/classify.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"

static struct row {
    int line;
    enum fault fault;
    char *text;
} rows[300];
static size_t count;

/* The text between the first quote and the last one, with hashes in it. */
static char *text_of(char *line, int number)
{
    char *end = strrchr(line, '"'), *hash = strstr(line, "$SHA"), *text = NULL;

    if (!end || end == line)
        fail_msg("errors.txt:%d: no text", number);
    *end = '\0';
    if (hash)
        *hash = '\0';
    assert_true(asprintf(&text, "%s%s%s", line + 1, hash ? SHA : "",
                    hash ? hash + strlen("$SHA") : "") >= 0);
    return text;
}

static enum fault fault_called(const char *name)
{
    for (int fault = 0; fault < FAULT_CLASSES; fault++)
        if (fault_name((enum fault)fault) &&
            !strcmp(fault_name((enum fault)fault), name))
            return (enum fault)fault;
    fail_msg("errors.txt: %s is no fault", name);
    return FAULT_NONE;
}

static int read_rows(void **state)
{
    char *line = NULL;
    size_t room = 0;
    enum fault fault = FAULT_NONE;
    FILE *file = fopen(SCENES_DIR "/errors.txt", "r");

    (void)state;
    assert_non_null(file);
    for (int number = 1; getline(&line, &room, file) >= 0; number++) {
        line[strcspn(line, "\n")] = '\0';
        if (*line == '=')
            fault = fault_called(line + 2);
        if (*line != '"')
            continue;
        assert_true(count < sizeof(rows) / sizeof(*rows));
        rows[count++] = (struct row){number, fault, text_of(line, number)};
    }
    free(line);
    fclose(file);
    return count > 100 ? 0 : -1;
}

static int free_rows(void **state)
{
    (void)state;
    while (count > 0)
        free(rows[--count].text);
    return 0;
}

/* All that are wrong, not only the first one; and that a script is not there is
 * the one error that is answered at once. */
static void test_every_text(void **state)
{
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        struct slice text = slice_of(rows[i].text);
        enum fault fault = classify_error(text);
        bool noscript = strncmp(rows[i].text, "NOSCRIPT ", 9) == 0;
        if (fault == rows[i].fault && error_is_noscript(text) == noscript)
            continue;
        print_error("errors.txt:%d: %s, expected %s: %s\n", rows[i].line,
            fault_name(fault), fault_name(rows[i].fault), rows[i].text);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* A cut text is another text; it must be read no further than it goes. The
 * copy has just its size, so that a memory checker sees a step too far. */
static void test_reads_within_the_slice(void **state)
{
    (void)state;
    for (size_t i = 0; i < count; i++) {
        for (size_t len = 0; len < strlen(rows[i].text); len++) {
            char *copy = malloc(len + (len == 0));
            assert_non_null(copy);
            memcpy(copy, rows[i].text, len);
            enum fault fault = classify_error((struct slice){copy, len});
            assert_true(fault > FAULT_NONE && fault < FAULT_CLASSES);
            free(copy);
        }
    }
    assert_int_equal(
        classify_error((struct slice){"READONLY", 4}), FAULT_SERVER);
}

static void test_noscript(void **state)
{
    (void)state;
    assert_true(error_is_noscript(slice_of("NOSCRIPT")));
    assert_false(error_is_noscript(slice_of("NOSCRIPTS")));
    assert_false(error_is_noscript(slice_of("ERR NOSCRIPT")));
    assert_false(error_is_noscript(slice_of("")));
}

/* How much of a text is shown whatever the passwords are. */
static void test_known(void **state)
{
    (void)state;
    static const struct {
        const char *text, *known;
    } known[] = {
        {"WRONGPASS invalid username", "WRONGPASS"},
        {"NOAUTH", "NOAUTH"},
        {"ERR invalid password s3cret", "ERR invalid password"},
        {"ERR s3cret", ""},
        {"NOAUTHs3cret", ""},
        {"s3cret NOAUTH", ""},
        {"EXECABORT Transaction discarded because of: OOM s3cret",
            "EXECABORT Transaction discarded because of: OOM"},
        {"EXECABORT Transaction discarded because of: s3cret",
            "EXECABORT Transaction discarded because of: "},
        {"ERR Error running script (call to f_1): @user_script:1: -OOM s3cret",
            "ERR "},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        size_t length = classify_known(slice_of(known[i].text));
        assert_int_equal(length, strlen(known[i].known));
        assert_memory_equal(known[i].text, known[i].known, length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_text),
        cmocka_unit_test(test_reads_within_the_slice),
        cmocka_unit_test(test_noscript),
        cmocka_unit_test(test_known),
    };
    return cmocka_run_group_tests_name("classify", tests, read_rows, free_rows);
}
