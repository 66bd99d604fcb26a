/* SPDX-License-Identifier: MIT */
/*
 * Which parameters of a URL need or exclude each other.
 *
 * Invariant: a parameter that would have no effect is refused. Otherwise a
 * mistake would go unnoticed, such as a CA for a connection without TLS.
 */
#include "config/combination.h"

#include "config/url_scheme.h"

static const struct pair {
    const char *a, *b;
    bool together; /* a needs b; otherwise a excludes b */
    const char *why;
} pairs[] = {
    {"password", "password_file", false, "one password is enough"},
    {"cert", "key", true, "a client certificate needs its private key"},
    {"key", "cert", true, "a private key needs its certificate"},
    {"key_password_file", "key", true, "it is the password of that file"},
    {"sentinel_password", "sentinel_password_file", false,
        "one password is enough"},
};

static bool is_given(uint64_t given, const char *name)
{
    return given & UINT64_C(1) << param_find(slice_of(name));
}

static bool check_pairs(uint64_t given, struct text *error)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const struct pair *p = &pairs[i];
        if (!is_given(given, p->a) || is_given(given, p->b) == p->together)
            continue;
        text_clear(error);
        text_addf(error,
            p->together ? "%s is given without %s: %s"
                        : "%s and %s are both given: %s",
            p->a, p->b, p->why);
        return false;
    }
    return true;
}

/* Without TLS, to the server and to Sentinels. */
static bool check_plain(
    uint64_t given, const struct url_ways *ways, struct text *error)
{
    for (size_t row = 0; row < url_param_count; row++) {
        if (!param_of_tls(row) || !is_given(given, url_params[row].name))
            continue;
        text_clear(error);
        text_addf(error,
            "%s is for TLS, which this URL does not use; write %s instead of "
            "%s",
            url_params[row].name,
            ways->sentinels ? "rediss+sentinel://"
                            : "rediss:// (or valkeys://)",
            ways->sentinels ? "redis+sentinel://" : "redis://");
        return false;
    }
    return true;
}

static bool check_sentinels(uint64_t given, struct text *error)
{
    for (size_t row = 0; row < url_param_count; row++) {
        if (!param_of_sentinels(row) || !is_given(given, url_params[row].name))
            continue;
        text_clear(error);
        text_addf(error,
            "%s is for Sentinels, but this URL names the server itself; to "
            "name Sentinels write " SENTINEL_URL,
            url_params[row].name);
        return false;
    }
    return true;
}

static bool lacks_password(const struct login_settings *login)
{
    return login->user && !login->password && !login->password_file &&
           !login->source.ask;
}

static bool check_users(const struct settings *settings, struct text *error)
{
    if (lacks_password(&settings->login)) {
        text_set(error,
            "the URL has a user without a password; add "
            "password_file=FILE, or write USER:PASSWORD@ before the host (a "
            "password alone is :PASSWORD@)");
        return false;
    }
    if (lacks_password(&settings->sentinel_login)) {
        text_set(error, "sentinel_user is given without a password; add "
                        "sentinel_password_file=FILE");
        return false;
    }
    return true;
}

/* The Sentinels have names of their own. */
static bool check_sni(uint64_t given, struct text *error)
{
    if (!is_given(given, "sni"))
        return true;
    text_set(error, "sni is for TLS to the server, which this URL uses only to "
                    "the Sentinels; write rediss+sentinel:// for both");
    return false;
}

static bool check_verify(
    const struct settings *settings, uint64_t given, struct text *error)
{
    bool trusts = is_given(given, "cacert") || is_given(given, "cacertdir");

    if (settings->verify != TLS_VERIFY_NONE || !trusts)
        return true;
    text_set(error, "a CA is given, but verify=none ignores it; remove one of "
                    "them");
    return false;
}

bool combination_valid(const struct settings *settings, uint64_t given,
    const struct url_ways *ways, struct text *error)
{
    if (!ways->sentinels && !check_sentinels(given, error))
        return false;
    if (!check_users(settings, error))
        return false;
    if (!ways->tls && !ways->sentinel_tls)
        return check_plain(given, ways, error) && check_pairs(given, error);
    return (ways->tls || check_sni(given, error)) &&
           check_pairs(given, error) && check_verify(settings, given, error);
}
