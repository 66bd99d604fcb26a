/* SPDX-License-Identifier: MIT */
/*
 * Other programs that follow SET key token NX PX on the same key: they
 * exclude us and we exclude them, and neither removes the other's.
 */
#include "live/live_rig.h"

/* The documented release: delete if the value is still mine. */
static const char compare_and_delete[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then "
    "return redis.call('del', KEYS[1]) else return 0 end";

static bool plain_acquire(redisContext *c, const char *token)
{
    redisReply *reply = redisCommand(c, "SET job %s NX PX 30000", token);
    bool granted = reply && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return granted;
}

static bool plain_release(redisContext *c, const char *token)
{
    redisReply *reply =
        redisCommand(c, "EVAL %s 1 job %s", compare_and_delete, token);
    bool mine =
        reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    freeReplyObject(reply);
    return mine;
}

static redisContext *plain_client(void)
{
    redisContext *c = redisConnectUnix(server.path);
    assert_non_null(c);
    assert_int_equal(c->err, 0);
    return c;
}

static void plain_client_excludes_us(void **state)
{
    redisContext *plain = plain_client();
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_true(plain_acquire(plain, "theirs"));
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_result(nxl_lock_acquire(lock, 50), NXL_BUSY, lock);
    assert_value("job", "theirs");
    assert_between(redis_pttl(&server, "job"), 20000, 30000);
    assert_true(plain_release(plain, "theirs"));
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
    redisFree(plain);
}

static void we_exclude_a_plain_client(void **state)
{
    redisContext *plain = plain_client();
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_false(plain_acquire(plain, "theirs"));
    assert_false(plain_release(plain, "theirs"));
    assert_value("job", nxl_lock_token(lock));
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_false(plain_acquire(plain, "theirs"));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_true(plain_acquire(plain, "theirs"));
    assert_true(plain_release(plain, "theirs"));

    /* It may release ours by our token, as a child process would. */
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(plain_release(plain, nxl_lock_token(lock)));
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    end(lock, client);
    redisFree(plain);
}

/* A key of another program, held by a UUID as its value, can be adopted. */
static void plain_lock_can_be_adopted(void **state)
{
    static const char uuid[] = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
    redisContext *plain = plain_client();
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_true(plain_acquire(plain, uuid));
    assert_result(nxl_lock_adopt(lock, uuid), NXL_OK, lock);
    assert_between(nxl_lock_remaining_ms(lock), 20000, 29698);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(plain_release(plain, uuid));
    end(lock, client);
    redisFree(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(plain_client_excludes_us),
        live_test(we_exclude_a_plain_client),
        live_test(plain_lock_can_be_adopted),
    };
    return live_run("interop");
}
