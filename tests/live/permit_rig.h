/* SPDX-License-Identifier: MIT */
/*
 * Scenes of the scripts of the line, and of a lock that several hold, written
 * as steps:
 *
 *     "take a+1/2 yes; join x no; release a+1/2 yes; told x"
 *
 * A letter is one token, with '+' and a share one that shares the lock "k". It
 * waits by a client that listens; a capital letter by one that does not, and so
 * cannot be told, and M by none. The verbs, then what they end with:
 *
 *     take, try           an acquire whose caller waits if it is busy, or not
 *     set                 an acquire of an exclusive lock
 *     hold_back           the same, which holds others back for 700 ms if
 *                         several hold the lock; then it is busy with several
 *     join, stay, leave   in line
 *     release, extend, keep, see    keep: CAP_TTL, see: INSPECT of that token
 *     pass                release of a token to which it was handed over
 *     make_gap            release with a gap of so many ms, if there is a line
 *
 * A number behind the token is the TTL; LEASE_MS without. yes: granted, or it
 * holds the lock; no: not; first, behind: it waits, as the first or not; gone:
 * it is not there; wrong: the key is no lock; fault: another error, which says
 * that nothing was changed. Others:
 *
 *     as RIGHTS   the verbs from now on are sent by a user who has these rights
 *              and may run scripts; as all: by the default user
 *
 *     fence a+1/0 RESULT   RAISE, which draws the fencing token: more, that is
 *              greater than all before and a time; same, as the last one; no,
 *              wrong
 *     told a   the next message says that a has the lock; told ?a, !a
 *     quiet    there was no message
 *     hold N   so many hold it       line N    so many wait
 *     members N of the sorted set, with its head
 *     pttl N   the key expires by then
 *     stands N whenever a verb comes to the server from now on, the holders
 *              have had the lock for so many ms
 *     gap N    the last verb has begun a gap of N ms, which now lasts for all
 *              that is to happen in it; gap 0: it is over
 *     sleep N  ms                    empty     no key is left
 *     cmd ...  a command, with _ for an empty argument
 *     holder a, holder none   what the key holds, of an exclusive lock
 *     left N M     the last verb said that the holder has N to M ms left
 *     lasts KEY N M   by PTTL          value KEY TEXT, _: empty
 *     put a N T ...   into the line, with ticket N, last seen T ticks ago; more
 *                  words come behind it
 *
 * After each step the key is checked: see permit_look().
 */
#ifndef NXLOCK_TESTS_LIVE_PERMIT_RIG_H
#define NXLOCK_TESTS_LIVE_PERMIT_RIG_H

#include "live/line_rig.h"
#include "model/token.h"

#define PERMIT_FAR INT64_C(17592186044416)

/* "a+1/2" -> the token of a. */
static inline const char *permit_token(const char *name)
{
    static char texts[4][TOKEN_MAX + 1];
    static unsigned next;
    char *text = texts[next++ % 4];
    snprintf(text, sizeof(texts[0]), "%02x000000-0000-4000-8000-000000000000%s",
        (unsigned char)name[0], name + 1);
    return text;
}

/* What is wrong with the key; empty: nothing. Only the first is kept. */
static char permit_wrong[160];
__attribute__((format(printf, 1, 2))) static inline void permit_is_wrong(
    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!*permit_wrong)
        vsnprintf(permit_wrong, sizeof(permit_wrong), format, arguments);
    va_end(arguments);
}

struct permit_state {
    bool exclusive, shared;
    unsigned holders;   /* whose lease is not over */
    int64_t used, most; /* INT64_MAX: no limit */
};

static inline int64_t permit_now_ms(void)
{
    redisReply *t = redis_command(&server, "TIME", NULL);
    int64_t now = strtoll(t->element[0]->str, NULL, 10) * 1000 +
                  strtoll(t->element[1]->str, NULL, 10) / 1000;
    freeReplyObject(t);
    return now;
}

static inline void permit_add_holder(
    struct permit_state *s, const char *token, const char *head)
{
    struct share share = token_share(slice_of(token));
    char own[64];
    snprintf(own, sizeof(own), "nxl=%u/%u", share.weight, share.permits);
    size_t kind = strcspn(head, "#");
    if ((kind != strlen(own) || strncmp(head, own, kind) != 0) &&
        (kind != strlen("nxl=*") || strncmp(head, "nxl=*", kind) != 0))
        permit_is_wrong("the head is %s, but %s is a holder", head, token);
    s->holders++;
    s->used += share.weight ? share.weight : 1;
    int64_t allows = share.permits ? share.permits : INT64_MAX;
    allows = share.weight ? allows : 1;
    s->most = allows < s->most ? allows : s->most;
}

/* What the key holds. Of several holders: there is one head, which knows of
 * them all; no more permits are held than any of them allows; and the key
 * expires with the last of them. shifted: how far their clock is ahead of the
 * server's. */
static inline struct permit_state permit_look(int64_t shifted)
{
    struct permit_state s = {.most = INT64_MAX};
    redisReply *type = redis_command(&server, "TYPE", "k", NULL);
    bool is_set = strcmp(type->str, "zset") == 0;
    s.exclusive = strcmp(type->str, "string") == 0;
    freeReplyObject(type);
    if (!is_set)
        return s;
    redisReply *all =
        redis_command(&server, "ZRANGE", "k", "0", "-1", "WITHSCORES", NULL);
    /* While these are asked the server goes on. */
    int64_t now = permit_now_ms() + shifted, ends = 0;
    long long left = redis_pttl(&server, "k");
    int64_t took = permit_now_ms() + shifted - now;
    size_t count = all->elements / 2;
    const char *head = count > 0 ? all->element[2 * count - 2]->str : "";
    if (strncmp(head, "nxl=", 4) != 0 ||
        strtoll(all->element[2 * count - 1]->str, NULL, 10) < PERMIT_FAR) {
        freeReplyObject(all);
        return s; /* of another program */
    }
    s.shared = true;
    for (size_t i = 0; i + 1 < count; i++) {
        const char *token = all->element[2 * i]->str;
        int64_t until = strtoll(all->element[2 * i + 1]->str, NULL, 10);
        if (strncmp(token, "nxl=", 4) == 0)
            permit_is_wrong("there are two heads");
        ends = until;
        if (until > now)
            permit_add_holder(&s, token, head);
    }
    if (s.used > s.most)
        permit_is_wrong("%lld permits are held, of %lld", (long long)s.used,
            (long long)s.most);
    /* A server that is not run within a script may be off by that time. */
    if (left > 0 && llabs(ends - now - left) > 250 + took)
        permit_is_wrong("the key has %lld ms left, its last lease %lld", left,
            (long long)(ends - now));
    freeReplyObject(all);
    return s;
}

static inline struct permit_state permit_check(int64_t shifted)
{
    *permit_wrong = '\0';
    struct permit_state s = permit_look(shifted);
    assert_string_equal(permit_wrong, "");
    return s;
}

static int64_t permit_stands_ms; /* 0: as it is */
static int64_t permit_sent_ms;   /* when the last verb was sent */

/* Sends the verb; the server comes to it at once after it has set for how long
 * the holders have had the lock. */
static inline struct outcome permit_send(const struct verb *verb)
{
    static const char set[] =
        "if redis.replicate_commands then redis.replicate_commands() end "
        "local head = redis.pcall('ZRANGE', KEYS[1], -1, -1) "
        "local t = redis.call('TIME') "
        "return head[1] and redis.call('ZADD', KEYS[1], string.format('%.0f', "
        "t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1]), head[1])";
    if (permit_stands_ms > 0) {
        redisAppendCommand(peer.c, "EVAL %s 1 k %lld", set,
            (long long)(PERMIT_FAR - permit_stands_ms));
        peer.ahead++;
    }
    permit_sent_ms = test_now_ms();
    return line_send(&peer, verb);
}

/* The client by which a token waits. */
static inline const char *permit_client(const char *name)
{
    return *name == 'M'                   ? "-"
           : *name >= 'A' && *name <= 'Z' ? "nobody"
                                          : CLIENT;
}

static struct outcome permit_last; /* of the last verb */

static inline struct outcome permit_verb(
    const char *word, const char *name, uint32_t ttl_ms)
{
    static const struct {
        const char *word;
        enum verb_kind kind;
        bool in_line, may_wait;
    } verbs[] = {
        {"take", VERB_ACQUIRE, false, true},
        {"try", VERB_ACQUIRE, false, false},
        {"set", VERB_ACQUIRE, false, true},
        {"hold_back", VERB_ACQUIRE, false, true},
        {"join", VERB_JOIN, true, false},
        {"stay", VERB_STAY, true, false},
        {"leave", VERB_RELEASE, true, false},
        {"release", VERB_RELEASE, false, false},
        {"pass", VERB_RELEASE, false, false},
        {"make_gap", VERB_RELEASE, false, false},
        {"extend", VERB_EXTEND, false, false},
        {"keep", VERB_CAP_TTL, false, false},
        {"see", VERB_INSPECT, false, false},
    };
    bool holds_back = strcmp(word, "hold_back") == 0;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].word, word) != 0)
            continue;
        struct verb verb = {.kind = verbs[i].kind,
            .key = slice_of("k"),
            .token = slice_of(permit_token(name)),
            .client = slice_of(verbs[i].in_line ? permit_client(name) : ""),
            .gap_ms = strcmp(word, "make_gap") == 0 ? ttl_ms : 0,
            .window = WINDOW,
            .may_wait = verbs[i].may_wait,
            .has_waiters_behind = strcmp(word, "pass") == 0,
            .want_left = holds_back,
            .asks_kind = holds_back,
            .ttl_ms = ttl_ms};
        if (holds_back)
            verb.hold_back_ms = 700;
        permit_last = permit_send(&verb);
        return permit_last;
    }
    fail_msg("no verb: %s", word);
    return (struct outcome){0};
}

static uint64_t permit_last_fence; /* of the scene */

static inline const char *permit_fence(const char *name)
{
    uint64_t last = permit_last_fence;
    struct verb verb = {.kind = VERB_RAISE,
        .key = slice_of("k"),
        .counter = slice_of("{k}:f"),
        .token = slice_of(permit_token(name))};
    struct outcome o = line_send(&peer, &verb);
    if (o.kind != OUTCOME_MINE)
        return o.kind == OUTCOME_NOT_MINE                     ? "no"
               : o.fault == FAULT_WRONG_TYPE && o.unsure == 0 ? "wrong"
                                                              : "fault";
    const uint64_t least = UINT64_C(1500000000000000); /* by any clock, us */
    const char *result = o.fence == last                     ? "same"
                         : o.fence > last && o.fence > least ? "more"
                                                             : "less";
    permit_last_fence = o.fence;
    return result;
}

static inline bool permit_ends(const struct outcome *o, const char *expected)
{
    static const char *const words[] = {[OUTCOME_GRANTED] = "yes",
        [OUTCOME_MINE] = "yes",
        [OUTCOME_BUSY] = "no",
        [OUTCOME_NOT_MINE] = "no",
        [OUTCOME_FREE] = "free"};
    if (strcmp(expected, "first") == 0)
        return o->kind == OUTCOME_BUSY && o->ahead == 0;
    if (strcmp(expected, "behind") == 0)
        return o->kind == OUTCOME_BUSY && o->ahead > 0;
    if (strcmp(expected, "gone") == 0)
        return o->kind == OUTCOME_NOT_MINE;
    if (o->kind == OUTCOME_BUSY && o->several_holders)
        return strcmp(expected, "several") == 0;
    if (o->kind == OUTCOME_FAULT && o->fault == FAULT_WRONG_TYPE)
        return strcmp(expected, "wrong") == 0;
    if (o->kind == OUTCOME_FAULT)
        return strcmp(expected, "fault") == 0 && !o->unsure;
    return (size_t)o->kind < sizeof(words) / sizeof(words[0]) &&
           words[o->kind] && strcmp(expected, words[o->kind]) == 0;
}

/* False: the message is another one. */
static inline bool permit_told(const char *name)
{
    char expected[TOKEN_MAX + 2];
    redisReply *r = NULL;
    bool marked = *name == '?' || *name == '!';
    snprintf(expected, sizeof(expected), "%.*s%s", marked, name,
        strcmp(name, "end") == 0 ? name : permit_token(name + marked));
    if (redisGetReply(ears, (void **)&r) != REDIS_OK) {
        print_message("there is no message\n");
        return false;
    }
    assert_int_equal(r->elements, 3);
    bool same = strcmp(r->element[2]->str, expected) == 0;
    if (!same)
        print_message("told %s, not %s\n", r->element[2]->str, expected);
    freeReplyObject(r);
    return same;
}

static inline void permit_command(char *line)
{
    const char *argv[16];
    int argc = 0;
    char *save;
    for (char *w = strtok_r(line, " ", &save); w && argc < 16;
         w = strtok_r(NULL, " ", &save))
        argv[argc++] = strcmp(w, "_") == 0 ? "" : w;
    redisReply *r = redisCommandArgv(server.context, argc, argv, NULL);
    assert_true(r && r->type != REDIS_REPLY_ERROR);
    freeReplyObject(r);
}

/* The key of a gap lasts GAP_EVERY longer than it. False: with the last verb no
 * gap of so many ms began. It is then made as long as a gap can be, for what is
 * to happen in it; 0: it is over. */
static inline bool permit_gap(int64_t ms, char *got, size_t size)
{
    enum { GAP_EVERY = 7400, GAP_MAX = 1000 };
    char next[24];
    int64_t left = redis_pttl(&server, "{k}:nxl-g");
    int64_t passed = test_now_ms() - permit_sent_ms + 2;
    snprintf(got, size, "its key lasts %lld ms", (long long)left);
    snprintf(next, sizeof(next), "%d", GAP_EVERY + (ms > 0 ? GAP_MAX : 0));
    redis_run(&server, "PEXPIRE", "{k}:nxl-g", next, NULL);
    return ms == 0 ? left > 0
                   : left <= GAP_EVERY + ms && left + passed >= GAP_EVERY + ms;
}

/* False: the step did not end so; *got says how. */
static inline bool permit_number(
    const char *word, long long number, char *got, size_t size)
{
    long long is = -1;
    if (strcmp(word, "hold") == 0)
        is = permit_look(0).holders;
    else if (strcmp(word, "line") == 0)
        is = in_line();
    else if (strcmp(word, "members") == 0)
        is = redis_run(&server, "ZCARD", "k", NULL);
    else if (strcmp(word, "pttl") == 0)
        is = redis_pttl(&server, "k");
    else
        fail_msg("no step: %s", word);
    snprintf(got, size, "%lld", is);
    return strcmp(word, "pttl") == 0
               ? is > 0 && is <= number && is > number - 1000
               : is == number;
}

/* "holder a", "left 1 900", "lasts k 1 900", "value k text"; *right: it is so.
 * False: it is another step. */
static inline bool permit_is(
    const char *step, bool *right, char *got, size_t size)
{
    char word[16] = "", key[64] = "k", text[128] = "";
    long long least, most, is;
    sscanf(step, "%15s", word);
    bool left = sscanf(step, "left %lld %lld", &least, &most) == 2;
    if (left || sscanf(step, "lasts %63s %lld %lld", key, &least, &most) == 3) {
        is = left ? permit_last.left_ms : redis_pttl(&server, key);
        snprintf(got, size, "%lld", is);
        *right = is >= least && is <= most;
        return true;
    }
    bool holder = sscanf(step, "holder %127s", text) == 1;
    if (!holder && sscanf(step, "value %63s %127s", key, text) != 2)
        return false;
    bool found = redis_get(&server, key, got, size);
    if (strcmp(text, "none") == 0)
        *right = !found;
    else if (strcmp(text, "_") == 0)
        *right = found && *got == '\0';
    else
        *right = found && !strcmp(got, holder ? permit_token(text) : text);
    return true;
}

/* "put a 1 0 more": a waiter with ticket 1 that was just seen. */
static inline void permit_put(const char *step)
{
    char name[64] = "", more[64] = "";
    unsigned ticket = 0;
    int ago = 0;
    if (sscanf(step, "put %63s %u %d%63[^;]", name, &ticket, &ago, more) < 3)
        fail_msg("put whom? %s", step);
    add_member(ticket, (unsigned)ago, "%s %s %d %d%s", permit_token(name),
        permit_client(name), LEASE_MS, WINDOW, more);
}

/* The default user's connection while another user sends the verbs. */
static struct peer permit_default;

static inline void permit_as(const char *rights)
{
    if (permit_default.c)
        redisFree(peer.c);
    else
        permit_default = peer;
    if (strcmp(rights, "all") != 0) {
        peer_as(&peer, rights);
        return;
    }
    peer = permit_default;
    permit_default.c = NULL;
}

static inline bool permit_step(char *step, char *got, size_t size)
{
    bool right = true;
    char word[16] = "", name[64] = "", result[16] = "";
    unsigned ttl = LEASE_MS;
    sscanf(step, "%15s %63s", word, name);
    if (permit_is(step, &right, got, size)) {
        return right;
    } else if (strcmp(word, "put") == 0) {
        permit_put(step);
    } else if (strcmp(word, "cmd") == 0) {
        permit_command(step + 4);
    } else if (strcmp(word, "as") == 0) {
        permit_as(step + 3);
    } else if (strcmp(word, "sleep") == 0) {
        usleep(1000 * (useconds_t)atoi(name));
    } else if (strcmp(word, "stands") == 0) {
        permit_stands_ms = atoll(name);
    } else if (strcmp(word, "gap") == 0) {
        return permit_gap(atoll(name), got, size);
    } else if (strcmp(word, "told") == 0) {
        snprintf(got, size, "another message");
        return permit_told(name);
    } else if (strcmp(word, "quiet") == 0) {
        redis_run(&server, "PUBLISH", CHANNEL, "end", NULL);
        snprintf(got, size, "a message");
        return permit_told("end");
    } else if (strcmp(word, "empty") == 0) {
        redisReply *r = redis_command(&server, "KEYS", "*", NULL);
        size_t count = r->elements;
        snprintf(got, size, "%s", count ? r->element[0]->str : "");
        freeReplyObject(r);
        return count == 0;
    } else if (*name >= '0' && *name <= '9') {
        return permit_number(word, atoll(name), got, size);
    } else {
        if (sscanf(step, "%*s %*s %u %15s", &ttl, result) != 2 &&
            sscanf(step, "%*s %*s %15s", result) != 1)
            fail_msg("no result: %s", step);
        if (strcmp(word, "fence") == 0) {
            snprintf(got, size, "%s", permit_fence(name));
            return strcmp(got, result) == 0;
        }
        struct outcome o = permit_verb(word, name, ttl);
        snprintf(got, size, "outcome %d, %u ahead, fault %d", (int)o.kind,
            (unsigned)o.ahead, (int)o.fault);
        return permit_ends(&o, result);
    }
    return true;
}

struct permit_row {
    const char *name, *steps;
};

/* NULL: all steps ended as written. Else the step that did not. */
static inline const char *permit_scene(const char *steps)
{
    static char text[2048], failed[256];
    char *save, got[160];
    bool right = true;
    *permit_wrong = '\0';
    permit_last_fence = 0;
    permit_stands_ms = 0;
    snprintf(text, sizeof(text), "%s", steps);
    for (char *step = strtok_r(text, ";", &save); step && right;
         step = strtok_r(NULL, ";", &save)) {
        char copy[256];
        step += strspn(step, " \n");
        snprintf(copy, sizeof(copy), "%s", step);
        *got = '\0';
        right = permit_step(copy, got, sizeof(got));
        permit_look(0);
        snprintf(failed, sizeof(failed), "'%s': %s", step,
            right ? permit_wrong : got);
        right &= !*permit_wrong;
    }
    if (permit_default.c)
        permit_as("all");
    return right ? NULL : failed;
}

/* Each row from an empty server on. */
static inline void permit_play(const struct permit_row *rows, size_t count)
{
    unsigned failures = 0;
    for (size_t i = 0; i < count; i++) {
        line_teardown(NULL);
        line_setup(NULL);
        redisSetTimeout(ears, (struct timeval){5, 0});
        const char *failed = permit_scene(rows[i].steps);
        if (failed)
            print_error("%s: %s\n", rows[i].name, failed);
        failures += failed != NULL;
    }
    assert_int_equal(failures, 0);
}

#endif
