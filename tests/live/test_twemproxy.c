/* SPDX-License-Identifier: MIT */
/*
 * Locks through twemproxy (nutcracker), which closes the connection at every
 * command that has no key and at those it does not know. Skipped where there is
 * no nutcracker (Debian's package of that name). What cannot work through it is
 * refused or left alone, and never ends the connection.
 */
#include "live/stamp_rig.h"
#include "support/blanks.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t nutcracker;
static char folder[LOCAL_PATH], url[64];
static uint16_t port;

static void write_conf(const char *path)
{
    FILE *conf = fopen(path, "we");
    assert_non_null(conf);
    fprintf(conf,
        "pool:\n  listen: 127.0.0.1:%u\n  hash: fnv1a_64\n"
        "  distribution: ketama\n  redis: true\n"
        "  auto_eject_hosts: false\n  servers:\n"
        "   - 127.0.0.1:%u:1\n",
        port, server.port);
    fclose(conf);
}

/* A port that was free a moment ago. */
static uint16_t some_port(void)
{
    uint16_t free_port = 0;
    int fd = local_listen_tcp(&free_port);
    assert_true(fd >= 0);
    close(fd);
    return free_port;
}

static const char *nutcracker_path(void)
{
    static const char *const paths[] = {"/usr/sbin/nutcracker",
        "/usr/bin/nutcracker", "/usr/local/sbin/nutcracker"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (access(paths[i], X_OK) == 0)
            return paths[i];
    return NULL;
}

static bool answers(void)
{
    redisContext *c = redisConnect("127.0.0.1", port);
    redisReply *reply = c && !c->err ? redisCommand(c, "PING") : NULL;
    bool does = reply && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    redisFree(c);
    return does;
}

static int start(void **state)
{
    char conf[LOCAL_PATH], log[LOCAL_PATH], stats[16];
    const char *path = nutcracker_path();

    if (!path || live_tcp(state) != 0)
        return 0; /* each test is skipped */
    local_dir_make(folder);
    local_path(conf, folder, "conf");
    local_path(log, folder, "log");
    port = some_port();
    snprintf(stats, sizeof(stats), "%u", some_port());
    snprintf(url, sizeof(url), "redis://127.0.0.1:%u", port);
    write_conf(conf);
    nutcracker = fork();
    if (nutcracker == 0) {
        execl("/usr/bin/setpriv", "setpriv", "--pdeathsig", "KILL", path, "-c",
            conf, "-s", stats, "-a", "127.0.0.1", "-o", log, (char *)NULL);
        _exit(127);
    }
    assert_eventually(answers());
    return 0;
}

static int stop(void **state)
{
    if (nutcracker > 0) {
        kill(nutcracker, SIGKILL);
        waitpid(nutcracker, NULL, 0);
        local_dir_remove(folder);
    }
    return live_stop(state);
}

static int clean(void **state)
{
    if (nutcracker > 0)
        return live_clean(state);
    print_message("no nutcracker (apt-get install nutcracker)\n");
    return 0;
}

static nxl_client *through(const char *parameters)
{
    char with[200];
    if (nutcracker <= 0)
        skip();
    snprintf(with, sizeof(with), "%s?%s", url, parameters);
    return client_at(with);
}

static void a_lock_as_anywhere(void **state)
{
    nxl_client *client = through("timeout_ms=2000");
    nxl_client *direct = new_client("");
    nxl_lock *lock = new_lock(client, "k", 5000);
    nxl_lock *other = new_lock(client, "k", 5000);
    nxl_lock *outside = new_lock(direct, "k", 5000);
    nxl_holder holder;
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock); /* at once */
    assert_value("k", nxl_lock_token(lock));
    assert_result(nxl_lock_acquire(other, 100), NXL_BUSY, other);
    assert_result(nxl_lock_acquire(outside, 0), NXL_BUSY, outside);
    assert_result(nxl_lock_extend(lock, 20000), NXL_OK, lock);
    assert_between(redis_pttl(&server, "k"), 15000, 20000);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_true(holder.ours);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "k"));
    assert_result(nxl_lock_adopt(other, "6fa459ea-ee8a-4ca4-894e-db77e160355e"),
        NXL_LOST, other);
    nxl_lock_free(outside);
    nxl_client_free(direct);
    nxl_lock_free(other);
    end(lock, client);
}

static void with_a_fencing_token(void **state)
{
    nxl_client *client = through("timeout_ms=2000");
    nxl_lock *lock = lock_with(client, "k", .fence = 1);
    uint64_t last = 0;
    for (int i = 0; i < 3; i++) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_true(nxl_lock_fence(lock) > last);
        last = nxl_lock_fence(lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    end(lock, client);
}

/* By GETSET, for there is neither WATCH nor TIME. */
static void timestamps_without_watch(void **state)
{
    nxl_client *client = through(STAMPS "&timeout_ms=2000");
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(stamp_at("k") > server_now_s() + 3);
    assert_result(nxl_lock_extend(lock, 20000), NXL_OK, lock);
    assert_true(stamp_at("k") > server_now_s() + 15);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "k"));
    redis_run(&server, "SET", "k", "1600000000" BLANKS, NULL);
    assert_result(nxl_lock_acquire(lock, 2000), NXL_OK, lock);
    end(lock, client);
}

/* A dead holder's timestamp could only be judged by TIME: it stays, and the
 * connection with it. */
static void what_cannot_be_judged_is_busy(void **state)
{
    nxl_client *client = through("timeout_ms=2000");
    nxl_lock *lock = new_lock(client, "k", 5000);
    redis_run(&server, "SET", "k", "1600000000" BLANKS, NULL);
    assert_result(nxl_lock_acquire(lock, 300), NXL_BUSY, lock);
    redis_run(&server, "DEL", "k", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
}

/* Where the server behind it refuses scripts there is no way left that
 * compares: the lock ends by its ttl, and no plain DEL is sent. */
static void without_scripts_nothing_is_deleted(void **state)
{
    nxl_client *client = through("timeout_ms=2000");
    nxl_lock *lock = new_lock(client, "k", 5000);
    redis_run(&server, "ACL", "SETUSER", "default", "-@scripting", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_E_DENIED, lock);
    assert_true(redis_exists(&server, "k"));
    assert_int_equal(redis_calls(&server, "del"), 0);
    redis_run(&server, "ACL", "SETUSER", "default", "+@all", NULL);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_lock_as_anywhere, clean),
        cmocka_unit_test_setup(with_a_fencing_token, clean),
        cmocka_unit_test_setup(timestamps_without_watch, clean),
        cmocka_unit_test_setup(what_cannot_be_judged_is_busy, clean),
        cmocka_unit_test_setup(without_scripts_nothing_is_deleted, clean),
    };
    return cmocka_run_group_tests_name("twemproxy", tests, start, stop);
}
