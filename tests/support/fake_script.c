/* SPDX-License-Identifier: MIT */
/*
 * The script's text to steps. Everything that can be wrong with it is found
 * here, before a connection is made, and named with its line.
 */
#include "support/fake_inner.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum step_kind kind;
    char takes; /* w: words, t: text, n: number, 0 */
} kinds[] = {
    {"EXPECT", STEP_EXPECT, 'w'},
    {"EXPECT-HANDSHAKE", STEP_EXPECT_HANDSHAKE, 0},
    {"EXPECT-CLOSE", STEP_EXPECT_CLOSE, 0},
    {"SEND", STEP_SEND, 't'},
    {"SEND-PART", STEP_SEND, 't'},
    {"BULK", STEP_BULK, 't'},
    {"INFO", STEP_INFO, 't'},
    {"DELAY", STEP_DELAY, 'n'},
    {"WAIT-FOR", STEP_WAIT_FOR, 't'},
    {"TELL", STEP_TELL, 't'},
    {"SILENCE", STEP_SILENCE, 0},
    {"SERVE", STEP_SERVE, 0},
    {"CLOSE", STEP_CLOSE, 0},
    {"RESET", STEP_RESET, 0},
    {"REFUSE", STEP_REFUSE, 0},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void *zeroed(size_t size)
{
    void *p = calloc(1, size);
    if (!p)
        abort();
    return p;
}

/* One byte, escaped or not; the bytes used, 0: no such escape. */
static size_t unescape(const char *at, size_t len, char *out)
{
    *out = at[0];
    if (at[0] != '\\')
        return 1;
    if (len < 2)
        return 0;
    switch (at[1]) {
    case 'r':
        *out = '\r';
        return 2;
    case 'n':
        *out = '\n';
        return 2;
    case '\\':
        *out = '\\';
        return 2;
    default:
        return 0;
    }
}

static bool read_text(struct bytes *out, const char *at, size_t len)
{
    bytes_add(out, "", 0);
    while (len > 0) {
        char c;
        size_t used = unescape(at, len, &c);
        if (used == 0)
            return false;
        bytes_add(out, &c, 1);
        at += used;
        len -= used;
    }
    return true;
}

static bool read_word(struct word *word, const char *at, size_t len)
{
    if (len == 1 && at[0] == '*') {
        word->kind = WORD_ANY;
        return true;
    }
    if (len > 1 && at[0] == '$') {
        word->kind = WORD_TAKE;
        return read_text(&word->text, at + 1, len - 1);
    }
    return read_text(&word->text, at, len);
}

static const char *read_words(struct step *step, const char *at, size_t len)
{
    while (len > 0) {
        size_t word = 0;
        while (word < len && at[word] != ' ')
            word++;
        if (word > 0) {
            if (step->count == RESP_ARGS)
                return "too many words";
            if (!read_word(&step->words[step->count++], at, word))
                return "not an escape";
        }
        word += word < len;
        at += word;
        len -= word;
    }
    return step->count == 0 ? "a command is missing" : NULL;
}

static const char *read_number(struct step *step, const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)at[i]) || i > 6)
            return "not a number";
        step->count = step->count * 10 + (size_t)(at[i] - '0');
    }
    return step->count == 0 ? "a number above 0 is needed" : NULL;
}

/* at: without blanks at its ends. NULL, or what is wrong. */
static const char *read_step(struct step *step, const char *at, size_t len)
{
    size_t name = 0, i = 0;

    while (name < len && at[name] != ' ')
        name++;
    while (i < KINDS && (strlen(kinds[i].name) != name ||
                            memcmp(kinds[i].name, at, name) != 0))
        i++;
    if (i == KINDS)
        return "no such step";
    step->kind = kinds[i].kind;
    while (name < len && at[name] == ' ')
        name++;
    at += name;
    len -= name;
    switch (kinds[i].takes) {
    case 'w':
        return read_words(step, at, len);
    case 't':
        if (len == 0)
            return "a text is missing";
        return read_text(&step->text, at, len) ? NULL : "not an escape";
    case 'n':
        return read_number(step, at, len);
    default:
        return len > 0 ? "nothing may follow" : NULL;
    }
}

struct reading {
    struct section *first, *last;
    struct step **end; /* where the next step goes */
    bool began;        /* the first section has an ACCEPT or a step */
};

static const char *read_line(
    struct reading *r, const char *at, size_t len, int line)
{
    bool many = len == 8 && memcmp(at, "ACCEPT *", 8) == 0;

    if (r->last->many && len >= 6 && memcmp(at, "ACCEPT", 6) == 0)
        return "ACCEPT * is the last section";
    if (many || (len == 6 && memcmp(at, "ACCEPT", 6) == 0)) {
        if (r->began) {
            r->last->next = zeroed(sizeof(*r->last));
            r->last = r->last->next;
            r->end = &r->last->steps;
        }
        r->last->many = many;
        r->began = true;
        return NULL;
    }
    r->began = true;
    *r->end = zeroed(sizeof(struct step));
    struct step *step = *r->end;
    r->end = &step->next;
    step->line = line;
    snprintf(step->shown, sizeof(step->shown), "%.*s", (int)len, at);
    return read_step(step, at, len);
}

struct section *script_read(const char *text, struct bytes *problem)
{
    struct reading r = {zeroed(sizeof(struct section)), NULL, NULL, false};
    r.last = r.first;
    r.end = &r.first->steps;

    for (int line = 1; *text != '\0'; line++) {
        size_t len = strcspn(text, "\n");
        const char *at = text, *end = text + len;
        text = *end != '\0' ? end + 1 : end;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        if (at == end || *at == '#')
            continue;
        const char *wrong = read_line(&r, at, (size_t)(end - at), line);
        if (wrong) {
            bytes_addf(problem, "script line %d: %s: %.*s", line, wrong,
                (int)(end - at > 200 ? 200 : end - at), at);
            script_free(r.first);
            return NULL;
        }
    }
    return r.first;
}

void script_free(struct section *sections)
{
    while (sections) {
        struct section *section = sections;
        sections = section->next;
        while (section->steps) {
            struct step *step = section->steps;
            section->steps = step->next;
            for (size_t i = 0; i < RESP_ARGS; i++)
                bytes_free(&step->words[i].text);
            bytes_free(&step->text);
            free(step);
        }
        free(section);
    }
}
