/* SPDX-License-Identifier: MIT */
/*
 * The life of a lock, driven by scripts: what each call, outcome and moment
 * makes the machine do. For what the simulator does not reach, or would not
 * notice if it were otherwise.
 */
#include "support/test.h"

#include "core/life.h"
#include "unit/core_rig.h"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define TTL_MS 1000 /* relied on for 988 ms; renewed ones for 938 ms */
static struct life l;
static struct renewal renewal;
static struct peer peers[MAX_SERVERS];
static uint64_t now, sent_at[TRACKS][MAX_SERVERS];
static bool no_token, not_claimed;
static char trace[1024];
static unsigned wrong, unsent; /* servers that nothing leaves for, by bits */

static void add(const char *word)
{
    size_t len = strlen(trace);
    assert_true(len + strlen(word) + 2 < sizeof(trace));
    snprintf(trace + len, sizeof(trace) - len, "%s%s", len ? " " : "", word);
}

/* ----------------------------------------------------------------- outputs */

/* Sa0: acquire at server 0; e extend, r release, i inspect, c cap, f fence. */
static void add_action(const struct action *action)
{
    static const char verbs[] = {[VERB_ACQUIRE] = 'a',
        [VERB_EXTEND] = 'e',
        [VERB_RELEASE] = 'r',
        [VERB_INSPECT] = 'i',
        [VERB_CAP_TTL] = 'c',
        [VERB_RAISE] = 'f'};
    static const char kinds[] = {[ACTION_TOKEN] = 'T',
        [ACTION_SEND] = 'S',
        [ACTION_SKIP] = 'K',
        [ACTION_UNDO] = 'U',
        [ACTION_ABANDON] = 'L',
        [ACTION_CLEAN] = 'C',
        [ACTION_CLAIM] = 'A',
        [ACTION_ADOPT] = 'M'};
    const char *track = action->track == TRACK_RENEWAL ? "r" : "";
    char word[16];
    if (action->kind == ACTION_TOKEN)
        snprintf(word, sizeof(word), "T");
    else if (action->kind == ACTION_SEND)
        snprintf(word, sizeof(word), "%sS%c%u", track, verbs[action->verb.kind],
            action->server);
    else
        snprintf(word, sizeof(word), "%s%c%u", track, kinds[action->kind],
            action->server);
    add(word);
}

static const char *const results[] = {
    [LIFE_OK] = "=ok",
    [LIFE_BUSY] = "=busy",
    [LIFE_FREE] = "=free",
    [LIFE_LOST] = "=lost",
    [LIFE_UNKNOWN] = "=unknown",
    [LIFE_FAULT] = "=fault",
    [LIFE_CANCELLED] = "=cancelled",
};

static const char *loss_word(void)
{
    static const char *const words[] = {
        [LOSS_NO_ANSWER] = "loss:unheard",
        [LOSS_MAX_HOLD] = "loss:max_hold",
        [LOSS_STOPPED] = "loss:stopped",
        [LOSS_TOKEN_GONE] = "loss:refuted",
    };
    if (renewal.loss == LOSS_TOKEN_GONE &&
        renewal.inspect_verdict == VERDICT_YES)
        return "loss:taken";
    if (renewal.loss == LOSS_TOKEN_GONE &&
        renewal.inspect_verdict == VERDICT_NO)
        return "loss:removed";
    return words[renewal.loss];
}

static void drain(void)
{
    struct action action;
    enum life_event event;
    while (life_next(&l, &action, now)) {
        add_action(&action);
        if (action.kind == ACTION_SEND)
            sent_at[action.track][action.server] = now;
        if (action.kind == ACTION_TOKEN && no_token)
            life_no_token(&l);
        if (action.kind == ACTION_CLAIM && not_claimed)
            life_not_claimed(&l);
        if ((action.kind == ACTION_UNDO || action.kind == ACTION_ABANDON) &&
            unsent & 1U << action.server)
            life_withdrawn(&l, &action);
    }
    while ((event = life_event(&l)) != LIFE_NOTHING)
        add(event == LIFE_CALL_OVER    ? results[l.result]
            : event == LIFE_RENEWED    ? "renewed"
            : event == LIFE_LEASE_LOST ? loss_word()
                                       : "failed");
}

/* ------------------------------------------------------------------ inputs */

/* g granted, b busy, m mine, n not mine, s seen, e free, f refused, z silent,
 * d a doubt; with r before it of a renewal. The fence is 10 + server, and 12
 * once it has been raised. */
static bool outcome(const char *word)
{
    static const struct {
        char letter;
        struct outcome outcome;
    } all[] = {
        {'g', {.kind = OUTCOME_GRANTED}},
        {'b', {.kind = OUTCOME_BUSY, .left_ms = LEFT_UNKNOWN}},
        {'m', {.kind = OUTCOME_MINE, .left_ms = TTL_MS, .fence = 12}},
        {'n', {.kind = OUTCOME_NOT_MINE}},
        {'s', {.kind = OUTCOME_SEEN}},
        {'e', {.kind = OUTCOME_FREE}},
        {'f', {.kind = OUTCOME_FAULT, .fault = FAULT_REFUSING}},
        {'z', {.kind = OUTCOME_FAULT, .fault = FAULT_TIMEOUT}},
        {'d', {.kind = OUTCOME_FAULT, .fault = FAULT_SERVER, .unsure = true}},
    };
    enum life_track track = *word == 'r' ? TRACK_RENEWAL : TRACK_CALL;
    word += *word == 'r';
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (*word != all[i].letter || word[1] < '0' || word[1] > '9')
            continue;
        struct outcome o = all[i].outcome;
        unsigned server = (unsigned)(word[1] - '0');
        o.sent_at = sent_at[track][server];
        if (o.kind == OUTCOME_GRANTED)
            o.fence = 10 + server;
        life_outcome(&l, track, server, &o, now);
        return true;
    }
    return false;
}

static void call(const char *word)
{
    bool begun = true;
    if (!strcmp(word, "acquire"))
        life_acquire(&l, 0, 7, now);
    else if (!strcmp(word, "extend"))
        begun = life_extend(&l, TTL_MS, 7, now);
    else if (!strcmp(word, "release"))
        begun = life_release(&l, 7, now);
    else if (!strcmp(word, "adopt"))
        life_adopt(&l, false, 7, now);
    else if (!strcmp(word, "adoptown"))
        life_adopt(&l, true, 7, now);
    else if (!strcmp(word, "inspect"))
        life_query(&l, CALL_INSPECT, 7, now);
    else if (!strcmp(word, "break"))
        begun = life_break(&l, false, 7, now);
    else if (!strcmp(word, "breakown"))
        begun = life_break(&l, true, 7, now);
    else if (!strcmp(word, "cancel"))
        life_cancel(&l);
    else if (!strcmp(word, "discard"))
        life_discard(&l);
    else if (!strcmp(word, "part"))
        life_end_lease(&l, now);
    else
        fail_msg("no such step: %s", word);
    if (!begun)
        add("over");
}

static void step(const char *word)
{
    if (*word == '@') { /* ms since the beginning */
        now = T0 + strtoull(word + 1, NULL, 10) * MS;
    } else if (!strcmp(word, "tick")) {
        life_tick(&l, now);
    } else if (!strcmp(word, "wake")) { /* when the renewal wants to */
        now = renewal_wake(l.renewal);
        life_tick(&l, now);
    } else if (!strcmp(word, "told")) {
        if (life_grant_expired(&l, now))
            life_drop_expired(&l, now);
        add(results[l.result]);
    } else if (!strcmp(word, "down2")) {
        peers[2].link = PEER_DOWN;
    } else if (!strcmp(word, "dial2")) {
        peers[2] = (struct peer){PEER_CONNECTING, now};
    } else if (!outcome(word)) {
        call(word);
    }
    drain();
}

/* ---------------------------------------------------------------- the table */

struct scene {
    const char *name, *steps, *does;
    unsigned servers, unsent; /* servers: 0 is one */
    uint32_t min_hold_ms, max_hold_ms;
    bool renewed, fenced, no_token, not_claimed;
};

static void play(const struct scene *s)
{
    char steps[256], *rest = NULL;
    struct life_terms terms = {.servers = s->servers ? s->servers : 1,
        .peers = peers,
        .ttl_ms = TTL_MS,
        .min_hold_ms = s->min_hold_ms,
        .max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .max_hold_ns = s->max_hold_ms ? s->max_hold_ms * MS : NEVER,
        .timeout_ns = 2000 * MS,
        .retry_first_ns = 10 * MS,
        .retry_max_ns = 100 * MS,
        .fenced = s->fenced,
        .renewed = s->renewed};
    now = T0;
    no_token = s->no_token;
    not_claimed = s->not_claimed;
    unsent = s->unsent;
    trace[0] = '\0';
    for (unsigned i = 0; i < MAX_SERVERS; i++)
        peers[i] = (struct peer){PEER_UP, 0};
    l = (struct life){0};
    struct ballot ballots[LIFE_BALLOTS * MAX_SERVERS] = {0};
    renewal = (struct renewal){0};
    life_init(&l, &terms, ballots, s->renewed ? &renewal : NULL);
    snprintf(steps, sizeof(steps), "%s", s->steps);
    for (char *word = strtok_r(steps, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        step(word);
    if (strcmp(trace, s->does) != 0)
        print_error("%s (%s):\n  does  %s\n  wants %s\n", s->name, s->steps,
            trace, s->does);
    wrong += strcmp(trace, s->does) != 0;
}

static void play_all(const struct scene *scenes, size_t count)
{
    wrong = 0;
    for (size_t i = 0; i < count; i++)
        play(&scenes[i]);
    assert_int_equal(wrong, 0);
}

#define PLAY(scenes) play_all(scenes, sizeof(scenes) / sizeof(*(scenes)))

static void acquiring(void **state)
{
    static const struct scene scenes[] = {
        {"granted", "acquire g0", "T Sa0 =ok"},
        {"no token", "acquire", "T =fault", .no_token = true},
        {"freed", "acquire discard", "T Sa0 U0 =cancelled"},
        {"late grant", "acquire @1000 g0", "T Sa0 U0 =lost"},
        {"one silent", "acquire b0 f1", "T Sa0 Sa1 Sa2 U2 =busy", 3},
        {"too few up for busy to be certain", "down2 acquire b0 f1",
            "T Sa0 Sa1 Sa2 U2 =fault", 3},
        {"... and it may have been granted", "down2 acquire b0 d1",
            "T Sa0 Sa1 Sa2 U1 U2 =unknown", 3},
        {"held by enough, whoever is down", "down2 acquire b0 b1",
            "T Sa0 Sa1 Sa2 U2 =busy", 3},
    };
    (void)state;
    PLAY(scenes);
}

/* A server that only began to connect is waited for as long again. */
static void late_servers(void **state)
{
    static const struct scene scenes[] = {
        {"no part", "acquire @10 g0 g1", "T Sa0 Sa1 Sa2 L2 =ok", 3},
        {"in time", "dial2 acquire @10 g0 g1 @15 g2", "T Sa0 Sa1 Sa2 =ok", 3},
        {"not yet", "dial2 acquire @10 g0 g1 @19 tick", "T Sa0 Sa1 Sa2", 3},
        {"too late", "dial2 acquire @10 g0 g1 @20 tick", "T Sa0 Sa1 Sa2 L2 =ok",
            3},
        {"freed before its fencing token is raised: undone",
            "dial2 acquire @10 g0 g1 discard",
            "T Sa0 Sa1 Sa2 L2 L0 L1 L2 C0 C1 C2 =cancelled", 3, .fenced = true},
        {"cancelled: granted all the same", "dial2 acquire @10 g0 g1 cancel",
            "T Sa0 Sa1 Sa2 L2 =ok", 3},
        {"nothing had left: no token is there",
            "dial2 acquire @10 g0 g1 @20 tick extend m0 m1",
            "T Sa0 Sa1 Sa2 L2 =ok Se0 Se1 K2 =ok", 3, .unsent = 4},
        {"inspection", "inspect s0 s1 e2", "Si0 Si1 Si2 =ok", 3},
        {"inspection, 50 ms", "inspect s0 s1 @50 tick", "Si0 Si1 Si2 L2 =ok",
            3},
    };
    (void)state;
    PLAY(scenes);
}

static void fencing(void **state)
{
    static const struct scene scenes[] = {
        {"raised", "acquire b1 g0 g2 m0", "T Sa0 Sa1 Sa2 Sf0 K1 =ok", 3,
            .fenced = true},
        {"not raised: undone", "acquire b1 g0 g2 n0",
            "T Sa0 Sa1 Sa2 Sf0 K1 L0 L1 L2 C0 C2 =lost", 3, .fenced = true},
        {"cancelled: undone", "acquire b1 g0 g2 cancel",
            "T Sa0 Sa1 Sa2 Sf0 K1 L0 L0 L1 L2 C0 C2 =cancelled", 3,
            .fenced = true},
    };
    (void)state;
    PLAY(scenes);
}

static void extending(void **state)
{
    static const struct scene scenes[] = {
        {"where it is", "acquire b2 g0 g1 extend m0 m1",
            "T Sa0 Sa1 Sa2 =ok Se0 Se1 K2 =ok", 3},
        {"expired before", "acquire g0 @988 extend", "T Sa0 =ok over"},
        {"expired meanwhile", "acquire g0 extend @988 m0",
            "T Sa0 =ok Se0 =lost"},
        {"lost: then it may not be extended", "acquire g0 extend n0 extend",
            "T Sa0 =ok Se0 =lost over"},
        {"expired on the way to the caller", "acquire g0 extend m0 @988 told",
            "T Sa0 =ok Se0 =ok =lost"},
    };
    (void)state;
    PLAY(scenes);
}

static void ending(void **state)
{
    static const struct scene scenes[] = {
        {"released", "acquire g0 release m0", "T Sa0 =ok Sr0 =ok"},
        {"expired", "acquire g0 @988 release", "T Sa0 =ok over"},
        {"cancelled", "acquire g0 release cancel",
            "T Sa0 =ok Sr0 U0 =cancelled"},
        {"its handle ends", "acquire g0 release discard",
            "T Sa0 =ok Sr0 U0 =unknown"},
        {"never sent", "acquire g0 release @987 z0", "T Sa0 =ok Sr0 U0 =fault"},
        {"never sent, and expired", "acquire g0 release @988 z0",
            "T Sa0 =ok Sr0 U0 =lost"},
        {"freed", "acquire g0 part", "T Sa0 =ok C0"},
        {"freed after its deadline", "acquire g0 @988 part", "T Sa0 =ok"},
        {"again, freed", "acquire g0 extend n0 acquire",
            "T Sa0 =ok Se0 =lost C0 T Sa0"},
        {"again, expired", "acquire g0 @988 acquire", "T Sa0 =ok T Sa0"},
        {"told too late", "acquire g0 @988 told part", "T Sa0 =ok =lost"},
        {"minimum hold", "acquire g0 release m0", "T Sa0 =ok Sc0 =ok",
            .min_hold_ms = 500},
        {"minimum hold, cancelled", "acquire g0 release cancel",
            "T Sa0 =ok Sc0 L0 =cancelled", .min_hold_ms = 500},
        {"minimum hold, its handle ends", "acquire g0 release discard",
            "T Sa0 =ok Sc0 L0 =unknown", .min_hold_ms = 500},
        {"minimum hold over", "acquire g0 @500 release m0", "T Sa0 =ok Sr0 =ok",
            .min_hold_ms = 500},
        {"minimum hold, freed", "acquire g0 part", "T Sa0 =ok",
            .min_hold_ms = 500},
        {"where it is", "acquire b2 g0 g1 release m0 m1",
            "T Sa0 Sa1 Sa2 =ok Sr0 Sr1 K2 =ok", 3},
    };
    (void)state;
    PLAY(scenes);
}

static void breaking(void **state)
{
    static const struct scene scenes[] = {
        {"a value", "break m0", "Sr0 =ok"},
        {"its own ends the lease", "acquire g0 breakown m0 extend",
            "T Sa0 =ok Sr0 =ok over"},
        {"its own, expired", "acquire g0 @988 breakown", "T Sa0 =ok over"},
        {"not repeated in the background", "break cancel", "Sr0 L0 =cancelled"},
        {"nothing had left", "break @2000 tick", "Sr0 L0 =fault", .unsent = 1},
        {"it may have left", "break @2000 tick", "Sr0 L0 =unknown"},
    };
    (void)state;
    PLAY(scenes);
}

static void adopting(void **state)
{
    static const struct scene scenes[] = {
        {"adopted", "adopt m0", "T Si0 A0 M0 =ok"},
        {"its deletion is on the way", "adopt m0", "T Si0 A0 =lost",
            .not_claimed = true},
        {"gone", "adopt n0", "T Si0 =lost"},
        {"too late", "adopt @10 m0 @1010 told", "T Si0 A0 M0 =ok =lost"},
        {"its own token stays", "acquire g0 extend n0 adoptown m0",
            "T Sa0 =ok Se0 =lost Si0 A0 M0 =ok"},
        {"another one: its own is removed", "acquire g0 extend n0 adopt",
            "T Sa0 =ok Se0 =lost C0 T Si0"},
    };
    (void)state;
    PLAY(scenes);
}

static void renewing(void **state)
{
    static const struct scene scenes[] = {
        {"renewed", "acquire g0 wake rm0", "T Sa0 =ok rSe0 renewed",
            .renewed = true},
        {"failed", "acquire g0 wake rf0", "T Sa0 =ok rSe0 failed",
            .renewed = true},
        {"unheard", "acquire g0 wake @938 tick",
            "T Sa0 =ok rSe0 rL0 failed loss:unheard", .renewed = true},
        {"stopped", "acquire g0 @988 tick", "T Sa0 =ok loss:stopped",
            .renewed = true},
        {"an answer goes before the loss", "acquire g0 wake @940 rm0",
            "T Sa0 =ok rSe0 renewed", .renewed = true},
        {"maximum hold", "acquire g0 wake", "T Sa0 =ok loss:max_hold",
            .renewed = true, .max_hold_ms = 900},
        {"taken", "acquire g0 wake rn0 rs0", "T Sa0 =ok rSe0 rSi0 loss:taken",
            .renewed = true},
        {"removed", "acquire g0 wake rn0 re0",
            "T Sa0 =ok rSe0 rSi0 loss:removed", .renewed = true},
        {"who has it is not told", "acquire g0 wake rn0 @800 tick",
            "T Sa0 =ok rSe0 rSi0 rL0 loss:refuted", .renewed = true},
        {"a call finds it out", "acquire g0 extend n0 rs0",
            "T Sa0 =ok Se0 rSi0 =lost loss:taken", .renewed = true},
        {"... while a renewal runs", "acquire g0 wake extend n0 rs0",
            "T Sa0 =ok rSe0 Se0 rL0 rSi0 =lost loss:taken", .renewed = true},
        {"a call extends it", "acquire g0 extend m0 wake",
            "T Sa0 =ok Se0 =ok rSe0", .renewed = true},
        {"released: no more", "acquire g0 wake release",
            "T Sa0 =ok rSe0 rL0 Sr0", .renewed = true},
        {"nor is it told of a loss", "acquire g0 wake rn0 release",
            "T Sa0 =ok rSe0 rSi0 rL0 Sr0", .renewed = true},
        {"where it is", "acquire b2 g0 g1 wake rm0 rm1",
            "T Sa0 Sa1 Sa2 =ok rSe0 rSe1 rK2 renewed", 3, .renewed = true},
    };
    (void)state;
    PLAY(scenes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acquiring),
        cmocka_unit_test(late_servers),
        cmocka_unit_test(fencing),
        cmocka_unit_test(extending),
        cmocka_unit_test(ending),
        cmocka_unit_test(breaking),
        cmocka_unit_test(adopting),
        cmocka_unit_test(renewing),
    };
    return cmocka_run_group_tests_name("life", tests, NULL, NULL);
}
