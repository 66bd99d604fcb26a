/* SPDX-License-Identifier: MIT */
/*
 * Scans the keys of every server for locks, and for records of nxlock once.
 *
 * Invariant: the server is never blocked: its keys are scanned in small steps,
 * and no more of a value is read than a token, or the first line of a record,
 * is long. A list that lacks a server, or records, says so.
 */
#include "cli/look/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/private.h"
#include "cli/answer.h"
#include "cli/servers/connect.h"
#include "cli/report/json.h"
#include "cli/look/partial.h"
#include "cli/report/report.h"
#include "cli/servers/secret.h"
#include "model/companion.h"
#include "model/token.h"
#include "wire/record.h"

#define COUNT_FIRST 250 /* keys that one step looks at */
#define VALUE_MAX "511"
#define LINE_LEN_MAX "1023" /* of a record: its first line is shorter */
#define LINE_ROOM 1024
#define CURSOR_ROOM 24
#define MEMBERS_SHOWN 1000
#define MEMBERS_MOST "1001" /* and the head */
/* Of the head of a lock that several may hold, at least; see lock.lua. */
#define HEAD_SCORE INT64_C(17592186044416)

/* The server answered, but not to this command. */
static int refuse_answer(struct lister *lister, const char *command)
{
    lister->odd = command;
    return NXL_E_NOT_REDIS;
}

/* Asks for the beginning of the key's value, up to byte most. */
static int read_value(struct lister *lister, size_t server, struct slice key,
    const char *most, struct answer **value)
{
    const char *words[] = {"GETRANGE", key.data, "0", most};
    const size_t lengths[] = {8, key.len, 1, strlen(most)};

    int rc =
        client_ask(lister->session.client, server, 4, words, lengths, value);
    if (rc != NXL_OK || answer_item(*value, 0, NULL))
        return rc;
    answer_free(*value);
    *value = NULL;
    return refuse_answer(lister, "GETRANGE");
}

/* *left_ms: the key's TTL, -1 if it has none, less if there is no such key. */
static int read_left(
    struct lister *lister, size_t server, struct slice key, int64_t *left_ms)
{
    const char *words[] = {"PTTL", key.data};
    const size_t lengths[] = {4, key.len};
    struct answer *left;
    int rc =
        client_ask(lister->session.client, server, 2, words, lengths, &left);

    *left_ms = -2;
    if (rc == NXL_OK &&
        (!answer_number(left, 0, EXACT_MAX, left_ms) || *left_ms < -2))
        rc = refuse_answer(lister, "PTTL");
    answer_free(left);
    return rc;
}

/* Asks for the last members of a sorted set, with their scores. */
static int read_members(struct lister *lister, size_t server, struct slice key,
    struct answer **members)
{
    const char *words[] = {
        "ZRANGE", key.data, "-" MEMBERS_MOST, "-1", "WITHSCORES"};
    const size_t lengths[] = {
        6, key.len, strlen("-" MEMBERS_MOST), 2, strlen("WITHSCORES")};

    return client_ask(
        lister->session.client, server, 5, words, lengths, members);
}

/* Is the last of the members the head of a lock that several may hold? *ends is
 * then when the last lease ends, in ms of the server's time. */
static bool has_head(const struct answer *members, int64_t *ends)
{
    size_t count = answer_count(members);
    const char *head =
        count >= 4 ? answer_item(members, count - 2, NULL) : NULL;
    int64_t score;

    return head && strncmp(head, "nxl=", 4) == 0 &&
           answer_number(members, count - 1, EXACT_MAX, &score) &&
           score >= HEAD_SCORE &&
           answer_number(members, count - 3, EXACT_MAX, ends);
}

/* Counts those whose leases have not ended. */
static void sum_members(
    struct lock_share *share, const struct answer *members, int64_t now)
{
    size_t count = answer_count(members) / 2 - 1;
    struct slice token;
    int64_t ends;

    *share = (struct lock_share){.partial = count >= MEMBERS_SHOWN};
    for (size_t i = 0; i < count; i++) {
        token.data = answer_item(members, 2 * i, &token.len);
        if (!token.data ||
            !answer_number(members, 2 * i + 1, EXACT_MAX, &ends) || ends <= now)
            continue;
        /* A member of a later version takes one permit, alone. */
        struct share one = token_share(token);
        int64_t permits = one.weight > 0 ? one.permits : 1;
        share->holders++;
        share->used += one.weight > 0 ? one.weight : 1;
        if (permits > 0 && (share->permits == 0 || permits < share->permits))
            share->permits = permits;
    }
}

/* Adds the key to the list if it is a lock that several may hold: a sorted set
 * of tokens, see docs/wire.md. It expires with the last lease, which says what
 * time it is for the server. */
static int inspect_several(
    struct lister *lister, size_t server, struct slice key)
{
    size_t below = strlen(lister->prefix);
    enum companion what;
    struct slice lock;
    struct answer *members;
    struct lock_share share;
    int64_t ends, left_ms = -2;

    if (!slice_starts(key, lister->prefix) || companion_of(key, &what, &lock))
        return NXL_OK;
    int rc = read_members(lister, server, key, &members);
    lister->no_members |= rc == NXL_E_DENIED;
    if (rc == NXL_E_DENIED || rc == NXL_E_WRONG_TYPE)
        return NXL_OK;
    if (rc == NXL_OK && has_head(members, &ends)) {
        rc = read_left(lister, server, key, &left_ms);
        if (left_ms >= 0) {
            sum_members(&share, members, ends - left_ms);
            const char *last =
                answer_item(members, answer_count(members) - 4, NULL);
            struct lock_entry *f = lock_list_add(&lister->locks,
                key.data + below, key.len - below, last, server, left_ms);
            if (f)
                f->share = share;
            rc = f ? NXL_OK : NXL_E_NOMEM;
        }
    }
    answer_free(members);
    return rc;
}

/* Adds the key to the list if its value is a token. */
static int inspect_key(struct lister *lister, size_t server, struct slice key)
{
    size_t below = strlen(lister->prefix), size;
    int64_t left_ms;
    struct answer *value;

    if (key.len < below || memcmp(key.data, lister->prefix, below) != 0)
        return NXL_OK;
    int rc = read_value(lister, server, key, VALUE_MAX, &value);
    if (rc == NXL_E_WRONG_TYPE)
        return lister->untyped ? inspect_several(lister, server, key) : NXL_OK;
    if (rc != NXL_OK)
        return rc;
    const char *token = answer_item(value, 0, &size);
    if (token && strlen(token) == size && is_token(token)) {
        rc = read_left(lister, server, key, &left_ms);
        if (left_ms >= -1 && !lock_list_add(&lister->locks, key.data + below,
                                 key.len - below, token, server, left_ms))
            rc = NXL_E_NOMEM;
    }
    answer_free(value);
    return rc;
}

/* Reads the first line of the record into line; "" if there is none. */
static int read_line(struct lister *lister, size_t server, struct slice key,
    char line[LINE_ROOM])
{
    struct answer *value;
    int rc = read_value(lister, server, key, LINE_LEN_MAX, &value);
    const char *text = answer_item(value, 0, NULL);
    const char *end = text ? strchr(text, '\n') : NULL;

    snprintf(
        line, LINE_ROOM, "%.*s", end ? (int)(end - text) : 0, end ? text : "");
    answer_free(value);
    return rc == NXL_E_WRONG_TYPE ? NXL_OK : rc;
}

/* *left_ms: for how long the lock still has this token; -1: it has not. */
static int read_lock(struct lister *lister, size_t server, struct slice lock,
    struct slice token, int64_t *left_ms)
{
    struct answer *value;
    int rc = read_value(lister, server, lock, VALUE_MAX, &value);
    struct slice text = {NULL, 0};
    text.data = answer_item(value, 0, &text.len);
    bool held = text.data && slice_equal(text, token);

    answer_free(value);
    *left_ms = -1;
    if (rc == NXL_OK && held)
        rc = read_left(lister, server, lock, left_ms);
    return rc == NXL_E_WRONG_TYPE ? NXL_OK : rc;
}

/* Reads a record. One that has begun is in doubt, *left_ms is -1, only if it is
 * read twice, and the lock in between does not have its token: otherwise it
 * might just have ended. line is "" if it is no record. */
static int read_record(struct lister *lister, size_t server, struct slice key,
    struct slice lock, char line[LINE_ROOM], int64_t *left_ms)
{
    char before[LINE_ROOM] = "";
    struct record record;

    for (;;) {
        int rc = read_line(lister, server, key, line);
        *left_ms = -1;
        if (rc != NXL_OK)
            return rc;
        if (!record_parse(slice_of(line), &record)) {
            line[0] = '\0';
            return NXL_OK;
        }
        if (record.state == ONCE_DONE || record.state == ONCE_FAILED)
            return read_left(lister, server, key, left_ms);
        if (record.state != ONCE_BEGUN || strcmp(line, before) == 0)
            return NXL_OK;
        rc = read_lock(lister, server, lock, record.token, left_ms);
        if (rc != NXL_OK || *left_ms >= 0)
            return rc;
        memcpy(before, line, LINE_ROOM);
    }
}

/* Adds the key of that record of a lock to the list, if it is to be shown. */
static int inspect_record(
    struct lister *lister, size_t server, struct slice key, struct slice lock)
{
    size_t below = strlen(lister->prefix);
    char line[LINE_ROOM];
    int64_t left_ms;

    int rc = read_record(lister, server, key, lock, line, &left_ms);
    if (rc == NXL_E_DENIED) {
        lister->no_right = true;
        return NXL_OK;
    }
    if (rc != NXL_OK)
        return rc;
    if (line[0] == '\0') /* a lock whose name looks like a record's */
        return lister->all ? inspect_key(lister, server, key) : NXL_OK;
    bool shown = lister->session.args->records || left_ms == -1;
    if (shown && left_ms >= -1 &&
        !lock_list_add(&lister->locks, lock.data + below, lock.len - below,
            line, server, left_ms))
        return NXL_E_NOMEM;
    return NXL_OK;
}

/* What the keys are that a scan of the server looks for: exclusive locks, locks
 * that several may hold, which are of another type, and records. The server
 * matches their names, so each form of key has a pattern. */
enum form { LOCKS, SEVERAL, RECORDS, RECORDS_TAGGED, FORMS };

/* Is the key that of a record of a lock below the prefix? *lock is the lock's
 * key then. */
static bool is_record(
    const struct lister *lister, struct slice key, struct slice *lock)
{
    enum companion what;

    return companion_of(key, &what, lock) && what == COMPANION_RECORD &&
           slice_starts(*lock, lister->prefix) &&
           lock->len > strlen(lister->prefix);
}

/* Inspects the keys of one step of SCAN; item 0 is the next cursor. */
static int inspect_keys(struct lister *lister, size_t server, enum form form,
    const struct answer *keys)
{
    int rc = NXL_OK;

    for (size_t i = 1; rc == NXL_OK && i < answer_count(keys); i++) {
        struct slice key, lock;
        key.data = answer_item(keys, i, &key.len);
        if (!key.data)
            continue;
        if (form == SEVERAL)
            rc = inspect_several(lister, server, key);
        else if ((form != LOCKS || lister->all) &&
                 is_record(lister, key, &lock))
            rc = inspect_record(lister, server, key, lock);
        else if (form == LOCKS)
            rc = inspect_key(lister, server, key);
    }
    return rc;
}

/* The pattern of the keys of that form. NULL: no memory; else the caller frees
 * it. */
static char *make_pattern(const struct lister *lister, enum form form)
{
    static const char *const around[FORMS][2] = {
        [LOCKS] = {"", ""},
        [SEVERAL] = {"", ""},
        [RECORDS] = {"{", "}:once"},
        [RECORDS_TAGGED] = {"", "::once"},
    };
    char *prefix = malloc(2 * strlen(lister->prefix) + 1), *pattern = NULL;
    char *at = prefix;

    for (const char *from = lister->prefix; prefix && *from != '\0'; from++) {
        if (strchr("*?[]\\", *from))
            *at++ = '\\';
        *at++ = *from;
    }
    if (prefix)
        *at = '\0';
    if (!prefix || asprintf(&pattern, "%s%s%s%s", around[form][0], prefix,
                       lister->glob, around[form][1]) < 0)
        pattern = NULL;
    free(prefix);
    return pattern;
}

/* The cursor with which the scan goes on; NULL: there is none. No server gives
 * the same one twice in a row, which would have no end. */
static const char *next_cursor(const struct answer *keys, const char *before)
{
    const char *cursor = answer_item(keys, 0, NULL);
    size_t length = cursor ? strlen(cursor) : 0;

    if (length == 0 || length >= CURSOR_ROOM ||
        cursor[strspn(cursor, "0123456789")] != '\0')
        return NULL;
    bool again = strcmp(cursor, before) == 0 && strcmp(cursor, "0") != 0;
    return again ? NULL : cursor;
}

/* The next step of the scan. */
struct step {
    const char *pattern;
    char cursor[CURSOR_ROOM];
    unsigned count;
    const char *type; /* of the keys, for TYPE, which 6.0 and later know */
};

static int take_step(struct lister *lister, size_t server, struct step *step,
    struct answer **keys)
{
    char count[12];
    const char *words[] = {"SCAN", step->cursor, "MATCH", step->pattern,
        "COUNT", count, "TYPE", step->type};

    for (;;) {
        snprintf(count, sizeof(count), "%u", step->count);
        int rc = client_ask(lister->session.client, server,
            lister->untyped ? 6 : 8, words, NULL, keys);
        if (rc != NXL_E_UNSUPPORTED)
            return rc;
        if (!lister->untyped)
            lister->untyped = true;
        else if (step->count > 1) /* long names can make an answer too big */
            step->count = (step->count + 9) / 10;
        else
            return rc;
    }
}

static int scan_form(struct lister *lister, size_t server, enum form form)
{
    char *pattern = make_pattern(lister, form);
    struct step step = {.pattern = pattern,
        .cursor = "0",
        .count = COUNT_FIRST,
        .type = form == SEVERAL ? "zset" : "string"};
    int rc = pattern ? NXL_OK : NXL_E_NOMEM;

    while (rc == NXL_OK) {
        struct answer *keys;
        rc = take_step(lister, server, &step, &keys);
        if (rc != NXL_OK)
            break;
        const char *cursor = next_cursor(keys, step.cursor);
        rc = cursor ? inspect_keys(lister, server, form, keys)
                    : refuse_answer(lister, "SCAN");
        snprintf(step.cursor, sizeof(step.cursor), "%s", cursor ? cursor : "0");
        answer_free(keys);
        if (strcmp(step.cursor, "0") == 0)
            break;
    }
    free(pattern);
    return rc;
}

static int scan_server(struct lister *lister, size_t server)
{
    int rc = NXL_OK;

    lister->untyped = false;
    for (enum form form = LOCKS; rc == NXL_OK && form < FORMS; form++) {
        /* The first pattern has matched them. */
        if ((form == SEVERAL && lister->untyped) ||
            (form > SEVERAL && lister->all))
            continue;
        rc = scan_form(lister, server, form);
    }
    return rc;
}

/* Warns if the server may not have all locks. In JSON the warning is an object
 * before the locks, so that an empty list is not mistaken for "nothing is
 * held". */
static void warn_about(const struct lister *lister, size_t server)
{
    char words[PARTIAL_WORDS];
    struct json json;

    if (!partial_words(lister->session.client, server, true, words))
        return;
    say("warning: %s", words);
    if (!lister->session.args->json)
        return;
    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_text(&json, "warning", words, strlen(words));
    json_end(&json);
}

static void report_left_out(const struct lister *lister, int rc)
{
    const char *what = lister->servers > 1 ? "left out" : "cannot list";

    if (lister->odd)
        say("%s: the answer to %s is not that of a Redis server", what,
            lister->odd);
    else
        say("%s: %s%s", what,
            rc == NXL_E_NOMEM ? "out of memory"
                              : nxl_client_errmsg(lister->session.client),
            rc == NXL_E_UNSUPPORTED ? "; list needs Redis 2.8 or later" : "");
}

void scan_servers(struct lister *lister)
{
    nxl_client *client = lister->session.client;

    lister->servers = nxl_client_servers(client);
    lister->prefix = nxl_client_prefix(client);
    lister->all = lister->prefix[0] == '\0' && strcmp(lister->glob, "*") == 0;
    for (size_t i = 0; i < lister->servers; i++) {
        lister->odd = NULL;
        int rc = scan_server(lister, i);
        if (rc == NXL_OK) {
            lister->scanned++;
            warn_about(lister, i);
            continue;
        }
        report_left_out(lister, rc);
        if (rc == NXL_E_UNREACHABLE)
            connect_advise(lister->session.args, client, rc);
        if (lister->code == 0)
            lister->code = exit_code_for(rc, EXIT_BUSY);
    }
    if (lister->no_members)
        say("locks that several may hold are left out: the user may not read "
            "their members (+zrange); see docs/acl.md");
    if (lister->no_right)
        say("records of 'nxlock once' are left out: the user may not read "
            "them; see docs/acl.md");
    if (lister->servers > 1 && lister->scanned <= lister->servers / 2)
        say("the list is incomplete: %zu of %zu servers answered",
            lister->scanned, lister->servers);
}
