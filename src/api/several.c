/* SPDX-License-Identifier: MIT */
/* Handles of several names: makes them, and says which names a handle has. */
#include "lock/members.h"

#include "api/lock.h"
#include "base/deadline.h"
#include "lock/errmsg.h"

/* What is made of the caller's arguments. */
struct order {
    struct nxl_client *client;
    size_t count;
    struct slice names[SEVERAL_MAX];     /* as given */
    unsigned char order[SEVERAL_MAX];    /* the numbers of the names, sorted */
    struct nxl_lock *locks[SEVERAL_MAX]; /* in that order */
};

/* Checks the options and the names. NXL_OK: *set is that of any of them but for
 * the name. Else the client's message says what is wrong. */
static int read_order(struct order *r, const char *const *names,
    const size_t *lengths, const nxl_lock_options *options,
    struct lock_settings *set)
{
    struct text *error = &r->client->errmsg;
    if (!names)
        return errmsg_invalid(error, "the array of names is NULL");
    if (r->count < 2 || r->count > SEVERAL_MAX)
        return errmsg_invalid(error,
            "%zu names; a handle of several names has 2 to %d (use "
            "nxl_lock_new() for one)",
            r->count, SEVERAL_MAX);
    for (size_t i = 0; i < r->count; i++) {
        size_t length = lengths ? lengths[i] : names[i] ? strlen(names[i]) : 0;
        if (!options_one_of_several(r->client, names[i], length, options, set))
            return set->refused;
        r->names[i] = set->name;
    }
    if (set->name_length_given)
        return errmsg_invalid(error,
            "options.name_length is set; with several names use the array of "
            "lengths");
    return NXL_OK;
}

static int refuse_equal(struct order *r, size_t at)
{
    struct text *error = &r->client->errmsg;
    size_t one = r->order[at], other = r->order[at + 1];
    errmsg_invalid(error, "names[%zu] and names[%zu] are equal: '",
        one < other ? one : other, one < other ? other : one);
    text_add_foreign_raw(error, r->names[one], FOREIGN_MAX);
    text_add(error, "'; give each name once");
    return NXL_E_INVALID;
}

/* ------------------------------------------------------------------- making */

/* A member is renewed while others are waited for, whatever the options say;
 * its maximum hold begins when all are held. */
static bool make_locks(struct order *r, const struct lock_settings *set)
{
    struct lock_settings one = *set;
    one.renew = true;
    one.max_hold_ns = NEVER;
    for (size_t i = 0; i < r->count; i++) {
        one.name = r->names[r->order[i]];
        r->locks[i] = lock_make(r->client, &one);
        if (!r->locks[i])
            return false;
    }
    return true;
}

static void unmake_locks(struct order *r)
{
    for (size_t i = 0; i < r->count && r->locks[i]; i++)
        lock_unmake(r->locks[i]);
}

/* The name of the front is the first one; nothing is sent for it. */
static struct nxl_lock *make_front(
    struct order *r, const struct lock_settings *set)
{
    struct lock_settings first = *set;
    first.name = r->names[r->order[0]];
    struct nxl_lock *front = lock_make(r->client, &first);
    if (!front)
        return NULL;
    if (!make_locks(r, set) ||
        !members_join(front, r->locks, (unsigned)r->count)) {
        unmake_locks(r);
        lock_unmake(front);
        return NULL;
    }
    struct members *m = members_of(front);
    m->renewed = set->renew;
    m->max_hold_ns = set->max_hold_ns;
    for (size_t i = 0; i < r->count; i++)
        m->given[r->order[i]] = (unsigned char)i;
    return front;
}

static int make(
    struct order *r, const struct lock_settings *set, struct nxl_lock **lock)
{
    struct nxl_client *client = r->client;
    *lock = make_front(r, set);
    if (!*lock) {
        text_set(&client->errmsg, "out of memory: cannot create the lock");
        return NXL_E_NOMEM;
    }
    list_append(&client->locks, &(*lock)->node);
    for (size_t i = 0; i < r->count; i++)
        list_append(&client->locks, &r->locks[i]->node);
    client->refs++;
    return NXL_OK;
}

int nxl_lock_new_many(nxl_lock **lock, nxl_client *client,
    const char *const *names, const size_t *lengths, size_t count,
    const nxl_lock_options *options)
{
    struct order r = {.client = client, .count = count};
    struct lock_settings set;
    if (!lock)
        return NXL_E_INVALID;
    *lock = NULL;
    if (!client)
        return NXL_E_INVALID;
    if (client_forked(client))
        return NXL_E_FORKED;
    pthread_mutex_lock(&client->mutex);
    int rc = NXL_E_INVALID;
    if (client->closed) {
        errmsg_invalid(&client->errmsg, "the client has been freed");
    } else {
        rc = read_order(&r, names, lengths, options, &set);
        if (rc == NXL_OK) {
            size_t equal = several_order(r.names, (unsigned)count, r.order);
            rc = equal < count ? refuse_equal(&r, equal) : make(&r, &set, lock);
        }
    }
    pthread_mutex_unlock(&client->mutex);
    return rc;
}

/* ------------------------------------------------------------------ looking */

/* The lock of the name that the caller gave as number i; NULL: there is none.
 */
static const struct nxl_lock *lock_of_name(
    const struct nxl_lock *lock, size_t i)
{
    if (!lock || i >= nxl_lock_names(lock))
        return NULL;
    if (!lock->group)
        return lock;
    const struct members *m = members_of(lock);
    return m->locks[m->given[i]];
}

size_t nxl_lock_names(const nxl_lock *lock)
{
    if (!lock)
        return 0;
    return lock->group ? members_of(lock)->count : 1;
}

const char *nxl_lock_name(const nxl_lock *lock, size_t i, size_t *length)
{
    const struct nxl_lock *one = lock_of_name(lock, i);
    struct slice name = one ? members_name(one) : (struct slice){NULL, 0};
    if (length)
        *length = name.len;
    return name.data;
}

uint64_t nxl_lock_fence_of(const nxl_lock *lock, size_t i)
{
    const struct nxl_lock *one = lock_of_name(lock, i);
    return one ? atomic_load(&one->fence) : 0;
}
