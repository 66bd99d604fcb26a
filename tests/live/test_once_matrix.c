/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once: every mode of begin on every record that can
 * stand there, with each kind of lock, through both APIs; then every verdict,
 * and what is left of it.
 *
 * Invariant: a call that begins nothing changes neither the record nor the
 * key, and what nxl_once_record() shows is what the server has.
 */
#include "live/once_rig.h"

#define MIN_HOLD_MS 5000

/* ------------------------------------------------------------------ a cell */

struct kind {
    const char *name;
    const char *parameters; /* of the client */
    nxl_lock_options options;
};
static const struct kind kinds[] = {
    {"plain", NO_GUARD, {.ttl_ms = 30000}},
    {"renewed", NO_GUARD, {.ttl_ms = 30000, .renew = 1}},
    {"fenced", NO_GUARD, {.ttl_ms = 30000, .fence = 1}},
    {"min_hold", NO_GUARD, {.ttl_ms = 30000, .min_hold_ms = MIN_HOLD_MS}},
    {"max_hold", NO_GUARD, {.ttl_ms = 30000, .renew = 1, .max_hold_ms = 60000}},
    {"poll=1", NO_GUARD "&poll=1", {.ttl_ms = 30000}},
    {"label", NO_GUARD, {.ttl_ms = 30000, .label = "db7:41233:backup"}},
};

/* Of the record, and of the begin. */
static const char *const fingerprints[][2] = {
    {FINGERPRINT, FINGERPRINT},
    {NULL, NULL},
    {"200EUR", FINGERPRINT},
    {NULL, FINGERPRINT},
    {FINGERPRINT, NULL},
};

static const char *const modes[] = {"halt", "retry", "look"};
enum { NO_VERDICT, VERDICTS = 5 };
static const int verdicts[VERDICTS] = {
    NO_VERDICT, NXL_ONCE_DONE, NXL_ONCE_FAILED, NXL_ONCE_DOUBT, NXL_ONCE_CLEAR};
static const char *const verdict_names[] = {[NO_VERDICT] = "released",
    [NXL_ONCE_DONE] = "done",
    [NXL_ONCE_FAILED] = "failed",
    [NXL_ONCE_DOUBT] = "doubt",
    [NXL_ONCE_CLEAR] = "clear"};

static struct cell {
    const struct kind *kind;
    enum before before;
    const char *const *fingerprints;
    int mode, verdict;
    nxl_lock *lock, *other;
} cell;
static nxl_client *others;

static bool matches(const struct cell *c)
{
    const char *a = c->fingerprints[0], *b = c->fingerprints[1];
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static int expected(const struct cell *c)
{
    bool looks = c->mode == NXL_ONCE_LOOK;
    bool recorded = c->before == PROGRESS || c->before == DOUBT ||
                    c->before == UNSURE || c->before == DONE;
    if (recorded && !matches(c))
        return NXL_MISMATCH;
    switch (c->before) {
    case DONE:
        return NXL_DONE;
    case BUSY:
    case PROGRESS:
        return NXL_BUSY;
    case DOUBT:
    case UNSURE:
        return c->mode == NXL_ONCE_RETRY ? NXL_OK : NXL_DOUBT;
    default:
        return looks ? NXL_FREE : NXL_OK;
    }
}

/* --------------------------------------------------------- begun, and told */

static void assert_begun(const struct cell *c)
{
    bool again = c->before == DOUBT || c->before == UNSURE;
    struct written w;
    assert_true(once_written(&w));
    assert_string_equal(w.state, "begun");
    assert_int_equal(w.attempt, again || c->before == FAILED ? 2 : 1);
    assert_int_equal(w.doubts, again);
    assert_int_equal(w.late, 0);
    assert_int_equal(w.ended, 0);
    assert_int_equal(w.keep, KEPT_MS);
    assert_true(w.since >= w.first && w.first > 0);
    assert_true(holds(NAME, c->lock));
    assert_true(nxl_lock_held(c->lock));
    assert_ends(KEPT_MS);
    assert_between(redis_pttl(servers, NAME), 25000, 30000);
}

/* Does the verdict leave an earlier doubt as it was? */
static bool restores(const struct cell *c)
{
    return c->verdict == NXL_ONCE_FAILED &&
           (c->before == DOUBT || c->before == UNSURE);
}

/* What the record says after this verdict. */
static const char *state_after(const struct cell *c)
{
    switch (c->verdict) {
    case NXL_ONCE_DONE:
        return "done";
    case NXL_ONCE_FAILED: /* or it is as it was before */
        return c->before == DOUBT    ? "begun"
               : c->before == UNSURE ? "doubt"
                                     : "failed";
    case NXL_ONCE_DOUBT:
        return "doubt";
    default:
        return "begun";
    }
}

static void assert_released(const struct cell *c)
{
    assert_false(nxl_lock_held(c->lock));
    if (c->kind->options.min_hold_ms && c->verdict != NXL_ONCE_CLEAR)
        assert_between(redis_pttl(servers, NAME), 1, MIN_HOLD_MS);
    else
        assert_int_equal(redis_pttl(servers, NAME), -2);
}

static void tell_twice(const struct cell *c)
{
    char line[LINE_ROOM] = "", again[LINE_ROOM] = "";
    struct written before, w;
    assert_true(once_written(&before));
    bool restored = restores(c);
    assert_result(
        once_tell(own, c->lock, c->verdict, 3, "result"), NXL_OK, c->lock);
    assert_true(once_written(&w));
    assert_string_equal(w.state, state_after(c));
    assert_int_equal(w.doubts, before.doubts - restored);
    assert_true(restored || w.code == 3);
    assert_true(restored || w.ended >= w.since);
    assert_int_equal(w.size, c->verdict == NXL_ONCE_DONE ? 6 : 0);
    assert_int_equal(w.attempt, before.attempt - restored);
    assert_ends(KEPT_MS);
    assert_shown(c->lock);
    assert_released(c);
    assert_true(once_line(line));
    assert_result(
        once_tell(own, c->lock, c->verdict, 4, "other"), NXL_OK, c->lock);
    assert_true(once_line(again));
    if (c->verdict == NXL_ONCE_DONE) /* the first one stands */
        assert_string_equal(line, again);
    assert_shown(c->lock);
}

static void clear(const struct cell *c)
{
    struct written w;
    assert_result(
        once_tell(own, c->lock, NXL_ONCE_CLEAR, 0, NULL), NXL_OK, c->lock);
    assert_true(nxl_lock_held(c->lock));
    assert_true(holds(NAME, c->lock));
    assert_true(once_written(&w));
    assert_string_equal(w.state, "begun");
    assert_int_equal(w.doubts, 0);
    assert_ends(KEPT_MS);
    assert_shown(c->lock);
    assert_result(CALL(own, extend, c->lock, 0), NXL_OK, c->lock);
    assert_result(
        once_tell(own, c->lock, NXL_ONCE_FAILED, 0, NULL), NXL_OK, c->lock);
    assert_string_equal(once_state(), "failed"); /* no doubt is left */
    assert_ends(KEPT_MS);
    assert_result(
        once_tell(own, c->lock, NXL_ONCE_CLEAR, 0, NULL), NXL_LOST, c->lock);
}

static void end_work(const struct cell *c)
{
    assert_begun(c);
    if (c->verdict == NO_VERDICT) {
        assert_result(CALL(own, release, c->lock), NXL_OK, c->lock);
        assert_string_equal(once_state(), "begun");
        assert_ends(KEPT_MS);
        assert_released(c);
    } else if (c->verdict == NXL_ONCE_CLEAR) {
        clear(c);
    } else {
        tell_twice(c);
    }
}

/* ----------------------------------------------- nothing begun, or forgotten
 */

static void confirm(const struct cell *c)
{
    nxl_lock *next = new_lock(others, NAME, 30000);
    assert_result(once_tell(own, c->lock, NXL_ONCE_DOUBT, 0, NULL),
        NXL_E_INVALID, c->lock);
    assert_result(once_tell(own, c->lock, NXL_ONCE_CLEAR, 0, NULL),
        NXL_E_INVALID, c->lock);
    assert_result(
        once_tell(own, c->lock, NXL_ONCE_FAILED, 0, NULL), NXL_OK, c->lock);
    assert_string_equal(once_state(), "failed");
    assert_result(
        once_tell(own, c->lock, NXL_ONCE_DONE, 5, "seen"), NXL_OK, c->lock);
    assert_string_equal(once_state(), "done");
    assert_shown(c->lock);
    assert_result(
        once_begin(NULL, next, &WORK(.fingerprint = c->fingerprints[1]), 0),
        NXL_DONE, next);
    nxl_lock_free(next);
}

static void forget(const struct cell *c)
{
    bool recorded = once_state()[0] != 'n';
    /* By a minimum hold its token has the lock yet. */
    bool keeps =
        c->kind->options.min_hold_ms && expected(c) == NXL_OK && !restores(c);
    int begun = c->before == PROGRESS || keeps ? NXL_BUSY : NXL_OK;
    assert_result(
        once_forget(own, c->lock), recorded ? begun : NXL_E_INVALID, c->lock);
    if (begun == NXL_BUSY)
        return;
    assert_false(redis_exists(servers, RECORD_KEY));
    if (recorded)
        assert_result(once_forget(own, c->lock), NXL_FREE, c->lock);
}

static void play(const struct cell *c)
{
    char before[LINE_ROOM] = "", after[LINE_ROOM] = "";
    nxl_once_options options =
        WORK(.mode = c->mode, .fingerprint = c->fingerprints[1]);
    come_to(c->before, c->other, c->fingerprints[0]);
    once_line(before);
    int64_t left = redis_pttl(servers, RECORD_KEY);
    bool taken = redis_exists(servers, NAME);
    int rc = once_begin(own, c->lock, &options, 0);
    assert_result(rc, expected(c), c->lock);
    assert_shown(c->lock);
    if (rc == NXL_OK) {
        end_work(c);
    } else {
        once_line(after);
        assert_string_equal(before, after);
        assert_between(redis_pttl(servers, RECORD_KEY), left - 5000, left);
        assert_int_equal(redis_exists(servers, NAME), taken);
        assert_false(nxl_lock_held(c->lock));
        if (rc != NXL_FREE)
            assert_true(*nxl_lock_errmsg(c->lock));
    }
    if (rc == NXL_DOUBT && c->verdict == NXL_ONCE_DONE)
        confirm(c);
    if (c->before != BUSY)
        forget(c);
}

/* --------------------------------------------------------------- the table */

static void play_cell(struct cell *c)
{
    nxl_lock_options options = c->kind->options;
    options.size = sizeof(options);
    once_clean(NULL);
    c->lock = live_lock(own, NAME, &options, __FILE__, __LINE__);
    c->other = new_lock(others, NAME, 30000);
    print_message("           %s: %s, %s, %s%s\n", c->kind->name,
        befores[c->before], modes[c->mode], verdict_names[c->verdict],
        matches(c) ? "" : ", other fingerprint");
    play(c);
    nxl_lock_free(c->other);
    nxl_lock_free(c->lock);
    if (by_loop)
        turn(own, 0);
}

/* Every verdict where it makes a difference. */
static void play_verdicts(struct cell *c)
{
    bool begins = expected(c) == NXL_OK;
    int count = begins ? VERDICTS : expected(c) == NXL_DOUBT ? 2 : 1;
    for (int i = 0; i < count; i++) {
        c->verdict = verdicts[i];
        play_cell(c);
    }
}

static void play_kind(const struct kind *kind)
{
    size_t pairs = sizeof(fingerprints) / sizeof(fingerprints[0]);
    cell = (struct cell){.kind = kind};
    own = client_on(kind->parameters);
    others = client_on(NO_GUARD);
    for (int before = 0; before < BEFORES; before++) {
        cell.before = (enum before)before;
        for (size_t pair = 0; pair < pairs; pair++) {
            cell.fingerprints = fingerprints[pair];
            for (cell.mode = 0; cell.mode <= NXL_ONCE_LOOK; cell.mode++)
                play_verdicts(&cell);
        }
    }
    nxl_client_free(own);
    nxl_client_free(others);
}

static void every_cell(void **state)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        play_kind(&kinds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(every_cell),
    };
    return on_run(one_unix, "once: matrix", tests);
}
