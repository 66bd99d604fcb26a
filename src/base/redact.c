/* SPDX-License-Identifier: MIT */
/*
 * How passwords are hidden, and why not all in the same way:
 *
 * - One with 8 bytes or more that are not all letters is replaced wherever it
 *   occurs, also inside a word.
 * - A shorter one, or one made of letters only, may be a word of the server's
 *   own text. Replacing it in a sentence that everybody knows would show it
 *   ("invalid username-[hidden] pair"), so the whole text is left out.
 * - One of 1 to 3 bytes occurs in nearly every text by chance, so it counts
 *   only where it is a word of its own. So does one of 4 to 7 bytes that is
 *   written in another case ("wrong" is no reason to hide WRONGPASS).
 *
 * Texts are cut, by the peer and by us. Hence a part of a password is hidden
 * too if it is long, or if it is at the end (or the beginning) of the text.
 * What Redis repeats of a command's arguments is never shown, so a password in
 * it cannot leak.
 */
#include "base/redact.h"

#include <ctype.h>

/* Bytes of a text that are examined; far fewer are shown. */
#define EXAMINED_MAX 1024
#define STRONG_LEN 8
#define WORD_LEN 4 /* shorter passwords count only as whole words */
#define PART_LEN 12
#define EDGE_LEN 4
#define TOKEN_BLANKS 32 /* a token as blanks has 128 */

#define HIDDEN "[hidden]"
#define LEFT_OUT "[text hidden: it contains the password]"

/* How a peer may write a byte of what it repeats. */
enum form { FORM_RAW, FORM_PERCENT, FORM_BACKSLASH, FORM_HTML, FORMS };

struct run {
    size_t bytes; /* of the secret */
    size_t used;  /* of the text that spells them */
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
           digit_of(text.data[*used]) < base && value < 256)
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

static int unescape_html(struct slice text, size_t *used)
{
    static const struct {
        const char *name;
        char byte;
    } names[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'},
        {"&apos;", '\''}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *used = strlen(names[i].name);
        if (slice_starts(text, names[i].name))
            return names[i].byte;
    }
    if (!slice_starts(text, "&#") || text.len < 3)
        return -1;
    bool hex = (text.data[2] | 0x20) == 'x';
    *used = hex ? 3 : 2;
    int value = number_at(text, used, 4, hex ? 16 : 10);
    if (*used < text.len && text.data[*used] == ';')
        ++*used;
    return value;
}

/* How many bytes at the start of text stand for that byte of a secret; 0: none
 * do. Case is ignored, because some peers repeat a command in capitals. */
static size_t spells(enum form form, struct slice text, char wanted)
{
    size_t used = 1;
    int value = -1;

    if (form == FORM_PERCENT)
        value = unescape_percent(text, &used);
    else if (form == FORM_BACKSLASH)
        value = unescape_backslash(text, &used);
    else if (form == FORM_HTML)
        value = unescape_html(text, &used);
    if (value < 0) {
        used = 1;
        value = (unsigned char)text.data[0];
        if (form == FORM_PERCENT && value == '+' && wanted == ' ')
            return used;
    }
    return tolower(value) == tolower((unsigned char)wanted) ? used : 0;
}

/* Does the text contain a character that begins an escape of that form? */
static bool may_occur(enum form form, struct slice text)
{
    static const char *const signs[FORMS] = {"", "%+", "\\", "&"};

    for (const char *sign = signs[form]; *sign; sign++)
        if (text.len > 0 && memchr(text.data, *sign, text.len))
            return true;
    return form == FORM_RAW;
}

/* ------------------------------------------------------------------ finding */

/* The text that is examined, and which bytes of it to hide. */
struct view {
    struct slice text;
    bool cut;
    bool all; /* nothing of it may be shown */
    bool hide[EXAMINED_MAX];
};

static void hide(struct view *v, size_t at, size_t len)
{
    memset(v->hide + at, true, len);
}

static struct slice behind(struct slice text, size_t at)
{
    return (struct slice){text.data + at, text.len - at};
}

static bool only_letters(struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (!isalpha((unsigned char)bytes.data[i]))
            return false;
    return true;
}

static bool in_word(const struct view *v, size_t at)
{
    return at < v->text.len && isalnum((unsigned char)v->text.data[at]);
}

static struct run follow(enum form form, struct slice text, struct slice secret)
{
    struct run run = {0, 0};
    size_t used;

    while (run.bytes < secret.len && run.used < text.len &&
           (used = spells(
                form, behind(text, run.used), secret.data[run.bytes])) > 0) {
        run.bytes++;
        run.used += used;
    }
    return run;
}

static bool is_exact(const struct view *v, size_t at, struct slice secret)
{
    return v->text.len - at >= secret.len &&
           memcmp(v->text.data + at, secret.data, secret.len) == 0;
}

/* Must a run be hidden that begins at `at` in the text and matches the secret
 * from byte `from` on? */
static bool reveals(const struct view *v, size_t at, struct slice secret,
    size_t from, struct run run)
{
    if (run.bytes == secret.len &&
        (secret.len < WORD_LEN ||
            (secret.len < STRONG_LEN && !is_exact(v, at, secret))))
        return (at == 0 || !in_word(v, at - 1)) && !in_word(v, at + run.used);
    if (run.bytes == secret.len || run.bytes >= PART_LEN)
        return true;
    bool at_end = from == 0 && at + run.used == v->text.len;
    bool at_start = at == 0 && from + run.bytes == secret.len;
    struct slice part = {secret.data + from, run.bytes};
    return run.bytes >= EDGE_LEN && (at_end || at_start) &&
           (v->cut || !only_letters(part));
}

static void find_password(struct view *v, struct slice secret, enum form form)
{
    bool weak = secret.len < STRONG_LEN || only_letters(secret);

    for (size_t at = 0; at < v->text.len; at++) {
        for (size_t from = 0; from < secret.len; from++) {
            if (from > 0 && at > 0 && secret.len - from < PART_LEN)
                break;
            struct run run =
                follow(form, behind(v->text, at), behind(secret, from));
            if (!reveals(v, at, secret, from, run))
                continue;
            v->all = v->all || weak;
            hide(v, at, run.used);
        }
    }
}

/* Servers often share a password, which is then looked for only once. */
static bool is_repeated(const struct secrets *secrets, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (slice_equal(*secrets->password[j], *secrets->password[i]))
            return true;
    return false;
}

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
static void find_tokens(struct view *v)
{
    struct slice text = v->text;

    for (size_t at = 0; at < text.len; at++) {
        if ((at > 0 && !is_dash(text, at - 1)) || !is_hex(text, at, 4) ||
            !is_dash(text, at + 4) || !is_hex(text, at + 5, 4) ||
            !is_dash(text, at + 9))
            continue;
        size_t from = at, end = at;
        while (
            from > 0 && (is_hex(text, from - 1, 1) || is_dash(text, from - 1)))
            from--;
        while (is_hex(text, end, 1) || is_dash(text, end))
            end++;
        hide(v, from, end - from);
    }
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
static void find_blank_tokens(struct view *v)
{
    for (size_t at = 0, end; at < v->text.len; at = end + 1) {
        size_t blanks = 0, used;
        for (end = at; (used = blank_at(v->text, end)) > 0; end += used)
            blanks++;
        if (blanks >= TOKEN_BLANKS)
            hide(v, at, end - at);
    }
}

/* ------------------------------------------------------------------ writing */

/* `out` is large enough: each marker replaces at least one byte, and two
 * markers have at least one byte between them. */
static size_t write_out(const struct view *v, char *out)
{
    size_t len = 0;

    for (size_t at = 0; at < v->text.len; at++) {
        if (!v->hide[at]) {
            out[len++] = v->text.data[at];
        } else if (at == 0 || !v->hide[at - 1]) {
            memcpy(out + len, HIDDEN, sizeof(HIDDEN) - 1);
            len += sizeof(HIDDEN) - 1;
        }
    }
    return len;
}

void redact_add(struct text *t, struct slice bytes, bool cut, size_t most,
    const struct secrets *secrets)
{
    struct view v = {.text = text_without_echo(bytes), .cut = cut};
    char out[EXAMINED_MAX / 2 * sizeof(HIDDEN)];

    if (v.text.len > EXAMINED_MAX) {
        v.text.len = EXAMINED_MAX;
        v.cut = true;
    }
    for (size_t i = 0; secrets && i < secrets->count; i++) {
        if (is_repeated(secrets, i))
            continue;
        for (int form = FORM_RAW; form < FORMS; form++)
            if (may_occur((enum form)form, v.text))
                find_password(&v, *secrets->password[i], (enum form)form);
    }
    find_tokens(&v);
    find_blank_tokens(&v);
    if (v.all) {
        text_add(t, LEFT_OUT);
        return;
    }
    text_add_foreign_most(t, (struct slice){out, write_out(&v, out)}, most);
}
