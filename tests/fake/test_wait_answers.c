/* SPDX-License-Identifier: MIT */
/*
 * All that can be answered to the WAIT behind an acquire, a begin, an extension
 * or a verdict, also where the script was unknown and the WAIT behind NOSCRIPT
 * was answered with a number; by a blocking call and by the event loop.
 */
#include "rig.h"

#define PARAMS "timeout_ms=2000&poll=1&wait_replicas=2&wait_ms=60"
#define WAIT "EXPECT WAIT 2 60\n"
#define ENOUGH ":2\\r\\n"
#define RECORD(state, tail)                                                    \
    "once1 " state " $t 17 1 0 1 1 " tail " 0 700000 - 0\\r\\n"

enum verb { ACQUIRE, BEGIN, EXTEND, TELL, VERBS };

static const struct verb_row {
    const char *name;
    const char *words;   /* of the command, after EVALSHA and the script */
    const char *written; /* the answer to it */
    const char *undo;    /* what undoes it, if it is a grant */
} verbs[VERBS] = {
    [ACQUIRE] = {"acquire", "SET k $t NX PX 30000", "+OK\\r\\n",
        "EVAL * 1 k $t"},
    [BEGIN] = {"begin", "3 k {k}:once * $t 30000 halt **",
        "*3\\r\\n:1\\r\\n:17\\r\\n$76\\r\\n" RECORD("begun", "0 0"),
        "EVAL * 2 k {k}:once $t unbegun **"},
    [EXTEND] = {"extend", "1 k $t 30000", ":30000\\r\\n", NULL},
    [TELL] = {"tell", "2 k {k}:once $t done **",
        "*3\\r\\n:1\\r\\n:1\\r\\n$75\\r\\n" RECORD("done", "1 0"), NULL},
};

enum after { STAYS, CLOSES, IS_CLOSED };

static const struct answer {
    const char *text;  /* "": the connection ends instead */
    enum after after;  /* CLOSES: what is no answer ends the connection */
    int grant, other;  /* results */
    const char *words; /* of the message */
} answers[] = {
    {":2", STAYS, NXL_OK, NXL_OK, ""},
    {":3", STAYS, NXL_OK, NXL_OK, ""},
    {":1", STAYS, NXL_E_REFUSED, NXL_UNKNOWN,
        "1 of 2 replicas had it within 60ms"},
    {":0", STAYS, NXL_E_REFUSED, NXL_UNKNOWN,
        "0 of 2 replicas had it within 60ms"},
    {"-UNBLOCKED force unblock", CLOSES, NXL_UNKNOWN, NXL_UNKNOWN,
        "WAIT was refused: UNBLOCKED"},
    {"-NOPERM no WAIT", STAYS, NXL_E_DENIED, NXL_UNKNOWN,
        "WAIT was refused: NOPERM"},
    {"-ERR unknown command 'WAIT'", STAYS, NXL_E_UNSUPPORTED, NXL_UNKNOWN,
        "WAIT was refused: ERR unknown command"},
    {"+OK", CLOSES, NXL_UNKNOWN, NXL_UNKNOWN,
        "WAIT was not answered with a number"},
    {":-1", CLOSES, NXL_UNKNOWN, NXL_UNKNOWN,
        "WAIT was not answered with a number"},
    {"$-1", CLOSES, NXL_UNKNOWN, NXL_UNKNOWN,
        "WAIT was not answered with a number"},
    {"", IS_CLOSED, NXL_UNKNOWN, NXL_OK, "closed the connection"},
};
#define ANSWERS (sizeof(answers) / sizeof(answers[0]))

/* Of the script, and what is said to the WAIT behind NOSCRIPT. */
static const char *const behind_noscript[] = {NULL, ":2", ":0"};

struct cell {
    const struct verb_row *verb;
    const struct answer *answer;
    const char *behind_noscript; /* NULL: the script is known */
    bool by_loop;
};

/* ------------------------------------------------------------------- a call */

static int call(const struct rig *r, enum verb verb, bool by_loop)
{
    int rc;
    switch (verb) {
    case ACQUIRE:
        rc = by_loop ? nxl_lock_acquire_start(r->lock, 0)
                     : nxl_lock_acquire(r->lock, 0);
        break;
    case BEGIN:
        rc = by_loop ? nxl_once_begin_start(r->lock, NULL, 0)
                     : nxl_once_begin(r->lock, NULL, 0);
        break;
    case EXTEND:
        rc = by_loop ? nxl_lock_extend_start(r->lock, 0)
                     : nxl_lock_extend(r->lock, 0);
        break;
    default:
        rc = by_loop ? nxl_once_tell_start(r->lock, NXL_ONCE_DONE, 0, NULL, 0)
                     : nxl_once_tell(r->lock, NXL_ONCE_DONE, 0, NULL, 0);
        break;
    }
    if (!by_loop)
        return rc;
    assert_int_equal(rc, NXL_PENDING);
    return event_result(r->client, r->lock);
}

/* ------------------------------------------------------------------ scripts */

static bool runs_script(const struct verb_row *verb)
{
    return verb != &verbs[ACQUIRE];
}

static void add_command(struct script *s, const struct verb_row *verb, bool sha)
{
    add(s, "EXPECT %s%s\n" WAIT,
        !runs_script(verb) ? ""
        : sha              ? "EVALSHA * "
                           : "EVAL * ",
        verb->words);
}

/* A call of this verb that counts. */
static void add_good(struct script *s, const struct verb_row *verb)
{
    add_command(s, verb, true);
    add(s, "SEND %s" ENOUGH "\n", verb->written);
}

static void add_answered(struct script *s, const struct cell *c)
{
    add_command(s, c->verb, true);
    if (c->behind_noscript) {
        add(s, "SEND -NOSCRIPT No matching script\\r\\n%s\\r\\n\n",
            c->behind_noscript);
        add_command(s, c->verb, false);
    }
    if (c->answer->after == IS_CLOSED)
        add(s, "SEND %s\nCLOSE\n", c->verb->written);
    else
        add(s, "SEND %s%s\\r\\n\n", c->verb->written, c->answer->text);
}

/* What was not granted is undone; what has lost its connection is said again,
 * if that may be. */
static void add_end(struct script *s, const struct cell *c, int result)
{
    bool grants = c->verb->undo != NULL;
    bool lost = c->answer->after != STAYS;
    if (c->answer->after == CLOSES)
        add(s, "EXPECT-CLOSE\n");
    if (c->verb == &verbs[TELL] && result != NXL_OK) {
        /* The lock may not have been released. */
        add(s, lost ? "ACCEPT *\nSERVE\n" : "EXPECT EVAL * 1 k $t\n" ZERO);
        return;
    }
    if (lost)
        add(s, NEXT SHAKE);
    if (grants && result != NXL_OK)
        add(s, "EXPECT %s\n" ONE, c->verb->undo);
    if (!grants && lost && result == NXL_OK) {
        add_command(s, c->verb, true);
        add(s, "SEND %s" ENOUGH "\n", c->verb->written);
    }
}

static void play_cell(const struct cell *c)
{
    struct script s = {0};
    enum verb verb = (enum verb)(c->verb - verbs);
    bool grants = c->verb->undo != NULL;
    int expected = grants ? c->answer->grant : c->answer->other;
    add(&s, SHAKE);
    if (verb == EXTEND || verb == TELL)
        add_good(&s, &verbs[verb == EXTEND ? ACQUIRE : BEGIN]);
    add_answered(&s, c);
    add_end(&s, c, expected);
    bool held = verb == EXTEND || (grants && expected == NXL_OK);
    if (held) /* there is no WAIT behind a release */
        add(&s, "EXPECT EVALSHA * 1 k $t\n" ONE);
    struct rig r = rig_open(s.text, 'u', PARAMS);
    if (verb == EXTEND || verb == TELL)
        assert_int_equal(
            call(&r, verb == EXTEND ? ACQUIRE : BEGIN, c->by_loop), NXL_OK);
    int rc = call(&r, verb, c->by_loop);
    if (rc != expected) {
        print_error(
            "%s\n%s\n%s\n", nxl_lock_errmsg(r.lock), s.text, fake_log(r.fake));
        assert_int_equal(rc, expected);
    }
    if (expected != NXL_OK)
        assert_contains(nxl_lock_errmsg(r.lock), c->answer->words);
    assert_int_equal(nxl_lock_held(r.lock), held);
    if (held && c->by_loop) {
        assert_int_equal(nxl_lock_release_start(r.lock), NXL_PENDING);
        assert_int_equal(event_result(r.client, r.lock), NXL_OK);
    } else if (held) {
        assert_int_equal(nxl_lock_release(r.lock), NXL_OK);
    }
    rig_close(&r);
}

static void each_cell(void **state)
{
    (void)state;
    struct cell c;
    for (size_t i = 0; i < VERBS * ANSWERS * 3 * 2; i++) {
        c.by_loop = i % 2;
        c.behind_noscript = behind_noscript[i / 2 % 3];
        c.answer = &answers[i / 6 % ANSWERS];
        c.verb = &verbs[i / 6 / ANSWERS];
        if (c.behind_noscript && !runs_script(c.verb))
            continue;
        print_message("%s, WAIT: %s, behind NOSCRIPT: %s, %s\n", c.verb->name,
            c.answer->text, c.behind_noscript ? c.behind_noscript : "-",
            c.by_loop ? "event loop" : "blocking");
        play_cell(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_cell)};
    return cmocka_run_group_tests_name("answers to WAIT", tests, NULL, NULL);
}
