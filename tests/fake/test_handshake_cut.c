/* SPDX-License-Identifier: MIT */
/* Connecting goes wrong at every place: each answer of the handshake comes
 * too late, or not, or in part, and then the server is back, or is not. */
#include "rig.h"

#include "support/local.h"

#define LOGIN "EXPECT AUTH s3kr1t-pw\nEXPECT SELECT 3\n"

struct answer {
    const char *whole, *part;
};

static const struct answer answers[] = {
    {OK, "+O"},
    {OK, "+OK\\r"},
    {"SEND :7\\r\\n\n", ":"},
    {"BULK " INFO_TEXT "\\r\\n\n", "$52\\r\\n# Serv"},
    {"BULK a\n", "$1"},
    {"BULK b\n", "$1\\r\\n"},
    {"BULK c\n", "$1\\r\\nc"},
};
#define ANSWERS (sizeof(answers) / sizeof(answers[0]))
#define NO_LOGIN 2

#define ADVICE                                                                 \
    "before it answered CLIENT or INFO (a TLS port? write rediss://; a proxy " \
    "for commands with keys only is not supported)"

/* Every place in a flight with a login and in one without. */
#define PLACES (ANSWERS + ANSWERS - NO_LOGIN)

static bool login_at(size_t place)
{
    return place < ANSWERS;
}

static size_t answered_at(size_t place)
{
    return login_at(place) ? place : place - ANSWERS + NO_LOGIN;
}

/* The flight and its answers up to the place. */
static void add_flight(struct script *s, size_t place)
{
    add(s, "%s" FLIGHT, login_at(place) ? LOGIN : "");
    for (size_t i = login_at(place) ? 0 : NO_LOGIN; i < answered_at(place); i++)
        add(s, "%s", answers[i].whole);
}

/* Does the peer close the connection with no answer to CLIENT ID? Then it may
 * be one that does not know that command. */
static bool is_unanswered(size_t place, const struct cut *cut)
{
    return answered_at(place) <= NO_LOGIN && !cut->part;
}

static void add_rest(struct script *s, size_t place)
{
    for (size_t i = answered_at(place); i < ANSWERS; i++)
        add(s, "%s", answers[i].whole);
}

static struct rig open_at(
    size_t place, const struct script *s, char way, const char *timeout)
{
    char params[64];
    snprintf(params, sizeof(params), "timeout_ms=%s%s", timeout,
        login_at(place) ? "&password=s3kr1t-pw&db=3" : "");
    return rig_open(s->text, way, params);
}

/* Nothing had left: the call ends at once, and says so. */
static void cut_ends_a_try_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < PLACES * CUTS; i++) {
        size_t place = i / CUTS;
        const struct cut *cut = &cuts[i % CUTS];
        struct script s = {0};
        add_flight(&s, place);
        add_cut(&s, cut, answers[answered_at(place)].part);
        add(&s, NEXT SHAKE WORKS);
        struct rig r = open_at(place, &s, cut->reset ? 't' : 'u', "2000");
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_E_UNREACHABLE, 200);
        assert_contains(nxl_lock_errmsg(r.lock), "connection");
        bool advises = strstr(nxl_lock_errmsg(r.lock), ADVICE) != NULL;
        if (is_unanswered(place, cut))
            assert_true(advises);
        else if (!cut->reset) /* which may take answers with it */
            assert_false(advises);
        assert_not_held(r.lock);
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* A server that has completed a handshake before is no such peer. */
static void no_advice_about_a_known_server(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE WORKS
        "WAIT-FOR close\nCLOSE\n" NEXT FLIGHT "EXPECT SET k * NX PX 30000\n"
        "CLOSE\n" NEXT SHAKE "EXPECT EVAL * 1 k *\n" ONE
        "EXPECT SET k $y NX PX 30000\n" OK "EXPECT EVALSHA * 1 k $y\n" ONE,
        'u', "timeout_ms=2000");
    assert_works(r.lock);
    rig_hang_up(&r, "close");
    rig_idle();
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 2000);
    assert_null(strstr(nxl_lock_errmsg(r.lock), "proxy"));
    assert_works(r.lock);
    rig_close(&r);
}

static void cut_is_waited_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < PLACES * CUTS; i++) {
        size_t place = i / CUTS;
        const struct cut *cut = &cuts[i % CUTS];
        struct script s = {0};
        for (int j = 0; j < 2; j++) {
            add_flight(&s, place);
            add_cut(&s, cut, answers[answered_at(place)].part);
            add(&s, NEXT);
        }
        add(&s, SHAKE GRANT_AGAIN DROP_T ONE);
        struct rig r = open_at(place, &s, cut->reset ? 't' : 'u', "2000");
        assert_ends(nxl_lock_acquire(r.lock, 5000), NXL_OK, 500);
        assert_ends(nxl_lock_release(r.lock), NXL_OK, 200);
        rig_close(&r);
    }
}

/* Cut, and then nobody listens; until somebody does again. */
static void cut_and_refused_until_it_is_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < PLACES; i++) {
        const struct cut *cut = &cuts[i % CUTS];
        struct script s = {0};
        add_flight(&s, i);
        add(&s, "REFUSE\n");
        add_cut(&s, cut, answers[answered_at(i)].part);
        char way = cut->reset ? 't' : 'u';
        struct rig r = open_at(i, &s, way, "200");
        int tries = 0; /* more than one if the play is late to cut */
        do
            assert_ends(nxl_lock_acquire(r.lock, 300), NXL_E_UNREACHABLE, 300);
        while (!strstr(nxl_lock_errmsg(r.lock), "refused") && ++tries < 20);
        assert_contains(nxl_lock_errmsg(r.lock), "refused");
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_E_UNREACHABLE, 200);
        assert_not_held(r.lock);
        unlink(fake_path(r.fake));
        int fd = way == 't' ? fake_listen_again(r.fake)
                            : local_listen_unix(fake_path(r.fake));
        assert_true(fd >= 0);
        int rc = nxl_lock_acquire(r.lock, 0);
        assert_int_equal(rc, NXL_E_UNREACHABLE);
        assert_contains(nxl_lock_errmsg(r.lock), "no answer");
        struct pollfd waiting = {fd, POLLIN, 0}; /* it did come again */
        assert_int_equal(poll(&waiting, 1, 0), 1);
        close(fd);
        rig_close(&r);
    }
}

/* The answers come after the call has ended, and serve the next one. */
static void late_answers_serve_the_next_call(void **state)
{
    (void)state;
    for (size_t place = 0; place < PLACES; place++) {
        struct script s = {0};
        add_flight(&s, place);
        add(&s, "WAIT-FOR late\n");
        add_rest(&s, place);
        add(&s, WORKS);
        struct rig r = open_at(place, &s, place % 2 ? 't' : 'u', "200");
        assert_takes(nxl_lock_acquire(r.lock, 0), NXL_E_UNREACHABLE, 195, 200);
        assert_takes(
            nxl_lock_acquire(r.lock, 300), NXL_E_UNREACHABLE, 195, 300);
        nxl_holder holder = NXL_HOLDER_INIT;
        assert_takes(
            nxl_lock_inspect(r.lock, &holder), NXL_E_UNREACHABLE, 195, 200);
        assert_not_held(r.lock);
        fake_signal(r.fake, "late");
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* A call that is still there gets its answer over the same connection. */
static void slow_answers_are_waited_for(void **state)
{
    (void)state;
    for (size_t place = 0; place < PLACES; place++) {
        struct script s = {0};
        add_flight(&s, place);
        add(&s, "DELAY 70\n");
        add_rest(&s, place);
        add(&s, GRANT UNDO_T ONE);
        struct rig r = open_at(place, &s, place % 2 ? 't' : 'u', "2000");
        assert_takes(nxl_lock_acquire(r.lock, 0), NXL_OK, 65, 2000);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_ends_a_try_at_once),
        cmocka_unit_test(no_advice_about_a_known_server),
        cmocka_unit_test(cut_is_waited_out),
        cmocka_unit_test(cut_and_refused_until_it_is_back),
        cmocka_unit_test(late_answers_serve_the_next_call),
        cmocka_unit_test(slow_answers_are_waited_for),
    };
    return cmocka_run_group_tests_name("handshake_cut", tests, NULL, NULL);
}
