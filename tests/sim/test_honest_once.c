/* SPDX-License-Identifier: MIT */
/*
 * The records of the model server (record.h) against the scripts on a real one:
 * after the same random steps at the same time of day both have given the same
 * answers, and have the same record and key.
 */
#include "sim/honest_rig.h"

#define STEPS (getenv("NXLOCK_FULL") ? 20000u : 4000u)
#define NAMES 3
#define TOKENS 5       /* of a name */
#define SLACK_US 10000 /* a command and its roundings */
#define SLACK_MS (SLACK_US / 1000)

/* A record at some time, as both had it: the last one, and the last one before
 * that which was in doubt or in progress. */
static struct seen {
    char line[500];
    struct work_record record;
} seen[NAMES], open_before[NAMES];
/* What a failure puts back, or has put back. */
static const struct seen *back;

/* Of the real one: of what it has said of a record. */
static struct reply_values values;

static struct outcome send_verb(const struct message *m)
{
    char key[16], token[TOKEN_TEXT], fingerprint[16], result[500];
    sprintf(key, "name%u", m->name);
    sprintf(fingerprint, "%u", m->once.fingerprint);
    snprintf(result, sizeof(result), "%u", (unsigned)m->once.result);
    write_token(token, m->token);
    struct once_terms once = {.retries = m->once.retries,
        .fingerprint = slice_of(fingerprint),
        .keep_ms = m->once.keep_ms,
        .reported = m->once.verdict,
        .result = slice_of(m->once.before.state ? back->line : result),
        .line = slice_of(seen[m->name].line)};
    struct verb verb = verb_of(m, key, token);
    verb.once = &once;
    verb.values = &values;
    verb.not_after = m->once.keeps_key;
    dialect.no_line = m->plain;
    dialect.now = 1;
    reply_values_clear(&values);
    return ask_real(&verb);
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
                         "once1 %19s %79s %lld %u %u %lld %lld %lld %lld"
                         " %u %u =%u",
                         state, token, &fence, &attempt, &doubts, &first,
                         &since, &ended, &code, &late, &keep_ms, &fingerprint),
        12);
    assert_string_equal(state, states[r->state]);
    assert_int_equal(token_of(token), r->token);
    assert_int_equal(attempt, r->attempt);
    assert_int_equal(doubts, r->doubts);
    assert_int_equal(late, r->late);
    assert_int_equal(keep_ms, r->keep_ms);
    assert_int_equal(fingerprint, r->fingerprint);
    assert_true(is_near(first, r->first_ms, SLACK_MS));
    assert_true(is_near(since, r->since_ms, SLACK_MS));
    assert_true(is_near(ended, r->ended_ms, SLACK_MS));
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
        assert_true(is_near(
            keys->record_left->integer, record->until_ms - now, SLACK_MS));
    assert_int_equal(keys->key->str ? token_of(keys->key->str) : 0, token);
    if (token)
        assert_true(is_near(keys->key_left->integer,
            model->data.key[name].until_ms - now, SLACK_MS));
}

/* ------------------------------------------------------------- side by side */

/* A key or a record ends in a moment. */
static bool unsteady(void)
{
    bool ends = false;
    for (unsigned i = 0; i < NAMES; i++)
        ends |= ends_soon(model->data.key[i].until_ms, SLACK_US) ||
                ends_soon(model->data.record[i].until_ms, SLACK_US);
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
    forget_data();
    memset(seen, 0, sizeof(seen));
    memset(open_before, 0, sizeof(open_before));
}

/* Somebody deletes a key, or has it by a wait in line. */
static void disturb(void)
{
    unsigned name = draw(NAMES);
    char token[TOKEN_TEXT];
    struct key *key = &model->data.key[name];
    key->token = draw(3) ? 0 : 1 + name * TOKENS + draw(TOKENS);
    freeReplyObject(redisCommand(context, "DEL name%u", name));
    if (!key->token)
        return;
    write_token(token, key->token);
    move_clock();
    key->until_ms = server_clock_ms(&world, model) + 1000;
    freeReplyObject(
        redisCommand(context, "SET name%u %s PX 1000", name, token));
    uint64_t began = world.now;
    move_clock();
    if (world.now - began > SLACK_US * 1000 / 4)
        forget_all(); /* when it expires is not known well enough */
}

static bool step(unsigned i)
{
    (void)i;
    if (draw(6) == 0)
        disturb();
    if (draw(60) == 0)
        test_pause_ms((int)draw(200));
    struct message m = some_message();
    do
        move_clock();
    while (unsteady());
    uint64_t began = world.now;
    struct outcome real = send_verb(&m);
    server_apply(&world, model, &m);
    struct keys keys = keys_of(m.name);
    move_clock();
    bool compared = world.now - began < SLACK_US * 1000 / 2;
    if (compared) {
        assert_same_outcome(&m, &real, SLACK_MS);
        assert_same_keys(m.name, &keys);
        if (real.kind == OUTCOME_RECORDED && real.found == FOUND_DONE)
            assert_int_equal(
                atoll(reply_values_at(&values, 3).data), m.once.record.result);
    }
    free_keys(&keys);
    return compared;
}

static void test_same_record(void **state)
{
    (void)state;
    honest_play(STEPS, step, forget_all);
}

static int begin(void **state)
{
    (void)state;
    return honest_begin(NAMES * TOKENS);
}

static int finish(void **state)
{
    reply_values_free(&values);
    return honest_finish(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_record),
    };
    return cmocka_run_group_tests_name("honest_once", tests, begin, finish);
}
