/* SPDX-License-Identifier: MIT */
/*
 * Checks the caller's option structures and turns them into settings.
 *
 * Invariant: a value out of its range is refused with its name, its value and
 * the range; nothing is rounded or cut to fit.
 */
#include "api/options.h"

#include <stdlib.h>

#include "api/credentials.h"
#include "api/message.h"
#include "base/deadline.h"
#include "base/token.h"
#include "core/lease.h"

#define DEFAULT_TTL_MS 30000
#define DEFAULT_RETRY_MIN_MS 10
#define DEFAULT_RETRY_MAX_MS 250
#define RETRY_LIMIT_MS 3600000
#define DEFAULT_TIMEOUT_MS 2000
#define DEFAULT_MAX_TTL_MS 60000
#define DEFAULT_DRIFT_PPM 10000
#define DEFAULT_KEEPALIVE_S 15
#define PREFIX_MAX 1024

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
        message_invalid(error,
            "%s.size is %zu; start from its _INIT macro or _init() function",
            name, size);
        return false;
    }
    for (size_t i = my_size; i < size; i++) {
        if (((const unsigned char *)theirs)[i]) {
            message_invalid(error,
                "%s sets a member that this library (%s) does not know", name,
                NXLOCK_VERSION);
            return false;
        }
    }
    memcpy(mine, theirs, size < my_size ? size : my_size);
    return true;
}

bool options_ttl(
    const struct nxl_client *client, int64_t ttl_ms, struct text *error)
{
    if (ttl_ms > client->max_ttl_ms)
        message_invalid(error,
            "ttl_ms is %lld; at most %u, this client's max_ttl_ms (a "
            "client option and a URL parameter)",
            (long long)ttl_ms, client->max_ttl_ms);
    else if (ttl_ms < 1 || !lease_usable((uint32_t)ttl_ms, client->drift_ppm))
        message_invalid(error,
            "ttl_ms is %lld; the least is %u, so that %d ms remain after "
            "the margin for clock drift",
            (long long)ttl_ms, lease_least_ttl_ms(client->drift_ppm),
            LEASE_USABLE_MS);
    else
        return true;
    return false;
}

static bool check_name(struct nxl_client *client, const char *name,
    const nxl_lock_options *o, struct lock_settings *set)
{
    if (!name) {
        message_invalid(&client->message, "the name is NULL");
        return false;
    }
    set->name =
        (struct slice){name, o->name_length ? o->name_length : strlen(name)};
    set->prefix = client->prefix;
    if (set->name.len == 0) {
        message_invalid(&client->message,
            "the name is empty; use at least one byte (for a name that "
            "begins with a zero byte set options.name_length)");
        return false;
    }
    if (set->name.len > NXL_NAME_MAX - set->prefix.len) {
        message_invalid(&client->message,
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
    if (first < 0 || first > RETRY_LIMIT_MS || most < 0 ||
        most > RETRY_LIMIT_MS) {
        message_invalid(&client->message,
            "retry_min_ms is %lld and retry_max_ms %lld; each must be 1 to "
            "%d",
            (long long)first, (long long)most, RETRY_LIMIT_MS);
        return false;
    }
    if (!most)
        most = first > DEFAULT_RETRY_MAX_MS ? first : DEFAULT_RETRY_MAX_MS;
    if (!first)
        first = most < DEFAULT_RETRY_MIN_MS ? most : DEFAULT_RETRY_MIN_MS;
    if (first > most) {
        message_invalid(&client->message,
            "retry_min_ms %lld is above retry_max_ms %lld", (long long)first,
            (long long)most);
        return false;
    }
    set->retry_first_ns = ms_to_ns((uint64_t)first);
    set->retry_most_ns = ms_to_ns((uint64_t)most);
    return true;
}

static bool check_holding(struct nxl_client *client, const nxl_lock_options *o,
    struct lock_settings *set)
{
    struct text *error = &client->message;
    if (o->renew < 0 || o->renew > 1)
        message_invalid(error, "renew is %d; use 0 or 1", o->renew);
    else if (o->min_hold_ms < 0 || o->min_hold_ms > client->max_ttl_ms)
        message_invalid(error,
            "min_hold_ms is %lld; use 0 to %u, this client's max_ttl_ms (a "
            "client option and a URL parameter)",
            (long long)o->min_hold_ms, client->max_ttl_ms);
    else if (o->max_hold_ms != 0 && !o->renew)
        message_invalid(error,
            "max_hold_ms is %lld without renew; set renew, or rely on "
            "ttl_ms: a lease that is not renewed expires",
            (long long)o->max_hold_ms);
    else if (o->max_hold_ms != 0 && o->max_hold_ms < set->ttl_ms)
        message_invalid(error,
            "max_hold_ms is %lld; use 0 (no limit) or at least ttl_ms, %u",
            (long long)o->max_hold_ms, set->ttl_ms);
    else if (o->max_hold_ms != 0 && o->max_hold_ms < o->min_hold_ms)
        message_invalid(error, "max_hold_ms is %lld, below min_hold_ms, %lld",
            (long long)o->max_hold_ms, (long long)o->min_hold_ms);
    else {
        set->renew = o->renew;
        set->min_hold_ms = (uint32_t)o->min_hold_ms;
        set->max_hold_ns =
            o->max_hold_ms == 0 ? NEVER : ms_to_ns((uint64_t)o->max_hold_ms);
        return true;
    }
    return false;
}

bool options_lock(struct nxl_client *client, const char *name,
    const nxl_lock_options *options, struct lock_settings *set)
{
    nxl_lock_options o = NXL_LOCK_OPTIONS_INIT;
    if (options && !options_read(&o, sizeof(o), options, "nxl_lock_options",
                       &client->message))
        return false;
    *set = (struct lock_settings){.label = o.label, .user = o.user};
    if (!check_name(client, name, &o, set) || !check_retry(client, &o, set))
        return false;
    if (o.label && !label_valid(o.label)) {
        message_invalid(&client->message,
            "the label must be one word of 1 ... %d printable ASCII "
            "characters without spaces",
            LABEL_MAX);
        return false;
    }
    if (o.fence < 0 || o.fence > 1) {
        message_invalid(&client->message, "fence is %d; use 0 or 1", o.fence);
        return false;
    }
    if (o.fence && client->servers[0].dialect.ttl_in_values) {
        message_invalid(&client->message, "fence is 1 with "
                                          "scheme=timestamp, which has no "
                                          "fencing tokens");
        return false;
    }
    set->fence = o.fence;
    int64_t ttl_ms = o.ttl_ms;
    if (ttl_ms == 0)
        ttl_ms = DEFAULT_TTL_MS < client->max_ttl_ms
                     ? DEFAULT_TTL_MS
                     : (int64_t)client->max_ttl_ms;
    if (!options_ttl(client, ttl_ms, &client->message))
        return false;
    set->ttl_ms = (uint32_t)ttl_ms;
    return check_holding(client, &o, set);
}

static bool take(uint64_t *to, const char *name, int64_t value,
    uint64_t otherwise, struct text *error)
{
    *to = value ? (uint64_t)value : otherwise;
    return !value || url_param_check(name, value, error);
}

bool options_client(const nxl_client_options *options,
    struct settings *settings, struct text *error)
{
    nxl_client_options o = NXL_CLIENT_OPTIONS_INIT;
    if (options &&
        !options_read(&o, sizeof(o), options, "nxl_client_options", error))
        return false;
    *settings = (struct settings){0};
    if (o.prefix && strlen(o.prefix) > PREFIX_MAX) {
        message_invalid(error, "the prefix has %zu bytes; at most %d",
            strlen(o.prefix), PREFIX_MAX);
        return false;
    }
    if (o.guard_restarts < -1 || o.guard_restarts > 1) {
        message_invalid(error,
            "guard_restarts is %lld; use 1 (on), -1 (off) or 0 (the default)",
            (long long)o.guard_restarts);
        return false;
    }
    if (o.credentials)
        settings->source = credentials_source(o.credentials, o.credentials_arg);
    settings->guard_restarts =
        o.guard_restarts ? o.guard_restarts > 0 : GUARD_RESTARTS_AUTO;
    return take(&settings->timeout_ms, "timeout_ms", o.timeout_ms,
               DEFAULT_TIMEOUT_MS, error) &&
           take(&settings->max_ttl_ms, "max_ttl_ms", o.max_ttl_ms,
               DEFAULT_MAX_TTL_MS, error) &&
           take(&settings->drift_ppm, "drift_ppm", o.drift_ppm,
               DEFAULT_DRIFT_PPM, error) &&
           take(&settings->keepalive_s, "keepalive_s", o.keepalive_s,
               DEFAULT_KEEPALIVE_S, error) &&
           take(
               &settings->scheme, "scheme", o.scheme, NXL_SCHEME_AUTO, error) &&
           take(&settings->interop, "interop", o.interop, 0, error) &&
           take(&settings->poll, "poll", o.poll, 0, error);
}
