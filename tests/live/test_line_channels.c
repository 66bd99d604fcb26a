/* SPDX-License-Identifier: MIT */
/*
 * Eve may use one name and attacks another: she may write all keys of her name,
 * publish on its channels, and knows the token and the client of everybody who
 * waits. Her rights are those of docs/acl.md.
 *
 * Invariant: nobody who waits for the other name gets it while its holder is at
 * work; and with a right for all channels somebody would.
 */
#include "model/companion.h"
#include "live/live_rig.h"

#define ROOM (CHANNEL_MAX + 64)
#define TTL_MS 30000
#define WAIT_MS 30000
#define ANY_UUID "????????????????????????????????????"

/* Eve's name and the one that she attacks, then the other way round. */
static const char *const pairs[][2] = {
    {"a", "a:b"},
    {"a", "ab"},
    {"a", "x:a"},
    {"a", "b:x:a"},
    {"a b", "a%20b"},
    {"a\nb", "a%0Ab"},
    {"a%", "a%25"},
    {"a*", "ab"},
    {"a*b", "a:b"},
    {"a[bc]", "ab"},
    {"a?", "ab"},
    {"a\\", "a\\\\"},
    {"\xc3\xa9", "\xc3"},
};

struct scene {
    const char *own, *other;
    nxl_client *clients[2], *patient;
    nxl_lock *holds_own, *holds_other, *waits_own, *waits_other;
    struct waiter own_waiter, other_waiter;
    bool own_is_over;
    char token[64], client[64]; /* of who waits for the other name */
    redisContext *eve;
};
static struct scene scene;

/* -------------------------------------------------------------- who is there
 */

static char *key_of(const char *name, enum companion what)
{
    struct slice key;
    assert_true(companion_make(slice_of(name), what, &key));
    return (char *)key.data;
}

static void channel_of(char *out, const char *client, const char *name)
{
    out[channel_name(out, client, slice_of(name))] = '\0';
}

/* The text as a pattern that matches it: as docs/acl.md says. */
static void append_pattern(char *rule, const char *text)
{
    char *to = rule + strlen(rule);
    for (; *text; text++) {
        if (strchr("*?[]\\", *text))
            *to++ = '\\';
        *to++ = *text == ' ' || *text == '\n' ? '?' : *text;
    }
    *to = '\0';
}

static void allow(const char *begin, const char *text)
{
    char rule[2 * ROOM];
    snprintf(rule, sizeof(rule), "%s", begin);
    append_pattern(rule, text);
    redis_run(&server, "ACL", "SETUSER", "eve", rule, NULL);
}

static void make_eve(const char *name, const char *channels)
{
    static const enum companion keys[] = {
        COMPANION_LINE, COMPANION_LINE_MARK, COMPANION_GAP};
    char encoded[ROOM];
    redis_run(&server, "ACL", "SETUSER", "eve", "reset", "on", "nopass",
        "resetchannels", "+@all", NULL);
    allow("~", name);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char *key = key_of(name, keys[i]);
        allow("~", key);
        free(key);
    }
    channel_of(encoded, "", name); /* "nxl::NAME" */
    if (channels)
        redis_run(&server, "ACL", "SETUSER", "eve", channels, NULL);
    else
        allow("&nxl:" ANY_UUID ":", encoded + strlen("nxl::"));
    scene.eve = redisConnectUnix(server.path);
    redisReply *r = redisCommand(scene.eve, "AUTH eve x");
    assert_int_equal(r->type, REDIS_REPLY_STATUS);
    freeReplyObject(r);
}

static bool listens(const char *name)
{
    char channel[ROOM];
    channel_of(channel, scene.client, name);
    redisReply *r = redis_command(&server, "PUBSUB", "NUMSUB", channel, NULL);
    bool yes = r->element[1]->integer == 1;
    freeReplyObject(r);
    return yes;
}

/* Reads the first member of the line. False: there is none. */
static bool look_at_line(const char *name, char *token, char *client)
{
    char *line = key_of(name, COMPANION_LINE);
    redisReply *r = redis_command(&server, "ZRANGE", line, "0", "0", NULL);
    bool found = r->elements == 1 &&
                 sscanf(r->element[0]->str, "%63s %63s", token, client) == 2;
    freeReplyObject(r);
    free(line);
    return found;
}

/* Both names are held, and one client waits for both of them, so it listens to
 * Eve's channel as well. */
static void begin(const char *own, const char *other)
{
    char token[64], client[64];
    live_clean(NULL);
    scene = (struct scene){.own = own, .other = other};
    scene.clients[0] = new_client("");
    scene.clients[1] = new_client("");
    scene.patient = new_client("");
    scene.holds_own = new_lock(scene.clients[0], own, TTL_MS);
    scene.holds_other = new_lock(scene.clients[1], other, TTL_MS);
    scene.waits_own = new_lock(scene.patient, own, TTL_MS);
    scene.waits_other = new_lock(scene.patient, other, TTL_MS);
    assert_result(
        nxl_lock_acquire(scene.holds_own, 0), NXL_OK, scene.holds_own);
    assert_result(
        nxl_lock_acquire(scene.holds_other, 0), NXL_OK, scene.holds_other);
    waiter_start(&scene.own_waiter, scene.waits_own, WAIT_MS);
    waiter_start(&scene.other_waiter, scene.waits_other, WAIT_MS);
    assert_eventually(look_at_line(own, token, client));
    assert_eventually(look_at_line(other, scene.token, scene.client));
    assert_string_equal(client, scene.client);
    assert_eventually(listens(own) && listens(other));
}

static void finish(void)
{
    redisFree(scene.eve);
    nxl_lock_free(scene.holds_own);
    nxl_lock_free(scene.holds_other);
    nxl_lock_free(scene.waits_own);
    nxl_lock_free(scene.waits_other);
    nxl_client_free(scene.clients[0]);
    nxl_client_free(scene.clients[1]);
    nxl_client_free(scene.patient);
}

/* --------------------------------------------------------- what Eve may try */

/* The integer; -1: it is refused. */
static long long eve(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *r = redisvCommand(scene.eve, format, args);
    va_end(args);
    assert_non_null(r);
    long long got = r->type == REDIS_REPLY_INTEGER ? r->integer : -1;
    if (r->type == REDIS_REPLY_ERROR)
        assert_non_null(strstr(r->str, "NOPERM"));
    freeReplyObject(r);
    return got;
}

static void is_refused_all_of_the_other(void)
{
    char channel[ROOM];
    char *line = key_of(scene.other, COMPANION_LINE);
    channel_of(channel, scene.client, scene.other);
    assert_int_equal(eve("PUBLISH %s %s", channel, scene.token), -1);
    assert_int_equal(eve("EVAL %s 0 %s %s",
                         "local r = redis.pcall('PUBLISH', ARGV[1], ARGV[2]) "
                         "return type(r) == 'number' and r or -1",
                         channel, scene.token),
        -1);
    assert_int_equal(eve("SPUBLISH %s %s", channel, scene.token), -1);
    assert_int_equal(eve("ZADD %s 1 x", line), -1);
    assert_int_equal(eve("DEL %s", scene.other), -1);
    free(line);
}

/* Somebody who may do more breaks the lock of Eve's name, which hands it over
 * to the first in her line. (A release may leave a gap instead.) */
static void hand_over(const char *token)
{
    nxl_lock *lock = new_lock(scene.clients[0], scene.own, TTL_MS);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_result(nxl_lock_break(lock, &holder), NXL_OK, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    if (token)
        assert_string_equal(holder.value, token);
    nxl_lock_free(lock);
}

/* As the first in her line, with the other's token. */
static void plant_member(const char *client)
{
    char *line = key_of(scene.own, COMPANION_LINE);
    char *mark = key_of(scene.own, COMPANION_LINE_MARK);
    char member[2 * ROOM], seen[32];
    redisReply *time = redis_command(&server, "TIME", NULL);
    snprintf(seen, sizeof(seen), "%llu",
        strtoull(time->element[0]->str, NULL, 10) * 32 % 4194304);
    freeReplyObject(time);
    snprintf(member, sizeof(member), "%s %s 20000 320", scene.token, client);
    assert_int_equal(eve("ZADD %s %s %s", line, seen, member), 1);
    assert_true(eve("APPEND %s 1", mark) > 0);
    free(mark);
    free(line);
}

/* With the client as it is, and so that the channel would be the other's if the
 * member's client were taken for more than a UUID. */
static void plants_members(void)
{
    size_t own = strlen(scene.own), other = strlen(scene.other);
    if (other > own + 1 && strcmp(scene.other + other - own, scene.own) == 0) {
        char client[ROOM];
        snprintf(client, sizeof(client), "%s:%.*s", scene.client,
            (int)(other - own - 1), scene.other);
        plant_member(client);
        hand_over(NULL);
        assert_int_equal(waiter_join(&scene.own_waiter), NXL_OK);
        scene.own_is_over = true;
    }
    plant_member(scene.client);
    hand_over(scene.token);
    assert_int_equal(eve("DEL %s", scene.own), 1);
}

static void publishes_for_her_own(void)
{
    char channel[ROOM];
    channel_of(channel, scene.client, scene.own);
    assert_int_equal(eve("PUBLISH %s %s", channel, scene.token), 1);
    assert_int_equal(eve("PUBLISH %s ?%s", channel, scene.token), 1);
    assert_int_equal(eve("PUBLISH %s something", channel), 1);
}

/* ------------------------------------------------------------------- scenes */

static void attack(const char *own, const char *other)
{
    char channel[ROOM];
    begin(own, other);
    make_eve(own, NULL);
    is_refused_all_of_the_other();
    publishes_for_her_own();
    plants_members();
    /* Messages come in order: with this one all of Eve's have been taken. */
    long asked = redis_calls(&server, "evalsha");
    channel_of(channel, scene.client, other);
    redis_run(&server, "PUBLISH", channel, "a later version's", NULL);
    assert_eventually(redis_calls(&server, "evalsha") > asked);
    assert_true(nxl_lock_held(scene.holds_other));
    assert_false(nxl_lock_held(scene.waits_other));
    int64_t released = test_now_ms();
    assert_result(
        nxl_lock_release(scene.holds_other), NXL_OK, scene.holds_other);
    assert_int_equal(waiter_join(&scene.other_waiter), NXL_OK);
    assert_true(scene.other_waiter.ended_ms >= released);
    assert_true(nxl_lock_held(scene.waits_other));
    assert_result(
        nxl_lock_release(scene.waits_other), NXL_OK, scene.waits_other);
    if (!scene.own_is_over)
        assert_int_equal(waiter_join(&scene.own_waiter), NXL_OK);
    finish();
}

static void eve_reaches_nobody_elses_waiter(void **state)
{
    redis_needs_acl(&server);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        attack(pairs[i][0], pairs[i][1]);
        attack(pairs[i][1], pairs[i][0]);
    }
}

/* Where a user may publish on all channels, as every user of Redis 6.0. */
static void with_all_channels_she_makes_two_holders(void **state)
{
    char channel[ROOM];
    redis_needs_acl(&server);
    begin("a", "a:b");
    make_eve("a", "&nxl:*");
    channel_of(channel, scene.client, "a:b");
    assert_int_equal(eve("PUBLISH %s %s", channel, scene.token), 1);
    assert_int_equal(waiter_join(&scene.other_waiter), NXL_OK);
    assert_true(nxl_lock_held(scene.waits_other));
    assert_true(nxl_lock_held(scene.holds_other));
    assert_result(nxl_lock_release(scene.holds_own), NXL_OK, scene.holds_own);
    assert_int_equal(waiter_join(&scene.own_waiter), NXL_OK);
    finish();
}

/* A message that only a later version understands: the waiter asks at once. One
 * that is not the first would have asked after 2.7 s at the earliest. */
static void what_is_not_understood_makes_a_waiter_ask(void **state)
{
    enum { ROUNDS = 5 };
    char channel[ROOM], seen[32];
    begin("a", "a:b");
    char *line = key_of("a:b", COMPANION_LINE);
    redisReply *time = redis_command(&server, "TIME", NULL);
    snprintf(seen, sizeof(seen), "%llu",
        strtoull(time->element[0]->str, NULL, 10) * 32 % 4194304);
    freeReplyObject(time);
    redis_run(&server, "ZADD", line, seen,
        "00000000-0000-4000-8000-000000000000 - 20000 3200", NULL);
    free(line);
    /* Nobody waits for "a" any more, so there is one who asks. */
    assert_result(nxl_lock_release(scene.holds_own), NXL_OK, scene.holds_own);
    assert_int_equal(waiter_join(&scene.own_waiter), NXL_OK);
    channel_of(channel, scene.client, "a:b");
    int64_t began = 0;
    for (int i = 0; i <= ROUNDS; i++) { /* the first learns its place */
        long asked = redis_calls(&server, "evalsha");
        redis_run(&server, "PUBLISH", channel, "!something", NULL);
        assert_eventually(redis_calls(&server, "evalsha") > asked);
        if (i == 0)
            began = test_now_ms();
    }
    assert_true(test_now_ms() - began < 4000);
    assert_false(nxl_lock_held(scene.waits_other));
    assert_int_equal(nxl_lock_cancel(scene.waits_other), NXL_OK);
    assert_int_equal(waiter_join(&scene.other_waiter), NXL_CANCELLED);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(eve_reaches_nobody_elses_waiter),
        live_test(with_all_channels_she_makes_two_holders),
        live_test(what_is_not_understood_makes_a_waiter_ask),
    };
    return live_run_long("channels of names");
}
