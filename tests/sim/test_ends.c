/* SPDX-License-Identifier: MIT */
/*
 * How a handle ends, crossed with what happened to its lease before: every
 * combination on model servers, as tests/live/test_handle_ends.c has it on
 * real ones.
 *
 * Invariant: once the deadline that a lock was promised has passed, whatever
 * is done with its handle leaves the key alone; so an heir, or a stranger who
 * acquired it since, keeps it. No key outlives the TTL that was last asked
 * for, and nobody believes wrongly: the checker looks on.
 */
#include "support/test.h"

#include "sim/world.h"

enum { TTL_MS = 300, EXTENDED_MS = 500, HEIR_MS = 5000, MIN_HOLD_MS = 150 };

enum ending {
    RELEASE,
    FREE,
    PROCESS_END,
    ACQUIRE_AGAIN,
    ADOPT,
    EVENT_NOT_TAKEN,
    PROCESS_STOPPED,
    ENDINGS
};
static const char *const endings[] = {"release", "free", "process end",
    "acquire again", "adopt", "free, event not taken", "process stopped, free"};

enum fate { VALID, EXPIRED, REFUSED, UNANSWERED, SILENCE, MAX_HOLD, FATES };
static const char *const fates[] = {"valid", "expired", "refused by the server",
    "an extend unanswered", "lost by silence", "ended by the maximum hold"};

struct cell {
    enum ending ending;
    enum fate fate;
    bool heir, renew, min_hold, fence;
    unsigned servers;
    uint64_t token;
    struct worker *lock;
    struct worker *other; /* the heir's, or the stranger's; NULL */
};

static struct world world;

static const struct setting plain = {
    .processes = 3,
    .workers = 1,
    .names = 1,
    .min_ttl_ms = 60,
    .max_ttl_ms = HEIR_MS,
    .drift_ppm = 10000,
    .timeout_ns = 200 * MS,
    .patience_ns = 10000 * MS,
    .travel_ns = MS,
    .slow_ns = 20 * MS,
    .linger_ns = 10 * MS,
    .think_ns = MS,
    .kill_allowed = true,
};

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition))                                                      \
            return #condition;                                                 \
    } while (0)

/* ----------------------------------------------------------- what programs do
 */

static void pass_ms(uint64_t ms)
{
    world_pass(&world, ms * MS);
}

/* Until its call is over: the result, of which the caller is told. */
static enum life_result await(struct worker *k)
{
    process_turn(&world, k->process);
    while (k->life.running)
        pass_ms(1);
    return handle_result(&world, k);
}

/* Its acquire or adoption is over: it is told that it holds the lock, or not.
 */
static enum life_result told(struct worker *k)
{
    enum life_result result = await(k);
    k->holding = result == LIFE_OK;
    k->state = k->holding ? PROGRAM_HOLDS : PROGRAM_IDLE;
    if (k->holding)
        checker_granted(&world, k);
    return result;
}

static void wish(struct worker *k, const struct cell *c, uint32_t ttl_ms)
{
    struct wish wish = {.ttl_ms = ttl_ms, .max_hold_ns = NEVER};
    if (c) {
        wish.min_hold_ms = c->min_hold ? MIN_HOLD_MS : 0;
        wish.renewed = c->renew;
        wish.max_hold_ns = c->fate == MAX_HOLD ? TTL_MS * MS : NEVER;
    }
    handle_wish(&world, k, &wish);
}

static enum life_result acquire(
    struct worker *k, const struct cell *c, uint32_t ttl_ms, uint64_t wait_ms)
{
    k->state = PROGRAM_WAITS;
    k->holding = false;
    wish(k, c, ttl_ms);
    handle_acquire(&world, k, wait_ms * MS);
    return told(k);
}

static enum life_result adopt(struct worker *k, uint64_t token, uint32_t ttl_ms)
{
    k->state = PROGRAM_WAITS;
    k->holding = false;
    wish(k, NULL, ttl_ms);
    handle_adopt(&world, k, token);
    return told(k);
}

static enum life_result extend(struct worker *k, uint32_t ttl_ms)
{
    if (!handle_extend(&world, k, ttl_ms))
        return LIFE_LOST;
    enum life_result result = await(k);
    if (result == LIFE_OK)
        checker_granted(&world, k);
    k->state = PROGRAM_HOLDS;
    return result;
}

static enum life_result release(struct worker *k)
{
    enum life_result result = LIFE_LOST;
    k->holding = false;
    k->state = PROGRAM_WAITS;
    if (handle_release(&world, k))
        result = await(k);
    k->state = PROGRAM_IDLE;
    return result;
}

static void free_handle(struct worker *k)
{
    k->holding = false;
    handle_free(&world, k);
    k->state = PROGRAM_IDLE;
    process_turn(&world, k->process);
}

/* ------------------------------------------------------- what the servers have
 */

static void stop_servers(const struct cell *c, uint64_t until)
{
    for (unsigned i = 0; i < c->servers; i++)
        world.server[i].stopped_until = until;
}

static void thaw_servers(const struct cell *c)
{
    for (unsigned i = 0; i < c->servers; i++)
        server_thaw(&world, &world.server[i]);
}

static bool stands(const struct cell *c)
{
    bool any = false;
    for (unsigned i = 0; i < c->servers; i++)
        any |= server_peek(&world, &world.server[i], 0) != 0;
    return any;
}

static void remove_key(const struct cell *c)
{
    for (unsigned i = 0; i < c->servers; i++)
        world.server[i].data.key[0].token = 0;
}

static int64_t left_ms(unsigned server)
{
    struct model_server *s = &world.server[server];
    return s->data.key[0].until_ms - server_clock_ms(&world, s);
}

/* ---------------------------------------------------- what befalls the lease
 */

static const char *take_heir(struct cell *c)
{
    c->other = &world.process[1].worker[0];
    if (c->fate == REFUSED) { /* a stranger, in that case */
        CHECK(acquire(c->other, NULL, HEIR_MS, 0) == LIFE_OK);
        return NULL;
    }
    checker_handed(&world, c->token, c->other);
    CHECK(adopt(c->other, c->token, HEIR_MS) == LIFE_OK);
    CHECK(extend(c->other, HEIR_MS) == LIFE_OK);
    pass_ms(10); /* all servers have it */
    return NULL;
}

static const char *befall(struct cell *c)
{
    struct worker *k = c->lock;
    const char *why = NULL;
    if (c->fate == REFUSED) {
        remove_key(c);
        CHECK(extend(k, TTL_MS) == LIFE_LOST);
    } else if (c->fate == UNANSWERED) {
        stop_servers(c, NEVER);
        CHECK(handle_extend(&world, k, EXTENDED_MS));
        process_turn(&world, k->process);
        pass_ms(10);
        handle_cancel(&world, k);
        CHECK(await(k) == LIFE_CANCELLED);
        k->state = PROGRAM_HOLDS;
        thaw_servers(c);
        pass_ms(10);
    }
    if (c->heir)
        why = take_heir(c);
    if (why)
        return why;
    if (c->fate == SILENCE) { /* lost a twentieth of the lease before its end */
        stop_servers(c, NEVER);
        while (lease_held(&k->life.lease, world.now))
            pass_ms(1);
        CHECK(k->renewal.loss == LOSS_NO_ANSWER);
        CHECK(world.now < k->life.lease.promised);
        pass_ms(TTL_MS);
        thaw_servers(c);
        pass_ms(10);
    } else if (c->fate == MAX_HOLD) {
        pass_ms(TTL_MS);
    } else if (c->fate != VALID || c->ending == PROCESS_STOPPED) {
        k->process->paused_until = world.now + EXTENDED_MS * MS;
        pass_ms(EXTENDED_MS - 50);
        if (c->ending == PROCESS_STOPPED)
            pass_ms(100);
        k->process->paused_until = world.now;
    }
    CHECK(lease_held(&k->life.lease, world.now) == (c->fate == VALID));
    return NULL;
}

/* ------------------------------------------------------------------ endings */

/* *anew: its handle holds the lock again, by another lease. */
static const char *end_handle(struct cell *c, bool *anew)
{
    struct worker *k = c->lock;
    bool valid = c->fate == VALID;
    enum life_result again = stands(c) ? LIFE_BUSY : LIFE_OK;
    enum life_result adopted =
        server_peek(&world, &world.server[0], 0) == c->token ? LIFE_OK
                                                             : LIFE_LOST;
    switch (c->ending) {
    case RELEASE:
        CHECK(release(k) == (valid ? LIFE_OK : LIFE_LOST));
        break;
    case ACQUIRE_AGAIN:
        CHECK(acquire(k, NULL, TTL_MS, 0) == again);
        *anew = again == LIFE_OK;
        break;
    case ADOPT:
        CHECK(adopt(k, c->token, TTL_MS) == adopted);
        *anew = adopted == LIFE_OK;
        break;
    case PROCESS_END:
        process_die(&world, k->process, 10000 * MS);
        break;
    case FREE:
    case EVENT_NOT_TAKEN:
    case PROCESS_STOPPED:
    case ENDINGS:
        free_handle(k);
        break;
    }
    pass_ms(20);
    return NULL;
}

/* Whoever has the name now still has it, and can go on with it. */
static const char *others_keep_it(const struct cell *c)
{
    struct worker *third = &world.process[2].worker[0];
    for (unsigned i = 0; i < c->servers; i++) {
        CHECK(server_peek(&world, &world.server[i], 0) == c->other->token);
        CHECK(left_ms(i) > EXTENDED_MS);
    }
    CHECK(program_holds(&world, c->other));
    CHECK(acquire(third, NULL, TTL_MS, 0) == LIFE_BUSY);
    CHECK(extend(c->other, HEIR_MS) == LIFE_OK);
    return NULL;
}

static const char *no_key_outlives(const struct cell *c, int64_t most_ms)
{
    for (unsigned i = 0; i < c->servers; i++)
        CHECK(
            !server_peek(&world, &world.server[i], 0) || left_ms(i) <= most_ms);
    return NULL;
}

/* Before the deadline the end of the handle ends the lock, whoever has adopted
 * it: this is what nxl_lock_adopt() documents. With a minimum hold the key
 * stays; a release cuts it short to that. */
static const char *ended(const struct cell *c)
{
    bool stays = c->min_hold || c->ending == PROCESS_END;
    int64_t most_ms = c->heir ? HEIR_MS : TTL_MS;
    if (c->ending == RELEASE && c->min_hold)
        most_ms = MIN_HOLD_MS;
    CHECK(stands(c) == stays);
    return no_key_outlives(c, most_ms);
}

static const char *fair(const struct cell *c)
{
    if (c->fate == VALID)
        return ended(c);
    if (c->heir)
        return others_keep_it(c);
    return no_key_outlives(c, c->fate == UNANSWERED ? EXTENDED_MS : TTL_MS);
}

static bool sensible(const struct cell *c)
{
    if ((c->fate == SILENCE || c->fate == MAX_HOLD) && !c->renew)
        return false;
    if (c->ending == PROCESS_STOPPED && c->fate == VALID)
        return false;
    if (c->fate == VALID && (c->ending == ACQUIRE_AGAIN || c->ending == ADOPT))
        return false; /* the API refuses that */
    return true;
}

static const char *act(struct cell *c)
{
    bool anew = false;
    const char *why = NULL;
    CHECK(acquire(c->lock, c, TTL_MS, 1000) == LIFE_OK);
    pass_ms(10);
    c->token = c->lock->token;
    if (c->ending == EVENT_NOT_TAKEN)
        c->lock->holding = false; /* it does not know yet */
    why = befall(c);
    if (!why)
        why = end_handle(c, &anew);
    if (!why && c->heir && c->fate != VALID)
        why = others_keep_it(c);
    if (!why && anew)
        free_handle(c->lock);
    else if (!why)
        why = fair(c);
    if (!why && c->other && c->other->state == PROGRAM_HOLDS)
        free_handle(c->other);
    return why;
}

/* NULL, or what is wrong. */
static const char *play(struct cell *c)
{
    static char broken[200];
    struct setting setting = plain;
    struct options options = OPTIONS_INIT;
    setting.fences = c->fence;
    options.servers = c->servers;
    options.troubles = 0;
    options.setting = &setting;
    world_start(&world, &options);
    c->lock = &world.process[0].worker[0];
    c->other = NULL;
    const char *why = act(c);
    if (!why && world_pass(&world, (HEIR_MS + HEIR_MS / 100 + 1000) * MS))
        checker_leaks(&world);
    if (world.checker.broken) {
        memcpy(broken, world.checker.why, sizeof(broken));
        why = broken;
    }
    world_finish(&world);
    return why;
}

/* ---------------------------------------------------------------- the table */

/* How many cells are wrong; *played: how many there are. */
static unsigned play_all(bool aloud, unsigned *played)
{
    unsigned wrong = 0;
    *played = 0;
    for (unsigned row = 0; row < 32 * ENDINGS * FATES; row++) {
        unsigned bits = row % 32;
        struct cell c = {.heir = bits & 1,
            .renew = bits & 2,
            .min_hold = bits & 4,
            .fence = bits & 8,
            .servers = bits & 16 ? 3 : 1,
            .ending = (enum ending)(row / 32 % ENDINGS),
            .fate = (enum fate)(row / 32 / ENDINGS)};
        if (!sensible(&c))
            continue;
        const char *why = play(&c);
        *played += 1;
        wrong += why != NULL;
        if (why && aloud)
            print_message("%s, %s%s%s%s%s, %u: %s\n", fates[c.fate],
                endings[c.ending], c.heir ? ", heir" : "",
                c.renew ? ", renew" : "", c.min_hold ? ", min_hold" : "",
                c.fence ? ", fence" : "", c.servers, why);
    }
    return wrong;
}

static void every_end_is_fair(void **state)
{
    unsigned played;
    (void)state;
    assert_int_equal(play_all(true, &played), 0);
    print_message("%u cells\n", played);
    assert_true(played > 500);
}

static void without_its_safeguard_it_is_not(void **state)
{
    unsigned played;
    (void)state;
    assert_true(guard_turn_off("expired"));
    unsigned wrong = play_all(false, &played);
    guards_turn_on();
    print_message("without expired: %u of %u cells are wrong\n", wrong, played);
    assert_true(wrong > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_is_fair),
        cmocka_unit_test(without_its_safeguard_it_is_not),
    };
    return cmocka_run_group_tests_name("ends", tests, NULL, NULL);
}
