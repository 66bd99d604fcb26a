/* SPDX-License-Identifier: MIT */
/*
 * A list of servers from its URLs: where it is divided, what all of them have
 * to agree about, and what is refused by name.
 */
#include "support/test.h"

#include <semaphore.h>

#include "client/client.h"
#include "client/sentinel_watch.h"
#include "api/endpoints.h"
#include "api/options.h"
#include "base/clock.h"

static struct endpoints e;
static struct text error;
static const struct settings defaults = {.timeout_ms = 2000,
    .max_ttl_ms = 60000,
    .drift_ppm = 10000,
    .keepalive_s = 15,
    .guard_restarts = GUARD_SWITCH_AUTO};

static int split(const char *list)
{
    text_clear(&error);
    return endpoints_split(&e, list, &defaults, &error);
}

/* Refused, and these words are in the message. */
static void refused(const char *list, int result, const char *words)
{
    assert_int_equal(split(list), result);
    assert_contains(error.data, words);
    assert_int_equal(e.count, 0);
}

/* A parameter whose value is a word is one of a number inside. */
static void timestamps_are_for_one_server(void **state)
{
    (void)state;
    static const char *const lists[] = {"redis://a?scheme=timestamp,redis://b",
        "redis://a,redis://b?scheme=timestamp",
        "redis://a?scheme=timestamp,redis://b?scheme=timestamp"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        refused(lists[i], NXL_E_URL, "scheme=timestamp works with one server");
}

static void divides_before_a_scheme(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        unsigned count;
        const char *last;
    } rows[] = {
        {"redis://a", 1, "redis://a:6379/0"},
        {"redis://a,redis://b", 2, "redis://b:6379/0"},
        {"redis://a:1,valkey://b:2/3,unix:///s", 3, "unix:///s"},
        {"unix:///a,b,unix:///c%2C", 2, "unix:///c,"},
        {"redis://:x,y@a,redis://b", 2, "redis://b:6379/0"},
        {"redis://a?prefix=x,y,redis://b", 2, "redis://b:6379/0"},
        {"redis://a?prefix=x,:/y,redis://b", 2, "redis://b:6379/0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(split(rows[i].list), NXL_OK);
        assert_int_equal(e.count, rows[i].count);
        assert_string_equal(e.at[e.count - 1].address.name.data, rows[i].last);
        endpoints_free(&e);
    }
}

static void fifteen_at_most(void **state)
{
    (void)state;
    char list[1024] = "";
    for (int i = 1; i <= 17; i++) {
        size_t len = strlen(list);
        snprintf(list + len, sizeof(list) - len, "%sredis://h%d",
            i > 1 ? "," : "", i);
        if (i <= 15) {
            assert_int_equal(split(list), NXL_OK);
            assert_int_equal(e.count, i);
            endpoints_free(&e);
        } else {
            refused(list, NXL_E_URL, "servers in the URL; use at most 15");
        }
    }
    refused(NULL, NXL_E_INVALID, "the URL is NULL");
}

static void an_error_names_its_url(void **state)
{
    (void)state;
    refused("redis://a,redis://b:0,redis://c", NXL_E_URL, "URL 2 of 3: ");
    refused("redis://a,rediss://b?cacert=/none", NXL_E_URL, "URL 2 of 2: ");
    refused("redis://a,redis://b?ttl=1", NXL_E_URL, "URL 2 of 2: ");
    refused("redis://a,redis:// b", NXL_E_URL, "space");
    refused("redis://a:", NXL_E_URL, "port");
    assert_null(strstr(error.data, "URL 1 of"));
}

/* Not by the words for the part in which it stands. */
static void a_stray_comma_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *list, *words;
    } rows[] = {
        {"redis://a,", "the ',' at byte 10 ends the list"},
        {"redis://a:1,,redis://b", "URL 1 of 2: the ',' at byte 12"},
        {"redis://a,redis://b/2,", "URL 2 of 2: the ',' at byte 12"},
        {"redis://:p,q@a:1,", "the ',' at byte 17"},
        {"unix:///s,,redis://b", "URL 1 of 2: the ',' at byte 10"},
        {"redis://a?timeout_ms=100,,redis://b", "at byte 25"},
        {",redis://a", "URL 1 of 2: the URL is empty"},
        {"redis://a,b",
            "the ',' at byte 10 is not followed by a URL with a scheme"},
        {"redis://a:1,b:2,redis://c", "URL 1 of 2: the ',' at byte 12"},
        {"redis://:p,q@a:1,b:2", "the ',' at byte 17 is not followed by a URL"},
        {"redis://a/0, redis://b",
            "the ',' at byte 12 is not followed by a URL"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refused(rows[i].list, NXL_E_URL, rows[i].words);
    refused("redis://a:x?prefix=p,q", NXL_E_URL, "port");
    refused("redis://a?prefix=p,q&ttl=1", NXL_E_URL, "unknown");
    refused("redis://:secret,two", NXL_E_URL, "host");
    assert_null(strstr(error.data, "two"));
}

static void an_address_is_named_once(void **state)
{
    (void)state;
    static const char *const same[] = {"redis://a,redis://b,redis://a:6379",
        "redis://a,redis://b,valkey://A/3", "redis://a,redis://b,redis://x@a",
        "unix:///s,redis://b,unix:///s?db=1"};
    static const char *const different[] = {"redis://a:1,redis://a:2",
        "unix:///a,unix:///A", "redis://a,unix:///a"};
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        if (strstr(same[i], "x@"))
            refused(same[i], NXL_E_URL, "URL 3 of 3: ");
        else
            refused(same[i], NXL_E_URL, "URLs 1 and 3 name the same server");
    for (size_t i = 0; i < sizeof(different) / sizeof(different[0]); i++) {
        assert_int_equal(split(different[i]), NXL_OK);
        endpoints_free(&e);
    }
}

static void the_client_is_of_one_mind(void **state)
{
    (void)state;
    static const char *const parameters[][3] = {{"timeout_ms", "100", "200"},
        {"max_ttl_ms", "1000", "2000"}, {"drift_ppm", "1", "2"},
        {"prefix", "a:", "b:"}, {"guard_restarts", "on", "off"},
        {"interop", "1", "0"}};
    char list[256], words[128];
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
        const char *const *p = parameters[i];
        snprintf(list, sizeof(list),
            "redis://a?%s=%s,redis://b,redis://c?%s=%s", p[0], p[1], p[0],
            p[2]);
        snprintf(words, sizeof(words),
            "%s applies to the whole client, but URLs 1 and 3", p[0]);
        refused(list, NXL_E_URL, words);
        /* One of them, or all alike, is enough. */
        snprintf(list, sizeof(list),
            "redis://a,redis://b?%s=%s,redis://c?%s=%s", p[0], p[1], p[0],
            p[1]);
        assert_int_equal(split(list), NXL_OK);
        size_t row = param_find(slice_of(p[0]));
        for (unsigned j = 0; j < 3; j++)
            assert_true(param_equal(row, &e.at[j].settings, &e.at[1].settings));
        assert_false(param_equal(row, &e.at[0].settings, &defaults));
        endpoints_free(&e);
    }
    /* The default, written out, is an opinion too. */
    refused("redis://a?timeout_ms=2000,redis://b?timeout_ms=100", NXL_E_URL,
        "timeout_ms");
}

static void a_server_has_its_own(void **state)
{
    (void)state;
    assert_int_equal(split("redis://u:p@a/1?keepalive_s=1&durable=1,"
                           "redis://:q@b/2?keepalive_s=2,redis://c"),
        NXL_OK);
    assert_string_equal(e.at[0].settings.login.user, "u");
    assert_string_equal(e.at[1].settings.login.password, "q");
    assert_null(e.at[2].settings.login.password);
    assert_null(e.at[1].settings.login.user);
    assert_int_equal(e.at[1].settings.db, 2);
    assert_int_equal(e.at[2].settings.db, 0);
    assert_int_equal(e.at[0].settings.durable, 1);
    assert_int_equal(e.at[1].settings.durable, 0);
    assert_int_equal(e.at[2].settings.keepalive_s, 15);
    endpoints_free(&e);
}

/* ------------------------------------------------------------ constructors */

static void guard_of(const char *url, int64_t option, bool expected)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    options.guard_restarts = option;
    assert_int_equal(nxl_client_new(&client, url, &options), NXL_OK);
    assert_int_equal(client->guards_restarts, expected);
    nxl_client_free(client);
}

static void guard_is_on_from_two_on(void **state)
{
    (void)state;
    guard_of("redis://a", NXL_GUARD_AUTO, false);
    guard_of("redis://a", NXL_GUARD_ON, true);
    guard_of("redis://a?guard_restarts=on", NXL_GUARD_OFF, true);
    guard_of("redis://a,redis://b", NXL_GUARD_AUTO, true);
    guard_of("redis://a,redis://b?guard_restarts=auto", NXL_GUARD_OFF, true);
    guard_of("redis://a,redis://b", NXL_GUARD_OFF, false);
    guard_of("redis://a,redis://b?guard_restarts=off", NXL_GUARD_ON, false);
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    options.guard_restarts = 3;
    assert_int_equal(
        nxl_client_new(&client, "redis://a", &options), NXL_E_INVALID);
}

static void accepted(const char *list)
{
    assert_int_equal(split(list), NXL_OK);
}

/* One service is one server, and it may fail over. */
static void sentinels_lead_to_one_server(void **state)
{
    (void)state;
    accepted("redis+sentinel://h/m");
    assert_false(e.copies_decided);
    endpoints_free(&e);
    accepted("redis+sentinel://h/m?wait_replicas=0");
    assert_true(e.copies_decided);
    endpoints_free(&e);
    refused("redis+sentinel://h/m?guard_restarts=off", NXL_E_URL,
        "guard_failover=on, the default with Sentinels, includes "
        "guard_restarts: remove guard_restarts=off");
    refused("redis+sentinel://h/m?scheme=timestamp&guard_failover=off",
        NXL_E_URL, "scheme=timestamp does not work with Sentinels");
    refused("redis://a,redis+sentinel://h1,h2/m", NXL_E_URL,
        "URL 2 of 2 names Sentinels: one Sentinel service is one server, and "
        "Redlock needs independent servers");
    refused("redis+sentinel://h1/m,redis+sentinel://h2/m", NXL_E_URL,
        "list the Sentinels of a service in one URL");
    refused("redis+sentinel://h/m?wait_ms=600", NXL_E_URL, "500ms");
    refused("redis+sentinel://h/m,redis://", NXL_E_URL, "URL 1 of 2 names");
    refused("redis+sentinel://h/m,h2", NXL_E_URL, "must be written %2C");
    refused("redis+sentinel://h,h2/m,", NXL_E_URL, "empty element");
    refused("redis+sentinel://h/m?prefix=x,redis+sentinel://h", NXL_E_URL,
        "URL 2 of 2: the service in the URL (byte 19) is missing");
    refused("redis+sentinel://h/m?sentinel_password_file=/nowhere/pw",
        NXL_E_URL, "cannot use the password file /nowhere/pw");
    /* For the file, or because this build has no TLS. */
    assert_int_equal(split("redis+sentinel://h/m?sentinel_tls=1&"
                           "cacert=/nowhere/ca"),
        NXL_E_URL);
}

/* To a replica there is no way through the Sentinels, their TLS does not
 * protect its password, and nothing is written there. */
static void leads_to_a_replica(void **state)
{
    (void)state;
    /* A build without TLS has nothing to protect it with. */
    if (split("redis+sentinel://u:p@h,i/m/1?sentinel_tls=1&durable=0") !=
        NXL_OK)
        accepted("redis+sentinel://u:p@h,i/m/1?durable=0");
    assert_int_equal(endpoints_lead_to(&e, "::1", 7, &error), NXL_OK);
    assert_string_equal(e.at[0].address.name.data, "redis://[::1]:7/0");
    assert_string_equal(e.at[0].settings.login.user, "u");
    assert_string_equal(e.at[0].settings.login.password, "p");
    assert_null(e.at[0].sentinels);
    assert_null(target_of(&e.at[0]).tls);
    assert_false(e.guards_restarts || e.guards_failover);
    endpoints_free(&e);
    accepted("unix://u:p@/s?db=3&durable=1");
    assert_int_equal(endpoints_lead_to(&e, "h", 7, &error), NXL_OK);
    assert_string_equal(e.at[0].address.name.data, "redis://h:7/0");
    assert_null(e.at[0].address.path);
    assert_false(e.at[0].settings.durable);
    endpoints_free(&e);
}

static bool reports_the_login(void *arg, nxl_credentials *c)
{
    nxl_credentials *asked = arg;
    asked->server = c->server;
    asked->sentinel = c->sentinel;
    c->password[0] = 'x';
    return true;
}

/* A callback that knows of no Sentinels would send them the server's
 * password. */
static void a_callback_logs_in_to_sentinels_with_a_user(void **state)
{
    (void)state;
    struct login_answer answer = {.why = ""};
    struct settings set;
    nxl_credentials asked = {.size = 0};
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.credentials = reports_the_login;
    options.credentials_arg = &asked;
    assert_true(options_client(&options, &set, &error));
    assert_true(set.login.source.ask(&set.login.source, 3, &answer));
    assert_int_equal(asked.server, 3);
    assert_false(asked.sentinel);
    const struct login_source *source = &set.sentinel_login.source;
    assert_true(source->ask(source, 0, &answer));
    assert_true(asked.sentinel);

    static const char *const urls[] = {
        "redis+sentinel://joe@h/m", "redis+sentinel://joe@h/m?sentinel_user=s"};
    for (size_t i = 0; i < 2; i++) {
        (void)endpoints_parse(&e, &urls[i], 1, &set, &error);
        source = &e.at[0].settings.sentinel_login.source;
        assert_non_null(e.at[0].settings.login.source.ask);
        assert_int_equal(source->ask != NULL, i == 1);
        assert_int_equal(source->sentinel, i == 1);
        endpoints_free(&e);
    }
}

static sem_t begun, allowed;

static bool answers_when_allowed(void *arg, nxl_credentials *c)
{
    (void)arg, (void)c;
    sem_post(&begun);
    sem_wait(&allowed);
    return false;
}

/* nxl_client_free() waits for the jobs that sentinel_watch_stop() gives it:
 * after that the program may free what its callback uses. */
static void the_callback_for_a_former_primary_is_awaited_too(void **state)
{
    (void)state;
    struct job *callbacks[SENTINEL_WATCH_SERVERS] = {NULL};
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    options.credentials = answers_when_allowed;
    assert_int_equal(sem_init(&begun, 0, 0) + sem_init(&allowed, 0, 0), 0);
    assert_int_equal(
        nxl_client_new(&client, "redis+sentinel://joe@h/m", &options), NXL_OK);
    struct sentinel_watch *w = client->sentinel_watch;
    struct former_primary *former = &w->former_primary;
    uint64_t now = clock_now();
    former_primary_ask(
        former, strdup("127.0.0.1"), 1, &w->endpoint->address.name, now);
    server_push(&former->server, now);
    sem_wait(&begun);
    assert_int_equal(sentinel_watch_stop(w, callbacks), 2);
    assert_null(callbacks[0]); /* the Sentinel was not asked */
    assert_non_null(callbacks[1]);
    assert_false(former_primary_is_asked(former));
    sem_post(&allowed);
    job_wait(callbacks[1]);
    job_drop(callbacks[1]);
    nxl_client_free(client);
}

/* The longest lease is how long a guard lasts. */
static void guards_and_the_longest_lease(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        bool restarts, failover;
        unsigned max_ttl_ms;
    } rows[] = {
        {"redis://a", false, false, 60000},
        {"redis://a?guard_restarts=on", true, false, 30000},
        {"redis://a?guard_failover=on", true, true, 30000},
        {"redis://a?guard_failover=on&guard_restarts=on", true, true, 30000},
        {"redis://a?guard_failover=on&max_ttl_ms=60000", true, true, 60000},
        {"redis://a?guard_failover=off", false, false, 60000},
        {"redis://a,redis://b", true, true, 30000},
        {"redis://a,redis://b?max_ttl_ms=5000", true, true, 5000},
        {"redis://a,redis://b?guard_failover=off", true, false, 30000},
        {"redis://a,redis://b?guard_restarts=off", false, false, 60000},
        {"redis://a,redis://b?guard_restarts=off&guard_failover=off", false,
            false, 60000},
        {"redis+sentinel://h1,h2,h3/m", true, true, 30000},
        {"redis+sentinel://h/m?max_ttl_ms=5000", true, true, 5000},
        {"redis+sentinel://h/m?guard_failover=off", false, false, 60000},
        {"redis+sentinel://h/m?guard_failover=off&guard_restarts=on", true,
            false, 30000},
        {"redis+sentinel://h/m?guard_failover=off&guard_restarts=off", false,
            false, 60000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(split(rows[i].list), NXL_OK);
        print_message("%s\n", rows[i].list);
        assert_int_equal(e.guards_restarts, rows[i].restarts);
        assert_int_equal(e.guards_failover, rows[i].failover);
        for (unsigned k = 0; k < e.count; k++)
            assert_int_equal(e.at[k].settings.max_ttl_ms, rows[i].max_ttl_ms);
        endpoints_free(&e);
    }
    refused("redis://a?guard_failover=on&guard_restarts=off", NXL_E_URL,
        "remove guard_restarts=off");
    accepted("redis://a?guard_failover=on&wait_aof=1");
    endpoints_free(&e);
    refused("redis://a?guard_failover=on&wait_aof=1&wait_replicas=1", NXL_E_URL,
        "remove wait_aof");
    refused("redis+sentinel://h/m?wait_aof=1&wait_replicas=1", NXL_E_URL,
        "remove wait_aof");
    refused("redis://a?guard_failover=on&scheme=timestamp", NXL_E_URL,
        "does not work with scheme=timestamp");
}

static void polls(const char *url, int64_t option, uint64_t expected)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    options.poll = option;
    assert_int_equal(nxl_client_new(&client, url, &options), NXL_OK);
    assert_int_equal(
        nodes_first(&client->nodes)->server.to.settings->poll, expected);
    nxl_client_free(client);
}

/* A number means the same in the option and in the URL, which comes first. */
static void poll_is_off_unless_asked_for(void **state)
{
    (void)state;
    char why[128] = "";
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    polls("redis://a", 0, 0);
    polls("redis://a", 1, 1);
    polls("redis://a?poll=0", 0, 0);
    polls("redis://a?poll=1", 0, 1);
    polls("redis://a?poll=0", 1, 0);
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    options.poll = -1;
    assert_int_equal(
        nxl_client_new(&client, "redis://a", &options), NXL_E_INVALID);
    assert_string_equal(why, "poll is -1; it must be 1 (on) or 0 (off)");
}

static void arrays(void **state)
{
    (void)state;
    char why[128] = "";
    static const char *const urls[] = {
        "redis://a", "redis://b", "redis://c?prefix=x,redis://y"};
    static const char *const hole[] = {"redis://a", NULL};
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    for (size_t i = 1; i <= 3; i++) {
        assert_int_equal(
            nxl_client_new_urls(&client, urls, i, &options), NXL_OK);
        assert_int_equal(nxl_client_servers(client), i);
        nxl_client_free(client);
    }
    assert_int_equal(
        nxl_client_new_urls(&client, urls, 0, &options), NXL_E_INVALID);
    assert_contains(why, "0 servers");
    assert_null(client);
    assert_int_equal(
        nxl_client_new_urls(&client, hole, 2, &options), NXL_E_INVALID);
    assert_int_equal(
        nxl_client_new_urls(&client, NULL, 2, &options), NXL_E_INVALID);
    assert_int_equal(nxl_client_new_urls(NULL, urls, 2, NULL), NXL_E_INVALID);
    assert_int_equal(nxl_client_servers(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divides_before_a_scheme),
        cmocka_unit_test(timestamps_are_for_one_server),
        cmocka_unit_test(fifteen_at_most),
        cmocka_unit_test(an_error_names_its_url),
        cmocka_unit_test(a_stray_comma_is_named),
        cmocka_unit_test(an_address_is_named_once),
        cmocka_unit_test(the_client_is_of_one_mind),
        cmocka_unit_test(a_server_has_its_own),
        cmocka_unit_test(guard_is_on_from_two_on),
        cmocka_unit_test(guards_and_the_longest_lease),
        cmocka_unit_test(sentinels_lead_to_one_server),
        cmocka_unit_test(leads_to_a_replica),
        cmocka_unit_test(a_callback_logs_in_to_sentinels_with_a_user),
        cmocka_unit_test(the_callback_for_a_former_primary_is_awaited_too),
        cmocka_unit_test(poll_is_off_unless_asked_for),
        cmocka_unit_test(arrays),
    };
    return cmocka_run_group_tests_name("endpoints", tests, NULL, NULL);
}
