/* SPDX-License-Identifier: MIT */
/*
 * The strategy of a transaction: a change is sent only after MULTI was accepted
 * and the value was the token, and no way out leaves a transaction open.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"
/* clang-format off */

#define READ "> WATCH k; GETRANGE k 0 511; PTTL k; EXISTS k; MULTI\n"
#define MATCHES READ "+OK\n$T\n:500\n:1\n+OK\n"
#define DEL "> DEL k; EXEC\n"
#define PEXPIRE "> PEXPIRE k 1000; EXEC\n"
#define DISCARD "> DISCARD\n"
#define ABORTED "-EXECABORT Transaction discarded because of previous errors.\n"
#define BECAUSE "EXECABORT Transaction discarded because of: "
#define RETRIED \
    "retry: EXECABORT Transaction discarded because of previous errors."
#define STAMPS "> TIME; GETRANGE k 0 511\n" NOPERM NOPERM
#define DENIED "no permission: NOPERM this user may not"

static void the_value_is_the_token(void **state)
{
    static const struct row rows[] = {
        {'r', 1, MATCHES DEL "+QUEUED\n[:1]", "mine"},
        {'r', 1, MATCHES DEL "+QUEUED\n[:0]", "not mine"},
        {'r', 1, READ "+OK\n$T\n:-1\n:1\n+OK\n" DEL "+QUEUED\n[:1]", "mine"},
        {'r', 1, READ "+OK\n$T\n:5000\n:1\n+OK\n" DEL "+QUEUED\n[:1]", "mine"},
        {'e', 1, MATCHES PEXPIRE "+QUEUED\n[:1]", "mine 1000"},
        {'e', 1, MATCHES PEXPIRE "+QUEUED\n[:0]", "not mine"},
        {'e', 1, READ "+OK\n$T\n:0\n:1\n+OK\n" PEXPIRE "+QUEUED\n[:1]",
            "mine 1000"},
        {'k', 1, MATCHES PEXPIRE "+QUEUED\n[:1]", "mine"},
    };

    (void)state;
    PLAY(rows);
}

/* An extend never shortens: then there is nothing to be done. */
static void what_stands_long_enough_is_left_alone(void **state)
{
    static const struct row rows[] = {
        {'e', 1, READ "+OK\n$T\n:1001\n:1\n+OK\n" DISCARD "+OK", "mine 1001"},
        {'e', 1, READ "+OK\n$T\n:5000\n:1\n+OK\n" DISCARD "+OK", "mine 5000"},
        {'e', 1, READ "+OK\n$T\n:-1\n:1\n+OK\n" DISCARD "+OK",
            "mine for ever"},
        /* Before 2.8 this is a key that has gone away. */
        {'e', 1, READ "+OK\n$T\n:-1\n:0\n+OK\n" DISCARD "+OK", "not mine"},
    };

    (void)state;
    PLAY(rows);
}

static void the_value_is_another(void **state)
{
    static const struct row rows[] = {
        {'r', 1, READ "+OK\n$other\n:500\n:1\n+OK\n" DISCARD "+OK",
            "not mine"},
        {'r', 1, READ "+OK\n$T@a\n:500\n:1\n+OK\n" DISCARD "+OK", "not mine"},
        {'r', 1, READ "+OK\n$\n:500\n:1\n+OK\n" DISCARD "+OK", "not mine"},
        {'r', 1, READ "+OK\n$\n:-2\n:0\n+OK\n" DISCARD "+OK", "not mine"},
        {'r', 1, READ "+OK\n$T\n:-2\n:0\n+OK\n" DISCARD "+OK", "not mine"},
        {'r', 1, READ "+OK\n" WRONGTYPE ":500\n:1\n+OK\n" DISCARD "+OK",
            "not mine: WRONGTYPE Operation against a key"},
        {'e', 1, READ "+OK\n$other\n:500\n:1\n+OK\n" DISCARD "+OK",
            "not mine"},
        {'e', 1, READ "+OK\n$other\n:-1\n:1\n+OK\n" DISCARD "+OK",
            "not mine"},
        {'e', 1, READ "+OK\n$\n:-2\n:0\n+OK\n" DISCARD "+OK", "not mine"},
        {'e', 1, READ "+OK\n" WRONGTYPE ":500\n:1\n+OK\n" DISCARD "+OK",
            "not mine: WRONGTYPE Operation against a key"},
        /* Of a decision nothing is taken back. */
        {'r', 1, READ "+OK\n$other\n" NOPERM NOPERM "+OK\n" DISCARD "+OK",
            "not mine"},
        {'r', 1, READ "+OK\n$other\n:500\n:1\n" NOPERM, "not mine"},
        {'r', 1, READ "+OK\n$other\n:500\n:1\n+OK\n" DISCARD NOPERM,
            "not mine"},
    };

    (void)state;
    PLAY(rows);
}

static void answers_that_are_none(void **state)
{
    static const struct row rows[] = {
        {'r', 1, READ "$OK\n$T\n:500\n:1\n+OK\n" DISCARD "+OK", BROKEN},
        {'r', 1, READ ":1\n$T\n:500\n:1\n+OK\n" DISCARD "+OK", BROKEN},
        {'r', 1, READ "+OK\n+T\n:500\n:1\n+OK\n" DISCARD "+OK", BROKEN},
        {'r', 1, READ "+OK\nnil\n:500\n:1\n+OK\n" DISCARD "+OK", BROKEN},
        {'r', 1, READ "+OK\n[$T]\n:500\n:1\n+OK\n" DISCARD "+OK", BROKEN},
        {'r', 1, READ "+OK\n$T\nnil\n:1\n+OK\n" DISCARD "+OK", BROKEN},
        {'r', 1, READ "+OK\n$T\n:500\n$1\n+OK\n" DISCARD "+OK", BROKEN},
        {'r', 1, MATCHES DEL "$QUEUED\n[:1]", BROKEN},
        {'r', 1, MATCHES DEL ":1\n[:1]", BROKEN},
        {'r', 1, MATCHES DEL "nil\n[:1]", BROKEN},
        {'r', 1, MATCHES DEL "+QUEUED\n:1", BROKEN},
        {'r', 1, MATCHES DEL "+QUEUED\n+OK", BROKEN},
        {'r', 1, MATCHES DEL "+QUEUED\n$1", BROKEN},
        {'r', 1, MATCHES DEL "+QUEUED\n[]", BROKEN},
        {'r', 1, MATCHES DEL "+QUEUED\n[:1 :1]", BROKEN},
        {'r', 1, MATCHES DEL "+QUEUED\n[:2]", BROKEN},
        {'r', 1, MATCHES DEL "+QUEUED\n[:-1]", BROKEN},
        {'r', 1, MATCHES DEL "+QUEUED\n[nil]", BROKEN},
        {'r', 1, MATCHES DEL "+QUEUED\n[+OK]", BROKEN},
        {'e', 1, MATCHES PEXPIRE "+QUEUED\n[:2]", BROKEN},
        {'e', 1, MATCHES PEXPIRE "+QUEUED\n[]", BROKEN},
    };

    (void)state;
    PLAY(rows);
}

/* The first refusal is the one that counts; nothing was done. */
static void refused_before_the_change(void **state)
{
    static const struct row rows[] = {
        {'r', 1, READ "-LOADING x\n-A x\n-B x\n-C x\n-LOADING x",
            "retry: LOADING x"},
        {'r', 1, READ "-LOADING x\n$T\n:500\n:1\n+OK\n" DISCARD "+OK",
            "retry: LOADING x"},
        {'r', 1, READ "+OK\n-MASTERDOWN x\n:500\n:1\n+OK\n" DISCARD "+OK",
            "elsewhere: MASTERDOWN x"},
        {'r', 1, READ "+OK\n$T\n:500\n-BUSY x\n+OK\n" DISCARD "-BUSY y",
            "retry: BUSY x"},
        {'r', 1, READ "+OK\n$T\n:500\n:1\n-LOADING x", "retry: LOADING x"},
        {'r', 1, READ "+OK\n$T\n:500\n:1\n-ERR strange",
            "server, unsure: ERR strange"},
        {'r', 1, READ NOPERM NOPERM NOPERM NOPERM NOPERM
            "> EVALSHA sha:release 1 k T", NULL},
        {'r', 1, READ UNKNOWN "$T\n:500\n:1\n+OK\n" DISCARD "+OK\n"
            "> EVALSHA sha:release 1 k T", NULL},
        {'r', 1, READ "+OK\n" NOPERM ":500\n:1\n+OK\n" DISCARD "+OK\n"
            "> EVALSHA sha:release 1 k T", NULL},
        {'e', 1, READ "+OK\n$T\n" UNKNOWN ":1\n+OK\n" DISCARD "+OK\n"
            "> EVALSHA sha:extend 1 k T 1000", NULL},
        {'r', 1, READ "+OK\n$T\n:500\n:1\n" NOPERM
            "> EVALSHA sha:release 1 k T", NULL},
    };

    (void)state;
    PLAY(rows);
}

static void refused_when_it_was_queued(void **state)
{
    static const struct row rows[] = {
        {'r', 1, MATCHES DEL "-OOM x\n" ABORTED, "full: OOM x"},
        {'r', 1, MATCHES DEL "-READONLY x\n" ABORTED, "elsewhere: READONLY x"},
        {'r', 1, MATCHES DEL NOPERM ABORTED "> EVALSHA sha:release 1 k T",
            NULL},
        /* The first words count, whatever EXEC is refused for. */
        {'r', 1, MATCHES DEL "-OOM x\n-" BECAUSE "NOPERM y", "full: OOM x"},
        {'r', 1, MATCHES DEL NOPERM "-" BECAUSE "OOM y\n"
            "> EVALSHA sha:release 1 k T", NULL},
        {'e', 1, MATCHES PEXPIRE UNKNOWN ABORTED
            "> EVALSHA sha:extend 1 k T 1000", NULL},
        /* 2.2 and 2.4 execute the rest, which is nothing. */
        {'r', 1, MATCHES DEL "-OOM x\n[]", "full: OOM x"},
        {'r', 1, MATCHES DEL NOPERM "[]\n> EVALSHA sha:release 1 k T", NULL},
        {'r', 1, MATCHES DEL "-OOM x\nnil", "full: OOM x"},
    };

    (void)state;
    PLAY(rows);
}

static void refused_when_it_was_executed(void **state)
{
    static const struct row rows[] = {
        {'r', 1, MATCHES DEL "+QUEUED\n" ABORTED, RETRIED},
        {'r', 1, MATCHES DEL "+QUEUED\n[-WRONGTYPE x]",
            "not mine: WRONGTYPE x"},
        {'r', 1, MATCHES DEL "+QUEUED\n[-OOM x]", "full: OOM x"},
        {'r', 1, MATCHES DEL "+QUEUED\n[-ERR strange]",
            "server, unsure: ERR strange"},
        /* Only EXECABORT ends the transaction. */
        {'r', 1, MATCHES DEL "+QUEUED\n-MISCONF x\n" DISCARD "+OK",
            "refusing: MISCONF x"},
        {'r', 1, MATCHES DEL "+QUEUED\n-ERR strange\n" DISCARD "+OK",
            "server, unsure: ERR strange"},
        {'r', 1, MATCHES DEL "+QUEUED\n" NOPERM DISCARD
            "-ERR DISCARD without MULTI\n> EVALSHA sha:release 1 k T", NULL},
        {'e', 1, MATCHES PEXPIRE "+QUEUED\n-BUSY x\n" DISCARD "+OK",
            "retry: BUSY x"},
    };

    (void)state;
    PLAY(rows);
}

/* Was it open still? The first three say that it is not any more. */
static void a_discard_is_refused(void **state)
{
    static const char *const replies[] = {"+OK", "-ERR DISCARD without MULTI",
        "-EXECABORT x", "-NOPERM x", "-LOADING x", "-ERR DISCARD"};

    (void)state;
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        begin('r', 1);
        play(MATCHES DEL "+QUEUED\n-LOADING x\n" DISCARD, NULL);
        assert_int_equal(answer(replies[i]), EXCHANGE_DONE);
        assert_int_equal(x.phase == EXCHANGE_PHASE_STUCK, i >= 3);
    }
}

/* Since 7.0 EXECABORT tells what EXEC was refused for: that is the class. */
static void aborted_for_a_cause(void **state)
{
    static const struct row rows[] = {
        {'r', 1, MATCHES DEL "+QUEUED\n-" BECAUSE "NOPERM x\n"
            "> EVALSHA sha:release 1 k T", NULL},
        {'e', 1, MATCHES PEXPIRE "+QUEUED\n-" BECAUSE "NOPERM x\n"
            "> EVALSHA sha:extend 1 k T 1000", NULL},
        {'r', 1, MATCHES DEL "+QUEUED\n-" BECAUSE "OOM x",
            "full: " BECAUSE "OOM x"},
        {'r', 1, MATCHES DEL "+QUEUED\n-" BECAUSE "READONLY x",
            "elsewhere: " BECAUSE "READONLY x"},
        {'r', 1, MATCHES DEL "+QUEUED\n-" BECAUSE "strange",
            "server, unsure: " BECAUSE "strange"},
    };

    (void)state;
    PLAY(rows);
    /* No way is left: the words are whole, and the transaction is over. */
    begin('r', 1);
    play(MATCHES DEL "+QUEUED\n-" BECAUSE "NOPERM x\n"
         "> EVALSHA sha:release 1 k T\n" UNKNOWN STAMPS,
        "no permission: " BECAUSE "NOPERM x");
    assert_int_not_equal(x.phase, EXCHANGE_PHASE_STUCK);
}

/* An account that may neither DEL nor EXEC: the transaction is still open. */
static void refused_when_queued_and_when_executed(void **state)
{
    static const struct row rows[] = {
        {'r', 1, MATCHES DEL "-OOM x\n-NOPERM y\n" DISCARD "+OK",
            "full: OOM x"},
        {'r', 1, MATCHES DEL NOPERM NOPERM DISCARD "+OK\n"
            "> EVALSHA sha:release 1 k T", NULL},
        {'e', 1, MATCHES PEXPIRE "-READONLY x\n-LOADING y\n" DISCARD "+OK",
            "elsewhere: READONLY x"},
    };

    (void)state;
    PLAY(rows);
}

/* Refused in every way: the words are those of the first, to the byte. */
static void the_words_outlive_the_discard(void **state)
{
    (void)state;
    begin('r', 1);
    play(MATCHES DEL "+QUEUED\n" NOPERM DISCARD "+OK\n"
         "> EVALSHA sha:release 1 k T\n" UNKNOWN STAMPS,
        DENIED);
    /* Those of a fault that is no refusal, after one. */
    begin('r', 0);
    play("> EVALSHA sha:release 1 k T\n" NOPERM READ
         "+OK\n-MASTERDOWN x\n:500\n:1\n+OK\n" DISCARD "+OK",
        "elsewhere: MASTERDOWN x");
    begin('r', 0);
    play("> EVALSHA sha:release 1 k T\n" NOPERM MATCHES DEL
         "+QUEUED\n-OOM x\n" DISCARD "+OK",
        "full: OOM x");
}

static void a_race_is_run_three_times(void **state)
{
    static const struct row rows[] = {
        {'r', 1, MATCHES DEL "+QUEUED\nnil\n" MATCHES DEL "+QUEUED\n[:1]",
            "mine"},
        {'r', 1, MATCHES DEL "+QUEUED\nnil\n" MATCHES DEL "+QUEUED\nnil\n"
            MATCHES DEL "+QUEUED\n[:1]", "mine"},
        {'r', 1, MATCHES DEL "+QUEUED\nnil\n" READ
            "+OK\n$other\n:500\n:1\n+OK\n" DISCARD "+OK", "not mine"},
        {'r', 1, MATCHES DEL "+QUEUED\nnil\n" MATCHES DEL "+QUEUED\nnil\n"
            MATCHES DEL "+QUEUED\nnil",
            "retry: EXECABORT the key changed again and again"},
        {'e', 1, MATCHES PEXPIRE "+QUEUED\nnil\n" MATCHES PEXPIRE
            "+QUEUED\nnil\n" MATCHES PEXPIRE "+QUEUED\nnil",
            "retry: EXECABORT the key changed again and again"},
        /* The time that is left is the new one. */
        {'e', 1, MATCHES PEXPIRE "+QUEUED\nnil\n" READ
            "+OK\n$T\n:5000\n:1\n+OK\n" DISCARD "+OK", "mine 5000"},
    };

    (void)state;
    PLAY(rows);
}

/* Without MULTI a DEL would be done at once. */
static void only_its_ok_opens_a_transaction(void **state)
{
    static const char *const answers[] = {"+QUEUED", "+ok", "+", "$OK", ":1",
        ":0", "nil", "[]", "[+OK]", "-ERR MULTI calls can not be nested",
        "-NOPERM x", "-EXECABORT x", "-WRONGTYPE x"};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(answers) / sizeof(answers[0]); i++) {
        const char *multi = answers[i / 2];
        begin(i % 2 ? 'r' : 'e', 1);
        play(READ, NULL);
        answer("+OK");
        answer("$T");
        answer(":500");
        answer(":1");
        enum exchange_next next = answer(multi);
        const char *sent = next == EXCHANGE_AGAIN ? sends() : "";
        dialog = multi;
        check(!strstr(sent, "DEL k") && !strstr(sent, "PEXPIRE"), sent,
            "nothing that changes the key");
        if (next == EXCHANGE_DONE)
            check(x.outcome.kind == OUTCOME_FAULT ||
                      x.outcome.kind == OUTCOME_NOT_MINE, outcome(), "no");
    }
}

/* ------------------------------------------------------------- all of them */

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
    const char *change =
        letter == 'r' ? "DEL k; EXEC" : "PEXPIRE k 1000; EXEC";
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
        "-EXECABORT x", "-WRONGTYPE x", "nil", ":1", "$T", "[]", "[:1]",
        "[:0]", "[:2]", "[:1 :1]", "[-OOM x]", "[-WRONGTYPE x]", "[nil]"};
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
        bool ended = executed[0] != '-' ||
                     strncmp(executed, "-EXECABORT", 10) == 0;
        if (!ended)
            check(strcmp(sent, "DISCARD") == 0, sent, "DISCARD");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_value_is_the_token),
        cmocka_unit_test(what_stands_long_enough_is_left_alone),
        cmocka_unit_test(the_value_is_another),
        cmocka_unit_test(answers_that_are_none),
        cmocka_unit_test(refused_before_the_change),
        cmocka_unit_test(refused_when_it_was_queued),
        cmocka_unit_test(refused_when_it_was_executed),
        cmocka_unit_test(a_discard_is_refused),
        cmocka_unit_test(aborted_for_a_cause),
        cmocka_unit_test(refused_when_queued_and_when_executed),
        cmocka_unit_test(the_words_outlive_the_discard),
        cmocka_unit_test(a_race_is_run_three_times),
        cmocka_unit_test(only_its_ok_opens_a_transaction),
        cmocka_unit_test(all_replies_before_the_change),
        cmocka_unit_test(all_replies_to_the_change),
    };
    return cmocka_run_group_tests_name("watched", tests, NULL, NULL);
}
