/* SPDX-License-Identifier: MIT */
/*
 * The model server against a real one: the same random commands, carried out
 * by both at the same time of day, have the same outcomes. So the simulation
 * cannot prove something about a server that does not exist. What cannot be
 * compared is a command that was on its way for longer than the times that
 * decide it; those are few, and counted.
 */
#include "sim/honest_rig.h"
#include "wire/exchange.h"

#define STEPS 100000
#define STEPS_SHORT 20000
#define TOKENS 3
#define SLACK_MS 3 /* roundings, and the way of a command */

static struct dialect dialect;
static unsigned compared, left_out;

static void tokens_of(
    unsigned name, uint64_t token, char *key, char *counter, char *value)
{
    sprintf(key, "name%u", name);
    sprintf(counter, "{name%u}:f", name);
    sprintf(
        value, "00000000-0000-4000-8000-%012llu", (unsigned long long)token);
}

/* ------------------------------------------------------------ the real one */

static struct reply plain(const redisReply *r, struct reply *items)
{
    static const enum reply_kind kinds[] = {
        [REDIS_REPLY_STRING] = REPLY_STRING,
        [REDIS_REPLY_ARRAY] = REPLY_ARRAY,
        [REDIS_REPLY_INTEGER] = REPLY_INTEGER,
        [REDIS_REPLY_NIL] = REPLY_NIL,
        [REDIS_REPLY_STATUS] = REPLY_STATUS,
        [REDIS_REPLY_ERROR] = REPLY_ERROR,
    };
    struct reply reply = {.kind = kinds[r->type], .integer = r->integer};
    if (r->type == REDIS_REPLY_ARRAY) {
        assert_true(r->elements <= REPLY_ITEMS);
        for (size_t i = 0; i < r->elements; i++)
            items[i] = plain(r->element[i], NULL);
        reply.count = r->elements;
        reply.items = items;
    } else if (r->type != REDIS_REPLY_INTEGER && r->type != REDIS_REPLY_NIL) {
        reply.bytes = (struct slice){r->str, r->len};
    }
    return reply;
}

static enum exchange_next answered(struct exchange *x)
{
    enum exchange_next next;
    do {
        struct reply items[REPLY_ITEMS];
        redisReply *r = NULL;
        assert_int_equal(redisGetReply(context, (void **)&r), REDIS_OK);
        struct reply reply = plain(r, items);
        next = exchange_reply(x, &reply);
        freeReplyObject(r);
    } while (next == EXCHANGE_WAIT);
    return next;
}

static struct outcome ask_real(const struct verb *verb)
{
    static struct exchange x; /* outcomes point into it */
    struct buf out = {0};
    exchange_begin(&x, verb, NULL);
    do {
        buf_clear(&out);
        assert_true(exchange_encode(&x, &dialect, &out) > 0);
        redisAppendFormattedCommand(context, buf_head(&out), buf_len(&out));
    } while (answered(&x) == EXCHANGE_AGAIN);
    buf_free(&out);
    return x.outcome;
}

/* ------------------------------------------------------------- side by side */

/* The model's clock is the one that the real server reads. */
static bool about_to_end(const struct key *key)
{
    int64_t left = key->until_ms - server_clock_ms(&world, model);
    return left >= -SLACK_MS && left <= 2 * SLACK_MS;
}

/* Until no key is. */
static void settle(void)
{
    for (unsigned i = 0; i < NAMES_MAX;) {
        move_clock();
        if (!about_to_end(&model->data.key[i++]))
            continue;
        test_pause_ms(1);
        i = 0;
    }
}

/* What stands at the real one becomes what stands at the model. */
static void take_over(unsigned name)
{
    struct key *key = &model->data.key[name];
    char text[3][80], value[80];
    tokens_of(name, 0, text[0], text[1], text[2]);
    key->token = 0;
    if (redis_get(&server, text[0], value, sizeof(value))) {
        long long left;
        uint64_t began;
        do {
            move_clock();
            began = world.now;
            left = redis_pttl(&server, text[0]);
            move_clock();
        } while (world.now - began > SLACK_MS * MS / 2);
        key->token = strtoull(value + 24, NULL, 10);
        key->until_ms = server_clock_ms(&world, model) + left;
    }
    model->data.fence[name] = redis_get(&server, text[1], value, sizeof(value))
                                  ? strtoull(value, NULL, 10)
                                  : 0;
}

static const enum verb_kind verbs[] = {
    [MESSAGE_ACQUIRE] = VERB_ACQUIRE,
    [MESSAGE_EXTEND] = VERB_EXTEND,
    [MESSAGE_RELEASE] = VERB_RELEASE,
    [MESSAGE_LOOK] = VERB_INSPECT,
    [MESSAGE_INSPECT] = VERB_INSPECT,
    [MESSAGE_CAP] = VERB_CAP_TTL,
    [MESSAGE_RAISE] = VERB_RAISE,
};

static void show(const struct message *m, const struct outcome *real)
{
    print_error("%s n%u t%llu ttl %u: the model says %d, left %lld, number "
                "%llu; the server %d, %lld, %llu %.*s\n",
        message_name(m->kind), m->name, (unsigned long long)m->token, m->ttl_ms,
        (int)m->outcome.kind, (long long)m->outcome.left_ms,
        (unsigned long long)m->number, (int)real->kind,
        (long long)real->left_ms, (unsigned long long)real->fence,
        (int)real->text.len, real->text.data ? real->text.data : "");
}

/* counted: its number is that of the counter, and not the clock's. */
static bool same(
    const struct message *m, const struct outcome *real, bool counted)
{
    if (m->outcome.kind != real->kind)
        return false;
    if (m->outcome.left_ms >= 0 &&
        (real->left_ms < m->outcome.left_ms - 2 * SLACK_MS ||
            real->left_ms > m->outcome.left_ms + 2 * SLACK_MS))
        return false;
    bool number = (m->kind == MESSAGE_ACQUIRE || m->kind == MESSAGE_RAISE) &&
                  (real->kind == OUTCOME_GRANTED || real->kind == OUTCOME_MINE);
    if (!number)
        return true;
    uint64_t most = m->number + 2 * SLACK_MS * 1000;
    return real->fence == m->number ||
           (!counted && real->fence > m->number - 2 * SLACK_MS * 1000 &&
               real->fence < most && m->kind == MESSAGE_ACQUIRE);
}

/* Of the kind, about a name and one of its tokens. */
static struct message some_message(void)
{
    unsigned name = draw(NAMES_MAX);
    uint64_t standing = model->data.key[name].token;
    struct message m = {
        .kind = (enum message_kind)(MESSAGE_ACQUIRE + (int)draw(8)),
        .name = name,
        .token = 1 + name * TOKENS + draw(TOKENS),
        .ttl_ms = draw(3) ? 1 + draw(30) : 1000 + draw(10000)};
    if (m.kind == MESSAGE_KILL)
        m.kind = MESSAGE_RELEASE;
    if (standing && draw(2))
        m.token = standing;
    m.want_left = m.kind == MESSAGE_ACQUIRE && draw(2);
    if (m.kind == MESSAGE_RAISE)
        m.number = model->data.fence[name] + draw(10) * 1000000;
    return m;
}

static void step(void)
{
    char key[80], counter[80], value[80];
    struct message m = some_message();
    tokens_of(m.name, m.token, key, counter, value);
    struct verb verb = {.kind = verbs[m.kind],
        .key = slice_of(key),
        .token = slice_of(value),
        .ttl_ms = m.ttl_ms,
        .want_left = m.want_left,
        .fence = m.number};
    if (m.kind == MESSAGE_INSPECT)
        verb.token = (struct slice){NULL, 0};
    if (m.kind == MESSAGE_ACQUIRE || m.kind == MESSAGE_RAISE)
        verb.counter = slice_of(counter);
    settle();
    move_clock();
    uint64_t began = world.now, fence = model->data.fence[m.name];
    struct outcome real = ask_real(&verb);
    server_apply(&world, model, &m);
    move_clock();
    if (world.now - began > SLACK_MS * MS / 2) {
        left_out++;
        take_over(m.name);
        return;
    }
    compared++;
    bool counted = m.number <= fence + 2;
    if (!same(&m, &real, counted))
        show(&m, &real);
    assert_true(same(&m, &real, counted));
    if (m.kind == MESSAGE_ACQUIRE && real.kind == OUTCOME_GRANTED)
        model->data.fence[m.name] = real.fence; /* its clock's microseconds */
}

static void test_same_outcomes(void **state)
{
    (void)state;
    unsigned steps = getenv("NXLOCK_FULL") ? STEPS : STEPS_SHORT;
    const char *seed = getenv("NXLOCK_SEED");
    backoff_init(&dice, 1, 1, seed ? strtoull(seed, NULL, 10) : 1);
    for (unsigned i = 0; i < steps; i++)
        step();
    print_message("%u outcomes compared, %u left out\n", compared, left_out);
    assert_true(left_out < steps / 5);
}

/* The time since it was started, in whole seconds, as INFO gives it. */
static void test_same_uptime(void **state)
{
    (void)state;
    redis_restart(&server);
    model->started_ms = server_clock_ms(&world, model);
    int64_t end = test_now_ms() + 2500;
    while (test_now_ms() < end) {
        move_clock();
        long long before = (long long)server_uptime_s(&world, model);
        redisReply *r = redis_command(&server, "INFO", "server", NULL);
        const char *at = strstr(r->str, "uptime_in_seconds:");
        assert_non_null(at);
        long long uptime = atoll(at + 18);
        freeReplyObject(r);
        move_clock();
        long long after = (long long)server_uptime_s(&world, model);
        /* Both round, and it had been started a moment before. */
        assert_true(uptime >= before - 1 && uptime <= after + 2);
        test_pause_ms(20);
    }
}

static int begin(void **state)
{
    (void)state;
    return honest_begin(NAMES_MAX * TOKENS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_outcomes),
        cmocka_unit_test(test_same_uptime),
    };
    return cmocka_run_group_tests_name("honest", tests, begin, honest_finish);
}
