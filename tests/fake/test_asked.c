/* SPDX-License-Identifier: MIT */
/* A question whose answer is late, cut or no answer: whoever comes next on
 * the connection gets its own. */
#include "api/private.h"
#include "rig.h"

#include <pthread.h>

#define ASKED "EXPECT SCAN 0\n"
#define NESTED "*2\\r\\n$1\\r\\n0\\r\\n*2\\r\\n$1\\r\\na\\r\\n"

static int ask(nxl_client *client, struct answer **answer)
{
    static const char *const words[] = {"SCAN", "0"};
    return client_ask(client, 0, 2, words, NULL, answer);
}

/* Its time is over in the middle of a nested reply, whose rest is nobody's. */
static void the_rest_of_a_late_answer_is_dropped(void **state)
{
    (void)state;
    struct rig r =
        rig_open(SHAKE ASKED "SEND-PART " NESTED "\n"
                             "EXPECT SET k $z NX PX 30000\n"
                             "SEND-PART *9\\r\\n*1\\r\\n\nEXPECT-CLOSE\n",
            'u', "timeout_ms=300");
    struct answer *answer = NULL;
    assert_takes(ask(r.client, &answer), NXL_E_UNREACHABLE, 300, 350);
    assert_null(answer);
    assert_contains(nxl_client_errmsg(r.client), "no answer in time");
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 350);
    nxl_lock_free(r.lock);
    nxl_client_free(r.client);
    fake_free(r.fake);

    r = rig_open(SHAKE ASKED
        "SEND-PART *2\\r\\n$1\\r\\n0\\r\\n\n"
        "WAIT-FOR rest\nSEND *2\\r\\n$1\\r\\na\\r\\n$1\\r\\nb\\r\\n\n" WORKS,
        't', "timeout_ms=300");
    assert_takes(ask(r.client, &answer), NXL_E_UNREACHABLE, 300, 350);
    fake_signal(r.fake, "rest");
    assert_works(r.lock);
    rig_close(&r);
}

/* Lost with its connection it is asked once more, and once only. */
static void it_is_asked_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        struct answer *answer = NULL;
        add(&s, SHAKE ASKED);
        add_cut(&s, &cuts[i], NESTED);
        add(&s, NEXT SHAKE ASKED "SEND " NESTED "$1\\r\\nb\\r\\n\n" WORKS);
        struct rig r = rig_open(s.text, 't', "timeout_ms=1000");
        assert_ends(ask(r.client, &answer), NXL_OK, 1000);
        assert_int_equal(answer_count(answer), 3);
        assert_string_equal(answer_item(answer, 0, NULL), "0");
        assert_string_equal(answer_item(answer, 2, NULL), "b");
        answer_free(answer);
        assert_works(r.lock);
        rig_close(&r);

        s = (struct script){0};
        add(&s, SHAKE ASKED);
        add_cut(&s, &cuts[i], NESTED);
        add(&s, NEXT SHAKE ASKED);
        add_cut(&s, &cuts[i], NESTED);
        r = rig_open(s.text, 't', "timeout_ms=1000");
        assert_ends(ask(r.client, &answer), NXL_E_UNREACHABLE, 1000);
        assert_null(answer);
        assert_contains(nxl_client_errmsg(r.client), "connection");
        rig_close(&r);
    }
}

/* What changes something is sent once: after a lost connection another DEL
 * would be answered 0, as if there had been no line. */
static void a_change_is_not_repeated(void **state)
{
    static const char del[] = "EXPECT DEL {k}:nxl-l\n";
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE "%s", del);
        add_cut(&s, &cuts[i], ":");
        add(&s, NEXT SHAKE "%s" ZERO WORKS, del);
        struct rig r = rig_open(s.text, 't', "timeout_ms=1000");
        assert_ends(lock_empty_line(r.lock), NXL_UNKNOWN, 1000);
        assert_contains(nxl_client_errmsg(r.client), "may have been carried");
        assert_ends(lock_empty_line(r.lock), NXL_FREE, 1000);
        assert_works(r.lock);
        rig_close(&r);
    }
    struct script s = {0};
    add(&s,
        SHAKE "%s"
              "WAIT-FOR over\n" ONE WORKS,
        del);
    struct rig r = rig_open(s.text, 't', "timeout_ms=300");
    assert_takes(lock_empty_line(r.lock), NXL_UNKNOWN, 300, 350);
    assert_contains(nxl_client_errmsg(r.client), "may have been carried");
    fake_signal(r.fake, "over");
    assert_works(r.lock);
    rig_close(&r);

    r = rig_open("EXPECT CLIENT ID\nSILENCE\n", 't', "timeout_ms=100");
    assert_takes(lock_empty_line(r.lock), NXL_E_UNREACHABLE, 100, 150);
    rig_drop(&r);
}

static void no_answer_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        int result;
        const char *words;
    } cases[] = {
        {"-ERR unknown command 'SCAN'", NXL_E_UNSUPPORTED, "unknown command"},
        {"-ERR unknown command 'SCAN'", NXL_E_UNSUPPORTED,
            "; SCAN may be renamed or disabled on this server, or the server "
            "is too old for it"},
        {"-NOPERM no", NXL_E_DENIED, "NOPERM"},
        {"-LOADING wait", NXL_E_REFUSED, "LOADING"},
        {"-WHATEVER it is", NXL_E_SERVER, "WHATEVER"},
        {"HTTP/1.1 400", NXL_E_NOT_REDIS, "HTTP"},
        {"%1\\r\\n", NXL_E_NOT_REDIS, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script s = {0};
        struct answer *answer = NULL;
        add(&s, SHAKE ASKED "SEND %s\\r\\n\n", cases[i].says);
        struct rig r = rig_open(s.text, 'u', "timeout_ms=1000");
        assert_ends(ask(r.client, &answer), cases[i].result, 1000);
        assert_null(answer);
        assert_contains(nxl_client_errmsg(r.client), cases[i].words);
        nxl_lock_free(r.lock);
        nxl_client_free(r.client);
        fake_free(r.fake);
    }
}

static void *ask_in_thread(void *argument)
{
    static int result;
    struct answer *answer = NULL;
    result = ask(argument, &answer);
    answer_free(answer);
    return &result;
}

/* Who asks comes out when the client is freed, as who waits for a lock. */
static void the_client_is_freed(void **state)
{
    (void)state;
    struct fake *fake = fake_start(SHAKE ASKED "TELL asked\nSILENCE\n");
    char url[256];
    void *result;
    pthread_t thread;
    snprintf(url, sizeof(url), "%s?timeout_ms=30000", fake_url(fake));
    nxl_client *client = client_of(url);
    assert_int_equal(pthread_create(&thread, NULL, ask_in_thread, client), 0);
    assert_true(fake_await(fake, "asked"));
    int64_t began = test_now_ms();
    nxl_client_free(client);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_true(test_now_ms() - began < 10000);
    assert_int_equal(*(int *)result, NXL_CANCELLED);
    fake_free(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_of_a_late_answer_is_dropped),
        cmocka_unit_test(it_is_asked_again),
        cmocka_unit_test(a_change_is_not_repeated),
        cmocka_unit_test(no_answer_is_none),
        cmocka_unit_test(the_client_is_freed),
    };
    return cmocka_run_group_tests_name("asked", tests, NULL, NULL);
}
