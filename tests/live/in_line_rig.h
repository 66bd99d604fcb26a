/* SPDX-License-Identifier: MIT */
/*
 * Locks that wait in line on one real server: what stands in a line, and locks
 * that come to be held in each of the ways in which a wait in line can end.
 *
 * Invariant: a lock that waits in a line here was seen in it.
 */
#ifndef NXLOCK_TESTS_IN_LINE_RIG_H
#define NXLOCK_TESTS_IN_LINE_RIG_H

#include "live/api_rig.h"

#define KEY_ROOM 700

/* ---------------------------------------------------------- what is there */

/* The key of the line ('l') or its mark ('w') of the lock at this key. */
static inline const char *line_key(
    const char *key, char what, char room[KEY_ROOM])
{
    const char *open = strchr(key, '{');
    bool tagged = open && strchr(open, '}') && strchr(open, '}') > open + 1;
    snprintf(room, KEY_ROOM, tagged ? "%s::nxl-%c" : "{%s}:nxl-%c", key, what);
    return room;
}

static inline long long line_length(const char *key)
{
    char room[KEY_ROOM];
    return redis_run(servers, "ZCARD", line_key(key, 'l', room), NULL);
}

/* Member number i of the line, "token client lease window". */
static inline bool line_member(
    const char *key, size_t i, char *member, size_t size)
{
    char room[KEY_ROOM];
    redisReply *all = redis_command(
        servers, "ZRANGE", line_key(key, 'l', room), "0", "-1", NULL);
    bool found = i < all->elements;
    if (found)
        snprintf(member, size, "%s", all->element[i]->str);
    freeReplyObject(all);
    return found;
}

/* How many listen to the channel of that client for the lock at this key, which
 * has only bytes that a channel has too. */
static inline long long listeners_of(const char *client, const char *key)
{
    char channel[KEY_ROOM + 64];
    snprintf(channel, sizeof(channel), "nxl:%s:%s", client, key);
    redisReply *reply =
        redis_command(servers, "PUBSUB", "NUMSUB", channel, NULL);
    long long number = reply->elements > 1 ? reply->element[1]->integer : -1;
    freeReplyObject(reply);
    return number;
}

/* So many wait, and the clients of all of them can be told. */
static inline bool line_listens(const char *key, size_t count)
{
    char member[KEY_ROOM], id[KEY_ROOM];
    if (line_length(key) != (long long)count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!line_member(key, i, member, sizeof(member)) ||
            sscanf(member, "%*s %699s", id) != 1 || listeners_of(id, key) != 1)
            return false;
    return true;
}

static inline bool is_free(const char *key)
{
    char room[KEY_ROOM];
    return !redis_exists(servers, key) &&
           !redis_exists(servers, line_key(key, 'l', room)) &&
           !redis_exists(servers, line_key(key, 'w', room));
}

static inline bool holds(const char *key, const nxl_lock *lock)
{
    return stands_at(0, key, lock);
}

/* ------------------------------------------------------------- who waits */

/* The acquire of this lock is under way by the present API. */
static inline void begin_wait(
    struct waiter *w, nxl_client *client, nxl_lock *lock, int64_t wait_ms)
{
    if (by_loop)
        assert_int_equal(nxl_lock_acquire_start(lock, wait_ms), NXL_PENDING);
    else
        waiter_start(w, lock, wait_ms);
    (void)client;
}

/* Turns the client's loop until the condition holds, for 30 s at most. */
#define await_with(client, condition)                                          \
    do {                                                                       \
        int64_t await_end = test_now_ms() + 30000;                             \
        while (!(condition)) {                                                 \
            if (test_now_ms() > await_end) {                                   \
                print_error("never came true: %s\n", #condition);              \
                _fail(__FILE__, __LINE__);                                     \
            }                                                                  \
            if (by_loop)                                                       \
                turn(client, 5);                                               \
            else                                                               \
                test_pause_ms(1);                                              \
        }                                                                      \
    } while (0)

static inline int end_wait(struct waiter *w, nxl_client *client)
{
    return by_loop ? next_event(client).result : waiter_join(w);
}

/* -------------------------------------------- how a wait in line ends well */

enum way { BY_MESSAGE, BY_STAY, BY_JOIN, WAYS };
static const char *const ways[] = {"by a message", "by STAY", "by JOIN"};

static struct waiter subject_waiter;

/* The lock waits for the holder's, which is then released, or else its key is
 * deleted by hand. */
static inline void win(nxl_client *client, nxl_lock *lock, nxl_lock *holder,
    const char *key, bool handed_over)
{
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    begin_wait(&subject_waiter, client, lock, 20000);
    await_with(client, line_listens(key, 1));
    if (handed_over) {
        assert_result(nxl_lock_release(holder), NXL_OK, holder);
    } else {
        redis_run(servers, "DEL", key, NULL);
        await_with(client, redis_exists(servers, key));
    }
    assert_result(end_wait(&subject_waiter, client), NXL_OK, lock);
    if (!handed_over)
        assert_result(nxl_lock_release(holder), NXL_LOST, holder);
}

/* The lock is granted in this way; holder is another client's handle of the
 * name, for the blocking API. */
static inline void win_by(enum way way, nxl_client *client, nxl_lock *lock,
    nxl_lock *holder, const char *key)
{
    win(client, lock, holder, key, way != BY_STAY);
    if (way == BY_JOIN) {
        assert_result(CALL(client, release, lock), NXL_OK, lock);
        assert_eventually(is_free(key));
        assert_result(CALL(client, acquire, lock, 0), NXL_OK, lock);
    }
    assert_true(nxl_lock_held(lock));
    assert_true(holds(key, lock));
    assert_int_equal(line_length(key), 0);
}

#endif
