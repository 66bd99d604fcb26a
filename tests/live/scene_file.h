/* SPDX-License-Identifier: MIT */
/* Reads a file of scenes: its settings, and each scene once for every row of
 * its table and for every interface. */
#ifndef NXLOCK_TESTS_LIVE_SCENE_FILE_H
#define NXLOCK_TESTS_LIVE_SCENE_FILE_H

#include "live/scene.h"

#define BEFORE_EACH "before each"

enum { SCENES_MAX = 400, ROWS_MAX = 80 };

static struct {
    const char *path;
    char name[64];
    bool calls[INTERFACES];      /* through which of them */
    bool on[QUORUM_MAX + 1];     /* on how many servers */
    char parameters[SCENE_ROOM]; /* of all clients' URLs */
    bool brief;                  /* over TCP only */
    bool steps_clock;            /* of the servers */
    bool certificates;           /* they speak TLS, see scene_tls.h */
    char *arguments[13];         /* of the servers */
    struct scene scenes[SCENES_MAX];
    struct CMUnitTest tests[SCENES_MAX];
    size_t count;
    struct scene_step *before; /* steps of each scene, before its own */
    size_t before_count;
} file = {.calls = {true}, .on = {[1] = true}};

/* The scene that is being read. */
static struct {
    char *name;
    unsigned line;
    struct scene_step *steps;
    size_t count, room;
    bool calls[INTERFACES]; /* through which interfaces */
    bool alone;             /* with one server only */
    char *rows[ROWS_MAX];   /* the first one has the names of the columns */
    size_t row_count;
} reading;

static void bad_line(unsigned line, const char *text)
{
    print_error("%s:%u: not understood: %s\n", file.path, line, text);
    exit(1);
}

static char *copied(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        abort();
    return copy;
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
static char *filled_in(const char *text, const char *row)
{
    char *result = copied(text), *name, *value;
    for (size_t i = 0; row && (name = cell(reading.rows[0], i)); i++) {
        char mark[64], *at, *longer;
        value = cell(row, i);
        if (!value)
            bad_line(reading.line, row);
        snprintf(mark, sizeof(mark), "<%s>", name);
        while ((at = strstr(result, mark))) {
            *at = '\0';
            if (asprintf(&longer, "%s%s%s", result, value, at + strlen(mark)) <
                0)
                abort();
            free(result);
            result = longer;
        }
        free(name);
        free(value);
    }
    return result;
}

/* ------------------------------------------------------------------ scenes */

static void play_scene(void **state);
static int begin_scene(void **state);
static int end_scene(void **state);

static void add_scene(const char *row, enum interface interface)
{
    static const char *const names[] = {"", " (event loop)", " (descriptor)"};
    struct scene *s = &file.scenes[file.count];
    if (file.count == SCENES_MAX)
        bad_line(reading.line, "too many scenes");
    *s = (struct scene){.alone = reading.alone,
        .line = reading.line,
        .loop = interface != BLOCKING,
        .by_descriptor = interface == DESCRIPTOR,
        .count = file.before_count + reading.count};
    char *name = filled_in(reading.name, row);
    if (asprintf(&s->name, "%s%s%s%s", name,
            row && !strcmp(name, reading.name) ? " " : "",
            row && !strcmp(name, reading.name) ? row : "",
            names[interface]) < 0)
        abort();
    free(name);
    s->steps = calloc(s->count + 1, sizeof(*s->steps));
    for (size_t i = 0; i < s->count; i++) {
        s->steps[i] = i < file.before_count
                          ? file.before[i]
                          : reading.steps[i - file.before_count];
        s->steps[i].text = filled_in(s->steps[i].text, row);
    }
    file.tests[file.count++] = (struct CMUnitTest){.name = s->name,
        .test_func = play_scene,
        .setup_func = begin_scene,
        .teardown_func = end_scene,
        .initial_state = s};
}

static void end_of_reading(void)
{
    size_t rows = reading.row_count;
    if (reading.name && !strcmp(reading.name, BEFORE_EACH)) {
        file.before = reading.steps;
        file.before_count = reading.count;
        free(reading.name);
        memset(&reading, 0, sizeof(reading));
    }
    for (size_t i = rows > 0; reading.name && i < (rows ? rows : 1); i++)
        for (int k = 0; k < INTERFACES; k++)
            if (reading.calls[k])
                add_scene(rows ? reading.rows[i] : NULL, (enum interface)k);
    for (size_t i = 0; i < reading.count; i++)
        free(reading.steps[i].text);
    for (size_t i = 0; i < rows; i++)
        free(reading.rows[i]);
    free(reading.name);
    free(reading.steps);
    memset(&reading, 0, sizeof(reading));
}

static void set_calls(const char *text, bool calls[INTERFACES])
{
    calls[BLOCKING] = strstr(text, "blocking");
    calls[EVENT_LOOP] = strstr(text, "event loop");
    calls[DESCRIPTOR] = strstr(text, "descriptor");
}

static void add_step(unsigned line, unsigned indent, const char *text)
{
    if (!strncmp(text, "not with several servers: ", 26)) {
        reading.alone = true;
        return;
    }
    if (!strncmp(text, "calls: ", 7)) {
        set_calls(text, reading.calls);
        return;
    }
    if (*text == '|') {
        if (reading.row_count == ROWS_MAX)
            bad_line(line, text);
        reading.rows[reading.row_count++] = copied(text);
        return;
    }
    if (reading.count == reading.room) {
        reading.room = 2 * reading.room + 16;
        reading.steps =
            realloc(reading.steps, reading.room * sizeof(*reading.steps));
        if (!reading.steps)
            abort();
    }
    reading.steps[reading.count++] =
        (struct scene_step){line, indent, copied(text)};
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

/* What is indented more than a step, but not under "repeat", belongs to it. */
static bool goes_on(const char *step, size_t indent)
{
    size_t own = strspn(step, " ");
    return own > 0 && indent > own && strncmp(step + own, "repeat ", 7) != 0;
}

static void read_scenes(const char *path)
{
    char *text = NULL, whole[4096] = "";
    size_t size = 0;
    unsigned line = 0, begun = 0;
    FILE *in = fopen(path, "re");
    file.path = path;
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
