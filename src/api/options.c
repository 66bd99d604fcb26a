/* SPDX-License-Identifier: MIT */
/*
 * Checks the caller's option structures and turns them into settings.
 *
 * Invariant: a value out of its limits is refused with its name, its value and
 * what is valid, as it would be in a URL; nothing is rounded or cut to fit.
 */
#include "api/options.h"

#include <stdlib.h>

#include "api/credentials.h"
#include "base/deadline.h"
#include "core/lease.h"
#include "lock/errmsg.h"
#include "model/token.h"

/* The numbers of the structures are copied to the settings unchanged. */
_Static_assert((int)LOCK_SCHEME_AUTO == (int)NXL_SCHEME_AUTO &&
                   (int)LOCK_SCHEME_TIMESTAMP == (int)NXL_SCHEME_TIMESTAMP &&
                   (int)GUARD_SWITCH_AUTO == (int)NXL_GUARD_AUTO &&
                   (int)GUARD_SWITCH_ON == (int)NXL_GUARD_ON &&
                   (int)GUARD_SWITCH_OFF == (int)NXL_GUARD_OFF,
    "the enums have the same values");

/* A member whose limits are those of its name in config/params.c. */
struct member {
    const char *name;
    size_t offset, size;
};

/* clang-format off */
#define MEMBER(type, name) \
    {#name, offsetof(type, name), sizeof(((type *)NULL)->name)}
/* clang-format on */

static const struct member of_client[] = {
    MEMBER(nxl_client_options, timeout_ms),
    MEMBER(nxl_client_options, max_ttl_ms),
    MEMBER(nxl_client_options, drift_ppm),
    MEMBER(nxl_client_options, prefix),
    MEMBER(nxl_client_options, keepalive_s),
    MEMBER(nxl_client_options, scheme),
    MEMBER(nxl_client_options, interop),
    MEMBER(nxl_client_options, guard_restarts),
    MEMBER(nxl_client_options, poll),
    MEMBER(nxl_client_options, guard_failover),
    MEMBER(nxl_client_options, wait_replicas),
    MEMBER(nxl_client_options, wait_ms),
    MEMBER(nxl_client_options, wait_aof),
};

static const struct member of_lock[] = {
    MEMBER(nxl_lock_options, ttl_ms),
    MEMBER(nxl_lock_options, label),
    MEMBER(nxl_lock_options, retry_min_ms),
    MEMBER(nxl_lock_options, retry_max_ms),
    MEMBER(nxl_lock_options, fence),
    MEMBER(nxl_lock_options, renew),
    MEMBER(nxl_lock_options, min_hold_ms),
    MEMBER(nxl_lock_options, max_hold_ms),
    MEMBER(nxl_lock_options, permits),
    MEMBER(nxl_lock_options, weight),
    MEMBER(nxl_lock_options, shared),
};

static const struct member of_once[] = {
    MEMBER(nxl_once_options, mode),
    MEMBER(nxl_once_options, fingerprint),
    MEMBER(nxl_once_options, keep_ms),
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void nxl_client_options_init(nxl_client_options *options)
{
    if (options)
        *options = (nxl_client_options)NXL_CLIENT_OPTIONS_INIT;
}

void nxl_lock_options_init(nxl_lock_options *options)
{
    if (options)
        *options = (nxl_lock_options)NXL_LOCK_OPTIONS_INIT;
}

bool options_read(void *mine, size_t my_size, const void *theirs,
    const char *name, struct text *error)
{
    size_t size;
    memcpy(&size, theirs, sizeof(size));
    if (size < 2 * sizeof(size_t) || size > OPTIONS_SIZE_MAX) {
        errmsg_invalid(error,
            "%s.size is %zu; start from its _INIT macro or _init() function",
            name, size);
        return false;
    }
    for (size_t i = my_size; i < size; i++) {
        if (((const unsigned char *)theirs)[i]) {
            errmsg_invalid(error,
                "%s sets a member that this library (%s) does not know", name,
                NXLOCK_VERSION);
            return false;
        }
    }
    memcpy(mine, theirs, size < my_size ? size : my_size);
    return true;
}

/* --------------------------------------------------------------- one member */

/* What the limits of some members depend on. */
struct bounds {
    int64_t least_ttl_ms, max_ttl_ms; /* of the client */
    int64_t ttl_ms, min_hold_ms;      /* of the lock */
    int64_t permits;                  /* likewise */
};

static struct limit limit_for(const char *name, const struct bounds *bounds)
{
    struct limit limit = *limit_of(name);
    if (strcmp(name, "ttl_ms") == 0) {
        limit.low = bounds->least_ttl_ms;
        limit.high = bounds->max_ttl_ms;
        if (limit.default_value > limit.high)
            limit.default_value = limit.high;
    } else if (strcmp(name, "min_hold_ms") == 0) {
        limit.high = bounds->max_ttl_ms;
    } else if (strcmp(name, "max_hold_ms") == 0) {
        limit.low = bounds->ttl_ms > bounds->min_hold_ms ? bounds->ttl_ms
                                                         : bounds->min_hold_ms;
    } else if (strcmp(name, "weight") == 0) {
        limit.high = bounds->permits > 1 ? bounds->permits : 1;
    } else if (strcmp(name, "keep_ms") == 0) {
        limit.low = bounds->ttl_ms;
    }
    return limit;
}

static struct bounds bounds_of(const struct nxl_client *client)
{
    return (struct bounds){
        .least_ttl_ms = lease_least_ttl_ms(client->drift_ppm),
        .max_ttl_ms = client->max_ttl_ms};
}

static int64_t number_in(const void *structure, const struct member *member)
{
    const char *at = (const char *)structure + member->offset;
    int64_t wide;
    int narrow;
    if (member->size == sizeof(narrow)) {
        memcpy(&narrow, at, sizeof(narrow));
        return narrow;
    }
    memcpy(&wide, at, sizeof(wide));
    return wide;
}

/* Zero, NULL and an empty prefix mean the default. */
static bool check_member(const void *structure, const struct member *member,
    const struct bounds *bounds, struct text *error)
{
    struct limit limit = limit_for(member->name, bounds);
    if (limit.kind == LIMIT_TEXT || limit.kind == LIMIT_ASCII) {
        const char *text;
        memcpy(&text, (const char *)structure + member->offset, sizeof(text));
        return !text || (limit.kind == LIMIT_TEXT && !*text) ||
               limit_text(&limit, text, error);
    }
    int64_t number = number_in(structure, member);
    return number == 0 || limit_number(&limit, number, error);
}

static bool check_members(const void *structure, const struct member *members,
    size_t count, const struct bounds *bounds, struct text *error)
{
    size_t i = 0;
    while (i < count && check_member(structure, &members[i], bounds, error))
        i++;
    return i == count;
}

bool options_ttl(
    const struct nxl_client *client, int64_t ttl_ms, struct text *error)
{
    struct bounds bounds = bounds_of(client);
    struct limit limit = limit_for("ttl_ms", &bounds);
    return limit_number(&limit, ttl_ms, error);
}

/* ------------------------------------------------------------ the structures
 */

static bool check_name(struct nxl_client *client, const char *name,
    size_t length, struct lock_settings *set)
{
    if (!name) {
        errmsg_invalid(&client->errmsg, "the name is NULL");
        return false;
    }
    set->name = (struct slice){name, length};
    set->prefix = client->prefix;
    if (set->name.len == 0) {
        errmsg_invalid(&client->errmsg,
            "the name is empty; use at least one byte (for a name that "
            "begins with a zero byte set options.name_length)");
        return false;
    }
    if (set->name.len > NXL_NAME_MAX - set->prefix.len) {
        errmsg_invalid(&client->errmsg,
            "the name has %zu bytes and the prefix %zu; at most %d together",
            set->name.len, set->prefix.len, NXL_NAME_MAX);
        return false;
    }
    return true;
}

static bool check_retry(struct nxl_client *client, const nxl_lock_options *o,
    struct lock_settings *set)
{
    int64_t first = o->retry_min_ms, most = o->retry_max_ms;
    int64_t usual_first = limit_of("retry_min_ms")->default_value;
    int64_t usual_most = limit_of("retry_max_ms")->default_value;
    if (!most)
        most = first > usual_most ? first : usual_most;
    if (!first)
        first = most < usual_first ? most : usual_first;
    if (first > most) {
        errmsg_invalid(&client->errmsg,
            "retry_min_ms is %lld; it must not be above retry_max_ms, %lld",
            (long long)first, (long long)most);
        return false;
    }
    set->retry_first_ns = ms_to_ns((uint64_t)first);
    set->retry_max_ns = ms_to_ns((uint64_t)most);
    return true;
}

static bool check_related(struct nxl_client *client, const nxl_lock_options *o)
{
    if (o->max_hold_ms && !o->renew) {
        errmsg_invalid(&client->errmsg,
            "max_hold_ms is %lld without renew; set renew, or rely on "
            "ttl_ms: a lease that is not renewed expires",
            (long long)o->max_hold_ms);
        return false;
    }
    if (o->fence && nodes_first(&client->nodes)->server.dialect.ttl_in_values) {
        errmsg_invalid(&client->errmsg, "fence is 1 with "
                                        "scheme=timestamp, which has no "
                                        "fencing tokens");
        return false;
    }
    return true;
}

/* Several holders at once, and what does not go together with that. */
static bool check_share(struct nxl_client *client, const nxl_lock_options *o,
    struct lock_settings *set)
{
    const char *option = o->shared ? "shared is 1" : "permits is above 1";
    const char *why = NULL;
    int refused = NXL_E_UNSUPPORTED;
    if (!o->shared && o->permits <= 1)
        return true;
    if (o->shared && o->permits > 1) {
        why = " and permits is above 1; use one of them: shared has no limit";
        refused = NXL_E_INVALID;
    } else if (nodes_first(&client->nodes)->server.dialect.ttl_in_values) {
        why = " with scheme=timestamp, whose locks have one holder";
        refused = NXL_E_INVALID;
    } else if (client->server_count > 1 && !o->shared) {
        why = " with several servers: majorities of them would grant more "
              "permits than there are; use one server for this name, with "
              "replicas if it must survive a failure";
    } else if (client->server_count > 1 && o->fence) {
        why = " with fence and several servers: each server would have another "
              "number for the same holders; use one server for this name, or "
              "no fence";
    } else if (o->fence && !o->shared) {
        why = " with fence: several holders are right at once, so no number "
              "can tell which of them is late";
        refused = NXL_E_INVALID;
    }
    set->share = o->shared ? (struct share){1, 0}
                           : (struct share){o->weight ? (uint32_t)o->weight : 1,
                                 (uint32_t)o->permits};
    if (why) {
        set->refused = refused;
        errmsg_invalid(&client->errmsg, "%s%s", option, why);
    }
    return !why;
}

static bool read_lock(struct nxl_client *client, const char *name,
    const size_t *length, const nxl_lock_options *options,
    struct lock_settings *set)
{
    struct text *error = &client->errmsg;
    struct bounds bounds = bounds_of(client);
    nxl_lock_options o = NXL_LOCK_OPTIONS_INIT;
    *set = (struct lock_settings){.refused = NXL_E_INVALID};
    if (options &&
        !options_read(&o, sizeof(o), options, "nxl_lock_options", error))
        return false;
    bounds.ttl_ms =
        o.ttl_ms ? o.ttl_ms : limit_for("ttl_ms", &bounds).default_value;
    bounds.min_hold_ms = o.min_hold_ms;
    bounds.permits = o.permits;
    *set = (struct lock_settings){.label = o.label,
        .refused = NXL_E_INVALID,
        .user = o.user,
        .name_length_given = o.name_length > 0,
        .fence = o.fence,
        .renew = o.renew,
        .ttl_ms = (uint32_t)bounds.ttl_ms,
        .min_hold_ms = (uint32_t)o.min_hold_ms,
        .max_hold_ns =
            o.max_hold_ms ? ms_to_ns((uint64_t)o.max_hold_ms) : NEVER};
    size_t own = o.name_length ? o.name_length : name ? strlen(name) : 0;
    return check_name(client, name, length ? *length : own, set) &&
           check_members(&o, of_lock, COUNT_OF(of_lock), &bounds, error) &&
           options_ttl(client, bounds.ttl_ms, error) &&
           check_retry(client, &o, set) && check_related(client, &o) &&
           check_share(client, &o, set);
}

bool options_lock(struct nxl_client *client, const char *name,
    const nxl_lock_options *options, struct lock_settings *set)
{
    return read_lock(client, name, NULL, options, set);
}

bool options_one_of_several(struct nxl_client *client, const char *name,
    size_t length, const nxl_lock_options *options, struct lock_settings *set)
{
    return read_lock(client, name, &length, options, set);
}

bool options_once(const nxl_once_options *options, uint32_t ttl_ms,
    nxl_once_options *o, struct text *error)
{
    struct bounds bounds = {.ttl_ms = ttl_ms};
    *o = (nxl_once_options)NXL_ONCE_OPTIONS_INIT;
    if (options &&
        !options_read(o, sizeof(*o), options, "nxl_once_options", error))
        return false;
    if (!check_members(o, of_once, COUNT_OF(of_once), &bounds, error))
        return false;
    if (!o->keep_ms)
        o->keep_ms = limit_of("keep_ms")->default_value;
    return true;
}

bool options_client(const nxl_client_options *options,
    struct settings *settings, struct text *error)
{
    nxl_client_options o = NXL_CLIENT_OPTIONS_INIT;
    struct bounds none = {0};
    settings_init(settings);
    if (options &&
        !options_read(&o, sizeof(o), options, "nxl_client_options", error))
        return false;
    if (!check_members(&o, of_client, COUNT_OF(of_client), &none, error))
        return false;
    for (size_t i = 0; i < COUNT_OF(of_client); i++) {
        const struct member *member = &of_client[i];
        size_t row = param_find(slice_of(member->name));
        bool is_text = limit_of(member->name)->kind == LIMIT_TEXT;
        if (!is_text && number_in(&o, member))
            param_set_number(settings, row, (uint64_t)number_in(&o, member));
    }
    settings->max_ttl_in_options = o.max_ttl_ms != 0;
    if (o.credentials) {
        settings->login.source =
            credentials_source(o.credentials, o.credentials_arg);
        settings->sentinel_login.source = settings->login.source;
        settings->sentinel_login.source.sentinel = true;
    }
    return true;
}
