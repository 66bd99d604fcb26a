/* SPDX-License-Identifier: MIT */
/*
 * The holders of the model server (holders.h) against the scripts on a real
 * one: after the same random steps at the same time of day both have given the
 * same answers, and have the same holders, head, line, mark and key. What
 * cannot be compared is a step during which a lease or a tick ended; those are
 * few, and counted.
 */
#include "sim/honest_rig.h"

#define STEPS (getenv("NXLOCK_FULL") ? 20000 : 2000)
#define TOKENS 10
#define DEAF (CHANNEL_NONE + 1) /* nobody listens there */
#define TICK_US (1000000 / WINDOW_TICKS)
#define SLACK_US 4000 /* a command and its roundings */
#define FAR INT64_C(17592186044416)

static const struct share shares[TOKENS] = {{0, 0}, {0, 0}, {1, 0}, {1, 0},
    {1, 2}, {1, 2}, {1, 4}, {2, 4}, {3, 4}, {1, 3}};

static const char *text_of(uint64_t token)
{
    static char text[64];
    struct share share = share_of(&world, token);
    int len = sprintf(text, "%036llu", (unsigned long long)token);
    if (share.weight)
        sprintf(text + len, "+%u/%u", share.weight, share.permits);
    return text;
}

static const char *channel_of(const struct message *m)
{
    return m->channel == DEAF ? "deaf" : "-";
}

/* --------------------------------------------------------------- the scripts
 */

/* SET NX PX; and if the key is taken, the script that asks by whom, as
 * wire/native.c does. Its reply is {PTTL, several}. */
static redisReply *set_alone(const struct message *m, const char *token)
{
    redisReply *r =
        redisCommand(context, "SET n %s NX PX %u", token, m->ttl_ms);
    if (!m->asks_kind || !r || r->type != REDIS_REPLY_NIL)
        return r;
    freeReplyObject(r);
    return redisCommand(context, "EVAL %s 2 n {n}:nxl-w %u",
        scripts[SCRIPT_HOLD_BACK].body.data, m->hold_back_ms);
}

static redisReply *eval(const struct message *m)
{
    const char *token = text_of(m->token);
    char member[120] = "";
    switch (m->kind) {
    case MESSAGE_ACQUIRE:
        return set_alone(m, token);
    case MESSAGE_TAKE:
        return redisCommand(context,
            "EVAL %s 4 n {n}:nxl-l {n}:nxl-w {n}:nxl-g %s %u %d",
            scripts[SCRIPT_TAKE].body.data, token, m->ttl_ms, m->may_wait);
    case MESSAGE_JOIN:
    case MESSAGE_STAY:
        return redisCommand(context,
            "EVAL %s 4 n {n}:nxl-l {n}:nxl-w {n}:nxl-g %s %u %s %u %d",
            scripts[SCRIPT_LINE_WAIT].body.data, token, m->ttl_ms,
            channel_of(m), m->window, m->kind == MESSAGE_JOIN);
    case MESSAGE_EXTEND:
        return redisCommand(context, "EVAL %s 1 n %s %u",
            scripts[SCRIPT_EXTEND].body.data, token, m->ttl_ms);
    case MESSAGE_CAP:
        return redisCommand(context, "EVAL %s 1 n %s %u",
            scripts[SCRIPT_CAP_TTL].body.data, token, m->ttl_ms);
    case MESSAGE_LOOK:
        return redisCommand(context, "EVAL %s 1 n %s",
            scripts[SCRIPT_INSPECT].body.data, token);
    default:
        if (m->channel)
            sprintf(member, "%s %s %u %u", token, channel_of(m), m->ttl_ms,
                m->window);
        else
            strcpy(member, m->plain ? "-" : m->followed ? "+" : "");
        if (!m->channel && m->gap_ms > 0)
            sprintf(member, "?%u", m->gap_ms);
        return redisCommand(context, "EVAL %s 1 n %s %s",
            scripts[SCRIPT_RELEASE].body.data, token, member);
    }
}

static struct outcome outcome_of(const struct message *m, const redisReply *r)
{
    struct outcome o = {.kind = OUTCOME_NOT_MINE, .left_ms = LEFT_UNKNOWN};
    if (!r || r->type == REDIS_REPLY_ERROR)
        fail_msg("%s", r ? r->str : context->errstr);
    switch (m->kind) {
    case MESSAGE_ACQUIRE:
        o.kind = r->type == REDIS_REPLY_STATUS ? OUTCOME_GRANTED : OUTCOME_BUSY;
        if (r->type == REDIS_REPLY_ARRAY && r->elements == 2) {
            o.left_ms = r->element[0]->integer;
            o.several_holders = r->element[1]->integer;
        }
        break;
    case MESSAGE_TAKE:
    case MESSAGE_JOIN:
    case MESSAGE_STAY:
        if (m->kind == MESSAGE_TAKE && r->type == REDIS_REPLY_INTEGER) {
            o.kind = OUTCOME_GRANTED;
        } else if (r->element[0]->integer == 0) {
            o.kind = OUTCOME_BUSY;
            o.left_ms = r->element[1]->integer;
            o.ahead = r->elements > 2 ? (unsigned)r->element[2]->integer : 0;
        } else if (r->element[0]->integer == 1) {
            o.kind = OUTCOME_GRANTED;
        }
        break;
    case MESSAGE_EXTEND:
        if (r->integer >= 0) {
            o.kind = OUTCOME_MINE;
            o.left_ms = r->integer;
        }
        break;
    case MESSAGE_LOOK:
        if (r->elements == 2 &&
            strcmp(r->element[0]->str, text_of(m->token)) == 0) {
            o.kind = OUTCOME_MINE;
            o.left_ms = r->element[1]->integer;
        }
        break;
    default:
        o.kind = r->integer ? OUTCOME_MINE : OUTCOME_NOT_MINE;
        break;
    }
    return o;
}

/* ------------------------------------------------------------- side by side */

static bool ends_soon(int64_t until_ms, int64_t now_us)
{
    int64_t left_us = until_ms * 1000 - now_us;
    return left_us > -SLACK_US && left_us < 2 * SLACK_US;
}

/* A lease, a key, a pause or a tick ends or begins in a moment. */
static bool unsteady(void)
{
    int64_t now_us = server_clock_us(&world, model);
    const struct holders *h = &model->data.holders[0];
    const struct queue *q = &model->data.queue[0];
    int64_t paced_ms = q->paced_until_ms;
    int64_t stands_ms = (now_us / 1000 - h->since_ms) % HOLDERS_PAUSE_EVERY_MS;
    bool ends = now_us % TICK_US > TICK_US - 2 * SLACK_US ||
                ends_soon(model->data.key[0].until_ms, now_us) ||
                ends_soon(paced_ms, now_us) ||
                ends_soon(paced_ms - GAP_EVERY_MS, now_us) ||
                ends_soon(h->until_ms, now_us) ||
                ends_soon(q->marked_until_ms, now_us) ||
                ends_soon(q->held_back_until_ms, now_us);
    for (unsigned i = 0; i < h->count; i++)
        ends |= ends_soon(h->holder[i].until_ms, now_us);
    int64_t to_pause = stands_ms - HOLDERS_PAUSE_EVERY_MS + HOLDERS_PAUSE_MS;
    return ends || (to_pause > -9 && to_pause < 5) || stands_ms < 5 ||
           stands_ms > HOLDERS_PAUSE_EVERY_MS - 9;
}

static void forget_all(void)
{
    freeReplyObject(redis_command(&server, "FLUSHALL", NULL));
    model->data = (struct data){0};
}

static bool is_near(int64_t a, int64_t b)
{
    return a - b <= SLACK_US / 1000 && b - a <= SLACK_US / 1000;
}

/* What the real server has, at one time. */
enum {
    HAS_TYPE,
    HAS_VALUE,
    HAS_ALL,
    HAS_LEFT,
    HAS_LINE,
    HAS_MARK,
    HAS_MARK_LEFT,
    HAS_GAP_LEFT,
    HAS_COUNT
};

static redisReply *look(void)
{
    static const char *const commands[] = {"MULTI", "TYPE n", "GET n",
        "ZRANGE n 0 -1 WITHSCORES", "PTTL n", "ZRANGE {n}:nxl-l 0 -1",
        "GET {n}:nxl-w", "PTTL {n}:nxl-w", "PTTL {n}:nxl-g", "EXEC"};
    size_t count = sizeof(commands) / sizeof(*commands);
    void *reply = NULL;
    for (size_t i = 0; i < count; i++)
        redisAppendCommand(context, commands[i]);
    for (size_t i = 0; i < count; i++) {
        freeReplyObject(reply);
        assert_int_equal(redisGetReply(context, &reply), REDIS_OK);
    }
    assert_int_equal(((redisReply *)reply)->elements, HAS_COUNT);
    return reply;
}

/* It was looked up to SLACK_US after the step, and up to that long ago. */
static void assert_ends(const redisReply *left, int64_t until_ms)
{
    int64_t ends_ms = left->integer + server_clock_ms(&world, model);
    assert_in_range(ends_ms, until_ms - SLACK_US / 1000 - 2,
        until_ms + SLACK_US / 1000 + 2);
}

static void assert_same_holders(const redisReply *has)
{
    const struct holders *h = holders_of(&world, model, 0);
    const redisReply *all = has->element[HAS_ALL];
    uint64_t alone = server_value(&world, model, 0);
    char head[64] = "nxl=*";
    const char *expected = alone ? "string" : h->count > 0 ? "zset" : "none";
    assert_string_equal(has->element[HAS_TYPE]->str, expected);
    if (alone)
        assert_string_equal(has->element[HAS_VALUE]->str, text_of(alone));
    if (alone || h->count == 0)
        return;
    assert_int_equal(all->elements, 2 * (h->count + 1));
    if (h->head.weight)
        sprintf(head, "nxl=%u/%u", h->head.weight, h->head.permits);
    assert_string_equal(all->element[2 * h->count]->str, head);
    assert_true(
        is_near(atoll(all->element[2 * h->count + 1]->str) - FAR, h->since_ms));
    for (unsigned i = 0; i < h->count; i++) {
        size_t at = 0;
        while (at < 2 * h->count &&
               strcmp(all->element[at]->str, text_of(h->holder[i].token)) != 0)
            at += 2;
        assert_true(at < 2 * h->count);
        assert_true(
            is_near(atoll(all->element[at + 1]->str), h->holder[i].until_ms));
    }
    assert_ends(has->element[HAS_LEFT], h->until_ms);
}

/* What it says, and when it ends. */
static void assert_same_mark(const redisReply *has)
{
    const struct queue *q = &model->data.queue[0];
    const redisReply *mark = has->element[HAS_MARK];
    if (!queue_marked(&world, model, 0)) {
        assert_int_equal(mark->type, REDIS_REPLY_NIL);
        return;
    }
    assert_int_equal(mark->type, REDIS_REPLY_STRING);
    if (q->held_back_until_ms == 0)
        assert_string_equal(mark->str, "1");
    else
        assert_true(is_near(atoll(mark->str + 1), q->held_back_until_ms));
    assert_ends(has->element[HAS_MARK_LEFT], q->marked_until_ms);
}

static void assert_same_line(const redisReply *has)
{
    const struct queue *q = &model->data.queue[0];
    const redisReply *line = has->element[HAS_LINE];
    const redisReply *gap = has->element[HAS_GAP_LEFT];
    unsigned count = queue_length(&world, model, 0);
    assert_int_equal(line->elements, count);
    for (unsigned i = 0; i < count; i++) {
        const struct place *p = &q->place[i];
        struct message m = {.channel = p->channel};
        char member[120];
        sprintf(member, "%s %s %u %u", text_of(p->token), channel_of(&m),
            p->lease_ms, p->window);
        assert_string_equal(line->element[i]->str, member);
    }
    assert_int_equal(gap->integer >= 0, queue_is_paced(&world, model, 0));
    assert_int_equal(
        gap->integer > GAP_EVERY_MS, queue_in_gap(&world, model, 0));
}

/* ------------------------------------------------------------------- steps */

/* How a token waits is always the same. polls: nobody joins the line. */
static struct message some_message(bool polls)
{
    static const enum message_kind kinds[] = {MESSAGE_TAKE, MESSAGE_TAKE,
        MESSAGE_JOIN, MESSAGE_JOIN, MESSAGE_STAY, MESSAGE_RELEASE,
        MESSAGE_RELEASE, MESSAGE_EXTEND, MESSAGE_CAP, MESSAGE_LOOK};
    unsigned token = draw(TOKENS);
    struct message m = {.kind = kinds[draw(10)], .token = 1 + token};
    if (polls && (m.kind == MESSAGE_JOIN || m.kind == MESSAGE_STAY))
        m.kind = MESSAGE_TAKE;
    bool waits = m.kind == MESSAGE_JOIN || m.kind == MESSAGE_STAY;
    const struct holders *h = &model->data.holders[0];
    m.ttl_ms = token % 3 ? 60 + 20 * token : 2000;
    m.window = token % 3 ? 2 + token : 100;
    m.may_wait = draw(2);
    m.channel = token % 4 == 1 ? DEAF : CHANNEL_NONE;
    if (m.kind == MESSAGE_TAKE && shares[token].weight == 0) {
        m.kind = MESSAGE_ACQUIRE;
        m.asks_kind = m.want_left = draw(3) > 0;
        m.hold_back_ms = m.asks_kind && draw(4) ? 60 + draw(500) : 0;
    }
    if (!waits && m.kind != MESSAGE_RELEASE)
        m.channel = 0;
    if (m.kind == MESSAGE_CAP || m.kind == MESSAGE_EXTEND)
        m.ttl_ms = 20 + draw(400);
    if (m.kind == MESSAGE_RELEASE && draw(4)) {
        if (model->data.key[0].token)
            m.token = model->data.key[0].token;
        else if (h->count > 0)
            m.token = h->holder[draw(h->count)].token;
        m.channel = 0;
        m.plain = draw(6) == 0;
        m.followed = draw(2);
        m.gap_ms = m.plain || draw(4) ? 0 : 75;
    }
    return m;
}

/* Somebody deletes the line or its mark; or the holders have stood for so long
 * that a pause is near. */
static void disturb(void)
{
    struct holders *h = holders_of(&world, model, 0);
    char head[64] = "nxl=*";
    switch (draw(4)) {
    case 0:
        freeReplyObject(redisCommand(context, "DEL {n}:nxl-l"));
        model->data.queue[0].count = 0;
        break;
    case 1:
        freeReplyObject(redisCommand(context, "DEL {n}:nxl-w"));
        model->data.queue[0].marked_until_ms = 0;
        break;
    default:
        if (h->count == 0 ||
            ends_soon(h->until_ms, server_clock_us(&world, model)))
            break;
        h->since_ms = server_clock_ms(&world, model) - 30000 + (int)draw(60);
        if (h->head.weight)
            sprintf(head, "nxl=%u/%u", h->head.weight, h->head.permits);
        freeReplyObject(redisCommand(context, "ZADD n XX %lld %s",
            (long long)(FAR + h->since_ms), head));
        break;
    }
}

static unsigned held_back; /* so many were */

/* False: it took so long that it cannot be compared. */
static bool compare(bool polls)
{
    struct message m = some_message(polls);
    do {
        move_clock();
    } while (unsteady());
    uint64_t began = world.now;
    redisReply *r = eval(&m);
    struct outcome real = outcome_of(&m, r);
    freeReplyObject(r);
    server_apply(&world, model, &m);
    redisReply *has = look();
    move_clock();
    if (world.now - began > SLACK_US * 1000) {
        freeReplyObject(has);
        return false;
    }
    assert_same_holders(has);
    assert_same_line(has);
    assert_same_mark(has);
    freeReplyObject(has);
    assert_int_equal(real.kind, m.outcome.kind);
    assert_int_equal(real.ahead, m.outcome.ahead);
    assert_int_equal(real.several_holders, m.outcome.several_holders);
    held_back += m.held_back;
    if ((m.kind != MESSAGE_ACQUIRE || m.asks_kind) &&
        m.kind != MESSAGE_RELEASE && m.kind != MESSAGE_CAP)
        assert_true(is_near(real.left_ms, m.outcome.left_ms));
    return true;
}

static void test_same_holders(void **state)
{
    (void)state;
    unsigned left_out = 0, steps = (unsigned)STEPS;
    const char *seed = getenv("NXLOCK_SEED");
    backoff_init(&dice, 1, 1, seed ? strtoull(seed, NULL, 10) : 1);
    for (unsigned i = 0; i < steps; i++) {
        move_clock();
        if (i % 200 == 100)
            forget_all();
        if (draw(20) == 0)
            disturb();
        if (draw(20) == 0)
            test_pause_ms((int)draw(150));
        if (!compare(i % 200 >= 100)) {
            left_out++;
            forget_all();
        }
    }
    print_message(
        "%u steps compared, %u left out, up to %u holders, %u held back\n",
        steps, left_out, world.most_holders, held_back);
    assert_true(left_out < steps / 2); /* a busy machine leaves out many */
    assert_true(world.most_holders >= 3);
    assert_true(held_back >= steps / 100);
}

static int begin(void **state)
{
    (void)state;
    world.setting.travel_ns = MS;
    world.setting.permits = true;
    world.setting.pause_every_ms = HOLDERS_PAUSE_EVERY_MS;
    if (honest_begin(TOKENS) != 0)
        return -1;
    for (unsigned i = 0; i < TOKENS; i++)
        checker_facts(&world.checker, 1 + i)->share = shares[i];
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_holders),
    };
    return cmocka_run_group_tests_name(
        "honest_permits", tests, begin, honest_finish);
}
