/* SPDX-License-Identifier: MIT */
/*
 * URLs for programs that let people write parts of them elsewhere: as options
 * of a command, or as a list in a variable.
 */
#include <stdlib.h>

#include <nxlock.h>

#include "api/private.h"
#include "config/params.h"

bool url_param_accepts(
    const char *name, const char *value, char *must, size_t size)
{
    struct settings settings = {0};
    struct text words;
    bool accepted = false;

    text_clear(&words);
    size_t row = name ? param_find(slice_of(name)) : url_param_count;
    char *copy = value ? strdup(value) : NULL;
    if (row == url_param_count) {
        secret_free(copy);
        text_add(&words, "is unknown");
    } else if (!copy) {
        text_add(&words, value ? "needs memory" : "must not be NULL");
    } else {
        accepted = param_set(&settings, row, copy);
        settings_free(&settings);
        if (!accepted)
            param_describe(row, &words);
    }
    if (must && size > 0)
        text_copy(&words, must, size);
    return accepted;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Does "scheme://" begin at text, whether the scheme is known or not? */
static bool begins_url(const char *text)
{
    size_t len = 0;

    while (is_letter(text[len]) ||
           (len > 0 && text[len] != '\0' && strchr("0123456789+-.", text[len])))
        len++;
    return len > 0 && strncmp(text + len, "://", 3) == 0;
}

size_t url_length(const char *urls)
{
    size_t len = 0;

    while (urls && urls[len] != '\0' &&
           !(urls[len] == ',' && begins_url(urls + len + 1)))
        len++;
    return len;
}
