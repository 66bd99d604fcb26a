/* SPDX-License-Identifier: MIT */
/*
 * A peer that repeats what it was sent, in a reply of each kind. Nothing that
 * the library says may show the password or a token.
 */
#include "api/private.h"
#include "rig.h"

#include "base/redact.h"

/* In the URL, and as it is sent. No four bytes in a row of it may be seen, nor
 * what else there is. */
struct password {
    const char *in_url, *sent, *never;
};

static const struct password strong = {
    "Zqx7%26Wv%20k9%2Fmm", "Zqx7&Wv k9/mm", NULL};

#define LONG                                                                   \
    "00000000000000000000000000000000000000000000000000000000000000000000"     \
    "0000000000000000000000000000000000000000000000000000000000000000 "

/* How a peer answers the first command; %s is the password. How it may be
 * spelt, and what else it may be, is in unit/test_redact.c. */
static const char *const echoes[] = {
    "-ERR bad request 'AUTH %s'\\r\\n",
    "-WRONGPASS no: AUTH %s\\r\\n",
    "-LOADING AUTH %s\\r\\n",
    "-DENIED AUTH %s\\r\\n",
    "+AUTH %s\\r\\n",
    "$1000\\r\\nAUTH %s",
    "*2\\r\\n$4\\r\\nAUTH\\r\\n$100\\r\\n%s",
    "AUTH %s\\r\\n",
    "220 %s ESMTP\\r\\n",
    "%s\\r\\n",
    "HTTP/1.1 400 AUTH %s\\r\\n\\r\\n",
    "GET /AUTH/%s HTTP/1.1\\r\\n",
    /* Cut where its 32 bytes, or the peer's buffer, end. */
    "bytes that fill the line, AUTH %s\\r\\n",
    "no reply at all: AUTH %.8s",
    "-ERR longer than any message has room for, " LONG "AUTH %s\\r\\n",
};
#define ECHOES (sizeof(echoes) / sizeof(echoes[0]))

/* In capitals or not. */
static bool shows(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

/* The part of the password that the text shows, or NULL. */
static const char *part_shown(const char *text, const struct password *p)
{
    static char part[5];

    if (p->never && shows(text, p->never))
        return p->never;
    for (const char *at = p->sent; strlen(at) >= 4; at++) {
        memcpy(part, at, 4);
        if (shows(text, part))
            return part;
    }
    return NULL;
}

static void assert_hidden(
    const char *where, const char *text, const struct password *p)
{
    const char *part = part_shown(text, p);

    if (part)
        fail_msg("%s shows '%s': %s", where, part, text);
}

struct heard {
    size_t traces;
    const struct password *password;
};

static void hear(void *arg, const nxl_trace *trace)
{
    struct heard *heard = arg;
    heard->traces++;
    assert_hidden("a trace", trace->text, heard->password);
}

/* All that can be read about the last operation. */
static void assert_all_hidden(
    nxl_client *client, nxl_lock *lock, const struct password *p)
{
    char text[2048];
    assert_hidden("errmsg", nxl_lock_errmsg(lock), p);
    assert_hidden("errmsg_at", nxl_lock_errmsg_at(lock, 0), p);
    assert_hidden("client_errmsg", nxl_client_errmsg(client), p);
    nxl_client_describe(client, text, sizeof(text));
    assert_hidden("describe", text, p);
}

/* The name of the fake's folder is random, is part of what is said of it, and
 * may show letters of a password: then another one is taken. */
static struct fake *fake_apart(
    const char *script, const struct password *password)
{
    struct fake *fake = fake_start(script);

    if (!part_shown(fake_url(fake), password))
        return fake;
    fake_free(fake);
    return fake_apart(script, password);
}

static void meet(const char *echo, const struct password *password)
{
    struct script s = {0};
    char reply[1024], params[256];
    struct heard heard = {0, password};
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;

    snprintf(reply, sizeof(reply), echo, password->sent);
    add(&s, "ACCEPT *\nEXPECT AUTH *\nSEND %s\nCLOSE\n", reply);
    struct fake *fake = fake_apart(s.text, password);
    options.tracer = hear;
    options.tracer_arg = &heard;
    snprintf(params, sizeof(params), "%s?timeout_ms=10000&password=%s",
        fake_url(fake), password->in_url);
    assert_int_equal(nxl_client_new(&client, params, &options), NXL_OK);
    nxl_lock *lock = lock_of_name(client, "k", 30000);
    int rc = nxl_lock_acquire(lock, 0);
    assert_true(rc < 0);
    assert_true(strlen(nxl_lock_errmsg(lock)) > 0);
    assert_all_hidden(client, lock, password);
    assert_true(heard.traces > 0);
    struct answer *answer;
    const char *ping[] = {"PING"};
    assert_true(client_ask(client, 0, 1, ping, NULL, &answer) != NXL_OK);
    assert_all_hidden(client, lock, password);
    nxl_lock_free(lock);
    nxl_client_free(client);
    fake_free(fake);
}

static void a_password_is_hidden(void **state)
{
    (void)state;
    for (size_t i = 0; i < ECHOES; i++)
        meet(echoes[i], &strong);
}

/* The user's name is no secret, and helps to find what is wrong. */
static void a_user_is_shown(void **state)
{
    (void)state;
    char url[256];
    struct fake *fake = fake_start("EXPECT AUTH alice *\n"
                                   "SEND -ERR alice may not use this\\r\\n\n");
    snprintf(url, sizeof(url),
        "%s?timeout_ms=10000&user=alice&password=h0rse.battery",
        fake_url(fake));
    nxl_client *client = client_of(url);
    nxl_lock *lock = lock_of_name(client, "k", 30000);
    assert_int_equal(nxl_lock_acquire(lock, 0), NXL_E_DENIED);
    assert_contains(
        nxl_lock_errmsg(lock), "ERR alice may not use this; check the user");
    nxl_lock_free(lock);
    nxl_client_free(client);
    fake_free(fake);
}

/* -------------------------------------------------------------- the token */

static const char *const token_echoes[] = {
    "-ERR refused: SET k $t NX PX 30000\\r\\n",
    "-ERR refused: 'k' '$t'\\r\\n",
    "-NOPERM k $t\\r\\n",
    "-OOM SET k $t\\r\\n",
    "+SET k $t\\r\\n",
    "SET k $t\\r\\n",
};

static void a_token_is_hidden(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct script s = {0};
        add(&s, SHAKE SET_T "SEND %s\nCLOSE\nACCEPT *\nSERVE\n",
            token_echoes[i]);
        struct rig r = rig_open(s.text, 'u', "timeout_ms=10000");
        int rc = nxl_lock_acquire(r.lock, 0);
        assert_true(rc != NXL_OK);
        const char *token = fake_taken(r.fake, "t");
        char part[20];
        snprintf(part, sizeof(part), "%.12s", token + 9);
        const struct password p = {"", "", part};
        assert_all_hidden(r.client, r.lock, &p);
        nxl_lock_free(r.lock);
        nxl_client_free(r.client);
        fake_free(r.fake);
    }
}

/* ---------------------------------------------------------- several servers */

static char warned[1024];

static void warn(void *arg, const char *text)
{
    (void)arg;
    snprintf(warned, sizeof(warned), "%s", text);
}

/* A proxy in front of one server may repeat what another one was sent. Two
 * would be enough: they wait until the third one's refusal has been read. */
static void each_servers_password_is_hidden(void **state)
{
    (void)state;
    static const struct password first = {NULL, "f1rst.key", NULL};
    struct fake *fake[3];
    char list[1024];
    size_t len = 0;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;

    for (int i = 0; i < 3; i++) {
        struct script s = {0};
        if (i < 2)
            add(&s,
                "INFO role:master\\r\\nuptime_in_seconds:99999\\r\\n"
                "run_id:%c\nWAIT-FOR refused\nSERVE\nACCEPT *\nSERVE\n",
                'a' + i);
        else
            add(&s, "ACCEPT *\nEXPECT AUTH *\n"
                    "SEND -ERR f1rst.key\\r\\n\nCLOSE\n");
        fake[i] = fake_start(s.text);
        len += (size_t)snprintf(list + len, sizeof(list) - len,
            "%s%s?password=%s", i ? "," : "", fake_url(fake[i]),
            i == 0 ? "f1rst.key" : "an0ther");
    }
    options.warning = warn;
    options.timeout_ms = 10000;
    assert_int_equal(nxl_client_new(&client, list, &options), NXL_OK);
    nxl_lock *lock = lock_of_name(client, "k", 30000);
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    turn_until(client, shows(nxl_lock_errmsg_at(lock, 2), "text omitted"));
    fake_signal(fake[0], "refused");
    fake_signal(fake[1], "refused");
    assert_int_equal(event_result(client, lock), NXL_OK);
    assert_all_hidden(client, lock, &first);
    assert_hidden("errmsg_at", nxl_lock_errmsg_at(lock, 2), &first);
    assert_contains(warned, REDACTED_SECRET);
    assert_hidden("the warning", warned, &first);
    nxl_lock_free(lock);
    nxl_client_free(client);
    for (int i = 0; i < 3; i++)
        fake_free(fake[i]);
}

/* nxl_client_describe() shows what INFO says in words of its own. */
static void facts_are_hidden(void **state)
{
    (void)state;
    static const struct password p = {"s3cr3t.x", "s3cr3t.x", NULL};
    struct rig r =
        rig_open("INFO redis_version:s3cr3t.x\\r\\nserver_name:s3cr3t.x\\r\\n"
                 "role:s3cr3t.x\nSERVE\n",
            'u', "timeout_ms=10000&password=s3cr3t.x");
    assert_int_equal(nxl_lock_acquire(r.lock, 0), NXL_OK);
    assert_all_hidden(r.client, r.lock, &p);
    rig_close(&r);
}

/* Answers are exact; what prints them asks whether they may be shown. */
static void an_answer_can_be_omitted(void **state)
{
    (void)state;
    struct rig r =
        rig_open(SHAKE "EXPECT TYPE k\nSEND +you sent s3cr3t.x\\r\\n\n", 'u',
            "timeout_ms=10000&password=s3cr3t.x");
    const char *words[] = {"TYPE", "k"};
    struct answer *answer;
    assert_int_equal(client_ask(r.client, 0, 2, words, NULL, &answer), NXL_OK);
    size_t length;
    const char *said = answer_item(answer, 0, &length);
    assert_string_equal(said, "you sent s3cr3t.x");
    assert_string_equal(client_shown(r.client, said, &length), REDACTED_SECRET);
    assert_int_equal(length, strlen(REDACTED_SECRET));
    length = strlen("you sent s3c");
    assert_ptr_equal(client_shown(r.client, said, &length), said);
    assert_int_equal(length, strlen("you sent s3c"));
    answer_free(answer);
    rig_close(&r);
}

/* Who took a lock away is told by the label that stands at the server. */
static void the_label_of_a_loss_is_hidden(void **state)
{
    (void)state;
    static const struct password p = {"s3cr3t.x", "s3cr3t.x", NULL};
    char url[256], why[512];
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    struct fake *fake = fake_start(
        SHAKE "EXPECT SET k $t NX PX 3000\n" OK
              "EXPECT EVALSHA * 1 k $t 3000\nSEND :-2\\r\\n\n"
              "EXPECT EVALSHA * 1 k\nSEND *2\\r\\n$45\\r\\n"
              "6fa459ea-ee8a-4ca4-894e-db77e160355e@s3cr3t.x\\r\\n:9000\\r\\n\n"
              "SERVE\nACCEPT *\nSERVE\n");
    snprintf(url, sizeof(url), "%s?timeout_ms=10000&password=s3cr3t.x",
        fake_url(fake));
    nxl_client *client = client_of(url);
    options.ttl_ms = 3000;
    options.renew = 1;
    assert_int_equal(nxl_lock_new(&lock, client, "k", &options), NXL_OK);
    assert_int_equal(nxl_lock_acquire(lock, 0), NXL_OK);
    assert_eventually(nxl_lock_loss(lock, why, sizeof(why)) != NXL_LOSS_NONE);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_TAKEN);
    assert_hidden("the loss", why, &p);
    nxl_lock_free(lock);
    nxl_client_free(client);
    fake_free(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_password_is_hidden),
        cmocka_unit_test(a_user_is_shown),
        cmocka_unit_test(a_token_is_hidden),
        cmocka_unit_test(each_servers_password_is_hidden),
        cmocka_unit_test(facts_are_hidden),
        cmocka_unit_test(an_answer_can_be_omitted),
        cmocka_unit_test(the_label_of_a_loss_is_hidden),
    };
    return cmocka_run_group_tests_name("echo", tests, NULL, NULL);
}
