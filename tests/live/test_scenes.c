/* SPDX-License-Identifier: MIT */
/*
 * Plays the scenes of one file of live/scenes, which is the program's argument,
 * one test each; live/scene.h begins with the language. A scene that fails says
 * in which line, what was expected there, and what came.
 */
#include "live/scene_file.h"
#include "live/scene_cut.h"
#include "live/scene_steps.h"
#include "support/alloc.h"

#include <sys/wait.h>

/* ------------------------------------------------------------------- scenes */

static int begin_scene(void **state)
{
    callback_reset();
    if (file.changes)
        go_to(&strategy_places[CHANGING], true);
    return here ? place_clean(state) : quorum_clean(state);
}

static int end_scene(void **state)
{
    if (stage.is_child) /* whose step could not be played */
        _exit(1);
    memory_returns();
    memory.place = 0;
    callback_returns();
    cutting.measures = cutting.cuts = false;
    for (size_t i = 0; i < on.servers; i++)
        redis_thaw(&servers[i]);
    free_things(false); /* before the proxies */
    quorum_mend(state);
    undo_changes();
    present_usual();
    stop_peers();
    front_stop();
    if (clock_offset_s)
        *clock_offset_s = 0;
    stage.count = 0;
    stage.inner = false;
    return 0;
}

/* Of each handle that has one; not again for the next handles with the same. */
static void print_messages(void)
{
    const char *printed = "";
    for (struct thing *t = NULL; (t = next_thing(t, A_LOCK));) {
        const char *message = t->threaded ? "" : nxl_lock_errmsg(t->lock);
        if (*message && strcmp(message, printed) != 0)
            print_error("  %-9s says \"%s\"\n", t->name, message);
        else if (*message)
            print_error("  %-9s the same\n", t->name);
        printed = *message ? message : printed;
    }
}

static void fail_at(const struct scene_step *step)
{
    memory_returns();
    print_error("%s:%u: not as expected\n  scene     %s\n  step      %s\n"
                "  but       %s\n",
        stage.path, step->line, stage.scene->name, step->text, stage.why);
    if (memory.place > 0)
        print_error("  memory    fails at allocation %u%s\n", memory.place,
            memory.for_good ? " and all after it" : "");
    if (cutting.cuts)
        print_error("  cut       behind byte %zu of the %s\n", cutting.behind,
            cutting.way == PROXY_UP ? "requests" : "replies");
    if (here)
        print_error("  server    %s\n", here->name);
    print_messages();
    fail();
}

/* Lets time pass, and each client of an event loop do its work: one alone is
 * not called before it is time. */
static void let_pass(int ms)
{
    int64_t end = test_now_ms() + ms, left = ms;
    size_t clients = 0;
    struct thing *t = NULL;
    while (stage.scene->loop && (t = next_thing(t, A_CLIENT)))
        clients += !t->threaded; /* or a thread frees it */
    if (clients == 0)
        test_pause_ms(ms);
    for (; clients > 0 && left > 0; left = end - test_now_ms())
        for (t = NULL; (t = next_thing(t, A_CLIENT));)
            if (!t->threaded)
                turn_loop(t, clients > 1 ? 1 : (int)left);
}

/* "pass 50 ms", or "pass 50 ms without a turn": what has begun is sent before.
 */
static void play_pass(int ms, const char *rest)
{
    if (*rest == '\0') {
        let_pass(ms);
        return;
    }
    if (strcmp(rest, " without a turn") != 0)
        file_error("pass 50 ms, or pass 50 ms without a turn");
    for (struct thing *t = NULL; (t = next_thing(t, A_CLIENT));)
        (void)nxl_client_pollfds(t->client, NULL, 0, NULL);
    test_pause_ms(ms);
}

/* Waiting would turn a grant that must not be into a refusal. */
static bool is_ok_instead(const char *text)
{
    return strstr(text, " -> E_") && strcmp(stage.result, "OK") == 0;
}

static void play_until(
    const struct scene_step *step, const char *text, int most_ms)
{
    int64_t end = test_now_ms() + most_ms;
    char *first = word_text(text).text, *then = cut_at(first, " then ");
    char *calls[4] = {then ? cut_at(first, ": ") : NULL};
    for (size_t i = 0; calls[i] && i < 3; i++)
        calls[i + 1] = cut_at(calls[i], ", ");
    char *other = then ? NULL : cut_at(first, ", or ");
    size_t used = text_used;
    for (;;) {
        text_used = used;
        for (size_t i = 0; i < 4 && calls[i]; i++)
            (void)play_value(first, calls[i]);
        if (play_step(then ? then : first) || (other && play_step(other)))
            break;
        if (is_ok_instead(text))
            fail_at(step);
        if (test_now_ms() > end) {
            print_error("never came true: %s\n", text);
            fail_at(step);
        }
        let_pass(1);
    }
}

/* Of "if OK: STEP" and "if not OK: STEP" the step, if it is to be played. */
static const char *step_if(const char *text)
{
    bool wanted = strncmp(text, "not ", 4) != 0;
    const char *result = wanted ? text : text + 4, *then = strstr(text, ": ");
    if (!then)
        file_error("if what?");
    size_t length = (size_t)(then - result);
    bool is = strlen(stage.result) == length &&
              strncmp(stage.result, result, length) == 0;
    return is == wanted ? then + 2 : NULL;
}

static bool has_command(const char *name)
{
    redisReply *reply =
        redis_command(&servers[0], "COMMAND", "INFO", name, NULL);
    bool has = reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
               reply->element[0]->type == REDIS_REPLY_ARRAY;
    freeReplyObject(reply);
    return has;
}

/* "only: tokens", "not over TLS: WHY": whether the scene is for these servers
 * and for this program. */
static bool is_condition(const char *text, bool *is_met)
{
    const struct {
        const char *words;
        bool is_met;
    } conditions[] = {
        {"not with several servers: ", on.servers == 1},
        {"not with one server: ", on.servers > 1},
        {"not over TLS: ", !live_tls()},
        {"not instrumented: ", !LIVE_INSTRUMENTED},
    };
    const char *trait = after(text, "only: ");
    *is_met = !here || !trait || is_for(trait);
    for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
        if (!after(text, conditions[i].words))
            continue;
        *is_met = conditions[i].is_met;
        return true;
    }
    return trait;
}

/* Does the step skip the scene, if it has to? */
static bool play_need(const char *text)
{
    int major;
    char command[16];
    const char *why;
    if (!strcmp(text, "needs IPv6"))
        needs_ipv6();
    else if (!strcmp(text, "needs ACL"))
        redis_needs_acl(&servers[0]);
    else if (sscanf(text, "needs Redis %d", &major) == 1 &&
             (why = strchr(text, ':')))
        redis_needs(&servers[0], major, why + 2);
    else if (after(text, "not as root: "))
        geteuid() == 0 ? test_skip(text) : 0;
    else if (sscanf(text, "needs command %15s", command) == 1)
        has_command(command) ? 0 : test_skip(text);
    else
        return false;
    return true;
}

/* The child ends with it, and has said what was not as expected. */
static void play_in_child(const struct scene_step *step, const char *text)
{
    int status = -1;
    pid_t pid = test_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        stage.is_child = true;
        for (size_t i = 0; i < stage.count; i++) /* calls are its parent's */
            stage.things[i].begun = stage.things[i].threaded = false;
        bool good = play_step(text);
        if (!good)
            print_error("in a child: %s\n", stage.why);
        _exit(!good);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0) {
        (void)mismatch("the child ended with status %d", status);
        fail_at(step);
    }
}

static void play_text(const struct scene_step *step, const char *text);

/* Without a cut the call succeeds, whatever is expected of one that is cut. */
static void play_cut(const struct scene_step *step, const char *text)
{
    char *call = copied(text);
    if (cutting.measures && cut_at(call, " -> "))
        text = formatted("%s -> OK", call);
    cut_begins();
    play_text(step, text);
    cut_ends();
}

static void play_text(const struct scene_step *step, const char *text)
{
    int ms, words = 0;
    const char *rest;
    bool is_met;
    if ((rest = after(text, "if "))) {
        if ((rest = step_if(rest)))
            play_text(step, rest);
    } else if ((rest = after(text, "where it fails: "))) {
        memory_fails();
        play_text(step, rest);
        memory_returns();
    } else if ((rest = after(text, "where it is cut: "))) {
        play_cut(step, rest);
    } else if ((rest = after(text, "until "))) {
        play_until(step, rest, SCENE_UNTIL_MS);
    } else if (sscanf(text, "in %d ms %n", &ms, &words) == 1 && words > 0) {
        play_until(step, text + words, ms + LATE_MS);
    } else if ((rest = after(text, "in a child "))) {
        play_in_child(step, rest);
    } else if (sscanf(text, "pass %d ms%n", &ms, &words) == 1 && words > 0) {
        play_pass(ms, text + words);
    } else if (!is_condition(text, &is_met) && !play_need(text) &&
               !play_step(text)) {
        fail_at(step);
    }
}

static void play_one(const struct scene_step *step)
{
    stage.step = step;
    text_used = texts_of_file;
    if (*step->text != '\0') /* or it is an empty cell of a table */
        play_text(step, step->text);
}

static size_t play_block(size_t at, unsigned indent);

/* Once; what is made in it is freed at its end. */
static void play_inner(size_t first)
{
    stage.inner = true;
    cutting.begun = false;
    play_block(first, stage.scene->steps[first].indent);
    if (cutting.cuts) /* a cut that was ordered and has not come will not */
        proxy_cut_after(proxies[0], cutting.way, SIZE_MAX / 2);
    free_things(true);
    stage.inner = false;
}

static void play_cuts(const char *text, size_t first)
{
    size_t last, distance = read_cut(text, &last);
    cutting.measures = true;
    play_inner(first);
    cutting.measures = false;
    cutting.cuts = true;
    size_t size = cutting.size;
    for (size_t n = last > 0 && last < size ? size - last : 0; n < size;
         n += distance) {
        cutting.behind = n;
        play_inner(first);
    }
    cutting.cuts = false;
}

/* The block of memory that is in use afterwards. */
static long play_each_place(size_t first, bool for_good, unsigned distance)
{
    unsigned place = 1;
    do {
        memory_begins(place, for_good);
        play_inner(first);
        place += distance;
    } while (memory.failed);
    if (place <= 1 + distance && on.servers == 1)
        file_error("nothing is allocated in the step that it is about");
    memory.place = 0;
    return alloc_blocks();
}

/* OpenSSL allocates some things once, and again if that failed, so that a
 * second time can leave something. What each time leaves is a leak; and a
 * thread that was told to end, or a proxy's, may still be at it. */
static void play_without_memory(const char *text, size_t first)
{
    enum { ROUNDS = 4, ENDED_MS = 1000 };
    unsigned distance = 1;
    const char *each = strstr(text, "at each ");
    if (!each || !strstr(each, " place"))
        file_error("memory fails once at each place, or at each 61st place");
    (void)sscanf(each, "at each %u", &distance);
    bool for_good = strstr(text, "for good");
    if (getenv("NXLOCK_FULL"))
        distance = 1;
    if (!alloc_counts())
        test_skip("a sanitizer has the allocator");
    long before = play_each_place(first, for_good, distance);
    for (int round = 0;; round++) {
        long after = play_each_place(first, for_good, distance);
        int64_t end = test_now_ms() + ENDED_MS;
        while (after > before && test_now_ms() < end)
            test_pause_ms(1), after = alloc_blocks();
        if (after <= before)
            return;
        if (round == ROUNDS)
            file_error("each time it leaves %ld blocks more", after - before);
        before = after;
    }
}

/* From that step up to the first one that is indented less. */
static size_t play_block(size_t at, unsigned indent)
{
    const struct scene *s = stage.scene;
    while (
        at < s->count && s->steps[at].indent >= indent && !stage.stop.ended) {
        int times = 0;
        const char *text = s->steps[at].text;
        stage.step = &s->steps[at];
        if (s->steps[at].indent > indent)
            file_error("it is indented more than the step before");
        if (!begins_block(text)) {
            play_one(&s->steps[at++]);
            continue;
        }
        size_t first = ++at;
        while (at < s->count && s->steps[at].indent > indent)
            at++;
        if (first == at)
            file_error("nothing is indented under it");
        if (after(text, "cut "))
            play_cuts(text, first);
        else if (sscanf(text, "repeat %d times", &times) != 1)
            play_without_memory(text, first);
        for (int i = 0; i < times; i++)
            play_block(first, s->steps[first].indent);
    }
    return at;
}

static void play_steps(void)
{
    play_block(0, stage.scene->steps[0].indent);
    for (size_t i = 0; i < stage.count && !stage.stop.ended; i++)
        if (stage.things[i].kind != NO_THING && !stage.things[i].used)
            file_error("%s is never used", stage.things[i].name);
}

/* Again for each step of a call that is to be stopped there. */
static void play_scene(void **state)
{
    stage.scene = *state;
    stage.count = 0;
    memset(&stage.stop, 0, sizeof(stage.stop));
    if (stage.scene->count == 0)
        fail_msg("%s:%u: no steps", stage.path, stage.scene->line);
    play_steps();
    while (stage.stop.used && !stage.stop.ended) {
        if (++stage.stop.step == SCENE_STOPS)
            fail_msg("the call does not end");
        end_scene(state);
        begin_scene(state);
        play_steps();
    }
    if (stage.stop.step < stage.stop.least)
        fail_msg("the call has had %u steps", stage.stop.step);
    if (here)
        place_check(state);
}

/* ------------------------------------------------------------------- groups */

static int start(void **state)
{
    if (here)
        return place_open(state);
    if (file.steps_clock && prepare_clock())
        return -1;
    for (size_t i = 0; i < on.servers; i++) {
        const struct redis_tls tls = {.certificate = NULL};
        char **a = file.arguments;
        int rc = file.certificates
                     ? redis_start_tls(&servers[i], &tls, a[0], a[1], a[2],
                           a[3], a[4], a[5], NULL)
                     : redis_start(&servers[i], a[0], a[1], a[2], a[3], a[4],
                           a[5], a[6], a[7], a[8], a[9], a[10], a[11], NULL);
        if (rc)
            return -1;
    }
    unsetenv("LD_PRELOAD");
    return file.certificates ? make_certificates() : 0;
}

static int stop(void **state)
{
    remove_clock();
    return here ? place_close(state) : quorum_stop(state);
}

static bool plays_here(const struct scene *s)
{
    bool is_met;
    for (size_t i = 0; i < s->count; i++)
        if (is_condition(s->steps[i].text, &is_met) && !is_met)
            return false;
    return true;
}

static int play_group(size_t count, bool tcp)
{
    static struct CMUnitTest tests[SCENES_MAX];
    size_t played = 0;
    char name[128];
    on.servers = count;
    on.tcp = tcp;
    snprintf(name, sizeof(name), "%s (%zu server%s, %s)", file.name, count,
        count > 1 ? "s" : "",
        here         ? here->name
        : live_tls() ? "TLS"
        : count > 1  ? "TCP and unix"
        : tcp        ? "TCP"
                     : "unix");
    for (size_t i = 0; i < file.count; i++)
        if (plays_here(&file.scenes[i]))
            tests[played++] = file.tests[i];
    return test_run_group(name, tests, played, start, stop);
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc != 2)
        return 2;
    signal(SIGPIPE, SIG_DFL); /* whoever raises it ends this program */
    stage.path = argv[1];
    read_scenes(argv[1]);
    texts_of_file = text_used;
    const char *base = strrchr(argv[1], '/');
    snprintf(file.name, sizeof(file.name), "%s", base ? base + 1 : argv[1]);
    file.name[strcspn(file.name, ".")] = '\0';
    size_t from = file.changes ? CHANGING : 0;
    size_t to = file.changes ? ALL_PLACES - 1 : file.each_strategy ? PLACES : 0;
    for (size_t i = from; i < to; i++) {
        here = &strategy_places[i];
        failed += play_group(1, true);
    }
    here = NULL;
    if (file.on[1])
        failed += play_group(1, true);
    if (file.on[1] && !live_tls() && !live_tcp_only(file.brief))
        failed += play_group(1, false);
    for (size_t count = 2; count <= QUORUM_MAX; count++)
        if (file.on[count])
            failed += play_group(count, false);
    return failed;
}
