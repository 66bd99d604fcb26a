/* SPDX-License-Identifier: MIT */
/*
 * URLs: what each part means, and what is refused with which words. That no
 * words contain a password is checked by tests/fuzz/url.c. Linked with
 * --wrap=calloc, so that memory can be made to run out.
 */
#include "support/test.h"

#include "config/url.h"

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static int calloc_left = -1; /* -1: no end */

void *__wrap_calloc(size_t count, size_t size)
{
    if (calloc_left == 0)
        return NULL;
    if (calloc_left > 0)
        calloc_left--;
    return __real_calloc(count, size);
}

static enum url_result parse(
    struct endpoint *e, const char *url, struct text *error)
{
    memset(e, 0xa5, sizeof(*e));
    e->settings = (struct settings){.timeout_ms = 2000,
        .max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .keepalive_s = 15};
    text_clear(error);
    return url_parse(e, url, error);
}

static const struct good {
    const char *url, *host, *path, *user, *password, *name;
    unsigned port, db;
} good[] = {
    {"redis://", "127.0.0.1", NULL, NULL, NULL, "redis://127.0.0.1:6379/0",
        6379, 0},
    {"redis:///2", "127.0.0.1", NULL, NULL, NULL, "redis://127.0.0.1:6379/2",
        6379, 2},
    {"redis://?db=3", "127.0.0.1", NULL, NULL, NULL, "redis://127.0.0.1:6379/3",
        6379, 3},
    {"redis://localhost", "localhost", NULL, NULL, NULL,
        "redis://localhost:6379/0", 6379, 0},
    {"REDIS://LocalHost/", "LocalHost", NULL, NULL, NULL,
        "REDIS://LocalHost:6379/0", 6379, 0},
    {"valkey://db-1.example_x:7000/15", "db-1.example_x", NULL, NULL, NULL,
        "valkey://db-1.example_x:7000/15", 7000, 15},
    {"redis://h:1/2147483647", "h", NULL, NULL, NULL, "redis://h:1/2147483647",
        1, 2147483647},
    {"redis://h:65535?db=1&", "h", NULL, NULL, NULL, "redis://h:65535/1", 65535,
        1},
    {"redis://h/1?db=1", "h", NULL, NULL, NULL, "redis://h:6379/1", 6379, 1},
    {"redis://h/%31%32", "h", NULL, NULL, NULL, "redis://h:6379/12", 6379, 12},
    {"redis://:pw@h", "h", NULL, NULL, "pw", "redis://h:6379/0", 6379, 0},
    {"redis://joe:pw@h:7/1", "h", NULL, "joe", "pw", "redis://h:7/1", 7, 1},
    {"redis://joe:pw@", "127.0.0.1", NULL, "joe", "pw",
        "redis://127.0.0.1:6379/0", 6379, 0},
    {"redis://joe:p@w:x@h", "h", NULL, "joe", "p@w:x", "redis://h:6379/0", 6379,
        0},
    {"redis://j%6Fe%3A:%40%2f%3F%23%25%20%0a@h", "h", NULL, "joe:", "@/?#% \n",
        "redis://h:6379/0", 6379, 0},
    {"redis://h?user=joe&password=a@b%26c=d", "h", NULL, "joe", "a@b&c=d",
        "redis://h:6379/0", 6379, 0},
    {"redis://joe@h?password=pw", "h", NULL, "joe", "pw", "redis://h:6379/0",
        6379, 0},
    {"redis://:pw@h?user=joe", "h", NULL, "joe", "pw", "redis://h:6379/0", 6379,
        0},
    {"redis://[::1]", "::1", NULL, NULL, NULL, "redis://[::1]:6379/0", 6379, 0},
    {"redis://joe:pw@[2001:db8::1]:7000/4", "2001:db8::1", NULL, "joe", "pw",
        "redis://[2001:db8::1]:7000/4", 7000, 4},
    {"redis://[fe80::1%25eth0]:7000", "fe80::1%eth0", NULL, NULL, NULL,
        "redis://[fe80::1%eth0]:7000/0", 7000, 0},
    {"redis://[::ffff:10.0.0.1]", "::ffff:10.0.0.1", NULL, NULL, NULL,
        "redis://[::ffff:10.0.0.1]:6379/0", 6379, 0},
    {"redis://:p%5bw@[::1]", "::1", NULL, NULL, "p[w", "redis://[::1]:6379/0",
        6379, 0},
    {"unix:///run/redis.sock", NULL, "/run/redis.sock", NULL, NULL,
        "unix:///run/redis.sock", 6379, 0},
    {"unix:///run/a%40b:c%20d%0a?db=2", NULL, "/run/a@b:c d\n", NULL, NULL,
        "unix:///run/a@b:c d\\x0a?db=2", 6379, 2},
    {"unix://joe:p@w@/run/r?timeout_ms=10", NULL, "/run/r", "joe", "p@w",
        "unix:///run/r", 6379, 0},
    {"unix://:pw@/run/r", NULL, "/run/r", NULL, "pw", "unix:///run/r", 6379, 0},
};

static void check_text(const char *got, const char *expected)
{
    if (expected) {
        assert_non_null(got);
        assert_string_equal(got, expected);
    } else {
        assert_null(got);
    }
}

static void parts_are_understood(void **state)
{
    struct endpoint e;
    struct text error;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const struct good *g = &good[i];
        enum url_result result = parse(&e, g->url, &error);
        if (result != URL_OK)
            print_error("%s: %s\n", g->url, error.data);
        assert_int_equal(result, URL_OK);
        check_text(e.address.host, g->host);
        check_text(e.address.path, g->path);
        check_text(e.settings.login.user, g->user);
        check_text(e.settings.login.password, g->password);
        check_text(e.address.name.data, g->name);
        assert_int_equal(e.address.port, g->port);
        assert_int_equal(e.settings.db, g->db);
        endpoint_free(&e);
        endpoint_free(&e);
    }
}

static const struct bad {
    const char *url, *words;
} bad[] = {
    {"", "is empty"},
    {"localhost:6379", "no scheme; write redis://localhost:6379"},
    {"localhost", "no scheme; write redis://localhost"},
    {"db7:6380/2", "no scheme; write redis://db7:6380/2"},
    {"6380", "no scheme; write redis://localhost:6380"},
    {"joe:S3CRET", "no scheme; write redis://localhost:6379"},
    {"redis:/localhost", "one slash after 'redis:' instead of two; write "
                         "redis://localhost"},
    {"REDISS:/db7:6380/2", "one slash after 'rediss:' instead of two; write "
                           "rediss://db7:6380/2"},
    {"redis:/u:S3CRET@h", "instead of two; write redis://localhost:6379"},
    {"redis+sentinel:/a,b,c/svc", "write redis+sentinel://host:26379/SERV"},
    {"redis+sentinel:/a", "write redis+sentinel://host:26379/SERVICE"},
    {"unix:/run/r.sock", "instead of two; write unix:///run/r.sock"},
    {"redis:6379", "no scheme"},
    {"joe:S3CRET@localhost", "no scheme"},
    {"/run/redis.sock", "no scheme; write unix:///run/redis.sock"},
    {"//run/r.sock", "no scheme; write unix:///run/r.sock"},
    {"unix:r.sock", "write unix:///run/redis.sock"},
    {"/:S3CRET@/run/r.sock", "write unix:///run/redis.sock"},
    {"http://localhost", "scheme 'http' is unknown; write redis://"},
    {"redis-sentinel://a:26379",
        "'redis-sentinel' is unknown; for servers that Sentinels monitor write "
        "redis+sentinel://host:26379/SERVICE, or rediss+sentinel:// (TLS)"},
    {"REDIS-SENTINEL://:S3CRET@a", "write redis+sentinel://host"},
    {"sentinel://a", "write redis+sentinel://host"},
    {"redis-sentinel://h/0#mymaster",
        "'#' in the URL (byte 21) does not begin the service here; write "
        "redis+sentinel://host:26379/SERVICE/db"},
    {"redis+sentinel://:S3CRET@h/0#m", "does not begin the service here"},
    {"redis://h/0#sentinel", "would begin a fragment"},
    {"redis+sentinel://a",
        "the service in the URL (byte 19) is missing; write "
        "redis+sentinel://host:26379/SERVICE, the name in the Sentinels' "
        "\"sentinel monitor\""},
    {"redis+sentinel://a/", "the service in the URL (byte 20) is missing"},
    {"redis+sentinel://a//0", "the service in the URL (byte 20) is missing"},
    {"redis+sentinel://a?db=1", "the service in the URL (byte 19) is missing"},
    {"redis+sentinel:///m", "the list of Sentinels in the URL (byte 18) has an "
                            "empty element; write redis+sentinel://h1,h2,h3/"},
    {"redis+sentinel://a,,b/m", "Sentinels in the URL (byte 20) has an empty"},
    {"redis+sentinel://:S3CRET@,a/m", "the URL (byte 26) has an empty"},
    {"redis+sentinel://a,b,A:26379/m",
        "the list of Sentinels in the URL (byte 22) names the same one twice"},
    {"redis+sentinel://[::1],[::1]/m", "(byte 24) names the same one twice"},
    {"redis+sentinel://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p/m",
        "in the URL (byte 48) has more than 15 elements; list at most 15"},
    {"redis+sentinel://a/m,b", "the ',' in the service in the URL (byte 21) "
                               "must be written %2C; all Sentinels stand"},
    {"redis+sentinel://a/%20", "the service in the URL (byte 20) must have 1"},
    {"redis+sentinel://a/%C3%A4", "the service in the URL (byte 20) must have"},
    {"redis+sentinel://a/%00", "the service in the URL (byte 20) cannot hold"},
    {"redis+sentinel://a/m/x", "the db in the URL (byte 22) must be a number"},
    {"redis+sentinel://a/m/1/2", "the db in the URL (byte 22)"},
    {"redis+sentinel://joe:77777,S3CRET/m", "the port in the URL (byte 22) "
                                            "must be a number from 1 to 65535"},
    {"redis+sentinel://joe:S3CRET,b/m", "the port in the URL (byte 22)"},
    {"redis+sentinel://a,b c/m", "a space or control byte"},
    {"redis+sentinel://a,b%20c/m", "the host in the URL (byte 20)"},
    {"redis+sentinel://::1/m", "IPv6 address in brackets"},
    {"redis+sentinel://joe:S3/CRET@h/m", "the path in the URL (byte 24)"},
    {"redis+sentinel://joe@a/m", "a user without a password"},
    {"redis+cluster://a:1", "'redis+cluster' is not supported: nxlock does not "
                            "support Redis Cluster"},
    {"rediss-cluster://:s3cret@a", "scheme is not supported: nxlock does not "
                                   "support Redis Cluster"},
    {"redis://s3cret@h", "(a password alone is :PASSWORD@)"},
    {"redis+unix:///x", "'redis+unix' is unknown"},
    {"S3CRET://x@h", "scheme is unknown"},
    {"redis://h:0", "the port '0' must be a number from 1 to 65535"},
    {"redis://h:99999", "the port '99999' must be"},
    {"redis://h:65536", "the port '65536' must be"},
    {"redis://joe:123456", "port in the URL (byte 13)"},
    {"redis://joe:99999?S3CRET@h", "port in the URL (byte 13)"},
    {"redis://h:abc", "port in the URL (byte 11)"},
    {"redis://h:", "port in the URL (byte 11)"},
    {"redis://h:63790000000000000000", "port in the URL (byte 11)"},
    {"redis://joe:S3CRET", "port in the URL (byte 13)"},
    {"redis://:S3CRET", "':' in the URL (byte 9) has no host before it"},
    {"redis://:6379", "write redis://127.0.0.1:6379"},
    {"redis://:S3/CRET@h", "the path in the URL (byte 12) contains '@'; in a"},
    {"redis://:S3?CRET@h", "in a password write / as %2F and ? as %3F"},
    {"redis://h/abc", "the db in the URL (byte 11) must be a number from 0"},
    {"redis://h/-1", "the db in the URL (byte 11)"},
    {"redis://h/2147483648", "the db in the URL (byte 11)"},
    {"redis://h?db=-1", "db in the URL (byte 14) must be a number from 0"},
    {"redis://h?db=", "db in the URL (byte 14)"},
    {"redis://h/1?db=2", "differs from the database after the '/'"},
    {"redis://h?db=1&db=1", "db in the URL (byte 19) is given twice"},
    {"redis://h/1?db=1&db=1", "given twice"},
    {"redis://h?timeout_ms=9",
        "timeout_ms in the URL (byte 22) must be a number "
        "from 10 to 600000"},
    {"redis://h?timeout_ms=10&timeout_ms=10", "is given twice"},
    {"redis://:S3CRET@h?password=S3CRET", "password in the URL (byte 28) is "
                                          "given twice"},
    {"redis://joe:S3CRET@h?user=joe", "given twice"},
    {"redis://h?timeout=10",
        "the URL (byte 11) is unknown: 'timeout'; the parameters are db, user, "
        "password, password_file, timeout_ms, max_ttl_ms, drift_ppm, "
        "keepalive_s, prefix"},
    {"redis://h?SSL_CA_CERTS=x", "unknown: 'SSL_CA_CERTS'; the parameters are"},
    /* A name of another client is translated. */
    {"redis://h?ssl_ca_certs=x", "it belongs to redis-py; write cacert=FILE"},
    {"redis://h?ssl_check_hostname=x",
        "it belongs to redis-py; write verify=full (checked) or ca"},
    {"redis://h?skip_verify=x",
        "it belongs to go-redis; write verify=none (HARM: see nxlock-url(7)), "
        "better cacert=FILE"},
    {"redis://h?verifyPeer=x",
        "it belongs to Lettuce; write verify=full, ca or none"},
    {"redis://h?ssl=1",
        "it belongs to other clients; write rediss:// for redis://"},
    {"redis://h?sentinelMasterId=x",
        "it belongs to Lettuce; write redis+sentinel://host:26379/SERVICE"},
    {"redis://h?master_name=x",
        "it belongs to go-redis; write redis+sentinel://host:26379/SERVICE"},
    {"redis://h?service_name=x",
        "it belongs to redis-py; write redis+sentinel://host:26379/SERVICE"},
    {"redis://h?sentinels=x",
        "it belongs to other clients; write redis+sentinel://h1,h2,h3/SERVICE"},
    {"redis://h?%64b=1", "unknown"},
    {"redis://h?\xc3\xa4=1", "unknown: '\\xc3\\xa4'"},
    {"redis://h?S3CRET=x@y", "the URL (byte 11) is unknown; the"},
    {"redis://h?db", "the URL (byte 11) has no '='"},
    {"redis://h?=1", "has no name"},
    {"redis://h?&", "the URL (byte 11) has no '='"},
    {"redis://joe@h", "a user without a password; add password_file=FILE"},
    {"redis://joe:@h", "a user without a password"},
    {"redis://@h", "'@' in the URL (byte 9) has no user or"},
    {"redis://:@h", "'@' in the URL (byte 10) has no user or"},
    {"redis://[::1", "'[' in the URL (byte 9) has no ']'"},
    {"redis://[::1/1", "'[' in the URL (byte 9)"},
    {"redis://[::1]x",
        "the text after ']' in the URL (byte 14) must begin with ':'"},
    {"redis://[::1]6379", "after ']' in the URL (byte 14)"},
    {"redis://[]", "not an IPv6 address"},
    {"redis://[127.0.0.1]", "not an IPv6 address"},
    {"redis://[::1%25a/0", "no ']'"},
    {"redis://[::1%25a%20b]", "not an IPv6 address"},
    {"redis://[fe80::1%eth0]",
        "the host in the URL (byte 17) has a '%' without two hexadecimal "
        "digits; write a literal % as %25, as in [fe80::1%25eth0]"},
    {"redis://::1", "IPv6 address in brackets, as in redis://[::1]"},
    {"redis://::1:6379", "IPv6 address in brackets"},
    {"redis://h:1,h:2", "is not the only one; write"},
    {"redis://h1,h2", "the host in the URL (byte 9) must be a name"},
    {"redis://a%2Fb", "the host in the URL (byte 9)"},
    {"redis://h%00x", "the host in the URL (byte 10) cannot hold %00"},
    {"redis://a:%00@h", "the password in the URL (byte 11) cannot hold %00"},
    {"redis://%00:a@h", "the user in the URL (byte 9) cannot hold %00"},
    {"unix:///%00x", "the path in the URL (byte 9) cannot hold %00"},
    {"redis://:S3CRET%4@h",
        "the password in the URL (byte 16) has a '%' without two"},
    {"redis://:S3CRET%@h", "byte 16"},
    {"redis://:S3CRET%a", "has no host before it"},
    {"redis://h/%4", "the db in the URL (byte 11) has a '%' without two"},
    {"redis://h?prefix=%g1", "prefix in the URL (byte 18) has a '%' without"},
    {"redis:// h",
        "a space or control byte in the URL (byte 9) must be removed or "
        "written %20"},
    {"redis://h\n", "the URL (byte 10) must be removed or written %0A"},
    {" redis://h", "a space or control byte in the URL (byte 1)"},
    {"redis://h\x7f", "or written %7F"},
    {"redis://:S3CRET#@h", "'#' in the URL (byte 16) would begin a"},
    {"redis://h#x", "'#'"},
    {"unix://", "the path in the URL (byte 8) is empty; write unix:///run"},
    {"unix:///", "the path in the URL (byte 8)"},
    {"unix://?db=1", "the path in the URL (byte 8) is empty"},
    {"unix://run/redis.sock",
        "the host in the URL (byte 8) does not belong in"},
    {"unix://joe:S3CRET@run/redis.sock", "the host in the URL (byte 19)"},
    {"unix://joe:S3/CRET@/run/r", "the host in the URL (byte 8)"},
    {"unix:///joe:S3CRET@/run/r", "and @ in a path as %40"},
    {"unix://joe@/run/r", "a user without a password"},
    {"unix:///run/r?db=x", "db in the URL (byte 18)"},
};

static void mistakes_are_named(void **state)
{
    struct endpoint e;
    struct text error;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        enum url_result result = parse(&e, bad[i].url, &error);
        if (result != URL_MALFORMED || !strstr(error.data, bad[i].words))
            print_error("%s: %d %s\n", bad[i].url, result, error.data);
        assert_int_equal(result, URL_MALFORMED);
        assert_contains(error.data, bad[i].words);
        assert_null(strstr(error.data, "S3CRET"));
        assert_true(error.len < TEXT_MAX - 1);
        assert_null(strstr(error.data, "77777"));
        assert_null(e.address.host);
        assert_null(e.address.path);
        assert_null(e.sentinels);
        assert_null(e.settings.login.password);
    }
}

static const struct listed {
    const char *url, *service, *name;
    unsigned count, db;
    const char *at[3];
} listed[] = {
    {"redis+sentinel://h/m", "m", "redis+sentinel://h:26379/m/0", 1, 0,
        {"h:26379"}},
    {"valkeys+sentinel://a,b:1,[::1]/mymaster/3", "mymaster",
        "valkeys+sentinel://a:26379,b:1,[::1]:26379/mymaster/3", 3, 3,
        {"a:26379", "b:1", "[::1]:26379"}},
    {"REDIS+Sentinel://joe:p@w,x@a:2,a/m%2Fa%2c/?db=2", "m/a,",
        "REDIS+Sentinel://a:2,a:26379/m/a,/2", 2, 2, {"a:2", "a:26379"}},
    {"redis+sentinel://[fe80::1%25eth0]:5/0/1?sentinel_password=x", "0",
        "redis+sentinel://[fe80::1%eth0]:5/0/1", 1, 1, {"[fe80::1%eth0]:5"}},
};

static void sentinels_are_listed(void **state)
{
    struct endpoint e;
    struct text error;

    (void)state;
    for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++) {
        const struct listed *l = &listed[i];
        enum url_result result = parse(&e, l->url, &error);
        if (result != URL_OK)
            print_error("%s: %s\n", l->url, error.data);
        assert_int_equal(result, URL_OK);
        assert_null(e.address.host);
        assert_null(e.address.path);
        assert_int_equal(e.address.port, 0);
        assert_string_equal(e.address.name.data, l->name);
        assert_string_equal(e.sentinels->service, l->service);
        assert_int_equal(e.sentinels->count, l->count);
        assert_int_equal(e.settings.db, l->db);
        for (unsigned k = 0; k < l->count; k++) {
            const struct server_address *at = &e.sentinels->at[k];
            assert_string_equal(at->name.data, l->at[k]);
            assert_null(at->path);
            assert_int_equal(at->port, atoi(strrchr(l->at[k], ':') + 1));
        }
        if (strchr(l->url, '@')) {
            assert_string_equal(e.settings.login.user, "joe");
            assert_string_equal(e.settings.login.password, "p@w,x");
        }
        endpoint_free(&e);
        endpoint_free(&e);
    }
}

/* The name of a URL is cut at a Sentinel, and says how many more there are. */
static void long_lists_have_a_short_name(void **state)
{
    char url[4096] = "redis+sentinel://", label[61];
    struct endpoint e;
    struct text error;

    (void)state;
    memset(label, 'x', 60);
    label[60] = '\0';
    for (char c = 'a'; c < 'a' + SENTINELS_MAX; c++)
        sprintf(
            strchr(url, '\0'), "%s%c%s.example", c > 'a' ? "," : "", c, label);
    strcat(url, "/m");
    assert_int_equal(parse(&e, url, &error), URL_OK);
    assert_int_equal(e.sentinels->count, SENTINELS_MAX);
    assert_contains(e.address.name.data, ".example:26379 and 13 more/m/0");
    assert_true(e.address.name.len < 250);
    endpoint_free(&e);

    /* A service as long as it may be, and longer. */
    strcpy(url, "redis+sentinel://a/%41");
    memset(url + 22, 'm', 255);
    url[22 + 254] = '\0';
    assert_int_equal(parse(&e, url, &error), URL_OK);
    assert_int_equal(strlen(e.sentinels->service), 255);
    endpoint_free(&e);
    strcat(url, "m");
    assert_int_equal(parse(&e, url, &error), URL_MALFORMED);
    assert_contains(error.data, "the service in the URL (byte 20) must have 1");
}

static void lengths_have_limits(void **state)
{
    char url[8300];
    struct endpoint e;
    struct text error;

    (void)state;
    /* A path of 107 bytes, with an escape that counts as one; then 108. */
    strcpy(url, "unix:///%41");
    memset(url + 11, 'a', 106);
    url[11 + 105] = '\0';
    assert_int_equal(parse(&e, url, &error), URL_OK);
    assert_int_equal(strlen(e.address.path), 107);
    endpoint_free(&e);
    strcat(url, "a");
    assert_int_equal(parse(&e, url, &error), URL_MALFORMED);
    assert_contains(error.data, "longer than 107 bytes");

    strcpy(url, "redis://");
    memset(url + 8, 'h', 254);
    url[8 + 253] = '\0';
    assert_int_equal(parse(&e, url, &error), URL_OK);
    endpoint_free(&e);
    strcat(url, "h");
    assert_int_equal(parse(&e, url, &error), URL_MALFORMED);
    assert_contains(error.data, "at most 253");

    strcpy(url, "redis://:");
    memset(url + 9, 'p', 8192 - 11);
    strcpy(url + 8192 - 2, "@h");
    assert_int_equal(strlen(url), 8192);
    assert_int_equal(parse(&e, url, &error), URL_OK);
    endpoint_free(&e);
    strcat(url, "h");
    assert_int_equal(parse(&e, url, &error), URL_MALFORMED);
    assert_contains(error.data, "longer than 8192 bytes");
}

static void runs_out_of_memory(const char *url, int allocations)
{
    struct endpoint e;
    struct text error;

    for (int n = 0;; n++) {
        calloc_left = n;
        enum url_result result = parse(&e, url, &error);
        calloc_left = -1;
        if (result == URL_OK) {
            assert_int_equal(n, allocations);
            break;
        }
        assert_int_equal(result, URL_NO_MEMORY);
        assert_contains(error.data, "out of memory");
        assert_null(e.address.host);
        assert_null(e.sentinels);
        assert_null(e.settings.login.password);
    }
    endpoint_free(&e);
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    runs_out_of_memory("redis://joe:S3CRET@h/1?timeout_ms=10&prefix=x", 6);
    runs_out_of_memory("redis+sentinel://joe:S3CRET@h1,h2/m/1", 7);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_understood),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(sentinels_are_listed),
        cmocka_unit_test(long_lists_have_a_short_name),
        cmocka_unit_test(lengths_have_limits),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
