/* SPDX-License-Identifier: MIT */
/*
 * The line and the holders of the model server (queue.h, holders.h) against the
 * scripts on a real one: after the same random steps at the same time of day
 * both have given the same answers and sent the same messages, and have the
 * same holders, head, line, mark and key. One name has exclusive locks alone,
 * the other one locks of all kinds. What cannot be compared is a step during
 * which a lease or a tick of the line's clock ended; those are few, and
 * counted.
 */
#include "sim/honest_rig.h"

#define STEPS (getenv("NXLOCK_FULL") ? 40000 : 5000)
#define NAMES 2 /* EXCLUSIVE, and the other one */
#define EXCLUSIVE 0
#define TOKENS 10 /* of a name */
#define CLIENTS 3 /* each has a channel for each name */
#define LATER                                                                  \
    1000 /* tokens from here on are of a version that is not known             \
          */
#define TICK_US (1000000 / WINDOW_TICKS)
#define SLACK_US 4000 /* a command and its roundings */
#define FAR INT64_C(17592186044416)

static redisContext *listener[CLIENTS];
static struct conn *heard[CLIENTS];

static const struct share shares[TOKENS] = {{0, 0}, {0, 0}, {1, 0}, {1, 0},
    {1, 2}, {1, 2}, {1, 4}, {2, 4}, {3, 4}, {1, 3}};

static const char *text_of(uint64_t token)
{
    static char text[80];
    int len = sprintf(text, "%036llu", (unsigned long long)token);
    struct share share = {0, 0};
    if (token > LATER)
        strcpy(text + len, "+toy");
    else
        share = share_of(&world, token);
    if (share.weight)
        sprintf(text + len, "+%u/%u", share.weight, share.permits);
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

/* --------------------------------------------------------------- the scripts
 */

/* SET NX PX; and if the key is taken, the script that asks by whom, as
 * wire/native.c does. Its reply is {PTTL, several}. */
static redisReply *set_alone(const struct message *m, const char *token)
{
    redisReply *r =
        redisCommand(context, "SET n%u %s NX PX %u", m->name, token, m->ttl_ms);
    if (!m->asks_kind || !r || r->type != REDIS_REPLY_NIL)
        return r;
    freeReplyObject(r);
    return redisCommand(context, "EVAL %s 2 n%u {n%u}:nxl-w %u",
        scripts[SCRIPT_HOLD_BACK].body.data, m->name, m->name, m->hold_back_ms);
}

static redisReply *eval_line(
    const struct message *m, enum script_id script, const char *arguments)
{
    char command[300];
    snprintf(command, sizeof(command),
        "EVAL %%s 4 n%u {n%u}:nxl-l {n%u}:nxl-w {n%u}:nxl-g %s %s", m->name,
        m->name, m->name, m->name, text_of(m->token), arguments);
    return redisCommand(context, command, scripts[script].body.data);
}

static redisReply *eval_key(
    const struct message *m, enum script_id script, const char *arguments)
{
    return redisCommand(context, "EVAL %s 1 n%u %s %s",
        scripts[script].body.data, m->name, text_of(m->token), arguments);
}

static redisReply *eval_release(const struct message *m)
{
    struct place place = {.token = m->token,
        .channel = m->channel,
        .lease_ms = m->ttl_ms,
        .window = m->window};
    char member[200];
    strcpy(member, member_of(&place));
    if (!m->channel)
        strcpy(member, m->plain ? "-" : m->followed ? "+" : "");
    if (!m->channel && m->gap_ms > 0)
        sprintf(member, "?%u", m->gap_ms);
    return eval_key(m, SCRIPT_RELEASE, member);
}

static redisReply *eval(const struct message *m)
{
    char more[80];
    snprintf(more, sizeof(more), "%u", m->ttl_ms);
    switch (m->kind) {
    case MESSAGE_ACQUIRE:
        return set_alone(m, text_of(m->token));
    case MESSAGE_TAKE:
        snprintf(more, sizeof(more), "%u %d", m->ttl_ms, m->may_wait);
        return eval_line(m, SCRIPT_TAKE, more);
    case MESSAGE_JOIN:
    case MESSAGE_STAY:
        snprintf(more, sizeof(more), "%u %s %u %d %d", m->ttl_ms,
            channel_of(m->channel), m->window, m->kind == MESSAGE_JOIN,
            m->test);
        return eval_line(m, SCRIPT_LINE_WAIT, more);
    case MESSAGE_EXTEND:
        return eval_key(m, SCRIPT_EXTEND, more);
    case MESSAGE_CAP:
        return eval_key(m, SCRIPT_CAP_TTL, more);
    case MESSAGE_LOOK:
        return redisCommand(context, "EVAL %s 1 n%u %s",
            scripts[SCRIPT_INSPECT].body.data, m->name, text_of(m->token));
    default:
        return eval_release(m);
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
            o.no_listener = m->test && r->element[3]->integer == 0;
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
static bool unsteady_name(unsigned name, int64_t now_us)
{
    const struct holders *h = &model->data.holders[name];
    const struct queue *q = &model->data.queue[name];
    int64_t paced_ms = q->paced_until_ms;
    int64_t stands_ms = (now_us / 1000 - h->since_ms) % HOLDERS_PAUSE_EVERY_MS;
    int64_t to_pause = stands_ms - HOLDERS_PAUSE_EVERY_MS + HOLDERS_PAUSE_MS;
    bool ends = ends_soon(model->data.key[name].until_ms, now_us) ||
                ends_soon(paced_ms, now_us) ||
                ends_soon(paced_ms - GAP_EVERY_MS, now_us) ||
                ends_soon(h->until_ms, now_us) ||
                ends_soon(q->marked_until_ms, now_us) ||
                ends_soon(q->held_back_until_ms, now_us);
    for (unsigned i = 0; i < h->count; i++)
        ends |= ends_soon(h->holder[i].until_ms, now_us);
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
        assert_true(is_near(atoll(mark->str + 1), q->held_back_until_ms));
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
    unsigned token = draw(TOKENS), client = token % (CLIENTS + 1);
    struct message m = {.kind = kinds[draw(10)], .name = draw(NAMES)};
    m.token = 1 + m.name * TOKENS + token;
    if (polls && m.name != EXCLUSIVE &&
        (m.kind == MESSAGE_JOIN || m.kind == MESSAGE_STAY))
        m.kind = MESSAGE_TAKE;
    if (m.kind == MESSAGE_TAKE && is_in_line(m.name, m.token))
        m.kind = MESSAGE_STAY; /* no client does both */
    bool waits = m.kind == MESSAGE_JOIN || m.kind == MESSAGE_STAY;
    const struct holders *h = &model->data.holders[m.name];
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
    if (h->count == 0 || ends_soon(h->until_ms, server_clock_us(&world, model)))
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

static void assert_same_outcome(
    const struct message *m, const struct outcome *real)
{
    const struct outcome *o = &m->outcome;
    bool with_left = (m->kind != MESSAGE_ACQUIRE || m->asks_kind) &&
                     m->kind != MESSAGE_RELEASE && m->kind != MESSAGE_CAP;
    if (real->kind == o->kind && real->ahead == o->ahead &&
        real->no_listener == o->no_listener &&
        real->several_holders == o->several_holders &&
        (!with_left || is_near(real->left_ms, o->left_ms)))
        return;
    fail_msg("%s of n%u %s: the model says %d, left %lld, ahead %u, no "
             "listener %d, several %d; the server %d, %lld, %u, %d, %d",
        message_name(m->kind), m->name, text_of(m->token), (int)o->kind,
        (long long)o->left_ms, o->ahead, o->no_listener, o->several_holders,
        (int)real->kind, (long long)real->left_ms, real->ahead,
        real->no_listener, real->several_holders);
}

/* False: it took so long that it cannot be compared. */
static bool compare(bool polls)
{
    struct message m = some_message(polls);
    do {
        move_clock();
    } while (unsteady(m.name));
    uint64_t began = world.now;
    redisReply *r = eval(&m);
    struct outcome real = outcome_of(&m, r);
    freeReplyObject(r);
    server_apply(&world, model, &m);
    redisReply *has = look(m.name);
    move_clock();
    if (world.now - began > SLACK_US * 1000) {
        freeReplyObject(has);
        return false;
    }
    assert_same_messages();
    assert_same_holders(m.name, has);
    assert_same_line(m.name, has);
    assert_same_mark(m.name, has);
    freeReplyObject(has);
    assert_same_outcome(&m, &real);
    held_back += m.held_back;
    return true;
}

static void test_same_line_and_holders(void **state)
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
        "%u steps compared, %u left out, up to %llu holders, %u held back\n",
        steps, left_out, (unsigned long long)world.most.holders, held_back);
    assert_true(left_out < steps / 2); /* a busy machine leaves out many */
    assert_true(world.most.holders >= 3);
    assert_true(held_back >= steps / 500);
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
