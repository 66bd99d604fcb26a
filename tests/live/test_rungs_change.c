/* SPDX-License-Identifier: MIT */
/*
 * Another server answers, older or newer: after a failover, on the same
 * connection, between two operations and at each step of one. The ladder is
 * climbed anew, a token that was acquired on one rung is prolonged and
 * released on another, and no update is lost while versions come and go. What
 * stands as a unix time is prolonged and released as one wherever there is
 * WATCH; what stands as a token cannot be prolonged before 2.6.
 */
#include "live/rung_step.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

static const struct place plain = {"7.0 behind a proxy", AGED, AGED_PLAIN, NULL,
    NULL, BY_SET, BY_SCRIPT, BY_SCRIPT, BY_SCRIPT};

/* The places behind the proxy. (That one has no GETRANGE is learnt once a
 * connection, and so it is no place to come to.) */
static const struct place *stops[PLACES + 1];
static unsigned stop_count;

static void find_stops(void)
{
    stops[stop_count++] = &plain;
    for (unsigned i = 0; i < PLACES; i++)
        if (places[i].kind == AGED &&
            (places[i].without == NULL ||
                strcmp(places[i].without, "GETRANGE") != 0))
            stops[stop_count++] = &places[i];
}

/* From now on this one answers. */
static void go_to(const struct place *place, bool cut)
{
    here = place;
    aged_allow(aged);
    if (place->without != NULL)
        aged_refuse(aged, place->without, place->words);
    aged_profile_now(aged, place->age, cut);
}

static bool has_watch(const struct place *place)
{
    return place->without == NULL || (strcmp(place->without, "WATCH") != 0 &&
                                         strcmp(place->without, "MULTI") != 0);
}

static bool is_old(const struct place *place)
{
    return place->acquire == BY_STAMP;
}

/* There, what stands at KEY now. */
static bool can_extend(const struct place *place)
{
    return stamped_at(KEY) ? has_watch(place) : !is_old(place);
}

static bool can_release(const struct place *place)
{
    return !stamped_at(KEY) || has_watch(place);
}

/* On one connection, which goes on in the way that it knows: from where locks
 * are times to where no time can be changed there is none. */
static bool is_a_way(const struct place *from, const struct place *to, bool cut)
{
    return cut || ((!is_old(from) || has_watch(to)) &&
                      (!is_old(to) || has_watch(from)));
}

/* It is said, and nothing has changed. */
static void assert_no_way(int rc, nxl_lock *lock)
{
    assert_true(rc == NXL_E_UNSUPPORTED || rc == NXL_E_DENIED);
    assert_ours(KEY, lock);
}

/* ------------------------------------------------------ between operations */

static void release_here(nxl_lock *lock)
{
    if (can_release(here)) {
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    } else { /* it stands until it may be taken back, or its time is over */
        assert_no_way(nxl_lock_release(lock), lock);
        redis_run(&server, "DEL", KEY, NULL);
    }
    assert_false(redis_exists(&server, KEY));
}

/* Another client, which knows nothing, finds it held; and by its token takes
 * part in it, to the end. */
static void meet_others(nxl_lock *lock)
{
    nxl_client *others = client_here("");
    nxl_lock *other = new_lock(others, KEY, TTL);
    assert_result(nxl_lock_acquire(other, 0), NXL_BUSY, other);
    assert_result(nxl_lock_acquire(other, 20), NXL_BUSY, other);
    assert_ours(KEY, lock);
    assert_result(
        nxl_lock_adopt(other, nxl_lock_token(lock)), NXL_OK, other);
    if (can_extend(here))
        assert_result(nxl_lock_extend(other, 30000), NXL_OK, other);
    else
        assert_no_way(nxl_lock_extend(other, 30000), other);
    release_here(other);
    end(other, others);
    int rc = nxl_lock_release(lock);
    assert_true(rc == NXL_LOST || rc == NXL_E_UNSUPPORTED ||
                rc == NXL_E_DENIED); /* it cannot ask */
}

static void held_from(nxl_lock *lock)
{
    if (can_extend(here)) {
        assert_result(nxl_lock_extend(lock, 40000), NXL_OK, lock);
        assert_lasts(KEY, 38000, 40000);
        assert_result(nxl_lock_extend(lock, 1000), NXL_OK, lock);
        assert_lasts(KEY, 35000, 40000);
    } else {
        assert_no_way(nxl_lock_extend(lock, 40000), lock);
        assert_true(nxl_lock_held(lock));
    }
    assert_result(look(lock), NXL_OK, lock);
    assert_ours(KEY, lock);
}

static void learn_here(nxl_lock *lock)
{
    assert_result(nxl_lock_extend(lock, 30000), NXL_OK, lock);
    assert_result(look(lock), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
}

static void cycle_from(
    const struct place *from, const struct place *to, bool cut)
{
    go_to(from, true);
    redis_run(&server, "SCRIPT", "FLUSH", NULL);
    nxl_client *client = learnt_client("");
    nxl_lock *lock = new_lock(client, KEY, TTL);
    assert_by(from->acquire, nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(stamped_at(KEY), is_old(from));

    go_to(to, cut);
    held_from(lock);
    if (is_old(from) != is_old(to))
        meet_others(lock);
    else
        release_here(lock);

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(nobody_in_multi());
    /* Its own best way, and no other; but a release that was refused is tried
     * again and again. */
    if (cut && (!is_old(from) || has_watch(to))) {
        assert_int_equal(stamped_at(KEY), is_old(to));
        if (is_old(from) != is_old(to)) /* known by now only of the old form */
            learn_here(lock);
        assert_by(to->extend, nxl_lock_extend(lock, 50000), NXL_OK, lock);
        assert_by(to->inspect, look(lock), NXL_OK, lock);
        assert_by(to->release, nxl_lock_release(lock), NXL_OK, lock);
        assert_by(to->acquire, nxl_lock_acquire(lock, 0), NXL_OK, lock);
    }
    go_to(from, cut);
    release_here(lock);
    end(lock, client);
}

/* Climbing takes one refused command a rung, and is over then. */
static void from_each_to_each(void **state)
{
    (void)state;
    for (unsigned i = 0; i < stop_count; i++)
        for (unsigned j = 0; j < stop_count; j++)
            for (int cut = 0; cut < 2; cut++)
                if (is_a_way(stops[i], stops[j], cut))
                    cycle_from(stops[i], stops[j], cut);
    go_to(&plain, true);
}

/* A failed-over connection is told of as what it is. */
static void told_anew(void **state)
{
    (void)state;
    char text[512];
    go_to(&places[3], true);
    nxl_client *client = learnt_client("");
    nxl_client_describe(client, text, sizeof(text));
    assert_contains(text, "DELEX");
    go_to(&plain, true);
    nxl_lock *lock = new_lock(client, KEY, TTL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_client_describe(client, text, sizeof(text));
    assert_contains(text, "7.0");
    assert_contains(text, "SET NX PX + scripts");
    end(lock, client);
}

/* ------------------------------------------------------- in the midst of one
 */

static bool is_lost_here(void)
{
    return (op.verb == EXTEND && !can_extend(here)) ||
           (op.verb == RELEASE && !can_release(here));
}

static bool one_step(const struct place *from, const struct place *to, bool cut)
{
    go_to(from, true);
    open_op("");
    bool stopped = stop_at_step();
    go_to(to, cut);
    let_all_through();
    pthread_join(op.thread, NULL);
    if (stopped && cut && op.result == NXL_UNKNOWN && op.verb == EXTEND) {
        assert_false(can_extend(here)); /* done before, or not at all */
    } else if (stopped && op.result < NXL_OK && is_lost_here()) {
        assert_no_way(op.result, op.lock);
        go_to(&plain, true); /* where there is one */
        if (op.verb == RELEASE)
            redis_run(&server, "DEL", KEY, NULL);
    } else if (!cut || !stopped || op.verb == EXTEND || op.verb == LOOK) {
        assert_result(op.result, NXL_OK, op.lock); /* asked again */
    } else {
        assert_true(op.result == NXL_OK || op.result == NXL_UNKNOWN);
    }
    if (nxl_lock_held(op.lock) && !can_extend(here))
        go_to(&plain, true);
    assert_goes_on();
    close_op();
    return stopped;
}

static void sweep(const struct place *from, const struct place *to, bool cut)
{
    op.learnt = true;
    for (int verb = ACQUIRE; verb <= LOOK; verb++)
        for (int side = REQUEST; side <= REPLY; side++) {
            op.verb = (enum verb)verb;
            op.side = (enum side)side;
            op.step = 0;
            while (op.step < STEPS && one_step(from, to, cut))
                op.step++;
            assert_between(op.step, 1, STEPS - 1);
        }
}

/* What was learnt does not outlive a connection, so of the failovers a third
 * will do: from and to each place in several ways. */
static void at_each_step(void **state)
{
    bool cut = *(bool *)*state;
    place_clean(state);
    for (unsigned i = 0; i < stop_count; i++)
        for (unsigned j = 1; j < stop_count; j += cut ? 3 : 1)
            if (is_a_way(stops[i], stops[(i + j) % stop_count], cut))
                sweep(stops[i], stops[(i + j) % stop_count], cut);
    go_to(&plain, true);
    place_check(state);
}

/* ----------------------------------------------------------------- all along
 */

enum { PROCESSES = 4, INCREMENTS = 500, CHANGES = 200, PATIENCE_MS = 20000 };

struct board { /* shared */
    atomic_bool go, enough;
    atomic_int written, unknown, climbing;
};

static void increment(int file)
{
    char text[24] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0)
        _exit(3);
    int len =
        snprintf(text, sizeof(text), "%-20ld", strtol(text, NULL, 10) + 1);
    if (pwrite(file, text, (size_t)len, 0) != len)
        _exit(4);
}

/* With the oldest ones, or with those that cannot change a time. */
static bool with_old;

/* Only what a lost connection explains. E_UNSUPPORTED, or E_DENIED when that
 * was the first word: the server changed again and again while one verb asked
 * for its ways, or a token was to be prolonged before 2.6. */
static void note(struct board *board, int rc)
{
    if (rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE)
        atomic_fetch_add(&board->unknown, 1);
    else if (rc == NXL_E_UNSUPPORTED || (rc == NXL_E_DENIED && with_old))
        atomic_fetch_add(&board->climbing, 1);
    else if (rc != NXL_OK)
        _exit(100 + (rc < 0 ? -rc : 50 + rc));
}

/* Who has no answer to his last call takes along what it left behind: it
 * would stand in the others' way as long as the lease. */
static void leave_nothing(nxl_lock *lock, const char *label)
{
    int64_t limit = test_now_ms() + PATIENCE_MS;
    nxl_holder holder = {.size = sizeof(holder)};
    for (;;) {
        int rc = nxl_lock_inspect(lock, &holder);
        if (rc == NXL_FREE ||
            (rc == NXL_OK &&
                (holder.label == NULL || strcmp(holder.label, label) != 0)))
            return;
        if (test_now_ms() > limit)
            _exit(7);
        test_pause_ms(1);
    }
}

/* It begins when all are there: who is forked later would keep the proxy's
 * ends of its connections open. */
static void child(int file, struct board *board)
{
    char label[24];
    snprintf(label, sizeof(label), "process:%d", (int)getpid());
    while (!atomic_load(&board->go))
        test_pause_ms(1);
    nxl_client *client = client_here("timeout_ms=10000");
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    options.ttl_ms = 60000;
    options.label = label;
    options.retry_min_ms = 1;
    options.retry_max_ms = 4;
    if (nxl_lock_new(&lock, client, "number", &options) != NXL_OK)
        _exit(2);
    while (!atomic_load(&board->enough)) {
        /* BUSY for so long: somebody left it behind. */
        int rc = nxl_lock_acquire(lock, PATIENCE_MS);
        note(board, rc);
        if (rc != NXL_OK)
            continue;
        note(board, nxl_lock_extend(lock, 60000));
        increment(file);
        atomic_fetch_add(&board->written, 1);
        note(board, nxl_lock_release(lock));
    }
    leave_nothing(lock, label);
    end(lock, client);
    _exit(0);
}

static unsigned next_stop(unsigned at, unsigned more)
{
    while (more > 0) {
        at = (at + 1) % stop_count;
        more -= with_old ? has_watch(stops[at]) : !is_old(stops[at]);
    }
    return at;
}

/* On a busy machine versions would come faster than anything is done. */
static void let_one_write(struct board *board)
{
    int before = atomic_load(&board->written);
    for (int i = 0; i < 100 && atomic_load(&board->written) == before; i++)
        test_pause_ms(1);
}

/* How often another version came. */
static int racers(pid_t *pid, int file, struct board *board)
{
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = test_fork();
        assert_true(pid[i] >= 0);
        if (pid[i] == 0)
            child(file, board);
    }
    int64_t limit = test_now_ms() + 2 * PATIENCE_MS;
    unsigned at = 0;
    int changes = 0;
    atomic_store(&board->go, true);
    while (changes < CHANGES || atomic_load(&board->written) < INCREMENTS ||
           atomic_load(&board->unknown) == 0) {
        if (test_now_ms() > limit)
            break;
        at = next_stop(at, 1 + (unsigned)changes % 3);
        go_to(stops[at], changes % 2 == 0);
        test_pause_ms(1 + changes % 7);
        if (++changes >= CHANGES)
            let_one_write(board);
    }
    atomic_store(&board->enough, true);
    return changes;
}

static int processes_failed(const pid_t *pid)
{
    int failed = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        if (status != 0)
            print_error("process %d ended with %#x\n", i, status);
        failed += status != 0;
    }
    return failed;
}

static void no_lost_update(void **state)
{
    with_old = *(bool *)*state;
    place_clean(state);
    char path[LOCAL_PATH], text[24] = "";
    pid_t pid[PROCESSES];
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    local_path(path, server.dir, "number");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, "0", 1, 0), 1);
    int changes = racers(pid, file, board);
    int failed = processes_failed(pid), written = board->written;
    print_message("%d increments, %d changes of version, %d calls without an "
                  "answer, %d without a way\n",
        written, changes, (int)board->unknown, (int)board->climbing);
    assert_int_equal(failed, 0);
    assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
    assert_int_equal(strtol(text, NULL, 10), written);
    assert_true(written >= INCREMENTS && changes >= CHANGES);
    assert_true(board->unknown > 0);
    munmap(board, sizeof(*board));
    close(file);
    go_to(&plain, true);
}

int main(void)
{
    static bool stays = false, cut = true, without = false, with = true;
    const struct CMUnitTest tests[] = {
        place_test(from_each_to_each),
        place_test(told_anew),
        {"at each step", at_each_step, NULL, NULL, &stays},
        {"at each step, by failover", at_each_step, NULL, NULL, &cut},
        {"no lost update", no_lost_update, NULL, NULL, &without},
        {"no lost update, with the oldest", no_lost_update, NULL, NULL, &with},
    };
    find_stops();
    any_form = true;
    here = &plain;
    return cmocka_run_group_tests_name(
        "changes", tests, place_open, place_close);
}
