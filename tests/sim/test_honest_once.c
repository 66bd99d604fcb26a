/* SPDX-License-Identifier: MIT */
/*
 * The records of the model server (record.h) against the scripts on a real one:
 * after the same random steps at the same time of day both have given the same
 * answers, and have the same record and key. What took too long cannot be
 * compared; that is rare, and counted.
 */
#include "sim/honest_rig.h"

#define STEPS (getenv("NXLOCK_FULL") ? 20000 : 4000)
#define NAMES 3
#define TOKENS 5       /* of a name */
#define SLACK_US 10000 /* a command and its roundings */

/* A record at some time, as both had it: the last one, and the last one before
 * that which was in doubt or in progress. */
static struct seen {
    char line[500];
    struct work_record record;
} seen[NAMES], open_before[NAMES];
/* What a failure puts back, or has put back. */
static const struct seen *back;

/* --------------------------------------------------------------- the scripts
 */

static redisReply *eval_begin(const struct message *m)
{
    const char *mode = m->kind == MESSAGE_LOOK_ONCE ? "look"
                       : m->once.retries            ? "retry"
                                                    : "halt";
    return redisCommand(context,
        "EVAL %s 3 name%u {name%u}:once {name%u}:f token%u %u %s %u =%u 60000"
        " %s {name%u}:nxl-w",
        scripts[SCRIPT_BEGIN].body.data, m->name, m->name, m->name,
        (unsigned)m->token, m->ttl_ms, mode, m->once.keep_ms,
        m->once.fingerprint, "-", m->name);
}

static redisReply *eval_tell(const struct message *m)
{
    static const char *const verdicts[] = {[ONCE_DONE] = "done",
        [ONCE_FAILED] = "failed",
        [ONCE_DOUBT] = "unsure",
        [ONCE_CLEAR] = "clear"};
    bool tells = m->kind == MESSAGE_TELL;
    char result[500];
    snprintf(result, sizeof(result), "%u", (unsigned)m->once.result);
    return redisCommand(context,
        "EVAL %s 2 name%u {name%u}:once token%u %s 0 %u =%u %d %s "
        "{name%u}:nxl-w"
        " %s",
        scripts[SCRIPT_TELL].body.data, m->name, m->name, (unsigned)m->token,
        tells ? verdicts[m->once.verdict] : "unbegun", m->once.keep_ms,
        m->once.fingerprint, m->once.keeps_key ? -1 : (int)m->ttl_ms, "-",
        m->name, m->once.before.state ? back->line : result);
}

static redisReply *eval(const struct message *m)
{
    switch (m->kind) {
    case MESSAGE_BEGIN:
    case MESSAGE_LOOK_ONCE:
        return eval_begin(m);
    case MESSAGE_FORGET:
        return redisCommand(context, "EVAL %s 2 name%u {name%u}:once %s",
            scripts[SCRIPT_FORGET].body.data, m->name, m->name,
            seen[m->name].line);
    default:
        return eval_tell(m);
    }
}

/* ------------------------------------------------------------------ answers
 */

/* The code of the script's answer that the model's outcome stands for. */
static long long code_of(const struct message *m)
{
    static const long long found[] = {[FOUND_NOTHING] = 0,
        [FOUND_DONE] = 2,
        [FOUND_DOUBT] = 3,
        [FOUND_MISMATCH] = 4,
        [FOUND_BUSY] = 5};
    const struct outcome *o = &m->outcome;
    if (m->kind == MESSAGE_FORGET && o->found == FOUND_BUSY)
        return -1;
    if (o->kind == OUTCOME_GRANTED || o->kind == OUTCOME_MINE)
        return 1;
    return o->kind == OUTCOME_BUSY ? 5 : found[o->found];
}

static void assert_same_answer(const struct message *m, const redisReply *r)
{
    bool array = r->type == REDIS_REPLY_ARRAY;
    long long code = array ? r->element[0]->integer : r->integer;
    if (code != code_of(m))
        fail_msg("%s of token%u: %lld here, %lld there", message_name(m->kind),
            (unsigned)m->token, code_of(m), code);
    if (code == 2 && array)
        assert_int_equal(atoll(r->element[3]->str), m->once.record.result);
}

static void assert_same_number(long long one, long long other, long long slack)
{
    assert_in_range(
        one + 1000000, other + 1000000 - slack, other + 1000000 + slack);
}

static void assert_same_record(unsigned name, const redisReply *text)
{
    static const char *const states[] = {
        "", "begun", "doubt", "done", "failed"};
    const struct work_record *r = record_of(&world, model, name);
    char state[20], token[80];
    unsigned attempt, doubts, late, keep_ms, fingerprint;
    long long fence, first, since, ended, code;
    if (r->state == ONCE_NONE || !text->str) {
        assert_int_equal(r->state == ONCE_NONE, !text->str);
        return;
    }
    assert_int_equal(sscanf(text->str,
                         "once1 %19s token%79s %lld %u %u %lld %lld %lld %lld"
                         " %u %u =%u",
                         state, token, &fence, &attempt, &doubts, &first,
                         &since, &ended, &code, &late, &keep_ms, &fingerprint),
        12);
    assert_string_equal(state, states[r->state]);
    assert_int_equal(atoi(token), r->token);
    assert_int_equal(attempt, r->attempt);
    assert_int_equal(doubts, r->doubts);
    assert_int_equal(late, r->late);
    assert_int_equal(keep_ms, r->keep_ms);
    assert_int_equal(fingerprint, r->fingerprint);
    assert_same_number(first, r->first_ms, SLACK_US / 1000);
    assert_same_number(since, r->since_ms, SLACK_US / 1000);
    assert_same_number(ended, r->ended_ms, SLACK_US / 1000);
    struct seen last = {.record = *r};
    snprintf(last.line, sizeof(last.line), "%.*s",
        (int)strcspn(text->str, "\n"), text->str);
    if (record_is_open(&seen[name].record) &&
        strcmp(last.line, seen[name].line) != 0)
        open_before[name] = seen[name];
    seen[name] = last;
}

/* What a name has at the real one. */
struct keys {
    redisReply *record, *record_left, *key, *key_left;
};

static struct keys keys_of(unsigned name)
{
    return (struct keys){
        redisCommand(context, "GET {name%u}:once", name),
        redisCommand(context, "PTTL {name%u}:once", name),
        redisCommand(context, "GET name%u", name),
        redisCommand(context, "PTTL name%u", name),
    };
}

static void free_keys(struct keys *keys)
{
    freeReplyObject(keys->record);
    freeReplyObject(keys->record_left);
    freeReplyObject(keys->key);
    freeReplyObject(keys->key_left);
}

static void assert_same_keys(unsigned name, const struct keys *keys)
{
    int64_t now = server_clock_ms(&world, model);
    const struct work_record *record = &model->data.record[name];
    uint64_t token = server_value(&world, model, name);
    assert_same_record(name, keys->record);
    if (record->state != ONCE_NONE && record->until_ms == 0)
        assert_int_equal(keys->record_left->integer, -1);
    else if (record->state != ONCE_NONE)
        assert_same_number(keys->record_left->integer, record->until_ms - now,
            SLACK_US / 1000);
    assert_int_equal(keys->key->str ? atoi(keys->key->str + 5) : 0, token);
    if (token)
        assert_same_number(keys->key_left->integer,
            model->data.key[name].until_ms - now, SLACK_US / 1000);
}

/* ------------------------------------------------------------- side by side */

static bool is_near(int64_t until_ms, int64_t now_us)
{
    int64_t left_us = until_ms * 1000 - now_us;
    return left_us > -SLACK_US && left_us < 2 * SLACK_US;
}

/* A key or a record ends in a moment. */
static bool unsteady(void)
{
    int64_t now_us = server_clock_us(&world, model);
    bool ends = false;
    for (unsigned i = 0; i < NAMES; i++)
        ends |= is_near(model->data.key[i].until_ms, now_us) ||
                is_near(model->data.record[i].until_ms, now_us);
    return ends;
}

/* Whether two records are the same depends on their times, in ms. Where the
 * two servers' differ by one, only one of them may see a difference. */
static bool same_at_both(unsigned name)
{
    bool same = record_is_same(&back->record, &seen[name].record);
    return same == (strcmp(back->line, seen[name].line) == 0);
}

static struct message some_message(void)
{
    static const enum message_kind kinds[] = {MESSAGE_BEGIN, MESSAGE_BEGIN,
        MESSAGE_BEGIN, MESSAGE_TELL, MESSAGE_TELL, MESSAGE_TELL,
        MESSAGE_LOOK_ONCE, MESSAGE_FORGET, MESSAGE_UNBEGIN};
    static const enum once_state told[] = {
        ONCE_DONE, ONCE_FAILED, ONCE_DOUBT, ONCE_CLEAR};
    unsigned name = draw(NAMES), kind = draw(9);
    struct message m = {.kind = kinds[kind],
        .name = name,
        .token = 1 + name * TOKENS + draw(TOKENS),
        .ttl_ms = draw(2) ? 60 + draw(100) : 2000,
        .plain = true};
    uint64_t own = model->data.record[name].token;
    if (m.kind != MESSAGE_BEGIN && own && draw(2))
        m.token = own;
    if (m.kind == MESSAGE_TELL && draw(4))
        m.ttl_ms = 0;
    if (m.kind == MESSAGE_UNBEGIN)
        m.ttl_ms = 0;
    m.once = (struct once_part){.retries = draw(2),
        .keeps_key = m.kind == MESSAGE_TELL && draw(4) == 0,
        .fingerprint = draw(8) ? 1 : 2,
        .verdict = told[draw(4)],
        .result = draw(1000),
        .keep_ms = draw(2) ? 100 : 1000,
        .record = seen[name].record};
    back = draw(4) ? &open_before[name] : &seen[name];
    if (m.kind == MESSAGE_TELL && m.once.verdict == ONCE_FAILED && draw(2) &&
        same_at_both(name))
        m.once.before = back->record;
    return m;
}

static void forget_all(void)
{
    freeReplyObject(redis_command(&server, "FLUSHALL", NULL));
    model->data = (struct data){0};
    memset(seen, 0, sizeof(seen));
    memset(open_before, 0, sizeof(open_before));
}

/* Somebody deletes a key, or has it by a wait in line. */
static void disturb(void)
{
    unsigned name = draw(NAMES);
    struct key *key = &model->data.key[name];
    key->token = draw(3) ? 0 : 1 + name * TOKENS + draw(TOKENS);
    freeReplyObject(redisCommand(context, "DEL name%u", name));
    if (!key->token)
        return;
    move_clock();
    key->until_ms = server_clock_ms(&world, model) + 1000;
    freeReplyObject(redisCommand(
        context, "SET name%u token%u PX 1000", name, (unsigned)key->token));
    uint64_t began = world.now;
    move_clock();
    if (world.now - began > SLACK_US * 1000 / 4)
        forget_all(); /* when it expires is not known well enough */
}

/* False: it took so long that it cannot be compared. */
static bool compare(void)
{
    struct message m = some_message();
    do {
        move_clock();
    } while (unsteady());
    uint64_t began = world.now;
    redisReply *r = eval(&m);
    if (!r || r->type == REDIS_REPLY_ERROR)
        fail_msg("%s", r ? r->str : context->errstr);
    server_apply(&world, model, &m);
    struct keys keys = keys_of(m.name);
    move_clock();
    bool compared = world.now - began < SLACK_US * 1000 / 2;
    if (compared) {
        assert_same_answer(&m, r);
        assert_same_keys(m.name, &keys);
    }
    free_keys(&keys);
    freeReplyObject(r);
    return compared;
}

static void test_same_record(void **state)
{
    (void)state;
    unsigned left_out = 0, steps = (unsigned)STEPS;
    const char *seed = getenv("NXLOCK_SEED");
    backoff_init(&dice, 1, 1, seed ? strtoull(seed, NULL, 10) : 1);
    for (unsigned i = 0; i < steps; i++) {
        if (draw(6) == 0)
            disturb();
        if (draw(60) == 0)
            test_pause_ms((int)draw(200));
        if (!compare()) {
            left_out++;
            forget_all();
        }
    }
    print_message("%u steps compared, %u left out\n", steps, left_out);
    assert_true(left_out < steps / 5);
}

/* ------------------------------------------------------ beginning and ending
 */

static int begin(void **state)
{
    (void)state;
    return honest_begin(NAMES * TOKENS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_record),
    };
    return cmocka_run_group_tests_name(
        "honest_once", tests, begin, honest_finish);
}
