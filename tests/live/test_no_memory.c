/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at every place in turn, where scenes/memory.scenes
 * cannot look: in a wait in line, up to the moment when it can be told, and for
 * the one descriptor of an event loop. And how much memory a handle takes.
 */
#include "api/private.h"
#include "lock/waiting.h"
#include "live/quorum_rig.h"

#include "live/api_rig.h"
#include "support/alloc.h"

/* The first allocation that fails, alone or with all after it. */
static void fail_at(unsigned place, bool for_good)
{
    assert_true(place < 500); /* it does end some time */
    if (for_good)
        alloc_fail_from(place);
    else
        alloc_fail_at(place);
}

static nxl_lock *long_lock(nxl_client *client)
{
    return new_lock(client, "k", 30000);
}

static void the_one_descriptor(bool for_good)
{
    bool failed = true;
    for (unsigned n = 1; failed; n++) {
        nxl_client *client = client_on(NO_GUARD);
        fail_at(n, for_good);
        int fd = nxl_client_fd(client);
        failed = alloc_stop();
        if (fd < 0)
            assert_contains(nxl_client_errmsg(client), "memory");
        assert_true(failed || fd >= 0);
        assert_true(nxl_client_fd(client) >= 0);
        nxl_client_free(client);
    }
}

/* ------------------------------------------------------------------ in line */

static const struct messages *messages_of(const nxl_lock *lock)
{
    const struct waiting *w = lock->name.waiting;
    return w && w->channel ? &w->channel->messages : NULL;
}

/* It is in line, and it is known whether it can be told. */
static bool waits_settled(const nxl_lock *lock)
{
    const struct messages *m = messages_of(lock);
    return lock->name.waiting && lock->name.waiting->line.has_waited &&
           (!m || m->state != MESSAGES_COMING);
}

/* It cannot be told for lack of memory, which is tried again 5 s later. */
static bool cannot_be_told(nxl_client *client, const nxl_lock *lock)
{
    char words[1024];
    const struct messages *m = messages_of(lock);
    if (!m || m->state != MESSAGES_NONE)
        return false;
    nxl_client_describe(client, words, sizeof(words));
    return strstr(words, "in line without messages (out of memory)");
}

/* Without memory for what the line needs, up to the time when it has settled.
 * NXL_PENDING: it waits. */
static int wait_without_memory(
    nxl_client *client, nxl_lock *lock, unsigned n, bool for_good, bool *failed)
{
    enum { SETTLE_MS = 400 };
    nxl_event event = {.result = NXL_PENDING};
    int64_t until = test_now_ms() + SETTLE_MS;
    fail_at(n, for_good);
    int rc = nxl_lock_acquire_start(lock, 20000);
    while (rc == NXL_PENDING && !waits_settled(lock) &&
           event.result == NXL_PENDING && test_now_ms() < until)
        if (!nxl_client_next_event(client, &event))
            turn(client, 5);
    *failed = alloc_stop();
    return rc == NXL_PENDING ? event.result : rc;
}

/* Whatever the line needs and does not get, the lock is granted when it is
 * free, by asking if not by a message. */
static void a_wait_in_line(bool for_good)
{
    static bool told_again; /* takes 5 s: once */
    unsigned untold = 0;
    bool failed = true;
    nxl_client *before = client_on(NO_GUARD);
    nxl_lock *held = long_lock(before);
    by_loop = true;
    for (unsigned n = 1; failed; n++) {
        nxl_client *client = client_on(NO_GUARD "&timeout_ms=500");
        nxl_lock *lock = long_lock(client);
        assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
        int rc = wait_without_memory(client, lock, n, for_good, &failed);
        if (cannot_be_told(client, lock)) {
            untold++;
            while (!for_good && !told_again &&
                   messages_of(lock)->state != MESSAGES_UP)
                turn(client, 50);
            told_again = told_again || !for_good;
        }
        assert_result(nxl_lock_release(held), NXL_OK, held);
        if (rc == NXL_PENDING)
            rc = next_event(client).result;
        if (rc == NXL_OK)
            assert_int_equal(
                result_of(client, nxl_lock_release_start(lock)), NXL_OK);
        else /* UNKNOWN: it may be granted yet, and is undone */
            assert_contains(nxl_lock_errmsg(lock), "emory");
        assert_true(failed || rc == NXL_OK);
        end(lock, client);
        assert_eventually(keys_at(on.servers, "k") == 0);
    }
    assert_true(untold > 0);
    end(held, before);
    by_loop = false;
}

/* ------------------------------------------------------------------- leaks */

struct scene {
    void (*play)(bool for_good);
    bool for_good;
};

static int memory_setup(void **state)
{
    if (!alloc_counts())
        return test_skip("a sanitizer has the allocator");
    return quorum_clean(state);
}

/* What it leaves behind the second time it leaves each time. */
static void play_twice(void **state)
{
    const struct scene *scene = *state;
    scene->play(scene->for_good);
    long blocks = alloc_blocks();
    scene->play(scene->for_good);
    assert_eventually(alloc_blocks() <= blocks); /* a thread may be ending */
}

#define memory_test(f, when)                                                   \
    {                                                                          \
#f " (" #when ")", play_twice, memory_setup, quorum_mend,              \
            &(struct scene)                                                    \
        {                                                                      \
            f, strcmp(#when, "once") != 0                                      \
        }                                                                      \
    }

/* ---------------------------------------------------------- size of a handle
 */

/* As much as a hundred more handles take, divided by a hundred. */
struct use {
    bool once;
    nxl_lock_options options;
    long most;
};

static nxl_lock *used_lock(
    nxl_client *client, int number, const struct use *use)
{
    char name[64], result[100] = "a receipt";
    snprintf(name, sizeof(name), "a name of 32 bytes, number %05d", number);
    nxl_lock *lock = live_lock(client, name, &use->options, __FILE__, __LINE__);
    if (use->once) {
        assert_result(nxl_once_begin(lock, NULL, 0), NXL_OK, lock);
        assert_result(
            nxl_once_tell(lock, NXL_ONCE_DONE, 0, result, sizeof(result)),
            NXL_OK, lock);
        return lock;
    }
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    return lock;
}

static void size_of_a_handle(void **state)
{
    enum { HANDLES = 100 };
    const struct use *use = *state;
    nxl_lock *locks[1 + HANDLES];
    nxl_client *client = client_on(NO_GUARD);
    connect_all(client);
    locks[0] = used_lock(client, 0, use);
    long before = alloc_bytes();
    for (int i = 1; i <= HANDLES; i++)
        locks[i] = used_lock(client, i, use);
    assert_between((alloc_bytes() - before) / HANDLES, 1, use->most);
    for (int i = 0; i <= HANDLES; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
}

#define size_test(words, most_bytes, work, ...)                                \
    {                                                                          \
        "size of " words, size_of_a_handle, memory_setup, quorum_mend,         \
            &(struct use)                                                      \
        {                                                                      \
            work, OPTIONS(.ttl_ms = 30000, __VA_ARGS__), most_bytes            \
        }                                                                      \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        memory_test(the_one_descriptor, once),
        memory_test(the_one_descriptor, for_good),
        memory_test(a_wait_in_line, once),
        memory_test(a_wait_in_line, for_good),
        size_test("a handle", 2048, false, .renew = 0),
        size_test("a handle that renews", 3072, false, .renew = 1),
        size_test("a handle of a permit", 2048, false, .permits = 4),
        size_test("a handle of work", 4096, true, .renew = 0),
    };
    return on_run(one_unix, "no memory", tests);
}
