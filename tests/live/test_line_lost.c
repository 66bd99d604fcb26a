/* SPDX-License-Identifier: MIT */
/*
 * What a wait in line survives: connections, messages, scripts, the keys of the
 * line, the data or the server are lost while two wait for a lock.
 *
 * Invariant: the lock is idle for no longer than the table of losses says; both
 * get it, one after the other; and nothing stays at the server.
 */
#include "live/in_line_rig.h"

#define NAME "job"
#define TTL_MS 1000
#define BEAT_MS (TTL_MS / 10)
#define LOOK_MS 100      /* how often the first in line looks */
#define RECONNECT_MS 600 /* how long a client waits before it tries again */
#define WINDOW_MS (3 * BEAT_MS + 2 * 32)

struct party {
    nxl_client *client;
    nxl_lock *lock;
};
static struct party holder, first, second;
static struct waiter first_waiter, second_waiter;

struct loss {
    const char *name;
    void (*strike)(void);
    int64_t most_ms; /* that the lock is idle at most */
    bool order_lost;
    bool frees; /* the lock is free by that alone */
};

/* ------------------------------------------------------------- the strikes */

static void kill_subscriptions(void)
{
    redis_run(servers, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
}

static void kill_commands(void)
{
    redis_run(
        servers, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
}

static void kill_both(void)
{
    kill_subscriptions();
    kill_commands();
}

static void restart(void)
{
    redis_kill(servers);
    redis_restart(servers);
}

static void stop_for_a_window(void)
{
    redis_freeze(servers);
    test_pause_ms(2 * WINDOW_MS); /* the time itself is what matters */
    redis_thaw(servers);
}

static void flush_scripts(void)
{
    redis_run(servers, "SCRIPT", "FLUSH", NULL);
}

static void delete_key(char what)
{
    char room[KEY_ROOM];
    redis_run(servers, "DEL", line_key(NAME, what, room), NULL);
}

static void delete_line(void)
{
    delete_key('l');
}

static void delete_mark(void)
{
    delete_key('w');
}

static void delete_all(void)
{
    redis_run(servers, "FLUSHALL", NULL);
}

static void delete_lock(void)
{
    redis_run(servers, "DEL", NAME, NULL);
}

/* As programs do that know nothing of lines. */
static void release_as_of_old(void)
{
    redis_run(servers, "EVAL",
        "return redis.call('get', KEYS[1]) == ARGV[1] and "
        "redis.call('del', KEYS[1])",
        "1", NAME, nxl_lock_token(holder.lock), NULL);
}

static void nothing(void)
{
}

/* ------------------------------------------------------------ the aftermath */

static struct party enlist(const char *parameters, int64_t ttl_ms)
{
    struct party p = {.client = client_on(parameters)};
    p.lock = new_lock(p.client, NAME, ttl_ms);
    return p;
}

static void dismiss(struct party *p)
{
    end(p->lock, p->client);
}

static void form_line(const char *parameters)
{
    holder = enlist(NO_GUARD, 60000);
    first = enlist(parameters, TTL_MS);
    second = enlist(parameters, TTL_MS);
    assert_result(nxl_lock_acquire(holder.lock, 0), NXL_OK, holder.lock);
    waiter_start(&first_waiter, first.lock, 60000);
    assert_eventually(line_length(NAME) == 1);
    waiter_start(&second_waiter, second.lock, 60000);
    assert_eventually(line_length(NAME) == 2);
}

/* Both are granted the lock, one after the other. Returns when the first grant
 * came. */
static int64_t serve_both(bool in_order)
{
    struct waiter *one = &first_waiter, *two = &second_waiter;
    assert_eventually(holds(NAME, first.lock) || holds(NAME, second.lock));
    int64_t granted = test_now_ms();
    if (holds(NAME, second.lock)) {
        one = &second_waiter;
        two = &first_waiter;
        assert_false(in_order);
    }
    assert_result(waiter_join(one), NXL_OK, one->lock);
    assert_true(nxl_lock_held(one->lock));
    assert_false(nxl_lock_held(two->lock));
    assert_result(nxl_lock_release(one->lock), NXL_OK, one->lock);
    assert_result(waiter_join(two), NXL_OK, two->lock);
    assert_true(holds(NAME, two->lock));
    assert_result(nxl_lock_release(two->lock), NXL_OK, two->lock);
    assert_eventually(is_free(NAME));
    return granted;
}

static void end_line(void)
{
    dismiss(&holder);
    dismiss(&first);
    dismiss(&second);
}

/* settled: the waiters have had time to notice. */
static void suffer(const struct loss *loss, bool settled)
{
    print_message("           %s%s\n", loss->name, settled ? ", noticed" : "");
    quorum_clean(NULL);
    form_line(NO_GUARD);
    assert_eventually(line_listens(NAME, 2));
    loss->strike();
    if (settled && !loss->frees)
        assert_eventually(line_listens(NAME, 2));
    int64_t since = test_now_ms();
    if (!loss->frees)
        assert_result(nxl_lock_release(holder.lock), NXL_OK, holder.lock);
    int64_t granted = serve_both(!loss->order_lost);
    assert_between(granted - since, 0, loss->most_ms + LATE_MS);
    if (loss->frees)
        assert_result(nxl_lock_release(holder.lock), NXL_LOST, holder.lock);
    end_line();
}

static void suffer_each(const struct loss *losses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        suffer(&losses[i], false);
        suffer(&losses[i], true);
    }
}

static void losses_at_the_server(void **state)
{
    static const struct loss losses[] = {
        {"no loss", nothing, 0, false, false},
        {"scripts", flush_scripts, 0, false, false},
        {"mark", delete_mark, LOOK_MS, false, false},
        {"line", delete_line, BEAT_MS, true, false},
        {"all keys", delete_all, BEAT_MS, true, true},
        {"the lock's key", delete_lock, LOOK_MS, false, true},
        {"compare and delete", release_as_of_old, LOOK_MS, false, true},
        {"server stopped", stop_for_a_window, 0, true, false},
        {"server restarted, no data", restart, BEAT_MS + RECONNECT_MS, true,
            true},
    };
    suffer_each(losses, sizeof(losses) / sizeof(losses[0]));
}

static void losses_of_connections(void **state)
{
    static const struct loss losses[] = {
        {"subscriptions", kill_subscriptions, LOOK_MS, true, false},
        {"connections for commands", kill_commands, RECONNECT_MS, false, false},
        {"both", kill_both, RECONNECT_MS, true, false},
    };
    suffer_each(losses, sizeof(losses) / sizeof(losses[0]));
}

/* --------------------------------------------------- servers of other kinds */

static struct redis usual; /* the group's server, for the meantime */

static void stand_in(const char *option, const char *one, const char *two)
{
    usual = servers[0];
    servers[0] = (struct redis){0};
    assert_int_equal(redis_start(servers, option, one, two, NULL), 0);
}

static int stand_down(void **state)
{
    redis_stop(&servers[0]);
    servers[0] = usual;
    return quorum_mend(state);
}

#define stand_in_test(function)                                                \
    cmocka_unit_test_setup_teardown(function, api_blocking, stand_down)

static void server_restarts_with_its_data(void **state)
{
    static const struct loss loss = {
        "server restarted, with data", restart, RECONNECT_MS, true, false};
    stand_in("--appendonly", "yes", NULL);
    suffer(&loss, false);
    suffer(&loss, true);
}

/* Handed over without a message: found by STAY. */
static void server_without_publish(void **state)
{
    static const struct loss loss = {
        "no PUBLISH", nothing, LOOK_MS, false, false};
    stand_in("--rename-command", "PUBLISH", "");
    suffer(&loss, false);
}

/* No message, and who releases cannot say whether a waiter is there. */
static void server_without_pubsub(void **state)
{
    static const struct loss loss = {
        "no PUBSUB", nothing, LOOK_MS, false, false};
    stand_in("--rename-command", "PUBSUB", "");
    quorum_clean(NULL);
    form_line(NO_GUARD);
    int64_t since = test_now_ms();
    assert_result(nxl_lock_release(holder.lock), NXL_OK, holder.lock);
    assert_between(serve_both(true) - since, 0, loss.most_ms + LATE_MS);
    end_line();
}

/* ------------------------------------------------------------ missing rights
 */

static long long log_length(void)
{
    redisReply *log = redis_command(servers, "ACL", "LOG", "1000", NULL);
    long long length = (long long)log->elements, refused = 0;
    for (size_t i = 0; i < log->elements; i++)
        for (size_t k = 0; k + 1 < log->element[i]->elements; k += 2)
            if (strcmp(log->element[i]->element[k]->str, "count") == 0)
                refused += log->element[i]->element[k + 1]->integer;
    freeReplyObject(log);
    return refused > length ? refused : length;
}

/* A user who has all rights but these. */
static const char *user_without(const char *rule, const char *other)
{
    static char url[LOCAL_PATH + 128];
    redis_run(servers, "ACL", "SETUSER", "bob", "reset", "on", ">Zqx7", "~*",
        "&*", "+@all", rule, other, NULL);
    redis_run(servers, "ACL", "LOG", "RESET", NULL);
    snprintf(url, sizeof(url), "%s?user=bob&password=Zqx7&" NO_GUARD,
        servers[0].unix_url);
    return url;
}

static struct party enlist_at(const char *url)
{
    struct party p = {.client = client_at(url)};
    p.lock = lock_with(p.client, NAME, .ttl_ms = TTL_MS, .retry_max_ms = 50);
    return p;
}

/* They wait in line without messages, and in their order. */
static void nobody_may_subscribe(void **state)
{
    redis_needs_acl(servers);
    const char *url = user_without("-subscribe", "-ping");
    char member[KEY_ROOM], words[1024];
    holder = enlist(NO_GUARD, 60000);
    assert_result(nxl_lock_acquire(holder.lock, 0), NXL_OK, holder.lock);
    first = enlist_at(url);
    second = enlist_at(url);
    waiter_start(&first_waiter, first.lock, 60000);
    assert_eventually(
        line_member(NAME, 0, member, sizeof(member)) && strstr(member, " - "));
    waiter_start(&second_waiter, second.lock, 60000);
    assert_eventually(
        line_member(NAME, 1, member, sizeof(member)) && strstr(member, " - "));
    nxl_client_describe(first.client, words, sizeof(words));
    assert_contains(words, "waits in line without messages");
    int64_t since = test_now_ms();
    assert_result(nxl_lock_release(holder.lock), NXL_OK, holder.lock);
    assert_between(serve_both(true) - since, 0, LATE_MS);
    end_line();
}

/* They poll; each connection is refused once and not again. */
static void nobody_may_join(void **state)
{
    redis_needs_acl(servers);
    const char *url = user_without("-zadd", "-zrem");
    char words[1024];
    holder = enlist(NO_GUARD, 60000);
    assert_result(nxl_lock_acquire(holder.lock, 0), NXL_OK, holder.lock);
    first = enlist_at(url);
    second = enlist_at(url);
    for (int i = 0; i < 4; i++)
        assert_result(nxl_lock_acquire(first.lock, 60), NXL_BUSY, first.lock);
    nxl_client_describe(first.client, words, sizeof(words));
    assert_contains(words, "waits by polling");
    assert_between(log_length(), 1, 3);
    long long before = log_length();
    for (int i = 0; i < 4; i++)
        assert_result(nxl_lock_acquire(first.lock, 60), NXL_BUSY, first.lock);
    assert_int_equal(log_length(), before);
    assert_false(redis_exists(servers, "{" NAME "}:nxl-l"));
    waiter_start(&first_waiter, first.lock, 60000);
    waiter_start(&second_waiter, second.lock, 60000);
    int64_t since = test_now_ms();
    assert_result(nxl_lock_release(holder.lock), NXL_OK, holder.lock);
    assert_between(serve_both(false) - since, 0, 50 + LATE_MS);
    end_line();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_blocking_test(losses_at_the_server),
        api_blocking_test(losses_of_connections),
        api_blocking_test(nobody_may_subscribe),
        api_blocking_test(nobody_may_join),
        stand_in_test(server_restarts_with_its_data),
        stand_in_test(server_without_publish),
        stand_in_test(server_without_pubsub),
    };
    return on_run(one_unix, "line lost", tests);
}
