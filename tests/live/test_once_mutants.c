/* SPDX-License-Identifier: MIT */
/*
 * Each comparison in the scripts of work that must be done once, taken out: the
 * table or one of the cases has to notice, or nothing tests that comparison.
 */
#include "live/once_cases.h"

/* Returns the case or cell that differs; NULL: none does. The cases first: they
 * are few, and the table is long. */
static const char *noticed(const char **why)
{
    struct cell c;

    for (size_t i = 0; i < ONCE_CASES; i++) {
        *why = once_cases[i].run();
        if (*why)
            return once_cases[i].name;
    }
    table_differs(1, &c, why);
    return *why ? cell_name(&c) : NULL;
}

static void run_mutants(const struct script_change *changes, size_t count)
{
    unsigned missed = 0;

    for (size_t i = 0; i < count; i++) {
        const char *why;
        script_mutant = &changes[i];
        const char *name = noticed(&why);
        while (case_hears("end") == false)
            ; /* what this one has published */
        if (name) {
            print_message("%s: '%s' -> '%s': %s: %s\n", changes[i].script,
                changes[i].from, changes[i].to, name, why);
        } else {
            print_error("%s: nothing notices '%s' -> '%s'\n", changes[i].script,
                changes[i].from, changes[i].to);
            missed++;
        }
    }
    script_mutant = NULL;
    assert_int_equal(missed, 0);
}

#define RUN(changes) run_mutants(changes, sizeof(changes) / sizeof(changes[0]))

static void of_begin(void **state)
{
    static const struct script_change changes[] = {
        {"begin", "r and r.state ~= 'failed' and", "r and"},
        {"begin", "r.fingerprint ~= fingerprint", "false"},
        {"begin", "r and r.state == 'done'", "false"},
        {"begin", "if r.size >= 0 then", "if true then"},
        {"begin", "not (mine or fits(s, token))", "false"},
        {"begin", "mine or fits(s, token)", "fits(s, token)"},
        {"begin", "mine or fits(s, token)", "mine"},
        {"begin", "(r and r.token == token and not looks)", "false"},
        {"begin", "r.token == token and not looks", "r.token == token"},
        {"begin", "r.token == token and not looks", "not looks"},
        {"begin", "r and r.open and mode ~= 'retry'", "false"},
        {"begin", "r and r.open and mode ~= 'retry'", "r and r.open"},
        {"begin", "r.open and mode ~= 'retry'", "mode ~= 'retry'"},
        {"begin", "elseif looks then", "elseif false then"},
        {"begin", "if s == false or (k and", "if (k and"},
        {"begin", "if s ~= false and (not s", "if (not s"},
        {"begin", "if left == -2 then", "if left ~= -2 then"},
        {"begin", "not looks and holds(s, key, token)", "holds(s, key, token)"},
        {"begin", "not looks and holds(s, key, token)", "false"},
        {"begin", "holds(s, key, token)", "s ~= false"},
        {"begin", "if mine then", "if false then"},
        {"begin", "return s == token", "return true"},
        {"begin", "return s == token", "return false"},
        {"begin", "return s == token",
            "return s and string.sub(s, 1, 1) == token"},
        {"begin", "(r.open and 1 or 0)", "0"},
        {"begin", "(r.open and 1 or 0)", "1"},
        {"begin", "r and r.doubts + (r.open and 1 or 0) or 0", "0"},
        {"begin", "math.max(last + 1,", "math.max("},
        {"begin", "r and r.fence + 1 or 0, now", "now"},
        {"begin", "r and r.fence + 1 or 0, now)", "r and r.fence + 1 or 0)"},
        {"begin", "r and r.attempt + 1 or 1", "1"},
        {"begin", "r and r.late or 0", "0"},
        {"begin", "r and r.first or ms", "ms"},
        {"begin", "r.left + 0 >= 0", "true"},
        {"begin", "r and r.open and r.line or nil", "r and r.line"},
        {"begin", "r and r.open and r.line or nil", "nil"},
    };
    RUN(changes);
}

static void of_tell(void **state)
{
    static const struct script_change changes[] = {
        {"tell", "r and r.token == token", "r ~= nil"},
        {"tell", "r and r.token == token", "false"},
        {"tell", "r.doubts + r.late > 0 and", "r.doubts + 0 > 0 and"},
        {"tell", "r.doubts + r.late > 0 and", "r.late + 0 > 0 and"},
        {"tell", "r.doubts + r.late > 0 and", "true and"},
        {"tell", "r and mine and r.late + 0 == 0", "r and mine"},
        {"tell", "r and mine and r.late + 0 == 0", "r and r.late + 0 == 0"},
        {"tell", "{done = 'done', failed = '', unsure = 'doubt'}", "{}"},
        {"tell", "not state and verdict == 'done'", "not state"},
        {"tell", "not state and verdict == 'done'", "verdict == 'done'"},
        {"tell", "not state and verdict == 'done'", "false"},
        {"tell", "late or (state and state ~= '')", "late or state"},
        {"tell", "mine and verdict ~= 'clear' and", "verdict ~= 'clear' and"},
        {"tell", "mine and verdict ~= 'clear' and", "mine and"},
        {"tell", "mine and verdict ~= 'clear' and", "false and"},
        {"tell", "lasts ~= '-1'", "true"},
        {"tell", "if lasts == '0' then", "if true then"},
        {"tell", "if lasts == '0' then", "if false then"},
        {"tell", "if not own then", "if false then"},
        {"tell", "if verdict == 'clear' then", "if false then"},
        {"tell", "if state == 'done' then", "if false then"},
        {"tell", "if state == 'done' then", "if true then"},
        {"tell", "ARGV[9] and #result or -1", "#result"},
        {"tell", "(state == 'done' or state == 'failed')", "(state == 'done')"},
        {"tell", "(state == 'done' or state == 'failed')",
            "(state == 'failed')"},
        {"tell", "(state == 'done' or state == 'failed')", "true"},
        {"tell", "r.left + 0 >= 0", "false"},
        {"tell", "verdict == 'failed' and parse", "parse"},
        {"tell", "r.line == before.line", "false"},
        {"tell", "before and state == 'doubt' and", "before and"},
        {"tell", "before and state == 'doubt' and", "false and"},
        {"tell", "before.open and", ""},
        {"tell", "before.late == r.late", "true"},
        {"tell", "if verdict == 'unbegun' then", "if false then"},
        {"tell", "return s == token", "return true"},
        {"tell", "return s == token", "return false"},
        {"tell", "is_other_type(seen)", "false"},
    };
    RUN(changes);
}

/* The rows of the table in tell.lua. */
static void of_the_rows(void **state)
{
    static const char *const rows[] = {"['own begun'] = ", "['own doubt'] = ",
        "['own done'] = ", "['own failed'] = ", "['other failed'] = "};
    struct script_change changes[5];
    char moved[5][40];

    for (size_t i = 0; i < 5; i++) {
        snprintf(moved[i], sizeof(moved[i]), "['no %s", rows[i] + 2);
        changes[i] = (struct script_change){"tell", rows[i], moved[i]};
    }
    run_mutants(changes, 5);
}

static void of_forget_and_records(void **state)
{
    static const struct script_change changes[] = {
        {"forget", "r.line ~= ARGV[1]", "false"},
        {"forget", "not r or r.line", "not r and r.line"},
        {"forget", "if holds(content(KEYS[1]), KEYS[1], r.token) then",
            "if false then"},
        {"forget", "return s == token", "return s ~= ''"},
        {"begin", "r.state == 'begun' or r.state == 'doubt'",
            "r.state == 'begun'"},
        {"begin", "r.state == 'begun' or r.state == 'doubt'",
            "r.state == 'doubt'"},
        {"begin", "if r.open or r.state == 'done' or r.state == 'failed' then",
            "if true then"},
        {"begin", "r.open or r.state == 'done' or", "r.open or"},
        {"begin", "r.state == 'done' or r.state == 'failed' then",
            "r.state == 'done' then"},
        {"begin", "and redis.call('EXISTS', key) == 0", ""},
        {"begin", "'^(once1", "'^(once%d"},
        {"begin", "([-=]%S*) (%-?%d+))\\n'", "(%S*) (%-?%d+))\\n'"},
        {"begin", "(%-?%d+))\\n'", "(%-?%d+))'"},
        {"begin", "and is_whole(key, r, text)", ""},
        {"begin", "return #text == length", "return #text >= length"},
        {"begin", "return #text == length", "return #text <= length"},
        {"begin", "r.size < -1 or", ""},
        {"begin", "r.size > 1048576", "false"},
        {"begin", "length - 1, length) == 1", "length - 1, length) > 0"},
        {"begin", "length - 1, length) == 1", "length - 1, length) < 2"},
        {"begin", "\nif failure then", "\nif false then"},
        {"begin", "if wrong then", "if false then"},
    };
    RUN(changes);
}

/* Who gives the lock back hands it over, unless it is told not to. */
static void of_the_line(void **state)
{
    static const struct script_change changes[] = {
        {"begin", "gone == 1 and not stands", "not stands"},
        {"tell", "gone == 1 and not stands", "not stands"},
        {"tell", "if gap and leaves_gap", "if false and leaves_gap"},
        {"tell", "w.known and not w.deaf", "not w.deaf"},
        {"tell", "not mark or mark == 64", "true"},
    };
    RUN(changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(of_begin),
        once_test(of_tell),
        once_test(of_the_rows),
        once_test(of_forget_and_records),
        once_test(of_the_line),
    };
    return cmocka_run_group_tests_name(
        "once_mutants", tests, live_unix, live_stop);
}
