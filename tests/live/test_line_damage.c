/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with one name must not change the other names of a connection,
 * and must not outlast its cause: a damaged line or record, or a permission
 * that is missing. Two clients meet the damage at one name, one as the holder
 * and one as a waiter; then the same two connections serve another name; then
 * the damage is mended, and both names are served again.
 *
 * Invariant: the waiter's event loop stands still while the holder releases, so
 * a key that exists afterwards was handed over by the release itself.
 */
#include "live/in_line_rig.h"

#define MEND_MS 30000 /* far more than any refusal is remembered */
#define WAIT_MS 500
#define USER                                                                   \
    "ACL", "SETUSER", "u", "reset", "on", ">Zqx7", "+@all", "-@dangerous",     \
        "+info"

enum { BAD, GOOD, NAMES };
static const char *const names[NAMES] = {"bad", "good"};

static struct {
    nxl_client *before, *own;
    nxl_lock *holder[NAMES], *waiter[NAMES];
    bool once; /* the holder begins work and tells, else it just locks */
    bool user; /* both clients are the user "u" */
} stage;

/* ------------------------------------------------------------- the damage */

static void allow_all(void)
{
    redis_run(servers, USER, "~*", "&*", NULL);
}

static void line_of_wrong_type(bool mend)
{
    redis_run(servers, "DEL", "{bad}:nxl-l", "{bad}:nxl-w", NULL);
    if (mend)
        return;
    redis_run(servers, "SET", "{bad}:nxl-l", "x", NULL);
    redis_run(servers, "SET", "{bad}:nxl-w", "1", NULL);
}

static void line_not_permitted(bool mend)
{
    if (mend)
        allow_all();
    else
        redis_run(servers, USER, "~bad", "~good", "~{good}:*", "~{bad}:once",
            "~{bad}:f", "&*", NULL);
}

static void channel_not_permitted(bool mend)
{
    if (mend)
        allow_all();
    else
        redis_run(servers, USER, "~*", "resetchannels", NULL);
}

static void command_not_permitted(bool mend)
{
    if (mend)
        allow_all();
    else
        redis_run(servers, USER, "~*", "&*", "-zadd", NULL);
}

static void record_of_wrong_type(bool mend)
{
    redis_run(servers, "DEL", "{bad}:once", NULL);
    if (!mend)
        redis_run(servers, "LPUSH", "{bad}:once", "x", NULL);
}

static const struct damage {
    const char *what;
    void (*set)(bool mend);
    bool this_name, other_name; /* are served in spite of it */
    bool of_record, of_user;
} damages[] = {
    {"a line of the wrong type", line_of_wrong_type, false, true, false, false},
    {"a record of the wrong type", record_of_wrong_type, true, true, true,
        false},
    {"no permission for the line", line_not_permitted, false, true, false,
        true},
    {"no permission for channels", channel_not_permitted, true, true, false,
        true},
    {"no permission for a command of the script", command_not_permitted, false,
        false, false, true},
};

/* -------------------------------------------------------------- the service */

static int hold(unsigned name)
{
    nxl_lock *lock = stage.holder[name];
    return stage.once ? nxl_once_begin(lock, NULL, 0)
                      : nxl_lock_acquire(lock, 0);
}

static int give_up(unsigned name)
{
    nxl_lock *lock = stage.holder[name];
    return stage.once ? nxl_once_tell(lock, NXL_ONCE_FAILED, 1, NULL, 0)
                      : nxl_lock_release(lock);
}

/* One is in line, if there is a line at all, and a hand-over would not pass it
 * over: it listens to its channel, or has none. */
static bool one_can_be_served(const char *name)
{
    char id[KEY_ROOM] = "";
    redisReply *reply =
        redisCommand(servers->context, "ZRANGE {%s}:nxl-l 0 -1", name);
    bool one = reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
               sscanf(reply->element[0]->str, "%*s %699s", id) == 1;
    freeReplyObject(reply);
    return one && (strcmp(id, "-") == 0 || listeners_of(id, name) == 1);
}

/* One waits for the name in its line, and the holder hands the lock over. */
static bool is_served(unsigned name)
{
    nxl_event event;
    nxl_lock *holder = stage.holder[name], *waiter = stage.waiter[name];
    assert_result(hold(name), NXL_OK, holder);
    assert_int_equal(nxl_lock_acquire_start(waiter, WAIT_MS), NXL_PENDING);
    bool over = false, in_line = false;
    while (!over && !in_line) {
        turn(stage.own, 5);
        over = nxl_client_next_event(stage.own, &event);
        in_line = !over && one_can_be_served(names[name]);
    }
    assert_result(give_up(name), NXL_OK, holder);
    bool handed_over = redis_exists(servers, names[name]);
    if (!over)
        event = next_event(stage.own);
    if (event.result == NXL_OK) {
        assert_int_equal(nxl_lock_release_start(waiter), NXL_PENDING);
        assert_int_equal(next_event(stage.own).result, NXL_OK);
    } else {
        assert_int_equal(event.result, NXL_BUSY);
    }
    return in_line && handed_over;
}

/* ---------------------------------------------------------------- the stage */

static nxl_client *stage_client(void)
{
    char url[256];
    if (!stage.user)
        return client_on(NO_GUARD);
    snprintf(url, sizeof(url), "%s://u:Zqx7@127.0.0.1:%u/?" NO_GUARD,
        servers->scheme, (unsigned)servers->port);
    return client_at(url);
}

static void set_stage(bool once, bool user)
{
    redis_run(servers, "FLUSHALL", NULL);
    if (user)
        allow_all();
    stage.once = once;
    stage.user = user;
    stage.before = stage_client();
    stage.own = stage_client();
    for (unsigned i = 0; i < NAMES; i++) {
        stage.holder[i] = new_lock(stage.before, names[i], 20000);
        stage.waiter[i] = new_lock(stage.own, names[i], 20000);
    }
}

static void clear_stage(void)
{
    for (unsigned i = 0; i < NAMES; i++) {
        nxl_lock_free(stage.holder[i]);
        nxl_lock_free(stage.waiter[i]);
    }
    nxl_client_free(stage.before);
    nxl_client_free(stage.own);
}

static void meet(const struct damage *d)
{
    if (d->of_record) {
        assert_int_equal(
            nxl_once_begin(stage.holder[BAD], NULL, 0), NXL_E_WRONG_TYPE);
        return;
    }
    bool served = is_served(BAD);
    if (served != d->this_name)
        fail_msg("%s%s: this name is %sserved", d->what,
            stage.once ? " (once)" : "", served ? "" : "not ");
}

static void assert_mended(const struct damage *d, unsigned name)
{
    int64_t end = test_now_ms() + MEND_MS;
    while (!is_served(name))
        if (test_now_ms() > end)
            fail_msg("%s%s, mended: '%s' is not served", d->what,
                stage.once ? " (once)" : "", names[name]);
}

static void play(const struct damage *d, bool once)
{
    set_stage(once, d->of_user);
    for (unsigned i = 0; i < NAMES; i++) /* the connections work */
        assert_true(is_served(i));
    d->set(false);
    meet(d);
    d->set(false);
    bool served = is_served(GOOD);
    if (served != d->other_name)
        fail_msg("%s%s: another name is %sserved", d->what,
            once ? " (once)" : "", served ? "" : "not ");
    d->set(true);
    /* A tell remembers as a release does, so only the latter waits for it. */
    for (unsigned i = NAMES; i-- > 0 && (!once || d->of_record);)
        assert_mended(d, i);
    clear_stage();
}

static void play_all(bool of_user)
{
    for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        if (damages[i].of_user != of_user)
            continue;
        if (!damages[i].of_record)
            play(&damages[i], false);
        play(&damages[i], true);
    }
}

static void a_damaged_key_changes_no_other_name(void **state)
{
    play_all(false);
}

static void a_missing_right_changes_no_other_name(void **state)
{
    redis_needs_acl(servers);
    play_all(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_loop_test(a_damaged_key_changes_no_other_name),
        api_loop_test(a_missing_right_changes_no_other_name),
    };
    return on_run(one_unix, "damage to one name", tests);
}
