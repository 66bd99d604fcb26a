/* SPDX-License-Identifier: MIT */
/*
 * Checks the value of an option and puts it where the table says.
 *
 * Invariant: no value is guessed. One that is not understood or is out of range
 * is refused, and quoted as it was written unless it may be a secret.
 */
#include "cli/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nxlock.h>

#include "api/private.h"
#include "cli/report/duration.h"
#include "cli/names.h"
#include "cli/report/report.h"
#include "cli/servers/secret.h"
#include "wire/record.h"

static int set_duration(int64_t *ms, const struct option *option,
    const char *shown, const char *value)
{
    char word[DISCREET_ROOM];

    if (!duration_parse(value, ms)) {
        say("%s '%s' is not a duration: write 500ms, 30s, 10m, 2h or 1d (at "
            "most 3650d); a bare number is seconds",
            shown, discreet(word, value));
        return EXIT_USAGE;
    }
    bool low = *ms < option->least;
    if (!low && (option->most == 0 || *ms <= option->most))
        return 0;
    say("%s %s is too %s: use a duration %s", shown, value,
        low ? "short" : "long", option->range);
    return EXIT_USAGE;
}

static int set_integer(int *number, const struct option *option,
    const char *shown, const char *value)
{
    char *end, word[DISCREET_ROOM];
    long found = strtol(value, &end, 10);

    if (value[0] >= '0' && value[0] <= '9' && *end == '\0' &&
        found >= option->least && found <= option->most) {
        *number = (int)found;
        return 0;
    }
    say("%s '%s' is not valid: use a number %s", shown, discreet(word, value),
        option->range);
    return EXIT_USAGE;
}

/* Reads "0,3" into *codes, whatever was there. */
static int set_codes(struct codes *codes, const char *shown, const char *value)
{
    char word[DISCREET_ROOM];
    const char *at = value;

    *codes = (struct codes){{false}};
    for (;;) {
        size_t digits = strspn(at, "0123456789");
        long code = digits > 0 && digits <= 3 ? strtol(at, NULL, 10) : 256;
        if (code > 255 || (at[digits] != ',' && at[digits] != '\0'))
            break;
        codes->has[code] = true;
        if (at[digits] == '\0')
            return 0;
        at += digits + 1;
    }
    say("%s '%s' is not valid: use exit codes from 0 to 255, such as %s 0,3",
        shown, discreet(word, value), shown);
    return EXIT_USAGE;
}

/* The choice that value means, or NULL. */
static const struct choice *find_choice(
    const struct option *option, const char *value)
{
    for (const struct choice *c = option->choices; c->name; c++) {
        if (strcmp(c->name, value) == 0)
            return c;
        /* "file:PATH" is any value that begins with "file:". */
        size_t begins = strcspn(c->name, ":") + 1;
        if (strchr(c->name, ':') && strncmp(c->name, value, begins) == 0 &&
            value[begins] != '\0')
            return c;
    }
    return NULL;
}

static int set_choice(int *number, const struct option *option,
    const char *shown, const char *value)
{
    char word[DISCREET_ROOM], list[128] = "";
    const struct choice *found = find_choice(option, value);

    if (found) {
        *number = found->number;
        return 0;
    }
    for (const struct choice *c = option->choices; c->name; c++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s",
            used == 0 ? "" : (c[1].name ? ", " : " or "), c->name);
    }
    say("%s '%s' is not valid: use %s", shown, discreet(word, value), list);
    return EXIT_USAGE;
}

static int set_text(const char **text, const char *shown, const char *value)
{
    if (!*text && value[0] != '\0') {
        *text = value;
        return 0;
    }
    say("%s %s", shown,
        *text ? "is given twice; write it once" : "has an empty value");
    return EXIT_USAGE;
}

/* A word of a certain form. It is not quoted: it may be most of a token, or
 * long, or of control bytes. */
static int set_word(const char **text, enum value_type type, const char *shown,
    const char *value)
{
    if (type == VALUE_TOKEN ? is_token(value)
        : type == VALUE_ID  ? is_token_id(value)
                            : value[0] == '\0' || fingerprint_valid(value))
        return set_text(text, shown, value);
    if (type == VALUE_TOKEN)
        say("%s needs the token that 'nxlock acquire' printed, UUID or "
            "UUID@label, of several holders UUID+weight/permits@label, all of "
            "it",
            shown);
    else if (type == VALUE_ID)
        say("%s needs the 8 characters that 'nxlock status' shows before the "
            "holder, such as 6fa459ea",
            shown);
    else
        say("%s takes one word of printable ASCII, at most %d bytes; for "
            "another text, use a hash of it, as sha256sum prints",
            shown, FINGERPRINT_MAX);
    return EXIT_USAGE;
}

static int add_url(struct args *args, const char *shown, const char *value)
{
    if (args->url_count < NXL_SERVERS_MAX) {
        args->urls[args->url_count++] = value;
        return 0;
    }
    say("%s is given more than %d times; a lock cannot use more servers", shown,
        NXL_SERVERS_MAX);
    return EXIT_USAGE;
}

void value_set_name(struct args *args, const char *name)
{
    args->name = name;
    names_show_discreetly(args);
}

static int set_lock_name(
    struct args *args, const char *shown, const char *value)
{
    char word[DISCREET_ROOM];

    if (!args->name) {
        value_set_name(args, value);
        return 0;
    }
    say("%s '%s': NAME is '%s' already", shown, discreet(word, value),
        args->shown);
    return EXIT_USAGE;
}

static int add_name(struct args *args, const char *shown, const char *value)
{
    if (value[0] == '\0') {
        say("%s has an empty value", shown);
        return EXIT_USAGE;
    }
    if (is_token(value)) {
        say("a token was given instead of the name of %s", shown);
        return EXIT_USAGE;
    }
    if (args->also_count == NXL_NAMES_MAX - 1) {
        say("%s is given more than %d times; at most %d names can be locked "
            "together",
            shown, NXL_NAMES_MAX - 1, NXL_NAMES_MAX);
        return EXIT_USAGE;
    }
    args->also[args->also_count++] = value;
    names_show_discreetly(args);
    return 0;
}

static int set_parameter(const char **text, const struct option *option,
    const char *shown, const char *value)
{
    char must[96], word[DISCREET_ROOM];

    if (*text) {
        say("%s is given twice; write it once", shown);
        return EXIT_USAGE;
    }
    if (!url_param_accepts(option->variable, value, must, sizeof(must))) {
        say("%s '%s' %s", shown, discreet(word, value), must);
        return EXIT_USAGE;
    }
    *text = value;
    return 0;
}

int value_set(struct args *args, const struct option *option, const char *shown,
    const char *value)
{
    void *member = (char *)args + option->member;

    if (option->written != 0)
        *(const char **)((char *)args + option->written) = value;
    switch (option->type) {
    case VALUE_NONE:
        *(bool *)member = true;
        return 0;
    case VALUE_DURATION:
        return set_duration(member, option, shown, value);
    case VALUE_NUMBER:
        return set_integer(member, option, shown, value);
    case VALUE_CODES:
        return set_codes(member, shown, value);
    case VALUE_CHOICE:
        return set_choice(member, option, shown, value);
    case VALUE_TEXT:
        return set_text(member, shown, value);
    case VALUE_TOKEN:
    case VALUE_ID:
    case VALUE_WORD:
        return set_word(member, option->type, shown, value);
    case VALUE_URL:
        return add_url(args, shown, value);
    case VALUE_NAME:
        return set_lock_name(args, shown, value);
    case VALUE_ALSO:
        return add_name(args, shown, value);
    case VALUE_PARAMETER:
        return set_parameter(
            member, option, shown, option->implied ? option->implied : value);
    }
    return EXIT_USAGE;
}
