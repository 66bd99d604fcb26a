/* SPDX-License-Identifier: MIT */
/*
 * The model server against a real one: the same random commands, carried out
 * by both at the same time of day, have the same outcomes. So the simulation
 * cannot prove something about a server that does not exist.
 */
#include "sim/honest_rig.h"

#define STEPS (getenv("NXLOCK_FULL") ? 100000u : 20000u)
#define TOKENS 3
#define SLACK_MS 3 /* roundings, and the way of a command */

static bool unsteady(void)
{
    bool ends = false;
    for (unsigned i = 0; i < NAMES_MAX; i++)
        ends |= ends_soon(model->data.key[i].until_ms, SLACK_MS * 1000);
    return ends;
}

/* ACQUIRE that was granted, RAISE. counted: the number is that of the counter,
 * and not the clock's. */
static void assert_same_number(
    const struct message *m, const struct outcome *real, bool counted)
{
    uint64_t slack = counted || m->kind == MESSAGE_RAISE ? 0 : 6000;
    if (real->fence < m->number - slack || real->fence > m->number + slack)
        fail_msg("%s of n%u t%llu: the model gives the number %llu, the server "
                 "%llu",
            message_name(m->kind), m->name, (unsigned long long)m->token,
            (unsigned long long)m->number, (unsigned long long)real->fence);
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
        m.number = model->data.fence[name] / (1 + draw(2)) + draw(10) * 1000000;
    return m;
}

static bool step(unsigned i)
{
    (void)i;
    char key[80], counter[80], value[TOKEN_TEXT];
    struct message m = some_message();
    sprintf(key, "name%u", m.name);
    sprintf(counter, "{name%u}:f", m.name);
    write_token(value, m.token);
    struct verb verb = verb_of(&m, key, m.kind == MESSAGE_INSPECT ? "" : value);
    verb.fence = m.number;
    bool numbered = m.kind == MESSAGE_ACQUIRE || m.kind == MESSAGE_RAISE;
    if (numbered)
        verb.counter = slice_of(counter);
    do
        move_clock();
    while (unsteady());
    uint64_t began = world.now, fence = model->data.fence[m.name];
    struct outcome real = ask_real(&verb);
    server_apply(&world, model, &m);
    move_clock();
    if (world.now - began > SLACK_MS * MS / 2)
        return false;
    assert_same_outcome(&m, &real, 2 * SLACK_MS);
    if (numbered && outcome_wrote(&real))
        assert_same_number(&m, &real, m.number <= fence + 2);
    if (m.kind == MESSAGE_ACQUIRE && real.kind == OUTCOME_GRANTED)
        model->data.fence[m.name] = real.fence; /* its clock's microseconds */
    return true;
}

static void test_same_outcomes(void **state)
{
    (void)state;
    honest_play(STEPS, step, forget_data);
}

/* The time since it was started, in whole seconds, as INFO gives it. */
static void test_same_uptime(void **state)
{
    (void)state;
    move_clock();
    model->started_ms = server_clock_ms(&world, model);
    redis_restart(&server);
    move_clock();
    int64_t took_ms = server_clock_ms(&world, model) - model->started_ms;
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
        /* Both round, and it was started while that took so long. */
        assert_true(
            uptime >= before - 1 - took_ms / 1000 && uptime <= after + 1);
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
