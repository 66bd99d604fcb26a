/* SPDX-License-Identifier: MIT */
/*
 * The line of the model server (queue.h) against the scripts on a real one:
 * after the same random steps at the same time of day both have given the same
 * answers and sent the same messages, and have the same line, mark and key.
 * What cannot be compared is a step during which a tick of the line's clock
 * ended; those are few, and counted.
 */
#include "sim/honest_rig.h"

#define STEPS (getenv("NXLOCK_FULL") ? 20000 : 3000)
#define NAMES 2
#define CLIENTS 3 /* each has a channel for each name */
#define TOKENS 8
#define LATER                                                                  \
    1000 /* tokens from here on are of a version that is not known             \
          */
#define TICK_US (1000000 / WINDOW_TICKS)
#define SLACK_US 4000 /* a command and its roundings */

static redisContext *listener[CLIENTS];
static struct conn *heard[CLIENTS];

/* --------------------------------------------------------------- the scripts
 */

static void texts_of(const struct message *m, char *token, char *channel)
{
    sprintf(token, m->token > LATER ? "%036llu+toy" : "token%llu",
        (unsigned long long)m->token);
    strcpy(channel, "-");
    if (m->channel != CHANNEL_NONE)
        sprintf(channel, "%llu", (unsigned long long)m->channel);
}

static redisReply *eval_wait(const struct message *m)
{
    char token[80], channel[80];
    texts_of(m, token, channel);
    return redisCommand(context,
        "EVAL %s 4 name%u {name%u}:nxl-l {name%u}:nxl-w {name%u}:nxl-g"
        " %s %u %s %u %d %d",
        scripts[SCRIPT_LINE_WAIT].body.data, m->name, m->name, m->name, m->name,
        token, m->ttl_ms, channel, m->window, m->kind == MESSAGE_JOIN, m->test);
}

static redisReply *eval_release(const struct message *m)
{
    char token[80], channel[80], member[200];
    texts_of(m, token, channel);
    sprintf(member, "%s %s %u %u", token, channel, m->ttl_ms, m->window);
    if (!m->channel)
        strcpy(member, m->plain ? "-" : m->followed ? "+" : "");
    if (!m->channel && m->gap_ms > 0)
        sprintf(member, "?%u", m->gap_ms);
    return redisCommand(context, "EVAL %s 1 name%u %s %s",
        scripts[SCRIPT_RELEASE].body.data, m->name, token, member);
}

static struct outcome outcome_of(const struct message *m, const redisReply *r)
{
    struct outcome o = {.left_ms = LEFT_UNKNOWN};
    if (!r || r->type == REDIS_REPLY_ERROR)
        fail_msg("%s", r ? r->str : context->errstr);
    if (m->kind == MESSAGE_RELEASE) {
        o.kind = r->integer ? OUTCOME_MINE : OUTCOME_NOT_MINE;
    } else if (r->element[0]->integer == 0) {
        o.kind = OUTCOME_BUSY;
        o.left_ms = r->element[1]->integer;
        o.ahead = (unsigned)r->element[2]->integer;
        o.no_listener = m->test && r->element[3]->integer == 0;
    } else {
        o.kind =
            r->element[0]->integer == 1 ? OUTCOME_GRANTED : OUTCOME_NOT_MINE;
    }
    return o;
}

/* ------------------------------------------------------------- side by side */

/* A key or a tick ends in a moment. */
static bool unsteady(void)
{
    int64_t now_us = server_clock_us(&world, model);
    bool ends = now_us % TICK_US > TICK_US - 2 * SLACK_US;
    for (unsigned i = 0; i < NAMES; i++) {
        int64_t left_us = model->data.key[i].until_ms * 1000 - now_us;
        ends |= left_us > -SLACK_US && left_us < 2 * SLACK_US;
        left_us = model->data.queue[i].paced_until_ms * 1000 - now_us;
        ends |= left_us > -SLACK_US && left_us < 2 * SLACK_US;
        left_us -= GAP_EVERY_MS * 1000;
        ends |= left_us > -SLACK_US && left_us < 2 * SLACK_US;
    }
    return ends;
}

/* What was sent until now, at either one. */
static void forget_messages(unsigned client)
{
    struct list *node;
    bool last = heard[client]->channel == 0;
    while ((node = list_pop(&heard[client]->down.messages)))
        free(list_entry(node, struct message, node));
    if (!last)
        freeReplyObject(redisCommand(context, "PUBLISH nxl:%llu:name0 last",
            (unsigned long long)heard[client]->channel));
    while (!last) {
        redisReply *r = NULL;
        assert_int_equal(redisGetReply(listener[client], (void **)&r), 0);
        last = strcmp(r->element[2]->str, "last") == 0;
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

static void assert_same_messages(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct list *node;
        while ((node = list_pop(&heard[i]->down.messages))) {
            struct message *m = list_entry(node, struct message, node);
            char token[80], channel[80], name[120];
            redisReply *r = NULL;
            texts_of(m, token, channel);
            assert_int_equal(redisGetReply(listener[i], (void **)&r), 0);
            assert_string_equal(r->element[0]->str, "message");
            sprintf(name, "nxl:%s:name%u", channel, m->name);
            assert_string_equal(r->element[1]->str, name);
            bool hint = m->kind == MESSAGE_HINT;
            assert_true(!hint || r->element[2]->str[0] == '?');
            assert_string_equal(r->element[2]->str + hint, token);
            freeReplyObject(r);
            free(m);
        }
    }
}

/* What a name has at the real one. */
struct keys {
    redisReply *line, *mark, *gap, *key;
};

static struct keys keys_of(unsigned name)
{
    return (struct keys){
        redisCommand(context, "ZRANGE {name%u}:nxl-l 0 -1", name),
        redisCommand(context, "EXISTS {name%u}:nxl-w", name),
        redisCommand(context, "PTTL {name%u}:nxl-g", name),
        redisCommand(context, "GET name%u", name),
    };
}

static void free_keys(struct keys *keys)
{
    freeReplyObject(keys->line);
    freeReplyObject(keys->mark);
    freeReplyObject(keys->gap);
    freeReplyObject(keys->key);
}

static void assert_same_keys(unsigned name, const struct keys *keys)
{
    const struct queue *q = &model->data.queue[name];
    unsigned count = queue_length(&world, model, name);
    assert_int_equal(keys->line->elements, count);
    for (unsigned i = 0; i < count; i++) {
        const struct place *p = &q->place[i];
        struct message m = {.token = p->token, .channel = p->channel};
        char token[80], channel[80], member[200];
        texts_of(&m, token, channel);
        sprintf(member, "%s %s %u %u%s", token, channel, p->lease_ms, p->window,
            p->later ? " more" : "");
        assert_string_equal(keys->line->element[i]->str, member);
    }
    assert_int_equal(keys->mark->integer, queue_marked(&world, model, name));
    bool paced = server_clock_ms(&world, model) < q->paced_until_ms;
    assert_int_equal(keys->gap->integer >= 0, paced);
    assert_int_equal(
        keys->gap->integer > GAP_EVERY_MS, queue_in_gap(&world, model, name));
    struct message m = {.token = server_value(&world, model, name)};
    char token[80], channel[80];
    texts_of(&m, token, channel);
    assert_string_equal(keys->key->str ? keys->key->str : "token0", token);
}

/* ------------------------------------------------------------------- steps */

/* How a token waits is always the same. */
static struct message some_message(void)
{
    static const enum message_kind kinds[] = {
        MESSAGE_JOIN, MESSAGE_STAY, MESSAGE_RELEASE};
    struct message m = {.kind = kinds[draw(3)], .name = draw(NAMES)};
    uint64_t standing = model->data.key[m.name].token;
    unsigned token = draw(TOKENS), client = token % (CLIENTS + 1);
    m.token = 1 + m.name * TOKENS + token;
    m.channel = client < CLIENTS ? CHANNEL_NONE + 1 + client : CHANNEL_NONE;
    m.ttl_ms = token % 2 ? 60 + 10 * token : 2000;
    m.window = token % 3 ? 2 + token : 100;
    m.test = m.kind != MESSAGE_RELEASE && draw(2);
    if (m.kind == MESSAGE_RELEASE && standing && draw(3)) {
        m.token = standing;
        m.channel = 0;
        m.plain = draw(4) == 0;
        m.followed = draw(2);
        m.gap_ms = m.plain || draw(3) ? 0 : 75;
    }
    return m;
}

/* One of a later version joins a line. */
static void join_later(unsigned name, uint64_t channel)
{
    struct queue *q = &model->data.queue[name];
    struct message m = {.token = LATER + 1 + draw(1000), .channel = channel};
    char token[80], text[80], member[200];
    unsigned count = queue_length(&world, model, name);
    if (count == 0 || count == QUEUE_MAX - TOKENS)
        return;
    struct place p = {.token = m.token,
        .channel = channel,
        .lease_ms = 2000,
        .window = 10,
        .ticket = q->place[count - 1].ticket + 1,
        .later = true,
        .seen = server_clock_us(&world, model) / TICK_US % (1 << 22)};
    texts_of(&m, token, text);
    sprintf(member, "%s %s 2000 10 more", token, text);
    q->place[q->count++] = p;
    freeReplyObject(redisCommand(context, "ZADD {name%u}:nxl-l %lld %s", name,
        (long long)p.ticket * (1 << 22) + p.seen, member));
}

/* Somebody deletes a line or a mark, or begins or ends to listen. */
static void disturb(void)
{
    unsigned name = draw(NAMES), client = draw(CLIENTS);
    uint64_t channel = CHANNEL_NONE + 1 + client;
    bool listens = heard[client]->channel != 0;
    redisReply *r = NULL;
    switch (draw(5)) {
    case 4:
        join_later(name, draw(2) ? channel : CHANNEL_NONE);
        break;
    case 0:
        freeReplyObject(redisCommand(context, "DEL {name%u}:nxl-l", name));
        model->data.queue[name].count = 0;
        break;
    case 1:
        freeReplyObject(redisCommand(context, "DEL {name%u}:nxl-w", name));
        model->data.queue[name].marked_until_ms = 0;
        break;
    default:
        for (unsigned i = 0; i < NAMES; i++) {
            r = redisCommand(listener[client], "%s nxl:%llu:name%u",
                listens ? "UNSUBSCRIBE" : "SUBSCRIBE",
                (unsigned long long)channel, i);
            assert_non_null(r);
            freeReplyObject(r);
        }
        heard[client]->channel = listens ? 0 : channel;
        break;
    }
}

/* False: it took so long that it cannot be compared. */
static bool compare(void)
{
    struct message m = some_message();
    bool waits = m.kind != MESSAGE_RELEASE;
    do {
        move_clock();
    } while (unsteady());
    uint64_t began = world.now;
    redisReply *r = waits ? eval_wait(&m) : eval_release(&m);
    struct outcome real = outcome_of(&m, r);
    freeReplyObject(r);
    server_apply(&world, model, &m);
    struct keys keys = keys_of(m.name);
    move_clock();
    if (world.now - began > SLACK_US * 1000) {
        free_keys(&keys);
        return false;
    }
    assert_same_messages();
    assert_same_keys(m.name, &keys);
    free_keys(&keys);
    assert_int_equal(real.kind, m.outcome.kind);
    assert_int_equal(real.ahead, m.outcome.ahead);
    assert_int_equal(real.no_listener, m.outcome.no_listener);
    assert_in_range(real.left_ms + 10, m.outcome.left_ms + 10 - SLACK_US / 1000,
        m.outcome.left_ms + 10 + SLACK_US / 1000);
    return true;
}

static void test_same_line(void **state)
{
    (void)state;
    unsigned left_out = 0, steps = (unsigned)STEPS;
    const char *seed = getenv("NXLOCK_SEED");
    backoff_init(&dice, 1, 1, seed ? strtoull(seed, NULL, 10) : 1);
    for (unsigned i = 0; i < steps; i++) {
        if (draw(20) == 0)
            disturb();
        if (draw(30) == 0)
            test_pause_ms((int)draw(200));
        if (!compare()) {
            left_out++;
            forget_all();
        }
    }
    print_message("%u steps compared, %u left out\n", steps, left_out);
    assert_true(left_out < steps / 2); /* a busy machine leaves out many */
}

/* ------------------------------------------------------ beginning and ending
 */

static int begin(void **state)
{
    (void)state;
    world.setting.travel_ns = MS;
    if (honest_begin(NAMES * TOKENS) != 0)
        return -1;
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
        cmocka_unit_test(test_same_line),
    };
    return cmocka_run_group_tests_name("honest_line", tests, begin, finish);
}
