/* SPDX-License-Identifier: MIT */
/*
 * The life of a lock with work that must be done once: what begin, look, tell
 * and forget make the machine do, and who takes a begin back that its caller
 * never knew of.
 */
#include "support/test.h"

#include "core/life.h"
#include "unit/core_rig.h"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define TTL_MS 1000 /* relied on for 988 ms */
static struct life l;
static struct line line;
static struct messages messages;
static struct peer peer;
static uint64_t now, sent_at;
static bool queues, no_token, unsent;
static char trace[1024];

static void add(const char *word)
{
    size_t len = strlen(trace);
    assert_true(len + strlen(word) + 2 < sizeof(trace));
    snprintf(trace + len, sizeof(trace) - len, "%s%s", len ? " " : "", word);
}

/* ----------------------------------------------------------------- outputs */

/* Sb: BEGIN is sent; B BEGIN with a key that may hold the token, l LOOK, t
 * TELL, k TELL that keeps the key, p TELL without a hand-over, f FORGET. */
static void add_send(const struct verb *verb)
{
    static const char letters[] = {[VERB_BEGIN] = 'b',
        [VERB_READ_RECORD] = 'l',
        [VERB_TELL] = 't',
        [VERB_FORGET] = 'f',
        [VERB_JOIN] = 'j',
        [VERB_STAY] = 's',
        [VERB_RELEASE] = 'r',
        [VERB_ACQUIRE] = 'a'};
    char letter = letters[verb->kind];
    if (verb->kind == VERB_BEGIN) {
        letter = verb->may_hold_token ? 'B' : 'b';
        assert_int_equal(verb->ttl_ms, TTL_MS);
    }
    if (verb->kind == VERB_TELL)
        letter = verb->gap_ms ? 'p' : verb->ttl_ms > 0 ? 'k' : 't';
    bool late = verb->kind == VERB_TELL && verb_past_use(verb, now);
    assert_false(verb->kind == VERB_TELL && verb_too_late(verb, now));
    add((char[]){'S', letter, late ? '-' : '\0', '\0'});
    sent_at = now;
}

static void carry_out(const struct action *action)
{
    static const char *const words[] = {
        [ACTION_TOKEN] = "T",
        [ACTION_UNDO] = "U",
        [ACTION_ABANDON] = "L",
        [ACTION_CLEAN] = "C",
        [ACTION_LINE] = "?",
    };
    if (action->kind == ACTION_SEND)
        add_send(&action->verb);
    else if (action->kind == ACTION_CLEAN && l.clean_begun)
        add(l.clean_until == NEVER ? "CB" : "CB!");
    else
        add(words[action->kind]);
    if (action->kind == ACTION_LINE && queues)
        life_line_up(&l, &line, &messages, now);
    if (action->kind == ACTION_TOKEN && no_token)
        life_no_token(&l);
    if ((action->kind == ACTION_UNDO || action->kind == ACTION_ABANDON) &&
        unsent)
        life_withdrawn(&l, action);
}

static const char *const results[] = {
    [LIFE_OK] = "=ok",
    [LIFE_BUSY] = "=busy",
    [LIFE_FREE] = "=free",
    [LIFE_DONE] = "=done",
    [LIFE_DOUBT] = "=doubt",
    [LIFE_MISMATCH] = "=mismatch",
    [LIFE_LOST] = "=lost",
    [LIFE_UNKNOWN] = "=unknown",
    [LIFE_FAULT] = "=fault",
    [LIFE_CANCELLED] = "=cancelled",
};

static void drain(void)
{
    struct action action;
    while (life_next(&l, &action, now))
        carry_out(&action);
    while (life_event(&l) != LIFE_NOTHING)
        add(results[l.result]);
}

/* ------------------------------------------------------------------ inputs */

/* g granted, b busy, D done, O in doubt, M mismatch, Y in progress, e free, m
 * mine, n not mine, y not mine but in progress, w in line, f refused, z silent,
 * d a doubt, u a connection that was lost. */
static bool answer(const char *word)
{
    static const struct {
        char letter;
        struct outcome outcome;
    } all[] = {
        {'g', {.kind = OUTCOME_GRANTED, .fence = 8}},
        {'b', {.kind = OUTCOME_BUSY, .left_ms = 600}},
        {'w', {.kind = OUTCOME_BUSY, .left_ms = 600, .connection = 1}},
        {'D', {.kind = OUTCOME_RECORDED, .found = FOUND_DONE}},
        {'O', {.kind = OUTCOME_RECORDED, .found = FOUND_DOUBT}},
        {'M', {.kind = OUTCOME_RECORDED, .found = FOUND_MISMATCH}},
        {'Y', {.kind = OUTCOME_RECORDED, .found = FOUND_BUSY}},
        {'e', {.kind = OUTCOME_FREE}},
        {'m', {.kind = OUTCOME_MINE}},
        {'n', {.kind = OUTCOME_NOT_MINE}},
        {'y', {.kind = OUTCOME_NOT_MINE, .found = FOUND_BUSY}},
        {'f', {.kind = OUTCOME_FAULT, .fault = FAULT_NO_PERMISSION}},
        {'z', {.kind = OUTCOME_FAULT, .fault = FAULT_TIMEOUT}},
        {'d', {.kind = OUTCOME_FAULT, .fault = FAULT_SERVER, .unsure = true}},
        {'u', {.kind = OUTCOME_FAULT,
                  .fault = FAULT_UNREACHABLE,
                  .unsure = true}},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (*word != all[i].letter || word[1] != '\0')
            continue;
        struct outcome o = all[i].outcome;
        o.sent_at = sent_at;
        life_outcome(&l, TRACK_CALL, 0, &o, now);
        return true;
    }
    return false;
}

static void call(const char *word)
{
    bool begun = true;
    if (!strcmp(word, "begin")) /* and does not wait */
        life_begin(&l, 0, 7, now);
    else if (!strcmp(word, "wait"))
        life_begin(&l, 2 * NS_PER_S, 7, now);
    else if (!strcmp(word, "acquire"))
        life_acquire(&l, 0, 7, now);
    else if (!strcmp(word, "look"))
        life_query(&l, CALL_READ_RECORD, 7, now);
    else if (!strcmp(word, "forget"))
        life_query(&l, CALL_FORGET, 7, now);
    else if (!strcmp(word, "tell"))
        begun = life_tell(&l, ONCE_DONE, true, 7, now);
    else if (!strcmp(word, "tellfailed"))
        begun = life_tell(&l, ONCE_FAILED, true, 7, now);
    else if (!strcmp(word, "confirm")) /* what was found in doubt */
        begun = life_tell(&l, ONCE_DONE, false, 7, now);
    else if (!strcmp(word, "clear"))
        begun = life_tell(&l, ONCE_CLEAR, true, 7, now);
    else if (!strcmp(word, "release"))
        begun = life_release(&l, 7, now);
    else if (!strcmp(word, "cancel"))
        life_cancel(&l);
    else if (!strcmp(word, "free")) {
        life_discard(&l);
        drain();
        life_end_lease(&l, now);
    } else
        fail_msg("no such step: %s", word);
    if (!begun)
        add("over");
}

static void step(const char *word)
{
    if (*word == '@') { /* ms since the beginning */
        now = T0 + strtoull(word + 1, NULL, 10) * MS;
    } else if (!strcmp(word, "wake")) {
        now = later(now, l.wake);
        life_tick(&l, now);
    } else if (!strcmp(word, "told")) { /* the caller gets the result */
        if (life_grant_expired(&l, now))
            life_drop_expired(&l, now);
        else
            life_seen(&l);
        add(results[l.result]);
    } else if (!strcmp(word, "held")) {
        add(lease_held(&l.lease, now) ? "held" : "not");
    } else if (!strcmp(word, "message")) {
        if (life_in_line(&l))
            line_on_granted(&line, 1, now);
    } else if (!answer(word)) {
        call(word);
    }
    drain();
}

/* ---------------------------------------------------------------- the table */

struct scene {
    const char *name, *steps, *does;
    bool queues, no_token, unsent;
    uint32_t min_hold_ms;
};

static unsigned play(const struct scene *s)
{
    static struct renewal renewal;
    static struct ballot ballots[LIFE_BALLOTS];
    char steps[256], *rest = NULL;
    struct life_terms terms = {.servers = 1,
        .peers = &peer,
        .ttl_ms = TTL_MS,
        .min_hold_ms = s->min_hold_ms,
        .max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .max_hold_ns = NEVER,
        .timeout_ns = 2000 * MS,
        .retry_first_ns = 10 * MS,
        .retry_max_ns = 100 * MS};
    now = T0;
    queues = s->queues;
    no_token = s->no_token;
    unsent = s->unsent;
    trace[0] = '\0';
    peer = (struct peer){PEER_UP, 0};
    messages = (struct messages){MESSAGES_UP, 1};
    line = (struct line){0};
    renewal = (struct renewal){0};
    memset(ballots, 0, sizeof(ballots));
    l = (struct life){0};
    life_init(&l, &terms, ballots, &renewal);
    snprintf(steps, sizeof(steps), "%s", s->steps);
    for (char *word = strtok_r(steps, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        step(word);
    bool same = strcmp(trace, s->does) == 0;
    if (!same)
        print_error("%s (%s):\n  does  %s\n  wants %s\n", s->name, s->steps,
            trace, s->does);
    return !same;
}

static void play_all(const struct scene *scenes, size_t count)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += play(&scenes[i]);
    assert_int_equal(wrong, 0);
}

#define PLAY(scenes) play_all(scenes, sizeof(scenes) / sizeof(*(scenes)))

static void beginning(void **state)
{
    static const struct scene scenes[] = {
        {"begun", "begin g told", "T Sb =ok =ok"},
        {"busy", "begin b", "T Sb =busy"},
        {"done", "begin D", "T Sb =done"},
        {"in doubt", "begin O", "T Sb =doubt"},
        {"another fingerprint", "begin M", "T Sb =mismatch"},
        {"a record ends the wait", "wait b wake D", "T Sb ? Sb =done"},
        {"refused: nothing is left there", "begin f", "T Sb =fault"},
        {"perhaps applied: taken back", "begin d", "T Sb U =unknown"},
        {"... unless it was never sent", "begin @988 wake", "T Sb U =fault",
            .unsent = true},
        {"too late: taken back", "begin @988 g", "T Sb U =lost"},
        {"cancelled", "begin cancel", "T Sb U =cancelled"},
        {"no token", "begin", "T =fault", .no_token = true},
    };
    (void)state;
    PLAY(scenes);
}

/* Nobody knows of it, so it is taken back, whenever that is. */
static void unseen(void **state)
{
    static const struct scene scenes[] = {
        {"freed", "begin g free", "T Sb =ok CB"},
        {"freed after the lease", "begin g @1500 free", "T Sb =ok CB"},
        {"freed in the minimum hold", "begin g free", "T Sb =ok CB",
            .min_hold_ms = 500},
        {"begun anew", "begin g begin", "T Sb =ok CB T Sb"},
        {"told too late", "begin g @988 told free", "T Sb =ok =lost CB"},
        {"seen: the key alone is removed", "begin g told free",
            "T Sb =ok =ok C"},
        {"seen: after the lease nothing is", "begin g told @988 free",
            "T Sb =ok =ok"},
        {"seen: the minimum hold stays", "begin g told free", "T Sb =ok =ok",
            .min_hold_ms = 500},
        {"seen: told too late once more", "begin g told @988 told free",
            "T Sb =ok =ok =lost"},
    };
    (void)state;
    PLAY(scenes);
}

/* The line has granted the lock: one more BEGIN, with the same token. */
static void after_a_wait(void **state)
{
    static const struct scene scenes[] = {
        {"begun", "wait b w message g", "T Sb ? Sj SB =ok", true},
        {"done meanwhile", "wait b w message D", "T Sb ? Sj SB =done", true},
        {"in doubt", "wait b w message O", "T Sb ? Sj SB =doubt", true},
        {"taken meanwhile: again", "wait b w message b", "T Sb ? Sj SB ? T Sj",
            true},
        {"refused: given back", "wait b w message f", "T Sb ? Sj SB U =unknown",
            true},
        {"silent: given back", "wait b w message @1600 wake", "T Sb ? Sj SB U",
            true},
        {"cancelled: given back", "wait b w message cancel",
            "T Sb ? Sj SB U =cancelled", true},
        {"freed: given back", "wait b w message free",
            "T Sb ? Sj SB U =cancelled", true},
        {"begun, never known: taken back", "wait b w message g free",
            "T Sb ? Sj SB =ok CB", true},
        {"granted by the JOIN", "wait b g g", "T Sb ? Sj SB =ok", true},
    };
    (void)state;
    PLAY(scenes);
}

static void telling(void **state)
{
    static const struct scene scenes[] = {
        {"told, and released", "begin g told tell m held",
            "T Sb =ok =ok St =ok not"},
        {"somebody else has begun", "begin g told tell n",
            "T Sb =ok =ok St =lost"},
        {"after the lease: the key is left alone", "begin g told @988 tell m",
            "T Sb =ok =ok St- =ok"},
        {"the minimum hold: the key stays", "begin g told tell m",
            "T Sb =ok =ok Sk =ok", .min_hold_ms = 500},
        {"... is over", "begin g told @500 tell m", "T Sb =ok =ok St =ok",
            .min_hold_ms = 500},
        {"refused: said again", "begin g told tell f tell m",
            "T Sb =ok =ok St =fault St =ok"},
        {"unknown: said again", "begin g told tell d tell m",
            "T Sb =ok =ok St =unknown St =ok"},
        {"a lost connection: said again at once", "begin g told tell u wake m",
            "T Sb =ok =ok St St =ok"},
        {"... by order, another one's", "begin g told tell u wake n",
            "T Sb =ok =ok St St =lost"},
        {"... which may be what a failure allowed",
            "begin g told tellfailed u wake n", "T Sb =ok =ok St St =unknown"},
        {"silent", "begin g told tell @2000 wake",
            "T Sb =ok =ok St L =unknown"},
        {"never sent", "begin g told tell @2000 wake",
            "T Sb =ok =ok St L =fault", .unsent = true},
        {"cancelled", "begin g told tell cancel",
            "T Sb =ok =ok St L =cancelled"},
        {"freed: the key is removed", "begin g told tell free",
            "T Sb =ok =ok St L =cancelled C"},
        {"unknown, and freed", "begin g told tell d free",
            "T Sb =ok =ok St =unknown C"},
        {"not renewed or released again", "begin g told tell m free",
            "T Sb =ok =ok St =ok"},
        {"of what was found in doubt: no key", "begin O confirm m",
            "T Sb =doubt St- =ok"},
        {"... and that was lost", "begin O confirm n free",
            "T Sb =doubt St- =lost"},
    };
    (void)state;
    PLAY(scenes);
}

static void clearing(void **state)
{
    static const struct scene scenes[] = {
        {"goes on", "begin g told clear m held tell m",
            "T Sb =ok =ok St =ok held St =ok"},
        {"after the lease", "begin g told @988 clear", "T Sb =ok =ok over"},
        {"refused: the lease is over", "begin g told clear n held tell m",
            "T Sb =ok =ok St =lost not St =ok"},
        {"unknown: it goes on", "begin g told clear d held",
            "T Sb =ok =ok St =unknown held"},
        {"in the minimum hold", "begin g told clear m", "T Sb =ok =ok St =ok",
            .min_hold_ms = 500},
    };
    (void)state;
    PLAY(scenes);
}

static void looking(void **state)
{
    static const struct scene scenes[] = {
        {"free", "look e", "Sl =free"},
        {"done", "look D", "Sl =done"},
        {"in doubt", "look O", "Sl =doubt"},
        {"mismatch", "look M", "Sl =mismatch"},
        {"in progress", "look Y", "Sl =busy"},
        {"no answer", "look @2000 wake", "Sl L =fault"},
        {"forgotten", "forget m", "Sf =ok"},
        {"not there any more", "forget n", "Sf =free"},
        {"in progress: not forgotten", "forget y", "Sf =busy"},
        {"after a try that may have been applied", "forget u wake n",
            "Sf Sf =unknown"},
        {"unknown, and nothing to undo", "forget @2000 wake", "Sf L =unknown"},
        {"never sent", "forget @2000 wake", "Sf L =fault", .unsent = true},
    };
    (void)state;
    PLAY(scenes);
}

/* A verdict after a long hold leaves a gap, as a release does. */
static void the_gap(void **state)
{
    static const uint64_t held_ms[] = {900, 15000};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene s = {.name = "gap",
            .steps = "wait b w message g told",
            .does = "T Sb ? Sj SB =ok =ok",
            .queues = true};
        assert_int_equal(play(&s), 0);
        uint64_t at = l.lease.granted_at + held_ms[i] * MS;
        struct action action;
        lease_extend(&l.lease, at + NS_PER_S);
        assert_true(life_tell(&l, ONCE_DONE, true, 1, at));
        assert_true(life_next(&l, &action, at));
        assert_int_equal(action.kind, ACTION_SEND);
        assert_int_equal(action.verb.gap_ms, i == 0 ? 0 : 200);
        assert_true(action.verb.has_waiters_behind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beginning),
        cmocka_unit_test(unseen),
        cmocka_unit_test(after_a_wait),
        cmocka_unit_test(telling),
        cmocka_unit_test(clearing),
        cmocka_unit_test(looking),
        cmocka_unit_test(the_gap),
    };
    return cmocka_run_group_tests_name("life of once", tests, NULL, NULL);
}
