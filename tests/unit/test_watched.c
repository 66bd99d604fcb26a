/* SPDX-License-Identifier: MIT */
/*
 * The strategy of a transaction, whatever is replied: a change is sent only
 * after MULTI was accepted and the value was the token, and no way out leaves a
 * transaction open. What each reply means is decided once more by
 * tests/fuzz/meaning.h.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

static const char *const spoken_words[] = {"+OK", "-NOPERM x", "-WRONGTYPE x",
    ":0", ":500", ":-1", "nil", "$T", "$other"};

#define WORDS (sizeof(spoken_words) / sizeof(spoken_words[0]))

static bool is_number(const char *reply)
{
    return reply[0] == ':';
}

/* May the change go out after these replies? Written down once more. */
static bool may_change(char letter, const char *const *reply)
{
    if (strcmp(reply[0], "+OK") != 0 || strcmp(reply[1], "$T") != 0 ||
        strcmp(reply[4], "+OK") != 0)
        return false;
    if (!is_number(reply[2]) || !is_number(reply[3]) ||
        strcmp(reply[3], ":0") == 0)
        return false;
    return letter == 'r' || strcmp(reply[2], ":-1") != 0;
}

static void try_replies(char letter, const char *const *reply)
{
    enum exchange_next next;
    char said[200];

    begin(letter, 1);
    sends();
    for (int i = 0; i < 5; i++) {
        next = answer(reply[i]);
        assert_true(i == 4 || next == EXCHANGE_WAIT);
    }
    snprintf(said, sizeof(said), "%c %s %s %s %s %s", letter, reply[0],
        reply[1], reply[2], reply[3], reply[4]);
    dialog = said;
    const char *sent = next == EXCHANGE_AGAIN ? sends() : "";
    const char *change = letter == 'r' ? "DEL k; EXEC" : "PEXPIRE k 1000; EXEC";
    bool changes = strcmp(sent, change) == 0;
    check(changes == may_change(letter, reply), sent, "the other way");
    if (strcmp(reply[4], "+OK") == 0) {
        check(changes || strcmp(sent, "DISCARD") == 0, sent, "DISCARD");
        check(dialect.in_transaction == &x, "others may send", "only x may");
    } else if (reply[4][0] == '-') {
        check(strcmp(sent, "DISCARD") != 0, sent, "no transaction");
        check(!dialect.in_transaction, "nobody else may send", "others may");
    }
    if (next == EXCHANGE_DONE)
        check(x.outcome.kind == OUTCOME_NOT_MINE ||
                  x.outcome.kind == OUTCOME_FAULT ||
                  (letter == 'e' && strcmp(reply[2], ":-1") == 0),
            outcome(), "no");
}

/* Whatever five replies come: no change without a value that is the token and
 * an accepted MULTI, and no open transaction is left behind. */
static void all_replies_before_the_change(void **state)
{
    size_t all = WORDS * WORDS * WORDS * WORDS * WORDS;

    (void)state;
    for (size_t n = 0; n < all; n++) {
        const char *reply[5];
        size_t rest = n;
        for (int i = 0; i < 5; i++, rest /= WORDS)
            reply[i] = spoken_words[rest % WORDS];
        try_replies('r', reply);
        try_replies('e', reply);
    }
}

static void all_replies_to_the_change(void **state)
{
    static const char *const words[] = {"+QUEUED", "+OK", "-OOM x", "-NOPERM x",
        "-EXECABORT x", "-WRONGTYPE x", "nil", ":1", "$T", "[]", "[:1]", "[:0]",
        "[:2]", "[:1 :1]", "[-OOM x]", "[-WRONGTYPE x]", "[nil]"};
    static const char *const before[] = {"+OK", "$T", ":500", ":1", "+OK"};
    const size_t count = sizeof(words) / sizeof(words[0]);

    (void)state;
    for (size_t n = 0; n < count * count; n++) {
        const char *queued = words[n / count], *executed = words[n % count];
        char said[64];
        snprintf(said, sizeof(said), "%s, %s", queued, executed);
        begin('r', 1);
        sends();
        for (int i = 0; i < 5; i++)
            answer(before[i]);
        sends();
        dialog = said;
        assert_int_equal(answer(queued), EXCHANGE_WAIT);
        enum exchange_next next = answer(executed);
        bool mine = next == EXCHANGE_DONE && x.outcome.kind == OUTCOME_MINE;
        bool yes = queued[0] == '+' && strcmp(executed, "[:1]") == 0;
        check(mine == yes, outcome(), yes ? "mine" : "no");
        const char *sent = next == EXCHANGE_AGAIN ? sends() : "";
        bool ended =
            executed[0] != '-' || strncmp(executed, "-EXECABORT", 10) == 0;
        if (!ended)
            check(strcmp(sent, "DISCARD") == 0, sent, "DISCARD");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_replies_before_the_change),
        cmocka_unit_test(all_replies_to_the_change),
    };
    return cmocka_run_group_tests_name("watched", tests, NULL, NULL);
}
