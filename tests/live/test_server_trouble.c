/* SPDX-License-Identifier: MIT */
/*
 * A server that does not do what it is asked, where no scene of
 * live/scenes/errors.scenes can show it: it cannot write its dump, runs a
 * script, falls silent, has a huge value at the key, or lacks SET. Each refusal
 * has its class and a message that names the server and the remedy, and the
 * handle works again when the cause is gone.
 */
#include "live/live_rig.h"

#include <sys/stat.h>

#include "support/fake.h"

static const char some_token[] = "123e4567-e89b-42d3-a456-426614174000";

/* By the names that every server knows. */
static int clean(void **state)
{
    static const char *const settings[][2] = {
        {"save", ""}, {"lua-time-limit", "5000"}};
    if (server.pid != 0)
        for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
            redis_run(
                &server, "CONFIG", "SET", settings[i][0], settings[i][1], NULL);
    return live_clean(state);
}

#define error_test(function) cmocka_unit_test_setup(function, clean)

static void configure(const char *name, const char *value)
{
    redis_run(&server, "CONFIG", "SET", name, value, NULL);
}

/* --------------------------------------------------- it takes no writes now */

/* A dump that cannot be written: its name is a directory's. */
static void failed_dump_refuses(void **state)
{
    char path[2 * LOCAL_PATH];
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    snprintf(path, sizeof(path), "%s/dump.rdb", server.dir);
    int made = mkdir(path, 0700);
    assert_int_equal(made, 0);
    configure("save", "3600 1000000");
    redis_run(&server, "SET", "other", "x", NULL);
    redisReply *reply = redis_command(&server, "BGSAVE", NULL);
    freeReplyObject(reply);
    nxl_lock *probe = new_lock(client, "probe", 5000);
    int rc = NXL_OK;
    assert_eventually((rc = nxl_lock_acquire(probe, 0)) != NXL_OK ||
                      nxl_lock_release(probe) == NXL_E_REFUSED);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_told(lock, server_url, "MISCONF", "fix its persistence");
    assert_false(nxl_lock_held(lock));
    assert_int_equal(rmdir(path), 0);
    configure("save", "");
    assert_false(redis_exists(&server, "job"));
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    nxl_lock_free(probe);
    end(lock, client);
}

/* The word BUSY of a server that runs somebody's script is not our BUSY. */
static void busy_script_refuses(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    configure("lua-time-limit", "10");
    redisContext *other = redisConnectUnix(server.path);
    int sent = 0;
    redisAppendCommand(other, "EVAL %s 0", "while true do end");
    assert_int_equal(redisBufferWrite(other, &sent), REDIS_OK);
    assert_eventually(nxl_lock_acquire(lock, 0) == NXL_E_REFUSED ||
                      nxl_lock_release(lock) == NXL_E_REFUSED);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_told(
        lock, server_url, " is busy running a script", "try again later");
    redis_run(&server, "SCRIPT", "KILL", NULL);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    redisFree(other);
    end(lock, client);
    assert_false(redis_exists(&server, "job"));
}

/* False: the machine was too slow for a second attempt. */
static bool refused_and_then_silent(void)
{
    struct fake *fake = fake_start(
        "EXPECT-HANDSHAKE\n"
        "EXPECT SET job * NX PX 5000\n"
        "SEND -LOADING Redis is loading the dataset in memory\\r\\n\n"
        "SILENCE\n");
    char url[2 * LOCAL_PATH];
    snprintf(url, sizeof(url), "%s?timeout_ms=300", fake_url(fake));
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "job", 5000);
    int64_t before = test_now_ms();
    int rc = nxl_lock_acquire(lock, 200);
    assert_between(test_now_ms() - before, 0, 300 + LATE_MS);
    bool again = rc == NXL_UNKNOWN || fake_count(fake, -1, "SET") > 1;
    if (again) {
        assert_result(rc, NXL_UNKNOWN, lock);
        assert_told(lock, fake_url(fake), "no answer in time", "timeout_ms");
        assert_null(strstr(nxl_lock_errmsg(lock), "LOADING"));
    }
    end(lock, client);
    fake_free(fake);
    return again;
}

/* The message is about what came last, not about an earlier attempt. */
static void refusal_and_then_silence(void **state)
{
    (void)state;
    for (int tries = 1; !refused_and_then_silent(); tries++)
        assert_true(tries < 20);
}

/* ------------------------------------------------- something else under it */

static void put_giant(const char *key)
{
    assert_int_equal(
        redis_run(&server, "SETRANGE", key, "104857599", "x", NULL), 104857600);
}

static void giant_under_the_name(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_lock *held = new_lock(client, "held", 5000);
    nxl_holder seen = NXL_HOLDER_INIT;
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    redis_run(&server, "DEL", "held", NULL);
    put_giant("job");
    put_giant("held");
    long resident = resident_kb();
    long long sent = server_number(&server, "stats", "total_net_output_bytes");

    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_result(nxl_lock_acquire(lock, 100), NXL_BUSY, lock);
    assert_result(nxl_lock_inspect(lock, &seen), NXL_OK, lock);
    assert_true(seen.truncated);
    assert_int_equal(seen.value_length, 511);
    assert_int_equal(seen.left_ms, -1);
    assert_result(nxl_lock_adopt(lock, some_token), NXL_LOST, lock);
    assert_result(nxl_lock_extend(held, 0), NXL_LOST, held);
    assert_result(nxl_lock_release(held), NXL_LOST, held);

    assert_between(
        server_number(&server, "stats", "total_net_output_bytes") - sent, 1,
        100000);
    assert_between(resident_kb() - resident, -1000000, 5000);
    assert_int_equal(redis_run(&server, "STRLEN", "job", NULL), 104857600);
    assert_int_equal(redis_run(&server, "STRLEN", "held", NULL), 104857600);
    nxl_lock_free(held);
    end(lock, client);
}

/* --------------------------------------------------------- missing commands */

/* Without scripts and WATCH: live/scenes/bare.scenes. */
static void missing_commands_are_named(void **state)
{
    struct redis bare;
    redis_start(&bare, "--rename-command", "SET", "", "--rename-command",
        "EVAL", "", "--rename-command", "SETNX", "", NULL);
    nxl_client *client = client_at(bare.unix_url);
    nxl_lock *lock = new_lock(client, "job", 300);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNSUPPORTED, lock);
    assert_told(lock, bare.unix_url, "SET", "Redis 2.2");
    end(lock, client);
    redis_stop(&bare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        error_test(failed_dump_refuses),
        error_test(busy_script_refuses),
        error_test(refusal_and_then_silence),
        error_test(giant_under_the_name),
        error_test(missing_commands_are_named),
    };
    return live_run("server trouble");
}
