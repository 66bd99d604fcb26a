/* SPDX-License-Identifier: MIT */
/*
 * A token that is handed over: once its lease has expired, a handle leaves the
 * key alone, for another process may have adopted and extended it. What an
 * adopted lock, or one that is extended by hand, keeps of min_hold_ms and
 * max_hold_ms.
 */
#include "renew_rig.h"

#include <signal.h>
#include <sys/wait.h>

#include "support/proxy.h"

enum { SHORT_MS = 400, LONG_MS = 20000 };

/* A lease that was over at its owner, and is another one's. */
static nxl_lock *handed_over(nxl_lock *owner, nxl_client *theirs)
{
    assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
    nxl_lock *heir = adopt_from(owner, theirs, LONG_MS);
    assert_eventually(!nxl_lock_held(owner));
    return heir;
}

static void who_begins_anew_finds_it_busy(void **state)
{
    nxl_client *client = new_client(""), *theirs = new_client("");
    nxl_lock *owner = new_lock(client, "k", SHORT_MS);
    for (int asks = 0; asks < 3; asks++) {
        nxl_lock *heir = handed_over(owner, theirs);
        for (int i = 0; i < asks; i++) /* what it is told changes nothing */
            assert_result(nxl_lock_extend(owner, 0), NXL_LOST, owner);
        assert_result(nxl_lock_acquire(owner, 0), NXL_BUSY, owner);
        assert_result(nxl_lock_acquire(owner, 50), NXL_BUSY, owner);
        assert_left_to(heir);
        assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
        assert_result(nxl_lock_release(owner), NXL_OK, owner);
    }
    end(owner, client);
    nxl_client_free(theirs);
}

static void who_ends_leaves_it(void **state)
{
    nxl_client *theirs = new_client("");
    for (int whole = 0; whole < 2; whole++) {
        nxl_client *client = new_client("");
        nxl_lock *owner = new_lock(client, "k", SHORT_MS);
        nxl_lock *heir = handed_over(owner, theirs);
        if (whole)
            nxl_client_free(client);
        nxl_lock_free(owner);
        if (!whole)
            nxl_client_free(client);
        assert_left_to(heir);
    }
    nxl_client_free(theirs);
}

static void who_adopts_another_one_leaves_it(void **state)
{
    nxl_client *client = new_client(""), *theirs = new_client("");
    nxl_lock *owner = new_lock(client, "k", SHORT_MS);
    nxl_lock *heir = handed_over(owner, theirs);
    assert_result(nxl_lock_adopt(owner, nxl_lock_token(heir)), NXL_OK, owner);
    assert_true(nxl_lock_held(owner));
    assert_left_to(heir);
    end(owner, client);
    nxl_client_free(theirs);
}

/* Nothing of its own stands in its way for longer than the drift. */
static void what_nobody_adopted_ends_by_itself(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "k", SHORT_MS);
    for (int i = 0; i < 3; i++) {
        assert_result(nxl_lock_acquire(lock, 2000), NXL_OK, lock);
        assert_eventually(!nxl_lock_held(lock));
    }
    assert_result(nxl_lock_acquire(lock, 2000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* An extend whose answer never came may have been applied; its key cannot be
 * told from one that an heir extended. */
static void an_unanswered_extend_is_left_to_its_ttl(void **state)
{
    nxl_client *client = new_client("timeout_ms=200");
    nxl_lock *lock = new_lock(client, "k", SHORT_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_freeze(&server);
    assert_result(nxl_lock_extend(lock, LONG_MS), NXL_UNKNOWN, lock);
    redis_thaw(&server);
    assert_eventually(!nxl_lock_held(lock));
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_true(redis_pttl(&server, "k") <= LONG_MS);
    end(lock, client);
    assert_true(redis_exists(&server, "k"));
}

/* A release that gets no answer is repeated, but not beyond the deadline. */
static void a_release_without_an_answer_is_not_repeated_late(void **state)
{
    struct proxy *proxy = proxy_to(&server, false);
    nxl_client *theirs = new_client("");
    char url[512];
    snprintf(url, sizeof(url), "%s?timeout_ms=200", proxy_url(proxy));
    for (int frees = 0; frees < 2; frees++) {
        nxl_client *client = client_at(url);
        nxl_lock *owner = new_lock(client, "k", 2000);
        nxl_lock *other = new_lock(client, "other", 2000);
        assert_result(nxl_lock_acquire(owner, 2000), NXL_OK, owner);
        uint64_t deadline = nxl_lock_deadline(owner);
        nxl_lock *heir = adopt_from(owner, theirs, LONG_MS);
        proxy_drop(proxy, PROXY_UP, true);
        if (frees)
            nxl_lock_free(owner);
        else
            assert_result(nxl_lock_release(owner), NXL_UNKNOWN, owner);
        proxy_cut(proxy, false);
        assert_eventually(nxl_now_ns() >= deadline);
        proxy_drop(proxy, PROXY_UP, false);
        assert_result(nxl_lock_acquire(other, 2000), NXL_OK, other);
        nxl_lock_free(other);
        if (!frees)
            nxl_lock_free(owner);
        nxl_client_free(client); /* whatever it had to send has been sent */
        assert_left_to(heir);
    }
    nxl_client_free(theirs);
    proxy_stop(proxy);
}

/* A process that acquires, says its token, and frees its handle once it has
 * noticed that the lock is lost. */
static pid_t start_owner(int said)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    nxl_client *client = new_client("");
    nxl_lock *lock = kept_lock(client, "k", NULL);
    const char *token =
        nxl_lock_acquire(lock, 0) == NXL_OK ? nxl_lock_token(lock) : "";
    struct pollfd loss = {nxl_client_loss_fd(client), POLLIN, 0};
    if (write(said, token, strlen(token) + 1) < 2 || poll(&loss, 1, -1) != 1)
        _exit(1);
    nxl_lock_free(lock);
    nxl_client_free(client);
    _exit(0);
}

static void a_stopped_process_leaves_it(void **state)
{
    int said[2], status = -1;
    char token[300] = "";
    assert_int_equal(pipe(said), 0);
    pid_t owner = start_owner(said[1]);
    assert_true(read(said[0], token, sizeof(token)) > 1);
    nxl_client *theirs = new_client("");
    nxl_lock *heir = new_lock(theirs, "k", LONG_MS);
    assert_result(nxl_lock_adopt(heir, token), NXL_OK, heir);
    assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
    kill(owner, SIGSTOP);
    test_pause_ms(RENEW_MS + 50); /* nothing can tell that its lease expired */
    kill(owner, SIGCONT);
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_int_equal(status, 0);
    assert_left_to(heir);
    nxl_client_free(theirs);
    close(said[0]);
    close(said[1]);
}

/* ------------------------------------------------ the least and the longest */

static nxl_lock *kept_for(nxl_client *client, int64_t least, int64_t most)
{
    return lock_with(client, "k", .ttl_ms = SHORT_MS, .renew = 1,
        .min_hold_ms = least, .max_hold_ms = most);
}

/* How long it had stood before is not known, so nothing is added to it. */
static void an_adopted_lock_has_no_minimum(void **state)
{
    nxl_client *client = new_client(""), *theirs = new_client("");
    nxl_lock *owner = new_lock(theirs, "k", 5000);
    nxl_lock *heir = kept_for(client, 15000, 0);
    assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(owner)), NXL_OK, heir);
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    assert_false(redis_exists(&server, "k"));
    end(heir, client);
    end(owner, theirs);
}

/* Its time is over, whatever it was prolonged to by hand, or stood for. */
static void no_hold_is_longer_than_the_longest(void **state)
{
    char why[200];
    nxl_client *client = new_client(""), *theirs = new_client("");
    for (int adopts = 0; adopts < 2; adopts++) {
        nxl_lock *lock = kept_for(client, 0, 2 * SHORT_MS);
        nxl_lock *owner = new_lock(theirs, "k", LONG_MS);
        if (adopts) {
            assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
            assert_result(
                nxl_lock_adopt(lock, nxl_lock_token(owner)), NXL_OK, lock);
        } else {
            assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
            assert_result(nxl_lock_extend(lock, LONG_MS), NXL_OK, lock);
        }
        assert_true(nxl_lock_remaining_ms(lock) <= 2 * SHORT_MS);
        assert_ptr_equal(await_loss(client, 5000), lock);
        assert_false(nxl_lock_held(lock));
        assert_int_equal(
            nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_EXPIRED);
        assert_contains(why, "max_hold_ms");
        nxl_lock_free(lock);
        nxl_lock_free(owner);
        /* What was adopted was given its TTL by its owner. */
        assert_true(
            redis_pttl(&server, "k") <= (adopts ? LONG_MS : 2 * SHORT_MS));
        redis_run(&server, "DEL", "k", NULL);
    }
    nxl_client_free(client);
    nxl_client_free(theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(who_begins_anew_finds_it_busy),
        live_test(who_ends_leaves_it),
        live_test(who_adopts_another_one_leaves_it),
        live_test(what_nobody_adopted_ends_by_itself),
        live_test(an_unanswered_extend_is_left_to_its_ttl),
        live_test(a_release_without_an_answer_is_not_repeated_late),
        live_test(a_stopped_process_leaves_it),
        live_test(an_adopted_lock_has_no_minimum),
        live_test(no_hold_is_longer_than_the_longest),
    };
    return live_run_long("handed over");
}
