/* SPDX-License-Identifier: MIT */
/*
 * The table of least permissions (docs/acl_table.h), row by row: a user
 * with exactly the permissions of a row can do what the row says, and without
 * any one of them gets what the row says of that.
 */
#include "live/acl_rig.h"
#include "support/proxy.h"

static const char stranger[] = "123e4567-e89b-42d3-a456-426614174000";

/* ------------------------------------------------- what each feature can do */

/* Acquires; ACL_WORKS or what happened instead. */
static enum acl_effect acquires(nxl_lock *lock, int64_t wait_ms)
{
    int rc = nxl_lock_acquire(lock, wait_ms);

    if (rc == NXL_OK && redis_exists(&server, NAME))
        return ACL_WORKS;
    return rc == NXL_E_DENIED && !redis_exists(&server, NAME) ? ACL_NO_ACQUIRE
                                                              : ODD;
}

static enum acl_effect extends(nxl_lock *lock)
{
    uint64_t deadline = nxl_lock_deadline(lock);
    int rc = nxl_lock_extend(lock, 2 * TTL_MS);

    if (rc == NXL_OK && redis_pttl(&server, NAME) != TTL_MS &&
        nxl_lock_deadline(lock) > deadline)
        return ACL_WORKS;
    return rc == NXL_E_DENIED && nxl_lock_held(lock) &&
                   nxl_lock_deadline(lock) == deadline
               ? ACL_NO_EXTEND
               : ODD;
}

/* A lock that cannot be released ends by its TTL; one of scheme=timestamp by
 * its value, so its key has none. */
static enum acl_effect releases(nxl_lock *lock, bool by_ttl)
{
    int rc = nxl_lock_release(lock);

    if (rc == NXL_OK && !redis_exists(&server, NAME))
        return ACL_WORKS;
    return rc == NXL_E_DENIED && redis_exists(&server, NAME) &&
                   (redis_pttl(&server, NAME) > 0) == by_ttl
               ? ACL_NO_RELEASE
               : ODD;
}

static enum acl_effect cycle(nxl_client *client, nxl_lock *lock)
{
    enum acl_effect effect = acquires(lock, 0);

    return effect == ACL_WORKS ? releases(lock, true) : effect;
}

static enum acl_effect use_lock(nxl_client *client, nxl_lock *lock)
{
    enum acl_effect effect = cycle(client, lock);

    return effect == ACL_WORKS ? cycle(client, lock) : effect;
}

static enum acl_effect use_retry(nxl_client *client, nxl_lock *lock)
{
    stranger_sets(NAME, "stranger", 60000);
    static const int64_t wait_ms[] = {30, 900, 900};
    bool told = false;
    int rc = NXL_BUSY;
    /* A busy machine may not come so far as to ask within 30 ms. */
    for (int i = 0; i < 3 && !told && rc != NXL_OK; i++) {
        rc = nxl_lock_acquire(lock, wait_ms[i]);
        told = strstr(nxl_lock_errmsg(lock), "for at most") != NULL;
    }
    if (rc != NXL_BUSY)
        return ODD;
    redis_run(&server, "DEL", NAME, NULL);
    enum acl_effect effect = acquires(lock, 30);
    return effect != ACL_WORKS ? effect : told ? ACL_WORKS : ACL_NO_TIME;
}

static enum acl_effect use_extend(nxl_client *client, nxl_lock *lock)
{
    enum acl_effect effect = acquires(lock, 0);

    if (effect == ACL_WORKS)
        effect = extends(lock);
    enum acl_effect ended = releases(lock, true);
    return ended == ACL_WORKS ? effect : ended;
}

static enum acl_effect use_fence(nxl_client *client, nxl_lock *plain)
{
    nxl_lock *lock = lock_with(client, NAME, .ttl_ms = TTL_MS, .fence = 1);
    enum acl_effect effect = acquires(lock, 0);

    if (effect == ACL_WORKS && nxl_lock_fence(lock) == 0)
        effect = ODD;
    if (effect == ACL_WORKS)
        effect = releases(lock, true);
    nxl_lock_free(lock);
    return effect == ACL_WORKS && logged("psetex") ? ACL_BY_SET : effect;
}

static enum acl_effect use_min_hold(nxl_client *client, nxl_lock *plain)
{
    nxl_lock *lock =
        lock_with(client, NAME, .ttl_ms = 2 * TTL_MS, .min_hold_ms = TTL_MS);
    enum acl_effect effect = acquires(lock, 0);
    int rc = nxl_lock_release(lock);
    int64_t left = redis_pttl(&server, NAME);

    if (rc == NXL_E_DENIED && left > TTL_MS)
        effect = ACL_NO_RELEASE;
    else if (rc != NXL_OK || left <= 0 || left > TTL_MS)
        effect = ODD;
    nxl_lock_free(lock);
    return effect;
}

static enum acl_effect use_inspect(nxl_client *client, nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;

    stranger_sets(NAME, stranger, TTL_MS);
    int rc = nxl_lock_inspect(lock, &holder);
    int adopted = nxl_lock_adopt(lock, stranger);
    return rc != adopted        ? ODD
           : rc == NXL_OK       ? ACL_WORKS
           : rc == NXL_E_DENIED ? ACL_NO_INSPECT
                                : ODD;
}

/* An adopted lock is released, and another one is broken. */
static enum acl_effect use_remove(nxl_client *client, nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;

    stranger_sets(NAME, stranger, TTL_MS);
    if (nxl_lock_adopt(lock, stranger) != NXL_OK)
        return ODD;
    int released = nxl_lock_release(lock);
    stranger_sets(NAME, stranger, TTL_MS);
    if (nxl_lock_inspect(lock, &holder) != NXL_OK)
        return ODD;
    int broken = nxl_lock_break(lock, &holder);
    bool gone = !redis_exists(&server, NAME);
    if (released == NXL_OK && broken == NXL_OK && gone)
        return ACL_WORKS;
    return released == NXL_E_DENIED && broken == NXL_E_DENIED && !gone
               ? ACL_NO_REMOVE
               : ODD;
}

static enum acl_effect use_takeover(nxl_client *plain, nxl_lock *unused)
{
    nxl_client *client = alice("interop=1&timeout_ms=5000");
    nxl_lock *lock = new_lock(client, NAME, TTL_MS);
    enum acl_effect effect;

    redis_run(&server, "SET", NAME, "1600000000", NULL);
    int rc = nxl_lock_acquire(lock, 300);
    if (rc == NXL_OK)
        effect = logged("psetex") ? ACL_BY_SET : releases(lock, true);
    else
        effect = rc == NXL_BUSY ? ACL_NO_TAKEOVER : ODD;
    end(lock, client);
    return effect;
}

/* A stranger has taken the key: the release says that the lock is lost. */
static enum acl_effect notices_loss(nxl_lock *lock)
{
    enum acl_effect effect = acquires(lock, 0);

    if (effect != ACL_WORKS)
        return effect;
    stranger_sets(NAME, stranger, TTL_MS);
    if (nxl_lock_release(lock) != NXL_LOST || !redis_exists(&server, NAME))
        return ODD;
    return logged("discard") ? ACL_NO_DISCARD : ACL_WORKS;
}

static enum acl_effect use_no_scripts(nxl_client *client, nxl_lock *lock)
{
    enum acl_effect effect = acquires(lock, 0);

    if (effect != ACL_WORKS)
        return effect;
    effect = extends(lock);
    enum acl_effect ended = releases(lock, true);
    effect = ended != ACL_WORKS ? ended : effect;
    return effect == ACL_WORKS ? notices_loss(lock) : effect;
}

/* Takes over an expired lock; then the usual cycle. */
static enum acl_effect use_timestamp(nxl_client *plain, nxl_lock *unused)
{
    nxl_client *client = alice("scheme=timestamp");
    nxl_lock *lock = new_lock(client, NAME, TTL_MS);
    redis_run(&server, "SET", NAME, "1600000000", NULL);
    int rc = nxl_lock_acquire(lock, 0);
    enum acl_effect effect = rc == NXL_OK         ? extends(lock)
                             : rc == NXL_E_DENIED ? ACL_NO_ACQUIRE
                                                  : ODD;

    if (rc == NXL_OK) {
        nxl_holder holder = NXL_HOLDER_INIT;
        if (nxl_lock_inspect(lock, &holder) != NXL_OK)
            effect = ACL_NO_INSPECT;
        enum acl_effect ended = releases(lock, false);
        effect = ended == ACL_WORKS ? effect : ended;
    }
    if (effect == ACL_WORKS && redis_calls(&server, "exec") == 0)
        effect = ACL_NO_WATCH;
    if (effect == ACL_WORKS)
        effect = notices_loss(lock);
    end(lock, client);
    return effect;
}

static char others_token[256];

/* What another client leaves: a lock of readers. */
static void others_share(void)
{
    nxl_client *others = client_at(server.url);
    nxl_lock *reader =
        lock_with(others, NAME, .ttl_ms = 10 * TTL_MS, .shared = 1);

    assert_result(nxl_lock_acquire(reader, 0), NXL_OK, reader);
    snprintf(others_token, sizeof(others_token), "%s", nxl_lock_token(reader));
    redis_run(&server, "RENAME", NAME, "kept", NULL);
    end(reader, others);
    redis_run(&server, "RENAME", "kept", NAME, NULL);
    redis_run(&server, "SCRIPT", "FLUSH", NULL);
}

/* How many are there; 0: the key is free. */
static long long members(void)
{
    redisReply *reply = redis_command(&server, "ZCARD", NAME, NULL);
    long long count = reply->integer;

    freeReplyObject(reply);
    return count;
}

/* Beside a holder of another kind, who stays, and then alone. Whatever is
 * refused, nothing of it remains. */
static enum acl_effect use_permits(nxl_client *client, nxl_lock *unused)
{
    nxl_lock *lock = lock_with(client, NAME, .ttl_ms = TTL_MS, .permits = 3);
    enum acl_effect effect = ACL_WORKS;

    others_share();
    int rc = nxl_lock_acquire(lock, 0);
    if (rc == NXL_E_DENIED && members() == 2)
        effect = ACL_NO_ACQUIRE;
    else if (rc != NXL_OK || nxl_lock_extend(lock, 2 * TTL_MS) != NXL_OK ||
             members() != 3 || nxl_lock_release(lock) != NXL_OK ||
             members() != 2)
        effect = ODD;
    redis_run(&server, "DEL", NAME, NULL);
    if (effect == ACL_WORKS)
        effect = use_extend(client, lock);
    nxl_lock_free(lock);
    return effect;
}

static enum acl_effect use_holders(nxl_client *client, nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;

    others_share();
    int rc = nxl_lock_inspect(lock, &holder);
    if (rc == NXL_E_DENIED)
        return ACL_NO_HOLDERS;
    if (rc != NXL_OK || holder.weight != 1)
        return ODD;
    /* The lease that ends last is known without a look at its member. */
    nxl_client *others = client_at(server.url);
    nxl_lock *last =
        lock_with(others, NAME, .ttl_ms = 11 * TTL_MS, .shared = 1);
    assert_result(nxl_lock_acquire(last, 0), NXL_OK, last);
    redis_run(&server, "SCRIPT", "FLUSH", NULL);
    rc = nxl_lock_adopt(lock, others_token);
    end(last, others);
    return rc == NXL_OK ? ACL_WORKS : rc == NXL_E_DENIED ? ACL_NO_ADOPT : ODD;
}

static enum acl_effect use_every(nxl_client *client, nxl_lock *unused)
{
    nxl_lock *lock = new_lock(client, "{" NAME "}:every", TTL_MS);
    int rc = nxl_lock_acquire(lock, 0);
    enum acl_effect effect = rc == NXL_OK         ? ACL_WORKS
                             : rc == NXL_E_DENIED ? ACL_NO_RUN
                                                  : ODD;

    if (rc == NXL_OK && nxl_lock_release(lock) != NXL_OK)
        effect = ODD;
    nxl_lock_free(lock);
    return effect;
}

/* An acquire is on its way when its connection is lost. It is applied in the
 * end, unless the server was told to close that connection. */
static enum acl_effect strand(struct proxy *proxy, nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    long sets = redis_calls(&server, "set");
    long deletions;

    proxy_hold(proxy, PROXY_UP, true);
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    proxy_strand(proxy);
    proxy_hold(proxy, PROXY_UP, false);
    deletions = redis_calls(&server, "eval");
    /* Reconnects. CLIENT KILL, if allowed, comes before the deletion. */
    assert_eventually(nxl_lock_inspect(lock, &holder) == NXL_E_DENIED);
    assert_eventually(redis_calls(&server, "eval") > deletions + 1);
    bool killed = redis_calls(&server, "client|kill") > 0;
    proxy_deliver(proxy);
    if (!killed)
        assert_eventually(redis_calls(&server, "set") > sets);
    assert_int_equal(nxl_lock_inspect(lock, &holder), NXL_E_DENIED);
    assert_int_equal(redis_calls(&server, "set"), sets + !killed);
    return killed ? ACL_WORKS : ACL_SLOW_CLEANUP;
}

static enum acl_effect use_cleanup(nxl_client *plain, nxl_lock *unused)
{
    struct proxy *proxy = proxy_to(&server, true);
    char url[LOCAL_PATH + 64];
    const char *address = strstr(proxy_tcp_url(proxy), "://") + strlen("://");
    snprintf(url, sizeof(url), "%s://alice:Zqx7@%s?timeout_ms=300",
        server.scheme, address);
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, NAME, TTL_MS);
    enum acl_effect effect = cycle(client, lock);

    if (effect == ACL_WORKS)
        effect = strand(proxy, lock);
    end(lock, client);
    proxy_stop(proxy);
    return effect;
}

static enum acl_effect use_load(nxl_client *client, nxl_lock *lock)
{
    enum acl_effect effect = use_lock(client, lock);

    if (effect != ACL_WORKS)
        return effect;
    return redis_calls(&server, "eval") > 0 ? ACL_BY_TEXT : ACL_WORKS;
}

/* A server that may have restarted votes once it is known to be up for longer
 * than any lease. */
static enum acl_effect use_info(nxl_client *client, nxl_lock *lock)
{
    nxl_client *guarded = alice("guard_restarts=on&max_ttl_ms=1000");
    nxl_lock *voted = new_lock(guarded, NAME, 1000);
    enum acl_effect alone = use_lock(client, lock);
    int rc = nxl_lock_acquire(voted, 20000);

    if (alone == ACL_WORKS && rc != NXL_OK)
        alone = rc == NXL_E_DENIED ? ACL_NO_VOTE : ODD;
    end(voted, guarded);
    return alone;
}

static enum acl_effect use_db(nxl_client *plain, nxl_lock *unused)
{
    nxl_client *client = alice("db=1");
    nxl_lock *lock = new_lock(client, NAME, TTL_MS);
    nxl_holder holder = NXL_HOLDER_INIT;
    int rc = nxl_lock_acquire(lock, 0);
    enum acl_effect effect = rc == NXL_OK ? ACL_WORKS : ODD;

    if (rc == NXL_E_DENIED && nxl_lock_inspect(lock, &holder) == NXL_E_DENIED)
        effect = ACL_NO_LOGIN;
    end(lock, client);
    return effect;
}

static enum acl_effect use_waiters(nxl_client *client, nxl_lock *lock)
{
    static const char *const questions[][8] = {{"ZCARD", "{" NAME "}:nxl-l"},
        {"ZRANGE", "{" NAME "}:nxl-l", "0", "999", "WITHSCORES"}, {"TIME"},
        {NULL}};

    enum acl_effect effect = use_inspect(client, lock);

    return effect == ACL_WORKS ? asks(client, questions, ACL_NO_WAITERS)
                               : effect;
}

static enum acl_effect waits_in_line(nxl_client *client, const char *name)
{
    nxl_lock *lock = lock_with(client, name, .ttl_ms = TTL_MS);
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    int rc = nxl_lock_acquire(lock, 200); /* a refusal comes by then */

    assert_int_equal(nxl_client_server_facts(client, 0, &facts), NXL_OK);
    nxl_lock_free(lock);
    if (rc != NXL_BUSY)
        return ODD;
    if (!facts.in_line)
        return ACL_NO_LINE;
    return strstr(facts.waiting, "without messages") ? ACL_NO_NEWS : ACL_WORKS;
}

/* doctor's own lock, beside NAME. */
static enum acl_effect try_own(nxl_client *client)
{
    const char *name = NAME ":doctor:1";
    nxl_lock *own = lock_with(client, name, .ttl_ms = TTL_MS, .fence = 1);
    int rc = nxl_lock_acquire(own, 0);
    enum acl_effect effect = rc == NXL_OK         ? waits_in_line(client, name)
                             : rc == NXL_E_DENIED ? ACL_NO_TRIAL
                                                  : ODD;

    nxl_lock_free(own);
    return effect;
}

static enum acl_effect use_examine(nxl_client *client, nxl_lock *lock)
{
    static const char *const questions[][8] = {
        {"CONFIG", "GET", "appendfsync"}, {NULL}};
    enum acl_effect effect = use_extend(client, lock);

    if (effect == ACL_WORKS)
        effect = use_fence(client, lock);
    if (effect == ACL_WORKS)
        effect = try_own(client);
    return effect == ACL_WORKS ? asks(client, questions, ACL_UNKNOWN_TO_DOCTOR)
                               : effect;
}

/* The server becomes a primary that was promoted, nobody knows when. */
static enum acl_effect use_failover(nxl_client *client, nxl_lock *lock)
{
    (void)client;
    (void)lock;
    redis_follow(&server, "1");
    redis_promote(&server);
    nxl_client *own = alice("guard_failover=on");
    nxl_lock *guarded = new_lock(own, NAME, TTL_MS);
    int rc = nxl_lock_acquire(guarded, 0);
    redisReply *marked = redis_command(&server, "EXISTS", "nxl-p", NULL);
    enum acl_effect effect = rc == NXL_E_DENIED      ? ACL_NO_ACQUIRE
                             : rc != NXL_E_REFUSED   ? ODD
                             : marked->integer != 1  ? ACL_NO_AGE
                             : logged("client|list") ? ACL_BY_MARKER
                                                     : ACL_WORKS;
    freeReplyObject(marked);
    end(guarded, own);
    return effect;
}

/* ------------------------------------------------------- records of work */

/* Begins work: a lock and a record, or neither. */
static enum acl_effect begins(nxl_lock *lock)
{
    int rc = nxl_once_begin(lock, NULL, 0);
    bool held = redis_exists(&server, NAME);
    bool begun = redis_exists(&server, "{" NAME "}:once");

    if (rc == NXL_OK && held && begun)
        return ACL_WORKS;
    return rc == NXL_E_DENIED && !held && !begun ? ACL_NO_BEGIN : ODD;
}

static enum acl_effect use_record(nxl_client *client, nxl_lock *lock)
{
    enum acl_effect effect = begins(lock);

    if (effect != ACL_WORKS)
        return effect;
    int rc = nxl_once_tell(lock, NXL_ONCE_DONE, 0, "ok", 2);
    bool held = redis_exists(&server, NAME);
    if (rc == NXL_E_DENIED && held)
        return nxl_once_begin(lock, NULL, 0) == NXL_BUSY ? ACL_NO_TELL : ODD;
    if (rc != NXL_OK || held || nxl_once_begin(lock, NULL, 0) != NXL_DONE)
        return ODD;
    return logged("psetex")       ? ACL_BY_SET
           : logged("config|get") ? ACL_NO_FSYNC
                                  : ACL_WORKS;
}

static const nxl_once_options look = {
    .size = sizeof(look), .mode = NXL_ONCE_LOOK};

static enum acl_effect use_look(nxl_client *client, nxl_lock *lock)
{
    int rc = nxl_once_begin(lock, &look, 0);

    return rc == NXL_FREE ? ACL_WORKS : rc == NXL_E_DENIED ? ACL_NO_BEGIN : ODD;
}

static enum acl_effect use_forget(nxl_client *client, nxl_lock *lock)
{
    enum acl_effect effect = use_look(client, lock);

    if (effect != ACL_WORKS)
        return effect;
    redis_run(&server, "SET", "{" NAME "}:once",
        "once1 doubt 6fa459ea-ee8a-4ca4-894e-db77e160355e 7 1 0 9 9 9 1 0 9 - "
        "0\n",
        NULL);
    if (nxl_once_begin(lock, &look, 0) != NXL_DOUBT)
        return ODD;
    int rc = nxl_once_forget(lock);
    bool gone = !redis_exists(&server, "{" NAME "}:once");
    return rc == NXL_OK && gone          ? ACL_WORKS
           : rc == NXL_E_DENIED && !gone ? ACL_NO_FORGET
                                         : ODD;
}

static enum acl_effect use_scan(nxl_client *client, nxl_lock *lock)
{
    static const char *const questions[][8] = {
        {"SCAN", "0", "MATCH", NAME "*", "COUNT", "250"}, {NULL}};

    return asks(client, questions, ACL_NO_LIST);
}

/* NULL: of the line, in which no lock waits yet. */
static enum acl_effect (*const uses[ACL_FEATURE_COUNT])(
    nxl_client *, nxl_lock *) = {
    [ACL_LOCK] = use_lock,
    [ACL_RETRY] = use_retry,
    [ACL_EXTEND] = use_extend,
    [ACL_FENCE] = use_fence,
    [ACL_MIN_HOLD] = use_min_hold,
    [ACL_INSPECT] = use_inspect,
    [ACL_PERMITS] = use_permits,
    [ACL_HOLDERS] = use_holders,
    [ACL_REMOVE] = use_remove,
    [ACL_TAKEOVER] = use_takeover,
    [ACL_NO_SCRIPTS] = use_no_scripts,
    [ACL_SETNX] = use_timestamp,
    [ACL_EVERY] = use_every,
    [ACL_ONCE] = use_record,
    [ACL_LOOK] = use_look,
    [ACL_FORGET] = use_forget,
    [ACL_CLEANUP] = use_cleanup,
    [ACL_LOAD] = use_load,
    [ACL_INFO] = use_info,
    [ACL_FAILOVER] = use_failover,
    [ACL_DB] = use_db,
    [ACL_WAITERS] = use_waiters,
    [ACL_SCAN] = use_scan,
    [ACL_EXAMINE] = use_examine,
};

/* ------------------------------------------------------------------ the rows
 */

/* Tries the feature; false, with words, if it does not have that effect. */
static bool cell(unsigned feature, const char *without, enum acl_effect want)
{
    set_up(feature, without);
    nxl_client *client = alice("");
    nxl_lock *lock = new_lock(client, NAME, TTL_MS);
    enum acl_effect got = uses[feature](client, lock);
    const char *said = nxl_lock_errmsg(lock);

    if (got != want)
        print_error("%s without %s: %s; the table says: %s (%s)\n",
            features[feature].name, without ? without : "nothing",
            got == ODD ? "something else" : effects[got], effects[want], said);
    end(lock, client);
    return got == want;
}

static void each_row(void **state)
{
    unsigned wrong = 0, cells = 0;

    for (unsigned f = 0; f < ACL_FEATURE_COUNT; f++) {
        const struct acl_permission *p = features[f].permissions;
        wrong += uses[f] && !cell(f, NULL, ACL_WORKS);
        for (; uses[f] && p->rule; p++, cells++)
            wrong += !cell(f, p->rule, p->missing);
    }
    print_message("%u cells\n", cells);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row),
    };
    return cmocka_run_group_tests_name("acl_least", tests, live_tcp, live_stop);
}
