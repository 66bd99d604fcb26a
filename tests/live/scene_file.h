/* SPDX-License-Identifier: MIT */
/* Reads a file of scenes: its settings, and each scene once for every row of
 * its table and for every interface. */
#ifndef NXLOCK_TESTS_LIVE_SCENE_FILE_H
#define NXLOCK_TESTS_LIVE_SCENE_FILE_H

#include "live/scene.h"

#define BEFORE_EACH "before each"
#define AFTER_EACH "after each"

enum { SCENES_MAX = 400, STEPS_MAX = 200, TABLES_MAX = 3, ROWS_MAX = 80 };

struct scene_part {
    struct scene_step steps[STEPS_MAX];
    size_t count;
    struct table {
        char *rows[ROWS_MAX]; /* the first one has the names of the columns */
        size_t count;
    } tables[TABLES_MAX];
    size_t table_count;
};

static struct {
    char name[64];
    bool calls[INTERFACES];      /* through which of them */
    bool on[QUORUM_MAX + 1];     /* on how many servers */
    char parameters[SCENE_ROOM]; /* of all clients' URLs */
    bool brief;                  /* over TCP only */
    bool steps_clock;            /* of the servers */
    bool certificates;           /* they speak TLS, see scene_tls.h */
    bool each_strategy, changes; /* see strategies_rig.h */
    char *arguments[13];         /* of the servers */
    struct scene scenes[SCENES_MAX];
    struct CMUnitTest tests[SCENES_MAX];
    size_t count;
    struct scene_part before, after; /* of each scene, around its own steps */
} file = {.calls = {true}, .on = {[1] = true}};

/* The scene that is being read. */
static struct {
    char *name;
    unsigned line;
    struct scene_part own;
    bool calls[INTERFACES]; /* through which interfaces */
} reading;

static void bad_line(unsigned line, const char *text)
{
    print_error("%s:%u: not understood: %s\n", stage.path, line, text);
    exit(1);
}

static char *copied(const char *text)
{
    return formatted("%s", text);
}

/* ------------------------------------------------------------------ tables */

/* Column i of "| a | b |", without blanks around it; NULL: there is none. */
static char *cell(const char *row, size_t i)
{
    for (row++; i > 0 && row; i--)
        row = strchr(row, '|') ? strchr(row, '|') + 1 : NULL;
    const char *end = row ? strchr(row, '|') : NULL;
    if (!end)
        return NULL;
    row += strspn(row, " ");
    while (end > row && end[-1] == ' ')
        end--;
    char *text = copied(row);
    text[end > row ? end - row : 0] = '\0';
    return text;
}

/* With each <column> replaced by what the row has there. */
static char *filled_in(char *text, const struct table *table, const char *row)
{
    char *name, *at;
    for (size_t i = 0; (name = cell(table->rows[0], i)); i++) {
        const char *value = cell(row, i), *mark = formatted("<%s>", name);
        if (!value)
            bad_line(reading.line, row);
        while ((at = strstr(text, mark))) {
            *at = '\0';
            text = formatted("%s%s%s", text, value, at + strlen(mark));
        }
    }
    return text;
}

/* Of each row of a table with each of the next one this is one. */
static const char *row_of(
    const struct scene_part *part, size_t table, size_t number)
{
    for (size_t i = 0; i < table; i++)
        number /= part->tables[i].count - 1;
    return part->tables[table]
        .rows[1 + number % (part->tables[table].count - 1)];
}

/* How many there are. */
static size_t rows_of(const struct scene_part *part)
{
    size_t number = 1;
    for (size_t i = 0; i < part->table_count; i++)
        number *= part->tables[i].count - 1;
    return number;
}

/* ------------------------------------------------------------------ scenes */

static void play_scene(void **state);
static int begin_scene(void **state);
static int end_scene(void **state);

/* From the rows of the scene's own tables, and from those of "before each". */
static char *filled_in_twice(const char *text, size_t row, size_t before_row)
{
    const struct scene_part *own = &reading.own, *before = &file.before;
    char *result = copied(text);
    for (size_t i = 0; i < own->table_count; i++)
        result = filled_in(result, &own->tables[i], row_of(own, i, row));
    for (size_t i = 0; i < before->table_count; i++)
        result = filled_in(
            result, &before->tables[i], row_of(before, i, before_row));
    return result;
}

/* The scene's, with what makes it differ from those of other rows. */
static char *name_of_scene(size_t row, size_t before_row)
{
    char *name = filled_in_twice(reading.name, row, before_row);
    if (reading.own.table_count > 0 && !strcmp(name, reading.name))
        name = formatted("%s %s", name, row_of(&reading.own, 0, row));
    if (file.before.table_count == 0)
        return name;
    return formatted(
        "%s, %s", name, cell(row_of(&file.before, 0, before_row), 0));
}

static void add_steps(struct scene *s, const struct scene_part *part,
    size_t row, size_t before_row)
{
    for (size_t i = 0; i < part->count; i++) {
        struct scene_step *step = &s->steps[s->count++];
        *step = part->steps[i];
        step->text = filled_in_twice(step->text, row, before_row);
    }
}

/* Numbers of rows. */
static void add_scene(size_t row, size_t before_row, enum interface interface)
{
    static const char *const names[] = {"", " (event loop)", " (descriptor)"};
    struct scene *s = &file.scenes[file.count];
    if (file.count == SCENES_MAX)
        bad_line(reading.line, "too many scenes");
    *s = (struct scene){.line = reading.line,
        .loop = interface != BLOCKING,
        .by_descriptor = interface == DESCRIPTOR};
    s->name =
        formatted("%s%s", name_of_scene(row, before_row), names[interface]);
    s->before = file.before.count;
    s->steps = (struct scene_step *)pool_take(
        sizeof(*s->steps) *
        (file.before.count + reading.own.count + file.after.count));
    add_steps(s, &file.before, row, before_row);
    add_steps(s, &reading.own, row, before_row);
    add_steps(s, &file.after, row, before_row);
    file.tests[file.count++] = (struct CMUnitTest){.name = s->name,
        .test_func = play_scene,
        .setup_func = begin_scene,
        .teardown_func = end_scene,
        .initial_state = s};
}

/* Each row of the scene's tables with each of "before each". */
static void add_all(void)
{
    for (size_t row = 0; row < rows_of(&reading.own); row++)
        for (size_t way = 0; way < rows_of(&file.before); way++)
            for (int k = 0; k < INTERFACES; k++)
                if (reading.calls[k])
                    add_scene(row, way, (enum interface)k);
}

static void end_of_reading(void)
{
    if (!reading.name)
        return;
    if (!strcmp(reading.name, BEFORE_EACH))
        file.before = reading.own;
    else if (!strcmp(reading.name, AFTER_EACH))
        file.after = reading.own;
    else
        add_all();
    memset(&reading, 0, sizeof(reading));
}

static void set_calls(const char *text, bool calls[INTERFACES])
{
    calls[BLOCKING] = strstr(text, "blocking");
    calls[EVENT_LOOP] = strstr(text, "event loop");
    calls[DESCRIPTOR] = strstr(text, "descriptor");
}

static void add_row(unsigned line, const char *text)
{
    struct scene_part *own = &reading.own;
    own->table_count += own->table_count == 0;
    struct table *table = &own->tables[own->table_count - 1];
    if (table->count == ROWS_MAX)
        bad_line(line, text);
    table->rows[table->count++] = copied(text);
}

static void add_step(unsigned line, unsigned indent, const char *text)
{
    struct scene_part *own = &reading.own;
    if (after(text, "calls: ")) {
        set_calls(text, reading.calls);
        return;
    }
    if (*text == '|') {
        add_row(line, text);
        return;
    }
    if (!strcmp(text, "and each of")) {
        if (own->table_count == TABLES_MAX)
            bad_line(line, text);
        own->table_count++;
        return;
    }
    if (own->count == STEPS_MAX)
        bad_line(line, "too many steps");
    own->steps[own->count++] = (struct scene_step){line, indent, copied(text)};
}

static void set_arguments(char *text)
{
    char *word, *rest = text;
    for (size_t i = 0; (word = strsep(&rest, " ")) && i < 12; i++)
        file.arguments[i] = copied(strcmp(word, "\"\"") != 0 ? word : "");
}

/* "1 and 3" */
static void set_servers(const char *text)
{
    memset(file.on, 0, sizeof(file.on));
    file.each_strategy = !strcmp(text, "one for each strategy");
    file.changes = !strcmp(text, "one that changes its version");
    for (const char *at = text; *at != '\0'; at++)
        if (*at > '0' && *at <= '0' + QUORUM_MAX)
            file.on[*at - '0'] = true;
}

/* "NAME: VALUE" before the first scene, or "scene: NAME". */
static void read_setting(unsigned line, char *text)
{
    char *value = strstr(text, ": ");
    if (!value)
        bad_line(line, text);
    *value = '\0';
    value += 2;
    if (!strcmp(text, "scene")) {
        end_of_reading();
        reading.name = copied(value);
        reading.line = line;
        memcpy(reading.calls, file.calls, sizeof(file.calls));
    } else if (reading.name || file.count > 0) {
        bad_line(line, text);
    } else if (!strcmp(text, "servers")) {
        set_servers(value);
    } else if (!strcmp(text, "client parameters")) {
        snprintf(file.parameters, sizeof(file.parameters), "%s", value);
    } else if (!strcmp(text, "transports") && !strcmp(value, "tcp")) {
        file.brief = true;
    } else if (!strcmp(text, "server clock")) {
        file.steps_clock = true;
    } else if (!strcmp(text, "server certificates")) {
        file.certificates = true;
    } else if (!strcmp(text, "calls")) {
        set_calls(value, file.calls);
    } else if (!strcmp(text, "server arguments")) {
        set_arguments(value);
    } else {
        bad_line(line, text);
    }
}

static void read_line(unsigned line, char *text)
{
    size_t indent = strspn(text, " ");
    if (indent == 0 && *text != '\0')
        read_setting(line, text);
    else if (reading.name && *text != '\0')
        add_step(line, (unsigned)indent, text + indent);
    else if (*text != '\0')
        bad_line(line, text);
    *text = '\0';
}

/* What is indented under such a step is a block of steps. */
static bool begins_block(const char *step)
{
    return after(step, "repeat ") || after(step, "memory fails ") ||
           after(step, "cut at each ");
}

/* What is indented more than another step belongs to it. */
static bool goes_on(const char *step, size_t indent)
{
    size_t own = strspn(step, " ");
    return own > 0 && indent > own && !begins_block(step + own);
}

static void read_scenes(const char *path)
{
    char *text = NULL, whole[4096] = "";
    size_t size = 0;
    unsigned line = 0, begun = 0;
    FILE *in = fopen(path, "re");
    if (!in)
        bad_line(0, "there is no such file");
    while (getline(&text, &size, in) > 0) {
        text[strcspn(text, "\n")] = '\0';
        line++;
        size_t indent = strspn(text, " "), len = strlen(whole);
        if (text[indent] == '\0' || text[indent] == '#')
            continue;
        if (len + strlen(text) + 2 > sizeof(whole))
            bad_line(line, text);
        if (goes_on(whole, indent)) {
            whole[len] = ' ';
            strcpy(whole + len + 1, text + indent);
            continue;
        }
        read_line(begun, whole);
        strcpy(whole, text);
        begun = line;
    }
    read_line(begun, whole);
    end_of_reading();
    free(text);
    fclose(in);
}

#endif
