/* SPDX-License-Identifier: MIT */
/*
 * Each check in the scripts of a lock that several hold, taken out: the row
 * that is there for it has to notice.
 */
#include "live/permit_rows.h"

static const struct mutant {
    struct script_change change;
    const char *row; /* its name begins like this */
} of_the_kind[] = {
    {{NULL, "and k <= l", ""}, "shares that no"},
    {{NULL, "l > 1 and", ""}, "shares that no"},
    {{NULL, "string.byte(permits) ~= 48 and", ""}, "shares that no"},
    {{NULL, "l <= 2147483647", "true"}, "shares that no"},
    {{NULL, "([1-9]%d*)/", "(%d+)/"}, "shares that no"},
    {{NULL, "(more ~= '' and more ~= '@')", "false"}, "shares that no"},
    {{NULL, "permits == '0' and k == 1", "permits == '0'"}, "shares that no"},
    {{NULL, "not mark or mark == 64", "true"}, "a key of a later kind"},
};

static const struct mutant of_the_state[] = {
    {{NULL, "'^(nxl=[^#]*)", "'^([^#]*)"}, "a ranking with"},
    {{NULL, "last[#last] + 0 < FAR", "false"}, "a ranking that looks"},
    {{NULL, "'(' .. now_of(s)", "'-inf'"}, "nobody removes"},
    {{NULL, "-1 - count, '-2'", "'0', '-2'"}, "a holder with a limit"},
    {{NULL, "weights[asks] = weight or 1", "weights[asks] = 1"},
        "the head knows"},
    {{NULL, "local asks = string.match(all[i], '^[^@]*', 37)",
         "local asks = ''"},
        "the head knows"},
    {{NULL, "s.most = math.min(s.most, permits or 1)", ""},
        "the smallest limit"},
    {{NULL, "s.used = k * ", "s.used = "}, "weights"},
    {{NULL, "s.most = l == '0' and math.huge or l + 0", ""}, "a greater limit"},
    {{NULL, "s.pause = is_pause(s)", "s.pause = false"}, "a pause"},
    {{NULL, ">= 30000", ">= 20000"}, "a pause"},
    {{NULL, "% 30100", "% 60200"}, "a pause"},
    {{NULL, "not s.used or s.pause)", "not s.used)"}, "a pause"},
    {{NULL, "s.used + k <= math.min(s.most, l)", "s.used + k <= s.most"},
        "the smallest limit"},
    {{NULL, "s.used + k <= math.min(s.most, l)", "s.used + k <= l"},
        "the smallest limit"},
    {{NULL, "s.used + k <= math.min(s.most, l)", "s.used < s.most"}, "weights"},
    {{NULL, "return ends and ends > s.now and ends", "return ends"},
        "a lease that is over takes"},
};

static const struct mutant of_a_grant[] = {
    {{NULL, "if s.head ~= head and s.head ~= 'nxl=*' then", "if false then"},
        "the head knows"},
    {{NULL, "redis.pcall('ZREM', key, s.old)", ""}, "the head knows"},
    {{NULL, "if ends > s.ends then", "if true then"}, "a short lease joins"},
    {{NULL, "s.used, s.most = s.used + k, ", "s.used, s.most = s.used, "},
        "a batch counts on"},
    {{NULL, "s.used + k, math.min(s.most, l)", "s.used + k, s.most"},
        "in a batch too, if"},
    {{NULL, "lasts = 0, used = k, most = l", "lasts = 0, used = 0, most = l"},
        "a batch counts on"},
    {{NULL, "lasts = 0, used = k, most = l",
         "lasts = 0, used = k, most = math.huge"},
        "in a batch too (5)"},
    {{NULL, "return ends and ends > s.now and ends", "return ends"},
        "a lease that is over takes"},
    {{NULL, "ends = math.max(ends, s.now + lease)", "ends = s.now + lease"},
        "a lease is never"},
    {{NULL, "s.ends = math.max(s.ends, ends)", "s.ends = ends"},
        "a short lease is extended"},
    {{"take", "elseif extend_if_held(s, key, token, lease, left) then",
         "elseif false then"},
        "a token takes its permits"},
    {{"take", "and not holds(s, key, token)", ""}, "a lease is never"},
    {{"line_wait", "elseif extend_if_held(s, key, token, lease, left) then",
         "elseif false then"},
        "a token takes its permits"},
    {{"take", "if stop then", "if false then"}, "nobody passes"},
    {{"take", "gap > 0 and gap <= GAP_MAX", "false"}, "a gap is left"},
    {{"take", "redis.call('EXISTS', mark, line)", "redis.call('EXISTS', mark)"},
        "after a gap"},
    {{"take", "local marked = redis.call('EXISTS', mark, KEYS[4]) > 0",
         "local marked = false"},
        "nobody passes"},
    {{"take", "if tries and s and s.used then", "if false then"}, "a pause"},
    {{"take", "if tries and s and s.used then", "if s then"}, "a pause"},
    {{"take", "fit, k, l, head = caller_fits(s)\nif fit and",
         "fit, k, l, head = fits(s, token)\nif fit and"},
        "a pause"},
    {{"take", "fit, k, l, head = caller_fits(s)\nif marked",
         "fit, k, l, head = fits(s, token)\nif marked"},
        "a pause"},
    {{"take", "if fit and not", "if not"}, "four of four"},
    {{"line_wait", "if s == false and gap > 0 then", "if false then"},
        "a gap is left"},
};

static const struct mutant of_the_end[] = {
    {{NULL, "redis.pcall('PEXPIRE', key, s.ends - s.now)\nend\nlocal waits",
         "end\nlocal waits"},
        "the longest lease leaves"},
    {{NULL, "redis.call('ZREM', key, token)\nend\nlocal ends",
         "end\nlocal ends"},
        "four of four"},
    {{NULL, "if ends == 0 or (ends and", "if ends == 0 or (false and"},
        "a writer that polls"},
    {{NULL, "string.sub(mark, 1, -2) .. 'l') == 0) then", "'') == 0) then"},
        "a line that comes later"},
    {{NULL, "local some_left = s.ends > s.now", "local some_left = false"},
        "the longest lease leaves"},
    {{NULL, "mark and tonumber(redis.pcall('DEL', mark)) == 1", "false"},
        "in a batch too"},
    {{NULL, "or 1, false, is_pause(s)", "or 1, false, false"}, "a pause"},
    {{"release", "redis.call('ZREM', key, token) == 1 then", "false then"},
        "a lease that is over does not"},
    {{"release", "if removed == 1 and s and s.used then", "if false then"},
        "a writer gives up"},
    {{"release", "if gone or holds(s, key, token) then", "if true then"},
        "extended and released"},
    {{"cap_ttl", "elseif holds(s, key, token) then", "elseif true then"},
        "extended and released"},
    {{"cap_ttl", "redis.call('ZADD', key, s.now + ms, token)", ""}, "min_hold"},
    {{NULL, "return ends_with_last(s, key) and 1 or 0", "return 1"},
        "min_hold"},
    {{"inspect", "return ends and {asks, ends - s.now} or {}",
         "return {asks, 1}"},
        "extended and released"},
};

static const struct mutant of_the_line[] = {
    {{NULL, "done = redis.pcall('ZREM', line, unpack(leave))", "done = #leave"},
        "granted from the line once"},
    {{NULL, "head = fits(s, w.token)", "head = kind(w.token)"},
        "a batch counts on"},
    {{NULL, "if w.deaf then", "if false then"},
        "who is in line and cannot be told"},
    {{NULL, "redis.pcall('SET', mark, '1', 'PX', '15000')\nend\nreturn reply",
         "end\nreturn reply"},
        "in a batch too"},
};

static const struct mutant of_a_number[] = {
    {{NULL, "FAR + s.since, s.head .. s.number", "FAR + s.since, s.head"},
        "a number is kept"},
    {{NULL, "s.lasts ~= 0 and s.head .. s.number", "s.lasts ~= 0 and s.head"},
        "a number is kept"},
    {{"shared_fence", "drawn or math.max", "math.max"}, "readers have one"},
    {{"shared_fence", "not holds(s, key, token)", "false"}, "no number after"},
    {{"shared_fence", "math.max(last, fence)", "last"},
        "a counter that is ahead"},
    {{"shared_fence", "math.max(last + 1, now)", "math.max(last, now)"},
        "a counter that is ahead"},
    {{"shared_fence", "if wrong and not is_other_type(wrong)", "if wrong"},
        "another type"},
    {{"shared_fence", "if failure then", "if false then"}, "a counter that is "
                                                           "none"},
    {{"shared_fence", "redis.call('ZREM', key, s.head)", ""}, "readers have"},
};

static const struct mutant of_holding_back[] = {
    {{"take", "if ends > 0 and ends <= GAP_MAX then", "if false then"},
        "a writer that polls"},
    {{"take", "if ends > 0 and ends <= GAP_MAX then", "if ends > 0 then"},
        "a mark of a later"},
    {{"hold_back", "if others and others < ends then", "if true then"},
        "a mark of a later"},
    {{"hold_back", "if several_hold and ms > 0 then", "if ms > 0 then"},
        "an exclusive holder, or none"},
    {{"hold_back", "math.max(ms, lasts)", "ms"}, "a line that came in"},
};

static const struct permit_row *row_of(const char *name)
{
    for (size_t i = 0; i < PERMIT_ROWS; i++)
        if (strncmp(permit_rows[i].name, name, strlen(name)) == 0)
            return &permit_rows[i];
    fail_msg("no row '%s'", name);
    return NULL;
}

static void run_mutants(
    void **state, const struct mutant *mutants, size_t count)
{
    unsigned missed = 0;
    for (size_t i = 0; i < count; i++) {
        const struct script_change *change = &mutants[i].change;
        const struct permit_row *row = row_of(mutants[i].row);
        line_teardown(state);
        line_setup(state);
        redisSetTimeout(ears, (struct timeval){2, 0});
        mutants_sent = 0;
        script_mutant = change;
        const char *why = permit_scene(row->steps);
        script_mutant = NULL;
        if (why && mutants_sent > 0) {
            print_message("'%s' -> '%s': %s: %s\n", change->from, change->to,
                row->name, why);
            continue;
        }
        print_error("'%s' -> '%s': %s: %s\n", change->from, change->to,
            row->name, mutants_sent ? "does not notice" : "is not in a script");
        missed++;
    }
    assert_int_equal(missed, 0);
}

#define RUN(table) run_mutants(state, table, sizeof(table) / sizeof((table)[0]))

static void the_kind(void **state)
{
    RUN(of_the_kind);
}

static void the_state(void **state)
{
    RUN(of_the_state);
}

static void a_grant(void **state)
{
    RUN(of_a_grant);
}

static void the_end(void **state)
{
    RUN(of_the_end);
}

static void the_line(void **state)
{
    RUN(of_the_line);
}

static void a_number(void **state)
{
    RUN(of_a_number);
}

static void holding_back(void **state)
{
    RUN(of_holding_back);
}

#define scene(function)                                                        \
    cmocka_unit_test_setup_teardown(function, line_setup, line_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene(the_kind),
        scene(the_state),
        scene(a_grant),
        scene(the_end),
        scene(the_line),
        scene(a_number),
        scene(holding_back),
    };
    return cmocka_run_group_tests_name(
        "permit_mutants", tests, live_unix, live_stop);
}
