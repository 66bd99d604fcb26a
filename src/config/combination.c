/* SPDX-License-Identifier: MIT */
/*
 * Which parameters of a URL need or exclude each other.
 *
 * Invariant: a parameter that would have no effect is refused. Otherwise a
 * mistake would go unnoticed, such as a CA for a connection without TLS.
 */
#include "config/combination.h"

static const struct pair {
    const char *a, *b;
    bool together; /* a needs b; otherwise a excludes b */
    const char *why;
} pairs[] = {
    {"password", "password_file", false, "one password is enough"},
    {"cert", "key", true, "a client certificate needs its private key"},
    {"key", "cert", true, "a private key needs its certificate"},
    {"key_password_file", "key", true, "it is the password of that file"},
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

static bool check_plain(uint64_t given, struct text *error)
{
    for (size_t row = 0; row < url_param_count; row++) {
        if (!param_of_tls(row) || !is_given(given, url_params[row].name))
            continue;
        text_clear(error);
        text_addf(error,
            "%s is for TLS, which this URL does not use; write rediss:// (or "
            "valkeys://) instead of redis://",
            url_params[row].name);
        return false;
    }
    return true;
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
    bool tls, struct text *error)
{
    const struct login_settings *login = &settings->login;
    if (login->user && !login->password && !login->password_file &&
        !login->source.ask) {
        text_set(error,
            "the URL has a user without a password; add "
            "password_file=FILE, or write USER:PASSWORD@ before the host (a "
            "password alone is :PASSWORD@)");
        return false;
    }
    if (!tls)
        return check_plain(given, error) && check_pairs(given, error);
    return check_pairs(given, error) && check_verify(settings, given, error);
}
