/* SPDX-License-Identifier: MIT */
/*
 * The strategies of times, when a value stands there: one that is not ours, or
 * that may be over, is neither changed nor deleted, no lease is shortened, and
 * without WATCH nothing is done close to its end.
 */
#include "support/test.h"

#include "unit/strategy_rig.h"

#define NOW "[$2000000000 $0]\n"
#define WATCH "> WATCH k; TIME; TTL k; GETRANGE k 0 511; MULTI\n"
#define READS WATCH "+OK\n" NOW ":-1\n"
#define GETSET "> GETSET k 2000000003_T; EXEC\n"
#define SETNX "> SETNX k 2000000003_T; TIME; TTL k; GETRANGE k 0 511\n"
#define DEL "> DEL k; EXEC\n"
#define DISCARD "> DISCARD\n"
#define READ "> GETRANGE k 0 511\n"
#define BARE_GETSET "> GETSET k 2000000062_T\n" /* as long as anybody's */
#define BARE_DEL "> DEL k\n"
#define LOOK "> GETRANGE k 0 511; TTL k; EXISTS k\n"
#define WRONG_TYPE_WORDS "WRONGTYPE Operation against a key"
#define DENIED "no permission: NOPERM this user may not"
#define RACED "retry: EXECABORT the key changed again and again"

static void prolonging(void **state)
{
    static const struct row rows[] = {
        {'e', 2, READS "$2000000002_T\n+OK\n" GETSET "+QUEUED\n[$2000000002_T]",
            "mine 1000"},
        /* It lasts long enough: nothing is shortened. */
        {'e', 2, READS "$2000000003_T\n+OK\n" DISCARD "+OK", "mine 2997"},
        /* It may be over: somebody may be about to take it. */
        {'e', 2, READS "$2000000000_T\n+OK\n" DISCARD "+OK", "not mine"},
        /* What EXEC brings back is what was read; else it is broken. */
        {'e', 2, READS "$2000000002_T\n+OK\n" GETSET "+QUEUED\n[$other]",
            "not mine"},
        {'e', 2, READS "$2000000002_T\n+OK\n" GETSET "+QUEUED\n[:1]", BROKEN},
        {'e', 3, READ "$2000000002_T\n" BARE_GETSET "$2000000002_T",
            "mine 1000"},
        {'e', 3, READ "$2000000003_T", "mine 2997"},
        /* Too close to its end to be touched. */
        {'e', 3, READ "$2000000001_T", "not mine"},
        {'e', 3, READ "-LOADING x", "retry: LOADING x"},
        {'e', 3, READ ":1", BROKEN},
        /* Another one has taken it over meanwhile, or released it. */
        {'e', 3, READ "$2000000002_T\n" BARE_GETSET "$2000000009",
            "not mine, never undone"},
        {'e', 3, READ "$2000000002_T\n" BARE_GETSET ":1",
            "not redis, unsure, never undone: expected"},
        {'e', 3, READ "$2000000002_T\n" BARE_GETSET "-ERR strange",
            "server, unsure, never undone: ERR strange"},
        /* An end that is not of this scheme does not matter to our own. */
        {'e', 2,
            WATCH "+OK\n" NOW ":7\n$2000000002_T\n+OK\n" GETSET
                  "+QUEUED\n[$2000000002_T]",
            "mine 1000"},
        /* The clock was set: by now it may be over. */
        {'e', 2,
            WATCH "+OK\n[$2000000002 $0]\n:-1\n$2000000002_T\n+OK\n" DISCARD
                  "+OK",
            "not mine"},
    };

    (void)state;
    PLAY_STAMPED(rows);
}

static void releasing(void **state)
{
    static const struct row rows[] = {
        {'r', 2, READS "$2000000002_T\n+OK\n" DEL "+QUEUED\n[:1]", "mine"},
        {'r', 2, READS "$2000000002_T\n+OK\n" DEL "+QUEUED\n[:0]", "not mine"},
        /* Over long since, but still there; and a token as it is. */
        {'r', 2, READS "$1000000000_T\n+OK\n" DEL "+QUEUED\n[:1]", "mine"},
        {'r', 2, READS "$2000000002_T\n+OK\n" DEL "+QUEUED\n[$x]", BROKEN},
        {'r', 2,
            READS "$2000000002_T\n+OK\n" DEL "+QUEUED\nnil\n" READS
                  "$2000000002_T\n+OK\n" DEL "+QUEUED\nnil\n" READS
                  "$2000000002_T\n+OK\n" DEL "+QUEUED\nnil",
            RACED},
        {'r', 3, READ "$2000000002_T\n" BARE_DEL "+OK", BROKEN},
        {'r', 3, READ "$2000000002_T\n" BARE_DEL "-LOADING x",
            "retry: LOADING x"},
        /* The DEL might be late: it is over by itself, and soon. */
        {'r', 3, READ "$2000000001_T", "mine"},
        {'r', 3, READ "$1600000000_T", "mine"},
        /* A token never is. */
        {'r', 3, READ "$T\n" WATCH, NULL},
    };

    (void)state;
    PLAY_STAMPED(rows);
}

/* Asks for something else with the same token, as the API does. */
static void go_on(char letter, unsigned strategy)
{
    verb = verb_of(letter);
    dialect.preferred_with_value_end[verb.kind] = (unsigned char)strategy;
    exchange_restart(&x, &verb, NULL);
}

/* As another connection to it begins, of which as much is known. */
static void connect_again(void)
{
    struct dialect was = dialect;

    dialect_begin(&dialect);
    was.connection = dialect.connection;
    dialect = was;
    dialect.in_transaction = NULL;
}

/* A GETSET that came too late has replaced another one's time by ours: to
 * delete it would free that one's lock. */
static void what_stands_for_another_one_is_not_deleted(void **state)
{
    static const struct {
        unsigned strategy;
        const char *release;
    } ways[] = {{2, READS "$2000000062_T\n+OK\n" DISCARD "+OK"},
        {3, READ "$2000000062_T"}};
    static const struct {
        const char *extend, *outcome; /* NULL: given up before its answer */
    } late[] = {{BARE_GETSET "$2000000009", "not mine, never undone"},
        {BARE_GETSET "$2000000009.123", "not mine, never undone"},
        {BARE_GETSET "-ERR strange",
            "server, unsure, never undone: ERR strange"},
        {BARE_GETSET, NULL}};
    char said[200];

    (void)state;
    for (size_t i = 0; i < 16; i++) {
        size_t how = i / 4;
        begin_stamped('e', 3);
        snprintf(
            said, sizeof(said), READ "$2000000002_T\n%s", late[how].extend);
        play(said, late[how].outcome);
        assert_int_equal(x.written, WRITTEN_OVER);
        if (i & 1)
            connect_again();
        go_on('r', ways[i / 2 % 2].strategy);
        play(ways[i / 2 % 2].release, "not mine, never undone");
    }
    /* The release itself is begun anew. */
    begin_stamped('e', 3);
    play(READ "$2000000002_T\n" BARE_GETSET "$2000000009",
        "not mine, never undone");
    go_on('r', 3);
    play(READ, NULL);
    connect_again();
    play(READ "$2000000062_T", "not mine, never undone");
    /* An extend that is begun anew does not forget what was sent. */
    begin_stamped('e', 3);
    play(READ "$2000000002_T\n" BARE_GETSET, NULL);
    connect_again();
    play(READ "$other", "not mine, never undone");
    go_on('r', 3);
    play(READ "$2000000062_T", "not mine, never undone");
    /* Whoever takes it over on its way has to know. */
    struct exchange heir = {0};
    begin_stamped('e', 3);
    play(READ "$2000000002_T\n" BARE_GETSET, NULL);
    exchange_move(&x, &heir, &verb);
    assert_int_equal(heir.written, WRITTEN_OVER);
}

static void what_is_ours_is_deleted_again(void **state)
{
    (void)state;
    begin_stamped('e', 3);
    play(READ "$2000000002_T\n" BARE_GETSET "$2000000002_T", "mine 1000");
    go_on('r', 3);
    play(READ "$2000000062_T\n" BARE_DEL ":1", "mine");
    begin_stamped('e', 3); /* the next acquire begins anew */
    play(READ "$2000000002_T\n" BARE_GETSET "$2000000009",
        "not mine, never undone");
    verb = verb_of('a');
    exchange_restart(&x, &verb, NULL);
    assert_int_equal(x.written, WRITTEN_TOKEN);
}

/* A GETSET that was refused did nothing. */
static void refused_it_is_deleted_still(void **state)
{
    static const char *const words[] = {"full: OOM x", "retry: LOADING x"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin_stamped('e', 3);
        play(READ "$2000000002_T\n" BARE_GETSET, NULL);
        answer(i ? "-LOADING x" : "-OOM x");
        check(strcmp(outcome(), words[i]) == 0, outcome(), words[i]);
        go_on('r', 3);
        play(READ "$2000000002_T\n" BARE_DEL ":1", "mine");
    }
    begin_stamped('e', 3); /* but an earlier one had: it may be another's */
    x.written = WRITTEN_OVER;
    play(READ "$2000000002_T", "not mine, never undone");
}

/* The clock says how much is left; it is not deleted by guess. */
static void a_bare_release_needs_the_clock(void **state)
{
    (void)state;
    begin_stamped('r', 3);
    dialect.stamps.clock.known = false;
    play("> TIME; GETRANGE k 0 511\n[$2000000000 $0]\n$x\n" READ
         "$2000000002_T\n" BARE_DEL ":1",
        "mine");
    begin_stamped('r', 2); /* but not to compare and delete */
    dialect.stamps.clock.known = false;
    play(WATCH, NULL);
}

/* ------------------------------------------------------------------ inspect */

static void looking(void **state)
{
    static const struct row rows[] = {
        {'i', 2, LOOK "$\n:-2\n:0", "free"},
        {'i', 2, LOOK "$other\n:0\n:1", "seen 'other' 0"},
        {'i', 2, LOOK "$2000000010\n:-1\n:1", "seen '2000000010' 9997"},
        {'i', 2, LOOK "$2000000010\n:5\n:1", "seen '2000000010' 4000"},
        {'I', 2, LOOK "$T\n:10\n:1", "mine 9000"},
        {'I', 2, LOOK "$2000000010_T\n:-1\n:0", "not mine"},
        {'i', 2, LOOK WRONGTYPE ":-1\n:1", "wrong type: " WRONG_TYPE_WORDS},
        {'i', 2, LOOK "$x\n:5\n-LOADING x", "retry: LOADING x"},
        {'i', 2, LOOK NOPERM ":5\n:1", DENIED},
        {'i', 2, LOOK ":1\n:5\n:1", BROKEN},
        {'i', 2, LOOK "+x\n:5\n:1", BROKEN},
    };

    (void)state;
    PLAY_STAMPED(rows);
    for (int i = 0; i < 2; i++) { /* in what form it stands is remembered */
        begin_stamped('I', 2);
        play(i ? LOOK "$2000000010_T\n:-1\n:1" : LOOK "$T\n:10\n:1",
            i ? "mine 9997" : "mine 9000");
        assert_int_equal(exchange_end_is_in_value(&x), i);
    }
    /* An inspection is no reason to delete it after all. */
    begin_stamped('I', 2);
    x.written = WRITTEN_OVER;
    play(LOOK "$2000000010\n:-1\n:1", "not mine, never undone");
}

/* By GETRANGE it was found that the value tells its end: then that is how the
 * next inspection begins, and TTL is asked for this one only. */
static void how_it_was_found_is_remembered(void **state)
{
    (void)state;
    begin_stamped('i', 2);
    dialect.ttl_in_values = false;
    dialect.preferred[VERB_INSPECT] = 0;
    play("> EVALSHA sha:inspect 1 k\n" NOPERM
         "> PTTL k; GETRANGE k 0 511; EXISTS k\n:-1\n$2000000010_T\n:1\n" LOOK
         "$2000000010_T\n:-1\n:1",
        "seen '2000000010" BLANKS "' 9997");
    assert_int_equal(dialect.preferred[VERB_INSPECT], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prolonging),
        cmocka_unit_test(releasing),
        cmocka_unit_test(what_stands_for_another_one_is_not_deleted),
        cmocka_unit_test(what_is_ours_is_deleted_again),
        cmocka_unit_test(refused_it_is_deleted_still),
        cmocka_unit_test(a_bare_release_needs_the_clock),
        cmocka_unit_test(looking),
        cmocka_unit_test(how_it_was_found_is_remembered),
    };
    return cmocka_run_group_tests_name("timestamps_own", tests, NULL, NULL);
}
