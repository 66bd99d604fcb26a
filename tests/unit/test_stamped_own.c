/* SPDX-License-Identifier: MIT */
/*
 * The rungs of times, when a value stands there: one that is not ours, or that
 * may be over, is neither changed nor deleted, no lease is shortened, and
 * without WATCH nothing is done close to its end.
 */
#include "support/test.h"

#include "unit/rung_rig.h"

#define WATCH "> WATCH k; GETRANGE k 0 511; MULTI\n"
#define GETSET "> GETSET k 2000000003.T; EXEC\n"
#define DEL "> DEL k; EXEC\n"
#define DISCARD "> DISCARD\n"
#define READ "> GETRANGE k 0 511\n"
#define BARE_GETSET "> GETSET k 2000000062.T\n" /* as long as anybody's */
#define BARE_DEL "> DEL k\n"
#define LOOK "> GETRANGE k 0 511; TTL k; EXISTS k\n"
#define WRONG_TYPE_WORDS "WRONGTYPE Operation against a key"
#define DENIED "denied: NOPERM this user may not"
#define RACED "retry: EXECABORT the key changed again and again"

static void prolonging(void **state)
{
    static const struct row rows[] = {
        {'e', 3, WATCH "+OK\n$2000000002.T\n+OK\n" GETSET
            "+QUEUED\n[$2000000002.T]", "mine 1000"},
        {'e', 3, WATCH "+OK\n$2000000001.T\n+OK\n" GETSET
            "+QUEUED\n[$2000000001.T]", "mine 1000"},
        /* It lasts long enough: nothing is shortened. */
        {'e', 3, WATCH "+OK\n$2000000003.T\n+OK\n" DISCARD "+OK",
            "mine 2997"},
        {'e', 3, WATCH "+OK\n$2000000022.T\n+OK\n" DISCARD "+OK",
            "mine 21997"},
        /* It may be over: somebody may be about to take it. */
        {'e', 3, WATCH "+OK\n$2000000000.T\n+OK\n" DISCARD "+OK", "not mine"},
        {'e', 3, WATCH "+OK\n$1600000000.T\n+OK\n" DISCARD "+OK", "not mine"},
        {'e', 3, WATCH "+OK\n$2000000002\n+OK\n" DISCARD "+OK", "not mine"},
        {'e', 3, WATCH "+OK\n$2000000002.000000000000000000000000000000000"
            "000007\n+OK\n" DISCARD "+OK", "not mine"},
        {'e', 3, WATCH "+OK\n$T\n+OK\n" DISCARD "+OK", "not mine"},
        {'e', 3, WATCH "+OK\n$\n+OK\n" DISCARD "+OK", "not mine"},
        {'e', 3, WATCH "+OK\nnil\n+OK\n" DISCARD "+OK", "not mine"},
        {'e', 3, WATCH "+OK\n" WRONGTYPE "+OK\n" DISCARD "+OK",
            "not mine: " WRONG_TYPE_WORDS},
        /* What EXEC brings back is what was read; else it is broken. */
        {'e', 3, WATCH "+OK\n$2000000002.T\n+OK\n" GETSET
            "+QUEUED\n[$other]", "not mine"},
        {'e', 3, WATCH "+OK\n$2000000002.T\n+OK\n" GETSET "+QUEUED\n[nil]",
            "not mine"},
        {'e', 3, WATCH "+OK\n$2000000002.T\n+OK\n" GETSET "+QUEUED\n[:1]",
            BROKEN},
        {'e', 4, READ "$2000000002.T\n" BARE_GETSET "$2000000002.T",
            "mine 1000"},
        {'e', 4, READ "$2000000003.T", "mine 2997"},
        /* Too close to its end to be touched. */
        {'e', 4, READ "$2000000001.T", "not mine"},
        {'e', 4, READ "$other", "not mine"},
        {'e', 4, READ "nil", "not mine"},
        {'e', 4, READ "-LOADING x", "retry: LOADING x"},
        {'e', 4, READ WRONGTYPE, "not mine: " WRONG_TYPE_WORDS},
        {'e', 4, READ ":1", BROKEN},
        /* Another one has taken it over meanwhile, or released it. */
        {'e', 4, READ "$2000000002.T\n" BARE_GETSET "$2000000009",
            "not mine"},
        {'e', 4, READ "$2000000002.T\n" BARE_GETSET "nil", "not mine"},
        {'e', 4, READ "$2000000002.T\n" BARE_GETSET "-OOM x", "full: OOM x"},
        {'e', 4, READ "$2000000002.T\n" BARE_GETSET ":1", BROKEN},
    };

    (void)state;
    PLAY_STAMPED(rows);
}

static void releasing(void **state)
{
    static const struct row rows[] = {
        {'r', 4, WATCH "+OK\n$2000000002.T\n+OK\n" DEL "+QUEUED\n[:1]",
            "mine"},
        {'r', 4, WATCH "+OK\n$2000000002.T\n+OK\n" DEL "+QUEUED\n[:0]",
            "not mine"},
        /* Over long since, but still there; and a token as it is. */
        {'r', 4, WATCH "+OK\n$1000000000.T\n+OK\n" DEL "+QUEUED\n[:1]",
            "mine"},
        {'r', 4, WATCH "+OK\n$T\n+OK\n" DEL "+QUEUED\n[:1]", "mine"},
        {'r', 4, WATCH "+OK\n$2000000002\n+OK\n" DISCARD "+OK", "not mine"},
        {'r', 4, WATCH "+OK\n$2000000002.000000000000000000000000000000000"
            "000007\n+OK\n" DISCARD "+OK", "not mine"},
        {'r', 4, WATCH "+OK\n$\n+OK\n" DISCARD "+OK", "not mine"},
        {'r', 4, WATCH "+OK\n$2000000002.T\n+OK\n" DEL "+QUEUED\n[$x]",
            BROKEN},
        {'r', 4, WATCH "+OK\n$2000000002.T\n+OK\n" DEL "+QUEUED\nnil\n" WATCH
            "+OK\n$2000000002.T\n+OK\n" DEL "+QUEUED\nnil\n" WATCH
            "+OK\n$2000000002.T\n+OK\n" DEL "+QUEUED\nnil", RACED},
        {'r', 4, WATCH "+OK\n$2000000002.T\n+OK\n" DEL "+QUEUED\nnil\n" WATCH
            "+OK\n$other\n+OK\n" DISCARD "+OK", "not mine"},
        {'r', 5, READ "$2000000002.T\n" BARE_DEL ":1", "mine"},
        {'r', 5, READ "$2000000002.T\n" BARE_DEL ":0", "not mine"},
        {'r', 5, READ "$2000000002.T\n" BARE_DEL "+OK", BROKEN},
        {'r', 5, READ "$2000000002.T\n" BARE_DEL "-LOADING x",
            "retry: LOADING x"},
        /* The DEL might be late: it is over by itself, and soon. */
        {'r', 5, READ "$2000000001.T", "mine"},
        {'r', 5, READ "$1600000000.T", "mine"},
        {'r', 5, READ "$other", "not mine"},
        {'r', 5, READ "$2000000009", "not mine"},
        {'r', 5, READ "nil", "not mine"},
        /* A token never is. */
        {'r', 5, READ "$T\n" WATCH, NULL},
    };

    (void)state;
    PLAY_STAMPED(rows);
}

/* The clock says how much is left; it is not deleted by guess. */
static void a_bare_release_needs_the_clock(void **state)
{
    (void)state;
    begin_stamped('r', 5);
    ladder.clock.known = false;
    play("> TIME; GETRANGE k 0 511\n[$2000000000 $0]\n$x\n" READ
         "$2000000002.T\n" BARE_DEL ":1", "mine");
    begin_stamped('r', 4); /* but not to compare and delete */
    ladder.clock.known = false;
    play(WATCH, NULL);
}

/* ------------------------------------------------------------------ inspect */

static void looking(void **state)
{
    static const struct row rows[] = {
        {'i', 2, LOOK "$\n:-2\n:0", "free"},
        {'i', 2, LOOK "nil\n:-2\n:0", "free"},
        {'i', 2, LOOK "$\n:-1\n:1", "seen '' for ever"},
        {'i', 2, LOOK "$other\n:-1\n:1", "seen 'other' for ever"},
        {'i', 2, LOOK "$other\n:10\n:1", "seen 'other' 9000"},
        {'i', 2, LOOK "$other\n:1\n:1", "seen 'other' 0"},
        {'i', 2, LOOK "$other\n:0\n:1", "seen 'other' 0"},
        {'i', 2, LOOK "$2000000010\n:-1\n:1", "seen '2000000010' 9997"},
        {'i', 2, LOOK "$2000000010\n:5\n:1", "seen '2000000010' 4000"},
        {'i', 2, LOOK "$2000000002\n:5\n:1", "seen '2000000002' 1997"},
        {'i', 2, LOOK "$1600000000\n:-1\n:1", "seen '1600000000' 0"},
        {'I', 2, LOOK "$2000000010.T\n:-1\n:1", "mine 9997"},
        {'I', 2, LOOK "$T\n:10\n:1", "mine 9000"},
        {'I', 2, LOOK "$2000000010\n:-1\n:1", "not mine"},
        {'I', 2, LOOK "$2000000010.T\n:-1\n:0", "not mine"},
        {'I', 2, LOOK WRONGTYPE ":-1\n:1", "not mine: " WRONG_TYPE_WORDS},
        {'i', 2, LOOK WRONGTYPE ":-1\n:1", "wrong type: " WRONG_TYPE_WORDS},
        {'i', 2, LOOK "-LOADING x\n:5\n:1", "retry: LOADING x"},
        {'i', 2, LOOK "$x\n-LOADING x\n:1", "retry: LOADING x"},
        {'i', 2, LOOK "$x\n:5\n-LOADING x", "retry: LOADING x"},
        {'i', 2, LOOK NOPERM ":5\n:1", DENIED},
        {'i', 2, LOOK ":1\n:5\n:1", BROKEN},
        {'i', 2, LOOK "+x\n:5\n:1", BROKEN},
        {'i', 2, LOOK "$x\n$5\n:1", BROKEN},
        {'i', 2, LOOK "$x\n:5\nnil", BROKEN},
    };

    (void)state;
    PLAY_STAMPED(rows);
    for (int i = 0; i < 2; i++) { /* in what form it stands is remembered */
        begin_stamped('I', 2);
        play(i ? LOOK "$2000000010.T\n:-1\n:1" : LOOK "$T\n:10\n:1",
            i ? "mine 9997" : "mine 9000");
        assert_int_equal(x.stamped, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prolonging),
        cmocka_unit_test(releasing),
        cmocka_unit_test(a_bare_release_needs_the_clock),
        cmocka_unit_test(looking),
    };
    return cmocka_run_group_tests_name("stamped, own", tests, NULL, NULL);
}
