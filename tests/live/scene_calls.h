/* SPDX-License-Identifier: MIT */
/*
 * The calls of a scene: how each is performed, in a thread, by turns of the
 * event loop or in steps, and what handles and clients do.
 */
#ifndef NXLOCK_TESTS_LIVE_SCENE_CALLS_H
#define NXLOCK_TESTS_LIVE_SCENE_CALLS_H

#include "live/scene_values.h"
#include "api/private.h"

/* ------------------------------------------------------------------- calls */

static int perform(struct thing *t, const struct call *call, bool loop)
{
    const nxl_once_options once = {.size = sizeof(once),
        .mode = call->mode,
        .fingerprint = *call->token ? call->token : NULL,
        .keep_ms = call->keep_ms};
    int code = (int)call->number;
    const struct word *r = &call->result;
    nxl_lock *lock = t->lock;
    switch (call->operation) {
    case NXL_OP_ACQUIRE:
        return loop ? nxl_lock_acquire_start(lock, call->number)
                    : nxl_lock_acquire(lock, call->number);
    case NXL_OP_EXTEND:
        return loop ? nxl_lock_extend_start(lock, call->number)
                    : nxl_lock_extend(lock, call->number);
    case NXL_OP_RELEASE:
        return loop ? nxl_lock_release_start(lock) : nxl_lock_release(lock);
    case NXL_OP_ADOPT:
        return loop ? nxl_lock_adopt_start(lock, call->token)
                    : nxl_lock_adopt(lock, call->token);
    case NXL_OP_INSPECT:
        return loop ? nxl_lock_inspect_start(lock)
                    : nxl_lock_inspect(lock, &t->seen);
    case NXL_OP_BREAK:
        return loop ? nxl_lock_break_start(lock, &t->seen)
                    : nxl_lock_break(lock, &t->seen);
    case NXL_OP_ONCE_BEGIN:
        return loop ? nxl_once_begin_start(lock, &once, call->number)
                    : nxl_once_begin(lock, &once, call->number);
    case NXL_OP_ONCE_TELL:
        return loop ? nxl_once_tell_start(
                          lock, call->mode, code, r->text, r->length)
                    : nxl_once_tell(lock, call->mode, code, r->text, r->length);
    default:
        return loop ? nxl_once_forget_start(lock) : nxl_once_forget(lock);
    }
}

static void end_call(struct thing *t, int result)
{
    if (t->call.operation == NXL_OP_INSPECT && stage.scene->loop &&
        nxl_lock_holder(t->lock, &t->seen) != NXL_OK)
        t->seen = (nxl_holder)NXL_HOLDER_INIT;
    t->result = result;
    t->after_ns = nxl_now_ns();
    t->ended_ms = test_now_ms();
    t->running = false;
}

/* The events of calls end these; any other one is kept for "event". */
static void take_events(struct thing *client)
{
    nxl_event event;
    while (nxl_client_next_event(client->client, &event)) {
        struct thing *t = thing_of(A_LOCK, event.lock);
        if (t && t->running && event.operation == t->call.operation)
            end_call(t, event.result);
        else if (event.operation != NXL_OP_HOLD)
            fail_msg("an event of what nobody awaits: %d", event.operation);
        else if (client->events < SCENE_EVENTS)
            client->event[client->events++] = event;
    }
}

/* Waits for at most so long; is it time for nxl_client_process()? */
static bool poll_loop(struct thing *client, int most_ms)
{
    struct pollfd fds[16];
    int timeout_ms = -1;
    size_t count = 1;
    if (stage.scene->by_descriptor) {
        if (client->descriptor == 0)
            client->descriptor = nxl_client_fd(client->client);
        fds[0] = (struct pollfd){client->descriptor, POLLIN, 0};
    } else {
        count = nxl_client_pollfds(client->client, fds, 16, &timeout_ms);
    }
    assert_true(count <= 16);
    bool own = timeout_ms >= 0 && timeout_ms <= most_ms;
    int ready = poll(fds, (nfds_t)count, own ? timeout_ms : most_ms);
    assert_true(ready >= 0);
    return ready > 0 || own;
}

/* One turn of the event loop, for at most so long. */
static void turn_loop(struct thing *client, int most_ms)
{
    if (poll_loop(client, most_ms)) {
        client->turns++;
        assert_int_equal(nxl_client_process(client->client), NXL_OK);
    }
    if (!client->leaves_events)
        take_events(client);
}

static void *perform_blocking(void *argument)
{
    struct thing *t = argument;
    end_call(t, perform(t, &t->call, false));
    return NULL;
}

/* Through the event loop it goes on while the loop turns. */
static void begin_call(struct thing *t, const struct call *call, bool in_thread)
{
    t->call = *call;
    if (call->operation == NXL_OP_INSPECT)
        t->seen = (nxl_holder)NXL_HOLDER_INIT;
    if (call->operation == NXL_OP_BREAK && call->number > 0)
        (void)!nxl_lock_holder_at(t->lock, 0, (size_t)call->number, &t->seen);
    t->running = t->begun = true;
    t->began_ms = test_now_ms();
    t->before_ns = nxl_now_ns();
    t->threaded = in_thread && !stage.scene->loop;
    if (t->threaded && call->result.text)
        file_error("a result cannot be told in a thread");
    if (t->threaded) {
        assert_int_equal(
            pthread_create(&t->thread, NULL, perform_blocking, t), 0);
    } else if (!stage.scene->loop) {
        (void)perform_blocking(t);
    } else {
        int result = perform(t, call, true);
        if (result != NXL_PENDING)
            end_call(t, result);
    }
}

static void await_call(struct thing *t)
{
    if (t->threaded)
        pthread_join(t->thread, NULL);
    struct thing *owner =
        thing_of(A_CLIENT, t->client); /* NULL: it was freed first */
    if (owner)
        owner->leaves_events = false;
    while (t->running && owner)
        turn_loop(owner, 1000);
    t->threaded = t->begun = false;
}

/* Until the client is connected to all its servers: a call awaits no more than
 * a majority. */
static void connect_client(struct thing *client)
{
    static const struct call inspect = {.operation = NXL_OP_INSPECT};
    struct thing *probe = add_thing("(connect)", A_LOCK);
    int64_t end = test_now_ms() + SCENE_UNTIL_MS;
    probe->used = true;
    probe->client = client->client;
    assert_int_equal(
        nxl_lock_new(&probe->lock, client->client, "connect", NULL), NXL_OK);
    do {
        begin_call(probe, &inspect, false);
        await_call(probe);
    } while (!connected_to_all(client->client) && test_now_ms() < end);
    free_thing(probe);
}

static void give_call(struct outcome *o, struct thing *t)
{
    give_result(o, t->result, nxl_lock_errmsg(t->lock));
    o->took_ms = t->ended_ms - t->began_ms;
    o->ended_ms = t->ended_ms;
    o->before_ns = t->before_ns;
    o->after_ns = t->after_ns;
    if (t->call.operation == NXL_OP_INSPECT)
        o->fields = "holder %s";
    if (t->call.operation == NXL_OP_ONCE_BEGIN ||
        t->call.operation == NXL_OP_ONCE_TELL)
        o->fields = "record %s";
}

/* --------------------------------------------------- what handles do */

/* "wait 5000", "wait forever", or nothing: it does not wait. */
static int64_t wait_of(struct words *words)
{
    if (!accept(words, "wait"))
        return 0;
    return accept(words, "forever") ? NXL_FOREVER : number_of(take(words));
}

/* The call that the words name; without an operation: it is another word. */
static struct call read_call(struct words *words)
{
    int operation = word_among(
        words, call_words, sizeof(call_words) / sizeof(call_words[0]));
    struct call call = {.operation = operation < 0 ? 0 : operation};
    if (operation == NXL_OP_ONCE_BEGIN)
        read_begin(words, &call);
    else if (operation == NXL_OP_ONCE_TELL)
        read_tell(words, &call);
    if (operation == NXL_OP_ACQUIRE || operation == NXL_OP_ONCE_BEGIN)
        call.number = wait_of(words);
    else if (operation == NXL_OP_EXTEND && has(words) &&
             is_number(words->at->text))
        call.number = number_of(take(words));
    else if (operation == NXL_OP_ADOPT)
        snprintf(call.token, sizeof(call.token), "%s", take(words)->text);
    else if (operation == NXL_OP_BREAK)
        call.number = (int64_t)index_if_any(words);
    return call;
}

static void free_timed(struct thing *t, struct outcome *o)
{
    int64_t began = test_now_ms();
    free_thing(t);
    o->ended_ms = test_now_ms();
    o->took_ms = o->ended_ms - began;
}

/* ------------------------------------------------------- calls in steps
 *
 * A proxy passes on one step's commands, and one step's replies, at a time. */

/* More bytes than so many came that way; false: the call has ended. */
static bool came(const struct thing *t, enum proxy_way way, uint64_t before)
{
    int64_t limit = test_now_ms() + SCENE_UNTIL_MS;
    while (proxy_bytes(proxies[0], way) <= before) {
        if (!t->running)
            return false;
        assert_true(test_now_ms() < limit);
        test_pause_ms(1);
    }
    return true;
}

static bool reach_step(const struct thing *t, bool after, uint64_t sent)
{
    for (unsigned i = 0;; i++) {
        if (!came(t, PROXY_UP, sent))
            return false;
        sent = proxy_bytes(proxies[0], PROXY_UP);
        if (i == stage.stop.step && !after)
            return true;
        uint64_t answered = proxy_bytes(proxies[0], PROXY_DOWN);
        proxy_hold(proxies[0], PROXY_DOWN, true);
        proxy_hold(proxies[0], PROXY_UP, false);
        if (!came(t, PROXY_DOWN, answered))
            return false;
        if (aged) /* which answers commands one by one: not only the first */
            assert_eventually(aged_idle(aged));
        if (i == stage.stop.step)
            return true;
        proxy_hold(proxies[0], PROXY_UP, true);
        proxy_hold(proxies[0], PROXY_DOWN, false);
    }
}

/* "stopped before each step", "stopped after each step" */
static void begin_stopped(
    struct thing *t, const struct call *call, struct words *words)
{
    bool after = accept(words, "after");
    if ((!after && !accept(words, "before")) || !accept(words, "each") ||
        !accept(words, "step") || stage.scene->loop || !proxies[0])
        file_error("stopped before, or after, each step, through proxy");
    uint64_t sent = proxy_bytes(proxies[0], PROXY_UP);
    stage.stop.least = here ? steps_here(call_words[call->operation]) : 1;
    proxy_hold(proxies[0], PROXY_UP, true);
    begin_call(t, call, true);
    stage.stop.used = true;
    stage.stop.ended = !reach_step(t, after, sent);
    if (!stage.stop.ended)
        return;
    proxy_hold(proxies[0], PROXY_UP, false);
    proxy_hold(proxies[0], PROXY_DOWN, false);
    await_call(t);
    if (t->result != NXL_OK && t->result != NXL_UNKNOWN) /* too late for it */
        file_error("%s: %s", result_name(t->result), nxl_lock_errmsg(t->lock));
}

static void play_lock(struct thing *t, struct words *words, struct outcome *o)
{
    bool begin = accept(words, "begin");
    struct call call = read_call(words);
    if (call.operation != 0) {
        if (t->begun)
            file_error("%s has not ended what it began before", t->name);
        if (here && strstr(stage.step->text, " sent as "))
            o->ways = ways_so_far();
        if (begin && accept(words, "stopped"))
            begin_stopped(t, &call, words);
        else
            begin_call(t, &call, begin);
        if (!begin) {
            await_call(t);
            give_call(o, t);
            check_record(t, o);
        }
    } else if (begin) {
        file_error("begin what?");
    } else if (accept(words, "ends")) {
        if (!t->begun)
            file_error("%s has not begun anything", t->name);
        await_call(t);
        give_call(o, t);
    } else if (accept(words, "cancel")) {
        give_result(o, nxl_lock_cancel(t->lock), "");
    } else if (accept(words, "interrupt")) {
        give_result(o, nxl_lock_interrupt(t->lock), "");
    } else if (accept(words, "free")) {
        free_timed(t, o);
    } else if (!read_lock(t, words, o)) {
        file_error("a handle knows no \"%s\"", take(words)->text);
    }
}

/* "ask GETRANGE k 0 9", of server 1; the items of the answer, with blanks
 * between them. */
static void ask_by_client(
    struct thing *t, struct words *words, struct outcome *o)
{
    struct answer *answer = NULL;
    int64_t began_ms = test_now_ms();
    struct command c = take_command(words);
    int result = client_ask(t->client, 0, c.count, c.words, c.lengths, &answer);
    o->took_ms = test_now_ms() - began_ms;
    if (result != NXL_OK) {
        assert_null(answer);
        give_result(o, result, nxl_client_errmsg(t->client));
        return;
    }
    struct word all = word_text("");
    for (size_t i = 0; i < answer_count(answer); i++) {
        size_t length;
        const char *item = answer_item(answer, i, &length);
        o->none = !item;
        append(&all, " ", i > 0);
        append(&all, item ? item : "", item ? length : 0);
    }
    give(o, all);
    answer_free(answer);
}

static void *free_client(void *argument)
{
    struct thing *t = argument;
    nxl_client_free(t->client);
    t->running = false;
    return NULL;
}

static void begin_free(struct thing *t)
{
    t->running = t->threaded = true;
    assert_int_equal(pthread_create(&t->thread, NULL, free_client, t), 0);
}

static void play_client(struct thing *t, struct words *words, struct outcome *o)
{
    if (accept(words, "begin") && accept(words, "free"))
        begin_free(t);
    else if (accept(words, "running"))
        give_flag(o, t->running);
    else if (t->threaded && accept(words, "ends"))
        free_thing(t);
    else if (accept(words, "interrupt"))
        nxl_client_interrupt(t->client);
    else if (accept(words, "ask"))
        ask_by_client(t, words, o);
    else if (accept(words, "connect"))
        connect_client(t);
    else if (accept(words, "leave") && accept(words, "events"))
        t->leaves_events = true;
    else if (accept(words, "free"))
        free_timed(t, o);
    else if (!read_client(t, words, o))
        file_error("a client knows no \"%s\"", take(words)->text);
}

#endif
