/* SPDX-License-Identifier: MIT */
/*
 * A server that does not do what it is asked, where no scene (errors.scenes and
 * trouble.scenes of live/scenes) can show it: it cannot write its dump, falls
 * silent, or lacks SET. Each refusal has its class and a message that names the
 * server and the remedy, and the handle works again when the cause is gone.
 */
#include "live/live_rig.h"

#include <sys/stat.h>

#include "support/fake.h"

static int clean(void **state)
{
    if (server.pid != 0)
        redis_run(&server, "CONFIG", "SET", "save", "", NULL);
    return live_clean(state);
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
    redis_run(&server, "CONFIG", "SET", "save", "3600 1000000", NULL);
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
    redis_run(&server, "CONFIG", "SET", "save", "", NULL);
    assert_false(redis_exists(&server, "job"));
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    nxl_lock_free(probe);
    end(lock, client);
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
        cmocka_unit_test_setup(failed_dump_refuses, clean),
        live_test(refusal_and_then_silence),
        live_test(missing_commands_are_named),
    };
    return live_run("server trouble");
}
