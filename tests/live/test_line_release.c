/* SPDX-License-Identifier: MIT */
/*
 * Every way to release a lock, with every kind of line behind it and whatever
 * the user may not do: the reply of the script, who has the lock then, who was
 * told, and what is left of line and mark. What has to come of it follows from
 * the rules that struct after is filled by; they know no order of commands.
 */
#include "live/line_rig.h"

#define HOLDER "H"

/* A lock that somebody is behind, by what the release says. */
static const char *const hows[] = {
    "", "+", "-", "?20000", HOLDER " " CLIENT " 20000 320"};

/* The line from its front: l lives, x is dead, d lives but cannot be told, m is
 * not told, and v is of a later version. "t": a key of another type. */
static const char *const lines[] = {"", "l", "ll", "m", "xl", "xxxl", "dl",
    "ddxdl", "d", "xd", "x", "t", "v", "vl", "dxv", "lv"};

enum trouble {
    NONE,
    NO_MARK,     /* it is not there, though somebody may be in line */
    FULL,        /* the server's memory */
    DENIED_MARK, /* from here on a right is missing */
    DENIED_LINE,
    DENIED_GAP,
    DENIED_TIME,
    DENIED_ZRANGE,
    DENIED_ZREM,
    DENIED_SET,
    DENIED_PUBLISH,
    DENIED_NUMSUB,
    DENIED_DEL,
    DENIED_EXISTS,
    DENIED_PTTL,
    TROUBLES
};
#define ALL "~* &nxl:* +@all"
static const char *const rights[TROUBLES] = {
    [DENIED_MARK] = "~k ~{k}:nxl-l &nxl:* +@all",
    [DENIED_LINE] = "~k ~{k}:nxl-w &nxl:* +@all",
    [DENIED_GAP] = "~k ~{k}:nxl-l ~{k}:nxl-w &nxl:* +@all",
    [DENIED_TIME] = ALL " -time",
    [DENIED_ZRANGE] = ALL " -zrange",
    [DENIED_ZREM] = ALL " -zrem",
    [DENIED_SET] = ALL " -set",
    [DENIED_PUBLISH] = ALL " -publish",
    [DENIED_NUMSUB] = ALL " -pubsub",
    [DENIED_DEL] = ALL " -del",
    [DENIED_EXISTS] = ALL " -exists",
    [DENIED_PTTL] = ALL " -pttl",
};

#define GAP_EVERY "7400" /* ms, after the end of a gap */
#define REFUSED (-1)     /* an error: the lock stays */

struct after {
    long long reply;
    char holder[16];  /* "": the lock is free */
    char message[16]; /* "": none */
    long long left;   /* how many are in line */
    bool mark, gap;
    bool paced;      /* the next gap is not due */
    int64_t seen_ms; /* after so long it was seen whether there is a gap */
};

static bool is(enum trouble t, enum trouble one, enum trouble other)
{
    return t == one || t == other;
}

/* Looks along the line. gap: one is due. keeps: somebody has a place who was
 * not granted the lock, and the mark says so. */
static long long look(
    const char *line, bool gap, enum trouble t, struct after *a, bool *keeps)
{
    /* A server that is full refuses new keys until a script has written. */
    bool wrote = *a->holder == '\0';
    *keeps = false;
    if (is(t, DENIED_TIME, DENIED_ZRANGE) || t == DENIED_LINE || *line == 't')
        return 4;
    for (unsigned i = 0; line[i]; i++) {
        bool told = t != DENIED_PUBLISH && (line[i] == 'l' || line[i] == 'v');
        if (line[i] == 'd' && t != DENIED_NUMSUB) {
            *keeps = true;
            continue;
        }
        bool opens = line[i] != 'x' && gap && !is(t, DENIED_SET, DENIED_GAP) &&
                     (t != FULL || wrote);
        if (opens || line[i] == 'v') {
            if (told)
                snprintf(a->message, sizeof(a->message), "?%u", i);
            a->gap = opens;
            a->paced |= opens;
            *keeps = !opens;
            return opens ? 5 : 1;
        }
        if (t == DENIED_ZREM)
            return 4;
        a->left--;
        wrote = true;
        if (line[i] == 'x')
            continue;
        if (t == DENIED_SET)
            return 4;
        snprintf(a->holder, sizeof(a->holder), "%u", i);
        if (told)
            snprintf(a->message, sizeof(a->message), "%u", i);
        return 2;
    }
    return 1;
}

static struct after expected(
    const char *how, const char *line, enum trouble t, bool paced)
{
    bool keeps, stands = *how == '+', marked = t != NO_MARK;
    struct after a = {.reply = REFUSED,
        .paced = paced,
        .holder = HOLDER,
        .left = *line == 't' ? -1 : (long long)strlen(line),
        .mark = marked};
    struct after before = a;
    if (*how == '-') {
        if (t != DENIED_DEL) {
            a.reply = 1;
            *a.holder = '\0';
        }
        return a;
    }
    if (!stands) {
        if (t == DENIED_DEL)
            return before;
        *a.holder = '\0';
        a.reply = t == DENIED_MARK ? 4 : 1;
        if (is(t, DENIED_MARK, NO_MARK))
            return a;
        a.reply = look(line, *how == '?', t, &a, &keeps);
        bool left = a.reply == 2 && (a.left > 0 || t == DENIED_EXISTS);
        a.mark = (keeps || left) && a.reply != 4 && t != DENIED_SET;
        a.paced |= a.reply == 2 && t != DENIED_GAP;
        return a;
    }
    bool asks = !is(t, DENIED_PTTL, DENIED_GAP) && t != DENIED_MARK;
    a.reply = look(line, !paced && asks, t, &a, &keeps);
    if (a.reply == 2)
        return a;
    if (t == DENIED_DEL) {
        a.reply = REFUSED;
        return a;
    }
    *a.holder = '\0';
    if (t == DENIED_MARK)
        a.reply = 4;
    else
        a.mark = keeps && a.reply == 1 && t != DENIED_SET;
    return a;
}

/* ------------------------------------------------------------------ the real
 */

static void prepare(const char *line, enum trouble t, bool paced)
{
    redis_run(&server, "DEL", "k", "{k}:nxl-l", "{k}:nxl-w", "{k}:nxl-g", NULL);
    held_by(HOLDER, 10000);
    redis_run(&server, "SET", "{k}:nxl-w", "1", "PX", "15000", NULL);
    if (paced)
        redis_run(&server, "SET", "{k}:nxl-g", "1", "PX", GAP_EVERY, NULL);
    if (*line == 't')
        redis_run(&server, "SET", "{k}:nxl-l", "x", NULL);
    else
        for (unsigned i = 0; line[i]; i++) {
            add_member(i + 1, line[i] == 'x' ? WINDOW + 40 : 0, "%u %s %d %d%s",
                i,
                line[i] == 'd'   ? "nobody"
                : line[i] == 'm' ? "-"
                                 : CLIENT,
                LEASE_MS, WINDOW, line[i] == 'v' ? " more" : "");
        }
    if (t == NO_MARK)
        redis_run(&server, "DEL", "{k}:nxl-w", NULL);
}

static void set_memory(bool full)
{
    redis_run(&server, "CONFIG", "SET", "maxmemory", full ? "1" : "0", NULL);
}

static struct after release_as(struct peer *user, const char *how,
    const char *line, enum trouble t, bool paced)
{
    struct after a = {.reply = REFUSED, .left = -1};
    struct slice text = scripts[SCRIPT_RELEASE].body;
    prepare(line, t, paced);
    if (t == FULL)
        set_memory(true);
    int64_t began = test_now_ms();
    redisReply *r = redisCommand(
        user->c, "EVAL %b 1 k " HOLDER " %s", text.data, text.len, how);
    if (t == FULL)
        set_memory(false);
    a.gap = redis_run(&server, "PTTL", "{k}:nxl-g", NULL) > atoi(GAP_EVERY);
    a.seen_ms = test_now_ms() - began;
    assert_non_null(r);
    if (r->type == REDIS_REPLY_INTEGER)
        a.reply = r->integer;
    freeReplyObject(r);
    if (!redis_get(&server, "k", a.holder, sizeof(a.holder)))
        *a.holder = '\0';
    if (*line != 't')
        a.left = in_line();
    a.mark = redis_exists(&server, "{k}:nxl-w");
    a.paced = redis_exists(&server, "{k}:nxl-g");
    redis_run(&server, "PUBLISH", CHANNEL, "end", NULL);
    for (bool over = false; !over;) {
        assert_int_equal(redisGetReply(ears, (void **)&r), REDIS_OK);
        over = strcmp(r->element[2]->str, "end") == 0;
        if (!over)
            snprintf(a.message, sizeof(a.message), "%s%s",
                a.message[0] ? "!" : "", r->element[2]->str);
        freeReplyObject(r);
    }
    return a;
}

static bool same(const struct after *a, const struct after *b)
{
    return a->reply == b->reply && strcmp(a->holder, b->holder) == 0 &&
           strcmp(a->message, b->message) == 0 && a->left == b->left &&
           a->mark == b->mark && a->gap == b->gap && a->paced == b->paced;
}

static void show(const char *what, const struct after *a)
{
    print_error("  %s: replies %lld, '%s' has it, '%s' was published, %lld in "
                "line, mark %d, gap %d, paced %d\n",
        what, a->reply, a->holder, a->message, a->left, a->mark, a->gap,
        a->paced);
}

static unsigned releases_that_differ(
    struct peer *user, const char *how, enum trouble t, bool paced)
{
    unsigned differ = 0;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        struct after is_so;
        do { /* a gap lasts 100 ms */
            is_so = release_as(user, how, lines[i], t, paced);
        } while (is_so.seen_ms >= 80);
        struct after wanted = expected(how, lines[i], t, paced);
        if (same(&is_so, &wanted))
            continue;
        differ++;
        print_error("'%s', line '%s', trouble %d:\n", how, lines[i], (int)t);
        show("is", &is_so);
        show("should be", &wanted);
    }
    return differ;
}

static unsigned releases_in_trouble(struct peer *user, enum trouble t)
{
    unsigned differ = 0;
    for (size_t h = 0; h < sizeof(hows) / sizeof(*hows); h++)
        for (int paced = 0; paced <= 1; paced++)
            differ += releases_that_differ(user, hows[h], t, paced);
    return differ;
}

static void every_release(void **state)
{
    unsigned differ = 0;
    for (int t = NONE; t < DENIED_MARK; t++)
        differ += releases_in_trouble(&peer, (enum trouble)t);
    assert_int_equal(differ, 0);
}

/* A server notes what it refuses, whatever the script does about it. Without
 * the right to the gap's key a hand-over is noted for that key, and for no
 * other reason: docs/acl.md says so. */
static void assert_gap_is_noted(void)
{
    redisReply *log = redis_command(&server, "ACL", "LOG", "1000", NULL);
    assert_int_equal(log->type, REDIS_REPLY_ARRAY);
    assert_true(log->elements > 0);
    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *entry = log->element[i];
        for (size_t j = 0; j + 1 < entry->elements; j += 2)
            if (strcmp(entry->element[j]->str, "object") == 0)
                assert_string_equal(entry->element[j + 1]->str, "{k}:nxl-g");
    }
    freeReplyObject(log);
}

static void every_release_without_a_right(void **state)
{
    unsigned differ = 0;
    redis_needs_acl(&server);
    for (int t = DENIED_MARK; t < TROUBLES; t++) {
        struct peer user;
        peer_as(&user, rights[t]);
        redis_run(&server, "ACL", "LOG", "RESET", NULL);
        differ += releases_in_trouble(&user, (enum trouble)t);
        redisFree(user.c);
        if (t == DENIED_GAP)
            assert_gap_is_noted();
    }
    assert_int_equal(differ, 0);
}

/* ------------------------------------------------------- from one to the next
 */

static enum outcome_kind release_followed(const char *token)
{
    struct verb verb = {.kind = VERB_RELEASE,
        .key = slice_of(of_lock),
        .token = slice_of(token),
        .has_waiters_behind = true};
    return line_send(&peer, &verb).kind;
}

static const char *pace_key(void)
{
    return strchr(of_lock, '{') ? "a{b}c::nxl-g" : "{k}:nxl-g";
}

static void put_gap_off(void)
{
    redis_run(&server, "SET", pace_key(), "1", "PX", GAP_EVERY, NULL);
}

/* The whole line is served, by those who say so and those who do not in turns,
 * and the last one leaves nothing. */
static void the_last_one_leaves_nothing(void **state)
{
    static const char *const names[] = {"k", "a{b}c"};
    for (unsigned turns = 0; turns < 16; turns++) {
        of_lock = names[turns % 2];
        redisReply *r =
            redisCommand(ears, "SUBSCRIBE nxl:" CLIENT ":%s", of_lock);
        freeReplyObject(r);
        held_by("H", 10000);
        put_gap_off();
        join("A");
        join("B");
        join("C");
        for (unsigned i = 0; i < 4; i++) {
            char token[] = {"HABC"[i], '\0'};
            assert_holder(token);
            if (turns >> i & 1)
                assert_int_equal(release_followed(token), OUTCOME_MINE);
            else
                assert_kind(release(token), OUTCOME_MINE);
            if (i < 3)
                assert_message((char[]){"ABC"[i], '\0'});
        }
        assert_holder(NULL);
        redis_run(&server, "DEL", pace_key(), NULL);
        assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    }
    assert_no_message();
}

/* If the server's clock is set back, the gap's key stays for that much longer.
 * The next gap comes nevertheless, at the next hand-over. */
static void clock_set_back_puts_no_gap_off(void **state)
{
    held_by("H", 10000);
    join("A");
    join("B");
    redis_run(&server, "SET", "{k}:nxl-g", "1", "PX", "60000", NULL);
    assert_int_equal(release_followed("H"), OUTCOME_MINE);
    assert_holder(NULL);
    assert_message("?A");
    long long left = redis_run(&server, "PTTL", "{k}:nxl-g", NULL);
    assert_in_range(left, 1, 100 + atoi(GAP_EVERY));
    assert_no_message();
}

/* What a hand-over costs, once a line stands: nothing more than this. */
static void the_commands_of_a_hand_over(void **state)
{
    static const char *const once[] = {"getrange", "time", "zrange",
        "pubsub|numsub", "pttl", "zrem", "set", "publish"};
    static const char *const never[] = {"del", "exists", "pexpire", "psetex"};
    held_by("H", 10000);
    put_gap_off();
    join("A");
    join("B");
    redis_run(&server, "CONFIG", "RESETSTAT", NULL);
    assert_int_equal(release_followed("H"), OUTCOME_MINE);
    for (size_t i = 0; i < sizeof(once) / sizeof(*once); i++)
        assert_int_equal(redis_calls(&server, once[i]), 1);
    for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
        assert_int_equal(redis_calls(&server, never[i]), 0);
    assert_holder("A");
}

#define line_test(function)                                                    \
    cmocka_unit_test_setup_teardown(function, line_setup, line_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        line_test(every_release),
        line_test(every_release_without_a_right),
        line_test(the_last_one_leaves_nothing),
        line_test(clock_set_back_puts_no_gap_off),
        line_test(the_commands_of_a_hand_over),
    };
    return cmocka_run_group_tests_name(
        "line_release", tests, live_unix, live_stop);
}
