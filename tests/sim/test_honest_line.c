/* SPDX-License-Identifier: MIT */
/*
 * The line and the holders of the model server (queue.h, holders.h) against the
 * scripts on a real one: after the same random steps at the same time of day
 * both have given the same answers and sent the same messages, and have the
 * same holders, head, line, mark and key. One name has exclusive locks alone,
 * the other one locks of all kinds.
 */
#include "sim/honest_rig.h"

#define STEPS (getenv("NXLOCK_FULL") ? 40000u : 5000u)
#define NAMES 2 /* EXCLUSIVE, and the other one */
#define EXCLUSIVE 0
#define TOKENS 10 /* of a name */
#define CLIENTS 3 /* each has a channel for each name */
#define LATER                                                                  \
    1000 /* tokens from here on are of a version that is not known             \
          */
#define TICK_US (1000000 / WINDOW_TICKS)
#define SLACK_US 4000 /* a command and its roundings */
#define SLACK_MS (SLACK_US / 1000)
#define FAR INT64_C(17592186044416)

static redisContext *listener[CLIENTS];
static struct conn *heard[CLIENTS];

static const struct share shares[TOKENS] = {{0, 0}, {0, 0}, {1, 0}, {1, 0},
    {1, 2}, {1, 2}, {1, 4}, {2, 4}, {3, 4}, {1, 3}};

static const char *text_of(uint64_t token)
{
    static char text[80];
    struct share share = {0, 0};
    write_token(text, token);
    if (token > LATER)
        strcat(text, "+toy");
    else
        share = share_of(&world, token);
    if (share.weight)
        sprintf(text + strlen(text), "+%u/%u", share.weight, share.permits);
    return text;
}

static const char *channel_of(uint64_t channel)
{
    static char text[40];
    sprintf(text, "%llu", (unsigned long long)channel);
    return channel == CHANNEL_NONE ? "-" : text;
}

/* What stands in the line for it. */
static const char *member_of(const struct place *p)
{
    static char member[200];
    snprintf(member, sizeof(member), "%s %s %u %u%s", text_of(p->token),
        channel_of(p->channel), p->lease_ms, p->window,
        p->later ? " more" : "");
    return member;
}

static struct outcome send_verb(const struct message *m)
{
    char key[16];
    sprintf(key, "n%u", m->name);
    struct verb verb = verb_of(m, key, text_of(m->token));
    if (m->channel)
        verb.client = slice_of(channel_of(m->channel));
    if (m->kind == MESSAGE_ACQUIRE)
        verb.hold_back_ms = m->hold_back_ms;
    else
        verb.gap_ms = m->gap_ms;
    dialect.no_line = m->plain;
    return ask_real(&verb);
}

/* ------------------------------------------------------------- side by side */

/* A lease, a key, a pause or a tick ends or begins in a moment. */
static bool unsteady_name(unsigned name, int64_t now_us)
{
    const struct holders *h = &model->data.holders[name];
    const struct queue *q = &model->data.queue[name];
    int64_t paced_ms = q->paced_until_ms;
    int64_t stands_ms = (now_us / 1000 - h->since_ms) % HOLDERS_PAUSE_EVERY_MS;
    int64_t to_pause = stands_ms - HOLDERS_PAUSE_EVERY_MS + HOLDERS_PAUSE_MS;
    bool ends = ends_soon(model->data.key[name].until_ms, SLACK_US) ||
                ends_soon(paced_ms, SLACK_US) ||
                ends_soon(paced_ms - GAP_EVERY_MS, SLACK_US) ||
                ends_soon(h->until_ms, SLACK_US) ||
                ends_soon(q->marked_until_ms, SLACK_US) ||
                ends_soon(q->held_back_until_ms, SLACK_US);
    for (unsigned i = 0; i < h->count; i++)
        ends |= ends_soon(h->holder[i].until_ms, SLACK_US);
    return ends || (to_pause > -9 && to_pause < 5) || stands_ms < 5 ||
           stands_ms > HOLDERS_PAUSE_EVERY_MS - 9;
}

static bool unsteady(unsigned name)
{
    int64_t now_us = server_clock_us(&world, model);
    return now_us % TICK_US > TICK_US - 2 * SLACK_US ||
           unsteady_name(name, now_us);
}

static redisReply *next_message(unsigned client)
{
    redisReply *r = NULL;
    assert_int_equal(redisGetReply(listener[client], (void **)&r), REDIS_OK);
    assert_string_equal(r->element[0]->str, "message");
    return r;
}

/* Behind all that was sent. */
static void send_last(unsigned client)
{
    freeReplyObject(redisCommand(context, "PUBLISH nxl:%llu:n0 last",
        (unsigned long long)heard[client]->channel));
}

/* What was sent until now, at either one. */
static void forget_messages(unsigned client)
{
    struct list *node;
    bool last = heard[client]->channel == 0;
    while ((node = list_pop(&heard[client]->down.messages)))
        free(list_entry(node, struct message, node));
    if (!last)
        send_last(client);
    while (!last) {
        redisReply *r = next_message(client);
        last = strcmp(r->element[2]->str, "last") == 0;
        freeReplyObject(r);
    }
}

/* The same, and no more. */
static void assert_same_messages(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct list *node;
        bool listens = heard[i]->channel != 0;
        if (listens)
            send_last(i);
        while ((node = list_pop(&heard[i]->down.messages))) {
            struct message *m = list_entry(node, struct message, node);
            char name[80], text[120];
            redisReply *r = next_message(i);
            sprintf(name, "nxl:%s:n%u", channel_of(m->channel), m->name);
            sprintf(text, "%s%s", m->kind == MESSAGE_HINT ? "?" : "",
                text_of(m->token));
            assert_string_equal(r->element[1]->str, name);
            assert_string_equal(r->element[2]->str, text);
            freeReplyObject(r);
            free(m);
        }
        redisReply *r = listens ? next_message(i) : NULL;
        if (listens)
            assert_string_equal(r->element[2]->str, "last");
        freeReplyObject(r);
    }
}

static void forget_all(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        forget_messages(i);
    forget_data();
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

static redisReply *look(unsigned name)
{
    static const char *const commands[] = {"MULTI", "TYPE n%u", "GET n%u",
        "ZRANGE n%u 0 -1 WITHSCORES", "PTTL n%u",
        "ZRANGE {n%u}:nxl-l 0 -1 WITHSCORES", "GET {n%u}:nxl-w",
        "PTTL {n%u}:nxl-w", "PTTL {n%u}:nxl-g", "EXEC"};
    size_t count = sizeof(commands) / sizeof(*commands);
    void *reply = NULL;
    for (size_t i = 0; i < count; i++)
        redisAppendCommand(context, commands[i], name);
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

static void assert_same_holders(unsigned name, const redisReply *has)
{
    const struct holders *h = holders_of(&world, model, name);
    const redisReply *all = has->element[HAS_ALL];
    uint64_t alone = server_value(&world, model, name);
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
    assert_true(is_near(atoll(all->element[2 * h->count + 1]->str) - FAR,
        h->since_ms, SLACK_MS));
    for (unsigned i = 0; i < h->count; i++) {
        size_t at = 0;
        while (at < 2 * h->count &&
               strcmp(all->element[at]->str, text_of(h->holder[i].token)) != 0)
            at += 2;
        assert_true(at < 2 * h->count);
        assert_true(is_near(
            atoll(all->element[at + 1]->str), h->holder[i].until_ms, SLACK_MS));
    }
    assert_ends(has->element[HAS_LEFT], h->until_ms);
}

/* What it says, and when it ends. */
static void assert_same_mark(unsigned name, const redisReply *has)
{
    const struct queue *q = &model->data.queue[name];
    const redisReply *mark = has->element[HAS_MARK];
    if (!queue_marked(&world, model, name)) {
        assert_int_equal(mark->type, REDIS_REPLY_NIL);
        return;
    }
    assert_int_equal(mark->type, REDIS_REPLY_STRING);
    if (q->held_back_until_ms == 0)
        assert_string_equal(mark->str, "1");
    else
        assert_true(
            is_near(atoll(mark->str + 1), q->held_back_until_ms, SLACK_MS));
    assert_ends(has->element[HAS_MARK_LEFT], q->marked_until_ms);
}

static void assert_same_line(unsigned name, const redisReply *has)
{
    const struct queue *q = &model->data.queue[name];
    const redisReply *line = has->element[HAS_LINE];
    const redisReply *gap = has->element[HAS_GAP_LEFT];
    unsigned count = queue_length(&world, model, name);
    assert_int_equal(line->elements, 2 * count);
    for (unsigned i = 0; i < count; i++) {
        const struct place *p = &q->place[i];
        assert_string_equal(line->element[2 * i]->str, member_of(p));
        assert_int_equal(atoll(line->element[2 * i + 1]->str),
            (long long)p->ticket * (1 << 22) + p->seen);
    }
    assert_int_equal(gap->integer >= 0, queue_is_paced(&world, model, name));
    assert_int_equal(
        gap->integer > GAP_EVERY_MS, queue_in_gap(&world, model, name));
}

/* ------------------------------------------------------------------- steps */

static bool is_in_line(unsigned name, uint64_t token)
{
    const struct queue *q = &model->data.queue[name];
    for (unsigned i = 0; i < q->count; i++)
        if (q->place[i].token == token)
            return true;
    return false;
}

/* How a token waits is always the same. polls: nobody joins the line. */
static struct message some_message(bool polls)
{
    static const enum message_kind kinds[] = {MESSAGE_TAKE, MESSAGE_TAKE,
        MESSAGE_JOIN, MESSAGE_JOIN, MESSAGE_STAY, MESSAGE_RELEASE,
        MESSAGE_RELEASE, MESSAGE_EXTEND, MESSAGE_CAP, MESSAGE_LOOK};
    struct message m = {.kind = kinds[draw(10)], .name = draw(NAMES)};
    const struct holders *h = &model->data.holders[m.name];
    unsigned token = draw(TOKENS);
    /* Often an exclusive lock is asked for beside holders, and then a shared
     * one, which is held back. */
    if (m.name != EXCLUSIVE && h->count > 0 && draw(4) == 0) {
        bool marked = queue_marked(&world, model, m.name);
        m.kind = MESSAGE_TAKE;
        token = marked ? 2 + draw(TOKENS - 2) : draw(2);
    }
    unsigned client = token % (CLIENTS + 1);
    m.token = 1 + m.name * TOKENS + token;
    if (polls && m.name != EXCLUSIVE &&
        (m.kind == MESSAGE_JOIN || m.kind == MESSAGE_STAY))
        m.kind = MESSAGE_TAKE;
    if (m.kind == MESSAGE_TAKE && is_in_line(m.name, m.token))
        m.kind = MESSAGE_STAY; /* no client does both */
    bool waits = m.kind == MESSAGE_JOIN || m.kind == MESSAGE_STAY;
    uint64_t alone = model->data.key[m.name].token;
    m.ttl_ms = token % 3 ? 60 + 20 * token : 2000;
    m.window = token % 3 ? 2 + token : 100;
    m.may_wait = draw(2);
    m.channel = client < CLIENTS ? CHANNEL_NONE + 1 + client : CHANNEL_NONE;
    m.test = waits && draw(2);
    if (m.kind == MESSAGE_TAKE && share_of(&world, m.token).weight == 0) {
        m.kind = MESSAGE_ACQUIRE;
        m.asks_kind = m.want_left = draw(3) > 0;
        m.hold_back_ms = m.asks_kind && draw(4) ? 60 + draw(500) : 0;
    }
    if (!waits && m.kind != MESSAGE_RELEASE)
        m.channel = 0;
    if (m.kind == MESSAGE_CAP || m.kind == MESSAGE_EXTEND)
        m.ttl_ms = 20 + draw(400);
    if (m.kind == MESSAGE_RELEASE && draw(4)) {
        if (alone)
            m.token = alone;
        else if (h->count > 0)
            m.token = h->holder[draw(h->count)].token;
        m.channel = 0;
        m.plain = draw(6) == 0;
        m.followed = draw(2);
        m.gap_ms = m.plain || draw(4) ? 0 : 75;
    }
    return m;
}

/* One of a later version joins a line. */
static void join_later(unsigned name, uint64_t channel)
{
    struct queue *q = &model->data.queue[name];
    unsigned count = queue_length(&world, model, name);
    if (count == 0 || count == QUEUE_MAX - TOKENS)
        return;
    struct place p = {.token = LATER + 1 + draw(1000),
        .channel = channel,
        .lease_ms = 2000,
        .window = 10,
        .ticket = q->place[count - 1].ticket + 1,
        .later = true,
        .seen = server_clock_us(&world, model) / TICK_US % (1 << 22)};
    q->place[q->count++] = p;
    freeReplyObject(redisCommand(context, "ZADD {n%u}:nxl-l %lld %s", name,
        (long long)p.ticket * (1 << 22) + p.seen, member_of(&p)));
}

/* The holders have stood for so long that a pause is near. */
static void age_holders(unsigned name)
{
    struct holders *h = holders_of(&world, model, name);
    char head[64] = "nxl=*";
    if (h->count == 0 || ends_soon(h->until_ms, SLACK_US))
        return;
    h->since_ms = server_clock_ms(&world, model) - 30000 + (int)draw(60);
    if (h->head.weight)
        sprintf(head, "nxl=%u/%u", h->head.weight, h->head.permits);
    freeReplyObject(redisCommand(context, "ZADD n%u XX %lld %s", name,
        (long long)(FAR + h->since_ms), head));
}

/* Begins or ends to listen. */
static void listen_or_not(unsigned client)
{
    uint64_t channel = CHANNEL_NONE + 1 + client;
    bool listens = heard[client]->channel != 0;
    for (unsigned i = 0; i < NAMES; i++) {
        redisReply *r = redisCommand(listener[client], "%s nxl:%llu:n%u",
            listens ? "UNSUBSCRIBE" : "SUBSCRIBE", (unsigned long long)channel,
            i);
        assert_non_null(r);
        freeReplyObject(r);
    }
    heard[client]->channel = listens ? 0 : channel;
}

/* Somebody deletes a line or a mark, or something else that is rare. */
static void disturb(void)
{
    unsigned name = draw(NAMES), client = draw(CLIENTS);
    switch (draw(6)) {
    case 0:
        freeReplyObject(redisCommand(context, "DEL {n%u}:nxl-l", name));
        model->data.queue[name].count = 0;
        break;
    case 1:
        freeReplyObject(redisCommand(context, "DEL {n%u}:nxl-w", name));
        model->data.queue[name].marked_until_ms = 0;
        break;
    case 2:
        join_later(EXCLUSIVE,
            draw(2) ? CHANNEL_NONE + 1 + client : (uint64_t)CHANNEL_NONE);
        break;
    case 3:
        age_holders(name);
        break;
    default:
        listen_or_not(client);
        break;
    }
}

static unsigned held_back; /* so many were */

static bool step(unsigned i)
{
    move_clock();
    if (i % 200 == 100)
        forget_all();
    if (draw(20) == 0)
        disturb();
    if (draw(20) == 0)
        test_pause_ms((int)draw(150));
    struct message m = some_message(i % 200 >= 100);
    do
        move_clock();
    while (unsteady(m.name));
    uint64_t began = world.now;
    struct outcome real = send_verb(&m);
    server_apply(&world, model, &m);
    redisReply *has = look(m.name);
    move_clock();
    bool compared = world.now - began <= SLACK_US * 1000;
    if (compared) {
        assert_same_messages();
        assert_same_holders(m.name, has);
        assert_same_line(m.name, has);
        assert_same_mark(m.name, has);
        assert_same_outcome(&m, &real, SLACK_MS);
        held_back += m.held_back;
    }
    freeReplyObject(has);
    return compared;
}

static void test_same_line_and_holders(void **state)
{
    (void)state;
    honest_play(STEPS, step, forget_all);
    print_message("up to %llu holders, %u held back\n",
        (unsigned long long)world.most.holders, held_back);
    assert_true(world.most.holders >= 3);
    assert_true(held_back >= STEPS / 500);
}

static int begin(void **state)
{
    (void)state;
    world.setting.travel_ns = MS;
    world.setting.permits = true;
    world.setting.pause_every_ms = HOLDERS_PAUSE_EVERY_MS;
    if (honest_begin(NAMES * TOKENS) != 0)
        return -1;
    for (unsigned i = 0; i < TOKENS; i++)
        checker_facts(&world.checker, 1 + TOKENS + i)->share = shares[i];
    for (unsigned i = 0; i < CLIENTS; i++) {
        listener[i] = connected();
        heard[i] = conn_open(&world, model, &world.process[i], NULL);
    }
    move_clock();
    return 0;
}

static int finish(void **state)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        redisFree(listener[i]);
    return honest_finish(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_line_and_holders),
    };
    return cmocka_run_group_tests_name("honest_line", tests, begin, finish);
}
