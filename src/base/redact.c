/* SPDX-License-Identifier: MIT */
/*
 * Looks for passwords and tokens in a peer's text.
 *
 * The runs of a text, which is short, are put into a set; then each password is
 * read once, and each of its runs is looked up. So nothing has to be kept up to
 * date when a password changes.
 *
 * What Redis repeats of a command's arguments is never shown, so a password in
 * it is no reason to omit the rest.
 */
#include "base/redact.h"

#include <ctype.h>
#include <stdint.h>

/* Bytes of a text that are examined; far fewer are shown. */
#define EXAMINED_MAX 1024
#define SET_BITS 11
#define SET_SIZE (1U << SET_BITS)
#define TOKEN_BLANKS 32 /* a token as blanks has 128 */

_Static_assert(
    2 * EXAMINED_MAX <= SET_SIZE, "half of the set stays free for look-ups");
_Static_assert(REDACT_RUN == sizeof(uint32_t), "a run is one number");

/* How a peer may write the bytes of what it repeats. */
enum form { FORM_RAW, FORM_PERCENT, FORM_BACKSLASH, FORMS };

/* A text without its escapes. */
struct plain {
    size_t len;
    unsigned char bytes[EXAMINED_MAX];
};

void secrets_add(struct secrets *secrets, const struct slice *password)
{
    if (secrets->count < SECRETS_MAX)
        secrets->password[secrets->count++] = password;
}

/* ------------------------------------------------------------ escaped bytes */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Reads up to `most` digits of that base at *used, and moves *used past them.
 * Returns -1 if there are none, or if the number does not fit in a byte. */
static int number_at(struct slice text, size_t *used, size_t most, int base)
{
    size_t from = *used;
    int value = 0;

    while (*used < text.len && *used - from < most &&
           digit_of(text.data[*used]) < base)
        value = value * base + digit_of(text.data[(*used)++]);
    return *used > from && value < 256 ? value : -1;
}

/* The byte that the escape at the start of text stands for, or -1. */
static int unescape_percent(struct slice text, size_t *used)
{
    if (text.data[0] != '%')
        return -1;
    *used = 1;
    int value = number_at(text, used, 2, 16);
    return *used == 3 ? value : -1;
}

static int unescape_backslash(struct slice text, size_t *used)
{
    static const char letters[] = "abefnrtv";
    static const char meanings[] = "\a\b\x1b\f\n\r\t\v";

    if (text.data[0] != '\\' || text.len < 2)
        return -1;
    const char *letter = strchr(letters, text.data[1]);
    *used = 2;
    if (text.data[1] == 'x')
        return number_at(text, used, 2, 16);
    if (text.data[1] == 'u')
        return number_at(text, used, 4, 16);
    if (digit_of(text.data[1]) < 8) {
        *used = 1;
        return number_at(text, used, 3, 8);
    }
    return letter && *letter ? (unsigned char)meanings[letter - letters]
                             : (unsigned char)text.data[1];
}

/* Bytes that count as the same. */
static unsigned char fold(int byte)
{
    return byte == '+' ? ' ' : (unsigned char)tolower(byte);
}

/* Takes out the escapes of that form. False: there are none. */
static bool decode(struct plain *plain, enum form form, struct slice text)
{
    size_t used;
    bool any = form == FORM_RAW;

    plain->len = 0;
    for (size_t at = 0; at < text.len; at += used) {
        struct slice rest = {text.data + at, text.len - at};
        int value = form == FORM_PERCENT     ? unescape_percent(rest, &used)
                    : form == FORM_BACKSLASH ? unescape_backslash(rest, &used)
                                             : -1;
        any = any || value >= 0;
        if (value < 0) {
            used = 1;
            value = (unsigned char)rest.data[0];
        }
        plain->bytes[plain->len++] = fold(value);
    }
    return any;
}

/* ------------------------------------------------------------------ finding */

/* The runs of a text. 0 is a free place: no password has a zero byte. */
struct set {
    uint32_t runs[SET_SIZE];
};

/* Where the run is, or would be. */
static uint32_t *place_of(struct set *set, uint32_t run)
{
    uint32_t at = run * UINT32_C(2654435761) >> (32 - SET_BITS);

    while (set->runs[at] != 0 && set->runs[at] != run)
        at = (at + 1) % SET_SIZE;
    return &set->runs[at];
}

static void fill_set(struct set *set, const struct plain *plain)
{
    uint32_t run = 0;

    memset(set, 0, sizeof(*set));
    for (size_t i = 0; i < plain->len; i++) {
        run = run << 8 | plain->bytes[i];
        if (i + 1 >= REDACT_RUN)
            *place_of(set, run) = run;
    }
}

static bool has_run(struct set *set, struct slice secret)
{
    uint32_t run = 0;

    for (size_t i = 0; i < secret.len; i++) {
        run = run << 8 | fold((unsigned char)secret.data[i]);
        if (i + 1 >= REDACT_RUN && *place_of(set, run) != 0)
            return true;
    }
    return false;
}

static bool has_short(const struct plain *plain, struct slice secret)
{
    unsigned char folded[REDACT_RUN];

    for (size_t i = 0; i < secret.len; i++)
        folded[i] = fold((unsigned char)secret.data[i]);
    return secret.len > 0 &&
           memmem(plain->bytes, plain->len, folded, secret.len);
}

/* Servers often share a password, which is then looked for only once. */
static bool is_repeated(const struct secrets *secrets, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (slice_equal(*secrets->password[j], *secrets->password[i]))
            return true;
    return false;
}

bool secrets_occur(const struct secrets *secrets, struct slice text)
{
    struct plain plain;
    struct set set;

    if (text.len > EXAMINED_MAX)
        return true;
    for (int form = FORM_RAW; form < FORMS; form++) {
        if (!decode(&plain, (enum form)form, text))
            continue;
        fill_set(&set, &plain);
        for (size_t i = 0; i < secrets->count; i++) {
            struct slice secret = *secrets->password[i];
            if (is_repeated(secrets, i))
                continue;
            if (secret.len < REDACT_RUN ? has_short(&plain, secret)
                                        : has_run(&set, secret))
                return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------- tokens */

static bool is_hex(struct slice text, size_t at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (at + i >= text.len || digit_of(text.data[at + i]) >= 16)
            return false;
    return true;
}

static bool is_dash(struct slice text, size_t at)
{
    return at < text.len && text.data[at] == '-';
}

/* "-xxxx-xxxx-" is what is left of a UUID that was cut at either end. */
static bool has_token(struct slice text)
{
    for (size_t at = 0; at < text.len; at++)
        if ((at == 0 || is_dash(text, at - 1)) && is_hex(text, at, 4) &&
            is_dash(text, at + 4) && is_hex(text, at + 5, 4) &&
            is_dash(text, at + 9))
            return true;
    return false;
}

/* The length of a space or a tab at `at`, as it is or escaped; 0: it is
 * something else. */
static size_t blank_at(struct slice text, size_t at)
{
    static const char *const blanks[] = {" ", "\t", "\\t", "\\x09"};

    for (size_t i = 0; i < sizeof(blanks) / sizeof(blanks[0]); i++) {
        size_t len = strlen(blanks[i]);
        if (len <= text.len - at && memcmp(text.data + at, blanks[i], len) == 0)
            return len;
    }
    return 0;
}

/* Tokens after a timestamp: a blank for each bit. */
static bool has_blank_token(struct slice text)
{
    for (size_t at = 0, end; at < text.len; at = end + 1) {
        size_t blanks = 0, used;
        for (end = at; (used = blank_at(text, end)) > 0; end += used)
            blanks++;
        if (blanks >= TOKEN_BLANKS)
            return true;
    }
    return false;
}

void redact_add(struct text *t, struct slice bytes, size_t most,
    const struct secrets *secrets)
{
    struct slice text = text_without_echo(bytes);

    if (text.len > EXAMINED_MAX)
        text.len = EXAMINED_MAX;
    if (secrets && secrets_occur(secrets, text))
        text_add(t, REDACTED_SECRET);
    else if (has_token(text) || has_blank_token(text))
        text_add(t, REDACTED_TOKEN);
    else
        text_add_foreign_raw(t, text, most);
}
