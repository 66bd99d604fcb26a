/* SPDX-License-Identifier: MIT */
/*
 * Plays the scenes of every file of unit/scenes, one test each, named by its
 * file and scene; unit/scene.h says what is in these files. One that fails says
 * in which line it is, at which step, what was expected, and what was seen.
 */
#include "unit/scene_cleanup.h"
#include "unit/scene_eligibility.h"
#include "unit/scene_server.h"
#include "unit/scene_several.h"
#include "unit/scene_votes.h"

#include <glob.h>

#define SCENES_MAX 1200

static const struct scene_machine *const machines[] = {&life_machine,
    &acquire_machine, &round_machine, &line_machine, &server_machine,
    &several_machine, &eligibility_machine, &cleanup_machine};

static struct text_scene {
    char *text, *name, *steps, *does, *with;
    const char *path; /* of its file */
    unsigned row;     /* its line there */
    const struct scene_machine *machine;
    const char *failed; /* the first step after which it is another trace */
} scenes[SCENES_MAX];
static struct CMUnitTest tests[SCENES_MAX];
static size_t count;
static struct text_scene *playing;
static char playing_step[64]; /* empty: all are over */

static void play_step(char *word)
{
    snprintf(playing_step, sizeof(playing_step), "%s", word);
    step(playing_step);
    size_t len = strlen(scene.trace);
    bool same = !strncmp(scene.trace, playing->does, len) &&
                (len == 0 || !playing->does[len] || playing->does[len] == ' ');
    if (!same && !playing->failed)
        playing->failed = strdup(word);
}

static void play_scene(void **state)
{
    playing = *state;
    scene_begin(playing->machine, playing->with);
    each_word(playing->steps, play_step);
    *playing_step = '\0';
    if (strcmp(scene.trace, playing->does) != 0)
        fail();
}

/* Also for an assertion of a machine, which does not know the scene. */
static void report_scene(void)
{
    const char *from = playing->failed ? playing->failed
                       : *playing_step ? playing_step
                                       : "the end: too little";
    print_error("%s:%u:\n", playing->path, playing->row);
    print_error("  steps     %s\n", playing->steps);
    print_error("  options   %s\n", playing->with);
    print_error("  expected  %s\n", playing->does);
    print_error("  seen      %.800s%s\n", scene.trace,
        strlen(scene.trace) > 800 ? " ..." : "");
    print_error("  from      %s\n", from);
}

static int end_scene(void **state)
{
    (void)state;
    if (!test_state.finished)
        report_scene();
    if (scene.machine && scene.machine->stop)
        scene.machine->stop();
    return 0;
}

/* ------------------------------------------------------------------- files */

static void broken(const char *path, const char *text)
{
    print_error("%s: not understood: %s\n", path, text);
    exit(1);
}

/* The next column, its words with one blank between them. */
static char *column(char **rest)
{
    char *text = strsep(rest, "|"), *end = text;
    if (!text)
        return "";
    for (char *from = text; *from; from++)
        if (*from != ' ' || (end > text && end[-1] != ' '))
            *end++ = *from;
    end -= end > text && end[-1] == ' ';
    *end = '\0';
    return text;
}

static void add_scene(const char *path, unsigned row, char *text,
    const struct scene_machine *machine, const char *with)
{
    struct text_scene *s = &scenes[count];
    const char *file = strrchr(path, '/') + 1;
    char *rest = s->text = strdup(text);
    char *name = column(&rest);
    s->steps = column(&rest);
    s->does = column(&rest);
    const char *more = column(&rest);
    if (!*name) /* its steps say it */
        name = s->steps;
    if (!machine || count == SCENES_MAX || rest ||
        asprintf(&s->with, "%s %s", with, more) < 0 ||
        asprintf(&s->name, "%.*s: %s", (int)strcspn(file, "."), file, name) < 0)
        broken(path, text);
    s->machine = machine;
    s->path = path;
    s->row = row;
    tests[count++] = (struct CMUnitTest){.name = s->name,
        .test_func = play_scene,
        .teardown_func = end_scene,
        .initial_state = s};
}

static void read_line(const char *path, unsigned row, char *text)
{
    static const struct scene_machine *machine;
    static char with[256];
    if (!strncmp(text, "machine ", 8)) {
        machine = NULL;
        with[0] = '\0';
        for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
            if (!strcmp(text + 8, machines[i]->name))
                machine = machines[i];
    } else if (!strncmp(text, "options", 7)) {
        snprintf(with, sizeof(with), "%s", text + 7);
    } else {
        add_scene(path, row, text, machine, with);
    }
}

static void read_file(const char *path)
{
    char *text = NULL, whole[2048] = "";
    size_t size = 0;
    unsigned row = 0, begun_at = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        broken(path, "no such file");
    for (bool more = true; more;) {
        more = getline(&text, &size, file) > 0;
        if (more)
            text[strcspn(text, "\n")] = '\0';
        bool continues = more && *text == ' ';
        row++;
        if (!continues && *whole) {
            read_line(path, begun_at, whole);
            *whole = '\0';
        }
        if (!more || *text == '#' || *text == '\0')
            continue;
        if (strlen(whole) + strlen(text) >= sizeof(whole))
            broken(path, text);
        begun_at = *whole ? begun_at : row;
        strcat(whole, text);
    }
    free(text);
    fclose(file);
}

int main(void)
{
    glob_t found;
    if (glob(SCENES_DIR "/*.scenes", 0, NULL, &found) != 0)
        broken(SCENES_DIR, "no scenes");
    for (size_t i = 0; i < found.gl_pathc; i++)
        read_file(found.gl_pathv[i]);
    int failed = test_run_group("scenes", tests, count, NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        free(scenes[i].text);
        free(scenes[i].name);
        free(scenes[i].with);
        free((char *)scenes[i].failed);
    }
    globfree(&found);
    return failed;
}
